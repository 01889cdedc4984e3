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
 * Requests of receives, shared by the code that posts them (pml_umrddt_recv_post.c, read first) and
 * the code that completes them (pml_umrddt_recv.c).
 */

#ifndef MCA_PML_UMRDDT_RECV_H
#define MCA_PML_UMRDDT_RECV_H

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_pattern.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_stream.h"

BEGIN_C_DECLS

/** Memory kind of the receive buffer, for a CTS: MCA_PML_UMRDDT_IN_GPU or 0. */
static inline uint32_t mca_pml_umrddt_recv_memory(const mca_pml_umrddt_recv_t *recv)
{
    return mca_pml_umrddt_on_gpu(&recv->where) ? MCA_PML_UMRDDT_IN_GPU : 0;
}

/** Used where a callback lets the base PML complete a request: earlier writes are visible to the
 * thread that finds it complete. The base PML's own atomics ensure that. The macro is empty except
 * for a race detector, which does not see them. */
#if !defined(MCA_PML_UMRDDT_PASS_ON)
#define MCA_PML_UMRDDT_PASS_ON(request) ((void) (request))
#endif

/** Used where the base PML calls back: writes before the request was posted, maybe by another
 * thread, are visible. The base PML's lock of posted receives ensures that. The macro is empty
 * except for a race detector, which does not see it. */
#if !defined(MCA_PML_UMRDDT_CALLED_BACK)
#define MCA_PML_UMRDDT_CALLED_BACK(request) ((void) (request))
#endif

/** Allocate the record of a receive that the base PML may still match. It has no request yet, and
 * holds no references. NULL: no memory */
mca_pml_umrddt_recv_t *mca_pml_umrddt_record_alloc(void *buf, size_t count,
                                                   ompi_datatype_t *datatype, int src, int tag,
                                                   mca_pml_umrddt_comm_t *comm);

/** Return a record together with its request of the base PML. */
void mca_pml_umrddt_recv_return(mca_pml_umrddt_recv_t *recv);

/** Create the base PML's request of a record, not started. @return the base PML's error code */
int mca_pml_umrddt_base_init(mca_pml_umrddt_recv_t *recv);

/** Completion callback of a base PML request whose req_complete_cb_data is a record. @return 0: let
 * it complete; 1: keep it pending */
int mca_pml_umrddt_base_received(ompi_request_t *request);

/** Free function of such a request if it is the user's request. */
int mca_pml_umrddt_watched_free(ompi_request_t **request);

/** Create and free the free list of pml_umrddt_recv_small.c. */
void mca_pml_umrddt_recv_small_init(void);
void mca_pml_umrddt_recv_small_fini(void);

/** Mark a bounce buffer as empty: some base PMLs deliver nothing of a truncated message. */
static inline void mca_pml_umrddt_bounce_in(unsigned char *bounce)
{
    memcpy(bounce, mca_pml_umrddt.self.cookie, sizeof(mca_pml_umrddt.self.cookie));
}

/** Query the memory kind of the buffer, once for each request. */
static inline void mca_pml_umrddt_recv_look(mca_pml_umrddt_recv_t *recv)
{
    if (!recv->looked) {
        (void) mca_pml_umrddt_memory_of(recv->comm, recv->buf, recv->count, recv->datatype,
                                        MCA_PML_UMRDDT_RECEIVER, &recv->where);
        recv->looked = true;
    }
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
    mca_pml_umrddt_unpack(buf, count, datatype, bounce, length);
    return error;
}

int mca_pml_umrddt_recv_start(mca_pml_umrddt_recv_t *recv);

/** Get a receive request of our own (req == &super), not started. @return NULL: no memory */
mca_pml_umrddt_recv_t *mca_pml_umrddt_recv_alloc(void *buf, size_t count, ompi_datatype_t *datatype,
                                                 int src, int tag, mca_pml_umrddt_comm_t *comm);

/** Complete the application's request with req->req_status. */
void mca_pml_umrddt_recv_complete(mca_pml_umrddt_recv_t *recv);

/* pml_umrddt_recv_match.c, _recv_rndv.c, _recv_base.c: receiver's state machine */

/** Hand a receive to progress. Its envelope is in recv->rts, source and tag in recv->status. */
void mca_pml_umrddt_recv_matched(mca_pml_umrddt_recv_t *recv);

/** FIN handler of the HCA. */
void mca_pml_umrddt_recv_fin(void *context, mca_btl_umr_endpoint_t *endpoint, uint32_t fin);

/**
 * Wait for recv->data and complete the receive with its status. The base PML's request recv->data
 * receives into the user's buffer or into recv->overflow. From any thread.
 */
void mca_pml_umrddt_recv_await_base(mca_pml_umrddt_recv_t *recv);

/** Make progress the owner of the receive until mca_pml_umrddt_recv_finish. From any thread. */
void mca_pml_umrddt_recv_begin(mca_pml_umrddt_recv_t *recv, mca_pml_umrddt_recv_state_t state,
                               void (*event)(void *));

/** Set the status and complete. Only from progress, which must own the receive. */
void mca_pml_umrddt_recv_finish(mca_pml_umrddt_recv_t *recv, int error, size_t length);

/** A NACK arrived: the sender failed after our CTS. */
void mca_pml_umrddt_recv_failed(mca_pml_umrddt_comm_t *comm, int src,
                                const mca_pml_umrddt_fail_t *fail);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_RECV_H */
