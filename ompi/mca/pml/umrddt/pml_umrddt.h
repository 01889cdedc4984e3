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
 * Types and functions that the files of pml/umrddt share. README.md in this directory has the list
 * of files and the order of messages; read it first.
 *
 * Threads: three kinds of code run here.
 * - API: functions that MPI calls, in any thread. They create requests, post at the base PML and
 *   return.
 * - Callbacks of the base PML (a receive or a reply completed), inside its progress, in any thread.
 *   They only append an event to mca_pml_umrddt.events.
 * - Progress: mca_pml_umrddt_progress, in one thread at a time. All state machines and the
 *   callbacks of the HCA run only there, so state machines need no lock of their own.
 */

#ifndef MCA_PML_UMRDDT_H
#define MCA_PML_UMRDDT_H

#include "ompi_config.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "opal/class/opal_free_list.h"
#include "opal/class/opal_hash_table.h"
#include "opal/class/opal_list.h"

#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/pml/base/base.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/message/message.h"
#include "ompi/proc/proc.h"
#include "ompi/request/request.h"

#include "umrddt_compat.h"

#include "opal/datatype/iov_cache/iov_cache.h"
#include "opal/mca/btl/umr/btl_umr_hca.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"
#include "ompi/mca/pml/umrddt/pml_umrddt_hdr.h"
#include "ompi/mca/pml/umrddt/pml_umrddt_params.h"
#include "opal/mca/common/umrddt_select/umrddt_select_model.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_slots.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_stage.h"

BEGIN_C_DECLS

/* ---------------------------------------------------------------------------------------------
 * Parameters and counters
 * ------------------------------------------------------------------------------------------- */

typedef enum mca_pml_umrddt_memory_t {
    MCA_PML_UMRDDT_MEMORY_GPU = 1,
    MCA_PML_UMRDDT_MEMORY_SYSTEM = 2,
    MCA_PML_UMRDDT_MEMORY_ALL = 3
} mca_pml_umrddt_memory_t;

/** Value of the info key mpi_communication_pattern. */
typedef enum mca_pml_umrddt_pattern_t {
    MCA_PML_UMRDDT_PATTERN_UNREAD = 0,
    MCA_PML_UMRDDT_PATTERN_NONE = 1,
    MCA_PML_UMRDDT_PATTERN_CPU_TO_CPU = 2,
    MCA_PML_UMRDDT_PATTERN_CPU_TO_GPU = 3,
    MCA_PML_UMRDDT_PATTERN_GPU_TO_CPU = 4,
    MCA_PML_UMRDDT_PATTERN_GPU_TO_GPU = 5
} mca_pml_umrddt_pattern_t;

typedef enum mca_pml_umrddt_side_t {
    MCA_PML_UMRDDT_SENDER = 0,
    MCA_PML_UMRDDT_RECEIVER = 1
} mca_pml_umrddt_side_t;

/** Parameter: whether the base PML supports GPU memory. */
typedef enum mca_pml_umrddt_gpu_base_t {
    MCA_PML_UMRDDT_GPU_BASE_AUTO = 0,
    MCA_PML_UMRDDT_GPU_BASE_YES = 1,
    MCA_PML_UMRDDT_GPU_BASE_NO = 2
} mca_pml_umrddt_gpu_base_t;

/** GPU memory that the base PML may receive: pml_umrddt_base_gpu.h. */
typedef enum mca_pml_umrddt_base_gpu_t {
    MCA_PML_UMRDDT_BASE_GPU_ALL = 0, /**< all that umrddt does not handle */
    MCA_PML_UMRDDT_BASE_GPU_SAFE,    /**< memory that is safe and not better elsewhere */
    MCA_PML_UMRDDT_BASE_GPU_NONE
} mca_pml_umrddt_base_gpu_t;

/** Treatment of contiguous messages in GPU memory. */
typedef enum mca_pml_umrddt_contiguous_t {
    MCA_PML_UMRDDT_CONTIGUOUS_AUTO = 0,  /**< passed through if supported, else handled */
    MCA_PML_UMRDDT_CONTIGUOUS_DEFER = 1, /**< passed through, if necessary staged */
    MCA_PML_UMRDDT_CONTIGUOUS_TAKE = 2
} mca_pml_umrddt_contiguous_t;

/** Counters: name, help. All are monotonic and registered as performance variables. */
#define MCA_PML_UMRDDT_COUNTERS(X)                                                                \
    X(handled_sends, "Sends taken: an envelope went out in place of the message")                 \
    X(handled_recvs, "Receives that got an envelope")                                             \
    X(handled_bytes, "Bytes of the sends taken")                                                  \
    X(passed_contiguous, "Sends passed to the base PML: contiguous")                              \
    X(passed_small, "Sends passed to the base PML: below pml_umrddt_min_size")                    \
    X(passed_memory, "Sends passed to the base PML: memory not in pml_umrddt_memory")             \
    X(passed_peer,                                                                                \
      "Sends passed to the base PML: self, or there is no way to the peer but the host")          \
    X(sends_umr, "Sends that receivers took by mkeys")                                            \
    X(sends_striped, "  of these, sends over several pairs of HCAs at once")                      \
    X(sends_direct, "Sends that receivers took by writes into their layout, without mkeys")       \
    X(sends_ipc, "Sends from GPU memory that receivers of the same host read")                    \
    X(recvs_ipc, "Receives that read the sender's GPU memory, in one copy")                       \
    X(ipc_bytes, "Bytes of those")                                                                \
    X(ipc_done_flags, "Of these, ends signalled by a completion flag")                            \
    X(ipc_info_reqs, "Questions to senders about their GPU memory or layout")                     \
    X(sends_pack_gdr, "Sends that travelled packed, in chunks, from a GPU's memory to the HCAs")  \
    X(sends_pack_staged, "Sends that travelled packed, in chunks, packed in memory of a GPU")     \
    X(sends_pack_host, "Sends that travelled packed, in chunks, packed in system memory")         \
    X(recvs_pack, "Receives of all of these")                                                     \
    X(pack_bytes, "Bytes of all of these")                                                        \
    X(pack_chunks, "Chunks of them")                                                              \
    X(pack_by_hca, "Chunks that the HCA wrote")                                                   \
    X(pack_registered, "Buffers of chunks that were registered with the HCA")                     \
    X(pack_no_gdr, "Buffers of chunks that the HCA cannot have in memory of the GPU")             \
    X(pack_refused, "Times that the base PML refused a chunk, and was asked again")               \
    X(pack_most, "Chunks of one message that were under way at once, at most")                    \
    X(pack_overlaps, "Times that the wire took or brought one while a GPU copied another")        \
    X(pack_no_scratch, "Buffers of chunks for which there was no memory of the GPU")              \
    X(probe_sends, "Sends from system memory taken in case that they are received in GPU memory") \
    X(passed_other, "Sends passed to the base PML: mode, scheme, or no resources")                \
    X(passed_model, "Sends passed to the base PML: predicted to be quicker there")                \
    X(fallback_sends, "Sends taken, then sent by the base PML")                                   \
    X(declined_sends, "Sends taken that the receiver left to the base PML, as that takes less")   \
    X(declined_recvs,                                                                             \
      "Envelopes received whose data were left to the base PML, as that takes less")              \
    X(fallback_recvs, "Envelopes received whose data came by the base PML; by reason:")           \
    X(fallback_small, "  the receive was smaller than an envelope")                               \
    X(fallback_endpoint, "  no queue pair to the sender, or it broke")                            \
    X(fallback_registration, "  the buffer's memory could not be registered")                     \
    X(fallback_keys, "  no keys could be mapped")                                                 \
    X(fallback_sender, "  the sender could not write what the CTS asked for")                     \
    X(fallback_ipc, "  the sender's GPU memory could not be mapped, or not be copied")            \
    X(fallback_scheme, "  nothing that both sides can do, or may")                                \
    X(fallback_other, "  no memory, or the base PML refused a control message")                   \
    X(failures, "Puts that failed after the receiver had named its keys")                         \
    X(control_messages, "RTS, replies and failure notices sent")                                  \
    X(control_refused, "Times that the base PML refused to carry what a peer waits for, and was " \
                       "asked again")                                                             \
    X(control_bytes, "Bytes in those")                                                            \
    X(rounds, "CTS sent: rounds of keys named to senders")                                        \
    X(rkey_sets_cached, "  of these, CTS that named a set of keys which the sender had")          \
    X(layouts_sent, "  of these, CTS that brought the receiver's layout along")                   \
    X(layouts_cached, "  of these, CTS that named a layout which the sender had")                 \
    X(protocol_errors, "Headers refused because a field was wrong")                               \
    X(stale_replies, "Replies to messages that were over, passed over")                           \
    X(probe_claims, "Messages taken from the base PML early so that a probe tells the truth")     \
    X(memory_queries, "Buffers looked up to tell whose memory they are")                          \
    X(staged_sends, "Messages in GPU memory that the base PML sent from memory of ours")          \
    X(staged_recvs, "Messages that it received into memory of ours for GPU memory")               \
    X(staged_bytes, "Bytes of both")

