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
 * What the files of btl/umr share. Nothing here is for other components: they use btl_umr_hca.h.
 *
 * A process has a list of HCAs (mca_btl_umr): an HCA is one port of one device, with all that
 * belongs to it: mkeys, registrations, endpoints, counters. Every object knows its HCA, and what an
 * HCA makes is of no use to another one. One lock protects everything below but the parameters;
 * functions that say "lock held" are called with it. No callback of a user is ever called with it.
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

/** The MCA parameters, as checked by mca_btl_umr_params_check. */
typedef struct mca_btl_umr_params_t {
    char *device;              /**< "", or a list of "mlx5_0" and "mlx5_0:1" */
    unsigned int max_hcas;     /**< that this process uses */
    int gid_index;             /**< -1: choose */
    unsigned int mkeys;        /**< made at start-up */
    unsigned int mkeys_step;   /**< made at a time later */
    unsigned int mkeys_low;    /**< per cent of mkeys that stay free; 0: no helper thread */
    unsigned int mkeys_max;    /**< both roles together */
    unsigned int max_entries;  /**< entries of an mkey; 0: what the device gives */
    unsigned int long_entries; /**< entries of an mkey whose list lies in memory; 0: none such */
    unsigned int long_mkeys;   /**< of those, both roles together */
    size_t list_bytes;         /**< memory for lists on their way to the device */
    size_t max_key_bytes;      /**< bytes one key covers */
    unsigned int sq_depth;     /**< writes in flight on one endpoint */
    unsigned int rq_depth;     /**< FINs that may be on their way on one endpoint */
    unsigned int srq_depth;    /**< on all of them; 0: no shared receives */
    size_t reg_cache_size;     /**< bound on registered bytes; 0: half of this process's share */
    unsigned int gpu_regs;     /**< registrations of GPU memory that are kept */
    unsigned int gpu_flush;    /**< MCA_BTL_UMR_GPU_FLUSH_* */
    size_t reg_gap;            /**< largest hole between pieces that is registered with them */
    unsigned int write_pieces; /**< pieces that one write without keys gathers */
    unsigned int timeout;      /**< IB ACK timeout exponent */
    unsigned int retry_count;  /**< transport retries */
    unsigned int mtu;          /**< bytes; 0: the port's */
    unsigned int key_cache;    /**< keysets kept mapped for later messages */
    bool strided;              /**< equal blocks at equal distances may be one entry */
    bool nested;               /**< one key may map other keys */
    bool plain_keys;           /**< peers may use the key of a registration */
    bool selftest;             /**< prove the HCA before using it */
    unsigned int rebuilds;     /**< times in a row that a queue pair is made anew; 0: never */
    int fork_support;          /**< mca_btl_umr_device_fork; -1: where the kernel needs it */
    bool rdma;                 /**< offer the framework a module */
    unsigned int rdma_peers;   /**< processes of the largest job with one */
    unsigned int rdma_depth;   /**< operations of the module under way to one peer */
    unsigned int check;        /**< passes of progress between two looks at invariants; 0: none */
} mca_btl_umr_params_t;

extern mca_btl_umr_params_t mca_btl_umr_params;

/** Bring out-of-range values into range, each with one message. */
void mca_btl_umr_params_check(void);

/* ---------------------------------------------------------------------------------------------
 * The device and its queue pairs (btl_umr_device.c, btl_umr_qp.c)
 * ------------------------------------------------------------------------------------------- */

/** One HCA, and the list of them; at the end of this file. */
typedef struct mca_btl_umr_hca_t mca_btl_umr_hca_t;

/** NUMA nodes that are told apart: those below. */
#define MCA_BTL_UMR_NODES 64

/** Farther than any distance that a system tells. */
#define MCA_BTL_UMR_FAR     255
#define MCA_BTL_UMR_GPU_FAR UINT32_MAX

typedef struct mca_btl_umr_device_t {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_device_attr attr;
    struct ibv_port_attr port_attr;
    bool mlx5; /**< else there is no UMR, and no DEVX */
    uint8_t port;
    uint8_t gid_index;
    union ibv_gid gid;
    uint32_t max_message; /**< bytes one write may have */
    uint32_t max_pieces;  /**< pieces one write may gather */
    uint32_t max_list;    /**< entries an mkey may have; 0: it does not tell */
    uint32_t max_depth;   /**< mkeys below each other that it follows; 0: it does not tell */
    int caps_error;       /**< why it does not tell, as errno */
    bool update_tag;      /**< a mapping can give an mkey another tag */
    int numa;             /**< node that it hangs on; -1: not known */
    uint8_t distance[MCA_BTL_UMR_NODES]; /**< from each node to it; MCA_BTL_UMR_FAR: not known */
    uint32_t gpu_distance[OPAL_UMRDDT_GPU_RDMA_DEVICES]; /**< mca_btl_umr_numa_gpu; 0: not asked */
    char name[64];                                       /**< "mlx5_0:1" */
} mca_btl_umr_device_t;

/** Pieces that one write to a peer may gather; at least 1. */
static inline uint32_t mca_btl_umr_write_pieces(const mca_btl_umr_device_t *device)
{
    return device->max_pieces < mca_btl_umr_params.write_pieces ? device->max_pieces
                                                                : mca_btl_umr_params.write_pieces;
}

/** A device that might be used. */
typedef struct mca_btl_umr_candidate_t {
    struct ibv_device *device;
    uint8_t port;     /**< 0: the first active one */
    uint8_t distance; /**< from this process; MCA_BTL_UMR_FAR: not known */
} mca_btl_umr_candidate_t;

/**
 * The ports of mlx5 devices in the order in which this process should try them: those of
 * btl_umr_device, or all, the nearest first, one for each process of the machine in turn.
 *
 * @param[out] list        ibv_free_device_list when done with the candidates; NULL: nothing to free
 * @param[out] candidates  free() it
 *
 * @return their number; 0 with why_not set
 */
int mca_btl_umr_device_candidates(struct ibv_device ***list, mca_btl_umr_candidate_t **candidates);

/* Where devices, processes and memory are (btl_umr_numa.c). Nodes are numbers of the kernel's; -1:
 * not known. */

/** What a device's distances are; reads files. */
void mca_btl_umr_numa_device(const struct ibv_device *ibv, mca_btl_umr_device_t *device);

/**
 * How far this process is from a device: 0 if all the CPUs that it may run on are local to it;
 * MCA_BTL_UMR_FAR if that is not known. Reads files.
 */
uint8_t mca_btl_umr_numa_process(const struct ibv_device *device);

/** The node of the page that an address is in. A system call, unless it is remembered. Lock held.
 */
int mca_btl_umr_numa_address(const void *address);

/**
 * How far a GPU, by its number in this process, is from a device: the less of the way from the root
 * of sysfs they share (a switch, a port of the root, a host bridge), the farther; of those that
 * share as much, the farther the farther their NUMA nodes are. MCA_BTL_UMR_GPU_FAR if that is not
 * known. Reads files once for each GPU and device. Lock held.
 */
uint32_t mca_btl_umr_numa_gpu(mca_btl_umr_device_t *device, int gpu);

