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
 * Private to this directory: shapes, that is, layouts for kernels and their lists on the device.
 *
 * Functions need the context current and the lock of the engine not held, unless stated otherwise.
 */

#ifndef OPAL_UMRDDT_GPU_SHAPE_H
#define OPAL_UMRDDT_GPU_SHAPE_H

#include "opal_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_map.h"

#include "umrddt_gpu_engine.h"

/* Maximum number of shapes without a list on the device. */
#define SHAPES 4096

/* A layout for kernels, and its list on the device. */
typedef struct opal_umrddt_gpu_shape_t {
    struct opal_umrddt_gpu_shape_t *chain; /* of its bucket */
    struct opal_umrddt_gpu_shape_t *newer; /* LRU order */
    struct opal_umrddt_gpu_shape_t *older;
    uint64_t id; /* of the layout */
    opal_umrddt_gpu_map_t *map;
    CUdeviceptr list; /* 0: not on the device (yet) */
    void *pinned;     /* source of its upload, until that is complete */
    CUevent event;    /* event of the upload ... */
    CUstream stream;  /* ... for all streams except this one */
    bool ready;       /* the upload is complete */
    bool cached;      /* in the cache */
    unsigned uses;    /* copies that got it by opal_umrddt_gpu_shape_get */
    unsigned refs;    /* copies in progress, and the cache */
} opal_umrddt_gpu_shape_t;

/*
 * The shape of a layout, created if necessary.
 *
 * @param[out] shape  the caller's until opal_umrddt_gpu_shape_unuse
 *
 * @retval OPAL_SUCCESS, OPAL_ERR_OUT_OF_RESOURCE
 */
int opal_umrddt_gpu_shape_get(opal_umrddt_gpu_engine_t *engine,
                              const opal_iov_cache_layout_t *layout,
                              opal_umrddt_gpu_shape_t **shape);

/*
 * The device address of the list, for following work in a stream.
 *
 * @param[in]  may_travel  a short list may be part of the launch argument, as at the first use
 * @param[out] list        0 if it is part of the argument, or if there is none
 */
int opal_umrddt_gpu_shape_list(opal_umrddt_gpu_engine_t *engine, opal_umrddt_gpu_shape_t *shape,
                               CUstream stream, bool may_travel, CUdeviceptr *list);

/* Add a use by another copy; with the lock. */
void opal_umrddt_gpu_shape_use(opal_umrddt_gpu_engine_t *engine, opal_umrddt_gpu_shape_t *shape);

/*
 * Remove the use of a copy; with the lock.
 *
 * @param[in]  used    work after the list in a stream is complete: the list is on the device
 * @param[out] pinned  a buffer to release; else unchanged
 *
 * @return true if it is unused now and must be freed
 */
bool opal_umrddt_gpu_shape_unuse(opal_umrddt_gpu_shape_t *shape, bool used, void **pinned);
void opal_umrddt_gpu_shape_free(opal_umrddt_gpu_engine_t *engine, opal_umrddt_gpu_shape_t *shape);

/* Free all shapes. @param[in] alive  the context exists, and is current */
void opal_umrddt_gpu_shapes_free(opal_umrddt_gpu_engine_t *engine, bool alive);

#endif /* OPAL_UMRDDT_GPU_SHAPE_H */
