/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "umrddt_gpu_fatbin.h"

#if defined(UMRDDT_GPU_FATBIN)

/* The driver requires 8-byte alignment; a cache line satisfies it. */
__asm__(".pushsection .rodata\n"
        ".balign 64\n"
        ".local umrddt_gpu_fatbin_begin\n"
        "umrddt_gpu_fatbin_begin:\n"
        ".incbin \"" UMRDDT_GPU_FATBIN "\"\n"
        ".local umrddt_gpu_fatbin_end\n"
        "umrddt_gpu_fatbin_end:\n"
        ".byte 0\n"
        ".popsection\n");

extern const unsigned char umrddt_gpu_fatbin_begin[] __attribute__((visibility("hidden")));
extern const unsigned char umrddt_gpu_fatbin_end[] __attribute__((visibility("hidden")));

const void *opal_umrddt_gpu_fatbin(size_t *bytes)
{
    *bytes = (size_t) (umrddt_gpu_fatbin_end - umrddt_gpu_fatbin_begin);
    return umrddt_gpu_fatbin_begin;
}

#else

const void *opal_umrddt_gpu_fatbin(size_t *bytes)
{
    *bytes = 0;
    return NULL;
}

#endif /* UMRDDT_GPU_FATBIN */
