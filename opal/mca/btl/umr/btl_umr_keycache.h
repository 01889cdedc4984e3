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
 * Key cache: keysets that stay mapped for the next message. All with the lock held.
 */

#ifndef MCA_BTL_UMR_KEYCACHE_H
#define MCA_BTL_UMR_KEYCACHE_H

#include "opal/mca/btl/umr/btl_umr_keyset.h"
#include "opal/mca/btl/umr/btl_umr_mr.h"

BEGIN_C_DECLS

#define MCA_BTL_UMR_KEYCACHE_BITS    10
#define MCA_BTL_UMR_KEYCACHE_BUCKETS (1 << MCA_BTL_UMR_KEYCACHE_BITS)

typedef struct mca_btl_umr_keycache_t {
    mca_btl_umr_keyset_object_t *buckets[MCA_BTL_UMR_KEYCACHE_BUCKETS];
    opal_list_t cached; /**< all entries, most recently released first */
    size_t unused;      /**< entries that are not in use */
} mca_btl_umr_keycache_t;

/**
 * Find a cached keyset of that name over the registrations of the memory. The caller may use it
 * until it is put back or recycled.
 *
 * @return NULL: no matching entry is free
 */
mca_btl_umr_keyset_object_t *mca_btl_umr_keycache_take(const mca_btl_umr_keyset_name_t *name,
                                                       mca_btl_umr_memory_t *memory);

/**
 * As mca_btl_umr_keycache_take, without a registered memory: finds only a keyset over system memory
 * whose registrations are all still in the registration cache.
 */
mca_btl_umr_keyset_object_t *mca_btl_umr_keycache_lookup(mca_btl_umr_hca_t *hca,
                                                         const mca_btl_umr_keyset_name_t *name);

/**
 * Cache a keyset that is ready and complete. @return false: not possible; the caller still owns it
 */
bool mca_btl_umr_keycache_put(mca_btl_umr_keyset_object_t *keyset);

/**
 * Evict the least recently used keyset of the role (ROLE_MAX: of all) that is not in use.
 *
 * @param[in] entries  only one that holds an mkey as mca_btl_umr_mkey_take gives for so many
 *                     (ignored for ROLE_MAX)
 *
 * @return false: none
 */
bool mca_btl_umr_keycache_evict(mca_btl_umr_hca_t *hca, mca_btl_umr_role_t role, uint32_t entries);

/** Release the mkeys of a keyset, cached or not, and keep the empty structure for reuse. */
void mca_btl_umr_keycache_recycle(mca_btl_umr_keyset_object_t *keyset);

/** A registration is destroyed: evict the unused keysets over it. */
void mca_btl_umr_keycache_forget_reg(mca_btl_umr_hca_t *hca, const mca_btl_umr_reg_t *reg);

/** Evict all unused keysets. */
void mca_btl_umr_keycache_empty(mca_btl_umr_hca_t *hca);

END_C_DECLS

#endif /* MCA_BTL_UMR_KEYCACHE_H */
