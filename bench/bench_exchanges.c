/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench_exchanges.h"
#include "bench_util.h"
#include "bench_watchdog.h"
#include "exchange.h"

#define NAME_ROOM 32

/* What is timed, in turns. */
enum {
    CALL,       /* the exchange: messages of the application, or a collective */
    BY_HAND,    /* of a collective: the same data by MPI_Isend and MPI_Irecv */
    CONTIGUOUS, /* of a pattern: the same messages, contiguous */
    ONE,        /* one contiguous message of all bytes */
    VARIANTS
};

/* Names in the files, and the failures. */
static const char *const variant_names[VARIANTS] = {"", "by_hand_", "contiguous_", "one_"};

typedef struct variant_t {
    exchange_t *exchange; /* or NULL */
    bool by_hand;
    double *samples; /* seconds */
    uint64_t launches, copies;
    bench_times_t times; /* at rank 0 */
} variant_t;

/* The first wrong word of a rank. */
typedef struct failure_t {
    int variant, iteration;
    exchange_wrong_t wrong;
} failure_t;

typedef struct run_t {
    bench_job_t *job;
    const bench_options_t *options;
    bench_output_t *output;
    bool on_gpu;
    char name[NAME_ROOM];
    exchange_t call, by_hand, contiguous, one;
    variant_t variants[VARIANTS];
    int samples;      /* of each variant */
    uint64_t sums[3]; /* of the rank that sends most: see exchange_sums */
    char failure[256];
} run_t;

/* -------------------------------------------------------------------------------------------------
 * Names
 * ---------------------------------------------------------------------------------------------- */

/* A name stands for itself and for all that continue it after a '-'; "all" for those of
 * applications. */
static bool stands_for(const char *item, size_t length, const char *name)
{
    if (3 == length && 0 == strncmp("all", item, 3)) {
        return 0 != strncmp("stencil", name, 7) && 0 != strncmp("nbody", name, 5)
               && 0 != strcmp("halo", name);
    }
    return 0 == strncmp(item, name, length) && ('\0' == name[length] || '-' == name[length]);
}

/* Whether an item of the list stands for the name. */
static bool is_wanted(const char *list, const char *name)
{
    for (const char *item = list; NULL != item; item = strchr(item, ',')) {
        item += ',' == *item; /* behind the comma */
        if (stands_for(item, strcspn(item, ","), name)) {
            return true;
        }
    }
    return false;
}

bool bench_exchanges_known(const char *list, char *unknown, size_t room)
{
    for (const char *item = list; NULL != item; item = strchr(item, ',')) {
        bool known = false;
        size_t length;

        item += ',' == *item;
        length = strcspn(item, ",");
        for (size_t i = 0; i < exchange_pattern_count; ++i) {
            known = known || stands_for(item, length, exchange_patterns[i].name);
        }
        for (size_t i = 0; i < exchange_collective_count; ++i) {
            known = known || stands_for(item, length, exchange_collectives[i]);
        }
        if (!known) {
            snprintf(unknown, room, "%.*s", (int) length, item);
            return false;
        }
    }
    return true;
}

/* A size as in the names of layouts. */
static void name_size(const char *name, uint64_t bytes, char text[NAME_ROOM])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    int unit = 0;

    while (unit < 3 && 0 < bytes && 0 == bytes % 1024) {
        bytes /= 1024;
        ++unit;
    }
    snprintf(text, NAME_ROOM, "%s_%" PRIu64 "%s", name, bytes, units[unit]);
}

/* -------------------------------------------------------------------------------------------------
 * Output
 * ---------------------------------------------------------------------------------------------- */

static void print_head(const run_t *run)
{
    const bench_options_t *options = run->options;
    FILE *table = run->output->table;

    fprintf(table,
            "# umrddt_bench %s: %d ranks, memory %s, %d warm-ups, %d iterations of %d exchanges",
            UMRDDT_VERSION, run->job->size, options->memory, options->warmup, options->iterations,
            options->burst);
    if (0.0 < options->max_seconds) {
        fprintf(table, ", at most about %g s an exchange", options->max_seconds);
    }
    fprintf(table,
            "\n# times: of the slowest rank, in microseconds; counters: per exchange and rank\n");
    fprintf(table, "%-17s %10s %8s %7s %10s %10s %10s %8s %7s %10s %10s %10s %7s  %s\n", "exchange",
            "bytes", "messages", "blocks", "median", "min", "p95", "launches", "copies", "by hand",
            "contiguous", "one", "cost", "verified");
    fflush(table);
    if (NULL != run->output->csv) {
        fprintf(run->output->csv, "exchange,ranks,bytes,messages,blocks,exchanges");
        for (int i = 0; i < VARIANTS; ++i) {
            fprintf(run->output->csv, ",%smedian_us,%smin_us,%sp95_us,%slaunches,%scopies",
                    variant_names[i], variant_names[i], variant_names[i], variant_names[i],
                    variant_names[i]);
        }
        fprintf(run->output->csv, ",cost,verified,failure\n");
    }
    if (NULL != run->output->json) {
        bench_output_json_head(run->output, options, run->job->size, "exchanges");
    }
}

