/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "sim_gpu.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "gpu_peer.h"
#include "sim_alloc.h"
#include "sim_gpu_copy.h"
#include "sim_mem.h"

#define PAGE 4096ull

/* Maximum of bytes that are held back; above it the oldest are written. */
#define LATE_BYTES (64ull << 20)

/* A write that has not landed. */
struct late {
    struct late *next;
    uint64_t due;
    uint8_t *to;
    size_t length;
    uint8_t bytes[];
};

static struct late *first;
static struct late **last = &first;
static uint64_t late_bytes;

static gpu_peer_get_fn _Atomic get;
static gpu_peer_late_fn _Atomic late_of;
static atomic_bool copies;         /* the driver moves it, as it is not one of software */
static atomic_ullong loads_looked; /* objects that were loaded when there was no driver */

/* The driver's cuFlushGPUDirectRDMAWrites. */
static void flushed(void)
{
    pthread_mutex_lock(&sim.lock);
    sim.count.gpu_flushes++;
    (void) sim_gpu_land(UINT64_MAX);
    pthread_mutex_unlock(&sim.lock);
}

/* POSIX's way from an object's address to a function's. */
static void *symbol(void *library, const char *name)
{
    return dlsym(library, name);
}

/* The number of objects that the process has loaded so far, of the first object. */
static int count_loads(struct dl_phdr_info *info, size_t size, void *loads)
{
    (void) size;
    *(unsigned long long *) loads = info->dlpi_adds;
    return 1;
}

void sim_gpu_find(void)
{
    gpu_peer_late_fn late_fn = NULL;
    gpu_peer_get_fn get_fn = NULL;
    unsigned long long loads = 0;
    void *library, *found;

    if (NULL != atomic_load(&get) || atomic_load(&copies)) {
        return;
    }
    /* dlopen looks for the file in each directory, which takes longer than a command. */
    (void) dl_iterate_phdr(count_loads, &loads);
    if (loads == atomic_load(&loads_looked)) {
        return;
    }
    /* The one that the process has, not one more. */
    library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (NULL == library) {
        atomic_store(&loads_looked, loads);
        return;
    }
    found = symbol(library, GPU_PEER_LATE);
    memcpy(&late_fn, &found, sizeof(late_fn));
    found = symbol(library, GPU_PEER_GET);
    memcpy(&get_fn, &found, sizeof(get_fn));
    if (NULL == get_fn || sim.conf.gpu_copies) {
        sim_gpu_copy_find(library);
        atomic_store(&copies, true);
        get_fn = NULL;
    }
    dlclose(library);
    if (NULL != late_fn && NULL != get_fn) {
        atomic_store(&late_of, late_fn);
        atomic_store(&get, get_fn);
    }
}

int sim_gpu_look(uint64_t address, uint64_t length, bool dmabuf, struct sim_gpu_memory *memory)
{
    gpu_peer_get_fn get_memory = atomic_load(&get);
    struct gpu_peer peer;
    int rc;

    memory->fd = -1;
    memory->ctx = NULL;
    if (atomic_load(&copies)) {
        return sim_gpu_copy_look(address, length, &memory->ctx);
    }
    rc = NULL == get_memory || dmabuf ? 0 : get_memory(address, length, &peer);
    if (1 == rc) {
        memory->fd = peer.fd;
        memory->offset = peer.offset;
        memory->alive = peer.alive;
        memory->id = peer.id;
    }
    return rc;
}

