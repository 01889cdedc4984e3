/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "verbs_end.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

const char *end_case = "start";

void end_start(char **argv, const char *options)
{
    const char *wrapper = getenv("UMRDDT_SIM_WRAPPER");
    char *args[16] = {(char *) (NULL != wrapper ? wrapper : "../../sim/connectx/umrddt_sim")};
    int i;

    if (NULL != getenv("UMRDDT_SIM_TEST")) {
        alarm(END_HANG_SECONDS);
        return;
    }
    CHECK(0 == setenv("UMRDDT_SIM_TEST", "1", 1));
    if (NULL != options) {
        CHECK(0 == setenv("UMRDDT_SIM", options, 1));
    }
    for (i = 0; NULL != argv[i] && i < 14; i++) {
        args[i + 1] = argv[i];
    }
    args[i + 1] = NULL;
    execvp(args[0], args);
    perror(args[0]);
    exit(99);
}

static uint64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}

void end_open(struct end *end, const struct end_options *options)
{
    static const struct end_options usual;
    struct ibv_qp_init_attr_ex attr = {0};
    struct mlx5dv_qp_init_attr dv = {0};
    struct ibv_port_attr port;
    struct ibv_device_attr device;

    options = NULL == options ? &usual : options;
    memset(end, 0, sizeof(*end));
    if (NULL != options->share) {
        end->context = options->share->context;
        end->pd = options->share->pd;
    } else {
        struct mlx5dv_context_attr devx = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
        struct ibv_device **list;
        int count;

        list = ibv_get_device_list(&count);
        CHECK(NULL != list && options->device < count);
        for (int i = 0; i < count; i++) {
            char name[16];

            snprintf(name, sizeof(name), "mlx5_%d", options->device);
            if (0 == strcmp(name, ibv_get_device_name(list[i]))) {
                CHECK(mlx5dv_is_supported(list[i]));
                end->context = mlx5dv_open_device(list[i], &devx);
            }
        }
        CHECK(NULL != end->context);
        ibv_free_device_list(list);
        end->pd = ibv_alloc_pd(end->context);
        CHECK(NULL != end->pd);
    }
    if (options->channel) {
        end->channel = ibv_create_comp_channel(end->context);
        CHECK(NULL != end->channel);
    }
    end->cq =
        ibv_create_cq(end->context, 0 == options->cqes ? 256 : options->cqes, end, end->channel, 0);
    CHECK(NULL != end->cq);

    attr.qp_type = IBV_QPT_RC;
    attr.send_cq = end->cq;
    attr.recv_cq = end->cq;
    attr.pd = end->pd;
    attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM
                          | IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ
                          | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_SEND_WITH_INV
                          | IBV_QP_EX_WITH_LOCAL_INV;
    CHECK(0 == ibv_query_device(end->context, &device));
    if (IBV_ATOMIC_NONE != device.atomic_cap) {
        attr.send_ops_flags |=
            IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
    }
    attr.cap.max_send_wr = 0 == options->send_wr ? 32 : options->send_wr;
    attr.srq = options->srq;
    attr.cap.max_recv_wr = 0 == options->recv_wr ? 32 : options->recv_wr;
    attr.cap.max_send_sge = 4;
    attr.cap.max_recv_sge = 4;
    attr.cap.max_inline_data = 0 == options->max_inline ? 828 : options->max_inline;
    dv.comp_mask =
        MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS | MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS;
    dv.send_ops_flags = MLX5DV_QP_EX_WITH_MKEY_CONFIGURE | MLX5DV_QP_EX_WITH_MR_LIST
                        | MLX5DV_QP_EX_WITH_MR_INTERLEAVED | MLX5DV_QP_EX_WITH_RAW_WQE;
    dv.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE;
    end->qp = mlx5dv_create_qp(end->context, &attr, &dv);
    CHECK(NULL != end->qp);
    end->max_inline = attr.cap.max_inline_data;
    end->qpx = ibv_qp_to_qp_ex(end->qp);
    end->mqp = mlx5dv_qp_ex_from_ibv_qp_ex(end->qpx);

    CHECK(0 == ibv_query_port(end->context, 1, &port));
    end->name.qpn = end->qp->qp_num;
    end->name.psn = end->qp->qp_num * 2654435761u & 0xffffff;
    end->name.lid = port.lid;
    CHECK(0 == ibv_query_gid(end->context, 1, 0, &end->name.gid));
}

