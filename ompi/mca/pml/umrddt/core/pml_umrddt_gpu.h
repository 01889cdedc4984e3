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
 * The memory kind of buffers (umrddt_gpu_memory.h, read first), by MPI datatypes: from the user's
 * assertion or by a lookup. And the GPU part of the component.
 */

#ifndef MCA_PML_UMRDDT_GPU_H
#define MCA_PML_UMRDDT_GPU_H

#include "ompi_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "ompi/datatype/ompi_datatype.h"

#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_engine.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_memory.h"

#include "ompi/mca/pml/umrddt/pml_umrddt.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_comm.h"

BEGIN_C_DECLS

/** Returns true if it is memory of the engine's own device. */
static inline bool mca_pml_umrddt_on_engine_device(const opal_umrddt_gpu_where_t *where,
                                                   const opal_umrddt_gpu_engine_t *engine)
{
    return opal_umrddt_gpu_on_device(where)
           && opal_umrddt_gpu_engine_device(engine) == where->memory.device;
}

/** Returns true if (count, datatype) is one piece of memory, at the true lower bound of the type.
 */
static inline bool mca_pml_umrddt_is_contiguous(const ompi_datatype_t *datatype, size_t count)
{
    return opal_umrddt_gpu_is_contiguous(&datatype->super, count);
}

/** Find the CUDA driver. Without it mca_pml_umrddt.gpu stays NULL. */
void mca_pml_umrddt_gpu_open(void);
void mca_pml_umrddt_gpu_close(void);

/** Offer the calls of pml_umrddt_calls.h to libumrddt_mpi, if there are a CUDA driver and the
 * library; take them back before MPI is finalized. */
void mca_pml_umrddt_calls_open(void);
void mca_pml_umrddt_calls_close(void);

/** mca_pml_umrddt_look for a buffer that may span several memories. */
void mca_pml_umrddt_look_pieces(const void *buf, size_t count, ompi_datatype_t *datatype,
                                opal_umrddt_gpu_where_t *where);

/**
 * Look up the memory kind of (buf, count, datatype). Costs one query, or one for each allocation or
 * page if the buffer is not known to lie in one. No query without a driver, for an empty buffer, or
 * before the application has initialized CUDA.
 *
 * @param[out] where  the memory kind
 */
static inline void mca_pml_umrddt_look(const void *buf, size_t count, ompi_datatype_t *datatype,
                                       opal_umrddt_gpu_where_t *where)
{
    if (NULL == mca_pml_umrddt.gpu) {
        memset(where, 0, sizeof(*where));
    } else if (OPAL_UNLIKELY(!opal_umrddt_gpu_look(buf, count, &datatype->super, where))) {
        mca_pml_umrddt_look_pieces(buf, count, datatype, where);
    }
}

/** Value of the info key mpi_communication_pattern, or of mpi_assert_memory_alloc_kinds, which says
 * nothing about the other process's buffers. */
typedef enum mca_pml_umrddt_pattern_t {
    MCA_PML_UMRDDT_PATTERN_UNREAD = 0,
    MCA_PML_UMRDDT_PATTERN_NONE = 1,
    MCA_PML_UMRDDT_PATTERN_CPU_TO_CPU = 2,
    MCA_PML_UMRDDT_PATTERN_CPU_TO_GPU = 3,
    MCA_PML_UMRDDT_PATTERN_GPU_TO_CPU = 4,
    MCA_PML_UMRDDT_PATTERN_GPU_TO_GPU = 5,
    MCA_PML_UMRDDT_PATTERN_SYSTEM = 6 /**< this process uses system memory only */
} mca_pml_umrddt_pattern_t;

typedef enum mca_pml_umrddt_side_t {
    MCA_PML_UMRDDT_SENDER = 0,
    MCA_PML_UMRDDT_RECEIVER = 1
} mca_pml_umrddt_side_t;

/** Read the pattern of a communicator for the first time; never MCA_PML_UMRDDT_PATTERN_UNREAD. */
mca_pml_umrddt_pattern_t mca_pml_umrddt_pattern_read(mca_pml_umrddt_comm_t *comm);

/** Returns true if assertions are verified. */
static inline bool mca_pml_umrddt_checks_pattern(void)
{
    return UMRDDT_ENABLE_DEBUG || mca_pml_umrddt.params.check_pattern;
}

/**
 * Returns true if a non-empty buffer is known to be system memory and assertions are not verified.
 * Messages that are passed through call this first. False means unknown.
 */
