/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Modules, functions and launches: kernels that were compiled for the host. See gpu_host_kernel.h.
 */

#include "gpu_kernel.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_host_kernel.h"
#include "gpu_ptx.h"

#define PARAMS_MAX  32
#define PARAM_BYTES 4096

struct CUfunc_st {
    CUmodule module;
    const struct gpu_host_kernel *kernel;
    struct CUfunc_st *next;
};

struct CUmod_st {
    CUcontext ctx;
    const struct gpu_host_kernels *only; /* NULL: all that the options name */
    char *entries;                       /* of PTX (gpu_ptx_entries); NULL: any */
    CUfunction functions;
    struct CUmod_st *next;
};

/* A shared object that is loaded. */
struct object {
    struct object *next;
    const struct gpu_host_kernels *kernels;
};

static CUmodule modules;
static struct object *objects;
static bool searched;

struct launch {
    struct gpu_work head;
    CUfunction function;
    CUcontext ctx;
    const struct gpu_host_kernel *kernel;
    unsigned grid[3];
    unsigned block[3];
    void *params[PARAMS_MAX];
    char bytes[PARAM_BYTES] __attribute__((aligned(16)));
};

/* A range of memory that a launch has touched. */
struct touched {
    uintptr_t base;
    size_t size; /* 0: none */
    char *view;
    bool write;
};

/* So many: a kernel has sources, a target and their lists. */
#define TOUCHED 4

/* The launch of the thread. */
struct running {
    jmp_buf out;
    CUresult error;
    CUcontext ctx;
    uint64_t generation; /* of the ranges below */
    unsigned next;
    struct touched touched[TOUCHED];
};
static __thread struct running running;

/* ---- the services ---- */

static const struct touched *look_up(struct running *now, uint64_t address, int write)
{
    struct touched *new = NULL;
    struct gpu_range *range;

    pthread_mutex_lock(&gpu_lock);
    range = gpu_range_find(address);
    if (now->generation != gpu_range_generation) {
        memset(now->touched, 0, sizeof(now->touched));
        now->generation = gpu_range_generation;
    }
    if (NULL != range && gpu_may_touch(now->ctx, range, 0 != write)) {
        new = &now->touched[now->next++ % TOUCHED];
        new->base = range->base;
        new->size = range->size;
        new->view = range->view;
        new->write = gpu_may_touch(now->ctx, range, true);
    }
    pthread_mutex_unlock(&gpu_lock);
    return new;
}

/* The range of an address; NULL if there is none, or the launch may not touch it. */
static const struct touched *range_of(struct running *now, uint64_t address, int write)
{
    int i;

    if (now->generation == __atomic_load_n(&gpu_range_generation, __ATOMIC_ACQUIRE)) {
        for (i = 0; i < TOUCHED; i++) {
            const struct touched *one = &now->touched[i];

            if (address - one->base < one->size && (one->write || 0 == write)) {
                return one;
            }
        }
    }
    return look_up(now, address, write);
}

static void *at(uint64_t address, size_t size, int write, int bulk)
{
    struct running *now = &running;
    const struct touched *range;

    if (0 == bulk && 0 != (address & (size - 1))) {
        now->error = CUDA_ERROR_MISALIGNED_ADDRESS;
        longjmp(now->out, 1);
    }
    range = range_of(now, address, write);
    if (NULL == range || size > range->size - (address - range->base)) {
        now->error = CUDA_ERROR_ILLEGAL_ADDRESS;
        longjmp(now->out, 1);
    }
    return range->view + (address - range->base);
}

static size_t rest(uint64_t address)
{
    const struct touched *range = range_of(&running, address, 0);

    return NULL == range ? 0 : range->size - (address - range->base);
}

static const struct gpu_host_services services = {GPU_HOST_ABI, at, rest};

/* ---- shared objects ---- */

