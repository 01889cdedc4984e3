/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * One collective of gpu_coll.c: on system memory, and on buffers of any kind; and what coll/umrddt
 * counts.
 */

#include "gpu_coll.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------------------------
 * Counters of coll/umrddt
 * ------------------------------------------------------------------------------------------- */

static const char *const counter_names[GPU_COLL_COUNTERS] = {
    "passed",       "passed_gpu",    "staged",          "staged_nonblocking", "direct",
    "agreements",   "modes_read",    "bytes_in",        "bytes_out",          "memory_queries",
    "layouts_read", "stages_pinned", "stages_pageable", "sides_packed",       "failures"};

static MPI_T_pvar_session session;
static MPI_T_pvar_handle handles[GPU_COLL_COUNTERS];

/* False: there is no coll/umrddt. */
bool gpu_coll_counters_open(void)
{
    int provided, n, count, found = 0;

    MPI_OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    MPI_OK(MPI_T_pvar_session_create(&session));
    MPI_OK(MPI_T_pvar_get_num(&n));
    for (int i = 0; i < n; ++i) {
        char name[128];
        int length = sizeof(name), verbosity, class, bind, readonly, continuous, atomic;
        MPI_Datatype type;

        if (MPI_SUCCESS
            != MPI_T_pvar_get_info(i, name, &length, &verbosity, &class, &type, NULL, NULL, NULL,
                                   &bind, &readonly, &continuous, &atomic)) {
            continue;
        }
        for (int c = 0; c < GPU_COLL_COUNTERS; ++c) {
            if (0 == strncmp(name, "coll_umrddt_", 12)
                && 0 == strcmp(name + 12, counter_names[c])) {
                MPI_OK(MPI_T_pvar_handle_alloc(session, i, NULL, &handles[c], &count));
                ++found;
            }
        }
    }
    CHECK(0 == found || GPU_COLL_COUNTERS == found);
    return GPU_COLL_COUNTERS == found;
}

unsigned long long gpu_coll_counter(gpu_coll_counter_t which)
{
    unsigned long long value;

    MPI_OK(MPI_T_pvar_read(session, handles[which], &value));
    return value;
}

void gpu_coll_counters_close(void)
{
    for (int c = 0; c < GPU_COLL_COUNTERS; ++c) {
        if (NULL != handles[c]) {
            MPI_OK(MPI_T_pvar_handle_free(session, &handles[c]));
        }
    }
    MPI_OK(MPI_T_pvar_session_free(&session));
    MPI_OK(MPI_T_finalize());
}

/* ---------------------------------------------------------------------------------------------
 * Elements
 * ------------------------------------------------------------------------------------------- */

const gpu_coll_shape_t gpu_coll_shapes[GPU_COLL_TYPES][2] = {
    [GPU_COLL_PLAIN] = {{{0, 4, 8, 12, 16, 20}, 24, 0}, {{20, 16, 12, 8, 4, 0}, 24, 0}},
    [GPU_COLL_VECTOR] = {{{0, 4, 20, 24, 40, 44}, 56, 0}, {{0, 4, 8, 12, 16, 20}, 56, 0}},
    [GPU_COLL_MIXED] = {{{-16, 8, 4, -40, 24, 20}, 72, 40}, {{0, 4, 20, 24, -40, -36}, 72, 40}},
};

MPI_Datatype gpu_coll_types[GPU_COLL_TYPES][2];
MPI_Op gpu_coll_op;

/* Two integers are the line x -> a * x + b; lines one after the other. */
static void combine(void *in, void *inout, int *length, MPI_Datatype *type)
{
    int kind = 0, i, j;

    while (GPU_COLL_TYPES > kind && gpu_coll_types[kind][0] != *type) {
        ++kind;
    }
    CHECK(GPU_COLL_TYPES > kind);
    for (i = 0; i < *length; ++i) {
        for (j = 0; j < GPU_COLL_INTEGERS; j += 2) {
            const int one = i * gpu_coll_shapes[kind][0].extent + gpu_coll_shapes[kind][0].at[j];
            const int two =
                i * gpu_coll_shapes[kind][0].extent + gpu_coll_shapes[kind][0].at[j + 1];
            unsigned a, b, c, d;

            memcpy(&a, (char *) in + one, sizeof(a));
            memcpy(&b, (char *) in + two, sizeof(b));
            memcpy(&c, (char *) inout + one, sizeof(c));
            memcpy(&d, (char *) inout + two, sizeof(d));
            d = a * d + b;
            c = a * c;
            memcpy((char *) inout + one, &c, sizeof(c));
            memcpy((char *) inout + two, &d, sizeof(d));
        }
    }
}

void gpu_coll_types_make(void)
{
    for (int kind = 0; kind < GPU_COLL_TYPES; ++kind) {
        for (int which = 0; which < 2; ++which) {
            MPI_Aint at[GPU_COLL_INTEGERS];
            MPI_Datatype tight;

            for (int i = 0; i < GPU_COLL_INTEGERS; ++i) {
                at[i] = gpu_coll_shapes[kind][which].at[i];
            }
            MPI_OK(MPI_Type_create_hindexed_block(GPU_COLL_INTEGERS, 1, at, MPI_UNSIGNED, &tight));
            MPI_OK(MPI_Type_create_resized(tight, 0, gpu_coll_shapes[kind][which].extent,
                                           &gpu_coll_types[kind][which]));
            MPI_OK(MPI_Type_commit(&gpu_coll_types[kind][which]));
            MPI_OK(MPI_Type_free(&tight));
        }
    }
    MPI_OK(MPI_Op_create(combine, 0, &gpu_coll_op));
}

