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
 * The common part of requests: the room for the data of a scheme, and the two users that release a
 * request, in any order and in any thread.
 */

#ifndef MCA_PML_UMRDDT_REQUEST_H
#define MCA_PML_UMRDDT_REQUEST_H

#include "ompi_config.h"

#include <stdbool.h>
#include <stdint.h>

#include "ompi/request/request.h"

BEGIN_C_DECLS

/** Room in a request for the data of its scheme: bytes of a send, of a receive; its alignment. */
#define MCA_PML_UMRDDT_SEND_HELD  16
#define MCA_PML_UMRDDT_RECV_HELD  40
#define MCA_PML_UMRDDT_HELD_ALIGN 8

/** The data of a request's scheme, as a structure of that scheme. All 0 when the scheme starts: at
 * a receiver before start, at a sender before its first reply. */
#define MCA_PML_UMRDDT_HELD(type, request)                                 \
    ({                                                                     \
        _Static_assert(sizeof(type) <= sizeof((request)->held)             \
                           && _Alignof(type) <= MCA_PML_UMRDDT_HELD_ALIGN, \
                       "the data of a scheme fits into a request");        \
        (type *) (uintptr_t) (request)->held;                              \
    })

/**
 * Users of a request: the side that completes it, and the application. Both release it, in any
 * order and in any thread. The last one returns it to its free list.
 */
typedef enum mca_pml_umrddt_release_t {
    MCA_PML_UMRDDT_COMPLETED = 1, /**< also set in a request that is not started */
    MCA_PML_UMRDDT_FREED = 2
} mca_pml_umrddt_release_t;

/** Release a request for @p mine. @return true if the other side has released it before */
static inline bool mca_pml_umrddt_release(int *release, mca_pml_umrddt_release_t mine)
{
    if (opal_using_threads()) {
        return 0 != (__atomic_fetch_or(release, (int) mine, __ATOMIC_ACQ_REL) & ~(int) mine);
    }
    *release |= (int) mine;
    return 0 != (*release & ~(int) mine);
}

/** Reset before a persistent request starts again. The completing side may still be about to
 * release the request, so this waits for it. */
static inline void mca_pml_umrddt_release_reset(int *release)
{
    while (MCA_PML_UMRDDT_COMPLETED != __atomic_load_n(release, __ATOMIC_ACQUIRE)) {
        ;
    }
    __atomic_store_n(release, 0, __ATOMIC_RELEASE);
}

/** Set the state of a request of our own that is not started, or whose start has failed. */
static inline void mca_pml_umrddt_request_inactive(ompi_request_t *request, int *release)
{
    request->req_state = OMPI_REQUEST_INACTIVE;
    request->req_complete = REQUEST_COMPLETED;
    *release = MCA_PML_UMRDDT_COMPLETED;
}

/**
 * Clear our data in a request of the base PML before the request returns to it, because pml/ucx
 * interprets the field. The store is atomic: the next user of the request may complete it in
 * another thread, which starts with a compare-and-swap.
 */
static inline void mca_pml_umrddt_request_clear(ompi_request_t *request)
{
    __atomic_store_n(&request->req_complete_cb_data, NULL, __ATOMIC_RELAXED);
}

END_C_DECLS

#endif /* MCA_PML_UMRDDT_REQUEST_H */
