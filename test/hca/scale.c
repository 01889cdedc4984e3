/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Many peers: what each costs, and the receives that they share.
 *
 * The other process stands for all of them: names that no process has are answered with what that
 * one published, and it opens as many endpoints back.
 */

#include "harness.h"

#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>

#include <infiniband/mlx5dv.h>

#include "ompi/communicator/communicator.h"
#include "ompi/proc/proc.h"

#if UMRDDT_OPAL_RELEASE >= 500
#include <pmix.h>
#endif

enum {
    FIRST_NAME = 1000, /* vpids from here on are unused */
    BYTES = 512,       /* of a message */
    WAVE = 32,         /* messages at once */
    PEER_LIMIT = 65536,
    SHARERS = 10 /* of eight receives */
};

struct peer {
    opal_proc_t *proc;
    mca_btl_umr_endpoint_t *endpoint;
    size_t fins;
};

static struct peer *peers;
static size_t peer_count;
static size_t fins;

/* ------------------------------------------------------------------------------------------- *
 * Calls that go through this program
 * ------------------------------------------------------------------------------------------- */

#define REAL(name) ((__typeof__(&(name))) dlsym(RTLD_NEXT, #name))

#if UMRDDT_OPAL_RELEASE >= 500
pmix_status_t PMIx_Get(const pmix_proc_t *proc, const char key[], const pmix_info_t info[],
                       size_t count, pmix_value_t **value)
{
    pmix_proc_t real = *proc;

    if (FIRST_NAME <= real.rank && PMIX_RANK_VALID > real.rank) {
        real.rank = (pmix_rank_t) harness.peer;
    }
    return REAL(PMIx_Get)(&real, key, info, count, value);
}

static void names_begin(void)
{
}
#else
static __typeof__(opal_pmix.get) real_get;

static int get(const opal_process_name_t *proc, const char *key, opal_list_t *info,
               opal_value_t **value)
{
    opal_process_name_t real = *proc;

    if (FIRST_NAME <= real.vpid && OPAL_VPID_MAX > real.vpid) {
        real.vpid = (opal_vpid_t) harness.peer;
    }
    return real_get(&real, key, info, value);
}

static void names_begin(void)
{
    if (get != opal_pmix.get) {
        real_get = opal_pmix.get;
        opal_pmix.get = get;
    }
}
#endif

static bool silent; /* the device reports nothing about itself */
static struct ibv_srq *shared;

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    if (silent) {
        errno = EAGAIN;
        return -1;
    }
    return REAL(ibv_get_async_event)(context, event);
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    shared = REAL(ibv_create_srq)(pd, attr);
    return shared;
}

/* ------------------------------------------------------------------------------------------- *
 * Peers
 * ------------------------------------------------------------------------------------------- */

static void count_fin(void *context, mca_btl_umr_endpoint_t *endpoint, uint32_t fin)
{
    (void) context;
    CHECK(peer_count > fin, "FIN %u", fin);
    CHECK(peers[fin].endpoint == endpoint, "FIN %u came through another endpoint", fin);
    ++peers[fin].fins;
    ++fins;
}

/** Bytes that malloc has given, but for the software HCA, which has its own. */
static size_t in_use(void)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
#else
    return 0;
#endif
}

/** Whether in_use sees anything: not under checkers of memory. */
static bool in_use_works(void)
{
    size_t before = in_use();
    void *volatile block = malloc(100000);
    bool works = before + 100000 <= in_use();

    free(block);
    return works;
}

opal_proc_t *scale_name(size_t k)
{
    opal_proc_t *proc = calloc(1, sizeof(*proc));

    names_begin();

    proc->proc_name =
        ((opal_proc_t *) ompi_comm_peer_lookup(&ompi_mpi_comm_world.comm, harness.peer))->proc_name;
    proc->proc_name.vpid = FIRST_NAME + (opal_vpid_t) k;
    return proc;
}

