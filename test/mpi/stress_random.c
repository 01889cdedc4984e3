/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Random messages of every kind, received by every call, on several communicators, by several
 * threads; checked against a model of the results that MPI allows.
 *
 * The program works in epochs. All processes draw the sends of an epoch alike from the seed
 * (stress_plan.h); each thread draws its receives alone (stress_lane.h). Only the times of tests,
 * waits and cancels are random. At the end of an epoch each thread checks its receives
 * (stress_model.h), and every byte of every buffer. Types, communicators and persistent requests
 * live for an era of some epochs.
 *
 * --ops: sends and receives of all ranks together. --mode, words separated by commas: threads=N;
 * break=WHAT, to make an error, which must be detected (stress_break.c).
 */

#include "stress_thread.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* For all buffered sends of a process, twice. */
#define BUFFER_BYTES (16 << 20)

__thread stress_thread_t *stress_self;

static stress_thread_t threads[STRESS_THREADS];
static int thread_count = 1;
static stress_plan_t plan;
static pthread_barrier_t meeting;
static void *buffered;

static const char *const counter_names[STRESS_COUNTERS] = {
    "sends",     "receives",  "probes", "cancels", "cancelled", "freed",
    "truncated", "restarted", "waits",  "tests",   "bytes"};

static void explain_thread(const stress_thread_t *thread)
{
    int i;

    fprintf(stderr,
            "rank %d thread %d: epoch %ld step %ld, %s; %d of %d sends started, %d of %d "
            "receives posted, %d messages held\n",
            mpitest.rank, thread->number, plan.epoch, thread->step, thread->phase,
            thread->outgoing_next, thread->outgoing_count, thread->posted,
            thread->lanes.posting_count, thread->held_count);
    for (i = 0; i < thread->active_count; ++i) {
        const stress_active_t *active = &thread->active[i];

        if (NULL != active->outgoing) {
            const stress_message_t *message = active->outgoing->message;

            fprintf(stderr, "  %s to %d tag %d on %s, %ld bytes (%s): not done\n",
                    stress_way_name(message->way), message->dest, message->tag,
                    stress_comm_name(message->comm), message->bytes,
                    stress_entry(message->entry)->name);
        } else {
            const stress_posting_t *posting = active->posting;

            fprintf(stderr, "  %s from %d tag %d on %s, room %ld (%s)%s: not done\n",
                    stress_action_name(posting->action), posting->source, posting->tag,
                    stress_comm_name(posting->comm), stress_entry(posting->entry)->bytes,
                    stress_entry(posting->entry)->name,
                    posting->cancel_called ? ", cancelled" : "");
        }
    }
}

/* More output at a failed check; at the deadline from a signal handler, when the job ends anyway.
 */
static void explain(bool hang)
{
    int i;

    if (!hang && NULL != stress_self) {
        fprintf(stderr, "thread %d of %d, epoch %ld, step %ld, %s\n", stress_self->number,
                thread_count, plan.epoch, stress_self->step, stress_self->phase);
        if (NULL != stress_self->checked) {
            stress_print_lane(stress_self, stress_self->checked);
        }
    }
    for (i = 0; i < thread_count && hang; ++i) {
        int lane;

        explain_thread(&threads[i]);
        for (lane = 0; lane < threads[i].lanes.count && 0 < threads[i].active_count; ++lane) {
            stress_print_lane(&threads[i], &threads[i].lanes.lanes[lane]);
        }
    }
}

static void meet(void)
{
    if (1 < thread_count) {
        pthread_barrier_wait(&meeting);
    }
}

/* All threads of all ranks have reached this point. */
static void meet_all(const stress_thread_t *thread)
{
    meet();
    if (0 == thread->number) {
        MPI_OK(MPI_Barrier(stress_comm_control()));
    }
    meet();
}

static void post_next(stress_thread_t *thread)
{
    stress_receive_post(thread, thread->lanes.order[thread->posted++]);
}

