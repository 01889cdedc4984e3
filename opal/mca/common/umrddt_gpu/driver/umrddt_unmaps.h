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
 * What UCX sees of memory that goes, told to Open MPI's memory hooks.
 *
 * Whoever keeps registrations, or anything else that holds as long as memory stays mapped, asks
 * Open MPI's hooks to be told. These write a jump into munmap, mremap, madvise, shmdt and brk. UCX
 * does the same, into more functions: its sbrk (releases since 1.14 or so, UCX_MEM_MMAP_HOOK_MODE
 * bistro, the default on x86_64 and aarch64) makes the system call by itself, and Open MPI's hook
 * of brk is not called any more. A process that has libucm, as one with a pml/ucx or osc/ucx that
 * was only looked at, then goes on using a registration of pages that its heap gave back and got
 * anew: the HCA reads, or writes, the old ones. (Found on Soft-RoCE, test/rxe: Open MPI 5.0.7 and
 * UCX 1.18 of Debian 13.) So UCX is asked, too, and what it says is handed on; to be told twice
 * does no harm.
 */

#ifndef OPAL_UMRDDT_UNMAPS_H
#define OPAL_UMRDDT_UNMAPS_H

#include "opal_config.h"

BEGIN_C_DECLS

/**
 * From now on, till as many calls of opal_umrddt_unmaps_close as there were of this, what UCX sees
 * unmapped is told to opal_mem_hooks_release_hook. Where there is no UCX in this process yet,
 * nothing is done, and opal_umrddt_unmaps_look does it later. Not while another thread calls one of
 * these.
 */
void opal_umrddt_unmaps_open(void);
void opal_umrddt_unmaps_close(void);

/** Is there a UCX by now? To be asked before something is remembered; costs a call of the loader of
 * libraries as long as there is none. Under the caller's lock. */
void opal_umrddt_unmaps_look(void);

END_C_DECLS

#endif /* OPAL_UMRDDT_UNMAPS_H */