#define MCA_PML_UMRDDT_COUNTER_FIELD(name, help) uint64_t name;
typedef struct mca_pml_umrddt_counters_t {
    MCA_PML_UMRDDT_COUNTERS(MCA_PML_UMRDDT_COUNTER_FIELD)
    uint64_t direct_bytes_now;     /**< receivers' layouts in the cache; grows and shrinks */
    uint64_t ipc_layout_bytes_now; /**< senders' layouts in the cache; grows and shrinks */
    uint64_t peers_now;            /**< known peers */
    uint64_t peer_bytes_now;       /**< memory for peers, without layouts */
    uint64_t peer_table_bytes_now; /**< tables of communicators that map ranks to peers */
} mca_pml_umrddt_counters_t;

/* ---------------------------------------------------------------------------------------------
 * Peers and communicators
 * ------------------------------------------------------------------------------------------- */

/** State of a scheme with one peer. */
typedef struct mca_pml_umrddt_scheme_state_t {
    uint32_t fails;    /**< sender: failures of the scheme in a row; atomic */
    uint64_t retry_at; /**< receiver: count of selections after which the scheme is used again */
} mca_pml_umrddt_scheme_state_t;

/** Another process. Created at first contact, lives until finalize. */
typedef struct mca_pml_umrddt_peer_t {
    opal_proc_t *proc;
    bool capable;   /**< runs the same wire version, so it accepts envelopes */
    bool has_hca;   /**< its HCA can carry messages */
    bool has_gpu;   /**< it has the CUDA driver */
    bool same_host; /**< CUDA IPC handles work between it and this process */
    uint32_t comms; /**< live communicators with this peer; under the lock */
    uint8_t cookie[MCA_PML_UMRDDT_COOKIE_LEN]; /**< expected in its envelopes */
    mca_btl_umr_endpoint_t *endpoint;          /**< of the HCA, created on demand; atomic */

    /* pml_umrddt_sets.h */
    struct mca_pml_umrddt_place_t *places; /**< our rkey sets in the peer's cache */
    uint32_t place_count;
    uint64_t place_clock;
    struct mca_pml_umrddt_set_t *sets; /**< the peer's rkey sets in our cache */

    opal_list_t credit;         /**< messages of this peer that wait for a receive for the FIN */
    opal_list_item_t in_credit; /**< item of mca_pml_umrddt.credit from the first such message on */
    bool waits_for_credit;      /**< the item is in the list */

    /* pml_umrddt_direct.h */
    struct mca_pml_umrddt_flat_place_t *flat_places; /**< our layouts in the peer's cache */
    uint32_t flat_count;
    uint64_t flat_clock;
    struct mca_pml_umrddt_flat_kept_t *flats; /**< the peer's layouts in our cache */

    mca_pml_umrddt_scheme_state_t states[MCA_PML_UMRDDT_SCHEMES];
    bool rings;                            /**< it sets our completion flags on request; atomic */
    struct mca_pml_umrddt_ipc_peer_t *ipc; /**< IPC state, pml_umrddt_ipc.h; or NULL */
} mca_pml_umrddt_peer_t;

/** One communicator. */
typedef struct mca_pml_umrddt_comm_t {
    opal_list_item_t super;
    ompi_communicator_t *comm;
    bool bypass;      /**< info key: no message is handled */
    int scheme;       /**< mca_pml_umrddt_scheme_id_t of the info key or the parameter */
    uint16_t schemes; /**< MCA_PML_UMRDDT_BIT_*: allowed schemes */
    int pattern;      /**< mca_pml_umrddt_pattern_t, atomic */
    bool listening;   /**< envelopes arrived: poll for NACKs */
    mca_pml_umrddt_peer_t **peers; /**< by rank (of the remote group), filled on demand */
    int peer_count;
    uint32_t gate;                /**< pml_umrddt_gate.h */
    opal_recursive_mutex_t match; /**< lock of the claims, and for closing and opening the gate */
    int claiming;                 /**< nesting depth of calls that create claims */
    int closing;                  /**< threads that wait until the gate is empty */
    uint64_t claim_order;         /**< of the next claim; atomic */
    opal_list_t claims;           /**< messages claimed by probes, ordered for each source */
} mca_pml_umrddt_comm_t;
OBJ_CLASS_DECLARATION(mca_pml_umrddt_comm_t);

