/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* The beginning and the end of the driver, its devices, and its functions by name. */

#include "gpu.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

pthread_mutex_t gpu_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t gpu_changed = PTHREAD_COND_INITIALIZER;
struct gpu_device gpu_device[GPU_DEVICES_MAX];

static enum {
    FRESH,
    RUNNING,
    FORKED, /* a child of a process that had initialized: unusable, as the driver is */
    GONE    /* the process is exiting */
} state;
static int device_count;
static char conf_error[256];
static uint64_t random_state;

static void before_fork(void)
{
    pthread_mutex_lock(&gpu_lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&gpu_lock);
}

static void child_of_fork(void)
{
    if (RUNNING == state) {
        state = FORKED;
    }
    pthread_mutex_unlock(&gpu_lock);
}

static __attribute__((constructor)) void loaded(void)
{
    if (0 == gpu_conf_parse(getenv("UMRDDT_GPU"), &gpu_conf, conf_error, sizeof(conf_error))) {
        (void) faults_parse(getenv("UMRDDT_FAULTS"), &gpu_conf.faults, conf_error,
                            sizeof(conf_error));
    }
    random_state = gpu_conf.seed;
    if (gpu_conf.aware) {
        bool *built = dlsym(RTLD_DEFAULT, "opal_built_with_cuda_support");
        bool *supports = dlsym(RTLD_DEFAULT, "opal_cuda_support");

        if (NULL != built && NULL != supports) {
            *built = *supports = true;
        }
    }
    pthread_atfork(before_fork, after_fork, child_of_fork);
}

GPU_EXPORT int umrddt_gpu_faults(const char *plan, int on)
{
    struct faults faults = {0};
    char error[128];
    int came;

    if (0 != faults_parse(plan, &faults, error, sizeof(error))) {
        return -1;
    }
    pthread_mutex_lock(&gpu_lock);
    came = gpu_count_faults(NULL == plan ? NULL : &faults, 0 != on);
    pthread_mutex_unlock(&gpu_lock);
    return came;
}

/* At exit only: the library is never unloaded (it is linked so). */
static __attribute__((destructor)) void gone(void)
{
    pthread_mutex_lock(&gpu_lock);
    if (FORKED != state && gpu_conf.counters) {
        gpu_count_print(stderr);
    }
    state = GONE;
    pthread_mutex_unlock(&gpu_lock);
}

uint64_t gpu_random(uint64_t bound)
{
    uint64_t x = __atomic_add_fetch(&random_state, 0x9e3779b97f4a7c15ull, __ATOMIC_RELAXED);

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    x ^= x >> 31;
    return 0 == bound ? 0 : x % bound;
}

/* As the driver does: a list of numbers, which ends at the first that is no device. */
static void choose_devices(void)
{
    const char *text = getenv("CUDA_VISIBLE_DEVICES");
    bool taken[GPU_DEVICES_MAX] = {false};
    int i;

    device_count = 0;
    if (NULL == text) {
        for (i = 0; i < gpu_conf.devices; i++) {
            gpu_device[device_count++].physical = i;
        }
    }
    while (NULL != text && '\0' != *text) {
        char *end;
        long n = strtol(text, &end, 10);

        if (end == text || 0 > n || n >= gpu_conf.devices || taken[n]) {
            break;
        }
        taken[n] = true;
        gpu_device[device_count++].physical = (int) n;
        if (',' != *end) {
            break;
        }
        text = end + 1;
    }
    for (i = 0; i < device_count; i++) {
        gpu_device[i].fd = -1;
    }
}

GPU_EXPORT CUresult cuInit(unsigned int flags)
{
    CUresult rc;

    pthread_mutex_lock(&gpu_lock);
    rc = gpu_count_call(GPU_FN_cuInit);
    if (CUDA_SUCCESS != rc || RUNNING == state) {
        return gpu_end(rc);
    }
    if (FRESH != state) {
        return gpu_end(FORKED == state ? CUDA_ERROR_NOT_INITIALIZED : CUDA_ERROR_DEINITIALIZED);
    }
    if (0 != flags) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    if ('\0' != conf_error[0]) {
        fprintf(stderr, "umrddt_gpu: UMRDDT_GPU: %s; see umrddt_sim --help\n", conf_error);
        return gpu_end(CUDA_ERROR_SYSTEM_NOT_READY);
    }
    choose_devices();
    if (0 == device_count) {
        return gpu_end(CUDA_ERROR_NO_DEVICE);
    }
    state = RUNNING;
    return gpu_end(CUDA_SUCCESS);
}

CUresult gpu_begin(enum gpu_function function)
{
    CUresult rc;

    pthread_mutex_lock(&gpu_lock);
    rc = gpu_count_call(function);
    if (RUNNING != state) {
        rc = GONE == state ? CUDA_ERROR_DEINITIALIZED : CUDA_ERROR_NOT_INITIALIZED;
    }
    if (CUDA_SUCCESS != rc) {
        pthread_mutex_unlock(&gpu_lock);
    }
    return rc;
}

