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
 * What all groups of schemes do for a send; read pml_umrddt_scheme.h first.
 */

#ifndef MCA_PML_UMRDDT_GROUPS_H
#define MCA_PML_UMRDDT_GROUPS_H

#include "ompi/mca/pml/umrddt/core/pml_umrddt_send_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_scheme.h"

BEGIN_C_DECLS

/** Slow path of mca_pml_umrddt_schemes_reach: finds out, and sets peer->reach. */
static inline uint16_t mca_pml_umrddt_schemes_reach_new(mca_pml_umrddt_peer_t *peer)
{
    uint16_t reach = MCA_PML_UMRDDT_REACH_KNOWN;

    for (int i = 0; i < MCA_PML_UMRDDT_GROUPS && peer->capable; ++i) {
        if (mca_pml_umrddt_groups[i]->reaches(peer)) {
            reach |= mca_pml_umrddt_groups[i]->group;
        }
    }
    /* concurrent threads find the same value */
    __atomic_store_n(&peer->reach, reach, __ATOMIC_RELAXED);
    return reach;
}

/** The schemes other than the base PML that can reach a peer, whatever the memory. Any thread. */
static inline uint16_t mca_pml_umrddt_schemes_reach(mca_pml_umrddt_peer_t *peer)
{
    uint16_t reach = __atomic_load_n(&peer->reach, __ATOMIC_RELAXED);

    if (OPAL_UNLIKELY(0 == reach)) {
        reach = mca_pml_umrddt_schemes_reach_new(peer);
    }
    return reach & MCA_PML_UMRDDT_BITS_ALL;
}

/** Whether any of @p schemes can send from a buffer to a peer. Any thread. @param[in] schemes  that
 * are enabled and reach the peer */
static inline mca_pml_umrddt_can_send_t
mca_pml_umrddt_schemes_can_send(uint16_t schemes, const mca_pml_umrddt_comm_t *comm,
                                const mca_pml_umrddt_peer_t *peer,
                                const opal_umrddt_gpu_where_t *where, size_t size)
{
    mca_pml_umrddt_can_send_t best = MCA_PML_UMRDDT_CAN_SEND_NOT;

    /* backwards: for GPU memory the test of the first group takes longest */
    for (int i = MCA_PML_UMRDDT_GROUPS - 1; 0 <= i; --i) {
        const mca_pml_umrddt_scheme_t *scheme = mca_pml_umrddt_groups[i];

        if (0 != (schemes & scheme->group)) {
            best |= scheme->can_send(comm, peer, where, size);
            if (0 != (MCA_PML_UMRDDT_CAN_SEND & best)) {
                return MCA_PML_UMRDDT_CAN_SEND;
            }
        }
    }
    return best;
}

/** Offer all schemes that are possible. Any thread. See the member of the table. */
static inline void mca_pml_umrddt_schemes_offer(mca_pml_umrddt_send_t *send)
{
    unsigned enabled = MCA_PML_UMRDDT_BITS_ALL & mca_pml_umrddt.schemes & send->comm->schemes
                       & __atomic_load_n(&send->peer->reach, __ATOMIC_RELAXED);

    /* the groups together have all these bits */
    for (const mca_pml_umrddt_scheme_t *const *group = mca_pml_umrddt_groups; 0 != enabled;
         ++group) {
        if (0 != (enabled & (*group)->group)) {
            enabled &= ~(unsigned) (*group)->group;
            (*group)->offer(send);
        }
    }
}

END_C_DECLS

#endif /* MCA_PML_UMRDDT_GROUPS_H */
