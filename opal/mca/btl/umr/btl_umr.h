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
 * Structures shared by the files of btl/umr. Other components include only btl_umr_hca.h.
 *
 * A process has a list of HCAs (mca_btl_umr). An HCA is one port of one device, with its mkeys,
 * registrations, endpoints and counters. Every object has a pointer to its HCA and cannot be used
 * with another one. One lock protects everything below except the parameters. Functions marked
 * "lock held" must be called with it. User callbacks are never called with it.
 */

#ifndef MCA_BTL_UMR_H
#define MCA_BTL_UMR_H

#include "opal_config.h"
#include "umrddt_compat.h"

#include <pthread.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include "opal/class/opal_hash_table.h"
#include "opal/class/opal_list.h"
#include "opal/mca/rcache/rcache.h"

#include "opal/mca/btl/umr/btl_umr_hca.h"
#include "opal/mca/btl/umr/btl_umr_gpu.h"

BEGIN_C_DECLS

UMRDDT_COMPONENT extern mca_btl_umr_component_t mca_btl_umr_component;
extern const mca_btl_umr_hca_ops_t mca_btl_umr_hca_ops;

/* ---------------------------------------------------------------------------------------------
 * Parameters (btl_umr_component.c)
 * ------------------------------------------------------------------------------------------- */

/** The MCA parameters, after mca_btl_umr_params_check. */
typedef struct mca_btl_umr_params_t {
    char *device;              /**< "", or a list of "mlx5_0" and "mlx5_0:1" */
    unsigned int max_hcas;     /**< HCAs that this process uses */
    int gid_index;             /**< -1: choose */
    unsigned int mkeys;        /**< created at start-up */
    unsigned int mkeys_step;   /**< created per later request */
    unsigned int mkeys_low;    /**< per cent of mkeys kept free; 0: no helper thread */
    unsigned int mkeys_max;    /**< for both roles together */
    unsigned int max_entries;  /**< entries of an mkey; 0: the maximum of the device */
    unsigned int long_entries; /**< entries of an mkey with a non-inline list; 0: none */
    unsigned int long_mkeys;   /**< long mkeys, for both roles together */
    size_t list_bytes;         /**< memory for lists until the device has read them */
    size_t max_key_bytes;      /**< bytes one key covers */
    unsigned int sq_depth;     /**< writes in flight on one endpoint */
    unsigned int rq_depth;     /**< FINs in flight on one endpoint */
    unsigned int srq_depth;    /**< FINs in flight on all endpoints; 0: no shared receives */
    size_t reg_cache_size;     /**< limit of registered bytes; 0: half of this process's share */
    unsigned int gpu_regs;     /**< cached registrations of GPU memory */
    unsigned int gpu_flush;    /**< MCA_BTL_UMR_GPU_FLUSH_* */
    size_t reg_gap;            /**< largest hole between pieces that is registered with them */
    unsigned int write_pieces; /**< pieces that one write without keys gathers */
    unsigned int timeout;      /**< IB ACK timeout exponent */
    unsigned int retry_count;  /**< transport retries */
    unsigned int mtu;          /**< bytes; 0: the port's */
    unsigned int key_cache;    /**< keysets in the key cache */
    bool strided;              /**< equal blocks at equal distances may be one entry */
    bool nested;               /**< indirect mkeys */
    bool plain_keys;           /**< peers may use the key of a registration */
    bool selftest;             /**< run the self-test before the HCA is used */
    unsigned int rebuilds;     /**< rebuilds of a queue pair in a row; 0: never */
    int fork_support;          /**< mca_btl_umr_device_fork; -1: where the kernel needs it */
    bool rdma;                 /**< offer a btl module to the framework */
    unsigned int rdma_peers;   /**< largest job, in processes, with a module */
    unsigned int rdma_depth;   /**< operations of the module in flight to one peer */
    unsigned int check;        /**< passes of progress between checks of the invariants; 0: none */
} mca_btl_umr_params_t;

extern mca_btl_umr_params_t mca_btl_umr_params;

/** Adjust out-of-range values, each with one message. */
void mca_btl_umr_params_check(void);

/* ---------------------------------------------------------------------------------------------
 * The device and its queue pairs (btl_umr_device.c, btl_umr_qp.c)
 * ------------------------------------------------------------------------------------------- */

/** Defined at the end of this file. */
typedef struct mca_btl_umr_hca_t mca_btl_umr_hca_t;

/** NUMA nodes with a known distance: those below this number. */
#define MCA_BTL_UMR_NODES 64

/** Larger than any distance that the kernel reports. */
#define MCA_BTL_UMR_FAR     255
#define MCA_BTL_UMR_GPU_FAR UINT32_MAX

typedef struct mca_btl_umr_device_t {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_device_attr attr;
    struct ibv_port_attr port_attr;
    bool mlx5; /**< false: no UMR and no DEVX */
    uint8_t port;
    uint8_t gid_index;
    union ibv_gid gid;
    uint32_t max_message;                /**< maximum bytes of one write */
    uint32_t max_pieces;                 /**< maximum pieces of one gather write */
    uint32_t max_list;                   /**< maximum entries of an mkey; 0: not reported */
    uint32_t max_depth;                  /**< maximum levels of mkeys; 0: not reported */
    int caps_error;                      /**< errno of the failed query */
    bool update_tag;                     /**< a mapping can change the tag of an mkey */
    int numa;                            /**< NUMA node of the device; -1: unknown */
    uint8_t distance[MCA_BTL_UMR_NODES]; /**< from each node to it; MCA_BTL_UMR_FAR: not known */
    uint32_t gpu_distance[OPAL_UMRDDT_GPU_RDMA_DEVICES]; /**< mca_btl_umr_numa_gpu; 0: not computed
                                                            yet */
    char name[64];                                       /**< "mlx5_0:1" */
} mca_btl_umr_device_t;

/** Pieces that one write to a peer may gather; at least 1. */
static inline uint32_t mca_btl_umr_write_pieces(const mca_btl_umr_device_t *device)
{
    return device->max_pieces < mca_btl_umr_params.write_pieces ? device->max_pieces
                                                                : mca_btl_umr_params.write_pieces;
}

/** A device that might be usable. */
typedef struct mca_btl_umr_candidate_t {
    struct ibv_device *device;
    uint8_t port;     /**< 0: the first active one */
    uint8_t distance; /**< from this process; MCA_BTL_UMR_FAR: not known */
} mca_btl_umr_candidate_t;

/**
 * List the ports of mlx5 devices in the order in which this process tries them: those of
 * btl_umr_device, or all of them, nearest first. Equally near ports are rotated over the processes
 * of the node.
 *
 * @param[out] list        ibv_free_device_list when done with the candidates; NULL: nothing to free
 * @param[out] candidates  free() it
 *
 * @return number of candidates; 0 with why_not set
 */
int mca_btl_umr_device_candidates(struct ibv_device ***list, mca_btl_umr_candidate_t **candidates);

/*
 * Locations of devices, processes and memory (btl_umr_numa.c). Nodes are numbers of the kernel; -1:
 * unknown.
 */

/** Fill in the distances of a device. Reads files. */
void mca_btl_umr_numa_device(const struct ibv_device *ibv, mca_btl_umr_device_t *device);

/**
 * Distance from this process to a device: 0 if all CPUs that the process may run on are local to
 * the device; MCA_BTL_UMR_FAR if unknown. Reads files.
 */
uint8_t mca_btl_umr_numa_process(const struct ibv_device *device);

/** NUMA node of the page of an address. A system call, unless cached. Lock held. */
int mca_btl_umr_numa_address(const void *address);

