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
 * Shared by iov_cache_scatter.c, which creates forms of irregular descriptions, and
 * iov_cache_apart.c, the fast reader for nearly all of them.
 */

#ifndef OPAL_IOV_CACHE_SCATTER_H
#define OPAL_IOV_CACHE_SCATTER_H

#include "opal_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opal/datatype/opal_datatype.h"

#include "iov_cache_form.h"
#include "iov_cache_sums.h"

/* Elements that are read between checks of the result. */
#define OPAL_IOV_CACHE_STRIDE 32

/*
 * Blocks that are always written for each element. The number of its blocks is not predictable, so
 * only the position of the next blocks depends on it. The larger number is for elements with more
 * than OPAL_IOV_CACHE_FEW blocks on average.
 */
#define OPAL_IOV_CACHE_FEW  3
#define OPAL_IOV_CACHE_MANY 12

/* Limit of the block length: the general reader handles longer ones, with checks of 63 bits. */
#define OPAL_IOV_CACHE_LONG (UINT64_C(1) << 30)

/* Capacity of the table of basic types. */
#define OPAL_IOV_CACHE_TYPES 64

/*
 * Loops exist twice, for processors with AVX2 and for all others. Tests select the latter by
 * defining OPAL_IOV_CACHE_PLAIN.
 */
#if defined(__x86_64__) && !defined(OPAL_IOV_CACHE_PLAIN)
#define OPAL_IOV_CACHE_AVX2 1
#else
#define OPAL_IOV_CACHE_AVX2 0
#endif

/* An element, or two blocks. Unsigned, since unused values may exceed 63 bits. */
typedef uint64_t opal_iov_cache_words_t __attribute__((vector_size(32)));

/* True if an element is {head, blocks' elements, extent, displacement}, one word each. */
#define OPAL_IOV_CACHE_ELEMENT_IS_WORDS                       \
    (sizeof(opal_iov_cache_words_t) == sizeof(dt_elem_desc_t) \
     && 8 == offsetof(ddt_elem_desc_t, blocklen)              \
     && 8 == sizeof(((ddt_elem_desc_t *) NULL)->blocklen)     \
     && 16 == offsetof(ddt_elem_desc_t, extent) && 24 == offsetof(ddt_elem_desc_t, disp))

/* State of a reader. */
typedef struct {
    opal_iov_cache_form_t *form;
    size_t room; /* blocks */
    size_t count;
    uint64_t origin;                      /* of the offsets */
    uint64_t sizes[OPAL_IOV_CACHE_TYPES]; /* of basic types; 0: not supported by this reader */
    opal_iov_cache_sums_t sums;
    bool indexed; /* the starts are written */
} opal_iov_cache_scatter_t;

/* Properties of some elements of a description. */
typedef struct {
    bool pairs;    /* all have two blocks */
    bool alike;    /* all have the same head */
    bool equal;    /* all blocks have the same length */
    bool typed;    /* all have the same basic type */
    size_t blocks; /* of these elements, at most OPAL_IOV_CACHE_MANY of each */
    size_t elements;
} opal_iov_cache_looks_t;

/* Blocks that are always written for each element. */
static inline unsigned opal_iov_cache_width(const opal_iov_cache_looks_t *looks)
{
    return OPAL_IOV_CACHE_FEW * looks->elements >= looks->blocks ? OPAL_IOV_CACHE_FEW
                                                                 : OPAL_IOV_CACHE_MANY;
}

/**
 * Write all blocks of one instance of the type into scatter->form, if no block continues the
 * previous one.
 *
 * @param[in] looks   expected properties of the elements; wrong ones are detected
 * @param[in] length  bytes of a block of the first element
 *
 * @return false if the properties differ, or there are more blocks than room. Required room: two
 *         per element if all are expected to be pairs of one length, otherwise
 *         OPAL_IOV_CACHE_STRIDE + 1 times the width more than there are blocks
 */
bool opal_iov_cache_read_apart(const opal_datatype_t *type, const dt_type_desc_t *desc,
                               const opal_iov_cache_looks_t *looks, uint64_t length,
                               opal_iov_cache_scatter_t *scatter);

#endif /* OPAL_IOV_CACHE_SCATTER_H */
