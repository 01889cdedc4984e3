/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "bench_bare.h"
#include "bench_run.h"
#include "bench_stream.h"
#include "bench_util.h"
#include "bench_watchdog.h"

#define TAG_DATA    17
#define TAG_COMMAND 18
#define TAG_READY   19
#define TAG_READ    23

/* Time between two calls of the progress function, in seconds. */
#define PROGRESS_SECONDS 0.2

const char *const bench_variant_names[BENCH_VARIANTS] = {"", " (base PML)", " (bare)",
                                                         " (contiguous)"};

/* Commands of the leader to its peer before an iteration. */
enum {
    COMMAND_WARM_UP,
    COMMAND_TIMED,
    COMMAND_STOP
};

/* One layout on this process. */
typedef struct pair_t {
    bench_job_t *job;
    const char *name;
    const bench_layout_t *layout;
    int hang_seconds;
    int burst; /* messages there and back in an iteration */
    bool runs[BENCH_VARIANTS];
    bench_buffers_t *buffers;
    bench_layout_t contiguous; /* --bare: as many bytes in one piece */
    bench_buffers_t contiguous_buffers;
    bench_bare_t *bare;
    unsigned char
        *base_out; /* the base of the streams of all messages, of this process and its peer */
    unsigned char *base_in;
    unsigned char *stream; /* of the present message */
    unsigned message;      /* number of the present message in this direction, from 1 */
    int iteration;         /* as in bench_failure_t */
    double *samples[BENCH_VARIANTS];
    int done; /* timed iterations */
    uint64_t counters[BENCH_PVAR_COUNT];
    bench_failure_t failure;
} pair_t;

/* The stream of the present message, made from the one base or the other. */
static void make_stream(const pair_t *pair, const unsigned char *base)
{
    bench_stream_make(base, pair->layout->send.bytes, pair->message, pair->stream);
}

void bench_buffers_create(bench_buffers_t *buffers, const bench_options_t *options,
                          const bench_layout_t *layout)
{
    bench_buffer_create(&buffers->send, &layout->send, BENCH_GUARD_SEND, options->send_on_gpu);
    bench_buffer_create(&buffers->recv, &layout->recv, BENCH_GUARD_RECV, options->recv_on_gpu);
}

void bench_buffers_destroy(bench_buffers_t *buffers)
{
    bench_buffer_destroy(&buffers->send);
    bench_buffer_destroy(&buffers->recv);
}

/* The receive buffer holds message 0. */
static void begin_stream(pair_t *pair, bench_buffer_t *recv)
{
    make_stream(pair, pair->base_in);
    bench_buffer_set_data(recv, pair->stream);
    bench_buffer_put(recv);
}

/* --bare: the operation and the contiguous buffers. */
static void open_bare(pair_t *pair, bench_job_t *job, const bench_options_t *options)
{
    const int bytes = (int) pair->layout->send.bytes;
    const char *why;
    int have, all;

    pair->bare =
        bench_bare_open(&pair->buffers->send, &pair->buffers->recv, job->peer, job->control, &why);
    have = NULL != pair->bare;
    MPI_Allreduce(&have, &all, 1, MPI_INT, MPI_MIN, job->control);
    pair->runs[BENCH_VARIANT_BARE] = 0 != all;
    if (!all && 0 == job->rank) {
        fprintf(stderr, "umrddt_bench: --bare: not available for %s: %s\n", pair->name,
                have ? "another pair failed" : why);
    }
    pair->runs[BENCH_VARIANT_CONTIGUOUS] = true;
    memset(&pair->contiguous, 0, sizeof(pair->contiguous));
    bench_make_contiguous(&bytes, &pair->contiguous);
    bench_buffers_create(&pair->contiguous_buffers, options, &pair->contiguous);
    begin_stream(pair, &pair->contiguous_buffers.recv);
}

