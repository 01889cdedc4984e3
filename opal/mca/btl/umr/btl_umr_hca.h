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
 * The HCA, as other components see it.
 *
 * btl/umr is a btl that Open MPI lists, and the owner of the process's mlx5 HCA. A component that
 * wants to move bytes between layouts finds the component structure of btl/umr in the btl
 * framework, checks mca_btl_umr_component_t::api, and calls the functions in its table. The
 * nouns:
 *
 *  - *memory*: the registrations (MRs) that cover what a layout touches in one buffer;
 *  - *keyset*: keys for a range of a layout's stream in one buffer, one key a window (see
 * iov_cache.h). A window of several IOVs is a UMR mkey, zero-based: its bytes are addressed 0 ..
 * length - 1 in stream order. A window of one IOV is the MR's own key and the buffer's address;
 *  - *HCA*: one port of one device. A process may have several; each registers memory, maps keys
 * and has endpoints of its own, and what one made is of no use to another;
 *  - *endpoint*: one RC queue pair to one process, from an HCA here to an HCA there. Two processes
 * can have several, one a pair of HCAs; a message goes through one of them. One that broke stays
 * broken; after a while both processes make another one for the pair, of the next generation;
 *  - *put*: RDMA writes from one keyset into the keys of a peer, the last with immediate data (the
 * FIN);
 *  - *direct put*: the same without keysets: a write for each run of bytes that the peer's layout
 * has, each gathered from pieces of this process's. It needs what every RDMA HCA has; a device
 * without UMR has nothing else (caps()->umr).
 *
 * Order of events for one message: the sender gives the peer its endpoint address; the receiver
 * connects, registers, maps a keyset for REMOTE use, waits until it is ready, reserves a FIN and
 * names its keys to the sender; the sender connects, registers, maps its own keyset for LOCAL use
 * and puts. The HCA carries no other messages: names of keys and addresses of endpoints travel by
 * whatever the caller has.
 *
 * Rules that hold for every function of the table:
 *  - Return values are OPAL_SUCCESS or one of the OPAL_ERR_* named with the function; outputs are
 *    written only on success. Who detects an error first logs it, once.
 *  - Callable from any thread. Callbacks are called from progress() only, with no lock of the HCA
 *    held, exactly once each, and may call any function of the table but init and fini.
 *  - No function blocks on a peer.
 */

#ifndef MCA_BTL_UMR_HCA_H
#define MCA_BTL_UMR_HCA_H

#include "opal_config.h"

#include <stddef.h>
#include <stdint.h>

#include "opal/mca/btl/btl.h"
#include "opal/util/proc.h"

#include "opal/datatype/iov_cache/iov_cache.h"
#include "opal/mca/common/umrddt_gpu/driver/umrddt_gpu_driver.h"

BEGIN_C_DECLS

/** Changes with every change of this file that another component could notice. */
#define MCA_BTL_UMR_HCA_API 11

typedef struct mca_btl_umr_memory_t mca_btl_umr_memory_t;
typedef struct mca_btl_umr_endpoint_t mca_btl_umr_endpoint_t;

/**
 * Completion of something asynchronous.
 *
 * @param[in] context  what the caller gave
 * @param[in] status   OPAL_SUCCESS, or OPAL_ERROR (the HCA failed; already logged) or
 *                     OPAL_ERR_UNREACH (the endpoint broke)
 */
typedef void (*mca_btl_umr_done_fn_t)(void *context, int status);

/**
 * A FIN arrived: the last write of a put has landed, and all the writes before it.
 *
 * @param[in] context   what set_fin_handler was given
 * @param[in] endpoint  from whom
 * @param[in] fin       the immediate data, host order
 */
typedef void (*mca_btl_umr_fin_fn_t)(void *context, mca_btl_umr_endpoint_t *endpoint, uint32_t fin);

/** Ways to hold more in one key, beyond lists in the work request, which every HCA has. */
typedef enum mca_btl_umr_tier_kind_t {
    MCA_BTL_UMR_LONG,    /**< lists in memory */
    MCA_BTL_UMR_STRIDED, /**< equal blocks at equal distances, both below 64 KiB, as one entry */
    MCA_BTL_UMR_NESTED,  /**< keys over keys: lists of what the others hold */
    MCA_BTL_UMR_TIER_MAX
} mca_btl_umr_tier_kind_t;

