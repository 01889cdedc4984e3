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
 * Invariants of active messages, members of the schemes; read pml_umrddt_check.h first.
 */

#ifndef MCA_PML_UMRDDT_CHECK_SCHEMES_H
#define MCA_PML_UMRDDT_CHECK_SCHEMES_H

#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"

BEGIN_C_DECLS

const char *mca_pml_umrddt_check_umr(const mca_pml_umrddt_recv_t *recv);
const char *mca_pml_umrddt_check_direct(const mca_pml_umrddt_recv_t *recv);
const char *mca_pml_umrddt_check_ipc(const mca_pml_umrddt_recv_t *recv);
const char *mca_pml_umrddt_check_pack(const mca_pml_umrddt_recv_t *recv);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_CHECK_SCHEMES_H */
