/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/**
 * @file
 *
 * umrddt_bench: MPI messages in the memory layouts of applications, timed, counted and checked.
 * Plain MPI: it runs on any Open MPI, with and without umrddt. See README.md.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <mpi.h>

#include "bench_defer.h"
#include "bench_exchanges.h"
#include "bench_gpu.h"
#include "bench_lockstep.h"
#include "bench_message.h"
#include "bench_options.h"
#include "bench_output.h"
#include "bench_run.h"
#include "bench_schemes.h"
#include "bench_steady.h"
#include "bench_util.h"
#include "layouts.h"

#define EXIT_WRONG 1
#define EXIT_USAGE 2

#define ERROR_ROOM (LAYOUT_ERROR + 64)

/* Is the message of this layout within --min-bytes and --max-bytes? */
static bool fits(const bench_options_t *options, const bench_layout_t *layout)
{
    return options->min_bytes <= layout->send.bytes && layout->send.bytes <= options->max_bytes;
}

/* Drop the layouts that are too small or too big from the chosen ones; how many stay. */
static size_t narrow_choice(bench_options_t *options)
{
    size_t i = 0;

    while (i < options->layouts.count) {
        bench_layout_t layout;

        bench_chosen_create(&options->layouts.all[i], &layout);
        if (fits(options, &layout)) {
            ++i;
        } else {
            bench_chosen_drop(&options->layouts, i);
        }
        bench_layout_destroy(&layout);
    }
    return options->layouts.count;
}

static void list_layouts(const bench_options_t *options)
{
    size_t i;

    bench_output_list_head();
    for (i = 0; i < options->layouts.count; ++i) {
        bench_layout_t layout;

        bench_chosen_create(&options->layouts.all[i], &layout);
        bench_output_list(options->layouts.all[i].name, &layout);
        bench_layout_destroy(&layout);
    }
}

/* --list. Sizes are those of MPI datatypes, and MPI_Init ends a process in which it fails. So a
 * child lists them, except in a job of mpirun; without MPI there are the names only. */
static void list_with_mpi(bench_options_t *options)
{
    int rank;

    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (0 == rank) {
        narrow_choice(options);
        list_layouts(options);
    }
    MPI_Finalize();
}

static void list_or_name_layouts(bench_options_t *options)
{
    int status = -1;
    pid_t child;

    fflush(NULL);
    child = NULL == getenv("PMIX_RANK") ? fork() : 0;
    if (0 == child) {
        list_with_mpi(options);
        exit(0);
    }
    if (0 > child || child != waitpid(child, &status, 0) || 0 != status) {
        fprintf(stderr, "umrddt_bench: MPI does not start here, so the list has no sizes\n");
        for (size_t i = 0; i < options->layouts.count; ++i) {
            printf("%s\n", options->layouts.all[i].name);
        }
    }
}

/* Minimum size of a non-contiguous message that must use the scheme of --require-scheme. */
static uint64_t required_from(const bench_options_t *options)
{
    uint64_t bytes = 0;

    if (options->has_require_min_bytes) {
        return options->require_min_bytes;
    }
    return bench_cvar_read("pml_umrddt_min_size", &bytes) ? bytes : 0;
}

/* --require-steady: results of the layouts that used UMR, on rank 0. */
typedef struct steady_t {
    bench_key_caps_t caps;
    int checked;
    int right;
    const char **more; /* names of those that need more than one write */
    uint64_t *writes;
    int more_count;
} steady_t;

static void steady_open(steady_t *steady, const bench_options_t *options)
{
    memset(steady, 0, sizeof(*steady));
    steady->caps.entries = options->key_entries;
    steady->caps.stride = options->key_stride;
    steady->more = bench_alloc(options->layouts.count * sizeof(char *));
    steady->writes = bench_alloc(options->layouts.count * sizeof(uint64_t));
}

static void steady_close(steady_t *steady)
{
    free(steady->more);
    free(steady->writes);
}

static void steady_row(steady_t *steady, FILE *file, const bench_result_t *result, uint64_t writes)
{
    char text[128];

    if (0 != strcmp("umr", result->scheme)) {
        return;
    }
    ++steady->checked;
    if (bench_steady_check(result, writes, text, sizeof(text))) {
        ++steady->right;
    } else {
        fprintf(file, "  NOT STEADY %s: %s\n", result->name, text);
    }
    if (1 < writes) {
        steady->more[steady->more_count] = result->name;
        steady->writes[steady->more_count++] = writes;
    }
}

