/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The language of layouts: its meaning, the place of an error in a wrong text, and that no text
 * leads to a layout that breaks its bounds.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../test/common/check.h"
#include "layout_words.h"

#define TEXT 200

static const char path[] = "test_words.tmp";

static void write_file(const char *text)
{
    FILE *file = fopen(path, "w");

    CHECK(NULL != file);
    CHECK(0 <= fputs(text, file));
    CHECK(0 == fclose(file));
}

/* A text of one layout is read to its end. */
static layout_words_t good(const char *text)
{
    char error[LAYOUT_ERROR] = "";
    layout_words_t words;
    const char *end = layout_words_read(text, text, &words, error);

    if (NULL == end) {
        printf("test_words: '%s': %s\n", text, error);
    }
    CHECK(NULL != end && '\0' == *end);
    return words;
}

/* ---------------------------------------------------------------------------------------------
 * Right texts
 * ------------------------------------------------------------------------------------------- */

static void vectors(void)
{
    static const char *const same[] = {"vector 128 x 1024 stride 2048",
                                       "vector 128x1024 stride 2048", "vector 128 x1K",
                                       "  vector\t128  x  1KiB  stride 2K ", "vector 128x 1024"};

    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); ++i) {
        layout_words_t words = good(same[i]);

        CHECK(LAYOUT_VECTOR == words.kind && 128 == words.count && 1024 == words.bytes
              && 2048 == words.stride);
        layout_words_free(&words);
    }
    CHECK(0 == strcmp("vector 128 x 1KiB stride 2K", good(same[3]).name));
    CHECK(7 == good("vector 3 x 7 stride 7").stride);
    CHECK(3u << 20 == good("contiguous 3M").bytes);
    CHECK((uint64_t) 1 << 30 == good("contiguous 1GiB").bytes);
}

static void subarrays(void)
{
    layout_words_t words = good("subarray 62 x 1 of 64x64 at 1 x 63 element 4");

    CHECK(LAYOUT_SUBARRAY == words.kind && 2 == words.directions && 4 == words.bytes);
    CHECK(62 == words.part[0] && 1 == words.part[1] && 64 == words.whole[0]
          && 64 == words.whole[1]);
    CHECK(1 == words.at[0] && 63 == words.at[1]);
    words = good("subarray 5 of 9");
    CHECK(1 == words.directions && 0 == words.at[0] && 8 == words.bytes);
    words = good("subarray 1x1x1x1x1x1x1x2 of 2x2x2x2x2x2x2x2");
    CHECK(8 == words.directions);
    /* what is whole to the last direction is one piece: more elements than pieces may be */
    (void) good("subarray 64M of 128M element 1");
    (void) good("subarray 2 x 16M of 3 x 16M element 1");
}

static void files(void)
{
    layout_words_t words;
    char text[TEXT], error[LAYOUT_ERROR];

    write_file("# offset, length\n100 10\n\n  0 50 # the first\n200 1");
    (void) snprintf(text, sizeof(text), "indexed %s", path);
    words = good(text);
    CHECK(LAYOUT_INDEXED == words.kind && 3 == words.count);
    CHECK(100 == words.pieces[0].offset && 10 == words.pieces[0].length);
    CHECK(0 == words.pieces[1].offset && 50 == words.pieces[1].length);
    CHECK(0 == strcmp(text, words.name));
    layout_words_free(&words);
    write_file("16\r\n0\r\n");
    (void) snprintf(text, sizeof(text), "indexed \"%s\" block 16", path);
    words = good(text);
    CHECK(2 == words.count && 16 == words.pieces[1].length && NULL == strchr(words.name, '"'));
    layout_words_free(&words);
    /* as many pieces as the first room for them and some, in no order */
    (void) snprintf(text, sizeof(text), "indexed %s block 1", path);
    FILE *file = fopen(path, "w");
    CHECK(NULL != file);
    for (int i = 0; i < 1000; ++i) {
        CHECK(0 < fprintf(file, "%d\n", 7 * i % 1000));
    }
    CHECK(0 == fclose(file));
    words = good(text);
    CHECK(1000 == words.count && 7 == words.pieces[1].offset);
    layout_words_free(&words);
    /* in a list the file ends at a comma, unless it is quoted */
    CHECK(NULL == layout_words_read("indexed none, here", "indexed none, here", &words, error));
    CHECK(NULL != strstr(error, "'none'"));
}

