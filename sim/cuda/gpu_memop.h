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
 * Values that streams and graphs write and wait for.
 */

#ifndef GPU_MEMOP_H
#define GPU_MEMOP_H

#include "gpu.h"

/** Work that does these operations in order, after they were checked. */
CUresult gpu_mem_ops_new(unsigned count, const CUstreamBatchMemOpParams *params,
                         struct gpu_work **work);

#endif /* GPU_MEMOP_H */
