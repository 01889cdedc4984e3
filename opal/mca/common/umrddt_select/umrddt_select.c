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
 * The selection of a scheme; see umrddt_select.h.
 */

#include "umrddt_select.h"

#include <stdio.h>
#include <string.h>

/** Limit for DECLINE_NEXT with GPU memory, in times of a small message. A longer message is
 * declined individually, which costs two small messages. In return its length is known before the
 * data arrives, so that its staging buffer is pinned. System memory needs no staging buffer. */
#define REQUESTED_FROM 100

/** Resolution in us: shorter times count as this. */
#define LEAST_TIME 0.1

#define ALL_SCHEMES (MCA_PML_UMRDDT_BIT(MCA_PML_UMRDDT_SCHEMES) - 1)

/** Predict the steady state: all resources of the schemes are set up. Times from the match on. */
static void predict_steady(const opal_umrddt_tuning_t *tuning, opal_umrddt_select_case_t message,
                           double steady[MCA_PML_UMRDDT_SCHEMES])
{
    const double small = opal_umrddt_select_small(tuning, message.near);

    message.known = ALL_SCHEMES;
    for (int scheme_id = 0; scheme_id < MCA_PML_UMRDDT_SCHEMES; ++scheme_id) {
        const double time =
            opal_umrddt_select_time(tuning, &message, (mca_pml_umrddt_scheme_id_t) scheme_id)
            - small;

        steady[scheme_id] = LEAST_TIME < time ? time : LEAST_TIME;
    }
}

/** Remove the base PML, unless it is fastest in the steady state. */
static unsigned without_base(const double *steady, unsigned possible)
{
    for (int scheme_id = 0; scheme_id < MCA_PML_UMRDDT_SCHEMES; ++scheme_id) {
        if (0 != (possible & MCA_PML_UMRDDT_BIT(scheme_id))
            && steady[scheme_id] < steady[MCA_PML_UMRDDT_SCHEME_BASE]) {
            return possible & ~MCA_PML_UMRDDT_BIT(MCA_PML_UMRDDT_SCHEME_BASE);
        }
    }
    return possible;
}

void opal_umrddt_select(const opal_umrddt_tuning_t *tuning,
                        const opal_umrddt_select_case_t *message, unsigned possible,
                        unsigned failed, opal_umrddt_selection_t *selection)
{
    const double requested = REQUESTED_FROM * opal_umrddt_select_small(tuning, message->near);
    const double *times = selection->times;
    unsigned left = 0 == (possible & ~failed) ? possible : possible & ~failed;

    predict_steady(tuning, *message, selection->steady);
    left = without_base(selection->steady, left);
    if (0 == left) {
        left = MCA_PML_UMRDDT_BIT(MCA_PML_UMRDDT_SCHEME_BASE);
    }
    selection->scheme_id = opal_umrddt_select_best(tuning, message, left, selection->times);
    selection->converged = MCA_PML_UMRDDT_SCHEME_BASE == selection->scheme_id && 0 == failed
                           && (!message->to.gpu || times[MCA_PML_UMRDDT_SCHEME_BASE] < requested);
}

bool opal_umrddt_select_beats(const opal_umrddt_tuning_t *tuning,
                              const opal_umrddt_select_case_t *message,
                              mca_pml_umrddt_scheme_id_t scheme, unsigned others, unsigned cases)
{
    static const opal_umrddt_select_side_t piece = {
        .pieces = 1, .boxed = true, .chunk_boxed = true};
    opal_umrddt_select_case_t one = *message;
    double times[MCA_PML_UMRDDT_SCHEMES];

    for (unsigned i = 0; i < cases; ++i) {
        one.to = 0 == (i & 1) ? message->to : piece;
        one.to.gpu = message->to.gpu == (0 == (i & 2));
        if (scheme
            != opal_umrddt_select_best(tuning, &one, others | MCA_PML_UMRDDT_BIT(scheme), times)) {
            return true;
        }
    }
    return false;
}

void opal_umrddt_select_print_side(char *text, size_t room, const char *what,
                                   const opal_umrddt_select_side_t *side, uint64_t bytes)
{
    size_t length = strlen(text);

    (void) snprintf(text + length, room - length, " %s %s memory, %llu pieces of %llu;", what,
                    side->gpu ? "GPU" : "system", (unsigned long long) side->pieces,
                    (unsigned long long) (bytes / (0 < side->pieces ? side->pieces : 1)));
}

void opal_umrddt_select_print_times(char *text, size_t room, const double *times, unsigned possible)
{
    for (int i = 0; i < MCA_PML_UMRDDT_SCHEMES; ++i) {
        const mca_pml_umrddt_scheme_id_t scheme_id = mca_pml_umrddt_scheme_order[i];
        bool open = 0 != (possible & MCA_PML_UMRDDT_BIT(scheme_id));
        size_t length = strlen(text);

        (void) snprintf(text + length, room - length, open ? " %s %.1f" : " (%s %.1f)",
                        mca_pml_umrddt_scheme_names[scheme_id], times[scheme_id]);
    }
}
