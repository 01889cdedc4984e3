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
 * The component.
 */

#include "opal_config.h"

#include <stdlib.h>

#include "opal/mca/base/base.h"
#include "opal/mca/base/mca_base_component_repository.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_module.h"
#include "umrddt_help.h"

static int mca_btl_umr_component_register(void);
static int mca_btl_umr_component_open(void);
static int mca_btl_umr_component_close(void);
static mca_btl_base_module_t **
mca_btl_umr_component_init(int *num_btls, bool enable_progress_threads, bool enable_mpi_threads);

mca_btl_umr_component_t mca_btl_umr_component = {
    .super =
        {
            .btl_version =
                {
                    MCA_BTL_DEFAULT_VERSION("umr"),
                    .mca_open_component = mca_btl_umr_component_open,
                    .mca_close_component = mca_btl_umr_component_close,
                    .mca_register_component_params = mca_btl_umr_component_register,
                },
            .btl_data = {MCA_BASE_METADATA_PARAM_NONE},
            .btl_init = mca_btl_umr_component_init,
            .btl_progress = mca_btl_umr_module_progress, /* of the module, if there is one */
        },
    .api = MCA_BTL_UMR_HCA_API,
    .ops = &mca_btl_umr_hca_ops,
};
UMRDDT_COMPONENT_INIT(opal, btl, umr)

/*
 * Two frameworks may have the component open at the same time: the btl framework, and the copy of
 * the framework in which pml/umrddt looks for the HCA. Both share the same HCAs.
 */
static unsigned int mca_btl_umr_opened;

static int mca_btl_umr_component_register(void)
{
    const char *built_for;

    if (!umrddt_right_release(&built_for)) {
        return OPAL_ERR_NOT_AVAILABLE; /* pml/umrddt reports the reason */
    }

    if (0 < mca_btl_umr_opened) {
        /* Registered already, and perhaps in use. */
        return OPAL_SUCCESS;
    }
    umrddt_help_find();
    mca_btl_umr_params_register();

    return OPAL_SUCCESS;
}

static int mca_btl_umr_component_open(void)
{
    if (0 < mca_btl_umr_opened) {
        /* Open MPI's repository of components counts the first open only, and would unload the
         * component at the first close. */
        (void) mca_base_component_repository_retain_component(
            mca_btl_umr_component.super.btl_version.mca_type_name,
            mca_btl_umr_component.super.btl_version.mca_component_name);
        ++mca_btl_umr_opened;
        return OPAL_SUCCESS;
    }
    if (!mca_btl_umr_params_open()) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    mca_btl_umr_construct();
    mca_btl_umr_opened = 1;
    return OPAL_SUCCESS;
}

static int mca_btl_umr_component_close(void)
{
    if (0 == mca_btl_umr_opened || 0 < --mca_btl_umr_opened) {
        return OPAL_SUCCESS;
    }
    mca_btl_umr_destruct();
    mca_btl_umr_params_close();
    return OPAL_SUCCESS;
}

/**
 * The module if the parameter is set. Otherwise, or if it is not available, an empty array. NULL
 * would make the framework close the component that pml/umrddt may use later. No device is opened
 * here in that case.
 */
static mca_btl_base_module_t **
mca_btl_umr_component_init(int *num_btls, bool enable_progress_threads, bool enable_mpi_threads)
{
    mca_btl_base_module_t **modules = calloc(1, sizeof(*modules));

    (void) enable_progress_threads;
    (void) enable_mpi_threads;
    *num_btls = 0;
    if (NULL != modules && mca_btl_umr_params.rdma && OPAL_SUCCESS == mca_btl_umr_module_open()) {
        modules[0] = &mca_btl_umr_module.super;
        *num_btls = 1;
    }
    return modules;
}
