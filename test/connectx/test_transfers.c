/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Receives that are missing, late or too short; reads; requests behind a request that waits. */

#include "verbs_pair.h"

#include <string.h>

static void no_receive(void)
{
    struct pair p;

    pair_make(&p, NULL);
    pair_send(&p.a, 1, p.src, 16);
    end_expect(&p.a, 1, IBV_WC_RNR_RETRY_EXC_ERR);
    pair_unmake(&p);
    pair_make(&p, NULL);
    end_write(&p.a, 1, p.src->lkey, (uintptr_t) pair_src, 16, p.dst->rkey, (uintptr_t) pair_dst,
              77);
    end_expect(&p.a, 1, IBV_WC_RNR_RETRY_EXC_ERR);
    pair_unmake(&p);
}

static void late_receive(void)
{
    struct end_options options = {.rnr_retry = 7};
    struct ibv_wc wc;
    struct pair p;

    pair_make(&p, &options);
    pair_send(&p.a, 1, p.src, 300);
    end_write(&p.a, 2, p.src->lkey, (uintptr_t) pair_src, 16, p.dst->rkey,
              (uintptr_t) pair_dst + 1024, 77);
    CHECK(!end_poll(&p.a, &wc, 50));
    end_recv(&p.b, 3, p.dst->lkey, pair_dst, 1000);
    end_expect(&p.a, 1, IBV_WC_SUCCESS);
    end_expect(&p.b, 3, IBV_WC_SUCCESS);
    CHECK(!end_poll(&p.a, &wc, 50));
    end_recv(&p.b, 4, 0, NULL, 0);
    end_expect(&p.a, 2, IBV_WC_SUCCESS);
    end_expect(&p.b, 4, IBV_WC_SUCCESS);
    CHECK(0 == memcmp(pair_src, pair_dst, 300) && 0xa5 == pair_dst[300]
          && 0 == memcmp(pair_src, pair_dst + 1024, 16));
    pair_unmake(&p);
}

/* Everything behind a request that has to wait waits too, and comes whole. */
static void late_and_large(void)
{
    struct end_options options = {.rnr_retry = 7};
    const uint32_t bytes = 300000;
    uint8_t *from = malloc(2 * bytes);
    uint8_t *to = malloc(2 * bytes);
    struct ibv_mr *from_mr;
    struct ibv_mr *to_mr;
    struct ibv_wc wc;
    struct pair p;
    uint32_t i;

    CHECK(NULL != from && NULL != to);
    for (i = 0; i < 2 * bytes; i++) {
        from[i] = (uint8_t) (i * 2654435761u >> 14);
    }
    memset(to, 0, 2 * bytes);
    pair_make(&p, &options);
    from_mr = end_reg(&p.a, from, 2 * bytes);
    to_mr = end_reg(&p.b, to, 2 * bytes);
    pair_send(&p.a, 1, p.src, 300);
    end_write(&p.a, 8, p.src->lkey, (uintptr_t) pair_src, 16, p.dst->rkey,
              (uintptr_t) pair_dst + 2000, 0);
    end_write(&p.a, 2, from_mr->lkey, (uintptr_t) from, bytes, to_mr->rkey, (uintptr_t) to, 0);
    end_write(&p.a, 3, from_mr->lkey, (uintptr_t) from + bytes, bytes, to_mr->rkey,
              (uintptr_t) to + bytes, 9);
    pair_send(&p.a, 4, p.src, 16);
    CHECK(!end_poll(&p.a, &wc, 50));
    CHECK(0 == to[0] && 0 == to[2 * bytes - 1] && 0xa5 == pair_dst[2000]);
    end_recv(&p.b, 5, p.dst->lkey, pair_dst, 1000);
    end_expect(&p.a, 1, IBV_WC_SUCCESS);
    end_expect(&p.a, 8, IBV_WC_SUCCESS);
    CHECK(0 == memcmp(pair_src, pair_dst + 2000, 16) && 0xa5 == pair_dst[2016]);
    end_expect(&p.a, 2, IBV_WC_SUCCESS);
    end_expect(&p.b, 5, IBV_WC_SUCCESS);
    CHECK(!end_poll(&p.a, &wc, 50));
    CHECK(0 == memcmp(from, to, bytes));
    end_recv(&p.b, 6, 0, NULL, 0);
    end_expect(&p.a, 3, IBV_WC_SUCCESS);
    end_expect(&p.b, 6, IBV_WC_SUCCESS);
    CHECK(0 == memcmp(from, to, 2 * bytes));
    end_recv(&p.b, 7, p.dst->lkey, pair_dst + 1024, 16);
    end_expect(&p.a, 4, IBV_WC_SUCCESS);
    end_expect(&p.b, 7, IBV_WC_SUCCESS);
    CHECK(0 == memcmp(pair_src, pair_dst, 300) && 0 == memcmp(pair_src, pair_dst + 1024, 16));
    CHECK(0 == ibv_dereg_mr(from_mr));
    CHECK(0 == ibv_dereg_mr(to_mr));
    pair_unmake(&p);
    free(from);
    free(to);
}

