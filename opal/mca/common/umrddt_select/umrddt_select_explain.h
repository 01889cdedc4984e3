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
 * Output of pml_umrddt_explain: predicted and measured times of pairs of layouts
 * (umrddt_select_cache.h, read first).
 */

#ifndef OPAL_UMRDDT_SELECT_EXPLAIN_H
#define OPAL_UMRDDT_SELECT_EXPLAIN_H

#include <time.h>

#include "opal/mca/common/umrddt_select/umrddt_select_cache.h"

/** Microseconds of a monotonic clock. */
static inline double opal_umrddt_explain_now(void)
{
    struct timespec time;

    (void) clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e6 * (double) time.tv_sec + 1e-3 * (double) time.tv_nsec;
}

/** The reason for a selection among @p possible schemes, for the user. */
const char *opal_umrddt_explain_reason(const opal_umrddt_selection_cache_t *pairs,
                                       unsigned possible);

/**
 * Set pair->explained: the pair has not been shown yet.
 *
 * @param[in] scheme  forced on the communicator
 *
 * @return pair->explained
 */
bool opal_umrddt_explain_new(opal_umrddt_selection_cache_t *pairs, opal_umrddt_selected_t *pair,
                             unsigned scheme);

/**
 * Print a pair after its selection.
 *
 * @param[in] message  input of the model
 * @param[in] rank     of the sender
 */
void opal_umrddt_explain_pair(const opal_umrddt_selection_cache_t *pairs,
                              const opal_umrddt_selected_t *pair,
                              const opal_umrddt_select_case_t *message, int rank);

/** A message of a pair was carried by a scheme in @p took us: print the time of the first message,
 * and the median of the first 16. */
void opal_umrddt_explain_carried(const opal_umrddt_selection_cache_t *pairs,
                                 opal_umrddt_selected_t *pair, int rank,
                                 mca_pml_umrddt_scheme_id_t scheme, double took);

/** The first message of a pair could not use its scheme: print that. */
void opal_umrddt_explain_failed(const opal_umrddt_selected_t *pair, int rank,
                                mca_pml_umrddt_scheme_id_t scheme);

/** A sender passes a message through, which could be carried by @p possible schemes: print that. */
void opal_umrddt_explain_passed(const opal_umrddt_select_case_t *message, const double *times,
                                unsigned possible);

#endif /* OPAL_UMRDDT_SELECT_EXPLAIN_H */
