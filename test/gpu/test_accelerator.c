/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * accelerator/cuda, loaded as Open MPI loads it, each function, on the software CUDA driver. Each
 * part is a process of its own: the driver is loaded once.
 */

#include "opal_config.h"

#include <dlfcn.h>
#include <pthread.h>

#include "opal/constants.h"
#include "opal/mca/accelerator/accelerator.h"
#include "opal/mca/common/umrddt_gpu/driver/umrddt_gpu_driver.h"
#include "umrddt_cuda_all.h"
#include "opal/runtime/opal.h"
#include "umrddt_compat.h"

#include "gpu_owner.h"

#define NONE MCA_ACCELERATOR_NO_DEVICE_ID
#define ANY  MCA_ACCELERATOR_TRANSFER_UNSPEC
#if UMRDDT_OPAL_RELEASE >= 600
#define NEW_EVENT(event) m->create_event(NONE, event, false)
#else
#define NEW_EVENT(event) m->create_event(NONE, event)
#endif
#define SIZE ((size_t) 100003)
/* One allocation of the driver's mapped memory. */
#define VMM_SIZE ((size_t) 2 << 20)

static const umrddt_cuda_all_t *driver;
static opal_accelerator_base_component_t *component;
static opal_accelerator_base_module_t *m;
static CUcontext primary[2];
static int devices;

/* As the framework does it. */
static opal_accelerator_base_module_t *load(void)
{
    char *words[] = {(char *) "test_accelerator", NULL}, **argv = words, path[4096];
    int argc = 1;
    void *object;

    CHECK(NULL != getenv("UMRDDT_ACCELERATOR"));
    EXPECT(OPAL_SUCCESS, opal_init_util(&argc, &argv));
    snprintf(path, sizeof(path), "%s/mca_accelerator_cuda.so", getenv("UMRDDT_ACCELERATOR"));
    object = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (NULL == object) {
        fprintf(stderr, "%s\n", dlerror());
    }
    CHECK(NULL != object);
    component =
        (opal_accelerator_base_component_t *) dlsym(object, "mca_accelerator_cuda_component");
    CHECK(NULL != component);
    CHECK(0 == strcmp("cuda", component->base_version.mca_component_name));
    CHECK(0 == strcmp("accelerator", component->base_version.mca_type_name));
    m = component->accelerator_init();
    return m;
}

/* The application has a primary context on every device, the first one's is current. */
static void begin(void)
{
    int i;

    CHECK(NULL != load());
    EXPECT(OPAL_SUCCESS, umrddt_cuda_all_load(&driver));
    EXPECT(CUDA_SUCCESS, driver->cuInit(0));
    EXPECT(CUDA_SUCCESS, driver->cuDeviceGetCount(&devices));
    gpu_test_needs_two(devices);
    for (i = 0; i < 2; ++i) {
        EXPECT(CUDA_SUCCESS, driver->cuDevicePrimaryCtxRetain(&primary[i], i));
    }
    EXPECT(CUDA_SUCCESS, driver->cuCtxSetCurrent(primary[0]));
}

static CUcontext current(void)
{
    CUcontext ctx = NULL;

    EXPECT(CUDA_SUCCESS, driver->cuCtxGetCurrent(&ctx));
    return ctx;
}

/* ---- memory of every kind ---- */

typedef enum kind_t {
    DEVICE,
    POOL,
    VMM,
    MANAGED,
    PINNED,
    REGISTERED,
    HEAP,
    KINDS
} kind_t;

static bool on_gpu(kind_t kind)
{
    return PINNED > kind;
}

