/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "bycard.h"

#include "pvars.h"

mpitest_message_t *bycard_end(int side)
{
    return mpitest_message(0 == side ? MPITEST_COARSE : MPITEST_FINE, BYCARD_BYTES, 1);
}

void bycard_fill(mpitest_message_t *end, bool send, uint64_t key)
{
    if (send) {
        mpitest_fill(end->buffer, key);
    } else {
        mpitest_clear(end->buffer);
    }
}

bool bycard_message(const bycard_t *pair, int from, uint64_t key)
{
    mpitest_message_t *end = pair->end;
    pvars_t before, after, sent;
    int by_card;

    bycard_fill(end, from == pair->side, key);
    if (from == pair->side) {
        pvars_read(&before);
        MPI_OK(MPI_Send(end->addr, 1, end->type, pair->peer, 1, pair->comm));
        pvars_read(&after);
        pvars_subtract(&after, &before, &sent);
        by_card = 0 == sent.value[PVARS_FALLBACK_SENDS]
                  && 0 < sent.value[PVARS_SENDS_UMR] + sent.value[PVARS_SENDS_DIRECT]
                             + sent.value[PVARS_SENDS_PACK_GDR];
        MPI_OK(MPI_Send(&by_card, 1, MPI_INT, pair->peer, 2, pair->comm));
    } else {
        MPI_OK(MPI_Recv(end->addr, 1, end->type, pair->peer, 1, pair->comm, MPI_STATUS_IGNORE));
        VERIFY(end->buffer, key, BYCARD_BYTES);
        MPI_OK(MPI_Recv(&by_card, 1, MPI_INT, pair->peer, 2, pair->comm, MPI_STATUS_IGNORE));
    }
    mpitest_alive();
    return 0 != by_card;
}

long bycard_until(const bycard_t *pair, uint64_t key, long most)
{
    long lost = 0;
    bool there = false, back = false;

    while (lost <= most && !(there && back)) {
        there = bycard_message(pair, 0, key + 2 * (uint64_t) lost);
        back = bycard_message(pair, 1, key + 2 * (uint64_t) lost + 1);
        lost += (there ? 0 : 1) + (back ? 0 : 1);
    }
    return lost;
}
