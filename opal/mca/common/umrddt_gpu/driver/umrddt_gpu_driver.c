/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "umrddt_gpu_driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "opal/constants.h"

#define LIBRARY "libcuda.so.1"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool loaded;
static char why_not[256];

/* Stubs for functions that the driver does not have. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define REFUSE(name, base, version, arguments) \
    static CUresult refuse_##name arguments    \
    {                                          \
        return CUDA_ERROR_NOT_SUPPORTED;       \
    }
UMRDDT_CUDA_FUNCTIONS_USED(REFUSE)
#pragma GCC diagnostic pop

static opal_umrddt_gpu_driver_t table = {
#define FILL(name, base, version, arguments) .name = refuse_##name,
    UMRDDT_CUDA_FUNCTIONS_USED(FILL)};

/* POSIX's conversion of an object pointer to a function pointer. */
static bool find(void *library, const char *name, void *slot)
{
    void *function = dlsym(library, name);

    if (NULL != function) {
        memcpy(slot, &function, sizeof(function));
    }
    return NULL != function;
}

static void load(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    const char *error;

    if (NULL == library) {
        error = dlerror();
        snprintf(why_not, sizeof(why_not), "%s", NULL == error ? LIBRARY " was not found" : error);
        return;
    }
#define FIND(name, base, version, arguments) (void) find(library, #name, &table.name);
    UMRDDT_CUDA_FUNCTIONS_USED(FIND)
    /* Required to classify any pointer. */
    if (refuse_cuPointerGetAttribute == table.cuPointerGetAttribute
        || refuse_cuPointerGetAttributes == table.cuPointerGetAttributes) {
        snprintf(why_not, sizeof(why_not),
                 "%s cannot report the kind of a pointer: the driver is too old", LIBRARY);
        return;
    }
    /* Keeps the library loaded after other users close it. */
    loaded = true;
}

int opal_umrddt_gpu_driver_load(const opal_umrddt_gpu_driver_t **driver)
{
    (void) pthread_once(&once, load);
    if (!loaded) {
        return OPAL_ERR_NOT_AVAILABLE;
    }
    *driver = &table;
    return OPAL_SUCCESS;
}

const char *opal_umrddt_gpu_driver_why_not(void)
{
    return why_not;
}
