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

#include "bench_exchanges.h"
#include "bench_options.h"
#include "bench_schemes.h"
#include "bench_steady.h"
#include "bench_util.h"
#include "bench_verify.h"
#include "layouts.h"

/* Values of --quick; explicit options have precedence. */
#define QUICK_WARMUP     2
#define QUICK_ITERATIONS 20
#define QUICK_SECONDS    1.0

/* --exchange: exchanges per iteration, and with --quick; the sizes of the blocks of collectives. */
#define EXCHANGE_BURST            5
#define EXCHANGE_WARMUP           2
#define EXCHANGE_ITERATIONS       8
#define EXCHANGE_QUICK_ITERATIONS 4
#define EXCHANGE_SIZES            "8,1K,8K,64K,512K,4M,32M"

/* Default of --hang-seconds. The slowest layout under valgrind takes much less. */
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
    OPTION_BARE,
    OPTION_BREAKDOWN,
    OPTION_PATTERN,
    OPTION_CSV,
    OPTION_JSON,
    OPTION_PROGRESS,
    OPTION_REQUIRE_SCHEME,
    OPTION_REQUIRE_MIN_BYTES,
    OPTION_REQUIRE_STEADY,
    OPTION_CONTIGUOUS_RECEIVER,
    OPTION_SCHEMES,
    OPTION_EXCHANGE,
    OPTION_SIZES,
    OPTION_BURST,
    OPTION_ROUNDS,
    OPTION_AUTO_WARMUP
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
    {"burst", required_argument, NULL, OPTION_BURST},
    {"rounds", required_argument, NULL, OPTION_ROUNDS},
    {"auto-warmup", required_argument, NULL, OPTION_AUTO_WARMUP},
    {"max-seconds-per-layout", required_argument, NULL, OPTION_MAX_SECONDS},
    {"quick", no_argument, NULL, OPTION_QUICK},
    {"hang-seconds", required_argument, NULL, OPTION_HANG_SECONDS},
    {"memory", required_argument, NULL, OPTION_MEMORY},
    {"compare", no_argument, NULL, OPTION_COMPARE},
    {"bare", no_argument, NULL, OPTION_BARE},
    {"breakdown", no_argument, NULL, OPTION_BREAKDOWN},
    {"pattern", required_argument, NULL, OPTION_PATTERN},
    {"csv", required_argument, NULL, OPTION_CSV},
    {"json", required_argument, NULL, OPTION_JSON},
    {"progress", required_argument, NULL, OPTION_PROGRESS},
    {"require-scheme", required_argument, NULL, OPTION_REQUIRE_SCHEME},
    {"require-min-bytes", required_argument, NULL, OPTION_REQUIRE_MIN_BYTES},
    {"require-steady", required_argument, NULL, OPTION_REQUIRE_STEADY},
    {"contiguous-receiver", no_argument, NULL, OPTION_CONTIGUOUS_RECEIVER},
    {"schemes", required_argument, NULL, OPTION_SCHEMES},
    {"exchange", required_argument, NULL, OPTION_EXCHANGE},
    {"sizes", required_argument, NULL, OPTION_SIZES},
    /* Names of earlier versions, which the help does not list. */
    {"trips", required_argument, NULL, OPTION_BURST},
    {"settle", required_argument, NULL, OPTION_AUTO_WARMUP},
    {"floor", no_argument, NULL, OPTION_BARE},
    {"parts", no_argument, NULL, OPTION_BREAKDOWN},
    {"packed", no_argument, NULL, OPTION_CONTIGUOUS_RECEIVER},
    {NULL, 0, NULL, 0},
};

void bench_options_usage(FILE *file)
{
    fprintf(file,
            "usage: mpirun -n 2 umrddt_bench [OPTIONS]   (--help lists the options, --list the "
            "layouts)\n");
}

