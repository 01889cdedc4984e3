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
 * Messages from GPU memory of the same node: the receiver's INFO_REQ and the sender's answer. Read
 * pml_umrddt_ipc.h first. This is state INFO_REQ of pml_umrddt_ipc_scheme.c.
 */

#include "ompi_config.h"

#include <stdlib.h>
#include <string.h>

#include "opal/class/opal_hash_table.h"
#include "opal/util/output.h"

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_owner.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_direct.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_ipc.h"

/** An active INFO_REQ. */
struct mca_pml_umrddt_info_req_t {
    mca_pml_umrddt_wait_t wait; /**< until the cancelled request completes */
    ompi_request_t *request; /**< the base PML's, for the next part or INFO message; NULL: none */
    uint32_t what;           /**< MCA_PML_UMRDDT_INFO_* */
    const mca_pml_umrddt_peer_t *peer;
    uint64_t ids[2]; /**< of the allocation, of the layout */
    mca_pml_umrddt_parts_t *parts;
    union {
        mca_pml_umrddt_layout_frag_t flat;
        mca_pml_umrddt_info_t info;
        unsigned char bytes[MCA_PML_UMRDDT_INFO_ROOM];
    } got;
};

static mca_pml_umrddt_counters_t *const counters = &mca_pml_umrddt.counters;

static bool reported(void *owner);

/* ---------------------------------------------------------------------------------------------
 * Table of requested items: one lookup finds whether another message waits for an answer,
 * independent of the number of messages. At most one message requests an item at a time.
 * ------------------------------------------------------------------------------------------- */

/** A key of the hash table, so it has no padding. */
typedef struct {
    const mca_pml_umrddt_peer_t *peer;
    uint64_t id;
    uint64_t kind; /**< one of MCA_PML_UMRDDT_INFO_* */
} thing_t;

static const uint32_t kinds[] = {MCA_PML_UMRDDT_INFO_EXPORT, MCA_PML_UMRDDT_INFO_LAYOUT};

static opal_hash_table_t things; /**< thing_t -> mca_pml_umrddt_info_req_t */
static bool things_ready = false;

static void things_remove(const mca_pml_umrddt_info_req_t *requested)
{
    for (int i = 0; i < 2; ++i) {
        thing_t thing = {requested->peer, requested->ids[i], kinds[i]};
        void *found;

        if (0 != (kinds[i] & requested->what)
            && OPAL_SUCCESS == opal_hash_table_get_value_ptr(&things, &thing, sizeof(thing), &found)
            && requested == found) {
            (void) opal_hash_table_remove_value_ptr(&things, &thing, sizeof(thing));
        }
    }
}

/** @return OPAL_SUCCESS, or an error: no memory, and nothing is added */
static int things_add(mca_pml_umrddt_info_req_t *requested)
{
    int rc = OPAL_SUCCESS;

    if (!things_ready) {
        OBJ_CONSTRUCT(&things, opal_hash_table_t);
        things_ready = true;
        rc = opal_hash_table_init(&things, 64);
        if (OPAL_SUCCESS != rc) {
            mca_pml_umrddt_ipc_info_req_close();
            return rc;
        }
    }
    for (int i = 0; i < 2 && OPAL_SUCCESS == rc; ++i) {
        thing_t thing = {requested->peer, requested->ids[i], kinds[i]};

        if (0 != (kinds[i] & requested->what)) {
            rc = opal_hash_table_set_value_ptr(&things, &thing, sizeof(thing), requested);
        }
    }
    if (OPAL_SUCCESS != rc) {
        things_remove(requested);
    }
    return rc;
}

bool mca_pml_umrddt_ipc_has_info_req(const mca_pml_umrddt_recv_t *recv, uint32_t what)
{
    const uint64_t ids[2] = {recv->rts.buffer_id, recv->rts.layout};

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    for (int i = 0; i < 2 && things_ready; ++i) {
        thing_t thing = {recv->peer, ids[i], kinds[i]};
        void *found;

        if (0 != (kinds[i] & what)
            && OPAL_SUCCESS
                   == opal_hash_table_get_value_ptr(&things, &thing, sizeof(thing), &found)) {
            return true;
        }
    }
    return false;
}

void mca_pml_umrddt_ipc_info_req_close(void)
{
    if (things_ready) {
        OBJ_DESTRUCT(&things);
        things_ready = false;
    }
}

