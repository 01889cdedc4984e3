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
 * Layouts of MPI datatypes: the cache, and its notification when a datatype is freed. Read
 * opal/datatype/iov_cache/iov_cache.h first.
 *
 * The address of a freed datatype is reused immediately, and Open MPI gives user datatypes no id.
 * So the first layout of a datatype sets an attribute on it. Open MPI calls its delete function
 * when the datatype is freed, as pml/ucx uses it. MPI_Type_dup does not copy it.
 */

#include "ompi_config.h"

#include <string.h>

#include "mpi.h"

#include "opal/datatype/opal_datatype_internal.h"

#include "ompi/attribute/attribute.h"
#include "ompi/proc/proc.h"

#include "ompi/mca/pml/umrddt/pml_umrddt.h"

static int type_died(ompi_datatype_t *datatype, int keyval, void *value, void *extra)
{
    (void) keyval;
    (void) value;
    (void) extra;
    (void) __atomic_fetch_add(&mca_pml_umrddt.types_died, 1, __ATOMIC_RELAXED);
    if (NULL != mca_pml_umrddt.layouts) {
        opal_iov_cache_forget(mca_pml_umrddt.layouts, &datatype->super);
    }
    return OMPI_SUCCESS;
}

/** A duplicate is another datatype: its first layout sets its attribute. */
static int type_copied(ompi_datatype_t *datatype, int keyval, void *extra, void *value_in,
                       void *value_out, int *flag UMRDDT_TYPE_COPY_NEW)
{
    (void) datatype;
    (void) keyval;
    (void) extra;
    (void) value_in;
    (void) value_out;
    *flag = 0;
    return OMPI_SUCCESS;
}

/** Watch function of the cache. Every opal datatype here is the head of an ompi datatype. */
static int watch_type(opal_iov_cache_t *cache, const opal_datatype_t *type, void *context)
{
    ompi_datatype_t *datatype = (ompi_datatype_t *) type;

    (void) context;
    if (ompi_datatype_is_predefined(datatype)) {
        return OMPI_SUCCESS; /* never freed, and the attribute would keep the keyval after
                                  finalize */
    }
    return ompi_attr_set_c(TYPE_ATTR, datatype, &datatype->d_keyhash, mca_pml_umrddt.type_keyval,
                           cache, false);
}

int mca_pml_umrddt_layouts_init(void)
{
    ompi_attribute_fn_ptr_union_t copy, del;
    int rc;

    copy.attr_datatype_copy_fn = type_copied;
    del.attr_datatype_delete_fn = type_died;
    rc = ompi_attr_create_keyval(TYPE_ATTR, copy, del, &mca_pml_umrddt.type_keyval, NULL, 0, NULL);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    return opal_iov_cache_create(mca_pml_umrddt.params.layout_cache_size, watch_type, NULL,
                                 &mca_pml_umrddt.layouts);
}

void mca_pml_umrddt_layouts_fini(void)
{
    opal_iov_cache_t *cache = mca_pml_umrddt.layouts;

    /* Datatypes freed later find no cache. The delete function stays loaded with this component. */
    mca_pml_umrddt.layouts = NULL;
    if (NULL != cache) {
        (void) ompi_attr_free_keyval(TYPE_ATTR, &mca_pml_umrddt.type_keyval, false);
        opal_iov_cache_destroy(cache);
    }
}

int mca_pml_umrddt_layout(ompi_datatype_t *datatype, size_t count, opal_iov_cache_layout_t **layout)
{
    return opal_iov_cache_get(mca_pml_umrddt.layouts, &datatype->super, count, layout);
}

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
                                                      ompi_datatype_t *datatype, void *stream,
                                                      size_t length, bool in)
{
    const opal_datatype_t *type = &datatype->super;
    opal_convertor_t convertor;
    struct iovec pieces[8];
    size_t copied = 0;
    int32_t done = 0;

    if (length == copy_blocks(buf, type, stream, length, in)) {
        return length;
    }
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    opal_convertor_copy_and_prepare_for_send(ompi_proc_local()->super.proc_convertor, type, count,
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
static inline size_t copy_stream(const void *buf, size_t count, ompi_datatype_t *datatype,
                                 void *stream, size_t length, bool in)
{
    const opal_datatype_t *type = &datatype->super;
    char *start;

    if (length > type->size * count) {
        length = type->size * count;
    }
    if (0 == length) {
        return 0;
    }
    start = mca_pml_umrddt_is_contiguous(datatype, count) ? (char *) buf + type->true_lb
                                                          : first_run(buf, type, length);
    if (OPAL_UNLIKELY(NULL == start)) {
        return copy_pieces(buf, count, datatype, stream, length, in);
    }
    copy_piece(start, stream, length, in);
    return length;
}

size_t mca_pml_umrddt_pack(const void *buf, size_t count, ompi_datatype_t *datatype, void *stream,
                           size_t length)
{
    mca_pml_umrddt_where_t where;

    if (OPAL_UNLIKELY(NULL != mca_pml_umrddt.gpu
                      && MCA_PML_UMRDDT_BASE_GPU_NONE != mca_pml_umrddt.base_gpu)) {
        /* The base PML may have received into device memory, which only the device reads. */
        mca_pml_umrddt_look(buf, count, datatype, &where);
        if (mca_pml_umrddt_on_device(&where)) {
            mca_pml_umrddt_transit_t transit;

            if (length > count * datatype->super.size) {
                length = count * datatype->super.size;
            }
            return OMPI_SUCCESS
                               == mca_pml_umrddt_transit(&transit, buf, count, datatype, &where,
                                                         stream, OPAL_UMRDDT_GPU_HOST, length,
                                                         false)
                           && OMPI_SUCCESS == mca_pml_umrddt_transit_wait(&transit)
                       ? length
                       : 0;
        }
    }
    return copy_stream(buf, count, datatype, stream, length, false);
}

size_t mca_pml_umrddt_unpack_pieces(void *buf, size_t count, ompi_datatype_t *datatype,
                                    const void *stream, size_t length)
{
    return copy_stream(buf, count, datatype, (void *) stream, length, true);
}
