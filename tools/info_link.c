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
 * The test of one endpoint. Both processes go through the same steps: each step does the local work
 * and then exchanges its result (agree), so that a failure at one side ends both.
 */

#include "info_hca.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "opal/constants.h"

enum {
    BATCH = 4,       /* messages in flight in each direction */
    AREA = 64 << 10, /* bytes for one of them, of which a layout covers less than a half */
    ROUNDS = 16,     /* batches at least */
    PIECES = 200,    /* of a layout, at most */
    LARGE = 1 << 20, /* bytes of a write that is timed */
    WINDOW = 8,      /* of those in flight */
    FILLER = 0xa5
};

#define LIMIT_SECONDS     60.0 /* for what the device ends itself */
#define BANDWIDTH_SECONDS 0.1
#define BANDWIDTH_WRITES  (4 * WINDOW)

/** Context of a done function. */
typedef struct done_t {
    int calls;
    int failures;
} done_t;

/** One side of a message. */
typedef struct side_t {
    unsigned char *area;
    size_t size; /**< of the area */
    opal_iov_cache_layout_t *layout;
    mca_btl_umr_memory_t *memory;
    mca_btl_umr_keyset_t *keyset;
    done_t mapped;
    unsigned salt; /**< of the bytes */
} side_t;

/** The state of a test. */
typedef struct test_t {
    const info_link_t *link;
    info_traffic_t *traffic;
    unsigned char *from, *to; /**< buffers, BATCH areas or one large one */
    unsigned char *bytes;     /**< of the CPU, as large, for copies */
    unsigned char *expected;
    uint32_t seed;
    bool ok; /**< of the current step */
} test_t;

/** FINs that arrived, by their number. */
static volatile int fins[BATCH];

static void fin_handler(void *context, mca_btl_umr_endpoint_t *endpoint, uint32_t fin)
{
    /* A late one of a lane that failed before is none of this lane. */
    if (context == endpoint && BATCH > fin) {
        ++fins[fin];
    }
}

static void done(void *context, int status)
{
    done_t *count = (done_t *) context;

    ++count->calls;
    count->failures += OPAL_SUCCESS == status ? 0 : 1;
}

/** Note the first failure. */
__attribute__((format(printf, 2, 3))) static void fail(test_t *test, const char *format, ...)
{
    va_list list;

    test->ok = false;
    if ('\0' == test->traffic->why[0]) {
        va_start(list, format);
        vsnprintf(test->traffic->why, sizeof(test->traffic->why), format, list);
        va_end(list);
    }
}

static void progress(const mca_btl_umr_hca_ops_t *hca)
{
    if (0 == hca->progress()) {
        sched_yield();
    }
}

void info_link_swap(const mca_btl_umr_hca_ops_t *hca, int peer, const void *out, void *in,
                    size_t size)
{
    MPI_Request requests[2];
    int complete = 0;

    MPI_Irecv(in, (int) size, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, (int) size, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &requests[1]);
    while (0 == complete) {
        MPI_Testall(2, requests, &complete, MPI_STATUSES_IGNORE);
        progress(hca);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE); /* both are complete */
}

/** End of a step. @return true if it succeeded at both sides */
static bool agree(test_t *test)
{
    char mine[192] = "", theirs[192];

    if (!test->ok) {
        snprintf(mine, sizeof(mine), "%s", test->traffic->why);
    }
    info_link_swap(test->link->hca, test->link->peer, mine, theirs, sizeof(mine));
    theirs[sizeof(theirs) - 1] = '\0';
    if ('\0' != theirs[0] && test->ok) {
        fail(test, "the other end: %.170s", theirs);
    }
    return test->ok;
}

/** Make progress until the calls of a done function. @return false: not within the limit */
static bool wait_for(test_t *test, const done_t *count, int calls)
{
    double end = MPI_Wtime() + LIMIT_SECONDS;

    while (count->calls < calls) {
        if (MPI_Wtime() > end) {
            /* No write of this test may arrive later. */
            test->link->hca->endpoint_break(test->link->endpoint);
            end = MPI_Wtime() + LIMIT_SECONDS;
            while (count->calls < calls && MPI_Wtime() < end) {
                progress(test->link->hca);
            }
            fail(test, "no completion within %.0f s", LIMIT_SECONDS);
            return false;
        }
        progress(test->link->hca);
    }
    return true;
}

