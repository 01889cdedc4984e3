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
 * The HCAs of this process: the structure of one HCA, their list, and what all files of btl/umr
 * use. Other components include only btl_umr_hca.h.
 *
 * A process has a list of HCAs (mca_btl_umr). An HCA is one port of one device, with its mkeys,
 * registrations, endpoints and counters. Every object has a pointer to its HCA and cannot be used
 * with another one. One lock protects everything except the parameters. Functions marked "lock
 * held" must be called with it. User callbacks are never called with it.
 */

#ifndef MCA_BTL_UMR_H
#define MCA_BTL_UMR_H

#include <time.h>

#include "opal/mca/btl/umr/btl_umr_device.h"
#include "opal/mca/btl/umr/btl_umr_mr_gpu.h"
#include "opal/mca/btl/umr/btl_umr_keycache.h"
#include "opal/mca/btl/umr/btl_umr_klm.h"
#include "opal/mca/btl/umr/btl_umr_params.h"
#include "opal/mca/btl/umr/btl_umr_pool.h"
#include "opal/mca/btl/umr/btl_umr_refill.h"
#include "opal/mca/btl/umr/btl_umr_srq.h"
#include "opal/mca/btl/umr/btl_umr_topology.h"

BEGIN_C_DECLS

/** Events below, which the layers above handle (btl_umr_hca.c). Lock held. */
typedef struct mca_btl_umr_hca_events_t {
    /** The registration is about to be destroyed: no cached key may stay over it. */
    void (*reg_ends)(mca_btl_umr_hca_t *hca, const mca_btl_umr_reg_t *reg);
    /** The queue pair for mappings failed; its keysets have ended with an error. */
    void (*maps_failed)(mca_btl_umr_hca_t *hca);
} mca_btl_umr_hca_events_t;

/** One port of one device, with all its objects. */
struct mca_btl_umr_hca_t {
    uint32_t index; /**< index in mca_btl_umr.hcas */
    const mca_btl_umr_hca_events_t *events;
    bool used;   /**< included in mca_btl_umr.used */
    bool failed; /**< the queue pair for mappings broke: no keys until it is rebuilt */
    bool lost;   /**< the device failed (btl_umr_event.c); also read without the lock */
    bool ended;  /**< and all of its operations ended: nothing is posted or polled any more */
    uint32_t events_noted; /**< kinds of events that were logged, a bit for each */
    mca_btl_umr_caps_t caps;
    mca_btl_umr_stats_t stats;
    mca_btl_umr_device_t device;
    mca_btl_umr_mkeys_t mkeys;
    bool umr_failed; /**< UMR did not pass the self-test */
    mca_btl_umr_refill_t refill;
    mca_btl_umr_klm_t klm;
    opal_iov_cache_limits_t window; /**< capacity of one mkey that maps memory directly */
    uint32_t nest;                  /**< maximum keys below one key; below 2: disabled */

    mca_rcache_base_module_t *rcache;
    bool qp_refused; /**< the first failure to create a queue pair was logged */
    mca_btl_umr_gpu_t gpu;
    bool rcache_cacheable; /**< freed memory is reported, so registrations may be cached */
    size_t reg_bound;      /**< bytes */
    bool reg_refused;      /**< the system refused a registration for lack of memory */
    opal_list_t memories;  /**< in use */
    opal_list_t memories_idle;

    opal_list_t keysets; /**< in use */
    opal_list_t keysets_idle;
    mca_btl_umr_keycache_t keycache;
    mca_btl_umr_keyset_queue_t keysets_waiting; /**< some mapping not posted yet */
    mca_btl_umr_keyset_queue_t keysets_posted;  /**< all posted, the last one not complete */
    mca_btl_umr_keyset_queue_t keysets_done;    /**< the user must be notified */

    uint32_t writes_out; /**< posted to peers and not complete */
    uint32_t passes;     /**< passes of progress */
    mca_btl_umr_receives_t receives;
    opal_hash_table_t endpoints_by_qpn;
    opal_pointer_array_t endpoints;
    opal_list_t cqs;
    uint32_t commands;    /**< threads in commands for its queue pairs, without the lock */
    opal_list_t probing;  /**< endpoints with a probe under way */
    double probes_looked; /**< time of the last look at them */
    opal_list_t puts_done;
    opal_list_t puts_idle;
};

