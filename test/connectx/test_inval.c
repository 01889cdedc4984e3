/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Keys that are taken away: by their owner's work request, and by a peer's send. */

#include "verbs_pair.h"

#include <string.h>

#define LARGE 200000u

static struct pair p;

/* An mkey of b over the first 64 bytes of pair_dst, which a peer may invalidate if so. */
static struct mlx5dv_mkey *map(bool remote)
{
    struct mlx5dv_mkey_init_attr attr = {.pd = p.b.pd, .max_entries = 4};
    struct ibv_sge sge = {(uintptr_t) pair_dst, 64, p.dst->lkey};
    struct mlx5dv_mkey *mkey;

    attr.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT
                        | MLX5DV_MKEY_INIT_ATTR_FLAGS_UPDATE_TAG
                        | (remote ? (uint32_t) MLX5DV_MKEY_INIT_ATTR_FLAGS_REMOTE_INVALIDATE : 0);
    mkey = mlx5dv_create_mkey(&attr);
    CHECK(NULL != mkey);
    mkey->lkey |= 7;
    mkey->rkey = mkey->lkey;
    end_umr_list(&p.b, mkey, PAIR_ALL, 1, &sge, true);
    return mkey;
}

static void local_inv(struct end *end, uint64_t wr_id, uint32_t rkey)
{
    ibv_wr_start(end->qpx);
    end->qpx->wr_id = wr_id;
    end->qpx->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_local_inv(end->qpx, rkey);
    CHECK(0 == ibv_wr_complete(end->qpx));
}

static void send_inv(uint64_t wr_id, uint32_t rkey, struct ibv_mr *mr, uint32_t length)
{
    ibv_wr_start(p.a.qpx);
    p.a.qpx->wr_id = wr_id;
    p.a.qpx->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send_inv(p.a.qpx, rkey);
    ibv_wr_set_sge(p.a.qpx, mr->lkey, (uintptr_t) mr->addr, length);
    CHECK(0 == ibv_wr_complete(p.a.qpx));
}

static void write64(uint64_t wr_id, uint32_t rkey, uint64_t raddr)
{
    end_write(&p.a, wr_id, p.src->lkey, (uintptr_t) pair_src, 64, rkey, raddr, 0);
}

static void end_map(struct mlx5dv_mkey *mkey)
{
    CHECK(0 == mlx5dv_destroy_mkey(mkey));
    pair_unmake(&p);
}

/* It maps nothing until it is mapped again. */
static void by_owner(void)
{
    struct mlx5dv_mkey *mkey;
    struct ibv_sge sge;
    struct ibv_wc wc;

    pair_make(&p, NULL);
    mkey = map(false);
    write64(1, mkey->rkey, 0);
    end_expect(&p.a, 1, IBV_WC_SUCCESS);
    CHECK(0x5a == pair_dst[0] && 0x5a == pair_dst[63] && 0xa5 == pair_dst[64]);
    memset(pair_dst, 0xa5, PAIR_PAGE);
    local_inv(&p.b, 2, mkey->rkey);
    CHECK(end_poll(&p.b, &wc, END_LONG_MS));
    CHECK(IBV_WC_SUCCESS == wc.status && IBV_WC_LOCAL_INV == wc.opcode && 2 == wc.wr_id);
    /* For the owner, too; then all over. */
    mkey->lkey++;
    mkey->rkey = mkey->lkey;
    sge = (struct ibv_sge){(uintptr_t) pair_dst, 64, p.dst->lkey};
    end_umr_list(&p.b, mkey, PAIR_ALL, 1, &sge, true);
    write64(3, mkey->rkey, 0);
    end_expect(&p.a, 3, IBV_WC_SUCCESS);
    CHECK(0x5a == pair_dst[63]);
    memset(pair_dst, 0xa5, PAIR_PAGE);
    local_inv(&p.b, 4, mkey->rkey);
    end_expect(&p.b, 4, IBV_WC_SUCCESS);
    pair_write_fails(&p, p.src->lkey, (uintptr_t) pair_src, 64, mkey->rkey, 0,
                     IBV_WC_REM_ACCESS_ERR);
    end_map(mkey);

    pair_make(&p, NULL);
    mkey = map(false);
    local_inv(&p.b, 4, mkey->rkey);
    end_write(&p.b, 5, mkey->lkey, 0, 8, p.src->rkey, (uintptr_t) pair_src, 0);
    end_expect(&p.b, 4, IBV_WC_SUCCESS);
    end_expect(&p.b, 5, IBV_WC_LOC_PROT_ERR);
    CHECK(0x5a == pair_src[0]);
    end_map(mkey);
}