/** Endpoints to so many peers. @return bytes that malloc gave for them */
static size_t peers_open(size_t count)
{
    mca_btl_umr_address_t *mine = calloc(count, sizeof(*mine));
    mca_btl_umr_address_t *theirs = calloc(count, sizeof(*theirs));
    size_t before, bytes;

    peers = calloc(count, sizeof(*peers));
    peer_count = count;
    fins = 0;
    harness.hca->set_fin_handler(count_fin, NULL);
    for (size_t k = 0; k < count; ++k) {
        peers[k].proc = scale_name(k);
    }

    before = in_use();
    for (size_t k = 0; k < count; ++k) {
        CHECK_RC(OPAL_SUCCESS, harness.hca->endpoint_get(peers[k].proc, &peers[k].endpoint));
        harness.hca->endpoint_address(peers[k].endpoint, &mine[k]);
    }
    bytes = in_use() - before;
    MPI_Sendrecv(mine, (int) (count * sizeof(*mine)), MPI_BYTE, harness.peer, 3, theirs,
                 (int) (count * sizeof(*theirs)), MPI_BYTE, harness.peer, 3, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    before = in_use();
    for (size_t k = 0; k < count; ++k) {
        CHECK_RC(OPAL_SUCCESS, harness.hca->endpoint_connect(peers[k].endpoint, &theirs[k]));
    }
    bytes += in_use() - before;
    free(mine);
    free(theirs);
    harness_barrier();
    return bytes;
}

/** The HCA again, without them. */
static void peers_close(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();

    harness_disconnect();
    CHECK(0 == stats->endpoints_now && 0 == stats->peer_bytes_now && 0 == stats->shared_bytes_now,
          "%llu endpoints, %llu bytes, %llu bytes of receives are left",
          (unsigned long long) stats->endpoints_now, (unsigned long long) stats->peer_bytes_now,
          (unsigned long long) stats->shared_bytes_now);
    for (size_t k = 0; k < peer_count; ++k) {
        free(peers[k].proc);
    }
    free(peers);
    peers = NULL;
    peer_count = 0;
    harness_connect();
}

/* ------------------------------------------------------------------------------------------- *
 * Messages
 * ------------------------------------------------------------------------------------------- */

static opal_iov_cache_layout_t *layout;
static unsigned char *source, *target;
static mca_btl_umr_memory_t *source_memory, *target_memory;
static mca_btl_umr_keyset_t *source_keys, *target_keys;
static mca_btl_umr_key_t *remote;
static size_t remote_count;
static struct done done;

/** Both sides have keys of what they send and of what they receive, and those of the peer. */
static void messages_begin(void)
{
    struct side side;

    layout = layout_vector(1, BYTES, BYTES);
    source = malloc(BYTES);
    target = calloc(1, BYTES);
    layout_fill(source, layout, 7 + (unsigned) harness.rank);
    side = (struct side){source, layout, 0, SIZE_MAX};
    source_keys = keyset_of(MCA_BTL_UMR_LOCAL, &side, BYTES, &source_memory);
    side.buffer = target;
    target_keys = keyset_of(MCA_BTL_UMR_REMOTE, &side, BYTES, &target_memory);
    if (0 == harness.rank) {
        keys_send(target_keys);
        remote = keys_receive(&remote_count);
    } else {
        remote = keys_receive(&remote_count);
        keys_send(target_keys);
    }
}

static void messages_end(bool whole)
{
    if (whole) {
        layout_check(target, BYTES, target, layout, BYTES, 7 + (unsigned) harness.peer, 0);
    }
    harness.hca->keyset_release(source_keys);
    harness.hca->keyset_release(target_keys);
    harness.hca->memory_release(source_memory);
    harness.hca->memory_release(target_memory);
    OBJ_RELEASE(layout);
    free(remote);
    free(source);
    free(target);
}

/** Write, with a FIN that names the peer. */
static void send_to(size_t k)
{
    uint32_t fin = (uint32_t) k;

    CHECK_RC(OPAL_SUCCESS, harness.hca->put(peers[k].endpoint, source_keys, remote, remote_count,
                                            &fin, harness_done, &done));
}

static int expect_from(size_t k)
{
    return harness.hca->fin_reserve(peers[k].endpoint);
}

/** One message through each, in waves. */
static void message_to_each(void)
{
    for (size_t first = 0, wave = 0; first < peer_count; first += WAVE, ++wave) {
        size_t end = first + WAVE < peer_count ? first + WAVE : peer_count;
        bool send = (size_t) harness.rank == wave % 2;

        fins = 0;
        done = (struct done){0, 0};
        for (size_t k = first; k < end && !send; ++k) {
            CHECK_RC(OPAL_SUCCESS, expect_from(k));
        }
        harness_barrier();
        if (send) {
            for (size_t k = first; k < end; ++k) {
                send_to(k);
            }
            WAIT_UNTIL((int) (end - first) == done.calls);
            CHECK(OPAL_SUCCESS == done.status, "status %d", done.status);
        } else {
            WAIT_UNTIL(end - first == fins);
            for (size_t k = first; k < end; ++k) {
                CHECK(1 == peers[k].fins, "%zu FINs of peer %zu", peers[k].fins, k);
            }
        }
        harness_barrier();
    }
}

/* ------------------------------------------------------------------------------------------- *
 * What a peer costs
 * ------------------------------------------------------------------------------------------- */

/** The queues of the newest queue pair: without lists, and without receives. */
static void look_at_queue(bool own_receives)
{
    struct mlx5dv_qp raw = {.comp_mask = 0};
    struct mlx5dv_obj obj = {.qp = {.in = hca_data_qp, .out = &raw}};

    CHECK(0 == mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP), "no look at the queue pair");
    CHECK(64 * 256 >= raw.sq.wqe_cnt * raw.sq.stride, "a send queue of %u slots of %u bytes",
          raw.sq.wqe_cnt, raw.sq.stride);
    CHECK(own_receives == (0 < raw.rq.wqe_cnt), "%u receives of its own", raw.rq.wqe_cnt);
}

