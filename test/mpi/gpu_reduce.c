/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Reductions of predefined operations on buffers in GPU memory: each collective, random operations,
 * types, counts, in place and not, on GPUs on all ranks or not, compared with the same call on
 * system memory. Counters prove that the data went from GPU to GPU where all buffers are there. All
 * values are small integers, so that sums of floating point numbers do not depend on their order.
 *
 * Nonblocking and persistent calls are direct with any memory.
 *
 * --mode fail: a kernel of rank 0 fails (by umrddt_sim); fail-request: of MPI_Iallreduce. --mode
 * times: prints times of MPI_Allreduce. --mode threads: threads that share scratch memory for one
 * call only.
 */

#include "gpu_memory.h"
#include "mpitest.h"
#include "persistent.h"
#include "pvars.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define GUARD 64

/* ---------------------------------------------------------------------------------------------
 * Counters
 * ------------------------------------------------------------------------------------------- */

typedef enum counter_t {
    STAGED,
    DIRECT,
    REDUCTIONS,
    AGREEMENTS,
    FAILURES,
    COUNTERS
} counter_t;

static const char *const names[COUNTERS] = {"staged", "direct", "reductions", "agreements",
                                            "failures"};
static MPI_T_pvar_session session;
static MPI_T_pvar_handle handles[COUNTERS];

static bool counters_open(void)
{
    int provided, count, index, found = 0;
    char name[64];

    MPI_OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    MPI_OK(MPI_T_pvar_session_create(&session));
    for (int c = 0; c < COUNTERS; ++c) {
        snprintf(name, sizeof(name), "coll_umrddt_%s", names[c]);
        if (MPI_SUCCESS == MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_COUNTER, &index)) {
            MPI_OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handles[c], &count));
            ++found;
        }
    }
    return COUNTERS == found;
}

static unsigned long long counter(counter_t which)
{
    unsigned long long value;

    MPI_OK(MPI_T_pvar_read(session, handles[which], &value));
    return value;
}

/* ---------------------------------------------------------------------------------------------
 * Operations and types
 * ------------------------------------------------------------------------------------------- */

enum {
    INTEGERS = 0x1,
    REALS = 0x2,
    COMPLEXES = 0x4,
    PAIRS = 0x8,
    BITS = 0x10, /* no arithmetic */
    BOOLS = 0x20
};

typedef struct type_t {
    MPI_Datatype type;
    size_t extent;
    unsigned is;
} type_t;

typedef struct op_t {
    MPI_Op op;
    unsigned takes;
} op_t;

#define TYPES 24
#define OPS   12

static const type_t *types(void)
{
    static type_t list[TYPES];
    const type_t made[TYPES] = {
        {MPI_DOUBLE, 8, REALS},
        {MPI_INT, 4, INTEGERS},
        {MPI_FLOAT, 4, REALS},
        {MPI_LONG, 8, INTEGERS},
        {MPI_SHORT, 2, INTEGERS},
        {MPI_SIGNED_CHAR, 1, INTEGERS},
        {MPI_UNSIGNED_CHAR, 1, INTEGERS},
        {MPI_UNSIGNED_SHORT, 2, INTEGERS},
        {MPI_UNSIGNED, 4, INTEGERS},
        {MPI_UNSIGNED_LONG, 8, INTEGERS},
        {MPI_LONG_LONG, 8, INTEGERS},
        {MPI_INT8_T, 1, INTEGERS},
        {MPI_UINT16_T, 2, INTEGERS},
        {MPI_INT32_T, 4, INTEGERS},
        {MPI_UINT64_T, 8, INTEGERS},
        {MPI_BYTE, 1, BITS},
        {MPI_C_BOOL, 1, BOOLS},
        {MPI_C_FLOAT_COMPLEX, 8, COMPLEXES},
        {MPI_C_DOUBLE_COMPLEX, 16, COMPLEXES},
        {MPI_FLOAT_INT, 8, PAIRS},
        {MPI_DOUBLE_INT, 16, PAIRS},
        {MPI_LONG_INT, 16, PAIRS},
        {MPI_2INT, 8, PAIRS},
        {MPI_SHORT_INT, 8, PAIRS},
    };

    memcpy(list, made, sizeof(list));
    return list;
}

static const op_t *ops(void)
{
    static op_t list[OPS];
    const op_t made[OPS] = {
        {MPI_SUM, INTEGERS | REALS | COMPLEXES},
        {MPI_PROD, INTEGERS | REALS | COMPLEXES},
        {MPI_MAX, INTEGERS | REALS},
        {MPI_MIN, INTEGERS | REALS},
        {MPI_LAND, INTEGERS | BOOLS},
        {MPI_LOR, INTEGERS | BOOLS},
        {MPI_LXOR, INTEGERS | BOOLS},
        {MPI_BAND, INTEGERS | BITS},
        {MPI_BOR, INTEGERS | BITS},
        {MPI_BXOR, INTEGERS | BITS},
        {MPI_MAXLOC, PAIRS},
        {MPI_MINLOC, PAIRS},
    };

    memcpy(list, made, sizeof(list));
    return list;
}

