/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Keys over keys: what they hold, their budgets, and that none of their keys outlives them.
 */

#include "harness.h"

#define FILLER 0x77

/** Lists of lengths about what one key holds over others. (Run with lists of 256, so of 64 * 256.)
 */
static void nested_lengths(void)
{
    static const size_t counts[] = {255,  256,   257,   258,   511,   512,   513,
                                    8191, 16383, 16384, 16385, 16386, 16641, 30000};

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); ++i) {
        tiers_list_of(counts[i], 256, 64);
    }
}

/** Blocks in rows in planes: a strided key a plane, one over them. (Run without lists in memory.)
 */
static void nested_strided(void)
{
    enum {
        PLANES = 20,
        ROWS = 100,
        BLOCK = 8,
        ROW = 24,
        PLANE = ROWS * ROW + 40
    };
    opal_iov_cache_iov_t *iovs = malloc(PLANES * ROWS * sizeof(*iovs));
    opal_iov_cache_limits_t limits;
    opal_iov_cache_layout_t *layout;
    mca_btl_umr_stats_t used;

    for (size_t i = 0; i < PLANES * ROWS; ++i) {
        iovs[i].offset = (int64_t) (i / ROWS * PLANE + i % ROWS * ROW);
        iovs[i].length = BLOCK;
    }
    layout = layout_list(iovs, PLANES * ROWS);
    free(iovs);
    harness.hca->key_limits(layout, &limits);
    CHECK(PLANES * ROWS <= limits.max_iovs, "%zu pieces", limits.max_iovs);
    tiers_transfer(layout, layout, PLANES * PLANE, &used);
    CHECK(PLANES + 1 == used.keys_mapped && PLANES == used.keys_strided && 1 == used.keys_nested,
          "%llu keys, %llu strided, %llu over others", (unsigned long long) used.keys_mapped,
          (unsigned long long) used.keys_strided, (unsigned long long) used.keys_nested);
    CHECK(2 * PLANES == used.key_entries, "%llu entries", (unsigned long long) used.key_entries);
    CHECK((0 == harness.rank ? 1 + harness_notifications(layout->size) : 0) == used.writes_posted,
          "%llu writes", (unsigned long long) used.writes_posted);
    OBJ_RELEASE(layout);
}

/** A buffer with its layout, and the keys of it. */
struct mapped {
    unsigned char *area;
    mca_btl_umr_memory_t *memory;
    mca_btl_umr_keyset_t *keyset;
};

/** Map it for a peer. @return the number of mkeys */
static uint64_t map(struct mapped *mapped, const opal_iov_cache_layout_t *layout, size_t room)
{
    uint64_t before = harness.hca->stats()->mkeys_used_now;
    struct done done = {0, 0};

    if (NULL == mapped->area) {
        mapped->area = calloc(1, room);
    }
    CHECK_RC(OPAL_SUCCESS, harness.hca->memory_register(MCA_BTL_UMR_REMOTE, mapped->area, layout,
                                                        layout->size, &mapped->memory));
    CHECK_RC(OPAL_SUCCESS,
             harness.hca->keyset_map(MCA_BTL_UMR_REMOTE, mapped->area, layout, mapped->memory, 0, 0,
                                     layout->size, SIZE_MAX, harness_done, &done, &mapped->keyset));
    WAIT_UNTIL(mapped->keyset->ready);
    return harness.hca->stats()->mkeys_used_now - before;
}

static void unmap(struct mapped *mapped, bool keep)
{
    if (keep) {
        harness.hca->keyset_keep(mapped->keyset);
    } else {
        harness.hca->keyset_release(mapped->keyset);
    }
    harness.hca->memory_release(mapped->memory);
}

/**
 * All of the mkeys or those for the first window only; what is had in vain comes back. (Run with 8
 * mkeys, 4 of which a role has, and lists in work requests.)
 */
