/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The effects of the options of the software ConnectX. Every line of the table runs this program
 * again, below an HCA with those options.
 */

#include "verbs_end.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <time.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096u
#define ALL  (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static uint8_t *src;
static uint8_t *dst;
static struct end a;
static struct end b;
static struct ibv_mr *src_mr;
static struct ibv_mr *dst_mr;

/* Two connected ends of this process, on different devices if there are two. */
static void make(int device_b, uint32_t max_inline)
{
    struct end_options at_a = {.max_inline = max_inline};
    struct end_options at_b = {.max_inline = max_inline, .device = device_b};
    size_t i;

    for (i = 0; i < PAGE; i++) {
        src[i] = (uint8_t) (i * 2654435761u >> 9);
    }
    memset(dst, 0xa5, PAGE);
    end_open(&a, &at_a);
    end_open(&b, &at_b);
    end_connect(&a, &b.name, NULL);
    end_connect(&b, &a.name, NULL);
    src_mr = end_reg(&a, src, PAGE);
    dst_mr = end_reg(&b, dst, PAGE);
}

static struct mlx5dv_mkey *try_mkey(struct end *end, uint16_t entries)
{
    struct mlx5dv_mkey_init_attr attr = {.pd = end->pd,
                                         .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
                                         .max_entries = entries};

    errno = 0;
    return mlx5dv_create_mkey(&attr);
}

/* The 8 bytes at 0, 16, 32 ... of src through a list. */
static void list16(struct mlx5dv_mkey *mkey, uint16_t count)
{
    struct ibv_sge sge[64];
    uint16_t i;

    for (i = 0; i < count; i++) {
        sge[i] = (struct ibv_sge){(uintptr_t) src + 16u * i, 8, src_mr->lkey};
    }
    end_umr_list(&a, mkey, ALL, count, sge, true);
}

static void plain(void)
{
    make(0, 0);
    list16(end_mkey(&a, 8), 8);
}

/* Gather and scatter of all sizes of a page. */
static void plain_copy(void)
{
    struct mlx5dv_mkey *mkey;
    uint32_t length;
    int i;

    make(0, 0);
    mkey = end_mkey(&a, 8);
    list16(mkey, 8);
    end_write(&a, 1, mkey->lkey, 0, 64, dst_mr->rkey, (uintptr_t) dst, 0);
    end_expect(&a, 1, IBV_WC_SUCCESS);
    for (i = 0; i < 8; i++) {
        CHECK(0 == memcmp(dst + 8 * i, src + 16 * i, 8));
    }
    for (length = 1; length <= PAGE; length += 455) {
        memset(dst, 0xa5, PAGE);
        end_write(&a, 1, src_mr->lkey, (uintptr_t) src, length, dst_mr->rkey, (uintptr_t) dst, 0);
        end_expect(&a, 1, IBV_WC_SUCCESS);
        CHECK(0 == memcmp(dst, src, length) && (PAGE == length || 0xa5 == dst[length]));
    }
}

/* A bad address is a completion with an error, with either method of copying. */
static void gone_memory(void)
{
    uint8_t *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *mr;

    CHECK(MAP_FAILED != page);
    make(0, 0);
    mr = end_reg(&b, page, PAGE);
    CHECK(0 == munmap(page, PAGE));
    end_write(&a, 1, src_mr->lkey, (uintptr_t) src, 64, mr->rkey, (uintptr_t) page, 0);
    end_expect(&a, 1, IBV_WC_REM_OP_ERR);
    end_open(&a, NULL);
    end_open(&b, NULL);
    end_connect(&a, &b.name, NULL);
    end_connect(&b, &a.name, NULL);
    src_mr = end_reg(&a, src, PAGE);
    dst_mr = end_reg(&b, dst, PAGE);
    end_write(&a, 2, src_mr->lkey, (uintptr_t) src, PAGE, dst_mr->rkey, (uintptr_t) dst, 0);
    end_expect(&a, 2, IBV_WC_SUCCESS);
    CHECK(0 == memcmp(dst, src, PAGE));
}

