/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Events that processes share: two counters in a file of the process that made the event, which
 * others map through /proc/PID/fd/N. A waiting thread reads them now and then.
 */

#include "gpu_event_ipc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SLOTS   1024
#define MAGIC   0x45504755u
#define WAIT_NS 50000

/* In the file. */
struct slot {
    uint64_t id;       /* 0: none */
    uint64_t recorded; /* how often it was recorded */
    uint64_t reached;  /* the last of these that was reached */
    int64_t recorder;  /* process of the last one */
};

struct gpu_shared_event {
    unsigned refs;
    struct slot *slot;
    uint64_t id;
    void *map; /* of another process's file */
};

struct handle {
    uint32_t magic;
    int32_t pid;
    int32_t fd;
    uint32_t slot;
    uint64_t dev;
    uint64_t ino;
    uint64_t id;
    char unused[24];
};

_Static_assert(sizeof(struct handle) == sizeof(CUipcEventHandle), "a handle has 64 bytes");

static struct slot *slots; /* of this process */
static int slots_fd;
static uint64_t last_id;

static bool make_file(void)
{
    int fd;

    if (NULL != slots) {
        return true;
    }
    fd = memfd_create("umrddt-gpu-events", MFD_CLOEXEC);
    if (-1 == fd) {
        return false;
    }
    slots = 0 != ftruncate(fd, SLOTS * sizeof(*slots))
                ? MAP_FAILED
                : mmap(NULL, SLOTS * sizeof(*slots), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (MAP_FAILED == (void *) slots) {
        slots = NULL;
        close(fd);
        return false;
    }
    slots_fd = fd;
    return true;
}

struct gpu_shared_event *gpu_shared_make(void)
{
    struct gpu_shared_event *event = calloc(1, sizeof(*event));
    int i;

    if (NULL == event || !make_file()) {
        free(event);
        return NULL;
    }
    for (i = 0; i < SLOTS && 0 != slots[i].id; i++) {
    }
    if (SLOTS == i) {
        free(event);
        return NULL;
    }
    event->refs = 1;
    event->slot = &slots[i];
    event->id = (uint64_t) getpid() << 32 | ++last_id;
    slots[i].recorded = 0;
    slots[i].reached = 0;
    slots[i].recorder = getpid();
    __atomic_store_n(&slots[i].id, event->id, __ATOMIC_RELEASE);
    return event;
}

void gpu_shared_hold(struct gpu_shared_event *event)
{
    event->refs++;
}

void gpu_shared_drop(struct gpu_shared_event *event)
{
    if (NULL == event || 0 < --event->refs) {
        return;
    }
    if (NULL == event->map) {
        __atomic_store_n(&event->slot->id, 0, __ATOMIC_RELEASE);
    } else {
        munmap(event->map, SLOTS * sizeof(*slots));
    }
    free(event);
}

uint64_t gpu_shared_record(struct gpu_shared_event *event)
{
    __atomic_store_n(&event->slot->recorder, getpid(), __ATOMIC_RELAXED);
    return __atomic_add_fetch(&event->slot->recorded, 1, __ATOMIC_ACQ_REL);
}

void gpu_shared_reach(struct gpu_shared_event *event, uint64_t number)
{
    uint64_t before = __atomic_load_n(&event->slot->reached, __ATOMIC_RELAXED);

    while (before < number
           && !__atomic_compare_exchange_n(&event->slot->reached, &before, number, false,
                                           __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
}

uint64_t gpu_shared_recorded(const struct gpu_shared_event *event)
{
    return __atomic_load_n(&event->slot->recorded, __ATOMIC_ACQUIRE);
}

/* An event that cannot be reached counts as reached: it was destroyed, or its process has ended. */
bool gpu_shared_reached(const struct gpu_shared_event *event, uint64_t number)
{
    int64_t recorder = __atomic_load_n(&event->slot->recorder, __ATOMIC_RELAXED);

    return __atomic_load_n(&event->slot->reached, __ATOMIC_ACQUIRE) >= number
           || event->id != __atomic_load_n(&event->slot->id, __ATOMIC_ACQUIRE)
           || (-1 == kill((pid_t) recorder, 0) && ESRCH == errno);
}

void gpu_shared_wait(const struct gpu_shared_event *event, uint64_t number)
{
    const struct timespec pause = {0, WAIT_NS};

    while (!gpu_shared_reached(event, number)) {
        nanosleep(&pause, NULL);
    }
}

CUresult gpu_shared_export(const struct gpu_shared_event *event, CUipcEventHandle *out)
{
    struct handle h;
    struct stat st;

    /* Opened ones are not passed on. */
    if (NULL != event->map) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (0 != fstat(slots_fd, &st)) {
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    memset(&h, 0, sizeof(h));
    h.magic = MAGIC;
    h.pid = (int32_t) getpid();
    h.fd = slots_fd;
    h.slot = (uint32_t) (event->slot - slots);
    h.dev = st.st_dev;
    h.ino = st.st_ino;
    h.id = event->id;
    memcpy(out, &h, sizeof(h));
    return CUDA_SUCCESS;
}

static struct slot *map_file(const struct handle *h)
{
    struct slot *map = MAP_FAILED;
    char path[64];
    struct stat st;
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int) h->pid, (int) h->fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    if (-1 == fd) {
        return NULL;
    }
    if (0 == fstat(fd, &st) && st.st_dev == h->dev && st.st_ino == h->ino
        && SLOTS * sizeof(*slots) == (size_t) st.st_size) {
        map = mmap(NULL, SLOTS * sizeof(*slots), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    close(fd);
    return MAP_FAILED == (void *) map ? NULL : map;
}

CUresult gpu_shared_open(const CUipcEventHandle *handle, struct gpu_shared_event **out)
{
    struct gpu_shared_event *event;
    struct slot *map;
    struct handle h;

    memcpy(&h, handle, sizeof(h));
    if (MAGIC != h.magic || SLOTS <= h.slot || 0 == h.id) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (getpid() == h.pid) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    map = map_file(&h);
    if (NULL == map) {
        return CUDA_ERROR_MAP_FAILED;
    }
    event = calloc(1, sizeof(*event));
    if (NULL == event || h.id != __atomic_load_n(&map[h.slot].id, __ATOMIC_ACQUIRE)) {
        munmap(map, SLOTS * sizeof(*slots));
        free(event);
        return NULL == event ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
    }
    event->refs = 1;
    event->slot = &map[h.slot];
    event->id = h.id;
    event->map = map;
    *out = event;
    return CUDA_SUCCESS;
}
