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
 * The work of a thread of a reduction kernel, in the common subset of C and C++. The operation and
 * the type are constants at the calls, and all functions are inlined.
 *
 * The results are those of Open MPI's operations on the CPU, with the first operand as the input
 * and the second one as the input and output: bit for bit, except products of complex numbers with
 * an infinity or a NaN. No multiplication is fused with an addition (-fmad=false).
 */

#ifndef UMRDDT_GPU_REDUCE_WORK_H
#define UMRDDT_GPU_REDUCE_WORK_H

#include <stdbool.h>

#include "umrddt_gpu_port.h"
#include "umrddt_gpu_reduce_args.h"

/* Accesses of a thread in flight. */
#define UMRDDT_GPU_REDUCE_BATCH 4

/* A number and its bits. */
typedef union umrddt_gpu_reduce_value_t {
    uint64_t bits;
    float f32[2];
    double f64;
} umrddt_gpu_reduce_value_t;

/* Bytes from element to element; bytes of a value, or of each number of a complex one. */
UMRDDT_GPU_FN uint32_t umrddt_gpu_reduce_extent(uint32_t type)
{
    switch (type) {
    case UMRDDT_GPU_REDUCE_I8:
    case UMRDDT_GPU_REDUCE_U8:
        return 1;
    case UMRDDT_GPU_REDUCE_I16:
    case UMRDDT_GPU_REDUCE_U16:
        return 2;
    case UMRDDT_GPU_REDUCE_I32:
    case UMRDDT_GPU_REDUCE_U32:
    case UMRDDT_GPU_REDUCE_F32:
        return 4;
    case UMRDDT_GPU_REDUCE_C64:
    case UMRDDT_GPU_REDUCE_DI:
    case UMRDDT_GPU_REDUCE_LI:
        return 16;
    default:
        return 8;
    }
}

UMRDDT_GPU_FN uint32_t umrddt_gpu_reduce_value_bytes(uint32_t type)
{
    switch (type) {
    case UMRDDT_GPU_REDUCE_C32:
    case UMRDDT_GPU_REDUCE_FI:
    case UMRDDT_GPU_REDUCE_II:
        return 4;
    case UMRDDT_GPU_REDUCE_C64:
    case UMRDDT_GPU_REDUCE_DI:
    case UMRDDT_GPU_REDUCE_LI:
        return 8;
    case UMRDDT_GPU_REDUCE_SI:
        return 2;
    default:
        return umrddt_gpu_reduce_extent(type);
    }
}

/* ---------------------------------------------------------------------------------------------
 * One element
 * ------------------------------------------------------------------------------------------- */

/* The bits of `bytes` bytes. */
UMRDDT_GPU_FN uint64_t umrddt_gpu_reduce_mask(uint32_t bytes)
{
    return ~(uint64_t) 0 >> (64 - 8 * bytes);
}

UMRDDT_GPU_FN int64_t umrddt_gpu_reduce_signed(uint64_t bits, uint32_t bytes)
{
    return (int64_t) (bits << (64 - 8 * bytes)) >> (64 - 8 * bytes);
}

UMRDDT_GPU_FN uint64_t umrddt_gpu_reduce_pick(bool first, uint64_t a, uint64_t b)
{
    return first ? a : b;
}

/* Numbers with a sign or a fraction are compared as such. */
UMRDDT_GPU_FN bool umrddt_gpu_reduce_less(uint64_t a, uint64_t b, uint32_t type)
{
    const uint32_t bytes = umrddt_gpu_reduce_value_bytes(type);
    umrddt_gpu_reduce_value_t x, y;

    x.bits = a;
    y.bits = b;
    switch (type) {
    case UMRDDT_GPU_REDUCE_F32:
    case UMRDDT_GPU_REDUCE_FI:
        return x.f32[0] < y.f32[0];
    case UMRDDT_GPU_REDUCE_F64:
    case UMRDDT_GPU_REDUCE_DI:
        return x.f64 < y.f64;
    case UMRDDT_GPU_REDUCE_I8:
    case UMRDDT_GPU_REDUCE_I16:
    case UMRDDT_GPU_REDUCE_I32:
    case UMRDDT_GPU_REDUCE_I64:
    case UMRDDT_GPU_REDUCE_LI:
    case UMRDDT_GPU_REDUCE_II:
    case UMRDDT_GPU_REDUCE_SI:
        return umrddt_gpu_reduce_signed(a, bytes) < umrddt_gpu_reduce_signed(b, bytes);
    default:
        return a < b;
    }
}

