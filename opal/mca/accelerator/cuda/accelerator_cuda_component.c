/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* The component, and the small functions of the module. */

#include "accelerator_cuda.h"

#include <stdio.h>

#include "opal/constants.h"
#include "opal/util/output.h"

#include "umrddt_compat.h"

int opal_accelerator_cuda_result(CUresult rc, const char *what)
{
    const opal_umrddt_gpu_driver_t *driver;
    const char *why = NULL;

    if (OPAL_LIKELY(CUDA_SUCCESS == rc)) {
        return OPAL_SUCCESS;
    }
    if (OPAL_SUCCESS != opal_umrddt_gpu_driver_load(&driver)
        || CUDA_SUCCESS != driver->cuGetErrorString(rc, &why) || NULL == why) {
        why = "an error that the driver does not name";
    }
    opal_output(0, "accelerator/cuda: %s: %s (%d)", what, why, (int) rc);
    return CUDA_ERROR_OUT_OF_MEMORY == rc ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_ERROR;
}

/* ---- memory ---- */

static int check_addr(const void *address, int *dev_id, uint64_t *flags)
{
    opal_umrddt_gpu_memory_t memory;

    *flags = 0;
    *dev_id = MCA_ACCELERATOR_NO_DEVICE_ID;
    /* No device memory exists before the application has initialized CUDA. */
    if (NULL == address || !opal_umrddt_gpu_in_use()) {
        return 0;
    }
    if (OPAL_SUCCESS != opal_umrddt_gpu_classify(address, &memory)) {
        opal_umrddt_gpu_presume(address, &memory);
    }
    if (OPAL_UMRDDT_GPU_HOST == memory.kind || OPAL_UMRDDT_GPU_PINNED == memory.kind) {
        return 0;
    }
    *dev_id = memory.device;
    if (OPAL_UMRDDT_GPU_MANAGED == memory.kind) {
        *flags |= MCA_ACCELERATOR_FLAGS_UNIFIED_MEMORY;
    }
    return 1;
}

/* Classify memory that is known to the driver. */
static int known(const void *address, opal_umrddt_gpu_memory_t *memory)
{
    if (OPAL_SUCCESS != opal_umrddt_gpu_classify(address, memory)) {
        return OPAL_ERROR;
    }
    return OPAL_UMRDDT_GPU_HOST == memory->kind ? OPAL_ERR_NOT_FOUND : OPAL_SUCCESS;
}

static int mem_alloc(int dev_id, void **address, size_t size)
{
    const opal_umrddt_gpu_driver_t *driver;
    CUdeviceptr made = 0;
    bool pushed;
    CUresult rc;
    int result;

    if (NULL == address || 0 == size) {
        return OPAL_ERR_BAD_PARAM;
    }
    result = opal_umrddt_gpu_driver_load(&driver);
    if (OPAL_SUCCESS == result) {
        result = opal_accelerator_cuda_enter_device(dev_id, &pushed);
    }
    if (OPAL_SUCCESS != result) {
        return result;
    }
    rc = driver->cuMemAlloc_v2(&made, size);
    opal_accelerator_cuda_leave(pushed);
    if (CUDA_SUCCESS == rc) {
        *address = (void *) (uintptr_t) made;
    }
    return opal_accelerator_cuda_result(rc, "memory of a device cannot be allocated");
}

/*
 * The context of memory that is known to the driver. @retval as opal_accelerator_cuda_context_of,
 * and of known
 */
static int known_context(const void *address, const opal_umrddt_gpu_driver_t **driver,
                         opal_accelerator_cuda_context_t **context)
{
    opal_umrddt_gpu_memory_t memory;
    int result = opal_umrddt_gpu_driver_load(driver);

    if (OPAL_SUCCESS == result) {
        result = known(address, &memory);
    }
    return OPAL_SUCCESS == result ? opal_accelerator_cuda_context_of(&memory, context) : result;
}

static int mem_release(int dev_id, void *address)
{
    const opal_umrddt_gpu_driver_t *driver;
    opal_accelerator_cuda_context_t *context;
    bool pushed;
    CUresult rc;
    int result;

    (void) dev_id;
    if (NULL == address) {
        return OPAL_SUCCESS;
    }
    result = known_context(address, &driver, &context);
    if (OPAL_SUCCESS != result) {
        return result;
    }
    rc = opal_accelerator_cuda_enter(context, &pushed);
    if (CUDA_SUCCESS == rc) {
        rc = driver->cuMemFree_v2((uintptr_t) address);
        opal_accelerator_cuda_leave(pushed);
    }
    return opal_accelerator_cuda_result(rc, "memory of a device cannot be freed");
}

