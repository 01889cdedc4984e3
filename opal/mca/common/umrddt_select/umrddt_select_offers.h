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
 * - A back-off after useless offers: the receiver declined this and the following messages, or
 *   received in system memory where only GPU memory benefits. After the first such offer 16
 * messages are not offered, after each further one twice as many, up to 32768. A useful offer
 * halves the number.
 *
 * The table has a fixed size. An entry has the upper half of the key's hash and a word of 32 bits.
 * The word is a selection, or the remaining back-off in messages with the number of doublings in
 * its low 8 bits. A wrong match (once in 2^32 for keys that share an entry) or a replaced entry
 * changes only the scheme of a message, and so its duration.
 *
 * All functions may be called from any thread. A concurrent update may be lost.
 */

#ifndef OPAL_UMRDDT_SELECT_OFFERS_H
#define OPAL_UMRDDT_SELECT_OFFERS_H

#include "opal_config.h"

#include <stdbool.h>
#include <stdint.h>

#include "opal/prefetch.h"

BEGIN_C_DECLS

/** Messages that are not offered after the first useless offer; and maximum level of the back-off,
 * each of which doubles the number. */
#define OPAL_UMRDDT_OFFER_FIRST_PAUSE 16u
#define OPAL_UMRDDT_OFFER_MOST_PAUSES 12u

/** One message of a back-off. */
#define OPAL_UMRDDT_OFFER_ONE (1u << 8)

/** Words of selections; no back-off has these values. */
#define OPAL_UMRDDT_OFFER_NO  UINT32_MAX
#define OPAL_UMRDDT_OFFER_YES (UINT32_MAX - 1)

/** Entries of the table. A power of two. */
#define OPAL_UMRDDT_OFFERS 8192

/** The table. All zeros: no entries. */
typedef struct opal_umrddt_offers_t {
    uint64_t entries[OPAL_UMRDDT_OFFERS]; /**< atomic */
} opal_umrddt_offers_t;

/** Add a number to a key. */
static inline uint64_t opal_umrddt_offer_mix(uint64_t key, uint64_t more)
{
    return (key ^ more) * UINT64_C(0x9e3779b97f4a7c15);
}

/** The last step of a key. @return not 0 */
static inline uint64_t opal_umrddt_offer_key(uint64_t key)
{
    return (key ^ key >> 32) * UINT64_C(0x9e3779b97f4a7c15) | 1;
}

/** Get the entry of a key. */
static inline uint64_t *opal_umrddt_offer_entry(opal_umrddt_offers_t *offers, uint64_t key)
{
    _Static_assert(1 << 13 == OPAL_UMRDDT_OFFERS, "13 bits of the key");
    return &offers->entries[key >> 19 & (OPAL_UMRDDT_OFFERS - 1)];
}

/** Get the word of a key. @return 0: none */
static inline uint32_t opal_umrddt_offer_word(opal_umrddt_offers_t *offers, uint64_t key)
{
    const uint64_t entry = __atomic_load_n(opal_umrddt_offer_entry(offers, key), __ATOMIC_RELAXED);

    return 0 == (entry ^ key) >> 32 ? (uint32_t) entry : 0;
}

static inline void opal_umrddt_offer_set(opal_umrddt_offers_t *offers, uint64_t key, uint32_t word)
{
    __atomic_store_n(opal_umrddt_offer_entry(offers, key), key >> 32 << 32 | word,
                     __ATOMIC_RELAXED);
}

/** Returns true if a word is a back-off with remaining messages. */
static inline bool opal_umrddt_offer_lasts(uint32_t word)
{
    return OPAL_UMRDDT_OFFER_ONE <= word && OPAL_UMRDDT_OFFER_YES > word;
}

/** Returns true if the envelope of the next message can be skipped. Consumes one message of the
 * back-off. */
static inline bool opal_umrddt_offer_pauses(opal_umrddt_offers_t *offers, uint64_t key)
{
    const uint32_t word = opal_umrddt_offer_word(offers, key);

    if (OPAL_LIKELY(!opal_umrddt_offer_lasts(word))) {
        return false;
    }
    opal_umrddt_offer_set(offers, key, word - OPAL_UMRDDT_OFFER_ONE);
    return true;
}

/** Record whether an offer was useless. */
void opal_umrddt_offer_learn(opal_umrddt_offers_t *offers, uint64_t key, bool in_vain);

/** Get the key of probe messages, which find out the receive memory. */
static inline uint64_t opal_umrddt_offer_key_of(const void *comm, int dst, int tag)
{
    const uint64_t key = opal_umrddt_offer_mix(0, (uintptr_t) comm);

    return opal_umrddt_offer_key(
        opal_umrddt_offer_mix(key, (uint64_t) (uint32_t) dst << 32 | (uint32_t) tag));
}

END_C_DECLS

#endif /* OPAL_UMRDDT_SELECT_OFFERS_H */