static uintptr_t mapped(int device)
{
    CUmemAllocationProp prop;
    CUmemGenericAllocationHandle handle;
    CUmemAccessDesc access;
    CUdeviceptr address = 0;

    memset(&prop, 0, sizeof(prop));
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = device;
    memset(&access, 0, sizeof(access));
    access.location = prop.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    EXPECT(CUDA_SUCCESS, driver->cuMemCreate(&handle, VMM_SIZE, &prop, 0));
    EXPECT(CUDA_SUCCESS, driver->cuMemAddressReserve(&address, VMM_SIZE, 0, 0, 0));
    EXPECT(CUDA_SUCCESS, driver->cuMemMap(address, VMM_SIZE, 0, handle, 0));
    EXPECT(CUDA_SUCCESS, driver->cuMemSetAccess(address, VMM_SIZE, &access, 1));
    return address;
}

/* Made with the device's primary context current; the thread's own one is back afterwards. */
static unsigned char *make(kind_t kind, int device)
{
    CUcontext before;
    CUdeviceptr address = 0;
    void *pointer = NULL;

    EXPECT(CUDA_SUCCESS, driver->cuCtxPushCurrent_v2(primary[device]));
    switch (kind) {
    case DEVICE:
        EXPECT(CUDA_SUCCESS, driver->cuMemAlloc_v2(&address, SIZE));
        break;
    case POOL:
        EXPECT(CUDA_SUCCESS, driver->cuMemAllocAsync(&address, SIZE, NULL));
        EXPECT(CUDA_SUCCESS, driver->cuCtxSynchronize());
        break;
    case VMM:
        address = mapped(device);
        break;
    case MANAGED:
        EXPECT(CUDA_SUCCESS, driver->cuMemAllocManaged(&address, SIZE, CU_MEM_ATTACH_GLOBAL));
        break;
    case PINNED:
        EXPECT(CUDA_SUCCESS, driver->cuMemHostAlloc(&pointer, SIZE, CU_MEMHOSTALLOC_PORTABLE));
        break;
    case REGISTERED:
        pointer = malloc(SIZE);
        EXPECT(CUDA_SUCCESS, driver->cuMemHostRegister_v2(pointer, SIZE, 0));
        break;
    default:
        pointer = malloc(SIZE);
        break;
    }
    EXPECT(CUDA_SUCCESS, driver->cuCtxPopCurrent_v2(&before));
    return 0 != address ? (unsigned char *) (uintptr_t) address : pointer;
}

static void pattern(unsigned char *bytes, size_t size, unsigned seed)
{
    size_t i;

    for (i = 0; i < size; ++i) {
        bytes[i] = (unsigned char) ((i * 2654435761u + seed * 40503u) >> 7);
    }
}

static unsigned char *patterned(unsigned seed)
{
    unsigned char *bytes = malloc(SIZE);

    CHECK(NULL != bytes);
    pattern(bytes, SIZE, seed);
    return bytes;
}

static void copy(void *to, const void *from, size_t size)
{
    EXPECT(OPAL_SUCCESS, m->mem_copy(NONE, NONE, to, from, size, ANY));
}

/* All of it, by way of the module. */
static void check_is(const unsigned char *memory, unsigned seed)
{
    unsigned char *wanted = patterned(seed), *got = calloc(1, SIZE);

    copy(got, memory, SIZE);
    CHECK(0 == memcmp(wanted, got, SIZE));
    free(wanted);
    free(got);
}

static void fill(unsigned char *memory, unsigned seed)
{
    unsigned char *bytes = patterned(seed);

    copy(memory, bytes, SIZE);
    free(bytes);
}

/* ---- the parts ---- */

static void without(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    if (NULL != library) {
        printf("this machine has a driver, so the part is left out\n");
        return;
    }
    CHECK(NULL == load());
}

