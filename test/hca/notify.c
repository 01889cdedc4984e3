/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The FIN of a large write goes in a write of its own: how many writes, and what the receiver gets
 * if one of them fails. UMRDDT_TEST_NOTIFY is btl_umr_notify_size.
 */

#include "harness.h"

#include <dlfcn.h>
#include <errno.h>

#include <infiniband/verbs.h>

#include "opal/mca/base/mca_base_var.h"

#define FILLER 0x2d

enum {
    WRITES = 3,
    LENGTH = 64,
    ROOM = WRITES * 2 * LENGTH,
    LIMIT = 4096 /* of notify_lengths */
};

/** One message in each direction. @return writes of this process */
static uint64_t writes_of(const opal_iov_cache_layout_t *layout, size_t room)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    uint64_t before = stats->writes_posted;
    unsigned char *area = malloc(room);
    struct side side = {area, layout, 0, SIZE_MAX};

    for (int sender = 0; sender < 2; ++sender) {
        memset(area, FILLER, room);
        if (sender == harness.rank) {
            layout_fill(area, layout, 5);
        }
        message(sender == harness.rank, &side, layout->size, 21);
        layout_check(area, room, area, layout, layout->size, 5, FILLER);
    }
    free(area);
    return stats->writes_posted - before;
}

/** MPI_T and ompi_info read the value that the user has set, 0 ("never") too. */
static void notify_value(void)
{
    const char *set = getenv("UMRDDT_TEST_NOTIFY");
    int index = mca_base_var_find("opal", "btl", "umr", "notify_size");
    const mca_base_var_storage_t *value = NULL;

    CHECK(0 <= index, "btl_umr_notify_size is not registered: %d", index);
    CHECK_RC(OPAL_SUCCESS, mca_base_var_get_value(index, &value, NULL, NULL));
    CHECK(NULL != set && (size_t) atoll(set) == value->sizetval,
          "btl_umr_notify_size is %zu, not %s", value->sizetval, set);
}

/** Below the limit one write, from it on two; of several pieces under one key too. */
static void notify_lengths(void)
{
    static const uint64_t lengths[] = {1, LIMIT - 1, LIMIT, LIMIT + 1, 10 * LIMIT};

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); ++i) {
        uint64_t expected = 1 + harness_notifications(lengths[i]);
        opal_iov_cache_layout_t *layout = layout_vector(1, lengths[i], (int64_t) lengths[i]);
        uint64_t writes = writes_of(layout, lengths[i] + 100);

        CHECK(expected == writes, "%llu bytes: %llu writes, not %llu",
              (unsigned long long) lengths[i], (unsigned long long) writes,
              (unsigned long long) expected);
        OBJ_RELEASE(layout);
        /* the same in pieces */
        layout = layout_vector(lengths[i], 1, 3);
        writes = writes_of(layout, 3 * lengths[i] + 100);
        CHECK(expected == writes || !harness.hca->caps()->tiers[MCA_BTL_UMR_STRIDED].usable,
              "%llu bytes in pieces: %llu writes, not %llu", (unsigned long long) lengths[i],
              (unsigned long long) writes, (unsigned long long) expected);
        OBJ_RELEASE(layout);
    }
}

/* ------------------------------------------------------------------------------------------- *
 * Failures. A put of WRITES writes and, with a limit of at most LENGTH, one with the FIN.
 * ------------------------------------------------------------------------------------------- */

struct attempt {
    opal_iov_cache_layout_t *layout;
    unsigned char area[ROOM];
    mca_btl_umr_memory_t *memory;
    mca_btl_umr_keyset_t *keyset;
    mca_btl_umr_key_t *remote;
    size_t count, fins;
    struct done done;
};

static void attempt_begin(struct attempt *attempt, bool send)
{
    struct side side;

    attempt->layout = layout_vector(WRITES, LENGTH, 2 * LENGTH);
    attempt->remote = NULL;
    attempt->fins = harness.fin_count;
    attempt->done.calls = 0;
    memset(attempt->area, FILLER, ROOM);
    side = (struct side){attempt->area, attempt->layout, LENGTH, SIZE_MAX};
    if (send) {
        layout_fill(attempt->area, attempt->layout, 2);
    }
    attempt->keyset = keyset_of(send ? MCA_BTL_UMR_LOCAL : MCA_BTL_UMR_REMOTE, &side,
                                attempt->layout->size, &attempt->memory);
    if (send) {
        attempt->remote = keys_receive(&attempt->count);
        CHECK(WRITES == attempt->count, "%zu keys", attempt->count);
    } else {
        CHECK_RC(OPAL_SUCCESS, harness.hca->fin_reserve(harness.endpoint));
        keys_send(attempt->keyset);
    }
}