/* A list is read from one comma to the next; positions refer to the whole list. */
static void lists(void)
{
    const char *list = "contiguous 8,vector 2 x 8 , subarray 1 of 2", *at = list;
    char error[LAYOUT_ERROR];
    layout_words_t words;

    for (int i = 0; i < 3; ++i) {
        at = layout_words_read(at, list, &words, error);
        CHECK(NULL != at && (2 == i ? '\0' : ',') == *at);
        CHECK((int) words.kind == i);
        at += ',' == *at ? 1 : 0;
    }
    list = "contiguous 8, vector 2 by 8";
    CHECK(NULL == layout_words_read(list + 13, list, &words, error));
    CHECK(NULL != strstr(error, "character 24, 'by':"));
    CHECK(NULL != strstr(error, "such as 'vector 128 x 1024 stride 2048'"));
}

/* ---------------------------------------------------------------------------------------------
 * Wrong texts
 * ------------------------------------------------------------------------------------------- */

static void malformed(void)
{
    static const struct {
        const char *text, *error;
    } texts[] = {
        {"", "the end: contiguous, vector, subarray or indexed"},
        {"vektor 1 x 2", "character 1, 'vektor'"},
        {"Vector 1 x 2", "character 1, 'Vector'"},
        {"vector1 x 2", "character 1, 'vector1'"},
        {"vector", "character 7, the end: the number of blocks was expected"},
        {"vector x 8", "character 8, 'x'"},
        {"vector 0 x 8", "character 8, '0': the number of blocks is 1 to"},
        {"vector -1 x 8", "character 8, '-1'"},
        {"vector +1 x 8", "character 8, '+1'"},
        {"vector 1.5 x 8", "character 8, '1.5'"},
        {"vector 0x10 x 8", "character 8, '0x10'"},
        {"vector 1e3 x 8", "character 8, '1e3'"},
        {"vector 12", "character 10, the end: 'x' and the bytes of a block"},
        {"vector 12 * 8", "character 11, '*'"},
        {"vector 12 X 8", "character 11, 'X'"},
        {"vector 12 x", "character 12, the end: the bytes of a block"},
        {"vector 12 x 0", "character 13, '0'"},
        {"vector 12 x 8Q", "character 13, '8Q'"},
        {"vector 12 x 8KB", "character 13, '8KB'"},
        {"vector 12 x 8Ki", "character 13, '8Ki'"},
        {"vector 12 x 8 stride", "character 21, the end: the stride"},
        {"vector 12 x 8 stride 7", "character 22, '7': the stride, no less than a block, is 8 to"},
        {"vector 12 x 8 stride -8", "character 22, '-8'"},
        {"vector 12 x 8 strides 16", "character 15, 'strides': nothing more"},
        {"vector 12 x 8 stride 16 24", "character 25, '24': nothing more"},
        {"vector 12 x 8 x 3", "character 15, 'x'"},
        {"vector 2 x 1G", "more than 1 GiB"},
        {"vector 16M x 1 stride 1M", "1 TiB from begin to end"},
        {"vector 17M x 1", "the number of blocks is 1 to 16777216"},
        {"vector 99999999999999999999999 x 8", "the number of blocks is 1 to"},
        {"vector 18446744073709551617 x 8", "the number of blocks is 1 to"},
        {"vector 17179869185G x 8", "the number of blocks is 1 to"},
        {"contiguous 0", "character 12, '0'"},
        {"contiguous 2G", "the number of bytes is 1 to 1073741824"},
        {"contiguous 8 8", "character 14, '8': nothing more"},
        {"contiguous eight", "character 12, 'eight'"},
        {"subarray 1", "character 11, the end: 'x' and a number, or 'of'"},
        {"subarray 1 of", "character 14, the end: the size of the array"},
        {"subarray 1 x 2 of 3", "character 20, the end: 'x' and the number of direction 2"},
        {"subarray 1 of 2 x 3", "character 19, '3': there are no more than 1 directions"},
        {"subarray 1x1x1x1x1x1x1x1x1 of 2", "no more than 8 directions"},
        {"subarray 0 of 2", "the size of the part is 1 to"},
        {"subarray 3 of 2",
         "character 10, '3': direction 1 of the part ends at 3, and the array at 2"},
        {"subarray 1 x 2 of 2 x 2 at 0 x 1", "direction 2 of the part ends at 3"},
        {"subarray 1 of 2 at", "where the part begins was expected"},
        {"subarray 1 of 2 at 1 x 1", "no more than 1 directions"},
        {"subarray 1 of 2 element 0", "the bytes of an element is 1 to"},
        {"subarray 1 of 2 element 8 at 1", "character 27, 'at': nothing more"},
        {"subarray 2147483648 of 2147483648", "the size of the part is 1 to 2147483647"},
        {"subarray 1 x 1 x 1 of 2147483647 x 2147483647 x 2147483647",
         "an array of more than 1 TiB"},
        {"subarray 64K x 64K of 128K x 128K", "more than 1 GiB of data"},
        {"subarray 32M x 1 of 32M x 2 element 1", "more than 16777216 pieces"},
        {"indexed", "character 8, the end: the name of a file"},
        {"indexed \"", "the name of a file"},
        {"indexed \"\"", "the name of a file"},
        {"indexed \"no end", "the name of a file"},
        {"indexed no/such/file",
         "character 9, 'no/such/file': the file cannot be read (No such file"},
        {"indexed no/such/directory/and/none/of/its/directories/file",
         "'no/such/directory/and/none/of/its/directories/file': the file cannot be read"},
        {"indexed \"no such/file\" block 8", "'no such/file': the file cannot be read"},
        {"indexed .", "file ., it cannot be read"},
        {"indexed /dev/null", "file /dev/null, it has no piece"},
        {"indexed /dev/null block 0", "the bytes of a block is 1 to"},
    };
    layout_words_t words;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i) {
        char error[LAYOUT_ERROR] = "";
        const char *end = layout_words_read(texts[i].text, texts[i].text, &words, error);

        if (NULL != end || NULL == strstr(error, texts[i].error)) {
            printf("test_words: '%s': %s\n", texts[i].text, error);
        }
        CHECK(NULL == end);
        CHECK(NULL != strstr(error, texts[i].error));
    }
}

