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
 * Modules that are PTX: the text says which kernels a module has. Their code is that for the host
 * (gpu_host_kernel.h).
 */

#ifndef GPU_PTX_H
#define GPU_PTX_H

#include <stdbool.h>

/** True if @p text is PTX: after comments and space it begins with .version. */
bool gpu_ptx_is(const char *text);

/** The architecture of its .target: 75 for sm_75; 0 if there is none. */
unsigned gpu_ptx_target(const char *text);

/**
 * The names of its entries, each between newlines; "\n" without entries. NULL: out of memory. The
 * caller frees it.
 */
char *gpu_ptx_entries(const char *text);

/** True if a result of gpu_ptx_entries has the name. */
bool gpu_ptx_has(const char *entries, const char *name);

#endif /* GPU_PTX_H */
