/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Imports and exports, on the software CUDA driver: a driver that refuses, descriptions that were
 * damaged, owners that lie, threads. Handles that were made up: test_imports_forged.
 */

#include "gpu_owner.h"

#include <pthread.h>

#include "opal/constants.h"
#include "umrddt_cuda_all.h"
#include "umrddt_compat.h"

#define SIZE 10000

static opal_umrddt_gpu_ipc_stats_t stats(void)
{
    opal_umrddt_gpu_ipc_stats_t now;

    opal_umrddt_gpu_ipc_stats(&now);
    return now;
}

static owner_memory_t exported(owner_t *owner, size_t size, int value)
{
    owner_memory_t memory = owner_alloc(owner, OWNER_DEVICE, 0, size, value);

    EXPECT(OPAL_SUCCESS, owner_export(owner, &memory));
    return memory;
}

/* Import, look, release; or the error. */
static int try(opal_umrddt_gpu_engine_t *engine, uint64_t peer, const owner_memory_t *memory,
               int value)
{
    opal_umrddt_gpu_import_t *opened = NULL;
    int rc = opal_umrddt_gpu_import(engine, peer, &memory->export, &opened);

    if (OPAL_SUCCESS == rc) {
        uint64_t address = opal_umrddt_gpu_import_address(opened, memory->address,
                                                          memory->address + memory->size, NULL);

        CHECK(0 != address && engine_sees(engine, address, memory->size, value));
        opal_umrddt_gpu_import_release(opened);
    } else {
        CHECK(NULL == opened);
    }
    return rc;
}

/* ---- a driver that refuses ---- */

static void no_handle(void)
{
    owner_t owner = owner_start(NULL, "fail=cuIpcGetMemHandle:1:801,fail=cuIpcGetMemHandle:2:2,"
                                      "fail=cuIpcGetMemHandle:3:999");
    owner_memory_t memory = owner_alloc(&owner, OWNER_DEVICE, 0, SIZE, 1);

    if (gpu_test_real()) {
        return; /* faults on demand */
    }
    EXPECT(OPAL_ERR_NOT_SUPPORTED, owner_export(&owner, &memory));
    EXPECT(OPAL_ERR_NOT_SUPPORTED, owner_export(&owner, &memory));
    EXPECT(OPAL_ERROR, owner_export(&owner, &memory));
    CHECK(0 == memory.export.buffer_id);
    EXPECT(OPAL_SUCCESS, owner_export(&owner, &memory));
    CHECK(0 != memory.export.buffer_id);
    CHECK(1 == owner_stats(&owner).exported && 3 == owner_stats(&owner).refused);
    owner_end(&owner);
}

/* 1: no memory; 3: it says that it is mapped; 5, 6: no memory for good; 7: it is not permitted. */
static void not_opened(void)
{
    owner_t owner = owner_start(NULL, NULL);
    opal_umrddt_gpu_engine_t *engine = engine_make(gpu_test_far(owner_devices(&owner)));
    owner_memory_t a = exported(&owner, SIZE, 1);
    owner_memory_t b = exported(&owner, SIZE, 2);
    owner_memory_t c = exported(&owner, SIZE, 3);

    EXPECT(OPAL_SUCCESS, try(engine, 0, &a, 1));
    CHECK(1 == stats().opened && 0 == stats().refused);
    /* Unused ones were evicted. */
    EXPECT(OPAL_SUCCESS, try(engine, 0, &b, 2));
    CHECK(2 == stats().opened && 1 == stats().closed && 1 == stats().open_now);
    EXPECT(OPAL_ERR_OUT_OF_RESOURCE, try(engine, 0, &c, 3));
    EXPECT(OPAL_ERR_NOT_SUPPORTED, try(engine, 0, &c, 3));
    CHECK(2 == stats().refused);
    EXPECT(OPAL_SUCCESS, try(engine, 0, &c, 3));
    EXPECT(OPAL_SUCCESS, try(engine, 0, &a, 1));
    opal_umrddt_gpu_ipc_close();
    CHECK(0 == stats().open_now && stats().opened == stats().closed);
    owner_end(&owner);
}

