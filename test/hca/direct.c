/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Direct puts: without mkeys, from layout to layout. */

#include "harness.h"

#include <sys/mman.h>
#include <unistd.h>

#define ROOM   (1u << 20)
#define FILLER 0x3c

/* The data that pml/umrddt sends in its CTS. */
struct place {
    uint64_t buffer;
    uint64_t region_count;
    mca_btl_umr_key_t regions[64];
};

/** The receiver's side of a message that is to be written directly. */
static void place_send(void *buffer, const opal_iov_cache_layout_t *layout,
                       const mca_btl_umr_memory_t *memory)
{
    size_t bytes = opal_iov_cache_form_flatten(layout->form, NULL, 0);
    unsigned char *flat = malloc(bytes);
    struct place place;

    memset(&place, 0, sizeof(place));
    place.buffer = (uintptr_t) buffer;
    place.region_count = harness.hca->memory_regions(memory, place.regions, 64);
    CHECK(0 < place.region_count && 64 >= place.region_count, "%llu regions",
          (unsigned long long) place.region_count);
    CHECK(bytes == opal_iov_cache_form_flatten(layout->form, flat, bytes), "flattened twice");
    MPI_Send(&place, sizeof(place), MPI_BYTE, harness.peer, 3, MPI_COMM_WORLD);
    MPI_Send(flat, (int) bytes, MPI_BYTE, harness.peer, 4, MPI_COMM_WORLD);
    free(flat);
}