/**
 * Distance from a GPU, by its number in this process, to a device. The distance grows as the common
 * part of their sysfs paths (switch, root port, host bridge) shrinks; for equal parts it grows with
 * the distance of the NUMA nodes. MCA_BTL_UMR_GPU_FAR if unknown. Reads files once for each GPU and
 * device. Lock held.
 */
uint32_t mca_btl_umr_numa_gpu(mca_btl_umr_device_t *device, int gpu);

/** Drop the cached locations of the pages from base to bound (the last byte). */
void mca_btl_umr_numa_forget(uintptr_t base, uintptr_t bound);

/**
 * Protect registered memory against fork where the kernel does not (ibv_fork_init). Must be called
 * before anything is registered. Controlled by btl_umr_fork_support. Gives a message if the
 * protection is needed but not available and the user did not ask for it.
 *
 * @return OPAL_SUCCESS; OPAL_ERR_NOT_AVAILABLE with why_not set if the user asked for it and it is
 *         not available
 */
int mca_btl_umr_device_fork(void);

/**
 * Open a device. OPAL_SUCCESS, or OPAL_ERR_NOT_AVAILABLE with why_not set and nothing left open.
 */
int mca_btl_umr_device_open(const mca_btl_umr_candidate_t *candidate, mca_btl_umr_device_t *device);

void mca_btl_umr_device_close(mca_btl_umr_device_t *device);

/**
 * A send queue with its credits. libmlx5 does not detect an overflow, so work requests are posted
 * only if there is room. Work requests are numbered from 1. A completion covers all numbers up to
 * its own.
 */
typedef struct mca_btl_umr_sq_t {
    struct ibv_qp *qp;
    struct ibv_qp_ex *qpx;
    struct mlx5dv_qp_ex *mqpx;
    uint32_t depth;
    uint32_t posted;    /**< number of the last posted request */
    uint32_t done;      /**< number of the last request known to be complete */
    uint32_t signalled; /**< number of the last signalled request */
} mca_btl_umr_sq_t;

static inline uint32_t mca_btl_umr_sq_room(const mca_btl_umr_sq_t *sq)
{
    return sq->depth - (sq->posted - sq->done);
}

/** True if number @p seq is complete. */
static inline bool mca_btl_umr_sq_is_done(const mca_btl_umr_sq_t *sq, uint32_t seq)
{
    return 0 <= (int32_t) (sq->done - seq);
}

static inline void mca_btl_umr_sq_complete(mca_btl_umr_sq_t *sq, uint32_t seq)
{
    if (!mca_btl_umr_sq_is_done(sq, seq)) {
        sq->done = seq;
    }
}

/**
 * Take the next number. Signalled are: requests that a caller waits for (@p wanted), one in half a
 * queue so that credits come back, and the one that fills the queue. So the last posted request
 * always gives a completion, at the latest when it is flushed.
 *
 * @param[out] seq  its number
 *
 * @return IBV_SEND_SIGNALED or 0
 */
static inline unsigned int mca_btl_umr_sq_next(mca_btl_umr_sq_t *sq, bool wanted, uint32_t *seq)
{
    *seq = ++sq->posted;
    if (wanted || 0 == mca_btl_umr_sq_room(sq) || sq->posted - sq->signalled >= sq->depth / 2) {
        sq->signalled = sq->posted;
        return IBV_SEND_SIGNALED;
    }
    return 0;
}

/** The use of a queue pair. */
typedef enum mca_btl_umr_qp_kind_t {
    MCA_BTL_UMR_QP_DATA, /**< writes; small slots */
    MCA_BTL_UMR_QP_UMR,  /**< mappings; a slot holds a whole list */
    MCA_BTL_UMR_QP_RDMA  /**< writes, reads and atomics of both sides; no receives */
} mca_btl_umr_qp_kind_t;

/** Destination of a queue pair's packets. */
typedef struct mca_btl_umr_route_t {
    uint16_t lid;
    union ibv_gid gid;
    uint8_t mtu;       /**< enum ibv_mtu */
    uint8_t reads_in;  /**< concurrent reads and atomics of the peer; 0: 1 */
    uint8_t reads_out; /**< concurrent reads and atomics to the peer; 0: 1 */
} mca_btl_umr_route_t;

/**
 * Create an RC queue pair and bring it to INIT.
 *
 * @param[in,out] inline_bytes  room for a list in a slot (UMR only): requested, obtained
 *
 * @return 0 or errno
 */
int mca_btl_umr_qp_create(mca_btl_umr_hca_t *hca, mca_btl_umr_qp_kind_t kind, struct ibv_cq *cq,
                          uint32_t sq_depth, uint32_t rq_depth, uint32_t *inline_bytes,
                          mca_btl_umr_sq_t *sq);

/** Bring to RTR and RTS. @return 0 or errno */
int mca_btl_umr_qp_connect(const mca_btl_umr_device_t *device, struct ibv_qp *qp,
                           const mca_btl_umr_route_t *route, uint32_t peer_qpn, uint32_t peer_psn,
                           uint32_t psn);

/** The route to this port itself (loopback). */
void mca_btl_umr_qp_route_self(const mca_btl_umr_device_t *device, mca_btl_umr_route_t *route);

/** Post @p count receives without a buffer, with this wr_id. @return 0 or errno */
int mca_btl_umr_qp_post_receives(struct ibv_qp *qp, uint64_t wr_id, uint32_t count);

/** Destroy; logs an error once. NULL is allowed. */
void mca_btl_umr_qp_destroy(mca_btl_umr_hca_t *hca, mca_btl_umr_sq_t *sq);

/** The next power of two: libmlx5 rounds queue sizes up like this. */
static inline uint64_t mca_btl_umr_round_up(uint64_t n)
{
    uint64_t power = 1;

    while (power < n) {
        power *= 2;
    }
    return power;
}

/** Memory that libmlx5 allocated for a queue pair, without its completions; bytes. */
uint64_t mca_btl_umr_qp_bytes(struct ibv_qp *qp);

/** The same for a completion queue. */
uint64_t mca_btl_umr_cq_bytes(struct ibv_cq *cq);

/*
 * ---------------------------------------------------------------------------------------------
 * Rebuilding of failed queue pairs (btl_umr_rebuild.c). All with the lock held
 * -------------------------------------------------------------------------------------------
 */

/**
 * Back-off of a failed queue pair: it is rebuilt after a number of messages that needed it. The
 * number doubles each time that the new one fails early, and after btl_umr_rebuilds failures in a
 * row it is not rebuilt any more.
 */
typedef struct mca_btl_umr_rebuild_t {
    unsigned int tries;  /**< failures in a row */
    unsigned int lacked; /**< messages since the last failure */
} mca_btl_umr_rebuild_t;

#define MCA_BTL_UMR_REBUILD_PATIENCE 4u

/** Work requests and FINs after which a new queue pair counts as good as the first. */
#define MCA_BTL_UMR_REBUILD_PROVEN 256u

/**
 * A queue pair failed, or could not be created.
 *
 * @param[in] done  work requests and FINs that it completed
 *
 * @return true if the limit is reached now (and rebuilding is not disabled)
 */
bool mca_btl_umr_rebuild_failed(mca_btl_umr_rebuild_t *rebuild, uint32_t done);

/**
 * Count a message that needs the queue pair. @return true: it may be rebuilt now; tries does not
 * change
 */
bool mca_btl_umr_rebuild_due(mca_btl_umr_rebuild_t *rebuild);

