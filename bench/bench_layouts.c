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
 * The cost of the layout engine, compared with Open MPI's own convertor: one process, no messages.
 *
 *     bench_layouts [glob ...]       the named layouts of umrddt_bench only; "forms": the forms
 * only
 *
 * The two engines alternate, round by round. A number is the median over the rounds of the
 * processor time of this thread (other load on the machine affects wall time, and caches). A ratio
 * is theirs divided by ours: above 1, ours is faster. Packed and unpacked data is compared.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include <mpi.h>

#include "opal_config.h"
#include "ompi/datatype/ompi_datatype.h"
#include "opal/constants.h"
#include "opal/datatype/opal_convertor.h"

#include "umrddt_compat.h"

#include "opal/datatype/iov_cache/iov_cache.h"

#include "bench_times.h"
#include "bench_util.h"
#include "layouts.h"

#define LARGEST     ((uint64_t) 128 << 20)
#define SMALL_BATCH 64

/* ---------------------------------------------------------------------------------------------
 * Packing
 * ------------------------------------------------------------------------------------------- */

typedef struct {
    const bench_side_t *side;
    opal_iov_cache_form_t *form;
    char *array;
    char *stream;
} pack_t;

static void mpi_pack(void *context)
{
    pack_t *pack = context;
    int position = 0;

    MPI_Pack(pack->array + pack->side->origin, pack->side->count, pack->side->type, pack->stream,
             (int) pack->side->bytes, &position, MPI_COMM_SELF);
}

static void our_pack(void *context)
{
    pack_t *pack = context;

    opal_iov_cache_form_pack(pack->form, pack->array + pack->side->origin, 0, pack->side->bytes,
                             pack->stream);
}

static void mpi_unpack(void *context)
{
    pack_t *pack = context;
    int position = 0;

    MPI_Unpack(pack->stream, (int) pack->side->bytes, &position, pack->array + pack->side->origin,
               pack->side->count, pack->side->type, MPI_COMM_SELF);
}

static void our_unpack(void *context)
{
    pack_t *pack = context;

    opal_iov_cache_form_unpack(pack->form, pack->array + pack->side->origin, 0, pack->side->bytes,
                               pack->stream);
}

/* Both engines must produce the same bytes. */
static void check_pack(pack_t *pack, bool unpack)
{
    size_t bytes = unpack ? pack->side->array_bytes : pack->side->bytes, i;
    char *place = unpack ? pack->array : pack->stream, *wanted = bench_alloc(bytes);

    for (i = 0; i < pack->side->array_bytes; ++i) {
        pack->array[i] = (char) (i * 2654435761u >> 11);
    }
    if (unpack) {
        for (i = 0; i < pack->side->bytes; ++i) {
            pack->stream[i] = (char) (i * 40503u >> 3);
        }
    }
    (unpack ? mpi_unpack : mpi_pack)(pack);
    memcpy(wanted, place, bytes);
    if (unpack) {
        for (i = 0; i < pack->side->array_bytes; ++i) {
            pack->array[i] = (char) (i * 2654435761u >> 11);
        }
    } else {
        memset(place, 0, bytes);
    }
    (unpack ? our_unpack : our_pack)(pack);
    if (0 != memcmp(wanted, place, bytes)) {
        bench_fatal("%s: the bytes differ from those of MPI", unpack ? "unpacking" : "packing");
    }
    free(wanted);
}

static double measure_pack(const bench_side_t *side, bool unpack, double *ours)
{
    pack_t pack = {.side = side};
    double theirs;

    pack.array = bench_alloc(side->array_bytes);
    pack.stream = bench_alloc(side->bytes);
    if (OPAL_SUCCESS
        != opal_iov_cache_form_create(&side->type->super, (size_t) side->count, &pack.form)) {
        bench_fatal("no form");
    }
    check_pack(&pack, unpack);
    bench_alternate(unpack ? mpi_unpack : mpi_pack, unpack ? our_unpack : our_pack, &pack, &theirs,
                    ours);
    opal_iov_cache_form_free(pack.form);
    free(pack.array);
    free(pack.stream);
    return theirs / *ours;
}

