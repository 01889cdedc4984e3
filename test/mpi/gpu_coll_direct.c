/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Collectives whose data goes from GPU to GPU, and the agreements about that, by the counters of
 * coll/umrddt.
 */

#include "gpu_coll.h"

#include "pvars.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* Parts of this many bytes and more are direct (coll_umrddt_direct_min). */
#define DIRECT_MIN 4096

bool gpu_coll_has_cuda;

bool gpu_coll_is_enabled(void)
{
    const char *base = getenv("UMRDDT_TEST_BASE");

    return 0 != pvars_parameter("coll_umrddt_direct", 1) && 2 <= mpitest.size && !gpu_coll_has_cuda
           && (NULL == base || NULL == strstr(base, "cuda"));
}

static const gpu_coll_case_t *case_of(const char *name)
{
    const gpu_coll_case_t *what = gpu_coll_cases;

    while (0 != strcmp(what->name, name)) {
        ++what;
    }
    return what;
}

/* The memory of a call's buffers. */
typedef enum turn_t {
    ALL_GPU,
    ONE_CPU, /* one rank has its buffers in system memory */
    ONE_GPU, /* the others have */
    TURNS
} turn_t;

/* When calls are direct. */
typedef struct rule_t {
    bool small;   /* without a minimum of bytes */
    bool always;  /* blocking calls with any memory */
    bool request; /* nonblocking and persistent calls with any memory */
    bool rooted;  /* on an intercommunicator, with a root: of these, with any bytes */
    int near;     /* blocking calls of so many processes, of one node: without a minimum */
} rule_t;

/* One call, which is verified: first on system memory. It must be direct, or must not be. */
static void call(const gpu_coll_t *with, const gpu_coll_case_t *what, gpu_coll_form_t form,
                 turn_t turn, int kind, const rule_t *rule, uint64_t *state)
{
    const int one = (int) (mpitest_random(state) >> 8) & 1; /* others may have no data */
    const int rank = with->inter ? mpitest.rank : with->rank;
    const bool gpu = ALL_GPU == turn || (ONE_CPU == turn) == (one != rank);
    const gpu_kind_t memory = gpu ? GPU_DEVICE : GPU_HOST;
    const unsigned long long direct = gpu_coll_counter(GPU_COLL_DIRECT);
    const bool any = GPU_COLL_BLOCKING == form ? rule->always : rule->request;
    const bool large = DIRECT_MIN <= with->count * GPU_COLL_INTEGERS * (int) sizeof(int)
                       || (GPU_COLL_BLOCKING == form && with->size <= rule->near);
    unsigned long long wanted = 0;
    gpu_coll_run_t run;

    if (GPU_COLL_BLOCKING == form && rule->rooted && !rule->small && MPI_PROC_NULL == with->root) {
        wanted = 0;
    } else if (large || rule->small || (GPU_COLL_BLOCKING != form && rule->rooted)) {
        /* a persistent call is started once on system memory, then twice */
        wanted = any ? (GPU_COLL_PERSISTENT == form ? 3 : 2)
                     : (GPU_COLL_BLOCKING == form && ALL_GPU == turn ? 1 : 0);
    }
    gpu_coll_begin(&run, what, with, form, memory, memory, kind, state);
    gpu_coll_end(&run);
    if (gpu_coll_counter(GPU_COLL_DIRECT) - direct != wanted) {
        mpitest_fail(__FILE__, __LINE__, "%s, form %d, turn %d, type %d: direct grew by %llu",
                     what->name, (int) form, (int) turn, kind,
                     gpu_coll_counter(GPU_COLL_DIRECT) - direct);
    }
    ++mpitest.step;
}

/* A call with large parts, or of 200 elements, and one of 5 elements. */
static void two_calls(gpu_coll_t *with, const gpu_coll_case_t *what, gpu_coll_form_t form,
                      turn_t turn, int kind, bool large, const rule_t *rule, uint64_t *state)
{
    with->type = gpu_coll_types[kind][0];
    with->other = gpu_coll_types[kind][1];
    with->extent = gpu_coll_shapes[kind][0].extent;
    with->count = large ? 3000 : 200;
    call(with, what, form, turn, kind, rule, state);
    with->count = 5;
    call(with, what, form, turn, kind, rule, state);
}

/* Each memory, with each type in turn; the first call has large parts. In test/run --all: each
 * memory with each type. */
static void every_turn(gpu_coll_t *with, const char *name, const rule_t *rule, uint64_t *state)
{
    static const turn_t turns[] = {ALL_GPU, ALL_GPU, ONE_CPU, ALL_GPU, ONE_GPU, ALL_GPU};
    const int rounds = NULL != getenv("UMRDDT_TEST_ALL") ? GPU_COLL_TYPES : 1;
    const gpu_coll_case_t *what = case_of(name);
    const int first = (int) (what - gpu_coll_cases);

    for (int round = 0; round < rounds; ++round) {
        for (int i = 0; i < (int) (sizeof(turns) / sizeof(turns[0])); ++i) {
            if (!with->inter) {
                with->root = (int) ((mpitest_random(state) >> 8) % (uint64_t) with->size);
                with->gives = with->root == with->rank;
            }
            two_calls(with, what, GPU_COLL_BLOCKING, turns[i], (first + round + i) % GPU_COLL_TYPES,
                      0 == i, rule, state);
        }
        for (int form = GPU_COLL_NONBLOCKING; form < GPU_COLL_FORMS; ++form) {
            const turn_t turn = 0 == (first + round + form) % 2 ? ALL_GPU : ONE_CPU;

            if (gpu_coll_has_form((gpu_coll_form_t) form)) {
                two_calls(with, what, (gpu_coll_form_t) form, turn,
                          (first + round + form) % GPU_COLL_TYPES, false, rule, state);
            }
        }
    }
}

