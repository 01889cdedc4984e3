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
 * Registration of GPU memory with an HCA.
 */

#ifndef MCA_BTL_UMR_MR_GPU_H
#define MCA_BTL_UMR_MR_GPU_H

#include "opal/mca/btl/umr/btl_umr_types.h"
#include "opal/mca/common/umrddt_gpu/rdma/umrddt_gpu_rdma.h"

BEGIN_C_DECLS

/** How memory of one GPU is registered with one HCA. */
typedef enum mca_btl_umr_gpu_registration_t {
    MCA_BTL_UMR_GPU_UNTRIED,
    MCA_BTL_UMR_GPU_BY_DMABUF,
    MCA_BTL_UMR_GPU_BY_ADDRESS, /**< by the kernel module nvidia-peermem or an equivalent */
    MCA_BTL_UMR_GPU_NOT         /**< neither; the user got a message */
} mca_btl_umr_gpu_registration_t;

#define MCA_BTL_UMR_GPU_BUCKETS 256

/** State of one HCA. Protected by the lock of btl/umr. */
typedef struct mca_btl_umr_gpu_t {
    opal_list_t regs;                                               /**< most recently used first */
    struct mca_btl_umr_gpu_reg_t *buckets[MCA_BTL_UMR_GPU_BUCKETS]; /**< by BUFFER_ID */
    uint32_t lookups;
    uint8_t registrations[OPAL_UMRDDT_GPU_RDMA_DEVICES]; /**< mca_btl_umr_gpu_registration_t */
    struct mca_btl_umr_gpu_flusher_t *flusher;           /**< NULL: no read was needed yet */
    bool flush_failed;                                   /**< reads cannot be done any more */
} mca_btl_umr_gpu_t;

void mca_btl_umr_gpu_construct(mca_btl_umr_hca_t *hca);
void mca_btl_umr_gpu_destruct(mca_btl_umr_hca_t *hca);

/** Deregister all; no memory is in use. Lock held. */
void mca_btl_umr_gpu_stop(mca_btl_umr_hca_t *hca);

/** The table's gpu_reachable, memory_register_gpu. */
bool mca_btl_umr_gpu_reachable(mca_btl_umr_endpoint_t *endpoint,
                               const opal_umrddt_gpu_memory_t *where);
int mca_btl_umr_gpu_register(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_role_t role,
                             const opal_umrddt_gpu_memory_t *where, void *buffer,
                             const opal_iov_cache_layout_t *layout, uint64_t size,
                             mca_btl_umr_memory_t **result);

/** Release a registration; it stays cached. Lock held. */
void mca_btl_umr_gpu_put(mca_btl_umr_hca_t *hca, mca_btl_umr_reg_t *reg);

END_C_DECLS

#endif /* MCA_BTL_UMR_MR_GPU_H */
