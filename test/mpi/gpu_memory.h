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
 * GPU memory for MPI test programs: every kind that the CUDA driver has, and plain system memory
 * with the same interface.
 *
 * The driver is loaded at run time, so the programs can be built and run (and are skipped) without
 * one. Each rank has one device, round robin, and its primary context, as with the CUDA runtime.
 * Device memory is filled and read back by copies only.
 *
 * Any thread may call these functions, also one with another context or without one: each call sets
 * the right context and restores the previous one.
 */

#ifndef MPITEST_GPU_MEMORY_H
#define MPITEST_GPU_MEMORY_H

#include "umrddt_cuda.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The driver's functions; what this driver does not have is NULL. */
typedef struct gpu_driver_t {
#define GPU_MEMBER(name, base, version, arguments) CUresult(*name) arguments;
    UMRDDT_CUDA_FUNCTIONS(GPU_MEMBER)
#undef GPU_MEMBER
} gpu_driver_t;

/** Filled by gpu_begin. */
extern gpu_driver_t gpu;

/** Kinds of memory. The first three are the CPU's. */
typedef enum gpu_kind_t {
    GPU_HOST,       /**< malloc; needs no driver */
    GPU_PINNED,     /**< cuMemHostAlloc */
    GPU_REGISTERED, /**< cuMemHostRegister */
    GPU_MANAGED,    /**< cuMemAllocManaged */
    GPU_DEVICE,     /**< cuMemAlloc */
    GPU_INNER,      /**< some odd bytes within a larger cuMemAlloc */
    GPU_POOL,       /**< cuMemAllocAsync */
    GPU_VMM,        /**< cuMemCreate twice, mapped side by side, and across the border */
    GPU_KINDS
} gpu_kind_t;

/** Alignment of a reservation of GPU_VMM, bytes. */
#define GPU_GRANULE ((size_t) 2 << 20)

/** A block of memory. */
typedef struct gpu_memory_t {
    gpu_kind_t kind;
    unsigned char *addr; /**< what MPI is given; to be dereferenced only if gpu_kind_is_cpus */
    size_t bytes;
    int device; /**< ordinal; not of GPU_HOST */
    /* The allocation; the helper's own. */
    unsigned char *base;
    size_t room;
    CUmemGenericAllocationHandle handle[2];
} gpu_memory_t;

/** A driver call must succeed; a failed one ends the test with the error's name. */
#define GPU_OK(call)                                          \
    do {                                                      \
        CUresult rc_ = (call);                                \
        if (CUDA_SUCCESS != rc_) {                            \
            gpu_failed(__FILE__, __LINE__, #call, (int) rc_); \
        }                                                     \
    } while (0)
void gpu_failed(const char *file, int line, const char *call, int error) __attribute__((noreturn));

/**
 * Load the driver and select the device of this rank: @p turn modulo the number of devices. The
 * context is retained and made current. May be called again, and before MPI_Init.
 *
 * @return NULL, or the reason why there is no driver or device here
 */
const char *gpu_begin(int turn);

/**
 * Whether CUDA is initialized in this process: by gpu_begin, or by a library before it, as by UCX
 * with CUDA in MPI_Init. Initializes nothing, and loads no driver.
 */
bool gpu_is_initialized(void);

/** As gpu_begin on all ranks of MPI_COMM_WORLD; skips the test if one has no driver. Collective. */
void gpu_begin_all(void);

/** Devices there are, and the one of this rank; 0 and -1 before gpu_begin. */
int gpu_device_count(void);
int gpu_device(void);

/** Sets the device of later calls of gpu_memory. */
void gpu_device_set(int device);

/** The context in which memory of a device is made: the primary one, unless set to another. */
CUcontext gpu_context(int device);
void gpu_context_set(int device, CUcontext ctx);

/**
 * A green context of a device, of some of its multiprocessors. It is not made current.
 *
 * @return what ends it (cuGreenCtxDestroy); NULL: this driver has none, or refuses
 */
CUgreenCtx gpu_green(int device, CUcontext *ctx);

/** Can this device make such memory? (Pools and mapped memory need a new driver.) */
bool gpu_kind_available(gpu_kind_t kind);

/** Memory that the CPU may dereference. */
bool gpu_kind_is_cpus(gpu_kind_t kind);

const char *gpu_kind_name(gpu_kind_t kind);

/** The kind of that name, or GPU_KINDS. */
gpu_kind_t gpu_kind_find(const char *name, size_t length);

/** Make @p bytes bytes (0 as well) of a kind, not filled, on this rank's device. */
gpu_memory_t *gpu_memory(gpu_kind_t kind, size_t bytes);

/** The same on the device @p device. */
gpu_memory_t *gpu_memory_on(int device, gpu_kind_t kind, size_t bytes);

/** GPU_VMM whose reservation begins at @p hint, a multiple of GPU_GRANULE, if the driver can. */
gpu_memory_t *gpu_memory_mapped_at(void *hint, size_t bytes);

void gpu_memory_free(gpu_memory_t *memory);

/** Copy into or out of it; done when they return. @p offset + @p bytes is within the memory. */
void gpu_write(gpu_memory_t *memory, size_t offset, const void *from, size_t bytes);
void gpu_read(const gpu_memory_t *memory, size_t offset, void *to, size_t bytes);

/**
 * The kinds of a list ("device,pool", "all", "gpu": all that are not the CPU's) that this device
 * can make.
 *
 * @param[out] kinds  room for GPU_KINDS
 *
 * @return how many; 0 if a name is not known
 */
int gpu_kinds_of(const char *list, gpu_kind_t *kinds);

#endif /* MPITEST_GPU_MEMORY_H */
