/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Collectives on GPU buffers, with umrddt on top of an Open MPI with or without CUDA: each form of
 * each of them, on all buffers or some, on some ranks or all, compared with the same on system
 * memory. The CPU cannot access memory of a software GPU, so a wrong access crashes.
 *
 * --mode fail: the device fails (by umrddt_sim), and collectives return errors without a crash.
 * --mode far, huge, large: no copy can be allocated, and collectives return errors without a crash.
 * --mode no-memory: one process gets no memory for its copies in nonblocking calls.
 * --mode truncated: messages are longer than one process expects; none waits for another one.
 * --mode threads: nonblocking and persistent calls of several threads.
 * --mode off: coll/umrddt must not be selected. --mode rule: this Open MPI has CUDA; checks first
 * which calls are passed to it.
 */

#include "gpu_coll.h"

#include "gpu_memory.h"
#include "pvars.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The largest buffers here do not fit into a smaller one (coll_umrddt_pinned). */
#define SMALL_POOL (256 * 1024)

/* ---------------------------------------------------------------------------------------------
 * All of them
 * ------------------------------------------------------------------------------------------- */

/* Who has buffers on a GPU. */
enum {
    EVERYWHERE,
    SENDS,
    RECEIVES,
    SOME_RANKS,
    ONE_RANK,
    OF_ALL_KINDS,
    MIXES
};

static gpu_kind_t kinds[GPU_KINDS];
static int kind_count;

static void draw_kinds(int mix, uint64_t *state, gpu_kind_t *send, gpu_kind_t *recv)
{
    const uint64_t draw = mpitest_random(state) >> 8;

    *send = *recv = GPU_HOST;
    switch (mix) {
    case EVERYWHERE:
        *send = *recv = GPU_DEVICE;
        break;
    case SENDS:
        *send = GPU_INNER;
        break;
    case RECEIVES:
        *recv = GPU_INNER;
        break;
    case SOME_RANKS:
        if (0 == (mpitest.rank + (int) (draw % 2)) % 2) {
            *send = *recv = GPU_DEVICE;
        }
        break;
    case ONE_RANK:
        if (mpitest.rank == (int) (draw % (uint64_t) mpitest.size)) {
            *send = *recv = GPU_DEVICE;
        }
        break;
    default:
        *send = kinds[(draw + (uint64_t) mpitest.rank) % (uint64_t) kind_count];
        *recv = kinds[(draw / 64 + 5 * (uint64_t) mpitest.rank) % (uint64_t) kind_count];
    }
}

/* A communicator, and the values that are drawn for each call on it. */
static void draw_rest(gpu_coll_t *with, uint64_t *state, int *kind)
{
    static const int counts[] = {2, 5, 1, 300, 0, 1000};
    const uint64_t draw = mpitest_random(state) >> 8;
    const int of = with->inter ? 2 : 1;

    *kind = (int) (draw % GPU_COLL_TYPES);
    with->count = counts[draw / 8 % (with->inter ? 5 : 6)];
    with->type = gpu_coll_types[*kind][0];
    with->other = gpu_coll_types[*kind][1];
    with->extent = gpu_coll_shapes[*kind][0].extent;
    with->op = gpu_coll_op;
    with->root = (int) (draw / 64 % (uint64_t) (with->inter ? of : with->size));
    with->gives = with->root == with->rank;
}

/* The root is rank 0 of one of the two groups. */
static void inter_root(gpu_coll_t *with, bool first_group)
{
    const bool here = first_group == (0 == with->root);

    with->gives = here && 0 == with->rank;
    with->root = !here ? 0 : with->gives ? MPI_ROOT : MPI_PROC_NULL;
}

/* Collectives that were seen to be on GPU memory. */
static unsigned long long gpu_calls(void)
{
    return gpu_coll_counter(GPU_COLL_STAGED) + gpu_coll_counter(GPU_COLL_PASSED_GPU)
           + gpu_coll_counter(GPU_COLL_DIRECT);
}

