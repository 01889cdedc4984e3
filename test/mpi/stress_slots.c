/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "stress_thread.h"

int stress_slot_find(stress_slot_t *slots, int comm, int peer, int tag, int entry, int way,
                     bool *found)
{
    int free_slot = -1, i;

    for (i = 0; i < STRESS_SLOTS; ++i) {
        if (MPI_REQUEST_NULL == slots[i].request) {
            free_slot = i;
        } else if (!slots[i].busy && comm == slots[i].comm && peer == slots[i].peer
                   && tag == slots[i].tag && entry == slots[i].entry && way == slots[i].way) {
            *found = true;
            return i;
        }
    }
    *found = false;
    return free_slot;
}

int stress_slot_receive(stress_slot_t *slots, const stress_posting_t *posting)
{
    const stress_lane_t *lane = posting->lane;
    int i;

    for (i = 0; i < STRESS_SLOTS; ++i) {
        const stress_entry_t *entry = stress_entry(slots[i].entry);

        if (MPI_REQUEST_NULL != slots[i].request && !slots[i].busy && posting->comm == slots[i].comm
            && posting->source == slots[i].peer && posting->tag == slots[i].tag
            && entry->family == lane->family
            && entry->bytes >= stress_lane_least(lane, posting->source, posting->tag)) {
            return i;
        }
    }
    return -1;
}

static void free_slot(stress_slot_t *slot)
{
    if (MPI_REQUEST_NULL != slot->request) {
        MPI_OK(MPI_Request_free(&slot->request));
    }
    if (NULL != slot->buffer) {
        mpitest_buffer_free(slot->buffer);
        slot->buffer = NULL;
    }
}

void stress_slots_free(stress_thread_t *thread)
{
    int i;

    for (i = 0; i < STRESS_SLOTS; ++i) {
        CHECK(!thread->sends[i].busy && !thread->receives[i].busy);
        free_slot(&thread->sends[i]);
        free_slot(&thread->receives[i]);
    }
}