/* Nothing of CUDA before the application's cuInit, and no context before its own. */
static void before(void)
{
    opal_accelerator_stream_t *stream = NULL;
    opal_accelerator_event_t *event = NULL;
    opal_accelerator_pci_attr_t pci;
    int device = 5, access, count = 0, active, i;
    uint64_t flags = 7;
    char heap[64], other[64];
    void *made = NULL;
    unsigned f;

    CHECK(NULL != load());
    EXPECT(OPAL_SUCCESS, umrddt_cuda_all_load(&driver));
    for (i = 0; i < 2; ++i) {
        EXPECT(0, m->check_addr(heap, &device, &flags));
        EXPECT(NONE, device);
        EXPECT(0, flags);
        EXPECT(0, m->check_addr(NULL, &device, &flags));
        EXPECT(OPAL_SUCCESS, m->create_stream(NONE, &stream));
        EXPECT(OPAL_SUCCESS, NEW_EVENT(&event));
        EXPECT(OPAL_SUCCESS, m->record_event(NONE, event, stream));
        EXPECT(OPAL_SUCCESS, m->query_event(NONE, event));
        memset(heap, i + 1, sizeof(heap));
        EXPECT(OPAL_SUCCESS, m->mem_copy_async(NONE, NONE, other, heap, 64, stream, ANY));
        CHECK(0 == memcmp(heap, other, 64));
        copy(other, heap + 1, 10);
        EXPECT(OPAL_SUCCESS, m->mem_move(NONE, NONE, heap + 1, heap, 60, ANY));
        OBJ_RELEASE(event);
        OBJ_RELEASE(stream);
        EXPECT(OPAL_SUCCESS, m->get_device(&device));
        EXPECT(NONE, device);
        EXPECT(OPAL_ERR_NOT_AVAILABLE, m->mem_alloc(NONE, &made, 100));
        EXPECT(OPAL_ERR_NOT_AVAILABLE, m->host_register(NONE, heap, sizeof(heap)));
        EXPECT(OPAL_ERR_NOT_FOUND, m->host_unregister(NONE, heap));
        EXPECT(OPAL_ERR_NOT_FOUND, m->mem_release(NONE, heap));
        EXPECT(OPAL_SUCCESS, m->mem_release(NONE, NULL));
        if (0 == i) {
            EXPECT(OPAL_ERR_NOT_AVAILABLE, m->get_device_pci_attr(0, &pci));
            EXPECT(OPAL_ERR_NOT_AVAILABLE, m->device_can_access_peer(&access, 0, 1));
            EXPECT(OPAL_ERR_NOT_AVAILABLE, m->mem_alloc(0, &made, 100));
            EXPECT(CUDA_ERROR_NOT_INITIALIZED, driver->cuDeviceGetCount(&count));
            EXPECT(CUDA_SUCCESS, driver->cuInit(0));
        }
    }
    EXPECT(CUDA_SUCCESS, driver->cuDeviceGetCount(&count));
    for (i = 0; i < count; ++i) {
        EXPECT(CUDA_SUCCESS, driver->cuDevicePrimaryCtxGetState(i, &f, &active));
        EXPECT(0, active);
    }
    component->accelerator_finalize(m);
}

