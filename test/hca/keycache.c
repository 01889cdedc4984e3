/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Cached keysets that stay mapped: when they are found again, and that no access is possible
 * through a dropped one. */

#include "harness.h"

#include <sys/mman.h>

#define FILLER 0x5a
#define AREA   8192

static unsigned char *area_map(void *where)
{
    unsigned char *area =
        mmap(where, AREA, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | (NULL == where ? 0 : MAP_FIXED), -1, 0);

    CHECK(MAP_FAILED != area, "mmap");
    memset(area, FILLER, AREA);
    return area;
}

/** Keys for a message, and the end of the message. @return the rkey of the first key */
static uint32_t use(mca_btl_umr_role_t role, void *buffer, const opal_iov_cache_layout_t *layout)
{
    struct side side = {buffer, layout, 0, 0};
    mca_btl_umr_memory_t *memory;
    mca_btl_umr_keyset_t *keyset = keyset_of(role, &side, layout->size, &memory);
    uint32_t rkey = keyset->keys[0].rkey;

    harness.hca->keyset_keep(keyset);
    harness.hca->memory_release(memory);
    return rkey;
}

/** The same again: true if nothing was mapped for it. */
static bool is_cached(mca_btl_umr_role_t role, void *buffer, const opal_iov_cache_layout_t *layout)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    uint64_t hits = stats->keyset_hits, mapped = stats->keys_mapped;

    (void) use(role, buffer, layout);
    CHECK((hits + 1 == stats->keyset_hits) == (mapped == stats->keys_mapped),
          "a hit maps nothing, and a miss something");
    return hits < stats->keyset_hits;
}

/** The same name finds the same keys, ready; any other name does not. */
static void cached_found(void)
{
    opal_iov_cache_layout_t *layout = layout_vector(8, 32, 100), *other = layout_vector(8, 32, 100);
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    unsigned char *area = area_map(NULL);
    uint32_t rkey = use(MCA_BTL_UMR_REMOTE, area, layout);
    const struct {
        mca_btl_umr_role_t role;
        uint64_t chunk, start, end;
        size_t max_keys;
    } names[] = {
        {MCA_BTL_UMR_REMOTE, 0, 0, 256, SIZE_MAX}, /* cached already */
        {MCA_BTL_UMR_LOCAL, 0, 0, 256, SIZE_MAX},  /* the other role */
        {MCA_BTL_UMR_REMOTE, 64, 0, 256, SIZE_MAX}, {MCA_BTL_UMR_REMOTE, 0, 32, 256, SIZE_MAX},
        {MCA_BTL_UMR_REMOTE, 0, 0, 128, SIZE_MAX},  {MCA_BTL_UMR_REMOTE, 0, 0, 256, 9},
    };
    mca_btl_umr_keyset_t *keyset, *second;
    mca_btl_umr_memory_t *memory;
    struct done done = {0, 0};

    CHECK(1 == stats->keysets_cached_now, "%llu kept",
          (unsigned long long) stats->keysets_cached_now);
    CHECK_RC(OPAL_SUCCESS,
             harness.hca->memory_register(MCA_BTL_UMR_REMOTE, area, layout, 256, &memory));
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i) {
        for (int again = 0; again < 2; ++again) {
            uint64_t hits = stats->keyset_hits;
            bool hit = 0 == i || again;

            done.calls = 0;
            CHECK_RC(OPAL_SUCCESS,
                     harness.hca->keyset_map(names[i].role, area, layout, memory, names[i].chunk,
                                             names[i].start, names[i].end, names[i].max_keys,
                                             harness_done, &done, &keyset));
            CHECK(hit == keyset->ready, "name %zu, time %d: ready %d", i, again, keyset->ready);
            CHECK(hits + hit == stats->keyset_hits, "name %zu, time %d: hits", i, again);
            CHECK(keyset->start == names[i].start && keyset->end == names[i].end, "name %zu", i);
            if (0 == i) {
                CHECK(rkey == keyset->keys[0].rkey, "other keys");
            }
            WAIT_UNTIL(keyset->ready);
            harness.hca->keyset_keep(keyset);
        }
    }

    /* Two messages at a time: the second one gets keys of its own, and the next time there are some
     * for each. */
    for (int again = 0; again < 2; ++again) {
        uint64_t cached = stats->keysets_cached_now;

        CHECK_RC(OPAL_SUCCESS,
                 harness.hca->keyset_map(MCA_BTL_UMR_REMOTE, area, layout, memory, 0, 0, 256,
                                         SIZE_MAX, harness_done, &done, &keyset));
        CHECK_RC(OPAL_SUCCESS,
                 harness.hca->keyset_map(MCA_BTL_UMR_REMOTE, area, layout, memory, 0, 0, 256,
                                         SIZE_MAX, harness_done, &done, &second));
        CHECK(keyset->ready && (again || rkey == keyset->keys[0].rkey), "not the kept one");
        CHECK(again == second->ready, "time %d: %sready", again, second->ready ? "" : "not ");
        CHECK(keyset->keys[0].rkey != second->keys[0].rkey, "the same keys for two messages");
        WAIT_UNTIL(second->ready);
        harness.hca->keyset_keep(keyset);
        harness.hca->keyset_keep(second);
        CHECK(cached + !again == stats->keysets_cached_now, "time %d: %llu kept, before %llu",
              again, (unsigned long long) stats->keysets_cached_now, (unsigned long long) cached);
    }

    /* Released for good, they are not found again. */
    for (int i = 0; i < 2; ++i) {
        uint64_t cached = stats->keysets_cached_now;

        CHECK_RC(OPAL_SUCCESS,
                 harness.hca->keyset_map(MCA_BTL_UMR_REMOTE, area, layout, memory, 0, 0, 256,
                                         SIZE_MAX, harness_done, &done, &keyset));
        CHECK(keyset->ready, "%d: not kept", i);
        harness.hca->keyset_release(keyset);
        CHECK(cached - 1 == stats->keysets_cached_now, "still kept");
    }
    harness.hca->memory_release(memory);
    CHECK(!is_cached(MCA_BTL_UMR_REMOTE, area, layout), "found after its release");
    CHECK(!is_cached(MCA_BTL_UMR_REMOTE, area, other), "another layout");
    CHECK(!is_cached(MCA_BTL_UMR_REMOTE, area + 1, layout), "another buffer");
    munmap(area, AREA);
    OBJ_RELEASE(layout);
    OBJ_RELEASE(other);
}

