/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "umrddt_gpu_fatbin.h"

#if defined(UMRDDT_GPU_FATBIN)

/* The driver requires 8-byte alignment of a fat binary; a cache line satisfies it. PTX ends with a
 * zero. */
#define FATBIN(NAME, FILE)                                                           \
    __asm__(".pushsection .rodata\n"                                                 \
            ".balign 64\n"                                                           \
            ".local " #NAME "_begin\n" #NAME "_begin:\n"                             \
            ".incbin \"" FILE "\"\n"                                                 \
            ".local " #NAME "_end\n" #NAME "_end:\n"                                 \
            ".byte 0\n"                                                              \
            ".popsection\n");                                                        \
    extern const unsigned char NAME##_begin[] __attribute__((visibility("hidden"))); \
    extern const unsigned char NAME##_end[] __attribute__((visibility("hidden")));   \
                                                                                     \
    const void *opal_##NAME(size_t *bytes)                                           \
    {                                                                                \
        *bytes = (size_t) (NAME##_end - NAME##_begin);                               \
        return NAME##_begin;                                                         \
    }

FATBIN(umrddt_gpu_fatbin, UMRDDT_GPU_FATBIN)
FATBIN(umrddt_gpu_reduce_fatbin, UMRDDT_GPU_REDUCE_FATBIN)

#else

const void *opal_umrddt_gpu_fatbin(size_t *bytes)
{
    *bytes = 0;
    return NULL;
}

const void *opal_umrddt_gpu_reduce_fatbin(size_t *bytes)
{
    return opal_umrddt_gpu_fatbin(bytes);
}

#endif /* UMRDDT_GPU_FATBIN */
