/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <mpi.h>

#include "bench_gpu.h"
#include "bench_lockstep.h"
#include "bench_pvars.h"
#include "bench_schemes.h"
#include "bench_stream.h"
#include "bench_util.h"
#include "bench_verify.h"
#include "layouts.h"

#define TAG 5

/* Messages before those that count. */
#define WARM_UP 8

/* Microseconds after which the HCA, the GPU and threads have completed their work. */
#define SETTLE 30000

/* A message that needs more calls of MPI_Test than this is stuck. */
#define MOST_TESTS 2000

/* In memory of both processes. */
typedef struct shared_t {
    unsigned turn;    /* number of the next turn; rank 1 has the even ones */
    unsigned done[2]; /* messages completed by each rank */
    unsigned over;    /* messages completed by both, as rank 1 finds at the begin of its turn */
} shared_t;

typedef struct lockstep_t {
    MPI_Comm comm;
    int rank;
    bench_layout_t layout;
    bench_buffer_t buffer;
    shared_t *shared;
    unsigned turn;
    MPI_Request request;
    int done;
    unsigned long tests;
} lockstep_t;

static inline void start(lockstep_t *job)
{
    void *address = bench_buffer_address(&job->buffer);

    if (0 == job->rank) {
        MPI_Isend(address, job->layout.send.count, job->layout.send.type, 1, TAG, job->comm,
                  &job->request);
    } else {
        MPI_Irecv(address, job->layout.recv.count, job->layout.recv.type, 0, TAG, job->comm,
                  &job->request);
    }
}

/* The calls of an application, whose names callgrind is given. */
#define COUNTED __attribute__((noinline, noclone))

COUNTED void lockstep_start(lockstep_t *job);
COUNTED void lockstep_test(lockstep_t *job);

COUNTED void lockstep_start(lockstep_t *job)
{
    start(job);
}

COUNTED void lockstep_test(lockstep_t *job)
{
    MPI_Test(&job->request, &job->done, MPI_STATUS_IGNORE);
}

static void begin_turn(const lockstep_t *job)
{
    const unsigned mine = job->turn + (0 == job->rank);

    while (mine != __atomic_load_n(&job->shared->turn, __ATOMIC_ACQUIRE)) {
        usleep(100);
    }
}

static void end_turn(lockstep_t *job)
{
    const unsigned mine = job->turn + (0 == job->rank);

    job->turn += 2;
    __atomic_store_n(&job->shared->turn, mine + 1, __ATOMIC_RELEASE);
}

/* True if both ranks completed this message; rank 1 decides, rank 0 follows in the same round. */
static bool is_over(const lockstep_t *job, unsigned message)
{
    if (1 == job->rank && message == __atomic_load_n(&job->shared->done[0], __ATOMIC_ACQUIRE)
        && message == __atomic_load_n(&job->shared->done[1], __ATOMIC_ACQUIRE)) {
        __atomic_store_n(&job->shared->over, message, __ATOMIC_RELEASE);
    }
    return message == __atomic_load_n(&job->shared->over, __ATOMIC_ACQUIRE);
}

/* Message number "message", from 1. The receive is posted before the send starts. */
static void run_one(lockstep_t *job, unsigned message, bool counted)
{
    int tests = 0;

    job->done = 0;
    begin_turn(job);
    if (counted) {
        lockstep_start(job);
    } else {
        start(job);
    }
    usleep(SETTLE);
    end_turn(job);
    begin_turn(job);
    while (!is_over(job, message)) {
        if (!job->done) {
            if (counted) {
                lockstep_test(job);
                ++job->tests;
            } else {
                MPI_Test(&job->request, &job->done, MPI_STATUS_IGNORE);
            }
            if (job->done) {
                __atomic_store_n(&job->shared->done[job->rank], message, __ATOMIC_RELEASE);
            }
            usleep(SETTLE);
        }
        end_turn(job);
        if (MOST_TESTS < ++tests) {
            bench_fatal("lockstep: rank %d did not receive message %u", job->rank, message);
        }
        begin_turn(job);
    }
    end_turn(job);
}

