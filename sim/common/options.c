/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int options_number(const char *value, uint64_t least, uint64_t most, uint64_t *number)
{
    unsigned long long n;
    char *end;

    if (0 == isdigit((unsigned char) *value)) {
        return -1;
    }
    errno = 0;
    n = strtoull(value, &end, 0);
    if (0 != errno || '\0' != *end || n < least || n > most) {
        return -1;
    }
    *number = n;
    return 0;
}

int options_choice(const char *value, const char *words)
{
    size_t length = strlen(value);

    for (int i = 0; NULL != words; ++i) {
        const char *end = strchr(words, '|');
        size_t word = NULL == end ? strlen(words) : (size_t) (end - words);

        if (word == length && 0 == strncmp(value, words, length)) {
            return i;
        }
        words = NULL == end ? NULL : end + 1;
    }
    return -1;
}

/* Into a field of its size. */
static void store(const options_entry_t *option, void *conf, uint64_t number)
{
    unsigned char *field = (unsigned char *) conf + option->at;
    uint32_t word = (uint32_t) number;

    if (sizeof(number) == option->size) {
        memcpy(field, &number, sizeof(number));
    } else if (sizeof(word) == option->size) {
        memcpy(field, &word, sizeof(word));
    } else {
        *field = (unsigned char) number;
    }
}

static int set(const options_entry_t *option, void *conf, const char *value)
{
    size_t length = strlen(value);
    uint64_t number;
    int choice;

    switch (option->kind) {
    case OPTIONS_IS_NUMBER:
        if (0 != options_number(value, option->least, option->most, &number)) {
            return -1;
        }
        store(option, conf, number);
        return 0;
    case OPTIONS_IS_CHOICE:
        choice = options_choice(value, option->words);
        if (0 > choice) {
            return -1;
        }
        store(option, conf, (uint64_t) choice);
        return 0;
    case OPTIONS_IS_TEXT:
        if (length < option->least || length >= option->size) {
            return -1;
        }
        memcpy((unsigned char *) conf + option->at, value, length + 1);
        return 0;
    case OPTIONS_IS_OTHER:
    default:
        return option->set(conf, value);
    }
}

int options_parse(const options_entry_t *options, size_t count, const char *text, void *conf,
                  char *error, size_t size)
{
    char buffer[2048];
    char *save = NULL;
    char *item;

    if (NULL == text) {
        return 0;
    }
    if (strlen(text) >= sizeof(buffer)) {
        snprintf(error, size, "the option string is longer than %zu bytes", sizeof(buffer) - 1);
        return -1;
    }
    strcpy(buffer, text);
    for (item = strtok_r(buffer, ",", &save); NULL != item; item = strtok_r(NULL, ",", &save)) {
        char *value = strchr(item, '=');
        size_t i = 0;

        if (NULL != value) {
            *value++ = '\0';
        }
        while (i < count && 0 != strcmp(item, options[i].name)) {
            ++i;
        }
        if (count == i) {
            snprintf(error, size, "unknown option '%s'", item);
            return -1;
        }
        if (NULL == value) {
            snprintf(error, size, "option '%s' needs a value", item);
            return -1;
        }
        if (0 != set(&options[i], conf, value)) {
            snprintf(error, size, "option '%s' cannot be '%s'", item, value);
            return -1;
        }
    }
    return 0;
}

void options_help(const options_entry_t *options, size_t count, FILE *file)
{
    for (size_t i = 0; i < count; ++i) {
        fprintf(file, "  %s\n", options[i].help);
    }
}
