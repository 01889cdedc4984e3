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
 * A sampling profiler to preload: a timer interrupts the main thread and records the addresses on
 * its stack. It needs no rights and no kernel support, unlike perf. The script "profile" prints the
 * result.
 *
 * UMRDDT_PROFILE is the name of the output file; ".PID" is appended. UMRDDT_PROFILE_HZ is the
 * number of samples in a second (default 2000). The file has the memory map of the process, an
 * empty line, and a line of hexadecimal addresses for each sample, innermost first.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define DEPTH 48

/* Addresses of all samples; each sample ends with a 0. When it is full, no more samples are kept.
 */
#define MOST ((size_t) 1 << 23)

static void **addresses;
static volatile size_t used;
static timer_t timer;

static void sample(int number)
{
    const size_t at = used;

    (void) number;
    if (at + DEPTH + 1 <= MOST) {
        const int depth = backtrace(&addresses[at], DEPTH);

        addresses[at + (size_t) depth] = NULL;
        used = at + (size_t) depth + 1;
    }
}

static void copy_maps(FILE *out)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[1024];

    while (NULL != maps && NULL != fgets(line, sizeof(line), maps)) {
        if (NULL != strstr(line, " r-xp ") || NULL != strstr(line, " r--p ")) {
            fputs(line, out);
        }
    }
    if (NULL != maps) {
        fclose(maps);
    }
}

static void write_samples(void)
{
    char name[4096];
    FILE *out;

    timer_delete(timer);
    snprintf(name, sizeof(name), "%s.%d", getenv("UMRDDT_PROFILE"), (int) getpid());
    out = fopen(name, "w");
    if (NULL == out) {
        perror(name);
        return;
    }
    copy_maps(out);
    fputc('\n', out);
    for (size_t i = 0; i < used; ++i) {
        if (NULL == addresses[i]) {
            fputc('\n', out);
        } else {
            fprintf(out, "%lx ", (unsigned long) (uintptr_t) addresses[i]);
        }
    }
    fclose(out);
}

/** Libraries stay loaded, so that their addresses have names at the end. */
int dlclose(void *handle)
{
    (void) handle;
    return 0;
}

__attribute__((constructor)) static void start(void)
{
    const char *hz = getenv("UMRDDT_PROFILE_HZ");
    const long rate = NULL == hz ? 2000 : strtol(hz, NULL, 10);
    struct sigaction action = {.sa_handler = sample, .sa_flags = SA_RESTART};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};
    struct itimerspec period = {.it_interval = {0, 1000000000 / (0 < rate ? rate : 2000)}};
    void *first[DEPTH];

    if (NULL == getenv("UMRDDT_PROFILE")) {
        return;
    }
    addresses = malloc(MOST * sizeof(*addresses));
    if (NULL == addresses) {
        return;
    }
    backtrace(first, DEPTH); /* loads libgcc_s: not in the handler */
    event._sigev_un._tid = (pid_t) syscall(SYS_gettid);
    period.it_value = period.it_interval;
    sigaction(SIGPROF, &action, NULL);
    if (0 != timer_create(CLOCK_MONOTONIC, &event, &timer)
        || 0 != timer_settime(timer, 0, &period, NULL)) {
        perror("profile: timer");
        return;
    }
    atexit(write_samples);
}
