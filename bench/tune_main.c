/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* umrddt_tune: measures this machine for the choice of schemes; see tune.h. Here is the command
 * line, and the order of things. */

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench_gpu.h"
#include "bench_schemes.h"
#include "bench_util.h"
#include "tune.h"

static const char usage[] =
    "usage: mpirun -n 2 --mca pml umrddt umrddt_tune [--output FILE] [--system] [--dry] [--any]\n"
    "                                               [--fresh] [--no-gpu] [--plot FILE.svg]\n"
    "                                               [--json FILE] [--seconds N]\n"
    "\n"
    "Measures what messages cost on this machine, or between two: what the base PML, the CPU, the\n"
    "HCA and the GPUs take. umrddt's choice of a scheme goes by it from then on. Run it on a\n"
    "machine with nothing else to do; it takes less than two minutes. Two processes of one host measure\n"
    "what is near, and those of two hosts (--map-by ppr:1:node) what is far: what a run measures is\n"
    "added to what the file has of earlier runs on the same hardware, so run it both ways. What HCAs\n"
    "do is then as the two hosts found it.\n"
    "\n"
    "  --output FILE  write there (default: the user's file for this hardware, which pml/umrddt reads\n"
    "                 by itself; another one is named by --mca pml_umrddt_model FILE)\n"
    "  --system       write the system's file for this hardware, below sysconfdir\n"
    "  --dry          write nothing; the table is printed all the same\n"
    "  --any          for any hardware: the file is not refused on other machines\n"
    "  --fresh        forget what the file has of earlier runs\n"
    "  --no-gpu       leave GPUs alone\n"
    "  --plot FILE.svg  draw what this run measures, and more points than the parameters need: messages and\n"
    "                 copies by size, packing by length and number of blocks, messages of the HCA by\n"
    "                 pieces, first ones, and lines for what the parameters predict of the same\n"
    "  --json FILE    write the table there as well, as JSON; - is stdout, and the table goes to stderr\n"
    "  --seconds N    begin no further measurement after so many seconds (default: 100)\n"
    "\n"
    "What cannot be measured, for want of an HCA, a GPU or umrddt, is left at its default, and the file\n"
    "says so. The exit status is 0 if the file was written.\n";

void tune_progress(tune_t *tune, const char *what)
{
    static const char bar[] = "####################", rest[] = "....................";
    const int length = (int) sizeof(bar) - 1, done = length * tune->steps / tune->of;

    ++tune->steps;
    if (0 == tune->rank) {
        fprintf(stderr, "umrddt_tune: [%.*s%.*s] %d of %d, %.0f s of at most %.0f: %s\n", done, bar,
                length - done, rest, tune->steps, tune->of, bench_now() - tune->begin,
                tune->seconds, what);
    }
}

bool tune_time_left_alone(const tune_t *tune)
{
    return bench_now() < tune->begin + tune->seconds;
}

bool tune_time_left(tune_t *tune)
{
    int left = tune_time_left_alone(tune);

    MPI_Bcast(&left, 1, MPI_INT, 0, tune->comms[MCA_PML_UMRDDT_SCHEME_BASE]);
    return 0 != left;
}

