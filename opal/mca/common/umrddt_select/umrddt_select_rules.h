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
 * The order in which a receiver tries schemes, and the fixed rules for a process without tuning
 * parameters. The rules, in order of preference:
 * - ipc, if the sender's buffer is GPU memory on the same node and the user has not selected
 * another scheme.
 * - umr or sgl (direct) between buffers that an HCA reaches. Mapping mkeys costs a work request on
 *   each side, which must complete before the first write. That pays if the mkeys are used again.
 *   So the first message of a layout and buffer uses direct writes if there are few of them, or
 *   long ones.
 * - packed, if a GPU is at one end and no other scheme is possible.
 */

#ifndef OPAL_UMRDDT_SELECT_RULES_H
#define OPAL_UMRDDT_SELECT_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opal/mca/common/umrddt_select/umrddt_select_scheme.h"

/** Returns true if the rules permit a candidate scheme for a message. */
typedef bool (*opal_umrddt_rule_t)(void *message, mca_pml_umrddt_scheme_id_t scheme);

/**
 * Remove and return the scheme that a receiver tries next: the preferred one if the rules permit
 * it, as if it were the only candidate; else the first one that the rules permit. The base PML if
 * none is left.
 *
 * @param[in,out] candidates  bitmap; @p permits may read it, and sees only the preferred scheme in
 *                            it while that is considered
 * @param[in]     preferred   the bit of the scheme that the model selected; 0: none
 *
 * Inline with @p permits: every message comes here, and the loop is unrolled.
 */
static inline __attribute__((always_inline)) mca_pml_umrddt_scheme_id_t
opal_umrddt_select_next(uint16_t *candidates, uint16_t preferred, opal_umrddt_rule_t permits,
                        void *message)
{
    const uint16_t others = *candidates & (uint16_t) ~preferred;
    mca_pml_umrddt_scheme_id_t scheme;

    if (__builtin_expect(0 != (*candidates & preferred), 0)) {
        *candidates &= preferred;
        scheme = mca_pml_umrddt_scheme_of(preferred);
        if (permits(message, scheme)) {
            *candidates = others;
            return scheme;
        }
        *candidates = others;
    }
#define OPAL_UMRDDT_RULE_TRY(NAME, name, text, bit, group, rdma, packed, copy, hca) \
    if (MCA_PML_UMRDDT_SCHEME_BASE != MCA_PML_UMRDDT_SCHEME_##NAME                  \
        && 0 != (others & MCA_PML_UMRDDT_BIT_##NAME)                                \
        && permits(message, MCA_PML_UMRDDT_SCHEME_##NAME)) {                        \
        *candidates = others & (uint16_t) ~MCA_PML_UMRDDT_BIT_##NAME;               \
        return MCA_PML_UMRDDT_SCHEME_##NAME;                                        \
    }
    MCA_PML_UMRDDT_SCHEME_LIST(OPAL_UMRDDT_RULE_TRY)
#undef OPAL_UMRDDT_RULE_TRY
    return MCA_PML_UMRDDT_SCHEME_BASE;
}

/** Table of layouts and buffers that have received, to find the first message of each. */
typedef struct opal_umrddt_received_t opal_umrddt_received_t;

/** Create an empty table; NULL: no memory. Free it with free(). */
opal_umrddt_received_t *opal_umrddt_received_new(void);

/** A message for opal_umrddt_rule_direct. */
typedef struct opal_umrddt_rule_message_t {
    uint64_t layout;  /**< id of the receiver's layout */
    uintptr_t buffer; /**< of the receiver */
    uint64_t total;   /**< bytes; the number of blocks at both ends is not 0 */
    uint64_t from_pieces, to_pieces;
    uint32_t write_pieces; /**< blocks that a write of the sender's HCA gathers; >= 1 */
    uint64_t writes;       /**< pml_umrddt_direct_writes: few writes are cheap */
    uint64_t run;          /**< pml_umrddt_direct_run: blocks of this size are cheap; 0: none */
} opal_umrddt_rule_message_t;

/**
 * Returns true if a message for which umr and direct are possible uses direct: it is the first one
 * of its layout and buffer, and it is cheap. mkeys may never be used again; the second message maps
 * them and later ones reuse them. One thread at a time.
 */
bool opal_umrddt_rule_direct(opal_umrddt_received_t *received,
                             const opal_umrddt_rule_message_t *message);

/**
 * Select a packed scheme for a message without HCA schemes or CUDA IPC.
 *
 * @param[in] both       packed schemes that both sides support
 * @param[in] total      bytes of the message
 * @param[in] pack_host  pml_umrddt_pack_host: smaller messages use pinned system memory
 *
 * @return one bit of @p both; 0: none is possible
 */
static inline unsigned opal_umrddt_rule_pack(unsigned both, uint64_t total, uint64_t pack_host)
{
    if (0 != (MCA_PML_UMRDDT_BIT_PACK_HOST & both)
        && (MCA_PML_UMRDDT_BIT_PACK_HOST == both || total < pack_host)) {
        return MCA_PML_UMRDDT_BIT_PACK_HOST;
    }
    /* pack-gdr avoids the copy through system memory. */
    return 0 != (MCA_PML_UMRDDT_BIT_PACK_GDR & both) ? MCA_PML_UMRDDT_BIT_PACK_GDR
                                                     : MCA_PML_UMRDDT_BIT_PACK_STAGED & both;
}

#endif /* OPAL_UMRDDT_SELECT_RULES_H */
