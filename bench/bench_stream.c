/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include <string.h>

#include "bench_stream.h"
#include "bench_util.h"

/* Odd, so that 256 messages in a row have 256 masks; mixed, so that neighbours differ in many bits.
 */
#define MASK_STEP 0x9du

unsigned char *bench_stream_base(uint64_t bytes, int sender)
{
    unsigned char *base = bench_alloc(bytes + sizeof(uint64_t));
    uint64_t state = 0x62656e6368u + (uint64_t) sender, i;

    for (i = 0; i < bytes; i += sizeof(uint64_t)) {
        uint64_t word = bench_random(&state);

        memcpy(base + i, &word, sizeof(word));
    }
    return base;
}

unsigned char bench_stream_mask(unsigned message)
{
    return (unsigned char) (message * MASK_STEP);
}

void bench_stream_make(const unsigned char *base, uint64_t bytes, unsigned message,
                       unsigned char *stream)
{
    const unsigned char mask = bench_stream_mask(message);
    uint64_t i;

    for (i = 0; i < bytes; ++i) {
        stream[i] = base[i] ^ mask;
    }
}
