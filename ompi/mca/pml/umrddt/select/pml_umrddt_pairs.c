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
 * The selection cache: pairs of layouts and the model's selections for them; see
 * pml_umrddt_pairs.h. pml_umrddt_pairs_send.c has the sender's queries, and pml_umrddt_pairs_told.c
 * the output of pml_umrddt_explain.
 */

#include "ompi_config.h"

#include <stdlib.h>
#include <string.h>

#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_engine.h"
#include "opal/util/show_help.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_hca.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_owner.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_pattern.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_direct.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_pack.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_pairs_private.h"

/** A scheme that failed with a peer is not tried again for this number of messages. */
#define RETRY_AFTER 256

/** Rows of at least this many bytes are assumed to suit the driver's copies. */
#define LONG_ROW 256

/* ---------------------------------------------------------------------------------------------
 * Tuning parameters
 * ------------------------------------------------------------------------------------------- */

/** Read a tuning file, or report what is wrong with it. @p asked: the user named the file */
static bool read_file(struct mca_pml_umrddt_pairs_t *pairs, const char *path, const char *hardware,
                      bool asked)
{
    char wrong[OPAL_UMRDDT_TUNING_TEXT];
    opal_umrddt_tuning_file_t result =
        opal_umrddt_tuning_read(path, hardware, &pairs->figures, NULL, wrong);

    if (OPAL_UMRDDT_TUNING_FILE_GOOD == result) {
        (void) snprintf(pairs->why, sizeof(pairs->why), "%.500s", path);
        return true;
    }
    if (asked || OPAL_UMRDDT_TUNING_FILE_ABSENT != result) {
        opal_show_help("help-mca-pml-umrddt.txt", "model-file", true, path, wrong, hardware);
    }
    return false;
}

/** Read the file named by pml_umrddt_model, or the default file that umrddt_tune writes. */
static bool read_figures(struct mca_pml_umrddt_pairs_t *pairs)
{
    const char *model = mca_pml_umrddt.params.model;
    char hardware[OPAL_UMRDDT_TUNING_TEXT], path[1024];

    opal_umrddt_tuning_default(&pairs->figures);
    (void) snprintf(pairs->why, sizeof(pairs->why), "defaults, not measured here (umrddt_tune)");
    if (0 == strcmp(model, "none")) {
        return false;
    }
    if (0 == strcmp(model, "defaults")) {
        return true;
    }
    opal_umrddt_tuning_hardware(hardware);
    if ('\0' != model[0]) {
        return read_file(pairs, model, hardware, true);
    }
    return (opal_umrddt_tuning_path(hardware, false, path, sizeof(path))
            && read_file(pairs, path, hardware, false))
           || (opal_umrddt_tuning_path(hardware, true, path, sizeof(path))
               && read_file(pairs, path, hardware, false));
}

void mca_pml_umrddt_pairs_open(bool told)
{
    struct mca_pml_umrddt_pairs_t *pairs = calloc(1, sizeof(*pairs));

    mca_pml_umrddt.pairs = NULL;
    memset(mca_pml_umrddt.offers, 0, sizeof(mca_pml_umrddt.offers));
    if (NULL == pairs) {
        return; /* the rules need no memory */
    }
    mca_pml_umrddt.declines = read_figures(pairs);
    if (!mca_pml_umrddt.declines && !told) {
        free(pairs);
        return;
    }
    mca_pml_umrddt.pairs = pairs;
}

void mca_pml_umrddt_pairs_close(void)
{
    mca_pml_umrddt.declines = false;
    free(mca_pml_umrddt.pairs);
    mca_pml_umrddt.pairs = NULL;
}

bool mca_pml_umrddt_pairs_decide(void)
{
    return mca_pml_umrddt.declines;
}

/* ---------------------------------------------------------------------------------------------
 * Description of a message for the model
 * ------------------------------------------------------------------------------------------- */

void mca_pml_umrddt_pairs_describe(const mca_pml_umrddt_peer_t *peer, uint64_t total,
                                   opal_umrddt_select_case_t *message)
{
    memset(message, 0, sizeof(*message));
    message->bytes = total;
    message->near = mca_pml_umrddt_pairs_near(peer);
    message->write_pieces = 1;
    message->depth = mca_pml_umrddt.params.pack_depth;
    message->eager = mca_pml_umrddt.eager[message->near];
    message->base_takes_gpu = MCA_PML_UMRDDT_BASE_GPU_ALL == mca_pml_umrddt.base_gpu;
}