/* The next receive and the next send, if there are any that cannot block here. */
static bool may_post(const stress_thread_t *thread, bool may_block)
{
    return thread->posted < thread->lanes.posting_count
           && (may_block || !stress_action_blocks(thread->lanes.order[thread->posted]->action));
}

static bool may_send(const stress_thread_t *thread, bool may_block)
{
    const stress_message_t *message = stress_send_peek(thread);

    return NULL != message
           && (may_block || (!stress_way_blocks(message->way) && !stress_way_ready(message->way)));
}

/* Cancel the receives that are to be cancelled, and post replacements for those that were. */
static void replace_cancelled(stress_thread_t *thread)
{
    int i;

    thread->phase = "cancelling";
    stress_cancel_all(thread);
    for (i = 0; i < thread->lanes.posting_count; ++i) {
        stress_posting_t *posting = &thread->lanes.postings[i];

        if (NULL != posting->lane && posting->cancel_called
            && STRESS_CANCELLED == posting->lane->events[posting->event].outcome) {
            stress_receive_post(thread,
                                stress_lanes_replace(&thread->lanes, posting, thread->replaced));
            ++thread->replaced;
        }
    }
}

/* Receive the messages of matched probes: their senders may be blocked until then. */
static void receive_held(stress_thread_t *thread)
{
    while (0 < thread->held_count) {
        stress_receive_held(thread,
                            (int) mpitest_between(&thread->chance, 0, thread->held_count - 1));
    }
}

/* Post all receives without blocking, and some sends; then send the rest. */
static void run_poster(stress_thread_t *thread)
{
    thread->phase = "posting";
    while (may_post(thread, false)) {
        switch (mpitest_between(&thread->chance, 0, 5)) {
        case 0:
            stress_poll(thread);
            break;
        case 1:
            if (may_send(thread, false)) {
                stress_send_next(thread);
            }
            break;
        default:
            post_next(thread);
            break;
        }
    }
    CHECK(thread->posted == thread->lanes.posting_count);
    replace_cancelled(thread);
    receive_held(thread);
    if (plan.ready) {
        thread->phase = "waiting for all to have posted";
        meet_all(thread);
    }
    thread->phase = "sending";
    while (may_send(thread, true)) {
        if (0 == mpitest_random(&thread->chance) % 4) {
            stress_poll(thread);
        } else {
            stress_send_next(thread);
        }
    }
}

/* Send all messages, and post some receives that do not block; then receive the rest. */
static void run_sender(stress_thread_t *thread)
{
    if (plan.ready) {
        thread->phase = "waiting for all to have posted";
        meet_all(thread);
    }
    thread->phase = "sending";
    while (may_send(thread, true)) {
        switch (mpitest_between(&thread->chance, 0, 5)) {
        case 0:
            stress_poll(thread);
            break;
        case 1:
            if (may_post(thread, false)) {
                post_next(thread);
            }
            break;
        default:
            stress_send_next(thread);
            break;
        }
    }
    thread->phase = "receiving";
    while (may_post(thread, true)) {
        switch (mpitest_between(&thread->chance, 0, 9)) {
        case 0:
        case 1:
            stress_poll(thread);
            break;
        case 2:
            stress_wait(thread, false);
            break;
        default:
            post_next(thread);
            break;
        }
    }
    replace_cancelled(thread);
}

static void finish(stress_thread_t *thread)
{
    thread->phase = "finishing";
    if (stress_break_hang(thread)) {
        mpitest_stuck(3);
        MPI_OK(MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, STRESS_DEAD_TAG, stress_comm(0),
                        MPI_STATUS_IGNORE));
    }
    receive_held(thread);
    while (0 < thread->active_count) {
        if (0 == mpitest_random(&thread->chance) % 3 || !stress_wait(thread, true)) {
            stress_poll(thread);
        }
    }
}

