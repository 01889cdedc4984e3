/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "bench_output.h"
#include "bench_util.h"

static const char *const scheme_names[BENCH_SCHEMES] = {
    "umr",       "direct",   "ipc",   "pack-gdr", "pack-staged",
    "pack-host", "fallback", "mixed", "staged",   "host"};

/* The counters: the name in the files, and the heading and width of the column in the table. */
static const struct {
    int pvar;
    const char *name;
    const char *heading; /* NULL: not in the table */
    int width;
} counter_columns[] = {
    {BENCH_PVAR_KEYS_USED, "mkeys_per_message", "mkeys", 9},
    {BENCH_PVAR_KEYS_MAPPED, "umr_per_message", "umr/msg", 9},
    {BENCH_PVAR_WRITES_POSTED, "rdma_per_message", "rdma/msg", 9},
    {BENCH_PVAR_CONTROL_BYTES, "ctrl_bytes_per_message", "ctrl B/msg", 10},
    {BENCH_PVAR_MEMORY_QUERIES, "queries_per_message", "queries/msg", 11},
    {BENCH_PVAR_KEY_ENTRIES, "key_entries_per_message", NULL, 0},
    {BENCH_PVAR_GPU_LAUNCHES, "gpu_launches_per_message", NULL, 0},
    {BENCH_PVAR_GPU_DRIVER_COPIES, "gpu_driver_copies_per_message", NULL, 0},
};

#define COUNTER_COLUMNS (sizeof(counter_columns) / sizeof(counter_columns[0]))

static FILE *open_file(const char *path, char *error, size_t error_room)
{
    FILE *file = 0 == strcmp(path, "-") ? stdout : fopen(path, "w");

    if (NULL == file) {
        snprintf(error, error_room, "cannot write %s: %s", path, strerror(errno));
    }
    return file;
}

bool bench_output_open(bench_output_t *output, const bench_options_t *options, int layouts,
                       char *error, size_t error_room)
{
    memset(output, 0, sizeof(*output));
    output->layouts = layouts;
    output->compare = options->compare;
    output->bare = options->bare;
    output->breakdown = options->breakdown;
    output->progress = BENCH_PROGRESS_ALWAYS == options->progress
                       || (BENCH_PROGRESS_AUTO == options->progress && isatty(STDERR_FILENO));
    if (NULL != options->csv
        && NULL == (output->csv = open_file(options->csv, error, error_room))) {
        return false;
    }
    if (NULL != options->json
        && NULL == (output->json = open_file(options->json, error, error_room))) {
        return false;
    }
    output->table = stdout == output->csv || stdout == output->json ? stderr : stdout;
    return true;
}

void bench_output_json_head(const bench_output_t *output, const bench_options_t *options, int ranks,
                            const char *list)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING], *stop;
    int length;

    MPI_Get_library_version(library, &length);
    /* the first field, as it may hold characters that JSON would want escaped */
    stop = library + strcspn(library, ",\"\\\n");
    *stop = '\0';
    fprintf(output->json,
            "{\n  \"program\": \"umrddt_bench\",\n  \"version\": \"%s\",\n  \"mpi\": \"%s\",\n"
            "  \"ranks\": %d,\n  \"memory\": \"%s\",\n  \"warmup\": %d,\n"
            "  \"iterations\": %d,\n  \"max_seconds_per_layout\": %g,\n  \"%s\": [",
            UMRDDT_VERSION, library, ranks, options->memory, options->warmup, options->iterations,
            options->max_seconds, list);
}

