/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The counters of ports that umrddt_info --pair shows, read from a directory like that of sysfs:
 * one process, no HCA.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../tools/info_counters.h"

#include "../common/check.h"

static char directory[] = "/tmp/umrddt_counters.XXXXXX";

static void put(const char *name, const char *text)
{
    char path[128];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    file = fopen(path, "w");
    CHECK(NULL != file);
    CHECK(0 <= fputs(text, file) && 0 == fclose(file));
}

static void make(const char *name)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    CHECK(0 == mkdir(path, 0700));
}

static int index_of(const char *name)
{
    int i = 0;

    while (NULL != info_counters_name(i) && 0 != strcmp(name, info_counters_name(i))) {
        ++i;
    }
    CHECK(NULL != info_counters_name(i));
    return i;
}

int main(void)
{
    info_counters_t before, after;
    char command[64];
    int sequence = index_of("out_of_sequence"), waits = index_of("port_xmit_wait");
    int symbols = index_of("symbol_error"), timeouts = index_of("local_ack_timeout_err");

    CHECK(NULL != mkdtemp(directory));
    CHECK(0 == info_counters_read(directory, &before));
    for (int i = 0; i < INFO_COUNTERS; ++i) {
        CHECK((NULL == info_counters_name(i)) == (NULL == info_counters_meaning(i)));
        CHECK(-1 == before.values[i]);
        CHECK(0 == info_counters_growth(&before, &before, i));
    }
    CHECK(NULL == info_counters_name(-1) && NULL == info_counters_name(INFO_COUNTERS));

    make("hw_counters");
    make("counters");
    put("hw_counters/out_of_sequence", "7\n");
    put("counters/port_xmit_wait", "18446744073\n");
    put("counters/symbol_error", "N/A (no PMA)\n");
    put("counters/port_xmit_data", "99\n");
    CHECK(2 == info_counters_read(directory, &before));
    CHECK(7 == before.values[sequence] && 18446744073 == before.values[waits]);
    CHECK(-1 == before.values[symbols]);

    put("hw_counters/out_of_sequence", "9\n");
    put("counters/port_xmit_wait", "18446744073\n");
    put("counters/symbol_error", "5\n");
    put("hw_counters/local_ack_timeout_err", "1\n");
    CHECK(4 == info_counters_read(directory, &after));
    CHECK(2 == info_counters_growth(&before, &after, sequence));
    CHECK(0 == info_counters_growth(&before, &after, waits));
    /* Unknown before. */
    CHECK(0 == info_counters_growth(&before, &after, symbols));
    CHECK(0 == info_counters_growth(&before, &after, timeouts));
    /* Reset in between. */
    CHECK(0 == info_counters_growth(&after, &before, sequence));

    snprintf(command, sizeof(command), "rm -r %s", directory);
    CHECK(0 == system(command));
    printf("%lu checks\n", checks);
    return 0;
}
