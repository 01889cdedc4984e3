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
 * The MCA parameters.
 */

#ifndef MCA_BTL_UMR_PARAMS_H
#define MCA_BTL_UMR_PARAMS_H

#include "opal/mca/btl/umr/btl_umr_types.h"

BEGIN_C_DECLS

/** The MCA parameters, after mca_btl_umr_params_check. */
typedef struct mca_btl_umr_params_t {
    char *device;              /**< "", or a list of "mlx5_0" and "mlx5_0:1" */
    unsigned int max_hcas;     /**< HCAs that this process uses */
    int gid_index;             /**< -1: choose */
    unsigned int mkeys;        /**< created at start-up */
    unsigned int mkeys_step;   /**< created per later request */
    unsigned int mkeys_low;    /**< per cent of mkeys kept free; 0: no helper thread */
    unsigned int mkeys_max;    /**< for both roles together */
    unsigned int max_entries;  /**< entries of an mkey; 0: the maximum of the device */
    unsigned int long_entries; /**< entries of an mkey with a non-inline list; 0: none */
    unsigned int long_mkeys;   /**< long mkeys, for both roles together */
    size_t list_bytes;         /**< memory for lists until the device has read them */
    size_t max_key_bytes;      /**< bytes one key covers */
    unsigned int sq_depth;     /**< writes in flight on one endpoint */
    unsigned int rq_depth;     /**< FINs in flight on one endpoint */
    unsigned int srq_depth;    /**< FINs in flight on all endpoints; 0: no shared receives */
    size_t reg_cache_size;     /**< limit of registered bytes; 0: half of this process's share */
    unsigned int gpu_regs;     /**< cached registrations of GPU memory */
    unsigned int gpu_flush;    /**< MCA_BTL_UMR_GPU_FLUSH_* */
    size_t reg_gap;            /**< largest hole between pieces that is registered with them */
    unsigned int write_pieces; /**< pieces that one write without keys gathers */
    unsigned int timeout;      /**< IB ACK timeout exponent */
    unsigned int retry_count;  /**< transport retries */
    unsigned int mtu;          /**< bytes; 0: the port's */
    unsigned int key_cache;    /**< keysets in the key cache */
    bool strided;              /**< equal blocks at equal distances may be one entry */
    bool nested;               /**< indirect mkeys */
    bool plain_keys;           /**< peers may use the key of a registration */
    bool selftest;             /**< run the self-test before the HCA is used */
    unsigned int rebuilds;     /**< rebuilds of a queue pair in a row; 0: never */
    int fork_support;          /**< mca_btl_umr_device_fork; -1: where the kernel needs it */
    bool rdma;                 /**< offer a btl module to the framework */
    unsigned int rdma_peers;   /**< largest job, in processes, with a module */
    unsigned int rdma_depth;   /**< operations of the module in flight to one peer */
    unsigned int check;        /**< passes of progress between checks of the invariants; 0: none */
} mca_btl_umr_params_t;

extern mca_btl_umr_params_t mca_btl_umr_params;

/** Adjust out-of-range values, each with one message. */
void mca_btl_umr_params_check(void);

END_C_DECLS

#endif /* MCA_BTL_UMR_PARAMS_H */
