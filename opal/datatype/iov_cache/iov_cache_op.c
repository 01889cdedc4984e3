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
 * Unpack with an operation: selects the runs of a range that are combined in place, and handles all
 * others.
 */

#include "opal_config.h"

#include <float.h>
#include <stddef.h>

#include "opal/constants.h"
#include "opal/datatype/opal_datatype_internal.h"

#include "umrddt_compat.h"

#include "iov_cache_loops.h"
#include "iov_cache_op.h"

/*
 * Blocks of at least this length, or of one element, are combined in place. All others are
 * gathered, this many bytes at a time, combined and scattered by pack and unpack.
 */
#define LONG_BLOCK 256
#define GATHERED   4096

/* In Open MPI 6.0 a long double of 80 bits is FLOAT12, of any size, and FLOAT16 is _Float128. */
#if 600 <= UMRDDT_OPAL_RELEASE && 64 >= LDBL_MANT_DIG
#define LONG_DOUBLE OPAL_DATATYPE_FLOAT12
#else
#define LONG_DOUBLE OPAL_DATATYPE_FLOAT16
#endif

size_t opal_iov_cache_element_size(opal_iov_cache_element_t element)
{
    return OPAL_IOV_CACHE_ELEMENT_COUNT > (unsigned) element ? opal_iov_cache_loops[element].size
                                                             : 0;
}

bool opal_iov_cache_op_is_legal(opal_iov_cache_op_t op, opal_iov_cache_element_t element)
{
    return OPAL_IOV_CACHE_OP_COUNT > (unsigned) op
           && OPAL_IOV_CACHE_ELEMENT_COUNT > (unsigned) element
           && (OPAL_IOV_CACHE_REPLACE == op || NULL != opal_iov_cache_loops[element].loops[op]);
}

/* The element of one of opal's basic types; OPAL_IOV_CACHE_BYTE if none. */
static opal_iov_cache_element_t element_of_basic(int id)
{
    switch (id) {
    case OPAL_DATATYPE_INT1:
        return OPAL_IOV_CACHE_INT8;
    case OPAL_DATATYPE_INT2:
        return OPAL_IOV_CACHE_INT16;
    case OPAL_DATATYPE_INT4:
        return OPAL_IOV_CACHE_INT32;
    case OPAL_DATATYPE_INT8:
        return OPAL_IOV_CACHE_INT64;
    case OPAL_DATATYPE_UINT1:
        return OPAL_IOV_CACHE_UINT8;
    case OPAL_DATATYPE_UINT2:
        return OPAL_IOV_CACHE_UINT16;
    case OPAL_DATATYPE_UINT4:
        return OPAL_IOV_CACHE_UINT32;
    case OPAL_DATATYPE_UINT8:
        return OPAL_IOV_CACHE_UINT64;
#if defined(OPAL_DATATYPE_LONG) /* else long is one of the above */
    case OPAL_DATATYPE_LONG:
        return 8 == sizeof(long) ? OPAL_IOV_CACHE_INT64 : OPAL_IOV_CACHE_INT32;
    case OPAL_DATATYPE_UNSIGNED_LONG:
        return 8 == sizeof(long) ? OPAL_IOV_CACHE_UINT64 : OPAL_IOV_CACHE_UINT32;
#endif
    case OPAL_DATATYPE_FLOAT4:
        return OPAL_IOV_CACHE_FLOAT;
    case OPAL_DATATYPE_FLOAT8:
        return OPAL_IOV_CACHE_DOUBLE;
    case LONG_DOUBLE:
        return 16 == sizeof(long double) ? OPAL_IOV_CACHE_LONG_DOUBLE : OPAL_IOV_CACHE_BYTE;
    case OPAL_DATATYPE_FLOAT_COMPLEX:
        return OPAL_IOV_CACHE_FLOAT_COMPLEX;
    case OPAL_DATATYPE_DOUBLE_COMPLEX:
        return OPAL_IOV_CACHE_DOUBLE_COMPLEX;
    case OPAL_DATATYPE_LONG_DOUBLE_COMPLEX:
        return OPAL_IOV_CACHE_LONG_DOUBLE_COMPLEX;
    case OPAL_DATATYPE_BOOL:
        return OPAL_IOV_CACHE_BOOL;
    default:
        return OPAL_IOV_CACHE_BYTE;
    }
}

