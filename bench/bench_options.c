/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "bench_options.h"
#include "bench_schemes.h"
#include "bench_steady.h"
#include "bench_util.h"
#include "bench_verify.h"
#include "layouts.h"

/* What --quick stands for, as far as the command line does not say otherwise. */
#define QUICK_WARMUP     2
#define QUICK_ITERATIONS 20
#define QUICK_SECONDS    1.0

/* An iteration that takes longer never ends; the slowest layout under valgrind needs far less. */
#define HANG_SECONDS 300

enum {
    OPTION_LIST = 256,
    OPTION_VERSION,
    OPTION_LAYOUTS,
    OPTION_MIN_BYTES,
    OPTION_MAX_BYTES,
    OPTION_WARMUP,
    OPTION_ITERATIONS,
    OPTION_MAX_SECONDS,
    OPTION_QUICK,
    OPTION_HANG_SECONDS,
    OPTION_MEMORY,
    OPTION_COMPARE,
    OPTION_FLOOR,
    OPTION_PARTS,
    OPTION_PATTERN,
    OPTION_CSV,
    OPTION_JSON,
    OPTION_PROGRESS,
    OPTION_REQUIRE_SCHEME,
    OPTION_REQUIRE_MIN_BYTES,
    OPTION_REQUIRE_STEADY,
    OPTION_PACKED,
    OPTION_SCHEMES,
    OPTION_TRIPS,
    OPTION_ROUNDS,
    OPTION_WARMUP_OLD
};

static const struct option long_options[] = {
    {"help", no_argument, NULL, 'h'},
    {"list", no_argument, NULL, OPTION_LIST},
    {"version", no_argument, NULL, OPTION_VERSION},
    {"layouts", required_argument, NULL, OPTION_LAYOUTS},
    {"min-bytes", required_argument, NULL, OPTION_MIN_BYTES},
    {"max-bytes", required_argument, NULL, OPTION_MAX_BYTES},
    {"warmup", required_argument, NULL, OPTION_WARMUP},
    {"iterations", required_argument, NULL, OPTION_ITERATIONS},
    {"trips", required_argument, NULL, OPTION_TRIPS},
    {"rounds", required_argument, NULL, OPTION_ROUNDS},
    {"settle", required_argument, NULL, OPTION_WARMUP_OLD},
    {"max-seconds-per-layout", required_argument, NULL, OPTION_MAX_SECONDS},
    {"quick", no_argument, NULL, OPTION_QUICK},
    {"hang-seconds", required_argument, NULL, OPTION_HANG_SECONDS},
    {"memory", required_argument, NULL, OPTION_MEMORY},
    {"compare", no_argument, NULL, OPTION_COMPARE},
    {"floor", no_argument, NULL, OPTION_FLOOR},
    {"parts", no_argument, NULL, OPTION_PARTS},
    {"pattern", required_argument, NULL, OPTION_PATTERN},
    {"csv", required_argument, NULL, OPTION_CSV},
    {"json", required_argument, NULL, OPTION_JSON},
    {"progress", required_argument, NULL, OPTION_PROGRESS},
    {"require-scheme", required_argument, NULL, OPTION_REQUIRE_SCHEME},
    {"require-min-bytes", required_argument, NULL, OPTION_REQUIRE_MIN_BYTES},
    {"require-steady", required_argument, NULL, OPTION_REQUIRE_STEADY},
    {"packed", no_argument, NULL, OPTION_PACKED},
    {"schemes", required_argument, NULL, OPTION_SCHEMES},
    {NULL, 0, NULL, 0},
};

void bench_options_usage(FILE *file)
{
    fprintf(file, "usage: mpirun -n 2 umrddt_bench [OPTIONS]   (--help says more, --list shows the "
                  "layouts)\n");
}

