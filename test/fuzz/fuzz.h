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
 * Shared code of the fuzz targets. A target is one function that is called repeatedly in one
 * process with bytes from outside (libFuzzer's interface). It uses them as a list of decisions,
 * simulates the hostile side with them, and checks the behaviour of our side. The sanitizers find
 * all other errors.
 */

#ifndef TEST_FUZZ_FUZZ_H
#define TEST_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** What libFuzzer calls, and what replay.c calls where there is none. */
int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** A check that is never compiled out: libFuzzer saves the bytes that led to it. */
#define FUZZ_CHECK(condition)                                                              \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                       \
        }                                                                                  \
    } while (0)

/** The rest of an input. Reads beyond its end return zeros. */
typedef struct fuzz_bytes_t {
    const uint8_t *at;
    size_t left;
} fuzz_bytes_t;

static inline uint64_t fuzz_number(fuzz_bytes_t *bytes, size_t size)
{
    uint64_t number = 0;
    size_t have = size < bytes->left ? size : bytes->left;

    memcpy(&number, bytes->at, have);
    bytes->at += have;
    bytes->left -= have;
    return number;
}

static inline uint8_t fuzz_byte(fuzz_bytes_t *bytes)
{
    return (uint8_t) fuzz_number(bytes, 1);
}

/** A number below @p bound, which is not 0. */
static inline uint32_t fuzz_below(fuzz_bytes_t *bytes, uint32_t bound)
{
    return (uint32_t) fuzz_number(bytes, bound <= 256 ? 1 : 4) % bound;
}

/** The next @p most bytes, or the rest of the input. @return how many */
static inline size_t fuzz_take(fuzz_bytes_t *bytes, size_t most, const uint8_t **at)
{
    size_t have = most < bytes->left ? most : bytes->left;

    *at = bytes->at;
    bytes->at += have;
    bytes->left -= have;
    return have;
}

/**
 * Spoil a packet: a few times a place and what is written there. Nothing if the next byte is 0.
 * What is made right before is then wrong in the fields that the input likes.
 */
static inline void fuzz_patch(fuzz_bytes_t *bytes, void *packet, size_t size)
{
    uint32_t patches = fuzz_byte(bytes) % 5;

    for (uint32_t i = 0; i < patches && 0 < size; ++i) {
        uint32_t width = 1u << fuzz_below(bytes, 4),
                 at = fuzz_below(bytes, 65536) % (uint32_t) size;
        uint64_t value = fuzz_number(bytes, width);

        width = width < size - at ? width : (uint32_t) (size - at);
        memcpy((unsigned char *) packet + at, &value, width);
    }
}

#endif /* TEST_FUZZ_FUZZ_H */
