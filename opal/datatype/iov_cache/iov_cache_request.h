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
 * Nonblocking pack and unpack: a request is started, and each test of it moves a limited number of
 * bytes.
 *
 * A request is memory of the caller, which need not be initialised. No function here allocates.
 * After a successful start the request is *active*. It is complete when a test returns true, when
 * wait returns, or when it is cancelled. While it is active
 *  - it holds a reference to its layout, so the datatype and the cache entry may be freed;
 *  - the buffer and the stream must stay in place. The destination must not be read and the source
 *    must not be written, except for the bytes already done: a part of a stream can be sent while
 *    the rest is still being packed;
 *  - the request must not be moved, copied or started again.
 *
 * There is no progress between tests. Any number of requests may be active at once, over one layout
 * or several. One request is tested by one thread at a time. Several threads may test different
 * requests if MPI was initialised for threads (otherwise opal does not count the references of a
 * shared layout atomically).
 *
 * The start detects errors and then leaves the request inactive. Errors are as in iov_cache.h.
 */

#ifndef OPAL_IOV_CACHE_REQUEST_H
#define OPAL_IOV_CACHE_REQUEST_H

#include "opal_config.h"

#include <stddef.h>
#include <stdint.h>

#include "opal/datatype/iov_cache/iov_cache.h"
#include "opal/datatype/iov_cache/iov_cache_op.h"

BEGIN_C_DECLS

/** Default for the maximum of bytes that one test moves: some tens of microseconds. */
#define OPAL_IOV_CACHE_STEP (256 * 1024)

/** A pack or unpack in progress. */
typedef struct opal_iov_cache_request_t {
    opal_iov_cache_layout_t *layout; /**< NULL if the request is not active */
    char *buffer;                    /**< the buffer address of MPI calls */
    char *stream;                    /**< the bytes from position start on */
    uint64_t start;                  /**< stream position of the first byte */
    uint64_t length;                 /**< bytes to move */
    uint64_t done;                   /**< bytes that have been moved: the first of the range */
    uint64_t step;                   /**< maximum bytes per test */
    bool packing;
    opal_iov_cache_op_t op;           /**< of an unpack; REPLACE by default */
    opal_iov_cache_element_t element; /**< BYTE by default */
} opal_iov_cache_request_t;

/**
 * Start opal_iov_cache_form_pack. No byte is moved yet.
 *
 * @param[out] request  active on success
 * @param[in]  layout   retained until the request is complete
 * @param[in]  buffer   the buffer address of MPI calls
 * @param[in]  start    stream position of the first byte
 * @param[in]  length   bytes; the range lies within the layout
 * @param[out] stream   length bytes, must not overlap the buffer
 * @param[in]  step     maximum bytes per test; 0 for OPAL_IOV_CACHE_STEP
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_BAD_PARAM  the range exceeds the layout
 */
int opal_iov_cache_pack_start(opal_iov_cache_request_t *request, opal_iov_cache_layout_t *layout,
                              const void *buffer, uint64_t start, uint64_t length, void *stream,
                              uint64_t step);

/** Start opal_iov_cache_form_unpack; otherwise as above. */
int opal_iov_cache_unpack_start(opal_iov_cache_request_t *request, opal_iov_cache_layout_t *layout,
                                void *buffer, uint64_t start, uint64_t length, const void *stream,
                                uint64_t step);

/**
 * Start opal_iov_cache_form_unpack_op. A test combines whole elements, and at least one.
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_NOT_SUPPORTED, OPAL_ERR_BAD_PARAM as opal_iov_cache_form_unpack_op
 */
int opal_iov_cache_unpack_op_start(opal_iov_cache_request_t *request,
                                   opal_iov_cache_layout_t *layout, void *buffer, uint64_t start,
                                   uint64_t length, const void *stream, opal_iov_cache_op_t op,
                                   opal_iov_cache_element_t element, uint64_t step);

/**
 * Move the next bytes, at most step of them. O(depth of the form) in addition.
 *
 * @return true if the request is complete. It has then released its layout; further tests are
 *         allowed and return true
 */
bool opal_iov_cache_request_test(opal_iov_cache_request_t *request);

/** Move all remaining bytes. */
void opal_iov_cache_request_wait(opal_iov_cache_request_t *request);

/**
 * Stop a request and release its layout. The first request->done bytes of the range have been
 * moved, and no others. Allowed, and without effect, if it is complete.
 */
void opal_iov_cache_request_cancel(opal_iov_cache_request_t *request);

END_C_DECLS

#endif /* OPAL_IOV_CACHE_REQUEST_H */
