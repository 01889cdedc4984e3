/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "sim_cmd.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include "sim_engine.h"
#include "sim_here.h"
#include "sim_wire.h"

/* The properties of the device. Sizes are those of a ConnectX-6 where they matter to libmlx5. */
enum {
    MAX_QP = 4095, /* 12 bits of a queue pair's number */
    MAX_CQE = 4194303,
    MAX_SRQ_SGE = 31, /* 512 bytes, one segment for the link */
    VENDOR_ID = 0x02c9,
    PART_ID = 4123,
};

int sim_cmd_get_context(struct sim_ctx *ctx, const struct sim_call *call)
{
    struct mlx5_ib_alloc_ucontext_req_v2 request;
    struct mlx5_ib_alloc_ucontext_resp driver = {0};
    struct ib_uverbs_get_context_resp resp = {0};

    sim_copy(&request, sizeof(request), call->driver_in, call->driver_in_size);
    if (0 <= ctx->async[0] || (!sim.conf.devx && 0 != (request.flags & MLX5_IB_ALLOC_UCTX_DEVX))) {
        return EINVAL;
    }
    if (0 != sim_engine_start()) {
        return EIO;
    }
    if (0 != pipe2(ctx->async, O_CLOEXEC)) {
        return errno;
    }
    /* They are never read. */
    (void) fcntl(ctx->async[1], F_SETFL, O_NONBLOCK);
    ctx->devx = 0 != (request.flags & MLX5_IB_ALLOC_UCTX_DEVX);
    resp.async_fd = (uint32_t) ctx->async[0];
    resp.num_comp_vectors = SIM_COMP_VECTORS;

    driver.qp_tab_size = MAX_QP + 1;
    driver.bf_reg_size = 512;
    driver.tot_bfregs = 0; /* user access regions are allocated one by one */
    driver.cache_line_size = 64;
    driver.max_sq_desc_sz = (uint16_t) sim.conf.max_sq_desc;
    driver.max_rq_desc_sz = 512;
    driver.max_send_wqebb = sim.conf.max_wr;
    driver.max_recv_wr = sim.conf.max_wr;
    driver.max_srq_recv_wr = sim.conf.max_wr;
    driver.num_ports = 1;
#if !UMRDDT_NO_UPDATE_TAG
    driver.comp_mask = MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_MKEY_UPDATE_TAG;
#endif
    driver.response_length = sizeof(driver);
    driver.cqe_version = 1;
    driver.cmds_supp_uhw = MLX5_USER_CMDS_SUPP_UHW_QUERY_DEVICE;
    driver.eth_min_inline = MLX5_USER_INLINE_MODE_NONE;
    driver.log_uar_size = 12;
    driver.num_uars_per_page = 1;
    sim_copy(call->out, call->out_size, &resp, sizeof(resp));
    sim_copy(call->driver_out, call->driver_out_size, &driver, sizeof(driver));
    return 0;
}

static void fill_device(const struct sim_ctx *ctx, struct ib_uverbs_query_device_resp *resp)
{
    memset(resp, 0, sizeof(*resp));
    resp->fw_ver = 20ull << 32 | 99ull << 16 | sim.conf.fw;
    resp->node_guid = htobe64(sim_here_guid(&sim.conf, ctx->device));
    resp->sys_image_guid = resp->node_guid;
    resp->max_mr_size = UINT64_MAX;
    resp->page_size_cap = 0xfffffffffffff000ull;
    resp->vendor_id = VENDOR_ID;
    resp->vendor_part_id = PART_ID;
    resp->device_cap_flags =
        IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_MEM_MGT_EXTENSIONS;
    resp->max_qp = MAX_QP;
    resp->max_qp_wr = (int) sim.conf.max_wr;
    resp->max_sge = (int) sim.conf.max_sge;
    resp->max_sge_rd = (int) sim.conf.max_sge;
    resp->max_cq = 65408;
    resp->max_cqe = MAX_CQE;
    resp->max_mr = 65536;
    resp->max_pd = 65536;
    resp->max_qp_rd_atom = 16;
    resp->max_qp_init_rd_atom = 16;
    resp->max_res_rd_atom = 16 * MAX_QP;
    resp->atomic_cap = sim.conf.atomics ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE;
    resp->max_srq = (int) sim.conf.srqs;
    resp->max_srq_wr = 0 < sim.conf.srqs ? (int) sim.conf.max_wr - 1 : 0;
    resp->max_srq_sge = 0 < sim.conf.srqs ? MAX_SRQ_SGE : 0;
    resp->max_pkeys = sim.conf.ports[ctx->device].pkeys;
    resp->local_ca_ack_delay = 16;
    resp->phys_port_cnt = 1;
}

int sim_cmd_query_device(struct sim_ctx *ctx, const struct sim_call *call)
{
    struct ib_uverbs_query_device_resp resp;

    fill_device(ctx, &resp);
    sim_copy(call->out, call->out_size, &resp, sizeof(resp));
    return 0;
}

int sim_cmd_query_device_ex(struct sim_ctx *ctx, const struct sim_call *call)
{
    struct ib_uverbs_ex_query_device_resp resp = {0};
    struct mlx5_ib_query_device_resp driver = {0};

    fill_device(ctx, &resp.base);
    resp.response_length = sizeof(resp);
    /* Completions are stamped with nanoseconds. */
    resp.timestamp_mask = UINT64_MAX;
    resp.hca_core_clock = 1000000;
    driver.response_length = sizeof(driver);
    sim_copy(call->out, call->out_size, &resp, sizeof(resp));
    sim_copy(call->driver_out, call->driver_out_size, &driver, sizeof(driver));
    return 0;
}

int sim_cmd_query_port(struct sim_ctx *ctx, const struct sim_call *call)
{
    struct ib_uverbs_query_port request;
    struct ib_uverbs_query_port_resp resp = {0};
    const struct sim_port *port = &sim.conf.ports[ctx->device];

    sim_copy(&request, sizeof(request), call->in, call->in_size);
    if (1 != request.port_num) {
        return EINVAL;
    }
    resp.max_msg_sz = 1u << sim.conf.log_max_msg;
    resp.gid_tbl_len = port->gids;
    resp.pkey_tbl_len = port->pkeys;
    resp.state = ctx->device + 1 == sim.conf.down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
    resp.max_mtu = IBV_MTU_4096;
    resp.active_mtu = IBV_MTU_4096;
    resp.max_vl_num = 1;
    resp.active_width = port->width;
    resp.active_speed = port->speed;
    resp.phys_state = IBV_PORT_DOWN == resp.state ? 3 : 5; /* disabled; link up */
    if (port->eth) {
        resp.link_layer = IBV_LINK_LAYER_ETHERNET;
    } else {
        resp.link_layer = IBV_LINK_LAYER_INFINIBAND;
        resp.lid = sim_here_lid(&sim.conf, ctx->device);
        resp.sm_lid = 1;
    }
    sim_copy(call->out, call->out_size, &resp, sizeof(resp));
    return 0;
}
