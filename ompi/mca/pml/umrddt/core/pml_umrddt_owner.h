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
 * Contracts that builds and tests check. First, the thread that runs progress: most of the
 * component's state has no lock, because only that thread accesses it. A function with this
 * contract begins with MCA_PML_UMRDDT_ASSERT_PROGRESS: a build with --enable-debug aborts when
 * another thread calls it.
 */

#ifndef MCA_PML_UMRDDT_OWNER_H
#define MCA_PML_UMRDDT_OWNER_H

#include <pthread.h>
#include <stdlib.h>

#include "opal/util/output.h"

#include "ompi/mca/pml/umrddt/pml_umrddt.h"

BEGIN_C_DECLS

#if UMRDDT_ENABLE_DEBUG
/** Abort unless this thread runs progress. Nothing is asserted while progress is not registered,
 * when there is one thread. */
static inline void mca_pml_umrddt_assert_progress(const char *function)
{
    if (mca_pml_umrddt.polling
        && !pthread_equal(pthread_self(),
                          __atomic_load_n(&mca_pml_umrddt.owner, __ATOMIC_RELAXED))) {
        opal_output(0, "pml:umrddt: %s was called outside progress", function);
        abort();
    }
}
#define MCA_PML_UMRDDT_ASSERT_PROGRESS() mca_pml_umrddt_assert_progress(__func__)
#else
#define MCA_PML_UMRDDT_ASSERT_PROGRESS() ((void) 0)
#endif

/** In a function that checks invariants (pml_umrddt_check.h): return the name of the invariant, for
 * the user, if it does not hold. */
#define MCA_PML_UMRDDT_HOLDS(CONDITION, NAME) \
    do {                                      \
        if (OPAL_UNLIKELY(!(CONDITION)))      \
            return (NAME);                    \
    } while (0)

/** Become the thread that runs progress. @return false: some thread runs it already */
static inline bool mca_pml_umrddt_progress_enter(void)
{
    if (0 != __atomic_exchange_n(&mca_pml_umrddt.busy, 1, __ATOMIC_ACQUIRE)) {
        return false;
    }
#if UMRDDT_ENABLE_DEBUG
    __atomic_store_n(&mca_pml_umrddt.owner, pthread_self(), __ATOMIC_RELAXED);
#endif
    return true;
}

static inline void mca_pml_umrddt_progress_leave(void)
{
#if UMRDDT_ENABLE_DEBUG
    __atomic_store_n(&mca_pml_umrddt.owner, (pthread_t) 0, __ATOMIC_RELAXED);
#endif
    __atomic_store_n(&mca_pml_umrddt.busy, 0, __ATOMIC_RELEASE);
}

END_C_DECLS

#endif /* MCA_PML_UMRDDT_OWNER_H */
