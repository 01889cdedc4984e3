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
 * Engines on the software driver: random layouts in memory of every kind, every way to copy, all
 * bytes compared, gaps too. Each part is a process of its own, with its options of the driver.
 * With UMRDDT_TEST_GPU=real, those parts that need no options that matter run on the machine's own
 * driver.
 *
 *     test_engine [PART [SEED]]
 */

#include "engine_parts.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_map.h"
#include "opal/mca/common/umrddt_gpu/staging/umrddt_gpu_staging.h"

static uint64_t seed = 20261122;

/* ---------------------------------------------------------------------------------------------
 * Random copies
 * ------------------------------------------------------------------------------------------- */

static int wait_by_tests(opal_umrddt_gpu_copy_t *copy)
{
    int rc;

    while (OPAL_ERR_RESOURCE_BUSY == (rc = opal_umrddt_gpu_copy_test(copy))) {
        usleep(20);
    }
    return rc;
}

/* Two ends for a part of two random layouts; now and then one of them is packed. */
static void draw(test_kind_t kinds[2], test_end_t ends[2], uint64_t *start, uint64_t *stop)
{
    opal_iov_cache_layout_t *layouts[2];
    int i, packed;

    test_layouts(layouts);
    CHECK(layouts[0]->size == layouts[1]->size);
    test_range(layouts[0]->size, start, stop);
    packed = (int) typegen_below(&test_dice, 4);
    for (i = 0; i < 2; ++i) {
        if (i == packed) {
            OBJ_RELEASE(layouts[i]);
            test_end_packed(kinds[i], *stop - *start, &ends[i]);
        } else {
            test_end_make(kinds[i], layouts[i], &ends[i]);
        }
    }
}

/* The device has kernels, and reaches everything. */
static bool all_there = true;

static void random_copy(int how)
{
    test_kind_t kinds[2] = {KINDS, KINDS};
    opal_umrddt_gpu_engine_stats_t before, after;
    opal_umrddt_gpu_engine_t *engine;
    opal_umrddt_gpu_copy_t *copy;
    test_end_t ends[2];
    uint64_t start, stop;
    bool staged;
    int i;

    draw(kinds, ends, &start, &stop);
    staged = ON_HOST == ends[0].kind || ON_HOST == ends[1].kind;
    before = test_stats();
    engine = test_engine_for(&ends[0], &ends[1]);
    for (i = 0; i < 2; ++i) {
        ends[i].place.reached = ends[i].is.ctx == opal_umrddt_gpu_engine_context(engine)
                                && typegen_once_in(&test_dice, 2);
        ends[i].place.on_device = OPAL_UMRDDT_GPU_DEVICE == ends[i].is.kind
                                  && ends[i].is.device == opal_umrddt_gpu_engine_device(engine)
                                  && typegen_once_in(&test_dice, 2);
    }
    CHECK(OPAL_SUCCESS
          == opal_umrddt_gpu_copy(engine, &ends[0].place, &ends[1].place, start, stop, &copy));
    CHECK(OPAL_SUCCESS
          == (typegen_once_in(&test_dice, 2) ? wait_by_tests(copy)
                                             : opal_umrddt_gpu_copy_wait(copy)));
    after = test_stats();
    CHECK(before.copies + 1 == after.copies);
    if (!staged && all_there) {
        const uint64_t launches = after.launches - before.launches;
        const uint64_t others = after.driver_copies - before.driver_copies;

        CHECK(1 >= launches && (0 == launches || 0 == others));
        CHECK(OPAL_UMRDDT_GPU_HOW_KERNEL != how || start == stop || 1 == launches);
        CHECK(OPAL_UMRDDT_GPU_HOW_AUTO != how || start == stop || 1 == launches + others);
        CHECK(OPAL_UMRDDT_GPU_HOW_DRIVER != how || start == stop || 4 >= launches + others);
        CHECK(OPAL_UMRDDT_GPU_HOW_BLOCKS != how || start == stop || 0 < others);
        CHECK(before.staged_bytes == after.staged_bytes);
    }
    test_expect(&ends[0], &ends[1], start, stop);
    CHECK(test_end_good(&ends[0]));
    CHECK(test_end_good(&ends[1]));
    test_end_free(&ends[0]);
    test_end_free(&ends[1]);
}

