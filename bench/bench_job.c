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
 * Setup and teardown of the resources that all layouts share.
 */

#include <stdio.h>
#include <string.h>

#include "bench_run.h"
#include "bench_util.h"

/* A communicator with a key that other MPI libraries ignore. */
static void dup_with_key(const char *key, const char *value, MPI_Comm *comm)
{
    MPI_Info info;

    MPI_Info_create(&info);
    MPI_Info_set(info, key, value);
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, comm);
    MPI_Info_free(&info);
}

/* Everything on this communicator goes through the base PML. */
static void dup_for_host(MPI_Comm *comm)
{
    dup_with_key("pml_umrddt_scheme", "host", comm);
}

static void read_plant(bench_plant_t *plant)
{
    const char *text = getenv("UMRDDT_BENCH_PLANT");
    const char *rest = text;
    long long offset;
    int used = 0;

    if (NULL == text) {
        return;
    }
    if (0 == strncmp(rest, "stale:", 6)) {
        plant->kind = BENCH_PLANT_STALE;
        rest += 6;
    } else if (0 == strncmp(rest, "hang:", 5)) {
        plant->kind = BENCH_PLANT_HANG;
        rest += 5;
    } else {
        plant->kind = BENCH_PLANT_INVERTED;
    }
    plant->iteration = 1;
    if (1 != sscanf(rest, "%lld%n", &offset, &used)
        || ('\0' != rest[used]
            && (1 != sscanf(rest + used, "@%d", &plant->iteration) || 1 > plant->iteration))) {
        bench_fatal("UMRDDT_BENCH_PLANT is '%s'; expected [stale:|hang:]OFFSET[@ITERATION]", text);
    }
    plant->offset = offset;
}

void bench_job_open(bench_job_t *job, const char *pattern)
{
    memset(job, 0, sizeof(*job));
    MPI_Comm_rank(MPI_COMM_WORLD, &job->rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job->size);
    job->peer = job->rank ^ 1;
    job->leader = 0 == job->rank % 2;
    if (NULL == pattern) {
        MPI_Comm_dup(MPI_COMM_WORLD, &job->main_comm);
    } else {
        dup_with_key("mpi_communication_pattern", pattern, &job->main_comm);
    }
    dup_for_host(&job->base_comm);
    dup_for_host(&job->control);
    bench_pvars_open(&job->pvars);
    if (1 == job->rank) {
        read_plant(&job->plant);
    }
}

void bench_job_close(bench_job_t *job)
{
    bench_pvars_close(&job->pvars);
    MPI_Comm_free(&job->main_comm);
    MPI_Comm_free(&job->base_comm);
    MPI_Comm_free(&job->control);
}
