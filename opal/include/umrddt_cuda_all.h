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
 * All functions of the CUDA driver, for tools, benchmarks and tests. The components load only those
 * that they call (umrddt_gpu_driver.h).
 */

#ifndef UMRDDT_CUDA_ALL_H
#define UMRDDT_CUDA_ALL_H

#include "opal_config.h"

#include <dlfcn.h>
#include <string.h>

#include "opal/constants.h"
#include "opal/mca/common/umrddt_gpu/driver/umrddt_gpu_driver.h"
#include "umrddt_cuda.h"

/** Every entry is set: a function that this driver does not have returns CUDA_ERROR_NOT_SUPPORTED.
 */
typedef struct umrddt_cuda_all_t {
#define UMRDDT_CUDA_ALL_SLOT(name, base, version, arguments) CUresult(*name) arguments;
    UMRDDT_CUDA_FUNCTIONS(UMRDDT_CUDA_ALL_SLOT)
} umrddt_cuda_all_t;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define UMRDDT_CUDA_ALL_REFUSE(name, base, version, arguments) \
    static CUresult umrddt_cuda_refuse_##name arguments        \
    {                                                          \
        return CUDA_ERROR_NOT_SUPPORTED;                       \
    }
UMRDDT_CUDA_FUNCTIONS(UMRDDT_CUDA_ALL_REFUSE)
#pragma GCC diagnostic pop

/** As opal_umrddt_gpu_driver_load. One thread at a time. */
static inline int umrddt_cuda_all_load(const umrddt_cuda_all_t **all)
{
    static umrddt_cuda_all_t table = {
#define UMRDDT_CUDA_ALL_FILL(name, base, version, arguments) .name = umrddt_cuda_refuse_##name,
        UMRDDT_CUDA_FUNCTIONS(UMRDDT_CUDA_ALL_FILL)};
    const opal_umrddt_gpu_driver_t *driver;
    void *library, *function;
    const int rc = opal_umrddt_gpu_driver_load(&driver);

    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (NULL == library) {
        return OPAL_ERR_NOT_AVAILABLE;
    }
    /* POSIX's conversion of an object pointer to a function pointer */
#define UMRDDT_CUDA_ALL_FIND(name, base, version, arguments) \
    function = dlsym(library, #name);                        \
    if (NULL != function) {                                  \
        memcpy(&table.name, &function, sizeof(function));    \
    }
    UMRDDT_CUDA_FUNCTIONS(UMRDDT_CUDA_ALL_FIND)
    *all = &table;
    return OPAL_SUCCESS;
}

#endif /* UMRDDT_CUDA_ALL_H */
