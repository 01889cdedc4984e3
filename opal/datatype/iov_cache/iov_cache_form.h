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
 * Forms: a layout as a tree of streams over dense blocks, whose size depends on how regular the
 * layout is and not on how many blocks it has.
 *
 * A form is a list of *terms* in stream order. A term repeats its *body*, count times, stride bytes
 * apart; the body is a dense block, or a list of terms again, or, where nothing is regular, a list
 * of blocks. A vector is one term; a subarray of three dimensions is two, one within the other; an
 * array of structs is one term with a body of one term a field; a list of particles is blocks.
 * (Streams over dense data: TEMPI, Pearson et al., HPDC 2021. Irregular types as runs of vectors:
 * HAND, Shi et al., HiPC 2014.)
 *
 * The form is *canonical*: blocks that continue each other are one (dense folding), streams of one
 * repetition vanish (elision), a stream of a stream with matching strides is one stream
 * (flattening), and equal terms at equal distances become a stream. None of this changes the order
 * of the stream, so two forms are equal exactly if they have the same bytes at the same stream
 * positions, however MPI was told. Only opal_iov_cache_form_sorted gives up the order, for uses
 * where it does not matter.
 *
 * A *segment* is a piece of memory that is as long as it can be: where one ends, the stream goes on
 * elsewhere. Blocks of a form may continue each other where that cannot be said by a shorter form
 * (the last field of a struct and the first of the next one); such blocks are one segment, and what
 * counts or delivers segments here has joined them.
 *
 * Offsets are bytes from the buffer address and may be negative; positions are bytes of the stream
 * from 0. Nothing here dereferences a buffer unless it says so. A form is immutable, so threads can
 * share one; it belongs to who made it, until opal_iov_cache_form_free. Errors are as in
 * iov_cache.h: OPAL_SUCCESS or the OPAL_ERR_* named, outputs only on success.
 */

#ifndef OPAL_IOV_CACHE_FORM_H
#define OPAL_IOV_CACHE_FORM_H

#include "opal_config.h"

#include <stddef.h>
#include <stdint.h>

#include "opal/datatype/opal_datatype.h"

BEGIN_C_DECLS

/** Terms within each other, at most. Deeper types become lists of blocks. */
#define OPAL_IOV_CACHE_MAX_DEPTH 16

/** One contiguous piece of a layout. */
typedef struct opal_iov_cache_iov_t {
    int64_t offset;  /**< bytes from the buffer address; may be negative */
    uint64_t length; /**< bytes; never 0 */
} opal_iov_cache_iov_t;

/** What a term repeats. */
typedef enum {
    OPAL_IOV_CACHE_DENSE = 0, /**< one block of size bytes */
    OPAL_IOV_CACHE_TERMS = 1, /**< terms first .. first + n - 1 of the form */
    OPAL_IOV_CACHE_BLOCKS = 2 /**< blocks first .. first + n - 1 of the form */
} opal_iov_cache_kind_t;

/** The first segment of this term goes on where the last one of the term before it ends. */
#define OPAL_IOV_CACHE_JOINED 0x1
/** The first segment of a repetition goes on where the last one of the repetition before ends. */
#define OPAL_IOV_CACHE_ADJACENT 0x2

/** A stream: count repetitions of a body. Each of them begins at an offset of 63 bits, from where
 * the layout's count, and so does each of its bytes. */
typedef struct opal_iov_cache_term_t {
    int64_t offset;    /**< of its first repetition from the one of the enclosing body, in bytes */
    uint64_t start;    /**< stream position within the enclosing body */
    uint64_t begins;   /**< segments of the enclosing body that begin before this term */
    uint64_t count;    /**< repetitions; at least 1 */
    int64_t stride;    /**< bytes from one repetition to the next; 0 if there is one */
    uint64_t size;     /**< bytes of one repetition; at least 1 */
    uint64_t segments; /**< segments of one repetition */
    uint32_t kind;     /**< opal_iov_cache_kind_t */
    uint32_t flags;    /**< OPAL_IOV_CACHE_JOINED, OPAL_IOV_CACHE_ADJACENT */
    uint64_t first;    /**< index of the first term or block of the body; 0 if dense */
    uint64_t n;        /**< how many the body has; 0 if dense */
} opal_iov_cache_term_t;

/**
 * A block of a list: offset from the term's repetition. A form that is nothing but one list is a
 * list of its IOVs, which opal_iov_cache_form_view hands out as they are.
 */
typedef opal_iov_cache_iov_t opal_iov_cache_block_t;

/** Of so many blocks the stream position of the first is written down. */
#define OPAL_IOV_CACHE_START_STEP 32