static void pair_create(pair_t *pair, bench_job_t *job, const bench_options_t *options,
                        const char *name, const bench_layout_t *layout, bench_buffers_t *buffers)
{
    int variant;

    memset(pair, 0, sizeof(*pair));
    pair->job = job;
    pair->name = name;
    pair->layout = layout;
    pair->buffers = buffers;
    pair->hang_seconds = options->hang_seconds;
    pair->burst = options->burst;
    pair->runs[BENCH_VARIANT_MAIN] = true;
    pair->runs[BENCH_VARIANT_BASE] = options->compare;
    pair->failure.rank = job->rank;
    for (variant = 0; variant < BENCH_VARIANTS; ++variant) {
        pair->samples[variant] = bench_alloc(sizeof(double) * (size_t) options->iterations);
    }
    pair->base_out = bench_stream_base(layout->send.bytes, job->rank);
    pair->base_in = bench_stream_base(layout->send.bytes, job->peer);
    pair->stream = bench_alloc(layout->send.bytes);
    begin_stream(pair, &buffers->recv);
    if (options->bare) {
        open_bare(pair, job, options);
    }
    if (BENCH_PLANT_NOTHING != job->plant.kind
        && !bench_buffer_contains(&pair->buffers->recv, job->plant.offset)) {
        bench_fatal("UMRDDT_BENCH_PLANT: offset %lld is outside of the receiving buffer",
                    (long long) job->plant.offset);
    }
}

static void pair_destroy(pair_t *pair)
{
    int variant;

    if (NULL != pair->bare) {
        bench_bare_close(pair->bare);
        /* After this the peer has closed its import of this memory. */
        MPI_Barrier(pair->job->control);
    }
    if (pair->runs[BENCH_VARIANT_CONTIGUOUS]) {
        bench_buffers_destroy(&pair->contiguous_buffers);
        bench_layout_destroy(&pair->contiguous);
    }
    free(pair->base_out);
    free(pair->base_in);
    free(pair->stream);
    for (variant = 0; variant < BENCH_VARIANTS; ++variant) {
        free(pair->samples[variant]);
    }
}

static void note_failure(pair_t *pair, int variant, bench_failure_kind_t kind, int64_t offset,
                         int64_t expected, int64_t got)
{
    if (BENCH_FAILURE_NONE == pair->failure.kind) {
        pair->failure.kind = kind;
        pair->failure.iteration = pair->iteration;
        pair->failure.variant = variant;
        pair->failure.offset = offset;
        pair->failure.expected = expected;
        pair->failure.got = got;
    }
    ++pair->failure.times;
}

/* The test hook; see bench_job_open. */
static void plant_error(pair_t *pair, int variant)
{
    const bench_plant_t *plant = &pair->job->plant;
    unsigned char *byte = pair->buffers->recv.array + plant->offset;

    if (BENCH_VARIANT_MAIN != variant || pair->iteration != plant->iteration) {
        return;
    }
    if (BENCH_PLANT_INVERTED == plant->kind) {
        *byte ^= 0xff;
    } else if (BENCH_PLANT_STALE == plant->kind) {
        *byte ^= bench_stream_mask(pair->message) ^ bench_stream_mask(pair->message - 1);
    }
}

/*
 * Check the received data, @p count of the type of the receive. One finding per message; gaps are
 * repaired, so each message is checked by itself.
 */
static void check_received(pair_t *pair, int variant, int count)
{
    bench_buffer_t *recv =
        BENCH_VARIANT_CONTIGUOUS == variant ? &pair->contiguous_buffers.recv : &pair->buffers->recv;
    bench_wrong_t wrong;

    bench_buffer_get(recv);
    plant_error(pair, variant);
    make_stream(pair, pair->base_in);
    if (!bench_buffer_check_data(recv, pair->stream, &wrong)) {
        note_failure(pair, variant, BENCH_FAILURE_DATA, wrong.offset, wrong.expected, wrong.got);
        bench_buffer_set_data(recv, pair->stream);
        bench_buffer_set_guards(recv);
        bench_buffer_put(recv);
    } else if (!bench_buffer_check_gaps(recv, false, &wrong)) {
        note_failure(pair, variant, BENCH_FAILURE_GAP, wrong.offset, wrong.expected, wrong.got);
        bench_buffer_set_guards(recv);
        bench_buffer_put(recv);
    } else if (recv->side->count != count) {
        note_failure(pair, variant, BENCH_FAILURE_COUNT, 0, recv->side->count, count);
    }
}

