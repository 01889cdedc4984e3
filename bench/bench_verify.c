/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include <string.h>
#include <sys/mman.h>

#include "bench_gpu.h"
#include "bench_util.h"
#include "bench_verify.h"

/* Ranges of a sampled buffer that are at most this far apart are copied together. */
#define MOVE_TOGETHER 32768

/* Maximum read at once from GPU memory without an image in system memory. */
#define CHUNK ((int64_t) 4 << 20)

static size_t mapped_bytes(const bench_buffer_t *buffer)
{
    return (size_t) buffer->side->array_bytes + 2 * BENCH_MARGIN_BYTES;
}

static void append(bench_piece_t **list, size_t *count, size_t *room, int64_t first, int64_t end)
{
    if (first >= end) {
        return;
    }
    if (*count == *room) {
        *room = 0 == *room ? 64 : 2 * *room;
        *list = bench_realloc(*list, *room * sizeof(bench_piece_t));
    }
    (*list)[*count].offset = first;
    (*list)[*count].length = (uint64_t) (end - first);
    ++*count;
}

/* A gap [first, end): all of it is near, or its two ends are and the middle is far. */
static void add_gap(bench_buffer_t *buffer, int64_t first, int64_t end)
{
    if (!buffer->sampled || 2 * BENCH_NEAR_BYTES >= end - first) {
        append(&buffer->near, &buffer->near_count, &buffer->near_room, first, end);
        return;
    }
    append(&buffer->near, &buffer->near_count, &buffer->near_room, first, first + BENCH_NEAR_BYTES);
    append(&buffer->far, &buffer->far_count, &buffer->far_room, first + BENCH_NEAR_BYTES,
           end - BENCH_NEAR_BYTES);
    append(&buffer->near, &buffer->near_count, &buffer->near_room, end - BENCH_NEAR_BYTES, end);
}

static int compare_pieces(const void *a, const void *b)
{
    const bench_piece_t *left = a, *right = b;

    return left->offset < right->offset ? -1 : left->offset > right->offset;
}

static void find_gaps(bench_buffer_t *buffer)
{
    const bench_side_t *side = buffer->side;
    bench_piece_t *sorted = bench_alloc(side->piece_count * sizeof(bench_piece_t));
    int64_t end = -BENCH_MARGIN_BYTES;
    size_t i;

    memcpy(sorted, side->pieces, side->piece_count * sizeof(bench_piece_t));
    qsort(sorted, side->piece_count, sizeof(bench_piece_t), compare_pieces);
    for (i = 0; i < side->piece_count; ++i) {
        if (sorted[i].offset < end) {
            bench_fatal("a layout has overlapping pieces at offset %lld",
                        (long long) sorted[i].offset);
        }
        add_gap(buffer, end, sorted[i].offset);
        end = sorted[i].offset + (int64_t) sorted[i].length;
    }
    add_gap(buffer, end, (int64_t) side->array_bytes + BENCH_MARGIN_BYTES);
    free(sorted);
}

/* All bytes except far gaps that are long enough to split a copy. */
static void find_moves(bench_buffer_t *buffer)
{
    int64_t first = -BENCH_MARGIN_BYTES;
    size_t i;

    for (i = 0; i < buffer->far_count; ++i) {
        const bench_piece_t *far = &buffer->far[i];

        if (MOVE_TOGETHER < far->length) {
            append(&buffer->moves, &buffer->move_count, &buffer->move_room, first, far->offset);
            first = far->offset + (int64_t) far->length;
        }
    }
    append(&buffer->moves, &buffer->move_count, &buffer->move_room, first,
           (int64_t) buffer->side->array_bytes + BENCH_MARGIN_BYTES);
}

void bench_buffer_put(bench_buffer_t *buffer)
{
    size_t i;

    for (i = 0; NULL != buffer->gpu && i < buffer->move_count; ++i) {
        const bench_piece_t *move = &buffer->moves[i];

        bench_gpu_write(buffer->gpu + move->offset, buffer->array + move->offset, move->length);
    }
}

void bench_buffer_get(bench_buffer_t *buffer)
{
    size_t i;

    for (i = 0; NULL != buffer->gpu && i < buffer->move_count; ++i) {
        const bench_piece_t *move = &buffer->moves[i];

        bench_gpu_read(buffer->array + move->offset, buffer->gpu + move->offset, move->length);
    }
}

