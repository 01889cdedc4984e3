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
 * The interface of btl/umr for other components. Read this file first, then btl_umr.h.
 *
 * btl/umr owns the mlx5 HCAs of the process. A component that moves bytes between layouts finds the
 * component structure of btl/umr in the btl framework. It checks mca_btl_umr_component_t::api and
 * calls the functions of the table. The objects:
 *
 *  - *memory*: the registrations (MRs) that cover the bytes of one buffer that a layout touches;
 *  - *keyset*: keys for a range of a layout's stream in one buffer, one key per window (see
 *    iov_cache.h). A window of several IOVs is a zero-based UMR mkey: its bytes have the addresses
 *    0 .. length - 1 in stream order. A window of one IOV uses the key of the MR and the buffer's
 *    address;
 *  - *HCA*: one port of one device. A process may have several. Each has its own registrations,
 *    keys and endpoints, which cannot be used with another HCA;
 *  - *endpoint*: one RC queue pair to one process, from a local HCA to a remote HCA. Two processes
 *    may have several endpoints, one per pair of HCAs; each message uses one of them. A broken
 *    endpoint stays broken; later both processes create another one of the next generation for the
 *    pair;
 *  - *put*: RDMA writes from one keyset into the keys of a peer, and immediate data (the FIN) with
 *    or behind the last one;
 *  - *direct put*: the same without keysets: one write with a gather list for each contiguous run
 *    of the peer's layout. Every RDMA HCA supports it; a device without UMR supports nothing else
 *    (caps()->umr).
 *
 * Order of events for one message: the sender sends its endpoint address to the peer. The receiver
 * connects, registers, maps a keyset for REMOTE use, waits until it is ready, reserves a FIN and
 * sends its keys to the sender. The sender connects, registers, maps its own keyset for LOCAL use
 * and puts. The HCA carries no control messages: the caller transports keys and endpoint addresses.
 *
 * Rules for every function of the table:
 *  - Return values are OPAL_SUCCESS or one of the OPAL_ERR_* listed with the function. Outputs are
 *    written only on success. The function that detects an error first logs it, once.
 *  - Callable from any thread. Callbacks run from progress() only, with no lock of the HCA held,
 *    exactly once each. They may call any function of the table except init and fini.
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

/** Incremented with each change of this interface that is visible to other components. */
#define MCA_BTL_UMR_HCA_API 14

typedef struct mca_btl_umr_memory_t mca_btl_umr_memory_t;
typedef struct mca_btl_umr_endpoint_t mca_btl_umr_endpoint_t;

/**
 * Completion of an asynchronous operation.
 *
 * @param[in] context  the caller's context
 * @param[in] status   OPAL_SUCCESS, or OPAL_ERROR (the HCA failed; already logged) or
 *                     OPAL_ERR_UNREACH (the endpoint broke)
 */
typedef void (*mca_btl_umr_done_fn_t)(void *context, int status);

/**
 * A FIN arrived: the last write of a put and all writes before it are complete.
 *
 * @param[in] context   the context given to set_fin_handler
 * @param[in] endpoint  the endpoint that received it
 * @param[in] fin       the immediate data, host order
 */
typedef void (*mca_btl_umr_fin_fn_t)(void *context, mca_btl_umr_endpoint_t *endpoint, uint32_t fin);

/** Capability tiers above the inline list (KLM list in the work request), which every HCA has. */
typedef enum mca_btl_umr_tier_kind_t {
    MCA_BTL_UMR_LONG,    /**< non-inline UMR lists (KLM lists in memory) */
    MCA_BTL_UMR_STRIDED, /**< equal blocks at equal distances, both below 64 KiB, as one entry */
    MCA_BTL_UMR_NESTED,  /**< indirect mkeys of mkeys */
    MCA_BTL_UMR_TIER_MAX
} mca_btl_umr_tier_kind_t;

/** One tier: usable if the self-test proved it on this device. */
typedef struct mca_btl_umr_tier_t {
    bool usable;
    char why[192]; /**< the reason if not usable */
} mca_btl_umr_tier_t;

