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
 * Forms of types without order: lists of blocks, and what only looks like one.
 */

#include "test_form.h"

#include "opal/datatype/opal_datatype_internal.h"

#include "opal/datatype/iov_cache/iov_cache_list.h"

/* The form of 12 doubles is the list of its IOVs; what is a part of one is copied. */
static void expect_view(const opal_iov_cache_form_t *form, const int *indices)
{
    opal_iov_cache_iov_t room[12];
    const opal_iov_cache_iov_t *view;
    uint64_t next;
    size_t n, i;

    view = opal_iov_cache_form_view(form, 0, 96, NULL, SIZE_MAX, &n, &next);
    assert_int_equal(12, n);
    assert_int_equal(96, next);
    for (i = 0; i < n; ++i) {
        assert_int_equal(8 * indices[i], view[i].offset);
        assert_int_equal(8, view[i].length);
    }
    assert_ptr_equal(view + 3, opal_iov_cache_form_view(form, 24, 96, NULL, 4, &n, &next));
    assert_int_equal(4, n);
    assert_int_equal(56, next);
    assert_ptr_equal(view + 11, opal_iov_cache_form_view(form, 88, 200, NULL, 4, &n, &next));
    assert_int_equal(1, n);
    assert_int_equal(96, next);
    assert_ptr_equal(room, opal_iov_cache_form_view(form, 24, 50, room, 12, &n, &next));
    assert_int_equal(4, n);
    assert_int_equal(2, room[3].length);
    assert_ptr_equal(room, opal_iov_cache_form_view(form, 25, 40, room, 12, &n, &next));
    assert_int_equal(2, n);
    assert_int_equal(40, next);
}

static void lists(void **state)
{
    const int indices[12] = {0, 5, 7, 25, 40, 13, 100, 95, 125, 129, 250, 2};
    opal_iov_cache_form_t *form;
    MPI_Datatype type;
    int many[300], i;

    (void) state;
    /* nothing regular: blocks */
    MPI_Type_create_indexed_block(12, 1, indices, MPI_DOUBLE, &type);
    form = make(type, 1);
    assert_int_equal(1, form->term_count);
    assert_int_equal(12, form->block_count);
    expect_term(form, 0, 0, 1, 0, 96, OPAL_IOV_CACHE_BLOCKS);
    assert_int_equal(8, form->uniform);
    expect_iov(form, 8 * 7 + 3, 8 * 95 + 3, 5);
    expect_view(form, indices);
    opal_iov_cache_form_free(form);

    /* and a stream of these */
    MPI_Type_create_indexed_block(12, 1, indices, MPI_DOUBLE, &type);
    form = make(resized(type, 0, 4096), 1000);
    assert_int_equal(1, form->term_count);
    expect_term(form, 0, 0, 1000, 4096, 96, OPAL_IOV_CACHE_BLOCKS);
    expect_iov(form, 96 * 500 + 8 * 7, 500 * 4096 + 8 * 95, 8);
    opal_iov_cache_form_free(form);

    /* runs of vectors */
    for (i = 0; i < 300; ++i) {
        many[i] = i < 100 ? 3 * i : i < 200 ? 1000 + 7 * i : 9000 - 2 * i;
    }
    MPI_Type_create_indexed_block(300, 1, many, MPI_DOUBLE, &type);
    form = make(type, 1);
    assert_int_equal(4, form->term_count);
    assert_int_equal(0, form->block_count);
    expect_term(form, 1, 0, 100, 24, 8, OPAL_IOV_CACHE_DENSE);
    expect_term(form, 2, 8 * 1700, 100, 56, 8, OPAL_IOV_CACHE_DENSE);
    expect_term(form, 3, 8 * 8600, 100, -16, 8, OPAL_IOV_CACHE_DENSE);
    opal_iov_cache_form_free(form);
}

