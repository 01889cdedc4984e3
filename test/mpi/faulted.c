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
 * Messages while something goes wrong in the software card or the software GPUs: each arrives,
 * whole, whatever way it takes, or both ends have an error; nobody hangs, no byte beside the
 * receive is written, and what comes behind arrives.
 *
 * UMRDDT_TEST_FAULTS is the plan (test/connectx/README.md). It counts from the first message of a
 * phase: --mode first, of all; --mode again, of one that was sent before. --mode gpu: between
 * memory of GPUs. Without --mode error no message may fail. How each arrived is printed:
 *
 *     faulted: PLAN, again: 0>1 umr umr>host host ... 1>0 umr ...
 *
 * Behind '>' stands that the host PML brought it after all, and behind '!' whose calls had errors:
 * sender's, receiver's.
 */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layouts.h"
#include "mpitest.h"
#include "pvars.h"

enum {
    BYTES = 60000,
    MOST = 64
};

static bool has(const char *word)
{
    return NULL != strstr(mpitest.mode, word);
}

/* Have both models count from here (NULL: go on counting), or let things be well for now. What this
 * program asks of the driver itself is not to fail. @return false: there is none of the models */
static bool set_plan(const char *plan, int on)
{
    void *gpus = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *found[2] = {dlsym(RTLD_DEFAULT, "umrddt_sim_faults"),
                      NULL == gpus ? NULL : dlsym(gpus, "umrddt_gpu_faults")};

    for (int i = 0; i < 2; ++i) {
        int (*set)(const char *, int);

        memcpy(&set, &found[i], sizeof(set)); /* (a function is no object) */
        CHECK(NULL == set || 0 <= set(plan, on));
    }
    if (NULL != gpus) {
        (void) dlclose(gpus);
    }
    return NULL != found[0] || NULL != found[1];
}

/* This rank's end of all messages. */
static mpitest_message_t *end_new(gpu_kind_t kind)
{
    mpitest_message_t *message = calloc(1, sizeof(*message));

    CHECK(NULL != message);
    message->bytes = BYTES;
    message->type = mpitest_type(0 == mpitest.rank ? MPITEST_COARSE : MPITEST_FINE, BYTES, 1);
    message->map = mpitest_map(message->type, 1);
    message->buffer = mpitest_buffer_of(message->map, kind);
    message->addr = message->buffer->addr;
    return message;
}

/* One message; adds how it came to text. @return false: it failed */
static bool message(mpitest_message_t *end, int from, uint64_t key, bool may_fail, char *text,
                    size_t room)
{
    pvars_t before, after, sent;
    char how[64];
    int rc, errors[2];

    if (from == mpitest.rank) {
        mpitest_fill(end->buffer, key);
    } else {
        mpitest_clear(end->buffer);
    }
    pvars_read(&before);
    (void) set_plan(NULL, 1);
    if (from == mpitest.rank) {
        rc = MPI_Send(end->addr, 1, end->type, 1 - from, 1, MPI_COMM_WORLD);
    } else {
        rc = MPI_Recv(end->addr, 1, end->type, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    (void) set_plan(NULL, 0);
    pvars_read(&after);
    pvars_subtract(&after, &before, &sent);
    if (from != mpitest.rank && MPI_SUCCESS == rc) {
        VERIFY(end->buffer, key, BYTES);
    }
    errors[mpitest.rank] = MPI_SUCCESS != rc;
    MPI_OK(MPI_Bcast(&errors[0], 1, MPI_INT, 0, MPI_COMM_WORLD));
    MPI_OK(MPI_Bcast(&errors[1], 1, MPI_INT, 1, MPI_COMM_WORLD));
    snprintf(how, sizeof(how), " %s%s%s%s%s", pvars_way(&sent),
             0 < sent.value[PVARS_FALLBACK_SENDS] ? ">host" : "", errors[0] || errors[1] ? "!" : "",
             errors[from] ? "s" : "", errors[1 - from] ? "r" : "");
    MPI_OK(MPI_Bcast(how, sizeof(how), MPI_CHAR, from, MPI_COMM_WORLD));
    snprintf(text + strlen(text), room - strlen(text), "%s", how);
    if (!may_fail && (errors[0] || errors[1])) {
        mpitest_fail(__FILE__, __LINE__, "a message from rank %d failed:%s", from, text);
    }
    /* a sender may be through before its receiver finds that it cannot take what came */
    CHECK(!errors[from] || errors[1 - from]);
    return !errors[0] && !errors[1];
}

/* There and back, count times. The first that may fail and does is the last one: its context is
 * spoiled, and its memory with it. */
static void messages(mpitest_message_t *end, long count, uint64_t key, bool may_fail, char *text,
                     size_t room)
{
    for (int from = 0; from < 2; ++from) {
        snprintf(text + strlen(text), room - strlen(text), " %d>%d", from, 1 - from);
        for (long i = 0; i < count; ++i) {
            if (!message(end, from, key + (uint64_t) (100 * i + from), may_fail, text, room)) {
                return;
            }
            mpitest_alive();
        }
    }
}

int main(int argc, char **argv)
{
    const char *plan = getenv("UMRDDT_TEST_FAULTS");
    char text[2048] = "", rest[2048] = "";
    mpitest_message_t *end;
    pvars_t none;

    mpitest_init(&argc, &argv, "faulted", 5, MPI_THREAD_SINGLE);
    CHECK(NULL != plan && 2 == mpitest.size);
    if (PVARS_MAX != pvars_open()) {
        mpitest_skip("umrddt is not there");
    }
    pvars_read(&none);
    MPI_OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    if (has("gpu")) {
        gpu_begin_all();
    }
    if (!set_plan("", 0)) {
        mpitest_skip("only the software card and the software GPUs fail on demand");
    }
    end = end_new(has("gpu") ? GPU_DEVICE : GPU_HOST);
    if (has("again")) {
        messages(end, 3, 7, false, rest, sizeof(rest));
    }
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    (void) set_plan(plan, 0);
    messages(end, mpitest.ops, mpitest.seed, has("error"), text, sizeof(text));
    (void) set_plan("", 0);
    if (0 == mpitest.rank) {
        printf("faulted: %s, %s:%s\n", plan, mpitest.mode, text);
        fflush(stdout);
    }
    if (has("error")) {
        end = end_new(GPU_HOST); /* (the other one cannot even be freed) */
    }
    messages(end, 3, 3, false, rest, sizeof(rest));
    mpitest_message_free(end);
    pvars_close();
    return mpitest_finish();
}
