/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "stress_comms.h"

#include <stdlib.h>
#include <string.h>

static struct {
    MPI_Comm comm;
    int color[STRESS_RANKS]; /* of each process: its group */
    int rank[STRESS_RANKS];  /* of each process in its group */
} comms[STRESS_COMMS];
static MPI_Comm control = MPI_COMM_NULL;
static int comm_count, thread_count;

bool stress_on_ucx(void)
{
    const char *host = getenv("UMRDDT_TEST_HOST");

    return NULL != host && 0 == strcmp(host, "ucx");
}

static void split(int number, int (*color)(int), int (*key)(int))
{
    int process, other;

    for (process = 0; process < mpitest.size; ++process) {
        comms[number].color[process] = color(process);
        comms[number].rank[process] = 0;
        for (other = 0; other < mpitest.size; ++other) {
            if (color(other) == color(process) && key(other) < key(process)) {
                ++comms[number].rank[process];
            }
        }
    }
    MPI_OK(MPI_Comm_split(MPI_COMM_WORLD, color(mpitest.rank), key(mpitest.rank),
                          &comms[number].comm));
}

static int all(int process)
{
    (void) process;
    return 0;
}

static int upwards(int process)
{
    return process;
}

static int downwards(int process)
{
    return -process;
}

static int half(int process)
{
    return 2 * process / mpitest.size;
}

static int parity(int process)
{
    return process % 2;
}

static void check_ranks(int number)
{
    int rank = -1;

    MPI_OK(MPI_Comm_rank(comms[number].comm, &rank));
    CHECK_INT(rank, comms[number].rank[mpitest.rank]);
    MPI_OK(MPI_Comm_set_errhandler(comms[number].comm, MPI_ERRORS_RETURN));
}

void stress_comms_make(int threads)
{
    MPI_Comm group;
    int i;

    thread_count = threads;
    split(STRESS_COMM_DUP, all, upwards);
    MPI_OK(MPI_Comm_free(&comms[STRESS_COMM_DUP].comm));
    MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[STRESS_COMM_DUP].comm));
    split(STRESS_COMM_REVERSED, all, downwards);
    split(STRESS_COMM_HALVES, half, downwards);
    split(STRESS_COMM_BETWEEN, parity, downwards);
    group = comms[STRESS_COMM_BETWEEN].comm;
    /* The leaders of both groups are their last ranks, which are the first by the order of the
     * split. */
    i = mpitest.size - 1;
    MPI_OK(MPI_Intercomm_create(group, 0, MPI_COMM_WORLD, i % 2 == mpitest.rank % 2 ? i - 1 : i, 77,
                                &comms[STRESS_COMM_BETWEEN].comm));
    MPI_OK(MPI_Comm_free(&group));
    split(STRESS_COMM_POOL, all, upwards);
    comm_count = STRESS_COMM_SHARED;
    for (i = 0; i < threads && 1 < threads; ++i) {
        split(comm_count, all, 0 == i % 2 ? upwards : downwards);
        ++comm_count;
    }
    for (i = 0; i < comm_count; ++i) {
        check_ranks(i);
    }
    MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &control));
}

void stress_comms_free(void)
{
    int i;

    for (i = 0; i < comm_count; ++i) {
        MPI_OK(MPI_Comm_free(&comms[i].comm));
    }
    MPI_OK(MPI_Comm_free(&control));
    comm_count = 0;
}

int stress_comm_count(void)
{
    return comm_count;
}

MPI_Comm stress_comm(int number)
{
    return comms[number].comm;
}

MPI_Comm stress_comm_control(void)
{
    return control;
}

int stress_comm_owner(int number)
{
    return STRESS_COMM_SHARED <= number ? number - STRESS_COMM_SHARED : -1;
}

bool stress_comm_wild(int number)
{
    return 1 == thread_count || 0 <= stress_comm_owner(number) || STRESS_COMM_POOL == number;
}

bool stress_comm_pooled(int number)
{
    return 1 < thread_count && STRESS_COMM_POOL == number;
}

bool stress_comm_reaches(int number, int from, int to)
{
    bool together = comms[number].color[from] == comms[number].color[to];

    return STRESS_COMM_BETWEEN == number ? !together : together;
}

int stress_comm_rank(int number, int process)
{
    return comms[number].rank[process];
}

const char *stress_comm_name(int number)
{
    static const char *const names[STRESS_COMM_SHARED] = {"dup", "reversed", "halves", "between",
                                                          "pool"};

    return STRESS_COMM_SHARED > number ? names[number] : "own";
}
