/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* The base PML that is played. */

#include "world.h"

static int request_free(ompi_request_t **request)
{
    world_request_t *mine = (world_request_t *) *request;

    FUZZ_CHECK(!mine->here);
    --world.requests_now;
    OMPI_REQUEST_FINI(&mine->super);
    OBJ_RELEASE(mine);
    *request = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

static void take_out(world_request_t *request)
{
    uint32_t i = 0;

    FUZZ_CHECK(request->here);
    while (request != world.requests[i]) {
        ++i;
    }
    memmove(&world.requests[i], &world.requests[i + 1],
            (world.request_count - i - 1) * sizeof(world.requests[0]));
    --world.request_count;
    request->here = false;
}

static int request_cancel(ompi_request_t *request, int flag)
{
    world_request_t *mine = (world_request_t *) request;

    (void) flag;
    if (mine->here && !mine->out) {
        take_out(mine);
        request->req_status._cancelled = true;
        (void) ompi_request_complete(request, true);
    }
    return OMPI_SUCCESS;
}

static void request_construct(world_request_t *request)
{
    request->super.req_type = OMPI_REQUEST_PML;
    request->super.req_free = request_free;
    request->super.req_cancel = request_cancel;
    request->here = false;
}

OBJ_CLASS_INSTANCE(world_request_t, ompi_request_t, request_construct, NULL);

static world_request_t *request_new(void *buf, size_t count, ompi_datatype_t *datatype, int tag,
                                    bool persistent)
{
    world_request_t *request;

    if (WORLD_MANY <= world.request_count) {
        return NULL;
    }
    request = OBJ_NEW(world_request_t);
    FUZZ_CHECK(NULL != request);
    OMPI_REQUEST_INIT(&request->super, persistent);
    request->super.req_mpi_object.comm = MPI_COMM_WORLD;
    request->super.req_status.MPI_ERROR = MPI_SUCCESS;
    request->super.req_status._cancelled = false;
    request->super.req_status._ucount = 0;
    request->super.req_complete_cb = NULL;
    request->super.req_complete_cb_data = NULL;
    request->buf = buf;
    request->count = count;
    request->datatype = datatype;
    request->tag = tag;
    request->out = false;
    ++world.requests_now;
    return request;
}

static void post(world_request_t *request)
{
    request->super.req_state = OMPI_REQUEST_ACTIVE;
    request->super.req_complete = REQUEST_PENDING;
    request->here = true;
    world.requests[world.request_count++] = request;
}

static int isend(const void *buf, size_t count, ompi_datatype_t *datatype, int dst, int tag,
                 mca_pml_base_send_mode_t mode, ompi_communicator_t *comm, ompi_request_t **request)
{
    world_request_t *mine;
    uint32_t request_id;
    int kind;

    (void) mode;
    FUZZ_CHECK(1 == dst && MPI_COMM_WORLD == comm);
    if (0 < world.refuse_sends) {
        --world.refuse_sends;
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    world_gpu_seen(buf);
    mine = request_new((void *) buf, count, datatype, tag, false);
    if (NULL == mine) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    mine->out = true;
    if (world_tag(tag, &kind, &request_id) && MCA_PML_UMRDDT_TAG_NACK != kind) {
        ++world.controls; /* hints follow plain messages, too */
    }
    if (&ompi_mpi_byte.dt == datatype) {
        world_target.sent(tag, buf, count);
    }
    post(mine);
    if (!world.late) {
        take_out(mine);
        (void) ompi_request_complete(&mine->super, true);
    }
    *request = &mine->super;
    return OMPI_SUCCESS;
}

static int irecv_init(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                      ompi_communicator_t *comm, ompi_request_t **request)
{
    world_request_t *mine;

    FUZZ_CHECK((1 == src || OMPI_ANY_SOURCE == src) && MPI_COMM_WORLD == comm);
    if (0 < world.refuse_recvs) {
        --world.refuse_recvs;
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    world_gpu_seen(buf);
    mine = request_new(buf, count, datatype, tag, true);
    if (NULL == mine) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    *request = &mine->super;
    return OMPI_SUCCESS;
}

static int irecv(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                 ompi_communicator_t *comm, ompi_request_t **request)
{
    int rc = irecv_init(buf, count, datatype, src, tag, comm, request), kind;
    uint32_t request_id;

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    (*request)->req_persistent = false;
    post((world_request_t *) *request);
    if (world_tag(tag, &kind, &request_id) && MCA_PML_UMRDDT_TAG_NACK == kind) {
        /* it was probed, so it is here */
        world_deliver((world_request_t *) *request, tag, &world.notice, world.notice_length);
        world.notice_length = 0;
    }
    return OMPI_SUCCESS;
}

static int start(size_t count, ompi_request_t **requests)
{
    for (size_t i = 0; i < count; ++i) {
        post((world_request_t *) requests[i]);
    }
    return OMPI_SUCCESS;
}

static int iprobe(int src, int tag, ompi_communicator_t *comm, int *matched,
                  ompi_status_public_t *status)
{
    (void) src;
    (void) tag;
    (void) comm;
    *matched = 0 < world.notice_length;
    if (MPI_STATUS_IGNORE != status) {
        status->MPI_SOURCE = 1;
        status->_ucount = world.notice_length;
    }
    return OMPI_SUCCESS;
}

static int nothing_comm(ompi_communicator_t *comm)
{
    (void) comm;
    return OMPI_SUCCESS;
}

static int nothing_enable(bool on)
{
    (void) on;
    return OMPI_SUCCESS;
}

const mca_pml_base_module_t world_host = {
    .pml_add_comm = nothing_comm,
    .pml_del_comm = nothing_comm,
    .pml_enable = nothing_enable,
    .pml_isend = isend,
    .pml_irecv_init = irecv_init,
    .pml_irecv = irecv,
    .pml_start = start,
    .pml_iprobe = iprobe,
};

bool world_tag(int tag, int *kind, uint32_t *request_id)
{
    uint32_t number = (uint32_t) tag - (uint32_t) (INT32_MIN + 0x800000);

    if (4 * MCA_PML_UMRDDT_MAX_REQUEST_IDS <= number) {
        return false; /* a user's, or any */
    }
    *kind = (int) (number & 3);
    *request_id = number >> 2;
    return true;
}

world_request_t *world_posted(int kind, uint32_t i)
{
    world_request_t *found[WORLD_MANY];
    uint32_t count = 0, request_id;
    int of = -1;

    for (uint32_t j = 0; j < world.request_count; ++j) {
        if (!world.requests[j]->out
            && (world_tag(world.requests[j]->tag, &of, &request_id) ? of == kind : -1 == kind)) {
            found[count++] = world.requests[j];
        }
    }
    return 0 == count ? NULL : found[i % count];
}

void world_deliver(world_request_t *request, int tag, const void *bytes, size_t length)
{
    size_t room = request->count * request->datatype->super.size;
    ompi_status_public_t *status = &request->super.req_status;

    take_out(request);
    world_unpack(request->buf, request->count, request->datatype, bytes,
                 length < room ? length : room);
    status->MPI_SOURCE = 1;
    status->MPI_TAG = tag;
    status->MPI_ERROR = room < length ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
    status->_ucount = length;
    status->_cancelled = false;
    (void) ompi_request_complete(&request->super, true);
}

bool world_send_done(uint32_t i, bool well)
{
    for (uint32_t j = 0; j < world.request_count; ++j) {
        world_request_t *request = world.requests[j];

        if (request->out && 0 == i--) {
            take_out(request);
            request->super.req_status.MPI_ERROR = well ? MPI_SUCCESS : MPI_ERR_OTHER;
            (void) ompi_request_complete(&request->super, true);
            return true;
        }
    }
    return false;
}
