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
 * Selects the scheme of a message by fixed rules; the receiver decides. pml_umrddt_pairs.h selects
 * with the performance model instead. The rules, in order of preference:
 * - ipc, if the sender's buffer is GPU memory on the same node (pml_umrddt_ipc.h) and the user has
 *   not selected another scheme.
 * - umr or sgl (direct) between buffers that an HCA reaches. Mapping mkeys costs a work request on
 *   each side, which must complete before the first write. That pays if the mkeys are used again.
 *   So the first message of a layout and buffer uses direct writes if there are few of them, or
 *   long ones.
 * - packed (pml_umrddt_pack.h), if a GPU is at one end and no other scheme is possible.
 */

#include "ompi_config.h"

#include <stdlib.h>

#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_ipc.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_owner.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_pack.h"

/* Size of the table: somewhat more entries than the HCA caches rkey sets. A bucket replaces its
 * entries in turn. */
#define BUCKETS 512
#define WAYS    4

struct mca_pml_umrddt_seen_t {
    struct {
        uint64_t layout[WAYS]; /* 0: empty */
        uintptr_t buffer[WAYS];
        uint32_t next;
    } buckets[BUCKETS];
};

mca_pml_umrddt_seen_t *mca_pml_umrddt_seen_new(void)
{
    return calloc(1, sizeof(mca_pml_umrddt_seen_t));
}

/** Returns true if the table has the entry. Adds it otherwise. */
static bool seen(uint64_t layout, const void *buffer)
{
    uint64_t hash =
        (layout * UINT64_C(0x9e3779b97f4a7c15) ^ (uintptr_t) buffer) * UINT64_C(0x9e3779b97f4a7c15);
    size_t bucket = (size_t) (hash >> 55), way;

    _Static_assert(1 << (64 - 55) == BUCKETS, "the highest bits of the hash");
    for (way = 0; way < WAYS; ++way) {
        if (layout == mca_pml_umrddt.seen->buckets[bucket].layout[way]
            && (uintptr_t) buffer == mca_pml_umrddt.seen->buckets[bucket].buffer[way]) {
            return true;
        }
    }
    way = mca_pml_umrddt.seen->buckets[bucket].next++ % WAYS;
    mca_pml_umrddt.seen->buckets[bucket].layout[way] = layout;
    mca_pml_umrddt.seen->buckets[bucket].buffer[way] = (uintptr_t) buffer;
    return false;
}

/** Returns true if the message is cheaper without mkeys while none are mapped. */
static bool cheap(const mca_pml_umrddt_rts_t *rts, const opal_iov_cache_layout_t *layout,
                  uint64_t total)
{
    uint64_t most = rts->pieces < layout->iov_count ? layout->iov_count : rts->pieces;
    /* One write for each piece of the receiver, and one more for each full gather list. */
    uint64_t writes = layout->iov_count + rts->pieces / rts->write_pieces;

    return writes <= mca_pml_umrddt.params.direct_writes
           || (0 < mca_pml_umrddt.params.direct_run
               && total / most >= mca_pml_umrddt.params.direct_run);
}

unsigned mca_pml_umrddt_choose(const mca_pml_umrddt_rts_t *rts,
                               const opal_iov_cache_layout_t *layout, const void *buffer,
                               uint64_t total)
{
    unsigned both = rts->schemes & mca_pml_umrddt.schemes & MCA_PML_UMRDDT_BITS_HCA;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (MCA_PML_UMRDDT_BITS_HCA != both) {
        return both;
    }
    /* Without the mkey cache every message maps mkeys, so the first one gives no information. */
    return !mca_pml_umrddt.params.mkey_cache || seen(layout->id, buffer)
                   || !cheap(rts, layout, total)
               ? MCA_PML_UMRDDT_BIT_UMR
               : MCA_PML_UMRDDT_BIT_DIRECT;
}

bool mca_pml_umrddt_ipc_chosen(const mca_pml_umrddt_rts_t *rts, const mca_pml_umrddt_peer_t *peer)
{
    /* One copy, and no mapping in the steady state: no scheme is cheaper. The driver cannot open
     * handles of a remote node, whatever the envelope offers. */
    return 0 != (MCA_PML_UMRDDT_BIT_IPC & rts->schemes & mca_pml_umrddt.schemes) && peer->same_host;
}

unsigned mca_pml_umrddt_pack_rule(unsigned schemes, const mca_pml_umrddt_where_t *where,
                                  uint64_t total)
{
    unsigned both = schemes & mca_pml_umrddt.schemes & MCA_PML_UMRDDT_BITS_PACK;

    /* Between system memory buffers the base PML is sufficient, unless the user of the sender
     * forces another scheme. */
    if (where->mixed || (0 != (MCA_PML_UMRDDT_IF_GPU & schemes) && !mca_pml_umrddt_on_gpu(where))) {
        return 0;
    }
    if (0 != (MCA_PML_UMRDDT_BIT_PACK_HOST & both)
        && (MCA_PML_UMRDDT_BIT_PACK_HOST == both || total < mca_pml_umrddt.params.pack_host)) {
        return MCA_PML_UMRDDT_BIT_PACK_HOST;
    }
    /* pack-gdr avoids the copy through system memory. */
    return 0 != (MCA_PML_UMRDDT_BIT_PACK_GDR & both) ? MCA_PML_UMRDDT_BIT_PACK_GDR
                                                     : MCA_PML_UMRDDT_BIT_PACK_STAGED & both;
}