static void questions(void)
{
    opal_accelerator_buffer_id_t id, again;
    opal_accelerator_pci_attr_t pci = {9, 9, 9, 9};
    int kind, device, dev_id, access;
    uint64_t flags;
    size_t size;
    void *base;

    begin();
    for (kind = 0; kind < KINDS; ++kind) {
        for (device = 0; device < 2; ++device) {
            unsigned char *memory = make((kind_t) kind, device);

            dev_id = 99;
            EXPECT(on_gpu((kind_t) kind), m->check_addr(memory + 17, &dev_id, &flags));
            EXPECT(on_gpu((kind_t) kind) ? device : NONE, dev_id);
            EXPECT(MANAGED == kind ? MCA_ACCELERATOR_FLAGS_UNIFIED_MEMORY : 0, flags);
            if (HEAP == kind) {
                EXPECT(OPAL_ERR_NOT_FOUND, m->get_buffer_id(NONE, memory, &id));
                EXPECT(OPAL_ERR_NOT_FOUND, m->get_address_range(NONE, memory, &base, &size));
                continue;
            }
            EXPECT(OPAL_SUCCESS, m->get_buffer_id(NONE, memory, &id));
            EXPECT(OPAL_SUCCESS, m->get_buffer_id(NONE, memory + SIZE - 1, &again));
            CHECK(id == again && 0 != id);
            EXPECT(OPAL_SUCCESS, m->get_address_range(NONE, memory + 17, &base, &size));
            CHECK(base == memory && (VMM == kind ? VMM_SIZE : SIZE) == size);
            EXPECT(OPAL_SUCCESS, m->get_address_range(NONE, memory, NULL, NULL));
        }
    }
    EXPECT(OPAL_SUCCESS, m->get_device(&dev_id));
    EXPECT(0, dev_id);
    EXPECT(CUDA_SUCCESS, driver->cuCtxSetCurrent(primary[1]));
    EXPECT(OPAL_SUCCESS, m->get_device(&dev_id));
    EXPECT(1, dev_id);
    EXPECT(OPAL_SUCCESS, m->get_device_pci_attr(1, &pci));
    CHECK(9 != pci.bus_id && 9 != pci.function_id);
    EXPECT(OPAL_ERR_NOT_AVAILABLE, m->get_device_pci_attr(devices, &pci));
    EXPECT(OPAL_SUCCESS, m->device_can_access_peer(&access, 0, 1));
    EXPECT(1, access);
    EXPECT(OPAL_SUCCESS, m->device_can_access_peer(&access, 1, 1));
    EXPECT(1, access);
    EXPECT(OPAL_ERR_NOT_AVAILABLE, m->device_can_access_peer(&access, 0, NONE));
}

static void between_kinds(void)
{
    int from, to, far;

    for (from = 0; from < KINDS; ++from) {
        for (to = 0; to < KINDS; ++to) {
            for (far = 0; far < 2; ++far) {
                unsigned char *a = make((kind_t) from, 0), *b = make((kind_t) to, far);
                const unsigned seed = (unsigned) (from * 100 + to * 10 + far);

                fill(a, seed);
                fill(b, seed + 1);
                copy(b, a, SIZE);
                check_is(b, seed);
                copy(b, a, 0);
            }
        }
    }
}

/* With a context of either device, and in a thread without one, which has none afterwards. */
static void *in_thread(void *unused)
{
    int dev_id = 99;

    (void) unused;
    CHECK(NULL == current());
    between_kinds();
    CHECK(NULL == current());
    EXPECT(OPAL_SUCCESS, m->get_device(&dev_id));
    EXPECT(0, dev_id);
    return NULL;
}

static void copies(void)
{
    pthread_t thread;

    begin();
    between_kinds();
    CHECK(primary[0] == current());
    EXPECT(CUDA_SUCCESS, driver->cuCtxSetCurrent(primary[1]));
    between_kinds();
    CHECK(primary[1] == current());
    EXPECT(0, pthread_create(&thread, NULL, in_thread, NULL));
    EXPECT(0, pthread_join(thread, NULL));
    component->accelerator_finalize(m);
    CHECK(primary[1] == current());
}

/* Four threads that have no context, at once. */
static void *many_copies(void *seed)
{
    unsigned char *a = make(POOL, 0), *b = make(DEVICE, 1);
    int i;

    for (i = 0; i < 30; ++i) {
        fill(a, (unsigned) (uintptr_t) seed + (unsigned) i);
        copy(b, a, SIZE);
        check_is(b, (unsigned) (uintptr_t) seed + (unsigned) i);
    }
    CHECK(NULL == current());
    return NULL;
}

static void threads(void)
{
    pthread_t thread[4];
    uintptr_t i;

    begin();
    for (i = 0; i < 4; ++i) {
        EXPECT(0, pthread_create(&thread[i], NULL, many_copies, (void *) (i * 1000)));
    }
    for (i = 0; i < 4; ++i) {
        EXPECT(0, pthread_join(thread[i], NULL));
    }
    component->accelerator_finalize(m);
}

