/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Datatypes of users: pairs of all constructors and of resized types with counts above one, the
 * pair types of MPI, types freed or duplicated immediately, their attributes, packing on one side
 * only, counts of elements, and the status functions on them.
 */

#include "layouts.h"
#include "mpitest.h"
#include "types_predefined.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* (type, count) with its map and a buffer. */
typedef struct side_t {
    MPI_Datatype type;
    mpitest_map_t *map;
    mpitest_buffer_t *buffer;
} side_t;

/* Takes ownership of the type. */
static void side_make(side_t *side, MPI_Datatype type, int count)
{
    side->type = type;
    MPI_OK(MPI_Type_commit(&side->type));
    side->map = mpitest_map(side->type, count);
    side->buffer = mpitest_buffer(side->map);
}

static void side_free(side_t *side)
{
    mpitest_buffer_free(side->buffer);
    mpitest_map_free(side->map);
    MPI_OK(MPI_Type_free(&side->type));
}

/* All constructors of a type of 'n' elements of an int each; they have the same signature. */
enum {
    CONSTRUCTORS = 12
};

static MPI_Datatype construct(int which, int n)
{
    int *lengths = malloc(sizeof(int) * (size_t) n), *at = malloc(sizeof(int) * (size_t) n);
    MPI_Aint *bytes_at = malloc(sizeof(MPI_Aint) * (size_t) n);
    MPI_Datatype *types = malloc(sizeof(*types) * (size_t) n), type, inner;
    int sizes[3] = {n, 4, 3}, parts[3] = {n, 1, 1}, starts[3] = {0, 2, 1}, i;

    CHECK(NULL != lengths && NULL != at && NULL != bytes_at && NULL != types);
    for (i = 0; i < n; ++i) {
        lengths[i] = 1;
        at[i] = 3 * i + (i % 2);
        bytes_at[i] = (MPI_Aint) sizeof(int) * (n - i) * 2;
        types[i] = MPI_INT;
    }
    switch (which) {
    case 0:
        MPI_OK(MPI_Type_contiguous(n, MPI_INT, &type));
        break;
    case 1:
        MPI_OK(MPI_Type_vector(n, 1, 3, MPI_INT, &type));
        break;
    case 2:
        MPI_OK(MPI_Type_create_hvector(n, 1, -12, MPI_INT, &type));
        break;
    case 3:
        MPI_OK(MPI_Type_indexed(n, lengths, at, MPI_INT, &type));
        break;
    case 4:
        MPI_OK(MPI_Type_create_hindexed(n, lengths, bytes_at, MPI_INT, &type));
        break;
    case 5:
        MPI_OK(MPI_Type_create_indexed_block(n, 1, at, MPI_INT, &type));
        break;
    case 6:
        MPI_OK(MPI_Type_create_hindexed_block(n, 1, bytes_at, MPI_INT, &type));
        break;
    case 7:
        MPI_OK(MPI_Type_create_struct(n, lengths, bytes_at, types, &type));
        break;
    case 8:
        MPI_OK(MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, MPI_INT, &type));
        break;
    case 9: {
        int fortran_sizes[3] = {3, 4, n}, fortran_parts[3] = {1, 1, n},
            fortran_starts[3] = {1, 2, 0};

        MPI_OK(MPI_Type_create_subarray(3, fortran_sizes, fortran_parts, fortran_starts,
                                        MPI_ORDER_FORTRAN, MPI_INT, &type));
        break;
    }
    case 10: {
        /* Of 2 x n elements, distributed in pairs of rows over two processes: this one has n. */
        int global[2] = {2 * n, 2}, dist[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK};
        int args[2] = {2, MPI_DISTRIBUTE_DFLT_DARG}, grid[2] = {2, 2};

        MPI_OK(
            MPI_Type_create_darray(4, 1, 2, global, dist, args, grid, MPI_ORDER_C, MPI_INT, &type));
        break;
    }
    default:
        MPI_OK(MPI_Type_create_resized(MPI_INT, -8, 20, &inner));
        MPI_OK(MPI_Type_contiguous(n, inner, &type));
        MPI_OK(MPI_Type_free(&inner));
        break;
    }
    free(lengths);
    free(at);
    free(bytes_at);
    free(types);
    return type;
}