void bench_buffer_create(bench_buffer_t *buffer, const bench_side_t *side, unsigned char guard,
                         bool on_gpu)
{
    void *mapping;

    memset(buffer, 0, sizeof(*buffer));
    buffer->side = side;
    buffer->guard = guard;
    buffer->sampled = BENCH_SAMPLE_BYTES < side->array_bytes;
    mapping = mmap(NULL, mapped_bytes(buffer), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (MAP_FAILED == mapping) {
        bench_fatal("no memory for a buffer of %zu bytes", mapped_bytes(buffer));
    }
    if (buffer->sampled) {
        /* huge pages would allocate pages without a piece; a failure is harmless */
        (void) madvise(mapping, mapped_bytes(buffer), MADV_NOHUGEPAGE);
    }
    buffer->array = (unsigned char *) mapping + BENCH_MARGIN_BYTES;
    find_gaps(buffer);
    bench_buffer_set_guards(buffer);
    if (on_gpu) {
        buffer->gpu = (unsigned char *) bench_gpu_alloc(mapped_bytes(buffer)) + BENCH_MARGIN_BYTES;
        find_moves(buffer);
        bench_buffer_put(buffer);
    }
}

void bench_buffer_destroy(bench_buffer_t *buffer)
{
    if (NULL != buffer->gpu) {
        bench_gpu_free(buffer->gpu - BENCH_MARGIN_BYTES);
    }
    free(buffer->moves);
    munmap(buffer->array - BENCH_MARGIN_BYTES, mapped_bytes(buffer));
    free(buffer->near);
    free(buffer->far);
    memset(buffer, 0, sizeof(*buffer));
}

void *bench_buffer_address(const bench_buffer_t *buffer)
{
    return (NULL == buffer->gpu ? buffer->array : buffer->gpu) + buffer->side->origin;
}

void bench_buffer_set_data(bench_buffer_t *buffer, const unsigned char *stream)
{
    const bench_side_t *side = buffer->side;
    size_t i;

    for (i = 0; i < side->piece_count; ++i) {
        memcpy(buffer->array + side->pieces[i].offset, stream, side->pieces[i].length);
        stream += side->pieces[i].length;
    }
}

void bench_buffer_set_guards(bench_buffer_t *buffer)
{
    size_t i;

    for (i = 0; i < buffer->near_count; ++i) {
        memset(buffer->array + buffer->near[i].offset, buffer->guard, buffer->near[i].length);
    }
}

bool bench_buffer_check_data(const bench_buffer_t *buffer, const unsigned char *stream,
                             bench_wrong_t *wrong)
{
    const bench_side_t *side = buffer->side;
    size_t i;
    uint64_t k;

    for (i = 0; i < side->piece_count; ++i) {
        const unsigned char *piece = buffer->array + side->pieces[i].offset;

        if (0 != memcmp(piece, stream, side->pieces[i].length)) {
            for (k = 0; piece[k] == stream[k]; ++k) {
                continue;
            }
            wrong->offset = side->pieces[i].offset + (int64_t) k;
            wrong->expected = stream[k];
            wrong->got = piece[k];
            wrong->in_gap = false;
            return false;
        }
        stream += side->pieces[i].length;
    }
    return true;
}

/* Every byte of these ranges must be @p value. */
static bool check_ranges(const bench_buffer_t *buffer, const bench_piece_t *ranges, size_t count,
                         unsigned char value, bench_wrong_t *wrong)
{
    size_t i;
    uint64_t k;

    for (i = 0; i < count; ++i) {
        const unsigned char *range = buffer->array + ranges[i].offset;
        uint64_t length = ranges[i].length;

        /* the first byte is correct, and every byte equals the previous one */
        if (value == range[0] && 0 == memcmp(range, range + 1, length - 1)) {
            continue;
        }
        for (k = 0; value == range[k]; ++k) {
            continue;
        }
        wrong->offset = ranges[i].offset + (int64_t) k;
        wrong->expected = value;
        wrong->got = range[k];
        wrong->in_gap = true;
        return false;
    }
    return true;
}

/* Far gaps on a GPU must still be zero. Call after bench_buffer_get. */
static bool check_far(const bench_buffer_t *buffer, bench_wrong_t *wrong)
{
    unsigned char *chunk = bench_alloc((size_t) CHUNK);
    bool right = true;
    size_t i;

    for (i = 0; right && i < buffer->far_count; ++i) {
        int64_t at = buffer->far[i].offset, end = at + (int64_t) buffer->far[i].length;

        if (MOVE_TOGETHER >= buffer->far[i].length) {
            /* it was read with its surroundings */
            right = check_ranges(buffer, &buffer->far[i], 1, 0, wrong);
            continue;
        }
        for (; right && at < end; at += CHUNK) {
            bench_piece_t part = {.offset = at, .length = (uint64_t) (end - at)};
            bench_buffer_t image = *buffer;

            part.length = (uint64_t) CHUNK < part.length ? (uint64_t) CHUNK : part.length;
            bench_gpu_read(chunk, buffer->gpu + at, part.length);
            image.array = chunk - at;
            right = check_ranges(&image, &part, 1, 0, wrong);
        }
    }
    free(chunk);
    return right;
}

bool bench_buffer_check_gaps(const bench_buffer_t *buffer, bool everything, bench_wrong_t *wrong)
{
    if (!check_ranges(buffer, buffer->near, buffer->near_count, buffer->guard, wrong)) {
        return false;
    }
    if (everything && NULL != buffer->gpu) {
        return check_far(buffer, wrong);
    }
    return !everything || check_ranges(buffer, buffer->far, buffer->far_count, 0, wrong);
}

bool bench_buffer_contains(const bench_buffer_t *buffer, int64_t offset)
{
    return -BENCH_MARGIN_BYTES <= offset
           && offset < (int64_t) buffer->side->array_bytes + BENCH_MARGIN_BYTES;
}
