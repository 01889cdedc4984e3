/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The counters: exact numbers for requests that are known. Every line of the table runs this
 * program again, below an HCA that prints them at the end.
 */

#include "verbs_pair.h"

#include <endian.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LARGE 200000u

static struct pair p;
static uint8_t *large_src;
static uint8_t *large_dst;
static struct ibv_mr *large_src_mr;
static struct ibv_mr *large_dst_mr;

static void make(void)
{
    pair_make(&p, NULL);
    large_src = calloc(1, LARGE);
    large_dst = calloc(1, LARGE);
    CHECK(NULL != large_src && NULL != large_dst);
    large_src_mr = end_reg(&p.a, large_src, LARGE);
    large_dst_mr = end_reg(&p.b, large_dst, LARGE);
}

/* Two packets, one piece at each side. */
static void plain_write(void)
{
    make();
    end_write(&p.a, 1, large_src_mr->lkey, (uintptr_t) large_src, 5000, large_dst_mr->rkey,
              (uintptr_t) large_dst, 0);
    end_expect(&p.a, 1, IBV_WC_SUCCESS);
}

/* With a receive and a completion at the other side. */
static void write_imm(void)
{
    make();
    end_recv(&p.b, 2, 0, NULL, 0);
    end_write(&p.a, 1, p.src->lkey, (uintptr_t) pair_src, 100, p.dst->rkey, (uintptr_t) pair_dst,
              7);
    end_expect(&p.a, 1, IBV_WC_SUCCESS);
    end_expect(&p.b, 2, IBV_WC_SUCCESS);
}

static void send_and_read(void)
{
    make();
    end_recv(&p.b, 2, p.dst->lkey, pair_dst, PAIR_PAGE);
    pair_send(&p.a, 1, p.src, 10);
    end_expect(&p.a, 1, IBV_WC_SUCCESS);
    end_expect(&p.b, 2, IBV_WC_SUCCESS);
    ibv_wr_start(p.a.qpx);
    p.a.qpx->wr_id = 3;
    p.a.qpx->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_read(p.a.qpx, large_dst_mr->rkey, (uintptr_t) large_dst);
    ibv_wr_set_sge(p.a.qpx, large_src_mr->lkey, (uintptr_t) large_src, 5000);
    CHECK(0 == ibv_wr_complete(p.a.qpx));
    end_expect(&p.a, 3, IBV_WC_SUCCESS);
}

/* Through 8 entries, once whole and once the last 12 bytes of two. */
static void list(void)
{
    struct mlx5dv_mkey *mkey;
    struct ibv_sge sge[8];
    int i;

    make();
    mkey = end_mkey(&p.a, 8);
    for (i = 0; i < 8; i++) {
        sge[i] = (struct ibv_sge){(uintptr_t) pair_src + 16u * (unsigned) i, 8, p.src->lkey};
    }
    end_umr_list(&p.a, mkey, PAIR_ALL, 8, sge, true);
    end_write(&p.a, 1, mkey->lkey, 0, 64, p.dst->rkey, (uintptr_t) pair_dst, 0);
    end_expect(&p.a, 1, IBV_WC_SUCCESS);
    end_write(&p.a, 2, mkey->lkey, 52, 12, p.dst->rkey, (uintptr_t) pair_dst, 0);
    end_expect(&p.a, 2, IBV_WC_SUCCESS);
}

/* An entry that several frames of the wire go through is read once a message and side. */
static void long_entries(void)
{
    struct mlx5dv_mkey *from;
    struct mlx5dv_mkey *to;
    struct ibv_sge sge[3];
    unsigned i;

    make();
    from = end_mkey(&p.a, 4);
    to = end_mkey(&p.b, 4);
    for (i = 0; i < 3; i++) {
        sge[i] = (struct ibv_sge){(uintptr_t) large_src + i * 60000, 59999, large_src_mr->lkey};
    }
    end_umr_list(&p.a, from, PAIR_ALL, 3, sge, true);
    for (i = 0; i < 2; i++) {
        sge[i] = (struct ibv_sge){(uintptr_t) large_dst + i * 100000, 99999, large_dst_mr->lkey};
    }
    end_umr_list(&p.b, to, PAIR_ALL, 2, sge, true);
    end_write(&p.a, 1, from->lkey, 0, 179997, to->rkey, 0, 0);
    end_expect(&p.a, 1, IBV_WC_SUCCESS);
}

/* One mkey over another and its own middle, through several frames: 3 entries of the upper one;
 * below it 2, 1 and the 2 of a strided one. */
