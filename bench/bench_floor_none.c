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
 * Replaces bench_floor.c and bench_parts.c (no floor, no parts) in umrddt_bench for another MPI
 * (see peers), whose datatypes the layout engine cannot read.
 */

#include <stddef.h>

#include "bench_floor.h"
#include "bench_parts.h"

bench_floor_t *bench_floor_open(const bench_buffer_t *send, const bench_buffer_t *recv, int peer,
                                MPI_Comm control, const char **why)
{
    (void) send;
    (void) recv;
    (void) peer;
    (void) control;
    *why = "this umrddt_bench was built for another MPI";
    return NULL;
}

void bench_floor_close(bench_floor_t *floor)
{
    (void) floor;
}

void bench_floor_send(bench_floor_t *floor)
{
    (void) floor;
}

void bench_floor_receive(bench_floor_t *floor)
{
    (void) floor;
}

const char *bench_parts_measure(const bench_layout_t *layout, const char *scheme,
                                bench_parts_t *parts)
{
    (void) layout;
    (void) scheme;
    (void) parts;
    return "this umrddt_bench was built for another MPI";
}
