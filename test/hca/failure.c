/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Ends before their time. */

#include "harness.h"

#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

#include <infiniband/mlx5dv.h>

#define FILLER 0x11

static opal_iov_cache_layout_t *layout;
static unsigned char *area;
static mca_btl_umr_memory_t *memory;
static mca_btl_umr_keyset_t *keyset;

enum {
    PIECES = 256,
    LENGTH = 64,
    ROOM = PIECES * LENGTH * 2,
    REFUSAL_USEC = 200000
};

/** A keyset of many plain keys on either side; the sender has the receiver's keys. */
static mca_btl_umr_key_t *prepare(bool send, size_t *count)
{
    struct side side;

    layout = layout_vector(PIECES, LENGTH, 2 * LENGTH);
    area = malloc(ROOM);
    memset(area, FILLER, ROOM);
    side = (struct side){area, layout, LENGTH, SIZE_MAX};
    if (send) {
        layout_fill(area, layout, 2);
    }
    keyset = keyset_of(send ? MCA_BTL_UMR_LOCAL : MCA_BTL_UMR_REMOTE, &side, layout->size, &memory);
    if (!send) {
        keys_send(keyset);
        return NULL;
    }
    return keys_receive(count);
}

static void clean_up(void)
{
    harness.hca->keyset_release(keyset);
    harness.hca->memory_release(memory);
    OBJ_RELEASE(layout);
    free(area);
}

/* Only the HCA component knows the queue pair for mappings. Therefore this program's
 * mlx5dv_create_qp interposes that of libmlx5, and records it. */
static struct ibv_qp *mapping_qp;
struct ibv_qp *hca_data_qp;
int failure_refused_qps;

struct ibv_qp *mlx5dv_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
                                struct mlx5dv_qp_init_attr *dv_attr)
{
    struct ibv_qp *(*real)(struct ibv_context *, struct ibv_qp_init_attr_ex *,
                           struct mlx5dv_qp_init_attr *) = dlsym(RTLD_NEXT, "mlx5dv_create_qp");
    struct ibv_qp *qp;

    if (tiers_refuses(dv_attr)) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    if (0 < failure_refused_qps) {
        --failure_refused_qps;
        (void) usleep(REFUSAL_USEC);
        errno = ENOMEM;
        return NULL;
    }
    qp = real(context, attr, dv_attr);
    if (NULL != qp && 0 != (dv_attr->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS)) {
        mapping_qp = qp;
        tiers_qp_made(qp);
    } else {
        hca_data_qp = qp;
    }
    return qp;
}

/* UMRDDT_TEST_NO_GUID: a device that does not name itself (selftest.sh). */
int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    int (*real)(struct ibv_context *, struct ibv_device_attr *) =
        (int (*)(struct ibv_context *, struct ibv_device_attr *)) dlsym(RTLD_NEXT,
                                                                        "ibv_query_device");
    int err = real(context, attr);

    if (NULL != getenv("UMRDDT_TEST_NO_GUID")) {
        attr->node_guid = 0;
    }
    return err;
}

void failure_break_mappings(void)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

    CHECK(0 == ibv_modify_qp(mapping_qp, &attr, IBV_QP_STATE), "modify");
}

/**
 * The queue pair for mappings fails: waiters get an error, nothing is mapped any more, and keys
 * that peers know are still invalidated by their release.
 */