static const struct gpu_host_kernels *open_object(const char *path)
{
    const struct gpu_host_kernels *kernels;
    gpu_host_module_fn_t module;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (NULL == handle) {
        fprintf(stderr, "umrddt_gpu: %s\n", dlerror());
        return NULL;
    }
    module = (gpu_host_module_fn_t) dlsym(handle, "gpu_host_module");
    kernels = NULL == module ? NULL : module(&services);
    if (NULL == kernels || GPU_HOST_ABI != kernels->abi) {
        fprintf(stderr, "umrddt_gpu: %s holds no kernels for this driver\n", path);
        dlclose(handle);
        return NULL;
    }
    return kernels;
}

static void add_object(const char *path)
{
    const struct gpu_host_kernels *kernels = open_object(path);
    struct object *object = NULL == kernels ? NULL : malloc(sizeof(*object));

    if (NULL != object) {
        object->kernels = kernels;
        object->next = objects;
        objects = object;
    }
}

static void add_directory(const char *directory)
{
    char pattern[PATH_MAX];
    glob_t found;
    size_t i;

    if (sizeof(pattern) <= (size_t) snprintf(pattern, sizeof(pattern), "%s/*.so", directory)) {
        return;
    }
    if (0 == glob(pattern, 0, NULL, &found)) {
        for (i = 0; i < found.gl_pathc; i++) {
            add_object(found.gl_pathv[i]);
        }
        globfree(&found);
    }
}

/* Those in 'kernels' beside this library; in the build tree, where they are built. */
static void add_neighbours(void)
{
    char self[PATH_MAX - 32];
    char directory[PATH_MAX];
    Dl_info info;
    char *name;

    if (0 == dladdr((void *) cuInit, &info)
        || sizeof(self) <= (size_t) snprintf(self, sizeof(self), "%s", info.dli_fname)
        || NULL == (name = strrchr(self, '/'))) {
        return;
    }
    *name = '\0';
    snprintf(directory, sizeof(directory), "%s/kernels", self);
    add_directory(directory);
    name = strrchr(self, '/');
    if (0 == strcmp(NULL == name ? self : name + 1, ".libs")) {
        snprintf(directory, sizeof(directory), "%s/../../kernels/.libs", self);
        add_directory(directory);
    }
}

/* Those that the options name, or else those that are found. */
static void find_objects(void)
{
    char list[sizeof(gpu_conf.kernels)];
    char *save = NULL;
    char *path;

    searched = true;
    strcpy(list, gpu_conf.kernels);
    for (path = strtok_r(list, ":", &save); NULL != path; path = strtok_r(NULL, ":", &save)) {
        add_object(path);
    }
    if ('\0' == gpu_conf.kernels[0]) {
        add_neighbours();
    }
}

static const struct gpu_host_kernel *find_in(const struct gpu_host_kernels *kernels,
                                             const char *name)
{
    size_t i;

    for (i = 0; i < kernels->count; i++) {
        if (0 == strcmp(kernels->kernels[i].name, name)) {
            return &kernels->kernels[i];
        }
    }
    return NULL;
}

/* ---- modules ---- */

/* Code for a GPU: a fat binary or a cubin. Nothing in it is looked at. */
static bool is_binary(const unsigned char *image)
{
    static const unsigned char fat[] = {0x50, 0xed, 0x55, 0xba};
    static const unsigned char wrapped[] = {0xb1, 0x43, 0x62, 0x46};
    static const unsigned char elf[] = {0x7f, 'E', 'L', 'F'};

    if (0 == memcmp(image, fat, 4) || 0 == memcmp(image, wrapped, 4)) {
        return true;
    }
    if (0 == memcmp(image, elf, 4)) {
        return 190 == (image[18] | image[19] << 8);
    }
    return false;
}