/** The sender's side of it. @return the receiver's layout */
static opal_iov_cache_form_t *place_receive(struct place *place)
{
    static unsigned char flat[ROOM];
    opal_iov_cache_form_t *form;
    MPI_Status status;
    int bytes;

    MPI_Recv(place, sizeof(*place), MPI_BYTE, harness.peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(flat, sizeof(flat), MPI_BYTE, harness.peer, 4, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    CHECK_RC(OPAL_SUCCESS, opal_iov_cache_form_unflatten(flat, (size_t) bytes, &form));
    return form;
}

/** A part of a message, as an argument of the operation. */
static mca_btl_umr_direct_t part_of(void *buffer, const opal_iov_cache_layout_t *layout,
                                    const mca_btl_umr_memory_t *memory,
                                    const opal_iov_cache_form_t *to, const struct place *place,
                                    uint64_t start, uint64_t end)
{
    return (mca_btl_umr_direct_t){.buffer = buffer,
                                  .layout = layout,
                                  .memory = memory,
                                  .to = to,
                                  .to_buffer = place->buffer,
                                  .regions = place->regions,
                                  .region_count = (size_t) place->region_count,
                                  .start = start,
                                  .end = end};
}

/**
 * Byte by byte: the number of writes for [start, end) if each goes to one run and gathers as many
 * pieces as it may. (All of either side is one registration.) UMRDDT_TEST_MESSAGE is the maximum
 * size of a write. @p last: bytes of the last one.
 */
static uint64_t writes_of(const opal_iov_cache_layout_t *from, const opal_iov_cache_form_t *to,
                          uint64_t start, uint64_t end, uint64_t *pieces, uint64_t *last)
{
    uint64_t limit = harness.hca->caps()->write_pieces, writes = 1, gathered = 1, bytes = 1;
    const char *text = getenv("UMRDDT_TEST_MESSAGE");
    uint64_t most = NULL == text ? UINT64_MAX : (uint64_t) atoll(text);

    *pieces = 1;
    for (uint64_t i = start + 1; i < end; ++i) {
        bool run = opal_iov_cache_form_offset(to, i) == opal_iov_cache_form_offset(to, i - 1) + 1;
        bool piece = opal_iov_cache_form_offset(from->form, i)
                     == opal_iov_cache_form_offset(from->form, i - 1) + 1;

        ++bytes;
        if (!run || (!piece && gathered == limit) || bytes > most) {
            ++writes;
            ++*pieces;
            gathered = 1;
            bytes = 1;
        } else if (!piece) {
            ++gathered;
            ++*pieces;
        }
    }
    *last = bytes;
    return writes;
}

/** Move @p size bytes, cut into so many puts, the last with the FIN. */
static void direct_message(bool send, void *buffer, const opal_iov_cache_layout_t *layout,
                           uint64_t size, unsigned cuts, uint32_t fin)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    mca_btl_umr_memory_t *memory;

    CHECK_RC(OPAL_SUCCESS,
             harness.hca->memory_register(send ? MCA_BTL_UMR_LOCAL : MCA_BTL_UMR_REMOTE, buffer,
                                          layout, size, &memory));
    if (send) {
        struct place place;
        opal_iov_cache_form_t *to = place_receive(&place);
        uint64_t start = 0;

        CHECK(0 == harness.hca->memory_regions(memory, NULL, 0), "a LOCAL memory's keys");
        for (unsigned cut = 0; start < size; ++cut) {
            uint64_t end =
                cut >= cuts ? size : start + 1 + harness_random((uint32_t) (size - start));
            mca_btl_umr_direct_t direct = part_of(buffer, layout, memory, to, &place, start, end);
            mca_btl_umr_stats_t before = *stats;
            struct done done = {0, 0};
            uint64_t pieces, last, writes = writes_of(layout, to, start, end, &pieces, &last);
            uint64_t notifications = size == end ? harness_notifications(last) : 0;

            CHECK_RC(OPAL_SUCCESS,
                     harness.hca->put_direct(harness.endpoint, &direct, size == end ? &fin : NULL,
                                             harness_done, &done));
            memset(&direct, 0xff, sizeof(direct)); /* copied, by the contract */
            CHECK(0 == done.calls, "called before put_direct returned");
            WAIT_UNTIL(0 < done.calls);
            CHECK(1 == done.calls && OPAL_SUCCESS == done.status, "%d calls, %d", done.calls,
                  done.status);
            CHECK(end - start == stats->bytes_written - before.bytes_written, "%llu bytes",
                  (unsigned long long) (stats->bytes_written - before.bytes_written));
            if (1 == place.region_count) {
                CHECK(writes + notifications == stats->writes_posted - before.writes_posted
                          && writes == stats->writes_direct - before.writes_direct,
                      "%llu writes, not %llu",
                      (unsigned long long) (stats->writes_direct - before.writes_direct),
                      (unsigned long long) writes);
                CHECK(pieces == stats->pieces_direct - before.pieces_direct,
                      "%llu pieces, not %llu",
                      (unsigned long long) (stats->pieces_direct - before.pieces_direct),
                      (unsigned long long) pieces);
            }
            start = end;
        }
        opal_iov_cache_form_free(to);
    } else {
        size_t before = harness.fin_count;

        CHECK_RC(OPAL_SUCCESS, harness.hca->fin_reserve(harness.endpoint));
        place_send(buffer, layout, memory);
        WAIT_UNTIL(before < harness.fin_count);
        CHECK(fin == harness.fins[before], "FIN %u, not %u", harness.fins[before], fin);
        harness.fin_count = harness.fin_count > 2048 ? 0 : harness.fin_count;
    }
    harness.hca->memory_release(memory);
}

/** Two layouts of the same size, in both directions, whole and in parts; the area is checked. */
static void both_ways(unsigned rounds, unsigned most_cuts)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    unsigned char *area = malloc(ROOM);
    uint64_t mapped = stats->keys_mapped, errors = stats->errors;

    for (unsigned round = 0; round < rounds; ++round) {
        uint64_t size = 1 + harness_random(0 == round % 4 ? 100000 : 9000);
        opal_iov_cache_layout_t *layouts[2], *layout;
        bool send = (int) (round % 2) == harness.rank;
        unsigned cuts = 0 == most_cuts ? 0 : harness_random(most_cuts);

        /* Both make both: the same seed gives the same numbers. */
        layouts[0] = layout_random(size, ROOM, 1 + harness_random(200));
        layouts[1] = 0 == round % 5 ? layout_vector(1, size, (int64_t) size)
                                    : layout_random(size, ROOM, 1 + harness_random(200));
        layout = layouts[(send ? 0 : 1) ^ (round / 2 % 2)];
        memset(area, FILLER, ROOM);
        if (send) {
            layout_fill(area, layout, round);
        }
        direct_message(send, area, layout, size, cuts, round);
        layout_check(area, ROOM, area, layout, size, round, FILLER);
        /* The sender has drawn more than the receiver. */
        harness.seed = 77u + round;
        OBJ_RELEASE(layouts[0]);
        OBJ_RELEASE(layouts[1]);
    }
    CHECK(mapped == stats->keys_mapped, "mkeys were used");
    CHECK(errors == stats->errors, "%llu errors", (unsigned long long) (stats->errors - errors));
    free(area);
}

