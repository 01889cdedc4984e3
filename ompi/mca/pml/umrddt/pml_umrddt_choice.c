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
 * Which way a message goes; the receiver decides.
 *
 * To map keys costs a work request on either side, and its completion before anything can be
 * written; it pays when the keys are used again. Whether they will be is not known when the first
 * message of a layout and buffer comes, so that one goes direct where few writes, or long ones,
 * make it no dearer.
 *
 * Before all that: a sender whose memory is a GPU's, on the same host, is read by a GPU of this
 * side (pml_umrddt_ipc.h), unless the user has named another way. And behind all that: a message
 * with a GPU at one end, for which none of these ways is open, travels packed (pml_umrddt_pack.h).
 */

#include "ompi_config.h"

#include <stdlib.h>

#include "pml_umrddt_ipc.h"
#include "pml_umrddt_owner.h"
#include "pml_umrddt_pack.h"

/* Of the table: as many as the HCA keeps sets of keys, and then some. A bucket's entries are
 * replaced in turn. */
#define BUCKETS 512
#define WAYS    4

struct mca_pml_umrddt_seen_t {
    struct {
        uint64_t layout[WAYS]; /* 0: nothing here */
        uintptr_t buffer[WAYS];
        uint32_t next;
    } buckets[BUCKETS];
};

mca_pml_umrddt_seen_t *mca_pml_umrddt_seen_new(void)
{
    return calloc(1, sizeof(mca_pml_umrddt_seen_t));
}

/** True if the table has it; it has it afterwards. */
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

/** True if a message is cheaper without keys, as long as none are mapped. */
static bool cheap(const mca_pml_umrddt_rts_t *rts, const opal_iov_cache_layout_t *layout,
                  uint64_t total)
{
    uint64_t most = rts->pieces < layout->iov_count ? layout->iov_count : rts->pieces;
    /* One for each run, and one more for all pieces that a write has no room for. */
    uint64_t writes = layout->iov_count + rts->pieces / rts->write_pieces;

    return writes <= mca_pml_umrddt.params.writes
           || (0 < mca_pml_umrddt.params.run && total / most >= mca_pml_umrddt.params.run);
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
    /* Keys that are not kept are wanted for each message: nothing is learnt from the first. */
    return !mca_pml_umrddt.params.mkey_cache || seen(layout->id, buffer)
                   || !cheap(rts, layout, total)
               ? MCA_PML_UMRDDT_BIT_UMR
               : MCA_PML_UMRDDT_BIT_DIRECT;
}

bool mca_pml_umrddt_ipc_chosen(const mca_pml_umrddt_rts_t *rts, const mca_pml_umrddt_peer_t *peer)
{
    /* one copy, and nothing to map in the steady state: no other way is cheaper. (Whatever a peer
     * of another host says, its handles are none for this host's driver.) */
    return 0 != (MCA_PML_UMRDDT_BIT_IPC & rts->schemes & mca_pml_umrddt.schemes) && peer->same_host;
}

unsigned mca_pml_umrddt_pack_rule(unsigned schemes, const mca_pml_umrddt_where_t *where,
                                  uint64_t total)
{
    unsigned both = schemes & mca_pml_umrddt.schemes & MCA_PML_UMRDDT_BITS_PACK;

    /* between buffers of the CPU the base PML needs no help, unless the sender's user wants it and
     * nothing else */
    if (where->mixed || (0 != (MCA_PML_UMRDDT_IF_GPU & schemes) && !mca_pml_umrddt_on_gpu(where))) {
        return 0;
    }
    if (0 != (MCA_PML_UMRDDT_BIT_PACK_HOST & both)
        && (MCA_PML_UMRDDT_BIT_PACK_HOST == both || total < mca_pml_umrddt.params.pack_host)) {
        return MCA_PML_UMRDDT_BIT_PACK_HOST;
    }
    /* nothing goes through the CPU's memory */
    return 0 != (MCA_PML_UMRDDT_BIT_PACK_GDR & both) ? MCA_PML_UMRDDT_BIT_PACK_GDR
                                                     : MCA_PML_UMRDDT_BIT_PACK_STAGED & both;
}
