/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include <stdlib.h>

#include <mpi.h>

#include "opal_config.h"
#include "ompi/datatype/ompi_datatype.h"
#include "opal/constants.h"

#include "opal/datatype/iov_cache/iov_cache.h"

#include "bench_player.h"
#include "bench_util.h"

#define CACHE_BYTES ((size_t) 1 << 30)

typedef struct {
    opal_iov_cache_t *cache;
    const opal_datatype_t *type;
    size_t count;
    uint64_t bytes;
} engine_t;

/* The cache is gone before the type is. */
static int promise(opal_iov_cache_t *cache, const opal_datatype_t *type, void *context)
{
    (void) cache;
    (void) type;
    (void) context;
    return OPAL_SUCCESS;
}

static void *engine_open(const bench_side_t *side)
{
    engine_t *engine = bench_alloc(sizeof(*engine));

    engine->type = &side->type->super;
    engine->count = (size_t) side->count;
    engine->bytes = side->bytes;
    if (OPAL_SUCCESS != opal_iov_cache_create(CACHE_BYTES, promise, NULL, &engine->cache)) {
        bench_fatal("no cache of layouts");
    }
    return engine;
}

static opal_iov_cache_layout_t *look_up(const engine_t *engine)
{
    opal_iov_cache_layout_t *layout;

    if (OPAL_SUCCESS != opal_iov_cache_get(engine->cache, engine->type, engine->count, &layout)) {
        bench_fatal("no layout");
    }
    return layout;
}

static void engine_pack(void *context, const void *buffer, void *stream)
{
    const engine_t *engine = context;
    opal_iov_cache_layout_t *layout = look_up(engine);

    opal_iov_cache_form_pack(layout->form, buffer, 0, engine->bytes, stream);
    OBJ_RELEASE(layout);
}

static void engine_unpack(void *context, const void *stream, void *buffer)
{
    const engine_t *engine = context;
    opal_iov_cache_layout_t *layout = look_up(engine);

    opal_iov_cache_form_unpack(layout->form, buffer, 0, engine->bytes, stream);
    OBJ_RELEASE(layout);
}

static void engine_close(void *context)
{
    engine_t *engine = context;

    opal_iov_cache_destroy(engine->cache);
    free(engine);
}

const bench_player_variant_t bench_player_engine = {
    .name = "engine",
    .open = engine_open,
    .pack = engine_pack,
    .unpack = engine_unpack,
    .close = engine_close,
};