static void nested(void)
{
    struct mlx5dv_mr_interleaved data;
    struct mlx5dv_mkey *list_mkey, *strided_mkey, *mkey;
    struct ibv_sge sge[3];

    make();
    list_mkey = end_mkey(&p.a, 4);
    strided_mkey = end_mkey(&p.a, 4);
    mkey = end_mkey(&p.a, 4);
    sge[0] = (struct ibv_sge){(uintptr_t) large_src, 60000, large_src_mr->lkey};
    sge[1] = (struct ibv_sge){(uintptr_t) large_src + 80000, 50000, large_src_mr->lkey};
    end_umr_list(&p.a, list_mkey, PAIR_ALL, 2, sge, true);
    data = (struct mlx5dv_mr_interleaved){(uintptr_t) pair_src, 8, 8, p.src->lkey};
    end_umr_interleaved(&p.a, strided_mkey, PAIR_ALL, 100, 1, &data, true);
    sge[0] = (struct ibv_sge){0, 110000, list_mkey->lkey};
    sge[1] = (struct ibv_sge){70000, 40000, list_mkey->lkey};
    sge[2] = (struct ibv_sge){0, 800, strided_mkey->lkey};
    end_umr_list(&p.a, mkey, PAIR_ALL, 3, sge, true);
    end_write(&p.a, 1, mkey->lkey, 0, 150800, large_dst_mr->rkey, (uintptr_t) large_dst, 0);
    end_expect(&p.a, 1, IBV_WC_SUCCESS);
}

/* What repeats is not an entry of its own. */
static void strided(void)
{
    struct mlx5dv_mr_interleaved data;
    struct mlx5dv_mkey *mkey;

    make();
    mkey = end_mkey(&p.a, 4);
    data = (struct mlx5dv_mr_interleaved){(uintptr_t) pair_src, 8, 8, p.src->lkey};
    end_umr_interleaved(&p.a, mkey, PAIR_ALL, 100, 1, &data, true);
    end_write(&p.a, 1, mkey->lkey, 0, 800, p.dst->rkey, (uintptr_t) pair_dst, 0);
    end_expect(&p.a, 1, IBV_WC_SUCCESS);
}

/* The list lies in memory, and then it is taken away. */
static void list_outside(void)
{
    struct {
        struct mlx5_wqe_ctrl_seg ctrl;
        struct mlx5_wqe_umr_ctrl_seg umr;
        struct mlx5_wqe_mkey_context_seg context;
        struct mlx5_wqe_data_seg list;
    } wqe;
    struct mlx5_wqe_data_seg *entries = aligned_alloc(2048, 2048);
    struct mlx5dv_mkey *mkey;
    struct ibv_mr *mr;
    int i;

    make();
    mkey = end_mkey(&p.a, 128);
    mr = end_reg(&p.a, entries, 2048);
    for (i = 0; i < 128; i++) {
        mlx5dv_set_data_seg(&entries[i], 2, p.src->lkey, (uintptr_t) pair_src + 4u * (unsigned) i);
    }
    memset(&wqe, 0, sizeof(wqe));
    mlx5dv_set_ctrl_seg(&wqe.ctrl, 0, MLX5_OPCODE_UMR, 0, p.a.qp->qp_num, MLX5_WQE_CTRL_CQ_UPDATE,
                        sizeof(wqe) / 16, 0, htobe32(mkey->lkey));
    wqe.umr.klm_octowords = htobe16(128);
    wqe.umr.mkey_mask = htobe64(MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN | MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY
                                | MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE
                                | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_LOCAL_WRITE);
    wqe.context.qpn_mkey = htobe32(0xffffff00 | (mkey->lkey & 0xff));
    wqe.context.len = htobe64(256);
    mlx5dv_set_data_seg(&wqe.list, 2048, mr->lkey, (uintptr_t) entries);
    ibv_wr_start(p.a.qpx);
    p.a.qpx->wr_id = 5;
    p.a.qpx->wr_flags = IBV_SEND_SIGNALED;
    mlx5dv_wr_raw_wqe(p.a.mqp, &wqe);
    CHECK(0 == ibv_wr_complete(p.a.qpx));
    end_expect(&p.a, 5, IBV_WC_SUCCESS);

    ibv_wr_start(p.a.qpx);
    p.a.qpx->wr_id = 6;
    p.a.qpx->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_local_inv(p.a.qpx, mkey->rkey);
    CHECK(0 == ibv_wr_complete(p.a.qpx));
    end_expect(&p.a, 6, IBV_WC_SUCCESS);
}

