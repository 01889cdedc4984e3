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
 * Registrations of system memory, in Open MPI's rcache/grdma.
 */

#ifndef MCA_BTL_UMR_MR_H
#define MCA_BTL_UMR_MR_H

#include "opal/mca/rcache/rcache.h"

#include "opal/mca/btl/umr/btl_umr_memory.h"

BEGIN_C_DECLS

/** A registration as the users of the framework send it to their peers, byte for byte. */
struct mca_btl_base_registration_handle_t {
    uint32_t rkey;
    uint32_t lkey; /**< for its owner */
};

/**
 * System memory that the device has registered. The registration cache holds one reference as long
 * as it has the registration, and each keyset in the key cache holds one. So operations through
 * cached keys never lose their memory, and the registration cache can still drop the registration.
 */
struct mca_btl_umr_mr_t {
    opal_object_t super;
    mca_btl_umr_hca_t *hca;
    struct ibv_mr *mr;
    size_t size;
    const struct mca_btl_umr_reg_t *reg; /**< NULL: the cache has dropped it */
};
OBJ_CLASS_DECLARATION(mca_btl_umr_mr_t);

/** A registration, in the registration cache. */
struct mca_btl_umr_reg_t {
    mca_rcache_base_registration_t super;
    mca_btl_umr_mr_t *held; /**< owner of mr; NULL: GPU memory */
    struct ibv_mr *mr;
    uint64_t id;         /**< unique id of this registration */
    bool mapped;         /**< some keyset over it is or was in the key cache */
    bool gpu;            /**< in the cache of btl_umr_mr_gpu.c, not in rcache */
    bool left;           /**< dropped by the cache, which gets a call after the last use */
    uint32_t loose_uses; /**< uses unknown to the cache (btl_umr_loose.c) */
    struct mca_btl_base_registration_handle_t handle;
};

/**
 * True as long as the cache would find this registration for its range. The memory hooks invalidate
 * it inside the call that unmaps the memory, in any thread, before the memory is gone.
 */
static inline bool mca_btl_umr_mr_is_valid(const mca_btl_umr_mr_t *mr)
{
    return NULL != mr->reg && 0 == (mr->reg->super.flags & MCA_RCACHE_FLAGS_INVALID);
}

/**
 * Cached extent of the first bytes of a layout: a single part, from lb to ub. Saves the next
 * message the walk over the pieces.
 */
typedef struct mca_btl_umr_span_t {
    uint64_t layout_id; /**< 0: empty */
    uint64_t size;
    int64_t lb, ub;
} mca_btl_umr_span_t;

#define MCA_BTL_UMR_SPANS 64

int mca_btl_umr_memory_start(mca_btl_umr_hca_t *hca);
void mca_btl_umr_memory_stop(mca_btl_umr_hca_t *hca);

int mca_btl_umr_memory_register(mca_btl_umr_role_t role, void *buffer,
                                const opal_iov_cache_layout_t *layout, uint64_t size,
                                mca_btl_umr_memory_t **memory);
int mca_btl_umr_memory_register_at(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_role_t role,
                                   void *buffer, const opal_iov_cache_layout_t *layout,
                                   uint64_t size, mca_btl_umr_memory_t **memory);
void mca_btl_umr_memory_release(mca_btl_umr_memory_t *memory);

/**
 * Register contiguous memory, from the same cache and with the same limit.
 *
 * @param[in]  access  MCA_RCACHE_ACCESS_*: read-only memory is accepted if no write access is
 *                     requested
 * @param[out] reg     release with mca_btl_umr_memory_unpin
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_OUT_OF_RESOURCE  the limit, or the system's, is reached (a message, once)
 * @retval OPAL_ERR_BAD_PARAM        part of it cannot be registered with this access
 */
int mca_btl_umr_memory_pin(void *base, size_t size, int32_t access, mca_btl_umr_reg_t **reg);

/** Release. The registration may stay in the cache. */
void mca_btl_umr_memory_unpin(mca_btl_umr_reg_t *reg);

END_C_DECLS

#endif /* MCA_BTL_UMR_MR_H */
