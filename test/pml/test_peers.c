/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Peers of communicators: one process is one peer, by whatever communicator it is found; one that
 * cannot be noted for want of memory is none.
 */

#include "ompi_config.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/mca/pml/umrddt/bringup/pml_umrddt_bringup.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_control.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_peer.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_progress.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_sets.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"

#include "../common/check.h"

int __real_opal_hash_table_set_value_ptr(opal_hash_table_t *table, const void *key, size_t size,
                                         void *value);
int __wrap_opal_hash_table_set_value_ptr(opal_hash_table_t *table, const void *key, size_t size,
                                         void *value);

static bool refuse;

int __wrap_opal_hash_table_set_value_ptr(opal_hash_table_t *table, const void *key, size_t size,
                                         void *value)
{
    return refuse && &mca_pml_umrddt.peers == table
               ? OPAL_ERR_OUT_OF_RESOURCE
               : __real_opal_hash_table_set_value_ptr(table, key, size, value);
}

/* What the file under test has from others. */
static unsigned identified;

void mca_pml_umrddt_identify(mca_pml_umrddt_peer_t *peer)
{
    (void) peer;
    ++identified;
}

void mca_pml_umrddt_check_start(void)
{
}

void mca_pml_umrddt_control_drop(mca_pml_umrddt_comm_t *comm)
{
    (void) comm;
}

void mca_pml_umrddt_schemes_peer_forget(const mca_pml_umrddt_peer_t *peer)
{
    (void) peer;
}

void mca_pml_umrddt_schemes_peer_free(mca_pml_umrddt_peer_t *peer)
{
    (void) peer;
}

int mca_pml_umrddt_progress(void)
{
    return 0;
}

int mca_pml_umrddt_scheme_named(const char *name)
{
    (void) name;
    return -1;
}

void mca_pml_umrddt_sets_free(mca_pml_umrddt_peer_t *peer)
{
    (void) peer;
}

void mca_pml_umrddt_unlisten(mca_pml_umrddt_comm_t *comm)
{
    (void) comm;
}

int main(void)
{
    static mca_pml_umrddt_comm_t comms[2];
    mca_pml_umrddt_peer_t *peer;

    setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
    setenv("OMPI_MCA_pml", "ob1", 1);
    setenv("OMPI_MCA_btl", "self", 1);
    CHECK(MPI_SUCCESS == MPI_Init(NULL, NULL));
    OBJ_CONSTRUCT(&mca_pml_umrddt.lock, opal_mutex_t);
    OBJ_CONSTRUCT(&mca_pml_umrddt.peers, opal_hash_table_t);
    opal_hash_table_init(&mca_pml_umrddt.peers, 8);
    OBJ_CONSTRUCT(&mca_pml_umrddt.credit, opal_list_t);
    for (int i = 0; i < 2; ++i) {
        comms[i].comm = (ompi_communicator_t *) MPI_COMM_WORLD;
        comms[i].peer_count = 1;
    }

    refuse = true;
    CHECK(NULL == mca_pml_umrddt_peer(&comms[0], 0) && 1 == identified);
    CHECK(0 == mca_pml_umrddt.counters.peers_now && 0 == mca_pml_umrddt.counters.peer_bytes_now);
    refuse = false;
    peer = mca_pml_umrddt_peer(&comms[0], 0);
    CHECK(NULL != peer && 2 == identified && 1 == mca_pml_umrddt.counters.peers_now);
    CHECK(peer == mca_pml_umrddt_peer(&comms[1], 0) && 2 == identified && 2 == peer->comms);
    CHECK(NULL == mca_pml_umrddt_peer(&comms[1], 1));

    mca_pml_umrddt_peers_free();
    CHECK(0 == mca_pml_umrddt.counters.peers_now && 0 == mca_pml_umrddt.counters.peer_bytes_now);
    free(comms[0].peers);
    free(comms[1].peers);
    MPI_Finalize();
    printf("%lu checks\n", checks);
    return 0;
}
