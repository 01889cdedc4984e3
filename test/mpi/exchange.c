/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "exchange.h"

#include "pvars.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

MPI_Comm exchange_comm = MPI_COMM_WORLD;

void *exchange_function(const char *library, const char *name)
{
    void *loaded = NULL == library ? NULL : dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    void *found = NULL == library  ? dlsym(RTLD_DEFAULT, name)
                  : NULL == loaded ? NULL
                                   : dlsym(loaded, name);

    if (NULL != loaded) {
        (void) dlclose(loaded);
    }
    return found;
}

int exchange_plan(const char *plan, int on)
{
    void *found[3] = {exchange_function(NULL, "umrddt_sim_faults"),
                      exchange_function(NULL, "umrddt_failing_faults"),
                      exchange_function("libcuda.so.1", "umrddt_gpu_faults")};
    int came = -1;

    for (int i = 0; i < 3; ++i) {
        int (*set)(const char *, int);

        memcpy(&set, &found[i], sizeof(set)); /* (a function is no object) */
        if (NULL != set) {
            int one = set(plan, on);

            CHECK(0 <= one);
            came = (0 > came ? 0 : came) + one;
        }
    }
    return came;
}

mpitest_message_t *exchange_end(int bytes, gpu_kind_t kind)
{
    mpitest_message_t *end = calloc(1, sizeof(*end));

    CHECK(NULL != end);
    end->bytes = bytes;
    end->type = mpitest_type(0 == mpitest.rank ? MPITEST_COARSE : MPITEST_FINE, bytes, 1);
    end->map = mpitest_map(end->type, 1);
    end->buffer = mpitest_buffer_of(end->map, kind);
    end->addr = end->buffer->addr;
    return end;
}

bool exchange(mpitest_message_t *end, int from, uint64_t key, exchange_t *seen)
{
    pvars_t before, after, sent;
    int rc, errors[2];

    if (from == mpitest.rank) {
        mpitest_fill(end->buffer, key);
    } else {
        mpitest_clear(end->buffer);
    }
    pvars_read(&before);
    (void) exchange_plan(NULL, 1);
    if (from == mpitest.rank) {
        rc = MPI_Send(end->addr, 1, end->type, 1 - from, 1, exchange_comm);
    } else {
        rc = MPI_Recv(end->addr, 1, end->type, from, 1, exchange_comm, MPI_STATUS_IGNORE);
    }
    (void) exchange_plan(NULL, 0);
    pvars_read(&after);
    pvars_subtract(&after, &before, &sent);
    if (from != mpitest.rank && MPI_SUCCESS == rc) {
        VERIFY(end->buffer, key, end->bytes);
    }
    errors[mpitest.rank] = MPI_SUCCESS != rc;
    MPI_OK(MPI_Bcast(&errors[0], 1, MPI_INT, 0, exchange_comm));
    MPI_OK(MPI_Bcast(&errors[1], 1, MPI_INT, 1, exchange_comm));
    snprintf(seen->way, sizeof(seen->way), "%s%s%s%s%s", pvars_way(&sent),
             0 < sent.value[PVARS_FALLBACK_SENDS] ? ">host" : "", errors[0] || errors[1] ? "!" : "",
             errors[from] ? "s" : "", errors[1 - from] ? "r" : "");
    MPI_OK(MPI_Bcast(seen->way, sizeof(seen->way), MPI_CHAR, from, exchange_comm));
    seen->error[0] = errors[0];
    seen->error[1] = errors[1];
    /* a sender may complete before its receiver finds that it cannot receive the data */
    CHECK(!errors[from] || errors[1 - from]);
    mpitest_alive();
    return !errors[0] && !errors[1];
}
