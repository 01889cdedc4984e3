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
 * What UCX sees of memory that goes; see umrddt_unmaps.h. UCX's interface for this is that of
 * ucm/api/ucm.h, which has been the same in all releases of libucm.so.0. It is looked up, not
 * linked: who has no UCX needs none.
 */

#include "opal_config.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opal/memoryhooks/memory.h"
#include "opal/memoryhooks/memory_internal.h"

#include "umrddt_unmaps.h"

/** UCM_EVENT_VM_UNMAPPED: the sum of munmap, mremap, shmdt, brk and madvise. */
#define VM_UNMAPPED (1 << 17)

/** UCM_EVENT_FLAG_NO_INSTALL: to be told of what it sees anyway. (Asked to see more, it finds Open
 * MPI's jumps where it would have its own, and refuses.) */
#define NO_INSTALL (1 << 24)

/** Before the memory goes; -1 is before UCX's own, which may be asked to register anew. */
#define PRIORITY (-1)

/** ucm_event_t, of that event. */
typedef struct unmapped_t {
    void *address;
    size_t size;
} unmapped_t;

typedef void (*handler_fn_t)(int type, const unmapped_t *event, void *context);
/** ucs_status_t is an enum packed into a signed char; 0 is UCS_OK. */
typedef signed char (*set_fn_t)(int events, int priority, handler_fn_t handler, void *context);
typedef void (*unset_fn_t)(int events, handler_fn_t handler, void *context);

static unsigned users;
static void *library; /**< while it tells us */

/** Threads that are telling. (Not a variable of each thread: those of a library that was loaded
 * late are made by malloc when they are first used, and its lock is held here.) */
#define TELLERS 64
static uintptr_t tellers[TELLERS];

/** @return the place of a thread in the table, or NULL */
static uintptr_t *find(uintptr_t thread)
{
    for (size_t i = 0; i < TELLERS; ++i) {
        if (thread == __atomic_load_n(&tellers[i], __ATOMIC_RELAXED)) {
            return &tellers[i];
        }
    }
    return NULL;
}

/** A place for it; each is held for an instant. */
static uintptr_t *enter(uintptr_t thread)
{
    uintptr_t *place, none = 0;

    do {
        place = find(0);
        none = 0;
    } while (NULL == place
             || !__atomic_compare_exchange_n(place, &none, thread, false, __ATOMIC_ACQUIRE,
                                             __ATOMIC_RELAXED));
    return place;
}

static void tell(int type, const unmapped_t *event, void *context)
{
    const uintptr_t self = (uintptr_t) pthread_self();
    uintptr_t *place;

    (void) type;
    (void) context;
    if (NULL != find(self)) {
        return; /* where Open MPI's hooks tell UCX what they see (pml/ucx does that), it tells us */
    }
    place = enter(self);
    /* true: malloc's lock may be held, as sbrk is called under it */
    opal_mem_hooks_release_hook(event->address, event->size, true);
    __atomic_store_n(place, 0, __ATOMIC_RELEASE);
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
    if (NULL == set || 0 != set(VM_UNMAPPED | NO_INSTALL, PRIORITY, tell, NULL)) {
        (void) dlclose(library);
        library = NULL;
    }
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
        unset(VM_UNMAPPED, tell, NULL);
    }
    (void) dlclose(library);
    library = NULL;
}
