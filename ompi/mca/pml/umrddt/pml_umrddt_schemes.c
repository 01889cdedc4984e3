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
 * The table of schemes: the one place that knows all of them. pml_umrddt_scheme.h has the contract.
 */

#include "ompi_config.h"

#include "pml_umrddt_ipc.h"
#include "pml_umrddt_scheme.h"

const mca_pml_umrddt_scheme_t *const mca_pml_umrddt_schemes[MCA_PML_UMRDDT_SCHEMES] = {
    &mca_pml_umrddt_scheme_ipc,      &mca_pml_umrddt_scheme_direct,
    &mca_pml_umrddt_scheme_umr,      &mca_pml_umrddt_scheme_pack_host,
    &mca_pml_umrddt_scheme_pack_gdr, &mca_pml_umrddt_scheme_pack_staged,
    &mca_pml_umrddt_scheme_base,
};

/** The bits of an envelope that are not those of schemes belong to some of them. */
static bool bits_valid(const mca_pml_umrddt_rts_t *rts)
{
    const unsigned of_pack = MCA_PML_UMRDDT_ON_GPU | MCA_PML_UMRDDT_IF_GPU;
    const unsigned of_any = MCA_PML_UMRDDT_BELL | MCA_PML_UMRDDT_MAY_LEAVE | of_pack;

    return 0 != (MCA_PML_UMRDDT_BITS_ALL & rts->schemes)
           && 0 == (rts->schemes & ~(MCA_PML_UMRDDT_BITS_ALL | of_any))
           && (0 == (of_pack & rts->schemes)
               || (0 != (MCA_PML_UMRDDT_BITS_PACK & rts->schemes)
                   && of_pack != (of_pack & rts->schemes)));
}

bool mca_pml_umrddt_schemes_rts_valid(const mca_pml_umrddt_rts_t *rts,
                                      const mca_pml_umrddt_peer_t *peer)
{
    return bits_valid(rts)
           && (OPAL_LIKELY(mca_pml_umrddt_ipc_rts_is_plain(rts))
               || (mca_pml_umrddt_ipc_rts_valid(rts)
                   && (0 == (MCA_PML_UMRDDT_BELL & rts->schemes)
                       || NULL != mca_pml_umrddt_ipc_bells(peer))));
}