/* ---------------------------------------------------------------------------------------------
 * Mkeys (btl_umr_mkey.c) and the self-test (btl_umr_selftest.c)
 * ------------------------------------------------------------------------------------------- */

typedef struct mca_btl_umr_mkey_t {
    opal_list_item_t super;
    mca_btl_umr_hca_t *hca; /**< the HCA that it belongs to */
    struct mlx5dv_mkey *dv;
    struct mca_btl_umr_class_t *class;      /**< its size class; NULL: one of the pool */
    struct mca_btl_umr_mkey_t *made_before; /**< next in the list from the helper thread */
    mca_btl_umr_role_t role;                /**< valid while taken */
    bool exposed;                           /**< mapped for a peer and not invalidated since */
    bool unknown; /**< its mapping failed: its contents are undefined, and it is not used again */
    uint32_t last_seq; /**< while idle: its last work request, which may not be executed yet */
} mca_btl_umr_mkey_t;
OBJ_CLASS_DECLARATION(mca_btl_umr_mkey_t);

/**
 * Limit of a number of objects after the device refused one. The refusal may be temporary (memory,
 * keys of other jobs), so creation is retried after MCA_BTL_UMR_PATIENCE messages that lacked an
 * object. The number doubles with each further refusal.
 */
typedef struct mca_btl_umr_bound_t {
    size_t max;      /**< current limit */
    size_t most;     /**< limit set by the parameters */
    unsigned lacked; /**< messages since the refusal */
    unsigned
        patience; /**< messages until the next attempt; 0: it has not refused, or gave more since */
} mca_btl_umr_bound_t;

#define MCA_BTL_UMR_PATIENCE 256u

/** Set the limit; nothing has been refused. */
void mca_btl_umr_bound_start(mca_btl_umr_bound_t *bound, size_t most);

/** The device refused one more than @p count. */
void mca_btl_umr_bound_refused(mca_btl_umr_bound_t *bound, size_t count);

/** The device created one. If that exceeds the refused number, the refusal is cleared. */
static inline void mca_btl_umr_bound_given(mca_btl_umr_bound_t *bound)
{
    if (bound->max == bound->most) {
        bound->patience = 0;
    }
}

/** A message lacks one. @return true: bound->max is restored and one attempt is allowed */
bool mca_btl_umr_bound_again(mca_btl_umr_bound_t *bound);

/** The mkeys and the queue pair for their mappings. */
typedef struct mca_btl_umr_mkeys_t {
    struct ibv_cq *cq;
    mca_btl_umr_sq_t sq;
    uint32_t entries;      /**< entries of every mkey */
    uint32_t inline_bytes; /**< inline bytes for the entries in a slot */
    bool raw;              /**< the queue pair accepts raw work requests */
    opal_list_t taken;     /**< held by a role */
    opal_list_t idle;      /**< free */
    opal_list_t invalid;   /**< released, invalidation not posted yet */
    size_t count;          /**< existing mkeys */
    mca_btl_umr_bound_t bound;
    size_t used[MCA_BTL_UMR_ROLE_MAX];
    mca_btl_umr_rebuild_t rebuild; /**< of the queue pair */
} mca_btl_umr_mkeys_t;

/**
 * Create the queue pair and the first mkeys. Lock held.
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_NOT_SUPPORTED  the device has no UMR; the reason is in why_not
 * @retval OPAL_ERR_NOT_AVAILABLE  the device has no memory for it; why_not is set
 */
int mca_btl_umr_mkeys_start(mca_btl_umr_hca_t *hca);

/** Destroy all mkeys and the queue pair. Lock held. */
void mca_btl_umr_mkeys_stop(mca_btl_umr_hca_t *hca);

/** Create a queue pair for mappings, connected to itself. 0 or errno. */
int mca_btl_umr_mkeys_qp_start(mca_btl_umr_hca_t *hca);

/** The same in place of a failed one, with the same slots. 0 or errno. */
int mca_btl_umr_mkeys_qp_anew(mca_btl_umr_hca_t *hca);

/**
 * Take an mkey for a role. The pool grows if the role's half is not used up. Changes the tag of the
 * mkey.
 *
 * @param[in] entries  minimum: up to mkeys.entries from the pool, more from the long mkeys
 *
 * @return NULL: none available now
 */
mca_btl_umr_mkey_t *mca_btl_umr_mkey_take(mca_btl_umr_hca_t *hca, mca_btl_umr_role_t role,
                                          uint32_t entries);

/**
 * Create an mkey without a role, and count it.
 *
 * @return 0 or errno
 */
int mca_btl_umr_mkey_create(mca_btl_umr_hca_t *hca, uint32_t entries, mca_btl_umr_mkey_t **mkey);

/**
 * As mca_btl_umr_mkey_create, for the helper thread: reads no shared state and does not count.
 *
 * @param[in] update_tag  mappings shall be able to change its tag
 */
int mca_btl_umr_mkey_make(mca_btl_umr_hca_t *hca, uint32_t entries, bool update_tag,
                          mca_btl_umr_mkey_t **mkey);

/** The device refused another mkey of the pool (@p err is its errno): set the limit. */
void mca_btl_umr_mkeys_limit(mca_btl_umr_hca_t *hca, int err);

/**
 * Destroy an mkey; logs an error once. No work request may be pending for it: the device would stop
 * the queue pair at that request.
 */
void mca_btl_umr_mkey_destroy(mca_btl_umr_mkey_t *mkey);

/** Put an mkey into the list of free ones. */
void mca_btl_umr_mkey_idle(mca_btl_umr_mkey_t *mkey);

/** Set another tag for its next mapping, where the device supports it. */
void mca_btl_umr_mkey_retag(mca_btl_umr_mkey_t *mkey);

/**
 * Release an mkey. A REMOTE mkey first waits until its invalidation is posted
 * (mca_btl_umr_keysets_post). On a failed HCA no invalidation can be posted, so the mkey is
 * destroyed; so is an mkey whose mapping failed.
 */
void mca_btl_umr_mkey_give(mca_btl_umr_mkey_t *mkey);

/** Destroy all free mkeys. Lock held. The queue pair for mappings is in ERR or destroyed. */
void mca_btl_umr_mkeys_destroy_idle(mca_btl_umr_hca_t *hca);

/**
 * Build one mapping between ibv_wr_start and ibv_wr_complete. The caller has checked that the queue
 * has room.
 */
uint32_t mca_btl_umr_mkey_build_map(mca_btl_umr_mkey_t *mkey, mca_btl_umr_role_t role,
                                    uint16_t count, struct ibv_sge *sges, bool wanted);

/**
 * As mca_btl_umr_mkey_build_map, for equal blocks at equal distances.
 *
 * @param[in] addr           of the first block
 * @param[in] block, stride  bytes of a block, and from one to the next; at most
 *                           MCA_BTL_UMR_STRIDE_MAX
 * @param[in] count          blocks
 */
uint32_t mca_btl_umr_mkey_build_strided(mca_btl_umr_mkey_t *mkey, mca_btl_umr_role_t role,
                                        uint64_t addr, uint32_t lkey, uint32_t block,
                                        uint32_t stride, uint32_t count, bool wanted);

/** Entries of an mkey that a strided mapping needs: the block, and the repeat count. */
#define MCA_BTL_UMR_STRIDED_ENTRIES 2

/** The device has 16 bits for blocks and strides. */
#define MCA_BTL_UMR_STRIDE_MAX 65535

/** Build one invalidation: the HCA refuses the mkey after its execution. As above. */
uint32_t mca_btl_umr_mkey_build_invalidate(mca_btl_umr_mkey_t *mkey, bool wanted);