/* Small work requests leave room for 4 entries. */
static void four_entries(void)
{
    struct mlx5dv_mkey_conf_attr conf = {0};
    struct mlx5dv_mkey *mkey;
    struct ibv_sge sge[5];
    int i;

    make(0, 60);
    CHECK(60 == a.max_inline);
    mkey = end_mkey(&a, 8);
    list16(mkey, 4);
    for (i = 0; i < 5; i++) {
        sge[i] = (struct ibv_sge){(uintptr_t) src, 8, src_mr->lkey};
    }
    ibv_wr_start(a.qpx);
    a.qpx->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
    mlx5dv_wr_mkey_configure(a.mqp, mkey, 2, &conf);
    mlx5dv_wr_set_mkey_access_flags(a.mqp, ALL);
    mlx5dv_wr_set_mkey_layout_list(a.mqp, 5, sge);
    CHECK(ENOMEM == ibv_wr_complete(a.qpx));
}

static void umr_off(void)
{
    make(0, 0);
    CHECK(NULL == try_mkey(&a, 4) && 0 != errno);
    end_write(&a, 1, src_mr->lkey, (uintptr_t) src, 64, dst_mr->rkey, (uintptr_t) dst, 0);
    end_expect(&a, 1, IBV_WC_SUCCESS);
}

/* Everything completes, and the received data is wrong; plain keys stay right. */
static void umr_broken(void)
{
    struct mlx5dv_mkey *mkey;
    int i;

    make(0, 0);
    mkey = end_mkey(&a, 4);
    list16(mkey, 4);
    end_write(&a, 1, mkey->lkey, 0, 32, dst_mr->rkey, (uintptr_t) dst, 0);
    end_expect(&a, 1, IBV_WC_SUCCESS);
    for (i = 0; i < 4; i++) {
        CHECK(0 != memcmp(dst + 8 * i, src + 16 * i, 8));
    }
    end_write(&a, 1, src_mr->lkey, (uintptr_t) src, 64, dst_mr->rkey, (uintptr_t) dst, 0);
    end_expect(&a, 1, IBV_WC_SUCCESS);
    CHECK(0 == memcmp(dst, src, 64));
}

static void two_mkeys(void)
{
    struct mlx5dv_mkey *first;

    make(0, 0);
    first = end_mkey(&a, 4);
    end_mkey(&a, 4);
    CHECK(NULL == try_mkey(&a, 4) && ENOMEM == errno);
    CHECK(0 == mlx5dv_destroy_mkey(first));
    end_mkey(&a, 4);
}

static void small_mkeys(void)
{
    make(0, 0);
    end_mkey(&a, 16);
    CHECK(NULL == try_mkey(&a, 17) && 0 != errno);
}

/* Gather through @p depth mkeys, each over the one before, into dst. */
static void through(int depth, enum ibv_wc_status status)
{
    struct ibv_sge sge = {(uintptr_t) src, 64, src_mr->lkey};
    struct mlx5dv_mkey *mkey = NULL;

    for (int i = 0; i < depth; i++) {
        mkey = end_mkey(&a, 4);
        end_umr_list(&a, mkey, ALL, 1, &sge, true);
        sge = (struct ibv_sge){0, 64, mkey->lkey};
    }
    end_write(&a, 1, mkey->lkey, 0, 64, dst_mr->rkey, (uintptr_t) dst, 0);
    end_expect(&a, 1, status);
}

static void one_level(void)
{
    make(0, 0);
    through(1, IBV_WC_SUCCESS);
    through(2, IBV_WC_LOC_PROT_ERR);
}

static void two_levels(void)
{
    make(0, 0);
    through(2, IBV_WC_SUCCESS);
    through(3, IBV_WC_LOC_PROT_ERR);
}

/* A queue pair with so many data segments, or NULL. */
static struct ibv_qp *try_qp(uint32_t send_sge, uint32_t recv_sge, uint32_t recv_wr)
{
    struct ibv_qp_init_attr_ex attr = {.send_cq = a.cq,
                                       .recv_cq = a.cq,
                                       .qp_type = IBV_QPT_RC,
                                       .pd = a.pd,
                                       .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE};

    /* Other operations take more of a work request. */
    attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.cap.max_send_wr = 1;
    attr.cap.max_send_sge = send_sge;
    attr.cap.max_recv_wr = recv_wr;
    attr.cap.max_recv_sge = recv_sge;
    errno = 0;
    return ibv_create_qp_ex(a.context, &attr);
}

