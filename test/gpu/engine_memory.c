/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "engine_memory.h"
#include "umrddt_cuda_all.h"

#include <string.h>
#include <unistd.h>

#define GUARD 32

char test_doing[4096];
const umrddt_cuda_all_t *test_driver;
typegen_rng_t test_dice;

static CUcontext contexts[2];

void test_begin(bool mpi)
{
    int count, i;

    if (mpi) {
        singleton_init(MPI_THREAD_SINGLE);
    }
    CHECK(OPAL_SUCCESS == umrddt_cuda_all_load(&test_driver));
    OK(cuInit(0));
    OK(cuDeviceGetCount(&count));
    for (i = 1; 0 <= i; --i) {
        OK(cuDevicePrimaryCtxRetain(&contexts[i], i < count ? i : 0));
    }
    OK(cuCtxSetCurrent(contexts[0]));
}

static bool is_host(test_kind_t kind)
{
    return ON_HOST_REGISTERED >= kind || MANAGED == kind;
}

void test_end_alloc(test_kind_t kind, size_t bytes, test_end_t *end)
{
    CUdeviceptr ptr = 0;
    void *host = NULL;

    memset(end, 0, sizeof(*end));
    kind = KINDS == kind ? (test_kind_t) typegen_below(&test_dice, KINDS) : kind;
    end->kind = kind;
    end->bytes = bytes;
    switch (kind) {
    case ON_HOST:
        host = malloc(bytes);
        break;
    case ON_HOST_PINNED:
        OK(cuMemHostAlloc(&host, bytes, CU_MEMHOSTALLOC_PORTABLE));
        break;
    case ON_HOST_REGISTERED:
        CHECK(0 == posix_memalign(&host, 4096, bytes));
        OK(cuMemHostRegister_v2(host, bytes, CU_MEMHOSTREGISTER_PORTABLE));
        break;
    case ON_DEVICE:
        OK(cuMemAlloc_v2(&ptr, bytes));
        break;
    case ON_DEVICE_1:
        OK(cuCtxSetCurrent(contexts[1]));
        OK(cuMemAlloc_v2(&ptr, bytes));
        OK(cuCtxSetCurrent(contexts[0]));
        break;
    case IN_POOL:
        OK(cuMemAllocAsync(&ptr, bytes, NULL));
        OK(cuStreamSynchronize(NULL));
        break;
    default:
        OK(cuMemAllocManaged(&ptr, bytes, CU_MEM_ATTACH_GLOBAL));
        break;
    }
    end->memory = NULL != host ? host : (unsigned char *) (uintptr_t) ptr;
    CHECK(NULL != end->memory);
    CHECK(OPAL_SUCCESS == opal_umrddt_gpu_classify(end->memory, &end->is));
    end->place.kind = end->is.kind;
    end->place.address = (uintptr_t) end->memory;
    end->expected = malloc(bytes);
    CHECK(NULL != end->expected);
}

void test_end_free(test_end_t *end)
{
    const CUdeviceptr ptr = (CUdeviceptr) (uintptr_t) end->memory;

    switch (end->kind) {
    case ON_HOST:
        free(end->memory);
        break;
    case ON_HOST_PINNED:
        OK(cuMemFreeHost(end->memory));
        break;
    case ON_HOST_REGISTERED:
        OK(cuMemHostUnregister(end->memory));
        free(end->memory);
        break;
    default:
        OK(cuMemFree_v2(ptr));
        break;
    }
    free(end->expected);
    if (NULL != end->place.layout && !end->borrowed) {
        OBJ_RELEASE(end->place.layout);
    }
}

void test_end_fill(test_end_t *end)
{
    size_t i;

    for (i = 0; i < end->bytes; ++i) {
        end->expected[i] = (unsigned char) (typegen_next(&test_dice) >> 20);
    }
    if (is_host(end->kind)) {
        memcpy(end->memory, end->expected, end->bytes);
    } else {
        OK(cuMemcpyHtoD_v2((CUdeviceptr) (uintptr_t) end->memory, end->expected, end->bytes));
        OK(cuCtxSynchronize());
    }
}

