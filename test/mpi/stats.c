/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The scheme of messages, by the performance variables. --mode selects the expected result:
 *
 *  umr     large messages of a non-contiguous type go by UMR, with exact byte counts. Only the
 *          first message of each layout and buffer may go without mkeys. Contiguous and small
 *          messages do not go by UMR. A repeated layout is found in the cache.
 *  direct  the same, but all of them without mkeys, and the layout of the receiver is sent once
 *  memory  pml_umrddt_memory=gpu: messages from system memory are passed through, and counted so
 *  peer    rank 1 cannot (no HCA, another scheme): all messages are passed through
 *  host    the scheme "host", or no umrddt at all: umrddt handles no message
 *
 * In every mode every message must arrive complete.
 */

#include "layouts.h"
#include "mpitest.h"
#include "pvars.h"

#include <stdio.h>
#include <string.h>

typedef enum way_t {
    WAY_BLOCKING,
    WAY_NONBLOCKING,
    WAY_PERSISTENT,
    WAY_MPROBE,
    WAY_MAX
} way_t;

static bool is_umr, is_direct, is_cached, is_peer, is_none;
static int have;
static uint64_t min_size;

/* All counts here since the last call. */
static void since(pvars_t *last, pvars_t *difference)
{
    pvars_t now;

    pvars_read(&now);
    pvars_subtract(&now, last, difference);
    *last = now;
}

/* Send one message from rank 0 to rank 1 with the given call, 'times' times. */
static void transfer(mpitest_message_t *message, int times, way_t way, uint64_t key)
{
    int peer = 1 - mpitest.rank, i, count = -1;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Message handle;
    MPI_Status status;

    if (WAY_PERSISTENT == way && 0 == mpitest.rank) {
        MPI_OK(MPI_Send_init(message->addr, 1, message->type, peer, 1, MPI_COMM_WORLD, &request));
    } else if (WAY_PERSISTENT == way) {
        MPI_OK(MPI_Recv_init(message->addr, 1, message->type, peer, 1, MPI_COMM_WORLD, &request));
    }
    for (i = 0; i < times; ++i) {
        if (0 == mpitest.rank) {
            mpitest_fill(message->buffer, key + (uint64_t) i);
            switch (way) {
            case WAY_PERSISTENT:
                MPI_OK(MPI_Start(&request));
                MPI_OK(MPI_Wait(&request, &status));
                break;
            case WAY_NONBLOCKING:
                MPI_OK(
                    MPI_Isend(message->addr, 1, message->type, peer, 1, MPI_COMM_WORLD, &request));
                MPI_OK(MPI_Wait(&request, &status));
                break;
            default:
                MPI_OK(MPI_Send(message->addr, 1, message->type, peer, 1, MPI_COMM_WORLD));
                break;
            }
            continue;
        }
        mpitest_clear(message->buffer);
        switch (way) {
        case WAY_PERSISTENT:
            MPI_OK(MPI_Start(&request));
            MPI_OK(MPI_Wait(&request, &status));
            break;
        case WAY_NONBLOCKING:
            MPI_OK(MPI_Irecv(message->addr, 1, message->type, peer, 1, MPI_COMM_WORLD, &request));
            MPI_OK(MPI_Wait(&request, &status));
            break;
        case WAY_MPROBE:
            MPI_OK(MPI_Mprobe(peer, 1, MPI_COMM_WORLD, &handle, &status));
            MPI_OK(MPI_Mrecv(message->addr, 1, message->type, &handle, &status));
            break;
        default:
            MPI_OK(MPI_Recv(message->addr, 1, message->type, peer, 1, MPI_COMM_WORLD, &status));
            break;
        }
        MPI_OK(MPI_Get_count(&status, MPI_BYTE, &count));
        CHECK_INT(count, message->bytes);
        VERIFY(message->buffer, key + (uint64_t) i, message->bytes);
    }
    if (MPI_REQUEST_NULL != request) {
        MPI_OK(MPI_Request_free(&request));
    }
}

/* Messages without mkeys, as counted on either side. */
static uint64_t direct_of(const pvars_t *seen)
{
    return 0 == mpitest.rank ? seen->value[PVARS_SENDS_DIRECT]
                             : seen->value[PVARS_LAYOUTS_SENT] + seen->value[PVARS_LAYOUTS_CACHED];
}

/* 'times' messages between equal layouts, without mkeys: a write for each piece; for 'known' of
 * them the sender had the receiver's layout cached. */