static void moves(void)
{
    static const size_t shifts[] = {0, 1, 4097, SIZE / 2, SIZE - 1, SIZE};
    const size_t room = 3 * SIZE * 11;
    size_t i, size;
    int device, up, large;

    begin();
    for (device = 0; device < 2; ++device) {
        unsigned char *memory = NULL, *bytes = malloc(room), *got = malloc(room);

        EXPECT(OPAL_SUCCESS, m->mem_alloc(device, (void **) &memory, room));
        for (i = 0; i < sizeof(shifts) / sizeof(shifts[0]); ++i) {
            for (up = 0; up < 2; ++up) {
                for (large = 0; large < 2; ++large) {
                    const size_t to = up ? shifts[i] : 0, from = up ? 0 : shifts[i];

                    size = large ? 11 * SIZE : SIZE;
                    pattern(bytes, room, (unsigned) i);
                    copy(memory, bytes, room);
                    EXPECT(OPAL_SUCCESS,
                           m->mem_move(NONE, NONE, memory + to, memory + from, size, ANY));
                    memmove(bytes + to, bytes + from, size);
                    copy(got, memory, room);
                    CHECK(0 == memcmp(bytes, got, room));
                }
            }
        }
        EXPECT(OPAL_SUCCESS, m->mem_release(NONE, memory));
        EXPECT(OPAL_ERR_NOT_FOUND, m->mem_release(NONE, memory));
        free(bytes);
        free(got);
    }
}

static void wait_for(opal_accelerator_event_t *event)
{
    int rc;

    do {
        rc = m->query_event(NONE, event);
    } while (OPAL_ERR_RESOURCE_BUSY == rc);
    EXPECT(OPAL_SUCCESS, rc);
}

/* One stream of the framework: what comes later comes later, whatever device does it. */
static void streams(void)
{
    unsigned char *a, *b, *c, *pinned;
    opal_accelerator_stream_t *stream;
    opal_accelerator_event_t *event;
    bool busy = false;
    int i;

    begin();
    a = make(DEVICE, 0);
    b = make(POOL, 1);
    c = make(DEVICE, 0);
    pinned = make(PINNED, 0);
    EXPECT(OPAL_SUCCESS, m->create_stream(NONE, &stream));
    EXPECT(OPAL_SUCCESS, NEW_EVENT(&event));
    EXPECT(OPAL_ERR_BAD_PARAM, m->mem_copy_async(NONE, NONE, a, b, SIZE, NULL, ANY));
    EXPECT(OPAL_ERR_BAD_PARAM, m->record_event(NONE, event, NULL));
    EXPECT(OPAL_ERR_BAD_PARAM, m->query_event(NONE, NULL));
    for (i = 0; i < 40; ++i) {
        const unsigned seed = (unsigned) (i + 1);

        fill(a, seed);
        fill(b, 1000);
        fill(c, 1001);
        EXPECT(CUDA_SUCCESS, driver->cuCtxSetCurrent(0 == i % 3 ? NULL : primary[i % 2]));
        EXPECT(OPAL_SUCCESS, m->mem_copy_async(NONE, NONE, pinned, a, SIZE, stream, ANY));
        EXPECT(OPAL_SUCCESS, m->mem_copy_async(NONE, NONE, b, pinned, SIZE, stream, ANY));
        EXPECT(OPAL_SUCCESS, m->mem_copy_async(NONE, NONE, c, b, SIZE, stream, ANY));
        EXPECT(OPAL_SUCCESS, m->record_event(NONE, event, stream));
        busy = OPAL_ERR_RESOURCE_BUSY == m->query_event(NONE, event) || busy;
        wait_for(event);
        check_is(c, seed);
        check_is(b, seed);
    }
    CHECK(busy);
    /* The CPU's copy waits for the stream as well. */
    EXPECT(OPAL_SUCCESS, m->mem_copy_async(NONE, NONE, pinned, c, SIZE, stream, ANY));
    {
        unsigned char *heap = malloc(SIZE);

        EXPECT(OPAL_SUCCESS, m->mem_copy_async(NONE, NONE, heap, pinned, SIZE, stream, ANY));
        check_is(heap, 40);
        free(heap);
    }
    OBJ_RELEASE(event);
    OBJ_RELEASE(stream);
    component->accelerator_finalize(m);
}