/** Capabilities of one HCA, or those common to all HCAs of the process. Constant after init. */
typedef struct mca_btl_umr_caps_t {
    opal_iov_cache_limits_t key_limits; /**< capacity of one key for any layout; see key_limits() */
    mca_btl_umr_tier_t umr;             /**< mkeys; without them a keyset has one key per IOV */
    mca_btl_umr_tier_t tiers[MCA_BTL_UMR_TIER_MAX];
    size_t list_entries; /**< IOVs that one key holds with an inline list */
    size_t max_keys;     /**< mkeys that one role may hold at the same time; 0 without UMR */
    size_t write_pieces; /**< pieces that one write of a direct put gathers; at least 1 */
    /** For messages: "mlx5_0:1", the first one of several; its link, address, partition, class. */
    char device[64], port[128];
    int numa; /**< NUMA node of that device; -1: unknown */
} mca_btl_umr_caps_t;

/** The address of an endpoint's queue pair, sent to the peer as it is (network byte order). */
typedef struct mca_btl_umr_address_t {
    uint32_t qpn; /**< queue pair number (24 bits); upper byte: index of the HCA in the list */
    uint32_t psn; /**< number of the first packet it will send; above its 24 bits the generation */
} mca_btl_umr_address_t;

/**
 * One key, as it is sent to a peer (host byte order; peers of another architecture are refused).
 */
typedef struct mca_btl_umr_key_t {
    uint64_t addr;   /**< address of its first byte: 0 for an mkey */
    uint64_t length; /**< bytes */
    uint32_t rkey;   /**< for the peer */
    uint32_t lkey;   /**< for this process's own writes; 0 when it is sent to a peer */
} mca_btl_umr_key_t;

/**
 * The use of a keyset. Each role has its own budget of keys, so that messages that wait for a peer
 * (REMOTE) cannot starve the writes that the peer waits for (LOCAL).
 */
typedef enum mca_btl_umr_role_t {
    MCA_BTL_UMR_LOCAL,  /**< gather for this process's writes */
    MCA_BTL_UMR_REMOTE, /**< scatter for a peer's writes */
    MCA_BTL_UMR_ROLE_MAX
} mca_btl_umr_role_t;

/** Keys for [start, end) of a layout's stream in a buffer. Read-only for the caller. */
typedef struct mca_btl_umr_keyset_t {
    opal_list_item_t super;
    uint64_t id;             /**< unique id of this mapping; 0: only keys of registrations */
    uint64_t start;          /**< first stream position covered */
    uint64_t end;            /**< one past the last */
    size_t count;            /**< number of keys, in stream order, without gaps */
    mca_btl_umr_key_t *keys; /**< count of them */
    bool ready;              /**< all mappings have completed */
} mca_btl_umr_keyset_t;

/** Source, destination and range of a direct put. */
typedef struct mca_btl_umr_direct_t {
    void *buffer;                          /**< in this process */
    const opal_iov_cache_layout_t *layout; /**< of the buffer */
    const mca_btl_umr_memory_t *memory;    /**< of both; covers the first end bytes */
    const opal_iov_cache_form_t *to;       /**< the peer's layout */
    uint64_t to_buffer;               /**< the peer's address to which its offsets are relative */
    const mca_btl_umr_key_t *regions; /**< regions of the peer that may be written, by ascending
                                         address, none adjacent to another; lkey is ignored */
    size_t region_count;
    uint64_t start; /**< the range of the stream to write */
    uint64_t end;
} mca_btl_umr_direct_t;

