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
 * Two programs (bench_player, perhaps each with an MPI of its own) pack and unpack the same
 * layouts on one machine, by turns. See usage().
 *
 * Both live from begin to end and wait on a pipe for their turn, so only one of them runs at any
 * time. In every second round the other one begins.
 */

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench_times.h"

#define DEFAULT_ROUNDS 25
#define MAX_ROUNDS     10000
#define PATIENCE       120 /* time limit of an answer in seconds */
#define LINE_ROOM      512
#define NAME_ROOM      64
#define MAX_LAYOUTS    256

/** A player: its process and the line to it. */
typedef struct {
    const char *command;
    const char *what; /* "ours" or "theirs" */
    pid_t pid;
    int to;
    int from;
    char pending[LINE_ROOM]; /* read, and not yet a line */
    size_t pending_bytes;
    char answer[LINE_ROOM];
} player_t;

/** The ratios of one group of layouts, packing and unpacking. */
typedef struct {
    const char *name;
    const char *patterns[8];
    int count;
    double logs[2];     /* of the medians */
    double min_logs[2]; /* of the fastest rounds */
    double least[2];
    const char *least_name[2];
} group_t;

static const char *const directions[2] = {"pack", "unpack"};
static player_t players[2] = {{.what = "ours", .pid = -1}, {.what = "theirs", .pid = -1}};
static int rounds = DEFAULT_ROUNDS;
static bool wrong;

/* DDTBench's are those of applications; the others are umrddt_bench's own. */
static group_t groups[] = {
    {.name = "DDTBench",
     .patterns = {"MILC_*", "NAS_*", "SPECFEM3D_*", "WRF_*", "FFT2_*", "LAMMPS_*"}},
    {.name = "others", .patterns = {"vector_*", "face_*", "indexed_*"}},
    {.name = "all", .patterns = {"*"}},
};
#define GROUP_COUNT (sizeof(groups) / sizeof(groups[0]))

static void usage(FILE *out)
{
    fprintf(
        out,
        "usage: bench_versus [--rounds N] [--layouts GLOB,...] OURS THEIRS\n"
        "\n"
        "Compares the packing of two implementations. OURS and THEIRS are shell commands that\n"
        "start bench_player:\n"
        "\n"
        "    bench_versus 'bench_player engine' 'bench_player mpi'\n"
        "\n"
        "Both pack the send side and unpack the receive side of each layout, in turns, N times\n"
        "(default %d). A round takes at least 0.4 ms, after one untimed repetition. Times are\n"
        "medians over the rounds of the processor time of one packing. A ratio is theirs divided\n"
        "by ours: above 1, ours is faster. Before the timing, the packed data and the unpacked\n"
        "arrays, gaps included, are compared with the piece list of the layout and with each\n"
        "other. The column \"pieces\" has those of the sender and of the receiver.\n"
        "\n"
        "Exit status: 0 success; 1 bytes were wrong or a player failed; 2 wrong arguments.\n",
        DEFAULT_ROUNDS);
}

/* ---------------------------------------------------------------------------------------------
 * Players
 * ------------------------------------------------------------------------------------------- */

static void dismiss(player_t *player)
{
    if (0 < player->pid) {
        close(player->to);
        close(player->from);
        waitpid(player->pid, NULL, 0);
        player->pid = -1;
    }
}

