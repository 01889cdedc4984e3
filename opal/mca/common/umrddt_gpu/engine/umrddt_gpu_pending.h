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
 * Private to this directory: pending copies, which a flush launches together.
 */

#ifndef OPAL_UMRDDT_GPU_PENDING_H
#define OPAL_UMRDDT_GPU_PENDING_H

#include "opal_config.h"

#include "umrddt_gpu_engine.h"

/*
 * Maximum bytes of a pending copy. Copies that take longer than a launch (about 5 us) go at once,
 * beside others.
 */
#define PENDING_BYTES ((uint64_t) 512 << 10)
/*
 * If the next flush comes later than this time (ns), the application has left MPI: the next flushes
 * leave no copy pending.
 */
#define HELD_MOST  UINT64_C(50000)
#define HELD_SKIPS 64
/* Time (ns) after a pending copy in which an expected one should follow: a few times the interval of
 * messages that a process sends in a row. */
#define HELD_NEXT UINT64_C(1000)

/* The pending copies of an engine, in order; with its lock. */
typedef struct opal_umrddt_gpu_pending_t {
    opal_umrddt_gpu_copy_t *first;
    opal_umrddt_gpu_copy_t *last; /* if there is a first one */
    unsigned n;
    unsigned before;  /* n at the last flush that found more of them and left them pending ... */
    uint64_t held_at; /* ... and its time, ns */
    unsigned skips;   /* following flushes that leave none pending */
} opal_umrddt_gpu_pending_t;

/* Launch the pending copies of an engine. */
void opal_umrddt_gpu_flush_now(opal_umrddt_gpu_engine_t *engine);

#endif /* OPAL_UMRDDT_GPU_PENDING_H */
