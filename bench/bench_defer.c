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
 * --defer: runs jobs with umrddt and with the bare base PML in turns, and prints their ratios. They
 * are separate jobs, because within one process no setting of umrddt restores the bare base PML.
 */

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench_defer.h"
#include "bench_util.h"

#define EXIT_WRONG 1
#define EXIT_USAGE 2

#define MAX_ROWS   64
#define MAX_ROUNDS 1000
#define BATCHES    60

typedef enum side_t {
    SIDE_BASE,
    SIDE_UMRDDT,
    SIDES
} side_t;

typedef struct row_t {
    char form[16];
    int bytes;
    double median[SIDES][MAX_ROUNDS]; /* of each round's job */
    double low[SIDES][MAX_ROUNDS];
} row_t;

typedef struct defer_t {
    const char *base;
    const char *memory;
    const char *pattern;
    const char *model;
    const char *mpirun;
    bool multiple;
    int rounds;
    int batches;
    double max_ratio; /* 0: none */
    char self[4096];
    int row_count;
    row_t *rows;
    bool in_place;
    unsigned long long queries, handled;
} defer_t;

bool bench_defer_wanted(int argc, char **argv)
{
    int i;

    for (i = 1; i < argc; ++i) {
        if (0 == strcmp(argv[i], "--defer")) {
            return true;
        }
    }
    return false;
}

static void usage(FILE *file)
{
    fprintf(
        file,
        "usage: [umrddt_sim] umrddt_bench --defer [OPTIONS]   (without mpirun: it starts jobs)\n"
        "\n"
        "Measures the overhead of umrddt for messages that it passes through to the base PML. Runs jobs\n"
        "of two processes with umrddt and with the base PML alone, in turns. The messages are contiguous\n"
        "or small. Prints the ratios of their times.\n"
        "\n"
        "  --base NAME        the base PML (default ob1)\n"
        "  --memory WHAT      pml_umrddt_memory: gpu, host or all (default all, which requires an HCA or\n"
        "                     umrddt_sim; without one umrddt replaces no function of the base PML)\n"
        "  --rounds N         number of jobs of each kind (default 20)\n"
        "  --batches N        number of batches of messages that a job times (default 60)\n"
        "  --multiple         use MPI_THREAD_MULTIPLE\n"
        "  --pattern VALUE    use a communicator with this mpi_communication_pattern\n"
        "  --model FILE       pml_umrddt_model: also measure messages with blocks of 1 KiB and more,\n"
        "                     which must be passed through with these tuning parameters\n"
        "  --max-ratio R      exit status 1 if a ratio of medians is above R\n"
        "  --mpirun COMMAND   use this command instead of mpirun (or $UMRDDT_MPIRUN)\n"
        "\n"
        "Columns: 'base us' and 'umrddt us' are microseconds per message (half a round trip; of a\n"
        "window, a 64th), the medians of the medians of all rounds; 'ratio' is their ratio; 'rounds'\n"
        "are the lower quartile, the median and the upper quartile of the ratios of each round;\n"
        "'quiet' is the median of the ratios of the first deciles of the batches of a job, which other\n"
        "load on the machine affects least.\n");
}

