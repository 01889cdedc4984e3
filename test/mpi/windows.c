/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * One-sided communication with derived types on both sides, with every synchronisation: fences,
 * locks, one lock of all with flushes, post and start; on windows that were created, allocated and
 * attached; with messages that umrddt handles within the epochs. (If one-sided communication uses
 * the PML, as with osc/pt2pt, umrddt handles the puts themselves.)
 */

#include "layouts.h"
#include "mpitest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum epoch_t {
    EPOCH_FENCE,
    EPOCH_LOCK,
    EPOCH_LOCK_ALL,
    EPOCH_PSCW,
    EPOCH_MAX
} epoch_t;

static const char *const epoch_names[EPOCH_MAX] = {"fence", "lock", "lock_all", "post and start"};

/* The ranks that this one posts to and starts with. */
static MPI_Group left_group, right_group;

static void begin(MPI_Win win, epoch_t epoch, int target)
{
    switch (epoch) {
    case EPOCH_FENCE:
        MPI_OK(MPI_Win_fence(0, win));
        break;
    case EPOCH_LOCK:
        MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
        MPI_OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
        break;
    case EPOCH_LOCK_ALL:
        MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
        MPI_OK(MPI_Win_lock_all(0, win));
        break;
    default:
        MPI_OK(MPI_Win_post(left_group, 0, win));
        MPI_OK(MPI_Win_start(right_group, 0, win));
        break;
    }
}

static void end(MPI_Win win, epoch_t epoch, int target)
{
    switch (epoch) {
    case EPOCH_FENCE:
        MPI_OK(MPI_Win_fence(0, win));
        break;
    case EPOCH_LOCK:
        MPI_OK(MPI_Win_unlock(target, win));
        MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
        break;
    case EPOCH_LOCK_ALL:
        MPI_OK(MPI_Win_flush(target, win));
        MPI_OK(MPI_Win_unlock_all(win));
        MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
        break;
    default:
        MPI_OK(MPI_Win_complete(win));
        MPI_OK(MPI_Win_wait(win));
        break;
    }
    /* Loads see other ranks' writes. */
    if (EPOCH_LOCK == epoch || EPOCH_LOCK_ALL == epoch) {
        MPI_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, mpitest.rank, 0, win));
        MPI_OK(MPI_Win_unlock(mpitest.rank, win));
    }
}

/* A message to the right and one from the left, within an epoch: umrddt handles the first one for
 * certain, the others if they are large enough. */
typedef struct beside_t {
    mpitest_message_t *out, *in;
    MPI_Request requests[2];
} beside_t;

static void beside_start(beside_t *beside, uint64_t *state)
{
    mpitest_kind_t kinds[2] = {mpitest_draw_kind(state), mpitest_draw_kind(state)};
    int bytes = mpitest_draw_bytes(state);
    static bool again;

    if (!again) {
        kinds[0] = MPITEST_COARSE;
        bytes = 100000;
        again = true;
    }
    beside->out = mpitest_message(kinds[0], bytes, 1);
    beside->in = mpitest_message(kinds[1], bytes, 1);
    mpitest_fill(beside->out->buffer, (uint64_t) mpitest.rank);
    MPI_OK(MPI_Irecv(beside->in->addr, 1, beside->in->type, MPI_ANY_SOURCE, MPI_ANY_TAG,
                     MPI_COMM_WORLD, &beside->requests[0]));
    MPI_OK(MPI_Isend(beside->out->addr, 1, beside->out->type, mpitest_right(), 3, MPI_COMM_WORLD,
                     &beside->requests[1]));
}

static void beside_finish(beside_t *beside)
{
    MPI_OK(MPI_Waitall(2, beside->requests, MPI_STATUSES_IGNORE));
    VERIFY(beside->in->buffer, (uint64_t) mpitest_left(), beside->in->bytes);
    mpitest_message_free(beside->in);
    mpitest_message_free(beside->out);
}

