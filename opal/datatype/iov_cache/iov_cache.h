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
 * Layouts: what (datatype, count) looks like in memory.
 *
 * A *layout* is the sequence of the contiguous pieces (IOVs) that (datatype, count) touches, in the
 * order of the data stream, each as a byte offset from the buffer address that MPI calls are given
 * (so offsets may be negative and the first need not be 0) and a length in bytes. Pieces that
 * follow each other in the stream and in memory are one IOV; no IOV is empty. The IOVs are not
 * stored: a layout holds them in canonical form (iov_cache_form.h), whose size depends on how
 * regular they are and not on how many. It says nothing about a buffer: one layout serves every
 * buffer of that (datatype, count).
 *
 * The *stream* of a layout is the sequence of its bytes as MPI_Pack would produce them; positions
 * in it are counted from 0. A *chunk* is a range [k * chunk, (k + 1) * chunk) of the stream; a
 * *window* is a part of one chunk that touches a bounded number of IOVs, which is what one mkey can
 * hold. (Chunk windows and their agreement: "Network Assisted Non-Contiguous Transfers for
 * GPU-Aware MPI Libraries", the sliding window over the IOVs.)
 *
 * This room is plain C on opal datatypes. It knows no network, no GPU and no MPI request.
 *
 * Rules that hold for every function here:
 *  - Return values are OPAL_SUCCESS or one of the OPAL_ERR_* named with the function. Outputs are
 *    written only on success.
 *  - Datatypes must be committed (or predefined) and are never retained here; see
 *    opal_iov_cache_forget for what the owner of a datatype owes the cache.
 *  - Functions on a cache, but for its destruction, may be called from several threads at once; a
 *    lookup that finds its layout takes no lock and waits for nobody. A layout is immutable once it
 *    has been handed out; it is reference counted (OBJ_RETAIN, OBJ_RELEASE) and outlives both its
 *    datatype and its cache entry for as long as somebody holds it.
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

/** What (datatype, count) looks like in memory. Read-only for everybody but its maker. */
typedef struct opal_iov_cache_layout_t {
    opal_list_item_t super;      /**< reference count; the list link is nobody's */
    uint64_t id;                 /**< unique in this process, never reused, never 0 */
    uint64_t size;               /**< bytes in the stream */
    int64_t lb;                  /**< lowest offset touched (0 for an empty layout) */
    int64_t ub;                  /**< one past the highest offset touched */
    uint64_t iov_count;          /**< number of IOVs; 0 only if size is 0 */
    opal_iov_cache_form_t *form; /**< the IOVs; its size, lb, ub and segments are the above */
    uint64_t memo[6];            /**< 0 when made; the cache's owner keeps derived numbers here */
} opal_iov_cache_layout_t;
OBJ_CLASS_DECLARATION(opal_iov_cache_layout_t);

/** True if the layout is one piece (or none): nothing to gather or to scatter. */
static inline bool opal_iov_cache_layout_is_contiguous(const opal_iov_cache_layout_t *layout)
{
    return 1 >= layout->iov_count;
}

/**
 * Make the layout of (type, count), without any cache. Costs what opal_iov_cache_form_create does.
 *
 * @param[in]  type    a committed datatype
 * @param[in]  count   how many of it; 0 gives an empty layout
 * @param[out] layout  the new layout; the caller owns one reference
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_BAD_PARAM        type is not committed, or (type, count) does not fit 63 bits
 * @retval OPAL_ERR_OUT_OF_RESOURCE  no memory
 */
int opal_iov_cache_layout_create(const opal_datatype_t *type, size_t count,
                                 opal_iov_cache_layout_t **layout);

/**
 * Make a layout of a form, which belongs to the layout from now on, also if this fails.
 *
 * @retval OPAL_SUCCESS, OPAL_ERR_OUT_OF_RESOURCE
 */
int opal_iov_cache_layout_of_form(opal_iov_cache_form_t *form, opal_iov_cache_layout_t **layout);

/** The stream position at which IOV @p i begins; size for iov_count. O(depth of the form). */
static inline uint64_t opal_iov_cache_layout_start(const opal_iov_cache_layout_t *layout,
                                                   uint64_t i)
{
    return opal_iov_cache_form_segment_start(layout->form, i);
}

/**
 * IOV @p i (below iov_count). O(depth of the form); opal_iov_cache_form_iovs is for several.
 */
static inline opal_iov_cache_iov_t opal_iov_cache_layout_iov(const opal_iov_cache_layout_t *layout,
                                                             uint64_t i)
{
    uint64_t start = opal_iov_cache_layout_start(layout, i);
    opal_iov_cache_iov_t iov = {opal_iov_cache_form_offset(layout->form, start),
                                opal_iov_cache_layout_start(layout, i + 1) - start};

    return iov;
}

/** The IOV that holds stream position @p position; iov_count if position >= size. */
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
 * Asks the owner of datatypes to call opal_iov_cache_forget(cache, type) when @p type dies. Called
 * at most once for a type between its first insertion and its opal_iov_cache_forget, with no lock
 * of the cache held. Never called for a datatype that opal knows as predefined (MPI's pair types
 * are not among those; an owner promises for them at once).
 *
 * @return OPAL_SUCCESS if the promise holds; anything else and nothing of this type is cached
 */
typedef int (*opal_iov_cache_watch_fn_t)(opal_iov_cache_t *cache, const opal_datatype_t *type,
                                         void *context);

/** Counters of a cache; they only grow, but for entries and bytes, which show its present use. */
typedef struct opal_iov_cache_stats_t {
    uint64_t hits;      /**< lookups that found their layout */
    uint64_t misses;    /**< lookups that read the datatype */
    uint64_t shared;    /**< misses whose layout was there already, of another type or count */
    uint64_t evictions; /**< entries that left because of the bound */
    uint64_t forgotten; /**< entries that left because their datatype died */
    uint64_t uncached;  /**< layouts made and not kept (too big, not watched, or raced) */
    uint64_t entries;   /**< (type, count) with a layout in the cache now */
    uint64_t bytes;     /**< memory in use now: see opal_iov_cache_create */
} opal_iov_cache_stats_t;

/**
 * Make a cache of layouts.
 *
 * The bound is for everything that a cache allocates after this call: layouts, entries, records of
 * types and larger tables. Entries and tables keep their memory until the cache is destroyed, for
 * the next layouts; entries get at most half of the bound. The least recently used leave first;
 * where opal_using_threads(), all uses between two insertions count as one moment, so that hits
 * need not agree on an order.
 *
 * @param[in]  max_bytes  the bound; a layout that alone is larger is made but not kept; 0 keeps
 *                        nothing
 * @param[in]  watch      see above; NULL: only predefined datatypes are kept
 * @param[in]  context    handed to watch
 * @param[out] cache      the new cache; free it with opal_iov_cache_destroy
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_OUT_OF_RESOURCE
 */
int opal_iov_cache_create(size_t max_bytes, opal_iov_cache_watch_fn_t watch, void *context,
                          opal_iov_cache_t **cache);

/**
 * Drop every entry and the cache, which nobody else may be using now or later. Layouts still held
 * by somebody live on. NULL is allowed.
 */
void opal_iov_cache_destroy(opal_iov_cache_t *cache);

/**
 * The layout of (type, count): from the cache, or made now and kept. However many (type, count)
 * have the same layout (opal_iov_cache_form_equal), they share one, with one id and one memo.
 *
 * The identity is the address of @p type together with the promise of the watch function: an entry
 * can never be hit by another datatype that was later given the same address. A hit costs one hash
 * lookup and walks nothing; it takes no lock, and no other call can hold it up (iov_cache_entry.h).
 * A lookup that is led astray by changes of the table just then looks again with the lock, and so
 * does one that comes by more than 64 entries of one hash. A miss takes the lock, but not while it
 * reads the type. Of one layout no more than 2^18 (type, count) are kept.
 *
 * @param[out] layout  the caller owns one reference (OBJ_RELEASE when done)
 *
 * @retval OPAL_SUCCESS, and the errors of opal_iov_cache_layout_create
 */
int opal_iov_cache_get(opal_iov_cache_t *cache, const opal_datatype_t *type, size_t count,
                       opal_iov_cache_layout_t **layout);

/** The datatype dies: drop its entries, for every count. Unknown types are fine. */
void opal_iov_cache_forget(opal_iov_cache_t *cache, const opal_datatype_t *type);

/**
 * Copy the counters. Takes a step for each entry, where hits are counted. While other threads look
 * things up, some of their last hits may be missing; none is counted twice, and none is lost.
 */
void opal_iov_cache_stats(opal_iov_cache_t *cache, opal_iov_cache_stats_t *stats);

/**
 * Walk all invariants (entries reachable both ways, memory sums, the order of use).
 *
 * @return true if they hold; a message on stderr says which does not
 */
bool opal_iov_cache_check(opal_iov_cache_t *cache);

/* ---------------------------------------------------------------------------------------------
 * Chunk windows
 * ------------------------------------------------------------------------------------------- */

/** What one key can hold. */
typedef struct opal_iov_cache_limits_t {
    size_t max_iovs;    /**< entries of a key; at least 1 */
    uint64_t max_bytes; /**< bytes of a key; at least 1 */
} opal_iov_cache_limits_t;

/** A part of one chunk that one key can hold. Its IOVs: opal_iov_cache_window_iovs. */
typedef struct opal_iov_cache_window_t {
    uint64_t start;     /**< its first stream position */
    uint64_t length;    /**< bytes; never 0 */
    uint64_t iov_count; /**< IOVs it touches, the first and the last perhaps in part */
} opal_iov_cache_window_t;

/**
 * The window that begins at @p start.
 *
 * It ends at the next chunk border, at @p end, or where the limits are reached, whichever comes
 * first; so consecutive windows (each at the end of the one before) tile [start, end), and none
 * crosses a chunk border. Allocates nothing. O(depth of the form), and for lists of blocks the
 * logarithm of their number.
 *
 * @param[in]  layout
 * @param[in]  limits
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
 * A side's proposal: a large chunk such that every chunk of the first @p size bytes fits one
 * window.
 *
 * It is size itself where the whole fits; the sum of the fewest bytes that max_iovs successive IOVs
 * hold where chunks of that size fit (for equal blocks: max_iovs blocks); else the largest chunk
 * that the sliding window proves for any alignment.
 *
 * @return the chunk in bytes, 1 .. size; 0 only if size is 0
 */
uint64_t opal_iov_cache_chunk(const opal_iov_cache_layout_t *layout,
                              const opal_iov_cache_limits_t *limits, uint64_t size);

/**
 * The agreement: what the receiver answers to the sender's proposal.
 *
 * The result divides @p proposal, so every chunk of it lies within one chunk of the sender and fits
 * the sender's keys without the receiver knowing the sender's layout. It is the largest such
 * divisor (proposal / 1, / 2, ... down to proposal / 16 and not below @p floor) whose chunks fit
 * the receiver's windows too; where there is none, it is the proposal itself, and the receiver's
 * windows split its chunks (never an error: a write may address any part of a key).
 *
 * @param[in] layout    the receiver's
 * @param[in] limits    the receiver's keys
 * @param[in] size      bytes that will be transferred, at most layout->size
 * @param[in] proposal  the sender's chunk; 0 is taken as size
 * @param[in] floor     smallest chunk worth a write, in bytes
 *
 * @return the agreed chunk, 1 .. max(size, proposal); 0 only if size is 0
 */
uint64_t opal_iov_cache_agree(const opal_iov_cache_layout_t *layout,
                              const opal_iov_cache_limits_t *limits, uint64_t size,
                              uint64_t proposal, uint64_t floor);

END_C_DECLS

#endif /* OPAL_IOV_CACHE_H */
