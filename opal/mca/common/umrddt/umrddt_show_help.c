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
 * Messages to the user from the texts in this library. See umrddt_help.h first.
 */

#include "opal_config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/constants.h"

#include "umrddt_help.h"
#include "umrddt_help_texts.h"

#define FRAME "--------------------------------------------------------------------------\n"

/**
 * Get the text of a topic, without its comments, which is between a line "[topic]" and the next
 * one of that kind. The caller frees it; NULL: there is none, or no memory.
 */
static char *find(const char *file, const char *topic)
{
    const size_t length = strlen(topic);
    bool found = false;
    char *text = NULL;
    size_t n = 0;

    for (size_t i = 0; i < sizeof(help_texts) / sizeof(help_texts[0]); ++i) {
        if (0 != strcmp(help_texts[i].file, file)) {
            continue;
        }
        text = malloc(strlen(help_texts[i].text) + 1);
        for (const char *line = help_texts[i].text, *end; NULL != text && '\0' != *line;
             line = end + 1) {
            end = strchr(line, '\n');
            if ('[' == line[0]) {
                found = 0 == strncmp(line + 1, topic, length) && ']' == line[1 + length];
            } else if (found && '#' != line[0]) {
                memcpy(text + n, line, (size_t) (end + 1 - line));
                n += (size_t) (end + 1 - line);
            }
        }
        break;
    }
    if (0 == n) {
        free(text);
        return NULL;
    }
    text[n] = '\0';
    return text;
}

int opal_umrddt_show_help(const char *file, const char *topic, int frame, ...)
{
    char *text = find(file, topic), *said = NULL;
    va_list arguments;
    int length;

    if (NULL == text) {
        return OPAL_ERR_NOT_FOUND;
    }
    va_start(arguments, frame);
    length = vasprintf(&said, text, arguments);
    va_end(arguments);
    free(text);
    if (0 > length) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    /* one call, so that the texts of several threads do not mix */
    fprintf(stderr, "%s%s%s", frame ? FRAME : "", said, frame ? FRAME : "");
    free(said);
    return OPAL_SUCCESS;
}
