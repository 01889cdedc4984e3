/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* umrddt_tune: measures this machine for the selection of schemes. This file has the command line
 * and the sequence of a run; read tune.h first. */

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
    "Measures the performance of this machine, or of a pair of nodes: the base PML, the CPU, the HCA\n"
    "and the GPUs. It writes a tuning file, by which umrddt then selects the protocol of each message.\n"
    "Run it on an idle machine; it takes less than two minutes.\n"
    "\n"
    "Two processes on one node measure intra-node messages. Two processes on two nodes (--map-by\n"
    "ppr:1:node) measure inter-node messages. Run both: the results are added to those of earlier runs\n"
    "on the same hardware in the file. HCA parameters of inter-node runs have precedence.\n"
    "\n"
    "  --output FILE  write to FILE (default: the file of the user for this hardware, which\n"
    "                 pml/umrddt reads by default; --mca pml_umrddt_model FILE selects another one)\n"
    "  --system       write the system-wide file for this hardware, below sysconfdir\n"
    "  --dry          print the table, but write no file\n"
    "  --any          write a file that is valid for any hardware\n"
    "  --fresh        discard the results of earlier runs\n"
    "  --no-gpu       do not use GPUs\n"
    "  --plot FILE.svg  plot the measured points, with more points than the parameters need, and the\n"
    "                 values of the model: messages and copies by size, packing by length and number\n"
    "                 of blocks, HCA messages by number of pieces, first messages\n"
    "  --json FILE    also write the table to FILE as JSON; - is stdout, and the table then goes to\n"
    "                 stderr\n"
    "  --seconds N    start no further measurement after N seconds (default: 100)\n"
    "  --help, --version\n"
    "\n"
    "Parameters that cannot be measured (no HCA, no GPU) keep their defaults, and the file marks them.\n"
    "Without --mca pml umrddt no file is written, and --dry is required. The exit status is 0 if the\n"
    "file was written.\n";

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
                    fprintf(stderr,
                            "umrddt_tune: --plot requires a name that ends in .svg, not '%s'\n",
                            optarg);
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
                    fprintf(stderr, "umrddt_tune: --seconds requires 0 to 3600, not '%s'\n",
                            optarg);
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
            fprintf(stderr, "umrddt_tune: unexpected argument '%s' (see --help)\n", argv[optind]);
        }
        return 2;
    }
    return -1;
}

/* Find the measurements that are possible. */
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
}

/* Returns false if umrddt could not use a tuning file of this job, which must not replace another.
 */
static bool is_active(const tune_t *tune, const tune_options_t *options)
{
    if (!tune->umrddt && 0 == tune->rank) {
        fprintf(stderr, "umrddt_tune: umrddt is not the PML (use --mca pml umrddt); %s\n",
                options->dry ? "HCAs and messages between GPUs are not measured"
                             : "no tuning file is written (--dry prints the table without one)");
    }
    return tune->umrddt || options->dry;
}

/* Run the measurements, within the time limit. */
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
            "umrddt_tune: the two nodes differ: this one is %s; the other one is %s. The file "
            "is for machines like this one; start with the other node for machines like that one\n",
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
                tune_time_left_alone(tune)
                    ? "done"
                    : "out of time: the other parameters have their defaults",
                bench_now() - tune->begin);
    }
}

int main(int argc, char **argv)
{
    tune_options_t options = {.seconds = 100};
    static tune_report_t report;
    static tune_t tune;
    const char *job_rank = getenv("OMPI_COMM_WORLD_RANK");
    int size, status;

    /* errors of the command line need no MPI; one process prints them */
    status = parse(argc, argv, &options, NULL == job_rank ? 0 : atoi(job_rank));
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
            fprintf(stderr,
                    "umrddt_tune: two processes are required, not %d: mpirun -n 2 (see --help)\n",
                    size);
        }
        MPI_Finalize();
        return 2;
    }
    prepare(&tune, &options);
    status =
        !is_active(&tune, &options) || (0 == tune.rank && !tune_report_open(&options, &report));
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
