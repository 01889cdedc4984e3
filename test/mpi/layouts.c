/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "layouts.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *get_memory(size_t bytes)
{
    void *memory = malloc(0 == bytes ? 1 : bytes);

    if (NULL == memory) {
        mpitest_fail(__FILE__, __LINE__, "no memory for %zu bytes", bytes);
    }
    return memory;
}

/* The pattern repeats itself after this many bytes. */
#define GAP_PERIOD 2048

static inline unsigned char gap_byte(size_t i)
{
    return (unsigned char) (0xa5 ^ (i * 29 >> 3) ^ i);
}

static unsigned char gaps[GAP_PERIOD];

static void make_gaps(void)
{
    for (size_t i = 0; i < GAP_PERIOD; ++i) {
        gaps[i] = gap_byte(i);
    }
}

/* The pattern of gaps, once for all threads. */
static const unsigned char *gap_bytes(void)
{
    static pthread_once_t made = PTHREAD_ONCE_INIT;

    (void) pthread_once(&made, make_gaps);
    return gaps;
}

/* Digits (base 256) of the positions of at most 1 GiB. */
#define DIGITS 4

/*
 * Memory for the maps of a thread: fresh pages for each map would cost more than the map. Large
 * memory is not kept.
 */
#define SCRATCH_KEPT ((size_t) 4 << 20)
static __thread struct {
    unsigned char *memory;
    size_t bytes;
} scratch;

static unsigned char *get_scratch(size_t bytes)
{
    if (scratch.bytes < bytes) {
        free(scratch.memory);
        scratch.bytes = bytes < SCRATCH_KEPT ? 2 * bytes : bytes;
        scratch.memory = get_memory(scratch.bytes);
    }
    return scratch.memory;
}

static void put_scratch(void)
{
    if (SCRATCH_KEPT < scratch.bytes) {
        free(scratch.memory);
        scratch.memory = NULL;
        scratch.bytes = 0;
    }
}

/* Unpack a stream whose byte i is digit 'digit' of i + 1 over zeroes. */
static void unpack_digit(const mpitest_map_t *map, unsigned char *stream, unsigned char *image,
                         int digit)
{
    MPI_Aint i;
    int position = 0;

    for (i = 0; i < map->size; ++i) {
        stream[i] = (unsigned char) ((i + 1) >> (8 * digit));
    }
    memset(image, 0, (size_t) map->span);
    MPI_OK(MPI_Unpack(stream, (int) map->size, &position, image - map->lb, map->count, map->type,
                      MPI_COMM_SELF));
    CHECK_INT(position, map->size);
}

/* The digits of one byte added up: its position plus one, and 0 in the gaps. */
static inline MPI_Aint position_at(unsigned char *const images[], int digits, MPI_Aint i)
{
    MPI_Aint position = images[0][i];

    for (int digit = 1; digit < digits; ++digit) {
        position |= (MPI_Aint) images[digit][i] << (8 * digit);
    }
    return position;
}

/* The first byte of data from i on, or the end of the span. */
static MPI_Aint skip_gap(unsigned char *const images[], int digits, MPI_Aint span, MPI_Aint i)
{
    while (i < span && 0 == position_at(images, digits, i)) {
        uint64_t any = 1;

        if (i + (MPI_Aint) sizeof(any) <= span) {
            any = 0;
            for (int digit = 0; digit < digits; ++digit) {
                uint64_t word;

                memcpy(&word, images[digit] + i, sizeof(word));
                any |= word;
            }
        }
        i += 0 == any ? (MPI_Aint) sizeof(any) : 1;
    }
    return i;
}

static void add_run(mpitest_map_t *map, MPI_Aint at, MPI_Aint length, MPI_Aint stream)
{
    /* a power of two is full */
    if (0 == (map->run_count & (map->run_count - 1))) {
        map->runs =
            realloc(map->runs, sizeof(*map->runs) * (0 == map->run_count ? 1 : 2 * map->run_count));
        CHECK(NULL != map->runs);
    }
    map->runs[map->run_count++] = (mpitest_run_t){.at = at, .length = length, .stream = stream};
}

