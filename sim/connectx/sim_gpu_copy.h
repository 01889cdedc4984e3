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
 * Memory of GPUs that the HCA cannot map, above all of real ones: it is moved for its owner by
 * the CUDA driver's copies, from and to the addresses that the owner has. The data of a copy is
 * there at once, so nothing is late and nothing has to be flushed; memory that was freed, and
 * allocated again at the same address, is reached, which an HCA would not do.
 */

#ifndef SIM_GPU_COPY_H
#define SIM_GPU_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/**
 * Take the driver, once for the process.
 *
 * @param[in] library  of dlopen; stays loaded as long as the program keeps it
 */
void sim_gpu_copy_find(void *library);

/**
 * Query the memory of an address. Without the HCA's lock, as the driver has locks of its own.
 *
 * @param[out] ctx  the context to copy in; filled if 1 is returned
 *
 * @return 1: all of it is of one allocation of a GPU; 0: it is not a GPU's, or there is no driver;
 *         -1: it is, and HCAs cannot have it (managed, or more than one allocation)
 */
int sim_gpu_copy_look(uint64_t address, uint64_t length, void **ctx);

/**
 * Gather pieces, some of them a GPU's, into memory of the CPU, or scatter them from there. With
 * the HCA's lock; returns when all is done.
 *
 * @return 0, or -1: the driver refused (the memory is gone, for example)
 */
int sim_gpu_copy(void *ctx, const struct iovec *pieces, size_t count, void *flat, bool gather);

#endif /* SIM_GPU_COPY_H */
