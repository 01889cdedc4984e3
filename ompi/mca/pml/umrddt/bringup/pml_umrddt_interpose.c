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
 * Interposes on the base PML and restores it. Only single functions of mca_pml are replaced. Its
 * limits, flags and progress stay those of the base PML. Of the selected component only the
 * finalize function is replaced, so that the framework closes the base PML as usual.
 */

#include "ompi_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/runtime/opal_progress.h"

#include "ompi/mca/pml/base/base.h"

#include "ompi/mca/pml/umrddt/bringup/pml_umrddt_bringup.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_control.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_hca.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_layout.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_peer.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_send_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_requests.h"
#include "ompi/mca/pml/umrddt/match/pml_umrddt_match.h"
#include "ompi/mca/pml/umrddt/match/pml_umrddt_receives.h"
#include "ompi/mca/pml/umrddt/match/pml_umrddt_recv_watch.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_select.h"
#include "umrddt_help.h"

#if OPAL_ENABLE_FT_MPI
#include "ompi/runtime/params.h"
#else
#define ompi_ftmpi_enabled false
#endif

/** @return false: no memory */
static bool lists_init(void)
{
    bool has_memory;

    OBJ_CONSTRUCT(&mca_pml_umrddt.lock, opal_mutex_t);
    OBJ_CONSTRUCT(&mca_pml_umrddt.peers, opal_hash_table_t);
    opal_hash_table_init(&mca_pml_umrddt.peers, 256);
    OBJ_CONSTRUCT(&mca_pml_umrddt.receives, opal_list_t);
    for (int role = 0; role < MCA_BTL_UMR_ROLE_MAX; ++role) {
        OBJ_CONSTRUCT(&mca_pml_umrddt.waiting[role], opal_list_t);
    }
    OBJ_CONSTRUCT(&mca_pml_umrddt.credit, opal_list_t);
    OBJ_CONSTRUCT(&mca_pml_umrddt.polled, opal_list_t);
    OBJ_CONSTRUCT(&mca_pml_umrddt.listeners, opal_list_t);
    OBJ_CONSTRUCT(&mca_pml_umrddt.sends, opal_free_list_t);
    opal_free_list_init(&mca_pml_umrddt.sends, sizeof(mca_pml_umrddt_send_t), opal_cache_line_size,
                        OBJ_CLASS(mca_pml_umrddt_send_t), 0, opal_cache_line_size, 0, -1, 32, NULL,
                        0, NULL, NULL, NULL);
    OBJ_CONSTRUCT(&mca_pml_umrddt.recvs, opal_free_list_t);
    opal_free_list_init(&mca_pml_umrddt.recvs, sizeof(mca_pml_umrddt_recv_t), opal_cache_line_size,
                        OBJ_CLASS(mca_pml_umrddt_recv_t), 0, opal_cache_line_size, 0, -1, 64, NULL,
                        0, NULL, NULL, NULL);
    OBJ_CONSTRUCT(&mca_pml_umrddt.claims, opal_free_list_t);
    opal_free_list_init(&mca_pml_umrddt.claims, sizeof(mca_pml_umrddt_claim_t),
                        opal_cache_line_size, OBJ_CLASS(mca_pml_umrddt_claim_t), 0,
                        opal_cache_line_size, 0, -1, 16, NULL, 0, NULL, NULL, NULL);
    mca_pml_umrddt_watches_init();
    mca_pml_umrddt.scratch_size = mca_pml_umrddt_reply_room();
    mca_pml_umrddt.scratch = malloc(mca_pml_umrddt.scratch_size);
    mca_pml_umrddt.received = opal_umrddt_received_new();
    has_memory = OMPI_SUCCESS == mca_pml_umrddt_control_init(mca_pml_umrddt_recv_failed)
                 && OMPI_SUCCESS == mca_pml_umrddt_comms_init() && NULL != mca_pml_umrddt.scratch
                 && NULL != mca_pml_umrddt.received;
    mca_pml_umrddt.lists_ready = true;
    return has_memory;
}