/** The access rights of a mapping, IBV_ACCESS_*. */
static inline unsigned int mca_btl_umr_mkey_rights(mca_btl_umr_role_t role)
{
    /*
     * A gather needs no access right, so read-only memory can be sent, and a peer that learns a
     * LOCAL key cannot use it.
     */
    return MCA_BTL_UMR_REMOTE == role ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : 0;
}

/**
 * Gather and scatter some bytes through two mkeys of full length, compare every byte, and verify
 * that an invalidated key is refused. Then do the same with each capability tier, and disable tiers
 * that fail. Each wait is at most ten seconds.
 *
 * @return OPAL_SUCCESS, or OPAL_ERR_NOT_AVAILABLE with why_not set
 */
int mca_btl_umr_selftest(mca_btl_umr_hca_t *hca);

/*
 * --------------------------------------------------------------------------------------------- The
 * thread that creates mkeys in advance (btl_umr_refill.c). All with the lock held
 * -------------------------------------------------------------------------------------------
 */

/** State shared by the helper thread and the users of the HCA. */
typedef struct mca_btl_umr_refill_shared_t {
    pthread_mutex_t lock; /**< protects all but made and error */
    pthread_cond_t requested;
    pthread_cond_t quiet;     /**< signalled when busy becomes false */
    bool stop;                /**< the thread must end */
    bool busy;                /**< an mkey is being created */
    size_t todo;              /**< further mkeys to create */
    uint32_t entries;         /**< of each mkey */
    bool update_tag;          /**< of each mkey */
    mca_btl_umr_mkey_t *made; /**< not fetched yet; the helper pushes one, users take all */
    int error;                /**< errno of a failed creation; set after all that succeeded */
} mca_btl_umr_refill_shared_t;

/** One helper per HCA. */
typedef struct mca_btl_umr_refill_t {
    size_t low;     /**< free mkeys of a role below which more are requested; 0: never */
    size_t pending; /**< requested and not fetched: count + pending never exceeds max */
    bool running;
    pthread_t thread;
    mca_btl_umr_refill_shared_t shared;
} mca_btl_umr_refill_t;

/** Called for the memory of each HCA. */
void mca_btl_umr_refill_construct(mca_btl_umr_hca_t *hca);
void mca_btl_umr_refill_destruct(mca_btl_umr_hca_t *hca);

/** Enable requests after the HCA is up. The first request starts the thread. */
void mca_btl_umr_refill_start(mca_btl_umr_hca_t *hca);

/** Fetch the created mkeys, and request more if too few are free. */
void mca_btl_umr_refill(mca_btl_umr_hca_t *hca);

/**
 * Cancel requests that are not begun, wait for the mkey that is being created, and fetch all.
 * Nothing is pending afterwards.
 */
void mca_btl_umr_refill_halt(mca_btl_umr_hca_t *hca);

/** As mca_btl_umr_refill_halt, and the thread ends. */
void mca_btl_umr_refill_stop(mca_btl_umr_hca_t *hca);

/*
 * ---------------------------------------------------------------------------------------------
 * Non-inline UMR lists (btl_umr_long.c)
 * -------------------------------------------------------------------------------------------
 */

#define MCA_BTL_UMR_CLASSES 5

/** Long mkeys (mkeys for non-inline lists) of one size. */
typedef struct mca_btl_umr_class_t {
    uint32_t entries;
    opal_list_t idle;
} mca_btl_umr_class_t;

/** A list that the device has not read yet. */
typedef struct mca_btl_umr_list_t {
    uint32_t seq; /**< number of the work request that reads it */
    size_t end;   /**< end of its memory in the ring */
} mca_btl_umr_list_t;

/** Mappings in flight; more wait in keysets_waiting. */
#define MCA_BTL_UMR_MKEYS_SQ_DEPTH 64

/** Entries that are built at a time on the stack: at least as many as fit in a work request. */
#define MCA_BTL_UMR_ENTRIES_AT_ONCE 64

/**
 * The long mkeys, and the memory from which the device reads their lists. The memory is a ring,
 * since the queue pair works in order.
 */
typedef struct mca_btl_umr_long_t {
    uint32_t entries; /**< maximum of a list; 0: non-inline lists are disabled */
    mca_btl_umr_class_t classes[MCA_BTL_UMR_CLASSES]; /**< by ascending entries */
    size_t class_count;
    size_t count;              /**< existing long mkeys */
    opal_list_t retired;       /**< to be destroyed when their invalidations are complete */
    mca_btl_umr_bound_t bound; /**< one half per role */
    size_t used[MCA_BTL_UMR_ROLE_MAX];
    unsigned char *memory;
    struct ibv_mr *mr;
    size_t size, head; /**< of the ring; start of the next list */
    size_t tail;       /**< start of the oldest list */
    mca_btl_umr_list_t lists[MCA_BTL_UMR_MKEYS_SQ_DEPTH]; /**< oldest at lists[first] */
    size_t first, list_count;
} mca_btl_umr_long_t;

/** Called for the memory of each HCA, at open and close of the component. */
void mca_btl_umr_long_construct(mca_btl_umr_hca_t *hca);
void mca_btl_umr_long_destruct(mca_btl_umr_hca_t *hca);

/** Query the device and create the ring; on failure caps have the reason. Lock held. */
void mca_btl_umr_long_start(mca_btl_umr_hca_t *hca);

/** Disable non-inline lists: destroy the free long mkeys and release the ring. Lock held. */
void mca_btl_umr_long_stop(mca_btl_umr_hca_t *hca);

/** The queue pair is new: no list is pending. */
void mca_btl_umr_long_reset(mca_btl_umr_hca_t *hca);

/** As mca_btl_umr_mkey_take, for more entries than mkeys of the pool have. */
mca_btl_umr_mkey_t *mca_btl_umr_long_take(mca_btl_umr_hca_t *hca, mca_btl_umr_role_t role,
                                          uint32_t entries);

/**
 * Destroy all free long mkeys. Lock held. No work request may be pending: the queue pair is in ERR,
 * destroyed, or polled completely.
 */
void mca_btl_umr_long_destroy_idle(mca_btl_umr_hca_t *hca);

/** A work request has completed: destroy the retired mkeys that waited for it. Lock held. */
void mca_btl_umr_long_destroy_retired(mca_btl_umr_hca_t *hca);

/**
 * Memory for a list of @p count entries. The caller fills it by mca_btl_umr_long_set and maps it by
 * mca_btl_umr_long_build_map before the next call.
 *
 * @return NULL: none available now; retry after a mapping has completed
 */
struct mlx5_wqe_data_seg *mca_btl_umr_long_list(mca_btl_umr_hca_t *hca, uint32_t count);

static inline void mca_btl_umr_long_set(struct mlx5_wqe_data_seg *entry, uint64_t addr,
                                        uint32_t length, uint32_t lkey)
{
    mlx5dv_set_data_seg(entry, length, lkey, addr);
}

/** As mca_btl_umr_mkey_build_map. @p bytes is the sum of the entries' lengths. */
uint32_t mca_btl_umr_long_build_map(mca_btl_umr_mkey_t *mkey, mca_btl_umr_role_t role,
                                    uint32_t count, uint64_t bytes, struct mlx5_wqe_data_seg *list);

/* ---------------------------------------------------------------------------------------------
 * Memory (btl_umr_memory.c)
 * ------------------------------------------------------------------------------------------- */