void bench_options_help(FILE *file)
{
    bench_options_usage(file);
    fprintf(
        file,
        "\n"
        "Ping-pong of MPI messages in the memory layouts of applications, between the ranks 2i and\n"
        "2i+1 (an odd number of ranks is refused). Every message is checked byte by byte, gaps\n"
        "included, outside of the timed part; a wrong byte makes the exit status 1.\n"
        "\n"
        "Which layouts\n"
        "  --list                   show the layouts with their sizes, and end\n"
        "  --layouts LAYOUT[,LAYOUT]  only these: names, globs, layouts in words (below); a family's\n"
        "                           name means the whole family (MILC_su3_zd);\n"
        "                           by their full names alone, for bandwidths: contiguous_64MiB,\n"
        "                           vector_64B_x1048576, vector_1KiB_x65536, vector_64KiB_x1024,\n"
        "                           and of 256 MiB: contiguous_256MiB, vector_512B_x524288,\n"
        "                           vector_4KiB_x65536, vector_64KiB_x4096\n"
        "  --min-bytes N            only messages of at least N bytes (also 64K, 1M, 1G)\n"
        "  --max-bytes N            only messages of at most N bytes\n"
        "Layouts in words, both sides alike\n"
        "  contiguous BYTES         one piece\n"
        "  vector COUNT x BYTES     blocks, twice as far apart as they are long; or as far as said with\n"
        "                           stride BYTES behind it: 'vector 128 x 1024 stride 2048'\n"
        "  subarray N x N of N x N  a part of an array of 1 to 8 directions, the last of them contiguous\n"
        "                           in memory; at N x N says where it begins (0), element BYTES how long\n"
        "                           an element is (8): 'subarray 64 x 1 of 64 x 64 at 0 x 63'\n"
        "  indexed FILE             a piece for each line of a file, OFFSET LENGTH in bytes, in this\n"
        "                           order; or, with block BYTES behind it, OFFSET; # begins a comment.\n"
        "                           FILE has \"quotes\" if it has blanks or commas\n"
        "How long\n"
        "  --warmup N               untimed iterations before (default 10)\n"
        "  --iterations N           timed iterations (default 100)\n"
        "  --trips N                messages there and back in an iteration, one after the other without a\n"
        "                           pause, of which the last is checked; a time is that of one (default\n"
        "                           1: each message comes to caches that were used for other things)\n"
        "  --max-seconds-per-layout S  stop a layout's iterations after S seconds, but not before %d\n"
        "                           timed ones; a third of S at most is spent on warm-ups (default\n"
        "                           0: no limit)\n"
        "  --quick                  as --warmup %d --iterations %d --max-seconds-per-layout %.0f, each\n"
        "                           unless given\n"
        "  --hang-seconds N         give up, with exit status 3, if an iteration takes longer (default %d; 0:\n"
        "                           wait for ever)\n"
        "What\n"
        "  --memory WHERE           the memory of the buffers: host (default), gpu, gpu-host (sent from a\n"
        "                           GPU's and received in the host's), host-gpu; each process has the GPU\n"
        "                           of its number on the machine, round robin\n"
        "  --compare                run every layout also through the base PML alone, one iteration\n"
        "                           after the other, and show both\n"
        "  --schemes LIST           run every layout by each of these schemes of umrddt, one behind the\n"
        "                           other, and end with a table of them: %s\n"
        "  --rounds N               with --schemes: all of them N times, 1 to 9, so that a machine that slows\n"
        "                           down does so for all; the table has the median of the N medians\n"
        "  --settle N               with --schemes that have auto in them: N messages by it before the first\n"
        "                           round, so that its choice is made; for at most %d times the seconds\n"
        "                           of --max-seconds-per-layout (default 0)\n"
        "  --floor                  with what is sent on GPUs, beside every layout: the bare GPU operation\n"
        "                           between the two processes (CUDA IPC, the receiver told through\n"
        "                           shared memory, the one copy that umrddt does), and as many bytes in\n"
        "                           one piece through the base PML\n"
        "  --parts                  with --schemes and --memory gpu, below every layout that went packed: what its\n"
        "                           packing, unpacking and copies through pinned memory take by themselves,\n"
        "                           in one piece, and how much of the message that is\n"
        "  --pattern VALUE          on a communicator whose info key mpi_communication_pattern is VALUE,\n"
        "                           such as MPI_CPU_TO_CPU\n"
        "  --packed                 receive every message as one piece (MPI_PACKED)\n"
        "  --require-scheme SCHEME  exit status 1 if a non-contiguous layout went another way than\n"
        "                           SCHEME (umr, direct, ipc, pack-gdr, pack-staged, pack-host; staged: by the\n"
        "                           base PML, and umrddt carries it to and from the GPU; host; with\n"
        "                           --schemes asked: than that which was asked for);\n"
        "                           messages smaller than pml_umrddt_min_size\n"
        "                           may\n"
        "  --require-min-bytes N    the size for that, instead of pml_umrddt_min_size\n"
        "  --require-steady ENTRIES[,STRIDE]  exit status 1 if a timed message that went by UMR made, mapped\n"
        "                           or registered anything, or took more than %d control bytes, or more\n"
        "                           writes than keys of ENTRIES pieces need, of which each may be equal\n"
        "                           blocks up to STRIDE bytes apart (umrddt_info --selftest tells both).\n"
        "                           Wants 2 warm-ups\n"
        "Output\n"
        "  --csv FILE, --json FILE  write the results there as well; - is stdout, and the table goes\n"
        "                           to stderr then\n"
        "  --progress WHEN          a progress line on stderr: auto (if it is a terminal), always,\n"
        "                           never. mpirun puts a pipe there: say always to see it\n"
        "  --help, --version\n"
        "\n"
        "What is checked. After every message, warm-ups included: all bytes of data, which differ\n"
        "from those of the 255 messages before; the count of the status; all bytes of the gaps and\n"
        "of %d bytes before and behind the array, in arrays up to %u MiB. In larger ones the gaps\n"
        "within %d bytes of a piece after every message, and all others, of sending buffers too,\n"
        "after the last. The data of a layout's two directions differ.\n"
        "\n"
        "Memory. Pages without a piece get none, but the x faces of the 512 cubes have a piece in\n"
        "every page: 2 GiB a rank. --layouts or --max-bytes leave them out on small machines.\n"
        "\n"
        "What umrddt costs messages that it does not take: umrddt_bench --defer; --defer --help says\n"
        "more.\n"
        "\n"
        "Exit status: 0 all right; 1 a message was wrong, or a --require was not met; 2 the\n"
        "command line or the number of ranks is wrong, or a file cannot be written; 3 a message did not\n"
        "arrive.\n",
        BENCH_MIN_ITERATIONS, QUICK_WARMUP, QUICK_ITERATIONS, QUICK_SECONDS, HANG_SECONDS,
        bench_schemes_names, BENCH_WARMUP_SECONDS, BENCH_STEADY_CONTROL_BYTES, BENCH_MARGIN_BYTES,
        BENCH_SAMPLE_BYTES >> 20, BENCH_NEAR_BYTES);
}

