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
 * Memory that its owner may free before the HCA has reported completion.
 *
 * This is the buffer of a send whose request was freed. After the receiver's answer the sender may
 * reuse the buffer (MPI 4.1, section 3.7.3, MPI_REQUEST_FREE). The receiver sees a write before the
 * writer's HCA does, since the acknowledgement is still in flight.
 *
 * Open MPI's registration cache aborts a process that frees memory which is in use by a
 * registration. So uses of such memory are removed from the cache's count and counted here. For the
 * cache the registration is then unused: it may be found, evicted, or dropped because its memory is
 * gone. A dropped registration stays with the HCA until its last use is over. Its pages stay
 * pinned, so the HCA reads the old contents and affects no other memory.
 */

#include "opal_config.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_loose.h"

/** True if it is in use. Lock held; a released pointer is not dereferenced. */
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
            /* one use less; if the cache does not keep it, it calls for its end, which waits */
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
    /* The cache dropped it: only this use refers to it, and ends now. */
    reg->super.flags |= MCA_RCACHE_FLAGS_CACHE_BYPASS;
    reg->super.ref_count = 1;
    (void) hca->rcache->rcache_deregister(hca->rcache, &reg->super);
}