/* A driver without these functions. */
static void no_names(void)
{
    owner_t owner = owner_start(NULL, "fail=cuDeviceGetUuid_v2:*:801,fail=cuDeviceGetUuid:*:801");
    owner_t old = owner_start(NULL, "fail=cuDeviceGetUuid_v2:*:801");
    owner_memory_t memory = owner_alloc(&owner, OWNER_DEVICE, 0, SIZE, 1);

    if (gpu_test_real()) {
        return; /* faults on demand */
    }
    EXPECT(OPAL_ERR_NOT_SUPPORTED, owner_export(&owner, &memory));
    memory = owner_alloc(&old, OWNER_DEVICE, 0, SIZE, 1);
    EXPECT(OPAL_SUCCESS, owner_export(&old, &memory));
    EXPECT(OPAL_SUCCESS, try(engine_make(0), 0, &memory, 1));
    owner_end(&owner);
    owner_end(&old);
}

/* ---- owners that lie ---- */

static uint64_t seed = 1;

static uint64_t random_number(void)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return seed >> 16 ^ seed << 24;
}

/* What came otherwise than it was sent does not get as far as the driver. */
static void damage(opal_umrddt_gpu_engine_t *engine, opal_umrddt_gpu_export_t *said,
                   const opal_umrddt_gpu_export_t *truth)
{
    opal_umrddt_gpu_import_t *opened = NULL;

    if (0 != memcmp(said, truth, sizeof(*said))) {
        EXPECT(OPAL_ERR_BAD_PARAM, opal_umrddt_gpu_import(engine, 0, said, &opened));
        CHECK(NULL == opened && 0 == stats().opened && 0 == stats().refused);
    }
}

/* Never a success with more than there is; never memory of ours; and never a crash. */
static void lie(opal_umrddt_gpu_engine_t *engine, opal_umrddt_gpu_export_t *said,
                const opal_umrddt_gpu_export_t *truth)
{
    opal_umrddt_gpu_import_t *opened = NULL;
    uint64_t address;
    int rc;

    if (gpu_test_real() && 0 != memcmp(said->handle, truth->handle, sizeof(truth->handle))) {
        return; /* real drivers crash: test_imports_forged */
    }
    said->check = opal_umrddt_gpu_export_check(said);
    rc = opal_umrddt_gpu_import(engine, 0, said, &opened);
    if (OPAL_SUCCESS != rc) {
        CHECK(NULL == opened);
        CHECK(OPAL_ERR_BAD_PARAM == rc || OPAL_ERR_NOT_SUPPORTED == rc
              || OPAL_ERR_OUT_OF_RESOURCE == rc);
        return;
    }
    CHECK(said->size <= truth->size && 1 == said->kind);
    /* Another device that is visible here is all that its name can be. */
    CHECK(0 == memcmp(said->uuid, truth->uuid, sizeof(truth->uuid) - 1));
    address = opal_umrddt_gpu_import_address(opened, said->base, said->base + said->size, NULL);
    CHECK(0 != address);
    CHECK(engine_sees(engine, address, said->size, 1));
    CHECK(0
          == opal_umrddt_gpu_import_address(opened, said->base, said->base + said->size + 1, NULL));
    opal_umrddt_gpu_import_release(opened);
}