static void fatal(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

static void fatal(const char *format, ...)
{
    va_list arguments;
    int i;

    fflush(stdout);
    fprintf(stderr, "bench_versus: ");
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\n");
    for (i = 0; i < 2; ++i) {
        if (0 < players[i].pid) {
            kill(-players[i].pid, SIGKILL);
        }
        dismiss(&players[i]);
    }
    exit(EXIT_FAILURE);
}

/* In a process group of its own: the shell may stay between. */
static void hire(player_t *player)
{
    int to[2], from[2];

    if (0 != pipe(to) || 0 != pipe(from)) {
        fatal("no pipe: %s", strerror(errno));
    }
    player->pid = fork();
    if (0 > player->pid) {
        fatal("no process: %s", strerror(errno));
    }
    if (0 == player->pid) {
        setpgid(0, 0);
        dup2(to[0], STDIN_FILENO);
        dup2(from[1], STDOUT_FILENO);
        close(to[0]);
        close(to[1]);
        close(from[0]);
        close(from[1]);
        if (0 < players[0].pid) {
            /* the first player must see the end of its own line */
            close(players[0].to);
            close(players[0].from);
        }
        execl("/bin/sh", "sh", "-c", player->command, (char *) NULL);
        _exit(127);
    }
    setpgid(player->pid, player->pid);
    close(to[0]);
    close(from[1]);
    player->to = to[1];
    player->from = from[0];
}

static void report(player_t *player, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void report(player_t *player, const char *format, ...)
{
    char line[LINE_ROOM];
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    if (length != write(player->to, line, (size_t) length)) {
        fatal("%s (%s) is gone", player->what, player->command);
    }
}

/* The next line, without its end, in player->answer. */
static void read_answer(player_t *player)
{
    struct pollfd ready = {.fd = player->from, .events = POLLIN};
    char *end;
    ssize_t got;

    while (NULL == (end = memchr(player->pending, '\n', player->pending_bytes))) {
        if (sizeof(player->pending) == player->pending_bytes) {
            fatal("%s (%s) answers in lines that are too long", player->what, player->command);
        }
        if (0 == poll(&ready, 1, 1000 * PATIENCE)) {
            fatal("%s (%s) has not answered for %d seconds", player->what, player->command,
                  PATIENCE);
        }
        got = read(player->from, player->pending + player->pending_bytes,
                   sizeof(player->pending) - player->pending_bytes);
        if (0 > got && EINTR == errno) {
            continue;
        }
        if (0 >= got) {
            fatal("%s (%s) has ended", player->what, player->command);
        }
        player->pending_bytes += (size_t) got;
    }
    *end++ = '\0';
    strcpy(player->answer, player->pending);
    player->pending_bytes -= (size_t) (end - player->pending);
    memmove(player->pending, end, player->pending_bytes);
}

static void misunderstood(const player_t *player)
{
    fatal("%s (%s) answered '%s'", player->what, player->command, player->answer);
}

/* ---------------------------------------------------------------------------------------------
 * A layout
 * ------------------------------------------------------------------------------------------- */

/** A player's answer about a layout that it has opened. */
typedef struct {
    unsigned long long bytes, pieces, got, wanted;
} opened_t;

/* False if a player finds it too large. */
static bool open_layout(const char *name, int direction, opened_t opened[2])
{
    bool large[2];
    int i;

    for (i = 0; i < 2; ++i) {
        report(&players[i], "open %s %s\n", name, directions[direction]);
        read_answer(&players[i]);
        large[i] = 0 == strcmp(players[i].answer, "large");
        if (!large[i]
            && 4
                   != sscanf(players[i].answer, "open %llu %llu %llx %llx", &opened[i].bytes,
                             &opened[i].pieces, &opened[i].got, &opened[i].wanted)) {
            misunderstood(&players[i]);
        }
    }
    if (large[0] != large[1]) {
        fatal("%s is too large for one player only", name);
    }
    return !large[0];
}

/* The bytes of both are right, and the same. */
static bool check_layout(const char *name, int direction, const opened_t opened[2])
{
    bool right = true;
    int i;

    for (i = 0; i < 2; ++i) {
        if (opened[i].got != opened[i].wanted) {
            fprintf(stderr, "FAILED: %s, %s: %s gave other bytes than the list of pieces\n", name,
                    directions[direction], players[i].what);
            right = false;
        }
    }
    if (opened[0].bytes != opened[1].bytes || opened[0].pieces != opened[1].pieces
        || opened[0].wanted != opened[1].wanted) {
        fprintf(stderr, "FAILED: %s, %s: the two players do not have the same data\n", name,
                directions[direction]);
        right = false;
    }
    return right;
}

static double time_player(player_t *player)
{
    double seconds;

    report(player, "time\n");
    read_answer(player);
    if (1 != sscanf(player->answer, "time %lf", &seconds) || !(0 < seconds)) {
        misunderstood(player);
    }
    return seconds;
}

/* One direction of a layout. False if the layout is too large or wrong. */
static bool play(const char *name, int direction, opened_t opened[2], bench_times_t times[2])
{
    static double samples[2][MAX_ROUNDS];
    bool right;
    int round, i;

    if (!open_layout(name, direction, opened)) {
        return false;
    }
    right = check_layout(name, direction, opened);
    wrong = wrong || !right;
    for (i = 0; i < 2 && right; ++i) {
        time_player(&players[i]); /* finds how many repetitions a round has */
    }
    for (round = 0; round < rounds && right; ++round) {
        for (i = 0; i < 2; ++i) {
            int which = (round + i) % 2;

            samples[which][round] = time_player(&players[which]);
        }
    }
    for (i = 0; i < 2; ++i) {
        report(&players[i], "close\n");
        read_answer(&players[i]);
        if (0 != strcmp(players[i].answer, "closed")) {
            misunderstood(&players[i]);
        }
        if (right) {
            bench_times_summarise(samples[i], rounds, &times[i]);
        }
    }
    return right;
}

/* ---------------------------------------------------------------------------------------------
 * All layouts
 * ------------------------------------------------------------------------------------------- */

static bool in_group(const group_t *group, const char *name)
{
    size_t i;

    for (i = 0; i < sizeof(group->patterns) / sizeof(group->patterns[0]); ++i) {
        if (NULL != group->patterns[i] && 0 == fnmatch(group->patterns[i], name, 0)) {
            return true;
        }
    }
    return false;
}

static void count_in(group_t *group, const char *name, bench_times_t times[2][2])
{
    int variant;

    for (variant = 0; variant < 2; ++variant) {
        double ratio = times[variant][1].median / times[variant][0].median;

        group->logs[variant] += log(ratio);
        group->min_logs[variant] += log(times[variant][1].min / times[variant][0].min);
        if (0 == group->count || ratio < group->least[variant]) {
            group->least[variant] = ratio;
            group->least_name[variant] = name;
        }
    }
    ++group->count;
}

/* @p name lives as long as the groups. */
static void run_layout(const char *name)
{
    bench_times_t times[2][2];
    opened_t opened[2][2];
    char pieces[NAME_ROOM];
    size_t i;
    int variant;

    for (variant = 0; variant < 2; ++variant) {
        if (!play(name, variant, opened[variant], times[variant])) {
            return;
        }
    }
    snprintf(pieces, sizeof(pieces), "%llu:%llu", opened[0][0].pieces, opened[1][0].pieces);
    printf("%-26s %9llu %13s %10.2f %10.2f %6.2f %10.2f %10.2f %6.2f\n", name, opened[0][0].bytes,
           pieces, times[0][0].median, times[0][1].median, times[0][1].median / times[0][0].median,
           times[1][0].median, times[1][1].median, times[1][1].median / times[1][0].median);
    fflush(stdout);
    for (i = 0; i < GROUP_COUNT; ++i) {
        if (in_group(&groups[i], name)) {
            count_in(&groups[i], name, times);
        }
    }
}

/* True if @p name is selected by --layouts. */
static bool is_wanted(const char *name, const char *list)
{
    char copy[LINE_ROOM], *item, *rest;

    if (NULL == list) {
        return true;
    }
    snprintf(copy, sizeof(copy), "%s", list);
    for (item = strtok_r(copy, ",", &rest); NULL != item; item = strtok_r(NULL, ",", &rest)) {
        if (0 == fnmatch(item, name, 0)) {
            return true;
        }
    }
    return false;
}

static void run_all(const char *list)
{
    static char names[MAX_LAYOUTS][NAME_ROOM];
    int count = 0, i, variant;
    size_t g;

    report(&players[0], "list\n");
    for (read_answer(&players[0]); 0 != strcmp(players[0].answer, "end");
         read_answer(&players[0])) {
        if (MAX_LAYOUTS == count || 1 != sscanf(players[0].answer, "layout %63s", names[count])) {
            misunderstood(&players[0]);
        }
        count += is_wanted(names[count], list);
    }
    for (i = 0; i < 2; ++i) {
        report(&players[i], "who\n");
        read_answer(&players[i]);
        if (0 != strncmp(players[i].answer, "who ", 4)) {
            misunderstood(&players[i]);
        }
        printf("# %s: %s\n", players[i].what, players[i].answer + 4);
    }
    printf("# processor time in us, medians of %d rounds\n", rounds);
    printf("%-26s %9s %13s %10s %10s %6s %10s %10s %6s\n", "layout", "bytes", "pieces", "pack ours",
           "theirs", "ratio", "unp. ours", "theirs", "ratio");
    for (i = 0; i < count; ++i) {
        run_layout(names[i]);
    }
    for (g = 0; g < GROUP_COUNT; ++g) {
        for (variant = 0; variant < 2 && 0 < groups[g].count; ++variant) {
            printf("# %s, %s: %d layouts, geometric mean of the ratios %.2f (of the fastest rounds "
                   "%.2f), least %.2f (%s)\n",
                   groups[g].name, directions[variant], groups[g].count,
                   exp(groups[g].logs[variant] / groups[g].count),
                   exp(groups[g].min_logs[variant] / groups[g].count), groups[g].least[variant],
                   groups[g].least_name[variant]);
        }
    }
    if (0 == groups[GROUP_COUNT - 1].count && !wrong) {
        fatal("nothing was measured: no such layout, or all are too large");
    }
}

/* How many arguments were options; -1 and a message if one is wrong. */
static int read_options(int argc, char **argv, const char **list)
{
    int at = 1;

    for (; at + 1 < argc && 0 == strncmp(argv[at], "--", 2); at += 2) {
        char *end;
        long value;

        if (0 == strcmp(argv[at], "--layouts")) {
            *list = argv[at + 1];
            continue;
        }
        value = strtol(argv[at + 1], &end, 10);
        if (0 != strcmp(argv[at], "--rounds") || '\0' != *end || 1 > value || MAX_ROUNDS < value) {
            fprintf(stderr, "bench_versus: %s '%s'\n", argv[at], argv[at + 1]);
            return -1;
        }
        rounds = (int) value;
    }
    return at;
}

int main(int argc, char **argv)
{
    const char *list = NULL;
    int at, i;

    if (2 == argc && 0 == strcmp(argv[1], "--help")) {
        usage(stdout);
        return 0;
    }
    at = read_options(argc, argv, &list);
    if (0 > at || argc != at + 2) {
        usage(stderr);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    for (i = 0; i < 2; ++i) {
        players[i].command = argv[at + i];
        hire(&players[i]);
    }
    run_all(list);
    for (i = 0; i < 2; ++i) {
        dismiss(&players[i]);
    }
    if (wrong) {
        printf("# FAILED: bytes were wrong\n");
    }
    return wrong ? EXIT_FAILURE : 0;
}
