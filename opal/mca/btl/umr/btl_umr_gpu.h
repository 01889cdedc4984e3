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
 * Registration of GPU memory with an HCA (btl_umr_gpu.c), and the flush that makes a peer's writes
 * visible to the GPU (btl_umr_gpu_flush.c).
 */

#ifndef MCA_BTL_UMR_GPU_H
#define MCA_BTL_UMR_GPU_H

#include "opal_config.h"

#include "opal/mca/common/umrddt_gpu/rdma/umrddt_gpu_rdma.h"

#include "opal/mca/btl/umr/btl_umr_hca.h"

struct mca_btl_umr_hca_t;
struct mca_btl_umr_reg_t;

/** How memory of one GPU is registered with one HCA. */
typedef enum mca_btl_umr_gpu_registration_t {
    MCA_BTL_UMR_GPU_UNTRIED,
    MCA_BTL_UMR_GPU_BY_DMABUF,
    MCA_BTL_UMR_GPU_BY_ADDRESS, /**< by the kernel module nvidia-peermem or an equivalent */
    MCA_BTL_UMR_GPU_NOT         /**< neither; the user got a message */
} mca_btl_umr_gpu_registration_t;

/** Values of btl_umr_gpu_flush. */
enum {
    MCA_BTL_UMR_GPU_FLUSH_AUTO,
    MCA_BTL_UMR_GPU_FLUSH_CALL,
    MCA_BTL_UMR_GPU_FLUSH_READ,
    MCA_BTL_UMR_GPU_FLUSH_OMIT, /**< for tests only: gives wrong data */
    MCA_BTL_UMR_GPU_FLUSH_MAX
};

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

void mca_btl_umr_gpu_construct(struct mca_btl_umr_hca_t *hca);
void mca_btl_umr_gpu_destruct(struct mca_btl_umr_hca_t *hca);

/** Deregister all; no memory is in use. Lock held. */
void mca_btl_umr_gpu_stop(struct mca_btl_umr_hca_t *hca);

/** The table's gpu_reachable, memory_register_gpu, memory_flush. */
bool mca_btl_umr_gpu_reachable(mca_btl_umr_endpoint_t *endpoint,
                               const opal_umrddt_gpu_memory_t *where);
int mca_btl_umr_gpu_register(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_role_t role,
                             const opal_umrddt_gpu_memory_t *where, void *buffer,
                             const opal_iov_cache_layout_t *layout, uint64_t size,
                             mca_btl_umr_memory_t **result);
int mca_btl_umr_gpu_flush(mca_btl_umr_memory_t *memory, mca_btl_umr_done_fn_t done, void *context);

/**
 * The flush method for memory of a device: the user's choice (btl_umr_gpu_flush), or the one that
 * the device requires.
 */
opal_umrddt_gpu_flush_t mca_btl_umr_gpu_flush_how(int device);

/** Release a registration; it stays cached. Lock held. */
void mca_btl_umr_gpu_put(struct mca_btl_umr_hca_t *hca, struct mca_btl_umr_reg_t *reg);

/**
 * Poll the flush reads and call the users back. Lock held, released for callbacks. @return events
 */
int mca_btl_umr_gpu_flush_poll(struct mca_btl_umr_hca_t *hca);

/** Destroy the resources of the reads; waiting users get no callback. Lock held. */
void mca_btl_umr_gpu_flush_stop(struct mca_btl_umr_hca_t *hca);

#endif /* MCA_BTL_UMR_GPU_H */
