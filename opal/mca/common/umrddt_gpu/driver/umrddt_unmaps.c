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
 * Forwards UCX's unmap events; see umrddt_unmaps.h. The interface is that of ucm/api/ucm.h,
 * unchanged in all releases of libucm.so.0. It is looked up at run time, not linked, so UCX is
 * optional.
 */

#include "opal_config.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include "opal/memoryhooks/memory.h"
#include "opal/memoryhooks/memory_internal.h"

#include "umrddt_unmaps.h"

/** UCM_EVENT_VM_UNMAPPED: the sum of munmap, mremap, shmdt, brk and madvise. */
#define VM_UNMAPPED (1 << 17)

/**
 * UCM_EVENT_FLAG_NO_INSTALL: receive only events that UCX intercepts anyway. (A request for more
 * fails, since UCX finds Open MPI's jumps in the functions that it would patch.)
 */
#define NO_INSTALL (1 << 24)

/** Before the memory is unmapped; -1 is before UCX's own handlers, which may register again. */
#define PRIORITY (-1)

/** ucm_event_t of that event. */
typedef struct unmapped_t {
    void *address;
    size_t size;
} unmapped_t;

typedef void (*handler_fn_t)(int type, const unmapped_t *event, void *context);
/** ucs_status_t is an enum packed into a signed char; 0 is UCS_OK. */
typedef signed char (*set_fn_t)(int events, int priority, handler_fn_t handler, void *context);
typedef void (*unset_fn_t)(int events, handler_fn_t handler, void *context);
/** ucm_orig_mmap */
typedef void *(*map_fn_t)(void *address, size_t size, int prot, int flags, int fd, off_t offset);

static unsigned users;
static void *library; /**< while events are forwarded */

/**
 * Threads that are forwarding an event. (Not a thread-local variable: in a library loaded late it
 * is allocated by malloc at the first use, and malloc's lock is held here.)
 */
#define TELLERS 64
static uintptr_t tellers[TELLERS];

/** @return the slot of a thread, or NULL */
static uintptr_t *find(uintptr_t thread)
{
    for (size_t i = 0; i < TELLERS; ++i) {
        if (thread == __atomic_load_n(&tellers[i], __ATOMIC_RELAXED)) {
            return &tellers[i];
        }
    }
    return NULL;
}

/** Reserve a slot for the thread; each is held shortly. */
static uintptr_t *enter(uintptr_t thread)
{
    uintptr_t *location, none = 0;

    do {
        location = find(0);
        none = 0;
    } while (NULL == location
             || !__atomic_compare_exchange_n(location, &none, thread, false, __ATOMIC_ACQUIRE,
                                             __ATOMIC_RELAXED));
    return location;
}

static void report(int type, const unmapped_t *event, void *context)
{
    const uintptr_t self = (uintptr_t) pthread_self();
    uintptr_t *location;

    (void) type;
    (void) context;
    if (NULL != find(self)) {
        return; /* Open MPI's hooks forward to UCX in pml/ucx, which calls back here */
    }
    location = enter(self);
    /* true: malloc's lock may be held, since it calls sbrk */
    opal_mem_hooks_release_hook(event->address, event->size, true);
    __atomic_store_n(location, 0, __ATOMIC_RELEASE);
}

/**
 * Make UCX find its mmap before UCX needs it in a handler of unmap events. Without bistro hooks
 * (umrddt_sim sets UCX_MEM_MMAP_HOOK_MODE=reloc) ucm_orig_mmap calls dlsym the first time, and
 * dlsym allocates. The handler of UCX's registration cache maps memory under a spin lock. If dlsym
 * is the thread's first allocation, malloc unmaps memory, and the handler waits for its own lock.
 * The call fails, because a mapping has at least one byte.
 */
static void find_mmap(void)
{
    map_fn_t map;

    *(void **) &map = dlsym(library, "ucm_orig_mmap");
    if (NULL != map) {
        (void) map(NULL, 0, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
}

void opal_umrddt_unmaps_look(void)
{
    set_fn_t set;

    if (NULL != library || 0 == users) {
        return;
    }
    library = dlopen("libucm.so.0", RTLD_LAZY | RTLD_NOLOAD);
    if (NULL == library) {
        return;
    }
    *(void **) &set = dlsym(library, "ucm_set_event_handler");
    if (NULL == set || 0 != set(VM_UNMAPPED | NO_INSTALL, PRIORITY, report, NULL)) {
        (void) dlclose(library);
        library = NULL;
        return;
    }
    find_mmap();
}

void opal_umrddt_unmaps_open(void)
{
    ++users;
    opal_umrddt_unmaps_look();
}

void opal_umrddt_unmaps_close(void)
{
    unset_fn_t unset;

    if (0 < --users || NULL == library) {
        return;
    }
    *(void **) &unset = dlsym(library, "ucm_unset_event_handler");
    if (NULL != unset) {
        unset(VM_UNMAPPED, report, NULL);
    }
    (void) dlclose(library);
    library = NULL;
}
