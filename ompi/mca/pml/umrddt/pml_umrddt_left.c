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

/** Messages that are left behind the first that the receiver left; each further one doubles them.
 */
#define FIRST_PAUSE 16u
#define MOST_LEVEL  12u

void mca_pml_umrddt_left_learn(uint64_t sign, bool left)
{
    uint64_t *entry = mca_pml_umrddt_left_entry(sign);
    uint64_t value = __atomic_load_n(entry, __ATOMIC_RELAXED);
    uint32_t level = mca_pml_umrddt_left_is(value, sign) ? (uint32_t) value & 0xffu : 0;
    uint32_t pause = 0;

    if (left) {
        level += MOST_LEVEL > level ? 1 : 0;
        pause = FIRST_PAUSE << (level - 1);
    } else if (0 == level) {
        return; /* nothing is remembered of it */
    } else {
        --level;
    }
    __atomic_store_n(entry, sign >> 32 << 32 | pause << 8 | level, __ATOMIC_RELAXED);
}