UMRDDT_GPU_FN bool umrddt_gpu_reduce_equal(uint64_t a, uint64_t b, uint32_t type)
{
    umrddt_gpu_reduce_value_t x, y;

    x.bits = a;
    y.bits = b;
    return UMRDDT_GPU_REDUCE_FI == type   ? x.f32[0] == y.f32[0]
           : UMRDDT_GPU_REDUCE_DI == type ? x.f64 == y.f64
                                          : a == b;
}

UMRDDT_GPU_FN uint64_t umrddt_gpu_reduce_float(uint64_t a, uint64_t b, uint32_t op)
{
    umrddt_gpu_reduce_value_t x, y, z;

    x.bits = a;
    y.bits = b;
    z.bits = 0;
    z.f32[0] = UMRDDT_GPU_REDUCE_SUM == op ? y.f32[0] + x.f32[0] : y.f32[0] * x.f32[0];
    return z.bits;
}

UMRDDT_GPU_FN uint64_t umrddt_gpu_reduce_double(uint64_t a, uint64_t b, uint32_t op)
{
    umrddt_gpu_reduce_value_t x, y, z;

    x.bits = a;
    y.bits = b;
    z.f64 = UMRDDT_GPU_REDUCE_SUM == op ? y.f64 + x.f64 : y.f64 * x.f64;
    return z.bits;
}

/* Elements of at most 8 bytes that are one number, or two float; no more bits than that. */
UMRDDT_GPU_FN uint64_t umrddt_gpu_reduce_one(uint64_t a, uint64_t b, uint32_t op, uint32_t type)
{
    const uint64_t mask = umrddt_gpu_reduce_mask(umrddt_gpu_reduce_extent(type));
    umrddt_gpu_reduce_value_t x, y, z;

    switch (op) {
    case UMRDDT_GPU_REDUCE_MAX:
        return umrddt_gpu_reduce_pick(umrddt_gpu_reduce_less(a, b, type), b, a);
    case UMRDDT_GPU_REDUCE_MIN:
        return umrddt_gpu_reduce_pick(umrddt_gpu_reduce_less(b, a, type), b, a);
    case UMRDDT_GPU_REDUCE_LAND:
        return 0 != a && 0 != b ? 1 : 0;
    case UMRDDT_GPU_REDUCE_LOR:
        return 0 != (a | b) ? 1 : 0;
    case UMRDDT_GPU_REDUCE_LXOR:
        return (0 != a) != (0 != b) ? 1 : 0;
    case UMRDDT_GPU_REDUCE_BAND:
        return a & b;
    case UMRDDT_GPU_REDUCE_BOR:
        return a | b;
    case UMRDDT_GPU_REDUCE_BXOR:
        return a ^ b;
    default:
        break;
    }
    switch (type) {
    case UMRDDT_GPU_REDUCE_F32:
        return umrddt_gpu_reduce_float(a, b, op);
    case UMRDDT_GPU_REDUCE_F64:
        return umrddt_gpu_reduce_double(a, b, op);
    case UMRDDT_GPU_REDUCE_C32:
        x.bits = a;
        y.bits = b;
        if (UMRDDT_GPU_REDUCE_SUM == op) {
            z.f32[0] = y.f32[0] + x.f32[0];
            z.f32[1] = y.f32[1] + x.f32[1];
        } else {
            z.f32[0] = y.f32[0] * x.f32[0] - y.f32[1] * x.f32[1];
            z.f32[1] = y.f32[0] * x.f32[1] + y.f32[1] * x.f32[0];
        }
        return z.bits;
    default:
        return (UMRDDT_GPU_REDUCE_SUM == op ? a + b : a * b) & mask;
    }
}

/* 16 bytes of elements. */
UMRDDT_GPU_FN umrddt_gpu_word_t umrddt_gpu_reduce_word(umrddt_gpu_word_t a, umrddt_gpu_word_t b,
                                                       uint32_t op, uint32_t type)
{
    const uint32_t bytes = umrddt_gpu_reduce_extent(type);
    umrddt_gpu_word_t word = {0, 0};
    umrddt_gpu_reduce_value_t x[2], y[2], z[2];
    uint32_t i;

    if (UMRDDT_GPU_REDUCE_C64 == type) {
        x[0].bits = a.low;
        x[1].bits = a.high;
        y[0].bits = b.low;
        y[1].bits = b.high;
        if (UMRDDT_GPU_REDUCE_SUM == op) {
            z[0].f64 = y[0].f64 + x[0].f64;
            z[1].f64 = y[1].f64 + x[1].f64;
        } else {
            z[0].f64 = y[0].f64 * x[0].f64 - y[1].f64 * x[1].f64;
            z[1].f64 = y[0].f64 * x[1].f64 + y[1].f64 * x[0].f64;
        }
        word.low = z[0].bits;
        word.high = z[1].bits;
        return word;
    }
    if (8 <= bytes) {
        word.low = umrddt_gpu_reduce_one(a.low, b.low, op, type);
        word.high = umrddt_gpu_reduce_one(a.high, b.high, op, type);
        return word;
    }
    UMRDDT_GPU_UNROLL
    for (i = 0; i < 8 / bytes; ++i) {
        const uint64_t mask = umrddt_gpu_reduce_mask(bytes);
        const uint32_t shift = 8 * bytes * i;

        word.low |= umrddt_gpu_reduce_one(a.low >> shift & mask, b.low >> shift & mask, op, type)
                    << shift;
        word.high |= umrddt_gpu_reduce_one(a.high >> shift & mask, b.high >> shift & mask, op, type)
                     << shift;
    }
    return word;
}

