/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Messages from the texts that are compiled in, with which Open MPI 6.0 and later replace
 * opal_show_help: topics, arguments, frames, and what does not exist.
 */

#include "opal_config.h"

#include <string.h>
#include <unistd.h>

#include "../common/check.h"
#include "opal/constants.h"
#include "umrddt_help.h"

#define COLL "help-mca-coll-umrddt.txt"

static char printed[8192];
static int saved, ends[2];

/* Stderr goes to the pipe until "end". */
static void begin(void)
{
    CHECK(0 == pipe(ends));
    saved = dup(STDERR_FILENO);
    CHECK(0 <= saved && 0 <= dup2(ends[1], STDERR_FILENO));
    close(ends[1]);
}

static void end(void)
{
    ssize_t n;

    fflush(stderr);
    CHECK(0 <= dup2(saved, STDERR_FILENO));
    close(saved);
    n = read(ends[0], printed, sizeof(printed) - 1);
    CHECK(0 <= n);
    printed[n] = '\0';
    close(ends[0]);
}

int main(void)
{
    int rc;

    begin();
    rc = opal_umrddt_show_help(COLL, "no-memory", true, (size_t) 12345);
    end();
    CHECK(OPAL_SUCCESS == rc);
    CHECK('-' == printed[0] && NULL != strstr(printed, "buffer: 12345 bytes."));
    CHECK(NULL != strstr(printed, "in parts.\n---") && '\n' == printed[strlen(printed) - 1]);
    /* neither the comments nor the next topic */
    CHECK(NULL == strstr(printed, "#") && NULL == strstr(printed, "[far-apart]"));

    begin();
    rc = opal_umrddt_show_help(COLL, "driver", false, -7);
    end();
    CHECK(OPAL_SUCCESS == rc);
    CHECK('T' == printed[0] && NULL != strstr(printed, "(umrddt error -7)"));

    begin();
    rc = opal_umrddt_show_help("help-mca-pml-umrddt.txt", "bad-value", true, "a", "b", "c", "d",
                               "e");
    CHECK(OPAL_SUCCESS == rc);
    rc = opal_umrddt_show_help("help-btl-umr.txt", "fork", true, "node-7", "no reason");
    end();
    CHECK(OPAL_SUCCESS == rc);
    CHECK(NULL != strstr(printed, "node-7") && NULL != strstr(printed, "no reason"));

    begin();
    CHECK(OPAL_ERR_NOT_FOUND == opal_umrddt_show_help(COLL, "no-memor", true, (size_t) 1));
    CHECK(OPAL_ERR_NOT_FOUND == opal_umrddt_show_help(COLL, "no-memory]", true, (size_t) 1));
    CHECK(OPAL_ERR_NOT_FOUND == opal_umrddt_show_help("help-x.txt", "no-memory", true, (size_t) 1));
    end();
    CHECK('\0' == printed[0]);
    printf("%lu checks\n", checks);
    return 0;
}
