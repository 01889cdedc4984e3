/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Messages between any two kinds of memory: plain, pinned and registered system memory, managed
 * memory, and GPU memory from cuMemAlloc (also from within an allocation), from a pool, mapped.
 * Every pair of kinds with types of equal signature in many shapes, with every send and receive
 * call. Both buffers are checked completely, including gaps and guards.
 *
 * --mode host: plain system memory only, without a driver, on any PML, which checks the program
 * itself. --mode part,part: some of the parts only.
 */

#include "gpu_shapes.h"
#include "layouts.h"
#include "mpitest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static gpu_kind_t kinds[GPU_KINDS] = {GPU_HOST};
static int kind_count = 1;

/* For the messages to oneself; MPI_COMM_WORLD's own are to others. */
static MPI_Comm comm;

typedef enum way_t {
    WAY_SEND,     /* and Recv */
    WAY_SSEND,    /* and Irecv */
    WAY_BSEND,    /* and Recv */
    WAY_RSEND,    /* the Irecv is posted before */
    WAY_ISEND,    /* and Irecv */
    WAY_LATE,     /* Isend, and the Irecv when it has come */
    WAY_ISSEND,   /* and Irecv */
    WAY_SENDRECV, /* both in one */
    WAY_INIT,     /* Send_init, Recv_init, three times */
    WAY_WILD,     /* Isend, and an Irecv with both wildcards */
    WAY_PROBE,    /* Isend, and Probe and Recv */
    WAY_MPROBE,   /* Isend, and Mprobe and Mrecv */
    WAY_IMPROBE,  /* Issend, and Improbe and Imrecv */
    WAY_SELF,     /* to oneself */
    WAY_MAX
} way_t;

static const char *const way_names[WAY_MAX] = {"send",  "ssend",  "bsend",    "rsend", "isend",
                                               "late",  "issend", "sendrecv", "init",  "wild",
                                               "probe", "mprobe", "improbe",  "self"};

/* One message in each direction between two ranks. */
typedef struct exchange_t {
    const gpu_shape_t *shape;
    gpu_kind_t from, to;
    int peer;
    int tag;
    uint64_t key_out, key_in;
    mpitest_buffer_t *out, *in;
    MPI_Status status;
} exchange_t;

static void fill(exchange_t *x)
{
    mpitest_fill(x->out, x->key_out);
    mpitest_clear(x->in);
}

static void check_result(const exchange_t *x)
{
    int bytes = -1;

    CHECK_INT(x->status.MPI_SOURCE, x->peer);
    CHECK_INT(x->status.MPI_TAG, x->tag);
    MPI_OK(MPI_Get_count(&x->status, MPI_BYTE, &bytes));
    CHECK_INT(bytes, x->shape->bytes);
    VERIFY(x->in, x->key_in, x->shape->bytes);
    /* A send changes nothing. */
    VERIFY(x->out, x->key_out, x->shape->bytes);
}

#define OUT(x) (x)->out->addr, (x)->shape->send.count, (x)->shape->send.type, (x)->peer, (x)->tag
#define IN(x)  (x)->in->addr, (x)->shape->recv.count, (x)->shape->recv.type

static void irecv(exchange_t *x, MPI_Request *request)
{
    MPI_OK(MPI_Irecv(IN(x), x->peer, x->tag, comm, request));
}

/* Blocking, one direction after the other. */
static void in_turns(exchange_t *x, way_t way)
{
    int turn;

    for (turn = 0; turn < 2; ++turn) {
        if ((mpitest.rank < x->peer) != (0 == turn)) {
            MPI_OK(MPI_Recv(IN(x), x->peer, x->tag, comm, &x->status));
        } else if (WAY_BSEND == way) {
            int room = 0, size;
            void *buffer;

            MPI_OK(MPI_Pack_size(x->shape->send.count, x->shape->send.type, comm, &room));
            buffer = malloc((size_t) room + MPI_BSEND_OVERHEAD);
            CHECK(NULL != buffer);
            MPI_OK(MPI_Buffer_attach(buffer, room + MPI_BSEND_OVERHEAD));
            MPI_OK(MPI_Bsend(OUT(x), comm));
            MPI_OK(MPI_Buffer_detach(&buffer, &size));
            free(buffer);
        } else {
            MPI_OK(MPI_Send(OUT(x), comm));
        }
    }
}

