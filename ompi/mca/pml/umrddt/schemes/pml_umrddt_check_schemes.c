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
 * Invariants of active messages by scheme; read pml_umrddt_check.h first. A separate file, so that
 * schemes can be tested alone.
 */

#include "ompi_config.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_progress.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_ipc.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_pack_chunks.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_rdma.h"

/** Check one side of a message that is sent in chunks. */
static const char *check_chunks(const mca_pml_umrddt_pack_t *pack)
{
    unsigned in_flight = 0, copying = 0;

    MCA_PML_UMRDDT_HOLDS(0 < pack->depth && MCA_PML_UMRDDT_PACK_DEPTH >= pack->depth,
                         "chunks: there is a place");
    MCA_PML_UMRDDT_HOLDS(pack->next <= pack->job.total && pack->begun <= pack->chunks,
                         "chunks: no more are begun than the message has");
    for (unsigned i = 0; i < pack->depth; ++i) {
        const mca_pml_umrddt_chunk_t *chunk = &pack->chunk[i];

        in_flight += MCA_PML_UMRDDT_PHASE_IDLE == chunk->phase ? 0 : 1;
        copying += NULL == chunk->copy ? 0 : 1;
        MCA_PML_UMRDDT_HOLDS(MCA_PML_UMRDDT_PHASE_IDLE == chunk->phase
                                 || (chunk->start < chunk->end && chunk->end <= pack->job.total),
                             "chunks: each is a part of its message");
    }
    MCA_PML_UMRDDT_HOLDS(in_flight == pack->in_flight, "chunks: those under way are counted");
    MCA_PML_UMRDDT_HOLDS(copying == pack->copying, "chunks: those that a GPU copies are counted");
    if (mca_pml_umrddt_pack_by_hca(pack)) {
        MCA_PML_UMRDDT_HOLDS(pack->hca.done <= pack->hca.granted,
                             "chunks: no more are written than credits were given");
        MCA_PML_UMRDDT_HOLDS(!pack->job.in || !pack->hca.reported
                                 || pack->hca.granted <= pack->begun,
                             "chunks: none is granted that has no place");
    }
    return NULL;
}

/** Check that a receive has what RDMA writes need, before and after its CTS. @p named: it holds the
 * memory or rkeys that its CTS names. */
static const char *check_rdma(const mca_pml_umrddt_recv_t *recv, bool named)
{
    if (MCA_PML_UMRDDT_RECV_CREDIT == recv->state) {
        MCA_PML_UMRDDT_HOLDS(0 == recv->fin, "receives: no FIN can come before it is asked for");
    } else if (MCA_PML_UMRDDT_RECV_FIN == recv->state) {
        MCA_PML_UMRDDT_HOLDS(0 != recv->fin
                                 && recv == umrddt_number_find(&mca_pml_umrddt.fins, recv->fin),
                             "receives: one that waits for a FIN is found by it");
    } else {
        return NULL;
    }
    MCA_PML_UMRDDT_HOLDS(NULL != recv->endpoint,
                         "receives: one that keys are named for has an endpoint");
    MCA_PML_UMRDDT_HOLDS(recv->position < recv->total, "receives: a round has bytes to come");
    MCA_PML_UMRDDT_HOLDS(named, "receives: what is named to a sender is held");
    return NULL;
}

const char *mca_pml_umrddt_check_umr(const mca_pml_umrddt_recv_t *recv)
{
    const mca_pml_umrddt_rdma_recv_t *rdma = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_rdma_recv_t, recv);

    MCA_PML_UMRDDT_HOLDS(MCA_PML_UMRDDT_RECV_MAPPING != recv->state || NULL != rdma->keyset,
                         "receives: one whose keys are mapped has them");
    return check_rdma(recv, NULL != rdma->keyset);
}

const char *mca_pml_umrddt_check_direct(const mca_pml_umrddt_recv_t *recv)
{
    const mca_pml_umrddt_rdma_recv_t *rdma = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_rdma_recv_t, recv);

    return check_rdma(recv, NULL != rdma->memory);
}

const char *mca_pml_umrddt_check_ipc(const mca_pml_umrddt_recv_t *recv)
{
    const mca_pml_umrddt_ipc_recv_t *ipc = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_ipc_recv_t, recv);

    MCA_PML_UMRDDT_HOLDS(MCA_PML_UMRDDT_RECV_INFO_REQ != recv->state || NULL != ipc->requested,
                         "receives: one that has asked notes what");
    MCA_PML_UMRDDT_HOLDS(MCA_PML_UMRDDT_RECV_COPY != recv->state
                             || (NULL != ipc->copy && (NULL != ipc->import || recv->peer->self)),
                         "receives: memory that is copied from is mapped");
    return NULL;
}

const char *mca_pml_umrddt_check_pack(const mca_pml_umrddt_recv_t *recv)
{
    const mca_pml_umrddt_pack_held_t *held = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_pack_held_t, recv);

    if (MCA_PML_UMRDDT_RECV_CHUNKS != recv->state) {
        return NULL;
    }
    MCA_PML_UMRDDT_HOLDS(NULL != held->pack, "receives: one that comes in chunks has them");
    return check_chunks(held->pack);
}
