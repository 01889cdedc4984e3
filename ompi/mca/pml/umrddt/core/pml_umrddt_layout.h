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
 * Layouts of MPI datatypes. Functions of pml_umrddt_layout.c.
 */

#ifndef MCA_PML_UMRDDT_LAYOUT_H
#define MCA_PML_UMRDDT_LAYOUT_H

#include "ompi_config.h"

#include "opal/datatype/iov_cache/iov_cache.h"

#include "ompi/datatype/ompi_datatype.h"

BEGIN_C_DECLS

/** Values that are stored with a layout, because each one needs a walk of the IOVs. */
typedef enum mca_pml_umrddt_memo_t {
    MCA_PML_UMRDDT_MEMO_PROPOSAL,    /**< sender: chunk size that it proposes */
    MCA_PML_UMRDDT_MEMO_AGREED_SIZE, /**< receiver: size of the message, */
    MCA_PML_UMRDDT_MEMO_AGREED_TO,   /**< proposed chunk size, */
    MCA_PML_UMRDDT_MEMO_AGREED,      /**< and agreed chunk size of the last message */
    MCA_PML_UMRDDT_MEMO_SILENT       /**< sender: 1 if the last completion flag announced a reply */
} mca_pml_umrddt_memo_t;

/** Get the layout of (type, count) from the cache. The caller owns a reference. */
int mca_pml_umrddt_layout(ompi_datatype_t *datatype, size_t count,
                          opal_iov_cache_layout_t **layout);
int mca_pml_umrddt_layouts_init(void);
void mca_pml_umrddt_layouts_fini(void);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_LAYOUT_H */
