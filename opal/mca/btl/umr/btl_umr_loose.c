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
 * Memory that its owner may free while the HCA has not told yet that it is through with it.
 *
 * That is the memory of a send whose request was freed. MPI says that the receiver's answer tells
 * the sender that its buffer can be reused (MPI 4.1, section 3.7.3, MPI_REQUEST_FREE), and the
 * receiver knows of a write before the writer's HCA does: the acknowledgement is under way yet.
 *
 * Open MPI's registration cache ends a process that frees memory which is in use by a registration.
 * So uses of such memory are taken out of its count and counted here. To the cache the registration
 * then is one that it keeps for later; it may be found, evicted, or dropped because its memory is
 * gone. A registration that is dropped so stays with the HCA until its last use is over: its pages
 * are pinned as long, so the HCA reads what the application had left there and writes to nobody.
 */

#include "opal_config.h"

#include "opal/mca/btl/umr/btl_umr.h"

/** True if it is one that somebody holds. Lock held; nothing is read of what is not. */
static bool is_held(const mca_btl_umr_memory_t *memory)
{
    for (uint32_t i = 0; i < mca_btl_umr.hca_count; ++i) {
        const opal_list_item_t *item;

        OPAL_LIST_FOREACH (item, &mca_btl_umr.hcas[i]->memories, opal_list_item_t) {
            if (item == &memory->super) {
                return true;
            }
        }
    }
    return false;
}

void mca_btl_umr_memory_let_go(mca_btl_umr_memory_t *memory)
{
    if (NULL == memory) {
        return;
    }
    OPAL_THREAD_LOCK(&mca_btl_umr.lock);
    if (is_held(memory) && !memory->gpu && !memory->loose) {
        mca_btl_umr_hca_t *hca = memory->hca;

        memory->loose = true;
        for (size_t i = 0; i < memory->count; ++i) {
            mca_btl_umr_reg_t *reg = memory->parts[i].reg;

            ++reg->loose_uses;
            /* a use less; if it keeps nothing, this calls for its end, which waits */
            (void) hca->rcache->rcache_deregister(hca->rcache, &reg->super);
        }
    }
    OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
}

void mca_btl_umr_loose_put(mca_btl_umr_hca_t *hca, mca_btl_umr_reg_t *reg)
{
    if (0 < --reg->loose_uses || !reg->left) {
        return;
    }
    /* The cache dropped it: nothing leads to it any more but this use, which ends now. */
    reg->super.flags |= MCA_RCACHE_FLAGS_CACHE_BYPASS;
    reg->super.ref_count = 1;
    (void) hca->rcache->rcache_deregister(hca->rcache, &reg->super);
}
