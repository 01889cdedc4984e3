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
 * pml/umrddt, inside. README.md beside this file is the map of the room.
 *
 * Threads. Three kinds of code run here:
 *  - API: what MPI calls, in any thread. It makes requests, posts at the base PML and returns.
 *  - callbacks of the base PML (a receive or a reply came in), deep in the host's progress, in any
 *    thread. They only append an event to mca_pml_umrddt.events.
 *  - progress: mca_pml_umrddt_progress, in one thread at a time. All state machines run there and
 *    only there, and so do the callbacks of the HCA; so a state machine needs no lock of its own.
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

#include "pml_umrddt_gpu.h"
#include "pml_umrddt_hdr.h"
#include "opal/mca/common/umrddt_select/umrddt_select_model.h"
#include "pml_umrddt_slots.h"
#include "pml_umrddt_stage.h"

BEGIN_C_DECLS

/* ---------------------------------------------------------------------------------------------
 * Parameters and counters
 * ------------------------------------------------------------------------------------------- */

typedef enum mca_pml_umrddt_memory_t {
    MCA_PML_UMRDDT_MEMORY_GPU = 1,
    MCA_PML_UMRDDT_MEMORY_SYSTEM = 2,
    MCA_PML_UMRDDT_MEMORY_ALL = 3
} mca_pml_umrddt_memory_t;

/** What the info key mpi_communication_pattern asserts. */
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

/** Whether the base PML takes GPU memory. */
typedef enum mca_pml_umrddt_gpu_base_t {
    MCA_PML_UMRDDT_GPU_BASE_AUTO = 0,
    MCA_PML_UMRDDT_GPU_BASE_YES = 1,
    MCA_PML_UMRDDT_GPU_BASE_NO = 2
} mca_pml_umrddt_gpu_base_t;

/** What GPU memory the base PML is given: pml_umrddt_base_gpu.h. */
typedef enum mca_pml_umrddt_base_gpu_t {
    MCA_PML_UMRDDT_BASE_GPU_ALL = 0, /**< whatever umrddt does not handle */
    MCA_PML_UMRDDT_BASE_GPU_SAFE,    /**< what it can be trusted with, where that is better */
    MCA_PML_UMRDDT_BASE_GPU_NONE
} mca_pml_umrddt_base_gpu_t;

/** What becomes of contiguous messages in GPU memory. */
typedef enum mca_pml_umrddt_contiguous_t {
    MCA_PML_UMRDDT_CONTIGUOUS_AUTO = 0,  /**< the base PML's if it can, else taken */
    MCA_PML_UMRDDT_CONTIGUOUS_DEFER = 1, /**< the base PML's, staged if it cannot */
    MCA_PML_UMRDDT_CONTIGUOUS_TAKE = 2
} mca_pml_umrddt_contiguous_t;

typedef struct mca_pml_umrddt_params_t {
    char *base_pml;           /**< PML that carries everything else, "" = let Open MPI choose */
    size_t min_size;          /**< smallest message taken, bytes */
    int memory;               /**< mca_pml_umrddt_memory_t */
    int scheme;               /**< mca_pml_umrddt_scheme_id_t */
    int base_gpu_param;       /**< mca_pml_umrddt_gpu_base_t */
    int contiguous;           /**< mca_pml_umrddt_contiguous_t */
    size_t contiguous_min;    /**< smallest contiguous message that is taken; 0: as min_size */
    size_t chunk_floor;       /**< smallest agreed chunk, bytes */
    unsigned max_keys;        /**< keys named by one CTS */
    unsigned key_sets;        /**< sets of keys remembered for a peer */
    unsigned layouts;         /**< layouts remembered for a peer */
    unsigned writes;          /**< of a first message, that are cheaper than keys */
    size_t stripe;            /**< smallest message over several pairs of HCAs; 0: none */
    size_t run;               /**< mean run in bytes from which on any number of writes is */
    bool mkey_cache;          /**< keys stay mapped for the next message */
    size_t layout_cache;      /**< bound of the layout cache, bytes */
    int gpu_scheme;           /**< opal_umrddt_gpu_how_t */
    bool gpu_hca;             /**< the HCA may reach memory of GPUs */
    int gpu_kernel;           /**< opal_umrddt_gpu_scheme_t */
    size_t gpu_list_cache;    /**< bytes of layouts on a GPU */
    size_t gpu_pinned;        /**< bytes of pinned memory */
    size_t gpu_chunk;         /**< bytes of a piece that goes through it */
    unsigned gpu_graphs;      /**< graphs of repeated launches */
    bool system_memory_cache; /**< pages of the CPU's memory are remembered */
    unsigned ipc_imports;     /**< allocations of other processes that stay open unused */
    size_t ipc_import_bytes;  /**< and their bytes */
    unsigned ipc_exports;     /**< allocations whose description is remembered */
    bool ipc_done_flags;      /**< the end of a message is told through shared memory */
    size_t gpu_stage_pinned;  /**< bytes of the largest stage that is pinned */
    size_t gpu_stage_kept;    /**< bytes of plain stages that are kept */
    size_t pack_min;          /**< smallest message that travels packed, bytes */
    size_t pack_host;         /**< and smallest that is packed in memory of the GPU */
    size_t pack_floor;        /**< bytes of its chunks, at least */
    size_t pack_ceiling;      /**< and at most */
    unsigned pack_depth;      /**< chunks of it under way at once */
    size_t pack_bytes;        /**< in their buffers, of senders and of receivers */
    size_t pack_scratch;      /**< and in memory of GPUs */
    bool pack_hca;            /**< they travel by the HCA, where both sides have one */
    char *model;              /**< file of figures for the choice; "", none, defaults */
    unsigned reuse;           /**< messages that a layout and buffer are expected to serve */
    bool explain;             /**< print what is predicted, chosen and observed */
    bool stats;               /**< print the counters at finalize */
    unsigned refusals;        /**< seconds until those by the base PML are for good */
    bool check_pattern;       /**< see whether mpi_communication_pattern is true */
    unsigned check;           /**< passes of progress between two looks at invariants; 0: none */
} mca_pml_umrddt_params_t;

/** Every counter: name, help. They only grow. Registered as performance variables. */
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
    X(ipc_done_flags, "Ends of those that were told through shared memory")                       \
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
    uint64_t direct_bytes_now; /**< of receivers' layouts that are remembered; grows and shrinks */
    uint64_t ipc_layout_bytes_now; /**< of senders' */
    uint64_t peers_now;            /**< processes that were met */
    uint64_t peer_bytes_now;       /**< memory for those, but for their layouts */
    uint64_t peer_table_bytes_now; /**< of communicators, to find them by rank */
} mca_pml_umrddt_counters_t;

