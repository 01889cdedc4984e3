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
 * The record of a receive, with room for the data of its scheme. pml_umrddt_request.h has the
 * common part of sends and receives.
 */

#ifndef MCA_PML_UMRDDT_RECV_REQUEST_H
#define MCA_PML_UMRDDT_RECV_REQUEST_H

#include "ompi_config.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_comm.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_layout.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_progress.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_request.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_stage.h"

BEGIN_C_DECLS

typedef enum mca_pml_umrddt_recv_state_t {
    MCA_PML_UMRDDT_RECV_POSTED,   /**< posted at the base PML, or not yet posted */
    MCA_PML_UMRDDT_RECV_MATCHED,  /**< has an envelope */
    MCA_PML_UMRDDT_RECV_KEYS,     /**< waiting for mkeys */
    MCA_PML_UMRDDT_RECV_MAPPING,  /**< waiting for the UMRs of the mkeys */
    MCA_PML_UMRDDT_RECV_CREDIT,   /**< waiting for a receive for the FIN */
    MCA_PML_UMRDDT_RECV_FIN,      /**< CTS sent */
    MCA_PML_UMRDDT_RECV_SPLIT,    /**< in parts, each with its own record */
    MCA_PML_UMRDDT_RECV_FLUSH,    /**< FIN received, data not yet visible to the GPU */
    MCA_PML_UMRDDT_RECV_LOOK,     /**< a part of the sender's export or layout is missing */
    MCA_PML_UMRDDT_RECV_INFO_REQ, /**< INFO_REQ sent for it */
    MCA_PML_UMRDDT_RECV_COPY,     /**< a GPU copies the message */
    MCA_PML_UMRDDT_RECV_CHUNKS,   /**< chunks in flight */
    MCA_PML_UMRDDT_RECV_BASE,     /**< the base PML carries the data */
    MCA_PML_UMRDDT_RECV_UNSTAGE,  /**< data received, to be copied to the user's buffer */
    MCA_PML_UMRDDT_RECV_DONE
} mca_pml_umrddt_recv_state_t;

/**
 * A receive that may get an envelope. Either it watches a request of the base PML that the
 * application holds (req == host), or the application holds its own request (req == &super). In the
 * second case there may be a request of the base PML as well.
 */
struct mca_pml_umrddt_recv_t {
    ompi_request_t super;
    mca_pml_umrddt_event_t event; /**< an envelope arrived, or a release is pending */
    mca_pml_umrddt_wait_t wait;
    opal_list_item_t active; /**< item of mca_pml_umrddt.receives from the match to the end */
    mca_pml_umrddt_recv_state_t state;

    void *buf;
    size_t count;
    ompi_datatype_t *datatype;
    int src;
    int tag;
    mca_pml_umrddt_comm_t *comm;

    ompi_request_t *req;              /**< the application's request */
    ompi_request_t *host;             /**< the base PML's request */
    ompi_request_free_fn_t host_free; /**< of the base PML's request, restored at the end */
    bool host_persistent;             /**< flag of the base PML's request */
    bool posted;                      /**< started at the base PML, not matched yet; atomic */
    int release;                      /**< mca_pml_umrddt_release_t */
    bool bounced; /**< received into the staging buffer, or into rts (pml_umrddt_requests.h) */
    bool kept;    /**< posted while the communicator keeps bytes; if not bounced, they are in rts */
    opal_umrddt_gpu_stage_t stage;

    mca_pml_umrddt_rts_t rts;
    ompi_status_public_t status;   /**< of the envelope, or of the plain message */
    uint64_t total;                /**< bytes to receive: min(message, capacity) */
    uint64_t position;             /**< bytes received */
    opal_umrddt_gpu_where_t where; /**< memory kind of the buffer, from the match on */
    bool looked;                   /**< where is set already before the match */
    uint64_t hold;                 /**< of opal_umrddt_gpu_memory_hold; or 0 */
    uint64_t range;                /**< of mca_pml_umrddt_range; or 0 */
    bool announced;                /**< a reply was announced by the completion flag */
    opal_iov_cache_layout_t *layout;
    mca_btl_umr_endpoint_t *endpoint; /**< of the HCA, if a scheme uses it or could not use it */
    mca_pml_umrddt_peer_t *peer;      /**< the sender */
    uint32_t fin;                     /**< immediate data of the FIN of this round; 0: none */

    /* pml_umrddt_scheme.h */
    uint16_t candidates;                       /**< MCA_PML_UMRDDT_BIT_* of schemes not yet tried */
    uint16_t preferred;                        /**< the candidate to try first, or 0 */
    const struct mca_pml_umrddt_scheme_t *ops; /**< carries the message; NULL: none yet */
    uint64_t *reason;                          /**< fallback counter; NULL: base selected */

    /** Data of the scheme; see MCA_PML_UMRDDT_HELD. */
    _Alignas(MCA_PML_UMRDDT_HELD_ALIGN) unsigned char held[MCA_PML_UMRDDT_RECV_HELD];

    /* pml_umrddt_engine.h */
    struct mca_pml_umrddt_recv_split_t *split;        /**< parent or part; else NULL */
    struct mca_pml_umrddt_recv_split_t *split_cached; /**< kept for reuse, of malloc; or NULL */

    /* pml_umrddt_select.h; this order leaves no padding */
    struct opal_umrddt_selected_t *pair; /**< entry of the selection cache; or NULL */
    uint32_t serial;                     /**< serial number of pair at the match */
    int scheme;     /**< mca_pml_umrddt_scheme_id_t: as selected, then as used */
    bool converged; /**< converged: the following messages use the same scheme */
    double began;   /**< time of the match in us, only with explain */

    ompi_request_t *data; /**< the base PML's request for the data */
    opal_umrddt_gpu_stage_t
        overflow; /**< receives the data if the base PML must not use the user's buffer */
    bool named;   /**< the status of data has the source and tag of the message */
    opal_umrddt_gpu_stream_copy_t transit;
    time_t refused; /**< refusal of the data by the base PML: mca_pml_umrddt_given_up */
};
OBJ_CLASS_DECLARATION(mca_pml_umrddt_recv_t);

/** Look up recv->layout unless it is set. @return false: no memory, and it is NULL */
static inline bool mca_pml_umrddt_recv_has_layout(mca_pml_umrddt_recv_t *recv)
{
    if (NULL == recv->layout
        && OPAL_UNLIKELY(OMPI_SUCCESS
                         != mca_pml_umrddt_layout(recv->datatype, recv->count, &recv->layout))) {
        recv->layout = NULL;
    }
    return NULL != recv->layout;
}

END_C_DECLS

#endif /* MCA_PML_UMRDDT_RECV_REQUEST_H */
