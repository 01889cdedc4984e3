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
 * Claims: messages that a probe has taken from the base PML before their receive is posted.
 * Functions of pml_umrddt_probe.c.
 */

#ifndef MCA_PML_UMRDDT_CLAIM_H
#define MCA_PML_UMRDDT_CLAIM_H

#include "ompi_config.h"

#include "ompi/datatype/ompi_datatype.h"
#include "ompi/message/message.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"

BEGIN_C_DECLS

/** Kind of a claim: a message taken from the base PML before its receive is posted. */
typedef enum mca_pml_umrddt_claim_kind_t {
    MCA_PML_UMRDDT_CLAIM_ENVELOPE, /**< bytes holds an RTS */
    MCA_PML_UMRDDT_CLAIM_DATA,     /**< bytes holds a plain message of the envelope's size */
    MCA_PML_UMRDDT_CLAIM_HANDLE    /**< any other plain message: handle is the base PML's */
} mca_pml_umrddt_claim_kind_t;

struct mca_pml_umrddt_claim_t {
    opal_free_list_item_t super;
    mca_pml_umrddt_claim_kind_t kind;
    mca_pml_umrddt_comm_t *comm;
    uint64_t order; /**< order of matching among the claims of a communicator */
    int src;
    int tag;
    size_t length; /**< of the message, as a probe reports it */
    int error;     /**< of the base PML's receive of bytes, for the application */
    ompi_message_t *handle;
    union {
        mca_pml_umrddt_rts_t rts;
        unsigned char data[MCA_PML_UMRDDT_ENVELOPE];
    } bytes;
};
OBJ_CLASS_DECLARATION(mca_pml_umrddt_claim_t);

/** Remove the first claim that matches (src, tag). @return NULL: none. comm->gate.lock is held. */
mca_pml_umrddt_claim_t *mca_pml_umrddt_claim_take(mca_pml_umrddt_comm_t *comm, int src, int tag);

/** Give a claimed message to a new receive, *request. Consumes the claim. */
int mca_pml_umrddt_claim_deliver(mca_pml_umrddt_claim_t *claim, void *buf, size_t count,
                                 ompi_datatype_t *datatype, ompi_request_t **request);

/** Give a claimed message to a started receive of our own. Consumes the claim. */
int mca_pml_umrddt_claim_into(mca_pml_umrddt_claim_t *claim, mca_pml_umrddt_recv_t *recv);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_CLAIM_H */
