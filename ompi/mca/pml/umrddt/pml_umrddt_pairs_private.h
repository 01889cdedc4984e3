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
 * pml_umrddt_pairs_send.c, pml_umrddt_pairs_seen.c and pml_umrddt_pairs_told.c share.
 */

#ifndef MCA_PML_UMRDDT_PAIRS_PRIVATE_H
#define MCA_PML_UMRDDT_PAIRS_PRIVATE_H

#include <time.h>

#include "pml_umrddt_pairs.h"
#include "pml_umrddt_trial.h"

BEGIN_C_DECLS

/**
 * Where observed times correct predictions, a way is thought of that is predicted to take less than
 * so many times what the best one takes: who knows more decides, by what messages take. And so many
 * of it where next to nothing is lost: to offer a way, or to try it three times with a pair that
 * has come often.
 */
#define MCA_PML_UMRDDT_DOUBT       2.0
#define MCA_PML_UMRDDT_DOUBT_LATER 4.0

/** Of the table; a bucket's entries are replaced in turn. */
#define MCA_PML_UMRDDT_PAIR_BUCKETS 256
#define MCA_PML_UMRDDT_PAIR_WAYS    4

/** Observed times: classes of bytes (each four times the last), kinds of peers and memory. */
#define MCA_PML_UMRDDT_PAIR_CLASSES 16
#define MCA_PML_UMRDDT_PAIR_KINDS   8

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
    mca_pml_umrddt_scheme_id_t way;
    uint32_t serial;  /**< of the entry's content: a message may outlive it */
    uint32_t uses;    /**< as yet */
    uint32_t next;    /**< at so many it is judged again */
    uint64_t expires; /**< and when so many messages have been judged, if that is before */
    unsigned known;   /**< ways that it has gone: nothing is to be made for them */
    unsigned possible;
    bool tells;     /**< it is explained here */
    uint32_t tried; /**< its uses when it was last thought of what to try */
    unsigned slow;  /**< messages that took longer than the trial saw, less those that did not */
    bool seen;      /**< the way is one that was tried, or there was nothing to try */
    bool brief;     /**< a question is too much for what the host PML takes */
    unsigned later; /**< ways to be tried when what they need is spread over more messages */
    mca_pml_umrddt_trial_t trial;
    float saw[MCA_PML_UMRDDT_SCHEMES];     /**< what trials saw of ways, us; 0: they did not */
    double steady[MCA_PML_UMRDDT_SCHEMES]; /**< predicted when all is there that it needs */
    double told[MCA_PML_UMRDDT_SCHEMES];   /**< the same, with what was observed before its first */
    double times[MCA_PML_UMRDDT_SCHEMES];
    bool began;                         /**< what became of the first message is told */
    mca_pml_umrddt_scheme_id_t counted; /**< of the way that the last one went */
    unsigned count; /**< so many messages took, more than that: and that is told */
    double took[MCA_PML_UMRDDT_PAIR_SETTLED];
    unsigned class;
} mca_pml_umrddt_pair_t;

/** Of one way and class: by how much observed times differ from predicted ones. */
typedef struct mca_pml_umrddt_observed_t {
    unsigned count;
    double log_factor;
} mca_pml_umrddt_observed_t;

struct mca_pml_umrddt_pairs_t {
    mca_pml_umrddt_figures_t figures;
    char why[MCA_PML_UMRDDT_MODEL_TEXT]; /**< where the figures are from, for the user */
    uint32_t serial;
    uint64_t judged; /**< messages */
    unsigned told;
    uint64_t explained[MCA_PML_UMRDDT_PAIRS_EXPLAINED]; /**< hashes of pairs */
    uint32_t turn[MCA_PML_UMRDDT_PAIR_BUCKETS];
    mca_pml_umrddt_pair_t pairs[MCA_PML_UMRDDT_PAIR_BUCKETS][MCA_PML_UMRDDT_PAIR_WAYS];
    mca_pml_umrddt_observed_t observed[MCA_PML_UMRDDT_SCHEMES]
                                      [MCA_PML_UMRDDT_PAIR_KINDS * MCA_PML_UMRDDT_PAIR_CLASSES];
};

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