/** Counters. They only grow, except those named 'now'. */
typedef struct mca_btl_umr_stats_t {
    uint64_t mkeys_created;     /**< mkeys created by the device (a system call each) */
    uint64_t mkeys_by_helper;   /**< of those, created in advance by the helper thread */
    uint64_t mkeys_by_messages; /**< of those, created after init because a message needed them */
    uint64_t mkeys_now;         /**< mkeys that exist now */
    uint64_t mkeys_used_now;    /**< of those, mapped for a keyset now */
    uint64_t keys_mapped;       /**< UMR work requests posted: windows mapped to mkeys */
    uint64_t key_entries;       /**< list entries in those */
    uint64_t keys_long;         /**< of the mapped keys, with a non-inline UMR list */
    uint64_t keys_strided;   /**< of those mapped, as equal blocks at equal distances: one entry */
    uint64_t keys_nested;    /**< of the mapped keys, indirect (mkeys of mkeys) */
    uint64_t mkeys_long_now; /**< of the mkeys that exist now, those for non-inline lists */
    uint64_t keys_used;      /**< mkeys in returned keysets: newly mapped or cached */
    uint64_t keys_plain;     /**< windows that used an MR's own key */
    uint64_t keyset_hits;    /**< keysets found in the key cache */
    uint64_t keyset_evictions;   /**< keysets evicted from the key cache */
    uint64_t keysets_stale;      /**< cached keysets dropped: their registrations were gone */
    uint64_t keysets_cached_now; /**< keysets in the key cache now, in use or not */
    uint64_t writes_posted;      /**< RDMA writes posted, with or without immediate data */
    uint64_t bytes_written;      /**< bytes in those */
    uint64_t writes_direct;      /**< of the writes, those of direct puts */
    uint64_t pieces_direct;      /**< pieces gathered by those */
    uint64_t fins_received;      /**< writes with immediate data received */
    uint64_t reg_hits;           /**< registrations found in the cache */
    uint64_t reg_misses;         /**< registrations made */
    uint64_t reg_bytes_now;      /**< bytes registered now */
    uint64_t gpu_reg_hits;       /**< the same for GPU memory: found */
    uint64_t gpu_reg_misses;     /**< made */
    uint64_t gpu_reg_refused;    /**< refused by the driver, the kernel or the HCA */
    uint64_t gpu_regs_stale;     /**< dropped because their memory was freed */
    uint64_t gpu_regs_now;       /**< registrations of GPU memory that exist now */
    uint64_t gpu_bytes_now;      /**< bytes in those */
    uint64_t gpu_flush_calls;    /**< flushes of peers' writes to GPU memory, by the driver */
    uint64_t gpu_flush_reads;    /**< flushes by an RDMA read of the HCA */
    uint64_t endpoints_now;      /**< queue pairs that exist now */
    uint64_t peer_bytes_now;     /**< memory of those now: structures, queues and completions */
    uint64_t shared_bytes_now;   /**< memory of their shared receives now */
    uint64_t errors;             /**< completions with an error */
    uint64_t endpoints_rebuilt;  /**< queue pairs to peers that replaced one that broke */
    uint64_t maps_rebuilt;       /**< queue pairs for mappings created in place of a failed one */
    uint64_t peers_refused;      /**< peers that got no queue pair because of max_peers */
    uint64_t peers_closed;       /**< peers whose queue pairs were closed because of max_peers */
    uint64_t probe_wait_us; /**< microseconds that messages waited for the first use of lanes */
    uint64_t rdma_puts;     /**< writes of the btl module, for users of the framework */
    uint64_t rdma_gets;     /**< reads of the btl module */
    uint64_t rdma_atomics;  /**< atomics of the btl module */
    uint64_t rdma_bytes;    /**< bytes of all these; 8 per atomic */
} mca_btl_umr_stats_t;

/* clang-format off */
/** The counters that users see: name, member of mca_btl_umr_stats_t, whether it is a present
 * value, help. */