/* Whether a variant has times: not before the end of the first iteration with right data. */
static bool is_measured(const run_t *run, int variant)
{
    return NULL != run->variants[variant].exchange && 0 < run->samples;
}

/* Counters per exchange and rank. */
static double per_exchange(const run_t *run, uint64_t count)
{
    return (double) count / run->job->size / run->samples;
}

static void write_csv(const run_t *run, double cost)
{
    FILE *file = run->output->csv;

    fprintf(file, "%s,%d,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%d", run->name, run->job->size,
            run->sums[0], run->sums[1], run->sums[2], run->samples);
    for (int i = 0; i < VARIANTS; ++i) {
        const variant_t *variant = &run->variants[i];

        if (!is_measured(run, i)) {
            fprintf(file, ",,,,,");
        } else {
            fprintf(file, ",%.3f,%.3f,%.3f,%.3f,%.3f", variant->times.median, variant->times.min,
                    variant->times.p95, per_exchange(run, variant->launches),
                    per_exchange(run, variant->copies));
        }
    }
    fprintf(file, ",%.3f,%s,\"%s\"\n", cost, '\0' == run->failure[0] ? "yes" : "FAILED",
            run->failure);
    fflush(file);
}

static void write_json(const run_t *run, double cost)
{
    FILE *file = run->output->json;

    fprintf(file,
            "%s\n    {\"exchange\": \"%s\", \"bytes\": %" PRIu64 ", \"messages\": %" PRIu64
            ", \"blocks\": %" PRIu64 ", \"exchanges\": %d",
            0 == run->output->run ? "" : ",", run->name, run->sums[0], run->sums[1], run->sums[2],
            run->samples);
    for (int i = 0; i < VARIANTS; ++i) {
        const variant_t *variant = &run->variants[i];

        if (is_measured(run, i)) {
            fprintf(file,
                    ", \"%sus\": {\"median\": %.3f, \"min\": %.3f, \"p95\": %.3f}, \"%slaunches\": "
                    "%.3f, \"%scopies\": %.3f",
                    variant_names[i], variant->times.median, variant->times.min, variant->times.p95,
                    variant_names[i], per_exchange(run, variant->launches), variant_names[i],
                    per_exchange(run, variant->copies));
        }
    }
    fprintf(file, ", \"cost\": %.3f, \"verified\": %s", cost,
            '\0' == run->failure[0] ? "true" : "false");
    if ('\0' != run->failure[0]) {
        fprintf(file, ", \"failure\": \"%s\"", run->failure);
    }
    fprintf(file, "}");
    fflush(file);
}

static void print_time(const run_t *run, int variant, double time)
{
    if (is_measured(run, variant)) {
        fprintf(run->output->table, " %10.2f", time);
    } else {
        fprintf(run->output->table, " %10s", "-");
    }
}

static void print_row(run_t *run)
{
    const variant_t *call = &run->variants[CALL];
    const double one = run->variants[ONE].times.median;
    const double cost = 0.0 < one ? call->times.median / one : 0.0;
    FILE *table = run->output->table;

    bench_output_clear_progress(run->output);
    fprintf(table, "%-17s %10" PRIu64 " %8" PRIu64 " %7" PRIu64, run->name, run->sums[0],
            run->sums[1], run->sums[2]);
    print_time(run, CALL, call->times.median);
    print_time(run, CALL, call->times.min);
    print_time(run, CALL, call->times.p95);
    if (is_measured(run, CALL) && run->job->pvars.found[BENCH_PVAR_GPU_LAUNCHES]) {
        fprintf(table, " %8.1f %7.1f", per_exchange(run, call->launches),
                per_exchange(run, call->copies));
    } else {
        fprintf(table, " %8s %7s", "-", "-");
    }
    for (int i = BY_HAND; i < VARIANTS; ++i) {
        print_time(run, i, run->variants[i].times.median);
    }
    fprintf(table, " %6.2fx  %s\n", cost, '\0' == run->failure[0] ? "yes" : "FAILED");
    if ('\0' != run->failure[0]) {
        fprintf(table, "  FAILED %s: %s\n", run->name, run->failure);
    }
    fflush(table);
    if (NULL != run->output->csv) {
        write_csv(run, cost);
    }
    if (NULL != run->output->json) {
        write_json(run, cost);
    }
    ++run->output->run;
    run->output->failed += '\0' != run->failure[0];
}