static void every_turn_intra(MPI_Comm comm, const char *name, int neighbours, const rule_t *rule,
                             uint64_t *state)
{
    gpu_coll_t with = {.comm = comm, .sources = neighbours, .destinations = neighbours};

    MPI_OK(MPI_Comm_rank(comm, &with.rank));
    MPI_OK(MPI_Comm_size(comm, &with.size));
    with.others = with.size;
    every_turn(&with, name, rule, state);
}

/* Collectives on an intercommunicator of two groups of different sizes. The root, if there is one,
 * is the last process of the first group. */
static void groups_direct(uint64_t *state)
{
    static const struct {
        const char *name;
        rule_t rule;
    } moves[] = {{"allgather", {.request = true}},
                 {"allgatherv", {.small = true, .request = true}},
                 {"alltoall", {.always = true, .request = true}},
                 {"alltoallv", {.small = true, .always = true, .request = true}},
                 {"alltoallw", {.small = true, .always = true, .request = true}},
                 {"gather", {.always = true, .request = true, .rooted = true}},
                 {"gatherv", {.small = true, .always = true, .request = true, .rooted = true}},
                 {"scatter", {.always = true, .request = true, .rooted = true}},
                 {"scatterv", {.small = true, .always = true, .request = true, .rooted = true}}};
    const int last = (mpitest.size + 1) / 2 - 1;
    const bool first = mpitest.rank <= last;
    gpu_coll_t with = {.inter = true};
    MPI_Comm half;

    MPI_OK(MPI_Comm_split(MPI_COMM_WORLD, first, mpitest.rank, &half));
    for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); ++i) {
        MPI_OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, first ? last + 1 : 0, 3, &with.comm));
        MPI_OK(MPI_Comm_rank(with.comm, &with.rank));
        MPI_OK(MPI_Comm_size(with.comm, &with.size));
        MPI_OK(MPI_Comm_remote_size(with.comm, &with.others));
        with.gives = last == mpitest.rank;
        with.root = !first ? last : with.gives ? MPI_ROOT : MPI_PROC_NULL;
        every_turn(&with, moves[i].name, &moves[i].rule, state);
        MPI_OK(MPI_Comm_free(&with.comm));
    }
    MPI_OK(MPI_Comm_free(&half));
}

/* The second of three neighbors is MPI_PROC_NULL: its part stays unchanged. */
static void no_neighbour(MPI_Comm comm)
{
    int from[3] = {3 * mpitest.rank, 3 * mpitest.rank + 1, 3 * mpitest.rank + 2};
    int to[3] = {-1, -1, -1};

    MPI_OK(MPI_Neighbor_alltoall(from, 1, MPI_INT, to, 1, MPI_INT, comm));
    CHECK_INT(to[0], 3 * mpitest_left());
    CHECK_INT(to[1], -1);
    CHECK_INT(to[2], 3 * mpitest_right() + 2);
}

/* Neighborhoods: a Cartesian topology, a graph, and a distributed graph with MPI_PROC_NULL. */
static void neighbours_direct(uint64_t *state)
{
    static const char *const names[] = {"neighbor_allgather", "neighbor_allgatherv",
                                        "neighbor_alltoall", "neighbor_alltoallv",
                                        "neighbor_alltoallw"};
    static const rule_t rule = {.small = true, .always = true, .request = true};
    const int from[3] = {mpitest_left(), MPI_PROC_NULL, mpitest_right()};
    const int to[3] = {mpitest_right(), MPI_PROC_NULL, mpitest_left()};
    int dims[2] = {0, 0}, periods[2] = {1, 1}, index[16], edges[32];
    const int weights[3] = {1, 1, 1};
    MPI_Comm comms[3];

    MPI_OK(MPI_Dims_create(mpitest.size, 2, dims));
    MPI_OK(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &comms[0]));
    CHECK(16 >= mpitest.size);
    for (int i = 0; i < mpitest.size; ++i) {
        index[i] = 2 * i + 2;
        edges[2 * i] = (i + 1) % mpitest.size;
        edges[2 * i + 1] = (i + mpitest.size - 1) % mpitest.size;
    }
    MPI_OK(MPI_Graph_create(MPI_COMM_WORLD, mpitest.size, index, edges, 0, &comms[1]));
    MPI_OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 3, from, weights, 3, to, weights,
                                          MPI_INFO_NULL, 0, &comms[2]));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        every_turn_intra(comms[0], names[i], 4, &rule, state);
        every_turn_intra(comms[1], names[i], 2, &rule, state);
        every_turn_intra(comms[2], names[i], 3, &rule, state);
    }
    no_neighbour(comms[2]);
    for (int i = 0; i < 3; ++i) {
        MPI_OK(MPI_Comm_free(&comms[i]));
    }
}

/* A distributed graph in which the last process has no neighbors, and passes counts without data.
 */
