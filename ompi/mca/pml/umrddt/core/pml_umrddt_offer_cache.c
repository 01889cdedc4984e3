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
 * The offer cache; read pml_umrddt_offer_cache.h.
 */

#include "ompi_config.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_offer_cache.h"

void mca_pml_umrddt_offer_learn(uint64_t key, bool in_vain)
{
    const uint32_t word = mca_pml_umrddt_offer_word(key);
    uint32_t level = 0xffu & word;

    if (MCA_PML_UMRDDT_OFFER_YES <= word || (!in_vain && 0 == word)) {
        return; /* a selection of the model stays, and successful offers need no entry */
    }
    if (!in_vain) {
        mca_pml_umrddt_offer_set(key, 0 < level ? level - 1 : 0);
        return;
    }
    level += MCA_PML_UMRDDT_OFFER_MOST_PAUSES > level ? 1 : 0;
    mca_pml_umrddt_offer_set(key, MCA_PML_UMRDDT_OFFER_FIRST_PAUSE << (level - 1) << 8 | level);
}
