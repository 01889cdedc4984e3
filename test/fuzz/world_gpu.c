/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * GPUs: common/umrddt_gpu runs unchanged on the software CUDA driver, whose memory the CPU cannot
 * access. Another process has memory there, which the input lets the peer describe. Only the
 * completion of copies, and refusals, are simulated; the source and the target of each copy are
 * checked first.
 */

#include "world.h"

#include <fcntl.h>
#include <unistd.h>

#include "umrddt_cuda_all.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_engine.h"

#include "fuzz_cuda.h"
#include "ompi/mca/pml/umrddt/pml_umrddt.h"
#include "opal/mca/common/umrddt_gpu/staging/umrddt_gpu_stream.h"
#include "opal/mca/common/umrddt_gpu/ipc/umrddt_done_flag.h"

#define DEVICES 2

#define OK(call) FUZZ_CHECK(CUDA_SUCCESS == all->call)

opal_umrddt_gpu_export_t world_owned[WORLD_OWNED];

/* A copy is done when it is requested, so that each input has the same result each time; its
 * completion is reported later. */
typedef struct played_t {
    bool here;
    int status;
    uint32_t over; /* 1: yes */
} played_t;

static const opal_umrddt_gpu_driver_t *driver; /* for the components */
static const umrddt_cuda_all_t *all;           /* for this file */
static CUdeviceptr buffers[DEVICES];

/* Scratch buffers that the component has now */
static struct {
    CUdeviceptr base;
    size_t size; /* 0: this entry is free */
} scratches[WORLD_MANY];

static played_t copies[WORLD_MANY];

/* In the engine, which may make a copy of several. */
static bool inside;

/* ---- the other process ---- */

/* Its allocations, each of one value; then it lives as long as its parent. */
static void own(int to, int parent)
{
    static const struct {
        int device;
        size_t size;
    } wanted[WORLD_OWNED] = {{0, 20000}, {1, 400000}, {0, 400000}};
    opal_umrddt_gpu_export_t exports[WORLD_OWNED];
    char end;

    FUZZ_CHECK(OPAL_SUCCESS == umrddt_cuda_all_load(&all));
    OK(cuInit(0));
    for (int i = 0; i < WORLD_OWNED; ++i) {
        opal_umrddt_gpu_memory_t memory;
        CUdeviceptr address;
        CUcontext ctx;

        OK(cuDevicePrimaryCtxRetain(&ctx, wanted[i].device));
        OK(cuCtxSetCurrent(ctx));
        OK(cuMemAlloc_v2(&address, wanted[i].size));
        OK(cuMemsetD8_v2(address, (unsigned char) (1 + i), wanted[i].size));
        OK(cuCtxSynchronize());
        FUZZ_CHECK(OPAL_SUCCESS == opal_umrddt_gpu_classify((void *) address, &memory)
                   && OPAL_SUCCESS == opal_umrddt_gpu_export(&memory, &exports[i]));
    }
    FUZZ_CHECK(sizeof(exports) == write(to, exports, sizeof(exports)));
    (void) !read(parent, &end, 1);
    _exit(0);
}

void world_gpu_begin(char **argv)
{
    int said[2], alive[2];
    pid_t pid;

    fuzz_cuda(argv);
    FUZZ_CHECK(0 == pipe2(said, O_CLOEXEC) && 0 == pipe2(alive, O_CLOEXEC));
    pid = fork();
    FUZZ_CHECK(0 <= pid);
    if (0 == pid) {
        close(alive[1]);
        own(said[1], alive[0]);
    }
    close(said[1]);
    close(alive[0]);
    FUZZ_CHECK(sizeof(world_owned) == read(said[0], world_owned, sizeof(world_owned)));
    close(said[0]);
}

/* ---- this one ---- */

void world_gpu_open(void)
{
    FUZZ_CHECK(OPAL_SUCCESS == opal_umrddt_gpu_driver_load(&driver)
               && OPAL_SUCCESS == umrddt_cuda_all_load(&all));
    OK(cuInit(0));
    for (int i = DEVICES; 0 < i--;) {
        unsigned int sync = 1;
        CUcontext ctx;

        OK(cuDevicePrimaryCtxRetain(&ctx, i));
        OK(cuCtxSetCurrent(ctx));
        OK(cuMemAlloc_v2(&buffers[i], WORLD_ROOM));
        /* data that the base PML delivers is complete with the message, as with PMLs that support
         * CUDA */
        OK(cuPointerSetAttribute(&sync, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, buffers[i]));
        OK(cuMemsetD8_v2(buffers[i], 0, WORLD_ROOM));
        OK(cuCtxSynchronize());
    }
}

