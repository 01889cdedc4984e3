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
 * Staging of GPU memory for a base PML that cannot access it. The base PML sends from, and receives
 * into, a *staging buffer* of packed bytes, so that the other side sees an ordinary message. The
 * GPU copies between the staging buffer and the user's buffer (a *transit*).
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

#include "ompi/mca/pml/umrddt/core/pml_umrddt_pattern.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_wide.h"

BEGIN_C_DECLS

struct ompi_communicator_t;
struct ompi_request_t;
struct ompi_message_t;
struct mca_pml_umrddt_recv_t;

/** A staging buffer. All 0: none. */
typedef struct mca_pml_umrddt_stage_t {
    unsigned char *bytes;
    size_t room;
    opal_umrddt_gpu_kind_t kind; /**< PINNED: from the GPU staging pool; HOST: plain memory */
} mca_pml_umrddt_stage_t;

/** Use of a staging buffer. */
typedef enum mca_pml_umrddt_stage_use_t {
    MCA_PML_UMRDDT_STAGE_DATA, /**< it will be filled up to its size */
    MCA_PML_UMRDDT_STAGE_ROOM  /**< for a receive: less or more data may arrive */
} mca_pml_umrddt_stage_use_t;

/**
 * Get a staging buffer. For data it is pinned if its size and the pool permit; else plain.
 *
 * @param[in]  where  the user's buffer
 * @param[in]  size   in bytes; 0 counts as 1
 * @param[out] stage  owned by the caller until mca_pml_umrddt_stage_put
 *
 * @retval OMPI_SUCCESS, OMPI_ERR_OUT_OF_RESOURCE
 */
int mca_pml_umrddt_stage_get(const mca_pml_umrddt_where_t *where, size_t size,
                             mca_pml_umrddt_stage_use_t use, mca_pml_umrddt_stage_t *stage);

/** Release a staging buffer and set it to all 0. No effect if it is all 0. */
void mca_pml_umrddt_stage_put(mca_pml_umrddt_stage_t *stage);

/** Report to the user, once, that a copy between a buffer and a staging buffer failed, and that the
 * message ends with an error. @param[in] in  into the buffer */
void mca_pml_umrddt_stage_failed(const mca_pml_umrddt_where_t *where, size_t size, bool in, int rc);

/** Bytes in cached plain buffers; mca_pml_umrddt_stage_fini frees them. */
size_t mca_pml_umrddt_stage_kept(void);
void mca_pml_umrddt_stage_fini(void);

/** A copy in progress between a user's buffer and packed bytes. */
typedef struct mca_pml_umrddt_transit_t {
    opal_umrddt_gpu_copy_t *copy;    /**< the current GPU copy, or NULL */
    opal_iov_cache_layout_t *layout; /**< of the user's buffer; NULL: contiguous */
    opal_umrddt_gpu_memory_t memory; /**< of the user's buffer */
    bool mixed;                      /**< the buffer spans several allocations */
    bool in;                         /**< into the user's buffer */
    opal_umrddt_gpu_kind_t kind;     /**< of the packed bytes */
    unsigned char *bytes;            /**< the packed bytes, from stream position 0 */
    uint64_t address;  /**< of the user's buffer; of its first byte if it is contiguous */
    uint64_t position; /**< earlier bytes are copied, or in progress */
    uint64_t end;
} mca_pml_umrddt_transit_t;

/**
 * Start to copy the first @p length bytes of a buffer's stream, out of it or (@p in) into it.
 *
 * @param[out] transit  call mca_pml_umrddt_transit_test or _wait until it has ended. Nothing is
 *                      held on error
 *
 * @retval OMPI_SUCCESS, or an error: no memory, or the driver's
 */
int mca_pml_umrddt_transit(mca_pml_umrddt_transit_t *transit, const void *buf, size_t count,
                           ompi_datatype_t *datatype, const mca_pml_umrddt_where_t *where,
                           void *bytes, opal_umrddt_gpu_kind_t kind, size_t length, bool in);

/**
 * Make progress on a copy.
 *
 * @retval OMPI_SUCCESS             it is complete; nothing is held
 * @retval OMPI_ERR_RESOURCE_BUSY   not yet complete
 * @return else an error; it has ended, and nothing is held
 */
int mca_pml_umrddt_transit_test(mca_pml_umrddt_transit_t *transit);

/** As mca_pml_umrddt_transit_test, but blocks until the end, without other progress. */
int mca_pml_umrddt_transit_wait(mca_pml_umrddt_transit_t *transit);

/** Copy the first @p length bytes of a buffer's packed stream. The base PML may have received into
 * device memory. @return bytes copied */
size_t mca_pml_umrddt_pack(const void *buf, size_t count, ompi_datatype_t *datatype, void *stream,
                           size_t length);

/**
 * Get a staging buffer with the packed stream of a buffer. Blocks until the GPU has finished,
 * because later sends on the communicator must not overtake this message.
 *
 * @param[out] stage  owned by the caller
 *
 * @retval OMPI_SUCCESS, or an error
 */
