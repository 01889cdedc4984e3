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
 * Pairs of layouts and the model's verdicts on them; see pml_umrddt_pairs.h. What senders ask is in
 * pml_umrddt_pairs_send.c.
 */

#include "ompi_config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_engine.h"
#include "opal/util/output.h"
#include "opal/util/show_help.h"

#include "pml_umrddt_direct.h"
#include "pml_umrddt_pack.h"
#include "pml_umrddt_pairs_private.h"
#include "pml_umrddt_trial.h"

/** Of the table; a bucket's entries are replaced in turn. */
#define BUCKETS 256
#define WAYS    4

/** Pairs that are explained; nobody reads more. */
#define EXPLAINED 1024

/** Uses after which a pair is told of once more. */
#define SETTLED 16

/** Messages of a peer for which a scheme that failed with it is not tried again. */
#define SHUNNED 256

/** Bytes of a row from which on the driver's copies are thought of. */
#define LONG_ROW 256

/** Observed times: classes of bytes (each four times the last), kinds of peers and memory. */
#define CLASSES 16
#define KINDS   8
/** Times of a class that are seen before they are believed; and how far they are. */
#define BELIEVED 8
#define FARTHEST 4.0
/** A way that is in use stays, unless another one is predicted to take less than so much of its
 * time, or is seen to. */
#define HYSTERESIS 0.8
#define SEEN_LESS  0.96
/** Messages that take longer than so many small ones are not worth to be left without a question:
 * that costs two small ones, and what was asked can be judged again. */
#define ASKED_FROM 40
/** Ways that were tried are tried again if they took less than so many times of the best. */
#define SEEN_NEAR 1.25

/** Uses after which ways are tried, and how many times as many are the next time: of a pair that
 * stays, a vanishing part. */
#define TRIED_AT    8
#define TRIED_AGAIN 8

#define ALL_WAYS (WAY_BIT(MCA_PML_UMRDDT_WAYS) - 1)

#define PACK_WAYS                                                                   \
    (WAY_BIT(MCA_PML_UMRDDT_WAY_PACK_GDR) | WAY_BIT(MCA_PML_UMRDDT_WAY_PACK_STAGED) \
     | WAY_BIT(MCA_PML_UMRDDT_WAY_PACK_HOST))

/** What is known of a pair, of a buffer and a peer. */
typedef struct mca_pml_umrddt_pair_t {
    uint64_t layout;  /**< the receiver's; 0: nothing here */
    uintptr_t buffer; /**< and its buffer */
    const mca_pml_umrddt_peer_t *peer;
    uint64_t total;
    uint32_t pieces;  /**< the sender's */
    uint16_t schemes; /**< that it offered */
    bool gpu;         /**< the receiver's buffer is a GPU's */
    bool from;        /**< and the sender's, as far as is known */
    mca_pml_umrddt_way_t way;
    uint32_t serial;  /**< of the entry's content: a message may outlive it */
    uint32_t uses;    /**< as yet */
    uint32_t next;    /**< at so many it is judged again */
    uint64_t expires; /**< and when so many messages have been judged, if that is before */
    unsigned known;   /**< ways that it has gone: nothing is to be made for them */
    unsigned possible;
    bool tells;     /**< it is explained here */
    bool seen;      /**< the way is one that was tried, or there was nothing to try */
    bool brief;     /**< by the host PML it takes so little that a question is too much */
    unsigned later; /**< ways to be tried when what they need is spread over more messages */
    mca_pml_umrddt_trial_t trial;
    float saw[MCA_PML_UMRDDT_WAYS];     /**< what trials saw of ways, us; 0: they did not */
    double steady[MCA_PML_UMRDDT_WAYS]; /**< predicted when all is there that it needs */
    double told[MCA_PML_UMRDDT_WAYS];   /**< the same, with what was observed before its first */
    double times[MCA_PML_UMRDDT_WAYS];
    bool began;                   /**< what became of the first message is told */
    mca_pml_umrddt_way_t counted; /**< of the way that the last one went */
    unsigned count;               /**< so many messages took, more than SETTLED: and that is told */
    double took[SETTLED];
    unsigned class;
} mca_pml_umrddt_pair_t;

/** Of one way and class: by how much observed times differ from predicted ones. */
typedef struct observed_t {
    unsigned count;
    double log_factor;
} observed_t;

