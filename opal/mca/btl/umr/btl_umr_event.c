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
 * Asynchronous events of the device: it stopped a queue pair, the shared receives failed, or it
 * failed itself. No flush reports these: receives of a shared queue are not flushed, and a failed
 * device or completion queue gives no completion at all.
 */

#include "opal_config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "opal/util/output.h"
#include "opal/util/proc.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_event.h"
#include "opal/mca/btl/umr/btl_umr_post.h"
#include "opal/mca/btl/umr/btl_umr_put_queue.h"

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

/**
 * Break an endpoint of a failed HCA. All that is posted counts as flushed, since no completion
 * reports it.
 */
static void endpoint_lost(mca_btl_umr_endpoint_t *endpoint)
{
    mca_btl_umr_hca_t *hca = endpoint->hca;

    mca_btl_umr_endpoint_fail(endpoint);
    hca->writes_out -= endpoint->sq.posted - endpoint->sq.done;
    endpoint->sq.done = endpoint->sq.posted;
    endpoint->receives = 0;
    endpoint->last_receive = true;
    mca_btl_umr_puts_sweep(endpoint);
}

/**
 * The device, or one of its completion queues, failed. Progress polls what was complete before that
 * and then ends all the rest (mca_btl_umr_hca_end).
 */
static void hca_lost(mca_btl_umr_hca_t *hca, enum ibv_event_type type)
{
    ++hca->stats.errors;
    MCA_BTL_UMR_LOG(hca, "the HCA failed: %s: its messages end, and it is not used any more",
                    ibv_event_type_str(type));
    __atomic_store_n(&hca->lost, true, __ATOMIC_RELEASE);
}

void mca_btl_umr_hca_end(mca_btl_umr_hca_t *hca)
{
    hca->ended = true;
    mca_btl_umr_keysets_fail(hca);
    for (int i = 0; i < opal_pointer_array_get_size(&hca->endpoints); ++i) {
        mca_btl_umr_endpoint_t *endpoint = opal_pointer_array_get_item(&hca->endpoints, i);

        if (NULL != endpoint) {
            endpoint_lost(endpoint);
        }
    }
    mca_btl_umr_receives_drained(hca);
    hca->gpu.flush_failed = true;
}

/** An event that needs no action: one line of each kind, for the operator. */
static void note(mca_btl_umr_hca_t *hca, enum ibv_event_type type)
{
    if (0 == (hca->events_noted & 1u << type)) {
        hca->events_noted |= 1u << type;
        MCA_BTL_UMR_LOG(hca, "event of the port: %s (reported once)", ibv_event_type_str(type));
    }
}

int mca_btl_umr_events_start(mca_btl_umr_hca_t *hca)
{
    int fd = hca->device.context->async_fd, flags = fcntl(fd, F_GETFL);

    if (0 > flags || 0 > fcntl(fd, F_SETFL, flags | O_NONBLOCK)) {
        mca_btl_umr_refuse("%s: its events cannot be read: %s", hca->device.name, strerror(errno));
        return OPAL_ERR_NOT_AVAILABLE;
    }
    return OPAL_SUCCESS;
}

void mca_btl_umr_events_read(mca_btl_umr_hca_t *hca)
{
    struct ibv_async_event event;

    while (0 == ibv_get_async_event(hca->device.context, &event)) {
        enum ibv_event_type type = event.event_type;
        mca_btl_umr_endpoint_t *endpoint = NULL;
        bool shared = false, fatal = false;

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
        case IBV_EVENT_DEVICE_FATAL:
        case IBV_EVENT_CQ_ERR:
            fatal = true;
            break;
        case IBV_EVENT_PORT_ERR:
        case IBV_EVENT_LID_CHANGE:
        case IBV_EVENT_PKEY_CHANGE:
        case IBV_EVENT_GID_CHANGE:
            if (hca->device.port == event.element.port_num) {
                note(hca, type);
            }
            break;
        default:
            break;
        }
        /* Before any destruction, which waits for it. */
        ibv_ack_async_event(&event);
        if (hca->lost) {
            continue; /* all end with it */
        }
        if (NULL != endpoint) {
            stopped(endpoint, type);
        } else if (shared && !hca->receives.failed) {
            all_fail(hca);
        } else if (fatal) {
            hca_lost(hca, type);
        }
    }
}
