/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "umrddt_gpu_fatbin.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

#define ENTRY "\n.visible .entry "

bool opal_umrddt_gpu_is_ptx(const void *image)
{
    static const uint32_t fatbin = 0xba55ed50;

    return 0 != memcmp(image, &fatbin, sizeof(fatbin));
}

char *opal_umrddt_gpu_ptx_of(const void *image, const char *kernel)
{
    const char *first, *begin, *end;
    char entry[128], *text = NULL;
    size_t head;

    if (!opal_umrddt_gpu_is_ptx(image)
        || sizeof(entry) <= (size_t) snprintf(entry, sizeof(entry), ENTRY "%s(", kernel)) {
        return NULL;
    }
    /* Before the first kernel are the version and the target; no kernel needs another one. */
    first = strstr(image, ENTRY);
    begin = NULL == first ? NULL : strstr(first, entry);
    if (NULL != begin) {
        end = strstr(begin + 1, ENTRY);
        end = NULL == end ? begin + strlen(begin) : end;
        head = (size_t) (first - (const char *) image);
        text = malloc(head + (size_t) (end - begin) + 1);
        if (NULL != text) {
            memcpy(text, image, head);
            memcpy(text + head, begin, (size_t) (end - begin));
            text[head + (size_t) (end - begin)] = '\0';
        }
    }
    return text;
}
