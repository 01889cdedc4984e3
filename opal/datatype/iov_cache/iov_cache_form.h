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
 * Forms: a layout as a tree of streams over dense blocks. The size of a form depends on the
 * regularity of the layout and not on the number of blocks.
 *
 * A form is a list of *terms* in stream order. A term repeats its *body*, count times, stride bytes
 * apart. The body is a dense block, a list of terms, or, for irregular data, a list of blocks. A
 * vector is one term. A three-dimensional subarray is two nested terms. An array of structs is one
 * term with one inner term per field. A list of particles is blocks. (Streams over dense data:
 * TEMPI, Pearson et al., HPDC 2021. Irregular types as runs of vectors: HAND, Shi et al., HiPC
 * 2014.)
 *
 * The form is *canonical*: adjacent blocks are merged (dense folding), streams of one repetition
 * are removed (elision), nested streams with matching strides become one stream (flattening), and
 * equal terms at equal distances become a stream. This preserves the stream order. So two forms are
 * equal exactly if they have the same bytes at the same stream positions, independent of the MPI
 * datatype constructors. Only opal_iov_cache_form_sorted changes the order, for uses without a
 * stream order.
 *
 * A *segment* is a maximal contiguous piece of memory. Blocks of a form may be adjacent where no
 * shorter form exists (the last field of a struct and the first of the next one). Such blocks are
 * one segment, and functions on segments join them.
 *
 * Offsets are bytes from the buffer address and may be negative; positions are bytes of the stream
 * from 0. Functions do not dereference a buffer unless documented. A form is immutable, so threads
 * can share it; its creator owns it until opal_iov_cache_form_free. Errors are as in iov_cache.h:
 * OPAL_SUCCESS or the listed OPAL_ERR_*, outputs only on success.
 */

#ifndef OPAL_IOV_CACHE_FORM_H
#define OPAL_IOV_CACHE_FORM_H

#include "opal_config.h"

#include <stddef.h>
#include <stdint.h>

#include "opal/datatype/opal_datatype.h"

BEGIN_C_DECLS

/** Maximum nesting of terms. Deeper types become lists of blocks. */
#define OPAL_IOV_CACHE_MAX_DEPTH 16

/** One contiguous piece of a layout. */
typedef struct opal_iov_cache_iov_t {
    int64_t offset;  /**< bytes from the buffer address; may be negative */
    uint64_t length; /**< bytes; never 0 */
} opal_iov_cache_iov_t;

/** Body of a term. */
typedef enum {
    OPAL_IOV_CACHE_DENSE = 0, /**< one block of size bytes */
    OPAL_IOV_CACHE_TERMS = 1, /**< terms first .. first + n - 1 of the form */
    OPAL_IOV_CACHE_BLOCKS = 2 /**< blocks first .. first + n - 1 of the form */
} opal_iov_cache_kind_t;

/** The first segment of this term continues the last one of the previous term. */
#define OPAL_IOV_CACHE_JOINED 0x1
/** The first segment of a repetition continues the last one of the previous repetition. */
#define OPAL_IOV_CACHE_ADJACENT 0x2

/**
 * A stream: count repetitions of a body. The offset of each repetition and of each byte fits 63
 * bits, for the whole count of the layout.
 */
typedef struct opal_iov_cache_term_t {
    int64_t offset;  /**< offset of the first repetition relative to the enclosing body, in bytes */
    uint64_t start;  /**< stream position within the enclosing body */
    uint64_t begins; /**< segments of the enclosing body that begin before this term */
    uint64_t count;  /**< repetitions; at least 1 */
    int64_t stride;  /**< bytes from one repetition to the next; 0 if there is one */
    uint64_t size;   /**< bytes of one repetition; at least 1 */
    uint64_t segments; /**< segments of one repetition */
    uint32_t kind;     /**< opal_iov_cache_kind_t */
    uint32_t flags;    /**< OPAL_IOV_CACHE_JOINED, OPAL_IOV_CACHE_ADJACENT */
    uint64_t first;    /**< index of the first term or block of the body; 0 if dense */
    uint64_t n;        /**< number of terms or blocks of the body; 0 if dense */
} opal_iov_cache_term_t;

/**
 * A block of a list: offset relative to the term's repetition. A form that is a single list is a
 * list of its IOVs; opal_iov_cache_form_view returns them without a copy.
 */
