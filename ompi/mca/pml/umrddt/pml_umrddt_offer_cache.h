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
 * The offer cache: which messages a sender need not offer to the receiver (send an envelope for),
 * because the base PML carries them in the end. It has two kinds of entries:
 *
 * - A verdict of the performance model on a datatype or a layout. It stays until its entry is
 *   replaced.
 * - A back-off for offers that were in vain: the receiver declined the message for the next ones,
 *   too (MCA_PML_UMRDDT_LEFT), or received it in system memory where only a receive in GPU memory
 *   helps (MCA_PML_UMRDDT_IN_GPU). After the first such offer 16 messages are not offered, after
 *   each further one twice as many, up to 32768. An offer that was not in vain halves the number.
 *
 * The table has a fixed size, and an entry is the upper half of a key's hash and a word of 32 bits:
 * a verdict, or how many messages are still not to be offered and, in its low 8 bits, how often
 * that was doubled. A message that is taken for another one (once in 2^32 of those that share an
 * entry), or whose entry was replaced, goes another way and costs time, nothing else.
 *
 * Every function may be called from any thread; without an order between them a count may get lost.
 */

#ifndef MCA_PML_UMRDDT_OFFER_CACHE_H
#define MCA_PML_UMRDDT_OFFER_CACHE_H

#include "pml_umrddt.h"

BEGIN_C_DECLS

/** Messages that are not offered after the first offer in vain; and how often that doubles. */
#define MCA_PML_UMRDDT_OFFER_FIRST_PAUSE 16u
#define MCA_PML_UMRDDT_OFFER_MOST_PAUSES 12u

/** One message of those that are not to be offered. */
#define MCA_PML_UMRDDT_OFFER_ONE (1u << 8)

/** Words of verdicts; no back-off has them. */
#define MCA_PML_UMRDDT_OFFER_NO  UINT32_MAX
#define MCA_PML_UMRDDT_OFFER_YES (UINT32_MAX - 1)

/** Add a number to a key. */
static inline uint64_t mca_pml_umrddt_offer_mix(uint64_t key, uint64_t more)
{
    return (key ^ more) * UINT64_C(0x9e3779b97f4a7c15);
}

/** The last step of a key. @return not 0 */
static inline uint64_t mca_pml_umrddt_offer_key(uint64_t key)
{
    return (key ^ key >> 32) * UINT64_C(0x9e3779b97f4a7c15) | 1;
}

/** The entry of a key. */
static inline uint64_t *mca_pml_umrddt_offer_entry(uint64_t key)
{
    _Static_assert(1 << 13 == MCA_PML_UMRDDT_OFFERS, "13 bits of the key");
    return &mca_pml_umrddt.offers[key >> 19 & (MCA_PML_UMRDDT_OFFERS - 1)];
}

/** The word of a key. @return 0: it has none */
static inline uint32_t mca_pml_umrddt_offer_word(uint64_t key)
{
    const uint64_t entry = __atomic_load_n(mca_pml_umrddt_offer_entry(key), __ATOMIC_RELAXED);

    return 0 == (entry ^ key) >> 32 ? (uint32_t) entry : 0;
}

static inline void mca_pml_umrddt_offer_set(uint64_t key, uint32_t word)
{
    __atomic_store_n(mca_pml_umrddt_offer_entry(key), key >> 32 << 32 | word, __ATOMIC_RELAXED);
}

/** True if a word is a back-off that lasts. */
static inline bool mca_pml_umrddt_offer_lasts(uint32_t word)
{
    return MCA_PML_UMRDDT_OFFER_ONE <= word && MCA_PML_UMRDDT_OFFER_YES > word;
}

/** True if the next message is not to be offered. It is then one of those of the back-off. */
static inline bool mca_pml_umrddt_offer_pauses(uint64_t key)
{
    const uint32_t word = mca_pml_umrddt_offer_word(key);

    if (OPAL_LIKELY(!mca_pml_umrddt_offer_lasts(word))) {
        return false;
    }
    mca_pml_umrddt_offer_set(key, word - MCA_PML_UMRDDT_OFFER_ONE);
    return true;
}

/** A message was offered, and that was in vain or not. */
void mca_pml_umrddt_offer_learn(uint64_t key, bool in_vain);

/** The key of messages that are offered to find out in which memory they are received. */
static inline uint64_t mca_pml_umrddt_offer_key_of(const mca_pml_umrddt_comm_t *comm, int dst,
                                                   int tag)
{
    const uint64_t key = mca_pml_umrddt_offer_mix(0, (uintptr_t) comm);

    return mca_pml_umrddt_offer_key(
        mca_pml_umrddt_offer_mix(key, (uint64_t) (uint32_t) dst << 32 | (uint32_t) tag));
}

END_C_DECLS

#endif /* MCA_PML_UMRDDT_OFFER_CACHE_H */