static void direct_layouts(void)
{
    both_ways(40, 0);
}

/** Ranges that begin and end anywhere, within blocks too. */
static void direct_ranges(void)
{
    both_ways(24, 9);
}

/** Buffers whose address lies behind the data, blocks in descending order, a shorter message. */
static void direct_odd(void)
{
    opal_iov_cache_layout_t *down = layout_vector(30, 50, -120), *up = layout_vector(300, 7, 21);
    unsigned char *area = malloc(8192);
    bool send = 0 == harness.rank;

    for (unsigned round = 0; round < 2; ++round) {
        const opal_iov_cache_layout_t *layout = send == (0 == round) ? down : up;
        unsigned char *buffer = layout == down ? area + 8000 : area;

        memset(area, FILLER, 8192);
        if (send) {
            layout_fill(buffer, layout, round);
        }
        direct_message(send, buffer, layout, 1333, 2, 5);
        layout_check(area, 8192, buffer, layout, send ? layout->size : 1333, round, FILLER);
        harness.seed = 5;
    }
    OBJ_RELEASE(down);
    OBJ_RELEASE(up);
    free(area);
}

/** Pieces in registrations of their own, with holes between them. (btl_umr_reg_gap=0) */
static void direct_regions(void)
{
    enum {
        PARTS = 9
    };
    size_t page = (size_t) getpagesize(), room = 4 * page * PARTS;
    bool send = 1 == harness.rank;
    unsigned char *area =
        mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    opal_iov_cache_iov_t iovs[2 * PARTS];
    opal_iov_cache_layout_t *layout;

    CHECK(MAP_FAILED != area, "mmap");
    /* Two pieces a part, which the two processes cut at other places; parts in another order. */
    for (size_t i = 0; i < PARTS; ++i) {
        size_t part = send ? i : (i * 4) % PARTS;
        uint64_t first = 10 + (send ? 3 * i : 100);

        iovs[2 * i].offset = (int64_t) (4 * page * part + 40);
        iovs[2 * i].length = first;
        iovs[2 * i + 1].offset = (int64_t) (4 * page * part + 1000);
        iovs[2 * i + 1].length = 500 - first;
    }
    layout = layout_list(iovs, 2 * PARTS);
    memset(area, FILLER, room);
    if (send) {
        layout_fill(area, layout, 8);
    }
    /* Where nothing is mapped nothing can be registered, so the holes keep the parts apart. */
    for (size_t i = 0; i < PARTS; ++i) {
        CHECK(0 == mprotect(area + 4 * page * i + page, 3 * page, PROT_NONE), "mprotect");
    }
    direct_message(send, area, layout, layout->size, 3, 9);
    CHECK(0 == mprotect(area, room, PROT_READ | PROT_WRITE), "mprotect");
    layout_check(area, room, area, layout, layout->size, 8, FILLER);
    OBJ_RELEASE(layout);
    munmap(area, room);
    harness.seed = 6;
}

