/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The info keys mpi_communication_pattern and mpi_assert_memory_alloc_kinds, on a communicator
 * (MPI_Comm_dup_with_info, MPI_Comm_set_info) and on a Session (MPI 4): the messages arrive with
 * any value, and the performance variables show the avoided queries. Modes: "check",
 * pml_umrddt_check_pattern is set or it is a debug build; "late", one rank sets no key.
 */

#include "layouts.h"
#include "mpitest.h"
#include "pvars.h"

#include <stdio.h>
#include <string.h>

#define TIMES 4
#define BYTES 20000
/* What begins so is a value of mpi_assert_memory_alloc_kinds. */
#define KINDS "kinds:"

static bool have, check, late;

typedef enum source_t {
    SOURCE_DUP,
    SOURCE_SET,
    SOURCE_SESSION
} source_t;

static void fill_info(MPI_Info info, const char *value)
{
    if (NULL != value && !(late && 1 == mpitest.rank)) {
        if (0 == strncmp(value, KINDS, strlen(KINDS))) {
            MPI_OK(MPI_Info_set(info, "mpi_assert_memory_alloc_kinds", value + strlen(KINDS)));
        } else {
            MPI_OK(MPI_Info_set(info, "mpi_communication_pattern", value));
        }
    }
}

/* TIMES messages in each direction: a vector, and a contiguous one, which is never queried. */
static void exchange(MPI_Comm comm, uint64_t key)
{
    mpitest_message_t *pieces = mpitest_message(MPITEST_FINE, BYTES, 1);
    mpitest_message_t *flat = mpitest_message(MPITEST_CONTIGUOUS, BYTES, 1);
    mpitest_message_t *messages[2] = {pieces, flat};
    int me, peer, i, k;

    MPI_OK(MPI_Comm_rank(comm, &me));
    peer = 1 - me;
    for (i = 0; i < TIMES; ++i) {
        for (k = 0; k < 2; ++k) {
            mpitest_message_t *in =
                mpitest_message(0 == k ? MPITEST_COARSE : MPITEST_CONTIGUOUS, BYTES, 1);
            uint64_t mine = mpitest_mix(key, (uint64_t) me, (uint64_t) (2 * i + k));
            uint64_t other = mpitest_mix(key, (uint64_t) peer, (uint64_t) (2 * i + k));
            MPI_Request request;

            mpitest_fill(messages[k]->buffer, mine);
            MPI_OK(MPI_Irecv(in->addr, 1, in->type, peer, 3, comm, &request));
            MPI_OK(MPI_Send(messages[k]->addr, 1, messages[k]->type, peer, 3, comm));
            MPI_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            VERIFY(in->buffer, other, BYTES);
            mpitest_message_free(in);
        }
    }
    mpitest_message_free(pieces);
    mpitest_message_free(flat);
}

static bool is_pattern(const char *value)
{
    static const char *const patterns[] = {"MPI_CPU_TO_CPU",   "MPI_GPU_TO_GPU",
                                           "MPI_CPU_TO_GPU",   "MPI_GPU_TO_CPU",
                                           KINDS "system",     KINDS "system,mpi:alloc_mem , mpi",
                                           KINDS "cuda:device"};
    size_t i;

    for (i = 0; NULL != value && i < sizeof(patterns) / sizeof(patterns[0]); ++i) {
        if (0 == strcmp(patterns[i], value)) {
            return true;
        }
    }
    return false;
}

/* Expected variables of one exchange with this value of the key. */
static void check_result(const pvars_t *seen, const char *value)
{
    /* System memory of this process, the other one's may be any: messages are handled, without
     * queries. */
    const bool own = is_pattern(value) && 0 == strncmp(value, KINDS "system", 12);
    const bool keyed = is_pattern(value) && !(late && 1 == mpitest.rank);
    /* if assertions are checked, those of GPU memory are false here, and umrddt handles the
     * messages */
    bool defers = is_pattern(value) && !own && (!check || 0 == strcmp(value, "MPI_CPU_TO_CPU"));
    bool mine = defers && !(late && 1 == mpitest.rank);
    bool peers = defers && !(late && 0 == mpitest.rank);
    const uint64_t *got = seen->value;

    if (!have) {
        return;
    }
    CHECK_INT(got[PVARS_HANDLED_SENDS], mine ? 0 : TIMES);
    CHECK_INT(got[PVARS_HANDLED_RECVS], peers ? 0 : TIMES);
    CHECK_INT(got[PVARS_PASSED_MEMORY], mine ? TIMES : 0);
    CHECK_INT(got[PVARS_FALLBACK_SENDS] + got[PVARS_FALLBACK_RECVS], 0);
    /* One query for each send that is not contiguous, and for each receive that umrddt completes;
     * none with a pattern, unless it is checked. */
    if (check) {
        CHECK_INT(got[PVARS_MEMORY_QUERIES], TIMES + (peers ? 0 : TIMES));
    } else {
        /* none for the sends and receives of a process with a key */
        CHECK_INT(got[PVARS_MEMORY_QUERIES], keyed ? 0 : peers ? TIMES : 2 * TIMES);
    }
}