/* pml_umrddt_pairs_seen.c; of progress only */

/** Microseconds of a clock that only goes on. */
static inline double mca_pml_umrddt_pairs_now(void)
{
    struct timespec time;

    (void) clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e6 * (double) time.tv_sec + 1e-3 * (double) time.tv_nsec;
}

/** Which of all observed times a message adds to: kind of peer and memory, and class of bytes. */
unsigned mca_pml_umrddt_pairs_class(const mca_pml_umrddt_model_case_t *message);

/** What all ways' predicted times are to be multiplied with. */
void mca_pml_umrddt_pairs_factors(const mca_pml_umrddt_model_case_t *message,
                                  double factors[MCA_PML_UMRDDT_SCHEMES]);

/** After how many uses the verdict on a pair is made again. */
uint32_t mca_pml_umrddt_pairs_next_use(const mca_pml_umrddt_pair_t *pair);

/**
 * Try the ways that may be better than the one that is in use, if there are any: of those that were
 * tried before the ones that came near it, of others those that are predicted to. No trial runs.
 *
 * @param[in] possible  ways, bits
 * @param[in] factors   of steady times
 */
void mca_pml_umrddt_pairs_try(mca_pml_umrddt_pair_t *pair, unsigned possible,
                              const double factors[MCA_PML_UMRDDT_SCHEMES]);

/** A pair is about to be judged again: a trial that still runs ends here. */
void mca_pml_umrddt_pairs_cut(const mca_pml_umrddt_recv_t *recv, mca_pml_umrddt_pair_t *pair);

/** True if the sender may go by the verdict, should it be the host PML. */
bool mca_pml_umrddt_pairs_settled(const mca_pml_umrddt_pair_t *pair);

/** A message is over, recv->began after its match: learn from it, and tell of it. */
void mca_pml_umrddt_pairs_observe(const mca_pml_umrddt_recv_t *recv, mca_pml_umrddt_pair_t *pair);

/* pml_umrddt_pairs_told.c; of progress only, but for the first two */

/** Append a side ("from", "to") of a message of @p bytes to a text, as far as there is room. */
void mca_pml_umrddt_pairs_print_side(char *text, size_t room, const char *what,
                                     const mca_pml_umrddt_model_side_t *side, uint64_t bytes);

/** Append what is predicted of each way; in parentheses of those that are not @p possible. */
void mca_pml_umrddt_pairs_print_times(char *text, size_t room, const double *times,
                                      unsigned possible);

/** Why a message goes as it does. */
const char *mca_pml_umrddt_pairs_reason(unsigned possible);

/** Tell of a new pair, pair->tells, unless it was. @p message: as the model was asked of it */
void mca_pml_umrddt_pairs_explain(const mca_pml_umrddt_recv_t *recv, mca_pml_umrddt_pair_t *pair,
                                  const mca_pml_umrddt_model_case_t *message);

/** Of a pair that is told of: what its first message took, and later ones in the middle. */
void mca_pml_umrddt_pairs_explain_observed(const mca_pml_umrddt_recv_t *recv,
                                           mca_pml_umrddt_pair_t *pair, double took);

/** Of such a pair: its trial is over. */
void mca_pml_umrddt_pairs_explain_trial(const mca_pml_umrddt_recv_t *recv,
                                        const mca_pml_umrddt_pair_t *pair);

/** Of such a pair: its message could not go its way. */
void mca_pml_umrddt_pairs_explain_failed(const mca_pml_umrddt_recv_t *recv,
                                         const mca_pml_umrddt_pair_t *pair);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_PAIRS_PRIVATE_H */
