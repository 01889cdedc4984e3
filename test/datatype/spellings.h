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
 * Many ways to tell MPI the same layout: twenty layouts, and random spellings of each.
 */

#ifndef TEST_DATATYPE_SPELLINGS_H
#define TEST_DATATYPE_SPELLINGS_H

#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

#include "test/common/typegen.h"

#define SPELLINGS_LAYOUTS 20

/** A datatype and count that spell one of the layouts. */
typedef struct spelling_t {
    MPI_Datatype type; /**< committed; to be freed */
    int count;
    char text[2048]; /**< the constructors */
} spelling_t;

/** A name for layout @p layout (0 .. SPELLINGS_LAYOUTS - 1). */
const char *spellings_name(int layout);

/** Spell it anew; the random numbers are all that a spelling depends on. */
void spellings_draw(typegen_rng_t *rng, int layout, spelling_t *spelling);

#endif /* TEST_DATATYPE_SPELLINGS_H */
