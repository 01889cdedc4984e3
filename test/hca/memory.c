/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Registered memory. */

#include "harness.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILLER 0x77
#define PAGE   4096

static unsigned char *map_pages(void *where, size_t bytes)
{
    void *area = mmap(where, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | (NULL == where ? 0 : MAP_FIXED), -1, 0);

    CHECK(MAP_FAILED != area, "mmap");
    return area;
}

/** The second registration of a buffer is a hit, and serves the other role too. */
static void hits(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    opal_iov_cache_layout_t *layout = layout_vector(10, 1000, 3000);
    unsigned char *area = map_pages(NULL, 16 * PAGE);
    mca_btl_umr_stats_t before = *stats;
    mca_btl_umr_memory_t *memory;

    CHECK_RC(OPAL_SUCCESS,
             harness.hca->memory_register(MCA_BTL_UMR_REMOTE, area, layout, layout->size, &memory));
    CHECK(before.reg_misses + 1 == stats->reg_misses, "one registration for near pieces");
    CHECK(before.reg_bytes_now < stats->reg_bytes_now, "no bytes registered");
    harness.hca->memory_release(memory);
    CHECK_RC(OPAL_SUCCESS,
             harness.hca->memory_register(MCA_BTL_UMR_LOCAL, area, layout, layout->size, &memory));
    CHECK(before.reg_misses + 1 == stats->reg_misses, "registered again");
    CHECK(before.reg_hits + 1 == stats->reg_hits, "not a hit");
    harness.hca->memory_release(memory);
    munmap(area, 16 * PAGE);
    OBJ_RELEASE(layout);
}

/** Never more than the bound; unused registrations are evicted for used ones.
 * (btl_umr_reg_cache_size=1048576) */
static void bound(void)
{
    enum {
        BUFFERS = 64,
        BYTES = 64 << 10,
        BOUND = 1 << 20
    };
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    opal_iov_cache_layout_t *layout = layout_vector(1, BYTES, BYTES);
    opal_iov_cache_layout_t *large = layout_vector(1, 2 * BOUND, 2 * BOUND);
    unsigned char *area = map_pages(NULL, (size_t) BUFFERS * 2 * BYTES);
    mca_btl_umr_memory_t *memories[BUFFERS];
    size_t held = 0;
    int rc = OPAL_SUCCESS;

    for (size_t i = 0; i < BUFFERS; ++i) {
        CHECK_RC(OPAL_SUCCESS, harness.hca->memory_register(MCA_BTL_UMR_LOCAL, area + 2 * i * BYTES,
                                                            layout, BYTES, &memories[0]));
        CHECK(BOUND >= stats->reg_bytes_now, "%llu bytes registered",
              (unsigned long long) stats->reg_bytes_now);
        harness.hca->memory_release(memories[0]);
    }
    CHECK(BOUND / 2 < stats->reg_bytes_now, "nothing was kept: %llu bytes",
          (unsigned long long) stats->reg_bytes_now);

    while (BUFFERS > held
           && OPAL_SUCCESS
                  == (rc = harness.hca->memory_register(MCA_BTL_UMR_REMOTE, area + 2 * held * BYTES,
                                                        layout, BYTES, &memories[held]))) {
        ++held;
    }
    CHECK_RC(OPAL_ERR_OUT_OF_RESOURCE, rc);
    CHECK(BOUND / BYTES == held, "%zu buffers fit", held);
    CHECK(BOUND >= stats->reg_bytes_now, "%llu bytes registered",
          (unsigned long long) stats->reg_bytes_now);
    harness.hca->memory_release(memories[--held]);
    CHECK_RC(OPAL_SUCCESS,
             harness.hca->memory_register(MCA_BTL_UMR_REMOTE, area + 2 * (BUFFERS - 1) * BYTES,
                                          layout, BYTES, &memories[held]));
    for (size_t i = 0; i <= held; ++i) {
        harness.hca->memory_release(memories[i]);
    }
    CHECK_RC(OPAL_ERR_OUT_OF_RESOURCE,
             harness.hca->memory_register(MCA_BTL_UMR_LOCAL, area, large, 2 * BOUND, &memories[0]));
    munmap(area, (size_t) BUFFERS * 2 * BYTES);
    OBJ_RELEASE(layout);
    OBJ_RELEASE(large);
}

