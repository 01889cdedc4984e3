/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* umrddt_tune: measures this machine for the choice of schemes; see tune.h. */

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench_gpu.h"
#include "bench_schemes.h"
#include "bench_util.h"
#include "tune.h"

static const char usage[] =
    "usage: mpirun -n 2 --mca pml umrddt umrddt_tune [--output FILE] [--system] [--dry] [--any]\n"
    "                                               [--fresh] [--no-gpu] [--seconds N]\n"
    "\n"
    "Measures what messages cost on this machine, or between two: what the host PML, the CPU, the\n"
    "network card and the GPUs take. umrddt's choice of a scheme goes by it from then on. Run it on a\n"
    "machine with nothing else to do; it takes less than two minutes. Two processes of one host measure\n"
    "what is near, and those of two hosts (--map-by ppr:1:node) what is far: what a run measures is\n"
    "added to what the file has of earlier runs on the same hardware, so run it both ways. What cards\n"
    "do is then as the two hosts found it.\n"
    "\n"
    "  --output FILE  write there (default: the user's file for this hardware, which pml/umrddt reads\n"
    "                 by itself; another one is named by --mca pml_umrddt_model FILE)\n"
    "  --system       write the system's file for this hardware, below sysconfdir\n"
    "  --dry          write nothing; the table is printed all the same\n"
    "  --any          for any hardware: the file is not refused on other machines\n"
    "  --fresh        forget what the file has of earlier runs\n"
    "  --no-gpu       leave GPUs alone\n"
    "  --seconds N    begin no further measurement after so many seconds (default: 100)\n"
    "\n"
    "What cannot be measured, for want of a card, a GPU or umrddt, is left at its default, and the file\n"
    "says so. The exit status is 0 if the file was written.\n";

typedef struct options_t {
    const char *output;
    bool system;
    bool dry;
    bool any;
    bool fresh;
    bool no_gpu;
    double seconds;
} options_t;

int tune_index(const char *name)
{
    int index = 0;

#define FIND(field, ...)             \
    if (0 == strcmp(name, #field)) { \
        return index;                \
    }                                \
    ++index;
    MCA_PML_UMRDDT_FIGURES(FIND)
    MCA_PML_UMRDDT_CURVES(FIND)
    bench_fatal("no figure %s", name);
}

void tune_enter(tune_t *tune, double *figure, int index, double value)
{
    /* a difference of two times that chance made none: the default is the better guess */
    if (!(1e-6 < value && value < 1e12)) {
        return;
    }
    *figure = value;
    tune->measured.figure[index] = true;
}

void tune_progress(tune_t *tune, const char *what)
{
    ++tune->steps;
    if (0 == tune->rank) {
        fprintf(stderr, "umrddt_tune: %d, %s ...\n", tune->steps, what);
    }
}

bool tune_time_left(tune_t *tune)
{
    int left = bench_now() < tune->deadline;

    MPI_Bcast(&left, 1, MPI_INT, 0, tune->comms[MCA_PML_UMRDDT_WAY_HOST]);
    return 0 != left;
}

/* Exit status of a bad command line, or -1: go on. */
static int parse(int argc, char **argv, options_t *options, int rank)
{
    static const struct option known[] = {
        {"output", required_argument, NULL, 'o'},  {"system", no_argument, NULL, 's'},
        {"dry", no_argument, NULL, 'd'},           {"any", no_argument, NULL, 'a'},
        {"fresh", no_argument, NULL, 'f'},         {"no-gpu", no_argument, NULL, 'g'},
        {"seconds", required_argument, NULL, 't'}, {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'v'},       {NULL, 0, NULL, 0},
    };
    char *end;
    int c;

    opterr = 0 == rank;
    while (-1 != (c = getopt_long(argc, argv, "h", known, NULL))) {
        switch (c) {
        case 'o':
            options->output = optarg;
            break;
        case 's':
            options->system = true;
            break;
        case 'd':
            options->dry = true;
            break;
        case 'a':
            options->any = true;
            break;
        case 'f':
            options->fresh = true;
            break;
        case 'g':
            options->no_gpu = true;
            break;
        case 't':
            options->seconds = strtod(optarg, &end);
            if ('\0' != *end || !(0 <= options->seconds && options->seconds <= 3600)) {
                if (0 == rank) {
                    fprintf(stderr, "umrddt_tune: --seconds is 0 to 3600, not '%s'\n", optarg);
                }
                return 2;
            }
            break;
        case 'h':
        case 'v':
            if (0 == rank) {
                printf("%s", 'h' == c ? usage : "umrddt_tune " UMRDDT_VERSION "\n");
            }
            return 0;
        default:
            return 2;
        }
    }
    if (optind < argc) {
        if (0 == rank) {
            fprintf(stderr, "umrddt_tune: what is '%s'? (--help)\n", argv[optind]);
        }
        return 2;
    }
    return -1;
}

/* What there is to measure. */
static void prepare(tune_t *tune, const options_t *options)
{
    uint64_t unused;
    MPI_Comm here;
    int size, gpu;

    for (int way = 0; way < MCA_PML_UMRDDT_WAYS; ++way) {
        bench_schemes_comm(mca_pml_umrddt_way_names[way], NULL, &tune->comms[way]);
    }
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, tune->rank, MPI_INFO_NULL, &here);
    MPI_Comm_size(here, &size);
    MPI_Comm_free(&here);
    tune->near = 2 == size;
    bench_pvars_open(&tune->pvars);
    tune->umrddt = tune->pvars.found[BENCH_PVAR_TAKEN_SENDS]
                   && bench_cvar_read("pml_umrddt_min_size", &unused);
    gpu = !options->no_gpu && NULL == bench_gpu_open(tune->rank);
    MPI_Allreduce(MPI_IN_PLACE, &gpu, 1, MPI_INT, MPI_MIN, tune->comms[MCA_PML_UMRDDT_WAY_HOST]);
    tune->gpu = 0 != gpu;
    tune->deadline = bench_now() + options->seconds;
    mca_pml_umrddt_figures_default(&tune->figures);
    if (!tune->umrddt && 0 == tune->rank) {
        fprintf(stderr,
                "umrddt_tune: umrddt is not the PML (--mca pml umrddt), so neither cards nor "
                "messages between GPUs are measured\n");
    }
}

