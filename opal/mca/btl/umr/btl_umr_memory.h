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
 * Registered buffers: the parts of a buffer, each with its registration.
 */

#ifndef MCA_BTL_UMR_MEMORY_H
#define MCA_BTL_UMR_MEMORY_H

#include "opal/mca/btl/umr/btl_umr_types.h"

BEGIN_C_DECLS

/** Part of a buffer that one registration covers. */
typedef struct mca_btl_umr_part_t {
    uintptr_t start;
    uintptr_t end;
    mca_btl_umr_reg_t *reg;
} mca_btl_umr_part_t;

struct mca_btl_umr_memory_t {
    opal_list_item_t super;
    mca_btl_umr_hca_t *hca; /**< HCA of the registration */
    mca_btl_umr_role_t role;
    void *buffer;
    uint64_t layout_id;
    uint64_t size; /**< covered bytes of the stream */
    size_t count;  /**< parts, by ascending address */
    size_t capacity;
    mca_btl_umr_part_t *parts;
    bool gpu;   /**< GPU memory; one part */
    bool loose; /**< its owner may free it at any time: the cache does not count its uses */
    opal_umrddt_gpu_memory_t where;
};
OBJ_CLASS_DECLARATION(mca_btl_umr_memory_t);

/** An empty object, or NULL if out of memory. Lock held. */
mca_btl_umr_memory_t *mca_btl_umr_memory_take(mca_btl_umr_hca_t *hca, mca_btl_umr_role_t role,
                                              void *buffer, const opal_iov_cache_layout_t *layout,
                                              uint64_t size);

/** Append a part. @return false: out of memory */
bool mca_btl_umr_memory_add(mca_btl_umr_memory_t *memory, uintptr_t start, uintptr_t end);

/** Keep the structure, which holds no registration, for reuse. Lock held. */
void mca_btl_umr_memory_put(mca_btl_umr_memory_t *memory);

/** The registration that covers an address of the layout. Lock held. */
const struct ibv_mr *mca_btl_umr_memory_find(const mca_btl_umr_memory_t *memory, uintptr_t address);

END_C_DECLS

#endif /* MCA_BTL_UMR_MEMORY_H */