/* Print the summary. @return true if at least one layout used UMR, and all of them were steady */
static bool steady_end(const steady_t *steady, FILE *file)
{
    int i;

    fprintf(file, "# steady: %d of %d layouts that used umr\n", steady->right, steady->checked);
    if (0 < steady->more_count) {
        fprintf(file, "# more pieces than the %llu entries of an mkey, so more writes are correct:",
                (unsigned long long) steady->caps.entries);
        for (i = 0; i < steady->more_count; ++i) {
            fprintf(file, " %s %llu", steady->more[i], (unsigned long long) steady->writes[i]);
        }
        fprintf(file, "\n");
    }
    return 0 < steady->checked && steady->right == steady->checked;
}

/* Time the packing of a message alone, at rank 0 while the others wait. */
static void measure_breakdown(const bench_job_t *job, const bench_layout_t *layout,
                              bench_result_t *result)
{
    if (0 == job->rank && 0 == strcmp(result->requested, result->scheme)) {
        const char *why = bench_breakdown_measure(layout, result->scheme, &result->breakdown);

        result->has_breakdown = NULL == why;
        if (NULL != why) {
            fprintf(stderr, "umrddt_bench: --breakdown: not available for %s: %s\n", result->name,
                    why);
        }
    }
    MPI_Barrier(job->control);
}

/* --auto-warmup: untimed messages with auto, so that mkeys and registrations exist before the first
 * round. @return false: a message was wrong */
static bool auto_warmup(bench_job_t *job, const bench_options_t *options, bench_output_t *output,
                        const char *name, const bench_layout_t *layout, bench_buffers_t *buffers)
{
    bench_options_t all = *options;
    bench_result_t result;

    all.burst =
        options->auto_warmup < BENCH_WARMUP_BURST ? options->auto_warmup : BENCH_WARMUP_BURST;
    all.warmup = 0;
    all.iterations = options->auto_warmup / all.burst;
    all.max_seconds = BENCH_WARMUP_SECONDS * options->max_seconds;
    bench_schemes_comm("auto", options->pattern, &job->main_comm);
    bench_run(job, &all, name, layout, buffers, bench_output_progress, output, &result);
    MPI_Comm_free(&job->main_comm);
    result.requested = "auto";
    if (result.failed && 0 == job->rank) {
        bench_output_row(output, &result); /* correct results are not printed */
    }
    return !result.failed;
}

/* Run a layout with each scheme of --schemes. Each round begins with another scheme, because the
 * state of the machine depends on the previous message. @return the exit status */
static int run_schemes(bench_job_t *job, const bench_options_t *options, bench_output_t *output,
                       bench_schemes_table_t *table, const char *name, const bench_layout_t *layout)
{
    const MPI_Comm main_comm = job->main_comm;
    bench_buffers_t buffers;
    int turn, status = 0;

    /* Filling and checking arrays of gigabytes takes longer than the messages. */
    bench_buffers_create(&buffers, options, layout);
    if (0 < options->auto_warmup && bench_cvar_can_be("pml_umrddt_scheme", "auto")
        && !auto_warmup(job, options, output, name, layout, &buffers)) {
        status = EXIT_WRONG;
        bench_buffers_destroy(&buffers);
        bench_buffers_create(&buffers, options, layout);
    }
    for (turn = 0; turn < options->rounds * options->schemes.count; ++turn) {
        const int round = turn / options->schemes.count;
        const int which = (turn + round) % options->schemes.count;
        bench_result_t result;

        if (!bench_cvar_can_be("pml_umrddt_scheme", options->schemes.name[which])) {
            memset(&result, 0, sizeof(result));
            result.name = name;
            result.bytes = layout->send.bytes;
            result.scheme = "none";
            if (0 == job->rank) {
                bench_schemes_table_add(table, round, which, &result);
            }
            continue; /* this release lacks the scheme */
        }
        bench_schemes_comm(options->schemes.name[which], options->pattern, &job->main_comm);
        bench_run(job, options, name, layout, &buffers, bench_output_progress, output, &result);
        MPI_Comm_free(&job->main_comm);
        if (result.failed) {
            /* the next scheme starts with correct buffers */
            bench_buffers_destroy(&buffers);
            bench_buffers_create(&buffers, options, layout);
        }
        result.requested = options->schemes.name[which];
        if (options->breakdown && 0 == strncmp("pack-", result.requested, 5)) {
            measure_breakdown(job, layout, &result);
        }
        status = result.failed ? EXIT_WRONG : status;
        if (0 == job->rank) {
            bench_output_row(output, &result);
            bench_schemes_table_add(table, round, which, &result);
        }
    }
    bench_buffers_destroy(&buffers);
    job->main_comm = main_comm;
    return status;
}