/** UMRDDT_TEST_PEERS of them: memory by the counters, memory as malloc sees it, messages. */
static void many_peers(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    const char *text = getenv("UMRDDT_TEST_PEERS");
    size_t all = NULL == text ? 64 : (size_t) atoi(text), count = all - 1;
    uint64_t before = stats->peer_bytes_now;
    uint64_t each, bytes, shares;
    bool measured = in_use_works();
    double start = MPI_Wtime();
    size_t given;

    CHECK(2 <= all, "UMRDDT_TEST_PEERS=%s", text);
    CHECK(1 == stats->endpoints_now, "%llu endpoints", (unsigned long long) stats->endpoints_now);
    given = peers_open(count);
    start = MPI_Wtime() - start;
    CHECK(all == stats->endpoints_now, "%llu endpoints", (unsigned long long) stats->endpoints_now);
    bytes = stats->peer_bytes_now - before;
    shares = stats->shared_bytes_now;
    each = (stats->peer_bytes_now + shares) / all;
    if (0 == harness.rank) {
        printf("%zu peers: %llu bytes each, with %llu that they share; malloc gave %zu to each of "
               "%zu, where the counter says %llu; opened in %.1f ms\n",
               all, (unsigned long long) each, (unsigned long long) shares, given / count, count,
               (unsigned long long) (bytes / count), 1e3 * start);
    }
    CHECK(PEER_LIMIT >= each, "%llu bytes a peer", (unsigned long long) each);
    if (measured) {
        CHECK(PEER_LIMIT >= given / count, "%zu bytes a peer, says malloc", given / count);
        CHECK(given <= bytes + bytes / 8 && bytes <= 2 * given,
              "the counter says %llu bytes, and malloc %zu", (unsigned long long) bytes, given);
    } else {
        printf("malloc is not to be asked here\n");
    }
    look_at_queue(0 == shares);

    messages_begin();
    message_to_each();
    messages_end(PEER_LIMIT > 0 && WAVE < count);
    CHECK(all == stats->endpoints_now
              && each == (stats->peer_bytes_now + stats->shared_bytes_now) / all,
          "messages made something");
    peers_close();
}