/* (In test/run --all: four times as many.) */
static void random_copies(int how, int scheme, unsigned count)
{
    unsigned i;

    count *= NULL != getenv("UMRDDT_TEST_ALL") ? 4 : 1;
    (void) test_params(how, scheme);
    for (i = 0; i < count; ++i) {
        typegen_seed(&test_dice, seed + i);
        random_copy(how);
    }
    opal_umrddt_gpu_engines_close();
    CHECK(0 == test_stats().shape_bytes_now);
}

static void by_auto(void)
{
    random_copies(OPAL_UMRDDT_GPU_HOW_AUTO, 0, 75);
}

static void by_blocks(void)
{
    random_copies(OPAL_UMRDDT_GPU_HOW_BLOCKS, 0, 25);
}

static void by_driver(void)
{
    random_copies(OPAL_UMRDDT_GPU_HOW_DRIVER, 0, 50);
}

static void by_kernels(void)
{
    int scheme;

    for (scheme = 0; scheme < OPAL_UMRDDT_GPU_SCHEMES; ++scheme) {
        random_copies(OPAL_UMRDDT_GPU_HOW_KERNEL, scheme, 15);
    }
}

/* Then the driver copies, in as many steps as it needs. */
static void without_kernels(void)
{
    const opal_umrddt_gpu_engine_stats_t before = test_stats();

    all_there = false;
    random_copies(OPAL_UMRDDT_GPU_HOW_AUTO, 0, 38);
    CHECK(before.launches == test_stats().launches);
}

static void without_peers(void)
{
    all_there = false;
    random_copies(OPAL_UMRDDT_GPU_HOW_KERNEL, 0, 38);
    CHECK(0 < test_stats().launches && 0 < test_stats().driver_copies);
}

/* How many of the driver's copies a whole copy took; the others are one launch. */
static uint64_t by_driver_of(opal_iov_cache_layout_t *layout, bool on_device)
{
    const opal_umrddt_gpu_engine_stats_t before = test_stats();
    opal_umrddt_gpu_engine_stats_t after;
    opal_umrddt_gpu_copy_t *copy;
    test_end_t ends[2];
    int i;

    for (i = 0; i < 2; ++i) {
        OBJ_RETAIN(layout);
        test_end_make(ON_DEVICE, layout, &ends[i]);
        ends[i].place.reached = true;
        ends[i].place.on_device = on_device;
    }
    CHECK(OPAL_SUCCESS
          == opal_umrddt_gpu_copy(test_engine_for(&ends[0], &ends[1]), &ends[0].place,
                                  &ends[1].place, 0, layout->size, &copy));
    CHECK(OPAL_SUCCESS == opal_umrddt_gpu_copy_wait(copy));
    test_expect(&ends[0], &ends[1], 0, layout->size);
    CHECK(test_end_good(&ends[1]));
    after = test_stats();
    CHECK(before.launches + before.driver_copies + 1 == after.launches + after.driver_copies);
    test_end_free(&ends[0]);
    test_end_free(&ends[1]);
    return after.driver_copies - before.driver_copies;
}

/* Within a device kernels copy what the driver would between devices, also where that was done
 * before. */
static void within(unsigned graphs)
{
    opal_umrddt_gpu_engine_params_t params = test_params(OPAL_UMRDDT_GPU_HOW_AUTO, 0);
    opal_iov_cache_layout_t *rows, *piece, *long_piece;

    params.graphs = graphs;
    opal_umrddt_gpu_engine_params(&params);
    rows = test_blocks(64, 4096, 8192, false);
    piece = test_blocks(1, (uint64_t) 1 << 20, (uint64_t) 1 << 20, false);
    long_piece = test_blocks(1, (uint64_t) 4 << 20, (uint64_t) 4 << 20, false);
    CHECK(1 == by_driver_of(rows, false) && 0 == by_driver_of(rows, true));
    CHECK(1 == by_driver_of(piece, false) && (0 == graphs) == by_driver_of(piece, true));
    CHECK(1 == by_driver_of(long_piece, false) && 1 == by_driver_of(long_piece, true));
    OBJ_RELEASE(rows);
    OBJ_RELEASE(piece);
    OBJ_RELEASE(long_piece);
}