/* Put, and get the same data; the request-based forms within a lock. */
static void put_and_get(MPI_Win win, MPI_Aint at, mpitest_message_t *target, epoch_t epoch,
                        uint64_t *state)
{
    mpitest_message_t *origin = mpitest_message(MPITEST_COARSE, target->bytes, 1);
    bool by_request = EPOCH_LOCK == epoch || EPOCH_LOCK_ALL == epoch;
    int right = mpitest_right();
    uint64_t key = mpitest_random(state);
    MPI_Request request;
    beside_t beside;

    mpitest_fill(origin->buffer, key + (uint64_t) mpitest.rank);
    mpitest_clear(target->buffer);
    begin(win, epoch, right);
    beside_start(&beside, state);
    if (by_request) {
        MPI_OK(MPI_Rput(origin->addr, 1, origin->type, right, at, 1, target->type, win, &request));
        MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else {
        MPI_OK(MPI_Put(origin->addr, 1, origin->type, right, at, 1, target->type, win));
    }
    beside_finish(&beside);
    end(win, epoch, right);
    VERIFY(target->buffer, key + (uint64_t) mpitest_left(), target->bytes);
    mpitest_clear(origin->buffer);
    begin(win, epoch, right);
    beside_start(&beside, state);
    if (by_request) {
        MPI_OK(MPI_Rget(origin->addr, 1, origin->type, right, at, 1, target->type, win, &request));
        MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    } else {
        MPI_OK(MPI_Get(origin->addr, 1, origin->type, right, at, 1, target->type, win));
    }
    beside_finish(&beside);
    end(win, epoch, right);
    VERIFY(origin->buffer, key + (uint64_t) mpitest.rank, origin->bytes);
    mpitest_message_free(origin);
}

/* A layout whose bytes all lie behind its address. */
static mpitest_message_t *target_make(uint64_t *state)
{
    static const mpitest_kind_t kinds[] = {MPITEST_FINE, MPITEST_COARSE, MPITEST_IRREGULAR,
                                           MPITEST_DESCENDING, MPITEST_NESTED};
    mpitest_kind_t kind = kinds[mpitest_between(state, 0, 4)];

    return mpitest_message(kind, (int) mpitest_between(state, 100, 40000), 1);
}

static void created(uint64_t *state)
{
    mpitest_message_t *target = target_make(state);
    MPI_Win win;
    int epoch;

    CHECK(0 <= target->map->lb);
    MPI_OK(MPI_Win_create(target->addr, target->map->lb + target->map->span, 1, MPI_INFO_NULL,
                          MPI_COMM_WORLD, &win));
    for (epoch = 0; epoch < EPOCH_MAX; ++epoch) {
        if (mpitest.verbose && 0 == mpitest.rank) {
            printf("%s\n", epoch_names[epoch]);
        }
        put_and_get(win, 0, target, (epoch_t) epoch, state);
    }
    MPI_OK(MPI_Win_free(&win));
    mpitest_message_free(target);
}

/* Memory of the window: it temporarily replaces the layout's buffer. */
static void allocated(uint64_t *state)
{
    mpitest_message_t *target = target_make(state);
    MPI_Aint bytes = target->map->span + 2 * MPITEST_GUARD;
    unsigned char *memory = target->buffer->memory, *base = NULL;
    void *address = target->addr;
    MPI_Win win;
    int epoch;

    MPI_OK(MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win));
    target->buffer->memory = base;
    target->buffer->addr = target->addr = base + MPITEST_GUARD - target->map->lb;
    for (epoch = 0; epoch < EPOCH_MAX; ++epoch) {
        put_and_get(win, MPITEST_GUARD - target->map->lb, target, (epoch_t) epoch, state);
    }
    target->buffer->memory = memory;
    target->buffer->addr = target->addr = address;
    MPI_OK(MPI_Win_free(&win));
    mpitest_message_free(target);
}