void bench_output_begin(bench_output_t *output, const bench_options_t *options, int ranks)
{
    size_t i;

    fprintf(output->table, "# umrddt_bench %s: %d ranks, memory %s, %d warm-ups, %d iterations",
            UMRDDT_VERSION, ranks, options->memory, options->warmup, options->iterations);
    if (0.0 < options->max_seconds) {
        fprintf(output->table, ", at most about %g s a layout", options->max_seconds);
    }
    fprintf(
        output->table,
        "\n# times: one way, in microseconds; counters: per message, both processes together\n");
    fprintf(output->table, "%-25s %9s %13s %-11s %5s %10s %10s %10s", "layout", "bytes", "blocks",
            "scheme", "iter", "median", "min", "p95");
    for (i = 0; i < COUNTER_COLUMNS; ++i) {
        if (NULL != counter_columns[i].heading) {
            fprintf(output->table, " %*s", counter_columns[i].width, counter_columns[i].heading);
        }
    }
    if (output->compare) {
        fprintf(output->table, " %10s %9s", "base med.", "speedup");
    }
    if (output->bare) {
        fprintf(output->table, " %10s %9s %10s %9s", "bare med.", "over bare", "contiguous",
                "/contig.");
    }
    fprintf(output->table, "  %s\n", "verified");
    fflush(output->table);

    if (NULL != output->csv) {
        fprintf(output->csv, "layout,bytes,send_blocks,recv_blocks,scheme,iterations,median_us,"
                             "min_us,p95_us");
        for (i = 0; i < COUNTER_COLUMNS; ++i) {
            fprintf(output->csv, ",%s", counter_columns[i].name);
        }
        fprintf(output->csv,
                ",base_median_us,base_min_us,base_p95_us,speedup,verified,"
                "failure,bare_median_us,bare_min_us,bare_p95_us,"
                "contiguous_median_us,contiguous_min_us,contiguous_p95_us%s%s\n",
                0 < options->schemes.count ? ",requested" : "",
                options->breakdown ? ",pack_us,out_us,in_us,unpack_us" : "");
    }
    if (NULL != output->json) {
        bench_output_json_head(output, options, ranks, "layouts");
    }
}

/* Describe an error in one sentence. */
static void describe_failure(const bench_failure_t *failure, char *text, size_t room)
{
    static const char *const kinds[] = {
        [BENCH_FAILURE_DATA] = "data byte",
        [BENCH_FAILURE_GAP] = "gap byte",
        [BENCH_FAILURE_SEND_GAP] = "gap byte of the send buffer",
    };
    char when[64], what[128];

    if (INT_MAX == failure->iteration) {
        snprintf(when, sizeof(when), "after the last iteration");
    } else if (0 >= failure->iteration) {
        snprintf(when, sizeof(when), "in a warm-up");
    } else {
        snprintf(when, sizeof(when), "iteration %d", failure->iteration);
    }
    if (BENCH_FAILURE_COUNT == failure->kind) {
        snprintf(what, sizeof(what), "the count of the status is %" PRId64 " instead of %" PRId64,
                 failure->got, failure->expected);
    } else {
        snprintf(what, sizeof(what), "%s at offset %" PRId64 ": expected 0x%02x and got 0x%02x",
                 kinds[failure->kind], failure->offset, (unsigned) failure->expected,
                 (unsigned) failure->got);
    }
    snprintf(text, room, "rank %d %s%s: %s; %" PRId64 " wrong there in all", failure->rank, when,
             bench_variant_names[failure->variant], what, failure->times);
}

static void write_csv_times(FILE *file, const bench_result_t *result, int variant)
{
    const bench_times_t *times = &result->times[variant];

    if (result->ran[variant]) {
        fprintf(file, ",%.3f,%.3f,%.3f", times->median, times->min, times->p95);
    } else {
        fprintf(file, ",,,");
    }
}

/* The time of a packed message without its parts; negative if they overlap. */
static double rest_of(const bench_result_t *result)
{
    const bench_breakdown_t *breakdown = &result->breakdown;

    return result->times[BENCH_VARIANT_MAIN].median - breakdown->pack - breakdown->out
           - breakdown->in - breakdown->unpack;
}

static void write_csv_breakdown(FILE *file, const bench_result_t *result)
{
    const bench_breakdown_t *breakdown = &result->breakdown;

    if (result->has_breakdown) {
        fprintf(file, ",%.3f,%.3f,%.3f,%.3f", breakdown->pack, breakdown->out, breakdown->in,
                breakdown->unpack);
    } else {
        fprintf(file, ",,,,");
    }
}

