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
 * The sender's queries to the model: whether to handle a message at all, and which schemes to offer
 * beside CUDA IPC. The offer cache stores the results. See pml_umrddt_select.h first.
 */

#include "ompi_config.h"

#include "opal/mca/common/umrddt_select/umrddt_select_explain.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_hca.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_layout.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_log.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_pattern.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_select.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_select_limits.h"

/** Number of times that a sender expects a layout to be sent, unless pml_umrddt_reuse is greater. A
 * halo exchange, for example, maps its keys once and uses them until it ends. */
#define EXPECTED 64

uint16_t mca_pml_umrddt_select_offered(const mca_pml_umrddt_comm_t *comm,
                                       const mca_pml_umrddt_peer_t *peer,
                                       const opal_umrddt_gpu_where_t *where, bool to_gpu,
                                       size_t size)
{
    unsigned schemes = 0;

    if (opal_umrddt_gpu_on_gpu(where)) {
        if (mca_pml_umrddt_ipc_reaches(peer) && mca_pml_umrddt_ipc_takes(where)) {
            schemes |= MCA_PML_UMRDDT_BIT_IPC;
        }
        if (mca_pml_umrddt_hca_takes(peer, where)) {
            schemes |= MCA_PML_UMRDDT_BITS_HCA;
        }
        if (mca_pml_umrddt_pack_takes(comm, where, size)) {
            schemes |= MCA_PML_UMRDDT_BITS_PACK;
        }
    } else if (NULL != mca_pml_umrddt.hca && peer->has_hca) {
        /* also packed schemes, because the HCA may not reach the receiver's memory */
        schemes |=
            MCA_PML_UMRDDT_BITS_HCA | (to_gpu && peer->has_gpu ? MCA_PML_UMRDDT_BITS_PACK : 0u);
    } else if (to_gpu && mca_pml_umrddt_pack_takes_to_gpu(comm, peer, size)) {
        schemes |= MCA_PML_UMRDDT_BITS_PACK;
    }
    schemes &= mca_pml_umrddt.schemes & comm->schemes;
    if (NULL == mca_pml_umrddt.hca || !peer->has_hca) {
        schemes &= ~(unsigned) MCA_PML_UMRDDT_BIT_PACK_GDR;
    }
    return (uint16_t) schemes;
}

/** Whether the receive buffer is in GPU memory, as asserted by the user; else as the sender's. */
static bool to_gpu(mca_pml_umrddt_comm_t *comm, bool gpu)
{
    switch (mca_pml_umrddt_pattern(comm)) {
    case MCA_PML_UMRDDT_PATTERN_CPU_TO_GPU:
    case MCA_PML_UMRDDT_PATTERN_GPU_TO_GPU:
        return true;
    case MCA_PML_UMRDDT_PATTERN_GPU_TO_CPU:
    case MCA_PML_UMRDDT_PATTERN_CPU_TO_CPU:
        return false;
    default:
        return gpu;
    }
}

void mca_pml_umrddt_select_describe(const mca_pml_umrddt_peer_t *peer, uint64_t total,
                                    opal_umrddt_select_case_t *message)
{
    memset(message, 0, sizeof(*message));
    message->bytes = total;
    message->near = OPAL_PROC_ON_LOCAL_NODE(peer->proc->proc_flags);
    message->write_pieces = 1;
    message->depth = mca_pml_umrddt.params.pack_depth;
    message->eager = mca_pml_umrddt.eager[message->near];
    message->base_takes_gpu = MCA_PML_UMRDDT_BASE_GPU_ALL == mca_pml_umrddt.base_gpu;
}

void mca_pml_umrddt_select_describe_side(opal_iov_cache_layout_t *layout, bool gpu,
                                         const opal_umrddt_select_case_t *message,
                                         opal_umrddt_select_side_t *side)
{
    const uint64_t chunk = message->chunk;
    const uint64_t second = 2 * chunk < layout->size ? 2 * chunk : layout->size;

    side->pieces = layout->iov_count;
    side->span = (uint64_t) (layout->ub - layout->lb);
    if (gpu) {
        side->boxed = opal_umrddt_gpu_boxed(layout, 0, layout->size);
        /* a chunk that begins within a block is more typical than the first */
        side->chunk_boxed =
            chunk < second ? opal_umrddt_gpu_boxed(layout, chunk, second) : side->boxed;
        side->listed = opal_umrddt_gpu_listed(layout);
    }
}