/** What was found out about pages from base to bound (the last byte) may not be so any more. */
void mca_btl_umr_numa_forget(uintptr_t base, uintptr_t bound);

/**
 * Where the kernel does not do it itself, see to it that memory which an HCA may read and write
 * stays this process's when it forks (ibv_fork_init); to be called before anything is registered.
 * By btl_umr_fork_support; a message if it was not asked for, but is needed and cannot be had.
 *
 * @return OPAL_SUCCESS; OPAL_ERR_NOT_AVAILABLE with why_not set if the user asked for it and it
 *         cannot be had
 */
int mca_btl_umr_device_fork(void);

/** Open one. OPAL_SUCCESS, or OPAL_ERR_NOT_AVAILABLE with why_not set and nothing left open. */
int mca_btl_umr_device_open(const mca_btl_umr_candidate_t *candidate, mca_btl_umr_device_t *device);

void mca_btl_umr_device_close(mca_btl_umr_device_t *device);

/**
 * A send queue with its credits: libmlx5 does not survive an overflow, so nothing is posted that
 * has no room. Work requests are numbered from 1 on; a completion tells that all up to its number
 * are complete.
 */
typedef struct mca_btl_umr_sq_t {
    struct ibv_qp *qp;
    struct ibv_qp_ex *qpx;
    struct mlx5dv_qp_ex *mqpx;
    uint32_t depth;
    uint32_t posted;    /**< number of the last one posted */
    uint32_t done;      /**< number of the last one known to be complete */
    uint32_t signalled; /**< number of the last one that will give a completion */
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
 * Take the next number.
 *
 * Signalled are: what somebody waits for (@p wanted), one in half a queue so that credits come
 * back, and the one that fills the queue, so that the last one posted always gives a completion, at
 * the latest when it is flushed.
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

/** What a queue pair is for. */
typedef enum mca_btl_umr_qp_kind_t {
    MCA_BTL_UMR_QP_DATA, /**< writes; small slots */
    MCA_BTL_UMR_QP_UMR,  /**< mappings; a slot holds a whole list */
    MCA_BTL_UMR_QP_RDMA  /**< writes, reads and atomics of both sides; no receives */
} mca_btl_umr_qp_kind_t;

/** Where a queue pair's packets go. */
typedef struct mca_btl_umr_route_t {
    uint16_t lid;
    union ibv_gid gid;
    uint8_t mtu;       /**< enum ibv_mtu */
    uint8_t reads_in;  /**< reads and atomics of the peer that are answered at once; 0: 1 */
    uint8_t reads_out; /**< and those that may be under way to it; 0: 1 */
} mca_btl_umr_route_t;

/**
 * Make an RC queue pair and bring it to INIT.
 *
 * @param[in,out] inline_bytes  room for a list in a slot (UMR only): asked for, got
 *
 * @return 0, or what errno says
 */
int mca_btl_umr_qp_create(mca_btl_umr_hca_t *hca, mca_btl_umr_qp_kind_t kind, struct ibv_cq *cq,
                          uint32_t sq_depth, uint32_t rq_depth, uint32_t *inline_bytes,
                          mca_btl_umr_sq_t *sq);

/** To RTR and RTS. @return 0, or what errno says */
int mca_btl_umr_qp_connect(const mca_btl_umr_device_t *device, struct ibv_qp *qp,
                           const mca_btl_umr_route_t *route, uint32_t peer_qpn, uint32_t peer_psn,
                           uint32_t psn);

/** The way back to this port. */
void mca_btl_umr_qp_route_self(const mca_btl_umr_device_t *device, mca_btl_umr_route_t *route);

/** Post @p count receives without a buffer, with this wr_id. @return 0, or what errno says */
int mca_btl_umr_qp_post_receives(struct ibv_qp *qp, uint64_t wr_id, uint32_t count);

/** Destroy; complains once. NULL is allowed. */
void mca_btl_umr_qp_destroy(mca_btl_umr_hca_t *hca, mca_btl_umr_sq_t *sq);

/** The next power of two, which libmlx5 makes of the size of a queue. */
static inline uint64_t mca_btl_umr_round_up(uint64_t n)
{
    uint64_t power = 1;

    while (power < n) {
        power *= 2;
    }
    return power;
}

/** Memory that libmlx5 took for a queue pair, without its completions; bytes. */
uint64_t mca_btl_umr_qp_bytes(struct ibv_qp *qp);

/** And for a completion queue. */
uint64_t mca_btl_umr_cq_bytes(struct ibv_cq *cq);

/* ---------------------------------------------------------------------------------------------
 * Queue pairs that fail, and are made anew (btl_umr_rebuild.c). All with the lock held
 * ------------------------------------------------------------------------------------------- */

/**
 * When a queue pair that failed is to be made anew: after so many messages that would have used it,
 * twice as many each time that the new one fails before it has done anything to speak of, and not
 * any more after btl_umr_rebuilds times.
 */
typedef struct mca_btl_umr_rebuild_t {
    unsigned int tries;  /**< times in a row that it failed */
    unsigned int lacked; /**< messages since */
} mca_btl_umr_rebuild_t;

#define MCA_BTL_UMR_REBUILD_PATIENCE 4u

/** Work requests and FINs that make a new one as good as the first. */
#define MCA_BTL_UMR_REBUILD_PROVEN 256u

/**
 * It failed, or could not be made.
 *
 * @param[in] done  what it has done before: work requests and FINs
 *
 * @return true: that was once too often (and the user has not asked for none)
 */
bool mca_btl_umr_rebuild_failed(mca_btl_umr_rebuild_t *rebuild, uint32_t done);

/** A message lacks it. @return true: it may be made anew now; nothing is counted by this */
bool mca_btl_umr_rebuild_due(mca_btl_umr_rebuild_t *rebuild);

/* ---------------------------------------------------------------------------------------------
 * Mkeys (btl_umr_mkey.c) and the self-test (btl_umr_selftest.c)
 * ------------------------------------------------------------------------------------------- */

typedef struct mca_btl_umr_mkey_t {
    opal_list_item_t super;
    mca_btl_umr_hca_t *hca; /**< whose it is */
    struct mlx5dv_mkey *dv;
    struct mca_btl_umr_class_t *class;      /**< of what size it is; NULL: one of the pool */
    struct mca_btl_umr_mkey_t *made_before; /**< on its way from the helper thread */
    mca_btl_umr_role_t role;                /**< while it is taken */
    bool exposed;                           /**< mapped for a peer and not invalidated since */
    bool unknown; /**< its mapping failed: nobody knows what it maps, and it is not used again */
} mca_btl_umr_mkey_t;
OBJ_CLASS_DECLARATION(mca_btl_umr_mkey_t);

/**
 * How many of something may exist, where the device refused more before that was reached. It may
 * have had its reasons (memory, the keys of other jobs) for a while only, so it is asked again:
 * after MCA_BTL_UMR_PATIENCE messages that lacked one, and after twice as many each time that it
 * refuses.
 */
typedef struct mca_btl_umr_bound_t {
    size_t max;      /**< that may exist now */
    size_t most;     /**< that the parameters allow */
    unsigned lacked; /**< messages since it refused */
    unsigned
        patience; /**< so many, and it is asked again; 0: it has not refused, or gave more since */
} mca_btl_umr_bound_t;

#define MCA_BTL_UMR_PATIENCE 256u

/** So many are allowed, and nothing was refused. */
void mca_btl_umr_bound_start(mca_btl_umr_bound_t *bound, size_t most);

/** The device refused one more than @p count. */
void mca_btl_umr_bound_refused(mca_btl_umr_bound_t *bound, size_t count);

/** The device gave one: if that was more than it had refused, the refusal is forgotten. */
static inline void mca_btl_umr_bound_given(mca_btl_umr_bound_t *bound)
{
    if (bound->max == bound->most) {
        bound->patience = 0;
    }
}

/** A message lacks one. @return true: bound->max is what it was again, and one may be tried */
bool mca_btl_umr_bound_again(mca_btl_umr_bound_t *bound);

/** The mkeys and the queue pair that maps them. */
typedef struct mca_btl_umr_mkeys_t {
    struct ibv_cq *cq;
    mca_btl_umr_sq_t sq;
    uint32_t entries;      /**< of every mkey */
    uint32_t inline_bytes; /**< what entries need in a slot */
    bool raw;              /**< the queue pair takes work requests made by hand */
    opal_list_t taken;     /**< by some role */
    opal_list_t idle;      /**< free to take */
    opal_list_t invalid;   /**< given back, their invalidation not posted yet */
    size_t count;          /**< that exist */
    mca_btl_umr_bound_t bound;
    size_t used[MCA_BTL_UMR_ROLE_MAX];
    mca_btl_umr_rebuild_t rebuild; /**< of the queue pair */
} mca_btl_umr_mkeys_t;

/**
 * Queue pair, first mkeys. Lock held.
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_NOT_SUPPORTED  the device has no UMR, as why_not says
 * @retval OPAL_ERR_NOT_AVAILABLE  it has no memory for it; why_not is set
 */
int mca_btl_umr_mkeys_start(mca_btl_umr_hca_t *hca);

/** Destroy all of it. Lock held. */
void mca_btl_umr_mkeys_stop(mca_btl_umr_hca_t *hca);

/** A queue pair for mappings, connected to itself. 0 or errno. */
int mca_btl_umr_mkeys_qp_start(mca_btl_umr_hca_t *hca);

/** The same in the place of one that failed, with the same slots. 0 or errno. */
int mca_btl_umr_mkeys_qp_anew(mca_btl_umr_hca_t *hca);

/**
 * Take an mkey for a role, growing the pool where the role's half is not used up. Its tag changes
 * here.
 *
 * @param[in] entries  that it must have: up to mkeys.entries from the pool, more from the long ones
 *
 * @return NULL: none to be had now
 */
mca_btl_umr_mkey_t *mca_btl_umr_mkey_take(mca_btl_umr_hca_t *hca, mca_btl_umr_role_t role,
                                          uint32_t entries);

/**
 * Have the device make an mkey, for nobody yet, and count it.
 *
 * @return 0, or errno
 */
int mca_btl_umr_mkey_create(mca_btl_umr_hca_t *hca, uint32_t entries, mca_btl_umr_mkey_t **mkey);

/**
 * As mca_btl_umr_mkey_create, for the helper thread: looks at nothing that others change, and does
 * not count.
 *
 * @param[in] update_tag  mappings shall be able to give it another tag
 */
int mca_btl_umr_mkey_make(mca_btl_umr_hca_t *hca, uint32_t entries, bool update_tag,
                          mca_btl_umr_mkey_t **mkey);

/** The device refused another mkey of the pool (@p err is its errno): there are no more for now. */
void mca_btl_umr_mkeys_limit(mca_btl_umr_hca_t *hca, int err);

/** Have the device destroy it; complains once. */
void mca_btl_umr_mkey_destroy(mca_btl_umr_mkey_t *mkey);

/** It is free to take from now on. */
void mca_btl_umr_mkey_idle(mca_btl_umr_mkey_t *mkey);

/** Its next mapping has another tag, where the device can. */
void mca_btl_umr_mkey_retag(mca_btl_umr_mkey_t *mkey);

/**
 * Give it back. A REMOTE one waits for its invalidation to be posted (mca_btl_umr_keysets_post)
 * first. On an HCA that failed it is destroyed: no invalidation can be posted there; and so is one
 * whose mapping failed.
 */
void mca_btl_umr_mkey_give(mca_btl_umr_mkey_t *mkey);

/** Destroy all that nobody has taken. Lock held. */
void mca_btl_umr_mkeys_destroy_idle(mca_btl_umr_hca_t *hca);

/**
 * Build one mapping between ibv_wr_start and ibv_wr_complete; the caller has seen room in the
 * queue.
 */
uint32_t mca_btl_umr_mkey_build_map(mca_btl_umr_mkey_t *mkey, mca_btl_umr_role_t role,
                                    uint16_t count, struct ibv_sge *sges, bool wanted);

/**
 * As mca_btl_umr_mkey_build_map, of equal blocks at equal distances.
 *
 * @param[in] addr           of the first block
 * @param[in] block, stride  bytes of each, and from one to the next; MCA_BTL_UMR_STRIDE_MAX at most
 * @param[in] count          blocks
 */
uint32_t mca_btl_umr_mkey_build_strided(mca_btl_umr_mkey_t *mkey, mca_btl_umr_role_t role,
                                        uint64_t addr, uint32_t lkey, uint32_t block,
                                        uint32_t stride, uint32_t count, bool wanted);

/** Entries of an mkey that a strided mapping takes: what repeats, and how often. */
#define MCA_BTL_UMR_STRIDED_ENTRIES 2

/** The device has 16 bits for blocks and strides. */
#define MCA_BTL_UMR_STRIDE_MAX 65535

/** Build one invalidation: from its execution on the HCA refuses the mkey. As above. */
uint32_t mca_btl_umr_mkey_build_invalidate(mca_btl_umr_mkey_t *mkey, bool wanted);

/** The rights that a mapping gives, IBV_ACCESS_*. */
static inline unsigned int mca_btl_umr_mkey_rights(mca_btl_umr_role_t role)
{
    /* Gathering needs no right at all, so that read-only memory can be sent, and a peer that learns
     * a LOCAL key can do nothing with it. */
    return MCA_BTL_UMR_REMOTE == role ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE : 0;
}

/**
 * Gather and scatter some bytes through two mkeys of full length, look at every byte, then see that
 * an invalidated key is refused; then the same bytes through each tier above, and drop those that
 * fail. Each wait is ten seconds at most.
 *
 * @return OPAL_SUCCESS, or OPAL_ERR_NOT_AVAILABLE with why_not set
 */
int mca_btl_umr_selftest(mca_btl_umr_hca_t *hca);

/* ---------------------------------------------------------------------------------------------
 * The thread that makes mkeys in advance (btl_umr_refill.c). All with the lock held
 * ------------------------------------------------------------------------------------------- */

/** What the helper and the users of the HCA share. */
typedef struct mca_btl_umr_refill_shared_t {
    pthread_mutex_t lock; /**< for all but made and error */
    pthread_cond_t asked;
    pthread_cond_t quiet;     /**< it has stopped being busy */
    bool stop;                /**< it shall end */
    bool busy;                /**< it is making one */
    size_t todo;              /**< to be made after that one */
    uint32_t entries;         /**< of each */
    bool update_tag;          /**< of each */
    mca_btl_umr_mkey_t *made; /**< not fetched yet; the helper puts one in front, users take all */
    int error; /**< errno of the one that could not be made; it comes after all that were made */
} mca_btl_umr_refill_shared_t;

/** One helper an HCA. */
typedef struct mca_btl_umr_refill_t {
    size_t low;     /**< free mkeys of a role below which more are asked for; 0: never */
    size_t pending; /**< asked for and not fetched: count + pending never exceeds max */
    bool running;
    pthread_t thread;
    mca_btl_umr_refill_shared_t shared;
} mca_btl_umr_refill_t;

/** Of the HCA's memory. */
void mca_btl_umr_refill_construct(mca_btl_umr_hca_t *hca);
void mca_btl_umr_refill_destruct(mca_btl_umr_hca_t *hca);

/** The HCA is up: from now on mkeys are asked for. The thread starts when the first ones are. */
void mca_btl_umr_refill_start(mca_btl_umr_hca_t *hca);

/** Fetch what was made, and ask for more if less is free than wanted. */
void mca_btl_umr_refill(mca_btl_umr_hca_t *hca);

/**
 * What was asked for and is not begun is not wanted any more; wait for the one that is being made,
 * and fetch all. Nothing is pending afterwards.
 */
void mca_btl_umr_refill_halt(mca_btl_umr_hca_t *hca);

/** As mca_btl_umr_refill_halt, and the thread ends. */
void mca_btl_umr_refill_stop(mca_btl_umr_hca_t *hca);

/* ---------------------------------------------------------------------------------------------
 * Long lists (btl_umr_long.c)
 * ------------------------------------------------------------------------------------------- */

#define MCA_BTL_UMR_CLASSES 5

/** Long mkeys of one size. */
typedef struct mca_btl_umr_class_t {
    uint32_t entries;
    opal_list_t idle;
} mca_btl_umr_class_t;

/** A list on its way to the device. */
typedef struct mca_btl_umr_list_t {
    uint32_t seq; /**< number of the work request that reads it */
    size_t end;   /**< of its memory, in the ring */
} mca_btl_umr_list_t;

/** Mappings in flight; more wait in keysets_waiting. */
#define MCA_BTL_UMR_MKEYS_SQ_DEPTH 64

/** Entries that are made at once on the stack: at least as many as a work request has room for. */
#define MCA_BTL_UMR_ENTRIES_AT_ONCE 64

/** The long mkeys, and the memory in which the device finds their lists: a ring, since the queue
 * pair works in order. */
typedef struct mca_btl_umr_long_t {
    uint32_t entries; /**< of the longest list; 0: there are no long lists */
    mca_btl_umr_class_t classes[MCA_BTL_UMR_CLASSES]; /**< by ascending entries */
    size_t class_count;
    size_t count;              /**< long mkeys that exist */
    mca_btl_umr_bound_t bound; /**< one half a role */
    size_t used[MCA_BTL_UMR_ROLE_MAX];
    unsigned char *memory;
    struct ibv_mr *mr;
    size_t size, head; /**< of the ring; where the next list goes */
    size_t tail;       /**< where the oldest list begins */
    mca_btl_umr_list_t lists[MCA_BTL_UMR_MKEYS_SQ_DEPTH]; /**< oldest at lists[first] */
    size_t first, list_count;
} mca_btl_umr_long_t;

/** Of the HCA's memory; open and close of the component. */
void mca_btl_umr_long_construct(mca_btl_umr_hca_t *hca);
void mca_btl_umr_long_destruct(mca_btl_umr_hca_t *hca);

/** Find out what the device has and make the ring; without it caps say why. Lock held. */
void mca_btl_umr_long_start(mca_btl_umr_hca_t *hca);

/** No more long lists: what nobody has taken is destroyed, the ring given back. Lock held. */
void mca_btl_umr_long_stop(mca_btl_umr_hca_t *hca);

/** The queue pair is a new one: no list is on its way. */
void mca_btl_umr_long_reset(mca_btl_umr_hca_t *hca);

/** As mca_btl_umr_mkey_take, for more entries than the pool's have. */
mca_btl_umr_mkey_t *mca_btl_umr_long_take(mca_btl_umr_hca_t *hca, mca_btl_umr_role_t role,
                                          uint32_t entries);

/** Destroy all that nobody has taken. Lock held. */
void mca_btl_umr_long_destroy_idle(mca_btl_umr_hca_t *hca);

/**
 * Memory for a list of @p count entries, to be filled by mca_btl_umr_long_set and then mapped by
 * mca_btl_umr_long_build_map before another is asked for.
 *
 * @return NULL: none now, try again when a mapping has completed
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

/** A registration as the framework's users hand it to their peers; travels as it is. */
struct mca_btl_base_registration_handle_t {
    uint32_t rkey;
    uint32_t lkey; /**< for its owner */
};

struct mca_btl_umr_reg_t;

/**
 * System memory that the device has registered. The registration cache has one reference as long as
 * it has the registration, and each keyset that is kept over it one. So what is on its way through
 * kept keys never loses the memory below them, and yet the cache is free to drop it.
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
    mca_btl_umr_mr_t *held; /**< what owns mr; NULL: a GPU's */
    struct ibv_mr *mr;
    uint64_t id;         /**< of this registration; never given twice */
    bool mapped;         /**< some keyset over it was kept */
    bool gpu;            /**< not in that cache but in the one of btl_umr_gpu.c */
    bool left;           /**< the cache has dropped it and is told when its last use is over */
    uint32_t loose_uses; /**< uses that the cache does not know of (btl_umr_loose.c) */
    struct mca_btl_base_registration_handle_t handle;
} mca_btl_umr_reg_t;