static uint32_t random_below(uint32_t *seed, uint32_t bound)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed % bound;
}

/** @return NULL: no memory */
static opal_iov_cache_layout_t *layout_of(const opal_iov_cache_iov_t *iovs, uint32_t count)
{
    opal_iov_cache_layout_t *layout = NULL;
    opal_iov_cache_form_t *form = NULL;

    return OPAL_SUCCESS == opal_iov_cache_form_of_pieces(iovs, count, &form)
                   && OPAL_SUCCESS == opal_iov_cache_layout_of_form(form, &layout)
               ? layout
               : NULL;
}

/** Pieces of random lengths and distances, in random order, within @p extent bytes. */
static opal_iov_cache_layout_t *random_layout(uint32_t *seed, uint64_t size, uint64_t extent)
{
    static const uint32_t counts[] = {1, 2, 7, 40, PIECES};
    opal_iov_cache_iov_t iovs[PIECES];
    uint32_t count = counts[random_below(seed, sizeof(counts) / sizeof(counts[0]))];
    uint32_t gap = (uint32_t) ((extent - size) / (count + 1));
    uint64_t left = size, offset = 0;

    for (uint32_t i = 0; i < count; ++i) {
        uint32_t rest = count - i, most = (uint32_t) (2 * (left / rest));

        iovs[i].length = 1 == rest ? left : 1 + random_below(seed, 1 < most ? most - 1 : 1);
        if (iovs[i].length > left - (rest - 1)) {
            iovs[i].length = left - (rest - 1);
        }
        left -= iovs[i].length;
        offset += 1 + random_below(seed, gap);
        iovs[i].offset = (int64_t) offset;
        offset += iovs[i].length;
    }
    for (uint32_t i = 1; i < count; ++i) {
        uint32_t k = random_below(seed, i + 1);
        opal_iov_cache_iov_t iov = iovs[i];

        iovs[i] = iovs[k];
        iovs[k] = iov;
    }
    return layout_of(iovs, count);
}

static opal_iov_cache_layout_t *contiguous(uint64_t size)
{
    opal_iov_cache_iov_t iov = {0, size};

    return layout_of(&iov, 1);
}

static unsigned char stream_byte(uint64_t i, unsigned salt)
{
    return (unsigned char) ((i * 2654435761u) >> 13 ^ (i >> 3) ^ salt * 31u);
}

/** The bytes of a message where its layout has them, and FILLER elsewhere. */
static void compose(unsigned char *bytes, const side_t *side)
{
    memset(bytes, FILLER, side->size);
    for (uint64_t i = 0; i < side->layout->iov_count; ++i) {
        const opal_iov_cache_iov_t iov = opal_iov_cache_layout_iov(side->layout, i);
        const uint64_t start = opal_iov_cache_layout_start(side->layout, i);

        for (uint64_t k = 0; k < iov.length; ++k) {
            bytes[(uint64_t) iov.offset + k] = stream_byte(start + k, side->salt);
        }
    }
}

/** Fill the area, register it, and map keys for all of the layout. */
static void side_open(test_t *test, side_t *side, mca_btl_umr_role_t role)
{
    const mca_btl_umr_hca_ops_t *hca = test->link->hca;
    double end = MPI_Wtime() + LIMIT_SECONDS;
    int rc;

    if (NULL == side->layout) {
        fail(test, "no memory");
        return;
    }
    memset(test->bytes, FILLER, side->size);
    if (MCA_BTL_UMR_LOCAL == role) {
        compose(test->bytes, side);
    }
    if (!info_buffer_write(side->area, test->bytes, side->size)) {
        fail(test, "the GPU's driver fails to copy");
        return;
    }
    rc = info_buffer_register(test->link, role, side->area, side->layout, &side->memory);
    if (OPAL_SUCCESS != rc) {
        side->memory = NULL;
        fail(test, "the HCA does not register the memory (error %d)", rc);
        return;
    }
    do {
        rc = hca->keyset_map(role, side->area, side->layout, side->memory, 0, 0, side->layout->size,
                             SIZE_MAX, done, &side->mapped, &side->keyset);
        progress(hca);
    } while (OPAL_ERR_OUT_OF_RESOURCE == rc && MPI_Wtime() < end);
    if (OPAL_SUCCESS != rc) {
        side->keyset = NULL;
        fail(test, "no keys for a layout of %zu pieces (error %d)", side->layout->iov_count, rc);
    } else if (side->keyset->end != side->layout->size) {
        fail(test, "not enough mkeys for a layout of %zu pieces: increase btl_umr_mkeys_max",
             side->layout->iov_count);
    }
}