/** Returns true if the sender's buffer is in GPU memory, as far as known at the receiver. */
static bool from_gpu(const mca_pml_umrddt_recv_t *recv)
{
    const mca_pml_umrddt_pattern_t pattern = mca_pml_umrddt_pattern(recv->comm);

    return 0 != ((MCA_PML_UMRDDT_ON_GPU | MCA_PML_UMRDDT_BIT_IPC) & recv->rts.schemes)
           || MCA_PML_UMRDDT_PATTERN_GPU_TO_GPU == pattern
           || MCA_PML_UMRDDT_PATTERN_GPU_TO_CPU == pattern;
}

void mca_pml_umrddt_pairs_describe_layout(opal_iov_cache_layout_t *layout, uint64_t chunk, bool gpu,
                                          opal_umrddt_select_side_t *side)
{
    uint64_t second = 2 * chunk < layout->size ? 2 * chunk : layout->size;

    if (gpu) {
        side->boxed = opal_umrddt_gpu_boxed(layout, 0, layout->size);
        /* a chunk that begins within a block is more typical than the first */
        side->chunk_boxed =
            chunk < second ? opal_umrddt_gpu_boxed(layout, chunk, second) : side->boxed;
        side->listed = opal_umrddt_gpu_listed(layout);
    }
}

static void describe_recv(const mca_pml_umrddt_recv_t *recv, const mca_pml_umrddt_pair_t *pair,
                          opal_umrddt_select_case_t *message)
{
    const mca_pml_umrddt_rts_t *rts = &recv->rts;

    mca_pml_umrddt_pairs_describe(recv->peer, recv->total, message);
    message->from.pieces = rts->pieces;
    message->from.gpu = from_gpu(recv);
    message->to.pieces = recv->layout->iov_count;
    message->to.span = (uint64_t) (recv->layout->ub - recv->layout->lb);
    message->to.gpu = mca_pml_umrddt_on_gpu(&recv->where);
    message->chunk = mca_pml_umrddt_pack_chunk_of(recv->layout, rts->pieces, recv->total);
    mca_pml_umrddt_pairs_describe_layout(recv->layout, message->chunk,
                                         message->from.gpu || message->to.gpu, &message->to);
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
    message->known = pair->known;
    message->uses =
        mca_pml_umrddt.params.reuse < pair->uses ? pair->uses : mca_pml_umrddt.params.reuse;
    if (!mca_pml_umrddt.params.mkey_cache) {
        /* mkeys are created for each message */
        message->known &= ~MCA_PML_UMRDDT_BIT(MCA_PML_UMRDDT_SCHEME_UMR);
        message->uses = 1;
    }
}

/** Returns true if the base PML is among the schemes for this message. */
static bool may_leave(const mca_pml_umrddt_recv_t *recv)
{
    return mca_pml_umrddt.declines && 0 != (MCA_PML_UMRDDT_MAY_LEAVE & recv->rts.schemes);
}

/** The schemes that both sides support. */
static unsigned possible_ways(const mca_pml_umrddt_recv_t *recv)
{
    unsigned both = recv->rts.schemes & mca_pml_umrddt.schemes, ways = 0;
    mca_pml_umrddt_rts_t rts = recv->rts;

    if (recv->where.mixed) {
        return 0;
    }
    if (NULL == mca_pml_umrddt.hca || !recv->peer->has_hca
        || (mca_pml_umrddt_on_gpu(&recv->where)
            && !mca_pml_umrddt_hca_takes(recv->peer, &recv->where))) {
        both &= ~(unsigned) MCA_PML_UMRDDT_BITS_HCA;
    }
    for (int way = 0; way < MCA_PML_UMRDDT_SCHEMES; ++way) {
        if (0 == (both & MCA_PML_UMRDDT_BIT(way))) {
            continue;
        }
        if (0 != (MCA_PML_UMRDDT_BITS_PACK & MCA_PML_UMRDDT_BIT(way))) {
            /* with all non-packed schemes, because the rule depends on the alternatives */
            rts.schemes = (uint16_t) ((recv->rts.schemes & ~MCA_PML_UMRDDT_BITS_PACK)
                                      | MCA_PML_UMRDDT_BIT(way));
            if (MCA_PML_UMRDDT_BIT(way)
                != mca_pml_umrddt_pack_chosen(&rts, &recv->where, recv->total)) {
                continue;
            }
        }
        ways |= MCA_PML_UMRDDT_BIT(way);
    }
    if (0 != ways && may_leave(recv)) {
        ways |= MCA_PML_UMRDDT_BIT(MCA_PML_UMRDDT_SCHEME_BASE);
    }
    return ways;
}

/* ---------------------------------------------------------------------------------------------
 * Selection
 * ------------------------------------------------------------------------------------------- */

