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
 * Within an Open MPI: included before the sources of what components share, which is in libopen-pal
 * (config/umrddt_graft.am). Makes their names visible to components outside of it, although Open
 * MPI compiles with -fvisibility=hidden. All begin with a prefix of this project.
 */

#ifndef UMRDDT_EXPORT_H
#define UMRDDT_EXPORT_H

#pragma GCC visibility push(default)

#endif /* UMRDDT_EXPORT_H */
