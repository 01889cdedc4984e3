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
 * Output of pml_umrddt_explain; see umrddt_select_explain.h.
 */

#include "opal_config.h"

#include "umrddt_select_explain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/util/output.h"

const char *opal_umrddt_explain_reason(const opal_umrddt_selection_cache_t *pairs,
                                       unsigned possible)
{
    if (0 == (possible & (possible - 1))) {
        return 0 == possible ? "nothing else is possible" : "only this is possible";
    }
    return pairs->selects ? "predicted fastest" : "by the rules, as this machine was not measured";
}

/** Returns true if this pair was not printed before, and records it. */
static bool is_new(opal_umrddt_selection_cache_t *pairs, const opal_umrddt_selected_t *pair,
                   unsigned scheme)
{
    uint64_t hash = pair->key.layout;

    hash = hash * UINT64_C(0x9e3779b97f4a7c15) + pair->key.pieces;
    hash = hash * UINT64_C(0x9e3779b97f4a7c15) + pair->key.total;
    hash = hash * UINT64_C(0x9e3779b97f4a7c15) + (uintptr_t) pair->key.peer;
    hash =
        hash * UINT64_C(0x9e3779b97f4a7c15) + (pair->key.from_gpu ? 2 : 0) + (pair->to_gpu ? 1 : 0);
    hash = hash * UINT64_C(0x9e3779b97f4a7c15) + scheme;
    for (unsigned i = 0; i < pairs->explained_count; ++i) {
        if (hash == pairs->explained[i]) {
            return false;
        }
    }
    if (OPAL_UMRDDT_SELECTION_CACHE_EXPLAINED == pairs->explained_count) {
        return false;
    }
    pairs->explained[pairs->explained_count++] = hash;
    return true;
}

bool opal_umrddt_explain_new(opal_umrddt_selection_cache_t *pairs, opal_umrddt_selected_t *pair,
                             unsigned scheme)
{
    pair->explained = is_new(pairs, pair, scheme);
    return pair->explained;
}

void opal_umrddt_explain_pair(const opal_umrddt_selection_cache_t *pairs,
                              const opal_umrddt_selected_t *pair,
                              const opal_umrddt_select_case_t *message, int rank)
{
    char text[1024] = "";

    opal_umrddt_select_print_side(text, sizeof(text), "from", &message->from, message->bytes);
    opal_umrddt_select_print_side(text, sizeof(text), "to", &message->to, message->bytes);
    (void) snprintf(text + strlen(text), sizeof(text) - strlen(text), " predicted, us:");
    opal_umrddt_select_print_times(text, sizeof(text), pair->selection.times, pair->possible);
    opal_output(0, "umrddt: explain: %llu bytes of rank %d, on %s node,%s tuning: %s",
                (unsigned long long) message->bytes, rank, message->near ? "the same" : "a remote",
                text, pairs->source);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;

    return x < y ? -1 : x > y;
}

void opal_umrddt_explain_carried(const opal_umrddt_selection_cache_t *pairs,
                                 opal_umrddt_selected_t *pair, int rank,
                                 mca_pml_umrddt_scheme_id_t scheme, double took)
{
    if (!pair->explained) {
        return;
    }
    if (!pair->began) {
        pair->began = true;
        opal_output(0,
                    "umrddt: explain: these %llu bytes of rank %d went by %s (%s); from the match "
                    "on it took %.1f us",
                    (unsigned long long) pair->key.total, rank, mca_pml_umrddt_scheme_names[scheme],
                    opal_umrddt_explain_reason(pairs, pair->possible), took);
    }
    if (pair->counted != scheme) {
        /* a median covers one scheme only */
        pair->counted = scheme;
        pair->count = 0;
    }
    if (OPAL_UMRDDT_SELECTED_TIMES > pair->count) {
        pair->took[pair->count++] = took;
    }
    if (OPAL_UMRDDT_SELECTED_TIMES == pair->count) {
        ++pair->count;
        qsort(pair->took, OPAL_UMRDDT_SELECTED_TIMES, sizeof(pair->took[0]), by_value);
        opal_output(0,
                    "umrddt: explain: %llu bytes of rank %d, %u times, the last by %s: median %.1f "
                    "us from the match on, where %.1f were predicted",
                    (unsigned long long) pair->key.total, rank, OPAL_UMRDDT_SELECTED_TIMES,
                    mca_pml_umrddt_scheme_names[scheme], pair->took[OPAL_UMRDDT_SELECTED_TIMES / 2],
                    pair->selection.steady[scheme]);
    }
}

void opal_umrddt_explain_failed(const opal_umrddt_selected_t *pair, int rank,
                                mca_pml_umrddt_scheme_id_t scheme)
{
    if (pair->explained && !pair->began) {
        opal_output(0,
                    "umrddt: explain: these %llu bytes of rank %d could not go by %s; the base PML "
                    "carries them",
                    (unsigned long long) pair->key.total, rank,
                    mca_pml_umrddt_scheme_names[scheme]);
    }
}

void opal_umrddt_explain_passed(const opal_umrddt_select_case_t *message, const double *times,
                                unsigned possible)
{
    char text[512] = "";

    opal_umrddt_select_print_side(text, sizeof(text), "from", &message->from, message->bytes);
    (void) snprintf(text + strlen(text), sizeof(text) - strlen(text), " predicted, us:");
    opal_umrddt_select_print_times(text, sizeof(text), times, possible);
    opal_output(0, "umrddt: explain: %llu bytes to %s node are passed through to the base PML;%s",
                (unsigned long long) message->bytes, message->near ? "the same" : "a remote", text);
}
