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
 * Publishes this process's identity and reads that of a peer, once per process, through the modex.
 * The identity is declared in pml_umrddt_wire.h.
 */

#include "ompi_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "opal/mca/common/umrddt_gpu/ipc/umrddt_gpu_ipc.h"
#include "opal/mca/hwloc/hwloc-internal.h"
#include "opal/util/output.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_peer.h"
#include "umrddt_collectives.h"

/** Create an unpredictable number. An envelope without it is a plain message. */
static bool make_cookie(uint8_t *cookie)
{
    size_t got = 0;

    while (got < MCA_PML_UMRDDT_COOKIE_LEN) {
        ssize_t n = getrandom(cookie + got, MCA_PML_UMRDDT_COOKIE_LEN - got, 0);
        if (0 > n && EINTR != errno) {
            return false;
        }
        got += 0 < n ? (size_t) n : 0;
    }
    return true;
}

/** Implements mode_of of opal_umrddt_collectives_t. */
static uint16_t collectives_of(opal_proc_t *proc)
{
    mca_pml_umrddt_peer_t peer = {.proc = proc};

    mca_pml_umrddt_identify(&peer);
    return peer.collectives;
}

bool mca_pml_umrddt_publish(void)
{
    mca_pml_umrddt_identity_t *self = &mca_pml_umrddt.self;
    int rc;

    memset(self, 0, sizeof(*self));
    self->version = MCA_PML_UMRDDT_WIRE_VERSION;
    if (NULL == mca_pml_umrddt.gpu || MCA_PML_UMRDDT_BASE_GPU_ALL == mca_pml_umrddt.base_gpu) {
        opal_umrddt_collectives.mode = 0; /* coll/umrddt must read the value that its peers read */
    }
    self->flags = (NULL != mca_pml_umrddt.hca ? MCA_PML_UMRDDT_HAS_HCA : 0)
                  | (NULL != mca_pml_umrddt.gpu ? MCA_PML_UMRDDT_HAS_GPU : 0)
                  | (uint32_t) opal_umrddt_collectives.mode << MCA_PML_UMRDDT_COLL_SHIFT;
    self->host = opal_umrddt_gpu_ipc_domain();
    if (!make_cookie(self->cookie)) {
        opal_output(0, "pml:umrddt: no random numbers are to be had; not used");
        return false;
    }
    OPAL_MODEX_SEND(rc, UMRDDT_PMIX_GLOBAL, &mca_pml_umrddt_component.pmlm_version, self,
                    sizeof(*self));
    if (OPAL_SUCCESS != rc) {
        opal_output(0, "pml:umrddt: cannot publish this process to its peers (%d); not used", rc);
        return false;
    }
    opal_umrddt_collectives.mode_of = collectives_of;
    return true;
}

void mca_pml_umrddt_publish_absent(void)
{
    static const uint8_t nothing = 0;
    int rc;

    OPAL_MODEX_SEND(rc, UMRDDT_PMIX_GLOBAL, &mca_pml_umrddt_component.pmlm_version, &nothing,
                    sizeof(nothing));
    if (OPAL_SUCCESS != rc) {
        opal_output(
            0, "pml:umrddt: cannot publish in the modex that this process handles no messages (%d)",
            rc);
    }
}

void mca_pml_umrddt_identify(mca_pml_umrddt_peer_t *peer)
{
    const mca_pml_umrddt_identity_t *self = &mca_pml_umrddt.self;
    mca_pml_umrddt_identity_t reported;
    opal_proc_t *proc = peer->proc;
    void *datum = NULL;
    size_t size = 0;
    int rc;

    if (proc == opal_proc_local_get()) {
        memcpy(peer->cookie, self->cookie, sizeof(peer->cookie));
        peer->self = peer->capable = peer->has_gpu = peer->same_host = NULL != mca_pml_umrddt.gpu;
        return;
    }
    if (proc->proc_arch != opal_proc_local_get()->proc_arch
        || proc->proc_name.jobid != opal_proc_local_get()->proc_name.jobid) {
        /* Another architecture, or another job (spawned, connected), whose modex data may be
         * missing here. Both sides detect it in the same way and use the base PML. */
        return;
    }
    OPAL_MODEX_RECV(rc, &mca_pml_umrddt_component.pmlm_version, &proc->proc_name, &datum, &size);
    if (OPAL_SUCCESS != rc) {
        return;
    }
    if (sizeof(reported) == size) {
        memcpy(&reported, datum, sizeof(reported));
        if (self->version == reported.version) {
            memcpy(peer->cookie, reported.cookie, sizeof(peer->cookie));
            peer->capable = true;
            peer->has_hca = 0 != (MCA_PML_UMRDDT_HAS_HCA & reported.flags);
            peer->has_gpu = 0 != (MCA_PML_UMRDDT_HAS_GPU & reported.flags);
            peer->collectives = (uint16_t) (reported.flags >> MCA_PML_UMRDDT_COLL_SHIFT);
            peer->same_host = 0 != self->host && self->host == reported.host
                              && OPAL_PROC_ON_LOCAL_NODE(proc->proc_flags);
        }
    }
    free(datum);
}