/* A number of bytes: digits, perhaps with K, M or G (KiB, MiB, GiB). */
static bool read_bytes(const char *text, uint64_t *value)
{
    static const char units[] = "KMG";
    unsigned long long number;
    const char *unit;
    char *end;
    int shift = 0;

    if ('0' > *text || '9' < *text) {
        return false;
    }
    errno = 0;
    number = strtoull(text, &end, 10);
    if (0 != errno) {
        return false;
    }
    if ('\0' != *end) {
        unit = strchr(units, *end);
        if (NULL == unit
            || ('\0' != end[1] && 0 != strcmp(end + 1, "iB") && 0 != strcmp(end + 1, "B"))) {
            return false;
        }
        shift = 10 * (int) (unit - units + 1);
    }
    if (number > UINT64_MAX >> shift) {
        return false;
    }
    *value = (uint64_t) number << shift;
    return true;
}

static bool read_int(const char *text, int least, int *value)
{
    char *end;
    long number;

    errno = 0;
    number = strtol(text, &end, 10);
    if (0 != errno || end == text || '\0' != *end || number < least || number > INT_MAX) {
        return false;
    }
    *value = (int) number;
    return true;
}

/* ENTRIES[,STRIDE] */
static bool read_key_caps(const char *text, uint64_t *entries, uint64_t *stride)
{
    int length = 0;
    unsigned number, distance = 0;

    if ('0' > *text || '9' < *text || 1 != sscanf(text, "%9u%n", &number, &length)) {
        return false;
    }
    text += length;
    if (',' == *text) {
        ++text;
        if ('0' > *text || '9' < *text || 1 != sscanf(text, "%9u%n", &distance, &length)) {
            return false;
        }
        text += length;
    }
    *entries = number;
    *stride = distance;
    return '\0' == *text && 0 < number;
}

static bool read_seconds(const char *text, double *value)
{
    char *end;

    errno = 0;
    *value = strtod(text, &end);
    return 0 == errno && end != text && '\0' == *end && isfinite(*value) && 0.0 <= *value;
}