/** What put_direct refuses without posting. */
static void direct_bad(void)
{
    opal_iov_cache_layout_t *layout = layout_vector(8, 16, 64), *other = layout_vector(8, 16, 65);
    opal_iov_cache_layout_t *high = layout_vector(8, 16, INT64_MAX / 8);
    unsigned char *area = calloc(1, 2048), *there = area + 1024;
    mca_btl_umr_memory_t *memory, *part;
    uint64_t lo = (uintptr_t) there, hi = lo + 7 * 64 + 16;
    struct done done = {0, 0};
    uint64_t writes = harness.hca->stats()->writes_posted;
    const mca_btl_umr_hca_ops_t *hca = harness.hca;
    mca_btl_umr_key_t region = {.addr = lo, .length = hi - lo, .rkey = 1};
    mca_btl_umr_direct_t good, bad;

    CHECK_RC(OPAL_SUCCESS,
             hca->memory_register(MCA_BTL_UMR_LOCAL, area, layout, layout->size, &memory));
    CHECK_RC(OPAL_SUCCESS, hca->memory_register(MCA_BTL_UMR_LOCAL, area, layout, 40, &part));
    good = (mca_btl_umr_direct_t){.buffer = area,
                                  .layout = layout,
                                  .memory = memory,
                                  .to = layout->form,
                                  .to_buffer = lo,
                                  .regions = &region,
                                  .region_count = 1,
                                  .start = 0,
                                  .end = layout->size};

#define REFUSED(what, ...)                                                               \
    do {                                                                                 \
        bad = good;                                                                      \
        __VA_ARGS__;                                                                     \
        CHECK(OPAL_ERR_BAD_PARAM                                                         \
                  == hca->put_direct(harness.endpoint, &bad, NULL, harness_done, &done), \
              "%s", what);                                                               \
    } while (0)
#define REGIONS(...)                                                  \
    do {                                                              \
        static mca_btl_umr_key_t some[] = {__VA_ARGS__};              \
        mca_btl_umr_key_t made[sizeof(some) / sizeof(some[0])];       \
        for (size_t r = 0; r < sizeof(some) / sizeof(some[0]); ++r) { \
            made[r] = some[r];                                        \
            made[r].addr += lo;                                       \
        }                                                             \
        memcpy(cached, made, sizeof(made));                           \
        bad.regions = cached;                                         \
        bad.region_count = sizeof(some) / sizeof(some[0]);            \
    } while (0)
    mca_btl_umr_key_t cached[8];

    REFUSED("nothing", bad.end = 0);
    REFUSED("backwards", bad.start = 100; bad.end = 99);
    REFUSED("longer than the layout", bad.end = layout->size + 1);
    REFUSED("longer than theirs", bad.to = other->form; bad.layout = high; bad.end = 200);
    REFUSED("longer than the memory", bad.memory = part);
    REFUSED("another buffer", bad.buffer = area + 1);
    REFUSED("another layout", bad.layout = other);
    REFUSED("no region", bad.region_count = 0);
    REFUSED("a byte below", bad.to_buffer = lo - 1);
    REFUSED("a byte above", bad.to_buffer = lo + 1);
    REFUSED("far above", bad.to_buffer = lo + (UINT64_C(1) << 63));
    REFUSED("around the end of memory", bad.to = high->form; bad.to_buffer = UINT64_MAX - 100);
    REFUSED("an empty region", REGIONS({.addr = 0, .length = 0}));
    REFUSED("a region around the end", REGIONS({.addr = 0, .length = UINT64_MAX}));
    REFUSED("overlapping", REGIONS({.addr = 0, .length = 200}, {.addr = 199, .length = 400}));
    REFUSED("touching", REGIONS({.addr = 0, .length = 200}, {.addr = 200, .length = 400}));
    REFUSED("descending", REGIONS({.addr = 200, .length = 400}, {.addr = 0, .length = 100}));
    REFUSED("a hole within a block",
            REGIONS({.addr = 0, .length = 129}, {.addr = 131, .length = 400}));
    REFUSED("a hole at a block", REGIONS({.addr = 0, .length = 128}, {.addr = 145, .length = 400}));
    REFUSED("the last block cut",
            REGIONS({.addr = 0, .length = 128}, {.addr = 160, .length = 303}));
    CHECK(writes == hca->stats()->writes_posted, "something was posted");
    CHECK(0 == done.calls, "a completion was reported");
    hca->memory_release(part);
    hca->memory_release(memory);
    OBJ_RELEASE(high);
    OBJ_RELEASE(other);
    OBJ_RELEASE(layout);
    free(area);
}

enum {
    PUTS = 12,
    PIECES = 60,
    LENGTH = 24,
    SPACING = 64
};

/** Both sides of several puts at once: the same vector there, another one here. */
struct several {
    unsigned char *area;
    opal_iov_cache_layout_t *layout;
    mca_btl_umr_memory_t *memory[PUTS];
    struct place place[PUTS];
    opal_iov_cache_form_t *to[PUTS];
    struct done done[PUTS];
};

static unsigned char *several_buffer(const struct several *several, size_t i)
{
    return several->area + i * PIECES * SPACING;
}

