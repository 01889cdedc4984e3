/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Memory of another process, on the software CUDA driver: what is found, and what never again. */

#include "gpu_owner.h"

#include "opal/constants.h"
#include "umrddt_cuda_all.h"

#define SIZE 10000
#define MANY 6
/* Whole blocks of a driver: what is smaller can be cut from one that stays when it is freed. */
#define WHOLE ((size_t) 4 << 20)

static opal_umrddt_gpu_ipc_stats_t stats(void)
{
    opal_umrddt_gpu_ipc_stats_t now;

    opal_umrddt_gpu_ipc_stats(&now);
    return now;
}

static void bounds(unsigned imports, size_t bytes)
{
    opal_umrddt_gpu_ipc_params_t params = {imports, bytes, 16};

    opal_umrddt_gpu_ipc_params(&params);
}

static owner_memory_t exported(owner_t *owner, int device, size_t size, int value)
{
    owner_memory_t memory = owner_alloc(owner, OWNER_DEVICE, device, size, value);

    EXPECT(OPAL_SUCCESS, owner_export(owner, &memory));
    return memory;
}

static opal_umrddt_gpu_import_t *import(opal_umrddt_gpu_engine_t *engine, uint64_t peer,
                                        const owner_memory_t *memory)
{
    opal_umrddt_gpu_import_t *opened = NULL;

    EXPECT(OPAL_SUCCESS, opal_umrddt_gpu_import(engine, peer, &memory->export, &opened));
    CHECK(NULL != opened);
    return opened;
}

static int refused(opal_umrddt_gpu_engine_t *engine, uint64_t peer, const owner_memory_t *memory)
{
    opal_umrddt_gpu_import_t *const before = (opal_umrddt_gpu_import_t *) &engine;
    opal_umrddt_gpu_import_t *opened = before;
    int rc = opal_umrddt_gpu_import(engine, peer, &memory->export, &opened);

    CHECK(opened == before);
    return rc;
}

/* Is it open? */
static bool open_now(opal_umrddt_gpu_engine_t *engine, uint64_t peer, const owner_memory_t *memory)
{
    opal_umrddt_gpu_import_t *found = NULL;
    int rc = opal_umrddt_gpu_import_find(engine, peer, memory->export.buffer_id, &found);

    if (OPAL_SUCCESS == rc) {
        opal_umrddt_gpu_import_release(found);
        return true;
    }
    EXPECT(OPAL_ERR_NOT_FOUND, rc);
    return false;
}

static uint64_t here(const opal_umrddt_gpu_import_t *opened, const owner_memory_t *memory)
{
    uint64_t address = opal_umrddt_gpu_import_address(opened, memory->address,
                                                      memory->address + memory->size, NULL);

    CHECK(0 != address);
    return address;
}

static void basics(void)
{
    owner_t owner = owner_start(NULL, NULL);
    opal_umrddt_gpu_engine_t *engine = engine_make(0);
    owner_memory_t memory = exported(&owner, 0, SIZE, 1);
    owner_memory_t again = memory;
    opal_umrddt_gpu_import_t *first;
    opal_umrddt_gpu_import_t *second = NULL;
    uint64_t base = memory.export.base;
    uint64_t size = memory.export.size;

    EXPECT(OPAL_SUCCESS, owner_export(&owner, &again));
    CHECK(0 == memcmp(&memory.export, &again.export, sizeof(again.export)));
    CHECK(1 == owner_stats(&owner).exported);
    CHECK(!open_now(engine, 7, &memory));
    first = import(engine, 7, &memory);
    CHECK(engine_sees(engine, here(first, &memory), SIZE, 1));
    engine_fill(engine, here(first, &memory), SIZE, 2);
    CHECK(owner_is(&owner, &memory, 2));
    EXPECT(OPAL_SUCCESS, opal_umrddt_gpu_import_find(engine, 7, memory.export.buffer_id, &second));
    CHECK(first == second && first == import(engine, 7, &memory));
    CHECK(1 == stats().opened && 2 == stats().hits && 1 == stats().open_now
          && size == stats().bytes_now);
    CHECK(!open_now(engine, 8, &memory));
    /* Only what is in it. */
    CHECK(0 != opal_umrddt_gpu_import_address(first, base, base + size, NULL));
    CHECK(opal_umrddt_gpu_import_address(first, base + 5, base + 6, NULL)
          == opal_umrddt_gpu_import_address(first, base, base + 1, NULL) + 5);
    CHECK(0 == opal_umrddt_gpu_import_address(first, base - 1, base + 1, NULL));
    CHECK(0 == opal_umrddt_gpu_import_address(first, base, base + size + 1, NULL));
    CHECK(0 == opal_umrddt_gpu_import_address(first, base + 2, base + 1, NULL));
    CHECK(0 == opal_umrddt_gpu_import_address(first, 0, UINT64_MAX, NULL));
    CHECK(0 == opal_umrddt_gpu_import_address(first, UINT64_MAX, UINT64_MAX, NULL));
    opal_umrddt_gpu_import_release(first);
    opal_umrddt_gpu_import_release(first);
    opal_umrddt_gpu_import_release(first);
    CHECK(open_now(engine, 7, &memory) && 0 == stats().closed);
    opal_umrddt_gpu_ipc_close();
    CHECK(1 == stats().closed && 0 == stats().open_now && 0 == stats().bytes_now);
    CHECK(!open_now(engine, 7, &memory));
    owner_end(&owner);
}