/* ---------------------------------------------------------------------------------------------
 * Peers and communicators
 * ------------------------------------------------------------------------------------------- */

/** What is known of a scheme with a peer. */
typedef struct mca_pml_umrddt_scheme_state_t {
    uint32_t fails;    /**< sender: messages in a row that could not go by it; atomic */
    uint64_t retry_at; /**< receiver: it is used again when so many messages have been judged */
} mca_pml_umrddt_scheme_state_t;

/** One other process. Made at first contact, lives until finalize. */
typedef struct mca_pml_umrddt_peer_t {
    opal_proc_t *proc;
    bool capable;   /**< runs this version: it understands envelopes */
    bool has_hca;   /**< messages can go by its HCA */
    bool has_gpu;   /**< it has the CUDA driver */
    bool same_host; /**< it can open our CUDA IPC handles, and we can open its */
    uint32_t comms; /**< live communicators on which it was met; under the lock */
    uint8_t cookie[MCA_PML_UMRDDT_COOKIE_LEN]; /**< what its envelopes must carry */
    mca_btl_umr_endpoint_t *endpoint;          /**< the HCA's, once asked for; atomic */

    /* pml_umrddt_sets.h */
    struct mca_pml_umrddt_place_t *places; /**< what it remembers of our keys */
    uint32_t place_count;
    uint64_t place_clock;
    struct mca_pml_umrddt_set_t *sets; /**< what we remember of its keys */

    opal_list_t credit;         /**< its messages that wait for a FIN's receive */
    opal_list_item_t in_credit; /**< of mca_pml_umrddt.credit, from the first such message on */
    bool waits_for_credit;      /**< it is there */

    /* pml_umrddt_direct.h */
    struct mca_pml_umrddt_flat_place_t *flat_places; /**< what it remembers of our layouts */
    uint32_t flat_count;
    uint64_t flat_clock;
    struct mca_pml_umrddt_flat_kept_t *flats; /**< what we remember of its layouts */

    mca_pml_umrddt_scheme_state_t states[MCA_PML_UMRDDT_SCHEMES];
    bool rings; /**< it rings our completion flags, if asked to; atomic */
    struct mca_pml_umrddt_ipc_peer_t *ipc; /**< pml_umrddt_ipc.h: of its GPU memory; or NULL */
} mca_pml_umrddt_peer_t;

/** One communicator. */
typedef struct mca_pml_umrddt_comm_t {
    opal_list_item_t super;
    ompi_communicator_t *comm;
    bool bypass;      /**< the info key says: nothing is taken */
    int scheme;       /**< mca_pml_umrddt_scheme_id_t, of the info key or the parameter */
    uint16_t schemes; /**< MCA_PML_UMRDDT_BIT_* that it allows */
    int pattern;      /**< mca_pml_umrddt_pattern_t, atomic */
    bool listening;   /**< envelopes came in: look for failure notices */
    mca_pml_umrddt_peer_t **peers; /**< by rank (of the remote group), filled at first use */
    int peer_count;
    uint32_t gate;                /**< see pml_umrddt_gate.h */
    opal_recursive_mutex_t match; /**< of the claims, and of the gate's closing and opening */
    int claiming;                 /**< claims are being made, so many calls deep */
    int closing;                  /**< threads that wait for the gate to be empty */
    uint64_t claim_order;         /**< of the next claim; atomic */
    opal_list_t claims;           /**< messages taken early, by source in their order */
} mca_pml_umrddt_comm_t;
OBJ_CLASS_DECLARATION(mca_pml_umrddt_comm_t);

/* ---------------------------------------------------------------------------------------------
 * Requests
 * ------------------------------------------------------------------------------------------- */

/** Something for progress to do; embedded in its owner, at most once in the queue. */
typedef struct mca_pml_umrddt_event_t {
    opal_object_t super;
    struct mca_pml_umrddt_event_t *next; /**< in the queue */
    void (*handler)(void *owner);
    void *owner;
    bool queued;
} mca_pml_umrddt_event_t;
OBJ_CLASS_DECLARATION(mca_pml_umrddt_event_t);

/** A place in a waiting list of progress. */
typedef struct mca_pml_umrddt_wait_t {
    opal_list_item_t super;
    opal_list_t *list;          /**< where it waits, or NULL */
    bool (*retry)(void *owner); /**< true: it is over (and may wait again elsewhere, or be gone) */
    void *owner;
} mca_pml_umrddt_wait_t;
OBJ_CLASS_DECLARATION(mca_pml_umrddt_wait_t);

/**
 * Who is through with a request: the side that completes it, and the user, in any order and in any
 * thread. The one who comes last returns it.
 */
typedef enum mca_pml_umrddt_release_t {
    MCA_PML_UMRDDT_COMPLETED = 1, /**< set in a request that is not started, too */
    MCA_PML_UMRDDT_FREED = 2
} mca_pml_umrddt_release_t;

/** Note that @p mine is through. @return true if the other one was already */
static inline bool mca_pml_umrddt_release(int *release, mca_pml_umrddt_release_t mine)
{
    return 0 != (__atomic_fetch_or(release, (int) mine, __ATOMIC_ACQ_REL) & ~(int) mine);
}

/** Begin another round of a persistent request. The completing side may be an instant behind. */
static inline void mca_pml_umrddt_release_reset(int *release)
{
    while (MCA_PML_UMRDDT_COMPLETED != __atomic_load_n(release, __ATOMIC_ACQUIRE)) {
        ;
    }
    __atomic_store_n(release, 0, __ATOMIC_RELEASE);
}

typedef enum mca_pml_umrddt_send_state_t {
    MCA_PML_UMRDDT_SEND_IDLE,    /**< persistent and not started */
    MCA_PML_UMRDDT_SEND_REPLY,   /**< the envelope is out, waiting for the receiver */
    MCA_PML_UMRDDT_SEND_KEYS,    /**< CTS came, waiting for local keys to be had */
    MCA_PML_UMRDDT_SEND_MAPPING, /**< waiting for the local keys' UMRs */
    MCA_PML_UMRDDT_SEND_PUT,     /**< writes under way */
    MCA_PML_UMRDDT_SEND_PACK,    /**< chunks under way */
    MCA_PML_UMRDDT_SEND_FAILED,  /**< told the receiver, waiting for its verdict */
    MCA_PML_UMRDDT_SEND_BASE,    /**< the base PML sends the message */
    MCA_PML_UMRDDT_SEND_DRAIN    /**< done, but for the host's request of the envelope */
} mca_pml_umrddt_send_state_t;

