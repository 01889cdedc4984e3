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
 * RC queue pairs: creation, connection, destruction.
 */

#include "opal_config.h"

#include <errno.h>
#include <string.h>

#include "opal/util/output.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_qp.h"

/*
 * Memory of libmlx5 per queue pair in addition to its queues: a structure, a doorbell, and
 * alignment to pages. Measured with rdma-core 44.
 */
#define MCA_BTL_UMR_QP_BYTES 2048

static int qp_to_init(const mca_btl_umr_device_t *device, mca_btl_umr_qp_kind_t kind,
                      struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .pkey_index = device->pkey_index,
        .port_num = device->port,
        .qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
    };

    if (MCA_BTL_UMR_QP_RDMA == kind) {
        attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    }
    return ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}

int mca_btl_umr_qp_create(mca_btl_umr_hca_t *hca, mca_btl_umr_qp_kind_t kind, struct ibv_cq *cq,
                          uint32_t sq_depth, uint32_t rq_depth, uint32_t *inline_bytes,
                          mca_btl_umr_sq_t *sq)
{
    const mca_btl_umr_device_t *device = &hca->device;
    struct ibv_qp_init_attr_ex attr;
    struct mlx5dv_qp_init_attr dv_attr;
    int err;

    memset(&attr, 0, sizeof(attr));
    attr.qp_type = IBV_QPT_RC;
    attr.send_cq = cq;
    attr.recv_cq = cq;
    attr.cap.max_send_wr = sq_depth;
    attr.cap.max_recv_wr = rq_depth;
    attr.cap.max_send_sge = MCA_BTL_UMR_QP_DATA == kind ? mca_btl_umr_write_pieces(device) : 1;
    attr.cap.max_recv_sge = 1;
    if (MCA_BTL_UMR_QP_DATA == kind && NULL != hca->receives.srq) {
        attr.srq = hca->receives.srq;
        attr.recv_cq = hca->receives.cq;
        attr.cap.max_recv_wr = 0;
        attr.cap.max_recv_sge = 0;
    }
    attr.pd = device->pd;
    attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;

    memset(&dv_attr, 0, sizeof(dv_attr));
    /* An indirect mkey cannot be combined with scatter of data to the completion. */
    dv_attr.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS;
    dv_attr.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE;

    if (MCA_BTL_UMR_QP_RDMA == kind) {
        attr.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ
                              | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD
                              | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP;
    }
    if (MCA_BTL_UMR_QP_UMR == kind) {
        attr.send_ops_flags |= IBV_QP_EX_WITH_LOCAL_INV;
        attr.cap.max_inline_data = *inline_bytes;
        dv_attr.comp_mask |= MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS;
        /* With MKEY_CONFIGURE alone rdma-core 44 makes the slots smaller than it permits later. */
        dv_attr.send_ops_flags = MLX5DV_QP_EX_WITH_MKEY_CONFIGURE | MLX5DV_QP_EX_WITH_MR_LIST
                                 | MLX5DV_QP_EX_WITH_MR_INTERLEAVED;
        if (hca->mkeys.raw) {
            dv_attr.send_ops_flags |= MLX5DV_QP_EX_WITH_RAW_WQE;
        }
    }

    memset(sq, 0, sizeof(*sq));
    errno = 0;
    sq->qp = device->mlx5 ? mlx5dv_create_qp(device->context, &attr, &dv_attr)
                          : ibv_create_qp_ex(device->context, &attr);
    if (NULL == sq->qp) {
        return 0 != errno ? errno : EIO;
    }
    sq->depth = sq_depth;
    sq->qpx = ibv_qp_to_qp_ex(sq->qp);
    sq->mqpx = device->mlx5 ? mlx5dv_qp_ex_from_ibv_qp_ex(sq->qpx) : NULL;
    err = qp_to_init(device, kind, sq->qp);
    if (0 != err) {
        mca_btl_umr_qp_destroy(hca, sq);
        return err;
    }
    if (NULL != inline_bytes) {
        *inline_bytes = attr.cap.max_inline_data;
    }
    return 0;
}