/**
 * True as long as the cache would find this registration for its range: the memory hooks mark it in
 * the call that takes memory away, in whatever thread that is, before it is gone.
 */
static inline bool mca_btl_umr_mr_is_valid(const mca_btl_umr_mr_t *mr)
{
    return NULL != mr->reg && 0 == (mr->reg->super.flags & MCA_RCACHE_FLAGS_INVALID);
}

/** A part of a buffer that one registration covers. */
typedef struct mca_btl_umr_part_t {
    uintptr_t start;
    uintptr_t end;
    mca_btl_umr_reg_t *reg;
} mca_btl_umr_part_t;

struct mca_btl_umr_memory_t {
    opal_list_item_t super;
    mca_btl_umr_hca_t *hca; /**< that it is registered with */
    mca_btl_umr_role_t role;
    void *buffer;
    uint64_t layout_id;
    uint64_t size; /**< of the stream, covered */
    size_t count;  /**< parts, by ascending address */
    size_t capacity;
    mca_btl_umr_part_t *parts;
    bool gpu;   /**< it is a GPU's; then one part */
    bool loose; /**< its owner may free it at any time: the cache does not know that it is in use */
    opal_umrddt_gpu_memory_t where;
};
OBJ_CLASS_DECLARATION(mca_btl_umr_memory_t);

