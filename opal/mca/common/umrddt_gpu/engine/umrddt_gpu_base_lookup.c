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
 * Memory lookups of a CUDA-aware Open MPI. Read umrddt_gpu_base_lookup.h first.
 */

#include "opal_config.h"

#include <dlfcn.h>

#include "umrddt_compat.h"

#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_base_lookup.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_memory.h"

static uint64_t lookups;

uint64_t opal_umrddt_gpu_base_lookups(void)
{
    return __atomic_load_n(&lookups, __ATOMIC_RELAXED);
}

#if UMRDDT_OPAL_RELEASE >= 500 && UMRDDT_HAS_ACCELERATOR_H

#include "opal/mca/accelerator/accelerator.h"
#include "opal/mca/threads/thread_usage.h"

/** The framework's functions; NULL: unchanged. */
static opal_accelerator_base_module_t *module;
static opal_accelerator_base_module_check_addr_fn_t framework_check;

/** Any thread. As opal_accelerator.check_addr. */
static int check_addr(const void *addr, int *dev_id, uint64_t *flags)
{
    if (OPAL_LIKELY(NULL != addr && opal_umrddt_gpu_surely_system(addr, 1, &opal_datatype_uint1))) {
        if (opal_using_threads()) {
            (void) __atomic_fetch_add(&lookups, 1, __ATOMIC_RELAXED);
        } else {
            ++lookups;
        }
        *dev_id = MCA_ACCELERATOR_NO_DEVICE_ID;
        *flags = 0;
        return 0;
    }
    return framework_check(addr, dev_id, flags);
}

void opal_umrddt_gpu_base_lookup_open(void)
{
    opal_accelerator_base_module_t *found =
        (opal_accelerator_base_module_t *) dlsym(RTLD_DEFAULT, "opal_accelerator");

    if (NULL == module && NULL != found && NULL != found->check_addr && umrddt_knows_cuda()) {
        framework_check = found->check_addr;
        module = found;
        module->check_addr = check_addr;
    }
}

void opal_umrddt_gpu_base_lookup_close(void)
{
    if (NULL != module && check_addr == module->check_addr) {
        module->check_addr = framework_check;
    }
    module = NULL;
}

#else

void opal_umrddt_gpu_base_lookup_open(void)
{
}

void opal_umrddt_gpu_base_lookup_close(void)
{
}

#endif
