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
 * The user's request is ours, and the base PML receives into a staging buffer. As in
 * pml_umrddt_recv.c, except that a plain message also keeps the request pending until it is copied.
 */

#include "ompi_config.h"

#include "ompi/message/message.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_base_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_pattern.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_recv.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_requests.h"
#include "ompi/mca/pml/umrddt/match/pml_umrddt_stage_recv.h"

bool mca_pml_umrddt_stage_wide(void *buf, size_t count, ompi_datatype_t *datatype,
                               ompi_communicator_t *comm, opal_umrddt_gpu_where_t *where)
{
    mca_pml_umrddt_comm_t *data = mca_pml_umrddt_comm_find(comm);

    if (NULL == data) {
        return false;
    }
    (void) mca_pml_umrddt_memory_of(data, buf, count, datatype, MCA_PML_UMRDDT_RECEIVER, where);
    return true;
}

bool mca_pml_umrddt_stage_wanted(void *buf, size_t count, ompi_datatype_t *datatype,
                                 ompi_communicator_t *comm, opal_umrddt_gpu_where_t *where)
{
    mca_pml_umrddt_comm_t *data = mca_pml_umrddt_comm_find(comm);

    if (NULL == data
        || (!mca_pml_umrddt_checks_pattern()
            && (mca_pml_umrddt_surely_system(buf, count, datatype)
                || mca_pml_umrddt_asserted_system(data, MCA_PML_UMRDDT_RECEIVER)))) {
        return false;
    }
    (void) mca_pml_umrddt_memory_of(data, buf, count, datatype, MCA_PML_UMRDDT_RECEIVER, where);
    return opal_umrddt_gpu_on_device(where) || !mca_pml_umrddt_base_touches(where);
}

/* ---------------------------------------------------------------------------------------------
 * MPI functions
 * ------------------------------------------------------------------------------------------- */

int mca_pml_umrddt_stage_imrecv_into(mca_pml_umrddt_recv_t *recv, ompi_message_t **message)
{
    size_t capacity = recv->count * recv->datatype->super.size;
    int rc = opal_umrddt_gpu_stage_get(&recv->where.memory, capacity, OPAL_UMRDDT_GPU_STAGE_ROOM,
                                       &recv->overflow);

    if (OMPI_SUCCESS == rc) {
        rc = mca_pml_umrddt.host.pml_imrecv(recv->overflow.bytes, capacity, &ompi_mpi_byte.dt,
                                            message, &recv->data);
        if (OMPI_SUCCESS != rc) {
            opal_umrddt_gpu_stage_put(&recv->overflow);
        }
    }
    return rc;
}

int mca_pml_umrddt_stage_imrecv(void *buf, size_t count, ompi_datatype_t *datatype,
                                ompi_message_t **message, const opal_umrddt_gpu_where_t *where,
                                ompi_request_t **request)
{
    mca_pml_umrddt_comm_t *comm = mca_pml_umrddt_comm_find((*message)->comm);
    mca_pml_umrddt_recv_t *recv =
        mca_pml_umrddt_recv_alloc(buf, count, datatype, OMPI_ANY_SOURCE, OMPI_ANY_TAG, comm);
    int rc;

    if (NULL == recv) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    recv->where = *where;
    recv->looked = true;
    rc = mca_pml_umrddt_stage_imrecv_into(recv, message);
    if (OMPI_SUCCESS != rc) {
        mca_pml_umrddt_recv_return(recv);
        return rc;
    }
    *request = &recv->super;
    mca_pml_umrddt_recv_await_base(recv);
    return OMPI_SUCCESS;
}