/**
 * What was found out about the first bytes of a layout: near enough to each other to be one part,
 * from lb to ub. Saves the next message the walk over the pieces.
 */
typedef struct mca_btl_umr_span_t {
    uint64_t layout_id; /**< 0: nothing here */
    uint64_t size;
    int64_t lb, ub;
} mca_btl_umr_span_t;

#define MCA_BTL_UMR_SPANS 64

/** An empty one, or NULL without memory. Lock held. */
mca_btl_umr_memory_t *mca_btl_umr_memory_take(mca_btl_umr_hca_t *hca, mca_btl_umr_role_t role,
                                              void *buffer, const opal_iov_cache_layout_t *layout,
                                              uint64_t size);

/** Append a part. @return false: no memory */
bool mca_btl_umr_memory_add(mca_btl_umr_memory_t *memory, uintptr_t start, uintptr_t end);

/** Give it back, with the registrations that it has. Lock held. */
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

/** A use of a registration that the cache does not know of is over. Lock held. */
void mca_btl_umr_loose_put(mca_btl_umr_hca_t *hca, mca_btl_umr_reg_t *reg);

/**
 * Register contiguous memory, from the same cache and under the same bound.
 *
 * @param[in]  access  MCA_RCACHE_ACCESS_*: memory that cannot be written will do where no writing
 *                     is asked for
 * @param[out] reg     give back with mca_btl_umr_memory_unpin
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_OUT_OF_RESOURCE  the bound, or the system's, is reached (a message, once)
 * @retval OPAL_ERR_BAD_PARAM        part of it cannot be registered so
 */