#define MCA_BTL_UMR_COUNTERS(X) \
    X(keys_mapped, keys_mapped, false, "Windows mapped to mkeys: UMR work requests") \
    X(keys_used, keys_used, false, "mkeys used by messages, mapped for them or found mapped") \
    X(keys_plain, keys_plain, false, "Windows of one piece, which use the registration's own key") \
    X(key_entries, key_entries, false, \
      "Entries in the mapped mkeys; equal blocks at equal distances are one") \
    X(keyset_hits, keyset_hits, false, "Key sets found mapped: nothing was mapped for these") \
    X(keyset_evictions, keyset_evictions, false, "Cached key sets that were evicted for others") \
    X(keysets_stale, keysets_stale, false, \
      "Cached key sets whose memory was freed or registered anew") \
    X(keysets_kept, keysets_cached_now, true, "Key sets that are kept mapped (present value)") \
    X(mkeys_created, mkeys_created, false, "mkeys created by the device") \
    X(mkeys_by_helper, mkeys_by_helper, false, \
      "Of these, mkeys created in advance by the helper thread") \
    X(mkeys_by_messages, mkeys_by_messages, false, \
      "Of these, mkeys that a message had to create, after MPI_Init") \
    X(mkeys_now, mkeys_now, true, "mkeys that exist (present value)") \
    X(writes_posted, writes_posted, false, "RDMA writes posted") \
    X(writes_direct, writes_direct, false, "Of these, writes without mkeys") \
    X(pieces_direct, pieces_direct, false, "Contiguous pieces that these gathered") \
    X(write_bytes, bytes_written, false, "Bytes of all writes") \
    X(fins_received, fins_received, false, "RDMA writes with immediate data received") \
    X(reg_hits, reg_hits, false, "Registrations found in the cache") \
    X(reg_misses, reg_misses, false, "Registrations made") \
    X(reg_bytes, reg_bytes_now, true, "Bytes registered (present value)") \
    X(gpu_reg_hits, gpu_reg_hits, false, "Registrations of GPU memory found in the cache") \
    X(gpu_reg_misses, gpu_reg_misses, false, "Registrations of GPU memory made") \
    X(gpu_reg_refused, gpu_reg_refused, false, \
      "The same refused by driver, kernel or HCA; not tried again") \
    X(gpu_reg_stale, gpu_regs_stale, false, \
      "Registrations dropped because their GPU memory was freed") \
    X(gpu_reg_bytes, gpu_bytes_now, true, "Bytes of GPU memory registered (present value)") \
    X(gpu_flush_calls, gpu_flush_calls, false, \
      "Flushes of an HCA's writes to a GPU, by the driver") \
    X(gpu_flush_reads, gpu_flush_reads, false, "The same, by reads of the HCA") \
    X(endpoints, endpoints_now, true, "Queue pairs (present value)") \
    X(endpoint_bytes, peer_bytes_now, true, \
      "Memory of those, with their completions (present value)") \
    X(receive_bytes, shared_bytes_now, true, \
      "Memory of the receives that they share (present value)") \
    X(hca_errors, errors, false, "Completions with an error") \
    X(endpoints_rebuilt, endpoints_rebuilt, false, "Queue pairs that replaced a broken one") \
    X(peers_refused, peers_refused, false, "Peers that were refused queue pairs (max_peers)") \
    X(peers_closed, peers_closed, false, "Peers whose queue pairs were closed for other peers") \
    X(maps_rebuilt, maps_rebuilt, false, "Queue pairs for mappings that replaced a failed one") \
    X(probe_wait_us, probe_wait_us, false, "Microseconds that messages waited for new lanes")
/* clang-format on */

