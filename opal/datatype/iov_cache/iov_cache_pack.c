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
 * Pack and unpack of any range of the stream. The front end handles partial repetitions. Whole
 * repetitions are copied by loops with block lengths known to the compiler. (The same structure as
 * Yaksa: a front end for offsets, back ends for regular shapes only.)
 */

#include "opal_config.h"

#include <string.h>

#include "iov_cache_find.h"
#include "iov_cache_form.h"

/*
 * A body of at most this many blocks is copied block by block, for several repetitions at a time.
 * The repetitions cover this many bytes of memory.
 */
#define SWEEP_BYTES  (16 * 1024)
#define SWEEP_BLOCKS 16

/* Blocks of a list whose lengths are compared before they are copied: they stay in the L1 cache. */
#define AT_A_TIME 256

/* Repetitions at most this far apart are copied as columns, several at a time. */
#define COLUMNS_STRIDE 64
#define COLUMNS        16

/* State of a copy. */
typedef struct {
    const opal_iov_cache_form_t *form;
    bool packing;
} copy_t;

/* Sixteen bytes at any address. */
typedef unsigned char sixteen_t __attribute__((vector_size(16)));

static inline sixteen_t load(const char *from)
{
    sixteen_t value;

    memcpy(&value, from, sizeof(value));
    return value;
}

static inline void store(char *to, sixteen_t value)
{
    memcpy(to, &value, sizeof(value));
}

/*
 * With some C libraries (glibc on x86) memcpy is one string instruction for more than 2 KiB. On
 * some processors (Zen 3) that instruction is 20 times slower than a loop if the destination begins
 * 1 to 31 bytes after the source, modulo whole pages. Such alignment of streams and buffers is
 * common: memory that malloc maps begins 16 bytes into a page.
 */
#define LOOP_MIN 2049
#define PAGE     4096
#define BEHIND   64

/* At least 64 bytes; only the stores of the loop are aligned. */
static void copy_long(char *to, const char *from, size_t size)
{
    char *tail = to + size - 64;
    sixteen_t first = load(from), last[4] = {load(from + size - 64), load(from + size - 48),
                                             load(from + size - 32), load(from + size - 16)};
    size_t ahead = 16 - ((uintptr_t) to & 15);

    store(to, first);
    to += ahead;
    from += ahead;
    for (; to < tail; to += 64, from += 64) {
        sixteen_t next[4] = {load(from), load(from + 16), load(from + 32), load(from + 48)};

        store(to, next[0]);
        store(to + 16, next[1]);
        store(to + 32, next[2]);
        store(to + 48, next[3]);
    }
    store(tail, last[0]);
    store(tail + 16, last[1]);
    store(tail + 32, last[2]);
    store(tail + 48, last[3]);
}

/* Up to 64 bytes by moves of one power of two, of which the last ones may overlap: a call of memcpy
 * costs more than these. All is read before anything is written. */
#define MOVE_TWO(TYPE)                                           \
    do {                                                         \
        TYPE first, last;                                        \
                                                                 \
        memcpy(&first, from, sizeof(TYPE));                      \
        memcpy(&last, from + size - sizeof(TYPE), sizeof(TYPE)); \
        memcpy(to, &first, sizeof(TYPE));                        \
        memcpy(to + size - sizeof(TYPE), &last, sizeof(TYPE));   \
    } while (0)

static inline void copy_3(char *to, const char *from)
{
    memcpy(to, from, 2);
    to[2] = from[2];
}

static inline void copy_4_to_8(char *to, const char *from, size_t size)
{
    MOVE_TWO(uint32_t);
}

static inline void copy_8_to_16(char *to, const char *from, size_t size)
{
    MOVE_TWO(uint64_t);
}

static inline void copy_16_to_32(char *to, const char *from, size_t size)
{
    MOVE_TWO(sixteen_t);
}

static inline void copy_32_to_48(char *to, const char *from, size_t size)
{
    sixteen_t parts[3] = {load(from), load(from + 16), load(from + size - 16)};

    store(to, parts[0]);
    store(to + 16, parts[1]);
    store(to + size - 16, parts[2]);
}

static inline void copy_48_to_64(char *to, const char *from, size_t size)
{
    sixteen_t parts[4] = {load(from), load(from + 16), load(from + 32), load(from + size - 16)};

    store(to, parts[0]);
    store(to + 16, parts[1]);
    store(to + 32, parts[2]);
    store(to + size - 16, parts[3]);
}

static inline void copy_64_to_96(char *to, const char *from, size_t size)
{
    sixteen_t parts[6] = {load(from),      load(from + 16),        load(from + 32),
                          load(from + 48), load(from + size - 32), load(from + size - 16)};

    store(to, parts[0]);
    store(to + 16, parts[1]);
    store(to + 32, parts[2]);
    store(to + 48, parts[3]);
    store(to + size - 32, parts[4]);
    store(to + size - 16, parts[5]);
}