/* Small ones, which a driver may cut from one block: each is itself, in whatever order they go. */
static void neighbours(void)
{
    owner_t owner = owner_start(NULL, NULL);
    opal_umrddt_gpu_engine_t *engine = engine_make(0);
    opal_umrddt_gpu_import_t *opened[MANY];
    owner_memory_t memory[MANY];
    int i;

    bounds(0, 0);
    for (i = 0; i < MANY; i++) {
        memory[i] = exported(&owner, 0, 100, i);
    }
    for (i = 0; i < MANY; i++) {
        opened[i] = import(engine, 0, &memory[i]);
    }
    for (i = 0; i < MANY; i++) {
        CHECK(engine_sees(engine, here(opened[i], &memory[i]), 100, i));
        engine_fill(engine, here(opened[i], &memory[i]), 100, 50 + i);
    }
    for (i = 0; i < MANY; i++) {
        CHECK(owner_is(&owner, &memory[i], 50 + i));
    }
    for (i = 0; i < MANY; i += 2) {
        opal_umrddt_gpu_import_release(opened[i]);
    }
    for (i = 1; i < MANY; i += 2) {
        CHECK(engine_sees(engine, here(opened[i], &memory[i]), 100, 50 + i));
        opal_umrddt_gpu_import_release(opened[i]);
    }
    CHECK(0 == stats().open_now);
    owner_end(&owner);
}

/* Freed, and allocated again, at the same address if the driver does that: never the old one for
 * the new one. */
