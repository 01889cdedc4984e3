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
 * The fast readers for nearly all irregular descriptions. Their cost is instructions, about four
 * per nanosecond, and memory, which is read and written once. Each reader is for one kind of
 * description: all pairs of one length (the usual result of opal for such types), a few blocks per
 * element of one basic type or of several, or many blocks. They exist twice, for processors with
 * AVX2 and for all others.
 */

#include "opal_config.h"

#include <stddef.h>
#include <string.h>

#include "opal/datatype/opal_datatype.h"
#include "opal/datatype/opal_datatype_internal.h"

#include "iov_cache_scatter.h"

/* The check skips this many recent blocks, which may not have reached the cache yet. */
#define FRESH 256

/*
 * Pairs that are read at a time, and the distance of prefetches for elements and blocks: neither
 * need be in a near cache.
 */
#define UNROLLED 4
#define AHEAD    2048
#define LINE     64

/* A block, two blocks, or an element. Unsigned, since unused values may exceed 63 bits. */
typedef uint64_t pair_t __attribute__((vector_size(16)));
typedef opal_iov_cache_words_t words_t;

/* Words of a are 0 to 3, those of b are 4 to 7. */
#if defined(__clang__)
#define SHUFFLE(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define SHUFFLE(a, b, i, j, k, l) __builtin_shuffle(a, b, (words_t){i, j, k, l})
#endif

/* The sums that follow from the number of blocks and bytes. */
static bool sum_up(const opal_datatype_t *type, opal_iov_cache_scatter_t *scatter, size_t count,
                   uint64_t size, uint64_t uniform)
{
    const opal_iov_cache_block_t *last = &scatter->form->blocks[count - 1];
    opal_iov_cache_sums_t *sums = &scatter->sums;

    scatter->count = count;
    sums->size = size;
    sums->segments = count;
    sums->uniform = uniform;
    sums->first = scatter->form->blocks[0].offset;
    sums->end = last->offset + (int64_t) last->length;
    sums->lb = (int64_t) ((uint64_t) type->true_lb - scatter->origin);
    sums->ub = (int64_t) ((uint64_t) type->true_ub - scatter->origin);
    return size == type->size;
}

/* State while elements of two blocks are read. */
typedef struct {
    words_t lengths; /* of the two blocks */
    words_t origin;
    words_t like;   /* properties common to all elements: a head, or parts of it */
    words_t within; /* an extent that no element has */
    words_t next;   /* from the second block to the end of the pair; the next block must not begin
                       there */
    words_t last;   /* the two previous blocks */
    words_t differ; /* the bits of the head in which elements differ */
    words_t touch;  /* its third word is 0 if no block continues the previous one */
} pairs_t;

static inline __attribute__((always_inline)) void
read_pair(const ddt_elem_desc_t *element, bool moved, opal_iov_cache_block_t *block, pairs_t *pairs)
{
    const words_t only_extent = {0, 0, UINT64_MAX, 0};
    words_t words, where, value;

    memcpy(&words, element, sizeof(words));
    where = SHUFFLE(words, words, 3, 3, 3, 3);
    value = SHUFFLE(where, pairs->lengths, 0, 5, 2, 7) + (words & only_extent);
    if (moved) {
        value -= pairs->origin;
    }
    memcpy(block, &value, sizeof(value));
    pairs->differ |= words ^ pairs->like;
    pairs->touch |=
        (words_t) (words == pairs->within) | (words_t) (pairs->last + pairs->next == where);
    pairs->last = value;
}

/*
 * All blocks, if they have one length, each element has two of them, and none continues the
 * previous one. There must be room for all.
 *
 * @param[in] alike  only elements that have the head of the first one; else their lengths are
 *                   compared
 * @param[in] moved  the origin is not 0
 *
 * @return false if the properties do not hold; another reader can start again
 */