static void write_breakdown(FILE *file, const bench_result_t *result)
{
    const bench_breakdown_t *breakdown = &result->breakdown;
    const double percent = 100.0 / result->times[BENCH_VARIANT_MAIN].median;

    fprintf(file, "  breakdown, each part alone, us: pack %.2f (%.0f %%)", breakdown->pack,
            breakdown->pack * percent);
    if (0.0 < breakdown->out) {
        fprintf(file, ", to pinned memory %.2f (%.0f %%), from it %.2f (%.0f %%)", breakdown->out,
                breakdown->out * percent, breakdown->in, breakdown->in * percent);
    }
    fprintf(file, ", unpack %.2f (%.0f %%); ", breakdown->unpack, breakdown->unpack * percent);
    if (0.0 <= rest_of(result)) {
        fprintf(file, "rest %.2f\n", rest_of(result));
    } else {
        fprintf(file, "sum %.2f more than the message\n", -rest_of(result));
    }
}

static void write_csv(FILE *file, bool breakdown, const bench_result_t *result, const char *failure)
{
    const bench_times_t *times = &result->times[BENCH_VARIANT_MAIN];
    const bench_times_t *base = &result->times[BENCH_VARIANT_BASE];
    size_t i;

    fprintf(file, "%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%s,%d,%.3f,%.3f,%.3f", result->name,
            result->bytes, result->send_blocks, result->recv_blocks, result->scheme,
            result->iterations, times->median, times->min, times->p95);
    for (i = 0; i < COUNTER_COLUMNS; ++i) {
        if (result->has[counter_columns[i].pvar]) {
            fprintf(file, ",%.3f", result->per_message[counter_columns[i].pvar]);
        } else {
            fprintf(file, ",");
        }
    }
    if (result->ran[BENCH_VARIANT_BASE]) {
        fprintf(file, ",%.3f,%.3f,%.3f,%.3f", base->median, base->min, base->p95,
                base->median / times->median);
    } else {
        fprintf(file, ",,,,");
    }
    fprintf(file, ",%s,\"%s\"", result->failed ? "FAILED" : "yes", failure);
    write_csv_times(file, result, BENCH_VARIANT_BARE);
    write_csv_times(file, result, BENCH_VARIANT_CONTIGUOUS);
    if (NULL != result->requested) {
        fprintf(file, ",%s", result->requested);
    }
    if (breakdown) {
        write_csv_breakdown(file, result);
    }
    fprintf(file, "\n");
    fflush(file);
}

static void write_json_times(FILE *file, const char *name, const bench_times_t *times)
{
    fprintf(file, ", \"%s\": {\"median\": %.3f, \"min\": %.3f, \"p95\": %.3f}", name, times->median,
            times->min, times->p95);
}

static void write_json(FILE *file, bool first, const bench_result_t *result, const char *failure)
{
    size_t i;

    fprintf(file,
            "%s\n    {\"layout\": \"%s\", \"bytes\": %" PRIu64 ", \"send_blocks\": %" PRIu64
            ", \"recv_blocks\": %" PRIu64 ", \"scheme\": \"%s\", \"iterations\": %d",
            first ? "" : ",", result->name, result->bytes, result->send_blocks, result->recv_blocks,
            result->scheme, result->iterations);
    if (NULL != result->requested) {
        fprintf(file, ", \"requested\": \"%s\"", result->requested);
    }
    write_json_times(file, "us", &result->times[BENCH_VARIANT_MAIN]);
    if (result->ran[BENCH_VARIANT_BASE]) {
        write_json_times(file, "base_us", &result->times[BENCH_VARIANT_BASE]);
    }
    if (result->ran[BENCH_VARIANT_BARE]) {
        write_json_times(file, "bare_us", &result->times[BENCH_VARIANT_BARE]);
    }
    if (result->ran[BENCH_VARIANT_CONTIGUOUS]) {
        write_json_times(file, "contiguous_us", &result->times[BENCH_VARIANT_CONTIGUOUS]);
    }
    for (i = 0; i < COUNTER_COLUMNS; ++i) {
        if (result->has[counter_columns[i].pvar]) {
            fprintf(file, ", \"%s\": %.3f", counter_columns[i].name,
                    result->per_message[counter_columns[i].pvar]);
        }
    }
    if (result->has_breakdown) {
        const bench_breakdown_t *breakdown = &result->breakdown;

        fprintf(
            file,
            ", \"breakdown_us\": {\"pack\": %.3f, \"out\": %.3f, \"in\": %.3f, \"unpack\": %.3f}",
            breakdown->pack, breakdown->out, breakdown->in, breakdown->unpack);
    }
    fprintf(file, ", \"verified\": %s", result->failed ? "false" : "true");
    if (result->failed) {
        fprintf(file, ", \"failure\": \"%s\"", failure);
    }
    fprintf(file, "}");
    fflush(file);
}

