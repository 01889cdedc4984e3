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
 * Long irregular descriptions (iov_cache_sample.c) become a list of blocks directly: the
 * description is read once, and the blocks are written once. The first message of such a type waits
 * for this. The reader is selected by a probe of some elements. Each of the fast readers
 * (iov_cache_apart.c) detects a wrong selection, and the slow one in this file handles all
 * descriptions.
 */

#include "opal_config.h"

#include <stddef.h>
#include <string.h>

#include "opal/constants.h"
#include "opal/datatype/opal_datatype.h"
#include "opal/datatype/opal_datatype_internal.h"

#include "iov_cache_list.h"
#include "iov_cache_scatter.h"
#include "iov_cache_sums.h"

/*
 * Number of probed elements. Room is allocated for the mean number of their blocks plus this
 * fraction.
 */
#define PROBES 192
#define MORE   16

/* Sums of counts may wrap modulo 2^32, depending on the processor. */
#define FAR_TOO_MANY INT32_MAX

/* Types with larger offsets use the general reader. */
#define FAR (INT64_C(1) << 60)

/* Length of a block of such an element; 0 if not supported here. */
static uint64_t block_length(const ddt_elem_desc_t *element)
{
    uint64_t length;

    return opal_iov_cache_is_data(element)
                   && !__builtin_mul_overflow(
                       (uint64_t) element->blocklen,
                       (uint64_t) opal_datatype_basicDatatypes[element->common.type]->size, &length)
                   && OPAL_IOV_CACHE_LONG > length
               ? length
               : 0;
}

/* Sizes of the basic types; 0 for those that do not exist. */
static void sizes_of(uint64_t *sizes)
{
    size_t i;

    for (i = 0; i < OPAL_DATATYPE_MAX_PREDEFINED && i < OPAL_IOV_CACHE_TYPES; ++i) {
        if (NULL != opal_datatype_basicDatatypes[i]) {
            sizes[i] = opal_datatype_basicDatatypes[i]->size;
        }
    }
}

/*
 * Write all blocks; adjacent ones are joined. There must be room for one more.
 *
 * @return false if there are other elements than blocks, or one is too far away
 */
static __opal_attribute_noinline__ bool read_blocks(const dt_type_desc_t *desc,
                                                    opal_iov_cache_scatter_t *scatter)
{
    opal_iov_cache_block_t *block = scatter->form->blocks - 1; /* the last one */
    opal_iov_cache_sums_t *sums = &scatter->sums;
    uint64_t differ = 0, end = (uint64_t) desc->desc[0].elem.disp - scatter->origin + 1, size = 0;
    int64_t lowest = INT64_MAX, highest = INT64_MIN;
    size_t i;

    for (i = 0; i < desc->used; ++i) {
        const ddt_elem_desc_t *element = &desc->desc[i].elem;
        uint64_t offset = (uint64_t) element->disp - scatter->origin;
        const uint64_t length = block_length(element);
        uint32_t left = element->count;

        if (0 == length) {
            return false;
        }
        for (; 0 < left; --left) {
            if (offset == end) {
                block->length += length;
            } else {
                ++block;
                block->offset = (int64_t) offset;
                block->length = length;
                lowest = (int64_t) offset < lowest ? (int64_t) offset : lowest;
            }
            end = offset + length;
            highest = (int64_t) end > highest ? (int64_t) end : highest;
            size += length;
            offset += (uint64_t) element->extent;
        }
    }
    scatter->count = (size_t) (block + 1 - scatter->form->blocks);
    if (2 > scatter->count) {
        return false;
    }
    for (i = 1; i < scatter->count; ++i) {
        differ |= scatter->form->blocks[i].length ^ scatter->form->blocks[0].length;
    }
    sums->size = size;
    sums->segments = scatter->count;
    sums->uniform = 0 == differ ? scatter->form->blocks[0].length : 0;
    sums->first = scatter->form->blocks[0].offset;
    sums->end = (int64_t) end;
    sums->lb = lowest;
    sums->ub = highest;
    return true;
}

/* Probe some elements at equal distances. */
static void look(const dt_type_desc_t *desc, const opal_iov_cache_scatter_t *scatter,
                 opal_iov_cache_looks_t *looks)
{
    const ddt_elem_desc_t *first = &desc->desc[0].elem;
    const uint64_t length =
        scatter->sizes[first->common.type % OPAL_IOV_CACHE_TYPES] * first->blocklen;
    const size_t step = (desc->used + PROBES - 1) / PROBES;
    size_t i;

    *looks = (opal_iov_cache_looks_t){.pairs = true, .alike = true, .equal = true, .typed = true};
    for (i = 0; i < desc->used; i += step) {
        const ddt_elem_desc_t *element = &desc->desc[i].elem;

        looks->blocks += OPAL_IOV_CACHE_MANY > element->count
                             ? element->count
                             : OPAL_IOV_CACHE_MANY; /* no element selects the smaller width */
        ++looks->elements;
        looks->pairs = looks->pairs && 2 == element->count;
        looks->typed = looks->typed && element->common.type == first->common.type;
        looks->alike = looks->alike && element->common.type == first->common.type
                       && element->blocklen == first->blocklen;
        looks->equal = looks->equal
                       && length
                              == scatter->sizes[element->common.type % OPAL_IOV_CACHE_TYPES]
                                     * element->blocklen;
    }
}

