/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Any pair of types with equal signature, with any send call, between all pairs of ranks.
 *
 * Every operation is one exchange between rank r and rank r ^ x, for an x that changes. The data of
 * each direction is drawn from the seed: random nested types (typegen), or layouts with sizes
 * around the thresholds. The layout of the receiver is drawn separately, often with room for more
 * than the message.
 */

#include "layouts.h"
#include "mpitest.h"
#include "pvars.h"
#include "../common/typegen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One message in one direction. Both ranks know all of it; each has only the buffer of its own
 * side. */
typedef struct transfer_t {
    bool generated;
    typegen_side_t sides[2]; /* generated: of the sender and of the receiver */
    typegen_buffer_t memory; /* generated: this rank's */
    mpitest_kind_t kinds[2]; /* else */
    MPI_Datatype type;       /* this rank's side */
    int count;
    void *addr;
    mpitest_map_t *map;
    mpitest_buffer_t *buffer;
    bool sending;
    long bytes; /* of the message */
    uint64_t key;
    int tag;
} transfer_t;

typedef enum way_t {
    WAY_BLOCKING,    /* Send and Recv, one direction after the other */
    WAY_SYNCHRONOUS, /* Ssend and Recv */
    WAY_NONBLOCKING, /* Irecv, Isend */
    WAY_UNEXPECTED,  /* Isend, then after a while Irecv */
    WAY_ISSEND,      /* Issend */
    WAY_SENDRECV,    /* Sendrecv */
    WAY_PERSISTENT,  /* Send_init and Recv_init, started three times */
    WAY_SSEND_INIT,  /* Ssend_init and Recv_init, started twice */
    WAY_MAX
} way_t;

static const char *const way_names[WAY_MAX] = {"blocking",   "synchronous", "nonblocking",
                                               "unexpected", "issend",      "sendrecv",
                                               "persistent", "ssend_init"};

static long sizes[64];
static int size_count;

/* Sizes around the thresholds: envelope, eager limits, pages, chunks, 16 bits. */
static void collect_sizes(void)
{
    static const long borders[] = {8,     64,    128,   512,   1024,   4096,   8192,
                                   12288, 16384, 32768, 65536, 131072, 262144, 524288};
    long min_size = pvars_parameter("pml_umrddt_min_size", 4096);
    size_t i;

    for (i = 0; i < sizeof(borders) / sizeof(borders[0]); ++i) {
        sizes[size_count++] = borders[i] - 1;
        sizes[size_count++] = borders[i];
        sizes[size_count++] = borders[i] + 1;
    }
    sizes[size_count++] = 1;
    if (1 < min_size && min_size < 1 << 20) {
        sizes[size_count++] = min_size - 1;
        sizes[size_count++] = min_size;
        sizes[size_count++] = min_size + 1;
    }
    sizes[size_count++] = 1 << 20;
    sizes[size_count++] = 3 * (1 << 20) + 5;
}

static bool is_contiguous(const typegen_side_t *side)
{
    size_t i;

    for (i = 1; i < side->element_count; ++i) {
        if (side->elements[i].offset
            != side->elements[i - 1].offset + (int64_t) side->elements[i - 1].length) {
            return false;
        }
    }
    return true;
}

/*
 * pml/ucx of Open MPI 4.1.4 alone sends and receives a contiguous type from its address on, even if
 * its data begins elsewhere. umrddt does not affect such a message if it passes it through.
 */
static bool begins_elsewhere(const typegen_side_t *side)
{
    const char *host = getenv("UMRDDT_TEST_HOST");

    return NULL != host && 0 == strcmp(host, "ucx") && 0 < side->element_count
           && 0 != side->elements[0].offset && is_contiguous(side);
}

/*
 * Open MPI 5.0.7 alone puts bytes of one in a thousand nested types into wrong places when it packs
 * or unpacks them in several pieces. Messages in one piece, and messages that umrddt handles, are
 * right.
 */
static bool is_base_careless(void)
{
    const char *expect = getenv("UMRDDT_TEST_EXPECT");

    return 5 <= OMPI_MAJOR_VERSION && (NULL == expect || 0 != strcmp(expect, "clean"));
}

static bool is_in_pieces(const typegen_side_t *send)
{
    return 5 <= OMPI_MAJOR_VERSION && 4000 < send->size
           && (is_base_careless() || is_contiguous(send));
}

static bool is_base_defect(const typegen_side_t *sides)
{
    return begins_elsewhere(&sides[0]) || begins_elsewhere(&sides[1]) || is_in_pieces(&sides[0]);
}