/** Schemes that recently failed with this peer. Sets pair->expires. */
static unsigned failed_ways(mca_pml_umrddt_pair_t *pair)
{
    const uint64_t judged = mca_pml_umrddt.pairs->judged;
    unsigned failed = 0;

    pair->expires = UINT64_MAX;
    for (int way = 0; way < MCA_PML_UMRDDT_SCHEMES; ++way) {
        const uint64_t retry_at = pair->peer->states[way].retry_at;

        if (judged < retry_at) {
            failed |= MCA_PML_UMRDDT_BIT(way);
            pair->expires = retry_at < pair->expires ? retry_at : pair->expires;
        }
    }
    return failed;
}

/** Query the model. */
static void work_out(mca_pml_umrddt_recv_t *recv, mca_pml_umrddt_pair_t *pair)
{
    opal_umrddt_select_case_t message;

    describe_recv(recv, pair, &message);
    pair->possible = possible_ways(recv);
    opal_umrddt_select(&mca_pml_umrddt.pairs->figures, &message, pair->possible, failed_ways(pair),
                       &pair->selection);
    if (0 == pair->uses && mca_pml_umrddt.params.explain) {
        mca_pml_umrddt_pairs_explain(recv, pair, &message);
    }
    /* select again after twice as many uses: more messages then share the cost of the keys */
    pair->next = 2 * pair->uses;
    if (0 == pair->uses) {
        pair->next = 1;
    } else if (UINT32_MAX / 2 < pair->uses) {
        pair->next = UINT32_MAX;
    }
}

/** Find the entry of a pair. If there is none, replace one: it then holds only its key. */
static mca_pml_umrddt_pair_t *find(const mca_pml_umrddt_recv_t *recv)
{
    struct mca_pml_umrddt_pairs_t *pairs = mca_pml_umrddt.pairs;
    uint64_t layout = recv->layout->id;
    uint64_t hash = (layout * UINT64_C(0x9e3779b97f4a7c15) ^ (uintptr_t) recv->buf
                     ^ (uintptr_t) recv->peer << 17)
                    * UINT64_C(0x9e3779b97f4a7c15);
    size_t bucket = (size_t) (hash >> 56);
    mca_pml_umrddt_pair_t *pair;
    bool from = from_gpu(recv);
    /* whether the completion flag would signal its end does not matter to the selection */
    const uint16_t schemes = recv->rts.schemes & (uint16_t) ~MCA_PML_UMRDDT_DONE_FLAG;

    _Static_assert(1 << (64 - 56) == MCA_PML_UMRDDT_PAIR_BUCKETS, "the highest bits of the hash");
    for (size_t way = 0; way < MCA_PML_UMRDDT_PAIR_WAYS; ++way) {
        pair = &pairs->pairs[bucket][way];
        if (layout == pair->layout && (uintptr_t) recv->buf == pair->buffer
            && recv->peer == pair->peer && recv->total == pair->total
            && recv->rts.pieces == pair->pieces && schemes == pair->schemes && from == pair->from) {
            return pair;
        }
    }
    pair = &pairs->pairs[bucket][pairs->turn[bucket]++ % MCA_PML_UMRDDT_PAIR_WAYS];
    memset(pair, 0, sizeof(*pair));
    pair->layout = layout;
    pair->buffer = (uintptr_t) recv->buf;
    pair->peer = recv->peer;
    pair->total = recv->total;
    pair->pieces = recv->rts.pieces;
    pair->schemes = schemes;
    pair->from = from;
    pair->gpu = mca_pml_umrddt_on_gpu(&recv->where);
    pair->serial = ++pairs->serial;
    return pair;
}

void mca_pml_umrddt_pairs_judge(mca_pml_umrddt_recv_t *recv)
{
    struct mca_pml_umrddt_pairs_t *pairs = mca_pml_umrddt.pairs;
    mca_pml_umrddt_pair_t *pair;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (!mca_pml_umrddt_recv_has_layout(recv) || 0 == recv->total) {
        return; /* continue without a selection */
    }
    pair = find(recv);
    ++pairs->judged;
    if (pair->uses == pair->next || pairs->judged > pair->expires
        || pair->gpu != mca_pml_umrddt_on_gpu(&recv->where)) {
        pair->gpu = mca_pml_umrddt_on_gpu(&recv->where);
        work_out(recv, pair);
    }
    if (UINT32_MAX > pair->uses) {
        ++pair->uses;
    }
    recv->pair = pair;
    recv->serial = pair->serial;
    recv->scheme = (int) pair->selection.way;
    recv->settled = pair->selection.settled;
    if (mca_pml_umrddt.declines && MCA_PML_UMRDDT_SCHEME_IPC != pair->selection.way
        && 0 != (MCA_PML_UMRDDT_BIT_IPC & recv->rts.schemes)) {
        /* IPC would be tried first, and the HCA must not interpret its fields as lanes */
        recv->rts.schemes &= (uint16_t) ~MCA_PML_UMRDDT_BIT_IPC;
        memset(recv->rts.lanes, 0, sizeof(recv->rts.lanes));
    }
    if (OPAL_UNLIKELY(mca_pml_umrddt.params.explain)) {
        recv->began = mca_pml_umrddt_pairs_now();
    }
}