static void check_direct(const pvars_t *seen, uint64_t times, uint64_t known, uint64_t writes,
                         uint64_t pieces)
{
    const uint64_t *value = seen->value;
    bool sender = 0 == mpitest.rank;

    CHECK_INT(direct_of(seen), times);
    CHECK_INT(value[PVARS_SENDS_UMR], 0);
    CHECK_INT(value[PVARS_KEYS_MAPPED], 0);
    CHECK_INT(value[PVARS_KEYS_PLAIN], 0);
    CHECK_INT(value[PVARS_KEYSET_HITS], 0);
    CHECK_INT(value[PVARS_CONTROL_MESSAGES], times);
    CHECK_INT(value[PVARS_WRITES_POSTED], sender ? times * writes : 0);
    CHECK_INT(value[PVARS_WRITES_DIRECT], sender ? times * writes : 0);
    CHECK_INT(value[PVARS_PIECES_DIRECT], sender ? times * pieces : 0);
    if (sender) {
        CHECK_INT(value[PVARS_CONTROL_BYTES], times * 104);
    } else {
        CHECK_INT(value[PVARS_LAYOUTS_CACHED], known);
        CHECK_INT(value[PVARS_ROUNDS], times);
        CHECK_INT(value[PVARS_FINS_RECEIVED], times);
        /* A CTS with one region; and the layouts. */
        if (known == times) {
            CHECK_INT(value[PVARS_CONTROL_BYTES], times * (72 + 24));
        } else {
            CHECK(value[PVARS_CONTROL_BYTES] > times * (72 + 24));
        }
    }
}

/* Expected counts of each side for 'times' messages of 'bytes' bytes. */
static void check_result(const pvars_t *seen, const mpitest_map_t *map, uint64_t bytes,
                         uint64_t times, way_t way, const char *what)
{
    /* Too few bytes for a second block make one piece of any kind. */
    bool contiguous = map->span == map->size;
    const uint64_t *value = seen->value;
    uint64_t direct = direct_of(seen);
    bool sender = 0 == mpitest.rank;
    uint64_t counted;

    if (mpitest.verbose) {
        printf("rank %d, %s:\n", mpitest.rank, what);
        pvars_print("   ", seen);
    }
    if (!is_umr || contiguous || bytes < min_size) {
        CHECK_INT(value[PVARS_HANDLED_SENDS], 0);
        CHECK_INT(value[PVARS_HANDLED_RECVS], 0);
        CHECK_INT(value[PVARS_HANDLED_BYTES], 0);
        CHECK_INT(value[PVARS_WRITES_POSTED], 0);
        CHECK_INT(value[PVARS_KEYS_MAPPED], 0);
    }
    if (0 == have || is_none) {
        return;
    }
    /* A request that is passed through counts once: a persistent one at its creation. */
    counted = WAY_PERSISTENT == way ? 1 : times;
    if (sender && contiguous) {
        CHECK(value[PVARS_PASSED_CONTIGUOUS] >= counted);
    } else if (sender && bytes < min_size) {
        CHECK(value[PVARS_PASSED_SMALL] >= counted);
    } else if (sender && is_peer) {
        CHECK(value[PVARS_PASSED_PEER] >= counted);
    }
    CHECK_INT(value[PVARS_FALLBACK_SENDS], 0);
    CHECK_INT(value[PVARS_FALLBACK_RECVS], 0);
    if (!is_umr || contiguous || bytes < min_size) {
        CHECK_INT(direct, 0);
        return;
    }
    CHECK_INT(value[PVARS_HANDLED_SENDS], sender ? times : 0);
    CHECK_INT(value[PVARS_HANDLED_RECVS], sender ? 0 : times);
    CHECK_INT(value[PVARS_HANDLED_BYTES], sender ? times * bytes : 0);
    CHECK_INT(value[PVARS_WRITE_BYTES], sender ? times * bytes : 0);
    CHECK_INT(value[PVARS_PASSED_CONTIGUOUS] + value[PVARS_PASSED_SMALL]
                  + value[PVARS_PASSED_MEMORY] + value[PVARS_PASSED_PEER],
              0);
    if (is_direct) {
        /* There is one layout per kind and size: it travels with the first message. */
        check_direct(seen, times, sender ? 0 : times - value[PVARS_LAYOUTS_SENT], map->run_count,
                     map->run_count);
        CHECK(value[PVARS_LAYOUTS_SENT] <= 1);
        return;
    }
    /* Both layouts have many pieces: a key on each side, with one entry if it is regular, and one
     * write. */
    if (is_cached) {
        CHECK(direct <= 1);
        CHECK(value[PVARS_KEYS_MAPPED] >= 1);
        CHECK(value[PVARS_KEYS_MAPPED] + value[PVARS_KEYSET_HITS] + direct >= times);
    } else {
        CHECK_INT(direct, 0);
        CHECK(value[PVARS_KEYS_MAPPED] >= times);
        CHECK_INT(value[PVARS_KEYSET_HITS], 0);
    }
    CHECK(value[PVARS_KEY_ENTRIES] >= value[PVARS_KEYS_MAPPED]);
    CHECK(value[PVARS_CONTROL_MESSAGES] >= times);
    CHECK(value[PVARS_CONTROL_BYTES] > value[PVARS_CONTROL_MESSAGES]);
    if (sender) {
        CHECK_INT(value[PVARS_SENDS_UMR] + direct, times);
        CHECK_INT(value[PVARS_WRITES_POSTED] - value[PVARS_WRITES_DIRECT], times - direct);
        CHECK_INT(value[PVARS_WRITES_DIRECT], direct * map->run_count);
        CHECK_INT(value[PVARS_ROUNDS], 0);
    } else {
        CHECK(value[PVARS_ROUNDS] >= times);
        CHECK_INT(value[PVARS_WRITES_POSTED], 0);
        CHECK(value[PVARS_FINS_RECEIVED] >= times);
    }
    /* The first time the type is walked; later it is found in the cache, or a persistent request
     * has it. */
    CHECK(value[PVARS_LAYOUT_MISSES] <= 2);
    CHECK(WAY_PERSISTENT == way || value[PVARS_LAYOUT_HITS] + 2 >= times);
}

