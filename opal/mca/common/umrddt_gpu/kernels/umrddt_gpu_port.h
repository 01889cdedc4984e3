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
 * Portability of the kernels: compiled by nvcc for the device, and by the host's C compiler as
 * ordinary functions. Defines thread indices, and loads and stores of each width. On the host a
 * thread is a call, threads run one by one, and accesses are counted.
 *
 * No kernel synchronizes or communicates between threads, so their order does not matter.
 */

#ifndef UMRDDT_GPU_PORT_H
#define UMRDDT_GPU_PORT_H

#include <stdint.h>

#include "umrddt_gpu_args.h"

/** Counters of a launch on the host; index k is accesses of 2^k bytes, a load and a store each. */
typedef struct umrddt_gpu_counts_t {
    uint64_t accesses[5];
    uint64_t misaligned; /**< loads and stores that a device would refuse */
} umrddt_gpu_counts_t;

/** Index of a thread. */
typedef struct umrddt_gpu_thread_t {
    uint32_t tid_x, tid_y, tid_z; /**< in its block */
    uint32_t bid_x, bid_y, bid_z; /**< its block in the grid */
    uint32_t dim_x, dim_y, dim_z; /**< of a block */
    uint32_t all_x, all_y, all_z; /**< of the grid, in blocks */
    umrddt_gpu_counts_t *counts;  /**< NULL on the device */
} umrddt_gpu_thread_t;

/** Up to 16 bytes in transit. */
typedef struct umrddt_gpu_word_t {
    uint64_t low, high;
} umrddt_gpu_word_t;

#if defined(__CUDACC__)

#define UMRDDT_GPU_FN     static __device__ __forceinline__
#define UMRDDT_GPU_UNROLL _Pragma("unroll")

/* A side's list. */
#define UMRDDT_GPU_LIST(address) ((const void *) (address))

/* CALL(width), with a constant for the widths that matter. */
#define UMRDDT_GPU_BY_WIDTH(WIDTH, CALL) \
    do {                                 \
        switch (WIDTH) {                 \
        case 16:                         \
            CALL(16);                    \
            break;                       \
        case 8:                          \
            CALL(8);                     \
            break;                       \
        case 4:                          \
            CALL(4);                     \
            break;                       \
        default:                         \
            CALL(WIDTH);                 \
            break;                       \
        }                                \
    } while (0)

UMRDDT_GPU_FN uint32_t umrddt_gpu_mulhi(uint32_t a, uint32_t b)
{
    return __umulhi(a, b);
}

/*
 * Loads and stores are written explicitly for two reasons. The data is never in shared or local
 * memory, which the compiler cannot infer from an integer address. And volatile accesses keep their
 * order, loads of a batch first.
 */
UMRDDT_GPU_FN umrddt_gpu_word_t umrddt_gpu_load(const umrddt_gpu_thread_t *thread, uint64_t from,
                                                uint32_t width)
{
    umrddt_gpu_word_t word = {0, 0};
    uint32_t part = 0;
    uint16_t half = 0;

    (void) thread;
    switch (width) {
    case 16:
        asm volatile("ld.global.v2.u64 {%0, %1}, [%2];"
                     : "=l"(word.low), "=l"(word.high)
                     : "l"(from));
        return word;
    case 8:
        asm volatile("ld.global.u64 %0, [%1];" : "=l"(word.low) : "l"(from));
        return word;
    case 4:
        asm volatile("ld.global.u32 %0, [%1];" : "=r"(part) : "l"(from));
        break;
    case 2:
        asm volatile("ld.global.u16 %0, [%1];" : "=h"(half) : "l"(from));
        part = half;
        break;
    default:
        asm volatile("ld.global.u8 %0, [%1];" : "=r"(part) : "l"(from));
        break;
    }
    word.low = part;
    return word;
}

UMRDDT_GPU_FN void umrddt_gpu_store(const umrddt_gpu_thread_t *thread, uint64_t to, uint32_t width,
                                    umrddt_gpu_word_t word)
{
    (void) thread;
    switch (width) {
    case 16:
        asm volatile("st.global.v2.u64 [%0], {%1, %2};"
                     :
                     : "l"(to), "l"(word.low), "l"(word.high)
                     : "memory");
        break;
    case 8:
        asm volatile("st.global.u64 [%0], %1;" : : "l"(to), "l"(word.low) : "memory");
        break;
    case 4:
        asm volatile("st.global.u32 [%0], %1;" : : "l"(to), "r"((uint32_t) word.low) : "memory");
        break;
    case 2:
        asm volatile("st.global.u16 [%0], %1;" : : "l"(to), "h"((uint16_t) word.low) : "memory");
        break;
    default:
        asm volatile("st.global.u8 [%0], %1;" : : "l"(to), "r"((uint32_t) word.low) : "memory");
        break;
    }
}

#else /* the host */

#include <string.h>

/** How the kernels reach device memory: a list or an access of that many bytes at an address. */
typedef struct umrddt_gpu_host_memory_t {
    void *(*at)(uint64_t address, uint32_t width, int write);
    const void *(*list)(uint64_t address);
} umrddt_gpu_host_memory_t;

/** By default the addresses are the host's. The software driver replaces both functions. */
extern umrddt_gpu_host_memory_t umrddt_gpu_host_memory;

#define UMRDDT_GPU_LIST(address) umrddt_gpu_host_memory.list(address)

/* Not forced inline, which would take ten times as long to compile. */
#define UMRDDT_GPU_FN            static inline __attribute__((unused))
#define UMRDDT_GPU_UNROLL
#define UMRDDT_GPU_BY_WIDTH(WIDTH, CALL) CALL(WIDTH)

UMRDDT_GPU_FN uint32_t umrddt_gpu_mulhi(uint32_t a, uint32_t b)
{
    return (uint32_t) ((uint64_t) a * b >> 32);
}

/* Calls, as the kernels have hundreds of accesses. */
static __attribute__((noinline, unused)) umrddt_gpu_word_t
umrddt_gpu_load(const umrddt_gpu_thread_t *thread, uint64_t from, uint32_t width)
{
    umrddt_gpu_word_t word = {0, 0};

    if (0 != (from & (width - 1))) {
        ++thread->counts->misaligned;
    }
    memcpy(&word, umrddt_gpu_host_memory.at(from, width, 0), width);
    return word;
}

static __attribute__((noinline, unused)) void umrddt_gpu_store(const umrddt_gpu_thread_t *thread,
                                                               uint64_t to, uint32_t width,
                                                               umrddt_gpu_word_t word)
{
    if (0 != (to & (width - 1))) {
        ++thread->counts->misaligned;
    }
    ++thread->counts->accesses[__builtin_ctz(width)];
    memcpy(umrddt_gpu_host_memory.at(to, width, 1), &word, width);
}

#endif /* __CUDACC__ */

#endif /* UMRDDT_GPU_PORT_H */