/** A layout in canonical form. Read-only for everybody but its maker. */
typedef struct opal_iov_cache_form_t {
    uint64_t size;      /**< bytes in the stream */
    int64_t lb;         /**< lowest offset touched (0 if size is 0) */
    int64_t ub;         /**< one past the highest offset touched */
    uint64_t segments;  /**< segments; 0 only if size is 0 */
    uint64_t uniform;   /**< length of all segments if they have the same one; else 0 */
    uint64_t hash;      /**< as opal_iov_cache_form_hash tells it; 0 until somebody has asked */
    uint32_t depth;     /**< terms within each other, at most OPAL_IOV_CACHE_MAX_DEPTH */
    size_t term_count;  /**< terms[0] is the root and all of the form; 0 only if size is 0 */
    size_t block_count; /**< blocks of all lists */
    size_t bytes;       /**< memory of the form, also what was left free when it was made */
    opal_iov_cache_term_t *terms;   /**< a body lies behind its term */
    opal_iov_cache_block_t *blocks; /**< of all lists */
    uint64_t *starts; /**< where each OPAL_IOV_CACHE_START_STEP-th block begins in its body;
                           not written where uniform says it */
} opal_iov_cache_form_t;

/* ---------------------------------------------------------------------------------------------
 * Making forms
 * ------------------------------------------------------------------------------------------- */

/**
 * The form of (type, count), read from opal's optimised description: costs its size, whatever the
 * counts in it.
 *
 * Two kinds of types cost a walk of their blocks instead: those nested deeper than
 * OPAL_IOV_CACHE_MAX_DEPTH, and those whose description does not give the type's size.
 *
 * @param[in]  type   a committed datatype
 * @param[in]  count  how many of it; 0 gives an empty form
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
 * positive, lists by offset. Layouts that touch the same memory in different orders mostly have the
 * same sorted form. Only for what does not care about the order of the stream (what memory is
 * touched, how it is best registered); between a sender and a receiver it is legal only if both
 * sides are permuted alike.
 *
 * @retval OPAL_SUCCESS, OPAL_ERR_OUT_OF_RESOURCE
 * @retval OPAL_ERR_NOT_SUPPORTED  it would be nested deeper than OPAL_IOV_CACHE_MAX_DEPTH
 */
int opal_iov_cache_form_sorted(const opal_iov_cache_form_t *form, opal_iov_cache_form_t **sorted);

/** Free a form. NULL is allowed. */
void opal_iov_cache_form_free(opal_iov_cache_form_t *form);

/* ---------------------------------------------------------------------------------------------
 * Questions, none of which expands the form
 * ------------------------------------------------------------------------------------------- */

/** Memory that the form uses, in bytes. */
size_t opal_iov_cache_form_bytes(const opal_iov_cache_form_t *form);

/**
 * True if both have the same bytes at the same stream positions. Costs the size of the form where
 * the trees are the same, which they nearly always are if the layouts are; else, and only where all
 * else agrees (size, bounds, segments, hash), one walk of both.
 */
bool opal_iov_cache_form_equal(const opal_iov_cache_form_t *a, const opal_iov_cache_form_t *b);

/**
 * A number that is the same for equal forms and very probably another one for others. Worked out
 * when it is asked for first, which costs the size of the form, and remembered.
 */
uint64_t opal_iov_cache_form_hash(const opal_iov_cache_form_t *form);

/**
 * The same at the cost of a few questions, and not so sharp: forms of the same size, bounds and
 * segments have the same key if they agree at a few places.
 */
uint64_t opal_iov_cache_form_key(const opal_iov_cache_form_t *form);

/** The offset of stream position @p position, which must be below form->size. O(depth). */
int64_t opal_iov_cache_form_offset(const opal_iov_cache_form_t *form, uint64_t position);

/**
 * The stream position at which segment @p segment begins; form->size for form->segments. O(depth),
 * O(1) where form->uniform; in a list its logarithm, and a step for some of its blocks.
 */
uint64_t opal_iov_cache_form_segment_start(const opal_iov_cache_form_t *form, uint64_t segment);

/** The segment that holds stream position @p position (below form->size). Costs as above. */
uint64_t opal_iov_cache_form_segment_at(const opal_iov_cache_form_t *form, uint64_t position);

/** Mean length of a segment, in bytes; 0 for an empty form. */
static inline uint64_t opal_iov_cache_form_density(const opal_iov_cache_form_t *form)
{
    return 0 == form->segments ? 0 : form->size / form->segments;
}

/**
 * Walk all invariants of the form, each of which is written down with the fields.
 *
 * @return NULL if they hold; else a text that says which does not
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

/** Where a walk is. No memory behind it: it can be copied, and simply forgotten. */
typedef struct opal_iov_cache_cursor_t {
    const opal_iov_cache_form_t *form;
    uint64_t position; /**< next stream position */
    uint64_t end;      /**< stream position to stop at */
    uint32_t level;    /**< frames in use, less one */
    uint64_t skip;     /**< bytes of the present block that lie behind */
    struct {
        const opal_iov_cache_term_t *term;
        int64_t base;    /**< offset of the present repetition */
        uint64_t repeat; /**< which repetition; count if the term is done */
        uint64_t child;  /**< which term or block of the body */
    } frames[OPAL_IOV_CACHE_MAX_DEPTH];
} opal_iov_cache_cursor_t;

