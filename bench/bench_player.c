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
 * One of the two players of bench_versus: packs and unpacks layouts of umrddt_bench on command, and
 * reports the time. One process, no messages; plain MPI, for any implementation, except for the
 * engine "engine".
 *
 *     bench_player mpi|engine [--spoil packed|gap|data|slow|garbage|exit]
 *
 * Commands are lines on stdin, and each has its answer on stdout:
 *
 *     who                     who NAME OF THE LIBRARY
 *     list                    layout NAME, for each, then end
 *     open NAME pack|unpack   open BYTES PIECES GOT WANTED; or large: too much memory
 *     time                    time SECONDS, of the processor, for one
 *     close                   closed
 *
 * GOT is the hash of the packed data (or of the whole array, gaps included, after unpacking),
 * WANTED is that of the expected data by the layout's list of pieces. --spoil makes one error, to
 * test bench_versus.
 */

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <mpi.h>

#include "bench_player.h"
#include "bench_util.h"

#define ROUND_TIME 4e-4 /* minimum seconds of a round */
#define LARGEST    ((uint64_t) 128 << 20)
#define LINE_ROOM  512
#define WHO_ROOM   64 /* maximum characters of the library's version in the answer */

/* Where in a page the stream begins: array and stream that begin at the same offset would make each
 * load wait for a store that only looks like one to the same address. The same in every player. */
#define STREAM_SKEW 2112

/** The layout that is open. */
typedef struct {
    bench_layout_t layout;
    const bench_side_t *side; /* of the layout; NULL: nothing is open */
    bool unpack;
    void *context;
    char *array;
    char *stream;
    int repeats; /* in a round; 0: not found yet */
} play_t;

static const bench_player_variant_t *variant;
static const char *spoil = "";
static FILE *answers;

static bool spoils(const char *what)
{
    return 0 == strcmp(spoil, what);
}

/* ---------------------------------------------------------------------------------------------
 * MPI_Pack
 * ------------------------------------------------------------------------------------------- */

static void *mpi_open(const bench_side_t *side)
{
    return (void *) (uintptr_t) side;
}

static void mpi_pack(void *context, const void *buffer, void *stream)
{
    const bench_side_t *side = context;
    int position = 0;

    MPI_Pack(buffer, side->count, side->type, stream, (int) side->bytes, &position, MPI_COMM_SELF);
}

static void mpi_unpack(void *context, const void *stream, void *buffer)
{
    const bench_side_t *side = context;
    int position = 0;

    MPI_Unpack(stream, (int) side->bytes, &position, buffer, side->count, side->type,
               MPI_COMM_SELF);
}

static void mpi_close(void *context)
{
    (void) context;
}

static const bench_player_variant_t mpi_variant = {
    .name = "mpi",
    .open = mpi_open,
    .pack = mpi_pack,
    .unpack = mpi_unpack,
    .close = mpi_close,
};

/* ---------------------------------------------------------------------------------------------
 * Data
 * ------------------------------------------------------------------------------------------- */

/* Whole pages, and so at the same place within them in every player. */
static char *map(uint64_t bytes)
{
    void *memory = mmap(NULL, bytes + 2 * STREAM_SKEW, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (MAP_FAILED == memory) {
        bench_fatal("no memory for %llu bytes", (unsigned long long) bytes);
    }
    return memory;
}

static void unmap(char *memory, uint64_t bytes)
{
    munmap(memory, bytes + 2 * STREAM_SKEW);
}

static void fill_array(const play_t *play)
{
    uint64_t i;

    for (i = 0; i < play->side->array_bytes; ++i) {
        play->array[i] = (char) ((i + spoils("data")) * 2654435761u >> 11);
    }
}

static void fill_stream(const play_t *play)
{
    uint64_t i;

    for (i = 0; i < play->side->bytes; ++i) {
        play->stream[i] = (char) (i * 40503u >> 3);
    }
}

/* FNV-1a. */
static uint64_t hash(const char *data, uint64_t bytes)
{
    uint64_t value = 0xcbf29ce484222325u, i;

    for (i = 0; i < bytes; ++i) {
        value = (value ^ (unsigned char) data[i]) * 0x100000001b3u;
    }
    return value;
}

/* Pack or unpack by the list of pieces. */
static void perform_by_pieces(const play_t *play)
{
    char *stream = play->stream;
    size_t i;

    for (i = 0; i < play->side->piece_count; ++i) {
        const bench_piece_t *piece = &play->side->pieces[i];

        if (play->unpack) {
            memcpy(play->array + piece->offset, stream, piece->length);
        } else {
            memcpy(stream, play->array + piece->offset, piece->length);
        }
        stream += piece->length;
    }
}

static void perform(const play_t *play)
{
    char *buffer = play->array + play->side->origin;
    int times = spoils("slow") ? 4 : 1;

    while (0 < times--) {
        if (play->unpack) {
            variant->unpack(play->context, play->stream, buffer);
        } else {
            variant->pack(play->context, buffer, play->stream);
        }
    }
}

/* A byte that belongs to no piece, if there is one; else the first. */
static uint64_t find_gap(const bench_side_t *side)
{
    uint64_t gap;
    size_t i;

    for (i = 0; i < side->piece_count; ++i) {
        gap = (uint64_t) side->pieces[i].offset + side->pieces[i].length;
        if (gap < side->array_bytes
            && (i + 1 == side->piece_count || (int64_t) gap < side->pieces[i + 1].offset)) {
            return gap;
        }
    }
    return 0;
}

/* Perform the operation on the same data as all players, and return the hash of the result. */
static uint64_t try_once(const play_t *play, void (*how)(const play_t *play), bool planted)
{
    fill_array(play);
    if (play->unpack) {
        fill_stream(play);
    } else {
        memset(play->stream, 0, play->side->bytes);
    }
    how(play);
    if (planted && spoils("packed") && !play->unpack) {
        play->stream[play->side->bytes / 2] ^= 1;
    }
    if (planted && spoils("gap") && play->unpack) {
        play->array[find_gap(play->side)] ^= 1;
    }
    return play->unpack ? hash(play->array, play->side->array_bytes)
                        : hash(play->stream, play->side->bytes);
}

/* ---------------------------------------------------------------------------------------------
 * Commands
 * ------------------------------------------------------------------------------------------- */

static void report_who(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING], *at;
    int length;

    MPI_Get_library_version(version, &length);
    for (at = version; '\0' != *at && WHO_ROOM > at - version && ',' != *at && '\n' != *at; ++at) {
        *at = '\t' == *at ? ' ' : *at;
    }
    *at = '\0';
    fprintf(answers, "who %s, %s\n", version, variant->name);
}

