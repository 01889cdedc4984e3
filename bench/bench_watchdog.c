/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench_watchdog.h"

/* Written while no alarm is set, so the handler never sees a partial text. */
static char message[256];

static void give_up(int signal_number)
{
    (void) signal_number;
    if (0 > write(STDERR_FILENO, message, strlen(message))) {
        _exit(BENCH_EXIT_HANG); /* no process to report to */
    }
    _exit(BENCH_EXIT_HANG);
}

void bench_watchdog_set(unsigned seconds, const char *format, ...)
{
    struct sigaction action;
    va_list arguments;
    size_t length;

    bench_watchdog_clear();
    if (0 == seconds) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(message, sizeof(message) - 1, format, arguments);
    va_end(arguments);
    length = strlen(message);
    message[length] = '\n';
    message[length + 1] = '\0';

    memset(&action, 0, sizeof(action));
    action.sa_handler = give_up;
    sigaction(SIGALRM, &action, NULL);
    alarm(seconds);
}

void bench_watchdog_clear(void)
{
    alarm(0);
}