/* Exit status of a bad command line, or -1: go on. */
static int parse(int argc, char **argv, tune_options_t *options, int rank)
{
    static const struct option known[] = {
        {"output", required_argument, NULL, 'o'},  {"system", no_argument, NULL, 's'},
        {"dry", no_argument, NULL, 'd'},           {"any", no_argument, NULL, 'a'},
        {"fresh", no_argument, NULL, 'f'},         {"no-gpu", no_argument, NULL, 'g'},
        {"seconds", required_argument, NULL, 't'}, {"plot", required_argument, NULL, 'p'},
        {"json", required_argument, NULL, 'j'},    {"help", no_argument, NULL, 'h'},
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
        case 'p':
            options->plot = optarg;
            if (strlen(optarg) <= 4 || 0 != strcmp(optarg + strlen(optarg) - 4, ".svg")) {
                if (0 == rank) {
                    fprintf(stderr, "umrddt_tune: --plot writes SVG: FILE.svg, not '%s'\n", optarg);
                }
                return 2;
            }
            break;
        case 'j':
            options->json = optarg;
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
static void prepare(tune_t *tune, const tune_options_t *options)
{
    uint64_t unused;
    MPI_Comm here;
    int size, gpu;

    for (int scheme_id = 0; scheme_id < MCA_PML_UMRDDT_SCHEMES; ++scheme_id) {
        bench_schemes_comm(mca_pml_umrddt_scheme_names[scheme_id], NULL, &tune->comms[scheme_id]);
    }
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, tune->rank, MPI_INFO_NULL, &here);
    MPI_Comm_size(here, &size);
    MPI_Comm_free(&here);
    tune->near = 2 == size;
    bench_pvars_open(&tune->pvars);
    tune->umrddt = tune->pvars.found[BENCH_PVAR_HANDLED_SENDS]
                   && bench_cvar_read("pml_umrddt_min_size", &unused);
    gpu = !options->no_gpu && NULL == bench_gpu_open(tune->rank);
    MPI_Allreduce(MPI_IN_PLACE, &gpu, 1, MPI_INT, MPI_MIN, tune->comms[MCA_PML_UMRDDT_SCHEME_BASE]);
    tune->gpu = 0 != gpu;
    tune->plot = NULL != options->plot;
    tune->begin = bench_now();
    tune->seconds = options->seconds;
    tune->of = TUNE_STEPS_HOST + (tune->umrddt ? TUNE_STEPS_HCA : 0)
               + (tune->gpu ? TUNE_STEPS_GPU + (tune->umrddt ? TUNE_STEPS_GPUS : 0) : 0);
    if (tune->plot) {
        tune->of += 1 + (tune->umrddt ? 1 : 0) + (tune->gpu ? 1 : 0);
    }
    opal_umrddt_tuning_default(&tune->tuning);
    if (!tune->umrddt && 0 == tune->rank) {
        fprintf(stderr,
                "umrddt_tune: umrddt is not the PML (--mca pml umrddt), so neither HCAs nor "
                "messages between GPUs are measured\n");
    }
}

/* All that there is time for. */
static void measure(tune_t *tune)
{
    char mine[OPAL_UMRDDT_TUNING_TEXT], other[OPAL_UMRDDT_TUNING_TEXT];
    MPI_Comm comm = tune->comms[MCA_PML_UMRDDT_SCHEME_BASE];

    opal_umrddt_tuning_hardware(mine);
    memset(other, 0, sizeof(other));
    MPI_Sendrecv(mine, sizeof(mine), MPI_CHAR, 1 - tune->rank, 0, other, sizeof(other), MPI_CHAR,
                 1 - tune->rank, 0, comm, MPI_STATUS_IGNORE);
    if (0 == tune->rank && 0 != strcmp(mine, other)) {
        fprintf(
            stderr,
            "umrddt_tune: the two hosts differ: this one is %s; the other one is %s. What is "
            "written is for machines like this one; begin with the other host for those like it\n",
            mine, other);
    }
    tune_host(tune);
    tune_hca(tune);
    tune_gpu(tune);
    if (tune->plot) {
        tune_host_points(tune);
        tune_hca_points(tune);
        tune_gpu_points(tune);
    }
    tune_complete(tune);
    if (0 == tune->rank) {
        fprintf(stderr, "umrddt_tune: %s after %.0f s\n",
                tune_time_left_alone(tune) ? "done"
                                           : "no more time: what is left is at its default",
                bench_now() - tune->begin);
    }
}

int main(int argc, char **argv)
{
    tune_options_t options = {.seconds = 100};
    static tune_report_t report;
    static tune_t tune;
    const char *said = getenv("OMPI_COMM_WORLD_RANK");
    int size, status;

    /* a word about the command line needs no MPI, and one process to say it */
    status = parse(argc, argv, &options, NULL == said ? 0 : atoi(said));
    if (0 <= status) {
        return status;
    }
    /* unless the user sets it: both kinds of memory, and no earlier measurement */
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
    status = 0 == tune.rank && !tune_report_open(&options, &report) ? 1 : 0;
    MPI_Bcast(&status, 1, MPI_INT, 0, tune.comms[MCA_PML_UMRDDT_SCHEME_BASE]);
    if (0 == status) {
        measure(&tune);
        status = 0 == tune.rank ? tune_report(&tune, &options, &report) : 0;
        MPI_Bcast(&status, 1, MPI_INT, 0, tune.comms[MCA_PML_UMRDDT_SCHEME_BASE]);
    }
    bench_pvars_close(&tune.pvars);
    for (int scheme_id = 0; scheme_id < MCA_PML_UMRDDT_SCHEMES; ++scheme_id) {
        MPI_Comm_free(&tune.comms[scheme_id]);
    }
    MPI_Finalize();
    return status;
}
