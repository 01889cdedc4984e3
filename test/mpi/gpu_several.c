/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * One datatype whose pieces lie in several allocations, relative to an address in one of them or to
 * MPI_BOTTOM: system memory on the heap and in a separate mapping, pinned and managed memory,
 * memory of this and another GPU, of a pool. All pairs in both orders, and some triples, from each
 * address, at either side, with every send and receive call. Every byte is checked, including gaps
 * and guards.
 */

#include "layouts.h"
#include "mpitest.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum source_t {
    HEAP,
    MAPPED, /* system memory that has a mapping of its own, and so an address among those of GPUs */
    DEVICE,
    OTHER, /* of another GPU */
    POOL,
    MANAGED,
    PINNED,
    SOURCES
} source_t;

static const char *const source_names[SOURCES] = {"heap", "mapped",  "device", "other",
                                                  "pool", "managed", "pinned"};
static const gpu_kind_t source_kinds[SOURCES] = {GPU_HOST, GPU_HOST,    GPU_DEVICE, GPU_DEVICE,
                                                 GPU_POOL, GPU_MANAGED, GPU_PINNED};

/* malloc maps larger blocks, and uses the heap for the others. */
#define MAPS_FROM (64 * 1024)

enum {
    PIECES = 3,
    BOTTOM = -1
};

/* Memory and type of one side. */
typedef struct side_t {
    int pieces;
    int base; /* the piece whose address MPI is given, or BOTTOM */
    source_t source[PIECES];
    int bytes[PIECES];
    MPI_Datatype types[PIECES];
    mpitest_map_t *maps[PIECES];
    mpitest_buffer_t *buffers[PIECES];
    MPI_Datatype type;
    void *addr;
} side_t;

static mpitest_buffer_t *buffer_of(const mpitest_map_t *map, source_t source)
{
    const int own = gpu_device();
    mpitest_buffer_t *buffer;

    if (OTHER == source) {
        gpu_device_set((own + 1) % gpu_device_count());
    }
    buffer = mpitest_buffer_of(map, source_kinds[source]);
    gpu_device_set(own);
    return buffer;
}

/* Pieces in stream order; the pieces of memory are made in an order of their own, since what is
 * mapped later usually lies lower. */
static void side_make(side_t *side, uint64_t *state, int bytes)
{
    int lengths[PIECES] = {1, 1, 1}, order[PIECES] = {0, 1, 2}, left = bytes, i, p;
    MPI_Aint at[PIECES], base = 0;

    mpitest_shuffle(state, order, side->pieces);
    for (p = 0; p < side->pieces; ++p) {
        int mine = p == side->pieces - 1 ? left : bytes / side->pieces;
        mpitest_kind_t layout = MAPPED == side->source[p] ? MPITEST_WIDE : mpitest_draw_kind(state);

        side->bytes[p] = mine;
        left -= mine;
        side->types[p] = mpitest_type(layout, mine, mpitest_random(state));
        side->maps[p] = mpitest_map(side->types[p], 1);
    }
    for (i = 0; i < side->pieces; ++i) {
        p = order[i];
        side->buffers[p] = buffer_of(side->maps[p], side->source[p]);
        MPI_OK(MPI_Get_address(side->buffers[p]->addr, &at[p]));
    }
    side->addr = MPI_BOTTOM;
    if (BOTTOM != side->base) {
        side->addr = side->buffers[side->base]->addr;
        base = at[side->base];
    }
    for (p = 0; p < side->pieces; ++p) {
        at[p] -= base;
    }
    MPI_OK(MPI_Type_create_struct(side->pieces, lengths, at, side->types, &side->type));
    MPI_OK(MPI_Type_commit(&side->type));
}

static void side_free(side_t *side)
{
    int p;

    MPI_OK(MPI_Type_free(&side->type));
    for (p = 0; p < side->pieces; ++p) {
        mpitest_buffer_free(side->buffers[p]);
        mpitest_map_free(side->maps[p]);
        MPI_OK(MPI_Type_free(&side->types[p]));
    }
}

static void side_fill(side_t *side, uint64_t key)
{
    int p;

    for (p = 0; p < side->pieces; key += (uint64_t) side->bytes[p], ++p) {
        mpitest_fill(side->buffers[p], key);
    }
}

static void side_clear(side_t *side)
{
    int p;

    for (p = 0; p < side->pieces; ++p) {
        mpitest_clear(side->buffers[p]);
    }
}

static void side_verify(const side_t *side, uint64_t key)
{
    int p;

    for (p = 0; p < side->pieces; key += (uint64_t) side->bytes[p], ++p) {
        VERIFY(side->buffers[p], key, side->bytes[p]);
    }
}

