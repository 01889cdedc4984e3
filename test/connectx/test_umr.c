/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * UMR between two processes: the sender gathers through one mkey, the receiver scatters through
 * another of a different layout. Every byte of the receiver's memory is checked, gaps included.
 */

#include "verbs_end.h"

#include <endian.h>
#include <string.h>
#include <unistd.h>

#define AREA (4u << 20)
#define IMM  0x12345678u
#define ALL  (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* A layout for one side: a list of pieces, or pieces that repeat. */
struct side {
    const char *name;
    uint32_t repeat; /* 0: a list */
    uint16_t count;
    uint64_t first;  /* offset of the first piece */
    uint32_t length; /* of a piece */
    uint32_t stride; /* from piece to piece, or from repetition to repetition */
    uint32_t apart;  /* between the entries of one repetition */
};

/* Both sides of a pair carry the same number of bytes. */
static const struct {
    struct side from;
    struct side to;
} pairs[] = {
    {{"list of 1", 0, 1, 0, 4096, 0, 0}, {"list of 4", 0, 4, 128, 1024, 2000, 0}},
    {{"list of 52", 0, 52, 3, 7, 1001, 0}, {"list of 13", 0, 13, 11, 28, 64, 0}},
    {{"list of 48, large", 0, 48, 0, 65536, 70000, 0},
     {"list of 6, large", 0, 6, 64, 524288, 600000, 0}},
    {{"interleaved, 1 entry", 100, 1, 5, 40, 120, 0}, {"list of 40", 0, 40, 0, 100, 333, 0}},
    {{"interleaved, 3 entries", 50, 3, 1000, 16, 4096, 64},
     {"interleaved, 2 entries", 75, 2, 7, 16, 512, 100}},
    {{"interleaved, 51 entries", 2, 51, 0, 10, 10000, 37},
     {"interleaved, 1 entry, once", 0, 1, 0, 1020, 0, 0}},
    {{"interleaved, full width", 3, 1, 0, 65535, 65535, 0},
     {"list of 3", 0, 3, 9, 65535, 80000, 0}},
};

static uint8_t *area;
static uint8_t expected[AREA];

static uint64_t bytes_of(const struct side *side)
{
    return (uint64_t) side->length * side->count * (0 == side->repeat ? 1 : side->repeat);
}

/* Offset in the area of a position in the stream: the layout's definition, by itself. */
static uint64_t place_of(const struct side *side, uint64_t position)
{
    uint64_t piece = position / side->length;
    uint64_t within = position % side->length;

    if (0 == side->repeat) {
        return side->first + piece * side->stride + within;
    }
    return side->first + piece / side->count * side->stride
           + piece % side->count * (uint64_t) side->apart + within;
}

static void map(struct end *end, struct mlx5dv_mkey *mkey, const struct ibv_mr *mr,
                const struct side *side)
{
    struct ibv_sge sge[64];
    struct mlx5dv_mr_interleaved data[64];
    uint16_t i;

    for (i = 0; i < side->count; i++) {
        sge[i].addr = (uintptr_t) area + side->first + (uint64_t) i * side->stride;
        sge[i].length = side->length;
        sge[i].lkey = mr->lkey;
        data[i].addr = (uintptr_t) area + side->first + (uint64_t) i * side->apart;
        data[i].bytes_count = side->length;
        data[i].bytes_skip = side->stride - side->length;
        data[i].lkey = mr->lkey;
    }
    if (0 == side->repeat) {
        end_umr_list(end, mkey, ALL, side->count, sge, true);
    } else {
        end_umr_interleaved(end, mkey, ALL, side->repeat, side->count, data, true);
    }
}

static uint8_t pattern(uint64_t i, size_t round)
{
    return (uint8_t) (i * 2654435761u >> 13 ^ round * 37);
}

