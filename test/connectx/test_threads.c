/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Several threads of one process, each with queue pairs of its own on the same HCA: everything of
 * each arrives, and an unused HCA takes no processor time.
 */

#include "verbs_end.h"

#include <endian.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define THREADS 4
#define ROUNDS  400
#define BYTES   20000u

static struct end first;

static double cpu_seconds(void)
{
    struct rusage usage;

    CHECK(0 == getrusage(RUSAGE_SELF, &usage));
    return (double) usage.ru_utime.tv_sec + (double) usage.ru_utime.tv_usec * 1e-6
           + (double) usage.ru_stime.tv_sec + (double) usage.ru_stime.tv_usec * 1e-6;
}

/* Wait for the write's completion and the receive's, whichever is first. */
static void both(struct end *a, struct end *b, uint32_t imm)
{
    struct ibv_wc wc;

    end_expect(a, imm, IBV_WC_SUCCESS);
    CHECK(end_poll(b, &wc, END_LONG_MS));
    CHECK(IBV_WC_SUCCESS == wc.status && IBV_WC_RECV_RDMA_WITH_IMM == wc.opcode);
    CHECK(imm == be32toh(wc.imm_data) && b->qp->qp_num == wc.qp_num);
}

static void *run(void *arg)
{
    const struct end_options options = {.share = &first};
    uint32_t thread = (uint32_t) (uintptr_t) arg;
    uint8_t *from = malloc(BYTES);
    uint8_t *to = malloc(BYTES);
    struct mlx5dv_mkey *mkey;
    struct ibv_mr *from_mr;
    struct ibv_mr *to_mr;
    struct end a;
    struct end b;
    uint32_t round;
    uint32_t i;

    CHECK(NULL != from && NULL != to);
    end_open(&a, &options);
    end_open(&b, &options);
    end_connect(&a, &b.name, NULL);
    end_connect(&b, &a.name, NULL);
    from_mr = end_reg(&a, from, BYTES);
    to_mr = end_reg(&b, to, BYTES);
    mkey = end_mkey(&a, 4);
    for (round = 1; round <= ROUNDS; round++) {
        uint32_t half = 1 + (round * 2654435761u >> 8) % (BYTES / 2 - 1);
        struct ibv_sge sge[2] = {{(uintptr_t) from, half, from_mr->lkey},
                                 {(uintptr_t) from + BYTES / 2, half, from_mr->lkey}};

        for (i = 0; i < BYTES; i++) {
            from[i] = (uint8_t) (i * 31 + round * 7 + thread);
        }
        memset(to, 0, BYTES);
        mkey->lkey = (mkey->lkey & ~0xffu) | (round & 0xff);
        end_umr_list(&a, mkey, IBV_ACCESS_LOCAL_WRITE, 2, sge, true);
        end_recv(&b, round, 0, NULL, 0);
        end_write(&a, round, mkey->lkey, 0, 2 * half, to_mr->rkey, (uintptr_t) to, round);
        both(&a, &b, round);
        CHECK(0 == memcmp(from, to, half) && 0 == memcmp(from + BYTES / 2, to + half, half));
        CHECK(0 == to[2 * half]);
    }
    CHECK(0 == mlx5dv_destroy_mkey(mkey));
    CHECK(0 == ibv_dereg_mr(from_mr));
    CHECK(0 == ibv_dereg_mr(to_mr));
    end_close(&a);
    end_close(&b);
    free(from);
    free(to);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread[THREADS];
    double before;
    double used;
    uintptr_t i;

    (void) argc;
    end_start(argv, NULL);
    end_open(&first, NULL);
    end_case = "threads";
    for (i = 0; i < THREADS; i++) {
        CHECK(0 == pthread_create(&thread[i], NULL, run, (void *) i));
    }
    for (i = 0; i < THREADS; i++) {
        CHECK(0 == pthread_join(thread[i], NULL));
    }
    printf("%d threads, %d rounds each\n", THREADS, ROUNDS);

    end_case = "idle";
    usleep(100000);
    before = cpu_seconds();
    sleep(2);
    used = cpu_seconds() - before;
    printf("%.1f ms of processor in two idle seconds\n", used * 1e3);
    CHECK(0.1 > used);
    end_close(&first);
    return 0;
}
