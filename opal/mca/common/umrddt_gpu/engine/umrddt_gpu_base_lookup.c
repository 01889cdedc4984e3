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

#include "opal/constants.h"

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

/** The framework's module, NULL: unchanged; and a copy of it as it was. */
static opal_accelerator_base_module_t *module;
static opal_accelerator_base_module_t framework;

static const opal_umrddt_gpu_driver_t *driver;

/** Answer for system memory here. */
static bool answers;

/** The framework has seen GPU memory: its stream exists. */
static bool has_stream;

static bool is_system(const void *addr)
{
    if (!answers || NULL == addr) {
        return false;
    }
    return OPAL_LIKELY(opal_umrddt_gpu_surely_system(addr, 1, &opal_datatype_uint1))
           || (opal_umrddt_gpu_in_use() && opal_umrddt_gpu_is_system((uintptr_t) addr));
}

/** Make the primary context of the current context's device current, if both exist and differ.
 * Returns true if opal_umrddt_gpu_driver_t.cuCtxPopCurrent_v2 must follow. */
static bool push_primary(void)
{
    CUcontext now = NULL, primary = NULL;
    unsigned flags;
    CUdevice device;
    int active = 0;
    bool pushed;

    if (CUDA_SUCCESS != driver->cuCtxGetCurrent(&now) || NULL == now
        || CUDA_SUCCESS != driver->cuCtxGetDevice(&device)
        || CUDA_SUCCESS != driver->cuDevicePrimaryCtxGetState(device, &flags, &active)
        || 0 == active || CUDA_SUCCESS != driver->cuDevicePrimaryCtxRetain(&primary, device)) {
        return false;
    }
    pushed = primary != now && CUDA_SUCCESS == driver->cuCtxPushCurrent_v2(primary);
    (void) driver->cuDevicePrimaryCtxRelease_v2(device);
    return pushed;
}

/** Let the framework look up an address. A stream capture of the application stays valid. */
static int ask_framework(const void *addr, int *dev_id, uint64_t *flags)
{
    CUstreamCaptureMode mode;
    CUcontext now;
    bool pushed;
    int rc;

    opal_umrddt_gpu_relax(driver, &mode);
    /* Open MPI creates the stream of all its copies at the first GPU memory, in the current
     * context. If that is the application's own and it destroys it, later copies crash. */
    pushed = OPAL_UNLIKELY(!__atomic_load_n(&has_stream, __ATOMIC_RELAXED)) && push_primary();
    rc = framework.check_addr(addr, dev_id, flags);
    if (pushed) {
        (void) driver->cuCtxPopCurrent_v2(&now);
    }
    if (0 < rc) {
        __atomic_store_n(&has_stream, true, __ATOMIC_RELAXED);
    }
    opal_umrddt_gpu_restore(driver, &mode);
    return rc;
}

/** Any thread. As opal_accelerator.check_addr. */
static int check_addr(const void *addr, int *dev_id, uint64_t *flags)
{
    if (OPAL_LIKELY(is_system(addr))) {
        if (opal_using_threads()) {
            (void) __atomic_fetch_add(&lookups, 1, __ATOMIC_RELAXED);
        } else {
            ++lookups;
        }
        *dev_id = MCA_ACCELERATOR_NO_DEVICE_ID;
        *flags = 0;
        return 0;
    }
    return ask_framework(addr, dev_id, flags);
}

/* The functions below wait for copies or events of Open MPI's own, which a capture forbids. */

static int mem_copy(int to_device, int from_device, void *to, const void *from, size_t size,
                    opal_accelerator_transfer_type_t type)
{
    CUstreamCaptureMode mode;
    int rc;

    opal_umrddt_gpu_relax(driver, &mode);
    rc = framework.mem_copy(to_device, from_device, to, from, size, type);
    opal_umrddt_gpu_restore(driver, &mode);
    return rc;
}

static int mem_move(int to_device, int from_device, void *to, const void *from, size_t size,
                    opal_accelerator_transfer_type_t type)
{
    CUstreamCaptureMode mode;
    int rc;

    opal_umrddt_gpu_relax(driver, &mode);
    rc = framework.mem_move(to_device, from_device, to, from, size, type);
    opal_umrddt_gpu_restore(driver, &mode);
    return rc;
}

static int query_event(int device, opal_accelerator_event_t *event)
{
    CUstreamCaptureMode mode;
    int rc;

    opal_umrddt_gpu_relax(driver, &mode);
    rc = framework.query_event(device, event);
    opal_umrddt_gpu_restore(driver, &mode);
    return rc;
}

void opal_umrddt_gpu_base_lookup_open(bool system_memory)
{
    opal_accelerator_base_module_t *found =
        (opal_accelerator_base_module_t *) dlsym(RTLD_DEFAULT, "opal_accelerator");

    answers = system_memory;
    if (NULL == module && NULL != found && NULL != found->check_addr && umrddt_knows_cuda()
        && OPAL_SUCCESS == opal_umrddt_gpu_driver_load(&driver)) {
        framework = *found;
        module = found;
        module->check_addr = check_addr;
        module->mem_copy = mem_copy;
        module->mem_move = mem_move;
        module->query_event = query_event;
    }
}

void opal_umrddt_gpu_base_lookup_close(void)
{
    if (NULL != module && check_addr == module->check_addr) {
        module->check_addr = framework.check_addr;
        module->mem_copy = framework.mem_copy;
        module->mem_move = framework.mem_move;
        module->query_event = framework.query_event;
    }
    module = NULL;
}

#else

void opal_umrddt_gpu_base_lookup_open(bool system_memory)
{
    (void) system_memory;
}

void opal_umrddt_gpu_base_lookup_close(void)
{
}

#endif
