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
 * The memory kind of buffers in pieces. Read pml_umrddt_gpu.h first.
 */

#include "ompi_config.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_layout.h"

void mca_pml_umrddt_look_pieces(const void *buf, size_t count, ompi_datatype_t *datatype,
                                opal_umrddt_gpu_where_t *where)
{
    opal_iov_cache_layout_t *layout;

    if (OMPI_SUCCESS == mca_pml_umrddt_layout(datatype, count, &layout)) {
        opal_umrddt_gpu_look_pieces(buf, layout, where);
        OBJ_RELEASE(layout);
    }
}