enum {
    SEND,    /* and Recv */
    BSEND,   /* and Recv with wildcards */
    ISEND,   /* and Irecv */
    ISSEND,  /* and Irecv, posted late */
    INIT,    /* Send_init and Recv_init, twice */
    PROBED,  /* Send; Probe and Recv */
    MPROBED, /* Send; Mprobe and Imrecv */
    SELF,    /* to oneself, from the sender's side to another one of its */
    WAYS
};

static const char *const way_names[WAYS] = {"send", "bsend",  "isend",   "issend",
                                            "init", "probed", "mprobed", "self"};

static void persistent(side_t *side, bool sending, uint64_t key, MPI_Status *status)
{
    const int peer = mpitest.rank ^ 1;
    MPI_Request request;

    if (sending) {
        MPI_OK(MPI_Send_init(side->addr, 1, side->type, peer, 7, MPI_COMM_WORLD, &request));
    } else {
        MPI_OK(MPI_Recv_init(side->addr, 1, side->type, peer, 7, MPI_COMM_WORLD, &request));
    }
    MPI_OK(MPI_Start(&request));
    MPI_OK(MPI_Wait(&request, status));
    side_verify(side, key);
    if (!sending) {
        side_clear(side);
    }
    MPI_OK(MPI_Start(&request));
    MPI_OK(MPI_Wait(&request, status));
    MPI_OK(MPI_Request_free(&request));
}

static void out(side_t *side, int way, uint64_t key, int bytes)
{
    const int peer = mpitest.rank ^ 1, room = bytes + 64 + MPI_BSEND_OVERHEAD;
    MPI_Request request;
    void *space;
    int size;

    switch (way) {
    case BSEND:
        space = malloc((size_t) room);
        CHECK(NULL != space);
        MPI_OK(MPI_Buffer_attach(space, room));
        MPI_OK(MPI_Bsend(side->addr, 1, side->type, peer, 7, MPI_COMM_WORLD));
        MPI_OK(MPI_Buffer_detach(&space, &size));
        free(space);
        break;
    case ISEND:
    case ISSEND:
        MPI_OK((ISEND == way ? MPI_Isend : MPI_Issend)(side->addr, 1, side->type, peer, 7,
                                                       MPI_COMM_WORLD, &request));
        MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        break;
    case INIT:
        persistent(side, true, key, MPI_STATUS_IGNORE);
        break;
    default:
        MPI_OK(MPI_Send(side->addr, 1, side->type, peer, 7, MPI_COMM_WORLD));
        break;
    }
}

static void in(side_t *side, int way, uint64_t key, int bytes, MPI_Status *status)
{
    const int peer = mpitest.rank ^ 1;
    MPI_Message message;
    MPI_Request request;

    switch (way) {
    case ISEND:
    case ISSEND:
        if (ISSEND == way) {
            mpitest_sleep(500);
        }
        MPI_OK(MPI_Irecv(side->addr, 1, side->type, peer, 7, MPI_COMM_WORLD, &request));
        MPI_OK(MPI_Wait(&request, status));
        break;
    case INIT:
        persistent(side, false, key, status);
        break;
    case MPROBED:
        MPI_OK(MPI_Mprobe(peer, 7, MPI_COMM_WORLD, &message, status));
        CHECK_STATUS(status, peer, 7, bytes);
        MPI_OK(MPI_Imrecv(side->addr, 1, side->type, &message, &request));
        MPI_OK(MPI_Wait(&request, status));
        break;
    case PROBED:
        MPI_OK(MPI_Probe(peer, 7, MPI_COMM_WORLD, status));
        CHECK_STATUS(status, peer, 7, bytes);
        MPI_OK(MPI_Recv(side->addr, 1, side->type, peer, 7, MPI_COMM_WORLD, status));
        break;
    default:
        MPI_OK(MPI_Recv(side->addr, 1, side->type, BSEND == way ? MPI_ANY_SOURCE : peer,
                        BSEND == way ? MPI_ANY_TAG : 7, MPI_COMM_WORLD, status));
        break;
    }
}

/* To oneself. */
static void self(side_t *from, side_t *to, int bytes)
{
    MPI_Status status;

    MPI_OK(MPI_Sendrecv(from->addr, 1, from->type, mpitest.rank, 8, to->addr, 1, to->type,
                        mpitest.rank, 8, MPI_COMM_WORLD, &status));
    CHECK_STATUS(&status, mpitest.rank, 8, bytes);
}

