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

#include "mpi.h"

#include "opal/datatype/opal_datatype_internal.h"

#include "ompi/attribute/attribute.h"
#include "ompi/proc/proc.h"

#include "ompi/mca/pml/umrddt/pml_umrddt.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_layout.h"

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
