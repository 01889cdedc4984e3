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
 * The rule which GPU memory is passed to the base PML unchanged. All decisions of this kind are
 * made here. docs/gpu.rst has the rule as a table.
 *
 * A base PML without CUDA support gets no GPU memory. One with CUDA support (pml_umrddt_base_gpu =
 * auto) uses the current context or makes one current. It crashes on memory without a context and
 * on datatypes over several memories. It gets memory that is safe for it where umrddt is not
 * better: for remote nodes, and for internal messages of collectives. pml/ucx gets none of these
 * within a node if umrddt may use CUDA IPC there: UCX may then abort (docs/notes.rst).
 */

#ifndef MCA_PML_UMRDDT_BASE_GPU_H
#define MCA_PML_UMRDDT_BASE_GPU_H

#include "ompi_config.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_comm.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"

BEGIN_C_DECLS

/** Set the fields base_gpu to contiguous_from of mca_pml_umrddt, from the parameters, the selected
 * base PML and this Open MPI. Called by mca_pml_umrddt_gpu_open and umrddt_info. */
void mca_pml_umrddt_base_gpu_open(void);
void mca_pml_umrddt_base_gpu_close(void);

/** Returns true if this Open MPI with this base PML supports GPU memory at all. */
bool mca_pml_umrddt_base_gpu_aware(const char *base);

/** mca_pml_umrddt_base_touches for managed memory and a CUDA-aware Open MPI. */
bool mca_pml_umrddt_base_touches_managed(void);

/** Returns true if the base PML may get a buffer in this memory regardless of its layout: system
 * memory, and managed memory (which a CUDA-aware Open MPI copies in the current context). */
static inline bool mca_pml_umrddt_base_touches(const opal_umrddt_gpu_where_t *where)
{
    if (OPAL_LIKELY(!opal_umrddt_gpu_on_gpu(where))
        || MCA_PML_UMRDDT_BASE_GPU_ALL == mca_pml_umrddt.base_gpu) {
        return true;
    }
    return !opal_umrddt_gpu_on_device(where)
           && (!mca_pml_umrddt.base_aware || mca_pml_umrddt_base_touches_managed());
}

/**
 * The rule for device memory. Returns true if this thread may pass the buffer to the base PML now.
 *
 * @param[in] comm  of which @p rank is the other side; NULL: a communicator that is passed through
 */
bool mca_pml_umrddt_base_given(mca_pml_umrddt_comm_t *comm, const opal_umrddt_gpu_where_t *where,
                               const void *buf, size_t count, const ompi_datatype_t *datatype,
                               int rank, int tag);

/**
 * The rule for packed chunks in GPU memory of umrddt's own (pack-gdr without an HCA). Returns true
 * if the base PML may carry them to or from a peer: to a remote node, or if the user has selected
 * pack-gdr by name. Any thread.
 */
static inline bool mca_pml_umrddt_base_given_chunks(const mca_pml_umrddt_comm_t *comm,
                                                    const mca_pml_umrddt_peer_t *peer)
{
    /* With several threads, a thread without a context may continue the message. */
    return (MCA_PML_UMRDDT_BASE_GPU_ALL == mca_pml_umrddt.base_gpu
            || (MCA_PML_UMRDDT_BASE_GPU_SAFE == mca_pml_umrddt.base_gpu && !opal_using_threads()))
           && (0 != (MCA_PML_UMRDDT_BITS_GPU_WIRE & MCA_PML_UMRDDT_BIT(comm->scheme))
               || !OPAL_PROC_ON_LOCAL_NODE(peer->proc->proc_flags));
}

/** As mca_pml_umrddt_base_given. A receive that may match an envelope must have room for it. */
static inline bool mca_pml_umrddt_base_given_recv(const ompi_communicator_t *comm,
                                                  const opal_umrddt_gpu_where_t *where,
                                                  const void *buf, size_t count,
                                                  const ompi_datatype_t *datatype, int src, int tag)
{
    return MCA_PML_UMRDDT_BASE_GPU_SAFE == mca_pml_umrddt.base_gpu
           && (mca_pml_umrddt_is_internal(tag)
               || MCA_PML_UMRDDT_ENVELOPE <= count * datatype->super.size)
           && mca_pml_umrddt_base_given(mca_pml_umrddt_comm_find(comm), where, buf, count, datatype,
                                        src, tag);
}

END_C_DECLS

#endif /* MCA_PML_UMRDDT_BASE_GPU_H */
