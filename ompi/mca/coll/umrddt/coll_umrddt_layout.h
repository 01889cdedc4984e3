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
 * The cache of layouts of datatypes.
 */

#ifndef MCA_COLL_UMRDDT_LAYOUT_H
#define MCA_COLL_UMRDDT_LAYOUT_H

#include "coll_umrddt.h"

#include "opal/datatype/iov_cache/iov_cache.h"

BEGIN_C_DECLS

/**
 * Get the layout of (type, count), from the cache if possible. For threads within a call on a
 * module.
 *
 * @param[out] layout  the caller releases it
 *
 * @retval OMPI_SUCCESS, OMPI_ERR_OUT_OF_RESOURCE, OMPI_ERR_BAD_PARAM
 */
int mca_coll_umrddt_layout(ompi_datatype_t *type, size_t count, opal_iov_cache_layout_t **layout);

/**
 * A module is created, or destroyed. The last one destroys the cache of layouts. Open MPI's
 * attributes, which report the end of datatypes, are finalized before components are closed.
 */
void mca_coll_umrddt_layouts_use(void);
void mca_coll_umrddt_layouts_unuse(void);

/** Update the counter layouts_read. */
void mca_coll_umrddt_layouts_count(void);

END_C_DECLS

#endif /* MCA_COLL_UMRDDT_LAYOUT_H */
