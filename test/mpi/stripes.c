/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Large messages over several HCAs at once: every byte, the bytes that each HCA wrote, the cost of
 * repeated messages, and the behaviour of messages when a pair of HCAs breaks.
 *
 * --mode, some of:
 *
 *  split      all HCAs carry their part of each message, in the steady state with at most one CTS
 *             per HCA
 *  small      messages that are not large use one HCA
 *  truncated  messages that are too long for their receive use one HCA
 *  broken     one HCA breaks within a message, which arrives; one message goes by the base PML,
 *             and the following ones use the other HCAs
 *  deaf       with broken: only the receiver's end breaks, between two messages
 *  hcasN      each rank has N HCAs (default 2)
 *  any,stress_random  (without --mode) only the bytes are checked
 */

#include "layouts.h"
#include "mpitest.h"
#include "pvars.h"

#include <stdlib.h>
#include <string.h>

enum {
    LARGE = 300000, /* above pml_umrddt_stripe of the cases */
    SMALL = 40000,  /* below */
    AGAIN = 4,
    TAG = 7
};

typedef struct pair_t {
    MPI_Datatype type;
    mpitest_map_t *map;
    mpitest_buffer_t *buffer;
} pair_t;

static int hcas; /* of this process */

/* This rank's side of a message of that many bytes. */
static pair_t side(mpitest_kind_t sent, mpitest_kind_t received, int bytes, uint64_t seed)
{
    pair_t pair;

    pair.type = mpitest_type(0 == mpitest.rank ? sent : received, bytes, seed + 1);
    pair.map = mpitest_map(pair.type, 1);
    pair.buffer = mpitest_buffer(pair.map);
    return pair;
}

static void side_free(pair_t *pair)
{
    mpitest_buffer_free(pair->buffer);
    mpitest_map_free(pair->map);
    MPI_OK(MPI_Type_free(&pair->type));
}

/* One message from rank 0 to rank 1, checked. */
static void message(pair_t *pair, int bytes, uint64_t key)
{
    if (0 == mpitest.rank) {
        mpitest_fill(pair->buffer, key);
        MPI_OK(MPI_Send(pair->buffer->addr, 1, pair->type, 1, TAG, MPI_COMM_WORLD));
    } else {
        MPI_Status status;

        mpitest_clear(pair->buffer);
        MPI_OK(MPI_Recv(pair->buffer->addr, 1, pair->type, 0, TAG, MPI_COMM_WORLD, &status));
        CHECK_STATUS(&status, 0, TAG, bytes);
    }
    VERIFY(pair->buffer, key, bytes);
}

/* Bytes that the HCAs of rank 0 have written since then; 0 on rank 1. */
static void written(const uint64_t *before, uint64_t *since)
{
    int i;

    CHECK(pvars_hcas(since));
    for (i = 0; i < PVARS_HCAS; ++i) {
        since[i] -= before[i];
    }
}

/* Each of 'use' HCAs wrote about its part of 'total' bytes, and the others nothing. */
static void check_parts(const uint64_t *since, uint64_t total, int use)
{
    uint64_t sum = 0;
    int i, parts = 0;

    for (i = 0; i < PVARS_HCAS; ++i) {
        sum += since[i];
        if (0 < since[i]) {
            ++parts;
            CHECK(since[i] >= total / (unsigned) use * 3 / 4);
            CHECK(since[i] <= total / (unsigned) use * 5 / 4);
        }
    }
    CHECK_INT(sum, total);
    CHECK_INT(parts, use);
}

/* The fourth and later ones of equal messages. */
static void check_steady(const pvars_t *seen, int times)
{
    CHECK_INT(seen->value[PVARS_KEYS_MAPPED], 0);
    CHECK_INT(seen->value[PVARS_MKEYS_CREATED], 0);
    CHECK_INT(seen->value[PVARS_LAYOUT_MISSES], 0);
    CHECK_INT(seen->value[PVARS_REG_MISSES], 0);
    CHECK_INT(seen->value[PVARS_FALLBACK_SENDS], 0);
    CHECK_INT(seen->value[PVARS_FALLBACK_RECVS], 0);
    if (0 == mpitest.rank) {
        CHECK_INT(seen->value[PVARS_SENDS_STRIPED], times);
        CHECK_INT(seen->value[PVARS_CONTROL_MESSAGES], times);
    } else {
        CHECK_INT(seen->value[PVARS_ROUNDS], times * hcas);
        CHECK_INT(seen->value[PVARS_FINS_RECEIVED], times * hcas);
        CHECK_INT(seen->value[PVARS_CONTROL_MESSAGES], times * hcas);
    }
}

