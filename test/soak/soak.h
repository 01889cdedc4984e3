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
 * What a process holds, and whether it holds more and more.
 *
 * A program that soaks works in *cycles* of the same kind, and holds nothing of its own between
 * two of them. What the process holds there is its *floor*. Caches and pools fill in the first
 * cycles; from the middle of a run on no floor may rise.
 */

#ifndef TEST_SOAK_SOAK_H
#define TEST_SOAK_SOAK_H

#include "mpitest.h"

/** Look at the floor; a collective call, with nothing under way. */
void soak_look(void);

/**
 * The end: print the floors, and fail if one rose in the second half. A collective call.
 *
 * @param[in] slack  bytes of the heap that may come on top: what Open MPI's free lists take late
 * @param[in] kept   bytes of the heap that Open MPI keeps of a cycle; umrddt's own part is checked
 *                   without them
 */
void soak_check(size_t slack, size_t kept);

/** Whether to go on: cycles of --ops, or with UMRDDT_SOAK_SECONDS=N until so many have passed; the
 * same on all ranks. A collective call. */
bool soak_goes_on(long cycles);

/** For --mode leak-WHAT: lose something, which must be found. */
void soak_leak(void);

#endif /* TEST_SOAK_SOAK_H */
