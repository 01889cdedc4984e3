/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Contexts of the application whose memory was used. The list only grows until it is freed, so it
 * is read without the lock.
 */

#include "accelerator_cuda.h"

#include <pthread.h>
#include <stdlib.h>

#include "opal/constants.h"

static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;
static opal_accelerator_cuda_context_t *contexts;

static const opal_umrddt_gpu_driver_t *the_driver(void)
{
    const opal_umrddt_gpu_driver_t *driver = NULL;

    /* The component is not selected without it. */
    (void) opal_umrddt_gpu_driver_load(&driver);
    return driver;
}

CUresult opal_accelerator_cuda_enter(const opal_accelerator_cuda_context_t *context, bool *pushed)
{
    const opal_umrddt_gpu_driver_t *driver = the_driver();
    CUcontext current = NULL;
    CUresult rc;

    *pushed = false;
    if (CUDA_SUCCESS == driver->cuCtxGetCurrent(&current) && context->ctx == current) {
        return CUDA_SUCCESS;
    }
    rc = driver->cuCtxPushCurrent_v2(context->ctx);
    *pushed = CUDA_SUCCESS == rc;
    return rc;
}

void opal_accelerator_cuda_leave(bool pushed)
{
    CUcontext popped;

    if (pushed) {
        (void) the_driver()->cuCtxPopCurrent_v2(&popped);
    }
}

bool opal_accelerator_cuda_context_exists(opal_accelerator_cuda_context_t *context)
{
    uint64_t id = 0;

    if (__atomic_load_n(&context->gone, __ATOMIC_RELAXED)) {
        return false;
    }
    if (0 == context->witness) {
        return context->primary;
    }
    if (CUDA_SUCCESS
            == the_driver()->cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                                   context->witness)
        && id == context->witness_id) {
        return true;
    }
    __atomic_store_n(&context->gone, true, __ATOMIC_RELAXED);
    return false;
}

static opal_accelerator_cuda_context_t *find(const opal_umrddt_gpu_memory_t *memory)
{
    opal_accelerator_cuda_context_t *context = __atomic_load_n(&contexts, __ATOMIC_ACQUIRE);

    while (NULL != context
           && ((NULL == memory->ctx ? !context->primary || memory->device != context->device
                                    : memory->ctx != context->ctx)
               || !opal_accelerator_cuda_context_exists(context))) {
        context = context->next;
    }
    return context;
}

/* With the context current. */
static CUresult fill(opal_accelerator_cuda_context_t *context)
{
    const opal_umrddt_gpu_driver_t *driver = the_driver();
    CUresult rc = driver->cuCtxGetDevice(&context->device);

    if (CUDA_SUCCESS == rc) {
        rc = driver->cuMemAlloc_v2(&context->witness, sizeof(uint64_t));
    }
    if (CUDA_SUCCESS == rc) {
        rc = driver->cuPointerGetAttribute(&context->witness_id, CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                           context->witness);
    }
    if (CUDA_SUCCESS == rc) {
        rc = driver->cuEventCreate(&context->event, CU_EVENT_DISABLE_TIMING);
    }
    if (CUDA_SUCCESS == rc) {
        rc = driver->cuStreamCreate(&context->stream, CU_STREAM_DEFAULT);
    }
    return rc;
}

/* Free the driver's objects, with the context current. */
static void empty(opal_accelerator_cuda_context_t *context)
{
    const opal_umrddt_gpu_driver_t *driver = the_driver();

    if (NULL != context->stream) {
        (void) driver->cuStreamDestroy_v2(context->stream);
    }
    if (NULL != context->event) {
        (void) driver->cuEventDestroy_v2(context->event);
    }
    if (0 != context->witness) {
        (void) driver->cuMemFree_v2(context->witness);
    }
}

/* With the lock. */
static CUresult make(const opal_umrddt_gpu_memory_t *memory,
                     opal_accelerator_cuda_context_t *context)
{
    const opal_umrddt_gpu_driver_t *driver = the_driver();
    CUdevice device = 0;
    bool pushed = false;
    CUresult rc = CUDA_SUCCESS;

    context->ctx = memory->ctx;
    if (NULL == memory->ctx) {
        rc = driver->cuDeviceGet(&device, memory->device);
        if (CUDA_SUCCESS == rc) {
            rc = driver->cuDevicePrimaryCtxRetain(&context->ctx, device);
        }
        context->primary = CUDA_SUCCESS == rc;
    }
    if (CUDA_SUCCESS == rc) {
        rc = opal_accelerator_cuda_enter(context, &pushed);
    }
    if (CUDA_SUCCESS == rc) {
        rc = fill(context);
        if (CUDA_SUCCESS != rc) {
            empty(context);
        }
        opal_accelerator_cuda_leave(pushed);
    }
    if (CUDA_SUCCESS != rc && context->primary) {
        (void) driver->cuDevicePrimaryCtxRelease_v2(device);
    }
    return rc;
}

