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
 * The functions of all groups of schemes; see pml_umrddt_scheme.h first.
 */

#include "ompi_config.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_comm.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_scheme.h"

void mca_pml_umrddt_schemes_open(void)
{
    mca_pml_umrddt.schemes = 0;
    for (int i = 0; i < MCA_PML_UMRDDT_GROUPS; ++i) {
        mca_pml_umrddt.schemes |= mca_pml_umrddt_groups[i]->open();
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

bool mca_pml_umrddt_schemes_reach(const mca_pml_umrddt_peer_t *peer)
{
    for (int i = 0; i < MCA_PML_UMRDDT_GROUPS; ++i) {
        const mca_pml_umrddt_scheme_t *scheme = mca_pml_umrddt_groups[i];

        if (NULL != scheme->reaches && scheme->reaches(peer)) {
            return true;
        }
    }
    return false;
}

mca_pml_umrddt_can_send_t mca_pml_umrddt_schemes_can_send(const mca_pml_umrddt_comm_t *comm,
                                                          const mca_pml_umrddt_peer_t *peer,
                                                          const mca_pml_umrddt_where_t *where,
                                                          size_t size)
{
    const uint16_t enabled = mca_pml_umrddt.schemes & comm->schemes;
    mca_pml_umrddt_can_send_t best = MCA_PML_UMRDDT_CAN_SEND_NOT;

    /* in the order of the rules: the schemes that are usual for a kind of memory come first */
    for (int i = 0; i < MCA_PML_UMRDDT_SCHEMES && MCA_PML_UMRDDT_CAN_SEND != best; ++i) {
        const mca_pml_umrddt_scheme_t *scheme = mca_pml_umrddt_schemes[i];

        if (0 != (enabled & scheme->group)) {
            const mca_pml_umrddt_can_send_t can = scheme->can_send(comm, peer, where, size);

            best = can > best ? can : best;
        }
    }
    return best;
}
