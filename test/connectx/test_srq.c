/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Shared receive queues: the order in which receives are used, and the rest after errors. */

#include "verbs_pair.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#define SENDERS 3

/* Senders of their own, each connected to a queue pair of one process that share their receives. */
struct crowd {
    struct end from[SENDERS];
    struct end to[SENDERS]; /* with one completion queue each */
    struct end base;        /* whose context and protection domain these share */
    struct ibv_pd *pd;
    struct ibv_srq *srq;
    struct ibv_mr *src;
    struct ibv_mr *dst;
};

static struct ibv_srq *new_srq(struct ibv_pd *pd, uint32_t max_wr, uint32_t max_sge)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = max_wr, .max_sge = max_sge}};
    struct ibv_srq *srq = ibv_create_srq(pd, &attr);

    CHECK(NULL != srq);
    CHECK(max_wr <= attr.attr.max_wr && max_sge <= attr.attr.max_sge);
    return srq;
}

static void make(struct crowd *c, uint32_t max_wr, struct end_options *options)
{
    struct end_options usual = {0};
    int i;

    memset(pair_src, 0x5a, PAIR_PAGE);
    memset(pair_dst, 0xa5, PAIR_PAGE);
    options = NULL == options ? &usual : options;
    for (i = 0; i < SENDERS; i++) {
        options->share = 0 == i ? NULL : &c->from[0];
        options->srq = NULL;
        end_open(&c->from[i], options);
        if (0 == i) {
            end_open(&c->base, options);
            c->pd = ibv_alloc_pd(c->base.context);
            CHECK(NULL != c->pd);
            c->srq = new_srq(c->pd, max_wr, 2);
        }
        options->share = &c->base;
        options->srq = c->srq;
        end_open(&c->to[i], options);
        end_connect(&c->from[i], &c->to[i].name, options);
        end_connect(&c->to[i], &c->from[i].name, options);
    }
    c->src = end_reg(&c->from[0], pair_src, PAIR_PAGE);
    c->dst = ibv_reg_mr(c->pd, pair_dst, PAIR_PAGE, PAIR_ALL);
    CHECK(NULL != c->dst);
}

static void unmake(struct crowd *c)
{
    int i;

    CHECK(EBUSY == ibv_destroy_srq(c->srq));
    for (i = 0; i < SENDERS; i++) {
        end_close(&c->from[i]);
        end_close(&c->to[i]);
    }
    end_close(&c->base);
    CHECK(EBUSY == ibv_dealloc_pd(c->pd));
    CHECK(0 == ibv_destroy_srq(c->srq));
    CHECK(0 == ibv_dereg_mr(c->src));
    CHECK(0 == ibv_dereg_mr(c->dst));
    CHECK(0 == ibv_dealloc_pd(c->pd));
    CHECK(0 == ibv_dealloc_pd(c->from[0].pd));
    CHECK(0 == ibv_dealloc_pd(c->base.pd));
    CHECK(0 == ibv_close_device(c->from[0].context));
    CHECK(0 == ibv_close_device(c->base.context));
}

static int try_post(struct crowd *c, uint64_t wr_id, uint32_t lkey, void *addr, uint32_t length)
{
    struct ibv_sge sge = {(uintptr_t) addr, length, lkey};
    struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 0 < length};
    struct ibv_recv_wr *bad;

    return ibv_post_srq_recv(c->srq, &wr, &bad);
}

static void post(struct crowd *c, uint64_t wr_id, uint32_t length)
{
    CHECK(0 == try_post(c, wr_id, c->dst->lkey, pair_dst + 64 * wr_id, length));
}

/* Send some bytes with the number of the message. */
static void send_number(struct crowd *c, int from, uint64_t wr_id, uint32_t length)
{
    memset(pair_src + 64 * wr_id, (int) (wr_id + 1), 64);
    ibv_wr_start(c->from[from].qpx);
    c->from[from].qpx->wr_id = wr_id;
    c->from[from].qpx->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(c->from[from].qpx);
    ibv_wr_set_sge(c->from[from].qpx, c->src->lkey, (uintptr_t) pair_src + 64 * wr_id, length);
    CHECK(0 == ibv_wr_complete(c->from[from].qpx));
}

