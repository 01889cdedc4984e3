/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Keys: how many, for whom, and for how long. */

#include "harness.h"

#define FILLER 0x33

/** Each role has its half of the mkeys; a release gives one back. (Run with 8 mkeys.) */
static void budgets(void)
{
    enum {
        MOST = 64,
        BUDGET = 4
    };
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    size_t budget = BUDGET, count = 0;
    opal_iov_cache_layout_t *layout = layout_vector(2, 32, 100);
    mca_btl_umr_keyset_t *keysets[2][MOST], *more;
    unsigned char *area = calloc(1, 4096);
    mca_btl_umr_memory_t *memory;
    struct done done = {0, 0};

    CHECK(BUDGET <= harness.hca->caps()->max_keys, "%zu keys", harness.hca->caps()->max_keys);
    CHECK_RC(OPAL_SUCCESS,
             harness.hca->memory_register(MCA_BTL_UMR_REMOTE, area, layout, layout->size, &memory));
    for (int role = 0; MCA_BTL_UMR_ROLE_MAX > role; ++role) {
        int rc;

        for (count = 0; MOST > count; ++count) {
            rc = harness.hca->keyset_map(role, area, layout, memory, 0, 0, layout->size, 4,
                                         harness_done, &done, &keysets[role][count]);
            if (OPAL_SUCCESS != rc) {
                break;
            }
            CHECK(!keysets[role][count]->ready, "ready before its mapping is complete");
        }
        CHECK_RC(OPAL_ERR_OUT_OF_RESOURCE, rc);
        CHECK(budget == count, "role %d got %zu keys of %zu", role, count, budget);
    }
    WAIT_UNTIL((int) (2 * budget) == done.calls);
    CHECK(2 * budget == stats->mkeys_used_now, "%llu in use",
          (unsigned long long) stats->mkeys_used_now);

    for (int role = 0; MCA_BTL_UMR_ROLE_MAX > role; ++role) {
        harness.hca->keyset_release(keysets[role][0]);
        harness_progress_for(0.02);
        CHECK_RC(OPAL_SUCCESS,
                 harness.hca->keyset_map(role, area, layout, memory, 0, 0, layout->size, 4,
                                         harness_done, &done, &keysets[role][0]));
        CHECK_RC(OPAL_ERR_OUT_OF_RESOURCE,
                 harness.hca->keyset_map(role, area, layout, memory, 0, 0, layout->size, 4,
                                         harness_done, &done, &more));
    }
    /* Released while their mapping is still pending: done is not called. */
    done.calls = 0;
    for (int role = 0; MCA_BTL_UMR_ROLE_MAX > role; ++role) {
        for (size_t i = 0; i < budget; ++i) {
            harness.hca->keyset_release(keysets[role][i]);
        }
    }
    harness_progress_for(0.1);
    CHECK(0 == done.calls, "%d calls for keysets that were released", done.calls);
    CHECK(0 == stats->mkeys_used_now, "%llu in use", (unsigned long long) stats->mkeys_used_now);
    CHECK(2 * budget >= stats->mkeys_now, "%llu mkeys", (unsigned long long) stats->mkeys_now);

    /* Longer than the budget: as far as it reaches. */
    OBJ_RELEASE(layout);
    harness.hca->memory_release(memory);
    layout = layout_vector(20 * 8, 8, 16);
    CHECK_RC(OPAL_SUCCESS,
             harness.hca->memory_register(MCA_BTL_UMR_LOCAL, area, layout, layout->size, &memory));
    CHECK_RC(OPAL_SUCCESS,
             harness.hca->keyset_map(MCA_BTL_UMR_LOCAL, area, layout, memory, 16, 0, layout->size,
                                     SIZE_MAX, harness_done, &done, &more));
    CHECK(budget == more->count, "%zu keys of %zu", more->count, budget);
    CHECK(16 * budget == more->end, "ends at %llu", (unsigned long long) more->end);
    WAIT_UNTIL(more->ready);
    harness.hca->keyset_release(more);
    harness.hca->memory_release(memory);
    OBJ_RELEASE(layout);
    free(area);
}