static void malformed_files(void)
{
    static const struct {
        const char *text, *error;
    } texts[] = {
        {"0 8\n8\n", "line 2, '8': an offset and a length was expected"},
        {"0 8 8\n", "line 1, '0 8 8'"},
        {"0,8\n", "line 1, '0,8'"},
        {"-8 8\n", "line 1, '-8 8'"},
        {"0 0\n", "line 1, '0 0'"},
        {"0x8 8\n", "line 1, '0x8 8'"},
        {"0 1073741825\n", "line 1"},
        {"0 1073741824\n1073741824 1\n", "line 2: more than 1 GiB"},
        {"1099511627776 1\n", "line 1"},
        {"99999999999999999999999999999999 1\n", "line 1"},
        {"0 8\n4 8\n", "byte 4 is in two pieces"},
        {"4 8\n20 1\n0 5\n", "byte 4 is in two pieces"},
        {"# nothing\n\n", "it has no piece"},
        {"\x01\x02\xff\n", "line 1"},
    };
    char text[TEXT], error[LAYOUT_ERROR], line[1000];
    layout_words_t words;

    (void) snprintf(text, sizeof(text), "indexed %s", path);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i) {
        write_file(texts[i].text);
        CHECK(NULL == layout_words_read(text, text, &words, error));
        if (NULL == strstr(error, texts[i].error)) {
            printf("test_words: file %zu: %s\n", i, error);
        }
        CHECK(NULL != strstr(error, texts[i].error) && NULL != strstr(error, path));
    }
    write_file("0 8\n");
    (void) snprintf(line, sizeof(line), "%s blocks 8", text);
    CHECK(NULL == layout_words_read(line, line, &words, error));
    CHECK(NULL != strstr(error, "'blocks': nothing more was expected"));
    /* a line that is longer than any of ours */
    memset(line, '8', sizeof(line));
    line[sizeof(line) - 1] = '\0';
    write_file(line);
    CHECK(NULL == layout_words_read(text, text, &words, error));
}

