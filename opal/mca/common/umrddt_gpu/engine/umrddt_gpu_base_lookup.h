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
 * Memory lookups of a CUDA-aware Open MPI 5.0, answered without the CUDA driver for system memory.
 *
 * Open MPI looks up each buffer that its convertor sends from or receives into, including those of
 * umrddt's control messages. A query for memory that is unknown to the driver takes half a
 * microsecond, and Open MPI's accelerator/cuda makes up to three for each lookup. So a function
 * that answers for system memory (opal_umrddt_gpu_surely_system, opal_umrddt_gpu_is_system) is put
 * before the one of the accelerator framework, which still gets all other memory. Its lookups, and
 * its waits for its own copies, then do not invalidate a stream capture of the application. Its
 * stream is not created in a context that the application may destroy.
 */

#ifndef OPAL_UMRDDT_GPU_BASE_LOOKUP_H
#define OPAL_UMRDDT_GPU_BASE_LOOKUP_H

#include "opal_config.h"

#include <stdbool.h>
#include <stdint.h>

BEGIN_C_DECLS

/**
 * Begin, if this Open MPI is CUDA-aware and has the accelerator framework. No other thread calls
 * MPI.
 *
 * @param[in] system_memory  answer for system memory; otherwise the framework gets all memory
 */
void opal_umrddt_gpu_base_lookup_open(bool system_memory);

/** End. No other thread calls MPI. */
void opal_umrddt_gpu_base_lookup_close(void);

/** Lookups of this process that did not need the framework. It only grows. */
uint64_t opal_umrddt_gpu_base_lookups(void);

END_C_DECLS

#endif /* OPAL_UMRDDT_GPU_BASE_LOOKUP_H */
