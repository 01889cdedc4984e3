/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * How much one key holds: the tiers beyond lists in work requests.
 *
 * UMRDDT_TEST_TIERS   what must be usable, or not and why: "long", "!long:TEXT",
 *                     by commas
 * UMRDDT_TEST_BREAK   the device does it wrong: "raw" (no queue pair takes raw work requests),
 *                     "long" (two entries of a list change places), "strided" (a byte more between
 *                     the blocks), "nested" (two entries of mkeys over mkeys change places),
 * "below" (an mkey below another is not invalidated)
 */

#include "harness.h"

#include <endian.h>

#include <infiniband/mlx5dv.h>

#define FILLER 0x77

static bool broken(const char *what)
{
    const char *name = getenv("UMRDDT_TEST_BREAK");

    return NULL != name && 0 == strcmp(name, what);
}

/* ------------------------------------------------------------------------------------------- *
 * A device that does it wrong
 * ------------------------------------------------------------------------------------------- */

static void (*real_raw_wqe)(struct mlx5dv_qp_ex *mqp, const void *wqe);

/** The first two entries of the list change places. */
static void swapped_raw_wqe(struct mlx5dv_qp_ex *mqp, const void *wqe)
{
    const struct mlx5_wqe_data_seg *seg = (const void *) ((const char *) wqe + 128);
    struct mlx5_wqe_data_seg *list = (void *) (uintptr_t) be64toh(seg->addr), first = list[0];

    list[0] = list[1];
    list[1] = first;
    real_raw_wqe(mqp, wqe);
}

static void (*real_interleaved)(struct mlx5dv_qp_ex *mqp, uint32_t repeat_count,
                                uint16_t num_interleaved, const struct mlx5dv_mr_interleaved *data);

/** A byte more between the blocks. */
static void wider_interleaved(struct mlx5dv_qp_ex *mqp, uint32_t repeat_count,
                              uint16_t num_interleaved, const struct mlx5dv_mr_interleaved *data)
{
    struct mlx5dv_mr_interleaved wider = *data;

    ++wider.bytes_skip;
    real_interleaved(mqp, repeat_count, num_interleaved, &wider);
}

static void (*real_list)(struct mlx5dv_qp_ex *mqp, uint16_t num_sges, const struct ibv_sge *sge);

struct tiers_inner tiers_inner;

/** Remember what is below mkeys; with "nested" the first two entries over mkeys change places. */
static void seen_list(struct mlx5dv_qp_ex *mqp, uint16_t num_sges, const struct ibv_sge *sge)
{
    struct ibv_sge copy[64];

    if (sizeof(copy) / sizeof(copy[0]) < num_sges) {
        abort();
    }
    memcpy(copy, sge, num_sges * sizeof(*sge));
    if (0 == sge[0].addr) {
        tiers_inner.count = num_sges;
        for (size_t i = 0; i < num_sges; ++i) {
            tiers_inner.keys[i] = (mca_btl_umr_key_t){
                .addr = 0, .length = sge[i].length, .rkey = sge[i].lkey, .lkey = 0};
        }
        if (broken("nested")) {
            copy[0] = sge[1];
            copy[1] = sge[0];
        }
    }
    real_list(mqp, num_sges, copy);
}

static void (*real_local_inv)(struct ibv_qp_ex *qp, uint32_t key);

/** The second one, which is the first of an mkey below another, does nothing. */
static void lazy_local_inv(struct ibv_qp_ex *qp, uint32_t key)
{
    static unsigned calls;

    if (2 == ++calls) {
        ibv_wr_rdma_write(qp, 0, 0);
        ibv_wr_set_sge_list(qp, 0, NULL);
    } else {
        real_local_inv(qp, key);
    }
}

bool tiers_refuses(const struct mlx5dv_qp_init_attr *attr)
{
    return broken("raw") && 0 != (attr->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS)
           && 0 != (attr->send_ops_flags & MLX5DV_QP_EX_WITH_RAW_WQE);
}

void tiers_qp_made(struct ibv_qp *qp)
{
    struct mlx5dv_qp_ex *mqp = mlx5dv_qp_ex_from_ibv_qp_ex(ibv_qp_to_qp_ex(qp));

    real_list = mqp->wr_set_mkey_layout_list;
    mqp->wr_set_mkey_layout_list = seen_list;
    if (broken("below")) {
        real_local_inv = ibv_qp_to_qp_ex(qp)->wr_local_inv;
        ibv_qp_to_qp_ex(qp)->wr_local_inv = lazy_local_inv;
    }
    if (broken("long")) {
        real_raw_wqe = mqp->wr_raw_wqe;
        mqp->wr_raw_wqe = swapped_raw_wqe;
    }
    if (broken("strided")) {
        real_interleaved = mqp->wr_set_mkey_layout_interleaved;
        mqp->wr_set_mkey_layout_interleaved = wider_interleaved;
    }
}