static void split(uint64_t *state)
{
    static const struct {
        mpitest_kind_t sent, received;
        bool regular;
    } pairs[] = {
        {MPITEST_COARSE, MPITEST_COARSE, true},     {MPITEST_FINE, MPITEST_COARSE, true},
        {MPITEST_COARSE, MPITEST_CONTIGUOUS, true}, {MPITEST_IRREGULAR, MPITEST_FINE, false},
        {MPITEST_NESTED, MPITEST_IRREGULAR, false}, {MPITEST_DESCENDING, MPITEST_NEGATIVE, true}};
    size_t which;
    int i;

    for (which = 0; which < sizeof(pairs) / sizeof(pairs[0]); ++which) {
        pair_t pair = side(pairs[which].sent, pairs[which].received, LARGE, *state);
        uint64_t before[PVARS_HCAS], since[PVARS_HCAS];
        pvars_t first, last, seen;

        for (i = 0; i < 3; ++i) {
            message(&pair, LARGE, mpitest_random(state)); /* the first one may go without keys */
        }
        MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
        CHECK(pvars_hcas(before));
        pvars_read(&first);
        for (i = 0; i < AGAIN; ++i) {
            message(&pair, LARGE, mpitest_random(state));
        }
        pvars_read(&last);
        pvars_subtract(&last, &first, &seen);
        check_steady(&seen, AGAIN);
        written(before, since);
        if (0 == mpitest.rank) {
            check_parts(since, (uint64_t) AGAIN * LARGE, hcas);
            if (pairs[which].regular) {
                /* a part begins and ends between blocks, so it is one key, as the whole is; its FIN
                 * is in a write of its own where each is (the rows "notify-") */
                int writes = 1 == pvars_parameter("btl_umr_notify_size", 0) ? 2 : 1;

                CHECK_INT(seen.value[PVARS_WRITES_POSTED], AGAIN * hcas * writes);
            }
        }
        side_free(&pair);
    }
}

static void small(uint64_t *state)
{
    pair_t pair = side(MPITEST_COARSE, MPITEST_FINE, SMALL, *state);
    uint64_t before[PVARS_HCAS], since[PVARS_HCAS];
    int i;

    CHECK(pvars_hcas(before));
    for (i = 0; i < 3; ++i) {
        message(&pair, SMALL, mpitest_random(state));
    }
    written(before, since);
    if (0 == mpitest.rank) {
        check_parts(since, 3 * SMALL, 1);
    }
    side_free(&pair);
}