/** The least recently used one is evicted. (btl_umr_key_cache=2) */
static void cached_bound(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    opal_iov_cache_layout_t *layout = layout_vector(4, 32, 100);
    unsigned char *area = area_map(NULL);

    for (int i = 0; i < 3; ++i) {
        (void) use(MCA_BTL_UMR_LOCAL, area + 1000 * i, layout);
        CHECK(2 >= stats->keysets_cached_now, "%llu kept",
              (unsigned long long) stats->keysets_cached_now);
    }
    CHECK(1 == stats->keyset_evictions, "%llu evictions",
          (unsigned long long) stats->keyset_evictions);
    CHECK(is_cached(MCA_BTL_UMR_LOCAL, area + 1000, layout), "the second left");
    CHECK(!is_cached(MCA_BTL_UMR_LOCAL, area, layout), "the first is still there");
    CHECK(is_cached(MCA_BTL_UMR_LOCAL, area + 1000, layout), "the one used last left");
    CHECK(!is_cached(MCA_BTL_UMR_LOCAL, area + 2000, layout), "the third is still there");
    munmap(area, AREA);
    OBJ_RELEASE(layout);
}

/** Cached keys must not make a message fail: they are evicted, role by role. (Run with 8 mkeys.) */
static void cached_gives_way(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    opal_iov_cache_layout_t *layout = layout_vector(4, 32, 100);
    unsigned char *area = area_map(NULL);

    for (int i = 0; i < 4; ++i) {
        (void) use(MCA_BTL_UMR_LOCAL, area + 500 * i, layout);
        (void) use(MCA_BTL_UMR_REMOTE, area + 500 * i, layout);
    }
    CHECK(8 == stats->keysets_cached_now && 8 == stats->mkeys_used_now, "%llu kept in %llu mkeys",
          (unsigned long long) stats->keysets_cached_now,
          (unsigned long long) stats->mkeys_used_now);
    (void) use(MCA_BTL_UMR_REMOTE, area + 2000, layout);
    CHECK(1 == stats->keyset_evictions, "%llu evictions",
          (unsigned long long) stats->keyset_evictions);
    for (int i = 0; i < 4; ++i) {
        CHECK(is_cached(MCA_BTL_UMR_LOCAL, area + 500 * i, layout), "%d: of the other role", i);
        CHECK(0 == i || is_cached(MCA_BTL_UMR_REMOTE, area + 500 * i, layout), "%d: not the last",
              i);
    }
    CHECK(!is_cached(MCA_BTL_UMR_REMOTE, area, layout), "the first is still there");
    munmap(area, AREA);
    OBJ_RELEASE(layout);
}

