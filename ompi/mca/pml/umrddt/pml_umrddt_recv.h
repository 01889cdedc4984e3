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
 * Requests of receives, shared by what posts them (pml_umrddt_recv_post.c) and what ends them
 * (pml_umrddt_recv.c).
 */

#ifndef MCA_PML_UMRDDT_RECV_H
#define MCA_PML_UMRDDT_RECV_H

#include "pml_umrddt.h"
#include "pml_umrddt_stage.h"

BEGIN_C_DECLS

/** What a CTS says of the memory that a message is received in: MCA_PML_UMRDDT_IN_GPU or 0. */
static inline uint32_t mca_pml_umrddt_recv_memory(const mca_pml_umrddt_recv_t *recv)
{
    return mca_pml_umrddt_on_gpu(&recv->where) ? MCA_PML_UMRDDT_IN_GPU : 0;
}

/** Said where a callback lets the host complete a request: what was written until here is for who
 * finds it complete. The host's own atomics see to that; this is for a race detector, which does
 * not see them, and nothing otherwise. */
#if !defined(MCA_PML_UMRDDT_PASS_ON)
#define MCA_PML_UMRDDT_PASS_ON(request) ((void) (request))
#endif

/** Said where the host calls back with a request: what was written before it was posted, in another
 * thread perhaps, comes before. The host's lock of what is posted sees to that; this, too, is for a
 * race detector, which does not see it. */
#if !defined(MCA_PML_UMRDDT_CALLED_BACK)
#define MCA_PML_UMRDDT_CALLED_BACK(request) ((void) (request))
#endif

/** A record of a receive that the host may still match, with no request behind it yet; it holds
 * nothing. NULL: no memory */
mca_pml_umrddt_recv_t *mca_pml_umrddt_record_alloc(void *buf, size_t count,
                                                   ompi_datatype_t *datatype, int src, int tag,
                                                   mca_pml_umrddt_comm_t *comm);

/** Give up a record together with the request of the host's that belongs to it. */
void mca_pml_umrddt_recv_return(mca_pml_umrddt_recv_t *recv);

/** Make the host's request behind a record, not started. @return the host's verdict */
int mca_pml_umrddt_base_init(mca_pml_umrddt_recv_t *recv);

/**
 * Callback of a request of the host's whose req_complete_cb_data is a record: it is about to
 * complete. @return 0 to let it, 1 to keep it pending
 */
int mca_pml_umrddt_base_received(ompi_request_t *request);

/** The free function of such a request, if it is what the user holds. */
int mca_pml_umrddt_watched_free(ompi_request_t **request);

/** What pml_umrddt_recv_small.c keeps for itself: made, and given back. */
void mca_pml_umrddt_recv_small_init(void);
void mca_pml_umrddt_recv_small_fini(void);

/** Mark a bounce as empty: some hosts deliver nothing of a message that is too long. */
static inline void mca_pml_umrddt_bounce_in(unsigned char *bounce)
{
    memcpy(bounce, mca_pml_umrddt.self.cookie, sizeof(mca_pml_umrddt.self.cookie));
}

/** Look where the buffer is, unless that is known: once a request. */
static inline void mca_pml_umrddt_recv_look(mca_pml_umrddt_recv_t *recv)
{
    if (!recv->looked) {
        (void) mca_pml_umrddt_memory_of(recv->comm, recv->buf, recv->count, recv->datatype,
                                        MCA_PML_UMRDDT_RECEIVER, &recv->where);
        recv->looked = true;
    }
}

/** True if nothing came since mca_pml_umrddt_bounce_in. */
static inline bool mca_pml_umrddt_bounce_empty(const unsigned char *bounce)
{
    return 0 == memcmp(bounce, mca_pml_umrddt.self.cookie, sizeof(mca_pml_umrddt.self.cookie));
}

/**
 * A plain message came into the bounce: hand it on.
 *
 * @param[in] error   the host's verdict
 * @param[in] length  of the message
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
    mca_pml_umrddt_unpack(buf, count, datatype, bounce, length);
    return error;
}

END_C_DECLS

#endif /* MCA_PML_UMRDDT_RECV_H */