static void isolated(uint64_t *state)
{
    enum {
        BYTES = 8192
    };
    const int last = mpitest.size - 1, in = mpitest.rank < last ? 1 : 0;
    const int left = (mpitest.rank + last - 1) % last, right = (mpitest.rank + 1) % last;
    const int bytes = in * BYTES, weight = 1;
    gpu_memory_t *memory[2] = {gpu_memory(GPU_DEVICE, BYTES), gpu_memory(GPU_DEVICE, BYTES)};
    static unsigned char data[BYTES];
    MPI_Comm comm;

    (void) state;
    MPI_OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, &left, &weight, in, &right, &weight,
                                          MPI_INFO_NULL, 0, &comm));
    for (int i = 0; i < 6; ++i) {
        memset(data, 1 + i + mpitest.rank, BYTES);
        gpu_write(memory[0], 0, data, BYTES);
        gpu_write(memory[1], 0, data, BYTES);
        if (0 == i % 2) {
            MPI_OK(MPI_Neighbor_allgather(memory[0]->addr, bytes, MPI_BYTE, memory[1]->addr, bytes,
                                          MPI_BYTE, comm));
        } else {
            MPI_OK(MPI_Neighbor_alltoall(memory[0]->addr, bytes, MPI_BYTE, memory[1]->addr, bytes,
                                         MPI_BYTE, comm));
        }
        gpu_read(memory[1], 0, data, BYTES);
        CHECK_INT(data[BYTES - 1], 1 + i + (0 < in ? left : mpitest.rank));
    }
    MPI_OK(MPI_Comm_free(&comm));
    gpu_memory_free(memory[0]);
    gpu_memory_free(memory[1]);
}

void gpu_coll_direct(uint64_t *state)
{
    static const struct {
        const char *name;
        rule_t rule;
    } moves[] = {{"allgather", {.request = true, .near = 2}},
                 {"allgather_in_place", {.request = true, .near = 2}},
                 {"allgatherv", {.small = true, .request = true}},
                 {"allgatherv_in_place", {.small = true, .request = true}},
                 {"alltoall", {.request = true, .near = 2}},
                 {"alltoall_in_place", {.request = true, .near = 2}},
                 {"alltoallv", {.small = true, .request = true}},
                 {"alltoallv_in_place", {.small = true, .request = true}},
                 {"alltoallw", {.small = true, .request = true}},
                 {"alltoallw_in_place", {.small = true, .request = true}},
                 {"alltoallv_tight", {.small = true, .request = true}},
                 {"alltoallw_tight", {.small = true, .request = true}},
                 {"bcast", {.request = true, .near = 4}},
                 {"gather", {.request = true}},
                 {"gather_in_place", {.request = true}},
                 {"gatherv", {.small = true, .request = true}},
                 {"gatherv_in_place", {.small = true, .request = true}},
                 {"scatter", {.request = true}},
                 {"scatter_in_place", {.request = true}},
                 {"scatterv", {.small = true, .request = true}},
                 {"scatterv_in_place", {.small = true, .request = true}}};
    MPI_Comm comm;

    if (!gpu_coll_is_enabled()) {
        return;
    }
    for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); ++i) {
        /* its own communicator: Open MPI does some collectives by others, which count, too */
        MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        every_turn_intra(comm, moves[i].name, 0, &moves[i].rule, state);
        MPI_OK(MPI_Comm_free(&comm));
    }
    groups_direct(state);
    neighbours_direct(state);
    if (3 <= mpitest.size) {
        isolated(state);
    }
}

/* Sends of umrddt by a process in a bcast, if the root sends to all others. */
static int flat_sends(int root)
{
    return root == mpitest.rank ? mpitest.size - 1 : 0;
}

/* Broadcasts of some 100 KiB: by the root alone or, if coll_umrddt_direct_messages does not allow
 * that, in pieces. They are contiguous in all processes, as one type or another. Then one process
 * has gaps. */
void gpu_coll_large_bcast(uint64_t *state)
{
    enum {
        INTEGERS = 170003
    };
    const size_t bytes = 2 * INTEGERS * sizeof(int);
    const bool flat = mpitest.size - 1 <= pvars_parameter("coll_umrddt_direct_messages", 0);
    gpu_memory_t *memory = gpu_memory(GPU_DEVICE, bytes);
    int *numbers = malloc(bytes);
    pvars_t before, after;
    MPI_Datatype one, gaps;

    (void) state;
    CHECK(NULL != numbers);
    MPI_OK(MPI_Type_contiguous(INTEGERS, MPI_INT, &one));
    MPI_OK(MPI_Type_commit(&one));
    MPI_OK(MPI_Type_vector(INTEGERS, 1, 2, MPI_INT, &gaps));
    MPI_OK(MPI_Type_commit(&gaps));
    for (int turn = 0; turn < 3 * mpitest.size; ++turn) {
        const int root = turn % mpitest.size;
        const bool has_gaps = turn >= 2 * mpitest.size && mpitest.rank == (root + 1) % mpitest.size;
        const int step = has_gaps ? 2 : 1;
        const unsigned long long direct = gpu_coll_counter(GPU_COLL_DIRECT);

        for (int i = 0; i < 2 * INTEGERS; ++i) {
            numbers[i] = root == mpitest.rank ? i / step + turn : -1;
        }
        gpu_write(memory, 0, numbers, bytes);
        pvars_read(&before);
        if (has_gaps) {
            MPI_OK(MPI_Bcast(memory->addr, 1, gaps, root, MPI_COMM_WORLD));
        } else if (0 == (turn + mpitest.rank) % 2) {
            MPI_OK(MPI_Bcast(memory->addr, 1, one, root, MPI_COMM_WORLD));
        } else {
            MPI_OK(MPI_Bcast(memory->addr, INTEGERS, MPI_INT, root, MPI_COMM_WORLD));
        }
        pvars_read(&after);
        gpu_read(memory, 0, numbers, bytes);
        for (int i = 0; i < 2 * INTEGERS; ++i) {
            const bool data = 0 == i % step && i / step < INTEGERS;

            if (numbers[i] != (data || root == mpitest.rank ? i / step + turn : -1)) {
                mpitest_fail(__FILE__, __LINE__, "turn %d, integer %d: %d", turn, i, numbers[i]);
            }
        }
        CHECK(0 == turn || !gpu_coll_is_enabled()
              || direct + 1 == gpu_coll_counter(GPU_COLL_DIRECT));
        if (0 < turn && gpu_coll_is_enabled() && flat) {
            CHECK_INT(after.value[PVARS_HANDLED_SENDS] - before.value[PVARS_HANDLED_SENDS],
                      flat_sends(root));
        }
    }
    MPI_OK(MPI_Type_free(&gaps));
    MPI_OK(MPI_Type_free(&one));
    free(numbers);
    gpu_memory_free(memory);
}

