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
 * Modules, which replace the functions of one communicator and call the saved ones. See
 * coll_umrddt.h first.
 */

#include "ompi_config.h"

#include <limits.h>
#include <string.h>

#include "coll_umrddt_layout.h"
#include "coll_umrddt_messages.h"
#include "coll_umrddt_module.h"

/** Each form of each collective. */
#define FORMS(X, name) X(name) X(i##name) X(name##_init)

static void module_construct(mca_coll_umrddt_module_t *module)
{
    memset(&module->saved, 0, sizeof(module->saved));
    module->enabled = false;
    module->near = INT_MAX;
    module->queries = -1;
    module->agrees = MCA_COLL_UMRDDT_UNKNOWN;
    module->direct = NULL;
    module->persistent = 0;
    module->sequence = 0;
    memset(module->served, 0, sizeof(module->served));
    for (int i = 0; i < MCA_COLL_UMRDDT_KINDS; ++i) {
        module->schedules[i] = (mca_coll_umrddt_schedule_t){.left = 1, .period = 1};
    }
    mca_coll_umrddt_layouts_use();
}

/* From 6.0 on a module puts its functions into the communicator, and takes them back, by itself. */
#if UMRDDT_OPAL_RELEASE >= 600
#define INSTALL(name, function, by)         \
    comm->c_coll->coll_##name = (function); \
    comm->c_coll->coll_##name##_module = (by);
#else
#define INSTALL(name, function, by)
#endif

/** Save and replace a function, if there is one. */
#define TAKE(name)                                                                         \
    if (NULL != module->saved.coll_##name && NULL != module->saved.coll_##name##_module) { \
        OBJ_RETAIN(module->saved.coll_##name##_module);                                    \
        module->super.coll_##name = mca_coll_umrddt_##name;                                \
        INSTALL(name, mca_coll_umrddt_##name, base)                                        \
    } else {                                                                               \
        module->saved.coll_##name = NULL;                                                  \
    }
#define TAKE_FORMS(name) FORMS(TAKE, name)

#define LEAVE(name)                                      \
    if (NULL != module->saved.coll_##name) {             \
        OBJ_RELEASE(module->saved.coll_##name##_module); \
    }
#define LEAVE_FORMS(name) FORMS(LEAVE, name)

static int module_enable(mca_coll_base_module_t *base, ompi_communicator_t *comm)
{
    mca_coll_umrddt_module_t *module = (mca_coll_umrddt_module_t *) base;

    /* modules enabled before have a lower priority; later ones replace our functions */
    module->saved = *comm->c_coll;
    if (OMPI_COMM_IS_INTRA(comm) && MCA_COLL_UMRDDT_NEAR_BCAST >= ompi_comm_size(comm)
        && !ompi_group_have_remote_peers(comm->c_local_group)) {
        module->near = ompi_comm_size(comm);
    }
    MCA_COLL_UMRDDT_CALLS(TAKE_FORMS)
    TAKE(reduce_local)
    module->enabled = true;
    return OMPI_SUCCESS;
}

#if UMRDDT_OPAL_RELEASE >= 600
#define RESTORE(name)                                                                \
    if (base == comm->c_coll->coll_##name##_module) {                                \
        INSTALL(name, module->saved.coll_##name, module->saved.coll_##name##_module) \
    }
#define RESTORE_FORMS(name) FORMS(RESTORE, name)

static int module_disable(mca_coll_base_module_t *base, ompi_communicator_t *comm)
{
    mca_coll_umrddt_module_t *module = (mca_coll_umrddt_module_t *) base;

    MCA_COLL_UMRDDT_CALLS(RESTORE_FORMS)
    RESTORE(reduce_local)
    return OMPI_SUCCESS;
}
#endif

static void module_destruct(mca_coll_umrddt_module_t *module)
{
    mca_coll_umrddt_layouts_unuse();
    mca_coll_umrddt_messages_free(module->direct);
    if (!module->enabled) {
        return;
    }
    MCA_COLL_UMRDDT_CALLS(LEAVE_FORMS)
    LEAVE(reduce_local)
}

OBJ_CLASS_INSTANCE(mca_coll_umrddt_module_t, mca_coll_base_module_t, module_construct,
                   module_destruct);

mca_coll_base_module_t *mca_coll_umrddt_module_new(void)
{
    mca_coll_umrddt_module_t *module = OBJ_NEW(mca_coll_umrddt_module_t);

    if (NULL == module) {
        return NULL;
    }
    module->super.coll_module_enable = module_enable;
#if UMRDDT_OPAL_RELEASE >= 600
    module->super.coll_module_disable = module_disable;
#endif
    return &module->super;
}

bool mca_coll_umrddt_module_read(mca_coll_umrddt_module_t *module, ompi_communicator_t *comm)
{
    static const char key[] = "mpi_communication_pattern";
    char value[64] = "";
    bool known = NULL != comm->super.s_info
                 && umrddt_info_get(comm->super.s_info, key, value, sizeof(value));
    bool queries;

#if defined(OPAL_INFO_SAVE_PREFIX)
    /* Open MPI 4.1 stores here the keys of MPI_Comm_set_info without a subscriber */
    if (!known && NULL != comm->super.s_info) {
        known =
            umrddt_info_get(comm->super.s_info, OPAL_INFO_SAVE_PREFIX "mpi_communication_pattern",
                            value, sizeof(value));
    }
#endif
#if UMRDDT_OPAL_RELEASE >= 500
    if (!known && NULL != comm->instance && NULL != comm->instance->super.s_info) {
        known = umrddt_info_get(comm->instance->super.s_info, key, value, sizeof(value));
    }
#endif
    queries = !known || 0 != strcmp(value, "MPI_CPU_TO_CPU");
    __atomic_store_n(&module->queries, queries ? 1 : 0, __ATOMIC_RELAXED);
    return queries;
}