static void persistent(exchange_t *x)
{
    MPI_Request requests[2];
    MPI_Status both[2];
    int i;

    MPI_OK(MPI_Recv_init(IN(x), x->peer, x->tag, comm, &requests[0]));
    MPI_OK(MPI_Send_init(OUT(x), comm, &requests[1]));
    for (i = 0; i < 3; ++i) {
        MPI_OK(MPI_Startall(2, requests));
        MPI_OK(MPI_Waitall(2, requests, both));
        x->status = both[0];
        if (i < 2) {
            check_result(x);
            ++x->key_out;
            ++x->key_in;
            fill(x);
        }
    }
    MPI_OK(MPI_Request_free(&requests[0]));
    MPI_OK(MPI_Request_free(&requests[1]));
}

static void probed(exchange_t *x, way_t way)
{
    MPI_Request send, receive;
    MPI_Message message;
    int bytes = -1, found = 0;

    MPI_OK((WAY_IMPROBE == way ? MPI_Issend : MPI_Isend)(OUT(x), comm, &send));
    if (WAY_PROBE == way) {
        MPI_OK(MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &x->status));
    } else if (WAY_MPROBE == way) {
        MPI_OK(MPI_Mprobe(x->peer, MPI_ANY_TAG, comm, &message, &x->status));
    } else {
        while (!found) {
            MPI_OK(MPI_Improbe(MPI_ANY_SOURCE, x->tag, comm, &found, &message, &x->status));
        }
    }
    CHECK_INT(x->status.MPI_SOURCE, x->peer);
    CHECK_INT(x->status.MPI_TAG, x->tag);
    MPI_OK(MPI_Get_count(&x->status, MPI_BYTE, &bytes));
    CHECK_INT(bytes, x->shape->bytes);
    if (WAY_PROBE == way) {
        MPI_OK(MPI_Recv(IN(x), x->peer, x->tag, comm, &x->status));
    } else if (WAY_MPROBE == way) {
        MPI_OK(MPI_Mrecv(IN(x), &message, &x->status));
    } else {
        MPI_OK(MPI_Imrecv(IN(x), &message, &receive));
        MPI_OK(MPI_Wait(&receive, &x->status));
    }
    MPI_OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
}

static void nonblocking(exchange_t *x, way_t way)
{
    bool wild = WAY_WILD == way;
    MPI_Request requests[2];
    MPI_Status both[2];

    if (WAY_LATE != way) {
        MPI_OK(MPI_Irecv(IN(x), wild ? MPI_ANY_SOURCE : x->peer, wild ? MPI_ANY_TAG : x->tag, comm,
                         &requests[0]));
    }
    MPI_OK((WAY_ISSEND == way ? MPI_Issend : MPI_Isend)(OUT(x), comm, &requests[1]));
    if (WAY_LATE == way) {
        MPI_OK(MPI_Probe(x->peer, x->tag, comm, &both[0]));
        irecv(x, &requests[0]);
    }
    MPI_OK(MPI_Waitall(2, requests, both));
    x->status = both[0];
}

static void go(exchange_t *x, way_t way)
{
    MPI_Request request;

    switch (way) {
    case WAY_SEND:
    case WAY_BSEND:
        in_turns(x, way);
        break;
    case WAY_SSEND:
        irecv(x, &request);
        MPI_OK(MPI_Ssend(OUT(x), comm));
        MPI_OK(MPI_Wait(&request, &x->status));
        break;
    case WAY_RSEND:
        irecv(x, &request);
        MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
        MPI_OK(MPI_Rsend(OUT(x), comm));
        MPI_OK(MPI_Wait(&request, &x->status));
        break;
    case WAY_SENDRECV:
        MPI_OK(MPI_Sendrecv(OUT(x), IN(x), x->peer, x->tag, comm, &x->status));
        break;
    case WAY_INIT:
        persistent(x);
        break;
    case WAY_PROBE:
    case WAY_MPROBE:
    case WAY_IMPROBE:
        probed(x, way);
        break;
    default:
        nonblocking(x, way);
        break;
    }
}