struct mca_pml_umrddt_pairs_t {
    mca_pml_umrddt_figures_t figures;
    char why[MCA_PML_UMRDDT_MODEL_TEXT]; /**< where the figures are from, for the user */
    uint32_t serial;
    uint64_t judged; /**< messages */
    unsigned told;
    uint64_t explained[EXPLAINED]; /**< hashes of pairs */
    uint32_t turn[BUCKETS];
    mca_pml_umrddt_pair_t pairs[BUCKETS][WAYS];
    observed_t observed[MCA_PML_UMRDDT_WAYS][KINDS][CLASSES];
};

const uint16_t mca_pml_umrddt_way_schemes[MCA_PML_UMRDDT_WAYS] = {
    [MCA_PML_UMRDDT_WAY_IPC] = MCA_PML_UMRDDT_BY_IPC,
    [MCA_PML_UMRDDT_WAY_UMR] = MCA_PML_UMRDDT_BY_UMR,
    [MCA_PML_UMRDDT_WAY_DIRECT] = MCA_PML_UMRDDT_BY_DIRECT,
    [MCA_PML_UMRDDT_WAY_PACK_GDR] = MCA_PML_UMRDDT_BY_PACK_GDR,
    [MCA_PML_UMRDDT_WAY_PACK_STAGED] = MCA_PML_UMRDDT_BY_PACK_STAGED,
    [MCA_PML_UMRDDT_WAY_PACK_HOST] = MCA_PML_UMRDDT_BY_PACK_HOST,
};

/** Microseconds of a clock that only goes on. */
static double now(void)
{
    struct timespec time;

    (void) clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e6 * (double) time.tv_sec + 1e-3 * (double) time.tv_nsec;
}

/* ---------------------------------------------------------------------------------------------
 * Figures
 * ------------------------------------------------------------------------------------------- */

/** Read a file, or tell what is wrong with it. @p asked: the user has named it */
static bool read_file(struct mca_pml_umrddt_pairs_t *pairs, const char *path, const char *hardware,
                      bool asked)
{
    char wrong[MCA_PML_UMRDDT_MODEL_TEXT];
    mca_pml_umrddt_model_file_t result =
        mca_pml_umrddt_model_read(path, hardware, &pairs->figures, NULL, wrong);

    if (MCA_PML_UMRDDT_MODEL_FILE_GOOD == result) {
        (void) snprintf(pairs->why, sizeof(pairs->why), "%.500s", path);
        return true;
    }
    if (asked || MCA_PML_UMRDDT_MODEL_FILE_ABSENT != result) {
        opal_show_help("help-mca-pml-umrddt.txt", "model-file", true, path, wrong, hardware);
    }
    return false;
}

/** Where pml_umrddt_model says, or where umrddt_tune leaves them. */
static bool read_figures(struct mca_pml_umrddt_pairs_t *pairs)
{
    const char *model = mca_pml_umrddt.params.model;
    char hardware[MCA_PML_UMRDDT_MODEL_TEXT], path[1024];

    mca_pml_umrddt_figures_default(&pairs->figures);
    (void) snprintf(pairs->why, sizeof(pairs->why), "defaults, not measured here (umrddt_tune)");
    if (0 == strcmp(model, "none")) {
        return false;
    }
    if (0 == strcmp(model, "defaults")) {
        return true;
    }
    mca_pml_umrddt_model_hardware(hardware);
    if ('\0' != model[0]) {
        return read_file(pairs, model, hardware, true);
    }
    return (mca_pml_umrddt_model_path(hardware, false, path, sizeof(path))
            && read_file(pairs, path, hardware, false))
           || (mca_pml_umrddt_model_path(hardware, true, path, sizeof(path))
               && read_file(pairs, path, hardware, false));
}