static void lists_fini(void)
{
    if (!mca_pml_umrddt.lists_ready) {
        return;
    }
    mca_pml_umrddt.lists_ready = false;
    mca_pml_umrddt_control_fini();
    free(mca_pml_umrddt.scratch);
    free(mca_pml_umrddt.received);
    mca_pml_umrddt_watches_fini();
    mca_pml_umrddt_peers_free();
    mca_pml_umrddt_comms_fini();
    OBJ_DESTRUCT(&mca_pml_umrddt.claims);
    OBJ_DESTRUCT(&mca_pml_umrddt.recvs);
    OBJ_DESTRUCT(&mca_pml_umrddt.sends);
    OBJ_DESTRUCT(&mca_pml_umrddt.listeners);
    OBJ_DESTRUCT(&mca_pml_umrddt.polled);
    OBJ_DESTRUCT(&mca_pml_umrddt.credit);
    for (int role = 0; role < MCA_BTL_UMR_ROLE_MAX; ++role) {
        OBJ_DESTRUCT(&mca_pml_umrddt.waiting[role]);
    }
    OBJ_DESTRUCT(&mca_pml_umrddt.receives);
    umrddt_numbers_free(&mca_pml_umrddt.fins);
    umrddt_ids_free(&mca_pml_umrddt.request_ids);
    OBJ_DESTRUCT(&mca_pml_umrddt.peers);
    mca_pml_umrddt.events = NULL;
    OBJ_DESTRUCT(&mca_pml_umrddt.lock);
}

/** The first call after the selection in which variables can be registered permanently. */
static int enable(bool on)
{
    int rc;

    mca_pml_umrddt_params_register();
    mca_pml_umrddt_pvars_register();
    if (on) {
        mca_pml_umrddt_windows_open();
    }

    rc = mca_pml_umrddt.host.pml_enable(on);
    if (OMPI_SUCCESS != rc || !on || !mca_pml_umrddt_takes_part()) {
        return rc;
    }
    rc = mca_pml_umrddt_layouts_init();
    if (OMPI_SUCCESS != rc) {
        return rc; /* an error, because peers already have our cookie */
    }
    mca_pml_umrddt_eager_open();
    mca_pml_umrddt_select_open(mca_pml_umrddt.params.explain
                               || mca_pml_umrddt_logs(MCA_PML_UMRDDT_LOG_SELECTION));
    if (NULL != mca_pml_umrddt.hca) {
        mca_pml_umrddt.hca->set_fin_handler(mca_pml_umrddt_recv_fin, NULL);
    }
    (void) mca_pml_umrddt_range(0, NULL, 0);
    mca_pml_umrddt.usable = true;
    mca_pml_umrddt_calls_open();
    return OMPI_SUCCESS;
}

/** Log what was found. */
static void log_setup(void)
{
    const mca_btl_umr_caps_t *caps;
    char schemes[128] = "";

    if (!mca_pml_umrddt_logs(MCA_PML_UMRDDT_LOG_SETUP)) {
        return;
    }
    MCA_PML_UMRDDT_LOG("base PML: %s",
                       mca_pml_umrddt.host_component.pmlm_version.mca_component_name);
    if (NULL == mca_pml_umrddt.hca) {
        MCA_PML_UMRDDT_LOG("no HCA: %s", mca_pml_umrddt.hca_why_not);
    }
    for (unsigned int i = 0; NULL != mca_pml_umrddt.hca && mca_pml_umrddt.hca->hca(i, &caps, NULL);
         ++i) {
        MCA_PML_UMRDDT_LOG("HCA %u: %s", i, caps->device);
    }
    if (NULL == mca_pml_umrddt.gpu) {
        MCA_PML_UMRDDT_LOG("no GPU: %s", mca_pml_umrddt.gpu_why_not);
    } else {
        MCA_PML_UMRDDT_LOG("GPU: CUDA driver found; the base PML gets %s GPU memory",
                           MCA_PML_UMRDDT_BASE_GPU_ALL == mca_pml_umrddt.base_gpu    ? "all"
                           : MCA_PML_UMRDDT_BASE_GPU_NONE == mca_pml_umrddt.base_gpu ? "no"
                                                                                     : "safe");
    }
    for (int i = 0; i < MCA_PML_UMRDDT_SCHEMES; ++i) {
        if (0 != (MCA_PML_UMRDDT_BIT(i) & mca_pml_umrddt.schemes)) {
            const size_t used = strlen(schemes);

            (void) snprintf(schemes + used, sizeof(schemes) - used, " %s",
                            mca_pml_umrddt_scheme_names[i]);
        }
    }
    MCA_PML_UMRDDT_LOG("schemes:%s", '\0' == schemes[0] ? " none" : schemes);
}