static void one(const gpu_shape_t *shape, gpu_kind_t from, gpu_kind_t to, way_t way)
{
    uint64_t pair = mpitest_mix(mpitest.seed, (uint64_t) mpitest.step, 3);
    exchange_t x = {.shape = shape, .from = from, .to = to};

    x.peer = WAY_SELF == way ? mpitest.rank : mpitest.rank ^ 1;
    x.tag = (int) (pair % 30000);
    x.key_out = pair + (uint64_t) mpitest.rank * 1000003;
    x.key_in = pair + (uint64_t) x.peer * 1000003;
    if (mpitest.verbose) {
        printf("step %ld: rank %d, %s, %s to %s, %ld bytes, %s\n", mpitest.step, mpitest.rank,
               way_names[way], gpu_kind_name(from), gpu_kind_name(to), (long) shape->bytes,
               shape->name);
        fflush(stdout);
    }
    x.out = mpitest_buffer_of(shape->send.map, from);
    x.in = mpitest_buffer_of(shape->recv.map, to);
    fill(&x);
    go(&x, way);
    check_result(&x);
    mpitest_buffer_free(x.out);
    mpitest_buffer_free(x.in);
    ++mpitest.step;
}

static bool wanted(const char *part)
{
    return '\0' == *mpitest.mode || 0 == strcmp(mpitest.mode, "host") || mpitest_has(part);
}

/* Every fixed shape between every two kinds; the calls alternate. product_even and product_odd are
 * the two halves of it. product_part: each shape from every kind to one, so that every two kinds
 * have some shapes. */
static void product(void)
{
    int shapes = gpu_shape_fixed_count(), s, from, to, turn = (int) (mpitest.seed % WAY_MAX);
    const int left_out = mpitest_has("product_even") ? 1 : mpitest_has("product_odd") ? 0 : -1;
    const bool part = mpitest_has("product_part");

    for (s = 0; s < shapes; ++s) {
        gpu_shape_t *shape;

        if (left_out == s % 2) {
            turn += kind_count * kind_count;
            continue;
        }
        shape = gpu_shape_fixed(s);
        for (from = 0; from < kind_count; ++from) {
            for (to = 0; to < kind_count; ++to) {
                if (!part || 0 == (3 * from + to + s) % kind_count) {
                    one(shape, kinds[from], kinds[to], (way_t) (turn++ % WAY_MAX));
                }
            }
        }
        gpu_shape_free(shape);
        mpitest_alive();
    }
}

/* Every call between every two kinds; the shapes are drawn. */
static void ways(void)
{
    uint64_t state = mpitest_mix(mpitest.seed, 17, 0);
    int from, to, way;

    for (from = 0; from < kind_count; ++from) {
        for (to = 0; to < kind_count; ++to) {
            for (way = 0; way < WAY_MAX; ++way) {
                gpu_shape_t *shape = 0 == mpitest_random(&state) % 2
                                         ? gpu_shape_bytes(&state, 40000)
                                         : gpu_shape_nested(&state);

                one(shape, kinds[from], kinds[to], (way_t) way);
                gpu_shape_free(shape);
            }
        }
        mpitest_alive();
    }
}

/* Every two kinds, and every call: these alternate; the shapes are drawn. */
static void alternate(void)
{
    uint64_t state = mpitest_mix(mpitest.seed, 21, 0);
    int from, to, turn = (int) (mpitest.seed % WAY_MAX);

    for (from = 0; from < kind_count; ++from) {
        for (to = 0; to < kind_count; ++to) {
            gpu_shape_t *shape =
                0 == turn % 2 ? gpu_shape_bytes(&state, 40000) : gpu_shape_nested(&state);

            one(shape, kinds[from], kinds[to], (way_t) (turn++ % WAY_MAX));
            gpu_shape_free(shape);
        }
        mpitest_alive();
    }
}

/* Everything drawn, larger messages too. */
static void drawn(void)
{
    uint64_t state = mpitest_mix(mpitest.seed, 18, 0);
    long op;

    for (op = 0; op < mpitest.ops; ++op) {
        gpu_kind_t from = kinds[mpitest_between(&state, 0, kind_count - 1)];
        gpu_kind_t to = kinds[mpitest_between(&state, 0, kind_count - 1)];
        way_t way = (way_t) mpitest_between(&state, 0, WAY_MAX - 1);
        gpu_shape_t *shape = 0 == mpitest_random(&state) % 3 ? gpu_shape_nested(&state)
                                                             : gpu_shape_bytes(&state, 2 << 20);

        one(shape, from, to, way);
        gpu_shape_free(shape);
    }
}

/*
 * A receive with room for more: the bytes after the message do not change. One direction, from the
 * even rank.
 */