typedef opal_iov_cache_iov_t opal_iov_cache_block_t;

/** The stream position is stored for the first of this many blocks. */
#define OPAL_IOV_CACHE_START_STEP 32

/** A layout in canonical form. Read-only after its creation. */
typedef struct opal_iov_cache_form_t {
    uint64_t size;      /**< bytes in the stream */
    int64_t lb;         /**< lowest offset touched (0 if size is 0) */
    int64_t ub;         /**< one past the highest offset touched */
    uint64_t segments;  /**< segments; 0 only if size is 0 */
    uint64_t uniform;   /**< length of all segments if equal; else 0 */
    uint64_t hash;      /**< see opal_iov_cache_form_hash; 0 until first computed */
    uint32_t depth;     /**< nesting of terms, at most OPAL_IOV_CACHE_MAX_DEPTH */
    size_t term_count;  /**< terms[0] is the root of the whole form; 0 only if size is 0 */
    size_t block_count; /**< blocks of all lists */
    size_t bytes;       /**< memory of the form, including unused space */
    opal_iov_cache_term_t *terms;   /**< a body follows its term */
    opal_iov_cache_block_t *blocks; /**< of all lists */
    uint64_t *starts; /**< position of each OPAL_IOV_CACHE_START_STEP-th block in its body; not
                         written if uniform is set */
} opal_iov_cache_form_t;

/* ---------------------------------------------------------------------------------------------
 * Creation of forms
 * ------------------------------------------------------------------------------------------- */

/**
 * Create the form of (type, count) from opal's optimised description. The cost depends on the size
 * of the description, not on counts in it.
 *
 * Two kinds of types require a walk of their blocks instead: those nested deeper than
 * OPAL_IOV_CACHE_MAX_DEPTH, and those whose description does not match the type's size.
 *
 * @param[in]  type   a committed datatype
 * @param[in]  count  number of elements; 0 gives an empty form
 * @param[out] form   the caller owns it
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_BAD_PARAM        type is not committed, or (type, count) does not fit 63 bits
 * @retval OPAL_ERR_OUT_OF_RESOURCE  no memory
 */
int opal_iov_cache_form_create(const opal_datatype_t *type, size_t count,
                               opal_iov_cache_form_t **form);

/**
 * The form of a list of pieces in stream order.
 *
 * @param[in]  pieces  those of length 0 are dropped
 * @param[in]  n       number of pieces
 * @param[out] form    the caller owns it
 *
 * @retval OPAL_SUCCESS, OPAL_ERR_BAD_PARAM (a sum does not fit 63 bits), OPAL_ERR_OUT_OF_RESOURCE
 */
int opal_iov_cache_form_of_pieces(const opal_iov_cache_iov_t *pieces, size_t n,
                                  opal_iov_cache_form_t **form);

/**
 * The same bytes as @p form in another order: nested streams by decreasing stride, all strides
 * positive, lists by offset. Layouts of the same memory in different orders mostly have the same
 * sorted form. Only for uses that do not depend on the stream order (touched memory, registration).
 * Between a sender and a receiver it is valid only if both sides are permuted alike.
 *
 * @retval OPAL_SUCCESS, OPAL_ERR_OUT_OF_RESOURCE
 * @retval OPAL_ERR_NOT_SUPPORTED  nesting would exceed OPAL_IOV_CACHE_MAX_DEPTH
 */
int opal_iov_cache_form_sorted(const opal_iov_cache_form_t *form, opal_iov_cache_form_t **sorted);

/** Free a form. NULL is allowed. */
void opal_iov_cache_form_free(opal_iov_cache_form_t *form);

/* ---------------------------------------------------------------------------------------------
 * Queries; none of them expands the form
 * ------------------------------------------------------------------------------------------- */

/** Memory that the form uses, in bytes. */
size_t opal_iov_cache_form_bytes(const opal_iov_cache_form_t *form);

/**
 * True if both have the same bytes at the same stream positions. Costs the size of the form if the
 * trees are the same, which is nearly always true for equal layouts. Otherwise, and only if size,
 * bounds, segments and hash agree, one walk of both.
 */
bool opal_iov_cache_form_equal(const opal_iov_cache_form_t *a, const opal_iov_cache_form_t *b);

/**
 * A hash: equal for equal forms, very probably different for others. Computed at the first call,
 * which costs the size of the form, and stored.
 */
