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
 * Of bench_kernels: the variants of HAND's host bypass. One kernel goes by a list of pieces, whose
 * start each thread searches for itself (parallel) or a warp for all of its threads (sequential);
 * the list is in pinned memory, where the kernel reads it, or copied to the GPU, for each message
 * or once. (The prefix sum is part of the list here: no kernel has to compute it.)
 */

#include "bench_kernels.h"

#include <inttypes.h>
#include <stdio.h>

#define PLACES 6

static const struct {
    bench_list_t list;
    const char *name;
} lists[] = {
    {BENCH_LIST_CACHED, "kept"}, {BENCH_LIST_COPIED, "copied"}, {BENCH_LIST_PINNED, "pinned"}};

static const struct {
    opal_umrddt_gpu_scheme_t scheme;
    const char *name;
} scans[] = {{OPAL_UMRDDT_GPU_SEQUENTIAL, "sequential"}, {OPAL_UMRDDT_GPU_PARALLEL, "parallel"}};

/* Packed, by each of the variants. */
static void variants(const char *what, const opal_iov_cache_form_t *form)
{
    const double bare = bench_driver_copy(&bench_state, form->size);
    opal_umrddt_gpu_plan_t plan;
    char how[80];

    for (size_t i = 0; i < sizeof(scans) / sizeof(scans[0]); ++i) {
        for (size_t k = 0; k < sizeof(lists) / sizeof(lists[0]); ++k) {
            double us;

            bench_state.lists = lists[k].list;
            us = bench_one_copy(form, scans[i].scheme, NULL, 0, PLACES, &plan);
            snprintf(how, sizeof(how), "pack %s %s", scans[i].name, lists[k].name);
            bench_line("bypass", what, how, us, form->size, bare, &plan);
        }
    }
    bench_state.lists = BENCH_LIST_CACHED;
}

void bench_part_bypass(void)
{
    static const uint64_t messages[] = {UINT64_C(64) << 10, UINT64_C(1) << 20, UINT64_C(16) << 20};
    static const uint64_t blocks[] = {16, 128, 1024};

    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); ++i) {
        for (size_t k = 0; k < sizeof(blocks) / sizeof(blocks[0]); ++k) {
            const uint64_t n = messages[i] / blocks[k];
            opal_iov_cache_form_t *form;
            char what[80];

            if (bench_message < messages[i]) {
                continue;
            }
            form = bench_scattered(blocks[k], n, false);
            /* of the length and of the place of each, and where the last one ends */
            snprintf(what, sizeof(what), "indexed %" PRIu64 " x %" PRIu64 ", list %" PRIu64,
                     blocks[k], n, 16 * form->segments + 8);
            variants(what, form);
            opal_iov_cache_form_free(form);
        }
    }
}
