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
 * The data of a message, as a stream of bytes.
 *
 * It is made from a base of random bytes, which differs per sending rank, and a mask, which differs
 * per message. The streams of two messages of a sender differ in every byte unless their numbers
 * differ by a multiple of 256. So stale data of an earlier message is detected. Message 0 is never
 * sent; it is the initial content of a receive buffer.
 */

#ifndef BENCH_STREAM_H
#define BENCH_STREAM_H

#include <stdint.h>

/** The base of the streams of a sender. The caller frees it. */
unsigned char *bench_stream_base(uint64_t bytes, int sender);

/** The value that changes the bytes of the base (by exclusive or) in a message. */
unsigned char bench_stream_mask(unsigned message);

/** Write the stream of a message. */
void bench_stream_make(const unsigned char *base, uint64_t bytes, unsigned message,
                       unsigned char *stream);

#endif /* BENCH_STREAM_H */
