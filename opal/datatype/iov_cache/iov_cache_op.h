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
 * Unpacking with an operation: elements of a stream are combined with those in memory, as by
 * MPI_Accumulate at its target and by MPI_Reduce_local for contiguous data.
 *
 * An *element* is a basic type of C; an operation is one of MPI's predefined ones. Legal pairs are
 * those of the MPI standard (section "Predefined Reduction Operations"):
 *
 * | Elements                  | replace | sum, product | min, max | logical | bitwise |
 * |---------------------------|---------|--------------|----------|---------|---------|
 * | integers                  | yes     | yes          | yes      | yes     | yes     |
 * | float, double, long double| yes     | yes          | yes      |         |         |
 * | complex                   | yes     | yes          |          |         |         |
 * | bool                      | yes     |              |          | yes     |         |
 * | byte                      | yes     |              |          |         | yes     |
 *
 * Results in memory, for element m of memory and element s of the stream:
 *  - integers wrap around, signed ones too;
 *  - min (max) is s where s < m (s > m), else m: so m stays if either is not a number, and the sign
 *    of a zero that meets another zero;
 *  - logical operations take anything but 0 for true and leave 0 or 1;
 *  - the padding in a long double is not defined, unless the operation is replace.
 *
 * Memory and stream need no alignment. Errors, owners and threads are as in iov_cache_form.h.
 */

#ifndef OPAL_IOV_CACHE_OP_H
#define OPAL_IOV_CACHE_OP_H

#include "opal_config.h"

#include <stddef.h>
#include <stdint.h>

#include "opal/datatype/opal_datatype.h"

#include "opal/datatype/iov_cache/iov_cache_form.h"

BEGIN_C_DECLS

/** Operation on an element of the stream and one in memory. */
typedef enum {
    OPAL_IOV_CACHE_REPLACE = 0,
    OPAL_IOV_CACHE_SUM,
    OPAL_IOV_CACHE_PROD,
    OPAL_IOV_CACHE_MIN,
    OPAL_IOV_CACHE_MAX,
    OPAL_IOV_CACHE_LAND,
    OPAL_IOV_CACHE_LOR,
    OPAL_IOV_CACHE_LXOR,
    OPAL_IOV_CACHE_BAND,
    OPAL_IOV_CACHE_BOR,
    OPAL_IOV_CACHE_BXOR,
    OPAL_IOV_CACHE_OP_COUNT
} opal_iov_cache_op_t;

/** Type of the elements. Complex numbers are C's. */
typedef enum {
    OPAL_IOV_CACHE_BYTE = 0,
    OPAL_IOV_CACHE_BOOL,
    OPAL_IOV_CACHE_INT8,
    OPAL_IOV_CACHE_UINT8,
    OPAL_IOV_CACHE_INT16,
    OPAL_IOV_CACHE_UINT16,
    OPAL_IOV_CACHE_INT32,
    OPAL_IOV_CACHE_UINT32,
    OPAL_IOV_CACHE_INT64,
    OPAL_IOV_CACHE_UINT64,
    OPAL_IOV_CACHE_FLOAT,
    OPAL_IOV_CACHE_DOUBLE,
    OPAL_IOV_CACHE_LONG_DOUBLE,
    OPAL_IOV_CACHE_FLOAT_COMPLEX,
    OPAL_IOV_CACHE_DOUBLE_COMPLEX,
    OPAL_IOV_CACHE_LONG_DOUBLE_COMPLEX,
    OPAL_IOV_CACHE_ELEMENT_COUNT
} opal_iov_cache_element_t;

/** Bytes of an element, a power of two; 0 if there is no such element. */
size_t opal_iov_cache_element_size(opal_iov_cache_element_t element);

/** True if the operation and the element exist and the pair is legal. */
bool opal_iov_cache_op_is_legal(opal_iov_cache_op_t op, opal_iov_cache_element_t element);

/**
 * The common element type of a datatype.
 *
 * opal knows sizes and not MPI names: MPI_BYTE and MPI_CHAR are integers to it, and a REAL*16 may
 * be a long double. The caller must check whether MPI allows an operation on the datatype.
 *
 * @param[in]  type     a datatype, committed or not
 * @param[out] element  never OPAL_IOV_CACHE_BYTE
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_NOT_SUPPORTED  it has different elements, none, or one not listed above
 */
int opal_iov_cache_element_of(const opal_datatype_t *type, opal_iov_cache_element_t *element);

/**
 * Combine stream positions @p start .. @p start + @p length - 1 of a layout with @p stream: each
 * element becomes (element in memory) op (element of the stream). Bytes between the blocks are not
 * touched. O(depth) to start, then a loop for each stream of blocks.
 *
 * The layout's stream is taken as elements from position 0 on. An element that is split over blocks
 * is gathered, combined and scattered, at some cost. A byte that the layout touches twice gets an
 * undefined value (MPI forbids such layouts for receives).
 *
 * @param[in]     buffer  the buffer address of MPI calls
 * @param[in]     start   a multiple of the element's size
 * @param[in]     length  a multiple of the element's size; the range lies within the form
 * @param[in]     stream  length bytes, must not overlap the buffer
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_NOT_SUPPORTED  the pair of operation and element is not legal
 * @retval OPAL_ERR_BAD_PARAM      the range has partial elements, or exceeds the form
 */
int opal_iov_cache_form_unpack_op(const opal_iov_cache_form_t *form, void *buffer, uint64_t start,
                                  uint64_t length, const void *stream, opal_iov_cache_op_t op,
                                  opal_iov_cache_element_t element);

END_C_DECLS

#endif /* OPAL_IOV_CACHE_OP_H */