static void nested_budget(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    uint64_t mkeys = stats->mkeys_used_now;
    opal_iov_cache_layout_t *layout, *small;
    struct mapped a = {0}, b = {0}, c = {0}, d = {0};
    mca_btl_umr_keyset_t *none = NULL;
    mca_btl_umr_stats_t used;
    size_t room, small_room;

    layout = tiers_irregular(104, &room);
    small = tiers_irregular(52, &small_room);
    CHECK(3 == map(&a, layout, room), "not two lists and one over them");
    CHECK(1 == a.keyset->count && layout->size == a.keyset->end, "%zu keys", a.keyset->count);
    CHECK(1 == map(&b, layout, room), "%llu mkeys",
          (unsigned long long) (stats->mkeys_used_now - mkeys));
    CHECK(1 == b.keyset->count && layout->size > b.keyset->end, "%zu keys", b.keyset->count);
    CHECK_RC(OPAL_ERR_OUT_OF_RESOURCE,
             harness.hca->keyset_map(MCA_BTL_UMR_REMOTE, b.area, layout, b.memory, 0, 0,
                                     layout->size, SIZE_MAX, harness_done, NULL, &none));
    unmap(&b, false);
    harness_progress_for(0.05);
    unmap(&a, false);
    harness_progress_for(0.05);

    /* Two lists, but nothing to put over them: they are two keys. */
    CHECK(1 == map(&c, small, small_room) && 1 == map(&d, small, small_room), "not one list");
    CHECK(2 == map(&b, layout, room), "%llu mkeys",
          (unsigned long long) (stats->mkeys_used_now - mkeys));
    CHECK(2 == b.keyset->count && layout->size == b.keyset->end, "%zu keys", b.keyset->count);
    unmap(&b, false);
    unmap(&d, false);
    harness_progress_for(0.05);

    CHECK(3 == map(&b, layout, room) && layout->size == b.keyset->end, "not two and one over them");
    unmap(&b, false);
    unmap(&c, false);
    harness_progress_for(0.05);
    CHECK(mkeys == stats->mkeys_used_now, "%llu mkeys are still taken",
          (unsigned long long) (stats->mkeys_used_now - mkeys));
    free(a.area);
    free(b.area);
    free(c.area);
    free(d.area);
    harness_barrier();
    tiers_transfer(layout, layout, room, &used);
    CHECK(1 == used.keys_nested, "%llu over others", (unsigned long long) used.keys_nested);
    OBJ_RELEASE(layout);
    OBJ_RELEASE(small);
}

/**
 * Kept ones give their mkeys, those below others too, to who needs them; those in use do not. (Run
 * as nested_budget.)
 */
static void nested_gives_way(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    mca_btl_umr_stats_t before = *stats;
    struct mapped a = {0}, b = {0}, c = {0};
    opal_iov_cache_layout_t *layout;
    uint32_t rkey;
    size_t room;

    layout = tiers_irregular(104, &room);
    (void) map(&a, layout, room);
    rkey = a.keyset->keys[0].rkey;
    unmap(&a, true);
    CHECK(0 == map(&a, layout, room) && rkey == a.keyset->keys[0].rkey, "not found");
    CHECK(1 == stats->keyset_hits - before.keyset_hits, "no hit");
    unmap(&a, true);

    CHECK(0 == map(&b, layout, room), "three new ones are not those of the kept one");
    CHECK(layout->size == b.keyset->end && 1 == b.keyset->count, "%zu keys", b.keyset->count);
    CHECK(1 == stats->keyset_evictions - before.keyset_evictions, "%llu evictions",
          (unsigned long long) (stats->keyset_evictions - before.keyset_evictions));
    /* b is in use: c gets the remainder. */
    CHECK(1 == map(&c, layout, room) && layout->size > c.keyset->end, "b has lost something");
    CHECK(1 == stats->keyset_evictions - before.keyset_evictions, "evicted in use");
    unmap(&c, false);
    unmap(&b, true);
    harness_progress_for(0.05);
    CHECK(0 == map(&b, layout, room), "b is gone");
    unmap(&b, false);
    harness_progress_for(0.05);
    free(a.area);
    free(b.area);
    free(c.area);
    OBJ_RELEASE(layout);
}