void mca_pml_umrddt_pairs_open(bool told)
{
    struct mca_pml_umrddt_pairs_t *pairs = calloc(1, sizeof(*pairs));

    mca_pml_umrddt.pairs = NULL;
    memset(mca_pml_umrddt.refusals, 0, sizeof(mca_pml_umrddt.refusals));
    memset(mca_pml_umrddt.left, 0, sizeof(mca_pml_umrddt.left));
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
 * What is known of a message
 * ------------------------------------------------------------------------------------------- */

void mca_pml_umrddt_pairs_describe(const mca_pml_umrddt_peer_t *peer, uint64_t total,
                                   mca_pml_umrddt_model_case_t *message)
{
    memset(message, 0, sizeof(*message));
    message->bytes = total;
    message->near = mca_pml_umrddt_pairs_near(peer);
    message->write_pieces = 1;
    message->depth = mca_pml_umrddt.params.pack_depth;
    message->host_takes_gpu = !mca_pml_umrddt.stages;
}

/** The sender's buffer is a GPU's, as far as a receiver knows. */
static bool from_gpu(const mca_pml_umrddt_recv_t *recv)
{
    const mca_pml_umrddt_pattern_t pattern = mca_pml_umrddt_pattern(recv->comm);

    return 0 != ((MCA_PML_UMRDDT_ON_GPU | MCA_PML_UMRDDT_BY_IPC) & recv->rts.schemes)
           || MCA_PML_UMRDDT_PATTERN_GPU_TO_GPU == pattern
           || MCA_PML_UMRDDT_PATTERN_GPU_TO_CPU == pattern;
}

void mca_pml_umrddt_pairs_describe_layout(opal_iov_cache_layout_t *layout, uint64_t chunk, bool gpu,
                                          mca_pml_umrddt_model_side_t *side)
{
    uint64_t second = 2 * chunk < layout->size ? 2 * chunk : layout->size;

    if (gpu) {
        side->boxed = opal_umrddt_gpu_boxed(layout, 0, layout->size);
        /* one that begins within a piece says more than the first */
        side->chunk_boxed =
            chunk < second ? opal_umrddt_gpu_boxed(layout, chunk, second) : side->boxed;
        side->listed = opal_umrddt_gpu_listed(layout);
    }
}

static void describe_recv(const mca_pml_umrddt_recv_t *recv, const mca_pml_umrddt_pair_t *pair,
                          mca_pml_umrddt_model_case_t *message)
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
    /* the sender's layout is not known here: it is like this one, or one piece; or, where this one
     * is one piece, it may be rows, and is taken to be if they are long and may be equal */
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
    message->pack_by_card =
        mca_pml_umrddt.params.pack_card && NULL != mca_pml_umrddt.card && 0 != rts->address.qpn;
    message->known = pair->known;
    message->uses =
        mca_pml_umrddt.params.reuse < pair->uses ? pair->uses : mca_pml_umrddt.params.reuse;
    if (!mca_pml_umrddt.params.mkey_cache) {
        /* keys are made for each message */
        message->known &= ~WAY_BIT(MCA_PML_UMRDDT_WAY_UMR);
        message->uses = 1;
    }
}

/** The ways that both sides can. */
static unsigned possible_ways(const mca_pml_umrddt_recv_t *recv)
{
    unsigned both = recv->rts.schemes & mca_pml_umrddt.schemes, ways = 0;
    mca_pml_umrddt_rts_t rts = recv->rts;

    if (recv->where.mixed) {
        return 0;
    }
    if (mca_pml_umrddt.params.adapt && mca_pml_umrddt.declines
        && 0 != (MCA_PML_UMRDDT_MAY_LEAVE & recv->rts.schemes)) {
        ways |= WAY_BIT(MCA_PML_UMRDDT_WAY_HOST);
    }
    if (NULL == mca_pml_umrddt.card || !recv->peer->has_card
        || (mca_pml_umrddt_on_gpu(&recv->where)
            && !mca_pml_umrddt_card_takes(recv->peer, &recv->where))) {
        both &= ~(unsigned) MCA_PML_UMRDDT_BY_CARD;
    }
    for (int way = 0; way < MCA_PML_UMRDDT_WAY_HOST; ++way) {
        if (0 == (both & mca_pml_umrddt_way_schemes[way])) {
            continue;
        }
        if (0 != (PACK_WAYS & WAY_BIT(way))) {
            /* with all others but the packed ones: the rule looks at what else there is */
            rts.schemes = (uint16_t) ((recv->rts.schemes & ~MCA_PML_UMRDDT_BY_PACK)
                                      | mca_pml_umrddt_way_schemes[way]);
            if (mca_pml_umrddt_way_schemes[way]
                != mca_pml_umrddt_pack_chosen(&rts, &recv->where, recv->total)) {
                continue;
            }
        }
        ways |= WAY_BIT(way);
    }
    return ways;
}