static void within_device(void)
{
    within(64);
}

static void within_without_graphs(void)
{
    within(0);
}

static void bad_ranges(void)
{
    opal_umrddt_gpu_copy_t *copy = NULL;
    opal_umrddt_gpu_engine_t *engine;
    test_end_t ends[2];
    int i;

    test_end_make(ON_DEVICE, test_blocks(10, 16, 40, true), &ends[0]);
    test_end_make(ON_DEVICE, test_blocks(11, 16, 40, true), &ends[1]);
    engine = test_engine_for(&ends[0], &ends[1]);
    for (i = 0; i < 2; ++i) {
        CHECK(OPAL_ERR_BAD_PARAM
              == opal_umrddt_gpu_copy(engine, &ends[i].place, &ends[1 - i].place, 0, 161, &copy));
        CHECK(OPAL_ERR_BAD_PARAM
              == opal_umrddt_gpu_copy(engine, &ends[i].place, &ends[1 - i].place, 17, 16, &copy));
    }
    CHECK(NULL == copy && 0 == test_stats().copies);
    test_end_free(&ends[0]);
    test_end_free(&ends[1]);
}

static const struct {
    const char *name;
    void (*run)(void);
    const char *options; /* of the software driver; NULL: kernels that are not ours */
    bool on_software_only;
} parts[] = {
    {"auto", by_auto, "delay=50", false},
    {"blocks", by_blocks, "", false},
    {"driver", by_driver, "", false},
    {"kernels", by_kernels, "", false},
    {"no kernels", without_kernels, NULL, true},
    {"no peers", without_peers, "peer=0", true},
    {"flight", test_flight, "delay=300", false},
    {"crowd", test_crowd, "delay=30", false},
    {"threads", test_threads, "delay=30", false},
    {"steady", test_steady, "delay=30", false},
    {"bounds", test_bounds, "delay=30", false},
    {"many", test_many, "", false},
    {"addresses", test_addresses, "", false},
    {"graphs", test_graphs, "delay=10", false},
    {"no graphs", test_no_graphs, "", false},
    {"no graph is created", test_no_graphs, "fail=cuGraphCreate:*:801", true},
    {"no node is added", test_no_graphs, "fail=cuGraphAddKernelNode:1:2", true},
    {"no graph is instantiated", test_no_graphs, "fail=cuGraphInstantiateWithFlags:1:2", true},
    {"no graph is launched", test_no_graphs, "fail=cuGraphLaunch:1:801", true},
    {"batches", test_batches, "delay=30", false},
    {"batches, late", test_batches, "delay=2000", true},
    {"batch limits", test_batch_limits, "", false},
    {"batches random", test_batches_random, "delay=30", false},
    {"batches unflushed", test_batches_unflushed, "delay=30", false},
    {"batches of threads", test_batches_threads, "delay=100", false},
    {"batches without flags", test_batches, "fail=cuStreamWriteValue32:*:801,delay=30", true},
    {"batch not launched", test_batch_failed, "fail=cuLaunchKernel:1:999", true},
    {"batch without a function", test_batch_failed, "fail=cuModuleGetFunction:2:999", true},
    {"batch without a flag", test_batch_failed, "fail=cuStreamWriteValue32:1:999", true},
    {"batch without signals", test_batch_failed,
     "fail=cuStreamWriteValue32:*:801,fail=cuEventCreate:*:2", true},
    {"one of a batch not launched", test_batch_one_failed,
     "fail=cuLaunchKernel:1:999,fail=cuLaunchKernel:4:999", true},
    {"one of a batch without a list", test_batch_failed, "fail=cuMemcpyHtoDAsync:3:999", true},
    {"first of a batch not tested", test_batch_first_failed, "fail=cuStreamQuery:1:999,delay=20000",
     true},
    {"batches of new types", test_batches_new, "", true},
    {"batch of the largest maximum", test_batch_maximum, "", true},
    {"batches that expect more", test_batches_expected, "delay=20000", true},
    {"batches held too long", test_batches_held, "delay=20000", true},
    {"pending copies of no engine", test_pending_closed, "", true},
    {"contexts", test_contexts, "", true},
    {"within", within_device, "delay=10", false},
    {"within, no graphs", within_without_graphs, "", false},
    {"bad ranges", bad_ranges, "", false},
    {"reductions", test_reductions, "delay=30", false},
    {"no reductions", test_no_reductions, NULL, true},
    {"a failed launch", test_failed_reductions, "fail=cuLaunchKernel:4:1", true},
    {"kernels loaded later", test_failed_reductions, "fail=cuModuleLoadData:2:2", true},
    {"reductions by events", test_reductions_by_events, "fail=cuStreamWriteValue32:*:801", true},
};

