/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "sim_count.h"

#include <stddef.h>

#define ROW(name, help) {#name, help, offsetof(struct sim_counters, name)},

static const struct {
    const char *name;
    const char *help;
    size_t offset;
} rows[] = {SIM_COUNTERS(ROW)};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

void sim_count_print(FILE *file, long pid, const struct sim_counters *count, bool json)
{
    /* In one piece, as other processes print at the same time; glibc 2.37 and later give what
     * fprintf makes for stderr to the system bit by bit. */
    char line[2048];
    size_t room = sizeof(line) - 1; /* for the newline */
    size_t at =
        (size_t) snprintf(line, room, json ? "{\"umrddt_sim\":%ld" : "umrddt_sim[%ld]:", pid);
    size_t i;

    for (i = 0; i < ROWS && at < room; i++) {
        uint64_t value = *(const uint64_t *) ((const char *) count + rows[i].offset);

        at += (size_t) snprintf(line + at, room - at, json ? ",\"%s\":%llu" : " %s=%llu",
                                rows[i].name, (unsigned long long) value);
    }
    at += (size_t) snprintf(line + at, at < room ? room - at : 0, "%s", json ? "}" : "");
    at = at < room ? at : room - 1;
    line[at++] = '\n';
    (void) fwrite(line, 1, at, file);
}

void sim_count_help(FILE *file)
{
    size_t i;

    for (i = 0; i < ROWS; i++) {
        fprintf(file, "  %-12s %s\n", rows[i].name, rows[i].help);
    }
}