static inline __attribute__((always_inline)) bool read_pairs(const dt_type_desc_t *desc,
                                                             uint64_t length, bool alike,
                                                             bool moved,
                                                             opal_iov_cache_scatter_t *scatter)
{
    const ddt_elem_desc_t *element = &desc->desc[0].elem, *behind = element + desc->used;
    const uint64_t origin = scatter->origin;
    opal_iov_cache_block_t *block = scatter->form->blocks;
    pairs_t pairs = {.lengths = {0, length, 0, length},
                     .origin = {origin, 0, origin, 0},
                     .within = {0, 0, length, 0},
                     .next = {0, 0, length + origin, 0},
                     .last = {0, 0, (uint64_t) element->disp - origin - length + 1, 0}};
    ddt_elem_desc_t differ = {.count = UINT32_MAX};
    words_t wrong;
    uint64_t other = 0;
    unsigned i;

    differ.common.type =
        alike ? UINT16_MAX : (uint16_t) (UINT16_MAX / OPAL_IOV_CACHE_TYPES * OPAL_IOV_CACHE_TYPES);
    memcpy(&wrong, &differ, sizeof(wrong));
    memcpy(&pairs.like, element, sizeof(pairs.like));
    for (; UNROLLED <= behind - element; element += UNROLLED, block += 2 * UNROLLED) {
        __builtin_prefetch((const char *) element + AHEAD, 0);
        __builtin_prefetch((const char *) element + AHEAD + LINE, 0);
        __builtin_prefetch((const char *) block + AHEAD, 1);
        __builtin_prefetch((const char *) block + AHEAD + LINE, 1);
#pragma GCC unroll 4
        for (i = 0; i < UNROLLED; ++i) {
            read_pair(element + i, moved, block + 2 * i, &pairs);
            if (!alike) {
                other |= (scatter->sizes[element[i].common.type % OPAL_IOV_CACHE_TYPES]
                          * element[i].blocklen)
                         ^ length;
            }
        }
    }
    for (; element < behind; ++element, block += 2) {
        read_pair(element, moved, block, &pairs);
        if (!alike) {
            other |=
                (scatter->sizes[element->common.type % OPAL_IOV_CACHE_TYPES] * element->blocklen)
                ^ length;
        }
    }
    other |= pairs.differ[0] & wrong[0];
    if (alike) {
        other |= pairs.differ[1];
    }
    return 2 == desc->desc[0].elem.count && 0 == (other | pairs.touch[2]);
}

/*
 * Properties of the blocks written so far: whether one continues the previous one, their bytes, and
 * the position of each OPAL_IOV_CACHE_START_STEP-th.
 *
 * @param[in]     alike    they have one length
 * @param[in]     compare  else: test whether they have one length
 * @param[in,out] done     blocks already checked, a multiple of OPAL_IOV_CACHE_START_STEP
 * @param[in,out] size     bytes of these; unless alike
 * @param[in,out] differ   not 0 if their lengths differ; if compared
 * @param[in]     count    number of blocks
 *
 * @return false if two blocks are adjacent
 */
static inline __attribute__((always_inline)) bool look_at(opal_iov_cache_scatter_t *scatter,
                                                          size_t count, bool alike, bool compare,
                                                          size_t *done, uint64_t *size,
                                                          uint64_t *differ)
{
    const opal_iov_cache_block_t *block = scatter->form->blocks + *done;
    const uint64_t length = block->length;
    const words_t lengths = {length, 0, length, 0};
    words_t touch = {0, 0, 0, 0}, others = {0, 0, 0, 0};
    size_t i;

    for (; *done + OPAL_IOV_CACHE_START_STEP < count; *done += OPAL_IOV_CACHE_START_STEP) {
        words_t sum = {0, 0, 0, 0};

#pragma GCC unroll 16
        for (i = 0; i < OPAL_IOV_CACHE_START_STEP; i += 2) {
            words_t now, next;

            memcpy(&now, block + i, sizeof(now));
            memcpy(&next, block + i + 1, sizeof(next));
            if (alike) {
                touch |= (words_t) (now + lengths == next);
            } else {
                touch |= (words_t) (now + SHUFFLE(now, now, 1, 1, 3, 3) == next);
                sum += now;
            }
            if (compare) {
                others |= now ^ next;
            }
        }
        block += OPAL_IOV_CACHE_START_STEP;
        if (!alike) {
            scatter->form->starts[*done / OPAL_IOV_CACHE_START_STEP] = *size;
            *size += sum[1] + sum[3];
        }
    }
    *differ |= others[1] | others[3];
    return 0 == (touch[0] | touch[2]);
}