static void each(opal_umrddt_gpu_engine_t *engine, const opal_umrddt_gpu_export_t *truth,
                 void (*tell)(opal_umrddt_gpu_engine_t *engine, opal_umrddt_gpu_export_t *said,
                              const opal_umrddt_gpu_export_t *truth))
{
    static const uint64_t odd[] = {
        0,         1,          2,          SIZE - 1,       SIZE,
        SIZE + 1,  4096,       1u << 21,   UINT32_MAX,     1ull << 47,
        INT64_MAX, 1ull << 63, UINT64_MAX, UINT64_MAX - 1, UINT64_MAX - SIZE};
    opal_umrddt_gpu_export_t said;
    unsigned char *bytes = (unsigned char *) &said;
    size_t i;
    size_t k;

    for (i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        for (k = 0; k < 5; k++) {
            said = *truth;
            said.buffer_id = 0 == k ? odd[i] : said.buffer_id;
            said.base = 1 == k ? odd[i] : said.base;
            said.size = 2 == k ? odd[i] : said.size;
            said.kind = 3 == k ? (uint32_t) odd[i] : said.kind;
            said.check = 4 == k ? (uint32_t) odd[i] : said.check;
            tell(engine, &said, truth);
        }
    }
    for (i = 0; i < sizeof(said); i++) {
        for (k = 0; k < 8; k++) {
            said = *truth;
            bytes[i] ^= (unsigned char) (1u << k);
            tell(engine, &said, truth);
        }
    }
    for (i = 0; i < 20000; i++) {
        said = *truth;
        for (k = random_number() % 8; k < 8; k++) {
            size_t at = random_number() % (sizeof(said) / 8);

            ((uint64_t *) bytes)[at] =
                0 == random_number() % 2 ? random_number() : odd[random_number() % 15];
        }
        tell(engine, &said, truth);
    }
    for (i = 0; i < 2000; i++) {
        for (k = 0; k < sizeof(said); k++) {
            bytes[k] = (unsigned char) random_number();
        }
        tell(engine, &said, truth);
    }
}

static void damaged(void)
{
    owner_t owner = owner_start(NULL, NULL);
    opal_umrddt_gpu_engine_t *engine = engine_make(0);
    owner_memory_t memory = exported(&owner, SIZE, 1);

    each(engine, &memory.export, damage);
    EXPECT(OPAL_SUCCESS, try(engine, 1, &memory, 1));
    owner_end(&owner);
}

static void lies(void)
{
    owner_t owner = owner_start(NULL, NULL);
    opal_umrddt_gpu_engine_t *engine = engine_make(0);
    owner_memory_t memory = exported(&owner, SIZE, 1);
    opal_umrddt_gpu_import_t *opened = NULL;

    each(engine, &memory.export, lie);
    /* A number that no peer has. */
    EXPECT(OPAL_ERR_BAD_PARAM,
           opal_umrddt_gpu_import(engine, OPAL_UMRDDT_GPU_ALL_PEERS, &memory.export, &opened));
    /* The truth is still found. */
    EXPECT(OPAL_SUCCESS, try(engine, 1, &memory, 1));
    opal_umrddt_gpu_ipc_close();
    CHECK(0 == stats().open_now && 0 == stats().bytes_now && stats().opened == stats().closed);
    owner_end(&owner);
}

/* ---- threads ---- */

#define THREADS 4
#define ROUNDS  1500
#define BUFFERS 8

static opal_umrddt_gpu_engine_t *shared;
static owner_memory_t buffers[BUFFERS];

static void *worker(void *data)
{
    unsigned mine = (unsigned) (uintptr_t) data;
    int i;

    for (i = 0; i < ROUNDS; i++) {
        int k = rand_r(&mine) % BUFFERS;
        owner_memory_t *memory = &buffers[k];
        opal_umrddt_gpu_import_t *opened = NULL;
        uint64_t peer = (uint64_t) rand_r(&mine) % 2;
        uint64_t address;

        if (0 == rand_r(&mine) % 100) {
            opal_umrddt_gpu_ipc_forget(peer);
        }
        if (OPAL_SUCCESS
            != opal_umrddt_gpu_import_find(shared, peer, memory->export.buffer_id, &opened)) {
            EXPECT(OPAL_SUCCESS, opal_umrddt_gpu_import(shared, peer, &memory->export, &opened));
        }
        address =
            opal_umrddt_gpu_import_address(opened, memory->address, memory->address + 1, NULL);
        CHECK(0 != address && engine_sees(shared, address, 16, k));
        opal_umrddt_gpu_import_release(opened);
    }
    return NULL;
}