/** A registration as the users of the framework send it to their peers, byte for byte. */
struct mca_btl_base_registration_handle_t {
    uint32_t rkey;
    uint32_t lkey; /**< for its owner */
};

struct mca_btl_umr_reg_t;

/**
 * System memory that the device has registered. The registration cache holds one reference as long
 * as it has the registration, and each keyset in the key cache holds one. So operations through
 * cached keys never lose their memory, and the registration cache can still drop the registration.
 */
typedef struct mca_btl_umr_mr_t {
    opal_object_t super;
    mca_btl_umr_hca_t *hca;
    struct ibv_mr *mr;
    size_t size;
    const struct mca_btl_umr_reg_t *reg; /**< NULL: the cache has dropped it */
} mca_btl_umr_mr_t;
OBJ_CLASS_DECLARATION(mca_btl_umr_mr_t);

/** A registration, in the registration cache. */
typedef struct mca_btl_umr_reg_t {
    mca_rcache_base_registration_t super;
    mca_btl_umr_mr_t *held; /**< owner of mr; NULL: GPU memory */
    struct ibv_mr *mr;
    uint64_t id;         /**< unique id of this registration */
    bool mapped;         /**< some keyset over it is or was in the key cache */
    bool gpu;            /**< in the cache of btl_umr_gpu.c, not in rcache */
    bool left;           /**< dropped by the cache, which gets a call after the last use */
    uint32_t loose_uses; /**< uses unknown to the cache (btl_umr_loose.c) */
    struct mca_btl_base_registration_handle_t handle;
} mca_btl_umr_reg_t;

/**
 * True as long as the cache would find this registration for its range. The memory hooks invalidate
 * it inside the call that unmaps the memory, in any thread, before the memory is gone.
 */
static inline bool mca_btl_umr_mr_is_valid(const mca_btl_umr_mr_t *mr)
{
    return NULL != mr->reg && 0 == (mr->reg->super.flags & MCA_RCACHE_FLAGS_INVALID);
}

/** Part of a buffer that one registration covers. */
typedef struct mca_btl_umr_part_t {
    uintptr_t start;
    uintptr_t end;
    mca_btl_umr_reg_t *reg;
} mca_btl_umr_part_t;

struct mca_btl_umr_memory_t {
    opal_list_item_t super;
    mca_btl_umr_hca_t *hca; /**< HCA of the registration */
    mca_btl_umr_role_t role;
    void *buffer;
    uint64_t layout_id;
    uint64_t size; /**< covered bytes of the stream */
    size_t count;  /**< parts, by ascending address */
    size_t capacity;
    mca_btl_umr_part_t *parts;
    bool gpu;   /**< GPU memory; one part */
    bool loose; /**< its owner may free it at any time: the cache does not count its uses */
    opal_umrddt_gpu_memory_t where;
};
OBJ_CLASS_DECLARATION(mca_btl_umr_memory_t);

/**
 * Cached extent of the first bytes of a layout: a single part, from lb to ub. Saves the next
 * message the walk over the pieces.
 */
typedef struct mca_btl_umr_span_t {
    uint64_t layout_id; /**< 0: empty */
    uint64_t size;
    int64_t lb, ub;
} mca_btl_umr_span_t;

#define MCA_BTL_UMR_SPANS 64

/** An empty object, or NULL if out of memory. Lock held. */
mca_btl_umr_memory_t *mca_btl_umr_memory_take(mca_btl_umr_hca_t *hca, mca_btl_umr_role_t role,
                                              void *buffer, const opal_iov_cache_layout_t *layout,
                                              uint64_t size);

/** Append a part. @return false: out of memory */
bool mca_btl_umr_memory_add(mca_btl_umr_memory_t *memory, uintptr_t start, uintptr_t end);

/** Release it with its registrations. Lock held. */
void mca_btl_umr_memory_recycle(mca_btl_umr_memory_t *memory);

int mca_btl_umr_memory_start(mca_btl_umr_hca_t *hca);
void mca_btl_umr_memory_stop(mca_btl_umr_hca_t *hca);

int mca_btl_umr_memory_register(mca_btl_umr_role_t role, void *buffer,
                                const opal_iov_cache_layout_t *layout, uint64_t size,
                                mca_btl_umr_memory_t **memory);
int mca_btl_umr_memory_register_at(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_role_t role,
                                   void *buffer, const opal_iov_cache_layout_t *layout,
                                   uint64_t size, mca_btl_umr_memory_t **memory);
void mca_btl_umr_memory_release(mca_btl_umr_memory_t *memory);

/* btl_umr_loose.c */
void mca_btl_umr_memory_let_go(mca_btl_umr_memory_t *memory);

/** End of a use that the cache does not count. Lock held. */
void mca_btl_umr_loose_put(mca_btl_umr_hca_t *hca, mca_btl_umr_reg_t *reg);

/**
 * Register contiguous memory, from the same cache and with the same limit.
 *
 * @param[in]  access  MCA_RCACHE_ACCESS_*: read-only memory is accepted if no write access is
 *                     requested
 * @param[out] reg     release with mca_btl_umr_memory_unpin
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_OUT_OF_RESOURCE  the limit, or the system's, is reached (a message, once)
 * @retval OPAL_ERR_BAD_PARAM        part of it cannot be registered with this access
 */
int mca_btl_umr_memory_pin(void *base, size_t size, int32_t access, mca_btl_umr_reg_t **reg);

/** Release. The registration may stay in the cache. */
void mca_btl_umr_memory_unpin(mca_btl_umr_reg_t *reg);

/** The registration that covers an address of the layout. Lock held. */
const struct ibv_mr *mca_btl_umr_memory_find(const mca_btl_umr_memory_t *memory, uintptr_t address);

/* ---------------------------------------------------------------------------------------------
 * Keysets (btl_umr_keyset.c)
 * ------------------------------------------------------------------------------------------- */

/** Private data of one key. */
typedef struct mca_btl_umr_mapping_t {
    mca_btl_umr_mkey_t *mkey; /**< NULL: a plain key */
    opal_iov_cache_window_t window;
    uint32_t block;       /**< block length in bytes of a strided mapping */
    uint32_t stride;      /**< bytes from block to block; 0: a list */
    uint32_t inner_count; /**< windows below it, each with its own key; 0: none */
    size_t inner_first;   /**< index in keyset.inners */
} mca_btl_umr_mapping_t;

/**
 * Enable strided mappings as far as possible before the self-test; otherwise caps have the reason.
 */
void mca_btl_umr_strided_start(mca_btl_umr_hca_t *hca);
void mca_btl_umr_nested_start(mca_btl_umr_hca_t *hca);

/** Compute the capacity of one key for any layout. After the self-test. */
void mca_btl_umr_limits_start(mca_btl_umr_hca_t *hca);

/** Maximum of keys below an indirect key; also at most half of the keys of its role. */
#define MCA_BTL_UMR_NEST_MAX 64

/**
 * Requirements of its self-test: entries of an mkey, and mkeys created at start-up (the self-test
 * must not create more, since that could leave too few for other uses).
 */
#define MCA_BTL_UMR_NEST_LEAST 4
#define MCA_BTL_UMR_NEST_MKEYS 8

/** key_limits of the table. */
void mca_btl_umr_key_limits(const opal_iov_cache_layout_t *layout, opal_iov_cache_limits_t *limits);

/** Key of the key cache: messages with the same name can use the same keyset. */
typedef struct mca_btl_umr_keyset_name_t {
    mca_btl_umr_role_t role;
    void *buffer;
    uint64_t layout_id;
    uint64_t chunk;
    uint64_t start, end;
    size_t max_keys;
} mca_btl_umr_keyset_name_t;