/* Mapping, use and invalidation in a row, on one queue: each sees the ones before it. */
static void in_a_row(void)
{
    struct mlx5dv_mkey *mkey;
    struct ibv_sge sge;
    int i;

    pair_make(&p, NULL);
    mkey = map(false);
    local_inv(&p.b, 99, mkey->rkey);
    end_expect(&p.b, 99, IBV_WC_SUCCESS);
    for (i = 0; i < 4; i++) {
        mkey->lkey++;
        mkey->rkey = mkey->lkey;
        sge = (struct ibv_sge){(uintptr_t) pair_dst + 100u * (unsigned) i, 64, p.dst->lkey};
        end_umr_list(&p.b, mkey, PAIR_ALL, 1, &sge, false);
        end_write(&p.b, (uint64_t) i, mkey->lkey, 0, 64, p.src->rkey,
                  (uintptr_t) pair_src + 64u * (unsigned) i, 0);
        local_inv(&p.b, 10 + (uint64_t) i, mkey->rkey);
    }
    for (i = 0; i < 4; i++) {
        end_expect(&p.b, 0xdada, IBV_WC_SUCCESS);
        end_expect(&p.b, (uint64_t) i, IBV_WC_SUCCESS);
        end_expect(&p.b, 10 + (uint64_t) i, IBV_WC_SUCCESS);
    }
    CHECK(0xa5 == pair_src[0] && 0xa5 == pair_src[255] && 0x5a == pair_src[256]);
    end_map(mkey);
}

/* A key that is not there cannot be invalidated. */
static void bad_local(void)
{
    struct mlx5dv_mkey *mkey;
    int i;

    for (i = 0; i < 4; i++) {
        pair_make(&p, NULL);
        mkey = map(false);
        switch (i) {
        case 0: /* an older tag */
            local_inv(&p.b, 1, mkey->rkey - 1);
            break;
        case 1: /* twice */
            local_inv(&p.b, 2, mkey->rkey);
            end_expect(&p.b, 2, IBV_WC_SUCCESS);
            local_inv(&p.b, 1, mkey->rkey);
            break;
        case 2: /* a registration */
            local_inv(&p.b, 1, p.dst->rkey);
            break;
        default: /* another process's */
            local_inv(&p.a, 1, mkey->rkey);
            break;
        }
        end_expect(3 == i ? &p.a : &p.b, 1, IBV_WC_MW_BIND_ERR);
        CHECK(IBV_QPS_ERR == pair_state(3 == i ? &p.a : &p.b));
        end_map(mkey);
    }
}

/* The data of a send, and of requests before it, is there; requests after it are refused. */
static void by_peer(void)
{
    struct mlx5dv_mkey *mkey;
    struct ibv_sge sge;
    struct ibv_wc wc;
    int round;

    pair_make(&p, NULL);
    mkey = map(true);
    for (round = 0; round < 3; round++) {
        memset(pair_dst, 0xa5, PAIR_PAGE);
        end_recv(&p.b, 3, p.dst->lkey, pair_dst + 1024, 100);
        write64(1, mkey->rkey, 0);
        send_inv(2, mkey->rkey, p.src, 10);
        end_expect(&p.a, 1, IBV_WC_SUCCESS);
        end_expect(&p.a, 2, IBV_WC_SUCCESS);
        CHECK(end_poll(&p.b, &wc, END_LONG_MS));
        CHECK(IBV_WC_SUCCESS == wc.status && IBV_WC_RECV == wc.opcode && 3 == wc.wr_id
              && 10 == wc.byte_len && 0 != (wc.wc_flags & IBV_WC_WITH_INV)
              && mkey->rkey == wc.invalidated_rkey);
        CHECK(0x5a == pair_dst[63] && 0x5a == pair_dst[1024 + 9] && 0xa5 == pair_dst[1024 + 10]);
        mkey->lkey++;
        mkey->rkey = mkey->lkey;
        sge = (struct ibv_sge){(uintptr_t) pair_dst, 64, p.dst->lkey};
        end_umr_list(&p.b, mkey, PAIR_ALL, 1, &sge, true);
    }
    memset(pair_dst, 0xa5, PAIR_PAGE);
    end_recv(&p.b, 3, 0, NULL, 0);
    send_inv(4, mkey->rkey, p.src, 0);
    write64(5, mkey->rkey, 0);
    end_expect(&p.a, 4, IBV_WC_SUCCESS);
    end_expect(&p.a, 5, IBV_WC_REM_ACCESS_ERR);
    end_expect(&p.b, 3, IBV_WC_SUCCESS);
    CHECK(pair_untouched());
    end_map(mkey);
}

