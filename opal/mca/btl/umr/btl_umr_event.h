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
 * Asynchronous events of the device.
 */

#ifndef MCA_BTL_UMR_EVENT_H
#define MCA_BTL_UMR_EVENT_H

#include "opal/mca/btl/umr/btl_umr_types.h"

BEGIN_C_DECLS

/* Passes without a completion between reads of the events: a read is a system call. */
#define MCA_BTL_UMR_LOOK_PERIOD 1024

/**
 * Make reads of events return at once if there is none.
 *
 * @return OPAL_SUCCESS, or OPAL_ERR_NOT_AVAILABLE with why_not set
 */
int mca_btl_umr_events_start(mca_btl_umr_hca_t *hca);

/**
 * Read the asynchronous events of the device; does not block. Sets hca.lost if the device or a
 * completion queue failed. Lock held.
 */
void mca_btl_umr_events_read(mca_btl_umr_hca_t *hca);

/**
 * End every operation of an HCA that is lost with an error; all its completions were polled. Lock
 * held.
 */
void mca_btl_umr_hca_end(mca_btl_umr_hca_t *hca);

END_C_DECLS

#endif /* MCA_BTL_UMR_EVENT_H */
