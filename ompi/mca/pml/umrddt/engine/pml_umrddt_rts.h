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
 * Validation of an envelope, field by field. Inline, for its only caller.
 */

#ifndef MCA_PML_UMRDDT_RTS_H
#define MCA_PML_UMRDDT_RTS_H

#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_scheme.h"

BEGIN_C_DECLS

/** Returns true if the fields that belong to a scheme are valid, and its group is offered. */
static inline bool mca_pml_umrddt_rts_fields_valid(const mca_pml_umrddt_recv_t *recv)
{
    const mca_pml_umrddt_scheme_t *scheme =
        mca_pml_umrddt_schemes[mca_pml_umrddt_rts_fields_of(&recv->rts)];

    return 0 != (scheme->group & recv->rts.schemes) && scheme->rts_valid(recv);
}

/** Returns true if every field of recv->rts has a valid value. recv->peer is its sender. */
static inline bool mca_pml_umrddt_rts_valid(const mca_pml_umrddt_recv_t *recv)
{
    const mca_pml_umrddt_rts_t *rts = &recv->rts;

    return MCA_PML_UMRDDT_MAX_REQUEST_IDS > rts->request_id && sizeof(*rts) <= rts->length
           && rts->chunk <= rts->length && MCA_PML_UMRDDT_MAX_SLOTS >= rts->slots
           && MCA_PML_UMRDDT_MAX_SLOTS >= rts->flats && 0 != rts->write_pieces
           && mca_pml_umrddt_rts_bits_valid(rts)
           && (OPAL_LIKELY(mca_pml_umrddt_rts_is_plain(rts))
               || mca_pml_umrddt_rts_fields_valid(recv));
}

END_C_DECLS

#endif /* MCA_PML_UMRDDT_RTS_H */