static void list(void)
{
    size_t i;

    for (i = 0; i < bench_layout_count; ++i) {
        if (!bench_layout_matches(bench_layout_table[i].name, "contiguous")) {
            fprintf(answers, "layout %s\n", bench_layout_table[i].name);
        }
    }
    fprintf(answers, "end\n");
}

static void open_play(play_t *play, const char *name, bool unpack)
{
    uint64_t got, wanted;
    size_t i = bench_layout_find(name);

    if (i == bench_layout_count || NULL != play->side) {
        bench_fatal("cannot open '%s'", name);
    }
    memset(play, 0, sizeof(*play));
    bench_layout_create(&bench_layout_table[i], &play->layout);
    if (LARGEST < play->layout.send.array_bytes || LARGEST < play->layout.recv.array_bytes) {
        bench_layout_destroy(&play->layout);
        fprintf(answers, "large\n");
        return;
    }
    play->unpack = unpack;
    play->side = unpack ? &play->layout.recv : &play->layout.send;
    play->array = map(play->side->array_bytes);
    play->stream = map(play->side->bytes) + STREAM_SKEW;
    play->context = variant->open(play->side);
    wanted = try_once(play, perform_by_pieces, false);
    got = try_once(play, perform, true);
    fprintf(answers, "open %llu %llu %016llx %016llx\n", (unsigned long long) play->side->bytes,
            (unsigned long long) play->side->piece_count, (unsigned long long) got,
            (unsigned long long) wanted);
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double) time.tv_sec + 1e-9 * (double) time.tv_nsec;
}

static double time_repeats(const play_t *play)
{
    double start = now();
    int i;

    for (i = 0; i < play->repeats; ++i) {
        perform(play);
    }
    return now() - start;
}

/* A round: once more untimed, as the other player had the caches; then the repetitions. */
static void time_play(play_t *play)
{
    if (NULL == play->side) {
        bench_fatal("nothing is open");
    }
    perform(play);
    if (0 == play->repeats) {
        for (play->repeats = 1; time_repeats(play) < ROUND_TIME; play->repeats *= 2) {
        }
    }
    fprintf(answers, "time %.9e\n", time_repeats(play) / play->repeats);
}

static void close_play(play_t *play)
{
    if (NULL == play->side) {
        bench_fatal("nothing is open");
    }
    variant->close(play->context);
    unmap(play->array, play->side->array_bytes);
    unmap(play->stream - STREAM_SKEW, play->side->bytes);
    bench_layout_destroy(&play->layout);
    play->side = NULL;
    fprintf(answers, "closed\n");
}

static void serve(void)
{
    char line[LINE_ROOM], name[LINE_ROOM], direction[LINE_ROOM];
    play_t play = {.side = NULL};

    while (NULL != fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = '\0';
        if (0 == strcmp(line, "who")) {
            report_who();
        } else if (0 == strcmp(line, "list")) {
            list();
        } else if (2 == sscanf(line, "open %s %s", name, direction)) {
            open_play(&play, name, 0 == strcmp(direction, "unpack"));
        } else if (0 == strcmp(line, "time") && spoils("garbage")) {
            fprintf(answers, "tame 1\n");
        } else if (0 == strcmp(line, "time") && spoils("exit")) {
            exit(EXIT_FAILURE);
        } else if (0 == strcmp(line, "time")) {
            time_play(&play);
        } else if (0 == strcmp(line, "close")) {
            close_play(&play);
        } else {
            bench_fatal("unknown command '%s'", line);
        }
        fflush(answers);
    }
}

static bool choose_variant(const char *name)
{
    variant = 0 == strcmp(name, mpi_variant.name) ? &mpi_variant : NULL;
#if BENCH_PLAYER_ENGINE
    variant = 0 == strcmp(name, bench_player_engine.name) ? &bench_player_engine : variant;
#endif
    return NULL != variant;
}

int main(int argc, char **argv)
{
    if ((2 != argc && 4 != argc) || !choose_variant(argv[1])
        || (4 == argc && 0 != strcmp(argv[2], "--spoil"))) {
        fprintf(stderr, "usage: bench_player mpi%s [--spoil WHAT]; bench_versus calls it\n",
                BENCH_PLAYER_ENGINE ? "|engine" : "");
        return 2;
    }
    spoil = 4 == argc ? argv[3] : "";
    /* Output of a library on stdout must not be mistaken for an answer. */
    answers = fdopen(dup(STDOUT_FILENO), "w");
    dup2(STDERR_FILENO, STDOUT_FILENO);
#if BENCH_PLAYER_ENGINE
    setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
    setenv("OMPI_MCA_pml", "ob1", 1);
    setenv("OMPI_MCA_btl", "self", 1);
#endif
    MPI_Init(NULL, NULL);
    serve();
    MPI_Finalize();
    return 0;
}