static void draw_generated(transfer_t *transfer, uint64_t *state)
{
    typegen_options_t options = TYPEGEN_OPTIONS_DEFAULT;
    typegen_rng_t rng;

    options.receivable = false; /* of the sending side only: it may read a byte twice */
    options.max_span = 1 << 20;
    options.min_elements = 1 << mpitest_between(state, 0, is_base_careless() ? 5 : 10);
    options.max_elements = options.min_elements * 8;
    typegen_seed(&rng, mpitest_random(state));
    typegen_pair(&rng, &options, &transfer->sides[0], &transfer->sides[1]);
    while (is_base_defect(transfer->sides)) {
        typegen_side_free(&transfer->sides[0]);
        typegen_side_free(&transfer->sides[1]);
        typegen_pair(&rng, &options, &transfer->sides[0], &transfer->sides[1]);
    }
    transfer->bytes = (long) transfer->sides[0].size;
    transfer->type = transfer->sides[transfer->sending ? 0 : 1].type;
    transfer->count = transfer->sides[transfer->sending ? 0 : 1].count;
    typegen_buffer_alloc(&transfer->sides[transfer->sending ? 0 : 1], &transfer->memory);
    transfer->addr = transfer->memory.address;
}

/* Layouts with small blocks are kept small: they need many entries, and many keys, per byte. */
static long bound_bytes(mpitest_kind_t kind, long bytes)
{
    long most = MPITEST_CONTIGUOUS == kind || MPITEST_COARSE == kind ? 8l << 20
                : MPITEST_WIDE == kind                               ? 16385
                : MPITEST_DESCENDING == kind                         ? 262145
                                                                     : 65537;

    return bytes < most ? bytes : most;
}

static void draw_layouts(transfer_t *transfer, uint64_t *state)
{
    long bytes = sizes[mpitest_between(state, 0, size_count - 1)], room;
    uint64_t seed = mpitest_random(state);

    transfer->kinds[0] = (mpitest_kind_t) mpitest_between(state, 0, MPITEST_KINDS - 1);
    transfer->kinds[1] = (mpitest_kind_t) mpitest_between(state, 0, MPITEST_KINDS - 1);
    bytes = bound_bytes(transfer->kinds[0], bytes);
    bytes = bound_bytes(transfer->kinds[1], bytes);
    room = 0 == mpitest_random(state) % 3 ? mpitest_between(state, 1, 5000) : 0;
    transfer->bytes = bytes;
    transfer->type = mpitest_type(transfer->kinds[transfer->sending ? 0 : 1],
                                  (int) (transfer->sending ? bytes : bytes + room),
                                  transfer->sending ? seed : seed + 1);
    transfer->count = 1;
    transfer->map = mpitest_map(transfer->type, 1);
    transfer->buffer = mpitest_buffer(transfer->map);
    transfer->addr = transfer->buffer->addr;
}

static void draw(transfer_t *transfer, uint64_t seed, bool sending)
{
    uint64_t state = seed;

    memset(transfer, 0, sizeof(*transfer));
    transfer->sending = sending;
    transfer->key = mpitest_random(&state);
    transfer->tag = (int) mpitest_between(&state, 0, 32767);
    transfer->generated = 0 == mpitest_random(&state) % 2;
    if (transfer->generated) {
        draw_generated(transfer, &state);
    } else {
        draw_layouts(transfer, &state);
    }
}

static void prepare(transfer_t *transfer)
{
    if (transfer->generated) {
        typegen_fill(&transfer->memory, transfer->key + (transfer->sending ? 0 : 1));
    } else if (transfer->sending) {
        mpitest_fill(transfer->buffer, transfer->key);
    } else {
        mpitest_clear(transfer->buffer);
    }
}

static void verify_generated(transfer_t *transfer)
{
    const typegen_side_t *side = &transfer->sides[transfer->sending ? 0 : 1];
    unsigned char *stream = NULL;
    char why[512] = "";
    bool right;

    if (transfer->sending) {
        right = typegen_verify(side, &transfer->memory, transfer->key, NULL, 0, why, sizeof(why));
    } else {
        stream = typegen_expected(&transfer->sides[0], transfer->key);
        right = typegen_verify(side, &transfer->memory, transfer->key + 1, stream,
                               transfer->sides[0].size, why, sizeof(why));
    }
    free(stream);
    if (!right) {
        mpitest_fail(__FILE__, __LINE__, "%s; sent as %s, received as %s", why,
                     transfer->sides[0].description, transfer->sides[1].description);
    }
    ++mpitest.checks;
}