/** The functions of the HCA. Every entry is set. */
typedef struct mca_btl_umr_hca_ops_t {
    /**
     * Open the HCAs, verify them with the loopback self-test, and publish them to the job (modex).
     * Must be called before the modex exchange of the job; later calls only increment the use
     * count. A machine without an mlx5 device gets no message. A device that cannot be used, or
     * that fails the test, gets one message. A device without UMR is used for direct puts
     * (caps()->umr has the reason), unless btl_umr_plain_keys is 0.
     *
     * @retval OPAL_SUCCESS            usable
     * @retval OPAL_ERR_NOT_AVAILABLE  no usable HCA; nothing is left open
     */
    int (*init)(void);

    /** Undo one successful call of init. The last call closes all HCAs. */
    void (*fini)(void);

    /** The reason why init returned OPAL_ERR_NOT_AVAILABLE; "" while usable. Never NULL. */
    const char *(*why_not)(void);

    /** Capabilities common to all HCAs; valid from init to fini. */
    const mca_btl_umr_caps_t *(*caps)(void);

    /**
     * One HCA of the process, in order of preference.
     *
     * @param[out] caps, stats  of this HCA; may be NULL. Valid from init to fini
     *
     * @return false if @p index is out of range
     */
    bool (*hca)(unsigned int index, const mca_btl_umr_caps_t **caps,
                const mca_btl_umr_stats_t **stats);

    /**
     * Distance of a GPU from an HCA, in the unit that endpoint_near uses; comparable only for the
     * same HCA. For diagnostic output. The first call for a GPU reads files of sysfs.
     *
     * @param[in] index  as for hca
     * @param[in] gpu    its number in this process; cuInit must have been called
     *
     * @return UINT32_MAX: unknown, or no such HCA or GPU
     */
    uint32_t (*gpu_distance)(unsigned int index, int gpu);

    /**
     * The IOVs and bytes that one key of this layout holds. No less than caps()->key_limits, and
     * more where the device can repeat a block of a regular layout. For the choice of the chunk
     * size; keyset_map cuts the windows.
     */
    void (*key_limits)(const opal_iov_cache_layout_t *layout, opal_iov_cache_limits_t *limits);

    /**
     * Counters; valid as long as the component is open. With one HCA the structure is updated in
     * place; with several HCAs this call computes the sum.
     */
    const mca_btl_umr_stats_t *(*stats)(void);

    /** Install the handler of FINs (one per process; NULL removes it). */
    void (*set_fin_handler)(mca_btl_umr_fin_fn_t handler, void *context);

    /**
     * The first endpoint to a process. The first call creates it (a queue pair, not yet connected)
     * and looks the peer's HCAs up in the modex.
     *
     * @param[out] endpoint  owned by the HCA until fini
     *
     * @retval OPAL_SUCCESS
     * @retval OPAL_ERR_UNREACH          the peer published no HCA, or one of another fabric or
     *                                   version
     * @retval OPAL_ERR_OUT_OF_RESOURCE  no queue pair available, or btl_umr_max_peers is reached
     */
    int (*endpoint_get)(struct opal_proc_t *proc, mca_btl_umr_endpoint_t **endpoint);

    /**
     * The endpoint to the same process whose local HCA is nearest to some memory. System memory
     * counts by its NUMA node, GPU memory by the part of the PCIe path that GPU and HCA share.
     * Among equals the first endpoint is returned, and a broken one only if all are broken. The
     * sender of a message calls this function; its address selects the endpoint of the receiver.
     * Locations of pages and GPUs are cached. Each call that finds a broken pair counts towards its
     * next generation (btl_umr_rebuilds).
     *
     * @param[in] endpoint  any endpoint to the process
     * @param[in] address   of a byte of the memory
     * @param[in] gpu       number of the GPU that has the memory; -1: system memory
     *
     * @return never NULL; @p endpoint itself where there is no choice
     */
    mca_btl_umr_endpoint_t *(*endpoint_near)(mca_btl_umr_endpoint_t *endpoint, const void *address,
                                             int gpu);

    /**
     * The endpoint to the same process for the pair of HCAs that the peer's address belongs to.
     * Created at its first use, and when the address has a later generation: the previous endpoint
     * is then broken, as the peer's end is.
     *
     * @param[in] endpoint  any endpoint to the process
     *
     * @return never NULL; an endpoint that refuses to connect if there is none
     */
    mca_btl_umr_endpoint_t *(*endpoint_at)(mca_btl_umr_endpoint_t *endpoint,
                                           const mca_btl_umr_address_t *address);

    /**
     * Endpoints to the same process, one per pair of HCAs, for sending parts of one message in
     * parallel: @p endpoint first, then the others that are not broken and do not wait for the
     * answer to a probe, in the order of the pairs, which is the same on both sides. Created at
     * their first use.
     *
     * @param[out] endpoints  room for @p max, which is at least 1
     *
     * @return the number of endpoints; 1 where the two processes share one pair of HCAs
     */
    size_t (*endpoints_beside)(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_endpoint_t **endpoints,
                               size_t max);

    /**
     * This side's address, for the peer. Constant for the life of the endpoint, also when broken.
     */
    void (*endpoint_address)(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_address_t *address);

    /**
     * Connect to the peer's address. No effect if already connected to that address.
     *
     * @retval OPAL_SUCCESS      the peer may write; this side may write once the peer has connected
     * @retval OPAL_ERR_UNREACH  broken, connected to another address, of another generation than
     *                           the address, or refused by the device
     */
    int (*endpoint_connect)(mca_btl_umr_endpoint_t *endpoint, const mca_btl_umr_address_t *address);

    /** True after an error broke the endpoint: no further put is possible. */
    bool (*endpoint_broken)(const mca_btl_umr_endpoint_t *endpoint);

    /**
     * For the receiver of a message that cannot use an endpoint: tests whether the sender must be
     * notified.
     *
     * @param[in]  endpoint  returned by endpoint_at for the sender's address
     * @param[in]  theirs    the sender's address
     * @param[out] address   to send to it, for endpoint_refused
     *
     * @return true: the endpoint is broken, or of another generation than the address
     */
    bool (*endpoint_refuses)(mca_btl_umr_endpoint_t *endpoint, const mca_btl_umr_address_t *theirs,
                             mca_btl_umr_address_t *address);

    /**
     * The receiver of a message refused this endpoint and sent an address (endpoint_refuses). Same
     * generation: the peer's end is broken, and this end breaks too. Later generation: this end
     * breaks, and the next endpoint gets that generation. Earlier generation: the peer has not
     * followed; this endpoint is given up unless it is connected.
     *
     * @param[in] theirs  as received; ignored if it belongs to another HCA than the endpoint
     */
    void (*endpoint_refused)(mca_btl_umr_endpoint_t *endpoint, const mca_btl_umr_address_t *theirs);

    /**
     * Break the endpoint (queue pair to ERR): after return no write of the peer through it reaches
     * memory. Puts and FIN reservations on it end with OPAL_ERR_UNREACH.
     */
    void (*endpoint_break)(mca_btl_umr_endpoint_t *endpoint);

    /**
     * Reserve one receive for a FIN before the peer is allowed to send it. Without a reservation a
     * FIN could find no receive posted. Endpoints share their receives; half of these are for
     * endpoints that have none.
     *
     * @retval OPAL_SUCCESS              released by the arrival of the FIN, or by fin_cancel
     * @retval OPAL_ERR_OUT_OF_RESOURCE  limit of the endpoint reached: retry after a FIN
     * @retval OPAL_ERR_UNREACH          broken
     */
    int (*fin_reserve)(mca_btl_umr_endpoint_t *endpoint);

    /** Release a reservation whose FIN the peer was not allowed to send. */
    void (*fin_cancel)(mca_btl_umr_endpoint_t *endpoint);

    /**
     * Register the memory in @p buffer that the first @p size bytes of the layout's stream touch.
     * Mapped pages between near pieces are registered too; pieces far apart get separate
     * registrations. Served from the registration cache where possible.
     *
     * @param[in]  role    LOCAL: read-only memory is accepted (const data, a file mapped
     *                     PROT_READ). REMOTE: all of it must be writable. A REMOTE registration
     *                     serves LOCAL too
     * @param[out] memory  release with memory_release, after every keyset made from it
     *
     * @retval OPAL_SUCCESS
     * @retval OPAL_ERR_OUT_OF_RESOURCE  the limit of registered memory, or the system's, is reached
     * @retval OPAL_ERR_BAD_PARAM        part of it cannot be registered (not mapped, read-only,
     *                                   ...)
     */
    int (*memory_register)(mca_btl_umr_role_t role, void *buffer,
                           const opal_iov_cache_layout_t *layout, uint64_t size,
                           mca_btl_umr_memory_t **memory);

    /** As memory_register, with the HCA of an endpoint; NULL: with the first HCA. */
    int (*memory_register_at)(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_role_t role,
                              void *buffer, const opal_iov_cache_layout_t *layout, uint64_t size,
                              mca_btl_umr_memory_t **memory);

    /**
     * True if memory of a GPU can probably be registered with the HCA of an endpoint. Uses the
     * attributes from the driver and the results of earlier registrations. Makes no driver call in
     * the steady state.
     *
     * @param[in] endpoint  NULL: true only if all HCAs can register it
     * @param[in] where     as the driver classifies it now
     */
    bool (*gpu_reachable)(mca_btl_umr_endpoint_t *endpoint, const opal_umrddt_gpu_memory_t *where);

    /**
     * As memory_register_at, for a buffer in one allocation of a GPU. The registration stays cached
     * by the allocation's BUFFER_ID until it is evicted or its memory is freed.
     *
     * @param[in] where  the allocation of the buffer. The driver must have classified it after the
     *                   application gave the buffer to this message. Copied
     *
     * @retval OPAL_SUCCESS
     * @retval OPAL_ERR_OUT_OF_RESOURCE  the HCA, or its window into the GPU, is full
     * @retval OPAL_ERR_BAD_PARAM        memory that cannot be registered, or more than one
     *                                   allocation
     */
    int (*memory_register_gpu)(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_role_t role,
                               const opal_umrddt_gpu_memory_t *where, void *buffer,
                               const opal_iov_cache_layout_t *layout, uint64_t size,
                               mca_btl_umr_memory_t **memory);

    /**
     * Make the data that peers wrote into memory, as signalled by their FINs, visible to later
     * readers. No effect for system memory.
     *
     * @param[in] done  called later if and only if OPAL_ERR_WOULD_BLOCK is returned; the memory
     *                  must live until then
     *
     * @retval OPAL_SUCCESS          visible
     * @retval OPAL_ERR_WOULD_BLOCK  visible when done is called with OPAL_SUCCESS
     * @retval OPAL_ERROR            failed (logged)
     */
    int (*memory_flush)(mca_btl_umr_memory_t *memory, mca_btl_umr_done_fn_t done, void *context);

    /** Release. The registrations may stay in the cache. */
    void (*memory_release)(mca_btl_umr_memory_t *memory);

    /**
     * Allow the application to free the memory at any time from now on, before the HCA has reported
     * completion. (Otherwise the memory must not be freed: Open MPI's registration cache aborts the
     * process in that case.) It is released like any other memory.
     *
     * @param[in] memory  ignored if released before, GPU memory, or NULL
     */
    void (*memory_let_go)(mca_btl_umr_memory_t *memory);

    /**
     * Find a keyset in the key cache (keyset_keep) without registering the memory. Returns the
     * keyset that keyset_map would find, if this can be determined without the registration. For
     * system memory only. The keyset keeps its registrations alive; no write through its keys
     * reaches another registration than the one that they were mapped over.
     *
     * @param[in] endpoint  selects the HCA of the keys
     * @param[in] layout    this and the further arguments as for keyset_map
     *
     * @return ready, release as for keyset_map; NULL: register the memory and call keyset_map
     */
    mca_btl_umr_keyset_t *(*keyset_lookup)(mca_btl_umr_endpoint_t *endpoint,
                                           mca_btl_umr_role_t role, void *buffer,
                                           const opal_iov_cache_layout_t *layout, uint64_t chunk,
                                           uint64_t start, uint64_t end, size_t max_keys);

    /**
     * Map keys for windows of [start, end), beginning at start: as many as are available for the
     * role, at most @p max_keys, at least one. keyset->end is the end of the mapped range.
     *
     * If the keyset has ready == false, progress() calls @p done later. If it is ready immediately
     * (plain keys only, or found in the key cache), @p done is not called. After a done with
     * another status than OPAL_SUCCESS the caller must still call keyset_release.
     *
     * A caller that has not yet registered the memory calls keyset_lookup first.
     *
     * @param[in]  memory  must cover the first @p end bytes, and outlive the keyset
     * @param[out] keyset  release with keyset_release
     *
     * @retval OPAL_SUCCESS
     * @retval OPAL_ERR_OUT_OF_RESOURCE  no key available: retry after a keyset of the role is
     *                                   released
     * @retval OPAL_ERR_BAD_PARAM        a range outside of the layout or of the memory
     * @retval OPAL_ERROR                the device refused (logged)
     */
    int (*keyset_map)(mca_btl_umr_role_t role, void *buffer, const opal_iov_cache_layout_t *layout,
                      mca_btl_umr_memory_t *memory, uint64_t chunk, uint64_t start, uint64_t end,
                      size_t max_keys, mca_btl_umr_done_fn_t done, void *context,
                      mca_btl_umr_keyset_t **keyset);

    /**
     * Release the keys. Allowed when no put uses them and, for REMOTE, after the peer's FIN arrived
     * or its endpoint broke; or while they are not ready yet (done is then not called). A work
     * request posted here (from progress() where the queue is full) invalidates a REMOTE mkey. The
     * mkey is not mapped again before, and then with another tag where the device supports it: the
     * HCA refuses the old rkey. A plain key lives as long as its registration.
     */
    void (*keyset_release)(mca_btl_umr_keyset_t *keyset);

    /**
     * As keyset_release after a successful message, but the keys stay mapped in the key cache. The
     * next keyset_map with the same arguments finds the keyset ready if it is still cached and the
     * memory has the same registrations (neither unmapped nor evicted in between). The keyset is
     * evicted when another keyset needs the mkeys, or at the limit btl_umr_key_cache. The HCA still
     * accepts a REMOTE key of the cache, so its peer must write only when allowed to.
     */
    void (*keyset_keep)(mca_btl_umr_keyset_t *keyset);

    /**
     * RDMA-write the whole keyset into the peer's keys, in stream order: one write for each piece
     * that lies in one local and in one remote key. *fin is the immediate data of the last one, or
     * of a write without bytes behind it (btl_umr_notify_size); there is none if fin is NULL: more
     * puts of the same message follow. Posted as far as the send queue has room, the rest from
     * progress(). Puts on one endpoint are posted in the order of the calls.
     *
     * @param[in] keyset   ready, role LOCAL
     * @param[in] remote   the peer's keys for exactly the same bytes; copied
     * @param[in] fin      immediate data, or NULL; copied
     * @param[in] done     called when the last write has completed, or with an error when all
     *                     posted writes have completed or been flushed; never before put returns.
     *                     OPAL_ERR_TIMEOUT (also of put): no answer so far, nothing was posted
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
     * The regions that a peer needs for direct puts into this memory: one for each registration,
     * from the lowest to the highest byte that the layout touches there. (The key covers the whole
     * registration, as long as it is cached.)
     *
     * @param[in]  memory   registered for REMOTE
     * @param[out] regions  room for @p max; those that fit are written, in the order that
     *                      put_direct requires
     *
     * @return the number of regions; 0: not available to peers (btl_umr_plain_keys, or role LOCAL)
     */
    size_t (*memory_regions)(const mca_btl_umr_memory_t *memory, mca_btl_umr_key_t *regions,
                             size_t max);

    /**
     * RDMA-write a range of a layout's stream directly into the peer's layout, without mkeys. Both
     * layouts are walked side by side. Each write goes to one contiguous run of the peer's layout
     * and gathers up to caps()->write_pieces local pieces. Posting, completion and errors as for
     * put. The walk stops when the send queue is full and continues in progress(). All destinations
     * are checked against the regions before the first write is posted.
     *
     * @param[in] direct  copied with its regions; layout, memory and @c to must live until done
     * @param[in] fin, done, context  as put
     *
     * @retval OPAL_SUCCESS
     * @retval OPAL_ERR_BAD_PARAM        nothing to write, a range outside of a layout or of the
     *                                   memory, a byte outside of the regions, or memory registered
     *                                   with another HCA than the endpoint's
     * @retval OPAL_ERR_UNREACH          not connected, or broken
     * @retval OPAL_ERR_OUT_OF_RESOURCE  no memory
     */
    int (*put_direct)(mca_btl_umr_endpoint_t *endpoint, const mca_btl_umr_direct_t *direct,
                      const uint32_t *fin, mca_btl_umr_done_fn_t done, void *context);

    /** Poll completions, post pending work, call callbacks. @return the number of events handled */
    int (*progress)(void);
} mca_btl_umr_hca_ops_t;

/** The component structure; begins with that of the btl framework. */
typedef struct mca_btl_umr_component_t {
    mca_btl_base_component_3_0_0_t super;
    uint32_t api; /**< MCA_BTL_UMR_HCA_API of the component as built */
    const mca_btl_umr_hca_ops_t *ops;
} mca_btl_umr_component_t;

END_C_DECLS

#endif /* MCA_BTL_UMR_HCA_H */