static void every_case(gpu_coll_t *with, bool first_group, unsigned flags, uint64_t *state)
{
    for (const gpu_coll_case_t *what = gpu_coll_cases; NULL != what->name; ++what) {
        if ((0 != (GPU_COLL_NEIGHBOURS & flags)) != (0 != (GPU_COLL_NEIGHBOURS & what->flags))
            || (with->inter && 0 == (GPU_COLL_INTER & what->flags))) {
            continue;
        }
        for (int form = 0; form < GPU_COLL_FORMS; ++form) {
            if (!gpu_coll_has_form((gpu_coll_form_t) form)) {
                continue;
            }
            for (int turn = 0; turn < 2; ++turn) {
                const unsigned long long seen = gpu_calls();
                gpu_kind_t send, recv;
                gpu_coll_run_t run;
                int kind;

                draw_kinds(0 == turn ? EVERYWHERE : 1 + (int) (mpitest_random(state) % (MIXES - 1)),
                           state, &send, &recv);
                draw_rest(with, state, &kind);
                if (with->inter) {
                    inter_root(with, first_group);
                }
                if (mpitest.verbose && 0 == mpitest.rank) {
                    printf("%s form %d turn %d kind %d count %d\n", what->name, form, turn, kind,
                           with->count);
                    fflush(stdout);
                }
                gpu_coll_begin(&run, what, with, (gpu_coll_form_t) form, send, recv, kind, state);
                gpu_coll_end(&run);
                if (EVERYWHERE == turn && 0 < with->count && !gpu_coll_is(what, "v")
                    && 1 < with->size && !with->inter) {
                    CHECK(seen < gpu_calls());
                }
                ++mpitest.step;
            }
        }
    }
}

static void on_intra(MPI_Comm comm, unsigned flags, int sources, int destinations, uint64_t *state)
{
    gpu_coll_t with = {.comm = comm, .sources = sources, .destinations = destinations};

    MPI_OK(MPI_Comm_rank(comm, &with.rank));
    MPI_OK(MPI_Comm_size(comm, &with.size));
    with.others = with.size;
    every_case(&with, false, flags, state);
}

static void on_world(uint64_t *state)
{
    on_intra(MPI_COMM_WORLD, 0, 0, 0, state);
}

static void on_parts(uint64_t *state)
{
    MPI_Comm comm;

    /* the last rank alone, the others turned round */
    MPI_OK(MPI_Comm_split(MPI_COMM_WORLD, mpitest.rank == mpitest.size - 1, -mpitest.rank, &comm));
    on_intra(comm, 0, 0, 0, state);
    MPI_OK(MPI_Comm_free(&comm));
}

static void on_groups(uint64_t *state)
{
    const bool first = mpitest.rank < (mpitest.size + 1) / 2;
    gpu_coll_t with = {.inter = true};
    MPI_Comm half;

    MPI_OK(MPI_Comm_split(MPI_COMM_WORLD, first, mpitest.rank, &half));
    MPI_OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, first ? (mpitest.size + 1) / 2 : 0, 3,
                                &with.comm));
    MPI_OK(MPI_Comm_rank(with.comm, &with.rank));
    MPI_OK(MPI_Comm_size(with.comm, &with.size));
    MPI_OK(MPI_Comm_remote_size(with.comm, &with.others));
    every_case(&with, first, 0, state);
    MPI_OK(MPI_Comm_free(&with.comm));
    MPI_OK(MPI_Comm_free(&half));
}

static void on_topologies(uint64_t *state)
{
    int dims[2] = {0, 0}, periods[2] = {0, 1};
    int from[3] = {mpitest_left(), mpitest_left(), mpitest.rank};
    int to[3] = {mpitest_right(), mpitest_right(), mpitest.rank};
    int weights[3] = {1, 1, 1};
    MPI_Comm comm;

    /* at the border of the first dimension there is no neighbour */
    MPI_OK(MPI_Dims_create(mpitest.size, 2, dims));
    MPI_OK(MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &comm));
    on_intra(comm, GPU_COLL_NEIGHBOURS, 4, 4, state);
    MPI_OK(MPI_Comm_free(&comm));
    MPI_OK(MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 3, from, weights, 3, to, weights,
                                          MPI_INFO_NULL, 0, &comm));
    on_intra(comm, GPU_COLL_NEIGHBOURS, 3, 3, state);
    MPI_OK(MPI_Comm_free(&comm));
}

/* ---------------------------------------------------------------------------------------------
 * What else there is
 * ------------------------------------------------------------------------------------------- */

