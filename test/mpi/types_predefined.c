/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Every predefined datatype of the MPI library, including those of Fortran and the pair types, in
 * layouts with gaps and at odd offsets, with every receive call, into every kind of memory of
 * UMRDDT_TEST_MEMORY. The types are read from the table of Fortran handles of the library, so none
 * is missing. Messages end within an element, or are split within one, at each limit below MPI: an
 * envelope, a fragment, a chunk.
 */

#include "types_predefined.h"

#include "layouts.h"
#include "mpitest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fortran handles are small indices; the predefined types come first. */
#define HANDLES 1024
#define TYPES   256

static MPI_Datatype types[TYPES];
static int type_count;

static const char *name_of(MPI_Datatype type)
{
    static char name[MPI_MAX_OBJECT_NAME];
    int length;

    MPI_OK(MPI_Type_get_name(type, name, &length));
    return name;
}

static int size_of(MPI_Datatype type)
{
    int size;

    MPI_OK(MPI_Type_size(type, &size));
    return size;
}

/* What MPI_Get_elements counts for one of the type within a type of the user's: 2 for a pair. */
static int elements_of(MPI_Datatype type)
{
    MPI_Datatype derived;
    MPI_Status status;
    int elements;

    memset(&status, 0, sizeof(status));
    MPI_OK(MPI_Type_contiguous(1, type, &derived));
    MPI_OK(MPI_Type_commit(&derived));
    MPI_OK(MPI_Status_set_elements(&status, MPI_BYTE, size_of(type)));
    MPI_OK(MPI_Get_elements(&status, derived, &elements));
    MPI_OK(MPI_Type_free(&derived));
    return elements;
}

/* A type that this library has not got for this compiler has no bytes. */
static bool is_predefined(MPI_Datatype type)
{
    int integers, addresses, others, combiner;

    if (NULL == type || MPI_DATATYPE_NULL == type) {
        return false;
    }
    MPI_OK(MPI_Type_get_envelope(type, &integers, &addresses, &others, &combiner));
    return MPI_COMBINER_NAMED == combiner && 0 < size_of(type);
}

/*
 * Open MPI 5.0.7 alone, UMRDDT_TEST_BARE=1, copies single long doubles at aligned addresses as
 * numbers, which have 10 of the 16 bytes on x86: the six bytes of padding do not change, and
 * neither do those of MPI_REAL16, which are no padding. The positions of the bytes of a type are
 * unknown then.
 */
static bool is_cut_by_base(MPI_Datatype type)
{
    const MPI_Datatype cut[] = {
        MPI_LONG_DOUBLE,
        MPI_C_LONG_DOUBLE_COMPLEX,
        MPI_LONG_DOUBLE_INT,
        MPI_CXX_LONG_DOUBLE_COMPLEX,
    /* An Open MPI without Fortran does not declare them. */
#if defined(MPI_REAL16)
        MPI_REAL16,
#endif
#if defined(MPI_COMPLEX32)
        MPI_COMPLEX32,
#endif
    };
    size_t i;

    for (i = 0; i < sizeof(cut) / sizeof(cut[0]) && cut[i] != type; ++i) {
        ;
    }
    return 5 <= OMPI_MAJOR_VERSION && i < sizeof(cut) / sizeof(cut[0]);
}

static void find_types(void)
{
    static const MPI_Datatype known[] = {
        MPI_CHAR,   MPI_DOUBLE, MPI_LONG_DOUBLE, MPI_C_LONG_DOUBLE_COMPLEX, MPI_LONG_DOUBLE_INT,
        MPI_PACKED, MPI_COUNT};
    size_t k;
    int i, widest = 0;

    type_count = 0;
    for (i = 0; i < HANDLES; ++i) {
        MPI_Datatype type = MPI_Type_f2c((MPI_Fint) i);

        if (is_predefined(type)) {
            CHECK(type_count < TYPES);
            types[type_count++] = type;
            widest = size_of(type) > widest ? size_of(type) : widest;
        }
    }
    /* Check that the table has the expected content: it contains the types that each library has.
     */
    for (k = 0; k < sizeof(known) / sizeof(known[0]); ++k) {
        for (i = 0; i < type_count && known[k] != types[i]; ++i) {
            ;
        }
        CHECK(i < type_count);
    }
    CHECK_INT(widest, sizeof(long double _Complex));
    for (i = 0, k = 0; i < type_count; ++i) {
        if (!is_cut_by_base(types[i])) {
            types[k++] = types[i];
        }
    }
    type_count = (int) k;
    if (mpitest.verbose && 0 == mpitest.rank) {
        for (i = 0; i < type_count; ++i) {
            printf("%s: %d bytes\n", name_of(types[i]), size_of(types[i]));
        }
    }
}