static bool parse(int argc, char **argv, defer_t *defer)
{
    enum {
        OPTION_DEFER = 256,
        OPTION_BASE,
        OPTION_MEMORY,
        OPTION_ROUNDS,
        OPTION_BATCHES,
        OPTION_MULTIPLE,
        OPTION_PATTERN,
        OPTION_MODEL,
        OPTION_MAX_RATIO,
        OPTION_MPIRUN
    };
    static const struct option options[] = {
        {"defer", no_argument, NULL, OPTION_DEFER},
        {"base", required_argument, NULL, OPTION_BASE},
        {"memory", required_argument, NULL, OPTION_MEMORY},
        {"rounds", required_argument, NULL, OPTION_ROUNDS},
        {"batches", required_argument, NULL, OPTION_BATCHES},
        {"multiple", no_argument, NULL, OPTION_MULTIPLE},
        {"pattern", required_argument, NULL, OPTION_PATTERN},
        {"model", required_argument, NULL, OPTION_MODEL},
        {"max-ratio", required_argument, NULL, OPTION_MAX_RATIO},
        {"mpirun", required_argument, NULL, OPTION_MPIRUN},
        {"help", no_argument, NULL, 'h'},
        /* Names of earlier versions, which the help does not list. */
        {"host", required_argument, NULL, OPTION_BASE},
        {"takes", required_argument, NULL, OPTION_MEMORY},
        {NULL, 0, NULL, 0}};
    char *end = "";
    int code;

    opterr = 0;
    while (-1 != (code = getopt_long(argc, argv, "h", options, NULL))) {
        switch (code) {
        case OPTION_DEFER:
            break;
        case OPTION_BASE:
            defer->base = optarg;
            break;
        case OPTION_MEMORY:
            defer->memory = optarg;
            break;
        case OPTION_ROUNDS:
            defer->rounds = (int) strtol(optarg, &end, 10);
            if ('\0' != *end || 1 > defer->rounds || MAX_ROUNDS < defer->rounds) {
                fprintf(stderr, "umrddt_bench: --rounds '%s': expected a number from 1 to %d\n",
                        optarg, MAX_ROUNDS);
                return false;
            }
            break;
        case OPTION_BATCHES:
            defer->batches = (int) strtol(optarg, &end, 10);
            if ('\0' != *end || 1 > defer->batches || BENCH_DEFER_MAX_BATCHES < defer->batches) {
                fprintf(stderr, "umrddt_bench: --batches '%s': expected a number from 1 to %d\n",
                        optarg, BENCH_DEFER_MAX_BATCHES);
                return false;
            }
            break;
        case OPTION_MULTIPLE:
            defer->multiple = true;
            break;
        case OPTION_PATTERN:
            defer->pattern = optarg;
            break;
        case OPTION_MODEL:
            defer->model = optarg;
            break;
        case OPTION_MAX_RATIO:
            defer->max_ratio = strtod(optarg, &end);
            if ('\0' != *end || !(0.0 < defer->max_ratio)) {
                fprintf(stderr, "umrddt_bench: --max-ratio '%s': expected a number above 0\n",
                        optarg);
                return false;
            }
            break;
        case OPTION_MPIRUN:
            defer->mpirun = optarg;
            break;
        case 'h':
            usage(stdout);
            exit(0);
        default:
            fprintf(stderr,
                    "umrddt_bench: unknown option '%s' with --defer, or its value is "
                    "missing\n",
                    argv[optind - 1]);
            return false;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "umrddt_bench: unexpected argument '%s'\n", argv[optind]);
        return false;
    }
    return true;
}

/* The row of these, which every job must have at the same place. */
static row_t *row_at(defer_t *defer, int index, const char *form, int bytes)
{
    row_t *row = &defer->rows[index];

    if (index == defer->row_count && MAX_ROWS > index) {
        ++defer->row_count;
        snprintf(row->form, sizeof(row->form), "%s", form);
        row->bytes = bytes;
    }
    return index < defer->row_count && row->bytes == bytes && 0 == strcmp(row->form, form) ? row
                                                                                           : NULL;
}

/* Run one job. Returns false, after a report, if it failed or had unexpected output. */
static bool run_job(defer_t *defer, side_t side, int round)
{
    char command[8192], line[512], form[16];
    int bytes, there = -1, in_place = 0, rows = 0, length, status;
    double median, low;
    row_t *row;
    FILE *job;

    length = snprintf(command, sizeof(command),
                      "%s -n 2 --mca pml %s --mca pml_umrddt_base_pml %s "
                      "--mca pml_umrddt_memory %s --mca pml_umrddt_model '%s' "
                      "--mca opal_common_ucx_tls any --mca opal_common_ucx_devices any "
                      "'%s' %s pair %s %s %d %s </dev/null",
                      defer->mpirun, SIDE_UMRDDT == side ? "umrddt" : defer->base, defer->base,
                      defer->memory, NULL == defer->model ? "none" : defer->model, defer->self,
                      BENCH_DEFER_JOB, defer->multiple ? "multiple" : "single",
                      NULL == defer->pattern ? "-" : defer->pattern, defer->batches,
                      NULL == defer->model ? "" : "passed");
    job = (int) sizeof(command) > length ? popen(command, "r") : NULL;
    if (NULL == job) {
        fprintf(stderr, "umrddt_bench: cannot run %s: %s\n", command, strerror(errno));
        return false;
    }
    while (NULL != fgets(line, sizeof(line), job)) {
        if (4
            == sscanf(line, BENCH_DEFER_STATE, &there, &in_place, &defer->queries,
                      &defer->handled)) {
            continue;
        }
        if (4 != sscanf(line, BENCH_DEFER_LINE, form, &bytes, &median, &low)) {
            fputs(line, stderr);
            continue;
        }
        row = row_at(defer, rows++, form, bytes);
        if (NULL != row) {
            row->median[side][round] = median;
            row->low[side][round] = low;
        }
    }
    status = pclose(job);
    if (0 != status || 0 > there || 0 == rows || rows != defer->row_count) {
        fprintf(stderr, "umrddt_bench: this job failed: %s\n", command);
        return false;
    }
    if (there != (SIDE_UMRDDT == side)) {
        fprintf(stderr, "umrddt_bench: umrddt was %sin this job: %s\n", there ? "" : "not ",
                command);
        return false;
    }
    if (0 < defer->handled) {
        fprintf(
            stderr,
            "umrddt_bench: umrddt handled %llu messages that it should have passed through: %s\n",
            defer->handled, command);
        return false;
    }
    defer->in_place = in_place || (SIDE_UMRDDT != side && defer->in_place);
    return true;
}

