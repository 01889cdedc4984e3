/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Plans of faults: each occurs at its place, once, and requests before and after it are well. The
 * last one takes the device away. */

#include "verbs_pair.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>
#include <time.h>

static const char plan[] = "faults=mkey:2;reg:3;umr:2;write:2;send:2;rnr:3:2;qp:13;late:17:200000;"
                           "99@write:1-;port:29;cq:30;device:31;deaf:3";

static struct pair p;
static unsigned posted; /* work requests that began: 'qp', 'late' and 'device' count them */

static void fresh(void)
{
    pair_unmake(&p);
    pair_make(&p, NULL);
}

static void write_is(uint64_t wr_id, enum ibv_wc_status status, uint32_t imm)
{
    end_write(&p.a, wr_id, p.src->lkey, (uintptr_t) pair_src, 64, p.dst->rkey, (uintptr_t) pair_dst,
              imm);
    end_expect(&p.a, wr_id, status);
    ++posted;
}

static void notify(uint64_t wr_id)
{
    end_recv(&p.b, wr_id, 0, NULL, 0);
    write_is(wr_id, IBV_WC_SUCCESS, 1);
    end_expect(&p.b, wr_id, IBV_WC_SUCCESS);
}

static struct mlx5dv_mkey *mkey_or_none(void)
{
    struct mlx5dv_mkey_init_attr attr = {
        .pd = p.a.pd, .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT, .max_entries = 4};

    return mlx5dv_create_mkey(&attr);
}

static void makings(void)
{
    struct ibv_mr *mr;

    /* two registrations are of the pair */
    mr = ibv_reg_mr(p.a.pd, pair_src, PAIR_PAGE, 0);
    CHECK(NULL == mr && ENOMEM == errno);
    mr = ibv_reg_mr(p.a.pd, pair_src, PAIR_PAGE, 0);
    CHECK(NULL != mr && 0 == ibv_dereg_mr(mr));
}

static void mappings(void)
{
    struct ibv_sge sge = {(uintptr_t) pair_src, 64, p.src->lkey};
    struct mlx5dv_mkey *mkey = mkey_or_none();
    struct ibv_wc wc;

    CHECK(NULL != mkey && NULL == mkey_or_none());
    end_umr_list(&p.a, mkey, PAIR_ALL, 1, &sge, true);
    end_umr_list(&p.a, mkey, PAIR_ALL, 1, &sge, false);
    CHECK(end_poll(&p.a, &wc, END_LONG_MS) && IBV_WC_MW_BIND_ERR == wc.status);
    posted += 2;
    CHECK(0 == mlx5dv_destroy_mkey(mkey));
}

static void transfers(void)
{
    fresh();
    write_is(1, IBV_WC_SUCCESS, 0);
    write_is(2, IBV_WC_REM_ACCESS_ERR, 0);
    fresh();
    for (uint64_t i = 1; i <= 2; i++) {
        end_recv(&p.b, i, p.dst->lkey, pair_dst, 64);
        pair_send(&p.a, i, p.src, 64);
        end_expect(&p.a, i, 1 == i ? IBV_WC_SUCCESS : IBV_WC_REM_ACCESS_ERR);
        ++posted;
    }
}

/* The third message that comes finds no receive twice, which its sender may try; behind the third
 * with immediate data the queue pair that took it is broken. */
static void receives(void)
{
    fresh();
    for (uint64_t i = 1; i <= 3; i++) {
        notify(i);
    }
    (void) end_event(&p.b, IBV_EVENT_QP_FATAL);
}

static void a_queue_pair(void)
{
    fresh();
    while (posted < 12) {
        write_is(posted, IBV_WC_SUCCESS, 0);
    }
    write_is(posted, IBV_WC_WR_FLUSH_ERR, 0);
    (void) end_event(&p.a, IBV_EVENT_QP_FATAL);
    CHECK(IBV_QPS_ERR == pair_state(&p.a));
}

static void a_late_one(void)
{
    struct timespec begin, end;

    fresh();
    while (posted < 16) {
        write_is(posted, IBV_WC_SUCCESS, 0);
    }
    clock_gettime(CLOCK_MONOTONIC, &begin);
    write_is(posted, IBV_WC_SUCCESS, 0);
    clock_gettime(CLOCK_MONOTONIC, &end);
    CHECK(200000000 <= (end.tv_sec - begin.tv_sec) * 1000000000L + end.tv_nsec - begin.tv_nsec);
}

