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
 * Conversion of datatypes to lists of items: from opal's description, or, where that is not usable,
 * by a walk of the blocks with the convertor.
 */

#include "opal_config.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "opal/constants.h"
#include "opal/datatype/opal_convertor.h"
#include "opal/datatype/opal_datatype.h"
#include "opal/datatype/opal_datatype_internal.h"

#include "umrddt_compat.h"

#include "iov_cache_list.h"

/* Blocks per call of the convertor: 4 KiB of stack, and few calls. */
#define RAW_BATCH 256

/* Maximum nesting of loops; deeper types are walked. */
#define MAX_LOOPS 256

/* Streams of up to this many blocks may be artefacts of opal; see add_apart. */
#define PAIRED 4

/* ---------------------------------------------------------------------------------------------
 * The description
 * ------------------------------------------------------------------------------------------- */

static int read_range(const dt_elem_desc_t *desc, size_t from, size_t to, unsigned loops,
                      opal_iov_cache_list_t *list);

/*
 * opal creates a stream of any two neighbours of one size, even if they belong to two repetitions
 * of a larger body. So short streams are split again; those of the layout itself are found later.
 */
static int add_apart(const opal_iov_cache_item_t *item, opal_iov_cache_list_t *list)
{
    int64_t offset = item->offset;
    int rc = OPAL_SUCCESS;
    uint64_t i;

    for (i = 0; i < item->count && OPAL_SUCCESS == rc; ++i) {
        rc = opal_iov_cache_list_add_block(list, offset, item->size);
        if (i + 1 < item->count && __builtin_add_overflow(offset, item->stride, &offset)) {
            return OPAL_ERR_BAD_PARAM;
        }
    }
    return rc;
}

int opal_iov_cache_read_element(const struct ddt_elem_desc *element, opal_iov_cache_list_t *list)
{
    opal_iov_cache_item_t item = {
        .offset = element->disp, .count = element->count, .stride = element->extent};

    if (OPAL_DATATYPE_MAX_PREDEFINED <= element->common.type
        || NULL == opal_datatype_basicDatatypes[element->common.type]) {
        return OPAL_ERR_NOT_SUPPORTED;
    }
    if (__builtin_mul_overflow((uint64_t) element->blocklen,
                               (uint64_t) opal_datatype_basicDatatypes[element->common.type]->size,
                               &item.size)) {
        return OPAL_ERR_BAD_PARAM;
    }
    if (1 < item.count && PAIRED >= item.count) {
        return add_apart(&item, list);
    }
    return opal_iov_cache_list_add(list, item);
}

/* The loop at @p at, whose end is at @p end. */
static int read_loop(const dt_elem_desc_t *desc, size_t at, size_t end, unsigned loops,
                     opal_iov_cache_list_t *list)
{
    opal_iov_cache_item_t item = {.count = desc[at].loop.loops, .stride = desc[at].loop.extent};
    int rc;

    if (desc[at].loop.common.flags & OPAL_DATATYPE_FLAG_CONTIGUOUS) {
        /* the convertor treats a repetition as one block, whatever is within */
        item.offset = desc[end].end_loop.first_elem_disp;
        item.size = desc[end].end_loop.size;
        return opal_iov_cache_list_add(list, item);
    }
    item.body = opal_iov_cache_list_new();
    if (NULL == item.body) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    rc = read_range(desc, at + 1, end, loops + 1, item.body);
    if (OPAL_SUCCESS == rc) {
        rc = opal_iov_cache_list_finish(item.body);
    }
    if (OPAL_SUCCESS != rc) {
        opal_iov_cache_list_free(item.body);
        return rc;
    }
    return opal_iov_cache_list_add(list, item);
}