/** Describe a message to a peer from the sender's view. @p other: it goes into GPU memory */
static void describe_send(const mca_pml_umrddt_peer_t *peer, opal_iov_cache_layout_t *layout,
                          bool gpu, bool other, opal_umrddt_select_case_t *message)
{
    mca_pml_umrddt_select_describe(peer, layout->size, message);
    message->from.gpu = gpu;
    message->chunk = mca_pml_umrddt_pack_chunk_of(layout, layout->iov_count, layout->size);
    mca_pml_umrddt_select_describe_side(layout, gpu || other, message, &message->from);
    message->to = message->from;
    message->to.gpu = other;
    message->pack_by_hca =
        mca_pml_umrddt.params.pack_hca && NULL != mca_pml_umrddt.hca && peer->has_hca;
    message->write_pieces =
        NULL == mca_pml_umrddt.caps ? 1 : (uint32_t) mca_pml_umrddt.caps->write_pieces;
    message->uses = EXPECTED < mca_pml_umrddt.params.reuse ? mca_pml_umrddt.params.reuse : EXPECTED;
}

static __opal_attribute_noinline__ bool predict_pass(const mca_pml_umrddt_peer_t *peer,
                                                     opal_iov_cache_layout_t *layout, bool gpu,
                                                     bool other, unsigned schemes)
{
    double times[MCA_PML_UMRDDT_SCHEMES];
    opal_umrddt_select_case_t message;
    mca_pml_umrddt_scheme_id_t best;

    describe_send(peer, layout, gpu, other, &message);
    best = opal_umrddt_select_best(&mca_pml_umrddt.selections->tuning, &message,
                                   schemes | MCA_PML_UMRDDT_BIT_BASE, times);
    if (MCA_PML_UMRDDT_SCHEME_BASE == best) {
        if (mca_pml_umrddt.params.explain) {
            opal_umrddt_explain_passed(&message, times, schemes);
        }
        MCA_PML_UMRDDT_VERBOSE(SELECTION,
                               "%llu bytes to rank %u, %u blocks in %s memory: passed through (%s)",
                               (unsigned long long) message.bytes, mca_pml_umrddt_peer_rank(peer),
                               (unsigned) message.from.pieces, gpu ? "GPU" : "system",
                               "the base PML is predicted to be faster");
    }
    return MCA_PML_UMRDDT_SCHEME_BASE == best;
}

/** Kinds of cached predictions for a layout. */
typedef enum question_t {
    QUESTION_PASSES, /**< whether the base PML is fastest */
    QUESTION_BEATS   /**< whether another scheme is faster than CUDA IPC */
} question_t;

static inline uint64_t key_of(const opal_iov_cache_layout_t *layout, question_t which,
                              unsigned kind)
{
    /* which and kind use six bits */
    return opal_umrddt_offer_mix(0, layout->id << 6 | kind << 1 | (unsigned) which) | 1;
}

/** Look up a prediction for a layout. @return false: not cached */
static inline bool lookup(uint64_t key, bool *decision)
{
    const uint32_t word = opal_umrddt_offer_word(&mca_pml_umrddt.offers, key);

    *decision = OPAL_UMRDDT_OFFER_YES == word;
    return OPAL_UMRDDT_OFFER_YES <= word;
}

static void remember(uint64_t key, bool decision)
{
    opal_umrddt_offer_set(&mca_pml_umrddt.offers, key,
                          decision ? OPAL_UMRDDT_OFFER_YES : OPAL_UMRDDT_OFFER_NO);
}

/** Returns true if the base PML is faster for a receive buffer in GPU memory (@p other) or not. */
static inline bool passes_for(const mca_pml_umrddt_peer_t *peer, opal_iov_cache_layout_t *layout,
                              bool gpu, bool other, unsigned schemes)
{
    /* all parameters of the prediction except the layout */
    const unsigned kind = (OPAL_PROC_ON_LOCAL_NODE(peer->proc->proc_flags) ? 1u : 0)
                          | (gpu ? 2u : 0) | (other ? 4u : 0)
                          | (0 != (schemes & MCA_PML_UMRDDT_BIT_IPC) ? 8u : 0)
                          | (peer->has_hca ? 16u : 0);
    const uint64_t key = key_of(layout, QUESTION_PASSES, kind);
    bool passes;

    if (!lookup(key, &passes)) {
        passes = 0 < layout->size && predict_pass(peer, layout, gpu, other, schemes);
        remember(key, passes);
    }
    return passes;
}

