/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/**
 * @file
 *
 * For the tests of bad requests: two connected ends in this process, each with a page of memory,
 * and a table of cases. src is written from, dst to.
 */

#ifndef VERBS_PAIR_H
#define VERBS_PAIR_H

#include "verbs_end.h"

#define PAIR_PAGE 4096u
#define PAIR_ALL  (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

extern uint8_t *pair_src; /**< a page, 0x5a after pair_make */
extern uint8_t *pair_dst; /**< a page, 0xa5 after pair_make */

/** Two connected ends, and a registration of each page. */
struct pair {
    struct end a;
    struct end b;
    struct ibv_mr *src;
    struct ibv_mr *dst;
};

/** One case of a table. */
struct pair_case {
    const char *name;
    void (*run)(void);
};

/** Run the cases whose name has argv[1] in it, or all; the main of a test. */
int pair_main(int argc, char **argv, const struct pair_case *cases, size_t count);

void pair_make(struct pair *p, const struct end_options *options);
void pair_unmake(struct pair *p);
/** A second connection between the two, with queue pairs and queues of its own; end_close both. */
void pair_beside(struct pair *p, struct end *a2, struct end *b2);
/** Whether nothing of pair_dst was written since pair_make. */
bool pair_untouched(void);
enum ibv_qp_state pair_state(struct end *end);
/** A write that must fail with a status, its follower that must be flushed, and nothing written. */
void pair_write_fails(struct pair *p, uint32_t lkey, uint64_t addr, uint32_t length, uint32_t rkey,
                      uint64_t raddr, enum ibv_wc_status status);
/** A write of the page that must succeed. */
void pair_good_write(struct pair *p);
/** Post a send of the first bytes of a registration. */
void pair_send(struct end *end, uint64_t wr_id, struct ibv_mr *mr, uint32_t length);

#endif /* VERBS_PAIR_H */
