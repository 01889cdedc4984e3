/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Bad keys of registrations: each with the completion that an HCA gives. */

#include "verbs_pair.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

static void bad_lkey(void)
{
    struct pair p;

    pair_make(&p, NULL);
    pair_good_write(&p);
    pair_write_fails(&p, 0xdeadbe00, (uintptr_t) pair_src, 64, p.dst->rkey, (uintptr_t) pair_dst,
                     IBV_WC_LOC_PROT_ERR);
    pair_unmake(&p);
}

static void lkey_tag(void)
{
    struct pair p;

    pair_make(&p, NULL);
    pair_write_fails(&p, p.src->lkey ^ 1, (uintptr_t) pair_src, 64, p.dst->rkey,
                     (uintptr_t) pair_dst, IBV_WC_LOC_PROT_ERR);
    pair_unmake(&p);
}

static void bad_rkey(void)
{
    struct pair p;

    pair_make(&p, NULL);
    pair_good_write(&p);
    end_recv(&p.b, 55, 0, NULL, 0);
    pair_write_fails(&p, p.src->lkey, (uintptr_t) pair_src, 64, p.dst->rkey ^ 0x10000,
                     (uintptr_t) pair_dst, IBV_WC_REM_ACCESS_ERR);
    /* The responder is in error too, and its receives come back. */
    CHECK(IBV_QPS_ERR == pair_state(&p.b));
    end_expect(&p.b, 55, IBV_WC_WR_FLUSH_ERR);
    pair_unmake(&p);
}

static void rkey_tag(void)
{
    struct pair p;

    pair_make(&p, NULL);
    pair_write_fails(&p, p.src->lkey, (uintptr_t) pair_src, 64, p.dst->rkey ^ 1,
                     (uintptr_t) pair_dst, IBV_WC_REM_ACCESS_ERR);
    pair_unmake(&p);
}

static void remote_end(void)
{
    struct pair p;

    pair_make(&p, NULL);
    pair_write_fails(&p, p.src->lkey, (uintptr_t) pair_src, 65, p.dst->rkey,
                     (uintptr_t) pair_dst + PAIR_PAGE - 64, IBV_WC_REM_ACCESS_ERR);
    pair_unmake(&p);
    pair_make(&p, NULL);
    pair_write_fails(&p, p.src->lkey, (uintptr_t) pair_src, 64, p.dst->rkey,
                     (uintptr_t) pair_dst - 1, IBV_WC_REM_ACCESS_ERR);
    pair_unmake(&p);
}

static void local_end(void)
{
    struct pair p;

    pair_make(&p, NULL);
    pair_write_fails(&p, p.src->lkey, (uintptr_t) pair_src + PAIR_PAGE - 64, 65, p.dst->rkey,
                     (uintptr_t) pair_dst, IBV_WC_LOC_PROT_ERR);
    pair_unmake(&p);
}

