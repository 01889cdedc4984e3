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
 * Carrying GPU memory for a base PML that cannot: it sends from, and receives into, memory of ours
 * (a *stage*), as packed bytes, so that the other side is an ordinary message. Between a stage and
 * the user's buffer the GPU copies (a *transit*).
 */

#ifndef MCA_PML_UMRDDT_STAGE_H
#define MCA_PML_UMRDDT_STAGE_H

#include "ompi_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/pml/pml.h"

#include "opal/datatype/iov_cache/iov_cache.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_engine.h"

#include "pml_umrddt_gpu.h"

BEGIN_C_DECLS

struct ompi_communicator_t;
struct ompi_request_t;
struct ompi_message_t;
struct mca_pml_umrddt_recv_t;

/** Memory in place of a buffer. All 0: none. */
typedef struct mca_pml_umrddt_stage_t {
    unsigned char *bytes;
    size_t room;
    opal_umrddt_gpu_kind_t kind; /**< PINNED: of the GPU room's pool; HOST: plain memory */
} mca_pml_umrddt_stage_t;

/** What a stage is for. */
typedef enum mca_pml_umrddt_stage_use_t {
    MCA_PML_UMRDDT_STAGE_DATA, /**< data will be there, no more than its size */
    MCA_PML_UMRDDT_STAGE_ROOM  /**< data may come, or more than there is room for */
} mca_pml_umrddt_stage_use_t;

/**
 * Take a stage: for data, pinned, if it is not too large and the pool has room; else plain memory.
 *
 * @param[in]  where  the buffer whose place it takes
 * @param[in]  size   bytes; 0 is as 1
 * @param[out] stage  the caller's until mca_pml_umrddt_stage_put
 *
 * @retval OMPI_SUCCESS, OMPI_ERR_OUT_OF_RESOURCE
 */
int mca_pml_umrddt_stage_get(const mca_pml_umrddt_where_t *where, size_t size,
                             mca_pml_umrddt_stage_use_t use, mca_pml_umrddt_stage_t *stage);

/** Give a stage back; all 0 afterwards, and nothing happens if it was before. */
void mca_pml_umrddt_stage_put(mca_pml_umrddt_stage_t *stage);

/** Tell the user, once, why a message ends with an error: a copy between its buffer and a stage
 * fails. @param[in] in  into the buffer */
void mca_pml_umrddt_stage_failed(const mca_pml_umrddt_where_t *where, size_t size, bool in, int rc);

/** Bytes that stages keep for the next ones, and to free them. */
size_t mca_pml_umrddt_stage_kept(void);
void mca_pml_umrddt_stage_fini(void);

/** A copy between a buffer and bytes of ours, under way. */
typedef struct mca_pml_umrddt_transit_t {
    opal_umrddt_gpu_copy_t *copy;    /**< that runs now, or NULL */
    opal_iov_cache_layout_t *layout; /**< the buffer's; NULL: it is one piece */
    opal_umrddt_gpu_memory_t memory; /**< the buffer's */
    bool mixed;                      /**< the buffer is in several allocations */
    bool in;                         /**< into the buffer */
    opal_umrddt_gpu_kind_t kind;     /**< of our bytes */
    unsigned char *bytes;            /**< ours, of stream position 0 */
    uint64_t address;                /**< the buffer; of its first byte if it is one piece */
    uint64_t position;               /**< what is behind is done, or under way */
    uint64_t end;
} mca_pml_umrddt_transit_t;

/**
 * Begin to copy the first @p length bytes of a buffer's stream, out of it or @p in.
 *
 * @param[out] transit  to be called until it is over: mca_pml_umrddt_transit_test or _wait. Nothing
 *                      is held if this fails
 *
 * @retval OMPI_SUCCESS, or an error: memory, or the driver's
 */
int mca_pml_umrddt_transit(mca_pml_umrddt_transit_t *transit, const void *buf, size_t count,
                           ompi_datatype_t *datatype, const mca_pml_umrddt_where_t *where,
                           void *bytes, opal_umrddt_gpu_kind_t kind, size_t length, bool in);

/**
 * Go on with a copy.
 *
 * @retval OMPI_SUCCESS             it is over; nothing is held
 * @retval OMPI_ERR_RESOURCE_BUSY   not yet
 * @return else an error; it is over, and nothing is held
 */
int mca_pml_umrddt_transit_test(mca_pml_umrddt_transit_t *transit);

/** As mca_pml_umrddt_transit_test, until it is over: without progress of anything else. */
int mca_pml_umrddt_transit_wait(mca_pml_umrddt_transit_t *transit);

/**
 * A stage with the packed stream of a buffer. Waits for the GPU: what is sent next on the
 * communicator must not overtake this message.
 *
 * @param[out] stage  the caller's
 *
 * @retval OMPI_SUCCESS, or an error
 */
int mca_pml_umrddt_stage_pack(const void *buf, size_t count, ompi_datatype_t *datatype,
                              const mca_pml_umrddt_where_t *where, mca_pml_umrddt_stage_t *stage);

