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
 * Hints about small messages in GPU memory, for one communicator. A receiver that gets such a
 * message in a staging buffer tells the sender that an envelope may replace the next ones with
 * this tag. Both sides cache the (rank, tag) pairs of hints.
 *
 * A hint is a promise (match/pml_umrddt_recv_post.c), so a table has whole pairs: an entry that was
 * replaced costs a staged message, and no entry is mistaken for another one.
 */

#ifndef OPAL_UMRDDT_SELECT_HINTS_H
#define OPAL_UMRDDT_SELECT_HINTS_H

#include "opal_config.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

BEGIN_C_DECLS

/** Entries of a table: sets of some entries each. Powers of two. */
#define OPAL_UMRDDT_HINTS     256
#define OPAL_UMRDDT_HINT_WAYS 8

/** Hints for one sender that need no sign of their use: the sender may have no GPU memory, and
 * receive none of them. After each further one, twice as many are omitted. */
#define OPAL_UMRDDT_HINTS_UNUSED 16

/** A hint is repeated after so many messages that are staged in spite of it. A power of two. */
#define OPAL_UMRDDT_HINT_PERIOD 16

/** (rank, tag) pairs. Any thread may read the entries, which are atomic; one at a time writes. */
typedef struct opal_umrddt_hint_table_t {
    uint64_t pairs[OPAL_UMRDDT_HINTS];
    uint32_t replaced; /**< entries so far, which selects the next one in a full set */
} opal_umrddt_hint_table_t;

typedef struct opal_umrddt_hints_t {
    opal_umrddt_hint_table_t got;      /**< from receivers */
    opal_umrddt_hint_table_t given;    /**< to senders */
    uint8_t staged[OPAL_UMRDDT_HINTS]; /**< messages in spite of a given hint, modulo 256 */
} opal_umrddt_hints_t;

/** Limits the hints for one sender in all communicators. All 0 after a sign of their use. */
typedef struct opal_umrddt_hint_pace_t {
    uint32_t unused; /**< hints since the last sign of use */
    uint32_t omit;   /**< as many are omitted before the next one */
} opal_umrddt_hint_pace_t;

/** Create the tables for a communicator. NULL: no memory */
static inline opal_umrddt_hints_t *opal_umrddt_hints_new(void)
{
    return calloc(1, sizeof(opal_umrddt_hints_t));
}

/** The value of an entry for a pair; not 0. */
static inline uint64_t opal_umrddt_hint_pair(int rank, int tag)
{
    return ((uint64_t) (uint32_t) rank + 1) << 32 | (uint32_t) tag;
}

/** The first entry of the set of a pair. */
static inline size_t opal_umrddt_hint_first(uint64_t pair)
{
    _Static_assert(1 << 5 == OPAL_UMRDDT_HINTS / OPAL_UMRDDT_HINT_WAYS, "5 bits of the product");
    return (size_t) (pair * UINT64_C(0x9e3779b97f4a7c15) >> 59) * OPAL_UMRDDT_HINT_WAYS;
}

/** The entry of a pair in a table, or -1. */
static inline int opal_umrddt_hint_entry(const opal_umrddt_hint_table_t *table, int rank, int tag)
{
    const uint64_t pair = opal_umrddt_hint_pair(rank, tag);
    const size_t first = opal_umrddt_hint_first(pair);

    for (size_t i = first; i < first + OPAL_UMRDDT_HINT_WAYS; ++i) {
        if (pair == __atomic_load_n(&table->pairs[i], __ATOMIC_RELAXED)) {
            return (int) i;
        }
    }
    return -1;
}

/** Returns true if a table has the pair. */
static inline bool opal_umrddt_hint_is(const opal_umrddt_hint_table_t *table, int rank, int tag)
{
    return 0 <= opal_umrddt_hint_entry(table, rank, tag);
}

/** Add a pair, which replaces another one if its set is full. @return its entry */
static inline int opal_umrddt_hint_set(opal_umrddt_hint_table_t *table, int rank, int tag)
{
    const uint64_t pair = opal_umrddt_hint_pair(rank, tag);
    const size_t first = opal_umrddt_hint_first(pair);
    int entry = opal_umrddt_hint_entry(table, rank, tag), to = 0;

    if (0 <= entry) {
        return entry;
    }
    while (OPAL_UMRDDT_HINT_WAYS > to && 0 != table->pairs[first + (size_t) to]) {
        ++to;
    }
    if (OPAL_UMRDDT_HINT_WAYS == to) {
        to = (int) (table->replaced++ % OPAL_UMRDDT_HINT_WAYS);
    }
    entry = (int) first + to;
    __atomic_store_n(&table->pairs[entry], pair, __ATOMIC_RELAXED);
    return entry;
}

/** Receiver: a message was staged. Returns true if its sender is to get a hint now. */
static inline bool opal_umrddt_hint_due(opal_umrddt_hints_t *hints, opal_umrddt_hint_pace_t *pace,
                                        int rank, int tag)
{
    const int entry = opal_umrddt_hint_entry(&hints->given, rank, tag);

    if (0 <= entry && 0 != ++hints->staged[entry] % OPAL_UMRDDT_HINT_PERIOD) {
        return false;
    }
    if (0 < pace->omit) {
        --pace->omit;
        return false;
    }
    if (OPAL_UMRDDT_HINTS_UNUSED <= ++pace->unused) {
        const uint32_t more = pace->unused - OPAL_UMRDDT_HINTS_UNUSED;

        pace->omit = UINT32_C(1) << (more < 30 ? more : 30);
    }
    hints->staged[opal_umrddt_hint_set(&hints->given, rank, tag)] = 0;
    return true;
}

/** Receiver: an envelope replaced a small message, which ended well. */
static inline void opal_umrddt_hint_used(opal_umrddt_hint_pace_t *pace)
{
    pace->unused = pace->omit = 0;
}

END_C_DECLS

#endif /* OPAL_UMRDDT_SELECT_HINTS_H */