/* ---------------------------------------------------------------------------------------------
 * Accesses
 * ------------------------------------------------------------------------------------------- */

/* A number of up to 8 bytes, by accesses of at most `width` bytes. */
UMRDDT_GPU_FN uint64_t umrddt_gpu_reduce_get(const umrddt_gpu_thread_t *thread, uint64_t from,
                                             uint32_t bytes, uint32_t width)
{
    uint64_t bits = 0;
    uint32_t i;

    if (bytes <= width) {
        return umrddt_gpu_load(thread, from, bytes).low;
    }
    for (i = 0; i < bytes; i += width) {
        bits |= umrddt_gpu_load(thread, from + i, width).low << 8 * i;
    }
    return bits;
}

UMRDDT_GPU_FN void umrddt_gpu_reduce_put(const umrddt_gpu_thread_t *thread, uint64_t to,
                                         uint32_t bytes, uint32_t width, uint64_t bits)
{
    umrddt_gpu_word_t word = {bits, 0};
    uint32_t i;

    if (bytes <= width) {
        umrddt_gpu_store(thread, to, bytes, word);
        return;
    }
    for (i = 0; i < bytes; i += width) {
        word.low = bits >> 8 * i;
        umrddt_gpu_store(thread, to + i, width, word);
    }
}

/* Both halves of an element of up to 16 bytes: value and index, real and imaginary part. */
UMRDDT_GPU_FN umrddt_gpu_word_t umrddt_gpu_reduce_load(const umrddt_gpu_thread_t *thread,
                                                       uint64_t from, uint32_t type, uint32_t width)
{
    const uint32_t bytes = umrddt_gpu_reduce_extent(type);
    umrddt_gpu_word_t word = {0, 0};

    if (UMRDDT_GPU_REDUCE_FI <= type) {
        word.low = umrddt_gpu_reduce_get(thread, from, umrddt_gpu_reduce_value_bytes(type), width);
        word.high = umrddt_gpu_reduce_get(thread, from + bytes / 2, 4, width);
    } else if (UMRDDT_GPU_REDUCE_C64 == type) {
        word.low = umrddt_gpu_reduce_get(thread, from, 8, width);
        word.high = umrddt_gpu_reduce_get(thread, from + 8, 8, width);
    } else {
        word.low = umrddt_gpu_reduce_get(thread, from, bytes, width);
    }
    return word;
}

/* The bytes of a pair between value and index stay as they are. */
UMRDDT_GPU_FN void umrddt_gpu_reduce_store(const umrddt_gpu_thread_t *thread, uint64_t to,
                                           uint32_t type, uint32_t width, umrddt_gpu_word_t word)
{
    const uint32_t bytes = umrddt_gpu_reduce_extent(type);

    if (UMRDDT_GPU_REDUCE_FI <= type) {
        umrddt_gpu_reduce_put(thread, to, umrddt_gpu_reduce_value_bytes(type), width, word.low);
        umrddt_gpu_reduce_put(thread, to + bytes / 2, 4, width, word.high);
    } else if (UMRDDT_GPU_REDUCE_C64 == type) {
        umrddt_gpu_reduce_put(thread, to, 8, width, word.low);
        umrddt_gpu_reduce_put(thread, to + 8, 8, width, word.high);
    } else {
        umrddt_gpu_reduce_put(thread, to, bytes, width, word.low);
    }
}

/* An element as loaded by umrddt_gpu_reduce_load. */
UMRDDT_GPU_FN umrddt_gpu_word_t umrddt_gpu_reduce_element(umrddt_gpu_word_t a, umrddt_gpu_word_t b,
                                                          uint32_t op, uint32_t type)
{
    if (UMRDDT_GPU_REDUCE_FI <= type) {
        if (umrddt_gpu_reduce_equal(a.low, b.low, type)) {
            /* the value of b: both zeros of floating point numbers are equal */
            b.high = umrddt_gpu_reduce_pick((int32_t) b.high < (int32_t) a.high, b.high, a.high);
            return b;
        }
        return (UMRDDT_GPU_REDUCE_MAXLOC == op ? umrddt_gpu_reduce_less(b.low, a.low, type)
                                               : umrddt_gpu_reduce_less(a.low, b.low, type))
                   ? a
                   : b;
    }
    if (UMRDDT_GPU_REDUCE_C64 == type) {
        return umrddt_gpu_reduce_word(a, b, op, type);
    }
    a.low = umrddt_gpu_reduce_one(a.low, b.low, op, type);
    return a;
}

