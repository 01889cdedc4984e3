/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * What coll/umrddt does with a collective, by its counters: nothing is allocated and no datatype is
 * read where it is called again; and which GPU memory a CUDA-aware Open MPI is given.
 */

#include "gpu_coll.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------------------------
 * Allocations of coll/umrddt
 * ------------------------------------------------------------------------------------------- */

/* Those of the GNU C library, behind the ones below. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *memory, size_t size);

/* The component, and the library that it shares with others: their own calls come from there. */
static const char *const objects[] = {"mca_coll_umrddt", "libmca_common_umrddt"};
#define OBJECTS (sizeof(objects) / sizeof(objects[0]))
static uintptr_t begin[OBJECTS], end[OBJECTS];
static unsigned long long allocations;
static size_t refused; /* bytes of an allocation that fails, at least; 0: none fails */

static bool count(const void *caller)
{
    for (size_t i = 0; i < OBJECTS; ++i) {
        if ((uintptr_t) caller - begin[i] < end[i] - begin[i]) {
            __atomic_add_fetch(&allocations, 1, __ATOMIC_RELAXED);
            return true;
        }
    }
    return false;
}

void *malloc(size_t size)
{
    const size_t most = __atomic_load_n(&refused, __ATOMIC_RELAXED);
    const bool counts = count(__builtin_return_address(0));

    return counts && 0 < most && most <= size ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    (void) count(__builtin_return_address(0));
    return __libc_calloc(n, size);
}

void *realloc(void *memory, size_t size)
{
    (void) count(__builtin_return_address(0));
    return __libc_realloc(memory, size);
}

static int find_objects(struct dl_phdr_info *info, size_t size, void *data)
{
    size_t which = 0;

    (void) size;
    (void) data;
    while (OBJECTS > which && NULL == strstr(info->dlpi_name, objects[which])) {
        ++which;
    }
    for (int i = 0; OBJECTS > which && i < info->dlpi_phnum; ++i) {
        const uintptr_t at = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

        if (PT_LOAD == info->dlpi_phdr[i].p_type) {
            const uintptr_t after = at + info->dlpi_phdr[i].p_memsz;

            begin[which] = 0 == begin[which] || at < begin[which] ? at : begin[which];
            end[which] = after > end[which] ? after : end[which];
        }
    }
    return 0;
}

void gpu_coll_refuse(size_t bytes)
{
    (void) dl_iterate_phdr(find_objects, NULL);
    CHECK(begin[0] < end[0] && begin[1] < end[1]);
    __atomic_store_n(&refused, bytes, __ATOMIC_RELAXED);
}

/* Collectives of derived types, of one and of a type for each process, and reductions: a staged and
 * a direct one. The bcast is direct with few processes. */
