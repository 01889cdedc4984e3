/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* mkeys: their tags, ends, rights and capacities, mkeys in mkeys, and where libmlx5 is silent. */

#include "verbs_pair.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

/* Post one UMR of a list and expect its status. */
static void umr_status(struct end *end, struct mlx5dv_mkey *mkey, unsigned access, uint16_t count,
                       struct ibv_sge *sge, enum ibv_wc_status status)
{
    end_umr_list(end, mkey, access, count, sge, false);
    end_expect(end, 0xdada, status);
}

static void mkey_tag(void)
{
    struct mlx5dv_mkey *mkey;
    struct ibv_sge sge;
    struct pair p;
    uint32_t old;

    pair_make(&p, NULL);
    mkey = end_mkey(&p.b, 4);
    sge = (struct ibv_sge){(uintptr_t) pair_dst, 64, p.dst->lkey};
    /* Not mapped yet. */
    pair_write_fails(&p, p.src->lkey, (uintptr_t) pair_src, 64, mkey->rkey, 0,
                     IBV_WC_REM_ACCESS_ERR);
    CHECK(0 == mlx5dv_destroy_mkey(mkey));
    pair_unmake(&p);

    pair_make(&p, NULL);
    mkey = end_mkey(&p.b, 4);
    sge.lkey = p.dst->lkey;
    end_umr_list(&p.b, mkey, PAIR_ALL, 1, &sge, true);
    old = mkey->rkey;
    end_write(&p.a, 9, p.src->lkey, (uintptr_t) pair_src, 64, old, 0, 0);
    end_expect(&p.a, 9, IBV_WC_SUCCESS);
    CHECK(0 == memcmp(pair_src, pair_dst, 64) && 0xa5 == pair_dst[64]);
    memset(pair_dst, 0xa5, PAIR_PAGE);
    mkey->lkey++;
    mkey->rkey = mkey->lkey;
    end_umr_list(&p.b, mkey, PAIR_ALL, 1, &sge, true);
    end_write(&p.a, 9, p.src->lkey, (uintptr_t) pair_src, 64, mkey->rkey, 0, 0);
    end_expect(&p.a, 9, IBV_WC_SUCCESS);
    memset(pair_dst, 0xa5, PAIR_PAGE);
    pair_write_fails(&p, p.src->lkey, (uintptr_t) pair_src, 64, old, 0, IBV_WC_REM_ACCESS_ERR);
    CHECK(0 == mlx5dv_destroy_mkey(mkey));
    pair_unmake(&p);
}

static void mkey_end(void)
{
    struct mlx5dv_mkey *mkey;
    struct ibv_sge sge[2];
    struct pair p;

    pair_make(&p, NULL);
    mkey = end_mkey(&p.b, 4);
    sge[0] = (struct ibv_sge){(uintptr_t) pair_dst, 64, p.dst->lkey};
    sge[1] = (struct ibv_sge){(uintptr_t) pair_dst + 1024, 36, p.dst->lkey};
    end_umr_list(&p.b, mkey, PAIR_ALL, 2, sge, true);
    pair_write_fails(&p, p.src->lkey, (uintptr_t) pair_src, 2, mkey->rkey, 99,
                     IBV_WC_REM_ACCESS_ERR);
    CHECK(0 == mlx5dv_destroy_mkey(mkey));
    pair_unmake(&p);
}

