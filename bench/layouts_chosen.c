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
 * Layouts that a user has named: of the table, or in words (layout_words.h).
 */

#include <stdio.h>
#include <string.h>

#include "bench_util.h"
#include "layouts.h"

/* ---------------------------------------------------------------------------------------------
 * Of words: the type is made as an application would, the pieces by plain loops
 * ------------------------------------------------------------------------------------------- */

/* A type of so many bytes, as one piece. */
static MPI_Datatype bytes_of(uint64_t bytes)
{
    MPI_Datatype type;

    MPI_Type_contiguous((int) bytes, MPI_BYTE, &type);
    return type;
}

static void make_contiguous(const layout_words_t *words, bench_side_t *side)
{
    bench_side_set_type(side, bytes_of(words->bytes), 1, 0, words->bytes);
    bench_side_add(side, 0, words->bytes);
}

static void make_vector(const layout_words_t *words, bench_side_t *side)
{
    MPI_Datatype block = bytes_of(words->bytes), type;

    MPI_Type_create_hvector((int) words->count, 1, (MPI_Aint) words->stride, block, &type);
    MPI_Type_free(&block);
    bench_side_set_type(side, type, 1, 0, words->stride * words->count);
    for (uint64_t i = 0; i < words->count; ++i) {
        bench_side_add(side, (int64_t) (i * words->stride), words->bytes);
    }
}

static void make_subarray(const layout_words_t *words, bench_side_t *side)
{
    const unsigned last = words->directions - 1;
    int whole[LAYOUT_DIRECTIONS], part[LAYOUT_DIRECTIONS], at[LAYOUT_DIRECTIONS];
    uint64_t index[LAYOUT_DIRECTIONS] = {0}, room = words->bytes;
    MPI_Datatype element = bytes_of(words->bytes), type;
    bool more = true;

    for (unsigned i = 0; i <= last; ++i) {
        whole[i] = (int) words->whole[i];
        part[i] = (int) words->part[i];
        at[i] = (int) words->at[i];
        room *= words->whole[i];
    }
    MPI_Type_create_subarray((int) words->directions, whole, part, at, MPI_ORDER_C, element, &type);
    MPI_Type_free(&element);
    bench_side_set_type(side, type, 1, 0, room);
    while (more) {
        uint64_t offset = 0;

        for (unsigned i = 0; i <= last; ++i) {
            offset = offset * words->whole[i] + words->at[i] + index[i];
        }
        bench_side_add(side, (int64_t) (offset * words->bytes), words->part[last] * words->bytes);
        more = false;
        for (unsigned i = last; !more && 0 < i--;) {
            more = ++index[i] < words->part[i];
            index[i] = more ? index[i] : 0;
        }
    }
}

static void make_indexed(const layout_words_t *words, bench_side_t *side)
{
    int *lengths = bench_alloc(words->count * sizeof(int));
    MPI_Aint *places = bench_alloc(words->count * sizeof(MPI_Aint));
    uint64_t room = 0;
    MPI_Datatype type;

    for (uint64_t i = 0; i < words->count; ++i) {
        const layout_piece_t *piece = &words->pieces[i];

        lengths[i] = (int) piece->length;
        places[i] = (MPI_Aint) piece->offset;
        room = room < piece->offset + piece->length ? piece->offset + piece->length : room;
        bench_side_add(side, (int64_t) piece->offset, piece->length);
    }
    MPI_Type_create_hindexed((int) words->count, lengths, places, MPI_BYTE, &type);
    bench_side_set_type(side, type, 1, 0, room);
    free(places);
    free(lengths);
}

static void make(const layout_words_t *words, bench_layout_t *layout)
{
    static void (*const makers[])(const layout_words_t *, bench_side_t *) = {
        [LAYOUT_CONTIGUOUS] = make_contiguous,
        [LAYOUT_VECTOR] = make_vector,
        [LAYOUT_SUBARRAY] = make_subarray,
        [LAYOUT_INDEXED] = make_indexed,
    };

    makers[words->kind](words, &layout->send);
    makers[words->kind](words, &layout->recv);
}

