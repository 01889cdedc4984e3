/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Several threads use the HCA at once. (Run with HCA_THREADS=1.) */

#include "harness.h"

#include <pthread.h>
#include <sched.h>

enum {
    THREADS = 4,
    PUTS = 30,
    PIECES = 12,
    LENGTH = 40,
    DISTANCE = 100
};

struct worker {
    pthread_t thread;
    unsigned char *area;
    opal_iov_cache_layout_t *layout;
    mca_btl_umr_key_t *remote;
    size_t remote_count;
    uint32_t id;
};

struct shared_done {
    volatile int calls;
    volatile int status;
};

static void worker_done(void *context, int status)
{
    struct shared_done *done = context;

    done->status = status;
    __atomic_add_fetch(&done->calls, 1, __ATOMIC_RELEASE);
}

/** Progress may call this done from any thread; wait for it whoever brings it. */
static void wait_done(struct shared_done *done)
{
    double end = MPI_Wtime() + HARNESS_HANG;

    while (0 == __atomic_load_n(&done->calls, __ATOMIC_ACQUIRE)) {
        CHECK(MPI_Wtime() < end, "not within %.0f seconds", HARNESS_HANG);
        if (0 == harness.hca->progress()) {
            sched_yield();
        }
    }
    CHECK(1 == done->calls && OPAL_SUCCESS == done->status, "%d calls, status %d", done->calls,
          done->status);
}

/** Register, map, put, release, again and again, all by itself. */
static void *send_many(void *argument)
{
    struct worker *worker = argument;

    for (uint32_t i = 0; i < PUTS; ++i) {
        struct shared_done mapped = {0, 0}, put = {0, 0};
        uint32_t fin = worker->id << 16 | i;
        mca_btl_umr_memory_t *memory;
        mca_btl_umr_keyset_t *keyset;

        layout_fill(worker->area, worker->layout, worker->id + i);
        CHECK_RC(OPAL_SUCCESS,
                 harness.hca->memory_register(MCA_BTL_UMR_LOCAL, worker->area, worker->layout,
                                              worker->layout->size, &memory));
        CHECK_RC(OPAL_SUCCESS, harness.hca->keyset_map(
                                   MCA_BTL_UMR_LOCAL, worker->area, worker->layout, memory, 0, 0,
                                   worker->layout->size, 4, worker_done, &mapped, &keyset));
        wait_done(&mapped);
        CHECK(keyset->ready, "done, but not ready");
        CHECK_RC(OPAL_SUCCESS, harness.hca->put(harness.endpoint, keyset, worker->remote,
                                                worker->remote_count, &fin, worker_done, &put));
        wait_done(&put);
        harness.hca->keyset_release(keyset);
        harness.hca->memory_release(memory);
    }
    return NULL;
}

/** What a receiver does between messages. */
static void *map_many(void *argument)
{
    struct worker *worker = argument;
    unsigned char *area = calloc(1, PIECES * DISTANCE);

    for (uint32_t i = 0; i < PUTS; ++i) {
        struct shared_done mapped = {0, 0};
        mca_btl_umr_memory_t *memory;
        mca_btl_umr_keyset_t *keyset;

        CHECK_RC(OPAL_SUCCESS,
                 harness.hca->memory_register(MCA_BTL_UMR_REMOTE, area, worker->layout,
                                              worker->layout->size, &memory));
        CHECK_RC(OPAL_SUCCESS,
                 harness.hca->keyset_map(MCA_BTL_UMR_REMOTE, area, worker->layout, memory, 0, 0,
                                         worker->layout->size, 4, worker_done, &mapped, &keyset));
        wait_done(&mapped);
        harness.hca->keyset_release(keyset);
        harness.hca->memory_release(memory);
    }
    free(area);
    return NULL;
}

static void many_threads(void)
{
    bool send = 0 == harness.rank;
    mca_btl_umr_memory_t *memories[THREADS];
    mca_btl_umr_keyset_t *keysets[THREADS];
    struct worker workers[THREADS];
    size_t first = harness.fin_count;
    bool seen[THREADS][PUTS];

    CHECK(MPI_THREAD_MULTIPLE == harness.threads, "run this with HCA_THREADS=1");
    for (uint32_t t = 0; t < THREADS; ++t) {
        struct side side;

        workers[t].id = t;
        workers[t].layout = layout_vector(PIECES, LENGTH, DISTANCE);
        workers[t].area = malloc(PIECES * DISTANCE);
        memset(workers[t].area, 0x42, PIECES * DISTANCE);
        side = (struct side){workers[t].area, workers[t].layout, 0, 4};
        if (send) {
            workers[t].remote = keys_receive(&workers[t].remote_count);
        } else {
            keysets[t] =
                keyset_of(MCA_BTL_UMR_REMOTE, &side, workers[t].layout->size, &memories[t]);
            for (int i = 0; i < PUTS; ++i) {
                CHECK_RC(OPAL_SUCCESS, harness.hca->fin_reserve(harness.endpoint));
            }
            keys_send(keysets[t]);
        }
    }
    for (size_t t = 0; t < THREADS; ++t) {
        CHECK(
            0 == pthread_create(&workers[t].thread, NULL, send ? send_many : map_many, &workers[t]),
            "no thread");
    }
    for (size_t t = 0; t < THREADS; ++t) {
        pthread_join(workers[t].thread, NULL);
    }
    if (!send) {
        WAIT_UNTIL(THREADS * PUTS == harness.fin_count - first);
        /* Each once. Not in order: two threads may process one FIN each at the same time. */
        memset(seen, 0, sizeof(seen));
        for (size_t i = first; i < harness.fin_count; ++i) {
            uint32_t t = harness.fins[i] >> 16, number = harness.fins[i] & 0xffff;

            CHECK(THREADS > t && PUTS > number, "FIN 0x%x", harness.fins[i]);
            CHECK(!seen[t][number], "FIN %u of thread %u came twice", number, t);
            seen[t][number] = true;
        }
        for (size_t t = 0; t < THREADS; ++t) {
            layout_check(workers[t].area, PIECES * DISTANCE, workers[t].area, workers[t].layout,
                         workers[t].layout->size, (unsigned) t + PUTS - 1, 0x42);
            harness.hca->keyset_release(keysets[t]);
            harness.hca->memory_release(memories[t]);
        }
    }
    harness_barrier();
    for (size_t t = 0; t < THREADS; ++t) {
        if (send) {
            free(workers[t].remote);
        }
        OBJ_RELEASE(workers[t].layout);
        free(workers[t].area);
    }
}

const struct test thread_tests[] = {
    {"many_threads", many_threads},
    {NULL, NULL},
};