/* Counts the sends of this process that are in progress at once, while another thread calls MPI. */
typedef struct watch_t {
    pthread_t thread;
    int done;      /* atomic */
    uint64_t most; /* sends in progress */
} watch_t;

static uint64_t sends_begun(const pvars_t *at)
{
    return at->value[PVARS_HANDLED_SENDS];
}

static uint64_t sends_ended(const pvars_t *at)
{
    return at->value[PVARS_SENDS_UMR] + at->value[PVARS_SENDS_DIRECT] + at->value[PVARS_SENDS_IPC]
           + at->value[PVARS_SENDS_PACK_GDR] + at->value[PVARS_SENDS_PACK_STAGED]
           + at->value[PVARS_SENDS_PACK_HOST] + at->value[PVARS_FALLBACK_SENDS];
}

static void *watch_sends(void *owner)
{
    watch_t *watch = owner;
    pvars_t first, now;

    pvars_read(&first);
    while (0 == __atomic_load_n(&watch->done, __ATOMIC_ACQUIRE)) {
        uint64_t begun, ended;

        /* those that have begun are read first: the difference is never too large */
        pvars_read(&now);
        begun = sends_begun(&now) - sends_begun(&first);
        ended = sends_ended(&now) - sends_ended(&first);
        if (begun > ended && begun - ended > watch->most) {
            watch->most = begun - ended;
        }
        (void) usleep(100);
    }
    return NULL;
}

enum {
    SMALL_PART = 5000,
    LARGE_PART = (4 << 20) + 8
};

/* Bytes of a part of an all-to-all. In the last turn, all are large. */
static int part_bytes(int from, int to, int turn)
{
    return 3 > turn && 0 == (from + 2 * to + turn) % 3 ? SMALL_PART : LARGE_PART;
}

/* An all-to-all whose parts are below or above the bytes after which a group of messages ends, so
 * that the groups of processes differ. If all are above, they are sent one after the other. */
void gpu_coll_large_parts(uint64_t *state)
{
    enum {
        RANKS = 8
    };
    const size_t most = (size_t) mpitest.size * LARGE_PART;
    gpu_memory_t *memory[2] = {gpu_memory(GPU_DEVICE, most), gpu_memory(GPU_DEVICE, most)};
    int counts[2][RANKS], displs[RANKS];
    char *data = malloc(most);
    uint64_t at_once = 0;

    (void) state;
    CHECK(NULL != data && RANKS >= mpitest.size);
    for (int turn = 0; turn < 4; ++turn) {
        watch_t watch = {.done = 0};

        for (int i = 0; i < mpitest.size; ++i) {
            displs[i] = i * LARGE_PART;
            counts[0][i] = part_bytes(mpitest.rank, i, turn);
            counts[1][i] = part_bytes(i, mpitest.rank, turn);
            memset(data + displs[i], 1 + turn + 16 * mpitest.rank + i, (size_t) counts[0][i]);
        }
        gpu_write(memory[0], 0, data, most);
        memset(data, -1, most);
        gpu_write(memory[1], 0, data, most);
        CHECK_INT(pthread_create(&watch.thread, NULL, watch_sends, &watch), 0);
        MPI_OK(MPI_Alltoallv(memory[0]->addr, counts[0], displs, MPI_BYTE, memory[1]->addr,
                             counts[1], displs, MPI_BYTE, MPI_COMM_WORLD));
        __atomic_store_n(&watch.done, 1, __ATOMIC_RELEASE);
        CHECK_INT(pthread_join(watch.thread, NULL), 0);
        at_once = watch.most; /* of the last turn */
        gpu_read(memory[1], 0, data, most);
        for (size_t k = 0; k < most; ++k) {
            const int i = (int) (k / LARGE_PART), at = (int) (k % LARGE_PART);
            const char wanted =
                at < counts[1][i] ? (char) (1 + turn + 16 * i + mpitest.rank) : (char) -1;

            if (data[k] != wanted) {
                mpitest_fail(__FILE__, __LINE__, "turn %d, part %d, byte %d: %d", turn, i, at,
                             data[k]);
            }
        }
    }
    MPI_OK(MPI_Allreduce(MPI_IN_PLACE, &at_once, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD));
    /* 0: the thread did not run while there was one; a GPU copies a part in 15 us */
    CHECK(!gpu_coll_is_enabled() || 1 >= at_once);
    free(data);
    gpu_memory_free(memory[0]);
    gpu_memory_free(memory[1]);
}