/* ---------------------------------------------------------------------------------------------
 * Requests
 * ------------------------------------------------------------------------------------------- */

/** Work for progress; embedded in its owner, at most once in the queue. */
typedef struct mca_pml_umrddt_event_t {
    opal_object_t super;
    struct mca_pml_umrddt_event_t *next; /**< in the queue */
    void (*handler)(void *owner);
    void *owner;
    bool queued;
} mca_pml_umrddt_event_t;
OBJ_CLASS_DECLARATION(mca_pml_umrddt_event_t);

/** Entry of a waiting list of progress. */
typedef struct mca_pml_umrddt_wait_t {
    opal_list_item_t super;
    opal_list_t *list;          /**< the list; NULL: not waiting */
    bool (*retry)(void *owner); /**< true: over; the entry may be in use again or freed */
    void *owner;
} mca_pml_umrddt_wait_t;
OBJ_CLASS_DECLARATION(mca_pml_umrddt_wait_t);

/**
 * Users of a request: the side that completes it, and the application. Both release it, in any
 * order and in any thread. The last one returns it to its free list.
 */
typedef enum mca_pml_umrddt_release_t {
    MCA_PML_UMRDDT_COMPLETED = 1, /**< also set in a request that is not started */
    MCA_PML_UMRDDT_FREED = 2
} mca_pml_umrddt_release_t;

/** Release a request for @p mine. @return true if the other side has released it before */
static inline bool mca_pml_umrddt_release(int *release, mca_pml_umrddt_release_t mine)
{
    return 0 != (__atomic_fetch_or(release, (int) mine, __ATOMIC_ACQ_REL) & ~(int) mine);
}

/** Reset before a persistent request starts again. The completing side may still be about to
 * release the request, so this waits for it. */
static inline void mca_pml_umrddt_release_reset(int *release)
{
    while (MCA_PML_UMRDDT_COMPLETED != __atomic_load_n(release, __ATOMIC_ACQUIRE)) {
        ;
    }
    __atomic_store_n(release, 0, __ATOMIC_RELEASE);
}

typedef enum mca_pml_umrddt_send_state_t {
    MCA_PML_UMRDDT_SEND_IDLE,    /**< persistent and not started */
    MCA_PML_UMRDDT_SEND_REPLY,   /**< envelope sent, waiting for a reply */
    MCA_PML_UMRDDT_SEND_KEYS,    /**< CTS received, waiting for local mkeys */
    MCA_PML_UMRDDT_SEND_MAPPING, /**< waiting for the UMRs of the local mkeys */
    MCA_PML_UMRDDT_SEND_PUT,     /**< RDMA writes in flight */
    MCA_PML_UMRDDT_SEND_PACK,    /**< chunks in flight */
    MCA_PML_UMRDDT_SEND_FAILED,  /**< NACK sent, waiting for FALLBACK or ACK */
    MCA_PML_UMRDDT_SEND_BASE,    /**< the base PML sends the message */
    MCA_PML_UMRDDT_SEND_DRAIN    /**< complete except for the base PML's request of the envelope */
} mca_pml_umrddt_send_state_t;

/** A send that is handled, or that needs a staging buffer. */
typedef struct mca_pml_umrddt_send_t {
    ompi_request_t super;
    mca_pml_umrddt_event_t event; /**< a reply arrived */
    mca_pml_umrddt_wait_t wait;
    mca_pml_umrddt_send_state_t state;
    int release;     /**< mca_pml_umrddt_release_t */
    bool plain;      /**< passed through; here only for its staging buffer */
    bool tries;      /**< probe message: finds out the receive memory (pml_umrddt_offer_cache.h) */
    bool offered;    /**< offered this time, with a key: the result goes into the offer cache */
    bool declinable; /**< the receiver may decline it */
    bool chosen;     /**< the receiver has declined it */
    bool left;       /**< the receiver declines the following messages, too */
    uint64_t offer;  /**< key in the offer cache; 0: none */
    bool freed;      /**< the application freed the request; atomic */

    const void *buf;
    size_t count;
    ompi_datatype_t *datatype;
    int dst;
    int tag;
    mca_pml_base_send_mode_t mode;
    mca_pml_umrddt_comm_t *comm;
    mca_pml_umrddt_peer_t *peer;
    mca_pml_umrddt_where_t where; /**< memory kind of the buffer; undefined without a GPU */

    mca_pml_umrddt_stage_t
        stage; /**< memory from which the base PML sends in place of the buffer, if needed */
    mca_pml_umrddt_transit_t transit;
    bool pack_error; /**< packing into the staging buffer failed */

    opal_iov_cache_layout_t *layout;
    mca_btl_umr_endpoint_t *endpoint;
    mca_btl_umr_memory_t *memory;
    mca_btl_umr_keyset_t *keyset;
    uint32_t slot;
    uint64_t total;    /**< bytes that are received */
    uint64_t position; /**< bytes whose writes have completed */
    mca_pml_umrddt_rts_t rts;
    ompi_request_t *envelope;             /**< the base PML's request of the RTS; NULL: complete */
    ompi_request_t *listen;               /**< receive request for a reply; NULL: not posted */
    ompi_request_t *host;                 /**< the base PML's request for the data */
    mca_pml_umrddt_reply_t *reply;        /**< buffer for replies: mca_pml_umrddt_reply_room */
    mca_btl_umr_key_t *remote;            /**< scratch: the peer's rkeys for one put */
    struct mca_pml_umrddt_parts_t *parts; /**< received parts of the receiver's layout; or NULL */
    opal_iov_cache_layout_t *to;          /**< the receiver's layout during RDMA writes; or NULL */
    const struct mca_pml_umrddt_scheme_t *ops; /**< scheme that handles replies; or NULL */
    struct mca_pml_umrddt_pack_t *pack;        /**< in state PACK */
    uint32_t written;                          /**< chunks written, for the NACK */
    bool told;                                 /**< the receiver has sent an INFO_REQ */
    time_t refused; /**< refusal of the data by the base PML: mca_pml_umrddt_hopeless */

    /* pml_umrddt_stripe.h */
    struct mca_pml_umrddt_stripes_t *stripes;      /**< parent or stripe; else NULL */
    struct mca_pml_umrddt_stripes_t *stripes_kept; /**< kept for reuse; or NULL */
} mca_pml_umrddt_send_t;
OBJ_CLASS_DECLARATION(mca_pml_umrddt_send_t);