static void stale_at(bool wants_same)
{
    owner_t owner = owner_start(NULL, getenv("UMRDDT_GPU"));
    opal_umrddt_gpu_engine_t *engine = engine_make(gpu_test_far(owner_devices(&owner)));
    owner_memory_t old = exported(&owner, 0, WHOLE, 1);
    owner_memory_t new;
    owner_memory_t newer;
    opal_umrddt_gpu_import_t *first = import(engine, 0, &old);
    opal_umrddt_gpu_import_t *second;
    bool same;

    opal_umrddt_gpu_import_release(first);
    owner_free(&owner, &old);
    same = owner_alloc_at(&owner, &old, 2, &new);
    CHECK(gpu_test_real() || wants_same == same);
    EXPECT(OPAL_SUCCESS, owner_export(&owner, &new));
    CHECK(new.export.buffer_id != old.export.buffer_id);
    CHECK(2 == owner_stats(&owner).exported);
    /* The owner does not offer the old one again, though it remembers it. */
    EXPECT(OPAL_ERR_NOT_SUPPORTED, owner_export_again(&owner, &old));
    CHECK(!open_now(engine, 0, &new));
    second = import(engine, 0, &new);
    CHECK(engine_sees(engine, here(second, &new), WHOLE, 2));
    if (same) {
        /* Whoever has the new one knows that the old one is freed: it is closed. */
        CHECK(1 == stats().closed && 1 == stats().open_now && !open_now(engine, 0, &old));
        if (!gpu_test_real()) {
            EXPECT(OPAL_ERR_NOT_SUPPORTED, refused(engine, 0, &old));
            CHECK(0 < stats().refused);
        } /* else it opens what is there now: that the owner does not offer it is what counts */
        CHECK(engine_sees(engine, here(second, &new), WHOLE, 2));
    } else {
        /* There is no report; it is unchanged until it is closed for its age. */
        CHECK(2 == stats().open_now && open_now(engine, 0, &old));
        bounds(0, 0);
        EXPECT(OPAL_SUCCESS, opal_umrddt_gpu_import_find(engine, 0, old.export.buffer_id, &first));
        opal_umrddt_gpu_import_release(first);
        CHECK(1 == stats().open_now && !open_now(engine, 0, &old));
        bounds(64, SIZE_MAX);
    }
    /* Again, while the one before is in use: it stays what it was until it is released. */
    owner_free(&owner, &new);
    same = owner_alloc_at(&owner, &new, 3, &newer);
    CHECK(gpu_test_real() || wants_same == same);
    EXPECT(OPAL_SUCCESS, owner_export(&owner, &newer));
    first = import(engine, 0, &newer);
    CHECK(first != second && here(first, &newer) != here(second, &new));
    CHECK(engine_sees(engine, here(first, &newer), WHOLE, 3));
    CHECK(!engine_sees(engine, here(second, &new), WHOLE, 3));
    CHECK(2 == stats().open_now && same != open_now(engine, 0, &new));
    opal_umrddt_gpu_import_release(second);
    CHECK((same ? 1 : 2) == stats().open_now && open_now(engine, 0, &newer));
    opal_umrddt_gpu_import_release(first);
    owner_end(&owner);
}

static void stale(void)
{
    stale_at(true);
}

static void stale_elsewhere(void)
{
    stale_at(false);
}

static void bounded(void)
{
    owner_t owner = owner_start(NULL, NULL);
    opal_umrddt_gpu_engine_t *engine = engine_make(0);
    opal_umrddt_gpu_import_t *opened[MANY];
    owner_memory_t memory[MANY];
    int i;

    bounds(3, SIZE_MAX);
    for (i = 0; i < MANY; i++) {
        memory[i] = exported(&owner, 0, SIZE, i);
        opened[i] = import(engine, 0, &memory[i]);
    }
    /* What is used is not counted. */
    CHECK(MANY == stats().open_now && 0 == stats().closed);
    for (i = 0; i < MANY; i++) {
        CHECK(engine_sees(engine, here(opened[i], &memory[i]), SIZE, i));
        opal_umrddt_gpu_import_release(opened[i]);
    }
    CHECK(3 == stats().open_now && 3 == stats().closed);
    CHECK(!open_now(engine, 0, &memory[2]) && open_now(engine, 0, &memory[3]));
    CHECK(open_now(engine, 0, &memory[4]) && open_now(engine, 0, &memory[5]));
    /* The least recently used goes: now that is 3, unless it was used. */
    CHECK(open_now(engine, 0, &memory[3]));
    opal_umrddt_gpu_import_release(import(engine, 0, &memory[0]));
    CHECK(3 == stats().open_now && open_now(engine, 0, &memory[3])
          && !open_now(engine, 0, &memory[4]));
    /* Bytes. */
    bounds(100, 2 * SIZE);
    opal_umrddt_gpu_import_release(import(engine, 0, &memory[1]));
    CHECK(2 == stats().open_now && 2 * SIZE == stats().bytes_now);
    /* None: at once. */
    bounds(0, SIZE_MAX);
    opened[0] = import(engine, 0, &memory[1]);
    CHECK(1 == stats().open_now);
    opal_umrddt_gpu_import_release(opened[0]);
    CHECK(0 == stats().open_now && 0 == stats().bytes_now);
    bounds(100, 0);
    opal_umrddt_gpu_import_release(import(engine, 0, &memory[1]));
    CHECK(0 == stats().open_now && stats().opened == stats().closed);
    /* Exports: two are remembered. */
    owner_bound(&owner, 2);
    CHECK(MANY == owner_stats(&owner).exported);
    EXPECT(OPAL_SUCCESS, owner_export(&owner, &memory[5]));
    EXPECT(OPAL_SUCCESS, owner_export(&owner, &memory[4]));
    CHECK(MANY == owner_stats(&owner).exported);
    EXPECT(OPAL_SUCCESS, owner_export(&owner, &memory[0]));
    EXPECT(OPAL_SUCCESS, owner_export(&owner, &memory[4]));
    CHECK(MANY + 1 == owner_stats(&owner).exported);
    EXPECT(OPAL_SUCCESS, owner_export(&owner, &memory[5]));
    CHECK(MANY + 2 == owner_stats(&owner).exported);
    owner_bound(&owner, 0);
    EXPECT(OPAL_SUCCESS, owner_export(&owner, &memory[5]));
    EXPECT(OPAL_SUCCESS, owner_export(&owner, &memory[5]));
    CHECK(MANY + 4 == owner_stats(&owner).exported);
    owner_end(&owner);
}