static void count_scheme(bench_output_t *output, const char *scheme)
{
    size_t i;

    for (i = 0; i < BENCH_SCHEMES; ++i) {
        output->schemes[i] += 0 == strcmp(scheme, scheme_names[i]);
    }
}

/* Count a result of --compare. */
static void count_against(bench_output_t *output, const bench_result_t *result)
{
    bool handled = 0 != strcmp("host", result->scheme) && 0 != strcmp("staged", result->scheme);
    double ratio =
        result->times[BENCH_VARIANT_MAIN].median / result->times[BENCH_VARIANT_BASE].median;

    ++output->against[handled].count;
    output->against[handled].slower += ratio > (handled ? 1.0 : BENCH_OUTPUT_PASSED);
    if (output->against[handled].worst < ratio) {
        output->against[handled].worst = ratio;
        output->against[handled].name = result->name;
    }
}

static void print_against(const bench_output_t *output)
{
    static const char *const what[2] = {"passed through", "handled"};
    static const char *const more[2] = {"by more than 2 %", "at all"};

    for (int i = 0; i < 2; ++i) {
        if (0 < output->against[i].count) {
            fprintf(
                output->table,
                "# compared with the base PML alone, by medians: of %d layouts that were %s, %d "
                "slower %s; slowest %.2f times as long (%s)\n",
                output->against[i].count, what[i], output->against[i].slower, more[i],
                output->against[i].worst, output->against[i].name);
        }
    }
}

void bench_output_clear_progress(bench_output_t *output)
{
    if (output->progress_shown) {
        fprintf(stderr, "\r%*s\r", 78, "");
        fflush(stderr);
        output->progress_shown = false;
    }
}

/* --bare: the difference to the bare operation, and the ratio to a contiguous message. */
static void write_bare(FILE *file, const bench_result_t *result)
{
    const double median = result->times[BENCH_VARIANT_MAIN].median;
    const double contiguous = result->times[BENCH_VARIANT_CONTIGUOUS].median;

    if (result->ran[BENCH_VARIANT_BARE]) {
        const double bare = result->times[BENCH_VARIANT_BARE].median;

        fprintf(file, " %10.2f %9.2f", bare, median - bare);
    } else {
        fprintf(file, " %10s %9s", "-", "-");
    }
    fprintf(file, " %10.2f %8.3gx", contiguous, median / contiguous);
}