/**
 * What to tell the base PML of a stage that it sends.
 *
 * @param[in]  pieces    the user's message is not one piece of memory
 * @param[out] datatype  to be given back once the send is posted: mca_pml_umrddt_stage_as_end
 */
void mca_pml_umrddt_stage_as(size_t size, bool pieces, size_t *count, ompi_datatype_t **datatype);
void mca_pml_umrddt_stage_as_end(ompi_datatype_t *datatype);

/** A blocking send of a buffer that the base PML must not touch. As pml_send. */
int mca_pml_umrddt_stage_send(const void *buf, size_t count, ompi_datatype_t *datatype, int dst,
                              int tag, mca_pml_base_send_mode_t mode,
                              struct ompi_communicator_t *comm,
                              const mca_pml_umrddt_where_t *where);

/* pml_umrddt_stage_recv.c */

/** Note which basic types mca_pml_umrddt_is_wide is about; before the first receive. */
void mca_pml_umrddt_stage_init(void);

/** As mca_pml_umrddt_stage_wanted, where mca_pml_umrddt_is_wide: false if the communicator is not
 * known. */
bool mca_pml_umrddt_stage_wide(void *buf, size_t count, ompi_datatype_t *datatype,
                               struct ompi_communicator_t *comm, mca_pml_umrddt_where_t *where);

/**
 * True if the base PML must not receive into this buffer, unless it can be given it
 * (mca_pml_umrddt_base_given_recv), or if an envelope may come, which nobody could read there or
 * for which it is too small.
 *
 * @param[out] where  of the buffer, if so
 */
bool mca_pml_umrddt_stage_wanted(void *buf, size_t count, ompi_datatype_t *datatype,
                                 struct ompi_communicator_t *comm, mca_pml_umrddt_where_t *where);

/** Whether to ask that: by what is known of the buffer, and by the datatype alone where the base
 * PML is given all GPU memory. Empty buffers need no stage. */
#define MCA_PML_UMRDDT_STAGE_WANTED(buf, count, datatype, comm, where)            \
    (mca_pml_umrddt_is_wide((datatype), (count))                                  \
         ? mca_pml_umrddt_stage_wide((buf), (count), (datatype), (comm), (where)) \
         : NULL != mca_pml_umrddt.gpu && 0 != (count) * (datatype)->super.size    \
               && !mca_pml_umrddt_known_system((buf), (count), (datatype))        \
               && (MCA_PML_UMRDDT_BASE_GPU_ALL != mca_pml_umrddt.base_gpu         \
                   || MCA_PML_UMRDDT_ENVELOPE > (count) * (datatype)->super.size  \
                   || !mca_pml_umrddt_is_contiguous((datatype), (count)))         \
               && mca_pml_umrddt_stage_wanted((buf), (count), (datatype), (comm), (where)))

/** As pml_irecv, pml_irecv_init and pml_recv, of a buffer that wants a stage. */
int mca_pml_umrddt_stage_irecv(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                               struct ompi_communicator_t *comm,
                               const mca_pml_umrddt_where_t *where,
                               struct ompi_request_t **request);
int mca_pml_umrddt_stage_irecv_init(void *buf, size_t count, ompi_datatype_t *datatype, int src,
                                    int tag, struct ompi_communicator_t *comm,
                                    const mca_pml_umrddt_where_t *where,
                                    struct ompi_request_t **request);

/** As pml_imrecv, of a message of the host's. */
int mca_pml_umrddt_stage_imrecv(void *buf, size_t count, ompi_datatype_t *datatype,
                                struct ompi_message_t **message,
                                const mca_pml_umrddt_where_t *where,
                                struct ompi_request_t **request);

/** Let the host receive its message into a stage, recv->overflow. @return the host's verdict */
int mca_pml_umrddt_stage_imrecv_into(struct mca_pml_umrddt_recv_t *recv,
                                     struct ompi_message_t **message);

/** The host has received a plain message into recv->stage: callback. Progress brings it on. */
void mca_pml_umrddt_stage_received(struct mca_pml_umrddt_recv_t *recv);

/** A plain message of the envelope's size is in recv->bounce, its source and tag in recv->status:
 * progress brings it into the buffer and completes the receive. From any thread. */
void mca_pml_umrddt_stage_bounced(struct mca_pml_umrddt_recv_t *recv);

/** As mca_pml_umrddt_stage_bounced; of progress only, which has the receive already. */
void mca_pml_umrddt_stage_fill_bounce(struct mca_pml_umrddt_recv_t *recv);

/**
 * Bring bytes of ours into the buffer, then end the receive. Of progress only.
 *
 * @param[in] bytes   as many as @p length says, or more; valid until the receive is over
 * @param[in] error   for the user, and
 * @param[in] ucount  the status's size
 */
void mca_pml_umrddt_stage_fill(struct mca_pml_umrddt_recv_t *recv, void *bytes,
                               opal_umrddt_gpu_kind_t kind, size_t length, int error,
                               size_t ucount);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_STAGE_H */