unsigned mca_pml_umrddt_pairs_hca(const mca_pml_umrddt_recv_t *recv)
{
    unsigned both = recv->rts.schemes & mca_pml_umrddt.schemes & MCA_PML_UMRDDT_BITS_HCA;

    if (!mca_pml_umrddt.declines || MCA_PML_UMRDDT_BITS_HCA != both) {
        return mca_pml_umrddt_choose(&recv->rts, recv->layout, recv->buf, recv->total);
    }
    return MCA_PML_UMRDDT_SCHEME_DIRECT == recv->scheme ? MCA_PML_UMRDDT_BIT_DIRECT
                                                        : MCA_PML_UMRDDT_BIT_UMR;
}

unsigned mca_pml_umrddt_pairs_pack(const mca_pml_umrddt_recv_t *recv,
                                   const mca_pml_umrddt_rts_t *rts, unsigned rule)
{
    unsigned both = rts->schemes & mca_pml_umrddt.schemes;
    unsigned scheme = 0 == (MCA_PML_UMRDDT_BITS_PACK & MCA_PML_UMRDDT_BIT(recv->scheme))
                          ? 0
                          : MCA_PML_UMRDDT_BIT(recv->scheme);

    return 0 != rule && mca_pml_umrddt.declines && 0 != (both & scheme) ? scheme : rule;
}

bool mca_pml_umrddt_pairs_leaves(const mca_pml_umrddt_recv_t *recv)
{
    return MCA_PML_UMRDDT_SCHEME_BASE == recv->scheme
           && 0 != (MCA_PML_UMRDDT_BIT(MCA_PML_UMRDDT_SCHEME_BASE) & recv->pair->possible);
}

bool mca_pml_umrddt_pairs_packs(const mca_pml_umrddt_recv_t *recv)
{
    return mca_pml_umrddt.declines
           && 0 != (MCA_PML_UMRDDT_BITS_PACK & MCA_PML_UMRDDT_BIT(recv->scheme));
}

/** The pair of a message, or NULL if its entry was replaced meanwhile. Sets recv->pair to NULL. */
static mca_pml_umrddt_pair_t *take_pair(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_pair_t *pair = recv->pair;

    recv->pair = NULL;
    return NULL == pair || recv->serial != pair->serial ? NULL : pair;
}

const char *mca_pml_umrddt_pairs_tell(const mca_pml_umrddt_recv_t *recv, double *times,
                                      unsigned *possible)
{
    const mca_pml_umrddt_pair_t *pair = recv->pair;

    memcpy(times, pair->selection.times, sizeof(pair->selection.times));
    *possible = pair->possible;
    return mca_pml_umrddt_pairs_reason(pair->possible);
}

const opal_umrddt_tuning_t *mca_pml_umrddt_pairs_model(void)
{
    return &mca_pml_umrddt.pairs->figures;
}

const char *mca_pml_umrddt_pairs_figures(void)
{
    return mca_pml_umrddt.pairs->why;
}

void mca_pml_umrddt_pairs_over(mca_pml_umrddt_recv_t *recv, int error)
{
    mca_pml_umrddt_pair_t *pair = take_pair(recv);

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (NULL == pair || (MPI_SUCCESS != error && MPI_ERR_TRUNCATE != error)) {
        return;
    }
    if (OPAL_UNLIKELY(mca_pml_umrddt.params.explain)) {
        mca_pml_umrddt_pairs_explain_observed(recv, pair);
    }
    pair->known |= MCA_PML_UMRDDT_BIT(recv->scheme);
}

void mca_pml_umrddt_pairs_failed(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_pair_t *pair = take_pair(recv);

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (NULL == pair) {
        return;
    }
    pair->known = 0;
    pair->next = pair->uses;
    if (MCA_PML_UMRDDT_SCHEME_BASE != recv->scheme) {
        recv->peer->states[recv->scheme].retry_at = mca_pml_umrddt.pairs->judged + RETRY_AFTER;
    }
    mca_pml_umrddt_pairs_explain_failed(recv, pair);
}