uint64_t opal_iov_cache_form_hash(const opal_iov_cache_form_t *form);

/**
 * A cheaper, weaker hash: forms of the same size, bounds and segments have the same key if they
 * agree at a few positions.
 */
uint64_t opal_iov_cache_form_key(const opal_iov_cache_form_t *form);

/** The offset of stream position @p position, which must be below form->size. O(depth). */
int64_t opal_iov_cache_form_offset(const opal_iov_cache_form_t *form, uint64_t position);

/**
 * The stream position of the start of segment @p segment; form->size for form->segments. O(depth),
 * O(1) if form->uniform; plus the logarithm of a list, and a step for some of its blocks.
 */
uint64_t opal_iov_cache_form_segment_start(const opal_iov_cache_form_t *form, uint64_t segment);

/** The segment with stream position @p position (below form->size). Costs as above. */
uint64_t opal_iov_cache_form_segment_at(const opal_iov_cache_form_t *form, uint64_t position);

/** Mean length of a segment, in bytes; 0 for an empty form. */
static inline uint64_t opal_iov_cache_form_density(const opal_iov_cache_form_t *form)
{
    return 0 == form->segments ? 0 : form->size / form->segments;
}

/**
 * Check all invariants of the form, which are documented with the fields.
 *
 * @return NULL if they hold; otherwise a text that names the violation
 */
const char *opal_iov_cache_form_check(const opal_iov_cache_form_t *form);

/* ---------------------------------------------------------------------------------------------
 * Runs
 * ------------------------------------------------------------------------------------------- */

/** A part of the stream: equal blocks at equal distances. */
typedef struct opal_iov_cache_run_t {
    uint64_t position; /**< stream position of its first byte */
    int64_t offset;    /**< of its first byte from the buffer address */
    uint64_t length;   /**< bytes of each block; at least 1 */
    uint64_t count;    /**< blocks; at least 1 */
    int64_t stride;    /**< bytes from one block to the next; 0 if there is one */
} opal_iov_cache_run_t;

/** Position of a walk. Owns no memory: it can be copied and dropped. */
typedef struct opal_iov_cache_cursor_t {
    const opal_iov_cache_form_t *form;
    uint64_t position; /**< next stream position */
    uint64_t end;      /**< stream position to stop at */
    uint32_t level;    /**< frames in use, less one */
    uint64_t skip;     /**< bytes of the current block already returned */
    struct {
        const opal_iov_cache_term_t *term;
        int64_t base;    /**< offset of the current repetition */
        uint64_t repeat; /**< index of the repetition; count if the term is done */
        uint64_t child;  /**< index of the term or block of the body */
    } frames[OPAL_IOV_CACHE_MAX_DEPTH];
} opal_iov_cache_cursor_t;

/** Start a walk of stream positions @p start .. @p end - 1 (cut to the form's size). O(depth). */
void opal_iov_cache_cursor_init(opal_iov_cache_cursor_t *cursor, const opal_iov_cache_form_t *form,
                                uint64_t start, uint64_t end);

/**
 * The next run. A block that the range cuts is a run of its own. Adjacent blocks are not joined;
 * see opal_iov_cache_form_iovs for segments.
 *
 * @return false if the range is done
 */
bool opal_iov_cache_cursor_next(opal_iov_cache_cursor_t *cursor, opal_iov_cache_run_t *run);

/**
 * The segments of stream positions @p start .. @p end - 1 (cut to the form's size); the first and
 * the last may be partial. O(depth) to start, then one step per IOV.
 *
 * @param[in]  max   room in @p iovs
 * @param[out] next  the position to continue from: @p end (or the form's size) once all are done
 *
 * @return IOVs written; 0 only if the range is empty or max is 0
 */
size_t opal_iov_cache_form_iovs(const opal_iov_cache_form_t *form, uint64_t start, uint64_t end,
                                opal_iov_cache_iov_t *iovs, size_t max, uint64_t *next);

/**
 * The same, without a copy where possible: for whole blocks of a form that is one list.
 *
 * @param[in]  iovs   room for @p max, used otherwise
 * @param[out] count  number of IOVs; 0 only if the range is empty or max is 0
 * @param[out] next   as above
 *
 * @return the IOVs: @p iovs, or a read-only part of the form
 */