/* Send the bytes of one side to the other, to the right in the ring; check each direction. */
static void exchange(side_t *out, side_t *in, int tag)
{
    uint64_t key = mpitest_mix(mpitest.seed, (uint64_t) mpitest.step, (uint64_t) tag);
    MPI_Request request;
    MPI_Status status;

    CHECK(out->map->size <= in->map->size);
    mpitest_fill(out->buffer, key + (uint64_t) mpitest.rank);
    mpitest_clear(in->buffer);
    MPI_OK(MPI_Irecv(in->buffer->addr, in->map->count, in->type, mpitest_left(), tag,
                     MPI_COMM_WORLD, &request));
    MPI_OK(MPI_Send(out->buffer->addr, out->map->count, out->type, mpitest_right(), tag,
                    MPI_COMM_WORLD));
    MPI_OK(MPI_Wait(&request, &status));
    CHECK_STATUS(&status, mpitest_left(), tag, (int) out->map->size);
    VERIFY(in->buffer, key + (uint64_t) mpitest_left(), out->map->size);
    VERIFY(out->buffer, key + (uint64_t) mpitest.rank, out->map->size);
}

static void constructors(uint64_t *state)
{
    int n = 2 * (int) mpitest_between(state, 150, 900), first, i;
    side_t out, in;

    first = (int) mpitest_between(state, 1, CONSTRUCTORS - 1);
    for (i = 0; i < CONSTRUCTORS; ++i) {
        side_make(&out, construct(i, n), 1);
        side_make(&in, construct((first + i) % CONSTRUCTORS, n), 1);
        exchange(&out, &in, i);
        side_free(&out);
        side_free(&in);
    }
}

/*
 * Counts above one of types whose extent is larger, smaller (they interleave), or negative; and one
 * whose lower bound is not 0.
 */
static void resized(uint64_t *state)
{
    static const struct {
        MPI_Aint lb, extent;
    } shapes[] = {{0, 64 * 24 + 40},  {0, 8},        {0, -64 * 24},
                  {-48, 64 * 24 + 8}, {16, 64 * 24}, {0, 16}};
    const int n = sizeof(shapes) / sizeof(shapes[0]);
    int first = (int) mpitest_between(state, 0, n - 1), i, side;
    MPI_Datatype vector, type;
    side_t sides[2];

    for (i = 0; i < n; ++i) {
        for (side = 0; side < 2; ++side) {
            int which = 0 == side ? i : (first + i) % n;
            /* Blocks of 8 every 24: with an extent of 8 or 16 two or three of them interleave. */
            int count = 8 == shapes[which].extent ? 3 : 16 == shapes[which].extent ? 2 : 6;

            MPI_OK(MPI_Type_create_hvector(16 == shapes[which].extent ? 192
                                           : 3 == count               ? 128
                                                                      : 64,
                                           8, 24, MPI_BYTE, &vector));
            MPI_OK(MPI_Type_create_resized(vector, shapes[which].lb, shapes[which].extent, &type));
            MPI_OK(MPI_Type_free(&vector));
            side_make(&sides[side], type, count);
        }
        CHECK_INT(sides[0].map->size, 6 * 64 * 8);
        exchange(&sides[0], &sides[1], i);
        side_free(&sides[0]);
        side_free(&sides[1]);
    }
}

