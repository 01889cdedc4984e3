/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/** Parts of the program types: predefined datatypes (types_predefined.c). */

#ifndef MPITEST_TYPES_PREDEFINED_H
#define MPITEST_TYPES_PREDEFINED_H

#include <stdint.h>

/** Every predefined type of the library, with every receive call. */
void types_predefined(uint64_t *state);

/** Those of more than 16 bytes, in messages of many sizes. */
void types_wide(uint64_t *state);

/** The same in receives that have more room than the message needs, or less. */
void types_wide_cut(uint64_t *state);

/** Complex numbers at distances that are no multiples of their size. */
void types_uneven(uint64_t *state);

#endif /* MPITEST_TYPES_PREDEFINED_H */