/* Many at once, completed in any order. */
static void many(uint64_t *state)
{
    enum {
        MANY = 10
    };
    static const char *const names[] = {"allgatherv", "allreduce", "alltoallw", "bcast", "scan"};
    gpu_coll_t with[MANY];
    gpu_coll_run_t runs[MANY];
    MPI_Request requests[MANY];
    int left = MANY;

    for (int i = 0; i < MANY; ++i) {
        const gpu_coll_case_t *what = gpu_coll_cases;
        gpu_kind_t send, recv;
        int kind;

        while (0 != strcmp(what->name, names[i % 5])) {
            ++what;
        }
        with[i] = (gpu_coll_t){.comm = MPI_COMM_WORLD,
                               .rank = mpitest.rank,
                               .size = mpitest.size,
                               .others = mpitest.size};
        draw_rest(&with[i], state, &kind);
        draw_kinds(i % MIXES, state, &send, &recv);
        gpu_coll_begin(&runs[i], what, &with[i], GPU_COLL_NONBLOCKING, send, recv, kind, state);
        requests[i] = runs[i].request;
    }
    while (0 < left) {
        int index, flag;

        if (0 == (left + mpitest.rank) % 2) {
            MPI_OK(MPI_Waitany(MANY, requests, &index, MPI_STATUS_IGNORE));
            flag = 1;
        } else {
            MPI_OK(MPI_Testany(MANY, requests, &index, &flag, MPI_STATUS_IGNORE));
        }
        if (flag && MPI_UNDEFINED != index) {
            runs[index].request = MPI_REQUEST_NULL;
            gpu_coll_end(&runs[index]);
            --left;
        }
    }
}

/* Sides that GPUs packed in one call of a case, whose result is verified. */
static unsigned long long sides_packed(const char *name, int kind, uint64_t *state)
{
    const unsigned long long before = gpu_coll_counter(GPU_COLL_SIDES_PACKED);
    const gpu_coll_case_t *what = gpu_coll_cases;
    gpu_coll_t with = {.comm = MPI_COMM_WORLD,
                       .rank = mpitest.rank,
                       .size = mpitest.size,
                       .others = mpitest.size,
                       .count = 5,
                       .type = gpu_coll_types[kind][0],
                       .other = gpu_coll_types[kind][1],
                       .extent = gpu_coll_shapes[kind][0].extent,
                       .op = gpu_coll_op};
    gpu_coll_run_t run;

    while (0 != strcmp(what->name, name)) {
        ++what;
    }
    gpu_coll_begin(&run, what, &with, GPU_COLL_NONBLOCKING, GPU_DEVICE, GPU_DEVICE, kind, state);
    gpu_coll_end(&run);
    return gpu_coll_counter(GPU_COLL_SIDES_PACKED) - before;
}

/* Parts of a staged alltoallw are packed if one of them is not contiguous. */
static void packs(uint64_t *state)
{
    const unsigned long long both = 0 == pvars_parameter("coll_umrddt_direct", 1) ? 2 : 0;

    CHECK_INT(sides_packed("alltoallw_tight", GPU_COLL_VECTOR, state), both);
    CHECK_INT(sides_packed("alltoallw_tight", GPU_COLL_MIXED, state), both);
    CHECK_INT(sides_packed("alltoallw_in_place", GPU_COLL_VECTOR, state), both / 2);
    CHECK_INT(sides_packed("alltoallw_in_place", GPU_COLL_PLAIN, state), 0);
    CHECK_INT(sides_packed("alltoallv", GPU_COLL_VECTOR, state), 0);
}

/* An MPI_Ialltoallw in place, in which rank 0 packs and the others do not. The parts that ranks 0
 * and 1 exchange have one element without data: coll/libnbc sends a message for it. */
static void empty_parts(uint64_t *state)
{
    enum {
        BLOCKS = 8,
        PART = 2 * BLOCKS
    };
    const int size = mpitest.size, rank = mpitest.rank;
    const size_t bytes = (size_t) size * PART;
    gpu_memory_t *memory = gpu_memory(0 == rank ? GPU_DEVICE : GPU_HOST, bytes);
    unsigned char *now = malloc(bytes);
    int *counts = malloc((size_t) size * sizeof(int)),
        *displs = malloc((size_t) size * sizeof(int));
    MPI_Datatype *types = malloc((size_t) size * sizeof(*types)), blocks, none;
    MPI_Request request;

    (void) state;
    CHECK(NULL != now && NULL != counts && NULL != displs && NULL != types);
    MPI_OK(MPI_Type_vector(BLOCKS, 1, 2, MPI_BYTE, &blocks));
    MPI_OK(MPI_Type_commit(&blocks));
    MPI_OK(MPI_Type_contiguous(0, MPI_BYTE, &none));
    MPI_OK(MPI_Type_commit(&none));
    for (int i = 0; i < size; ++i) {
        counts[i] = 1;
        displs[i] = i * PART;
        types[i] = 1 == rank + i ? none : blocks;
        memset(now + displs[i], 16 * rank + i, PART);
    }
    gpu_write(memory, 0, now, bytes);
    MPI_OK(MPI_Ialltoallw(MPI_IN_PLACE, NULL, NULL, NULL, memory->addr, counts, displs, types,
                          MPI_COMM_WORLD, &request));
    MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    gpu_read(memory, 0, now, bytes);
    for (int i = 0; i < size; ++i) {
        for (int k = 0; k < PART; ++k) {
            const bool gap = 0 != k % 2 || none == types[i];

            CHECK_INT(now[displs[i] + k], gap ? 16 * rank + i : 16 * i + rank);
        }
    }
    MPI_OK(MPI_Type_free(&none));
    MPI_OK(MPI_Type_free(&blocks));
    gpu_memory_free(memory);
    free(types);
    free(displs);
    free(counts);
    free(now);
}