/** The same of lists in memory, below a key of the pool. (Run with 4 long mkeys, 2 a role.) */
static void nested_long_gives_way(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    mca_btl_umr_stats_t before = *stats;
    struct mapped a = {0}, b = {0};
    opal_iov_cache_layout_t *layout;
    size_t room;

    layout = tiers_irregular(512, &room);
    CHECK(3 == map(&a, layout, room), "not two lists and one over them");
    unmap(&a, true);
    CHECK(0 == map(&b, layout, room) && 1 == b.keyset->count, "%zu keys", b.keyset->count);
    CHECK(4 == stats->keys_long - before.keys_long, "%llu lists in memory",
          (unsigned long long) (stats->keys_long - before.keys_long));
    CHECK(1 == stats->keyset_evictions - before.keyset_evictions, "%llu evictions",
          (unsigned long long) (stats->keyset_evictions - before.keyset_evictions));
    unmap(&b, false);
    harness_progress_for(0.05);
    free(a.area);
    free(b.area);
    OBJ_RELEASE(layout);
}

/**
 * Abandoned with a mapping that no caller waits for, while the next one has no memory: its end is
 * still detected. (Run with memory for one list.)
 */
static void nested_given_up_late(void)
{
    enum {
        BLOCKS = 2000,
        PIECES = 300
    };
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    uint64_t mkeys = stats->mkeys_used_now;
    opal_iov_cache_iov_t *iovs = malloc((BLOCKS + PIECES) * sizeof(*iovs));
    opal_iov_cache_layout_t *list, *both;
    size_t room, both_room;
    struct mapped a = {0}, b = {0};
    struct done done = {0, 0};
    int64_t offset = 0;

    for (size_t i = 0; i < BLOCKS + PIECES; ++i) {
        iovs[i].offset = offset;
        iovs[i].length = 4;
        offset += i < BLOCKS ? 12 : 5 + harness_random(20);
    }
    both = layout_list(iovs, BLOCKS + PIECES);
    both_room = (size_t) offset + 4;
    free(iovs);
    list = tiers_irregular(250, &room);
    a.area = calloc(1, room);
    b.area = calloc(1, both_room);
    CHECK_RC(OPAL_SUCCESS,
             harness.hca->memory_register(MCA_BTL_UMR_LOCAL, a.area, list, list->size, &a.memory));
    CHECK_RC(OPAL_SUCCESS,
             harness.hca->memory_register(MCA_BTL_UMR_LOCAL, b.area, both, both->size, &b.memory));
    CHECK_RC(OPAL_SUCCESS,
             harness.hca->keyset_map(MCA_BTL_UMR_LOCAL, a.area, list, a.memory, 0, 0, list->size,
                                     SIZE_MAX, harness_done, &done, &a.keyset));
    CHECK_RC(OPAL_SUCCESS,
             harness.hca->keyset_map(MCA_BTL_UMR_LOCAL, b.area, both, b.memory, 0, 0, both->size,
                                     SIZE_MAX, harness_done, &done, &b.keyset));
    CHECK(1 == b.keyset->count && 5 <= stats->mkeys_used_now - mkeys, "%llu mkeys",
          (unsigned long long) (stats->mkeys_used_now - mkeys));
    harness.hca->keyset_release(b.keyset);
    WAIT_UNTIL(1 == stats->mkeys_used_now - mkeys);
    WAIT_UNTIL(a.keyset->ready);
    CHECK(1 == done.calls, "%d calls", done.calls);
    harness.hca->keyset_release(a.keyset);
    harness.hca->memory_release(a.memory);
    harness.hca->memory_release(b.memory);
    free(a.area);
    free(b.area);
    OBJ_RELEASE(list);
    OBJ_RELEASE(both);
}

/** Abandoned while lists wait for memory: no memory stays allocated. (Run with memory for one
 * list.) */
