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
 * The memory kind of buffers (umrddt_gpu_memory.h, read first), by MPI datatypes; and the GPU part
 * of the component.
 */

#ifndef MCA_PML_UMRDDT_GPU_H
#define MCA_PML_UMRDDT_GPU_H

#include "ompi_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "ompi/datatype/ompi_datatype.h"

#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_engine.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_memory.h"

#include "ompi/mca/pml/umrddt/pml_umrddt.h"

BEGIN_C_DECLS

/** Returns true if it is memory of the engine's own device. */
static inline bool mca_pml_umrddt_on_engine_device(const opal_umrddt_gpu_where_t *where,
                                                   const opal_umrddt_gpu_engine_t *engine)
{
    return opal_umrddt_gpu_on_device(where)
           && opal_umrddt_gpu_engine_device(engine) == where->memory.device;
}

/**
 * Returns true if (count, datatype) is one piece of memory, at the true lower bound of the type.
 */
static inline bool mca_pml_umrddt_is_contiguous(const ompi_datatype_t *datatype, size_t count)
{
    return opal_umrddt_gpu_is_contiguous(&datatype->super, count);
}

/** As opal_umrddt_gpu_known_run, for a buffer whose first byte is in a known page of system memory.
 */
static inline bool mca_pml_umrddt_known_run(const void *buf, size_t count,
                                            const ompi_datatype_t *datatype)
{
    return opal_umrddt_gpu_known_run(buf, count, &datatype->super);
}

/** Find the CUDA driver. Without it mca_pml_umrddt.gpu stays NULL. */
void mca_pml_umrddt_gpu_open(void);
void mca_pml_umrddt_gpu_close(void);

/** mca_pml_umrddt_look for a buffer that may span several memories. */
void mca_pml_umrddt_look_pieces(const void *buf, size_t count, ompi_datatype_t *datatype,
                                opal_umrddt_gpu_where_t *where);

/**
 * Look up the memory kind of (buf, count, datatype). Costs one query, or one for each allocation or
 * page if the buffer is not known to lie in one. No query without a driver, for an empty buffer, or
 * before the application has initialized CUDA.
 *
 * @param[out] where  the memory kind
 */
static inline void mca_pml_umrddt_look(const void *buf, size_t count, ompi_datatype_t *datatype,
                                       opal_umrddt_gpu_where_t *where)
{
    if (NULL == mca_pml_umrddt.gpu) {
        memset(where, 0, sizeof(*where));
    } else if (OPAL_UNLIKELY(!opal_umrddt_gpu_look(buf, count, &datatype->super, where))) {
        mca_pml_umrddt_look_pieces(buf, count, datatype, where);
    }
}

/** As opal_umrddt_gpu_surely_system: certainly system memory, without a query of the driver. */
static inline bool mca_pml_umrddt_surely_system(const void *buf, size_t count,
                                                const ompi_datatype_t *datatype)
{
    return opal_umrddt_gpu_surely_system(buf, count, &datatype->super);
}

END_C_DECLS

#endif /* MCA_PML_UMRDDT_GPU_H */