/* The runs of bytes that are consecutive in memory and in the stream. */
static void find_runs(mpitest_map_t *map, unsigned char *const images[], int digits)
{
    MPI_Aint i = skip_gap(images, digits, map->span, 0), data = 0;

    while (i < map->span) {
        MPI_Aint first = position_at(images, digits, i), length = 1;

        while (i + length < map->span
               && first + length == position_at(images, digits, i + length)) {
            ++length;
        }
        add_run(map, i, length, first - 1);
        data += length;
        i = skip_gap(images, digits, map->span, i + length);
    }
    /* Types that touch a byte twice cannot be received, and their buffers cannot be checked. */
    CHECK_INT(data, map->size);
}

mpitest_map_t *mpitest_map(MPI_Datatype type, int count)
{
    mpitest_map_t *map = get_memory(sizeof(*map));
    MPI_Aint lb, extent, true_lb, true_extent;
    unsigned char *stream, *images[DIGITS];
    int type_size, digits = 1, digit;

    memset(map, 0, sizeof(*map));
    MPI_OK(MPI_Type_size(type, &type_size));
    MPI_OK(MPI_Type_get_extent(type, &lb, &extent));
    MPI_OK(MPI_Type_get_true_extent(type, &true_lb, &true_extent));
    map->type = type;
    map->count = count;
    map->size = (MPI_Aint) type_size * count;
    if (0 == map->size) {
        return map;
    }
    map->lb = true_lb + (0 > (count - 1) * extent ? (count - 1) * extent : 0);
    map->span = true_extent + labs((count - 1) * extent);
    CHECK((MPI_Aint) 1 << 30 >= map->span);

    while (digits < DIGITS && 0 < map->size >> (8 * digits)) {
        ++digits;
    }
    stream = get_scratch((size_t) map->size + (size_t) digits * (size_t) map->span);
    for (digit = 0; digit < digits; ++digit) {
        images[digit] = stream + map->size + digit * map->span;
        unpack_digit(map, stream, images[digit], digit);
    }
    find_runs(map, images, digits);
    put_scratch();
    return map;
}

void mpitest_map_free(mpitest_map_t *map)
{
    free(map->runs);
    free(map);
}

MPI_Aint mpitest_map_at(const mpitest_map_t *map, MPI_Aint i)
{
    size_t low = 0, high = map->run_count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        const mpitest_run_t *run = &map->runs[middle];

        if (i < run->at) {
            high = middle;
        } else if (i >= run->at + run->length) {
            low = middle + 1;
        } else {
            return run->stream + i - run->at;
        }
    }
    return -1;
}

static size_t bytes_of(const mpitest_buffer_t *buffer)
{
    return (size_t) buffer->map->span + 2 * MPITEST_GUARD;
}

/* Plain system memory has no separate image, even if a test has replaced it by other memory. */
static bool is_plain(const mpitest_buffer_t *buffer)
{
    return NULL == buffer->place || GPU_HOST == buffer->place->kind;
}

/* Copies the image to the memory that MPI uses, and back. */
static void put(mpitest_buffer_t *buffer)
{
    if (!is_plain(buffer)) {
        gpu_write(buffer->place, 0, buffer->memory, bytes_of(buffer));
    }
}

static void get(const mpitest_buffer_t *buffer)
{
    if (!is_plain(buffer)) {
        gpu_read(buffer->place, 0, buffer->memory, bytes_of(buffer));
    }
}

mpitest_buffer_t *mpitest_buffer_of(const mpitest_map_t *map, gpu_kind_t kind)
{
    mpitest_buffer_t *buffer = get_memory(sizeof(*buffer));

    buffer->map = map;
    buffer->place = gpu_memory(kind, bytes_of(buffer));
    buffer->memory = GPU_HOST == kind ? buffer->place->addr : get_memory(bytes_of(buffer));
    buffer->addr = buffer->place->addr + MPITEST_GUARD - map->lb;
    mpitest_clear(buffer);
    return buffer;
}

mpitest_buffer_t *mpitest_buffer(const mpitest_map_t *map)
{
    return mpitest_buffer_of(map, mpitest_memory());
}

void mpitest_buffer_free(mpitest_buffer_t *buffer)
{
    if (!is_plain(buffer)) {
        free(buffer->memory);
    }
    gpu_memory_free(buffer->place);
    free(buffer);
}

static void set_gaps(mpitest_buffer_t *buffer)
{
    size_t i, n = bytes_of(buffer);

    for (i = 0; i < n; i += GAP_PERIOD) {
        memcpy(buffer->memory + i, gap_bytes(), n - i < GAP_PERIOD ? n - i : GAP_PERIOD);
    }
}

void mpitest_clear(mpitest_buffer_t *buffer)
{
    set_gaps(buffer);
    put(buffer);
}

