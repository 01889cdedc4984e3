/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Flattened layouts. A decoded layout must keep every invariant, encode to the same bytes, and be
 * walked as by the HCA, the GPU and the packing without leaving its bounds.
 *
 * Input: 16 bytes that select positions, then the flattened layout.
 */

#include "opal_config.h"

#include "opal/constants.h"

#include "opal/datatype/iov_cache/iov_cache.h"

#include "fuzz.h"

/* Steps of a walk: a form of a few bytes can have 2^60 blocks. */
#define STEPS 300

/* Bytes that a layout may span to be packed. */
#define SPAN 65536

static uint64_t draw(fuzz_bytes_t *slots, uint64_t bound)
{
    return fuzz_number(slots, 4) * UINT64_C(0x9e3779b97f4a7c15) % bound;
}

static void check_run(const opal_iov_cache_form_t *form, const opal_iov_cache_run_t *run,
                      uint64_t at, uint64_t end)
{
    __int128 first = run->offset, last = first + (__int128) run->stride * (run->count - 1);

    FUZZ_CHECK(at == run->position && 0 < run->length && 0 < run->count);
    FUZZ_CHECK((__int128) run->length * run->count <= end - at);
    FUZZ_CHECK(form->lb <= first && first + (__int128) run->length <= form->ub);
    FUZZ_CHECK(form->lb <= last && last + (__int128) run->length <= form->ub);
}

static void walk(const opal_iov_cache_form_t *form, uint64_t start, uint64_t end)
{
    opal_iov_cache_cursor_t cursor;
    opal_iov_cache_run_t run;
    uint64_t at = start;

    opal_iov_cache_cursor_init(&cursor, form, start, end);
    for (int i = 0; i < STEPS && opal_iov_cache_cursor_next(&cursor, &run); ++i) {
        check_run(form, &run, at, end);
        FUZZ_CHECK(run.offset == opal_iov_cache_form_offset(form, at));
        at += run.length * run.count;
    }
}

static void walk_iovs(const opal_iov_cache_form_t *form, uint64_t start, uint64_t end)
{
    opal_iov_cache_iov_t iovs[16];
    uint64_t at = start, next = start;
    size_t count;

    for (int i = 0; i < STEPS / 16 && next < end; ++i) {
        const opal_iov_cache_iov_t *view =
            opal_iov_cache_form_view(form, next, end, iovs, 16, &count, &next);

        FUZZ_CHECK(0 < count);
        for (size_t j = 0; j < count; ++j) {
            FUZZ_CHECK(0 < view[j].length && view[j].length <= end - at);
            FUZZ_CHECK(form->lb <= view[j].offset
                       && (__int128) view[j].offset + view[j].length <= form->ub);
            at += view[j].length;
        }
        FUZZ_CHECK(at == next);
    }
}

static void walk_pairs(const opal_iov_cache_form_t *form, uint64_t start, uint64_t end)
{
    opal_iov_cache_pairs_t pairs;
    opal_iov_cache_pair_t pair;

    opal_iov_cache_pairs_init(&pairs, form, form, start, end);
    for (int i = 0; i < STEPS && opal_iov_cache_pairs_next(&pairs, &pair); ++i) {
        FUZZ_CHECK(start == pair.position && 0 < pair.length && 0 < pair.count);
        FUZZ_CHECK(pair.offset[0] == pair.offset[1]);
        FUZZ_CHECK((__int128) pair.length * pair.count <= end - start);
        start += pair.length * pair.count;
    }
}

/* Pieces of a layout for which a chunk is computed: that may need a step for each, and is never
 * done for a layout of another process. */
#define OWN_PIECES 100000

/* Windows, as keys are cut. */
static void cut(const opal_iov_cache_layout_t *layout, fuzz_bytes_t *slots, uint64_t start)
{
    opal_iov_cache_limits_t limits = {1 + fuzz_byte(slots), 1 + draw(slots, 1 << 20)};
    uint64_t chunk, agreed = draw(slots, layout->size) + 1;
    opal_iov_cache_window_t window;

    if (OWN_PIECES >= layout->iov_count) {
        chunk = opal_iov_cache_chunk(layout, &limits, layout->size);
        FUZZ_CHECK(0 < chunk && chunk <= layout->size);
        agreed = opal_iov_cache_agree(layout, &limits, layout->size, agreed, 4096);
        FUZZ_CHECK(0 < agreed);
    }
    for (int i = 0; i < STEPS / 8 && start < layout->size; ++i) {
        FUZZ_CHECK(OPAL_SUCCESS
                   == opal_iov_cache_window(layout, &limits, agreed, start, layout->size, &window));
        FUZZ_CHECK(start == window.start && 0 < window.length && window.length <= limits.max_bytes
                   && 0 < window.iov_count && window.iov_count <= limits.max_iovs
                   && window.length <= layout->size - start);
        start += window.length;
    }
}