static bool read_memory(const char *value, bench_options_t *options)
{
    static const char *const names[] = {"host", "gpu-host", "host-gpu", "gpu"};
    int i;

    for (i = 0; i < 4; ++i) {
        if (0 == strcmp(value, names[i])) {
            options->memory = names[i];
            options->send_on_gpu = 0 != (i & 1);
            options->recv_on_gpu = 0 != (i & 2);
            return true;
        }
    }
    return false;
}

/* One option; false if its value is wrong, with what is right in *wants. */
static bool take_option(int code, const char *value, bench_options_t *options, const char **wants)
{
    switch (code) {
    case 'h':
        options->help = true;
        return true;
    case OPTION_LIST:
        options->list = true;
        return true;
    case OPTION_VERSION:
        options->version = true;
        return true;
    case OPTION_COMPARE:
        options->compare = true;
        return true;
    case OPTION_FLOOR:
        options->floor = true;
        return true;
    case OPTION_PARTS:
        options->parts = true;
        return true;
    case OPTION_PACKED:
        options->packed = true;
        return true;
    case OPTION_PATTERN:
        options->pattern = optarg;
        return true;
    case OPTION_MIN_BYTES:
        *wants = "a number of bytes, such as 4096, 64K or 1M";
        return read_bytes(value, &options->min_bytes);
    case OPTION_MAX_BYTES:
        *wants = "a number of bytes, such as 4096, 64K or 1M";
        return read_bytes(value, &options->max_bytes);
    case OPTION_REQUIRE_MIN_BYTES:
        *wants = "a number of bytes, such as 4096, 64K or 1M";
        options->has_require_min_bytes = true;
        return read_bytes(value, &options->require_min_bytes);
    case OPTION_REQUIRE_STEADY:
        *wants = "pieces of a key, 1 or more, and perhaps a distance in bytes, such as 16384,65535";
        options->require_steady = true;
        return read_key_caps(value, &options->key_entries, &options->key_stride);
    case OPTION_WARMUP:
        *wants = "a number, 0 or more";
        return read_int(value, 0, &options->warmup);
    case OPTION_ITERATIONS:
        *wants = "a number, 1 or more";
        return read_int(value, 1, &options->iterations);
    case OPTION_TRIPS:
        *wants = "a number, 1 or more";
        return read_int(value, 1, &options->trips);
    case OPTION_ROUNDS:
        *wants = "a number, 1 to 9";
        return read_int(value, 1, &options->rounds) && BENCH_ROUNDS_MOST >= options->rounds;
    case OPTION_WARMUP_OLD:
        *wants = "a number, 0 or more";
        return read_int(value, 0, &options->warmup_trips);
    case OPTION_HANG_SECONDS:
        *wants = "a number of seconds, 0 for no limit";
        return read_int(value, 0, &options->hang_seconds);
    case OPTION_MAX_SECONDS:
        *wants = "a number of seconds, 0 for no limit";
        return read_seconds(value, &options->max_seconds);
    case OPTION_MEMORY:
        *wants = "'host', 'gpu', 'gpu-host' (from a GPU to the host) or 'host-gpu'";
        return read_memory(value, options);
    case OPTION_CSV:
        options->csv = value;
        return true;
    case OPTION_JSON:
        options->json = value;
        return true;
    case OPTION_PROGRESS:
        *wants = "'auto', 'always' or 'never'";
        options->progress = 0 == strcmp(value, "always")  ? BENCH_PROGRESS_ALWAYS
                            : 0 == strcmp(value, "never") ? BENCH_PROGRESS_NEVER
                                                          : BENCH_PROGRESS_AUTO;
        return BENCH_PROGRESS_AUTO != options->progress || 0 == strcmp(value, "auto");
    case OPTION_SCHEMES:
        *wants =
            "some of auto, umr, direct, ipc, pack-gdr, pack-staged, pack-host, host, each once";
        return bench_schemes_parse(value, &options->schemes);
    case OPTION_REQUIRE_SCHEME:
        *wants =
            "'umr', 'direct', 'ipc', 'pack-gdr', 'pack-staged', 'pack-host', 'staged', 'host', "
            "or 'asked'";
        options->require_scheme = value;
        return 0 == strcmp(value, "umr") || 0 == strcmp(value, "direct")
               || 0 == strcmp(value, "ipc") || 0 == strcmp(value, "pack-gdr")
               || 0 == strcmp(value, "pack-staged") || 0 == strcmp(value, "pack-host")
               || 0 == strcmp(value, "staged") || 0 == strcmp(value, "host")
               || 0 == strcmp(value, "asked");
    default:
        return false;
    }
}