/** Begin a walk of stream positions @p start .. @p end - 1 (cut to the form's size). O(depth). */
void opal_iov_cache_cursor_init(opal_iov_cache_cursor_t *cursor, const opal_iov_cache_form_t *form,
                                uint64_t start, uint64_t end);

/**
 * The next run. A block that the range cuts is a run of its own. Blocks that continue each other
 * are not joined; see opal_iov_cache_form_iovs for segments.
 *
 * @return false if the range is done
 */
bool opal_iov_cache_cursor_next(opal_iov_cache_cursor_t *cursor, opal_iov_cache_run_t *run);

/**
 * The segments of stream positions @p start .. @p end - 1 (cut to the form's size), the first and
 * the last perhaps in part. O(depth) to start, then a step an IOV.
 *
 * @param[in]  max   room in @p iovs
 * @param[out] next  the position to go on from: @p end (or the form's size) once all are done
 *
 * @return IOVs written; 0 only if the range is empty or max is 0
 */
size_t opal_iov_cache_form_iovs(const opal_iov_cache_form_t *form, uint64_t start, uint64_t end,
                                opal_iov_cache_iov_t *iovs, size_t max, uint64_t *next);

/**
 * The same, without a copy of what the form has as it is: whole blocks of a form that is one list.
 *
 * @param[in]  iovs   room for @p max, used for everything else
 * @param[out] count  how many there are now; 0 only if the range is empty or max is 0
 * @param[out] next   as above
 *
 * @return the IOVs: @p iovs, or a part of the form, which nobody may write to
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
 * @p stream: what MPI_Pack would put there. Ranges may begin and end within a block. O(depth) to
 * start, then what the copy costs.
 *
 * @param[in]  buffer  what MPI calls would be given
 * @param[out] stream  length bytes, apart from the buffer's
 *
 * @return bytes copied: length, or less if the form ends before
 */
uint64_t opal_iov_cache_form_pack(const opal_iov_cache_form_t *form, const void *buffer,
                                  uint64_t start, uint64_t length, void *stream);

/** The way back: from @p stream to the buffer; bytes between the blocks are not touched. */
uint64_t opal_iov_cache_form_unpack(const opal_iov_cache_form_t *form, void *buffer, uint64_t start,
                                    uint64_t length, const void *stream);

/* ---------------------------------------------------------------------------------------------
 * The portable form
 * ------------------------------------------------------------------------------------------- */

/** The version that is written, and the only one that is read. */
#define OPAL_IOV_CACHE_FLAT_VERSION 1

/**
 * Write a form so that another process, of whatever byte order, can read it. (Yaksa and MPICH ship
 * flattened types for one-sided and GPU transfers.)
 *
 * @param[out] flat   may be NULL if room is 0
 * @param[in]  room   bytes at flat
 *
 * @return bytes that the form needs; written only if that is at most room
 */
size_t opal_iov_cache_form_flatten(const opal_iov_cache_form_t *form, void *flat, size_t room);

/**
 * Read a form that somebody else wrote, and believe none of it: whatever the bytes are, the result
 * is an error or a form of which every invariant holds. Memory is asked for only in proportion to
 * @p bytes.
 *
 * @param[out] form  the caller owns it
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_NOT_SUPPORTED    another version
 * @retval OPAL_ERR_BAD_PARAM        not a flattened form, or more or fewer bytes than one has
 * @retval OPAL_ERR_OUT_OF_RESOURCE
 */
int opal_iov_cache_form_unflatten(const void *flat, size_t bytes, opal_iov_cache_form_t **form);

/* ---------------------------------------------------------------------------------------------
 * Two layouts at once
 * ------------------------------------------------------------------------------------------- */

/** Where the bytes of one part of a stream are in two layouts: equal blocks on both sides. */
typedef struct opal_iov_cache_pair_t {
    uint64_t position; /**< stream position of its first byte */
    uint64_t length;   /**< bytes of each block; at least 1 */
    uint64_t count;    /**< blocks; at least 1 */
    int64_t offset[2]; /**< of the first byte, in either layout */
    int64_t stride[2]; /**< from one block to the next; 0 if there is one */
} opal_iov_cache_pair_t;

/** Where a walk of two layouts is; as a cursor, it can be copied and forgotten. */
typedef struct opal_iov_cache_pairs_t {
    opal_iov_cache_cursor_t cursor[2];
    opal_iov_cache_run_t run[2]; /**< what is left of the present runs */
    uint64_t skip[2];            /**< bytes of their first blocks that lie behind */
} opal_iov_cache_pairs_t;

/**
 * Begin a walk of two layouts, position by position: what a transfer from one to the other has to
 * copy. It ends where the shorter one ends, or at @p end. Nothing is expanded.
 */
void opal_iov_cache_pairs_init(opal_iov_cache_pairs_t *pairs, const opal_iov_cache_form_t *a,
                               const opal_iov_cache_form_t *b, uint64_t start, uint64_t end);

/** The next part. @return false if there is none */
bool opal_iov_cache_pairs_next(opal_iov_cache_pairs_t *pairs, opal_iov_cache_pair_t *pair);

END_C_DECLS

#endif /* OPAL_IOV_CACHE_FORM_H */
