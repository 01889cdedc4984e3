/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Atomics: their effects, their results, and the refused ones. (Repeated ones: test_breaks.)
 */

#include "verbs_pair.h"

#include <string.h>

#define ATOMIC_ALL (PAIR_ALL | IBV_ACCESS_REMOTE_ATOMIC)

static struct pair p;
static struct ibv_mr *target; /* pair_dst, with the right */

static void make(void)
{
    pair_make(&p, NULL);
    target = ibv_reg_mr(p.b.pd, pair_dst, PAIR_PAGE, ATOMIC_ALL);
    CHECK(NULL != target);
}

static void unmake(void)
{
    CHECK(0 == ibv_dereg_mr(target));
    pair_unmake(&p);
}

static void set_there(uint32_t at, uint64_t value)
{
    memcpy(pair_dst + at, &value, sizeof(value));
}

static uint64_t there(uint32_t at)
{
    uint64_t value;

    memcpy(&value, pair_dst + at, sizeof(value));
    return value;
}

/* The result at the start of the local page. */
static uint64_t here(void)
{
    uint64_t value;

    memcpy(&value, pair_src, sizeof(value));
    return value;
}

static void begin(struct end *end, uint64_t wr_id)
{
    ibv_wr_start(end->qpx);
    end->qpx->wr_id = wr_id;
    end->qpx->wr_flags = IBV_SEND_SIGNALED;
}

static void add(struct end *end, uint64_t wr_id, uint32_t rkey, uint64_t raddr, uint64_t value,
                uint32_t lkey, uint64_t addr)
{
    begin(end, wr_id);
    ibv_wr_atomic_fetch_add(end->qpx, rkey, raddr, value);
    ibv_wr_set_sge(end->qpx, lkey, addr, 8);
    CHECK(0 == ibv_wr_complete(end->qpx));
}

static void swap(uint64_t wr_id, uint32_t at, uint64_t compare, uint64_t value)
{
    begin(&p.a, wr_id);
    ibv_wr_atomic_cmp_swp(p.a.qpx, target->rkey, (uintptr_t) pair_dst + at, compare, value);
    ibv_wr_set_sge(p.a.qpx, p.src->lkey, (uintptr_t) pair_src, 8);
    CHECK(0 == ibv_wr_complete(p.a.qpx));
}

static void add_here(uint64_t wr_id, uint32_t rkey, uint64_t raddr)
{
    add(&p.a, wr_id, rkey, raddr, 1, p.src->lkey, (uintptr_t) pair_src);
}

static void both(void)
{
    struct ibv_device_attr attr;
    struct ibv_wc wc;

    make();
    CHECK(0 == ibv_query_device(p.a.context, &attr) && IBV_ATOMIC_HCA == attr.atomic_cap);
    set_there(64, 0x1122334455667788);
    add(&p.a, 1, target->rkey, (uintptr_t) pair_dst + 64, 0xf000000000000001, p.src->lkey,
        (uintptr_t) pair_src);
    CHECK(end_poll(&p.a, &wc, END_LONG_MS));
    CHECK(IBV_WC_SUCCESS == wc.status && IBV_WC_FETCH_ADD == wc.opcode && 1 == wc.wr_id);
    CHECK(0x1122334455667788 == here() && 0x0122334455667789 == there(64));
    swap(2, 64, 0x0122334455667789, 42);
    CHECK(end_poll(&p.a, &wc, END_LONG_MS));
    CHECK(IBV_WC_SUCCESS == wc.status && IBV_WC_COMP_SWAP == wc.opcode && 2 == wc.wr_id);
    CHECK(0x0122334455667789 == here() && 42 == there(64));
    /* Another value is there: it is only returned. */
    swap(3, 64, 43, 44);
    end_expect(&p.a, 3, IBV_WC_SUCCESS);
    CHECK(42 == here() && 42 == there(64));
    CHECK(0xa5 == pair_dst[63] && 0xa5 == pair_dst[72] && 0x5a == pair_src[8]);
    unmake();
}

/* Two connections at one place: no addition is lost, and no two bring the same. */
static void together(void)
{
    enum {
        EACH = 100
    };
    uint8_t seen[2 * EACH] = {0};
    uint64_t got[2][8];
    struct ibv_mr *got_mr;
    struct end a2;
    struct end b2;
    int i;

    make();
    pair_beside(&p, &a2, &b2);
    got_mr = end_reg(&p.a, got, sizeof(got));
    set_there(0, 0);
    for (i = 0; i < EACH; i += 4) {
        int k;

        for (k = 0; k < 4; k++) {
            add(&p.a, (uint64_t) k, target->rkey, (uintptr_t) pair_dst, 1, got_mr->lkey,
                (uintptr_t) &got[0][k]);
            add(&a2, (uint64_t) k, target->rkey, (uintptr_t) pair_dst, 1, got_mr->lkey,
                (uintptr_t) &got[1][k]);
        }
        for (k = 0; k < 4; k++) {
            end_expect(&p.a, (uint64_t) k, IBV_WC_SUCCESS);
            end_expect(&a2, (uint64_t) k, IBV_WC_SUCCESS);
        }
        for (k = 0; k < 4; k++) {
            CHECK(2 * EACH > got[0][k] && 0 == seen[got[0][k]]++);
            CHECK(2 * EACH > got[1][k] && 0 == seen[got[1][k]]++);
        }
    }
    CHECK(2 * EACH == there(0));
    CHECK(0 == ibv_dereg_mr(got_mr));
    end_close(&a2);
    end_close(&b2);
    unmake();
}

