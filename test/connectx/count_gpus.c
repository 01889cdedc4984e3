/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Says how many GPUs a program finds that loads the CUDA driver: "N GPUs". Exit status 3 if there
 * is no driver, 4 if it does not work. With an argument: 5 if a module has no kernel of that name.
 */

#include <dlfcn.h>
#include <stdio.h>

typedef int (*retain_t)(void **ctx, int device);
typedef int (*current_t)(void *ctx);
typedef int (*load_t)(void **module, const void *image);
typedef int (*function_t)(void **function, void *module, const char *name);

static int has_kernel(void *driver, const char *name)
{
    retain_t retain = (retain_t) dlsym(driver, "cuDevicePrimaryCtxRetain");
    current_t current = (current_t) dlsym(driver, "cuCtxSetCurrent");
    load_t load = (load_t) dlsym(driver, "cuModuleLoadData");
    function_t get_function = (function_t) dlsym(driver, "cuModuleGetFunction");
    void *function;
    void *module;
    void *ctx;

    return NULL != retain && NULL != current && NULL != load && NULL != get_function
           && 0 == retain(&ctx, 0) && 0 == current(ctx)
           && 0 == load(&module, "//\n.version 8.0\n.target sm_90\n")
           && 0 == get_function(&function, module, name);
}

int main(int argc, char **argv)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    int (*init)(unsigned int);
    int (*get_count)(int *);
    int count;

    if (NULL == driver) {
        return 3;
    }
    init = (int (*)(unsigned int)) dlsym(driver, "cuInit");
    get_count = (int (*)(int *)) dlsym(driver, "cuDeviceGetCount");
    if (NULL == init || NULL == get_count || 0 != init(0) || 0 != get_count(&count)) {
        return 4;
    }
    if (1 < argc && !has_kernel(driver, argv[1])) {
        return 5;
    }
    printf("%d GPUs\n", count);
    return 0;
}
