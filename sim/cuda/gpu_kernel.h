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
 * Launches, as streams and graphs see them.
 */

#ifndef GPU_KERNEL_H
#define GPU_KERNEL_H

#include "gpu.h"

/** Work that launches a kernel; its parameters are copied now. */
CUresult gpu_launch_new(const CUDA_KERNEL_NODE_PARAMS *params, struct gpu_work **work);

#endif /* GPU_KERNEL_H */