/* This thread's sends of the plan. */
static void take_sends(stress_thread_t *thread)
{
    int i;

    thread->outgoing_count = 0;
    thread->outgoing_next = 0;
    for (i = 0; i < plan.count; ++i) {
        if (mpitest.rank == plan.messages[i].from
            && thread->number == plan.messages[i].from_thread) {
            stress_outgoing_t *outgoing = &thread->outgoing[thread->outgoing_count++];

            outgoing->message = &plan.messages[i];
            outgoing->buffer = NULL;
            outgoing->slot = -1;
            outgoing->done = false;
        }
    }
}

/* Check that nothing is left over. Between two synchronisations: the next epoch's messages are not
 * there yet. */
static void check_quiet(const stress_thread_t *thread)
{
    int i, flag;

    if (0 == thread->number && 0 == plan.epoch % 8) {
        for (i = 0; i < stress_comm_count(); ++i) {
            MPI_OK(
                MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, stress_comm(i), &flag, MPI_STATUS_IGNORE));
            if (flag) {
                mpitest_fail(__FILE__, __LINE__, "a message is left over on %s",
                             stress_comm_name(i));
            }
        }
    }
    if (0 == plan.epoch % 8) {
        meet_all(thread);
    }
}

static void run_epoch(stress_thread_t *thread)
{
    thread->chance = mpitest_mix(mpitest.seed ^ 0xcafe, (uint64_t) plan.epoch,
                                 (uint64_t) (mpitest.rank * STRESS_THREADS + thread->number));
    thread->plan = &plan;
    thread->posted = 0;
    thread->replaced = 0;
    thread->step = 0;
    take_sends(thread);
    stress_lanes_plan(&thread->lanes, &plan, thread->number);
    if (plan.poster[mpitest.rank][thread->number]) {
        run_poster(thread);
    } else {
        run_sender(thread);
    }
    finish(thread);
    thread->phase = "judging";
    if (1 < thread_count) {
        meet();
        if (0 == thread->number) {
            stress_check_pool(threads, thread_count, &plan);
        }
        meet();
    }
    stress_check_all(thread);
    thread->phase = "waiting for all to have finished";
    meet_all(thread);
    thread->phase = "judging what was sent";
    stress_send_verify(thread);
    check_quiet(thread);
    stress_lanes_free(&thread->lanes);
    memset(&thread->lanes, 0, sizeof(thread->lanes));
    if (STRESS_ERA - 1 == plan.epoch % STRESS_ERA) {
        stress_slots_free(thread);
    }
}

static void begin_era(long era)
{
    int size = 0;

    if (0 < era) {
        stress_corpus_free();
        stress_comms_free();
        MPI_OK(MPI_Buffer_detach(&buffered, &size));
    }
    stress_corpus_make(mpitest_mix(mpitest.seed, (uint64_t) era, 0xe4a));
    stress_comms_make(thread_count);
    MPI_OK(MPI_Buffer_attach(buffered, BUFFER_BYTES));
}

/* Thread 0 prepares the next epoch while the others wait. */
static bool next_epoch(const stress_thread_t *thread, long *planned)
{
    meet();
    if (0 == thread->number && *planned < mpitest.ops) {
        mpitest_alive();
        ++plan.epoch;
        mpitest.step = plan.epoch;
        if (0 == plan.epoch % STRESS_ERA) {
            begin_era(plan.epoch / STRESS_ERA);
        }
        stress_plan(&plan, plan.epoch, thread_count);
        if (mpitest.verbose && 0 == mpitest.rank) {
            printf("epoch %ld: %d messages%s\n", plan.epoch, plan.count,
                   plan.ready ? ", ready" : "");
            fflush(stdout);
        }
    }
    meet();
    if (*planned >= mpitest.ops) {
        return false;
    }
    *planned += 2 * plan.count;
    return true;
}

static void *run(void *argument)
{
    stress_thread_t *thread = argument;
    long planned = 0;

    stress_self = thread;
    while (next_epoch(thread, &planned)) {
        run_epoch(thread);
    }
    return NULL;
}

