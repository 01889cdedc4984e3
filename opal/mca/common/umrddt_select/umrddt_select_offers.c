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
 * The offer cache; read umrddt_select_offers.h.
 */

#include "umrddt_select_offers.h"

void opal_umrddt_offer_learn(opal_umrddt_offers_t *offers, uint64_t key, bool in_vain)
{
    const uint32_t word = opal_umrddt_offer_word(offers, key);
    uint32_t level = 0xffu & word;

    if (OPAL_UMRDDT_OFFER_YES <= word || (!in_vain && 0 == word)) {
        return; /* a selection of the model stays, and successful offers need no entry */
    }
    if (!in_vain) {
        opal_umrddt_offer_set(offers, key, 0 < level ? level - 1 : 0);
        return;
    }
    level += OPAL_UMRDDT_OFFER_MOST_PAUSES > level ? 1 : 0;
    opal_umrddt_offer_set(offers, key, OPAL_UMRDDT_OFFER_FIRST_PAUSE << (level - 1) << 8 | level);
}