void end_to_init(struct end *end, const struct end_options *options)
{
    struct ibv_qp_attr attr = {0};

    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qp_access_flags = NULL != options && 0 != options->access
                               ? options->access
                               : IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE
                                     | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    CHECK(0
          == ibv_modify_qp(end->qp, &attr,
                           IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
}

void end_to_rtr(struct end *end, const struct end_name *peer, const struct end_options *options)
{
    struct ibv_qp_attr attr = {0};

    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_4096;
    attr.dest_qp_num = peer->qpn;
    attr.rq_psn = peer->psn;
    attr.max_dest_rd_atomic = NULL == options || 0 == options->dest_reads ? 4 : options->dest_reads;
    attr.min_rnr_timer = 1;
    attr.ah_attr.port_num = 1;
    if (0 == peer->lid) {
        attr.ah_attr.is_global = 1;
        attr.ah_attr.grh.dgid = peer->gid;
        attr.ah_attr.grh.hop_limit = 1;
    } else {
        attr.ah_attr.dlid = peer->lid;
    }
    CHECK(0
          == ibv_modify_qp(end->qp, &attr,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN
                               | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
}

void end_to_rts(struct end *end, const struct end_options *options)
{
    struct ibv_qp_attr attr = {0};

    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = NULL == options || 0 == options->timeout ? 8 : options->timeout;
    attr.retry_cnt = 7;
    attr.rnr_retry = NULL == options || 0 == options->rnr_retry ? 2 : options->rnr_retry;
    attr.sq_psn = end->name.psn;
    attr.max_rd_atomic = 4;
    CHECK(0
          == ibv_modify_qp(end->qp, &attr,
                           IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY
                               | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

void end_connect(struct end *end, const struct end_name *peer, const struct end_options *options)
{
    end_to_init(end, options);
    end_to_rtr(end, peer, options);
    end_to_rts(end, options);
}

void end_close(struct end *end)
{
    CHECK(0 == ibv_destroy_qp(end->qp));
    CHECK(0 == ibv_destroy_cq(end->cq));
    if (NULL != end->channel) {
        CHECK(0 == ibv_destroy_comp_channel(end->channel));
    }
}

bool end_poll(struct end *end, struct ibv_wc *wc, int ms)
{
    uint64_t until = now_ms() + (uint64_t) ms;

    memset(wc, 0, sizeof(*wc));
    do {
        int n = ibv_poll_cq(end->cq, 1, wc);

        CHECK(0 <= n);
        if (1 == n) {
            return true;
        }
        sched_yield();
    } while (now_ms() < until);
    return false;
}

void end_expect(struct end *end, uint64_t wr_id, enum ibv_wc_status status)
{
    struct ibv_wc wc;

    CHECK(end_poll(end, &wc, END_LONG_MS));
    if (wc.status != status || wc.wr_id != wr_id) {
        fprintf(stderr, "%s: completion of %llu with '%s', but expected of %llu with '%s'\n",
                end_case, (unsigned long long) wc.wr_id, ibv_wc_status_str(wc.status),
                (unsigned long long) wr_id, ibv_wc_status_str(status));
        exit(1);
    }
}

bool end_has_event(struct end *end, int ms)
{
    struct pollfd p = {end->context->async_fd, POLLIN, 0};

    return 1 == poll(&p, 1, ms);
}

void *end_event(struct end *end, enum ibv_event_type type)
{
    struct ibv_async_event event;
    void *what;

    CHECK(end_has_event(end, END_LONG_MS));
    CHECK(0 == ibv_get_async_event(end->context, &event));
    if (type != event.event_type) {
        fprintf(stderr, "%s: event '%s', but expected '%s'\n", end_case,
                ibv_event_type_str(event.event_type), ibv_event_type_str(type));
        exit(1);
    }
    what = event.element.qp;
    ibv_ack_async_event(&event);
    return what;
}

struct ibv_mr *end_reg(struct end *end, void *addr, size_t length)
{
    struct ibv_mr *mr =
        ibv_reg_mr(end->pd, addr, length,
                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);

    CHECK(NULL != mr);
    return mr;
}

struct mlx5dv_mkey *end_mkey(struct end *end, uint16_t entries)
{
    struct mlx5dv_mkey_init_attr attr = {0};
    struct mlx5dv_mkey *mkey;

    attr.pd = end->pd;
    attr.create_flags =
        MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT | MLX5DV_MKEY_INIT_ATTR_FLAGS_UPDATE_TAG;
    attr.max_entries = entries;
    mkey = mlx5dv_create_mkey(&attr);
    CHECK(NULL != mkey);
    return mkey;
}

#define UMR_WR_ID 0xdada

static void umr_begin(struct end *end, struct mlx5dv_mkey *mkey, unsigned access)
{
    struct mlx5dv_mkey_conf_attr conf = {0};

    ibv_wr_start(end->qpx);
    end->qpx->wr_id = UMR_WR_ID;
    end->qpx->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
    mlx5dv_wr_mkey_configure(end->mqp, mkey, 2, &conf);
    mlx5dv_wr_set_mkey_access_flags(end->mqp, access);
}

static void umr_end(struct end *end, bool wait)
{
    CHECK(0 == ibv_wr_complete(end->qpx));
    if (wait) {
        end_expect(end, UMR_WR_ID, IBV_WC_SUCCESS);
    }
}

void end_umr_list(struct end *end, struct mlx5dv_mkey *mkey, unsigned access, uint16_t count,
                  struct ibv_sge *sge, bool wait)
{
    umr_begin(end, mkey, access);
    mlx5dv_wr_set_mkey_layout_list(end->mqp, count, sge);
    umr_end(end, wait);
}

void end_umr_interleaved(struct end *end, struct mlx5dv_mkey *mkey, unsigned access,
                         uint32_t repeat, uint16_t count, struct mlx5dv_mr_interleaved *data,
                         bool wait)
{
    umr_begin(end, mkey, access);
    mlx5dv_wr_set_mkey_layout_interleaved(end->mqp, repeat, count, data);
    umr_end(end, wait);
}

void end_write(struct end *end, uint64_t wr_id, uint32_t lkey, uint64_t addr, uint32_t length,
               uint32_t rkey, uint64_t raddr, uint32_t imm)
{
    ibv_wr_start(end->qpx);
    end->qpx->wr_id = wr_id;
    end->qpx->wr_flags = IBV_SEND_SIGNALED;
    if (0 == imm) {
        ibv_wr_rdma_write(end->qpx, rkey, raddr);
    } else {
        ibv_wr_rdma_write_imm(end->qpx, rkey, raddr, htobe32(imm));
    }
    ibv_wr_set_sge(end->qpx, lkey, addr, length);
    CHECK(0 == ibv_wr_complete(end->qpx));
}

void end_recv(struct end *end, uint64_t wr_id, uint32_t lkey, void *addr, uint32_t length)
{
    struct ibv_sge sge = {(uint64_t) (uintptr_t) addr, length, lkey};
    struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 0 < length};
    struct ibv_recv_wr *bad;

    CHECK(0 == ibv_post_recv(end->qp, &wr, &bad));
}

int end_fork(int (*child)(int fd), int *pid)
{
    int fd[2];

    CHECK(0 == socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd));
    fflush(NULL);
    *pid = fork();
    CHECK(0 <= *pid);
    if (0 == *pid) {
        close(fd[0]);
        alarm(END_HANG_SECONDS);
        exit(child(fd[1]));
    }
    close(fd[1]);
    return fd[0];
}

void end_wait(int pid)
{
    int status;

    CHECK(pid == waitpid(pid, &status, 0));
    CHECK(WIFEXITED(status) && 0 == WEXITSTATUS(status));
}

void end_report(int fd, const void *data, size_t length)
{
    CHECK((ssize_t) length == send(fd, data, length, MSG_NOSIGNAL));
}

void end_pipe_read(int fd, void *data, size_t length)
{
    struct pollfd p = {fd, POLLIN, 0};
    size_t got = 0;

    while (got < length) {
        ssize_t n;

        CHECK(1 == poll(&p, 1, END_LONG_MS));
        n = read(fd, (char *) data + got, length - got);
        CHECK(0 < n);
        got += (size_t) n;
    }
}
