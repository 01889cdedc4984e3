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
 * A trial: some messages of a pair of layouts go by the ways that may be the best ones by turns,
 * and what they take decides. A prediction cannot know what else a machine does, how far apart
 * blocks lie in its caches, or how many processes share its processors; a message that comes again
 * and again can be measured instead, as FFTW's plans and ADCL (Gabriel et al., "Towards performance
 * portability through runtime adaptation for high-performance computing applications", 2010) do.
 *
 * A turn is some messages, the first of which do not count: what they need may have to be made,
 * and threads, caches and GPUs that have not done the like for a while take longer, which is not
 * what the way will take when it is in use. A way whose quickest of three is still half as long
 * again as another one's median is given up, so that a bad one costs one turn. Messages that are
 * under way at once are told from each other by the way that each went.
 *
 * All ways there are have their turns, and one that is not tried leaves its to the way in use. So
 * two processes that send to each other, which try ways of their own choice but begin at the same
 * message, try the same way at the same time, and neither takes for a way's merit what the other
 * direction's way does to the processors, GPUs and links that both use.
 *
 * This file knows no MPI: it is arithmetic, and the tests compile it as it is. Of progress only.
 */

#ifndef MCA_PML_UMRDDT_TRIAL_H
#define MCA_PML_UMRDDT_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "pml_umrddt_model.h"

/** Of sets of ways. */

/** Messages of a way that may be counted; and those after which it may be given up. */
#define MCA_PML_UMRDDT_TRIAL_SAMPLES 16
#define MCA_PML_UMRDDT_TRIAL_EARLY   3

/** How long a trial is: the longer, the more certain. */
typedef struct mca_pml_umrddt_trial_plan_t {
    uint8_t turns; /**< of each way */
    uint8_t turn;  /**< messages of one */
    uint8_t idle;  /**< those of them, at its begin, that do not count */
} mca_pml_umrddt_trial_plan_t;

typedef struct mca_pml_umrddt_trial_t {
    uint8_t open;   /**< bit 1 << way of each that is still tried; 0: there is no trial */
    uint8_t judged; /**< and of those that were, to the end */
    mca_pml_umrddt_trial_plan_t plan;
    uint16_t next; /**< messages as yet, which say whose turn it is */
    uint8_t count[MCA_PML_UMRDDT_SCHEMES];
    float took[MCA_PML_UMRDDT_SCHEMES][MCA_PML_UMRDDT_TRIAL_SAMPLES]; /**< us, ascending */
} mca_pml_umrddt_trial_t;

/** True while messages go by turns. */
static inline bool mca_pml_umrddt_trial_runs(const mca_pml_umrddt_trial_t *trial)
{
    return 0 != trial->open;
}

/**
 * Begin one.
 *
 * @param[in] ways  bit 1 << way of each that is to be tried, two at least
 * @param[in] plan  of which no more than MCA_PML_UMRDDT_TRIAL_SAMPLES messages of a way count
 */
void mca_pml_umrddt_trial_begin(mca_pml_umrddt_trial_t *trial, unsigned ways,
                                const mca_pml_umrddt_trial_plan_t *plan);

/**
 * The way of the next message. Of a trial that runs.
 *
 * @param[in]  stay   the way that is in use, one of those that are tried: has it been given up, the
 *                    best one as yet is
 * @param[out] tried  what it takes is to be told, unless something had to be made for it
 */
mca_pml_umrddt_scheme_id_t mca_pml_umrddt_trial_next(mca_pml_umrddt_trial_t *trial,
                                                     mca_pml_umrddt_scheme_id_t stay, bool *tried);

/**
 * A message that is to be told of took so long, in us.
 *
 * @return true: with that the trial is over
 */
bool mca_pml_umrddt_trial_observe(mca_pml_umrddt_trial_t *trial, mca_pml_umrddt_scheme_id_t way,
                                  double took);

/** It is over before its end, and nobody asks for what it found: a message could not go its way. */
static inline void mca_pml_umrddt_trial_end(mca_pml_umrddt_trial_t *trial)
{
    trial->open = 0;
}

/**
 * There will be no more messages of a trial that runs; what was seen of a way has to do, if that is
 * as much as it can be given up for.
 *
 * @return true: as when a trial is over; false: nothing is known of the way in use
 */
bool mca_pml_umrddt_trial_cut(mca_pml_umrddt_trial_t *trial, mca_pml_umrddt_scheme_id_t stay);

/** Median of what a way took, in us; 0: nobody knows. Of a trial that is over. */
double mca_pml_umrddt_trial_median(const mca_pml_umrddt_trial_t *trial, int way);

/**
 * The way that took least. Of a trial that is over.
 *
 * @param[in] stay   the way that is in use; another one has to be better by more than chance
 * @param[in] keeps  so much of its time (1: any better one)
 */
mca_pml_umrddt_scheme_id_t mca_pml_umrddt_trial_best(const mca_pml_umrddt_trial_t *trial,
                                                     mca_pml_umrddt_scheme_id_t stay, double keeps);

#endif /* MCA_PML_UMRDDT_TRIAL_H */
