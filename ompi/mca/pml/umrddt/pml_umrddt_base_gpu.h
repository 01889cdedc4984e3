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
 * The rule of which GPU memory the base PML is given as it is. Everything that asks "may the base
 * PML have this buffer?" asks here. docs/gpu.rst has the rule as a table.
 *
 * A base PML without CUDA is given none. One with CUDA (pml_umrddt_base_gpu = auto) cannot be
 * trusted with all: it works in the calling thread's current context, makes one current where there
 * is none, and crashes on memory without a context (pools, mapped memory) and on types over several
 * memories. Between GPUs of one node umrddt is as quick as it or quicker. So it is given memory
 * that is safe for it, where umrddt has nothing better: for processes of other nodes, which it may
 * reach by GPUDirect RDMA, and for internal messages of collectives.
 */

#ifndef MCA_PML_UMRDDT_BASE_GPU_H
#define MCA_PML_UMRDDT_BASE_GPU_H

#include "ompi_config.h"

#include "pml_umrddt.h"

BEGIN_C_DECLS

/**
 * Set what mca_pml_umrddt says of the base PML and GPU memory (base_gpu to contiguous_from), by the
 * parameters, the selected base PML and this Open MPI. Of mca_pml_umrddt_gpu_open and umrddt_info.
 */
void mca_pml_umrddt_base_gpu_open(void);
void mca_pml_umrddt_base_gpu_close(void);

/** True if this Open MPI, with this base PML, takes GPU memory at all. */
bool mca_pml_umrddt_base_gpu_aware(const char *base);

/** As mca_pml_umrddt_base_touches, of managed memory and an Open MPI with CUDA. */
bool mca_pml_umrddt_base_touches_managed(void);

/**
 * True if the base PML may be given any buffer in this memory, whatever its layout: the CPU's, and
 * managed memory. An Open MPI with CUDA copies managed memory as a device's, which takes a current
 * context.
 */
static inline bool mca_pml_umrddt_base_touches(const mca_pml_umrddt_where_t *where)
{
    if (OPAL_LIKELY(!mca_pml_umrddt_on_gpu(where))
        || MCA_PML_UMRDDT_BASE_GPU_ALL == mca_pml_umrddt.base_gpu) {
        return true;
    }
    return !mca_pml_umrddt_on_device(where)
           && (!mca_pml_umrddt.base_aware || mca_pml_umrddt_base_touches_managed());
}

/**
 * The rule of a message in a device's memory: true if the base PML is given the buffer, by a call
 * of this thread's, now.
 *
 * @param[in] comm  where @p rank is the other side; NULL: on a communicator that is not ours
 * @param[in] rank  may be OMPI_ANY_SOURCE
 * @param[in] tag   may be OMPI_ANY_TAG
 */
bool mca_pml_umrddt_base_given(mca_pml_umrddt_comm_t *comm, const mca_pml_umrddt_where_t *where,
                               const void *buf, size_t count, const ompi_datatype_t *datatype,
                               int rank, int tag);

/** As mca_pml_umrddt_base_given, of a receive: one that an envelope may come to has room for it. */
static inline bool mca_pml_umrddt_base_given_recv(const ompi_communicator_t *comm,
                                                  const mca_pml_umrddt_where_t *where,
                                                  const void *buf, size_t count,
                                                  const ompi_datatype_t *datatype, int src, int tag)
{
    return MCA_PML_UMRDDT_BASE_GPU_SAFE == mca_pml_umrddt.base_gpu
           && ((0 > tag && OMPI_ANY_TAG != tag)
               || MCA_PML_UMRDDT_ENVELOPE <= count * datatype->super.size)
           && mca_pml_umrddt_base_given(mca_pml_umrddt_comm_find(comm), where, buf, count, datatype,
                                        src, tag);
}

END_C_DECLS

#endif /* MCA_PML_UMRDDT_BASE_GPU_H */