/* Long lists, which are sampled first: the blocks are right whatever the samples say. */
static void scattered(void **state)
{
    enum {
        N = 5000
    };
    static int lengths[N], places[N];
    unsigned seed = 1, copies, i;
    int kind;

    (void) state;
    for (kind = 0; kind < 4; ++kind) {
        opal_iov_cache_form_t *form, *other;
        opal_iov_cache_iov_t *pieces = malloc(3 * N * sizeof(*pieces));
        MPI_Aint lb, extent;
        MPI_Datatype type;
        int place = 500;

        for (i = 0; i < N; ++i) {
            bool regular =
                1 == kind || (2 == kind && 2000 < i && 2300 > i) || (3 == kind && N / 2 > i);

            seed = seed * 1664525u + 1013904223u;
            lengths[i] = regular ? 2 : (int) (seed >> 28) % 5; /* also none */
            places[i] = place;
            place += lengths[i] + (regular ? 3 : (int) (seed >> 20) % 4); /* also none between */
        }
        for (i = 0; i < 40 && 0 == kind; ++i) {
            int other_place = places[100 * i];

            places[100 * i] = places[100 * i + 50]; /* not in order, and not in one direction */
            places[100 * i + 50] = other_place;
        }
        MPI_Type_indexed(N, lengths, places, MPI_INT, &type);
        MPI_Type_commit(&type);
        MPI_Type_get_extent(type, &lb, &extent);
        for (copies = 1; copies <= 3; copies += 2) {
            for (i = 0; i < N * copies; ++i) {
                pieces[i].offset = 4 * places[i % N] + extent * (i / N);
                pieces[i].length = 4 * (uint64_t) lengths[i % N];
            }
            assert_int_equal(OPAL_SUCCESS,
                             opal_iov_cache_form_create(opal_type(type), copies, &form));
            assert_int_equal(OPAL_SUCCESS,
                             opal_iov_cache_form_of_pieces(pieces, N * copies, &other));
            assert_null(opal_iov_cache_form_check(form));
            assert_true(opal_iov_cache_form_equal(form, other));
            /* one copy of the list, and nothing of it twice */
            assert_true(opal_iov_cache_form_bytes(form) < N * 17 + 4096);
            assert_int_equal(1 == kind, opal_iov_cache_form_bytes(form) < 1024);
            opal_iov_cache_form_free(form);
            opal_iov_cache_form_free(other);
        }
        MPI_Type_free(&type);
        free(pieces);
    }
}

/* Lists of equal blocks with something in them that is not: each of these leaves the quick way. */
static void nearly_equal(void **state)
{
    enum {
        N = 4000
    };
    static int lengths[N];
    static MPI_Aint places[N];
    static opal_iov_cache_iov_t pieces[N];
    unsigned seed = 3, kind, i;

    (void) state;
    for (kind = 0; kind < 10; ++kind) {
        opal_iov_cache_form_t *form, *other;
        MPI_Datatype type;
        MPI_Aint place = 0;

        for (i = 0; i < N; ++i) {
            seed = seed * 1664525u + 1013904223u;
            place += 24 + 8 * (MPI_Aint) (seed >> 26);
            places[i] = place;
            lengths[i] = 8 <= kind ? 1 + (int) (seed >> 25 & 1) : 2;
        }
        for (i = 0; i + 1 < N; i += 2) {
            MPI_Aint other_place = places[i]; /* back and forth */

            places[i] = places[N - 1 - i];
            places[N - 1 - i] = other_place;
        }
        if (1 == kind) {
            lengths[3 * N / 4] = 1; /* one is shorter */
        } else if (2 == kind) {
            places[N / 3 + 1] = places[N / 3] + 16; /* two are one */
        } else if (3 == kind) {
            places[N - 1] = (MPI_Aint) 5 << 60; /* one is far away, and so is the last */
            places[7] = -((MPI_Aint) 2 << 60);
        } else if (4 == kind || 9 == kind) {
            lengths[N / 2 + 1] = 1 << 28; /* one is long, and lies over the others */
        } else if (5 == kind) {
            lengths[N / 2 + 1] = 0;
        } else if (6 <= kind && 8 > kind) {
            places[3 + kind] = -800; /* the lowest and the highest, first or second of a pair */
            places[14 + kind] = place + 100000;
        }
        for (i = 0; i < N; ++i) {
            pieces[i].offset = places[i];
            pieces[i].length = 8 * (uint64_t) lengths[i];
        }
        MPI_Type_create_hindexed(N, lengths, places, MPI_DOUBLE, &type);
        form = make(type, 1);
        assert_int_equal(OPAL_SUCCESS, opal_iov_cache_form_of_pieces(pieces, N, &other));
        assert_true(opal_iov_cache_form_equal(form, other));
        assert_int_equal(opal_iov_cache_form_hash(form), opal_iov_cache_form_hash(other));
        assert_int_equal(2 == kind || 5 == kind ? N - 1 : N, form->segments);
        assert_int_equal(1 == kind || 2 == kind || 4 == kind || 8 <= kind ? 0 : 16, form->uniform);
        opal_iov_cache_form_free(form);
        opal_iov_cache_form_free(other);
    }
}