static void hca_fails(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    opal_iov_cache_layout_t *pieces = layout_vector(4, 64, 256);
    unsigned char *there = malloc(4096);
    struct side side = {there, pieces, 0, 4};
    mca_btl_umr_memory_t *pieces_memory;
    mca_btl_umr_keyset_t *old, *waiting = NULL, *none = NULL;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    struct done done = {0, 0};
    bool send = 0 == harness.rank;

    memset(there, FILLER, 4096);
    old = keyset_of(MCA_BTL_UMR_REMOTE, &side, pieces->size, &pieces_memory);
    if (send) {
        mca_btl_umr_key_t *remote;
        size_t count;

        remote = keys_receive(&count);
        harness_barrier();
        harness.hca->keyset_release(old);
        harness.hca->memory_release(pieces_memory);
        memset(there, 0xee, 4096);
        old = keyset_of(MCA_BTL_UMR_LOCAL, &side, pieces->size, &pieces_memory);
        CHECK_RC(OPAL_SUCCESS,
                 harness.hca->put(harness.endpoint, old, remote, count, NULL, harness_done, &done));
        WAIT_UNTIL(0 < done.calls);
        CHECK(OPAL_ERR_UNREACH == done.status, "status %d: the key still works", done.status);
        harness.hca->keyset_release(old);
        free(remote);
        harness_barrier();
    } else {
        uint64_t errors = stats->errors;

        keys_send(old);
        CHECK(0 == ibv_modify_qp(mapping_qp, &attr, IBV_QP_STATE), "modify");
        CHECK_RC(OPAL_SUCCESS,
                 harness.hca->keyset_map(MCA_BTL_UMR_LOCAL, there, pieces, pieces_memory, 0, 0,
                                         pieces->size, 4, harness_done, &done, &waiting));
        WAIT_UNTIL(0 < done.calls);
        CHECK(OPAL_ERROR == done.status && 1 == done.calls, "status %d", done.status);
        CHECK(!waiting->ready, "ready");
        CHECK_RC(OPAL_ERROR,
                 harness.hca->keyset_map(MCA_BTL_UMR_LOCAL, there, pieces, pieces_memory, 0, 0,
                                         pieces->size, 4, harness_done, &done, &none));
        CHECK(NULL == none, "output written without success");
        CHECK(errors + 1 == stats->errors, "%llu errors",
              (unsigned long long) (stats->errors - errors));
        harness.hca->keyset_release(waiting);
        harness.hca->keyset_release(old);
        CHECK(0 == stats->mkeys_now, "%llu mkeys that nothing can invalidate",
              (unsigned long long) stats->mkeys_now);
        harness_barrier();
        harness_barrier();
        for (size_t i = 0; i < 4096; ++i) {
            CHECK(FILLER == there[i], "byte %zu was written", i);
        }
    }
    harness.hca->memory_release(pieces_memory);
    OBJ_RELEASE(pieces);
    free(there);
    harness_disconnect();
    harness_connect();
}

/** The receiver breaks: nothing of the peer lands any more, and the peer's puts end, each once. */
static void broken_by_receiver(void)
{
    enum {
        PUTS = 20
    };
    bool send = 0 == harness.rank;
    struct done done[PUTS];
    mca_btl_umr_key_t *remote;
    size_t count = 0;

    memset(done, 0, sizeof(done));
    remote = prepare(send, &count);
    if (!send) {
        harness.hca->endpoint_break(harness.endpoint);
        CHECK(harness.hca->endpoint_broken(harness.endpoint), "not broken");
        CHECK_RC(OPAL_ERR_UNREACH, harness.hca->fin_reserve(harness.endpoint));
        harness_barrier();
        harness_barrier();
        for (size_t i = 0; i < ROOM; ++i) {
            CHECK(FILLER == area[i], "byte %zu was written after the break", i);
        }
    } else {
        harness_barrier();
        for (size_t i = 0; i < PUTS; ++i) {
            int rc = harness.hca->put(harness.endpoint, keyset, remote, count, NULL, harness_done,
                                      &done[i]);

            /* Once it is known to be broken it is refused at once. */
            CHECK(OPAL_SUCCESS == rc || OPAL_ERR_UNREACH == rc, "put returned %d", rc);
            if (OPAL_SUCCESS != rc) {
                done[i].calls = 1;
                done[i].status = rc;
            }
        }
        for (size_t i = 0; i < PUTS; ++i) {
            WAIT_UNTIL(0 < done[i].calls);
            CHECK(OPAL_ERR_UNREACH == done[i].status, "put %zu: status %d", i, done[i].status);
        }
        harness_progress_for(0.1);
        for (size_t i = 0; i < PUTS; ++i) {
            CHECK(1 == done[i].calls, "put %zu: called %d times", i, done[i].calls);
        }
        CHECK(harness.hca->endpoint_broken(harness.endpoint), "not broken");
        CHECK_RC(OPAL_ERR_UNREACH, harness.hca->put(harness.endpoint, keyset, remote, count, NULL,
                                                    harness_done, &done[0]));
        harness_barrier();
        free(remote);
    }
    clean_up();
}

