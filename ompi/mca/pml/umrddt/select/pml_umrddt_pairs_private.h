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
 * Shared by the files of the selection cache: pml_umrddt_pairs.c (receiver and table),
 * pml_umrddt_pairs_send.c and pml_umrddt_pairs_told.c. See pml_umrddt_pairs.h first.
 */

#ifndef MCA_PML_UMRDDT_PAIRS_PRIVATE_H
#define MCA_PML_UMRDDT_PAIRS_PRIVATE_H

#include <time.h>

#include "opal/mca/common/umrddt_select/umrddt_select.h"
#include "opal/mca/common/umrddt_select/umrddt_select_file.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_pairs.h"

BEGIN_C_DECLS

/** Size of the table. The entries of a bucket are replaced in turn. */
#define MCA_PML_UMRDDT_PAIR_BUCKETS 256
#define MCA_PML_UMRDDT_PAIR_WAYS    4

/** Maximum number of explained pairs, to limit the output. And the number of messages after which
 * the median time of a pair is printed. */
#define MCA_PML_UMRDDT_PAIRS_EXPLAINED 1024
#define MCA_PML_UMRDDT_PAIR_SETTLED    16

/** The entry of one pair of layouts, buffer and peer. */
typedef struct mca_pml_umrddt_pair_t {
    uint64_t layout;  /**< id of the receiver's layout; 0: free entry */
    uintptr_t buffer; /**< the receive buffer */
    const mca_pml_umrddt_peer_t *peer;
    uint64_t total;
    uint32_t pieces;  /**< number of blocks of the sender */
    uint16_t schemes; /**< the schemes that the sender offered */
    bool gpu;         /**< the receive buffer is in GPU memory */
    bool from;        /**< the send buffer is in GPU memory, as far as known */
    opal_umrddt_selection_t selection;
    uint32_t serial;  /**< changes with the entry's content: a message may outlive it */
    uint32_t uses;    /**< messages so far */
    uint32_t next;    /**< number of uses at which the model is queried again */
    uint64_t expires; /**< query the model again when pairs->judged exceeds this */
    unsigned known;   /**< schemes that were used: they need no further setup */
    unsigned possible;
    bool tells;                         /**< this pair is explained to the user */
    bool began;                         /**< the result of the first message is printed */
    mca_pml_umrddt_scheme_id_t counted; /**< scheme of the measured messages */
    unsigned count;                     /**< entries of took; one more when the median is printed */
    double took[MCA_PML_UMRDDT_PAIR_SETTLED];
} mca_pml_umrddt_pair_t;

struct mca_pml_umrddt_pairs_t {
    opal_umrddt_tuning_t figures;
    char why[OPAL_UMRDDT_TUNING_TEXT]; /**< source of the tuning parameters, for the user */
    uint32_t serial;
    uint64_t judged; /**< number of selections */
    unsigned told;
    uint64_t explained[MCA_PML_UMRDDT_PAIRS_EXPLAINED]; /**< hashes of explained pairs */
    uint32_t turn[MCA_PML_UMRDDT_PAIR_BUCKETS];
    mca_pml_umrddt_pair_t pairs[MCA_PML_UMRDDT_PAIR_BUCKETS][MCA_PML_UMRDDT_PAIR_WAYS];
};

/** The tuning parameters of the model. The table (mca_pml_umrddt.pairs) must exist. */
const opal_umrddt_tuning_t *mca_pml_umrddt_pairs_model(void);

static inline bool mca_pml_umrddt_pairs_near(const mca_pml_umrddt_peer_t *peer)
{
    return OPAL_PROC_ON_LOCAL_NODE(peer->proc->proc_flags);
}

/** Fill in the properties that all messages of @p total bytes to or from a peer share. */
void mca_pml_umrddt_pairs_describe(const mca_pml_umrddt_peer_t *peer, uint64_t total,
                                   opal_umrddt_select_case_t *message);

/**
 * Describe how a GPU would copy a layout.
 *
 * @param[in]  chunk  bytes of each chunk if the message travels packed
 * @param[in]  gpu    either side is in GPU memory; if false, @p side is left as it is
 * @param[out] side   sets boxed, chunk_boxed, listed
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

/** The reason for a selection, for the user. */
const char *mca_pml_umrddt_pairs_reason(unsigned possible);

/**
 * Print a new pair unless it was printed before; sets pair->tells. @p message: input of the model
 */
void mca_pml_umrddt_pairs_explain(const mca_pml_umrddt_recv_t *recv, mca_pml_umrddt_pair_t *pair,
                                  const opal_umrddt_select_case_t *message);

/** A message of a pair has ended: print the time of the first, and the median of the first 16. */
void mca_pml_umrddt_pairs_explain_observed(const mca_pml_umrddt_recv_t *recv,
                                           mca_pml_umrddt_pair_t *pair);

/** The first message of such a pair could not use its scheme: print that. */
void mca_pml_umrddt_pairs_explain_failed(const mca_pml_umrddt_recv_t *recv,
                                         const mca_pml_umrddt_pair_t *pair);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_PAIRS_PRIVATE_H */
