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
 * Datatypes that Open MPI cannot receive in fragments. See umrddt_gpu_cuts.h.
 */

#include "umrddt_gpu_cuts.h"

#include "opal/datatype/opal_datatype_internal.h"

/** Largest element, in bytes, that Open MPI's convertor can receive in fragments. */
#define PART 16

#if 500 <= UMRDDT_OPAL_RELEASE
/** Open MPI 5.0 assumes that the extent of complex types is a multiple of their size. */
#define COMPLEX_TYPES                                                                             \
    ((uint32_t) 1 << OPAL_DATATYPE_SHORT_FLOAT_COMPLEX                                            \
     | (uint32_t) 1 << OPAL_DATATYPE_FLOAT_COMPLEX | (uint32_t) 1 << OPAL_DATATYPE_DOUBLE_COMPLEX \
     | (uint32_t) 1 << OPAL_DATATYPE_LONG_DOUBLE_COMPLEX)
#else
#define COMPLEX_TYPES 0
#endif

void opal_umrddt_gpu_cuts_init(opal_umrddt_gpu_cuts_t *cuts, size_t head)
{
    _Static_assert(OPAL_DATATYPE_MAX_PREDEFINED <= 32, "one bit each in bdt_used");
    cuts->head = head;
    cuts->wide = 0;
    cuts->some = COMPLEX_TYPES;
    for (unsigned type = 0; type < OPAL_DATATYPE_MAX_PREDEFINED; ++type) {
        const size_t size = opal_datatype_basicDatatypes[type]->size;

        /* Open MPI 5.0 copies a single long double as a number, on x86 only 10 of its 16 bytes.
         * Bytes of the first fragment would be lost. Open MPI 6.0 calls it FLOAT12. */
        if (PART < size
            || (500 <= UMRDDT_OPAL_RELEASE
                && (OPAL_DATATYPE_FLOAT12 == type || OPAL_DATATYPE_FLOAT16 == type))) {
            cuts->wide |= (uint32_t) 1 << type;
        }
        if (500 <= UMRDDT_OPAL_RELEASE && 0 != size && 0 != head % size) {
            cuts->some |= (uint32_t) 1 << type;
        }
    }
    cuts->some |= cuts->wide;
}

#if 500 <= UMRDDT_OPAL_RELEASE
/** Returns true if the first bytes have blocks at a distance that is no multiple of the element's
 * size. Open MPI 5.0 rounds this distance down when it continues after a single block, and for
 * complex types after each block. The content of a loop counts once, so that the search covers more
 * bytes than needed, never fewer. Each step except the ends of loops adds at least one byte, so the
 * search is bounded. */
static bool has_uneven_head(const opal_datatype_t *type, size_t head)
{
    size_t bytes = 0;

    for (size_t i = 0; i < type->opt_desc.used && head > bytes; ++i) {
        const ddt_elem_desc_t *elem = &type->opt_desc.desc[i].elem;
        size_t size;

        if (0 == (OPAL_DATATYPE_FLAG_DATA & elem->common.flags)) {
            continue;
        }
        size = opal_datatype_basicDatatypes[elem->common.type]->size;
        if (1 < elem->count && 0 != elem->extent % (ptrdiff_t) size) {
            return true;
        }
        bytes += (size_t) elem->count * elem->blocklen * size;
    }
    return false;
}
#endif

bool opal_umrddt_gpu_does_cut(const opal_umrddt_gpu_cuts_t *cuts, const opal_datatype_t *type)
{
    if (0 != (type->bdt_used & cuts->wide)) {
        return true;
    }
#if 500 <= UMRDDT_OPAL_RELEASE
    return has_uneven_head(type, cuts->head);
#else
    return false;
#endif
}