static void bcasts(MPI_Comm comm, int calls, void *address, int bytes)
{
    for (int i = 0; i < calls; ++i) {
        MPI_OK(MPI_Bcast(address, bytes, MPI_BYTE, i % mpitest.size, comm));
    }
}

/* Agreements are at calls 1, 2, 4, 8, ... while no process uses GPU memory, and at each call
 * while one does. Calls with few bytes do not count, or only with few processes (gpu_coll_near). */
void gpu_coll_schedule(uint64_t *state)
{
    static char bytes[DIRECT_MIN];
    gpu_memory_t *memory = gpu_memory(GPU_DEVICE, sizeof(bytes));
    unsigned long long agreements = gpu_coll_counter(GPU_COLL_AGREEMENTS), direct;
    MPI_Comm comm;

    (void) state;
    gpu_write(memory, 0, bytes, sizeof(bytes));
    MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    CHECK_INT(gpu_coll_counter(GPU_COLL_AGREEMENTS), agreements);
    if (0 == pvars_parameter("coll_umrddt_direct", 1) || 2 > mpitest.size) {
        bcasts(comm, 100, bytes, sizeof(bytes));
        CHECK_INT(gpu_coll_counter(GPU_COLL_AGREEMENTS), agreements);
    } else if (gpu_coll_is_enabled()) {
        bcasts(comm, 100, bytes, sizeof(bytes));
        CHECK_INT(gpu_coll_counter(GPU_COLL_AGREEMENTS), agreements += 7);
        bcasts(comm, 100, bytes, 4 < mpitest.size ? (int) sizeof(bytes) - 1 : 0);
        CHECK_INT(gpu_coll_counter(GPU_COLL_AGREEMENTS), agreements);
        /* call 101: one process has GPU memory; the others find out at call 128 */
        bcasts(comm, 1, 0 == mpitest.rank ? (void *) memory->addr : bytes, sizeof(bytes));
        bcasts(comm, 26, bytes, sizeof(bytes));
        CHECK_INT(gpu_coll_counter(GPU_COLL_AGREEMENTS), agreements);
        bcasts(comm, 1, bytes, sizeof(bytes));
        CHECK_INT(gpu_coll_counter(GPU_COLL_AGREEMENTS), ++agreements);
        direct = gpu_coll_counter(GPU_COLL_DIRECT);
        bcasts(comm, 10, memory->addr, sizeof(bytes));
        CHECK_INT(gpu_coll_counter(GPU_COLL_AGREEMENTS), agreements += 10);
        CHECK_INT(gpu_coll_counter(GPU_COLL_DIRECT), direct + 10);
        /* then at the next calls 1, 2, 4, and 8 */
        bcasts(comm, 10, bytes, sizeof(bytes));
        CHECK_INT(gpu_coll_counter(GPU_COLL_AGREEMENTS), agreements + 4);
        CHECK_INT(gpu_coll_counter(GPU_COLL_DIRECT), direct + 10);
    }
    MPI_OK(MPI_Comm_free(&comm));
    gpu_memory_free(memory);
}

/* A bcast of no data. Processes that describe it by a count of 0 return before Open MPI calls the
 * component, so no process counts it. (Here all use a type: Open MPI 4.1.4 leaves messages behind
 * if only some do.) */
static void bcast_nothing(MPI_Comm comm)
{
    const unsigned long long agreements = gpu_coll_counter(GPU_COLL_AGREEMENTS);
    int nothing = 0;
    MPI_Datatype empty;

    MPI_OK(MPI_Type_contiguous(0, MPI_INT, &empty));
    MPI_OK(MPI_Type_commit(&empty));
    for (int i = 0; i < 3; ++i) {
        MPI_OK(MPI_Bcast(&nothing, 3, empty, 0, comm));
    }
    MPI_OK(MPI_Type_free(&empty));
    CHECK_INT(gpu_coll_counter(GPU_COLL_AGREEMENTS), agreements);
}

/* Parts of few bytes, on communicators of each size: direct with few processes, if all are on one
 * node. */
void gpu_coll_near(uint64_t *state)
{
    static const struct {
        const char *name;
        int most; /* processes */
    } moves[] = {{"bcast", 4},    {"allgather", 2},         {"allgather_in_place", 2},
                 {"alltoall", 2}, {"alltoall_in_place", 2}, {"gather", 0},
                 {"scatter", 0}};
    static const turn_t turns[] = {ALL_GPU, ONE_CPU, ONE_GPU, ALL_GPU};

    for (int size = 2; gpu_coll_is_enabled() && size <= mpitest.size; ++size) {
        gpu_coll_t with = {.count = 5};
        uint64_t own = mpitest_mix(*state, (uint64_t) size, 5); /* some take no part */
        MPI_Comm comm, node;
        int near;

        MPI_OK(MPI_Comm_split(MPI_COMM_WORLD, mpitest.rank < size ? 0 : MPI_UNDEFINED, 0, &comm));
        if (MPI_COMM_NULL == comm) {
            continue;
        }
        MPI_OK(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
        MPI_OK(MPI_Comm_size(node, &near));
        MPI_OK(MPI_Comm_free(&node));
        MPI_OK(MPI_Comm_rank(comm, &with.rank));
        with.size = with.others = size;
        for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); ++i) {
            const rule_t rule = {.near = size == near ? moves[i].most : 0};

            /* its own communicator: some collectives are done by others, which count, too */
            MPI_OK(MPI_Comm_dup(comm, &with.comm));
            for (int turn = 0; turn < (int) (sizeof(turns) / sizeof(turns[0])); ++turn) {
                const int kind = (int) (i + (size_t) turn) % GPU_COLL_TYPES;

                with.type = gpu_coll_types[kind][0];
                with.other = gpu_coll_types[kind][1];
                with.extent = gpu_coll_shapes[kind][0].extent;
                with.root = turn % size;
                with.gives = with.root == with.rank;
                call(&with, case_of(moves[i].name), GPU_COLL_BLOCKING, turns[turn], kind, &rule,
                     &own);
            }
            MPI_OK(MPI_Comm_free(&with.comm));
        }
        bcast_nothing(comm);
        MPI_OK(MPI_Comm_free(&comm));
    }
}