/* Element i, by accesses of at most `width` bytes. */
UMRDDT_GPU_FN void umrddt_gpu_reduce_at(const umrddt_gpu_thread_t *thread,
                                        const umrddt_gpu_reduce_args_t *args, uint64_t i,
                                        uint32_t width, uint32_t op, uint32_t type)
{
    const uint64_t offset = i * umrddt_gpu_reduce_extent(type);
    umrddt_gpu_word_t result =
        umrddt_gpu_reduce_load(thread, args->source[0] + offset, type, width);
    uint32_t k;

    for (k = 1; k < args->n; ++k) {
        result = umrddt_gpu_reduce_element(
            result, umrddt_gpu_reduce_load(thread, args->source[k] + offset, type, width), op,
            type);
    }
    umrddt_gpu_reduce_store(thread, args->target + offset, type, width, result);
}

/* 16 bytes at a time: `words` of them from `begin` bytes on. */
UMRDDT_GPU_FN void umrddt_gpu_reduce_words(const umrddt_gpu_thread_t *thread,
                                           const umrddt_gpu_reduce_args_t *args, uint64_t begin,
                                           uint64_t words, uint32_t op, uint32_t type)
{
    const uint64_t threads = (uint64_t) thread->all_x * thread->dim_x;
    uint64_t first = (uint64_t) thread->bid_x * thread->dim_x + thread->tid_x;
    umrddt_gpu_word_t result[UMRDDT_GPU_REDUCE_BATCH], next[UMRDDT_GPU_REDUCE_BATCH];
    uint32_t i, k;

    for (; first < words; first += UMRDDT_GPU_REDUCE_BATCH * threads) {
        UMRDDT_GPU_UNROLL
        for (i = 0; i < UMRDDT_GPU_REDUCE_BATCH; ++i) {
            if (first + i * threads < words) {
                result[i] = umrddt_gpu_load(
                    thread, args->source[0] + begin + 16 * (first + i * threads), 16);
            }
        }
        for (k = 1; k < args->n; ++k) {
            UMRDDT_GPU_UNROLL
            for (i = 0; i < UMRDDT_GPU_REDUCE_BATCH; ++i) {
                if (first + i * threads < words) {
                    next[i] = umrddt_gpu_load(
                        thread, args->source[k] + begin + 16 * (first + i * threads), 16);
                }
            }
            UMRDDT_GPU_UNROLL
            for (i = 0; i < UMRDDT_GPU_REDUCE_BATCH; ++i) {
                if (first + i * threads < words) {
                    result[i] = umrddt_gpu_reduce_word(result[i], next[i], op, type);
                }
            }
        }
        UMRDDT_GPU_UNROLL
        for (i = 0; i < UMRDDT_GPU_REDUCE_BATCH; ++i) {
            if (first + i * threads < words) {
                umrddt_gpu_store(thread, args->target + begin + 16 * (first + i * threads), 16,
                                 result[i]);
            }
        }
    }
}

/* The work of a thread. */
UMRDDT_GPU_FN void umrddt_gpu_reduce_run(const umrddt_gpu_thread_t *thread,
                                         const umrddt_gpu_reduce_args_t *args, uint32_t op,
                                         uint32_t type)
{
    const uint32_t bytes = umrddt_gpu_reduce_extent(type);
    const uint64_t threads = (uint64_t) thread->all_x * thread->dim_x;
    uint64_t i = (uint64_t) thread->bid_x * thread->dim_x + thread->tid_x;

    if (UMRDDT_GPU_REDUCE_FI > type && 16 == args->width) {
        const uint64_t words = (args->count - args->head) * bytes / 16;
        const uint64_t covered = words * 16 / bytes;

        umrddt_gpu_reduce_words(thread, args, (uint64_t) args->head * bytes, words, op, type);
        /* the elements before and behind these */
        for (; i < args->count - covered; i += threads) {
            umrddt_gpu_reduce_at(thread, args, i < args->head ? i : i + covered, bytes, op, type);
        }
        return;
    }
    for (; i < args->count; i += threads) {
        umrddt_gpu_reduce_at(thread, args, i, args->width, op, type);
    }
}

#endif /* UMRDDT_GPU_REDUCE_WORK_H */
