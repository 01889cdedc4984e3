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
 * Rates of the layout engine by families of datatypes, one for each MPI constructor, as in the
 * tests and papers of Yaksa: packing, lists of pieces (IOVs), flattening. One process, in system
 * memory, no messages; the times are processor time (bench_alternate).
 *
 *     bench_families [FAMILY ...]
 *
 * Each family has about the same amount of data, in blocks of three lengths. Packed data is
 * compared with MPI_Pack.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "opal_config.h"
#include "ompi/datatype/ompi_datatype.h"
#include "opal/constants.h"

#include "opal/datatype/iov_cache/iov_cache.h"

#include "bench_times.h"
#include "bench_util.h"

/* Bytes of data, about. */
#define DATA (256 * 1024)

/* Of a subarray's slowest direction. */
#define SLABS 16

/* Where irregular ones have their blocks, in ints, and how long they are. */
typedef struct blocks_t {
    int count;
    int ints; /* of a block, or about */
    int *places, *lengths;
    MPI_Aint *bytes;
    MPI_Datatype *fields;
} blocks_t;

/* ---- families ---- */

static void contig(const blocks_t *blocks, MPI_Datatype *type)
{
    MPI_Type_contiguous(blocks->count * blocks->ints, MPI_INT, type);
}

static void resized(const blocks_t *blocks, MPI_Datatype *type)
{
    MPI_Datatype block, apart;

    MPI_Type_contiguous(blocks->ints, MPI_INT, &block);
    MPI_Type_create_resized(block, 0, 8 * (MPI_Aint) blocks->ints, &apart);
    MPI_Type_contiguous(blocks->count, apart, type);
    MPI_Type_free(&apart);
    MPI_Type_free(&block);
}

static void vector(const blocks_t *blocks, MPI_Datatype *type)
{
    MPI_Type_vector(blocks->count, blocks->ints, 2 * blocks->ints, MPI_INT, type);
}

static void hvector(const blocks_t *blocks, MPI_Datatype *type)
{
    MPI_Type_create_hvector(blocks->count, blocks->ints, 8 * (MPI_Aint) blocks->ints + 4, MPI_INT,
                            type);
}

static void subarray(const blocks_t *blocks, MPI_Datatype *type)
{
    const int rows = blocks->count / SLABS, start[3] = {1, 1, blocks->ints / 2};
    const int part[3] = {SLABS, rows, blocks->ints};
    const int whole[3] = {SLABS + 2, rows + 2, 2 * blocks->ints};

    MPI_Type_create_subarray(3, whole, part, start, MPI_ORDER_C, MPI_INT, type);
}

static void indexed_block(const blocks_t *blocks, MPI_Datatype *type)
{
    MPI_Type_create_indexed_block(blocks->count, blocks->ints, blocks->places, MPI_INT, type);
}

static void hindexed_block(const blocks_t *blocks, MPI_Datatype *type)
{
    MPI_Type_create_hindexed_block(blocks->count, blocks->ints, blocks->bytes, MPI_INT, type);
}

static void indexed(const blocks_t *blocks, MPI_Datatype *type)
{
    MPI_Type_indexed(blocks->count, blocks->lengths, blocks->places, MPI_INT, type);
}

static void hindexed(const blocks_t *blocks, MPI_Datatype *type)
{
    MPI_Type_create_hindexed(blocks->count, blocks->lengths, blocks->bytes, MPI_INT, type);
}

static void structure(const blocks_t *blocks, MPI_Datatype *type)
{
    MPI_Type_create_struct(blocks->count, blocks->lengths, blocks->bytes, blocks->fields, type);
}

static const struct {
    const char *name;
    void (*make)(const blocks_t *blocks, MPI_Datatype *type);
} families[] = {
    {"contig", contig},
    {"resized", resized},
    {"vector", vector},
    {"hvector", hvector},
    {"subarray", subarray},
    {"indexed_block", indexed_block},
    {"hindexed_block", hindexed_block},
    {"indexed", indexed},
    {"hindexed", hindexed},
    {"struct", structure},
};

/* In ascending order, gaps of another length behind each; lengths from half of the usual one to one
 * and a half of it. */
static void blocks_make(int ints, blocks_t *blocks)
{
    uint64_t seed = 5;
    int place = 0;

    blocks->ints = ints;
    blocks->count = DATA / 4 / ints;
    blocks->places = bench_alloc(sizeof(int) * (size_t) blocks->count);
    blocks->lengths = bench_alloc(sizeof(int) * (size_t) blocks->count);
    blocks->bytes = bench_alloc(sizeof(MPI_Aint) * (size_t) blocks->count);
    blocks->fields = bench_alloc(sizeof(MPI_Datatype) * (size_t) blocks->count);
    for (int i = 0; i < blocks->count; ++i) {
        blocks->places[i] = place;
        blocks->bytes[i] = 4 * (MPI_Aint) place;
        blocks->lengths[i] = ints / 2 + (int) (bench_random(&seed) % (unsigned) (ints + 1));
        blocks->fields[i] = 0 == i % 2 ? MPI_INT : MPI_FLOAT;
        place += ints + ints / 2 + 1 + (int) (bench_random(&seed) % (unsigned) ints);
    }
}

static void blocks_free(blocks_t *blocks)
{
    free(blocks->places);
    free(blocks->lengths);
    free(blocks->bytes);
    free(blocks->fields);
}

/* ---- timed operations ---- */

typedef struct rates_t {
    MPI_Datatype type;
    opal_iov_cache_form_t *form;
    char *array, *stream;
    opal_iov_cache_iov_t *iovs;
    void *flattened;
    size_t flattened_bytes;
} rates_t;

static void pack(void *context)
{
    rates_t *rates = context;

    opal_iov_cache_form_pack(rates->form, rates->array, 0, rates->form->size, rates->stream);
}

