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
 * Finds btl/umr and decides which messages may use the HCA. Only ob1 opens the btl framework, and
 * it drops components without a module, such as btl/umr. `--mca btl self,vader` would hide it, too.
 * So this file opens it through a copy of the framework's structure that selects btl/umr alone. An
 * explicit `^umr` disables it.
 */

#include "ompi_config.h"

#include <stdio.h>
#include <string.h>

#include "opal/mca/base/base.h"
#include "opal/mca/base/mca_base_framework.h"
#include "opal/mca/btl/base/base.h"
#include "opal/util/argv.h"
#include "opal/util/output.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_hca.h"

static mca_base_framework_t framework;
static bool framework_open = false;

/** Returns true if the user's btl selection excludes umr by name. */
static bool excluded(void)
{
    const char **value = NULL;
    char **names;
    bool found = false;
    int var = mca_base_var_find("opal", "btl", NULL, NULL);

    if (0 > var || OPAL_SUCCESS != mca_base_var_get_value(var, &value, NULL, NULL) || NULL == value
        || NULL == value[0] || '^' != value[0][0]) {
        return false;
    }
    names = opal_argv_split(value[0] + 1, ',');
    for (int i = 0; NULL != names && NULL != names[i]; ++i) {
        found = found || 0 == strcmp(names[i], "umr");
    }
    opal_argv_free(names);
    return found;
}

static void close_framework(void)
{
    if (framework_open) {
        mca_base_framework_components_close(&framework, NULL);
        OPAL_LIST_DESTRUCT(&framework.framework_components);
        OPAL_LIST_DESTRUCT(&framework.framework_failed_components);
        framework_open = false;
    }
}

/** Find btl/umr in a list of components. @return its functions, or NULL */
static const mca_btl_umr_hca_ops_t *find(opal_list_t *components)
{
    mca_base_component_list_item_t *item;

    OPAL_LIST_FOREACH (item, components, mca_base_component_list_item_t) {
        const mca_btl_umr_component_t *component =
            (const mca_btl_umr_component_t *) item->cli_component;
        if (0 == strcmp(item->cli_component->mca_component_name, "umr")) {
            if (MCA_BTL_UMR_HCA_API == component->api) {
                return component->ops;
            }
            opal_output(0, "pml:umrddt: btl/umr is of another build (api %u, wanted %u)",
                        component->api, MCA_BTL_UMR_HCA_API);
        }
    }
    return NULL;
}

/** @return the functions of btl/umr, or NULL */
static const mca_btl_umr_hca_ops_t *open_framework(void)
{
    framework = opal_btl_base_framework;
    framework.framework_selection = "umr";
    OBJ_CONSTRUCT(&framework.framework_components, opal_list_t);
    OBJ_CONSTRUCT(&framework.framework_failed_components, opal_list_t);
    framework_open = true;
    if (OPAL_SUCCESS
            == mca_base_framework_components_register(&framework, MCA_BASE_REGISTER_DEFAULT)
        && OPAL_SUCCESS == mca_base_framework_components_open(&framework, MCA_BASE_OPEN_DEFAULT)) {
        return find(&framework.framework_components);
    }
    return NULL;
}

