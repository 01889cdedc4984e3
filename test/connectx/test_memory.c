/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Many processes, each connected to all, write to each other in turn. A queue pair that is idle,
 * and the connection to its peer, have no buffers: what a process needs does not grow with its
 * peers.
 */

#include "verbs_end.h"

#include <string.h>
#include <unistd.h>

#define RANKS   21 /* odd: no rank is the next and the previous one at a time */
#define MESSAGE (192u * 1024u)
#define SMALL   512 /* short writes to each peer: they use all of a send queue */
#define BATCH   32
#define SLACK   (512u * 1024u)
/* Growth for each peer. Buffers for frames on both sides of a connection would take four times it.
 */
#define LIMIT (40u * 1024u)

struct hca {
    struct end_name name;
    uint32_t rkey;
    uint64_t addr;
};

static int rank_of_child;

/** Bytes of this process that are in memory. */
static size_t resident(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long all = 0, pages = 0;

    CHECK(NULL != file && 2 == fscanf(file, "%lu %lu", &all, &pages));
    fclose(file);
    return pages * (size_t) getpagesize();
}

static void barrier(int fd)
{
    char c = 0;

    end_report(fd, &c, 1);
    end_pipe_read(fd, &c, 1);
}

static void write_small(struct end *end, uint32_t lkey, uint64_t addr, const struct hca *to)
{
    for (int i = 0; i < SMALL; i += BATCH) {
        for (int j = 0; j < BATCH; j++) {
            end_write(end, 101, lkey, addr, 1, to->rkey, to->addr, 0);
        }
        for (int j = 0; j < BATCH; j++) {
            end_expect(end, 101, IBV_WC_SUCCESS);
        }
    }
}

static int rank(int fd)
{
    static struct end end[RANKS];
    struct hca mine[RANKS];
    struct hca theirs[RANKS];
    uint8_t *out = malloc(MESSAGE);
    uint8_t *in = malloc(MESSAGE);
    struct ibv_mr *out_mr;
    struct ibv_mr *in_mr;
    int me = rank_of_child;
    size_t before;
    size_t after;
    int r;

    CHECK(NULL != out && NULL != in);
    memset(mine, 0, sizeof(mine));
    for (r = 0; r < RANKS; r++) {
        struct end_options options = {.share = 0 == r ? NULL : &end[0]};

        end_open(&end[r], &options);
    }
    out_mr = end_reg(&end[0], out, MESSAGE);
    in_mr = end_reg(&end[0], in, MESSAGE);
    memset(out, 1 + me, MESSAGE);
    memset(in, 0, MESSAGE);
    for (r = 0; r < RANKS; r++) {
        mine[r].name = end[r].name;
        mine[r].rkey = in_mr->rkey;
        mine[r].addr = (uintptr_t) in;
    }
    end_report(fd, mine, sizeof(mine));
    end_pipe_read(fd, theirs, sizeof(theirs));
    for (r = 0; r < RANKS; r++) {
        struct end_options options = {0};

        end_connect(&end[r], &theirs[r].name, &options);
        end_recv(&end[r], (uint64_t) r, 0, NULL, 0);
    }
    barrier(fd); /* all have receives */
    before = resident();
    for (r = 1; r < RANKS; r++) {
        int to = (me + r) % RANKS;
        int from = (me + RANKS - r) % RANKS;

        write_small(&end[to], out_mr->lkey, (uintptr_t) out, &theirs[to]);
        end_write(&end[to], 100, out_mr->lkey, (uintptr_t) out, MESSAGE, theirs[to].rkey,
                  theirs[to].addr, 1u);
        end_expect(&end[to], 100, IBV_WC_SUCCESS);
        end_expect(&end[from], (uint64_t) from, IBV_WC_SUCCESS);
        CHECK(1 + from == in[0] && 1 + from == in[MESSAGE - 1]);
        barrier(fd);
    }
    after = resident();
    if (before + SLACK + (RANKS - 1) * LIMIT < after) {
        fprintf(stderr, "rank %d: %zu bytes more with %d peers\n", me, after - before, RANKS - 1);
        return 1;
    }
    if (0 == me) {
        printf("%d peers: %zu KiB more\n", RANKS - 1, after > before ? (after - before) / 1024 : 0);
        fflush(stdout);
    }
    return 0;
}

int main(int argc, char **argv)
{
    static struct hca hcas[RANKS][RANKS];
    int fd[RANKS];
    int pid[RANKS];
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
    for (j = 0; j < RANKS; j++) {
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
    return 0;
}
