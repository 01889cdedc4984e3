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
 * The offer cache: messages for which a sender need not send an envelope, because the base PML will
 * carry them anyway. It has two kinds of entries:
 * - A selection of the performance model for a datatype or a layout. It stays until its entry is
 *   replaced.
 * - A back-off after useless offers: the receiver declined this and the following messages
 *   (MCA_PML_UMRDDT_DECLINED), or received in system memory where only GPU memory benefits
 *   (MCA_PML_UMRDDT_IN_GPU). After the first such offer 16 messages are not offered, after each
 *   further one twice as many, up to 32768. A useful offer halves the number.
 *
 * The table has a fixed size. An entry has the upper half of the key's hash and a word of 32 bits.
 * The word is a selection, or the remaining back-off in messages with the number of doublings in
 * its low 8 bits. A wrong match (once in 2^32 for keys that share an entry) or a replaced entry
 * changes only the scheme of a message, and so its duration.
 *
 * All functions may be called from any thread. A concurrent update may be lost.
 */

#ifndef MCA_PML_UMRDDT_OFFER_CACHE_H
#define MCA_PML_UMRDDT_OFFER_CACHE_H

#include "ompi/mca/pml/umrddt/core/pml_umrddt_comm.h"

BEGIN_C_DECLS

/** Messages that are not offered after the first useless offer; and maximum level of the back-off,
 * each of which doubles the number. */
#define MCA_PML_UMRDDT_OFFER_FIRST_PAUSE 16u
#define MCA_PML_UMRDDT_OFFER_MOST_PAUSES 12u

/** One message of a back-off. */
#define MCA_PML_UMRDDT_OFFER_ONE (1u << 8)

/** Words of selections; no back-off has these values. */
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

/** Get the entry of a key. */
static inline uint64_t *mca_pml_umrddt_offer_entry(uint64_t key)
{
    _Static_assert(1 << 13 == MCA_PML_UMRDDT_OFFERS, "13 bits of the key");
    return &mca_pml_umrddt.offers[key >> 19 & (MCA_PML_UMRDDT_OFFERS - 1)];
}

/** Get the word of a key. @return 0: none */
static inline uint32_t mca_pml_umrddt_offer_word(uint64_t key)
{
    const uint64_t entry = __atomic_load_n(mca_pml_umrddt_offer_entry(key), __ATOMIC_RELAXED);

    return 0 == (entry ^ key) >> 32 ? (uint32_t) entry : 0;
}

static inline void mca_pml_umrddt_offer_set(uint64_t key, uint32_t word)
{
    __atomic_store_n(mca_pml_umrddt_offer_entry(key), key >> 32 << 32 | word, __ATOMIC_RELAXED);
}

/** Returns true if a word is a back-off with remaining messages. */
static inline bool mca_pml_umrddt_offer_lasts(uint32_t word)
{
    return MCA_PML_UMRDDT_OFFER_ONE <= word && MCA_PML_UMRDDT_OFFER_YES > word;
}

/** Returns true if the envelope of the next message can be skipped. Consumes one message of the
 * back-off. */
static inline bool mca_pml_umrddt_offer_pauses(uint64_t key)
{
    const uint32_t word = mca_pml_umrddt_offer_word(key);

    if (OPAL_LIKELY(!mca_pml_umrddt_offer_lasts(word))) {
        return false;
    }
    mca_pml_umrddt_offer_set(key, word - MCA_PML_UMRDDT_OFFER_ONE);
    return true;
}

/** Record whether an offer was useless. */
void mca_pml_umrddt_offer_learn(uint64_t key, bool in_vain);

/** Get the key of probe messages, which find out the receive memory. */
static inline uint64_t mca_pml_umrddt_offer_key_of(const mca_pml_umrddt_comm_t *comm, int dst,
                                                   int tag)
{
    const uint64_t key = mca_pml_umrddt_offer_mix(0, (uintptr_t) comm);

    return mca_pml_umrddt_offer_key(
        mca_pml_umrddt_offer_mix(key, (uint64_t) (uint32_t) dst << 32 | (uint32_t) tag));
}

END_C_DECLS

#endif /* MCA_PML_UMRDDT_OFFER_CACHE_H */