int mca_btl_umr_memory_pin(void *base, size_t size, int32_t access, mca_btl_umr_reg_t **reg);

/** Give back. The registration may stay in the cache. */
void mca_btl_umr_memory_unpin(mca_btl_umr_reg_t *reg);

/** The registration that covers an address of the layout. Lock held. */
const struct ibv_mr *mca_btl_umr_memory_find(const mca_btl_umr_memory_t *memory, uintptr_t address);

/* ---------------------------------------------------------------------------------------------
 * Keysets (btl_umr_keyset.c)
 * ------------------------------------------------------------------------------------------- */

/** What is known of one key beside what the user sees. */
typedef struct mca_btl_umr_mapping_t {
    mca_btl_umr_mkey_t *mkey; /**< NULL: a plain key */
    opal_iov_cache_window_t window;
    uint32_t block;       /**< bytes of a block of a strided one */
    uint32_t stride;      /**< from block to block; 0: it is a list */
    uint32_t inner_count; /**< windows that it maps through keys of their own; 0: none such */
    size_t inner_first;   /**< of keyset.inners */
} mca_btl_umr_mapping_t;

/** Whether they may be used, as far as that is known before the self-test; caps say why not. */
void mca_btl_umr_strided_start(mca_btl_umr_hca_t *hca);
void mca_btl_umr_nested_start(mca_btl_umr_hca_t *hca);

/** What one key holds, as far as any layout goes. After the self-test. */
void mca_btl_umr_limits_start(mca_btl_umr_hca_t *hca);

/** Keys that one key maps, at most; half of what its role may hold is a bound, too. */
#define MCA_BTL_UMR_NEST_MAX 64

/** What the self-test of it needs: entries of an mkey, and mkeys that were made at start-up (that
 * it made more for itself could leave too few for something else). */
#define MCA_BTL_UMR_NEST_LEAST 4
#define MCA_BTL_UMR_NEST_MKEYS 8

/** The table's key_limits. */
void mca_btl_umr_key_limits(const opal_iov_cache_layout_t *layout, opal_iov_cache_limits_t *limits);

/** What a keyset was asked for with: two messages with the same name can use the same keys. */
typedef struct mca_btl_umr_keyset_name_t {
    mca_btl_umr_role_t role;
    void *buffer;
    uint64_t layout_id;
    uint64_t chunk;
    uint64_t start, end;
    size_t max_keys;
} mca_btl_umr_keyset_name_t;

/** A registration that kept mkeys lie over. */
typedef struct mca_btl_umr_base_t {
    uint64_t id;
    mca_btl_umr_mr_t *mr; /**< a reference; NULL: of a GPU's memory */
} mca_btl_umr_base_t;

/** A keyset with what the user does not see. */
typedef struct mca_btl_umr_keyset_object_t {
    mca_btl_umr_keyset_t pub;
    mca_btl_umr_hca_t *hca; /**< whose keys these are */
    mca_btl_umr_keyset_name_t name;
    opal_iov_cache_layout_t *layout; /**< retained until all is posted */
    mca_btl_umr_memory_t *memory;
    size_t capacity;
    mca_btl_umr_mapping_t *mappings;
    mca_btl_umr_mapping_t *inners; /**< windows below those of mappings */
    size_t inner_count, inner_capacity;
    bool unnested;     /**< there were no keys for what it tried */
    size_t next_post;  /**< first key whose mapping is not posted yet */
    size_t next_inner; /**< of the windows below it, the first one not posted yet */
    uint32_t last_seq; /**< number of the last mapping posted */
    bool abandoned;    /**< released before it was ready */
    int status;
    mca_btl_umr_done_fn_t done;
    void *context;
    struct mca_btl_umr_keyset_object_t *next; /**< in the one queue it waits in */

    size_t mapped; /**< how many mkeys it has */
    bool kept;     /**< is in the cache: btl_umr_keycache.c */
    bool used;     /**< kept, and somebody has it */
    struct mca_btl_umr_keyset_object_t *same_bucket;
    size_t base_count, base_capacity;
    mca_btl_umr_base_t *bases; /**< kept: what it is mapped over */
    uint64_t misses;           /**< registrations made before it was last asked for with memory */
} mca_btl_umr_keyset_object_t;
OBJ_CLASS_DECLARATION(mca_btl_umr_keyset_object_t);

/**
 * The next window of a keyset and its mkeys: the longest window for which there are some. None for
 * a plain key. Lock held.
 *
 * @param[in]  keyset   its name is set
 * @param[in]  start    where the window begins
 * @param[out] mapping  for mappings; what is below it is in keyset.inners then
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
mca_btl_umr_keyset_t *mca_btl_umr_keyset_recall(mca_btl_umr_endpoint_t *endpoint,
                                                mca_btl_umr_role_t role, void *buffer,
                                                const opal_iov_cache_layout_t *layout,
                                                uint64_t chunk, uint64_t start, uint64_t end,
                                                size_t max_keys);
void mca_btl_umr_keyset_release(mca_btl_umr_keyset_t *keyset);

/** Post the mappings and invalidations that wait, as far as there is room. Lock held. */
void mca_btl_umr_keysets_post(mca_btl_umr_hca_t *hca);

/** Poll the mappings' completions. @return events seen. Lock held. */
int mca_btl_umr_keysets_poll(mca_btl_umr_hca_t *hca);

/**
 * A message would map keys on an HCA whose queue pair of mappings may have failed: make another one
 * if it is time. Lock held.
 *
 * @return false: no key now
 */
bool mca_btl_umr_keysets_recover(mca_btl_umr_hca_t *hca);

/**
 * Take the next keyset whose user is to be told; it is ready from now on if its status is good.
 * Lock held.
 *
 * @return false: there is none
 */