#if UMRDDT_OPAL_RELEASE >= 600
/* What 6.0 adds: the default stream, streams that wait for events, overlapping moves, queries. */
static void later(void)
{
    opal_accelerator_stream_t *stream;
    opal_accelerator_event_t *event;
    unsigned char *a, *b, *bytes = malloc(SIZE), *wanted;
    ompi_memkind_t kind;
    void *made = NULL;
    float bw = 0;
    int n = -1;

    CHECK(NULL != load());
    EXPECT(OPAL_SUCCESS, m->num_devices(&n));
    EXPECT(0, n);
    EXPECT(OPAL_ERR_NOT_AVAILABLE, m->get_mem_bw(0, &bw));
    EXPECT(OPAL_SUCCESS, m->sync_stream(MCA_ACCELERATOR_STREAM_DEFAULT));
    component->accelerator_finalize(m);

    begin();
    EXPECT(OPAL_SUCCESS, m->num_devices(&n));
    EXPECT(2, n);
    EXPECT(OPAL_SUCCESS, m->get_mem_bw(0, &bw));
    CHECK(15.9f < bw && 16.1f > bw); /* of the software driver: 64 bits, 1 GHz */
    EXPECT(OPAL_ERR_BAD_PARAM, m->get_mem_bw(7, &bw));
    EXPECT(false, m->is_ipc_enabled());
    m->get_memkind(&kind);
    CHECK(0 == strcmp("cuda", kind.im_name) && 3 == kind.im_num_restrictors
          && 0 == strcmp("device", kind.im_restrictors[1]));

    a = make(DEVICE, 0);
    b = make(DEVICE, 1);
    EXPECT(OPAL_ERR_BAD_PARAM, m->sync_stream(NULL));
    EXPECT(OPAL_SUCCESS, m->create_stream(NONE, &stream));
    EXPECT(OPAL_SUCCESS, NEW_EVENT(&event));
    EXPECT(OPAL_SUCCESS, m->wait_event(NONE, event, stream)); /* not recorded */
    for (unsigned i = 1; i <= 20; ++i) {
        fill(a, i);
        fill(b, 1000);
        EXPECT(OPAL_SUCCESS,
               m->mem_copy_async(NONE, NONE, b, a, SIZE, MCA_ACCELERATOR_STREAM_DEFAULT, ANY));
        EXPECT(OPAL_SUCCESS, m->record_event(NONE, event, MCA_ACCELERATOR_STREAM_DEFAULT));
        EXPECT(OPAL_SUCCESS, m->wait_event(NONE, event, stream));
        EXPECT(OPAL_SUCCESS, m->mem_copy_async(NONE, NONE, bytes, b, SIZE, stream, ANY));
        EXPECT(OPAL_SUCCESS, m->sync_stream(stream));
        wanted = patterned(i);
        CHECK(0 == memcmp(wanted, bytes, SIZE));
        free(wanted);
    }
    EXPECT(OPAL_SUCCESS, m->mem_copy_async(NONE, NONE, a, bytes, SIZE, stream, ANY));
    EXPECT(OPAL_SUCCESS, m->mem_move_async(NONE, NONE, a + 5, a, SIZE - 5, stream, ANY));
    EXPECT(OPAL_SUCCESS, m->mem_move_async(NONE, NONE, b, a + 5, SIZE - 5, stream, ANY));
    EXPECT(OPAL_SUCCESS, m->sync_stream(stream));
    copy(bytes, b, SIZE - 5);
    wanted = patterned(20);
    CHECK(0 == memcmp(wanted, bytes, SIZE - 5));
    copy(bytes, a, SIZE);
    CHECK(0 == memcmp(wanted, bytes, 5) && 0 == memcmp(wanted, bytes + 5, SIZE - 5));
    free(wanted);
    EXPECT(OPAL_SUCCESS, m->mem_alloc_stream(0, &made, SIZE, stream));
    EXPECT(OPAL_SUCCESS, m->mem_copy_async(NONE, NONE, made, b, SIZE - 5, stream, ANY));
    EXPECT(OPAL_SUCCESS, m->mem_release_stream(0, made, stream));
    OBJ_RELEASE(event);
    OBJ_RELEASE(stream);
    free(bytes);
    component->accelerator_finalize(m);
}
#endif

