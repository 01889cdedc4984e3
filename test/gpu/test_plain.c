/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Pages of plain memory are remembered until they are unmapped, whoever does it and how; and what
 * comes in the middle of a question is not believed.
 */

#include "opal_config.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <mpi.h>

#include "ompi/datatype/ompi_datatype.h"
#include "opal/constants.h"
#include "opal/mca/common/umrddt_gpu/driver/umrddt_gpu_plain.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_memory.h"

#include "gpu_test.h"

#define PAGE  ((size_t) 4096)
#define PAGES ((size_t) 64)
#define MANY  ((size_t) 5000)

static uintptr_t map(size_t pages)
{
    void *memory =
        mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(MAP_FAILED != memory);
    return (uintptr_t) memory;
}

static void learn(uintptr_t address)
{
    opal_umrddt_gpu_plain_learn(address, true, opal_umrddt_gpu_plain_before());
}

static bool is_plain(uintptr_t address)
{
    return opal_umrddt_gpu_plain(address);
}

static void *at(uintptr_t address)
{
    return (void *) address;
}

static void remembered(void)
{
    uintptr_t memory = map(PAGES);

    CHECK(!is_plain(memory));
    learn(memory + 5 * PAGE + 17);
    CHECK(is_plain(memory + 5 * PAGE) && is_plain(memory + 6 * PAGE - 1));
    CHECK(!is_plain(memory + 6 * PAGE) && !is_plain(memory + 4 * PAGE));
    opal_umrddt_gpu_plain_learn(memory + 5 * PAGE, false, opal_umrddt_gpu_plain_before());
    CHECK(!is_plain(memory + 5 * PAGE));
    CHECK(!is_plain(0) && (learn(0), !is_plain(0)));
    munmap(at(memory), PAGES * PAGE);
}

