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
 * What pml_umrddt_pairs.c, which has the receiver's half and the table, and
 * pml_umrddt_pairs_send.c and pml_umrddt_pairs_told.c share.
 */

#ifndef MCA_PML_UMRDDT_PAIRS_PRIVATE_H
#define MCA_PML_UMRDDT_PAIRS_PRIVATE_H

#include <time.h>

#include "opal/mca/common/umrddt_select/umrddt_select.h"
#include "opal/mca/common/umrddt_select/umrddt_select_file.h"

#include "pml_umrddt_pairs.h"

BEGIN_C_DECLS

/** Of the table; a bucket's entries are replaced in turn. */
#define MCA_PML_UMRDDT_PAIR_BUCKETS 256
#define MCA_PML_UMRDDT_PAIR_WAYS    4

/** Pairs that are explained; nobody reads more. And messages after which one is told of once more.
 */
#define MCA_PML_UMRDDT_PAIRS_EXPLAINED 1024
#define MCA_PML_UMRDDT_PAIR_SETTLED    16

/** What is known of a pair, of a buffer and a peer. */
typedef struct mca_pml_umrddt_pair_t {
    uint64_t layout;  /**< the receiver's; 0: nothing here */
    uintptr_t buffer; /**< and its buffer */
    const mca_pml_umrddt_peer_t *peer;
    uint64_t total;
    uint32_t pieces;  /**< the sender's */
    uint16_t schemes; /**< that it offered */
    bool gpu;         /**< the receiver's buffer is a GPU's */
    bool from;        /**< and the sender's, as far as is known */
    opal_umrddt_selection_t selection;
    uint32_t serial;  /**< of the entry's content: a message may outlive it */
    uint32_t uses;    /**< as yet */
    uint32_t next;    /**< at so many it is judged again */
    uint64_t expires; /**< and when so many messages have been judged, if that is before */
    unsigned known;   /**< ways that it has gone: nothing is to be made for them */
    unsigned possible;
    bool tells;                         /**< it is explained here */
    bool began;                         /**< what became of the first message is told */
    mca_pml_umrddt_scheme_id_t counted; /**< of the way that the last one went */
    unsigned count; /**< so many messages took, more than that: and that is told */
    double took[MCA_PML_UMRDDT_PAIR_SETTLED];
} mca_pml_umrddt_pair_t;

struct mca_pml_umrddt_pairs_t {
    opal_umrddt_tuning_t figures;
    char why[OPAL_UMRDDT_TUNING_TEXT]; /**< where the figures are from, for the user */
    uint32_t serial;
    uint64_t judged; /**< messages */
    unsigned told;
    uint64_t explained[MCA_PML_UMRDDT_PAIRS_EXPLAINED]; /**< hashes of pairs */
    uint32_t turn[MCA_PML_UMRDDT_PAIR_BUCKETS];
    mca_pml_umrddt_pair_t pairs[MCA_PML_UMRDDT_PAIR_BUCKETS][MCA_PML_UMRDDT_PAIR_WAYS];
};

/** The figures that the model predicts by. Only where there is a table (mca_pml_umrddt.pairs). */
const opal_umrddt_tuning_t *mca_pml_umrddt_pairs_model(void);

static inline bool mca_pml_umrddt_pairs_near(const mca_pml_umrddt_peer_t *peer)
{
    return OPAL_PROC_ON_LOCAL_NODE(peer->proc->proc_flags);
}

/** What is the same of all messages of @p total bytes to or from a peer. @param[out] message */
void mca_pml_umrddt_pairs_describe(const mca_pml_umrddt_peer_t *peer, uint64_t total,
                                   opal_umrddt_select_case_t *message);

/**
 * How a GPU would copy a layout.
 *
 * @param[in]  chunk  bytes of each if it travels packed
 * @param[in]  gpu    either side is in memory of one: else nobody would, and nothing is written
 * @param[out] side   boxed, chunk_boxed, listed
 */
void mca_pml_umrddt_pairs_describe_layout(opal_iov_cache_layout_t *layout, uint64_t chunk, bool gpu,
                                          opal_umrddt_select_side_t *side);

/** Microseconds of a monotonic clock. */
static inline double mca_pml_umrddt_pairs_now(void)
{
    struct timespec time;

    (void) clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e6 * (double) time.tv_sec + 1e-3 * (double) time.tv_nsec;
}

/* pml_umrddt_pairs_told.c; called by the progress thread only */

/** Why a message goes as it does. */
const char *mca_pml_umrddt_pairs_reason(unsigned possible);

/** Tell of a new pair, pair->tells, unless it was. @p message: as the model was asked of it */
void mca_pml_umrddt_pairs_explain(const mca_pml_umrddt_recv_t *recv, mca_pml_umrddt_pair_t *pair,
                                  const opal_umrddt_select_case_t *message);

/** A message of a pair is over: print what the first took, and the median of the first 16. */
void mca_pml_umrddt_pairs_explain_observed(const mca_pml_umrddt_recv_t *recv,
                                           mca_pml_umrddt_pair_t *pair);

/** Of such a pair: its message could not go its way. */
void mca_pml_umrddt_pairs_explain_failed(const mca_pml_umrddt_recv_t *recv,
                                         const mca_pml_umrddt_pair_t *pair);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_PAIRS_PRIVATE_H */
