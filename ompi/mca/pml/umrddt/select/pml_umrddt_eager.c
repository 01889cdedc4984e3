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
 * Reads the eager limit of the base PML for the performance model (opal/mca/common/umrddt_select).
 */

#include "ompi_config.h"

#include <string.h>

#include "opal/mca/base/base.h"
#include "opal/mca/base/mca_base_var.h"

#include "ompi/mca/pml/umrddt/select/pml_umrddt_select.h"

/** Read the eager limit of a BTL. @return false: the BTL is not open */
static bool read_limit(const char *btl, size_t *limit)
{
    const int index = mca_base_var_find("opal", "btl", btl, "eager_limit");
    const void *value = NULL;

    if (0 > index || OPAL_SUCCESS != mca_base_var_get_value(index, &value, NULL, NULL)
        || NULL == value) {
        return false;
    }
    *limit = *(const size_t *) value;
    return true;
}

void mca_pml_umrddt_eager_open(void)
{
    const char *const base = mca_pml_umrddt.host_component.pmlm_version.mca_component_name;
    size_t *near = &mca_pml_umrddt.eager[true];

    mca_pml_umrddt.eager[false] = *near = OPAL_UMRDDT_SELECT_EAGER;
    /* Other PMLs have no readable limit. Shared memory is btl/vader in 4.1, btl/sm in 5.0. The BTL
     * to remote nodes is unknown before the first message. */
    if (0 == strcmp("ob1", base) && !read_limit("vader", near)) {
        (void) read_limit("sm", near);
    }
}