static void describe(const side_t *side)
{
    int p;

    if (!mpitest.verbose) {
        return;
    }
    printf("step %ld: rank %d:", mpitest.step, mpitest.rank);
    for (p = 0; p < side->pieces; ++p) {
        printf(" %s%s %p", source_names[side->source[p]], p == side->base ? " (base)" : "",
               side->buffers[p]->addr);
    }
    printf("\n");
    fflush(stdout);
}

/* A message from one mixture to another, or (plain) to or from one piece of the heap. */
static void message(const side_t *mixture, bool here, bool other_plain, int way, uint64_t *state)
{
    const bool sending = 0 == mpitest.rank % 2;
    /* below and above the minimum size of umrddt; pieces of MPITEST_WIDE are multiples of 512 */
    const int bytes = (int) mpitest_between(state, 1, 24) * 512 * 3;
    uint64_t key = mpitest_random(state), own;
    side_t side = *mixture, second;
    MPI_Status status;

    own = mpitest_mix(key, (uint64_t) mpitest.rank, 1);
    if (!here && other_plain) {
        side.pieces = 1;
        side.base = 0;
        side.source[0] = HEAP;
    }
    side_make(&side, &own, bytes);
    describe(&side);
    if (mpitest.verbose && sending) {
        printf("step %ld: %s, %d bytes\n", mpitest.step, way_names[way], bytes);
    }
    if (SELF == way) {
        second = *mixture;
        second.base = 0;
        side_make(&second, &own, bytes);
        side_fill(&side, key);
        side_clear(&second);
        self(&side, &second, bytes);
        side_verify(&second, key);
        side_verify(&side, key);
        side_free(&second);
    } else if (sending) {
        side_fill(&side, key);
        out(&side, way, key, bytes);
        side_verify(&side, key);
    } else {
        side_clear(&side);
        in(&side, way, key, bytes, &status);
        CHECK_STATUS(&status, mpitest.rank ^ 1, 7, bytes);
        side_verify(&side, key);
    }
    side_free(&side);
    /* a wildcard must not match the message of the next step */
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    ++mpitest.step;
}

static bool available(source_t source)
{
    return (OTHER != source || 1 < gpu_device_count()) && gpu_kind_available(source_kinds[source]);
}

/* From every address of a mixture, at each side alone and at both. */
static void mixture_everywhere(side_t *mixture, int *turn, uint64_t *state)
{
    int where;

    for (mixture->base = BOTTOM; mixture->base < mixture->pieces; ++mixture->base) {
        for (where = 0; where < 3; ++where) {
            bool here = 2 == where || mpitest.rank % 2 == where;

            message(mixture, here, 2 != where, (*turn)++ % WAYS, state);
        }
    }
    mpitest_alive();
}

static void pairs(uint64_t *state)
{
    int turn = (int) (mpitest.seed % WAYS), a, b;
    side_t mixture;

    memset(&mixture, 0, sizeof(mixture));
    mixture.pieces = 2;
    for (a = 0; a < SOURCES; ++a) {
        for (b = 0; b < SOURCES; ++b) {
            mixture.source[0] = (source_t) a;
            mixture.source[1] = (source_t) b;
            if (available(mixture.source[0]) && available(mixture.source[1])) {
                mixture_everywhere(&mixture, &turn, state);
            }
        }
    }
}

static void triples(uint64_t *state)
{
    int turn = (int) (mpitest.seed % WAYS), a, b, c;
    side_t mixture;

    memset(&mixture, 0, sizeof(mixture));
    mixture.pieces = 3;
    for (a = HEAP; a <= OTHER; ++a) {
        for (b = HEAP; b <= OTHER; ++b) {
            for (c = HEAP; c <= OTHER; ++c) {
                mixture.source[0] = (source_t) a;
                mixture.source[1] = (source_t) b;
                mixture.source[2] = (source_t) c;
                if (a != b && b != c && a != c && available(OTHER)) {
                    mixture_everywhere(&mixture, &turn, state);
                }
            }
        }
    }
}

/* Open MPI frees a request that ends with an error, also a persistent one. */
static void request_end(MPI_Request *request)
{
    if (MPI_REQUEST_NULL != *request) {
        MPI_OK(MPI_Request_free(request));
    }
}

/* A persistent request whose start has failed: no message to wait for, and it can be started again.
 */
static void check_inactive(MPI_Request *request)
{
    MPI_Status status;
    int flag = 0;

    MPI_OK(MPI_Test(request, &flag, &status));
    CHECK(flag);
    CHECK_EMPTY(&status);
    CHECK(MPI_REQUEST_NULL != *request);
    CHECK(MPI_ERR_REQUEST != mpitest_error_class(MPI_Start(request)));
}