int mca_pml_umrddt_stage_pack(const void *buf, size_t count, ompi_datatype_t *datatype,
                              const mca_pml_umrddt_where_t *where, mca_pml_umrddt_stage_t *stage);

/**
 * Datatype and count for a send of a staging buffer by the base PML.
 *
 * @param[in]  pieces    the user's message is non-contiguous
 * @param[out] datatype  release it with mca_pml_umrddt_stage_as_end once the send is posted
 */
void mca_pml_umrddt_stage_as(size_t size, bool pieces, size_t *count, ompi_datatype_t **datatype);
void mca_pml_umrddt_stage_as_end(ompi_datatype_t *datatype);

/** Blocking send of a buffer that the base PML must not access. As pml_send. */
int mca_pml_umrddt_stage_send(const void *buf, size_t count, ompi_datatype_t *datatype, int dst,
                              int tag, mca_pml_base_send_mode_t mode,
                              struct ompi_communicator_t *comm,
                              const mca_pml_umrddt_where_t *where);

/* pml_umrddt_stage_recv.c */

/** As mca_pml_umrddt_stage_wanted, if mca_pml_umrddt_is_wide; false: unknown communicator. */
bool mca_pml_umrddt_stage_wide(void *buf, size_t count, ompi_datatype_t *datatype,
                               struct ompi_communicator_t *comm, mca_pml_umrddt_where_t *where);

/**
 * Returns true if a receive needs a staging buffer. One reason is that the base PML must not access
 * the buffer (but see mca_pml_umrddt_base_given_recv). Another is that an envelope may arrive that
 * does not fit the buffer or that the CPU cannot read there.
 *
 * @param[out] where  memory kind of the buffer, if true
 */
bool mca_pml_umrddt_stage_wanted(void *buf, size_t count, ompi_datatype_t *datatype,
                                 struct ompi_communicator_t *comm, mca_pml_umrddt_where_t *where);

/** Whether a receive needs a staging buffer, with fast checks first. If the base PML handles all
 * GPU memory, size and datatype decide. Empty buffers need no staging buffer. */
#define MCA_PML_UMRDDT_STAGE_WANTED(buf, count, datatype, comm, where)            \
    (mca_pml_umrddt_is_wide((datatype), (count))                                  \
         ? mca_pml_umrddt_stage_wide((buf), (count), (datatype), (comm), (where)) \
         : NULL != mca_pml_umrddt.gpu && 0 != (count) * (datatype)->super.size    \
               && !mca_pml_umrddt_known_system((buf), (count), (datatype))        \
               && (MCA_PML_UMRDDT_BASE_GPU_ALL != mca_pml_umrddt.base_gpu         \
                   || MCA_PML_UMRDDT_ENVELOPE > (count) * (datatype)->super.size  \
                   || !mca_pml_umrddt_is_contiguous((datatype), (count)))         \
               && mca_pml_umrddt_stage_wanted((buf), (count), (datatype), (comm), (where)))

/** As pml_irecv and pml_irecv_init, for a buffer that needs a staging buffer. */
int mca_pml_umrddt_stage_irecv(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                               struct ompi_communicator_t *comm,
                               const mca_pml_umrddt_where_t *where,
                               struct ompi_request_t **request);
int mca_pml_umrddt_stage_irecv_init(void *buf, size_t count, ompi_datatype_t *datatype, int src,
                                    int tag, struct ompi_communicator_t *comm,
                                    const mca_pml_umrddt_where_t *where,
                                    struct ompi_request_t **request);

/** As pml_imrecv, for a message of the base PML. */
int mca_pml_umrddt_stage_imrecv(void *buf, size_t count, ompi_datatype_t *datatype,
                                struct ompi_message_t **message,
                                const mca_pml_umrddt_where_t *where,
                                struct ompi_request_t **request);

/** Receive a base PML message into a staging buffer, recv->overflow. @return its error code */
int mca_pml_umrddt_stage_imrecv_into(struct mca_pml_umrddt_recv_t *recv,
                                     struct ompi_message_t **message);

/** Callback: the base PML has received a plain message into recv->stage. Progress copies it on. */
void mca_pml_umrddt_stage_received(struct mca_pml_umrddt_recv_t *recv);

/** A plain message of the envelope's size is in recv->bounce, with source and tag in recv->status.
 * Progress copies it to the buffer and completes the receive. From any thread. */
void mca_pml_umrddt_stage_bounced(struct mca_pml_umrddt_recv_t *recv);

/** As mca_pml_umrddt_stage_bounced, but only from progress, where the receive is already active. */
void mca_pml_umrddt_stage_fill_bounce(struct mca_pml_umrddt_recv_t *recv);

/**
 * Copy packed bytes to the user's buffer, then end the receive. Progress thread only.
 *
 * @param[in] bytes   at least @p length bytes; valid until the receive has ended
 * @param[in] error   error code for the user
 * @param[in] ucount  size for the status
 */
void mca_pml_umrddt_stage_fill(struct mca_pml_umrddt_recv_t *recv, void *bytes,
                               opal_umrddt_gpu_kind_t kind, size_t length, int error,
                               size_t ucount);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_STAGE_H */