/** Wait for its mapping. */
static void side_ready(test_t *test, side_t *side)
{
    if (test->ok && !side->keyset->ready && wait_for(test, &side->mapped, 1)
        && 0 < side->mapped.failures) {
        fail(test, "the HCA did not map mkeys");
    }
}

static void side_close(test_t *test, side_t *side)
{
    if (NULL != side->keyset) {
        test->link->hca->keyset_release(side->keyset);
    }
    if (NULL != side->memory) {
        test->link->hca->memory_release(side->memory);
    }
    if (NULL != side->layout) {
        OBJ_RELEASE(side->layout);
    }
    memset(side, 0, sizeof(*side));
}

/** Send the keys of this process's receive buffers, and get those for its writes. */
static void swap_keys(test_t *test, const side_t *to, int count, mca_btl_umr_key_t **keys,
                      uint64_t *key_counts)
{
    const mca_btl_umr_hca_ops_t *hca = test->link->hca;

    for (int i = 0; i < count; ++i) {
        uint64_t mine = to[i].keyset->count, most;
        mca_btl_umr_key_t *out;

        info_link_swap(hca, test->link->peer, &mine, &key_counts[i], sizeof(mine));
        most = mine < key_counts[i] ? key_counts[i] : mine;
        out = (mca_btl_umr_key_t *) calloc(most, sizeof(*out));
        keys[i] = (mca_btl_umr_key_t *) calloc(most, sizeof(*out));
        if (NULL == out || NULL == keys[i]) {
            fprintf(stderr, "umrddt_info: no memory\n");
            MPI_Abort(MPI_COMM_WORLD, INFO_BROKEN);
        }
        memcpy(out, to[i].keyset->keys, mine * sizeof(*out));
        info_link_swap(hca, test->link->peer, out, keys[i], most * sizeof(*out));
        free(out);
    }
}

/** Data that came: make it visible, and compare each byte. */
static void check(test_t *test, side_t *to)
{
    done_t flushed = {0, 0};
    int rc = test->link->hca->memory_flush(to->memory, done, &flushed);

    if (OPAL_ERR_WOULD_BLOCK == rc) {
        rc = wait_for(test, &flushed, 1) && 0 == flushed.failures ? OPAL_SUCCESS : OPAL_ERROR;
    }
    if (OPAL_SUCCESS != rc) {
        fail(test, "the data in the GPU's memory cannot be made visible (error %d)", rc);
        return;
    }
    if (!info_buffer_read(test->bytes, to->area, to->size)) {
        fail(test, "the GPU's driver fails to copy");
        return;
    }
    compose(test->expected, to);
    for (size_t i = 0; i < to->size; ++i) {
        if (test->bytes[i] != test->expected[i]) {
            fail(test, "WRONG BYTE at %zu of %zu: 0x%02x, not 0x%02x (%zu bytes in %zu pieces)", i,
                 to->size, test->bytes[i], test->expected[i], (size_t) to->layout->size,
                 to->layout->iov_count);
            return;
        }
    }
}

/** Wait for the FINs of messages that the other end has sent. */
static void wait_fins(test_t *test, int count)
{
    double end = MPI_Wtime() + LIMIT_SECONDS;

    for (int i = 0; i < count && test->ok; ++i) {
        while (0 == fins[i]) {
            if (MPI_Wtime() > end) {
                fail(test, "the data was written, and its notification did not come");
                break;
            }
            progress(test->link->hca);
        }
    }
}