void mpitest_fill(mpitest_buffer_t *buffer, uint64_t key)
{
    const mpitest_map_t *map = buffer->map;

    set_gaps(buffer);
    for (size_t r = 0; r < map->run_count; ++r) {
        const mpitest_run_t *run = &map->runs[r];
        unsigned char *memory = buffer->memory + MPITEST_GUARD + run->at;

        for (MPI_Aint i = 0; i < run->length; ++i) {
            memory[i] = mpitest_byte(key, (uint64_t) (run->stream + i));
        }
    }
    put(buffer);
}

/* The first byte from 'from' to 'end' of a buffer's memory that is not gap pattern, or 'end'. */
static MPI_Aint find_no_gap(const mpitest_buffer_t *buffer, MPI_Aint from, MPI_Aint end)
{
    const unsigned char *gap = gap_bytes();

    while (from < end) {
        MPI_Aint at = from % GAP_PERIOD,
                 n = GAP_PERIOD - at < end - from ? GAP_PERIOD - at : end - from;

        if (0 != memcmp(buffer->memory + from, gap + at, (size_t) n)) {
            while (buffer->memory[from] == gap[from % GAP_PERIOD]) {
                ++from;
            }
            return from;
        }
        from += n;
    }
    return end;
}

/* The same, of all that is not in a run. */
static MPI_Aint find_wrong_gap(const mpitest_buffer_t *buffer)
{
    const mpitest_map_t *map = buffer->map;
    MPI_Aint from = 0, end = map->span + 2 * MPITEST_GUARD;

    for (size_t r = 0; r <= map->run_count; ++r) {
        MPI_Aint to = r < map->run_count ? MPITEST_GUARD + map->runs[r].at : end;
        MPI_Aint found = find_no_gap(buffer, from, to);

        if (found < to) {
            return found;
        }
        from = r < map->run_count ? to + map->runs[r].length : end;
    }
    return end;
}

/* The first byte of a run with a wrong value, counted in the buffer's memory; -1 if all are right.
 */
static MPI_Aint find_wrong_data(const mpitest_buffer_t *buffer, const mpitest_run_t *run,
                                uint64_t key, MPI_Aint bytes, bool truncated, bool *complete)
{
    MPI_Aint begin = MPITEST_GUARD + run->at, end = begin + run->length, i;
    MPI_Aint sent = bytes <= run->stream                ? 0
                    : bytes - run->stream < run->length ? bytes - run->stream
                                                        : run->length;

    for (i = 0; i < sent; ++i) {
        if (buffer->memory[begin + i] != mpitest_byte(key, (uint64_t) (run->stream + i))) {
            if (!truncated || buffer->memory[begin + i] != gap_byte((size_t) (begin + i))) {
                return begin + i;
            }
            *complete = false;
        }
    }
    i = find_no_gap(buffer, begin + sent, end);
    return i < end ? i : -1;
}

/* The first byte with a wrong value; -1 if all are right. */
static MPI_Aint find_wrong(const mpitest_buffer_t *buffer, uint64_t key, MPI_Aint bytes,
                           bool truncated, bool *complete)
{
    const mpitest_map_t *map = buffer->map;
    MPI_Aint wrong = find_wrong_gap(buffer);

    *complete = true;
    if (wrong < map->span + 2 * MPITEST_GUARD) {
        return wrong;
    }
    wrong = -1;
    for (size_t r = 0; r < map->run_count && 0 > wrong; ++r) {
        wrong = find_wrong_data(buffer, &map->runs[r], key, bytes, truncated, complete);
    }
    return wrong;
}

/* Bytes of a message that still have the gap pattern. */
static MPI_Aint count_untouched(const mpitest_buffer_t *buffer, MPI_Aint bytes)
{
    const mpitest_map_t *map = buffer->map;
    MPI_Aint untouched = 0;

    for (MPI_Aint i = 0; i < map->span; ++i) {
        MPI_Aint stream = mpitest_map_at(map, i);

        if (0 <= stream && stream < bytes
            && buffer->memory[i + MPITEST_GUARD] == gap_byte((size_t) (i + MPITEST_GUARD))) {
            ++untouched;
        }
    }
    return untouched;
}