static void open_shared(lockstep_t *job, const char *path)
{
    int file = open(path, O_RDWR);

    job->shared =
        -1 == file ? MAP_FAILED
                   : mmap(NULL, sizeof(*job->shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (MAP_FAILED == (void *) job->shared) {
        bench_fatal("lockstep: %s cannot be mapped", path);
    }
    close(file);
}

/* The counters of schemes, and the scheme of all messages between two readings. */
static const char *scheme_of(const uint64_t *before, const uint64_t *after, uint64_t messages)
{
    static const struct {
        int counter;
        const char *name;
    } known[] = {
        {BENCH_PVAR_SENDS_DIRECT, "direct"},       {BENCH_PVAR_SENDS_IPC, "ipc"},
        {BENCH_PVAR_SENDS_PACK_GDR, "pack-gdr"},   {BENCH_PVAR_SENDS_PACK_STAGED, "pack-staged"},
        {BENCH_PVAR_SENDS_PACK_HOST, "pack-host"}, {BENCH_PVAR_FALLBACK_SENDS, "host"}};
    const uint64_t handled = after[BENCH_PVAR_HANDLED_SENDS] - before[BENCH_PVAR_HANDLED_SENDS];
    bool any = false;
    size_t i;

    for (i = 0; i < sizeof(known) / sizeof(known[0]); ++i) {
        const uint64_t sends = after[known[i].counter] - before[known[i].counter];

        if (messages == sends) {
            return known[i].name;
        }
        any = any || 0 != sends;
    }
    return any ? "mixed" : messages == handled ? "umr" : 0 == handled ? "host" : "mixed";
}

static void run(lockstep_t *job, unsigned messages, bool on_gpu)
{
    const bench_side_t *side = 0 == job->rank ? &job->layout.send : &job->layout.recv;
    unsigned char *base = bench_stream_base(side->bytes, 0), *stream = bench_alloc(side->bytes);
    uint64_t before[BENCH_PVAR_COUNT], after[BENCH_PVAR_COUNT];
    bench_pvars_t pvars;
    bench_wrong_t wrong;
    unsigned i;

    bench_pvars_open(&pvars);
    bench_stream_make(base, side->bytes, 0 == job->rank ? 1 : 0, stream);
    bench_buffer_create(&job->buffer, side, 0 == job->rank ? BENCH_GUARD_SEND : BENCH_GUARD_RECV,
                        on_gpu);
    bench_buffer_set_data(&job->buffer, stream);
    bench_buffer_put(&job->buffer);
    bench_count_begin();
    for (i = 1; i <= WARM_UP + messages; ++i) {
        if (WARM_UP + 1 == i) {
            bench_pvars_read(&pvars, before);
        }
        run_one(job, i, WARM_UP < i);
    }
    bench_pvars_read(&pvars, after);
    MPI_Barrier(job->comm);
    bench_stream_make(base, side->bytes, 1, stream);
    bench_buffer_get(&job->buffer);
    if (!bench_buffer_check_data(&job->buffer, stream, &wrong)
        || !bench_buffer_check_gaps(&job->buffer, true, &wrong)) {
        bench_fatal("lockstep: wrong bytes on rank %d", job->rank);
    }
    printf("lockstep %d %u messages %lu tests scheme %s\n", job->rank, messages, job->tests,
           0 == job->rank ? scheme_of(before, after, messages) : "-");
    bench_buffer_destroy(&job->buffer);
    bench_pvars_close(&pvars);
    free(stream);
    free(base);
}

int bench_lockstep_job_main(int argc, char **argv)
{
    lockstep_t job;
    bool on_gpu;
    const char *why;
    size_t i;
    int size;

    MPI_Init(&argc, &argv);
    memset(&job, 0, sizeof(job));
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (7 != argc || 2 != size || 0 >= atoi(argv[5])) {
        bench_fatal("%s is for jobs that bench/metrics starts", BENCH_LOCKSTEP_JOB);
    }
    i = bench_layout_find(argv[2]);
    if (bench_layout_count == i) {
        bench_fatal("lockstep: there is no layout '%s'", argv[2]);
    }
    on_gpu = 0 == strcmp("gpu", argv[4]);
    if (on_gpu && NULL != (why = bench_gpu_open(job.rank))) {
        bench_fatal("lockstep: no GPU memory: %s", why);
    }
    bench_schemes_comm(argv[3], NULL, &job.comm);
    bench_layout_create(&bench_layout_table[i], &job.layout);
    open_shared(&job, argv[6]);
    run(&job, (unsigned) atoi(argv[5]), on_gpu);
    munmap(job.shared, sizeof(*job.shared));
    bench_layout_destroy(&job.layout);
    MPI_Comm_free(&job.comm);
    MPI_Finalize();
    return 0;
}
