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
 * Memory of the HCA's own. Not the program's malloc: the HCA works inside of calls that need a
 * lock back, malloc perhaps, and the hooks that MPI libraries put below free() take locks of
 * theirs, which a thread that waits for the HCA may hold. Called with the HCA's lock held.
 */

#ifndef SIM_ALLOC_H
#define SIM_ALLOC_H

#include <stddef.h>

/** Zeroed memory, aligned to 16 bytes; NULL if there is none. */
void *sim_alloc(size_t bytes);
/** The same with undefined content. */
void *sim_alloc_dirty(size_t bytes);
/** Larger memory with the same beginning. On failure NULL, and the old one stays. */
void *sim_realloc(void *memory, size_t bytes);
/** Give back; NULL is fine. */
void sim_free(void *memory);

#endif /* SIM_ALLOC_H */
