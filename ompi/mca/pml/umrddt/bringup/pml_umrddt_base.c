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
 * Opens the base PML. The framework has opened only umrddt. So this file opens the candidates
 * through a copy of the framework's structure with its own selection, and moves them to the
 * framework's list. pml_umrddt_component.c explains when this happens.
 */

#include "ompi_config.h"

#include <stdlib.h>
#include <string.h>

#include "opal/mca/base/base.h"
#include "opal/mca/base/mca_base_framework.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/util/argv.h"
#include "opal/util/output.h"

#include "ompi/mca/pml/base/base.h"

#include "ompi/mca/pml/umrddt/bringup/pml_umrddt_bringup.h"
#include "umrddt_help.h"

/** PMLs that have no transport of their own, or that interpose as umrddt does. */
#define NOT_A_HOST "^umrddt,v,monitoring,crcpw,example"

/**
 * Get the names in the pml selection; NULL if it is empty or excludes. Free with opal_argv_free.
 */
static char **selection(void)
{
    const char *names = ompi_pml_base_framework.framework_selection;

    if (NULL == names || '\0' == names[0] || '^' == names[0]) {
        return NULL;
    }
    return opal_argv_split(names, ',');
}

bool mca_pml_umrddt_requested(void)
{
    char **names = selection();
    bool found = false;

    for (int i = 0; NULL != names && NULL != names[i]; ++i) {
        found = found || 0 == strcmp(names[i], "umrddt");
    }
    opal_argv_free(names);
    return found;
}

/** Warn the user if pml/monitoring is enabled but not selected. */
static void report_of_monitoring(char **names)
{
    const int index = mca_base_var_find("ompi", "pml", "monitoring", "enable");
    const char *given = getenv("OMPI_MCA_pml_monitoring_enable");
    const int *value = NULL;

    for (int i = 0; NULL != names && NULL != names[i]; ++i) {
        if (0 == strcmp(names[i], "monitoring")) {
            return;
        }
    }
    /* If another component of the same library has registered it, parameter files count as well. */
    if (0 <= index && OPAL_SUCCESS == mca_base_var_get_value(index, &value, NULL, NULL)
            ? NULL != value && 0 != *value
            : NULL != given && 0 != atoi(given)) {
        opal_output_verbose(
            1, ompi_pml_base_framework.framework_output,
            "pml:umrddt: pml_monitoring_enable is set, but pml/monitoring is not selected: messages "
            "are not monitored. To have both, name all: --mca pml umrddt,monitoring,ob1");
    }
}

/** Add component @p name to those that mca_pml_base_select considers. */
static void let_select(const char *name)
{
    char *copy = strdup(name);

    if (NULL != copy) {
        opal_pointer_array_add(&mca_pml_base_pml, copy);
    }
}

int mca_pml_umrddt_base_open(void)
{
    const char *host = mca_pml_umrddt.params.base_pml;
    mca_base_component_list_item_t *item;
    mca_base_framework_t copy = ompi_pml_base_framework;
    char **names = selection();
    int candidates = 0;
    int rc;

    report_of_monitoring(names);
    if (1 < opal_argv_count(names)) {
        /* `umrddt,ob1`: the framework opens the other PMLs itself. A second open breaks them. */
        for (int i = 0; NULL != names[i]; ++i) {
            if (0 != strcmp(names[i], "umrddt")) {
                let_select(names[i]);
            }
        }
        opal_argv_free(names);
        return OMPI_SUCCESS;
    }
    opal_argv_free(names);

    if (NULL != host && 0 == strcmp(host, "umrddt")) {
        opal_show_help("help-mca-pml-umrddt.txt", "host-is-self", true);
        return OMPI_ERR_BAD_PARAM;
    }

    OBJ_CONSTRUCT(&copy.framework_components, opal_list_t);
    OBJ_CONSTRUCT(&copy.framework_failed_components, opal_list_t);
    copy.framework_selection =
        (NULL != host && '\0' != host[0]) ? (char *) host : (char *) NOT_A_HOST;
    rc = mca_base_framework_components_register(&copy, MCA_BASE_REGISTER_DEFAULT);
    if (OPAL_SUCCESS == rc) {
        rc = mca_base_framework_components_open(&copy, MCA_BASE_OPEN_DEFAULT);
    }
    if (OPAL_SUCCESS == rc) {
        while (NULL
               != (item = (mca_base_component_list_item_t *) opal_list_remove_first(
                       &copy.framework_components))) {
            let_select(item->cli_component->mca_component_name);
            /* The framework iterates over its list now, behind this component: prepend only. */
            opal_list_prepend(&ompi_pml_base_framework.framework_components, &item->super);
            ++candidates;
        }
    }
    OPAL_LIST_DESTRUCT(&copy.framework_components);
    OPAL_LIST_DESTRUCT(&copy.framework_failed_components);

    if (0 == candidates) {
        opal_show_help("help-mca-pml-umrddt.txt", "no-host", true,
                       (NULL != host && '\0' != host[0]) ? host : "any");
        return OMPI_ERR_NOT_FOUND;
    }
    return OMPI_SUCCESS;
}