static inline void copy_96_to_128(char *to, const char *from, size_t size)
{
    copy_64_to_96(to, from, 64 + 32);
    copy_16_to_32(to + size - 32, from + size - 32, 32);
}

static inline void copy_large(char *to, const char *from, size_t size)
{
    if (LOOP_MIN <= size && ((uintptr_t) to - (uintptr_t) from - 1) % PAGE < BEHIND - 1) {
        copy_long(to, from, size);
    } else {
        memcpy(to, from, size);
    }
}

static inline void copy_block(char *to, const char *from, size_t size)
{
    if (size > 128) {
        copy_large(to, from, size);
    } else if (size > 96) {
        copy_96_to_128(to, from, size);
    } else if (size > 64) {
        copy_64_to_96(to, from, size);
    } else if (size > 32) {
        copy_16_to_32(to, from, 32);
        copy_16_to_32(to + size - 32, from + size - 32, 32);
    } else if (size >= 16) {
        copy_16_to_32(to, from, size);
    } else if (size >= 8) {
        copy_8_to_16(to, from, size);
    } else if (size >= 4) {
        copy_4_to_8(to, from, size);
    } else {
        for (; 0 < size; --size) {
            *to++ = *from++;
        }
    }
}

/* Blocks of one length: it is tested once. */
#define COPY_BLOCKS(COPY)         \
    for (i = 0; i < count; ++i) { \
        COPY;                     \
        to += to_stride;          \
        from += from_stride;      \
    }

static void copy_blocks(char *to, int64_t to_stride, const char *from, int64_t from_stride,
                        uint64_t size, uint64_t count)
{
    uint64_t i;

    if (size > 128) {
        COPY_BLOCKS(copy_large(to, from, size))
    } else if (size > 96) {
        COPY_BLOCKS(copy_96_to_128(to, from, size))
    } else if (size > 64) {
        COPY_BLOCKS(copy_64_to_96(to, from, size))
    } else if (size > 48) {
        COPY_BLOCKS(copy_48_to_64(to, from, size))
    } else if (size > 32) {
        COPY_BLOCKS(copy_32_to_48(to, from, size))
    } else if (size > 16) {
        COPY_BLOCKS(copy_16_to_32(to, from, size))
    } else if (size == 16) {
        COPY_BLOCKS(memcpy(to, from, 16))
    } else if (size > 8) {
        COPY_BLOCKS(copy_8_to_16(to, from, size))
    } else if (size == 8) {
        COPY_BLOCKS(memcpy(to, from, 8))
    } else if (size > 4) {
        COPY_BLOCKS(copy_4_to_8(to, from, size))
    } else if (size == 4) {
        COPY_BLOCKS(memcpy(to, from, 4))
    } else if (size == 3) {
        COPY_BLOCKS(copy_3(to, from))
    } else if (size == 2) {
        COPY_BLOCKS(memcpy(to, from, 2))
    } else {
        COPY_BLOCKS(*to = *from)
    }
}

static inline void copy_one(const copy_t *copy, char *memory, char *stream, uint64_t size)
{
    if (copy->packing) {
        copy_block(stream, memory, size);
    } else {
        copy_block(memory, stream, size);
    }
}

static inline void copy_many(const copy_t *copy, char *memory, int64_t memory_stride, char *stream,
                             int64_t stream_stride, uint64_t size, uint64_t count)
{
    if (copy->packing) {
        copy_blocks(stream, stream_stride, memory, memory_stride, size, count);
    } else {
        copy_blocks(memory, memory_stride, stream, stream_stride, size, count);
    }
}

/* ---------------------------------------------------------------------------------------------
 * Whole repetitions
 * ------------------------------------------------------------------------------------------- */

/* The blocks of a list, all of one length known to the compiler. */
#define COPY_LIST(SIZE)                                                   \
    for (i = 0; i < n; ++i) {                                             \
        if (packing) {                                                    \
            memcpy(stream + i * (SIZE), memory + blocks[i].offset, SIZE); \
        } else {                                                          \
            memcpy(memory + blocks[i].offset, stream + i * (SIZE), SIZE); \
        }                                                                 \
    }                                                                     \
    return true

static inline bool copy_equal(const bool packing, const opal_iov_cache_block_t *blocks, uint64_t n,
                              char *memory, char *stream, uint64_t size)
{
    uint64_t i;

    switch (size) {
    case 4:
        COPY_LIST(4);
    case 8:
        COPY_LIST(8);
    case 12:
        COPY_LIST(12);
    case 16:
        COPY_LIST(16);
    case 24:
        COPY_LIST(24);
    case 32:
        COPY_LIST(32);
    default:
        return false;
    }
}