void mca_pml_umrddt_interpose(void)
{
    mca_pml_umrddt.host = mca_pml;
    mca_pml_umrddt.host_component = mca_pml_base_selected_component;
    mca_pml_umrddt.host_keeps =
        0 == strcmp(mca_pml_umrddt.host_component.pmlm_version.mca_component_name, "ob1");
    mca_pml_umrddt.interposed = true;

    if (!lists_init()) {
        mca_pml_umrddt.hca_why_not = mca_pml_umrddt.gpu_why_not = "there is no memory for it";
    } else if (ompi_ftmpi_enabled) {
        /* ULFM reads fields of pending requests that ours do not have, and ends them */
        opal_show_help("help-mca-pml-umrddt.txt", "fault-tolerance", true);
        mca_pml_umrddt.hca_why_not = mca_pml_umrddt.gpu_why_not = "mpi_ft_enable is set";
    } else {
        /* The last point before the modex exchange. */
        mca_pml_umrddt_hca_open();
        mca_pml_umrddt_gpu_open();
        mca_pml_umrddt_schemes_open();
    }
    if (mca_pml_umrddt_takes_part() && !mca_pml_umrddt_publish()) {
        mca_pml_umrddt_schemes_close();
        mca_pml_umrddt_hca_close();
        mca_pml_umrddt_gpu_close();
        mca_pml_umrddt.hca_why_not = mca_pml_umrddt.gpu_why_not =
            "this process could not be published to its peers";
    }
    log_setup();

    mca_pml_base_selected_component.pmlm_finalize = mca_pml_umrddt_finalize;
    mca_pml.pml_enable = enable;
    if (!mca_pml_umrddt_takes_part()) {
        mca_pml_umrddt_publish_absent();
        /* No message is ever handled: no overhead. */
        return;
    }
    opal_umrddt_gpu_cuts_init(&mca_pml_umrddt.cuts, MCA_PML_UMRDDT_ENVELOPE);
    mca_pml.pml_add_comm = mca_pml_umrddt_add_comm;
    mca_pml.pml_del_comm = mca_pml_umrddt_del_comm;
    mca_pml.pml_isend_init = mca_pml_umrddt_isend_init;
    mca_pml.pml_isend = mca_pml_umrddt_isend;
    mca_pml.pml_send = mca_pml_umrddt_send;
    mca_pml.pml_irecv_init = mca_pml_umrddt_irecv_init;
    mca_pml.pml_irecv = mca_pml_umrddt_irecv;
    mca_pml.pml_recv = mca_pml_umrddt_recv;
    mca_pml.pml_start = mca_pml_umrddt_start;
    mca_pml.pml_iprobe = mca_pml_umrddt_iprobe;
    mca_pml.pml_probe = mca_pml_umrddt_probe;
    mca_pml.pml_improbe = mca_pml_umrddt_improbe;
    mca_pml.pml_mprobe = mca_pml_umrddt_mprobe;
    mca_pml.pml_imrecv = mca_pml_umrddt_imrecv;
    mca_pml.pml_mrecv = mca_pml_umrddt_mrecv;
}

int mca_pml_umrddt_finalize(void)
{
    if (!mca_pml_umrddt.interposed) {
        return OMPI_SUCCESS;
    }
    mca_pml_umrddt.interposed = false;
    mca_pml_umrddt_calls_close();
    if (mca_pml_umrddt.usable) {
        if (0 < __atomic_load_n(&mca_pml_umrddt.refused, __ATOMIC_RELAXED)) {
            mca_pml_umrddt_drain_on_finalize(NULL); /* in a Session, where del_comm of
                                                  MPI_COMM_WORLD has not waited */
        }
        if (mca_pml_umrddt.polling) {
            opal_progress_unregister(mca_pml_umrddt_progress);
            mca_pml_umrddt.polling = false;
            mca_pml_umrddt_check_stop();
        }
        mca_pml_umrddt.usable = false;
        if (0 != mca_pml_umrddt.active) {
            opal_show_help("help-mca-pml-umrddt.txt", "unfinished", true, mca_pml_umrddt.active);
        }
    }
    if (MCA_PML_UMRDDT_STATS_NONE != mca_pml_umrddt.params.stats) {
        mca_pml_umrddt_stats_print();
    }

    mca_pml_umrddt_windows_close();
    /* Restore the selection, except the progress function of the base PML. */
    mca_pml = mca_pml_umrddt.host;
    mca_pml_base_selected_component = mca_pml_umrddt.host_component;
    mca_pml_umrddt_schemes_close();
    mca_pml_umrddt_hca_close();
    mca_pml_umrddt_gpu_close();
    mca_pml_umrddt_select_close();
    mca_pml_umrddt_layouts_fini();
    lists_fini();

    return NULL == mca_pml_base_selected_component.pmlm_finalize
               ? OMPI_SUCCESS
               : mca_pml_base_selected_component.pmlm_finalize();
}