/* ---------------------------------------------------------------------------------------------
 * Observed times
 * ------------------------------------------------------------------------------------------- */

static unsigned kind_of(const mca_pml_umrddt_model_case_t *message)
{
    return (message->near ? 1u : 0) | (message->from.gpu ? 2u : 0) | (message->to.gpu ? 4u : 0);
}

static unsigned class_of(uint64_t bytes)
{
    unsigned class = 0;

    while (4 <= bytes && class < CLASSES - 1) {
        bytes /= 4;
        ++class;
    }
    return class;
}

/** What all ways' times are to be multiplied with. */
static void factors_of(const mca_pml_umrddt_model_case_t *message,
                       double factors[MCA_PML_UMRDDT_WAYS])
{
    for (int way = 0; way < MCA_PML_UMRDDT_WAYS; ++way) {
        const observed_t *observed =
            &mca_pml_umrddt.pairs->observed[way][kind_of(message)][class_of(message->bytes)];

        factors[way] = mca_pml_umrddt.params.adapt && BELIEVED <= observed->count
                           ? exp2(observed->log_factor)
                           : 1;
    }
}

/** A message of a pair that had gone this way before took @p took. */
static void learn(const mca_pml_umrddt_pair_t *pair, int way, double took)
{
    observed_t *observed =
        &mca_pml_umrddt.pairs->observed[way][pair->class / CLASSES][pair->class % CLASSES];
    double factor = log2(took / pair->steady[way]), most = log2(FARTHEST);

    /* a process that did not look for a while is not the scheme's fault */
    factor = factor < -most ? -most : factor > most ? most : factor;
    observed->log_factor += (factor - observed->log_factor) / (0 == observed->count ? 1 : 8);
    if (observed->count < BELIEVED) {
        ++observed->count;
    }
}

/* ---------------------------------------------------------------------------------------------
 * Explanations
 * ------------------------------------------------------------------------------------------- */

void mca_pml_umrddt_pairs_print_side(char *text, size_t room, const char *what,
                                     const mca_pml_umrddt_model_side_t *side, uint64_t bytes)
{
    size_t length = strlen(text);

    (void) snprintf(text + length, room - length, " %s %s memory, %llu pieces of %llu;", what,
                    side->gpu ? "GPU" : "host", (unsigned long long) side->pieces,
                    (unsigned long long) (bytes / (0 < side->pieces ? side->pieces : 1)));
}

void mca_pml_umrddt_pairs_print_times(char *text, size_t room, const double *times,
                                      unsigned possible)
{
    for (int way = 0; way < MCA_PML_UMRDDT_WAYS; ++way) {
        bool open = 0 != (possible & WAY_BIT(way));
        size_t length = strlen(text);

        (void) snprintf(text + length, room - length, open ? " %s %.1f" : " (%s %.1f)",
                        mca_pml_umrddt_way_names[way], times[way]);
    }
}

static const char *reason(unsigned possible)
{
    if (0 == (possible & (possible - 1))) {
        return 0 == possible ? "nothing else is possible" : "only this is possible";
    }
    return mca_pml_umrddt.declines ? "predicted to take least"
                                   : "by the rules, as this machine was not measured";
}

/** True if this pair was not told of: now it is. */
static bool is_new(const mca_pml_umrddt_recv_t *recv, const mca_pml_umrddt_pair_t *pair)
{
    struct mca_pml_umrddt_pairs_t *pairs = mca_pml_umrddt.pairs;
    uint64_t hash = pair->layout;

    hash = hash * UINT64_C(0x9e3779b97f4a7c15) + pair->pieces;
    hash = hash * UINT64_C(0x9e3779b97f4a7c15) + pair->total;
    hash = hash * UINT64_C(0x9e3779b97f4a7c15) + (uintptr_t) pair->peer;
    hash = hash * UINT64_C(0x9e3779b97f4a7c15) + (from_gpu(recv) ? 2 : 0) + (pair->gpu ? 1 : 0);
    hash = hash * UINT64_C(0x9e3779b97f4a7c15) + (unsigned) recv->comm->scheme;
    for (unsigned i = 0; i < pairs->told; ++i) {
        if (hash == pairs->explained[i]) {
            return false;
        }
    }
    if (EXPLAINED == pairs->told) {
        return false;
    }
    pairs->explained[pairs->told++] = hash;
    return true;
}

