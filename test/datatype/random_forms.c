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
 * Forms of random nested datatypes, and everything that can be asked of a form, against two
 * oracles: the model that comes with the random type (worked out from the MPI standard), and what
 * opal_convertor_raw says.
 *
 *     random_forms [count [seed [elements]]]
 *
 * Type i has seed + i, so "random_forms 1 S" replays one. None has more elements than that (if it
 * is not given: 300, and 6000 for one in 40); small types are quicker, for very many of them.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "singleton.h"

#include "opal/constants.h"
#include "opal/datatype/opal_convertor.h"

#include "opal/datatype/iov_cache/iov_cache_form.h"
#include "test/common/typegen.h"

#if !defined(DEFAULT_COUNT)
#define DEFAULT_COUNT 4000 /* 12000 with "test/run --all" */
#endif
#define DEFAULT_SEED 20261121
#define MAX_FAILURES 10

/* Types that found something once, in long runs; checked first, unless a seed is given. */
static const uint64_t found_seeds[] = {
    1000162906, /* bytes that are touched 256 times */
};

typedef struct {
    opal_iov_cache_iov_t *iovs;
    uint64_t *starts; /* count + 1 of them */
    size_t count;
    size_t capacity;
    uint64_t size;
} segments_t;

static int failures;
static uint64_t current_seed;
static const char *current_type = "";
static typegen_rng_t dice;