bool mca_btl_umr_keysets_next_done(mca_btl_umr_hca_t *hca, mca_btl_umr_done_fn_t *done,
                                   void **context, int *status);

/** Free every keyset, used or not. Lock held. */
void mca_btl_umr_keysets_stop(mca_btl_umr_hca_t *hca);

/** As the op. */
void mca_btl_umr_keyset_keep(mca_btl_umr_keyset_t *keyset);

/** Its mkeys go back, and it is kept for the next message as an empty shell. Lock held. */
void mca_btl_umr_keyset_recycle(mca_btl_umr_keyset_object_t *keyset);

/* ---------------------------------------------------------------------------------------------
 * Keysets kept mapped (btl_umr_keycache.c). All with the lock held
 * ------------------------------------------------------------------------------------------- */

#define MCA_BTL_UMR_KEYCACHE_BITS    10
#define MCA_BTL_UMR_KEYCACHE_BUCKETS (1 << MCA_BTL_UMR_KEYCACHE_BITS)

typedef struct mca_btl_umr_keycache_t {
    mca_btl_umr_keyset_object_t *buckets[MCA_BTL_UMR_KEYCACHE_BUCKETS];
    opal_list_t kept; /**< all of them, the one that was last given back first */
    size_t unused;    /**< of those, that nobody has */
} mca_btl_umr_keycache_t;

/**
 * A kept keyset of that name, over the registrations that the memory has; it is the caller's to use
 * until it is put back or recycled.
 *
 * @return NULL: there is none that is free and fits
 */
mca_btl_umr_keyset_object_t *mca_btl_umr_keycache_take(const mca_btl_umr_keyset_name_t *name,
                                                       mca_btl_umr_memory_t *memory);

/**
 * As mca_btl_umr_keycache_take, by those who have not registered the memory: only one over system
 * memory of which the registration cache still has all that it was mapped over.
 */
mca_btl_umr_keyset_object_t *mca_btl_umr_keycache_recall(mca_btl_umr_hca_t *hca,
                                                         const mca_btl_umr_keyset_name_t *name);

/** Keep a keyset that is ready and complete. @return false: not possible, and still the caller's */
bool mca_btl_umr_keycache_put(mca_btl_umr_keyset_object_t *keyset);

/**
 * Drop the least recently used one of the role (ROLE_MAX: of all) that nobody uses.
 *
 * @param[in] entries  only one that holds an mkey as mca_btl_umr_mkey_take gives for so many (not
 *                     looked at for ROLE_MAX)
 *
 * @return false: there is none
 */
bool mca_btl_umr_keycache_evict(mca_btl_umr_hca_t *hca, mca_btl_umr_role_t role, uint32_t entries);

/** A keyset that is recycled leaves the table, and is one of hca.keysets again. */
void mca_btl_umr_keycache_remove(mca_btl_umr_keyset_object_t *keyset);

/** And what it was mapped over is given back, once its mkeys are. */
void mca_btl_umr_keycache_leave(mca_btl_umr_keyset_object_t *keyset);

/** The registration dies: drop the keysets over it that nobody uses. */
void mca_btl_umr_keycache_forget_reg(mca_btl_umr_hca_t *hca, const mca_btl_umr_reg_t *reg);

/** Drop all that nobody uses. */
void mca_btl_umr_keycache_empty(mca_btl_umr_hca_t *hca);

/* ---------------------------------------------------------------------------------------------
 * Endpoints, their receives and puts (btl_umr_endpoint.c, btl_umr_receive.c, btl_umr_put.c,
 * btl_umr_direct.c)
 * ------------------------------------------------------------------------------------------- */

/** A completion queue that several endpoints share. */
typedef struct mca_btl_umr_cq_t {
    opal_list_item_t super;
    struct ibv_cq *cq;
    uint32_t size; /**< completions */
    uint32_t room; /**< of those, that no endpoint may fill yet */
} mca_btl_umr_cq_t;
OBJ_CLASS_DECLARATION(mca_btl_umr_cq_t);

/**
 * An HCA here and one there that reach each other. Both processes work out the same ones, in the
 * same order, from what they published; no HCA is in two of them, so that a peer never costs more
 * queue pairs than there are HCAs.
 */
typedef struct mca_btl_umr_lane_t {
    mca_btl_umr_hca_t *hca;
    uint8_t peer_index; /**< of the HCA there, in the peer's list */
    mca_btl_umr_route_t route;
    /** The last one, of the highest generation. Made when it is first needed; read without the
     * lock. */
    mca_btl_umr_endpoint_t *endpoint;
    mca_btl_umr_rebuild_t rebuild;
    uint32_t wanted; /**< the generation that the peer has told of; 0: none */
} mca_btl_umr_lane_t;

/** Another process; made when it is first asked for, and kept. */
typedef struct mca_btl_umr_peer_t {
    opal_object_t super;
    opal_process_name_t name;
    bool has_choice;     /**< the CPU's memory can be nearer to one lane than to another */
    uint32_t lane_count; /**< 0: no HCA there that an HCA here reaches */
    mca_btl_umr_lane_t *lanes;
} mca_btl_umr_peer_t;
OBJ_CLASS_DECLARATION(mca_btl_umr_peer_t);

struct mca_btl_umr_endpoint_t {
    opal_list_item_t super;
    mca_btl_umr_hca_t *hca; /**< on this side */
    mca_btl_umr_peer_t *peer;
    mca_btl_umr_lane_t *lane;
    uint32_t index;      /**< in hca.endpoints */
    uint32_t generation; /**< 0: the lane's first one; see btl_umr_rebuild.c */
    bool connected;
    bool broken;                   /**< written with the lock held, read without it, too */
    mca_btl_umr_address_t address; /**< ours */
    mca_btl_umr_address_t theirs;  /**< once connected */
    mca_btl_umr_sq_t sq;
    uint32_t fins_expected; /**< that a receive is kept for */
    uint32_t fins_max;      /**< that may be expected */
    uint32_t fins_came;     /**< in all */
    uint32_t receives;      /**< of its own, posted now */
    bool draining;          /**< broken, and may have taken shared receives that nobody polled */
    bool last_receive;      /**< the device says that it takes no shared receives any more */
    double drain_end;       /**< when it is not waited for any more to say so */
    struct mca_btl_umr_cq_t *cq; /**< of its send queue */
    uint32_t cq_need;            /**< completions of that which are kept for it */
    uint64_t bytes;              /**< of memory, as counted */
    opal_list_t puts; /**< in the order of the calls; the first ones posted, the last ones not */
};
OBJ_CLASS_DECLARATION(mca_btl_umr_endpoint_t);

struct mca_btl_umr_walk_t;

/** The receives that all endpoints share; see btl_umr_receive.c. */
typedef struct mca_btl_umr_receives_t {
    bool started;         /**< it is settled whether there are any */
    bool refused;         /**< the log has the first one that could not be posted */
    bool failed;          /**< the queue is in error */
    struct ibv_srq *srq;  /**< NULL: each endpoint has its own */
    struct ibv_cq *cq;    /**< of what arrives there */
    uint32_t depth;       /**< receives */
    uint32_t missing;     /**< of those, not posted now */
    uint32_t batch;       /**< so many are posted again at once */
    uint32_t expected;    /**< FINs expected on all endpoints */
    uint32_t idle;        /**< passes of progress in vain */
    opal_list_t draining; /**< broken endpoints that may have taken some */
} mca_btl_umr_receives_t;

