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
 * Engines that pack and unpack one side of a layout, for bench_player.
 *
 * An engine is a table of functions on a context of its own. The player opens one for a side, packs
 * or unpacks with it any number of times, and closes it. The player owns the buffers: @p buffer is
 * the address that MPI would get, @p stream has room for the side's bytes.
 */

#ifndef BENCH_PLAYER_H
#define BENCH_PLAYER_H

#include "layouts.h"

/** Is this the player that is linked with the layout engine? */
#if !defined(BENCH_PLAYER_ENGINE)
#define BENCH_PLAYER_ENGINE 0
#endif

typedef struct bench_player_variant_t {
    const char *name;

    /** Get ready for a side, which outlives the context. Ends the process if that is impossible. */
    void *(*open)(const bench_side_t *side);
    void (*pack)(void *context, const void *buffer, void *stream);
    void (*unpack)(void *context, const void *stream, void *buffer);
    void (*close)(void *context);
} bench_player_variant_t;

/**
 * The layout engine: a lookup in its cache, then its pack or unpack. Only in the player that is
 * linked with the engine (BENCH_PLAYER_ENGINE).
 */
extern const bench_player_variant_t bench_player_engine;

#endif /* BENCH_PLAYER_H */