const opal_iov_cache_iov_t *opal_iov_cache_form_view(const opal_iov_cache_form_t *form,
                                                     uint64_t start, uint64_t end,
                                                     opal_iov_cache_iov_t *iovs, size_t max,
                                                     size_t *count, uint64_t *next);

/* ---------------------------------------------------------------------------------------------
 * Packing
 * ------------------------------------------------------------------------------------------- */

/**
 * Copy stream positions @p start .. @p start + @p length - 1 from a buffer in system memory to
 * @p stream, as MPI_Pack. Ranges may begin and end within a block. O(depth) to start, then the cost
 * of the copy.
 *
 * @param[in]  buffer  the buffer address of MPI calls
 * @param[out] stream  length bytes, must not overlap the buffer
 *
 * @return bytes copied: length, or less if the form ends before
 */
uint64_t opal_iov_cache_form_pack(const opal_iov_cache_form_t *form, const void *buffer,
                                  uint64_t start, uint64_t length, void *stream);

/** The reverse: from @p stream to the buffer; bytes between the blocks are not touched. */
uint64_t opal_iov_cache_form_unpack(const opal_iov_cache_form_t *form, void *buffer, uint64_t start,
                                    uint64_t length, const void *stream);

/* ---------------------------------------------------------------------------------------------
 * The portable form
 * ------------------------------------------------------------------------------------------- */

/** The version that is written, and the only one accepted. */
#define OPAL_IOV_CACHE_FLAT_VERSION 1

/**
 * Encode a form for another process of any byte order. (Yaksa and MPICH send flattened types for
 * one-sided and GPU transfers.)
 *
 * @param[out] flat   may be NULL if room is 0
 * @param[in]  room   bytes at flat
 *
 * @return bytes that the form needs; written only if that is at most room
 */
size_t opal_iov_cache_form_flatten(const opal_iov_cache_form_t *form, void *flat, size_t room);

/** An upper bound of the bytes of opal_iov_cache_form_flatten, from the numbers of blocks and
 * terms. */
static inline uint64_t opal_iov_cache_form_flatten_most(const opal_iov_cache_form_t *form)
{
    /* bytes of a block, of a term, and of the header */
    return form->block_count * UINT64_C(20) + form->term_count * UINT64_C(128) + 64;
}

/**
 * Decode a form from an untrusted source: for any input the result is an error or a form whose
 * invariants all hold. Allocates memory only in proportion to @p bytes.
 *
 * @param[out] form  the caller owns it
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_NOT_SUPPORTED    another version
 * @retval OPAL_ERR_BAD_PARAM        not a flattened form, or of another length
 * @retval OPAL_ERR_OUT_OF_RESOURCE
 */
int opal_iov_cache_form_unflatten(const void *flat, size_t bytes, opal_iov_cache_form_t **form);

/* ---------------------------------------------------------------------------------------------
 * Two layouts at once
 * ------------------------------------------------------------------------------------------- */

/** A part of a stream in two layouts: equal blocks on both sides. */
typedef struct opal_iov_cache_pair_t {
    uint64_t position; /**< stream position of its first byte */
    uint64_t length;   /**< bytes of each block; at least 1 */
    uint64_t count;    /**< blocks; at least 1 */
    int64_t offset[2]; /**< of the first byte, in each layout */
    int64_t stride[2]; /**< from one block to the next; 0 if there is one */
} opal_iov_cache_pair_t;

/** Position of a walk of two layouts; can be copied and dropped like a cursor. */
typedef struct opal_iov_cache_pairs_t {
    opal_iov_cache_cursor_t cursor[2];
    opal_iov_cache_run_t run[2]; /**< rest of the current runs */
    uint64_t skip[2];            /**< bytes of their first blocks already returned */
} opal_iov_cache_pairs_t;

/**
 * Start a walk of two layouts side by side, as a transfer from one to the other needs it. It ends
 * where the shorter one ends, or at @p end. Nothing is expanded.
 */
void opal_iov_cache_pairs_init(opal_iov_cache_pairs_t *pairs, const opal_iov_cache_form_t *a,
                               const opal_iov_cache_form_t *b, uint64_t start, uint64_t end);

/** The next part. @return false if there is none */
bool opal_iov_cache_pairs_next(opal_iov_cache_pairs_t *pairs, opal_iov_cache_pair_t *pair);

END_C_DECLS

#endif /* OPAL_IOV_CACHE_FORM_H */