static void print_end(const run_t *run, double seconds)
{
    const bench_output_t *output = run->output;

    fprintf(output->table, "# %d exchanges run, %d verified, %d failed, in %.0f s\n", output->run,
            output->run - output->failed, output->failed, seconds);
    if (NULL != output->json) {
        fprintf(output->json, "\n  ],\n  \"run\": %d,\n  \"verified\": %d,\n  \"failed\": %d\n}\n",
                output->run, output->run - output->failed, output->failed);
    }
}

/* -------------------------------------------------------------------------------------------------
 * A measurement
 * ---------------------------------------------------------------------------------------------- */

/*
 * An iteration of a variant: new data, an exchange that is not timed, so that the caches and the
 * clocks are those of a repeated exchange, the timed exchanges, and the check.
 *
 * @param[in] timed  whether to keep the times
 *
 * @return false: a word is wrong
 */
static bool iterate(run_t *run, variant_t *variant, int iteration, bool timed,
                    exchange_wrong_t *wrong)
{
    uint64_t before[BENCH_PVAR_COUNT], after[BENCH_PVAR_COUNT];

    bench_watchdog_set((unsigned) run->options->hang_seconds,
                       "umrddt_bench: rank %d gives up: %s, iteration %d did not end within %d s",
                       run->job->rank, run->name, iteration, run->options->hang_seconds);
    exchange_fill(variant->exchange, iteration);
    MPI_Barrier(run->job->control);
    exchange_run(variant->exchange, variant->by_hand);
    MPI_Barrier(run->job->control);
    bench_pvars_read(&run->job->pvars, before);
    for (int i = 0; timed && i < run->options->burst; ++i) {
        double begin;

        MPI_Barrier(run->job->control);
        begin = bench_now();
        exchange_run(variant->exchange, variant->by_hand);
        variant->samples[run->samples + i] = bench_now() - begin;
    }
    MPI_Barrier(run->job->control);
    bench_pvars_read(&run->job->pvars, after);
    variant->launches += after[BENCH_PVAR_GPU_LAUNCHES] - before[BENCH_PVAR_GPU_LAUNCHES];
    variant->copies += after[BENCH_PVAR_GPU_DRIVER_COPIES] - before[BENCH_PVAR_GPU_DRIVER_COPIES];
    bench_watchdog_clear();
    return exchange_check(variant->exchange, iteration, wrong);
}

/* Whether a rank has a failure; then its text is at all ranks. */
static bool has_failed(run_t *run, bool right, const failure_t *mine)
{
    static const char *const what[VARIANTS] = {"", ", by hand", ", contiguous", ", one message"};
    int rank = right ? run->job->size : run->job->rank, first;
    failure_t failure = *mine;

    MPI_Allreduce(&rank, &first, 1, MPI_INT, MPI_MIN, run->job->control);
    if (run->job->size == first) {
        return false;
    }
    MPI_Bcast(&failure, sizeof(failure), MPI_BYTE, first, run->job->control);
    snprintf(run->failure, sizeof(run->failure),
             "rank %d iteration %d%s: word %zu: expected 0x%llx and got 0x%llx", first,
             failure.iteration, what[failure.variant], failure.wrong.word,
             (unsigned long long) failure.wrong.expected, (unsigned long long) failure.wrong.got);
    return true;
}

/* All iterations of all variants, in turns. */
static void iterate_all(run_t *run)
{
    const bench_options_t *options = run->options;
    const double begin = bench_now();
    int done = 0;

    for (int i = -options->warmup; i < options->iterations; ++i) {
        const int iteration = i + options->warmup + 1;
        failure_t failure = {0, iteration, {0, 0, 0}};
        bool right = true;
        int over = 0;

        for (int turn = 0; right && turn < VARIANTS; ++turn) {
            variant_t *variant = &run->variants[(turn + iteration) % VARIANTS];

            if (NULL != variant->exchange) {
                failure.variant = (turn + iteration) % VARIANTS;
                right = iterate(run, variant, iteration, 0 <= i, &failure.wrong);
                if (has_failed(run, right, &failure)) {
                    return;
                }
            }
        }
        if (0 <= i) {
            run->samples += options->burst;
            ++done;
        }
        if (0.0 < options->max_seconds) {
            over = bench_now() - begin > options->max_seconds / (0 > i ? 3.0 : 1.0);
            MPI_Bcast(&over, 1, MPI_INT, 0, run->job->control);
        }
        if (over && 0 > i) {
            i = -1; /* no more warm-ups */
        } else if (over && BENCH_MIN_ITERATIONS <= done) {
            return;
        }
    }
}