/* Copies that the driver has returned from, and not finished, come first. */
static void late(void)
{
    unsigned char *bytes, *a, *b;
    int i;

    begin();
    bytes = malloc(SIZE);
    a = make(DEVICE, 0);
    b = make(DEVICE, 1);
    for (i = 0; i < 60; ++i) {
        pattern(bytes, SIZE, (unsigned) i);
        EXPECT(CUDA_SUCCESS, driver->cuMemcpyHtoD_v2((uintptr_t) a, bytes, SIZE));
        if (0 == i % 2) {
            check_is(a, (unsigned) i);
            continue;
        }
        copy(b, a, SIZE);
        check_is(b, (unsigned) i);
    }
}

/* A context of the application's that is destroyed, and one that is reset. */
static void gone(void)
{
    opal_accelerator_stream_t *stream;
    opal_accelerator_event_t *event;
    CUdeviceptr memory;
    unsigned char *other;
    CUcontext own;
    int i;

    begin();
    other = make(DEVICE, 1);
    EXPECT(OPAL_SUCCESS, m->create_stream(NONE, &stream));
    EXPECT(OPAL_SUCCESS, NEW_EVENT(&event));
    for (i = 0; i < 3; ++i) {
        EXPECT(CUDA_SUCCESS, driver->cuCtxCreate_v2(&own, 0, 0));
        EXPECT(CUDA_SUCCESS, driver->cuMemAlloc_v2(&memory, SIZE));
        EXPECT(CUDA_SUCCESS, driver->cuCtxPopCurrent_v2(&own));
        fill((unsigned char *) (uintptr_t) memory, (unsigned) i);
        check_is((unsigned char *) (uintptr_t) memory, (unsigned) i);
        EXPECT(OPAL_SUCCESS, m->mem_copy_async(NONE, NONE, other, (void *) (uintptr_t) memory, SIZE,
                                               stream, ANY));
        EXPECT(OPAL_SUCCESS, m->mem_copy_async(NONE, NONE, (void *) (uintptr_t) memory, other, SIZE,
                                               stream, ANY));
        EXPECT(OPAL_SUCCESS, m->record_event(NONE, event, stream));
        wait_for(event);
        check_is(other, (unsigned) i);
        EXPECT(CUDA_SUCCESS, driver->cuCtxDestroy_v2(own));
        EXPECT(OPAL_ERROR, m->query_event(NONE, event));
        fill(other, 77);
        check_is(other, 77);
    }
    EXPECT(CUDA_SUCCESS, driver->cuDevicePrimaryCtxReset_v2(1));
    EXPECT(CUDA_SUCCESS, driver->cuDevicePrimaryCtxRetain(&primary[1], 1));
    other = make(POOL, 1);
    fill(other, 78);
    check_is(other, 78);
    OBJ_RELEASE(event);
    OBJ_RELEASE(stream);
    component->accelerator_finalize(m);
}

