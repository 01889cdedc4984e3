/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Connections: groups and single processes of one job that connect by a port, by a name or by a
 * socket. Their messages on such a communicator, and on one that was merged from it, arrive whether
 * umrddt handles them or passes them through. After the disconnect nothing is left over.
 */

#include "layouts.h"
#include "mpitest.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* With rank 'peer' of the other side; salts distinguish the sides. */
static void exchange(MPI_Comm comm, int peer, int mine, int theirs, uint64_t *state)
{
    int i;

    for (i = 0; i < 6; ++i) {
        int bytes = mpitest_draw_bytes(state), other = mpitest_draw_bytes(state);
        mpitest_kind_t kinds[2] = {mpitest_draw_kind(state), mpitest_draw_kind(state)};
        mpitest_message_t *out = mpitest_message(kinds[0], mine < theirs ? bytes : other, 1);
        mpitest_message_t *in = mpitest_message(kinds[1], mine < theirs ? other : bytes, 1);
        MPI_Request requests[2];
        MPI_Message message;
        MPI_Status status;

        mpitest_fill(out->buffer, (uint64_t) (mine * 100 + i));
        if (0 == i % 2) {
            MPI_OK(MPI_Irecv(in->addr, 1, in->type, 0 == i % 4 ? MPI_ANY_SOURCE : peer, i, comm,
                             &requests[0]));
            MPI_OK(MPI_Issend(out->addr, 1, out->type, peer, i, comm, &requests[1]));
            MPI_OK(MPI_Wait(&requests[0], &status));
        } else {
            MPI_OK(MPI_Isend(out->addr, 1, out->type, peer, i, comm, &requests[1]));
            MPI_OK(MPI_Probe(MPI_ANY_SOURCE, i, comm, &status));
            CHECK_STATUS(&status, peer, i, in->bytes);
            MPI_OK(MPI_Mprobe(peer, i, comm, &message, &status));
            MPI_OK(MPI_Mrecv(in->addr, 1, in->type, &message, &status));
        }
        CHECK_STATUS(&status, peer, i, in->bytes);
        VERIFY(in->buffer, (uint64_t) (theirs * 100 + i), in->bytes);
        MPI_OK(MPI_Wait(&requests[1], MPI_STATUS_IGNORE));
        mpitest_message_free(out);
        mpitest_message_free(in);
    }
}

/* On the intercommunicator, and on the one merged from it; then both are freed. */
static void use_and_part(MPI_Comm *inter, bool accepts, int mine, int theirs, uint64_t *state)
{
    int rank, size, merged_rank;
    MPI_Comm merged;

    MPI_OK(MPI_Comm_rank(*inter, &rank));
    MPI_OK(MPI_Comm_remote_size(*inter, &size));
    exchange(*inter, rank, mine, theirs, state);
    MPI_OK(MPI_Intercomm_merge(*inter, accepts ? 0 : 1, &merged));
    MPI_OK(MPI_Comm_rank(merged, &merged_rank));
    exchange(merged, (merged_rank + size) % (2 * size), mine, theirs, state);
    MPI_OK(MPI_Comm_free(&merged));
    MPI_OK(MPI_Comm_disconnect(inter));
    CHECK(MPI_COMM_NULL == *inter);
}

/* One side sends its port to the other in a message. */
static void report_port(bool accepts, int partner, char *port)
{
    if (accepts) {
        MPI_OK(MPI_Open_port(MPI_INFO_NULL, port));
        MPI_OK(MPI_Send(port, MPI_MAX_PORT_NAME, MPI_CHAR, partner, 9, MPI_COMM_WORLD));
    } else {
        MPI_OK(MPI_Recv(port, MPI_MAX_PORT_NAME, MPI_CHAR, partner, 9, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE));
    }
}

/* The even ranks accept, the odd ones connect: two groups of one job. */
static void two_groups(uint64_t *state)
{
    bool accepts = 0 == mpitest.rank % 2;
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm local, inter;

    MPI_OK(MPI_Comm_split(MPI_COMM_WORLD, mpitest.rank % 2, 0, &local));
    if (2 > mpitest.rank) {
        report_port(accepts, 1 - mpitest.rank, port);
    }
    MPI_OK((accepts ? MPI_Comm_accept : MPI_Comm_connect)(port, MPI_INFO_NULL, 0, local, &inter));
    use_and_part(&inter, accepts, mpitest.rank, mpitest.rank ^ 1, state);
    if (0 == mpitest.rank) {
        MPI_OK(MPI_Close_port(port));
    }
    MPI_OK(MPI_Comm_free(&local));
}

/* Every pair on its own, by MPI_COMM_SELF. */
static void alone(uint64_t *state)
{
    bool accepts = 0 == mpitest.rank % 2;
    char port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm inter;
    int pair;

    for (pair = 0; pair < mpitest.size / 2; ++pair) {
        uint64_t own = mpitest_random(state);

        /* One pair after the other. */
        if (pair == mpitest.rank / 2) {
            report_port(accepts, mpitest.rank ^ 1, port);
            MPI_OK((accepts ? MPI_Comm_accept : MPI_Comm_connect)(port, MPI_INFO_NULL, 0,
                                                                  MPI_COMM_SELF, &inter));
            use_and_part(&inter, accepts, mpitest.rank, mpitest.rank ^ 1, &own);
            if (accepts) {
                MPI_OK(MPI_Close_port(port));
            }
        }
        MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

/* A connected socket between two ranks. */
static int connected(bool accepts, int partner)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0), listener, port;

    CHECK(0 <= fd);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (accepts) {
        listener = fd;
        CHECK(0 == bind(listener, (struct sockaddr *) &address, sizeof(address)));
        CHECK(0 == listen(listener, 1));
        CHECK(0 == getsockname(listener, (struct sockaddr *) &address, &length));
        port = ntohs(address.sin_port);
        MPI_OK(MPI_Send(&port, 1, MPI_INT, partner, 8, MPI_COMM_WORLD));
        fd = accept(listener, NULL, NULL);
        CHECK(0 <= fd);
        close(listener);
    } else {
        MPI_OK(MPI_Recv(&port, 1, MPI_INT, partner, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        address.sin_port = htons((uint16_t) port);
        CHECK(0 == connect(fd, (struct sockaddr *) &address, sizeof(address)));
    }
    return fd;
}

static void joined(uint64_t *state)
{
    bool accepts = 0 == mpitest.rank % 2;
    MPI_Comm inter;
    int pair, fd;

    for (pair = 0; pair < mpitest.size / 2; ++pair) {
        uint64_t own = mpitest_random(state);

        if (pair == mpitest.rank / 2) {
            fd = connected(accepts, mpitest.rank ^ 1);
            MPI_OK(MPI_Comm_join(fd, &inter));
            use_and_part(&inter, accepts, mpitest.rank, mpitest.rank ^ 1, &own);
            close(fd);
        }
        MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    }
}

int main(int argc, char **argv)
{
    static const mpitest_part_t parts[] = {
        {"two_groups", two_groups}, {"alone", alone}, {"joined", joined}, {NULL, NULL}};

    mpitest_init(&argc, &argv, "connect", 1, MPI_THREAD_SINGLE);
    if (0 != mpitest.size % 2) {
        mpitest_skip("needs an even number of ranks");
    }
    mpitest_run(parts);
    return mpitest_finish();
}