static int read_range(const dt_elem_desc_t *desc, size_t from, size_t to, unsigned loops,
                      opal_iov_cache_list_t *list)
{
    int rc = OPAL_SUCCESS;

    while (from < to && OPAL_SUCCESS == rc) {
        const dt_elem_desc_t *item = &desc[from];

        if (item->elem.common.flags & OPAL_DATATYPE_FLAG_DATA) {
            rc = opal_iov_cache_read_element(&item->elem, list);
            ++from;
        } else if (OPAL_DATATYPE_LOOP == item->elem.common.type && MAX_LOOPS > loops
                   && item->loop.items < to - from
                   && OPAL_DATATYPE_END_LOOP == desc[from + item->loop.items].elem.common.type) {
            rc = read_loop(desc, from, from + item->loop.items, loops, list);
            from += item->loop.items + 1;
        } else {
            return OPAL_ERR_NOT_SUPPORTED;
        }
    }
    return rc;
}

/* The convertor also uses the optimised one if sender and receiver are homogeneous. */
static const dt_type_desc_t *description(const opal_datatype_t *type)
{
    return NULL != type->opt_desc.desc ? &type->opt_desc : &type->desc;
}

/* The items of one instance of the type; the list is in canonical form. */
static int read_type(const opal_datatype_t *type, opal_iov_cache_list_t *list)
{
    const dt_type_desc_t *desc = description(type);
    int rc = read_range(desc->desc, 0, desc->used, 0, list);

    return OPAL_SUCCESS == rc ? opal_iov_cache_list_finish(list) : rc;
}

int opal_iov_cache_read(const opal_datatype_t *type, size_t count, opal_iov_cache_list_t *list)
{
    opal_iov_cache_item_t all = {.count = count, .stride = type->ub - type->lb};
    int rc;

    if (1 == count) {
        return read_type(type, list);
    }
    all.body = opal_iov_cache_list_new();
    if (NULL == all.body) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    rc = read_type(type, all.body);
    if (OPAL_SUCCESS != rc) {
        opal_iov_cache_list_free(all.body);
        return rc;
    }
    rc = opal_iov_cache_list_add(list, all);
    return OPAL_SUCCESS == rc ? opal_iov_cache_list_finish(list) : rc;
}

/* ---------------------------------------------------------------------------------------------
 * The walk
 * ------------------------------------------------------------------------------------------- */

static int walk(opal_convertor_t *convertor, opal_iov_cache_list_t *list)
{
    struct iovec raw[RAW_BATCH];
    int32_t done;
    int rc = OPAL_SUCCESS;

    do {
        uint32_t raw_count = RAW_BATCH, i;
        size_t length = 0;

        done = opal_convertor_raw(convertor, raw, &raw_count, &length);
        if (0 > done || (0 == done && 0 == raw_count)) {
            return OPAL_ERROR; /* otherwise an endless loop */
        }
        for (i = 0; i < raw_count && OPAL_SUCCESS == rc; ++i) {
            rc = opal_iov_cache_list_add_block(list, (int64_t) (intptr_t) raw[i].iov_base,
                                               raw[i].iov_len);
        }
    } while (0 == done && OPAL_SUCCESS == rc);
    return rc;
}

int opal_iov_cache_walk(const opal_datatype_t *type, size_t count, opal_iov_cache_list_t *list)
{
    opal_convertor_t *convertor = opal_convertor_create((int32_t) opal_local_arch, 0);
    int rc;

    if (NULL == convertor) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    /*
     * With a buffer at address 0 the returned pointers are the offsets, also negative ones; they
     * are not dereferenced.
     */
    convertor->flags |= UMRDDT_CONVERTOR_SKIP_PROBE;
    rc = opal_convertor_prepare_for_send(convertor, type, count, NULL);
    if (OPAL_SUCCESS == rc) {
        rc = walk(convertor, list);
    }
    OBJ_RELEASE(convertor);
    return rc;
}

/* ---------------------------------------------------------------------------------------------
 * The forms of types and of lists of pieces
 * ------------------------------------------------------------------------------------------- */

/*
 * True if neither the stream nor an offset of (type, count) can exceed 63 bits. The offsets are
 * between those of the first and of the last instance of the type.
 */