int sim_gpu_map(struct sim_key *key, const struct sim_gpu_memory *memory)
{
    uint64_t inside = (NULL == memory->ctx ? memory->offset : key->addr) % PAGE;
    uint64_t bytes = (inside + key->length + PAGE - 1) & ~(PAGE - 1);

    if (0 != sim.conf.bar_bytes
        && (bytes > sim.conf.bar_bytes || sim.bar_bytes_now > sim.conf.bar_bytes - bytes)) {
        return ENOMEM;
    }
    if (NULL == memory->ctx) {
        /* The system call itself: its wrapper may be hooked. */
        long view = syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd,
                            (off_t) (memory->offset - inside));

        if (-1 == view) {
            return EINVAL;
        }
        key->gpu_view = (void *) view;
        key->addr = (uint64_t) view + inside;
        key->alive = memory->alive;
        key->alive_id = memory->id;
    }
    key->gpu_ctx = memory->ctx;
    key->gpu_bytes = bytes;
    sim.bar_bytes_now += bytes;
    sim.count.gpu_mrs++;
    return 0;
}

void sim_gpu_unmap(struct sim_key *key)
{
    if (NULL != key->gpu_view) {
        (void) sim_gpu_land(UINT64_MAX);
        (void) syscall(SYS_munmap, key->gpu_view, key->gpu_bytes);
    }
    sim.bar_bytes_now -= key->gpu_bytes;
    key->gpu_bytes = 0;
    key->gpu_view = NULL;
    key->gpu_ctx = NULL;
}

bool sim_gpu_land(uint64_t now)
{
    bool did = false;

    while (NULL != first && first->due <= now) {
        struct late *late = first;
        struct iovec piece = {late->to, late->length};

        first = late->next;
        if (NULL == first) {
            last = &first;
        }
        late_bytes -= late->length;
        (void) sim_mem_scatter(&piece, 1, late->bytes);
        sim_free(late);
        did = true;
    }
    return did;
}

uint64_t sim_gpu_wakeup(void)
{
    return NULL == first ? UINT64_MAX : first->due;
}

void sim_gpu_forget(void)
{
    first = NULL;
    last = &first;
    late_bytes = 0;
}

int sim_gpu_gather(void *to, const struct sim_pieces *pieces)
{
    if (NULL != pieces->gpu_ctx) {
        return sim_gpu_copy(pieces->gpu_ctx, pieces->v, pieces->count, to, true);
    }
    if (pieces->gpu) {
        /* A read does not overtake the writes before it. */
        (void) sim_gpu_land(UINT64_MAX);
    }
    return sim_mem_gather(to, pieces->v, pieces->count);
}

int sim_gpu_scatter(const struct sim_pieces *pieces, const void *from)
{
    if (NULL != pieces->gpu_ctx) {
        return sim_gpu_copy(pieces->gpu_ctx, pieces->v, pieces->count, (void *) from, false);
    }
    if (pieces->gpu) {
        (void) sim_gpu_land(UINT64_MAX);
    }
    return sim_mem_scatter(pieces->v, pieces->count, from);
}

static bool holds_back(void)
{
    gpu_peer_late_fn is_late = atomic_load(&late_of);

    return 0 < sim.conf.gpu_late_ms && NULL != is_late && is_late(flushed);
}

int sim_gpu_write(const struct sim_pieces *pieces, const void *from)
{
    const uint8_t *at = from;
    uint64_t due;
    size_t i;

    if (!pieces->gpu || !holds_back()) {
        return sim_gpu_scatter(pieces, from);
    }
    due = sim_now() + sim.conf.gpu_late_ms * 1000000ull;
    for (i = 0; i < pieces->count; i++) {
        size_t length = pieces->v[i].iov_len;
        struct late *late = sim_alloc(sizeof(*late) + length);

        if (NULL == late || late_bytes + length > LATE_BYTES) {
            (void) sim_gpu_land(UINT64_MAX);
        }
        if (NULL == late) {
            if (0 != sim_mem_scatter(&pieces->v[i], 1, at)) {
                return -1;
            }
        } else {
            late->next = NULL;
            late->due = due;
            late->to = pieces->v[i].iov_base;
            late->length = length;
            memcpy(late->bytes, at, length);
            *last = late;
            last = &late->next;
            late_bytes += length;
            sim.count.gpu_late++;
        }
        at += length;
    }
    return 0;
}
