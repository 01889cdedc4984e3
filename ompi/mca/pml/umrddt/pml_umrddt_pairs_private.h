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
 * What pml_umrddt_pairs.c, which has the receiver's half and the table, and pml_umrddt_pairs_send.c
 * share.
 */

#ifndef MCA_PML_UMRDDT_PAIRS_PRIVATE_H
#define MCA_PML_UMRDDT_PAIRS_PRIVATE_H

#include "pml_umrddt_pairs.h"

BEGIN_C_DECLS

#define WAY_BIT(way) (1u << (way))

/**
 * Where observed times correct predictions, a way is thought of that is predicted to take less than
 * so many times what the best one takes: who knows more decides, by what messages take. And so many
 * of it where next to nothing is lost: to offer a way, or to try it three times with a pair that
 * has come often.
 */
#define MCA_PML_UMRDDT_DOUBT       2.0
#define MCA_PML_UMRDDT_DOUBT_LATER 4.0

/** The figures that the model predicts by. Only where there is a table (mca_pml_umrddt.pairs). */
const mca_pml_umrddt_figures_t *mca_pml_umrddt_pairs_model(void);

static inline bool mca_pml_umrddt_pairs_near(const mca_pml_umrddt_peer_t *peer)
{
    return OPAL_PROC_ON_LOCAL_NODE(peer->proc->proc_flags);
}

/** What is the same of all messages of @p total bytes to or from a peer. @param[out] message */
void mca_pml_umrddt_pairs_describe(const mca_pml_umrddt_peer_t *peer, uint64_t total,
                                   mca_pml_umrddt_model_case_t *message);

/**
 * How a GPU would copy a layout.
 *
 * @param[in]  chunk  bytes of each if it travels packed
 * @param[in]  gpu    either side is in memory of one: else nobody would, and nothing is written
 * @param[out] side   boxed, chunk_boxed, listed
 */
void mca_pml_umrddt_pairs_describe_layout(opal_iov_cache_layout_t *layout, uint64_t chunk, bool gpu,
                                          mca_pml_umrddt_model_side_t *side);

/** Append a side ("from", "to") of a message of @p bytes to a text, as far as there is room. */
void mca_pml_umrddt_pairs_print_side(char *text, size_t room, const char *what,
                                     const mca_pml_umrddt_model_side_t *side, uint64_t bytes);

/** Append what is predicted of each way; in parentheses of those that are not @p possible. */
void mca_pml_umrddt_pairs_print_times(char *text, size_t room, const double *times,
                                      unsigned possible);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_PAIRS_PRIVATE_H */
