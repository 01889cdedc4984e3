/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Functions registered for passes of progress are called by the test only, as look(). The program
 * is linked with -Wl,--wrap=opal_progress_register.
 */

#ifndef TEST_COMMON_LOOK_H
#define TEST_COMMON_LOOK_H

#include "opal/constants.h"
#include "opal/runtime/opal_progress.h"

int __wrap_opal_progress_register(opal_progress_callback_t callback);

static opal_progress_callback_t look;

int __wrap_opal_progress_register(opal_progress_callback_t callback)
{
    look = callback;
    return OPAL_SUCCESS;
}

#endif /* TEST_COMMON_LOOK_H */