/* Number of blocks from @p i on with the same length, up to a limit per call. */
static uint64_t equal_blocks(const opal_iov_cache_term_t *term,
                             const opal_iov_cache_block_t *blocks, uint64_t i)
{
    uint64_t last = term->n - i <= AT_A_TIME ? term->n : i + AT_A_TIME, k;

    for (k = i + 1; k < last && blocks[k].length == blocks[i].length; ++k) {
    }
    return k - i;
}

/* @p count repetitions of a list of blocks */
static void copy_lists(const copy_t *copy, const opal_iov_cache_term_t *term, char *memory,
                       char *stream, uint64_t count)
{
    const opal_iov_cache_block_t *blocks = &copy->form->blocks[term->first];
    uint64_t r, i, n, end, length;

    for (r = 0; r < count; ++r, memory += term->stride) {
        for (i = 0; i < term->n; i = end) {
            length = blocks[i].length;
            n = 0 < copy->form->uniform ? term->n : equal_blocks(term, blocks, i);
            end = i + n;
            if (copy->packing ? copy_equal(true, blocks + i, n, memory, stream, length)
                              : copy_equal(false, blocks + i, n, memory, stream, length)) {
                stream += n * length;
                continue;
            }
            for (; i < end; ++i, stream += length) {
                copy_one(copy, memory + blocks[i].offset, stream, length);
            }
        }
    }
}

/* True if the body consists of few blocks only. */
static bool can_sweep(const copy_t *copy, const opal_iov_cache_term_t *term)
{
    const opal_iov_cache_term_t *terms = &copy->form->terms[term->first];
    uint64_t i, blocks = 0;

    for (i = 0; i < term->n && SWEEP_BLOCKS >= blocks; ++i) {
        if (OPAL_IOV_CACHE_DENSE != terms[i].kind || SWEEP_BLOCKS < terms[i].count) {
            return false;
        }
        blocks += terms[i].count;
    }
    return SWEEP_BLOCKS >= blocks;
}

/* Repetitions of such a body: each block is copied as a vector. */
static void sweep(const copy_t *copy, const opal_iov_cache_term_t *term, char *memory, char *stream,
                  uint64_t count)
{
    const opal_iov_cache_term_t *terms = &copy->form->terms[term->first];
    uint64_t reach = 0 > term->stride ? 0 - (uint64_t) term->stride : (uint64_t) term->stride;
    uint64_t step = SWEEP_BYTES / (reach + term->size), i, k, now;

    step = 0 == step ? 1 : step;
    for (; 0 < count; count -= now) {
        now = step < count ? step : count;
        for (i = 0; i < term->n; ++i) {
            for (k = 0; k < terms[i].count; ++k) {
                copy_many(copy, memory + terms[i].offset + (int64_t) k * terms[i].stride,
                          term->stride, stream + terms[i].start + k * terms[i].size,
                          (int64_t) term->size, terms[i].size, now);
            }
        }
        memory += (int64_t) now * term->stride;
        stream += now * term->size;
    }
}

/*
 * True if the body is a vector whose blocks are further apart than its repetitions, which share
 * cache lines: the columns of a matrix.
 */
static bool is_columns(const copy_t *copy, const opal_iov_cache_term_t *term)
{
    const opal_iov_cache_term_t *body = &copy->form->terms[term->first];

    return 1 == term->n && OPAL_IOV_CACHE_DENSE == body->kind && COLUMNS_STRIDE >= term->stride
           && -COLUMNS_STRIDE <= term->stride
           && (COLUMNS_STRIDE < body->stride || -COLUMNS_STRIDE > body->stride);
}

/* Several columns at a time, row by row, so that each cache line is visited once. */
static void copy_columns(const copy_t *copy, const opal_iov_cache_term_t *term, char *memory,
                         char *stream, uint64_t count)
{
    const opal_iov_cache_term_t *body = &copy->form->terms[term->first];
    uint64_t row, now;

    memory += body->offset;
    for (; 0 < count; count -= now) {
        now = COLUMNS < count ? COLUMNS : count;
        for (row = 0; row < body->count; ++row) {
            copy_many(copy, memory + (int64_t) row * body->stride, term->stride,
                      stream + row * body->size, (int64_t) term->size, body->size, now);
        }
        memory += (int64_t) now * term->stride;
        stream += now * term->size;
    }
}