static void unmapped(void)
{
    uintptr_t memory = map(PAGES), large;
    void *moved;

    learn(memory);
    learn(memory + 2 * PAGE);
    munmap(at(memory + PAGE), PAGE);
    CHECK(is_plain(memory) && is_plain(memory + 2 * PAGE));
    munmap(at(memory + 2 * PAGE), PAGE);
    CHECK(is_plain(memory) && !is_plain(memory + 2 * PAGE));
    /* other memory in its place */
    CHECK(at(memory)
          == mmap(at(memory), PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    CHECK(!is_plain(memory));
    learn(memory + 3 * PAGE);
    moved = mremap(at(memory + 3 * PAGE), PAGE, 200 * PAGE, MREMAP_MAYMOVE);
    CHECK(MAP_FAILED != moved);
    CHECK(moved == at(memory + 3 * PAGE) || !is_plain(memory + 3 * PAGE));
    /* more pages than are remembered */
    large = map(MANY);
    learn(large + 4000 * PAGE);
    learn(large + (MANY - 1) * PAGE);
    munmap(at(large), (MANY - 1) * PAGE);
    CHECK(!is_plain(large + 4000 * PAGE) && is_plain(large + (MANY - 1) * PAGE));
    munmap(at(large + (MANY - 1) * PAGE), PAGE);
    CHECK(!is_plain(large + (MANY - 1) * PAGE));
}

/* malloc, too, unmaps what is large. */
static void freed(void)
{
    char *memory = malloc(64 << 20);
    uintptr_t where = (uintptr_t) memory + (32 << 20);

    CHECK(NULL != memory);
    memset(memory, 1, 64 << 20);
    learn(where);
    CHECK(is_plain(where));
    free(memory);
    CHECK(!is_plain(where));
}

static void in_between(void)
{
    uintptr_t memory = map(PAGES), other = map(1);
    uint64_t before = opal_umrddt_gpu_plain_before();

    munmap(at(other), PAGE);
    opal_umrddt_gpu_plain_learn(memory, true, before);
    CHECK(!is_plain(memory));
    learn(memory);
    CHECK(is_plain(memory));
    munmap(at(memory), PAGES * PAGE);
}

/* Each maps, looks up, records and unmaps: no thread finds memory that another one has unmapped. */
static void *in_thread(void *unused)
{
    int i;

    for (i = 0; i < 20000; ++i) {
        uintptr_t memory = map(2);

        CHECK(!is_plain(memory));
        learn(memory);
        munmap(at(memory), 2 * PAGE);
    }
    return unused;
}

static void threads(void)
{
    pthread_t others[4];
    int i;

    for (i = 0; i < 4; ++i) {
        CHECK(0 == pthread_create(&others[i], NULL, in_thread, NULL));
    }
    for (i = 0; i < 4; ++i) {
        CHECK(0 == pthread_join(others[i], NULL));
    }
}

/* Runs end where the CPU's memory does, and are forgotten with any of their pages. */
static void runs(void)
{
    uintptr_t memory = map(PAGES), hole = memory + 20 * PAGE, last = memory + PAGES * PAGE - 1;
    char automatic;

    CHECK(!opal_umrddt_gpu_plain_run(memory, last));
    CHECK(opal_umrddt_gpu_plain_run_find(memory + 5, last));
    CHECK(opal_umrddt_gpu_plain_run(memory, last) && opal_umrddt_gpu_plain_run(last, memory));
    CHECK(!opal_umrddt_gpu_plain_run(memory, (uintptr_t) &automatic));
    CHECK(!opal_umrddt_gpu_plain_run_find(memory, (uintptr_t) &automatic));
    CHECK(opal_umrddt_gpu_plain_run((uintptr_t) &automatic, (uintptr_t) &automatic));

    munmap(at(hole), PAGE);
    CHECK(!opal_umrddt_gpu_plain_run(memory, last) && !opal_umrddt_gpu_plain_run(memory, memory));
    CHECK(!opal_umrddt_gpu_plain_run_find(memory, last));
    CHECK(opal_umrddt_gpu_plain_run(memory, hole - 1));
    CHECK(opal_umrddt_gpu_plain_run(hole + PAGE, last));
    CHECK(!opal_umrddt_gpu_plain_run(memory, last));

    /* memory that the CPU must not touch, as a device's is */
    CHECK(0 == mprotect(at(hole + PAGE), PAGE, PROT_NONE));
    munmap(at(last + 1 - PAGE), PAGE);
    CHECK(!opal_umrddt_gpu_plain_run_find(hole + PAGE, hole + 2 * PAGE));
    CHECK(!opal_umrddt_gpu_plain_run(hole + PAGE, hole + PAGE));
    CHECK(opal_umrddt_gpu_plain_run(hole + 2 * PAGE, hole + 2 * PAGE));

    /* what was unmapped while it was looked for is not believed */
    opal_umrddt_gpu_plain_run_learn(memory, hole - 1, opal_umrddt_gpu_plain_before() - 1);
    CHECK(!opal_umrddt_gpu_plain_run(memory, memory));
    munmap(at(memory), PAGES * PAGE);
}

/*
 * sbrk as UCX replaces it (ucm_orig_sbrk, UCX_MEM_MMAP_HOOK_MODE=bistro): it reads the break and
 * sets it to the sum. With an increment of 0 in one thread, while malloc in another one moves the
 * break, the heap ends below a block that is in use. libc's own malloc does not call this function.
 */
static int sbrk_calls;

void *sbrk(intptr_t increment)
{
    const uintptr_t end = (uintptr_t) syscall(SYS_brk, 0);

    ++sbrk_calls;
    return (uintptr_t) syscall(SYS_brk, end + (uintptr_t) increment) == end + (uintptr_t) increment
               ? at(end)
               : at(UINTPTR_MAX);
}

/* The heap becomes a run of system memory without a call of sbrk. */
static void heap(void)
{
    const int before = sbrk_calls; /* UCX 1.23 calls it when it is loaded */
    char *buffer;
    opal_umrddt_gpu_where_t where;
    uintptr_t last;
    MPI_Datatype type;

    CHECK(1 == mallopt(M_MMAP_THRESHOLD, 64 << 20));
    buffer = malloc(100 * PAGE);
    CHECK(NULL != buffer);
    last = (uintptr_t) buffer + 99 * PAGE;
    CHECK(last < (uintptr_t) syscall(SYS_brk, 0));
    CHECK(MPI_SUCCESS == MPI_Type_vector(100, 1, PAGE, MPI_BYTE, &type));
    CHECK(MPI_SUCCESS == MPI_Type_commit(&type));
    CHECK(!opal_umrddt_gpu_plain_run((uintptr_t) buffer, last));
    opal_umrddt_gpu_memory_open();
    CHECK(opal_umrddt_gpu_look(buffer, 1, &type->super, &where));
    CHECK(OPAL_UMRDDT_GPU_HOST == where.memory.kind && !where.mixed);
    CHECK(opal_umrddt_gpu_plain_run((uintptr_t) buffer, last));
    CHECK(opal_umrddt_gpu_plain_run((uintptr_t) syscall(SYS_brk, 0) - 1, last));
    CHECK(before == sbrk_calls);
    CHECK(MPI_SUCCESS == MPI_Type_free(&type));
    free(buffer);
}

/* Calls that read the break. */
static int brk_calls;

long syscall(long number, ...)
{
    long (*next)(long, ...) = (long (*)(long, ...)) dlsym(RTLD_NEXT, "syscall");
    long of[6];
    va_list list;

    va_start(list, number);
    for (int i = 0; i < 6; ++i) {
        of[i] = va_arg(list, long);
    }
    va_end(list);
    brk_calls += SYS_brk == number;
    return next(number, of[0], of[1], of[2], of[3], of[4], of[5]);
}

/* Memory far beyond the heap, as that of GPUs: the break is read once and not for each message. The
 * heap is still known. */
static void beyond(void)
{
    const uintptr_t memory = map(2);
    char *buffer;
    int before;

    CHECK(!opal_umrddt_gpu_surely_system_new(at(memory + PAGE), 1, &MPI_BYTE->super));
    before = brk_calls;
    for (int i = 0; i < 10; ++i) {
        CHECK(!opal_umrddt_gpu_surely_system_new(at(memory + PAGE), 1, &MPI_BYTE->super));
    }
    CHECK(before == brk_calls);
    buffer = malloc(100 * PAGE);
    CHECK(NULL != buffer);
    CHECK(opal_umrddt_gpu_surely_system_new(buffer, 1, &MPI_BYTE->super));
    CHECK(before < brk_calls);
    free(buffer);
    munmap(at(memory), 2 * PAGE);
}

int main(int argc, char **argv)
{
    uintptr_t memory = map(1);

    MPI_Init(&argc, &argv);
    learn(memory); /* its end would not be reported */
    CHECK(!is_plain(memory));
    if (OPAL_SUCCESS != opal_umrddt_gpu_plain_open()) {
        printf("SKIPPED: this Open MPI has no memory hooks\n");
        MPI_Finalize();
        return 77;
    }
    remembered();
    unmapped();
    freed();
    in_between();
    threads();
    runs();
    heap();
    beyond();
    learn(memory);
    CHECK(is_plain(memory));
    opal_umrddt_gpu_plain_close();
    CHECK(!is_plain(memory));
    opal_umrddt_gpu_plain_close();
    MPI_Finalize();
    return 0;
}