static void partial(void)
{
    uint64_t state = mpitest_mix(mpitest.seed, 19, 0);
    long op;

    for (op = 0; op < mpitest.ops; ++op, ++mpitest.step) {
        mpitest_kind_t layouts[2] = {mpitest_draw_kind(&state), mpitest_draw_kind(&state)};
        int bytes = mpitest_draw_bytes(&state), room = (int) mpitest_between(&state, 1, 9000);
        gpu_kind_t from = kinds[mpitest_between(&state, 0, kind_count - 1)];
        gpu_kind_t to = kinds[mpitest_between(&state, 0, kind_count - 1)];
        bool sending = 0 == mpitest.rank % 2;
        uint64_t key = mpitest_random(&state);
        MPI_Datatype type =
            mpitest_type(layouts[sending ? 0 : 1], sending ? bytes : bytes + room, mpitest.seed);
        mpitest_map_t *map = mpitest_map(type, 1);
        mpitest_buffer_t *buffer = mpitest_buffer_of(map, sending ? from : to);
        MPI_Status status;

        if (sending) {
            mpitest_fill(buffer, key);
            MPI_OK(MPI_Send(buffer->addr, 1, type, mpitest.rank ^ 1, 5, comm));
        } else {
            MPI_OK(MPI_Recv(buffer->addr, 1, type, mpitest.rank ^ 1, 5, comm, &status));
            CHECK_STATUS(&status, mpitest.rank ^ 1, 5, bytes);
        }
        VERIFY(buffer, key, bytes);
        mpitest_buffer_free(buffer);
        mpitest_map_free(map);
        MPI_OK(MPI_Type_free(&type));
    }
}

/*
 * A receive that is too short: MPI_ERR_TRUNCATE, nothing beside what it names is written, and the
 * message behind it arrives. Open MPI 4.1.4's pml/ob1 alone writes behind the buffer if the sender
 * is contiguous and the message not eager, so contiguous senders stay eager here.
 */
static void truncated(void)
{
    uint64_t state = mpitest_mix(mpitest.seed, 20, 0);
    long op;

    MPI_OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    for (op = 0; op < mpitest.ops; ++op, ++mpitest.step) {
        mpitest_kind_t layouts[2] = {mpitest_draw_kind(&state), mpitest_draw_kind(&state)};
        int bytes = mpitest_draw_bytes(&state), less;
        gpu_kind_t from = kinds[mpitest_between(&state, 0, kind_count - 1)];
        gpu_kind_t to = kinds[mpitest_between(&state, 0, kind_count - 1)];
        uint64_t key = mpitest_random(&state), seed = mpitest_random(&state);
        bool sending = 0 == mpitest.rank % 2;
        int peer = mpitest.rank ^ 1;
        mpitest_message_t *behind;
        mpitest_buffer_t *buffer;
        mpitest_map_t *map;
        MPI_Datatype type;
        MPI_Status status;

        if (MPITEST_CONTIGUOUS == layouts[0] && 2000 < bytes) {
            bytes = 2000;
        }
        less = (int) mpitest_between(&state, 1, bytes);
        type = mpitest_type(layouts[sending ? 0 : 1], sending ? bytes : bytes - less, seed);
        map = mpitest_map(type, 1);
        buffer = mpitest_buffer_of(map, sending ? from : to);
        behind = mpitest_message(MPITEST_FINE, 2400, 0);
        if (sending) {
            mpitest_fill(buffer, key);
            mpitest_fill(behind->buffer, key + 1);
            MPI_OK(MPI_Send(buffer->addr, 1, type, peer, 6, comm));
            MPI_OK(MPI_Send(behind->addr, 1, behind->type, peer, 6, comm));
            VERIFY(buffer, key, bytes);
        } else {
            int rc = MPI_Recv(buffer->addr, 1, type, peer, 6, comm, &status);

            CHECK_INT(mpitest_error_class(rc), MPI_ERR_TRUNCATE);
            MPI_OK(MPI_Recv(behind->addr, 1, behind->type, peer, 6, comm, &status));
            VERIFY_TRUNCATED(buffer, key, bytes - less);
            VERIFY(behind->buffer, key + 1, 2400);
        }
        mpitest_message_free(behind);
        mpitest_buffer_free(buffer);
        mpitest_map_free(map);
        MPI_OK(MPI_Type_free(&type));
    }
    MPI_OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL));
}