/* One thing that is unlike all others, at places where the loops that read descriptions begin, go
 * round and end: each must notice it, and nothing may be lost. */
static void odd_ones(void **state)
{
    enum {
        N = 2500,
        FIELDS = 5,
        ODD = 6
    };
    static const int odd_places[] = {0, 1, 37, N / 2, N - 2, N - 1};
    static int lengths[N + 200];
    static MPI_Aint places[N + 200];
    static MPI_Datatype types[N + 200];
    static opal_iov_cache_iov_t pieces[N + 200];
    unsigned seed = 7, kind, odd, where;
    int i, n;

    (void) state;
    for (kind = 0; kind < FIELDS; ++kind) {
        for (odd = 0; odd < ODD; ++odd) {
            for (where = 0; where < sizeof(odd_places) / sizeof(odd_places[0]); ++where) {
                opal_iov_cache_form_t *form, *other;
                MPI_Datatype type;
                MPI_Aint place = 0;

                for (i = n = 0; i < N; ++i, ++n) {
                    const bool here = i == odd_places[where];
                    MPI_Aint step;

                    seed = seed * 1664525u + 1013904223u;
                    step = 24 + 8 * (MPI_Aint) (seed >> 25);
                    lengths[n] = 2;
                    types[n] = MPI_INT;
                    if (1 == kind && seed >> 24 & 1) { /* two types of one length */
                        lengths[n] = 1;
                        types[n] = MPI_DOUBLE;
                    } else if (2 == kind) { /* two lengths */
                        lengths[n] = 1 + (int) (seed >> 24 & 1);
                    } else if (3 == kind && 0 != (seed >> 20) % 9) { /* runs */
                        step = 24;
                    } else if (4 == kind && 0 != (seed >> 20) % 9) { /* of two lengths */
                        step = 24;
                        lengths[n] = 0 < n ? lengths[n - 1] : 1;
                    } else if (4 == kind) {
                        lengths[n] = 1 + (int) (seed >> 24 & 1);
                    }
                    places[n] = place;
                    place += step;
                    if (here && 0 < odd && 3 > odd) {
                        place = places[n] + 4 * lengths[n]; /* the next one touches it */
                        if (MPI_DOUBLE == types[n]) {
                            place = places[n] + 8;
                        }
                        place += 2 == odd ? 1 : 0; /* or nearly so */
                    } else if (here && 3 == odd) {
                        types[n] = MPI_CHAR;
                    } else if (here && 4 == odd) {
                        lengths[n] = 3;
                        types[n] = MPI_INT;
                    } else if (here && 5 == odd) { /* a long run */
                        for (; n < i + 150; ++n) {
                            lengths[n + 1] = lengths[n];
                            types[n + 1] = types[n];
                            places[n + 1] = place = places[n] + 40;
                        }
                        place += 56;
                    }
                }
                for (i = 0; i < n; ++i) {
                    const uint64_t size = MPI_INT == types[i] ? 4 : MPI_CHAR == types[i] ? 1 : 8;

                    pieces[i].offset = places[i];
                    pieces[i].length = size * (uint64_t) lengths[i];
                }
                MPI_Type_create_struct(n, lengths, places, types, &type);
                form = make(type, 1);
                assert_int_equal(OPAL_SUCCESS, opal_iov_cache_form_of_pieces(pieces, n, &other));
                assert_null(opal_iov_cache_form_check(form));
                assert_true(opal_iov_cache_form_equal(form, other));
                assert_int_equal(form->segments, other->segments);
                assert_int_equal(form->uniform, other->uniform);
                opal_iov_cache_form_free(form);
                opal_iov_cache_form_free(other);
            }
        }
    }
}