/* The same bytes several times in one message: extent 0, and a stride shorter than the block. */
static void read_twice(uint64_t *state)
{
    int n = (int) mpitest_between(state, 600, 3000), i, j, count = 3;
    int *from = malloc(sizeof(int) * (size_t) (2 * n)),
        *to = malloc(sizeof(int) * (size_t) (3 * n));
    MPI_Datatype vector, type;
    MPI_Request request;
    MPI_Status status;

    CHECK(NULL != from && NULL != to);
    for (i = 0; i < 2 * n; ++i) {
        from[i] = mpitest.rank * 1000000 + i;
    }
    MPI_OK(MPI_Type_vector(n, 1, 2, MPI_INT, &vector));
    MPI_OK(MPI_Type_create_resized(vector, 0, 0, &type));
    MPI_OK(MPI_Type_commit(&type));
    MPI_OK(MPI_Irecv(to, 3 * n, MPI_INT, mpitest_left(), 1, MPI_COMM_WORLD, &request));
    MPI_OK(MPI_Send(from, count, type, mpitest_right(), 1, MPI_COMM_WORLD));
    MPI_OK(MPI_Wait(&request, &status));
    CHECK_STATUS(&status, mpitest_left(), 1, 3 * n * (int) sizeof(int));
    for (i = 0; i < count; ++i) {
        for (j = 0; j < n; ++j) {
            CHECK_INT(to[i * n + j], mpitest_left() * 1000000 + 2 * j);
        }
    }
    MPI_OK(MPI_Type_free(&type));
    MPI_OK(MPI_Type_free(&vector));
    free(from);
    free(to);
}

/* The predefined types that have a gap. Committed, never freed, and thousands of them in a message.
 */
static void pair_types(uint64_t *state)
{
    MPI_Datatype types[] = {MPI_DOUBLE_INT, MPI_SHORT_INT, MPI_LONG_INT, MPI_FLOAT_INT,
                            MPI_LONG_DOUBLE_INT};
    size_t i;

    for (i = 0; i < sizeof(types) / sizeof(types[0]); ++i) {
        int count = (int) mpitest_between(state, 300, 2000);
        mpitest_map_t *map = mpitest_map(types[i], count);
        side_t out = {types[i], map, mpitest_buffer(map)},
               in = {types[i], map, mpitest_buffer(map)};

        exchange(&out, &in, (int) i);
        mpitest_buffer_free(out.buffer);
        mpitest_buffer_free(in.buffer);
        mpitest_map_free(map);
    }
}

/*
 * Single long doubles, aligned, as numbers. Open MPI 5.0 and later copy such ones without the
 * padding, so no envelope may be received there. Bytes are not compared, as the padding may stay
 * what it was.
 */
static void long_doubles(uint64_t *state)
{
    int n = (int) mpitest_between(state, 600, 3000), i;
    long double *from = calloc((size_t) (2 * n), sizeof(*from)),
                *to = calloc((size_t) (2 * n), sizeof(*to));
    MPI_Request request;
    MPI_Datatype type;
    MPI_Status status;

    CHECK(NULL != from && NULL != to);
    for (i = 0; i < 2 * n; ++i) {
        from[i] = mpitest.rank * 1000000 + i;
        to[i] = -1;
    }
    MPI_OK(MPI_Type_vector(n, 1, 2, MPI_LONG_DOUBLE, &type));
    MPI_OK(MPI_Type_commit(&type));
    MPI_OK(MPI_Irecv(to, 1, type, mpitest_left(), 1, MPI_COMM_WORLD, &request));
    MPI_OK(MPI_Send(from, 1, type, mpitest_right(), 1, MPI_COMM_WORLD));
    MPI_OK(MPI_Wait(&request, &status));
    CHECK_STATUS(&status, mpitest_left(), 1, n * (int) sizeof(*from));
    for (i = 0; i < 2 * n; ++i) {
        CHECK(to[i] == (0 == i % 2 ? mpitest_left() * 1000000 + i : -1));
    }
    MPI_OK(MPI_Type_free(&type));
    free(from);
    free(to);
}

