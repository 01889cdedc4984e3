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
 * Datatypes that Open MPI cannot receive in fragments. A receive that may get its first bytes
 * separately, as from an envelope of umrddt, needs a staging buffer then.
 */

#ifndef OPAL_UMRDDT_GPU_CUTS_H
#define OPAL_UMRDDT_GPU_CUTS_H

#include "opal_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opal/datatype/opal_datatype.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_memory.h"

#include "umrddt_compat.h"

BEGIN_C_DECLS

/** The basic types concerned, one bit each as in opal_datatype_t.bdt_used. All zeros: none. */
typedef struct opal_umrddt_gpu_cuts_t {
    uint32_t wide; /**< must not be in a receive in fragments */
    uint32_t some; /**< those, and types that some layouts must not have */
    size_t head;   /**< length of the first fragment, bytes */
} opal_umrddt_gpu_cuts_t;

/** Find the basic types concerned. @param[in] head  length of the first fragment, bytes */
void opal_umrddt_gpu_cuts_init(opal_umrddt_gpu_cuts_t *cuts, size_t head);

/**
 * Returns true if Open MPI may not store the first fragment correctly with a receive of this
 * datatype. One comparison answers false for most datatypes. Contiguous datatypes need no call.
 *
 * The convertor of Open MPI keeps a partly received element in an array of 16 bytes. The convertor
 * of 5.0 misplaces bytes of complex numbers and of split elements in some layouts. A fragment
 * splits elements whose size does not divide its length, and any element that follows one of
 * another size.
 */
static inline bool opal_umrddt_gpu_may_cut(const opal_umrddt_gpu_cuts_t *cuts,
                                           const opal_datatype_t *type)
{
    const uint32_t used = type->bdt_used;

#if 500 <= UMRDDT_OPAL_RELEASE
    return OPAL_UNLIKELY(0 != ((used & (used - 1)) | (used & cuts->some)));
#else
    return OPAL_UNLIKELY(0 != (used & cuts->some));
#endif
}

/** Exact answer for a datatype for which opal_umrddt_gpu_may_cut is true. Reads the description of
 * as many bytes as the first fragment has. */
bool opal_umrddt_gpu_does_cut(const opal_umrddt_gpu_cuts_t *cuts, const opal_datatype_t *type);

/** Returns true if Open MPI must not receive into a buffer because of its datatype. */
static inline bool opal_umrddt_gpu_is_cut(const opal_umrddt_gpu_cuts_t *cuts,
                                          const opal_datatype_t *type, size_t count)
{
    return opal_umrddt_gpu_may_cut(cuts, type) && 0 != count
           && !opal_umrddt_gpu_is_contiguous(type, count) && opal_umrddt_gpu_does_cut(cuts, type);
}

END_C_DECLS

#endif /* OPAL_UMRDDT_GPU_CUTS_H */
