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
 * The selection by the model; see pml_umrddt_select.h.
 */

#include "ompi_config.h"

#include <stdlib.h>
#include <string.h>

#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_engine.h"
#include "opal/mca/common/umrddt_select/umrddt_select_explain.h"
#include "opal/mca/base/base.h"
#include "opal/mca/base/mca_base_var.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_base_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_hca.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_layout.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_progress.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_select.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_select_limits.h"
#include "umrddt_help.h"

/** Number of times that a sender expects a layout to be sent, unless pml_umrddt_reuse is greater. A
 * halo exchange, for example, maps its keys once and uses them until it ends. */
#define EXPECTED 64

/** Rows of at least this many bytes are assumed to suit the driver's copies. */
#define LONG_ROW 256

/** Read the eager limit of a BTL. @return false: the BTL is not open */
static bool read_limit(const char *btl, size_t *limit)
{
    const int index = mca_base_var_find("opal", "btl", btl, "eager_limit");
    const void *value = NULL;

    if (0 > index || OPAL_SUCCESS != mca_base_var_get_value(index, &value, NULL, NULL)
        || NULL == value) {
        return false;
    }
    *limit = *(const size_t *) value;
    return true;
}

void mca_pml_umrddt_eager_open(void)
{
    const char *const base = mca_pml_umrddt.host_component.pmlm_version.mca_component_name;
    size_t *near = &mca_pml_umrddt.eager[true];

    mca_pml_umrddt.eager[false] = *near = OPAL_UMRDDT_SELECT_EAGER;
    /* Other PMLs have no readable limit. Shared memory is btl/vader in 4.1, btl/sm in 5.0. The BTL
     * to remote nodes is unknown before the first message. */
    if (0 == strcmp("ob1", base) && !read_limit("vader", near)) {
        (void) read_limit("sm", near);
    }
}

static void report(const char *path, const char *wrong, const char *hardware)
{
    opal_show_help("help-mca-pml-umrddt.txt", "model-file", true, path, wrong, hardware);
}

void mca_pml_umrddt_select_open(bool shows)
{
    mca_pml_umrddt.shows = shows;
    memset(&mca_pml_umrddt.offers, 0, sizeof(mca_pml_umrddt.offers));
    mca_pml_umrddt.selections =
        opal_umrddt_selection_cache_new(mca_pml_umrddt.params.model, shows, report);
    mca_pml_umrddt.declines =
        NULL != mca_pml_umrddt.selections && mca_pml_umrddt.selections->selects;
    MCA_PML_UMRDDT_VERBOSE(SETUP, "selection: %s",
                           mca_pml_umrddt.declines ? mca_pml_umrddt.selections->source
                                                   : "rules, without a tuning file");
}

void mca_pml_umrddt_select_close(void)
{
    mca_pml_umrddt.declines = false;
    free(mca_pml_umrddt.selections);
    mca_pml_umrddt.selections = NULL;
}

/* ---------------------------------------------------------------------------------------------
 * Description of a message for the model
 * ------------------------------------------------------------------------------------------- */