static void short_receive(void)
{
    struct pair p;

    pair_make(&p, NULL);
    end_recv(&p.b, 3, p.dst->lkey, pair_dst, 15);
    pair_send(&p.a, 1, p.src, 16);
    end_expect(&p.a, 1, IBV_WC_REM_INV_REQ_ERR);
    end_expect(&p.b, 3, IBV_WC_LOC_LEN_ERR);
    pair_unmake(&p);
    pair_make(&p, NULL);
    end_recv(&p.b, 3, p.dst->lkey ^ 2, pair_dst, 16);
    pair_send(&p.a, 1, p.src, 16);
    end_expect(&p.a, 1, IBV_WC_REM_OP_ERR);
    end_expect(&p.b, 3, IBV_WC_LOC_PROT_ERR);
    pair_unmake(&p);
}

static void read_remote(void)
{
    struct ibv_mr *mr;
    struct pair p;

    pair_make(&p, NULL);
    pair_dst[5] = 1;
    ibv_wr_start(p.a.qpx);
    p.a.qpx->wr_id = 1;
    p.a.qpx->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_read(p.a.qpx, p.dst->rkey, (uintptr_t) pair_dst);
    ibv_wr_set_sge(p.a.qpx, p.src->lkey, (uintptr_t) pair_src, PAIR_PAGE);
    CHECK(0 == ibv_wr_complete(p.a.qpx));
    end_expect(&p.a, 1, IBV_WC_SUCCESS);
    CHECK(0 == memcmp(pair_src, pair_dst, PAIR_PAGE));
    mr = ibv_reg_mr(p.b.pd, pair_dst, PAIR_PAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    CHECK(NULL != mr);
    ibv_wr_start(p.a.qpx);
    p.a.qpx->wr_id = 1;
    p.a.qpx->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_read(p.a.qpx, mr->rkey, (uintptr_t) pair_dst);
    ibv_wr_set_sge(p.a.qpx, p.src->lkey, (uintptr_t) pair_src, PAIR_PAGE);
    CHECK(0 == ibv_wr_complete(p.a.qpx));
    end_expect(&p.a, 1, IBV_WC_REM_ACCESS_ERR);
    CHECK(0 == ibv_dereg_mr(mr));
    pair_unmake(&p);
}

/*
 * Reads at once: as many as the other side said that it answers, and no more. They are so long that
 * all four are there before the first is answered.
 */
static void many_reads(void)
{
    struct end_options one = {.dest_reads = 1};
    const uint32_t bytes = 1u << 24;
    uint8_t *here = malloc(bytes);
    uint8_t *there = malloc(bytes);
    struct ibv_mr *here_mr;
    struct ibv_mr *there_mr;
    struct pair p;
    int most;
    int i;

    CHECK(NULL != here && NULL != there);
    memset(there, 0x77, bytes);
    for (most = 4; 0 < most; most -= 3) {
        memset(here, 0, bytes);
        pair_make(&p, 1 == most ? &one : NULL);
        here_mr = end_reg(&p.a, here, bytes);
        there_mr = end_reg(&p.b, there, bytes);
        ibv_wr_start(p.a.qpx);
        for (i = 0; i < 4; i++) {
            p.a.qpx->wr_id = (uint64_t) i;
            p.a.qpx->wr_flags = IBV_SEND_SIGNALED;
            ibv_wr_rdma_read(p.a.qpx, there_mr->rkey, (uintptr_t) there);
            ibv_wr_set_sge(p.a.qpx, here_mr->lkey, (uintptr_t) here, bytes);
        }
        CHECK(0 == ibv_wr_complete(p.a.qpx));
        for (i = 0; i < most; i++) {
            end_expect(&p.a, (uint64_t) i, IBV_WC_SUCCESS);
        }
        /* Requests before the one too many are answered. */
        CHECK(0 == memcmp(here, there, bytes));
        for (; i < 4; i++) {
            end_expect(&p.a, (uint64_t) i,
                       most == i ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_WR_FLUSH_ERR);
        }
        CHECK((4 == most ? IBV_QPS_RTS : IBV_QPS_ERR) == pair_state(&p.b));
        CHECK(0 == ibv_dereg_mr(here_mr));
        CHECK(0 == ibv_dereg_mr(there_mr));
        pair_unmake(&p);
    }
    free(here);
    free(there);
}

/* A large read goes on while the send behind it waits for its receive. */
static void large_read(void)
{
    struct end_options options = {.rnr_retry = 7};
    const uint32_t bytes = 5000001;
    uint8_t *here = calloc(1, bytes);
    uint8_t *there = malloc(bytes);
    struct ibv_mr *here_mr;
    struct ibv_mr *there_mr;
    struct ibv_wc wc;
    struct pair p;
    uint32_t i;

    CHECK(NULL != here && NULL != there);
    for (i = 0; i < bytes; i++) {
        there[i] = (uint8_t) (i * 2654435761u >> 14);
    }
    pair_make(&p, &options);
    here_mr = end_reg(&p.a, here, bytes);
    there_mr = end_reg(&p.b, there, bytes);
    ibv_wr_start(p.a.qpx);
    p.a.qpx->wr_id = 1;
    p.a.qpx->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_read(p.a.qpx, there_mr->rkey, (uintptr_t) there);
    ibv_wr_set_sge(p.a.qpx, here_mr->lkey, (uintptr_t) here, bytes);
    CHECK(0 == ibv_wr_complete(p.a.qpx));
    pair_send(&p.a, 2, p.src, 300);
    end_write(&p.a, 3, p.src->lkey, (uintptr_t) pair_src, 16, p.dst->rkey,
              (uintptr_t) pair_dst + 1024, 0);
    end_expect(&p.a, 1, IBV_WC_SUCCESS);
    CHECK(0 == memcmp(here, there, bytes));
    CHECK(!end_poll(&p.a, &wc, 30));
    end_recv(&p.b, 4, p.dst->lkey, pair_dst, 1000);
    end_expect(&p.a, 2, IBV_WC_SUCCESS);
    end_expect(&p.a, 3, IBV_WC_SUCCESS);
    end_expect(&p.b, 4, IBV_WC_SUCCESS);
    CHECK(0 == memcmp(pair_src, pair_dst, 300) && 0 == memcmp(pair_src, pair_dst + 1024, 16));

    /* The queue pair it is read from goes away: an error, and no wait for ever. */
    ibv_wr_start(p.a.qpx);
    p.a.qpx->wr_id = 5;
    p.a.qpx->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_read(p.a.qpx, there_mr->rkey, (uintptr_t) there);
    ibv_wr_set_sge(p.a.qpx, here_mr->lkey, (uintptr_t) here, bytes);
    CHECK(0 == ibv_wr_complete(p.a.qpx));
    {
        struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

        CHECK(0 == ibv_modify_qp(p.b.qp, &attr, IBV_QP_STATE));
    }
    CHECK(end_poll(&p.a, &wc, END_LONG_MS));
    CHECK(5 == wc.wr_id && (IBV_WC_RETRY_EXC_ERR == wc.status || IBV_WC_SUCCESS == wc.status));
    CHECK(0 == ibv_dereg_mr(here_mr));
    CHECK(0 == ibv_dereg_mr(there_mr));
    pair_unmake(&p);
    free(here);
    free(there);
}

/* A read is answered though the request behind it is refused. */
static void read_before_error(void)
{
    const uint32_t bytes = 1000001;
    uint8_t *here = calloc(1, bytes);
    uint8_t *there = malloc(bytes);
    struct ibv_mr *here_mr;
    struct ibv_mr *there_mr;
    struct pair p;

    CHECK(NULL != here && NULL != there);
    memset(there, 0x77, bytes);
    pair_make(&p, NULL);
    here_mr = end_reg(&p.a, here, bytes);
    there_mr = end_reg(&p.b, there, bytes);
    ibv_wr_start(p.a.qpx);
    p.a.qpx->wr_id = 1;
    p.a.qpx->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_read(p.a.qpx, there_mr->rkey, (uintptr_t) there);
    ibv_wr_set_sge(p.a.qpx, here_mr->lkey, (uintptr_t) here, bytes);
    p.a.qpx->wr_id = 2;
    ibv_wr_rdma_write(p.a.qpx, p.dst->rkey ^ 1, (uintptr_t) pair_dst);
    ibv_wr_set_sge(p.a.qpx, p.src->lkey, (uintptr_t) pair_src, 8);
    CHECK(0 == ibv_wr_complete(p.a.qpx));
    end_expect(&p.a, 1, IBV_WC_SUCCESS);
    end_expect(&p.a, 2, IBV_WC_REM_ACCESS_ERR);
    CHECK(0 == memcmp(here, there, bytes) && pair_untouched());
    CHECK(0 == ibv_dereg_mr(here_mr));
    CHECK(0 == ibv_dereg_mr(there_mr));
    pair_unmake(&p);
    free(here);
    free(there);
}

static const struct pair_case cases[] = {
    {"no receive", no_receive},
    {"late receive", late_receive},
    {"late receives and large messages", late_and_large},
    {"short or bad receive", short_receive},
    {"remote read", read_remote},
    {"reads at once", many_reads},
    {"read before an error", read_before_error},
    {"large remote read", large_read},
};

int main(int argc, char **argv)
{
    return pair_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