/* One call of two neighbors, the data of which is verified. Buffers have two parts: rank 0 uses the
 * second, and rank 1 the first. */
static void exchange_unequal(MPI_Comm comm, gpu_memory_t *memory[2], const int bytes[2],
                             bool alltoall)
{
    static unsigned char data[8 * DIRECT_MIN];
    const int first = 0 == mpitest.rank ? bytes[1] : 0;

    memset(data, 1 + mpitest.rank, sizeof(data));
    gpu_write(memory[0], 0, data, 2 * (size_t) bytes[0]);
    gpu_write(memory[1], 0, data, 2 * (size_t) bytes[1]);
    if (alltoall) {
        MPI_OK(MPI_Neighbor_alltoall(memory[0]->addr, bytes[0], MPI_BYTE, memory[1]->addr, bytes[1],
                                     MPI_BYTE, comm));
    } else {
        MPI_OK(MPI_Neighbor_allgather(memory[0]->addr, bytes[0], MPI_BYTE, memory[1]->addr,
                                      bytes[1], MPI_BYTE, comm));
    }
    gpu_read(memory[1], 0, data, 2 * (size_t) bytes[1]);
    for (int i = first; i < first + bytes[1]; ++i) {
        CHECK_INT(data[i], 2 - mpitest.rank);
    }
}

/* Only one of the two receives enough bytes for an agreement. */
void gpu_coll_unequal(uint64_t *state)
{
    /* Open MPI refuses the all-to-all if it checks arguments */
    const int calls = 0 == pvars_parameter("mpi_param_check", 1) ? 2 : 1;
    const int dims[1] = {2}, periods[1] = {0};
    const int sizes[3] = {4 * DIRECT_MIN, 16, 4 * DIRECT_MIN};
    const int *bytes = sizes + mpitest.rank;
    MPI_Comm comm;

    (void) state;
    if (2 > mpitest.size) {
        return;
    }
    MPI_OK(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &comm));
    for (int kind = 0; MPI_COMM_NULL != comm && kind < 2; ++kind) {
        const gpu_kind_t where = 0 == kind ? GPU_HOST : GPU_DEVICE;
        gpu_memory_t *memory[2] = {gpu_memory(where, 2 * (size_t) bytes[0]),
                                   gpu_memory(where, 2 * (size_t) bytes[1])};

        for (int i = 0; i < 10; ++i) {
            exchange_unequal(comm, memory, bytes, 0 != i % calls);
        }
        gpu_memory_free(memory[0]);
        gpu_memory_free(memory[1]);
    }
    if (MPI_COMM_NULL != comm) {
        CHECK(!gpu_coll_is_enabled() || 0 < gpu_coll_counter(GPU_COLL_DIRECT));
        MPI_OK(MPI_Comm_free(&comm));
    }
}

/* A receive and a probe of the application that take any tag never match the messages of a
 * collective, nor does that change the order of the application's messages. */
void gpu_coll_any_tag(uint64_t *state)
{
    enum {
        BYTES = 64 * 1024
    };
    gpu_memory_t *memory[2] = {gpu_memory(GPU_DEVICE, (size_t) mpitest.size * BYTES),
                               gpu_memory(GPU_DEVICE, (size_t) mpitest.size * BYTES)};
    unsigned char *bytes = malloc((size_t) mpitest.size * BYTES);
    gpu_memory_t *posted = gpu_memory(GPU_DEVICE, BYTES);
    MPI_Request request;
    MPI_Status status;
    int flag;

    (void) state;
    CHECK(NULL != bytes);
    for (int turn = 0; turn < 4; ++turn) {
        memset(bytes, 1 + mpitest.rank, (size_t) mpitest.size * BYTES);
        gpu_write(memory[0], 0, bytes, (size_t) mpitest.size * BYTES);
        gpu_write(posted, 0, bytes, BYTES);
        if (0 == turn % 2) {
            MPI_OK(MPI_Irecv(posted->addr, BYTES, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG,
                             MPI_COMM_WORLD, &request));
        }
        MPI_OK(MPI_Alltoall(memory[0]->addr, BYTES, MPI_BYTE, memory[1]->addr, BYTES, MPI_BYTE,
                            MPI_COMM_WORLD));
        MPI_OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status));
        CHECK(!flag);
        gpu_read(memory[1], 0, bytes, (size_t) mpitest.size * BYTES);
        for (int i = 0; i < mpitest.size * BYTES; ++i) {
            CHECK_INT(bytes[i], 1 + i / BYTES);
        }
        if (0 != turn % 2) {
            continue;
        }
        MPI_OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
        CHECK(!flag);
        MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
        MPI_OK(
            MPI_Send(memory[0]->addr, BYTES, MPI_BYTE, mpitest_right(), 5 + turn, MPI_COMM_WORLD));
        MPI_OK(MPI_Wait(&request, &status));
        CHECK_INT(status.MPI_TAG, 5 + turn);
        gpu_read(posted, 0, bytes, BYTES);
        CHECK_INT(bytes[BYTES - 1], 1 + mpitest_left());
        MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    gpu_memory_free(posted);
    gpu_memory_free(memory[0]);
    gpu_memory_free(memory[1]);
    free(bytes);
}