CUresult gpu_begin_ctx(enum gpu_function function, CUcontext *ctx)
{
    return gpu_begin_of(function, NULL, NULL, ctx);
}

CUresult gpu_begin_of(enum gpu_function function, CUcontext (*of)(const void *handle),
                      const void *handle, CUcontext *ctx)
{
    CUresult rc = gpu_begin(function);

    if (CUDA_SUCCESS != rc) {
        return rc;
    }
    *ctx = gpu_ctx_working();
    if (NULL == *ctx && NULL != of) {
        *ctx = of(handle);
    }
    if (NULL == *ctx) {
        return gpu_end(CUDA_ERROR_INVALID_CONTEXT);
    }
    if (!gpu_ctx_exists(*ctx)) {
        return gpu_end(CUDA_ERROR_CONTEXT_IS_DESTROYED);
    }
    if (CUDA_SUCCESS != (*ctx)->error) {
        return gpu_end((*ctx)->error);
    }
    return CUDA_SUCCESS;
}

GPU_EXPORT CUresult cuDriverGetVersion(int *version)
{
    CUresult rc;

    pthread_mutex_lock(&gpu_lock);
    rc = gpu_count_call(GPU_FN_cuDriverGetVersion);
    if (CUDA_SUCCESS == rc && NULL == version) {
        rc = CUDA_ERROR_INVALID_VALUE;
    }
    if (CUDA_SUCCESS == rc) {
        *version = 12080;
    }
    return gpu_end(rc);
}

static CUresult error_name(CUresult error, const char **text)
{
#define NAME(name, value) \
    case value:           \
        *text = #name;    \
        return CUDA_SUCCESS;

    if (NULL == text) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    switch ((int) error) {
        UMRDDT_CUDA_RESULTS(NAME)
    default:
        *text = NULL;
        return CUDA_ERROR_INVALID_VALUE;
    }
}

GPU_EXPORT CUresult cuGetErrorName(CUresult error, const char **text)
{
    pthread_mutex_lock(&gpu_lock);
    (void) gpu_count_call(GPU_FN_cuGetErrorName);
    return gpu_end(error_name(error, text));
}

/* The driver has sentences here; the names say enough. */
GPU_EXPORT CUresult cuGetErrorString(CUresult error, const char **text)
{
    pthread_mutex_lock(&gpu_lock);
    (void) gpu_count_call(GPU_FN_cuGetErrorString);
    return gpu_end(error_name(error, text));
}

/* ---- functions by name ---- */

static const struct {
    const char *base;
    int version;
    void *function;
} entries[] = {
#define ENTRY(name, base, version, arguments) {base, version, (void *) name},
    /* The same under the name that the Toolkit's header gives it. */
    {"cuGraphInstantiate", 12000, (void *) cuGraphInstantiateWithFlags},
    UMRDDT_CUDA_FUNCTIONS(ENTRY)};

static CUresult proc_address(const char *symbol, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    bool exists = false;
    int best = 0;
    size_t i;

    if (NULL == symbol || NULL == function
        || 0
               != (flags
                   & ~(cuuint64_t) (CU_GET_PROC_ADDRESS_LEGACY_STREAM
                                    | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM))) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *function = NULL;
    for (i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        if (0 == strcmp(symbol, entries[i].base)) {
            exists = true;
            if (entries[i].version <= version && entries[i].version > best) {
                best = entries[i].version;
                *function = entries[i].function;
            }
        }
    }
    /* There are no functions here whose default stream is the thread's own. */
    if (0 != (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)) {
        *function = NULL;
        exists = false;
    }
    if (NULL != status) {
        *status = NULL != *function ? CU_GET_PROC_ADDRESS_SUCCESS
                  : exists          ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                    : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    }
    return NULL == *function ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

GPU_EXPORT CUresult cuGetProcAddress(const char *symbol, void **function, int version,
                                     cuuint64_t flags)
{
    CUresult rc;

    pthread_mutex_lock(&gpu_lock);
    rc = gpu_count_call(GPU_FN_cuGetProcAddress);
    return gpu_end(CUDA_SUCCESS == rc ? proc_address(symbol, function, version, flags, NULL) : rc);
}

GPU_EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version,
                                        cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
    CUresult rc;

    pthread_mutex_lock(&gpu_lock);
    rc = gpu_count_call(GPU_FN_cuGetProcAddress_v2);
    return gpu_end(CUDA_SUCCESS == rc ? proc_address(symbol, function, version, flags, status)
                                      : rc);
}

/* ---- devices ---- */

int gpu_device_count(void)
{
    return device_count;
}

static bool is_device(CUdevice device)
{
    return 0 <= device && device < device_count;
}

GPU_EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    GPU_BEGIN(cuDeviceGet);
    if (NULL == device) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    if (!is_device(ordinal)) {
        return gpu_end(CUDA_ERROR_INVALID_DEVICE);
    }
    *device = ordinal;
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuDeviceGetCount(int *count)
{
    GPU_BEGIN(cuDeviceGetCount);
    if (NULL == count) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    *count = device_count;
    return gpu_end(CUDA_SUCCESS);
}

