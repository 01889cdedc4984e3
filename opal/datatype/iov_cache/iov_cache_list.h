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
 * Shared by the files that create forms: lists of items, which become the terms of a form. They are
 * freed when the form is complete.
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

/** A stream under construction: count repetitions of a dense block (body NULL) or of a list. */
typedef struct opal_iov_cache_item_t {
    int64_t offset;
    uint64_t count;
    int64_t stride;
    uint64_t size;                      /**< of the dense block; 0 with a body */
    struct opal_iov_cache_list_t *body; /**< owned */
} opal_iov_cache_item_t;

/** Items in stream order. An all-zero list is empty. */
typedef struct opal_iov_cache_list_t {
    size_t count;
    size_t capacity;
    opal_iov_cache_item_t *items;
} opal_iov_cache_list_t;

/** A new empty list, or NULL. */
opal_iov_cache_list_t *opal_iov_cache_list_new(void);

/** Free the contents of the list; it is empty afterwards. */
void opal_iov_cache_list_clear(opal_iov_cache_list_t *list);

/** Clear and free. NULL is allowed. */
void opal_iov_cache_list_free(opal_iov_cache_list_t *list);

/**
 * Append an item: folded, flattened, elided, and merged with the last one where possible. The list
 * takes ownership of the body, also on failure. The body must be complete
 * (opal_iov_cache_list_finish).
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
 * Complete the list: equal items at equal distances become streams, and streams of these.
 *
 * @retval as opal_iov_cache_list_add
 */
int opal_iov_cache_list_finish(opal_iov_cache_list_t *list);

/**
 * Create a form from a list; the list does not change.
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
 * @retval OPAL_ERR_NOT_SUPPORTED  unexpected description
 */
int opal_iov_cache_read(const opal_datatype_t *type, size_t count, opal_iov_cache_list_t *list);

/** One element of a description, which has the flag OPAL_DATATYPE_FLAG_DATA. */
int opal_iov_cache_read_element(const struct ddt_elem_desc *element, opal_iov_cache_list_t *list);

/** True for a long description of irregular blocks. */
bool opal_iov_cache_is_scattered(const dt_type_desc_t *desc);

/** True for a long list of such blocks. */
bool opal_iov_cache_list_is_scattered(const opal_iov_cache_list_t *list);

/**
 * Create the form of such a type: a list of blocks.
 *
 * @retval OPAL_SUCCESS, OPAL_ERR_BAD_PARAM, OPAL_ERR_OUT_OF_RESOURCE
 * @retval OPAL_ERR_NOT_SUPPORTED  other elements, a single block, or offsets so large that sums may
 *                                 overflow; use the general reader
 */
int opal_iov_cache_form_scattered(const opal_datatype_t *type, const dt_type_desc_t *desc,
                                  size_t count, opal_iov_cache_form_t **form);

/** The items of (type, count) by opal_convertor_raw, block by block. */
int opal_iov_cache_walk(const opal_datatype_t *type, size_t count, opal_iov_cache_list_t *list);

/**
 * Allocate a form for so many terms, all zero, and blocks, uninitialised; NULL if out of memory.
 */
opal_iov_cache_form_t *opal_iov_cache_form_new(size_t terms, size_t blocks);

/** Compute the starts of a form whose blocks are complete. */
void opal_iov_cache_form_index(opal_iov_cache_form_t *form);

/** Compute the hash of a form. */
uint64_t opal_iov_cache_form_hash_now(const opal_iov_cache_form_t *form);

#endif /* OPAL_IOV_CACHE_LIST_H */
