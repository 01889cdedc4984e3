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
 * Which buffers and peers the copying and the packed schemes are for: predicates that the selection
 * and the schemes share. Any thread.
 */

#ifndef MCA_PML_UMRDDT_SELECT_LIMITS_H
#define MCA_PML_UMRDDT_SELECT_LIMITS_H

#include "opal/mca/common/umrddt_select/umrddt_select.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_comm.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_control.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_progress.h"

BEGIN_C_DECLS

/** Returns true if the copying scheme can carry messages from GPU memory to a peer. */
static inline bool mca_pml_umrddt_copy_reaches(const mca_pml_umrddt_peer_t *peer)
{
    return 0 != (MCA_PML_UMRDDT_BITS_COPY & mca_pml_umrddt.schemes) && peer->same_host
           && peer->has_gpu;
}

/** Returns true if the copying scheme can read this kind of memory: of a peer what can be exported,
 * of this process all GPU memory. */
static inline bool mca_pml_umrddt_copy_takes(const mca_pml_umrddt_peer_t *peer,
                                             const opal_umrddt_gpu_where_t *where)
{
    return !where->mixed
           && ((OPAL_UMRDDT_GPU_DEVICE == where->memory.kind && where->memory.legacy_ipc
                && 0 != where->memory.buffer_id)
               || (peer->self && opal_umrddt_gpu_on_gpu(where)));
}

/** Failures in a row after which a sender uses the HCA, and a receiver sends no INFO_REQ. */
#define MCA_PML_UMRDDT_COPY_MISSES 4

/** Returns true if the copying scheme has not failed with the peer. */
static inline bool mca_pml_umrddt_copy_works(const mca_pml_umrddt_peer_t *peer)
{
    const int scheme = mca_pml_umrddt_scheme_of(MCA_PML_UMRDDT_BITS_COPY);

    return MCA_PML_UMRDDT_COPY_MISSES
           > __atomic_load_n(&peer->states[scheme].fails, __ATOMIC_RELAXED);
}

/** Returns true if an envelope may replace a message of less than min_size bytes in GPU memory:
 * by a hint of its receiver, or in a collective, whose receives are as long as their messages.
 * Otherwise the message is staged, and hints are expected. */
static inline bool mca_pml_umrddt_small_wanted(mca_pml_umrddt_comm_t *comm,
                                               const mca_pml_umrddt_peer_t *peer,
                                               const opal_umrddt_gpu_where_t *where, int dst,
                                               int tag)
{
    mca_pml_umrddt_comm_t *world = mca_pml_umrddt_world();
    const opal_umrddt_hints_t *hints;

    if (0 == (MCA_PML_UMRDDT_BITS_COPY & comm->schemes) || !mca_pml_umrddt_copy_reaches(peer)
        || !mca_pml_umrddt_copy_takes(peer, where)) {
        return false;
    }
    if (UMRDDT_IS_COLLECTIVES_TAG(tag)) {
        return mca_pml_umrddt_copy_works(peer);
    }
    if (NULL == world || !mca_pml_umrddt.params.small_hints) {
        return false;
    }
    mca_pml_umrddt_listen(world);
    if (!mca_pml_umrddt_copy_works(peer)) {
        return false;
    }
    hints = __atomic_load_n(&comm->hints, __ATOMIC_ACQUIRE);
    if (NULL != hints && opal_umrddt_hint_is(&hints->got, dst, tag)) {
        return true;
    }
    mca_pml_umrddt_notice_soon();
    return false;
}

/**
 * Bytes of each chunk of a message: whole blocks if all blocks have the same length.
 *
 * @param[in] layout  layout of one side
 * @param[in] pieces  blocks of the other side; used if @p layout is contiguous
 */
static inline uint64_t mca_pml_umrddt_pack_chunk_of(const opal_iov_cache_layout_t *layout,
                                                    uint64_t pieces, uint64_t total)
{
    const mca_pml_umrddt_params_t *params = &mca_pml_umrddt.params;
    uint64_t block = 0;

    if (1 < layout->iov_count) {
        block = layout->form->uniform;
    } else if (1 < pieces && 0 == total % pieces) {
        block = total / pieces;
    }
    return opal_umrddt_select_chunk(total, params->pack_depth, params->pack_chunk_floor,
                                    params->pack_chunk_ceiling, block);
}

/** Returns true if the user has selected a packed scheme by name. */
static inline bool mca_pml_umrddt_pack_forced(const mca_pml_umrddt_comm_t *comm)
{
    return 0 != (MCA_PML_UMRDDT_BITS_PACK & MCA_PML_UMRDDT_BIT(comm->scheme));
}

/** Size in bytes of the smallest message to pack by a GPU. With tuning parameters the model decides
 * instead of pack_min. */
static inline size_t mca_pml_umrddt_pack_from(void)
{
    return mca_pml_umrddt.declines ? mca_pml_umrddt.params.min_size
                                   : mca_pml_umrddt.params.pack_min;
}

/**
 * Returns true if the sender may offer the packed schemes. @param[in] size  bytes of the message
 */
static inline bool mca_pml_umrddt_pack_takes(const mca_pml_umrddt_comm_t *comm,
                                             const opal_umrddt_gpu_where_t *where, size_t size)
{
    return 0 != (MCA_PML_UMRDDT_BITS_PACK & mca_pml_umrddt.schemes & comm->schemes) && !where->mixed
           && (mca_pml_umrddt_pack_forced(comm)
               || (OPAL_UMRDDT_GPU_DEVICE == where->memory.kind
                   && mca_pml_umrddt_pack_from() <= size));
}

/** As mca_pml_umrddt_pack_takes, from system memory into GPU memory. */
static inline bool mca_pml_umrddt_pack_takes_to_gpu(const mca_pml_umrddt_comm_t *comm,
                                                    const mca_pml_umrddt_peer_t *peer, size_t size)
{
    return 0 != (MCA_PML_UMRDDT_BITS_PACK & mca_pml_umrddt.schemes & comm->schemes) && peer->has_gpu
           && mca_pml_umrddt_pack_from() <= size;
}

END_C_DECLS

#endif /* MCA_PML_UMRDDT_SELECT_LIMITS_H */
