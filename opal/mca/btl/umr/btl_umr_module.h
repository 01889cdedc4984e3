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
 * btl/umr as a btl: one module, for users of the framework that read, write and add to contiguous
 * memory of others (osc/rdma). It sends nothing, so no PML can take it for its messages, and it is
 * there only if the user asks for it (btl_umr_rdma).
 *
 * The framework has no message for it before its endpoints are connected, so each process makes a
 * queue pair for every process of its job, tells the job their numbers by the modex, and connects
 * all of them when the first process is added, which every process does before it leaves MPI_Init.
 * Nobody has to be in MPI for a peer to reach it after that.
 */

#ifndef MCA_BTL_UMR_MODULE_H
#define MCA_BTL_UMR_MODULE_H

#include "opal/mca/btl/umr/btl_umr.h"

BEGIN_C_DECLS

/** Whom to tell that an operation is complete. */
typedef struct mca_btl_umr_op_t {
    mca_btl_base_rdma_completion_fn_t cbfunc; /**< may be NULL */
    void *local_address;
    mca_btl_base_registration_handle_t *local_handle;
    void *context;
    void *data;
} mca_btl_umr_op_t;

/** The queue pair to one process of the job; every operation gives a completion. */
struct mca_btl_base_endpoint_t {
    opal_process_name_t name;
    uint32_t index; /**< in the module's endpoints: the rank in the job */
    bool broken;
    mca_btl_umr_address_t address; /**< ours */
    mca_btl_umr_sq_t sq;
    mca_btl_umr_op_t *ops; /**< those under way, by their number modulo the depth; made when used */
};

typedef struct mca_btl_umr_module_t {
    mca_btl_base_module_t super;
    opal_mutex_t lock; /**< of all below; taken without the HCA's, and never with it */
    bool open;
    unsigned int openings; /**< how often it was brought up in this process's life */
    bool looked_up;        /**< whether there are connections is known */
    bool connected;        /**< all endpoints are */
    struct ibv_cq *cq;
    uint32_t cq_size;
    uint32_t under_way; /**< operations without their completion; cq_size at most */
    uint32_t depth;     /**< operations under way to one peer, at most */
    uint32_t count;     /**< endpoints: processes of the job, this one too */
    struct mca_btl_base_endpoint_t *endpoints;
    mca_btl_base_module_error_cb_fn_t error_cb;
} mca_btl_umr_module_t;

/** The one module. */
extern mca_btl_umr_module_t mca_btl_umr_module;

/**
 * Bring the module up, and the HCA with it; to be called before the modex exchange.
 *
 * @retval OPAL_SUCCESS            offer it to the framework; its btl_finalize takes it down
 * @retval OPAL_ERR_NOT_AVAILABLE  it cannot be had (a message says why, but for a machine without
 * an HCA); nothing is left open
 */
int mca_btl_umr_module_open(void);

/* The module's functions on memory (btl_umr_rdma.c); see opal/mca/btl/btl.h. They return
 *
 *   OPAL_SUCCESS              the callback comes from progress
 *   OPAL_ERR_OUT_OF_RESOURCE  too many are under way: progress, and try again
 *   OPAL_ERR_BAD_PARAM        too long, no handle, an atomic that is not on 8 aligned bytes
 *   OPAL_ERR_NOT_SUPPORTED    another atomic than addition or compare and swap of 8 bytes
 *   OPAL_ERR_UNREACH          the endpoint is broken
 *   OPAL_ERROR                the device refused (logged), and the endpoint broke
 */

int mca_btl_umr_module_put(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                           void *local_address, uint64_t remote_address,
                           mca_btl_base_registration_handle_t *local_handle,
                           mca_btl_base_registration_handle_t *remote_handle, size_t size,
                           int flags, int order, mca_btl_base_rdma_completion_fn_t cbfunc,
                           void *context, void *data);
int mca_btl_umr_module_get(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                           void *local_address, uint64_t remote_address,
                           mca_btl_base_registration_handle_t *local_handle,
                           mca_btl_base_registration_handle_t *remote_handle, size_t size,
                           int flags, int order, mca_btl_base_rdma_completion_fn_t cbfunc,
                           void *context, void *data);
int mca_btl_umr_module_fop(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                           void *local_address, uint64_t remote_address,
                           mca_btl_base_registration_handle_t *local_handle,
                           mca_btl_base_registration_handle_t *remote_handle,
                           mca_btl_base_atomic_op_t op, uint64_t operand, int flags, int order,
                           mca_btl_base_rdma_completion_fn_t cbfunc, void *context, void *data);
int mca_btl_umr_module_cswap(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                             void *local_address, uint64_t remote_address,
                             mca_btl_base_registration_handle_t *local_handle,
                             mca_btl_base_registration_handle_t *remote_handle, uint64_t compare,
                             uint64_t value, int flags, int order,
                             mca_btl_base_rdma_completion_fn_t cbfunc, void *context, void *data);

/**
 * Wait until what was posted before the call is complete: on an endpoint, or on all (NULL). The
 * callbacks may come later, from another thread.
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_UNREACH  the endpoint (one of them) is broken
 */
int mca_btl_umr_module_flush(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint);

/** The component's progress. @return completions */
int mca_btl_umr_module_progress(void);

END_C_DECLS

#endif /* MCA_BTL_UMR_MODULE_H */
