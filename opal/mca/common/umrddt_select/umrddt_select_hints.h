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

#include "opal/prefetch.h"

BEGIN_C_DECLS

/** Entries of a table: sets of some entries each. Powers of two. */
#define OPAL_UMRDDT_HINTS     256
#define OPAL_UMRDDT_HINT_WAYS 8

/** Hints for one sender that need no sign of their use: the sender may have no GPU memory, and
 * receive none of them. */
#define OPAL_UMRDDT_HINTS_UNUSED 16

/** A hint is repeated after so many messages that are staged in spite of it. A power of two. */
#define OPAL_UMRDDT_HINT_PERIOD 16

/** (rank, tag) pairs. Any thread may read the entries, which are atomic; one at a time writes. */
typedef struct opal_umrddt_hint_table_t {
    uint64_t pairs[OPAL_UMRDDT_HINTS];
    uint32_t replaced; /**< entries so far, which selects the next one in a full set */
} opal_umrddt_hint_table_t;

typedef struct opal_umrddt_hints_t {
    opal_umrddt_hint_table_t got;   /**< from receivers */
    opal_umrddt_hint_table_t given; /**< to senders */
    uint32_t repeated;              /**< messages that were staged in spite of a hint */
    uint8_t unused[];               /**< by rank: hints since the last sign of use */
} opal_umrddt_hints_t;

/** Create the tables for a communicator. NULL: no memory */
static inline opal_umrddt_hints_t *opal_umrddt_hints_new(int ranks)
{
    return calloc(1, sizeof(opal_umrddt_hints_t) + (size_t) ranks);
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

/** Returns true if a table has the pair. */
static inline bool opal_umrddt_hint_is(const opal_umrddt_hint_table_t *table, int rank, int tag)
{
    const uint64_t pair = opal_umrddt_hint_pair(rank, tag);
    const uint64_t *set = &table->pairs[opal_umrddt_hint_first(pair)];

    for (int i = 0; i < OPAL_UMRDDT_HINT_WAYS; ++i) {
        if (pair == __atomic_load_n(&set[i], __ATOMIC_RELAXED)) {
            return true;
        }
    }
    return false;
}

/** Add a pair, which replaces another one if its set is full. */
static inline void opal_umrddt_hint_set(opal_umrddt_hint_table_t *table, int rank, int tag)
{
    const uint64_t pair = opal_umrddt_hint_pair(rank, tag);
    uint64_t *set = &table->pairs[opal_umrddt_hint_first(pair)];
    int to = 0;

    if (opal_umrddt_hint_is(table, rank, tag)) {
        return;
    }
    while (OPAL_UMRDDT_HINT_WAYS > to && 0 != set[to]) {
        ++to;
    }
    if (OPAL_UMRDDT_HINT_WAYS == to) {
        to = (int) (table->replaced++ % OPAL_UMRDDT_HINT_WAYS);
    }
    __atomic_store_n(&set[to], pair, __ATOMIC_RELAXED);
}

/** Receiver: a message was staged. Returns true if its sender is to get a hint now. */
static inline bool opal_umrddt_hint_due(opal_umrddt_hints_t *hints, int rank, int tag)
{
    if (OPAL_UMRDDT_HINTS_UNUSED <= hints->unused[rank]
        || (opal_umrddt_hint_is(&hints->given, rank, tag)
            && 0 != ++hints->repeated % OPAL_UMRDDT_HINT_PERIOD)) {
        return false;
    }
    ++hints->unused[rank];
    opal_umrddt_hint_set(&hints->given, rank, tag);
    return true;
}

END_C_DECLS

#endif /* OPAL_UMRDDT_SELECT_HINTS_H */