/** A refusal of the system is passed on, and rank 0 reports it once. (reg_bytes=200000) */
static void refused(void)
{
    opal_iov_cache_layout_t *layout = layout_vector(100, 2000, 3000);
    unsigned char *area = map_pages(NULL, 300 << 10);
    mca_btl_umr_memory_t *memory;

    for (int i = 0; i < 3 && 0 == harness.rank; ++i) {
        CHECK_RC(
            OPAL_ERR_OUT_OF_RESOURCE,
            harness.hca->memory_register(MCA_BTL_UMR_REMOTE, area, layout, layout->size, &memory));
    }
    munmap(area, 300 << 10);
    OBJ_RELEASE(layout);
}

/**
 * Memory is freed and other memory gets the same address: the old registration must not be used.
 *
 * The software HCA accesses memory by its address, so it would write to the new pages in both
 * cases. The test checks that the registration is a new one.
 */
static void remapped_address(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    opal_iov_cache_layout_t *layout = layout_vector(8, 512, 1024);
    unsigned char *area = map_pages(NULL, 4 * PAGE);

    for (unsigned round = 0; round < 4; ++round) {
        uint64_t misses = stats->reg_misses;
        bool send = (int) (round % 2) == harness.rank;
        struct side side = {area, layout, 0, 64};

        memset(area, FILLER, 4 * PAGE);
        if (send) {
            layout_fill(area, layout, round);
        }
        message(send, &side, layout->size, round);
        layout_check(area, 4 * PAGE, area, layout, layout->size, round, FILLER);
        CHECK(misses < stats->reg_misses,
              "round %u: the registration of memory that is gone served", round);
        misses = stats->reg_misses;
        message(send, &side, layout->size, round);
        CHECK(misses == stats->reg_misses, "round %u: registered again without need", round);
        if (2 > round) {
            CHECK(0 == munmap(area, 4 * PAGE), "munmap");
            CHECK(area == map_pages(area, 4 * PAGE), "another address");
        } else {
            /* Over it, without munmap. */
            CHECK(area == map_pages(area, 4 * PAGE), "another address");
        }
    }
    munmap(area, 4 * PAGE);
    OBJ_RELEASE(layout);
}

/**
 * Memory is unmapped while it is in use: the cache forgets it immediately, and the HCA holds it
 * until the end of its use.
 */
static void let_go(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    opal_iov_cache_layout_t *layout = layout_vector(8, 512, 1024);
    unsigned char *area = map_pages(NULL, 4 * PAGE);
    uint64_t before = stats->reg_bytes_now, both, misses, one;
    mca_btl_umr_memory_t *old[2], *memory;

    for (int i = 0; i < 2; ++i) {
        CHECK_RC(OPAL_SUCCESS, harness.hca->memory_register(MCA_BTL_UMR_LOCAL, area, layout,
                                                            layout->size, &old[i]));
    }
    for (int i = 0; i < 2; ++i) {
        harness.hca->memory_let_go(old[i]);
        harness.hca->memory_let_go(old[i]);
    }
    one = stats->reg_bytes_now - before;
    misses = stats->reg_misses;
    CHECK(0 == munmap(area, 4 * PAGE), "munmap");
    CHECK(area == map_pages(area, 4 * PAGE), "another address");
    CHECK_RC(OPAL_SUCCESS,
             harness.hca->memory_register(MCA_BTL_UMR_LOCAL, area, layout, layout->size, &memory));
    CHECK(misses + 1 == stats->reg_misses, "what is gone served");
    /* from here on: what earlier tests unmapped is deregistered by now */
    both = stats->reg_bytes_now;
    harness.hca->memory_release(old[0]);
    CHECK(0 < one && both == stats->reg_bytes_now, "deregistered while in use");
    harness.hca->memory_release(old[1]);
    CHECK(both - one >= stats->reg_bytes_now, "still registered: %llu bytes, %llu are one",
          (unsigned long long) stats->reg_bytes_now, (unsigned long long) one);
    harness.hca->memory_let_go(old[1]); /* has no owner any more */
    harness.hca->memory_let_go(NULL);
    harness.hca->memory_release(memory);

    /* the remainder stays for the next one */
    misses = stats->reg_misses;
    for (int i = 0; i < 3; ++i) {
        CHECK_RC(OPAL_SUCCESS, harness.hca->memory_register(MCA_BTL_UMR_LOCAL, area, layout,
                                                            layout->size, &memory));
        harness.hca->memory_let_go(memory);
        harness.hca->memory_release(memory);
    }
    CHECK(misses == stats->reg_misses, "registered again without need");
    munmap(area, 4 * PAGE);
    OBJ_RELEASE(layout);
}

