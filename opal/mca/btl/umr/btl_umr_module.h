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
 * btl/umr as a btl: one module for put, get and atomics on contiguous remote memory (osc/rdma). It
 * has no send, so no PML uses it for messages, and it exists only if the user enables it
 * (btl_umr_rdma).
 *
 * The framework has no connection handshake. So each process creates a queue pair for every process
 * of its job and publishes the numbers by the modex. It connects all of them when the first process
 * is added, before MPI_Init returns. After that a peer can access its memory without its help.
 */

#ifndef MCA_BTL_UMR_MODULE_H
#define MCA_BTL_UMR_MODULE_H

#include "opal/mca/btl/umr/btl_umr.h"

BEGIN_C_DECLS

/** Completion callback of an operation. */
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
    uint32_t index; /**< index in the module's endpoints: the rank in the job */
    bool broken;
    mca_btl_umr_address_t address; /**< local address */
    mca_btl_umr_sq_t sq;
    mca_btl_umr_op_t *ops; /**< operations in flight, by their number modulo the depth */
};

typedef struct mca_btl_umr_module_t {
    mca_btl_base_module_t super;
    opal_mutex_t lock; /**< protects all fields below; never held together with the HCA's lock */
    bool open;
    unsigned int openings; /**< number of openings in this process */
    bool looked_up;        /**< connected is valid */
    bool connected;        /**< all endpoints are connected */
    struct ibv_cq *cq;
    uint32_t cq_size;
    uint32_t in_flight; /**< operations without their completion; at most cq_size */
    uint32_t depth;     /**< maximum operations in flight to one peer */
    uint32_t count;     /**< number of endpoints: processes of the job, including this one */
    struct mca_btl_base_endpoint_t *endpoints;
    mca_btl_base_module_error_cb_fn_t error_cb;
} mca_btl_umr_module_t;

/** The one module. */
extern mca_btl_umr_module_t mca_btl_umr_module;

/**
 * Open the module and the HCA; must be called before the modex exchange.
 *
 * @retval OPAL_SUCCESS            offer it to the framework; its btl_finalize closes it
 * @retval OPAL_ERR_NOT_AVAILABLE  not available (with a message, except on a machine without an
 *                                 HCA); nothing is left open
 */
int mca_btl_umr_module_open(void);

/*
 * The module's functions on memory (btl_umr_rdma.c); see opal/mca/btl/btl.h. They return
 *
 *   OPAL_SUCCESS              the callback comes from progress
 *   OPAL_ERR_OUT_OF_RESOURCE  too many in flight: call progress and retry
 *   OPAL_ERR_BAD_PARAM        too long, no handle, or an atomic not on 8 aligned bytes
 *   OPAL_ERR_NOT_SUPPORTED    atomic other than 8-byte addition or compare and swap
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
 * Wait until the operations posted before the call are complete: of one endpoint, or of all (NULL).
 * The callbacks may run later, from another thread.
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_UNREACH  the endpoint (one of them) is broken
 */
int mca_btl_umr_module_flush(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint);

/** The component's progress. @return completions */
int mca_btl_umr_module_progress(void);

END_C_DECLS

#endif /* MCA_BTL_UMR_MODULE_H */
