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
 * MCA parameters: registration of the table in pml_umrddt_params.h.
 */

/*
 * They are registered twice. The first time is when the component is opened, so that ompi_info
 * lists them. The second is when the PML is enabled, because the pml framework deregisters the
 * variables of every component that it does not select. It never selects this one (see
 * pml_umrddt_component.c).
 */

#include "ompi_config.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "opal/mca/base/mca_base_var.h"

#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_engine.h"
#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_map.h"

#include "ompi/mca/pml/umrddt/bringup/pml_umrddt_bringup.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_sets.h"
#include "ompi/mca/pml/umrddt/pml_umrddt_wire.h"
#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "umrddt_params.h"
#include "umrddt_help.h"

/** Minimum number of pieces of gpu_chunk bytes in gpu_pinned. */
#define LEAST_CHUNKS 2

/* The values of each type of names; NULL: numbers and strings. */
static const mca_base_var_enum_value_t MEMORY_VALUES[] = {
    {MCA_PML_UMRDDT_MEMORY_GPU, "gpu"},
    {MCA_PML_UMRDDT_MEMORY_SYSTEM, "host"},
    {MCA_PML_UMRDDT_MEMORY_ALL, "all"},
    {0, NULL},
};

#define SCHEME_VALUE(NAME, name, text, ...) {MCA_PML_UMRDDT_SCHEME_##NAME, text},
static const mca_base_var_enum_value_t SCHEME_VALUES[] = {
    {MCA_PML_UMRDDT_SCHEME_AUTO, "auto"},
    MCA_PML_UMRDDT_SCHEME_LIST(SCHEME_VALUE)
    /* Other names; the first name of a value is the one that is printed. */
    {MCA_PML_UMRDDT_SCHEME_DIRECT, "sgl"},
    {MCA_PML_UMRDDT_SCHEME_BASE, "base"},
    {0, NULL},
};

static const mca_base_var_enum_value_t GPU_BASE_VALUES[] = {
    {MCA_PML_UMRDDT_GPU_BASE_AUTO, "auto"},
    {MCA_PML_UMRDDT_GPU_BASE_YES, "yes"},
    {MCA_PML_UMRDDT_GPU_BASE_NO, "no"},
    {0, NULL},
};

static const mca_base_var_enum_value_t CONTIGUOUS_VALUES[] = {
    {MCA_PML_UMRDDT_CONTIGUOUS_AUTO, "auto"},
    {MCA_PML_UMRDDT_CONTIGUOUS_DEFER, "defer"},
    {MCA_PML_UMRDDT_CONTIGUOUS_TAKE, "take"},
    {0, NULL},
};

static const mca_base_var_enum_value_t GPU_SCHEME_VALUES[] = {
    {OPAL_UMRDDT_GPU_HOW_AUTO, "auto"},
    {OPAL_UMRDDT_GPU_HOW_BLOCKS, "blocks"},
    {OPAL_UMRDDT_GPU_HOW_DRIVER, "driver"},
    {OPAL_UMRDDT_GPU_HOW_KERNEL, "kernel"},
    {0, NULL},
};

static const mca_base_var_enum_value_t GPU_KERNEL_VALUES[] = {
    {OPAL_UMRDDT_GPU_AUTO, "auto"},           {OPAL_UMRDDT_GPU_TARGETED, "targeted"},
    {OPAL_UMRDDT_GPU_TRANSFORM, "transform"}, {OPAL_UMRDDT_GPU_SEQUENTIAL, "sequential"},
    {OPAL_UMRDDT_GPU_PARALLEL, "parallel"},   {OPAL_UMRDDT_GPU_TEAMS, "teams"},
    {OPAL_UMRDDT_GPU_TEMPI, "tempi"},         {OPAL_UMRDDT_GPU_YAKSA, "yaksa"},
    {OPAL_UMRDDT_GPU_TREE, "tree"},           {0, NULL},
};

static const mca_base_var_enum_value_t STATS_VALUES[] = {
    {MCA_PML_UMRDDT_STATS_NONE, "none"},
    {MCA_PML_UMRDDT_STATS_JOB, "job"},
    {MCA_PML_UMRDDT_STATS_ALL, "all"},
    {MCA_PML_UMRDDT_STATS_JSON, "json"},
    /* Values of earlier releases, in which it was a truth value. */
    {MCA_PML_UMRDDT_STATS_NONE, "false"},
    {MCA_PML_UMRDDT_STATS_JOB, "true"},
    {0, NULL},
};

static const mca_base_var_enum_value_t *const STRING_VALUES = NULL, *const BOOL_VALUES = NULL,
                                              *const UINT_VALUES = NULL, *const SIZE_VALUES = NULL;