/* Descriptions as opal does not write them now, since it joins what touches: all the same, no two
 * blocks of a form are one. */
static void touching(void **state)
{
    enum {
        N = 2100
    };
    static const int odd_places[] = {0, 1, 37, N / 2, N - 2, N - 1};
    static dt_elem_desc_t elements[N];
    static opal_iov_cache_iov_t pieces[2 * 17 * N];
    unsigned seed = 9, kind, odd, where, k;
    size_t n;
    int i;

    (void) state;
    for (kind = 0; kind < 6; ++kind) {
        for (odd = 0; odd < 5; ++odd) {
            for (where = 0; where < sizeof(odd_places) / sizeof(odd_places[0]); ++where) {
                dt_type_desc_t desc = {.length = N, .used = N, .desc = elements};
                opal_iov_cache_form_t *form, *other;
                opal_datatype_t type = {.size = 0};
                ptrdiff_t place = 1000;

                for (i = 0, n = 0; i < N; ++i) {
                    ddt_elem_desc_t *element = &elements[i].elem;
                    ptrdiff_t bytes;

                    seed = seed * 1664525u + 1013904223u;
                    element->common.flags = OPAL_DATATYPE_FLAG_DATA;
                    element->common.type =
                        1 == kind && seed >> 31 ? OPAL_DATATYPE_FLOAT4 : OPAL_DATATYPE_INT4;
                    element->count = 2 > kind   ? 2
                                     : 4 > kind ? 1 + (seed >> 24) % 3
                                                : 1 + (seed >> 24) % 17;
                    element->blocklen = kind & 1 && 1 < kind ? 1 + (seed >> 30 & 1) : 2;
                    bytes = 4 * (ptrdiff_t) element->blocklen;
                    element->extent = 1 == element->count /* of one block it says nothing */
                                          ? bytes
                                          : bytes + 4 + 4 * (ptrdiff_t) (seed >> 16 & 31);
                    if (1 == odd && i == odd_places[where]) {
                        element->extent = bytes;
                        element->count = 2;
                    } else if (3 == odd && i == odd_places[where]) {
                        element->blocklen = 0; /* and that is not read here at all */
                    }
                    if (2 == odd && 4 <= kind && i == odd_places[where]) {
                        element->count = 30; /* more than are written in any case */
                        element->extent = bytes + 4;
                    }
                    element->disp = place;
                    if (4 == odd && i == odd_places[where]) {
                        element->count = 0;
                        continue;
                    }
                    for (k = 0; k < element->count; ++k, ++n, place += element->extent) {
                        pieces[n].offset = place;
                        pieces[n].length = (uint64_t) bytes;
                        type.size += (size_t) bytes;
                    }
                    place += bytes - element->extent; /* to the end of the last block */
                    type.true_ub = place;
                    place += 2 == odd && i == odd_places[where] ? 0 : 4 + (seed >> 20 & 60);
                }
                type.true_lb = type.lb = 1000;
                type.ub = type.true_ub;
                for (k = 1; k < 3; ++k) {
                    const size_t once = n;
                    size_t j;

                    for (j = 0; j < once && 2 == k; ++j) {
                        pieces[once + j].offset = pieces[j].offset + (type.ub - type.lb);
                        pieces[once + j].length = pieces[j].length;
                    }
                    if (3 == odd) {
                        assert_int_equal(OPAL_ERR_NOT_SUPPORTED,
                                         opal_iov_cache_form_scattered(&type, &desc, k, &form));
                        continue;
                    }
                    assert_int_equal(OPAL_SUCCESS,
                                     opal_iov_cache_form_scattered(&type, &desc, k, &form));
                    assert_int_equal(OPAL_SUCCESS,
                                     opal_iov_cache_form_of_pieces(pieces, k * once, &other));
                    assert_null(opal_iov_cache_form_check(form));
                    assert_true(opal_iov_cache_form_equal(form, other));
                    assert_int_equal(form->segments, other->segments);
                    opal_iov_cache_form_free(form);
                    opal_iov_cache_form_free(other);
                }
            }
        }
    }
}

/* Long descriptions of blocks of all kinds: runs, two lengths, two basic types, types without any
 * bytes below and above all others, and all of that together. */