/** More mappings at once than entries of the queue pair for mappings; all complete, in order. */
static void many_mappings(void)
{
    enum {
        KEYS = 200,
        SETS = 5
    };
    opal_iov_cache_layout_t *layout = layout_vector(2 * KEYS, 4, 16);
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    unsigned char *area = calloc(1, 2 * KEYS * 16);
    mca_btl_umr_keyset_t *keysets[SETS];
    mca_btl_umr_memory_t *memory;
    struct done done[SETS];
    uint64_t mapped = stats->keys_mapped;

    memset(done, 0, sizeof(done));
    CHECK_RC(OPAL_SUCCESS,
             harness.hca->memory_register(MCA_BTL_UMR_REMOTE, area, layout, layout->size, &memory));
    for (size_t i = 0; i < SETS; ++i) {
        CHECK_RC(OPAL_SUCCESS, harness.hca->keyset_map(MCA_BTL_UMR_REMOTE, area, layout, memory, 8,
                                                       0, layout->size, SIZE_MAX, harness_done,
                                                       &done[i], &keysets[i]));
        CHECK(KEYS == keysets[i]->count, "%zu keys", keysets[i]->count);
    }
    for (size_t i = 0; i < SETS; ++i) {
        if (3 == i) {
            /* Forgotten while it waits or is being mapped. */
            continue;
        }
        if (2 == i) {
            harness.hca->keyset_release(keysets[3]);
        }
        WAIT_UNTIL(0 < done[i].calls);
        CHECK(OPAL_SUCCESS == done[i].status && keysets[i]->ready, "keyset %zu", i);
        if (0 < i && 3 != i - 1) {
            CHECK(0 < done[i - 1].calls, "keyset %zu before %zu", i, i - 1);
        }
    }
    CHECK(0 == done[3].calls || 1 == done[3].calls, "called twice");
    CHECK(stats->keys_mapped - mapped >= (SETS - 1) * KEYS, "%llu mapped",
          (unsigned long long) (stats->keys_mapped - mapped));
    for (size_t i = 0; i < SETS; ++i) {
        if (3 != i) {
            harness.hca->keyset_release(keysets[i]);
        }
    }
    harness.hca->memory_release(memory);
    harness_progress_for(0.2);
    CHECK(0 == stats->mkeys_used_now, "%llu in use", (unsigned long long) stats->mkeys_used_now);
    OBJ_RELEASE(layout);
    free(area);
}

/** What keyset_map refuses. */
static void bad_ranges(void)
{
    opal_iov_cache_layout_t *layout = layout_vector(4, 32, 100), *other = layout_vector(4, 32, 100);
    unsigned char area[512];
    mca_btl_umr_memory_t *memory;
    mca_btl_umr_keyset_t *keyset = NULL;
    const struct {
        const opal_iov_cache_layout_t *layout;
        unsigned char *buffer;
        uint64_t start, end;
        size_t max_keys;
        mca_btl_umr_role_t role;
    } bad[] = {
        {layout, area, 0, 129, 4, MCA_BTL_UMR_LOCAL},    /* beyond the layout */
        {layout, area, 64, 128, 4, MCA_BTL_UMR_LOCAL},   /* beyond the memory */
        {layout, area, 64, 64, 4, MCA_BTL_UMR_LOCAL},    /* empty */
        {layout, area, 0, 64, 0, MCA_BTL_UMR_LOCAL},     /* no key */
        {other, area, 0, 64, 4, MCA_BTL_UMR_LOCAL},      /* another layout's memory */
        {layout, area + 1, 0, 64, 4, MCA_BTL_UMR_LOCAL}, /* another buffer's */
        {layout, area, 0, 64, 4, MCA_BTL_UMR_REMOTE},    /* registered for reading */
    };

    CHECK_RC(OPAL_SUCCESS,
             harness.hca->memory_register(MCA_BTL_UMR_LOCAL, area, layout, 100, &memory));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); ++i) {
        int rc = harness.hca->keyset_map(bad[i].role, bad[i].buffer, bad[i].layout, memory, 0,
                                         bad[i].start, bad[i].end, bad[i].max_keys, harness_done,
                                         NULL, &keyset);
        CHECK(OPAL_ERR_BAD_PARAM == rc && NULL == keyset, "case %zu: %d", i, rc);
    }
    harness.hca->memory_release(memory);
    OBJ_RELEASE(layout);
    OBJ_RELEASE(other);
}

/** Write through the first key of @p keys although it is not ours to use: must fail and leave no
 * byte. */
