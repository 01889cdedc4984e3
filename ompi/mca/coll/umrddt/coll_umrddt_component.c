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
 * The component: parameters, performance variables, and selection. It requires pml/umrddt, which
 * transfers GPU memory between processes. Whether pml/umrddt serves this job is seen from its
 * parameters, since those of an unused PML are deregistered.
 */

#include "ompi_config.h"

#include <dlfcn.h>
#include <string.h>

#include "opal/mca/base/mca_base_pvar.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/util/argv.h"

#include "ompi/mca/pml/base/base.h"
#include "ompi/mca/pml/pml.h"

#include "coll_umrddt_layout.h"
#include "coll_umrddt_module.h"
#include "coll_umrddt_reduce.h"
#include "coll_umrddt_request.h"
#include "coll_umrddt_stage.h"
#include "umrddt_collectives.h"
#include "umrddt_help.h"
#include "umrddt_params.h"

mca_coll_umrddt_base_t mca_coll_umrddt_base = MCA_COLL_UMRDDT_BASE_NONE;
mca_coll_umrddt_params_t mca_coll_umrddt_params;
mca_coll_umrddt_counters_t mca_coll_umrddt_counters;

/** Increase with each change of the calls that are counted, of the schedule, or of messages. */
#define AGREEMENT_VERSION 8

/** open was called, and close was not. */
static bool opened = false;

/** Loaded by an Open MPI of another release. */
static bool wrong_release = false;

/* ---------------------------------------------------------------------------------------------
 * Parameters and performance variables
 * ------------------------------------------------------------------------------------------- */

#define VAR_INT  MCA_BASE_VAR_TYPE_INT
#define VAR_BOOL MCA_BASE_VAR_TYPE_BOOL
#define VAR_UINT MCA_BASE_VAR_TYPE_UNSIGNED_INT
#define VAR_SIZE MCA_BASE_VAR_TYPE_SIZE_T

/** Register one parameter. @param[in,out] place  the default; then the value in use */
static void add(const char *name, mca_base_var_type_t type, int level, const char *help,
                void *place)
{
    umrddt_params_register(&mca_coll_umrddt_component.collm_version, name, help, type, NULL,
                           (mca_base_var_info_lvl_t) (OPAL_INFO_LVL_1 + level - 1), place);
}

