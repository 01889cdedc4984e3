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
 * Layouts: the memory that (datatype, count) describes. Read this file first, then
 * iov_cache_form.h.
 *
 * A *layout* is the sequence of the contiguous pieces (IOVs) of (datatype, count), in the order of
 * the data stream. Each IOV has a byte offset from the buffer address of MPI calls and a length in
 * bytes. Offsets may be negative, and the first need not be 0. Pieces that follow each other in the
 * stream and in memory are one IOV; no IOV is empty. The IOVs are not stored: a layout stores them
 * in canonical form (iov_cache_form.h), whose size depends on their regularity and not on their
 * number. One layout serves every buffer of that (datatype, count).
 *
 * The *stream* of a layout is the sequence of its bytes in the order of MPI_Pack; its positions
 * start at 0. A *chunk* is a range [k * chunk, (k + 1) * chunk) of the stream. A *window* is a part
 * of one chunk with a limited number of IOVs, which one mkey can hold. (Chunk windows and their
 * agreement: "Network Assisted Non-Contiguous Transfers for GPU-Aware MPI Libraries", the sliding
 * window over the IOVs.)
 *
 * This library is plain C on opal datatypes. It uses no network, no GPU and no MPI request.
 *
 * Rules for every function:
 *  - Return values are OPAL_SUCCESS or one of the OPAL_ERR_* listed with the function. Outputs are
 *    written only on success.
 *  - Datatypes must be committed (or predefined). They are never retained; the owner of a datatype
 *    must call opal_iov_cache_forget before it is freed.
 *  - Functions on a cache, except its destruction, may be called from several threads at once. A
 *    lookup that finds its layout takes no lock and never waits. A published layout is immutable
 *    and reference counted (OBJ_RETAIN, OBJ_RELEASE). It lives as long as a reference exists, also
 *    after its datatype and its cache entry.
 *  - No function dereferences a user's buffer.
 */

#ifndef OPAL_IOV_CACHE_H
#define OPAL_IOV_CACHE_H

#include "opal_config.h"

#include <stddef.h>
#include <stdint.h>

#include "opal/class/opal_list.h"
#include "opal/datatype/opal_datatype.h"

#include "opal/datatype/iov_cache/iov_cache_form.h"

BEGIN_C_DECLS

/** The memory that (datatype, count) describes. Read-only after its creation. */
typedef struct opal_iov_cache_layout_t {
    opal_list_item_t super;      /**< reference count; the list link is unused */
    uint64_t id;                 /**< unique in this process, never reused, never 0 */
    uint64_t size;               /**< bytes in the stream */
    int64_t lb;                  /**< lowest offset touched (0 for an empty layout) */
    int64_t ub;                  /**< one past the highest offset touched */
    uint64_t iov_count;          /**< number of IOVs; 0 only if size is 0 */
    opal_iov_cache_form_t *form; /**< the IOVs; its size, lb, ub and segments equal the above */
    uint64_t memo[5]; /**< initially 0; the owner of the cache stores derived values here */
} opal_iov_cache_layout_t;
OBJ_CLASS_DECLARATION(opal_iov_cache_layout_t);

/** True if the layout is one piece or none: no gather or scatter is needed. */
static inline bool opal_iov_cache_layout_is_contiguous(const opal_iov_cache_layout_t *layout)
{
    return 1 >= layout->iov_count;
}

/**
 * Create the layout of (type, count) without a cache. Costs as much as opal_iov_cache_form_create.
 *
 * @param[in]  type    a committed datatype
 * @param[in]  count   number of elements; 0 gives an empty layout
 * @param[out] layout  the new layout; the caller owns one reference
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_BAD_PARAM        type is not committed, or (type, count) does not fit 63 bits
 * @retval OPAL_ERR_OUT_OF_RESOURCE  no memory
 */
int opal_iov_cache_layout_create(const opal_datatype_t *type, size_t count,
                                 opal_iov_cache_layout_t **layout);

/**
 * Create a layout from a form. The layout takes ownership of the form, also on failure.
 *
 * @retval OPAL_SUCCESS, OPAL_ERR_OUT_OF_RESOURCE
 */
int opal_iov_cache_layout_of_form(opal_iov_cache_form_t *form, opal_iov_cache_layout_t **layout);

/** The stream position of the start of IOV @p i; size for iov_count. O(depth of the form). */
static inline uint64_t opal_iov_cache_layout_start(const opal_iov_cache_layout_t *layout,
                                                   uint64_t i)
{
    return opal_iov_cache_form_segment_start(layout->form, i);
}

/**
 * IOV @p i (below iov_count). O(depth of the form); for several IOVs use opal_iov_cache_form_iovs.
 */
static inline opal_iov_cache_iov_t opal_iov_cache_layout_iov(const opal_iov_cache_layout_t *layout,
                                                             uint64_t i)
{
    uint64_t start = opal_iov_cache_layout_start(layout, i);
    opal_iov_cache_iov_t iov = {opal_iov_cache_form_offset(layout->form, start),
                                opal_iov_cache_layout_start(layout, i + 1) - start};

    return iov;
}

