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
 * Split messages: a scheme may carry a message by several records. Each part has a record of its
 * own, which runs the state machine of a message; the record of the user's request is the *parent*.
 * The engine knows only these functions; pml_umrddt_stripe.h has the only scheme that splits.
 */

#ifndef MCA_PML_UMRDDT_SPLIT_H
#define MCA_PML_UMRDDT_SPLIT_H

#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_send_request.h"

BEGIN_C_DECLS

/** Sender: the records of a split message share this. First member of the scheme's structure. */
typedef struct mca_pml_umrddt_send_split_t {
    mca_pml_umrddt_send_t *parent;

    /** The envelope was not sent: parent->split is to become NULL. Any thread. */
    void (*drop)(mca_pml_umrddt_send_t *parent);

    /** The user may free the buffer before the parts complete locally: let go of their
     * registrations (memory_let_go). From any thread that owns the request. */
    void (*let_go)(struct mca_pml_umrddt_send_split_t *split);

    /** A part waits for a reply. @return as mca_pml_umrddt_send_listen */
    int (*listen)(mca_pml_umrddt_send_t *part);

    /** A reply of @p length bytes is in parent->reply, and no receive is posted. Pass it to the
     * part that it is for. @return false: it is for the parent */
    bool (*replied)(mca_pml_umrddt_send_t *parent, size_t length);

    /** A record has ended, and holds nothing. @return false: it is the parent, which the caller
     * completes */
    bool (*ended)(mca_pml_umrddt_send_t *send, int error);
} mca_pml_umrddt_send_split_t;

/** Receiver: likewise. */
typedef struct mca_pml_umrddt_recv_split_t {
    mca_pml_umrddt_recv_t *parent;

    /** A part needs the base PML. @return false: the caller sends FALLBACK; true: another part did,
     * and this one has ended */
    bool (*by_base)(mca_pml_umrddt_recv_t *part);

    /** As for the sender. */
    bool (*ended)(mca_pml_umrddt_recv_t *recv, int error);
} mca_pml_umrddt_recv_split_t;

/** Returns true if the record is a part of a split message. */
static inline bool mca_pml_umrddt_send_is_part(const mca_pml_umrddt_send_t *send)
{
    return OPAL_UNLIKELY(NULL != send->split) && send != send->split->parent;
}

END_C_DECLS

#endif /* MCA_PML_UMRDDT_SPLIT_H */
