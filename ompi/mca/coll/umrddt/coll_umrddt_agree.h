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
 * Agreements: whether all processes of a blocking collective have their buffers in GPU memory. Only
 * then its data goes from GPU to GPU. coll_umrddt_agree.c explains the schedule.
 */

#ifndef MCA_COLL_UMRDDT_AGREE_H
#define MCA_COLL_UMRDDT_AGREE_H

#include "coll_umrddt_module.h"
#include "coll_umrddt_stage.h"

BEGIN_C_DECLS

/** What a process states about its buffers of one call. An agreement is the bitwise AND. */
enum {
    MCA_COLL_UMRDDT_ALL_GPU = 0x1, /**< all data is in GPU memory, or there is none */
    MCA_COLL_UMRDDT_NO_GPU = 0x2,  /**< no buffer is in GPU memory that needs handling */
    MCA_COLL_UMRDDT_BYTES = 0x4,   /**< the receive buffer is contiguous */
    MCA_COLL_UMRDDT_REDUCES = 0x8, /**< reductions: this process can do it in GPU memory */
    MCA_COLL_UMRDDT_UNUSED = 0x100 /**< for mca_coll_umrddt_agree only */
};

/** Returns true if all processes of the communicator have this module, with the same parameters.
 * The same result in all of them, without messages. */
bool mca_coll_umrddt_agrees(mca_coll_umrddt_module_t *module, ompi_communicator_t *comm);

/** Returns true if a part of (count, type) has the minimum of bytes. */
static inline bool mca_coll_umrddt_is_large(size_t count, const ompi_datatype_t *type)
{
    return count * type->super.size >= mca_coll_umrddt_params.direct_min;
}

/**
 * Returns true if a call with parts of (count, type) is counted. All processes must get the same
 * result: MPI requires the same number of bytes in each, but not the same count and datatype.
 */
static inline bool mca_coll_umrddt_counts(const ompi_communicator_t *comm, size_t count,
                                          const ompi_datatype_t *type)
{
    return !OMPI_COMM_IS_INTER(comm) && mca_coll_umrddt_is_large(count, type);
}

/** As mca_coll_umrddt_counts. Parts without data are not counted: MPI functions may return early
 * then, in some processes. @param[in] most  MCA_COLL_UMRDDT_NEAR_* */
static inline bool mca_coll_umrddt_counts_near(const mca_coll_umrddt_module_t *module,
                                               const ompi_communicator_t *comm, int most,
                                               size_t count, const ompi_datatype_t *type)
{
    return mca_coll_umrddt_counts(comm, count, type)
           || (module->near <= most && 0 < count * type->super.size);
}

/** Count a call. @return true: there is an agreement at this call, of all processes */
static inline bool mca_coll_umrddt_due(mca_coll_umrddt_module_t *module,
                                       mca_coll_umrddt_kind_t kind)
{
    return OPAL_UNLIKELY(0 == --module->schedules[kind].left);
}

/** Returns true if this process queries its buffers. */
static inline bool mca_coll_umrddt_looks(mca_coll_umrddt_module_t *module,
                                         ompi_communicator_t *comm)
{
    return opal_umrddt_gpu_in_use() && mca_coll_umrddt_requests(module, comm);
}

/** Returns true if @p all, the result of an agreement, allows to send from GPU to GPU. */
static inline bool mca_coll_umrddt_is_direct(unsigned all)
{
    return MCA_COLL_UMRDDT_ALL_GPU == (all & (MCA_COLL_UMRDDT_ALL_GPU | MCA_COLL_UMRDDT_NO_GPU));
}

/** Begin and end to keep what other processes have published in the modex. */
void mca_coll_umrddt_agree_open(void);
void mca_coll_umrddt_agree_close(void);

/**
 * Agree with all processes of the communicator, by the saved allreduce. Only after
 * mca_coll_umrddt_due has returned true for the call.
 *
 * @param[in]  mine  what this process states
 * @param[out] all   what all processes state; 0: they cannot agree on this communicator
 *
 * @return OMPI_SUCCESS, or the error of the allreduce
 */
int mca_coll_umrddt_agree(mca_coll_umrddt_module_t *module, ompi_communicator_t *comm,
                          mca_coll_umrddt_kind_t kind, unsigned mine, unsigned *all);

/**
 * For a call with an agreement: query the buffers, agree, and create a stage if the call is neither
 * direct nor passed through.
 *
 * @param[in,out] sides  the work of a reduction is set if the call does it in GPU memory
 * @param[out] stage  NULL: the call is direct or passed through
 * @param[out] all    0: the call is not direct; else the result of the agreement
 *
 * @return as mca_coll_umrddt_stage_new, or the error of the agreement
 */
int mca_coll_umrddt_agree_and_stage(mca_coll_umrddt_module_t *module, ompi_communicator_t *comm,
                                    mca_coll_umrddt_kind_t kind, mca_coll_umrddt_sides_t *sides,
                                    mca_coll_umrddt_stage_t **stage, unsigned *all);

END_C_DECLS

#endif /* MCA_COLL_UMRDDT_AGREE_H */