/* ------------------------------------------------------------------------------------------- *
 * What the device can
 * ------------------------------------------------------------------------------------------- */

static const char *const names[MCA_BTL_UMR_TIER_MAX] = {[MCA_BTL_UMR_LONG] = "long",
                                                        [MCA_BTL_UMR_STRIDED] = "strided",
                                                        [MCA_BTL_UMR_NESTED] = "nested"};

/** Is UMRDDT_TEST_TIERS what caps say? */
static void tiers(void)
{
    const mca_btl_umr_caps_t *caps = harness.hca->caps();
    const char *wanted = getenv("UMRDDT_TEST_TIERS");

    CHECK(NULL != wanted, "UMRDDT_TEST_TIERS is not set");
    for (int kind = 0; MCA_BTL_UMR_TIER_MAX > kind; ++kind) {
        const mca_btl_umr_tier_t *tier = &caps->tiers[kind];
        const char *word = strstr(wanted, names[kind]);

        if (0 == harness.rank) {
            printf("%s: %s\n", names[kind], tier->usable ? "usable" : tier->why);
        }
        CHECK(NULL != word, "UMRDDT_TEST_TIERS does not tell of %s", names[kind]);
        if (word == wanted || '!' != word[-1]) {
            CHECK(tier->usable, "%s is not usable: %s", names[kind], tier->why);
            CHECK('\0' == tier->why[0], "usable, and still: %s", tier->why);
        } else {
            const char *text = word + strlen(names[kind]) + 1;
            size_t length = strcspn(text, ",");
            char why[128];

            CHECK(length < sizeof(why), "too long");
            memcpy(why, text, length);
            why[length] = '\0';
            CHECK(!tier->usable, "%s is usable", names[kind]);
            CHECK(NULL != strstr(tier->why, why), "\"%s\" is not in \"%s\"", why, tier->why);
        }
    }
    if (!caps->tiers[MCA_BTL_UMR_LONG].usable && !caps->tiers[MCA_BTL_UMR_NESTED].usable) {
        CHECK(52 >= caps->key_limits.max_iovs, "%zu IOVs", caps->key_limits.max_iovs);
    }
}

/* ------------------------------------------------------------------------------------------- *
 * Messages
 * ------------------------------------------------------------------------------------------- */

/** @p count pieces of 1 to 5 bytes at irregular distances, and an area for them. */
opal_iov_cache_layout_t *tiers_irregular(size_t count, size_t *room)
{
    opal_iov_cache_iov_t *iovs = malloc(count * sizeof(*iovs));
    opal_iov_cache_layout_t *layout;
    int64_t offset = 0;

    for (size_t i = 0; i < count; ++i) {
        offset += 1 + harness_random(11);
        iovs[i].offset = offset;
        iovs[i].length = 1 + harness_random(5);
        offset += (int64_t) iovs[i].length;
    }
    *room = (size_t) offset + 100;
    for (size_t i = count - 1; 0 < i; --i) {
        size_t j = harness_random((uint32_t) i + 1);
        opal_iov_cache_iov_t iov = iovs[i];

        iovs[i] = iovs[j];
        iovs[j] = iov;
    }
    /* What follows each other in the stream must not do so in memory. */
    for (size_t i = 1; i < count; ++i) {
        CHECK(iovs[i].offset != iovs[i - 1].offset + (int64_t) iovs[i - 1].length, "they touch");
    }
    layout = layout_list(iovs, count);
    free(iovs);
    return layout;
}

/**
 * One message from layout to layout, from process 0, and its numbers of keys and writes.
 */