static void arrived(const struct crowd *c, uint64_t at, uint64_t message, uint32_t length)
{
    uint32_t i;

    (void) c;
    for (i = 0; i < 64; i++) {
        CHECK((i < length ? message + 1 : 0xa5) == pair_dst[64 * at + i]);
    }
}

/* In the order of their posting, for any queue pair. */
static void in_order(void)
{
    struct crowd c;
    struct ibv_wc wc;
    int i;

    make(&c, 16, NULL);
    for (i = 0; i < 6; i++) {
        post(&c, (uint64_t) i, 64);
    }
    for (i = 0; i < 6; i++) {
        int who = (i * 2) % SENDERS;

        send_number(&c, who, (uint64_t) i, 40);
        end_expect(&c.from[who], (uint64_t) i, IBV_WC_SUCCESS);
        CHECK(end_poll(&c.to[who], &wc, END_LONG_MS));
        CHECK(IBV_WC_SUCCESS == wc.status && IBV_WC_RECV == wc.opcode && (uint64_t) i == wc.wr_id
              && 40 == wc.byte_len && c.to[who].qp->qp_num == wc.qp_num);
        arrived(&c, (uint64_t) i, (uint64_t) i, 40);
    }
    unmake(&c);
}

/* Around many times, given back in an order that is not that of their use. */
static void round_and_round(void)
{
    enum {
        ROOM = 7,
        ROUNDS = 300
    };
    struct crowd c;
    struct ibv_wc wc;
    uint64_t used[2 * ROOM];
    int round;
    int i;

    make(&c, ROOM, NULL);
    for (i = 0; 0 == try_post(&c, (uint64_t) i, c.dst->lkey, pair_dst + 64 * i, 64); i++) {
        CHECK(i < 2 * ROOM - 1);
    }
    /* Full, and it says so. */
    CHECK(ROOM <= i && ENOMEM == try_post(&c, 0, c.dst->lkey, pair_dst, 64));
    for (round = 0; round < ROUNDS; round++) {
        int some = 1 + round % ROOM;

        for (i = 0; i < some; i++) {
            int who = (round + i) % SENDERS;

            send_number(&c, who, 30 + (uint64_t) i, 64);
            end_expect(&c.from[who], 30 + (uint64_t) i, IBV_WC_SUCCESS);
            CHECK(end_poll(&c.to[who], &wc, END_LONG_MS) && IBV_WC_SUCCESS == wc.status);
            CHECK(2 * ROOM > wc.wr_id);
            arrived(&c, wc.wr_id, 30 + (uint64_t) i, 64);
            used[i] = wc.wr_id;
        }
        while (0 < i) {
            post(&c, used[--i], 64);
        }
    }
    unmake(&c);
}

/* A write with immediate data takes one, and leaves its memory alone. */
static void immediate(void)
{
    struct crowd c;
    struct ibv_mr *mr;
    struct ibv_wc wc;

    make(&c, 4, NULL);
    mr = end_reg(&c.to[0], pair_dst + 2048, 64);
    post(&c, 1, 64);
    end_write(&c.from[2], 9, c.src->lkey, (uintptr_t) pair_src, 10, mr->rkey,
              (uintptr_t) pair_dst + 2048, 77);
    end_expect(&c.from[2], 9, IBV_WC_SUCCESS);
    CHECK(end_poll(&c.to[2], &wc, END_LONG_MS));
    CHECK(IBV_WC_SUCCESS == wc.status && IBV_WC_RECV_RDMA_WITH_IMM == wc.opcode && 1 == wc.wr_id
          && htobe32(77) == wc.imm_data);
    CHECK(0xa5 == pair_dst[64] && 0x5a == pair_dst[2048 + 9] && 0xa5 == pair_dst[2048 + 10]);
    CHECK(0 == ibv_dereg_mr(mr));
    unmake(&c);
}

