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
 * Striped messages: validation of the offer, and the cuts. Read pml_umrddt_stripe.h first.
 */

#include "ompi_config.h"

#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_stripe.h"

bool mca_pml_umrddt_stripes_valid(const mca_pml_umrddt_rts_t *rts)
{
    bool more = 0 != (MCA_PML_UMRDDT_BIT_UMR & rts->schemes);

    for (int i = 0; i < MCA_PML_UMRDDT_LANES; ++i) {
        if (0 == rts->lanes[i].qpn) {
            more = false; /* lanes must have no gaps */
        }
        if (!more && 0 != (rts->lanes[i].qpn | rts->lanes[i].psn)) {
            return false;
        }
    }
    return true;
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (0 != b) {
        uint64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

uint64_t mca_pml_umrddt_stripe_alignment(const mca_pml_umrddt_rts_t *rts,
                                         const opal_iov_cache_form_t *form, uint64_t chunk,
                                         uint64_t part)
{
    uint64_t most = part / 2, mine = 1 < form->segments ? form->uniform : 1, theirs = 1, rest;

    if (0 < chunk && chunk <= most) {
        return chunk;
    }
    if (1 < rts->pieces && UINT32_MAX > rts->pieces && 0 == rts->length % rts->pieces) {
        theirs = rts->length / rts->pieces;
    }
    mine = 0 == mine || most < mine ? 1 : mine;
    theirs = 0 == theirs || most < theirs ? 1 : theirs;
    rest = mine / common_divisor(mine, theirs);
    return rest <= most / theirs ? rest * theirs : mine;
}

uint64_t mca_pml_umrddt_stripe_end(uint64_t total, uint32_t count, uint64_t alignment, uint32_t i)
{
    uint64_t cut;

    if (i + 1 == count) {
        return total;
    }
    cut = total / count * (i + 1) + total % count * (i + 1) / count;
    return cut / alignment * alignment;
}
