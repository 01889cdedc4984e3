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
 * Selection among the schemes that both sides of a message support, by the performance model
 * (umrddt_select_model.h, read first), and its explanation as text. Stateless.
 */

#ifndef OPAL_UMRDDT_SELECT_H
#define OPAL_UMRDDT_SELECT_H

#include "opal/mca/common/umrddt_select/umrddt_select_model.h"

/** The selection for messages of one kind. Times in us; those of steady count from the match on. */
typedef struct opal_umrddt_selection_t {
    mca_pml_umrddt_scheme_id_t scheme_id; /**< the selected scheme */
    bool converged; /**< converged: the base PML is selected, and the next messages need no offer */
    double times[MCA_PML_UMRDDT_SCHEMES];  /**< predicted for the next message */
    double steady[MCA_PML_UMRDDT_SCHEMES]; /**< predicted when all resources of the schemes are set
                                              up */
} opal_umrddt_selection_t;

/**
 * Select the scheme with the shortest predicted time. The base PML is selected only if it is also
 * fastest in the steady state.
 *
 * @param[in]  message    at the receiver
 * @param[in]  possible   bitmap of the schemes that both sides support; 0: the base PML
 * @param[in]  failed     schemes that failed recently: selected only if there are no others
 * @param[out] selection  all fields are set
 */
void opal_umrddt_select(const opal_umrddt_tuning_t *tuning,
                        const opal_umrddt_select_case_t *message, unsigned possible,
                        unsigned failed, opal_umrddt_selection_t *selection);

/**
 * Returns true if one of @p others is predicted to be faster than a scheme, for a sender, which
 * does not know the receiver's side.
 *
 * @param[in] message  message->to: with the layout of the sender
 * @param[in] cases    1: receivers as in message->to. 2: also those that receive in one block. 4:
 *                     also both of these in the other kind of memory. One of them suffices
 */
bool opal_umrddt_select_beats(const opal_umrddt_tuning_t *tuning,
                              const opal_umrddt_select_case_t *message,
                              mca_pml_umrddt_scheme_id_t scheme, unsigned others, unsigned cases);

/** Append a side ("from", "to") of a message of @p bytes to a text; truncates at @p room. */
void opal_umrddt_select_print_side(char *text, size_t room, const char *what,
                                   const opal_umrddt_select_side_t *side, uint64_t bytes);

/** Append the predicted time of each scheme; in parentheses if it is not @p possible. */
void opal_umrddt_select_print_times(char *text, size_t room, const double *times,
                                    unsigned possible);

#endif /* OPAL_UMRDDT_SELECT_H */
