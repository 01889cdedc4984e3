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
 * Asynchronous events of the device: it stopped a queue pair, or the shared receives failed. A
 * flush does not report this, since receives of a shared queue are not flushed.
 */

#include "opal_config.h"

#include "opal/util/output.h"
#include "opal/util/proc.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_event.h"

/** No endpoint can receive any more. */
static void all_fail(mca_btl_umr_hca_t *hca)
{
    hca->receives.failed = true;
    ++hca->stats.errors;
    MCA_BTL_UMR_LOG(hca, "%s", "the shared receives failed: no further FIN can be received");
    mca_btl_umr_endpoints_fail(hca);
}

/** The device stopped a queue pair. */
static void stopped(mca_btl_umr_endpoint_t *endpoint, enum ibv_event_type type)
{
    mca_btl_umr_hca_t *hca = endpoint->hca;
    if (IBV_EVENT_QP_LAST_WQE_REACHED == type) {
        endpoint->last_receive = true;
    }
    if (!endpoint->broken) {
        ++hca->stats.errors;
        MCA_BTL_UMR_LOG(hca, "the queue pair to %s was stopped: %s",
                        OPAL_NAME_PRINT(endpoint->peer->name), ibv_event_type_str(type));
        mca_btl_umr_endpoint_fail(endpoint);
    }
}

void mca_btl_umr_events_read(mca_btl_umr_hca_t *hca)
{
    struct ibv_async_event event;

    while (0 == ibv_get_async_event(hca->device.context, &event)) {
        enum ibv_event_type type = event.event_type;
        mca_btl_umr_endpoint_t *endpoint = NULL;
        bool shared = false;

        switch (type) {
        case IBV_EVENT_QP_FATAL:
        case IBV_EVENT_QP_REQ_ERR:
        case IBV_EVENT_QP_ACCESS_ERR:
        case IBV_EVENT_QP_LAST_WQE_REACHED:
            /* NULL: the queue pair for mappings, whose completions report errors */
            endpoint = mca_btl_umr_endpoint_of_qp(hca, event.element.qp->qp_num);
            break;
        case IBV_EVENT_SRQ_ERR:
            shared = event.element.srq == hca->receives.srq;
            break;
        default:
            break;
        }
        /* Before any destruction, which waits for it. */
        ibv_ack_async_event(&event);
        if (NULL != endpoint) {
            stopped(endpoint, type);
        } else if (shared && !hca->receives.failed) {
            all_fail(hca);
        }
    }
}