static bool check_result(const char *file, int line, const mpitest_buffer_t *buffer, uint64_t key,
                         MPI_Aint bytes, bool truncated)
{
    const mpitest_map_t *map = buffer->map;
    MPI_Aint wrong, at, stream;
    bool complete;

    get(buffer);
    wrong = find_wrong(buffer, key, bytes, truncated, &complete);
    if (0 > wrong) {
        ++mpitest.checks;
        return complete;
    }
    at = wrong - MPITEST_GUARD;
    stream = mpitest_map_at(map, at);
    if (0 > at || at >= map->span) {
        mpitest_fail(file, line, "wrote outside of the buffer, at %ld of a span of %ld: 0x%02x",
                     (long) at, (long) map->span, buffer->memory[wrong]);
    }
    if (0 > stream) {
        mpitest_fail(file, line, "wrote into a gap, at offset %ld: 0x%02x", (long) (at + map->lb),
                     buffer->memory[wrong]);
    }
    if (stream >= bytes) {
        mpitest_fail(file, line,
                     "wrote behind the message's end, stream byte %ld of %ld, offset %ld: 0x%02x",
                     (long) stream, (long) bytes, (long) (at + map->lb), buffer->memory[wrong]);
    }
    mpitest_fail(file, line,
                 "wrong data at stream byte %ld of %ld, offset %ld: 0x%02x, not 0x%02x%s; "
                 "about %ld bytes untouched",
                 (long) stream, (long) bytes, (long) (at + map->lb), buffer->memory[wrong],
                 mpitest_byte(key, (uint64_t) stream),
                 buffer->memory[wrong] == gap_byte((size_t) wrong) ? " (untouched)" : "",
                 (long) count_untouched(buffer, bytes));
}

void mpitest_verify_at(const char *file, int line, const mpitest_buffer_t *buffer, uint64_t key,
                       MPI_Aint bytes)
{
    check_result(file, line, buffer, key, bytes, false);
}

bool mpitest_verify_truncated_at(const char *file, int line, const mpitest_buffer_t *buffer,
                                 uint64_t key, MPI_Aint bytes)
{
    return check_result(file, line, buffer, key, bytes, true);
}

void mpitest_verify_beside_at(const char *file, int line, const mpitest_buffer_t *buffer)
{
    const mpitest_map_t *map = buffer->map;
    MPI_Aint wrong;

    get(buffer);
    wrong = find_wrong_gap(buffer);
    if (wrong < map->span + 2 * MPITEST_GUARD) {
        mpitest_fail(file, line, "wrote beside the data, at %ld of a span of %ld: 0x%02x",
                     (long) (wrong - MPITEST_GUARD), (long) map->span, buffer->memory[wrong]);
    }
    ++mpitest.checks;
}

bool mpitest_arrived(const mpitest_buffer_t *buffer, uint64_t key, MPI_Aint bytes)
{
    /* It changes only while MPI is called. */
    const volatile unsigned char *memory = buffer->memory + MPITEST_GUARD;
    const mpitest_map_t *map = buffer->map;

    get(buffer);
    for (size_t r = 0; r < map->run_count; ++r) {
        const mpitest_run_t *run = &map->runs[r];

        for (MPI_Aint i = 0; i < run->length && run->stream + i < bytes; ++i) {
            if (memory[run->at + i] != mpitest_byte(key, (uint64_t) (run->stream + i))) {
                return false;
            }
        }
    }
    return true;
}

/* Blocks of 'block' bytes (the last one shorter), 'stride' apart, the first at 'first'. */
static MPI_Datatype blocks(int bytes, int block, MPI_Aint stride, MPI_Aint first)
{
    int n = (bytes + block - 1) / block, i, *lengths;
    MPI_Datatype type;
    MPI_Aint *at;

    if (0 == bytes % block && 0 == first && 0 <= stride) {
        MPI_OK(MPI_Type_create_hvector(n, block, stride, MPI_BYTE, &type));
        return type;
    }
    lengths = get_memory(sizeof(*lengths) * (size_t) n);
    at = get_memory(sizeof(*at) * (size_t) n);
    for (i = 0; i < n; ++i) {
        lengths[i] = i < n - 1 ? block : bytes - (n - 1) * block;
        at[i] = first + stride * i;
    }
    MPI_OK(MPI_Type_create_hindexed(n, lengths, at, MPI_BYTE, &type));
    free(lengths);
    free(at);
    return type;
}

