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
#include <stdbool.h>
#include <stddef.h>

#include "opal/memoryhooks/memory.h"
#include "opal/memoryhooks/memory_internal.h"

#include "umrddt_unmaps.h"

/** UCM_EVENT_VM_UNMAPPED: the sum of munmap, mremap, shmdt, brk and madvise. */
#define VM_UNMAPPED (1 << 17)

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

static void tell(int type, const unmapped_t *event, void *context)
{
    /* where Open MPI's hooks tell UCX what they see (pml/ucx does that), it tells us */
    static __thread bool telling = false;

    (void) type;
    (void) context;
    if (!telling) {
        telling = true;
        opal_mem_hooks_release_hook(event->address, event->size, false);
        telling = false;
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
    /* (a UCX that was told to leave memory alone refuses, and leaves it to Open MPI's hooks) */
    if (NULL == set || 0 != set(VM_UNMAPPED, PRIORITY, tell, NULL)) {
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