static void verify(transfer_t *transfer, MPI_Status *status, int peer)
{
    int bytes = -1;

    if (!transfer->sending) {
        CHECK_INT(status->MPI_SOURCE, peer);
        CHECK_INT(status->MPI_TAG, transfer->tag);
        MPI_OK(MPI_Get_count(status, MPI_BYTE, &bytes));
        CHECK_INT(bytes, transfer->bytes);
    }
    if (transfer->generated) {
        verify_generated(transfer);
    } else {
        /* A send must not change anything either. */
        VERIFY(transfer->buffer, transfer->key, transfer->bytes);
    }
}

static void drop(transfer_t *transfer)
{
    if (transfer->generated) {
        typegen_buffer_free(&transfer->memory);
        typegen_side_free(&transfer->sides[0]);
        typegen_side_free(&transfer->sides[1]);
    } else {
        mpitest_buffer_free(transfer->buffer);
        mpitest_map_free(transfer->map);
        MPI_OK(MPI_Type_free(&transfer->type));
    }
}

static void exchange_blocking(transfer_t *out, transfer_t *in, int peer, bool synchronous,
                              MPI_Status *status)
{
    int turn;

    for (turn = 0; turn < 2; ++turn) {
        if ((mpitest.rank < peer) == (0 == turn)) {
            MPI_OK((synchronous ? MPI_Ssend : MPI_Send)(out->addr, out->count, out->type, peer,
                                                        out->tag, MPI_COMM_WORLD));
        } else {
            MPI_OK(MPI_Recv(in->addr, in->count, in->type, peer, in->tag, MPI_COMM_WORLD, status));
        }
    }
}

static void exchange_nonblocking(transfer_t *out, transfer_t *in, int peer, way_t way,
                                 MPI_Status *status)
{
    MPI_Request requests[2];
    MPI_Status both[2];

    if (WAY_UNEXPECTED != way) {
        MPI_OK(
            MPI_Irecv(in->addr, in->count, in->type, peer, in->tag, MPI_COMM_WORLD, &requests[0]));
    }
    MPI_OK((WAY_ISSEND == way ? MPI_Issend : MPI_Isend)(out->addr, out->count, out->type, peer,
                                                        out->tag, MPI_COMM_WORLD, &requests[1]));
    if (WAY_UNEXPECTED == way) {
        mpitest_sleep(500);
        MPI_OK(
            MPI_Irecv(in->addr, in->count, in->type, peer, in->tag, MPI_COMM_WORLD, &requests[0]));
    }
    MPI_OK(MPI_Waitall(2, requests, both));
    CHECK(MPI_REQUEST_NULL == requests[0] && MPI_REQUEST_NULL == requests[1]);
    *status = both[0];
}

static void exchange_persistent(transfer_t *out, transfer_t *in, int peer, way_t way,
                                MPI_Status *status)
{
    int times = WAY_PERSISTENT == way ? 3 : 2, i;
    MPI_Request requests[2];
    MPI_Status both[2];

    MPI_OK(
        MPI_Recv_init(in->addr, in->count, in->type, peer, in->tag, MPI_COMM_WORLD, &requests[0]));
    MPI_OK((WAY_PERSISTENT == way ? MPI_Send_init : MPI_Ssend_init)(
        out->addr, out->count, out->type, peer, out->tag, MPI_COMM_WORLD, &requests[1]));
    for (i = 0; i < times; ++i) {
        MPI_OK(MPI_Startall(2, requests));
        MPI_OK(MPI_Waitall(2, requests, both));
        CHECK(MPI_REQUEST_NULL != requests[0] && MPI_REQUEST_NULL != requests[1]);
        if (i < times - 1) {
            verify(in, &both[0], peer);
            verify(out, &both[1], peer);
            ++out->key;
            ++in->key;
            prepare(out);
            prepare(in);
        }
    }
    MPI_OK(MPI_Request_free(&requests[0]));
    MPI_OK(MPI_Request_free(&requests[1]));
    *status = both[0];
}

