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
 * The real driver and the real kernels, for programs that otherwise run on software. Everything
 * here ends the program with a message if the driver refuses.
 *
 * UMRDDT_TEST_GPU=real asks a test for it; UMRDDT_TEST_FATBIN names a file to take the kernels
 * from, instead of what is within the program.
 */

#ifndef TEST_GPU_REAL_H
#define TEST_GPU_REAL_H

#include "opal_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opal/mca/common/umrddt_gpu/driver/umrddt_gpu_driver.h"
#include "umrddt_cuda_all.h"
#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_plan.h"

/** A GPU, ready. */
typedef struct real_gpu_t {
    const umrddt_cuda_all_t *driver;
    CUdevice device;
    CUcontext ctx;
    CUmodule module;
    CUfunction kernels[UMRDDT_GPU_KERNEL_COUNT];
    int processors;
    char name[128];
} real_gpu_t;

/** A copy, in the GPU's memory, of system memory. */
typedef struct real_mirror_t {
    void *host;
    size_t bytes;
    CUdeviceptr device; /**< 0: there is none */
} real_mirror_t;

/** Does the environment ask for the real driver? */
bool real_wanted(void);

/** Take device @p ordinal, make its context current and load all kernels. */
void real_begin(int ordinal, real_gpu_t *gpu);

/** End the program if @p rc is an error; @p what is what was called. */
void real_check(const real_gpu_t *gpu, CUresult rc, const char *what);

/** Launch a plan, to be waited for by the caller. */
void real_launch(const real_gpu_t *gpu, const opal_umrddt_gpu_plan_t *plan, CUstream stream);

/** Memory as large as @p host, which is not copied yet. */
void real_mirror(const real_gpu_t *gpu, void *host, size_t bytes, real_mirror_t *mirror);

/** Copy it there, or back. */
void real_upload(const real_gpu_t *gpu, const real_mirror_t *mirror);
void real_download(const real_gpu_t *gpu, const real_mirror_t *mirror);

/** Free it, if there is any. */
void real_unmirror(const real_gpu_t *gpu, real_mirror_t *mirror);

#define REAL_OK(GPU, CALL) real_check((GPU), (GPU)->driver->CALL, #CALL)

#endif /* TEST_GPU_REAL_H */
