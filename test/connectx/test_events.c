/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Completion events, when they come and when they do not; and asynchronous ones. */

#include "verbs_pair.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

static const struct end_options with_channel = {.channel = true};

static void post_send(struct end *end, uint64_t wr_id, struct ibv_mr *mr, unsigned flags)
{
    ibv_wr_start(end->qpx);
    end->qpx->wr_id = wr_id;
    end->qpx->wr_flags = IBV_SEND_SIGNALED | flags;
    ibv_wr_send(end->qpx);
    ibv_wr_set_sge(end->qpx, mr->lkey, (uintptr_t) mr->addr, 8);
    CHECK(0 == ibv_wr_complete(end->qpx));
}

/* A send of a that b has received, and not looked at. */
static void message(struct pair *p, uint64_t wr_id, unsigned flags)
{
    end_recv(&p->b, wr_id, p->dst->lkey, pair_dst, 64);
    post_send(&p->a, wr_id, p->src, flags);
    end_expect(&p->a, wr_id, IBV_WC_SUCCESS);
}

/* Whether the channel has something to read within ms. */
static bool readable(const struct end *end, int ms)
{
    struct pollfd fd = {end->channel->fd, POLLIN, 0};

    return 1 == poll(&fd, 1, ms);
}

/* Read the event that is there, and acknowledge it. */
static void take_event(struct end *channel, struct end *of)
{
    struct ibv_cq *cq;
    void *context;

    CHECK(readable(channel, END_LONG_MS));
    CHECK(0 == ibv_get_cq_event(channel->channel, &cq, &context));
    CHECK(of->cq == cq && of == context);
    ibv_ack_cq_events(cq, 1);
}

static void arm(struct end *end, int solicited)
{
    CHECK(0 == ibv_req_notify_cq(end->cq, solicited));
}

/* Without a request: none. After one request: one event, for any number of completions. */
static void once(void)
{
    struct pair p;

    pair_make(&p, &with_channel);
    message(&p, 1, 0);
    CHECK(!readable(&p.b, 30));
    end_expect(&p.b, 1, IBV_WC_SUCCESS);
    arm(&p.b, 0);
    CHECK(!readable(&p.b, 30));
    message(&p, 2, 0);
    message(&p, 3, 0);
    take_event(&p.b, &p.b);
    message(&p, 4, 0);
    CHECK(!readable(&p.b, 30));
    end_expect(&p.b, 2, IBV_WC_SUCCESS);
    /* Completions that were not polled count. */
    arm(&p.b, 0);
    take_event(&p.b, &p.b);
    end_expect(&p.b, 3, IBV_WC_SUCCESS);
    end_expect(&p.b, 4, IBV_WC_SUCCESS);
    arm(&p.b, 0);
    CHECK(!readable(&p.b, 30));
    pair_unmake(&p);
}

/* Only for a solicited completion, or one with an error. */
static void solicited(void)
{
    struct pair p;

    pair_make(&p, &with_channel);
    arm(&p.b, 1);
    message(&p, 1, 0);
    CHECK(!readable(&p.b, 30));
    message(&p, 2, IBV_SEND_SOLICITED);
    take_event(&p.b, &p.b);
    end_expect(&p.b, 1, IBV_WC_SUCCESS);
    end_expect(&p.b, 2, IBV_WC_SUCCESS);
    arm(&p.b, 1);
    message(&p, 3, 0);
    CHECK(!readable(&p.b, 30));
    /* Any will do now. */
    arm(&p.b, 0);
    take_event(&p.b, &p.b);
    end_expect(&p.b, 3, IBV_WC_SUCCESS);
    arm(&p.b, 1);
    end_recv(&p.b, 4, p.dst->lkey, pair_dst, 7);
    post_send(&p.a, 5, p.src, 0);
    end_expect(&p.a, 5, IBV_WC_REM_INV_REQ_ERR);
    take_event(&p.b, &p.b);
    end_expect(&p.b, 4, IBV_WC_LOC_LEN_ERR);
    pair_unmake(&p);
}

static void *send_later(void *arg)
{
    struct pair *p = arg;

    usleep(50000);
    post_send(&p->a, 1, p->src, 0);
    return NULL;
}