static void explain(const mca_pml_umrddt_recv_t *recv, const mca_pml_umrddt_pair_t *pair,
                    const mca_pml_umrddt_model_case_t *message)
{
    char text[1024] = "";

    mca_pml_umrddt_pairs_print_side(text, sizeof(text), "from", &message->from, message->bytes);
    mca_pml_umrddt_pairs_print_side(text, sizeof(text), "to", &message->to, message->bytes);
    (void) snprintf(text + strlen(text), sizeof(text) - strlen(text), " predicted, us:");
    mca_pml_umrddt_pairs_print_times(text, sizeof(text), pair->times, pair->possible);
    opal_output(0, "umrddt: explain: %llu bytes of rank %d, on %s host,%s figures: %s",
                (unsigned long long) message->bytes, recv->status.MPI_SOURCE,
                message->near ? "this" : "another", text, mca_pml_umrddt.pairs->why);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;

    return x < y ? -1 : x > y;
}

/** What became of it: behind the first message, and when it has settled. */
static void explain_observed(const mca_pml_umrddt_recv_t *recv, mca_pml_umrddt_pair_t *pair,
                             double took)
{
    if (!pair->began) {
        pair->began = true;
        opal_output(0,
                    "umrddt: explain: these %llu bytes of rank %d went by %s (%s); from the match "
                    "on it took %.1f us",
                    (unsigned long long) pair->total, recv->status.MPI_SOURCE,
                    mca_pml_umrddt_way_names[recv->way], reason(pair->possible), took);
    }
    if ((int) pair->counted != recv->way) {
        pair->counted = (mca_pml_umrddt_way_t) recv->way; /* a median is of one way */
        pair->count = 0;
    }
    if (SETTLED > pair->count) {
        pair->took[pair->count++] = took;
    }
    if (SETTLED == pair->count) {
        ++pair->count;
        qsort(pair->took, SETTLED, sizeof(pair->took[0]), by_value);
        opal_output(0,
                    "umrddt: explain: %llu bytes of rank %d, %u times, the last by %s: median %.1f "
                    "us from the match on, where %.1f were predicted",
                    (unsigned long long) pair->total, recv->status.MPI_SOURCE, SETTLED,
                    mca_pml_umrddt_way_names[recv->way], pair->took[SETTLED / 2],
                    pair->told[recv->way]);
    }
}

/* ---------------------------------------------------------------------------------------------
 * The verdict
 * ------------------------------------------------------------------------------------------- */

/** Ways that failed with this peer a while ago are left out, if there are others. */
static unsigned without_shunned(mca_pml_umrddt_pair_t *pair, unsigned possible)
{
    uint64_t judged = mca_pml_umrddt.pairs->judged, expires = UINT64_MAX;
    unsigned left = possible;

    for (int way = 0; mca_pml_umrddt.params.adapt && way < MCA_PML_UMRDDT_WAY_HOST; ++way) {
        if (judged < pair->peer->shunned[way]) {
            left &= ~WAY_BIT(way);
            expires = pair->peer->shunned[way] < expires ? pair->peer->shunned[way] : expires;
        }
    }
    pair->expires = expires;
    return 0 == left ? possible : left;
}

/** What is predicted of all ways, when everything is there that they need; from the match on. */
static void predict_steady(mca_pml_umrddt_pair_t *pair, mca_pml_umrddt_model_case_t *message)
{
    const mca_pml_umrddt_figures_t *figures = &mca_pml_umrddt.pairs->figures;
    const double small = mca_pml_umrddt_model_small(figures, message->near);
    double time;

    message->known = ALL_WAYS;
    for (int way = 0; way < MCA_PML_UMRDDT_WAYS; ++way) {
        time = mca_pml_umrddt_model_time(figures, message, (mca_pml_umrddt_way_t) way) - small;
        pair->steady[way] = 0.1 < time ? time : 0.1;
    }
}

/** A small message to or from a peer by the host PML, us. */
static double small(const mca_pml_umrddt_peer_t *peer)
{
    return mca_pml_umrddt_model_small(&mca_pml_umrddt.pairs->figures,
                                      mca_pml_umrddt_pairs_near(peer));
}

