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
 * Performance variables, and their values printed at finalize. Registered twice, as the MCA
 * parameters are (pml_umrddt_params.c).
 */

#include "ompi_config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "opal/mca/base/mca_base_pvar.h"
#include "opal/mca/common/umrddt_gpu/ipc/umrddt_gpu_open.h"

#include "ompi/proc/proc.h"

#include "ompi/mca/pml/umrddt/bringup/pml_umrddt_bringup.h"
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
#define PVAR_NOW(name, member, help) \
    {#name, help, PVAR_COUNTER, offsetof(mca_pml_umrddt_counters_t, member), true},
#define PVAR_OF_LAYOUT(name, member, level, help) \
    {#name, help, PVAR_LAYOUT, offsetof(opal_iov_cache_stats_t, member), level},
#define PVAR_OF_HCA(name, member, level, help) \
    {#name, help, PVAR_HCA, offsetof(mca_btl_umr_stats_t, member), level},
#define PVAR_OF_GPU(name, member, level, help) \
    {#name, help, PVAR_GPU, offsetof(opal_umrddt_gpu_stats_t, member), level},

/* clang-format off */
static const pvar_t pvars[] = {
    MCA_PML_UMRDDT_COUNTERS(PVAR_OF_COUNTER)
    PVAR_NOW(ipc_layout_bytes, ipc_layout_bytes_now,
             "Memory of cached layouts of senders (present value)")
    PVAR_NOW(direct_layout_bytes, direct_bytes_now,
             "Memory of cached layouts of receivers (present value)")
    PVAR_NOW(peers, peers_now,
             "Processes that messages were sent to or received from (present value)")
    PVAR_NOW(peer_bytes, peer_bytes_now,
             "Memory of those, without the HCA's and their layouts' (present value)")
    PVAR_NOW(peer_table_bytes, peer_table_bytes_now,
             "Memory of the communicators' tables of peers, a pointer for each rank (present "
             "value)")
    OPAL_IOV_CACHE_COUNTERS(PVAR_OF_LAYOUT)
    MCA_BTL_UMR_COUNTERS(PVAR_OF_HCA)
    OPAL_UMRDDT_GPU_COUNTERS(PVAR_OF_GPU)
};
/* clang-format on */

static uint64_t pvar_value(const pvar_t *pvar)
{
    opal_iov_cache_stats_t layouts;
    opal_umrddt_gpu_stats_t gpu;
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
        opal_umrddt_gpu_stats(&gpu);
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

size_t mca_pml_umrddt_pvars_count(void)
{
    return sizeof(pvars) / sizeof(pvars[0]) + HCAS;
}

void mca_pml_umrddt_pvars_read(uint64_t *values)
{
    unsigned long long bytes[HCAS];

    hcas_get(bytes);
    for (size_t i = 0; i < HCAS; ++i) {
        *values++ = bytes[i];
    }
    for (size_t i = 0; i < sizeof(pvars) / sizeof(pvars[0]); ++i) {
        *values++ = pvar_value(&pvars[i]);
    }
}

void mca_pml_umrddt_pvars_name(size_t i, char *name, size_t size)
{
    if (HCAS > i) {
        (void) snprintf(name, size, "hca_write_bytes[%zu]", i);
    } else {
        (void) snprintf(name, size, "%s", pvars[i - HCAS].name);
    }
}

void mca_pml_umrddt_pvars_print(const opal_process_name_t *name, const uint64_t *values)
{
    const bool several = 0 < values[1]; /* HCAs that wrote */

    for (size_t i = 0; i < HCAS; ++i, ++values) {
        if (several && 0 < *values) {
            MCA_PML_UMRDDT_LOG("%s hca_write_bytes[%zu] %" PRIu64, OMPI_NAME_PRINT(name), i,
                               *values);
        }
    }
    for (size_t i = 0; i < sizeof(pvars) / sizeof(pvars[0]); ++i, ++values) {
        MCA_PML_UMRDDT_LOG("%s %-20s %" PRIu64, OMPI_NAME_PRINT(name), pvars[i].name, *values);
    }
}
