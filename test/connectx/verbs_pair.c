/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "verbs_pair.h"

#include <string.h>

uint8_t *pair_src;
uint8_t *pair_dst;

void pair_make(struct pair *p, const struct end_options *options)
{
    memset(pair_src, 0x5a, PAIR_PAGE);
    memset(pair_dst, 0xa5, PAIR_PAGE);
    end_open(&p->a, options);
    end_open(&p->b, options);
    end_connect(&p->a, &p->b.name, options);
    end_connect(&p->b, &p->a.name, options);
    p->src = end_reg(&p->a, pair_src, PAIR_PAGE);
    p->dst = end_reg(&p->b, pair_dst, PAIR_PAGE);
}

void pair_unmake(struct pair *p)
{
    CHECK(0 == ibv_dereg_mr(p->src));
    CHECK(0 == ibv_dereg_mr(p->dst));
    end_close(&p->a);
    end_close(&p->b);
    CHECK(0 == ibv_dealloc_pd(p->a.pd));
    CHECK(0 == ibv_dealloc_pd(p->b.pd));
    CHECK(0 == ibv_close_device(p->a.context));
    CHECK(0 == ibv_close_device(p->b.context));
}

void pair_beside(struct pair *p, struct end *a2, struct end *b2)
{
    struct end_options share = {.share = &p->a};

    end_open(a2, &share);
    share.share = &p->b;
    end_open(b2, &share);
    end_connect(a2, &b2->name, NULL);
    end_connect(b2, &a2->name, NULL);
}

bool pair_untouched(void)
{
    size_t i;

    for (i = 0; i < PAIR_PAGE; i++) {
        if (0xa5 != pair_dst[i]) {
            return false;
        }
    }
    return true;
}

enum ibv_qp_state pair_state(struct end *end)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    CHECK(0 == ibv_query_qp(end->qp, &attr, IBV_QP_STATE, &init));
    return attr.qp_state;
}

void pair_write_fails(struct pair *p, uint32_t lkey, uint64_t addr, uint32_t length, uint32_t rkey,
                      uint64_t raddr, enum ibv_wc_status status)
{
    end_write(&p->a, 1, lkey, addr, length, rkey, raddr, 0);
    end_expect(&p->a, 1, status);
    CHECK(IBV_QPS_ERR == pair_state(&p->a));
    end_write(&p->a, 2, p->src->lkey, (uintptr_t) pair_src, 8, p->dst->rkey, (uintptr_t) pair_dst,
              0);
    end_expect(&p->a, 2, IBV_WC_WR_FLUSH_ERR);
    CHECK(pair_untouched());
}

void pair_good_write(struct pair *p)
{
    end_write(&p->a, 7, p->src->lkey, (uintptr_t) pair_src, PAIR_PAGE, p->dst->rkey,
              (uintptr_t) pair_dst, 0);
    end_expect(&p->a, 7, IBV_WC_SUCCESS);
    CHECK(0 == memcmp(pair_src, pair_dst, PAIR_PAGE));
    memset(pair_dst, 0xa5, PAIR_PAGE);
}

void pair_send(struct end *end, uint64_t wr_id, struct ibv_mr *mr, uint32_t length)
{
    ibv_wr_start(end->qpx);
    end->qpx->wr_id = wr_id;
    end->qpx->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(end->qpx);
    ibv_wr_set_sge(end->qpx, mr->lkey, (uintptr_t) mr->addr, length);
    CHECK(0 == ibv_wr_complete(end->qpx));
}

int pair_main(int argc, char **argv, const struct pair_case *cases, size_t count)
{
    size_t i;

    end_start(argv, NULL);
    pair_src = aligned_alloc(PAIR_PAGE, PAIR_PAGE);
    pair_dst = aligned_alloc(PAIR_PAGE, PAIR_PAGE);
    CHECK(NULL != pair_src && NULL != pair_dst);
    for (i = 0; i < count; i++) {
        if (1 < argc && NULL == strstr(cases[i].name, argv[1])) {
            continue;
        }
        end_case = cases[i].name;
        cases[i].run();
        printf("ok: %s\n", end_case);
    }
    return 0;
}