/** The IOV with stream position @p position; iov_count if position >= size. */
static inline uint64_t opal_iov_cache_layout_find(const opal_iov_cache_layout_t *layout,
                                                  uint64_t position)
{
    return position < layout->size ? opal_iov_cache_form_segment_at(layout->form, position)
                                   : layout->iov_count;
}

/* ---------------------------------------------------------------------------------------------
 * The cache
 * ------------------------------------------------------------------------------------------- */

typedef struct opal_iov_cache_t opal_iov_cache_t;

/**
 * Callback: requests that the owner of datatypes calls opal_iov_cache_forget(cache, type) before
 * @p type is freed. Called at most once for a type between its first insertion and its
 * opal_iov_cache_forget, with no lock of the cache held. Not called for predefined opal datatypes.
 * (MPI's pair types are not among those; an owner can accept them at once.)
 *
 * @return OPAL_SUCCESS if the owner will call; on other values nothing of this type is cached
 */
typedef int (*opal_iov_cache_watch_fn_t)(opal_iov_cache_t *cache, const opal_datatype_t *type,
                                         void *context);

/** Counters of a cache. They only grow, except entries and bytes, which show the current use. */
typedef struct opal_iov_cache_stats_t {
    uint64_t hits;      /**< lookups that found their layout */
    uint64_t misses;    /**< lookups that read the datatype */
    uint64_t shared;    /**< misses whose layout existed already, for another type or count */
    uint64_t evictions; /**< entries evicted because of the limit */
    uint64_t forgotten; /**< entries removed because their datatype was freed */
    uint64_t uncached;  /**< layouts created and not cached (too big, not watched, or raced) */
    uint64_t entries;   /**< (type, count) with a layout in the cache now */
    uint64_t bytes;     /**< memory in use now: see opal_iov_cache_create */
} opal_iov_cache_stats_t;

/* clang-format off */
/** The counters that users see: name, member of opal_iov_cache_stats_t, whether it is a present
 * value, help. */
#define OPAL_IOV_CACHE_COUNTERS(X) \
    X(layout_hits, hits, false, "Layouts found in the cache") \
    X(layout_misses, misses, false, "Layouts made by reading a datatype") \
    X(layout_shared, shared, false, \
      "Of these, layouts that were already cached for another type or count") \
    X(layout_evictions, evictions, false, "Layouts evicted because of the cache's bound") \
    X(layout_entries, entries, true, "Datatypes and counts in the layout cache (present value)") \
    X(layout_bytes, bytes, true, "Memory of the layout cache (present value)")
/* clang-format on */

/**
 * Create a cache of layouts.
 *
 * The limit covers all memory that the cache allocates after this call: layouts, entries, records
 * of types and larger tables. Entries and tables are reused and not freed until the cache is
 * destroyed; entries get at most half of the limit. The least recently used entries are evicted
 * first. With opal_using_threads(), all uses between two insertions have the same time, so that
 * hits need not agree on an order.
 *
 * @param[in]  max_bytes  the limit; a layout that alone is larger is returned but not cached; 0
 *                        disables caching
 * @param[in]  watch      see above; NULL: only predefined datatypes are cached
 * @param[in]  context    passed to watch
 * @param[out] cache      the new cache; free it with opal_iov_cache_destroy
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_OUT_OF_RESOURCE
 */
int opal_iov_cache_create(size_t max_bytes, opal_iov_cache_watch_fn_t watch, void *context,
                          opal_iov_cache_t **cache);

/**
 * Remove every entry and free the cache. No other thread may use it during or after this call.
 * Layouts with other references stay valid. NULL is allowed.
 */
void opal_iov_cache_destroy(opal_iov_cache_t *cache);

/**
 * The layout of (type, count): from the cache, or created and cached. All (type, count) with the
 * same layout (opal_iov_cache_form_equal) share one, with one id and one memo.
 *
 * Entries are identified by the address of @p type. The watch callback guarantees that an entry is
 * removed before another datatype can have that address. A hit costs one hash lookup without a walk
 * of the datatype; it takes no lock and cannot be delayed by other calls (iov_cache_cache.h). A
 * lookup that fails because of concurrent changes of the table is repeated with the lock, and so is
 * one that passes more than 64 entries of one hash. A miss takes the lock, but not while it reads
 * the type. At most 2^18 (type, count) of one layout are cached.
 *
 * @param[out] layout  the caller owns one reference (OBJ_RELEASE when done)
 *
 * @retval OPAL_SUCCESS, and the errors of opal_iov_cache_layout_create
 */
int opal_iov_cache_get(opal_iov_cache_t *cache, const opal_datatype_t *type, size_t count,
                       opal_iov_cache_layout_t **layout);

/**
 * Remove the entries of a datatype for every count. Must be called before the datatype is freed.
 * Unknown types are allowed.
 */
void opal_iov_cache_forget(opal_iov_cache_t *cache, const opal_datatype_t *type);

/**
 * Copy the counters. Takes time for each entry, where hits are counted. During concurrent lookups
 * some of the last hits may be missing; none is counted twice or lost.
 */
