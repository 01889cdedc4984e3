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
 * The users of the engines and pools of this process: the components share them.
 */

#ifndef OPAL_UMRDDT_GPU_USERS_H
#define OPAL_UMRDDT_GPU_USERS_H

#include "opal_config.h"

BEGIN_C_DECLS

/** Add a user. Calls no driver function. Needs one opal_umrddt_gpu_users_remove. */
void opal_umrddt_gpu_users_add(void);

/**
 * Remove a user; it has no copy in progress and no buffer of a pool. The last one frees the pools
 * and the engines. Tolerates destroyed contexts and a driver that is shut down.
 */
void opal_umrddt_gpu_users_remove(void);

END_C_DECLS

#endif /* OPAL_UMRDDT_GPU_USERS_H */