/** One of them: whether this device has proven that it can. */
typedef struct mca_btl_umr_tier_t {
    bool usable;
    char why[192]; /**< if not */
} mca_btl_umr_tier_t;

/** What an HCA can do, or all of the process's HCAs can; constant after init. */
typedef struct mca_btl_umr_caps_t {
    opal_iov_cache_limits_t key_limits; /**< what one key of any layout holds; see key_limits() */
    mca_btl_umr_tier_t umr;             /**< mkeys; without them a keyset has a key each IOV */
    mca_btl_umr_tier_t tiers[MCA_BTL_UMR_TIER_MAX];
    size_t list_entries; /**< IOVs that one key holds by a list in the work request */
    size_t max_keys;     /**< mkeys that one role may hold at once; 0 without UMR */
    size_t write_pieces; /**< pieces that one write of a direct put gathers; at least 1 */
    char device[64];     /**< for messages: "mlx5_0:1"; the first of several */
    int numa;            /**< NUMA node of that device; -1: not known */
} mca_btl_umr_caps_t;

/** The address of an endpoint's queue pair; travels to the peer as it is (network byte order). */
typedef struct mca_btl_umr_address_t {
    uint32_t qpn; /**< queue pair number; above its 24 bits the HCA's place in the list */
    uint32_t
        psn; /**< first packet sequence number it will send; above its 24 bits the generation */
} mca_btl_umr_address_t;

/** One key, as it travels to a peer (host byte order; peers of another architecture are refused).
 */
typedef struct mca_btl_umr_key_t {
    uint64_t addr;   /**< address of its first byte: 0 for an mkey */
    uint64_t length; /**< bytes */
    uint32_t rkey;   /**< for the peer */
    uint32_t lkey;   /**< for this process's own writes; 0 where it travels */
} mca_btl_umr_key_t;

/**
 * What a keyset is for. Each role has a budget of keys of its own, so that messages that wait for a
 * peer (REMOTE) can never starve the writes the peer waits for (LOCAL).
 */
typedef enum mca_btl_umr_role_t {
    MCA_BTL_UMR_LOCAL,  /**< gather for this process's writes */
    MCA_BTL_UMR_REMOTE, /**< scatter for a peer's writes */
    MCA_BTL_UMR_ROLE_MAX
} mca_btl_umr_role_t;

/** Keys for [start, end) of a layout's stream in a buffer. Read-only for the caller. */
typedef struct mca_btl_umr_keyset_t {
    opal_list_item_t super;
    uint64_t id;    /**< of this mapping, never given twice; 0: registrations' own keys only */
    uint64_t start; /**< first stream position covered */
    uint64_t end;   /**< one past the last */
    size_t count;   /**< number of keys, in stream order, without gaps */
    mca_btl_umr_key_t *keys; /**< count of them */
    bool ready;              /**< every key's mapping was seen complete */
} mca_btl_umr_keyset_t;

/** What a direct put writes, from where, and to where. */
typedef struct mca_btl_umr_direct_t {
    void *buffer;                          /**< of this process */
    const opal_iov_cache_layout_t *layout; /**< in it */
    const mca_btl_umr_memory_t *memory;    /**< of both; covers the first end bytes */
    const opal_iov_cache_form_t *to;       /**< the peer's layout */
    uint64_t to_buffer;                    /**< the peer's address that its offsets count from */
    const mca_btl_umr_key_t *regions; /**< what the peer lets us write: by ascending address, none
                                           touches another; lkey is not looked at */
    size_t region_count;
    uint64_t start; /**< the part of the stream to write */
    uint64_t end;
} mca_btl_umr_direct_t;