/* The same for the remaining blocks at the end. */
static bool look_at_rest(opal_iov_cache_scatter_t *scatter, size_t count, size_t done,
                         uint64_t *size, uint64_t *differ)
{
    const opal_iov_cache_block_t *blocks = scatter->form->blocks;
    size_t i;

    scatter->form->starts[done / OPAL_IOV_CACHE_START_STEP] = *size;
    for (i = done; i < count; ++i) {
        *size += blocks[i].length;
        if (i + 1 < count) {
            *differ |= blocks[i].length ^ blocks[i + 1].length;
            if (blocks[i].offset + (int64_t) blocks[i].length == blocks[i + 1].offset) {
                return false;
            }
        }
    }
    return true;
}

/* State while elements of one basic type are read. */
typedef struct {
    words_t lengths; /* of their blocks, if all are equal */
    int shift;       /* else: log2 of the basic type's size */
    words_t origin;
    words_t like;   /* the first element */
    words_t differ; /* bits in which elements differ from it */
    words_t none;   /* its second word is not 0 if an element is empty */
    bool crowded;   /* there was not enough room */
} few_t;

/* Write the blocks of an element, at least OPAL_IOV_CACHE_FEW. @return number of its blocks */
static inline __attribute__((always_inline)) uint32_t
read_one(const ddt_elem_desc_t *element, bool alike, bool moved, opal_iov_cache_block_t *block,
         const opal_iov_cache_block_t *full, few_t *few)
{
    const words_t only_extent = {0, 0, UINT64_MAX, 0};
    const uint32_t count = element->count;
    words_t words, step, value, lengths = few->lengths;
    uint32_t i;

    memcpy(&words, element, sizeof(words));
    step = words & only_extent;
    if (!alike) {
        lengths = SHUFFLE(words, words, 1, 1, 1, 1) << few->shift;
        few->none |= (words_t) (words == (words_t){0, 0, 0, 0});
    }
    few->differ |= words ^ few->like;
    value = SHUFFLE(SHUFFLE(words, words, 3, 3, 3, 3), lengths, 0, 5, 2, 7);
    if (moved) {
        value -= few->origin;
    }
    value += step;
    memcpy(block, &value, sizeof(value));
    value += step;
    memcpy(block + 2, (const char *) &value + sizeof(*block), sizeof(*block));
    if (OPAL_UNLIKELY(OPAL_IOV_CACHE_FEW < count)) {
        if ((ptrdiff_t) count > full - block) {
            few->crowded = true; /* or there may be no room for the others of the stride */
            return 0;
        }
        for (i = OPAL_IOV_CACHE_FEW; i < count; ++i) {
            value += step;
            memcpy(block + i, (const char *) &value + sizeof(*block), sizeof(*block));
        }
    }
    return count;
}

/*
 * All blocks, if the elements have one basic type, of 2^n bytes unless alike, and few of them each,
 * and none continues the previous one.
 *
 * @param[in] alike  only elements that have the head of the first one, but for their counts
 * @param[in] moved  the origin is not 0
 *
 * @return false if the properties do not hold or there is not enough room; another reader can start
 *         again
 */