void bench_options_help(FILE *file)
{
    bench_options_usage(file);
    fprintf(
        file,
        "\n"
        "Ping-pong benchmark of MPI messages in the memory layouts of applications. Rank 2i exchanges\n"
        "messages with rank 2i+1; the number of ranks must be even. Every message is verified byte by\n"
        "byte, gaps included, outside of the timed part. A wrong byte makes the exit status 1.\n"
        "\n"
        "Layouts\n"
        "  --list                   print the layouts with their sizes, and exit\n"
        "  --layouts LAYOUT[,LAYOUT]  run only these: names, glob patterns, names of families\n"
        "                           (MILC_su3_zd), or descriptions (see below). Large layouts are\n"
        "                           selected by full name only: contiguous_64MiB,\n"
        "                           vector_64B_x1048576, vector_1KiB_x65536, vector_64KiB_x1024,\n"
        "                           and of 256 MiB: contiguous_256MiB, vector_512B_x524288,\n"
        "                           vector_4KiB_x65536, vector_64KiB_x4096\n"
        "  --min-bytes N            minimum message size in bytes (also 64K, 1M, 1G)\n"
        "  --max-bytes N            maximum message size in bytes\n"
        "Descriptions of layouts (the same at both sides)\n"
        "  contiguous BYTES         one block\n"
        "  vector COUNT x BYTES     COUNT blocks; 'stride BYTES' sets their distance (default: twice\n"
        "                           the block): 'vector 128 x 1024 stride 2048'\n"
        "  subarray N x N of N x N  part of an array of 1 to 8 dimensions; the last one is contiguous\n"
        "                           in memory. 'at N x N' sets the start (default 0), 'element BYTES'\n"
        "                           the element size (default 8):\n"
        "                           'subarray 64 x 1 of 64 x 64 at 0 x 63'\n"
        "  indexed FILE             one block per line of the file: OFFSET LENGTH in bytes, in this\n"
        "                           order; with 'block BYTES', OFFSET only. # starts a comment. Quote\n"
        "                           FILE (\"...\") if its name contains blanks or commas\n"
        "Iterations\n"
        "  --warmup N               untimed iterations before the timed ones (default 10)\n"
        "  --iterations N           timed iterations (default 100)\n"
        "  --burst N                round trips per iteration without a pause (default 1). The time\n"
        "                           is per message; only the last message is verified. With 1, the\n"
        "                           caches hold other data before each message\n"
        "  --max-seconds-per-layout S  stop a layout after S seconds, but not before %d timed\n"
        "                           iterations; warm-ups use at most a third of S (default 0: no\n"
        "                           limit)\n"
        "  --quick                  same as --warmup %d --iterations %d --max-seconds-per-layout %.0f;\n"
        "                           explicit options have precedence\n"
        "  --hang-seconds N         abort with exit status 3 if an iteration takes longer (default %d;\n"
        "                           0: no limit)\n"
        "Measurements\n"
        "  --memory WHERE           memory of the buffers: host (default; system memory), gpu,\n"
        "                           gpu-host (send from a GPU, receive in system memory), host-gpu.\n"
        "                           Processes use the GPUs of their node round robin\n"
        "  --compare                run every layout also with the base PML alone, in alternating\n"
        "                           iterations, and print both times\n"
        "  --schemes LIST           run every layout with each of these protocols, and print a table\n"
        "                           at the end: %s;\n"
        "                           direct and host are other names of sgl and base, and the output\n"
        "                           has these names\n"
        "  --rounds N               with --schemes: repeat all protocols N times (1 to 9), in turns.\n"
        "                           The table has the median of the N medians\n"
        "  --auto-warmup N          with --schemes that include auto: send N messages with auto before\n"
        "                           the first round, so that mkeys and registrations exist; at most\n"
        "                           %d times the seconds of --max-seconds-per-layout (default 0)\n"
        "  --bare                   if the send buffer is on a GPU: also time the bare GPU operation\n"
        "                           (one copy by CUDA IPC, signalled through shared memory, without\n"
        "                           MPI). Also time a contiguous message of the same size with the\n"
        "                           base PML\n"
        "  --breakdown              with --schemes and --memory gpu: print parts of the message time\n"
        "                           below each packed layout: packing, unpacking and copies through\n"
        "                           pinned memory, each measured alone, and its share\n"
        "  --pattern VALUE          use a communicator with the info key mpi_communication_pattern =\n"
        "                           VALUE, such as MPI_CPU_TO_CPU\n"
        "  --contiguous-receiver    receive every message as one block (MPI_PACKED)\n"
        "  --require-scheme SCHEME  exit status 1 if a non-contiguous layout used another protocol:\n"
        "                           umr, sgl, ipc, pack-gdr, pack-staged, pack-host, base, staged\n"
        "                           (the base PML through staging buffers of umrddt), or requested (with\n"
        "                           --schemes: the one of the list). Messages smaller than\n"
        "                           pml_umrddt_min_size are exempt\n"
        "  --require-min-bytes N    use this size instead of pml_umrddt_min_size\n"
        "  --require-steady ENTRIES[,STRIDE]  exit status 1 if a timed UMR message created, mapped or\n"
        "                           registered anything, or used more than %d control bytes. Also if it\n"
        "                           used more RDMA writes than needed with mkeys of ENTRIES pieces, or\n"
        "                           of equal blocks up to STRIDE bytes apart. umrddt_info --selftest\n"
        "                           prints both values. Requires 2 warm-ups\n"
        "Exchanges\n"
        "  --exchange LIST          time whole exchanges of any number of ranks instead of single\n"
        "                           messages: bcast, allgather, alltoall, allreduce, iallreduce (until\n"
        "                           MPI_Wait returns), stencil, halo, nbody, alltoallw (subarrays of\n"
        "                           matrices), self (a message to oneself), all; halo26 (26 neighbours\n"
        "                           of a grid), faces (6 of them).\n"
        "                           A name also stands for those that continue it after '-'\n"
        "                           (halo26-128, halo26-32). An iteration is one exchange that is not\n"
        "                           timed, then --burst timed ones (default %d), then the check of\n"
        "                           every word. Default: --warmup %d --iterations %d; --quick: %d\n"
        "  --sizes BYTES[,BYTES]    blocks of bcast, allgather, alltoall, allreduce, iallreduce\n"
        "                           and self, in multiples of 8 bytes (default %s)\n"
        "Output\n"
        "  --csv FILE, --json FILE  also write the results to FILE; - is stdout, and the table then\n"
        "                           goes to stderr\n"
        "  --progress WHEN          progress line on stderr: auto (if it is a terminal), always,\n"
        "                           never. Under mpirun stderr is a pipe: use always\n"
        "  --help, --version\n"
        "\n"
        "Verification. After every message, warm-ups included: all bytes of the data, which differ\n"
        "from those of the previous 255 messages and of the other direction; the count of the status;\n"
        "all bytes of the gaps and of margins of %d bytes, in arrays up to %u MiB. In larger arrays:\n"
        "gaps within %d bytes of a block after every message, and all other gaps, also those of send\n"
        "buffers, after the last message.\n"
        "\n"
        "Memory. Pages without a block are not allocated. The x faces of the 512 cubes have a block in\n"
        "every page: 2 GiB per rank. Exclude them with --layouts or --max-bytes on small machines.\n"
        "\n"
        "umrddt_bench --defer measures the overhead of umrddt for messages that it passes through;\n"
        "see umrddt_bench --defer --help.\n"
        "\n"
        "Exit status: 0 success; 1 a message was wrong, or a --require option was not met; 2 wrong\n"
        "command line or number of ranks, or a file cannot be written; 3 a message did not arrive.\n",
        BENCH_MIN_ITERATIONS, QUICK_WARMUP, QUICK_ITERATIONS, QUICK_SECONDS, HANG_SECONDS,
        bench_schemes_names, BENCH_WARMUP_SECONDS, BENCH_STEADY_CONTROL_BYTES, EXCHANGE_BURST,
        EXCHANGE_WARMUP, EXCHANGE_ITERATIONS, EXCHANGE_QUICK_ITERATIONS, EXCHANGE_SIZES,
        BENCH_MARGIN_BYTES, BENCH_SAMPLE_BYTES >> 20, BENCH_NEAR_BYTES);
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

/* BYTES[,BYTES], in multiples of 8 */
static bool read_sizes(const char *text, bench_options_t *options)
{
    char list[256], *item, *rest = NULL;

    options->size_count = 0;
    if (sizeof(list) <= (size_t) snprintf(list, sizeof(list), "%s", text)) {
        return false;
    }
    for (item = strtok_r(list, ",", &rest); NULL != item; item = strtok_r(NULL, ",", &rest)) {
        uint64_t bytes;

        if (BENCH_SIZES_MOST == options->size_count || !read_bytes(item, &bytes) || 0 == bytes
            || 0 != bytes % 8 || BENCH_SIZE_MOST < bytes) {
            return false;
        }
        options->sizes[options->size_count++] = bytes;
    }
    return 0 < options->size_count;
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

/* Store one option. If its value is wrong, return false and a description of valid ones. */
static bool take_option(int code, const char *value, bench_options_t *options,
                        const char **expected)
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
    case OPTION_BARE:
        options->bare = true;
        return true;
    case OPTION_BREAKDOWN:
        options->breakdown = true;
        return true;
    case OPTION_CONTIGUOUS_RECEIVER:
        options->contiguous_receiver = true;
        return true;
    case OPTION_EXCHANGE:
        options->exchange = value;
        return true;
    case OPTION_SIZES:
        *expected = "multiples of 8 bytes up to 1G, at most 16, such as 8,64K,32M";
        return read_sizes(value, options);
    case OPTION_PATTERN:
        options->pattern = optarg;
        return true;
    case OPTION_MIN_BYTES:
        *expected = "a number of bytes, such as 4096, 64K or 1M";
        return read_bytes(value, &options->min_bytes);
    case OPTION_MAX_BYTES:
        *expected = "a number of bytes, such as 4096, 64K or 1M";
        return read_bytes(value, &options->max_bytes);
    case OPTION_REQUIRE_MIN_BYTES:
        *expected = "a number of bytes, such as 4096, 64K or 1M";
        options->has_require_min_bytes = true;
        return read_bytes(value, &options->require_min_bytes);
    case OPTION_REQUIRE_STEADY:
        *expected = "the pieces of an mkey, 1 or more, and optionally a stride in bytes, such as "
                    "16384,65535";
        options->require_steady = true;
        return read_key_caps(value, &options->key_entries, &options->key_stride);
    case OPTION_WARMUP:
        *expected = "a number, 0 or more";
        return read_int(value, 0, &options->warmup);
    case OPTION_ITERATIONS:
        *expected = "a number, 1 or more";
        return read_int(value, 1, &options->iterations);
    case OPTION_BURST:
        *expected = "a number, 1 or more";
        return read_int(value, 1, &options->burst);
    case OPTION_ROUNDS:
        *expected = "a number, 1 to 9";
        return read_int(value, 1, &options->rounds) && BENCH_ROUNDS_MOST >= options->rounds;
    case OPTION_AUTO_WARMUP:
        *expected = "a number, 0 or more";
        return read_int(value, 0, &options->auto_warmup);
    case OPTION_HANG_SECONDS:
        *expected = "a number of seconds, 0 for no limit";
        return read_int(value, 0, &options->hang_seconds);
    case OPTION_MAX_SECONDS:
        *expected = "a number of seconds, 0 for no limit";
        return read_seconds(value, &options->max_seconds);
    case OPTION_MEMORY:
        *expected = "'host', 'gpu', 'gpu-host' (from a GPU to system memory) or 'host-gpu'";
        return read_memory(value, options);
    case OPTION_CSV:
        options->csv = value;
        return true;
    case OPTION_JSON:
        options->json = value;
        return true;
    case OPTION_PROGRESS:
        *expected = "'auto', 'always' or 'never'";
        options->progress = 0 == strcmp(value, "always")  ? BENCH_PROGRESS_ALWAYS
                            : 0 == strcmp(value, "never") ? BENCH_PROGRESS_NEVER
                                                          : BENCH_PROGRESS_AUTO;
        return BENCH_PROGRESS_AUTO != options->progress || 0 == strcmp(value, "auto");
    case OPTION_SCHEMES:
        *expected =
            "some of auto, umr, sgl, ipc, pack-gdr, pack-staged, pack-host, base, each once";
        return bench_schemes_parse(value, &options->schemes);
    case OPTION_REQUIRE_SCHEME:
        *expected =
            "'umr', 'sgl', 'ipc', 'pack-gdr', 'pack-staged', 'pack-host', 'staged', 'base', or "
            "'requested'";
        /* "asked": the name in earlier releases */
        options->require_scheme =
            bench_schemes_canonical(0 == strcmp(value, "asked") ? "requested" : value);
        return 0 != strcmp("auto", value)
               && (NULL != bench_schemes_find(options->require_scheme)
                   || 0 == strcmp(value, "staged")
                   || 0 == strcmp(options->require_scheme, "requested"));
    default:
        return false;
    }
}

