/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Copies. Each end is classified, since callers do not pass its kind
 * (MCA_ACCELERATOR_TRANSFER_UNSPEC, no device), and datatypes can have pieces in several memories.
 */

#include "accelerator_cuda.h"

#include <stdlib.h>
#include <string.h>

#include "opal/constants.h"

/* Bytes of an overlapping move that go through system memory at a time. */
#define MOVE_BYTES ((size_t) 1 << 20)

/* The context of memory that the CPU cannot, or should not, access; else NULL. */
static int context_at(const void *address, opal_accelerator_cuda_context_t **context)
{
    opal_umrddt_gpu_memory_t memory;

    *context = NULL;
    if (OPAL_SUCCESS != opal_umrddt_gpu_classify(address, &memory)) {
        opal_umrddt_gpu_presume(address, &memory);
        if (OPAL_UMRDDT_GPU_DEVICE == memory.kind) {
            return opal_accelerator_cuda_result(CUDA_ERROR_UNKNOWN,
                                                "memory of a device that broke cannot be copied");
        }
    }
    if (OPAL_UMRDDT_GPU_HOST == memory.kind || OPAL_UMRDDT_GPU_PINNED == memory.kind) {
        return OPAL_SUCCESS;
    }
    return opal_accelerator_cuda_context_of(&memory, context);
}

int opal_accelerator_cuda_copy_look(void *to, const void *from, size_t size,
                                    opal_accelerator_cuda_copy_t *copy)
{
    int rc = context_at(to, &copy->to_context);

    if (OPAL_SUCCESS == rc) {
        rc = context_at(from, &copy->from_context);
    }
    copy->to = (uintptr_t) to;
    copy->from = (uintptr_t) from;
    copy->size = size;
    return rc;
}

CUresult opal_accelerator_cuda_copy_put(const opal_accelerator_cuda_copy_t *copy, CUstream stream)
{
    opal_accelerator_cuda_context_t *to = copy->to_context, *from = copy->from_context;
    const opal_umrddt_gpu_driver_t *driver;
    bool pushed;
    CUresult rc;

    if (OPAL_SUCCESS != opal_umrddt_gpu_driver_load(&driver)) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (NULL == to || NULL == from || to == from) {
        return driver->cuMemcpyAsync(copy->to, copy->from, copy->size, stream);
    }
    /* Pending work of the default stream of the source's context. */
    rc = opal_accelerator_cuda_enter(from, &pushed);
    if (CUDA_SUCCESS == rc) {
        rc = driver->cuEventRecord(from->event, from->stream);
        opal_accelerator_cuda_leave(pushed);
    }
    if (CUDA_SUCCESS == rc) {
        rc = driver->cuStreamWaitEvent(stream, from->event, 0);
    }
    if (CUDA_SUCCESS != rc) {
        return rc;
    }
    /*
     * Stream-ordered and mapped memory of another device is accessible only if both contexts are
     * named.
     */
    return to->device == from->device
               ? driver->cuMemcpyAsync(copy->to, copy->from, copy->size, stream)
               : driver->cuMemcpyPeerAsync(copy->to, to->ctx, copy->from, from->ctx, copy->size,
                                           stream);
}

static CUresult copy_now(const opal_accelerator_cuda_copy_t *copy,
                         const opal_accelerator_cuda_context_t *context)
{
    const opal_umrddt_gpu_driver_t *driver;
    bool pushed;
    CUresult rc;

    if (OPAL_SUCCESS != opal_umrddt_gpu_driver_load(&driver)) {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    rc = opal_accelerator_cuda_enter(context, &pushed);
    if (CUDA_SUCCESS != rc) {
        return rc;
    }
    rc = opal_accelerator_cuda_copy_put(copy, context->stream);
    if (CUDA_SUCCESS == rc) {
        rc = driver->cuStreamSynchronize(context->stream);
    }
    opal_accelerator_cuda_leave(pushed);
    return rc;
}

int opal_accelerator_cuda_mem_copy(int to_device, int from_device, void *to, const void *from,
                                   size_t size, opal_accelerator_transfer_type_t type)
{
    opal_accelerator_cuda_context_t *context;
    opal_accelerator_cuda_copy_t copy;
    int rc;

    (void) to_device, (void) from_device, (void) type;
    if (0 == size) {
        return OPAL_SUCCESS;
    }
    rc = opal_accelerator_cuda_copy_look(to, from, size, &copy);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    context = opal_accelerator_cuda_copy_context(&copy);
    if (NULL == context) {
        memcpy(to, from, size);
        return OPAL_SUCCESS;
    }
    return opal_accelerator_cuda_result(copy_now(&copy, context), "a copy failed");
}

/* In pieces, each read before it is written, starting at the end that is read first. */
static int move_by_pieces(char *to, const char *from, size_t size)
{
    const size_t most = size < MOVE_BYTES ? size : MOVE_BYTES;
    char *piece = malloc(most);
    size_t done = 0;
    int rc = NULL == piece ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;

    while (OPAL_SUCCESS == rc && done < size) {
        const size_t bytes = size - done < most ? size - done : most;
        const size_t at = to < from ? done : size - done - bytes;

        rc = opal_accelerator_cuda_mem_copy(MCA_ACCELERATOR_NO_DEVICE_ID,
                                            MCA_ACCELERATOR_NO_DEVICE_ID, piece, from + at, bytes,
                                            MCA_ACCELERATOR_TRANSFER_UNSPEC);
        if (OPAL_SUCCESS == rc) {
            rc = opal_accelerator_cuda_mem_copy(MCA_ACCELERATOR_NO_DEVICE_ID,
                                                MCA_ACCELERATOR_NO_DEVICE_ID, to + at, piece, bytes,
                                                MCA_ACCELERATOR_TRANSFER_UNSPEC);
        }
        done += bytes;
    }
    free(piece);
    return rc;
}

int opal_accelerator_cuda_mem_move(int to_device, int from_device, void *to, const void *from,
                                   size_t size, opal_accelerator_transfer_type_t type)
{
    const uintptr_t t = (uintptr_t) to, f = (uintptr_t) from;
    opal_accelerator_cuda_copy_t copy;
    int rc;

    if (0 == size || t == f) {
        return OPAL_SUCCESS;
    }
    if ((t < f ? f - t : t - f) >= size) {
        return opal_accelerator_cuda_mem_copy(to_device, from_device, to, from, size, type);
    }
    rc = opal_accelerator_cuda_copy_look(to, from, size, &copy);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    if (NULL == opal_accelerator_cuda_copy_context(&copy)) {
        memmove(to, from, size);
        return OPAL_SUCCESS;
    }
    return move_by_pieces(to, from, size);
}