/** What was let go may have to leave the cache for others, and is registered to its end all the
 * same. (btl_umr_reg_cache_size=1048576) */
static void let_go_and_bound(void)
{
    enum {
        BYTES = 512 << 10
    };
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    opal_iov_cache_layout_t *layout = layout_vector(1, BYTES, BYTES);
    unsigned char *area = map_pages(NULL, (size_t) 4 * BYTES);
    mca_btl_umr_memory_t *old, *memory;

    CHECK_RC(OPAL_SUCCESS,
             harness.hca->memory_register(MCA_BTL_UMR_LOCAL, area, layout, BYTES, &old));
    harness.hca->memory_let_go(old);
    CHECK_RC(OPAL_SUCCESS,
             harness.hca->memory_register(MCA_BTL_UMR_LOCAL, area + BYTES, layout, BYTES, &memory));
    for (int i = 0; i < 2; ++i) {
        mca_btl_umr_memory_t *more;

        CHECK_RC(OPAL_ERR_OUT_OF_RESOURCE,
                 harness.hca->memory_register(MCA_BTL_UMR_LOCAL, area + 2 * BYTES, layout, BYTES,
                                              &more));
    }
    CHECK(2 * BYTES <= stats->reg_bytes_now, "deregistered while in use");
    harness.hca->memory_release(old);
    CHECK_RC(OPAL_SUCCESS, harness.hca->memory_register(MCA_BTL_UMR_LOCAL, area + 2 * BYTES, layout,
                                                        BYTES, &old));
    harness.hca->memory_release(old);
    harness.hca->memory_release(memory);
    munmap(area, (size_t) 4 * BYTES);
    OBJ_RELEASE(layout);
}

/** The same by malloc and free, with sizes that malloc gives back to the system. */
static void freed_memory(void)
{
    opal_iov_cache_layout_t *layout = layout_vector(300, 1024, 2048);

    for (unsigned round = 0; round < 6; ++round) {
        size_t room = 300 * 2048;
        unsigned char *area = malloc(room);
        bool send = (int) (round % 2) == harness.rank;
        struct side side = {area, layout, 0, 64};

        memset(area, FILLER, room);
        if (send) {
            layout_fill(area, layout, round);
        }
        message(send, &side, layout->size, round);
        layout_check(area, room, area, layout, layout->size, round, FILLER);
        free(area);
    }
    OBJ_RELEASE(layout);
}

static const unsigned char constant[4 * PAGE]
    __attribute__((aligned(PAGE))) = {[0 ... 4 * PAGE - 1] = 0xc3};