/** Counters; they only grow, but for those that say 'now'. */
typedef struct mca_btl_umr_stats_t {
    uint64_t mkeys_created;     /**< mkeys made by the device (a system call each) */
    uint64_t mkeys_by_helper;   /**< of those, made in advance by the helper thread */
    uint64_t mkeys_by_messages; /**< of those, made after init when a message needed them */
    uint64_t mkeys_now;         /**< mkeys that exist now */
    uint64_t mkeys_used_now;    /**< of those, mapped for some keyset now */
    uint64_t keys_mapped;       /**< UMR work requests posted: windows mapped to mkeys */
    uint64_t key_entries;       /**< list entries in those */
    uint64_t keys_long;         /**< of those mapped, by a list in memory */
    uint64_t keys_strided;   /**< of those mapped, of equal blocks at equal distances: one entry */
    uint64_t keys_nested;    /**< of those mapped, over others of those mapped */
    uint64_t mkeys_long_now; /**< of the mkeys that exist now, those for such lists */
    uint64_t keys_used;      /**< mkeys in keysets handed out: mapped for these, or found mapped */
    uint64_t keys_plain;     /**< windows that used an MR's own key */
    uint64_t keyset_hits;    /**< keysets found mapped */
    uint64_t keyset_evictions; /**< kept keysets that left for others */
    uint64_t keysets_stale;    /**< kept keysets whose registrations were gone */
    uint64_t keysets_kept_now; /**< keysets kept mapped now, in use or not */
    uint64_t writes_posted;    /**< RDMA writes posted, with or without immediate data */
    uint64_t bytes_written;    /**< bytes in those */
    uint64_t writes_direct;    /**< of the writes, those of direct puts */
    uint64_t pieces_direct;    /**< pieces gathered by those */
    uint64_t fins_received;    /**< writes with immediate data received */
    uint64_t reg_hits;         /**< registrations found in the cache */
    uint64_t reg_misses;       /**< registrations made */
    uint64_t reg_bytes_now;    /**< bytes registered now */
    uint64_t gpu_reg_hits;     /**< the same of memory of GPUs: found */
    uint64_t gpu_reg_misses;   /**< made */
    uint64_t gpu_reg_refused;  /**< refused by the driver, the kernel or the HCA */
    uint64_t gpu_regs_stale;   /**< dropped since their memory was freed */
    uint64_t gpu_regs_now;     /**< that exist now */
    uint64_t gpu_bytes_now;    /**< bytes in those */
    uint64_t gpu_flush_calls;  /**< flushes of what peers wrote there, by the driver */
    uint64_t gpu_flush_reads;  /**< by reads of the HCA */
    uint64_t endpoints_now;    /**< queue pairs that exist now */
    uint64_t peer_bytes_now;   /**< memory of those now: structures, queues, completions */
    uint64_t shared_bytes_now; /**< memory of the receives that they share now */
    uint64_t errors;           /**< completions with an error */
    uint64_t
        endpoints_rebuilt; /**< queue pairs to peers connected in the place of one that broke */
    uint64_t maps_rebuilt; /**< queue pairs of mappings made in the place of one that failed */
    uint64_t rdma_puts;    /**< writes of the module, for users of the framework */
    uint64_t rdma_gets;    /**< its reads */
    uint64_t rdma_atomics; /**< its atomics */
    uint64_t rdma_bytes;   /**< bytes of all these, 8 for an atomic */
} mca_btl_umr_stats_t;

