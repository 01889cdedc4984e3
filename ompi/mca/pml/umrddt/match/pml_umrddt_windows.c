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
 * One-sided communication on GPU memory, for an Open MPI without CUDA: raises an MPI error. Open
 * MPI's osc components access all memory with the CPU, which crashes, or by a kernel copy, which
 * they retry forever.
 */

/*
 * The osc framework has its list of components when the PML is enabled. This file replaces their
 * osc_select functions. Creating a window over GPU memory fails on all of its processes. In the
 * modules of other windows, calls with a buffer are replaced by functions that check it.
 */

#include "ompi_config.h"

#include <string.h>

#include "ompi/communicator/communicator.h"
#include "ompi/mca/osc/base/base.h"
#include "ompi/mca/osc/osc.h"
#include "ompi/win/win.h"
#include "opal/mca/base/base.h"

#include "ompi/mca/pml/umrddt/pml_umrddt.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"
#include "ompi/mca/pml/umrddt/match/pml_umrddt_match.h"
#include "umrddt_help.h"

/** Maximum number of components and of modules that are replaced; others are left unchanged. */
#define MOST 8

static ompi_osc_base_component_t *components[MOST];
static ompi_osc_base_component_select_fn_t selects[MOST];
static int component_count;
static bool monitored; /* osc/monitoring wraps other modules: leave those unchanged */

/** The modules' original functions, found by osc_free, which is not replaced. Append only. */
static ompi_osc_base_module_t modules[MOST];
static int module_count;
static opal_mutex_t lock = OPAL_MUTEX_STATIC_INIT;

/** Returns true if the CPU cannot access a buffer. */
static bool is_gpu(const void *buffer, size_t count, ompi_datatype_t *datatype)
{
    opal_umrddt_gpu_where_t where;

    if (MCA_PML_UMRDDT_BASE_GPU_ALL == mca_pml_umrddt.base_gpu || 0 == count) {
        return false;
    }
    mca_pml_umrddt_look(buffer, count, datatype, &where);
    return opal_umrddt_gpu_on_device(&where);
}

static int refuse(const char *call, const char *what)
{
    opal_show_help("help-mca-pml-umrddt.txt", "window-memory", true, call, what,
                   mca_pml_umrddt.host_component.pmlm_version.mca_component_name);
    return MPI_ERR_UNSUPPORTED_OPERATION; /* osc/base passes on error codes that are not its own */
}

/* ---------------------------------------------------------------------------------------------
 * Calls of a window
 * ------------------------------------------------------------------------------------------- */

static const ompi_osc_base_module_t *module_of(const ompi_osc_base_module_t *module)
{
    const int count = __atomic_load_n(&module_count, __ATOMIC_ACQUIRE);

    for (int i = 0; i < count; ++i) {
        if (module->osc_free == modules[i].osc_free) {
            return &modules[i];
        }
    }
    return NULL;
}

/* A replacement that checks its buffers, and calls the original function. */
#define CALL(NAME, TITLE, LOOK, PARAMETERS, ...)                      \
    static int checked_##NAME PARAMETERS                              \
    {                                                                 \
        if (OPAL_UNLIKELY(LOOK)) {                                    \
            return refuse("MPI_" TITLE, "a buffer");                  \
        }                                                             \
        return module_of(win->w_osc_module)->osc_##NAME(__VA_ARGS__); \
    }

#define ORIGIN origin, origin_count, origin_type
#define RESULT result, result_count, result_type
#define TARGET target, displacement, target_count, target_type
#define ORIGIN_PARAMETERS(CONST) \
    CONST void *origin, umrddt_count_t origin_count, ompi_datatype_t *origin_type
#define RESULT_PARAMETERS void *result, umrddt_count_t result_count, ompi_datatype_t *result_type
#define TARGET_PARAMETERS \
    int target, ptrdiff_t displacement, umrddt_count_t target_count, ompi_datatype_t *target_type
#define IS_GPU(BUFFER) is_gpu(BUFFER, BUFFER##_count, BUFFER##_type)

CALL(put, "Put", IS_GPU(origin), (ORIGIN_PARAMETERS(const), TARGET_PARAMETERS, ompi_win_t *win),
     ORIGIN, TARGET, win)
CALL(get, "Get", IS_GPU(origin), (ORIGIN_PARAMETERS(), TARGET_PARAMETERS, ompi_win_t *win), ORIGIN,
     TARGET, win)
CALL(accumulate, "Accumulate", IS_GPU(origin),
     (ORIGIN_PARAMETERS(const), TARGET_PARAMETERS, struct ompi_op_t *op, ompi_win_t *win), ORIGIN,
     TARGET, op, win)
CALL(get_accumulate, "Get_accumulate", IS_GPU(origin) || IS_GPU(result),
     (ORIGIN_PARAMETERS(const), RESULT_PARAMETERS, TARGET_PARAMETERS, struct ompi_op_t *op,
      ompi_win_t *win),
     ORIGIN, RESULT, TARGET, op, win)
CALL(rput, "Rput", IS_GPU(origin),
     (ORIGIN_PARAMETERS(const), TARGET_PARAMETERS, ompi_win_t *win, ompi_request_t **request),
     ORIGIN, TARGET, win, request)
CALL(rget, "Rget", IS_GPU(origin),
     (ORIGIN_PARAMETERS(), TARGET_PARAMETERS, ompi_win_t *win, ompi_request_t **request), ORIGIN,
     TARGET, win, request)
