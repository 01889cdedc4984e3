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
 * Private to this directory: copies without a kernel. A route is the method from one layout to
 * another, for all addresses.
 */

#ifndef OPAL_UMRDDT_GPU_ROUTE_H
#define OPAL_UMRDDT_GPU_ROUTE_H

#include "opal_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opal/datatype/iov_cache/iov_cache_form.h"

#include "umrddt_gpu_engine.h"

/* Maximum number of driver copies for one message. */
#define BOXES 4

/* A part of a copy: `depth` times `height` rows of `width` bytes. */
typedef struct opal_umrddt_gpu_box_t {
    int64_t offset[2]; /* from the addresses of both places */
    uint64_t width;
    uint64_t height;
    uint64_t depth;
    uint64_t pitch[2]; /* from row to row; 0 if there is one */
    uint64_t slice[2];
} opal_umrddt_gpu_box_t;

/* Method from one layout to another, for all addresses. */
typedef struct opal_umrddt_gpu_route_t {
    uint64_t id[2]; /* of the layouts; 0: packed */
    uint64_t start;
    uint64_t end;   /* 0: empty */
    bool on_device; /* both places are on the engine's device */
    unsigned n;     /* boxes; 0: a kernel */
    opal_umrddt_gpu_box_t box[BOXES];
} opal_umrddt_gpu_route_t;

/* A form of one piece, for a place without a layout. */
typedef struct opal_umrddt_gpu_flat_t {
    opal_iov_cache_form_t form;
    opal_iov_cache_term_t term;
} opal_umrddt_gpu_flat_t;

/* The place's form: of its layout, or of the range alone. */
const opal_iov_cache_form_t *opal_umrddt_gpu_form_of(const opal_umrddt_gpu_copy_end_t *copy_end,
                                                     uint64_t start, uint64_t end,
                                                     opal_umrddt_gpu_flat_t *flat);

/* Start a walk over the parts of a range of two places. @param[out] flat  must live as long */
void opal_umrddt_gpu_pairs_begin(opal_iov_cache_pairs_t *pairs,
                                 const opal_umrddt_gpu_copy_end_t copy_ends[2], uint64_t start,
                                 uint64_t end, opal_umrddt_gpu_flat_t flat[2]);

/* Convert a part to a box. @return false if one driver copy is not enough */
bool opal_umrddt_gpu_box_of(const opal_iov_cache_pair_t *pair, opal_umrddt_gpu_box_t *box);

/*
 * The smallest number of boxes for a range, at most @p most. @return 0 if there are none, or too
 * many
 */
unsigned opal_umrddt_gpu_boxes_find(const opal_umrddt_gpu_copy_end_t copy_ends[2], uint64_t start,
                                    uint64_t end, unsigned most, opal_umrddt_gpu_box_t *boxes);

/*
 * True if a driver copy of a box is faster than a kernel.
 *
 * @param[in] on_device    within one device
 * @param[in] graphs  repeated kernels become graphs
 */
bool opal_umrddt_gpu_box_is_better(const opal_umrddt_gpu_box_t *box, bool on_device, bool graphs);

/*
 * Boxes of this range, or none: then a kernel is faster, or required. @param[in] keep  cache the
 * result
 */
void opal_umrddt_gpu_route_find(opal_umrddt_gpu_engine_t *engine,
                                const opal_umrddt_gpu_copy_end_t copy_ends[2], uint64_t start,
                                uint64_t end, bool keep, opal_umrddt_gpu_route_t *route);

/* Submit the boxes of a route. */
CUresult opal_umrddt_gpu_route_go(opal_umrddt_gpu_engine_t *engine, CUstream stream,
                                  const opal_umrddt_gpu_route_t *route,
                                  const opal_umrddt_gpu_copy_end_t copy_ends[2]);

/*
 * Submit any number of driver copies.
 *
 * @param[in] single  one per block
 * @param[in] homes   of both places, if copies must name them; else NULL
 */
CUresult opal_umrddt_gpu_route_blocks(opal_umrddt_gpu_engine_t *engine, CUstream stream,
                                      const opal_umrddt_gpu_copy_end_t copy_ends[2], uint64_t start,
                                      uint64_t end, bool single, const CUcontext homes[2]);

/* Copy by the CPU, which can access both. */
void opal_umrddt_gpu_route_host(const opal_umrddt_gpu_copy_end_t copy_ends[2], uint64_t start,
                                uint64_t end);

#endif /* OPAL_UMRDDT_GPU_ROUTE_H */