/* After the last message: the gaps that are not looked at every time, and those of the sender. */
static void check_afterwards(pair_t *pair)
{
    bench_wrong_t wrong;

    pair->iteration = INT_MAX;
    bench_buffer_get(&pair->buffers->recv);
    bench_buffer_get(&pair->buffers->send);
    if (!bench_buffer_check_gaps(&pair->buffers->recv, true, &wrong)) {
        note_failure(pair, BENCH_VARIANT_MAIN, BENCH_FAILURE_GAP, wrong.offset, wrong.expected,
                     wrong.got);
    }
    if (!bench_buffer_check_gaps(&pair->buffers->send, true, &wrong)) {
        note_failure(pair, BENCH_VARIANT_MAIN, BENCH_FAILURE_SEND_GAP, wrong.offset, wrong.expected,
                     wrong.got);
    }
}

/* One message of the current kind; the count of the receive. */
static void send_one(pair_t *pair, int variant)
{
    const bench_job_t *job = pair->job;
    const bench_buffer_t *send =
        BENCH_VARIANT_CONTIGUOUS == variant ? &pair->contiguous_buffers.send : &pair->buffers->send;

    if (BENCH_VARIANT_BARE == variant) {
        bench_bare_send(pair->bare);
        return;
    }
    MPI_Send(bench_buffer_address(send), send->side->count, send->side->type, job->peer, TAG_DATA,
             BENCH_VARIANT_MAIN == variant ? job->main_comm : job->base_comm);
}

static int receive_one(pair_t *pair, int variant)
{
    const bench_job_t *job = pair->job;
    const bench_buffer_t *recv =
        BENCH_VARIANT_CONTIGUOUS == variant ? &pair->contiguous_buffers.recv : &pair->buffers->recv;
    MPI_Status status;
    int count;

    if (BENCH_VARIANT_BARE == variant) {
        bench_bare_receive(pair->bare);
        return recv->side->count;
    }
    MPI_Recv(bench_buffer_address(recv), recv->side->count, recv->side->type, job->peer, TAG_DATA,
             BENCH_VARIANT_MAIN == variant ? job->main_comm : job->base_comm, &status);
    MPI_Get_count(&status, recv->side->type, &count);
    return count;
}

/*
 * A message in each direction, `burst` times the same. Buffers are filled before and checked after
 * the timed part; the leader starts the clock when both are ready.
 *
 * @return one-way time in seconds, at the leader
 */
static double exchange(pair_t *pair, int variant)
{
    bench_buffer_t *send =
        BENCH_VARIANT_CONTIGUOUS == variant ? &pair->contiguous_buffers.send : &pair->buffers->send;
    const bench_job_t *job = pair->job;
    double begin = 0.0, end = 0.0;
    int count = 0, trip;

    ++pair->message;
    make_stream(pair, pair->base_out);
    bench_buffer_set_data(send, pair->stream);
    bench_buffer_put(send);
    if (job->leader) {
        MPI_Recv(NULL, 0, MPI_BYTE, job->peer, TAG_READY, job->control, MPI_STATUS_IGNORE);
        begin = bench_now();
        for (trip = 0; trip < pair->burst; ++trip) {
            send_one(pair, variant);
            count = receive_one(pair, variant);
        }
        end = bench_now();
    } else {
        MPI_Send(NULL, 0, MPI_BYTE, job->peer, TAG_READY, job->control);
        for (trip = 0; trip < pair->burst; ++trip) {
            count = receive_one(pair, variant);
            while (BENCH_PLANT_HANG == job->plant.kind && pair->iteration == job->plant.iteration) {
                sleep(1);
            }
            send_one(pair, variant);
        }
    }
    if (BENCH_VARIANT_BARE == variant) {
        /* the reader of the last message reads it from the other's buffer, without a notification
         */
        MPI_Sendrecv(NULL, 0, MPI_BYTE, job->peer, TAG_READ, NULL, 0, MPI_BYTE, job->peer, TAG_READ,
                     job->control, MPI_STATUS_IGNORE);
    }
    check_received(pair, variant, count);
    return (end - begin) / 2.0 / pair->burst;
}

/* One iteration as commanded; the first timed one starts the counters. The kinds alternate in which
 * goes first, because a message after another one finds another state of the machine. */