/**
 * Messages in flight together, one from and one to this process for each number.
 *
 * @param[in]  writes  this process writes; otherwise the other end does
 * @param[in]  reads   it is written to
 * @param[out] took    seconds of the writes
 *
 * @return true if they succeeded at both sides
 */
static bool exchange(test_t *test, side_t *from, side_t *to, int count, bool writes, bool reads,
                     double *took)
{
    const info_link_t *link = test->link;
    mca_btl_umr_key_t *keys[BATCH] = {NULL};
    uint64_t key_counts[BATCH];
    done_t put = {0, 0};
    int posted = 0, reserved = 0;

    for (int i = 0; i < count; ++i) {
        fins[i] = 0;
        side_open(test, &to[i], MCA_BTL_UMR_REMOTE);
        if (test->ok) {
            side_open(test, &from[i], MCA_BTL_UMR_LOCAL);
        }
    }
    for (int i = 0; i < count; ++i) {
        side_ready(test, &to[i]);
        side_ready(test, &from[i]);
        if (reads && test->ok) {
            if (OPAL_SUCCESS == link->hca->fin_reserve(link->endpoint)) {
                ++reserved;
            } else {
                fail(test, "no receive for a notification");
            }
        }
    }
    if (agree(test)) {
        double start;

        swap_keys(test, to, count, keys, key_counts);
        start = MPI_Wtime();
        for (uint32_t i = 0; writes && i < (uint32_t) count && test->ok; ++i) {
            int rc = link->hca->put(link->endpoint, from[i].keyset, keys[i], key_counts[i], &i,
                                    done, &put);

            if (OPAL_SUCCESS != rc) {
                fail(test, "%s (error %d)",
                     link->hca->endpoint_broken(link->endpoint) ? "the connection broke"
                                                                : "the HCA refuses a write",
                     rc);
            } else {
                ++posted;
            }
        }
        if (wait_for(test, &put, posted) && 0 < put.failures) {
            fail(test, "the write failed: the ports do not reach each other, or a key was refused");
        }
        *took = MPI_Wtime() - start;
        if (agree(test) && reads) {
            wait_fins(test, count);
        }
        for (int i = 0; reads && i < count && test->ok; ++i) {
            check(test, &to[i]);
        }
        (void) agree(test);
    }
    for (int i = 0; i < count; ++i) {
        if (i < reserved && 0 == fins[i]) {
            link->hca->fin_cancel(link->endpoint);
        }
        side_close(test, &from[i]);
        side_close(test, &to[i]);
        free(keys[i]);
    }
    return test->ok;
}

/** Writes of 8 bytes, the first ones. */
static bool first_writes(test_t *test)
{
    bool ok = true;

    for (int turn = 0; turn < (test->link->alone ? 1 : 2) && ok; ++turn) {
        bool writes = test->link->first == (0 == turn);
        side_t from = {.area = test->from, .size = 4096, .layout = contiguous(8), .salt = 1};
        side_t to = {.area = test->to, .size = 4096, .layout = contiguous(8), .salt = 1};
        double took = 0;

        ok = exchange(test, &from, &to, 1, writes, !writes || test->link->alone, &took);
        if (writes) {
            test->traffic->first_write = took;
        }
    }
    return ok;
}

