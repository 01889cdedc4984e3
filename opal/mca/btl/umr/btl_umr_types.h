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
 * What all headers of btl/umr need: libibverbs, the table of functions, and the names of
 * structures.
 */

#ifndef MCA_BTL_UMR_TYPES_H
#define MCA_BTL_UMR_TYPES_H

#include "opal_config.h"
#include "umrddt_compat.h"

#include <pthread.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include "opal/class/opal_hash_table.h"
#include "opal/class/opal_list.h"

#include "opal/mca/btl/umr/btl_umr_hca.h"

BEGIN_C_DECLS

UMRDDT_COMPONENT extern mca_btl_umr_component_t mca_btl_umr_component;
extern const mca_btl_umr_hca_ops_t mca_btl_umr_hca_ops;

/** One port of one device, with all its objects: btl_umr.h. */
typedef struct mca_btl_umr_hca_t mca_btl_umr_hca_t;

typedef struct mca_btl_umr_mkey_t mca_btl_umr_mkey_t;
typedef struct mca_btl_umr_reg_t mca_btl_umr_reg_t;
typedef struct mca_btl_umr_mr_t mca_btl_umr_mr_t;
typedef struct mca_btl_umr_keyset_object_t mca_btl_umr_keyset_object_t;
typedef struct mca_btl_umr_peer_t mca_btl_umr_peer_t;
typedef struct mca_btl_umr_lane_t mca_btl_umr_lane_t;

END_C_DECLS

#endif /* MCA_BTL_UMR_TYPES_H */