static CUresult new_module(CUcontext ctx, const struct gpu_host_kernels *only, const char *ptx,
                           CUmodule *module)
{
    CUmodule m = calloc(1, sizeof(*m));

    if (NULL == m) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (NULL != ptx) {
        m->entries = gpu_ptx_entries(ptx);
        if (NULL == m->entries) {
            free(m);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    m->ctx = ctx;
    m->only = only;
    m->next = modules;
    modules = m;
    *module = m;
    return CUDA_SUCCESS;
}

static CUresult load(CUcontext ctx, CUmodule *module, const void *image)
{
    const char *ptx;

    if (NULL == module || NULL == image) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    ptx = is_binary(image) ? NULL : image;
    if (NULL != ptx && !gpu_ptx_is(ptx)) {
        return CUDA_ERROR_INVALID_IMAGE;
    }
    if (!searched) {
        find_objects();
    }
    if (NULL == objects || (NULL != ptx && gpu_conf.capability < gpu_ptx_target(ptx))) {
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    }
    return new_module(ctx, NULL, ptx, module);
}

GPU_EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    CUcontext ctx;

    GPU_BEGIN_CTX(cuModuleLoadData, &ctx);
    return gpu_end(load(ctx, module, image));
}

GPU_EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count,
                                       CUjit_option *options, void **values)
{
    CUcontext ctx;

    GPU_BEGIN_CTX(cuModuleLoadDataEx, &ctx);
    (void) options;
    (void) values;
    (void) count;
    return gpu_end(load(ctx, module, image));
}

GPU_EXPORT CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    CUcontext ctx;

    GPU_BEGIN_CTX(cuModuleLoadFatBinary, &ctx);
    return gpu_end(load(ctx, module, image));
}

/* A shared object with kernels for the host. */
GPU_EXPORT CUresult cuModuleLoad(CUmodule *module, const char *name)
{
    const struct gpu_host_kernels *kernels;
    CUcontext ctx;

    GPU_BEGIN_CTX(cuModuleLoad, &ctx);
    if (NULL == module || NULL == name) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    kernels = open_object(name);
    return gpu_end(NULL == kernels ? CUDA_ERROR_FILE_NOT_FOUND
                                   : new_module(ctx, kernels, NULL, module));
}

static bool exists(CUmodule module)
{
    CUmodule m;

    for (m = modules; NULL != m && m != module; m = m->next) {
    }
    return NULL != m;
}

GPU_EXPORT CUresult cuModuleUnload(CUmodule module)
{
    CUcontext ctx;
    CUmodule *p;

    GPU_BEGIN_CTX(cuModuleUnload, &ctx);
    if (!exists(module)) {
        return gpu_end(CUDA_ERROR_INVALID_HANDLE);
    }
    (void) gpu_drain(module->ctx);
    for (p = &modules; *p != module; p = &(*p)->next) {
    }
    *p = module->next;
    while (NULL != module->functions) {
        CUfunction f = module->functions;

        module->functions = f->next;
        free(f);
    }
    free(module->entries);
    free(module);
    return gpu_end(CUDA_SUCCESS);
}

static const struct gpu_host_kernel *find_kernel(CUmodule module, const char *name)
{
    const struct gpu_host_kernel *kernel = NULL;
    struct object *o;

    if (NULL != module->only) {
        return find_in(module->only, name);
    }
    /* PTX without entries, which real drivers load too, has the kernels of all objects here. */
    if (NULL != module->entries && '\0' != module->entries[1]
        && !gpu_ptx_has(module->entries, name)) {
        return NULL;
    }
    for (o = objects; NULL != o && NULL == kernel; o = o->next) {
        kernel = find_in(o->kernels, name);
    }
    return kernel;
}

GPU_EXPORT CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    const struct gpu_host_kernel *kernel;
    CUcontext ctx;
    CUfunction f;

    GPU_BEGIN_CTX(cuModuleGetFunction, &ctx);
    if (NULL == function || NULL == name) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    if (!exists(module)) {
        return gpu_end(CUDA_ERROR_INVALID_HANDLE);
    }
    kernel = find_kernel(module, name);
    if (NULL == kernel || PARAMS_MAX < kernel->params) {
        return gpu_end(CUDA_ERROR_NOT_FOUND);
    }
    f = calloc(1, sizeof(*f));
    if (NULL == f) {
        return gpu_end(CUDA_ERROR_OUT_OF_MEMORY);
    }
    f->module = module;
    f->kernel = kernel;
    f->next = module->functions;
    module->functions = f;
    *function = f;
    return gpu_end(CUDA_SUCCESS);
}

static bool is_function(CUfunction function)
{
    CUmodule m;
    CUfunction f;

    for (m = modules; NULL != m; m = m->next) {
        for (f = m->functions; NULL != f; f = f->next) {
            if (f == function) {
                return true;
            }
        }
    }
    return false;
}