static void unpack(void *context)
{
    rates_t *rates = context;

    opal_iov_cache_form_unpack(rates->form, rates->array, 0, rates->form->size, rates->stream);
}

static void iovs(void *context)
{
    rates_t *rates = context;
    uint64_t next;

    opal_iov_cache_form_iovs(rates->form, 0, rates->form->size, rates->iovs, rates->form->segments,
                             &next);
}

/* Of a type that has not been seen. */
static void first_iovs(void *context)
{
    rates_t *rates = context;
    opal_iov_cache_form_t *form;
    uint64_t next;

    opal_iov_cache_form_create(&rates->type->super, 1, &form);
    opal_iov_cache_form_iovs(form, 0, form->size, rates->iovs, form->segments, &next);
    opal_iov_cache_form_free(form);
}

static void flatten(void *context)
{
    rates_t *rates = context;

    opal_iov_cache_form_flatten(rates->form, rates->flattened, rates->flattened_bytes);
}

static void unflatten(void *context)
{
    rates_t *rates = context;
    opal_iov_cache_form_t *form;

    if (OPAL_SUCCESS
        != opal_iov_cache_form_unflatten(rates->flattened, rates->flattened_bytes, &form)) {
        bench_fatal("a flattened form is invalid");
    }
    opal_iov_cache_form_free(form);
}

/* Packed and unpacked again, as MPI does it. */
static void check(rates_t *rates, size_t span)
{
    const size_t size = (size_t) rates->form->size;
    char *array = bench_alloc(span), *stream = bench_alloc(size);
    int position = 0;

    for (size_t i = 0; i < span; ++i) {
        rates->array[i] = (char) (i * 2654435761u >> 11);
    }
    memcpy(array, rates->array, span);
    MPI_Pack(array, 1, rates->type, stream, (int) size, &position, MPI_COMM_SELF);
    pack(rates);
    if ((size_t) position != size || 0 != memcmp(stream, rates->stream, size)) {
        bench_fatal("packed bytes differ from those of MPI");
    }
    for (size_t i = 0; i < size; ++i) {
        stream[i] = rates->stream[i] = (char) (i * 40503u >> 3);
    }
    position = 0;
    MPI_Unpack(stream, (int) size, &position, array, 1, rates->type, MPI_COMM_SELF);
    unpack(rates);
    if (0 != memcmp(array, rates->array, span)) {
        bench_fatal("unpacked bytes differ from those of MPI");
    }
    free(stream);
    free(array);
}

static void measure(const char *name, int block, MPI_Datatype type)
{
    double pack_us, unpack_us, iovs_us, first_us, flatten_us, unflatten_us, size, segments;
    rates_t rates = {.type = type};
    MPI_Aint low, extent;

    MPI_Type_commit(&rates.type);
    MPI_Type_get_true_extent(rates.type, &low, &extent);
    if (OPAL_SUCCESS != opal_iov_cache_form_create(&rates.type->super, 1, &rates.form)) {
        bench_fatal("no form");
    }
    size = (double) rates.form->size;
    segments = (double) rates.form->segments;
    rates.array = bench_alloc((size_t) (low + extent));
    rates.stream = bench_alloc((size_t) rates.form->size);
    rates.iovs = bench_alloc(rates.form->segments * sizeof(*rates.iovs));
    rates.flattened_bytes = opal_iov_cache_form_flatten(rates.form, NULL, 0);
    rates.flattened = bench_alloc(rates.flattened_bytes);
    check(&rates, (size_t) (low + extent));
    bench_alternate(pack, unpack, &rates, &pack_us, &unpack_us);
    bench_alternate(iovs, first_iovs, &rates, &iovs_us, &first_us);
    bench_alternate(flatten, unflatten, &rates, &flatten_us, &unflatten_us);
    printf("%-15s %6d %8.0f %8.0f %8.2f %8.2f %9.1f %9.1f %9zu %9.2f %9.2f\n", name, block, size,
           segments, size / pack_us / 1e3, size / unpack_us / 1e3, segments / iovs_us,
           segments / first_us, rates.flattened_bytes, flatten_us, unflatten_us);
    fflush(stdout);
    opal_iov_cache_form_free(rates.form);
    free(rates.array);
    free(rates.stream);
    free(rates.iovs);
    free(rates.flattened);
    MPI_Type_free(&rates.type);
}

int main(int argc, char **argv)
{
    static const int lengths[] = {8, 64, 1024};

    setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
    setenv("OMPI_MCA_pml", "ob1", 1);
    setenv("OMPI_MCA_btl", "self", 1);
    MPI_Init(&argc, &argv);
    printf(
        "pack, unpack: GB/s of data; IOVs, first: million IOVs per second, of an existing form and of a\n"
        "new type; bytes of the flattened form, and us to flatten and unflatten it\n");
    printf("%-15s %6s %8s %8s %8s %8s %9s %9s %9s %9s %9s\n", "family", "block", "bytes", "pieces",
           "pack", "unpack", "IOVs", "first", "flattened", "flatten", "unflatten");
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); ++i) {
        blocks_t blocks;

        blocks_make(lengths[i] / 4, &blocks);
        for (size_t k = 0; k < sizeof(families) / sizeof(families[0]); ++k) {
            MPI_Datatype type;
            bool wanted = 2 > argc;

            for (int arg = 1; arg < argc; ++arg) {
                wanted = wanted || 0 == strcmp(families[k].name, argv[arg]);
            }
            if (!wanted) {
                continue;
            }
            families[k].make(&blocks, &type);
            measure(families[k].name, lengths[i], type);
        }
        blocks_free(&blocks);
    }
    MPI_Finalize();
    return 0;
}
