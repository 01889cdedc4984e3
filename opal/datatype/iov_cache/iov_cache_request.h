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
 * Pack and unpack that do not block: a request is started, and each test of it moves a bounded
 * number of bytes.
 *
 * A request is the caller's memory, which need not be initialised, and has nothing else behind it:
 * no function here allocates. From a start that succeeds it is *active*; it is over when a test
 * says so, when wait returns, or when it is cancelled. While it is active
 *  - it holds a reference to its layout, so datatype and cache entry may go;
 *  - the buffer and the stream must stay where they are. What is written must not be read, and what
 *    is read must not be written, but for the bytes that are done: these are done for good, so a
 *    part of a stream can be sent on while the rest is still being packed;
 *  - the request must not be moved, copied or started again.
 *
 * Nothing goes on between tests: a request that nobody tests stays where it is. Any number may be
 * active at once, over one layout or several. One request is tested by one thread at a time;
 * different ones by as many as there are, if MPI was initialised for threads (else opal counts the
 * references of a layout that they share without atomics).
 *
 * What is known to be wrong is said by the start, which leaves the request not active. Errors are
 * as in iov_cache.h.
 */

#ifndef OPAL_IOV_CACHE_REQUEST_H
#define OPAL_IOV_CACHE_REQUEST_H

#include "opal_config.h"

#include <stddef.h>
#include <stdint.h>

#include "opal/datatype/iov_cache/iov_cache.h"
#include "opal/datatype/iov_cache/iov_cache_op.h"

BEGIN_C_DECLS

/** What a test moves at most if a start is given 0, in bytes: some tens of microseconds. */
#define OPAL_IOV_CACHE_STEP (256 * 1024)

/** A pack or unpack under way. */
typedef struct opal_iov_cache_request_t {
    opal_iov_cache_layout_t *layout; /**< NULL if the request is not active */
    char *buffer;                    /**< what MPI calls would be given */
    char *stream;                    /**< the bytes from position start on */
    uint64_t start;                  /**< stream position of the first byte */
    uint64_t length;                 /**< bytes to move */
    uint64_t done;                   /**< bytes that have been moved: the first of the range */
    uint64_t step;                   /**< bytes that a test moves at most */
    bool packing;
    opal_iov_cache_op_t op;           /**< of an unpack; REPLACE if it was given none */
    opal_iov_cache_element_t element; /**< BYTE if it was given none */
} opal_iov_cache_request_t;

/**
 * Start what opal_iov_cache_form_pack does. Nothing is moved yet.
 *
 * @param[out] request  active, if this succeeds
 * @param[in]  layout   retained until the request is over
 * @param[in]  buffer   what MPI calls would be given
 * @param[in]  start    stream position of the first byte
 * @param[in]  length   bytes; the range lies within the layout
 * @param[out] stream   length bytes, apart from the buffer's
 * @param[in]  step     bytes that a test moves at most; 0 for OPAL_IOV_CACHE_STEP
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_BAD_PARAM  the range is not all in the layout
 */
int opal_iov_cache_pack_start(opal_iov_cache_request_t *request, opal_iov_cache_layout_t *layout,
                              const void *buffer, uint64_t start, uint64_t length, void *stream,
                              uint64_t step);

/** Start what opal_iov_cache_form_unpack does; all else is as above. */
int opal_iov_cache_unpack_start(opal_iov_cache_request_t *request, opal_iov_cache_layout_t *layout,
                                void *buffer, uint64_t start, uint64_t length, const void *stream,
                                uint64_t step);

/**
 * Start what opal_iov_cache_form_unpack_op does. A test combines whole elements, and at least one.
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_NOT_SUPPORTED, OPAL_ERR_BAD_PARAM  as opal_iov_cache_form_unpack_op
 */
int opal_iov_cache_unpack_op_start(opal_iov_cache_request_t *request,
                                   opal_iov_cache_layout_t *layout, void *buffer, uint64_t start,
                                   uint64_t length, const void *stream, opal_iov_cache_op_t op,
                                   opal_iov_cache_element_t element, uint64_t step);

/**
 * Move the next bytes, step of them at most. O(depth of the form) besides.
 *
 * @return true if the request is over. It has then given its layout back; testing it again is
 *         allowed, and says the same
 */
bool opal_iov_cache_request_test(opal_iov_cache_request_t *request);

/** Move all that is left. */
void opal_iov_cache_request_wait(opal_iov_cache_request_t *request);

/**
 * End a request where it is and give its layout back: the first request->done bytes of the range
 * have been moved, and no others. Allowed, and without effect, if it is over.
 */
void opal_iov_cache_request_cancel(opal_iov_cache_request_t *request);

END_C_DECLS

#endif /* OPAL_IOV_CACHE_REQUEST_H */