CALL(raccumulate, "Raccumulate", IS_GPU(origin),
     (ORIGIN_PARAMETERS(const), TARGET_PARAMETERS, struct ompi_op_t *op, ompi_win_t *win,
      ompi_request_t **request),
     ORIGIN, TARGET, op, win, request)
CALL(rget_accumulate, "Rget_accumulate", IS_GPU(origin) || IS_GPU(result),
     (ORIGIN_PARAMETERS(const), RESULT_PARAMETERS, TARGET_PARAMETERS, struct ompi_op_t *op,
      ompi_win_t *win, ompi_request_t **request),
     ORIGIN, RESULT, TARGET, op, win, request)
CALL(fetch_and_op, "Fetch_and_op", is_gpu(origin, NULL != origin, type) || is_gpu(result, 1, type),
     (const void *origin, void *result, ompi_datatype_t *type, int target, ptrdiff_t displacement,
      struct ompi_op_t *op, ompi_win_t *win),
     origin, result, type, target, displacement, op, win)
CALL(compare_and_swap, "Compare_and_swap",
     is_gpu(origin, 1, type) || is_gpu(compare, 1, type) || is_gpu(result, 1, type),
     (const void *origin, const void *compare, void *result, ompi_datatype_t *type, int target,
      ptrdiff_t displacement, ompi_win_t *win),
     origin, compare, result, type, target, displacement, win)
CALL(win_attach, "Win_attach", is_gpu(base, size, MPI_BYTE),
     (ompi_win_t * win, void *base, size_t size), win, base, size)

/** The functions that are replaced. */
#define CALLS(X)        \
    X(put)              \
    X(get)              \
    X(accumulate)       \
    X(get_accumulate)   \
    X(rput)             \
    X(rget)             \
    X(raccumulate)      \
    X(rget_accumulate)  \
    X(fetch_and_op)     \
    X(compare_and_swap) \
    X(win_attach)

static void look_after(ompi_osc_base_module_t *module)
{
    opal_mutex_lock(&lock);
    if (NULL == module_of(module) && MOST > module_count) {
        modules[module_count] = *module;
        __atomic_store_n(&module_count, module_count + 1, __ATOMIC_RELEASE);
    }
    if (NULL != module_of(module) && module->osc_put == module_of(module)->osc_put) {
#define REPLACE(NAME)                        \
    if (NULL != module->osc_##NAME) {        \
        module->osc_##NAME = checked_##NAME; \
    }
        CALLS(REPLACE)
#undef REPLACE
    }
    opal_mutex_unlock(&lock);
}

/* ---------------------------------------------------------------------------------------------
 * Windows
 * ------------------------------------------------------------------------------------------- */

/* All processes of a window learn that one of them has GPU memory; else they would wait for it. */
static int select_in(int which, ompi_win_t *win, void **base, size_t size, umrddt_unit_t unit,
                     ompi_communicator_t *comm, opal_info_t *info, int flavor, int *model)
{
    int mine = MPI_WIN_FLAVOR_CREATE == flavor && is_gpu(*base, size, MPI_BYTE), any = mine, rc;

    if (MPI_WIN_FLAVOR_CREATE == flavor) {
        rc = comm->c_coll->coll_allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, comm,
                                          comm->c_coll->coll_allreduce_module);
        if (OMPI_SUCCESS != rc) {
            return rc;
        }
    }
    if (0 != mine) {
        return refuse("MPI_Win_create", "a window");
    }
    if (0 != any) {
        return MPI_ERR_UNSUPPORTED_OPERATION;
    }
    rc = selects[which](win, base, size, unit, comm, info, flavor, model);
    if (OMPI_SUCCESS == rc && !monitored) {
        look_after(win->w_osc_module);
    }
    return rc;
}

#define SELECT(N)                                                                               \
    static int select_##N(ompi_win_t *win, void **base, size_t size, umrddt_unit_t unit,        \
                          ompi_communicator_t *comm, opal_info_t *info, int flavor, int *model) \
    {                                                                                           \
        return select_in(N, win, base, size, unit, comm, info, flavor, model);                  \
    }
SELECT(0)
SELECT(1)
SELECT(2)
SELECT(3)
SELECT(4)
SELECT(5)
SELECT(6)
SELECT(7)

void mca_pml_umrddt_windows_open(void)
{
    static const ompi_osc_base_component_select_fn_t ours[MOST] = {
        select_0, select_1, select_2, select_3, select_4, select_5, select_6, select_7,
    };
    mca_base_component_list_item_t *item;

    if (umrddt_knows_cuda() || 0 < component_count) {
        return;
    }
    monitored = false;
    OPAL_LIST_FOREACH (item, &ompi_osc_base_framework.framework_components,
                       mca_base_component_list_item_t) {
        ompi_osc_base_component_t *component =
            (ompi_osc_base_component_t *) (uintptr_t) item->cli_component;

        if (0 == strcmp(item->cli_component->mca_component_name, "monitoring")) {
            monitored = true;
        } else if (MOST > component_count) {
            components[component_count] = component;
            selects[component_count] = component->osc_select;
            component->osc_select = ours[component_count];
            ++component_count;
        }
    }
}

void mca_pml_umrddt_windows_close(void)
{
    while (0 < component_count) {
        --component_count;
        components[component_count]->osc_select = selects[component_count];
    }
}