static void empty(void)
{
    struct end_options patient = {.rnr_retry = 7};
    struct crowd c;
    struct ibv_wc wc;

    make(&c, 4, NULL);
    send_number(&c, 0, 1, 64);
    end_expect(&c.from[0], 1, IBV_WC_RNR_RETRY_EXC_ERR);
    unmake(&c);

    make(&c, 4, &patient);
    send_number(&c, 0, 1, 64);
    CHECK(!end_poll(&c.from[0], &wc, 50));
    post(&c, 2, 64);
    end_expect(&c.from[0], 1, IBV_WC_SUCCESS);
    end_expect(&c.to[0], 2, IBV_WC_SUCCESS);
    arrived(&c, 2, 1, 64);
    unmake(&c);
}

static void expect_limit(struct crowd *c, uint32_t limit)
{
    struct ibv_srq_attr attr;

    CHECK(0 == ibv_query_srq(c->srq, &attr));
    CHECK(limit == attr.srq_limit && 8 <= attr.max_wr && 2 <= attr.max_sge);
}

/* An event, once, when fewer than the limit are left. */
static void limit(void)
{
    struct ibv_srq_attr attr = {.srq_limit = 3};
    struct crowd c;
    int i;

    make(&c, 8, NULL);
    for (i = 0; i < 5; i++) {
        post(&c, (uint64_t) i, 64);
    }
    expect_limit(&c, 0);
    CHECK(0 == ibv_modify_srq(c.srq, &attr, IBV_SRQ_LIMIT));
    expect_limit(&c, 3);
    for (i = 0; i < 5; i++) {
        CHECK((3 == i) == end_has_event(&c.base, 0));
        if (3 == i) {
            CHECK(c.srq == end_event(&c.base, IBV_EVENT_SRQ_LIMIT_REACHED));
            expect_limit(&c, 0);
        } else {
            expect_limit(&c, i < 3 ? 3 : 0);
        }
        send_number(&c, 0, (uint64_t) i, 1);
        end_expect(&c.from[0], (uint64_t) i, IBV_WC_SUCCESS);
        end_expect(&c.to[0], (uint64_t) i, IBV_WC_SUCCESS);
    }
    CHECK(!end_has_event(&c.base, 20));
    /* A request when fewer are left already. */
    attr.srq_limit = 1;
    CHECK(0 == ibv_modify_srq(c.srq, &attr, IBV_SRQ_LIMIT));
    CHECK(c.srq == end_event(&c.base, IBV_EVENT_SRQ_LIMIT_REACHED));
    expect_limit(&c, 0);
    attr.srq_limit = 1000;
    CHECK(EINVAL == ibv_modify_srq(c.srq, &attr, IBV_SRQ_LIMIT));
    attr.max_wr = 100;
    CHECK(EINVAL == ibv_modify_srq(c.srq, &attr, IBV_SRQ_MAX_WR));
    expect_limit(&c, 0);
    /* Not read before it is destroyed: nothing blocks. */
    attr.srq_limit = 1;
    CHECK(0 == ibv_modify_srq(c.srq, &attr, IBV_SRQ_LIMIT));
    unmake(&c);
}

/* One receive is lost with the connection that used it; the others stay, for the others. */
static void error(void)
{
    struct crowd c;
    struct ibv_wc wc;

    make(&c, 8, NULL);
    post(&c, 1, 15);
    post(&c, 2, 64);
    send_number(&c, 0, 5, 16);
    end_expect(&c.from[0], 5, IBV_WC_REM_INV_REQ_ERR);
    end_expect(&c.to[0], 1, IBV_WC_LOC_LEN_ERR);
    CHECK(c.to[0].qp == end_event(&c.base, IBV_EVENT_QP_LAST_WQE_REACHED));
    CHECK(IBV_QPS_ERR == pair_state(&c.to[0]));
    CHECK(!end_poll(&c.to[0], &wc, 20));
    send_number(&c, 1, 6, 64);
    end_expect(&c.from[1], 6, IBV_WC_SUCCESS);
    end_expect(&c.to[1], 2, IBV_WC_SUCCESS);
    arrived(&c, 2, 6, 64);
    /* An error that is the user's wish has the event too, and takes nothing. */
    post(&c, 3, 64);
    {
        struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

        CHECK(0 == ibv_modify_qp(c.to[1].qp, &attr, IBV_QP_STATE));
    }
    CHECK(c.to[1].qp == end_event(&c.base, IBV_EVENT_QP_LAST_WQE_REACHED));
    send_number(&c, 2, 7, 64);
    end_expect(&c.from[2], 7, IBV_WC_SUCCESS);
    end_expect(&c.to[2], 3, IBV_WC_SUCCESS);
    CHECK(!end_has_event(&c.base, 20));
    unmake(&c);
}