/** @return the reason why no message can use an HCA, whatever its capabilities, or NULL */
static const char *nothing_to_take(void)
{
    const unsigned schemes = MCA_PML_UMRDDT_SCHEME_AUTO == mca_pml_umrddt.params.scheme
                                 ? MCA_PML_UMRDDT_BITS_ALL
                                 : MCA_PML_UMRDDT_BIT(mca_pml_umrddt.params.scheme);

    if (MCA_PML_UMRDDT_SCHEME_BASE == mca_pml_umrddt.params.scheme) {
        return "pml_umrddt_scheme is host";
    }
    if (0 == (MCA_PML_UMRDDT_BITS_USE_HCA & schemes)) {
        return "pml_umrddt_scheme is one that uses none";
    }
    if (0 == (MCA_PML_UMRDDT_BITS_NEED_HCA & schemes) && !mca_pml_umrddt.params.pack_hca) {
        return "pml_umrddt_scheme is one that needs none, and pml_umrddt_pack_hca is 0";
    }
    if (0 == (MCA_PML_UMRDDT_MEMORY_SYSTEM & mca_pml_umrddt.params.memory)) {
        const opal_umrddt_gpu_driver_t *driver;

        if (!mca_pml_umrddt.params.gpu_hca) {
            return "pml_umrddt_memory is gpu, and pml_umrddt_gpu_hca is 0";
        }
        if (OPAL_SUCCESS != opal_umrddt_gpu_driver_load(&driver)) {
            return "pml_umrddt_memory is gpu, and there is no CUDA driver";
        }
    }
    return excluded() ? "the parameter btl excludes umr" : NULL;
}

void mca_pml_umrddt_hca_open(void)
{
    static const mca_base_component_t btl = {MCA_BTL_DEFAULT_VERSION("umr")};
    static const uint8_t nothing = 0;
    static char why_not[256]; /* a copy, because the component that has the text is unloaded */
    const mca_btl_umr_hca_ops_t *opened = mca_base_framework_is_open(&opal_btl_base_framework)
                                              ? find(&opal_btl_base_framework.framework_components)
                                              : NULL;
    int rc;

    mca_pml_umrddt.hca_why_not = nothing_to_take();
    if (NULL == mca_pml_umrddt.hca_why_not) {
        const mca_btl_umr_hca_ops_t *hca = NULL != opened ? opened : open_framework();

        if (NULL != hca && OPAL_SUCCESS == hca->init()) {
            mca_pml_umrddt.caps = hca->caps();
            mca_pml_umrddt.hca = hca;
            return;
        }
        snprintf(why_not, sizeof(why_not), "%s",
                 NULL == hca ? "btl/umr was not found" : hca->why_not());
        mca_pml_umrddt.hca_why_not = why_not;
        close_framework();
    }
    /* All processes publish the same keys: OpenPMIx 5.0.1 confuses others (docs/notes.rst). With
     * btl_umr_rdma btl/umr has opened an HCA, and has published it. */
    if (NULL == opened || !opened->hca(0, NULL, NULL)) {
        OPAL_MODEX_SEND(rc, UMRDDT_PMIX_GLOBAL, &btl, &nothing, sizeof(nothing));
        if (OPAL_SUCCESS != rc) {
            opal_output(0, "pml:umrddt: the key of btl/umr cannot be published (%d)", rc);
        }
    }
}

void mca_pml_umrddt_hca_close(void)
{
    if (NULL != mca_pml_umrddt.hca) {
        mca_pml_umrddt.hca->set_fin_handler(NULL, NULL);
        mca_pml_umrddt.hca->fini();
        mca_pml_umrddt.hca = NULL;
        mca_pml_umrddt.caps = NULL;
    }
    close_framework();
}

bool mca_pml_umrddt_hca_takes(const mca_pml_umrddt_peer_t *peer,
                              const opal_umrddt_gpu_where_t *where)
{
    return NULL != mca_pml_umrddt.hca && peer->has_hca && mca_pml_umrddt.params.gpu_hca
           && opal_umrddt_gpu_on_device(where) && !where->mixed
           && mca_pml_umrddt.hca->gpu_reachable(NULL, &where->memory);
}

int mca_pml_umrddt_register(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_role_t role,
                            const opal_umrddt_gpu_where_t *where, void *buf,
                            const opal_iov_cache_layout_t *layout, uint64_t size,
                            mca_btl_umr_memory_t **memory)
{
    if (OPAL_LIKELY(!opal_umrddt_gpu_on_device(where))) {
        return mca_pml_umrddt.hca->memory_register_at(endpoint, role, buf, layout, size, memory);
    }
    return mca_pml_umrddt.hca->memory_register_gpu(endpoint, role, &where->memory, buf, layout,
                                                   size, memory);
}
