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
 * Datatypes that the base PML cannot receive in fragments. Such a receive needs a staging buffer.
 */

#ifndef MCA_PML_UMRDDT_WIDE_H
#define MCA_PML_UMRDDT_WIDE_H

#include "ompi/mca/pml/umrddt/pml_umrddt.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"

BEGIN_C_DECLS

/** Find the basic types concerned: mca_pml_umrddt.wide_types and cut_types. Call before the first
 * receive. */
void mca_pml_umrddt_wide_init(void);

/**
 * Returns true if the base PML may not store an envelope correctly with a receive of this datatype.
 * One comparison answers false for most datatypes. Contiguous datatypes need no call.
 *
 * The convertor of Open MPI keeps a partly received element in an array of 16 bytes. The convertor
 * of 5.0 misplaces bytes of complex numbers and of split elements in some layouts. An envelope
 * splits elements whose size does not divide its length, and any element that follows one of
 * another size.
 */
static inline bool mca_pml_umrddt_may_cut(const ompi_datatype_t *datatype)
{
    const uint32_t used = datatype->super.bdt_used;

#if 500 <= UMRDDT_OPAL_RELEASE
    return OPAL_UNLIKELY(0 != ((used & (used - 1)) | (used & mca_pml_umrddt.cut_types)));
#else
    return OPAL_UNLIKELY(0 != (used & mca_pml_umrddt.cut_types));
#endif
}

/** Exact answer for a datatype for which mca_pml_umrddt_may_cut is true. Reads the description of
 * as many bytes as an envelope has. */
bool mca_pml_umrddt_cuts(const ompi_datatype_t *datatype);

/** Returns true if the base PML must not receive into a buffer because of its datatype. */
static inline bool mca_pml_umrddt_is_wide(const ompi_datatype_t *datatype, size_t count)
{
    return mca_pml_umrddt_may_cut(datatype) && 0 != count
           && !mca_pml_umrddt_is_contiguous(datatype, count) && mca_pml_umrddt_cuts(datatype);
}

END_C_DECLS

#endif /* MCA_PML_UMRDDT_WIDE_H */