/* A long one takes the key away with its end. */
static void by_long_send(void)
{
    uint8_t *from = malloc(LARGE);
    uint8_t *to = malloc(LARGE);
    struct mlx5dv_mkey *mkey;
    struct ibv_mr *from_mr;
    struct ibv_mr *to_mr;
    struct ibv_wc wc;

    CHECK(NULL != from && NULL != to);
    memset(from, 0x33, LARGE);
    pair_make(&p, NULL);
    mkey = map(true);
    from_mr = end_reg(&p.a, from, LARGE);
    to_mr = end_reg(&p.b, to, LARGE);
    end_recv(&p.b, 3, to_mr->lkey, to, LARGE);
    send_inv(2, mkey->rkey, from_mr, LARGE);
    end_expect(&p.a, 2, IBV_WC_SUCCESS);
    CHECK(end_poll(&p.b, &wc, END_LONG_MS) && IBV_WC_SUCCESS == wc.status && LARGE == wc.byte_len);
    CHECK(mkey->rkey == wc.invalidated_rkey && 0 == memcmp(from, to, LARGE));
    pair_write_fails(&p, p.src->lkey, (uintptr_t) pair_src, 64, mkey->rkey, 0,
                     IBV_WC_REM_ACCESS_ERR);
    CHECK(0 == ibv_dereg_mr(from_mr));
    CHECK(0 == ibv_dereg_mr(to_mr));
    free(from);
    free(to);
    end_map(mkey);
}

/* Keys that a peer may not take away are still there afterwards. */
static void bad_remote(void)
{
    struct mlx5dv_mkey *mkey;
    struct end a2;
    struct end b2;
    int i;

    for (i = 0; i < 3; i++) {
        pair_make(&p, NULL);
        mkey = map(0 != i);
        end_recv(&p.b, 3, p.dst->lkey, pair_dst + 1024, 100);
        end_recv(&p.b, 4, p.dst->lkey, pair_dst + 1024, 100);
        send_inv(2, 0 == i ? mkey->rkey : 1 == i ? mkey->rkey - 1 : p.dst->rkey, p.src, 10);
        end_expect(&p.a, 2, IBV_WC_REM_ACCESS_ERR);
        end_expect(&p.b, 3, IBV_WC_LOC_ACCESS_ERR);
        end_expect(&p.b, 4, IBV_WC_WR_FLUSH_ERR);
        CHECK(p.b.qp == end_event(&p.b, IBV_EVENT_QP_ACCESS_ERR));
        pair_beside(&p, &a2, &b2);
        end_write(&a2, 5, p.src->lkey, (uintptr_t) pair_src, 64, mkey->rkey, 0, 0);
        end_expect(&a2, 5, IBV_WC_SUCCESS);
        CHECK(0x5a == pair_dst[63]);
        end_close(&a2);
        end_close(&b2);
        end_map(mkey);
    }
}

/* One that others map is gone for who comes by these, too: invalidated, and mapped with a new tag.
 */
static void below(void)
{
    for (int i = 0; i < 4; i++) {
        struct mlx5dv_mkey *mkey, *outer;
        struct ibv_sge sge[2];

        pair_make(&p, NULL);
        mkey = map(false);
        outer = end_mkey(&p.b, 4);
        sge[0] = (struct ibv_sge){32, 32, mkey->lkey};
        sge[1] = (struct ibv_sge){0, 32, mkey->lkey};
        end_umr_list(&p.b, outer, PAIR_ALL, 2, sge, true);
        write64(1, outer->rkey, 0);
        end_expect(&p.a, 1, IBV_WC_SUCCESS);
        CHECK(0x5a == pair_dst[63] && 0xa5 == pair_dst[64]);
        memset(pair_dst, 0xa5, PAIR_PAGE);
        if (i < 2) {
            local_inv(&p.b, 2, mkey->rkey);
            end_expect(&p.b, 2, IBV_WC_SUCCESS);
        } else {
            mkey->lkey++;
            mkey->rkey = mkey->lkey;
            sge[0] = (struct ibv_sge){(uintptr_t) pair_dst, 64, p.dst->lkey};
            end_umr_list(&p.b, mkey, PAIR_ALL, 1, sge, true);
        }
        if (0 == i % 2) {
            pair_write_fails(&p, p.src->lkey, (uintptr_t) pair_src, 64, outer->rkey, 0,
                             IBV_WC_REM_ACCESS_ERR);
        } else {
            end_write(&p.b, 3, outer->lkey, 0, 64, p.src->rkey, (uintptr_t) pair_src, 0);
            end_expect(&p.b, 3, IBV_WC_LOC_PROT_ERR);
            CHECK(0x5a == pair_src[0]);
        }
        CHECK(0 == mlx5dv_destroy_mkey(outer));
        end_map(mkey);
    }
}

static const struct pair_case cases[] = {
    {"by its owner", by_owner},
    {"mapped, used, invalidated in a row", in_a_row},
    {"nothing to invalidate", bad_local},
    {"by a peer's send", by_peer},
    {"by a long send", by_long_send},
    {"not by a peer", bad_remote},
    {"below another", below},
};

int main(int argc, char **argv)
{
    return pair_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