/* Check --exchange and set its defaults. */
static bool finish_exchange(bench_options_t *options, bool quick, char *error, size_t error_room)
{
    char unknown[64];

    if (!bench_exchanges_known(options->exchange, unknown, sizeof(unknown))) {
        snprintf(error, error_room, "--exchange: unknown exchange '%s'", unknown);
        return false;
    }
    if (options->compare || options->bare || 0 < options->schemes.count || options->require_steady
        || NULL != options->require_scheme || options->contiguous_receiver) {
        snprintf(error, error_room,
                 "--exchange excludes --compare, --bare, --schemes, --contiguous-receiver and "
                 "--require options");
        return false;
    }
    if (options->send_on_gpu != options->recv_on_gpu) {
        snprintf(error, error_room, "--exchange requires --memory host or gpu");
        return false;
    }
    if (0 == options->size_count) {
        (void) read_sizes(EXCHANGE_SIZES, options);
    }
    if (0 == options->burst) {
        options->burst = EXCHANGE_BURST;
    }
    if (0 > options->warmup) {
        options->warmup = EXCHANGE_WARMUP;
    }
    if (0 > options->iterations) {
        options->iterations = quick ? EXCHANGE_QUICK_ITERATIONS : EXCHANGE_ITERATIONS;
    }
    return true;
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
    options->rounds = 1;
    options->warmup = -1;
    options->iterations = -1;
    options->max_seconds = -1.0;

    opterr = 0; /* the caller prints the error on one rank */
    while (-1 != (code = getopt_long(argc, argv, ":h", long_options, &index))) {
        const char *expected = NULL;

        if ('?' == code) {
            snprintf(error, error_room, "unknown option '%s', or it takes no value",
                     0 != optopt && 256 > optopt ? (const char[]){'-', (char) optopt, '\0'}
                                                 : argv[optind - 1]);
            return false;
        }
        if (':' == code) {
            snprintf(error, error_room, "option '%s' requires a value", argv[optind - 1]);
            return false;
        }
        if (OPTION_LAYOUTS == code) {
            layouts = optarg;
        } else if (OPTION_QUICK == code) {
            quick = true;
        } else if (!take_option(code, optarg, options, &expected)) {
            snprintf(error, error_room, "--%s '%s': expected %s", long_options[index].name, optarg,
                     expected);
            return false;
        }
    }
    if (optind < argc) {
        snprintf(error, error_room, "unexpected argument '%s'", argv[optind]);
        return false;
    }
    if (!bench_chosen_read(layouts, &options->layouts, wrong)) {
        snprintf(error, error_room, "--layouts: %s", wrong);
        return false;
    }
    if (options->bare && !options->send_on_gpu) {
        snprintf(error, error_room, "--bare requires --memory gpu or gpu-host");
        return false;
    }
    if (options->breakdown
        && (0 == options->schemes.count || !options->send_on_gpu || !options->recv_on_gpu)) {
        snprintf(error, error_room,
                 "--breakdown requires --memory gpu, and --schemes with pack-gdr, pack-staged or "
                 "pack-host");
        return false;
    }
    if (0 < options->schemes.count
        && (options->compare
            || (NULL != options->require_scheme
                && 0 != strcmp("requested", options->require_scheme)))) {
        snprintf(error, error_room,
                 "--schemes excludes --compare (use base) and values of --require-scheme other "
                 "than requested");
        return false;
    }
    if (0 == options->schemes.count && (1 < options->rounds || 0 < options->auto_warmup)) {
        snprintf(error, error_room, "--%s requires --schemes",
                 1 < options->rounds ? "rounds" : "auto-warmup");
        return false;
    }
    if (0 < options->auto_warmup && !bench_schemes_has(&options->schemes, "auto")) {
        snprintf(error, error_room, "--auto-warmup requires auto among --schemes");
        return false;
    }
    if (0 == options->schemes.count && NULL != options->require_scheme
        && 0 == strcmp("requested", options->require_scheme)) {
        snprintf(error, error_room, "--require-scheme requested requires --schemes");
        return false;
    }
    if (options->min_bytes > options->max_bytes) {
        snprintf(error, error_room, "--min-bytes is larger than --max-bytes");
        return false;
    }
    if (NULL != options->csv && NULL != options->json && 0 == strcmp(options->csv, "-")
        && 0 == strcmp(options->json, "-")) {
        snprintf(error, error_room, "--csv - and --json - cannot both go to stdout");
        return false;
    }
    if (NULL == options->exchange && 0 < options->size_count) {
        snprintf(error, error_room, "--sizes requires --exchange");
        return false;
    }
    if (NULL != options->exchange && !finish_exchange(options, quick, error, error_room)) {
        return false;
    }
    options->burst = 0 < options->burst ? options->burst : 1;
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
