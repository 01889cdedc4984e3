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
 * Trials of ways; see pml_umrddt_trial.h.
 */

#include "ompi_config.h"

#include <string.h>

#include "pml_umrddt_trial.h"

/** One is given up whose least is above so much of another one's median. */
#define GIVEN_UP 1.5f

void mca_pml_umrddt_trial_begin(mca_pml_umrddt_trial_t *trial, unsigned ways,
                                const mca_pml_umrddt_trial_plan_t *plan)
{
    memset(trial, 0, sizeof(*trial));
    trial->plan = *plan;
    trial->open = (uint8_t) ways;
}

static float median(const mca_pml_umrddt_trial_t *trial, int way)
{
    return trial->took[way][trial->count[way] / 2];
}

/** What has not been given up and can be compared; none: @p stay. */
static mca_pml_umrddt_scheme_id_t best_yet(const mca_pml_umrddt_trial_t *trial,
                                           mca_pml_umrddt_scheme_id_t stay)
{
    mca_pml_umrddt_scheme_id_t best = stay;
    float least = 0;

    for (int way = 0; way < MCA_PML_UMRDDT_SCHEMES; ++way) {
        if (MCA_PML_UMRDDT_TRIAL_EARLY <= trial->count[way]
            && 0 != ((trial->open | trial->judged) & MCA_PML_UMRDDT_BIT(way))
            && (0 >= least || median(trial, way) < least)) {
            best = (mca_pml_umrddt_scheme_id_t) way;
            least = median(trial, way);
        }
    }
    return best;
}

/** Give up what is not going to win. */
static void thin_out(mca_pml_umrddt_trial_t *trial)
{
    const mca_pml_umrddt_scheme_id_t best = best_yet(trial, MCA_PML_UMRDDT_SCHEMES);

    for (int way = 0; MCA_PML_UMRDDT_SCHEMES != best && way < MCA_PML_UMRDDT_SCHEMES; ++way) {
        if (MCA_PML_UMRDDT_TRIAL_EARLY <= trial->count[way]
            && trial->took[way][0] > GIVEN_UP * median(trial, best)) {
            trial->open &= (uint8_t) ~MCA_PML_UMRDDT_BIT(way);
        }
    }
}

mca_pml_umrddt_scheme_id_t mca_pml_umrddt_trial_next(mca_pml_umrddt_trial_t *trial,
                                                     mca_pml_umrddt_scheme_id_t stay, bool *tried)
{
    static const mca_pml_umrddt_scheme_id_t turns[MCA_PML_UMRDDT_SCHEMES] = {
        MCA_PML_UMRDDT_SCHEME_IPC,         MCA_PML_UMRDDT_SCHEME_UMR,
        MCA_PML_UMRDDT_SCHEME_DIRECT,      MCA_PML_UMRDDT_SCHEME_PACK_GDR,
        MCA_PML_UMRDDT_SCHEME_PACK_STAGED, MCA_PML_UMRDDT_SCHEME_PACK_HOST,
        MCA_PML_UMRDDT_SCHEME_BASE};
    const mca_pml_umrddt_scheme_id_t way =
        turns[(unsigned) trial->next / trial->plan.turn % MCA_PML_UMRDDT_SCHEMES];
    const bool open = 0 != (trial->open & MCA_PML_UMRDDT_BIT(way));

    *tried = open && trial->plan.idle <= trial->next % trial->plan.turn;
    ++trial->next;
    if (open) {
        return (mca_pml_umrddt_scheme_id_t) way;
    }
    return 0 != ((trial->open | trial->judged) & MCA_PML_UMRDDT_BIT(stay)) ? stay
                                                                           : best_yet(trial, stay);
}

/** The one way that is left needs no more messages. @return true: the trial is over */
static bool is_over(mca_pml_umrddt_trial_t *trial)
{
    const unsigned open = trial->open;

    if (0 == trial->judged && 0 != open && 0 == (open & (open - 1))) {
        trial->judged = trial->open;
        trial->open = 0;
    }
    return 0 == trial->open;
}

bool mca_pml_umrddt_trial_observe(mca_pml_umrddt_trial_t *trial, mca_pml_umrddt_scheme_id_t way,
                                  double took)
{
    float *sorted = trial->took[way];
    int at = trial->count[way];

    if (0 == (trial->open & MCA_PML_UMRDDT_BIT(way))) {
        return false; /* it was under way when its way was judged, or given up */
    }
    for (; 0 < at && sorted[at - 1] > (float) took; --at) {
        sorted[at] = sorted[at - 1];
    }
    sorted[at] = (float) took;
    ++trial->count[way];
    if (trial->plan.turns * (trial->plan.turn - trial->plan.idle) == trial->count[way]) {
        trial->open &= (uint8_t) ~MCA_PML_UMRDDT_BIT(way);
        trial->judged |= (uint8_t) MCA_PML_UMRDDT_BIT(way);
    }
    if (MCA_PML_UMRDDT_TRIAL_EARLY <= trial->count[way]) {
        thin_out(trial);
    }
    return is_over(trial);
}

bool mca_pml_umrddt_trial_cut(mca_pml_umrddt_trial_t *trial, mca_pml_umrddt_scheme_id_t stay)
{
    for (int way = 0; way < MCA_PML_UMRDDT_SCHEMES; ++way) {
        if (0 != (trial->open & MCA_PML_UMRDDT_BIT(way))
            && MCA_PML_UMRDDT_TRIAL_EARLY <= trial->count[way]) {
            trial->judged |= (uint8_t) MCA_PML_UMRDDT_BIT(way);
        }
    }
    trial->open = 0;
    return MCA_PML_UMRDDT_TRIAL_EARLY <= trial->count[stay];
}

double mca_pml_umrddt_trial_median(const mca_pml_umrddt_trial_t *trial, int way)
{
    return 0 < trial->count[way] ? median(trial, way) : 0;
}

mca_pml_umrddt_scheme_id_t mca_pml_umrddt_trial_best(const mca_pml_umrddt_trial_t *trial,
                                                     mca_pml_umrddt_scheme_id_t stay, double keeps)
{
    mca_pml_umrddt_scheme_id_t best = stay;
    const bool stayed = 0 != (trial->judged & MCA_PML_UMRDDT_BIT(stay));
    double least = stayed ? keeps * mca_pml_umrddt_trial_median(trial, stay) : 0;

    for (int way = 0; way < MCA_PML_UMRDDT_SCHEMES; ++way) {
        double took = mca_pml_umrddt_trial_median(trial, way);

        if (0 != (trial->judged & MCA_PML_UMRDDT_BIT(way))
            && ((best == stay && !stayed) || took < least)) {
            best = (mca_pml_umrddt_scheme_id_t) way;
            least = took;
        }
    }
    return best;
}
