/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * What senders remember of messages that receivers decline.
 */

#include "ompi_config.h"

#include <stdio.h>

#include "../common/check.h"
#include "pml_umrddt_left.h"

mca_pml_umrddt_t mca_pml_umrddt;

/* How many of so many messages are offered, each of which the receiver leaves, or not. */
static unsigned offered(uint64_t sign, unsigned times, bool left)
{
    unsigned count = 0;

    for (unsigned i = 0; i < times; ++i) {
        if (!mca_pml_umrddt_left(sign)) {
            mca_pml_umrddt_left_learn(sign, left);
            ++count;
        }
    }
    return count;
}

static void left(void)
{
    const uint64_t sign = UINT64_C(0x123456789abcdef1);
    const uint64_t entry_alike = sign ^ UINT64_C(0x1000000000000000);

    /* what is not left is remembered nowhere */
    CHECK(1000 == offered(sign, 1000, false));
    for (unsigned i = 0; i < MCA_PML_UMRDDT_LEFT_ENTRIES; ++i) {
        CHECK(0 == mca_pml_umrddt.left[i]);
    }
    CHECK(1 == offered(sign, 17, true));
    CHECK(1 == offered(sign, 33, true));
    CHECK(1 == offered(sign, 65, true));
    /* no other message is, not even one with the same entry */
    CHECK(!mca_pml_umrddt_left(entry_alike));
    CHECK(mca_pml_umrddt_left_entry(sign) == mca_pml_umrddt_left_entry(entry_alike));
    /* the next one was offered, and is not left: all are offered, and then the pause is half */
    CHECK(100 == offered(sign, 100, false));
    CHECK(1 == offered(sign, 17, true));
    /* in the end one of 32768 is */
    CHECK(20 > offered(sign, 100000, true));
    CHECK(3 >= offered(sign, 3 * 32769, true) && 2 <= offered(sign, 3 * 32769, true));
    /* another one takes its place */
    mca_pml_umrddt_left_learn(entry_alike, true);
    CHECK(!mca_pml_umrddt_left(sign));
    CHECK(mca_pml_umrddt_left(entry_alike));
}

int main(void)
{
    left();
    printf("test_left: %lu checks\n", checks);
    return 0;
}