typedef enum mca_pml_umrddt_recv_state_t {
    MCA_PML_UMRDDT_RECV_POSTED,  /**< posted at the base PML, or not yet posted */
    MCA_PML_UMRDDT_RECV_MATCHED, /**< has an envelope */
    MCA_PML_UMRDDT_RECV_KEYS,    /**< waiting for mkeys */
    MCA_PML_UMRDDT_RECV_MAPPING, /**< waiting for the UMRs of the mkeys */
    MCA_PML_UMRDDT_RECV_CREDIT,  /**< waiting for a receive for the FIN */
    MCA_PML_UMRDDT_RECV_FIN,     /**< CTS sent */
    MCA_PML_UMRDDT_RECV_STRIPED, /**< in stripes, each with its own record */
    MCA_PML_UMRDDT_RECV_FLUSH,   /**< FIN received, data not yet visible to the GPU */
    MCA_PML_UMRDDT_RECV_LOOK,    /**< a part of the sender's export or layout is missing */
    MCA_PML_UMRDDT_RECV_ASKED,   /**< INFO_REQ sent for it */
    MCA_PML_UMRDDT_RECV_COPY,    /**< a GPU copies the message */
    MCA_PML_UMRDDT_RECV_PACK,    /**< chunks in flight */
    MCA_PML_UMRDDT_RECV_BASE,    /**< the base PML carries the data */
    MCA_PML_UMRDDT_RECV_UNSTAGE, /**< data received, to be copied to the user's buffer */
    MCA_PML_UMRDDT_RECV_DONE
} mca_pml_umrddt_recv_state_t;

/** Size of the part of a receive that its scheme uses, bytes. */
#define MCA_PML_UMRDDT_RECV_HELD 40

/**
 * A receive that may get an envelope. Either it watches a request of the base PML that the
 * application holds (req == host), or the application holds its own request (req == &super). In the
 * second case there may be a request of the base PML as well.
 */
typedef struct mca_pml_umrddt_recv_t {
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
    bool bounced; /**< received into the staging buffer, or into rts (pml_umrddt_bounce.h) */
    mca_pml_umrddt_stage_t stage;

    mca_pml_umrddt_rts_t rts;
    ompi_status_public_t status;  /**< of the envelope, or of the plain message */
    uint64_t total;               /**< bytes to receive: min(message, capacity) */
    uint64_t position;            /**< bytes received */
    mca_pml_umrddt_where_t where; /**< memory kind of the buffer, from the match on */
    bool looked;                  /**< where is set already before the match */
    bool announced;               /**< a reply was announced by the completion flag */
    opal_iov_cache_layout_t *layout;
    mca_btl_umr_endpoint_t *endpoint; /**< of the HCA, if a scheme uses it or could not use it */
    mca_pml_umrddt_peer_t *peer;      /**< the sender */
    uint32_t fin;                     /**< immediate data of the FIN of this round; 0: none */

    /* pml_umrddt_scheme.h */
    uint16_t candidates;                       /**< MCA_PML_UMRDDT_BIT_* of schemes not yet tried */
    uint16_t preferred;                        /**< the candidate to try first, or 0 */
    const struct mca_pml_umrddt_scheme_t *ops; /**< carries the message; NULL: none yet */
    uint64_t *reason;                          /**< fallback counter; NULL: base selected */

    /** Data of the scheme. */
    union {
        unsigned char held[MCA_PML_UMRDDT_RECV_HELD];
        struct { /* pml_umrddt_rdma.h */
            mca_btl_umr_memory_t *memory;
            mca_btl_umr_keyset_t *keyset;
            int (*cts)(struct mca_pml_umrddt_recv_t *recv); /**< sends the CTS of this scheme */
            uint64_t chunk;
            uint32_t place;
            bool placed; /**< a cache slot of the sender is reserved for this round */
        };
        struct { /* pml_umrddt_ipc.h */
            struct opal_umrddt_gpu_engine_t *engine;
            struct opal_umrddt_gpu_import_t *import;
            opal_iov_cache_layout_t *from;        /**< the sender's layout; NULL: one piece */
            struct opal_umrddt_gpu_copy_t *copy;  /**< in progress */
            struct mca_pml_umrddt_asked_t *asked; /**< in state ASKED */
        };
        struct mca_pml_umrddt_pack_t *pack; /**< in state PACK */
    };

    /* pml_umrddt_stripe.h */
    struct mca_pml_umrddt_recv_stripes_t *stripes;      /**< parent or stripe; else NULL */
    struct mca_pml_umrddt_recv_stripes_t *stripes_kept; /**< kept for reuse; or NULL */

    /* pml_umrddt_pairs.h; this order leaves no padding */
    struct mca_pml_umrddt_pair_t *pair; /**< entry of the selection cache; or NULL */
    uint32_t serial;                    /**< serial number of pair at the match */
    int scheme;   /**< mca_pml_umrddt_scheme_id_t: as selected, then as used */
    bool settled; /**< converged: the following messages use the same scheme */
    double began; /**< time of the match in us, only with explain */

    ompi_request_t *data; /**< the base PML's request for the data */
    mca_pml_umrddt_stage_t
        overflow; /**< receives the data if the base PML must not use the user's buffer */
    bool named;   /**< the status of data has the source and tag of the message */
    mca_pml_umrddt_transit_t transit;
    time_t refused; /**< refusal of the data by the base PML: mca_pml_umrddt_hopeless */
} mca_pml_umrddt_recv_t;
_Static_assert(offsetof(mca_pml_umrddt_recv_t, stripes) - offsetof(mca_pml_umrddt_recv_t, held)
                   == MCA_PML_UMRDDT_RECV_HELD,
               "all of what a scheme holds");
OBJ_CLASS_DECLARATION(mca_pml_umrddt_recv_t);

/** Kind of a claim: a message taken from the base PML before its receive is posted. */
typedef enum mca_pml_umrddt_claim_kind_t {
    MCA_PML_UMRDDT_CLAIM_ENVELOPE, /**< bytes holds an RTS */
    MCA_PML_UMRDDT_CLAIM_DATA,     /**< bytes holds a plain message of the envelope's size */
    MCA_PML_UMRDDT_CLAIM_HANDLE    /**< any other plain message: handle is the base PML's */
} mca_pml_umrddt_claim_kind_t;

typedef struct mca_pml_umrddt_claim_t {
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
} mca_pml_umrddt_claim_t;
OBJ_CLASS_DECLARATION(mca_pml_umrddt_claim_t);

/* ---------------------------------------------------------------------------------------------
 * The component
 * ------------------------------------------------------------------------------------------- */

/** Size of the table of communicators by index. Unused pages of it use no memory. */
#define MCA_PML_UMRDDT_COMMS (1u << 18)

/** Entries of the offer cache (pml_umrddt_offer_cache.h). A power of two. */
#define MCA_PML_UMRDDT_OFFERS 8192

