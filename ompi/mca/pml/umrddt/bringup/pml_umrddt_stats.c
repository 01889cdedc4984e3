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
 * The summary of the job that rank 0 prints in MPI_Finalize (pml_umrddt_stats). Sums of the
 * counters of all processes; pml_umrddt_pvars.c has the counters of one process. Rank 0 prints
 * those, too, because mpirun mixes lines of several processes.
 */

#include "ompi_config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "opal/util/proc.h"

#include "ompi/mca/pml/umrddt/bringup/pml_umrddt_bringup.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_log.h"

/** What a process reports: only uint64_t, which are added up. */
typedef struct report_t {
    uint64_t has_hca;
    uint64_t has_gpu;
    mca_pml_umrddt_counters_t counters;
    mca_btl_umr_stats_t hca;
} report_t;

#define VALUES (sizeof(report_t) / sizeof(uint64_t))
_Static_assert(0 == sizeof(report_t) % sizeof(uint64_t), "a report has only counters");

/** A line of the summary. */
typedef struct line_t {
    bool heads;    /**< printed in any case; false: printed below a heading, unless it is 0 */
    size_t offset; /**< of the counter in report_t; 0: the sum of the lines below */
    const char *text;
} line_t;

#define HEAD(name)   true, offsetof(report_t, counters.name)
#define HEAD_SUM     true, 0
#define OF(name)     false, offsetof(report_t, counters.name)
#define OF_HCA(name) false, offsetof(report_t, hca.name)

static const line_t lines[] = {
    {HEAD(handled_sends), "handled messages"},
    {OF(sends_umr), "umr"},
    {OF(sends_direct), "direct"},
    {OF(sends_ipc), "ipc"},
    {OF(sends_pack_gdr), "pack-gdr"},
    {OF(sends_pack_staged), "pack-staged"},
    {OF(sends_pack_host), "pack-host"},
    {OF(fallback_sends), "base PML, after a fallback"},
    {OF(declined_sends), "base PML, as the receiver declined"},
    {HEAD_SUM, "passed-through messages"},
    {OF(passed_contiguous), "contiguous"},
    {OF(passed_small), "below pml_umrddt_min_size"},
    {OF(passed_memory), "memory is not in pml_umrddt_memory"},
    {OF(passed_peer), "no scheme reaches the peer"},
    {OF(passed_model), "base PML predicted to be faster"},
    {OF(passed_other), "mode, scheme, or no resources"},
    {HEAD(handled_bytes), "bytes of handled messages"},
    {OF_HCA(bytes_written), "written by HCAs"},
    {OF(ipc_bytes), "read by CUDA IPC"},
    {OF(pack_bytes), "packed in chunks"},
    {OF(staged_bytes), "staged for the base PML"},
    {HEAD(fallback_recvs), "fallbacks to the base PML"},
    {OF(fallback_small), "receive smaller than an envelope"},
    {OF(fallback_endpoint), "no queue pair, or it broke"},
    {OF(fallback_registration), "memory could not be registered"},
    {OF(fallback_keys), "no keys could be mapped"},
    {OF(fallback_sender), "sender could not write"},
    {OF(fallback_ipc), "CUDA IPC mapping or copy failed"},
    {OF(fallback_scheme), "no common scheme"},
    {OF(fallback_other), "no memory, or refused by the base PML"},
    {HEAD_SUM, "faults"},
    {OF(failures), "messages failed after the CTS"},
    {OF(protocol_errors), "invalid headers"},
    {OF_HCA(errors), "HCA completions with an error"},
    {OF_HCA(endpoints_rebuilt), "queue pairs replaced"},
    {OF_HCA(maps_rebuilt), "mapping queue pairs replaced"},
    {OF_HCA(gpu_reg_refused), "GPU registrations refused"},
    {OF(control_refused), "control messages refused and sent again"},
    {OF(pack_refused), "chunks refused and sent again"},
};

#define LINES (sizeof(lines) / sizeof(lines[0]))

/** The value of a line. */
static uint64_t value_of(const uint64_t *sum, size_t line)
{
    uint64_t value = 0;

    if (0 < lines[line].offset) {
        return sum[lines[line].offset / sizeof(*sum)];
    }
    while (++line < LINES && !lines[line].heads) {
        value += value_of(sum, line);
    }
    return value;
}

/** Add the report of a process, which its performance variables follow. */
static void add(uint32_t rank, const void *theirs, void *context)
{
    const uint64_t *values = theirs;
    const opal_process_name_t name = {OPAL_PROC_MY_NAME.jobid, rank};
    uint64_t *sum = context;

    for (size_t i = 0; i < VALUES; ++i) {
        sum[i] += values[i];
    }
    if (0 == OPAL_PROC_MY_NAME.vpid && MCA_PML_UMRDDT_STATS_ALL == mca_pml_umrddt.params.stats) {
        mca_pml_umrddt_pvars_print(&name, values + VALUES);
    }
}

static void report(report_t *mine)
{
    memset(mine, 0, sizeof(*mine));
    mine->has_hca = NULL != mca_pml_umrddt.hca;
    mine->has_gpu = NULL != mca_pml_umrddt.gpu;
    mine->counters = mca_pml_umrddt.counters;
    if (NULL != mca_pml_umrddt.hca) {
        mine->hca = *mca_pml_umrddt.hca->stats();
    }
}

static void print(const uint64_t *sum, uint32_t found, uint32_t job)
{
    const uint64_t hcas = sum[offsetof(report_t, has_hca) / sizeof(*sum)];
    const uint64_t gpus = sum[offsetof(report_t, has_gpu) / sizeof(*sum)];

    MCA_PML_UMRDDT_LOG("statistics of %u of %u processes, %" PRIu64 " with an HCA, %" PRIu64
                       " with a GPU; base PML %s",
                       found, job, hcas, gpus,
                       mca_pml_umrddt.host_component.pmlm_version.mca_component_name);
    if (0 == hcas && 0 == gpus) {
        MCA_PML_UMRDDT_LOG("  umrddt took no part: no HCA (%s), no GPU (%s)",
                           mca_pml_umrddt.hca_why_not, mca_pml_umrddt.gpu_why_not);
        return;
    }
    for (size_t i = 0; i < LINES; ++i) {
        const uint64_t value = value_of(sum, i);

        if (lines[i].heads) {
            MCA_PML_UMRDDT_LOG("  %-40s %16" PRIu64, lines[i].text, value);
        } else if (0 < value) {
            MCA_PML_UMRDDT_LOG("    %-38s %16" PRIu64, lines[i].text, value);
        }
    }
}

void mca_pml_umrddt_stats_print(void)
{
    const size_t count = VALUES + mca_pml_umrddt_pvars_count();
    uint64_t sum[VALUES] = {0}, *mine = malloc(count * sizeof(*mine));
    uint32_t found, job;
    report_t own;

    if (NULL == mine) {
        return;
    }
    report(&own);
    memcpy(mine, &own, sizeof(own));
    mca_pml_umrddt_pvars_read(mine + VALUES);
    found = mca_pml_umrddt_gather(mine, count * sizeof(*mine), add, sum, &job);
    free(mine);
    if (0 == OPAL_PROC_MY_NAME.vpid) {
        print(sum, found, job);
    }
}
