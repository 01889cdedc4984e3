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
 * Memory of GPUs, registered with an HCA: btl_umr_gpu.c, and what makes a peer's writes visible to
 * the GPU: btl_umr_gpu_flush.c.
 */

#ifndef MCA_BTL_UMR_GPU_H
#define MCA_BTL_UMR_GPU_H

#include "opal_config.h"

#include "opal/mca/common/umrddt_gpu/rdma/umrddt_gpu_rdma.h"

#include "opal/mca/btl/umr/btl_umr_hca.h"

struct mca_btl_umr_hca_t;
struct mca_btl_umr_reg_t;

/** How memory of one device is registered with one HCA. */
typedef enum mca_btl_umr_gpu_way_t {
    MCA_BTL_UMR_GPU_UNTRIED,
    MCA_BTL_UMR_GPU_BY_DMABUF,
    MCA_BTL_UMR_GPU_BY_ADDRESS, /**< by the kernel's module nvidia-peermem, or what stands for it */
    MCA_BTL_UMR_GPU_NOT         /**< neither; the user was told */
} mca_btl_umr_gpu_way_t;

/** Values of btl_umr_gpu_flush. */
enum {
    MCA_BTL_UMR_GPU_FLUSH_AUTO,
    MCA_BTL_UMR_GPU_FLUSH_CALL,
    MCA_BTL_UMR_GPU_FLUSH_READ,
    MCA_BTL_UMR_GPU_FLUSH_OMIT, /**< for tests: wrong bytes are what comes of it */
    MCA_BTL_UMR_GPU_FLUSH_MAX
};

#define MCA_BTL_UMR_GPU_BUCKETS 256

/** One HCA's part. Guarded by the lock of btl/umr. */
typedef struct mca_btl_umr_gpu_t {
    opal_list_t regs; /**< the most recently used first */
    struct mca_btl_umr_gpu_reg_t *buckets[MCA_BTL_UMR_GPU_BUCKETS]; /**< by BUFFER_ID */
    uint32_t lookups;
    uint8_t ways[OPAL_UMRDDT_GPU_RDMA_DEVICES]; /**< mca_btl_umr_gpu_way_t */
    struct mca_btl_umr_gpu_flusher_t *flusher;  /**< NULL: no read was needed yet */
    bool flush_failed;                          /**< and none is possible any more */
} mca_btl_umr_gpu_t;

void mca_btl_umr_gpu_construct(struct mca_btl_umr_hca_t *hca);
void mca_btl_umr_gpu_destruct(struct mca_btl_umr_hca_t *hca);

/** Deregister all; no memory is in use any more. Lock held. */
void mca_btl_umr_gpu_stop(struct mca_btl_umr_hca_t *hca);

/** The table's gpu_reachable, memory_register_gpu, memory_flush. */
bool mca_btl_umr_gpu_reachable(mca_btl_umr_endpoint_t *endpoint,
                               const opal_umrddt_gpu_memory_t *where);
int mca_btl_umr_gpu_register(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_role_t role,
                             const opal_umrddt_gpu_memory_t *where, void *buffer,
                             const opal_iov_cache_layout_t *layout, uint64_t size,
                             mca_btl_umr_memory_t **result);
int mca_btl_umr_gpu_flush(mca_btl_umr_memory_t *memory, mca_btl_umr_done_fn_t done, void *context);

/** How what peers wrote to memory of a device becomes visible: as the user wants it
 * (btl_umr_gpu_flush), or else as the device does. */
opal_umrddt_gpu_flush_t mca_btl_umr_gpu_flush_how(int device);

/** A registration is not needed any more by who had it; it stays cached. Lock held. */
void mca_btl_umr_gpu_put(struct mca_btl_umr_hca_t *hca, struct mca_btl_umr_reg_t *reg);

/** Poll the reads that flush, tell who waits. Lock held, given up for callbacks. @return events */
int mca_btl_umr_gpu_flush_poll(struct mca_btl_umr_hca_t *hca);

/** Destroy what the reads need; who waits is dropped without a word. Lock held. */
void mca_btl_umr_gpu_flush_stop(struct mca_btl_umr_hca_t *hca);

#endif /* MCA_BTL_UMR_GPU_H */