static void forgotten(void)
{
    owner_t owner = owner_start(NULL, NULL);
    opal_umrddt_gpu_engine_t *engine = engine_make(0);
    owner_memory_t a = exported(&owner, 0, SIZE, 1);
    owner_memory_t b = exported(&owner, gpu_test_far(owner_devices(&owner)), SIZE, 2);
    opal_umrddt_gpu_import_t *used = import(engine, 1, &a);
    opal_umrddt_gpu_import_t *alias;

    opal_umrddt_gpu_import_release(import(engine, 1, &b));
    opal_umrddt_gpu_import_release(import(engine, 2, &b));
    /* By another number, but it is open only once. */
    CHECK(2 == stats().opened && 2 == stats().open_now);
    opal_umrddt_gpu_ipc_forget(3);
    CHECK(0 == stats().closed);
    opal_umrddt_gpu_ipc_forget(1);
    CHECK(2 == stats().open_now && open_now(engine, 2, &b));
    CHECK(!open_now(engine, 1, &a) && !open_now(engine, 1, &b));
    CHECK(engine_sees(engine, here(used, &a), SIZE, 1));
    /* The number's next owner does not get what is still used. */
    alias = import(engine, 1, &a);
    CHECK(alias != used && 2 == stats().opened);
    opal_umrddt_gpu_import_release(used);
    CHECK(2 == stats().open_now && engine_sees(engine, here(alias, &a), SIZE, 1));
    opal_umrddt_gpu_import_release(alias);
    opal_umrddt_gpu_ipc_forget(OPAL_UMRDDT_GPU_ALL_PEERS);
    CHECK(0 == stats().open_now && 2 == stats().closed);
    owner_end(&owner);
}

/* A new process with a number, addresses and BUFFER_IDs that another had. */
static void successor(void)
{
    owner_t owner = owner_start(NULL, NULL);
    opal_umrddt_gpu_engine_t *engine = engine_make(0);
    owner_memory_t old = exported(&owner, 0, SIZE, 1);
    owner_memory_t new;
    opal_umrddt_gpu_import_t *used = import(engine, 1, &old);

    opal_umrddt_gpu_import_release(import(engine, 1, &old));
    owner_kill(&owner);
    owner = owner_start(NULL, NULL);
    new = exported(&owner, 0, SIZE, 2);
    CHECK(new.export.buffer_id == old.export.buffer_id);
    opal_umrddt_gpu_import_release(import(engine, 1, &new));
    CHECK(2 == stats().opened && 2 == stats().open_now);
    opal_umrddt_gpu_import_release(used);
    CHECK(1 == stats().open_now);
    used = import(engine, 1, &new);
    CHECK(2 == stats().opened && engine_sees(engine, here(used, &new), SIZE, 2));
    owner_kill(&owner);
    opal_umrddt_gpu_ipc_close();
    CHECK(0 == stats().open_now);
}