/** More peers than btl_umr_max_peers=8, of which the harness has one: 7 get queue pairs. The others
 * get none while these are in use: each expects a FIN. */
static void bound_of_peers(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    mca_btl_umr_endpoint_t *endpoint = NULL;
    opal_proc_t *others[3];

    (void) peers_open(7);
    CHECK_RC(OPAL_SUCCESS, harness.hca->fin_reserve(harness.endpoint));
    for (size_t k = 0; k < 7; ++k) {
        CHECK_RC(OPAL_SUCCESS, expect_from(k));
    }
    for (size_t k = 0; k < 3; ++k) {
        others[k] = scale_name(100 + k);
        /* The counter is of peers, and not of calls. */
        for (int i = 0; i < 3; ++i) {
            CHECK_RC(OPAL_ERR_OUT_OF_RESOURCE, harness.hca->endpoint_get(others[k], &endpoint));
            room_later(2);
        }
    }
    CHECK(NULL == endpoint && 8 == stats->endpoints_now, "%llu endpoints",
          (unsigned long long) stats->endpoints_now);
    CHECK(3 == stats->peers_refused, "%llu refused", (unsigned long long) stats->peers_refused);
    harness.hca->fin_cancel(harness.endpoint);
    for (size_t k = 0; k < 7; ++k) {
        harness.hca->fin_cancel(peers[k].endpoint);
    }
    messages_begin();
    message_to_each();
    messages_end(0 != harness.rank);
    for (size_t k = 0; k < 7; ++k) {
        CHECK_RC(OPAL_SUCCESS, harness.hca->endpoint_get(peers[k].proc, &endpoint));
        CHECK(endpoint == peers[k].endpoint, "another endpoint of peer %zu", k);
    }
    /* A second after the last messages three of the eight make room, and no more. */
    for (size_t k = 0; k < 3; ++k) {
        int tries = 0;

        while (OPAL_SUCCESS != harness.hca->endpoint_get(others[k], &endpoint)) {
            CHECK(2 > tries++, "no room for peer %zu", k);
            room_later(2);
        }
    }
    CHECK(8 == stats->endpoints_now && 3 == stats->peers_closed, "%llu endpoints, %llu closed",
          (unsigned long long) stats->endpoints_now, (unsigned long long) stats->peers_closed);
    peers_close();
    for (size_t k = 0; k < 3; ++k) {
        free(others[k]);
    }
}

/** A thread that opens a peer. */
struct opener {
    pthread_t thread;
    pthread_barrier_t *together;
    opal_proc_t *proc;
    mca_btl_umr_endpoint_t *endpoint;
    int rc;
};

static void *open_one(void *argument)
{
    struct opener *opener = argument;

    (void) pthread_barrier_wait(opener->together);
    opener->rc = harness.hca->endpoint_get(opener->proc, &opener->endpoint);
    return NULL;
}

/**
 * The last place of btl_umr_max_peers=8, which three threads want at the same time: two for one
 * peer, one for another. The commands are slow. One of the peers gets it.
 */