/** Returns Open MPI's type of a parameter that is stored in this C type. */
#define VAR_TYPE(member) \
    _Generic((member), char * : MCA_BASE_VAR_TYPE_STRING, \
             bool : MCA_BASE_VAR_TYPE_BOOL, \
             int : MCA_BASE_VAR_TYPE_INT, \
             unsigned : MCA_BASE_VAR_TYPE_UNSIGNED_INT, \
             size_t : MCA_BASE_VAR_TYPE_SIZE_T)

int mca_pml_umrddt_scheme_named(const char *name)
{
    for (size_t i = 0; NULL != SCHEME_VALUES[i].string; ++i) {
        if (0 == strcmp(name, SCHEME_VALUES[i].string)) {
            return SCHEME_VALUES[i].value;
        }
    }
    return -1;
}

/** Register one parameter. @param[in,out] storage  the default; then the value in use */
static void add(const char *name, mca_base_var_type_t type, const mca_base_var_enum_value_t *names,
                int level, const char *help, void *storage)
{
    mca_base_var_enum_t *values = NULL;

    if (NULL != names && OPAL_SUCCESS != mca_base_var_enum_create(name, names, &values)) {
        return;
    }
    umrddt_params_register(&mca_pml_umrddt_component.pmlm_version, name, help, type, values,
                           (mca_base_var_info_lvl_t) (OPAL_INFO_LVL_1 + level - 1), storage);
    if (NULL != values) {
        OBJ_RELEASE(values);
    }
}

static bool registered; /* before */

/** @return the nearest allowed value, after one message to the user if it is another one */
static uint64_t nearest(const char *name, uint64_t value, uint64_t least, uint64_t most)
{
    if (least <= value && value <= most) {
        return value;
    }
    if (!registered) {
        umrddt_show_help("help-mca-pml-umrddt.txt", "parameter-range", true, name,
                         (unsigned long) value, (unsigned long) least, (unsigned long) most);
    }
    return value < least ? least : most;
}

/** Limits that depend on other parameters. */
static void relate(mca_pml_umrddt_params_t *params)
{
    mca_pml_umrddt.waits_from = params->min_size;
    if (MCA_PML_UMRDDT_ENVELOPE > params->min_size) {
        /* a message must not be smaller than its envelope: the base PML receives the envelope into
         * the receive buffer, and the data must overwrite all of it */
        params->min_size = MCA_PML_UMRDDT_ENVELOPE;
    }
    if (LEAST_CHUNKS * params->gpu_chunk > params->gpu_pinned) {
        opal_show_help("help-mca-pml-umrddt.txt", "gpu-pinned", true,
                       (unsigned long) params->gpu_pinned, LEAST_CHUNKS,
                       (unsigned long) params->gpu_chunk,
                       (unsigned long) (LEAST_CHUNKS * params->gpu_chunk));
        params->gpu_pinned = LEAST_CHUNKS * params->gpu_chunk;
    }
    if (params->pack_chunk_floor > params->pack_chunk_ceiling) {
        opal_show_help("help-mca-pml-umrddt.txt", "pack-chunk", true,
                       (unsigned long) params->pack_chunk_floor,
                       (unsigned long) params->pack_chunk_ceiling);
        params->pack_chunk_ceiling = params->pack_chunk_floor;
    }
}

/* Open MPI frees strings when it deregisters them, so their defaults are set each time. */
#define ADD(type, name, level, initial, least, most, ...)                    \
    if (!registered || MCA_BASE_VAR_TYPE_STRING == VAR_TYPE(params->name)) { \
        params->name = initial;                                              \
    }                                                                        \
    (void) snprintf(help, sizeof(help), __VA_ARGS__);                        \
    add(#name, VAR_TYPE(params->name), type##_VALUES, level, help, &params->name);

#define LIMIT(type, name, level, initial, least, most, ...) LIMIT_##type(name, least, most)
#define LIMIT_UINT(name, least, most) \
    params->name = (unsigned) nearest(#name, params->name, least, most);
#define LIMIT_SIZE(name, least, most) params->name = nearest(#name, params->name, least, most);
#define LIMIT_STRING(name, least, most)
#define LIMIT_BOOL(name, least, most)
#define LIMIT_MEMORY(name, least, most)
#define LIMIT_SCHEME(name, least, most)
#define LIMIT_GPU_BASE(name, least, most)
#define LIMIT_CONTIGUOUS(name, least, most)
#define LIMIT_GPU_SCHEME(name, least, most)
#define LIMIT_GPU_KERNEL(name, least, most)
#define LIMIT_STATS(name, least, most)

void mca_pml_umrddt_params_register(void)
{
    mca_pml_umrddt_params_t *params = &mca_pml_umrddt.params;
    char help[1024]; /* Open MPI copies it */

    MCA_PML_UMRDDT_PARAMS(ADD)
    MCA_PML_UMRDDT_PARAMS(LIMIT)
    relate(params);
    registered = true;
    umrddt_params_unknown("pml_umrddt_");
}
