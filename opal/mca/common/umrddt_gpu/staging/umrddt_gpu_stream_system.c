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
 * Copies between a buffer in system memory and its packed stream by the CPU. Declared in
 * umrddt_gpu_stream.h.
 */

#include "umrddt_gpu_stream.h"

#include <string.h>

#include "opal/datatype/opal_convertor.h"
#include "opal/datatype/opal_datatype_internal.h"
#include "opal/util/proc.h"

#include "umrddt_compat.h"

/** Copy one piece for copy_stream. */
static inline void copy_piece(char *memory, char *stream, size_t length, bool in)
{
    char *to = in ? memory : stream;
    const char *from = in ? stream : memory;

    if (sizeof(uint64_t) == length) {
        memcpy(to, from, sizeof(uint64_t)); /* inline copy: most small blocks have this size */
    } else {
        memcpy(to, from, length);
    }
}

/** Get the first @p length bytes of the packed stream if they are contiguous; NULL: unknown. Does
 * not walk the datatype. */
static inline char *first_run(const void *buf, const opal_datatype_t *type, size_t length)
{
    const dt_type_desc_t *description = 0 < type->opt_desc.used ? &type->opt_desc : &type->desc;
    const ddt_elem_desc_t *first = &description->desc[0].elem;

    if (0 == description->used || 0 == (OPAL_DATATYPE_FLAG_DATA & first->common.flags)
        || OPAL_DATATYPE_MAX_PREDEFINED <= first->common.type
        || (uint64_t) first->blocklen * opal_datatype_basicDatatypes[first->common.type]->size
               < length) {
        return NULL;
    }
    return (char *) buf + first->disp;
}

/**
 * Copy the first @p length bytes of the packed stream as far as the description begins with plain
 * blocks. Faster than a convertor, whose setup takes longer than such a copy.
 *
 * @return bytes copied; less than length if the description has a loop, or the data extends beyond
 * one element of the type
 */
static __opal_attribute_noinline__ size_t copy_blocks(const void *buf, const opal_datatype_t *type,
                                                      char *stream, size_t length, bool in)
{
    const dt_type_desc_t *description = 0 < type->opt_desc.used ? &type->opt_desc : &type->desc;
    size_t copied = 0;

    for (size_t i = 0; i < (size_t) description->used; ++i) {
        const ddt_elem_desc_t *elem = &description->desc[i].elem;
        char *at = (char *) buf + elem->disp;
        size_t block;

        if (0 == (OPAL_DATATYPE_FLAG_DATA & elem->common.flags)
            || OPAL_DATATYPE_MAX_PREDEFINED <= elem->common.type) {
            break;
        }
        block = elem->blocklen * opal_datatype_basicDatatypes[elem->common.type]->size;
        for (size_t n = 0; n < (size_t) elem->count; ++n, at += elem->extent) {
            if (block >= length - copied) {
                copy_piece(at, stream + copied, length - copied, in);
                return length;
            }
            copy_piece(at, stream + copied, block, in);
            copied += block;
        }
    }
    return copied;
}

/**
 * Copy the first @p length bytes of the packed stream piece by piece. opal_convertor_pack is not
 * usable: it packs only complete basic elements, and an envelope may end inside one.
 *
 * @return bytes copied, less than length only if the stream is shorter
 */
static __opal_attribute_noinline__ size_t copy_pieces(const void *buf, size_t count,
                                                      const opal_datatype_t *type, void *stream,
                                                      size_t length, bool in)
{
    opal_convertor_t convertor;
    struct iovec pieces[8];
    size_t copied = 0;
    int32_t done = 0;

    if (length == copy_blocks(buf, type, stream, length, in)) {
        return length;
    }
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    opal_convertor_copy_and_prepare_for_send(opal_proc_local_get()->proc_convertor, type, count,
                                             buf, UMRDDT_CONVERTOR_SKIP_PROBE, &convertor);
    while (0 == done && copied < length) {
        uint32_t piece_count = sizeof(pieces) / sizeof(pieces[0]);
        size_t sum = 0;

        done = opal_convertor_raw(&convertor, pieces, &piece_count, &sum);
        if (0 > done || (0 == done && 0 == piece_count)) {
            break;
        }
        for (uint32_t i = 0; i < piece_count && copied < length; ++i) {
            size_t part = pieces[i].iov_len < length - copied ? pieces[i].iov_len : length - copied;
            char *at = (char *) stream + copied;

            memcpy(in ? pieces[i].iov_base : at, in ? at : pieces[i].iov_base, part);
            copied += part;
        }
    }
    opal_convertor_cleanup(&convertor);
    OBJ_DESTRUCT(&convertor);
    return copied;
}

/** copy_pieces with a fast path for contiguous data. */
static inline size_t copy_stream(const void *buf, size_t count, const opal_datatype_t *type,
                                 void *stream, size_t length, bool in)
{
    char *start;

    if (length > type->size * count) {
        length = type->size * count;
    }
    if (0 == length) {
        return 0;
    }
    start = opal_umrddt_gpu_is_contiguous(type, count) ? (char *) buf + type->true_lb
                                                       : first_run(buf, type, length);
    if (OPAL_UNLIKELY(NULL == start)) {
        return copy_pieces(buf, count, type, stream, length, in);
    }
    copy_piece(start, stream, length, in);
    return length;
}

size_t opal_umrddt_gpu_stream_pack(const void *buf, size_t count, const opal_datatype_t *type,
                                   void *stream, size_t length)
{
    return copy_stream(buf, count, type, stream, length, false);
}

size_t opal_umrddt_gpu_stream_unpack_pieces(void *buf, size_t count, const opal_datatype_t *type,
                                            const void *stream, size_t length)
{
    return copy_stream(buf, count, type, (void *) stream, length, true);
}
