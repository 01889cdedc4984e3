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
 * The GPU's kernels, compiled for the host, on random nested datatypes: every scheme that can do
 * the type, as pack, unpack and from layout to layout, for random ranges and alignments, against
 * what the layouts' own pack and unpack do in system memory. Bytes between blocks and around
 * buffers must stay, each byte must be copied once, and no access may be misaligned. With
 * UMRDDT_TEST_GPU=real the kernels of the device do it, in memory of the device, each buffer an
 * allocation of its own; that each byte went once is not known then, nor how it went.
 *
 *     random_kernels [count [seed]]
 *     random_kernels --names
 *
 * Type i has seed + i, so "random_kernels 1 S" replays one. A run of the default count must have
 * used every kernel there is.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/datatype/singleton.h"

#include "opal/constants.h"

#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_batch.h"
#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_host.h"
#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_map.h"
#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_plan.h"
#include "test/common/typegen.h"

#include "real.h"

#if !defined(DEFAULT_COUNT)
#define DEFAULT_COUNT 3000
#define ALL_KERNELS   1
#else
#define ALL_KERNELS 0
#endif
#define DEFAULT_SEED 20261122
#define MAX_FAILURES 10
#define MAX_LIST     (1 << 20)
#define GUARD        32

static int failures;
static uint64_t current_seed;
static const char *current_type[2] = {"", ""};
static typegen_rng_t dice;
static real_gpu_t the_gpu;
static const real_gpu_t *gpu; /* NULL: the kernels' host forms */
static uint64_t used[UMRDDT_GPU_KERNEL_COUNT];
static uint64_t launches;