/* The same message again: nothing is created, mapped, walked or registered for it. */
static void check_steady(const pvars_t *seen, const mpitest_map_t *map, uint64_t bytes,
                         uint64_t times, way_t way)
{
    const uint64_t *value = seen->value;

    if (is_direct) {
        check_direct(seen, times, times, map->run_count, map->run_count);
        CHECK_INT(value[PVARS_LAYOUT_MISSES], 0);
        CHECK_INT(value[PVARS_REG_MISSES], 0);
        CHECK_INT(value[PVARS_DIRECT_LAYOUT_BYTES], 0); /* earlier cache content */
        return;
    }
    CHECK_INT(direct_of(seen), 0);
    CHECK_INT(value[PVARS_HANDLED_SENDS] + value[PVARS_HANDLED_RECVS], times);
    CHECK_INT(value[PVARS_WRITE_BYTES], 0 == mpitest.rank ? times * bytes : 0);
    CHECK_INT(value[PVARS_KEYS_MAPPED], 0);
    CHECK_INT(value[PVARS_KEY_ENTRIES], 0);
    CHECK_INT(value[PVARS_MKEYS_CREATED], 0);
    CHECK_INT(value[PVARS_KEYSETS_STALE], 0);
    CHECK(value[PVARS_KEYSET_HITS] >= times);
    /* An envelope and a reference to the keys. */
    CHECK_INT(value[PVARS_CONTROL_MESSAGES], times);
    CHECK_INT(value[PVARS_CONTROL_BYTES], times * (0 == mpitest.rank ? 104 : 56));
    CHECK_INT(value[PVARS_RKEY_SETS_CACHED], 0 == mpitest.rank ? 0 : times);
    CHECK_INT(value[PVARS_LAYOUT_MISSES], 0);
    CHECK(WAY_PERSISTENT == way || value[PVARS_LAYOUT_HITS] >= times);
}

static void one_case(mpitest_kind_t kind, int bytes, way_t way)
{
    mpitest_message_t *message = mpitest_message(kind, bytes, mpitest.seed);
    pvars_t last, seen;
    char what[128];
    int times = 5;

    snprintf(what, sizeof(what), "%d times %d bytes, %s, way %d", times, bytes,
             mpitest_kind_name(kind), (int) way);
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    pvars_read(&last);
    transfer(message, times, way, mpitest_mix(mpitest.seed, (uint64_t) mpitest.step, 5));
    since(&last, &seen);
    check_result(&seen, message->map, (uint64_t) bytes, (uint64_t) times, way, what);
    if (is_umr && is_cached && message->map->span != message->map->size
        && (uint64_t) bytes >= min_size) {
        MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
        pvars_read(&last);
        transfer(message, times, way, mpitest_mix(mpitest.seed, (uint64_t) mpitest.step, 6));
        since(&last, &seen);
        check_steady(&seen, message->map, (uint64_t) bytes, (uint64_t) times, way);
    }
    mpitest_message_free(message);
}

