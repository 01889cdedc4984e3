/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "stress_thread.h"

#include <string.h>

const stress_message_t *stress_send_peek(const stress_thread_t *thread)
{
    return thread->outgoing_next < thread->outgoing_count
               ? thread->outgoing[thread->outgoing_next].message
               : NULL;
}

/* Make a persistent request, or start a nonblocking send. */
static void start(stress_way_t way, void *address, int count, MPI_Datatype type,
                  const stress_message_t *message, MPI_Request *request)
{
    typedef int (*start_fn_t)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
    static const start_fn_t functions[STRESS_WAYS] = {
        [STRESS_ISEND] = MPI_Isend,           [STRESS_ISSEND] = MPI_Issend,
        [STRESS_IBSEND] = MPI_Ibsend,         [STRESS_IRSEND] = MPI_Irsend,
        [STRESS_SEND_INIT] = MPI_Send_init,   [STRESS_SSEND_INIT] = MPI_Ssend_init,
        [STRESS_BSEND_INIT] = MPI_Bsend_init, [STRESS_RSEND_INIT] = MPI_Rsend_init,
    };

    MPI_OK(functions[way](address, count, type, message->dest, message->tag,
                          stress_comm(message->comm), request));
}

static void blocking(stress_way_t way, void *address, int count, MPI_Datatype type,
                     const stress_message_t *message)
{
    typedef int (*send_fn_t)(const void *, int, MPI_Datatype, int, int, MPI_Comm);
    static const send_fn_t functions[STRESS_WAYS] = {
        [STRESS_SEND] = MPI_Send,
        [STRESS_SSEND] = MPI_Ssend,
        [STRESS_BSEND] = MPI_Bsend,
        [STRESS_RSEND] = MPI_Rsend,
    };

    MPI_OK(functions[way](address, count, type, message->dest, message->tag,
                          stress_comm(message->comm)));
}

/* With the request that was kept for such messages, or one that will be kept. */
static void send_cached(stress_thread_t *thread, stress_outgoing_t *outgoing)
{
    const stress_message_t *message = outgoing->message;
    const stress_entry_t *entry = stress_entry(message->entry);
    stress_slot_t *slot;
    bool found;

    outgoing->slot = stress_slot_find(thread->sends, message->comm, message->dest, message->tag,
                                      message->entry, (int) message->way, &found);
    CHECK(0 <= outgoing->slot);
    slot = &thread->sends[outgoing->slot];
    if (!found) {
        slot->comm = message->comm;
        slot->peer = message->dest;
        slot->tag = message->tag;
        slot->entry = message->entry;
        slot->way = (int) message->way;
        slot->buffer = mpitest_buffer(entry->map);
        start(message->way, slot->buffer->addr, entry->count, entry->type, message, &slot->request);
    } else {
        ++thread->counters[STRESS_COUNT_RESTARTED];
    }
    slot->busy = true;
    outgoing->buffer = slot->buffer;
    mpitest_fill(slot->buffer, message->key);
    MPI_OK(MPI_Start(&slot->request));
    stress_active_add(thread, slot->request, NULL, outgoing);
}

void stress_send_next(stress_thread_t *thread)
{
    stress_outgoing_t *outgoing = &thread->outgoing[thread->outgoing_next++];
    const stress_message_t *message = outgoing->message;
    const stress_entry_t *entry = stress_entry(message->entry);
    MPI_Datatype type = entry->type;
    MPI_Request request;

    ++thread->step;
    ++thread->counters[STRESS_COUNT_SENDS];
    thread->counters[STRESS_COUNT_BYTES] += message->bytes;
    if (message->kept) {
        send_cached(thread, outgoing);
        return;
    }
    outgoing->buffer = mpitest_buffer(entry->map);
    mpitest_fill(outgoing->buffer, message->key);
    if (stress_way_blocks(message->way) || STRESS_BSEND == message->way) {
        blocking(message->way, outgoing->buffer->addr, entry->count, type, message);
        outgoing->done = true;
        return;
    }
    if (message->own_type) {
        MPI_OK(MPI_Type_dup(entry->type, &type));
    }
    start(message->way, outgoing->buffer->addr, entry->count, type, message, &request);
    if (stress_way_persistent(message->way)) {
        MPI_OK(MPI_Start(&request));
    }
    if (message->own_type) {
        MPI_OK(MPI_Type_free(&type));
    }
    if (message->freed) {
        MPI_OK(MPI_Request_free(&request));
        CHECK(MPI_REQUEST_NULL == request);
        ++thread->counters[STRESS_COUNT_FREED];
        outgoing->done = true;
        return;
    }
    stress_active_add(thread, request, NULL, outgoing);
}

void stress_send_verify(stress_thread_t *thread)
{
    int i;

    for (i = 0; i < thread->outgoing_count; ++i) {
        stress_outgoing_t *outgoing = &thread->outgoing[i];

        CHECK(outgoing->done);
        stress_break_send(thread, outgoing);
        VERIFY(outgoing->buffer, outgoing->message->key, outgoing->message->bytes);
        if (0 <= outgoing->slot) {
            thread->sends[outgoing->slot].busy = false;
        } else {
            /* of a freed one, too: all threads have synchronised since its receiver had it, which
             * completes it */
            mpitest_buffer_free(outgoing->buffer);
        }
        outgoing->buffer = NULL;
    }
}
