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
 * Devices, ports and GIDs: selection, opening, capabilities.
 */

#ifndef MCA_BTL_UMR_DEVICE_H
#define MCA_BTL_UMR_DEVICE_H

#include "opal/mca/btl/umr/btl_umr_types.h"
#include "opal/mca/btl/umr/btl_umr_params.h"
#include "opal/mca/common/umrddt_gpu/rdma/umrddt_gpu_rdma.h"

BEGIN_C_DECLS

/** NUMA nodes with a known distance: those below this number. */
#define MCA_BTL_UMR_NODES 64

/** Larger than any distance that the kernel reports. */
#define MCA_BTL_UMR_FAR     255
#define MCA_BTL_UMR_GPU_FAR UINT32_MAX

typedef struct mca_btl_umr_device_t {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_device_attr attr;
    struct ibv_port_attr port_attr;
    bool mlx5;    /**< false: no UMR and no DEVX */
    bool no_devx; /**< opened without DEVX */
    uint8_t port;
    bool at_gpu;   /**< as of the candidate */
    uint32_t rate; /**< likewise */
    uint8_t gid_index;
    bool roce_v1; /**< the GID is of RoCE v1 */
    uint16_t pkey, pkey_index;
    uint8_t service_level, traffic_class;
    union ibv_gid gid;
    uint32_t max_message;                /**< maximum bytes of one write */
    uint32_t max_pieces;                 /**< maximum pieces of one gather write */
    uint32_t max_list;                   /**< maximum entries of an mkey; 0: not reported */
    uint32_t max_depth;                  /**< maximum levels of mkeys; 0: not reported */
    int caps_error;                      /**< errno of the failed query */
    bool update_tag;                     /**< a mapping can change the tag of an mkey */
    int numa;                            /**< NUMA node of the device; -1: unknown */
    uint8_t distance[MCA_BTL_UMR_NODES]; /**< from each node to it; MCA_BTL_UMR_FAR: not known */
    uint32_t gpu_distance[OPAL_UMRDDT_GPU_RDMA_DEVICES]; /**< mca_btl_umr_topology_gpu; 0: not
                                                            computed yet */
    char name[64];                                       /**< "mlx5_0:1" */
} mca_btl_umr_device_t;

/* A pkey: number of the partition, and membership. */
#define MCA_BTL_UMR_PKEY_NUMBER 0x7fff
#define MCA_BTL_UMR_PKEY_FULL   0x8000

/** Kinds of GIDs, those that reach further are larger. */
enum {
    MCA_BTL_UMR_GID_NONE, /**< zero: an empty entry */
    MCA_BTL_UMR_GID_LINK, /**< link-local */
    MCA_BTL_UMR_GID_IPV6,
    MCA_BTL_UMR_GID_IPV4
};

/** @return MCA_BTL_UMR_GID_* */
static inline int mca_btl_umr_gid_kind(const union ibv_gid *gid)
{
    static const uint8_t zero[16], ipv4[12] = {[10] = 0xff, [11] = 0xff};

    return 0 == memcmp(gid->raw, zero, sizeof(zero))             ? MCA_BTL_UMR_GID_NONE
           : 0 == memcmp(gid->raw, ipv4, sizeof(ipv4))           ? MCA_BTL_UMR_GID_IPV4
           : 0xfe == gid->raw[0] && 0x80 == (gid->raw[1] & 0xc0) ? MCA_BTL_UMR_GID_LINK
                                                                 : MCA_BTL_UMR_GID_IPV6;
}

/** Pieces that one write to a peer may gather; at least 1. */
static inline uint32_t mca_btl_umr_write_pieces(const mca_btl_umr_device_t *device)
{
    return device->max_pieces < mca_btl_umr_params.write_pieces ? device->max_pieces
                                                                : mca_btl_umr_params.write_pieces;
}

/** A device that might be usable. */
typedef struct mca_btl_umr_candidate_t {
    struct ibv_device *device;
    uint8_t port;          /**< 0: the first active one */
    uint8_t distance;      /**< from this process; MCA_BTL_UMR_FAR: not known */
    bool ethernet;         /**< RoCE */
    bool at_gpu;           /**< of all candidates it is the nearest to some GPU of the node */
    bool spare;            /**< to be used only if no other one works */
    bool down;             /**< not active when the ports were listed; the last ones */
    char *why;             /**< why it is not used; NULL: it is used, or was not tried */
    uint32_t rate;         /**< in 100 Mb/s; 0: not known, or down */
    uint32_t gpu_distance; /**< from the GPU of this process; equal for all if not known */
} mca_btl_umr_candidate_t;

/** True if the user has named the devices (btl_umr_device). */
bool mca_btl_umr_device_named(void);

/**
 * List the ports: those of btl_umr_device, or all of mlx5 devices, by name. The caller sorts them.
 *
 * @param[out] list        ibv_free_device_list when done with the candidates; NULL: nothing to free
 * @param[out] candidates  free() it
 *
 * @return number of candidates; 0 with why_not set
 */
int mca_btl_umr_device_candidates(struct ibv_device ***list, mca_btl_umr_candidate_t **candidates);

/**
 * Protect registered memory against fork where the kernel does not (ibv_fork_init). Must be called
 * before anything is registered. Controlled by btl_umr_fork_support. Gives a message if the
 * protection is needed but not available and the user did not require it.
 *
 * @return OPAL_SUCCESS; OPAL_ERR_NOT_AVAILABLE with why_not set if the user required it and it is
 *         not available
 */
int mca_btl_umr_device_fork(void);

/**
 * Open a device. OPAL_SUCCESS, or OPAL_ERR_NOT_AVAILABLE with why_not set and nothing left open.
 */
int mca_btl_umr_device_open(const mca_btl_umr_candidate_t *candidate, mca_btl_umr_device_t *device);

void mca_btl_umr_device_close(mca_btl_umr_device_t *device);

END_C_DECLS

#endif /* MCA_BTL_UMR_DEVICE_H */
