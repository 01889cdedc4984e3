/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The connection between two HCAs breaks again and again while both processes live. As on a
 * network that loses packets, every request is done exactly once, in order, and no byte is lost:
 * repeated requests are answered, not performed again.
 *
 * test_breaks [SEED]
 */

#include "verbs_pair.h"

#include <dirent.h>
#include <endian.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define AREA   (512u * 1024u)
#define ROUNDS 150u
#define DEPTH  16u

static const struct end_options options = {.timeout = 10, .rnr_retry = 7, .recv_wr = 2 * DEPTH};
static uint64_t state;

static uint32_t between(uint32_t low, uint32_t high)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return low + (uint32_t) (state >> 33) % (high - low + 1);
}

/* Cut all connections of this process's HCA; the socket to the child is not one of them. */
static int break_connections(int keep)
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *entry;
    int count = 0;

    CHECK(NULL != dir);
    while (NULL != (entry = readdir(dir))) {
        struct sockaddr_storage name;
        socklen_t size = sizeof(name);
        int fd = atoi(entry->d_name);

        if (2 < fd && keep != fd && dirfd(dir) != fd
            && 0 == getpeername(fd, (struct sockaddr *) &name, &size)) {
            count += 0 == shutdown(fd, SHUT_RDWR);
        }
    }
    closedir(dir);
    return count;
}

/* Sees every message once, in order, with its number and length. */
static int receiver(int fd)
{
    uint8_t *area = malloc(AREA);
    struct end_name peer;
    struct ibv_mr *mr;
    struct end end;
    uint64_t counter = 0;
    struct ibv_mr *counter_mr;
    uint64_t where[4];
    uint32_t i;

    CHECK(NULL != area);
    end_open(&end, &options);
    end_report(fd, &end.name, sizeof(end.name));
    end_pipe_read(fd, &peer, sizeof(peer));
    end_connect(&end, &peer, &options);
    mr = end_reg(&end, area, AREA);
    where[0] = mr->rkey;
    where[1] = (uintptr_t) area;
    counter_mr = ibv_reg_mr(end.pd, &counter, sizeof(counter),
                            IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
    CHECK(NULL != counter_mr);
    where[2] = counter_mr->rkey;
    where[3] = (uintptr_t) &counter;
    for (i = 0; i < DEPTH; i++) {
        end_recv(&end, i, mr->lkey, area, AREA);
    }
    end_report(fd, where, sizeof(where));
    for (i = 0; i < ROUNDS; i++) {
        uint32_t length;
        struct ibv_wc wc;

        CHECK(end_poll(&end, &wc, END_LONG_MS));
        CHECK(IBV_WC_SUCCESS == wc.status && i % DEPTH == wc.wr_id);
        end_pipe_read(fd, &length, sizeof(length));
        CHECK(length == wc.byte_len);
        if (IBV_WC_RECV_RDMA_WITH_IMM == wc.opcode) {
            CHECK(i + 1 == be32toh(wc.imm_data));
        }
        end_recv(&end, i % DEPTH, mr->lkey, area, AREA);
    }
    /* Nothing comes behind them. */
    end_pipe_read(fd, &i, 1);
    CHECK(!end_poll(&end, &(struct ibv_wc){0}, 20));
    CHECK(ROUNDS == counter);
    end_close(&end);
    return 0;
}

/* Post one message: a write with its number, or a send. Both arrive at the start of the area. */
static void post(struct end *end, uint32_t round, struct ibv_mr *mr, uint32_t length,
                 const uint64_t where[2])
{
    if (0 == between(0, 2)) {
        pair_send(end, round, mr, length);
    } else {
        end_write(end, round, mr->lkey, (uintptr_t) mr->addr, length, (uint32_t) where[0], where[1],
                  round + 1);
    }
}

static void read_back(struct end *end, struct ibv_mr *mr, uint32_t length, const uint64_t where[2])
{
    ibv_wr_start(end->qpx);
    end->qpx->wr_id = 7777;
    end->qpx->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_read(end->qpx, (uint32_t) where[0], where[1]);
    ibv_wr_set_sge(end->qpx, mr->lkey, (uintptr_t) mr->addr, length);
    CHECK(0 == ibv_wr_complete(end->qpx));
}

/* Each round adds one: the previous value shows whether any was added twice or lost. */
static void count(struct end *end, struct ibv_mr *mr, const uint64_t where[4])
{
    ibv_wr_start(end->qpx);
    end->qpx->wr_id = 8888;
    end->qpx->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_atomic_fetch_add(end->qpx, (uint32_t) where[2], where[3], 1);
    ibv_wr_set_sge(end->qpx, mr->lkey, (uintptr_t) mr->addr, sizeof(uint64_t));
    CHECK(0 == ibv_wr_complete(end->qpx));
}

/* Poll a few times, break, and wait for the completion. @return connections that were broken */
static int disturb(struct end *end, int keep, uint64_t wr_id)
{
    struct ibv_wc wc = {0};
    uint32_t polls = between(0, 12);
    int broken = 0;
    int n = 0;

    while (0 == n && 0 < polls--) {
        n = ibv_poll_cq(end->cq, 1, &wc);
    }
    if (0 == n) {
        broken = break_connections(keep);
        end_expect(end, wr_id, IBV_WC_SUCCESS);
        return broken;
    }
    CHECK(1 == n && IBV_WC_SUCCESS == wc.status && wr_id == wc.wr_id);
    return 0;
}

int main(int argc, char **argv)
{
    uint8_t *out;
    uint8_t *back;
    struct end_name peer;
    struct ibv_mr *out_mr;
    struct ibv_mr *back_mr;
    struct end end;
    uint64_t where[4];
    uint64_t before;
    uint32_t round;
    int broken = 0;
    int pid;
    int fd;

    end_start(argv, NULL);
    state = 1 < argc ? strtoull(argv[1], NULL, 0) : 1;
    out = malloc(AREA);
    back = malloc(AREA);
    CHECK(NULL != out && NULL != back);
    fd = end_fork(receiver, &pid);
    end_open(&end, &options);
    end_pipe_read(fd, &peer, sizeof(peer));
    end_report(fd, &end.name, sizeof(end.name));
    end_connect(&end, &peer, &options);
    out_mr = end_reg(&end, out, AREA);
    back_mr = end_reg(&end, back, AREA);
    end_pipe_read(fd, where, sizeof(where));
    for (round = 0; round < ROUNDS; round++) {
        uint32_t length = 0 == between(0, 3) ? between(1, 5000) : between(1, AREA);
        uint32_t i;

        for (i = 0; i < length; i++) {
            out[i] = (uint8_t) (i * 2654435761u >> 13 ^ round * 37u);
        }
        end_report(fd, &length, sizeof(length));
        post(&end, round, out_mr, length, where);
        broken += disturb(&end, fd, round);
        memset(back, 0xa5, length);
        read_back(&end, back_mr, length, where);
        broken += disturb(&end, fd, 7777);
        CHECK(0 == memcmp(out, back, length));
        count(&end, back_mr, where);
        broken += disturb(&end, fd, 8888);
        memcpy(&before, back, sizeof(before));
        CHECK(round == before);
    }
    CHECK(ROUNDS / 10 < (uint32_t) broken);
    end_report(fd, "", 1);
    end_wait(pid);
    end_close(&end);
    printf("%u messages, connections broken %d times\n", ROUNDS, broken);
    return 0;
}
