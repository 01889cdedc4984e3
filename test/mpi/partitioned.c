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
 * Partitioned communication, which Open MPI implements on the PML. Derived types, started
 * repeatedly, together with ordinary messages. One partition only: with several, Open MPI 5.0.7
 * alone computes the start of a partition from the sizes of the previous ones, not from their
 * extents, and sometimes hangs.
 */

#include "layouts.h"
#include "mpitest.h"

#if OMPI_MAJOR_VERSION >= 5

static void one_part(uint64_t *state)
{
    /* The same on every rank. */
    int bytes = (int) mpitest_between(state, 1, 20000), flag;
    uint64_t key = mpitest_random(state), seed = mpitest_random(state);
    MPI_Datatype type = mpitest_type(mpitest_draw_kind(state), bytes, seed);
    mpitest_map_t *map = mpitest_map(type, 1);
    mpitest_buffer_t *out = mpitest_buffer(map), *in = mpitest_buffer(map);
    mpitest_message_t *beside = mpitest_message(MPITEST_FINE, 3000, 1),
                      *received = mpitest_message(MPITEST_COARSE, 3000, 2);
    MPI_Request requests[2], extra;
    MPI_Status status;

    MPI_OK(MPI_Precv_init(in->addr, 1, 1, type, mpitest_left(), 5, MPI_COMM_WORLD, MPI_INFO_NULL,
                          &requests[0]));
    MPI_OK(MPI_Psend_init(out->addr, 1, 1, type, mpitest_right(), 5, MPI_COMM_WORLD, MPI_INFO_NULL,
                          &requests[1]));
    for (int round = 0; round < 3; ++round) {
        uint64_t sent = mpitest_mix(key, (uint64_t) round, (uint64_t) mpitest.rank);

        mpitest_fill(out, sent);
        mpitest_clear(in);
        mpitest_fill(beside->buffer, sent + 1);
        mpitest_clear(received->buffer);
        MPI_OK(MPI_Startall(2, requests));
        /* (Another tag: 5.0.7 alone negotiates partitions by messages with the user's tag.) */
        MPI_OK(MPI_Irecv(received->addr, 1, received->type, mpitest_left(), 6, MPI_COMM_WORLD,
                         &extra));
        MPI_OK(MPI_Send(beside->addr, 1, beside->type, mpitest_right(), 6, MPI_COMM_WORLD));
        MPI_OK(MPI_Pready(0, requests[1]));
        do {
            MPI_OK(MPI_Parrived(requests[0], 0, &flag));
        } while (!flag);
        MPI_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        MPI_OK(MPI_Wait(&extra, &status));
        CHECK_STATUS(&status, mpitest_left(), 6, 3000);
        sent = mpitest_mix(key, (uint64_t) round, (uint64_t) mpitest_left());
        VERIFY(in, sent, map->size);
        VERIFY(received->buffer, sent + 1, 3000);
        MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    }
    MPI_OK(MPI_Request_free(&requests[0]));
    MPI_OK(MPI_Request_free(&requests[1]));
    mpitest_message_free(beside);
    mpitest_message_free(received);
    mpitest_buffer_free(out);
    mpitest_buffer_free(in);
    mpitest_map_free(map);
    MPI_OK(MPI_Type_free(&type));
}

static const mpitest_part_t parts[] = {{"one-part", one_part}, {NULL, NULL}};

#endif

int main(int argc, char **argv)
{
    mpitest_init(&argc, &argv, "partitioned", 30, MPI_THREAD_SINGLE);
#if OMPI_MAJOR_VERSION >= 5
    mpitest_run(parts);
#else
    mpitest_skip("no partitioned communication before Open MPI 5.0");
#endif
    return mpitest_finish();
}
