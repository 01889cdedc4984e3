/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* A heap in the memory of a GPU, for programs of other projects that compute on the CPU. The
 * software CUDA driver lets the CPU access such memory (touch=1), so a program runs unmodified
 * while MPI gets buffers in GPU memory. program_memory.py gives the heap to numpy, to PETSc and to
 * PyTorch. For PyTorch this library must be preloaded. A program that is linked with it and with
 * --wrap=malloc has the blocks of its own calls of malloc there. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Empty blocks are in system memory. */
#define SMALL 1
/* Before each block: its size, and where it is. The alignment of a block is that of its head. */
#define HEAD 256
#define MARK UINT64_C(0x756d726464742021)

typedef struct {
    size_t size;
    uint64_t on_gpu;
    uint64_t mark; /* of blocks in GPU memory: MARK */
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
    block->mark = on_gpu ? MARK : 0;
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

/* --- PyTorch: the functions of the C library that its library libc10 calls ----------------------
 */

extern void __libc_free(void *block);
extern void *__libc_memalign(size_t alignment, size_t size);

/* The addresses of libc10 and, so far, of blocks that free() may get. */
static uintptr_t code_begin, code_end, blocks_begin = UINTPTR_MAX, blocks_end;

/* Programs allocate in one thread here. */
static void *take_for_free(size_t size)
{
    void *block = take(size);
    const uintptr_t at = (uintptr_t) block;

    if (NULL != block) {
        blocks_begin = at < blocks_begin ? at : blocks_begin;
        blocks_end = blocks_end <= at ? at + 1 : blocks_end;
    }
    return block;
}

static int find_code(struct dl_phdr_info *info, size_t size, void *unused)
{
    const char *name = strrchr(info->dlpi_name, '/');
    int i;

    (void) size;
    (void) unused;
    if (NULL == name || 0 != strncmp(name, "/libc10.so", sizeof("/libc10.so") - 1)) {
        return 0;
    }
    for (i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr) *header = info->dlpi_phdr + i;

        if (PT_LOAD == header->p_type && 0 != (header->p_flags & PF_X)) {
            code_begin = info->dlpi_addr + header->p_vaddr;
            code_end = code_begin + header->p_memsz;
        }
    }
    return 1;
}

/* Begins after program_memory_begin. Returns -1 if libc10 is not loaded, or if this library was not
 * preloaded. */
int program_memory_torch(void)
{
    return dlsym(RTLD_DEFAULT, "posix_memalign") == (void *) &posix_memalign
                   && 1 == dl_iterate_phdr(find_code, NULL) && 0 != code_end
               ? 0
               : -1;
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
    const uintptr_t caller = (uintptr_t) __builtin_return_address(0);

    *block = NULL;
    if (code_begin <= caller && caller < code_end && SMALL <= size && alignment <= HEAD) {
        *block = take_for_free(size);
    }
    if (NULL == *block) {
        *block = __libc_memalign(alignment, size);
    }
    return NULL == *block && 0 < size ? ENOMEM : 0;
}

void free(void *block)
{
    const uintptr_t at = (uintptr_t) block;

    if (blocks_begin <= at && at < blocks_end && 0 == at % HEAD && MARK == head(block)->mark
        && 0 != head(block)->on_gpu) {
        give(block);
    } else {
        __libc_free(block);
    }
}

/* --- programs that are linked with --wrap=malloc ---------------------------------------------- */

/* Begins CUDA at the first call. Empty blocks are in system memory. */
void *__wrap_malloc(size_t size)
{
    static bool begun;
    const char *rank = getenv("OMPI_COMM_WORLD_LOCAL_RANK");

    if (NULL == getenv("UMRDDT_TEST_PROGRAM_MEMORY") || SMALL > size) {
        return malloc(size);
    }
    if (!begun && 0 != program_memory_begin(NULL == rank ? 0 : atoi(rank))) {
        fprintf(stderr, "program_memory: the CUDA driver cannot be used\n");
        abort();
    }
    begun = true;
    return take_for_free(size);
}