void opal_iov_cache_stats(opal_iov_cache_t *cache, opal_iov_cache_stats_t *stats);

/**
 * Check all invariants (entries reachable both ways, memory sums, the LRU order).
 *
 * @return true if they hold; otherwise a message on stderr names the violation
 */
bool opal_iov_cache_check(opal_iov_cache_t *cache);

/* ---------------------------------------------------------------------------------------------
 * Chunk windows
 * ------------------------------------------------------------------------------------------- */

/** Capacity of one key. */
typedef struct opal_iov_cache_limits_t {
    size_t max_iovs;    /**< entries of a key; at least 1 */
    uint64_t max_bytes; /**< bytes of a key; at least 1 */
} opal_iov_cache_limits_t;

/** A part of one chunk that fits in one key. For its IOVs see opal_iov_cache_window_iovs. */
typedef struct opal_iov_cache_window_t {
    uint64_t start;     /**< its first stream position */
    uint64_t length;    /**< bytes; never 0 */
    uint64_t iov_count; /**< its IOVs; the first and the last may be partial */
} opal_iov_cache_window_t;

/**
 * The window that starts at @p start.
 *
 * It ends at the next chunk border, at @p end, or where the limits are reached, whichever comes
 * first. So consecutive windows tile [start, end), and none crosses a chunk border. Allocates
 * nothing. O(depth of the form), plus the logarithm of the number of blocks for lists of blocks.
 *
 * @param[in] layout
 * @param[in] limits
 * @param[in]  chunk     chunk size in bytes; 0: one chunk for all
 * @param[in]  start     stream position, start < end
 * @param[in]  end       stream position, end <= layout->size
 * @param[out] window
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_BAD_PARAM  start >= end, end > size, or a limit of 0
 */
int opal_iov_cache_window(const opal_iov_cache_layout_t *layout,
                          const opal_iov_cache_limits_t *limits, uint64_t chunk, uint64_t start,
                          uint64_t end, opal_iov_cache_window_t *window);

/**
 * The IOVs of a window, cut to it.
 *
 * @param[out] iovs  room for @p max, of which window->iov_count are written, or max if that is less
 *
 * @return IOVs written
 */
static inline size_t opal_iov_cache_window_iovs(const opal_iov_cache_layout_t *layout,
                                                const opal_iov_cache_window_t *window,
                                                opal_iov_cache_iov_t *iovs, size_t max)
{
    uint64_t next;

    return opal_iov_cache_form_iovs(layout->form, window->start, window->start + window->length,
                                    iovs, max, &next);
}

/**
 * The number of windows that tile [start, end).
 *
 * @retval OPAL_SUCCESS, OPAL_ERR_BAD_PARAM as opal_iov_cache_window
 */
int opal_iov_cache_window_count(const opal_iov_cache_layout_t *layout,
                                const opal_iov_cache_limits_t *limits, uint64_t chunk,
                                uint64_t start, uint64_t end, size_t *count);

/**
 * True if every chunk of the first @p size bytes of the stream fits one window.
 */
bool opal_iov_cache_chunk_fits(const opal_iov_cache_layout_t *layout,
                               const opal_iov_cache_limits_t *limits, uint64_t size,
                               uint64_t chunk);

/**
 * The chunk that one side proposes: a large chunk such that every chunk of the first @p size bytes
 * fits one window.
 *
 * It is size itself if the whole fits. Otherwise it is the minimum number of bytes in max_iovs
 * successive IOVs, if chunks of that size fit (for equal blocks: max_iovs blocks). Otherwise it is
 * the largest chunk for which the sliding window fits at any alignment.
 *
 * @return the chunk in bytes, 1 .. size; 0 only if size is 0
 */
uint64_t opal_iov_cache_chunk(const opal_iov_cache_layout_t *layout,
                              const opal_iov_cache_limits_t *limits, uint64_t size);

/**
 * The agreed chunk: the receiver's answer to the sender's proposal.
 *
 * The result divides @p proposal. So every chunk lies within one chunk of the sender and fits the
 * sender's keys, without the sender's layout. It is the largest such
 * divisor (proposal / 1, / 2, ... down to proposal / 16 and not below @p floor) whose chunks also
 * fit the receiver's windows. If there is none, it is the proposal itself, and the receiver's
 * windows split its chunks (never an error: a write may address any part of a key).
 *
 * @param[in] layout    the receiver's
 * @param[in] limits    the receiver's keys
 * @param[in] size      bytes to transfer, at most layout->size
 * @param[in] proposal  the sender's chunk; 0 counts as size
 * @param[in] floor     smallest chunk worth a write, in bytes
 *
 * @return the agreed chunk, 1 .. max(size, proposal); 0 only if size is 0
 */
uint64_t opal_iov_cache_agree(const opal_iov_cache_layout_t *layout,
                              const opal_iov_cache_limits_t *limits, uint64_t size,
                              uint64_t proposal, uint64_t floor);

END_C_DECLS

#endif /* OPAL_IOV_CACHE_H */
