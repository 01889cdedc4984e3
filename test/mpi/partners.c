/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * More partners than btl_umr_max_peers: queue pairs are closed to make room for others.
 *
 *  - turns: each rank exchanges messages with each other rank in turn, until they go by the HCA in
 *    both directions.
 *  - random: pairs of ranks drawn by lot, some messages each. Those of the next pairs are sent
 *    before the present ones are received, so envelopes wait while queue pairs are closed.
 *  - threads: random, in two threads of each rank.
 *
 * The clock of btl/umr runs faster, so that a peer is soon one without messages for a second.
 */

#include "mpitest.h"
#include "pvars.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    BLOCKS = 64,
    WORDS = 32, /* of a block; as many are between two blocks */
    ROOM = BLOCKS * 2 * WORDS,
    PAUSE = 6,     /* rounds with one pause */
    MOST = 3,      /* messages of a pair at a time, in each direction */
    AT_LEAST = 3,  /* messages by the HCA in each turn */
    LIMIT = 20000, /* messages until then */
    FASTER = 400   /* the clock of btl/umr */
};

/** A thread, with its communicator; two of its rounds are under way at a time. */
typedef struct worker_t {
    MPI_Comm comm;
    uint64_t seed;
    struct round_t {
        int partner, count;
        uint64_t key;
        uint64_t out[MOST][ROOM], in[MOST][ROOM];
        MPI_Request requests[2 * MOST];
    } rounds[2];
} worker_t;

static MPI_Datatype type;

int clock_gettime(clockid_t clock, struct timespec *time)
{
    int (*next)(clockid_t, struct timespec *) =
        (int (*)(clockid_t, struct timespec *)) dlsym(RTLD_NEXT, "clock_gettime");
    int rc = next(clock, time);
    Dl_info info;

    if (0 == rc && 0 != dladdr(__builtin_return_address(0), &info) && NULL != info.dli_fname
        && NULL != strstr(info.dli_fname, "mca_btl_umr")) {
        uint64_t nsec = FASTER * (uint64_t) time->tv_nsec;

        time->tv_sec = FASTER * time->tv_sec + (time_t) (nsec / 1000000000);
        time->tv_nsec = (long) (nsec % 1000000000);
    }
    return rc;
}

static uint64_t counter(pvars_index_t index)
{
    pvars_t values;

    pvars_read(&values);
    return values.value[index];
}

static bool in_block(int i)
{
    return i % (2 * WORDS) < WORDS;
}

static void fill(uint64_t *out, uint64_t *in, uint64_t key)
{
    for (int i = 0; i < ROOM; ++i) {
        out[i] = key + (uint64_t) i;
        in[i] = UINT64_MAX;
    }
}

static void verify(const uint64_t *in, uint64_t key)
{
    int wrong = 0;

    for (int i = 0; i < ROOM; ++i) {
        wrong += in[i] != (in_block(i) ? key + (uint64_t) i : UINT64_MAX);
    }
    CHECK_INT(wrong, 0);
}

/* ---- turns ---- */