static void measure_packs(int argc, char **argv)
{
    double logs[2] = {0, 0}, least[2] = {HUGE_VAL, HUGE_VAL};
    const char *worst[2] = {"", ""};
    size_t i, measured = 0;
    int arg, variant;

    printf("%-34s %10s %9s %10s %8s %10s %8s\n", "layout", "bytes", "segments", "pack us", "ratio",
           "unpack us", "ratio");
    for (i = 0; i < bench_layout_all; ++i) {
        const char *name = bench_layout_table[i].name;
        double ratio[2], ours[2];
        opal_iov_cache_form_t *form;
        bench_layout_t layout;
        bool wanted = 1 == argc && i < bench_layout_count;

        for (arg = 1; arg < argc; ++arg) {
            wanted = wanted || bench_layout_is_meant(i, argv[arg]);
        }
        if (!wanted || bench_layout_matches(name, "contiguous")) {
            continue;
        }
        bench_layout_create(&bench_layout_table[i], &layout);
        if (LARGEST < layout.send.array_bytes || LARGEST < layout.recv.array_bytes) {
            bench_layout_destroy(&layout);
            continue;
        }
        ratio[0] = measure_pack(&layout.send, false, &ours[0]);
        ratio[1] = measure_pack(&layout.recv, true, &ours[1]);
        opal_iov_cache_form_create(&layout.send.type->super, (size_t) layout.send.count, &form);
        printf("%-34s %10llu %9llu %10.2f %8.2f %10.2f %8.2f\n", name,
               (unsigned long long) layout.send.bytes, (unsigned long long) form->segments, ours[0],
               ratio[0], ours[1], ratio[1]);
        fflush(stdout);
        for (variant = 0; variant < 2; ++variant) {
            logs[variant] += log(ratio[variant]);
            if (ratio[variant] < least[variant]) {
                least[variant] = ratio[variant];
                worst[variant] = name;
            }
        }
        ++measured;
        opal_iov_cache_form_free(form);
        bench_layout_destroy(&layout);
    }
    for (variant = 0; variant < 2 && 0 < measured; ++variant) {
        printf("%s: %zu layouts, geometric mean of the ratios %.2f, least %.2f (%s)\n",
               0 == variant ? "pack" : "unpack", measured, exp(logs[variant] / (double) measured),
               least[variant], worst[variant]);
    }
}

/* ---------------------------------------------------------------------------------------------
 * Making
 * ------------------------------------------------------------------------------------------- */

typedef struct {
    const opal_datatype_t *type;
    size_t count;
    opal_iov_cache_form_t *form;
    opal_iov_cache_cursor_t cursor;
    opal_iov_cache_iov_t *iovs; /* size for all */
    struct iovec *raw;          /* the same */
    void *flattened;            /* the flattened form */
    size_t flattened_bytes;
} make_t;

/* All pieces of a convertor in one list. */
static void raw_all(void *context)
{
    make_t *make = context;
    opal_convertor_t *convertor = opal_convertor_create((int32_t) opal_local_arch, 0);
    uint32_t n = (uint32_t) make->form->segments + 1;
    size_t length = 0;

    convertor->flags |= UMRDDT_CONVERTOR_SKIP_PROBE;
    opal_convertor_prepare_for_send(convertor, make->type, make->count, NULL);
    opal_convertor_raw(convertor, make->raw, &n, &length);
    OBJ_RELEASE(convertor);
}

/* From the type: the form and all its IOVs, as btl/umr gets them for a key: where they lie in the
 * form there is no other list. */
static void form_all(void *context)
{
    make_t *make = context;
    opal_iov_cache_form_t *form;
    uint64_t next;
    size_t count;

    opal_iov_cache_form_create(make->type, make->count, &form);
    opal_iov_cache_form_view(form, 0, form->size, make->iovs, form->segments, &count, &next);
    opal_iov_cache_form_free(form);
}

/* The same into a list of one's own, which outlives the form. */
static void form_list(void *context)
{
    make_t *make = context;
    opal_iov_cache_form_t *form;
    uint64_t next;

    opal_iov_cache_form_create(make->type, make->count, &form);
    opal_iov_cache_form_iovs(form, 0, form->size, make->iovs, form->segments, &next);
    opal_iov_cache_form_free(form);
}

/* From a form that is there, as in every message but the first. */
static void iovs_all(void *context)
{
    make_t *make = context;
    uint64_t next;

    opal_iov_cache_form_iovs(make->form, 0, make->form->size, make->iovs, make->form->segments,
                             &next);
}

/* No more than moving as many bytes as the list has: what memory allows. */
static void copy_all(void *context)
{
    make_t *make = context;

    memcpy(make->raw, make->iovs, make->form->segments * sizeof(*make->iovs));
}