static void threads(void)
{
    const opal_umrddt_gpu_ipc_params_t params = {3, SIZE_MAX, 4};
    owner_t owner = owner_start(NULL, NULL);
    pthread_t thread[THREADS];
    uintptr_t i;

    opal_umrddt_gpu_ipc_params(&params);
    shared = engine_make(0);
    for (i = 0; i < BUFFERS; i++) {
        buffers[i] = exported(&owner, SIZE, (int) i);
    }
    for (i = 0; i < THREADS; i++) {
        CHECK(0 == pthread_create(&thread[i], NULL, worker, (void *) (i + 1)));
    }
    for (i = 0; i < THREADS; i++) {
        CHECK(0 == pthread_join(thread[i], NULL));
    }
    CHECK(3 >= stats().open_now && stats().opened == stats().closed + stats().open_now);
    CHECK(0 < stats().hits && BUFFERS < stats().opened);
    opal_umrddt_gpu_ipc_close();
    CHECK(0 == stats().open_now && 0 == stats().bytes_now);
    owner_end(&owner);
}

/* Exports of several threads of one process: one is asked for, all are the same. */
static opal_umrddt_gpu_memory_t own;
static opal_umrddt_gpu_export_t expected;

static void *exporter(void *data)
{
    opal_umrddt_gpu_export_t export;
    int i;

    for (i = 0; i < ROUNDS; i++) {
        EXPECT(OPAL_SUCCESS, opal_umrddt_gpu_export(&own, &export));
        CHECK(0 == memcmp(&export, &expected, sizeof(export)));
    }
    return data;
}

static void export_threads(void)
{
    const umrddt_cuda_all_t *driver = owner_driver();
    pthread_t thread[THREADS];
    CUdeviceptr address;
    CUcontext ctx;
    int i;

    EXPECT(CUDA_SUCCESS, driver->cuCtxCreate_v2(&ctx, 0, 0));
    EXPECT(CUDA_SUCCESS, driver->cuMemAlloc_v2(&address, SIZE));
    EXPECT(OPAL_SUCCESS, opal_umrddt_gpu_classify((void *) address, &own));
    EXPECT(OPAL_SUCCESS, opal_umrddt_gpu_export(&own, &expected));
    for (i = 0; i < THREADS; i++) {
        CHECK(0 == pthread_create(&thread[i], NULL, exporter, NULL));
    }
    for (i = 0; i < THREADS; i++) {
        CHECK(0 == pthread_join(thread[i], NULL));
    }
    CHECK(1 == stats().exported && 0 == stats().refused);
    /* Gone with its context; what is remembered is not offered. */
    EXPECT(CUDA_SUCCESS, driver->cuCtxDestroy_v2(ctx));
    CHECK(OPAL_SUCCESS != opal_umrddt_gpu_export(&own, &expected));
    opal_umrddt_gpu_ipc_close();
}

int main(int argc, char **argv)
{
    static const gpu_test_part_t parts[] = {
        {"no handle", no_handle, ""},
        {"not opened", not_opened,
         "fail=cuIpcOpenMemHandle:1:2,fail=cuIpcOpenMemHandle:3:208,fail=cuIpcOpenMemHandle:5:2,"
         "fail=cuIpcOpenMemHandle:6:2,fail=cuIpcOpenMemHandle:7:800"},
        {"no names", no_names, ""},
        {"damaged", damaged, ""},
        {"lies", lies, ""},
        {"threads", threads, ""},
        {"threads that export", export_threads, ""},
    };

    (void) opal_set_using_threads(true);

    if (3 == argc && 0 == strcmp(argv[1], "owner")) {
        return owner_main(atoi(argv[2]));
    }
    return gpu_test_main(argc, argv, parts, sizeof(parts) / sizeof(parts[0]));
}