/* Layouts of n elements of a type. With HEAD the signature begins with a char, so that all elements
 * lie at other positions of the stream. */
enum {
    HEAD = 0x100,
    CONTIGUOUS = 0,
    VECTOR, /* every second element */
    ODD,    /* one by one, at odd addresses, unevenly */
    DESCENDING,
    PAIRS, /* two elements, then a gap of bytes */
    SHAPES,
    /* of types_uneven: distances at which Open MPI 5.0.7 alone puts elements into wrong places */
    HALVES = SHAPES, /* one and a half elements: complex numbers, in one piece as well */
    SPLIT,           /* uneven ones, where an envelope ends within the second of two */
    SHAPES_UNEVEN
};

/* SPLIT: five elements apart, then pairs, whose second one is 26 bytes behind the first where an
 * element has 16. */
static void uneven_places(int which, int n, MPI_Aint step, MPI_Aint *at)
{
    int i;

    for (i = 0; i < n; ++i) {
        at[i] = HALVES == which ? i * (step + step / 2)
                : 5 > i         ? i * 2 * step
                                : ((i - 1) / 2 + 5) * 8 * step + (0 == i % 2 ? step + 10 : 0);
    }
}

/* The same layout as blocks of bytes, which Open MPI 5.0.7 unpacks to where they belong. */
static MPI_Datatype uneven_bytes(int which, int n, int step)
{
    MPI_Aint *at = malloc(sizeof(*at) * (size_t) n);
    MPI_Datatype type;

    CHECK(NULL != at);
    uneven_places(which, n, step, at);
    MPI_OK(MPI_Type_create_hindexed_block(n, step, at, MPI_BYTE, &type));
    MPI_OK(MPI_Type_commit(&type));
    free(at);
    return type;
}

static MPI_Datatype shape(int which, int n, MPI_Datatype type)
{
    MPI_Aint *at = malloc(sizeof(*at) * (size_t) n), lb, extent, true_lb, true_extent, step;
    int lengths[3] = {1, 1, 1}, i;
    MPI_Datatype body, whole, parts[2];
    MPI_Aint places[2];

    CHECK(NULL != at);
    MPI_OK(MPI_Type_get_extent(type, &lb, &extent));
    MPI_OK(MPI_Type_get_true_extent(type, &true_lb, &true_extent));
    step = extent > true_extent ? extent : true_extent;
    switch (which & ~HEAD) {
    case CONTIGUOUS:
        MPI_OK(MPI_Type_contiguous(n, type, &body));
        break;
    case VECTOR:
        MPI_OK(MPI_Type_vector(n, 1, 2, type, &body));
        break;
    case PAIRS:
        MPI_OK(MPI_Type_create_hvector(n / 2, 2, 2 * step + 5, type, &body));
        break;
    case HALVES:
    case SPLIT:
        uneven_places(which, n, step, at);
        MPI_OK(MPI_Type_create_hindexed_block(n, 1, at, type, &body));
        break;
    default:
        for (i = 0; i < n; ++i) {
            int place = DESCENDING == (which & ~HEAD) ? n - 1 - i : i;

            at[i] = place * (step + 9) + place % 3 + 1;
        }
        MPI_OK(MPI_Type_create_hindexed_block(n, 1, at, type, &body));
        break;
    }
    free(at);
    whole = body;
    if (0 != (HEAD & which)) {
        places[0] = 0;
        places[1] = 16;
        parts[0] = MPI_CHAR;
        parts[1] = body;
        MPI_OK(MPI_Type_create_struct(2, lengths, places, parts, &whole));
        MPI_OK(MPI_Type_free(&body));
    }
    MPI_OK(MPI_Type_commit(&whole));
    return whole;
}

/* Ways to receive. */
enum {
    RECV,
    IRECV,
    LATE,    /* Irecv, when the message has come */
    WILD,    /* Irecv with both wildcards */
    INIT,    /* persistent, twice */
    PROBE,   /* and Recv */
    PROBE_I, /* and Irecv */
    MPROBE,  /* and Mrecv */
    IMPROBE, /* and Imrecv */
    SENDRECV,
    ALLTOALL, /* what the library receives within a collective */
    WAYS
};

