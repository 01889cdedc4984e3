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
 * The memory kind of buffers: system memory or GPU memory.
 *
 * A contiguous buffer lies in one allocation, so its first byte determines the kind. A buffer in
 * pieces usually does, too. Then a comparison with the bounds of the allocation, or of a run of
 * system memory (umrddt_gpu_plain.h), is sufficient. Otherwise each piece is looked up. The same
 * holds for buffers at address 0 with absolute displacements.
 *
 * Callable from any thread, without a lock.
 */

#ifndef OPAL_UMRDDT_GPU_MEMORY_H
#define OPAL_UMRDDT_GPU_MEMORY_H

#include "opal_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opal/datatype/iov_cache/iov_cache.h"
#include "opal/datatype/opal_datatype.h"
#include "opal/mca/common/umrddt_gpu/driver/umrddt_gpu_driver.h"
#include "opal/mca/common/umrddt_gpu/driver/umrddt_gpu_plain.h"

BEGIN_C_DECLS

/** Memory kind of a buffer. */
typedef struct opal_umrddt_gpu_where_t {
    /** Allocation with the first byte of the data; if mixed, the first one in device memory. */
    opal_umrddt_gpu_memory_t memory;
    /** The buffer spans several memories, some of them on a device: only staging can carry it. */
    bool mixed;
} opal_umrddt_gpu_where_t;

/** Returns true if neither the CPU nor a library without CUDA support may access all of it. */
static inline bool opal_umrddt_gpu_on_device(const opal_umrddt_gpu_where_t *where)
{
    return OPAL_UMRDDT_GPU_DEVICE == where->memory.kind;
}

/** Returns true if the engine of a GPU copies from and to it: the CPU cannot access it, or only
 * slowly. */
static inline bool opal_umrddt_gpu_on_gpu(const opal_umrddt_gpu_where_t *where)
{
    return opal_umrddt_gpu_on_device(where) || OPAL_UMRDDT_GPU_MANAGED == where->memory.kind;
}

/** Returns true if (count, type) is one piece of memory, at the true lower bound of the type. */
static inline bool opal_umrddt_gpu_is_contiguous(const opal_datatype_t *type, size_t count)
{
    return opal_datatype_is_contiguous_memory_layout(type, (int32_t) (1 < count ? 2 : 1));
}

/** Find out where the heap begins. Without this call no buffer is known to be on the heap. */
void opal_umrddt_gpu_memory_open(void);

/** opal_umrddt_gpu_known_run for a buffer in pieces. Out of line, so that callers need no stack. */
bool opal_umrddt_gpu_known_run_pieces(const void *buf, size_t count, const opal_datatype_t *type);

/** Returns true if a non-empty buffer, whose first byte is in a known page of system memory, is
 * known to be system memory as a whole. */
static inline bool opal_umrddt_gpu_known_run(const void *buf, size_t count,
                                             const opal_datatype_t *type)
{
    return OPAL_LIKELY(opal_umrddt_gpu_is_contiguous(type, count))
           || opal_umrddt_gpu_known_run_pieces(buf, count, type);
}

/** Returns true if a buffer that is not known to be system memory is on the heap or the stack. Then
 * it is known. */
bool opal_umrddt_gpu_surely_system_new(const void *buf, size_t count, const opal_datatype_t *type);

/**
 * Returns true if a buffer is certainly system memory. Does not query the driver, which takes half
 * a microsecond for unknown memory. The buffer is on the calling thread's stack, or on the heap
 * below the break, where no driver maps memory, or in a page that the driver was queried about
 * before (umrddt_gpu_plain.h), and not partly elsewhere. It may be pinned. True for an empty
 * buffer.
 */
static inline bool opal_umrddt_gpu_surely_system(const void *buf, size_t count,
                                                 const opal_datatype_t *type)
{
    uintptr_t address = (uintptr_t) buf + (uintptr_t) type->true_lb;

    return 0 == count * type->size
           || OPAL_LIKELY(opal_umrddt_gpu_plain(address)
                          && opal_umrddt_gpu_known_run(buf, count, type))
           || opal_umrddt_gpu_surely_system_new(buf, count, type);
}

/**
 * Look up the memory at an address. If the driver fails, uses what the kernel reports. Waits for
 * work that CUDA's synchronous calls have left unfinished in it (opal_umrddt_gpu_sync_default).
 */
void opal_umrddt_gpu_look_at(uint64_t address, opal_umrddt_gpu_memory_t *memory);

/**
 * Returns true if the driver reports an address as pageable system memory, or as system memory of a
 * context, which the CPU can access. False if the driver fails. One driver query, none for a known
 * page. Unlike opal_umrddt_gpu_look_at, neither waits for work nor uses the thread's cache of
 * allocations, and its query is not counted.
 */
bool opal_umrddt_gpu_is_system(uint64_t address);

/**
 * opal_umrddt_gpu_look_at for memory up to @p end, which may extend into another allocation.
 *
 * @return end of the range that @p memory describes, above address and at most end
 */
uint64_t opal_umrddt_gpu_look_along(uint64_t address, uint64_t end,
                                    opal_umrddt_gpu_memory_t *memory);

/**
 * Look up the memory kind of (buf, count, type); the driver is loaded. Costs one query, or a few if
 * the buffer is not known to lie in one allocation. No query for an empty buffer, or before the
 * application has initialized CUDA.
 *
 * @param[out] where  the memory kind; if the result is false, that of the first byte
 *
 * @return false: the buffer may span several allocations; opal_umrddt_gpu_look_pieces must follow
 */
bool opal_umrddt_gpu_look(const void *buf, size_t count, const opal_datatype_t *type,
                          opal_umrddt_gpu_where_t *where);

/**
 * As opal_umrddt_gpu_look, for a buffer in one allocation of GPU memory that this thread has looked
 * up before. This fast path of repeated messages costs less than opal_umrddt_gpu_surely_system.
 *
 * @return false: it is no such buffer; where->memory is unchanged
 */
bool opal_umrddt_gpu_look_again(const void *buf, size_t count, const opal_datatype_t *type,
                                opal_umrddt_gpu_where_t *where);

/** Look up all pieces of a buffer, one query for each allocation or page. @param[in,out] where  as
 * set by opal_umrddt_gpu_look */
void opal_umrddt_gpu_look_pieces(const void *buf, const opal_iov_cache_layout_t *layout,
                                 opal_umrddt_gpu_where_t *where);

END_C_DECLS

#endif /* OPAL_UMRDDT_GPU_MEMORY_H */