/* The receiver. */
static int receiver(int fd)
{
    struct end end;
    struct end_name peer;
    struct mlx5dv_mkey *mkey;
    struct ibv_mr *mr;
    size_t p;

    end_open(&end, NULL);
    end_report(fd, &end.name, sizeof(end.name));
    end_pipe_read(fd, &peer, sizeof(peer));
    end_connect(&end, &peer, NULL);
    mr = end_reg(&end, area, AREA);
    mkey = end_mkey(&end, 64);
    end_report(fd, "c", 1);

    for (p = 0; p < sizeof(pairs) / sizeof(pairs[0]); p++) {
        const struct side *to = &pairs[p].to;
        struct ibv_wc wc;
        uint64_t i;

        end_case = to->name;
        memset(area, 0xaa, AREA);
        memset(expected, 0xaa, AREA);
        for (i = 0; i < bytes_of(to); i++) {
            expected[place_of(to, i)] = pattern(place_of(&pairs[p].from, i), p);
        }
        /* Another tag every time: the old rkey becomes invalid. */
        mkey->lkey = (mkey->lkey & ~0xffu) | (uint32_t) (p + 1);
        mkey->rkey = mkey->lkey;
        map(&end, mkey, mr, to);
        end_recv(&end, 1000 + p, 0, NULL, 0);
        end_report(fd, &mkey->rkey, sizeof(mkey->rkey));
        CHECK(end_poll(&end, &wc, END_LONG_MS));
        CHECK(IBV_WC_SUCCESS == wc.status && 1000 + p == wc.wr_id);
        CHECK(IBV_WC_RECV_RDMA_WITH_IMM == wc.opcode && (wc.wc_flags & IBV_WC_WITH_IMM));
        CHECK(IMM + p == be32toh(wc.imm_data));
        CHECK(wc.qp_num == end.qp->qp_num);
        for (i = 0; i < AREA; i++) {
            if (area[i] != expected[i]) {
                fprintf(stderr, "%s to %s: byte %llu is 0x%02x, not 0x%02x\n", pairs[p].from.name,
                        to->name, (unsigned long long) i, area[i], expected[i]);
                return 1;
            }
        }
        end_report(fd, "d", 1);
    }
    CHECK(0 == mlx5dv_destroy_mkey(mkey));
    CHECK(0 == ibv_dereg_mr(mr));
    end_close(&end);
    return 0;
}

static void sender(int fd)
{
    struct end end;
    struct end_name peer;
    struct mlx5dv_mkey *mkey;
    struct ibv_mr *mr;
    size_t p;
    char c;

    end_open(&end, NULL);
    CHECK(828 <= end.max_inline);
    end_report(fd, &end.name, sizeof(end.name));
    end_pipe_read(fd, &peer, sizeof(peer));
    end_connect(&end, &peer, NULL);
    mr = end_reg(&end, area, AREA);
    mkey = end_mkey(&end, 64);
    end_pipe_read(fd, &c, 1);

    for (p = 0; p < sizeof(pairs) / sizeof(pairs[0]); p++) {
        const struct side *from = &pairs[p].from;
        struct ibv_wc wc;
        uint32_t rkey;
        uint32_t bytes = (uint32_t) bytes_of(from);
        uint64_t i;

        end_case = from->name;
        CHECK(bytes == bytes_of(&pairs[p].to));
        for (i = 0; i < AREA; i++) {
            area[i] = pattern(i, p);
        }
        map(&end, mkey, mr, from);
        end_pipe_read(fd, &rkey, sizeof(rkey));
        /* In two writes, cut at an odd place; the second notifies the receiver. */
        end_write(&end, 1, mkey->lkey, 0, bytes / 3, rkey, 0, 0);
        end_write(&end, 2, mkey->lkey, bytes / 3, bytes - bytes / 3, rkey, bytes / 3,
                  IMM + (uint32_t) p);
        CHECK(end_poll(&end, &wc, END_LONG_MS));
        CHECK(IBV_WC_SUCCESS == wc.status && 1 == wc.wr_id && IBV_WC_RDMA_WRITE == wc.opcode);
        end_expect(&end, 2, IBV_WC_SUCCESS);
        end_pipe_read(fd, &c, 1);
    }
    CHECK(0 == mlx5dv_destroy_mkey(mkey));
    CHECK(0 == ibv_dereg_mr(mr));
    end_close(&end);
}

int main(int argc, char **argv)
{
    int pid;
    int fd;

    (void) argc;
    end_start(argv, NULL);
    area = aligned_alloc(4096, AREA);
    CHECK(NULL != area);
    fd = end_fork(receiver, &pid);
    sender(fd);
    end_wait(pid);
    printf("%zu pairs of layouts\n", sizeof(pairs) / sizeof(pairs[0]));
    return 0;
}
