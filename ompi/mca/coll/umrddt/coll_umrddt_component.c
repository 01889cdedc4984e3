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
 * The component: parameters, performance variables, and on which communicators it stands in front.
 *
 * It is of use with pml/umrddt only, which carries GPU memory between processes; and where Open MPI
 * itself was not made to know GPU memory, else its own collectives do. Whether pml/umrddt serves
 * this job is seen from one of its parameters: those of a PML that is not in use are not there.
 */

#include "ompi_config.h"

#include <string.h>

#include "opal/mca/base/mca_base_pvar.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/util/argv.h"

#include "ompi/mca/pml/base/base.h"

#include "coll_umrddt.h"
#include "umrddt_help.h"
#include "umrddt_params.h"

mca_coll_umrddt_params_t mca_coll_umrddt_params;
mca_coll_umrddt_counters_t mca_coll_umrddt_counters;

/** open was called and close was not. */
static bool opened = false;

/** Another release's Open MPI has loaded us. */
static bool wrong_release = false;

/* ---------------------------------------------------------------------------------------------
 * Parameters and performance variables
 * ------------------------------------------------------------------------------------------- */

#define PRIORITY 95
#define PINNED   (64u << 20)
#define CHUNK    (1u << 20)

static void register_one(const char *name, const char *help, mca_base_var_type_t type,
                         mca_base_var_info_lvl_t level, void *storage)
{
    umrddt_params_register(&mca_coll_umrddt_component.collm_version, name, help, type, NULL, level,
                           storage);
}

typedef struct pvar_t {
    const char *name;
    const char *help;
    size_t offset;
} pvar_t;

#define PVAR(name, help) {#name, help, offsetof(mca_coll_umrddt_counters_t, name)},
static const pvar_t pvars[] = {MCA_COLL_UMRDDT_COUNTERS(PVAR)};

static int pvar_get(const struct mca_base_pvar_t *pvar, void *value, void *object)
{
    const pvar_t *which = pvar->ctx;
    const uint64_t *counter =
        (const uint64_t *) ((const char *) &mca_coll_umrddt_counters + which->offset);

    (void) object;
    *(unsigned long long *) value = __atomic_load_n(counter, __ATOMIC_RELAXED);
    return OPAL_SUCCESS;
}

static int component_register(void)
{
    mca_coll_umrddt_params_t *params = &mca_coll_umrddt_params;
    const char *built_for;

    umrddt_help_find();
    if (!umrddt_right_release(&built_for)) {
        wrong_release = true; /* pml/umrddt says so */
        return OPAL_ERR_NOT_AVAILABLE;
    }
    params->priority = PRIORITY;
    register_one("priority",
                 "Place of the component before others, which do the work behind it: higher than "
                 "theirs. Negative: not used, and collectives on GPU memory fail",
                 MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_6, &params->priority);
    params->pinned = PINNED;
    register_one("pinned",
                 "Bytes of pinned host memory, at most, for collectives on GPU memory; larger ones "
                 "use pageable memory, which is slower",
                 MCA_BASE_VAR_TYPE_SIZE_T, OPAL_INFO_LVL_5, &params->pinned);
    params->chunk = CHUNK;
    register_one("chunk", "Bytes of a piece in which pageable memory is copied to and from GPUs",
                 MCA_BASE_VAR_TYPE_SIZE_T, OPAL_INFO_LVL_6, &params->chunk);
    umrddt_params_unknown("coll_umrddt_");
    for (size_t i = 0; i < sizeof(pvars) / sizeof(pvars[0]); ++i) {
        (void) mca_base_component_pvar_register(
            &mca_coll_umrddt_component.collm_version, pvars[i].name, pvars[i].help, OPAL_INFO_LVL_4,
            MCA_BASE_PVAR_CLASS_COUNTER, MCA_BASE_VAR_TYPE_UNSIGNED_LONG_LONG, NULL,
            MCA_BASE_VAR_BIND_NO_OBJECT,
            MCA_BASE_PVAR_FLAG_READONLY | MCA_BASE_PVAR_FLAG_CONTINUOUS, pvar_get, NULL, NULL,
            (void *) &pvars[i]);
    }
    return OMPI_SUCCESS;
}

/* ---------------------------------------------------------------------------------------------
 * Selection
 * ------------------------------------------------------------------------------------------- */

static int component_open(void)
{
    if (!opened) {
        mca_coll_umrddt_requests_open();
        opened = true;
    }
    return OMPI_SUCCESS;
}

static int component_close(void)
{
    if (opened) {
        opened = false;
        mca_coll_umrddt_requests_close();
        mca_coll_umrddt_stages_close();
    }
    return OMPI_SUCCESS;
}

/** Once for the process: can pml/umrddt be in use at all? If not, the component is unloaded. */
static int component_init(bool enable_progress_threads, bool enable_mpi_threads)
{
    const char *selection = ompi_pml_base_framework.framework_selection;
    const opal_umrddt_gpu_driver_t *driver;
    char **names;
    bool found = false;

    (void) enable_progress_threads;
    (void) enable_mpi_threads;
    if (wrong_release || 0 > mca_coll_umrddt_params.priority || umrddt_knows_cuda()
        || NULL == selection || '^' == selection[0]) {
        return OMPI_ERR_NOT_AVAILABLE;
    }
    names = opal_argv_split(selection, ',');
    for (int i = 0; NULL != names && NULL != names[i]; ++i) {
        found = found || 0 == strcmp(names[i], "umrddt");
    }
    opal_argv_free(names);
    /* loads the library, and calls nothing of it; pml/umrddt has done the same */
    return found && OPAL_SUCCESS == opal_umrddt_gpu_driver_load(&driver) ? OMPI_SUCCESS
                                                                         : OMPI_ERR_NOT_AVAILABLE;
}

static mca_coll_base_module_t *component_query(ompi_communicator_t *comm, int *priority)
{
    (void) comm;
    *priority = mca_coll_umrddt_params.priority;
    if (0 > mca_base_var_find("ompi", "pml", "umrddt", "host")) {
        return NULL;
    }
    return mca_coll_umrddt_module_new();
}

mca_coll_base_component_t mca_coll_umrddt_component = {
    .collm_version =
        {
            UMRDDT_COLL_BASE_VERSION,
            .mca_component_name = "umrddt",
            MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
                                  OMPI_RELEASE_VERSION),
            .mca_open_component = component_open,
            .mca_close_component = component_close,
            .mca_register_component_params = component_register,
        },
    .collm_data = {MCA_BASE_METADATA_PARAM_NONE},
    .collm_init_query = component_init,
    .collm_comm_query = component_query,
};