void bench_chosen_create(const bench_chosen_t *chosen, bench_layout_t *layout)
{
    if (NULL != chosen->entry) {
        bench_layout_create(chosen->entry, layout);
        return;
    }
    memset(layout, 0, sizeof(*layout));
    make(&chosen->words, layout);
    bench_layout_check(chosen->name, layout);
}

/* ---------------------------------------------------------------------------------------------
 * Which ones
 * ------------------------------------------------------------------------------------------- */

/* Mark the layouts of the table that a glob means. @return false: there is none */
static bool mark(const char *glob, bool *marked)
{
    bool any = false;

    for (size_t i = 0; i < bench_layout_all; ++i) {
        if (bench_layout_is_meant(i, glob)) {
            marked[i] = true;
            any = true;
        }
    }
    return any;
}

static bench_chosen_t *append(bench_chosen_list_t *list)
{
    list->all = bench_realloc(list->all, (list->count + 1) * sizeof(*list->all));
    memset(&list->all[list->count], 0, sizeof(*list->all));
    return &list->all[list->count++];
}

/* An item of the list. @return behind it; NULL: it means nothing */
static const char *choose(const char *at, const char *whole, bool *marked,
                          bench_chosen_list_t *list, char *error)
{
    size_t length = strcspn(at, ",");
    char glob[128];

    if (layout_words_begin(at)) {
        bench_chosen_t *chosen = append(list);

        at = layout_words_read(at, whole, &chosen->words, error);
        if (NULL == at) {
            --list->count;
        }
        return at;
    }
    (void) snprintf(glob, sizeof(glob), "%.*s", (int) length, at);
    if (sizeof(glob) <= length || !mark(glob, marked)) {
        (void) snprintf(error, LAYOUT_ERROR,
                        "unknown layout '%s'; umrddt_bench --list prints the names, and --help "
                        "describes other layouts, such as 'vector 128 x 1024 stride 2048'",
                        glob);
        return NULL;
    }
    return at + length;
}

bool bench_chosen_read(const char *text, bench_chosen_list_t *list, char error[LAYOUT_ERROR])
{
    bool *marked = bench_alloc(bench_layout_all * sizeof(bool));
    bench_chosen_list_t said = {NULL, 0};
    const char *at = text;

    memset(marked, 0, bench_layout_all * sizeof(bool));
    list->all = NULL;
    list->count = 0;
    do {
        at = choose(at, text, marked, &said, error);
    } while (NULL != at && ',' == *at++);
    for (size_t i = 0; NULL != at && i < bench_layout_all; ++i) {
        if (marked[i]) {
            append(list)->entry = &bench_layout_table[i];
        }
    }
    for (size_t i = 0; i < said.count; ++i) {
        if (NULL == at) {
            layout_words_free(&said.all[i].words);
        } else {
            *append(list) = said.all[i];
        }
    }
    for (size_t i = 0; i < list->count; ++i) {
        bench_chosen_t *chosen = &list->all[i];

        chosen->name = NULL == chosen->entry ? chosen->words.name : chosen->entry->name;
    }
    free(said.all);
    free(marked);
    return NULL != at;
}

void bench_chosen_drop(bench_chosen_list_t *list, size_t which)
{
    layout_words_free(&list->all[which].words);
    --list->count;
    memmove(&list->all[which], &list->all[which + 1], (list->count - which) * sizeof(*list->all));
    for (size_t i = which; i < list->count; ++i) {
        if (NULL == list->all[i].entry) {
            list->all[i].name = list->all[i].words.name; /* which has moved */
        }
    }
}

void bench_chosen_free(bench_chosen_list_t *list)
{
    for (size_t i = 0; i < list->count; ++i) {
        layout_words_free(&list->all[i].words);
    }
    free(list->all);
    list->all = NULL;
    list->count = 0;
}