/* A device and somewhere to put the answer, or the error, with the lock given back. */
#define CHECK_DEVICE(pointer, device)                  \
    do {                                               \
        if (NULL == (pointer)) {                       \
            return gpu_end(CUDA_ERROR_INVALID_VALUE);  \
        }                                              \
        if (!is_device(device)) {                      \
            return gpu_end(CUDA_ERROR_INVALID_DEVICE); \
        }                                              \
    } while (0)

GPU_EXPORT CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    GPU_BEGIN(cuDeviceGetName);
    CHECK_DEVICE(name, device);
    if (0 >= length) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    snprintf(name, (size_t) length, "umrddt software GPU");
    return gpu_end(CUDA_SUCCESS);
}

static void make_uuid(CUuuid *uuid, CUdevice device)
{
    memset(uuid->bytes, 0, sizeof(uuid->bytes));
    memcpy(uuid->bytes, "umrddt-gpu", 10);
    uuid->bytes[15] = (char) gpu_device[device].physical;
}

GPU_EXPORT CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    GPU_BEGIN(cuDeviceGetUuid);
    CHECK_DEVICE(uuid, device);
    make_uuid(uuid, device);
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    GPU_BEGIN(cuDeviceGetUuid_v2);
    CHECK_DEVICE(uuid, device);
    make_uuid(uuid, device);
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    GPU_BEGIN(cuDeviceTotalMem_v2);
    CHECK_DEVICE(bytes, device);
    *bytes = gpu_conf.memory;
    return gpu_end(CUDA_SUCCESS);
}

static const struct {
    int number;
    int says;
} attributes[] = {
#define ATTRIBUTE(name, number, says) {number, says},
    UMRDDT_CUDA_DEVICE_ATTRIBUTES(ATTRIBUTE)};

GPU_EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device)
{
    size_t i;

    GPU_BEGIN(cuDeviceGetAttribute);
    CHECK_DEVICE(value, device);
    if (1 > (int) attribute || 148 < (int) attribute) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    *value = 0; /* attributes outside of the table do not exist */
    for (i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
        if (attributes[i].number == (int) attribute) {
            *value = attributes[i].says;
        }
    }
    if (CU_DEVICE_ATTRIBUTE_PCI_BUS_ID == attribute) {
        *value = 1 + gpu_device[device].physical;
    } else if (CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED == attribute) {
        *value = gpu_conf.dmabuf && gpu_conf.gdr ? 1 : 0;
    } else if (CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED == attribute) {
        *value = gpu_conf.gdr ? 1 : 0;
    } else if (CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS == attribute) {
        *value = gpu_conf.flush ? 1 : 0;
    } else if (CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING == attribute) {
        *value = gpu_conf.ordering;
    } else if (CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR == attribute) {
        *value = (int) (gpu_conf.capability / 10);
    } else if (CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR == attribute) {
        *value = (int) (gpu_conf.capability % 10);
    }
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
    GPU_BEGIN(cuDeviceComputeCapability);
    CHECK_DEVICE(major, device);
    CHECK_DEVICE(minor, device);
    *major = (int) (gpu_conf.capability / 10);
    *minor = (int) (gpu_conf.capability % 10);
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuDeviceGetPCIBusId(char *id, int length, CUdevice device)
{
    GPU_BEGIN(cuDeviceGetPCIBusId);
    CHECK_DEVICE(id, device);
    if (13 > length) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    snprintf(id, (size_t) length, "0000:%02X:00.0", 1 + gpu_device[device].physical);
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *id)
{
    unsigned domain;
    unsigned bus;
    unsigned slot;
    int i;

    GPU_BEGIN(cuDeviceGetByPCIBusId);
    if (NULL == device || NULL == id || 3 != sscanf(id, "%x:%x:%x", &domain, &bus, &slot)) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    for (i = 0; i < device_count; i++) {
        if (0 == domain && 0 == slot && (unsigned) (1 + gpu_device[i].physical) == bus) {
            *device = i;
            return gpu_end(CUDA_SUCCESS);
        }
    }
    return gpu_end(CUDA_ERROR_INVALID_DEVICE);
}

GPU_EXPORT CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    GPU_BEGIN(cuDeviceCanAccessPeer);
    CHECK_DEVICE(can, device);
    CHECK_DEVICE(can, peer);
    *can = gpu_conf.peer && device != peer ? 1 : 0;
    return gpu_end(CUDA_SUCCESS);
}

GPU_EXPORT CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute,
                                            CUdevice source, CUdevice destination)
{
    GPU_BEGIN(cuDeviceGetP2PAttribute);
    CHECK_DEVICE(value, source);
    CHECK_DEVICE(value, destination);
    if (source == destination) {
        return gpu_end(CUDA_ERROR_INVALID_DEVICE);
    }
    if (1 > (int) attribute || 4 < (int) attribute) {
        return gpu_end(CUDA_ERROR_INVALID_VALUE);
    }
    *value = gpu_conf.peer
             && (CUdevice_P2PAttribute) CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK != attribute;
    return gpu_end(CUDA_SUCCESS);
}