/** Other memory at the same address: other keys. With parts far apart, too. */
static void cached_unmapped(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    opal_iov_cache_layout_t *layout = layout_vector(4, 32, 100);
    unsigned char *area = area_map(NULL);

    for (int i = 0; i < 5; ++i) {
        mca_btl_umr_role_t role = i % 2 ? MCA_BTL_UMR_LOCAL : MCA_BTL_UMR_REMOTE;
        uint64_t stale = stats->keysets_stale;

        (void) use(role, area, layout);
        CHECK(is_cached(role, area, layout), "not kept");
        munmap(area, AREA);
        area = area_map(area);
        CHECK(!is_cached(role, area, layout), "keys of memory that is gone");
        CHECK(stale < stats->keysets_stale, "not counted");
    }
    munmap(area, AREA);
    OBJ_RELEASE(layout);
}

/** Freed memory is not reported, so nothing is cached. (mpi_leave_pinned=0) */
static void cached_unhooked(void)
{
    opal_iov_cache_layout_t *layout = layout_vector(4, 32, 100);
    unsigned char *area = area_map(NULL);

    (void) use(MCA_BTL_UMR_LOCAL, area, layout);
    CHECK(!is_cached(MCA_BTL_UMR_LOCAL, area, layout), "kept without hooks");
    CHECK(0 == harness.hca->stats()->keysets_cached_now, "kept");
    munmap(area, AREA);
    OBJ_RELEASE(layout);
}

/** The cached keys of a message that has not registered its memory; NULL: none. */
static mca_btl_umr_keyset_t *lookup_keys(mca_btl_umr_role_t role, void *buffer,
                                         const opal_iov_cache_layout_t *layout)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    mca_btl_umr_stats_t before = *stats;
    mca_btl_umr_keyset_t *keyset = harness.hca->keyset_lookup(harness.endpoint, role, buffer,
                                                              layout, 0, 0, layout->size, SIZE_MAX);

    CHECK(NULL == keyset || (keyset->ready && 0 == keyset->start && layout->size == keyset->end),
          "not all of it, or not ready");
    CHECK(before.keyset_hits + (NULL != keyset) == stats->keyset_hits, "hits");
    CHECK(before.reg_misses == stats->reg_misses && before.keys_mapped == stats->keys_mapped,
          "something was made");
    return keyset;
}

/** A message by found keys, if there are any. */
static bool is_found(mca_btl_umr_role_t role, void *buffer, const opal_iov_cache_layout_t *layout)
{
    mca_btl_umr_keyset_t *keyset = lookup_keys(role, buffer, layout);

    if (NULL != keyset) {
        harness.hca->keyset_keep(keyset);
    }
    return NULL != keyset;
}

/** Cached keysets are found without a registration: the same keys, for one message at a time. */
static void lookup_found(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    opal_iov_cache_layout_t *layout = layout_vector(8, 32, 100), *other = layout_vector(8, 32, 100);
    unsigned char *area = area_map(NULL), *elsewhere = area_map(NULL);
    mca_btl_umr_keyset_t *keyset;
    uint32_t rkey;

    CHECK(!is_found(MCA_BTL_UMR_REMOTE, area, layout), "of nothing");
    rkey = use(MCA_BTL_UMR_REMOTE, area, layout);
    for (int i = 0; i < 3; ++i) {
        keyset = lookup_keys(MCA_BTL_UMR_REMOTE, area, layout);
        CHECK(NULL != keyset && rkey == keyset->keys[0].rkey, "time %d: not the kept one", i);
        CHECK(!is_found(MCA_BTL_UMR_REMOTE, area, layout), "the same keys for two messages");
        harness.hca->keyset_keep(keyset);
    }
    CHECK(!is_found(MCA_BTL_UMR_LOCAL, area, layout), "the other role");
    CHECK(!is_found(MCA_BTL_UMR_REMOTE, area, other), "another layout");
    CHECK(!is_found(MCA_BTL_UMR_REMOTE, area + 1, layout), "another buffer");
    CHECK(NULL
              == harness.hca->keyset_lookup(harness.endpoint, MCA_BTL_UMR_REMOTE, area, layout, 0,
                                            0, layout->size - 1, SIZE_MAX),
          "another range");

    /* Another registration is made: from then on the least recently used ones may leave, and once
     * this one has to be looked up, so that it is not among them. */
    (void) use(MCA_BTL_UMR_LOCAL, elsewhere, layout);
    CHECK(!is_found(MCA_BTL_UMR_REMOTE, area, layout), "out of order");
    CHECK(is_cached(MCA_BTL_UMR_REMOTE, area, layout), "not kept");
    CHECK(is_found(MCA_BTL_UMR_REMOTE, area, layout), "in order");
    CHECK(is_found(MCA_BTL_UMR_LOCAL, elsewhere, layout), "the new one");

    keyset = lookup_keys(MCA_BTL_UMR_REMOTE, area, layout);
    CHECK(NULL != keyset, "not found");
    harness.hca->keyset_release(keyset);
    CHECK(!is_found(MCA_BTL_UMR_REMOTE, area, layout), "found after its release");
    CHECK(1 == stats->keysets_cached_now, "%llu kept",
          (unsigned long long) stats->keysets_cached_now);
    munmap(area, AREA);
    munmap(elsewhere, AREA);
    OBJ_RELEASE(layout);
    OBJ_RELEASE(other);
}

