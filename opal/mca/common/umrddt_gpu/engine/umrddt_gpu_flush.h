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
 * The end of opal_umrddt_gpu_copy_later: when pending copies are launched.
 */

#ifndef OPAL_UMRDDT_GPU_FLUSH_H
#define OPAL_UMRDDT_GPU_FLUSH_H

#include "opal_config.h"

#include <stdbool.h>

#include "umrddt_compat.h"

BEGIN_C_DECLS

/** As opal_umrddt_gpu_flush, with pending copies. */
void opal_umrddt_gpu_flush_pending(void);

/** Pending copies of all engines. */
extern unsigned opal_umrddt_gpu_pending_copies;

/** Messages that may start a copy as soon as they match; only for opal_umrddt_gpu_flush. */
extern unsigned opal_umrddt_gpu_expected;

/** Change one of these numbers. */
static inline void opal_umrddt_gpu_change(unsigned *number, int change)
{
    if (opal_using_threads()) {
        (void) __atomic_add_fetch(number, (unsigned) change, __ATOMIC_RELAXED);
    } else {
        *number += (unsigned) change;
    }
}

/** Change the number of expected copies. */
static inline void opal_umrddt_gpu_expect(int change)
{
    opal_umrddt_gpu_change(&opal_umrddt_gpu_expected, change);
}

/** Returns true if copies are expected. */
static inline bool opal_umrddt_gpu_expects(void)
{
    return 0 != __atomic_load_n(&opal_umrddt_gpu_expected, __ATOMIC_RELAXED);
}

/**
 * Launch the pending copies of each engine. Exception: if it has other copies in progress, or more
 * are expected, and the number of pending ones has increased since the last call, they stay pending
 * up to the next call. If more are expected, for a further moment. If that call came late, or no
 * further copy came, the next ones leave no copy pending.
 * To be called at the end of each round of work that may start copies.
 */
static inline void opal_umrddt_gpu_flush(void)
{
    if (OPAL_UNLIKELY(0 != __atomic_load_n(&opal_umrddt_gpu_pending_copies, __ATOMIC_RELAXED))) {
        opal_umrddt_gpu_flush_pending();
    }
}

END_C_DECLS

#endif /* OPAL_UMRDDT_GPU_FLUSH_H */
