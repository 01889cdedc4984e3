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
 * Pack and unpack in steps. A step is a range, and a range can start anywhere at O(depth). So the
 * only state is the number of bytes done.
 */

#include "opal_config.h"

#include "opal/constants.h"

#include "iov_cache_request.h"

static int start_any(opal_iov_cache_request_t *request, opal_iov_cache_layout_t *layout,
                     void *buffer, uint64_t start, uint64_t length, void *stream, uint64_t step)
{
    request->layout = NULL;
    if (start > layout->size || length > layout->size - start) {
        return OPAL_ERR_BAD_PARAM;
    }
    OBJ_RETAIN(layout);
    request->layout = layout;
    request->buffer = buffer;
    request->stream = stream;
    request->start = start;
    request->length = length;
    request->done = 0;
    request->step = 0 == step ? OPAL_IOV_CACHE_STEP : step;
    request->packing = false;
    request->op = OPAL_IOV_CACHE_REPLACE;
    request->element = OPAL_IOV_CACHE_BYTE;
    return OPAL_SUCCESS;
}

int opal_iov_cache_pack_start(opal_iov_cache_request_t *request, opal_iov_cache_layout_t *layout,
                              const void *buffer, uint64_t start, uint64_t length, void *stream,
                              uint64_t step)
{
    int rc = start_any(request, layout, (void *) buffer, start, length, stream, step);

    request->packing = true;
    return rc;
}

int opal_iov_cache_unpack_start(opal_iov_cache_request_t *request, opal_iov_cache_layout_t *layout,
                                void *buffer, uint64_t start, uint64_t length, const void *stream,
                                uint64_t step)
{
    return start_any(request, layout, buffer, start, length, (void *) stream, step);
}

int opal_iov_cache_unpack_op_start(opal_iov_cache_request_t *request,
                                   opal_iov_cache_layout_t *layout, void *buffer, uint64_t start,
                                   uint64_t length, const void *stream, opal_iov_cache_op_t op,
                                   opal_iov_cache_element_t element, uint64_t step)
{
    uint64_t size = opal_iov_cache_element_size(element);
    int rc;

    request->layout = NULL;
    if (!opal_iov_cache_op_is_legal(op, element)) {
        return OPAL_ERR_NOT_SUPPORTED;
    }
    if (0 != start % size || 0 != length % size) {
        return OPAL_ERR_BAD_PARAM;
    }
    rc = start_any(request, layout, buffer, start, length, (void *) stream, step);
    if (OPAL_SUCCESS == rc) {
        request->op = op;
        request->element = element;
        request->step = request->step < size ? size : request->step - request->step % size;
    }
    return rc;
}

bool opal_iov_cache_request_test(opal_iov_cache_request_t *request)
{
    const opal_iov_cache_form_t *form;
    uint64_t position, length;
    char *stream;

    if (NULL == request->layout) {
        return true;
    }
    form = request->layout->form;
    position = request->start + request->done;
    length = request->length - request->done;
    length = length < request->step ? length : request->step;
    stream = request->stream + request->done;
    if (request->packing) {
        opal_iov_cache_form_pack(form, request->buffer, position, length, stream);
    } else {
        /* the start has checked all arguments */
        opal_iov_cache_form_unpack_op(form, request->buffer, position, length, stream, request->op,
                                      request->element);
    }
    request->done += length;
    if (request->done < request->length) {
        return false;
    }
    opal_iov_cache_request_cancel(request);
    return true;
}

void opal_iov_cache_request_wait(opal_iov_cache_request_t *request)
{
    while (!opal_iov_cache_request_test(request)) {
    }
}

void opal_iov_cache_request_cancel(opal_iov_cache_request_t *request)
{
    opal_iov_cache_layout_t *layout = request->layout;

    request->layout = NULL;
    if (NULL != layout) {
        OBJ_RELEASE(layout);
    }
}