/** Other memory at the same address, by each kind of replacement: no message gets keys that were
 * mapped before. */
static void lookup_unmapped(void)
{
    opal_iov_cache_layout_t *layout = layout_vector(4, 32, 100);
    unsigned char *area = area_map(NULL);

    for (int i = 0; i < 6; ++i) {
        mca_btl_umr_role_t role = i % 2 ? MCA_BTL_UMR_LOCAL : MCA_BTL_UMR_REMOTE;
        mca_btl_umr_keyset_t *keyset;

        (void) use(role, area, layout);
        keyset = lookup_keys(role, area, layout);
        CHECK(NULL != keyset, "way %d: not found", i);
        harness.hca->keyset_keep(keyset);
        if (2 > i) {
            munmap(area, AREA);
            CHECK(!is_found(role, area, layout), "way %d: of nothing", i);
        } else if (4 > i) {
            CHECK(0 == madvise(area, AREA, MADV_DONTNEED), "madvise");
        }
        area = 4 > i && 2 <= i ? area : area_map(area);
        CHECK(!is_found(role, area, layout), "way %d: keys of memory that is gone", i);
        CHECK(!is_cached(role, area, layout), "way %d: keys of memory that is gone", i);
    }
    munmap(area, AREA);
    OBJ_RELEASE(layout);
}

/** Events that remove the registration of a message that has not looked it up. */
enum loss {
    LOSS_EVICTED,
    LOSS_UNMAPPED
};

/**
 * A message is pending with cached keys when the registration below them is removed: it arrives
 * complete, nothing of it is cached, and the registration is released after it. The registration
 * covers pages between the pieces: the user may unmap the middle one at any time.
 * (btl_umr_reg_cache_size=262144)
 */