/* Freed as soon as the call returned, by sender and receiver, with others made in their place. */
static void freed_at_once(uint64_t *state)
{
    enum {
        MANY = 6
    };
    MPI_Request requests[2 * MANY];
    MPI_Datatype type, copy, other[MANY];
    side_t out[MANY], in[MANY];
    int i, round;

    for (i = 0; i < MANY; ++i) {
        int n = (int) mpitest_between(state, 20, 2000);

        side_make(&out[i], construct(1 + i, n), 1);
        side_make(&in[i], construct(1 + (i + 2) % MANY, n), 1);
        mpitest_fill(out[i].buffer, (uint64_t) (mpitest.rank * MANY + i));
        /* Duplicates: only the message holds a reference to its type. */
        MPI_OK(MPI_Type_dup(in[i].type, &type));
        MPI_OK(MPI_Recv_init(in[i].buffer->addr, 1, type, mpitest_left(), i, MPI_COMM_WORLD,
                             &requests[2 * i]));
        MPI_OK(MPI_Type_free(&type));
        MPI_OK(MPI_Type_dup(out[i].type, &type));
        MPI_OK(MPI_Type_dup(type, &copy));
        MPI_OK(MPI_Type_free(&type));
        MPI_OK(MPI_Send_init(out[i].buffer->addr, 1, copy, mpitest_right(), i, MPI_COMM_WORLD,
                             &requests[2 * i + 1]));
        MPI_OK(MPI_Type_free(&copy));
    }
    for (round = 0; round < 2; ++round) {
        MPI_OK(MPI_Startall(2 * MANY, requests));
        for (i = 0; i < MANY; ++i) {
            other[i] = mpitest_type(MPITEST_FINE, 1000 + 8 * i, 1);
        }
        MPI_OK(MPI_Waitall(2 * MANY, requests, MPI_STATUSES_IGNORE));
        for (i = 0; i < MANY; ++i) {
            MPI_OK(MPI_Type_free(&other[i]));
            VERIFY(in[i].buffer, (uint64_t) (mpitest_left() * MANY + i), in[i].map->size);
            mpitest_clear(in[i].buffer);
        }
    }
    for (i = 0; i < 2 * MANY; ++i) {
        MPI_OK(MPI_Request_free(&requests[i]));
    }
    for (i = 0; i < MANY; ++i) {
        MPI_OK(MPI_Type_dup(in[i].type, &type));
        MPI_OK(MPI_Irecv(in[i].buffer->addr, 1, type, mpitest_left(), i, MPI_COMM_WORLD,
                         &requests[2 * i]));
        MPI_OK(MPI_Type_free(&type));
        MPI_OK(MPI_Type_dup(out[i].type, &type));
        MPI_OK(MPI_Isend(out[i].buffer->addr, 1, type, mpitest_right(), i, MPI_COMM_WORLD,
                         &requests[2 * i + 1]));
        MPI_OK(MPI_Type_free(&type));
    }
    MPI_OK(MPI_Waitall(2 * MANY, requests, MPI_STATUSES_IGNORE));
    for (i = 0; i < MANY; ++i) {
        VERIFY(in[i].buffer, (uint64_t) (mpitest_left() * MANY + i), in[i].map->size);
        side_free(&out[i]);
        side_free(&in[i]);
    }
}

/* Attributes of the user on types that are in use: called for copies and frees, once each. */
static int copies, deletes;

