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
 * The cache of layouts, so that repeated collectives walk no datatype and allocate nothing. All
 * types with the same layout share one, whose id identifies it to the GPU engine. An attribute
 * reports the end of a datatype, as in pml_umrddt_layout.c.
 */

#include "ompi_config.h"

#include "ompi/attribute/attribute.h"

#include "coll_umrddt_layout.h"

#define CACHE_BYTES (16u << 20)

static opal_mutex_t lock = OPAL_MUTEX_STATIC_INIT;
static opal_iov_cache_t *cache; /**< atomic; created at first use, NULL if that failed */
static int keyval = MPI_KEYVAL_INVALID;
static unsigned modules;

static int type_died(ompi_datatype_t *datatype, int which, void *value, void *extra)
{
    opal_iov_cache_t *now = __atomic_load_n(&cache, __ATOMIC_ACQUIRE);

    (void) which;
    (void) value;
    (void) extra;
    if (NULL != now) {
        opal_iov_cache_forget(now, &datatype->super);
    }
    return OMPI_SUCCESS;
}

/** A duplicate is a separate type: it gets its attribute with its first layout. */
static int type_copied(ompi_datatype_t *datatype, int which, void *extra, void *value_in,
                       void *value_out, int *flag UMRDDT_TYPE_COPY_NEW)
{
    (void) datatype;
    (void) which;
    (void) extra;
    (void) value_in;
    (void) value_out;
    *flag = 0;
    return OMPI_SUCCESS;
}

static int watch_type(opal_iov_cache_t *of, const opal_datatype_t *type, void *context)
{
    ompi_datatype_t *datatype = (ompi_datatype_t *) type;

    (void) context;
    if (ompi_datatype_is_predefined(datatype)) {
        return OMPI_SUCCESS; /* predefined types are never freed */
    }
    return ompi_attr_set_c(TYPE_ATTR, datatype, &datatype->d_keyhash, keyval, of, false);
}

/** Create the cache. @return NULL: no memory */
static opal_iov_cache_t *make(void)
{
    opal_iov_cache_t *made;

    opal_mutex_lock(&lock);
    made = cache;
    if (NULL == made) {
        ompi_attribute_fn_ptr_union_t copy, del;

        copy.attr_datatype_copy_fn = type_copied;
        del.attr_datatype_delete_fn = type_died;
        if (MPI_KEYVAL_INVALID != keyval
            || OMPI_SUCCESS
                   == ompi_attr_create_keyval(TYPE_ATTR, copy, del, &keyval, NULL, 0, NULL)) {
            if (OPAL_SUCCESS != opal_iov_cache_create(CACHE_BYTES, watch_type, NULL, &made)) {
                made = NULL;
            }
        }
        __atomic_store_n(&cache, made, __ATOMIC_RELEASE);
    }
    opal_mutex_unlock(&lock);
    return made;
}

int mca_coll_umrddt_layout(ompi_datatype_t *type, size_t count, opal_iov_cache_layout_t **layout)
{
    opal_iov_cache_t *now = __atomic_load_n(&cache, __ATOMIC_ACQUIRE);

    if (OPAL_UNLIKELY(NULL == now)) {
        now = make();
        if (NULL == now) {
            return OMPI_ERR_OUT_OF_RESOURCE;
        }
    }
    return opal_iov_cache_get(now, &type->super, count, layout);
}

void mca_coll_umrddt_layouts_count(void)
{
    opal_iov_cache_stats_t stats;

    opal_mutex_lock(&lock);
    if (NULL != cache) {
        opal_iov_cache_stats(cache, &stats);
        mca_coll_umrddt_counters.layouts_read = stats.misses;
    }
    opal_mutex_unlock(&lock);
}

void mca_coll_umrddt_layouts_use(void)
{
    opal_mutex_lock(&lock);
    ++modules;
    opal_mutex_unlock(&lock);
}

void mca_coll_umrddt_layouts_unuse(void)
{
    opal_iov_cache_t *last = NULL;

    opal_mutex_lock(&lock);
    if (0 == --modules && NULL != cache) {
        /* types that are freed later find no cache */
        last = cache;
        __atomic_store_n(&cache, NULL, __ATOMIC_RELEASE);
        (void) ompi_attr_free_keyval(TYPE_ATTR, &keyval, false);
    }
    opal_mutex_unlock(&lock);
    opal_iov_cache_destroy(last);
}
