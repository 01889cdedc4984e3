/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "stress_corpus.h"

#include "../common/typegen.h"
#include "pvars.h"
#include "stress_comms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES 512

static stress_entry_t entries[ENTRIES];
static int entry_count;

/* The entries of a family, by size. */
static struct {
    int first;
    int count;
} families[STRESS_FAMILIES];

/* Sizes of byte messages, and their relative frequency. */
static struct {
    long bytes;
    int weight;
} sizes[64];
static int size_count;

static void add_size(long bytes, int weight)
{
    int i;

    for (i = 0; i < size_count; ++i) {
        if (sizes[i].bytes == bytes) {
            return;
        }
    }
    if (0 <= bytes && (int) (sizeof(sizes) / sizeof(sizes[0])) > size_count) {
        sizes[size_count].bytes = bytes;
        sizes[size_count++].weight = weight;
    }
}

/* Around the sizes of envelopes, the minimum size of umrddt, eager limits of the base PMLs, pages
 * and windows. */
static void collect_sizes(void)
{
    static const long small[] = {0, 1, 8, 64, 103, 104, 105, 208, 500};
    static const long large[] = {2000, 4000, 4096, 4097, 8191, 8192, 9000, 12289, 16384, 30000};
    static const long huge[] = {65536, 100000, 300001};
    static const char *const limits[] = {"btl_vader_eager_limit", "btl_sm_eager_limit"};
    long min_size = pvars_parameter("pml_umrddt_min_size", 1024);
    size_t i;
    long d;

    size_count = 0;
    for (i = 0; i < sizeof(small) / sizeof(small[0]); ++i) {
        add_size(small[i], 6);
    }
    for (d = -1; d <= 1; ++d) {
        add_size(1 << 20 > min_size ? min_size + d : 1024 + d, 8);
    }
    for (i = 0; i < sizeof(limits) / sizeof(limits[0]); ++i) {
        long eager = pvars_parameter(limits[i], 0);

        for (d = -1; d <= 1 && 64 < eager && 1 << 20 > eager; ++d) {
            add_size(eager + d, 3);
            add_size(eager - 32 + d, 2); /* with the headers of the btl and of ob1 */
        }
    }
    for (i = 0; i < sizeof(large) / sizeof(large[0]); ++i) {
        add_size(large[i], 3);
    }
    for (i = 0; i < sizeof(huge) / sizeof(huge[0]); ++i) {
        add_size(huge[i], 1);
    }
}

static bool is_flat(const mpitest_map_t *map)
{
    return 0 == map->run_count || (1 == map->run_count && 0 == map->runs[0].stream);
}

/* Open MPI counts a type's elements at the first query, and threads that query at once get a table
 * that another one is still filling. */
static void count_elements(MPI_Datatype type)
{
    MPI_Status status;
    int size, elements;

    MPI_OK(MPI_Type_size(type, &size));
    MPI_OK(MPI_Status_set_elements(&status, MPI_BYTE, size));
    MPI_OK(MPI_Get_elements(&status, type, &elements));
}

/* Takes ownership of a type. It is refused (and freed) if it cannot be used here. */
static bool add_entry(MPI_Datatype type, int count, int unit, int family, const char *name)
{
    stress_entry_t *entry = &entries[entry_count];

    CHECK(ENTRIES > entry_count);
    entry->type = type;
    entry->count = count;
    entry->map = mpitest_map(type, count);
    entry->bytes = entry->map->size;
    entry->unit = unit;
    entry->flat = is_flat(entry->map);
    entry->family = family;
    snprintf(entry->name, sizeof(entry->name), "%s", name);
    if (entry->flat && 0 != entry->map->lb && stress_on_ucx()) {
        /* pml/ucx of Open MPI 4.1.4 assumes that a contiguous type begins at its address. */
        mpitest_map_free(entry->map);
        MPI_OK(MPI_Type_free(&entry->type));
        return false;
    }
    count_elements(type);
    ++entry_count;
    return true;
}

static bool add_bytes(uint64_t *state, long bytes)
{
    mpitest_kind_t kind = (mpitest_kind_t) mpitest_between(state, 0, MPITEST_KINDS - 1);
    char name[64];

    if (MPITEST_WIDE == kind && 3000 < bytes) {
        kind = MPITEST_COARSE;
    }
    snprintf(name, sizeof(name), "%s/%ld", mpitest_kind_name(kind), bytes);
    return add_entry(mpitest_type(kind, (int) bytes, mpitest_random(state)), 1, 1, STRESS_BYTES,
                     name);
}

/*
 * Open MPI 5.0.7 alone packs and unpacks one in a thousand nested types wrongly if it does so in
 * several pieces (see also pairs.c): there they are kept below the smallest piece.
 */
static size_t in_one_piece(size_t elements, size_t bytes_each)
{
    size_t most = 4000 / bytes_each;

    return 5 <= OMPI_MAJOR_VERSION && most < elements ? most : elements;
}

static void add_generated(typegen_rng_t *rng, size_t low, size_t high)
{
    typegen_options_t options = TYPEGEN_OPTIONS_DEFAULT;
    typegen_side_t side;
    MPI_Datatype type;
    char name[64];

    options.bytes_only = true;
    options.min_elements = low;
    options.max_elements = in_one_piece(high, 1);
    options.max_span = 200000;
    typegen_random(rng, &options, &side);
    snprintf(name, sizeof(name), "random/%llu", (unsigned long long) side.size);
    MPI_OK(MPI_Type_dup(side.type, &type));
    add_entry(type, side.count, 1, STRESS_BYTES, name);
    typegen_side_free(&side);
}

