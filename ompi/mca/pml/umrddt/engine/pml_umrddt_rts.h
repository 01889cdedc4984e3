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
 * Validation of an envelope, field by field. Inline, for its only caller; in a file of its own
 * because it depends on the schemes' bits.
 */

#ifndef MCA_PML_UMRDDT_RTS_H
#define MCA_PML_UMRDDT_RTS_H

#include "ompi/mca/pml/umrddt/core/pml_umrddt_peer.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_ipc.h"

BEGIN_C_DECLS

/** Check the bits of an envelope that are not schemes: they are valid only with certain schemes. */
static inline bool mca_pml_umrddt_rts_bits_valid(const mca_pml_umrddt_rts_t *rts)
{
    const unsigned of_pack = MCA_PML_UMRDDT_ON_GPU | MCA_PML_UMRDDT_IF_GPU;
    const unsigned of_any = MCA_PML_UMRDDT_DONE_FLAG | MCA_PML_UMRDDT_MAY_LEAVE | of_pack;

    return 0 != (MCA_PML_UMRDDT_BITS_ALL & rts->schemes)
           && 0 == (rts->schemes & ~(MCA_PML_UMRDDT_BITS_ALL | of_any))
           && (0 == (of_pack & rts->schemes)
               || (0 != (MCA_PML_UMRDDT_BITS_PACK & rts->schemes)
                   && of_pack != (of_pack & rts->schemes)));
}

/** Returns true if every field of an envelope has a valid value. @p peer is its sender */
static inline bool mca_pml_umrddt_rts_valid(const mca_pml_umrddt_rts_t *rts,
                                            const mca_pml_umrddt_peer_t *peer)
{
    return MCA_PML_UMRDDT_MAX_SLOTS > rts->slot && sizeof(*rts) <= rts->length
           && rts->chunk <= rts->length && MCA_PML_UMRDDT_MAX_PLACES >= rts->places
           && MCA_PML_UMRDDT_MAX_PLACES >= rts->flats && 0 != rts->write_pieces
           && mca_pml_umrddt_rts_bits_valid(rts)
           && (OPAL_LIKELY(mca_pml_umrddt_ipc_rts_is_plain(rts))
               || (mca_pml_umrddt_ipc_rts_valid(rts)
                   && (0 == (MCA_PML_UMRDDT_DONE_FLAG & rts->schemes)
                       || NULL != mca_pml_umrddt_ipc_done_flags(peer))));
}

END_C_DECLS

#endif /* MCA_PML_UMRDDT_RTS_H */