void bench_output_row(bench_output_t *output, const bench_result_t *result)
{
    const bench_times_t *times = &result->times[BENCH_VARIANT_MAIN];
    char blocks[48], failure[256] = "";
    FILE *file = output->table;
    size_t i;

    bench_output_clear_progress(output);
    if (result->send_blocks == result->recv_blocks) {
        snprintf(blocks, sizeof(blocks), "%" PRIu64, result->send_blocks);
    } else {
        snprintf(blocks, sizeof(blocks), "%" PRIu64 ":%" PRIu64, result->send_blocks,
                 result->recv_blocks);
    }
    fprintf(file, "%-25s %9" PRIu64 " %13s %-11s %5d %10.2f %10.2f %10.2f", result->name,
            result->bytes, blocks, result->scheme, result->iterations, times->median, times->min,
            times->p95);
    for (i = 0; i < COUNTER_COLUMNS; ++i) {
        if (NULL == counter_columns[i].heading) {
            continue;
        }
        if (result->has[counter_columns[i].pvar]) {
            fprintf(file, " %*.*f", counter_columns[i].width,
                    BENCH_PVAR_CONTROL_BYTES == counter_columns[i].pvar ? 0 : 1,
                    result->per_message[counter_columns[i].pvar]);
        } else {
            fprintf(file, " %*s", counter_columns[i].width, "-");
        }
    }
    if (result->ran[BENCH_VARIANT_BASE]) {
        const double base = result->times[BENCH_VARIANT_BASE].median;

        fprintf(file, " %10.2f %8.3gx", base, base / times->median);
    }
    if (output->bare) {
        write_bare(file, result);
    }
    fprintf(file, "  %s", result->failed ? "FAILED" : "yes");
    if (NULL != result->requested && 0 != strcmp(result->requested, result->scheme)) {
        fprintf(file, " (requested: %s)", result->requested);
    }
    fprintf(file, "\n");
    if (result->failed) {
        describe_failure(&result->failure, failure, sizeof(failure));
        fprintf(file, "  FAILED %s: %s\n", result->name, failure);
    }
    if (result->has_breakdown) {
        write_breakdown(file, result);
    }
    fflush(file);

    if (NULL != output->csv) {
        write_csv(output->csv, output->breakdown, result, failure);
    }
    if (NULL != output->json) {
        write_json(output->json, 0 == output->run, result, failure);
    }
    ++output->run;
    output->failed += result->failed;
    count_scheme(output, result->scheme);
    if (result->ran[BENCH_VARIANT_BASE]) {
        count_against(output, result);
    }
}

void bench_output_end(bench_output_t *output, double seconds)
{
    size_t i;

    bench_output_clear_progress(output);
    fprintf(output->table,
            "# %d layouts run, %d verified, %d failed, in %.0f s; by scheme:", output->run,
            output->run - output->failed, output->failed, seconds);
    for (i = 0; i < BENCH_SCHEMES; ++i) {
        if (0 < output->schemes[i]) {
            fprintf(output->table, " %s %d", scheme_names[i], output->schemes[i]);
        }
    }
    fprintf(output->table, "\n");
    print_against(output);
    if (NULL != output->json) {
        fprintf(output->json, "\n  ],\n  \"run\": %d,\n  \"verified\": %d,\n  \"failed\": %d\n}\n",
                output->run, output->run - output->failed, output->failed);
    }
}

bool bench_output_close(bench_output_t *output)
{
    FILE *files[3] = {output->table, output->csv, output->json};
    bool right = true;
    int i;

    for (i = 0; i < 3; ++i) {
        if (NULL != files[i]) {
            right = 0 == fflush(files[i]) && !ferror(files[i]) && right;
        }
    }
    for (i = 1; i < 3; ++i) {
        if (NULL != files[i] && stdout != files[i]) {
            right = 0 == fclose(files[i]) && right;
        }
    }
    return right;
}

void bench_output_progress(const char *name, int done, int of, void *context)
{
    bench_output_t *output = context;

    if (output->progress) {
        fprintf(stderr, "\r[%d/%d] %-26s %5d of %d iterations ", output->run + 1, output->layouts,
                name, done, of);
        fflush(stderr);
        output->progress_shown = true;
    }
}

void bench_output_list_head(void)
{
    printf("%-25s %9s %11s %11s %12s %12s\n", "layout", "bytes", "send blocks", "recv blocks",
           "send array", "recv array");
}

void bench_output_list(const char *name, const bench_layout_t *layout)
{
    printf("%-25s %9" PRIu64 " %11zu %11zu %12" PRIu64 " %12" PRIu64 "\n", name, layout->send.bytes,
           layout->send.piece_count, layout->recv.piece_count, layout->send.array_bytes,
           layout->recv.array_bytes);
}
