/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Bytes from layout to layout. */

#include "harness.h"

#define ROOM   (1u << 20)
#define FILLER 0x5a

/** Two random layouts of the same size, in both directions; windows split on either side. Many jobs
 * do this, with other seeds of their layouts only in test/run --all. */
static void random_layouts(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    size_t most = harness.hca->caps()->key_limits.max_iovs, limit = most < 16384 ? most : 16384;
    unsigned char *area = malloc(ROOM);
    uint64_t mapped = stats->keys_mapped, entries = stats->key_entries, written = 0;
    uint64_t errors = stats->errors;
    unsigned rounds = NULL != getenv("UMRDDT_TEST_ALL") ? 60 : 12;

    for (unsigned round = 0; round < rounds; ++round) {
        uint64_t size = 1 + harness_random(0 == round % 4 ? 200000 : 9000);
        opal_iov_cache_layout_t *layouts[2];
        struct side side;
        bool send = (int) (round % 2) == harness.rank;
        uint64_t before = stats->bytes_written;

        /* Both make both: the same seed gives the same numbers. */
        layouts[0] = layout_random(size, ROOM, 1 + harness_random((uint32_t) (3 * limit)));
        layouts[1] = layout_random(size, ROOM, 1 + harness_random((uint32_t) (3 * limit)));
        side.chunk = 1 + harness_random((uint32_t) size);
        side.max_keys = 1 + harness_random(40);
        side.layout = layouts[send ? 0 : 1];
        side.buffer = area;
        memset(area, FILLER, ROOM);
        if (send) {
            layout_fill(area, side.layout, round);
        }
        message(send, &side, size, round);
        layout_check(area, ROOM, area, side.layout, size, round, FILLER);
        if (send) {
            CHECK(size == stats->bytes_written - before, "the counter says %llu of %llu",
                  (unsigned long long) (stats->bytes_written - before), (unsigned long long) size);
            written += size;
        }
        OBJ_RELEASE(layouts[0]);
        OBJ_RELEASE(layouts[1]);
    }
    CHECK(stats->keys_mapped > mapped, "no mkey was used");
    CHECK(stats->key_entries - entries > stats->keys_mapped - mapped,
          "no list was longer than one");
    CHECK(0 < written, "nothing was sent");
    CHECK(errors == stats->errors, "%llu errors", (unsigned long long) (stats->errors - errors));
    CHECK(0 == stats->mkeys_used_now, "%llu mkeys still in use",
          (unsigned long long) stats->mkeys_used_now);
    free(area);
}

/** Contiguous on both sides: no mkey, one write. */
static void plain_keys(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    mca_btl_umr_stats_t before = *stats;
    opal_iov_cache_layout_t *layout = layout_vector(1, 70000, 70000);
    unsigned char *area = malloc(80000);
    struct side side = {area + 100, layout, 0, 16};
    bool send = 0 == harness.rank;

    memset(area, FILLER, 80000);
    if (send) {
        layout_fill(side.buffer, layout, 1);
    }
    message(send, &side, 70000, 77);
    layout_check(area, 80000, side.buffer, layout, 70000, 1, FILLER);
    CHECK(before.keys_mapped == stats->keys_mapped, "an mkey for a contiguous buffer");
    CHECK(before.keys_plain + 1 == stats->keys_plain, "%llu plain keys",
          (unsigned long long) (stats->keys_plain - before.keys_plain));
    CHECK(before.writes_posted + (send ? 1 + harness_notifications(70000) : 0)
              == stats->writes_posted,
          "%llu writes", (unsigned long long) (stats->writes_posted - before.writes_posted));
    OBJ_RELEASE(layout);
    free(area);
}