/* Sums and maxima of the ranks; times at rank 0. */
static void reduce_all(run_t *run, const exchange_t *sums_of)
{
    const bool root = 0 == run->job->rank;
    uint64_t sums[3];

    exchange_sums(sums_of, sums);
    MPI_Reduce(sums, run->sums, 3, MPI_UINT64_T, MPI_MAX, 0, run->job->control);
    for (int i = 0; i < VARIANTS; ++i) {
        variant_t *variant = &run->variants[i];
        uint64_t mine[2] = {variant->launches, variant->copies}, all[2];

        if (!is_measured(run, i)) {
            continue;
        }
        MPI_Reduce(root ? MPI_IN_PLACE : variant->samples, variant->samples, run->samples,
                   MPI_DOUBLE, MPI_MAX, 0, run->job->control);
        MPI_Reduce(mine, all, 2, MPI_UINT64_T, MPI_SUM, 0, run->job->control);
        if (root) {
            variant->launches = all[0];
            variant->copies = all[1];
            bench_times_summarise(variant->samples, run->samples, &variant->times);
        }
    }
}

/* Measure and print an exchange. @p by_hand has the messages of a collective, or is NULL. */
static void measure(run_t *run, exchange_t *by_hand)
{
    const size_t room =
        sizeof(double) * (size_t) run->options->iterations * (size_t) run->options->burst;
    const exchange_t *messages = NULL == by_hand ? &run->call : by_hand;
    const bool is_pattern = NULL != run->call.pattern;

    exchange_open_one(&run->one, messages, run->on_gpu);
    if (is_pattern) {
        exchange_open_contiguous(&run->contiguous, &run->call, run->on_gpu);
    }
    run->samples = 0;
    run->failure[0] = '\0';
    memset(run->variants, 0, sizeof(run->variants));
    run->variants[CALL].exchange = &run->call;
    run->variants[BY_HAND].exchange = by_hand;
    run->variants[BY_HAND].by_hand = true;
    run->variants[CONTIGUOUS].exchange = is_pattern ? &run->contiguous : NULL;
    run->variants[ONE].exchange = &run->one;
    for (int i = 0; i < VARIANTS; ++i) {
        run->variants[i].samples = bench_alloc(room);
    }
    bench_output_progress(run->name, 0, run->options->iterations, run->output);
    iterate_all(run);
    reduce_all(run, messages);
    if (0 == run->sums[0]) {
        run->sums[0] = 8 * run->call.block; /* a message to oneself */
    }
    if (0 == run->job->rank) {
        print_row(run);
    }
    for (int i = 0; i < VARIANTS; ++i) {
        free(run->variants[i].samples);
    }
    exchange_close(&run->one);
    if (is_pattern) {
        exchange_close(&run->contiguous);
    }
}

static void run_collective(run_t *run, const char *name, uint64_t bytes)
{
    const bool is_reduction = 0 == strcmp("allreduce", name) || 0 == strcmp("iallreduce", name);

    name_size(name, bytes, run->name);
    exchange_open_collective(&run->call, name, (size_t) bytes / 8, false, run->job->main_comm,
                             run->on_gpu);
    if (is_reduction) {
        exchange_open_collective(&run->by_hand, name, (size_t) bytes / 8, true, run->job->main_comm,
                                 run->on_gpu);
    }
    measure(run, is_reduction ? &run->by_hand : &run->call);
    if (is_reduction) {
        exchange_close(&run->by_hand);
    }
    exchange_close(&run->call);
}

bool bench_exchanges_run(bench_job_t *job, const bench_options_t *options, bench_output_t *output)
{
    const double begin = bench_now();
    run_t run;

    memset(&run, 0, sizeof(run));
    run.job = job;
    run.options = options;
    run.output = output;
    run.on_gpu = options->send_on_gpu;
    if (0 == job->rank) {
        print_head(&run);
    }
    for (size_t i = 0; i < exchange_pattern_count; ++i) {
        if (is_wanted(options->exchange, exchange_patterns[i].name)) {
            snprintf(run.name, sizeof(run.name), "%s", exchange_patterns[i].name);
            exchange_open_pattern(&run.call, &exchange_patterns[i], 0, job->main_comm, run.on_gpu);
            measure(&run, NULL == run.call.call ? NULL : &run.call);
            exchange_close(&run.call);
        }
    }
    for (size_t i = 0; i < exchange_collective_count; ++i) {
        for (int size = 0; size < options->size_count; ++size) {
            if (is_wanted(options->exchange, exchange_collectives[i])) {
                run_collective(&run, exchange_collectives[i], options->sizes[size]);
            }
        }
    }
    if (0 == job->rank) {
        print_end(&run, bench_now() - begin);
    }
    return 0 == output->failed;
}
