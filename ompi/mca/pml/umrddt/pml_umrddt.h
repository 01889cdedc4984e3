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
 * The component's configuration and state, and the names of its records. README.md in this
 * directory has the list of files and the order of messages; read it first. Each record and each
 * function is declared in the header of the same name as its file, in the folders below.
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

#include "opal/class/opal_free_list.h"
#include "opal/class/opal_hash_table.h"
#include "opal/class/opal_list.h"
#include "opal/util/output.h"

#include "ompi/mca/pml/pml.h"

#include "umrddt_compat.h"

#include "opal/datatype/iov_cache/iov_cache.h"
#include "opal/mca/btl/umr/btl_umr_hca.h"
#include "opal/mca/common/umrddt_gpu/driver/umrddt_gpu_driver.h"
#include "opal/mca/common/umrddt_gpu/staging/umrddt_gpu_cuts.h"
#include "opal/mca/common/umrddt_select/umrddt_select_offers.h"

#include "ompi/mca/pml/umrddt/pml_umrddt_counters.h"
#include "umrddt_ids.h"
#include "ompi/mca/pml/umrddt/pml_umrddt_params.h"
#include "ompi/mca/pml/umrddt/pml_umrddt_wire.h"

BEGIN_C_DECLS

/* Records; each one has a header. */
typedef struct mca_pml_umrddt_peer_t mca_pml_umrddt_peer_t;
typedef struct mca_pml_umrddt_comm_t mca_pml_umrddt_comm_t;
typedef struct mca_pml_umrddt_event_t mca_pml_umrddt_event_t;
typedef struct mca_pml_umrddt_wait_t mca_pml_umrddt_wait_t;
typedef struct mca_pml_umrddt_send_t mca_pml_umrddt_send_t;
typedef struct mca_pml_umrddt_recv_t mca_pml_umrddt_recv_t;
typedef struct mca_pml_umrddt_claim_t mca_pml_umrddt_claim_t;

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
    void *ranges;                        /**< mca_pml_umrddt_range; NULL: there is no profiler */
    size_t stripe_from;                  /**< smallest message that is striped, bytes */
    const opal_umrddt_gpu_driver_t *gpu; /**< NULL without the CUDA driver */
    const char *gpu_why_not;             /**< reason for NULL, for the user */
    mca_pml_umrddt_base_gpu_t base_gpu;  /**< GPU memory that the base PML may receive */
    bool base_aware;                     /**< Open MPI itself is CUDA-aware */
    bool base_maps;                      /**< the base PML opens CUDA IPC handles itself */
    size_t eager[2];                /**< eager limit of the base PML: remote nodes, this node */
    opal_umrddt_gpu_cuts_t cuts;    /**< types that the base PML cannot receive in fragments */
    bool looks;                     /**< look up the memory kind of every send buffer */
    bool declines_far;              /**< pass contiguous messages to remote nodes through */
    bool takes_contiguous;          /**< look up contiguous send buffers, too */
    bool shows;                     /**< print selections (explain, verbose) */
    bool declines;                  /**< the model decides whether a message is handled */
    size_t contiguous_from;         /**< smallest contiguous message that is handled, bytes */
    size_t waits_from;              /**< below it MPI_Send does not wait for the receiver, bytes */
    mca_pml_umrddt_identity_t self; /**< as published in the modex */
    opal_iov_cache_t *layouts;
    int type_keyval;     /**< attribute whose delete function reports the end of a datatype */
    uint16_t schemes;    /**< MCA_PML_UMRDDT_BIT_*: schemes that are possible here and enabled */
    uint16_t any_system; /**< of them, those that send from any system memory */

    opal_mutex_t lock;              /**< of events, request ids, peers, release flags */
    mca_pml_umrddt_event_t *events; /**< head of the queue; under the lock, also read without it */
    mca_pml_umrddt_event_t *last_event; /**< tail of the queue, unless it is empty */
    opal_hash_table_t peers;            /**< process name -> mca_pml_umrddt_peer_t */
    uint32_t comm_end; /**< one above the highest index ever used in the table of communicators */
    umrddt_ids_t request_ids;
    uint64_t seq;
    opal_free_list_t sends;
    opal_free_list_t recvs;
    opal_free_list_t claims;
    bool lists_ready;

    /* Only for progress, except active and freed (atomic) and listeners (under lock). */
    int busy; /**< 1 while a thread runs progress */
#if UMRDDT_ENABLE_DEBUG
    pthread_t owner; /**< that thread, pml_umrddt_progress.h; atomic */
#endif
    int active;  /**< handled sends and matched receives that are not complete */
    int freed;   /**< of the sends, those freed by the application; atomic */
    int refused; /**< control messages queued after a refusal; atomic */
    uint32_t ticks;
    umrddt_numbers_t fins;                   /**< immediate data -> receive */
    void *scratch;                           /**< buffer in which a CTS is built */
    size_t scratch_size;                     /**< mca_pml_umrddt_reply_room */
    struct opal_umrddt_received_t *received; /**< layouts and buffers that have received */
    uint64_t types_died;                     /**< destroyed datatypes that had a layout; atomic */
    opal_umrddt_offers_t offers;             /**< offer cache */
    struct opal_umrddt_selection_cache_t
        *selections;                           /**< selection cache; NULL: fixed rules select */
    opal_list_t receives;                      /**< matched and not finished */
    uint32_t waits;                            /**< entries in the following lists */
    opal_list_t waiting[MCA_BTL_UMR_ROLE_MAX]; /**< for mkeys of a role */
    opal_list_t credit;                        /**< peers with messages that wait for FIN credit */
    opal_list_t polled;                        /**< for a request of the base PML */
    opal_list_t listeners;                     /**< communicators to poll for NACKs */
    uint32_t listener_count;                   /**< number of listeners; read without the lock */
} mca_pml_umrddt_t;

extern mca_pml_umrddt_t mca_pml_umrddt;
UMRDDT_COMPONENT extern mca_pml_base_component_t mca_pml_umrddt_component;

/** Returns true if there is an HCA or a GPU. Otherwise nothing is interposed. */
static inline bool mca_pml_umrddt_takes_part(void)
{
    return NULL != mca_pml_umrddt.hca || NULL != mca_pml_umrddt.gpu;
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

/* Log lines. docs/messages.rst has what each level shows. The level is looked at only where
 * something new is decided: the first message of a pair of layouts, a failure, start and end. */

/** Levels of pml_umrddt_verbose. */
#define MCA_PML_UMRDDT_LOG_SETUP     1u
#define MCA_PML_UMRDDT_LOG_SELECTION 10u
#define MCA_PML_UMRDDT_LOG_MESSAGE   50u

/** Print a line, whatever the level. The first argument is a literal format. */
#define MCA_PML_UMRDDT_LOG(...) opal_output(0, "pml:umrddt: " __VA_ARGS__)

/** True if pml_umrddt_verbose is @p level (MCA_PML_UMRDDT_LOG_*) or above. */
static inline bool mca_pml_umrddt_logs(unsigned level)
{
    return OPAL_UNLIKELY(level <= mca_pml_umrddt.params.verbose);
}

/** Print a line from a level on. */
#define MCA_PML_UMRDDT_VERBOSE(level, ...)                     \
    do {                                                       \
        if (mca_pml_umrddt_logs(MCA_PML_UMRDDT_LOG_##level)) { \
            MCA_PML_UMRDDT_LOG(__VA_ARGS__);                   \
        }                                                      \
    } while (0)

END_C_DECLS

#endif /* MCA_PML_UMRDDT_H */