/** How many uses later the verdict on a pair is made again. */
static uint32_t next_use(const mca_pml_umrddt_pair_t *pair)
{
    const uint32_t by = mca_pml_umrddt.params.adapt && TRIED_AT <= pair->uses ? TRIED_AGAIN : 2;

    return 0 == pair->uses ? 1 : UINT32_MAX / by < pair->uses ? UINT32_MAX : by * pair->uses;
}

/**
 * Try the ways that may be better than the one that is in use, if there are any: of those that were
 * tried before the ones that came near it, of others those that are predicted to.
 *
 * @param[in] factors  of steady times
 */
static void try_ways(mca_pml_umrddt_pair_t *pair, unsigned possible,
                     const double factors[MCA_PML_UMRDDT_WAYS])
{
    const double now = 0 < pair->saw[pair->way] ? pair->saw[pair->way] : pair->times[pair->way];
    const bool first = TRIED_AT * TRIED_AGAIN > pair->uses;
    const double most = (first ? MCA_PML_UMRDDT_DOUBT : MCA_PML_UMRDDT_DOUBT_LATER) * now;
    unsigned ways = WAY_BIT(pair->way);

    pair->brief = (0 < pair->saw[MCA_PML_UMRDDT_WAY_HOST] ? pair->saw[MCA_PML_UMRDDT_WAY_HOST]
                                                          : pair->times[MCA_PML_UMRDDT_WAY_HOST])
                  < ASKED_FROM * small(pair->peer);
    pair->later = 0;
    for (int way = 0; way < MCA_PML_UMRDDT_WAYS; ++way) {
        if (0 == (possible & WAY_BIT(way))) {
            continue;
        }
        if (0 < pair->saw[way] ? pair->saw[way] < SEEN_NEAR * now : pair->times[way] < most) {
            ways |= WAY_BIT(way);
        } else if (0 >= pair->saw[way] && pair->steady[way] * factors[way] < most) {
            pair->later |= WAY_BIT(way);
        }
    }
    pair->seen = 0 == (ways & (ways - 1));
    if (!pair->seen) {
        mca_pml_umrddt_trial_begin(&pair->trial, ways);
    }
}

/** Ask the model. */
static void work_out(mca_pml_umrddt_recv_t *recv, mca_pml_umrddt_pair_t *pair)
{
    struct mca_pml_umrddt_pairs_t *pairs = mca_pml_umrddt.pairs;
    const bool adapts = mca_pml_umrddt.params.adapt;
    mca_pml_umrddt_way_t before = pair->way, best;
    mca_pml_umrddt_model_case_t message;
    double factors[MCA_PML_UMRDDT_WAYS];
    unsigned possible;

    describe_recv(recv, pair, &message);
    factors_of(&message, factors);
    pair->possible = possible_ways(recv);
    possible = without_shunned(pair, pair->possible);
    if (0 == possible) {
        possible = WAY_BIT(MCA_PML_UMRDDT_WAY_HOST);
    }
    best = mca_pml_umrddt_model_best(&pairs->figures, &message, possible, factors, pair->times);
    pair->way = best;
    if (adapts && 0 < pair->uses && 0 != (possible & WAY_BIT(before))
        && (pair->seen || pair->times[best] > HYSTERESIS * pair->times[before])) {
        pair->way = before; /* a prediction does not outweigh what was seen */
    }
    pair->class = kind_of(&message) * CLASSES + class_of(message.bytes);
    if (0 == pair->uses && mca_pml_umrddt.params.explain) {
        pair->tells = is_new(recv, pair);
        if (pair->tells) {
            explain(recv, pair, &message);
        }
    }
    predict_steady(pair, &message);
    for (int way = 0; 0 == pair->uses && way < MCA_PML_UMRDDT_WAYS; ++way) {
        pair->told[way] = pair->steady[way] * factors[way];
    }
    mca_pml_umrddt_trial_end(&pair->trial);
    if (adapts && mca_pml_umrddt.declines && TRIED_AT <= pair->uses) {
        try_ways(pair, possible, factors);
    }
    pair->next = next_use(pair);
}

