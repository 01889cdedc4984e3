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
 * Performance variables, and the statistics printed at finalize. Registered twice, as the MCA
 * parameters are (pml_umrddt_params.c).
 */

#include "ompi_config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "opal/mca/base/mca_base_pvar.h"
#include "opal/util/output.h"

#include "ompi/proc/proc.h"

#include "ompi/mca/pml/umrddt/bringup/pml_umrddt_bringup.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu_stats.h"
#include "umrddt_synonyms.h"

typedef enum pvar_source_t {
    PVAR_COUNTER,
    PVAR_LAYOUT,
    PVAR_HCA,
    PVAR_GPU
} pvar_source_t;

typedef struct pvar_t {
    const char *name;
    const char *help;
    pvar_source_t source;
    size_t offset;
    bool level; /* current value of a resource; false: a counter */
} pvar_t;

#define PVAR_OF_COUNTER(name, help) \
    {#name, help, PVAR_COUNTER, offsetof(mca_pml_umrddt_counters_t, name), false},
#define PVAR_OF_LAYOUT(name, field, help, level)                                \
    {                                                                           \
        name, help, PVAR_LAYOUT, offsetof(opal_iov_cache_stats_t, field), level \
    }
#define PVAR_OF_HCA(name, field, help, level)                             \
    {                                                                     \
        name, help, PVAR_HCA, offsetof(mca_btl_umr_stats_t, field), level \
    }

#define PVAR_OF_GPU(name, field, help, level)                                    \
    {                                                                            \
        name, help, PVAR_GPU, offsetof(mca_pml_umrddt_gpu_stats_t, field), level \
    }

/* clang-format off */
static const pvar_t pvars[] = {
    MCA_PML_UMRDDT_COUNTERS(PVAR_OF_COUNTER)
    {"ipc_layout_bytes", "Memory of cached layouts of senders (present value)",
     PVAR_COUNTER, offsetof(mca_pml_umrddt_counters_t, ipc_layout_bytes_now), true},
    {"direct_layout_bytes", "Memory of cached layouts of receivers (present value)",
     PVAR_COUNTER, offsetof(mca_pml_umrddt_counters_t, direct_bytes_now), true},
    {"peers", "Processes that messages were sent to or received from (present "
                 "value)", PVAR_COUNTER,
     offsetof(mca_pml_umrddt_counters_t, peers_now), true},
    {"peer_bytes", "Memory of those, without the HCA's and their layouts' (present "
                 "value)",
     PVAR_COUNTER, offsetof(mca_pml_umrddt_counters_t, peer_bytes_now), true},
    {"peer_table_bytes", "Memory of the communicators' tables of peers, a pointer for each "
                 "rank (present value)", PVAR_COUNTER,
     offsetof(mca_pml_umrddt_counters_t, peer_table_bytes_now), true},
    PVAR_OF_LAYOUT("layout_hits", hits, "Layouts found in the cache", false),
    PVAR_OF_LAYOUT("layout_misses", misses, "Layouts made by reading a datatype", false),
    PVAR_OF_LAYOUT("layout_shared", shared,
                   "Of these, layouts that were already cached for another type or "
                 "count", false),
    PVAR_OF_LAYOUT("layout_evictions", evictions, "Layouts evicted because of the cache's bound", false),
    PVAR_OF_LAYOUT("layout_entries", entries, "Datatypes and counts in the layout cache (present value)", true),
    PVAR_OF_LAYOUT("layout_bytes", bytes, "Memory of the layout cache (present value)", true),
    PVAR_OF_HCA("keys_mapped", keys_mapped, "Windows mapped to mkeys: UMR work requests", false),
    PVAR_OF_HCA("keys_used", keys_used, "mkeys used by messages, mapped for them or found mapped",
                 false),
    PVAR_OF_HCA("keys_plain", keys_plain, "Windows of one piece, which use the registration's own key",
                 false),
    PVAR_OF_HCA("key_entries", key_entries, "Entries in the mapped mkeys; equal blocks at equal distances are "
                 "one", false),
    PVAR_OF_HCA("keyset_hits", keyset_hits, "Key sets found mapped: nothing was mapped for these", false),
    PVAR_OF_HCA("keyset_evictions", keyset_evictions, "Cached key sets that were evicted for others", false),
    PVAR_OF_HCA("keysets_stale", keysets_stale,
                 "Cached key sets whose memory was freed or registered anew", false),
    PVAR_OF_HCA("keysets_kept", keysets_cached_now, "Key sets that are kept mapped (present value)", true),
    PVAR_OF_HCA("mkeys_created", mkeys_created, "mkeys created by the device", false),
    PVAR_OF_HCA("mkeys_by_helper", mkeys_by_helper, "Of these, mkeys created in advance by the helper thread",
                 false),
    PVAR_OF_HCA("mkeys_by_messages", mkeys_by_messages,
                 "Of these, mkeys that a message had to create, after MPI_Init", false),
    PVAR_OF_HCA("mkeys_now", mkeys_now, "mkeys that exist (present value)", true),
    PVAR_OF_HCA("writes_posted", writes_posted, "RDMA writes posted", false),
    PVAR_OF_HCA("writes_direct", writes_direct, "Of these, writes without mkeys", false),
    PVAR_OF_HCA("pieces_direct", pieces_direct, "Contiguous pieces that these gathered", false),
    PVAR_OF_HCA("write_bytes", bytes_written, "Bytes of all writes", false),
    PVAR_OF_HCA("fins_received", fins_received, "RDMA writes with immediate data received", false),
    PVAR_OF_HCA("reg_hits", reg_hits, "Registrations found in the cache", false),
    PVAR_OF_HCA("reg_misses", reg_misses, "Registrations made", false),
    PVAR_OF_HCA("reg_bytes", reg_bytes_now, "Bytes registered (present value)", true),
    PVAR_OF_HCA("gpu_reg_hits", gpu_reg_hits, "Registrations of GPU memory found in the cache", false),
    PVAR_OF_HCA("gpu_reg_misses", gpu_reg_misses, "Registrations of GPU memory made", false),
    PVAR_OF_HCA("gpu_reg_refused", gpu_reg_refused,
                 "The same refused by driver, kernel or HCA; not tried again", false),
    PVAR_OF_HCA("gpu_reg_stale", gpu_regs_stale,
                 "Registrations dropped because their GPU memory was freed", false),
    PVAR_OF_HCA("gpu_reg_bytes", gpu_bytes_now, "Bytes of GPU memory registered (present value)", true),
    PVAR_OF_HCA("gpu_flush_calls", gpu_flush_calls,
                 "Flushes of an HCA's writes to a GPU, by the driver", false),
    PVAR_OF_HCA("gpu_flush_reads", gpu_flush_reads, "The same, by reads of the HCA", false),
    PVAR_OF_HCA("endpoints", endpoints_now, "Queue pairs (present value)", true),
    PVAR_OF_HCA("endpoint_bytes", peer_bytes_now,
                 "Memory of those, with their completions (present value)", true),
    PVAR_OF_HCA("receive_bytes", shared_bytes_now,
                 "Memory of the receives that they share (present value)", true),
    PVAR_OF_HCA("hca_errors", errors, "Completions with an error", false),
    PVAR_OF_HCA("endpoints_rebuilt", endpoints_rebuilt,
                 "Queue pairs to peers that replaced a broken one", false),
    PVAR_OF_HCA("maps_rebuilt", maps_rebuilt,
                 "Queue pairs for mapping keys that replaced a failed one", false),
    PVAR_OF_GPU("gpu_queries", driver.queries, "Pointer queries to the CUDA driver", false),
    PVAR_OF_GPU("gpu_query_hits", driver.hits, "Of these, those of recently seen allocations", false),
    PVAR_OF_GPU("accelerator_lookups", base_lookups,
                "Memory lookups of a CUDA-aware Open MPI answered without the CUDA driver", false),
    PVAR_OF_GPU("gpu_sync_set", driver.syncs,
                "Allocations whose synchronous CUDA calls were made to wait", false),
    PVAR_OF_GPU("gpu_sync_waits", engine.orders,
                "Waits for the default streams, for memory of pools and mapped "
                 "memory", false),
    PVAR_OF_GPU("gpu_copies", engine.copies, "Copies started on GPUs", false),
    PVAR_OF_GPU("gpu_launches", engine.launches, "Kernels launched for those", false),
    PVAR_OF_GPU("gpu_launches_again", engine.launches_again, "Of these, cached launches: nothing is planned", false),
    PVAR_OF_GPU("gpu_graph_launches", engine.graph_launches, "Of these, those by a CUDA graph", false),
    PVAR_OF_GPU("gpu_graphs_made", engine.graphs_made, "Graphs made of repeated launches", false),
    PVAR_OF_GPU("gpu_graphs", engine.graphs_now, "Graphs that exist (present value)", true),
    PVAR_OF_GPU("gpu_driver_copies", engine.driver_copies,
                "Copies by the driver for those", false),
    PVAR_OF_GPU("gpu_shapes_made", engine.shapes_made, "Layouts translated for kernels", false),
    PVAR_OF_GPU("gpu_lists_uploaded", engine.lists_uploaded, "Lists of blocks copied to GPUs", false),
    PVAR_OF_GPU("gpu_list_bytes", engine.shape_bytes_now, "Memory of those on GPUs (present value)", true),
    PVAR_OF_GPU("gpu_staged_bytes", engine.staged_bytes,
                "Bytes of those through pinned buffers", false),
    PVAR_OF_GPU("gpu_pinned_buffers", staging.pinned, "Pinned buffers allocated from the CUDA driver", false),
    PVAR_OF_GPU("gpu_pinned_bytes", staging.bytes_now, "Memory of pinned buffers, in bytes (present value)", true),
    PVAR_OF_GPU("gpu_scratch_buffers", scratch.allocated,
                "Buffers in GPU memory for chunks that were allocated from the "
                 "driver", false),
    PVAR_OF_GPU("gpu_scratch_bytes", scratch.bytes_now, "Memory of those (present value)", true),
    PVAR_OF_GPU("gpu_stage_bytes", cached, "Pageable memory that is kept for staged messages, in bytes "
                 "(present value)", true),
    PVAR_OF_GPU("ipc_exported", ipc.exported, "Allocations exported for other processes", false),
    PVAR_OF_GPU("ipc_opened", ipc.opened, "Allocations of other processes that were mapped", false),
    PVAR_OF_GPU("ipc_hits", ipc.hits, "Messages that found theirs mapped", false),
    PVAR_OF_GPU("ipc_closed", ipc.closed, "Mapped ones that were unmapped", false),
    PVAR_OF_GPU("ipc_refused", ipc.refused, "Exports or mappings that the driver refused", false),
    PVAR_OF_GPU("ipc_open", ipc.open_now, "Allocations of other processes that are mapped (present value)", true),
    PVAR_OF_GPU("ipc_open_bytes", ipc.bytes_now, "Bytes of those (present value)", true),
};
/* clang-format on */

static uint64_t pvar_value(const pvar_t *pvar)
{
    opal_iov_cache_stats_t layouts;
    mca_pml_umrddt_gpu_stats_t gpu;
    const char *base = NULL;

    switch (pvar->source) {
    case PVAR_COUNTER:
        base = (const char *) &mca_pml_umrddt.counters;
        break;
    case PVAR_LAYOUT:
        if (NULL == mca_pml_umrddt.layouts) {
            return 0;
        }
        opal_iov_cache_stats(mca_pml_umrddt.layouts, &layouts);
        base = (const char *) &layouts;
        break;
    case PVAR_HCA:
        if (NULL == mca_pml_umrddt.hca) {
            return 0;
        }
        base = (const char *) mca_pml_umrddt.hca->stats();
        break;
    case PVAR_GPU:
        if (NULL == mca_pml_umrddt.gpu) {
            return 0;
        }
        mca_pml_umrddt_gpu_stats(&gpu);
        base = (const char *) &gpu;
        break;
    }
    return *(const uint64_t *) (base + pvar->offset);
}

static int pvar_get(const struct mca_base_pvar_t *pvar, void *value, void *object)
{
    (void) object;
    *(unsigned long long *) value = (unsigned long long) pvar_value((const pvar_t *) pvar->ctx);
    return OPAL_SUCCESS;
}

/** Size of the variable with one value per HCA: the maximum number of HCAs of a process. */
#define HCAS 8

static void hcas_get(unsigned long long *values)
{
    const mca_btl_umr_stats_t *stats;

    for (unsigned int i = 0; i < HCAS; ++i) {
        values[i] = NULL != mca_pml_umrddt.hca && mca_pml_umrddt.hca->hca(i, NULL, &stats)
                        ? (unsigned long long) stats->bytes_written
                        : 0;
    }
}

static int pvar_get_hcas(const struct mca_base_pvar_t *pvar, void *value, void *object)
{
    (void) pvar;
    (void) object;
    hcas_get(value);
    return OPAL_SUCCESS;
}

static int pvar_notify_hcas(struct mca_base_pvar_t *pvar, mca_base_pvar_event_t event, void *object,
                            int *count)
{
    (void) pvar;
    (void) object;
    if (MCA_BASE_PVAR_HANDLE_BIND == event) {
        *count = HCAS;
    }
    return OPAL_SUCCESS;
}

static void register_name(const char *name, const char *help, bool level,
                          mca_base_get_value_fn_t get, mca_base_notify_fn_t notify,
                          const pvar_t *pvar)
{
    (void) mca_base_component_pvar_register(
        &mca_pml_umrddt_component.pmlm_version, name, help, OPAL_INFO_LVL_4,
        level ? MCA_BASE_PVAR_CLASS_LEVEL : MCA_BASE_PVAR_CLASS_COUNTER,
        MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL, MCA_BASE_VAR_BIND_NO_OBJECT,
        MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, get, NULL, notify,
        (void *) pvar);
}

/** Register a variable by its name and its old name. */
static void pvar_register(const char *name, const char *help, bool level,
                          mca_base_get_value_fn_t get, mca_base_notify_fn_t notify,
                          const pvar_t *pvar)
{
    char deprecated[128];

    register_name(name, help, level, get, notify, pvar);
    for (size_t i = 0; i < sizeof(umrddt_pvar_synonyms) / sizeof(umrddt_pvar_synonyms[0]); ++i) {
        if (0 == strcmp(umrddt_pvar_synonyms[i].name, name)) {
            (void) snprintf(deprecated, sizeof(deprecated), "Deprecated name of pml_umrddt_%s",
                            name);
            register_name(umrddt_pvar_synonyms[i].old, deprecated, level, get, notify, pvar);
        }
    }
}

void mca_pml_umrddt_pvars_register(void)
{
    pvar_register("hca_write_bytes",
                  "Bytes of RDMA writes of each HCA of this process, in the order of preference",
                  false, pvar_get_hcas, pvar_notify_hcas, NULL);
    for (size_t i = 0; i < sizeof(pvars) / sizeof(pvars[0]); ++i) {
        pvar_register(pvars[i].name, pvars[i].help, pvars[i].level, pvar_get, NULL, &pvars[i]);
    }
}

void mca_pml_umrddt_stats_print(void)
{
    if (!mca_pml_umrddt_takes_part()) {
        /* umrddt is not interposed, so there are no counters */
        opal_output(0, "umrddt %s took no part in this job: no HCA (%s), no GPU (%s)",
                    OMPI_NAME_PRINT(OMPI_PROC_MY_NAME), mca_pml_umrddt.hca_why_not,
                    mca_pml_umrddt.gpu_why_not);
        return;
    }
    for (size_t i = 0; i < sizeof(pvars) / sizeof(pvars[0]); ++i) {
        opal_output(0, "umrddt %s %-20s %" PRIu64, OMPI_NAME_PRINT(OMPI_PROC_MY_NAME),
                    pvars[i].name, pvar_value(&pvars[i]));
    }
    if (NULL != mca_pml_umrddt.hca && mca_pml_umrddt.hca->hca(1, NULL, NULL)) {
        const mca_btl_umr_stats_t *stats;
        const mca_btl_umr_caps_t *caps;

        for (unsigned int i = 0; mca_pml_umrddt.hca->hca(i, &caps, &stats); ++i) {
            opal_output(0, "umrddt %s bytes written by %s: %" PRIu64,
                        OMPI_NAME_PRINT(OMPI_PROC_MY_NAME), caps->device, stats->bytes_written);
        }
    }
}