void tiers_transfer(opal_iov_cache_layout_t *from, opal_iov_cache_layout_t *to, size_t room,
                    mca_btl_umr_stats_t *used)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    mca_btl_umr_stats_t before = *stats;
    unsigned char *area = malloc(room);
    bool send = 0 == harness.rank;
    struct side side = {area, send ? from : to, 0, SIZE_MAX};

    CHECK(from->size == to->size, "the test's own layouts differ in size");
    memset(area, FILLER, room);
    if (send) {
        layout_fill(area, from, 8);
    }
    message(send, &side, from->size, 3);
    layout_check(area, room, area, side.layout, from->size, 8, FILLER);
    used->keys_mapped = stats->keys_mapped - before.keys_mapped;
    used->keys_long = stats->keys_long - before.keys_long;
    used->keys_strided = stats->keys_strided - before.keys_strided;
    used->keys_nested = stats->keys_nested - before.keys_nested;
    used->key_entries = stats->key_entries - before.key_entries;
    used->writes_posted = stats->writes_posted - before.writes_posted;
    used->mkeys_created = stats->mkeys_created - before.mkeys_created;
    free(area);
}

/**
 * One message in each direction between @p count pieces and one: expected numbers of mappings,
 * entries and writes if a list in memory has @p most entries, and one key covers @p nest such
 * lists.
 */
void tiers_list_of(size_t count, size_t most, size_t nest)
{
    size_t lists = (count + most - 1) / most, keys = (lists + nest - 1) / nest;
    /* A single piece behind full lists is a plain key, below another or not. */
    size_t plain = 1 < lists && 1 == count % most ? 1 : 0;
    size_t over = 1 < lists ? lists / nest + (1 < lists % nest ? 1 : 0) : 0;
    size_t below = 1 < lists ? lists - (1 == lists % nest ? 1 : 0) : 0;
    size_t mapped = lists - plain + over, entries = count - plain + below;

    for (int turn = 0; turn < 2; ++turn) {
        bool mine = turn == harness.rank; /* it is in turn the sender's, the receiver's */
        size_t room;
        opal_iov_cache_layout_t *list = tiers_irregular(count, &room), *block;
        mca_btl_umr_stats_t used;

        block = layout_vector(1, list->size, (int64_t) list->size);
        tiers_transfer(0 == turn ? list : block, 0 == turn ? block : list, room, &used);
        CHECK((mine ? mapped : 0) == used.keys_mapped, "%zu pieces: %llu mapped, not %zu", count,
              (unsigned long long) used.keys_mapped, mapped);
        CHECK((mine ? over : 0) == used.keys_nested, "%zu pieces: %llu over others, not %zu", count,
              (unsigned long long) used.keys_nested, over);
        CHECK((mine ? entries : 0) == used.key_entries, "%zu pieces: %llu entries, not %zu", count,
              (unsigned long long) used.key_entries, entries);
        CHECK((0 == harness.rank ? keys : 0) == used.writes_posted, "%zu pieces: %llu writes",
              count, (unsigned long long) used.writes_posted);
        OBJ_RELEASE(list);
        OBJ_RELEASE(block);
    }
}

/** Lists of every length about the sizes of mkeys: one key, one write, each byte in its place. */
static void list_lengths(void)
{
    static const size_t counts[] = {51,   52,   53,   255,  256,   257,   1023,  1024,  1025,
                                    4095, 4096, 4097, 5000, 16383, 16384, 16386, 33000, 49152};

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); ++i) {
        tiers_list_of(counts[i], 16384, 64);
    }
}

/** The vector that needed 79 keys: one key and one write; the second time no mkey is created. */
static void vector_4096(void)
{
    opal_iov_cache_layout_t *layout = layout_vector(4096, 1024, 2048);
    mca_btl_umr_stats_t used;

    for (int i = 0; i < 2; ++i) {
        tiers_transfer(layout, layout, 4096 * 2048, &used);
        CHECK(1 == used.keys_mapped, "%llu keys", (unsigned long long) used.keys_mapped);
        CHECK((harness.hca->caps()->tiers[MCA_BTL_UMR_STRIDED].usable ? 1 : 0) == used.keys_strided,
              "%llu strided keys", (unsigned long long) used.keys_strided);
        CHECK((0 == harness.rank ? 1 + harness_notifications(layout->size) : 0)
                  == used.writes_posted,
              "%llu writes", (unsigned long long) used.writes_posted);
    }
    CHECK(0 == used.mkeys_created, "%llu mkeys made", (unsigned long long) used.mkeys_created);
    OBJ_RELEASE(layout);
}