const opal_umrddt_gpu_driver_t *world_gpu_driver(void)
{
    return driver;
}

unsigned char *world_gpu_buffer(uint32_t i)
{
    return (unsigned char *) (uintptr_t) buffers[i % DEVICES];
}

/* Set *size to that of the memory of ours on a device that this is in, and return where it begins;
 * 0: none. Packed chunks are in scratch buffers. */
static CUdeviceptr memory_of(const void *address, size_t *size)
{
    for (int i = 0; i < DEVICES; ++i) {
        if (WORLD_ROOM > (uintptr_t) address - buffers[i]) {
            *size = WORLD_ROOM;
            return buffers[i];
        }
    }
    for (int i = 0; i < WORLD_MANY; ++i) {
        if (scratches[i].size > (uintptr_t) address - scratches[i].base) {
            *size = scratches[i].size;
            return scratches[i].base;
        }
    }
    return 0;
}

void world_gpu_seen(const void *address)
{
    opal_umrddt_gpu_memory_t memory;
    size_t size;

    if (world.gpu) {
        FUZZ_CHECK(OPAL_SUCCESS == opal_umrddt_gpu_classify(address, &memory)
                   && (OPAL_UMRDDT_GPU_DEVICE != memory.kind
                       || (MCA_PML_UMRDDT_BASE_GPU_ALL == mca_pml_umrddt.base_gpu
                           && 0 != memory_of(address, &size))));
    }
}

void world_unpack(void *buf, size_t count, ompi_datatype_t *datatype, const void *bytes,
                  size_t length)
{
    static unsigned char copy[WORLD_ROOM];
    size_t size = 0;
    CUdeviceptr of = world.gpu ? memory_of(buf, &size) : 0;

    if (0 == of) {
        opal_umrddt_gpu_stream_unpack(buf, count, &datatype->super, bytes, length);
        return;
    }
    FUZZ_CHECK(sizeof(copy) >= size);
    OK(cuMemcpy((uintptr_t) copy, of, size));
    opal_umrddt_gpu_stream_unpack(copy + ((uintptr_t) buf - of), count, &datatype->super, bytes,
                                  length);
    OK(cuMemcpy(of, (uintptr_t) copy, size));
}

void world_gpu_reset(void)
{
    opal_umrddt_gpu_ipc_stats_t stats;

    opal_umrddt_gpu_ipc_forget(OPAL_UMRDDT_GPU_ALL_PEERS);
    opal_umrddt_gpu_ipc_stats(&stats);
    FUZZ_CHECK(0 == stats.open_now && 0 == stats.bytes_now && 0 == world.copies_now);
}

/* ---- scratch buffers ---- */

int __real_opal_umrddt_gpu_scratch_get(opal_umrddt_gpu_engine_t *engine, size_t size,
                                       uint64_t *address);
int __wrap_opal_umrddt_gpu_scratch_get(opal_umrddt_gpu_engine_t *engine, size_t size,
                                       uint64_t *address);
int __wrap_opal_umrddt_gpu_scratch_get(opal_umrddt_gpu_engine_t *engine, size_t size,
                                       uint64_t *address)
{
    int i = 0, rc = __real_opal_umrddt_gpu_scratch_get(engine, size, address);

    if (OPAL_SUCCESS == rc) {
        while (WORLD_MANY > i && 0 != scratches[i].size) {
            ++i;
        }
        FUZZ_CHECK(WORLD_MANY > i);
        scratches[i].base = *address;
        scratches[i].size = size;
    }
    return rc;
}

void __real_opal_umrddt_gpu_scratch_put(uint64_t address);
void __wrap_opal_umrddt_gpu_scratch_put(uint64_t address);
void __wrap_opal_umrddt_gpu_scratch_put(uint64_t address)
{
    int i = 0;

    while (WORLD_MANY > i && (0 == scratches[i].size || address != scratches[i].base)) {
        ++i;
    }
    FUZZ_CHECK(WORLD_MANY > i); /* released twice? */
    scratches[i].size = 0;
    __real_opal_umrddt_gpu_scratch_put(address);
}

/* ---- what is refused ---- */

int __real_opal_umrddt_gpu_engine_get(const opal_umrddt_gpu_memory_t *memory,
                                      opal_umrddt_gpu_engine_t **engine);
int __wrap_opal_umrddt_gpu_engine_get(const opal_umrddt_gpu_memory_t *memory,
                                      opal_umrddt_gpu_engine_t **engine);