static void bound_of_threads(void)
{
    int (*faults)(const char *, int) =
        (int (*)(const char *, int)) dlsym(RTLD_DEFAULT, "umrddt_sim_faults");
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    opal_proc_t *others[2] = {scale_name(100), scale_name(101)};
    struct opener openers[3];
    pthread_barrier_t together;

    CHECK(MPI_THREAD_MULTIPLE == harness.threads, "run this with HCA_THREADS=1");
    CHECK(NULL != faults, "only the software HCA has faults");
    (void) peers_open(6);
    CHECK_RC(OPAL_SUCCESS, harness.hca->fin_reserve(harness.endpoint));
    for (size_t k = 0; k < 6; ++k) {
        CHECK_RC(OPAL_SUCCESS, expect_from(k));
    }
    pthread_barrier_init(&together, NULL, 3);
    (void) faults("slow:1-:100000", 1);
    for (int i = 0; i < 3; ++i) {
        openers[i] = (struct opener){.together = &together, .proc = others[i / 2]};
        CHECK(0 == pthread_create(&openers[i].thread, NULL, open_one, &openers[i]), "thread");
    }
    for (int i = 0; i < 3; ++i) {
        pthread_join(openers[i].thread, NULL);
    }
    (void) faults("", 1);
    pthread_barrier_destroy(&together);
    CHECK(openers[0].rc == openers[1].rc && openers[0].endpoint == openers[1].endpoint,
          "two threads, one peer: %d and %d", openers[0].rc, openers[1].rc);
    CHECK(OPAL_SUCCESS == openers[0].rc || OPAL_SUCCESS == openers[2].rc, "%d and %d",
          openers[0].rc, openers[2].rc);
    CHECK(8 == stats->endpoints_now && 1 == stats->peers_refused, "%llu endpoints, %llu refused",
          (unsigned long long) stats->endpoints_now, (unsigned long long) stats->peers_refused);
    peers_close();
    free(others[0]);
    free(others[1]);
}

/**
 * The last place of btl_umr_max_peers=8, and a peer that two threads open. The device refuses the
 * queue pair of the first thread, and the other one, which has waited, gets one. It counts.
 */
static void bound_of_refusal(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    opal_proc_t *others[2] = {scale_name(100), scale_name(101)};
    mca_btl_umr_endpoint_t *endpoint = NULL;
    struct opener openers[2];
    pthread_barrier_t together;

    CHECK(MPI_THREAD_MULTIPLE == harness.threads, "run this with HCA_THREADS=1");
    (void) peers_open(6);
    CHECK_RC(OPAL_SUCCESS, harness.hca->fin_reserve(harness.endpoint));
    for (size_t k = 0; k < 6; ++k) {
        CHECK_RC(OPAL_SUCCESS, expect_from(k));
    }
    pthread_barrier_init(&together, NULL, 2);
    failure_refused_qps = 1;
    for (int i = 0; i < 2; ++i) {
        openers[i] = (struct opener){.together = &together, .proc = others[0]};
        CHECK(0 == pthread_create(&openers[i].thread, NULL, open_one, &openers[i]), "thread");
    }
    for (int i = 0; i < 2; ++i) {
        pthread_join(openers[i].thread, NULL);
    }
    pthread_barrier_destroy(&together);
    CHECK(0 == failure_refused_qps && OPAL_SUCCESS != openers[0].rc + openers[1].rc
              && (OPAL_SUCCESS == openers[0].rc || OPAL_SUCCESS == openers[1].rc),
          "%d and %d", openers[0].rc, openers[1].rc);
    CHECK_RC(OPAL_ERR_OUT_OF_RESOURCE, harness.hca->endpoint_get(others[1], &endpoint));
    CHECK(8 == stats->endpoints_now, "%llu endpoints", (unsigned long long) stats->endpoints_now);
    peers_close();
    free(others[0]);
    free(others[1]);
}

/* ------------------------------------------------------------------------------------------- *
 * Shared receives. (Run with btl_umr_srq_depth=8.)
 * ------------------------------------------------------------------------------------------- */

/** Expect FINs on an endpoint until it is refused. @return how many */
static size_t expect_all(mca_btl_umr_endpoint_t *endpoint)
{
    size_t count = 0;
    int rc;

    while (OPAL_SUCCESS == (rc = harness.hca->fin_reserve(endpoint))) {
        CHECK(8 >= ++count, "no end");
    }
    CHECK_RC(OPAL_ERR_OUT_OF_RESOURCE, rc);
    return count;
}