GPU_EXPORT CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute,
                                       CUfunction function)
{
    CUcontext ctx;

    GPU_BEGIN_CTX(cuFuncGetAttribute, &ctx);
    if (NULL == value || 14 < (int) attribute) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    if (!is_function(function)) {
        return gpu_end(CUDA_ERROR_INVALID_HANDLE);
    }
    *value = CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK == (int) attribute ? 1024
             : CU_FUNC_ATTRIBUTE_NUM_REGS == (int) attribute            ? 32
             : CU_FUNC_ATTRIBUTE_BINARY_VERSION == (int) attribute      ? 90
                                                                        : 0;
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute,
                                       int value)
{
    CUcontext ctx;

    GPU_BEGIN_CTX(cuFuncSetAttribute, &ctx);
    (void) value;
    if (!is_function(function)) {
        return gpu_end(CUDA_ERROR_INVALID_HANDLE);
    }
    return gpu_end(8 == (int) attribute || 9 == (int) attribute ? CUDA_SUCCESS
                                                                : CUDA_ERROR_INVALID_VALUE);
}

GPU_EXPORT CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function,
                                                                int threads, size_t shared)
{
    CUcontext ctx;

    GPU_BEGIN_CTX(cuOccupancyMaxActiveBlocksPerMultiprocessor, &ctx);
    (void) shared;
    if (NULL == blocks || 1 > threads || 1024 < threads) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    if (!is_function(function)) {
        return gpu_end(CUDA_ERROR_INVALID_HANDLE);
    }
    *blocks = 2048 / threads < 32 ? 2048 / threads : 32;
    return gpu_end(CUDA_SUCCESS);
}

/* ---- launches ---- */

static void run_block(struct launch *launch, struct gpu_host_thread *thread)
{
    unsigned *t = thread->thread;

    for (t[2] = 0; t[2] < launch->block[2]; t[2]++) {
        for (t[1] = 0; t[1] < launch->block[1]; t[1]++) {
            for (t[0] = 0; t[0] < launch->block[0]; t[0]++) {
                launch->kernel->run(launch->kernel, thread, launch->params);
            }
        }
    }
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (0 != b) {
        uint64_t c = a % b;

        a = b;
        b = c;
    }
    return a;
}

/* In an order of its own: nothing says which block comes first. */
static void run_blocks(struct launch *launch)
{
    uint64_t count = (uint64_t) launch->grid[0] * launch->grid[1] * launch->grid[2];
    uint64_t at_block = gpu_random(count);
    uint64_t step = 1 + gpu_random(count);
    struct gpu_host_thread thread;
    uint64_t i;

    while (1 != common_divisor(step, count)) {
        step++;
    }
    memcpy(thread.threads, launch->block, sizeof(thread.threads));
    memcpy(thread.blocks, launch->grid, sizeof(thread.blocks));
    for (i = 0; i < count; i++) {
        thread.block[0] = (unsigned) (at_block % launch->grid[0]);
        thread.block[1] = (unsigned) (at_block / launch->grid[0] % launch->grid[1]);
        thread.block[2] = (unsigned) (at_block / launch->grid[0] / launch->grid[1]);
        run_block(launch, &thread);
        at_block = (at_block + step) % count;
    }
}

static CUresult run(struct gpu_work *work, CUcontext ctx)
{
    struct launch *launch = (struct launch *) work;
    CUresult rc;

    (void) ctx;
    pthread_mutex_lock(&gpu_lock);
    gpu_count.launches++;
    rc = gpu_count_call(GPU_FN_kernel);
    pthread_mutex_unlock(&gpu_lock);
    if (CUDA_SUCCESS != rc) {
        return rc;
    }
    running.ctx = launch->ctx;
    running.error = CUDA_SUCCESS;
    memset(running.touched, 0, sizeof(running.touched));
    if (0 == setjmp(running.out)) {
        run_blocks(launch);
    }
    return running.error;
}

