/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * MPI_Finalize: sends with freed requests are still pending when their sender enters it (the
 * standard has such a program as a correct one). Their data must arrive, and all processes must
 * return. Even ranks send to the next rank, which receives late. MPI_Finalize itself deletes the
 * attributes of MPI_COMM_SELF with functions that may communicate.
 */

#include "layouts.h"
#include "mpitest.h"

#include <stdio.h>
#include <stdlib.h>

#define MESSAGES 6

static int deleted;

/* Called at the beginning of MPI_Finalize: one more ring of messages, while others are pending. */
static int delete_attribute(MPI_Comm comm, int keyval, void *value, void *extra)
{
    uint64_t state = mpitest_mix(mpitest.seed, 1, 2);
    mpitest_message_t *out, *in;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int i;

    (void) comm;
    (void) keyval;
    (void) value;
    (void) extra;
    ++deleted;
    for (i = 0; i < MESSAGES; ++i) {
        mpitest_kind_t kinds[2] = {mpitest_draw_kind(&state), mpitest_draw_kind(&state)};
        int bytes = mpitest_draw_bytes(&state);

        out = mpitest_message(kinds[0], bytes, 1);
        in = mpitest_message(kinds[1], bytes, 1);
        mpitest_fill(out->buffer, (uint64_t) (mpitest.rank * MESSAGES + i));
        MPI_OK(MPI_Irecv(in->addr, 1, in->type, mpitest_left(), 100 + i, MPI_COMM_WORLD,
                         &requests[0]));
        MPI_OK(MPI_Issend(out->addr, 1, out->type, mpitest_right(), 100 + i, MPI_COMM_WORLD,
                          &requests[1]));
        MPI_OK(MPI_Waitall(2, requests, statuses));
        CHECK_STATUS(&statuses[0], mpitest_left(), 100 + i, bytes);
        VERIFY(in->buffer, (uint64_t) (mpitest_left() * MESSAGES + i), bytes);
        mpitest_message_free(out);
        mpitest_message_free(in);
    }
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    mpitest_message_t *messages[MESSAGES];
    MPI_Request request;
    MPI_Status status;
    int i, count = -1, peer, keyval = MPI_KEYVAL_INVALID;

    mpitest_init(&argc, &argv, "finalize", 1, MPI_THREAD_SINGLE);
    if (0 != mpitest.size % 2) {
        mpitest_skip("needs an even number of ranks");
    }
    MPI_OK(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_attribute, &keyval, NULL));
    MPI_OK(MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL));
    peer = mpitest.rank ^ 1;
    for (i = 0; i < MESSAGES; ++i) {
        messages[i] = mpitest_message((mpitest_kind_t) (i % 3), 20000 * i + 3000, 1);
        if (0 == mpitest.rank % 2) {
            mpitest_fill(messages[i]->buffer, mpitest.seed + (uint64_t) i);
            MPI_OK(MPI_Isend(messages[i]->addr, 1, messages[i]->type, peer, i, MPI_COMM_WORLD,
                             &request));
            MPI_OK(MPI_Request_free(&request));
        }
    }
    if (1 == mpitest.rank % 2) {
        mpitest_sleep(200000);
        for (i = MESSAGES - 1; 0 <= i; --i) {
            MPI_OK(MPI_Recv(messages[i]->addr, 1, messages[i]->type, peer, i, MPI_COMM_WORLD,
                            &status));
            MPI_OK(MPI_Get_count(&status, MPI_BYTE, &count));
            CHECK_INT(count, messages[i]->bytes);
            VERIFY(messages[i]->buffer, mpitest.seed + (uint64_t) i, count);
        }
        printf("finalize: rank %d has all, %ld checks\n", mpitest.rank, mpitest.checks);
        fflush(stdout);
    }
    /* Not freed: the sender's buffers are in use until MPI_Finalize returns. */
    MPI_Finalize();
    if (1 != deleted) {
        fprintf(stderr, "finalize: FAILED: the attribute was deleted %d times\n", deleted);
        return 1;
    }
    for (i = 0; i < MESSAGES; ++i) {
        mpitest_buffer_free(messages[i]->buffer);
        mpitest_map_free(messages[i]->map);
        free(messages[i]);
    }
    return 0;
}