/** A send that was taken. */
typedef struct mca_pml_umrddt_send_t {
    ompi_request_t super;
    mca_pml_umrddt_event_t event; /**< a reply arrived */
    mca_pml_umrddt_wait_t wait;
    mca_pml_umrddt_send_state_t state;
    int release;     /**< mca_pml_umrddt_release_t */
    bool plain;      /**< never taken: it is here for its stage */
    bool tries;      /**< taken to see where it is received (pml_umrddt_offer_cache.h) */
    bool offered;    /**< this time; with a key: what becomes of it is learnt */
    bool declinable; /**< the receiver may decline it */
    bool chosen;     /**< the receiver has declined it */
    bool left;       /**< and says that the next ones need not be offered */
    uint64_t offer;  /**< its key in the offer cache; 0: nothing is learnt */
    bool freed;      /**< the user freed the request; atomic */

    const void *buf;
    size_t count;
    ompi_datatype_t *datatype;
    int dst;
    int tag;
    mca_pml_base_send_mode_t mode;
    mca_pml_umrddt_comm_t *comm;
    mca_pml_umrddt_peer_t *peer;
    mca_pml_umrddt_where_t where; /**< the buffer, as last looked at; meaningless without a GPU */

    mca_pml_umrddt_stage_t
        stage; /**< what the host sends from in place of the buffer, if it must */
    mca_pml_umrddt_transit_t transit;
    bool pack_error; /**< the stage could not be filled */

    opal_iov_cache_layout_t *layout;
    mca_btl_umr_endpoint_t *endpoint;
    mca_btl_umr_memory_t *memory;
    mca_btl_umr_keyset_t *keyset;
    uint32_t slot;
    uint64_t total;    /**< bytes the receiver takes */
    uint64_t position; /**< bytes whose writes completed */
    mca_pml_umrddt_rts_t rts;
    ompi_request_t *envelope;      /**< the host's request of the RTS; NULL: complete */
    ompi_request_t *listen;        /**< the host's request for a reply; NULL if none is posted */
    ompi_request_t *host;          /**< the host's request for the data */
    mca_pml_umrddt_reply_t *reply; /**< where replies arrive: mca_pml_umrddt_reply_room */
    mca_btl_umr_key_t *remote;     /**< scratch: the peer's keys for one put */
    struct mca_pml_umrddt_parts_t *parts; /**< of the receiver's layout that have come; or NULL */
    opal_iov_cache_layout_t *to;          /**< the receiver's, while it is written into; or NULL */
    const struct mca_pml_umrddt_scheme_t *ops; /**< has it under way, and listens; or NULL */
    struct mca_pml_umrddt_pack_t *pack;        /**< in state PACK */
    uint32_t written;                          /**< chunks, for the notice of failure */
    bool told;      /**< the receiver has asked for what it needs to read */
    time_t refused; /**< of the data, by the host: mca_pml_umrddt_hopeless */

    /* pml_umrddt_stripe.h */
    struct mca_pml_umrddt_stripes_t *stripes;      /**< offered in stripes, or one; else NULL */
    struct mca_pml_umrddt_stripes_t *stripes_kept; /**< memory for them; or NULL */
} mca_pml_umrddt_send_t;
OBJ_CLASS_DECLARATION(mca_pml_umrddt_send_t);

typedef enum mca_pml_umrddt_recv_state_t {
    MCA_PML_UMRDDT_RECV_POSTED,  /**< at the base PML, or nowhere yet */
    MCA_PML_UMRDDT_RECV_MATCHED, /**< has an envelope */
    MCA_PML_UMRDDT_RECV_KEYS,    /**< waiting for keys to be had */
    MCA_PML_UMRDDT_RECV_MAPPING, /**< waiting for the keys' UMRs */
    MCA_PML_UMRDDT_RECV_CREDIT,  /**< waiting for a receive for the FIN */
    MCA_PML_UMRDDT_RECV_FIN,     /**< CTS is out */
    MCA_PML_UMRDDT_RECV_STRIPED, /**< in stripes, each a record of its own */
    MCA_PML_UMRDDT_RECV_FLUSH,   /**< it came, and the GPU does not see all of it yet */
    MCA_PML_UMRDDT_RECV_LOOK,    /**< of the sender's memory or layout something is not here */
    MCA_PML_UMRDDT_RECV_ASKED,   /**< it was asked for */
    MCA_PML_UMRDDT_RECV_COPY,    /**< a GPU copies the message */
    MCA_PML_UMRDDT_RECV_PACK,    /**< chunks under way */
    MCA_PML_UMRDDT_RECV_BASE,    /**< the base PML brings the data */
    MCA_PML_UMRDDT_RECV_FILL,    /**< it has, and the GPU moves it from memory of ours */
    MCA_PML_UMRDDT_RECV_DONE
} mca_pml_umrddt_recv_state_t;

/** Bytes for what a scheme holds of a receive. */
#define MCA_PML_UMRDDT_RECV_HELD 40

/**
 * A receive that may get an envelope. Either it watches a request of the base PML that the user
 * holds (req == host), or the user holds its own request (req == &super), with or without one of
 * the host behind.
 */