/** The sender breaks with puts posted and puts waiting: all end, each once. */
static void broken_by_sender(void)
{
    enum {
        PUTS = 20
    };
    bool send = 0 == harness.rank;
    struct done done[PUTS];
    mca_btl_umr_key_t *remote;
    size_t count = 0;

    memset(done, 0, sizeof(done));
    remote = prepare(send, &count);
    if (send) {
        for (size_t i = 0; i < PUTS; ++i) {
            CHECK_RC(OPAL_SUCCESS, harness.hca->put(harness.endpoint, keyset, remote, count, NULL,
                                                    harness_done, &done[i]));
        }
        harness.hca->endpoint_break(harness.endpoint);
        harness.hca->endpoint_break(harness.endpoint);
        for (size_t i = 0; i < PUTS; ++i) {
            WAIT_UNTIL(0 < done[i].calls);
            CHECK(1 == done[i].calls, "put %zu: called %d times", i, done[i].calls);
        }
        CHECK(OPAL_ERR_UNREACH == done[PUTS - 1].status, "status %d", done[PUTS - 1].status);
        free(remote);
    }
    harness_barrier();
    /* Data that the sender's end has sent may still arrive, and these are the keys of a
     * registration that stays: the receiver owns the memory again once its own end is broken. */
    harness.hca->endpoint_break(harness.endpoint);
    clean_up();
}

/**
 * Broken when all posted operations are complete, the last of them within a put: there is nothing
 * left that could be flushed. (Run with btl_umr_sq_depth=8: puts of 3 writes do not divide it.)
 */
static void broken_in_between(void)
{
    enum {
        PUTS = 9,
        WRITES = 3
    };
    bool send = 0 == harness.rank;
    struct done done[PUTS];
    mca_btl_umr_key_t *remote;
    size_t count = 0;

    memset(done, 0, sizeof(done));
    remote = prepare(send, &count);
    if (send) {
        struct side side = {area, layout, LENGTH, SIZE_MAX};
        mca_btl_umr_memory_t *part_memory;
        mca_btl_umr_keyset_t *part =
            keyset_of(MCA_BTL_UMR_LOCAL, &side, WRITES * LENGTH, &part_memory);

        for (size_t i = 0; i < PUTS; ++i) {
            CHECK_RC(OPAL_SUCCESS, harness.hca->put(harness.endpoint, part, remote, WRITES, NULL,
                                                    harness_done, &done[i]));
        }
        usleep(300000); /* no progress */
        harness.hca->endpoint_break(harness.endpoint);
        for (size_t i = 0; i < PUTS; ++i) {
            WAIT_UNTIL(0 < done[i].calls);
            CHECK(1 == done[i].calls, "put %zu: called %d times", i, done[i].calls);
        }
        harness.hca->keyset_release(part);
        harness.hca->memory_release(part_memory);
        free(remote);
    }
    harness_barrier();
    clean_up();
}

