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
 * Non-inline UMR lists (KLM lists in memory): their mkeys, their memory, their work request.
 */

#ifndef MCA_BTL_UMR_KLM_H
#define MCA_BTL_UMR_KLM_H

#include "opal/mca/btl/umr/btl_umr_mkey.h"
#include "opal/mca/btl/umr/btl_umr_backoff.h"

BEGIN_C_DECLS

#define MCA_BTL_UMR_CLASSES 5

/** Long mkeys (mkeys for non-inline lists) of one size. */
typedef struct mca_btl_umr_class_t {
    uint32_t entries;
    opal_list_t idle;
} mca_btl_umr_class_t;

/** A list that the device has not read yet. */
typedef struct mca_btl_umr_list_t {
    uint32_t seq; /**< number of the work request that reads it */
    size_t end;   /**< end of its memory in the ring */
} mca_btl_umr_list_t;

/** Mappings in flight; more wait in keysets_waiting. */
#define MCA_BTL_UMR_MKEYS_SQ_DEPTH 64

/** Entries that are built at a time on the stack: at least as many as fit in a work request. */
#define MCA_BTL_UMR_ENTRIES_AT_ONCE 64

/**
 * The long mkeys, and the memory from which the device reads their lists. The memory is a ring,
 * since the queue pair works in order.
 */
typedef struct mca_btl_umr_klm_t {
    uint32_t entries; /**< maximum of a list; 0: non-inline lists are disabled */
    mca_btl_umr_class_t classes[MCA_BTL_UMR_CLASSES]; /**< by ascending entries */
    size_t class_count;
    size_t count;              /**< existing long mkeys */
    opal_list_t retired;       /**< to be destroyed when their invalidations are complete */
    mca_btl_umr_bound_t bound; /**< one half per role */
    size_t used[MCA_BTL_UMR_ROLE_MAX];
    unsigned char *memory;
    struct ibv_mr *mr;
    size_t size, head; /**< of the ring; start of the next list */
    size_t tail;       /**< start of the oldest list */
    mca_btl_umr_list_t lists[MCA_BTL_UMR_MKEYS_SQ_DEPTH]; /**< oldest at lists[first] */
    size_t first, list_count;
} mca_btl_umr_klm_t;

/** Called for the memory of each HCA, at open and close of the component. */
void mca_btl_umr_klm_construct(mca_btl_umr_hca_t *hca);
void mca_btl_umr_klm_destruct(mca_btl_umr_hca_t *hca);

/** Query the device and create the ring; on failure caps have the reason. Lock held. */
void mca_btl_umr_klm_start(mca_btl_umr_hca_t *hca);

/** Disable non-inline lists: destroy the free long mkeys and release the ring. Lock held. */
void mca_btl_umr_klm_stop(mca_btl_umr_hca_t *hca);

/** The queue pair is new: no list is pending. */
void mca_btl_umr_klm_reset(mca_btl_umr_hca_t *hca);

/** As mca_btl_umr_mkey_take, for more entries than mkeys of the pool have. */
mca_btl_umr_mkey_t *mca_btl_umr_klm_take(mca_btl_umr_hca_t *hca, mca_btl_umr_role_t role,
                                         uint32_t entries);

/**
 * Destroy all free long mkeys. Lock held. No work request may be pending: the queue pair is in ERR,
 * destroyed, or polled completely.
 */
void mca_btl_umr_klm_destroy_idle(mca_btl_umr_hca_t *hca);

/** A work request has completed: destroy the retired mkeys that waited for it. Lock held. */
void mca_btl_umr_klm_destroy_retired(mca_btl_umr_hca_t *hca);

/**
 * Memory for a list of @p count entries. The caller fills it by mca_btl_umr_klm_set and maps it by
 * mca_btl_umr_klm_build_map before the next call.
 *
 * @return NULL: none available now; retry after a mapping has completed
 */
struct mlx5_wqe_data_seg *mca_btl_umr_klm_list(mca_btl_umr_hca_t *hca, uint32_t count);

static inline void mca_btl_umr_klm_set(struct mlx5_wqe_data_seg *entry, uint64_t addr,
                                       uint32_t length, uint32_t lkey)
{
    mlx5dv_set_data_seg(entry, length, lkey, addr);
}

/** As mca_btl_umr_mkey_build_map. @p bytes is the sum of the entries' lengths. */
uint32_t mca_btl_umr_klm_build_map(mca_btl_umr_mkey_t *mkey, mca_btl_umr_role_t role,
                                   uint32_t count, uint64_t bytes, struct mlx5_wqe_data_seg *list);

END_C_DECLS

#endif /* MCA_BTL_UMR_KLM_H */