/* Registrations: two of pair_make, two of make(). */
static const struct {
    const char *name;
    void (*run)(void);
    const char *expected;
} cases[] = {
    {"a write", plain_write,
     "wqes=1 wqe_blocks=1 umrs=0 klm_reads=0 pieces=2 writes=1 wire_bytes=5000 wire_bytes_0=5000 wire_bytes_1=0 packets=2 cqes=1 "
     "errors=0 mrs=4 mkeys=0"},
    {"a write with immediate data", write_imm,
     "wqes=1 recvs=1 pieces=2 writes=1 wire_bytes=100 packets=1 cqes=2 events=0"},
    {"a send and a read", send_and_read,
     "wqes=2 recvs=1 pieces=4 writes=0 reads=1 sends=1 wire_bytes=5010 packets=4 cqes=3"},
    /* A UMR of 8 entries: control, UMR control and context are 2 blocks, the entries 2 more. */
    {"a list", list,
     "wqes=3 wqe_blocks=6 umrs=1 klm_entries=8 list_bytes=0 invals=0 klm_reads=10 pieces=12 "
     "writes=2 wire_bytes=76 packets=2 cqes=3 mkeys=1"},
    {"long entries", long_entries,
     "umrs=2 klm_entries=5 klm_reads=5 writes=1 wire_bytes=179997 packets=44"},
    {"mkeys within an mkey", nested,
     "umrs=3 klm_entries=6 klm_reads=8 klm_nested=5 writes=1 wire_bytes=150800 mkeys=3"},
    {"a strided layout", strided,
     "umrs=1 klm_entries=1 klm_reads=2 klm_nested=0 pieces=101 wire_bytes=800 packets=1"},
    {"a list in memory", list_outside,
     "wqes=2 umrs=2 klm_entries=128 list_bytes=2048 invals=1 klm_reads=0 pieces=0 wire_bytes=0 "
     "packets=0"},
};

#define CASES (sizeof(cases) / sizeof(cases[0]))

/* Every expected name=value must be in the line. */
static int compare(size_t i, const char *line)
{
    char expected[512];
    char *save = NULL;
    char *item;
    int failed = 0;

    snprintf(expected, sizeof(expected), "%s", cases[i].expected);
    for (item = strtok_r(expected, " ", &save); NULL != item; item = strtok_r(NULL, " ", &save)) {
        char whole[64];

        snprintf(whole, sizeof(whole), " %s ", item);
        if (NULL == strstr(line, whole)) {
            printf("%s: not %s\n", cases[i].name, item);
            failed = 1;
        }
    }
    return failed;
}

static int run_again(char **argv, size_t i)
{
    char number[16];
    char text[4096];
    const char *line;
    size_t got = 0;
    ssize_t n;
    int fd[2];
    int status;
    int pid;

    fflush(NULL);
    CHECK(0 == pipe(fd));
    pid = fork();
    CHECK(0 <= pid);
    if (0 == pid) {
        char *args[] = {argv[0], number, NULL};

        CHECK(0 <= dup2(fd[1], STDERR_FILENO));
        close(fd[0]);
        close(fd[1]);
        snprintf(number, sizeof(number), "%zu", i);
        end_start(args, "counters=1");
    }
    close(fd[1]);
    while (got + 2 < sizeof(text) && 0 < (n = read(fd[0], text + got, sizeof(text) - got - 2))) {
        got += (size_t) n;
    }
    text[got] = '\0';
    if (0 < got && '\n' == text[got - 1]) {
        text[got - 1] = ' ';
    }
    close(fd[0]);
    CHECK(pid == waitpid(pid, &status, 0));
    line = strstr(text, "]: wqes=");
    if (!WIFEXITED(status) || 0 != WEXITSTATUS(status) || NULL == line
        || 0 != compare(i, line + 2)) {
        printf("FAILED: %s: %s\n", cases[i].name, text);
        return 1;
    }
    printf("ok: %s\n", cases[i].name);
    return 0;
}

int main(int argc, char **argv)
{
    size_t i;
    int failed = 0;

    if (1 == argc) {
        for (i = 0; i < CASES; i++) {
            failed |= run_again(argv, i);
        }
        return failed;
    }
    i = strtoul(argv[1], NULL, 10);
    CHECK(i < CASES);
    end_start(argv, "counters=1");
    end_case = cases[i].name;
    pair_src = aligned_alloc(PAIR_PAGE, PAIR_PAGE);
    pair_dst = aligned_alloc(PAIR_PAGE, PAIR_PAGE);
    CHECK(NULL != pair_src && NULL != pair_dst);
    cases[i].run();
    return 0;
}