void test_end_make(test_kind_t kind, opal_iov_cache_layout_t *layout, test_end_t *end)
{
    uint64_t shift = typegen_below(&test_dice, GUARD);

    shift = typegen_once_in(&test_dice, 2) ? shift & ~UINT64_C(15) : shift;
    test_end_alloc(kind, (size_t) (layout->ub - layout->lb) + 2 * GUARD, end);
    end->place.layout = layout;
    end->place.address += shift - (uint64_t) layout->lb;
    test_end_fill(end);
}

void test_end_packed(test_kind_t kind, uint64_t bytes, test_end_t *end)
{
    test_end_alloc(kind, (size_t) bytes + 2 * GUARD, end);
    end->place.address += typegen_below(&test_dice, GUARD);
    test_end_fill(end);
}

/* The CPU's view of an address. */
static unsigned char *in_expected(const test_end_t *end)
{
    return end->expected + (int64_t) (end->place.address - (uintptr_t) end->memory);
}

void test_expect(const test_end_t *from, test_end_t *to, uint64_t start, uint64_t stop)
{
    unsigned char *stream = malloc((size_t) (stop - start) + 1);

    CHECK(NULL != stream);
    if (NULL == from->place.layout) {
        memcpy(stream, in_expected(from), stop - start);
    } else {
        opal_iov_cache_form_pack(from->place.layout->form, in_expected(from), start, stop - start,
                                 stream);
    }
    if (NULL == to->place.layout) {
        memcpy(in_expected(to), stream, stop - start);
    } else {
        opal_iov_cache_form_unpack(to->place.layout->form, in_expected(to), start, stop - start,
                                   stream);
    }
    free(stream);
}

bool test_end_good(const test_end_t *end)
{
    unsigned char *seen = malloc(end->bytes);
    size_t i;

    CHECK(NULL != seen);
    if (is_host(end->kind)) {
        memcpy(seen, end->memory, end->bytes);
    } else {
        OK(cuMemcpyDtoH_v2(seen, (CUdeviceptr) (uintptr_t) end->memory, end->bytes));
    }
    i = 0 == memcmp(seen, end->expected, end->bytes) ? end->bytes : 0;
    while (i < end->bytes && seen[i] == end->expected[i]) {
        ++i;
    }
    if (i < end->bytes) {
        fprintf(stderr, "byte %zu of %zu, kind %d: %02x, not %02x\n", i, end->bytes,
                (int) end->kind, seen[i], end->expected[i]);
    }
    free(seen);
    return i == end->bytes;
}

opal_iov_cache_layout_t *test_blocks(uint64_t n, uint64_t length, uint64_t stride, bool random)
{
    opal_iov_cache_iov_t *pieces = malloc(n * sizeof(*pieces));
    opal_iov_cache_layout_t *layout;
    opal_iov_cache_form_t *form;
    uint64_t i, k;

    CHECK(NULL != pieces);
    for (i = 0; i < n; ++i) {
        pieces[i].offset = (int64_t) (i * stride);
        pieces[i].length = length;
    }
    for (i = 0; random && i < n; ++i) {
        const opal_iov_cache_iov_t swapped = pieces[i];

        k = typegen_below(&test_dice, n);
        pieces[i] = pieces[k];
        pieces[k] = swapped;
    }
    CHECK(OPAL_SUCCESS == opal_iov_cache_form_of_pieces(pieces, n, &form));
    CHECK(OPAL_SUCCESS == opal_iov_cache_layout_of_form(form, &layout));
    free(pieces);
    return layout;
}