/** Only a part of the capacity of the receiver's layout; the rest does not change. */
static void shorter_message(void)
{
    opal_iov_cache_layout_t *layouts[2] = {layout_vector(40, 100, 250), layout_vector(200, 64, 80)};
    unsigned char *area = malloc(ROOM);
    bool send = 1 == harness.rank;
    struct side side = {area, layouts[send ? 0 : 1], 0, 64};

    memset(area, FILLER, ROOM);
    if (send) {
        layout_fill(area, side.layout, 9);
    }
    message(send, &side, 3333, 5);
    if (!send) {
        layout_check(area, ROOM, area, side.layout, 3333, 9, FILLER);
    }
    OBJ_RELEASE(layouts[0]);
    OBJ_RELEASE(layouts[1]);
    free(area);
}

/** Negative offsets: the buffer address lies behind the data. */
static void negative_offsets(void)
{
    opal_iov_cache_layout_t *layout = layout_vector(30, 50, -120);
    unsigned char *area = malloc(8192);
    bool send = 0 == harness.rank;
    struct side side = {area + 8000, layout, 0, 64};

    memset(area, FILLER, 8192);
    if (send) {
        layout_fill(side.buffer, layout, 3);
    }
    message(send, &side, layout->size, 6);
    layout_check(area, 8192, side.buffer, layout, layout->size, 3, FILLER);
    OBJ_RELEASE(layout);
    free(area);
}

/**
 * More puts at once than entries of the send queue, each of many writes: no credit is lost or used
 * twice, and the FINs come in the order of the calls. (Run with a small btl_umr_sq_depth.)
 */
static void many_puts(void)
{
    enum {
        PUTS = 40,
        PIECES = 48,
        LENGTH = 24
    };
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    opal_iov_cache_layout_t *layout = layout_vector(PIECES, LENGTH, 64);
    size_t room = (size_t) PUTS * PIECES * 64;
    unsigned char *area = malloc(room);
    mca_btl_umr_keyset_t *keysets[PUTS];
    mca_btl_umr_memory_t *memories[PUTS];
    struct done done[PUTS];
    bool send = 0 == harness.rank;
    size_t first = harness.fin_count;
    uint64_t writes = stats->writes_posted;

    memset(area, FILLER, room);
    for (size_t i = 0; i < PUTS; ++i) {
        /* chunks of a piece: a write each */
        struct side side = {area + i * PIECES * 64, layout, LENGTH, SIZE_MAX};

        if (send) {
            layout_fill(side.buffer, layout, (unsigned) i);
        }
        keysets[i] = keyset_of(send ? MCA_BTL_UMR_LOCAL : MCA_BTL_UMR_REMOTE, &side, layout->size,
                               &memories[i]);
    }
    if (send) {
        for (uint32_t i = 0; i < PUTS; ++i) {
            size_t count;
            mca_btl_umr_key_t *remote = keys_receive(&count);

            done[i].calls = 0;
            CHECK_RC(OPAL_SUCCESS, harness.hca->put(harness.endpoint, keysets[i], remote, count, &i,
                                                    harness_done, &done[i]));
            free(remote);
        }
        for (size_t i = 0; i < PUTS; ++i) {
            WAIT_UNTIL(0 < done[i].calls);
            CHECK(1 == done[i].calls && OPAL_SUCCESS == done[i].status, "put %zu: %d calls, %d", i,
                  done[i].calls, done[i].status);
        }
        CHECK(PUTS * (PIECES + harness_notifications(LENGTH)) == stats->writes_posted - writes,
              "%llu writes", (unsigned long long) (stats->writes_posted - writes));
    } else {
        for (size_t i = 0; i < PUTS; ++i) {
            CHECK_RC(OPAL_SUCCESS, harness.hca->fin_reserve(harness.endpoint));
            keys_send(keysets[i]);
        }
        WAIT_UNTIL(PUTS == harness.fin_count - first);
        for (size_t i = 0; i < PUTS; ++i) {
            CHECK(i == harness.fins[first + i], "FIN %u in place %zu", harness.fins[first + i], i);
            layout_check(area + i * PIECES * 64, (size_t) PIECES * 64, area + i * PIECES * 64,
                         layout, layout->size, (unsigned) i, FILLER);
        }
    }
    harness_barrier();
    for (size_t i = 0; i < PUTS; ++i) {
        harness.hca->keyset_release(keysets[i]);
        harness.hca->memory_release(memories[i]);
    }
    OBJ_RELEASE(layout);
    free(area);
}