/* The port reports twice what it has to say. */
static void a_port(void)
{
    while (posted < 29) {
        write_is(posted, IBV_WC_SUCCESS, 0);
    }
    for (int i = 0; i < 2; i++) {
        (void) end_event(&p.a, IBV_EVENT_PORT_ERR);
        (void) end_event(&p.a, IBV_EVENT_GID_CHANGE);
    }
}

/* The write arrives, and its completion is lost. */
static void a_completion_queue(void)
{
    struct ibv_wc wc;

    end_write(&p.a, 1, p.src->lkey, (uintptr_t) pair_src, 64, p.dst->rkey, (uintptr_t) pair_dst, 0);
    ++posted;
    (void) end_event(&p.a, IBV_EVENT_CQ_ERR);
    (void) end_event(&p.a, IBV_EVENT_QP_FATAL);
    CHECK(!end_poll(&p.a, &wc, 20));
}

static void no_device(void)
{
    fresh();
    write_is(posted, IBV_WC_WR_FLUSH_ERR, 0);
    (void) end_event(&p.a, IBV_EVENT_DEVICE_FATAL);
    end_recv(&p.b, 77, 0, NULL, 0);
    end_expect(&p.b, 77, IBV_WC_WR_FLUSH_ERR);
    CHECK(NULL == ibv_reg_mr(p.a.pd, pair_src, PAIR_PAGE, 0) && EIO == errno);
    CHECK(NULL == mkey_or_none());
    pair_unmake(&p);
}

/* Set another plan, which counts from here. */
static void plan_now(const char *faults)
{
    int (*set)(const char *, int) =
        (int (*)(const char *, int)) dlsym(RTLD_DEFAULT, "umrddt_sim_faults");

    CHECK(NULL != set && 0 <= set(faults, 1));
}

/* Commands that fail with another errno than ENOMEM, and one that is slow. */
static void commands(void)
{
    struct timespec begin, end;
    struct ibv_mr *mr;

    fresh();
    plan_now("command:1:5;slow:3:200000;reg:2:14");
    mr = ibv_reg_mr(p.a.pd, pair_src, PAIR_PAGE, 0);
    CHECK(NULL == mr && EIO == errno);
    mr = ibv_reg_mr(p.a.pd, pair_src, PAIR_PAGE, 0);
    CHECK(NULL != mr && 0 == ibv_dereg_mr(mr));
    clock_gettime(CLOCK_MONOTONIC, &begin);
    mr = ibv_reg_mr(p.a.pd, pair_src, PAIR_PAGE, 0);
    clock_gettime(CLOCK_MONOTONIC, &end);
    CHECK(NULL == mr && EFAULT == errno);
    CHECK(200000000 <= (end.tv_sec - begin.tv_sec) * 1000000000L + end.tv_nsec - begin.tv_nsec);
}

/* Half of a write arrives before its key is refused; both queue pairs are broken then. */
static void half_a_write(void)
{
    fresh();
    plan_now("part:2");
    write_is(1, IBV_WC_SUCCESS, 0);
    memset(pair_dst, 0xa5, PAIR_PAGE);
    write_is(2, IBV_WC_REM_ACCESS_ERR, 0);
    CHECK(0x5a == pair_dst[0] && 0x5a == pair_dst[31] && 0xa5 == pair_dst[32]);
    CHECK(IBV_QPS_ERR == pair_state(&p.a) && IBV_QPS_ERR == pair_state(&p.b));
}

/* A connection that worked is interrupted; others are not. */
static void a_lost_connection(void)
{
    fresh();
    plan_now("lost:2");
    write_is(1, IBV_WC_SUCCESS, 0);
    memset(pair_dst, 0xa5, PAIR_PAGE);
    write_is(2, IBV_WC_RETRY_EXC_ERR, 0);
    CHECK(pair_untouched() && IBV_QPS_RTS == pair_state(&p.b));
    fresh();
    write_is(3, IBV_WC_SUCCESS, 0);
}

int main(int argc, char **argv)
{
    (void) argc;
    end_start(argv, plan);
    end_case = plan;
    pair_src = aligned_alloc(PAIR_PAGE, PAIR_PAGE);
    pair_dst = aligned_alloc(PAIR_PAGE, PAIR_PAGE);
    CHECK(NULL != pair_src && NULL != pair_dst);
    pair_make(&p, NULL);
    plan_now("");
    commands();
    half_a_write();
    a_lost_connection();
    pair_unmake(&p);

    posted = 0;
    plan_now(strchr(plan, '=') + 1);
    pair_make(&p, NULL);
    makings();
    mappings();
    transfers();
    receives();
    a_queue_pair();
    a_late_one();
    a_port();
    a_completion_queue();
    no_device();
    printf("ok: %s\n", plan);
    return 0;
}
