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
 * The functions of all groups of schemes; see pml_umrddt_groups.h first.
 */

#include "ompi_config.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_peer.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_groups.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_scheme.h"

void mca_pml_umrddt_schemes_open(void)
{
    mca_pml_umrddt.schemes = mca_pml_umrddt.any_system = 0;
    for (int i = 0; i < MCA_PML_UMRDDT_GROUPS; ++i) {
        const uint16_t schemes = mca_pml_umrddt_groups[i]->open();

        mca_pml_umrddt.schemes |= schemes;
        mca_pml_umrddt.any_system |= mca_pml_umrddt_groups[i]->any_system ? schemes : 0;
    }
}

void mca_pml_umrddt_schemes_close(void)
{
    for (int i = 0; i < MCA_PML_UMRDDT_GROUPS; ++i) {
        if (NULL != mca_pml_umrddt_groups[i]->close) {
            mca_pml_umrddt_groups[i]->close();
        }
    }
}

void mca_pml_umrddt_schemes_peer_forget(const mca_pml_umrddt_peer_t *peer)
{
    for (int i = 0; i < MCA_PML_UMRDDT_GROUPS; ++i) {
        if (NULL != mca_pml_umrddt_groups[i]->peer_forget) {
            mca_pml_umrddt_groups[i]->peer_forget(peer);
        }
    }
}

void mca_pml_umrddt_schemes_peer_free(mca_pml_umrddt_peer_t *peer)
{
    for (int i = 0; i < MCA_PML_UMRDDT_GROUPS; ++i) {
        if (NULL != mca_pml_umrddt_groups[i]->peer_free) {
            mca_pml_umrddt_groups[i]->peer_free(peer);
        }
    }
}

uint16_t mca_pml_umrddt_schemes_reach_new(mca_pml_umrddt_peer_t *peer)
{
    uint16_t reach = MCA_PML_UMRDDT_REACH_KNOWN;

    for (int i = 0; i < MCA_PML_UMRDDT_GROUPS && peer->capable; ++i) {
        const mca_pml_umrddt_scheme_t *scheme = mca_pml_umrddt_groups[i];

        if (scheme->reaches(peer)) {
            reach |= scheme->group;
        }
    }
    /* concurrent threads find the same value */
    __atomic_store_n(&peer->reach, reach, __ATOMIC_RELAXED);
    return reach;
}