static const char *const way_names[WAYS] = {"Recv",    "Irecv",    "late",     "wild",
                                            "init",    "Probe",    "Probe I",  "Mprobe",
                                            "Improbe", "Sendrecv", "Alltoallw"};

typedef struct part_t {
    MPI_Datatype type;
    mpitest_map_t *map;
    mpitest_buffer_t *buffer;
} part_t;

static void part_make(part_t *part, int which, int n, MPI_Datatype type, gpu_kind_t kind)
{
    part->type = shape(which, n, type);
    if (HALVES == which || SPLIT == which) {
        MPI_Datatype bytes = uneven_bytes(which, n, size_of(type));

        part->map = mpitest_map(bytes, 1);
        part->map->type = part->type;
        MPI_OK(MPI_Type_free(&bytes));
    } else {
        part->map = mpitest_map(part->type, 1);
    }
    part->buffer = mpitest_buffer_of(part->map, kind);
}

static void part_free(part_t *part)
{
    mpitest_buffer_free(part->buffer);
    mpitest_map_free(part->map);
    MPI_OK(MPI_Type_free(&part->type));
}

static void receive(const part_t *in, int way, MPI_Status *status)
{
    const int from = mpitest_left();
    void *to = in->buffer->addr;
    MPI_Message message;
    MPI_Request request;
    int found = 0;

    switch (way) {
    case PROBE:
        MPI_OK(MPI_Probe(from, 3, MPI_COMM_WORLD, status));
        CHECK_STATUS(status, from, 3, (int) in->map->size);
        MPI_OK(MPI_Recv(to, 1, in->type, from, 3, MPI_COMM_WORLD, status));
        break;
    case LATE:
    case PROBE_I:
        if (LATE == way) {
            mpitest_sleep(200);
        } else {
            MPI_OK(MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, status));
            CHECK_STATUS(status, from, 3, (int) in->map->size);
        }
        MPI_OK(MPI_Irecv(to, 1, in->type, from, 3, MPI_COMM_WORLD, &request));
        MPI_OK(MPI_Wait(&request, status));
        break;
    case MPROBE:
        MPI_OK(MPI_Mprobe(from, 3, MPI_COMM_WORLD, &message, status));
        CHECK_STATUS(status, from, 3, (int) in->map->size);
        MPI_OK(MPI_Mrecv(to, 1, in->type, &message, status));
        break;
    case IMPROBE:
        while (!found) {
            MPI_OK(MPI_Improbe(from, 3, MPI_COMM_WORLD, &found, &message, status));
        }
        MPI_OK(MPI_Imrecv(to, 1, in->type, &message, &request));
        MPI_OK(MPI_Wait(&request, status));
        break;
    default:
        MPI_OK(MPI_Recv(to, 1, in->type, from, 3, MPI_COMM_WORLD, status));
        break;
    }
}

/* To the right from one rank, from the left in the other; all get theirs. */
static void alltoall(const part_t *out, const part_t *in, MPI_Status *status)
{
    int *counts = calloc(4 * (size_t) mpitest.size, sizeof(*counts)), i;
    MPI_Datatype *kinds = malloc(sizeof(MPI_Datatype) * 2 * (size_t) mpitest.size);

    CHECK(NULL != counts && NULL != kinds);
    for (i = 0; i < mpitest.size; ++i) {
        counts[i] = mpitest_right() == i;
        counts[mpitest.size + i] = mpitest_left() == i;
        kinds[i] = mpitest_right() == i ? out->type : MPI_BYTE;
        kinds[mpitest.size + i] = mpitest_left() == i ? in->type : MPI_BYTE;
    }
    MPI_OK(MPI_Alltoallw(out->buffer->addr, counts, counts + 2 * mpitest.size, kinds,
                         in->buffer->addr, counts + mpitest.size, counts + 2 * mpitest.size,
                         kinds + mpitest.size, MPI_COMM_WORLD));
    free(counts);
    free(kinds);
    status->MPI_SOURCE = mpitest_left();
    status->MPI_TAG = 3;
    MPI_OK(MPI_Status_set_cancelled(status, 0));
    MPI_OK(MPI_Status_set_elements(status, MPI_BYTE, (int) in->map->size));
}

