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
 * The records of communicators: adds and removes communicators, and frees their peers at the end.
 * Here, because all folders hold something for them.
 */

#include "ompi_config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "opal/runtime/opal_progress.h"
#include "opal/util/info.h"

#include "ompi/mca/pml/umrddt/bringup/pml_umrddt_bringup.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_control.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_progress.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_sets.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "umrddt_help.h"

mca_pml_umrddt_comm_t *mca_pml_umrddt_comms[MCA_PML_UMRDDT_COMMS];

static void comm_construct(mca_pml_umrddt_comm_t *comm)
{
    comm->comm = NULL;
    comm->bypass = false;
    comm->scheme = MCA_PML_UMRDDT_SCHEME_AUTO;
    comm->schemes = MCA_PML_UMRDDT_BITS_ALL;
    comm->pattern = MCA_PML_UMRDDT_PATTERN_UNREAD;
    comm->listening = false;
    comm->peers = NULL;
    comm->peer_count = 0;
    umrddt_gate_init(&comm->gate);
    comm->claim_order = 0;
    comm->hints = NULL;
    comm->keeps = false;
}

static void comm_destruct(mca_pml_umrddt_comm_t *comm)
{
    if (NULL != comm->peers) {
        MCA_PML_UMRDDT_COUNT_ADD(peer_table_bytes_now,
                                 -(uint64_t) comm->peer_count * sizeof(*comm->peers));
        free(comm->peers);
    }
    free(comm->hints);
    umrddt_gate_fini(&comm->gate);
}

OBJ_CLASS_INSTANCE(mca_pml_umrddt_comm_t, opal_list_item_t, comm_construct, comm_destruct);

/** Reserve for the first communicators, because MPI_Init ignores errors of add_comm for them. */
static mca_pml_umrddt_comm_t *spare[2];

int mca_pml_umrddt_comms_init(void)
{
    for (size_t i = 0; i < sizeof(spare) / sizeof(spare[0]); ++i) {
        spare[i] = OBJ_NEW(mca_pml_umrddt_comm_t);
        if (NULL == spare[i]) {
            return OMPI_ERR_OUT_OF_RESOURCE;
        }
    }
    return OMPI_SUCCESS;
}

void mca_pml_umrddt_comms_fini(void)
{
    for (size_t i = 0; i < sizeof(spare) / sizeof(spare[0]); ++i) {
        if (NULL != spare[i]) {
            OBJ_RELEASE(spare[i]);
        }
    }
}

/** Create a record, or take a spare one. @return NULL: no memory */
static mca_pml_umrddt_comm_t *comm_new(void)
{
    mca_pml_umrddt_comm_t *comm = OBJ_NEW(mca_pml_umrddt_comm_t);

    for (size_t i = 0; i < sizeof(spare) / sizeof(spare[0]) && NULL == comm; ++i) {
        comm = spare[i];
        spare[i] = NULL;
    }
    return comm;
}

/** Get the scheme of a communicator from its info, else from the parameter. */
static int scheme_of(ompi_communicator_t *comm)
{
    char value[16] = "";
    int scheme = -1;

    if (NULL != comm->super.s_info
        && umrddt_info_get(comm->super.s_info, "pml_umrddt_scheme", value, sizeof(value))) {
        scheme = mca_pml_umrddt_scheme_named(value);
        if (0 > scheme) {
            opal_show_help("help-mca-pml-umrddt.txt", "scheme-value", true, value);
        }
    }
    return 0 > scheme ? mca_pml_umrddt.params.scheme : scheme;
}

/**
 * Register the progress function when the first communicator is added. It then runs after the base
 * PML's transports and handles their events in the same call.
 */
static void poll(void)
{
    if (!__atomic_exchange_n(&mca_pml_umrddt.polling, true, __ATOMIC_RELAXED)) {
        opal_progress_register(mca_pml_umrddt_progress);
        mca_pml_umrddt_check_start();
    }
}

/** A Session may enable threads after communicators exist: guard these communicators, too. */
static void guard_all(void)
{
    static bool threads = false;

    if (OPAL_LIKELY(threads == opal_using_threads())) {
        return;
    }
    threads = true;
    for (uint32_t i = 0; i < mca_pml_umrddt.comm_end; ++i) {
        if (NULL != mca_pml_umrddt_comms[i]) {
            umrddt_gate_guard(&mca_pml_umrddt_comms[i]->gate);
        }
    }
}

