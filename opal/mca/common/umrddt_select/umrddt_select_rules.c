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
 * The fixed rules; see umrddt_select_rules.h.
 */

#include "umrddt_select_rules.h"

#include <stdlib.h>

/* Size of the table: somewhat more entries than the HCA caches rkey sets. A bucket replaces its
 * entries in turn. */
#define BUCKETS    512
#define PER_BUCKET 4

struct opal_umrddt_received_t {
    struct {
        uint64_t layout[PER_BUCKET]; /* 0: empty */
        uintptr_t buffer[PER_BUCKET];
        uint32_t next;
    } buckets[BUCKETS];
};

opal_umrddt_received_t *opal_umrddt_received_new(void)
{
    return calloc(1, sizeof(opal_umrddt_received_t));
}

/** Returns true if the table has the entry. Adds it otherwise. */
static bool has_received(opal_umrddt_received_t *received, uint64_t layout, uintptr_t buffer)
{
    uint64_t hash = (layout * UINT64_C(0x9e3779b97f4a7c15) ^ buffer) * UINT64_C(0x9e3779b97f4a7c15);
    size_t bucket = (size_t) (hash >> 55), i;

    _Static_assert(1 << (64 - 55) == BUCKETS, "the highest bits of the hash");
    for (i = 0; i < PER_BUCKET; ++i) {
        if (layout == received->buckets[bucket].layout[i]
            && buffer == received->buckets[bucket].buffer[i]) {
            return true;
        }
    }
    i = received->buckets[bucket].next++ % PER_BUCKET;
    received->buckets[bucket].layout[i] = layout;
    received->buckets[bucket].buffer[i] = buffer;
    return false;
}

/** Returns true if the message is cheaper without mkeys while none are mapped. */
static bool is_cheap(const opal_umrddt_rule_message_t *message)
{
    const uint64_t most =
        message->from_pieces < message->to_pieces ? message->to_pieces : message->from_pieces;
    /* One write for each piece of the receiver, and one more for each full gather list. */
    const uint64_t writes = message->to_pieces + message->from_pieces / message->write_pieces;

    return writes <= message->writes || (0 < message->run && message->total / most >= message->run);
}

bool opal_umrddt_rule_direct(opal_umrddt_received_t *received,
                             const opal_umrddt_rule_message_t *message)
{
    return !has_received(received, message->layout, message->buffer) && is_cheap(message);
}
