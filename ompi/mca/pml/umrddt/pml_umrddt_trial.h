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
 * A way's first message counts only if nothing had to be made for it, which is for the caller to
 * tell. A way whose quickest of three is still half as long again as another one's median is given
 * up, so that a bad one costs four messages. Messages that are under way at once are told from each
 * other by the way that each went.
 *
 * This file knows no MPI: it is arithmetic, and the tests compile it as it is. Of progress only.
 */

#ifndef MCA_PML_UMRDDT_TRIAL_H
#define MCA_PML_UMRDDT_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "pml_umrddt_model.h"

/** Of sets of ways. */
#define WAY_BIT(way) (1u << (way))

/** Messages of a way that are counted: an odd number. */
#define MCA_PML_UMRDDT_TRIAL_SAMPLES 7

/** Those after which it may be given up. */
#define MCA_PML_UMRDDT_TRIAL_EARLY 3

typedef struct mca_pml_umrddt_trial_t {
    uint8_t open;   /**< bit 1 << way of each that is still tried; 0: there is no trial */
    uint8_t judged; /**< and of those that were, to the end */
    uint8_t last;   /**< the way of the last message */
    uint8_t count[MCA_PML_UMRDDT_WAYS];
    float took[MCA_PML_UMRDDT_WAYS][MCA_PML_UMRDDT_TRIAL_SAMPLES]; /**< us, ascending */
} mca_pml_umrddt_trial_t;

/** True while messages go by turns. */
static inline bool mca_pml_umrddt_trial_runs(const mca_pml_umrddt_trial_t *trial)
{
    return 0 != trial->open;
}

/** Begin one. @param[in] ways  bit 1 << way of each that is to be tried, two at least */
void mca_pml_umrddt_trial_begin(mca_pml_umrddt_trial_t *trial, unsigned ways);

/** The way of the next message. Of a trial that runs. */
mca_pml_umrddt_way_t mca_pml_umrddt_trial_next(mca_pml_umrddt_trial_t *trial);

/**
 * A message took so long, in us.
 *
 * @return true: with that the trial is over
 */
bool mca_pml_umrddt_trial_observe(mca_pml_umrddt_trial_t *trial, mca_pml_umrddt_way_t way,
                                  double took);

/** It is over before its end, and nobody asks for what it found: a message could not go its way. */
static inline void mca_pml_umrddt_trial_end(mca_pml_umrddt_trial_t *trial)
{
    trial->open = 0;
}

/** Median of what a way took, in us; 0: nobody knows. Of a trial that is over. */
double mca_pml_umrddt_trial_median(const mca_pml_umrddt_trial_t *trial, int way);

/**
 * The way that took least. Of a trial that is over.
 *
 * @param[in] stay   the way that is in use; another one has to be better by more than chance
 * @param[in] keeps  so much of its time (1: any better one)
 */
mca_pml_umrddt_way_t mca_pml_umrddt_trial_best(const mca_pml_umrddt_trial_t *trial,
                                               mca_pml_umrddt_way_t stay, double keeps);

#endif /* MCA_PML_UMRDDT_TRIAL_H */
