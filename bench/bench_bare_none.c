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
 * Replaces bench_bare.c and bench_breakdown.c in umrddt_bench for another MPI (see peers), whose
 * datatypes the layout engine cannot read. --bare and --breakdown are not available there.
 */

#include <stddef.h>

#include "bench_bare.h"
#include "bench_breakdown.h"

bench_bare_t *bench_bare_open(const bench_buffer_t *send, const bench_buffer_t *recv, int peer,
                              MPI_Comm control, const char **why)
{
    (void) send;
    (void) recv;
    (void) peer;
    (void) control;
    *why = "not available: this umrddt_bench was built for another MPI";
    return NULL;
}

void bench_bare_close(bench_bare_t *bare)
{
    (void) bare;
}

void bench_bare_send(bench_bare_t *bare)
{
    (void) bare;
}

void bench_bare_receive(bench_bare_t *bare)
{
    (void) bare;
}

const char *bench_breakdown_measure(const bench_layout_t *layout, const char *scheme,
                                    bench_breakdown_t *breakdown)
{
    (void) layout;
    (void) scheme;
    (void) breakdown;
    return "not available: this umrddt_bench was built for another MPI";
}