/** Where 16 bits end: beyond, a block or a distance must not be given to the device as strided. */
static void strided_edges(void)
{
    static const struct {
        size_t count;
        uint64_t block;
        int64_t stride;
        bool strided;
    } cases[] = {
        {8, 65534, 65535, true},   {8, 1, 65535, true},      {8, 32768, 32769, true},
        {8, 40000, 65535, true},   {8, 65535, 65536, false}, {8, 65536, 65537, false},
        {8, 65535, 70000, false},  {8, 1000, 65536, false},  {8, 1, 131072 + 8, false},
        {8, 65537, 131072, false}, {70000, 2, 3, true},      {100000, 4, 24, true},
        {5, 100, 200, true},       {4, 100, 200, false},     {8, 100, -200, false},
        {2200, 3, 65535, true},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        uint64_t size = cases[i].count * cases[i].block;
        uint64_t step = (uint64_t) (0 < cases[i].stride ? cases[i].stride : -cases[i].stride);
        size_t room = cases[i].count * step + cases[i].block;
        opal_iov_cache_layout_t *regular =
            layout_vector(cases[i].count, cases[i].block, cases[i].stride);
        opal_iov_cache_layout_t *block = layout_vector(1, size, (int64_t) size);

        for (int turn = 0; turn < 2; ++turn) {
            bool mine = turn == harness.rank;
            const mca_btl_umr_stats_t *stats = harness.hca->stats();
            mca_btl_umr_stats_t before = *stats;
            unsigned char *area = malloc(room);
            bool send = 0 == harness.rank;
            struct side side = {area, mine ? regular : block, 0, SIZE_MAX};

            if (mine && 0 > cases[i].stride) {
                side.buffer = area + (cases[i].count - 1) * step;
            }
            memset(area, FILLER, room);
            if (send) {
                layout_fill(side.buffer, side.layout, (unsigned) i);
            }
            message(send, &side, size, 4);
            layout_check(area, room, side.buffer, side.layout, size, (unsigned) i, FILLER);
            CHECK((mine && cases[i].strided ? 1 : 0) == stats->keys_strided - before.keys_strided,
                  "case %zu: %llu strided keys", i,
                  (unsigned long long) (stats->keys_strided - before.keys_strided));
            CHECK((mine ? 1 : 0) == stats->keys_mapped - before.keys_mapped, "case %zu: %llu keys",
                  i, (unsigned long long) (stats->keys_mapped - before.keys_mapped));
            CHECK((send ? 1 : 0) == stats->writes_posted - before.writes_posted,
                  "case %zu: %llu writes", i,
                  (unsigned long long) (stats->writes_posted - before.writes_posted));
            free(area);
        }
        OBJ_RELEASE(regular);
        OBJ_RELEASE(block);
    }
}

/** Vectors cut anywhere: by chunks, by the number of keys, by the end of the message. Six jobs do
 * this, with more of them only in test/run --all. */
static void random_vectors(void)
{
    enum {
        ROOM = 1 << 22
    };
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    uint64_t strided = stats->keys_strided;
    unsigned char *area = malloc(ROOM);
    unsigned rounds = NULL != getenv("UMRDDT_TEST_ALL") ? 60 : 20;

    for (unsigned round = 0; round < rounds; ++round) {
        opal_iov_cache_layout_t *layouts[2];
        bool send = (int) (round % 2) == harness.rank;
        struct side side = {.buffer = area};
        uint64_t size;

        for (int k = 0; k < 2; ++k) {
            uint64_t block = 1 + harness_random(0 == harness_random(4) ? 70000 : 300);
            uint64_t stride = block + 1 + harness_random((uint32_t) block + 50);
            size_t most = ROOM / stride - 1;

            layouts[k] =
                layout_vector(2 + harness_random((uint32_t) (most < 2000 ? most - 1 : 2000)), block,
                              (int64_t) stride);
        }
        size = layouts[0]->size < layouts[1]->size ? layouts[0]->size : layouts[1]->size;
        size -= 0 == harness_random(2) ? 0 : harness_random((uint32_t) size);
        side.chunk = 0 == harness_random(2) ? 0 : 1 + harness_random((uint32_t) size);
        if (0 < side.chunk && side.chunk <= size / 500) {
            side.chunk = size / 500 + 1;
        }
        side.max_keys = 1 + harness_random(40);
        side.layout = layouts[send ? 0 : 1];
        memset(area, FILLER, ROOM);
        if (send) {
            layout_fill(area, side.layout, round);
        }
        message(send, &side, size, round);
        if (!send) {
            layout_check(area, ROOM, area, side.layout, size, round, FILLER);
        }
        OBJ_RELEASE(layouts[0]);
        OBJ_RELEASE(layouts[1]);
    }
    CHECK((stats->keys_strided > strided) == harness.hca->caps()->tiers[MCA_BTL_UMR_STRIDED].usable,
          "%llu strided keys", (unsigned long long) (stats->keys_strided - strided));
    free(area);
}