/** Const data can be sent, is registered once, and cannot be received into. */
static void read_only(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    opal_iov_cache_layout_t *layout = layout_vector(20, 300, 700);
    bool send = 1 == harness.rank;
    unsigned char *area = map_pages(NULL, 4 * PAGE);
    struct side side = {send ? (void *) (uintptr_t) constant : area, layout, 0, 64};
    mca_btl_umr_memory_t *memory = NULL;
    uint64_t misses;

    memset(area, FILLER, 4 * PAGE);
    message(send, &side, layout->size, 1);
    if (!send) {
        for (size_t i = 0; i < 4 * PAGE; ++i) {
            bool data = i / 700 < 20 && i % 700 < 300;

            CHECK((data ? 0xc3 : FILLER) == area[i], "byte %zu is 0x%02x", i, area[i]);
        }
    }
    misses = stats->reg_misses;
    message(send, &side, layout->size, 2);
    CHECK(misses == stats->reg_misses, "registered again");
    CHECK_RC(OPAL_ERR_BAD_PARAM,
             harness.hca->memory_register(MCA_BTL_UMR_REMOTE, (void *) (uintptr_t) constant, layout,
                                          layout->size, &memory));
    CHECK(NULL == memory, "output written without success");

    /* What was registered for reading becomes writable: the role decides, not the cache. */
    CHECK(0 == mprotect(area, 4 * PAGE, PROT_READ), "mprotect");
    munmap(area, 4 * PAGE);
    area = map_pages(NULL, 4 * PAGE);
    CHECK(0 == mprotect(area, 4 * PAGE, PROT_READ), "mprotect");
    CHECK_RC(OPAL_SUCCESS,
             harness.hca->memory_register(MCA_BTL_UMR_LOCAL, area, layout, layout->size, &memory));
    harness.hca->memory_release(memory);
    CHECK(0 == mprotect(area, 4 * PAGE, PROT_READ | PROT_WRITE), "mprotect");
    CHECK_RC(OPAL_SUCCESS,
             harness.hca->memory_register(MCA_BTL_UMR_REMOTE, area, layout, layout->size, &memory));
    harness.hca->memory_release(memory);
    munmap(area, 4 * PAGE);
    OBJ_RELEASE(layout);
}

/** Few bytes over a wide range: pieces that are near enough are one registration, the first time
 * and later. */
static void wide(void)
{
    enum {
        COUNT = 60,
        DISTANCE = 65536 + 512
    };
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    opal_iov_cache_layout_t *layout = layout_vector(COUNT, 24, DISTANCE);
    size_t room = (size_t) COUNT * DISTANCE;
    unsigned char *area = map_pages(NULL, room);
    struct side side = {area, layout, 0, 64};
    bool send = 0 == harness.rank;
    uint64_t misses = stats->reg_misses;

    for (uint64_t size = layout->size; 24 * 50 < size; size -= 24 * 3 + 5) {
        for (unsigned round = 0; round < 2; ++round) {
            memset(area, FILLER, room);
            if (send) {
                layout_fill(area, layout, round);
            }
            message(send, &side, size, round);
            if (!send) {
                layout_check(area, room, area, layout, size, round, FILLER);
            }
        }
    }
    /* (The check frees memory that may be adjacent to it, a sufficient reason for the cache to drop
     * it.) */
    CHECK(!send || misses + 1 == stats->reg_misses, "%llu registrations for one range",
          (unsigned long long) (stats->reg_misses - misses));
    munmap(area, room);
    OBJ_RELEASE(layout);
}

/** Too wide to be registered as a whole, but the pages that are touched are few. (Same bound.) */
static void wide_and_bound(void)
{
    enum {
        COUNT = 30,
        DISTANCE = 65536,
        BOUND = 1 << 20
    };
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    opal_iov_cache_layout_t *layout = layout_vector(COUNT, 100, DISTANCE);
    opal_iov_cache_layout_t *near = layout_vector(2, 100, 200);
    opal_iov_cache_layout_t *large = layout_vector(1, 2 * BOUND, 2 * BOUND);
    size_t room = (size_t) COUNT * DISTANCE;
    unsigned char *area = map_pages(NULL, room), *cached = map_pages(NULL, PAGE);
    struct side side = {area, layout, 0, 64};
    bool send = 1 == harness.rank;
    mca_btl_umr_memory_t *memory;
    uint64_t misses;

    memset(area, FILLER, room);
    if (send) {
        layout_fill(area, layout, 3);
    }
    message(send, &side, layout->size, 3);
    layout_check(area, room, area, layout, layout->size, 3, FILLER);
    CHECK(BOUND >= stats->reg_bytes_now, "%llu bytes registered",
          (unsigned long long) stats->reg_bytes_now);

    /* Memory that cannot be registered causes no eviction of other registrations. */
    CHECK_RC(OPAL_SUCCESS,
             harness.hca->memory_register(MCA_BTL_UMR_LOCAL, cached, near, near->size, &memory));
    harness.hca->memory_release(memory);
    misses = stats->reg_misses;
    CHECK_RC(OPAL_ERR_OUT_OF_RESOURCE,
             harness.hca->memory_register(MCA_BTL_UMR_LOCAL, area, large, large->size, &memory));
    CHECK_RC(OPAL_SUCCESS,
             harness.hca->memory_register(MCA_BTL_UMR_LOCAL, cached, near, near->size, &memory));
    harness.hca->memory_release(memory);
    CHECK(misses == stats->reg_misses, "the cache was emptied for nothing");
    munmap(area, room);
    munmap(cached, PAGE);
    OBJ_RELEASE(layout);
    OBJ_RELEASE(near);
    OBJ_RELEASE(large);
}

