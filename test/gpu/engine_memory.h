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
 * For tests of engines: memory of every kind, random layouts in it, and what it must look like
 * after a copy, which the layouts' own pack and unpack say.
 */

#ifndef TEST_GPU_ENGINE_MEMORY_H
#define TEST_GPU_ENGINE_MEMORY_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "test/datatype/singleton.h"

#include "opal/constants.h"
#include "opal/mca/common/umrddt_gpu/driver/umrddt_gpu_driver.h"
#include "umrddt_cuda_all.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_engine.h"
#include "test/common/typegen.h"

/* _exit: the streams of a driver that is in the middle of something are not waited for. */
#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
            fprintf(stderr, "    (%s)\n", test_doing);                                \
            fflush(NULL);                                                             \
            _exit(1);                                                                 \
        }                                                                             \
    } while (0)

#define OK(call) CHECK(CUDA_SUCCESS == test_driver->call)

/** What is being done: printed with a failure. */
extern char test_doing[4096];
extern const umrddt_cuda_all_t *test_driver;
extern typegen_rng_t test_dice;

/** Where memory can be. */
typedef enum {
    ON_HOST,
    ON_HOST_PINNED,
    ON_HOST_REGISTERED,
    ON_DEVICE,
    ON_DEVICE_1,
    IN_POOL,
    MANAGED,
    KINDS
} test_kind_t;

/** Memory with a layout in it. */
typedef struct test_end_t {
    test_kind_t kind;
    unsigned char *memory; /**< its first byte, for the device or the CPU */
    size_t bytes;
    unsigned char *expected; /**< what it must look like */
    opal_umrddt_gpu_copy_end_t place;
    opal_umrddt_gpu_memory_t is;
    bool borrowed; /**< the layout is another's */
} test_end_t;

/** Start the driver, with a context on device 0; and MPI, for random datatypes. */
void test_begin(bool mpi);

/** Allocate memory; KINDS: any. */
void test_end_alloc(test_kind_t kind, size_t bytes, test_end_t *end);

/** Allocate memory for a layout, which it takes, and fill all of it with random bytes. */
void test_end_make(test_kind_t kind, opal_iov_cache_layout_t *layout, test_end_t *end);

/** Allocate memory for a range without a layout. */
void test_end_packed(test_kind_t kind, uint64_t bytes, test_end_t *end);

/** New random bytes. */
void test_end_fill(test_end_t *end);
void test_end_free(test_end_t *end);

/** What a copy does to the expected bytes. */
void test_expect(const test_end_t *from, test_end_t *to, uint64_t start, uint64_t stop);

/** Compare all bytes, gaps too. */
bool test_end_good(const test_end_t *end);

/** Two random layouts of one signature. */
void test_layouts(opal_iov_cache_layout_t *layouts[2]);

/** A layout of n blocks, at random places or one stride apart. */
opal_iov_cache_layout_t *test_blocks(uint64_t n, uint64_t length, uint64_t stride, bool random);

/** Part of a stream. */
void test_range(uint64_t size, uint64_t *start, uint64_t *stop);

/** An engine that reaches both: of either end's memory. */
opal_umrddt_gpu_engine_t *test_engine_for(const test_end_t *from, const test_end_t *to);

opal_umrddt_gpu_engine_stats_t test_stats(void);

/** Parameters, all but how and scheme as they are by default. */
opal_umrddt_gpu_engine_params_t test_params(int how, int scheme);

#endif /* TEST_GPU_ENGINE_MEMORY_H */