static MPI_Datatype irregular(int bytes, uint64_t seed)
{
    size_t n = 0, room = (size_t) bytes + 1;
    int *lengths = get_memory(sizeof(*lengths) * room);
    MPI_Aint *at = get_memory(sizeof(*at) * room), end = 0;
    MPI_Datatype type;
    int left = bytes;

    while (0 < left) {
        long length = mpitest_between(&seed, 1, 0 == mpitest_random(&seed) % 4 ? 700 : 40);

        lengths[n] = (int) (length < left ? length : left);
        end += mpitest_between(&seed, 1, 90);
        at[n] = end;
        end += lengths[n];
        left -= lengths[n];
        ++n;
    }
    MPI_OK(MPI_Type_create_hindexed((int) n, lengths, at, MPI_BYTE, &type));
    free(lengths);
    free(at);
    return type;
}

/* Rows of 4 blocks of 16 bytes, 40 apart; rows 512 apart. The remainder is one more block. */
static MPI_Datatype nested(int bytes)
{
    int rows = bytes / 64, rest = bytes % 64;
    int lengths[2] = {rows, rest};
    MPI_Aint at[2] = {0, (MPI_Aint) rows * 512 + 8};
    MPI_Datatype row, wide, type, types[2];

    MPI_OK(MPI_Type_create_hvector(4, 16, 40, MPI_BYTE, &row));
    MPI_OK(MPI_Type_create_resized(row, 0, 512, &wide));
    types[0] = wide;
    types[1] = MPI_BYTE;
    MPI_OK(MPI_Type_create_struct(2, lengths, at, types, &type));
    MPI_OK(MPI_Type_free(&row));
    MPI_OK(MPI_Type_free(&wide));
    return type;
}

MPI_Datatype mpitest_type(mpitest_kind_t kind, int bytes, uint64_t seed)
{
    int last = (bytes + 255) / 256 - 1;
    MPI_Datatype type;

    switch (0 == bytes ? MPITEST_FINE : kind) {
    case MPITEST_CONTIGUOUS:
        MPI_OK(MPI_Type_contiguous(bytes, MPI_BYTE, &type));
        break;
    case MPITEST_FINE:
        type = blocks(bytes, 8, 24, 0);
        break;
    case MPITEST_COARSE:
        type = blocks(bytes, 1024, 2048, 0);
        break;
    case MPITEST_WIDE:
        type = blocks(bytes, 512, 70000, 0);
        break;
    case MPITEST_IRREGULAR:
        type = irregular(bytes, seed);
        break;
    case MPITEST_DESCENDING:
        type = blocks(bytes, 256, -400, (MPI_Aint) last * 400);
        break;
    case MPITEST_NEGATIVE:
        type = blocks(bytes, 8, 24, -24 * ((MPI_Aint) bytes / 8 + 2));
        break;
    default:
        type = nested(bytes);
        break;
    }
    MPI_OK(MPI_Type_commit(&type));
    return type;
}

mpitest_kind_t mpitest_draw_kind(uint64_t *state)
{
    mpitest_kind_t kind = (mpitest_kind_t) mpitest_between(state, 0, MPITEST_KINDS - 1);

    return MPITEST_WIDE == kind ? MPITEST_COARSE : kind;
}

int mpitest_draw_bytes(uint64_t *state)
{
    static const int sizes[] = {8, 64, 72, 1000, 5000, 30000, 100000};

    return sizes[mpitest_between(state, 0, sizeof(sizes) / sizeof(sizes[0]) - 1)];
}

const char *mpitest_kind_name(mpitest_kind_t kind)
{
    static const char *const names[MPITEST_KINDS] = {
        "contiguous", "fine", "coarse", "wide", "irregular", "descending", "negative", "nested"};

    return kind < MPITEST_KINDS ? names[kind] : "?";
}

mpitest_message_t *mpitest_message(mpitest_kind_t kind, int bytes, uint64_t seed)
{
    mpitest_message_t *message = get_memory(sizeof(*message));

    message->type = mpitest_type(kind, bytes, seed);
    message->map = mpitest_map(message->type, 1);
    message->buffer = mpitest_buffer(message->map);
    message->addr = message->buffer->addr;
    message->bytes = bytes;
    return message;
}

void mpitest_message_leave(mpitest_message_t *message)
{
    static mpitest_message_t *left;

    MPI_Type_free(&message->type);
    message->kept = left;
    left = message;
}

void mpitest_message_free(mpitest_message_t *message)
{
    mpitest_buffer_free(message->buffer);
    mpitest_map_free(message->map);
    MPI_Type_free(&message->type);
    free(message);
}
