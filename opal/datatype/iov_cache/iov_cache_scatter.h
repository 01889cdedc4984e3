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
 * What iov_cache_scatter.c, which makes forms of descriptions without order, and iov_cache_apart.c,
 * which reads nearly all of them, have in common.
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

/* Elements that are read before it is looked whether all is well. */
#define OPAL_IOV_CACHE_STRIDE 32

/* Blocks that are written for each element in any case: how many it has cannot be foreseen, so
 * nothing depends on it but where the next ones go. The larger number is for elements that have
 * more than OPAL_IOV_CACHE_FEW in the mean. */
#define OPAL_IOV_CACHE_FEW  3
#define OPAL_IOV_CACHE_MANY 12

/* No block is as long as this: longer ones are read as all others, with care for what leaves 63
 * bits. */
#define OPAL_IOV_CACHE_LONG (UINT64_C(1) << 30)

/* Basic types that a table has room for. */
#define OPAL_IOV_CACHE_TYPES 64

/* Loops are there twice, for processors with AVX2 and for all others, which tests have as well, by
 * defining OPAL_IOV_CACHE_PLAIN. */
#if defined(__x86_64__) && !defined(OPAL_IOV_CACHE_PLAIN)
#define OPAL_IOV_CACHE_AVX2 1
#else
#define OPAL_IOV_CACHE_AVX2 0
#endif

/* An element, or two blocks. Unsigned, for what is never looked at may leave 63 bits. */
typedef uint64_t opal_iov_cache_words_t __attribute__((vector_size(32)));

/* Is an element {head, blocks' elements, extent, displacement}, a word each? */
#define OPAL_IOV_CACHE_ELEMENT_IS_WORDS                       \
    (sizeof(opal_iov_cache_words_t) == sizeof(dt_elem_desc_t) \
     && 8 == offsetof(ddt_elem_desc_t, blocklen)              \
     && 8 == sizeof(((ddt_elem_desc_t *) NULL)->blocklen)     \
     && 16 == offsetof(ddt_elem_desc_t, extent) && 24 == offsetof(ddt_elem_desc_t, disp))

/* What is being read. */
typedef struct {
    opal_iov_cache_form_t *form;
    size_t room; /* blocks */
    size_t count;
    uint64_t origin;                      /* of the offsets */
    uint64_t sizes[OPAL_IOV_CACHE_TYPES]; /* of basic types; 0: nothing that is read here */
    opal_iov_cache_sums_t sums;
    bool indexed; /* the starts are written down */
} opal_iov_cache_scatter_t;

/* What some elements of a description look like. */
typedef struct {
    bool pairs;    /* all have two blocks */
    bool alike;    /* all have the same head */
    bool equal;    /* all blocks have the same length */
    bool typed;    /* all have the same basic type */
    size_t blocks; /* of these elements, no more than OPAL_IOV_CACHE_MANY of any */
    size_t elements;
} opal_iov_cache_looks_t;

/* Blocks that are written for each element in any case. */
static inline unsigned opal_iov_cache_width(const opal_iov_cache_looks_t *looks)
{
    return OPAL_IOV_CACHE_FEW * looks->elements >= looks->blocks ? OPAL_IOV_CACHE_FEW
                                                                 : OPAL_IOV_CACHE_MANY;
}

/**
 * All blocks of one of the type, if none goes on where the one before ends, into scatter->form.
 *
 * @param[in] looks   what the elements seem to be; if they are not, nothing is lost
 * @param[in] length  bytes of a block of the first element
 *
 * @return false if they are not like that, or there are more blocks than room. There has to be room
 *         for two an element where all seem to be pairs of one length, and else for
 *         OPAL_IOV_CACHE_STRIDE + 1 times the width more than there are blocks
 */
bool opal_iov_cache_read_apart(const opal_datatype_t *type, const dt_type_desc_t *desc,
                               const opal_iov_cache_looks_t *looks, uint64_t length,
                               opal_iov_cache_scatter_t *scatter);

#endif /* OPAL_IOV_CACHE_SCATTER_H */
