/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * A known number of messages, for the statistics and the log lines that check_log reads. Each rank
 * sends them to the right: MESSAGES of rows, with the same layout and buffer, and SMALL ones.
 * --mode has any of:
 *
 *  idle    the last rank neither sends nor receives
 *  absent  rank 1 has pml_umrddt_stats=none: the others do not wait for it forever
 *  differ  rank 1 has pml_umrddt_scheme=direct, so that messages have no common scheme
 */

#include "mpitest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    MESSAGES = 10,
    SMALL = 3,
    ROWS = 64,
    ROW = 1024,
    BYTES = 2 * ROWS * ROW
};

/* Settings of rank 1, before MPI_Init reads them. */
static void settings(int argc, char **argv)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");

    if (NULL == rank) {
        rank = getenv("PMIX_RANK");
    }
    for (int i = 1; i < argc && NULL != rank && 0 == strcmp(rank, "1"); ++i) {
        if (NULL != strstr(argv[i], "absent")) {
            setenv("OMPI_MCA_pml_umrddt_stats", "none", 1);
        } else if (NULL != strstr(argv[i], "differ")) {
            setenv("OMPI_MCA_pml_umrddt_scheme", "direct", 1);
        }
    }
}

/* One message to the right, and one from the left. */
static void shift(const char *out, char *in, MPI_Datatype type, int right, int left)
{
    MPI_Status status;
    int bytes;

    memset(in, 0, BYTES);
    MPI_OK(MPI_Type_size(type, &bytes));
    MPI_OK(MPI_Sendrecv(out, 1, type, right, 1, in, 1, type, left, 1, MPI_COMM_WORLD, &status));
    CHECK_STATUS(&status, left, 1, bytes);
    CHECK_INT(in[0], 1 + left);
    CHECK_INT(in[ROW / 4 - 1], 1 + left);
    CHECK_INT(in[BYTES - 1], 0);
}

int main(int argc, char **argv)
{
    int active, right, left, status;
    MPI_Datatype rows, few;
    struct timespec begin, end;
    char *out, *in;

    settings(argc, argv);
    mpitest_init(&argc, &argv, "summary", 1, MPI_THREAD_SINGLE);
    active = mpitest_has("idle") ? mpitest.size - 1 : mpitest.size;
    right = (mpitest.rank + 1) % active;
    left = (mpitest.rank + active - 1) % active;
    MPI_OK(MPI_Type_vector(ROWS, ROW, 2 * ROW, MPI_BYTE, &rows));
    MPI_OK(MPI_Type_vector(2, ROW / 4, ROW / 2, MPI_BYTE, &few));
    MPI_OK(MPI_Type_commit(&rows));
    MPI_OK(MPI_Type_commit(&few));
    out = malloc(BYTES);
    in = malloc(BYTES);
    CHECK(NULL != out && NULL != in);
    memset(out, 1 + mpitest.rank, BYTES);
    for (int i = 0; i < MESSAGES && mpitest.rank < active; ++i) {
        shift(out, in, rows, right, left);
    }
    for (int i = 0; i < SMALL && mpitest.rank < active; ++i) {
        shift(out, in, few, right, left);
    }
    if (0 == mpitest.rank) {
        printf("expected: messages %d bytes %d small %d\n", active * MESSAGES,
               active * MESSAGES * ROWS * ROW, active * SMALL);
    }
    free(out);
    free(in);
    MPI_OK(MPI_Type_free(&rows));
    MPI_OK(MPI_Type_free(&few));
    clock_gettime(CLOCK_MONOTONIC, &begin);
    status = mpitest_finish();
    clock_gettime(CLOCK_MONOTONIC, &end);
    /* The wait for other processes has a bound, with room for a loaded machine. */
    if (60 < end.tv_sec - begin.tv_sec) {
        fprintf(stderr, "summary: FAILED: MPI_Finalize took %ld s\n",
                (long) (end.tv_sec - begin.tv_sec));
        return 1;
    }
    return status;
}