/* now: which figures were measured by this run and are not the file's. */
static void print_table(const tune_t *tune, const bool *now)
{
    const bool *all = tune->measured.figure;

    printf(
        "# us, and bytes a us (MB/s); *: measured now, +: before, by the file; else the default\n");
#define PRINT_FIGURE(name, value, help)      \
    printf("%c %-16s %12.3f  %s\n",          \
           *now++ ? '*'                      \
           : *all ? '+'                      \
                  : ' ',                     \
           #name, tune->figures.name, help); \
    ++all;
    MCA_PML_UMRDDT_FIGURES(PRINT_FIGURE)
    printf("# by blocks of %13s %8s %8s %8s %8s %8s\n", "8", "64", "512", "4096", "32768",
           "262144");
#define PRINT_CURVE(name, help)                                 \
    printf("%c %-16s", *now++ ? '*' : *all ? '+' : ' ', #name); \
    ++all;                                                      \
    for (int i = 0; i < MCA_PML_UMRDDT_CURVE_POINTS; ++i) {     \
        printf(" %8.0f", tune->figures.name[i]);                \
    }                                                           \
    printf("  %s\n", help);
    MCA_PML_UMRDDT_CURVES(PRINT_CURVE)
    fflush(stdout);
}

/* The directories above a file. */
static void make_directories(const char *path)
{
    char *copy = strdup(path);

    for (char *slash = NULL == copy ? NULL : strchr(copy + 1, '/'); NULL != slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void) mkdir(copy, 0777);
        *slash = '/';
    }
    free(copy);
}

/* Where the file is, or is to be. @return false: there is no such place, which is told */
static bool file_name(const options_t *options, const char *hardware, char *path, size_t room)
{
    if (NULL != options->output) {
        if (room <= (size_t) snprintf(path, room, "%s", options->output)) {
            bench_fatal("the file's name is too long");
        }
        return true;
    }
    if (!mca_pml_umrddt_model_path(hardware, options->system, path, room)) {
        fprintf(stderr, "umrddt_tune: neither XDG_CONFIG_HOME nor HOME is a directory: --output\n");
        return false;
    }
    return true;
}

/* Add what an earlier run has left in the file: that of two hosts to that of one, say. */
static void add_file(tune_t *tune, const options_t *options, const char *path, const char *hardware)
{
    char wrong[MCA_PML_UMRDDT_MODEL_TEXT];
    mca_pml_umrddt_measured_t measured;
    mca_pml_umrddt_figures_t figures;
    mca_pml_umrddt_model_file_t result =
        mca_pml_umrddt_model_read(path, hardware, &figures, &measured, wrong);

    if (MCA_PML_UMRDDT_MODEL_FILE_GOOD == result && measured.any && !options->any) {
        result = MCA_PML_UMRDDT_MODEL_FILE_FOREIGN;
        (void) snprintf(wrong, sizeof(wrong), "it is for any hardware (--any)");
    }
    if (MCA_PML_UMRDDT_MODEL_FILE_GOOD == result) {
        mca_pml_umrddt_model_add(&tune->figures, &tune->measured, &figures, &measured);
    } else if (MCA_PML_UMRDDT_MODEL_FILE_ABSENT != result) {
        fprintf(stderr, "umrddt_tune: %s is not added to, but made anew: %s\n", path, wrong);
    }
}

/* Write beside the file, and put it in its place: nobody reads half of one. */
static int write_file(const tune_t *tune, const char *path, const char *hardware)
{
    char beside[1100];
    FILE *file;

    make_directories(path);
    (void) snprintf(beside, sizeof(beside), "%s.%ld", path, (long) getpid());
    file = fopen(beside, "we");
    if (NULL == file
        || 0 != mca_pml_umrddt_model_write(file, hardware, &tune->figures, &tune->measured)
        || 0 != fclose(file) || 0 != rename(beside, path)) {
        fprintf(stderr, "umrddt_tune: %s cannot be written: %s\n", path, strerror(errno));
        (void) unlink(beside);
        return 1;
    }
    fprintf(stderr, "umrddt_tune: written to %s\n", path);
    return 0;
}

/* At the first process, when all is measured. @return the exit status */
static int report(tune_t *tune, const options_t *options)
{
    const mca_pml_umrddt_measured_t measured = tune->measured;
    const mca_pml_umrddt_figures_t figures = tune->figures;
    char hardware[MCA_PML_UMRDDT_MODEL_TEXT], path[1024], when[64];
    bool now[MCA_PML_UMRDDT_FIGURE_COUNT + MCA_PML_UMRDDT_CURVE_COUNT];
    time_t seconds = time(NULL);
    struct tm utc;
    int i = 0;

    (void) strftime(when, sizeof(when), "%Y-%m-%d %H:%M UTC", gmtime_r(&seconds, &utc));
    (void) snprintf(tune->near ? tune->measured.near : tune->measured.far,
                    MCA_PML_UMRDDT_MODEL_NOTE, "umrddt_tune " UMRDDT_VERSION ", %s", when);
    mca_pml_umrddt_model_hardware(hardware);
    if (!options->dry && !file_name(options, hardware, path, sizeof(path))) {
        return 1;
    }
    if (!options->dry && !options->fresh) {
        add_file(tune, options, path, hardware);
    }
#define IS_NOW(name, ...)                                                              \
    now[i] = measured.figure[i]                                                        \
             && 0 == memcmp(&figures.name, &tune->figures.name, sizeof(figures.name)); \
    ++i;
    MCA_PML_UMRDDT_FIGURES(IS_NOW)
    MCA_PML_UMRDDT_CURVES(IS_NOW)
    print_table(tune, now);
    return options->dry ? 0 : write_file(tune, path, options->any ? "any" : hardware);
}

int main(int argc, char **argv)
{
    options_t options = {.seconds = 100};
    static tune_t tune;
    const char *said = getenv("OMPI_COMM_WORLD_RANK");
    int size, status;

    /* a word about the command line needs no MPI, and one process to say it */
    status = parse(argc, argv, &options, NULL == said ? 0 : atoi(said));
    if (0 <= status) {
        return status;
    }
    /* unless the user says otherwise: both kinds of memory, and nothing of an older measurement */
    (void) setenv("OMPI_MCA_pml_umrddt_memory", "all", 0);
    (void) setenv("OMPI_MCA_pml_umrddt_model", "none", 0);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &tune.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (2 != size) {
        if (0 == tune.rank) {
            fprintf(stderr, "umrddt_tune: two processes, not %d: mpirun -n 2 (--help)\n", size);
        }
        MPI_Finalize();
        return 2;
    }
    prepare(&tune, &options);
    tune_host(&tune);
    tune_card(&tune);
    tune_gpu(&tune);
    status = 0;
    if (0 == tune.rank) {
        status = report(&tune, &options);
    }
    MPI_Bcast(&status, 1, MPI_INT, 0, tune.comms[MCA_PML_UMRDDT_WAY_HOST]);
    bench_pvars_close(&tune.pvars);
    for (int way = 0; way < MCA_PML_UMRDDT_WAYS; ++way) {
        MPI_Comm_free(&tune.comms[way]);
    }
    MPI_Finalize();
    return status;
}