#define CHECK(CONDITION, ...)                                                             \
    do {                                                                                  \
        if (!(CONDITION)) {                                                               \
            fprintf(stderr, "FAILED: random_forms 1 %" PRIu64 ": %s\n    type: %s\n    ", \
                    current_seed, #CONDITION, current_type);                              \
            fprintf(stderr, __VA_ARGS__);                                                 \
            fprintf(stderr, "\n");                                                        \
            ++failures;                                                                   \
            return false;                                                                 \
        }                                                                                 \
    } while (0)

/* ---------------------------------------------------------------------------------------------
 * The oracles
 * ------------------------------------------------------------------------------------------- */

static void segments_add(segments_t *segments, int64_t offset, uint64_t length)
{
    if (0 == length) {
        return;
    }
    segments->size += length;
    if (0 < segments->count) {
        opal_iov_cache_iov_t *last = &segments->iovs[segments->count - 1];

        if (last->offset + (int64_t) last->length == offset) {
            last->length += length;
            segments->starts[segments->count] += length;
            return;
        }
    }
    if (segments->count + 2 > segments->capacity) {
        segments->capacity = 2 * segments->capacity + 16;
        segments->iovs = realloc(segments->iovs, segments->capacity * sizeof(*segments->iovs));
        segments->starts =
            realloc(segments->starts, segments->capacity * sizeof(*segments->starts));
    }
    segments->iovs[segments->count].offset = offset;
    segments->iovs[segments->count].length = length;
    segments->starts[segments->count++] = segments->size - length;
    segments->starts[segments->count] = segments->size;
}

static void segments_free(segments_t *segments)
{
    free(segments->iovs);
    free(segments->starts);
    memset(segments, 0, sizeof(*segments));
}

static void segments_of_model(const typegen_side_t *side, segments_t *segments)
{
    size_t e;

    for (e = 0; e < side->element_count; ++e) {
        segments_add(segments, side->elements[e].offset, side->elements[e].length);
    }
}

static bool segments_of_raw(MPI_Datatype type, size_t count, segments_t *segments)
{
    opal_convertor_t *convertor = opal_convertor_create((int32_t) opal_local_arch, 0);
    struct iovec raw[7];
    uint32_t raw_count = 0, i;
    int32_t done = 0;

    opal_convertor_prepare_for_send(convertor, opal_type(type), count, NULL);
    while (0 == done && 0 < count && 0 < opal_type(type)->size) {
        size_t length = 0;

        raw_count = 1 + (uint32_t) typegen_below(&dice, 7);
        done = opal_convertor_raw(convertor, raw, &raw_count, &length);
        if (0 > done) {
            break;
        }
        for (i = 0; i < raw_count; ++i) {
            segments_add(segments, (int64_t) (intptr_t) raw[i].iov_base, raw[i].iov_len);
        }
    }
    OBJ_RELEASE(convertor);
    return 0 <= done;
}

/* ---------------------------------------------------------------------------------------------
 * What is checked
 * ------------------------------------------------------------------------------------------- */

/* Everything that a form says of itself, against its segments. */
static bool check_questions(const opal_iov_cache_form_t *form, const segments_t *segments)
{
    int64_t lowest = 0, highest = 0;
    const char *wrong = opal_iov_cache_form_check(form);
    uint64_t uniform = 0 < segments->count ? segments->iovs[0].length : 0;
    size_t i;

    CHECK(NULL == wrong, "%s", wrong);
    CHECK(form->size == segments->size, "%" PRIu64 ", not %" PRIu64, form->size, segments->size);
    CHECK(form->segments == segments->count, "%" PRIu64 " segments, not %zu", form->segments,
          segments->count);
    for (i = 0; i < segments->count; ++i) {
        const opal_iov_cache_iov_t *iov = &segments->iovs[i];
        uint64_t within = typegen_below(&dice, iov->length);

        CHECK(opal_iov_cache_form_segment_start(form, i) == segments->starts[i], "segment %zu", i);
        CHECK(opal_iov_cache_form_segment_at(form, segments->starts[i]) == i, "segment %zu", i);
        CHECK(opal_iov_cache_form_segment_at(form, segments->starts[i + 1] - 1) == i,
              "end of segment %zu", i);
        CHECK(opal_iov_cache_form_segment_at(form, segments->starts[i] + within) == i,
              "within segment %zu", i);
        CHECK(opal_iov_cache_form_offset(form, segments->starts[i] + within)
                  == iov->offset + (int64_t) within,
              "offset in segment %zu", i);
        uniform = uniform == iov->length ? uniform : 0;
        lowest = 0 == i || iov->offset < lowest ? iov->offset : lowest;
        highest = 0 == i || iov->offset + (int64_t) iov->length > highest
                      ? iov->offset + (int64_t) iov->length
                      : highest;
    }
    CHECK(opal_iov_cache_form_segment_start(form, segments->count) == segments->size, "the end");
    CHECK(0 == form->uniform || form->uniform == uniform, "uniform %" PRIu64 ", not %" PRIu64,
          form->uniform, uniform);
    CHECK(form->lb == lowest && form->ub == highest,
          "bounds %" PRId64 " %" PRId64 ", not %" PRId64 " %" PRId64, form->lb, form->ub, lowest,
          highest);
    return true;
}

/* The IOVs of a range, asked for a few at a time. */
static bool check_iovs(const opal_iov_cache_form_t *form, const segments_t *segments,
                       uint64_t start, uint64_t end)
{
    opal_iov_cache_iov_t iovs[13], room_of_view[13];
    const opal_iov_cache_iov_t *view;
    uint64_t position = start, next, next_of_view;
    size_t i = 0, k, n, n_of_view;

    while (i < segments->count && segments->starts[i + 1] <= start) {
        ++i;
    }
    for (;;) {
        size_t room = 1 + (size_t) typegen_below(&dice, 13);

        n = opal_iov_cache_form_iovs(form, position, end, iovs, room, &next);
        CHECK(n <= room, "%zu for %zu", n, room);
        view = opal_iov_cache_form_view(form, position, end, room_of_view, room, &n_of_view,
                                        &next_of_view);
        CHECK(n_of_view == n && next_of_view == next && 0 == memcmp(view, iovs, n * sizeof(*iovs)),
              "the view of [%" PRIu64 ", %" PRIu64 ") is another one", position, end);
        for (k = 0; k < n; ++k, ++i) {
            uint64_t skip, length;

            CHECK(i < segments->count, "IOV %zu is one too many", i);
            skip = start > segments->starts[i] ? start - segments->starts[i] : 0;
            length = segments->iovs[i].length - skip;
            if (length > end - (segments->starts[i] + skip)) {
                length = end - (segments->starts[i] + skip);
            }
            CHECK(iovs[k].offset == segments->iovs[i].offset + (int64_t) skip
                      && iovs[k].length == length,
                  "IOV %zu of [%" PRIu64 ", %" PRIu64 ") is %" PRId64 "+%" PRIu64 ", not %" PRId64
                  "+%" PRIu64,
                  i, start, end, iovs[k].offset, iovs[k].length,
                  segments->iovs[i].offset + (int64_t) skip, length);
            position += length;
        }
        CHECK(next == position, "next is %" PRIu64 ", not %" PRIu64, next, position);
        if (position == end || 0 == n) {
            break;
        }
    }
    CHECK(position == end, "[%" PRIu64 ", %" PRIu64 ") ended at %" PRIu64, start, end, position);
    return true;
}

static bool check_ranges(const opal_iov_cache_form_t *form, const segments_t *segments)
{
    int i;

    if (!check_iovs(form, segments, 0, form->size)) {
        return false;
    }
    for (i = 0; i < 6 && 0 < form->size; ++i) {
        uint64_t start = typegen_below(&dice, form->size);

        if (!check_iovs(form, segments, start,
                        start + 1 + typegen_below(&dice, form->size - start))) {
            return false;
        }
    }
    return true;
}

/* The same pieces one by one give the same form; other pieces do not. */
static bool check_equality(const opal_iov_cache_form_t *form, const segments_t *segments)
{
    opal_iov_cache_iov_t *pieces = malloc((2 * segments->count + 1) * sizeof(*pieces));
    opal_iov_cache_form_t *other;
    bool cut = typegen_once_in(&dice, 2);
    size_t i, n = 0, which;

    for (i = 0; i < segments->count; ++i) {
        const opal_iov_cache_iov_t *iov = &segments->iovs[i];
        uint64_t first = cut ? typegen_below(&dice, iov->length) : 0;

        pieces[n].offset = iov->offset;
        pieces[n++].length = first;
        pieces[n].offset = iov->offset + (int64_t) first;
        pieces[n++].length = iov->length - first;
    }
    CHECK(OPAL_SUCCESS == opal_iov_cache_form_of_pieces(pieces, n, &other), "pieces");
    if (!check_questions(other, segments)) {
        return false;
    }
    CHECK(opal_iov_cache_form_hash(form) == opal_iov_cache_form_hash(other),
          "the hash depends on the description");
    CHECK(opal_iov_cache_form_equal(form, other) && opal_iov_cache_form_equal(other, form),
          "not equal to its pieces");
    opal_iov_cache_form_free(other);

    if (0 < n) {
        which = 1 + 2 * (size_t) typegen_below(&dice, segments->count);
        pieces[which].offset += typegen_once_in(&dice, 2) ? 1 : -1;
        CHECK(OPAL_SUCCESS == opal_iov_cache_form_of_pieces(pieces, n, &other), "moved");
        CHECK(!opal_iov_cache_form_equal(form, other), "equal to a form with piece %zu moved",
              which);
        CHECK(opal_iov_cache_form_hash(form) != opal_iov_cache_form_hash(other),
              "the hash of a form with piece %zu moved", which);
        opal_iov_cache_form_free(other);
    }
    free(pieces);
    return true;
}

/* How often each byte is touched: where pieces overlap, that may be thousands of times. */
static uint32_t *count_bytes(const opal_iov_cache_form_t *form)
{
    uint32_t *counts = calloc((size_t) (form->ub - form->lb) + 1, sizeof(*counts));
    opal_iov_cache_cursor_t cursor;
    opal_iov_cache_run_t run;
    uint64_t i, k;

    opal_iov_cache_cursor_init(&cursor, form, 0, form->size);
    while (opal_iov_cache_cursor_next(&cursor, &run)) {
        for (i = 0; i < run.count; ++i) {
            for (k = 0; k < run.length; ++k) {
                ++counts[run.offset + (int64_t) i * run.stride + (int64_t) k - form->lb];
            }
        }
    }
    return counts;
}

/* Another order of the same bytes, and the same for any order. */
static bool check_sorted(const opal_iov_cache_form_t *form, const segments_t *segments,
                         bool overlapping)
{
    opal_iov_cache_form_t *sorted, *other, *other_sorted;
    opal_iov_cache_iov_t *pieces = malloc((segments->count + 1) * sizeof(*pieces));
    uint32_t *before, *after;
    const char *wrong;
    bool same;
    size_t i;

    CHECK(OPAL_SUCCESS == opal_iov_cache_form_sorted(form, &sorted), "no sorted form");
    wrong = opal_iov_cache_form_check(sorted);
    CHECK(NULL == wrong, "sorted: %s", wrong);
    CHECK(sorted->size == form->size && sorted->lb == form->lb && sorted->ub == form->ub,
          "the sorted form is another");
    before = count_bytes(form);
    after = count_bytes(sorted);
    same = 0 == memcmp(before, after, (size_t) (form->ub - form->lb) * sizeof(*before));
    CHECK(same, "the sorted form touches other bytes");
    free(before);
    free(after);

    for (i = 0; i < segments->count; ++i) {
        size_t from = segments->count - 1 - i;

        pieces[i].offset = segments->iovs[from].offset;
        pieces[i].length = segments->iovs[from].length;
    }
    CHECK(OPAL_SUCCESS == opal_iov_cache_form_of_pieces(pieces, segments->count, &other),
          "backwards");
    CHECK(OPAL_SUCCESS == opal_iov_cache_form_sorted(other, &other_sorted), "backwards, sorted");
    if (!overlapping && 0 < form->size) {
        CHECK(other_sorted->segments <= segments->count, "sorting made segments");
    }
    opal_iov_cache_form_free(other_sorted);
    opal_iov_cache_form_free(other);
    opal_iov_cache_form_free(sorted);
    free(pieces);
    return true;
}

/* MPI_Pack, for the whole; then ranges, cut anywhere, one after the other and at random. */
static bool check_pack(const opal_iov_cache_form_t *form, MPI_Datatype type, int count)
{
    size_t span = (size_t) (form->ub - form->lb), i;
    unsigned char *memory = malloc(span + 1), *again = malloc(span + 1);
    unsigned char *packed = malloc(form->size + 1), *part = malloc(form->size + 3);
    void *buffer = (void *) ((uintptr_t) memory - (uintptr_t) form->lb);
    void *copy = (void *) ((uintptr_t) again - (uintptr_t) form->lb);
    int size = 0, position = 0, tries;
    uint64_t start, length, done;

    for (i = 0; i < span; ++i) {
        memory[i] = typegen_pattern(current_seed, (int64_t) i);
    }
    MPI_Pack_size(count, type, MPI_COMM_SELF, &size);
    CHECK((uint64_t) size >= form->size, "MPI_Pack_size");
    MPI_Pack(buffer, count, type, packed, (int) form->size, &position, MPI_COMM_SELF);
    CHECK((uint64_t) position == form->size, "MPI_Pack gave %d bytes", position);

    memset(part, 0xee, form->size + 3);
    done = opal_iov_cache_form_pack(form, buffer, 0, UINT64_MAX, part + 1);
    CHECK(done == form->size, "%" PRIu64 " bytes packed", done);
    CHECK(0 == memcmp(packed, part + 1, form->size), "packed otherwise than by MPI");
    CHECK(0xee == part[0] && 0xee == part[form->size + 1], "written around the stream");

    /* one range after the other, there and back */
    memset(part, 0, form->size);
    for (start = 0; start < form->size; start += length) {
        length = 1 + typegen_below(&dice, typegen_once_in(&dice, 2) ? 9 : form->size);
        done = opal_iov_cache_form_pack(form, buffer, start, length, part + start);
        CHECK(done == (length < form->size - start ? length : form->size - start),
              "%" PRIu64 " bytes of [%" PRIu64 ", + %" PRIu64 ")", done, start, length);
    }
    CHECK(0 == memcmp(packed, part, form->size), "packed in ranges otherwise than at once");
    CHECK(0 == opal_iov_cache_form_pack(form, buffer, form->size, 5, part), "behind the end");

    for (i = 0; i < span; ++i) {
        again[i] = (unsigned char) ~memory[i];
    }
    for (start = 0; start < form->size; start += length) {
        length = 1 + typegen_below(&dice, typegen_once_in(&dice, 2) ? 9 : form->size);
        opal_iov_cache_form_unpack(form, copy, start, length, packed + start);
    }
    for (tries = 0; tries < 3 && 0 < form->size; ++tries) {
        start = typegen_below(&dice, form->size);
        length = 1 + typegen_below(&dice, form->size - start);
        memset(part, 0xee, form->size + 1);
        opal_iov_cache_form_pack(form, copy, start, length, part);
        CHECK(0 == memcmp(packed + start, part, length) && 0xee == part[length],
              "[%" PRIu64 ", + %" PRIu64 ")", start, length);
    }
    if (0 < form->size) {
        uint32_t *counts = count_bytes(form);

        for (i = 0; i < span; ++i) {
            CHECK(again[i] == (0 == counts[i] ? (unsigned char) ~memory[i] : memory[i]),
                  "offset %" PRId64 ", which is %s, after unpacking", form->lb + (int64_t) i,
                  0 == counts[i] ? "a gap" : "data");
        }
        free(counts);
    }
    free(memory);
    free(again);
    free(packed);
    free(part);
    return true;
}

/* There and back; then with bytes changed, bytes missing and bytes too many. */
static bool check_flat(const opal_iov_cache_form_t *form)
{
    size_t bytes = opal_iov_cache_form_flatten(form, NULL, 0), got;
    unsigned char *flat = malloc(bytes + 8), *bad = malloc(bytes + 8);
    opal_iov_cache_form_t *other = NULL;
    int tries;

    memset(flat, 0xee, bytes + 8);
    CHECK(bytes == opal_iov_cache_form_flatten(form, flat, bytes - 1), "too little room");
    CHECK(0xee == flat[0], "written into too little room");
    CHECK(bytes == opal_iov_cache_form_flatten(form, flat, bytes), "%zu bytes", bytes);
    CHECK(0xee == flat[bytes], "more written than said");
    CHECK(OPAL_SUCCESS == opal_iov_cache_form_unflatten(flat, bytes, &other), "unflatten");
    CHECK(opal_iov_cache_form_equal(form, other) && form->term_count == other->term_count
              && form->block_count == other->block_count
              && 0 == memcmp(form->terms, other->terms, form->term_count * sizeof(*form->terms))
              && form->depth == other->depth && form->uniform == other->uniform,
          "another form comes back");
    opal_iov_cache_form_free(other);
    CHECK(OPAL_SUCCESS != opal_iov_cache_form_unflatten(flat, bytes + 1, &other),
          "a byte too many");
    for (tries = 0; tries < 24; ++tries) {
        const char *wrong;
        int changes = 1 + (int) typegen_below(&dice, 3);

        memcpy(bad, flat, bytes);
        got = bytes;
        while (0 < changes--) {
            /* behind the version mostly, or nothing else would be tried */
            size_t at = (size_t) typegen_below(&dice, bytes);

            if (5 > at && !typegen_once_in(&dice, 8)) {
                continue;
            }
            bad[at] = (unsigned char) (typegen_once_in(&dice, 2) ? typegen_next(&dice)
                                                                 : bad[at] ^ 1u << (tries & 7));
        }
        if (typegen_once_in(&dice, 6)) {
            got = (size_t) typegen_below(&dice, bytes);
        }
        other = NULL;
        if (OPAL_SUCCESS != opal_iov_cache_form_unflatten(bad, got, &other)) {
            CHECK(NULL == other, "a form with an error");
            continue;
        }
        wrong = opal_iov_cache_form_check(other);
        CHECK(NULL == wrong, "changed bytes gave a form with wrong %s", wrong);
        if (0 < other->size) {
            uint64_t at = typegen_below(&dice, other->size), next;
            opal_iov_cache_iov_t iovs[4];
            uint64_t segment = opal_iov_cache_form_segment_at(other, at);

            CHECK(opal_iov_cache_form_segment_start(other, segment) <= at
                      && at < opal_iov_cache_form_segment_start(other, segment + 1),
                  "segment of a changed form");
            CHECK(0 < opal_iov_cache_form_iovs(other, at, other->size, iovs, 4, &next)
                      && iovs[0].offset == opal_iov_cache_form_offset(other, at),
                  "IOVs of a changed form");
        }
        opal_iov_cache_form_free(other);
    }
    free(flat);
    free(bad);
    return true;
}

static bool check_count(MPI_Datatype type, size_t count, const typegen_side_t *model)
{
    segments_t segments = {0};
    opal_iov_cache_form_t *form;
    bool good;
    int rc = opal_iov_cache_form_create(opal_type(type), count, &form);

    CHECK(OPAL_SUCCESS == rc, "count %zu gave %d", count, rc);
    if (NULL != model) {
        segments_of_model(model, &segments);
    } else {
        CHECK(segments_of_raw(type, count, &segments), "opal_convertor_raw failed");
    }
    good = check_questions(form, &segments) && check_ranges(form, &segments)
           && check_equality(form, &segments) && check_pack(form, type, (int) count)
           && check_flat(form)
           && (NULL == model || check_sorted(form, &segments, model->overlapping));
    segments_free(&segments);
    opal_iov_cache_form_free(form);
    return good;
}

/* Two layouts of one signature: each byte of the stream where the two models have it. */
static bool check_pairs(const typegen_options_t *options)
{
    opal_iov_cache_form_t *forms[2];
    opal_iov_cache_pairs_t pairs;
    opal_iov_cache_pair_t pair;
    typegen_side_t sides[2];
    uint64_t start, end, position, i, k;
    int64_t *where[2];
    bool good = true;
    int side;

    typegen_pair(&dice, options, &sides[0], &sides[1]);
    current_type = sides[0].description;
    for (side = 0; side < 2; ++side) {
        size_t e;
        uint64_t at = 0;

        CHECK(OPAL_SUCCESS
                  == opal_iov_cache_form_create(opal_type(sides[side].type),
                                                (size_t) sides[side].count, &forms[side]),
              "side %d", side);
        where[side] = malloc((size_t) sides[side].size * sizeof(**where) + 1);
        for (e = 0; e < sides[side].element_count; ++e) {
            for (k = 0; k < sides[side].elements[e].length; ++k) {
                where[side][at++] = sides[side].elements[e].offset + (int64_t) k;
            }
        }
    }
    start = typegen_once_in(&dice, 2) ? 0 : typegen_below(&dice, sides[0].size);
    end = start + 1 + typegen_below(&dice, sides[0].size - start);
    position = start;
    opal_iov_cache_pairs_init(&pairs, forms[0], forms[1], start, end);
    while (good && opal_iov_cache_pairs_next(&pairs, &pair)) {
        good = pair.position == position && 0 < pair.length && 0 < pair.count
               && pair.length * pair.count <= end - position;
        for (i = 0; good && i < pair.count; ++i) {
            for (k = 0; k < pair.length; ++k, ++position) {
                good = good
                       && where[0][position]
                              == pair.offset[0] + (int64_t) i * pair.stride[0] + (int64_t) k
                       && where[1][position]
                              == pair.offset[1] + (int64_t) i * pair.stride[1] + (int64_t) k;
            }
        }
    }
    CHECK(good && position == end, "pairs of [%" PRIu64 ", %" PRIu64 ") near %" PRIu64 "; %s",
          start, end, position, sides[1].description);
    for (side = 0; side < 2; ++side) {
        opal_iov_cache_form_free(forms[side]);
        typegen_side_free(&sides[side]);
        free(where[side]);
    }
    return true;
}

static bool check_type(uint64_t seed, size_t elements, size_t *segments)
{
    typegen_options_t options = TYPEGEN_OPTIONS_DEFAULT;
    opal_iov_cache_form_t *form;
    typegen_side_t side;
    bool good;

    current_seed = seed;
    typegen_seed(&dice, seed);
    options.empty = true;
    options.receivable = !typegen_once_in(&dice, 3);
    options.max_depth = 1 + (int) typegen_below(&dice, 6);
    options.max_elements = typegen_once_in(&dice, 40) ? 6000 : 300;
    if (0 < elements) {
        options.max_elements = elements;
    }
    options.max_span = 64 * 1024;
    typegen_random(&dice, &options, &side);
    current_type = side.description;

    good = check_count(side.type, (size_t) side.count, &side)
           && check_count(side.type, (size_t) typegen_below(&dice, 3), NULL)
           && check_count(side.type, 3 + (size_t) typegen_below(&dice, 30), NULL);
    if (good
        && OPAL_SUCCESS
               == opal_iov_cache_form_create(opal_type(side.type), (size_t) side.count, &form)) {
        *segments += form->segments;
        opal_iov_cache_form_free(form);
    }
    options.empty = false;
    options.receivable = true;
    good = good && check_pairs(&options);
    typegen_side_free(&side);
    return good;
}

int main(int argc, char **argv)
{
    const uint64_t usual = NULL != getenv("UMRDDT_TEST_ALL") ? 3 * DEFAULT_COUNT : DEFAULT_COUNT;
    uint64_t count = 1 < argc ? strtoull(argv[1], NULL, 0) : usual;
    uint64_t seed = 2 < argc ? strtoull(argv[2], NULL, 0) : DEFAULT_SEED, i;
    size_t elements = 3 < argc ? strtoull(argv[3], NULL, 0) : 0, segments = 0;

    singleton_init(MPI_THREAD_SINGLE);
    printf("random_forms: %" PRIu64 " types from seed %" PRIu64 "\n", count, seed);
    for (i = 0; i < sizeof(found_seeds) / sizeof(found_seeds[0]) && 2 >= argc; ++i) {
        check_type(found_seeds[i], 0, &segments);
    }
    for (i = 0; i < count && failures < MAX_FAILURES; ++i) {
        check_type(seed + i, elements, &segments);
    }
    if (singleton_leaks()) {
        ++failures;
    }
    printf("random_forms: %" PRIu64 " types, %zu segments, %d failures\n", i, segments, failures);
    MPI_Finalize();
    return 0 == failures && 0 < count ? 0 : 1;
}