#define ADD(type, name, level, initial, least, most, help) \
    mca_coll_umrddt_params.name = initial;                 \
    add(#name, VAR_##type, level, help, &mca_coll_umrddt_params.name);

static bool registered; /* before */

/** @return the nearest allowed value, after one message to the user if it is another one */
static uint64_t nearest(const char *name, uint64_t value, uint64_t least, uint64_t most)
{
    if (least <= value && value <= most) {
        return value;
    }
    if (!registered) {
        umrddt_show_help("help-mca-coll-umrddt.txt", "parameter-range", true, name,
                         (unsigned long) value, (unsigned long) least, (unsigned long) most);
    }
    return value < least ? least : most;
}

#define LIMIT(type, name, level, initial, least, most, help) LIMIT_##type(name, least, most)
#define LIMIT_INT(name, least, most)
#define LIMIT_BOOL(name, least, most)
#define LIMIT_UINT(name, least, most) \
    mca_coll_umrddt_params.name =     \
        (unsigned) nearest(#name, mca_coll_umrddt_params.name, least, most);
#define LIMIT_SIZE(name, least, most) \
    mca_coll_umrddt_params.name = nearest(#name, mca_coll_umrddt_params.name, least, most);

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
    mca_coll_umrddt_layouts_count();
    *(unsigned long long *) value = __atomic_load_n(counter, __ATOMIC_RELAXED);
    return OPAL_SUCCESS;
}

static int component_register(void)
{
    const char *built_for;

    umrddt_help_find();
    if (!umrddt_right_release(&built_for)) {
        wrong_release = true; /* pml/umrddt reports it */
        return OPAL_ERR_NOT_AVAILABLE;
    }
    MCA_COLL_UMRDDT_PARAMS(ADD)
    MCA_COLL_UMRDDT_PARAMS(LIMIT)
    registered = true;
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

/**
 * The number that pml/umrddt publishes in the modex, before component_init: equal in processes with
 * the same schedule of agreements. 0: this process takes no part in them.
 */
static uint16_t mode(void)
{
    const mca_coll_umrddt_params_t *params = &mca_coll_umrddt_params;
    uint64_t sum = AGREEMENT_VERSION;

    if (!params->direct || 0 > params->priority) {
        return 0;
    }
    sum = sum * 0x9e3779b97f4a7c15u + (uint64_t) params->priority;
    sum = sum * 0x9e3779b97f4a7c15u + params->direct_min;
    sum = sum * 0x9e3779b97f4a7c15u + params->direct_messages;
    sum = sum * 0x9e3779b97f4a7c15u + params->segment;
    sum *= 0x9e3779b97f4a7c15u;
    return (uint16_t) (sum >> 48 | 1);
}

static int component_open(void)
{
    opal_umrddt_collectives.mode = mode();
    if (!opened) {
        mca_coll_umrddt_agree_open();
        mca_coll_umrddt_requests_open();
        mca_coll_umrddt_stages_open();
        opened = true;
    }
    return OMPI_SUCCESS;
}

static int component_close(void)
{
    /* mode_of needs the peers of this session; pml/umrddt sets it again in the next one */
    opal_umrddt_collectives = (opal_umrddt_collectives_t){.mode = 0};
    if (opened) {
        opened = false;
        mca_coll_umrddt_requests_close();
        mca_coll_umrddt_agree_close();
        mca_coll_umrddt_reductions_close();
        mca_coll_umrddt_stages_close();
    }
    return OMPI_SUCCESS;
}

/** Once for each process: check whether pml/umrddt can be in use. If not, the component is
 * unloaded. */
static int component_init(bool enable_progress_threads, bool enable_mpi_threads)
{
    const char *selection = ompi_pml_base_framework.framework_selection;
    const opal_umrddt_gpu_driver_t *driver;
    char **names;
    bool found = false;

    (void) enable_progress_threads;
    (void) enable_mpi_threads;
    if (wrong_release || 0 > mca_coll_umrddt_params.priority || NULL == selection
        || '^' == selection[0]) {
        return OMPI_ERR_NOT_AVAILABLE;
    }
    names = opal_argv_split(selection, ',');
    for (int i = 0; NULL != names && NULL != names[i]; ++i) {
        found = found || 0 == strcmp(names[i], "umrddt");
    }
    opal_argv_free(names);
    /* only loads the library, as pml/umrddt has done before */
    return found && OPAL_SUCCESS == opal_umrddt_gpu_driver_load(&driver) ? OMPI_SUCCESS
                                                                         : OMPI_ERR_NOT_AVAILABLE;
}

/** Returns true if the base PML is pml/ucx: pml/umrddt does not replace this function of the PML.
 */
static bool base_is_ucx(void)
{
    Dl_info info;

    return 0 != dladdr((void *) (uintptr_t) mca_pml.pml_add_procs, &info)
           && ((NULL != info.dli_fname && NULL != strstr(info.dli_fname, "mca_pml_ucx"))
               || (NULL != info.dli_sname && NULL != strstr(info.dli_sname, "mca_pml_ucx")));
}

/* Values of pml_umrddt_base_gpu, as pml/umrddt numbers them. */
#define HOST_GPU_AUTO 0
#define HOST_GPU_YES  1

static mca_coll_base_module_t *component_query(ompi_communicator_t *comm, int *priority)
{
    const int base_gpu = mca_base_var_find("ompi", "pml", "umrddt", "base_gpu");
    const int *value = NULL;

    (void) comm;
    *priority = mca_coll_umrddt_params.priority;
    if (0 > base_gpu || OPAL_SUCCESS != mca_base_var_get_value(base_gpu, &value, NULL, NULL)
        || NULL == value || (HOST_GPU_YES == *value && umrddt_knows_cuda())) {
        return NULL;
    }
    if (!umrddt_knows_cuda()) {
        mca_coll_umrddt_base = MCA_COLL_UMRDDT_BASE_NONE;
    } else {
        mca_coll_umrddt_base =
            HOST_GPU_AUTO == *value && (!base_is_ucx() || opal_umrddt_gpu_ucx_aware())
                ? MCA_COLL_UMRDDT_BASE_SAFE
                : MCA_COLL_UMRDDT_BASE_NOTHING;
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
UMRDDT_COMPONENT_INIT(ompi, coll, umrddt)
