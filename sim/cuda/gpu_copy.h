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
 * Copies and memsets as streams and graphs see them.
 */

#ifndef GPU_COPY_H
#define GPU_COPY_H

#include "gpu.h"

/** No extent of a copy is larger. */
#define GPU_COPY_MAX (1ull << 44)

/** One side of a copy. */
struct gpu_side {
    uintptr_t address;
    size_t pitch;   /**< from row to row */
    size_t slice;   /**< from plane to plane */
    bool host;      /**< the caller says: memory that the CPU can touch */
    bool device;    /**< by the caller: memory of the driver */
    bool known;     /**< memory of the driver */
    bool on_device; /**< the CPU cannot touch it */
    bool pinned;    /**< system memory of the driver: pinned or registered */
    uint64_t id;    /**< BUFFER_ID, if known */
};

/** A copy of depth x height rows of width bytes. */
struct gpu_box {
    struct gpu_side to;
    struct gpu_side from;
    size_t width;
    size_t height;
    size_t depth;
    bool sync; /**< one side has SYNC_MEMOPS */
    bool peer; /**< the caller names the context of each side */
};

/** A memset of height rows of width elements. */
struct gpu_set {
    uintptr_t address;
    size_t pitch;
    unsigned value;
    unsigned element; /**< bytes: 1, 2, 4 */
    size_t width;
    size_t height;
};

/** The box that the API's structure describes; CUDA_ERROR_INVALID_VALUE if there is none. */
CUresult gpu_box_3d(const CUDA_MEMCPY3D *copy, struct gpu_box *box);

/**
 * Check that all of it is there, and that devices of @p ctx may copy it, and fill in what kind it
 * is.
 */
CUresult gpu_box_check(CUcontext ctx, struct gpu_box *box);

/** Work that does a copy that was checked; NULL without memory. */
struct gpu_work *gpu_copy_new(const struct gpu_box *box);

/** Put a copy into a stream, and wait if the kind of memory requires it. */
CUresult gpu_copy(CUcontext ctx, struct gpu_box *box, CUstream handle, bool async);

/** Check that all of it is there. */
CUresult gpu_set_check(const struct gpu_set *set, struct gpu_place *place);

/** Work that does a memset that was checked; NULL without memory. */
struct gpu_work *gpu_set_new(const struct gpu_set *set);

#endif /* GPU_COPY_H */