/** The HCA reports an error in the middle of a put. (UMRDDT_SIM=fail_write=300) */
static void failed_write(void)
{
    bool send = 0 == harness.rank;
    struct done first = {0, 0}, second = {0, 0}, third = {0, 0};
    mca_btl_umr_key_t *remote;
    size_t count = 0;

    remote = prepare(send, &count);
    if (send) {
        uint64_t errors = harness.hca->stats()->errors;

        CHECK_RC(OPAL_SUCCESS, harness.hca->put(harness.endpoint, keyset, remote, count, NULL,
                                                harness_done, &first));
        CHECK_RC(OPAL_SUCCESS, harness.hca->put(harness.endpoint, keyset, remote, count, NULL,
                                                harness_done, &second));
        CHECK_RC(OPAL_SUCCESS, harness.hca->put(harness.endpoint, keyset, remote, count, NULL,
                                                harness_done, &third));
        WAIT_UNTIL(0 < first.calls && 0 < second.calls && 0 < third.calls);
        CHECK(OPAL_SUCCESS == first.status, "the first put was complete: %d", first.status);
        CHECK(OPAL_ERR_UNREACH == second.status, "the second put failed: %d", second.status);
        CHECK(OPAL_ERR_UNREACH == third.status, "the third put failed: %d", third.status);
        CHECK(1 == first.calls && 1 == second.calls && 1 == third.calls, "called twice");
        CHECK(errors + 1 == harness.hca->stats()->errors, "%llu errors",
              (unsigned long long) (harness.hca->stats()->errors - errors));
        free(remote);
    }
    harness_barrier();
    clean_up();
}

/** The HCA is closed with puts, keysets and memory still in use: they are dropped, without
 * callbacks. */
static void closed_in_use(void)
{
    bool send = 0 == harness.rank;
    static struct done done[20];
    mca_btl_umr_key_t *remote;
    size_t count = 0;

    remote = prepare(send, &count);
    if (send) {
        opal_iov_cache_layout_t *other = layout_vector(8, 8, 64);
        mca_btl_umr_memory_t *other_memory;
        mca_btl_umr_keyset_t *other_keyset;

        CHECK_RC(OPAL_SUCCESS, harness.hca->memory_register(MCA_BTL_UMR_LOCAL, area, other,
                                                            other->size, &other_memory));
        CHECK_RC(OPAL_SUCCESS,
                 harness.hca->keyset_map(MCA_BTL_UMR_LOCAL, area, other, other_memory, 0, 0,
                                         other->size, 4, harness_done, &done[0], &other_keyset));
        for (size_t i = 0; i < 20; ++i) {
            CHECK_RC(OPAL_SUCCESS, harness.hca->put(harness.endpoint, keyset, remote, count, NULL,
                                                    harness_done, &done[i]));
        }
        OBJ_RELEASE(other);
        free(remote);
        harness.hca->fini();
        for (size_t i = 0; i < 20; ++i) {
            CHECK(0 == done[i].calls, "called by fini");
        }
        MPI_Barrier(MPI_COMM_WORLD);
    } else {
        MPI_Barrier(MPI_COMM_WORLD); /* no progress: no thread polls for the puts */
        harness.hca->fini();
    }
    CHECK(0 == harness.hca->progress(), "progress of a closed HCA");
    CHECK('\0' != harness.hca->why_not()[0], "a closed HCA is usable");
    OBJ_RELEASE(layout);
    free(area);
    harness_connect();
}

/** The next work requests of this process have these faults of the software HCA. */
static void faults(const char *plan)
{
    int (*set)(const char *, int) =
        (int (*)(const char *, int)) dlsym(RTLD_DEFAULT, "umrddt_sim_faults");

    CHECK(NULL != set && 0 <= set(plan, 1), "only the software HCA has faults");
}

/**
 * The HCA fails without a flush: each operation ends with an error, soon and once, and the HCA
 * refuses further ones.
 */