/* Which device: by its name, not by its number. */
static void devices(void)
{
    owner_t owner = owner_start(NULL, NULL);
    opal_umrddt_gpu_engine_t *engine;
    opal_umrddt_gpu_engine_t *other;
    owner_memory_t on_one;
    owner_memory_t on_zero;
    opal_umrddt_gpu_import_t *a;
    opal_umrddt_gpu_import_t *b;
    opal_umrddt_gpu_import_t *c;

    gpu_test_needs_two(owner_devices(&owner));
    owner_end(&owner);
    owner = owner_start("1,0", NULL);
    engine = engine_make(0);
    other = engine_make(1);
    on_one = exported(&owner, 0, SIZE, 1);
    on_zero = exported(&owner, 1, SIZE, 2);
    a = import(engine, 0, &on_one);
    b = import(engine, 0, &on_zero);
    c = import(other, 0, &on_zero);
    /* Contexts do not share what is open. */
    CHECK(b != c && 3 == stats().opened && here(b, &on_zero) != here(c, &on_zero));
    CHECK(engine_sees(engine, here(a, &on_one), SIZE, 1));
    CHECK(engine_sees(engine, here(b, &on_zero), SIZE, 2));
    CHECK(engine_sees(other, here(c, &on_zero), SIZE, 2));
    owner_end(&owner);
}

/* CUDA_VISIBLE_DEVICES=1 here. */
static void invisible(void)
{
    owner_t owner = owner_start(NULL, NULL);
    opal_umrddt_gpu_engine_t *engine;
    owner_memory_t on_zero;
    owner_memory_t on_one;

    gpu_test_needs_two(owner_devices(&owner));
    on_zero = exported(&owner, 0, SIZE, 1);
    on_one = exported(&owner, 1, SIZE, 2);
    setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    engine = engine_make(0);
    EXPECT(OPAL_ERR_NOT_SUPPORTED, refused(engine, 0, &on_zero));
    CHECK(engine_sees(engine, here(import(engine, 0, &on_one), &on_one), SIZE, 2));
    owner_end(&owner);
}

/* It is not even tried: the second handle that is opened would fail. */
static void no_peers(void)
{
    owner_t owner = owner_start(NULL, NULL);
    opal_umrddt_gpu_engine_t *engine;
    owner_memory_t on_zero;
    owner_memory_t on_one;

    gpu_test_needs_two(owner_devices(&owner));
    engine = engine_make(0);
    on_zero = exported(&owner, 0, SIZE, 1);
    on_one = exported(&owner, 1, SIZE, 2);
    EXPECT(OPAL_ERR_NOT_SUPPORTED, refused(engine, 0, &on_one));
    CHECK(engine_sees(engine, here(import(engine, 0, &on_zero), &on_zero), SIZE, 1));
    owner_end(&owner);
}

/* CUDA lets one context of a device open handles of a process; another one has to do without. */
static void second_context(void)
{
    owner_t owner = owner_start(NULL, NULL);
    opal_umrddt_gpu_engine_t *engine = engine_make(0);
    opal_umrddt_gpu_engine_t *other = engine_make(0);
    owner_memory_t memory = exported(&owner, 0, WHOLE, 1);
    opal_umrddt_gpu_import_t *opened = import(engine, 0, &memory);

    EXPECT(OPAL_ERR_NOT_SUPPORTED, refused(other, 0, &memory));
    CHECK(1 == stats().open_now && engine_sees(engine, here(opened, &memory), WHOLE, 1));
    opal_umrddt_gpu_import_release(opened);
    owner_end(&owner);
}

/* The end comes in any order. (Another context that stays needs another device, see above.) */
static void context_gone(void)
{
    owner_t owner = owner_start(NULL, NULL);
    const uint64_t engines = 1 < owner_devices(&owner) ? 2 : 1;
    opal_umrddt_gpu_engine_t *engine = engine_make(0);
    owner_memory_t memory = exported(&owner, 0, SIZE, 1);
    owner_memory_t later = exported(&owner, 0, SIZE, 2);
    opal_umrddt_gpu_import_t *used = import(engine, 0, &memory);
    opal_umrddt_gpu_import_t *found = NULL;

    if (1 < engines) {
        opal_umrddt_gpu_import_release(import(engine_make(1), 0, &memory));
    }
    engine_break(engine);
    EXPECT(OPAL_ERR_NOT_SUPPORTED, refused(engine, 0, &later));
    opal_umrddt_gpu_ipc_close();
    CHECK(0 == stats().open_now && engines == stats().closed);
    /* Its user comes later than the end. */
    CHECK(0 == opal_umrddt_gpu_import_address(used, memory.address, memory.address + 1, NULL));
    opal_umrddt_gpu_import_release(used);
    EXPECT(OPAL_ERR_NOT_FOUND,
           opal_umrddt_gpu_import_find(engine, 0, memory.export.buffer_id, &found));
    owner_end(&owner);
}

