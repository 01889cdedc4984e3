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
 * Receives into memory of ours, which is then copied to the user's buffer. A bounce buffer has room
 * for an envelope: recv->rts, or one of pml_umrddt_recv_watch.c. A larger one is a staging buffer
 * (pml_umrddt_stage.h).
 */

#ifndef MCA_PML_UMRDDT_BOUNCE_H
#define MCA_PML_UMRDDT_BOUNCE_H

#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"

BEGIN_C_DECLS

/** Mark a bounce buffer as empty: some base PMLs deliver nothing of a truncated message. */
static inline void mca_pml_umrddt_bounce_in(unsigned char *bounce)
{
    memcpy(bounce, mca_pml_umrddt.self.cookie, sizeof(mca_pml_umrddt.self.cookie));
}

/** Returns true if nothing was received since mca_pml_umrddt_bounce_in. */
static inline bool mca_pml_umrddt_bounce_empty(const unsigned char *bounce)
{
    return 0 == memcmp(bounce, mca_pml_umrddt.self.cookie, sizeof(mca_pml_umrddt.self.cookie));
}

/**
 * Deliver a plain message from the bounce buffer to the user.
 *
 * @param[in] error   error code of the base PML
 * @param[in] length  of the message, in bytes
 *
 * @return the error for the user
 */
static inline int mca_pml_umrddt_bounce_out(void *buf, size_t count, ompi_datatype_t *datatype,
                                            const unsigned char *bounce, int error, size_t length)
{
    size_t capacity = count * datatype->super.size;

    if (OPAL_UNLIKELY(MPI_SUCCESS != error) && mca_pml_umrddt_bounce_empty(bounce)) {
        return error;
    }
    if (capacity < length) {
        error = MPI_ERR_TRUNCATE;
        length = capacity;
    }
    opal_umrddt_gpu_stream_unpack(buf, count, &datatype->super, bounce, length);
    return error;
}

/** The memory that the base PML receives into in place of the user's buffer. */
static inline unsigned char *mca_pml_umrddt_recv_bounce(mca_pml_umrddt_recv_t *recv)
{
    return NULL == recv->stage.bytes ? (unsigned char *) &recv->rts : recv->stage.bytes;
}

/** A plain message is in recv_bounce, with its status in recv->status. Progress copies it to the
 * user's buffer and completes the receive. From any thread. */
void mca_pml_umrddt_recv_plain(mca_pml_umrddt_recv_t *recv);

/** As mca_pml_umrddt_recv_plain, but only from progress, where the receive is already active. */
void mca_pml_umrddt_recv_plain_active(mca_pml_umrddt_recv_t *recv);

/**
 * Copy packed bytes to the user's buffer, then end the receive with recv->status. Progress thread
 * only.
 *
 * @param[in] bytes  at least @p length bytes; valid until the receive has ended
 */
void mca_pml_umrddt_recv_unstage(mca_pml_umrddt_recv_t *recv, void *bytes,
                                 opal_umrddt_gpu_kind_t kind, size_t length);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_BOUNCE_H */
