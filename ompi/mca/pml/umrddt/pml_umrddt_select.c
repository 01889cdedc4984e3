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
 * The order in which the schemes of a matched message are tried: the one that the model prefers
 * (pml_umrddt_pairs.h), then those of the table, by the rules (can_recv of each scheme).
 */

#include "ompi_config.h"

#include "pml_umrddt_engine.h"
#include "pml_umrddt_pairs.h"
#include "pml_umrddt_scheme.h"

/** What the model says of a message, if it decides. */
static void prefer(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_pairs_judge(recv);
    if (NULL == recv->pair || !mca_pml_umrddt.declines) {
        return;
    }
    recv->preferred = (uint16_t) MCA_PML_UMRDDT_BIT(recv->scheme);
    if (mca_pml_umrddt_pairs_leaves(recv)) {
        recv->reason = NULL;
        recv->candidates = 0;
    }
}

void mca_pml_umrddt_candidates(mca_pml_umrddt_recv_t *recv)
{
    recv->preferred = 0;
    recv->reason = &mca_pml_umrddt.counters.fallback_scheme;
    recv->candidates = recv->rts.schemes & MCA_PML_UMRDDT_BITS_ALL;
    if (OPAL_UNLIKELY(NULL != mca_pml_umrddt.pairs)) {
        prefer(recv);
        recv->candidates &= recv->rts.schemes; /* without what the model rules out */
    }
}

/** The first candidate by the rules, which is none any more. NULL: there is none but the last */
static const mca_pml_umrddt_scheme_t *pick(mca_pml_umrddt_recv_t *recv)
{
    for (int i = 0; i < MCA_PML_UMRDDT_SCHEMES - 1; ++i) {
        const mca_pml_umrddt_scheme_t *scheme = mca_pml_umrddt_schemes[i];
        const uint16_t bit = (uint16_t) MCA_PML_UMRDDT_BIT(scheme->id);

        if (0 != (recv->candidates & bit) && scheme->can_recv(recv)) {
            recv->candidates &= (uint16_t) ~bit;
            return scheme;
        }
    }
    return NULL;
}

/** The scheme that the model prefers, as if it were the only candidate; it is none any more. */
static const mca_pml_umrddt_scheme_t *pick_preferred(mca_pml_umrddt_recv_t *recv)
{
    const uint16_t others = recv->candidates & (uint16_t) ~recv->preferred;
    const mca_pml_umrddt_scheme_t *scheme;

    recv->candidates &= recv->preferred;
    scheme = pick(recv);
    recv->candidates = others;
    return scheme;
}

const mca_pml_umrddt_scheme_t *mca_pml_umrddt_select(mca_pml_umrddt_recv_t *recv)
{
    const mca_pml_umrddt_scheme_t *scheme = NULL;

    if (OPAL_UNLIKELY(0 != (recv->preferred & recv->candidates))) {
        scheme = pick_preferred(recv);
    }
    if (OPAL_LIKELY(NULL == scheme && 0 != recv->candidates)) {
        scheme = pick(recv);
    }
    return OPAL_LIKELY(NULL != scheme) ? scheme
                                       : mca_pml_umrddt_schemes[MCA_PML_UMRDDT_SCHEMES - 1];
}
