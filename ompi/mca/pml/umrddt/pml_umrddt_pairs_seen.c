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
 * What messages take, and what follows from it for the ways that later ones go: trials
 * (pml_umrddt_trial.h), and corrections of what is predicted.
 */

#include "ompi_config.h"

#include <math.h>

#include "pml_umrddt_pairs_private.h"

#define CLASSES MCA_PML_UMRDDT_PAIR_CLASSES

/** Times of a class that are seen before they are believed; and how far they are. */
#define BELIEVED 8
#define FARTHEST 4.0

/** The way in use stays, unless another one is seen to take less than so much of its time. */
#define SEEN_LESS 0.96

/** Uses after which ways are tried, and how many times as many are the next time: of a pair that
 * stays, a vanishing part. */
#define TRIED_AT    8
#define TRIED_AGAIN 8

/** A trial by how often a pair has come: where it has come often, one is a smaller part of it. */
typedef struct stage_t {
    uint32_t before; /**< so many uses */
    mca_pml_umrddt_trial_plan_t plan;
    double near;  /**< of ways that were tried those are again that took less than so many times of
                       the best: what a machine does besides changes (memory comes to be in huge
                       pages, for one) */
    double doubt; /**< of others those that are predicted to take less than so many times of it */
} stage_t;

#define FIRST_TURNS 2
#define FIRST_TURN  4
static const stage_t stages[] = {
    {TRIED_AT * TRIED_AGAIN,
     {.turns = FIRST_TURNS, .turn = FIRST_TURN, .idle = 1},
     1.25,
     MCA_PML_UMRDDT_DOUBT},
    {TRIED_AT * TRIED_AGAIN * TRIED_AGAIN,
     {.turns = 4, .turn = 4, .idle = 1},
     1.25,
     MCA_PML_UMRDDT_DOUBT_LATER},
    /* this one can wait until caches have forgotten the way before */
    {UINT32_MAX, {.turns = 2, .turn = 16, .idle = 8}, 2.0, MCA_PML_UMRDDT_DOUBT_LATER},
};
_Static_assert(TRIED_AT + FIRST_TURNS * FIRST_TURN * MCA_PML_UMRDDT_SCHEMES
                   <= TRIED_AT * TRIED_AGAIN,
               "the first trial is over before the second");

/** A way that is in use takes longer than it did if it takes so many times what its trial saw, by
 * so many messages more than not. Then ways are tried again at a multiple of so many uses, so that
 * the other direction of an exchange does at the same message; and not before there are so many
 * times as many uses as at the last trial. */
#define SLOWER     1.5
#define SLOW       32
#define SLOW_AT    256
#define SLOW_AGAIN 2

/** Messages into memory of a GPU that take longer than so many small ones are not left without a
 * question, which costs two: of what was asked the length is known before it comes, so its stage is
 * pinned. Memory of the CPU has no stage, and there the question costs more than it is worth. */
#define ASKED_FROM 100

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

unsigned mca_pml_umrddt_pairs_class(const mca_pml_umrddt_model_case_t *message)
{
    return kind_of(message) * CLASSES + class_of(message->bytes);
}

void mca_pml_umrddt_pairs_factors(const mca_pml_umrddt_model_case_t *message,
                                  double factors[MCA_PML_UMRDDT_SCHEMES])
{
    const unsigned class = mca_pml_umrddt_pairs_class(message);

    for (int way = 0; way < MCA_PML_UMRDDT_SCHEMES; ++way) {
        const mca_pml_umrddt_observed_t *observed = &mca_pml_umrddt.pairs->observed[way][class];

        factors[way] = mca_pml_umrddt.params.adapt && BELIEVED <= observed->count
                           ? exp2(observed->log_factor)
                           : 1;
    }
}

/** A message of a pair that had gone this way before took @p took. */
static void learn(const mca_pml_umrddt_pair_t *pair, int way, double took)
{
    mca_pml_umrddt_observed_t *observed = &mca_pml_umrddt.pairs->observed[way][pair->class];
    double factor = log2(took / pair->steady[way]), most = log2(FARTHEST);

    /* a process that did not look for a while is not the scheme's fault */
    factor = factor < -most ? -most : factor > most ? most : factor;
    observed->log_factor += (factor - observed->log_factor) / (0 == observed->count ? 1 : 8);
    if (observed->count < BELIEVED) {
        ++observed->count;
    }
}

/** A small message to or from a peer by the host PML, us. */
static double small(const mca_pml_umrddt_peer_t *peer)
{
    return mca_pml_umrddt_model_small(&mca_pml_umrddt.pairs->figures,
                                      mca_pml_umrddt_pairs_near(peer));
}

uint32_t mca_pml_umrddt_pairs_next_use(const mca_pml_umrddt_pair_t *pair)
{
    const uint32_t by = mca_pml_umrddt.params.adapt && TRIED_AT <= pair->uses ? TRIED_AGAIN : 2;

    return 0 == pair->uses ? 1 : UINT32_MAX / by < pair->uses ? UINT32_MAX : by * pair->uses;
}

