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
 * The puts of an endpoint, in the order of the calls, and the finished ones.
 */

#include "opal_config.h"

#include <stdlib.h>
#include <string.h>

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_put_queue.h"

static void put_construct(mca_btl_umr_put_t *put)
{
    memset((char *) put + sizeof(opal_list_item_t), 0, sizeof(*put) - sizeof(opal_list_item_t));
}

static void put_destruct(mca_btl_umr_put_t *put)
{
    free(put->walk);
    free(put->remote);
}

OBJ_CLASS_INSTANCE(mca_btl_umr_put_t, opal_list_item_t, put_construct, put_destruct);

void mca_btl_umr_puts_sweep(mca_btl_umr_endpoint_t *endpoint)
{
    mca_btl_umr_hca_t *hca = endpoint->hca;
    mca_btl_umr_put_t *put, *next;

    OPAL_LIST_FOREACH_SAFE (put, next, &endpoint->puts, mca_btl_umr_put_t) {
        bool drained = !put->started || mca_btl_umr_sq_is_done(&endpoint->sq, put->last_seq);

        if (!drained || (0 < put->left && !endpoint->broken)) {
            break;
        }
        /* On a broken endpoint, puts that completed before the error were swept at that time. */
        put->status = endpoint->broken ? OPAL_ERR_UNREACH : OPAL_SUCCESS;
        opal_list_remove_item(&endpoint->puts, &put->super);
        opal_list_append(&hca->puts_done, &put->super);
    }
}

void mca_btl_umr_puts_late(mca_btl_umr_endpoint_t *endpoint)
{
    mca_btl_umr_put_t *put;

    OPAL_LIST_FOREACH (put, &endpoint->puts, mca_btl_umr_put_t) {
        put->status = OPAL_ERR_TIMEOUT;
    }
    opal_list_join(&endpoint->hca->puts_done, opal_list_get_end(&endpoint->hca->puts_done),
                   &endpoint->puts);
}

bool mca_btl_umr_puts_next_done(mca_btl_umr_hca_t *hca, mca_btl_umr_done_fn_t *done, void **context,
                                int *status)
{
    mca_btl_umr_put_t *put = (mca_btl_umr_put_t *) opal_list_remove_first(&hca->puts_done);

    if (NULL == put) {
        return false;
    }
    *done = put->done;
    *context = put->context;
    *status = put->status;
    if (MCA_BTL_UMR_IDLE_KEYS < put->capacity
        || MCA_BTL_UMR_IDLE_MAX <= opal_list_get_size(&hca->puts_idle)) {
        OBJ_RELEASE(put);
    } else {
        opal_list_prepend(&hca->puts_idle, &put->super);
    }
    return true;
}