int opal_iov_cache_element_of(const opal_datatype_t *type, opal_iov_cache_element_t *element)
{
    opal_iov_cache_element_t found = OPAL_IOV_CACHE_BYTE;
    int id;

    for (id = OPAL_DATATYPE_FIRST_TYPE; id < OPAL_DATATYPE_MAX_PREDEFINED; ++id) {
        if (0 != (type->bdt_used & ((uint32_t) 1 << id))) {
            opal_iov_cache_element_t one = element_of_basic(id);

            if (OPAL_IOV_CACHE_BYTE == one || (OPAL_IOV_CACHE_BYTE != found && one != found)) {
                return OPAL_ERR_NOT_SUPPORTED;
            }
            found = one;
        }
    }
    if (OPAL_IOV_CACHE_BYTE == found) {
        return OPAL_ERR_NOT_SUPPORTED;
    }
    *element = found;
    return OPAL_SUCCESS;
}

/*
 * Combine the blocks of a run in place, if they are suitable.
 *
 * @return bytes combined: all of the run, all but the end of its only block, or none
 */
static uint64_t combine_run(const opal_iov_cache_run_t *run, char *buffer, const char *stream,
                            opal_iov_cache_loop_t loop, uint64_t size)
{
    uint64_t n = run->length / size;

    if (1 == run->count ? LONG_BLOCK > run->length
                        : n * size != run->length || (1 < n && LONG_BLOCK > run->length)) {
        return 0;
    }
    loop(buffer + run->offset, run->stride, stream, n, run->count);
    return n * size * run->count;
}

/* Combine at most @p length bytes by gather and scatter. @return number of bytes */
static uint64_t combine_gathered(const opal_iov_cache_form_t *form, char *buffer, uint64_t position,
                                 uint64_t length, const char *stream, opal_iov_cache_loop_t loop,
                                 uint64_t size)
{
    char gathered[GATHERED] __attribute__((aligned(64)));

    length = length < GATHERED ? length : GATHERED;
    opal_iov_cache_form_pack(form, buffer, position, length, gathered);
    loop(gathered, 0, stream, length / size, 1);
    opal_iov_cache_form_unpack(form, buffer, position, length, gathered);
    return length;
}

int opal_iov_cache_form_unpack_op(const opal_iov_cache_form_t *form, void *buffer, uint64_t start,
                                  uint64_t length, const void *stream, opal_iov_cache_op_t op,
                                  opal_iov_cache_element_t element)
{
    uint64_t size, end = start + length, position = start;
    opal_iov_cache_cursor_t cursor;
    opal_iov_cache_run_t run;
    opal_iov_cache_loop_t loop;

    if (!opal_iov_cache_op_is_legal(op, element)) {
        return OPAL_ERR_NOT_SUPPORTED;
    }
    loop = opal_iov_cache_loops[element].loops[op];
    size = opal_iov_cache_loops[element].size;
    if (0 != start % size || 0 != length % size || start > form->size
        || length > form->size - start) {
        return OPAL_ERR_BAD_PARAM;
    }
    if (OPAL_IOV_CACHE_REPLACE == op) {
        opal_iov_cache_form_unpack(form, buffer, start, length, stream);
        return OPAL_SUCCESS;
    }
    opal_iov_cache_cursor_init(&cursor, form, start, end);
    while (opal_iov_cache_cursor_next(&cursor, &run)) {
        const char *from = (const char *) stream + (position - start);
        uint64_t done = combine_run(&run, buffer, from, loop, size);

        if (0 == done) {
            done = combine_gathered(form, buffer, position, end - position, from, loop, size);
        }
        position += done;
        if (position != cursor.position) {
            opal_iov_cache_cursor_init(&cursor, form, position, end);
        }
    }
    return OPAL_SUCCESS;
}