/* Run all layouts. Rank 0 prints. @return the exit status */
static int run_all(bench_job_t *job, const bench_options_t *options, bench_output_t *output)
{
    const uint64_t from = required_from(options);
    const double begin = bench_now();
    const char **elsewhere = bench_alloc(options->layouts.count * sizeof(char *));
    size_t elsewhere_count = 0, i;
    bench_schemes_table_t *schemes = bench_schemes_table_new(&options->schemes);
    steady_t steady;
    int status = 0;

    steady_open(&steady, options);
    for (i = 0; i < options->layouts.count; ++i) {
        const bench_chosen_t *chosen = &options->layouts.all[i];
        bench_layout_t layout;
        bench_buffers_t buffers;
        bench_result_t result;
        uint64_t writes = 0;

        bench_chosen_create(chosen, &layout);
        if (options->contiguous_receiver) {
            bench_layout_pack_receiver(&layout);
        }
        if (options->require_steady) {
            writes = bench_steady_writes(&layout, &steady.caps);
        }
        if (0 < options->schemes.count) {
            int wrong = run_schemes(job, options, output, schemes, chosen->name, &layout);

            status = 0 != wrong ? wrong : status;
            bench_layout_destroy(&layout);
            continue;
        }
        bench_buffers_create(&buffers, options, &layout);
        bench_run(job, options, chosen->name, &layout, &buffers, bench_output_progress, output,
                  &result);
        bench_buffers_destroy(&buffers);
        bench_layout_destroy(&layout);
        status = result.failed ? EXIT_WRONG : status;
        if (0 == job->rank) {
            bench_output_row(output, &result);
            if (options->require_steady) {
                steady_row(&steady, output->table, &result, writes);
            }
            if (NULL != options->require_scheme && result.noncontiguous && from <= result.bytes
                && 0 != strcmp(options->require_scheme, result.scheme)) {
                elsewhere[elsewhere_count++] = chosen->name;
            }
        }
    }
    if (0 == job->rank) {
        bench_output_end(output, bench_now() - begin);
        if (0 < options->schemes.count) {
            size_t others = bench_schemes_table_print(schemes, output->table);

            if (0 < others && NULL != options->require_scheme) {
                fprintf(output->table, "# did not use the requested scheme: %zu\n", others);
                status = EXIT_WRONG;
            }
        }
        if (0 < elsewhere_count) {
            fprintf(output->table, "# did not use scheme %s (non-contiguous, at least %llu bytes):",
                    options->require_scheme, (unsigned long long) from);
            for (i = 0; i < elsewhere_count; ++i) {
                fprintf(output->table, " %s", elsewhere[i]);
            }
            fprintf(output->table, "\n");
            status = EXIT_WRONG;
        }
        if (options->require_steady && !steady_end(&steady, output->table)) {
            status = EXIT_WRONG;
        }
        if (!bench_output_close(output)) {
            fprintf(stderr, "umrddt_bench: the results could not be written completely\n");
            status = EXIT_USAGE;
        }
    }
    bench_schemes_table_free(schemes);
    steady_close(&steady);
    free(elsewhere);
    MPI_Bcast(&status, 1, MPI_INT, 0, job->control);
    return status;
}

