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
 * The order in which a process tries the ports of its node.
 */

#ifndef MCA_BTL_UMR_ORDER_H
#define MCA_BTL_UMR_ORDER_H

#include "opal/mca/btl/umr/btl_umr_device.h"

BEGIN_C_DECLS

/**
 * Sort the candidates, best first, and mark those to be used only if no other one works:
 *
 * - the nearest to the GPU that this process is expected to use;
 * - the nearest to some GPU of the node: the others are for storage, for example;
 * - the nearest to the CPUs of this process;
 * - the fastest.
 *
 * Ports that are down are the last ones, in their order: they are tried if no other one works,
 * since they may have come up. Equal ones are rotated over the processes of the node. Unless the
 * user has named them, ports with less than half of the rate of the fastest one are marked, and
 * those of the slower link layer (of equal ones, of that with fewer ports beside GPUs).
 */
void mca_btl_umr_order(mca_btl_umr_candidate_t *candidates, int count, bool named);

END_C_DECLS

#endif /* MCA_BTL_UMR_ORDER_H */