/* Data segments: the limit that the device reports, that of queue pairs, and the accepted number.
 */
static void segments(int most, uint32_t max_inline)
{
    struct {
        struct mlx5_wqe_ctrl_seg ctrl;
        struct mlx5_wqe_raddr_seg raddr;
        struct mlx5_wqe_data_seg data[5];
    } wqe;
    struct ibv_device_attr attr;
    struct ibv_sge sge[4];
    struct ibv_qp *qp;
    int i;

    make(0, max_inline);
    CHECK(0 == ibv_query_device(a.context, &attr) && most == attr.max_sge);
    qp = try_qp((uint32_t) most, (uint32_t) most, 1);
    CHECK(NULL != qp && 0 == ibv_destroy_qp(qp));
    CHECK(NULL == try_qp((uint32_t) most + 1, 1, 1) && EINVAL == errno);
    CHECK(NULL == try_qp(1, (uint32_t) most + 1, 1) && EINVAL == errno);

    for (i = 0; i < 4; i++) {
        sge[i] = (struct ibv_sge){(uintptr_t) src + 100u * (unsigned) i, 7, src_mr->lkey};
    }
    ibv_wr_start(a.qpx);
    a.qpx->wr_id = 1;
    a.qpx->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write(a.qpx, dst_mr->rkey, (uintptr_t) dst);
    ibv_wr_set_sge_list(a.qpx, 4, sge);
    CHECK(0 == ibv_wr_complete(a.qpx));
    end_expect(&a, 1, IBV_WC_SUCCESS);
    for (i = 0; i < 4; i++) {
        CHECK(0 == memcmp(dst + 7 * i, src + 100 * i, 7));
    }
    if (4 < most) {
        return;
    }
    /* One that libmlx5 would not have written. */
    memset(&wqe, 0, sizeof(wqe));
    mlx5dv_set_ctrl_seg(&wqe.ctrl, 0, MLX5_OPCODE_RDMA_WRITE, 0, a.qp->qp_num,
                        MLX5_WQE_CTRL_CQ_UPDATE, sizeof(wqe) / 16, 0, 0);
    wqe.raddr.raddr = htobe64((uintptr_t) dst + 1024);
    wqe.raddr.rkey = htobe32(dst_mr->rkey);
    for (i = 0; i < 5; i++) {
        mlx5dv_set_data_seg(&wqe.data[i], 7, src_mr->lkey, (uintptr_t) src);
    }
    ibv_wr_start(a.qpx);
    a.qpx->wr_id = 2;
    a.qpx->wr_flags = IBV_SEND_SIGNALED;
    mlx5dv_wr_raw_wqe(a.mqp, &wqe);
    CHECK(0 == ibv_wr_complete(a.qpx));
    end_expect(&a, 2, IBV_WC_LOC_QP_OP_ERR);
    CHECK(0xa5 == dst[1024]);
}

static void thirty_segments(void)
{
    segments(30, 0);
}

static void fourteen_segments(void)
{
    segments(14, 60);
}

static void four_segments(void)
{
    segments(4, 0);
}

static void short_queues(void)
{
    struct ibv_device_attr attr;

    /* Work requests of 1 KiB are 16 blocks each. */
    end_open(&a, &(struct end_options){.send_wr = 4});
    CHECK(828 == a.max_inline);
    CHECK(0 == ibv_query_device(a.context, &attr) && 64 == attr.max_qp_wr);
    CHECK(NULL != try_qp(1, 1, 64));
    CHECK(NULL == try_qp(1, 1, 65));
}

static void short_messages(void)
{
    struct ibv_port_attr port;
    const uint32_t most = 65536;
    uint8_t *large = calloc(2, most);
    struct ibv_mr *from;
    struct ibv_mr *to;

    CHECK(NULL != large);
    make(0, 0);
    CHECK(0 == ibv_query_port(a.context, 1, &port) && most == port.max_msg_sz);
    from = end_reg(&a, large, 2u * most);
    to = end_reg(&b, large, 2u * most);
    end_write(&a, 1, from->lkey, (uintptr_t) large, most - 1, to->rkey, (uintptr_t) large, 0);
    end_expect(&a, 1, IBV_WC_SUCCESS);
    end_write(&a, 2, from->lkey, (uintptr_t) large, most, to->rkey, (uintptr_t) large + most, 0);
    end_expect(&a, 2, IBV_WC_SUCCESS);
    end_write(&a, 3, from->lkey, (uintptr_t) large, most + 1, to->rkey, (uintptr_t) large, 0);
    end_expect(&a, 3, IBV_WC_LOC_LEN_ERR);
}