static void cancel(mca_btl_umr_endpoint_t *endpoint, size_t count)
{
    while (0 < count--) {
        harness.hca->fin_cancel(endpoint);
    }
}

/** The same on all peers but the first, and note how many on which. @return how many more */
static size_t expect_rest(size_t counts[SHARERS])
{
    size_t all = 0;

    for (size_t k = 1; k < SHARERS; ++k) {
        size_t more = expect_all(peers[k].endpoint);

        counts[k] += more;
        all += more;
    }
    return all;
}

/** No process gets all, and together they get all. */
static void shares(void)
{
    (void) peers_open(SHARERS);
    for (int i = 0; i < 3; ++i) {
        CHECK(4 == expect_all(peers[0].endpoint), "one half");
        for (size_t k = 1; k < 5; ++k) {
            CHECK(1 == expect_all(peers[k].endpoint), "one each");
        }
        CHECK(0 == expect_all(peers[5].endpoint), "more than there are");
        /* More than half have to be free for more than one. */
        cancel(peers[0].endpoint, 4);
        CHECK(0 == expect_all(peers[1].endpoint), "one half is kept");
        cancel(peers[4].endpoint, 1);
        CHECK(1 == expect_all(peers[1].endpoint), "one more than half was free");
        cancel(peers[1].endpoint, 2);
        /* Released more often than acquired: no more than before. */
        for (size_t k = 0; k < SHARERS; ++k) {
            cancel(peers[k].endpoint, 3);
        }
    }
    peers_close();
}