/** The sender's put. @return its status */
static int attempt_put(struct attempt *attempt)
{
    uint32_t fin = 31;

    CHECK_RC(OPAL_SUCCESS, harness.hca->put(harness.endpoint, attempt->keyset, attempt->remote,
                                            attempt->count, &fin, harness_done, &attempt->done));
    WAIT_UNTIL(0 < attempt->done.calls);
    harness_progress_for(0.02);
    CHECK(1 == attempt->done.calls, "called %d times", attempt->done.calls);
    return attempt->done.status;
}

/**
 * Both processes: the FIN is there with all bytes if the put succeeded, and else never.
 *
 * @param[in] all  a put that failed has written all bytes
 *
 * @return whether it succeeded
 */
static bool attempt_end(struct attempt *attempt, bool send, int status, bool all)
{
    MPI_Bcast(&status, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (OPAL_SUCCESS == status) {
        WAIT_UNTIL(send || attempt->fins < harness.fin_count);
    } else {
        CHECK(OPAL_ERR_UNREACH == status, "status %d", status);
        harness_progress_for(0.05);
        CHECK(attempt->fins == harness.fin_count, "a FIN of a put that failed");
    }
    if (OPAL_SUCCESS == status || all) {
        layout_check(attempt->area, ROOM, attempt->area, attempt->layout, attempt->layout->size, 2,
                     FILLER);
    }
    harness_barrier();
    harness.hca->keyset_release(attempt->keyset);
    harness.hca->memory_release(attempt->memory);
    OBJ_RELEASE(attempt->layout);
    free(attempt->remote);
    harness_disconnect();
    harness_connect();
    return OPAL_SUCCESS == status;
}

/** One of the writes fails, each in turn; the last one has the FIN. */
static void notify_fails(void)
{
    int (*faults)(const char *, int) =
        (int (*)(const char *, int)) dlsym(RTLD_DEFAULT, "umrddt_sim_faults");
    uint64_t writes = WRITES + harness_notifications(LENGTH);
    bool send = 0 == harness.rank, done = false;
    struct attempt attempt;

    CHECK(NULL != faults, "only the software HCA has faults");
    for (unsigned n = 1; !done; ++n) {
        int status = OPAL_SUCCESS;

        attempt_begin(&attempt, send);
        if (send) {
            char plan[32];

            snprintf(plan, sizeof(plan), "write:%u", n);
            CHECK(0 <= faults(plan, 1), "no plan");
            status = attempt_put(&attempt);
            CHECK((OPAL_SUCCESS == status ? 0 : 1) == faults(NULL, 1), "the fault did not occur");
            (void) faults("", 1);
            CHECK((n <= writes) == (OPAL_SUCCESS != status), "write %u of %llu: status %d", n,
                  (unsigned long long) writes, status);
        }
        done = attempt_end(&attempt, send, status, n == writes && WRITES < writes);
    }
}

/** The receiver refuses the last write with bytes: the FIN behind it does not arrive. */
static void notify_refused(void)
{
    bool send = 0 == harness.rank;
    struct attempt attempt;
    int status = OPAL_SUCCESS;

    attempt_begin(&attempt, send);
    if (send) {
        attempt.remote[WRITES - 1].rkey ^= 0x5500;
        status = attempt_put(&attempt);
    }
    CHECK(!attempt_end(&attempt, send, status, false), "the key was accepted");
}

static unsigned posts_left;
static int (*real_complete)(struct ibv_qp_ex *);

static int complete_some(struct ibv_qp_ex *qpx)
{
    if (0 == --posts_left) {
        ibv_wr_abort(qpx);
        return ENOMEM;
    }
    return real_complete(qpx);
}

/** Posting fails, at each batch of writes in turn. (Run with small values of btl_umr_sq_depth.) */
static void notify_unposted(void)
{
    bool send = 0 == harness.rank, done = false;
    unsigned refused = 0;

    while (!done) {
        struct attempt attempt;
        int status = OPAL_SUCCESS;

        attempt_begin(&attempt, send);
        if (send) {
            struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(hca_data_qp);

            posts_left = refused + 1;
            real_complete = qpx->wr_complete;
            qpx->wr_complete = complete_some;
            status = attempt_put(&attempt);
            CHECK((0 == posts_left) == (OPAL_SUCCESS != status), "status %d, %u posts left", status,
                  posts_left);
        }
        done = attempt_end(&attempt, send, status, false);
        refused += done ? 0 : 1;
    }
    if (NULL != getenv("UMRDDT_TEST_POSTS")) {
        CHECK((unsigned) atoi(getenv("UMRDDT_TEST_POSTS")) == refused, "%u batches", refused);
    }
}

const struct test notify_tests[] = {
    {"notify_value", notify_value},       {"notify_lengths", notify_lengths},
    {"notify_fails", notify_fails},       {"notify_refused", notify_refused},
    {"notify_unposted", notify_unposted}, {NULL, NULL},
};