static void mkey_right(void)
{
    struct mlx5dv_mkey *mkey;
    struct ibv_sge sge;
    struct ibv_mr *mr;
    struct pair p;

    pair_make(&p, NULL);
    mkey = end_mkey(&p.b, 4);
    sge = (struct ibv_sge){(uintptr_t) pair_dst, 64, p.dst->lkey};
    end_umr_list(&p.b, mkey, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, 1, &sge, true);
    pair_write_fails(&p, p.src->lkey, (uintptr_t) pair_src, 8, mkey->rkey, 0,
                     IBV_WC_REM_ACCESS_ERR);
    CHECK(0 == mlx5dv_destroy_mkey(mkey));
    pair_unmake(&p);

    /* The key below it must give the right as well. */
    pair_make(&p, NULL);
    mkey = end_mkey(&p.b, 4);
    mr = ibv_reg_mr(p.b.pd, pair_dst, PAIR_PAGE, IBV_ACCESS_LOCAL_WRITE);
    CHECK(NULL != mr);
    sge = (struct ibv_sge){(uintptr_t) pair_dst, 64, mr->lkey};
    end_umr_list(&p.b, mkey, PAIR_ALL, 1, &sge, true);
    pair_write_fails(&p, p.src->lkey, (uintptr_t) pair_src, 8, mkey->rkey, 0,
                     IBV_WC_REM_ACCESS_ERR);
    CHECK(0 == mlx5dv_destroy_mkey(mkey));
    CHECK(0 == ibv_dereg_mr(mr));
    pair_unmake(&p);
}

static void umr_other_pd(void)
{
    struct mlx5dv_mkey_init_attr attr = {.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
                                         .max_entries = 4};
    struct mlx5dv_mkey *mkey;
    struct ibv_sge sge;
    struct ibv_pd *pd;
    struct pair p;

    pair_make(&p, NULL);
    pd = ibv_alloc_pd(p.a.context);
    attr.pd = pd;
    mkey = mlx5dv_create_mkey(&attr);
    CHECK(NULL != mkey);
    sge = (struct ibv_sge){(uintptr_t) pair_src, 64, p.src->lkey};
    umr_status(&p.a, mkey, PAIR_ALL, 1, &sge, IBV_WC_MW_BIND_ERR);
    CHECK(IBV_QPS_ERR == pair_state(&p.a));
    CHECK(0 == mlx5dv_destroy_mkey(mkey));
    CHECK(0 == ibv_dealloc_pd(pd));
    pair_unmake(&p);
}

static void too_many_entries(void)
{
    struct mlx5dv_mr_interleaved data[8];
    struct mlx5dv_mkey_conf_attr conf = {0};
    struct mlx5dv_mkey *mkey;
    struct ibv_sge sge[64];
    struct pair p;
    int i;

    pair_make(&p, NULL);
    mkey = end_mkey(&p.a, 64);
    for (i = 0; i < 64; i++) {
        sge[i] = (struct ibv_sge){(uintptr_t) pair_src + (unsigned) i, 1, p.src->lkey};
    }
    end_umr_list(&p.a, mkey, PAIR_ALL, 52, sge, true);
    ibv_wr_start(p.a.qpx);
    p.a.qpx->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
    mlx5dv_wr_mkey_configure(p.a.mqp, mkey, 2, &conf);
    mlx5dv_wr_set_mkey_access_flags(p.a.mqp, PAIR_ALL);
    mlx5dv_wr_set_mkey_layout_list(p.a.mqp, 53, sge);
    CHECK(ENOMEM == ibv_wr_complete(p.a.qpx));
    CHECK(0 == mlx5dv_destroy_mkey(mkey));

    /* What libmlx5 44 does not count: a repeat block takes an entry of its own. */
    mkey = end_mkey(&p.a, 4);
    for (i = 0; i < 8; i++) {
        data[i] = (struct mlx5dv_mr_interleaved){(uintptr_t) pair_src, 1, 7, p.src->lkey};
    }
    end_umr_interleaved(&p.a, mkey, PAIR_ALL, 2, 3, data, true);
    end_umr_interleaved(&p.a, mkey, PAIR_ALL, 2, 4, data, false);
    end_expect(&p.a, 0xdada, IBV_WC_MW_BIND_ERR);
    CHECK(0 == mlx5dv_destroy_mkey(mkey));
    pair_unmake(&p);
}

