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

/* The counters, their names in the files, and whether they have a column in the table, too. */
static const struct {
    int pvar;
    const char *name;
    bool shown;
} counter_columns[] = {
    {BENCH_PVAR_KEYS_USED, "keys_per_message", true},
    {BENCH_PVAR_KEYS_MAPPED, "keys_mapped_per_message", true},
    {BENCH_PVAR_WRITES_POSTED, "writes_per_message", true},
    {BENCH_PVAR_CONTROL_BYTES, "control_bytes_per_message", true},
    {BENCH_PVAR_MEMORY_QUERIES, "memory_queries_per_message", true},
    {BENCH_PVAR_KEY_ENTRIES, "key_entries_per_message", false},
    {BENCH_PVAR_GPU_LAUNCHES, "gpu_launches_per_message", false},
    {BENCH_PVAR_GPU_DRIVER_COPIES, "gpu_driver_copies_per_message", false},
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
    output->floor = options->floor;
    output->parts = options->parts;
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
        "\n# times are one way, in microseconds; keys, writes, control bytes and queries of memory are "
        "for one message, on both sides\n");
    fprintf(output->table, "%-25s %9s %13s %-11s %5s %10s %10s %10s %9s %9s %9s %9s %9s", "layout",
            "bytes", "blocks", "scheme", "iter", "median", "min", "p95", "keys", "mapped", "writes",
            "control", "queries");
    if (output->compare) {
        fprintf(output->table, " %10s %9s", "host med.", "host/this");
    }
    if (output->floor) {
        fprintf(output->table, " %10s %9s %10s %9s", "floor med.", "this-flo.", "contiguous",
                "this/con.");
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
                ",host_median_us,host_min_us,host_p95_us,host_over_this,verified,"
                "failure,floor_median_us,floor_min_us,floor_p95_us,"
                "contiguous_median_us,contiguous_min_us,contiguous_p95_us%s%s\n",
                0 < options->schemes.count ? ",asked" : "",
                options->parts ? ",pack_us,out_us,in_us,unpack_us" : "");
    }
    if (NULL != output->json) {
        char library[MPI_MAX_LIBRARY_VERSION_STRING], *stop;
        int length;

        MPI_Get_library_version(library, &length);
        /* the first field, as it may hold characters that JSON would want escaped */
        stop = library + strcspn(library, ",\"\\\n");
        *stop = '\0';
        fprintf(output->json,
                "{\n  \"program\": \"umrddt_bench\",\n  \"version\": \"%s\",\n  \"mpi\": \"%s\",\n"
                "  \"ranks\": %d,\n  \"memory\": \"%s\",\n  \"warmup\": %d,\n"
                "  \"iterations\": %d,\n  \"max_seconds_per_layout\": %g,\n  \"layouts\": [",
                UMRDDT_VERSION, library, ranks, options->memory, options->warmup,
                options->iterations, options->max_seconds);
    }
}

/* What was wrong, in a sentence. */
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

/* What is missing of a packed message beside its parts; negative where they overlap. */
static double rest_of(const bench_result_t *result)
{
    const bench_parts_t *parts = &result->parts;

    return result->times[BENCH_VARIANT_MAIN].median - parts->pack - parts->out - parts->in
           - parts->unpack;
}

static void write_csv_parts(FILE *file, const bench_result_t *result)
{
    const bench_parts_t *parts = &result->parts;

    if (result->has_parts) {
        fprintf(file, ",%.3f,%.3f,%.3f,%.3f", parts->pack, parts->out, parts->in, parts->unpack);
    } else {
        fprintf(file, ",,,,");
    }
}

static void write_parts(FILE *file, const bench_result_t *result)
{
    const bench_parts_t *parts = &result->parts;
    const double percent = 100.0 / result->times[BENCH_VARIANT_MAIN].median;

    fprintf(file, "  parts of it by themselves, us: pack %.2f (%.0f %%)", parts->pack,
            parts->pack * percent);
    if (0.0 < parts->out) {
        fprintf(file, ", to pinned memory %.2f (%.0f %%), from it %.2f (%.0f %%)", parts->out,
                parts->out * percent, parts->in, parts->in * percent);
    }
    fprintf(file, ", unpack %.2f (%.0f %%); ", parts->unpack, parts->unpack * percent);
    if (0.0 <= rest_of(result)) {
        fprintf(file, "the rest %.2f\n", rest_of(result));
    } else {
        fprintf(file, "together %.2f more than the message\n", -rest_of(result));
    }
}

