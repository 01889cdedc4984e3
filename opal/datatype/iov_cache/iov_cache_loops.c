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
 * The loops of the operations, each written by a macro from what it does to one element.
 *
 * At -O2 compilers make vectors only of loops whose length they know, over memory that they know to
 * be apart: hence the inner loop, and restrict at the parameters of a function, where it counts.
 */

#include "opal_config.h"

#include <complex.h>

#include "iov_cache_loops.h"

#define AT_ONCE(TYPE) (64 / sizeof(TYPE))

/* RESULT is of m, which is in memory, and s, which is in the stream; neither need be aligned. */
#define LOOP(NAME, TYPE, RESULT)                                                                   \
    typedef TYPE NAME##_t __attribute__((aligned(1), may_alias));                                  \
                                                                                                   \
    static inline void NAME##_some(NAME##_t *restrict memory, const NAME##_t *restrict stream,     \
                                   uint64_t n)                                                     \
    {                                                                                              \
        uint64_t i;                                                                                \
                                                                                                   \
        for (i = 0; i < n; ++i) {                                                                  \
            const TYPE m = memory[i], s = stream[i];                                               \
                                                                                                   \
            memory[i] = (TYPE) (RESULT);                                                           \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void NAME(void *memory, int64_t stride, const void *stream, uint64_t n, uint64_t count) \
    {                                                                                              \
        const NAME##_t *from = stream;                                                             \
        char *block = memory;                                                                      \
                                                                                                   \
        if (1 == n) {                                                                              \
            for (; 0 < count; --count, block += stride, ++from) {                                  \
                NAME##_some((NAME##_t *) block, from, 1);                                          \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (; 0 < count; --count, block += stride) {                                              \
            NAME##_t *to = (NAME##_t *) block;                                                     \
            uint64_t left = n;                                                                     \
                                                                                                   \
            for (; AT_ONCE(TYPE) <= left; left -= AT_ONCE(TYPE)) {                                 \
                NAME##_some(to, from, AT_ONCE(TYPE));                                              \
                to += AT_ONCE(TYPE);                                                               \
                from += AT_ONCE(TYPE);                                                             \
            }                                                                                      \
            NAME##_some(to, from, left);                                                           \
            from += left;                                                                          \
        }                                                                                          \
    }

#define LESS    s < m ? s : m
#define GREATER s > m ? s : m

/*
 * Sums and products of signed integers are those of unsigned ones, which may wrap around. A product
 * of two that are shorter than int would be one of int: 1u makes it unsigned.
 */
#define INTEGERS(BITS)                                      \
    LOOP(sum_u##BITS, uint##BITS##_t, m + s)                \
    LOOP(prod_u##BITS, uint##BITS##_t, 1u * m * s)          \
    LOOP(min_i##BITS, int##BITS##_t, LESS)                  \
    LOOP(max_i##BITS, int##BITS##_t, GREATER)               \
    LOOP(min_u##BITS, uint##BITS##_t, LESS)                 \
    LOOP(max_u##BITS, uint##BITS##_t, GREATER)              \
    LOOP(land_u##BITS, uint##BITS##_t, (0 != m) & (0 != s)) \
    LOOP(lor_u##BITS, uint##BITS##_t, (0 != m) | (0 != s))  \
    LOOP(lxor_u##BITS, uint##BITS##_t, (0 != m) ^ (0 != s)) \
    LOOP(band_u##BITS, uint##BITS##_t, (m & s))             \
    LOOP(bor_u##BITS, uint##BITS##_t, (m | s))              \
    LOOP(bxor_u##BITS, uint##BITS##_t, (m ^ s))

INTEGERS(8)
INTEGERS(16)
INTEGERS(32)
INTEGERS(64)

#define FLOATS(NAME, TYPE)           \
    LOOP(sum_##NAME, TYPE, m + s)    \
    LOOP(prod_##NAME, TYPE, (m * s)) \
    LOOP(min_##NAME, TYPE, LESS)     \
    LOOP(max_##NAME, TYPE, GREATER)

FLOATS(float, float)
FLOATS(double, double)
FLOATS(long_double, long double)

LOOP(sum_float_complex, float complex, m + s)
LOOP(sum_double_complex, double complex, m + s)
LOOP(sum_long_double_complex, long double complex, m + s)
LOOP(prod_float_complex, float complex, (m * s))
LOOP(prod_double_complex, double complex, (m * s))
LOOP(prod_long_double_complex, long double complex, (m * s))

#define SUM_PROD(NAME) [OPAL_IOV_CACHE_SUM] = sum_##NAME, [OPAL_IOV_CACHE_PROD] = prod_##NAME

#define MIN_MAX(NAME) [OPAL_IOV_CACHE_MIN] = min_##NAME, [OPAL_IOV_CACHE_MAX] = max_##NAME

#define LOGICAL(NAME)                                                       \
    [OPAL_IOV_CACHE_LAND] = land_##NAME, [OPAL_IOV_CACHE_LOR] = lor_##NAME, \
    [OPAL_IOV_CACHE_LXOR] = lxor_##NAME

#define BITWISE(NAME)                                                       \
    [OPAL_IOV_CACHE_BAND] = band_##NAME, [OPAL_IOV_CACHE_BOR] = bor_##NAME, \
    [OPAL_IOV_CACHE_BXOR] = bxor_##NAME

#define INTEGER(SIGN, BITS)                                                            \
    {                                                                                  \
        BITS / 8,                                                                      \
        {                                                                              \
            SUM_PROD(u##BITS), MIN_MAX(SIGN##BITS), LOGICAL(u##BITS), BITWISE(u##BITS) \
        }                                                                              \
    }

const opal_iov_cache_loops_t opal_iov_cache_loops[OPAL_IOV_CACHE_ELEMENT_COUNT] = {
    [OPAL_IOV_CACHE_BYTE] = {1, {BITWISE(u8)}},
    [OPAL_IOV_CACHE_BOOL] = {sizeof(bool), {LOGICAL(u8)}},
    [OPAL_IOV_CACHE_INT8] = INTEGER(i, 8),
    [OPAL_IOV_CACHE_UINT8] = INTEGER(u, 8),
    [OPAL_IOV_CACHE_INT16] = INTEGER(i, 16),
    [OPAL_IOV_CACHE_UINT16] = INTEGER(u, 16),
    [OPAL_IOV_CACHE_INT32] = INTEGER(i, 32),
    [OPAL_IOV_CACHE_UINT32] = INTEGER(u, 32),
    [OPAL_IOV_CACHE_INT64] = INTEGER(i, 64),
    [OPAL_IOV_CACHE_UINT64] = INTEGER(u, 64),
    [OPAL_IOV_CACHE_FLOAT] = {sizeof(float), {SUM_PROD(float), MIN_MAX(float)}},
    [OPAL_IOV_CACHE_DOUBLE] = {sizeof(double), {SUM_PROD(double), MIN_MAX(double)}},
    [OPAL_IOV_CACHE_LONG_DOUBLE] = {sizeof(long double),
                                    {SUM_PROD(long_double), MIN_MAX(long_double)}},
    [OPAL_IOV_CACHE_FLOAT_COMPLEX] = {sizeof(float complex), {SUM_PROD(float_complex)}},
    [OPAL_IOV_CACHE_DOUBLE_COMPLEX] = {sizeof(double complex), {SUM_PROD(double_complex)}},
    [OPAL_IOV_CACHE_LONG_DOUBLE_COMPLEX] = {sizeof(long double complex),
                                            {SUM_PROD(long_double_complex)}},
};

_Static_assert(1 == sizeof(bool), "a bool is combined as a byte");
