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
 * The record of a send. pml_umrddt_request.h has the common part of sends and receives.
 */

#ifndef MCA_PML_UMRDDT_SEND_REQUEST_H
#define MCA_PML_UMRDDT_SEND_REQUEST_H

#include "ompi_config.h"

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_comm.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_progress.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_request.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_stage.h"

BEGIN_C_DECLS

typedef enum mca_pml_umrddt_send_state_t {
    MCA_PML_UMRDDT_SEND_IDLE,    /**< persistent and not started */
    MCA_PML_UMRDDT_SEND_REPLY,   /**< envelope sent, waiting for a reply */
    MCA_PML_UMRDDT_SEND_KEYS,    /**< CTS received, waiting for local mkeys */
    MCA_PML_UMRDDT_SEND_MAPPING, /**< waiting for the UMRs of the local mkeys */
    MCA_PML_UMRDDT_SEND_PUT,     /**< RDMA writes in flight */
    MCA_PML_UMRDDT_SEND_BUSY,    /**< the scheme works, and receives replies meanwhile */
    MCA_PML_UMRDDT_SEND_FAILED,  /**< NACK sent, waiting for FALLBACK or ACK */
    MCA_PML_UMRDDT_SEND_BASE,    /**< the base PML sends the message */
    MCA_PML_UMRDDT_SEND_DRAIN    /**< complete except for the base PML's request of the envelope */
} mca_pml_umrddt_send_state_t;

/** A send that is handled, or that needs a staging buffer. */
struct mca_pml_umrddt_send_t {
    ompi_request_t super;
    mca_pml_umrddt_event_t event; /**< a reply arrived */
    mca_pml_umrddt_wait_t wait;
    mca_pml_umrddt_send_state_t state;
    int release;        /**< mca_pml_umrddt_release_t */
    bool plain;         /**< passed through; here only for its staging buffer */
    bool probes_memory; /**< probe message: finds out the receive memory (umrddt_select_offers.h)
                         */
    bool offered;       /**< offered this time, with a key: the result goes into the offer cache */
    bool declinable;    /**< the receiver may decline it */
    bool chosen;        /**< the receiver has declined it */
    bool left;          /**< the receiver declines the following messages, too */
    uint64_t offer;     /**< key in the offer cache; 0: none */
    bool freed;         /**< the application freed the request; atomic */

    const void *buf;
    size_t count;
    ompi_datatype_t *datatype;
    int dst;
    int tag;
    mca_pml_base_send_mode_t mode;
    mca_pml_umrddt_comm_t *comm;
    mca_pml_umrddt_peer_t *peer;
    opal_umrddt_gpu_where_t where; /**< memory kind of the buffer; undefined without a GPU */

    opal_umrddt_gpu_stage_t
        stage; /**< memory from which the base PML sends in place of the buffer, if needed */
    opal_umrddt_gpu_stream_copy_t transit;
    bool pack_error; /**< packing into the staging buffer failed */

    opal_iov_cache_layout_t *layout;
    mca_btl_umr_endpoint_t *endpoint;
    mca_btl_umr_memory_t *memory;
    uint32_t request_id;
    uint64_t total;    /**< bytes that are received */
    uint64_t position; /**< bytes whose writes have completed */
    mca_pml_umrddt_rts_t rts;
    ompi_request_t *envelope;      /**< the base PML's request of the RTS; NULL: complete */
    ompi_request_t *listen;        /**< receive request for a reply; NULL: not posted */
    ompi_request_t *host;          /**< the base PML's request for the data */
    mca_pml_umrddt_reply_t *reply; /**< buffer for replies: mca_pml_umrddt_reply_room */
    mca_btl_umr_key_t *remote;     /**< scratch: the peer's rkeys for one put */
    const struct mca_pml_umrddt_scheme_t *ops; /**< scheme of the last reply; NULL: none yet */
    /** Data of that scheme; see MCA_PML_UMRDDT_HELD. */
    _Alignas(MCA_PML_UMRDDT_HELD_ALIGN) unsigned char held[MCA_PML_UMRDDT_SEND_HELD];
    uint32_t written;          /**< chunks written, for the NACK */
    bool reported;             /**< the receiver has sent an INFO_REQ */
    uint64_t hold;             /**< of opal_umrddt_gpu_memory_hold; or 0; atomic */
    uint64_t range;            /**< of mca_pml_umrddt_range; or 0 */
    void (*await)(void *send); /**< event that waits for the end; NULL: wait for a reply */
    time_t refused;            /**< refusal of the data by the base PML: mca_pml_umrddt_given_up */

    /* pml_umrddt_engine.h */
    struct mca_pml_umrddt_send_split_t *split;        /**< parent or part; else NULL */
    struct mca_pml_umrddt_send_split_t *split_cached; /**< kept for reuse, of malloc; or NULL */
};
OBJ_CLASS_DECLARATION(mca_pml_umrddt_send_t);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_SEND_REQUEST_H */