/* A thread sleeps in the call until a completion comes. */
static void asleep(void)
{
    struct ibv_cq *cq;
    void *context;
    pthread_t thread;
    struct pair p;

    pair_make(&p, &with_channel);
    end_recv(&p.b, 1, p.dst->lkey, pair_dst, 64);
    arm(&p.b, 0);
    CHECK(0 == pthread_create(&thread, NULL, send_later, &p));
    CHECK(0 == ibv_get_cq_event(p.b.channel, &cq, &context));
    CHECK(p.b.cq == cq);
    ibv_ack_cq_events(cq, 1);
    CHECK(0 == pthread_join(thread, NULL));
    end_expect(&p.b, 1, IBV_WC_SUCCESS);
    end_expect(&p.a, 1, IBV_WC_SUCCESS);
    pair_unmake(&p);
}

/* Two queues in one channel. One goes with its event unread; the other's is still there. */
static void two_queues(void)
{
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC};
    struct end second = {0};
    struct pair p;

    pair_make(&p, &with_channel);
    second = p.b;
    second.cq = ibv_create_cq(p.b.context, 16, &second, p.b.channel, 0);
    CHECK(NULL != second.cq);
    attr.send_cq = second.cq;
    attr.recv_cq = second.cq;
    attr.cap.max_send_wr = 1;
    attr.cap.max_send_sge = 1;
    second.qp = ibv_create_qp(p.b.pd, &attr);
    CHECK(NULL != second.qp);
    second.qpx = NULL;
    second.name.qpn = second.qp->qp_num;
    {
        /* A work request of a queue pair in error completes at once. */
        struct ibv_send_wr wr = {.wr_id = 8, .opcode = IBV_WR_SEND};
        struct ibv_qp_attr error = {.qp_state = IBV_QPS_ERR};
        struct ibv_send_wr *bad;

        end_connect(&second, &p.a.name, NULL);
        CHECK(0 == ibv_modify_qp(second.qp, &error, IBV_QP_STATE));
        arm(&second, 0);
        arm(&p.b, 0);
        CHECK(0 == ibv_post_send(second.qp, &wr, &bad));
        CHECK(readable(&p.b, END_LONG_MS));
        message(&p, 1, 0);
    }
    CHECK(EBUSY == ibv_destroy_comp_channel(p.b.channel));
    CHECK(EBUSY == ibv_destroy_cq(second.cq));
    CHECK(0 == ibv_destroy_qp(second.qp));
    CHECK(0 == ibv_destroy_cq(second.cq));
    take_event(&p.b, &p.b);
    CHECK(!readable(&p.b, 30));
    end_expect(&p.b, 1, IBV_WC_SUCCESS);
    pair_unmake(&p);
}

/* A refused request, an overrun: each is reported, with its object. */
static void errors(void)
{
    struct end_options small = {.cqes = 3};
    struct pair p;
    int i;

    pair_make(&p, NULL);
    CHECK(!end_has_event(&p.b, 0));
    pair_write_fails(&p, p.src->lkey, (uintptr_t) pair_src, 64, p.dst->rkey ^ 0x10000,
                     (uintptr_t) pair_dst, IBV_WC_REM_ACCESS_ERR);
    CHECK(p.b.qp == end_event(&p.b, IBV_EVENT_QP_ACCESS_ERR));
    CHECK(!end_has_event(&p.b, 0) && !end_has_event(&p.a, 0));
    pair_unmake(&p);

    pair_make(&p, &small);
    for (i = 0; i < 8; i++) {
        end_write(&p.a, (uint64_t) i, p.src->lkey, (uintptr_t) pair_src, 8, p.dst->rkey,
                  (uintptr_t) pair_dst, 0);
    }
    CHECK(p.a.cq == end_event(&p.a, IBV_EVENT_CQ_ERR));
    CHECK(p.a.qp == end_event(&p.a, IBV_EVENT_QP_FATAL));
    pair_unmake(&p);
}

/* More events than fit into the pipe, and no reader: nothing blocks. */
static void unread(void)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 1}};
    struct ibv_srq_attr attr = {.srq_limit = 1};
    struct ibv_srq *srq;
    struct pair p;
    int i;

    pair_make(&p, NULL);
    srq = ibv_create_srq(p.b.pd, &init);
    CHECK(NULL != srq);
    for (i = 0; i < 10000; i++) {
        CHECK(0 == ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT));
    }
    /* One is read; destroying waits for its acknowledgement alone. */
    CHECK(srq == end_event(&p.b, IBV_EVENT_SRQ_LIMIT_REACHED));
    CHECK(0 == ibv_destroy_srq(srq));
    CHECK(!end_has_event(&p.b, 0));
    pair_unmake(&p);
}

static const struct pair_case cases[] = {
    {"one for each request", once},
    {"solicited ones", solicited},
    {"asleep", asleep},
    {"two queues in a channel", two_queues},
    {"errors", errors},
    {"unread", unread},
};

int main(int argc, char **argv)
{
    return pair_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