static void nested_given_up(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    uint64_t mkeys = stats->mkeys_used_now;
    opal_iov_cache_layout_t *layout;
    mca_btl_umr_stats_t used;
    size_t room;

    layout = tiers_irregular(5000, &room);
    for (int i = 0; i < 4; ++i) {
        struct mapped a = {.area = calloc(1, room)};
        struct done done = {0, 0};

        CHECK_RC(OPAL_SUCCESS, harness.hca->memory_register(MCA_BTL_UMR_REMOTE, a.area, layout,
                                                            layout->size, &a.memory));
        CHECK_RC(OPAL_SUCCESS,
                 harness.hca->keyset_map(MCA_BTL_UMR_REMOTE, a.area, layout, a.memory, 0, 0,
                                         layout->size, SIZE_MAX, harness_done, &done, &a.keyset));
        CHECK(1 == a.keyset->count, "%zu keys", a.keyset->count);
        for (int k = 0; k < i; ++k) {
            harness_progress();
        }
        harness.hca->keyset_release(a.keyset);
        WAIT_UNTIL(mkeys == stats->mkeys_used_now);
        harness.hca->memory_release(a.memory);
        free(a.area);
    }
    harness_barrier();
    tiers_transfer(layout, layout, room, &used);
    CHECK(1 == used.keys_nested, "%llu over others", (unsigned long long) used.keys_nested);
    OBJ_RELEASE(layout);
}

/** Write through a key of the peer. @return the status */
static int write_through(const mca_btl_umr_key_t *key)
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
    harness.hca->keyset_release(keyset);
    harness.hca->memory_release(memory);
    OBJ_RELEASE(layout);
    free(area);
    return done.status;
}

/**
 * A peer that knows, or guesses, a key over others or one below it, writes through it while it is
 * mapped, and is refused when it is released. (Run with lists in work requests.)
 */
static void nested_stale(size_t which)
{
    opal_iov_cache_layout_t *layout;
    size_t room, count, written = 0;

    layout = tiers_irregular(104, &room);
    if (0 == harness.rank) {
        mca_btl_umr_key_t *keys = keys_receive(&count);

        CHECK(3 == count, "%zu keys", count);
        CHECK(OPAL_SUCCESS == write_through(&keys[which]), "refused while it is mapped");
        harness_barrier();
        harness_barrier(); /* from here on it is not to be used */
        CHECK(OPAL_ERR_UNREACH == write_through(&keys[which]), "the key still works");
        CHECK(harness.hca->endpoint_broken(harness.endpoint), "not broken");
        harness_barrier();
        free(keys);
    } else {
        struct mapped a = {0};
        mca_btl_umr_key_t keys[3];
        mca_btl_umr_keyset_t shown = {.keys = keys, .count = 3};

        (void) map(&a, layout, room);
        CHECK(1 == a.keyset->count && 2 == tiers_inner.count, "%zu keys over %zu", a.keyset->count,
              tiers_inner.count);
        keys[0] = a.keyset->keys[0];
        for (size_t i = 0; i < 2; ++i) {
            keys[1 + i] = tiers_inner.keys[i];
        }
        keys_send(&shown);
        harness_barrier();
        for (size_t i = 0; i < room; ++i) {
            written += 0xee == a.area[i] ? 1 : 0;
        }
        CHECK(keys[which].length == written, "%zu bytes arrived", written);
        memset(a.area, FILLER, room);
        harness.hca->keyset_release(a.keyset);
        harness_progress_for(0.2);
        harness_barrier();
        harness_barrier();
        for (size_t i = 0; i < room; ++i) {
            CHECK(FILLER == a.area[i], "byte %zu was written through a stale key", i);
        }
        harness.hca->memory_release(a.memory);
        free(a.area);
    }
    OBJ_RELEASE(layout);
}

static void nested_stale_over(void)
{
    nested_stale(0);
}

static void nested_stale_below(void)
{
    nested_stale(1 + harness_random(2));
}

const struct test nested_tests[] = {
    {"nested_lengths", nested_lengths},
    {"nested_strided", nested_strided},
    {"nested_budget", nested_budget},
    {"nested_gives_way", nested_gives_way},
    {"nested_long_gives_way", nested_long_gives_way},
    {"nested_given_up", nested_given_up},
    {"nested_given_up_late", nested_given_up_late},
    {"nested_stale_over", nested_stale_over},
    {"nested_stale_below", nested_stale_below},
    {NULL, NULL},
};
