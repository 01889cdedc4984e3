/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * One-sided communication and memory of GPUs where Open MPI was not built with CUDA: each call ends
 * with an MPI error, on all processes of a window where it is collective; and the same calls on
 * system memory do their work, before and afterwards.
 */

#include "layouts.h"
#include "mpitest.h"

#include <stdlib.h>

#define COUNT 4096

static int *ours, *mine, *there;

static void check_class(int rc, int wanted)
{
    int class = MPI_SUCCESS;

    if (MPI_SUCCESS != rc) {
        MPI_OK(MPI_Error_class(rc, &class));
    }
    CHECK_INT(class, wanted);
}

/* A window that cannot be: on all processes, or on the first only. */
static void no_window(bool all)
{
    MPI_Win win;
    int rc = MPI_Win_create(all || 0 == mpitest.rank ? there : ours, COUNT * sizeof(int),
                            sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);

    check_class(rc, MPI_ERR_WIN);
}

/* Every call with a buffer argument, with `buffer` as that. */
static void calls(MPI_Win win, int *buffer, int n, int wanted)
{
    const int to = (mpitest.rank + 1) % mpitest.size;
    int other[2] = {0, 0};

    check_class(MPI_Put(buffer, n, MPI_INT, to, 0, n, MPI_INT, win), wanted);
    MPI_OK(MPI_Win_flush(to, win));
    check_class(MPI_Get(buffer, n, MPI_INT, to, 0, n, MPI_INT, win), wanted);
    MPI_OK(MPI_Win_flush(to, win));
    check_class(MPI_Accumulate(buffer, n, MPI_INT, to, 0, n, MPI_INT, MPI_MAX, win), wanted);
    MPI_OK(MPI_Win_flush(to, win));
    check_class(MPI_Get_accumulate(other, 1, MPI_INT, buffer, 1, MPI_INT, to, 0, 1, MPI_INT,
                                   MPI_NO_OP, win),
                wanted);
    MPI_OK(MPI_Win_flush(to, win));
    check_class(MPI_Fetch_and_op(other, buffer, MPI_INT, to, 0, MPI_NO_OP, win), wanted);
    MPI_OK(MPI_Win_flush(to, win));
    check_class(MPI_Compare_and_swap(other, other + 1, buffer, MPI_INT, to, 0, win), wanted);
    MPI_OK(MPI_Win_flush(to, win));
}

/* Calls that end with a request; there is none after an error. */
static void requests(MPI_Win win, int *buffer, int n, int wanted)
{
    const int to = (mpitest.rank + 1) % mpitest.size;
    MPI_Request request = MPI_REQUEST_NULL;

    check_class(MPI_Rput(buffer, n, MPI_INT, to, 0, n, MPI_INT, win, &request), wanted);
    MPI_OK(MPI_SUCCESS == wanted ? MPI_Wait(&request, MPI_STATUS_IGNORE) : MPI_SUCCESS);
    MPI_OK(MPI_Win_flush(to, win));
    check_class(MPI_Rget(buffer, n, MPI_INT, to, 0, n, MPI_INT, win, &request), wanted);
    MPI_OK(MPI_SUCCESS == wanted ? MPI_Wait(&request, MPI_STATUS_IGNORE) : MPI_SUCCESS);
}

int main(int argc, char **argv)
{
    gpu_memory_t *memory;
    MPI_Win win;
    int i, n;

    mpitest_init(&argc, &argv, "gpu_windows", 1, MPI_THREAD_SINGLE);
    gpu_begin_all();
    memory = gpu_memory(GPU_DEVICE, COUNT * sizeof(int));
    there = (int *) memory->addr;
    ours = calloc(COUNT, sizeof(int));
    mine = calloc(COUNT, sizeof(int));
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    no_window(true);
    no_window(false);
    MPI_OK(MPI_Win_create(ours, COUNT * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                          &win));
    MPI_OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    MPI_OK(MPI_Win_lock_all(0, win));
    for (i = 0; i < 2; ++i) {
        for (n = 2; n <= COUNT; n += COUNT - 2) {
            calls(win, there, n, MPI_ERR_UNSUPPORTED_OPERATION);
            requests(win, there, n, MPI_ERR_UNSUPPORTED_OPERATION);
            calls(win, mine, n, MPI_SUCCESS);
            requests(win, mine, n, MPI_SUCCESS);
        }
    }
    MPI_OK(MPI_Win_unlock_all(win));
    /* What is put is there. */
    MPI_OK(MPI_Win_fence(0, win));
    for (i = 0; i < COUNT; ++i) {
        mine[i] = 1000 * mpitest.rank + i;
    }
    MPI_OK(
        MPI_Put(mine, COUNT, MPI_INT, (mpitest.rank + 1) % mpitest.size, 0, COUNT, MPI_INT, win));
    MPI_OK(MPI_Win_fence(0, win));
    for (i = 0; i < COUNT; ++i) {
        CHECK_INT(ours[i], 1000 * ((mpitest.rank + mpitest.size - 1) % mpitest.size) + i);
    }
    MPI_OK(MPI_Win_free(&win));
    free(ours);
    free(mine);
    gpu_memory_free(memory);
    return mpitest_finish();
}