/* A vector into a contiguous buffer is handled; the sender alone decides. */
static void mixed_case(void)
{
    mpitest_kind_t kind = 0 == mpitest.rank ? MPITEST_COARSE : MPITEST_CONTIGUOUS;
    mpitest_message_t *message = mpitest_message(kind, 65536, 0);
    uint64_t pieces, gathers = (uint64_t) pvars_parameter("btl_umr_write_pieces", 14);
    pvars_t last, seen;

    pieces = message->map->run_count;
    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    pvars_read(&last);
    transfer(message, 4, WAY_BLOCKING, 77);
    since(&last, &seen);
    if (is_direct) {
        check_direct(&seen, 4, 3, (pieces + gathers - 1) / gathers, pieces);
    } else if (is_umr && 0 == mpitest.rank) {
        CHECK_INT(seen.value[PVARS_HANDLED_SENDS], 4);
        CHECK((is_cached ? 1 : 4) <= seen.value[PVARS_KEYS_MAPPED]);
    } else if (is_umr) {
        CHECK_INT(seen.value[PVARS_HANDLED_RECVS], 4);
        CHECK(direct_of(&seen) <= (is_cached ? 1 : 0));
        CHECK(4 <= seen.value[PVARS_KEYS_PLAIN] + direct_of(&seen));
        CHECK_INT(seen.value[PVARS_KEYS_MAPPED], 0);
    }
    mpitest_message_free(message);
}

/* A layout that, flattened, is longer than a CTS: it comes in parts, once. */
static void long_case(void)
{
    mpitest_message_t *message = mpitest_message(MPITEST_IRREGULAR, 1 << 20, mpitest.seed);
    pvars_t last, seen;
    int round;

    for (round = 0; round < 2; ++round) {
        MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
        pvars_read(&last);
        transfer(message, 2, WAY_NONBLOCKING, 99 + (uint64_t) round);
        since(&last, &seen);
        CHECK_INT(direct_of(&seen), 2);
        if (1 == mpitest.rank) {
            CHECK_INT(seen.value[PVARS_LAYOUTS_SENT], 0 == round ? 1 : 0);
            CHECK((seen.value[PVARS_CONTROL_MESSAGES] > 3) == (0 == round));
        } else {
            CHECK((seen.value[PVARS_DIRECT_LAYOUT_BYTES] > 4096) == (0 == round));
        }
    }
    mpitest_message_free(message);
}

/* A long layout that goes without mkeys once, because it is the first of its kind, costs the sender
 * no memory. */
static void once_case(void)
{
    mpitest_message_t *message = mpitest_message(MPITEST_IRREGULAR, 1 << 20, mpitest.seed);
    pvars_t last, seen;

    MPI_OK(MPI_Barrier(MPI_COMM_WORLD));
    pvars_read(&last);
    transfer(message, 1, WAY_BLOCKING, 111);
    since(&last, &seen);
    CHECK(1 >= direct_of(&seen));
    CHECK_INT(seen.value[PVARS_DIRECT_LAYOUT_BYTES], 0);
    mpitest_message_free(message);
}

int main(int argc, char **argv)
{
    static const mpitest_kind_t kinds[] = {MPITEST_FINE,       MPITEST_COARSE,   MPITEST_IRREGULAR,
                                           MPITEST_DESCENDING, MPITEST_NEGATIVE, MPITEST_NESTED,
                                           MPITEST_CONTIGUOUS};
    size_t i;
    int way;

    mpitest_init(&argc, &argv, "stats", 1, MPI_THREAD_SINGLE);
    if (2 != mpitest.size) {
        mpitest_skip("needs two ranks");
    }
    is_direct = 0 == strcmp(mpitest.mode, "direct");
    is_umr = is_direct || 0 == strcmp(mpitest.mode, "umr");
    is_peer = 0 == strcmp(mpitest.mode, "peer");
    is_none = 0 == strcmp(mpitest.mode, "host");
    CHECK(is_umr || is_peer || is_none);
    have = pvars_open();
    if (!is_none && PVARS_MAX != have) {
        mpitest_fail(__FILE__, __LINE__, "%d of the %d performance variables of pml/umrddt exist",
                     have, (int) PVARS_MAX);
    }
    min_size = (uint64_t) pvars_parameter("pml_umrddt_min_size", 0);
    is_cached = 0 != pvars_parameter("pml_umrddt_mkey_cache", 0);
    if (!is_none) {
        CHECK(0 < min_size && min_size <= 16384);
    }
    for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); ++i) {
        for (way = 0; way < WAY_MAX; ++way) {
            mpitest.step = (long) (i * WAY_MAX) + way;
            one_case(kinds[i], 16384, (way_t) way);
        }
        if (0 < min_size) {
            one_case(kinds[i], (int) min_size, WAY_BLOCKING);
            one_case(kinds[i], (int) min_size - 1, WAY_BLOCKING);
            one_case(kinds[i], (int) min_size - 1, WAY_PERSISTENT);
        }
    }
    mpitest.step = 1000;
    mixed_case();
    if (is_direct) {
        long_case();
    } else if (is_umr && is_cached) {
        once_case();
    }
    pvars_close();
    return mpitest_finish();
}