/*
 * Small numbers; of pairs, few different values. @param[in] op  sums and products must not
 * overflow: Open MPI's vector operations on small integers saturate
 */
static void fill(const type_t *type, MPI_Op op, size_t count, unsigned char *bytes, uint64_t *state)
{
    for (size_t i = 0; i < count; ++i) {
        unsigned char *at = bytes + i * type->extent;
        const long draw = mpitest_between(state, 0, 3);
        const int index = (int) mpitest_between(state, -5, 5);
        const double reals[2] = {(double) draw, (double) index};
        const float floats[2] = {(float) draw, (float) index};
        const short value = (short) draw;

        if (0 != (type->is & (REALS | COMPLEXES))) {
            const bool single = MPI_FLOAT == type->type || MPI_C_FLOAT_COMPLEX == type->type;

            memcpy(at, single ? (const void *) floats : (const void *) reals, type->extent);
        } else if (0 != (type->is & PAIRS)) {
            memset(at, 0, type->extent / 2);
            memset(at + type->extent / 2, 0x5a, type->extent / 2);
            if (MPI_FLOAT_INT == type->type) {
                memcpy(at, floats, sizeof(float));
            } else if (MPI_DOUBLE_INT == type->type) {
                memcpy(at, reals, sizeof(double));
            } else {
                memcpy(at, &value, sizeof(value));
            }
            memcpy(at + type->extent / 2, &index, sizeof(index));
        } else {
            for (size_t k = 0; k < type->extent; ++k) {
                at[k] = (unsigned char) (mpitest_random(state) >> 40);
            }
            if (MPI_UNSIGNED_LONG == type->type) {
                at[type->extent - 1] &= 0x7f; /* Open MPI 4.1 compares it with a sign */
            }
            if (0 != (type->is & BOOLS) || 0 == draw || MPI_SUM == op || MPI_PROD == op) {
                memset(at, 0, type->extent);
                at[0] = (unsigned char) (0 != (type->is & BOOLS) ? draw % 2 : draw % 3);
            }
        }
    }
}

/* ---------------------------------------------------------------------------------------------
 * Calls
 * ------------------------------------------------------------------------------------------- */

typedef enum call_t {
    ALLREDUCE,
    REDUCE,
    REDUCE_SCATTER,
    REDUCE_SCATTER_BLOCK,
    SCAN,
    EXSCAN,
    CALLS
} call_t;

typedef enum form_t {
    BLOCKING,
    NONBLOCKING,
    PERSISTENTLY,
    FORMS
} form_t;

typedef struct job_t {
    MPI_Comm comm;
    MPI_Comm host; /* the same processes, for the calls on system memory */
    int size, rank, root;
    call_t call;
    form_t form;
    int count;     /* elements that all ranks give */
    int *rcounts;  /* of the results of a reduce_scatter */
    size_t result; /* elements of this rank's result */
    bool in_place;
    const type_t *type;
    int which; /* of ops() */
    MPI_Op op;
} job_t;

#if HAS_PERSISTENT
#define INIT(name, ...) PERSISTENT(name)(__VA_ARGS__, comm, MPI_INFO_NULL, request)
#else
#define INIT(name, ...) MPI_ERR_UNSUPPORTED_OPERATION
#endif

#define CALL(name, nonblocking, ...)                                        \
    (BLOCKING == form      ? MPI_##name(__VA_ARGS__, comm)                  \
     : NONBLOCKING == form ? MPI_I##nonblocking(__VA_ARGS__, comm, request) \
                           : INIT(name, __VA_ARGS__))

static int call(const job_t *job, form_t form, MPI_Comm comm, void *s, void *r,
                MPI_Request *request)
{
    const void *from =
        job->in_place && (REDUCE != job->call || job->root == job->rank) ? MPI_IN_PLACE : s;
    const MPI_Datatype type = job->type->type;

    switch (job->call) {
    case ALLREDUCE:
        return CALL(Allreduce, allreduce, from, r, job->count, type, job->op);
    case REDUCE:
        return CALL(Reduce, reduce, from, r, job->count, type, job->op, job->root);
    case REDUCE_SCATTER:
        return CALL(Reduce_scatter, reduce_scatter, from, r, job->rcounts, type, job->op);
    case REDUCE_SCATTER_BLOCK:
        return CALL(Reduce_scatter_block, reduce_scatter_block, from, r, job->count / job->size,
                    type, job->op);
    case SCAN:
        return CALL(Scan, scan, from, r, job->count, type, job->op);
    default:
        return CALL(Exscan, exscan, from, r, job->count, type, job->op);
    }
}