static inline bool mca_pml_umrddt_known_system(const void *buf, size_t count,
                                               const ompi_datatype_t *datatype)
{
    return !mca_pml_umrddt_checks_pattern()
           && opal_umrddt_gpu_plain((uintptr_t) buf + (uintptr_t) datatype->super.true_lb)
           && opal_umrddt_gpu_known_run(buf, count, &datatype->super);
}

/** Get the pattern that the user has asserted; never MCA_PML_UMRDDT_PATTERN_UNREAD. */
static inline mca_pml_umrddt_pattern_t mca_pml_umrddt_pattern(mca_pml_umrddt_comm_t *comm)
{
    int pattern = __atomic_load_n(&comm->pattern, __ATOMIC_RELAXED);

    return OPAL_LIKELY(MCA_PML_UMRDDT_PATTERN_UNREAD != pattern)
               ? (mca_pml_umrddt_pattern_t) pattern
               : mca_pml_umrddt_pattern_read(comm);
}

/** Returns true if the user asserts that buffers of this side are system memory, so that no lookup
 * is needed. */
static inline bool mca_pml_umrddt_asserted_system(mca_pml_umrddt_comm_t *comm,
                                                  mca_pml_umrddt_side_t side)
{
    mca_pml_umrddt_pattern_t pattern = mca_pml_umrddt_pattern(comm);

    return MCA_PML_UMRDDT_PATTERN_CPU_TO_CPU == pattern || MCA_PML_UMRDDT_PATTERN_SYSTEM == pattern
           || (MCA_PML_UMRDDT_SENDER == side ? MCA_PML_UMRDDT_PATTERN_CPU_TO_GPU
                                             : MCA_PML_UMRDDT_PATTERN_GPU_TO_CPU)
                  == pattern;
}

/** Slow path of mca_pml_umrddt_memory_of: a lookup or a check is needed. */
mca_pml_umrddt_memory_t mca_pml_umrddt_memory_find(mca_pml_umrddt_comm_t *comm, const void *buf,
                                                   size_t count, ompi_datatype_t *datatype,
                                                   mca_pml_umrddt_side_t side,
                                                   opal_umrddt_gpu_where_t *where);

/**
 * Get the memory kind of a buffer, from the user's assertion or by a lookup, which is counted. A
 * wrong assertion is detected only with pml_umrddt_check_pattern or in a debug build. Then the user
 * gets one message and the lookup counts. An assertion of GPU memory saves no lookup if there is a
 * GPU, because the copy needs the result.
 *
 * @param[out] where  of the buffer; system memory without a lookup
 *
 * @return GPU for device memory, managed memory and mixed buffers
 */
static inline mca_pml_umrddt_memory_t mca_pml_umrddt_memory_of(mca_pml_umrddt_comm_t *comm,
                                                               const void *buf, size_t count,
                                                               ompi_datatype_t *datatype,
                                                               mca_pml_umrddt_side_t side,
                                                               opal_umrddt_gpu_where_t *where)
{
    if (OPAL_LIKELY(NULL == mca_pml_umrddt.gpu
                    && MCA_PML_UMRDDT_PATTERN_NONE == mca_pml_umrddt_pattern(comm))) {
        /* no GPU, no lookup */
        MCA_PML_UMRDDT_COUNT(memory_queries);
        where->memory.kind = OPAL_UMRDDT_GPU_HOST;
        where->mixed = false;
        return MCA_PML_UMRDDT_MEMORY_SYSTEM;
    }
    return mca_pml_umrddt_memory_find(comm, buf, count, datatype, side, where);
}

/** As mca_pml_umrddt_memory_of, for GPU memory that this thread has looked up before. Does not read
 * the assertion, which may still be set. @return false: no such memory, unread, or asserted */
static inline bool mca_pml_umrddt_memory_again(mca_pml_umrddt_comm_t *comm, const void *buf,
                                               size_t count, const ompi_datatype_t *datatype,
                                               opal_umrddt_gpu_where_t *where)
{
    if (NULL == mca_pml_umrddt.gpu
        || MCA_PML_UMRDDT_PATTERN_NONE != __atomic_load_n(&comm->pattern, __ATOMIC_RELAXED)
        || !opal_umrddt_gpu_look_again(buf, count, &datatype->super, where)) {
        return false;
    }
    MCA_PML_UMRDDT_COUNT(memory_queries);
    return true;
}

END_C_DECLS

#endif /* MCA_PML_UMRDDT_GPU_H */
