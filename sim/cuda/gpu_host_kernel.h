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
 * Kernels for the software devices: the exports of a shared object with kernels compiled for
 * the host. Such an object needs no more of the driver.
 *
 * The object exports one function, gpu_host_module, which is called once, when a module of GPU code
 * is first loaded, with the driver's services; it answers with its kernels. The driver finds them
 * by name, for any module that the application loads. PTX says which of the names exist
 * (gpu_ptx.h). An object may also be loaded by itself, by cuModuleLoad.
 *
 * A kernel is called once for each thread of a launch. Threads run one after the other, blocks in
 * an order that changes with the seed; none may wait for another (there is no __syncthreads).
 *
 * A kernel must not dereference addresses of devices: at() returns the address for the CPU.
 * at() checks that the context may touch it and that the access is aligned; if not, the launch ends
 * there, and the context has CUDA_ERROR_ILLEGAL_ADDRESS or CUDA_ERROR_MISALIGNED_ADDRESS from then
 * on, as on a device.
 */

#ifndef GPU_HOST_KERNEL_H
#define GPU_HOST_KERNEL_H

#include <stddef.h>
#include <stdint.h>

/** Changes with this file. */
#define GPU_HOST_ABI 1

/** Where a thread is; index 0 is x. */
struct gpu_host_thread {
    unsigned thread[3];  /**< threadIdx */
    unsigned block[3];   /**< blockIdx */
    unsigned threads[3]; /**< blockDim */
    unsigned blocks[3];  /**< gridDim */
};

/** The driver's services. */
struct gpu_host_services {
    int abi;
    /**
     * The CPU's address of the memory at @p address of the device. Does not return if there is
     * none that may be read (or written).
     *
     * @param[in] size   bytes; a power of two that divides the address, or any number with
     *                   @p bulk, for memory that is read as a whole
     * @param[in] write  0 or 1
     * @param[in] bulk   0 or 1: no alignment is required
     */
    void *(*at)(uint64_t address, size_t size, int write, int bulk);
    /** As many bytes as may be read from @p address on to the end of the allocation; 0 if none. */
    size_t (*rest)(uint64_t address);
};

/** A kernel. */
struct gpu_host_kernel {
    const char *name;
    unsigned params;     /**< at most 32 */
    const size_t *sizes; /**< of each parameter */
    void (*run)(const struct gpu_host_kernel *kernel, const struct gpu_host_thread *thread,
                void **params);
    const void *data; /**< the object's own */
};

/** The answer of the object. Valid as long as the process. */
struct gpu_host_kernels {
    int abi;
    size_t count;
    const struct gpu_host_kernel *kernels;
};

/** Exported by the object under this name. */
const struct gpu_host_kernels *gpu_host_module(const struct gpu_host_services *services);

typedef const struct gpu_host_kernels *(*gpu_host_module_fn_t)(
    const struct gpu_host_services *services);

#endif /* GPU_HOST_KERNEL_H */