static const stage_t *stage_of(uint32_t uses)
{
    const stage_t *stage = stages;

    while (stage->before <= uses && UINT32_MAX != stage->before) {
        ++stage;
    }
    return stage;
}

void mca_pml_umrddt_pairs_try(mca_pml_umrddt_pair_t *pair, unsigned possible,
                              const double factors[MCA_PML_UMRDDT_SCHEMES])
{
    const double used = 0 < pair->saw[pair->way] ? pair->saw[pair->way] : pair->times[pair->way];
    const stage_t *stage = stage_of(pair->uses);
    const double near = stage->near * used, most = stage->doubt * used;
    unsigned ways = MCA_PML_UMRDDT_BIT(pair->way);

    pair->tried = pair->uses;
    pair->slow = 0;
    if (!mca_pml_umrddt.params.adapt || !mca_pml_umrddt.declines || TRIED_AT > pair->uses) {
        return;
    }
    pair->brief =
        !pair->gpu
        || (0 < pair->saw[MCA_PML_UMRDDT_SCHEME_BASE] ? pair->saw[MCA_PML_UMRDDT_SCHEME_BASE]
                                                      : pair->times[MCA_PML_UMRDDT_SCHEME_BASE])
               < ASKED_FROM * small(pair->peer);
    pair->later = 0;
    for (int way = 0; way < MCA_PML_UMRDDT_SCHEMES; ++way) {
        if (0 == (possible & MCA_PML_UMRDDT_BIT(way))) {
            continue;
        }
        if (0 < pair->saw[way] ? pair->saw[way] < near : pair->times[way] < most) {
            ways |= MCA_PML_UMRDDT_BIT(way);
        } else if (0 >= pair->saw[way] && pair->steady[way] * factors[way] < most) {
            pair->later |= MCA_PML_UMRDDT_BIT(way);
        }
    }
    pair->seen = 0 == (ways & (ways - 1));
    if (!pair->seen) {
        mca_pml_umrddt_trial_begin(&pair->trial, ways, &stage->plan);
    }
}

bool mca_pml_umrddt_pairs_settled(const mca_pml_umrddt_pair_t *pair)
{
    /* (what a GPU is told again and again gets quicker, so one trial is not enough) */
    return pair->seen && 0 == pair->later && TRIED_AT * TRIED_AGAIN < pair->uses && pair->brief;
}

/** A trial is over: the way that took least is the pair's. */
static void settle(const mca_pml_umrddt_recv_t *recv, mca_pml_umrddt_pair_t *pair)
{
    for (int way = 0; way < MCA_PML_UMRDDT_SCHEMES; ++way) {
        if (0 < pair->trial.count[way]) {
            pair->saw[way] = (float) mca_pml_umrddt_trial_median(&pair->trial, way);
        }
    }
    pair->way = mca_pml_umrddt_trial_best(&pair->trial, pair->way, SEEN_LESS);
    pair->seen = true;
    mca_pml_umrddt_pairs_explain_trial(recv, pair);
}

void mca_pml_umrddt_pairs_cut(const mca_pml_umrddt_recv_t *recv, mca_pml_umrddt_pair_t *pair)
{
    if (mca_pml_umrddt_trial_runs(&pair->trial)
        && mca_pml_umrddt_trial_cut(&pair->trial, pair->way)) {
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
    const double took = mca_pml_umrddt_pairs_now() - recv->began;
    double asked;

    if (MCA_PML_UMRDDT_SCHEME_BASE != recv->scheme) {
        return took;
    }
    asked = 2 * small(recv->peer);
    return took > 2 * asked ? took - asked : took / 2;
}

/** A message went the way that is in use: does that take longer than it did? */
static void compare(mca_pml_umrddt_pair_t *pair, double took)
{
    float *saw = &pair->saw[pair->way];

    if (0 >= *saw || took <= SLOWER * *saw) {
        pair->slow -= 0 < pair->slow ? 1 : 0;
        return;
    }
    ++pair->slow;
    if (SLOW <= pair->slow && pair->uses / SLOW_AGAIN >= pair->tried) {
        *saw *= (float) SLOWER; /* at least, so that ways come near that did not */
        pair->slow = 0;
        pair->tried = UINT32_MAX;
        pair->next = (pair->uses / SLOW_AT + 1) * SLOW_AT;
    }
}

void mca_pml_umrddt_pairs_observe(const mca_pml_umrddt_recv_t *recv, mca_pml_umrddt_pair_t *pair)
{
    const double took = time_of(recv);

    /* only where nothing had to be made for it */
    if (mca_pml_umrddt.params.adapt && 0 != (pair->known & MCA_PML_UMRDDT_BIT(recv->scheme))
        && 0 < took) {
        learn(pair, recv->scheme, took);
        if (recv->tried
            && mca_pml_umrddt_trial_observe(&pair->trial, (mca_pml_umrddt_scheme_id_t) recv->scheme,
                                            took)) {
            settle(recv, pair);
        } else if (!mca_pml_umrddt_trial_runs(&pair->trial)
                   && (mca_pml_umrddt_scheme_id_t) recv->scheme == pair->way) {
            compare(pair, took);
        }
    }
    mca_pml_umrddt_pairs_explain_observed(recv, pair, took);
}