/** State that belongs to no HCA. */
typedef struct mca_btl_umr_t {
    opal_mutex_t lock;
    unsigned int users;  /**< successful calls of init without fini */
    bool refused;        /**< init found no usable HCA */
    char why[256];       /**< the reason for that */
    uint32_t hca_count;  /**< open HCAs */
    uint32_t used_count; /**< of those, in use: progress polls only these */
    mca_btl_umr_hca_t *used[MCA_BTL_UMR_MAX_HCAS];
    uint32_t shares; /**< divisor of the process's budgets: expected number of HCAs */
    /**
     * The open ones first. Created when first needed, and kept for their counters; the first one
     * always exists.
     */
    mca_btl_umr_hca_t *hcas[MCA_BTL_UMR_MAX_HCAS];
    uint64_t keyset_ids; /**< the last id used, by any HCA */
    mca_btl_umr_span_t spans[MCA_BTL_UMR_SPANS];
    mca_btl_umr_page_node_t page_nodes[MCA_BTL_UMR_PAGE_NODES];
    opal_hash_table_t peers;   /**< by name */
    opal_list_t peers_open;    /**< of these, peers with queue pairs; see btl_umr_room.c */
    mca_btl_umr_caps_t common; /**< capabilities common to several HCAs */
    mca_btl_umr_stats_t sum;   /**< sum over several HCAs, as of the last call of stats */
    mca_btl_umr_fin_fn_t fin_handler;
    void *fin_context;
} mca_btl_umr_t;

extern mca_btl_umr_t mca_btl_umr;

/** The default HCA: the first one. */
static inline mca_btl_umr_hca_t *mca_btl_umr_first(void)
{
    return mca_btl_umr.hcas[0];
}

/** Mark an HCA as used. Lock held. */
static inline void mca_btl_umr_hca_use(mca_btl_umr_hca_t *hca)
{
    if (!hca->used) {
        hca->used = true;
        mca_btl_umr.used[mca_btl_umr.used_count++] = hca;
    }
}

/** One HCA's share of a budget of the process, at least @p least if the budget allows. */
static inline size_t mca_btl_umr_share(size_t budget, size_t least)
{
    size_t share = 1 < mca_btl_umr.shares ? budget / mca_btl_umr.shares : budget;

    return share >= least ? share : budget < least ? budget : least;
}

/** Record why no HCA is usable; for why_not, shown by init. */
void mca_btl_umr_refuse(const char *format, ...) __opal_attribute_format__(__printf__, 1, 2);

/**
 * Construct the state that belongs to no HCA, and the first HCA; at open and close of the
 * component.
 */
void mca_btl_umr_construct(void);
void mca_btl_umr_destruct(void);

/** Construct the memory of an HCA. */
void mca_btl_umr_hca_construct(mca_btl_umr_hca_t *hca, uint32_t index);
void mca_btl_umr_hca_destruct(mca_btl_umr_hca_t *hca);

/**
 * Open this device. Lock held.
 *
 * @return OPAL_SUCCESS, or OPAL_ERR_NOT_AVAILABLE with why_not set and nothing left open
 */
int mca_btl_umr_hca_start(mca_btl_umr_hca_t *hca, const mca_btl_umr_candidate_t *candidate);

/** Close it, even if objects are in use. Lock held. */
void mca_btl_umr_hca_stop(mca_btl_umr_hca_t *hca);

/** Maximum number of structures kept for reuse instead of being freed. */
#define MCA_BTL_UMR_IDLE_MAX 256

/** Larger structures (in keys or parts) are freed. */
#define MCA_BTL_UMR_IDLE_KEYS 4096

/** Log line of an HCA, with the name of the device. */
#define MCA_BTL_UMR_LOG(hca, format, ...) \
    opal_output(0, "btl:umr: %s: " format, (hca)->device.name, __VA_ARGS__)

/** Log line from a level of btl_umr_verbose on. Only where something new is decided. */
#define MCA_BTL_UMR_VERBOSE(level, ...)                                             \
    do {                                                                            \
        if (OPAL_UNLIKELY(MCA_BTL_UMR_LOG_##level <= mca_btl_umr_params.verbose)) { \
            opal_output(0, "btl:umr: " __VA_ARGS__);                                \
        }                                                                           \
    } while (0)

/** Seconds of a clock that never goes back. */
static inline double mca_btl_umr_now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double) time.tv_sec + 1e-9 * (double) time.tv_nsec;
}

END_C_DECLS

#endif /* MCA_BTL_UMR_H */