typedef struct mca_pml_umrddt_t {
    mca_pml_umrddt_params_t params;
    mca_pml_umrddt_counters_t counters;
    mca_pml_base_module_t host; /**< functions of the base PML */
    mca_pml_base_component_t host_component;
    bool interposed; /**< our functions are in mca_pml */
    bool usable;     /**< enabled, with an HCA or a GPU: messages can be handled */
    bool polling;    /**< the progress function is registered */
    bool host_keeps; /**< receive requests of the base PML are mca_pml_base_request_t and retain
                          their objects (ob1) */

    const mca_btl_umr_hca_ops_t *hca; /**< NULL without an HCA */
    const char *hca_why_not;          /**< reason for NULL, for the user */
    const mca_btl_umr_caps_t *caps;
    size_t stripe_from;                  /**< smallest message that is striped, bytes */
    const opal_umrddt_gpu_driver_t *gpu; /**< NULL without the CUDA driver */
    const char *gpu_why_not;             /**< reason for NULL, for the user */
    mca_pml_umrddt_base_gpu_t base_gpu;  /**< GPU memory that the base PML may receive */
    bool base_aware;                     /**< Open MPI itself is CUDA-aware */
    size_t eager[2];                /**< eager limit of the base PML: remote nodes, this node */
    uint32_t wide_types;            /**< basic types that a receive in pieces must not have */
    uint32_t cut_types;             /**< those, and types that some layouts must not have */
    bool looks;                     /**< look up the memory kind of every send buffer */
    bool leaves_far;                /**< pass contiguous messages to remote nodes through */
    bool takes_contiguous;          /**< look up contiguous send buffers, too */
    bool declines;                  /**< the model decides whether a message is handled */
    size_t contiguous_from;         /**< smallest contiguous message that is handled, bytes */
    mca_pml_umrddt_identity_t self; /**< as published in the modex */
    opal_iov_cache_t *layouts;
    int type_keyval;  /**< attribute whose delete function reports the end of a datatype */
    uint16_t schemes; /**< MCA_PML_UMRDDT_BIT_*: schemes that are possible here and enabled */

    opal_mutex_t lock;              /**< of events, request ids, peers, messages, release flags */
    mca_pml_umrddt_event_t *events; /**< head of the queue; under the lock, also read without it */
    mca_pml_umrddt_event_t *last_event; /**< tail of the queue, unless it is empty */
    opal_hash_table_t peers;            /**< process name -> mca_pml_umrddt_peer_t */
    opal_hash_table_t messages;         /**< ompi_message_t * -> claim of mprobe */
    size_t message_count;               /**< size; under the lock, also read without it */
    uint32_t comm_end; /**< one above the highest index ever used in the table of communicators */
    mca_pml_umrddt_slots_t slots;
    uint64_t seq;
    opal_free_list_t sends;
    opal_free_list_t recvs;
    opal_free_list_t claims;
    bool lists_ready;

    /* Only for progress, except active and freed (atomic) and listeners (under lock). */
    int busy; /**< 1 while a thread runs progress */
#if UMRDDT_ENABLE_DEBUG
    pthread_t owner; /**< that thread, pml_umrddt_owner.h; atomic */
#endif
    int active;  /**< handled sends and matched receives that are not complete */
    int freed;   /**< of the sends, those freed by the application; atomic */
    int refused; /**< control messages queued after a refusal; atomic */
    uint32_t ticks;
    mca_pml_umrddt_fins_t fins;                /**< immediate data -> receive */
    void *scratch;                             /**< buffer in which a CTS is built */
    size_t scratch_size;                       /**< mca_pml_umrddt_reply_room */
    struct mca_pml_umrddt_seen_t *seen;        /**< layouts and buffers that have received */
    uint64_t types_died;                       /**< destroyed datatypes that had a layout; atomic */
    uint64_t offers[MCA_PML_UMRDDT_OFFERS];    /**< pml_umrddt_offer_cache.h; atomic */
    struct mca_pml_umrddt_pairs_t *pairs;      /**< selection cache; NULL: fixed rules select */
    opal_list_t receives;                      /**< matched and not finished */
    uint32_t waits;                            /**< entries in the following lists */
    opal_list_t waiting[MCA_BTL_UMR_ROLE_MAX]; /**< for mkeys of a role */
    opal_list_t credit;                        /**< peers with messages that wait for FIN credit */
    opal_list_t polled;                        /**< for a request of the base PML */
    opal_list_t listeners;                     /**< communicators to poll for NACKs */
    uint32_t listener_count;                   /**< number of listeners; read without the lock */
} mca_pml_umrddt_t;

extern mca_pml_umrddt_t mca_pml_umrddt;
/** By index; empty unless mca_pml_umrddt.usable. Static, to save an indirection per message. */
extern mca_pml_umrddt_comm_t *mca_pml_umrddt_comms[MCA_PML_UMRDDT_COMMS];
UMRDDT_COMPONENT extern mca_pml_base_component_t mca_pml_umrddt_component;

/** Returns true if there is an HCA or a GPU. Otherwise nothing is interposed. */
static inline bool mca_pml_umrddt_takes_part(void)
{
    return NULL != mca_pml_umrddt.hca || NULL != mca_pml_umrddt.gpu;
}

/** Maximum size of a reply, bytes. */
static inline size_t mca_pml_umrddt_reply_room(void)
{
    size_t room = sizeof(mca_pml_umrddt_reply_t)
                  + mca_pml_umrddt.params.max_keys * sizeof(mca_pml_umrddt_wire_key_t);

    return room < MCA_PML_UMRDDT_REPLY_ROOM ? MCA_PML_UMRDDT_REPLY_ROOM : room;
}

/** Add to a counter without a lock: atomic with threads, a plain add without. */
#define MCA_PML_UMRDDT_COUNT_ADD(name, n)                                                    \
    do {                                                                                     \
        if (opal_using_threads()) {                                                          \
            (void) __atomic_fetch_add(&mca_pml_umrddt.counters.name, (n), __ATOMIC_RELAXED); \
        } else {                                                                             \
            mca_pml_umrddt.counters.name += (n);                                             \
        }                                                                                    \
    } while (0)
#define MCA_PML_UMRDDT_COUNT(name) MCA_PML_UMRDDT_COUNT_ADD(name, 1)

/** Add to the memory in use for peers; @p bytes may be negative. */
static inline void mca_pml_umrddt_peer_bytes(int64_t bytes)
{
    MCA_PML_UMRDDT_COUNT_ADD(peer_bytes_now, (uint64_t) bytes);
}

/* pml_umrddt_params.c, _pvars.c */