#define PARTS  (sizeof(parts) / sizeof(parts[0]))
#define FAULTS "fault "

static bool on_real(void)
{
    const char *wish = getenv("UMRDDT_TEST_GPU");

    return NULL != wish && 0 == strcmp("real", wish);
}

/* Begin again with options of the software driver. */
static int again(const char *name, const char *options)
{
    const char *build = getenv("UMRDDT_BUILDDIR");
    char number[24], text[8192];
    int status;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    CHECK(-1 != pid);
    if (0 == pid) {
        char *args[] = {(char *) "test_engine", (char *) name, number, NULL};

        CHECK(NULL != build || on_real());
        snprintf(number, sizeof(number), "%llu", (unsigned long long) seed);
        if (!on_real()) {
            snprintf(text, sizeof(text), "%s/sim/cuda/.libs%s%s", build,
                     NULL == getenv("LD_LIBRARY_PATH") ? "" : ":",
                     NULL == getenv("LD_LIBRARY_PATH") ? "" : getenv("LD_LIBRARY_PATH"));
            setenv("LD_LIBRARY_PATH", text, 1);
            /* Kernels, but none of ours. */
            snprintf(text, sizeof(text), "kernels=%s/test/cuda/.libs/host_kernels.so", build);
            setenv("UMRDDT_GPU", NULL == options ? text : options, 1);
            unsetenv("CUDA_VISIBLE_DEVICES");
        }
        setenv("UMRDDT_TEST_AGAIN", "1", 1);
        execv("/proc/self/exe", args);
        _exit(99);
    }
    CHECK(pid == waitpid(pid, &status, 0));
    printf("%s: %s\n", 0 == status ? "ok" : "FAILED", name);
    return 0 != status;
}

/* All parts, or one. */
static int parent(const char *only)
{
    char name[256];
    int failed = 0;
    size_t i;

    for (i = 0; i < PARTS; ++i) {
        if ((NULL == only || 0 == strcmp(only, parts[i].name))
            && (!on_real() || !parts[i].on_software_only)) {
            failed |= again(parts[i].name, parts[i].options);
        }
    }
    for (i = 0; !on_real() && NULL != test_faults[i].options; ++i) {
        snprintf(name, sizeof(name), FAULTS "%s", test_faults[i].options);
        if (NULL == only || 0 == strncmp(only, name, strlen(only))) {
            failed |= again(name, test_faults[i].options);
        }
    }
    return failed;
}

int main(int argc, char **argv)
{
    size_t i;

    (void) opal_set_using_threads(true); /* some parts have threads */
    if (2 < argc) {
        seed = strtoull(argv[2], NULL, 0);
    }
    if (NULL == getenv("UMRDDT_TEST_AGAIN")) {
        return parent(1 < argc ? argv[1] : NULL);
    }
    typegen_seed(&test_dice, seed);
    for (i = 0; NULL != test_faults[i].options; ++i) {
        if (0 == strncmp(argv[1], FAULTS, strlen(FAULTS))
            && 0 == strcmp(argv[1] + strlen(FAULTS), test_faults[i].options)) {
            test_begin(false);
            test_fault(&test_faults[i]);
            return 0;
        }
    }
    for (i = 0; i < PARTS; i++) {
        if (0 == strcmp(argv[1], parts[i].name)) {
            test_begin(true);
            parts[i].run();
            opal_umrddt_gpu_engines_close();
            opal_umrddt_gpu_staging_close();
            MPI_Finalize();
            return 0;
        }
    }
    return 99;
}