static inline __attribute__((always_inline)) bool read_few(const opal_datatype_t *type,
                                                           const dt_type_desc_t *desc, bool alike,
                                                           bool moved,
                                                           opal_iov_cache_scatter_t *scatter)
{
    const ddt_elem_desc_t *element = &desc->desc[0].elem, *behind = element + desc->used, *stop;
    const uint64_t bytes = scatter->sizes[element->common.type % OPAL_IOV_CACHE_TYPES],
                   length = bytes * element->blocklen, origin = scatter->origin;
    opal_iov_cache_block_t *block = scatter->form->blocks;
    const opal_iov_cache_block_t *full =
        block + scatter->room - OPAL_IOV_CACHE_STRIDE * OPAL_IOV_CACHE_FEW;
    few_t few = {.lengths = {0, length, 0, length},
                 .shift = __builtin_ctzll(bytes),
                 .origin = {origin, 0, origin, 0}};
    ddt_elem_desc_t heads;
    words_t mask;
    uint64_t size = 0, lengths = 0;
    size_t done = 0, count = 0;
    unsigned i;

    memset(&heads, 0xff, sizeof(heads));
    heads.count = 0; /* in which they may differ */
    memcpy(&mask, &heads, sizeof(mask));
    memcpy(&few.like, element, sizeof(few.like));
    while (element < behind) {
        stop = OPAL_IOV_CACHE_STRIDE < behind - element ? element + OPAL_IOV_CACHE_STRIDE : behind;
        if (block > full) {
            return false;
        }
        for (; UNROLLED <= stop - element; element += UNROLLED) {
            __builtin_prefetch((const char *) element + AHEAD, 0);
            __builtin_prefetch((const char *) element + AHEAD + LINE, 0);
            __builtin_prefetch((const char *) block + AHEAD, 1);
            __builtin_prefetch((const char *) block + AHEAD + LINE, 1);
#pragma GCC unroll 4
            for (i = 0; i < UNROLLED; ++i) {
                block += read_one(element + i, alike, moved, block, full, &few);
            }
        }
        for (; element < stop; ++element) {
            block += read_one(element, alike, moved, block, full, &few);
        }
        count = (size_t) (block - scatter->form->blocks);
        if (few.crowded || 0 != (few.differ[0] & mask[0]) || (alike && 0 != few.differ[1])
            || (FRESH < count
                && !look_at(scatter, count - FRESH, alike, false, &done, &size, &lengths))) {
            return false;
        }
    }
    /* no block is longer than all of their bits together */
    if (2 > count || 0 != few.none[1]
        || OPAL_IOV_CACHE_LONG / bytes <= (few.differ[1] | desc->desc[0].elem.blocklen)
        || !look_at(scatter, count, alike, false, &done, &size, &lengths)) {
        return false;
    }
    if (alike) {
        size = done * length;
    }
    if (!look_at_rest(scatter, count, done, &size, &lengths)) {
        return false;
    }
    scatter->indexed = !alike;
    return sum_up(type, scatter, count, size, 0 == few.differ[1] ? length : 0);
}

/* State while elements of many blocks are read. */
typedef struct {
    words_t lengths; /* of the blocks, two of them */
    words_t origin;
    words_t like;   /* the first element */
    words_t differ; /* bits in which elements differ from it */
    words_t within; /* an extent that makes blocks adjacent */
    words_t dense;  /* its third word is not 0 if an element has that extent */
    pair_t next;    /* from a block to its end; the next one must not begin there */
    pair_t last;    /* the previous block */
    pair_t touch;   /* its first word is not 0 if an element continues the previous one */
} many_t;

/* Write some blocks, beginning with the two of @p value, which are the next two afterwards. */
static inline __attribute__((always_inline)) void put_many(opal_iov_cache_block_t *block,
                                                           words_t *value, const words_t *step)
{
    unsigned i;

#pragma GCC unroll 8
    for (i = 0; i < OPAL_IOV_CACHE_MANY; i += 2, *value += *step) {
        memcpy(&block[i], value, sizeof(*value));
    }
}

