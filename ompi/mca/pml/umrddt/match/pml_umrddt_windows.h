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
 * Windows of one-sided communication. Functions of pml_umrddt_windows.c, called between open and
 * close of the osc framework. Both are idempotent.
 */

#ifndef MCA_PML_UMRDDT_WINDOWS_H
#define MCA_PML_UMRDDT_WINDOWS_H

#include "ompi_config.h"

BEGIN_C_DECLS

void mca_pml_umrddt_windows_open(void);
void mca_pml_umrddt_windows_close(void);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_WINDOWS_H */
