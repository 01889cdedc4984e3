/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The offer cache: back-off after declined offers, selections, and entries that collide. The tables
 * of hints about small messages.
 */

#include <limits.h>
#include <stdio.h>

#include "../common/check.h"
#include "opal/mca/common/umrddt_select/umrddt_select_hints.h"
#include "opal/mca/common/umrddt_select/umrddt_select_offers.h"

static opal_umrddt_offers_t offers;

/* How many of so many messages are offered, each of which is in vain, or not. */
static unsigned offered(uint64_t key, unsigned times, bool in_vain)
{
    unsigned count = 0;

    for (unsigned i = 0; i < times; ++i) {
        if (!opal_umrddt_offer_pauses(&offers, key)) {
            opal_umrddt_offer_learn(&offers, key, in_vain);
            ++count;
        }
    }
    return count;
}

static const uint64_t key = UINT64_C(0x123456789abcdef1);
static const uint64_t entry_alike = UINT64_C(0x1234567a9abcdef1);

static void back_off(void)
{
    /* what is not in vain needs no entry */
    CHECK(1000 == offered(key, 1000, false));
    for (unsigned i = 0; i < OPAL_UMRDDT_OFFERS; ++i) {
        CHECK(0 == offers.entries[i]);
    }
    CHECK(1 == offered(key, 17, true));
    CHECK(1 == offered(key, 33, true));
    CHECK(1 == offered(key, 65, true));
    /* no other message, not even one with the same entry */
    CHECK(!opal_umrddt_offer_pauses(&offers, entry_alike));
    CHECK(opal_umrddt_offer_entry(&offers, key) == opal_umrddt_offer_entry(&offers, entry_alike));
    /* the next one is offered, and not in vain: all are offered, and then the pause is half */
    CHECK(100 == offered(key, 100, false));
    CHECK(1 == offered(key, 17, true));
    /* in the end one of 32768 is */
    CHECK(20 > offered(key, 100000, true));
    CHECK(3 >= offered(key, 3 * 32769, true) && 2 <= offered(key, 3 * 32769, true));
    /* another one replaces it */
    opal_umrddt_offer_learn(&offers, entry_alike, true);
    CHECK(!opal_umrddt_offer_pauses(&offers, key));
    CHECK(opal_umrddt_offer_pauses(&offers, entry_alike));
}

static void stored_selections(void)
{
    const uint32_t words[] = {OPAL_UMRDDT_OFFER_NO, OPAL_UMRDDT_OFFER_YES};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); ++i) {
        opal_umrddt_offer_set(&offers, key, words[i]);
        CHECK(words[i] == opal_umrddt_offer_word(&offers, key));
        CHECK(0 == opal_umrddt_offer_word(&offers, entry_alike));
        /* a selection is not a back-off, and causes none */
        CHECK(!opal_umrddt_offer_pauses(&offers, key));
        opal_umrddt_offer_learn(&offers, key, true);
        opal_umrddt_offer_learn(&offers, key, false);
        CHECK(words[i] == opal_umrddt_offer_word(&offers, key));
    }
}

/* Ranks, tags and communicators have keys, and mostly entries, of their own. */
static void keys(void)
{
    static char comms[2];
    static uint64_t received_before[2 * 32 * 32];
    unsigned count = 0, alike = 0;

    for (int i = 0; i < 2 * 32 * 32; ++i) {
        const uint64_t it = opal_umrddt_offer_key_of(&comms[i / 1024], i / 32 % 32, i % 32);

        CHECK(0 != it);
        for (unsigned j = 0; j < count; ++j) {
            CHECK(0 != (received_before[j] ^ it) >> 32);
            alike += opal_umrddt_offer_entry(&offers, received_before[j])
                     == opal_umrddt_offer_entry(&offers, it);
        }
        received_before[count++] = it;
    }
    /* as many as of numbers drawn: 2048 * 2047 / 2 / 8192 = 256 */
    CHECK(512 > alike);
}

/* Returns how many of the pairs of some ranks and tags are in a table. */
static int listed(const opal_umrddt_hint_table_t *table, int ranks, int tags)
{
    int count = 0;

    for (int i = 0; i < ranks * tags; ++i) {
        count += opal_umrddt_hint_is(table, i / tags, i % tags) ? 1 : 0;
    }
    return count;
}

static void hint_tables(void)
{
    opal_umrddt_hint_table_t table = {.replaced = 0};

    CHECK(0 == listed(&table, 32, 1024));
    /* no pair is mistaken for another one, and those of an exchange with neighbours fit */
    for (int i = 0; i < 26; ++i) {
        opal_umrddt_hint_set(&table, i, i);
        opal_umrddt_hint_set(&table, i, i);
        CHECK(i + 1 == listed(&table, 32, 1024));
    }
    opal_umrddt_hint_set(&table, 0, INT_MAX);
    opal_umrddt_hint_set(&table, INT_MAX, 0);
    CHECK(opal_umrddt_hint_is(&table, 0, INT_MAX) && opal_umrddt_hint_is(&table, INT_MAX, 0));
    CHECK(0 == table.replaced);
    /* a full set has the newest pairs */
    for (int i = 0; i < 32 * 1024; ++i) {
        opal_umrddt_hint_set(&table, i / 1024, i % 1024);
        CHECK(opal_umrddt_hint_is(&table, i / 1024, i % 1024));
    }
    CHECK(OPAL_UMRDDT_HINTS == listed(&table, 32, 1024));
}

/* Returns how many hints are due while messages with some tags in turn are staged. */
static int due(opal_umrddt_hints_t *hints, opal_umrddt_hint_pace_t *pace, int tags, int messages)
{
    int count = 0;

    for (int i = 0; i < messages; ++i) {
        count += opal_umrddt_hint_due(hints, pace, 1, i % tags) ? 1 : 0;
    }
    return count;
}

static void hints_due(void)
{
    opal_umrddt_hint_pace_t pace = {.unused = 0};
    opal_umrddt_hints_t *hints = opal_umrddt_hints_new();

    CHECK(NULL != hints);
    /* repeated for each tag while its messages are staged in spite of the hint */
    for (int tag = 0; tag < 16; ++tag) {
        CHECK(opal_umrddt_hint_due(hints, &pace, 1, tag));
        opal_umrddt_hint_used(&pace);
    }
    for (int i = 0; i < 16 * OPAL_UMRDDT_HINT_PERIOD; ++i) {
        CHECK((i / 16 == OPAL_UMRDDT_HINT_PERIOD - 1)
              == opal_umrddt_hint_due(hints, &pace, 1, i % 16));
        opal_umrddt_hint_used(&pace);
    }
    free(hints);

    /* ever more rarely if the hints are not used, whatever the tags and communicators */
    for (int round = 0, count = 0; round < 200; ++round) {
        hints = opal_umrddt_hints_new();
        CHECK(NULL != hints);
        count += due(hints, &pace, 20, 20);
        CHECK(OPAL_UMRDDT_HINTS_UNUSED <= count && OPAL_UMRDDT_HINTS_UNUSED + 12 >= count);
        free(hints);
    }

    /* but not never: another tag gets one */
    opal_umrddt_hint_used(&pace);
    hints = opal_umrddt_hints_new();
    CHECK(NULL != hints);
    CHECK(20 == due(hints, &pace, 40, 40));
    CHECK(0 < due(hints, &pace, 1, 360));
    free(hints);
}

int main(void)
{
    hint_tables();
    hints_due();
    back_off();
    stored_selections();
    keys();
    printf("test_offer_cache: %lu checks\n", checks);
    return 0;
}