/* Blocks of one size, on both sides, which random types seldom have. */
static void regular_layouts(opal_iov_cache_layout_t *layouts[2])
{
    const uint64_t length = (1 + typegen_below(&test_dice, 12)) << typegen_below(&test_dice, 7);
    const uint64_t n = 1 + typegen_below(&test_dice, 60);
    const uint64_t factor = typegen_once_in(&test_dice, 2) ? 1 : 1 + typegen_below(&test_dice, 3);

    layouts[0] = test_blocks(n * factor, length, length + 8 * typegen_below(&test_dice, 9),
                             typegen_once_in(&test_dice, 3));
    layouts[1] = test_blocks(n, length * factor, length * factor + typegen_below(&test_dice, 99),
                             typegen_once_in(&test_dice, 3));
    snprintf(test_doing, sizeof(test_doing), "%llu times %llu blocks of %llu",
             (unsigned long long) n, (unsigned long long) factor, (unsigned long long) length);
}

void test_layouts(opal_iov_cache_layout_t *layouts[2])
{
    typegen_options_t options = TYPEGEN_OPTIONS_DEFAULT;
    typegen_side_t sides[2];
    int i;

    if (typegen_once_in(&test_dice, 3)) {
        regular_layouts(layouts);
        return;
    }
    options.max_depth = (int) typegen_below(&test_dice, 6);
    options.max_elements = typegen_once_in(&test_dice, 20) ? 4000 : 300;
    options.max_span = 64 * 1024;
    typegen_pair(&test_dice, &options, &sides[0], &sides[1]);
    snprintf(test_doing, sizeof(test_doing), "%s and %s", sides[0].description,
             sides[1].description);
    for (i = 0; i < 2; ++i) {
        CHECK(OPAL_SUCCESS
              == opal_iov_cache_layout_create(opal_type(sides[i].type), (size_t) sides[i].count,
                                              &layouts[i]));
        typegen_side_free(&sides[i]);
    }
}

void test_range(uint64_t size, uint64_t *start, uint64_t *stop)
{
    *start = typegen_once_in(&test_dice, 2) ? 0 : typegen_below(&test_dice, size);
    *stop = typegen_once_in(&test_dice, 2) ? size
                                           : *start + typegen_below(&test_dice, size - *start + 1);
}

opal_umrddt_gpu_engine_t *test_engine_for(const test_end_t *from, const test_end_t *to)
{
    const test_end_t *ends[2] = {from, to};
    opal_umrddt_gpu_engine_t *engine = NULL;
    opal_umrddt_gpu_memory_t none;
    int i = (int) typegen_below(&test_dice, 2);

    /* Memory of a device first, then what a device can reach. */
    i = OPAL_UMRDDT_GPU_HOST == ends[i]->is.kind ? 1 - i : i;
    i = OPAL_UMRDDT_GPU_PINNED == ends[i]->is.kind && OPAL_UMRDDT_GPU_HOST != ends[1 - i]->is.kind
            ? 1 - i
            : i;
    if (OPAL_UMRDDT_GPU_HOST == ends[i]->is.kind) {
        memset(&none, 0, sizeof(none));
        CHECK(OPAL_ERR_NOT_AVAILABLE == opal_umrddt_gpu_engine_get(&ends[i]->is, &engine));
        CHECK(NULL == engine);
        none.kind = OPAL_UMRDDT_GPU_DEVICE;
        CHECK(OPAL_SUCCESS == opal_umrddt_gpu_engine_get(&none, &engine));
    } else {
        CHECK(OPAL_SUCCESS == opal_umrddt_gpu_engine_get(&ends[i]->is, &engine));
        CHECK(NULL == ends[i]->is.ctx || ends[i]->is.ctx == opal_umrddt_gpu_engine_context(engine));
    }
    return engine;
}

opal_umrddt_gpu_engine_stats_t test_stats(void)
{
    opal_umrddt_gpu_engine_stats_t stats;

    opal_umrddt_gpu_engine_stats(&stats);
    return stats;
}

opal_umrddt_gpu_engine_params_t test_params(int how, int scheme)
{
    opal_umrddt_gpu_engine_params_t params = {.how = how,
                                              .scheme = scheme,
                                              .shape_cache = (size_t) 16 << 20,
                                              .staging = (size_t) 1 << 20,
                                              .staging_chunk = 4096,
                                              .graphs = 64};

    opal_umrddt_gpu_engine_params(&params);
    return params;
}
