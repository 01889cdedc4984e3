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
 * Layouts in words; see layout_words.h.
 */

#include "layout_words.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Bytes of data of a layout, at most: MPI counts them with an int. */
#define MOST_DATA ((uint64_t) 1 << 30)

/** Bytes of a file's line; a longer one is no line of ours. */
#define LINE 256

static const struct {
    const char *word;
    const char *example;
} kinds[] = {
    [LAYOUT_CONTIGUOUS] = {"contiguous", "contiguous 64K"},
    [LAYOUT_VECTOR] = {"vector", "vector 128 x 1024 stride 2048"},
    [LAYOUT_SUBARRAY] = {"subarray",
                         "subarray 62 x 62 x 1 of 64 x 64 x 64 at 1 x 1 x 62 element 8"},
    [LAYOUT_INDEXED] = {"indexed", "indexed places.txt block 8"},
};

/** A text that is being read. */
typedef struct reader_t {
    const char *at;
    const char *whole;
    layout_kind_t kind;
    char *error;
} reader_t;

static bool ends(char c)
{
    return '\0' == c || ',' == c || isspace((unsigned char) c);
}

static void skip(reader_t *reader)
{
    while (isspace((unsigned char) *reader->at)) {
        ++reader->at;
    }
}

/** Record the error of the text, and its place. @return false */
static bool wrong(const reader_t *reader, const char *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static bool wrong(const reader_t *reader, const char *at, const char *format, ...)
{
    size_t length = strcspn(at, ", \t\n");
    va_list arguments;
    char what[200];

    va_start(arguments, format);
    (void) vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    (void) snprintf(reader->error, LAYOUT_ERROR, "character %zu, %s%.*s%s: %s; such as '%s'",
                    (size_t) (at - reader->whole) + 1, 0 == length ? "the end" : "'",
                    40 < length ? 40 : (int) length, at, 0 == length ? "" : "'", what,
                    kinds[reader->kind].example);
    return false;
}

/** A word, if it comes next. */
static bool word(reader_t *reader, const char *expected)
{
    size_t length = strlen(expected);

    skip(reader);
    if (0 != strncmp(reader->at, expected, length) || !ends(reader->at[length])) {
        return false;
    }
    reader->at += length;
    return true;
}

/** The x between two numbers, which may stand right behind and before them. */
static bool times(reader_t *reader)
{
    skip(reader);
    if ('x' != reader->at[0] || isalpha((unsigned char) reader->at[1])) {
        return false;
    }
    ++reader->at;
    return true;
}

/** A number from @p least to @p most. @p what: its description in the error message */
static bool number(reader_t *reader, const char *what, uint64_t least, uint64_t most,
                   uint64_t *value)
{
    static const char units[] = "KMG";
    const char *begin, *unit;
    uint64_t result = 0;
    unsigned shift;

    skip(reader);
    begin = reader->at;
    if (!isdigit((unsigned char) *begin)) {
        return wrong(reader, begin, "%s was expected", what);
    }
    for (; isdigit((unsigned char) *reader->at); ++reader->at) {
        result = result > LAYOUT_MOST_BYTES ? result : 10 * result + (uint64_t) (*reader->at - '0');
    }
    unit = '\0' == *reader->at ? NULL : strchr(units, *reader->at);
    if (NULL != unit) {
        shift = 10 * (unsigned) (unit - units + 1);
        result = result > LAYOUT_MOST_BYTES >> shift ? UINT64_MAX : result << shift;
        ++reader->at;
        if ('i' == reader->at[0] && 'B' == reader->at[1]) {
            reader->at += 2;
        }
    }
    if (!ends(*reader->at) && 'x' != *reader->at) {
        return wrong(reader, begin, "%s was expected, a number, perhaps with K, M or G behind it",
                     what);
    }
    if (result < least || result > most) {
        return wrong(reader, begin, "%s is %llu to %llu", what, (unsigned long long) least,
                     (unsigned long long) most);
    }
    *value = result;
    return true;
}

/** Numbers with an x between each two. @p count: so many, or 0: 1 or more, and then how many */
static bool numbers(reader_t *reader, const char *what, uint64_t least, unsigned *count,
                    uint64_t *values)
{
    unsigned read = 0;

    do {
        if (LAYOUT_DIRECTIONS == read || (0 < *count && read == *count)) {
            skip(reader);
            return wrong(reader, reader->at, "there are no more than %u directions", read);
        }
        if (!number(reader, what, least, INT_MAX, &values[read])) {
            return false;
        }
        ++read;
    } while (times(reader));
    if (0 < *count && read < *count) {
        skip(reader);
        return wrong(reader, reader->at, "'x' and the number of direction %u were expected",
                     read + 1);
    }
    *count = read;
    return true;
}

static bool vector(reader_t *reader, layout_words_t *words)
{
    const char *begin = reader->at;

    if (!number(reader, "the number of blocks", 1, LAYOUT_MOST_PIECES, &words->count)) {
        return false;
    }
    if (!times(reader)) {
        return wrong(reader, reader->at, "'x' and the bytes of a block were expected");
    }
    if (!number(reader, "the bytes of a block", 1, MOST_DATA, &words->bytes)) {
        return false;
    }
    words->stride = 2 * words->bytes;
    if (word(reader, "stride")
        && !number(reader, "the stride, no less than a block,", words->bytes, LAYOUT_MOST_BYTES,
                   &words->stride)) {
        return false;
    }
    if (words->count > MOST_DATA / words->bytes
        || words->count > LAYOUT_MOST_BYTES / words->stride) {
        skip(reader);
        return wrong(reader, begin + strspn(begin, " \t"),
                     "more than 1 GiB of data, or 1 TiB from begin to end");
    }
    return true;
}

static bool subarray(reader_t *reader, layout_words_t *words)
{
    uint64_t data = 1, room = 1, pieces = 1;
    const char *begin = reader->at;
    bool all = true; /* directions so far, from the last one */

    if (!numbers(reader, "the size of the part", 1, &words->directions, words->part)) {
        return false;
    }
    if (!word(reader, "of")) {
        return wrong(reader, reader->at, "'x' and a number, or 'of' and the array, was expected");
    }
    if (!numbers(reader, "the size of the array", 1, &words->directions, words->whole)) {
        return false;
    }
    if (word(reader, "at")
        && !numbers(reader, "where the part begins", 0, &words->directions, words->at)) {
        return false;
    }
    words->bytes = 8;
    if (word(reader, "element")
        && !number(reader, "the bytes of an element", 1, 1u << 20, &words->bytes)) {
        return false;
    }
    begin += strspn(begin, " \t");
    for (unsigned i = words->directions; 0 < i--;) {
        if (words->at[i] + words->part[i] > words->whole[i]) {
            return wrong(reader, begin,
                         "direction %u of the part ends at %llu, and the array at %llu", i + 1,
                         (unsigned long long) words->at[i] + words->part[i],
                         (unsigned long long) words->whole[i]);
        }
        /* none of these products overflows: a factor has 31 bits, and a product 30 before */
        data *= words->part[i];
        pieces *= all ? 1 : words->part[i];
        all = all && words->part[i] == words->whole[i];
        if (data > MOST_DATA / words->bytes
            || words->whole[i] > LAYOUT_MOST_BYTES / words->bytes / room) {
            return wrong(reader, begin, "more than 1 GiB of data, or an array of more than 1 TiB");
        }
        if (pieces > LAYOUT_MOST_PIECES) {
            return wrong(reader, begin, "more than %llu pieces",
                         (unsigned long long) LAYOUT_MOST_PIECES);
        }
        room *= words->whole[i];
    }
    return true;
}

/* ---------------------------------------------------------------------------------------------
 * Files
 * ------------------------------------------------------------------------------------------- */

static int by_offset(const void *a, const void *b)
{
    const layout_piece_t *x = a, *y = b;

    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/** No byte is in two pieces: none could be received. */
static bool disjoint(const layout_words_t *words, uint64_t *twice)
{
    layout_piece_t *sorted = malloc(words->count * sizeof(*sorted));
    bool good = NULL != sorted;

    *twice = 0;
    if (good) {
        memcpy(sorted, words->pieces, words->count * sizeof(*sorted));
        qsort(sorted, words->count, sizeof(*sorted), by_offset);
        for (uint64_t i = 1; good && i < words->count; ++i) {
            *twice = sorted[i].offset;
            good = sorted[i - 1].offset + sorted[i - 1].length <= sorted[i].offset;
        }
    }
    free(sorted);
    return good;
}

/** A number of a file's line. */
static bool field(const char **text, uint64_t *value)
{
    const char *at = *text + strspn(*text, " \t");
    uint64_t result = 0;

    if (!isdigit((unsigned char) *at)) {
        return false;
    }
    for (; isdigit((unsigned char) *at); ++at) {
        result = result > LAYOUT_MOST_BYTES ? result : 10 * result + (uint64_t) (*at - '0');
    }
    *text = at;
    *value = result;
    return ('\0' == *at || isspace((unsigned char) *at)) && result <= LAYOUT_MOST_BYTES;
}

/** A line of a file, without its end. @return false: it makes no sense */
static bool file_line(char *line, const layout_words_t *words, layout_piece_t *piece)
{
    const char *at = line;

    if (!field(&at, &piece->offset)) {
        return false;
    }
    piece->length = words->bytes;
    if (0 == words->bytes && !field(&at, &piece->length)) {
        return false;
    }
    return '\0' == at[strspn(at, " \t\r")] && 0 < piece->length && piece->length <= MOST_DATA
           && piece->offset + piece->length <= LAYOUT_MOST_BYTES;
}

/** The pieces of an open file. @p what: of the error, in LAYOUT_ERROR / 2 bytes */
static bool file_pieces(FILE *file, layout_words_t *words, char *what)
{
    const size_t room_of_what = LAYOUT_ERROR / 2;
    uint64_t room = 0, data = 0, twice;
    char line[LINE];

    for (unsigned long count = 1; NULL != fgets(line, sizeof(line), file); ++count) {
        layout_piece_t piece;

        line[strcspn(line, "#\n")] = '\0';
        if ('\0' == line[strspn(line, " \t\r")]) {
            continue;
        }
        if (!file_line(line, words, &piece)) {
            (void) snprintf(what, room_of_what, "line %lu, '%.40s': %s was expected, in bytes",
                            count, line,
                            0 == words->bytes ? "an offset and a length" : "an offset");
            return false;
        }
        data += piece.length;
        if (data > MOST_DATA || words->count == LAYOUT_MOST_PIECES) {
            (void) snprintf(what, room_of_what, "line %lu: more than 1 GiB, or %llu pieces", count,
                            (unsigned long long) LAYOUT_MOST_PIECES);
            return false;
        }
        if (words->count == room) {
            layout_piece_t *more;

            room = 0 == room ? 64 : 2 * room;
            more = realloc(words->pieces, room * sizeof(*more));
            if (NULL == more) {
                (void) snprintf(what, room_of_what, "no memory for its pieces");
                return false;
            }
            words->pieces = more;
        }
        words->pieces[words->count++] = piece;
    }
    if (ferror(file) || 0 == words->count) {
        (void) snprintf(what, room_of_what, "it %s",
                        ferror(file) ? "cannot be read" : "has no piece");
        return false;
    }
    if (!disjoint(words, &twice)) {
        (void) snprintf(what, room_of_what, "byte %llu is in two pieces",
                        (unsigned long long) twice);
        return false;
    }
    return true;
}

static bool indexed(reader_t *reader, layout_words_t *words)
{
    char path[LAYOUT_NAME], what[LAYOUT_ERROR / 2] = "";
    const char *begin;
    size_t length;
    bool quoted, good;
    FILE *file;

    skip(reader);
    quoted = '"' == *reader->at;
    begin = reader->at + (quoted ? 1 : 0);
    length = quoted ? strcspn(begin, "\"") : strcspn(begin, ", \t\n");
    if (0 == length || (quoted && '"' != begin[length])) {
        return wrong(reader, reader->at, "the name of a file was expected");
    }
    if (sizeof(path) <= length) {
        return wrong(reader, reader->at, "the name of a file has less than %zu characters",
                     sizeof(path));
    }
    memcpy(path, begin, length);
    path[length] = '\0';
    reader->at = begin + length + (quoted ? 1 : 0);
    if (word(reader, "block")
        && !number(reader, "the bytes of a block", 1, MOST_DATA, &words->bytes)) {
        return false;
    }
    file = fopen(path, "re");
    if (NULL == file) {
        /* Its name in full: what wrong() shows of the text may end before it. */
        (void) snprintf(reader->error, LAYOUT_ERROR,
                        "character %zu, '%s': the file cannot be read (%s); such as '%s'",
                        (size_t) (begin - reader->whole) + 1, path, strerror(errno),
                        kinds[reader->kind].example);
        return false;
    }
    good = file_pieces(file, words, what);
    (void) fclose(file);
    if (!good) {
        (void) snprintf(reader->error, LAYOUT_ERROR, "file %.*s, %s", (int) length, begin, what);
    }
    return good;
}

/* ---------------------------------------------------------------------------------------------
 * All of it
 * ------------------------------------------------------------------------------------------- */

bool layout_words_begin(const char *text)
{
    text += strspn(text, " \t\n");
    for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); ++kind) {
        size_t length = strlen(kinds[kind].word);

        if (0 == strncmp(text, kinds[kind].word, length) && isspace((unsigned char) text[length])) {
            text += length;
            return !ends(text[strspn(text, " \t\n")]);
        }
    }
    return false;
}