/* The error of a send of a side, with one send call. */
static int failed_send(side_t *side, int way, int peer, MPI_Comm comm, int bytes)
{
    const int room = bytes + 64 + MPI_BSEND_OVERHEAD;
    MPI_Request request = MPI_REQUEST_NULL;
    int rc, size;
    void *space;

    switch (way) {
    case BSEND:
        space = malloc((size_t) room);
        CHECK(NULL != space);
        MPI_OK(MPI_Buffer_attach(space, room));
        rc = MPI_Bsend(side->addr, 1, side->type, peer, 9, comm);
        MPI_OK(MPI_Buffer_detach(&space, &size));
        free(space);
        return rc;
    case ISEND:
        rc = MPI_Isend(side->addr, 1, side->type, peer, 9, comm, &request);
        return MPI_SUCCESS == rc ? MPI_Wait(&request, MPI_STATUS_IGNORE) : rc;
    case INIT:
        MPI_OK(MPI_Send_init(side->addr, 1, side->type, peer, 9, comm, &request));
        rc = MPI_Start(&request);
        if (MPI_SUCCESS == rc) {
            rc = MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            check_inactive(&request);
        }
        request_end(&request);
        return rc;
    default:
        return MPI_Send(side->addr, 1, side->type, peer, 9, comm);
    }
}

/* The same of a receive. */
static int failed_receive(side_t *side, int way, int peer, MPI_Comm comm)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Message handle;
    int rc;

    switch (way) {
    case BSEND:
        MPI_OK(MPI_Mprobe(peer, 9, comm, &handle, MPI_STATUS_IGNORE));
        return MPI_Mrecv(side->addr, 1, side->type, &handle, MPI_STATUS_IGNORE);
    case ISEND:
        MPI_OK(MPI_Irecv(side->addr, 1, side->type, peer, 9, comm, &request));
        return MPI_Wait(&request, MPI_STATUS_IGNORE);
    case INIT:
        MPI_OK(MPI_Recv_init(side->addr, 1, side->type, peer, 9, comm, &request));
        MPI_OK(MPI_Start(&request));
        rc = MPI_Wait(&request, MPI_STATUS_IGNORE);
        request_end(&request);
        return rc;
    default:
        return MPI_Recv(side->addr, 1, side->type, peer, 9, comm, MPI_STATUS_IGNORE);
    }
}

/* Where the driver refuses: the sender of a mixture gets an error, and so does who receives into
 * one; messages of system memory go on. Of the row that names it. */
static void refused(uint64_t *state)
{
    static const int ways[] = {SEND, BSEND, ISEND, INIT};
    const int bytes = 512 * 3 * 4, peer = mpitest.rank ^ 1;
    unsigned char *plain = calloc(1, (size_t) bytes);
    MPI_Comm comm;
    size_t i;

    CHECK(NULL != plain);
    MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    MPI_OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    /* Open MPI 5.0 reports an error of MPI_Start on MPI_COMM_WORLD, MPI 4.0 on MPI_COMM_SELF. */
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    for (i = 0; mpitest_has("refused") && i < 2 * sizeof(ways) / sizeof(ways[0]); ++i) {
        uint64_t own = mpitest_mix(mpitest_random(state), (uint64_t) mpitest.rank, 1);
        side_t side = {.pieces = 2, .base = (int) (i % 3) - 1, .source = {HEAP, DEVICE}};
        int way = ways[i / 2];

        side.source[i % 2] = HEAP;
        side.source[1 - i % 2] = DEVICE;
        side_make(&side, &own, bytes);
        if (0 == mpitest.rank % 2) {
            CHECK(MPI_SUCCESS != failed_send(&side, way, peer, comm, bytes));
            MPI_OK(MPI_Send(plain, bytes, MPI_BYTE, peer, 9, comm));
        } else {
            CHECK(MPI_SUCCESS != failed_receive(&side, way, peer, comm));
        }
        side_free(&side);
        ++mpitest.step;
    }
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
    MPI_OK(MPI_Comm_free(&comm));
    free(plain);
}

int main(int argc, char **argv)
{
    static const mpitest_part_t parts[] = {
        {"pairs", pairs},
        {"triples", triples},
        {"refused", refused},
        {NULL, NULL},
    };

    CHECK(1 == mallopt(M_MMAP_THRESHOLD, MAPS_FROM));
    mpitest_init(&argc, &argv, "gpu_several", 1, MPI_THREAD_SINGLE);
    if (0 != mpitest.size % 2) {
        mpitest_skip("needs an even number of ranks");
    }
    gpu_begin_all();
    mpitest_run(parts);
    return mpitest_finish();
}