/** Pieces on both sides of a hole that is not mapped; and far from each other. */
static void holes(void)
{
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    unsigned char *area = map_pages(NULL, 64 * PAGE), *far = map_pages(NULL, 2 * PAGE);
    unsigned char on_stack[600];
    opal_iov_cache_iov_t near_iovs[] = {{100, 500},
                                        {5 * PAGE - 200, 200},
                                        {9 * PAGE, 300},
                                        {2 * PAGE - 8, 16},
                                        {9 * PAGE + 400, 64}};
    opal_iov_cache_iov_t far_iovs[] = {{(int64_t) (uintptr_t) (area + 50), 333},
                                       {(int64_t) (uintptr_t) on_stack, 600},
                                       {(int64_t) (uintptr_t) (far + PAGE - 10), 20}};
    opal_iov_cache_layout_t *layout = layout_list(near_iovs, 5);
    struct side side = {area, layout, 0, 64};
    bool send = 0 == harness.rank;
    mca_btl_umr_memory_t *memory = NULL;
    uint64_t misses;

    memset(area, FILLER, 64 * PAGE);
    munmap(area + 5 * PAGE, 4 * PAGE);
    if (send) {
        layout_fill(area, layout, 8);
    }
    message(send, &side, layout->size, 8);
    {
        /* The check cannot read the hole. */
        opal_iov_cache_layout_t *low = layout_list(near_iovs, 2);

        for (size_t i = 0; i < layout->iov_count; ++i) {
            for (uint64_t k = 0; k < opal_iov_cache_layout_iov(layout, i).length; ++k) {
                CHECK(stream_byte(opal_iov_cache_layout_start(layout, i) + k, 8)
                          == area[opal_iov_cache_layout_iov(layout, i).offset + (int64_t) k],
                      "piece %zu, byte %llu", i, (unsigned long long) k);
            }
        }
        OBJ_RELEASE(low);
    }
    OBJ_RELEASE(layout);

    /* A piece in the hole. */
    near_iovs[1].offset = 6 * PAGE;
    layout = layout_list(near_iovs, 5);
    CHECK_RC(OPAL_ERR_BAD_PARAM,
             harness.hca->memory_register(MCA_BTL_UMR_LOCAL, area, layout, layout->size, &memory));
    CHECK(NULL == memory, "output written without success");
    OBJ_RELEASE(layout);

    /* MPI_BOTTOM: absolute addresses in places that have nothing to do with each other. */
    layout = layout_list(far_iovs, 3);
    side.buffer = NULL;
    side.layout = layout;
    memset(on_stack, FILLER, sizeof(on_stack));
    memset(far, FILLER, 2 * PAGE);
    if (send) {
        layout_fill(NULL, layout, 4);
    }
    misses = stats->reg_misses;
    message(send, &side, layout->size, 4);
    CHECK(misses + 3 >= stats->reg_misses, "%llu registrations for three places",
          (unsigned long long) (stats->reg_misses - misses));
    for (size_t i = 0; i < layout->iov_count; ++i) {
        const unsigned char *at =
            (const unsigned char *) (uintptr_t) opal_iov_cache_layout_iov(layout, i).offset;

        for (uint64_t k = 0; k < opal_iov_cache_layout_iov(layout, i).length; ++k) {
            CHECK(stream_byte(opal_iov_cache_layout_start(layout, i) + k, 4) == at[k],
                  "far piece %zu, byte %llu", i, (unsigned long long) k);
        }
    }
    OBJ_RELEASE(layout);
    munmap(area, 5 * PAGE);
    munmap(area + 9 * PAGE, 55 * PAGE);
    munmap(far, 2 * PAGE);
}