static void empty_entry(void)
{
    struct mlx5dv_mkey *mkey;
    struct ibv_sge sge[3];
    struct pair p;

    pair_make(&p, NULL);
    mkey = end_mkey(&p.a, 4);
    sge[0] = (struct ibv_sge){(uintptr_t) pair_src, 8, p.src->lkey};
    sge[1] = (struct ibv_sge){(uintptr_t) pair_src + 8, 0, p.src->lkey};
    sge[2] = (struct ibv_sge){(uintptr_t) pair_src + 8, 8, p.src->lkey};
    umr_status(&p.a, mkey, PAIR_ALL, 3, sge, IBV_WC_MW_BIND_ERR);
    CHECK(0 == mlx5dv_destroy_mkey(mkey));
    pair_unmake(&p);
}

static void nested(void)
{
    struct mlx5dv_mkey *mkey[6];
    struct ibv_sge sge[2];
    struct pair p;
    int i;

    pair_make(&p, NULL);
    for (i = 0; i < (int) PAIR_PAGE; i++) {
        pair_src[i] = (uint8_t) (i * 7 + i / 256);
    }
    sge[0] = (struct ibv_sge){(uintptr_t) pair_src + 10, 5, p.src->lkey};
    sge[1] = (struct ibv_sge){(uintptr_t) pair_src + 100, 5, p.src->lkey};
    for (i = 0; i < 6; i++) {
        mkey[i] = end_mkey(&p.a, 4);
        end_umr_list(&p.a, mkey[i], PAIR_ALL, 2, sge, true);
        /* The next maps the second and the first half of this one. */
        sge[0] = (struct ibv_sge){5, 5, mkey[i]->lkey};
        sge[1] = (struct ibv_sge){0, 5, mkey[i]->lkey};
    }
    /* The HCA reports four levels. */
    end_write(&p.a, 1, mkey[3]->lkey, 0, 10, p.dst->rkey, (uintptr_t) pair_dst, 0);
    end_expect(&p.a, 1, IBV_WC_SUCCESS);
    CHECK(0 == memcmp(pair_dst, pair_src + 100, 5) && 0 == memcmp(pair_dst + 5, pair_src + 10, 5));
    memset(pair_dst, 0xa5, PAIR_PAGE);
    pair_write_fails(&p, mkey[4]->lkey, 0, 10, p.dst->rkey, (uintptr_t) pair_dst,
                     IBV_WC_LOC_PROT_ERR);
    for (i = 5; i >= 0; i--) {
        CHECK(0 == mlx5dv_destroy_mkey(mkey[i]));
    }
    pair_unmake(&p);
}

/* A raw work request whose list lies in registered memory: far more entries than fit the other way.
 */