/** Exchange messages with a rank until they go by the HCA. */
static void turn(int partner)
{
    static uint64_t out[ROOM], in[ROOM];
    uint64_t begin = counter(PVARS_SENDS_UMR);
    int mine, theirs = 0, messages = 0;

    do {
        uint64_t key = mpitest_mix(mpitest.seed, (uint64_t) mpitest.step, (uint64_t) messages);

        fill(out, in, key + (uint64_t) mpitest.rank);
        MPI_OK(MPI_Sendrecv(out, 1, type, partner, 1, in, 1, type, partner, 1, MPI_COMM_WORLD,
                            MPI_STATUS_IGNORE));
        verify(in, key + (uint64_t) partner);
        mine = (int) (counter(PVARS_SENDS_UMR) - begin);
        MPI_OK(MPI_Sendrecv(&mine, 1, MPI_INT, partner, 2, &theirs, 1, MPI_INT, partner, 2,
                            MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        mpitest_sleep(100);
        CHECK(LIMIT > ++messages);
    } while (AT_LEAST > mine || AT_LEAST > theirs);
}

static void turns(uint64_t *state)
{
    long most = pvars_parameter("btl_umr_max_peers", 0);
    uint64_t closed = counter(PVARS_PEERS_CLOSED);

    (void) state;
    for (int distance = 1; distance < mpitest.size; ++distance) {
        turn(mpitest.rank ^ distance);
        CHECK((uint64_t) most >= counter(PVARS_ENDPOINTS));
        mpitest_alive();
    }
    CHECK(closed + (uint64_t) (mpitest.size - 1 - most) <= counter(PVARS_PEERS_CLOSED));
    CHECK_INT(counter(PVARS_ENDPOINTS_REBUILT), 0);
}

/* ---- random, threads ---- */

static void begin(worker_t *worker, long number)
{
    struct round_t *round = &worker->rounds[number % 2];
    uint64_t state = mpitest_mix(worker->seed, (uint64_t) number, 0);

    round->partner = mpitest.rank ^ (int) mpitest_between(&state, 1, mpitest.size - 1);
    round->count = (int) mpitest_between(&state, 1, MOST);
    round->key = mpitest_random(&state);
    for (int i = 0; i < round->count; ++i) {
        fill(round->out[i], round->in[i], round->key + (uint64_t) (MOST * mpitest.rank + i));
        MPI_OK(MPI_Isend(round->out[i], 1, type, round->partner, (int) number, worker->comm,
                         &round->requests[i]));
    }
}

static void end(worker_t *worker, long number)
{
    struct round_t *round = &worker->rounds[number % 2];

    for (int i = 0; i < round->count; ++i) {
        MPI_OK(MPI_Irecv(round->in[i], 1, type, round->partner, (int) number, worker->comm,
                         &round->requests[round->count + i]));
    }
    MPI_OK(MPI_Waitall(2 * round->count, round->requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < round->count; ++i) {
        verify(round->in[i], round->key + (uint64_t) (MOST * round->partner + i));
    }
}

/* All pause for longer than a peer must be unused for. */
static void *work(void *argument)
{
    worker_t *worker = argument;

    begin(worker, 0);
    for (long number = 0; number < mpitest.ops; ++number) {
        if (PAUSE - 1 == number % PAUSE) {
            mpitest_sleep(20000);
        }
        if (number + 1 < mpitest.ops) {
            begin(worker, number + 1);
        }
        end(worker, number);
        mpitest_alive();
    }
    return NULL;
}

static void run(int threads)
{
    worker_t *workers = calloc((size_t) threads, sizeof(*workers));
    pthread_t handles[2];
    long long mine, closed;

    CHECK(NULL != workers);
    for (int i = 0; i < threads; ++i) {
        workers[i].seed = mpitest_mix(mpitest.seed, (uint64_t) i, 1);
        MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].comm));
    }
    for (int i = 1; i < threads; ++i) {
        CHECK(0 == pthread_create(&handles[i], NULL, work, &workers[i]));
    }
    (void) work(&workers[0]);
    for (int i = 1; i < threads; ++i) {
        pthread_join(handles[i], NULL);
    }
    mine = (long long) counter(PVARS_PEERS_CLOSED);
    MPI_OK(MPI_Allreduce(&mine, &closed, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD));
    CHECK(0 < closed);
    for (int i = 0; i < threads; ++i) {
        MPI_OK(MPI_Comm_free(&workers[i].comm));
    }
    free(workers);
}

int main(int argc, char **argv)
{
    uint64_t state = 0;
    bool threads = false;

    for (int i = 1; i < argc; ++i) {
        threads = threads || 0 == strcmp(argv[i], "threads");
    }
    mpitest_init(&argc, &argv, "partners", 200, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    if (PVARS_MAX != pvars_open()) {
        mpitest_skip("without umrddt there are no queue pairs");
    }
    CHECK(0 == (mpitest.size & (mpitest.size - 1)));
    MPI_OK(MPI_Type_vector(BLOCKS, WORDS, 2 * WORDS, MPI_UINT64_T, &type));
    MPI_OK(MPI_Type_commit(&type));
    if (mpitest_has("turns")) {
        turns(&state);
        turns(&state);
    } else {
        run(threads ? 2 : 1);
    }
    MPI_OK(MPI_Type_free(&type));
    pvars_close();
    return mpitest_finish();
}
