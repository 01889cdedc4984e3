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
 * Detection of UCX's support of GPU memory: see umrddt_gpu_driver.h.
 */

#include "opal_config.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "umrddt_gpu_driver.h"

/** True if a comma-separated list has a word. */
static bool has_word(const char *list, const char *word)
{
    const size_t length = strlen(word);

    for (const char *at = list; '\0' != *at; at += '\0' != *at) {
        const size_t end = strcspn(at, ",");

        if (end == length && 0 == strncmp(at, word, length)) {
            return true;
        }
        at += end;
    }
    return false;
}

bool opal_umrddt_gpu_ucx_tls(const char *tls)
{
    bool excludes, named;

    if (NULL == tls || '\0' == tls[0]) {
        return true;
    }
    excludes = '^' == tls[0];
    tls += excludes;
    named = has_word(tls, "cuda") || has_word(tls, "cuda_copy");
    return excludes ? !named : named || has_word(tls, "all");
}

bool opal_umrddt_gpu_ucx_aware(void)
{
    void *module = dlopen("libuct_cuda.so.0", RTLD_LAZY | RTLD_NOLOAD);

    if (NULL == module) {
        return false;
    }
    (void) dlclose(module);
    return opal_umrddt_gpu_ucx_tls(getenv("UCX_TLS"));
}
