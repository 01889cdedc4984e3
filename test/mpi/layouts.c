/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "layouts.h"

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

static inline unsigned char gap_byte(size_t i)
{
    return (unsigned char) (0xa5 ^ (i * 29 >> 3) ^ i);
}

/*
 * Unpack a stream whose byte i is digit 'digit' (base 256) of i + 1 over zeroes, and add the digits
 * up: what comes out is the position of each byte plus one, and 0 in the gaps.
 */
static void add_digit(mpitest_map_t *map, unsigned char *stream, unsigned char *image, int digit)
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
    for (i = 0; i < map->span; ++i) {
        map->where[i] += (int32_t) image[i] << (8 * digit);
    }
}

mpitest_map_t *mpitest_map(MPI_Datatype type, int count)
{
    mpitest_map_t *map = get_memory(sizeof(*map));
    MPI_Aint lb, extent, true_lb, true_extent, i, data = 0;
    unsigned char *stream, *image;
    int type_size, digit;

    memset(map, 0, sizeof(*map));
    MPI_OK(MPI_Type_size(type, &type_size));
    MPI_OK(MPI_Type_get_extent(type, &lb, &extent));
    MPI_OK(MPI_Type_get_true_extent(type, &true_lb, &true_extent));
    map->type = type;
    map->count = count;
    map->size = (MPI_Aint) type_size * count;
    if (0 < map->size) {
        MPI_Aint last = (count - 1) * extent;

        map->lb = true_lb + (0 > last ? last : 0);
        map->span = true_extent + (0 > last ? -last : last);
    }
    CHECK((MPI_Aint) 1 << 30 >= map->span);

    stream = get_memory((size_t) map->size);
    image = get_memory((size_t) map->span);
    map->where = get_memory(sizeof(int32_t) * (size_t) map->span);
    memset(map->where, 0, sizeof(int32_t) * (size_t) map->span);
    for (digit = 0; digit < 4 && 0 < map->size; ++digit) {
        if (0 < digit && 0 == map->size >> (8 * digit)) {
            break;
        }
        add_digit(map, stream, image, digit);
    }
    for (i = 0; i < map->span; ++i) {
        data += 0 < map->where[i] ? 1 : 0;
        --map->where[i];
    }
    /* Types that touch a byte twice cannot be received, and their buffers cannot be checked. */
    CHECK_INT(data, map->size);
    free(stream);
    free(image);
    return map;
}

void mpitest_map_free(mpitest_map_t *map)
{
    free(map->where);
    free(map);
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

    for (i = 0; i < n; ++i) {
        buffer->memory[i] = gap_byte(i);
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
    MPI_Aint i;

    set_gaps(buffer);
    for (i = 0; i < map->span; ++i) {
        if (0 <= map->where[i]) {
            buffer->memory[MPITEST_GUARD + i] = mpitest_byte(key, (uint64_t) map->where[i]);
        }
    }
    put(buffer);
}

/* The first byte with a wrong value; -1 if all are right. */
static MPI_Aint find_wrong(const mpitest_buffer_t *buffer, uint64_t key, MPI_Aint bytes,
                           bool truncated, bool *complete)
{
    const mpitest_map_t *map = buffer->map;
    MPI_Aint i, n = map->span + 2 * MPITEST_GUARD;

    *complete = true;
    for (i = 0; i < n; ++i) {
        unsigned char gap = gap_byte((size_t) i), wanted = gap;
        MPI_Aint at = i - MPITEST_GUARD;

        if (0 <= at && at < map->span && 0 <= map->where[at] && map->where[at] < bytes) {
            wanted = mpitest_byte(key, (uint64_t) map->where[at]);
        }
        if (buffer->memory[i] != wanted) {
            if (!truncated || buffer->memory[i] != gap) {
                return i;
            }
            *complete = false;
        }
    }
    return -1;
}

static bool check_result(const char *file, int line, const mpitest_buffer_t *buffer, uint64_t key,
                         MPI_Aint bytes, bool truncated)
{
    const mpitest_map_t *map = buffer->map;
    MPI_Aint untouched = 0, wrong, at, i;
    bool complete;

    get(buffer);
    wrong = find_wrong(buffer, key, bytes, truncated, &complete);
    if (0 > wrong) {
        ++mpitest.checks;
        return complete;
    }
    at = wrong - MPITEST_GUARD;
    for (i = 0; i < map->span; ++i) {
        if (0 <= map->where[i] && map->where[i] < bytes
            && buffer->memory[i + MPITEST_GUARD] == gap_byte((size_t) (i + MPITEST_GUARD))) {
            ++untouched;
        }
    }
    if (0 > at || at >= map->span) {
        mpitest_fail(file, line, "wrote outside of the buffer, at %ld of a span of %ld: 0x%02x",
                     (long) at, (long) map->span, buffer->memory[wrong]);
    }
    if (0 > map->where[at]) {
        mpitest_fail(file, line, "wrote into a gap, at offset %ld: 0x%02x", (long) (at + map->lb),
                     buffer->memory[wrong]);
    }
    if (map->where[at] >= bytes) {
        mpitest_fail(file, line,
                     "wrote behind the message's end, stream byte %ld of %ld, offset %ld: 0x%02x",
                     (long) map->where[at], (long) bytes, (long) (at + map->lb),
                     buffer->memory[wrong]);
    }
    mpitest_fail(file, line,
                 "wrong data at stream byte %ld of %ld, offset %ld: 0x%02x, not 0x%02x%s; "
                 "about %ld bytes untouched",
                 (long) map->where[at], (long) bytes, (long) (at + map->lb), buffer->memory[wrong],
                 mpitest_byte(key, (uint64_t) map->where[at]),
                 buffer->memory[wrong] == gap_byte((size_t) wrong) ? " (untouched)" : "",
                 (long) untouched);
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
    MPI_Aint i, n = map->span + 2 * MPITEST_GUARD;

    get(buffer);
    for (i = 0; i < n; ++i) {
        MPI_Aint at = i - MPITEST_GUARD;
        bool data = 0 <= at && at < map->span && 0 <= map->where[at];

        if (!data && buffer->memory[i] != gap_byte((size_t) i)) {
            mpitest_fail(file, line, "wrote beside the data, at %ld of a span of %ld: 0x%02x",
                         (long) at, (long) map->span, buffer->memory[i]);
        }
    }
    ++mpitest.checks;
}

bool mpitest_arrived(const mpitest_buffer_t *buffer, uint64_t key, MPI_Aint bytes)
{
    /* It changes only while MPI is called. */
    const volatile unsigned char *memory = buffer->memory + MPITEST_GUARD;
    const mpitest_map_t *map = buffer->map;
    MPI_Aint i;

    get(buffer);
    for (i = 0; i < map->span; ++i) {
        int32_t where = map->where[i];

        if (0 <= where && where < bytes && memory[i] != mpitest_byte(key, (uint64_t) where)) {
            return false;
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
