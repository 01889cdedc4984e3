/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Peers that are not ready, not the expected ones, or killed. */

#include "verbs_pair.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void wrong_state(void)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    struct pair p;

    /* Posting before RTS is refused by libmlx5; in ERR it is flushed by the HCA. */
    memset(&p, 0, sizeof(p));
    end_open(&p.a, NULL);
    end_to_init(&p.a, NULL);
    ibv_wr_start(p.a.qpx);
    p.a.qpx->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write(p.a.qpx, 1, 1);
    ibv_wr_set_sge(p.a.qpx, 1, 1, 1);
    CHECK(EINVAL == ibv_wr_complete(p.a.qpx));
    /* INIT cannot change to RTS. */
    attr.qp_state = IBV_QPS_RTS;
    CHECK(EINVAL == ibv_modify_qp(p.a.qp, &attr, IBV_QP_STATE));
    end_close(&p.a);

    pair_make(&p, NULL);
    attr.qp_state = IBV_QPS_ERR;
    end_recv(&p.a, 11, 0, NULL, 0);
    CHECK(0 == ibv_modify_qp(p.a.qp, &attr, IBV_QP_STATE));
    end_expect(&p.a, 11, IBV_WC_WR_FLUSH_ERR);
    end_write(&p.a, 2, p.src->lkey, (uintptr_t) pair_src, 8, p.dst->rkey, (uintptr_t) pair_dst, 0);
    end_expect(&p.a, 2, IBV_WC_WR_FLUSH_ERR);
    end_recv(&p.a, 12, 0, NULL, 0);
    end_expect(&p.a, 12, IBV_WC_WR_FLUSH_ERR);
    /* And no process answers for it. */
    end_write(&p.b, 3, p.dst->lkey, (uintptr_t) pair_dst, 8, p.src->rkey, (uintptr_t) pair_src, 0);
    end_expect(&p.b, 3, IBV_WC_RETRY_EXC_ERR);
    pair_unmake(&p);
}

/* Addresses without a process, by LID or, on RoCE, by GID. */
static void lead_astray(struct end_name *name)
{
    if (0 == name->lid) {
        name->gid.raw[15] = 99;
    } else {
        name->lid = 99;
    }
}

/* The peer differs from the other side's settings. */
static void wrong_peer(void)
{
    int what;

    for (what = 0; what < 5; what++) {
        struct end_name a;
        struct end_name b;
        struct pair p;

        memset(pair_src, 0x5a, PAIR_PAGE);
        memset(pair_dst, 0xa5, PAIR_PAGE);
        end_open(&p.a, NULL);
        end_open(&p.b, NULL);
        p.src = end_reg(&p.a, pair_src, PAIR_PAGE);
        p.dst = end_reg(&p.b, pair_dst, PAIR_PAGE);
        a = p.a.name;
        b = p.b.name;
        switch (what) {
        case 0:
            a.psn++;
            break;
        case 1:
            lead_astray(&a);
            break;
        case 2:
            a.qpn = b.qpn;
            break;
        case 3:
            lead_astray(&b);
            break;
        default:
            b.qpn ^= 0x800;
            break;
        }
        end_connect(&p.b, &a, NULL);
        end_connect(&p.a, &b, NULL);
        pair_write_fails(&p, p.src->lkey, (uintptr_t) pair_src, 8, p.dst->rkey,
                         (uintptr_t) pair_dst, IBV_WC_RETRY_EXC_ERR);
        pair_unmake(&p);
    }
}

/* The peer's queue pair comes up while the requester retries. */
static void late_peer(void)
{
    /* Half a second, seven times: the peer may be slow to come. */
    struct end_options options = {.timeout = 17};
    struct ibv_wc wc;
    struct pair p;

    memset(pair_src, 0x5a, PAIR_PAGE);
    memset(pair_dst, 0xa5, PAIR_PAGE);
    end_open(&p.a, NULL);
    end_open(&p.b, NULL);
    p.src = end_reg(&p.a, pair_src, PAIR_PAGE);
    p.dst = end_reg(&p.b, pair_dst, PAIR_PAGE);
    end_connect(&p.a, &p.b.name, &options);
    end_write(&p.a, 1, p.src->lkey, (uintptr_t) pair_src, 8, p.dst->rkey, (uintptr_t) pair_dst, 0);
    CHECK(!end_poll(&p.a, &wc, 30));
    end_connect(&p.b, &p.a.name, NULL);
    end_expect(&p.a, 1, IBV_WC_SUCCESS);
    CHECK(0 == memcmp(pair_src, pair_dst, 8));
    pair_unmake(&p);
}

__attribute__((noreturn)) static int victim(int fd)
{
    struct end_name peer;
    struct end end;
    struct ibv_mr *mr;
    uint64_t where[2];

    end_open(&end, NULL);
    end_report(fd, &end.name, sizeof(end.name));
    end_pipe_read(fd, &peer, sizeof(peer));
    end_connect(&end, &peer, NULL);
    mr = end_reg(&end, pair_dst, PAIR_PAGE);
    where[0] = mr->rkey;
    where[1] = (uintptr_t) pair_dst;
    end_report(fd, where, sizeof(where));
    for (;;) {
        pause();
    }
}