/** A put on its way. */
typedef struct mca_btl_umr_put_t {
    opal_list_item_t super;
    bool direct;                     /**< without keys: walk instead of keyset and indices */
    struct mca_btl_umr_walk_t *walk; /**< made by the first put that needs it, and kept */
    const mca_btl_umr_keyset_t *keyset;
    mca_btl_umr_key_t *remote;            /**< a copy; of the regions of a direct one */
    size_t capacity;                      /**< of it */
    size_t local_index, remote_index;     /**< keys that the next write lies in */
    uint64_t local_offset, remote_offset; /**< and where in them */
    uint64_t left;                        /**< bytes not posted yet */
    bool started;                         /**< something was posted */
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

/** What this process tells the job about its HCAs. OPAL_SUCCESS, or OPAL_ERROR with why_not set */
int mca_btl_umr_peers_publish(void);

void mca_btl_umr_peers_start(void);
void mca_btl_umr_peers_stop(void);

/** The way from the first HCA to the first HCA of a process. False: it published no HCA, or one
 * that this one can not talk to. */
bool mca_btl_umr_route_look_up(const opal_process_name_t *name, mca_btl_umr_route_t *route);

/** The number of the first packet of a connection. */
uint32_t mca_btl_umr_first_psn(const struct ibv_qp *qp);

int mca_btl_umr_endpoint_get(struct opal_proc_t *proc, mca_btl_umr_endpoint_t **endpoint);
mca_btl_umr_endpoint_t *mca_btl_umr_endpoint_near(mca_btl_umr_endpoint_t *endpoint,
                                                  const void *address, int gpu);
mca_btl_umr_endpoint_t *mca_btl_umr_endpoint_at(mca_btl_umr_endpoint_t *endpoint,
                                                const mca_btl_umr_address_t *address);

size_t mca_btl_umr_endpoints_beside(mca_btl_umr_endpoint_t *endpoint,
                                    mca_btl_umr_endpoint_t **endpoints, size_t max);

/** Make the first queue pair of a lane. OPAL_SUCCESS or OPAL_ERR_OUT_OF_RESOURCE. Lock held. */
int mca_btl_umr_endpoint_make(mca_btl_umr_peer_t *peer, mca_btl_umr_lane_t *lane);

/** Make a queue pair for a lane, not yet the lane's. NULL: none to be had. Lock held. */
mca_btl_umr_endpoint_t *mca_btl_umr_endpoint_new(mca_btl_umr_peer_t *peer, mca_btl_umr_lane_t *lane,
                                                 uint32_t generation);

/** Destroy the queue pair of a broken endpoint, about which nothing is to be heard any more. The
 * endpoint stays, as others may know it. Lock held. */
void mca_btl_umr_endpoint_retire(mca_btl_umr_endpoint_t *endpoint);

/** A message would use the lane, whose endpoint is broken: make another one if it is time. Lock
 * held. */
void mca_btl_umr_endpoint_revive(mca_btl_umr_peer_t *peer, mca_btl_umr_lane_t *lane);

/** The peer has made its queue pair of this generation, which is higher than ours. Lock held. */
void mca_btl_umr_endpoint_follow(mca_btl_umr_peer_t *peer, mca_btl_umr_lane_t *lane,
                                 uint32_t generation);

/** Every endpoint of an HCA that failed breaks, where other HCAs go on. Lock held. */
void mca_btl_umr_endpoints_fail(mca_btl_umr_hca_t *hca);

/* An address names the HCA in what a queue pair's number leaves free. */
#define MCA_BTL_UMR_ADDRESS_HCA(qpn) ((qpn) >> 24)
#define MCA_BTL_UMR_ADDRESS_QPN(qpn) ((qpn) &0xffffff)

/* And the generation in what the number of the first packet leaves free. */
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

/** Nothing goes through it any more: queue pair to ERR, puts that can end do. Lock held. */
void mca_btl_umr_endpoint_fail(mca_btl_umr_endpoint_t *endpoint);

/** It is broken, and its queue pair has no part any more in anything that is to come. Lock held. */
bool mca_btl_umr_endpoint_drained(mca_btl_umr_endpoint_t *endpoint);

/** Whose queue pair has this number; NULL: no endpoint's. Lock held. */
mca_btl_umr_endpoint_t *mca_btl_umr_endpoint_of_qp(mca_btl_umr_hca_t *hca, uint32_t qpn);

/** Make the shared receives if they are wanted and to be had; nothing the second time. Lock held.
 */
void mca_btl_umr_receives_start(mca_btl_umr_hca_t *hca);

/** Destroy them; their queue pairs are gone already. Lock held. */
void mca_btl_umr_receives_stop(mca_btl_umr_hca_t *hca);

/** An endpoint that is broken now, its queue pair in ERR: what it expects is given back. Lock held.
 */
void mca_btl_umr_receives_leave(mca_btl_umr_endpoint_t *endpoint);

/** A receive completed on this endpoint, well or not. Lock held. */
void mca_btl_umr_receives_taken(mca_btl_umr_endpoint_t *endpoint);

/** The receives' completion queue was polled empty after the last look at events, and the lock not
 * given up in between. Lock held. */
void mca_btl_umr_receives_drained(mca_btl_umr_hca_t *hca);

/** Look at what the device tells of itself; does not wait. Lock held. */
void mca_btl_umr_receives_events(mca_btl_umr_hca_t *hca);

int mca_btl_umr_put(mca_btl_umr_endpoint_t *endpoint, const mca_btl_umr_keyset_t *keyset,
                    const mca_btl_umr_key_t *remote, size_t remote_count, const uint32_t *fin,
                    mca_btl_umr_done_fn_t done, void *context);

/** A put that holds a copy of the keys, or NULL without memory. Lock held. */
mca_btl_umr_put_t *mca_btl_umr_put_new(mca_btl_umr_hca_t *hca, const mca_btl_umr_key_t *remote,
                                       size_t remote_count);

/** Append a put of so many bytes to the endpoint's, and post what there is room for. Lock held. */
void mca_btl_umr_put_begin(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_put_t *put,
                           uint64_t length, const uint32_t *fin, mca_btl_umr_done_fn_t done,
                           void *context);

/* btl_umr_direct.c */
size_t mca_btl_umr_memory_regions(const mca_btl_umr_memory_t *memory, mca_btl_umr_key_t *regions,
                                  size_t max);
int mca_btl_umr_put_direct(mca_btl_umr_endpoint_t *endpoint, const mca_btl_umr_direct_t *direct,
                           const uint32_t *fin, mca_btl_umr_done_fn_t done, void *context);

/** Build the next write of a direct put. The caller has seen room in the queue. @return bytes */
uint64_t mca_btl_umr_direct_build(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_put_t *put);

/** Post what waits on an endpoint, as far as there is room. Lock held. */
void mca_btl_umr_puts_post(mca_btl_umr_endpoint_t *endpoint);

/** Move the puts that have come to their end to hca.puts_done. Lock held. */
void mca_btl_umr_puts_sweep(mca_btl_umr_endpoint_t *endpoint);

/** As mca_btl_umr_keysets_next_done, for puts. Lock held. */
bool mca_btl_umr_puts_next_done(mca_btl_umr_hca_t *hca, mca_btl_umr_done_fn_t *done, void **context,
                                int *status);

/* Numbers of work requests: who, and which. */
#define MCA_BTL_UMR_WR_RECEIVE        (1ull << 63)
#define MCA_BTL_UMR_WR_ID(index, seq) (((uint64_t) (index) << 32) | (uint32_t) (seq))
#define MCA_BTL_UMR_WR_INDEX(wr_id)   ((uint32_t) (((wr_id) & ~MCA_BTL_UMR_WR_RECEIVE) >> 32))
#define MCA_BTL_UMR_WR_SEQ(wr_id)     ((uint32_t) (wr_id))

/* ---------------------------------------------------------------------------------------------
 * Progress (btl_umr_progress.c) and the whole HCA (btl_umr_hca.c)
 * ------------------------------------------------------------------------------------------- */

int mca_btl_umr_progress(void);

/** One port of one device, and all that belongs to it. */
struct mca_btl_umr_hca_t {
    uint32_t index; /**< in mca_btl_umr.hcas */
    bool used;      /**< is in mca_btl_umr.used */
    bool failed;    /**< the queue pair of mappings broke: no key as long as there is no other */
    mca_btl_umr_caps_t caps;
    mca_btl_umr_stats_t stats;
    mca_btl_umr_device_t device;
    mca_btl_umr_mkeys_t mkeys;
    mca_btl_umr_refill_t refill;
    mca_btl_umr_long_t longs;
    opal_iov_cache_limits_t window; /**< what one mkey holds that maps memory only */
    uint32_t nest;                  /**< keys that one key maps; below 2: none does */

    mca_rcache_base_module_t *rcache;
    bool qp_refused; /**< the log has the first queue pair that was not to be had */
    mca_btl_umr_gpu_t gpu;
    bool rcache_cacheable; /**< freed memory is reported, so registrations may be kept */
    size_t reg_bound;      /**< bytes */
    bool reg_refused;      /**< the system refused a registration for want of memory */
    opal_list_t memories;  /**< in use */
    opal_list_t memories_idle;

    opal_list_t keysets; /**< in use */
    opal_list_t keysets_idle;
    mca_btl_umr_keycache_t keycache;
    mca_btl_umr_keyset_queue_t keysets_waiting; /**< some mapping not posted yet */
    mca_btl_umr_keyset_queue_t keysets_posted;  /**< all posted, the last one not complete */
    mca_btl_umr_keyset_queue_t keysets_done;    /**< the user is to be told */

    uint32_t writes_out; /**< posted to peers and not complete */
    uint32_t passes;     /**< of progress */
    mca_btl_umr_receives_t receives;
    opal_hash_table_t endpoints_by_qpn;
    opal_pointer_array_t endpoints;
    opal_list_t cqs;
    opal_list_t puts_done;
    opal_list_t puts_idle;
};

/** HCAs that one process uses, at most. */
#define MCA_BTL_UMR_MAX_HCAS 8

/** Where a page is; found out once for each registration, as long as the place is not needed for
 * another page. */
typedef struct mca_btl_umr_place_t {
    uintptr_t page; /**< 0: nothing here */
    int node;
} mca_btl_umr_place_t;

#define MCA_BTL_UMR_PLACES 64

/** What belongs to no HCA. */
typedef struct mca_btl_umr_t {
    opal_mutex_t lock;
    unsigned int users;  /**< successful inits without a fini */
    bool refused;        /**< init found nothing usable */
    char why[256];       /**< why there is no HCA */
    uint32_t hca_count;  /**< that are open */
    uint32_t used_count; /**< of those, used: progress looks at no other */
    mca_btl_umr_hca_t *used[MCA_BTL_UMR_MAX_HCAS];
    uint32_t shares; /**< into which the process's budgets are divided: HCAs as expected */
    /** The open ones first. Made when they are first needed, and kept for their counters; the first
     * one is always there. */
    mca_btl_umr_hca_t *hcas[MCA_BTL_UMR_MAX_HCAS];
    uint64_t keyset_ids; /**< the last one given, by any HCA */
    mca_btl_umr_span_t spans[MCA_BTL_UMR_SPANS];
    mca_btl_umr_place_t places[MCA_BTL_UMR_PLACES];
    opal_hash_table_t peers;   /**< by name */
    mca_btl_umr_caps_t common; /**< what all of several HCAs can */
    mca_btl_umr_stats_t sum;   /**< of all of several HCAs, as of the last call of stats */
    mca_btl_umr_fin_fn_t fin_handler;
    void *fin_context;
} mca_btl_umr_t;

extern mca_btl_umr_t mca_btl_umr;

/** The HCA of whoever knows of one only: the first one. */
static inline mca_btl_umr_hca_t *mca_btl_umr_first(void)
{
    return mca_btl_umr.hcas[0];
}

/** Something is asked of an HCA. Lock held. */
static inline void mca_btl_umr_hca_use(mca_btl_umr_hca_t *hca)
{
    if (!hca->used) {
        hca->used = true;
        mca_btl_umr.used[mca_btl_umr.used_count++] = hca;
    }
}

/** One HCA's part of a budget of the process, @p least at least where there is so much. */
static inline size_t mca_btl_umr_share(size_t budget, size_t least)
{
    size_t share = 1 < mca_btl_umr.shares ? budget / mca_btl_umr.shares : budget;

    return share >= least ? share : budget < least ? budget : least;
}

/** The HCA is not usable, and why; kept for why_not, shown by init. */
void mca_btl_umr_refuse(const char *format, ...) __opal_attribute_format__(__printf__, 1, 2);

/** What belongs to no HCA, and the first HCA; open and close of the component. */
void mca_btl_umr_construct(void);
void mca_btl_umr_destruct(void);

/** An HCA's memory. */
void mca_btl_umr_hca_construct(mca_btl_umr_hca_t *hca, uint32_t index);
void mca_btl_umr_hca_destruct(mca_btl_umr_hca_t *hca);

/**
 * Open this device as far as it can be used. Lock held.
 *
 * @return OPAL_SUCCESS, or OPAL_ERR_NOT_AVAILABLE with why_not set and nothing left open
 */
int mca_btl_umr_hca_start(mca_btl_umr_hca_t *hca, const mca_btl_umr_candidate_t *candidate);

/** Close it, whatever is still in use. Lock held. */
void mca_btl_umr_hca_stop(mca_btl_umr_hca_t *hca);

/** Objects that are kept for the next message instead of being freed, at most. */
#define MCA_BTL_UMR_IDLE_MAX 256

/** And only if what they hold is for at most so many keys or parts. */
#define MCA_BTL_UMR_IDLE_KEYS 4096

/** Log line of an HCA: names the device. */
#define MCA_BTL_UMR_LOG(hca, format, ...) \
    opal_output(0, "btl:umr: %s: " format, (hca)->device.name, __VA_ARGS__)

END_C_DECLS

#endif /* MCA_BTL_UMR_H */