/* The parameters as they are at the call. */
static CUresult take_params(struct launch *launch, void **params, void **extra)
{
    const struct gpu_host_kernel *kernel = launch->kernel;
    void *buffer = NULL;
    size_t used = 0;
    unsigned i;

    if (NULL != extra && NULL != params) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (NULL != extra) {
        size_t size = 0;

        for (; CU_LAUNCH_PARAM_END != *extra; extra += 2) {
            if (CU_LAUNCH_PARAM_BUFFER_POINTER == extra[0]) {
                buffer = extra[1];
            } else if (CU_LAUNCH_PARAM_BUFFER_SIZE == extra[0]) {
                size = *(size_t *) extra[1];
            } else {
                return CUDA_ERROR_INVALID_VALUE;
            }
        }
        /* How several are laid out in there is not known here. */
        if (1 != kernel->params) {
            return CUDA_ERROR_NOT_SUPPORTED;
        }
        if (NULL == buffer || size != kernel->sizes[0]) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        params = &buffer;
    }
    for (i = 0; i < kernel->params; i++) {
        used = (used + 15) & ~(size_t) 15;
        if (NULL == params || NULL == params[i]
            || kernel->sizes[i] > sizeof(launch->bytes) - used) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        launch->params[i] = launch->bytes + used;
        memcpy(launch->params[i], params[i], kernel->sizes[i]);
        used += kernel->sizes[i];
    }
    return CUDA_SUCCESS;
}

CUresult gpu_launch_new(const CUDA_KERNEL_NODE_PARAMS *p, struct gpu_work **work)
{
    struct launch *launch;
    CUresult rc;

    if (!is_function(p->func)) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (0 == p->gridDimX || 0 == p->gridDimY || 0 == p->gridDimZ || 0 == p->blockDimX
        || 0 == p->blockDimY || 0 == p->blockDimZ || 0x7fffffffu < p->gridDimX
        || 65535 < p->gridDimY || 65535 < p->gridDimZ || 1024 < p->blockDimX || 1024 < p->blockDimY
        || 64 < p->blockDimZ || 49152 < p->sharedMemBytes
        || 1024 < (uint64_t) p->blockDimX * p->blockDimY * p->blockDimZ) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    launch = gpu_work_new(sizeof(*launch), CU_GRAPH_NODE_TYPE_KERNEL, run, NULL);
    if (NULL == launch) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    launch->function = p->func;
    launch->ctx = p->func->module->ctx;
    launch->kernel = p->func->kernel;
    launch->grid[0] = p->gridDimX;
    launch->grid[1] = p->gridDimY;
    launch->grid[2] = p->gridDimZ;
    launch->block[0] = p->blockDimX;
    launch->block[1] = p->blockDimY;
    launch->block[2] = p->blockDimZ;
    rc = take_params(launch, p->kernelParams, p->extra);
    if (CUDA_SUCCESS != rc) {
        gpu_work_drop(&launch->head);
        return rc;
    }
    *work = &launch->head;
    return CUDA_SUCCESS;
}

GPU_EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z, unsigned int shared, CUstream handle,
                                   void **params, void **extra)
{
    CUDA_KERNEL_NODE_PARAMS p = {.func = function,
                                 .gridDimX = grid_x,
                                 .gridDimY = grid_y,
                                 .gridDimZ = grid_z,
                                 .blockDimX = block_x,
                                 .blockDimY = block_y,
                                 .blockDimZ = block_z,
                                 .sharedMemBytes = shared,
                                 .kernelParams = params,
                                 .extra = extra};
    struct gpu_work *work;
    CUstream stream;
    CUcontext ctx;
    CUresult rc;

    GPU_BEGIN_CTX(cuLaunchKernel, &ctx);
    rc = gpu_stream_get(ctx, handle, &stream);
    if (CUDA_SUCCESS == rc) {
        rc = gpu_launch_new(&p, &work);
    }
    if (CUDA_SUCCESS == rc && function->module->ctx != stream->ctx) {
        gpu_work_drop(work);
        rc = CUDA_ERROR_INVALID_HANDLE;
    }
    return gpu_end(CUDA_SUCCESS == rc ? gpu_submit(stream, work, false) : rc);
}