static void registered(void)
{
    unsigned char *heap;
    int device, dev_id;
    unsigned flags;
    uint64_t f;

    begin();
    for (device = NONE; device < 2; ++device) {
        heap = malloc(SIZE);
        EXPECT(CUDA_SUCCESS, driver->cuCtxSetCurrent(0 == device ? NULL : primary[0]));
        EXPECT(OPAL_SUCCESS, m->host_register(device, heap, SIZE));
        EXPECT(OPAL_ERROR, m->host_register(device, heap, SIZE));
        EXPECT(CUDA_SUCCESS, driver->cuCtxSetCurrent(primary[1]));
        EXPECT(CUDA_SUCCESS, driver->cuMemHostGetFlags(&flags, heap));
        CHECK(0 != (flags & CU_MEMHOSTREGISTER_PORTABLE));
        EXPECT(0, m->check_addr(heap, &dev_id, &f));
        EXPECT(CUDA_SUCCESS, driver->cuCtxSetCurrent(NULL));
        EXPECT(OPAL_SUCCESS, m->host_unregister(device, heap));
        EXPECT(OPAL_ERR_NOT_FOUND, m->host_unregister(device, heap));
        free(heap);
    }
}

/* What cannot be done is an error, and the next copy is none. */
static void refused(void)
{
    unsigned char *memory, *heap = calloc(1, SIZE + 1);
    void *made = NULL;

    begin();
    memory = make(DEVICE, 0);
    EXPECT(OPAL_ERROR, m->mem_copy(NONE, NONE, heap, memory, SIZE + 1, ANY));
    EXPECT(OPAL_ERR_BAD_PARAM, m->mem_alloc(devices, &made, 8));
    EXPECT(OPAL_ERR_BAD_PARAM, m->mem_alloc(0, &made, 0));
    EXPECT(OPAL_ERR_OUT_OF_RESOURCE, m->mem_alloc(0, &made, (size_t) 1 << 50));
    CHECK(NULL == made);
    EXPECT(OPAL_ERR_BAD_PARAM, m->create_stream(NONE, NULL));
    EXPECT(OPAL_ERR_BAD_PARAM, NEW_EVENT(NULL));
    EXPECT(OPAL_ERR_BAD_PARAM, m->get_device(NULL));
    fill(memory, 5);
    check_is(memory, 5);
}

/* Memory of another process, which the application opened. */
static void imported(void)
{
    owner_t owner;
    owner_memory_t theirs;
    CUdeviceptr opened = 0;
    CUipcMemHandle handle;
    uint64_t flags;
    int dev_id = 99;

    begin();
    owner = owner_start(NULL, "");
    theirs = owner_alloc(&owner, OWNER_DEVICE, 1, SIZE, 42);
    EXPECT(OPAL_SUCCESS, owner_export(&owner, &theirs));
    memcpy(&handle, theirs.export.handle, sizeof(handle));
    EXPECT(CUDA_SUCCESS, driver->cuCtxSetCurrent(primary[1]));
    EXPECT(CUDA_SUCCESS, driver->cuIpcOpenMemHandle_v2(&opened, handle, 1));
    EXPECT(CUDA_SUCCESS, driver->cuCtxSetCurrent(NULL));
    EXPECT(1, m->check_addr((void *) (uintptr_t) opened, &dev_id, &flags));
    EXPECT(1, dev_id);
    fill((unsigned char *) (uintptr_t) opened, 6);
    check_is((unsigned char *) (uintptr_t) opened, 6);
    CHECK(!owner_is(&owner, &theirs, 42));
    owner_end(&owner);
}

static const gpu_test_part_t parts[] = {
    {"without", without, NULL},
    {"before", before, "devices=2"},
    {"questions", questions, "devices=2"},
    {"copies", copies, "devices=2"},
    {"threads", threads, "devices=2"},
    {"moves", moves, "devices=2"},
    {"streams", streams, "devices=2,delay=300"},
#if UMRDDT_OPAL_RELEASE >= 600
    {"later", later, "devices=2,delay=300"},
#endif
    {"late", late, "devices=2,delay=500"},
    {"gone", gone, "devices=2,crash=1"},
    {"registered", registered, "devices=2"},
    {"refused", refused, "devices=2"},
    {"imported", imported, "devices=2"},
};

int main(int argc, char **argv)
{
    if (3 == argc && 0 == strcmp(argv[1], "owner")) {
        return owner_main(atoi(argv[2]));
    }
    return gpu_test_main(argc, argv, parts, sizeof(parts) / sizeof(parts[0]));
}
