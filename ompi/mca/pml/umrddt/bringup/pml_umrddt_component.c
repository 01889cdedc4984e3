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
 * The component: how umrddt interposes on another PML. Read pml_umrddt_interpose.c next.
 *
 * `--mca pml umrddt` makes the pml framework open only this component. So open() opens the
 * candidates for the base PML and adds them to the framework's list. init() declines, and the
 * framework selects the best candidate. The modex gets its name, so that ob1's check succeeds. The
 * framework calls close() on unselected components. There umrddt interposes, before the modex.
 *
 * Two other designs fail. If umrddt is selected, ob1 refuses peers whose PML has another name.
 * Editing the selection in register is too late.
 */

#include "ompi_config.h"

#include "opal/mca/base/mca_base_component_repository.h"
#include "opal/util/output.h"

#include "ompi/mca/pml/base/base.h"

#include "ompi/mca/pml/umrddt/bringup/pml_umrddt_bringup.h"
#include "umrddt_help.h"

mca_pml_umrddt_t mca_pml_umrddt;

/** open() found that the user requests umrddt, and the candidates are in the framework's list. */
static bool wanted = false;

static int component_register(void)
{
    const char *built_for;

    umrddt_help_find();
    if (!umrddt_right_release(&built_for)) {
        /* Not show_help: mpirun 4.1.4 loses such texts if Open MPI prints its own error next. */
        opal_output(
            0,
            "pml:umrddt: this build is for Open MPI %s, and the one that is running is %s. umrddt "
            "stays out of this job. Build it for this Open MPI (./configure "
            "--with-ompi=DIR), or take its components out of the component path.",
            built_for, opal_version_string);
        return OPAL_ERR_NOT_AVAILABLE;
    }
    mca_pml_umrddt_params_register();
    mca_pml_umrddt_pvars_register();
    return OMPI_SUCCESS;
}

static int component_open(void)
{
    wanted = false;
    if (!mca_pml_umrddt_requested()) {
        return OMPI_SUCCESS;
    }
    if (OMPI_SUCCESS == mca_pml_umrddt_base_open()) {
        wanted = true;
    }
    return OMPI_SUCCESS;
}

static mca_pml_base_module_t *component_init(int *priority, bool enable_progress_threads,
                                             bool enable_mpi_threads)
{
    (void) enable_progress_threads;
    (void) enable_mpi_threads;
    *priority = 0;
    return NULL;
}

static int component_close(void)
{
    mca_base_component_t *self = &mca_pml_umrddt_component.pmlm_version;
    int rc;

    if (!wanted || mca_pml_umrddt.interposed || NULL == mca_pml.pml_enable) {
        /* umrddt is not requested, close is called twice, or no PML is selected (ompi_info) */
        return OMPI_SUCCESS;
    }
    wanted = false;

    /* The framework unloads the component after this call, so retain the code. A component inside
     * libmpi is not in the repository and is never unloaded. */
    rc = mca_base_component_repository_retain_component(self->mca_type_name,
                                                        self->mca_component_name);
    if (OPAL_SUCCESS != rc && OPAL_ERR_NOT_FOUND != rc && OPAL_ERR_NOT_SUPPORTED != rc) {
        opal_output(0, "pml:umrddt: cannot stay loaded; messages go by %s alone",
                    mca_pml_base_selected_component.pmlm_version.mca_component_name);
        return OMPI_SUCCESS;
    }
    mca_pml_umrddt_interpose();
    return OMPI_SUCCESS;
}

mca_pml_base_component_t mca_pml_umrddt_component = {
    .pmlm_version =
        {
            UMRDDT_PML_BASE_VERSION,
            .mca_component_name = "umrddt",
            MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION,
                                  OMPI_RELEASE_VERSION),
            .mca_open_component = component_open,
            .mca_close_component = component_close,
            .mca_register_component_params = component_register,
        },
    .pmlm_data = {MCA_BASE_METADATA_PARAM_NONE},
    .pmlm_init = component_init,
    .pmlm_finalize = mca_pml_umrddt_finalize,
};
UMRDDT_COMPONENT_INIT(ompi, pml, umrddt)
