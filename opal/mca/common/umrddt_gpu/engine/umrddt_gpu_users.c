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
 * Counts the users of engines and pools; see umrddt_gpu_users.h.
 */

#include "umrddt_gpu_users.h"

#include <pthread.h>

#include "umrddt_gpu_engine.h"
#include "umrddt_gpu_scratch.h"

#include "opal/mca/common/umrddt_gpu/staging/umrddt_gpu_stage.h"
#include "opal/mca/common/umrddt_gpu/staging/umrddt_gpu_staging.h"
#include "umrddt_collectives.h"

opal_umrddt_collectives_t opal_umrddt_collectives;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned users;

void opal_umrddt_gpu_users_add(void)
{
    pthread_mutex_lock(&lock);
    ++users;
    pthread_mutex_unlock(&lock);
}

void opal_umrddt_gpu_users_remove(void)
{
    pthread_mutex_lock(&lock);
    if (0 == --users) {
        /* The buffers of the pools belong to contexts of engines. */
        opal_umrddt_gpu_scratch_close();
        opal_umrddt_gpu_staging_close();
        opal_umrddt_gpu_stage_close();
        opal_umrddt_gpu_engines_close();
    }
    pthread_mutex_unlock(&lock);
}