/*
 * Write the blocks of an element, and the extra ones that are always written. @return number of its
 * blocks
 */
static inline __attribute__((always_inline)) uint32_t
read_run(const ddt_elem_desc_t *element, bool moved, opal_iov_cache_block_t *block, many_t *many)
{
    const words_t only_second = {0, 0, UINT64_MAX, 0};
    const words_t only_offsets = {UINT64_MAX, 0, UINT64_MAX, 0};
    const uint32_t count = element->count;
    words_t words, extents, step, value;
    pair_t first;
    uint32_t left;

    memcpy(&words, element, sizeof(words));
    many->differ |= words ^ many->like;
    many->dense |= (words_t) (words == many->within);
    extents = SHUFFLE(words, words, 2, 2, 2, 2);
    step = (extents + extents) & only_offsets;
    value = SHUFFLE(SHUFFLE(words, words, 3, 3, 3, 3), many->lengths, 0, 5, 2, 7)
            + (extents & only_second);
    if (moved) {
        value -= many->origin;
    }
    memcpy(&first, &value, sizeof(first));
    many->touch |= (pair_t) (many->last + many->next == first);
    put_many(block, &value, &step);
    /* rarely iterates, so the branch predictor is mostly right */
    for (left = count; OPAL_UNLIKELY(OPAL_IOV_CACHE_MANY < left); left -= OPAL_IOV_CACHE_MANY) {
        block += OPAL_IOV_CACHE_MANY;
        put_many(block, &value, &step);
    }
    memcpy(&many->last, block + left - 1, sizeof(many->last));
    return count;
}

/* True if blocks of one of these elements are adjacent. */
static bool are_dense(const ddt_elem_desc_t *element, const ddt_elem_desc_t *stop, uint64_t length)
{
    for (; element < stop; ++element) {
        if (1 < element->count && length == (uint64_t) element->extent) {
            return true;
        }
    }
    return false;
}

/*
 * All blocks, if the elements have the head of the first one, but for their counts, and many blocks
 * each, and no block continues the previous one.
 *
 * @param[in] moved  the origin is not 0
 *
 * @return false if the properties do not hold or there is not enough room; another reader can start
 *         again
 */
static inline __attribute__((always_inline)) bool read_many(const opal_datatype_t *type,
                                                            const dt_type_desc_t *desc, bool moved,
                                                            opal_iov_cache_scatter_t *scatter)
{
    const ddt_elem_desc_t *element = &desc->desc[0].elem, *behind = element + desc->used, *begin,
                          *stop;
    const uint64_t length = scatter->sizes[element->common.type % OPAL_IOV_CACHE_TYPES]
                            * element->blocklen,
                   origin = scatter->origin;
    opal_iov_cache_block_t *block = scatter->form->blocks;
    const opal_iov_cache_block_t *full =
        block + scatter->room - OPAL_IOV_CACHE_STRIDE * OPAL_IOV_CACHE_MANY;
    many_t many = {.lengths = {0, length, 0, length},
                   .origin = {origin, 0, origin, 0},
                   .within = {0, 0, length, 0},
                   .next = {length, 0},
                   .last = {(uint64_t) element->disp - origin - length + 1, 0}};
    ddt_elem_desc_t heads;
    words_t mask;
    size_t count;

    memset(&heads, 0xff, sizeof(heads));
    heads.count = 0; /* in which they may differ */
    memcpy(&mask, &heads, sizeof(mask));
    memcpy(&many.like, element, sizeof(many.like));
    if (0 == element->count) {
        return false; /* there is no block before the next one */
    }
    while (element < behind) {
        begin = element;
        stop = OPAL_IOV_CACHE_STRIDE < behind - element ? element + OPAL_IOV_CACHE_STRIDE : behind;
        if (block > full) {
            return false;
        }
        for (; element < stop; ++element) {
            if (OPAL_UNLIKELY(OPAL_IOV_CACHE_MANY < element->count)
                && (ptrdiff_t) element->count > full - block) {
                return false; /* or there may be no room for the others of the stride */
            }
            __builtin_prefetch((const char *) element + AHEAD, 0);
            __builtin_prefetch((const char *) block + AHEAD, 1);
            block += read_run(element, moved, block, &many);
        }
        if (0 != many.dense[2]) {
            if (are_dense(begin, stop, length)) {
                return false;
            }
            many.dense = (words_t){0, 0, 0, 0}; /* elements of one block */
        }
        if (0 != (many.touch[0] | (many.differ[0] & mask[0]) | many.differ[1])) {
            return false;
        }
    }
    count = (size_t) (block - scatter->form->blocks);
    return 2 <= count && sum_up(type, scatter, count, count * length, length);
}

