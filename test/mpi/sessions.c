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
 * MPI Sessions: messages between processes that never call MPI_Init and have no MPI_COMM_WORLD, on
 * communicators made from a group; one Session after the other, two at once, and together with the
 * world model.
 */

#include "mpitest.h"
#include "pvars.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if OMPI_MAJOR_VERSION < 5

int main(void)
{
    puts("sessions: SKIPPED: no MPI Sessions before Open MPI 5.0");
    return MPITEST_SKIP;
}

#else

/* Rows of 8 numbers, every second row: neither small nor contiguous. */
enum {
    ROW = 8,
    ROWS = 400,
    CELLS = 2 * ROW * ROWS
};

static bool clean; /* umrddt must handle the messages */

static double cell(int rank, int round, int i)
{
    return 1e6 * rank + 1e4 * round + i;
}

static void fill(double *buffer, int rank, int round)
{
    for (int i = 0; i < CELLS; ++i) {
        buffer[i] = i / ROW % 2 ? -1 : cell(rank, round, i);
    }
}

static void check_result(const double *buffer, int rank, int round)
{
    for (int i = 0; i < CELLS; ++i) {
        double wanted = i / ROW % 2 ? -1 : cell(rank, round, i);

        if (buffer[i] != wanted) {
            mpitest_fail(__FILE__, __LINE__, "number %d is %g, not %g", i, buffer[i], wanted);
        }
    }
    ++mpitest.checks;
}

/* Around the ring: expected, probed, and matched by a probe. */
static void exchange(MPI_Comm comm, int round)
{
    double *out = malloc(CELLS * sizeof(*out)), *in = malloc(CELLS * sizeof(*in));
    int rank, size, left, right, count;
    MPI_Datatype rows;
    MPI_Status status;
    MPI_Message message;
    pvars_t before, after;
    MPI_Request request;

    CHECK(NULL != out && NULL != in);
    MPI_OK(MPI_Comm_rank(comm, &rank));
    MPI_OK(MPI_Comm_size(comm, &size));
    left = (rank + size - 1) % size;
    right = (rank + 1) % size;
    MPI_OK(MPI_Type_vector(ROWS, ROW, 2 * ROW, MPI_DOUBLE, &rows));
    MPI_OK(MPI_Type_commit(&rows));
    pvars_read(&before);
    for (int way = 0; way < 3; ++way) {
        fill(out, rank, round + way);
        memset(in, 0, CELLS * sizeof(*in));
        for (int i = 0; i < CELLS; ++i) {
            in[i] = -1;
        }
        if (0 == way) {
            MPI_OK(MPI_Irecv(in, 1, rows, left, way, comm, &request));
            MPI_OK(MPI_Send(out, 1, rows, right, way, comm));
            MPI_OK(MPI_Wait(&request, &status));
        } else {
            MPI_OK(MPI_Isend(out, 1, rows, right, way, comm, &request));
            if (1 == way) {
                MPI_OK(MPI_Probe(MPI_ANY_SOURCE, way, comm, &status));
                MPI_OK(MPI_Get_count(&status, rows, &count));
                CHECK_INT(count, 1);
                MPI_OK(MPI_Recv(in, 1, rows, status.MPI_SOURCE, way, comm, &status));
            } else {
                MPI_OK(MPI_Mprobe(left, MPI_ANY_TAG, comm, &message, &status));
                MPI_OK(MPI_Mrecv(in, 1, rows, &message, &status));
            }
            MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        }
        CHECK_INT(status.MPI_SOURCE, left);
        CHECK_INT(status.MPI_TAG, way);
        MPI_OK(MPI_Get_elements(&status, rows, &count));
        CHECK_INT(count, ROW * ROWS);
        check_result(in, left, round + way);
        /* This one's wildcard must not match the later message. */
        MPI_OK(MPI_Barrier(comm));
    }
    pvars_read(&after);
    if (clean && 1 < size) {
        CHECK_INT(after.value[PVARS_HANDLED_SENDS] - before.value[PVARS_HANDLED_SENDS], 3);
        CHECK_INT(after.value[PVARS_FALLBACK_SENDS] - before.value[PVARS_FALLBACK_SENDS], 0);
    }
    MPI_OK(MPI_Type_free(&rows));
    free(out);
    free(in);
}

typedef struct one_t {
    MPI_Session session;
    MPI_Comm comm;
} one_t;

static one_t begin(const char *name)
{
    one_t one;
    MPI_Group group;

    MPI_OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &one.session));
    MPI_OK(MPI_Group_from_session_pset(one.session, "mpi://WORLD", &group));
    MPI_OK(MPI_Comm_create_from_group(group, name, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &one.comm));
    MPI_OK(MPI_Group_free(&group));
    MPI_OK(MPI_Comm_rank(one.comm, &mpitest.rank));
    MPI_OK(MPI_Comm_size(one.comm, &mpitest.size));
    return one;
}

static void end(one_t *one)
{
    MPI_OK(MPI_Comm_free(&one->comm));
    MPI_OK(MPI_Session_finalize(&one->session));
}

/* Of a session: also a duplicate, and a part of its group. */
static void use(const one_t *one, int round)
{
    MPI_Comm copy, part;
    MPI_Group all, few;
    int first[1][3] = {{0, mpitest.size - 1, 2}};

    exchange(one->comm, round);
    MPI_OK(MPI_Comm_dup(one->comm, &copy));
    exchange(copy, round + 3);
    MPI_OK(MPI_Comm_free(&copy));

    MPI_OK(MPI_Comm_group(one->comm, &all));
    MPI_OK(MPI_Group_range_incl(all, 1, first, &few));
    if (0 == mpitest.rank % 2) {
        MPI_OK(MPI_Comm_create_from_group(few, "few", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &part));
        exchange(part, round + 6);
        MPI_OK(MPI_Comm_free(&part));
    }
    MPI_OK(MPI_Group_free(&few));
    MPI_OK(MPI_Group_free(&all));
}

int main(int argc, char **argv)
{
    const char *expect = getenv("UMRDDT_TEST_EXPECT");
    one_t one, two;
    int flag;

    if (2 < argc && 0 == strcmp(argv[1], "--mode")) {
        mpitest.mode = argv[2];
    }
    mpitest.name = "sessions";
    clean = NULL != expect && 0 == strcmp(expect, "clean");

    one = begin("one");
    (void) pvars_open();
    mpitest.step = 1;
    use(&one, 1);

    mpitest.step = 2;
    two = begin("two");
    use(&two, 11);
    use(&one, 21);
    if (mpitest_has("world")) {
        MPI_OK(MPI_Init(&argc, &argv));
        mpitest.step = 3;
        exchange(MPI_COMM_WORLD, 31);
        use(&one, 41);
        MPI_OK(MPI_Finalize());
        use(&two, 51);
    }
    mpitest.step = 4;
    end(&one);
    use(&two, 61);
    pvars_close();
    end(&two);

    /* MPI was finalized completely, and starts again. */
    if (mpitest_has("again")) {
        mpitest.step = 5;
        one = begin("three");
        (void) pvars_open();
        use(&one, 71);
        pvars_close();
        end(&one);
    }
    MPI_OK(MPI_Finalized(&flag));
    if (0 == mpitest.rank) {
        printf("sessions: ok, %ld checks on rank 0\n", mpitest.checks);
    }
    return 0;
}

#endif
