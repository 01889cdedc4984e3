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
 * Where buffers are: in memory that the CPU touches, or a GPU's.
 *
 * A buffer of one piece lies in one allocation, so what is true of its first byte is true of all. A
 * buffer in pieces usually does as well, and then a comparison with the bounds of that allocation
 * (or of a run of system memory, umrddt_gpu_plain.h) is all that is done; else each piece is looked
 * at. MPI_BOTTOM is no exception.
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

/** Where a buffer is. */
typedef struct mca_pml_umrddt_where_t {
    /** The allocation with the first byte of the stream; if mixed, the first that is a device's. */
    opal_umrddt_gpu_memory_t memory;
    /** Not all of it is there, and some of it is a device's: only staging can carry it. */
    bool mixed;
} mca_pml_umrddt_where_t;

/** True if the CPU, and a base PML that knows no GPU, must not touch all of it. */
static inline bool mca_pml_umrddt_on_device(const mca_pml_umrddt_where_t *where)
{
    return OPAL_UMRDDT_GPU_DEVICE == where->memory.kind;
}

/** True if a GPU's engine copies from and to it: the CPU must not touch all of it, or had better
 * not. */
static inline bool mca_pml_umrddt_on_gpu(const mca_pml_umrddt_where_t *where)
{
    return mca_pml_umrddt_on_device(where) || OPAL_UMRDDT_GPU_MANAGED == where->memory.kind;
}

/** True if it is memory of the engine's own device. */
static inline bool mca_pml_umrddt_is_home(const mca_pml_umrddt_where_t *where,
                                          const opal_umrddt_gpu_engine_t *engine)
{
    return mca_pml_umrddt_on_device(where)
           && opal_umrddt_gpu_engine_device(engine) == where->memory.device;
}

/** True if (count, datatype) is one piece of memory, which begins at the type's true lower bound.
 */
static inline bool mca_pml_umrddt_is_contiguous(const ompi_datatype_t *datatype, size_t count)
{
    return opal_datatype_is_contiguous_memory_layout(&datatype->super,
                                                     (int32_t) (1 < count ? 2 : 1));
}

/** As mca_pml_umrddt_known_run, of a buffer in pieces. Apart, so that callers need no stack. */
bool mca_pml_umrddt_known_run_pieces(const void *buf, size_t count,
                                     const ompi_datatype_t *datatype);

/** True if a buffer that is not empty, and whose first byte is in a known page of system memory, is
 * known to be there as a whole. */
static inline bool mca_pml_umrddt_known_run(const void *buf, size_t count,
                                            const ompi_datatype_t *datatype)
{
    return OPAL_LIKELY(mca_pml_umrddt_is_contiguous(datatype, count))
           || mca_pml_umrddt_known_run_pieces(buf, count, datatype);
}

/** Find the CUDA driver; leaves mca_pml_umrddt.gpu NULL where there is none. */
void mca_pml_umrddt_gpu_open(void);
void mca_pml_umrddt_gpu_close(void);

/**
 * Look where (buf, count, datatype) is: one classification, but one for each allocation or page
 * that is touched where the buffer is not known to lie in one. None without a driver, nor of an
 * empty buffer, nor as long as the application has not initialized CUDA.
 *
 * @param[out] where
 */
void mca_pml_umrddt_look(const void *buf, size_t count, ompi_datatype_t *datatype,
                         mca_pml_umrddt_where_t *where);

/** True if a buffer that is not known to be plain is on the heap or the stack; then it is known. */
bool mca_pml_umrddt_surely_system_new(const void *buf, size_t count,
                                      const ompi_datatype_t *datatype);

/**
 * True if a buffer is the CPU's for sure, told without the driver, which takes half a microsecond
 * for memory that it does not know: it is on the calling thread's stack, or in the heap below the
 * break, where no driver maps anything, or in a page that the driver was asked about before
 * (umrddt_gpu_plain.h), and not partly elsewhere. It may still be pinned. So is an empty buffer.
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
 * What the memory at an address is. If the driver fails, what the kernel says of it. What CUDA's
 * synchronous calls have left unfinished in it is waited for (opal_umrddt_gpu_settle).
 */
void mca_pml_umrddt_look_at(uint64_t address, opal_umrddt_gpu_memory_t *memory);

/**
 * As mca_pml_umrddt_look_at, of one piece of memory up to @p end, which may go on in another
 * allocation.
 *
 * @return where what @p memory says ends, above address and at most end
 */
uint64_t mca_pml_umrddt_look_along(uint64_t address, uint64_t end,
                                   opal_umrddt_gpu_memory_t *memory);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_GPU_H */