/* A driver that does not report the range as pointer attributes reports it within a context. */
static int query_range(const void *address, opal_umrddt_gpu_memory_t *memory)
{
    opal_accelerator_cuda_context_t *context;
    const opal_umrddt_gpu_driver_t *driver;
    CUdeviceptr base = 0;
    size_t size = 0;
    bool pushed;
    CUresult rc;
    int result = opal_umrddt_gpu_driver_load(&driver);

    if (OPAL_SUCCESS == result) {
        result = opal_accelerator_cuda_context_of(memory, &context);
    }
    if (OPAL_SUCCESS != result) {
        return result;
    }
    rc = opal_accelerator_cuda_enter(context, &pushed);
    if (CUDA_SUCCESS == rc) {
        rc = driver->cuMemGetAddressRange_v2(&base, &size, (uintptr_t) address);
        opal_accelerator_cuda_leave(pushed);
    }
    memory->base = base;
    memory->size = size;
    return opal_accelerator_cuda_result(rc,
                                        "the driver does not report the range of an allocation");
}

static int get_address_range(int dev_id, const void *address, void **base, size_t *size)
{
    opal_umrddt_gpu_memory_t memory;
    int rc = known(address, &memory);

    (void) dev_id;
    if (OPAL_SUCCESS == rc && 0 == memory.size) {
        rc = query_range(address, &memory);
    }
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    if (NULL != base) {
        *base = (void *) (uintptr_t) memory.base;
    }
    if (NULL != size) {
        *size = (size_t) memory.size;
    }
    return OPAL_SUCCESS;
}

static int get_buffer_id(int dev_id, const void *address, opal_accelerator_buffer_id_t *id)
{
    opal_umrddt_gpu_memory_t memory;
    const int rc = known(address, &memory);

    (void) dev_id;
    if (OPAL_SUCCESS == rc) {
        *id = memory.buffer_id;
    }
    return rc;
}

/* Callers continue without it, so a failure is not printed. */
static int host_register(int dev_id, void *address, size_t size)
{
    const opal_umrddt_gpu_driver_t *driver;
    bool pushed;
    CUresult rc;
    int result = opal_umrddt_gpu_driver_load(&driver);

    if (OPAL_SUCCESS == result) {
        result = opal_accelerator_cuda_enter_device(dev_id, &pushed);
    }
    if (OPAL_SUCCESS != result) {
        return result;
    }
    rc = driver->cuMemHostRegister_v2(address, size, CU_MEMHOSTREGISTER_PORTABLE);
    opal_accelerator_cuda_leave(pushed);
    return CUDA_SUCCESS == rc ? OPAL_SUCCESS : OPAL_ERROR;
}

static int host_unregister(int dev_id, void *address)
{
    const opal_umrddt_gpu_driver_t *driver;
    opal_accelerator_cuda_context_t *context;
    bool pushed;
    CUresult rc;
    int result;

    (void) dev_id;
    result = known_context(address, &driver, &context);
    if (OPAL_SUCCESS != result) {
        return result;
    }
    rc = opal_accelerator_cuda_enter(context, &pushed);
    if (CUDA_SUCCESS == rc) {
        rc = driver->cuMemHostUnregister(address);
        opal_accelerator_cuda_leave(pushed);
    }
    return CUDA_SUCCESS == rc ? OPAL_SUCCESS : OPAL_ERROR;
}

/* ---- devices ---- */

static int get_device(int *dev_id)
{
    if (NULL == dev_id) {
        return OPAL_ERR_BAD_PARAM;
    }
    *dev_id = opal_accelerator_cuda_device();
    return OPAL_SUCCESS;
}

static int get_device_pci_attr(int dev_id, opal_accelerator_pci_attr_t *attr)
{
    unsigned domain, bus, device, function;
    const opal_umrddt_gpu_driver_t *driver;
    CUdevice handle = 0;
    char id[64] = "";

    if (NULL == attr) {
        return OPAL_ERR_BAD_PARAM;
    }
    if (OPAL_SUCCESS != opal_umrddt_gpu_driver_load(&driver)
        || CUDA_SUCCESS != driver->cuDeviceGet(&handle, dev_id)
        || CUDA_SUCCESS != driver->cuDeviceGetPCIBusId(id, (int) sizeof(id), handle)
        || 4 != sscanf(id, "%x:%x:%x.%x", &domain, &bus, &device, &function)) {
        return OPAL_ERR_NOT_AVAILABLE;
    }
    attr->domain_id = (uint16_t) domain;
    attr->bus_id = (uint8_t) bus;
    attr->device_id = (uint8_t) device;
    attr->function_id = (uint8_t) function;
    return OPAL_SUCCESS;
}