int __wrap_opal_umrddt_gpu_engine_get(const opal_umrddt_gpu_memory_t *memory,
                                      opal_umrddt_gpu_engine_t **engine)
{
    if (0 < world.refuse_engines) {
        --world.refuse_engines;
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    return __real_opal_umrddt_gpu_engine_get(memory, engine);
}

int __real_opal_umrddt_gpu_import(opal_umrddt_gpu_engine_t *engine, uint64_t peer,
                                  const opal_umrddt_gpu_export_t *from,
                                  opal_umrddt_gpu_import_t **import);
int __wrap_opal_umrddt_gpu_import(opal_umrddt_gpu_engine_t *engine, uint64_t peer,
                                  const opal_umrddt_gpu_export_t *from,
                                  opal_umrddt_gpu_import_t **import);
int __wrap_opal_umrddt_gpu_import(opal_umrddt_gpu_engine_t *engine, uint64_t peer,
                                  const opal_umrddt_gpu_export_t *from,
                                  opal_umrddt_gpu_import_t **import)
{
    /* a handle from a remote node is never valid */
    FUZZ_CHECK(world.peer->same_host);
    if (0 < world.refuse_imports) {
        return 0 != (--world.refuse_imports & 1) ? OPAL_ERR_NOT_SUPPORTED
                                                 : OPAL_ERR_OUT_OF_RESOURCE;
    }
    return __real_opal_umrddt_gpu_import(engine, peer, from, import);
}

opal_umrddt_done_flags_t *__real_opal_umrddt_done_flags_map(uint32_t pid, uint32_t fd,
                                                            const uint8_t *cookie);
opal_umrddt_done_flags_t *__wrap_opal_umrddt_done_flags_map(uint32_t pid, uint32_t fd,
                                                            const uint8_t *cookie);
/* Nothing of any other process is looked at, whatever number the input makes up. */
opal_umrddt_done_flags_t *__wrap_opal_umrddt_done_flags_map(uint32_t pid, uint32_t fd,
                                                            const uint8_t *cookie)
{
    FUZZ_CHECK(world.peer->same_host);
    return (uint32_t) getpid() == pid ? __real_opal_umrddt_done_flags_map(pid, fd, cookie) : NULL;
}

/* ---- copies ---- */

/* All of a place is in one allocation: ours, or one of the peer's that is open. */
static void check_slot(const opal_umrddt_gpu_copy_end_t *slot, uint64_t start, uint64_t end)
{
    uint64_t low = slot->address, high = slot->address + (end - start), next = start;
    opal_umrddt_gpu_memory_t memory;

    if (OPAL_UMRDDT_GPU_DEVICE != slot->kind) {
        return;
    }
    if (NULL != slot->layout) {
        FUZZ_CHECK(NULL == opal_iov_cache_form_check(slot->layout->form)
                   && end <= slot->layout->size);
        low = UINT64_MAX;
        high = 0;
    }
    while (NULL != slot->layout && next < end) {
        opal_iov_cache_iov_t iovs[128];
        size_t count = opal_iov_cache_form_iovs(slot->layout->form, next, end, iovs, 128, &next);

        for (size_t i = 0; i < count; ++i) {
            uint64_t at = slot->address + (uint64_t) iovs[i].offset;

            low = at < low ? at : low;
            high = at + iovs[i].length > high ? at + iovs[i].length : high;
        }
    }
    FUZZ_CHECK(OPAL_SUCCESS == opal_umrddt_gpu_classify((void *) (uintptr_t) low, &memory)
               && OPAL_UMRDDT_GPU_DEVICE == memory.kind && low >= memory.base
               && high - memory.base <= memory.size);
}

int __real_opal_umrddt_gpu_copy(opal_umrddt_gpu_engine_t *engine,
                                const opal_umrddt_gpu_copy_end_t *from,
                                const opal_umrddt_gpu_copy_end_t *to, uint64_t start, uint64_t end,
                                opal_umrddt_gpu_copy_t **copy);
int __real_opal_umrddt_gpu_copy_wait(opal_umrddt_gpu_copy_t *copy);
int __wrap_opal_umrddt_gpu_copy(opal_umrddt_gpu_engine_t *engine,
                                const opal_umrddt_gpu_copy_end_t *from,
                                const opal_umrddt_gpu_copy_end_t *to, uint64_t start, uint64_t end,
                                opal_umrddt_gpu_copy_t **copy);
int __wrap_opal_umrddt_gpu_copy(opal_umrddt_gpu_engine_t *engine,
                                const opal_umrddt_gpu_copy_end_t *from,
                                const opal_umrddt_gpu_copy_end_t *to, uint64_t start, uint64_t end,
                                opal_umrddt_gpu_copy_t **copy)
{
    opal_umrddt_gpu_copy_t *real;
    played_t *played = copies;
    int rc;

    if (inside) {
        return __real_opal_umrddt_gpu_copy(engine, from, to, start, end, copy);
    }
    FUZZ_CHECK(start < end);
    check_slot(from, start, end);
    check_slot(to, start, end);
    while (played->here) {
        ++played;
        FUZZ_CHECK(&copies[WORLD_MANY] > played);
    }
    if (0 < world.refuse_copies) {
        return 0 != (--world.refuse_copies & 1) ? OPAL_ERROR : OPAL_ERR_OUT_OF_RESOURCE;
    }
    inside = true;
    rc = __real_opal_umrddt_gpu_copy(engine, from, to, start, end, &real);
    /* there is memory, and the driver is well */
    FUZZ_CHECK(OPAL_SUCCESS == rc && OPAL_SUCCESS == __real_opal_umrddt_gpu_copy_wait(real));
    inside = false;
    *played = (played_t){true, OPAL_SUCCESS, !world.slow_copies};
    ++world.copies_now;
    *copy = (opal_umrddt_gpu_copy_t *) played;
    return OPAL_SUCCESS;
}

int __wrap_opal_umrddt_gpu_copy_later(opal_umrddt_gpu_engine_t *engine,
                                      const opal_umrddt_gpu_copy_end_t *from,
                                      const opal_umrddt_gpu_copy_end_t *to, uint64_t start,
                                      uint64_t end, opal_umrddt_gpu_copy_t **copy);
int __wrap_opal_umrddt_gpu_copy_later(opal_umrddt_gpu_engine_t *engine,
                                      const opal_umrddt_gpu_copy_end_t *from,
                                      const opal_umrddt_gpu_copy_end_t *to, uint64_t start,
                                      uint64_t end, opal_umrddt_gpu_copy_t **copy)
{
    return __wrap_opal_umrddt_gpu_copy(engine, from, to, start, end, copy);
}

int __wrap_opal_umrddt_gpu_copy_wait(opal_umrddt_gpu_copy_t *copy);
int __wrap_opal_umrddt_gpu_copy_wait(opal_umrddt_gpu_copy_t *copy)
{
    played_t *played = (played_t *) copy;

    if (inside) {
        return __real_opal_umrddt_gpu_copy_wait(copy);
    }
    FUZZ_CHECK(copies <= played && &copies[WORLD_MANY] > played && played->here);
    played->here = false;
    --world.copies_now;
    return played->status;
}

int __real_opal_umrddt_gpu_copy_test(opal_umrddt_gpu_copy_t *copy);
int __wrap_opal_umrddt_gpu_copy_test(opal_umrddt_gpu_copy_t *copy);
int __wrap_opal_umrddt_gpu_copy_test(opal_umrddt_gpu_copy_t *copy)
{
    if (inside) {
        return __real_opal_umrddt_gpu_copy_test(copy);
    }
    return 0 != ((played_t *) copy)->over ? __wrap_opal_umrddt_gpu_copy_wait(copy)
                                          : OPAL_ERR_RESOURCE_BUSY;
}

bool __real_opal_umrddt_gpu_copy_flag(opal_umrddt_gpu_copy_t *copy, const volatile uint32_t **flag,
                                      uint32_t *until);
bool __wrap_opal_umrddt_gpu_copy_flag(opal_umrddt_gpu_copy_t *copy, const volatile uint32_t **flag,
                                      uint32_t *until);
bool __wrap_opal_umrddt_gpu_copy_flag(opal_umrddt_gpu_copy_t *copy, const volatile uint32_t **flag,
                                      uint32_t *until)
{
    if (inside) {
        return __real_opal_umrddt_gpu_copy_flag(copy, flag, until);
    }
    *flag = &((played_t *) copy)->over;
    *until = 1;
    return true;
}

bool world_copy_done(uint32_t i, int status)
{
    played_t *found[WORLD_MANY];
    uint32_t count = 0;

    for (uint32_t j = 0; j < WORLD_MANY; ++j) {
        if (copies[j].here && 0 == copies[j].over) {
            found[count++] = &copies[j];
        }
    }
    if (0 == count) {
        return false;
    }
    found[i % count]->over = 1;
    found[i % count]->status = status;
    return true;
}