/* ---------------------------------------------------------------------------------------------
 * Request and answer
 * ------------------------------------------------------------------------------------------- */

/** Give the message up and record that this allocation cannot be imported. */
static void refuse_memory(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_ipc_recv_t *ipc = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_ipc_recv_t, recv);

    mca_pml_umrddt_ipc_refused(recv->peer, recv->rts.buffer_id,
                               opal_umrddt_gpu_on_gpu(&recv->where) ? ipc->engine : NULL);
    mca_pml_umrddt_ipc_refuse(recv);
}

static void malformed(mca_pml_umrddt_recv_t *recv)
{
    MCA_PML_UMRDDT_COUNT(protocol_errors);
    opal_output(
        0,
        "pml:umrddt: the memory information of rank %d is invalid; the base PML carries a message "
        "of %llu bytes",
        recv->status.MPI_SOURCE, (unsigned long long) recv->rts.length);
    mca_pml_umrddt_ipc_refuse(recv);
}

static void requested_free(mca_pml_umrddt_info_req_t *requested)
{
    OBJ_DESTRUCT(&requested->wait);
    free(requested->parts);
    free(requested);
}

/** Retry function of a wait: free a cancelled INFO_REQ when its receive has completed. */
static bool let_go(void *owner)
{
    mca_pml_umrddt_info_req_t *requested = owner;

    if (!REQUEST_COMPLETE(requested->request)) {
        return false;
    }
    ompi_request_free(&requested->request);
    requested_free(requested);
    mca_pml_umrddt_active(-1);
    return true;
}

void mca_pml_umrddt_ipc_info_req_drop(mca_pml_umrddt_info_req_t *requested)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    things_remove(requested);
    if (NULL == requested->request) {
        requested_free(requested);
        return;
    }
    (void) ompi_request_cancel(requested->request);
    mca_pml_umrddt_active(1);
    if (!let_go(requested)) {
        mca_pml_umrddt_wait(&mca_pml_umrddt.polled, &requested->wait, let_go, requested);
    }
}

/** Post the receive for the next part or the INFO message. */
static int listen_for_report(mca_pml_umrddt_recv_t *recv)
{
    mca_pml_umrddt_ipc_recv_t *ipc = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_ipc_recv_t, recv);
    mca_pml_umrddt_info_req_t *requested = ipc->requested;
    int rc = mca_pml_umrddt.host.pml_irecv(
        &requested->got, sizeof(requested->got), &ompi_mpi_byte.dt, recv->status.MPI_SOURCE,
        mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_INFO, recv->rts.request_id), recv->comm->comm,
        &requested->request);

    if (OMPI_SUCCESS != rc) {
        requested->request = NULL;
    }
    return rc;
}

void mca_pml_umrddt_ipc_info_req(mca_pml_umrddt_recv_t *recv, uint32_t what)
{
    mca_pml_umrddt_ipc_recv_t *ipc = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_ipc_recv_t, recv);
    mca_pml_umrddt_reply_t reply;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    recv->state = MCA_PML_UMRDDT_RECV_INFO_REQ;
    ipc->requested = malloc(sizeof(*ipc->requested));
    if (NULL == ipc->requested) {
        mca_pml_umrddt_recv_by_base(recv, &counters->fallback_other);
        return;
    }
    OBJ_CONSTRUCT(&ipc->requested->wait, mca_pml_umrddt_wait_t);
    ipc->requested->request = NULL;
    ipc->requested->what = what;
    ipc->requested->peer = recv->peer;
    ipc->requested->ids[0] = recv->rts.buffer_id;
    ipc->requested->ids[1] = recv->rts.layout;
    ipc->requested->parts = NULL;
    mca_pml_umrddt_reply_init(&recv->rts, MCA_PML_UMRDDT_REPLY_INFO_REQ, &reply);
    reply.what = what;
    if (OPAL_SUCCESS != things_add(ipc->requested) || OMPI_SUCCESS != listen_for_report(recv)
        || OMPI_SUCCESS != mca_pml_umrddt_reply_send(recv->comm, recv->status.MPI_SOURCE, &reply)) {
        mca_pml_umrddt_recv_by_base(recv, &counters->fallback_other);
        return;
    }
    mca_pml_umrddt_recv_announce(recv);
    MCA_PML_UMRDDT_COUNT(ipc_info_reqs);
    mca_pml_umrddt_wait(&mca_pml_umrddt.polled, &recv->wait, reported, recv);
}

