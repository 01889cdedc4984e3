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
 * The selection of a scheme among those that both sides of a message can, by the performance model
 * (umrddt_select_model.h), and its explanation in words. Nothing here has a state.
 */

#ifndef OPAL_UMRDDT_SELECT_H
#define OPAL_UMRDDT_SELECT_H

#include "opal/mca/common/umrddt_select/umrddt_select_model.h"

/** What is selected for messages of one kind; times in us, from the match on for steady. */
typedef struct opal_umrddt_selection_t {
    mca_pml_umrddt_scheme_id_t way; /**< the selected scheme */
    bool settled;                   /**< the base PML is, and the next messages need no offer */
    double times[MCA_PML_UMRDDT_SCHEMES];  /**< predicted of the next message */
    double steady[MCA_PML_UMRDDT_SCHEMES]; /**< when all is there that the schemes need */
} opal_umrddt_selection_t;

/**
 * Select the scheme that is predicted to take least. The base PML is selected only if it takes
 * least in the steady state, too.
 *
 * @param[in]  message    at the receiver
 * @param[in]  possible   schemes that both sides can, bits; 0: the base PML
 * @param[in]  failed     schemes that failed a while ago: not selected if there are others
 * @param[out] selection  all of it
 */
void opal_umrddt_select(const opal_umrddt_tuning_t *tuning,
                        const opal_umrddt_select_case_t *message, unsigned possible,
                        unsigned failed, opal_umrddt_selection_t *selection);

/** Append a side ("from", "to") of a message of @p bytes to a text, as far as there is room. */
void opal_umrddt_select_print_side(char *text, size_t room, const char *what,
                                   const opal_umrddt_select_side_t *side, uint64_t bytes);

/** Append what is predicted of each scheme; in parentheses of those that are not @p possible. */
void opal_umrddt_select_print_times(char *text, size_t room, const double *times,
                                    unsigned possible);

#endif /* OPAL_UMRDDT_SELECT_H */
