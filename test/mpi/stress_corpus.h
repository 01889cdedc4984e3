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
 * A pool of types to draw from: making a type and its map costs far more than a message, so a few
 * hundred layouts are made at a time.
 *
 * Layouts of one *family* can be sent to each other: any number of bytes, any number of ints, and
 * pairs of random nested types of the same signature.
 */

#ifndef STRESS_CORPUS_H
#define STRESS_CORPUS_H

#include "layouts.h"

/** Families: bytes, ints, and this many pairs. */
#define STRESS_BYTES    0
#define STRESS_INTS     1
#define STRESS_PAIRS    2
#define STRESS_FAMILIES 14

/** A contiguous message of more bytes than this must not be truncated: pml/ob1 of Open MPI 4.1.4
 * writes beyond the receive buffer if the sender is contiguous and the message not eager. */
#define STRESS_FLAT_LIMIT 2000

/** A layout: (type, count). */
typedef struct stress_entry_t {
    MPI_Datatype type;
    int count;
    mpitest_map_t *map;
    long bytes; /**< of the stream */
    int unit;   /**< bytes of one basic element; 0 if they differ */
    bool flat;  /**< one piece of memory */
    int family;
    char name[48];
} stress_entry_t;

/** Make all layouts; the same on every rank for the same seed. */
void stress_corpus_make(uint64_t seed);

/** Free them. They must not be in use any more. */
void stress_corpus_free(void);

/** A layout by its number. */
const stress_entry_t *stress_entry(int number);

/** Draw the layout of a message. @p limit: at most this many bytes, if there is such a layout. */
int stress_draw_sender(uint64_t *state, int family, long limit);

/** Draw the layout of a receive with room for @p bytes. */
int stress_draw_room(uint64_t *state, int family, long bytes);

/** Draw the layout of a receive with room for @p least and, if there is one, too small for @p
 * bytes. */
int stress_draw_short(uint64_t *state, int family, long least, long bytes);

#endif /* STRESS_CORPUS_H */
