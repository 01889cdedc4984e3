/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Copies with one place in pageable memory: piece by piece through staging buffers. The device
 * packs into one, or unpacks from it, while the CPU handles another. Pieces complete in order.
 */

#include "umrddt_gpu_copy.h"
#include "umrddt_gpu_engine_private.h"

#include <stdlib.h>
#include <string.h>

#include "opal/mca/common/umrddt_gpu/staging/umrddt_gpu_staging.h"

/* With little pinned memory, pieces are smaller. */
#define LEAST_PIECE 4096

/* Index of the place in pageable memory. */
static int host_of(const opal_umrddt_gpu_copy_end_t copy_ends[2])
{
    return OPAL_UMRDDT_GPU_HOST == copy_ends[0].kind ? 0 : 1;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The rest of a place without a layout, from position `position` on. */
static opal_umrddt_gpu_copy_end_t from_here(const opal_umrddt_gpu_copy_t *copy, int which,
                                            uint64_t position)
{
    opal_umrddt_gpu_copy_end_t copy_end = copy->copy_end[which];

    if (NULL == copy_end.layout) {
        copy_end.address += position - copy->start;
    }
    return copy_end;
}

/* Copy between pageable memory and the packed staging buffer of a piece, by the CPU. */
static void by_cpu(const opal_umrddt_gpu_copy_t *copy, const opal_umrddt_gpu_piece_t *piece)
{
    const int host = host_of(copy->copy_end);
    const opal_umrddt_gpu_copy_end_t copy_end = from_here(copy, host, piece->start);
    void *memory = (void *) (uintptr_t) copy_end.address;
    const uint64_t length = piece->end - piece->start;

    if (NULL == copy_end.layout) {
        memcpy(0 == host ? piece->buffer : memory, 0 == host ? memory : piece->buffer, length);
    } else if (0 == host) {
        (void) opal_iov_cache_form_pack(copy_end.layout->form, memory, piece->start, length,
                                        piece->buffer);
    } else {
        (void) opal_iov_cache_form_unpack(copy_end.layout->form, memory, piece->start, length,
                                          piece->buffer);
    }
}

/* Start the next piece. */
static int begin_piece(opal_umrddt_gpu_copy_t *copy, opal_umrddt_gpu_piece_t *piece)
{
    const int host = host_of(copy->copy_end);
    opal_umrddt_gpu_copy_end_t copy_ends[2];
    int rc;

    piece->start = copy->next_start;
    piece->end = least(copy->end, copy->next_start + copy->piece_bytes);
    copy_ends[1 - host] = from_here(copy, 1 - host, piece->start);
    memset(&copy_ends[host], 0, sizeof(copy_ends[0]));
    copy_ends[host].kind = OPAL_UMRDDT_GPU_PINNED;
    copy_ends[host].address = (uintptr_t) piece->buffer;
    if (0 == host) {
        by_cpu(copy, piece);
    }
    rc = opal_umrddt_gpu_copy_direct(copy->engine, copy_ends, piece->start, piece->end,
                                     copy->end - copy->start == piece->end - piece->start,
                                     &piece->copy);
    if (OPAL_SUCCESS != rc) {
        piece->copy = NULL;
        return rc;
    }
    COUNT(staged_bytes, piece->end - piece->start);
    copy->next_start = piece->end;
    return OPAL_SUCCESS;
}

/* Wait for the pieces in progress, and release the buffers. */
static void end_pieces(opal_umrddt_gpu_copy_t *copy)
{
    unsigned i;

    for (i = 0; i < copy->pieces; ++i) {
        opal_umrddt_gpu_piece_t *piece = &copy->piece[i];

        if (NULL != piece->copy) {
            (void) opal_umrddt_gpu_copy_wait(piece->copy);
            piece->copy = NULL;
        }
        opal_umrddt_gpu_staging_put(piece->buffer);
    }
    copy->pieces = 0;
}

/* Get as many buffers as useful and available. @return false if none */
static bool get_buffers(opal_umrddt_gpu_copy_t *copy, uint64_t bytes)
{
    uint64_t size = opal_umrddt_gpu_engine_set.staging_chunk;
    int rc;

    size = size < LEAST_PIECE ? LEAST_PIECE : size;
    size = least(size, bytes);
    do {
        rc = opal_umrddt_gpu_staging_get(size, &copy->piece[0].buffer);
    } while (OPAL_ERR_OUT_OF_RESOURCE == rc && LEAST_PIECE < size && 0 < (size /= 2));
    if (OPAL_SUCCESS != rc) {
        return false;
    }
    copy->piece_bytes = size;
    copy->pieces = 1;
    while (PIECES > copy->pieces && bytes > copy->pieces * size
           && OPAL_SUCCESS
                  == opal_umrddt_gpu_staging_get(size, &copy->piece[copy->pieces].buffer)) {
        ++copy->pieces;
    }
    return true;
}

/* Memory of the engine itself, with its lock. */
static bool have_reserve(opal_umrddt_gpu_engine_t *engine)
{
    CUdeviceptr there;

    if (NULL == engine->reserve) {
        engine->reserve = opal_umrddt_gpu_registered(engine, RESERVE, &there);
        if (NULL != engine->reserve && 0 == there) {
            free(engine->reserve);
            engine->reserve = NULL;
        }
    }
    return NULL != engine->reserve;
}

/*
 * Do the whole copy now, through the reserve. Waiting for it in copy_test could wait for a copy
 * that no caller tests.
 */
static int do_it_now(opal_umrddt_gpu_copy_t *copy)
{
    opal_umrddt_gpu_engine_t *engine = copy->engine;
    opal_umrddt_gpu_piece_t *piece = &copy->piece[0];
    int rc = OPAL_SUCCESS;

    pthread_mutex_lock(&engine->reserve_lock);
    if (!have_reserve(engine)) {
        rc = OPAL_ERR_OUT_OF_RESOURCE;
    }
    piece->buffer = engine->reserve;
    copy->piece_bytes = RESERVE;
    while (OPAL_SUCCESS == rc && copy->next_start < copy->end) {
        rc = begin_piece(copy, piece);
        if (OPAL_SUCCESS == rc) {
            rc = opal_umrddt_gpu_copy_wait(piece->copy);
            piece->copy = NULL;
        }
        if (OPAL_SUCCESS == rc && 1 == host_of(copy->copy_end)) {
            by_cpu(copy, piece);
        }
    }
    pthread_mutex_unlock(&engine->reserve_lock);
    copy->kind = COPY_OVER;
    return rc;
}

int opal_umrddt_gpu_staged_begin(opal_umrddt_gpu_engine_t *engine,
                                 const opal_umrddt_gpu_copy_end_t copy_ends[2], uint64_t start,
                                 uint64_t end, opal_umrddt_gpu_copy_t **result)
{
    opal_umrddt_gpu_copy_t *copy;
    unsigned i;
    int rc;

    rc = opal_umrddt_gpu_copy_take(engine, &copy);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    copy->kind = COPY_STAGED;
    copy->copy_end[0] = copy_ends[0];
    copy->copy_end[1] = copy_ends[1];
    copy->start = start;
    copy->next_start = start;
    copy->end = end;
    copy->first = 0;
    copy->pieces = 0;
    memset(copy->piece, 0, sizeof(copy->piece));
    if (!get_buffers(copy, end - start)) {
        rc = do_it_now(copy);
    }
    for (i = 0; OPAL_SUCCESS == rc && i < copy->pieces && copy->next_start < end; ++i) {
        rc = begin_piece(copy, &copy->piece[i]);
    }
    if (OPAL_SUCCESS != rc) {
        end_pieces(copy);
        opal_umrddt_gpu_copy_drop(copy);
        return rc;
    }
    *result = copy;
    return OPAL_SUCCESS;
}

int opal_umrddt_gpu_staged_test(opal_umrddt_gpu_copy_t *copy)
{
    int rc = OPAL_SUCCESS;

    while (OPAL_SUCCESS == rc && NULL != copy->piece[copy->first].copy) {
        opal_umrddt_gpu_piece_t *piece = &copy->piece[copy->first];
        bool pushed;

        rc = opal_umrddt_gpu_copy_test(piece->copy);
        if (OPAL_ERR_RESOURCE_BUSY == rc) {
            return rc;
        }
        piece->copy = NULL;
        /* No buffer of the application may be in the context: it may be gone, with our buffers. */
        if (OPAL_SUCCESS == rc && !opal_umrddt_gpu_engine_is_there(copy->engine)) {
            rc = OPAL_ERROR;
        }
        if (OPAL_SUCCESS == rc && 1 == host_of(copy->copy_end)) {
            by_cpu(copy, piece);
        }
        if (OPAL_SUCCESS == rc && copy->next_start < copy->end) {
            rc = opal_umrddt_gpu_engine_swap_in(copy->engine, &pushed);
            if (OPAL_SUCCESS == rc) {
                rc = begin_piece(copy, piece);
                opal_umrddt_gpu_engine_swap_out(copy->engine, pushed);
            }
        }
        copy->first = (copy->first + 1) % copy->pieces;
    }
    end_pieces(copy);
    return OPAL_SUCCESS == rc ? OPAL_SUCCESS : OPAL_ERROR;
}
