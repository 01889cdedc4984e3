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
 * Lists of messages of the PML between the buffers of one collective. coll_umrddt_direct.c fills
 * them.
 */

#ifndef MCA_COLL_UMRDDT_MESSAGES_H
#define MCA_COLL_UMRDDT_MESSAGES_H

#include "coll_umrddt_side.h"

#include "ompi/request/request.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_engine.h"

BEGIN_C_DECLS

/** One message: a part of a side, to or from a rank. The arrays of the call are not read again. */
typedef struct mca_coll_umrddt_message_t {
    int peer;
    mca_coll_umrddt_part_t part;
} mca_coll_umrddt_message_t;

/** A copy of a part to another one of this process. */
typedef struct mca_coll_umrddt_own_t {
    opal_umrddt_gpu_copy_t *copy; /**< not complete */
    opal_iov_cache_layout_t *layouts[2];
} mca_coll_umrddt_own_t;

/**
 * Post the messages and copies that follow, when all earlier ones have ended.
 *
 * @return false: none follow; true: test again
 */
struct mca_coll_umrddt_direct_t;
typedef bool (*mca_coll_umrddt_step_t)(struct mca_coll_umrddt_direct_t *direct);

/** State of a collective in steps (coll_umrddt_steps.h); all 0 at the start. */
typedef struct mca_coll_umrddt_progress_t {
    int phase;
    int rc;    /**< all-to-all in place: the error so far, while copies are in progress */
    int first; /**< all-to-all in place: of the messages in progress */
    int last;
    int posted;     /**< pieces: receives posted, */
    int arrived;    /**< and complete, */
    int sending;    /**< sends posted, */
    int sent;       /**< and complete */
    char *temp;     /**< memory for packed data, or NULL */
    bool on_device; /**< it is scratch memory of a GPU */
} mca_coll_umrddt_progress_t;

/** All 0: unused. A module has one for blocking collectives, and each request has its own. */
typedef struct mca_coll_umrddt_direct_t {
    struct mca_coll_umrddt_direct_t *next; /**< of those that no request uses */
    ompi_communicator_t *comm;
    const mca_coll_umrddt_side_t *send; /**< only while the lists are filled */
    const mca_coll_umrddt_side_t *recv;
    mca_coll_umrddt_message_t *sends; /**< in the order in which they match at the receiver */
    mca_coll_umrddt_message_t *recvs; /**< in the order in which they match */
    ompi_request_t **requests;
    mca_coll_umrddt_own_t *own;
    int send_count;
    int recv_count;
    int room;          /**< allocated entries of sends, recvs and own, and half of requests */
    int request_count; /**< of requests in progress */
    int receives;      /**< the first of these so many receive data; see post_send */
    int own_count;     /**< of copies in progress */
    int self;          /**< the peer that is this process; -1: none, in an intercommunicator */
    int tag;           /**< of all messages */
    int rc;            /**< the first error of a request */
    bool retains;      /**< the lists retain their datatypes */
    struct mca_coll_umrddt_reduce_work_t *reduction;        /**< of a reduction, or NULL */
    void (*close)(struct mca_coll_umrddt_direct_t *direct); /**< releases it; or NULL */
    mca_coll_umrddt_step_t step; /**< NULL: all messages of the lists are posted at once */
    mca_coll_umrddt_progress_t now;
    int pieces;       /**< of a bcast in pieces, */
    int peers[2];     /**< from and to these ranks, or -1 */
    bool packs;       /**< by a packed copy of the buffer */
    uint32_t *served; /**< number of calls with this tag that have ended; NULL: no other one */
    uint32_t turn;    /**< a call with that tag begins when so many have ended */
    bool waits;       /**< it has not begun */
} mca_coll_umrddt_direct_t;

/**
 * Allocate the lists for any collective on the communicator, before an agreement. @return false: no
 * memory, so this process must not state MCA_COLL_UMRDDT_ALL_GPU
 *
 * @param[in,out] direct  NULL at first; release with mca_coll_umrddt_messages_free
 */
bool mca_coll_umrddt_messages_room(mca_coll_umrddt_direct_t **direct, ompi_communicator_t *comm);

/** Number of neighbors that send to this process, or that it sends to: the larger one; 0 without a
 * topology. */
int mca_coll_umrddt_messages_neighbours(ompi_communicator_t *comm);

/** Free the lists. NULL is allowed. */
void mca_coll_umrddt_messages_free(mca_coll_umrddt_direct_t *direct);

/** Empty the lists, which have room for the messages that are added. */
void mca_coll_umrddt_messages_begin(mca_coll_umrddt_direct_t *direct, ompi_communicator_t *comm,
                                    const mca_coll_umrddt_side_t *send,
                                    const mca_coll_umrddt_side_t *recv);

