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
 * The memory kind of buffers, and the info key that saves the lookup. Read pml_umrddt_gpu.h first.
 */

/*
 * The key mpi_communication_pattern with value MPI_X_TO_Y asserts that send buffers on this
 * communicator are in X's memory and receive buffers in Y's. MPI 4.1's
 * mpi_assert_memory_alloc_kinds is a list of the kinds that all buffers of this process are of. A
 * key is read from the communicator or its session. The session may set it after the communicator
 * is created but before it is used, so it is read for the first message.
 */

#include "ompi_config.h"

#include <string.h>

#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_layout.h"
#include "umrddt_help.h"

void mca_pml_umrddt_look_pieces(const void *buf, size_t count, ompi_datatype_t *datatype,
                                opal_umrddt_gpu_where_t *where)
{
    opal_iov_cache_layout_t *layout;

    if (OMPI_SUCCESS == mca_pml_umrddt_layout(datatype, count, &layout)) {
        opal_umrddt_gpu_look_pieces(buf, layout, where);
        OBJ_RELEASE(layout);
    }
}

/* ---------------------------------------------------------------------------------------------
 * The user's assertion
 * ------------------------------------------------------------------------------------------- */

#define KEY "mpi_communication_pattern"

/** Open MPI 4.1 stores under this prefix the keys of MPI_Comm_set_info without a subscriber. */
#if defined(OPAL_INFO_SAVE_PREFIX)
#define KEY_SET OPAL_INFO_SAVE_PREFIX KEY
#else
#define KEY_SET KEY
#endif

/** With the prefix it is too long for 4.1. */
#define KINDS_KEY "mpi_assert_memory_alloc_kinds"

static const struct {
    const char *value;
    mca_pml_umrddt_memory_t memory[2]; /**< of the sender, of the receiver */
} patterns[] = {
    [MCA_PML_UMRDDT_PATTERN_CPU_TO_CPU] = {"MPI_CPU_TO_CPU",
                                           {MCA_PML_UMRDDT_MEMORY_SYSTEM,
                                            MCA_PML_UMRDDT_MEMORY_SYSTEM}},
    [MCA_PML_UMRDDT_PATTERN_CPU_TO_GPU] = {"MPI_CPU_TO_GPU",
                                           {MCA_PML_UMRDDT_MEMORY_SYSTEM,
                                            MCA_PML_UMRDDT_MEMORY_GPU}},
    [MCA_PML_UMRDDT_PATTERN_GPU_TO_CPU] = {"MPI_GPU_TO_CPU",
                                           {MCA_PML_UMRDDT_MEMORY_GPU,
                                            MCA_PML_UMRDDT_MEMORY_SYSTEM}},
    [MCA_PML_UMRDDT_PATTERN_GPU_TO_GPU] = {"MPI_GPU_TO_GPU",
                                           {MCA_PML_UMRDDT_MEMORY_GPU, MCA_PML_UMRDDT_MEMORY_GPU}},
    [MCA_PML_UMRDDT_PATTERN_SYSTEM] = {"system",
                                       {MCA_PML_UMRDDT_MEMORY_SYSTEM,
                                        MCA_PML_UMRDDT_MEMORY_SYSTEM}},
};
#define PATTERN_COUNT MCA_PML_UMRDDT_PATTERN_SYSTEM /* the last one is no value of the key */

/** Returns true for the first caller of any thread. */
static bool first_time(int *once)
{
    return 0 == __atomic_exchange_n(once, 1, __ATOMIC_RELAXED);
}

/**
 * The pattern of a list of memory kinds: system memory only (MPI's own is that), or GPU memory
 * only. Memory of other kinds, and that of CUDA without a restrictor, may be either. Writes into @p
 * kinds.
 */
static mca_pml_umrddt_pattern_t of_kinds(char *kinds)
{
    bool system = false, device = false;
    char *rest;

    for (char *kind = strtok_r(kinds, ", ", &rest); NULL != kind;
         kind = strtok_r(NULL, ", ", &rest)) {
        if (0 == strcmp(kind, "system") || 0 == strcmp(kind, "mpi")
            || 0 == strncmp(kind, "mpi:", 4)) {
            system = true;
        } else if (0 == strcmp(kind, "cuda:device")) {
            device = true;
        } else {
            return MCA_PML_UMRDDT_PATTERN_NONE;
        }
    }
    return system == device ? MCA_PML_UMRDDT_PATTERN_NONE
           : system         ? MCA_PML_UMRDDT_PATTERN_SYSTEM
                            : MCA_PML_UMRDDT_PATTERN_GPU_TO_GPU;
}

