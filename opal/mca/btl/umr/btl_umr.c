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
 * The state that belongs to no HCA.
 */

#include "opal_config.h"

#include <stdarg.h>
#include <stdio.h>

#include "opal/mca/btl/umr/btl_umr.h"

mca_btl_umr_t mca_btl_umr;

void mca_btl_umr_refuse(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(mca_btl_umr.why, sizeof(mca_btl_umr.why), format, arguments);
    va_end(arguments);
}
