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
 * The loops of the operations, one for each pair of operation and type. Private to iov_cache_op.c.
 */

#ifndef OPAL_IOV_CACHE_LOOPS_H
#define OPAL_IOV_CACHE_LOOPS_H

#include "opal_config.h"

#include <stddef.h>
#include <stdint.h>

#include "opal/datatype/iov_cache/iov_cache_op.h"

BEGIN_C_DECLS

/**
 * Combine blocks of memory with a stream; neither needs alignment.
 *
 * @param[in] memory  the first block
 * @param[in] stride  bytes from one block to the next
 * @param[in] stream  all blocks, one after the other
 * @param[in] n       elements per block
 * @param[in] count   blocks
 */
typedef void (*opal_iov_cache_loop_t)(void *memory, int64_t stride, const void *stream, uint64_t n,
                                      uint64_t count);

/** The loops of an element; NULL for illegal pairs and for replace. */
typedef struct opal_iov_cache_loops_t {
    size_t size; /**< bytes of an element */
    opal_iov_cache_loop_t loops[OPAL_IOV_CACHE_OP_COUNT];
} opal_iov_cache_loops_t;

extern const opal_iov_cache_loops_t opal_iov_cache_loops[OPAL_IOV_CACHE_ELEMENT_COUNT];

END_C_DECLS

#endif /* OPAL_IOV_CACHE_LOOPS_H */
