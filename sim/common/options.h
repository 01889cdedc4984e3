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
 * Options in one string, "name=value,...", read into the fields of a structure. Pure C library.
 */

#ifndef TEST_COMMON_OPTIONS_H
#define TEST_COMMON_OPTIONS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/** What an option's value is. */
typedef enum options_kind_t {
    OPTIONS_IS_NUMBER, /**< decimal, 0x or 0: a field of 1, 4 or 8 bytes */
    OPTIONS_IS_CHOICE, /**< one of words; the field, as above, is the number of it */
    OPTIONS_IS_TEXT,   /**< a string that fits the field, with its end */
    OPTIONS_IS_OTHER   /**< what set makes of it */
} options_kind_t;

/** An option. */
typedef struct options_entry_t {
    const char *name;
    const char *help; /**< as options_help prints it */
    options_kind_t kind;
    size_t at, size;                           /**< the field */
    uint64_t least, most;                      /**< a number; of a text, the bytes */
    const char *words;                         /**< with '|' between */
    int (*set)(void *conf, const char *value); /**< @return 0, or -1: it cannot be that */
} options_entry_t;

/** Behind an option's name and help. */
#define OPTIONS_FIELD(type, field) offsetof(type, field), sizeof(((type *) NULL)->field)
#define OPTIONS_NUMBER(type, field, least, most) \
    OPTIONS_IS_NUMBER, OPTIONS_FIELD(type, field), least, most, NULL, NULL
#define OPTIONS_SWITCH(type, field) OPTIONS_NUMBER(type, field, 0, 1)
#define OPTIONS_CHOICE(type, field, words) \
    OPTIONS_IS_CHOICE, OPTIONS_FIELD(type, field), 0, 0, words, NULL
#define OPTIONS_TEXT(type, field, least) \
    OPTIONS_IS_TEXT, OPTIONS_FIELD(type, field), least, 0, NULL, NULL
#define OPTIONS_OTHER(set) OPTIONS_IS_OTHER, 0, 0, 0, 0, NULL, set

/** Read a number. @return 0, or -1: it is none, or not in these bounds; then *number is untouched
 */
int options_number(const char *value, uint64_t least, uint64_t most, uint64_t *number);

/** The number of a word among others, with '|' between them; -1: it is none of them. */
int options_choice(const char *value, const char *words);

/**
 * Read a string of options.
 *
 * @param[in]  text   the string; NULL is ""
 * @param[out] conf   the structure; fields that no option names are untouched
 * @param[out] error  what is wrong, at most @p size bytes; untouched if nothing is
 *
 * @retval 0
 * @retval -1  an unknown option or a bad value; what is in front of it is set
 */
int options_parse(const options_entry_t *options, size_t count, const char *text, void *conf,
                  char *error, size_t size);

/** Print the list of the options. */
void options_help(const options_entry_t *options, size_t count, FILE *file);

#endif /* TEST_COMMON_OPTIONS_H */
