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
 * Forwards UCX's unmap events to Open MPI's memory hooks.
 *
 * Users of the hooks (registration caches and others) need a report of every unmapping. The hooks
 * patch munmap, mremap, madvise, shmdt and brk. UCX patches more functions: its sbrk makes the
 * system call itself, so Open MPI's hook of brk is not called any more (releases since 1.14 or so,
 * UCX_MEM_MMAP_HOOK_MODE bistro, the default on x86_64 and aarch64). This affects every process
 * with libucm, for example after the query of pml/ucx or osc/ucx. A registration can then outlive
 * heap pages that were returned and allocated again, and the HCA accesses the old pages. (Seen on
 * Soft-RoCE, test/rxe: Open MPI 5.0.7 and UCX 1.18 of Debian 13.) So UCX's events are forwarded
 * too; duplicates are harmless.
 */

#ifndef OPAL_UMRDDT_UNMAPS_H
#define OPAL_UMRDDT_UNMAPS_H

#include "opal_config.h"

BEGIN_C_DECLS

/**
 * Enable forwarding of UCX's unmap events to opal_mem_hooks_release_hook. Calls are counted; each
 * needs an opal_umrddt_unmaps_close. If UCX is not loaded yet, opal_umrddt_unmaps_look enables it
 * later. Not thread-safe with the other functions of this file.
 */
void opal_umrddt_unmaps_open(void);
void opal_umrddt_unmaps_close(void);

/**
 * Test whether UCX is loaded by now. Call before a result is cached. Costs a call of the dynamic
 * loader while UCX is not loaded. Under the caller's lock.
 */
void opal_umrddt_unmaps_look(void);

END_C_DECLS

#endif /* OPAL_UMRDDT_UNMAPS_H */