static void raw_some(void *context)
{
    make_t *make = context;
    opal_convertor_t *convertor = opal_convertor_create((int32_t) opal_local_arch, 0);
    uint32_t n = SMALL_BATCH;
    size_t length = 0;

    convertor->flags |= UMRDDT_CONVERTOR_SKIP_PROBE;
    opal_convertor_prepare_for_send(convertor, make->type, make->count, NULL);
    opal_convertor_raw(convertor, make->raw, &n, &length);
    OBJ_RELEASE(convertor);
}

static void form_some(void *context)
{
    make_t *make = context;
    opal_iov_cache_form_t *form;
    uint64_t next;

    opal_iov_cache_form_create(make->type, make->count, &form);
    opal_iov_cache_form_iovs(form, 0, form->size, make->iovs, SMALL_BATCH, &next);
    opal_iov_cache_form_free(form);
}

static void form_only(void *context)
{
    make_t *make = context;
    opal_iov_cache_form_t *form;

    opal_iov_cache_form_create(make->type, make->count, &form);
    opal_iov_cache_form_free(form);
}

static void flatten(void *context)
{
    make_t *make = context;

    opal_iov_cache_form_flatten(make->form, make->flattened, make->flattened_bytes);
}

static void unflatten(void *context)
{
    make_t *make = context;
    opal_iov_cache_form_t *form;

    if (OPAL_SUCCESS
        != opal_iov_cache_form_unflatten(make->flattened, make->flattened_bytes, &form)) {
        bench_fatal("a flattened form is invalid");
    }
    opal_iov_cache_form_free(form);
}

static int promise(opal_iov_cache_t *cache, const opal_datatype_t *type, void *context)
{
    (void) cache;
    (void) type;
    (void) context;
    return OPAL_SUCCESS;
}

static opal_iov_cache_t *cache;

static void hit(void *context)
{
    make_t *make = context;
    opal_iov_cache_layout_t *layout;

    opal_iov_cache_get(cache, make->type, make->count, &layout);
    OBJ_RELEASE(layout);
}

/* Consumes the type. */
static void measure_make(const char *name, MPI_Datatype type)
{
    double raw, all, list, there, copied, some_raw, some, only, hits, iovs, first, flatten_us,
        unflatten_us;
    make_t make = {.count = 1};

    MPI_Type_commit(&type);
    make.type = &type->super;
    opal_iov_cache_form_create(make.type, 1, &make.form);
    make.iovs = bench_alloc(make.form->segments * sizeof(*make.iovs));
    make.raw = bench_alloc((make.form->segments + 1) * sizeof(*make.raw));
    bench_alternate(raw_all, iovs_all, &make, &raw, &iovs);
    there = raw / iovs;
    bench_alternate(raw_all, form_all, &make, &raw, &first);
    all = raw / first;
    bench_alternate(raw_all, form_list, &make, &raw, &list);
    list = raw / list;
    bench_alternate(raw_all, copy_all, &make, &raw, &copied);
    copied = raw / copied;
    bench_alternate(raw_some, form_some, &make, &some_raw, &some);
    opal_iov_cache_create((size_t) 1 << 28, promise, NULL, &cache);
    bench_alternate(form_only, hit, &make, &only, &hits);
    opal_iov_cache_destroy(cache);
    make.flattened_bytes = opal_iov_cache_form_flatten(make.form, NULL, 0);
    make.flattened = bench_alloc(make.flattened_bytes);
    bench_alternate(flatten, unflatten, &make, &flatten_us, &unflatten_us);
    printf(
        "%-26s %8llu %8zu %9.2f %7.2f %7.2f %7.2f %7.2f %9.2f %7.2f %9.1f %8.1f %8.1f %9.2f %9.2f\n",
        name, (unsigned long long) make.form->segments, opal_iov_cache_form_bytes(make.form), only,
        there, all, list, copied, some, some_raw / some, 1e3 * hits,
        (double) make.form->segments / iovs, (double) make.form->segments / first, flatten_us,
        unflatten_us);
    fflush(stdout);
    opal_iov_cache_form_free(make.form);
    free(make.flattened);
    free(make.iovs);
    free(make.raw);
    MPI_Type_free(&type);
}