/** Where a pair is, or is to be: then it is empty but for what names it. */
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
    /* whether it would be told of by the bell makes it no other message */
    const uint16_t schemes = recv->rts.schemes & (uint16_t) ~MCA_PML_UMRDDT_BELL;

    _Static_assert(1 << (64 - 56) == BUCKETS, "the highest bits of the hash");
    for (size_t way = 0; way < WAYS; ++way) {
        pair = &pairs->pairs[bucket][way];
        if (layout == pair->layout && (uintptr_t) recv->buf == pair->buffer
            && recv->peer == pair->peer && recv->total == pair->total
            && recv->rts.pieces == pair->pieces && schemes == pair->schemes && from == pair->from) {
            return pair;
        }
    }
    pair = &pairs->pairs[bucket][pairs->turn[bucket]++ % WAYS];
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
    mca_pml_umrddt_way_t way;

    if (NULL == recv->layout
        && OMPI_SUCCESS != mca_pml_umrddt_layout(recv->datatype, recv->count, &recv->layout)) {
        recv->layout = NULL; /* as it is without us */
        return;
    }
    if (0 == recv->total) {
        return;
    }
    pair = find(recv);
    ++pairs->judged;
    if (pair->uses == pair->next || pairs->judged > pair->expires
        || pair->gpu != mca_pml_umrddt_on_gpu(&recv->where)) {
        pair->gpu = mca_pml_umrddt_on_gpu(&recv->where);
        work_out(recv, pair);
    }
    way = OPAL_LIKELY(!mca_pml_umrddt_trial_runs(&pair->trial))
              ? pair->way
              : mca_pml_umrddt_trial_next(&pair->trial);
    if (UINT32_MAX > pair->uses) {
        ++pair->uses;
    }
    recv->pair = pair;
    recv->serial = pair->serial;
    recv->way = (int) way;
    /* (what a GPU is told again and again gets quicker, so one trial is not enough) */
    recv->settled =
        pair->seen && 0 == pair->later && TRIED_AT * TRIED_AGAIN < pair->uses && pair->brief;
    if (mca_pml_umrddt.declines && MCA_PML_UMRDDT_WAY_IPC != way
        && 0 != (MCA_PML_UMRDDT_BY_IPC & recv->rts.schemes)) {
        /* it would come first; and the card must not take its fields for rails */
        recv->rts.schemes &= (uint16_t) ~MCA_PML_UMRDDT_BY_IPC;
        memset(recv->rts.rails, 0, sizeof(recv->rts.rails));
    }
    if (mca_pml_umrddt.params.explain || mca_pml_umrddt.params.adapt) {
        recv->began = now();
    }
}

unsigned mca_pml_umrddt_pairs_card(const mca_pml_umrddt_recv_t *recv)
{
    unsigned both = recv->rts.schemes & mca_pml_umrddt.schemes & MCA_PML_UMRDDT_BY_CARD;

    if (!mca_pml_umrddt.declines || MCA_PML_UMRDDT_BY_CARD != both) {
        return mca_pml_umrddt_choose(&recv->rts, recv->layout, recv->buf, recv->total);
    }
    return MCA_PML_UMRDDT_WAY_DIRECT == recv->way ? MCA_PML_UMRDDT_BY_DIRECT
                                                  : MCA_PML_UMRDDT_BY_UMR;
}

unsigned mca_pml_umrddt_pairs_pack(const mca_pml_umrddt_recv_t *recv,
                                   const mca_pml_umrddt_rts_t *rts, unsigned rule)
{
    unsigned both = rts->schemes & mca_pml_umrddt.schemes;
    unsigned scheme =
        0 == (PACK_WAYS & WAY_BIT(recv->way)) ? 0 : mca_pml_umrddt_way_schemes[recv->way];

    return 0 != rule && mca_pml_umrddt.declines && 0 != (both & scheme) ? scheme : rule;
}

bool mca_pml_umrddt_pairs_leaves(const mca_pml_umrddt_recv_t *recv)
{
    return MCA_PML_UMRDDT_WAY_HOST == recv->way && mca_pml_umrddt.declines
           && mca_pml_umrddt.params.adapt && 0 != (MCA_PML_UMRDDT_MAY_LEAVE & recv->rts.schemes);
}

bool mca_pml_umrddt_pairs_packs(const mca_pml_umrddt_recv_t *recv)
{
    return mca_pml_umrddt.declines && 0 != (PACK_WAYS & WAY_BIT(recv->way));
}