static void driver_gone(void)
{
    owner_t owner = owner_start(NULL, NULL);
    opal_umrddt_gpu_engine_t *engine = engine_make(0);
    owner_memory_t memory = exported(&owner, 0, SIZE, 1);

    opal_umrddt_gpu_import_release(import(engine, 0, &memory));
    opal_umrddt_gpu_ipc_close();
    CHECK(0 == stats().open_now && 1 == stats().closed);
    owner_end(&owner);
}

/* Memory that the driver does not share like this, and our own. */
static void kinds(void)
{
    static const owner_kind_t others[] = {OWNER_POOL,   OWNER_VMM,        OWNER_MANAGED,
                                          OWNER_PINNED, OWNER_REGISTERED, OWNER_HOST};
    const umrddt_cuda_all_t *driver;
    owner_t owner = owner_start(NULL, NULL);
    opal_umrddt_gpu_engine_t *engine = engine_make(0);
    owner_memory_t memory;
    opal_umrddt_gpu_import_t *opened;
    CUdeviceptr own;
    size_t i;

    for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        memory = owner_alloc(&owner, others[i], 0, SIZE, 1);
        EXPECT(OPAL_ERR_NOT_SUPPORTED, owner_export(&owner, &memory));
        CHECK(0 == memory.export.buffer_id);
    }
    CHECK(0 == owner_stats(&owner).exported);
    /* What was imported is not the importer's to offer. */
    memory = exported(&owner, 0, SIZE, 1);
    opened = import(engine, 0, &memory);
    EXPECT(OPAL_SUCCESS, opal_umrddt_gpu_classify((void *) here(opened, &memory), &memory.memory));
    EXPECT(OPAL_ERR_NOT_SUPPORTED, opal_umrddt_gpu_export(&memory.memory, &memory.export));
    driver = owner_driver();
    EXPECT(OPAL_SUCCESS, opal_umrddt_gpu_engine_enter(engine));
    EXPECT(CUDA_SUCCESS, driver->cuMemAlloc_v2(&own, SIZE));
    EXPECT(OPAL_SUCCESS, opal_umrddt_gpu_classify((void *) own, &memory.memory));
    EXPECT(OPAL_SUCCESS, opal_umrddt_gpu_export(&memory.memory, &memory.export));
    EXPECT(OPAL_ERR_NOT_SUPPORTED, refused(engine, 0, &memory));
    opal_umrddt_gpu_engine_leave(engine);
    owner_end(&owner);
}

int main(int argc, char **argv)
{
    static const gpu_test_part_t parts[] = {
        {"basics", basics, "delay=20"},
        {"neighbours", neighbours, ""},
        {"stale", stale, "delay=20"},
        {"stale, elsewhere", stale_elsewhere, "reuse=0"},
        {"bounds", bounded, ""},
        {"forget", forgotten, ""},
        {"a successor", successor, ""},
        {"devices", devices, ""},
        {"an invisible device", invisible, ""},
        {"no peer access", no_peers, "peer=0,fail=cuIpcOpenMemHandle:2:999"},
        {"a second context", second_context, ""},
        {"the context is gone", context_gone, ""},
        {"the context is gone, and not to be named", context_gone, "crash=1"},
        {"the driver is gone", driver_gone, "fail=cuIpcCloseMemHandle:*:4"},
        {"kinds", kinds, ""},
    };

    if (3 == argc && 0 == strcmp(argv[1], "owner")) {
        return owner_main(atoi(argv[2]));
    }
    return gpu_test_main(argc, argv, parts, sizeof(parts) / sizeof(parts[0]));
}
