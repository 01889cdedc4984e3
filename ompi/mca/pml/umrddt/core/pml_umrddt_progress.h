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
 * Progress: events, waits and the loop that handles them. Functions of pml_umrddt_progress.c.
 */

#ifndef MCA_PML_UMRDDT_PROGRESS_H
#define MCA_PML_UMRDDT_PROGRESS_H

#include "ompi_config.h"

#include "opal/class/opal_list.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_peer.h"

BEGIN_C_DECLS

/** Work for progress; embedded in its owner, at most once in the queue. */
struct mca_pml_umrddt_event_t {
    opal_object_t super;
    struct mca_pml_umrddt_event_t *next; /**< in the queue */
    void (*handler)(void *owner);
    void *owner;
    bool queued;
};
OBJ_CLASS_DECLARATION(mca_pml_umrddt_event_t);

/** Entry of a waiting list of progress. */
struct mca_pml_umrddt_wait_t {
    opal_list_item_t super;
    opal_list_t *list;          /**< the list; NULL: not waiting */
    bool (*retry)(void *owner); /**< true: over; the entry may be in use again or freed */
    void *owner;
};
OBJ_CLASS_DECLARATION(mca_pml_umrddt_wait_t);

int mca_pml_umrddt_progress(void);

/** Queue @p event for progress; from any thread. */
void mca_pml_umrddt_event(mca_pml_umrddt_event_t *event, void (*handler)(void *), void *owner);

/** Wait in @p list until retry returns true. Only from progress. */
void mca_pml_umrddt_wait(opal_list_t *list, mca_pml_umrddt_wait_t *wait, bool (*retry)(void *),
                         void *owner);

/** Wait for a receive for a FIN of @p peer. Only from progress. */
void mca_pml_umrddt_wait_credit(mca_pml_umrddt_peer_t *peer, mca_pml_umrddt_wait_t *wait,
                                bool (*retry)(void *), void *owner);

/** Remove @p wait from its waiting list. Only from progress if it is in one. */
void mca_pml_umrddt_wait_cancel(mca_pml_umrddt_wait_t *wait);

/** Change the number of active messages. Progress does nothing while it is 0. */
void mca_pml_umrddt_active(int change);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_PROGRESS_H */