/* Each process its GPU, if it needs one; whether all have one. */
static bool take_gpus(const bench_options_t *options, char *error)
{
    const char *why = NULL;
    int turn, lacks, lacking = 0;
    MPI_Comm machine;

    if (!options->send_on_gpu && !options->recv_on_gpu) {
        return true;
    }
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
    MPI_Comm_rank(machine, &turn);
    MPI_Comm_free(&machine);
    why = bench_gpu_open(turn);
    lacks = NULL != why;
    MPI_Allreduce(&lacks, &lacking, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    snprintf(error, ERROR_ROOM, "--memory %s: %s; umrddt_sim --gpus 2 provides software GPUs",
             options->memory, NULL == why ? "a process has no GPU" : why);
    return 0 == lacking;
}

/* All checks before the first message; the result is the same on every rank. */
static bool prepare(bench_options_t *options, bench_output_t *output, char *error)
{
    int rank, size, layouts, right = 1;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!take_gpus(options, error)) {
        return false;
    }
    layouts = (int) narrow_choice(options);
    if (NULL != options->exchange) {
        if (2 > size) {
            snprintf(error, ERROR_ROOM, "--exchange requires at least 2 ranks");
            return false;
        }
    } else if (0 == layouts) {
        snprintf(error, ERROR_ROOM, "no layout is between --min-bytes and --max-bytes");
        return false;
    }
    if (NULL == options->exchange && 0 != size % 2) {
        snprintf(error, ERROR_ROOM,
                 "the number of ranks must be even (rank 2i exchanges with rank 2i+1), not %d",
                 size);
        return false;
    }
    if (0 == rank) {
        right = bench_output_open(output, options, layouts, error, ERROR_ROOM);
    }
    MPI_Bcast(&right, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return 0 != right;
}

/* --exchange. @return the exit status */
static int run_exchanges(bench_job_t *job, const bench_options_t *options, bench_output_t *output)
{
    int status = bench_exchanges_run(job, options, output) ? 0 : EXIT_WRONG;

    if (0 == job->rank && !bench_output_close(output)) {
        fprintf(stderr, "umrddt_bench: the results could not be written completely\n");
        status = EXIT_USAGE;
    }
    MPI_Bcast(&status, 1, MPI_INT, 0, job->control);
    return status;
}

static int run(bench_options_t *options, int rank)
{
    char error[ERROR_ROOM] = "";
    bench_output_t output;
    bench_job_t job;
    int status;

    memset(&output, 0, sizeof(output));
    if (!prepare(options, &output, error)) {
        if (0 == rank) {
            fprintf(stderr, "umrddt_bench: %s\n", error);
            bench_options_usage(stderr);
        }
        return EXIT_USAGE;
    }
    bench_job_open(&job, options->pattern);
    if (NULL != options->exchange) {
        status = run_exchanges(&job, options, &output);
        bench_job_close(&job);
        return status;
    }
    if (0 == rank) {
        bench_output_begin(&output, options, job.size);
    }
    status = run_all(&job, options, &output);
    bench_job_close(&job);
    return status;
}

int main(int argc, char **argv)
{
    char error[ERROR_ROOM] = "";
    const char *job_rank = getenv("PMIX_RANK");
    bench_options_t options;
    int rank, status = 0;
    bool is_first;

    if (1 < argc && 0 == strcmp(argv[1], BENCH_DEFER_JOB)) {
        return bench_defer_job_main(argc, argv);
    }
    if (1 < argc && 0 == strcmp(argv[1], BENCH_MESSAGE_JOB)) {
        return bench_message_job_main(argc, argv);
    }
    if (1 < argc && 0 == strcmp(argv[1], BENCH_LOCKSTEP_JOB)) {
        return bench_lockstep_job_main(argc, argv);
    }
    if (bench_defer_wanted(argc, argv)) {
        return bench_defer_main(argc, argv);
    }
    /* Errors of the command line and help need no MPI; one process prints them. */
    is_first = NULL == job_rank || 0 == atoi(job_rank);
    if (!bench_options_parse(argc, argv, &options, error, sizeof(error))) {
        if (is_first) {
            fprintf(stderr, "umrddt_bench: %s\n", error);
            bench_options_usage(stderr);
        }
        status = EXIT_USAGE;
    } else if (options.help || options.version) {
        if (is_first && options.help) {
            bench_options_help(stdout);
        } else if (is_first) {
            printf("umrddt_bench %s\n", UMRDDT_VERSION);
        }
    } else if (options.list) {
        list_or_name_layouts(&options);
    } else {
        MPI_Init(&argc, &argv);
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        status = run(&options, rank);
        MPI_Finalize();
    }
    bench_options_destroy(&options);
    return status;
}