/* A receive that is too short gets the bytes that fit, by one HCA. */
static void truncated(uint64_t *state)
{
    int room = LARGE / 2, bytes = 0 == mpitest.rank ? LARGE : room;
    pair_t pair = side(MPITEST_COARSE, MPITEST_FINE, bytes, *state);
    uint64_t key = mpitest_random(state);
    pvars_t before, after;

    pvars_read(&before);
    if (0 == mpitest.rank) {
        mpitest_fill(pair.buffer, key);
        MPI_OK(MPI_Send(pair.buffer->addr, 1, pair.type, 1, TAG, MPI_COMM_WORLD));
        pvars_read(&after);
        CHECK_INT(after.value[PVARS_SENDS_STRIPED], before.value[PVARS_SENDS_STRIPED]);
    } else {
        int rc;

        mpitest_clear(pair.buffer);
        MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
        rc = MPI_Recv(pair.buffer->addr, 1, pair.type, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_INT(mpitest_error_class(rc), MPI_ERR_TRUNCATE);
        MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
        (void) VERIFY_TRUNCATED(pair.buffer, key, room);
    }
    side_free(&pair);
}

/* Many at once, in both directions, persistent ones, and unexpected ones. */
static void stress_random(uint64_t *state)
{
    enum {
        MANY = 6
    };
    pair_t in[MANY], out[MANY];
    MPI_Request requests[2 * MANY];
    int other = 1 - mpitest.rank, i, round;

    for (i = 0; i < MANY; ++i) {
        int bytes = (int) mpitest_between(state, SMALL, LARGE);
        mpitest_kind_t kinds[2] = {mpitest_draw_kind(state), mpitest_draw_kind(state)};

        out[i] = side(kinds[0], kinds[1], bytes, (uint64_t) i);
        in[i] = side(kinds[1], kinds[0], bytes, (uint64_t) i);
        MPI_OK(MPI_Send_init(out[i].buffer->addr, 1, out[i].type, other, i, MPI_COMM_WORLD,
                             &requests[i]));
        MPI_OK(MPI_Recv_init(in[i].buffer->addr, 1, in[i].type, other, i, MPI_COMM_WORLD,
                             &requests[MANY + i]));
    }
    for (round = 0; round < 3; ++round) {
        bool late = 0 != mpitest_between(state, 0, 1);

        for (i = 0; i < MANY; ++i) {
            mpitest_fill(out[i].buffer,
                         mpitest_mix((uint64_t) round, (uint64_t) i, (uint64_t) mpitest.rank));
            mpitest_clear(in[i].buffer);
        }
        if (!late) {
            MPI_OK(MPI_Startall(MANY, requests + MANY));
        }
        MPI_OK(MPI_Startall(MANY, requests));
        if (late) {
            mpitest_sleep(2000);
            MPI_OK(MPI_Startall(MANY, requests + MANY));
        }
        MPI_OK(MPI_Waitall(2 * MANY, requests, MPI_STATUSES_IGNORE));
        for (i = 0; i < MANY; ++i) {
            VERIFY(in[i].buffer, mpitest_mix((uint64_t) round, (uint64_t) i, (uint64_t) other),
                   in[i].map->size);
        }
    }
    for (i = 0; i < MANY; ++i) {
        MPI_OK(MPI_Request_free(&requests[i]));
        MPI_OK(MPI_Request_free(&requests[MANY + i]));
        side_free(&in[i]);
        side_free(&out[i]);
    }
}

/* Until a failure, which the options of the software HCA decide, and for a while after it. */
static void broken(uint64_t *state)
{
    pair_t pair = side(MPITEST_COARSE, MPITEST_FINE, LARGE, *state);
    uint64_t before[PVARS_HCAS], since[PVARS_HCAS], striped;
    bool deaf = mpitest_has("deaf");
    pvars_t first, now, all;
    int i;

    pvars_read(&first);
    for (i = 0; i < 60; ++i) {
        message(&pair, LARGE, mpitest_random(state));
    }
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    pvars_read(&now);
    pvars_subtract(&now, &first, &now);
    pvars_sum(&now, &all);
    if (0 == mpitest.rank) {
        pvars_print("counters, all ranks:", &all);
    }
    /* a pair that is known to be broken when the message arrives is not used */
    CHECK(all.value[PVARS_FALLBACK_RECVS] == all.value[PVARS_FALLBACK_SENDS]);
    CHECK(all.value[PVARS_FALLBACK_RECVS] <= 1);
    CHECK(deaf || 1 == all.value[PVARS_FALLBACK_RECVS]);
    striped = all.value[PVARS_SENDS_STRIPED] + all.value[PVARS_SENDS_DIRECT];
    /* the lane of the query may be the deaf one: then there is nothing to stripe */
    CHECK(60 == striped || (deaf && 59 == striped && 1 == all.value[PVARS_FALLBACK_RECVS]));
    CHECK(pvars_hcas(before));
    message(&pair, LARGE, mpitest_random(state));
    written(before, since);
    if (0 == mpitest.rank) {
        check_parts(since, LARGE, hcas - 1);
    }
    side_free(&pair);
}

static void any(uint64_t *state)
{
    int i;

    for (i = 0; i < 4; ++i) {
        int bytes = (int) mpitest_between(state, SMALL, LARGE);
        pair_t pair = side(mpitest_draw_kind(state), mpitest_draw_kind(state), bytes,
                           (uint64_t) mpitest_between(state, 0, 1000));
        int k;

        for (k = 0; k < 3; ++k) {
            message(&pair, bytes, mpitest_random(state));
        }
        side_free(&pair);
    }
}

static const mpitest_part_t parts[] = {{"split", split},
                                       {"small", small},
                                       {"truncated", truncated},
                                       {"stress_random", stress_random},
                                       {"any", any},
                                       {"broken", broken},
                                       {NULL, NULL}};

int main(int argc, char **argv)
{
    const char *many;

    mpitest_init(&argc, &argv, "stripes", 1, MPI_THREAD_SINGLE);
    if (2 != mpitest.size) {
        mpitest_skip("needs two ranks");
    }
    if ('\0' == *mpitest.mode) {
        mpitest.mode = "any,stress_random";
    }
    many = strstr(mpitest.mode, "hcas");
    hcas = NULL == many ? 2 : (int) strtol(many + strlen("hcas"), NULL, 10);
    CHECK(PVARS_MAX == pvars_open() || 0 == strcmp("any,stress_random", mpitest.mode));
    mpitest_run(parts);
    pvars_close();
    return mpitest_finish();
}