static void some_calls(gpu_memory_t *const memory[2], int rank)
{
    enum {
        RANKS = 16
    };
    int counts[RANKS], places[RANKS];
    MPI_Datatype types[RANKS];
    MPI_Request request;

    CHECK(mpitest.size <= RANKS);
    for (int i = 0; i < RANKS; ++i) {
        counts[i] = 3;
        places[i] = (int) (i * 3 * gpu_coll_shapes[GPU_COLL_VECTOR][0].extent);
        types[i] = gpu_coll_types[GPU_COLL_VECTOR][(i + rank) % 2];
    }
    MPI_OK(MPI_Bcast(memory[0]->addr, 4, types[0], 0, MPI_COMM_WORLD));
    MPI_OK(MPI_Alltoallw(memory[0]->addr, counts, places, types, memory[1]->addr, counts, places,
                         types, MPI_COMM_WORLD));
    MPI_OK(MPI_Allreduce(memory[0]->addr, memory[1]->addr, 5, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    MPI_OK(MPI_Allreduce(memory[0]->addr, memory[1]->addr, 1024, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    MPI_OK(MPI_Iallgather(memory[0]->addr, 1, types[1], memory[1]->addr, 1, types[1],
                          MPI_COMM_WORLD, &request));
    MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    MPI_OK(MPI_Iallgather(memory[0]->addr, 4096, MPI_BYTE, memory[1]->addr, 4096, MPI_BYTE,
                          MPI_COMM_WORLD, &request));
    MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}

void gpu_coll_steady(uint64_t *state)
{
    enum {
        ROUNDS = 6,
        TIMES = 20
    };
    const size_t bytes = (size_t) mpitest.size * 4096;
    gpu_memory_t *memory[2] = {gpu_memory(GPU_DEVICE, bytes), gpu_memory(GPU_DEVICE, bytes)};
    unsigned char *zeros = calloc(1, bytes);
    unsigned long long layouts = 0, before, staged = 0, direct = 0;
    int grows = 1;

    (void) state;
    CHECK(NULL != zeros);
    gpu_write(memory[0], 0, zeros, bytes);
    gpu_write(memory[1], 0, zeros, bytes);
    (void) dl_iterate_phdr(find_objects, NULL);
    CHECK(begin[0] < end[0] && begin[1] < end[1]);
    /* lists and buffers grow to the most that was in flight at once, which depends on the times */
    for (int round = 0; round < ROUNDS && grows; ++round) {
        layouts = gpu_coll_counter(GPU_COLL_LAYOUTS_READ);
        staged = gpu_coll_counter(GPU_COLL_STAGED);
        direct = gpu_coll_counter(GPU_COLL_DIRECT);
        before = __atomic_load_n(&allocations, __ATOMIC_RELAXED);
        for (int i = 0; i < TIMES; ++i) {
            some_calls(memory, mpitest.rank);
        }
        grows = before != __atomic_load_n(&allocations, __ATOMIC_RELAXED);
        MPI_OK(MPI_Allreduce(MPI_IN_PLACE, &grows, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    }
    CHECK(!grows);
    CHECK(0 < layouts);
    CHECK(staged + (4 < mpitest.size ? 3 : 2) * TIMES <= gpu_coll_counter(GPU_COLL_STAGED));
    CHECK(staged + direct + 5 * TIMES
          <= gpu_coll_counter(GPU_COLL_STAGED) + gpu_coll_counter(GPU_COLL_DIRECT));
    CHECK_INT(gpu_coll_counter(GPU_COLL_LAYOUTS_READ), layouts);
    free(zeros);
    gpu_memory_free(memory[0]);
    gpu_memory_free(memory[1]);
}

/* ---------------------------------------------------------------------------------------------
 * The rule
 * ------------------------------------------------------------------------------------------- */

enum {
    INTEGERS = 2 * GPU_COLL_INTEGERS,
    BYTES = 1024
};

static unsigned long long before[GPU_COLL_COUNTERS];

static void remember(void)
{
    for (int c = 0; c < GPU_COLL_COUNTERS; ++c) {
        before[c] = gpu_coll_counter((gpu_coll_counter_t) c);
    }
}

/* What becomes of memory that an Open MPI with CUDA is given: nothing is given to a UCX without. */
static gpu_coll_counter_t given(void)
{
    const char *host = getenv("UMRDDT_TEST_HOST");

    return NULL != host && 0 == strcmp(host, "ucx")
                   && NULL == dlopen("libuct_cuda.so.0", RTLD_LAZY | RTLD_NOLOAD)
               ? GPU_COLL_STAGED
               : GPU_COLL_PASSED_GPU;
}

/* The one collective since then was staged, passed through on GPU memory, or passed on. */
static void expect(gpu_coll_counter_t which, const char *what)
{
    static const gpu_coll_counter_t all[] = {GPU_COLL_PASSED, GPU_COLL_PASSED_GPU, GPU_COLL_STAGED};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); ++i) {
        const unsigned long long now = gpu_coll_counter(all[i]) - before[all[i]];

        if (now != (which == all[i] ? 1 : 0)) {
            mpitest_fail(__FILE__, __LINE__, "%s: counter %d grew by %llu, not counter %d by 1",
                         what, (int) all[i], now, (int) which);
        }
    }
    ++mpitest.checks;
}

/* Two elements of the last rank's; what lies between their integers stays as it is. */
static void broadcast(gpu_memory_t *memory, gpu_coll_type_t kind, gpu_coll_counter_t which,
                      const char *what)
{
    const gpu_coll_shape_t *shape = &gpu_coll_shapes[kind][0];
    const int root = mpitest.size - 1;
    unsigned char bytes[BYTES], now[BYTES];

    memset(bytes, 1 + mpitest.rank, sizeof(bytes));
    gpu_write(memory, 0, bytes, sizeof(bytes));
    remember();
    MPI_OK(MPI_Bcast(memory->addr + GPU_COLL_BEFORE, 2, gpu_coll_types[kind][0], root,
                     MPI_COMM_WORLD));
    expect(which, what);
    for (int i = 0; i < INTEGERS; ++i) {
        memset(bytes + GPU_COLL_BEFORE + i / GPU_COLL_INTEGERS * shape->extent
                   + shape->at[i % GPU_COLL_INTEGERS],
               1 + root, sizeof(int));
    }
    gpu_read(memory, 0, now, sizeof(now));
    CHECK(0 == memcmp(now, bytes, sizeof(bytes)));
}

static void reduction(gpu_memory_t *memory, gpu_coll_counter_t which, const char *what)
{
    int value = 1 + mpitest.rank;

    gpu_write(memory, 0, &value, sizeof(value));
    remember();
    MPI_OK(MPI_Allreduce(MPI_IN_PLACE, memory->addr, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    expect(which, what);
    gpu_read(memory, 0, &value, sizeof(value));
    CHECK_INT(value, mpitest.size * (mpitest.size + 1) / 2);
}

/* One rank's type has gaps, and the others' has none: each decides for itself. */
static void unlike(gpu_memory_t *from, gpu_memory_t *to)
{
    const bool gaps = 0 == mpitest.rank;
    int numbers[BYTES / sizeof(int)], got[BYTES / sizeof(int)];
    MPI_Datatype type = MPI_INT;

    for (int i = 0; i < (int) (BYTES / sizeof(int)); ++i) {
        numbers[i] = 1000 * mpitest.rank + i;
    }
    gpu_write(from, 0, numbers, sizeof(numbers));
    if (gaps) {
        MPI_OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &type));
        MPI_OK(MPI_Type_commit(&type));
    }
    remember();
    MPI_OK(MPI_Alltoall(from->addr, 8, type, to->addr, 8, type, MPI_COMM_WORLD));
    expect(gaps ? GPU_COLL_STAGED : given(), "alltoall of unlike types");
    gpu_read(to, 0, got, sizeof(got));
    for (int i = 0; i < 8 * mpitest.size; ++i) {
        const int sender = i / 8, sent = (8 * mpitest.rank + i % 8) * (0 == sender ? 2 : 1);

        CHECK_INT(got[i * (gaps ? 2 : 1)], 1000 * sender + sent);
    }
    if (gaps) {
        MPI_OK(MPI_Type_free(&type));
    }
}

void gpu_coll_rule(void)
{
    static const struct {
        gpu_kind_t kind;
        gpu_coll_counter_t plain;
    } kinds[] = {{GPU_HOST, GPU_COLL_PASSED},      {GPU_PINNED, GPU_COLL_PASSED},
                 {GPU_MANAGED, GPU_COLL_STAGED},   {GPU_DEVICE, GPU_COLL_PASSED_GPU},
                 {GPU_INNER, GPU_COLL_PASSED_GPU}, {GPU_POOL, GPU_COLL_STAGED},
                 {GPU_VMM, GPU_COLL_STAGED}};
    gpu_memory_t *memory[2];
    MPI_Request request;
    CUcontext now, left;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); ++i) {
        const bool cpus = GPU_COLL_PASSED == kinds[i].plain;

        if (!gpu_kind_available(kinds[i].kind)) {
            continue;
        }
        memory[0] = gpu_memory(kinds[i].kind, BYTES);
        broadcast(memory[0], GPU_COLL_PLAIN,
                  GPU_COLL_PASSED_GPU == kinds[i].plain ? given() : kinds[i].plain,
                  gpu_kind_name(kinds[i].kind));
        broadcast(memory[0], GPU_COLL_VECTOR, cpus ? GPU_COLL_PASSED : GPU_COLL_STAGED,
                  gpu_kind_name(kinds[i].kind));
        reduction(memory[0], cpus ? GPU_COLL_PASSED : GPU_COLL_STAGED,
                  gpu_kind_name(kinds[i].kind));
        gpu_memory_free(memory[0]);
    }
    memory[0] = gpu_memory(GPU_DEVICE, BYTES);
    memory[1] = gpu_memory(GPU_DEVICE, BYTES);
    unlike(memory[0], memory[1]);
    remember();
    MPI_OK(MPI_Iallgather(memory[0]->addr, 8, MPI_INT, memory[1]->addr, 8, MPI_INT, MPI_COMM_WORLD,
                          &request));
    MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    expect(GPU_COLL_STAGED, "nonblocking");
    /* a thread without a context, and then it has none still */
    GPU_OK(gpu.cuCtxGetCurrent(&now));
    GPU_OK(gpu.cuCtxSetCurrent(NULL));
    broadcast(memory[0], GPU_COLL_PLAIN, GPU_COLL_STAGED, "without a context");
    GPU_OK(gpu.cuCtxGetCurrent(&left));
    CHECK(NULL == left);
    GPU_OK(gpu.cuCtxSetCurrent(now));
    gpu_memory_free(memory[0]);
    gpu_memory_free(memory[1]);
}