static void transfer(const part_t *out, const part_t *in, int way, MPI_Status *status)
{
    const void *from = out->buffer->addr;
    void *to = in->buffer->addr;
    MPI_Request requests[2];
    MPI_Status both[2];

    switch (way) {
    case IRECV:
    case WILD:
        MPI_OK(MPI_Irecv(to, 1, in->type, WILD == way ? MPI_ANY_SOURCE : mpitest_left(),
                         WILD == way ? MPI_ANY_TAG : 3, MPI_COMM_WORLD, &requests[0]));
        MPI_OK(MPI_Send(from, 1, out->type, mpitest_right(), 3, MPI_COMM_WORLD));
        MPI_OK(MPI_Wait(&requests[0], status));
        break;
    case INIT:
        MPI_OK(MPI_Recv_init(to, 1, in->type, mpitest_left(), 3, MPI_COMM_WORLD, &requests[0]));
        MPI_OK(MPI_Send_init(from, 1, out->type, mpitest_right(), 3, MPI_COMM_WORLD, &requests[1]));
        MPI_OK(MPI_Startall(2, requests));
        MPI_OK(MPI_Waitall(2, requests, both));
        mpitest_clear(in->buffer);
        MPI_OK(MPI_Startall(2, requests));
        MPI_OK(MPI_Waitall(2, requests, both));
        *status = both[0];
        MPI_OK(MPI_Request_free(&requests[0]));
        MPI_OK(MPI_Request_free(&requests[1]));
        break;
    case SENDRECV:
        MPI_OK(MPI_Sendrecv(from, 1, out->type, mpitest_right(), 3, to, 1, in->type, mpitest_left(),
                            3, MPI_COMM_WORLD, status));
        break;
    case ALLTOALL:
        alltoall(out, in, status);
        break;
    default:
        MPI_OK(MPI_Isend(from, 1, out->type, mpitest_right(), 3, MPI_COMM_WORLD, &requests[0]));
        receive(in, way, status);
        MPI_OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
        break;
    }
}

/*
 * Open MPI 5.0.7 alone copies complex numbers that lie an odd number of halves apart to wrong
 * places: here those of two short floats, one by one.
 */
static int shape_for(int which, MPI_Datatype type)
{
    const int shape = which & ~HEAD;

    if (5 <= OMPI_MAJOR_VERSION && (ODD == shape || DESCENDING == shape)
        && NULL != strstr(name_of(type), "SHORT_FLOAT_COMPLEX")) {
        return VECTOR | (HEAD & which);
    }
    return which;
}

/*
 * Open MPI 5.0.7 alone puts bytes of elements at uneven positions into wrong places, and past the
 * buffer, when it packs or unpacks them in several pieces. Messages in one piece, and messages that
 * umrddt handles, are right.
 */
#define ONE_PIECE 3900

static bool is_base_careless(gpu_kind_t from, gpu_kind_t to, int way)
{
    const char *expect = getenv("UMRDDT_TEST_EXPECT");

    if (5 > OMPI_MAJOR_VERSION) {
        return false;
    }
    if (ALLTOALL == way) {
        return true; /* of GPU memory it gets a copy with the same layout */
    }
    if (NULL != expect && (0 == strcmp(expect, "clean") || 0 == strcmp(expect, "taken"))) {
        return false;
    }
    if (NULL != expect && (0 == strcmp(expect, "gpu") || 0 == strcmp(expect, "packed"))) {
        return GPU_DEVICE > from || GPU_DEVICE > to; /* managed memory is also system memory */
    }
    return true;
}

/* As many elements as make so many bytes; even, as PAIRS wants it. */
static int count_of(MPI_Datatype type, int bytes)
{
    int n = bytes / size_of(type) & ~1;

    return 2 > n ? 2 : n;
}

static bool is_uneven(int which)
{
    return ODD == (which & ~HEAD) || DESCENDING == (which & ~HEAD) || 0 != (HEAD & which);
}

/* What one message is. */
typedef struct plan_t {
    MPI_Datatype type;
    int n;
    int out, in; /* shapes */
    gpu_kind_t from, to;
    int way;
} plan_t;

/* A plan without the cases that this Open MPI alone gets wrong. */
static void spare_host(plan_t *plan)
{
    const int most = count_of(plan->type, ONE_PIECE);

    plan->out = shape_for(plan->out, plan->type);
    plan->in = shape_for(plan->in, plan->type);
    if (most < plan->n && (is_uneven(plan->out) || is_uneven(plan->in))
        && is_base_careless(plan->from, plan->to, plan->way)) {
        plan->n = most;
    }
}