/** Register the parameters (pml_umrddt_params.h) and check their values. */
void mca_pml_umrddt_params_register(void);
/** Get the scheme with this name of pml_umrddt_scheme. @return -1 if there is none */
int mca_pml_umrddt_scheme_named(const char *name);
void mca_pml_umrddt_pvars_register(void);
void mca_pml_umrddt_stats_print(void);

/* pml_umrddt_base.c: opens the base PML */

/** Open every candidate PML and add it to the selection. @return OMPI_SUCCESS or an error */
int mca_pml_umrddt_base_open(void);

/** Returns true if the selection of the pml framework names umrddt. */
bool mca_pml_umrddt_requested(void);

/* pml_umrddt_hca.c */

/** Find and start btl/umr. Without it mca_pml_umrddt.hca stays NULL. */
void mca_pml_umrddt_hca_open(void);
void mca_pml_umrddt_hca_close(void);

/** Returns true if the HCA is known to support GPU memory of this kind with this peer. */
bool mca_pml_umrddt_hca_takes(const mca_pml_umrddt_peer_t *peer,
                              const mca_pml_umrddt_where_t *where);

/**
 * Returns true if the HCA is to carry them: CUDA IPC cannot, or is predicted to be slower for this
 * layout.
 */
bool mca_pml_umrddt_hca_wanted(mca_pml_umrddt_comm_t *comm, const mca_pml_umrddt_peer_t *peer,
                               const mca_pml_umrddt_where_t *where,
                               opal_iov_cache_layout_t *layout);

/** Returns true if CUDA IPC can carry them and has not failed with this peer. */
bool mca_pml_umrddt_ipc_wanted(const mca_pml_umrddt_comm_t *comm, const mca_pml_umrddt_peer_t *peer,
                               const mca_pml_umrddt_where_t *where);

/** Record that CUDA IPC carried a message (@p well) or failed. */
void mca_pml_umrddt_ipc_result(mca_pml_umrddt_peer_t *peer, bool well);

/** Register a buffer of any memory kind with the HCA of an endpoint. @return OPAL_* of the HCA */
int mca_pml_umrddt_register(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_role_t role,
                            const mca_pml_umrddt_where_t *where, void *buf,
                            const opal_iov_cache_layout_t *layout, uint64_t size,
                            mca_btl_umr_memory_t **memory);

/* pml_umrddt_modex.c */

/** Set mca_pml_umrddt.self and publish it. @return false on failure, after a message to the user */
bool mca_pml_umrddt_publish(void);
/**
 * Publish that this process handles no messages. With Open MPI 5.0 a peer on a remote node that
 * looks up data which was never published waits forever.
 */
void mca_pml_umrddt_publish_absent(void);
/** Look up the identity of a new peer, whose proc is set, in the modex. */
void mca_pml_umrddt_identify(mca_pml_umrddt_peer_t *peer);

/* pml_umrddt_interpose.c */
void mca_pml_umrddt_interpose(void);
int mca_pml_umrddt_finalize(void);

/* pml_umrddt_windows.c: between open and close of the osc framework; both are idempotent */
void mca_pml_umrddt_windows_open(void);
void mca_pml_umrddt_windows_close(void);

/* pml_umrddt_comm.c */
/** Allocate the records that add_comm uses when memory is short. @return OMPI_SUCCESS or
 * OMPI_ERR_OUT_OF_RESOURCE */
int mca_pml_umrddt_comms_init(void);
void mca_pml_umrddt_comms_fini(void);
int mca_pml_umrddt_add_comm(struct ompi_communicator_t *comm);
int mca_pml_umrddt_del_comm(struct ompi_communicator_t *comm);

/** Slow path of mca_pml_umrddt_peer. */
mca_pml_umrddt_peer_t *mca_pml_umrddt_peer_find(mca_pml_umrddt_comm_t *comm, int rank);

/** Get the peer at @p rank of the communicator (of its remote group). The first call for a peer
 * reads the modex. @return NULL on failure */
static inline mca_pml_umrddt_peer_t *mca_pml_umrddt_peer(mca_pml_umrddt_comm_t *comm, int rank)
{
    /* Without the lock: the acquire load makes the peer's fields visible. */
    mca_pml_umrddt_peer_t **peers = __atomic_load_n(&comm->peers, __ATOMIC_ACQUIRE);
    mca_pml_umrddt_peer_t *peer = NULL;

    if (OPAL_LIKELY(NULL != peers && (unsigned) rank < (unsigned) comm->peer_count)) {
        peer = __atomic_load_n(&peers[rank], __ATOMIC_ACQUIRE);
    }
    return OPAL_LIKELY(NULL != peer) ? peer : mca_pml_umrddt_peer_find(comm, rank);
}

void mca_pml_umrddt_peers_free(void);

/**
 * Drain before MPI_COMM_WORLD or the base PML ends. All messages to other processes have been
 * received by then. But the HCA may not have reported the completion of sends whose requests were
 * freed, and the base PML may still refuse replies to peers. Wait for both, then drop the remaining
 * replies on @p comm (NULL: all).
 */
void mca_pml_umrddt_last_words(mca_pml_umrddt_comm_t *comm);

/** Get our record of a communicator. @return NULL: all its messages are passed through */
static inline mca_pml_umrddt_comm_t *mca_pml_umrddt_comm_find(const ompi_communicator_t *comm)
{
    uint32_t index = UMRDDT_COMM_INDEX(comm);

    return OPAL_UNLIKELY(index >= MCA_PML_UMRDDT_COMMS) ? NULL : mca_pml_umrddt_comms[index];
}

/** As mca_pml_umrddt_comm_find; NULL if no user message with this tag can be an envelope. */
static inline mca_pml_umrddt_comm_t *mca_pml_umrddt_watched(const ompi_communicator_t *comm,
                                                            int tag)
{
    return 0 > tag && OMPI_ANY_TAG != tag ? NULL : mca_pml_umrddt_comm_find(comm);
}

/* pml_umrddt_pattern.c */

/** Read the pattern of a communicator for the first time; never MCA_PML_UMRDDT_PATTERN_UNREAD. */
mca_pml_umrddt_pattern_t mca_pml_umrddt_pattern_read(mca_pml_umrddt_comm_t *comm);

/** Returns true if assertions are verified. */
static inline bool mca_pml_umrddt_checks_pattern(void)
{
    return UMRDDT_ENABLE_DEBUG || mca_pml_umrddt.params.check_pattern;
}

/**
 * Returns true if a non-empty buffer is known to be system memory and assertions are not verified.
 * Messages that are passed through call this first. False means unknown.
 */
static inline bool mca_pml_umrddt_known_system(const void *buf, size_t count,
                                               const ompi_datatype_t *datatype)
{
    return !mca_pml_umrddt_checks_pattern()
           && opal_umrddt_gpu_plain((uintptr_t) buf + (uintptr_t) datatype->super.true_lb)
           && mca_pml_umrddt_known_run(buf, count, datatype);
}