/** All eight at once: each finds a receive. */
static void eight_messages(bool send, size_t counts[SHARERS])
{
    size_t before = fins, all = 0;

    done = (struct done){0, 0};
    if (!send) {
        MPI_Send(counts, SHARERS * sizeof(*counts), MPI_BYTE, 0, 4, MPI_COMM_WORLD);
    } else {
        MPI_Recv(counts, SHARERS * sizeof(*counts), MPI_BYTE, 1, 4, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        for (size_t k = 1; k < SHARERS; ++k) {
            for (size_t i = 0; i < counts[k]; ++i, ++all) {
                send_to(k);
            }
        }
        CHECK(8 == all, "%zu receives", all);
        WAIT_UNTIL(8 == done.calls);
        CHECK(OPAL_SUCCESS == done.status, "status %d", done.status);
    }
    /* The receiver has looked at none of them before this. */
    MPI_Barrier(MPI_COMM_WORLD);
    if (!send) {
        WAIT_UNTIL(before + 8 == fins);
    }
}

/** The receiver finds eight in the end, and never more. */
static void eight_come_back(size_t counts[SHARERS], size_t count)
{
    for (double end = MPI_Wtime() + HARNESS_HANG; 8 > count;) {
        CHECK(MPI_Wtime() < end, "only %zu receives come back", count);
        harness_progress();
        count += expect_rest(counts);
    }
    harness_progress_for(0.05);
    CHECK(8 == count && 0 == expect_rest(counts), "counted twice");
}

/**
 * An endpoint breaks that expects four FINs, of which three arrived and were not polled: the
 * receives are given to others when they are posted again or known to be unused, not before, and
 * each once.
 */
static void broken_with_fins(void)
{
    size_t counts[SHARERS] = {0}, count;
    bool send = 0 == harness.rank;

    (void) peers_open(SHARERS);
    messages_begin();
    done = (struct done){0, 0};
    CHECK(send || 4 == expect_all(peers[0].endpoint), "one half");
    harness_barrier();
    /* The receiver has left the barrier that polls, so it does not poll the FINs. */
    MPI_Barrier(MPI_COMM_WORLD);
    if (send) {
        for (size_t i = 0; i < 3; ++i) {
            send_to(0);
        }
        WAIT_UNTIL(3 == done.calls);
        CHECK(OPAL_SUCCESS == done.status, "status %d", done.status);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (!send) {
        harness.hca->endpoint_break(peers[0].endpoint);
        CHECK_RC(OPAL_ERR_UNREACH, expect_from(0));
        count = expect_rest(counts);
        CHECK(4 == count, "%zu receives, where 4 are taken", count);
        WAIT_UNTIL(3 == fins);
        eight_come_back(counts, count);
        CHECK(3 == fins, "%zu FINs", fins);
    }
    eight_messages(send, counts);
    messages_end(!send);
    peers_close();
}

/** The same on a device that does not report the last received message. */
static void broken_in_silence(void)
{
    silent = true;
    broken_with_fins();
    silent = false;
}

/** Without flushes, the device's events report that it stopped a queue pair. */
static void stopped_by_device(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    size_t counts[SHARERS] = {0};
    bool send = 0 == harness.rank;
    uint64_t errors = stats->errors;

    (void) peers_open(SHARERS);
    messages_begin();
    done = (struct done){0, 0};
    if (send) {
        mca_btl_umr_key_t bad = *remote;

        bad.rkey ^= 0x5500;
        CHECK_RC(OPAL_SUCCESS, harness.hca->put(peers[0].endpoint, source_keys, &bad, 1, NULL,
                                                harness_done, &done));
        WAIT_UNTIL(1 == done.calls);
        CHECK(OPAL_ERR_UNREACH == done.status, "status %d", done.status);
    } else {
        CHECK_RC(OPAL_SUCCESS, expect_from(0));
        WAIT_UNTIL(harness.hca->endpoint_broken(peers[0].endpoint));
        CHECK(errors + 1 == stats->errors, "%llu errors", (unsigned long long) stats->errors);
        eight_come_back(counts, 0);
    }
    eight_messages(send, counts);
    messages_end(!send);
    peers_close();
}

/** The shared queue itself is in error: waiters for its peers get an error. */
static void receives_fail(void)
{
    bool send = 0 == harness.rank;

    (void) peers_open(3);
    messages_begin();
    done = (struct done){0, 0};
    if (!send) {
        struct mlx5dv_srq raw = {.comp_mask = 0};
        struct mlx5dv_obj obj = {.srq = {.in = shared, .out = &raw}};
        mca_btl_umr_endpoint_t *none = NULL;
        opal_proc_t *proc = scale_name(77);

        CHECK_RC(OPAL_SUCCESS, expect_from(0));
        CHECK(0 == mlx5dv_init_obj(&obj, MLX5DV_OBJ_SRQ), "no look at the queue");
        *raw.dbrec = htobe32(500); /* more than the limit */
        harness_barrier();
        for (size_t k = 0; k < 3; ++k) {
            WAIT_UNTIL(harness.hca->endpoint_broken(peers[k].endpoint));
            CHECK_RC(OPAL_ERR_UNREACH, expect_from(k));
        }
        CHECK_RC(OPAL_ERR_OUT_OF_RESOURCE, harness.hca->endpoint_get(proc, &none));
        free(proc);
    } else {
        harness_barrier();
        send_to(0);
        WAIT_UNTIL(1 == done.calls);
        CHECK(OPAL_ERR_UNREACH == done.status, "status %d", done.status);
    }
    messages_end(false);
    peers_close();
}

const struct test scale_tests[] = {
    {"many_peers", many_peers},
    {"bound_of_peers", bound_of_peers},
    {"bound_of_threads", bound_of_threads},
    {"bound_of_refusal", bound_of_refusal},
    {"shares", shares},
    {"broken_with_fins", broken_with_fins},
    {"broken_in_silence", broken_in_silence},
    {"stopped_by_device", stopped_by_device},
    {"receives_fail", receives_fail},
    {NULL, NULL},
};
