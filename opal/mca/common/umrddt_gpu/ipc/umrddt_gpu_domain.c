/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "opal_config.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "opal/mca/common/umrddt_gpu/ipc/umrddt_gpu_ipc.h"

/** FNV-1a: the same bytes give the same number in every process. */
static uint64_t hash(uint64_t sum, const void *bytes, size_t length)
{
    for (size_t i = 0; i < length; ++i) {
        sum = (sum ^ ((const unsigned char *) bytes)[i]) * UINT64_C(0x100000001b3);
    }
    return sum;
}

uint64_t opal_umrddt_gpu_ipc_domain(void)
{
    static const char *const spaces[] = {"/proc/self/ns/pid", "/proc/self/ns/ipc"};
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    char boot[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    bool read = NULL != file && NULL != fgets(boot, sizeof(boot), file);

    if (NULL != file) {
        fclose(file);
    }
    if (!read) {
        return 0;
    }
    sum = hash(sum, boot, strlen(boot));
    for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); ++i) {
        struct stat space;

        if (0 != stat(spaces[i], &space)) {
            return 0;
        }
        sum = hash(sum, &space.st_dev, sizeof(space.st_dev));
        sum = hash(sum, &space.st_ino, sizeof(space.st_ino));
    }
    return 0 == sum ? 1 : sum;
}