/* Ints in blocks with gaps, several of them in a message: counts that are not multiples. */
static void add_ints(uint64_t *state)
{
    int block = (int) mpitest_between(state, 1, 7), blocks = (int) mpitest_between(state, 1, 40);
    int count = (int) mpitest_between(state, 1, 20);
    MPI_Datatype type;
    char name[64];

    MPI_OK(
        MPI_Type_vector(blocks, block, block + (int) mpitest_between(state, 0, 4), MPI_INT, &type));
    MPI_OK(MPI_Type_commit(&type));
    snprintf(name, sizeof(name), "int/%dx%dx%d", count, blocks, block);
    add_entry(type, count, (int) sizeof(int), STRESS_INTS, name);
}

static void add_pair(typegen_rng_t *rng, int family)
{
    typegen_options_t options = TYPEGEN_OPTIONS_DEFAULT;
    typegen_side_t sides[2];
    MPI_Datatype type;
    char name[64];
    int i;

    options.max_elements = in_one_piece(typegen_once_in(rng, 3) ? 6000 : 300, 16);
    options.max_span = 300000;
    typegen_pair(rng, &options, &sides[0], &sides[1]);
    for (i = 0; i < 2; ++i) {
        snprintf(name, sizeof(name), "pair%d.%d/%llu", family, i,
                 (unsigned long long) sides[i].size);
        MPI_OK(MPI_Type_dup(sides[i].type, &type));
        add_entry(type, sides[i].count, 0, family, name);
        typegen_side_free(&sides[i]);
    }
}

static int by_size(const void *a, const void *b)
{
    long left = ((const stress_entry_t *) a)->bytes, right = ((const stress_entry_t *) b)->bytes;

    return left < right ? -1 : left > right;
}

/* The types that were added since 'first' are a family. */
static void close_family(int family, int first)
{
    families[family].first = first;
    families[family].count = entry_count - first;
    CHECK(0 < families[family].count);
    qsort(&entries[first], (size_t) families[family].count, sizeof(entries[0]), by_size);
}

void stress_corpus_make(uint64_t seed)
{
    uint64_t state = seed;
    typegen_rng_t rng;
    int i, j, first;

    typegen_seed(&rng, seed);
    collect_sizes();
    entry_count = 0;
    for (i = 0; i < size_count; ++i) {
        for (j = 0; j < (1 == sizes[i].weight ? 2 : 4);) {
            j += add_bytes(&state, sizes[i].bytes) ? 1 : 0;
        }
    }
    for (i = 0; i < 48; ++i) {
        add_generated(&rng, 1, (size_t) 1 << mpitest_between(&state, 1, 14));
    }
    close_family(STRESS_BYTES, 0);
    first = entry_count;
    for (i = 0; i < 32; ++i) {
        add_ints(&state);
    }
    close_family(STRESS_INTS, first);
    for (i = STRESS_PAIRS; i < STRESS_FAMILIES; ++i) {
        first = entry_count;
        while (first == entry_count) {
            add_pair(&rng, i);
        }
        close_family(i, first);
    }
}

void stress_corpus_free(void)
{
    int i;

    for (i = 0; i < entry_count; ++i) {
        mpitest_map_free(entries[i].map);
        MPI_OK(MPI_Type_free(&entries[i].type));
    }
    entry_count = 0;
}

const stress_entry_t *stress_entry(int number)
{
    return &entries[number];
}

/* Number of entries of a family that are smaller than this many bytes. */
static int smaller(int family, long bytes)
{
    int low = 0, high = families[family].count;

    while (low < high) {
        int middle = (low + high) / 2;

        if (entries[families[family].first + middle].bytes < bytes) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

int stress_draw_sender(uint64_t *state, int family, long limit)
{
    int count = families[family].count, first = families[family].first, total = 0, i, low;
    long drawn, bytes = 0;

    if (STRESS_BYTES == family && 0 != mpitest_random(state) % 4) {
        for (i = 0; i < size_count; ++i) {
            total += sizes[i].weight;
        }
        drawn = mpitest_between(state, 0, total - 1);
        for (i = 0; 0 <= drawn; ++i) {
            drawn -= sizes[i].weight;
            bytes = sizes[i].bytes;
        }
        if (bytes <= limit) {
            low = smaller(family, bytes);
            return first + low
                   + (int) mpitest_between(state, 0, smaller(family, bytes + 1) - low - 1);
        }
    }
    low = smaller(family, limit + 1);
    return first + (int) mpitest_between(state, 0, (0 < low ? low : count) - 1);
}

int stress_draw_room(uint64_t *state, int family, long bytes)
{
    int count = families[family].count, low = smaller(family, bytes), high = count - 1;

    CHECK(low < count);
    if (0 != mpitest_random(state) % 4 && low + 6 < high) {
        high = low + 6; /* mostly not much more than required */
    }
    return families[family].first + (int) mpitest_between(state, low, high);
}

int stress_draw_short(uint64_t *state, int family, long least, long bytes)
{
    int low = smaller(family, least), high = smaller(family, bytes) - 1;

    if (low > high) {
        return stress_draw_room(state, family, least);
    }
    return families[family].first + (int) mpitest_between(state, low, high);
}
