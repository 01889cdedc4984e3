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
 * Put before the sources of layouts (-include) where lookups.c is built with its own.
 *
 * Threads meet between two steps of a lookup once in a million times by themselves. Here they do
 * so all the time: at each OPAL_IOV_CACHE_MEET now and then one lets the others go by. And the
 * stock of references is so small that it is filled up, and runs out, all the time.
 *
 * Open MPI counts the references of its objects by relaxed atomics, so ThreadSanitizer finds that
 * the thread that frees an object races with those that let go of it before. That is so for every
 * object of Open MPI, and not what is looked for here: the count is given the order that it is used
 * as if it had.
 */

#ifndef TEST_DATATYPE_LOOKUPS_H
#define TEST_DATATYPE_LOOKUPS_H

#include "opal_config.h"

#include <sched.h>
#include <stdint.h>
#include <unistd.h>

#include "opal/class/opal_object.h"

/* 1 where this is compiled with -fsanitize=thread */
#if !defined(LOOKUPS_RACES)
#define LOOKUPS_RACES 0
#endif

#define OPAL_IOV_CACHE_STOCK  8
#define OPAL_IOV_CACHE_MEET() lookups_meet()

static inline void lookups_meet(void)
{
    static __thread uint64_t state;

    state = (0 == state ? (uint64_t) (uintptr_t) &state : state) * UINT64_C(6364136223846793005)
            + UINT64_C(1442695040888963407);
    if (0 == (state >> 40) % 512) {
        usleep(0 == (state >> 49) % 8 ? 500 : 1);
    } else if (0 == (state >> 40) % 16) {
        sched_yield();
    }
}

#if LOOKUPS_RACES
static inline int lookups_obj_update(opal_object_t *object, int number)
{
    return __atomic_add_fetch((int32_t *) (void *) &object->obj_reference_count, number,
                              __ATOMIC_ACQ_REL);
}
#define opal_obj_update lookups_obj_update
#endif

#endif /* TEST_DATATYPE_LOOKUPS_H */
