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
 * The records of communicators. bringup/pml_umrddt_comms.c adds and removes them.
 */

#include "ompi_config.h"

#include <stdlib.h>

#include "ompi/mca/pml/umrddt/core/pml_umrddt_pattern.h"

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
    comm->gate = MCA_PML_UMRDDT_GATE_GUARDED;
    comm->gate.claiming = 0;
    comm->closing = 0;
    comm->claim_order = 0;
    OBJ_CONSTRUCT(&comm->gate.lock, opal_recursive_mutex_t);
    OBJ_CONSTRUCT(&comm->gate.claims, opal_list_t);
}

static void comm_destruct(mca_pml_umrddt_comm_t *comm)
{
    if (NULL != comm->peers) {
        MCA_PML_UMRDDT_COUNT_ADD(peer_table_bytes_now,
                                 -(uint64_t) comm->peer_count * sizeof(*comm->peers));
        free(comm->peers);
    }
    OBJ_DESTRUCT(&comm->gate.claims);
    OBJ_DESTRUCT(&comm->gate.lock);
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

mca_pml_umrddt_comm_t *mca_pml_umrddt_comm_new(void)
{
    mca_pml_umrddt_comm_t *comm = OBJ_NEW(mca_pml_umrddt_comm_t);

    for (size_t i = 0; i < sizeof(spare) / sizeof(spare[0]) && NULL == comm; ++i) {
        comm = spare[i];
        spare[i] = NULL;
    }
    return comm;
}