/** The words with one blank between them, and without characters that disturb a table or a program
 * over. */
static void name_of(const char *from, const char *to, char name[LAYOUT_NAME])
{
    size_t length = 0;

    for (; from < to && length + 1 < LAYOUT_NAME; ++from) {
        if (isspace((unsigned char) *from)) {
            if (0 < length && ' ' != name[length - 1]) {
                name[length++] = ' ';
            }
        } else if ('"' != *from) {
            name[length++] =
                ',' == *from || '\\' == *from || !isprint((unsigned char) *from) ? '_' : *from;
        }
    }
    while (0 < length && ' ' == name[length - 1]) {
        --length;
    }
    name[length] = '\0';
}

const char *layout_words_read(const char *text, const char *whole, layout_words_t *words,
                              char error[LAYOUT_ERROR])
{
    static bool (*const read[])(reader_t *, layout_words_t *) = {
        [LAYOUT_VECTOR] = vector,
        [LAYOUT_SUBARRAY] = subarray,
        [LAYOUT_INDEXED] = indexed,
    };
    reader_t reader = {.at = text, .whole = whole, .error = error};
    layout_words_t result;
    bool good;

    memset(&result, 0, sizeof(result));
    while (sizeof(kinds) / sizeof(kinds[0]) > reader.kind
           && !word(&reader, kinds[reader.kind].word)) {
        ++reader.kind;
    }
    if (sizeof(kinds) / sizeof(kinds[0]) == reader.kind) {
        reader.kind = LAYOUT_VECTOR;
        skip(&reader);
        (void) wrong(&reader, reader.at, "contiguous, vector, subarray or indexed was expected");
        return NULL;
    }
    result.kind = reader.kind;
    good = LAYOUT_CONTIGUOUS == reader.kind
               ? number(&reader, "the number of bytes", 1, MOST_DATA, &result.bytes)
               : read[reader.kind](&reader, &result);
    skip(&reader);
    if (good && '\0' != *reader.at && ',' != *reader.at) {
        good = wrong(&reader, reader.at, "nothing more was expected, but a comma");
    }
    if (!good) {
        layout_words_free(&result);
        return NULL;
    }
    name_of(text, reader.at, result.name);
    *words = result;
    return reader.at;
}

void layout_words_free(layout_words_t *words)
{
    free(words->pieces);
    words->pieces = NULL;
}
