/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Messages and collectives of GPU memory use one engine and one pool of pinned memory: the work of
 * coll/umrddt shows in the performance variables of pml/umrddt, which read the state of the
 * process. test/tools/test_shared counts what the driver sees.
 */

#include "gpu_memory.h"
#include "mpitest.h"
#include "pvars.h"

#include <string.h>

#define BLOCKS 64
#define STRIDE 4
/* Elements of a collective: more than any buffer that the message has left in the pool. */
#define COUNT 65536
#define BYTES (COUNT * sizeof(int))

/* A message from GPU to GPU, in pieces. */
static void message(gpu_memory_t *memory)
{
    const int peer = mpitest.rank ^ 1;
    MPI_Datatype type;

    MPI_OK(MPI_Type_vector(BLOCKS, 1, STRIDE, MPI_INT, &type));
    MPI_OK(MPI_Type_commit(&type));
    if (0 == mpitest.rank) {
        MPI_OK(MPI_Send(memory->addr, 1, type, peer, 1, MPI_COMM_WORLD));
    } else {
        MPI_OK(MPI_Recv(memory->addr, 1, type, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    MPI_OK(MPI_Type_free(&type));
}

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void) type;
    for (int i = 0; i < *count; ++i) {
        ((int *) inout)[i] += ((int *) in)[i];
    }
}

/* One with an operation of the program: its data goes through system memory. */
static void collective(gpu_memory_t *memory)
{
    static int values[COUNT];
    MPI_Request request;
    MPI_Op op;

    MPI_OK(MPI_Op_create(add, 1, &op));
    for (int i = 0; i < COUNT; ++i) {
        values[i] = i + mpitest.rank;
    }
    gpu_write(memory, 0, values, sizeof(values));
    MPI_OK(
        MPI_Iallreduce(MPI_IN_PLACE, memory->addr, COUNT, MPI_INT, op, MPI_COMM_WORLD, &request));
    MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    MPI_OK(MPI_Op_free(&op));
    gpu_read(memory, 0, values, sizeof(values));
    for (int i = 0; i < COUNT; ++i) {
        CHECK_INT(values[i], 2 * i + 1);
    }
}

int main(int argc, char **argv)
{
    pvars_t before, after, seen;
    gpu_memory_t *memory;

    mpitest_init(&argc, &argv, "gpu_shared", 2, MPI_THREAD_SINGLE);
    CHECK_INT(mpitest.size, 2);
    gpu_begin_all();
    CHECK(0 < pvars_open());
    memory = gpu_memory(GPU_DEVICE, BYTES);

    pvars_read(&before);
    message(memory);
    pvars_read(&after);
    pvars_subtract(&after, &before, &seen);
    CHECK(1 == mpitest.rank ? 0 < seen.value[PVARS_GPU_COPIES] : true);

    pvars_read(&before);
    collective(memory);
    pvars_read(&after);
    pvars_subtract(&after, &before, &seen);
    CHECK(2 <= seen.value[PVARS_GPU_COPIES]); /* in and out */
    CHECK_INT(seen.value[PVARS_GPU_PINNED_BUFFERS], 1);

    gpu_memory_free(memory);
    pvars_close();
    return mpitest_finish();
}