static int device_can_access_peer(int *access, int dev1, int dev2)
{
    const opal_umrddt_gpu_driver_t *driver;
    CUdevice first = 0, second = 0;

    if (NULL == access) {
        return OPAL_ERR_BAD_PARAM;
    }
    if (OPAL_SUCCESS != opal_umrddt_gpu_driver_load(&driver)
        || CUDA_SUCCESS != driver->cuDeviceGet(&first, dev1)
        || CUDA_SUCCESS != driver->cuDeviceGet(&second, dev2)) {
        return OPAL_ERR_NOT_AVAILABLE;
    }
    if (first == second) {
        *access = 1;
        return OPAL_SUCCESS;
    }
    return CUDA_SUCCESS == driver->cuDeviceCanAccessPeer(access, first, second) ? OPAL_SUCCESS
                                                                                : OPAL_ERROR;
}

/* ---- from 6.0 on ---- */

#if UMRDDT_OPAL_RELEASE >= 600
/* Memory is allocated and released at once: before, and after, all work of the stream. */
static int mem_alloc_stream(int dev_id, void **address, size_t size,
                            opal_accelerator_stream_t *stream)
{
    return NULL == stream ? OPAL_ERR_BAD_PARAM : mem_alloc(dev_id, address, size);
}

static int mem_release_stream(int dev_id, void *address, opal_accelerator_stream_t *stream)
{
    int rc = opal_accelerator_cuda_sync_stream(stream);

    return OPAL_SUCCESS == rc ? mem_release(dev_id, address) : rc;
}

/* Processes exchange memory by other means: Open MPI does not call the functions below then. */
static bool is_ipc_enabled(void)
{
    return false;
}

static int get_ipc_handle(int dev_id, void *address, opal_accelerator_ipc_handle_t *handle)
{
    (void) dev_id, (void) address, (void) handle;
    return OPAL_ERR_NOT_SUPPORTED;
}

static int import_ipc_handle(int dev_id, uint8_t bytes[IPC_MAX_HANDLE_SIZE],
                             opal_accelerator_ipc_handle_t *handle)
{
    (void) dev_id, (void) bytes, (void) handle;
    return OPAL_ERR_NOT_SUPPORTED;
}

static int open_ipc_handle(int dev_id, opal_accelerator_ipc_handle_t *handle, void **address)
{
    (void) dev_id, (void) handle, (void) address;
    return OPAL_ERR_NOT_SUPPORTED;
}

static int compare_ipc_handles(uint8_t first[IPC_MAX_HANDLE_SIZE],
                               uint8_t second[IPC_MAX_HANDLE_SIZE])
{
    return memcmp(first, second, IPC_MAX_HANDLE_SIZE);
}

static int get_ipc_event_handle(opal_accelerator_event_t *event,
                                opal_accelerator_ipc_event_handle_t *handle)
{
    (void) event, (void) handle;
    return OPAL_ERR_NOT_SUPPORTED;
}

static int import_ipc_event_handle(uint8_t bytes[IPC_MAX_HANDLE_SIZE],
                                   opal_accelerator_ipc_event_handle_t *handle)
{
    (void) bytes, (void) handle;
    return OPAL_ERR_NOT_SUPPORTED;
}

static int open_ipc_event_handle(opal_accelerator_ipc_event_handle_t *handle,
                                 opal_accelerator_event_t *event)
{
    (void) handle, (void) event;
    return OPAL_ERR_NOT_SUPPORTED;
}

/* None before the application has initialized CUDA. */
static int num_devices(int *devices)
{
    const opal_umrddt_gpu_driver_t *driver;

    if (NULL == devices) {
        return OPAL_ERR_BAD_PARAM;
    }
    *devices = 0;
    if (!opal_umrddt_gpu_in_use() || OPAL_SUCCESS != opal_umrddt_gpu_driver_load(&driver)) {
        return OPAL_SUCCESS;
    }
    return opal_accelerator_cuda_result(driver->cuDeviceGetCount(devices),
                                        "the devices cannot be counted");
}

/* GB/s: two transfers of the bus in each clock, which is in kHz. */
static int get_mem_bw(int dev_id, float *bw)
{
    const opal_umrddt_gpu_driver_t *driver;
    int clock = 0, width = 0;
    CUdevice device;

    if (NULL == bw) {
        return OPAL_ERR_BAD_PARAM;
    }
    if (!opal_umrddt_gpu_in_use() || OPAL_SUCCESS != opal_umrddt_gpu_driver_load(&driver)) {
        return OPAL_ERR_NOT_AVAILABLE;
    }
    if (CUDA_SUCCESS != driver->cuDeviceGet(&device, dev_id)
        || CUDA_SUCCESS
               != driver->cuDeviceGetAttribute(&clock, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE,
                                               device)
        || CUDA_SUCCESS
               != driver->cuDeviceGetAttribute(&width, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH,
                                               device)) {
        return OPAL_ERR_BAD_PARAM;
    }
    *bw = 2.0f * (float) clock * (float) (width / 8) / 1e6f;
    return OPAL_SUCCESS;
}

