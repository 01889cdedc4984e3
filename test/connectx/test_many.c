/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Four processes, each connected to all, write large messages to all at once, in pieces through
 * mkeys and plain, for several rounds. No process may wait for ever, and every byte must be right.
 */

#include "verbs_end.h"

#include <endian.h>
#include <string.h>
#include <unistd.h>

#define RANKS   4
#define ROUNDS  4
#define MESSAGE (1536u * 1024u + 77u)
#define PIECES  48
#define ALL     (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* The address of a rank for another one: its queue pair, and the target of writes. */
struct hca {
    struct end_name name;
    uint32_t rkey;
    uint64_t addr;
};

static int rank_of_child;

static uint8_t pattern(int from, int to, int round, uint32_t i)
{
    return (uint8_t) ((i * 2654435761u >> 15) + (uint32_t) (from * 17 + to * 29 + round * 51));
}

/* Read another rank's HCA through the parent, which copies HCAs[i][j] to j. */
static void exchange(int fd, struct hca *mine, struct hca *theirs)
{
    end_report(fd, mine, RANKS * sizeof(*mine));
    end_pipe_read(fd, theirs, RANKS * sizeof(*theirs));
}

static void barrier(int fd)
{
    char c = 0;

    end_report(fd, &c, 1);
    end_pipe_read(fd, &c, 1);
}

static void map_pieces(struct end *end, struct mlx5dv_mkey *mkey, uint8_t *buffer,
                       const struct ibv_mr *mr)
{
    struct ibv_sge sge[PIECES];
    uint32_t at = 0;
    int i;

    for (i = 0; i < PIECES; i++) {
        uint32_t part = i < PIECES - 1 ? MESSAGE / PIECES : MESSAGE - at;

        sge[i] = (struct ibv_sge){(uintptr_t) buffer + at, part, mr->lkey};
        at += part;
    }
    end_umr_list(end, mkey, ALL, PIECES, sge, true);
}

static int rank(int fd)
{
    static struct end end[RANKS];
    struct end_options options[RANKS];
    struct hca mine[RANKS];
    struct hca theirs[RANKS];
    struct mlx5dv_mkey *out_mkey[RANKS];
    uint8_t *out = malloc((size_t) RANKS * MESSAGE);
    uint8_t *in = malloc((size_t) RANKS * MESSAGE);
    struct ibv_mr *out_mr;
    struct ibv_mr *in_mr;
    int me = rank_of_child;
    int round;
    int r;

    CHECK(NULL != out && NULL != in);
    memset(options, 0, sizeof(options));
    memset(mine, 0, sizeof(mine));
    for (r = 0; r < RANKS; r++) {
        options[r].share = 0 == r ? NULL : &end[0];
        end_open(&end[r], &options[r]);
    }
    out_mr = end_reg(&end[0], out, (size_t) RANKS * MESSAGE);
    in_mr = end_reg(&end[0], in, (size_t) RANKS * MESSAGE);
    for (r = 0; r < RANKS; r++) {
        mine[r].name = end[r].name;
        mine[r].rkey = in_mr->rkey;
        mine[r].addr = (uintptr_t) in + (size_t) r * MESSAGE;
        out_mkey[r] = end_mkey(&end[r], PIECES);
    }
    exchange(fd, mine, theirs);
    for (r = 0; r < RANKS; r++) {
        end_connect(&end[r], &theirs[r].name, NULL);
        map_pieces(&end[r], out_mkey[r], out + (size_t) r * MESSAGE, out_mr);
    }
    for (round = 0; round < ROUNDS; round++) {
        uint32_t i;
        int sent = 0;
        int got = 0;

        for (r = 0; r < RANKS; r++) {
            for (i = 0; i < MESSAGE; i++) {
                out[(size_t) r * MESSAGE + i] = pattern(me, r, round, i);
            }
            end_recv(&end[r], (uint64_t) r, 0, NULL, 0);
        }
        memset(in, 0, (size_t) RANKS * MESSAGE);
        barrier(fd);
        for (r = 0; r < RANKS; r++) {
            /* Every other message through the mkey. */
            if (0 == (round + r) % 2) {
                end_write(&end[r], 100, out_mkey[r]->lkey, 0, MESSAGE, theirs[r].rkey,
                          theirs[r].addr, 1u + (uint32_t) me);
            } else {
                end_write(&end[r], 100, out_mr->lkey, (uintptr_t) out + (size_t) r * MESSAGE,
                          MESSAGE, theirs[r].rkey, theirs[r].addr, 1u + (uint32_t) me);
            }
        }
        for (r = 0; r < RANKS; r = (r + 1) % RANKS) {
            struct ibv_wc wc;

            if (end_poll(&end[r], &wc, 0)) {
                CHECK(IBV_WC_SUCCESS == wc.status);
                if (IBV_WC_RECV_RDMA_WITH_IMM == wc.opcode) {
                    CHECK(1u + (uint32_t) r == be32toh(wc.imm_data));
                    CHECK(MESSAGE == wc.byte_len);
                    for (i = 0; i < MESSAGE; i++) {
                        CHECK(in[(size_t) r * MESSAGE + i] == pattern(r, me, round, i));
                    }
                    got++;
                } else {
                    sent++;
                }
            }
            if (RANKS == sent && RANKS == got) {
                break;
            }
        }
        barrier(fd);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct hca hcas[RANKS][RANKS];
    int fd[RANKS];
    int pid[RANKS];
    int b;
    int i;
    int j;

    (void) argc;
    end_start(argv, NULL);
    for (i = 0; i < RANKS; i++) {
        rank_of_child = i;
        fd[i] = end_fork(rank, &pid[i]);
    }
    for (i = 0; i < RANKS; i++) {
        end_pipe_read(fd[i], hcas[i], sizeof(hcas[i]));
    }
    for (i = 0; i < RANKS; i++) {
        struct hca column[RANKS];

        for (j = 0; j < RANKS; j++) {
            column[j] = hcas[j][i];
        }
        end_report(fd[i], column, sizeof(column));
    }
    for (b = 0; b < 2 * ROUNDS; b++) {
        char c;

        for (i = 0; i < RANKS; i++) {
            end_pipe_read(fd[i], &c, 1);
        }
        for (i = 0; i < RANKS; i++) {
            end_report(fd[i], &c, 1);
        }
    }
    for (i = 0; i < RANKS; i++) {
        end_wait(pid[i]);
    }
    printf("%d processes, %d rounds, %u bytes each way\n", RANKS, ROUNDS, MESSAGE);
    return 0;
}