static void write_csv(FILE *file, bool parts, const bench_result_t *result, const char *failure)
{
    const bench_times_t *times = &result->times[BENCH_VARIANT_MAIN];
    const bench_times_t *host = &result->times[BENCH_VARIANT_HOST];
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
    if (result->ran[BENCH_VARIANT_HOST]) {
        fprintf(file, ",%.3f,%.3f,%.3f,%.3f", host->median, host->min, host->p95,
                host->median / times->median);
    } else {
        fprintf(file, ",,,,");
    }
    fprintf(file, ",%s,\"%s\"", result->failed ? "FAILED" : "yes", failure);
    write_csv_times(file, result, BENCH_VARIANT_FLOOR);
    write_csv_times(file, result, BENCH_VARIANT_CONTIGUOUS);
    if (NULL != result->requested) {
        fprintf(file, ",%s", result->requested);
    }
    if (parts) {
        write_csv_parts(file, result);
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
        fprintf(file, ", \"asked\": \"%s\"", result->requested);
    }
    write_json_times(file, "us", &result->times[BENCH_VARIANT_MAIN]);
    if (result->ran[BENCH_VARIANT_HOST]) {
        write_json_times(file, "host_us", &result->times[BENCH_VARIANT_HOST]);
    }
    if (result->ran[BENCH_VARIANT_FLOOR]) {
        write_json_times(file, "floor_us", &result->times[BENCH_VARIANT_FLOOR]);
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
    if (result->has_parts) {
        const bench_parts_t *parts = &result->parts;

        fprintf(file,
                ", \"parts_us\": {\"pack\": %.3f, \"out\": %.3f, \"in\": %.3f, \"unpack\": %.3f}",
                parts->pack, parts->out, parts->in, parts->unpack);
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

/* Beside the base PML alone. */
static void count_against(bench_output_t *output, const bench_result_t *result)
{
    bool taken = 0 != strcmp("host", result->scheme) && 0 != strcmp("staged", result->scheme);
    double ratio =
        result->times[BENCH_VARIANT_MAIN].median / result->times[BENCH_VARIANT_HOST].median;

    ++output->against[taken].count;
    output->against[taken].slower += ratio > (taken ? 1.0 : BENCH_OUTPUT_LEFT);
    if (output->against[taken].worst < ratio) {
        output->against[taken].worst = ratio;
        output->against[taken].name = result->name;
    }
}

static void print_against(const bench_output_t *output)
{
    static const char *const what[2] = {"left to it", "taken"};
    static const char *const more[2] = {"by more than 2 %", "at all"};

    for (int i = 0; i < 2; ++i) {
        if (0 < output->against[i].count) {
            fprintf(
                output->table,
                "# beside the base PML alone, by medians: of %d layouts that were %s, %d slower "
                "%s; at worst %.2f times as long (%s)\n",
                output->against[i].count, what[i], output->against[i].slower, more[i],
                output->against[i].worst, output->against[i].name);
        }
    }
}

static void clear_progress(bench_output_t *output)
{
    if (output->progress_shown) {
        fprintf(stderr, "\r%*s\r", 78, "");
        fflush(stderr);
        output->progress_shown = false;
    }
}

/* Beside the floor: by how much more; beside one piece: how many times. */
static void write_floor(FILE *file, const bench_result_t *result)
{
    const double median = result->times[BENCH_VARIANT_MAIN].median;
    const double flat = result->times[BENCH_VARIANT_CONTIGUOUS].median;

    if (result->ran[BENCH_VARIANT_FLOOR]) {
        const double floor = result->times[BENCH_VARIANT_FLOOR].median;

        fprintf(file, " %10.2f %9.2f", floor, median - floor);
    } else {
        fprintf(file, " %10s %9s", "-", "-");
    }
    fprintf(file, " %10.2f %8.3gx", flat, median / flat);
}

void bench_output_row(bench_output_t *output, const bench_result_t *result)
{
    const bench_times_t *times = &result->times[BENCH_VARIANT_MAIN];
    char blocks[48], failure[256] = "";
    FILE *file = output->table;
    size_t i;

    clear_progress(output);
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
        if (!counter_columns[i].shown) {
            continue;
        }
        if (result->has[counter_columns[i].pvar]) {
            fprintf(file, " %9.*f", BENCH_PVAR_CONTROL_BYTES == counter_columns[i].pvar ? 0 : 1,
                    result->per_message[counter_columns[i].pvar]);
        } else {
            fprintf(file, " %9s", "-");
        }
    }
    if (result->ran[BENCH_VARIANT_HOST]) {
        const double host = result->times[BENCH_VARIANT_HOST].median;

        fprintf(file, " %10.2f %8.3gx", host, host / times->median);
    }
    if (output->floor) {
        write_floor(file, result);
    }
    fprintf(file, "  %s", result->failed ? "FAILED" : "yes");
    if (NULL != result->requested && 0 != strcmp(result->requested, result->scheme)) {
        fprintf(file, " (asked for: %s)", result->requested);
    }
    fprintf(file, "\n");
    if (result->failed) {
        describe_failure(&result->failure, failure, sizeof(failure));
        fprintf(file, "  FAILED %s: %s\n", result->name, failure);
    }
    if (result->has_parts) {
        write_parts(file, result);
    }
    fflush(file);

    if (NULL != output->csv) {
        write_csv(output->csv, output->parts, result, failure);
    }
    if (NULL != output->json) {
        write_json(output->json, 0 == output->run, result, failure);
    }
    ++output->run;
    output->failed += result->failed;
    count_scheme(output, result->scheme);
    if (result->ran[BENCH_VARIANT_HOST]) {
        count_against(output, result);
    }
}

void bench_output_end(bench_output_t *output, double seconds)
{
    size_t i;

    clear_progress(output);
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