static void lookup_lost(enum loss loss)
{
    enum {
        PAGE = 4096,
        ROOM = 3 * PAGE
    };
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    opal_iov_cache_layout_t *layout = layout_vector(2, 1000, 2 * PAGE);
    opal_iov_cache_layout_t *large = layout_vector(1, 16 * PAGE, 16 * PAGE);
    bool send = 0 == harness.rank;
    mca_btl_umr_role_t role = send ? MCA_BTL_UMR_LOCAL : MCA_BTL_UMR_REMOTE;
    unsigned char *area =
        mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *filler =
        mmap(NULL, 128 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t fins = harness.fin_count;
    mca_btl_umr_keyset_t *keyset;
    mca_btl_umr_memory_t *memory;
    uint64_t bytes;

    CHECK(MAP_FAILED != area && MAP_FAILED != filler, "mmap");
    memset(area, FILLER, ROOM);
    if (send) {
        layout_fill(area, layout, 7);
    }
    (void) use(role, area, layout);
    bytes = stats->reg_bytes_now;
    CHECK(ROOM <= bytes, "%llu bytes registered", (unsigned long long) bytes);
    keyset = lookup_keys(role, area, layout);
    CHECK(NULL != keyset, "not found");

    if (LOSS_UNMAPPED == loss) {
        munmap(area + PAGE, PAGE);
        CHECK(!is_found(role, area, layout), "in use");
    }
    /* The first lookup removes unmapped registrations, which are so many that the cache is then
     * empty. */
    for (int i = 0; i < (LOSS_EVICTED == loss ? 8 : 1); ++i) {
        CHECK_RC(OPAL_SUCCESS,
                 harness.hca->memory_register(MCA_BTL_UMR_LOCAL, filler + 16 * i * PAGE, large,
                                              large->size, &memory));
        harness.hca->memory_release(memory);
        CHECK(262144 >= stats->reg_bytes_now, "more than the bound");
    }

    if (send) {
        struct done done = {0, 0};
        uint32_t fin = 5;
        size_t count;
        mca_btl_umr_key_t *keys = keys_receive(&count);

        CHECK_RC(OPAL_SUCCESS, harness.hca->put(harness.endpoint, keyset, keys, count, &fin,
                                                harness_done, &done));
        WAIT_UNTIL(0 < done.calls);
        CHECK(OPAL_SUCCESS == done.status, "status %d: the registration went", done.status);
        free(keys);
    } else {
        CHECK_RC(OPAL_SUCCESS, harness.hca->fin_reserve(harness.endpoint));
        keys_send(keyset);
        WAIT_UNTIL(fins < harness.fin_count);
        for (size_t i = 0; i < layout->size; ++i) {
            CHECK(stream_byte(i, 7) == area[i / 1000 * 2 * PAGE + i % 1000], "byte %zu", i);
        }
    }
    bytes = stats->reg_bytes_now;
    harness.hca->keyset_keep(keyset);
    CHECK(0 == stats->keysets_cached_now, "kept over a registration that is gone");
    CHECK(bytes == stats->reg_bytes_now + ROOM, "it is still registered");
    CHECK(!is_found(role, area, layout), "found over a registration that is gone");
    harness_barrier();
    munmap(area, ROOM);
    munmap(filler, 128 * PAGE);
    OBJ_RELEASE(layout);
    OBJ_RELEASE(large);
}

static void lookup_evicted(void)
{
    lookup_lost(LOSS_EVICTED);
}

static void lookup_gap_unmapped(void)
{
    lookup_lost(LOSS_UNMAPPED);
}

/** How a cached keyset ends. */
enum end {
    EVICTED,
    UNMAPPED
};

/** Rank 1 caches keys that rank 0 knows, and drops them; a write through one must fail, and access
 * nothing. */
static void cached_stale(enum end end)
{
    opal_iov_cache_layout_t *layout = layout_vector(4, 64, 256);
    unsigned char *area = area_map(NULL);
    struct side side = {area, layout, 0, 4};
    mca_btl_umr_memory_t *memory;
    mca_btl_umr_keyset_t *keyset;

    if (0 == harness.rank) {
        struct done done = {0, 0};
        mca_btl_umr_key_t *keys;
        size_t count;

        keys = keys_receive(&count);
        harness_barrier(); /* from here on the key is not to be used */
        keyset = keyset_of(MCA_BTL_UMR_LOCAL, &side, layout->size, &memory);
        memset(area, 0xee, AREA);
        CHECK_RC(OPAL_SUCCESS, harness.hca->put(harness.endpoint, keyset, keys, count, NULL,
                                                harness_done, &done));
        WAIT_UNTIL(0 < done.calls);
        CHECK(OPAL_ERR_UNREACH == done.status, "status %d: the key still works", done.status);
        harness.hca->keyset_release(keyset);
        harness.hca->memory_release(memory);
        free(keys);
        harness_barrier();
    } else {
        keyset = keyset_of(MCA_BTL_UMR_REMOTE, &side, layout->size, &memory);
        keys_send(keyset);
        harness.hca->keyset_keep(keyset);
        harness.hca->memory_release(memory);
        if (UNMAPPED == end) {
            munmap(area, AREA);
            area = area_map(area);
            /* dropped when the cache of registrations looks what has gone, at the latest now */
            CHECK_RC(OPAL_SUCCESS, harness.hca->memory_register(MCA_BTL_UMR_REMOTE, area, layout,
                                                                layout->size, &memory));
            harness.hca->memory_release(memory);
            CHECK(0 == harness.hca->stats()->keysets_cached_now, "kept over nothing");
        } else {
            (void) use(MCA_BTL_UMR_REMOTE, area + 4096, layout);
        }
        harness_progress_for(0.2);
        harness_barrier();
        harness_barrier();
        for (size_t i = 0; i < AREA; ++i) {
            CHECK(FILLER == area[i], "byte %zu was written through a stale key", i);
        }
    }
    munmap(area, AREA);
    OBJ_RELEASE(layout);
}

/** (btl_umr_key_cache=1) */
static void cached_stale_evicted(void)
{
    cached_stale(EVICTED);
}

static void cached_stale_unmapped(void)
{
    cached_stale(UNMAPPED);
}

const struct test keycache_tests[] = {
    {"cached_found", cached_found},
    {"cached_bound", cached_bound},
    {"cached_gives_way", cached_gives_way},
    {"cached_unmapped", cached_unmapped},
    {"cached_unhooked", cached_unhooked},
    {"lookup_found", lookup_found},
    {"lookup_unmapped", lookup_unmapped},
    {"lookup_evicted", lookup_evicted},
    {"lookup_gap_unmapped", lookup_gap_unmapped},
    {"cached_stale_evicted", cached_stale_evicted},
    {"cached_stale_unmapped", cached_stale_unmapped},
    {NULL, NULL},
};
