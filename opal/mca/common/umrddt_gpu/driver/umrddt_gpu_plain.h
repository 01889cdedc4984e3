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
 * Plain memory: pages of which the driver has said that it does not know them.
 *
 * A driver takes longest for memory that is not its own, half a microsecond (field reports, and
 * "MPI Sessions for GPU applications" on what such questions cost). What it said of a page of the
 * CPU holds as long as the page stays mapped: nobody makes memory of a device where other memory
 * is. So pages are remembered, 1024 of them at most, until Open MPI's memory hooks tell that they
 * are unmapped. (Caches of GPU memory go wrong where an allocation is missed; here an unmapping
 * would have to be.)
 *
 * A page that was registered with the driver since (cuMemHostRegister) may go on being called
 * plain for 4096 questions of a thread: it is the CPU's all the same.
 *
 * Any thread may call these, without a lock.
 */

#ifndef OPAL_UMRDDT_GPU_PLAIN_H
#define OPAL_UMRDDT_GPU_PLAIN_H

#include "opal_config.h"

#include <stdbool.h>
#include <stdint.h>

BEGIN_C_DECLS

/**
 * Begin to remember.
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_NOT_SUPPORTED  nobody tells here what is unmapped: nothing is ever plain
 */
int opal_umrddt_gpu_plain_open(void);

/** Forget everything. What is asked or told afterwards has no effect. */
void opal_umrddt_gpu_plain_close(void);

/** True if the page of this address is known to be plain. Calls nobody. */
bool opal_umrddt_gpu_plain(uintptr_t address);

/** Before the driver is asked. @return what opal_umrddt_gpu_plain_learn wants to know */
uint64_t opal_umrddt_gpu_plain_before(void);

/**
 * The driver was asked about an address.
 *
 * @param[in] plain   it does not know it
 * @param[in] before  opal_umrddt_gpu_plain_before, before it was asked: what was unmapped since
 *                    may have been this page
 */
void opal_umrddt_gpu_plain_learn(uintptr_t address, bool plain, uint64_t before);

END_C_DECLS

#endif /* OPAL_UMRDDT_GPU_PLAIN_H */
