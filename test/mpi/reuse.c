/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The same few memory areas, repeatedly: caches between messages (layouts, mkeys, registrations)
 * must not outlive their objects. Before, between and after the messages the memory of an area is
 * unmapped and mapped again at the same address, and datatypes are freed and created again, on one
 * side or both, also when the message has arrived and its receive is not posted yet.
 *
 * The bytes are always checked. The software ConnectX accesses memory by its address, so they would
 * also be right with old keys. Therefore the counters must show that no old key was found.
 */

#include "layouts.h"
#include "mpitest.h"
#include "pvars.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    PLACES = 3,
    KINDS = 4,
    SIZES = 2,
    ROOM = 512 << 10
};

/* Events between two messages. */
typedef enum event_t {
    NOTHING,
    UNMAP,   /* unmapped, and other memory at the same address */
    OVERMAP, /* other memory over it */
    DROP,    /* the same address, other pages */
    RETYPE,  /* every datatype is freed, and created again */
    EVENTS
} event_t;

static const mpitest_kind_t kinds[KINDS] = {MPITEST_FINE, MPITEST_COARSE, MPITEST_IRREGULAR,
                                            MPITEST_NESTED};
static const int sizes[SIZES] = {6000, 40000};

typedef struct place_t {
    unsigned char *memory;
    bool fresh; /* other memory than for the last message */
} place_t;

static place_t places[PLACES];
static MPI_Datatype types[KINDS][SIZES];
static mpitest_map_t *maps[KINDS][SIZES];
static long events[EVENTS];

static void *map(void *where)
{
    void *memory = mmap(where, ROOM, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | (NULL == where ? 0 : MAP_FIXED), -1, 0);

    CHECK(MAP_FAILED != memory);
    return memory;
}

static void make_types(void)
{
    int kind, size;

    for (kind = 0; kind < KINDS; ++kind) {
        for (size = 0; size < SIZES; ++size) {
            types[kind][size] = mpitest_type(kinds[kind], sizes[size], 5);
            maps[kind][size] = mpitest_map(types[kind][size], 1);
            CHECK(maps[kind][size]->span + 2 * MPITEST_GUARD <= ROOM);
        }
    }
}

static void free_types(void)
{
    int kind, size;

    for (kind = 0; kind < KINDS; ++kind) {
        for (size = 0; size < SIZES; ++size) {
            mpitest_map_free(maps[kind][size]);
            MPI_OK(MPI_Type_free(&types[kind][size]));
        }
    }
}

/* An event, or none; half of the time. */
static void happen(uint64_t *state, place_t *place)
{
    event_t event = (event_t) mpitest_between(state, 0, 2 * EVENTS - 1);

    event = EVENTS <= event ? NOTHING : event;
    switch (event) {
    case UNMAP:
        CHECK_INT(munmap(place->memory, ROOM), 0);
        CHECK(place->memory == map(place->memory));
        place->fresh = true;
        break;
    case OVERMAP:
        CHECK(place->memory == map(place->memory));
        place->fresh = true;
        break;
    case DROP:
        CHECK_INT(madvise(place->memory, ROOM, MADV_DONTNEED), 0);
        place->fresh = true;
        break;
    case RETYPE:
        free_types();
        make_types();
        break;
    default:
        break;
    }
    ++events[event];
}

/* The same draws on both ranks, except the events, which each rank draws itself. */
static void one_message(bool counted)
{
    uint64_t common = mpitest_mix(mpitest.seed, (uint64_t) mpitest.step, 1);
    uint64_t own = mpitest_mix(mpitest.seed, (uint64_t) mpitest.step, 2 + (uint64_t) mpitest.rank);
    int kind = (int) mpitest_between(&common, 0, KINDS - 1);
    int size = (int) mpitest_between(&common, 0, SIZES - 1);
    bool sender = mpitest.rank == (int) mpitest_between(&common, 0, 1);
    bool waits = 0 != mpitest_between(&common, 0, 1);
    uint64_t key = mpitest_mix(mpitest.seed, (uint64_t) mpitest.step, 7);
    place_t *place = &places[mpitest_between(&own, 0, PLACES - 1)];
    mpitest_buffer_t buffer = {.memory = place->memory};
    int tag = (int) (mpitest.step % 100);
    pvars_t before, after, seen;

    happen(&own, place);
    if (!sender && waits) {
        MPI_OK(MPI_Probe(1 - mpitest.rank, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        happen(&own, place);
    }
    buffer.map = maps[kind][size];
    buffer.addr = buffer.memory + MPITEST_GUARD - buffer.map->lb;
    pvars_read(&before);
    if (sender) {
        mpitest_fill(&buffer, key);
        MPI_OK(MPI_Send(buffer.addr, 1, types[kind][size], 1 - mpitest.rank, tag, MPI_COMM_WORLD));
    } else {
        mpitest_clear(&buffer);
        MPI_OK(MPI_Recv(buffer.addr, 1, types[kind][size], 1 - mpitest.rank, tag, MPI_COMM_WORLD,
                        MPI_STATUS_IGNORE));
    }
    VERIFY(&buffer, key, sizes[size]);
    pvars_read(&after);
    pvars_subtract(&after, &before, &seen);
    if (counted && place->fresh) {
        CHECK_INT(seen.value[PVARS_KEYSET_HITS], 0);
    }
    place->fresh = false;
    happen(&own, place);
}

int main(int argc, char **argv)
{
    pvars_t before, after, mine, all;
    bool umr;
    int i, have;

    mpitest_init(&argc, &argv, "reuse", 400, MPI_THREAD_SINGLE);
    if (2 != mpitest.size) {
        mpitest_skip("needs two ranks");
    }
    umr = 0 == strcmp(mpitest.mode, "umr");
    have = pvars_open();
    CHECK(!umr || PVARS_MAX == have);
    for (i = 0; i < PLACES; ++i) {
        places[i].memory = map(NULL);
    }
    make_types();
    pvars_read(&before);
    for (mpitest.step = 0; mpitest.step < mpitest.ops; ++mpitest.step) {
        one_message(umr);
    }
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    pvars_read(&after);
    pvars_subtract(&after, &before, &mine);
    pvars_sum(&mine, &all);
    if (0 == mpitest.rank && 0 < have) {
        pvars_print("counters, all ranks:", &all);
    }
    if (umr && 100 <= mpitest.ops) {
        /* or no attempt was made */
        CHECK_INT(all.value[PVARS_HANDLED_RECVS], mpitest.ops);
        /* With few cached rkey sets a hit is a matter of chance. */
        CHECK(0 < all.value[PVARS_KEYSET_HITS] || 16 > pvars_parameter("btl_umr_key_cache", 16));
        CHECK(0 < all.value[PVARS_KEYSETS_STALE]);
        for (i = 0; i < EVENTS; ++i) {
            CHECK(0 < events[i]);
        }
    }
    free_types();
    for (i = 0; i < PLACES; ++i) {
        CHECK_INT(munmap(places[i].memory, ROOM), 0);
    }
    pvars_close();
    return mpitest_finish();
}
