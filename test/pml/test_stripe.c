/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Which lanes an envelope may offer. Where striped messages are cut: the ranges tile the message,
 * none is empty or much longer than the others, and all of them begin between the blocks of both
 * sides if there is room for that.
 */

#include "ompi_config.h"

#include <stdio.h>

#include "../common/check.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_requests.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_stripe.h"

static uint64_t state = 1;

static uint64_t draw(uint64_t low, uint64_t high)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return low + (state >> 20) % (high - low + 1);
}

static void cut(uint64_t total, uint32_t count, uint64_t mine, uint64_t theirs, uint64_t chunk)
{
    opal_iov_cache_form_t form = {.size = total, .segments = 2, .uniform = mine};
    mca_pml_umrddt_rts_t rts = {.length = total, .pieces = (uint32_t) (total / theirs)};
    uint64_t part = total / count, start = 0, grain;

    grain = mca_pml_umrddt_stripe_alignment(&rts, &form, chunk, part);
    CHECK(1 <= grain && part / 2 >= grain);
    for (uint32_t i = 0; i < count; ++i) {
        uint64_t end = mca_pml_umrddt_stripe_end(total, count, grain, i);

        CHECK(end > start);
        CHECK(end - start <= part + grain + count && end - start + grain >= part);
        CHECK(end == total || 0 == end % grain);
        if (0 < chunk && part / 2 >= chunk) {
            CHECK(end == total || 0 == end % chunk);
        } else if (0 < mine && part / 2 >= mine) {
            CHECK(end == total || 0 == end % mine);
            if (0 == total % theirs && 2 <= rts.pieces && part / 2 / theirs >= mine) {
                CHECK(end == total || 0 == end % theirs);
            }
        }
        start = end;
    }
    CHECK(start == total);
}

/* Lanes are offered with mkeys, and without gaps. */
static void lanes(void)
{
    static mca_pml_umrddt_recv_t recv = {.rts = {.schemes = MCA_PML_UMRDDT_BITS_HCA}};

#define LANES(valid, change)                                   \
    do {                                                       \
        mca_pml_umrddt_rts_t was = recv.rts;                   \
        change;                                                \
        CHECK((valid) == mca_pml_umrddt_stripes_valid(&recv)); \
        recv.rts = was;                                        \
    } while (0)

    LANES(true, (void) 0);
    LANES(true, recv.rts.lanes[0].qpn = 1);
    LANES(true, recv.rts.lanes[0].qpn = 1; recv.rts.lanes[1].qpn = 2);
    LANES(false, recv.rts.lanes[0].psn = 1);
    LANES(false, recv.rts.lanes[1].qpn = 1);
    LANES(false, recv.rts.lanes[0].qpn = 1; recv.rts.lanes[2].qpn = 1);
    LANES(false, recv.rts.lanes[3].psn = 1);
    LANES(false, recv.rts.schemes = MCA_PML_UMRDDT_BIT_DIRECT; recv.rts.lanes[0].qpn = 1);
#undef LANES
}

/** A length of 0, which nothing but the caller excludes, has an alignment. */
static void check_empty(void)
{
    const opal_iov_cache_form_t form = {.segments = 1};
    const mca_pml_umrddt_rts_t rts = {.length = 0, .pieces = 2};

    CHECK(1 == mca_pml_umrddt_stripe_alignment(&rts, &form, 0, 4));
}

int main(void)
{
    lanes();
    check_empty();
    for (int i = 0; i < 20000; ++i) {
        uint32_t count = (uint32_t) draw(1, MCA_PML_UMRDDT_STRIPES);
        uint64_t total = draw(count * MCA_PML_UMRDDT_LEAST_STRIPE, (uint64_t) 1 << draw(15, 40));
        uint64_t theirs = draw(1, (uint64_t) 1 << draw(1, 20));

        if (0 != draw(0, 1)) {
            total = total / theirs * theirs;
        }
        if (total < count * MCA_PML_UMRDDT_LEAST_STRIPE || total / theirs >= UINT32_MAX) {
            continue;
        }
        cut(total, count, draw(0, (uint64_t) 1 << draw(1, 20)), theirs,
            0 == draw(0, 1) ? 0 : draw(1, (uint64_t) 1 << draw(8, 20)));
    }
    CHECK(10000 < checks);
    printf("%lu checks passed\n", checks);
    return 0;
}