/* One datatype over system memory and device memory, from MPI_BOTTOM or from the address of piece
 * @p base; the lowest of its addresses is in system memory, or, for every other base, on a device.
 */
static void from_address(uint64_t *state, int base)
{
    enum {
        PIECES = 4,
        PIECE = 3000,
        ABOVE = 64 << 20
    };
    const bool above = 0 == base % 2;
    const gpu_kind_t piece_kinds[PIECES] = {GPU_HOST, above ? GPU_DEVICE : GPU_PINNED, GPU_DEVICE,
                                            GPU_INNER};
    unsigned char *wanted = malloc(PIECES * PIECE);
    unsigned char *all = malloc((size_t) mpitest.size * PIECES * PIECE);
    gpu_memory_t *memory[PIECES];
    const int root = (int) (mpitest_random(state) % (uint64_t) mpitest.size);
    MPI_Datatype type;
    MPI_Aint at[PIECES];
    void *address = MPI_BOTTOM, *cpus = (void *) 0x7e0000000000;

    CHECK(NULL != wanted && NULL != all);
    for (int i = 0; i < PIECES; ++i) {
        memory[i] = gpu_memory(piece_kinds[i], PIECE);
        if (above && (void *) (memory[i]->addr + ABOVE) > cpus) {
            cpus = memory[i]->addr + ABOVE;
        }
    }
    cpus = mmap((void *) ((uintptr_t) cpus & ~(uintptr_t) 0xfff), PIECE, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(MAP_FAILED != cpus);
    for (int i = 0; i < PIECES; ++i) {
        MPI_OK(MPI_Get_address(0 == i ? cpus : memory[i]->addr, &at[i]));
    }
    if (0 <= base) {
        const MPI_Aint origin = at[base];

        address = 0 == base ? cpus : memory[base]->addr;
        for (int i = 0; i < PIECES; ++i) {
            at[i] -= origin;
        }
    }
    MPI_OK(MPI_Type_create_hindexed_block(PIECES, PIECE, at, MPI_BYTE, &type));
    MPI_OK(MPI_Type_commit(&type));
    for (int i = 0; i < PIECES * PIECE; ++i) {
        wanted[i] = (unsigned char) (mpitest_random(state) >> 40);
    }
    for (int nonblocking = 0; nonblocking < 2; ++nonblocking) {
        MPI_Request request;

        for (int i = 0; i < PIECES; ++i) {
            unsigned char bytes[PIECE];

            memset(bytes, 0x5a, sizeof(bytes));
            if (root == mpitest.rank) {
                memcpy(bytes, wanted + i * PIECE, sizeof(bytes));
            }
            if (0 == i) {
                memcpy(cpus, bytes, sizeof(bytes));
            }
            gpu_write(memory[i], 0, bytes, PIECE);
        }
        if (nonblocking) {
            MPI_OK(MPI_Ibcast(address, 1, type, root, MPI_COMM_WORLD, &request));
            MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        } else {
            MPI_OK(MPI_Bcast(address, 1, type, root, MPI_COMM_WORLD));
        }
        CHECK(0 == memcmp(cpus, wanted, PIECE));
        for (int i = 1; i < PIECES; ++i) {
            unsigned char got[PIECE];

            gpu_read(memory[i], 0, got, PIECE);
            CHECK(0 == memcmp(got, wanted + i * PIECE, PIECE));
        }
    }
    /* what a process gives itself the CPU copies */
    MPI_OK(MPI_Allgather(address, 1, type, all, PIECES * PIECE, MPI_BYTE, MPI_COMM_WORLD));
    for (int i = 0; i < mpitest.size; ++i) {
        CHECK(0 == memcmp(all + i * PIECES * PIECE, wanted, PIECES * PIECE));
    }
    free(all);
    MPI_OK(MPI_Type_free(&type));
    for (int i = 0; i < PIECES; ++i) {
        gpu_memory_free(memory[i]);
    }
    CHECK(0 == munmap(cpus, PIECE));
    free(wanted);
}

static void from_bottom(uint64_t *state)
{
    for (int base = -1; base < 4; ++base) {
        from_address(state, base);
    }
}

static void reduce_local(uint64_t *state)
{
    int in[64], inout[64], got[64];
    gpu_memory_t *memory[2] = {gpu_memory(GPU_DEVICE, sizeof(in)),
                               gpu_memory(GPU_DEVICE, sizeof(in))};

    for (int i = 0; i < 64; ++i) {
        in[i] = (int) (mpitest_random(state) >> 40);
        inout[i] = (int) (mpitest_random(state) >> 40);
    }
    gpu_write(memory[0], 0, in, sizeof(in));
    gpu_write(memory[1], 0, inout, sizeof(in));
    MPI_OK(MPI_Reduce_local(memory[0]->addr, memory[1]->addr, 64, MPI_INT, MPI_SUM));
    gpu_read(memory[1], 0, got, sizeof(got));
    for (int i = 0; i < 64; ++i) {
        CHECK_INT(got[i], in[i] + inout[i]);
    }
    gpu_memory_free(memory[0]);
    gpu_memory_free(memory[1]);
}

/* Calls on system memory that a pass-through costs nothing but a counter, and at most this many
 * questions each. */
static void host_calls(MPI_Comm comm, unsigned long long questions)
{
    enum {
        CALLS = 50
    };
    const unsigned long long passed = gpu_coll_counter(GPU_COLL_PASSED),
                             staged = gpu_coll_counter(GPU_COLL_STAGED),
                             queries = gpu_coll_counter(GPU_COLL_MEMORY_QUERIES);

    for (int i = 0; i < CALLS; ++i) {
        int mine = mpitest.rank + i, sum = 0;

        MPI_OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm));
        CHECK_INT(sum, mpitest.size * (mpitest.size - 1) / 2 + i * mpitest.size);
    }
    CHECK(passed + CALLS <= gpu_coll_counter(GPU_COLL_PASSED));
    CHECK_INT(gpu_coll_counter(GPU_COLL_STAGED), staged);
    CHECK(queries + CALLS * questions >= gpu_coll_counter(GPU_COLL_MEMORY_QUERIES));
}