/* MPI_Start of an active request is an error, which changes nothing. */
static void start_again(MPI_Request *request)
{
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    CHECK_INT(mpitest_error_class(MPI_Start(request)), MPI_ERR_REQUEST);
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL));
}

/* Persistent requests that processes start in different orders, beside nonblocking calls. */
void gpu_coll_order(uint64_t *state)
{
    enum {
        MANY = 4,
        BYTES = 6000
    };
    const size_t bytes = (size_t) mpitest.size * BYTES;
    gpu_memory_t *from[MANY], *to[MANY];
    const unsigned long long read = gpu_coll_counter(GPU_COLL_MODES_READ);
    int *counts = calloc((size_t) mpitest.size, sizeof(int));
    MPI_Request requests[MANY];
    unsigned char *data = malloc(bytes);
    MPI_Comm comm;

    CHECK(NULL != data && NULL != counts);
    /* what other processes have published is read once */
    for (int i = 0; i < 2; ++i) {
        MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        MPI_OK(
            MPI_Iallgatherv(data, 0, MPI_BYTE, data, counts, counts, MPI_BYTE, comm, &requests[0]));
        MPI_OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
        MPI_OK(MPI_Comm_free(&comm));
    }
    CHECK(read + (unsigned long long) mpitest.size > gpu_coll_counter(GPU_COLL_MODES_READ));
    MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    for (int k = 0; k < MANY; ++k) {
        from[k] = gpu_memory(GPU_DEVICE, bytes);
        to[k] = gpu_memory(0 == k ? GPU_HOST : GPU_DEVICE, bytes);
        memset(data, 1 + k + 8 * mpitest.rank, bytes);
        gpu_write(from[k], 0, data, bytes);
        if (2 > k) {
            gpu_coll_alltoall_init(from[k]->addr, to[k]->addr, BYTES, comm, &requests[k]);
        }
    }
    for (int turn = 0; turn < 3; ++turn) {
        const int first = (turn + mpitest.rank) % 2;

        if (gpu_coll_has_form(GPU_COLL_PERSISTENT)) {
            MPI_OK(MPI_Start(&requests[first]));
            start_again(&requests[first]);
        }
        for (int k = 2; k < MANY; ++k) {
            MPI_OK(MPI_Ialltoall(from[k]->addr, BYTES, MPI_BYTE, to[k]->addr, BYTES, MPI_BYTE, comm,
                                 &requests[k]));
        }
        if (gpu_coll_has_form(GPU_COLL_PERSISTENT)) {
            MPI_OK(MPI_Start(&requests[1 - first]));
        }
        if (2 == turn) {
            /* requests outlive the handle of their communicator */
            MPI_OK(MPI_Comm_free(&comm));
        }
        MPI_OK(MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE));
        for (int k = gpu_coll_has_form(GPU_COLL_PERSISTENT) ? 0 : 2; k < MANY; ++k) {
            gpu_read(to[k], 0, data, bytes);
            for (size_t i = 0; i < bytes; ++i) {
                CHECK_INT(data[i], 1 + k + 8 * (int) (i / BYTES));
            }
        }
    }
    for (int k = 0; k < MANY; ++k) {
        if (MPI_REQUEST_NULL != requests[k]) {
            MPI_OK(MPI_Request_free(&requests[k]));
        }
        gpu_memory_free(from[k]);
        gpu_memory_free(to[k]);
    }
    free(counts);
    free(data);
    (void) state;
}

/* Persistent requests whose arrays, datatype and communicator are freed before the first start. */
void gpu_coll_freed(uint64_t *state)
{
    enum {
        BYTES = 6000
    };
    const size_t n = (size_t) mpitest.size, bytes = n * BYTES;
    gpu_memory_t *from, *to;
    int *counts, *displs;
    MPI_Datatype *types, type;
    unsigned char *data;
    MPI_Request request;
    MPI_Comm comm;

    (void) state;
    if (!gpu_coll_is_enabled()) {
        return;
    }
    from = gpu_memory(GPU_DEVICE, bytes);
    to = gpu_memory(GPU_DEVICE, bytes);
    counts = malloc(n * sizeof(int));
    displs = malloc(n * sizeof(int));
    types = malloc(n * sizeof(*types));
    data = malloc(bytes);
    CHECK(NULL != counts && NULL != displs && NULL != types && NULL != data);
    MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    MPI_OK(MPI_Type_vector(BYTES / 8, 4, 8, MPI_BYTE, &type));
    MPI_OK(MPI_Type_commit(&type));
    for (int i = 0; i < mpitest.size; ++i) {
        counts[i] = 1;
        displs[i] = i * BYTES;
        types[i] = type;
    }
    gpu_coll_alltoallw_init(from->addr, to->addr, counts, displs, types, comm, &request);
    MPI_OK(MPI_Type_free(&type));
    MPI_OK(MPI_Comm_free(&comm));
    memset(counts, 0x7f, n * sizeof(int));
    memset(displs, 0x7f, n * sizeof(int));
    memset(types, 0x7f, n * sizeof(*types));
    free(types);
    free(displs);
    free(counts);
    for (int turn = 0; turn < 2 && MPI_REQUEST_NULL != request; ++turn) {
        memset(data, 1 + turn + 4 * mpitest.rank, bytes);
        gpu_write(from, 0, data, bytes);
        memset(data, 0, bytes);
        gpu_write(to, 0, data, bytes);
        MPI_OK(MPI_Start(&request));
        MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        gpu_read(to, 0, data, bytes);
        for (size_t i = 0; i < bytes; ++i) {
            CHECK_INT(data[i], 4 > i % 8 ? 1 + turn + 4 * (int) (i / BYTES) : 0);
        }
    }
    if (MPI_REQUEST_NULL != request) {
        MPI_OK(MPI_Request_free(&request));
    }
    free(data);
    gpu_memory_free(from);
    gpu_memory_free(to);
}