static void three_qps(void)
{
    struct ibv_qp *third;

    make(0, 0);
    third = try_qp(1, 1, 1);
    CHECK(NULL != third);
    CHECK(NULL == try_qp(1, 1, 1) && ENOMEM == errno);
    CHECK(0 == ibv_destroy_qp(third));
    CHECK(NULL != try_qp(1, 1, 1));
}

static struct ibv_srq *try_srq(void)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 8, .max_sge = 1}};

    errno = 0;
    return ibv_create_srq(a.pd, &attr);
}

static void two_srqs(void)
{
    struct ibv_device_attr attr;
    struct ibv_srq *first;

    make(0, 0);
    CHECK(0 == ibv_query_device(a.context, &attr) && 2 == attr.max_srq);
    first = try_srq();
    CHECK(NULL != first && NULL != try_srq());
    CHECK(NULL == try_srq() && ENOMEM == errno);
    CHECK(0 == ibv_destroy_srq(first));
    CHECK(NULL != try_srq());
}

static void no_srq(void)
{
    struct ibv_device_attr attr;

    make(0, 0);
    CHECK(0 == ibv_query_device(a.context, &attr) && 0 == attr.max_srq && 0 == attr.max_srq_wr);
    CHECK(NULL == try_srq() && EOPNOTSUPP == errno);
}

