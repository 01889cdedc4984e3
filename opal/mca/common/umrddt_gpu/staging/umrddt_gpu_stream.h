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
 * Copies between a user's buffer in any memory and packed bytes in system memory, for example in a
 * staging buffer (umrddt_gpu_stage.h). A buffer that spans several kinds of memory (mixed) is
 * copied part by part. Callable from any thread, for each copy in one at a time.
 */

#ifndef OPAL_UMRDDT_GPU_STREAM_H
#define OPAL_UMRDDT_GPU_STREAM_H

#include "opal_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "opal/datatype/iov_cache/iov_cache.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_engine.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_memory.h"

BEGIN_C_DECLS

/** A copy in progress between a user's buffer and packed bytes. */
typedef struct opal_umrddt_gpu_stream_copy_t {
    opal_umrddt_gpu_copy_t *one;     /**< the current GPU copy, or NULL */
    opal_iov_cache_layout_t *layout; /**< of the user's buffer; NULL: contiguous */
    opal_umrddt_gpu_memory_t memory; /**< of the user's buffer */
    bool mixed;                      /**< the buffer spans several allocations */
    bool in;                         /**< into the user's buffer */
    opal_umrddt_gpu_kind_t kind;     /**< of the packed bytes */
    unsigned char *bytes;            /**< the packed bytes, from stream position 0 */
    uint64_t address;  /**< of the user's buffer; of its first byte if it is contiguous */
    uint64_t position; /**< earlier bytes are copied, or in progress */
    uint64_t end;
} opal_umrddt_gpu_stream_copy_t;

/**
 * Start to copy the first @p length bytes of a buffer's stream, out of it or (@p in) into it.
 *
 * @param[out] copy    call opal_umrddt_gpu_stream_copy_test or _wait until it has ended. Nothing is
 *                     held on error
 * @param[in]  buf     the user's buffer; without a layout, the first byte of its data
 * @param[in]  layout  the copy takes over a reference, also on error; NULL: contiguous
 * @param[in]  where   on a device or mixed; a mixed buffer has a layout
 * @param[in]  kind    of @p bytes
 *
 * @retval OPAL_SUCCESS, or an error: no memory, or the driver's
 */
int opal_umrddt_gpu_stream_copy(opal_umrddt_gpu_stream_copy_t *copy, const void *buf,
                                opal_iov_cache_layout_t *layout,
                                const opal_umrddt_gpu_where_t *where, void *bytes,
                                opal_umrddt_gpu_kind_t kind, size_t length, bool in);

/**
 * Make progress on a copy.
 *
 * @retval OPAL_SUCCESS             it is complete; nothing is held
 * @retval OPAL_ERR_RESOURCE_BUSY   not yet complete
 * @return else an error; it has ended, and nothing is held
 */
int opal_umrddt_gpu_stream_copy_test(opal_umrddt_gpu_stream_copy_t *copy);

/** As opal_umrddt_gpu_stream_copy_test, but blocks until the end, without other progress. */
int opal_umrddt_gpu_stream_copy_wait(opal_umrddt_gpu_stream_copy_t *copy);

/* ---------------------------------------------------------------------------------------------
 * System memory, by the CPU (umrddt_gpu_stream_system.c)
 * ------------------------------------------------------------------------------------------- */

/** Copy the first @p length bytes of the packed stream of a buffer in system memory out or in.
 * @return bytes copied */
size_t opal_umrddt_gpu_stream_pack(const void *buf, size_t count, const opal_datatype_t *type,
                                   void *stream, size_t length);
size_t opal_umrddt_gpu_stream_unpack_pieces(void *buf, size_t count, const opal_datatype_t *type,
                                            const void *stream, size_t length);

/** Copy @p length bytes into the begin of a buffer, which is at least as large. */
static inline void opal_umrddt_gpu_stream_unpack(void *buf, size_t count,
                                                 const opal_datatype_t *type, const void *stream,
                                                 size_t length)
{
    if (OPAL_LIKELY(opal_umrddt_gpu_is_contiguous(type, count))) {
        if (0 != length) { /* the buffer may be NULL without */
            memcpy((char *) buf + type->true_lb, stream, length);
        }
    } else {
        (void) opal_umrddt_gpu_stream_unpack_pieces(buf, count, type, stream, length);
    }
}

END_C_DECLS

#endif /* OPAL_UMRDDT_GPU_STREAM_H */
