/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "byhca.h"

#include "pvars.h"

mpitest_message_t *byhca_end(int side)
{
    return mpitest_message(0 == side ? MPITEST_COARSE : MPITEST_FINE, BYHCA_BYTES, 1);
}

void byhca_fill(mpitest_message_t *end, bool send, uint64_t key)
{
    if (send) {
        mpitest_fill(end->buffer, key);
    } else {
        mpitest_clear(end->buffer);
    }
}

bool byhca_message(const byhca_t *pair, int from, uint64_t key)
{
    mpitest_message_t *end = pair->end;
    pvars_t before, after, sent;
    int by_hca;

    byhca_fill(end, from == pair->side, key);
    if (from == pair->side) {
        pvars_read(&before);
        MPI_OK(MPI_Send(end->addr, 1, end->type, pair->peer, 1, pair->comm));
        pvars_read(&after);
        pvars_subtract(&after, &before, &sent);
        by_hca = 0 == sent.value[PVARS_FALLBACK_SENDS]
                 && 0 < sent.value[PVARS_SENDS_UMR] + sent.value[PVARS_SENDS_DIRECT]
                            + sent.value[PVARS_SENDS_PACK_GDR];
        MPI_OK(MPI_Send(&by_hca, 1, MPI_INT, pair->peer, 2, pair->comm));
    } else {
        MPI_OK(MPI_Recv(end->addr, 1, end->type, pair->peer, 1, pair->comm, MPI_STATUS_IGNORE));
        VERIFY(end->buffer, key, BYHCA_BYTES);
        MPI_OK(MPI_Recv(&by_hca, 1, MPI_INT, pair->peer, 2, pair->comm, MPI_STATUS_IGNORE));
    }
    mpitest_alive();
    return 0 != by_hca;
}

long byhca_until(const byhca_t *pair, uint64_t key, long most)
{
    long lost = 0;
    bool there = false, back = false;

    while (lost <= most && !(there && back)) {
        there = byhca_message(pair, 0, key + 2 * (uint64_t) lost);
        back = byhca_message(pair, 1, key + 2 * (uint64_t) lost + 1);
        lost += (there ? 0 : 1) + (back ? 0 : 1);
    }
    return lost;
}
