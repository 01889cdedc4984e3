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
    &mca_pml_umrddt_scheme_ipc,      &mca_pml_umrddt_scheme_umr,
    &mca_pml_umrddt_scheme_direct,   &mca_pml_umrddt_scheme_pack_host,
    &mca_pml_umrddt_scheme_pack_gdr, &mca_pml_umrddt_scheme_pack_staged,
    &mca_pml_umrddt_scheme_base,
};