/** A registration below the mkeys of a cached keyset. */
typedef struct mca_btl_umr_base_t {
    uint64_t id;
    mca_btl_umr_mr_t *mr; /**< a reference; NULL: GPU memory */
} mca_btl_umr_base_t;

/** A keyset with its private data. */
typedef struct mca_btl_umr_keyset_object_t {
    mca_btl_umr_keyset_t pub;
    mca_btl_umr_hca_t *hca; /**< HCA of the keys */
    mca_btl_umr_keyset_name_t name;
    opal_iov_cache_layout_t *layout; /**< retained until all is posted */
    mca_btl_umr_memory_t *memory;
    size_t capacity;
    mca_btl_umr_mapping_t *mappings;
    mca_btl_umr_mapping_t *inners; /**< windows below those of mappings */
    size_t inner_count, inner_capacity;
    bool unnested;     /**< too few keys for an indirect key */
    size_t next_post;  /**< first key whose mapping is not posted yet */
    size_t next_inner; /**< below that key, the first window not posted yet */
    uint32_t last_seq; /**< number of the last mapping posted */
    bool abandoned;    /**< released before it was ready */
    int status;
    mca_btl_umr_done_fn_t done;
    void *context;
    struct mca_btl_umr_keyset_object_t *next; /**< in the one queue that it is in */

    size_t mapped; /**< number of its mkeys */
    bool cached;   /**< in the key cache (btl_umr_keycache.c) */
    bool used;     /**< in the key cache and in use */
    struct mca_btl_umr_keyset_object_t *same_bucket;
    size_t base_count, base_capacity;
    mca_btl_umr_base_t *bases; /**< in the key cache: registrations below it */
    uint64_t misses;           /**< registrations created before its last request with memory */
} mca_btl_umr_keyset_object_t;
OBJ_CLASS_DECLARATION(mca_btl_umr_keyset_object_t);

/**
 * Build the next window of a keyset and take its mkeys: the longest window for which mkeys are
 * available. A plain key needs none. Lock held.
 *
 * @param[in]  keyset   its name is set
 * @param[in]  start    begin of the window
 * @param[out] mapping  for mappings; windows below it are added to keyset.inners
 *
 * @return OPAL_SUCCESS, or the errors of mca_btl_umr_keyset_map
 */
int mca_btl_umr_tiers_lower(mca_btl_umr_keyset_object_t *keyset,
                            const opal_iov_cache_layout_t *layout,
                            const mca_btl_umr_memory_t *memory, uint64_t start,
                            mca_btl_umr_mapping_t *mapping);

typedef struct mca_btl_umr_keyset_queue_t {
    mca_btl_umr_keyset_object_t *head, *tail;
} mca_btl_umr_keyset_queue_t;

int mca_btl_umr_keyset_map(mca_btl_umr_role_t role, void *buffer,
                           const opal_iov_cache_layout_t *layout, mca_btl_umr_memory_t *memory,
                           uint64_t chunk, uint64_t start, uint64_t end, size_t max_keys,
                           mca_btl_umr_done_fn_t done, void *context,
                           mca_btl_umr_keyset_t **keyset);
mca_btl_umr_keyset_t *mca_btl_umr_keyset_lookup(mca_btl_umr_endpoint_t *endpoint,
                                                mca_btl_umr_role_t role, void *buffer,
                                                const opal_iov_cache_layout_t *layout,
                                                uint64_t chunk, uint64_t start, uint64_t end,
                                                size_t max_keys);
void mca_btl_umr_keyset_release(mca_btl_umr_keyset_t *keyset);

/** Post waiting mappings and invalidations, as far as there is room. Lock held. */
void mca_btl_umr_keysets_post(mca_btl_umr_hca_t *hca);

/** Poll the completions of mappings. @return number of events. Lock held. */
int mca_btl_umr_keysets_poll(mca_btl_umr_hca_t *hca);

/**
 * A message needs keys on an HCA whose queue pair for mappings may have failed: rebuild it if due.
 * Lock held.
 *
 * @return false: no key now
 */
bool mca_btl_umr_keysets_recover(mca_btl_umr_hca_t *hca);

/**
 * Take the next keyset whose user must be notified. If its status is good it becomes ready here.
 * Lock held.
 *
 * @return false: none
 */
bool mca_btl_umr_keysets_next_done(mca_btl_umr_hca_t *hca, mca_btl_umr_done_fn_t *done,
                                   void **context, int *status);

/** Free every keyset, used or not. Lock held. */
void mca_btl_umr_keysets_stop(mca_btl_umr_hca_t *hca);

/** See the table's keyset_keep. */
void mca_btl_umr_keyset_keep(mca_btl_umr_keyset_t *keyset);

/** Release its mkeys and keep the empty structure for reuse. Lock held. */
void mca_btl_umr_keyset_recycle(mca_btl_umr_keyset_object_t *keyset);

/*
 * --------------------------------------------------------------------------------------------- Key
 * cache (btl_umr_keycache.c). All with the lock held
 * -------------------------------------------------------------------------------------------
 */

#define MCA_BTL_UMR_KEYCACHE_BITS    10
#define MCA_BTL_UMR_KEYCACHE_BUCKETS (1 << MCA_BTL_UMR_KEYCACHE_BITS)

typedef struct mca_btl_umr_keycache_t {
    mca_btl_umr_keyset_object_t *buckets[MCA_BTL_UMR_KEYCACHE_BUCKETS];
    opal_list_t cached; /**< all entries, most recently released first */
    size_t unused;      /**< entries that are not in use */
} mca_btl_umr_keycache_t;

/**
 * Find a cached keyset of that name over the registrations of the memory. The caller may use it
 * until it is put back or recycled.
 *
 * @return NULL: no matching entry is free
 */
mca_btl_umr_keyset_object_t *mca_btl_umr_keycache_take(const mca_btl_umr_keyset_name_t *name,
                                                       mca_btl_umr_memory_t *memory);

/**
 * As mca_btl_umr_keycache_take, without a registered memory: finds only a keyset over system memory
 * whose registrations are all still in the registration cache.
 */
mca_btl_umr_keyset_object_t *mca_btl_umr_keycache_lookup(mca_btl_umr_hca_t *hca,
                                                         const mca_btl_umr_keyset_name_t *name);

/**
 * Cache a keyset that is ready and complete. @return false: not possible; the caller still owns it
 */
bool mca_btl_umr_keycache_put(mca_btl_umr_keyset_object_t *keyset);

/**
 * Evict the least recently used keyset of the role (ROLE_MAX: of all) that is not in use.
 *
 * @param[in] entries  only one that holds an mkey as mca_btl_umr_mkey_take gives for so many
 *                     (ignored for ROLE_MAX)
 *
 * @return false: none
 */
bool mca_btl_umr_keycache_evict(mca_btl_umr_hca_t *hca, mca_btl_umr_role_t role, uint32_t entries);

/** Remove a recycled keyset from the table; it is in hca.keysets again. */
void mca_btl_umr_keycache_remove(mca_btl_umr_keyset_object_t *keyset);

/** Release the registrations below it, after its mkeys. */
void mca_btl_umr_keycache_leave(mca_btl_umr_keyset_object_t *keyset);

/** A registration is destroyed: evict the unused keysets over it. */
void mca_btl_umr_keycache_forget_reg(mca_btl_umr_hca_t *hca, const mca_btl_umr_reg_t *reg);

/** Evict all unused keysets. */
void mca_btl_umr_keycache_empty(mca_btl_umr_hca_t *hca);