static void message(const plan_t *plan)
{
    const int head = 0 != (HEAD & plan->in);
    uint64_t key = mpitest_mix(mpitest.seed, (uint64_t) mpitest.step++, 5);
    part_t out, in;
    MPI_Status status;
    int elements = -1;

    if (mpitest.verbose && 0 == mpitest.rank) {
        printf("step %ld: %d of %s, shape %x to %x, %s to %s, %s\n", mpitest.step, plan->n,
               name_of(plan->type), (unsigned) plan->out, (unsigned) plan->in,
               gpu_kind_name(plan->from), gpu_kind_name(plan->to), way_names[plan->way]);
        fflush(stdout);
    }
    part_make(&out, plan->out, plan->n, plan->type, plan->from);
    part_make(&in, plan->in, plan->n, plan->type, plan->to);
    CHECK_INT(out.map->size, in.map->size);
    mpitest_fill(out.buffer, key + (uint64_t) mpitest.rank);
    mpitest_clear(in.buffer);
    transfer(&out, &in, plan->way, &status);
    CHECK_STATUS(&status, mpitest_left(), 3, (int) in.map->size);
    if (ALLTOALL != plan->way && 0 == head) {
        MPI_OK(MPI_Get_count(&status, plan->type, &elements));
        CHECK_INT(elements, plan->n);
    }
    VERIFY(in.buffer, key + (uint64_t) mpitest_left(), in.map->size);
    VERIFY(out.buffer, key + (uint64_t) mpitest.rank, out.map->size);
    part_free(&out);
    part_free(&in);
    if (WILD == plan->way || PROBE_I == plan->way) {
        MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

void types_predefined(uint64_t *state)
{
    gpu_kind_t kinds[GPU_KINDS];
    int kind_count = mpitest_memory_kinds(kinds), t, turn = (int) (mpitest.seed % WAYS), from, to;
    /* All kinds of memory with all kinds for each type. Otherwise each type meets each kind at both
     * ends, and each kind each other one, with some of the types. */
    const bool product = NULL != getenv("UMRDDT_TEST_ALL") || NULL != getenv("UMRDDT_TEST_LONG");
    plan_t plan;

    find_types();
    for (t = 0; t < type_count; ++t) {
        const bool wide = 16 < size_of(types[t]);

        for (from = 0; from < kind_count; ++from) {
            for (to = 0; to < kind_count; ++to) {
                if (!product && (from + t) % kind_count != to) {
                    continue;
                }
                /* All calls and shapes for wide elements; for others they alternate. */
                for (plan.way = 0; plan.way < (wide ? WAYS : 1); ++plan.way) {
                    int bytes = (int) mpitest_between(state, 1500, 9000), way = plan.way;
                    int head = 0 == mpitest_between(state, 0, 2) ? HEAD : 0;

                    plan.type = types[t];
                    plan.from = kinds[from];
                    plan.to = kinds[to];
                    plan.out = (int) mpitest_between(state, 0, SHAPES - 1) | head;
                    plan.in = (int) mpitest_between(state, VECTOR, SHAPES - 1) | head;
                    plan.way = wide ? way : turn++ % WAYS;
                    plan.n = count_of(types[t], bytes);
                    spare_host(&plan);
                    message(&plan);
                    plan.way = way;
                }
            }
        }
        mpitest_alive();
    }
}

/*
 * Elements of more than 16 bytes in messages of many sizes: of less than an envelope, eager ones,
 * and ones that go in fragments, whose ends are within elements where the sender's data is one
 * piece.
 */
void types_wide(uint64_t *state)
{
    static const int sizes[] = {64, 96, 128, 960, 1056, 4000, 12000, 70000, 300000};
    gpu_kind_t kinds[GPU_KINDS];
    int kind_count = mpitest_memory_kinds(kinds), t, s, out, turn = 0;
    plan_t plan;

    find_types();
    for (t = 0; t < type_count; ++t) {
        for (s = 0; 16 < size_of(types[t]) && s < (int) (sizeof(sizes) / sizeof(sizes[0])); ++s) {
            for (out = CONTIGUOUS; out <= ODD; ++out) {
                int head = 0 == mpitest_between(state, 0, 1) ? HEAD : 0;

                plan.type = types[t];
                plan.from = kinds[mpitest_between(state, 0, kind_count - 1)];
                plan.to = kinds[mpitest_between(state, 0, kind_count - 1)];
                plan.out = out | head;
                plan.in = (int) mpitest_between(state, VECTOR, SHAPES - 1) | head;
                plan.way = turn++ % WAYS;
                plan.n = count_of(types[t], sizes[s]);
                spare_host(&plan);
                message(&plan);
            }
        }
    }
}

/* Into those layouts, with every call. The sender's layout is even: packing by Open MPI is not
 * tested. */
void types_uneven(uint64_t *state)
{
    gpu_kind_t kinds[GPU_KINDS];
    int kind_count = mpitest_memory_kinds(kinds), t, which;
    const char *bare = getenv("UMRDDT_TEST_BARE");
    plan_t plan;

    if (5 <= OMPI_MAJOR_VERSION && NULL != bare && 0 != *bare) {
        return;
    }
    find_types();
    for (t = 0; t < type_count; ++t) {
        for (which = HALVES; NULL != strstr(name_of(types[t]), "COMPLEX") && which < SHAPES_UNEVEN;
             ++which) {
            for (plan.way = 0; plan.way < WAYS; ++plan.way) {
                plan.type = types[t];
                plan.n = count_of(types[t], (int) mpitest_between(state, 200, 9000));
                plan.from = kinds[mpitest_between(state, 0, kind_count - 1)];
                plan.to = kinds[mpitest_between(state, 0, kind_count - 1)];
                plan.out = VECTOR;
                plan.in = which;
                message(&plan);
            }
        }
    }
}

/* Of wide elements: a receive with more room; and, in rows that name this part, since not all
 * handled bytes arrive then, one with too little. */
void types_wide_cut(uint64_t *state)
{
    const bool cuts = mpitest_has("wide_cut");
    gpu_kind_t kinds[GPU_KINDS];
    int kind_count = mpitest_memory_kinds(kinds), t, turn;
    MPI_Comm comm;

    find_types();
    MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    MPI_OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    for (t = 0; t < type_count; ++t) {
        for (turn = 0; 16 < size_of(types[t]) && turn < 12; ++turn, ++mpitest.step) {
            int elements = -1, room, rc;
            MPI_Request request;
            MPI_Status status;
            part_t out, in;
            uint64_t key;
            plan_t plan;

            /* pml/ob1 of Open MPI 4.1.4 alone writes beyond a receive that is too short if the
             * sender's data is contiguous: therefore it never is. */
            plan.type = types[t];
            plan.way = RECV;
            plan.n = count_of(types[t], (int) mpitest_between(state, 100, 6000));
            key = mpitest_random(state);
            plan.out = (int) mpitest_between(state, VECTOR, DESCENDING);
            plan.from = kinds[mpitest_between(state, 0, kind_count - 1)];
            plan.in = (int) mpitest_between(state, VECTOR, DESCENDING);
            plan.to = kinds[mpitest_between(state, 0, kind_count - 1)];
            spare_host(&plan);
            room = cuts && 0 != turn % 2 ? plan.n - 1 : plan.n + 8;
            part_make(&out, plan.out, plan.n, plan.type, plan.from);
            part_make(&in, plan.in, room, plan.type, plan.to);
            mpitest_fill(out.buffer, key + (uint64_t) mpitest.rank);
            mpitest_clear(in.buffer);
            MPI_OK(MPI_Isend(out.buffer->addr, 1, out.type, mpitest_right(), 4, comm, &request));
            rc = MPI_Recv(in.buffer->addr, 1, in.type, mpitest_left(), 4, comm, &status);
            MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            if (room > plan.n) {
                CHECK_INT(rc, MPI_SUCCESS);
                MPI_OK(MPI_Get_elements(&status, in.type, &elements));
                CHECK_INT(elements, plan.n * elements_of(types[t]));
                VERIFY(in.buffer, key + (uint64_t) mpitest_left(), out.map->size);
            } else {
                CHECK_INT(mpitest_error_class(rc), MPI_ERR_TRUNCATE);
                VERIFY_TRUNCATED(in.buffer, key + (uint64_t) mpitest_left(), in.map->size);
            }
            part_free(&out);
            part_free(&in);
        }
    }
    MPI_OK(MPI_Comm_free(&comm));
}
