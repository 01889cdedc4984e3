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
 * Implements the rule which GPU memory the base PML may receive. Read pml_umrddt_base_gpu.h first.
 */

#include "ompi_config.h"

#include <string.h>

#include "ompi/mca/pml/umrddt/core/pml_umrddt_base_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_comm.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"

bool mca_pml_umrddt_base_gpu_aware(const char *base)
{
    return umrddt_knows_cuda() && (0 != strcmp("ucx", base) || opal_umrddt_gpu_ucx_aware());
}

void mca_pml_umrddt_base_gpu_open(void)
{
    const mca_pml_umrddt_params_t *params = &mca_pml_umrddt.params;

    switch (params->base_gpu) {
    case MCA_PML_UMRDDT_GPU_BASE_YES:
        mca_pml_umrddt.base_gpu = MCA_PML_UMRDDT_BASE_GPU_ALL;
        break;
    case MCA_PML_UMRDDT_GPU_BASE_NO:
        mca_pml_umrddt.base_gpu = MCA_PML_UMRDDT_BASE_GPU_NONE;
        break;
    default:
        mca_pml_umrddt.base_gpu = mca_pml_umrddt_base_gpu_aware(
                                      mca_pml_umrddt.host_component.pmlm_version.mca_component_name)
                                      ? MCA_PML_UMRDDT_BASE_GPU_SAFE
                                      : MCA_PML_UMRDDT_BASE_GPU_NONE;
    }
    mca_pml_umrddt.base_aware = umrddt_knows_cuda();
    mca_pml_umrddt.base_maps =
        0 == strcmp("ucx", mca_pml_umrddt.host_component.pmlm_version.mca_component_name);
    mca_pml_umrddt.takes_contiguous = MCA_PML_UMRDDT_CONTIGUOUS_TAKE == params->contiguous
                                      || (MCA_PML_UMRDDT_CONTIGUOUS_AUTO == params->contiguous
                                          && (MCA_PML_UMRDDT_BASE_GPU_ALL != mca_pml_umrddt.base_gpu
                                              || 0 < params->contiguous_min));
    mca_pml_umrddt.declines_far = MCA_PML_UMRDDT_BASE_GPU_SAFE == mca_pml_umrddt.base_gpu
                                  && MCA_PML_UMRDDT_CONTIGUOUS_AUTO == params->contiguous
                                  && 0 == params->contiguous_min;
    mca_pml_umrddt.contiguous_from =
        params->min_size < params->contiguous_min ? params->contiguous_min : params->min_size;
    mca_pml_umrddt.looks =
        MCA_PML_UMRDDT_BASE_GPU_ALL != mca_pml_umrddt.base_gpu || mca_pml_umrddt.takes_contiguous;
}

void mca_pml_umrddt_base_gpu_close(void)
{
    mca_pml_umrddt.base_gpu = MCA_PML_UMRDDT_BASE_GPU_ALL;
    mca_pml_umrddt.takes_contiguous = false;
    mca_pml_umrddt.declines_far = false;
    mca_pml_umrddt.looks = false;
}

bool mca_pml_umrddt_base_touches_managed(void)
{
    /* With several threads, a thread without a context may continue the message. */
    return MCA_PML_UMRDDT_BASE_GPU_SAFE == mca_pml_umrddt.base_gpu && !opal_using_threads()
           && opal_umrddt_gpu_has_context();
}

/** Returns true if the base PML is to carry contiguous messages to or from this rank if it can. */
static bool base_wanted(mca_pml_umrddt_comm_t *comm, int rank, int tag)
{
    const bool internal = mca_pml_umrddt_is_internal(tag);
    const mca_pml_umrddt_peer_t *peer;
    /* The base PML may open CUDA IPC handles of memory that umrddt has open, too. */
    bool both_map = mca_pml_umrddt.base_maps && 0 != (MCA_PML_UMRDDT_BITS_COPY & comm->schemes);

    if (comm->bypass || MCA_PML_UMRDDT_CONTIGUOUS_DEFER == mca_pml_umrddt.params.contiguous
        || (internal && !both_map)) {
        return true;
    }
    peer = mca_pml_umrddt_peer(comm, rank);
    return NULL != peer && !OPAL_PROC_ON_LOCAL_NODE(peer->proc->proc_flags);
}

bool mca_pml_umrddt_base_given(mca_pml_umrddt_comm_t *comm, const opal_umrddt_gpu_where_t *where,
                               const void *buf, size_t count, const ompi_datatype_t *datatype,
                               int rank, int tag)
{
    const opal_umrddt_gpu_memory_t *memory = &where->memory;
    uint64_t offset =
        (uint64_t) (uintptr_t) buf + (uint64_t) datatype->super.true_lb - memory->base;

    /* With several threads, a thread without a context may continue the message. */
    return MCA_PML_UMRDDT_BASE_GPU_SAFE == mca_pml_umrddt.base_gpu && NULL != comm
           && !opal_using_threads() && !where->mixed
           && mca_pml_umrddt_is_contiguous(datatype, count)
           && offset < memory->size
           /* Open MPI looks up the address itself, regardless of the lower bound. */
           && (uint64_t) (uintptr_t) buf - memory->base < memory->size
           && count * datatype->super.size <= memory->size - offset && base_wanted(comm, rank, tag)
           && opal_umrddt_gpu_base_takes(memory);
}
