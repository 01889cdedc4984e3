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
 * The process's memory as an HCA sees it: copies that report a bad address instead of dying of it.
 * Called with the HCA's lock held.
 */

#ifndef SIM_MEM_H
#define SIM_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/**
 * Copy the pieces, one after the other, into a buffer.
 *
 * @retval 0
 * @retval -1  one of them cannot be read
 */
int sim_mem_gather(void *to, const struct iovec *pieces, size_t count);

/**
 * Copy a buffer into the pieces.
 *
 * @retval 0
 * @retval -1  one of them cannot be written; the ones before it may have been
 */
int sim_mem_scatter(const struct iovec *pieces, size_t count, const void *from);

/** Copy through a pipe from now on, as where process_vm_readv is forbidden. */
void sim_mem_by_pipe(void);

/** Whether all of [addr, addr + length) is mapped readable, and writable if requested. */
bool sim_mem_mapped(uint64_t addr, uint64_t length, bool writable);

#endif /* SIM_MEM_H */