static bool fits_63_bits(const opal_datatype_t *type, size_t count)
{
    int64_t size, reach, end;

    if (count > INT64_MAX || type->size > INT64_MAX) {
        return false;
    }
    return !__builtin_mul_overflow((int64_t) type->size, (int64_t) count, &size)
           && !__builtin_mul_overflow((int64_t) (type->ub - type->lb), (int64_t) count - 1, &reach)
           && !__builtin_add_overflow(reach, (int64_t) type->true_lb, &end)
           && !__builtin_add_overflow(reach, (int64_t) type->true_ub, &end);
}

int opal_iov_cache_form_create(const opal_datatype_t *type, size_t count,
                               opal_iov_cache_form_t **form)
{
    opal_iov_cache_list_t list = {0};
    opal_iov_cache_form_t *made = NULL;
    int rc = OPAL_SUCCESS;

    if (NULL == type || NULL == form || !opal_datatype_is_committed(type)) {
        return OPAL_ERR_BAD_PARAM;
    }
    if (0 == count || 0 == type->size) {
        return opal_iov_cache_list_form(&list, form);
    }
    if (!fits_63_bits(type, count)) {
        return OPAL_ERR_BAD_PARAM;
    }
    if (opal_iov_cache_is_scattered(description(type))) {
        rc = opal_iov_cache_form_scattered(type, description(type), count, &made);
    } else {
        rc = OPAL_ERR_NOT_SUPPORTED;
    }
    if (OPAL_ERR_NOT_SUPPORTED == rc) {
        rc = opal_iov_cache_read(type, count, &list);
        if (OPAL_SUCCESS == rc) {
            rc = opal_iov_cache_list_form(&list, &made);
        }
        opal_iov_cache_list_clear(&list);
    }
    if (OPAL_SUCCESS == rc && made->size != (uint64_t) type->size * count) {
        opal_iov_cache_form_free(made);
        rc = OPAL_ERR_NOT_SUPPORTED;
    }
    if (OPAL_ERR_NOT_SUPPORTED == rc) {
        rc = opal_iov_cache_walk(type, count, &list);
        if (OPAL_SUCCESS == rc) {
            rc = opal_iov_cache_list_form(&list, &made);
        }
        opal_iov_cache_list_clear(&list);
        if (OPAL_SUCCESS == rc && made->size != (uint64_t) type->size * count) {
            /* the convertor and the type disagree: fail instead of a partial layout */
            opal_iov_cache_form_free(made);
            rc = OPAL_ERROR;
        }
    }
    if (OPAL_SUCCESS == rc) {
        *form = made;
    }
    return rc;
}

static int add_pieces(const opal_iov_cache_iov_t *pieces, size_t n, opal_iov_cache_list_t *list)
{
    int rc = OPAL_SUCCESS;
    size_t i;

    for (i = 0; i < n && OPAL_SUCCESS == rc; ++i) {
        if (pieces[i].length > INT64_MAX) {
            return OPAL_ERR_BAD_PARAM;
        }
        rc = opal_iov_cache_list_add_block(list, pieces[i].offset, pieces[i].length);
    }
    return rc;
}

int opal_iov_cache_form_of_pieces(const opal_iov_cache_iov_t *pieces, size_t n,
                                  opal_iov_cache_form_t **form)
{
    opal_iov_cache_list_t list = {0};
    int rc = add_pieces(pieces, n, &list);

    if (OPAL_SUCCESS == rc) {
        rc = opal_iov_cache_list_finish(&list);
    }
    if (OPAL_SUCCESS == rc) {
        rc = opal_iov_cache_list_form(&list, form);
    }
    opal_iov_cache_list_clear(&list);
    if (OPAL_ERR_NOT_SUPPORTED == rc) {
        /* too deeply nested: keep the plain blocks */
        rc = add_pieces(pieces, n, &list);
        if (OPAL_SUCCESS == rc) {
            rc = opal_iov_cache_list_form(&list, form);
        }
        opal_iov_cache_list_clear(&list);
    }
    return rc;
}