/** Process an INFO message. @p from is the layout, or NULL. */
static void take(mca_pml_umrddt_recv_t *recv, const mca_pml_umrddt_info_t *info,
                 opal_iov_cache_layout_t *from)
{
    mca_pml_umrddt_ipc_recv_t *ipc = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_ipc_recv_t, recv);
    uint32_t lacks = ipc->requested->what & ~info->what;
    int rc = OPAL_SUCCESS;

    mca_pml_umrddt_ipc_map_done_flags(recv->peer, info->done_flag_pid, info->done_flag_fd);
    if (NULL != from) {
        ipc->from = from;
        mca_pml_umrddt_ipc_keep(recv->peer, recv->rts.layout, from);
    }
    if (0 != (MCA_PML_UMRDDT_INFO_EXPORT & info->what)) {
        if (NULL == ipc->engine
            && !mca_pml_umrddt_ipc_engine_for(info->export.uuid, &ipc->engine)) {
            refuse_memory(recv);
            return;
        }
        rc = opal_umrddt_gpu_import(ipc->engine, mca_pml_umrddt_ipc_number(recv->peer),
                                    &info->export, &ipc->import);
        if (OPAL_SUCCESS == rc) {
            mca_pml_umrddt_ipc_mapped(recv->peer, recv->rts.buffer_id,
                                      opal_umrddt_gpu_on_gpu(&recv->where) ? NULL : ipc->engine);
        }
    }
    if (OPAL_ERR_BAD_PARAM == rc) {
        malformed(recv);
    } else if (OPAL_SUCCESS != rc || 0 != lacks) {
        refuse_memory(recv);
    } else {
        mca_pml_umrddt_ipc_info_req_drop(ipc->requested);
        ipc->requested = NULL;
        mca_pml_umrddt_ipc_go_on(recv);
    }
}

/** Retry function in state INFO_REQ: test for a part or the INFO message. */
static bool reported(void *owner)
{
    mca_pml_umrddt_recv_t *recv = owner;
    mca_pml_umrddt_ipc_recv_t *ipc = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_ipc_recv_t, recv);
    mca_pml_umrddt_info_req_t *requested = ipc->requested;
    const mca_pml_umrddt_layout_frag_t *flat = &requested->got.flat;
    opal_iov_cache_layout_t *from = NULL;
    bool again = false;
    size_t length;
    int rc;

    _Static_assert(offsetof(mca_pml_umrddt_info_t, seq)
                       == offsetof(mca_pml_umrddt_layout_frag_t, seq),
                   "both begin alike");
    if (!REQUEST_COMPLETE(requested->request)) {
        return false;
    }
    length = requested->request->req_status._ucount;
    rc = MPI_SUCCESS == requested->request->req_status.MPI_ERROR && sizeof(*flat) <= length
             ? OMPI_SUCCESS
             : OMPI_ERR_BAD_PARAM;
    ompi_request_free(&requested->request);
    requested->request = NULL;

    if (OMPI_SUCCESS == rc && recv->rts.seq != flat->seq) {
        again = true; /* answer to a message that was given up */
    } else if (OMPI_SUCCESS == rc
               && MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_LAYOUT_FRAG) == flat->magic) {
        again = true;
        rc = recv->rts.request_id != flat->request_id || recv->rts.layout != flat->layout
                     || 0 == (MCA_PML_UMRDDT_INFO_LAYOUT & requested->what)
                 ? OMPI_ERR_BAD_PARAM
                 : mca_pml_umrddt_direct_part(flat, length, MCA_PML_UMRDDT_MAX_INFO_FLAT,
                                              &requested->parts);
    } else if (OMPI_SUCCESS == rc) {
        rc = mca_pml_umrddt_info_read(&requested->got.info, length, &recv->rts, requested->what,
                                      requested->parts, &from);
    }
    if (OMPI_SUCCESS == rc && again) {
        rc = listen_for_report(recv);
    }
    if (OMPI_ERR_BAD_PARAM == rc) {
        malformed(recv);
    } else if (OMPI_SUCCESS != rc) {
        mca_pml_umrddt_recv_by_base(recv, &counters->fallback_other);
    } else if (again) {
        mca_pml_umrddt_wait(&mca_pml_umrddt.polled, &recv->wait, reported, recv);
    } else {
        take(recv, &requested->got.info, from);
    }
    return true;
}
