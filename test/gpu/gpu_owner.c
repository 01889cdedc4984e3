/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "gpu_owner.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>

#include "opal/constants.h"
#include "umrddt_cuda_all.h"

static const umrddt_cuda_all_t *driver;

#define OK(call) EXPECT(CUDA_SUCCESS, driver->call)

const umrddt_cuda_all_t *owner_driver(void)
{
    EXPECT(OPAL_SUCCESS, umrddt_cuda_all_load(&driver));
    OK(cuInit(0));
    return driver;
}

/* ---- engines ---- */

struct opal_umrddt_gpu_engine_t {
    int device;
    CUcontext ctx;
    CUdeviceptr witness; /* memory of the context, which goes with it, and its BUFFER_ID */
    uint64_t witness_id;
};

static uint64_t id_of(CUdeviceptr address)
{
    uint64_t id = 0;

    return CUDA_SUCCESS
                   == driver->cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, address)
               ? id
               : 0;
}

opal_umrddt_gpu_engine_t *engine_make(int device)
{
    opal_umrddt_gpu_engine_t *engine = calloc(1, sizeof(*engine));
    CUcontext ctx;

    CHECK(NULL != engine);
    (void) owner_driver();
    engine->device = device;
    OK(cuCtxCreate_v2(&engine->ctx, 0, device));
    OK(cuMemAlloc_v2(&engine->witness, sizeof(uint64_t)));
    engine->witness_id = id_of(engine->witness);
    CHECK(0 != engine->witness_id);
    OK(cuCtxPopCurrent_v2(&ctx));
    return engine;
}

void engine_break(opal_umrddt_gpu_engine_t *engine)
{
    OK(cuCtxDestroy_v2(engine->ctx));
}

int opal_umrddt_gpu_engine_device(const opal_umrddt_gpu_engine_t *engine)
{
    return engine->device;
}

CUcontext opal_umrddt_gpu_engine_context(const opal_umrddt_gpu_engine_t *engine)
{
    return engine->ctx;
}

bool opal_umrddt_gpu_engine_is_there(const opal_umrddt_gpu_engine_t *engine)
{
    return engine->witness_id == id_of(engine->witness);
}

int opal_umrddt_gpu_engine_enter(opal_umrddt_gpu_engine_t *engine)
{
    return CUDA_SUCCESS == driver->cuCtxPushCurrent_v2(engine->ctx) ? OPAL_SUCCESS : OPAL_ERROR;
}

void opal_umrddt_gpu_engine_leave(opal_umrddt_gpu_engine_t *engine)
{
    CUcontext ctx = NULL;

    OK(cuCtxPopCurrent_v2(&ctx));
    CHECK(ctx == engine->ctx);
}

static bool sees(uint64_t address, size_t size, int value)
{
    unsigned char *bytes = malloc(size);
    size_t i;

    CHECK(NULL != bytes);
    OK(cuMemcpy((uintptr_t) bytes, address, size));
    for (i = 0; i < size && (unsigned char) value == bytes[i]; i++) {
    }
    free(bytes);
    return size == i;
}

bool engine_sees(opal_umrddt_gpu_engine_t *engine, uint64_t address, size_t size, int value)
{
    bool same;

    EXPECT(OPAL_SUCCESS, opal_umrddt_gpu_engine_enter(engine));
    same = sees(address, size, value);
    opal_umrddt_gpu_engine_leave(engine);
    return same;
}

static void fill(uint64_t address, size_t size, int value)
{
    OK(cuMemsetD8_v2(address, (unsigned char) value, size));
    OK(cuCtxSynchronize());
}

void engine_fill(opal_umrddt_gpu_engine_t *engine, uint64_t address, size_t size, int value)
{
    EXPECT(OPAL_SUCCESS, opal_umrddt_gpu_engine_enter(engine));
    fill(address, size, value);
    opal_umrddt_gpu_engine_leave(engine);
}

/* ---- there ---- */