int mca_btl_umr_qp_connect(const mca_btl_umr_device_t *device, struct ibv_qp *qp,
                           const mca_btl_umr_route_t *route, uint32_t peer_qpn, uint32_t peer_psn,
                           uint32_t psn)
{
    struct ibv_qp_attr attr;
    int err;

    memset(&attr, 0, sizeof(attr));
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = (enum ibv_mtu) route->mtu;
    attr.dest_qp_num = peer_qpn;
    attr.rq_psn = peer_psn & 0xffffff;
    attr.max_dest_rd_atomic = 0 < route->reads_in ? route->reads_in : 1;
    attr.min_rnr_timer = 12;
    attr.ah_attr.port_num = device->port;
    attr.ah_attr.dlid = route->lid;
    attr.ah_attr.sl = device->service_level;
    if (IBV_LINK_LAYER_ETHERNET == device->port_attr.link_layer
        || 0 != (device->port_attr.flags & IBV_QPF_GRH_REQUIRED)) {
        attr.ah_attr.is_global = 1;
        attr.ah_attr.grh.dgid = route->gid;
        attr.ah_attr.grh.sgid_index = device->gid_index;
        attr.ah_attr.grh.hop_limit = 64;
        attr.ah_attr.grh.traffic_class = device->traffic_class;
    }
    err = ibv_modify_qp(qp, &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN
                            | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (0 != err) {
        return err;
    }

    memset(&attr, 0, sizeof(attr));
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = (uint8_t) mca_btl_umr_params.timeout;
    attr.retry_cnt = (uint8_t) mca_btl_umr_params.retry_count;
    attr.rnr_retry = 7;
    attr.sq_psn = psn & 0xffffff;
    attr.max_rd_atomic = 0 < route->reads_out ? route->reads_out : 1;
    return ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY
                             | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

void mca_btl_umr_qp_route_self(const mca_btl_umr_device_t *device, mca_btl_umr_route_t *route)
{
    unsigned int mtu = device->port_attr.active_mtu;

    if (0 != mca_btl_umr_params.mtu) {
        unsigned int wanted = IBV_MTU_256;

        while ((128u << wanted) < mca_btl_umr_params.mtu) {
            ++wanted;
        }
        mtu = wanted < mtu ? wanted : mtu;
    }
    memset(route, 0, sizeof(*route));
    route->lid = device->port_attr.lid;
    route->gid = device->gid;
    route->mtu = (uint8_t) mtu;
}

int mca_btl_umr_qp_connect_self(const mca_btl_umr_device_t *device, struct ibv_qp *qp)
{
    mca_btl_umr_route_t route;

    mca_btl_umr_qp_route_self(device, &route);
    return mca_btl_umr_qp_connect(device, qp, &route, qp->qp_num, 0, 0);
}

int mca_btl_umr_qp_probe(mca_btl_umr_sq_t *sq, uint32_t index)
{
    uint32_t seq;

    ibv_wr_start(sq->qpx);
    sq->qpx->wr_flags = mca_btl_umr_sq_next(sq, true, &seq);
    sq->qpx->wr_id = MCA_BTL_UMR_WR_ID(index, seq);
    ibv_wr_rdma_write(sq->qpx, 0, 0);
    ibv_wr_set_sge_list(sq->qpx, 0, NULL);
    return ibv_wr_complete(sq->qpx);
}

int mca_btl_umr_qp_post_receives(struct ibv_qp *qp, uint64_t wr_id, uint32_t count)
{
    struct ibv_recv_wr wr, *bad;

    memset(&wr, 0, sizeof(wr));
    wr.wr_id = wr_id;
    for (uint32_t i = 0; i < count; ++i) {
        int err = ibv_post_recv(qp, &wr, &bad);

        if (0 != err) {
            return err;
        }
    }
    return 0;
}

uint64_t mca_btl_umr_qp_bytes(struct ibv_qp *qp)
{
    const uint64_t page = 4096;
    struct mlx5dv_qp raw = {.comp_mask = 0};
    struct mlx5dv_obj obj = {.qp = {.in = qp, .out = &raw}};
    uint64_t queues;

    if (0 != mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP)) {
        return 0;
    }
    /* Slots in memory that the device reads, in whole pages; plus libmlx5's data for each slot. */
    queues = (uint64_t) raw.sq.wqe_cnt * raw.sq.stride + (uint64_t) raw.rq.wqe_cnt * raw.rq.stride;
    return (queues + page - 1) / page * page
           + raw.sq.wqe_cnt * (sizeof(uint64_t) + 2 * sizeof(uint32_t))
           + raw.rq.wqe_cnt * sizeof(uint64_t) + MCA_BTL_UMR_QP_BYTES;
}

uint64_t mca_btl_umr_cq_bytes(struct ibv_cq *cq)
{
    struct mlx5dv_cq raw = {.comp_mask = 0};
    struct mlx5dv_obj obj = {.cq = {.in = cq, .out = &raw}};

    return 0 == mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ) ? (uint64_t) raw.cqe_cnt * raw.cqe_size : 0;
}

void mca_btl_umr_qp_destroy(mca_btl_umr_hca_t *hca, mca_btl_umr_sq_t *sq)
{
    if (NULL != sq->qp) {
        int err = ibv_destroy_qp(sq->qp);

        if (0 != err) {
            MCA_BTL_UMR_LOG(hca, "a queue pair cannot be destroyed: %s", strerror(err));
        }
    }
    memset(sq, 0, sizeof(*sq));
}
