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
 * Replacement for a header of Open MPI 5.0; see threads_pthreads_mutex.h in this directory. Uses
 * the system's yield, as Open MPI does by default.
 */

#ifndef UMRDDT_STANDIN_THREADS_PTHREADS_THREADS_H
#define UMRDDT_STANDIN_THREADS_PTHREADS_THREADS_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include "opal/mca/threads/threads.h"

#define OPAL_THREAD_YIELD_WHEN_IDLE_DEFAULT false

static inline void opal_thread_yield(void)
{
    (void) sched_yield();
}

#endif /* UMRDDT_STANDIN_THREADS_PTHREADS_THREADS_H */