/* Draw all but the communicator; the same on all ranks. */
static void draw(job_t *job, int count, uint64_t *state)
{
    const op_t *op;
    int left;

    do {
        job->type = &types()[mpitest_random(state) % TYPES];
        op = &ops()[mpitest_random(state) % OPS];
    } while (0 == (op->takes & job->type->is));
    job->op = op->op;
    job->which = (int) (op - ops());
    job->call = (call_t) (mpitest_random(state) % CALLS);
    job->root = (int) (mpitest_random(state) % (uint64_t) job->size);
    job->in_place = 0 == mpitest_random(state) % 3;
    job->form = (form_t) (mpitest_random(state) % (HAS_PERSISTENT ? FORMS : PERSISTENTLY));
    job->count = count;
    if (REDUCE_SCATTER_BLOCK == job->call) {
        job->count = (count + job->size - 1) / job->size * job->size;
    }
    left = job->count;
    for (int i = 0; i < job->size; ++i) {
        /* some get nothing, the last one gets the rest */
        const long some = mpitest_between(state, 0, left);

        job->rcounts[i] = job->size - 1 == i               ? left
                          : 0 == mpitest_random(state) % 4 ? 0
                                                           : (int) some;
        left -= job->rcounts[i];
    }
    job->result = (size_t) (REDUCE_SCATTER == job->call         ? job->rcounts[job->rank]
                            : REDUCE_SCATTER_BLOCK == job->call ? job->count / job->size
                            : REDUCE == job->call && job->root != job->rank ? 0
                                                                            : job->count);
}

/* Both zeros of floating point numbers are equal: which one it is depends on the order. */
static bool equal(const type_t *type, const unsigned char *x, const unsigned char *y, size_t bytes)
{
    if (0 == memcmp(x, y, bytes)) {
        return true;
    }
    if (0 == (type->is & (REALS | COMPLEXES))) {
        return false;
    }
    for (size_t k = 0; k < bytes; ++k) {
        const size_t last = MPI_FLOAT == type->type || MPI_C_FLOAT_COMPLEX == type->type ? 3 : 7;

        if (x[k] != y[k]
            && (last != k % (last + 1) || 0x80 != (x[k] ^ y[k]) || 0 != (x[k] & 0x7f))) {
            return false;
        }
    }
    return true;
}

/*
 * Compare elements, and report the first difference. Bytes of pairs that no element covers are not
 * compared: MPI does not define them in a result.
 */
static bool same(const job_t *job, const unsigned char *got, const unsigned char *wanted,
                 size_t count)
{
    const size_t extent = job->type->extent, half = extent / 2;
    const bool pair = 0 != (PAIRS & job->type->is);
    const size_t value = !pair ? extent : MPI_SHORT_INT == job->type->type ? 2 : half;
    char type[MPI_MAX_OBJECT_NAME];
    int length;

    for (size_t i = 0; i < count; ++i) {
        const unsigned char *x = got + i * extent, *y = wanted + i * extent;

        if (!equal(job->type, x, y, value) || (pair && 0 != memcmp(x + half, y + half, 4))) {
            MPI_OK(MPI_Type_get_name(job->type->type, type, &length));
            fprintf(stderr, "rank %d: element %zu of %zu: call %d, %s, operation %d%s:", job->rank,
                    i, count, (int) job->call, type, job->which, job->in_place ? ", in place" : "");
            for (size_t k = 0; k < extent; ++k) {
                fprintf(stderr, " %02x/%02x", x[k], y[k]);
            }
            fprintf(stderr, "\n");
            return false;
        }
    }
    return true;
}

/* Calls may have to do without scratch memory. */
static bool lacks_scratch(void)
{
    return (1 << 20) > pvars_parameter("pml_umrddt_pack_scratch", 1 << 20);
}

