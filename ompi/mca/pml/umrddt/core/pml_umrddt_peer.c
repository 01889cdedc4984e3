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
 * The records of peers, created at first contact.
 */

#include "ompi_config.h"

#include <stdlib.h>

#include "ompi/mca/pml/umrddt/core/pml_umrddt_comm.h"

/** Create a peer and read its identity from the modex. */
static mca_pml_umrddt_peer_t *peer_new(opal_proc_t *proc)
{
    mca_pml_umrddt_peer_t *peer = calloc(1, sizeof(*peer));

    if (NULL == peer) {
        return NULL;
    }
    OBJ_CONSTRUCT(&peer->credit, opal_list_t);
    OBJ_CONSTRUCT(&peer->in_credit, opal_list_item_t);
    peer->proc = proc;
    MCA_PML_UMRDDT_COUNT(peers_now);
    mca_pml_umrddt_peer_bytes(sizeof(*peer));
    mca_pml_umrddt_identify(peer);
    MCA_PML_UMRDDT_VERBOSE(SELECTION, "rank %u: %s%s%s%s", mca_pml_umrddt_peer_rank(peer),
                           peer->capable ? "handled" : "passed through, as it cannot use umrddt",
                           peer->has_hca ? ", has an HCA" : "", peer->has_gpu ? ", has a GPU" : "",
                           peer->same_host ? ", CUDA IPC reaches it" : "");
    return peer;
}

void mca_pml_umrddt_peer_delete(mca_pml_umrddt_peer_t *peer)
{
    OBJ_DESTRUCT(&peer->in_credit);
    OBJ_DESTRUCT(&peer->credit);
    MCA_PML_UMRDDT_COUNT_ADD(peers_now, (uint64_t) -1);
    mca_pml_umrddt_peer_bytes(-(int64_t) sizeof(*peer));
    free(peer);
}

mca_pml_umrddt_peer_t *mca_pml_umrddt_peer_find(mca_pml_umrddt_comm_t *comm, int rank)
{
    mca_pml_umrddt_peer_t *peer = NULL;
    mca_pml_umrddt_peer_t **peers;
    ompi_proc_t *proc;

    if (0 > rank || comm->peer_count <= rank) {
        return NULL;
    }
    proc = ompi_comm_peer_lookup(comm->comm, rank);
    if (NULL == proc) {
        return NULL;
    }
    OPAL_THREAD_LOCK(&mca_pml_umrddt.lock);
    if (NULL == comm->peers) {
        peers = calloc((size_t) comm->peer_count, sizeof(*peers));
        if (NULL != peers) {
            MCA_PML_UMRDDT_COUNT_ADD(peer_table_bytes_now,
                                     (size_t) comm->peer_count * sizeof(*peers));
        }
        __atomic_store_n(&comm->peers, peers, __ATOMIC_RELEASE);
    }
    if (NULL != comm->peers) {
        if (OPAL_SUCCESS
            != opal_hash_table_get_value_ptr(&mca_pml_umrddt.peers, &proc->super.proc_name,
                                             sizeof(proc->super.proc_name), (void **) &peer)) {
            peer = peer_new(&proc->super);
            if (NULL != peer
                && OPAL_SUCCESS
                       != opal_hash_table_set_value_ptr(&mca_pml_umrddt.peers,
                                                        &proc->super.proc_name,
                                                        sizeof(proc->super.proc_name), peer)) {
                mca_pml_umrddt_peer_delete(
                    peer); /* otherwise every communicator would create its own */
                peer = NULL;
            }
        }
        if (NULL != peer && NULL == comm->peers[rank]) {
            ++peer->comms;
            __atomic_store_n(&comm->peers[rank], peer, __ATOMIC_RELEASE);
        }
    }
    OPAL_THREAD_UNLOCK(&mca_pml_umrddt.lock);
    return peer;
}