bool mca_pml_umrddt_select_passes_new(mca_pml_umrddt_comm_t *comm,
                                      const mca_pml_umrddt_peer_t *peer,
                                      const opal_umrddt_gpu_where_t *where, bool lands,
                                      size_t count, ompi_datatype_t *datatype)
{
    bool gpu = opal_umrddt_gpu_on_gpu(where), other = lands || to_gpu(comm, gpu), passes;
    opal_iov_cache_layout_t *layout;
    unsigned schemes;

    if (MCA_PML_UMRDDT_SCHEME_AUTO != comm->scheme || where->mixed
        || OMPI_SUCCESS != mca_pml_umrddt_layout(datatype, count, &layout)) {
        return false;
    }
    schemes = mca_pml_umrddt_select_offered(comm, peer, where, other, layout->size);
    passes = passes_for(peer, layout, gpu, other, schemes);
    /* Data sent from GPU memory may be received in system memory. Decline only if the base PML is
     * faster in both cases, since the receiver can still select another scheme. */
    if (passes && gpu && MCA_PML_UMRDDT_PATTERN_NONE == mca_pml_umrddt_pattern(comm)) {
        passes = passes_for(peer, layout, gpu, !other, schemes);
    }
    OBJ_RELEASE(layout);
    return passes;
}

/* Bits of the kind of predictions for senders that can use CUDA IPC. */
#define KIND_TO_GPU 1u
#define KIND_BY_HCA 2u
#define KIND_ANY    4u

/** Returns true if one of @p schemes is predicted to be faster than CUDA IPC for GPU memory. For
 * the HCA, one kind of receiver for which it is faster suffices: the offer is cheap, and the
 * receiver selects with both layouts at hand. Predicted once for a layout and a @p kind. */
static bool beats_ipc(mca_pml_umrddt_comm_t *comm, const mca_pml_umrddt_peer_t *peer,
                      opal_iov_cache_layout_t *layout, unsigned schemes, unsigned kind)
{
    const unsigned others = schemes & mca_pml_umrddt.schemes & comm->schemes;
    opal_umrddt_select_case_t message;
    bool other, beats;
    uint64_t key;

    if (!mca_pml_umrddt.declines || 0 == others || 0 == layout->size) {
        return false;
    }
    other = to_gpu(comm, true);
    kind |= other ? KIND_TO_GPU : 0;
    key = key_of(layout, QUESTION_BEATS, kind);
    if (lookup(key, &beats)) {
        return beats;
    }
    describe_send(peer, layout, true, other, &message);
    message.pack_by_hca = false; /* beside CUDA IPC the HCA does not carry packed data */
    beats = opal_umrddt_select_beats(&mca_pml_umrddt.selections->tuning, &message,
                                     MCA_PML_UMRDDT_SCHEME_IPC, others,
                                     0 == (KIND_BY_HCA & kind) ? 1
                                     : 0 == (KIND_ANY & kind)  ? 2
                                                               : 4);
    remember(key, beats);
    return beats;
}

bool mca_pml_umrddt_select_hca_beats_ipc(mca_pml_umrddt_comm_t *comm,
                                         const mca_pml_umrddt_peer_t *peer,
                                         opal_iov_cache_layout_t *layout)
{
    const bool any = MCA_PML_UMRDDT_PATTERN_NONE == mca_pml_umrddt_pattern(comm);

    return NULL != mca_pml_umrddt.hca && peer->has_hca
           && beats_ipc(comm, peer, layout, MCA_PML_UMRDDT_BITS_HCA,
                        KIND_BY_HCA | (any ? KIND_ANY : 0));
}

bool mca_pml_umrddt_select_pack_beats_ipc(mca_pml_umrddt_comm_t *comm,
                                          const mca_pml_umrddt_peer_t *peer,
                                          opal_iov_cache_layout_t *layout)
{
    return beats_ipc(comm, peer, layout, MCA_PML_UMRDDT_BITS_PACK & ~MCA_PML_UMRDDT_BIT_PACK_GDR,
                     0);
}