enum {
    ALLOC,
    FREE,
    IS,
    EXPORT,
    EXPORT_AGAIN,
    STATS,
    BOUND,
    DEVICES
};

typedef struct message_t {
    int what;
    int device;
    int value;
    int rc;
    owner_memory_t memory;
    opal_umrddt_gpu_ipc_stats_t stats;
} message_t;

#define GRANULE ((size_t) 2 << 20)

static CUdeviceptr map(int device)
{
    CUmemAllocationProp prop;
    CUmemAccessDesc access;
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address;

    memset(&prop, 0, sizeof(prop));
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = device;
    OK(cuMemCreate(&handle, GRANULE, &prop, 0));
    OK(cuMemAddressReserve(&address, GRANULE, 0, 0, 0));
    OK(cuMemMap(address, GRANULE, 0, handle, 0));
    memset(&access, 0, sizeof(access));
    access.location = prop.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    OK(cuMemSetAccess(address, GRANULE, &access, 1));
    return address;
}

static void allocate(message_t *message)
{
    owner_memory_t *memory = &message->memory;
    CUdeviceptr address = 0;
    void *host = NULL;
    CUcontext ctx;

    OK(cuDevicePrimaryCtxRetain(&ctx, message->device));
    OK(cuCtxSetCurrent(ctx));
    switch (memory->kind) {
    case OWNER_DEVICE:
        OK(cuMemAlloc_v2(&address, memory->size));
        break;
    case OWNER_POOL:
        OK(cuMemAllocAsync(&address, memory->size, NULL));
        OK(cuStreamSynchronize(NULL));
        break;
    case OWNER_VMM:
        address = map(message->device);
        break;
    case OWNER_MANAGED:
        OK(cuMemAllocManaged(&address, memory->size, CU_MEM_ATTACH_GLOBAL));
        break;
    case OWNER_PINNED:
        OK(cuMemHostAlloc(&host, memory->size, 0));
        break;
    default:
        host = malloc(memory->size);
        CHECK(NULL != host);
        if (OWNER_REGISTERED == memory->kind) {
            OK(cuMemHostRegister_v2(host, memory->size, 0));
        }
        break;
    }
    memory->address = NULL == host ? address : (uintptr_t) host;
    if (OWNER_HOST == memory->kind) {
        memset(host, message->value, memory->size);
    } else {
        fill(memory->address, memory->size, message->value);
    }
}

static void handle(message_t *message)
{
    owner_memory_t *memory = &message->memory;
    opal_umrddt_gpu_ipc_params_t params = {0, 0, 0};
    CUcontext before = NULL;

    switch (message->what) {
    case ALLOC:
        allocate(message);
        break;
    case FREE:
        OK(cuMemFree_v2(memory->address));
        break;
    case IS:
        message->rc = sees(memory->address, memory->size, message->value);
        break;
    case EXPORT:
        EXPECT(OPAL_SUCCESS, opal_umrddt_gpu_classify((void *) memory->address, &memory->memory));
        /* fall through */
    case EXPORT_AGAIN:
        /* As from a thread that has no context. */
        OK(cuCtxPopCurrent_v2(&before));
        message->rc = opal_umrddt_gpu_export(&memory->memory, &memory->export);
        OK(cuCtxPushCurrent_v2(before));
        break;
    case STATS:
        opal_umrddt_gpu_ipc_stats(&message->stats);
        break;
    case BOUND:
        params.exports = (unsigned) message->value;
        opal_umrddt_gpu_ipc_params(&params);
        break;
    case DEVICES:
        OK(cuDeviceGetCount(&message->rc));
        break;
    default:
        CHECK(0);
    }
}

int owner_main(int fd)
{
    message_t message;

    (void) owner_driver();
    while (sizeof(message) == read(fd, &message, sizeof(message))) {
        handle(&message);
        CHECK(sizeof(message) == write(fd, &message, sizeof(message)));
    }
    return 0;
}

/* ---- here ---- */

