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
 * Mkeys, and the work requests that map and invalidate them.
 */

#ifndef MCA_BTL_UMR_MKEY_H
#define MCA_BTL_UMR_MKEY_H

#include "opal/mca/btl/umr/btl_umr_qp.h"

BEGIN_C_DECLS

struct mca_btl_umr_mkey_t {
    opal_list_item_t super;
    mca_btl_umr_hca_t *hca; /**< the HCA that it belongs to */
    struct mlx5dv_mkey *dv;
    struct mca_btl_umr_class_t *class;      /**< its size class; NULL: one of the pool */
    struct mca_btl_umr_mkey_t *made_before; /**< next in the list from the helper thread */
    mca_btl_umr_role_t role;                /**< valid while taken */
    bool exposed;                           /**< mapped for a peer and not invalidated since */
    bool unknown; /**< its mapping failed: its contents are undefined, and it is not used again */
    uint32_t last_seq; /**< while idle: its last work request, which may not be executed yet */
};
OBJ_CLASS_DECLARATION(mca_btl_umr_mkey_t);

/**
 * Create an mkey without a role, and count it.
 *
 * @return 0 or errno
 */
int mca_btl_umr_mkey_create(mca_btl_umr_hca_t *hca, uint32_t entries, mca_btl_umr_mkey_t **mkey);

/**
 * As mca_btl_umr_mkey_create, for the helper thread: reads no shared state and does not count.
 *
 * @param[in] update_tag  mappings shall be able to change its tag
 */
int mca_btl_umr_mkey_make(mca_btl_umr_hca_t *hca, uint32_t entries, bool update_tag,
                          mca_btl_umr_mkey_t **mkey);

/**
 * Destroy an mkey; logs an error once. No work request may be pending for it: the device would stop
 * the queue pair at that request.
 */
void mca_btl_umr_mkey_destroy(mca_btl_umr_mkey_t *mkey);

/** Put an mkey into the list of free ones. */
void mca_btl_umr_mkey_idle(mca_btl_umr_mkey_t *mkey);

/** Set another tag for its next mapping, where the device supports it. */
void mca_btl_umr_mkey_retag(mca_btl_umr_mkey_t *mkey);

/**
 * Build one mapping between ibv_wr_start and ibv_wr_complete. The caller has checked that the queue
 * has room.
 */
uint32_t mca_btl_umr_mkey_build_map(mca_btl_umr_mkey_t *mkey, mca_btl_umr_role_t role,
                                    uint16_t count, struct ibv_sge *sges, bool wanted);

/**
 * As mca_btl_umr_mkey_build_map, for equal blocks at equal distances.
 *
 * @param[in] addr           of the first block
 * @param[in] block, stride  bytes of a block, and from one to the next; at most
 *                           MCA_BTL_UMR_STRIDE_MAX
 * @param[in] count          blocks
 */
uint32_t mca_btl_umr_mkey_build_strided(mca_btl_umr_mkey_t *mkey, mca_btl_umr_role_t role,
                                        uint64_t addr, uint32_t lkey, uint32_t block,
                                        uint32_t stride, uint32_t count, bool wanted);

/** Entries of an mkey that a strided mapping needs: the block, and the repeat count. */
#define MCA_BTL_UMR_STRIDED_ENTRIES 2

/** The device has 16 bits for blocks and strides. */
#define MCA_BTL_UMR_STRIDE_MAX 65535

/** Build one invalidation: the HCA refuses the mkey after its execution. As above. */
uint32_t mca_btl_umr_mkey_build_invalidate(mca_btl_umr_mkey_t *mkey, bool wanted);

/** The access rights of a mapping, IBV_ACCESS_*. */
static inline unsigned int mca_btl_umr_mkey_rights(mca_btl_umr_role_t role)
{
    /*
     * A gather needs no access right, so read-only memory can be sent, and a peer that learns a
     * LOCAL key cannot use it.
     */
    return MCA_BTL_UMR_REMOTE == role ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : 0;
}

END_C_DECLS

#endif /* MCA_BTL_UMR_MKEY_H */
