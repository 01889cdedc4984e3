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
 * Output of pml_umrddt_explain for pairs of layouts. See pml_umrddt_pairs.h first.
 */

#include "ompi_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/util/output.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_pairs_private.h"

const char *mca_pml_umrddt_pairs_reason(unsigned possible)
{
    if (0 == (possible & (possible - 1))) {
        return 0 == possible ? "nothing else is possible" : "only this is possible";
    }
    return mca_pml_umrddt.declines ? "predicted to take least"
                                   : "by the rules, as this machine was not measured";
}

/** Returns true if this pair was not printed before, and records it. */
static bool is_new(const mca_pml_umrddt_recv_t *recv, const mca_pml_umrddt_pair_t *pair)
{
    struct mca_pml_umrddt_pairs_t *pairs = mca_pml_umrddt.pairs;
    uint64_t hash = pair->layout;

    hash = hash * UINT64_C(0x9e3779b97f4a7c15) + pair->pieces;
    hash = hash * UINT64_C(0x9e3779b97f4a7c15) + pair->total;
    hash = hash * UINT64_C(0x9e3779b97f4a7c15) + (uintptr_t) pair->peer;
    hash = hash * UINT64_C(0x9e3779b97f4a7c15) + (pair->from ? 2 : 0) + (pair->gpu ? 1 : 0);
    hash = hash * UINT64_C(0x9e3779b97f4a7c15) + (unsigned) recv->comm->scheme;
    for (unsigned i = 0; i < pairs->told; ++i) {
        if (hash == pairs->explained[i]) {
            return false;
        }
    }
    if (MCA_PML_UMRDDT_PAIRS_EXPLAINED == pairs->told) {
        return false;
    }
    pairs->explained[pairs->told++] = hash;
    return true;
}

void mca_pml_umrddt_pairs_explain(const mca_pml_umrddt_recv_t *recv, mca_pml_umrddt_pair_t *pair,
                                  const opal_umrddt_select_case_t *message)
{
    char text[1024] = "";

    pair->tells = is_new(recv, pair);
    if (!pair->tells) {
        return;
    }
    opal_umrddt_select_print_side(text, sizeof(text), "from", &message->from, message->bytes);
    opal_umrddt_select_print_side(text, sizeof(text), "to", &message->to, message->bytes);
    (void) snprintf(text + strlen(text), sizeof(text) - strlen(text), " predicted, us:");
    opal_umrddt_select_print_times(text, sizeof(text), pair->selection.times, pair->possible);
    opal_output(0, "umrddt: explain: %llu bytes of rank %d, on %s host,%s figures: %s",
                (unsigned long long) message->bytes, recv->status.MPI_SOURCE,
                message->near ? "this" : "another", text, mca_pml_umrddt.pairs->why);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;

    return x < y ? -1 : x > y;
}

void mca_pml_umrddt_pairs_explain_observed(const mca_pml_umrddt_recv_t *recv,
                                           mca_pml_umrddt_pair_t *pair)
{
    double took;

    if (!pair->tells) {
        return;
    }
    took = mca_pml_umrddt_pairs_now() - recv->began;
    if (!pair->began) {
        pair->began = true;
        opal_output(0,
                    "umrddt: explain: these %llu bytes of rank %d went by %s (%s); from the match "
                    "on it took %.1f us",
                    (unsigned long long) pair->total, recv->status.MPI_SOURCE,
                    mca_pml_umrddt_scheme_names[recv->scheme],
                    mca_pml_umrddt_pairs_reason(pair->possible), took);
    }
    if ((int) pair->counted != recv->scheme) {
        /* a median covers one scheme only */
        pair->counted = (mca_pml_umrddt_scheme_id_t) recv->scheme;
        pair->count = 0;
    }
    if (MCA_PML_UMRDDT_PAIR_SETTLED > pair->count) {
        pair->took[pair->count++] = took;
    }
    if (MCA_PML_UMRDDT_PAIR_SETTLED == pair->count) {
        ++pair->count;
        qsort(pair->took, MCA_PML_UMRDDT_PAIR_SETTLED, sizeof(pair->took[0]), by_value);
        opal_output(0,
                    "umrddt: explain: %llu bytes of rank %d, %u times, the last by %s: median %.1f "
                    "us from the match on, where %.1f were predicted",
                    (unsigned long long) pair->total, recv->status.MPI_SOURCE,
                    MCA_PML_UMRDDT_PAIR_SETTLED, mca_pml_umrddt_scheme_names[recv->scheme],
                    pair->took[MCA_PML_UMRDDT_PAIR_SETTLED / 2],
                    pair->selection.steady[recv->scheme]);
    }
}

void mca_pml_umrddt_pairs_explain_failed(const mca_pml_umrddt_recv_t *recv,
                                         const mca_pml_umrddt_pair_t *pair)
{
    if (pair->tells && !pair->began) {
        opal_output(0,
                    "umrddt: explain: these %llu bytes of rank %d could not go by %s; the base PML "
                    "carries them",
                    (unsigned long long) pair->total, recv->status.MPI_SOURCE,
                    mca_pml_umrddt_scheme_names[recv->scheme]);
    }
}