static int ascending(const void *a, const void *b)
{
    const double left = *(const double *) a, right = *(const double *) b;

    return left < right ? -1 : left > right;
}

/* The value below which a share of the values is (a percentile). Sorts them. */
static double quantile(double *values, int count, double share)
{
    const double at = share * (count - 1);
    const int below = (int) at;

    qsort(values, (size_t) count, sizeof(values[0]), ascending);
    return below + 1 < count ? values[below] + (at - below) * (values[below + 1] - values[below])
                             : values[below];
}

static double median_of(const double *values, int count)
{
    double sorted[MAX_ROUNDS];

    memcpy(sorted, values, (size_t) count * sizeof(values[0]));
    return quantile(sorted, count, 0.5);
}

/* Print a row; returns the ratio of its medians. */
static double print_row(const row_t *row, int rounds)
{
    double ratios[MAX_ROUNDS], quiet[MAX_ROUNDS];
    const double base = median_of(row->median[SIDE_BASE], rounds);
    const double umrddt = median_of(row->median[SIDE_UMRDDT], rounds);
    int i;

    for (i = 0; i < rounds; ++i) {
        ratios[i] = row->median[SIDE_UMRDDT][i] / row->median[SIDE_BASE][i];
        quiet[i] = row->low[SIDE_UMRDDT][i] / row->low[SIDE_BASE][i];
    }
    printf("%-12s %8d %10.3f %10.3f %8.3f   %6.3f %6.3f %6.3f %8.3f\n", row->form, row->bytes, base,
           umrddt, umrddt / base, quantile(ratios, rounds, 0.25), quantile(ratios, rounds, 0.5),
           quantile(ratios, rounds, 0.75), quantile(quiet, rounds, 0.5));
    return umrddt / base;
}

int bench_defer_main(int argc, char **argv)
{
    defer_t defer = {.base = "ob1",
                     .memory = "all",
                     .rounds = 20,
                     .batches = BATCHES,
                     .mpirun = getenv("UMRDDT_MPIRUN")};
    int status = 0, round, i;
    ssize_t length;

    if (!parse(argc, argv, &defer)) {
        usage(stderr);
        return EXIT_USAGE;
    }
    if (NULL != getenv("OMPI_COMM_WORLD_SIZE") || NULL != getenv("PMIX_RANK")) {
        fprintf(stderr, "umrddt_bench: --defer starts the jobs: run it without mpirun\n");
        return EXIT_USAGE;
    }
    if (NULL == defer.mpirun || '\0' == defer.mpirun[0]) {
        defer.mpirun = "mpirun";
    }
    length = readlink("/proc/self/exe", defer.self, sizeof(defer.self) - 1);
    if (0 >= length) {
        fprintf(stderr, "umrddt_bench: cannot find its own executable: %s\n", strerror(errno));
        return EXIT_USAGE;
    }
    defer.self[length] = '\0';
    defer.rows = bench_alloc(MAX_ROWS * sizeof(defer.rows[0]));

    for (round = 0; round < defer.rounds && 0 == status; ++round) {
        for (i = 0; i < SIDES && 0 == status; ++i) {
            /* each goes first in every other round */
            status = run_job(&defer, (side_t) ((i + round) % SIDES), round) ? 0 : EXIT_WRONG;
        }
    }
    if (0 == status) {
        printf(
            "# pml/%s with umrddt (pml_umrddt_memory=%s%s%s%s%s), and without: %d jobs each, in turns\n",
            defer.base, defer.memory, defer.multiple ? ", MPI_THREAD_MULTIPLE" : "",
            NULL == defer.pattern ? "" : ", ", NULL == defer.pattern ? "" : defer.pattern,
            NULL == defer.model ? "" : ", pml_umrddt_model", defer.rounds);
        printf("# umrddt %s; memory queries in its last job: %llu\n",
               defer.in_place ? "is in front of the base PML"
                              : "has replaced no function of the base PML",
               defer.queries);
        printf("%-12s %8s %10s %10s %8s   %6s %6s %6s %8s\n", "form", "bytes", "base us",
               "umrddt us", "ratio", "", "rounds", "", "quiet");
        for (i = 0; i < defer.row_count; ++i) {
            const double ratio = print_row(&defer.rows[i], defer.rounds);

            if (0.0 < defer.max_ratio && ratio > defer.max_ratio) {
                status = EXIT_WRONG;
            }
        }
        if (0 != status) {
            printf("# a ratio is above %g\n", defer.max_ratio);
        }
    }
    free(defer.rows);
    return status;
}
