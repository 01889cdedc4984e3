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
 * What the files of this room share while a form is being made: lists of items, which become terms
 * when the form is laid out. Nothing of this outlives the making.
 */

#ifndef OPAL_IOV_CACHE_LIST_H
#define OPAL_IOV_CACHE_LIST_H

#include "opal_config.h"

#include <stddef.h>
#include <stdint.h>

#include "opal/datatype/opal_datatype.h"

#include "iov_cache_form.h"

struct ddt_elem_desc;
struct opal_iov_cache_list_t;

/** A stream in the making: count repetitions of a dense block (body NULL) or of a list. */
typedef struct opal_iov_cache_item_t {
    int64_t offset;
    uint64_t count;
    int64_t stride;
    uint64_t size;                      /**< of the dense block; 0 with a body */
    struct opal_iov_cache_list_t *body; /**< owned */
} opal_iov_cache_item_t;

/** Items in stream order. Zeroed is empty. */
typedef struct opal_iov_cache_list_t {
    size_t count;
    size_t capacity;
    opal_iov_cache_item_t *items;
} opal_iov_cache_list_t;

/** A new empty list, or NULL. */
opal_iov_cache_list_t *opal_iov_cache_list_new(void);

/** Free what the list holds; it is empty then. */
void opal_iov_cache_list_clear(opal_iov_cache_list_t *list);

/** Clear and free. NULL is allowed. */
void opal_iov_cache_list_free(opal_iov_cache_list_t *list);

/**
 * Add an item at the end: folded, flattened, elided, and joined with the last one where that makes
 * one of two. The body, which has to be complete (opal_iov_cache_list_finish), belongs to the list
 * from now on, also if this fails.
 *
 * @retval OPAL_SUCCESS, OPAL_ERR_BAD_PARAM (63 bits), OPAL_ERR_OUT_OF_RESOURCE
 */
int opal_iov_cache_list_add(opal_iov_cache_list_t *list, opal_iov_cache_item_t item);

/** Add a dense block. */
static inline int opal_iov_cache_list_add_block(opal_iov_cache_list_t *list, int64_t offset,
                                                uint64_t size)
{
    opal_iov_cache_item_t item = {.offset = offset, .count = 1, .size = size};

    return opal_iov_cache_list_add(list, item);
}

/**
 * The list is complete: equal items at equal distances become streams, and streams of these.
 *
 * @retval as opal_iov_cache_list_add
 */
int opal_iov_cache_list_finish(opal_iov_cache_list_t *list);

/**
 * Lay out a list as a form; the list stays as it is.
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_NOT_SUPPORTED    nested deeper than OPAL_IOV_CACHE_MAX_DEPTH
 * @retval OPAL_ERR_BAD_PARAM        an offset or the size does not fit 63 bits
 * @retval OPAL_ERR_OUT_OF_RESOURCE
 */
int opal_iov_cache_list_form(const opal_iov_cache_list_t *list, opal_iov_cache_form_t **form);

/**
 * The items of (type, count) from opal's description.
 *
 * @retval OPAL_SUCCESS, OPAL_ERR_BAD_PARAM, OPAL_ERR_OUT_OF_RESOURCE
 * @retval OPAL_ERR_NOT_SUPPORTED  the description is not as expected
 */
int opal_iov_cache_read(const opal_datatype_t *type, size_t count, opal_iov_cache_list_t *list);

/** One element of a description, which has the flag OPAL_DATATYPE_FLAG_DATA. */
int opal_iov_cache_read_element(const struct ddt_elem_desc *element, opal_iov_cache_list_t *list);

/** True for an element that has the bytes of a basic type, and is no loop. */
bool opal_iov_cache_is_data(const struct ddt_elem_desc *element);

/** True for a long description of blocks without any order. */
bool opal_iov_cache_is_scattered(const dt_type_desc_t *desc);

/** True for a long list of such blocks. */
bool opal_iov_cache_list_is_scattered(const opal_iov_cache_list_t *list);

/**
 * The form of such a type: a list of blocks.
 *
 * @retval OPAL_SUCCESS, OPAL_ERR_BAD_PARAM, OPAL_ERR_OUT_OF_RESOURCE
 * @retval OPAL_ERR_NOT_SUPPORTED  it is not only such elements, or a single block, or so far away
 *                                 that sums need care; to be read as all others
 */
int opal_iov_cache_form_scattered(const opal_datatype_t *type, const dt_type_desc_t *desc,
                                  size_t count, opal_iov_cache_form_t **form);

/** The items of (type, count) by opal_convertor_raw, block by block. */
int opal_iov_cache_walk(const opal_datatype_t *type, size_t count, opal_iov_cache_list_t *list);

/** A form with room for so many terms, all zero, and blocks, not even that; NULL without memory. */
opal_iov_cache_form_t *opal_iov_cache_form_new(size_t terms, size_t blocks);

/** Write down the starts of a form whose blocks are complete. */
void opal_iov_cache_form_index(opal_iov_cache_form_t *form);

/** The hash of a form, worked out now. */
uint64_t opal_iov_cache_form_hash_now(const opal_iov_cache_form_t *form);

#endif /* OPAL_IOV_CACHE_LIST_H */
