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
 * A reply that arrives after its message is complete, with the request id of the next message.
 *
 * That happens after an error, if both sides fall back to the base PML at the same time
 * (test/model/message.pml). --mode hostile: replies that request invalid chunks. The timing of
 * errors is random, so this test sends the receiver's second reply itself, through Open MPI's
 * internal interface. All other code of this directory uses public MPI only.
 */

#include "ompi_config.h"

#include <string.h>

#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"

#include "layouts.h"
#include "mpitest.h"
#include "pvars.h"

#define BYTES 100000

/** The first message of a process that umrddt handles has this number, and the first request id. */
#define FIRST 1

static void message(int from, int tag, uint64_t key)
{
    mpitest_message_t *message = mpitest_message(MPITEST_COARSE, BYTES, (uint64_t) tag);
    MPI_Comm comm = MPI_COMM_WORLD;

    if (from == mpitest.rank) {
        mpitest_fill(message->buffer, key);
        MPI_OK(MPI_Send(message->addr, 1, message->type, 1 - from, tag, comm));
    } else {
        MPI_OK(MPI_Recv(message->addr, 1, message->type, from, tag, comm, MPI_STATUS_IGNORE));
        VERIFY(message->buffer, key, BYTES);
    }
    mpitest_message_free(message);
}

/** Rank 1 acknowledges the first message a second time. */
static void say_again(void)
{
    mca_pml_umrddt_reply_t reply = {
        .magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_REPLY),
        .seq = FIRST,
        .slot = 0,
        .reply_kind = MCA_PML_UMRDDT_REPLY_ACK,
    };
    int tag = mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_REPLY, reply.slot);

    CHECK_INT(mca_pml.pml_send(&reply, sizeof(reply), &ompi_mpi_byte.dt, 0, tag,
                               MCA_PML_BASE_SEND_STANDARD, &ompi_mpi_comm_world.comm),
              OMPI_SUCCESS);
}

static void stale(uint64_t *state)
{
    uint64_t key = mpitest_random(state);
    pvars_t before, after, since;

    if (PVARS_MAX != pvars_open()) {
        mpitest_skip("umrddt is not there");
    }
    pvars_read(&before);
    message(0, 1, key);
    if (1 == mpitest.rank) {
        say_again();
    }
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    message(0, 2, key + 1);
    message(1, 3, key + 2);
    pvars_read(&after);
    pvars_subtract(&after, &before, &since);
    CHECK_INT(since.value[PVARS_STALE_REPLIES], 0 == mpitest.rank ? 1 : 0);
    CHECK_INT(since.value[PVARS_HANDLED_SENDS], 0 == mpitest.rank ? 2 : 1);
    pvars_close();
}

/* Requests for invalid chunks, of a message of BYTES bytes. */
typedef struct wrong_t {
    uint32_t what, key_count;
    uint64_t total, chunk, start;
} wrong_t;

static const wrong_t wrongs[] = {
    {0, 0, BYTES, 4096, 0},
    {MCA_PML_UMRDDT_BIT_UMR, 0, BYTES, 4096, 0},
    {MCA_PML_UMRDDT_BITS_PACK, 0, BYTES, 4096, 0},
    {MCA_PML_UMRDDT_BIT_PACK_GDR, 0, BYTES, 4096, 0},
    {MCA_PML_UMRDDT_BIT_PACK_GDR, 1, BYTES, 4096, 2},
    {MCA_PML_UMRDDT_BIT_PACK_GDR, 2, BYTES, 4096, 2},
    {MCA_PML_UMRDDT_BIT_PACK_GDR, UINT32_MAX, BYTES, 4096, 0},
    {MCA_PML_UMRDDT_BIT_PACK_GDR, 1, 0, 4096, 0},
    {MCA_PML_UMRDDT_BIT_PACK_GDR, 1, BYTES + 1, 4096, 0},
    {MCA_PML_UMRDDT_BIT_PACK_GDR, 1, BYTES, 0, 0},
    {MCA_PML_UMRDDT_BIT_PACK_GDR, 1, BYTES, 1023, 0},
    {MCA_PML_UMRDDT_BIT_PACK_GDR, 1, BYTES, UINT64_MAX, 1},
};

/**
 * Rank 1 requests invalid chunks before the message arrives. The sender sends a NACK. The receiver,
 * which has requested the right chunks meanwhile, cancels them and gets the message by the base
 * PML.
 */
static void hostile(uint64_t *state)
{
    uint64_t key = mpitest_random(state);
    mpitest_message_t *message = mpitest_message(MPITEST_COARSE, BYTES, 1);
    size_t count = sizeof(wrongs) / sizeof(wrongs[0]), i;
    pvars_t before, after, since;
    MPI_Request request;

    if (PVARS_MAX != pvars_open()) {
        mpitest_skip("umrddt is not there");
    }
    pvars_read(&before);
    for (i = 0; i < count; ++i) {
        struct {
            mca_pml_umrddt_reply_t reply;
            mca_pml_umrddt_wire_key_t key;
        } bad = {.reply = {.magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_REPLY),
                           .seq = FIRST + i,
                           .slot = 0,
                           .reply_kind = MCA_PML_UMRDDT_REPLY_CTS_PACK,
                           .what = wrongs[i].what,
                           .key_count = wrongs[i].key_count,
                           .total = wrongs[i].total,
                           .chunk = wrongs[i].chunk,
                           .start = wrongs[i].start},
                 .key = {.addr = 4096, .length = 4096}};

        if (1 == mpitest.rank) {
            mpitest_clear(message->buffer);
            MPI_OK(MPI_Irecv(message->addr, 1, message->type, 0, 1, MPI_COMM_WORLD, &request));
            CHECK_INT(mca_pml.pml_send(&bad, sizeof(bad), &ompi_mpi_byte.dt, 0,
                                       mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_REPLY, 0),
                                       MCA_PML_BASE_SEND_STANDARD, &ompi_mpi_comm_world.comm),
                      OMPI_SUCCESS);
        }
        MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
        if (0 == mpitest.rank) {
            mpitest_fill(message->buffer, key + i);
            MPI_OK(MPI_Send(message->addr, 1, message->type, 1, 1, MPI_COMM_WORLD));
        } else {
            MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            VERIFY(message->buffer, key + i, BYTES);
        }
    }
    pvars_read(&after);
    pvars_subtract(&after, &before, &since);
    CHECK_INT(since.value[PVARS_PROTOCOL_ERRORS], 0 == mpitest.rank ? (long long) count : 0);
    CHECK_INT(since.value[PVARS_FALLBACK_SENDS], 0 == mpitest.rank ? (long long) count : 0);
    CHECK_INT(since.value[PVARS_FALLBACK_RECVS], 1 == mpitest.rank ? (long long) count : 0);
    mpitest_message_free(message);
    pvars_close();
}

static const mpitest_part_t parts[] = {{"stale", stale}, {NULL, NULL}};
static const mpitest_part_t packed[] = {{"hostile", hostile}, {NULL, NULL}};

int main(int argc, char **argv)
{
    mpitest_init(&argc, &argv, "stale", 1, MPI_THREAD_SINGLE);
    if (2 != mpitest.size) {
        mpitest_skip("needs two ranks");
    }
    mpitest_run(0 == strcmp(mpitest.mode, "hostile") ? packed : parts);
    return mpitest_finish();
}
