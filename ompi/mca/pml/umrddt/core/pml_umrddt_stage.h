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
 * Staging of GPU memory for a base PML that cannot access it. The base PML sends from, and receives
 * into, a *staging buffer* of packed bytes (umrddt_gpu_stage.h), so that the other side sees an
 * ordinary message. The GPU copies between the staging buffer and the user's buffer
 * (umrddt_gpu_stream.h).
 */

#ifndef MCA_PML_UMRDDT_STAGE_H
#define MCA_PML_UMRDDT_STAGE_H

#include "ompi_config.h"

#include <stdbool.h>
#include <stddef.h>

#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/pml/pml.h"

#include "opal/mca/common/umrddt_gpu/staging/umrddt_gpu_stage.h"
#include "opal/mca/common/umrddt_gpu/staging/umrddt_gpu_stream.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"

BEGIN_C_DECLS

/** Report to the user, once, that a copy between a buffer and a staging buffer failed, and that the
 * message ends with an error. @param[in] in  into the buffer */
void mca_pml_umrddt_stage_failed(const opal_umrddt_gpu_where_t *where, size_t size, bool in,
                                 int rc);

/** Free what is cached for staging. */
void mca_pml_umrddt_stage_fini(void);

/**
 * Start to copy the first @p length bytes of a buffer's stream, out of it or (@p in) into it. As
 * opal_umrddt_gpu_stream_copy.
 *
 * @param[out] transit  call opal_umrddt_gpu_stream_copy_test or _wait until it has ended. Nothing
 * is held on error
 *
 * @retval OMPI_SUCCESS, or an error: no memory, or the driver's
 */
int mca_pml_umrddt_transit(opal_umrddt_gpu_stream_copy_t *transit, const void *buf, size_t count,
                           ompi_datatype_t *datatype, const opal_umrddt_gpu_where_t *where,
                           void *bytes, opal_umrddt_gpu_kind_t kind, size_t length, bool in);

/** Copy the first @p length bytes of a buffer's packed stream. The base PML may have received into
 * device memory. @return bytes copied */
size_t mca_pml_umrddt_pack(const void *buf, size_t count, ompi_datatype_t *datatype, void *stream,
                           size_t length);

/**
 * Get a staging buffer with the packed stream of a buffer. Blocks until the GPU has finished,
 * because later sends on the communicator must not overtake this message.
 *
 * @param[out] stage  owned by the caller
 *
 * @retval OMPI_SUCCESS, or an error
 */
int mca_pml_umrddt_stage_pack(const void *buf, size_t count, ompi_datatype_t *datatype,
                              const opal_umrddt_gpu_where_t *where, opal_umrddt_gpu_stage_t *stage);

/**
 * Datatype and count for a send of a staging buffer by the base PML.
 *
 * @param[in]  pieces    the user's message is non-contiguous
 * @param[out] datatype  release it with mca_pml_umrddt_stage_as_end once the send is posted
 */
void mca_pml_umrddt_stage_as(size_t size, bool pieces, size_t *count, ompi_datatype_t **datatype);
void mca_pml_umrddt_stage_as_end(ompi_datatype_t *datatype);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_STAGE_H */
