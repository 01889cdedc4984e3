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
 * How often a sender tries what may be in vain (pml_umrddt_landing.h, pml_umrddt_left.h): behind
 * the first time that it was, 16 messages are not tried, and each further time twice as many, up to
 * 32768; once that it was not halves the number. It is one word: how many messages are still not to
 * be tried, and below that in 8 bits how often it was doubled.
 */

#ifndef MCA_PML_UMRDDT_PAUSE_H
#define MCA_PML_UMRDDT_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

/** Messages that are not tried behind the first that was in vain; and how often that doubles. */
#define MCA_PML_UMRDDT_FIRST_PAUSE 16u
#define MCA_PML_UMRDDT_MOST_PAUSES 12u

/** One message of those that are not to be tried. */
#define MCA_PML_UMRDDT_PAUSE_ONE (1u << 8)

/** True if the next message is not to be tried. */
static inline bool mca_pml_umrddt_pause_lasts(uint32_t word)
{
    return MCA_PML_UMRDDT_PAUSE_ONE <= word;
}

/** The word behind a message that was tried. */
static inline uint32_t mca_pml_umrddt_pause_after(uint32_t word, bool in_vain)
{
    uint32_t level = 0xffu & word;

    if (!in_vain) {
        return 0 < level ? level - 1 : 0;
    }
    level += MCA_PML_UMRDDT_MOST_PAUSES > level ? 1 : 0;
    return MCA_PML_UMRDDT_FIRST_PAUSE << (level - 1) << 8 | level;
}

#endif /* MCA_PML_UMRDDT_PAUSE_H */