static void list_outside(void)
{
    enum {
        ENTRIES = 1000,
        EACH = 3
    };
    struct {
        struct mlx5_wqe_ctrl_seg ctrl;
        struct mlx5_wqe_umr_ctrl_seg umr;
        struct mlx5_wqe_mkey_context_seg context;
        struct mlx5_wqe_data_seg list;
    } wqe;
    struct mlx5_wqe_data_seg *list = aligned_alloc(2048, 16384);
    struct mlx5dv_mkey *mkey;
    struct ibv_mr *list_mr;
    struct pair p;
    int aligned;
    int i;

    CHECK(NULL != list);
    for (aligned = 1; aligned >= 0; aligned--) {
        pair_make(&p, NULL);
        for (i = 0; i < (int) PAIR_PAGE; i++) {
            pair_src[i] = (uint8_t) ((uint32_t) i * 2654435761u >> 11);
        }
        list_mr = end_reg(&p.a, list, 16384);
        mkey = end_mkey(&p.a, ENTRIES);
        memset(list, 0, 16384);
        for (i = 0; i < ENTRIES; i++) {
            mlx5dv_set_data_seg(&list[i], EACH, p.src->lkey,
                                (uintptr_t) pair_src + PAIR_PAGE - (uint32_t) (i + 1) * 4);
        }
        memset(&wqe, 0, sizeof(wqe));
        mlx5dv_set_ctrl_seg(&wqe.ctrl, 0, MLX5_OPCODE_UMR, 0, p.a.qp->qp_num,
                            MLX5_WQE_CTRL_CQ_UPDATE, sizeof(wqe) / 16, 0, htobe32(mkey->lkey));
        wqe.umr.klm_octowords = htobe16(ENTRIES);
        wqe.umr.mkey_mask = htobe64(
            MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN | MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY
            | MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_LOCAL_WRITE
            | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_READ
            | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_WRITE
            | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_ATOMIC);
        wqe.context.qpn_mkey = htobe32(0xffffff00 | (mkey->lkey & 0xff));
        wqe.context.len = htobe64(ENTRIES * EACH);
        mlx5dv_set_data_seg(&wqe.list, ENTRIES * 16, list_mr->lkey,
                            (uintptr_t) list + (aligned ? 0 : 64));
        ibv_wr_start(p.a.qpx);
        p.a.qpx->wr_id = 5;
        /* The flags are the work request's own here. */
        mlx5dv_wr_raw_wqe(p.a.mqp, &wqe);
        CHECK(0 == ibv_wr_complete(p.a.qpx));
        end_expect(&p.a, 5, aligned ? IBV_WC_SUCCESS : IBV_WC_MW_BIND_ERR);
        if (aligned) {
            end_write(&p.a, 6, mkey->lkey, 0, ENTRIES * EACH, p.dst->rkey, (uintptr_t) pair_dst, 0);
            end_expect(&p.a, 6, IBV_WC_SUCCESS);
            for (i = 0; i < ENTRIES * EACH; i++) {
                CHECK(pair_dst[i]
                      == pair_src[PAIR_PAGE - (uint32_t) (i / EACH + 1) * 4 + (uint32_t) i % EACH]);
            }
            CHECK(0xa5 == pair_dst[ENTRIES * EACH]);
        }
        CHECK(0 == mlx5dv_destroy_mkey(mkey));
        CHECK(0 == ibv_dereg_mr(list_mr));
        pair_unmake(&p);
    }
    free(list);
}

/* A stride of 65,536 bytes does not fit its 16 bits: libmlx5 says nothing, and the data is wrong.
 */
static void stride_limit(void)
{
    const uint32_t strides[2] = {65535, 65536};
    uint8_t *big = malloc(4 * 65536);
    struct mlx5dv_mkey *mkey;
    struct ibv_mr *mr;
    struct pair p;
    int s;
    int i;

    CHECK(NULL != big);
    for (i = 0; i < 4 * 65536; i++) {
        big[i] = (uint8_t) ((uint32_t) i * 2654435761u >> 21);
    }
    pair_make(&p, NULL);
    mr = end_reg(&p.a, big, 4 * 65536);
    mkey = end_mkey(&p.a, 4);
    for (s = 0; s < 2; s++) {
        struct mlx5dv_mr_interleaved data = {(uintptr_t) big, 100, strides[s] - 100, mr->lkey};
        bool right = true;

        end_umr_interleaved(&p.a, mkey, PAIR_ALL, 4, 1, &data, true);
        end_write(&p.a, 1, mkey->lkey, 0, 400, p.dst->rkey, (uintptr_t) pair_dst, 0);
        end_expect(&p.a, 1, IBV_WC_SUCCESS);
        for (i = 0; i < 400; i++) {
            right =
                right && pair_dst[i] == big[(uint32_t) (i / 100) * strides[s] + (uint32_t) i % 100];
        }
        CHECK(right == (65535 == strides[s]));
        /* The received data: four times the first block. */
        CHECK(65535 == strides[s] || 0 == memcmp(pair_dst + 300, big, 100));
    }
    CHECK(0 == mlx5dv_destroy_mkey(mkey));
    CHECK(0 == ibv_dereg_mr(mr));
    free(big);
    pair_unmake(&p);
}

static const struct pair_case cases[] = {
    {"tag of an mkey", mkey_tag},
    {"end of an mkey", mkey_end},
    {"rights of an mkey", mkey_right},
    {"UMR in another protection domain", umr_other_pd},
    {"too many entries", too_many_entries},
    {"empty entry", empty_entry},
    {"mkeys in mkeys", nested},
    {"stride of 16 bits", stride_limit},
    {"list outside of the work request", list_outside},
};

int main(int argc, char **argv)
{
    return pair_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