/* Particles and cells: @p indices are 65536 places without order, three apart. */
static void measure_irregular(const int *indices)
{
    int *lengths = bench_alloc(65536 * sizeof(*lengths)),
        *places = bench_alloc(65536 * sizeof(int));
    MPI_Aint *where = bench_alloc(65536 * sizeof(*where));
    MPI_Datatype *types = bench_alloc(65536 * sizeof(MPI_Datatype)), type;
    int i, place = 0;

    for (i = 0; i < 65536; ++i) {
        lengths[i] = 1 + rand() % 2;
        where[i] = 4 * (MPI_Aint) indices[i];
        types[i] = 1 == lengths[i] ? MPI_DOUBLE : MPI_INT;
        places[i] = place;
        place += 3 + rand() % 8;
    }
    MPI_Type_create_indexed_block(65536, 2, places, MPI_INT, &type);
    measure_make("indexed, ascending, 64 Ki", type);
    MPI_Type_indexed(65536, lengths, indices, MPI_INT, &type);
    measure_make("indexed, two lengths", type);
    MPI_Type_create_hindexed(65536, lengths, where, MPI_INT, &type);
    measure_make("hindexed, two lengths", type);
    MPI_Type_create_struct(65536, lengths, where, types, &type); /* 8 B each, of two kinds */
    measure_make("struct of 8 B, two kinds", type);
    /* runs of 2 to 17 in between */
    for (i = 0, place = 0; i < 65536; ++i) {
        places[i] = place;
        place += 0 == rand() % 9 ? 50 + rand() % 99 : 5;
    }
    MPI_Type_create_indexed_block(65536, 2, places, MPI_INT, &type);
    measure_make("indexed, short runs", type);
    free(types);
    free(where);
    free(places);
    free(lengths);
}

static void measure_makes(void)
{
    const int sizes[3] = {128, 512, 64}, subsizes[3] = {128, 512, 32}, starts[3] = {0, 0, 16};
    const int lengths[3] = {1, 1, 1};
    const MPI_Aint places[3] = {0, 8, 24};
    const MPI_Datatype fields[3] = {MPI_INT, MPI_DOUBLE, MPI_INT};
    int *indices = bench_alloc(65536 * sizeof(*indices)), i;
    MPI_Datatype type, one;

    printf(
        "\nforms. Ratios to opal_convertor_raw: all IOVs from the form (all), from the type (+form), in a "
        "new list (+list), a copy of as many bytes (copy). Also the first %d from the type. M/s, first: million\n"
        "IOVs per second from the form and from the type. Last: us to flatten and unflatten the form\n",
        SMALL_BATCH);
    printf("%-26s %8s %8s %9s %7s %7s %7s %7s %9s %7s %9s %8s %8s %9s %9s\n", "type", "segments",
           "bytes", "form us", "all", "+form", "+list", "copy", "first us", "ratio", "hit ns",
           "M/s", "first", "flatten", "unflat.");
    MPI_Type_vector(64, 8, 16, MPI_BYTE, &type);
    measure_make("vector of 64", type);
    MPI_Type_vector(65536, 8, 16, MPI_BYTE, &type);
    measure_make("vector of 64 Ki", type);
    MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_C, MPI_BYTE, &type);
    measure_make("subarray of 64 Ki", type);
    MPI_Type_create_struct(3, lengths, places, fields, &one);
    MPI_Type_contiguous(21845, one, &type);
    MPI_Type_free(&one);
    measure_make("struct of 3, 21845 times", type);
    for (i = 0; i < 65536; ++i) {
        indices[i] = 3 * i;
    }
    MPI_Type_create_indexed_block(65536, 2, indices, MPI_INT, &type);
    measure_make("indexed, regular, 64 Ki", type);
    for (i = 0; i < 65536; ++i) {
        indices[i] = 3 * (int) (((unsigned) i * 40503u) & 65535u);
    }
    MPI_Type_create_indexed_block(65536, 2, indices, MPI_INT, &type);
    measure_make("indexed, steps, 64 Ki", type);
    for (i = 0; i < 65536; ++i) {
        int other = (int) ((unsigned) rand() % (unsigned) (i + 1)), kept = 3 * i;

        indices[i] = indices[other];
        indices[other] = kept;
    }
    MPI_Type_create_indexed_block(65536, 2, indices, MPI_INT, &type);
    measure_make("indexed, no order, 64 Ki", type);
    measure_irregular(indices);
    free(indices);
}

int main(int argc, char **argv)
{
    setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
    setenv("OMPI_MCA_pml", "ob1", 1);
    setenv("OMPI_MCA_btl", "self", 1);
    MPI_Init(&argc, &argv);
    if (2 != argc || 0 != strcmp("forms", argv[1])) {
        measure_packs(argc, argv);
    }
    if (1 == argc || 0 == strcmp("forms", argv[1])) {
        measure_makes();
    }
    MPI_Finalize();
    return 0;
}