typedef struct mca_pml_umrddt_recv_t {
    ompi_request_t super;
    mca_pml_umrddt_event_t event; /**< an envelope arrived, or a release is due */
    mca_pml_umrddt_wait_t wait;
    opal_list_item_t active; /**< in mca_pml_umrddt.receives from the match to the end */
    mca_pml_umrddt_recv_state_t state;

    void *buf;
    size_t count;
    ompi_datatype_t *datatype;
    int src;
    int tag;
    mca_pml_umrddt_comm_t *comm;

    ompi_request_t *req;              /**< what the user holds */
    ompi_request_t *host;             /**< what is posted at the host */
    ompi_request_free_fn_t host_free; /**< the host request's own function, put back at the end */
    bool host_persistent;             /**< and its own flag */
    bool posted;                      /**< started at the host, which has not matched it; atomic */
    int release;                      /**< mca_pml_umrddt_release_t */
    bool bounced;                     /**< the host receives into the stage, or else into bounce */
    mca_pml_umrddt_stage_t stage;
    unsigned char bounce[MCA_PML_UMRDDT_ENVELOPE];

    mca_pml_umrddt_rts_t rts;
    ompi_status_public_t status;  /**< of the envelope: source and tag */
    uint64_t total;               /**< bytes to receive: min(message, capacity) */
    uint64_t position;            /**< bytes received */
    mca_pml_umrddt_where_t where; /**< the buffer, from the match on ... */
    bool looked;                  /**< ... or already */
    bool announced;               /**< the sender has left its completion flag */
    opal_iov_cache_layout_t *layout;
    mca_btl_umr_endpoint_t *endpoint; /**< of the HCA, if a scheme uses one or was refused it */
    mca_pml_umrddt_peer_t *peer;      /**< the sender */
    uint32_t fin;                     /**< immediate data that ends the round, 0: none */

    /* pml_umrddt_scheme.h */
    uint16_t candidates;                       /**< MCA_PML_UMRDDT_BIT_* still to be tried */
    uint16_t preferred;                        /**< the one of these that comes first, or 0 */
    const struct mca_pml_umrddt_scheme_t *ops; /**< has the message; NULL: none yet */
    uint64_t *reason;                          /**< counter of why it falls back to the base PML;
                                                    NULL: that was selected */

    /** What the scheme holds. */
    union {
        unsigned char held[MCA_PML_UMRDDT_RECV_HELD];
        struct { /* pml_umrddt_rdma.h */
            mca_btl_umr_memory_t *memory;
            mca_btl_umr_keyset_t *keyset;
            int (*cts)(struct mca_pml_umrddt_recv_t *recv); /**< sends that of this scheme */
            uint64_t chunk;
            uint32_t place;
            bool placed; /**< a place at the sender is taken for this round */
        };
        struct { /* pml_umrddt_ipc.h */
            struct opal_umrddt_gpu_engine_t *engine;
            struct opal_umrddt_gpu_import_t *import;
            opal_iov_cache_layout_t *from;        /**< the sender's layout; NULL: one piece */
            struct opal_umrddt_gpu_copy_t *copy;  /**< under way */
            struct mca_pml_umrddt_asked_t *asked; /**< in state ASKED */
        };
        struct mca_pml_umrddt_pack_t *pack; /**< in state PACK */
    };

    /* pml_umrddt_stripe.h */
    struct mca_pml_umrddt_recv_stripes_t *stripes;      /**< in stripes, or one; else NULL */
    struct mca_pml_umrddt_recv_stripes_t *stripes_kept; /**< memory for them; or NULL */

    /* pml_umrddt_pairs.h; in this order, which leaves no gaps */
    struct mca_pml_umrddt_pair_t *pair; /**< what is known of such messages; NULL: nothing */
    uint32_t serial;                    /**< of what it was at the match */
    int scheme;   /**< mca_pml_umrddt_scheme_id_t: the verdict, then the way */
    bool settled; /**< the next ones go the same way */
    double began; /**< when it was matched, us, with explain */

    ompi_request_t *data; /**< the host's request for the data */
    mca_pml_umrddt_stage_t
        overflow; /**< where it puts the data if it must not put it in the buffer */
    bool named;   /**< the data's source and tag are the message's */
    mca_pml_umrddt_transit_t transit;
    time_t refused; /**< of the data, by the host: mca_pml_umrddt_hopeless */
    int fill_error; /**< for the user, once the bytes have been brought */
    size_t fill_ucount;
} mca_pml_umrddt_recv_t;
_Static_assert(offsetof(mca_pml_umrddt_recv_t, stripes) - offsetof(mca_pml_umrddt_recv_t, held)
                   == MCA_PML_UMRDDT_RECV_HELD,
               "all of what a scheme holds");
OBJ_CLASS_DECLARATION(mca_pml_umrddt_recv_t);

/** A message taken from the base PML before its receive was posted. */
typedef enum mca_pml_umrddt_claim_kind_t {
    MCA_PML_UMRDDT_CLAIM_ENVELOPE, /**< bytes holds an RTS */
    MCA_PML_UMRDDT_CLAIM_DATA,     /**< bytes holds a plain message of the envelope's size */
    MCA_PML_UMRDDT_CLAIM_HANDLE    /**< any other plain message: the host's own handle */
} mca_pml_umrddt_claim_kind_t;

