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
 * The table of schemes, the only reference to all of them, and their start and end. Read
 * pml_umrddt_scheme.h first.
 */

#include "ompi_config.h"

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/bringup/pml_umrddt_bringup.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_scheme.h"

#define ENTRY(NAME, name, ...) [MCA_PML_UMRDDT_SCHEME_##NAME] = &mca_pml_umrddt_scheme_##name,
const mca_pml_umrddt_scheme_t *const mca_pml_umrddt_schemes[MCA_PML_UMRDDT_SCHEMES] = {
    MCA_PML_UMRDDT_SCHEME_LIST(ENTRY)};

/* Memory that an HCA cannot reach is offered to CUDA IPC, and packed beside both. */
const mca_pml_umrddt_scheme_t *const mca_pml_umrddt_groups[MCA_PML_UMRDDT_GROUPS] = {
    &mca_pml_umrddt_scheme_umr,
    &mca_pml_umrddt_scheme_ipc,
    &mca_pml_umrddt_scheme_pack_gdr,
};
/* mca_pml_umrddt_schemes_offer has no other bound */
_Static_assert(MCA_PML_UMRDDT_BITS_ALL
                   == (MCA_PML_UMRDDT_BITS_HCA | MCA_PML_UMRDDT_BIT_IPC | MCA_PML_UMRDDT_BITS_PACK),
               "each scheme belongs to one of these groups");

const mca_pml_umrddt_scheme_t *const mca_pml_umrddt_reply_schemes[2 * MCA_PML_UMRDDT_REPLY_KINDS] =
    {
        [MCA_PML_UMRDDT_REPLY_CTS] = &mca_pml_umrddt_scheme_umr,
        [MCA_PML_UMRDDT_REPLY_OF(MCA_PML_UMRDDT_KIND_CTS_CACHED)] = &mca_pml_umrddt_scheme_umr,
        [MCA_PML_UMRDDT_REPLY_OF(MCA_PML_UMRDDT_KIND_CTS_SGL)] = &mca_pml_umrddt_scheme_direct,
        [MCA_PML_UMRDDT_REPLY_OF(MCA_PML_UMRDDT_KIND_LAYOUT_FRAG)] = &mca_pml_umrddt_scheme_direct,
        [MCA_PML_UMRDDT_REPLY_INFO_REQ] = &mca_pml_umrddt_scheme_ipc,
        /* one function serves the three packed schemes */
        [MCA_PML_UMRDDT_REPLY_CTS_PACK] = &mca_pml_umrddt_scheme_pack_gdr,
        [MCA_PML_UMRDDT_REPLY_CREDIT] = &mca_pml_umrddt_scheme_pack_gdr,
};

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
