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
 * Private to this directory: the memory that an engine reaches, and by which methods.
 */

#ifndef OPAL_UMRDDT_GPU_REACH_H
#define OPAL_UMRDDT_GPU_REACH_H

#include "opal_config.h"

#include <stdbool.h>
#include <stdint.h>

#include "umrddt_gpu_engine_private.h"

/* Methods of an engine that reach a place. */
typedef enum {
    REACH_PEERS,  /* driver copies that name the contexts of both sides */
    REACH_COPIES, /* any driver copy */
    REACH_KERNELS /* and kernels */
} opal_umrddt_gpu_reach_t;

/*
 * The methods that reach the memory of a place. Enables access to another device where possible.
 * The context is current.
 *
 * @param[in] kernels  kernels must reach it; else only the needs of driver copies are tested
 */
opal_umrddt_gpu_reach_t opal_umrddt_gpu_reach(opal_umrddt_gpu_engine_t *engine,
                                              const opal_umrddt_gpu_copy_end_t *copy_end,
                                              bool kernels);

/* True if an engine reaches a place, whatever its methods: a device may access system memory. */
static inline bool opal_umrddt_gpu_is_near(const opal_umrddt_gpu_copy_end_t *copy_end)
{
    return OPAL_UMRDDT_GPU_DEVICE != copy_end->kind || copy_end->reached;
}

/*
 * For driver copies: the contexts that they must name, if any.
 *
 * @param[out] homes  of both places; only set with *apart
 * @param[out] apart  plain driver copies do not reach one of them
 */
int opal_umrddt_gpu_homes(opal_umrddt_gpu_engine_t *engine,
                          const opal_umrddt_gpu_copy_end_t copy_ends[2], CUcontext homes[2],
                          bool *apart);

/* True if kernels are known to reach a place, by its address. Without a driver call. */
static inline bool opal_umrddt_gpu_is_reached(const opal_umrddt_gpu_engine_t *engine,
                                              const opal_umrddt_gpu_copy_end_t *copy_end)
{
    return copy_end->reached || OPAL_UMRDDT_GPU_MANAGED == copy_end->kind
           || (OPAL_UMRDDT_GPU_PINNED == copy_end->kind && !engine->translates);
}

/* The device address of a place. */
int opal_umrddt_gpu_translate(opal_umrddt_gpu_engine_t *engine,
                              const opal_umrddt_gpu_copy_end_t *copy_end, uint64_t *address);

#endif /* OPAL_UMRDDT_GPU_REACH_H */
