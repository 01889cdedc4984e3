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
 * Copies between user buffers and packed bytes; see umrddt_gpu_stream.h.
 */

#include "umrddt_gpu_stream.h"

#include <string.h>

#include "opal/constants.h"

/** The copy has ended, successfully or not. */
static void copy_ended(opal_umrddt_gpu_stream_copy_t *copy)
{
    if (NULL != copy->layout) {
        OBJ_RELEASE(copy->layout);
        copy->layout = NULL;
    }
    copy->position = copy->end;
}

/** Start a copy of stream positions up to @p end, which are in one allocation. */
static int copy_range(opal_umrddt_gpu_stream_copy_t *copy, uint64_t end)
{
    opal_umrddt_gpu_copy_end_t user = {.layout = copy->layout,
                                       .address = copy->address,
                                       .kind = copy->memory.kind,
                                       .reached = true};
    opal_umrddt_gpu_copy_end_t ours = {.layout = NULL,
                                       .address = (uintptr_t) copy->bytes + copy->position,
                                       .kind = copy->kind,
                                       .reached = true};
    opal_umrddt_gpu_engine_t *engine;
    uint64_t start = copy->position;
    int rc = opal_umrddt_gpu_engine_get(&copy->memory, &engine);

    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    rc = copy->in ? opal_umrddt_gpu_copy(engine, &ours, &user, start, end, &copy->one)
                  : opal_umrddt_gpu_copy(engine, &user, &ours, start, end, &copy->one);
    if (OPAL_SUCCESS == rc) {
        copy->position = end;
    } else {
        copy->one = NULL;
    }
    return rc;
}

/** Copy stream positions up to @p end, which are one block of memory that the CPU can access. */
static void copy_here(opal_umrddt_gpu_stream_copy_t *copy, uint64_t end)
{
    unsigned char *user = (unsigned char *) (uintptr_t) (copy->address
                                                         + (uint64_t) opal_iov_cache_form_offset(
                                                             copy->layout->form, copy->position));
    unsigned char *ours = copy->bytes + copy->position;

    memcpy(copy->in ? user : ours, copy->in ? ours : user, end - copy->position);
    copy->position = end;
}

/** Mixed buffer: copy the next bytes that are in system memory or in one device allocation. */
static int copy_mixed(opal_umrddt_gpu_stream_copy_t *copy)
{
    const opal_iov_cache_layout_t *layout = copy->layout;
    opal_umrddt_gpu_memory_t *memory = &copy->memory;
    uint64_t piece = opal_iov_cache_layout_find(layout, copy->position);
    uint64_t next = opal_iov_cache_layout_start(layout, piece + 1);
    uint64_t address =
        copy->address + (uint64_t) opal_iov_cache_form_offset(layout->form, copy->position);
    uint64_t end = next < copy->end ? next : copy->end;

    end = copy->position
          + (opal_umrddt_gpu_look_along(address, address + end - copy->position, memory) - address);
    if (OPAL_UMRDDT_GPU_DEVICE != memory->kind) {
        copy_here(copy, end);
        return OPAL_SUCCESS;
    }
    /* include the following blocks that are completely in this allocation */
    while (end == next && end < copy->end) {
        opal_iov_cache_iov_t iov = opal_iov_cache_layout_iov(layout, ++piece);
        uint64_t offset = copy->address + (uint64_t) iov.offset - memory->base;

        if (offset >= memory->size || iov.length > memory->size - offset) {
            break;
        }
        next = opal_iov_cache_layout_start(layout, piece + 1);
        end = next < copy->end ? next : copy->end;
    }
    return copy_range(copy, end);
}

/** Make progress; @p waiting: block until the GPU has finished. */
static int advance(opal_umrddt_gpu_stream_copy_t *copy, bool waiting)
{
    int rc = OPAL_SUCCESS;

    while (OPAL_SUCCESS == rc) {
        if (NULL != copy->one) {
            rc = waiting ? opal_umrddt_gpu_copy_wait(copy->one)
                         : opal_umrddt_gpu_copy_test(copy->one);
            if (OPAL_ERR_RESOURCE_BUSY == rc) {
                return OPAL_ERR_RESOURCE_BUSY;
            }
            copy->one = NULL;
        } else if (copy->position == copy->end) {
            break;
        } else {
            rc = copy->mixed ? copy_mixed(copy) : copy_range(copy, copy->end);
        }
    }
    copy_ended(copy);
    return rc;
}

int opal_umrddt_gpu_stream_copy_test(opal_umrddt_gpu_stream_copy_t *copy)
{
    return advance(copy, false);
}

int opal_umrddt_gpu_stream_copy_wait(opal_umrddt_gpu_stream_copy_t *copy)
{
    return advance(copy, true);
}

int opal_umrddt_gpu_stream_copy(opal_umrddt_gpu_stream_copy_t *copy, const void *buf,
                                opal_iov_cache_layout_t *layout,
                                const opal_umrddt_gpu_where_t *where, void *bytes,
                                opal_umrddt_gpu_kind_t kind, size_t length, bool in)
{
    int rc;

    copy->one = NULL;
    copy->layout = layout;
    copy->memory = where->memory;
    copy->mixed = where->mixed;
    copy->in = in;
    copy->kind = kind;
    copy->bytes = bytes;
    copy->address = (uintptr_t) buf;
    copy->position = 0;
    copy->end = length;
    if (0 == length) {
        copy_ended(copy);
        return OPAL_SUCCESS;
    }
    rc = copy->mixed ? copy_mixed(copy) : copy_range(copy, length);
    if (OPAL_SUCCESS != rc) {
        copy_ended(copy);
    }
    return rc;
}