/** More lists at once than the memory for them holds: all are mapped, and hold what they should. */
static void many_lists(void)
{
    enum {
        SETS = 20
    };
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    uint64_t before = stats->keys_long;
    bool send = 0 == harness.rank;
    opal_iov_cache_layout_t *layout;
    mca_btl_umr_memory_t *memories[SETS];
    mca_btl_umr_keyset_t *keysets[SETS];
    unsigned char *areas[SETS];
    struct done done[SETS];
    size_t room;

    memset(done, 0, sizeof(done));
    layout = tiers_irregular(3000, &room);
    for (size_t i = 0; i < SETS; ++i) {
        mca_btl_umr_role_t role = send ? MCA_BTL_UMR_LOCAL : MCA_BTL_UMR_REMOTE;

        areas[i] = malloc(room);
        memset(areas[i], FILLER, room);
        if (send) {
            layout_fill(areas[i], layout, (unsigned) i);
        }
        CHECK_RC(OPAL_SUCCESS,
                 harness.hca->memory_register(role, areas[i], layout, layout->size, &memories[i]));
        CHECK_RC(OPAL_SUCCESS,
                 harness.hca->keyset_map(role, areas[i], layout, memories[i], 0, 0, layout->size,
                                         SIZE_MAX, harness_done, &done[i], &keysets[i]));
        CHECK(1 == keysets[i]->count, "%zu keys", keysets[i]->count);
    }
    for (size_t i = 0; i < SETS; ++i) {
        WAIT_UNTIL(0 < done[i].calls);
        CHECK(OPAL_SUCCESS == done[i].status && keysets[i]->ready, "keyset %zu", i);
    }
    CHECK(SETS == stats->keys_long - before, "%llu long lists",
          (unsigned long long) (stats->keys_long - before));
    for (size_t i = 0; i < SETS; ++i) {
        if (send) {
            struct done written = {0, 0};
            mca_btl_umr_key_t *keys;
            size_t count;

            keys = keys_receive(&count);
            CHECK_RC(OPAL_SUCCESS, harness.hca->put(harness.endpoint, keysets[i], keys, count, NULL,
                                                    harness_done, &written));
            WAIT_UNTIL(0 < written.calls);
            CHECK(OPAL_SUCCESS == written.status, "status %d", written.status);
            free(keys);
        } else {
            keys_send(keysets[i]);
        }
    }
    harness_barrier();
    for (size_t i = 0; i < SETS; ++i) {
        layout_check(areas[i], room, areas[i], layout, layout->size, (unsigned) i, FILLER);
        harness.hca->keyset_release(keysets[i]);
        harness.hca->memory_release(memories[i]);
        free(areas[i]);
    }
    OBJ_RELEASE(layout);
}

/**
 * Each role has its half of the long mkeys; who finds none gets several keys of the pool. (Run with
 * 4 long mkeys.)
 */
static void long_budget(void)
{
    enum {
        SETS = 4,
        HALF = 2
    };
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    mca_btl_umr_keyset_t *keysets[MCA_BTL_UMR_ROLE_MAX][SETS];
    opal_iov_cache_layout_t *layout, *longer;
    mca_btl_umr_memory_t *memory;
    struct done done = {0, 0};
    mca_btl_umr_stats_t used;
    unsigned char *area;
    size_t room;

    layout = tiers_irregular(150, &room);
    area = calloc(1, room);
    CHECK_RC(OPAL_SUCCESS,
             harness.hca->memory_register(MCA_BTL_UMR_REMOTE, area, layout, layout->size, &memory));
    for (int role = 0; MCA_BTL_UMR_ROLE_MAX > role; ++role) {
        for (size_t i = 0; SETS > i; ++i) {
            bool nested = harness.hca->caps()->tiers[MCA_BTL_UMR_NESTED].usable;
            size_t keys = i < HALF || nested ? 1 : (layout->iov_count + 51) / 52;

            CHECK_RC(OPAL_SUCCESS,
                     harness.hca->keyset_map(role, area, layout, memory, 0, 0, layout->size,
                                             SIZE_MAX, harness_done, &done, &keysets[role][i]));
            CHECK(keys == keysets[role][i]->count && layout->size == keysets[role][i]->end,
                  "keyset %zu of role %d has %zu keys, not %zu", i, role, keysets[role][i]->count,
                  keys);
        }
    }
    WAIT_UNTIL(SETS * MCA_BTL_UMR_ROLE_MAX == done.calls);
    CHECK(4 == stats->mkeys_long_now, "%llu long mkeys",
          (unsigned long long) stats->mkeys_long_now);
    for (int role = 0; MCA_BTL_UMR_ROLE_MAX > role; ++role) {
        for (size_t i = 0; SETS > i; ++i) {
            harness.hca->keyset_release(keysets[role][i]);
        }
    }
    harness_progress_for(0.05);
    harness.hca->memory_release(memory);
    OBJ_RELEASE(layout);
    free(area);

    /* Of another size: an unused one is evicted. */
    longer = tiers_irregular(1500, &room);
    tiers_transfer(longer, longer, room, &used);
    CHECK(1 == used.keys_long && 1 == used.keys_mapped && 1 == used.mkeys_created,
          "%llu long keys of %llu, %llu mkeys made", (unsigned long long) used.keys_long,
          (unsigned long long) used.keys_mapped, (unsigned long long) used.mkeys_created);
    CHECK(4 == stats->mkeys_long_now, "%llu long mkeys",
          (unsigned long long) stats->mkeys_long_now);
    OBJ_RELEASE(longer);
}