static void kinds_of_blocks(void **state)
{
    enum {
        N = 6000
    };
    static int lengths[N];
    static MPI_Aint places[N];
    static MPI_Datatype types[N];
    static opal_iov_cache_iov_t pieces[3 * N];
    unsigned seed = 5, kind, copies, i;
    MPI_Datatype nothing, type;

    (void) state;
    MPI_Type_contiguous(0, MPI_INT, &nothing);
    for (kind = 0; kind < 32; ++kind) {
        opal_iov_cache_form_t *form, *other;
        MPI_Aint place = 0, lb, extent;

        for (i = 0; i < N; ++i) {
            seed = seed * 1664525u + 1013904223u;
            lengths[i] = kind & 1 ? 1 + (int) (seed >> 31) : 2;
            types[i] = kind & 2 && seed >> 30 & 1 ? MPI_FLOAT : MPI_INT;
            types[i] = 8 == kind && seed >> 30 & 1 ? MPI_DOUBLE : types[i];
            lengths[i] = MPI_DOUBLE == types[i] ? 1 : lengths[i];
            places[i] = place;
            place += kind & 4 && (seed >> 20) % 11 ? 12 : 12 + 4 * (MPI_Aint) ((seed >> 24) % 97);
        }
        for (i = 0; i < N && kind & 8; i += 2) {
            MPI_Aint other_place = places[i];

            places[i] = places[N - 1 - i];
            places[N - 1 - i] = other_place;
        }
        if (kind & 16) {
            types[0] = types[N / 2] = types[N - 1] = nothing;
            places[0] = -(MPI_Aint) MIB;
            places[N / 2] = 2 * place;
            places[N - 1] = -1;
        }
        MPI_Type_create_struct(N, lengths, places, types, &type);
        MPI_Type_commit(&type);
        MPI_Type_get_extent(type, &lb, &extent);
        for (copies = 1; copies <= 3; copies += 2) {
            for (i = 0; i < N * copies; ++i) {
                const unsigned k = i % N;

                pieces[i].offset = places[k] + extent * (i / N);
                pieces[i].length = nothing == types[k]      ? 0
                                   : MPI_DOUBLE == types[k] ? 8
                                                            : 4 * (uint64_t) lengths[k];
            }
            assert_int_equal(OPAL_SUCCESS,
                             opal_iov_cache_form_create(opal_type(type), copies, &form));
            assert_int_equal(OPAL_SUCCESS,
                             opal_iov_cache_form_of_pieces(pieces, N * copies, &other));
            assert_null(opal_iov_cache_form_check(form));
            assert_true(opal_iov_cache_form_equal(form, other));
            assert_int_equal(opal_iov_cache_form_key(form), opal_iov_cache_form_key(other));
            for (i = 0; i < N * copies; i += 1 + i % 7) {
                uint64_t at = opal_iov_cache_form_segment_start(form, i % form->segments);

                assert_int_equal(i % form->segments, opal_iov_cache_form_segment_at(form, at));
                assert_int_equal(opal_iov_cache_form_offset(other, at),
                                 opal_iov_cache_form_offset(form, at));
            }
            opal_iov_cache_form_free(form);
            opal_iov_cache_form_free(other);
        }
        MPI_Type_free(&type);
    }
    MPI_Type_free(&nothing);
}

/* Multiples of a number modulo another seem to have order wherever one looks, and have none that
 * makes them shorter: one list, and no more bytes than that. */
