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
 * The parts of test_engine.
 */

#ifndef TEST_GPU_ENGINE_PARTS_H
#define TEST_GPU_ENGINE_PARTS_H

#include "engine_memory.h"

/** Options of the software driver that make it fail, and copies that may fail of it. */
typedef struct test_fault_t {
    const char *options; /**< NULL: the end of the list */
    int failures;
} test_fault_t;

enum {
    FAULT_NO_STAGING = -1, /**< all that go through pinned buffers do */
    FAULT_BROKEN = -2      /**< at least one does, and everything from then on */
};

extern const test_fault_t test_faults[];
void test_fault(const test_fault_t *fault);

/** Many copies at once, which end in any order. */
void test_flight(void);

/** More copies through pinned memory than there is of it. */
void test_crowd(void);

/** Several threads, of which only one has a context. */
void test_threads(void);

/** The same copies again: nothing is allocated, made, uploaded or asked. */
void test_steady(void);

/** Lists beyond the bound of the cache. */
void test_bounds(void);

/** More layouts than an engine knows, most without a list. */
void test_many(void);

/** Layouts at many addresses. */
void test_addresses(void);

/** Launches that are repeated become graphs: counted, bounded, forgotten with what they launch. */
void test_graphs(void);

/** The same with none allowed, or on a driver that refuses them: then it goes without. */
void test_no_graphs(void);

/** Pending copies: launches, limits, any layouts, without a flush, from threads. */
void test_batches(void);
void test_batch_limits(void);
void test_batches_random(void);
void test_batches_unflushed(void);
void test_batches_threads(void);

/** On a driver that fails once: no copy fails, or one. */
void test_batch_failed(void);
void test_batch_one_failed(void);
void test_batch_first_failed(void);
void test_batches_new(void);
void test_batch_maximum(void);
void test_batches_expected(void);
void test_batches_held(void);
void test_pending_closed(void);

/** Contexts that come and go, and none at all. */
void test_contexts(void);

/** Reductions, and the same without kernels, with one failure of the driver, without flags. */
void test_reductions(void);
void test_no_reductions(void);
void test_failed_reductions(void);
void test_reductions_by_events(void);

#endif /* TEST_GPU_ENGINE_PARTS_H */