/** Map, wait, and release at once: the invalidation is posted but, on a slow device, not executed.
 */
static void map_and_release(const opal_iov_cache_layout_t *layout, void *area,
                            mca_btl_umr_memory_t *memory)
{
    struct done done = {0, 0};
    mca_btl_umr_keyset_t *keyset;

    CHECK_RC(OPAL_SUCCESS, harness.hca->keyset_map(MCA_BTL_UMR_REMOTE, area, layout, memory, 0, 0,
                                                   layout->size, 1, harness_done, &done, &keyset));
    CHECK(1 == keyset->count && layout->size == keyset->end, "%zu keys for %llu bytes",
          keyset->count, (unsigned long long) keyset->end);
    WAIT_UNTIL(0 < done.calls);
    CHECK(OPAL_SUCCESS == done.status && keyset->ready, "status %d", done.status);
    harness.hca->keyset_release(keyset);
}

/**
 * One long mkey is in use and there may be one more, for keysets of alternating sizes. Each needs
 * an mkey of its size, so the free one of the other size goes, while its invalidation is still
 * pending.
 */
static void long_retired(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    uint64_t errors = stats->errors, created, rebuilt = stats->maps_rebuilt;
    opal_iov_cache_layout_t *layouts[2];
    mca_btl_umr_memory_t *memories[2];
    mca_btl_umr_keyset_t *used;
    unsigned char *areas[2];
    size_t room;

    for (int i = 0; 2 > i; ++i) {
        layouts[i] = tiers_irregular(0 == i ? 150 : 1500, &room);
        areas[i] = calloc(1, room);
        CHECK_RC(OPAL_SUCCESS,
                 harness.hca->memory_register(MCA_BTL_UMR_REMOTE, areas[i], layouts[i],
                                              layouts[i]->size, &memories[i]));
    }
    CHECK_RC(OPAL_SUCCESS,
             harness.hca->keyset_map(MCA_BTL_UMR_LOCAL, areas[0], layouts[0], memories[0], 0, 0,
                                     layouts[0]->size, 1, NULL, NULL, &used));
    WAIT_UNTIL(used->ready);
    created = stats->mkeys_created;
    for (int i = 0; 20 > i; ++i) {
        map_and_release(layouts[i % 2], areas[i % 2], memories[i % 2]);
    }
    CHECK(created + 20 == stats->mkeys_created, "%llu mkeys made",
          (unsigned long long) (stats->mkeys_created - created));
    CHECK(errors == stats->errors && rebuilt == stats->maps_rebuilt, "%llu errors",
          (unsigned long long) (stats->errors - errors));
    /* No retired one stays. */
    WAIT_UNTIL(2 == stats->mkeys_long_now);
    harness.hca->keyset_release(used);
    for (int i = 0; 2 > i; ++i) {
        harness.hca->memory_release(memories[i]);
        OBJ_RELEASE(layouts[i]);
        free(areas[i]);
    }
}

const struct test tiers_tests[] = {
    {"tiers", tiers},
    {"list_lengths", list_lengths},
    {"vector_4096", vector_4096},
    {"strided_edges", strided_edges},
    {"random_vectors", random_vectors},

    {"many_lists", many_lists},
    {"long_budget", long_budget},
    {"long_retired", long_retired},
    {NULL, NULL},
};