/** True if a child of this process has the page. */
static bool inherited(void *page)
{
    int status = 0;
    pid_t pid = fork();

    if (0 == pid) {
        _exit(0 == msync(page, PAGE, MS_ASYNC) ? 1 : 0);
    }
    CHECK(0 < pid && pid == waitpid(pid, &status, 0) && WIFEXITED(status), "fork");
    return 1 == WEXITSTATUS(status);
}

/** Only memory that the device uses is withheld from children. */
static void registered_and_forked(bool cached)
{
    opal_iov_cache_layout_t *layout = layout_vector(8, 512, 1024);
    unsigned char *area = map_pages(NULL, 8 * PAGE);
    mca_btl_umr_memory_t *memory;

    CHECK(inherited(area), "it is unused");
    CHECK_RC(OPAL_SUCCESS,
             harness.hca->memory_register(MCA_BTL_UMR_REMOTE, area, layout, layout->size, &memory));
    CHECK(cached != inherited(area) && cached != inherited(area + PAGE), "a child has it, or not");
    CHECK(inherited(area + 4 * PAGE), "the page behind it is kept as well");
    harness.hca->memory_release(memory);
    munmap(area, 8 * PAGE);
    OBJ_RELEASE(layout);
}

/** (btl_umr_fork_support=1) */
static void cached_from_children(void)
{
    registered_and_forked(true);
}

/** Without that parameter, children get all memory. (btl_umr_fork_support=0) */
static void left_to_children(void)
{
    registered_and_forked(false);
}

/**
 * A child that is forked while this process has registrations, and that continues to write,
 * corrupts no message: neither a pending one nor the next one over the same registration.
 */
static void forks_between(void)
{
    opal_iov_cache_layout_t *layout = layout_vector(8, 512, 1024);
    unsigned char *area = map_pages(NULL, 4 * PAGE);

    for (unsigned round = 0; round < 6; ++round) {
        bool send = (int) (round % 2) == harness.rank;
        struct side side = {area, layout, 0, 64};
        int status = 0;
        pid_t pid = fork();

        if (0 == pid) {
            /* What is the child's own is written to; the pages of messages may not be there. */
            volatile unsigned char mine[PAGE];

            for (size_t i = 0; i < sizeof(mine); ++i) {
                mine[i] = (unsigned char) round;
            }
            _exit(0);
        }
        memset(area, FILLER, 4 * PAGE);
        if (send) {
            layout_fill(area, layout, round);
        }
        message(send, &side, layout->size, round);
        layout_check(area, 4 * PAGE, area, layout, layout->size, round, FILLER);
        CHECK(0 < pid && pid == waitpid(pid, &status, 0) && WIFEXITED(status)
                  && 0 == WEXITSTATUS(status),
              "the child ended with %x", (unsigned) status);
    }
    munmap(area, 4 * PAGE);
    OBJ_RELEASE(layout);
}

const struct test memory_tests[] = {
    {"hits", hits},
    {"bound", bound},
    {"refused", refused},
    {"remapped_address", remapped_address},
    {"freed_memory", freed_memory},
    {"let_go", let_go},
    {"let_go_and_bound", let_go_and_bound},
    {"read_only", read_only},
    {"wide", wide},
    {"wide_and_bound", wide_and_bound},
    {"holes", holes},
    {"cached_from_children", cached_from_children},
    {"left_to_children", left_to_children},
    {"forks_between", forks_between},
    {NULL, NULL},
};
