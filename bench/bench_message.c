/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <mpi.h>

#include "bench_message.h"
#include "bench_pvars.h"
#include "bench_stream.h"
#include "bench_util.h"
#include "bench_verify.h"
#include "layouts.h"

#define TAG 5

/* Messages before those that count, and those. */
#define WARM_UPS 4
#define MESSAGES 64

/* Looks that find nothing, for each message. */
#define IDLE_LOOKS 8

/* Microseconds after which the HCA has completed its work. */
#define COMPLETION_US 10000

/* A message that needs more polls than this for one step is not carried by umrddt. */
#define MANY_LOOKS 10000

/* The steps of a message, in turns. */
enum {
    STEP_POST,  /* receiver: posts the receive */
    STEP_START, /* sender: sends the envelope */
    STEP_MATCH, /* receiver: finds it and answers */
    STEP_WRITE, /* sender: finds the answer and writes */
    STEP_FIN,   /* receiver: finds that it was written */
    STEP_END,   /* sender: does so, too */
    STEPS
};

typedef struct ends_t {
    MPI_Comm comm;
    int rank;
    bench_layout_t layout;
    bench_buffer_t buffer;
    volatile unsigned *turn; /* of the two processes; the number of the next step */
    bench_pvars_t pvars;
    uint64_t looks[STEPS];
    MPI_Request request;
    int done;
} ends_t;

static void await_turn(const ends_t *ends, unsigned turn)
{
    while (turn != __atomic_load_n(ends->turn, __ATOMIC_ACQUIRE)) {
        usleep(100);
    }
}

static void next_turn(const ends_t *ends, unsigned turn)
{
    __atomic_store_n(ends->turn, turn + 1, __ATOMIC_RELEASE);
}

/*
 * The functions that callgrind counts by name: the calls of an application. Each is called for one
 * message, and contains no synchronisation of the turns.
 */
#define COUNTED __attribute__((noinline, noclone))

COUNTED void message_send_start(ends_t *ends);
COUNTED void message_send_look(ends_t *ends);
COUNTED void message_recv_post(ends_t *ends);
COUNTED void message_recv_look(ends_t *ends);
COUNTED void message_idle_look(ends_t *ends);

COUNTED void message_send_start(ends_t *ends)
{
    MPI_Isend(bench_buffer_address(&ends->buffer), ends->layout.send.count, ends->layout.send.type,
              1, TAG, ends->comm, &ends->request);
}

COUNTED void message_send_look(ends_t *ends)
{
    MPI_Test(&ends->request, &ends->done, MPI_STATUS_IGNORE);
}

COUNTED void message_recv_post(ends_t *ends)
{
    MPI_Irecv(bench_buffer_address(&ends->buffer), ends->layout.recv.count, ends->layout.recv.type,
              0, TAG, ends->comm, &ends->request);
}

COUNTED void message_recv_look(ends_t *ends)
{
    MPI_Test(&ends->request, &ends->done, MPI_STATUS_IGNORE);
}

COUNTED void message_idle_look(ends_t *ends)
{
    MPI_Test(&ends->request, &ends->done, MPI_STATUS_IGNORE);
}

static uint64_t counter(ends_t *ends, int which)
{
    uint64_t values[BENCH_PVAR_COUNT];

    bench_pvars_read(&ends->pvars, values);
    return values[which];
}

/* Look until the counter has grown, or (with none) until the message is over. */
static void look(ends_t *ends, int step, int which, bool counted)
{
    uint64_t before = 0 <= which ? counter(ends, which) : 0;
    int looks = 0;

    do {
        if (!counted) {
            MPI_Test(&ends->request, &ends->done, MPI_STATUS_IGNORE);
        } else if (0 == ends->rank) {
            message_send_look(ends);
        } else {
            message_recv_look(ends);
        }
        if (MANY_LOOKS < ++looks) {
            bench_fatal("message_instructions: umrddt does not carry this message in one round");
        }
    } while (0 <= which ? before == counter(ends, which) : !ends->done);
    ends->looks[step] += counted ? (uint64_t) looks : 0;
}

/* Nothing can be found now: it is the other one's turn after this. */
static void look_idly(ends_t *ends, bool counted)
{
    int i;

    for (i = 0; counted && i < IDLE_LOOKS; ++i) {
        message_idle_look(ends);
    }
}