int mca_pml_umrddt_add_comm(struct ompi_communicator_t *ompi_comm)
{
    uint32_t index = UMRDDT_COMM_INDEX(ompi_comm);
    mca_pml_umrddt_comm_t *comm;
    int scheme, rc = mca_pml_umrddt.host.pml_add_comm(ompi_comm);

    if (OMPI_SUCCESS != rc || !mca_pml_umrddt.usable) {
        return rc;
    }
    scheme = scheme_of(ompi_comm);
    if (MCA_PML_UMRDDT_BASE_GPU_ALL == mca_pml_umrddt.base_gpu
        && MCA_PML_UMRDDT_SCHEME_BASE == scheme) {
        return rc;
    }
    if (index >= MCA_PML_UMRDDT_COMMS) {
        /* An error, because a peer may have the communicator and send an envelope on it. */
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    comm = comm_new();
    if (NULL == comm) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    comm->comm = ompi_comm;
    comm->added = mca_pml_umrddt_time();
    comm->bypass = MCA_PML_UMRDDT_SCHEME_BASE == scheme;
    comm->scheme = scheme;
    if (MCA_PML_UMRDDT_SCHEME_AUTO != scheme) {
        comm->schemes &= MCA_PML_UMRDDT_BIT(scheme);
    }
    comm->peer_count = OMPI_COMM_IS_INTER(ompi_comm) ? ompi_comm_remote_size(ompi_comm)
                                                     : ompi_comm_size(ompi_comm);
    guard_all();
    poll();
    opal_atomic_wmb();
    mca_pml_umrddt_comms[index] = comm;
    OPAL_THREAD_LOCK(&mca_pml_umrddt.lock);
    if (mca_pml_umrddt.comm_end <= index) {
        mca_pml_umrddt.comm_end = index + 1;
    }
    OPAL_THREAD_UNLOCK(&mca_pml_umrddt.lock);
    return OMPI_SUCCESS;
}

/** Unmap memory of peers that have no other communicator with this process. */
static void part(const mca_pml_umrddt_comm_t *comm)
{
    for (int rank = 0; NULL != comm->peers && rank < comm->peer_count; ++rank) {
        mca_pml_umrddt_peer_t *peer = comm->peers[rank];
        bool last;

        if (NULL == peer) {
            continue;
        }
        OPAL_THREAD_LOCK(&mca_pml_umrddt.lock);
        last = 0 == --peer->comms;
        OPAL_THREAD_UNLOCK(&mca_pml_umrddt.lock);
        if (last) {
            mca_pml_umrddt_schemes_peer_forget(peer);
        }
    }
}

/** Seconds that MPI_Finalize waits for the completion of sends whose requests were freed, and for
 * refused control messages. */
#define LAST_WORDS 10

/** Returns true if there are active messages without a waiting request. */
static bool drains_on_finalize(void)
{
    return 0 < __atomic_load_n(&mca_pml_umrddt.freed, __ATOMIC_RELAXED)
           || 0 < __atomic_load_n(&mca_pml_umrddt.refused, __ATOMIC_RELAXED);
}

void mca_pml_umrddt_drain_on_finalize(mca_pml_umrddt_comm_t *comm)
{
    struct timespec now, end;

    if (!drains_on_finalize()) {
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += LAST_WORDS;
    do {
        opal_progress();
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (
        drains_on_finalize()
        && (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec)));
    mca_pml_umrddt_control_drop(comm);
}

int mca_pml_umrddt_del_comm(struct ompi_communicator_t *ompi_comm)
{
    mca_pml_umrddt_comm_t *comm = mca_pml_umrddt_comm_find(ompi_comm);
    opal_list_item_t *claim;

    if (&ompi_mpi_comm_world.comm == ompi_comm) {
        mca_pml_umrddt_drain_on_finalize(comm);
    }
    if (NULL != comm) {
        mca_pml_umrddt_comms[UMRDDT_COMM_INDEX(ompi_comm)] = NULL;
        while (NULL != (claim = opal_list_remove_first(&comm->gate.claims))) {
            /* a matched message cannot be returned to the base PML */
            opal_free_list_return(&mca_pml_umrddt.claims, (opal_free_list_item_t *) claim);
        }
        mca_pml_umrddt_unlisten(comm);
        part(comm);
        OBJ_RELEASE(comm);
    }
    return mca_pml_umrddt.host.pml_del_comm(ompi_comm);
}

void mca_pml_umrddt_peers_free(void)
{
    mca_pml_umrddt_peer_t *peer;
    void *key, *node = NULL;
    size_t length;
    int rc;

    rc = opal_hash_table_get_first_key_ptr(&mca_pml_umrddt.peers, &key, &length, (void **) &peer,
                                           &node);
    while (OPAL_SUCCESS == rc) {
        if (peer->waits_for_credit) {
            opal_list_remove_item(&mca_pml_umrddt.credit, &peer->in_credit);
        }
        mca_pml_umrddt_sets_free(peer);
        mca_pml_umrddt_schemes_peer_free(peer);
        mca_pml_umrddt_peer_delete(peer);
        rc = opal_hash_table_get_next_key_ptr(&mca_pml_umrddt.peers, &key, &length, (void **) &peer,
                                              node, &node);
    }
    for (uint32_t i = 0; i < mca_pml_umrddt.comm_end; ++i) {
        if (NULL != mca_pml_umrddt_comms[i]) {
            OBJ_RELEASE(mca_pml_umrddt_comms[i]);
            mca_pml_umrddt_comms[i] = NULL;
        }
    }
}
