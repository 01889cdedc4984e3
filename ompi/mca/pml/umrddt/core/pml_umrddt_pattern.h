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
 * The memory kind of a buffer, from the user's assertion or by a lookup. Functions of
 * pml_umrddt_pattern.c.
 */

#ifndef MCA_PML_UMRDDT_PATTERN_H
#define MCA_PML_UMRDDT_PATTERN_H

#include "ompi_config.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_comm.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"

BEGIN_C_DECLS

/** Value of the info key mpi_communication_pattern. */
typedef enum mca_pml_umrddt_pattern_t {
    MCA_PML_UMRDDT_PATTERN_UNREAD = 0,
    MCA_PML_UMRDDT_PATTERN_NONE = 1,
    MCA_PML_UMRDDT_PATTERN_CPU_TO_CPU = 2,
    MCA_PML_UMRDDT_PATTERN_CPU_TO_GPU = 3,
    MCA_PML_UMRDDT_PATTERN_GPU_TO_CPU = 4,
    MCA_PML_UMRDDT_PATTERN_GPU_TO_GPU = 5
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
           && mca_pml_umrddt_known_run(buf, count, datatype);
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

    return MCA_PML_UMRDDT_PATTERN_CPU_TO_CPU == pattern
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

END_C_DECLS

#endif /* MCA_PML_UMRDDT_PATTERN_H */
