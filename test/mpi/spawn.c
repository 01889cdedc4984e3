/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * MPI_Comm_spawn: the parents start children of the same program, both sides exchange messages on
 * the intercommunicator and on the merged one, and disconnect.
 */

#include "layouts.h"
#include "mpitest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHILDREN 2

/* Rank r of one side with rank r of the other; 'salt' distinguishes the two sides. */
static void exchange(MPI_Comm comm, int peer, int mine, int theirs)
{
    static const int sizes[] = {8, 72, 5000, 40000, 200000};
    size_t i, kind;

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        for (kind = 0; kind < MPITEST_KINDS; ++kind) {
            mpitest_message_t *out, *in;
            MPI_Request request;
            MPI_Status status;
            int count = -1;

            if (MPITEST_WIDE == (mpitest_kind_t) kind) {
                continue;
            }
            mpitest.step = (long) (i * 100 + kind);
            out = mpitest_message((mpitest_kind_t) kind, sizes[i], 1);
            in = mpitest_message(MPITEST_NESTED, sizes[i] + 10, 1);
            mpitest_fill(out->buffer, (uint64_t) (mine * 1000) + kind);
            MPI_OK(MPI_Irecv(in->addr, 1, in->type, 0 == kind % 2 ? peer : MPI_ANY_SOURCE,
                             (int) kind, comm, &request));
            MPI_OK(MPI_Send(out->addr, 1, out->type, peer, (int) kind, comm));
            MPI_OK(MPI_Wait(&request, &status));
            CHECK_INT(status.MPI_SOURCE, peer);
            MPI_OK(MPI_Get_count(&status, MPI_BYTE, &count));
            CHECK_INT(count, sizes[i]);
            VERIFY(in->buffer, (uint64_t) (theirs * 1000) + kind, sizes[i]);
            mpitest_message_free(out);
            mpitest_message_free(in);
        }
    }
}

int main(int argc, char **argv)
{
    MPI_Comm parent, inter, merged;
    int mine, side, rank, errors[CHILDREN];
    MPI_Info info;

    /* Children have counters of their own: those of the parents show the handled messages. */
    mpitest_init(&argc, &argv, "spawn", 1, MPI_THREAD_SINGLE);
    MPI_OK(MPI_Comm_get_parent(&parent));
    side = MPI_COMM_NULL == parent ? 0 : 1;
    if (CHILDREN != mpitest.size) {
        mpitest_skip("needs two ranks");
    }
    if (0 == side) {
        MPI_OK(MPI_Info_create(&info));
        MPI_OK(MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, CHILDREN, info, 0, MPI_COMM_WORLD, &inter,
                              errors));
        MPI_OK(MPI_Info_free(&info));
    } else {
        inter = parent;
    }
    MPI_OK(MPI_Comm_rank(inter, &mine));
    exchange(inter, mine, 10 * side + mine, 10 * (1 - side) + mine);
    MPI_OK(MPI_Intercomm_merge(inter, side, &merged));
    MPI_OK(MPI_Comm_rank(merged, &rank));
    exchange(merged, (rank + CHILDREN) % (2 * CHILDREN), 10 * side + mine, 10 * (1 - side) + mine);
    MPI_OK(MPI_Comm_free(&merged));
    MPI_OK(MPI_Comm_disconnect(&inter));
    return mpitest_finish();
}
