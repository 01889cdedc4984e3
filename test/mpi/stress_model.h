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
 * The results of a series of receives that MPI allows. This file calls no MPI function.
 *
 * A *lane* is one receiving thread on one communicator: the messages sent to it (*offers*), and its
 * receives and probes in the order of the calls (*events*). The offers of one source are in the
 * order of sending. If several threads of a source send into one lane, no event may accept messages
 * of two of them with the same tag, or with any tag: their order is then not defined, and is not
 * checked.
 *
 * The only random element is the source that a receive of any source matches, and that is part of
 * the event. All else follows: of the receives that matched a source, a message belongs to the
 * first one, in the order of posting, that accepts its tag and has none yet. Proof: let R be posted
 * before R', both accept m, R match a later message of the same source, and R' match m. If m was
 * there when R was posted, R had to match it; if it came later, it had to go to R, which was posted
 * first. A probe finds the first message that it accepts and that no earlier event matches.
 */

#ifndef STRESS_MODEL_H
#define STRESS_MODEL_H

#include <stdbool.h>
#include <stddef.h>

/** Any source, or any tag, of an event. */
#define STRESS_ANY (-1)

/** A value that is not known: the status was ignored. */
#define STRESS_UNKNOWN (-2)

/** A message. */
typedef struct stress_offer_t {
    int source;
    int tag;
    long bytes;
} stress_offer_t;

/** Result of an event. */
typedef enum stress_outcome_t {
    STRESS_PENDING,   /**< nothing: not allowed at the end */
    STRESS_TOOK,      /**< it is a receive, or a matched probe, and matched a message */
    STRESS_SAW,       /**< it is a probe, and found a message */
    STRESS_CANCELLED, /**< it is a receive, and was cancelled in time */
} stress_outcome_t;

/** A receive or a probe. */
typedef struct stress_event_t {
    int source; /**< requested source, or STRESS_ANY */
    int tag;
    stress_outcome_t outcome;
    int got_source; /**< from the status; known for all that matched or found a message */
    int got_tag;    /**< or STRESS_UNKNOWN */
    long got_bytes; /**< or STRESS_UNKNOWN; not checked for truncated ones */
    long capacity;  /**< bytes that fit; not checked for probes */
    bool truncated; /**< the receive ended with MPI_ERR_TRUNCATE */
    int offer;      /**< out: which message it was; -1 for none */
} stress_event_t;

/** True if an event with this pattern may match a message of this source and tag. */
bool stress_accepts(int pattern_source, int pattern_tag, int source, int tag);

/**
 * Check a finished lane: each offer was matched once, in the right order, with the right envelope
 * and size, and each receive and probe got an allowed message.
 *
 * @param[in]     offers  the messages sent to it; of one source in the order of sending
 * @param[in,out] events  in the order of posting; 'offer' of each is set
 * @param[out]    why     the reason, if the result is false
 *
 * @return true if MPI allows it
 */
bool stress_verify(const stress_offer_t *offers, int offer_count, stress_event_t *events,
                   int event_count, char *why, size_t why_size);

#endif /* STRESS_MODEL_H */