/* True if addresses of a buffer and its parts are ones that a C program can have. (The CPU packs
 * this process's own layouts only.) */
static bool is_near(const opal_iov_cache_form_t *form)
{
    const int64_t far = INT64_C(1) << 40;
    bool near = true;

    for (size_t i = 0; i < form->term_count; ++i) {
        near = near && -far < form->terms[i].offset && far > form->terms[i].offset
               && -far < form->terms[i].stride && far > form->terms[i].stride;
    }
    for (size_t i = 0; i < form->block_count; ++i) {
        near = near && -far < form->blocks[i].offset && far > form->blocks[i].offset;
    }
    return near;
}

/* In memory of exactly the size of the layout. */
static void pack(const opal_iov_cache_form_t *form, uint64_t start)
{
    uint64_t span = (uint64_t) form->ub - (uint64_t) form->lb, length = form->size - start;
    unsigned char *memory, *stream;

    if (SPAN < span || SPAN < form->size || !is_near(form)) {
        return;
    }
    memory = calloc(1, span);
    stream = malloc(length);
    FUZZ_CHECK(NULL != memory && NULL != stream);
    /* the address that offsets count from need not be one of the memory's */
    FUZZ_CHECK(length
               == opal_iov_cache_form_unpack(form,
                                             (void *) ((uintptr_t) memory - (uint64_t) form->lb),
                                             start, length, memset(stream, 0xa5, length)));
    FUZZ_CHECK(length
               == opal_iov_cache_form_pack(form,
                                           (void *) ((uintptr_t) memory - (uint64_t) form->lb),
                                           start, length, memset(stream, 0, length)));
    for (uint64_t i = 0; i < length; ++i) {
        FUZZ_CHECK(0xa5 == stream[i]);
    }
    free(stream);
    free(memory);
}

static void ask(const opal_iov_cache_form_t *form, fuzz_bytes_t *slots)
{
    opal_iov_cache_form_t *sorted;
    uint64_t at, segment;

    (void) opal_iov_cache_form_hash(form);
    (void) opal_iov_cache_form_key(form);
    (void) opal_iov_cache_form_density(form);
    FUZZ_CHECK(opal_iov_cache_form_equal(form, form));
    for (int i = 0; i < 4; ++i) {
        at = draw(slots, form->size);
        segment = opal_iov_cache_form_segment_at(form, at);
        FUZZ_CHECK(segment < form->segments
                   && opal_iov_cache_form_segment_start(form, segment) <= at
                   && at < opal_iov_cache_form_segment_start(form, segment + 1));
    }
    if (OPAL_SUCCESS == opal_iov_cache_form_sorted(form, &sorted)) {
        FUZZ_CHECK(NULL == opal_iov_cache_form_check(sorted) && sorted->size == form->size
                   && sorted->lb == form->lb && sorted->ub == form->ub);
        opal_iov_cache_form_free(sorted);
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void) argc;
    (void) argv;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t chosen[16] = {0};
    fuzz_bytes_t input = {data, size}, slots = {chosen, sizeof(chosen)};
    opal_iov_cache_layout_t *layout;
    opal_iov_cache_form_t *form;
    unsigned char *again;

    for (size_t i = 0; i < sizeof(chosen); ++i) {
        chosen[i] = fuzz_byte(&input);
    }
    if (OPAL_SUCCESS != opal_iov_cache_form_unflatten(input.at, input.left, &form)) {
        return 0;
    }
    FUZZ_CHECK(NULL == opal_iov_cache_form_check(form));
    FUZZ_CHECK(opal_iov_cache_form_bytes(form) <= 4096 + 128 * input.left);
    again = malloc(input.left);
    FUZZ_CHECK(NULL != again);
    FUZZ_CHECK(input.left == opal_iov_cache_form_flatten(form, again, input.left)
               && 0 == memcmp(again, input.at, input.left));
    free(again);
    FUZZ_CHECK(OPAL_SUCCESS == opal_iov_cache_layout_of_form(form, &layout));
    if (0 < layout->size) {
        uint64_t start = draw(&slots, layout->size);
        uint64_t end = start + 1 + draw(&slots, layout->size - start);

        walk(layout->form, start, end);
        walk_iovs(layout->form, start, end);
        walk_pairs(layout->form, start, end);
        cut(layout, &slots, start);
        pack(layout->form, start);
        ask(layout->form, &slots);
    }
    OBJ_RELEASE(layout);
    return 0;
}