int opal_accelerator_cuda_context_of(const opal_umrddt_gpu_memory_t *memory,
                                     opal_accelerator_cuda_context_t **result)
{
    opal_accelerator_cuda_context_t *context = find(memory);
    CUresult rc = CUDA_SUCCESS;

    if (OPAL_LIKELY(NULL != context)) {
        *result = context;
        return OPAL_SUCCESS;
    }
    pthread_mutex_lock(&contexts_lock);
    context = find(memory);
    if (NULL == context) {
        context = calloc(1, sizeof(*context));
        rc = NULL == context ? CUDA_ERROR_OUT_OF_MEMORY : make(memory, context);
        if (CUDA_SUCCESS == rc) {
            context->next = contexts;
            __atomic_store_n(&contexts, context, __ATOMIC_RELEASE);
        } else {
            free(context);
        }
    }
    pthread_mutex_unlock(&contexts_lock);
    if (CUDA_SUCCESS != rc) {
        return opal_accelerator_cuda_result(rc, "the context of memory cannot be used");
    }
    *result = context;
    return OPAL_SUCCESS;
}

/* The first device whose primary context is active. */
static int first_active(void)
{
    const opal_umrddt_gpu_driver_t *driver = the_driver();
    unsigned flags;
    int count = 0, active = 0, i;

    if (CUDA_SUCCESS != driver->cuDeviceGetCount(&count)) {
        return MCA_ACCELERATOR_NO_DEVICE_ID;
    }
    for (i = 0; i < count; ++i) {
        if (CUDA_SUCCESS == driver->cuDevicePrimaryCtxGetState(i, &flags, &active) && 0 != active) {
            return i;
        }
    }
    return MCA_ACCELERATOR_NO_DEVICE_ID;
}

/* The device of the thread's current context. */
static int current_device(void)
{
    CUdevice device = 0;

    return CUDA_SUCCESS == the_driver()->cuCtxGetDevice(&device) ? device
                                                                 : MCA_ACCELERATOR_NO_DEVICE_ID;
}

int opal_accelerator_cuda_device(void)
{
    const int device = current_device();

    return MCA_ACCELERATOR_NO_DEVICE_ID == device ? first_active() : device;
}

int opal_accelerator_cuda_enter_device(int dev_id, bool *pushed)
{
    opal_umrddt_gpu_memory_t nothing = {.kind = OPAL_UMRDDT_GPU_DEVICE};
    opal_accelerator_cuda_context_t *context;
    const int current = current_device();
    int count = 0, rc;

    *pushed = false;
    if (MCA_ACCELERATOR_NO_DEVICE_ID != current
        && (MCA_ACCELERATOR_NO_DEVICE_ID == dev_id || current == dev_id)) {
        return OPAL_SUCCESS;
    }
    if (MCA_ACCELERATOR_NO_DEVICE_ID == dev_id) {
        dev_id = first_active();
        if (MCA_ACCELERATOR_NO_DEVICE_ID == dev_id) {
            return OPAL_ERR_NOT_AVAILABLE;
        }
    } else if (CUDA_SUCCESS != the_driver()->cuDeviceGetCount(&count)) {
        return OPAL_ERR_NOT_AVAILABLE;
    } else if (0 > dev_id || count <= dev_id) {
        return OPAL_ERR_BAD_PARAM;
    }
    nothing.device = dev_id;
    rc = opal_accelerator_cuda_context_of(&nothing, &context);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    return opal_accelerator_cuda_result(opal_accelerator_cuda_enter(context, pushed),
                                        "the primary context of a device cannot be used");
}

void opal_accelerator_cuda_contexts_close(void)
{
    opal_accelerator_cuda_context_t *context, *next;
    bool pushed;

    pthread_mutex_lock(&contexts_lock);
    context = contexts;
    __atomic_store_n(&contexts, NULL, __ATOMIC_RELEASE);
    for (; NULL != context; context = next) {
        next = context->next;
        if (opal_accelerator_cuda_context_exists(context)
            && CUDA_SUCCESS == opal_accelerator_cuda_enter(context, &pushed)) {
            empty(context);
            opal_accelerator_cuda_leave(pushed);
        }
        if (context->primary) {
            (void) the_driver()->cuDevicePrimaryCtxRelease_v2(context->device);
        }
        free(context);
    }
    pthread_mutex_unlock(&contexts_lock);
}
