/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "umrddt_gpu_host.h"

#include "umrddt_gpu_parts.h"

static void *host_at(uint64_t address, uint32_t width, int write)
{
    (void) width;
    (void) write;
    return (void *) (uintptr_t) address;
}

static const void *host_list(uint64_t address)
{
    return (const void *) (uintptr_t) address;
}

umrddt_gpu_host_memory_t umrddt_gpu_host_memory = {host_at, host_list};

#define KERNEL(SHAPE, SOURCE, TARGET, BITS)                                                   \
    static void run_##SHAPE##_##SOURCE##_##TARGET##_##BITS(const umrddt_gpu_thread_t *thread, \
                                                           const void *argument)              \
    {                                                                                         \
        const umrddt_gpu_args_t *args = argument;                                             \
                                                                                              \
        umrddt_gpu_run(thread, args, UMRDDT_GPU_LIST(args->side[0].list),                     \
                       UMRDDT_GPU_LIST(args->side[1].list), UMRDDT_GPU_##SHAPE,               \
                       UMRDDT_GPU_##SOURCE, UMRDDT_GPU_##TARGET, BITS);                       \
    }

#define KERNEL_INLINE(SHAPE, SOURCE, TARGET, BITS)                                      \
    static void run_##SHAPE##_##SOURCE##_##TARGET##_##BITS##_INLINE(                    \
        const umrddt_gpu_thread_t *thread, const void *argument)                        \
    {                                                                                   \
        const umrddt_gpu_args_inline_t *args = argument;                                \
                                                                                        \
        umrddt_gpu_run(thread, &args->args, args->data, args->data, UMRDDT_GPU_##SHAPE, \
                       UMRDDT_GPU_##SOURCE, UMRDDT_GPU_##TARGET, BITS);                 \
    }

UMRDDT_GPU_KERNELS(KERNEL)
UMRDDT_GPU_KERNELS_INLINE(KERNEL_INLINE)

#define BATCH(NAME, ANY)                                                            \
    static void run_##NAME(const umrddt_gpu_thread_t *thread, const void *argument) \
    {                                                                               \
        umrddt_gpu_thread_t mine = *thread;                                         \
                                                                                    \
        umrddt_gpu_batch(&mine, argument, ANY);                                     \
    }
BATCH(BATCH_REGULAR, 0)
BATCH(BATCH_ANY, 1)

#define ENTRY(SHAPE, SOURCE, TARGET, BITS)                                              \
    {"umrddt_gpu_" #SHAPE "_" #SOURCE "_" #TARGET "_" #BITS, sizeof(umrddt_gpu_args_t), \
     run_##SHAPE##_##SOURCE##_##TARGET##_##BITS},
#define ENTRY_INLINE(SHAPE, SOURCE, TARGET, BITS)                      \
    {"umrddt_gpu_" #SHAPE "_" #SOURCE "_" #TARGET "_" #BITS "_INLINE", \
     sizeof(umrddt_gpu_args_inline_t), run_##SHAPE##_##SOURCE##_##TARGET##_##BITS##_INLINE},

const umrddt_gpu_host_kernel_t umrddt_gpu_host_kernels[UMRDDT_GPU_KERNEL_COUNT] = {
    UMRDDT_GPU_KERNELS(ENTRY) UMRDDT_GPU_KERNELS_INLINE(ENTRY_INLINE){
        "umrddt_gpu_BATCH_REGULAR", sizeof(umrddt_gpu_batch_t), run_BATCH_REGULAR},
    {"umrddt_gpu_BATCH_ANY", sizeof(umrddt_gpu_batch_t), run_BATCH_ANY}};

const umrddt_gpu_host_kernel_t *umrddt_gpu_host_kernel(const char *name)
{
    int i;

    for (i = 0; i < UMRDDT_GPU_KERNEL_COUNT; ++i) {
        if (0 == strcmp(umrddt_gpu_host_kernels[i].name, name)) {
            return &umrddt_gpu_host_kernels[i];
        }
    }
    return NULL;
}

/* All threads of one block. */
static void run_block(const umrddt_gpu_host_kernel_t *kernel, umrddt_gpu_thread_t *thread,
                      const void *args)
{
    for (thread->tid_z = 0; thread->tid_z < thread->dim_z; ++thread->tid_z) {
        for (thread->tid_y = 0; thread->tid_y < thread->dim_y; ++thread->tid_y) {
            for (thread->tid_x = 0; thread->tid_x < thread->dim_x; ++thread->tid_x) {
                kernel->thread(thread, args);
            }
        }
    }
}

void umrddt_gpu_host_launch(const umrddt_gpu_host_kernel_t *kernel, const uint32_t grid[3],
                            const uint32_t block[3], const void *args, umrddt_gpu_counts_t *counts)
{
    umrddt_gpu_counts_t unwanted = {{0}, 0};
    umrddt_gpu_thread_t thread = {.dim_x = block[0],
                                  .dim_y = block[1],
                                  .dim_z = block[2],
                                  .all_x = grid[0],
                                  .all_y = grid[1],
                                  .all_z = grid[2],
                                  .counts = NULL == counts ? &unwanted : counts};

    for (thread.bid_z = 0; thread.bid_z < grid[2]; ++thread.bid_z) {
        for (thread.bid_y = 0; thread.bid_y < grid[1]; ++thread.bid_y) {
            for (thread.bid_x = 0; thread.bid_x < grid[0]; ++thread.bid_x) {
                run_block(kernel, &thread, args);
            }
        }
    }
}
