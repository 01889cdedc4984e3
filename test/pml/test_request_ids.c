/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Request ids of pending messages (umrddt_ids.h), compared with a plain table. */

#include "ompi/mca/pml/umrddt/pml_umrddt.h"

#include "../common/check.h"

#define MOST  1024
#define STEPS 200000

/* Receives are never looked into. */
static char receives[MOST];
#define RECEIVE(i) ((struct mca_pml_umrddt_recv_t *) &receives[i])

static unsigned random_below(unsigned bound)
{
    static uint64_t state = 88172645463325252u;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned) (state >> 20) % bound;
}

/* The lowest free one, for any sequence of allocations and releases. */
static void request_ids_random(void)
{
    umrddt_ids_t request_ids = {0};
    static bool taken[MOST];
    unsigned count = 0, bias = 2;

    for (int step = 0; step < STEPS; ++step) {
        uint32_t request_id, lowest = 0;

        if (0 == step % 5000) {
            bias = 1 + random_below(3); /* fill, hover, drain */
        }
        if (0 < random_below(bias + 1)) {
            while (MOST > lowest && taken[lowest]) {
                ++lowest;
            }
            if (MOST == lowest) {
                CHECK(!umrddt_id_take(&request_ids, MOST, &request_id));
                continue;
            }
            CHECK(umrddt_id_take(&request_ids, MOST, &request_id) && lowest == request_id);
            taken[request_id] = true;
            ++count;
        } else if (0 < count) {
            request_id = random_below(MOST);
            while (!taken[request_id]) {
                request_id = (request_id + 1) % MOST;
            }
            umrddt_id_give(&request_ids, request_id);
            taken[request_id] = false;
            --count;
        }
    }
    umrddt_ids_free(&request_ids);
    CHECK(NULL == request_ids.free && 0 == request_ids.words);
}

/* All of them, and no more. */
static void request_ids_full(void)
{
    umrddt_ids_t request_ids = {0};
    uint32_t request_id;

    for (uint32_t i = 0; i < MOST; ++i) {
        CHECK(umrddt_id_take(&request_ids, MOST, &request_id) && i == request_id);
    }
    CHECK(!umrddt_id_take(&request_ids, MOST, &request_id));
    umrddt_id_give(&request_ids, 700);
    umrddt_id_give(&request_ids, 3);
    CHECK(umrddt_id_take(&request_ids, MOST, &request_id) && 3 == request_id);
    CHECK(umrddt_id_take(&request_ids, MOST, &request_id) && 700 == request_id);
    CHECK(!umrddt_id_take(&request_ids, MOST, &request_id));
    umrddt_ids_free(&request_ids);
}

/* Numbers of FINs: each its own, and found until it is given back; also where they wrap around. */
static void fins_random(uint32_t first)
{
    umrddt_numbers_t fins = {.next = first};
    static uint32_t numbers[MOST];
    uint32_t stale = 0;

    memset(numbers, 0, sizeof(numbers));
    CHECK(NULL == umrddt_number_find(&fins, 1));
    for (int step = 0; step < STEPS; ++step) {
        unsigned i = random_below(step < STEPS / 2 ? 8 : MOST);

        if (0 == numbers[i]) {
            numbers[i] = umrddt_number_new(&fins, RECEIVE(i));
            CHECK(0 != numbers[i] && stale != numbers[i]);
        } else {
            umrddt_number_give(&fins, numbers[i]);
            stale = numbers[i];
            numbers[i] = 0;
            CHECK(NULL == umrddt_number_find(&fins, stale));
        }
        i = random_below(MOST);
        if (0 != numbers[i]) {
            CHECK(RECEIVE(i) == umrddt_number_find(&fins, numbers[i]));
            /* another one's place, but not its number */
            CHECK(RECEIVE(i) != umrddt_number_find(&fins, numbers[i] + fins.size));
        }
        CHECK(NULL == umrddt_number_find(&fins, 0));
    }
    for (unsigned i = 0; i < MOST; ++i) {
        CHECK(0 == numbers[i] || RECEIVE(i) == umrddt_number_find(&fins, numbers[i]));
    }
    umrddt_numbers_free(&fins);
}

int main(void)
{
    request_ids_random();
    request_ids_full();
    fins_random(0);
    fins_random(UINT32_MAX - 1000);
    printf("%lu checks\n", checks);
    return 0;
}