/* Open MPI frees the texts. */
static void get_memkind(ompi_memkind_t *memkind)
{
    static const char *const restrictors[] = {"host", "device", "managed"};

    memkind->im_name = strdup("cuda");
    memkind->im_no_restrictors = false;
    memkind->im_num_restrictors = 3;
    for (int i = 0; i < 3; ++i) {
        memkind->im_restrictors[i] = strdup(restrictors[i]);
    }
}

#define FUNCTIONS 33
#else
#define FUNCTIONS 17
#endif

/* ---- the component ---- */

const opal_accelerator_base_module_t opal_accelerator_cuda_module = {
    .check_addr = check_addr,
    .create_stream = opal_accelerator_cuda_create_stream,
    .create_event = opal_accelerator_cuda_create_event,
    .record_event = opal_accelerator_cuda_record_event,
    .query_event = opal_accelerator_cuda_query_event,
    .mem_copy_async = opal_accelerator_cuda_mem_copy_async,
    .mem_copy = opal_accelerator_cuda_mem_copy,
    .mem_move = opal_accelerator_cuda_mem_move,
    .mem_alloc = mem_alloc,
    .mem_release = mem_release,
    .get_address_range = get_address_range,
    .host_register = host_register,
    .host_unregister = host_unregister,
    .get_device = get_device,
    .get_device_pci_attr = get_device_pci_attr,
    .device_can_access_peer = device_can_access_peer,
    .get_buffer_id = get_buffer_id,
#if UMRDDT_OPAL_RELEASE >= 600
    .sync_stream = opal_accelerator_cuda_sync_stream,
    .wait_event = opal_accelerator_cuda_wait_event,
    .mem_move_async = opal_accelerator_cuda_mem_move_async,
    .mem_alloc_stream = mem_alloc_stream,
    .mem_release_stream = mem_release_stream,
    .is_ipc_enabled = is_ipc_enabled,
    .get_ipc_handle = get_ipc_handle,
    .import_ipc_handle = import_ipc_handle,
    .open_ipc_handle = open_ipc_handle,
    .compare_ipc_handles = compare_ipc_handles,
    .get_ipc_event_handle = get_ipc_event_handle,
    .import_ipc_event_handle = import_ipc_event_handle,
    .open_ipc_event_handle = open_ipc_event_handle,
    .num_devices = num_devices,
    .get_mem_bw = get_mem_bw,
    .get_memkind = get_memkind,
#endif
};

/* Exactly these functions: one added by another release would be an invalid pointer here. */
_Static_assert(FUNCTIONS * sizeof(void (*)(void)) == sizeof(opal_accelerator_base_module_t),
               "accelerator.h of Open MPI has functions that are not here");

/* Loads the driver and calls none of its functions. NULL: Open MPI tries the next component. */
static opal_accelerator_base_module_t *init(void)
{
    static opal_accelerator_base_module_t module;
    const opal_umrddt_gpu_driver_t *driver;
    const char *built_for;

    if (!umrddt_right_release(&built_for) || OPAL_SUCCESS != opal_umrddt_gpu_driver_load(&driver)) {
        return NULL;
    }
#if UMRDDT_OPAL_RELEASE >= 600
    if (OPAL_SUCCESS != opal_accelerator_cuda_streams_open()) {
        return NULL;
    }
#endif
    module = opal_accelerator_cuda_module;
    return &module;
}

static void finalize(opal_accelerator_base_module_t *module)
{
    (void) module;
#if UMRDDT_OPAL_RELEASE >= 600
    opal_accelerator_cuda_streams_close();
#endif
    opal_accelerator_cuda_contexts_close();
}

UMRDDT_COMPONENT opal_accelerator_base_component_t mca_accelerator_cuda_component = {
    .base_version =
        {
            OPAL_ACCELERATOR_BASE_VERSION_1_0_0,
            .mca_component_name = "cuda",
            .mca_component_major_version = OPAL_MAJOR_VERSION,
            .mca_component_minor_version = OPAL_MINOR_VERSION,
            .mca_component_release_version = OPAL_RELEASE_VERSION,
        },
    .base_data = {MCA_BASE_METADATA_PARAM_CHECKPOINT},
    .accelerator_init = init,
    .accelerator_finalize = finalize,
};