static void seeming_order(void **state)
{
    enum {
        N = 65536
    };
    int *places = malloc(N * sizeof(*places));
    opal_iov_cache_form_t *form;
    MPI_Datatype type;
    unsigned i;

    (void) state;
    for (i = 0; i < N; ++i) {
        places[i] = 3 * (int) (i * 40503u % N);
    }
    MPI_Type_create_indexed_block(N, 2, places, MPI_INT, &type);
    form = make(type, 1);
    assert_int_equal(1, form->term_count);
    assert_int_equal(N, form->block_count);
    assert_int_equal(N, form->segments);
    for (i = 0; i < N; i += 997) {
        expect_iov(form, 8 * (uint64_t) i, 4 * places[i], 8);
    }
    opal_iov_cache_form_free(form);

    /* the same within something larger */
    MPI_Type_create_indexed_block(N, 2, places, MPI_INT, &type);
    form = make(hvector(type, 3, 5 * MIB), 1);
    assert_int_equal(1, form->term_count);
    assert_int_equal(N, form->block_count);
    assert_int_equal(3 * N, form->segments);
    expect_iov(form, 8 * (2 * N + 997), 10 * MIB + 4 * places[997], 8);
    opal_iov_cache_form_free(form);

    /* 30 places without order, again and again: that is one */
    for (i = 0; i < N; ++i) {
        places[i] = 900 * (int) (i / 30) + 3 * (int) (i % 30 * (i % 30) * 37u % 293u);
    }
    MPI_Type_create_indexed_block(N / 30 * 30, 2, places, MPI_INT, &type);
    form = make(type, 1);
    assert_true(1024 > opal_iov_cache_form_bytes(form));
    assert_int_equal(N / 30 * 30, form->segments);
    opal_iov_cache_form_free(form);
    free(places);
}

/* What comes again, but further away than an offset can say, is no stream. (Two repetitions of two;
 * a received layout may have any content.) */
static void far_apart(void **state)
{
    const int64_t far = INT64_MAX - 100;
    opal_iov_cache_list_t list = {0};
    int i;

    (void) state;
    for (i = 0; i < 4; ++i) {
        assert_int_equal(OPAL_SUCCESS,
                         opal_iov_cache_list_add_block(&list, (2 > i ? -200 : far) + i % 2 * 16,
                                                       0 == i % 2 ? 8 : 4));
    }
    assert_int_equal(OPAL_SUCCESS, opal_iov_cache_list_finish(&list));
    assert_int_equal(4, list.count);
    for (i = 0; i < 4; ++i) {
        assert_int_equal((2 > i ? -200 : far) + i % 2 * 16, list.items[i].offset);
        assert_int_equal(1, list.items[i].count);
    }
    opal_iov_cache_list_clear(&list);
}

/* Elements of many blocks that the samples miss: terms, and not a list of their blocks. */
static void crowded(void **state)
{
    enum {
        N = 4000,
        MANY = 1000000
    };
    static int lengths[N], places[N];
    MPI_Datatype parts[3], type;
    const int one[3] = {1, 1, 1};
    MPI_Aint where[3] = {0, 0, 0};
    opal_iov_cache_form_t *form;
    unsigned seed = 3;
    int place = 0, i;

    (void) state;
    for (i = 0; i < N; ++i) {
        seed = seed * 1664525u + 1013904223u;
        lengths[i] = 1 + (int) (seed >> 28) % 4;
        places[i] = place;
        place += lengths[i] + 1 + (int) (seed >> 20) % 40;
    }
    MPI_Type_indexed(N, lengths, places, MPI_INT, &parts[0]);
    MPI_Type_vector(MANY, 1, 3, MPI_INT, &parts[1]);
    MPI_Type_indexed(N / 4, lengths, places, MPI_INT, &parts[2]);
    where[1] = 4 * (MPI_Aint) place;
    where[2] = where[1] + 12 * (MPI_Aint) MANY;
    MPI_Type_create_struct(3, one, where, parts, &type);
    MPI_Type_commit(&type);
    assert_int_equal(OPAL_SUCCESS, opal_iov_cache_form_create(&type->super, 1, &form));
    assert_null(opal_iov_cache_form_check(form));
    assert_int_equal(N + N / 4 + MANY, form->segments);
    assert_true(2 * N > form->block_count + form->term_count);
    opal_iov_cache_form_free(form);
    for (i = 0; i < 3; ++i) {
        MPI_Type_free(&parts[i]);
    }
    MPI_Type_free(&type);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists),         cmocka_unit_test(scattered),
        cmocka_unit_test(nearly_equal),  cmocka_unit_test(kinds_of_blocks),
        cmocka_unit_test(seeming_order), cmocka_unit_test(odd_ones),
        cmocka_unit_test(touching),      cmocka_unit_test(far_apart),
        cmocka_unit_test(crowded),
    };
    int failed;

    singleton_init(MPI_THREAD_SINGLE);
    failed = cmocka_run_group_tests_name("lists", tests, NULL, NULL);
    MPI_Finalize();
    return failed;
}