/** Get the pattern that the user has asserted; never MCA_PML_UMRDDT_PATTERN_UNREAD. */
static inline mca_pml_umrddt_pattern_t mca_pml_umrddt_pattern(mca_pml_umrddt_comm_t *comm)
{
    int pattern = __atomic_load_n(&comm->pattern, __ATOMIC_RELAXED);

    return OPAL_LIKELY(MCA_PML_UMRDDT_PATTERN_UNREAD != pattern)
               ? (mca_pml_umrddt_pattern_t) pattern
               : mca_pml_umrddt_pattern_read(comm);
}

/** Returns true if the user asserts that buffers of this side are system memory, so that no lookup
 * is needed. */
static inline bool mca_pml_umrddt_asserted_system(mca_pml_umrddt_comm_t *comm,
                                                  mca_pml_umrddt_side_t side)
{
    mca_pml_umrddt_pattern_t pattern = mca_pml_umrddt_pattern(comm);

    return MCA_PML_UMRDDT_PATTERN_CPU_TO_CPU == pattern
           || (MCA_PML_UMRDDT_SENDER == side ? MCA_PML_UMRDDT_PATTERN_CPU_TO_GPU
                                             : MCA_PML_UMRDDT_PATTERN_GPU_TO_CPU)
                  == pattern;
}

/** Slow path of mca_pml_umrddt_memory_of: a lookup or a check is needed. */
mca_pml_umrddt_memory_t mca_pml_umrddt_memory_find(mca_pml_umrddt_comm_t *comm, const void *buf,
                                                   size_t count, ompi_datatype_t *datatype,
                                                   mca_pml_umrddt_side_t side,
                                                   mca_pml_umrddt_where_t *where);

/**
 * Get the memory kind of a buffer, from the user's assertion or by a lookup, which is counted. A
 * wrong assertion is detected only with pml_umrddt_check_pattern or in a debug build. Then the user
 * gets one message and the lookup counts. An assertion of GPU memory saves no lookup if there is a
 * GPU, because the copy needs the result.
 *
 * @param[out] where  of the buffer; system memory without a lookup
 *
 * @return GPU for device memory, managed memory and mixed buffers
 */
static inline mca_pml_umrddt_memory_t mca_pml_umrddt_memory_of(mca_pml_umrddt_comm_t *comm,
                                                               const void *buf, size_t count,
                                                               ompi_datatype_t *datatype,
                                                               mca_pml_umrddt_side_t side,
                                                               mca_pml_umrddt_where_t *where)
{
    if (OPAL_LIKELY(NULL == mca_pml_umrddt.gpu
                    && MCA_PML_UMRDDT_PATTERN_NONE == mca_pml_umrddt_pattern(comm))) {
        /* no GPU, no lookup */
        MCA_PML_UMRDDT_COUNT(memory_queries);
        where->memory.kind = OPAL_UMRDDT_GPU_HOST;
        where->mixed = false;
        return MCA_PML_UMRDDT_MEMORY_SYSTEM;
    }
    return mca_pml_umrddt_memory_find(comm, buf, count, datatype, side, where);
}

/* pml_umrddt_layout.c */

/** Values that are stored with a layout, because each one needs a walk of the IOVs. */
typedef enum mca_pml_umrddt_memo_t {
    MCA_PML_UMRDDT_MEMO_PROPOSAL,    /**< sender: chunk size that it proposes */
    MCA_PML_UMRDDT_MEMO_AGREED_SIZE, /**< receiver: size of the message, */
    MCA_PML_UMRDDT_MEMO_AGREED_TO,   /**< proposed chunk size, */
    MCA_PML_UMRDDT_MEMO_AGREED,      /**< and agreed chunk size of the last message */
    MCA_PML_UMRDDT_MEMO_SILENT       /**< sender: 1 if the last completion flag announced a reply */
} mca_pml_umrddt_memo_t;

/** Get the layout of (type, count) from the cache. The caller owns a reference. */
int mca_pml_umrddt_layout(ompi_datatype_t *datatype, size_t count,
                          opal_iov_cache_layout_t **layout);
int mca_pml_umrddt_layouts_init(void);
void mca_pml_umrddt_layouts_fini(void);

/** Copy the first @p length bytes of a buffer's packed stream out or in. @return bytes copied */
size_t mca_pml_umrddt_pack(const void *buf, size_t count, ompi_datatype_t *datatype, void *stream,
                           size_t length);
size_t mca_pml_umrddt_unpack_pieces(void *buf, size_t count, ompi_datatype_t *datatype,
                                    const void *stream, size_t length);

/** Copy @p length bytes into the begin of a buffer, which is at least as large. */
static inline void mca_pml_umrddt_unpack(void *buf, size_t count, ompi_datatype_t *datatype,
                                         const void *stream, size_t length)
{
    if (OPAL_LIKELY(mca_pml_umrddt_is_contiguous(datatype, count))) {
        memcpy((char *) buf + datatype->super.true_lb, stream, length);
    } else {
        (void) mca_pml_umrddt_unpack_pieces(buf, count, datatype, stream, length);
    }
}

/* pml_umrddt_progress.c */
int mca_pml_umrddt_progress(void);

/** Queue @p event for progress; from any thread. */
void mca_pml_umrddt_event(mca_pml_umrddt_event_t *event, void (*handler)(void *), void *owner);

/** Wait in @p list until retry returns true. Only from progress. */
void mca_pml_umrddt_wait(opal_list_t *list, mca_pml_umrddt_wait_t *wait, bool (*retry)(void *),
                         void *owner);

/** Wait for a receive for a FIN of @p peer. Only from progress. */
void mca_pml_umrddt_wait_credit(mca_pml_umrddt_peer_t *peer, mca_pml_umrddt_wait_t *wait,
                                bool (*retry)(void *), void *owner);

/** Remove @p wait from its waiting list. Only from progress if it is in one. */
void mca_pml_umrddt_wait_cancel(mca_pml_umrddt_wait_t *wait);

/** Change the number of active messages. Progress does nothing while it is 0. */
void mca_pml_umrddt_active(int change);

/* pml_umrddt_control.c: only from progress, except init, fini, drop, listen and unlisten */

/** Allocate memory for control messages. A part of it is reserved for critical ones. */
int mca_pml_umrddt_control_init(void);
void mca_pml_umrddt_control_fini(void);

/**
 * Send a control message by the base PML. If the base PML refuses it, it is sent later. Control
 * messages to one process of a communicator keep their order. The bytes are copied.
 *
 * @param[in] must  critical: the peer would wait forever without it, so the job is aborted if there
 *                  is no memory. At most the size of a reply without rkeys
 *
 * @return OMPI_SUCCESS, or OMPI_ERR_OUT_OF_RESOURCE and nothing is sent
 */