static void no_right(void)
{
    struct end_options options = {.access = IBV_ACCESS_REMOTE_READ};
    struct ibv_mr *mr;
    struct pair p;

    pair_make(&p, NULL);
    mr = ibv_reg_mr(p.b.pd, pair_dst, PAIR_PAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
    CHECK(NULL != mr);
    pair_write_fails(&p, p.src->lkey, (uintptr_t) pair_src, 64, mr->rkey, (uintptr_t) pair_dst,
                     IBV_WC_REM_ACCESS_ERR);
    CHECK(0 == ibv_dereg_mr(mr));
    pair_unmake(&p);
    /* The queue pair can withhold it too. */
    pair_make(&p, &options);
    pair_write_fails(&p, p.src->lkey, (uintptr_t) pair_src, 64, p.dst->rkey, (uintptr_t) pair_dst,
                     IBV_WC_REM_ACCESS_ERR);
    pair_unmake(&p);
}

static void other_pd(void)
{
    struct ibv_pd *pd;
    struct ibv_mr *mr;
    struct pair p;

    pair_make(&p, NULL);
    pd = ibv_alloc_pd(p.a.context);
    mr = ibv_reg_mr(pd, pair_src, PAIR_PAGE, PAIR_ALL);
    CHECK(NULL != mr);
    pair_write_fails(&p, mr->lkey, (uintptr_t) pair_src, 64, p.dst->rkey, (uintptr_t) pair_dst,
                     IBV_WC_LOC_PROT_ERR);
    CHECK(EBUSY == ibv_dealloc_pd(pd));
    CHECK(0 == ibv_dereg_mr(mr));
    CHECK(0 == ibv_dealloc_pd(pd));
    pair_unmake(&p);

    pair_make(&p, NULL);
    pd = ibv_alloc_pd(p.b.context);
    mr = ibv_reg_mr(pd, pair_dst, PAIR_PAGE, PAIR_ALL);
    CHECK(NULL != mr);
    pair_write_fails(&p, p.src->lkey, (uintptr_t) pair_src, 64, mr->rkey, (uintptr_t) pair_dst,
                     IBV_WC_REM_ACCESS_ERR);
    CHECK(0 == ibv_dereg_mr(mr));
    CHECK(0 == ibv_dealloc_pd(pd));
    pair_unmake(&p);
}

static void gone_memory(void)
{
    uint8_t *page =
        mmap(NULL, PAIR_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *mr;
    struct pair p;

    CHECK(MAP_FAILED != page);
    pair_make(&p, NULL);
    mr = end_reg(&p.a, page, PAIR_PAGE);
    CHECK(0 == munmap(page, PAIR_PAGE));
    pair_write_fails(&p, mr->lkey, (uintptr_t) page, 64, p.dst->rkey, (uintptr_t) pair_dst,
                     IBV_WC_LOC_PROT_ERR);
    CHECK(0 == ibv_dereg_mr(mr));
    pair_unmake(&p);
}

static void bad_registration(void)
{
    uint8_t *page = mmap(NULL, PAIR_PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *mr;
    struct pair p;

    CHECK(MAP_FAILED != page);
    pair_make(&p, NULL);
    CHECK(NULL == ibv_reg_mr(p.a.pd, page, PAIR_PAGE, PAIR_ALL) && EFAULT == errno);
    mr = ibv_reg_mr(p.a.pd, page, PAIR_PAGE, 0);
    CHECK(NULL != mr);
    CHECK(0 == ibv_dereg_mr(mr));
    CHECK(0 == munmap(page, PAIR_PAGE));
    CHECK(NULL == ibv_reg_mr(p.a.pd, page, PAIR_PAGE, 0) && EFAULT == errno);
    CHECK(NULL == ibv_reg_mr(p.a.pd, pair_src, PAIR_PAGE, IBV_ACCESS_REMOTE_WRITE)
          && EINVAL == errno);
    pair_unmake(&p);
}

/* The same key for other memory, with other rights, of another protection domain. */
static void registered_again(void)
{
    struct ibv_pd *pd;
    struct pair p;

    pair_make(&p, NULL);
    CHECK(0
          == ibv_rereg_mr(p.dst, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, pair_dst + 1024, 1024, 0));
    end_write(&p.a, 1, p.src->lkey, (uintptr_t) pair_src, 1024, p.dst->rkey,
              (uintptr_t) pair_dst + 1024, 0);
    end_expect(&p.a, 1, IBV_WC_SUCCESS);
    CHECK(0xa5 == pair_dst[1023] && 0x5a == pair_dst[1024] && 0x5a == pair_dst[2047]
          && 0xa5 == pair_dst[2048]);
    memset(pair_dst, 0xa5, PAIR_PAGE);
    pair_write_fails(&p, p.src->lkey, (uintptr_t) pair_src, 64, p.dst->rkey,
                     (uintptr_t) pair_dst + 960, IBV_WC_REM_ACCESS_ERR);
    pair_unmake(&p);

    pair_make(&p, NULL);
    CHECK(0
          == ibv_rereg_mr(p.dst, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
                          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ));
    pair_write_fails(&p, p.src->lkey, (uintptr_t) pair_src, 64, p.dst->rkey, (uintptr_t) pair_dst,
                     IBV_WC_REM_ACCESS_ERR);
    pair_unmake(&p);

    pair_make(&p, NULL);
    pd = ibv_alloc_pd(p.b.context);
    CHECK(0 == ibv_rereg_mr(p.dst, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0));
    CHECK(EBUSY == ibv_dealloc_pd(pd));
    pair_write_fails(&p, p.src->lkey, (uintptr_t) pair_src, 64, p.dst->rkey, (uintptr_t) pair_dst,
                     IBV_WC_REM_ACCESS_ERR);
    CHECK(0 == ibv_rereg_mr(p.dst, IBV_REREG_MR_CHANGE_PD, p.b.pd, NULL, 0, 0));
    CHECK(0 == ibv_dealloc_pd(pd));
    /* A refused request changes nothing. */
    CHECK(IBV_REREG_MR_ERR_CMD
          == ibv_rereg_mr(p.dst, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, (void *) 4096, 1024, 0));
    CHECK(
        IBV_REREG_MR_ERR_CMD
        == ibv_rereg_mr(p.src, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE));
    pair_unmake(&p);
}

static const struct pair_case cases[] = {
    {"bad registration", bad_registration}, {"bad lkey", bad_lkey},
    {"tag of an lkey", lkey_tag},           {"end of local memory", local_end},
    {"memory that is gone", gone_memory},   {"bad rkey", bad_rkey},
    {"tag of an rkey", rkey_tag},           {"ends of remote memory", remote_end},
    {"no right to write", no_right},        {"other protection domain", other_pd},
    {"registered again", registered_again},
};

int main(int argc, char **argv)
{
    return pair_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