static void send_one(ends_t *ends, unsigned turn, bool counted)
{
    await_turn(ends, turn + STEP_START);
    if (counted) {
        message_send_start(ends);
    } else {
        MPI_Isend(bench_buffer_address(&ends->buffer), ends->layout.send.count,
                  ends->layout.send.type, 1, TAG, ends->comm, &ends->request);
    }
    look_idly(ends, counted);
    next_turn(ends, turn + STEP_START);

    await_turn(ends, turn + STEP_WRITE);
    look(ends, STEP_WRITE, BENCH_PVAR_WRITES_POSTED, counted);
    next_turn(ends, turn + STEP_WRITE);

    await_turn(ends, turn + STEP_END);
    usleep(COMPLETION_US);
    look(ends, STEP_END, -1, counted);
    next_turn(ends, turn + STEP_END);
}

static void receive_one(ends_t *ends, unsigned turn, bool counted)
{
    await_turn(ends, turn + STEP_POST);
    if (counted) {
        message_recv_post(ends);
    } else {
        MPI_Irecv(bench_buffer_address(&ends->buffer), ends->layout.recv.count,
                  ends->layout.recv.type, 0, TAG, ends->comm, &ends->request);
    }
    next_turn(ends, turn + STEP_POST);

    await_turn(ends, turn + STEP_MATCH);
    look(ends, STEP_MATCH, BENCH_PVAR_ROUNDS, counted);
    look_idly(ends, counted);
    next_turn(ends, turn + STEP_MATCH);

    await_turn(ends, turn + STEP_FIN);
    usleep(COMPLETION_US);
    look(ends, STEP_FIN, -1, counted);
    next_turn(ends, turn + STEP_FIN);
}

static void open_turns(ends_t *ends, const char *path)
{
    int file = open(path, O_RDWR);

    ends->turn = -1 == file
                     ? MAP_FAILED
                     : mmap(NULL, sizeof(*ends->turn), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (MAP_FAILED == (void *) ends->turn) {
        bench_fatal("message_instructions: %s cannot be mapped", path);
    }
    close(file);
}

/* The messages, and the check of the receive buffer after the last one. */
static void run(ends_t *ends)
{
    const bench_side_t *side = 0 == ends->rank ? &ends->layout.send : &ends->layout.recv;
    unsigned char *base = bench_stream_base(side->bytes, 0), *stream = bench_alloc(side->bytes);
    bench_wrong_t wrong;
    unsigned i;

    bench_stream_make(base, side->bytes, 0 == ends->rank ? 1 : 0, stream);
    bench_buffer_create(&ends->buffer, side, 0 == ends->rank ? BENCH_GUARD_SEND : BENCH_GUARD_RECV,
                        false);
    bench_buffer_set_data(&ends->buffer, stream);
    MPI_Barrier(ends->comm);
    bench_count_begin();
    for (i = 0; i < WARM_UPS + MESSAGES; ++i) {
        if (0 == ends->rank) {
            send_one(ends, i * STEPS, WARM_UPS <= i);
        } else {
            receive_one(ends, i * STEPS, WARM_UPS <= i);
        }
    }
    MPI_Barrier(ends->comm);
    bench_stream_make(base, side->bytes, 1, stream);
    if (!bench_buffer_check_data(&ends->buffer, stream, &wrong)
        || !bench_buffer_check_gaps(&ends->buffer, true, &wrong)) {
        bench_fatal("message_instructions: wrong bytes on rank %d", ends->rank);
    }
    bench_buffer_destroy(&ends->buffer);
    free(stream);
    free(base);
}

/* --message-job LAYOUT FILE */
int bench_message_job_main(int argc, char **argv)
{
    ends_t ends;
    size_t i;
    int size;

    MPI_Init(&argc, &argv);
    memset(&ends, 0, sizeof(ends));
    ends.comm = MPI_COMM_WORLD;
    MPI_Comm_rank(ends.comm, &ends.rank);
    MPI_Comm_size(ends.comm, &size);
    if (4 != argc || 2 != size) {
        bench_fatal("%s is for jobs that message_instructions starts", BENCH_MESSAGE_JOB);
    }
    i = bench_layout_find(argv[2]);
    if (bench_layout_count == i) {
        bench_fatal("message_instructions: there is no layout '%s'", argv[2]);
    }
    bench_layout_create(&bench_layout_table[i], &ends.layout);
    bench_pvars_open(&ends.pvars);
    open_turns(&ends, argv[3]);
    run(&ends);
    printf("message-%s %d %d", 0 == ends.rank ? "send" : "recv", MESSAGES, MESSAGES * IDLE_LOOKS);
    for (i = 0; i < STEPS; ++i) {
        printf(" %llu", (unsigned long long) ends.looks[i]);
    }
    printf("\n");
    munmap((void *) ends.turn, sizeof(*ends.turn));
    bench_pvars_close(&ends.pvars);
    bench_layout_destroy(&ends.layout);
    MPI_Finalize();
    return 0;
}
