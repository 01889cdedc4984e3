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
 * JSON to the standard output, value by value.
 */

#include "info.h"

#include <stdio.h>

bool info_json = false;

/* Whether something stands before, on this level. */
static bool behind[8];
static int level = 0;

static void text(const char *value)
{
    putchar('"');
    for (; '\0' != *value; ++value) {
        unsigned char c = (unsigned char) *value;

        if ('"' == c || '\\' == c) {
            printf("\\%c", c);
        } else if (0x20 > c) {
            printf("\\u%04x", c);
        } else {
            putchar(c);
        }
    }
    putchar('"');
}

static void next(const char *name)
{
    if (behind[level]) {
        putchar(',');
    }
    behind[level] = true;
    if (NULL != name) {
        text(name);
        putchar(':');
    }
}

void info_json_open(const char *name, char bracket)
{
    next(name);
    putchar(bracket);
    behind[++level] = false;
}

void info_json_close(char bracket)
{
    putchar(bracket);
    --level;
    if (0 == level) {
        putchar('\n');
    }
}

void info_json_text(const char *name, const char *value)
{
    next(name);
    if (NULL == value) {
        fputs("null", stdout);
    } else {
        text(value);
    }
}

void info_json_number(const char *name, long long value)
{
    next(name);
    printf("%lld", value);
}

void info_json_real(const char *name, double value)
{
    next(name);
    printf("%.3f", value);
}

void info_json_bool(const char *name, bool value)
{
    next(name);
    fputs(value ? "true" : "false", stdout);
}

void info_json_raw(const char *value)
{
    next(NULL);
    fputs(value, stdout);
}
