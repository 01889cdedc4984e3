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
 * For tests of imports: another process that owns memory and executes commands, and engines that
 * are no more than a context.
 */

#ifndef GPU_OWNER_H
#define GPU_OWNER_H

#include "opal_config.h"

#include "opal/mca/common/umrddt_gpu/ipc/umrddt_gpu_ipc.h"

#include "gpu_test.h"
#include "umrddt_cuda_all.h"

typedef struct owner_t {
    pid_t pid;
    int fd;
} owner_t;

typedef enum owner_kind_t {
    OWNER_DEVICE,
    OWNER_POOL,
    OWNER_VMM,
    OWNER_MANAGED,
    OWNER_PINNED,
    OWNER_REGISTERED,
    OWNER_HOST
} owner_kind_t;

/** Memory there; what owner_export found out. */
typedef struct owner_memory_t {
    owner_kind_t kind;
    uint64_t address;
    size_t size;
    opal_umrddt_gpu_memory_t memory;
    opal_umrddt_gpu_export_t export;
} owner_memory_t;

/** Start one; NULL: all devices; no options. */
owner_t owner_start(const char *visible_devices, const char *options);

/** How many devices it has. (Nothing is initialized here.) */
int owner_devices(owner_t *owner);

/** End it. */
void owner_end(owner_t *owner);
void owner_kill(owner_t *owner);

/** Allocate on a device, and fill with a value. */
owner_memory_t owner_alloc(owner_t *owner, owner_kind_t kind, int device, size_t size, int value);

/**
 * Allocate on device 0 as much as @p old was, which was freed, and where it was.
 *
 * @return false if it is elsewhere: a driver is free to take other addresses
 */
bool owner_alloc_at(owner_t *owner, const owner_memory_t *old, int value, owner_memory_t *memory);
void owner_free(owner_t *owner, const owner_memory_t *memory);

/** Does all of it have this value? */
bool owner_is(owner_t *owner, const owner_memory_t *memory, int value);

/** Classify and export; @return what opal_umrddt_gpu_export says */
int owner_export(owner_t *owner, owner_memory_t *memory);

/** Export what was classified before. */
int owner_export_again(owner_t *owner, owner_memory_t *memory);

/** Its counters, and its bound. */
opal_umrddt_gpu_ipc_stats_t owner_stats(owner_t *owner);
void owner_bound(owner_t *owner, unsigned exports);

/** What the process does that owner_start starts: `PROGRAM owner FD`. */
int owner_main(int fd);

/** The driver, initialized. */
const umrddt_cuda_all_t *owner_driver(void);

/** An engine: a context of its own, current nowhere. Ends with the process. */
opal_umrddt_gpu_engine_t *engine_make(int device);

/** Destroy its context. */
void engine_break(opal_umrddt_gpu_engine_t *engine);

/** In its context: is this memory of this value; set it. */
bool engine_sees(opal_umrddt_gpu_engine_t *engine, uint64_t address, size_t size, int value);
void engine_fill(opal_umrddt_gpu_engine_t *engine, uint64_t address, size_t size, int value);

#endif /* GPU_OWNER_H */
