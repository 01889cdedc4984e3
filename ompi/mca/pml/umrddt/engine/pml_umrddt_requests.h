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
 * Requests of sends and receives: from their free lists to completion and back.
 */

#ifndef MCA_PML_UMRDDT_REQUESTS_H
#define MCA_PML_UMRDDT_REQUESTS_H

#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_send_request.h"

BEGIN_C_DECLS

/** Get a record for a message or a stripe from the free list. It has room for replies and rkeys;
 * other fields are unset. @return NULL if there is no memory */
mca_pml_umrddt_send_t *mca_pml_umrddt_send_get(void);

/** Release the objects of a send request and return it to the free list. */
void mca_pml_umrddt_send_return(mca_pml_umrddt_send_t *send);

/** Allocate the record of a receive, or of a part. It has no request yet, and holds no references.
 * NULL: no memory */
static inline mca_pml_umrddt_recv_t *mca_pml_umrddt_record_alloc(void *buf, size_t count,
                                                                 ompi_datatype_t *datatype, int src,
                                                                 int tag,
                                                                 mca_pml_umrddt_comm_t *comm)
{
    mca_pml_umrddt_recv_t *recv =
        (mca_pml_umrddt_recv_t *) opal_free_list_get(&mca_pml_umrddt.recvs);

    if (OPAL_LIKELY(NULL != recv)) {
        recv->state = MCA_PML_UMRDDT_RECV_POSTED;
        recv->buf = buf;
        recv->count = count;
        recv->datatype = datatype;
        recv->src = src;
        recv->tag = tag;
        recv->comm = comm;
        recv->host = NULL;
        recv->posted = false;
        recv->hold = 0;
        recv->bounced = recv->kept = false;
    }
    return recv;
}

/** Return a record together with its request of the base PML. */
void mca_pml_umrddt_recv_return(mca_pml_umrddt_recv_t *recv);

/**
 * End of a blocking call: wait for a request, return its status and free it.
 *
 * @param[out] status  may be MPI_STATUS_IGNORE
 *
 * @return the request's error
 */
int mca_pml_umrddt_wait_and_free(ompi_request_t *request, ompi_status_public_t *status);

/** Get a receive request of our own (req == &super), not started. @return NULL: no memory */
mca_pml_umrddt_recv_t *mca_pml_umrddt_recv_alloc(void *buf, size_t count, ompi_datatype_t *datatype,
                                                 int src, int tag, mca_pml_umrddt_comm_t *comm);

/** Make progress the owner of the receive until mca_pml_umrddt_recv_finish. From any thread. */
static inline void mca_pml_umrddt_recv_begin(mca_pml_umrddt_recv_t *recv,
                                             mca_pml_umrddt_recv_state_t state,
                                             void (*event)(void *))
{
    recv->state = state;
    recv->ops = NULL;
    mca_pml_umrddt_active(1);
    mca_pml_umrddt_event(&recv->event, event, recv);
}

/** Set the status and complete. Only from progress, which must own the receive. */
void mca_pml_umrddt_recv_finish(mca_pml_umrddt_recv_t *recv, int error, size_t length);

/** For profilers: end range @p begun of NVTX unless it is 0, and begin one of @p name unless that
 * is NULL. @return the new range or 0. Called with 0 and NULL it sets mca_pml_umrddt.ranges */
uint64_t mca_pml_umrddt_range(uint64_t begun, const char *name, uint64_t bytes);

static inline void mca_pml_umrddt_range_end(uint64_t *range)
{
    if (OPAL_UNLIKELY(0 != *range)) {
        *range = mca_pml_umrddt_range(*range, NULL, 0);
    }
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

/** The buffer may belong to the application again. Progress and a thread that frees the request may
 * call this at the same time. */
static inline void mca_pml_umrddt_send_unhold(mca_pml_umrddt_send_t *send)
{
    uint64_t hold = __atomic_load_n(&send->hold, __ATOMIC_RELAXED);

    if (0 != hold) {
        if (opal_using_threads()) {
            hold = __atomic_exchange_n(&send->hold, 0, __ATOMIC_ACQ_REL);
        } else {
            send->hold = 0;
        }
    }
    if (0 != hold) {
        opal_umrddt_gpu_memory_release(hold, opal_using_threads());
    }
}

/** The buffer belongs to the application again. */
static inline void mca_pml_umrddt_recv_unhold(mca_pml_umrddt_recv_t *recv)
{
    if (0 != recv->hold) {
        opal_umrddt_gpu_memory_release(recv->hold, opal_using_threads());
        recv->hold = 0;
    }
}

/** Memory kind of the receive buffer, for a CTS: MCA_PML_UMRDDT_IN_GPU or 0. */
static inline uint32_t mca_pml_umrddt_recv_memory(const mca_pml_umrddt_recv_t *recv)
{
    return opal_umrddt_gpu_on_gpu(&recv->where) ? MCA_PML_UMRDDT_IN_GPU : 0;
}

/* ---------------------------------------------------------------------------------------------
 * Receives into memory of ours, which is then copied to the user's buffer. A bounce buffer has room
 * for an envelope: recv->rts, or one of pml_umrddt_recv_watch.c. A larger one is a staging buffer
 * (pml_umrddt_stage.h).
 * ------------------------------------------------------------------------------------------- */

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

END_C_DECLS

#endif /* MCA_PML_UMRDDT_REQUESTS_H */