void gpu_coll_types_free(void)
{
    for (int kind = 0; kind < GPU_COLL_TYPES; ++kind) {
        MPI_OK(MPI_Type_free(&gpu_coll_types[kind][0]));
        MPI_OK(MPI_Type_free(&gpu_coll_types[kind][1]));
    }
    MPI_OK(MPI_Op_free(&gpu_coll_op));
}

/* ---------------------------------------------------------------------------------------------
 * One collective
 * ------------------------------------------------------------------------------------------- */

static void buffer_new(gpu_coll_buffer_t *buffer, size_t bytes, uint64_t *state, gpu_kind_t kind)
{
    buffer->bytes = buffer->checked = bytes;
    buffer->before = malloc(bytes);
    buffer->after = malloc(bytes);
    CHECK(NULL != buffer->before && NULL != buffer->after);
    for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
        const uint64_t draw = mpitest_random(state);

        memcpy(buffer->before + i, &draw, bytes - i < sizeof(draw) ? bytes - i : sizeof(draw));
    }
    memcpy(buffer->after, buffer->before, bytes);
    buffer->memory = gpu_memory(kind, bytes);
}

static void buffer_write(gpu_coll_buffer_t *buffer)
{
    gpu_write(buffer->memory, 0, buffer->before, buffer->bytes);
}

static void *buffer_address(const gpu_coll_buffer_t *buffer)
{
    return buffer->memory->addr + GPU_COLL_BEFORE;
}

static void buffer_verify(const gpu_coll_buffer_t *buffer, const char *name, const char *which)
{
    unsigned char *now = malloc(buffer->bytes);

    CHECK(NULL != now);
    gpu_read(buffer->memory, 0, now, buffer->bytes);
    for (size_t i = 0 == memcmp(now, buffer->after, buffer->checked) ? buffer->checked : 0;
         i < buffer->checked; ++i) {
        if (now[i] != buffer->after[i]) {
            mpitest_fail(__FILE__, __LINE__,
                         "%s: %s buffer in %s memory, byte %ld (of %zu): %02x, not %02x (was %02x)",
                         name, which, gpu_kind_name(buffer->memory->kind),
                         (long) i - GPU_COLL_BEFORE, buffer->bytes, now[i], buffer->after[i],
                         buffer->before[i]);
        }
    }
    ++mpitest.checks;
    free(now);
}

static void buffer_free(gpu_coll_buffer_t *buffer)
{
    gpu_memory_free(buffer->memory);
    free(buffer->before);
    free(buffer->after);
}

/* Buffers of these kinds, what must come out of it, and the call. */
void gpu_coll_begin(gpu_coll_run_t *run, const gpu_coll_case_t *what, const gpu_coll_t *with,
                    gpu_coll_form_t form, gpu_kind_t send, gpu_kind_t recv, int kind,
                    uint64_t *state)
{
    const size_t bytes =
        2 * GPU_COLL_BEFORE + (size_t) gpu_coll_elements(with) * (size_t) with->extent;
    uint64_t own = *state + (uint64_t) mpitest.rank * 77;
    MPI_Request request = MPI_REQUEST_NULL;

    run->what = what;
    run->with = with;
    run->form = form;
    run->request = MPI_REQUEST_NULL;
    buffer_new(&run->send, bytes, &own, send);
    buffer_new(&run->recv, bytes, &own, recv);
    what->call(with, form, run->send.after + GPU_COLL_BEFORE, run->recv.after + GPU_COLL_BEFORE,
               &request);
    if (GPU_COLL_PERSISTENT == form) {
        MPI_OK(MPI_Start(&request));
    }
    MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    if (GPU_COLL_PERSISTENT == form) {
        MPI_OK(MPI_Request_free(&request));
    }
    if (gpu_coll_is(what, "reduce_scatter") && gpu_coll_is(what, "in_place")) {
        /* behind the result there may be anything */
        const int mine =
            gpu_coll_is(what, "block") ? with->count : gpu_coll_some(with, with->rank, 1);

        run->recv.checked = GPU_COLL_BEFORE + (size_t) mine * (size_t) with->extent
                            - (size_t) gpu_coll_shapes[kind][0].before;
    }
    buffer_write(&run->send);
    buffer_write(&run->recv);
    what->call(with, form, buffer_address(&run->send), buffer_address(&run->recv), &run->request);
}

static void run_verify(gpu_coll_run_t *run)
{
    buffer_verify(&run->send, run->what->name, "send");
    buffer_verify(&run->recv, run->what->name, "receive");
}

void gpu_coll_end(gpu_coll_run_t *run)
{
    if (GPU_COLL_PERSISTENT == run->form) {
        for (int i = 0; i < 2; ++i) {
            buffer_write(&run->send);
            buffer_write(&run->recv);
            MPI_OK(MPI_Start(&run->request));
            MPI_OK(MPI_Wait(&run->request, MPI_STATUS_IGNORE));
            run_verify(run);
        }
        MPI_OK(MPI_Request_free(&run->request));
    } else {
        if (GPU_COLL_NONBLOCKING == run->form) {
            MPI_OK(MPI_Wait(&run->request, MPI_STATUS_IGNORE));
        }
        run_verify(run);
    }
    buffer_free(&run->send);
    buffer_free(&run->recv);
}
