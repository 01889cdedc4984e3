/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Watched receives of a base PML whose irecv and irecv_init create requests of two kinds, as those
 * of pml/ucx: each returns to the base PML as it came, also if threads are enabled in between. The
 * base PML is in this file.
 */

#include "ompi_config.h"

#include <mpi.h>
#include <string.h>

#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/match/pml_umrddt_receives.h"
#include "ompi/mca/pml/umrddt/match/pml_umrddt_recv_watch.h"

#include "../common/check.h"

/* ---------------------------------------------------------------------------------------------
 * The base PML: one request of each kind
 * ------------------------------------------------------------------------------------------- */

enum {
    OF_IRECV,
    OF_INIT,
    KINDS
};

static struct {
    ompi_request_t request;
    void *buf;
    int freed;
} base[KINDS];

static int base_free(int kind, ompi_request_t **request)
{
    CHECK(&base[kind].request == *request);
    CHECK((OF_INIT == kind) == (*request)->req_persistent);
    CHECK(NULL == (*request)->req_complete_cb_data);
    ++base[kind].freed;
    *request = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

static int free_irecv(ompi_request_t **request)
{
    return base_free(OF_IRECV, request);
}

static int free_init(ompi_request_t **request)
{
    return base_free(OF_INIT, request);
}

static int create(int kind, void *buf, ompi_communicator_t *comm, ompi_request_t **request)
{
    memset(&base[kind].request, 0, sizeof(base[kind].request));
    base[kind].buf = buf;
    base[kind].request.req_persistent = OF_INIT == kind;
    base[kind].request.req_free = OF_INIT == kind ? free_init : free_irecv;
    base[kind].request.req_mpi_object.comm = comm;
    base[kind].request.req_state = OMPI_REQUEST_ACTIVE;
    base[kind].request.req_complete = REQUEST_PENDING;
    *request = &base[kind].request;
    return OMPI_SUCCESS;
}

static int base_irecv(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                      ompi_communicator_t *comm, ompi_request_t **request)
{
    (void) count, (void) datatype, (void) src, (void) tag;
    return create(OF_IRECV, buf, comm, request);
}

static int base_irecv_init(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                           ompi_communicator_t *comm, ompi_request_t **request)
{
    (void) count, (void) datatype, (void) src, (void) tag;
    return create(OF_INIT, buf, comm, request);
}

static bool refuses;

static int base_start(size_t count, ompi_request_t **requests)
{
    CHECK(1 == count && &base[OF_INIT].request == requests[0]);
    return refuses ? OMPI_ERROR : OMPI_SUCCESS;
}

/* A plain message of one number arrives. */
static void arrive(int kind, int number)
{
    memcpy(base[kind].buf, &number, sizeof(number));
    base[kind].request.req_status._ucount = sizeof(number);
    ompi_request_complete(&base[kind].request, true);
    CHECK(REQUEST_COMPLETE(&base[kind].request));
}

/* ---------------------------------------------------------------------------------------------
 * Checks
 * ------------------------------------------------------------------------------------------- */

/* Smaller than an envelope, and not. */
static int small, large[64];

static ompi_request_t *post(bool is_small)
{
    ompi_request_t *request;

    CHECK(OMPI_SUCCESS
          == mca_pml_umrddt_post(is_small ? &small : large, is_small ? 1 : 64, &ompi_mpi_int.dt, 0,
                                 0, (ompi_communicator_t *) MPI_COMM_WORLD, &request));
    return request;
}

static void receive(int kind, bool is_small, int number)
{
    ompi_request_t *request = post(is_small);
    const int before = base[kind].freed;

    CHECK(&base[kind].request == request && !request->req_persistent);
    arrive(kind, number);
    CHECK(number == (is_small ? small : large[0]));
    ompi_request_free(&request);
    CHECK(before + 1 == base[kind].freed && MPI_REQUEST_NULL == request);
}

static void refused(void)
{
    ompi_request_t *request;
    const int before = base[OF_INIT].freed;

    refuses = true;
    CHECK(OMPI_ERROR
          == mca_pml_umrddt_post(&small, 1, &ompi_mpi_int.dt, 0, 0,
                                 (ompi_communicator_t *) MPI_COMM_WORLD, &request));
    refuses = false;
    CHECK(before + 1 == base[OF_INIT].freed);
}

int main(void)
{
    ompi_request_t *request;
    int number = 1;

    setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
    setenv("OMPI_MCA_pml", "ob1", 1);
    setenv("OMPI_MCA_btl", "self", 1);
    CHECK(MPI_SUCCESS == MPI_Init(NULL, NULL));
    mca_pml_umrddt.host.pml_irecv = base_irecv;
    mca_pml_umrddt.host.pml_irecv_init = base_irecv_init;
    mca_pml_umrddt.host.pml_start = base_start;
    mca_pml_umrddt_watches_init();

    receive(OF_IRECV, true, ++number);
    receive(OF_IRECV, false, ++number);
    request = post(true); /* pending when threads are enabled */
    opal_set_using_threads(true);
    receive(OF_INIT, true, ++number);
    receive(OF_INIT, false, ++number);
    refused();
    arrive(OF_IRECV, ++number);
    CHECK(number == small && !request->req_persistent);
    ompi_request_free(&request);
    CHECK(3 == base[OF_IRECV].freed);

    opal_set_using_threads(false);
    mca_pml_umrddt_watches_fini();
    MPI_Finalize();
    printf("%lu checks\n", checks);
    return 0;
}