static int copy_attribute(MPI_Datatype type, int keyval, void *extra, void *in, void *out,
                          int *flag)
{
    (void) type;
    (void) keyval;
    (void) extra;
    ++copies;
    *(void **) out = in;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete_attribute(MPI_Datatype type, int keyval, void *value, void *extra)
{
    (void) type;
    (void) keyval;
    (void) value;
    (void) extra;
    ++deletes;
    return MPI_SUCCESS;
}

static void attributes(uint64_t *state)
{
    int n = (int) mpitest_between(state, 300, 2000), keyval = MPI_KEYVAL_INVALID, flag = 0;
    MPI_Datatype copy;
    side_t out, in;
    void *value = NULL;

    copies = deletes = 0;
    MPI_OK(MPI_Type_create_keyval(copy_attribute, delete_attribute, &keyval, NULL));
    side_make(&out, construct(3, n), 1);
    side_make(&in, construct(1, n), 1);
    MPI_OK(MPI_Type_set_attr(out.type, keyval, (void *) 23));
    exchange(&out, &in, 1);
    MPI_OK(MPI_Type_dup(out.type, &copy));
    CHECK_INT(copies, 1);
    MPI_OK(MPI_Type_get_attr(copy, keyval, &value, &flag));
    CHECK(flag && (void *) 23 == value);
    exchange(&out, &in, 2);
    side_free(&out);
    /* Open MPI calls the function when the type's last user is gone, of which the copy is one. */
    side_make(&out, copy, 1);
    exchange(&out, &in, 3);
    side_free(&out);
    CHECK_INT(deletes, 2);
    side_free(&in);
    MPI_OK(MPI_Type_free_keyval(&keyval));
}

/* Packed by hand on one side, described by a type on the other; in several parts on both. */
static void packed(uint64_t *state)
{
    int n = (int) mpitest_between(state, 300, 3000), size = 0, position, head = 4711, turn;
    uint64_t key = mpitest_random(state);
    MPI_Request request;
    MPI_Status status;
    side_t out, in;
    char *space;

    side_make(&out, construct(4, n), 1);
    side_make(&in, construct(9, n), 1);
    MPI_OK(MPI_Pack_size(1, out.type, MPI_COMM_WORLD, &size));
    space = malloc((size_t) size + 64);
    CHECK(NULL != space);
    for (turn = 0; turn < 3; ++turn) {
        mpitest_fill(out.buffer, key + (uint64_t) mpitest.rank);
        mpitest_clear(in.buffer);
        position = 0;
        switch (turn) {
        case 0:
            /* Packed here, typed there. */
            MPI_OK(MPI_Irecv(in.buffer->addr, 1, in.type, mpitest_left(), 1, MPI_COMM_WORLD,
                             &request));
            MPI_OK(MPI_Pack(out.buffer->addr, 1, out.type, space, size, &position, MPI_COMM_WORLD));
            MPI_OK(MPI_Send(space, position, MPI_PACKED, mpitest_right(), 1, MPI_COMM_WORLD));
            MPI_OK(MPI_Wait(&request, &status));
            break;
        case 1:
            /* Typed here, unpacked there. */
            MPI_OK(MPI_Irecv(space, size, MPI_PACKED, mpitest_left(), 2, MPI_COMM_WORLD, &request));
            MPI_OK(MPI_Send(out.buffer->addr, 1, out.type, mpitest_right(), 2, MPI_COMM_WORLD));
            MPI_OK(MPI_Wait(&request, &status));
            MPI_OK(MPI_Get_count(&status, MPI_PACKED, &size));
            MPI_OK(MPI_Unpack(space, size, &position, in.buffer->addr, 1, in.type, MPI_COMM_WORLD));
            CHECK_INT(position, size);
            break;
        default:
            /* A head and the data, packed; a probe distinguishes it from a later typed one. */
            MPI_OK(MPI_Isend(out.buffer->addr, 1, out.type, mpitest_right(), 4, MPI_COMM_WORLD,
                             &request));
            MPI_OK(MPI_Pack(&head, 1, MPI_INT, space, size + 64, &position, MPI_COMM_WORLD));
            MPI_OK(MPI_Pack(out.buffer->addr, 1, out.type, space, size + 64, &position,
                            MPI_COMM_WORLD));
            MPI_OK(MPI_Sendrecv_replace(space, position, MPI_PACKED, mpitest_right(), 3,
                                        mpitest_left(), 3, MPI_COMM_WORLD, &status));
            CHECK_STATUS(&status, mpitest_left(), 3, position);
            position = 0;
            head = 0;
            MPI_OK(MPI_Unpack(space, size + 64, &position, &head, 1, MPI_INT, MPI_COMM_WORLD));
            CHECK_INT(head, 4711);
            MPI_OK(MPI_Unpack(space, size + 64, &position, in.buffer->addr, 1, in.type,
                              MPI_COMM_WORLD));
            VERIFY(in.buffer, key + (uint64_t) mpitest_left(), in.map->size);
            mpitest_clear(in.buffer);
            MPI_OK(
                MPI_Recv(in.buffer->addr, 1, in.type, mpitest_left(), 4, MPI_COMM_WORLD, &status));
            MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            break;
        }
        VERIFY(in.buffer, key + (uint64_t) mpitest_left(), in.map->size);
    }
    free(space);
    side_free(&out);
    side_free(&in);
}

/*
 * Counts of a message that ends within a record of the receiver: entire records, basic elements,
 * with the large forms too; from the probe, from the matched probe and from the receive.
 */
static void elements(uint64_t *state)
{
    int n = (int) mpitest_between(state, 200, 2000), lengths[2] = {2, 1}, cut, count, turn;
    MPI_Aint at[2] = {0, 24};
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE}, record, two, part;
    MPI_Count large;
    MPI_Status status, probed;
    MPI_Message message;
    MPI_Request request;
    side_t out, in;

    MPI_OK(MPI_Type_create_struct(2, lengths, at, types, &record));
    MPI_OK(MPI_Type_commit(&record));
    MPI_OK(MPI_Type_contiguous(2, record, &two));
    /* n records of 3 elements each, and 'cut' elements more. */
    for (cut = 0; cut < 3; ++cut) {
        MPI_Aint places[2] = {0, (MPI_Aint) n * 32};
        int blocks[2] = {n, 0 == cut ? 0 : 1};
        MPI_Datatype parts[2] = {record, MPI_INT};

        if (2 == cut) {
            blocks[1] = 2;
        }
        MPI_OK(MPI_Type_create_struct(2, blocks, places, parts, &part));
        side_make(&out, part, 1);
        MPI_OK(MPI_Type_dup(two, &part));
        side_make(&in, part, n / 2 + 3);
        mpitest_fill(out.buffer, (uint64_t) (mpitest.rank + 1));
        for (turn = 0; turn < 2; ++turn) {
            mpitest_clear(in.buffer);
            MPI_OK(MPI_Isend(out.buffer->addr, 1, out.type, mpitest_right(), 1, MPI_COMM_WORLD,
                             &request));
            if (0 == turn) {
                MPI_OK(MPI_Probe(mpitest_left(), 1, MPI_COMM_WORLD, &probed));
                MPI_OK(MPI_Recv(in.buffer->addr, in.map->count, in.type, mpitest_left(), 1,
                                MPI_COMM_WORLD, &status));
            } else {
                MPI_OK(MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &probed));
                MPI_OK(MPI_Mrecv(in.buffer->addr, in.map->count, in.type, &message, &status));
            }
            MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            CHECK_STATUS(&probed, mpitest_left(), 1, (int) out.map->size);
            CHECK_STATUS(&status, mpitest_left(), 1, (int) out.map->size);
            for (count = 0; count < 2; ++count) {
                const MPI_Status *which = 0 == count ? &probed : &status;
                int got = -1;

                MPI_OK(MPI_Get_elements(which, in.type, &got));
                CHECK_INT(got, 3 * n + cut);
                MPI_OK(MPI_Get_elements_x(which, in.type, &large));
                CHECK_INT(large, 3 * n + cut);
                MPI_OK(MPI_Get_count(which, record, &got));
                CHECK_INT(got, 0 == cut ? n : MPI_UNDEFINED);
                MPI_OK(MPI_Get_count(which, in.type, &got));
                CHECK_INT(got, 0 == cut && 0 == n % 2 ? n / 2 : MPI_UNDEFINED);
                MPI_OK(MPI_Get_elements(which, MPI_BYTE, &got));
                CHECK_INT(got, out.map->size);
            }
            VERIFY(in.buffer, (uint64_t) (mpitest_left() + 1), out.map->size);
        }
        side_free(&out);
        side_free(&in);
        MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    /* A status may be changed by hand; umrddt does not read it again. */
    MPI_OK(MPI_Status_set_elements(&status, record, 17));
    MPI_OK(MPI_Get_elements(&status, record, &count));
    CHECK_INT(count, 17);
    MPI_OK(MPI_Status_set_elements_x(&status, MPI_INT, 19));
    MPI_OK(MPI_Get_elements_x(&status, MPI_INT, &large));
    CHECK_INT(large, 19);
    MPI_OK(MPI_Status_set_cancelled(&status, 1));
    MPI_OK(MPI_Test_cancelled(&status, &count));
    CHECK_INT(count, 1);
    MPI_OK(MPI_Type_free(&two));
    MPI_OK(MPI_Type_free(&record));
}