static void report(void)
{
    long mine[STRESS_COUNTERS] = {0}, all[STRESS_COUNTERS];
    int i, j;

    for (i = 0; i < thread_count; ++i) {
        for (j = 0; j < STRESS_COUNTERS; ++j) {
            mine[j] += threads[i].counters[j];
        }
    }
    MPI_OK(MPI_Reduce(mine, all, STRESS_COUNTERS, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD));
    if (0 == mpitest.rank) {
        printf("stress_random: %ld epochs, %ld operations:", plan.epoch + 1,
               all[STRESS_COUNT_SENDS] + all[STRESS_COUNT_RECEIVES] + all[STRESS_COUNT_PROBES]
                   + all[STRESS_COUNT_CANCELS] + all[STRESS_COUNT_FREED]);
        for (i = 0; i < STRESS_COUNTERS; ++i) {
            printf(" %s %ld", counter_names[i], all[i]);
        }
        printf("\n");
        fflush(stdout);
    }
}

/* threads=N and break=WHAT, before MPI is started. */
static void read_mode(const char *mode, char *what, size_t size)
{
    const char *word;

    for (word = mode; NULL != word; word = strchr(word, ',')) {
        word += ',' == *word ? 1 : 0;
        if (0 == strncmp(word, "threads=", 8)) {
            thread_count = atoi(word + 8);
        } else if (0 == strncmp(word, "break=", 6)) {
            snprintf(what, size, "%.*s", (int) strcspn(word + 6, ","), word + 6);
        } else if ('\0' != *word) {
            fprintf(stderr, "stress_random: --mode %s: threads=N, break=WHAT\n", mode);
            exit(2);
        }
    }
}

/* The thread level must be known before mpitest_init reads the options. */
static const char *find_mode(int argc, char **argv)
{
    int i;

    for (i = 1; i + 1 < argc; ++i) {
        if (0 == strcmp(argv[i], "--mode")) {
            return argv[i + 1];
        }
    }
    return "";
}

int main(int argc, char **argv)
{
    pthread_t handles[STRESS_THREADS];
    char what[32] = "";
    int i;

    read_mode(find_mode(argc, argv), what, sizeof(what));
    if (1 > thread_count || STRESS_THREADS < thread_count) {
        fprintf(stderr, "stress_random: 1 to %d threads\n", STRESS_THREADS);
        return 2;
    }
    mpitest_init(&argc, &argv, "stress_random", 4000,
                 1 < thread_count ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    if (2 > mpitest.size || STRESS_RANKS < mpitest.size) {
        mpitest_skip("needs 2 to 8 ranks");
    }
    if (1 < thread_count && stress_on_ucx()) {
        mpitest_skip("pml/ucx of Open MPI 4.1.4 does not stand several threads here, by itself");
    }
    if ('\0' != *what) {
        stress_break_read(what);
    }
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    mpitest.explain = explain;
    buffered = malloc(BUFFER_BYTES);
    CHECK(NULL != buffered);
    plan.epoch = -1;
    CHECK_INT(pthread_barrier_init(&meeting, NULL, (unsigned) thread_count), 0);
    for (i = 0; i < thread_count; ++i) {
        int slot;

        threads[i].number = i;
        threads[i].threads = thread_count;
        threads[i].phase = "starting";
        for (slot = 0; slot < STRESS_SLOTS; ++slot) {
            threads[i].sends[slot].request = MPI_REQUEST_NULL;
            threads[i].receives[slot].request = MPI_REQUEST_NULL;
        }
    }
    for (i = 1; i < thread_count; ++i) {
        CHECK_INT(pthread_create(&handles[i], NULL, run, &threads[i]), 0);
    }
    run(&threads[0]);
    for (i = 1; i < thread_count; ++i) {
        CHECK_INT(pthread_join(handles[i], NULL), 0);
    }
    for (i = 0; i < thread_count; ++i) {
        stress_slots_free(&threads[i]);
        free(threads[i].active);
        free(threads[i].held);
    }
    MPI_OK(MPI_Buffer_detach(&buffered, &i));
    free(buffered);
    stress_corpus_free();
    stress_comms_free();
    report();
    stress_break_check();
    return mpitest_finish();
}
