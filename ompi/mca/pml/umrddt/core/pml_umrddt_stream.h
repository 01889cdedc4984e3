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
 * Copies between a buffer and its packed stream by the CPU. Functions of pml_umrddt_stream.c.
 */

#ifndef MCA_PML_UMRDDT_STREAM_H
#define MCA_PML_UMRDDT_STREAM_H

#include "ompi_config.h"

#include <string.h>

#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"

BEGIN_C_DECLS

/** Copy the first @p length bytes of the packed stream of a buffer in system memory out or in.
 * @return bytes copied */
size_t mca_pml_umrddt_pack_system(const void *buf, size_t count, ompi_datatype_t *datatype,
                                  void *stream, size_t length);
size_t mca_pml_umrddt_unpack_pieces(void *buf, size_t count, ompi_datatype_t *datatype,
                                    const void *stream, size_t length);

/** Copy @p length bytes into the begin of a buffer, which is at least as large. */
static inline void mca_pml_umrddt_unpack(void *buf, size_t count, ompi_datatype_t *datatype,
                                         const void *stream, size_t length)
{
    if (OPAL_LIKELY(mca_pml_umrddt_is_contiguous(datatype, count))) {
        memcpy((char *) buf + datatype->super.true_lb, stream, length);
    } else {
        (void) mca_pml_umrddt_unpack_pieces(buf, count, datatype, stream, length);
    }
}

END_C_DECLS

#endif /* MCA_PML_UMRDDT_STREAM_H */