static void attached(uint64_t *state)
{
    mpitest_message_t *target = target_make(state);
    MPI_Aint here, there;
    MPI_Win win;
    int epoch;

    MPI_OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPI_OK(MPI_Win_attach(win, target->addr, target->map->lb + target->map->span));
    MPI_OK(MPI_Get_address(target->addr, &here));
    MPI_OK(MPI_Sendrecv(&here, 1, MPI_AINT, mpitest_left(), 1, &there, 1, MPI_AINT, mpitest_right(),
                        1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (epoch = 0; epoch < EPOCH_MAX; ++epoch) {
        put_and_get(win, there, target, (epoch_t) epoch, state);
    }
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    MPI_OK(MPI_Win_detach(win, target->addr));
    MPI_OK(MPI_Win_free(&win));
    mpitest_message_free(target);
}

/*
 * MPI_Get_accumulate of ints from the start of the window, in parts of at most 4 KiB: beyond a
 * multiple of 4 KiB osc/rdma of Open MPI 4.1.4 may return nothing, also without umrddt.
 */
static void get_accumulate(const int *mine, int *before, int n, int rank, MPI_Op op, MPI_Win win)
{
    int at, part;

    for (at = 0; at < n; at += part) {
        part = n - at < 1024 ? n - at : 1024;
        MPI_OK(MPI_Get_accumulate(NULL == mine ? NULL : mine + at, NULL == mine ? 0 : part, MPI_INT,
                                  before + at, part, MPI_INT, rank, at, part, MPI_INT, op, win));
    }
}

/* Every rank adds to every second word of rank 0 and of its right neighbour; gaps stay. */
static void accumulated(uint64_t *state)
{
    int n = (int) mpitest_between(state, 200, 3000), i, words = 2 * n, epoch, all = 0;
    int *memory = malloc(sizeof(int) * (size_t) words),
        *mine = malloc(sizeof(int) * (size_t) n * 3);
    int *before = malloc(sizeof(int) * (size_t) words), one = 1, counter = -1;
    MPI_Datatype every_second, every_third;
    MPI_Win win;

    CHECK(NULL != memory && NULL != mine && NULL != before);
    MPI_OK(MPI_Type_vector(n, 1, 2, MPI_INT, &every_second));
    MPI_OK(MPI_Type_vector(n, 1, 3, MPI_INT, &every_third));
    MPI_OK(MPI_Type_commit(&every_second));
    MPI_OK(MPI_Type_commit(&every_third));
    MPI_OK(MPI_Win_create(memory, (MPI_Aint) sizeof(int) * words, sizeof(int), MPI_INFO_NULL,
                          MPI_COMM_WORLD, &win));
    for (i = 0; i < mpitest.size; ++i) {
        all += i + 1;
    }
    for (epoch = 0; epoch < 2; ++epoch) {
        bool locked = 1 == epoch;

        for (i = 0; i < words; ++i) {
            memory[i] = 0 == i % 2 ? i : -i;
        }
        for (i = 0; i < 3 * n; ++i) {
            mine[i] = 0 == i % 3 ? (mpitest.rank + 1) * (i / 3) : -1;
        }
        begin(win, locked ? EPOCH_LOCK_ALL : EPOCH_FENCE, 0);
        MPI_OK(MPI_Accumulate(mine, 1, every_third, 0, 0, 1, every_second, MPI_SUM, win));
        if (locked) {
            MPI_OK(MPI_Win_flush(0, win));
            /* Open MPI 4.1.4 alone gets MPI_Get_accumulate wrong if its types have gaps. */
            get_accumulate(NULL, before, words, mpitest.rank, MPI_NO_OP, win);
        }
        end(win, locked ? EPOCH_LOCK_ALL : EPOCH_FENCE, 0);
        for (i = 0; i < words; ++i) {
            int added = 0 == mpitest.rank && 0 == i % 2 ? all * (i / 2) : 0;

            CHECK_INT(memory[i], (0 == i % 2 ? i : -i) + added);
            if (locked && 0 == i % 2 && 0 != mpitest.rank) {
                CHECK_INT(before[i], i);
            }
        }
        MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    /* Replaced by the left rank's data; the previous content is returned. */
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    MPI_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, mpitest_right(), 0, win));
    for (i = 0; i < n; ++i) {
        mine[i] = (mpitest.rank + 1) * i;
    }
    get_accumulate(mine, before, n, mpitest_right(), MPI_REPLACE, win);
    MPI_OK(MPI_Win_unlock(mpitest_right(), win));
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    MPI_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, mpitest.rank, 0, win));
    for (i = 0; i < n; ++i) {
        int added = 0 == mpitest_right() && 0 == i % 2 ? all * (i / 2) : 0;

        CHECK_INT(memory[i], (mpitest_left() + 1) * i);
        CHECK_INT(before[i], (0 == i % 2 ? i : -i) + added);
    }
    memory[0] = 0;
    MPI_OK(MPI_Win_unlock(mpitest.rank, win));
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    /* A counter. Every rank gets another number. */
    MPI_OK(MPI_Win_lock_all(0, win));
    MPI_OK(MPI_Fetch_and_op(&one, &counter, MPI_INT, 0, 0, MPI_SUM, win));
    MPI_OK(MPI_Win_unlock_all(win));
    CHECK(0 <= counter && counter < mpitest.size);
    MPI_OK(MPI_Allreduce(MPI_IN_PLACE, &counter, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    CHECK_INT(counter, mpitest.size * (mpitest.size - 1) / 2);
    MPI_OK(MPI_Win_free(&win));
    MPI_OK(MPI_Type_free(&every_second));
    MPI_OK(MPI_Type_free(&every_third));
    free(memory);
    free(mine);
    free(before);
}

int main(int argc, char **argv)
{
    static const mpitest_part_t parts[] = {{"created", created},
                                           {"allocated", allocated},
                                           {"attached", attached},
                                           {"accumulated", accumulated},
                                           {NULL, NULL}};
    MPI_Group world;
    int right, left;

    mpitest_init(&argc, &argv, "windows", 2, MPI_THREAD_SINGLE);
    if (2 > mpitest.size) {
        mpitest_skip("needs two ranks: Open MPI 4.1.4 makes no window on one");
    }
    right = mpitest_right();
    left = mpitest_left();
    MPI_OK(MPI_Comm_group(MPI_COMM_WORLD, &world));
    MPI_OK(MPI_Group_incl(world, 1, &right, &right_group));
    MPI_OK(MPI_Group_incl(world, 1, &left, &left_group));
    mpitest_run(parts);
    MPI_OK(MPI_Group_free(&right_group));
    MPI_OK(MPI_Group_free(&left_group));
    MPI_OK(MPI_Group_free(&world));
    return mpitest_finish();
}