#define CHECK(CONDITION, ...)                                                               \
    do {                                                                                    \
        if (!(CONDITION)) {                                                                 \
            fprintf(stderr, "FAILED: random_kernels 1 %" PRIu64 ": %s\n    type: %s\n    ", \
                    current_seed, #CONDITION, current_type[0]);                             \
            fprintf(stderr, "and: %s\n    ", current_type[1]);                              \
            fprintf(stderr, __VA_ARGS__);                                                   \
            fprintf(stderr, "\n");                                                          \
            ++failures;                                                                     \
            return false;                                                                   \
        }                                                                                   \
    } while (0)

/* A layout, its memory, and what has become of both on the "device". */
typedef struct {
    opal_iov_cache_form_t *form;
    opal_umrddt_gpu_map_t *map;
    uint64_t *list;          /* where the list is, if it is not to travel */
    unsigned char *memory;   /* as large as the span, guards, and room to shift it */
    unsigned char *expected; /* what it must look like in the end */
    unsigned char *address;  /* of the buffer, in memory */
    size_t bytes;
    real_mirror_t on_gpu, list_on_gpu; /* of memory and list */
} place_t;

/* An end of a copy, as the host sees it, and what the GPU has of it. */
typedef struct {
    opal_umrddt_gpu_end_t host;
    const real_mirror_t *memory, *list;
} end_t;

static unsigned char *in_expected(const place_t *place)
{
    return place->expected + (place->address - place->memory);
}

/* Memory for a form, which becomes the place's. */
static void place_make(opal_iov_cache_form_t *form, place_t *place)
{
    size_t i;

    memset(place, 0, sizeof(*place));
    place->form = form;
    place->bytes = (size_t) (form->ub - form->lb) + 2 * GUARD;
    place->memory = malloc(place->bytes);
    place->expected = malloc(place->bytes);
    /* so that offset 0 is at any place from an aligned address */
    place->address = place->memory + GUARD / 2 + typegen_below(&dice, GUARD / 2) - form->lb;
    if (typegen_once_in(&dice, 2)) {
        place->address -= (uintptr_t) place->address & 15;
    }
    for (i = 0; i < place->bytes; ++i) {
        place->memory[i] = (unsigned char) typegen_next(&dice);
    }
    memcpy(place->expected, place->memory, place->bytes);
    if (NULL != gpu) {
        real_mirror(gpu, place->memory, place->bytes, &place->on_gpu);
    }
}

/* Give a place the map of a scheme, and now and then its list. @return false if it cannot be */
static bool place_map(place_t *place, opal_umrddt_gpu_scheme_t scheme)
{
    int rc = opal_umrddt_gpu_map_create(place->form, scheme, MAX_LIST, &place->map);

    if (OPAL_SUCCESS != rc) {
        if (OPAL_ERR_NOT_SUPPORTED != rc || OPAL_UMRDDT_GPU_AUTO == scheme
            || (OPAL_UMRDDT_GPU_TRANSFORM <= scheme && OPAL_UMRDDT_GPU_TEAMS >= scheme)
            || OPAL_UMRDDT_GPU_TREE == scheme) {
            fprintf(stderr, "FAILED: random_kernels 1 %" PRIu64 ": %s: map: %d\n", current_seed,
                    opal_umrddt_gpu_scheme_name(scheme), rc);
            ++failures;
        }
        return false;
    }
    place->list = malloc(0 == place->map->list_bytes ? 1 : place->map->list_bytes);
    if (0 < place->map->list_bytes) {
        memcpy(place->list, place->map->list, place->map->list_bytes);
    }
    if (NULL != gpu) {
        real_mirror(gpu, place->list, place->map->list_bytes, &place->list_on_gpu);
        real_upload(gpu, &place->list_on_gpu);
    }
    return true;
}

static void place_unmap(place_t *place)
{
    opal_umrddt_gpu_map_free(place->map);
    real_unmirror(gpu, &place->list_on_gpu);
    free(place->list);
    place->map = NULL;
    place->list = NULL;
}

static void place_free(place_t *place)
{
    place_unmap(place);
    opal_iov_cache_form_free(place->form);
    real_unmirror(gpu, &place->on_gpu);
    free(place->memory);
    free(place->expected);
}

static void draw_range(uint64_t size, uint64_t *start, uint64_t *end)
{
    *start = typegen_once_in(&dice, 3) ? 0 : typegen_below(&dice, size);
    *end = typegen_once_in(&dice, 3) ? size : *start + typegen_below(&dice, size - *start + 1);
}

static void draw_fit(opal_umrddt_gpu_fit_t *fit)
{
    const opal_umrddt_gpu_fit_t plain = OPAL_UMRDDT_GPU_FIT_DEFAULT(132);

    *fit = plain;
    fit->processors = 1 + (uint32_t) typegen_below(&dice, 8);
    fit->blocks = 1 + (uint32_t) typegen_below(&dice, 2);
    fit->packed = 1 + (uint32_t) typegen_below(&dice, 2);
    fit->threads = 32u << typegen_below(&dice, 4);
    fit->ragged_width = 1u << typegen_below(&dice, 5);
    fit->ragged_length = (uint32_t) typegen_below(&dice, 100);
    fit->wide = typegen_once_in(&dice, 2);
}

/* On the GPU, what is on the host. */
static opal_umrddt_gpu_end_t end_on_gpu(const end_t *end)
{
    opal_umrddt_gpu_end_t there = end->host;

    there.address += end->memory->device - (uint64_t) (uintptr_t) end->memory->host;
    if (0 != there.list) {
        there.list = end->list->device;
    }
    return there;
}

/* The end for a part of a range. */
static opal_umrddt_gpu_end_t end_from(const opal_umrddt_gpu_end_t *end, uint64_t bytes)
{
    opal_umrddt_gpu_end_t part = *end;

    part.address += NULL == end->map ? bytes : 0;
    return part;
}

/* The range in pieces, as a batch. @return false if a list that is needed is not on the device */
static bool plan_batch(const opal_umrddt_gpu_end_t *source, const opal_umrddt_gpu_end_t *target,
                       uint64_t start, uint64_t end, const opal_umrddt_gpu_fit_t *fit,
                       opal_umrddt_gpu_plan_t *plan)
{
    const uint64_t most = 1 + typegen_below(&dice, 6);
    opal_umrddt_gpu_batch_t batch;
    opal_umrddt_gpu_part_t part;
    uint64_t at, stop;

    opal_umrddt_gpu_batch_begin(&batch);
    for (at = start; at < end; at = stop) {
        const opal_umrddt_gpu_end_t from = end_from(source, at - start);
        const opal_umrddt_gpu_end_t to = end_from(target, at - start);

        stop = batch.args.n + 1 >= most ? end : at + 1 + typegen_below(&dice, end - at);
        if (OPAL_SUCCESS != opal_umrddt_gpu_part_plan(&from, &to, at, stop, fit, &part)
            || !opal_umrddt_gpu_batch_add(&batch, &part)) {
            return false;
        }
    }
    memset(plan, 0, sizeof(*plan));
    plan->kernel = batch.kernel;
    plan->grid[0] = batch.blocks;
    plan->grid[1] = plan->grid[2] = 1;
    plan->block[0] = fit->threads;
    plan->block[1] = plan->block[2] = 1;
    plan->args_bytes = sizeof(batch.args);
    memcpy(&plan->args, &batch.args, sizeof(batch.args));
    return true;
}

/* A launch for the range: of its own, or now and then a batch. */
static int plan_some(const opal_umrddt_gpu_end_t *source, const opal_umrddt_gpu_end_t *target,
                     uint64_t start, uint64_t end, const opal_umrddt_gpu_fit_t *fit,
                     opal_umrddt_gpu_plan_t *plan)
{
    if (start < end && typegen_once_in(&dice, 3)
        && plan_batch(source, target, start, end, fit, plan)) {
        return OPAL_SUCCESS;
    }
    return opal_umrddt_gpu_plan(source, target, start, end, fit, plan);
}

/* Plan and launch on the GPU. */
static bool copy_on_gpu(const end_t *source, const end_t *target, uint64_t start, uint64_t end)
{
    const opal_umrddt_gpu_end_t from = end_on_gpu(source), to = end_on_gpu(target);
    opal_umrddt_gpu_plan_t plan;
    opal_umrddt_gpu_fit_t fit;
    int rc;

    draw_fit(&fit);
    rc = plan_some(&from, &to, start, end, &fit, &plan);
    CHECK(OPAL_SUCCESS == rc, "plan: %d", rc);
    if (start == end) {
        return true;
    }
    real_upload(gpu, source->memory);
    real_upload(gpu, target->memory);
    real_launch(gpu, &plan, NULL);
    real_check(gpu, gpu->driver->cuCtxSynchronize(), opal_umrddt_gpu_kernel_name(plan.kernel));
    real_download(gpu, source->memory);
    real_download(gpu, target->memory);
    ++used[plan.kernel];
    ++launches;
    return true;
}

/* Plan, launch, and see to it that each byte went once. */
static bool copy_on_host(const opal_umrddt_gpu_end_t *source, const opal_umrddt_gpu_end_t *target,
                         uint64_t start, uint64_t end)
{
    umrddt_gpu_counts_t counts = {{0}, 0};
    opal_umrddt_gpu_plan_t plan;
    opal_umrddt_gpu_fit_t fit;
    uint64_t bytes = 0;
    int i, rc;

    draw_fit(&fit);
    memset(&plan, 0x5a, sizeof(plan));
    rc = plan_some(source, target, start, end, &fit, &plan);
    CHECK(OPAL_SUCCESS == rc, "plan: %d", rc);
    if (start == end) {
        CHECK(0 == plan.grid[0], "a launch for nothing");
        return true;
    }
    CHECK(UMRDDT_GPU_KERNEL_COUNT > plan.kernel, "kernel %d", (int) plan.kernel);
    CHECK(umrddt_gpu_host_kernels[plan.kernel].args_bytes == plan.args_bytes, "argument of %s",
          opal_umrddt_gpu_kernel_name(plan.kernel));
    CHECK(0 < plan.grid[0] && 0 < plan.grid[1] && 0 < plan.grid[2] && 65535 >= plan.grid[1]
              && 65535 >= plan.grid[2] && 64 >= plan.block[2]
              && fit.threads >= plan.block[0] * plan.block[1] * plan.block[2],
          "%u %u %u blocks of %u %u %u", plan.grid[0], plan.grid[1], plan.grid[2], plan.block[0],
          plan.block[1], plan.block[2]);
    umrddt_gpu_host_launch(&umrddt_gpu_host_kernels[plan.kernel], plan.grid, plan.block, &plan.args,
                           &counts);
    for (i = 0; i < 5; ++i) {
        bytes += counts.accesses[i] << i;
    }
    CHECK(bytes == end - start, "%s copied %" PRIu64 " bytes of [%" PRIu64 ", %" PRIu64 ")",
          opal_umrddt_gpu_kernel_name(plan.kernel), bytes, start, end);
    CHECK(0 == counts.misaligned, "%s: %" PRIu64 " misaligned",
          opal_umrddt_gpu_kernel_name(plan.kernel), counts.misaligned);
    ++used[plan.kernel];
    ++launches;
    return true;
}

static bool copy(const end_t *source, const end_t *target, uint64_t start, uint64_t end)
{
    return NULL != gpu ? copy_on_gpu(source, target, start, end)
                       : copy_on_host(&source->host, &target->host, start, end);
}

/* The end of a place; its list travels if it may and can. */
static end_t end_of(const place_t *place, bool travels)
{
    end_t end = {.host = {.map = place->map,
                          .address = (uint64_t) (uintptr_t) place->address,
                          .list = (uint64_t) (uintptr_t) place->list},
                 .memory = &place->on_gpu,
                 .list = &place->list_on_gpu};

    if (travels && 3072 >= place->map->list_bytes && typegen_once_in(&dice, 2)) {
        end.host.list = 0;
    }
    return end;
}

/* Pack a range, and unpack another stream into it. */
static bool check_stream(place_t *place, opal_umrddt_gpu_scheme_t scheme)
{
    real_mirror_t on_gpu = {.device = 0};
    end_t layout, packed = {.host = {.map = NULL}, .memory = &on_gpu};
    unsigned char *stream, *expected, *at;
    uint64_t start, end, i;
    size_t bytes;
    bool good;

    draw_range(place->form->size, &start, &end);
    bytes = (size_t) (end - start) + 2 * GUARD;
    stream = malloc(bytes);
    expected = malloc(bytes);
    if (NULL != gpu) {
        real_mirror(gpu, stream, bytes, &on_gpu);
    }
    for (i = 0; i < bytes; ++i) {
        stream[i] = (unsigned char) typegen_next(&dice);
    }
    memcpy(expected, stream, bytes);
    at = stream + typegen_below(&dice, GUARD);
    if (typegen_once_in(&dice, 2)) {
        /* aligned as the stream is, were it all there */
        at = stream + GUARD;
        at -= ((uintptr_t) at - start) & 15;
    }
    packed.host.address = (uint64_t) (uintptr_t) at;
    layout = end_of(place, true);
    opal_iov_cache_form_pack(place->form, place->address, start, end - start,
                             expected + (at - stream));
    good = copy(&layout, &packed, start, end);
    CHECK(good && 0 == memcmp(stream, expected, bytes), "pack of [%" PRIu64 ", %" PRIu64 ") as %s",
          start, end, opal_umrddt_gpu_scheme_name(scheme));
    CHECK(0 == memcmp(place->memory, place->expected, place->bytes), "pack wrote to its source");

    for (i = 0; i < bytes; ++i) {
        stream[i] = (unsigned char) typegen_next(&dice);
    }
    layout = end_of(place, true);
    opal_iov_cache_form_unpack(place->form, in_expected(place), start, end - start, at);
    good = copy(&packed, &layout, start, end);
    CHECK(good && 0 == memcmp(place->memory, place->expected, place->bytes),
          "unpack of [%" PRIu64 ", %" PRIu64 ") as %s", start, end,
          opal_umrddt_gpu_scheme_name(scheme));
    real_unmirror(gpu, &on_gpu);
    free(stream);
    free(expected);
    return true;
}

/* From one layout to another, of any two schemes. */
static bool check_fused(place_t places[2], opal_umrddt_gpu_scheme_t from,
                        opal_umrddt_gpu_scheme_t to)
{
    end_t ends[2];
    unsigned char *stream;
    uint64_t start, end, i;
    bool good;

    for (i = 0; i < places[0].bytes; ++i) {
        places[0].memory[i] = (unsigned char) typegen_next(&dice);
    }
    memcpy(places[0].expected, places[0].memory, places[0].bytes);
    draw_range(places[0].form->size, &start, &end);
    stream = malloc((size_t) (end - start) + 1);
    opal_iov_cache_form_pack(places[0].form, places[0].address, start, end - start, stream);
    opal_iov_cache_form_unpack(places[1].form, in_expected(&places[1]), start, end - start, stream);
    free(stream);
    ends[0] = end_of(&places[0], false);
    ends[1] = end_of(&places[1], false);
    good = copy(&ends[0], &ends[1], start, end);
    CHECK(good && 0 == memcmp(places[1].memory, places[1].expected, places[1].bytes),
          "[%" PRIu64 ", %" PRIu64 ") from %s to %s", start, end, opal_umrddt_gpu_scheme_name(from),
          opal_umrddt_gpu_scheme_name(to));
    CHECK(0 == memcmp(places[0].memory, places[0].expected, places[0].bytes),
          "the source was written to");
    return true;
}

/* Everything that can be done with two layouts of one size. */
static bool check_forms(opal_iov_cache_form_t *forms[2])
{
    opal_umrddt_gpu_scheme_t scheme, other;
    place_t places[2];
    bool good = true;
    int i, k;

    for (i = 0; i < 2; ++i) {
        place_make(forms[i], &places[i]);
    }
    for (scheme = 0; good && OPAL_UMRDDT_GPU_SCHEMES > scheme; ++scheme) {
        for (i = 0; good && i < 2; ++i) {
            if (place_map(&places[i], scheme)) {
                good = check_stream(&places[i], scheme);
            }
            place_unmap(&places[i]);
        }
    }
    for (k = 0; good && k < 8; ++k) {
        scheme = typegen_below(&dice, OPAL_UMRDDT_GPU_SCHEMES);
        other = typegen_below(&dice, OPAL_UMRDDT_GPU_SCHEMES);
        if (place_map(&places[0], scheme) && place_map(&places[1], other)) {
            good = check_fused(places, scheme, other);
        }
        place_unmap(&places[0]);
        place_unmap(&places[1]);
    }
    for (i = 0; i < 2; ++i) {
        place_free(&places[i]);
    }
    return good;
}

/* Blocks of one length, which random types seldom have on both sides: `planes` times `rows` of
 * them at distances that repeat, or at distances that do not. */
static bool make_regular(uint64_t length, uint64_t planes, uint64_t rows,
                         opal_iov_cache_form_t **form)
{
    opal_iov_cache_iov_t *pieces = malloc(planes * rows * sizeof(*pieces));
    const bool irregular = typegen_once_in(&dice, 2);
    const uint64_t grain = 1u << typegen_below(&dice, 5);
    const uint64_t gap = grain * (1 + typegen_below(&dice, 4));
    const uint64_t behind = grain * typegen_below(&dice, 4);
    int64_t at = (int64_t) (grain * typegen_below(&dice, 16)) - (int64_t) (grain * 8);
    uint64_t i, k, n = 0;
    int rc;

    for (i = 0; i < planes; ++i) {
        for (k = 0; k < rows; ++k, ++n) {
            pieces[n].offset = at;
            pieces[n].length = length;
            at += (int64_t) (length + gap);
            if (irregular) {
                at += (int64_t) (grain * typegen_below(&dice, 8));
            }
        }
        at += (int64_t) behind;
    }
    for (i = 0; irregular && i < n; ++i) {
        const opal_iov_cache_iov_t swapped = pieces[i];

        k = typegen_below(&dice, n);
        pieces[i] = pieces[k];
        pieces[k] = swapped;
    }
    rc = opal_iov_cache_form_of_pieces(pieces, n, form);
    free(pieces);
    CHECK(OPAL_SUCCESS == rc, "form of pieces: %d", rc);
    return true;
}

static bool check_regular(void)
{
    const uint64_t length = (1 + typegen_below(&dice, 12)) << typegen_below(&dice, 5);
    const uint64_t factor = 1 + typegen_below(&dice, 4);
    const uint64_t planes = 1 + typegen_below(&dice, 6), rows = 1 + typegen_below(&dice, 20);
    opal_iov_cache_form_t *forms[2];

    current_type[0] = "regular";
    current_type[1] = "regular";
    return make_regular(length, planes * factor, rows, &forms[0])
           && make_regular(length * factor, rows, planes, &forms[1]) && check_forms(forms);
}

static bool check_types(void)
{
    typegen_options_t options = TYPEGEN_OPTIONS_DEFAULT;
    opal_iov_cache_form_t *forms[2];
    typegen_side_t sides[2];
    bool good;
    int i;

    options.max_depth = (int) typegen_below(&dice, 6);
    options.max_elements = typegen_once_in(&dice, 20) ? 4000 : 300;
    options.max_span = 64 * 1024;
    typegen_pair(&dice, &options, &sides[0], &sides[1]);
    for (i = 0; i < 2; ++i) {
        current_type[i] = sides[i].description;
        CHECK(OPAL_SUCCESS
                  == opal_iov_cache_form_create(opal_type(sides[i].type), (size_t) sides[i].count,
                                                &forms[i]),
              "form %d", i);
    }
    good = check_forms(forms);
    for (i = 0; i < 2; ++i) {
        typegen_side_free(&sides[i]);
    }
    return good;
}

static void check_seed(uint64_t seed)
{
    current_seed = seed;
    typegen_seed(&dice, seed);
    if (typegen_once_in(&dice, 3)) {
        check_regular();
    } else {
        check_types();
    }
}

/* Kernels that no type needed. */
static int unused_kernels(void)
{
    int i, unused = 0;

    for (i = 0; i < UMRDDT_GPU_KERNEL_COUNT; ++i) {
        if (0 == used[i]) {
            fprintf(stderr, "FAILED: no type used %s\n",
                    opal_umrddt_gpu_kernel_name((umrddt_gpu_kernel_id_t) i));
            ++unused;
        }
    }
    return unused;
}

static int print_names(void)
{
    int i;

    for (i = 0; i < UMRDDT_GPU_KERNEL_COUNT; ++i) {
        printf("%s\n", opal_umrddt_gpu_kernel_name((umrddt_gpu_kernel_id_t) i));
    }
    return 0;
}

int main(int argc, char **argv)
{
    uint64_t count = 1 < argc ? strtoull(argv[1], NULL, 0) : DEFAULT_COUNT, i;
    uint64_t seed = 2 < argc ? strtoull(argv[2], NULL, 0) : DEFAULT_SEED;

    if (1 < argc && 0 == strcmp(argv[1], "--names")) {
        return print_names();
    }
    singleton_init(MPI_THREAD_SINGLE);
    if (real_wanted()) {
        real_begin(0, &the_gpu);
        gpu = &the_gpu;
        printf("random_kernels: on %s\n", gpu->name);
    }
    printf("random_kernels: %" PRIu64 " types from seed %" PRIu64 "\n", count, seed);
    for (i = 0; i < count && failures < MAX_FAILURES; ++i) {
        check_seed(seed + i);
    }
    if (ALL_KERNELS && 1 >= argc) {
        failures += unused_kernels();
    }
    if (singleton_leaks()) {
        ++failures;
    }
    printf("random_kernels: %" PRIu64 " types, %" PRIu64 " launches, %d failures\n", i, launches,
           failures);
    MPI_Finalize();
    return 0 == failures && 0 < count ? 0 : 1;
}