int mca_pml_umrddt_control(mca_pml_umrddt_comm_t *comm, int peer, int tag, const void *bytes,
                           size_t length, bool must);

/**
 * Drop replies of a message that the base PML has not accepted yet, except a critical one. Called
 * before the objects that they name are released. The caller's message retains the communicator.
 */
void mca_pml_umrddt_control_withdraw(mca_pml_umrddt_comm_t *comm, int peer, int tag, uint64_t seq);

/** Drop control messages that the base PML has not accepted yet, on one communicator or (NULL) on
 * all. */
void mca_pml_umrddt_control_drop(mca_pml_umrddt_comm_t *comm);

/**
 * Called when the base PML refuses a message that the peer waits for. The caller tries again while
 * this returns false.
 *
 * @param[in,out] since  time of the first refusal that is not a shortage of resources; initially 0
 *
 * @return true if such refusals last longer than pml_umrddt_refusal_timeout
 */
bool mca_pml_umrddt_hopeless(int rc, time_t *since);

/** A critical control message cannot be sent: print an error and abort the job. */
void mca_pml_umrddt_cannot_tell(mca_pml_umrddt_comm_t *comm, int peer, int rc);

/** Start or stop polling for NACKs on this communicator. */
void mca_pml_umrddt_listen(mca_pml_umrddt_comm_t *comm);
void mca_pml_umrddt_unlisten(mca_pml_umrddt_comm_t *comm);

/** Poll one communicator, round robin, and receive one NACK if there is one. */
void mca_pml_umrddt_notice_look(void);

/** Get the HCA's endpoint for a peer, which lives as long as the HCA. @return as endpoint_get */
static inline int mca_pml_umrddt_endpoint(mca_pml_umrddt_peer_t *peer,
                                          mca_btl_umr_endpoint_t **endpoint)
{
    int rc = OPAL_SUCCESS;

    *endpoint = __atomic_load_n(&peer->endpoint, __ATOMIC_ACQUIRE);
    if (OPAL_UNLIKELY(NULL == *endpoint)) {
        rc = mca_pml_umrddt.hca->endpoint_get(peer->proc, endpoint);
        if (OPAL_SUCCESS == rc) {
            __atomic_store_n(&peer->endpoint, *endpoint, __ATOMIC_RELEASE);
        }
    }
    return rc;
}

/* pml_umrddt_send.c: the API */
int mca_pml_umrddt_isend_init(const void *buf, size_t count, ompi_datatype_t *datatype, int dst,
                              int tag, mca_pml_base_send_mode_t mode, ompi_communicator_t *comm,
                              ompi_request_t **request);
int mca_pml_umrddt_isend(const void *buf, size_t count, ompi_datatype_t *datatype, int dst, int tag,
                         mca_pml_base_send_mode_t mode, ompi_communicator_t *comm,
                         ompi_request_t **request);
int mca_pml_umrddt_send(const void *buf, size_t count, ompi_datatype_t *datatype, int dst, int tag,
                        mca_pml_base_send_mode_t mode, ompi_communicator_t *comm);
int mca_pml_umrddt_start(size_t count, ompi_request_t **requests);

/* pml_umrddt_send_start.c, pml_umrddt_send_rndv.c: sender's state machine */

/** Send the envelope of a prepared request. */
int mca_pml_umrddt_send_start(mca_pml_umrddt_send_t *send);

/**
 * Clear our data in a request of the base PML before the request returns to it, because pml/ucx
 * interprets the field. The store is atomic: the next user of the request may complete it in
 * another thread, which starts with a compare-and-swap.
 */
static inline void mca_pml_umrddt_request_clear(ompi_request_t *request)
{
    __atomic_store_n(&request->req_complete_cb_data, NULL, __ATOMIC_RELAXED);
}

/** All writes through an rkey set have completed: keep it mapped for the next message, or release
 * it. */
static inline void mca_pml_umrddt_keyset_done(mca_btl_umr_keyset_t *keyset)
{
    if (OPAL_LIKELY(mca_pml_umrddt.params.mkey_cache)) {
        mca_pml_umrddt.hca->keyset_keep(keyset);
    } else {
        mca_pml_umrddt.hca->keyset_release(keyset);
    }
}

/* pml_umrddt_recv.c: the API */
int mca_pml_umrddt_irecv_init(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                              ompi_communicator_t *comm, ompi_request_t **request);
int mca_pml_umrddt_irecv(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                         ompi_communicator_t *comm, ompi_request_t **request);
int mca_pml_umrddt_recv(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                        ompi_communicator_t *comm, ompi_status_public_t *status);
int mca_pml_umrddt_recv_start(mca_pml_umrddt_recv_t *recv);

/** Returns true if these bytes look like an envelope. The cookie is checked later. */
static inline bool mca_pml_umrddt_is_envelope(const mca_pml_umrddt_rts_t *rts)
{
    return MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_RTS) == rts->magic;
}

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

/* pml_umrddt_probe.c */
int mca_pml_umrddt_iprobe(int src, int tag, ompi_communicator_t *comm, int *matched,
                          ompi_status_public_t *status);
int mca_pml_umrddt_probe(int src, int tag, ompi_communicator_t *comm, ompi_status_public_t *status);
int mca_pml_umrddt_improbe(int src, int tag, ompi_communicator_t *comm, int *matched,
                           ompi_message_t **message, ompi_status_public_t *status);
int mca_pml_umrddt_mprobe(int src, int tag, ompi_communicator_t *comm, ompi_message_t **message,
                          ompi_status_public_t *status);
int mca_pml_umrddt_imrecv(void *buf, size_t count, ompi_datatype_t *datatype,
                          ompi_message_t **message, ompi_request_t **request);
int mca_pml_umrddt_mrecv(void *buf, size_t count, ompi_datatype_t *datatype,
                         ompi_message_t **message, ompi_status_public_t *status);

/** Remove the first claim that matches (src, tag). @return NULL: none. comm->match is held. */
mca_pml_umrddt_claim_t *mca_pml_umrddt_claim_take(mca_pml_umrddt_comm_t *comm, int src, int tag);

/** Give a claimed message to a new receive, *request. Consumes the claim. */
int mca_pml_umrddt_claim_deliver(mca_pml_umrddt_claim_t *claim, void *buf, size_t count,
                                 ompi_datatype_t *datatype, ompi_request_t **request);

/** Give a claimed message to a started receive of our own. Consumes the claim. */
int mca_pml_umrddt_claim_into(mca_pml_umrddt_claim_t *claim, mca_pml_umrddt_recv_t *recv);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_H */