bool bench_options_parse(int argc, char **argv, bench_options_t *options, char *error,
                         size_t error_room)
{
    const char *layouts = "*";
    bool quick = false;
    char wrong[LAYOUT_ERROR];
    int code, index;

    memset(options, 0, sizeof(*options));
    options->memory = "host";
    options->max_bytes = UINT64_MAX;
    options->hang_seconds = HANG_SECONDS;
    options->trips = 1;
    options->rounds = 1;
    options->warmup = -1;
    options->iterations = -1;
    options->max_seconds = -1.0;

    opterr = 0; /* every rank comes here, and one of them shall speak */
    while (-1 != (code = getopt_long(argc, argv, ":h", long_options, &index))) {
        const char *wants = NULL;

        if ('?' == code) {
            snprintf(error, error_room, "there is no option '%s', or it takes no value",
                     0 != optopt && 256 > optopt ? (const char[]){'-', (char) optopt, '\0'}
                                                 : argv[optind - 1]);
            return false;
        }
        if (':' == code) {
            snprintf(error, error_room, "option '%s' needs a value", argv[optind - 1]);
            return false;
        }
        if (OPTION_LAYOUTS == code) {
            layouts = optarg;
        } else if (OPTION_QUICK == code) {
            quick = true;
        } else if (!take_option(code, optarg, options, &wants)) {
            snprintf(error, error_room, "--%s '%s': it wants %s", long_options[index].name, optarg,
                     wants);
            return false;
        }
    }
    if (optind < argc) {
        snprintf(error, error_room, "'%s' is no option, and nothing else is expected",
                 argv[optind]);
        return false;
    }
    if (!bench_chosen_read(layouts, &options->layouts, wrong)) {
        snprintf(error, error_room, "--layouts: %s", wrong);
        return false;
    }
    if (options->floor && !options->send_on_gpu) {
        snprintf(error, error_room, "--floor is the GPU's part: it wants --memory gpu or gpu-host");
        return false;
    }
    if (options->parts
        && (0 == options->schemes.count || !options->send_on_gpu || !options->recv_on_gpu)) {
        snprintf(error, error_room,
                 "--parts is of packed messages between GPUs: it wants --schemes, with pack-gdr, "
                 "pack-staged or pack-host in it, and --memory gpu");
        return false;
    }
    if (0 < options->schemes.count
        && (options->compare
            || (NULL != options->require_scheme
                && 0 != strcmp("asked", options->require_scheme)))) {
        snprintf(error, error_room,
                 "--schemes goes neither with --compare (name host) nor with --require-scheme, but "
                 "for asked");
        return false;
    }
    if (0 == options->schemes.count && (1 < options->rounds || 0 < options->warmup_trips)) {
        snprintf(error, error_room, "--%s is of schemes: it wants --schemes",
                 1 < options->rounds ? "rounds" : "settle");
        return false;
    }
    if (0 < options->warmup_trips && !bench_schemes_has(&options->schemes, "auto")) {
        snprintf(error, error_room, "--settle is of auto, which is not in --schemes");
        return false;
    }
    if (0 == options->schemes.count && NULL != options->require_scheme
        && 0 == strcmp("asked", options->require_scheme)) {
        snprintf(error, error_room, "--require-scheme asked: by --schemes, which is not there");
        return false;
    }
    if (options->min_bytes > options->max_bytes) {
        snprintf(error, error_room, "--min-bytes is more than --max-bytes");
        return false;
    }
    if (NULL != options->csv && NULL != options->json && 0 == strcmp(options->csv, "-")
        && 0 == strcmp(options->json, "-")) {
        snprintf(error, error_room, "--csv - and --json - cannot both go to stdout");
        return false;
    }
    if (0 > options->warmup) {
        options->warmup = quick ? QUICK_WARMUP : 10;
    }
    if (0 > options->iterations) {
        options->iterations = quick ? QUICK_ITERATIONS : 100;
    }
    if (0.0 > options->max_seconds) {
        options->max_seconds = quick ? QUICK_SECONDS : 0.0;
    }
    return true;
}

void bench_options_destroy(bench_options_t *options)
{
    bench_chosen_free(&options->layouts);
}
