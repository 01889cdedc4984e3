/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * System memory in a process that uses a GPU: umrddt queries the driver once per page
 * (pml_umrddt_system_memory_cache), and again after an unmap, since the page may then belong to a
 * device. If a page that the CPU must not access is still mistaken for system memory, the process
 * crashes.
 */

#include "layouts.h"
#include "mpitest.h"
#include "pvars.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BYTES ((size_t) 16 << 20)
/* A device's memory, which may come to where BYTES were mapped, with what lies around it; and what
 * was sent from there. */
#define HALF  (BYTES / 2)
#define PLACE (BYTES / 2)
#define SENT  65536
#define TIMES 50
#define TRIES 64

static bool have, remembers;

/* The base is ob1 of a CUDA-aware Open MPI 5.0, which looks up each buffer by itself. */
static bool base_looks;

/* System memory in a mapping of its own: outside the heap, surely unmapped afterwards, and aligned
 * so that a reservation of the driver can begin at the same address. */
static unsigned char *map_host(void)
{
    unsigned char *all = mmap(NULL, BYTES + GPU_GRANULE, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                  *memory;
    size_t before;

    CHECK(MAP_FAILED != (void *) all);
    before = (GPU_GRANULE - (uintptr_t) all % GPU_GRANULE) % GPU_GRANULE;
    memory = all + before;
    if (0 < before) {
        munmap(all, before);
    }
    munmap(memory + BYTES, GPU_GRANULE - before);
    return memory;
}

/* One message there and one back, and what came. */
static void exchange(unsigned char *out, unsigned char *in, int value)
{
    int peer = mpitest.rank ^ 1;

    memset(out, value + mpitest.rank, SENT);
    memset(in, 0, SENT);
    if (0 == mpitest.rank % 2) {
        MPI_OK(MPI_Send(out, SENT, MPI_BYTE, peer, 1, MPI_COMM_WORLD));
    }
    MPI_OK(MPI_Recv(in, SENT, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    if (0 != mpitest.rank % 2) {
        MPI_OK(MPI_Send(out, SENT, MPI_BYTE, peer, 1, MPI_COMM_WORLD));
    }
    CHECK((unsigned char) (value + peer) == in[0] && in[0] == in[SENT - 1]);
}

/* Buffers that are used again: no question but for the first, or one for each. */
static void asked(uint64_t *state)
{
    unsigned char *out = map_host(), *in = map_host();
    pvars_t before, after, seen;
    int i;

    (void) state;
    exchange(out, in, 1);
    pvars_read(&before);
    for (i = 0; i < TIMES; ++i, ++mpitest.step) {
        exchange(out, in, i);
    }
    pvars_read(&after);
    pvars_subtract(&after, &before, &seen);
    if (have) {
        CHECK(remembers ? 1 >= seen.value[PVARS_GPU_QUERIES]
                        : 2 * TIMES <= seen.value[PVARS_GPU_QUERIES]);
        if (base_looks) {
            CHECK(remembers ? 2 * TIMES <= seen.value[PVARS_ACCELERATOR_LOOKUPS]
                            : 0 == seen.value[PVARS_ACCELERATOR_LOOKUPS]);
        }
    }
    munmap(out, BYTES);
    munmap(in, BYTES);
}

/* Pinned buffers, which are not remembered as pages: Open MPI's own lookups are answered. */
static void pinned(uint64_t *state)
{
    gpu_memory_t *out = gpu_memory(GPU_PINNED, SENT), *in = gpu_memory(GPU_PINNED, SENT);
    pvars_t before, after, seen;
    int i;

    (void) state;
    pvars_read(&before);
    for (i = 0; i < TIMES; ++i, ++mpitest.step) {
        exchange(out->addr, in->addr, i);
    }
    pvars_read(&after);
    pvars_subtract(&after, &before, &seen);
    if (have && base_looks) {
        CHECK(remembers ? 2 * TIMES <= seen.value[PVARS_ACCELERATOR_LOOKUPS]
                        : 0 == seen.value[PVARS_ACCELERATOR_LOOKUPS]);
    }
    gpu_memory_free(out);
    gpu_memory_free(in);
}

/* The first and the last bytes of such memory: a datatype in pieces, all of it in one mapping. */
static MPI_Datatype two_ends(void)
{
    MPI_Datatype type;

    MPI_OK(MPI_Type_create_hvector(2, SENT / 2, (MPI_Aint) (BYTES - SENT / 2), MPI_BYTE, &type));
    MPI_OK(MPI_Type_commit(&type));
    return type;
}

/* The same number of queries for buffers in pieces: not one per piece. */
static void requested_pieces(uint64_t *state)
{
    unsigned char *out = map_host(), *in = map_host();
    int peer = mpitest.rank ^ 1, i;
    MPI_Datatype type = two_ends();
    pvars_t before, after, seen;

    (void) state;
    memset(out, 7, BYTES);
    for (i = 0; i <= TIMES; ++i, ++mpitest.step) {
        if (1 == i) {
            pvars_read(&before);
        }
        MPI_OK(MPI_Sendrecv(out, 1, type, peer, 3, in, 1, type, peer, 3, MPI_COMM_WORLD,
                            MPI_STATUS_IGNORE));
        CHECK(7 == in[SENT / 2 - 1] && 0 == in[SENT / 2] && 7 == in[BYTES - 1]);
    }
    pvars_read(&after);
    pvars_subtract(&after, &before, &seen);
    if (have && remembers) {
        CHECK_INT(seen.value[PVARS_GPU_QUERIES], 0);
    }
    MPI_OK(MPI_Type_free(&type));
    munmap(out, BYTES);
    munmap(in, BYTES);
}

/* A message from a GPU's memory, by whoever has it at @p at; the others send the CPU's. */
static void from_device(unsigned char *at, bool mine, unsigned char *in, int value)
{
    unsigned char *plain = mine ? NULL : map_host();
    int peer = mpitest.rank ^ 1;

    if (NULL != plain) {
        memset(plain, value + mpitest.rank, SENT);
    }
    MPI_OK(MPI_Sendrecv(mine ? at : plain, SENT, MPI_BYTE, peer, 2, in, SENT, MPI_BYTE, peer, 2,
                        MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK((unsigned char) (value + peer) == in[0] && in[0] == in[SENT - 1]);
    if (NULL != plain) {
        munmap(plain, BYTES);
    }
}

/* Memory of the CPU was at an address, and then memory of the device is: mapped memory, whose
 * addresses are reserved among all others. */
static void becomes(uint64_t *state)
{
    long came = 0, all = 0;
    int i;

    (void) state;
    for (i = 0; i < TRIES; ++i, ++mpitest.step) {
        unsigned char *in = map_host(), *data = map_host(), *out = map_host() + PLACE;
        gpu_memory_t *memory;
        bool mine;

        exchange(out, in, i);
        munmap(out - PLACE, BYTES);
        memory = gpu_memory_mapped_at(out - PLACE, HALF);
        /* the message begins where the last one did, if that is in there */
        mine = memory->addr <= out && out + SENT <= memory->addr + HALF;
        came += mine;
        if (mine) {
            memset(data, i + mpitest.rank, SENT);
            gpu_write(memory, (size_t) (out - memory->addr), data, SENT);
        }
        from_device(out, mine, in, i);
        gpu_memory_free(memory);
        munmap(in, BYTES);
        munmap(data, BYTES);
    }
    MPI_OK(MPI_Allreduce(&came, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
    /* Else this was no test. A real driver may have places of its own. */
    CHECK(0 < all || NULL != getenv("UMRDDT_TEST_REAL"));
}

/* A buffer that began and ended in one mapping; then a device's memory is in the middle of it. */
static void hole(uint64_t *state)
{
    int peer = mpitest.rank ^ 1, i, lengths[3] = {SENT, SENT, SENT};
    MPI_Datatype ends = two_ends(), three;
    long came = 0, all = 0;

    (void) state;
    for (i = 0; i < TRIES; ++i, ++mpitest.step) {
        unsigned char *in = map_host(), *data = map_host(), *out = map_host();
        MPI_Aint at[3] = {0, SENT, (MPI_Aint) (BYTES - SENT)};
        gpu_memory_t *memory;
        bool mine;

        memset(out, i, BYTES);
        MPI_OK(MPI_Sendrecv(out, 1, ends, peer, 4, in, SENT, MPI_BYTE, peer, 4, MPI_COMM_WORLD,
                            MPI_STATUS_IGNORE));
        munmap(out + BYTES / 4, BYTES / 2);
        memory = gpu_memory_mapped_at(out + BYTES / 4, BYTES / 8);
        mine = out < memory->addr && memory->addr + BYTES / 8 < out + BYTES;
        came += mine;
        if (mine) {
            memset(data, i, SENT);
            gpu_write(memory, 0, data, SENT);
            at[1] = memory->addr - out;
        }
        MPI_OK(MPI_Type_create_hindexed(3, lengths, at, MPI_BYTE, &three));
        MPI_OK(MPI_Type_commit(&three));
        MPI_OK(MPI_Sendrecv(out, 1, three, peer, 5, in, 3 * SENT, MPI_BYTE, peer, 5, MPI_COMM_WORLD,
                            MPI_STATUS_IGNORE));
        CHECK((unsigned char) i == in[0] && 0 == memcmp(in, in + 1, 3 * SENT - 1));
        MPI_OK(MPI_Type_free(&three));
        gpu_memory_free(memory);
        munmap(in, BYTES);
        munmap(data, BYTES);
        munmap(out, BYTES / 4);
        munmap(out + BYTES / 4 * 3, BYTES / 4);
    }
    MPI_OK(MPI_Type_free(&ends));
    MPI_OK(MPI_Allreduce(&came, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
    CHECK(0 < all || NULL != getenv("UMRDDT_TEST_REAL"));
}

int main(int argc, char **argv)
{
    static const mpitest_part_t parts[] = {
        {"asked", asked},     {"pinned", pinned}, {"requested_pieces", requested_pieces},
        {"becomes", becomes}, {"hole", hole},     {NULL, NULL}};
    const char *base = getenv("UMRDDT_TEST_BASE");

    mpitest_init(&argc, &argv, "gpu_plain", 1, MPI_THREAD_SINGLE);
    if (2 != mpitest.size) {
        mpitest_skip("needs two ranks");
    }
    gpu_begin_all();
    CHECK(gpu_kind_available(GPU_VMM));
    have = pvars_open();
    remembers = 0 != pvars_parameter("pml_umrddt_system_memory_cache", 0);
    base_looks = NULL != base && 0 == strcmp(base, "cuda-ob1");
    mpitest_run(parts);
    pvars_close();
    return mpitest_finish();
}