/** Append part @p part of a side to a list, unless the peer is MPI_PROC_NULL. */
static inline void mca_coll_umrddt_add_send(mca_coll_umrddt_direct_t *direct, int peer, int part)
{
    if (MPI_PROC_NULL != peer) {
        mca_coll_umrddt_message_t *message = &direct->sends[direct->send_count++];

        message->peer = peer;
        mca_coll_umrddt_side_part(direct->send, part, &message->part);
    }
}

static inline void mca_coll_umrddt_add_recv(mca_coll_umrddt_direct_t *direct, int peer, int part)
{
    if (MPI_PROC_NULL != peer) {
        mca_coll_umrddt_message_t *message = &direct->recvs[direct->recv_count++];

        message->peer = peer;
        mca_coll_umrddt_side_part(direct->recv, part, &message->part);
    }
}

/** Bytes of a piece of a bcast in pieces, at least. */
#define MCA_COLL_UMRDDT_PIECE ((size_t) 128 << 10)

/** Piece @p i of n pieces of a contiguous buffer. */
void mca_coll_umrddt_piece_of(const mca_coll_umrddt_part_t *whole, int i, int n,
                              mca_coll_umrddt_part_t *piece);

/** Keep the first error of a call. */
static inline void mca_coll_umrddt_note(int *rc, int one)
{
    *rc = OMPI_SUCCESS == *rc ? one : *rc;
}

/**
 * Post one message, unless it has no bytes.
 *
 * @param[in] failed  this process could not get the data: a message without data goes instead, and
 *                    the receiver's call fails, if it counts the request as one of receives
 */
int mca_coll_umrddt_post_send(mca_coll_umrddt_direct_t *direct, ompi_communicator_t *comm,
                              const mca_coll_umrddt_part_t *part, int peer, bool failed);
int mca_coll_umrddt_post_recv(mca_coll_umrddt_direct_t *direct, ompi_communicator_t *comm,
                              const mca_coll_umrddt_part_t *part, int peer);

/**
 * Start to copy a part to another one of this process, by the device if possible.
 *
 * @return OMPI_SUCCESS, or an error; the copy or the message to itself is in progress or has ended
 */
int mca_coll_umrddt_copy_part(mca_coll_umrddt_direct_t *direct, const mca_coll_umrddt_part_t *from,
                              const mca_coll_umrddt_part_t *to);

/**
 * Wait for a message. Open MPI does not free the request of one that failed.
 *
 * @param[in] data  it brings data of another process
 *
 * @return its error; MPI_ERR_OTHER: the other process has failed to get the data
 */
static inline int mca_coll_umrddt_wait_one(ompi_request_t **request, bool data)
{
    ompi_status_public_t status = {._ucount = 0};
    const int rc = ompi_request_wait(request, &status);

    if (OPAL_UNLIKELY(MPI_REQUEST_NULL != *request)) {
        (void) ompi_request_free(request);
    }
    return OMPI_SUCCESS == rc && data && 0 == status._ucount ? MPI_ERR_OTHER : rc;
}

/**
 * Wait for all messages in progress, also after an error: the other processes send and receive
 * theirs.
 *
 * @param[in] rc  the error of the call so far
 *
 * @return rc, or the first error
 */
int mca_coll_umrddt_wait_all(mca_coll_umrddt_direct_t *direct, int rc);

/**
 * Do all messages of the lists, in groups. If a group is not all of them, the n-th message must
 * have the same distance of ranks in all processes.
 *
 * @param[in] most        messages of a group, in each direction
 * @param[in] most_bytes  a group ends with the receive that reaches so many bytes
 *
 * @return OMPI_SUCCESS, or the first error of a message or copy; all others have ended
 */
int mca_coll_umrddt_exchange(mca_coll_umrddt_direct_t *direct, int most, size_t most_bytes);

/* ---------------------------------------------------------------------------------------------
 * Of requests
 * ------------------------------------------------------------------------------------------- */

/** Get lists with room for @p n messages in each direction. @return NULL: no memory */
mca_coll_umrddt_direct_t *mca_coll_umrddt_messages_get(int n);

/** Retain the datatypes of the lists, up to mca_coll_umrddt_messages_put. */
void mca_coll_umrddt_messages_retain(mca_coll_umrddt_direct_t *direct);

/** Return lists without messages in progress. NULL is allowed. */
void mca_coll_umrddt_messages_put(mca_coll_umrddt_direct_t *direct);

/** Post all messages of the lists, or the first step. Errors are returned by
 * mca_coll_umrddt_messages_test. */
void mca_coll_umrddt_messages_start(mca_coll_umrddt_direct_t *direct);

/**
 * Test all messages, and do the next step if all have ended. @return OMPI_ERR_RESOURCE_BUSY: in
 * progress; OMPI_SUCCESS; or the first error, with no message in progress
 */
int mca_coll_umrddt_messages_test(mca_coll_umrddt_direct_t *direct);

/** Free the lists that mca_coll_umrddt_messages_put has kept; no request is in progress. */
void mca_coll_umrddt_messages_close(void);

END_C_DECLS

#endif /* MCA_COLL_UMRDDT_MESSAGES_H */