/* ---------------------------------------------------------------------------------------------
 * Endpoints, their receives and puts (btl_umr_endpoint.c, btl_umr_receive.c, btl_umr_put.c,
 * btl_umr_direct.c)
 * ------------------------------------------------------------------------------------------- */

/** A completion queue that several endpoints share. */
typedef struct mca_btl_umr_cq_t {
    opal_list_item_t super;
    struct ibv_cq *cq;
    uint32_t size; /**< capacity in completions */
    uint32_t room; /**< completions not assigned to an endpoint */
} mca_btl_umr_cq_t;
OBJ_CLASS_DECLARATION(mca_btl_umr_cq_t);

/**
 * A pair of a local and a remote HCA that reach each other. Both processes compute the same pairs
 * in the same order from the modex data. No HCA is in two pairs, so a peer never needs more queue
 * pairs than there are HCAs.
 */
typedef struct mca_btl_umr_lane_t {
    mca_btl_umr_hca_t *hca;
    uint8_t peer_index; /**< index of the remote HCA in the peer's list */
    mca_btl_umr_route_t route;
    /** The endpoint of the highest generation. Created when first needed; read without the lock. */
    mca_btl_umr_endpoint_t *endpoint;
    mca_btl_umr_rebuild_t rebuild;
    uint32_t wanted; /**< generation announced by the peer; 0: none */
} mca_btl_umr_lane_t;

/** Another process. Created at its first use, and kept. */
typedef struct mca_btl_umr_peer_t {
    opal_object_t super;
    opal_process_name_t name;
    bool has_choice;     /**< the lanes differ in their distance to system memory */
    uint32_t lane_count; /**< 0: no remote HCA is reachable */
    mca_btl_umr_lane_t *lanes;
} mca_btl_umr_peer_t;
OBJ_CLASS_DECLARATION(mca_btl_umr_peer_t);

struct mca_btl_umr_endpoint_t {
    opal_list_item_t super;
    mca_btl_umr_hca_t *hca; /**< local HCA */
    mca_btl_umr_peer_t *peer;
    mca_btl_umr_lane_t *lane;
    uint32_t index;      /**< index in hca.endpoints */
    uint32_t generation; /**< 0: the first of the lane; see btl_umr_rebuild.c */
    bool connected;
    bool broken;                   /**< written with the lock held, also read without it */
    mca_btl_umr_address_t address; /**< local address */
    mca_btl_umr_address_t theirs;  /**< remote address, once connected */
    mca_btl_umr_sq_t sq;
    uint32_t fins_expected;      /**< FINs with a reserved receive */
    uint32_t fins_max;           /**< maximum of those */
    uint32_t fins_came;          /**< FINs received in total */
    uint32_t receives;           /**< own receives posted now */
    bool draining;               /**< broken, and may have taken shared receives not polled yet */
    bool last_receive;           /**< the device reported that it takes no more shared receives */
    double drain_end;            /**< time at which waiting for that report ends */
    struct mca_btl_umr_cq_t *cq; /**< of its send queue */
    uint32_t cq_need;            /**< completions of that reserved for it */
    uint64_t bytes;              /**< bytes of memory counted for it */
    opal_list_t puts; /**< in the order of the calls; the first ones posted, the last ones not */
};
OBJ_CLASS_DECLARATION(mca_btl_umr_endpoint_t);

struct mca_btl_umr_walk_t;

/** The receives that all endpoints share; see btl_umr_receive.c. */
typedef struct mca_btl_umr_receives_t {
    bool started;         /**< receives_start has run */
    bool refused;         /**< the first failure to post one was logged */
    bool failed;          /**< the queue is in error */
    struct ibv_srq *srq;  /**< NULL: each endpoint has its own receives */
    struct ibv_cq *cq;    /**< completion queue of the receives */
    uint32_t depth;       /**< number of receives */
    uint32_t missing;     /**< receives not posted now */
    uint32_t batch;       /**< receives posted at a time */
    uint32_t expected;    /**< FINs expected on all endpoints */
    uint32_t idle;        /**< passes of progress without an event */
    opal_list_t draining; /**< broken endpoints that may have taken receives */
} mca_btl_umr_receives_t;

/** A put in progress. */
typedef struct mca_btl_umr_put_t {
    opal_list_item_t super;
    bool direct;                     /**< direct put: walk instead of keyset and indices */
    struct mca_btl_umr_walk_t *walk; /**< created by the first put that needs it, and reused */
    const mca_btl_umr_keyset_t *keyset;
    mca_btl_umr_key_t *remote;            /**< a copy; the regions of a direct put */
    size_t capacity;                      /**< of remote */
    size_t local_index, remote_index;     /**< keys of the next write */
    uint64_t local_offset, remote_offset; /**< offsets in them */
    uint64_t left;                        /**< bytes not posted yet */
    bool started;                         /**< at least one write was posted */
    uint32_t last_seq;                    /**< number of the last write posted */
    bool has_fin;
    uint32_t fin;
    int status;
    mca_btl_umr_done_fn_t done;
    void *context;
} mca_btl_umr_put_t;
OBJ_CLASS_DECLARATION(mca_btl_umr_put_t);

void mca_btl_umr_endpoints_start(mca_btl_umr_hca_t *hca);
void mca_btl_umr_endpoints_stop(mca_btl_umr_hca_t *hca);

/* Peers (btl_umr_peer.c). */

/** Publish the HCAs of this process (modex). OPAL_SUCCESS, or OPAL_ERROR with why_not set */
int mca_btl_umr_peers_publish(void);

void mca_btl_umr_peers_start(void);
void mca_btl_umr_peers_stop(void);

/**
 * The route from the first HCA to the first HCA of a process. False: it published no HCA, or none
 * that this HCA can reach.
 */
bool mca_btl_umr_route_look_up(const opal_process_name_t *name, mca_btl_umr_route_t *route);

/** The initial packet sequence number of a connection. */
uint32_t mca_btl_umr_first_psn(const struct ibv_qp *qp);

int mca_btl_umr_endpoint_get(struct opal_proc_t *proc, mca_btl_umr_endpoint_t **endpoint);
mca_btl_umr_endpoint_t *mca_btl_umr_endpoint_near(mca_btl_umr_endpoint_t *endpoint,
                                                  const void *address, int gpu);
mca_btl_umr_endpoint_t *mca_btl_umr_endpoint_at(mca_btl_umr_endpoint_t *endpoint,
                                                const mca_btl_umr_address_t *address);

size_t mca_btl_umr_endpoints_beside(mca_btl_umr_endpoint_t *endpoint,
                                    mca_btl_umr_endpoint_t **endpoints, size_t max);

/** Create the first queue pair of a lane. OPAL_SUCCESS or OPAL_ERR_OUT_OF_RESOURCE. Lock held. */
int mca_btl_umr_endpoint_make(mca_btl_umr_peer_t *peer, mca_btl_umr_lane_t *lane);

/** Create a queue pair for a lane, not yet installed in it. NULL: none available. Lock held. */
mca_btl_umr_endpoint_t *mca_btl_umr_endpoint_new(mca_btl_umr_peer_t *peer, mca_btl_umr_lane_t *lane,
                                                 uint32_t generation);

/**
 * Destroy the queue pair of a broken endpoint from which no more events can come. The endpoint
 * stays, since callers may hold a pointer to it. Lock held.
 */
void mca_btl_umr_endpoint_retire(mca_btl_umr_endpoint_t *endpoint);