static void several_begin(struct several *several, bool send)
{
    memset(several, 0, sizeof(*several));
    several->area = malloc((size_t) PUTS * PIECES * SPACING);
    memset(several->area, FILLER, (size_t) PUTS * PIECES * SPACING);
    /* 3 pieces of the sender are 2 of the receiver */
    several->layout = send ? layout_vector(PIECES, LENGTH, SPACING)
                           : layout_vector(PIECES * 2 / 3, LENGTH * 3 / 2, SPACING);
    for (size_t i = 0; i < PUTS; ++i) {
        if (send) {
            layout_fill(several_buffer(several, i), several->layout, (unsigned) i);
        }
        CHECK_RC(OPAL_SUCCESS,
                 harness.hca->memory_register(send ? MCA_BTL_UMR_LOCAL : MCA_BTL_UMR_REMOTE,
                                              several_buffer(several, i), several->layout,
                                              several->layout->size, &several->memory[i]));
        if (send) {
            several->to[i] = place_receive(&several->place[i]);
        } else {
            place_send(several_buffer(several, i), several->layout, several->memory[i]);
        }
    }
}

static int several_put(struct several *several, uint32_t i, bool fin)
{
    mca_btl_umr_direct_t direct =
        part_of(several_buffer(several, i), several->layout, several->memory[i], several->to[i],
                &several->place[i], 0, several->layout->size);

    return harness.hca->put_direct(harness.endpoint, &direct, fin ? &i : NULL, harness_done,
                                   &several->done[i]);
}

static void several_end(struct several *several)
{
    harness_barrier();
    for (size_t i = 0; i < PUTS; ++i) {
        harness.hca->memory_release(several->memory[i]);
        opal_iov_cache_form_free(several->to[i]);
    }
    OBJ_RELEASE(several->layout);
    free(several->area);
}

/**
 * More puts at once than entries of the send queue, each of many writes: no credit is lost or used
 * twice, and the FINs come in the order of the calls. (Run with a small btl_umr_sq_depth.)
 */
static void direct_many(void)
{
    bool send = 0 == harness.rank;
    size_t first = harness.fin_count;
    struct several several;

    for (size_t i = 0; i < PUTS && !send; ++i) {
        CHECK_RC(OPAL_SUCCESS, harness.hca->fin_reserve(harness.endpoint));
    }
    several_begin(&several, send);
    if (send) {
        for (uint32_t i = 0; i < PUTS; ++i) {
            CHECK_RC(OPAL_SUCCESS, several_put(&several, i, true));
        }
        for (size_t i = 0; i < PUTS; ++i) {
            WAIT_UNTIL(0 < several.done[i].calls);
            CHECK(1 == several.done[i].calls && OPAL_SUCCESS == several.done[i].status,
                  "put %zu: %d calls, %d", i, several.done[i].calls, several.done[i].status);
        }
    } else {
        WAIT_UNTIL(PUTS == harness.fin_count - first);
        for (size_t i = 0; i < PUTS; ++i) {
            CHECK(i == harness.fins[first + i], "FIN %u in place %zu", harness.fins[first + i], i);
            layout_check(several_buffer(&several, i), (size_t) PIECES * SPACING,
                         several_buffer(&several, i), several.layout, several.layout->size,
                         (unsigned) i, FILLER);
        }
    }
    several_end(&several);
}

/** Each has ended once, and the last one not well. */
static void ended_once(struct several *several)
{
    for (size_t i = 0; i < PUTS; ++i) {
        WAIT_UNTIL(0 < several->done[i].calls);
    }
    harness_progress_for(0.1);
    for (size_t i = 0; i < PUTS; ++i) {
        CHECK(1 == several->done[i].calls, "put %zu: called %d times", i, several->done[i].calls);
    }
    CHECK(OPAL_ERR_UNREACH == several->done[PUTS - 1].status, "status %d",
          several->done[PUTS - 1].status);
    CHECK(harness.hca->endpoint_broken(harness.endpoint), "not broken");
    several->done[0].calls = 0;
    CHECK_RC(OPAL_ERR_UNREACH, several_put(several, 0, false));
    harness_progress_for(0.01);
    CHECK(0 == several->done[0].calls, "refused, and called");
}

/** The sender breaks in the middle of the walk of some put. (Run with a small btl_umr_sq_depth.) */
static void direct_broken(void)
{
    bool send = 0 == harness.rank;
    struct several several;

    several_begin(&several, send);
    if (send) {
        for (uint32_t i = 0; i < PUTS; ++i) {
            CHECK_RC(OPAL_SUCCESS, several_put(&several, i, false));
        }
        harness.hca->progress();
        harness.hca->endpoint_break(harness.endpoint);
        ended_once(&several);
    }
    several_end(&several);
}

