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
 * The summary of the job that rank 0 prints in MPI_Finalize, or writes as JSON (pml_umrddt_stats).
 * Sums of the counters of all processes, and the least and the most of one; pml_umrddt_pvars.c has
 * the counters of one process. Rank 0 prints those, too, because mpirun mixes lines of several
 * processes.
 */

#include "ompi_config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opal/util/proc.h"

#include "ompi/mca/pml/umrddt/bringup/pml_umrddt_bringup.h"
#include "umrddt_help.h"

/** What a process reports: only uint64_t, which are added up. */
typedef struct report_t {
    uint64_t has_hca;
    uint64_t has_gpu;
    mca_pml_umrddt_counters_t counters;
    mca_btl_umr_stats_t hca;
} report_t;

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

/** A counter of all processes. */
typedef struct total_t {
    uint64_t sum, least, most; /**< of all processes; of one of them */
} total_t;

/** What rank 0 has collected. */
typedef struct totals_t {
    uint64_t hcas, gpus; /**< processes with an HCA, with a GPU */
    total_t lines[LINES];
    total_t *pvars; /**< of each performance variable; NULL: not requested */
} totals_t;

/** The value of a line in the report of a process. */
static uint64_t value_of(const uint64_t *values, size_t line)
{
    uint64_t value = 0;

    if (0 < lines[line].offset) {
        return values[lines[line].offset / sizeof(*values)];
    }
    while (++line < LINES && !lines[line].heads) {
        value += value_of(values, line);
    }
    return value;
}

static void add_value(total_t *total, uint64_t value, bool first)
{
    total->sum += value;
    total->least = first || value < total->least ? value : total->least;
    total->most = total->most < value ? value : total->most;
}

/** Add the report of a process, which its performance variables follow. */
static void add(uint32_t rank, const void *theirs, void *context)
{
    const report_t *report = theirs;
    const uint64_t *pvars = (const uint64_t *) (report + 1);
    const opal_process_name_t name = {OPAL_PROC_MY_NAME.jobid, rank};
    totals_t *totals = context;

    totals->hcas += report->has_hca;
    totals->gpus += report->has_gpu;
    for (size_t i = 0; i < LINES; ++i) {
        /* rank 0 begins with its own report */
        add_value(&totals->lines[i], value_of(theirs, i), 0 == rank);
    }
    for (size_t i = 0; NULL != totals->pvars && i < mca_pml_umrddt_pvars_count(); ++i) {
        add_value(&totals->pvars[i], pvars[i], 0 == rank);
    }
    if (0 == OPAL_PROC_MY_NAME.vpid && MCA_PML_UMRDDT_STATS_ALL == mca_pml_umrddt.params.stats) {
        mca_pml_umrddt_pvars_print(&name, pvars);
    }
}

static void print(const totals_t *totals, uint32_t found, uint32_t job)
{
    MCA_PML_UMRDDT_LOG("statistics of %u of %u processes, %" PRIu64 " with an HCA, %" PRIu64
                       " with a GPU; base PML %s",
                       found, job, totals->hcas, totals->gpus,
                       mca_pml_umrddt.host_component.pmlm_version.mca_component_name);
    if (0 == totals->hcas && 0 == totals->gpus) {
        MCA_PML_UMRDDT_LOG("  umrddt took no part: no HCA (%s), no GPU (%s)",
                           mca_pml_umrddt.hca_why_not, mca_pml_umrddt.gpu_why_not);
        return;
    }
    MCA_PML_UMRDDT_LOG("  %-40s %13s %11s %11s", "", "sum", "min", "max");
    for (size_t i = 0; i < LINES; ++i) {
        const total_t *total = &totals->lines[i];

        if (lines[i].heads || 0 < total->sum) {
            MCA_PML_UMRDDT_LOG("  %s%-*s %13" PRIu64 " %11" PRIu64 " %11" PRIu64,
                               lines[i].heads ? "" : "  ", lines[i].heads ? 40 : 38, lines[i].text,
                               total->sum, total->least, total->most);
        }
    }
}

/** Write all performance variables as JSON, a line each, to a new file in the working directory. */
static void write_json(const totals_t *totals, uint32_t found, uint32_t job)
{
    char path[64], name[64], number[16] = "";
    const char *separator = "";
    bool success = false;
    unsigned next = 1;
    FILE *file;

    /* A file of an earlier session of this process is not replaced: the name has a number then. */
    do {
        (void) snprintf(path, sizeof(path), "umrddt_stats.%ld%s.json", (long) getpid(), number);
        (void) snprintf(number, sizeof(number), ".%u", ++next);
        file = fopen(path, "wx");
    } while (NULL == file && EEXIST == errno && 1000 > next);
    if (NULL != file) {
        fprintf(file,
                "{\"umrddt\": \"%s\", \"base_pml\": \"%s\", \"processes\": %u, \"reported\": %u,\n"
                "\"with_hca\": %" PRIu64 ", \"with_gpu\": %" PRIu64 ", \"counters\": {",
                UMRDDT_VERSION, mca_pml_umrddt.host_component.pmlm_version.mca_component_name, job,
                found, totals->hcas, totals->gpus);
        for (size_t i = 0; i < mca_pml_umrddt_pvars_count(); ++i, separator = ",") {
            const total_t *total = &totals->pvars[i];

            mca_pml_umrddt_pvars_name(i, name, sizeof(name));
            fprintf(file,
                    "%s\n\"%s\": {\"sum\": %" PRIu64 ", \"min\": %" PRIu64 ", \"max\": %" PRIu64
                    "}",
                    separator, name, total->sum, total->least, total->most);
        }
        success = 0 < fprintf(file, "}}\n") && 0 == ferror(file);
        success = 0 == fclose(file) && success;
    }
    if (success) {
        MCA_PML_UMRDDT_LOG("statistics of %u of %u processes: %s", found, job, path);
    } else {
        umrddt_show_help("help-mca-pml-umrddt.txt", "stats-file", true, path, strerror(errno));
    }
}

void mca_pml_umrddt_stats_print(void)
{
    const bool json = MCA_PML_UMRDDT_STATS_JSON == mca_pml_umrddt.params.stats;
    const size_t size = sizeof(report_t) + mca_pml_umrddt_pvars_count() * sizeof(uint64_t);
    totals_t totals = {.pvars =
                           json ? calloc(mca_pml_umrddt_pvars_count(), sizeof(total_t)) : NULL};
    report_t *mine = calloc(1, size);
    uint32_t found, job;

    if (NULL == mine || (json && NULL == totals.pvars)) {
        free(mine);
        free(totals.pvars);
        return;
    }
    mine->has_hca = NULL != mca_pml_umrddt.hca;
    mine->has_gpu = NULL != mca_pml_umrddt.gpu;
    mine->counters = mca_pml_umrddt.counters;
    if (NULL != mca_pml_umrddt.hca) {
        mine->hca = *mca_pml_umrddt.hca->stats();
    }
    mca_pml_umrddt_pvars_read((uint64_t *) (mine + 1));
    found = mca_pml_umrddt_gather(mine, size, add, &totals, &job);
    free(mine);
    if (0 == OPAL_PROC_MY_NAME.vpid) {
        (json ? write_json : print)(&totals, found, job);
    }
    free(totals.pvars);
}
