/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * More messages at once than keys, queue entries and credits: a hundred messages each way between
 * every two ranks, all posted before the first wait. With small pools the messages have to wait for
 * resources. All must arrive, and the run must end.
 *
 * Mode "reverse" posts the receives in the opposite order, so the message that holds the keys is
 * never the next one; "late" posts them after all sends; "ends" makes every second rank wait before
 * it receives.
 */

#include "layouts.h"
#include "mpitest.h"
#include "pvars.h"

#include <stdio.h>
#include <stdlib.h>

static int bytes_of(uint64_t seed, int i)
{
    static const int sizes[] = {4096, 5000, 8192, 20000, 60000};
    uint64_t state = mpitest_mix(seed, (uint64_t) i, 2);

    return sizes[mpitest_between(&state, 0, sizeof(sizes) / sizeof(sizes[0]) - 1)];
}

static mpitest_kind_t kind_of(uint64_t seed, int i, int side)
{
    uint64_t state = mpitest_mix(seed, (uint64_t) i, 3 + (uint64_t) side);
    mpitest_kind_t kind = (mpitest_kind_t) mpitest_between(&state, 0, MPITEST_KINDS - 1);

    return MPITEST_WIDE == kind ? MPITEST_COARSE : kind;
}

int main(int argc, char **argv)
{
    bool reverse, late, ends;
    int n, peers, total, i, j, peer, count;
    mpitest_message_t **out, **in;
    MPI_Request *requests;
    MPI_Status *statuses;
    pvars_t before, after, mine, all;
    int have_pvars, wave;

    mpitest_init(&argc, &argv, "flood", 100, MPI_THREAD_SINGLE);
    if (2 > mpitest.size) {
        mpitest_skip("needs two ranks");
    }
    reverse = mpitest_has("reverse");
    late = mpitest_has("late");
    ends = mpitest_has("ends");
    have_pvars = pvars_open();
    pvars_read(&before);
    n = (int) mpitest.ops;
    peers = mpitest.size - 1;
    total = n * peers;
    out = malloc(sizeof(*out) * (size_t) total);
    in = malloc(sizeof(*in) * (size_t) total);
    requests = malloc(sizeof(*requests) * 2 * (size_t) total);
    statuses = malloc(sizeof(*statuses) * 2 * (size_t) total);
    CHECK(NULL != out && NULL != in && NULL != requests && NULL != statuses);
    for (wave = 0; wave < 2; ++wave) {
        for (i = 0; i < total; ++i) {
            uint64_t to = mpitest_mix(mpitest.seed, (uint64_t) mpitest.rank,
                                      (uint64_t) ((mpitest.rank + 1 + i % peers) % mpitest.size));
            uint64_t from = mpitest_mix(mpitest.seed,
                                        (uint64_t) ((mpitest.rank + 1 + i % peers) % mpitest.size),
                                        (uint64_t) mpitest.rank);

            out[i] = mpitest_message(kind_of(to, i / peers, 0), bytes_of(to, i / peers), to);
            in[i] = mpitest_message(kind_of(from, i / peers, 1), bytes_of(from, i / peers), from);
            mpitest_fill(out[i]->buffer, to + (uint64_t) (i / peers + 1000 * wave));
            requests[i] = requests[total + i] = MPI_REQUEST_NULL;
        }
        for (j = 0; !late && j < total; ++j) {
            i = reverse ? total - 1 - j : j;
            peer = (mpitest.rank + 1 + i % peers) % mpitest.size;
            MPI_OK(MPI_Irecv(in[i]->addr, 1, in[i]->type, peer, i / peers, MPI_COMM_WORLD,
                             &requests[i]));
        }
        for (i = 0; i < total; ++i) {
            peer = (mpitest.rank + 1 + i % peers) % mpitest.size;
            MPI_OK((0 == i % 5 ? MPI_Issend : MPI_Isend)(out[i]->addr, 1, out[i]->type, peer,
                                                         i / peers, MPI_COMM_WORLD,
                                                         &requests[total + i]));
        }
        if (ends && 1 == mpitest.rank % 2) {
            mpitest_sleep(300000);
        }
        for (j = 0; late && j < total; ++j) {
            i = reverse ? total - 1 - j : j;
            peer = (mpitest.rank + 1 + i % peers) % mpitest.size;
            MPI_OK(MPI_Irecv(in[i]->addr, 1, in[i]->type, peer, i / peers, MPI_COMM_WORLD,
                             &requests[i]));
        }
        MPI_OK(MPI_Waitall(2 * total, requests, statuses));
        for (i = 0; i < total; ++i) {
            uint64_t from = mpitest_mix(mpitest.seed,
                                        (uint64_t) ((mpitest.rank + 1 + i % peers) % mpitest.size),
                                        (uint64_t) mpitest.rank);

            mpitest.step = i;
            CHECK_INT(statuses[i].MPI_TAG, i / peers);
            MPI_OK(MPI_Get_count(&statuses[i], MPI_BYTE, &count));
            CHECK_INT(count, bytes_of(from, i / peers));
            VERIFY(in[i]->buffer, from + (uint64_t) (i / peers + 1000 * wave), count);
            mpitest_message_free(in[i]);
            mpitest_message_free(out[i]);
        }
    }
    pvars_read(&after);
    pvars_subtract(&after, &before, &mine);
    pvars_sum(&mine, &all);
    if (0 == mpitest.rank && 0 < have_pvars) {
        pvars_print("flood, all ranks", &all);
    }
    if (mpitest_has("umr")) {
        CHECK(0 < all.value[PVARS_HANDLED_SENDS]);
        CHECK_INT(all.value[PVARS_HANDLED_SENDS], all.value[PVARS_HANDLED_RECVS]);
        CHECK_INT(all.value[PVARS_FALLBACK_SENDS], 0);
        CHECK_INT(all.value[PVARS_FALLBACK_RECVS], 0);
        CHECK_INT(all.value[PVARS_WRITE_BYTES], all.value[PVARS_HANDLED_BYTES]);
        CHECK(all.value[PVARS_ROUNDS] >= all.value[PVARS_HANDLED_RECVS]);
    }
    free(out);
    free(in);
    free(requests);
    free(statuses);
    pvars_close();
    return mpitest_finish();
}