/* Write the blocks of an element, and the extra ones that are always written. */
static inline __attribute__((always_inline)) void put_blocks(opal_iov_cache_block_t *block,
                                                             uint64_t origin, uint64_t length,
                                                             const ddt_elem_desc_t *element,
                                                             unsigned width)
{
    const uint64_t extent = (uint64_t) element->extent, offset = (uint64_t) element->disp - origin;
    const ddt_elem_desc_t *same = element;
    unsigned i;

    if (OPAL_IOV_CACHE_FEW == width) {
        pair_t step, value;

        /* load from memory directly into a vector, which is cheaper than by a general register */
        __asm__("" : "+r"(same));
        step = (pair_t){(uint64_t) same->extent, 0};
        value = (pair_t){(uint64_t) same->disp, 0} + (pair_t){0 - origin, length};

        memcpy(&block[0], &value, sizeof(value));
        value += step;
        memcpy(&block[1], &value, sizeof(value));
        value += step;
        memcpy(&block[2], &value, sizeof(value));
        for (i = width; OPAL_UNLIKELY(i < element->count); ++i) {
            value += step;
            memcpy(&block[i], &value, sizeof(value));
        }
    } else {
        const words_t step = {2 * extent, 0, 2 * extent, 0};
        words_t value = {offset, length, offset + extent, length};
        uint32_t left = element->count;

        put_many(block, &value, &step);
        for (; OPAL_UNLIKELY(OPAL_IOV_CACHE_MANY < left); left -= OPAL_IOV_CACHE_MANY) {
            block += OPAL_IOV_CACHE_MANY;
            put_many(block, &value, &step);
        }
    }
}

/*
 * All blocks, if none continues the previous one.
 *
 * @param[in] width  OPAL_IOV_CACHE_FEW or OPAL_IOV_CACHE_MANY
 *
 * @return false if one does, or there is not enough room; another reader can start again
 */
static inline __attribute__((always_inline)) bool read_wide(const opal_datatype_t *type,
                                                            const dt_type_desc_t *desc,
                                                            unsigned width,
                                                            opal_iov_cache_scatter_t *scatter)
{
    const ddt_elem_desc_t *element = &desc->desc[0].elem, *behind = element + desc->used, *stop;
    opal_iov_cache_block_t *block = scatter->form->blocks;
    const opal_iov_cache_block_t *full = block + scatter->room - OPAL_IOV_CACHE_STRIDE * width;
    const uint64_t origin = scatter->origin;
    uint64_t length = 0, size = 0, bad = 0, other = 0, lengths = 0;
    size_t done = 0, count = 0;

    while (element < behind) {
        stop = OPAL_IOV_CACHE_STRIDE < behind - element ? element + OPAL_IOV_CACHE_STRIDE : behind;
        if (block > full) {
            return false;
        }
        for (; element < stop; ++element) {
            if (OPAL_UNLIKELY(width < element->count)
                && (ptrdiff_t) element->count > full - block) {
                return false; /* or there may be no room for the others of the stride */
            }
            length =
                scatter->sizes[element->common.type % OPAL_IOV_CACHE_TYPES] * element->blocklen;
            bad |= length - 1; /* the highest bit, if it is 0 */
            other |= element->common.type;
            __builtin_prefetch((const char *) element + AHEAD, 0);
            __builtin_prefetch((const char *) block + AHEAD, 1);
            put_blocks(block, origin, length, element, width);
            block += element->count;
        }
        count = (size_t) (block - scatter->form->blocks);
        if (0 != bad >> 63 || OPAL_IOV_CACHE_TYPES <= other
            || (FRESH < count
                && !look_at(scatter, count - FRESH, false, true, &done, &size, &lengths))) {
            return false;
        }
    }
    if (2 > count || !look_at(scatter, count, false, true, &done, &size, &lengths)
        || !look_at_rest(scatter, count, done, &size, &lengths)) {
        return false;
    }
    scatter->indexed = true;
    return sum_up(type, scatter, count, size, 0 == lengths ? length : 0);
}

