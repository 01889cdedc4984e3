/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include <stdio.h>

#include "bench_steady.h"

/* Counters that must not grow at all; causes before effects. */
static const struct {
    int pvar;
    const char *what;
} nothing[] = {
    {BENCH_PVAR_LAYOUT_MISSES, "datatypes read"}, {BENCH_PVAR_REG_MISSES, "registrations"},
    {BENCH_PVAR_MKEYS_CREATED, "mkeys created"},  {BENCH_PVAR_KEYS_MAPPED, "mkeys mapped"},
    {BENCH_PVAR_KEY_ENTRIES, "entries of lists"},
};

/* Equal blocks at equal distances that one entry can hold, however many they are? */
static bool is_regular(const bench_side_t *side, uint64_t most)
{
    const bench_piece_t *pieces = side->pieces;
    int64_t stride;
    size_t i;

    if (2 > side->piece_count) {
        return false;
    }
    stride = pieces[1].offset - pieces[0].offset;
    if (0 >= stride || most < (uint64_t) stride) {
        return false;
    }
    for (i = 1; i < side->piece_count; ++i) {
        if (pieces[i].length != pieces[0].length
            || pieces[i].offset - pieces[i - 1].offset != stride) {
            return false;
        }
    }
    return true;
}

static uint64_t keys_of(const bench_side_t *side, const bench_key_caps_t *caps)
{
    return is_regular(side, caps->stride) ? 1
                                          : (side->piece_count + caps->entries - 1) / caps->entries;
}

uint64_t bench_steady_writes(const bench_layout_t *layout, const bench_key_caps_t *caps)
{
    uint64_t send = keys_of(&layout->send, caps), recv = keys_of(&layout->recv, caps);

    return send > recv ? send : recv;
}

bool bench_steady_check(const bench_result_t *result, uint64_t writes, char *text, size_t room)
{
    double count;
    size_t i;

    for (i = 0; i < sizeof(nothing) / sizeof(nothing[0]); ++i) {
        if (!result->has[nothing[i].pvar]) {
            snprintf(text, room, "no counter of %s exists", nothing[i].what);
            return false;
        }
        count = result->per_message[nothing[i].pvar];
        if (0.0 != count) {
            snprintf(text, room, "%.3f %s per message instead of none", count, nothing[i].what);
            return false;
        }
    }
    count = result->per_message[BENCH_PVAR_WRITES_POSTED];
    if (1.0 > count || (double) writes < count) {
        snprintf(text, room, "%.3f RDMA writes per message instead of %llu", count,
                 (unsigned long long) writes);
        return false;
    }
    count = result->per_message[BENCH_PVAR_CONTROL_BYTES];
    if (0.0 >= count || BENCH_STEADY_CONTROL_BYTES < count) {
        snprintf(text, room, "%.3f control bytes per message instead of at most %d", count,
                 BENCH_STEADY_CONTROL_BYTES);
        return false;
    }
    return true;
}