/* Absolute addresses, of the heap, the stack and the program, in one message from MPI_BOTTOM. */
static void bottom(uint64_t *state)
{
    enum {
        WORDS = 700
    };
    static int fixed[2][WORDS];
    int automatic[2][WORDS], *heap = malloc(sizeof(int) * 2 * WORDS), i, j;
    int *out[3] = {fixed[0], automatic[0], heap}, *in[3] = {heap + WORDS, fixed[1], automatic[1]};
    int base = (int) mpitest_between(state, 0, 1000), lengths[3] = {1, 1, 1};
    MPI_Datatype every, types[3], send, receive;
    MPI_Aint at[3];
    MPI_Status status;

    CHECK(NULL != heap);
    for (i = 0; i < 3; ++i) {
        for (j = 0; j < WORDS; ++j) {
            out[i][j] = base + mpitest.rank * 1000000 + i * WORDS + j;
            in[i][j] = -1;
        }
    }
    /* Every other word. */
    MPI_OK(MPI_Type_vector(WORDS / 2, 1, 2, MPI_INT, &every));
    types[0] = types[1] = types[2] = every;
    for (i = 0; i < 3; ++i) {
        MPI_OK(MPI_Get_address(out[i], &at[i]));
    }
    MPI_OK(MPI_Type_create_struct(3, lengths, at, types, &send));
    for (i = 0; i < 3; ++i) {
        MPI_OK(MPI_Get_address(in[i], &at[i]));
    }
    MPI_OK(MPI_Type_create_struct(3, lengths, at, types, &receive));
    MPI_OK(MPI_Type_commit(&send));
    MPI_OK(MPI_Type_commit(&receive));
    MPI_OK(MPI_Sendrecv(MPI_BOTTOM, 1, send, mpitest_right(), 1, MPI_BOTTOM, 1, receive,
                        mpitest_left(), 1, MPI_COMM_WORLD, &status));
    CHECK_STATUS(&status, mpitest_left(), 1, 3 * WORDS / 2 * (int) sizeof(int));
    for (i = 0; i < 3; ++i) {
        for (j = 0; j < WORDS; ++j) {
            CHECK_INT(in[i][j], 0 == j % 2 ? base + mpitest_left() * 1000000 + i * WORDS + j : -1);
        }
    }
    MPI_OK(MPI_Type_free(&send));
    MPI_OK(MPI_Type_free(&receive));
    MPI_OK(MPI_Type_free(&every));
    free(heap);
}

int main(int argc, char **argv)
{
    static const mpitest_part_t parts[] = {
        {"constructors", constructors},
        {"resized", resized},
        {"read_twice", read_twice},
        {"pair_types", pair_types},
        {"long_doubles", long_doubles},
        {"freed_at_once", freed_at_once},
        {"attributes", attributes},
        {"packed", packed},
        {"elements", elements},
        {"bottom", bottom},
        {"predefined", types_predefined},
        {"wide", types_wide},
        {"wide_cut", types_wide_cut},
        {"uneven", types_uneven},
        {NULL, NULL},
    };

    mpitest_init(&argc, &argv, "types", 1, MPI_THREAD_SINGLE);
    mpitest_run(parts);
    return mpitest_finish();
}