/* Write the buffers, and do the call on them. */
static void call_on(const job_t *job, gpu_memory_t *memory[2], const unsigned char *s,
                    const unsigned char *r, size_t bytes)
{
    const int starts = PERSISTENTLY == job->form ? 2 : 1;
    MPI_Request request = MPI_REQUEST_NULL;

    for (int i = 0; i < starts; ++i) {
        gpu_write(memory[0], 0, s, bytes);
        gpu_write(memory[1], 0, r, bytes + GUARD);
        if (0 == i) {
            MPI_OK(call(job, job->form, job->comm, memory[0]->addr, memory[1]->addr, &request));
        }
        if (PERSISTENTLY == job->form) {
            MPI_OK(MPI_Start(&request));
        }
        MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    if (MPI_REQUEST_NULL != request) {
        MPI_OK(MPI_Request_free(&request));
    }
}

/* Fully specified: buffers of these kinds. @return whether the data went from GPU to GPU */
static bool run(const job_t *job, gpu_kind_t send, gpu_kind_t recv, uint64_t seed)
{
    uint64_t state = mpitest_mix(seed, (uint64_t) job->rank, 77);
    const size_t bytes = (size_t) job->count * job->type->extent;
    gpu_memory_t *memory[2] = {gpu_memory(send, bytes), gpu_memory(recv, bytes + GUARD)};
    unsigned char *s = malloc(bytes + 1), *r = malloc(bytes + GUARD), *got = malloc(bytes + GUARD);
    const unsigned long long direct = counter(DIRECT), staged = counter(STAGED);
    bool was_direct;

    CHECK(NULL != s && NULL != r && NULL != got);
    fill(job->type, job->op, (size_t) job->count, s, &state);
    memset(r, 0x33, bytes + GUARD);
    if (job->in_place && (REDUCE != job->call || job->root == job->rank)) {
        memcpy(r, s, bytes);
    }
    call_on(job, memory, s, r, bytes);
    was_direct = direct < counter(DIRECT);
    CHECK(direct + (PERSISTENTLY == job->form ? 2 : 1) >= counter(DIRECT));
    CHECK(!was_direct || staged == counter(STAGED) || GPU_VMM == send || lacks_scratch());
    gpu_read(memory[1], 0, got, bytes + GUARD);
    MPI_OK(call(job, BLOCKING, job->host, s, r, NULL));
    if (EXSCAN != job->call || 0 < job->rank) {
        CHECK(same(job, got, r, job->result));
    }
    if (REDUCE_SCATTER != job->call && REDUCE_SCATTER_BLOCK != job->call) {
        /* what is behind the result stays */
        CHECK(0 == memcmp(got + bytes, r + bytes, GUARD));
    } else if (!job->in_place) {
        CHECK(0
              == memcmp(got + job->result * job->type->extent, r + job->result * job->type->extent,
                        GUARD));
    }
    gpu_read(memory[0], 0, got, bytes);
    CHECK(0 == memcmp(got, s, bytes));
    gpu_memory_free(memory[0]);
    gpu_memory_free(memory[1]);
    free(s);
    free(r);
    free(got);
    return was_direct;
}

/* Who has buffers in GPU memory. */
enum {
    ALL,
    INNER,
    BUT_ONE,
    ONE,
    MIXES
};

/*
 * Random calls. @param[in] mixed  some on ranks without GPU memory. Those are done through system
 * memory, maybe by other collectives, which count as calls without GPU memory. If there are none,
 * all are direct
 */
static void on(MPI_Comm comm, int n, const int *counts, int counts_n, bool mixed, uint64_t *state)
{
    size_t least = (size_t) pvars_parameter("coll_umrddt_direct_min", 4096);
    const bool enabled = 0 != pvars_parameter("coll_umrddt_direct", 1);
    job_t job = {.root = 0};

    MPI_OK(MPI_Comm_dup(comm, &job.comm));
    MPI_OK(MPI_Comm_dup(comm, &job.host));
    MPI_OK(MPI_Comm_size(comm, &job.size));
    MPI_OK(MPI_Comm_rank(comm, &job.rank));
    least = 2 < job.size ? least * (size_t) job.size / 2 : least;
    job.rcounts = malloc((size_t) job.size * sizeof(int));
    CHECK(NULL != job.rcounts);
    for (int i = 0; i < n; ++i) {
        const int mix = (int) (mpitest_random(state) % (mixed ? MIXES : BUT_ONE));
        const int which = (int) (mpitest_random(state) % (uint64_t) job.size);
        const uint64_t seed = mpitest_random(state);
        gpu_kind_t send = INNER == mix ? GPU_INNER : GPU_DEVICE, recv = send;
        bool direct;

        draw(&job, counts[mpitest_random(state) % (uint64_t) counts_n], state);
        if ((BUT_ONE == mix && which == job.rank) || (ONE == mix && which != job.rank)) {
            send = recv = GPU_HOST;
        }
        if (EXSCAN == job.call && !job.in_place && 0 == job.rank) {
            recv = GPU_HOST; /* not significant */
        }
        if (mpitest.verbose && 0 == job.rank) {
            char name[MPI_MAX_OBJECT_NAME];
            int length;

            MPI_OK(MPI_Type_get_name(job.type->type, name, &length));
            printf("call %d, form %d, %s, operation %d, count %d, mix %d%s\n", (int) job.call,
                   (int) job.form, name, job.which, job.count, mix,
                   job.in_place ? ", in place" : "");
            fflush(stdout);
        }
        direct = run(&job, send, recv, seed);
        if (!enabled || (size_t) job.count * (size_t) job.type->extent < least) {
            CHECK(!direct);
        } else if (ALL == mix || INNER == mix || BLOCKING != job.form) {
            int bytes;

            /* bytes of data, without gaps */
            MPI_OK(MPI_Type_size(job.type->type, &bytes));
            CHECK(((mixed || lacks_scratch()) && BLOCKING == job.form) || direct
                  || (size_t) job.count * (size_t) bytes < least);
        } else {
            CHECK(!direct);
        }
        ++mpitest.step;
    }
    MPI_OK(MPI_Comm_free(&job.comm));
    MPI_OK(MPI_Comm_free(&job.host));
    free(job.rcounts);
}

static const int small[] = {1, 2, 3, 7, 64, 333};
static const int medium[] = {700, 2048, 4099, 20001};

static void on_small(uint64_t *state)
{
    on(MPI_COMM_WORLD, 60, small, 6, false, state);
}

static void on_medium(uint64_t *state)
{
    on(MPI_COMM_WORLD, 80, medium, 4, false, state);
}

static void on_mixed(uint64_t *state)
{
    on(MPI_COMM_WORLD, 60, medium, 4, true, state);
}

/* Ranks in another order, and one alone. */
static void on_parts(uint64_t *state)
{
    MPI_Comm comm;

    MPI_OK(MPI_Comm_split(MPI_COMM_WORLD, mpitest.rank == mpitest.size - 1, -mpitest.rank, &comm));
    on(comm, 40, medium, 4, false, state);
    MPI_OK(MPI_Comm_free(&comm));
}

/* Memory that is not of one allocation: all agree that it is done through system memory. */
static void fallback(uint64_t *state)
{
    job_t job = {
        .comm = MPI_COMM_WORLD, .host = MPI_COMM_WORLD, .size = mpitest.size, .rank = mpitest.rank};

    if (!gpu_kind_available(GPU_VMM)) {
        return;
    }
    job.rcounts = malloc((size_t) job.size * sizeof(int));
    CHECK(NULL != job.rcounts);
    for (int i = 0; i < 10; ++i) {
        const uint64_t seed = mpitest_random(state);

        draw(&job, 20000, state);
        (void) run(&job, 0 == job.rank ? GPU_VMM : GPU_DEVICE, GPU_DEVICE, seed);
    }
    free(job.rcounts);
}

/* The same call again: no agreement but one each, no new scratch memory. Of two processes, each
 * combines only its half if there are segments of it. */
static void steady(uint64_t *state)
{
    enum {
        COUNT = 5000,
        CALLS_AGAIN = 20
    };
    gpu_memory_t *memory = gpu_memory(GPU_DEVICE, COUNT * sizeof(double));
    double values[COUNT];
    pvars_t before, after;
    unsigned long long direct = 0, agreements = 0, reductions = 0;
    size_t segment;

    (void) state;
    for (int i = 0; i < COUNT; ++i) {
        values[i] = i % 5;
    }
    gpu_write(memory, 0, values, sizeof(values));
    (void) pvars_open();
    segment = (size_t) pvars_parameter("coll_umrddt_segment", 4 << 20);
    for (int i = -3; i < CALLS_AGAIN; ++i) {
        if (0 == i) {
            pvars_read(&before);
            direct = counter(DIRECT);
            agreements = counter(AGREEMENTS);
            reductions = counter(REDUCTIONS);
        }
        MPI_OK(
            MPI_Allreduce(MPI_IN_PLACE, memory->addr, COUNT, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
    }
    pvars_read(&after);
    if (0 != pvars_parameter("coll_umrddt_direct", 1)) {
        CHECK_INT(counter(DIRECT) - direct, CALLS_AGAIN);
        CHECK_INT(counter(AGREEMENTS) - agreements, CALLS_AGAIN);
        if (2 == mpitest.size && segment < sizeof(values) / 2) {
            CHECK_INT(counter(REDUCTIONS) - reductions,
                      CALLS_AGAIN * ((sizeof(values) / 2 + segment - 1) / segment));
        }
    }
    CHECK_INT(after.value[PVARS_GPU_SCRATCH_BUFFERS], before.value[PVARS_GPU_SCRATCH_BUFFERS]);
    pvars_close();
    gpu_read(memory, 0, values, sizeof(values));
    for (int i = 0; i < COUNT; ++i) {
        CHECK(i % 5 == values[i]);
    }
    gpu_memory_free(memory);
}

/* More calls in progress than there are tags: of two kinds, on GPUs and not, which end without the
 * handle of their communicator. The odd ranks begin to wait with the last. With
 * coll_umrddt_direct=0 all are on GPUs: Open MPI itself does the others then, and uses a
 * communicator that it has freed (pml/ucx crashes, without umrddt too). */
static void pending(uint64_t *state)
{
    enum {
        MANY = 70,
        COUNT = 4096
    };
    gpu_memory_t *memory[2] = {gpu_memory(GPU_DEVICE, MANY * COUNT * sizeof(double)),
                               gpu_memory(GPU_HOST, MANY * COUNT * sizeof(double))};
    double *values = malloc(COUNT * sizeof(double));
    MPI_Request requests[MANY];
    bool direct;
    MPI_Comm comm;

    (void) state;
    CHECK(NULL != values);
    (void) pvars_open();
    direct = 0 != pvars_parameter("coll_umrddt_direct", 1);
    pvars_close();
    MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    for (int k = 0; k < MANY; ++k) {
        gpu_memory_t *where = memory[direct && 0 == (k + mpitest.rank) % 5 ? 1 : 0];
        unsigned char *at = where->addr + (size_t) k * COUNT * sizeof(double);

        for (int i = 0; i < COUNT; ++i) {
            values[i] = i % 7 + k + mpitest.rank;
        }
        gpu_write(where, (size_t) k * COUNT * sizeof(double), values, COUNT * sizeof(double));
        if (0 == k % 2) {
            MPI_OK(
                MPI_Iallreduce(MPI_IN_PLACE, at, COUNT, MPI_DOUBLE, MPI_SUM, comm, &requests[k]));
        } else {
            MPI_OK(MPI_Iscan(MPI_IN_PLACE, at, COUNT, MPI_DOUBLE, MPI_SUM, comm, &requests[k]));
        }
    }
    MPI_OK(MPI_Comm_free(&comm));
    for (int i = 0; i < MANY; ++i) {
        MPI_OK(MPI_Wait(&requests[0 == mpitest.rank % 2 ? i : MANY - 1 - i], MPI_STATUS_IGNORE));
    }
    for (int k = 0; k < MANY; ++k) {
        const int n = 0 == k % 2 ? mpitest.size : mpitest.rank + 1;

        gpu_read(memory[direct && 0 == (k + mpitest.rank) % 5 ? 1 : 0],
                 (size_t) k * COUNT * sizeof(double), values, COUNT * sizeof(double));
        for (int i = 0; i < COUNT; ++i) {
            CHECK(n * (i % 7 + k) + n * (n - 1) / 2 == values[i]);
        }
    }
    gpu_memory_free(memory[0]);
    gpu_memory_free(memory[1]);
    free(values);
}

/* Do a nonblocking allreduce. @return messages of this process that umrddt handled */
static uint64_t messages(gpu_memory_t *memory, int many, MPI_Op op)
{
    pvars_t before, after;
    MPI_Request request;

    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    pvars_read(&before);
    MPI_OK(
        MPI_Iallreduce(MPI_IN_PLACE, memory->addr, many, MPI_DOUBLE, op, MPI_COMM_WORLD, &request));
    MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    pvars_read(&after);
    return after.value[PVARS_HANDLED_SENDS] - before.value[PVARS_HANDLED_SENDS];
}

/* A nonblocking sum of little data takes one message for each other process, not two as a product.
 * With GPUs at some processes only, all have the same bits although the sums are rounded. */
static void one_step(uint64_t *state)
{
    enum {
        COUNT = 1000
    };
    gpu_memory_t *memory[2] = {gpu_memory(GPU_DEVICE, COUNT * sizeof(double)),
                               gpu_memory(GPU_HOST, COUNT * sizeof(double))};
    double values[COUNT], first[COUNT];

    (void) pvars_open();
    if (pvars_parameter("coll_umrddt_segment", 0) / 4
        >= (mpitest.size - 1) * (long) (COUNT * sizeof(double))) {
        const uint64_t sum = messages(memory[0], COUNT, MPI_SUM);

        /* In the row of this part alone it is not left to the base PML. */
        CHECK(0 != strcmp(mpitest.mode, "one") || (uint64_t) mpitest.size - 1 == sum);
        CHECK_INT(messages(memory[0], COUNT, MPI_PROD), 2 * sum);
    }
    pvars_close();
    for (int i = 0; i < COUNT; ++i) {
        values[i] = 1.0 / (double) (3 + mpitest_random(state) % 1000 + (uint64_t) mpitest.rank);
    }
    for (int turn = 0; turn < 3; ++turn) {
        gpu_memory_t *mine = memory[(mpitest.rank + turn) % 2];

#if defined(__SSE2__)
        /* As after -ffast-math: processors flush denormal numbers, GPUs do not. */
        _mm_setcsr(2 == turn ? _mm_getcsr() | 0x8040 : _mm_getcsr() & ~0x8040u);
        for (int i = 0; 2 == turn && i < COUNT; ++i) {
            const uint64_t denormal = mpitest_random(state) % 1000;

            memcpy(&values[i], &denormal, sizeof(denormal));
        }
#endif
        gpu_write(mine, 0, values, sizeof(values));
        (void) messages(mine, COUNT, MPI_SUM);
        gpu_read(mine, 0, values, sizeof(values));
        memcpy(first, values, sizeof(first));
        MPI_OK(MPI_Bcast(first, COUNT, MPI_DOUBLE, 0, MPI_COMM_WORLD));
        CHECK(0 == memcmp(first, values, sizeof(first)));
    }
#if defined(__SSE2__)
    CHECK(0x8040 == (_mm_getcsr() & 0x8040)); /* MPI has not changed it */
    _mm_setcsr(_mm_getcsr() & ~0x8040u);
#endif
    gpu_memory_free(memory[0]);
    gpu_memory_free(memory[1]);
}

/* A buffer that is not significant may be anywhere. */
static void elsewhere(uint64_t *state)
{
    enum {
        COUNT = 3000
    };
    gpu_memory_t *memory = gpu_memory(GPU_DEVICE, 2 * COUNT * sizeof(int));
    int values[COUNT];

    (void) state;
    for (int i = 0; i < COUNT; ++i) {
        values[i] = mpitest.rank + i;
    }
    gpu_write(memory, 0, values, sizeof(values));
    for (int root = 0; root < mpitest.size; ++root) {
        MPI_OK(MPI_Reduce(memory->addr,
                          root == mpitest.rank ? memory->addr + COUNT * sizeof(int) : NULL, COUNT,
                          MPI_INT, MPI_SUM, root, MPI_COMM_WORLD));
        if (root == mpitest.rank) {
            gpu_read(memory, COUNT * sizeof(int), values, sizeof(values));
            for (int i = 0; i < COUNT; ++i) {
                CHECK_INT(values[i], mpitest.size * i + mpitest.size * (mpitest.size - 1) / 2);
            }
        }
    }
    gpu_memory_free(memory);
}

static void local(uint64_t *state)
{
    enum {
        COUNT = 2500
    };
    const unsigned long long before = counter(REDUCTIONS);

    for (int i = 0; i < 60; ++i) {
        const type_t *type = &types()[mpitest_random(state) % TYPES];
        const op_t *op = &ops()[mpitest_random(state) % OPS];
        const gpu_kind_t kinds[2] = {0 == i % 7 ? GPU_HOST
                                     : i % 2    ? GPU_INNER
                                                : GPU_DEVICE,
                                     0 == i % 5 ? GPU_INNER : GPU_DEVICE};
        const size_t bytes = COUNT * type->extent;
        gpu_memory_t *memory[2];
        unsigned char *now[2], *got = malloc(bytes);
        job_t job = {.type = type, .op = op->op, .which = (int) (op - ops())};

        if (0 == (type->is & op->takes)) {
            free(got);
            continue;
        }
        CHECK(NULL != got);
        for (int k = 0; k < 2; ++k) {
            now[k] = malloc(bytes);
            CHECK(NULL != now[k]);
            fill(type, op->op, COUNT, now[k], state);
            memory[k] = gpu_memory(kinds[k], bytes);
            gpu_write(memory[k], 0, now[k], bytes);
        }
        MPI_OK(MPI_Reduce_local(memory[0]->addr, memory[1]->addr, COUNT, type->type, op->op));
        MPI_OK(MPI_Reduce_local(now[0], now[1], COUNT, type->type, op->op));
        gpu_read(memory[1], 0, got, bytes);
        CHECK(same(&job, got, now[1], COUNT));
        for (int k = 0; k < 2; ++k) {
            gpu_memory_free(memory[k]);
            free(now[k]);
        }
        free(got);
    }
    CHECK(before < counter(REDUCTIONS));
}

/* A kernel fails on rank 0: an error there, no process hangs, and the next call is right. With
 * small segments, rank 0 has the result of a part for all: an error in each process. */
static void broken(void)
{
    enum {
        COUNT = 3000
    };
    gpu_memory_t *memory = gpu_memory(GPU_DEVICE, COUNT * sizeof(int));
    const bool nonblocking = 0 == strcmp(mpitest.mode, "fail-request");
    const bool parts = pvars_parameter("coll_umrddt_segment", 0) < COUNT * (int) sizeof(int) / 2;
    MPI_Request request;
    int values[COUNT], failed = 0, all = 0;

    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (int turn = 0; turn < 4; ++turn) {
        int rc;

        for (int i = 0; i < COUNT; ++i) {
            values[i] = mpitest.rank + i;
        }
        gpu_write(memory, 0, values, sizeof(values));
        if (nonblocking) {
            MPI_OK(MPI_Iallreduce(MPI_IN_PLACE, memory->addr, COUNT, MPI_INT, MPI_SUM,
                                  MPI_COMM_WORLD, &request));
            rc = MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            rc = MPI_Allreduce(MPI_IN_PLACE, memory->addr, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        }
        gpu_read(memory, 0, values, sizeof(values));
        if (MPI_SUCCESS != rc) {
            CHECK_INT(mpitest_error_class(rc), MPI_ERR_OTHER);
            ++failed;
            continue;
        }
        for (int i = 0; i < COUNT; ++i) {
            CHECK_INT(values[i], mpitest.size * i + mpitest.size * (mpitest.size - 1) / 2);
        }
    }
    CHECK_INT(counter(FAILURES), 0 == mpitest.rank ? failed : 0);
    MPI_OK(MPI_Allreduce(&failed, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK_INT(all, parts ? mpitest.size : 1);
    gpu_memory_free(memory);
}

/* A thread's buffers, and its communicator. */
typedef struct worker_t {
    gpu_memory_t *memory[2];
    MPI_Comm comm;
} worker_t;

enum {
    THREADS = 3,
    SHARED = 64 * 1024 /* integers of a call: its scratch memory is all that there is */
};

static void *reduce_often(void *argument)
{
    const worker_t *worker = argument;

    for (int i = 0; i < 100; ++i) {
        MPI_Request request = MPI_REQUEST_NULL;

        if (0 == i % 3) {
            MPI_OK(MPI_Iallreduce(worker->memory[0]->addr, worker->memory[1]->addr, SHARED, MPI_INT,
                                  MPI_SUM, worker->comm, &request));
            MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else {
            MPI_OK(MPI_Allreduce(worker->memory[0]->addr, worker->memory[1]->addr, SHARED, MPI_INT,
                                 MPI_SUM, worker->comm));
        }
    }
    return NULL;
}

/* A call that gets no scratch memory waits for no other one, and is done through system memory. */
static void shared_scratch(void)
{
    pthread_t threads[THREADS];
    worker_t workers[THREADS];
    int *values = malloc(SHARED * sizeof(int));

    CHECK(NULL != values);
    for (int t = 0; t < THREADS; ++t) {
        MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &workers[t].comm));
        for (int i = 0; i < SHARED; ++i) {
            values[i] = mpitest.rank + i + t;
        }
        for (int m = 0; m < 2; ++m) {
            workers[t].memory[m] = gpu_memory(GPU_DEVICE, SHARED * sizeof(int));
            gpu_write(workers[t].memory[m], 0, values, SHARED * sizeof(int));
        }
    }
    for (int t = 0; t < THREADS; ++t) {
        CHECK_INT(pthread_create(&threads[t], NULL, reduce_often, &workers[t]), 0);
    }
    for (int t = 0; t < THREADS; ++t) {
        CHECK_INT(pthread_join(threads[t], NULL), 0);
    }
    for (int t = 0; t < THREADS; ++t) {
        gpu_read(workers[t].memory[1], 0, values, SHARED * sizeof(int));
        for (int i = 0; i < SHARED; ++i) {
            CHECK_INT(values[i], mpitest.size * (i + t) + mpitest.size * (mpitest.size - 1) / 2);
        }
        gpu_memory_free(workers[t].memory[0]);
        gpu_memory_free(workers[t].memory[1]);
        MPI_OK(MPI_Comm_free(&workers[t].comm));
    }
    CHECK(0 < counter(DIRECT));
    CHECK_INT(counter(FAILURES), 0);
    free(values);
}

static int compare(const void *a, const void *b)
{
    return (*(const double *) a > *(const double *) b)
           - (*(const double *) a < *(const double *) b);
}

/* Medians of the slowest rank's times, for GPUs. */
static void times(void)
{
    enum {
        MOST = 8 << 20,
        AGAIN = 50
    };
    gpu_memory_t *memory[2] = {gpu_memory(GPU_DEVICE, MOST * sizeof(double)),
                               gpu_memory(GPU_DEVICE, MOST * sizeof(double))};
    double *zeros = calloc(MOST, sizeof(double));

    CHECK(NULL != zeros);
    gpu_write(memory[0], 0, zeros, MOST * sizeof(double));
    gpu_write(memory[1], 0, zeros, MOST * sizeof(double));
    for (int in_place = 0; in_place < 2; ++in_place) {
        for (int count = 128; count <= MOST; count *= 2) {
            const unsigned long long direct = counter(DIRECT);
            double taken[AGAIN];

            for (int i = -5; i < AGAIN; ++i) {
                double begin, mine;

                MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
                begin = MPI_Wtime();
                MPI_OK(MPI_Allreduce(in_place ? MPI_IN_PLACE : memory[0]->addr, memory[1]->addr,
                                     count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD));
                mine = MPI_Wtime() - begin;
                if (0 <= i) {
                    MPI_OK(MPI_Allreduce(&mine, &taken[i], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD));
                }
            }
            qsort(taken, AGAIN, sizeof(taken[0]), compare);
            if (0 == mpitest.rank) {
                printf("allreduce of %d double%s: %.1f us, at best %.1f, %s\n", count,
                       in_place ? ", in place" : "", 1e6 * taken[AGAIN / 2], 1e6 * taken[0],
                       direct < counter(DIRECT) ? "from GPU to GPU" : "through system memory");
                fflush(stdout);
            }
            mpitest_alive();
        }
    }
    free(zeros);
    gpu_memory_free(memory[0]);
    gpu_memory_free(memory[1]);
}

static const mpitest_part_t parts[] = {
    {"small", on_small},    {"medium", on_medium},    {"mixed", on_mixed}, {"parts", on_parts},
    {"fallback", fallback}, {"elsewhere", elsewhere}, {"local", local},    {"steady", steady},
    {"pending", pending},   {"one", one_step},        {NULL, NULL},
};

int main(int argc, char **argv)
{
    int level = MPI_THREAD_SINGLE;

    for (int i = 1; i < argc; ++i) {
        level = 0 == strcmp(argv[i], "threads") ? MPI_THREAD_MULTIPLE : level;
    }
    mpitest_init(&argc, &argv, "gpu_reduce", 1, level);
    if (!counters_open()) {
        mpitest_skip("there is no coll/umrddt, and the CPU cannot touch memory of GPUs");
    }
    gpu_begin_all();
    if (0 == strncmp(mpitest.mode, "fail", 4)) {
        broken();
    } else if (0 == strcmp(mpitest.mode, "threads")) {
        shared_scratch();
    } else if (0 == strcmp(mpitest.mode, "times")) {
        times();
    } else {
        mpitest_run(parts);
        CHECK_INT(counter(FAILURES), 0);
    }
    MPI_OK(MPI_T_pvar_session_free(&session));
    MPI_OK(MPI_T_finalize());
    return mpitest_finish();
}