/** The pair of a message, unless another one has its place by now. recv->pair is NULL. */
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

    memcpy(times, pair->times, sizeof(pair->times));
    *possible = pair->possible;
    return reason(pair->possible);
}

const mca_pml_umrddt_figures_t *mca_pml_umrddt_pairs_model(void)
{
    return &mca_pml_umrddt.pairs->figures;
}

const char *mca_pml_umrddt_pairs_figures(void)
{
    return mca_pml_umrddt.pairs->why;
}

/** A trial is over: the way that took least is the pair's. */
static void settle(const mca_pml_umrddt_recv_t *recv, mca_pml_umrddt_pair_t *pair)
{
    char text[512] = "";

    for (int way = 0; way < MCA_PML_UMRDDT_WAYS; ++way) {
        if (0 < pair->trial.count[way]) {
            pair->saw[way] = (float) mca_pml_umrddt_trial_median(&pair->trial, way);
        }
    }
    pair->way = mca_pml_umrddt_trial_best(&pair->trial, pair->way, SEEN_LESS);
    pair->seen = true;
    if (!pair->tells) {
        return;
    }
    for (int way = 0; way < MCA_PML_UMRDDT_WAYS; ++way) {
        const double median = mca_pml_umrddt_trial_median(&pair->trial, way);
        const size_t length = strlen(text);

        if (0 < median) {
            (void) snprintf(text + length, sizeof(text) - length, " %s %.1f",
                            mca_pml_umrddt_way_names[way], median);
        }
    }
    opal_output(0, "umrddt: explain: %llu bytes of rank %d were tried, us:%s; they go by %s",
                (unsigned long long) pair->total, recv->status.MPI_SOURCE, text,
                mca_pml_umrddt_way_names[pair->way]);
}

/** A message that nothing had to be made for took @p took. */
static void observe(const mca_pml_umrddt_recv_t *recv, mca_pml_umrddt_pair_t *pair, double took)
{
    learn(pair, recv->way, took);
    if (mca_pml_umrddt_trial_observe(&pair->trial, (mca_pml_umrddt_way_t) recv->way, took)) {
        settle(recv, pair);
    }
}

/**
 * Microseconds of a message from the match on. Of one that the sender is asked to leave to the host
 * PML: as if it had known. Others have an envelope's way before the match that it would not have,
 * and it has the reply's behind.
 */
static double time_of(const mca_pml_umrddt_recv_t *recv)
{
    const double took = now() - recv->began;
    double asked;

    if (MCA_PML_UMRDDT_WAY_HOST != recv->way) {
        return took;
    }
    asked = 2 * small(recv->peer);
    return took > 2 * asked ? took - asked : took / 2;
}

void mca_pml_umrddt_pairs_over(mca_pml_umrddt_recv_t *recv, int error)
{
    mca_pml_umrddt_pair_t *pair = take_pair(recv);
    double took;

    if (NULL == pair || (MPI_SUCCESS != error && MPI_ERR_TRUNCATE != error)) {
        return;
    }
    if (mca_pml_umrddt.params.explain || mca_pml_umrddt.params.adapt) {
        took = time_of(recv);
        if (mca_pml_umrddt.params.adapt && 0 != (pair->known & WAY_BIT(recv->way)) && 0 < took) {
            observe(recv, pair, took);
        }
        if (pair->tells) {
            explain_observed(recv, pair, took);
        }
    }
    pair->known |= WAY_BIT(recv->way);
}

void mca_pml_umrddt_pairs_failed(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_pair_t *pair = take_pair(recv);

    if (NULL == pair) {
        return;
    }
    pair->known = 0;
    pair->seen = false;
    memset(pair->saw, 0, sizeof(pair->saw));
    pair->next = pair->uses;
    mca_pml_umrddt_trial_end(&pair->trial);
    if (MCA_PML_UMRDDT_WAY_HOST != recv->way) {
        recv->peer->shunned[recv->way] = mca_pml_umrddt.pairs->judged + SHUNNED;
    }
    if (pair->tells && !pair->began) {
        opal_output(0,
                    "umrddt: explain: these %llu bytes of rank %d could not go by %s; the host PML "
                    "carries them",
                    (unsigned long long) pair->total, recv->status.MPI_SOURCE,
                    mca_pml_umrddt_way_names[recv->way]);
    }
}