/* Properties that hold for any text. */
static void sane(const layout_words_t *words)
{
    CHECK('\0' != words->name[0] && strlen(words->name) < LAYOUT_NAME);
    for (const char *c = words->name; '\0' != *c; ++c) {
        CHECK(' ' <= *c && *c <= '~' && NULL == strchr("\",\\", *c));
    }
    if (LAYOUT_VECTOR == words->kind) {
        CHECK(0 < words->count && 0 < words->bytes && words->bytes <= words->stride);
        CHECK(words->count <= LAYOUT_MOST_PIECES
              && words->stride <= LAYOUT_MOST_BYTES / words->count);
    } else if (LAYOUT_SUBARRAY == words->kind) {
        double room = (double) words->bytes;

        CHECK(0 < words->directions && words->directions <= LAYOUT_DIRECTIONS);
        for (unsigned i = 0; i < words->directions; ++i) {
            CHECK(0 < words->part[i] && words->part[i] + words->at[i] <= words->whole[i]);
            room *= (double) words->whole[i];
        }
        CHECK(room <= (double) LAYOUT_MOST_BYTES);
    } else {
        CHECK(LAYOUT_CONTIGUOUS == words->kind ? 0 < words->bytes : 0 < words->count);
    }
}

/* Texts that differ from good ones by a few characters; the same in every run. */
static void mangled(void)
{
    static const char *const seeds[] = {
        "vector 128 x 1024 stride 2048",
        "subarray 62 x 62 x 1 of 64 x 64 x 64 at 1 x 1 x 62 element 8",
        "contiguous 64KiB,vector 3x5", "indexed test_words.tmp block 8"};
    static const char alphabet[] = "0123456789 xKMGiB,\"#-.\tstrideofat\\\x80\xff";
    uint32_t state = 1;
    unsigned accepted = 0;

    write_file("0\n64\n16\n");
    for (int i = 0; i < 40000; ++i) {
        char text[TEXT], error[LAYOUT_ERROR] = "";
        layout_words_t words;
        const char *end;
        size_t length;

        (void) snprintf(text, sizeof(text), "%s", seeds[i % 4]);
        for (int change = 0; change <= i % 3; ++change) {
            length = strlen(text);
            state = 1664525 * state + 1013904223;
            size_t at = (state >> 8) % (length + 1);
            char c = alphabet[(state >> 20) % (sizeof(alphabet) - 1)];

            switch (state >> 30) {
            case 0: /* leave one out */
                memmove(text + at, text + at + (at < length ? 1 : 0),
                        length - at + (at < length ? 0 : 1));
                break;
            case 1: /* put one in */
                memmove(text + at + 1, text + at, length - at + 1);
                text[at] = c;
                break;
            case 2: /* another one */
                text[at] = at < length ? c : '\0';
                break;
            default: /* leave the rest out */
                text[at] = '\0';
            }
        }
        end = layout_words_read(text, text, &words, error);
        CHECK((NULL == end) == ('\0' != error[0]));
        if (NULL != end) {
            ++accepted;
            CHECK('\0' == *end || ',' == *end);
            CHECK(text < end && end <= text + strlen(text));
            sane(&words);
            layout_words_free(&words);
        } else {
            CHECK(NULL != strstr(error, "character ") || NULL != strstr(error, "file "));
        }
    }
    /* both happen */
    CHECK(1000 < accepted && accepted < 39000);
}

/* Names and globs, which are not descriptions. */
static void beginnings(void)
{
    static const char *const names[] = {"vector",   "vector_1KiB_x16", "vector*",    "indexed",
                                        "vector ",  "vector ,x",       "",           " ",
                                        "NAS_MG_x", "subarray",        "contiguous,"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        CHECK(!layout_words_begin(names[i]));
    }
    CHECK(layout_words_begin("vector 1") && layout_words_begin("  indexed x"));
    CHECK(layout_words_begin("subarray what") && layout_words_begin("contiguous\t8"));
}

int main(void)
{
    vectors();
    subarrays();
    files();
    lists();
    malformed();
    malformed_files();
    mangled();
    beginnings();
    CHECK(0 == unlink(path));
    printf("test_words: %lu checks\n", checks);
    return 0;
}
