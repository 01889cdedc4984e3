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
 * holds for MPI_BOTTOM.
 */

#ifndef MCA_PML_UMRDDT_GPU_H
#define MCA_PML_UMRDDT_GPU_H

#include "ompi_config.h"

#include <stdbool.h>
#include <stddef.h>

#include "ompi/datatype/ompi_datatype.h"

#include "opal/mca/common/umrddt_gpu/driver/umrddt_gpu_driver.h"
#include "opal/mca/common/umrddt_gpu/driver/umrddt_gpu_plain.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_engine.h"

BEGIN_C_DECLS

/** Memory kind of a buffer. */
typedef struct mca_pml_umrddt_where_t {
    /** Allocation with the first byte of the data; if mixed, the first one in device memory. */
    opal_umrddt_gpu_memory_t memory;
    /** The buffer spans several memories, some of them on a device: only staging can carry it. */
    bool mixed;
} mca_pml_umrddt_where_t;

/** Returns true if neither the CPU nor a base PML without CUDA support may access all of it. */
static inline bool mca_pml_umrddt_on_device(const mca_pml_umrddt_where_t *where)
{
    return OPAL_UMRDDT_GPU_DEVICE == where->memory.kind;
}

/** Returns true if the engine of a GPU copies from and to it: the CPU cannot access it, or only
 * slowly. */
static inline bool mca_pml_umrddt_on_gpu(const mca_pml_umrddt_where_t *where)
{
    return mca_pml_umrddt_on_device(where) || OPAL_UMRDDT_GPU_MANAGED == where->memory.kind;
}

/** Returns true if it is memory of the engine's own device. */
static inline bool mca_pml_umrddt_is_home(const mca_pml_umrddt_where_t *where,
                                          const opal_umrddt_gpu_engine_t *engine)
{
    return mca_pml_umrddt_on_device(where)
           && opal_umrddt_gpu_engine_device(engine) == where->memory.device;
}

/**
 * Returns true if (count, datatype) is one piece of memory, at the true lower bound of the type.
 */
static inline bool mca_pml_umrddt_is_contiguous(const ompi_datatype_t *datatype, size_t count)
{
    return opal_datatype_is_contiguous_memory_layout(&datatype->super,
                                                     (int32_t) (1 < count ? 2 : 1));
}

/** mca_pml_umrddt_known_run for a buffer in pieces. Out of line, so that callers need no stack. */
bool mca_pml_umrddt_known_run_pieces(const void *buf, size_t count,
                                     const ompi_datatype_t *datatype);

/** Returns true if a non-empty buffer, whose first byte is in a known page of system memory, is
 * known to be system memory as a whole. */
static inline bool mca_pml_umrddt_known_run(const void *buf, size_t count,
                                            const ompi_datatype_t *datatype)
{
    return OPAL_LIKELY(mca_pml_umrddt_is_contiguous(datatype, count))
           || mca_pml_umrddt_known_run_pieces(buf, count, datatype);
}

/** Find the CUDA driver. Without it mca_pml_umrddt.gpu stays NULL. */
void mca_pml_umrddt_gpu_open(void);
void mca_pml_umrddt_gpu_close(void);

/**
 * Look up the memory kind of (buf, count, datatype). Costs one query, or one for each allocation or
 * page if the buffer is not known to lie in one. No query without a driver, for an empty buffer, or
 * before the application has initialized CUDA.
 *
 * @param[out] where  the memory kind
 */
void mca_pml_umrddt_look(const void *buf, size_t count, ompi_datatype_t *datatype,
                         mca_pml_umrddt_where_t *where);

/** Returns true if a buffer that is not known to be system memory is on the heap or the stack. Then
 * it is known. */
bool mca_pml_umrddt_surely_system_new(const void *buf, size_t count,
                                      const ompi_datatype_t *datatype);

/**
 * Returns true if a buffer is certainly system memory. Does not query the driver, which takes half
 * a microsecond for unknown memory. The buffer is on the calling thread's stack, or on the heap
 * below the break, where no driver maps memory, or in a page that the driver was queried about
 * before (umrddt_gpu_plain.h), and not partly elsewhere. It may be pinned. True for an empty
 * buffer.
 */
static inline bool mca_pml_umrddt_surely_system(const void *buf, size_t count,
                                                const ompi_datatype_t *datatype)
{
    uintptr_t address = (uintptr_t) buf + (uintptr_t) datatype->super.true_lb;

    return 0 == count * datatype->super.size
           || OPAL_LIKELY(opal_umrddt_gpu_plain(address)
                          && mca_pml_umrddt_known_run(buf, count, datatype))
           || mca_pml_umrddt_surely_system_new(buf, count, datatype);
}

/**
 * Look up the memory at an address. If the driver fails, uses what the kernel reports. Waits for
 * work that CUDA's synchronous calls have left unfinished in it (opal_umrddt_gpu_settle).
 */
void mca_pml_umrddt_look_at(uint64_t address, opal_umrddt_gpu_memory_t *memory);

/**
 * mca_pml_umrddt_look_at for memory up to @p end, which may extend into another allocation.
 *
 * @return end of the range that @p memory describes, above address and at most end
 */
uint64_t mca_pml_umrddt_look_along(uint64_t address, uint64_t end,
                                   opal_umrddt_gpu_memory_t *memory);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_GPU_H */