/* @p count repetitions of a term's body, the first of them at @p memory */
static void copy_whole(const copy_t *copy, const opal_iov_cache_term_t *term, char *memory,
                       char *stream, uint64_t count)
{
    const opal_iov_cache_term_t *terms;
    uint64_t r, i;

    if (OPAL_IOV_CACHE_DENSE == term->kind) {
        copy_many(copy, memory, term->stride, stream, (int64_t) term->size, term->size, count);
        return;
    }
    if (OPAL_IOV_CACHE_BLOCKS == term->kind) {
        copy_lists(copy, term, memory, stream, count);
        return;
    }
    if (1 < count && can_sweep(copy, term)) {
        sweep(copy, term, memory, stream, count);
        return;
    }
    if (1 < count && is_columns(copy, term)) {
        copy_columns(copy, term, memory, stream, count);
        return;
    }
    terms = &copy->form->terms[term->first];
    for (r = 0; r < count; ++r) {
        for (i = 0; i < term->n; ++i) {
            copy_whole(copy, &terms[i], memory + terms[i].offset, stream + terms[i].start,
                       terms[i].count);
        }
        memory += term->stride;
        stream += term->size;
    }
}

/* ---------------------------------------------------------------------------------------------
 * Parts
 * ------------------------------------------------------------------------------------------- */

static void copy_term(const copy_t *copy, const opal_iov_cache_term_t *term, char *memory,
                      char *stream, uint64_t low, uint64_t high);

/* Bytes low .. high - 1 of one repetition; @p stream is the position of byte low. */
static void copy_part(const copy_t *copy, const opal_iov_cache_term_t *term, char *memory,
                      char *stream, uint64_t low, uint64_t high)
{
    uint64_t i, start;

    if (OPAL_IOV_CACHE_DENSE == term->kind) {
        copy_one(copy, memory + low, stream, high - low);
    } else if (OPAL_IOV_CACHE_BLOCKS == term->kind) {
        const opal_iov_cache_block_t *blocks = &copy->form->blocks[term->first];

        for (i = opal_iov_cache_find_block(copy->form, term, low, &start); low < high; ++i) {
            uint64_t next = start + blocks[i].length, end = next < high ? next : high;

            copy_one(copy, memory + blocks[i].offset + (low - start), stream, end - low);
            stream += end - low;
            low = end;
            start = next;
        }
    } else {
        const opal_iov_cache_term_t *terms = &copy->form->terms[term->first];

        for (i = opal_iov_cache_find(&terms->start, sizeof(*terms), term->n, low); low < high;
             ++i) {
            uint64_t end = i + 1 < term->n ? terms[i + 1].start : term->size;

            end = end < high ? end : high;
            copy_term(copy, &terms[i], memory + terms[i].offset, stream, low - terms[i].start,
                      end - terms[i].start);
            stream += end - low;
            low = end;
        }
    }
}

/* Bytes low .. high - 1 of a term; @p memory is the address of its first repetition. */
static void copy_term(const copy_t *copy, const opal_iov_cache_term_t *term, char *memory,
                      char *stream, uint64_t low, uint64_t high)
{
    uint64_t repeat = low / term->size, skip = low % term->size, whole;

    memory += (int64_t) repeat * term->stride;
    if (0 < skip) {
        uint64_t end = high - (low - skip) < term->size ? high - (low - skip) : term->size;

        copy_part(copy, term, memory, stream, skip, end);
        stream += end - skip;
        low += end - skip;
        memory += term->stride;
    }
    whole = (high - low) / term->size;
    if (0 < whole) {
        copy_whole(copy, term, memory, stream, whole);
        memory += (int64_t) whole * term->stride;
        stream += whole * term->size;
        low += whole * term->size;
    }
    if (low < high) {
        copy_part(copy, term, memory, stream, 0, high - low);
    }
}

static uint64_t copy_range(const copy_t *copy, char *buffer, uint64_t start, uint64_t length,
                           char *stream)
{
    const opal_iov_cache_form_t *form = copy->form;

    if (start >= form->size || 0 == length) {
        return 0;
    }
    if (length > form->size - start) {
        length = form->size - start;
    }
    copy_term(copy, &form->terms[0], buffer + form->terms[0].offset, stream, start, start + length);
    return length;
}

uint64_t opal_iov_cache_form_pack(const opal_iov_cache_form_t *form, const void *buffer,
                                  uint64_t start, uint64_t length, void *stream)
{
    const copy_t copy = {form, true};

    return copy_range(&copy, (char *) buffer, start, length, stream);
}

uint64_t opal_iov_cache_form_unpack(const opal_iov_cache_form_t *form, void *buffer, uint64_t start,
                                    uint64_t length, const void *stream)
{
    const copy_t copy = {form, false};

    return copy_range(&copy, buffer, start, length, (char *) stream);
}