static void iterate(pair_t *pair, int command)
{
    if (COMMAND_TIMED == command && 0 == pair->done) {
        bench_pvars_read(&pair->job->pvars, pair->counters);
    }
    pair->iteration = COMMAND_TIMED == command ? pair->done + 1 : 0;
    for (int i = 0; i < BENCH_VARIANTS; ++i) {
        const int variant = 0 == pair->done % 2 ? i : BENCH_VARIANTS - 1 - i;
        double seconds;

        if (!pair->runs[variant]) {
            continue;
        }
        bench_watchdog_set((unsigned) pair->hang_seconds,
                           "umrddt_bench: rank %d gives up: %s, %s %d%s did not end within %d s",
                           pair->job->rank, pair->name,
                           COMMAND_TIMED == command ? "iteration" : "warm-up before iteration",
                           pair->done + 1, bench_variant_names[variant], pair->hang_seconds);
        seconds = exchange(pair, variant);
        bench_watchdog_clear();
        if (COMMAND_TIMED == command) {
            pair->samples[variant][pair->done] = seconds;
        }
    }
    if (COMMAND_TIMED == command) {
        ++pair->done;
    }
}

/* The leader's next step, by the numbers and the time of the options. */
static int next_command(const pair_t *pair, const bench_options_t *options, int warmed,
                        double seconds)
{
    const double limit = options->max_seconds;

    if (0 == pair->done && warmed < options->warmup
        && (0.0 == limit || 0 == warmed || seconds < limit / 3.0)) {
        return COMMAND_WARM_UP;
    }
    if (pair->done < options->iterations
        && (0.0 == limit || pair->done < BENCH_MIN_ITERATIONS || seconds < limit)) {
        return COMMAND_TIMED;
    }
    return COMMAND_STOP;
}

static void lead(pair_t *pair, const bench_options_t *options, const char *name,
                 bench_progress_fn_t progress, void *context)
{
    const bench_job_t *job = pair->job;
    double begin = bench_now(), shown = 0.0;
    int warmed = 0, command;

    do {
        double now = bench_now();

        if (0 == job->rank && NULL != progress && PROGRESS_SECONDS < now - shown) {
            progress(name, pair->done, options->iterations, context);
            shown = now;
        }
        command = next_command(pair, options, warmed, now - begin);
        MPI_Send(&command, 1, MPI_INT, job->peer, TAG_COMMAND, job->control);
        if (COMMAND_STOP != command) {
            iterate(pair, command);
        }
        warmed += COMMAND_WARM_UP == command;
    } while (COMMAND_STOP != command);
}

static void follow(pair_t *pair)
{
    const bench_job_t *job = pair->job;
    int command;

    for (;;) {
        MPI_Recv(&command, 1, MPI_INT, job->peer, TAG_COMMAND, job->control, MPI_STATUS_IGNORE);
        if (COMMAND_STOP == command) {
            return;
        }
        iterate(pair, command);
    }
}

/* The times of all pairs go to rank 0. */
static void gather_times(const pair_t *pair, bench_result_t *result)
{
    const bench_job_t *job = pair->job;
    int mine = job->leader ? pair->done : 0, total = 0, least = INT_MAX, i, variant;
    int *counts = bench_alloc(sizeof(int) * (size_t) job->size);
    int *starts = bench_alloc(sizeof(int) * (size_t) job->size);
    double *all;

    MPI_Gather(&mine, 1, MPI_INT, counts, 1, MPI_INT, 0, job->control);
    for (i = 0; 0 == job->rank && i < job->size; ++i) {
        starts[i] = total;
        total += counts[i];
        least = 0 == i % 2 && counts[i] < least ? counts[i] : least;
    }
    all = bench_alloc(sizeof(double) * (size_t) total);
    for (variant = 0; variant < BENCH_VARIANTS; ++variant) {
        if (!pair->runs[variant]) {
            continue;
        }
        MPI_Gatherv(pair->samples[variant], mine, MPI_DOUBLE, all, counts, starts, MPI_DOUBLE, 0,
                    job->control);
        if (0 == job->rank) {
            bench_times_summarise(all, total, &result->times[variant]);
        }
    }
    result->iterations = least;
    memcpy(result->ran, pair->runs, sizeof(result->ran));
    free(all);
    free(starts);
    free(counts);
}

