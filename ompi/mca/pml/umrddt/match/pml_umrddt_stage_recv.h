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
 * Receives into memory that the base PML must not access, and of datatypes that it cannot receive.
 */

#ifndef MCA_PML_UMRDDT_STAGE_RECV_H
#define MCA_PML_UMRDDT_STAGE_RECV_H

#include "ompi/mca/pml/umrddt/core/pml_umrddt_pattern.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"

BEGIN_C_DECLS

/** As mca_pml_umrddt_stage_wanted, if opal_umrddt_gpu_is_cut; false: unknown communicator. */
bool mca_pml_umrddt_stage_wide(void *buf, size_t count, ompi_datatype_t *datatype,
                               ompi_communicator_t *comm, opal_umrddt_gpu_where_t *where);

/**
 * Returns true if a receive needs a staging buffer. One reason is that the base PML must not access
 * the buffer (but see mca_pml_umrddt_base_given_recv). Another is that an envelope may arrive that
 * does not fit the buffer or that the CPU cannot read there.
 *
 * @param[out] where  memory kind of the buffer, if true
 */
bool mca_pml_umrddt_stage_wanted(void *buf, size_t count, ompi_datatype_t *datatype,
                                 ompi_communicator_t *comm, opal_umrddt_gpu_where_t *where);

/** Whether a receive needs a staging buffer, with fast checks first. If the base PML handles all
 * GPU memory, size and datatype decide. Empty buffers need no staging buffer. */
#define MCA_PML_UMRDDT_STAGE_WANTED(buf, count, datatype, comm, where)            \
    (opal_umrddt_gpu_is_cut(&mca_pml_umrddt.cuts, &(datatype)->super, (count))    \
         ? mca_pml_umrddt_stage_wide((buf), (count), (datatype), (comm), (where)) \
         : NULL != mca_pml_umrddt.gpu && 0 != (count) * (datatype)->super.size    \
               && !mca_pml_umrddt_known_system((buf), (count), (datatype))        \
               && (MCA_PML_UMRDDT_BASE_GPU_ALL != mca_pml_umrddt.base_gpu         \
                   || MCA_PML_UMRDDT_ENVELOPE > (count) * (datatype)->super.size  \
                   || !mca_pml_umrddt_is_contiguous((datatype), (count)))         \
               && mca_pml_umrddt_stage_wanted((buf), (count), (datatype), (comm), (where)))

/** As pml_irecv, for a buffer that needs a staging buffer. In pml_umrddt_recv.c. */
int mca_pml_umrddt_stage_irecv(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                               ompi_communicator_t *comm, const opal_umrddt_gpu_where_t *where,
                               ompi_request_t **request);

/** As pml_imrecv, for a message of the base PML. */
int mca_pml_umrddt_stage_imrecv(void *buf, size_t count, ompi_datatype_t *datatype,
                                ompi_message_t **message, const opal_umrddt_gpu_where_t *where,
                                ompi_request_t **request);

/** Receive a base PML message into a staging buffer, recv->overflow. @return its error code */
int mca_pml_umrddt_stage_imrecv_into(mca_pml_umrddt_recv_t *recv, ompi_message_t **message);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_STAGE_RECV_H */