/** A message needs a lane whose endpoint is broken: create another endpoint if due. Lock held. */
void mca_btl_umr_endpoint_revive(mca_btl_umr_peer_t *peer, mca_btl_umr_lane_t *lane);

/**
 * The peer has created its queue pair of this generation, which is higher than the local one. Lock
 * held.
 */
void mca_btl_umr_endpoint_follow(mca_btl_umr_peer_t *peer, mca_btl_umr_lane_t *lane,
                                 uint32_t generation);

/** Break every endpoint of a failed HCA while other HCAs go on. Lock held. */
void mca_btl_umr_endpoints_fail(mca_btl_umr_hca_t *hca);

/* The index of the HCA is in the unused upper byte of the queue pair number. */
#define MCA_BTL_UMR_ADDRESS_HCA(qpn) ((qpn) >> 24)
#define MCA_BTL_UMR_ADDRESS_QPN(qpn) ((qpn) &0xffffff)

/* The generation is in the unused upper byte of the packet sequence number. */
#define MCA_BTL_UMR_ADDRESS_GENERATION(psn) ((psn) >> 24)
#define MCA_BTL_UMR_GENERATION_MAX          255u

void mca_btl_umr_endpoint_address(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_address_t *address);
int mca_btl_umr_endpoint_connect(mca_btl_umr_endpoint_t *endpoint,
                                 const mca_btl_umr_address_t *address);
bool mca_btl_umr_endpoint_broken(const mca_btl_umr_endpoint_t *endpoint);
bool mca_btl_umr_endpoint_refuses(mca_btl_umr_endpoint_t *endpoint,
                                  const mca_btl_umr_address_t *theirs,
                                  mca_btl_umr_address_t *address);
void mca_btl_umr_endpoint_refused(mca_btl_umr_endpoint_t *endpoint,
                                  const mca_btl_umr_address_t *theirs);
void mca_btl_umr_endpoint_break(mca_btl_umr_endpoint_t *endpoint);
int mca_btl_umr_fin_reserve(mca_btl_umr_endpoint_t *endpoint);
void mca_btl_umr_fin_cancel(mca_btl_umr_endpoint_t *endpoint);

/** Break an endpoint: queue pair to ERR; complete the puts that can end. Lock held. */
void mca_btl_umr_endpoint_fail(mca_btl_umr_endpoint_t *endpoint);

/** True if it is broken and its queue pair can cause no more events. Lock held. */
bool mca_btl_umr_endpoint_drained(mca_btl_umr_endpoint_t *endpoint);

/** The endpoint with this queue pair number, or NULL. Lock held. */
mca_btl_umr_endpoint_t *mca_btl_umr_endpoint_of_qp(mca_btl_umr_hca_t *hca, uint32_t qpn);

/** Create the shared receives if configured and available; no effect the second time. Lock held. */
void mca_btl_umr_receives_start(mca_btl_umr_hca_t *hca);

/** Destroy the shared receives after their queue pairs. Lock held. */
void mca_btl_umr_receives_stop(mca_btl_umr_hca_t *hca);

/**
 * Release the expected FINs of an endpoint that is broken now, its queue pair in ERR. Lock held.
 */
void mca_btl_umr_receives_leave(mca_btl_umr_endpoint_t *endpoint);

/** A receive completed on this endpoint, with or without success. Lock held. */
void mca_btl_umr_receives_taken(mca_btl_umr_endpoint_t *endpoint);

/**
 * The receives' completion queue was polled empty after the last check for events, with the lock
 * held throughout. Lock held.
 */
void mca_btl_umr_receives_drained(mca_btl_umr_hca_t *hca);

/** Read the asynchronous events of the device; does not block. Lock held. */
void mca_btl_umr_receives_events(mca_btl_umr_hca_t *hca);

int mca_btl_umr_put(mca_btl_umr_endpoint_t *endpoint, const mca_btl_umr_keyset_t *keyset,
                    const mca_btl_umr_key_t *remote, size_t remote_count, const uint32_t *fin,
                    mca_btl_umr_done_fn_t done, void *context);

/** A put with a copy of the keys, or NULL if out of memory. Lock held. */
mca_btl_umr_put_t *mca_btl_umr_put_new(mca_btl_umr_hca_t *hca, const mca_btl_umr_key_t *remote,
                                       size_t remote_count);

/**
 * Append a put of so many bytes to the endpoint's list, and post as far as there is room. Lock
 * held.
 */
void mca_btl_umr_put_begin(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_put_t *put,
                           uint64_t length, const uint32_t *fin, mca_btl_umr_done_fn_t done,
                           void *context);

/* See btl_umr_direct.c. */
size_t mca_btl_umr_memory_regions(const mca_btl_umr_memory_t *memory, mca_btl_umr_key_t *regions,
                                  size_t max);
int mca_btl_umr_put_direct(mca_btl_umr_endpoint_t *endpoint, const mca_btl_umr_direct_t *direct,
                           const uint32_t *fin, mca_btl_umr_done_fn_t done, void *context);

/**
 * Build the next write of a direct put. The caller has checked that the queue has room. @return
 * bytes
 */
uint64_t mca_btl_umr_direct_build(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_put_t *put);

/** Post pending writes of an endpoint, as far as there is room. Lock held. */
void mca_btl_umr_puts_post(mca_btl_umr_endpoint_t *endpoint);

/** Move the finished puts to hca.puts_done. Lock held. */
void mca_btl_umr_puts_sweep(mca_btl_umr_endpoint_t *endpoint);

/** As mca_btl_umr_keysets_next_done, for puts. Lock held. */
bool mca_btl_umr_puts_next_done(mca_btl_umr_hca_t *hca, mca_btl_umr_done_fn_t *done, void **context,
                                int *status);

/* Work request ids: kind and index. */
#define MCA_BTL_UMR_WR_RECEIVE        (1ull << 63)
#define MCA_BTL_UMR_WR_ID(index, seq) (((uint64_t) (index) << 32) | (uint32_t) (seq))
#define MCA_BTL_UMR_WR_INDEX(wr_id)   ((uint32_t) (((wr_id) & ~MCA_BTL_UMR_WR_RECEIVE) >> 32))
#define MCA_BTL_UMR_WR_SEQ(wr_id)     ((uint32_t) (wr_id))

/* ---------------------------------------------------------------------------------------------
 * Progress (btl_umr_progress.c) and the whole HCA (btl_umr_hca.c)
 * ------------------------------------------------------------------------------------------- */

int mca_btl_umr_progress(void);

/** One port of one device, with all its objects. */
struct mca_btl_umr_hca_t {
    uint32_t index; /**< index in mca_btl_umr.hcas */
    bool used;      /**< included in mca_btl_umr.used */
    bool failed;    /**< the queue pair for mappings broke: no keys until it is rebuilt */
    mca_btl_umr_caps_t caps;
    mca_btl_umr_stats_t stats;
    mca_btl_umr_device_t device;
    mca_btl_umr_mkeys_t mkeys;
    mca_btl_umr_refill_t refill;
    mca_btl_umr_long_t longs;
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
    opal_list_t puts_done;
    opal_list_t puts_idle;
};

/** Maximum number of HCAs of one process. */
#define MCA_BTL_UMR_MAX_HCAS 8

/**
 * Cached location of a page: valid until a registration over it ends, or until another page needs
 * the entry.
 */
typedef struct mca_btl_umr_page_node_t {
    uintptr_t page; /**< 0: empty */
    int node;
} mca_btl_umr_page_node_t;

#define MCA_BTL_UMR_PAGE_NODES 64

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

END_C_DECLS

#endif /* MCA_BTL_UMR_H */
