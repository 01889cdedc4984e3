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
 * What receivers leave to the host PML; see pml_umrddt_left.h.
 */

#include "ompi_config.h"

#include "pml_umrddt_left.h"

void mca_pml_umrddt_left_learn(uint64_t sign, bool left)
{
    uint64_t *entry = mca_pml_umrddt_left_entry(sign);
    uint64_t value = __atomic_load_n(entry, __ATOMIC_RELAXED);
    uint32_t word = mca_pml_umrddt_left_is(value, sign) ? (uint32_t) value : 0;

    if (!left && 0 == word) {
        return; /* nothing is remembered of it */
    }
    __atomic_store_n(entry, sign >> 32 << 32 | mca_pml_umrddt_pause_after(word, left),
                     __ATOMIC_RELAXED);
}