/** The receiver breaks: nothing lands any more, and the sender's puts end, each once. */
static void direct_refused(void)
{
    bool send = 0 == harness.rank;
    struct several several;

    several_begin(&several, send);
    if (send) {
        harness_barrier();
        for (uint32_t i = 0; i < PUTS; ++i) {
            int rc = several_put(&several, i, false);

            CHECK(OPAL_SUCCESS == rc || OPAL_ERR_UNREACH == rc, "put_direct returned %d", rc);
            if (OPAL_SUCCESS != rc) {
                several.done[i].calls = 1;
                several.done[i].status = rc;
            }
        }
        ended_once(&several);
    } else {
        harness.hca->endpoint_break(harness.endpoint);
        harness_barrier();
    }
    several_end(&several);
}

/** The peer's key is not (any more) what it was: the write is refused, and nothing is written. */
static void direct_stale(void)
{
    bool send = 0 == harness.rank;
    struct several several;

    several_begin(&several, send);
    if (send) {
        for (uint32_t i = 0; i < PUTS; ++i) {
            several.place[i].regions[0].rkey ^= 0x5500;
            CHECK_RC(OPAL_SUCCESS, several_put(&several, i, false));
        }
        ended_once(&several);
        harness_barrier();
    } else {
        harness_barrier();
        for (size_t i = 0; i < (size_t) PUTS * PIECES * SPACING; ++i) {
            CHECK(FILLER == several.area[i], "byte %zu was written", i);
        }
    }
    several_end(&several);
}

/** Without UMR: the capabilities that the HCA reports, and keysets of one key for each piece. */
static void no_umr(void)
{
    const mca_btl_umr_caps_t *caps = harness.hca->caps();
    opal_iov_cache_layout_t *layout = layout_vector(5, 100, 300);
    unsigned char *area = malloc(2000);
    bool send = 0 == harness.rank;
    struct side side = {area, layout, 0, 16};
    opal_iov_cache_limits_t limits;
    mca_btl_umr_memory_t *memory;
    mca_btl_umr_keyset_t *keyset;

    CHECK(!caps->umr.usable && '\0' != caps->umr.why[0], "UMR is there");
    CHECK(0 == caps->max_keys, "%zu keys", caps->max_keys);
    for (int kind = 0; kind < MCA_BTL_UMR_TIER_MAX; ++kind) {
        CHECK(!caps->tiers[kind].usable && '\0' != caps->tiers[kind].why[0], "tier %d", kind);
    }
    harness.hca->key_limits(layout, &limits);
    CHECK(1 == limits.max_iovs, "%zu pieces in one key", limits.max_iovs);
    keyset = keyset_of(send ? MCA_BTL_UMR_LOCAL : MCA_BTL_UMR_REMOTE, &side, layout->size, &memory);
    CHECK(5 == keyset->count, "%zu keys", keyset->count);
    harness.hca->keyset_release(keyset);
    harness.hca->memory_release(memory);
    memset(area, FILLER, 2000);
    if (send) {
        layout_fill(area, layout, 1);
    }
    message(send, &side, layout->size, 7);
    layout_check(area, 2000, area, layout, layout->size, 1, FILLER);
    CHECK(0 == harness.hca->stats()->mkeys_now, "there are mkeys");
    OBJ_RELEASE(layout);
    free(area);
}

/** How many pieces a write gathers: the number in UMRDDT_TEST_PIECES. */
static void write_pieces(void)
{
    const char *text = getenv("UMRDDT_TEST_PIECES");

    CHECK(NULL != text && harness.hca->caps()->write_pieces == (size_t) atoi(text),
          "%zu pieces, not %s", harness.hca->caps()->write_pieces, text);
}

const struct test direct_tests[] = {
    {"direct_layouts", direct_layouts}, {"direct_ranges", direct_ranges},
    {"direct_odd", direct_odd},         {"direct_regions", direct_regions},
    {"direct_bad", direct_bad},         {"direct_many", direct_many},
    {"direct_broken", direct_broken},   {"direct_refused", direct_refused},
    {"direct_stale", direct_stale},     {"no_umr", no_umr},
    {"write_pieces", write_pieces},     {NULL, NULL},
};