owner_t owner_start(const char *visible_devices, const char *options)
{
    char number[16];
    char self[4096] = "";
    char *args[] = {self, (char *) "owner", number, NULL};
    owner_t owner;
    int fds[2];

    /* An owner ends when no process can send it commands: others must not inherit this end. */
    CHECK(0 == socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds));
    owner.pid = fork();
    CHECK(-1 != owner.pid);
    if (0 == owner.pid) {
        snprintf(number, sizeof(number), "%d", fds[1]);
        CHECK(0 == fcntl(fds[1], F_SETFD, 0));
        gpu_test_options(NULL == options ? "" : options);
        if (NULL != visible_devices) {
            setenv("CUDA_VISIBLE_DEVICES", visible_devices, 1);
        } else {
            unsetenv("CUDA_VISIBLE_DEVICES");
        }
        /* Not as /proc/self/exe: that may be a tool that runs the test. */
        CHECK(0 < readlink("/proc/self/exe", self, sizeof(self) - 1));
        execv(self, args);
        _exit(99);
    }
    close(fds[1]);
    owner.fd = fds[0];
    return owner;
}

void owner_end(owner_t *owner)
{
    int status;

    close(owner->fd);
    CHECK(owner->pid == waitpid(owner->pid, &status, 0) && 0 == status);
}

void owner_kill(owner_t *owner)
{
    int status;

    kill(owner->pid, SIGKILL);
    CHECK(owner->pid == waitpid(owner->pid, &status, 0));
    close(owner->fd);
}

static message_t ask(owner_t *owner, const message_t *question)
{
    message_t answer;

    CHECK(sizeof(*question) == send(owner->fd, question, sizeof(*question), MSG_NOSIGNAL));
    CHECK(sizeof(answer) == recv(owner->fd, &answer, sizeof(answer), 0));
    return answer;
}

static message_t query_about(owner_t *owner, int what, const owner_memory_t *memory, int value)
{
    message_t question;

    memset(&question, 0, sizeof(question));
    question.what = what;
    question.value = value;
    if (NULL != memory) {
        question.memory = *memory;
    }
    return ask(owner, &question);
}

int owner_devices(owner_t *owner)
{
    return query_about(owner, DEVICES, NULL, 0).rc;
}

owner_memory_t owner_alloc(owner_t *owner, owner_kind_t kind, int device, size_t size, int value)
{
    message_t question;

    memset(&question, 0, sizeof(question));
    question.what = ALLOC;
    question.device = device;
    question.value = value;
    question.memory.kind = kind;
    question.memory.size = size;
    return ask(owner, &question).memory;
}

bool owner_alloc_at(owner_t *owner, const owner_memory_t *old, int value, owner_memory_t *memory)
{
    int i;

    for (i = 0; i < 8; i++) {
        *memory = owner_alloc(owner, old->kind, 0, old->size, value);
        if (old->address == memory->address) {
            return true;
        }
    }
    return false;
}

void owner_free(owner_t *owner, const owner_memory_t *memory)
{
    (void) query_about(owner, FREE, memory, 0);
}

bool owner_is(owner_t *owner, const owner_memory_t *memory, int value)
{
    return 0 != query_about(owner, IS, memory, value).rc;
}

int owner_export(owner_t *owner, owner_memory_t *memory)
{
    message_t answer = query_about(owner, EXPORT, memory, 0);

    *memory = answer.memory;
    return answer.rc;
}

int owner_export_again(owner_t *owner, owner_memory_t *memory)
{
    message_t answer = query_about(owner, EXPORT_AGAIN, memory, 0);

    *memory = answer.memory;
    return answer.rc;
}

opal_umrddt_gpu_ipc_stats_t owner_stats(owner_t *owner)
{
    return query_about(owner, STATS, NULL, 0).stats;
}

void owner_bound(owner_t *owner, unsigned exports)
{
    (void) query_about(owner, BOUND, NULL, (int) exports);
}