/* Number of blocks; 0 if there are other elements than blocks. */
static size_t count_blocks(const dt_type_desc_t *desc)
{
    size_t blocks = 0, i;
    uint16_t flags = OPAL_DATATYPE_FLAG_DATA;

    for (i = 0; i < desc->used; ++i) {
        flags &= desc->desc[i].elem.common.flags;
        blocks += desc->desc[i].elem.count;
    }
    return 0 != flags ? blocks : 0;
}

/*
 * The same if all elements have the head of the first one except for their counts, which are then
 * added as words: one instruction per element. Otherwise the number may be wrong; the reader
 * detects the difference, or the lack of room.
 */
static size_t count_alike(const dt_type_desc_t *desc)
{
    const ddt_elem_desc_t one = {.count = 1};
    uint64_t sum = 0, head, unit;
    size_t i;

    memcpy(&unit, &one, sizeof(unit));
#pragma GCC unroll 8
    for (i = 0; i < desc->used; ++i) {
        memcpy(&head, &desc->desc[i].elem, sizeof(head));
        sum += head;
    }
    memcpy(&head, &desc->desc[0].elem, sizeof(head));
    head -= unit * desc->desc[0].elem.count;
    sum = (sum - desc->used * head) / unit;
    return FAR_TOO_MANY > sum ? (size_t) sum : count_blocks(desc);
}

/* Allocate a form for the blocks. */
static bool new_form(opal_iov_cache_scatter_t *scatter, size_t room)
{
    scatter->form = opal_iov_cache_form_new(1, room);
    scatter->room = room;
    return NULL != scatter->form;
}

/* Write the blocks of one instance of the type. */
static int read_all(const opal_datatype_t *type, const dt_type_desc_t *desc,
                    opal_iov_cache_scatter_t *scatter)
{
    uint64_t length = block_length(&desc->desc[0].elem);
    size_t room, blocks;
    opal_iov_cache_looks_t looks;

    if (0 == length || INT32_MAX < desc->used || -FAR >= type->true_lb || FAR <= type->true_ub) {
        return OPAL_ERR_NOT_SUPPORTED;
    }
    look(desc, scatter, &looks);
    room = 2 * desc->used;
    if (OPAL_IOV_CACHE_MANY == opal_iov_cache_width(&looks)) {
        room = (looks.alike ? count_alike(desc) : count_blocks(desc))
               + (OPAL_IOV_CACHE_STRIDE + 1) * OPAL_IOV_CACHE_MANY; /* there are few elements */
    } else if (!looks.pairs || !looks.equal) {
        room = desc->used * looks.blocks / looks.elements;
        room += room / MORE + (OPAL_IOV_CACHE_STRIDE + 1) * OPAL_IOV_CACHE_FEW;
    }
    if (!new_form(scatter, room)) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    if (opal_iov_cache_read_apart(type, desc, &looks, length, scatter)) {
        return OPAL_SUCCESS;
    }
    opal_iov_cache_form_free(scatter->form);
    blocks = count_blocks(desc);
    if (2 > blocks) {
        return OPAL_ERR_NOT_SUPPORTED;
    }
    /* the probe was wrong: use the reader for all descriptions */
    looks = (opal_iov_cache_looks_t){.blocks = blocks, .elements = desc->used};
    if (!new_form(scatter, blocks + (OPAL_IOV_CACHE_STRIDE + 1) * opal_iov_cache_width(&looks))) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    if (opal_iov_cache_read_apart(type, desc, &looks, length, scatter)
        || read_blocks(desc, scatter)) {
        return OPAL_SUCCESS;
    }
    opal_iov_cache_form_free(scatter->form);
    return OPAL_ERR_NOT_SUPPORTED;
}

int opal_iov_cache_form_scattered(const opal_datatype_t *type, const dt_type_desc_t *desc,
                                  size_t count, opal_iov_cache_form_t **form)
{
    /*
     * as in iov_cache_lay.c: offsets of a form's blocks are absolute, those of a body are relative
     * to its first block
     */
    opal_iov_cache_scatter_t scatter = {.origin =
                                            1 < count ? (uint64_t) desc->desc[0].elem.disp : 0};
    opal_iov_cache_form_t *made;
    opal_iov_cache_term_t *term;
    opal_iov_cache_sums_t whole;
    int rc;

    sizes_of(scatter.sizes);
    rc = read_all(type, desc, &scatter);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    made = scatter.form;
    made->block_count = scatter.count;
    term = &made->terms[0];
    term->kind = OPAL_IOV_CACHE_BLOCKS;
    term->offset = (int64_t) scatter.origin;
    term->count = count;
    term->stride = 1 < count ? type->ub - type->lb : 0;
    term->n = scatter.count;
    if (!opal_iov_cache_sums_repeat(term, &scatter.sums, &whole)) {
        opal_iov_cache_form_free(made);
        return OPAL_ERR_BAD_PARAM;
    }
    made->size = whole.size;
    made->segments = whole.segments;
    made->uniform = whole.uniform;
    made->lb = whole.lb;
    made->ub = whole.ub;
    made->depth = 1;
    if (!scatter.indexed) {
        opal_iov_cache_form_index(made);
    }
    *form = made;
    return OPAL_SUCCESS;
}