static void one_case(source_t source, const char *value)
{
    MPI_Comm comm;
    MPI_Info info;
    pvars_t before, after, seen;

    ++mpitest.step;
    MPI_OK(MPI_Info_create(&info));
    fill_info(info, value);
    if (SOURCE_SESSION == source) {
#if 4 <= MPI_VERSION
        MPI_Session session;
        MPI_Group group;

        MPI_OK(MPI_Session_init(info, MPI_ERRORS_ARE_FATAL, &session));
        MPI_OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
        MPI_OK(MPI_Comm_create_from_group(group, "pattern", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL,
                                          &comm));
        MPI_OK(MPI_Group_free(&group));
        pvars_read(&before);
        exchange(comm, mpitest_mix(mpitest.seed, (uint64_t) mpitest.step, 0));
        pvars_read(&after);
        MPI_OK(MPI_Comm_free(&comm));
        MPI_OK(MPI_Session_finalize(&session));
#else
        mpitest_fail(__FILE__, __LINE__, "there are no Sessions");
#endif
    } else {
        MPI_OK(MPI_Comm_dup_with_info(MPI_COMM_WORLD, SOURCE_DUP == source ? info : MPI_INFO_NULL,
                                      &comm));
        if (SOURCE_SET == source) {
            MPI_OK(MPI_Comm_set_info(comm, info));
        }
        pvars_read(&before);
        exchange(comm, mpitest_mix(mpitest.seed, (uint64_t) mpitest.step, 0));
        pvars_read(&after);
        MPI_OK(MPI_Comm_free(&comm));
    }
    MPI_OK(MPI_Info_free(&info));
    pvars_subtract(&after, &before, &seen);
    if (mpitest.verbose) {
        printf("rank %d, source %d, %s: ", mpitest.rank, (int) source,
               NULL == value ? "no key" : value);
        pvars_print("", &seen);
    }
    check_result(&seen, value);
    /* no rank may continue before the other has read */
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    static const char *const values[] = {NULL,
                                         "MPI_CPU_TO_CPU",
                                         "MPI_GPU_TO_GPU",
                                         "MPI_CPU_TO_GPU",
                                         "MPI_GPU_TO_CPU",
                                         "MPI_CPU_TO_CP",
                                         "cpu",
                                         KINDS "system",
                                         KINDS "system,mpi:alloc_mem , mpi",
                                         KINDS "cuda:device",
                                         KINDS "system,cuda",
                                         KINDS "system,cuda:device",
                                         KINDS "cuda",
                                         KINDS "mp",
                                         KINDS ","};
    size_t i;

    mpitest_init(&argc, &argv, "pattern", 1, MPI_THREAD_SINGLE);
    if (2 != mpitest.size) {
        mpitest_skip("needs two ranks");
    }
    check = UMRDDT_ENABLE_DEBUG || mpitest_has("check");
    late = mpitest_has("late");
    have = PVARS_MAX == pvars_open() && 0 < pvars_parameter("pml_umrddt_min_size", 0)
           && !mpitest_has("nohca");
    for (i = 0; i < sizeof(values) / sizeof(values[0]); ++i) {
        one_case(SOURCE_DUP, values[i]);
        /* MPI_Comm_set_info of 4.1 stores no key that is as long */
        if (5 <= OMPI_MAJOR_VERSION || NULL == values[i]
            || 0 != strncmp(values[i], KINDS, strlen(KINDS))) {
            one_case(SOURCE_SET, values[i]);
        }
#if 4 <= MPI_VERSION
        one_case(SOURCE_SESSION, values[i]);
#endif
    }
    pvars_close();
    return mpitest_finish();
}