/** Large writes, some in flight, in one direction after the other. */
static bool bandwidth(test_t *test)
{
    const info_link_t *link = test->link;

    for (int turn = 0; turn < (link->alone ? 1 : 2); ++turn) {
        side_t from = {.area = test->from, .size = LARGE, .layout = contiguous(LARGE), .salt = 2};
        side_t to = {.area = test->to, .size = LARGE, .layout = contiguous(LARGE), .salt = 2};
        mca_btl_umr_key_t *keys[1] = {NULL};
        uint64_t key_counts[1];
        done_t put = {0, 0};

        side_open(test, &to, MCA_BTL_UMR_REMOTE);
        if (test->ok) {
            side_open(test, &from, MCA_BTL_UMR_LOCAL);
        }
        side_ready(test, &to);
        side_ready(test, &from);
        if (agree(test)) {
            swap_keys(test, &to, 1, keys, key_counts);
            if (link->first == (0 == turn)) {
                double start = MPI_Wtime(), passed = 0;
                int posted = 0;

                while (test->ok && (BANDWIDTH_WRITES > posted || BANDWIDTH_SECONDS > passed)) {
                    if (OPAL_SUCCESS
                        != link->hca->put(link->endpoint, from.keyset, keys[0], key_counts[0], NULL,
                                          done, &put)) {
                        fail(test, "%s after %d writes of 1 MiB",
                             link->hca->endpoint_broken(link->endpoint) ? "the connection broke"
                                                                        : "no memory",
                             posted);
                        break;
                    }
                    ++posted;
                    (void) wait_for(test, &put, posted - WINDOW + 1);
                    passed = MPI_Wtime() - start;
                }
                (void) wait_for(test, &put, posted);
                passed = MPI_Wtime() - start;
                if (0 < put.failures) {
                    fail(test, "a write of 1 MiB failed");
                } else if (test->ok) {
                    test->traffic->bandwidth = posted * (double) LARGE / passed;
                }
            }
            if (agree(test) && (link->alone || link->first != (0 == turn))) {
                check(test, &to);
            }
            (void) agree(test);
        }
        side_close(test, &from);
        side_close(test, &to);
        free(keys[0]);
        if (!test->ok) {
            return false;
        }
    }
    return true;
}

/** Messages between odd layouts, in both directions at the same time. */
static bool odd_layouts(test_t *test)
{
    const info_link_t *link = test->link;
    uint64_t mapped = link->hca->stats()->keys_mapped;
    uint32_t sizes = 0x9e3779b9u; /* the same at both sides */
    double start = MPI_Wtime();
    bool more = true;

    for (int round = 0; more; ++round) {
        side_t from[BATCH], to[BATCH];
        double took;
        char go[2];

        memset(from, 0, sizeof(from));
        memset(to, 0, sizeof(to));
        for (int i = 0; i < BATCH; ++i) {
            uint64_t size = PIECES + random_below(&sizes, AREA / 2 - 2 * PIECES);

            from[i].area = test->from + i * AREA;
            to[i].area = test->to + i * AREA;
            from[i].size = to[i].size = AREA;
            from[i].salt = to[i].salt = (unsigned) (3 + BATCH * round + i);
            from[i].layout = random_layout(&test->seed, size, AREA);
            to[i].layout = random_layout(&test->seed, size, AREA);
        }
        if (!exchange(test, from, to, BATCH, true, true, &took)) {
            return false;
        }
        test->traffic->messages += BATCH;
        go[0] = (char) (ROUNDS > round + 1 || link->seconds > MPI_Wtime() - start);
        info_link_swap(link->hca, link->peer, &go[0], &go[1], 1);
        more = 0 != go[0] || 0 != go[1];
    }
    test->traffic->mkeys = (long long) (link->hca->stats()->keys_mapped - mapped);
    return true;
}

bool info_link_test(const info_link_t *link, info_traffic_t *traffic)
{
    test_t test = {.link = link, .traffic = traffic, .ok = true};
    double start = MPI_Wtime();
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    memset(traffic, 0, sizeof(*traffic));
    test.seed = 12345u + 7919u * (uint32_t) rank;
    link->hca->set_fin_handler(fin_handler, link->endpoint);
    if (OPAL_SUCCESS != link->hca->endpoint_connect(link->endpoint, &link->address)) {
        fail(&test, "the port does not connect to that of the other end");
    }
    traffic->connect = MPI_Wtime() - start;
    test.from = (unsigned char *) info_buffer_alloc(LARGE);
    test.to = (unsigned char *) info_buffer_alloc(LARGE);
    test.bytes = (unsigned char *) malloc(LARGE);
    test.expected = (unsigned char *) malloc(LARGE);
    if (NULL == test.from || NULL == test.to || NULL == test.bytes || NULL == test.expected) {
        fail(&test, "no memory");
    }
    (void) (agree(&test) && first_writes(&test) && bandwidth(&test) && odd_layouts(&test));
    link->hca->set_fin_handler(NULL, NULL);
    info_buffer_free(test.from);
    info_buffer_free(test.to);
    free(test.bytes);
    free(test.expected);
    return test.ok;
}
