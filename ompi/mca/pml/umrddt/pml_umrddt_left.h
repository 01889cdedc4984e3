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
 * What receivers say is better left to the host PML, as senders remember it. A sender knows one
 * layout and one memory, the receiver both, and what messages take (pml_umrddt_pairs.h). So where
 * the host PML may be the quickest way, the sender offers its message all the same and allows the
 * receiver to leave it (MCA_PML_UMRDDT_MAY_LEAVE); and when the receiver is sure of it, it says so
 * (MCA_PML_UMRDDT_LEFT). The next 16 messages like that one are then left without a question, one
 * is offered again, after that 32, and so on up to 32768. One that goes another way halves the
 * number.
 *
 * Like that one are messages of as many of the same datatype to the same rank with the same tag,
 * from memory of the same kind. They are told by a hash in a table of fixed size; who is taken for
 * another one (once in 2^32 of those that meet there), or has lost its entry to another one, goes a
 * way that may take longer.
 *
 * From any thread, without order: what gets lost is a count.
 */

#ifndef MCA_PML_UMRDDT_LEFT_H
#define MCA_PML_UMRDDT_LEFT_H

#include "pml_umrddt.h"
#include "pml_umrddt_pause.h"

BEGIN_C_DECLS

/** Where it is remembered: the hash's upper half, and below it the word of pml_umrddt_pause.h. */
static inline uint64_t *mca_pml_umrddt_left_entry(uint64_t sign)
{
    _Static_assert(1 << 12 == MCA_PML_UMRDDT_LEFT_ENTRIES, "twelve bits of the hash");
    return &mca_pml_umrddt.left[sign >> 20 & (MCA_PML_UMRDDT_LEFT_ENTRIES - 1)];
}

static inline bool mca_pml_umrddt_left_is(uint64_t entry, uint64_t sign)
{
    return 0 == (entry ^ sign) >> 32;
}

/**
 * True if a message is to be left without a question; the next one of those has come.
 *
 * @param[in] sign  of it: mca_pml_umrddt_pairs_sign, with whatever else it depends on
 */
static inline bool mca_pml_umrddt_left(uint64_t sign)
{
    uint64_t *entry = mca_pml_umrddt_left_entry(sign);
    uint64_t value = __atomic_load_n(entry, __ATOMIC_RELAXED);

    if (OPAL_LIKELY(!mca_pml_umrddt_left_is(value, sign))
        || !mca_pml_umrddt_pause_lasts((uint32_t) value)) {
        return false;
    }
    __atomic_store_n(entry, value - MCA_PML_UMRDDT_PAUSE_ONE, __ATOMIC_RELAXED);
    return true;
}

/** A message that was offered is over. @param[in] left  the receiver says that they are to be left
 */
void mca_pml_umrddt_left_learn(uint64_t sign, bool left);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_LEFT_H */