static const char *scheme_of(const bool *has, const uint64_t *sums, uint64_t messages)
{
    /* the base PML carries messages that their receiver declines */
    if (!has[BENCH_PVAR_HANDLED_SENDS]
        || sums[BENCH_PVAR_DECLINED_SENDS] == sums[BENCH_PVAR_HANDLED_SENDS]) {
        return 0 < sums[BENCH_PVAR_STAGED_SENDS] || 0 < sums[BENCH_PVAR_STAGED_RECVS] ? "staged"
                                                                                      : "host";
    }
    if (0 < sums[BENCH_PVAR_FALLBACK_SENDS] || 0 < sums[BENCH_PVAR_FALLBACK_RECVS]) {
        return "fallback";
    }
    if (messages != sums[BENCH_PVAR_HANDLED_SENDS] - sums[BENCH_PVAR_DECLINED_SENDS]) {
        return "mixed";
    }
    return messages == sums[BENCH_PVAR_SENDS_IPC]           ? "ipc"
           : messages == sums[BENCH_PVAR_SENDS_PACK_GDR]    ? "pack-gdr"
           : messages == sums[BENCH_PVAR_SENDS_PACK_STAGED] ? "pack-staged"
           : messages == sums[BENCH_PVAR_SENDS_PACK_HOST]   ? "pack-host"
           : 0 < sums[BENCH_PVAR_SENDS_IPC] + sums[BENCH_PVAR_SENDS_PACK_GDR]
                       + sums[BENCH_PVAR_SENDS_PACK_STAGED] + sums[BENCH_PVAR_SENDS_PACK_HOST]
               ? "mixed"
           : messages == sums[BENCH_PVAR_SENDS_DIRECT] ? "direct"
                                                       : "umr";
}

/* Increments of the counters of all processes since the first timed iteration, per message. */
static void gather_counters(pair_t *pair, bench_result_t *result)
{
    bench_job_t *job = pair->job;
    uint64_t values[BENCH_PVAR_COUNT], sums[BENCH_PVAR_COUNT] = {0};
    uint64_t mine = (uint64_t) pair->done * (uint64_t) pair->burst, messages = 0;
    int i;

    bench_pvars_read(&job->pvars, values);
    for (i = 0; i < BENCH_PVAR_COUNT; ++i) {
        values[i] -= pair->counters[i];
    }
    MPI_Reduce(values, sums, BENCH_PVAR_COUNT, MPI_UINT64_T, MPI_SUM, 0, job->control);
    MPI_Reduce(&mine, &messages, 1, MPI_UINT64_T, MPI_SUM, 0, job->control);
    if (0 != job->rank) {
        return;
    }
    for (i = 0; i < BENCH_PVAR_COUNT; ++i) {
        result->has[i] = job->pvars.found[i];
        result->per_message[i] = (double) sums[i] / (double) messages;
    }
    result->scheme = scheme_of(result->has, sums, messages);
}

/* Rank 0 gets the first failure of the lowest rank with a failure; all get whether there is one. */
static void gather_failures(const pair_t *pair, bench_result_t *result)
{
    const bench_job_t *job = pair->job;
    bench_failure_t *all = bench_alloc(sizeof(bench_failure_t) * (size_t) job->size);
    int failed, i;

    memset(all, 0, sizeof(bench_failure_t) * (size_t) job->size);
    MPI_Gather(&pair->failure, (int) sizeof(bench_failure_t), MPI_BYTE, all,
               (int) sizeof(bench_failure_t), MPI_BYTE, 0, job->control);
    for (i = job->size - 1; 0 <= i; --i) {
        if (BENCH_FAILURE_NONE != all[i].kind) {
            result->failure = all[i];
        }
    }
    failed = BENCH_FAILURE_NONE != result->failure.kind;
    MPI_Bcast(&failed, 1, MPI_INT, 0, job->control);
    result->failed = 0 != failed;
    free(all);
}

void bench_run(bench_job_t *job, const bench_options_t *options, const char *name,
               const bench_layout_t *layout, bench_buffers_t *buffers, bench_progress_fn_t progress,
               void *context, bench_result_t *result)
{
    pair_t pair;

    memset(result, 0, sizeof(*result));
    result->name = name;
    result->bytes = layout->send.bytes;
    result->send_blocks = layout->send.piece_count;
    result->recv_blocks = layout->recv.piece_count;
    result->noncontiguous = bench_layout_is_noncontiguous(layout);

    pair_create(&pair, job, options, name, layout, buffers);
    MPI_Barrier(job->control);
    if (job->leader) {
        lead(&pair, options, name, progress, context);
    } else {
        follow(&pair);
    }
    check_afterwards(&pair);
    MPI_Barrier(job->control); /* no process counts any more for a message of this layout */
    gather_counters(&pair, result);
    gather_times(&pair, result);
    gather_failures(&pair, result);
    pair_destroy(&pair);
}