/* The device says so, and libmlx5 posts none. */
static void no_atomics(void)
{
    struct ibv_sge sge;
    struct ibv_send_wr wr = {.wr_id = 1,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                             .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    struct ibv_device_attr attr;

    make(0, 0);
    CHECK(0 == ibv_query_device(a.context, &attr) && IBV_ATOMIC_NONE == attr.atomic_cap);
    sge = (struct ibv_sge){(uintptr_t) src, 8, src_mr->lkey};
    wr.wr.atomic.remote_addr = (uintptr_t) dst;
    wr.wr.atomic.rkey = dst_mr->rkey;
    wr.wr.atomic.compare_add = 1;
    CHECK(EOPNOTSUPP == ibv_post_send(a.qp, &wr, &bad));
}

static void two_mrs(void)
{
    make(0, 0);
    CHECK(NULL == ibv_reg_mr(a.pd, src, 8, 0) && ENOMEM == errno);
    CHECK(0 == ibv_dereg_mr(src_mr));
    CHECK(NULL != ibv_reg_mr(a.pd, src, 8, 0));
}

static void few_bytes(void)
{
    make(0, 0);
    CHECK(NULL == ibv_reg_mr(a.pd, src, 809, 0) && ENOMEM == errno);
    CHECK(NULL != ibv_reg_mr(a.pd, src, 808, 0));
    CHECK(NULL == ibv_reg_mr(a.pd, src, 1, 0) && ENOMEM == errno);
}

static void third_write(void)
{
    int i;

    make(0, 0);
    for (i = 1; i < 3; i++) {
        end_write(&a, (uint64_t) i, src_mr->lkey, (uintptr_t) src, 64, dst_mr->rkey,
                  (uintptr_t) dst, 0);
        end_expect(&a, (uint64_t) i, IBV_WC_SUCCESS);
    }
    end_write(&a, 3, src_mr->lkey, (uintptr_t) src, 64, dst_mr->rkey, (uintptr_t) dst, 0);
    end_expect(&a, 3, IBV_WC_REM_ACCESS_ERR);
    end_write(&a, 4, src_mr->lkey, (uintptr_t) src, 64, dst_mr->rkey, (uintptr_t) dst, 0);
    end_expect(&a, 4, IBV_WC_WR_FLUSH_ERR);
}

/** A write with immediate data, which takes a receive. */
static void notify(uint64_t wr_id)
{
    end_recv(&b, wr_id, 0, NULL, 0);
    end_write(&a, wr_id, src_mr->lkey, (uintptr_t) src, 64, dst_mr->rkey, (uintptr_t) dst,
              (uint32_t) wr_id);
}

/* The second one succeeds at both sides, and the following ones find no peer. */
static void deaf_after_two(void)
{
    uint64_t i;

    make(0, 0);
    for (i = 1; i < 3; i++) {
        notify(i);
        end_expect(&a, i, IBV_WC_SUCCESS);
        end_expect(&b, i, IBV_WC_SUCCESS);
    }
    CHECK(b.qp == end_event(&b, IBV_EVENT_QP_FATAL));
    end_write(&a, 3, src_mr->lkey, (uintptr_t) src, 64, dst_mr->rkey, (uintptr_t) dst, 0);
    end_expect(&a, 3, IBV_WC_RETRY_EXC_ERR);
}

/* (late=200) The peer sees it before 200 ms have passed, or at its first look. */
static void late_write(void)
{
    struct timespec begin, end;

    make(0, 0);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    notify(1);
    end_expect(&b, 1, IBV_WC_SUCCESS);
    end_expect(&a, 1, IBV_WC_SUCCESS);
    clock_gettime(CLOCK_MONOTONIC, &end);
    CHECK(200000000 <= (end.tv_sec - begin.tv_sec) * 1000000000L + end.tv_nsec - begin.tv_nsec);
}

static void two_devices(void)
{
    make(1, 0);
    CHECK(0 == strcmp("mlx5_1", ibv_get_device_name(b.context->device)));
    CHECK(0 != memcmp(&a.name.gid, &b.name.gid, sizeof(a.name.gid)));
    CHECK(a.name.lid != b.name.lid || 0 == a.name.lid);
    end_write(&a, 1, src_mr->lkey, (uintptr_t) src, 64, dst_mr->rkey, (uintptr_t) dst, 0);
    end_expect(&a, 1, IBV_WC_SUCCESS);
    CHECK(0 == memcmp(src, dst, 64));
}

static void roce(void)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024};
    struct end c;

    make(0, 0);
    CHECK(0 == a.name.lid);
    end_write(&a, 1, src_mr->lkey, (uintptr_t) src, 64, dst_mr->rkey, (uintptr_t) dst, 0);
    end_expect(&a, 1, IBV_WC_SUCCESS);
    CHECK(0 == memcmp(src, dst, 64));
    /* Without a GID there is no path on Ethernet. */
    end_open(&c, NULL);
    end_to_init(&c, NULL);
    attr.ah_attr.dlid = 1;
    attr.ah_attr.port_num = 1;
    CHECK(EINVAL
          == ibv_modify_qp(c.qp, &attr,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN
                               | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
}

/* Connect one end by an entry of its GID table and one of its pkeys. @return 0 or errno of RTR */
static int by(struct end *end, const struct end_name *peer, uint8_t gid, uint16_t pkey)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .pkey_index = pkey};
    int rc;

    attr.qp_access_flags = ALL;
    CHECK(0
          == ibv_modify_qp(end->qp, &attr,
                           IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_4096;
    attr.dest_qp_num = peer->qpn;
    attr.rq_psn = peer->psn;
    attr.max_dest_rd_atomic = 1;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.sl = 3;
    attr.ah_attr.dlid = peer->lid;
    attr.ah_attr.is_global = 0 == peer->lid;
    attr.ah_attr.grh.dgid = peer->gid;
    attr.ah_attr.grh.sgid_index = gid;
    attr.ah_attr.grh.traffic_class = 106;
    attr.ah_attr.grh.hop_limit = 64;
    rc = ibv_modify_qp(end->qp, &attr,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN
                           | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (0 == rc) {
        end_to_rts(end, NULL);
    }
    return rc;
}

/* A new pair of ends, on the first two devices, not connected. */
static void two_ends(int device_b)
{
    end_open(&a, NULL);
    end_open(&b, &(struct end_options){.device = device_b});
    src_mr = end_reg(&a, src, PAGE);
    dst_mr = end_reg(&b, dst, PAGE);
}

static void pass(enum ibv_wc_status status)
{
    end_write(&a, 1, src_mr->lkey, (uintptr_t) src, 64, dst_mr->rkey, (uintptr_t) dst, 0);
    end_expect(&a, 1, status);
}

/* (link=eth,gids=zero+ll1+v4+v6,route_ms=20) */
static void many_gids(void)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    static const union ibv_gid zero;
    struct ibv_gid_entry entries[4];
    struct ibv_port_attr port;
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    two_ends(0);
    CHECK(0 == ibv_query_port(a.context, 1, &port) && 4 == port.gid_tbl_len);
    CHECK(0 != ibv_query_gid_ex(a.context, 1, 0, &entries[0], 0));
    CHECK(0 == memcmp(&zero, &a.name.gid, sizeof(zero)));
    for (uint32_t i = 1; i < 4; i++) {
        CHECK(0 == ibv_query_gid_ex(a.context, 1, i, &entries[i], 0));
        CHECK((1 == i ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2) == entries[i].gid_type);
    }
    CHECK(0xfe == entries[1].gid.raw[0] && 0x20 == entries[3].gid.raw[0]);
    CHECK(0 == memcmp(mapped, entries[2].gid.raw, sizeof(mapped)));
    for (uint8_t i = 1; i < 4; i++) {
        two_ends(0);
        a.name.gid = b.name.gid = entries[i].gid;
        CHECK(0 == by(&a, &b.name, i, 0) && 0 == by(&b, &a.name, i, 0));
        pass(IBV_WC_SUCCESS);
    }
    CHECK(0 == ibv_query_qp(a.qp, &attr, IBV_QP_AV, &init));
    CHECK(106 == attr.ah_attr.grh.traffic_class && 3 == attr.ah_attr.sl);
    CHECK(3 == attr.ah_attr.grh.sgid_index);
    /* no entry; no address; another family; no such entry */
    two_ends(0);
    b.name.gid = entries[2].gid;
    CHECK(EINVAL == by(&a, &b.name, 4, 0));
    two_ends(0);
    CHECK(EINVAL == by(&a, &b.name, 0, 0));
    two_ends(0);
    b.name.gid = entries[3].gid;
    CHECK(ETIMEDOUT == by(&a, &b.name, 2, 0));
    two_ends(0);
    b.name.gid = entries[1].gid;
    CHECK(ETIMEDOUT == by(&a, &b.name, 3, 0));
}

/* (pkeys=0x7fff+0x8001+0xffff) One of two limited members does not reach the other. */
static void pkeys(void)
{
    struct ibv_port_attr port;
    __be16 pkey;

    two_ends(0);
    CHECK(0 == ibv_query_port(a.context, 1, &port) && 3 == port.pkey_tbl_len);
    CHECK(0 == ibv_query_pkey(a.context, 1, 1, &pkey) && 0x8001 == be16toh(pkey));
    CHECK(0 == by(&a, &b.name, 0, 2) && 0 == by(&b, &a.name, 0, 0));
    pass(IBV_WC_SUCCESS);
    two_ends(0);
    CHECK(0 == by(&a, &b.name, 0, 0) && 0 == by(&b, &a.name, 0, 0));
    pass(IBV_WC_RETRY_EXC_ERR);
    two_ends(0);
    CHECK(0 == by(&a, &b.name, 0, 1) && 0 == by(&b, &a.name, 0, 2));
    pass(IBV_WC_RETRY_EXC_ERR);
}

/* (devices=3,link=ib/ib/eth,speed=ndr/hdr/edr,width=4/2/1,prefix=0/7) */
static void three_ports(void)
{
    static const uint8_t speeds[] = {128, 64, 32}, widths[] = {2, 16, 1};
    struct end end;

    for (int i = 0; i < 3; i++) {
        struct ibv_port_attr port;

        end_open(&end, &(struct end_options){.device = i});
        CHECK(0 == ibv_query_port(end.context, 1, &port));
        CHECK(speeds[i] == port.active_speed && widths[i] == port.active_width);
        CHECK((2 == i ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND) == port.link_layer);
        CHECK((0 == i ? 0 : 7) == end.name.gid.raw[7]);
    }
}

/* (devices=2,fabric=a/b) */
static void two_fabrics(void)
{
    make(1, 0);
    pass(IBV_WC_RETRY_EXC_ERR);
    make(0, 0);
    pass(IBV_WC_SUCCESS);
}

/* (devices=2,link=eth,gids=v4,fabric=a/b,route_ms=200) The other port can be used meanwhile. */
static void no_route(void)
{
    struct timespec begin, end;

    two_ends(1);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    CHECK(ETIMEDOUT == by(&a, &b.name, 0, 0));
    clock_gettime(CLOCK_MONOTONIC, &end);
    CHECK(200000000 <= (end.tv_sec - begin.tv_sec) * 1000000000L + end.tv_nsec - begin.tv_nsec);
    make(0, 0);
    pass(IBV_WC_SUCCESS);
}

/* (devices=2,route=ok/address) */
static void no_address(void)
{
    make(0, 0);
    pass(IBV_WC_SUCCESS);
    two_ends(1);
    CHECK(EADDRNOTAVAIL == by(&b, &b.name, 0, 0));
}

/*
 * A UMR counts for others when its completion is there, not before: here it takes some
 * milliseconds. The queue pair that posted it may use it at once.
 */
#define LATE_ROUNDS 48

static void late_umr(void)
{
    struct end_options share = {.share = &b};
    struct mlx5dv_mkey *mkey;
    struct ibv_sge sge;
    struct end b2;
    struct end a2;
    int early = 0;
    int i;

    make(0, 0);
    mkey = end_mkey(&b, 4);
    for (i = 0; i < LATE_ROUNDS; i++) {
        sge = (struct ibv_sge){(uintptr_t) dst, 64, dst_mr->lkey};
        mkey->lkey++;
        mkey->rkey = mkey->lkey;
        end_open(&a2, &(struct end_options){.share = &a});
        end_open(&b2, &share);
        end_connect(&a2, &b2.name, NULL);
        end_connect(&b2, &a2.name, NULL);
        end_umr_list(&b, mkey, ALL, 1, &sge, false);
        end_write(&a2, 1, src_mr->lkey, (uintptr_t) src, 64, mkey->rkey, 0, 0);
        {
            struct ibv_wc wc;

            CHECK(end_poll(&a2, &wc, END_LONG_MS));
            CHECK(IBV_WC_SUCCESS == wc.status || IBV_WC_REM_ACCESS_ERR == wc.status);
            early += IBV_WC_REM_ACCESS_ERR == wc.status;
        }
        end_expect(&b, 0xdada, IBV_WC_SUCCESS);
        end_close(&a2);
        end_close(&b2);
    }
    /*
     * Of three random delays the write's is shorter than the sum of the UMR's two, start and
     * completion, in 5 of 6 rounds. Were the UMR seen from its start, it would be in 3 of 6.
     */
    CHECK(LATE_ROUNDS * 4 / 6 < early);

    mkey = end_mkey(&a, 4);
    sge = (struct ibv_sge){(uintptr_t) src + 512, 64, src_mr->lkey};
    for (i = 0; i < 10; i++) {
        memset(dst, 0, 64);
        end_umr_list(&a, mkey, ALL, 1, &sge, false);
        end_write(&a, 5, mkey->lkey, 0, 64, dst_mr->rkey, (uintptr_t) dst, 0);
        end_expect(&a, 0xdada, IBV_WC_SUCCESS);
        end_expect(&a, 5, IBV_WC_SUCCESS);
        CHECK(0 == memcmp(dst, src + 512, 64));
    }
}

/* The child of a process with an open HCA has an HCA of its own; the parent keeps its. */
static int child(int fd)
{
    struct end_name peer;
    struct end end;
    struct ibv_mr *mr;
    uint64_t where[2];

    end_open(&end, NULL);
    CHECK(end.name.qpn >> 12 != a.name.qpn >> 12);
    end_report(fd, &end.name, sizeof(end.name));
    end_pipe_read(fd, &peer, sizeof(peer));
    end_connect(&end, &peer, NULL);
    mr = end_reg(&end, src, PAGE);
    end_pipe_read(fd, where, sizeof(where));
    /* Copy on write: the child has its own copy. */
    memset(src, 0x77, PAGE);
    end_write(&end, 1, mr->lkey, (uintptr_t) src, PAGE, (uint32_t) where[0], where[1], 0);
    end_expect(&end, 1, IBV_WC_SUCCESS);
    end_report(fd, "d", 1);
    end_pipe_read(fd, where, 1);
    return 0;
}

static void forked(void)
{
    struct end_options share = {.share = &a};
    struct end_name peer;
    uint64_t where[2];
    struct end c;
    char done;
    int pid;
    int fd;

    make(0, 0);
    fd = end_fork(child, &pid);
    end_open(&c, &share);
    end_pipe_read(fd, &peer, sizeof(peer));
    end_report(fd, &c.name, sizeof(c.name));
    end_connect(&c, &peer, NULL);
    where[0] = src_mr->rkey;
    where[1] = (uintptr_t) src;
    end_report(fd, where, sizeof(where));
    end_pipe_read(fd, &done, 1);
    CHECK(0x77 == src[0] && 0x77 == src[PAGE - 1]);
    end_write(&a, 1, src_mr->lkey, (uintptr_t) src, PAGE, dst_mr->rkey, (uintptr_t) dst, 0);
    end_expect(&a, 1, IBV_WC_SUCCESS);
    CHECK(0x77 == dst[0] && 0x77 == dst[PAGE - 1]);
    end_report(fd, "e", 1);
    end_wait(pid);
    end_write(&a, 2, src_mr->lkey, (uintptr_t) src, PAGE, dst_mr->rkey, (uintptr_t) dst, 0);
    end_expect(&a, 2, IBV_WC_SUCCESS);
}

static const struct {
    const char *options;
    void (*run)(void);
} cases[] = {
    {"", plain},
    {"", forked},
    {"copy=pipe", plain_copy},
    {"copy=pipe", gone_memory},
    {"max_sq_desc=256", four_entries},
    {"umr=off", umr_off},
    {"umr=broken", umr_broken},
    {"mkeys=2", two_mkeys},
    {"log_max_klm=4", small_mkeys},
    {"max_indirection=0", one_level},
    {"max_indirection=1", one_level},
    {"max_indirection=2", two_levels},
    {"", thirty_segments},
    {"max_sq_desc=256", fourteen_segments},
    {"max_sge=4", four_segments},
    {"max_wr=64", short_queues},
    {"log_max_msg=16", short_messages},
    {"qps=3", three_qps},
    {"srqs=2", two_srqs},
    {"srqs=0", no_srq},
    {"atomics=0", no_atomics},
    {"mrs=2", two_mrs},
    {"reg_bytes=9000", few_bytes},
    {"fail_write=3", third_write},
    {"deaf=2", deaf_after_two},
    {"late=200", late_write},
    {"devices=2", two_devices},
    {"link=eth", roce},
    {"link=eth,devices=3", two_devices},
    {"link=eth,gids=zero+ll1+v4+v6,route_ms=20", many_gids},
    {"pkeys=0x7fff+0x8001+0xffff", pkeys},
    {"devices=3,link=ib/ib/eth,speed=ndr/hdr/edr,width=4/2/1,prefix=0/7", three_ports},
    {"devices=2,fabric=a/b", two_fabrics},
    {"devices=2,link=eth,gids=v4,fabric=a/b,route_ms=200", no_route},
    {"devices=2,route=ok/address", no_address},
    {"delay=3000,seed=7", late_umr},
};

static int run_again(char **argv, size_t i)
{
    char number[16];
    int status;
    int pid;

    fflush(NULL);
    pid = fork();
    CHECK(0 <= pid);
    if (0 == pid) {
        char *args[] = {argv[0], number, NULL};

        snprintf(number, sizeof(number), "%zu", i);
        end_start(args, cases[i].options);
    }
    CHECK(pid == waitpid(pid, &status, 0));
    if (!WIFEXITED(status) || 0 != WEXITSTATUS(status)) {
        printf("FAILED: %s\n", cases[i].options);
        return 1;
    }
    printf("ok: %s\n", cases[i].options);
    return 0;
}

int main(int argc, char **argv)
{
    size_t i;
    int failed = 0;

    if (1 == argc) {
        for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
            failed |= run_again(argv, i);
        }
        return failed;
    }
    i = strtoul(argv[1], NULL, 10);
    CHECK(i < sizeof(cases) / sizeof(cases[0]));
    end_start(argv, cases[i].options);
    end_case = cases[i].options;
    src = aligned_alloc(PAGE, PAGE);
    dst = aligned_alloc(PAGE, PAGE);
    CHECK(NULL != src && NULL != dst);
    cases[i].run();
    return 0;
}