/** Fill in the properties that all messages of @p total bytes to or from a peer share. */
static void describe(const mca_pml_umrddt_peer_t *peer, uint64_t total,
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

/** Describe a layout at one end of a message, whose chunk size is set. @p gpu: either end is in GPU
 * memory, so that GPUs would copy it */
static void describe_side(opal_iov_cache_layout_t *layout, bool gpu,
                          const opal_umrddt_select_case_t *message, opal_umrddt_select_side_t *side)
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

/** Returns true if the sender's buffer is in GPU memory, as far as known at the receiver. */
static bool from_gpu(const mca_pml_umrddt_recv_t *recv)
{
    const mca_pml_umrddt_pattern_t pattern = mca_pml_umrddt_pattern(recv->comm);

    return 0 != ((MCA_PML_UMRDDT_ON_GPU | MCA_PML_UMRDDT_BITS_COPY) & recv->rts.schemes)
           || MCA_PML_UMRDDT_PATTERN_GPU_TO_GPU == pattern
           || MCA_PML_UMRDDT_PATTERN_GPU_TO_CPU == pattern;
}

static void describe_recv(const mca_pml_umrddt_recv_t *recv, const opal_umrddt_selected_t *pair,
                          opal_umrddt_select_case_t *message)
{
    const mca_pml_umrddt_rts_t *rts = &recv->rts;

    describe(recv->peer, recv->total, message);
    message->from.pieces = rts->pieces;
    message->from.gpu = pair->key.from_gpu;
    message->to.gpu = pair->to_gpu;
    message->chunk = mca_pml_umrddt_pack_chunk_of(recv->layout, rts->pieces, recv->total);
    describe_side(recv->layout, message->from.gpu || message->to.gpu, message, &message->to);
    /* The sender's layout is not available here: assume this layout, or one block. If this layout
     * is one block, the sender may have rows: assumed if they are long and may have equal sizes. */
    message->from.boxed = message->from.chunk_boxed =
        1 >= rts->pieces
        || (1 == recv->layout->iov_count && 0 == recv->total % rts->pieces
            && LONG_ROW <= recv->total / rts->pieces);
    if (rts->pieces == recv->layout->iov_count) {
        message->from.boxed = message->to.boxed;
        message->from.chunk_boxed = message->to.chunk_boxed;
        message->from.listed = message->to.listed;
    }
    message->write_pieces = rts->write_pieces;
    message->pack_by_hca =
        mca_pml_umrddt.params.pack_hca && NULL != mca_pml_umrddt.hca && 0 != rts->address.qpn;
    message->gdr_by_base = !mca_pml_umrddt_gdr_by_hca(recv->peer) || 0 == rts->address.qpn;
    opal_umrddt_selected_describe(pair, mca_pml_umrddt.params.reuse,
                                  mca_pml_umrddt.params.mkey_cache, message);
}

/** The schemes that both sides support. */
static unsigned possible_schemes(const mca_pml_umrddt_recv_t *recv)
{
    unsigned both = recv->rts.schemes & mca_pml_umrddt.schemes & MCA_PML_UMRDDT_BITS_ALL;
    const unsigned others = recv->rts.schemes & ~MCA_PML_UMRDDT_BITS_PACK;

    if (recv->where.mixed) {
        return 0;
    }
    if (NULL == mca_pml_umrddt.hca || !recv->peer->has_hca
        || (opal_umrddt_gpu_on_gpu(&recv->where)
            && !mca_pml_umrddt_hca_takes(recv->peer, &recv->where))) {
        both &= ~(unsigned) MCA_PML_UMRDDT_BITS_HCA;
    }
    if ((!mca_pml_umrddt_gdr_by_hca(recv->peer) || 0 == recv->rts.address.qpn)
        && !mca_pml_umrddt_base_given_chunks(recv->comm, recv->peer)) {
        both &= ~(unsigned) MCA_PML_UMRDDT_BITS_GPU_WIRE;
    }
    for (unsigned packs = both & MCA_PML_UMRDDT_BITS_PACK; 0 != packs; packs &= packs - 1) {
        const unsigned bit = packs & -packs;

        /* with all non-packed schemes, because the rule depends on the alternatives */
        if (bit != mca_pml_umrddt_rule_pack(others | bit, &recv->where, recv->total)) {
            both &= ~bit;
        }
    }
    if (0 != both && mca_pml_umrddt.declines
        && 0 != (MCA_PML_UMRDDT_MAY_DECLINE & recv->rts.schemes)) {
        both |= MCA_PML_UMRDDT_BIT_BASE;
    }
    return both;
}

/* ---------------------------------------------------------------------------------------------
 * Selection
 * ------------------------------------------------------------------------------------------- */

/** Query the model. */
static __opal_attribute_noinline__ void query(mca_pml_umrddt_recv_t *recv,
                                              opal_umrddt_selected_t *pair)
{
    opal_umrddt_select_case_t message;

    describe_recv(recv, pair, &message);
    opal_umrddt_selected_select(mca_pml_umrddt.selections, pair, &message, possible_schemes(recv),
                                recv->peer->states);
    if (0 == pair->uses && mca_pml_umrddt.shows) {
        pair->to_pieces = (uint32_t) recv->layout->iov_count;
        if (opal_umrddt_explain_new(mca_pml_umrddt.selections, pair, (unsigned) recv->comm->scheme)
            && mca_pml_umrddt.params.explain) {
            opal_umrddt_explain_pair(mca_pml_umrddt.selections, pair, &message,
                                     recv->status.MPI_SOURCE);
        }
    }
}

void mca_pml_umrddt_select_recv(mca_pml_umrddt_recv_t *recv)
{
    opal_umrddt_selected_key_t key;
    opal_umrddt_selected_t *pair;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (!mca_pml_umrddt_recv_has_layout(recv) || 0 == recv->total) {
        return; /* continue without a selection */
    }
    key = (opal_umrddt_selected_key_t){
        .layout = recv->layout->id,
        .buffer = (uintptr_t) recv->buf,
        .peer = recv->peer,
        .total = recv->total,
        .pieces = recv->rts.pieces,
        /* whether the completion flag would signal its end does not matter to the selection */
        .schemes = recv->rts.schemes & (uint16_t) ~MCA_PML_UMRDDT_DONE_FLAG,
        .from_gpu = from_gpu(recv),
    };
    pair = opal_umrddt_selected_find(mca_pml_umrddt.selections, &key);
    if (opal_umrddt_selected_is_due(mca_pml_umrddt.selections, pair,
                                    opal_umrddt_gpu_on_gpu(&recv->where))) {
        query(recv, pair);
    }
    opal_umrddt_selected_use(pair);
    recv->pair = pair;
    recv->serial = pair->serial;
    recv->scheme = (int) pair->selection.scheme_id;
    recv->converged = pair->selection.converged;
    if (mca_pml_umrddt.declines
        && 0 == (MCA_PML_UMRDDT_BITS_COPY & MCA_PML_UMRDDT_BIT(pair->selection.scheme_id))
        && 0 != (MCA_PML_UMRDDT_BITS_COPY & recv->rts.schemes)) {
        /* IPC would be tried first, and the HCA must not interpret its fields as lanes */
        recv->rts.schemes &= (uint16_t) ~MCA_PML_UMRDDT_BITS_COPY;
        memset(recv->rts.lanes, 0, sizeof(recv->rts.lanes));
    }
    if (OPAL_UNLIKELY(mca_pml_umrddt.shows)) {
        recv->began = opal_umrddt_explain_now();
    }
}

bool mca_pml_umrddt_select_declines(const mca_pml_umrddt_recv_t *recv)
{
    return MCA_PML_UMRDDT_SCHEME_BASE == recv->scheme
           && 0 != (MCA_PML_UMRDDT_BIT_BASE & recv->pair->possible);
}

/** The pair of a message, or NULL if its entry was replaced meanwhile. Sets recv->pair to NULL. */
static opal_umrddt_selected_t *take_pair(mca_pml_umrddt_recv_t *recv)
{
    opal_umrddt_selected_t *pair = recv->pair;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    recv->pair = NULL;
    return NULL == pair || recv->serial != pair->serial ? NULL : pair;
}

/** Show the scheme of a pair's first message and each later change of it. */
static __opal_attribute_noinline__ void show(const mca_pml_umrddt_recv_t *recv,
                                             opal_umrddt_selected_t *pair,
                                             mca_pml_umrddt_scheme_id_t scheme)
{
    const bool is_new = pair->explained && (!pair->began || scheme != pair->counted);

    if (mca_pml_umrddt.params.explain) {
        opal_umrddt_explain_carried(mca_pml_umrddt.selections, pair, recv->status.MPI_SOURCE,
                                    scheme, opal_umrddt_explain_now() - recv->began);
    } else {
        pair->began = true;
        pair->counted = scheme;
    }
    if (is_new) {
        MCA_PML_UMRDDT_VERBOSE(
            SELECTION, "%llu bytes from rank %u, %u to %u blocks, %s to %s memory: %s (%s)",
            (unsigned long long) pair->key.total, mca_pml_umrddt_peer_rank(recv->peer),
            pair->key.pieces, pair->to_pieces, pair->key.from_gpu ? "GPU" : "system",
            pair->to_gpu ? "GPU" : "system", mca_pml_umrddt_scheme_names[scheme],
            mca_pml_umrddt.declines
                ? opal_umrddt_explain_reason(mca_pml_umrddt.selections, pair->possible)
                : "by the rules");
    }
}

void mca_pml_umrddt_select_ended(mca_pml_umrddt_recv_t *recv, int error)
{
    const mca_pml_umrddt_scheme_id_t scheme = (mca_pml_umrddt_scheme_id_t) recv->scheme;
    opal_umrddt_selected_t *pair = take_pair(recv);

    if (NULL == pair || (MPI_SUCCESS != error && MPI_ERR_TRUNCATE != error)) {
        return;
    }
    if (OPAL_UNLIKELY(mca_pml_umrddt.shows)) {
        show(recv, pair, scheme);
    }
    opal_umrddt_selected_carried(pair, scheme);
}

void mca_pml_umrddt_select_failed(mca_pml_umrddt_recv_t *recv)
{
    const mca_pml_umrddt_scheme_id_t scheme = (mca_pml_umrddt_scheme_id_t) recv->scheme;
    opal_umrddt_selected_t *pair = take_pair(recv);

    if (NULL == pair) {
        return;
    }
    opal_umrddt_selected_failed(mca_pml_umrddt.selections, pair, scheme,
                                &recv->peer->states[scheme]);
    if (mca_pml_umrddt.params.explain) {
        opal_umrddt_explain_failed(pair, recv->status.MPI_SOURCE, scheme);
    }
    if (mca_pml_umrddt.declines && MCA_PML_UMRDDT_SCHEME_BASE != scheme) {
        MCA_PML_UMRDDT_VERBOSE(
            SELECTION, "rank %u: %s failed; not selected for the next %llu messages",
            mca_pml_umrddt_peer_rank(recv->peer), mca_pml_umrddt_scheme_names[scheme],
            (unsigned long long) (recv->peer->states[scheme].retry_at
                                  - mca_pml_umrddt.selections->selections));
    }
}

/* ---------------------------------------------------------------------------------------------
 * The sender: whether to handle a message at all, and which schemes to offer beside CUDA IPC. The
 * offer cache stores the results.
 * ------------------------------------------------------------------------------------------- */

uint16_t mca_pml_umrddt_select_offered(const mca_pml_umrddt_comm_t *comm,
                                       const mca_pml_umrddt_peer_t *peer,
                                       const opal_umrddt_gpu_where_t *where, bool to_gpu,
                                       size_t size)
{
    unsigned schemes = 0;

    if (opal_umrddt_gpu_on_gpu(where)) {
        if (mca_pml_umrddt_copy_reaches(peer) && mca_pml_umrddt_copy_takes(peer, where)) {
            schemes |= MCA_PML_UMRDDT_BITS_COPY;
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
        schemes &= ~(unsigned) MCA_PML_UMRDDT_BITS_HCA;
    }
    if (!mca_pml_umrddt_gdr_by_hca(peer) && !mca_pml_umrddt_base_given_chunks(comm, peer)) {
        schemes &= ~(unsigned) MCA_PML_UMRDDT_BITS_GPU_WIRE;
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

/** Describe a message to a peer from the sender's view. @p other: it goes into GPU memory */
static void describe_send(const mca_pml_umrddt_peer_t *peer, opal_iov_cache_layout_t *layout,
                          bool gpu, bool other, opal_umrddt_select_case_t *message)
{
    describe(peer, layout->size, message);
    message->from.gpu = gpu;
    message->chunk = mca_pml_umrddt_pack_chunk_of(layout, layout->iov_count, layout->size);
    describe_side(layout, gpu || other, message, &message->from);
    message->to = message->from;
    message->to.gpu = other;
    message->pack_by_hca =
        mca_pml_umrddt.params.pack_hca && NULL != mca_pml_umrddt.hca && peer->has_hca;
    message->gdr_by_base = !mca_pml_umrddt_gdr_by_hca(peer);
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
                          | (0 != (schemes & MCA_PML_UMRDDT_BITS_COPY) ? 8u : 0)
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

bool mca_pml_umrddt_select_beats_copy(mca_pml_umrddt_comm_t *comm,
                                      const mca_pml_umrddt_peer_t *peer,
                                      opal_iov_cache_layout_t *layout, unsigned schemes)
{
    const bool by_hca = 0 != (MCA_PML_UMRDDT_BITS_HCA & schemes), other = to_gpu(comm, true);
    /* beside CUDA IPC the HCA does not carry packed data */
    const unsigned others = schemes & mca_pml_umrddt.schemes & comm->schemes
                            & (by_hca ? MCA_PML_UMRDDT_BITS_HCA : ~MCA_PML_UMRDDT_BITS_NEED_HCA);
    const bool any = by_hca && MCA_PML_UMRDDT_PATTERN_NONE == mca_pml_umrddt_pattern(comm);
    opal_umrddt_select_case_t message;
    uint64_t key;
    bool beats;

    if (!mca_pml_umrddt.declines || 0 == others || 0 == layout->size
        || (by_hca && (NULL == mca_pml_umrddt.hca || !peer->has_hca))) {
        return false;
    }
    key = key_of(layout, QUESTION_BEATS,
                 (other ? KIND_TO_GPU : 0) | (by_hca ? KIND_BY_HCA : 0) | (any ? KIND_ANY : 0));
    if (!lookup(key, &beats)) {
        describe_send(peer, layout, true, other, &message);
        message.pack_by_hca = false;
        /* For the HCA one kind of receiver suffices: the offer is cheap, and the receiver selects
         * with both layouts at hand. */
        beats = opal_umrddt_select_beats(&mca_pml_umrddt.selections->tuning, &message,
                                         mca_pml_umrddt_scheme_of(MCA_PML_UMRDDT_BITS_COPY), others,
                                         any      ? 4
                                         : by_hca ? 2
                                                  : 1);
        remember(key, beats);
    }
    return beats;
}
