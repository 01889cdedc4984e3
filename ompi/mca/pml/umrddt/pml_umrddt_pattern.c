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
 * Whose memory a buffer is, and the info key that spares the question.
 *
 * The key mpi_communication_pattern, MPI_X_TO_Y, asserts that on this communicator senders' buffers
 * are in X's memory and receivers' in Y's. It is a communicator's own or its Session's, which has
 * it before the communicator is used but not yet when it is made; so it is read at the first
 * message that asks.
 */

#include "ompi_config.h"

#include <string.h>

#include "opal/util/show_help.h"

#include "pml_umrddt.h"

#define KEY "mpi_communication_pattern"

/** Under this name Open MPI 4.1 keeps what MPI_Comm_set_info was given and nobody subscribed to. */
#if defined(OPAL_INFO_SAVE_PREFIX)
#define KEY_SET OPAL_INFO_SAVE_PREFIX KEY
#else
#define KEY_SET KEY
#endif

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
};
#define PATTERN_COUNT (sizeof(patterns) / sizeof(patterns[0]))

/** True the first time that any thread asks. */
static bool first_time(int *once)
{
    return 0 == __atomic_exchange_n(once, 1, __ATOMIC_RELAXED);
}

/** What an info object says. @return MCA_PML_UMRDDT_PATTERN_NONE: nothing, or nothing that is known
 */
static mca_pml_umrddt_pattern_t look_up(opal_info_t *info, const char *of)
{
    static int warned = 0;
    char value[64] = "";

    if (NULL == info
        || (!umrddt_info_get(info, KEY, value, sizeof(value))
            && !umrddt_info_get(info, KEY_SET, value, sizeof(value)))) {
        return MCA_PML_UMRDDT_PATTERN_NONE;
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
    /* threads that read it at the same time find the same */
    __atomic_store_n(&comm->pattern, (int) pattern, __ATOMIC_RELAXED);
    return pattern;
}

/** The names of users, not of the parameter. */
static const char *name_of(mca_pml_umrddt_memory_t memory)
{
    return MCA_PML_UMRDDT_MEMORY_GPU == memory ? "GPU" : "system";
}

/** Ask whose memory this is. */
static mca_pml_umrddt_memory_t query(const void *buf, size_t count, ompi_datatype_t *datatype,
                                     mca_pml_umrddt_where_t *where)
{
    MCA_PML_UMRDDT_COUNT(memory_queries);
    mca_pml_umrddt_look(buf, count, datatype, where);
    return mca_pml_umrddt_on_gpu(where) ? MCA_PML_UMRDDT_MEMORY_GPU : MCA_PML_UMRDDT_MEMORY_SYSTEM;
}

mca_pml_umrddt_memory_t mca_pml_umrddt_memory_find(mca_pml_umrddt_comm_t *comm, const void *buf,
                                                   size_t count, ompi_datatype_t *datatype,
                                                   mca_pml_umrddt_side_t side,
                                                   mca_pml_umrddt_where_t *where)
{
    static int told = 0;
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
    if (truth != asserted && first_time(&told)) {
        opal_show_help("help-mca-pml-umrddt.txt", "pattern-false", true, patterns[pattern].value,
                       MCA_PML_UMRDDT_SENDER == side ? "send" : "receive", name_of(truth),
                       name_of(asserted));
    }
    return truth;
}
