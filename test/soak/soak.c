/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Many messages of random layouts between buffers that come and go, checked byte by byte, with more
 * layouts, buffers and keys in use than the caches are allowed to have; and nothing that the
 * process holds rises. Each cycle has a set of buffers of its own, some of which are replaced on
 * the way.
 *
 * In system memory both layouts are of typegen; with UMRDDT_TEST_MEMORY of the kinds named there,
 * with the layouts of mpitest.
 */

#include "../common/typegen.h"
#include "layouts.h"
#include "soak.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    SLOTS = 40,
    MESSAGES = 100,      /* of a cycle */
    MESSAGES_SHORT = 30, /* of --mode short */
    LIFE = 12            /* one in so many gets another buffer first */
};

/* What is sent from, or received into. */
typedef struct slot_t {
    int sender;
    uint64_t key;
    typegen_side_t out, in;
    typegen_buffer_t buffer;
    unsigned char *stream;
    mpitest_message_t *message; /* where it is not typegen's */
} slot_t;

static slot_t slots[SLOTS];
static bool gpus;

static void make(slot_t *slot, typegen_rng_t *rng)
{
    typegen_options_t options = TYPEGEN_OPTIONS_DEFAULT;
    uint64_t state = typegen_next(rng);

    slot->sender = (int) typegen_below(rng, 2);
    slot->key = typegen_next(rng);
    if (gpus) {
        mpitest_kind_t kinds[2] = {mpitest_draw_kind(&state), mpitest_draw_kind(&state)};
        int bytes = 2048 + (int) typegen_below(rng, 60000);

        slot->message = mpitest_message(kinds[mpitest.rank], bytes, slot->key);
        return;
    }
    options.min_elements = 256;
    options.max_span = 1 << 20;
    typegen_pair(rng, &options, &slot->out, &slot->in);
    typegen_buffer_alloc(slot->sender == mpitest.rank ? &slot->out : &slot->in, &slot->buffer);
    slot->stream = typegen_expected(&slot->out, slot->key);
}

static void drop(slot_t *slot)
{
    if (gpus) {
        mpitest_message_free(slot->message);
        return;
    }
    free(slot->stream);
    typegen_buffer_free(&slot->buffer);
    typegen_side_free(&slot->out);
    typegen_side_free(&slot->in);
}

static void exchange_gpu(slot_t *slot, int tag)
{
    mpitest_message_t *message = slot->message;
    MPI_Status status;

    if (slot->sender == mpitest.rank) {
        mpitest_fill(message->buffer, slot->key);
        MPI_OK(MPI_Send(message->addr, 1, message->type, 1 - mpitest.rank, tag, MPI_COMM_WORLD));
        return;
    }
    mpitest_clear(message->buffer);
    MPI_OK(MPI_Recv(message->addr, 1, message->type, slot->sender, tag, MPI_COMM_WORLD, &status));
    VERIFY(message->buffer, slot->key, message->bytes);
}

static void exchange(slot_t *slot, int tag)
{
    char why[256] = "";
    MPI_Status status;

    if (gpus) {
        exchange_gpu(slot, tag);
        return;
    }
    if (slot->sender == mpitest.rank) {
        typegen_fill(&slot->buffer, slot->key);
        MPI_OK(MPI_Send(slot->buffer.address, slot->out.count, slot->out.type, 1 - mpitest.rank,
                        tag, MPI_COMM_WORLD));
        return;
    }
    typegen_fill(&slot->buffer, slot->key + 1);
    MPI_OK(MPI_Recv(slot->buffer.address, slot->in.count, slot->in.type, slot->sender, tag,
                    MPI_COMM_WORLD, &status));
    if (!typegen_verify(&slot->in, &slot->buffer, slot->key + 1, slot->stream, slot->out.size, why,
                        sizeof(why))) {
        mpitest_fail(__FILE__, __LINE__, "%s", why);
    }
    ++mpitest.checks;
}

static void cycle(typegen_rng_t *rng)
{
    int count = mpitest_has("short") ? MESSAGES_SHORT : MESSAGES;

    for (int i = 0; i < SLOTS; ++i) {
        make(&slots[i], rng);
    }
    for (int i = 0; i < count; ++i) {
        slot_t *slot = &slots[typegen_below(rng, SLOTS)];

        if (typegen_once_in(rng, LIFE)) {
            drop(slot);
            make(slot, rng);
        }
        exchange(slot, i);
    }
    for (int i = 0; i < SLOTS; ++i) {
        drop(&slots[i]);
    }
}

int main(int argc, char **argv)
{
    typegen_rng_t rng;
    long cycles;

    mpitest_init(&argc, &argv, "soak", 10, MPI_THREAD_SINGLE);
    CHECK(2 == mpitest.size);
    gpus = NULL != getenv("UMRDDT_TEST_MEMORY");
    for (cycles = 0; soak_goes_on(cycles); ++cycles) {
        mpitest.step = cycles;
        /* the same again and again: what a cycle leaves behind adds up, and nothing else does */
        typegen_seed(&rng, mpitest.seed + (uint64_t) (cycles % 4));
        cycle(&rng);
        soak_leak();
        soak_look();
    }
    soak_check(256 << 10, 0);
    return mpitest_finish();
}