static void write_stale(const mca_btl_umr_key_t *key)
{
    opal_iov_cache_layout_t *layout = layout_vector(1, key->length, (int64_t) key->length);
    unsigned char *area = malloc(key->length);
    struct side side = {area, layout, 0, 1};
    mca_btl_umr_memory_t *memory;
    mca_btl_umr_keyset_t *keyset;
    struct done done = {0, 0};

    memset(area, 0xee, key->length);
    keyset = keyset_of(MCA_BTL_UMR_LOCAL, &side, key->length, &memory);
    CHECK_RC(OPAL_SUCCESS,
             harness.hca->put(harness.endpoint, keyset, key, 1, NULL, harness_done, &done));
    WAIT_UNTIL(0 < done.calls);
    CHECK(OPAL_ERR_UNREACH == done.status, "status %d: the key still works", done.status);
    CHECK(harness.hca->endpoint_broken(harness.endpoint), "not broken");
    harness.hca->keyset_release(keyset);
    harness.hca->memory_release(memory);
    OBJ_RELEASE(layout);
    free(area);
}

enum stale {
    RELEASED,
    REMAPPED,
    LOCAL_KEY,
    CONTIGUOUS,
    LONG_LIST
};

static void stale(enum stale kind)
{
    opal_iov_cache_layout_t *layout = CONTIGUOUS == kind  ? layout_vector(1, 500, 500)
                                      : LONG_LIST == kind ? layout_random(1000, 4096, 300)
                                                          : layout_vector(4, 64, 256);
    unsigned char *area = malloc(4096);
    struct side side = {area, layout, 0, 4};
    bool send = 0 == harness.rank;

    memset(area, FILLER, 4096);
    if (send) {
        mca_btl_umr_key_t *keys;
        size_t count;

        keys = keys_receive(&count);
        harness_barrier(); /* from here on the key is not to be used */
        write_stale(&keys[0]);
        harness_barrier();
        free(keys);
    } else {
        mca_btl_umr_role_t role = LOCAL_KEY == kind ? MCA_BTL_UMR_LOCAL : MCA_BTL_UMR_REMOTE;
        mca_btl_umr_memory_t *memory;
        mca_btl_umr_keyset_t *keyset = keyset_of(role, &side, layout->size, &memory);
        uint32_t rkey = keyset->keys[0].rkey;

        keys_send(keyset);
        if (LOCAL_KEY != kind) {
            harness.hca->keyset_release(keyset);
        }
        if (REMAPPED == kind) {
            /* Until it is the same mkey's turn. */
            mca_btl_umr_keyset_t *again = NULL;

            for (size_t i = 0; NULL == again && i < 256; ++i) {
                struct done done = {0, 0};

                CHECK_RC(OPAL_SUCCESS,
                         harness.hca->keyset_map(role, area, layout, memory, 0, 0, layout->size, 1,
                                                 harness_done, &done, &again));
                WAIT_UNTIL(0 < done.calls);
                if ((again->keys[0].rkey & ~0xffu) != (rkey & ~0xffu)) {
                    harness.hca->keyset_release(again);
                    again = NULL;
                }
            }
            CHECK(NULL != again, "the mkey does not come back");
            CHECK(again->keys[0].rkey != rkey, "the same key again");
            harness_barrier();
            harness_barrier();
            harness.hca->keyset_release(again);
        } else {
            harness_progress_for(0.2);
            harness_barrier();
            harness_barrier();
            if (LOCAL_KEY == kind) {
                harness.hca->keyset_release(keyset);
            }
        }
        for (size_t i = 0; i < 4096; ++i) {
            CHECK(FILLER == area[i], "byte %zu was written through a stale key", i);
        }
        harness.hca->memory_release(memory);
    }
    OBJ_RELEASE(layout);
    free(area);
}

static void stale_released(void)
{
    stale(RELEASED);
}

static void stale_remapped(void)
{
    stale(REMAPPED);
}

/** An mkey with a list in memory. */
static void stale_long(void)
{
    stale(LONG_LIST);
}

static void stale_local(void)
{
    stale(LOCAL_KEY);
}

/** One piece, and still a key of its own. (Run with btl_umr_plain_keys=0.) */
static void stale_contiguous(void)
{
    stale(CONTIGUOUS);
}

const struct test key_tests[] = {
    {"budgets", budgets},
    {"many_mappings", many_mappings},
    {"bad_ranges", bad_ranges},
    {"stale_released", stale_released},
    {"stale_remapped", stale_remapped},
    {"stale_long", stale_long},
    {"stale_local", stale_local},
    {"stale_contiguous", stale_contiguous},
    {NULL, NULL},
};