static inline bool is_power(uint64_t bytes)
{
    return 0 == (bytes & (bytes - 1));
}

/* The variants of the readers, selected by their constants. */
static inline __attribute__((always_inline)) bool
read_as(const opal_datatype_t *type, const dt_type_desc_t *desc,
        const opal_iov_cache_looks_t *looks, uint64_t length, opal_iov_cache_scatter_t *scatter)
{
    if (looks->pairs && looks->equal) {
        bool read;

        if (0 != scatter->origin) {
            read = read_pairs(desc, length, false, true, scatter);
        } else {
            read = looks->alike ? read_pairs(desc, length, true, false, scatter)
                                : read_pairs(desc, length, false, false, scatter);
        }
        return read && sum_up(type, scatter, 2 * desc->used, 2 * desc->used * length, length);
    }
    if (OPAL_IOV_CACHE_FEW == opal_iov_cache_width(looks)) {
        if (looks->alike) {
            return 0 != scatter->origin ? read_few(type, desc, true, true, scatter)
                                        : read_few(type, desc, true, false, scatter);
        }
        return looks->typed
                       && is_power(
                           scatter->sizes[desc->desc[0].elem.common.type % OPAL_IOV_CACHE_TYPES])
                   ? read_few(type, desc, false, true, scatter)
                   : read_wide(type, desc, OPAL_IOV_CACHE_FEW, scatter);
    }
    if (looks->alike) {
        return 0 != scatter->origin ? read_many(type, desc, true, scatter)
                                    : read_many(type, desc, false, scatter);
    }
    return read_wide(type, desc, OPAL_IOV_CACHE_MANY, scatter);
}

static __opal_attribute_noinline__ bool read_plainly(const opal_datatype_t *type,
                                                     const dt_type_desc_t *desc,
                                                     const opal_iov_cache_looks_t *looks,
                                                     uint64_t length,
                                                     opal_iov_cache_scatter_t *scatter)
{
    return read_as(type, desc, looks, length, scatter);
}

#if OPAL_IOV_CACHE_AVX2
__attribute__((target("avx2"))) static __opal_attribute_noinline__ bool
read_with_avx2(const opal_datatype_t *type, const dt_type_desc_t *desc,
               const opal_iov_cache_looks_t *looks, uint64_t length,
               opal_iov_cache_scatter_t *scatter)
{
    return read_as(type, desc, looks, length, scatter);
}
#endif

bool opal_iov_cache_read_apart(const opal_datatype_t *type, const dt_type_desc_t *desc,
                               const opal_iov_cache_looks_t *looks, uint64_t length,
                               opal_iov_cache_scatter_t *scatter)
{
    if (!OPAL_IOV_CACHE_ELEMENT_IS_WORDS) {
        return false;
    }
#if OPAL_IOV_CACHE_AVX2
    if (__builtin_cpu_supports("avx2")) {
        return read_with_avx2(type, desc, looks, length, scatter);
    }
#endif
    return read_plainly(type, desc, looks, length, scatter);
}
