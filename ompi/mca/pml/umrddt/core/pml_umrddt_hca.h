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
 * The HCA and the messages that may use it. Functions of pml_umrddt_hca.c.
 */

#ifndef MCA_PML_UMRDDT_HCA_H
#define MCA_PML_UMRDDT_HCA_H

#include "ompi_config.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_comm.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"

BEGIN_C_DECLS

/** Find and start btl/umr. Without it mca_pml_umrddt.hca stays NULL, and its key has no data. */
void mca_pml_umrddt_hca_open(void);
void mca_pml_umrddt_hca_close(void);

/** Returns true if the HCA is known to support GPU memory of this kind with this peer. */
bool mca_pml_umrddt_hca_takes(const mca_pml_umrddt_peer_t *peer,
                              const opal_umrddt_gpu_where_t *where);

/** Returns true if the HCA may be the wire of pack-gdr with this peer, as far as the parameters of
 * this process allow it. Else only the base PML may. */
static inline bool mca_pml_umrddt_gdr_by_hca(const mca_pml_umrddt_peer_t *peer)
{
    return NULL != mca_pml_umrddt.hca && peer->has_hca && mca_pml_umrddt.params.gpu_hca;
}

/** Register a buffer of any memory kind with the HCA of an endpoint. @return OPAL_* of the HCA */
int mca_pml_umrddt_register(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_role_t role,
                            const opal_umrddt_gpu_where_t *where, void *buf,
                            const opal_iov_cache_layout_t *layout, uint64_t size,
                            mca_btl_umr_memory_t **memory);

/** All writes through an rkey set have completed: keep it mapped for the next message, or release
 * it. */
static inline void mca_pml_umrddt_keyset_done(mca_btl_umr_keyset_t *keyset)
{
    if (OPAL_LIKELY(mca_pml_umrddt.params.mkey_cache)) {
        mca_pml_umrddt.hca->keyset_keep(keyset);
    } else {
        mca_pml_umrddt.hca->keyset_release(keyset);
    }
}

END_C_DECLS

#endif /* MCA_PML_UMRDDT_HCA_H */