typedef struct mca_pml_umrddt_claim_t {
    opal_list_item_t super;
    mca_pml_umrddt_claim_kind_t kind;
    mca_pml_umrddt_comm_t *comm;
    uint64_t order; /**< in which the claims of a communicator were matched */
    int src;
    int tag;
    size_t length; /**< of the message, as a probe must tell it */
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

/** Communicators are found by their index, without a lock: one table, whose pages cost nothing
 * until they are used. */
#define MCA_PML_UMRDDT_COMMS (1u << 18)

/** Entries of the offer cache (pml_umrddt_offer_cache.h). A power of two. */
#define MCA_PML_UMRDDT_OFFERS 8192

typedef struct mca_pml_umrddt_t {
    mca_pml_umrddt_params_t params;
    mca_pml_umrddt_counters_t counters;
    mca_pml_base_module_t host; /**< the base PML's functions */
    mca_pml_base_component_t host_component;
    bool interposed; /**< our functions are in mca_pml */
    bool usable;     /**< enabled, with an HCA or a GPU: messages can be taken */
    bool polling;    /**< progress is called */
    bool host_keeps; /**< the host's receive requests are mca_pml_base_request_t, and hold what they
                        name (ob1) */

    const mca_btl_umr_hca_ops_t *hca; /**< NULL without an HCA */
    const char *hca_why_not;          /**< and then why, for the user */
    const mca_btl_umr_caps_t *caps;
    size_t stripe_from; /**< messages from this size on go over several pairs of HCAs */
    const opal_umrddt_gpu_driver_t *gpu; /**< NULL without the CUDA driver */
    const char *gpu_why_not;             /**< and then why, for the user */
    mca_pml_umrddt_base_gpu_t base_gpu;  /**< what GPU memory the base PML is given */
    bool base_aware;                     /**< this Open MPI's own code knows CUDA */
    size_t eager[2];                     /**< the base PML's eager limit: other nodes, this node */
    uint32_t wide_types;                 /**< basic types that a receive by pieces may not have */
    uint32_t cut_types;                  /**< those, and others that some layouts must not have */
    bool looks;                          /**< every buffer that is sent has to be looked at */
    bool leaves_far;                     /**< contiguous ones to other nodes, if it can be given */
    bool takes_contiguous;               /**< contiguous sends are looked at, too ... */
    bool declines;                       /**< the model decides, also whether one is taken */
    size_t contiguous_from;              /**< ... of so many bytes and more */
    mca_pml_umrddt_identity_t self;      /**< as published */
    opal_iov_cache_t *layouts;
    int type_keyval;  /**< attribute that tells when a datatype dies */
    uint16_t schemes; /**< MCA_PML_UMRDDT_BIT_* that this side can and the user wants */

    opal_mutex_t lock;                  /**< events, slots, peers, messages, release flags */
    mca_pml_umrddt_event_t *events;     /**< the first one; under the lock, but read without it */
    mca_pml_umrddt_event_t *last_event; /**< if there is one */
    opal_hash_table_t peers;            /**< process name -> mca_pml_umrddt_peer_t */
    opal_hash_table_t messages;         /**< ompi_message_t * -> claim, from our mprobe */
    size_t message_count;               /**< how many; under the lock, but read without it */
    uint32_t comm_end; /**< behind the last communicator that was ever in the table */
    mca_pml_umrddt_slots_t slots;
    uint64_t seq;
    opal_free_list_t sends;
    opal_free_list_t recvs;
    bool lists_ready;

    /* of progress only, but for active and freed (atomic) and listeners (under lock) */
    int busy; /**< 1 while a thread runs progress */
#if UMRDDT_ENABLE_DEBUG
    pthread_t owner; /**< which one, pml_umrddt_owner.h; atomic */
#endif
    int active;  /**< taken sends and matched receives under way */
    int freed;   /**< of the sends, those whose requests the user has freed; atomic */
    int refused; /**< control messages that the host has not taken yet; atomic */
    uint32_t ticks;
    mca_pml_umrddt_fins_t fins;                /**< immediate data -> receive */
    void *scratch;                             /**< where a CTS is put together */
    size_t scratch_size;                       /**< mca_pml_umrddt_reply_room */
    struct mca_pml_umrddt_seen_t *seen;        /**< layouts and buffers that were received into */
    uint64_t types_died;                       /**< datatypes that had a layout; atomic */
    uint64_t offers[MCA_PML_UMRDDT_OFFERS];    /**< pml_umrddt_offer_cache.h; atomic */
    struct mca_pml_umrddt_pairs_t *pairs;      /**< the model's verdicts; NULL: the rules decide */
    opal_list_t receives;                      /**< matched, not finished */
    uint32_t waits;                            /**< how many wait in the lists that follow */
    opal_list_t waiting[MCA_BTL_UMR_ROLE_MAX]; /**< for keys of a role */
    opal_list_t credit;                        /**< peers, for FINs' receives */
    opal_list_t polled;                        /**< for a request of the host */
    opal_list_t listeners;                     /**< communicators to look for failure notices on */
    uint32_t listener_count;                   /**< how many; read without the lock */
} mca_pml_umrddt_t;

extern mca_pml_umrddt_t mca_pml_umrddt;
/** By index; nothing is in it unless mca_pml_umrddt.usable. Not behind a pointer: every message
 * looks. */
extern mca_pml_umrddt_comm_t *mca_pml_umrddt_comms[MCA_PML_UMRDDT_COMMS];
UMRDDT_COMPONENT extern mca_pml_base_component_t mca_pml_umrddt_component;

/** True if there is anything that a message could be taken with; else nothing is interposed. */
static inline bool mca_pml_umrddt_takes_part(void)
{
    return NULL != mca_pml_umrddt.hca || NULL != mca_pml_umrddt.gpu;
}

/** Bytes that a reply may have. */
static inline size_t mca_pml_umrddt_reply_room(void)
{
    size_t room = sizeof(mca_pml_umrddt_reply_t)
                  + mca_pml_umrddt.params.max_keys * sizeof(mca_pml_umrddt_wire_key_t);

    return room < MCA_PML_UMRDDT_REPLY_ROOM ? MCA_PML_UMRDDT_REPLY_ROOM : room;
}

/** Count without a lock: exact in one thread, and with threads by an atomic add. */
#define MCA_PML_UMRDDT_COUNT_ADD(name, n)                                                    \
    do {                                                                                     \
        if (opal_using_threads()) {                                                          \
            (void) __atomic_fetch_add(&mca_pml_umrddt.counters.name, (n), __ATOMIC_RELAXED); \
        } else {                                                                             \
            mca_pml_umrddt.counters.name += (n);                                             \
        }                                                                                    \
    } while (0)
#define MCA_PML_UMRDDT_COUNT(name) MCA_PML_UMRDDT_COUNT_ADD(name, 1)

/** So many bytes more are kept for a peer, or (negative) fewer. */
static inline void mca_pml_umrddt_peer_bytes(int64_t bytes)
{
    MCA_PML_UMRDDT_COUNT_ADD(peer_bytes_now, (uint64_t) bytes);
}

/* pml_umrddt_params.c, _gpu_params.c, _pvars.c */
int mca_pml_umrddt_params_register(void);
void mca_pml_umrddt_gpu_params_register(void);
void mca_pml_umrddt_param(const char *name, const char *help, mca_base_var_type_t type,
                          mca_base_var_enum_t *values, mca_base_var_info_lvl_t level,
                          void *storage);

/** The same for a number; the help text is a format, to which its limits are given: a limit in a
 * help text comes from the constant that the code compares with. */
void mca_pml_umrddt_param_limited(const char *name, mca_base_var_type_t type,
                                  mca_base_var_info_lvl_t level, void *storage, const char *help,
                                  ...) __opal_attribute_format__(__printf__, 5, 6);
/** The scheme of this name, as pml_umrddt_scheme has them; -1: there is none. */
int mca_pml_umrddt_scheme_named(const char *name);
void mca_pml_umrddt_pvars_register(void);
void mca_pml_umrddt_stats_print(void);

/* pml_umrddt_base.c: bringing up the PML that carries everything else */

/** Open every candidate PML and put it beside us in the selection. @return OMPI_SUCCESS or an error
 */
int mca_pml_umrddt_base_open(void);

/** True if the user asked for us (the pml framework's selection names umrddt). */
bool mca_pml_umrddt_requested(void);

/* pml_umrddt_hca.c */

/** Find and start btl/umr; leaves mca_pml_umrddt.hca NULL where there is none. */
void mca_pml_umrddt_hca_open(void);
void mca_pml_umrddt_hca_close(void);

/**
 * True if messages between memory of a GPU and a peer may go by the HCA, as far as is known
 * without trying.
 */
bool mca_pml_umrddt_hca_takes(const mca_pml_umrddt_peer_t *peer,
                              const mca_pml_umrddt_where_t *where);

/**
 * True if they are to be: where CUDA IPC cannot do it, or is predicted to take longer for this
 * layout.
 */
bool mca_pml_umrddt_hca_wanted(mca_pml_umrddt_comm_t *comm, const mca_pml_umrddt_peer_t *peer,
                               const mca_pml_umrddt_where_t *where,
                               opal_iov_cache_layout_t *layout);

/** True if CUDA IPC can do it, and has not been seen to fail with this peer. */
bool mca_pml_umrddt_ipc_wanted(const mca_pml_umrddt_comm_t *comm, const mca_pml_umrddt_peer_t *peer,
                               const mca_pml_umrddt_where_t *where);

/** A message could not go by CUDA IPC, or (@p well) could. */
void mca_pml_umrddt_ipc_result(mca_pml_umrddt_peer_t *peer, bool well);

/** Register a buffer with the HCA of an endpoint, wherever it is. @return OPAL_* as the HCA's */
int mca_pml_umrddt_register(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_role_t role,
                            const mca_pml_umrddt_where_t *where, void *buf,
                            const opal_iov_cache_layout_t *layout, uint64_t size,
                            mca_btl_umr_memory_t **memory);

/* pml_umrddt_modex.c */

/** Make mca_pml_umrddt.self and tell it the job. @return false: not possible; the user was told */
bool mca_pml_umrddt_publish(void);
/**
 * Tell the job that no message is taken here. Silence would not do: a peer on another host that
 * asks for what nobody has told waits for ever, on Open MPI 5.0.
 */
void mca_pml_umrddt_publish_absent(void);
/** Ask the modex what a new peer (of which proc is set) told of itself. */
void mca_pml_umrddt_identify(mca_pml_umrddt_peer_t *peer);

/* pml_umrddt_interpose.c */
void mca_pml_umrddt_interpose(void);
int mca_pml_umrddt_finalize(void);

/* pml_umrddt_windows.c: between the opening of the osc framework and its closing; twice is once */
void mca_pml_umrddt_windows_open(void);
void mca_pml_umrddt_windows_close(void);

/* pml_umrddt_comm.c */
/** Records that add_comm takes where there is no memory. @return OMPI_SUCCESS or
 * OMPI_ERR_OUT_OF_RESOURCE */
int mca_pml_umrddt_comms_init(void);
void mca_pml_umrddt_comms_fini(void);
int mca_pml_umrddt_add_comm(struct ompi_communicator_t *comm);
int mca_pml_umrddt_del_comm(struct ompi_communicator_t *comm);

/** As mca_pml_umrddt_peer, of one that the communicator may not know yet. */
mca_pml_umrddt_peer_t *mca_pml_umrddt_peer_find(mca_pml_umrddt_comm_t *comm, int rank);

/** The peer at @p rank of the communicator (of its remote group), looked up in the modex at first
 * use. */
static inline mca_pml_umrddt_peer_t *mca_pml_umrddt_peer(mca_pml_umrddt_comm_t *comm, int rank)
{
    /* without the lock: who finds a pointer finds what it points to */
    mca_pml_umrddt_peer_t **peers = __atomic_load_n(&comm->peers, __ATOMIC_ACQUIRE);
    mca_pml_umrddt_peer_t *peer = NULL;

    if (OPAL_LIKELY(NULL != peers && (unsigned) rank < (unsigned) comm->peer_count)) {
        peer = __atomic_load_n(&peers[rank], __ATOMIC_ACQUIRE);
    }
    return OPAL_LIKELY(NULL != peer) ? peer : mca_pml_umrddt_peer_find(comm, rank);
}

void mca_pml_umrddt_peers_free(void);

/**
 * The world goes, or the base PML: everybody has received what was sent to them, or MPI_Finalize
 * would not have come so far; but of a send that the user has freed and cannot wait for, the HCA
 * may not have told us yet; nor may the base PML have taken our answer to a peer's. They are waited
 * for as long as the base PML is whole, and then the answers on @p comm (NULL: all) are dropped.
 */
void mca_pml_umrddt_last_words(mca_pml_umrddt_comm_t *comm);

/** Our data of a communicator; NULL if everything on it goes to the host. */
static inline mca_pml_umrddt_comm_t *mca_pml_umrddt_comm_find(const ompi_communicator_t *comm)
{
    uint32_t index = UMRDDT_COMM_INDEX(comm);

    return OPAL_UNLIKELY(index >= MCA_PML_UMRDDT_COMMS) ? NULL : mca_pml_umrddt_comms[index];
}

/** Our data of a communicator if a user's message with this tag may be an envelope, else NULL. */
static inline mca_pml_umrddt_comm_t *mca_pml_umrddt_watched(const ompi_communicator_t *comm,
                                                            int tag)
{
    return 0 > tag && OMPI_ANY_TAG != tag ? NULL : mca_pml_umrddt_comm_find(comm);
}

/* pml_umrddt_pattern.c */

/** The first look for a communicator's pattern; never MCA_PML_UMRDDT_PATTERN_UNREAD. */
mca_pml_umrddt_pattern_t mca_pml_umrddt_pattern_read(mca_pml_umrddt_comm_t *comm);

/** True if assertions are checked. */
static inline bool mca_pml_umrddt_checks_pattern(void)
{
    return UMRDDT_ENABLE_DEBUG || mca_pml_umrddt.params.check_pattern;
}

/**
 * Returns true if an envelope may not survive a receive of this datatype by the base PML, as far
 * as one comparison can say: most datatypes answer false here. Contiguous ones need not be asked.
 *
 * Open MPI's convertor keeps an element of which only a part has arrived in an array of 16 bytes.
 * That of 5.0 puts bytes of complex numbers, and of an element that is cut, into wrong places in
 * some layouts. An envelope cuts elements whose size is no divisor of its length, and any element
 * behind one of another size.
 */
static inline bool mca_pml_umrddt_may_cut(const ompi_datatype_t *datatype)
{
    const uint32_t used = datatype->super.bdt_used;

#if 500 <= UMRDDT_OPAL_RELEASE
    return OPAL_UNLIKELY(0 != ((used & (used - 1)) | (used & mca_pml_umrddt.cut_types)));
#else
    return OPAL_UNLIKELY(0 != (used & mca_pml_umrddt.cut_types));
#endif
}

/** Returns the full answer for a datatype of which mca_pml_umrddt_may_cut is true. Looks at the
 * description of the first bytes only, as many as an envelope has. */
bool mca_pml_umrddt_cuts(const ompi_datatype_t *datatype);

/** Returns true if the base PML must not receive into a buffer because of its datatype. */
static inline bool mca_pml_umrddt_is_wide(const ompi_datatype_t *datatype, size_t count)
{
    return mca_pml_umrddt_may_cut(datatype) && 0 != count
           && !mca_pml_umrddt_is_contiguous(datatype, count) && mca_pml_umrddt_cuts(datatype);
}

/**
 * True if a buffer that is not empty is known to be system memory, and nobody wants assertions
 * checked: what the messages that are left to the base PML ask before anything else. False says
 * nothing.
 */
static inline bool mca_pml_umrddt_known_system(const void *buf, size_t count,
                                               const ompi_datatype_t *datatype)
{
    return !mca_pml_umrddt_checks_pattern()
           && opal_umrddt_gpu_plain((uintptr_t) buf + (uintptr_t) datatype->super.true_lb)
           && mca_pml_umrddt_known_run(buf, count, datatype);
}

/** What the user has asserted of a communicator; never MCA_PML_UMRDDT_PATTERN_UNREAD. */
static inline mca_pml_umrddt_pattern_t mca_pml_umrddt_pattern(mca_pml_umrddt_comm_t *comm)
{
    int pattern = __atomic_load_n(&comm->pattern, __ATOMIC_RELAXED);

    return OPAL_LIKELY(MCA_PML_UMRDDT_PATTERN_UNREAD != pattern)
               ? (mca_pml_umrddt_pattern_t) pattern
               : mca_pml_umrddt_pattern_read(comm);
}

/** True if the user asserts that buffers of this side are in the CPU's memory: no need to look. */
static inline bool mca_pml_umrddt_asserted_system(mca_pml_umrddt_comm_t *comm,
                                                  mca_pml_umrddt_side_t side)
{
    mca_pml_umrddt_pattern_t pattern = mca_pml_umrddt_pattern(comm);

    return MCA_PML_UMRDDT_PATTERN_CPU_TO_CPU == pattern
           || (MCA_PML_UMRDDT_SENDER == side ? MCA_PML_UMRDDT_PATTERN_CPU_TO_GPU
                                             : MCA_PML_UMRDDT_PATTERN_GPU_TO_CPU)
                  == pattern;
}

/** As mca_pml_umrddt_memory_of, where there is something to ask or to check. */
mca_pml_umrddt_memory_t mca_pml_umrddt_memory_find(mca_pml_umrddt_comm_t *comm, const void *buf,
                                                   size_t count, ompi_datatype_t *datatype,
                                                   mca_pml_umrddt_side_t side,
                                                   mca_pml_umrddt_where_t *where);

/**
 * Whose memory a buffer is: as asserted, or else by a query, which is counted. A wrong assertion is
 * found out only if pml_umrddt_check_pattern is set, or in a debug build; then the user is told
 * once, and the truth is returned. Where the assertion is GPU memory and there is a GPU, it spares
 * nothing: what is done with the memory needs to know it.
 *
 * @param[out] where  of the buffer: system memory, if there was no need to look
 *
 * @return GPU for memory of devices, managed memory, and mixed buffers
 */
static inline mca_pml_umrddt_memory_t mca_pml_umrddt_memory_of(mca_pml_umrddt_comm_t *comm,
                                                               const void *buf, size_t count,
                                                               ompi_datatype_t *datatype,
                                                               mca_pml_umrddt_side_t side,
                                                               mca_pml_umrddt_where_t *where)
{
    if (OPAL_LIKELY(NULL == mca_pml_umrddt.gpu
                    && MCA_PML_UMRDDT_PATTERN_NONE == mca_pml_umrddt_pattern(comm))) {
        /* there is nobody to ask */
        MCA_PML_UMRDDT_COUNT(memory_queries);
        where->memory.kind = OPAL_UMRDDT_GPU_HOST;
        where->mixed = false;
        return MCA_PML_UMRDDT_MEMORY_SYSTEM;
    }
    return mca_pml_umrddt_memory_find(comm, buf, count, datatype, side, where);
}

/* pml_umrddt_layout.c */

/** What this room notes in a layout: each costs a walk of the IOVs and is the same for every
 * message. */
typedef enum mca_pml_umrddt_memo_t {
    MCA_PML_UMRDDT_MEMO_PROPOSAL,    /**< as a sender: the chunk it proposes */
    MCA_PML_UMRDDT_MEMO_AGREED_SIZE, /**< as a receiver: for a message of this size ... */
    MCA_PML_UMRDDT_MEMO_AGREED_TO,   /**< ... and this proposal ... */
    MCA_PML_UMRDDT_MEMO_AGREED,      /**< ... the chunk it agreed to last */
    MCA_PML_UMRDDT_MEMO_SILENT       /**< as a sender: 1 if the last message that could have been
                                          told of by the completion flag got a reply */
} mca_pml_umrddt_memo_t;

/** The layout of (type, count), from the cache. The caller owns a reference. */
int mca_pml_umrddt_layout(ompi_datatype_t *datatype, size_t count,
                          opal_iov_cache_layout_t **layout);
int mca_pml_umrddt_layouts_init(void);
void mca_pml_umrddt_layouts_fini(void);

/** Copy the first bytes of a buffer's stream out, or in. @return bytes copied */
size_t mca_pml_umrddt_pack(const void *buf, size_t count, ompi_datatype_t *datatype, void *stream,
                           size_t length);
size_t mca_pml_umrddt_unpack_pieces(void *buf, size_t count, ompi_datatype_t *datatype,
                                    const void *stream, size_t length);

/** Copy bytes into the begin of a buffer's stream, which has room for as many. */
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

/** Hand @p event to progress; from any thread. */
void mca_pml_umrddt_event(mca_pml_umrddt_event_t *event, void (*handler)(void *), void *owner);

/** Wait in @p list of progress until retry says it is over. Of progress only. */
void mca_pml_umrddt_wait(opal_list_t *list, mca_pml_umrddt_wait_t *wait, bool (*retry)(void *),
                         void *owner);

/** Wait among the messages of @p peer for a FIN's receive. Of progress only. */
void mca_pml_umrddt_wait_credit(mca_pml_umrddt_peer_t *peer, mca_pml_umrddt_wait_t *wait,
                                bool (*retry)(void *), void *owner);

/** Leave whatever waiting list @p wait is in. Of progress only if it is in one. */
void mca_pml_umrddt_wait_cancel(mca_pml_umrddt_wait_t *wait);

/** One more, or one less, message under way: progress sleeps when there is none. */
void mca_pml_umrddt_active(int change);

/* pml_umrddt_control.c: all of progress only, but for init, fini, drop, listen and unlisten */

/** Memory for control messages: some of it is for those that must not be lost. */
int mca_pml_umrddt_control_init(void);
void mca_pml_umrddt_control_fini(void);

/**
 * Send a control message through the base PML, now or when the host takes it, behind those for the
 * same process of the communicator that it has refused. The bytes are copied.
 *
 * @param[in] must  the other side could wait for it for ever: where there is no memory for it, the
 *                  job ends. So long as a reply (without keys) at most
 *
 * @return OMPI_SUCCESS, or OMPI_ERR_OUT_OF_RESOURCE and it is not sent
 */
int mca_pml_umrddt_control(mca_pml_umrddt_comm_t *comm, int peer, int tag, const void *bytes,
                           size_t length, bool must);

/**
 * Forget what the host has not taken yet of a message's replies, but its last one (@p must): what
 * they name is about to be given back. The caller's message holds the communicator.
 */
void mca_pml_umrddt_control_withdraw(mca_pml_umrddt_comm_t *comm, int peer, int tag, uint64_t seq);

/** Forget what the host has not taken yet, on a communicator that goes, or (NULL) on all. */
void mca_pml_umrddt_control_drop(mca_pml_umrddt_comm_t *comm);

/**
 * The base PML has refused what the other side waits for, which is to be asked for again.
 *
 * @param[in,out] since  0 at first: since when it has given reasons that seldom pass
 *
 * @return true: for longer than pml_umrddt_refusal_timeout
 */
bool mca_pml_umrddt_hopeless(int rc, time_t *since);

/** A process cannot be told what it waits for: end the job, with words. */
void mca_pml_umrddt_cannot_tell(mca_pml_umrddt_comm_t *comm, int peer, int rc);

/** Look for failure notices on this communicator from now on, or no longer. */
void mca_pml_umrddt_listen(mca_pml_umrddt_comm_t *comm);
void mca_pml_umrddt_unlisten(mca_pml_umrddt_comm_t *comm);

/** Receive one failure notice of the next communicator in turn, if there is one. */
void mca_pml_umrddt_notice_look(void);

/** The HCA's endpoint to a peer, which lives as long as the HCA. @return as endpoint_get */
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

/* pml_umrddt_send_start.c, pml_umrddt_send_rndv.c: the sender's state machine */

/** Send the envelope of a prepared request. */
int mca_pml_umrddt_send_start(mca_pml_umrddt_send_t *send);

/** A record for a message or a stripe from the free list, with room for replies and keys and
 * nothing else set. NULL: no memory */
mca_pml_umrddt_send_t *mca_pml_umrddt_send_get(void);

/** Give a request back that send_alloc made. */
void mca_pml_umrddt_send_return(mca_pml_umrddt_send_t *send);

/**
 * Take our data out of a request of the host's before it gets it back: pml/ucx takes what it finds
 * there for its own. Atomic, though alone at it: whoever posts it next may complete it in another
 * thread, and begins there with a compare-and-swap.
 */
static inline void mca_pml_umrddt_request_clear(ompi_request_t *request)
{
    __atomic_store_n(&request->req_complete_cb_data, NULL, __ATOMIC_RELAXED);
}

/** The writes through a set of keys have all landed: keep them mapped for the next message. */
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

/**
 * The end of a blocking call: wait for a request, hand its status out and free it.
 *
 * @param[out] status  may be MPI_STATUS_IGNORE
 *
 * @return the request's error
 */
int mca_pml_umrddt_wait_and_free(ompi_request_t *request, ompi_status_public_t *status);

/** A receive request of our own (req == &super), not started. NULL: no memory */
mca_pml_umrddt_recv_t *mca_pml_umrddt_recv_alloc(void *buf, size_t count, ompi_datatype_t *datatype,
                                                 int src, int tag, mca_pml_umrddt_comm_t *comm);

/** Tell the user that the receive is over, with req->req_status as it stands. */
void mca_pml_umrddt_recv_complete(mca_pml_umrddt_recv_t *recv);

/** True if these bytes look like an envelope (the cookie is checked later, by its sender). */
static inline bool mca_pml_umrddt_is_envelope(const mca_pml_umrddt_rts_t *rts)
{
    return MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_RTS) == rts->magic;
}