static void exchange(transfer_t *out, transfer_t *in, int peer, way_t way)
{
    MPI_Status status;

    switch (way) {
    case WAY_BLOCKING:
    case WAY_SYNCHRONOUS:
        exchange_blocking(out, in, peer, WAY_SYNCHRONOUS == way, &status);
        break;
    case WAY_SENDRECV:
        MPI_OK(MPI_Sendrecv(out->addr, out->count, out->type, peer, out->tag, in->addr, in->count,
                            in->type, peer, in->tag, MPI_COMM_WORLD, &status));
        break;
    case WAY_PERSISTENT:
    case WAY_SSEND_INIT:
        exchange_persistent(out, in, peer, way, &status);
        break;
    default:
        exchange_nonblocking(out, in, peer, way, &status);
        break;
    }
    verify(in, &status, peer);
    verify(out, &status, peer);
}

/*
 * A contiguous sender and a receiver with MPI_Type_vector(16, 4096, 8192), and the reverse: users
 * of another library reported a crash in this case. The types are those of the report.
 */
static void reported_pair(int x)
{
    int peer = mpitest.rank ^ x, turn, n = 16 * 4096;
    uint64_t key = mpitest_mix(mpitest.seed, 9514, (uint64_t) x);
    mpitest_map_t *maps[2];
    MPI_Datatype vector;
    MPI_Status status;

    if (peer >= mpitest.size) {
        return;
    }
    MPI_OK(MPI_Type_vector(16, 4096, 8192, MPI_DOUBLE, &vector));
    MPI_OK(MPI_Type_commit(&vector));
    maps[0] = mpitest_map(MPI_DOUBLE, n);
    maps[1] = mpitest_map(vector, 1);
    for (turn = 0; turn < 4; ++turn) {
        bool sending = (mpitest.rank < peer) == (0 == turn % 2);
        const mpitest_map_t *map = maps[sending == (turn < 2) ? 0 : 1];
        mpitest_buffer_t *buffer = mpitest_buffer(map);

        if (sending) {
            mpitest_fill(buffer, key);
            MPI_OK(MPI_Send(buffer->addr, map->count, map->type, peer, turn, MPI_COMM_WORLD));
        } else {
            int count = -1;

            MPI_OK(
                MPI_Recv(buffer->addr, map->count, map->type, peer, turn, MPI_COMM_WORLD, &status));
            MPI_OK(MPI_Get_count(&status, map->type, &count));
            CHECK_INT(count, map->count);
            MPI_OK(MPI_Get_elements(&status, map->type, &count));
            CHECK_INT(count, n);
        }
        VERIFY(buffer, key, n * (MPI_Aint) sizeof(double));
        mpitest_buffer_free(buffer);
    }
    mpitest_map_free(maps[0]);
    mpitest_map_free(maps[1]);
    MPI_OK(MPI_Type_free(&vector));
}

int main(int argc, char **argv)
{
    int top = 1, x;
    long op;

    mpitest_init(&argc, &argv, "pairs", 120, MPI_THREAD_SINGLE);
    while (top < mpitest.size) {
        top *= 2;
    }
    if (2 > mpitest.size) {
        mpitest_skip("needs two ranks");
    }
    collect_sizes();
    mpitest.step = -1;
    for (x = 1; x < top; ++x) {
        reported_pair(x);
    }
    for (op = 0; op < mpitest.ops; ++op) {
        uint64_t state = mpitest_mix(mpitest.seed, (uint64_t) op, 1);
        int peer = mpitest.rank ^ (int) mpitest_between(&state, 1, top - 1);
        way_t way = (way_t) mpitest_between(&state, 0, WAY_MAX - 1);
        uint64_t low = (uint64_t) (mpitest.rank < peer ? mpitest.rank : peer);
        transfer_t up, down, *out, *in;

        mpitest.step = op;
        if (peer >= mpitest.size) {
            continue;
        }
        draw(&up, mpitest_mix(mpitest.seed, (uint64_t) op, 2 * low + 100), mpitest.rank < peer);
        draw(&down, mpitest_mix(mpitest.seed, (uint64_t) op, 2 * low + 101), mpitest.rank > peer);
        out = mpitest.rank < peer ? &up : &down;
        in = mpitest.rank < peer ? &down : &up;
        if (mpitest.verbose) {
            printf("op %ld: rank %d to %d, %s, sends %ld bytes %s, receives %ld bytes %s\n", op,
                   mpitest.rank, peer, way_names[way], out->bytes,
                   out->generated ? out->sides[0].description : mpitest_kind_name(out->kinds[0]),
                   in->bytes,
                   in->generated ? in->sides[1].description : mpitest_kind_name(in->kinds[1]));
            fflush(stdout);
        }
        prepare(out);
        prepare(in);
        exchange(out, in, peer, way);
        drop(&up);
        drop(&down);
    }
    return mpitest_finish();
}
