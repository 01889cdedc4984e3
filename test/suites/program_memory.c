/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* A heap in the memory of a GPU, for programs of other projects that compute on the CPU. The
 * software CUDA driver lets the CPU access such memory (touch=1), so a program runs unmodified
 * while MPI gets buffers in GPU memory. program_memory.py gives the heap to numpy and to PETSc. */

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Empty blocks are in system memory. */
#define SMALL 1
/* Before each block: its size, and where it is. The alignment of a block is that of its head. */
#define HEAD 256

typedef struct {
    size_t size;
    uint64_t on_gpu;
} head_t;

static int (*mem_alloc)(uint64_t *, size_t);
static int (*mem_free)(uint64_t);
unsigned long program_memory_blocks;

static head_t *head(void *block)
{
    return (head_t *) ((char *) block - HEAD);
}

/* Begins CUDA on one of the devices, in its primary context. Returns an error of the driver, or -1.
 */
int program_memory_begin(int turn)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    int (*init)(unsigned), (*count)(int *), (*get)(int *, int), (*retain)(void **, int),
        (*set)(void *);
    const struct {
        const char *name;
        void *slot;
    } functions[] = {{"cuInit", &init},          {"cuDeviceGetCount", &count},
                     {"cuDeviceGet", &get},      {"cuDevicePrimaryCtxRetain", &retain},
                     {"cuCtxSetCurrent", &set},  {"cuMemAlloc_v2", &mem_alloc},
                     {"cuMemFree_v2", &mem_free}};
    int rc, n = 0, device;
    void *context;
    size_t i;

    for (i = 0; i < sizeof(functions) / sizeof(functions[0]); ++i) {
        void *function = NULL == library ? NULL : dlsym(library, functions[i].name);

        if (NULL == function) {
            return -1;
        }
        memcpy(functions[i].slot, &function, sizeof(function));
    }
    if (0 != (rc = init(0)) || 0 != (rc = count(&n)) || 0 == n || 0 != (rc = get(&device, turn % n))
        || 0 != (rc = retain(&context, device)) || 0 != (rc = set(context))) {
        return 0 == rc ? -1 : rc;
    }
    return 0;
}

static void *take(size_t size)
{
    uint64_t address = 0;
    head_t *block;
    bool on_gpu = SMALL <= size;

    if (on_gpu) {
        if (0 != mem_alloc(&address, size + HEAD)) {
            fprintf(stderr, "program_memory: the driver has no %zu bytes\n", size);
            return NULL;
        }
        block = (head_t *) (uintptr_t) address;
        ++program_memory_blocks;
    } else if (0 != posix_memalign((void **) &block, HEAD, size + HEAD)) {
        return NULL;
    }
    block->size = size;
    block->on_gpu = on_gpu;
    return (char *) block + HEAD;
}

static void give(void *block)
{
    if (NULL == block) {
        return;
    }
    if (head(block)->on_gpu) {
        (void) mem_free((uint64_t) (uintptr_t) head(block));
    } else {
        free(head(block));
    }
}

static void *change(void *block, size_t size)
{
    void *other = take(size);

    if (NULL != other && NULL != block) {
        memcpy(other, block, head(block)->size < size ? head(block)->size : size);
        give(block);
    }
    return other;
}

/* --- numpy: the structure of its NEP 49 ------------------------------------------------------- */

static void *numpy_malloc(void *ctx, size_t size)
{
    (void) ctx;
    return take(size);
}

static void *numpy_calloc(void *ctx, size_t count, size_t size)
{
    void *block = take(count * size);

    (void) ctx;
    if (NULL != block) {
        memset(block, 0, count * size);
    }
    return block;
}

static void *numpy_realloc(void *ctx, void *block, size_t size)
{
    (void) ctx;
    return change(block, size);
}

static void numpy_free(void *ctx, void *block, size_t size)
{
    (void) ctx;
    (void) size;
    give(block);
}

struct {
    char name[127];
    uint8_t version;
    void *ctx;
    void *(*malloc)(void *, size_t);
    void *(*calloc)(void *, size_t, size_t);
    void *(*realloc)(void *, void *, size_t);
    void (*free)(void *, void *, size_t);
} program_memory_numpy = {"program_memory", 1,         NULL, numpy_malloc, numpy_calloc,
                          numpy_realloc,    numpy_free};

/* --- PETSc: the arguments of PetscMallocSet ----------------------------------------------------
 */

int program_memory_petsc_malloc(size_t size, int clear, int line, const char *function,
                                const char *file, void **block)
{
    (void) line;
    (void) function;
    (void) file;
    *block = 0 == size ? NULL : take(size);
    if (NULL != *block && 0 != clear) {
        memset(*block, 0, size);
    }
    return 0 == size || NULL != *block ? 0 : 55; /* PETSC_ERR_MEM */
}

int program_memory_petsc_free(void *block, int line, const char *function, const char *file)
{
    (void) line;
    (void) function;
    (void) file;
    give(block);
    return 0;
}

int program_memory_petsc_realloc(size_t size, int line, const char *function, const char *file,
                                 void **block)
{
    (void) line;
    (void) function;
    (void) file;
    *block = change(*block, size);
    return NULL == *block ? 55 : 0;
}
