/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Two processes that connect, send each other messages, disconnect, and connect again, very often:
 * nothing that a connection needed may stay.
 */

#include "layouts.h"
#include "soak.h"

#include <stdio.h>
#include <stdlib.h>

/* Connections of a cycle. */
#define CONNECTIONS 2
/* Bytes of the heap that Open MPI 4.1 keeps of a connection, at most: 300 to 380 without umrddt. */
#define KEPT 512

static void exchange(MPI_Comm inter, uint64_t key)
{
    mpitest_message_t *out = mpitest_message(MPITEST_FINE, 6000, key);
    mpitest_message_t *in = mpitest_message(MPITEST_IRREGULAR, 6000, key + 2);
    MPI_Request request;
    MPI_Status status;

    mpitest_fill(out->buffer, key + (uint64_t) mpitest.rank);
    MPI_OK(MPI_Irecv(in->addr, 1, in->type, 0, 3, inter, &request));
    MPI_OK(MPI_Send(out->addr, 1, out->type, 0, 3, inter));
    MPI_OK(MPI_Wait(&request, &status));
    VERIFY(in->buffer, key + 1 - (uint64_t) mpitest.rank, in->bytes);
    mpitest_message_free(out);
    mpitest_message_free(in);
}

static void connect_once(uint64_t key)
{
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;

    if (0 == mpitest.rank) {
        MPI_OK(MPI_Open_port(MPI_INFO_NULL, port));
        MPI_OK(MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, 1, 9, MPI_COMM_WORLD));
        MPI_OK(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
    } else {
        MPI_OK(
            MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        MPI_OK(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter));
    }
    exchange(inter, key);
    MPI_OK(MPI_Comm_disconnect(&inter));
    CHECK(MPI_COMM_NULL == inter);
    if (0 == mpitest.rank) {
        MPI_OK(MPI_Close_port(port));
    }
}

int main(int argc, char **argv)
{
    long cycles;

    mpitest_init(&argc, &argv, "reconnect", 10, MPI_THREAD_SINGLE);
    CHECK(2 == mpitest.size);
    for (cycles = 0; soak_goes_on(cycles); ++cycles) {
        for (int i = 0; i < CONNECTIONS; ++i) {
            mpitest.step = CONNECTIONS * cycles + i;
            connect_once(mpitest.seed + (uint64_t) mpitest.step);
        }
        soak_leak();
        soak_look();
    }
    soak_check(256 << 10, CONNECTIONS * KEPT);
    if (0 == mpitest.rank) {
        printf("reconnect: %ld connections\n", CONNECTIONS * cycles);
    }
    return mpitest_finish();
}