/* One message whose pieces lie in several allocations, of any kinds, with absolute addresses. */
#define PIECES 5
typedef struct mixture_t {
    int pieces;
    MPI_Datatype types[PIECES];
    mpitest_map_t *maps[PIECES];
    mpitest_buffer_t *buffers[PIECES];
    int bytes[PIECES];
    MPI_Datatype type;
} mixture_t;

static void mix(mixture_t *mixture, uint64_t *state, int bytes)
{
    int lengths[PIECES], left = bytes, p;
    MPI_Aint where[PIECES];

    mixture->pieces = (int) mpitest_between(state, 2, PIECES);
    for (p = 0; p < mixture->pieces; ++p) {
        int mine = p == mixture->pieces - 1 ? left : (int) mpitest_between(state, 0, left);

        mixture->bytes[p] = mine;
        mixture->types[p] = mpitest_type(mpitest_draw_kind(state), mine, mpitest_random(state));
        mixture->maps[p] = mpitest_map(mixture->types[p], 1);
        mixture->buffers[p] =
            mpitest_buffer_of(mixture->maps[p], kinds[mpitest_between(state, 0, kind_count - 1)]);
        MPI_OK(MPI_Get_address(mixture->buffers[p]->addr, &where[p]));
        lengths[p] = 1;
        left -= mine;
    }
    MPI_OK(MPI_Type_create_struct(mixture->pieces, lengths, where, mixture->types, &mixture->type));
    MPI_OK(MPI_Type_commit(&mixture->type));
}

static void unmix(mixture_t *mixture)
{
    int p;

    MPI_OK(MPI_Type_free(&mixture->type));
    for (p = 0; p < mixture->pieces; ++p) {
        mpitest_buffer_free(mixture->buffers[p]);
        mpitest_map_free(mixture->maps[p]);
        MPI_OK(MPI_Type_free(&mixture->types[p]));
    }
}

static void bottom(void)
{
    uint64_t state = mpitest_mix(mpitest.seed, 21, 0);
    long op;

    for (op = 0; op < mpitest.ops; ++op, ++mpitest.step) {
        uint64_t own = mpitest_mix(mpitest.seed, (uint64_t) op, 22 + (uint64_t) mpitest.rank);
        int bytes = (int) mpitest_between(&state, 0, 30000), peer = mpitest.rank ^ 1, p;
        uint64_t key = mpitest_random(&state), at = 0;
        bool sending = (mpitest.rank + op) % 2 == 0;
        mixture_t mixture;
        MPI_Status status;

        mix(&mixture, &own, bytes);
        for (p = 0; sending && p < mixture.pieces; at += (uint64_t) mixture.bytes[p], ++p) {
            mpitest_fill(mixture.buffers[p], key + at);
        }
        if (sending) {
            MPI_OK(MPI_Send(MPI_BOTTOM, 1, mixture.type, peer, 7, comm));
        } else {
            MPI_OK(MPI_Recv(MPI_BOTTOM, 1, mixture.type, peer, 7, comm, &status));
            CHECK_STATUS(&status, peer, 7, bytes);
        }
        for (p = 0, at = 0; p < mixture.pieces; at += (uint64_t) mixture.bytes[p], ++p) {
            VERIFY(mixture.buffers[p], key + at, mixture.bytes[p]);
        }
        unmix(&mixture);
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} parts[] = {
    {"product", product}, {"ways", ways},           {"alternate", alternate}, {"drawn", drawn},
    {"partial", partial}, {"truncated", truncated}, {"bottom", bottom},
};

int main(int argc, char **argv)
{
    const char *list = getenv("UMRDDT_TEST_MEMORY");
    size_t i;

    mpitest_init(&argc, &argv, "gpu_pairs", 100, MPI_THREAD_SINGLE);
    if (0 != mpitest.size % 2) {
        mpitest_skip("needs an even number of ranks");
    }
    if (0 != strcmp(mpitest.mode, "host")) {
        gpu_begin_all();
        kind_count = gpu_kinds_of(NULL == list ? "all" : list, kinds);
        CHECK(0 < kind_count);
    }
    MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    mpitest.step = 0;
    for (i = 0; i < sizeof(parts) / sizeof(parts[0]); ++i) {
        if (wanted(parts[i].name)) {
            parts[i].run();
            MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
        }
    }
    MPI_OK(MPI_Comm_free(&comm));
    return mpitest_finish();
}