/* Through an mkey: its result may be in pieces, its operand not. */
static void through_mkeys(void)
{
    struct ibv_sge sge[2];
    struct mlx5dv_mkey *from;
    struct mlx5dv_mkey *to;
    uint32_t halves[2];
    uint64_t value = 0x0102030405060708;

    make();
    from = end_mkey(&p.a, 4);
    to = end_mkey(&p.b, 4);
    sge[0] = (struct ibv_sge){(uintptr_t) pair_src, 4, p.src->lkey};
    sge[1] = (struct ibv_sge){(uintptr_t) pair_src + 100, 4, p.src->lkey};
    end_umr_list(&p.a, from, PAIR_ALL, 2, sge, true);
    sge[0] = (struct ibv_sge){(uintptr_t) pair_dst + 160, 16, target->lkey};
    sge[1] = (struct ibv_sge){(uintptr_t) pair_dst + 204, 8, target->lkey};
    end_umr_list(&p.b, to, ATOMIC_ALL, 2, sge, true);
    set_there(168, value);
    add(&p.a, 1, to->rkey, 8, 1, from->lkey, 0);
    end_expect(&p.a, 1, IBV_WC_SUCCESS);
    CHECK(value + 1 == there(168));
    memcpy(&halves[0], pair_src, 4);
    memcpy(&halves[1], pair_src + 100, 4);
    CHECK(0 == memcmp(halves, &value, 8));
    sge[0].length = 12;
    to->lkey++;
    to->rkey = to->lkey;
    end_umr_list(&p.b, to, ATOMIC_ALL, 2, sge, true);
    add(&p.a, 2, to->rkey, 8, 1, from->lkey, 0);
    end_expect(&p.a, 2, IBV_WC_REM_ACCESS_ERR);
    CHECK(value + 1 == there(168) && 0xa5 == pair_dst[204]);
    CHECK(0 == mlx5dv_destroy_mkey(from));
    CHECK(0 == mlx5dv_destroy_mkey(to));
    unmake();
}

static void refused(void)
{
    struct end_options no_atomics = {.access = PAIR_ALL};
    int i;

    for (i = 0; i < 5; i++) {
        enum ibv_wc_status expected = IBV_WC_REM_ACCESS_ERR;

        if (4 != i) {
            make();
        } else {
            pair_make(&p, &no_atomics);
            target = ibv_reg_mr(p.b.pd, pair_dst, PAIR_PAGE, ATOMIC_ALL);
            CHECK(NULL != target);
        }
        switch (i) {
        case 0: /* no right */
            add_here(1, p.dst->rkey, (uintptr_t) pair_dst);
            break;
        case 1: /* not the key */
            add_here(1, target->rkey + 1, (uintptr_t) pair_dst);
            break;
        case 2: /* beyond the end */
            add_here(1, target->rkey, (uintptr_t) pair_dst + PAIR_PAGE);
            break;
        case 3:
            add_here(1, target->rkey, (uintptr_t) pair_dst + 4);
            expected = IBV_WC_REM_INV_REQ_ERR;
            break;
        default: /* the queue pair withholds it */
            add_here(1, target->rkey, (uintptr_t) pair_dst);
            break;
        }
        end_expect(&p.a, 1, expected);
        CHECK(IBV_QPS_ERR == pair_state(&p.a) && IBV_QPS_ERR == pair_state(&p.b));
        CHECK(pair_untouched() && 0x5a == pair_src[0]);
        unmake();
    }
    /* Here it is too late: it was performed, and there is no buffer for its result. */
    make();
    set_there(0, 5);
    add(&p.a, 1, target->rkey, (uintptr_t) pair_dst, 1, p.src->lkey ^ 1, (uintptr_t) pair_src);
    end_expect(&p.a, 1, IBV_WC_LOC_PROT_ERR);
    CHECK(6 == there(0) && 0x5a == pair_src[0]);
    unmake();
    make();
    begin(&p.a, 1);
    ibv_wr_atomic_fetch_add(p.a.qpx, target->rkey, (uintptr_t) pair_dst, 1);
    ibv_wr_set_sge(p.a.qpx, p.src->lkey, (uintptr_t) pair_src, 4);
    CHECK(0 == ibv_wr_complete(p.a.qpx));
    end_expect(&p.a, 1, IBV_WC_LOC_QP_OP_ERR);
    CHECK(pair_untouched());
    unmake();
}

static const struct pair_case cases[] = {
    {"add, compare and swap", both},
    {"together", together},
    {"through mkeys", through_mkeys},
    {"refused", refused},
};

int main(int argc, char **argv)
{
    return pair_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
