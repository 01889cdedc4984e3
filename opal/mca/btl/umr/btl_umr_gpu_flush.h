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
 * Flush: makes a peer's writes to GPU memory visible to the GPU.
 */

#ifndef MCA_BTL_UMR_GPU_FLUSH_H
#define MCA_BTL_UMR_GPU_FLUSH_H

#include "opal/mca/btl/umr/btl_umr_types.h"
#include "opal/mca/common/umrddt_gpu/rdma/umrddt_gpu_rdma.h"

BEGIN_C_DECLS

/** The table's memory_flush. */
int mca_btl_umr_gpu_flush(mca_btl_umr_memory_t *memory, mca_btl_umr_done_fn_t done, void *context);

/**
 * The flush method for memory of a device: the user's choice (btl_umr_gpu_flush), or the one that
 * the device requires.
 */
opal_umrddt_gpu_flush_t mca_btl_umr_gpu_flush_how(int device);

/**
 * Poll the flush reads and call the users back. Lock held, released for callbacks. @return events
 */
int mca_btl_umr_gpu_flush_poll(mca_btl_umr_hca_t *hca);

/** Destroy the resources of the reads; waiting users get no callback. Lock held. */
void mca_btl_umr_gpu_flush_stop(mca_btl_umr_hca_t *hca);

END_C_DECLS

#endif /* MCA_BTL_UMR_GPU_FLUSH_H */