/** The HCA's functions. Every slot is filled. */
typedef struct mca_btl_umr_hca_ops_t {
    /**
     * Open the HCA, prove it by the loopback self-test, and publish it to the job (modex). To be
     * called before the job's modex exchange; later calls only count. A machine without an mlx5
     * device is silent; a device that cannot be used, or fails the test, gives one message. A
     * device that has no UMR is used without (caps()->umr says why), unless btl_umr_plain_keys is
     * 0.
     *
     * @retval OPAL_SUCCESS            usable
     * @retval OPAL_ERR_NOT_AVAILABLE  no HCA that can be used; nothing is left open
     */
    int (*init)(void);

    /** The opposite of init, once for each call of it that succeeded. The last one closes all. */
    void (*fini)(void);

    /** Why init said OPAL_ERR_NOT_AVAILABLE, in a few words; "" while usable. Never NULL. */
    const char *(*why_not)(void);

    /** Capabilities, those that all HCAs have; valid from init to fini. */
    const mca_btl_umr_caps_t *(*caps)(void);

    /**
     * One HCA of the process, in the order of preference.
     *
     * @param[out] caps, stats  its own; may be NULL. Valid from init to fini
     *
     * @return false: there are no more than @p index
     */
    bool (*hca)(unsigned int index, const mca_btl_umr_caps_t **caps,
                const mca_btl_umr_stats_t **stats);

    /**
     * How far a GPU is from an HCA, to be compared with others of the same HCA: endpoint_near's
     * measure. For what tells users; reads files when a GPU is asked for first.
     *
     * @param[in] index  as for HCA
     * @param[in] gpu    its number in this process; cuInit was called
     *
     * @return UINT32_MAX: that is not known, or there is no such HCA or GPU
     */
    uint32_t (*gpu_distance)(unsigned int index, int gpu);

    /**
     * The IOVs and bytes that one key of this layout holds: no less than caps()->key_limits, and
     * more where the layout is so regular that the device repeats a block by itself. For the choice
     * of chunks; windows are cut by keyset_map.
     */
    void (*key_limits)(const opal_iov_cache_layout_t *layout, opal_iov_cache_limits_t *limits);

    /**
     * Counters; valid as long as the component is open. Those of one HCA go on by themselves; with
     * several the sum is made by this call.
     */
    const mca_btl_umr_stats_t *(*stats)(void);

    /** Install the function that hears of FINs (one for the process; NULL removes it). */
    void (*set_fin_handler)(mca_btl_umr_fin_fn_t handler, void *context);

    /**
     * The first endpoint to a process, made at the first call (a queue pair, not yet connected).
     * Looks the peer's HCAs up in the modex.
     *
     * @param[out] endpoint  owned by the HCA until fini
     *
     * @retval OPAL_SUCCESS
     * @retval OPAL_ERR_UNREACH          the peer published no HCA, or one of another fabric or
     * version
     * @retval OPAL_ERR_OUT_OF_RESOURCE  no queue pair to be had
     */
    int (*endpoint_get)(struct opal_proc_t *proc, mca_btl_umr_endpoint_t **endpoint);

    /**
     * The endpoint to the same process whose HCA is nearest to where some memory is: the CPU's by
     * its NUMA node, a GPU's by what of its way to the CPU is also the HCA's; of equals the first,
     * and a broken one only if all are. Made at its first use. The sender of a message asks, and
     * its address tells the receiver. Where a page is, and where a GPU, is remembered. Each call
     * that finds a pair broken brings the next generation of it nearer (btl_umr_rebuilds).
     *
     * @param[in] endpoint  any endpoint to the process
     * @param[in] address   of a byte of the memory
     * @param[in] gpu       the GPU that it is of, by its number in this process; -1: it is the
     *                      CPU's
     *
     * @return never NULL; @p endpoint itself where there is no choice
     */
    mca_btl_umr_endpoint_t *(*endpoint_near)(mca_btl_umr_endpoint_t *endpoint, const void *address,
                                             int gpu);

    /**
     * The endpoint to the same process that goes to the HCA which an address of the peer's names.
     * Made at its first use, and when the address is of a later generation: then what there was is
     * broken, as the peer's end of it is.
     *
     * @param[in] endpoint  any endpoint to the process
     *
     * @return never NULL; one that refuses to connect if there is none
     */
    mca_btl_umr_endpoint_t *(*endpoint_at)(mca_btl_umr_endpoint_t *endpoint,
                                           const mca_btl_umr_address_t *address);

    /**
     * Endpoints to the same process, each by another pair of HCAs, that parts of one message can
     * go through at once: @p endpoint first, then the others that are not broken, in the order of
     * the pairs, which is the same on both sides. Made at their first use.
     *
     * @param[out] endpoints  room for @p max, which is 1 at least
     *
     * @return how many there are; 1 where a process has one pair of HCAs with this one
     */
    size_t (*endpoints_beside)(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_endpoint_t **endpoints,
                               size_t max);

    /** This side's address, for the peer. The same for the endpoint's whole life, also broken. */
    void (*endpoint_address)(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_address_t *address);

    /**
     * Connect to the peer's address; nothing happens if it is connected to that address already.
     *
     * @retval OPAL_SUCCESS      the peer may write from now on; so may we, once the peer connected
     * @retval OPAL_ERR_UNREACH  broken, connected to another address, of another generation than
     *                           the address, or the device refused
     */
    int (*endpoint_connect)(mca_btl_umr_endpoint_t *endpoint, const mca_btl_umr_address_t *address);

    /** True once an error broke the endpoint: nothing can be put through it any more. */
    bool (*endpoint_broken)(const mca_btl_umr_endpoint_t *endpoint);

    /**
     * For the receiver of a message that cannot go through an endpoint: does the sender have to
     * know that it asks in vain?
     *
     * @param[in]  endpoint  that endpoint_at gave for the sender's address
     * @param[in]  theirs    the sender's address
     * @param[out] address   what to tell it, for endpoint_refused
     *
     * @return true: the endpoint is broken, or of another generation than the address
     */
    bool (*endpoint_refuses)(mca_btl_umr_endpoint_t *endpoint, const mca_btl_umr_address_t *theirs,
                             mca_btl_umr_address_t *address);

    /**
     * The receiver of a message has refused this endpoint, and told an address (endpoint_refuses).
     * Of the same generation: the peer's end is broken, and so is this one from now on. Of a later
     * one: so it is, and the next one is to be of that. Of an earlier one: the peer has not
     * followed, this one is given up unless it is connected.
     *
     * @param[in] theirs  as it came; of another HCA than the endpoint's: nothing happens
     */
    void (*endpoint_refused)(mca_btl_umr_endpoint_t *endpoint, const mca_btl_umr_address_t *theirs);

    /**
     * Break the endpoint on purpose (queue pair to ERR): after return no write of the peer through
     * it lands any more. Puts and FIN reservations on it end with OPAL_ERR_UNREACH.
     */
    void (*endpoint_break)(mca_btl_umr_endpoint_t *endpoint);

    /**
     * Take one receive for a FIN that the peer will be told to send. Without it a FIN could find no
     * receive posted. Endpoints share their receives; half of these are for endpoints that have
     * none.
     *
     * @retval OPAL_SUCCESS              given back by the FIN's arrival, or by fin_cancel
     * @retval OPAL_ERR_OUT_OF_RESOURCE  the endpoint cannot have more now: try again after a FIN
     * @retval OPAL_ERR_UNREACH          broken
     */
    int (*fin_reserve)(mca_btl_umr_endpoint_t *endpoint);

    /** Give a reservation back that the peer was never told of. */
    void (*fin_cancel)(mca_btl_umr_endpoint_t *endpoint);

    /**
     * Register what the first @p size bytes of the layout's stream touch in @p buffer. The pages
     * between the pieces are registered too where they are mapped and near; pieces far apart get
     * registrations of their own. Served from the registration cache where possible.
     *
     * @param[in]  role    LOCAL: read-only memory will do (const data, a file mapped PROT_READ);
     * REMOTE: all of it must be writable. What was registered for REMOTE serves LOCAL too
     * @param[out] memory  release with memory_release, after every keyset made from it
     *
     * @retval OPAL_SUCCESS
     * @retval OPAL_ERR_OUT_OF_RESOURCE  the bound on registered memory, or the system's, is reached
     * @retval OPAL_ERR_BAD_PARAM        part of it cannot be registered (not mapped, read-only,
     * ...)
     */
    int (*memory_register)(mca_btl_umr_role_t role, void *buffer,
                           const opal_iov_cache_layout_t *layout, uint64_t size,
                           mca_btl_umr_memory_t **memory);

    /** As memory_register, with the HCA of an endpoint; NULL: with the first HCA, as that does.
     */
    int (*memory_register_at)(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_role_t role,
                              void *buffer, const opal_iov_cache_layout_t *layout, uint64_t size,
                              mca_btl_umr_memory_t **memory);

    /**
     * True if memory of a GPU may be registered with the HCA of an endpoint, as far as is known
     * without trying: by what the driver says of it, and by what was refused before. No call of the
     * driver in the steady state.
     *
     * @param[in] endpoint  NULL: with each HCA, whichever a message would take
     * @param[in] where     as the driver classifies it now
     */
    bool (*gpu_reachable)(mca_btl_umr_endpoint_t *endpoint, const opal_umrddt_gpu_memory_t *where);

    /**
     * As memory_register_at, of a buffer in one allocation of a GPU. What is registered stays
     * cached by the allocation's BUFFER_ID, until it is displaced or its memory was freed.
     *
     * @param[in] where  the allocation that the buffer is in, as the driver classified it since the
     *                   application has given it to this message; copied
     *
     * @retval OPAL_SUCCESS
     * @retval OPAL_ERR_OUT_OF_RESOURCE  the HCA, or its window into the GPU, has no room
     * @retval OPAL_ERR_BAD_PARAM        memory that HCAs cannot have, here or at all, or more than
     *                                   one allocation
     */
    int (*memory_register_gpu)(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_role_t role,
                               const opal_umrddt_gpu_memory_t *where, void *buffer,
                               const opal_iov_cache_layout_t *layout, uint64_t size,
                               mca_btl_umr_memory_t **memory);

    /**
     * Make what peers wrote into memory, as told by their FINs, visible to whoever reads it after.
     * Nothing to be done for the CPU's.
     *
     * @param[in] done  called later if OPAL_ERR_WOULD_BLOCK is returned, and only then; the memory
     *                  must live until then
     *
     * @retval OPAL_SUCCESS          it is
     * @retval OPAL_ERR_WOULD_BLOCK  it will be, when done is called with OPAL_SUCCESS
     * @retval OPAL_ERROR            it cannot be (logged)
     */
    int (*memory_flush)(mca_btl_umr_memory_t *memory, mca_btl_umr_done_fn_t done, void *context);

    /** Give back. The registrations may stay in the cache. */
    void (*memory_release)(mca_btl_umr_memory_t *memory);

    /**
     * The application may free the memory at any time from now on, though the HCA may not have
     * told yet that it is through with it. (Memory that is not let go must not be freed: Open MPI's
     * registration cache ends the process that does.) It is released as any other.
     *
     * @param[in] memory  nothing is done with one that was released, or is a GPU's, or NULL
     */
    void (*memory_let_go)(mca_btl_umr_memory_t *memory);

    /**
     * A keyset that was kept (keyset_keep), without the memory: what keyset_map would find if the
     * memory were registered now, as far as that can be told without looking up its registration.
     * For memory of the CPU only. The keyset holds what it needs of the memory; no write through
     * its keys meets another registration than the one that they were mapped over.
     *
     * @param[in] endpoint  whose HCA the keys are for
     * @param[in] layout    further arguments as keyset_map's
     *
     * @return ready, to be given back as keyset_map's; NULL: register the memory, and call
     *         keyset_map
     */
    mca_btl_umr_keyset_t *(*keyset_recall)(mca_btl_umr_endpoint_t *endpoint,
                                           mca_btl_umr_role_t role, void *buffer,
                                           const opal_iov_cache_layout_t *layout, uint64_t chunk,
                                           uint64_t start, uint64_t end, size_t max_keys);

    /**
     * Map keys for windows of [start, end), from start on: as many as there are keys to be had for
     * the role, at most @p max_keys, at least one. The caller sees in the keyset how far they
     * reach.
     *
     * If the keyset comes back with ready == false, @p done is called later from progress(); if it
     * is ready at once (only plain keys), it is not called. On a status other than OPAL_SUCCESS the
     * caller still owes keyset_release.
     *
     * A keyset that was kept (keyset_keep) is found again, and is ready at once.
     *
     * (Who has not registered the memory yet asks keyset_recall first.)
     *
     * @param[in]  memory  must cover the first @p end bytes, and outlive the keyset
     * @param[out] keyset  release with keyset_release
     *
     * @retval OPAL_SUCCESS
     * @retval OPAL_ERR_OUT_OF_RESOURCE  no key now: try again when a keyset of the role was
     * released
     * @retval OPAL_ERR_BAD_PARAM        a range outside of the layout or of the memory
     * @retval OPAL_ERROR                the device refused (logged)
     */
    int (*keyset_map)(mca_btl_umr_role_t role, void *buffer, const opal_iov_cache_layout_t *layout,
                      mca_btl_umr_memory_t *memory, uint64_t chunk, uint64_t start, uint64_t end,
                      size_t max_keys, mca_btl_umr_done_fn_t done, void *context,
                      mca_btl_umr_keyset_t **keyset);

    /**
     * Give the keys back. Allowed when no put uses them and, for REMOTE, when the peer's FIN has
     * come or its endpoint was broken; or while they are not ready yet (done is then not called). A
     * REMOTE mkey is invalidated by a work request posted here (from progress() where the queue is
     * full) and is not mapped again before, then with another tag where the device can: the HCA
     * refuses the old rkey. A plain key lives as long as its registration does.
     */
    void (*keyset_release)(mca_btl_umr_keyset_t *keyset);

    /**
     * As keyset_release after a message that went well, but the keys stay mapped, for the next
     * keyset_map with the same arguments: it finds the keyset ready. That is, as long as the memory
     * given there has the registrations that it had (it was neither unmapped nor evicted in
     * between), no other keyset needs the mkeys, and btl_umr_key_cache is not reached. A REMOTE key
     * that is kept would still be accepted by the HCA, so its peer must be one that writes only
     * when told to.
     */
    void (*keyset_keep)(mca_btl_umr_keyset_t *keyset);

    /**
     * RDMA-write the whole keyset into the peer's keys, in stream order: one write for each piece
     * that lies in one local and in one remote key, the last with *fin as immediate data (a plain
     * write if fin is NULL: more puts of the same message follow). Posted as far as the send queue
     * has room, the rest from progress(). Puts on one endpoint are posted in the order of the
     * calls.
     *
     * @param[in] keyset   ready, role LOCAL
     * @param[in] remote   the peer's keys for exactly the same bytes; copied
     * @param[in] fin      immediate data for the last write, or NULL; copied
     * @param[in] done     called when the last write completed, or with an error when all that was
     *                     posted has completed or been flushed; never before put returns
     *
     * @retval OPAL_SUCCESS
     * @retval OPAL_ERR_BAD_PARAM        the keys do not add up to the keyset's length, or it is of
     *                                   another HCA than the endpoint
     * @retval OPAL_ERR_UNREACH          not connected, or broken
     * @retval OPAL_ERR_OUT_OF_RESOURCE  no memory
     */
    int (*put)(mca_btl_umr_endpoint_t *endpoint, const mca_btl_umr_keyset_t *keyset,
               const mca_btl_umr_key_t *remote, size_t remote_count, const uint32_t *fin,
               mca_btl_umr_done_fn_t done, void *context);

    /**
     * What a peer has to be told for direct puts into this memory: one region for each of its
     * registrations, which reaches from the lowest to the highest byte that the layout touches
     * there. (The key reaches all of the registration, as long as it is cached.)
     *
     * @param[in]  memory   registered for REMOTE
     * @param[out] regions  room for @p max; those that fit are written, in the order that
     *                      put_direct wants
     *
     * @return how many there are; 0: peers may not have them (btl_umr_plain_keys, or for LOCAL)
     */
    size_t (*memory_regions)(const mca_btl_umr_memory_t *memory, mca_btl_umr_key_t *regions,
                             size_t max);

    /**
     * RDMA-write a part of a layout's stream straight to where it belongs in the peer's layout,
     * without mkeys: both layouts are walked side by side, and each write goes to one contiguous
     * run of the peer's, from up to caps()->write_pieces pieces of ours. Posted, completed and
     * ended as put; a walk goes as far as the send queue has room, and on from there in progress().
     * That everything lies in the regions is seen before anything is posted.
     *
     * @param[in] direct  copied with its regions; layout, memory and @c to must live until done
     * @param[in] fin, done, context  as put
     *
     * @retval OPAL_SUCCESS
     * @retval OPAL_ERR_BAD_PARAM        nothing to write, a range outside of a layout or of the
     *                                   memory, a byte outside of the regions, or memory
     *                                   registered with another HCA than the endpoint's
     * @retval OPAL_ERR_UNREACH          not connected, or broken
     * @retval OPAL_ERR_OUT_OF_RESOURCE  no memory
     */
    int (*put_direct)(mca_btl_umr_endpoint_t *endpoint, const mca_btl_umr_direct_t *direct,
                      const uint32_t *fin, mca_btl_umr_done_fn_t done, void *context);

    /** Poll completions, post what waits, call callbacks. @return the number of events handled */
    int (*progress)(void);
} mca_btl_umr_hca_ops_t;

/** The component; the btl framework's part first. */
typedef struct mca_btl_umr_component_t {
    mca_btl_base_component_3_0_0_t super;
    uint32_t api; /**< MCA_BTL_UMR_HCA_API of the component as built */
    const mca_btl_umr_hca_ops_t *ops;
} mca_btl_umr_component_t;

END_C_DECLS

#endif /* MCA_BTL_UMR_HCA_H */