static void lost_by(const char *plan)
{
    enum {
        PUTS = 3
    };
    opal_iov_cache_layout_t *pieces = layout_vector(4, 64, 256);
    mca_btl_umr_memory_t *pieces_memory;
    mca_btl_umr_keyset_t *waiting = NULL, *none = NULL;
    struct done done[PUTS] = {{0, 0}}, mapped = {0, 0};
    bool send = 0 == harness.rank;
    unsigned char there[4096];
    mca_btl_umr_key_t *remote;
    size_t count = 0;

    remote = prepare(send, &count);
    if (send) {
        uint64_t errors = harness.hca->stats()->errors;
        double start;

        /* No probe precedes the later writes. */
        CHECK_RC(OPAL_SUCCESS, harness.hca->put(harness.endpoint, keyset, remote, count, NULL,
                                                harness_done, &done[0]));
        WAIT_UNTIL(0 < done[0].calls);
        done[0].calls = 0;
        start = MPI_Wtime();
        CHECK_RC(OPAL_SUCCESS, harness.hca->memory_register(MCA_BTL_UMR_LOCAL, there, pieces,
                                                            pieces->size, &pieces_memory));
        CHECK_RC(OPAL_SUCCESS, harness.hca->fin_reserve(harness.endpoint));
        faults(plan);
        for (size_t i = 0; i < PUTS; ++i) {
            CHECK_RC(OPAL_SUCCESS, harness.hca->put(harness.endpoint, keyset, remote, count, NULL,
                                                    harness_done, &done[i]));
        }
        CHECK_RC(OPAL_SUCCESS,
                 harness.hca->keyset_map(MCA_BTL_UMR_LOCAL, there, pieces, pieces_memory, 0, 0,
                                         pieces->size, 4, harness_done, &mapped, &waiting));
        WAIT_UNTIL(0 < done[0].calls && 0 < done[1].calls && 0 < done[2].calls);
        /* One second where the processor is free. */
        CHECK(MPI_Wtime() - start < 10.0, "%.1f seconds", MPI_Wtime() - start);
        WAIT_UNTIL(0 < mapped.calls);
        harness_progress_for(0.05);
        CHECK(1 == done[0].calls && 1 == done[1].calls && 1 == done[2].calls && 1 == mapped.calls,
              "called twice");
        CHECK(OPAL_ERR_UNREACH == done[0].status && OPAL_ERR_UNREACH == done[2].status,
              "status %d and %d", done[0].status, done[2].status);
        CHECK(OPAL_ERROR == mapped.status || waiting->ready, "status %d", mapped.status);
        CHECK(errors + 1 == harness.hca->stats()->errors, "%llu errors",
              (unsigned long long) (harness.hca->stats()->errors - errors));
        CHECK(harness.hca->endpoint_broken(harness.endpoint), "not broken");
        CHECK_RC(OPAL_ERR_UNREACH, harness.hca->fin_reserve(harness.endpoint));
        CHECK_RC(OPAL_ERROR,
                 harness.hca->keyset_map(MCA_BTL_UMR_LOCAL, there, pieces, pieces_memory, 0, 0,
                                         pieces->size, 4, harness_done, &mapped, &none));
        harness.hca->keyset_release(waiting);
        harness.hca->memory_release(pieces_memory);
        faults("");
        free(remote);
    }
    OBJ_RELEASE(pieces);
    harness_barrier();
    clean_up();
}

static void device_lost(void)
{
    lost_by("silent:1");
}

static void cq_lost(void)
{
    lost_by("cq:1");
}

/** Events of the port: operations are as before. (failure.sh counts the lines of the log.) */
static void port_events(void)
{
    struct done done = {0, 0};
    mca_btl_umr_key_t *remote;
    size_t count = 0;

    remote = prepare(0 == harness.rank, &count);
    if (0 == harness.rank) {
        faults("port:1-3");
        CHECK_RC(OPAL_SUCCESS, harness.hca->put(harness.endpoint, keyset, remote, count, NULL,
                                                harness_done, &done));
        WAIT_UNTIL(0 < done.calls);
        CHECK(OPAL_SUCCESS == done.status, "status %d", done.status);
        for (int i = 0; i < 3000; ++i) {
            harness_progress(); /* events are read in one pass of 1024 */
        }
        faults("");
        free(remote);
    }
    harness_barrier();
    clean_up();
}

const struct test failure_tests[] = {
    {"broken_by_receiver", broken_by_receiver},
    {"broken_by_sender", broken_by_sender},
    {"broken_in_between", broken_in_between},
    {"hca_fails", hca_fails},
    {"failed_write", failed_write},
    {"closed_in_use", closed_in_use},
    {"device_lost", device_lost},
    {"cq_lost", cq_lost},
    {"port_events", port_events},
    {NULL, NULL},
};