/** As many FINs as there are receives can be reserved; each comes back when its FIN has come. */
static void fin_credits(void)
{
    opal_iov_cache_layout_t *layout = layout_vector(1, 16, 16);
    unsigned char area[64];
    struct side side = {area, layout, 0, 1};
    unsigned reserved = 0;
    int rc;

    while (OPAL_SUCCESS == (rc = harness.hca->fin_reserve(harness.endpoint))) {
        CHECK(8192 >= ++reserved, "no end of credits");
    }
    CHECK_RC(OPAL_ERR_OUT_OF_RESOURCE, rc);
    CHECK(2 <= reserved, "only %u", reserved);
    harness.hca->fin_cancel(harness.endpoint);
    CHECK_RC(OPAL_SUCCESS, harness.hca->fin_reserve(harness.endpoint));
    CHECK_RC(OPAL_ERR_OUT_OF_RESOURCE, harness.hca->fin_reserve(harness.endpoint));
    for (unsigned i = 0; i < reserved; ++i) {
        harness.hca->fin_cancel(harness.endpoint);
    }

    /* Many more messages in each direction than there are receives. */
    for (unsigned i = 0; i < 5 * reserved; ++i) {
        message((int) (i % 2) == harness.rank, &side, 16, i);
    }
    for (unsigned i = 0; i < reserved; ++i) {
        CHECK_RC(OPAL_SUCCESS, harness.hca->fin_reserve(harness.endpoint));
    }
    CHECK_RC(OPAL_ERR_OUT_OF_RESOURCE, harness.hca->fin_reserve(harness.endpoint));
    for (unsigned i = 0; i < reserved; ++i) {
        harness.hca->fin_cancel(harness.endpoint);
    }
    OBJ_RELEASE(layout);
}

/** What put refuses without posting. */
static void bad_puts(void)
{
    opal_iov_cache_layout_t *layout = layout_vector(8, 16, 64);
    unsigned char *area = calloc(1, 1024);
    struct side side = {area, layout, 0, SIZE_MAX};
    mca_btl_umr_memory_t *memory;
    mca_btl_umr_keyset_t *keyset = keyset_of(MCA_BTL_UMR_LOCAL, &side, layout->size, &memory);
    mca_btl_umr_key_t remote = {0, layout->size - 1, 1, 0};
    mca_btl_umr_key_t two[2] = {{0, layout->size, 1, 0}, {0, 0, 1, 0}};
    uint64_t writes = harness.hca->stats()->writes_posted;

    CHECK_RC(OPAL_ERR_BAD_PARAM,
             harness.hca->put(harness.endpoint, keyset, &remote, 1, NULL, harness_done, NULL));
    CHECK_RC(OPAL_ERR_BAD_PARAM,
             harness.hca->put(harness.endpoint, keyset, two, 2, NULL, harness_done, NULL));
    CHECK_RC(OPAL_ERR_BAD_PARAM,
             harness.hca->put(harness.endpoint, keyset, &remote, 0, NULL, harness_done, NULL));
    CHECK(writes == harness.hca->stats()->writes_posted, "something was posted");
    harness.hca->keyset_release(keyset);
    harness.hca->memory_release(memory);
    OBJ_RELEASE(layout);
    free(area);
}

/** Everything closed and opened again, in one process. */
static void again(void)
{
    harness_disconnect();
    harness_connect();
    plain_keys();
}

const struct test put_tests[] = {
    {"random_layouts", random_layouts},
    {"plain_keys", plain_keys},
    {"shorter_message", shorter_message},
    {"negative_offsets", negative_offsets},
    {"many_puts", many_puts},
    {"fin_credits", fin_credits},
    {"bad_puts", bad_puts},
    {"again", again},
    {NULL, NULL},
};
