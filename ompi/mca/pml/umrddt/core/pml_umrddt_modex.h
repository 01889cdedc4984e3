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
 * The identity of processes in the modex. Functions of pml_umrddt_modex.c.
 */

#ifndef MCA_PML_UMRDDT_MODEX_H
#define MCA_PML_UMRDDT_MODEX_H

#include "ompi_config.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_peer.h"

BEGIN_C_DECLS

/** Set mca_pml_umrddt.self and publish it. @return false on failure, after a message to the user */
bool mca_pml_umrddt_publish(void);
/**
 * Publish that this process handles no messages. With Open MPI 5.0 a peer on a remote node that
 * looks up data which was never published waits forever.
 */
void mca_pml_umrddt_publish_absent(void);
/** Look up the identity of a new peer, whose proc is set, in the modex. */
void mca_pml_umrddt_identify(mca_pml_umrddt_peer_t *peer);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_MODEX_H */