/* A communicator on which the user has promised that there are no GPU buffers. */
static void host_calls_promised(void)
{
    MPI_Info info;
    MPI_Comm comm;

    MPI_OK(MPI_Info_create(&info));
    MPI_OK(MPI_Info_set(info, "mpi_communication_pattern", "MPI_CPU_TO_CPU"));
    MPI_OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm));
    MPI_OK(MPI_Info_free(&info));
    host_calls(comm, 0);
    MPI_OK(MPI_Comm_free(&comm));
}

/* Repeated small calls allocate no new memory: pinned buffers are reused. */
static void again(uint64_t *state)
{
    gpu_memory_t *memory = gpu_memory(GPU_DEVICE, 64 * sizeof(int));
    const unsigned long long before = gpu_coll_counter(GPU_COLL_STAGES_PAGEABLE);

    (void) state;
    for (int i = 0; i < 20; ++i) {
        MPI_OK(MPI_Bcast(memory->addr, 64, MPI_INT, i % mpitest.size, MPI_COMM_WORLD));
    }
    CHECK_INT(gpu_coll_counter(GPU_COLL_STAGES_PAGEABLE), before);
    gpu_memory_free(memory);
}

/* The first copy of the device fails, and with it everything. */
static void broken(void)
{
    gpu_memory_t *memory = gpu_memory(GPU_DEVICE, 1000);
    MPI_Request request = MPI_REQUEST_NULL;
    int here[10] = {0}, rc, class;

    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    rc = MPI_Allreduce(MPI_IN_PLACE, memory->addr, 10, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_OK(MPI_Error_class(rc, &class));
    CHECK_INT(class, MPI_ERR_OTHER);
    rc = MPI_Alltoall(memory->addr, 1, MPI_INT, here, 1, MPI_INT, MPI_COMM_WORLD);
    CHECK(MPI_SUCCESS != rc);
    /* what fails behind the call fails with the request */
    rc = MPI_Iallreduce(here, memory->addr, 10, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    if (MPI_SUCCESS == rc) {
        rc = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    CHECK(MPI_SUCCESS != rc);
    CHECK(3 <= gpu_coll_counter(GPU_COLL_FAILURES));
    /* the CPU's memory is as good as before */
    here[0] = 1;
    MPI_OK(MPI_Allreduce(MPI_IN_PLACE, here, 10, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK_INT(here[0], mpitest.size);
    /* the memory went with the context: it is not given back */
}

/* The same from GPU to GPU: each process gets an error, from its own part or from a message, and
 * none waits for another one. */
static void broken_direct(void)
{
    enum {
        PART = 64 * 1024
    };
    const size_t bytes = (size_t) mpitest.size * PART;
    gpu_memory_t *memory[2] = {gpu_memory(GPU_DEVICE, bytes), gpu_memory(GPU_DEVICE, bytes)};
    MPI_Request request;
    int here = 1;

    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    CHECK(MPI_SUCCESS
          != MPI_Alltoall(memory[0]->addr, PART, MPI_BYTE, memory[1]->addr, PART, MPI_BYTE,
                          MPI_COMM_WORLD));
    CHECK_INT(gpu_coll_counter(GPU_COLL_DIRECT), 1);
    MPI_OK(MPI_Ialltoall(memory[0]->addr, PART, MPI_BYTE, memory[1]->addr, PART, MPI_BYTE,
                         MPI_COMM_WORLD, &request));
    CHECK(MPI_SUCCESS != MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_INT(gpu_coll_counter(GPU_COLL_DIRECT), 2);
    MPI_OK(MPI_Ialltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, memory[1]->addr, PART, MPI_BYTE,
                         MPI_COMM_WORLD, &request));
    CHECK(MPI_SUCCESS != MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_INT(gpu_coll_counter(GPU_COLL_DIRECT), 3);
    MPI_OK(MPI_Allreduce(MPI_IN_PLACE, &here, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK_INT(here, mpitest.size);
}

/* A message is longer than rank 0 or 2 expects. It gets an error and completes all others, so that
 * no process waits, and the next calls are right. */
static void truncated(void)
{
    enum {
        RANKS = 16,
        PART = 4096,   /* integers */
        LARGE = 200000 /* for each process: a broadcast in pieces */
    };
    const size_t most = (size_t) mpitest.size * LARGE;
    gpu_memory_t *memory[2] = {gpu_memory(GPU_DEVICE, most * sizeof(int)),
                               gpu_memory(GPU_DEVICE, most * sizeof(int))};
    int *values = malloc(most * sizeof(int)), counts[RANKS], fewer[RANKS], displs[RANKS];
    const int last = mpitest.size - 1, victim = 2;

    CHECK(NULL != values && 4 <= mpitest.size && RANKS >= mpitest.size);
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (int i = 0; i < mpitest.size; ++i) {
        counts[i] = PART;
        fewer[i] = 0 == mpitest.rank && last == i ? PART - 1 : PART;
        displs[i] = i * PART;
    }
    for (int turn = 0; turn < 10; ++turn) {
        const bool wrong = 0 == turn % 2, alltoall = 2 > turn || 8 <= turn;
        const int all = alltoall ? mpitest.size * PART : 4 > turn ? PART : (int) most;
        int rc;

        for (int i = 0; i < all; ++i) {
            values[i] = alltoall ? mpitest.rank + turn : 0 == mpitest.rank ? i + turn : -1;
        }
        gpu_write(memory[0], 0, values, (size_t) all * sizeof(int));
        if (8 <= turn) {
            rc = MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, memory[0]->addr,
                               wrong ? fewer : counts, displs, MPI_INT, MPI_COMM_WORLD);
            gpu_read(memory[0], 0, values, (size_t) all * sizeof(int));
        } else if (6 <= turn) {
            MPI_Request request;

            MPI_OK(MPI_Ibcast(memory[0]->addr, wrong && victim == mpitest.rank ? all - 64 : all,
                              MPI_INT, 0, MPI_COMM_WORLD, &request));
            rc = MPI_Wait(&request, MPI_STATUS_IGNORE);
            gpu_read(memory[0], 0, values, (size_t) all * sizeof(int));
        } else if (2 > turn) {
            rc = MPI_Alltoallv(memory[0]->addr, counts, displs, MPI_INT, memory[1]->addr,
                               wrong ? fewer : counts, displs, MPI_INT, MPI_COMM_WORLD);
            gpu_read(memory[1], 0, values, (size_t) all * sizeof(int));
        } else {
            rc = MPI_Bcast(memory[0]->addr, wrong && victim == mpitest.rank ? all - 64 : all,
                           MPI_INT, 0, MPI_COMM_WORLD);
            gpu_read(memory[0], 0, values, (size_t) all * sizeof(int));
        }
        if (wrong && (alltoall ? 0 : victim) == mpitest.rank) {
            CHECK_INT(mpitest_error_class(rc), MPI_ERR_TRUNCATE);
        } else if (!wrong) {
            CHECK_INT(rc, MPI_SUCCESS);
            for (int i = 0; i < all; ++i) {
                CHECK_INT(values[i], alltoall ? i / PART + turn : i + turn);
            }
        }
    }
    CHECK_INT(gpu_coll_counter(GPU_COLL_DIRECT), 10);
    free(values);
    gpu_memory_free(memory[0]);
    gpu_memory_free(memory[1]);
}

/* Rows with coll_umrddt_direct=0. Sizes that no address space or length can represent: nothing is
 * copied or sent. */
static void no_copy(MPI_Datatype type, int count, int wanted)
{
    gpu_memory_t *memory = gpu_memory(GPU_DEVICE, 1000);
    MPI_Request request = MPI_REQUEST_NULL;
    int here = 1, class;

    MPI_OK(MPI_Type_commit(&type));
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    MPI_OK(MPI_Error_class(MPI_Ibcast(memory->addr, count, type, 0, MPI_COMM_WORLD, &request),
                           &class));
    CHECK_INT(class, wanted);
    CHECK_INT(gpu_coll_counter(GPU_COLL_FAILURES), 1);
    MPI_OK(MPI_Allreduce(MPI_IN_PLACE, &here, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK_INT(here, mpitest.size);
    MPI_OK(MPI_Type_free(&type));
    gpu_memory_free(memory);
}

/* Few bytes, in pieces that are far apart. */
static void far_apart(void)
{
    const int lengths[2] = {1, 1};
    const MPI_Aint places[2] = {0, (MPI_Aint) 1 << 47};
    MPI_Datatype type;

    MPI_OK(MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &type));
    no_copy(type, 1, MPI_ERR_NO_MEM);
}

/* 128 TiB in one piece. */
static void no_memory(void)
{
    MPI_Datatype type;

    MPI_OK(MPI_Type_contiguous(1 << 16, MPI_BYTE, &type));
    no_copy(type, INT_MAX, MPI_ERR_NO_MEM);
}

/* 2 to the power of 71 bytes. */
static void too_large(void)
{
    MPI_Datatype part, type;

    MPI_OK(MPI_Type_contiguous(1 << 20, MPI_BYTE, &part));
    MPI_OK(MPI_Type_contiguous(1 << 20, part, &type));
    MPI_OK(MPI_Type_free(&part));
    no_copy(type, INT_MAX, MPI_ERR_COUNT);
}

/* Some applications are done with CUDA before they are with MPI. */
static void lose_context(void)
{
    CUdevice device;

    if (1 == mpitest.rank % 2 && NULL != gpu.cuDevicePrimaryCtxReset_v2) {
        GPU_OK(gpu.cuDeviceGet(&device, gpu_device()));
        GPU_OK(gpu.cuDevicePrimaryCtxReset_v2(device));
    }
}

/* Rank 1 has another value of a parameter, so that it makes no agreements with the others. */
static void set_unlike(int argc, char **argv)
{
    static const char *const unlikes[][3] = {
        {"unlike", "OMPI_MCA_coll_umrddt_direct_min", "8192"},
        {"unlike-memory", "OMPI_MCA_pml_umrddt_memory", "host"},
        {"unlike-base", "OMPI_MCA_pml_umrddt_base_gpu", "yes"},
    };
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");

    rank = NULL != rank ? rank : getenv("PMIX_RANK");
    for (int i = 1; i < argc && NULL != rank && 1 == atoi(rank); ++i) {
        for (size_t k = 0; k < sizeof(unlikes) / sizeof(unlikes[0]); ++k) {
            if (0 == strcmp(argv[i], unlikes[k][0])) {
                CHECK(0 == setenv(unlikes[k][1], unlikes[k][2], 1));
            }
        }
    }
}

/* Then no process makes agreements with rank 1, nor rank 1 alone, but the others do without it. */
static void unlike(void)
{
    enum {
        BYTES = 6000
    };
    gpu_memory_t *memory = gpu_memory(GPU_DEVICE, BYTES);
    static unsigned char bytes[BYTES];
    MPI_Request request;
    MPI_Comm comm;

    MPI_OK(MPI_Comm_split(MPI_COMM_WORLD, 1 == mpitest.rank, 0, &comm));
    for (int i = 0; i < 10; ++i) {
        memset(bytes, 1 + i + mpitest.rank, BYTES);
        gpu_write(memory, 0, bytes, BYTES);
        MPI_OK(MPI_Bcast(memory->addr, BYTES, MPI_BYTE, 0, MPI_COMM_WORLD));
        gpu_read(memory, 0, bytes, BYTES);
        CHECK_INT(bytes[BYTES - 1], 1 + i);
        MPI_OK(MPI_Ibcast(memory->addr, BYTES, MPI_BYTE, 0, MPI_COMM_WORLD, &request));
        MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    }
    CHECK_INT(gpu_coll_counter(GPU_COLL_AGREEMENTS), 0);
    CHECK_INT(gpu_coll_counter(GPU_COLL_DIRECT), 0);
    for (int i = 0; i < 10; ++i) {
        MPI_OK(MPI_Bcast(memory->addr, BYTES, MPI_BYTE, 0, comm));
    }
    CHECK_INT(gpu_coll_counter(GPU_COLL_DIRECT), 1 == mpitest.rank ? 0 : 10);
    MPI_OK(MPI_Comm_free(&comm));
    gpu_memory_free(memory);
}

static const mpitest_part_t parts[] = {
    {"world", on_world},
    {"parts", on_parts},
    {"groups", on_groups},
    {"topologies", on_topologies},
    {"many", many},
    {"bottom", from_bottom},
    {"local", reduce_local},
    {"again", again},
    {"packs", packs},
    {"empty-parts", empty_parts},
    {"steady", gpu_coll_steady},
    {"direct", gpu_coll_direct},
    {"near", gpu_coll_near},
    {"large-bcast", gpu_coll_large_bcast},
    {"large-parts", gpu_coll_large_parts},
    {"unequal", gpu_coll_unequal},
    {"schedule", gpu_coll_schedule},
    {"any-tag", gpu_coll_any_tag},
    {"order", gpu_coll_order},
    {"freed", gpu_coll_freed},
    {"pending", gpu_coll_pending},
    {"in-place", gpu_coll_in_place},
    {"large-ibcast", gpu_coll_large_ibcast},
    {NULL, NULL},
};

/* Modes that run in a job of their own. */
static const struct {
    const char *name;
    void (*run)(void);
} alone[] = {
    {"fail", broken},
    {"fail-direct", broken_direct},
    {"unlike", unlike},
    {"unlike-memory", unlike},
    {"unlike-base", unlike},
    {"far", far_apart},
    {"huge", no_memory},
    {"large", too_large},
    {"truncated", truncated},
    {"threads", gpu_coll_threads},
    {"no-memory", gpu_coll_no_memory},
};

int main(int argc, char **argv)
{
    int level = MPI_THREAD_SINGLE;

    for (int i = 1; i < argc; ++i) {
        level = 0 == strcmp(argv[i], "threads") ? MPI_THREAD_MULTIPLE : level;
    }
    set_unlike(argc, argv);
    mpitest_init(&argc, &argv, "gpu_coll", 1, level);
    if (0 == strcmp(mpitest.mode, "off")) {
        CHECK(!gpu_coll_counters_open());
        return mpitest_finish();
    }
    if (!gpu_coll_counters_open()) {
        mpitest_skip("there is no coll/umrddt, and the CPU cannot touch memory of GPUs");
    }
    /* No queries, unless a library initialized CUDA in MPI_Init (UCX with CUDA does). */
    host_calls(MPI_COMM_WORLD, gpu_is_initialized() ? 2 : 0);
    gpu_begin_all();
    for (size_t i = 0; i < sizeof(alone) / sizeof(alone[0]); ++i) {
        if (0 == strcmp(mpitest.mode, alone[i].name)) {
            alone[i].run();
            gpu_coll_counters_close();
            return mpitest_finish();
        }
    }
    host_calls(MPI_COMM_WORLD, 2);
    host_calls_promised();
    kind_count = gpu_kinds_of("all", kinds);
    gpu_coll_types_make();
    if (0 == strcmp(mpitest.mode, "rule")) {
        gpu_coll_rule();
        gpu_coll_has_cuda = true;
        mpitest.mode = "";
    }
    mpitest_run(parts);
    CHECK_INT(gpu_coll_counter(GPU_COLL_FAILURES), 0);
    if ('\0' == mpitest.mode[0]) {
        CHECK(0 < gpu_coll_counter(GPU_COLL_STAGED_NONBLOCKING));
        CHECK(0 < gpu_coll_counter(GPU_COLL_BYTES_IN) && 0 < gpu_coll_counter(GPU_COLL_BYTES_OUT));
        if (SMALL_POOL > pvars_parameter("coll_umrddt_pinned", SMALL_POOL)) {
            CHECK(0 < gpu_coll_counter(GPU_COLL_STAGES_PAGEABLE));
        }
    }
    gpu_coll_types_free();
    gpu_coll_counters_close();
    lose_context();
    return mpitest_finish();
}