/** Parse an info object. @return MCA_PML_UMRDDT_PATTERN_NONE: key absent or value unknown */
static mca_pml_umrddt_pattern_t look_up(opal_info_t *info, const char *of)
{
    static int warned = 0;
    char value[MPI_MAX_INFO_VAL] = "";

    if (NULL == info) {
        return MCA_PML_UMRDDT_PATTERN_NONE;
    }
    if (!umrddt_info_get(info, KEY, value, sizeof(value))
        && !umrddt_info_get(info, KEY_SET, value, sizeof(value))) {
        /* of a list that may be cut off nothing is known */
        return umrddt_info_get(info, KINDS_KEY, value, sizeof(value))
                       && sizeof(value) - 1 > strlen(value)
                   ? of_kinds(value)
                   : MCA_PML_UMRDDT_PATTERN_NONE;
    }
    for (size_t i = MCA_PML_UMRDDT_PATTERN_NONE + 1; i < PATTERN_COUNT; ++i) {
        if (0 == strcmp(patterns[i].value, value)) {
            return (mca_pml_umrddt_pattern_t) i;
        }
    }
    if (first_time(&warned)) {
        opal_show_help("help-mca-pml-umrddt.txt", "pattern-value", true, value, of);
    }
    return MCA_PML_UMRDDT_PATTERN_NONE;
}

mca_pml_umrddt_pattern_t mca_pml_umrddt_pattern_read(mca_pml_umrddt_comm_t *comm)
{
    mca_pml_umrddt_pattern_t pattern = look_up(comm->comm->super.s_info, "a communicator");

#if UMRDDT_OPAL_RELEASE >= 500
    if (MCA_PML_UMRDDT_PATTERN_NONE == pattern && NULL != comm->comm->instance) {
        pattern = look_up(comm->comm->instance->super.s_info, "a Session");
    }
#endif
    /* concurrent readers store the same value */
    __atomic_store_n(&comm->pattern, (int) pattern, __ATOMIC_RELAXED);
    return pattern;
}

/** Name for user output, which differs from the parameter's value. */
static const char *name_of(mca_pml_umrddt_memory_t memory)
{
    return MCA_PML_UMRDDT_MEMORY_GPU == memory ? "GPU" : "system";
}

/** Query the driver for the memory kind of a buffer. */
static mca_pml_umrddt_memory_t query(const void *buf, size_t count, ompi_datatype_t *datatype,
                                     opal_umrddt_gpu_where_t *where)
{
    MCA_PML_UMRDDT_COUNT(memory_queries);
    mca_pml_umrddt_look(buf, count, datatype, where);
    return opal_umrddt_gpu_on_gpu(where) ? MCA_PML_UMRDDT_MEMORY_GPU : MCA_PML_UMRDDT_MEMORY_SYSTEM;
}

mca_pml_umrddt_memory_t mca_pml_umrddt_memory_find(mca_pml_umrddt_comm_t *comm, const void *buf,
                                                   size_t count, ompi_datatype_t *datatype,
                                                   mca_pml_umrddt_side_t side,
                                                   opal_umrddt_gpu_where_t *where)
{
    static int reported = 0;
    mca_pml_umrddt_pattern_t pattern = mca_pml_umrddt_pattern(comm);
    mca_pml_umrddt_memory_t truth, asserted;

    if (MCA_PML_UMRDDT_PATTERN_NONE == pattern) {
        return query(buf, count, datatype, where);
    }
    asserted = patterns[pattern].memory[side];
    if (OPAL_LIKELY(!mca_pml_umrddt_checks_pattern())) {
        if (MCA_PML_UMRDDT_MEMORY_GPU == asserted && NULL != mca_pml_umrddt.gpu) {
            return query(buf, count, datatype, where);
        }
        memset(where, 0, sizeof(*where));
        return asserted;
    }
    truth = query(buf, count, datatype, where);
    if (truth != asserted && first_time(&reported)) {
        opal_show_help("help-mca-pml-umrddt.txt", "pattern-false", true, patterns[pattern].value,
                       MCA_PML_UMRDDT_SENDER == side ? "send" : "receive", name_of(truth),
                       name_of(asserted));
    }
    return truth;
}
