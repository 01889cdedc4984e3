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
 * Back-off after failures: of queue pairs, and of objects that the device refuses. Lock held.
 */

#ifndef MCA_BTL_UMR_BACKOFF_H
#define MCA_BTL_UMR_BACKOFF_H

#include "opal/mca/btl/umr/btl_umr_types.h"

BEGIN_C_DECLS

/**
 * Back-off of a failed queue pair: it is rebuilt after a number of messages that needed it. The
 * number doubles each time that the new one fails early, and after btl_umr_rebuilds failures in a
 * row it is not rebuilt any more.
 */
typedef struct mca_btl_umr_rebuild_t {
    unsigned int tries;  /**< failures in a row */
    unsigned int lacked; /**< messages since the last failure */
} mca_btl_umr_rebuild_t;

#define MCA_BTL_UMR_REBUILD_PATIENCE 4u

/** Work requests and FINs after which a new queue pair counts as good as the first. */
#define MCA_BTL_UMR_REBUILD_PROVEN 256u

/**
 * A queue pair failed, or could not be created.
 *
 * @param[in] done  work requests and FINs that it completed
 *
 * @return true if the limit is reached now (and rebuilding is not disabled)
 */
bool mca_btl_umr_rebuild_failed(mca_btl_umr_rebuild_t *rebuild, uint32_t done);

/** A queue pair was given up without a failure: the back-off begins again, at its first step if no
 * failure came before. */
void mca_btl_umr_rebuild_later(mca_btl_umr_rebuild_t *rebuild);

/**
 * Count a message that needs the queue pair. @return true: it may be rebuilt now; tries does not
 * change
 */
bool mca_btl_umr_rebuild_due(mca_btl_umr_rebuild_t *rebuild);

/**
 * Limit of a number of objects after the device refused one. The refusal may be temporary (memory,
 * keys of other jobs), so creation is retried after MCA_BTL_UMR_PATIENCE messages that lacked an
 * object. The number doubles with each further refusal.
 */
typedef struct mca_btl_umr_bound_t {
    size_t max;      /**< current limit */
    size_t most;     /**< limit set by the parameters */
    unsigned lacked; /**< messages since the refusal */
    unsigned
        patience; /**< messages until the next attempt; 0: it has not refused, or gave more since */
} mca_btl_umr_bound_t;

#define MCA_BTL_UMR_PATIENCE 256u

/** Set the limit; nothing has been refused. */
void mca_btl_umr_bound_start(mca_btl_umr_bound_t *bound, size_t most);

/** The device refused one more than @p count. */
void mca_btl_umr_bound_refused(mca_btl_umr_bound_t *bound, size_t count);

/** The device created one. If that exceeds the refused number, the refusal is cleared. */
static inline void mca_btl_umr_bound_given(mca_btl_umr_bound_t *bound)
{
    if (bound->max == bound->most) {
        bound->patience = 0;
    }
}

/** A message lacks one. @return true: bound->max is restored and one attempt is allowed */
bool mca_btl_umr_bound_again(mca_btl_umr_bound_t *bound);

END_C_DECLS

#endif /* MCA_BTL_UMR_BACKOFF_H */