/* pml_umrddt_recv_match.c, _recv_rndv.c, _recv_host.c: the receiver's state machine */

/** An envelope is in recv->rts, its source and tag in recv->status: let progress go on from there.
 */
void mca_pml_umrddt_recv_matched(mca_pml_umrddt_recv_t *recv);

/** The FIN handler of the HCA. */
void mca_pml_umrddt_recv_fin(void *context, mca_btl_umr_endpoint_t *endpoint, uint32_t fin);

/**
 * Wait for recv->data, a request of the base PML that brings the message into the user's buffer, or
 * into recv->overflow, and complete the receive with its status. From any thread.
 */
void mca_pml_umrddt_recv_await_base(mca_pml_umrddt_recv_t *recv);

/** From now on progress owns the receive, up to mca_pml_umrddt_recv_finish. From any thread. */
void mca_pml_umrddt_recv_begin(mca_pml_umrddt_recv_t *recv, mca_pml_umrddt_recv_state_t state,
                               void (*event)(void *));

/** Set the status for the user and complete. Of progress only; the receive is among its own. */
void mca_pml_umrddt_recv_finish(mca_pml_umrddt_recv_t *recv, int error, size_t length);

/** A sender failed after our CTS. */
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

/** Take the first claim that (src, tag) matches out of the list; NULL: none. comm->match is held.
 */
mca_pml_umrddt_claim_t *mca_pml_umrddt_claim_take(mca_pml_umrddt_comm_t *comm, int src, int tag);

/** Give a claimed message to a new receive; consumes the claim. The user gets *request. */
int mca_pml_umrddt_claim_deliver(mca_pml_umrddt_claim_t *claim, void *buf, size_t count,
                                 ompi_datatype_t *datatype, ompi_request_t **request);

/** Give a claimed message to a started receive of our own; consumes the claim. */
int mca_pml_umrddt_claim_into(mca_pml_umrddt_claim_t *claim, mca_pml_umrddt_recv_t *recv);

/** Drop a claim that nobody will receive. */
void mca_pml_umrddt_claim_drop(mca_pml_umrddt_claim_t *claim);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_H */
