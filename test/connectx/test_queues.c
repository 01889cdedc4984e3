/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Queues that overflow, and work requests that no HCA takes. */

#include "verbs_pair.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

static void queue_overflow(void)
{
    struct mlx5dv_qp raw = {0};
    struct mlx5dv_obj obj = {0};
    struct ibv_wc wc;
    struct pair p;

    pair_make(&p, NULL);
    obj.qp.in = p.a.qp;
    obj.qp.out = &raw;
    CHECK(0 == mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP));
    /* A doorbell beyond the size of the queue. */
    raw.dbrec[MLX5_SND_DBR] = htobe32(raw.sq.wqe_cnt + 1);
    CHECK(end_poll(&p.a, &wc, END_LONG_MS));
    CHECK(IBV_WC_LOC_QP_OP_ERR == wc.status);
    pair_unmake(&p);
}

static void cq_overrun(void)
{
    struct end_options options = {.cqes = 3};
    struct ibv_wc wc;
    struct pair p;
    int i;

    pair_make(&p, &options);
    for (i = 0; i < 8; i++) {
        end_write(&p.a, (uint64_t) i, p.src->lkey, (uintptr_t) pair_src, 8, p.dst->rkey,
                  (uintptr_t) pair_dst, 0);
    }
    for (i = 0; i < END_LONG_MS / 10 && IBV_QPS_ERR != pair_state(&p.a); i++) {
        usleep(10000);
    }
    CHECK(IBV_QPS_ERR == pair_state(&p.a));
    for (i = 0; i < 4; i++) {
        end_expect(&p.a, (uint64_t) i, IBV_WC_SUCCESS);
    }
    CHECK(!end_poll(&p.a, &wc, 50));
    pair_unmake(&p);
}

static void bad_cq(void)
{
    struct ibv_device_attr attr;
    struct pair p;

    pair_make(&p, NULL);
    CHECK(1 == p.a.context->num_comp_vectors);
    CHECK(NULL == ibv_create_cq(p.a.context, 8, NULL, NULL, 1) && EINVAL == errno);
    CHECK(NULL == ibv_create_cq(p.a.context, 8, NULL, NULL, -1) && EINVAL == errno);
    CHECK(0 == ibv_query_device(p.a.context, &attr));
    CHECK(NULL == ibv_create_cq(p.a.context, attr.max_cqe + 1, NULL, NULL, 0) && EINVAL == errno);
    pair_unmake(&p);
}

static void unknown_operation(void)
{
    struct mlx5_wqe_ctrl_seg wqe[4] = {0};
    struct pair p;

    pair_make(&p, NULL);
    mlx5dv_set_ctrl_seg(&wqe[0], 0, MLX5_OPCODE_LOCAL_INVAL, 0, p.a.qp->qp_num, 0, 4, 0, 0);
    ibv_wr_start(p.a.qpx);
    p.a.qpx->wr_id = 5;
    p.a.qpx->wr_flags = IBV_SEND_SIGNALED;
    mlx5dv_wr_raw_wqe(p.a.mqp, wqe);
    CHECK(0 == ibv_wr_complete(p.a.qpx));
    end_expect(&p.a, 5, IBV_WC_LOC_QP_OP_ERR);
    pair_unmake(&p);
}

static void inline_data(void)
{
    struct pair p;

    pair_make(&p, NULL);
    ibv_wr_start(p.a.qpx);
    p.a.qpx->wr_id = 1;
    p.a.qpx->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
    ibv_wr_rdma_write(p.a.qpx, p.dst->rkey, (uintptr_t) pair_dst);
    ibv_wr_set_inline_data(p.a.qpx, pair_src, 800);
    CHECK(0 == ibv_wr_complete(p.a.qpx));
    end_expect(&p.a, 1, IBV_WC_SUCCESS);
    CHECK(0 == memcmp(pair_src, pair_dst, 800) && 0xa5 == pair_dst[800]);
    ibv_wr_start(p.a.qpx);
    ibv_wr_rdma_write(p.a.qpx, p.dst->rkey, (uintptr_t) pair_dst);
    ibv_wr_set_inline_data(p.a.qpx, pair_src, p.a.max_inline + 1);
    CHECK(ENOMEM == ibv_wr_complete(p.a.qpx));
    pair_unmake(&p);
}

static const struct pair_case cases[] = {
    {"send queue overflow", queue_overflow},
    {"completion queue overrun", cq_overrun},
    {"refused completion queues", bad_cq},
    {"unknown operation", unknown_operation},
    {"inline data", inline_data},
};

int main(int argc, char **argv)
{
    return pair_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