/* The receives' keys are of the protection domain of the shared queue. */
static void domain(void)
{
    struct crowd c;
    struct ibv_mr *mr;

    make(&c, 8, NULL);
    mr = end_reg(&c.to[0], pair_dst, PAIR_PAGE);
    CHECK(0 == try_post(&c, 1, mr->lkey, pair_dst, 64));
    send_number(&c, 0, 5, 16);
    end_expect(&c.from[0], 5, IBV_WC_REM_OP_ERR);
    end_expect(&c.to[0], 1, IBV_WC_LOC_PROT_ERR);
    CHECK(0xa5 == pair_dst[0]);
    CHECK(c.to[0].qp == end_event(&c.base, IBV_EVENT_QP_LAST_WQE_REACHED));
    CHECK(0 == ibv_dereg_mr(mr));
    unmake(&c);
}

/* Nonsense in the queue's memory is an event and an error completion, not a crash. */
static void nonsense(void)
{
    struct mlx5dv_srq raw = {0};
    struct mlx5dv_obj obj = {0};
    struct crowd c;

    make(&c, 4, NULL);
    obj.srq.in = c.srq;
    obj.srq.out = &raw;
    CHECK(0 == mlx5dv_init_obj(&obj, MLX5DV_OBJ_SRQ));
    post(&c, 1, 64);
    ((struct mlx5_wqe_srq_next_seg *) raw.buf)->next_wqe_index = htobe16(4000);
    send_number(&c, 0, 5, 16);
    end_expect(&c.from[0], 5, IBV_WC_REM_OP_ERR);
    CHECK(c.srq == end_event(&c.base, IBV_EVENT_SRQ_ERR));
    CHECK(c.to[0].qp == end_event(&c.base, IBV_EVENT_QP_LAST_WQE_REACHED));
    unmake(&c);

    make(&c, 4, NULL);
    obj.srq.in = c.srq;
    CHECK(0 == mlx5dv_init_obj(&obj, MLX5DV_OBJ_SRQ));
    *raw.dbrec = htobe32(500);
    send_number(&c, 0, 5, 16);
    CHECK(c.srq == end_event(&c.base, IBV_EVENT_SRQ_ERR));
    end_expect(&c.from[0], 5, IBV_WC_RNR_RETRY_EXC_ERR);
    unmake(&c);
}

static void bad_creation(void)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 40000, .max_sge = 1}};
    struct ibv_device_attr device;
    struct end end;

    end_open(&end, NULL);
    CHECK(0 == ibv_query_device(end.context, &device));
    CHECK(0 < device.max_srq && 0 < device.max_srq_wr && 0 < device.max_srq_sge);
    CHECK(NULL == ibv_create_srq(end.pd, &attr));
    attr.attr.max_wr = 1;
    attr.attr.max_sge = 33;
    CHECK(NULL == ibv_create_srq(end.pd, &attr));
    attr.attr.max_sge = (uint32_t) device.max_srq_sge;
    attr.attr.max_wr = 16383;
    CHECK(0 == ibv_destroy_srq(ibv_create_srq(end.pd, &attr)));
    end_close(&end);
}

static const struct pair_case cases[] = {
    {"in order", in_order},
    {"round and round", round_and_round},
    {"immediate data", immediate},
    {"empty", empty},
    {"limit", limit},
    {"after an error", error},
    {"protection domain", domain},
    {"nonsense", nonsense},
    {"refused creations", bad_creation},
};

int main(int argc, char **argv)
{
    return pair_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