static void killed_peer(void)
{
    struct end_options options = {.timeout = 8};
    struct end_name peer;
    struct ibv_mr *mr;
    struct end end;
    uint64_t where[2];
    int status;
    int pid;
    int fd = end_fork(victim, &pid);
    int i;

    memset(pair_src, 0x5a, PAIR_PAGE);
    end_open(&end, NULL);
    end_pipe_read(fd, &peer, sizeof(peer));
    end_report(fd, &end.name, sizeof(end.name));
    end_connect(&end, &peer, &options);
    mr = end_reg(&end, pair_src, PAIR_PAGE);
    end_pipe_read(fd, where, sizeof(where));
    /* The peer only sleeps: its HCA works without it. */
    end_write(&end, 1, mr->lkey, (uintptr_t) pair_src, 64, (uint32_t) where[0], where[1], 0);
    end_expect(&end, 1, IBV_WC_SUCCESS);
    CHECK(0 == kill(pid, SIGKILL));
    CHECK(pid == waitpid(pid, &status, 0));
    for (i = 0; i < 3; i++) {
        end_write(&end, 2 + (uint64_t) i, mr->lkey, (uintptr_t) pair_src, 64, (uint32_t) where[0],
                  where[1], 0);
    }
    end_expect(&end, 2, IBV_WC_RETRY_EXC_ERR);
    end_expect(&end, 3, IBV_WC_WR_FLUSH_ERR);
    end_expect(&end, 4, IBV_WC_WR_FLUSH_ERR);
    CHECK(0 == ibv_dereg_mr(mr));
    end_close(&end);
    close(fd);
}

#define HUGE_BYTES (1u << 30)

/* Killed during writes to it; the key covers far more than there is time for, also where this
 * process has to wait for a processor. (Only written memory is allocated.) */
__attribute__((noreturn)) static int huge_victim(int fd)
{
    uint8_t *huge = mmap(NULL, HUGE_BYTES, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct end_name peer;
    struct end end;
    struct ibv_mr *mr;
    uint64_t where[2];

    CHECK(MAP_FAILED != huge);
    end_open(&end, NULL);
    end_report(fd, &end.name, sizeof(end.name));
    end_pipe_read(fd, &peer, sizeof(peer));
    end_connect(&end, &peer, NULL);
    mr = end_reg(&end, huge, HUGE_BYTES);
    where[0] = mr->rkey;
    where[1] = (uintptr_t) huge;
    end_report(fd, where, sizeof(where));
    while (0 == *(volatile uint8_t *) (huge + (1 << 20))) {
        usleep(100);
    }
    raise(SIGKILL);
    exit(1);
}

static void killed_in_the_middle(void)
{
    uint8_t *huge = mmap(NULL, HUGE_BYTES, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct end_name peer;
    struct ibv_mr *mr;
    struct end end;
    uint64_t where[2];
    int status;
    int pid;
    int fd = end_fork(huge_victim, &pid);

    CHECK(MAP_FAILED != huge);
    huge[1 << 20] = 1;
    end_open(&end, NULL);
    end_pipe_read(fd, &peer, sizeof(peer));
    end_report(fd, &end.name, sizeof(end.name));
    end_connect(&end, &peer, NULL);
    mr = end_reg(&end, huge, HUGE_BYTES);
    end_pipe_read(fd, where, sizeof(where));
    end_write(&end, 1, mr->lkey, (uintptr_t) huge, HUGE_BYTES, (uint32_t) where[0], where[1], 0);
    end_expect(&end, 1, IBV_WC_RETRY_EXC_ERR);
    CHECK(pid == waitpid(pid, &status, 0));
    CHECK(WIFSIGNALED(status) && SIGKILL == WTERMSIG(status));
    CHECK(0 == ibv_dereg_mr(mr));
    end_close(&end);
    CHECK(0 == munmap(huge, HUGE_BYTES));
    close(fd);
}

/* Exits as soon as it has seen the data. */
static int hasty(int fd)
{
    struct end_name peer;
    struct end end;
    struct ibv_mr *mr;
    struct ibv_wc wc;
    uint64_t where[2];

    end_open(&end, NULL);
    end_report(fd, &end.name, sizeof(end.name));
    end_pipe_read(fd, &peer, sizeof(peer));
    end_connect(&end, &peer, NULL);
    mr = end_reg(&end, pair_dst, PAIR_PAGE);
    end_recv(&end, 1, 0, NULL, 0);
    where[0] = mr->rkey;
    where[1] = (uintptr_t) pair_dst;
    end_report(fd, where, sizeof(where));
    CHECK(end_poll(&end, &wc, END_LONG_MS));
    CHECK(IBV_WC_SUCCESS == wc.status);
    _exit(0);
}

static void leaves_at_once(void)
{
    struct end_name peer;
    struct ibv_mr *mr;
    struct end end;
    uint64_t where[2];
    int round;

    for (round = 0; round < 5; round++) {
        int pid;
        int fd = end_fork(hasty, &pid);

        end_open(&end, NULL);
        end_pipe_read(fd, &peer, sizeof(peer));
        end_report(fd, &end.name, sizeof(end.name));
        end_connect(&end, &peer, NULL);
        mr = end_reg(&end, pair_src, PAIR_PAGE);
        end_pipe_read(fd, where, sizeof(where));
        end_write(&end, 1, mr->lkey, (uintptr_t) pair_src, 64, (uint32_t) where[0], where[1], 5);
        end_expect(&end, 1, IBV_WC_SUCCESS);
        end_wait(pid);
        CHECK(0 == ibv_dereg_mr(mr));
        end_close(&end);
        close(fd);
    }
}

static const struct pair_case cases[] = {
    {"wrong state", wrong_state},
    {"wrong peer", wrong_peer},
    {"late peer", late_peer},
    {"killed peer", killed_peer},
    {"peer killed in the middle", killed_in_the_middle},
    {"peer that leaves at once", leaves_at_once},
};

int main(int argc, char **argv)
{
    return pair_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