/* A thread's buffers, from the first to the second half, and its communicator. */
typedef struct worker_t {
    gpu_memory_t *memory[4];
    gpu_memory_t *other; /* of a broadcast */
    gpu_memory_t *both;  /* of an all-to-all in place */
    MPI_Comm comm;
    int part; /* bytes */
} worker_t;

static void *move_often(void *argument)
{
    const worker_t *with = argument;
    MPI_Request requests[4], persistent;

    gpu_coll_alltoall_init(with->memory[1]->addr, with->memory[3]->addr, with->part, with->comm,
                           &persistent);
    for (int i = 0; i < 50; ++i) {
        int left = 4;

        MPI_OK(MPI_Ialltoall(with->memory[0]->addr, with->part, MPI_BYTE, with->memory[2]->addr,
                             with->part, MPI_BYTE, with->comm, &requests[0]));
        if (MPI_REQUEST_NULL != persistent) {
            MPI_OK(MPI_Start(&persistent));
        }
        requests[1] = persistent;
        MPI_OK(MPI_Ibcast(with->other->addr, with->part, MPI_BYTE, i % mpitest.size, with->comm,
                          &requests[2]));
        MPI_OK(MPI_Ialltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, with->both->addr, with->part,
                             MPI_BYTE, with->comm, &requests[3]));
        while (0 < left) {
            int index;

            MPI_OK(MPI_Waitany(4, requests, &index, MPI_STATUS_IGNORE));
            left = MPI_UNDEFINED == index ? 0 : left - 1;
        }
    }
    if (MPI_REQUEST_NULL != persistent) {
        MPI_OK(MPI_Request_free(&persistent));
    }
    return NULL;
}

/* Threads with requests of different communicators: any thread may progress those of others. */
void gpu_coll_threads(void)
{
    enum {
        THREADS = 3,
        PART = 6000
    };
    const size_t bytes = (size_t) mpitest.size * PART;
    const unsigned long long direct = gpu_coll_counter(GPU_COLL_DIRECT);
    unsigned char *data = malloc(bytes);
    pthread_t threads[THREADS];
    worker_t workers[THREADS];

    CHECK(NULL != data);
    for (int t = 0; t < THREADS; ++t) {
        MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &workers[t].comm));
        workers[t].part = PART;
        workers[t].other = gpu_memory(GPU_DEVICE, bytes);
        workers[t].both = gpu_memory(GPU_DEVICE, bytes);
        for (size_t i = 0; i < bytes; ++i) {
            data[i] = (unsigned char) (1 + t + 16 * mpitest.rank + 4 * (int) (i / PART));
        }
        gpu_write(workers[t].both, 0, data, bytes);
        for (int m = 0; m < 4; ++m) {
            memset(data, 1 + t + 16 * mpitest.rank + 8 * (m % 2), bytes);
            workers[t].memory[m] = gpu_memory(0 == t && 3 == m ? GPU_HOST : GPU_DEVICE, bytes);
            gpu_write(workers[t].memory[m], 0, data, bytes);
        }
    }
    for (int t = 0; t < THREADS; ++t) {
        CHECK_INT(pthread_create(&threads[t], NULL, move_often, &workers[t]), 0);
    }
    for (int t = 0; t < THREADS; ++t) {
        CHECK_INT(pthread_join(threads[t], NULL), 0);
    }
    for (int t = 0; t < THREADS; ++t) {
        for (int m = 2; m < (gpu_coll_has_form(GPU_COLL_PERSISTENT) ? 4 : 3); ++m) {
            gpu_read(workers[t].memory[m], 0, data, bytes);
            for (size_t i = 0; i < bytes; ++i) {
                CHECK_INT(data[i], 1 + t + 16 * (int) (i / PART) + 8 * (m % 2));
            }
        }
        /* the second exchange of each two undoes the first */
        gpu_read(workers[t].both, 0, data, bytes);
        for (size_t i = 0; i < bytes; ++i) {
            CHECK_INT(data[i], 1 + t + 16 * mpitest.rank + 4 * (int) (i / PART));
        }
        for (int m = 0; m < 4; ++m) {
            gpu_memory_free(workers[t].memory[m]);
        }
        gpu_memory_free(workers[t].both);
        gpu_memory_free(workers[t].other);
        MPI_OK(MPI_Comm_free(&workers[t].comm));
    }
    CHECK(direct + THREADS * 150 <= gpu_coll_counter(GPU_COLL_DIRECT));
    free(data);
}
