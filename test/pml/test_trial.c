/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Trials of ways: each open way gets its turns, a median of six decides, what is far behind is
 * given up after three, and the way in use stays unless another one is better by more than chance.
 * And what senders remember of messages that receivers leave to the host PML.
 */

#include "ompi_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/check.h"
#include "pml_umrddt_left.h"
#include "pml_umrddt_trial.h"

#define A MCA_PML_UMRDDT_SCHEME_IPC
#define B MCA_PML_UMRDDT_SCHEME_UMR
#define C MCA_PML_UMRDDT_SCHEME_BASE
#define D MCA_PML_UMRDDT_SCHEME_PACK_HOST

/* Two turns of four messages, one of which does not count. */
#define TURN    4
#define SAMPLES 6
static const mca_pml_umrddt_trial_plan_t plan = {.turns = 2, .turn = TURN, .idle = 1};
#define MESSAGES (2 * TURN * MCA_PML_UMRDDT_SCHEMES)

mca_pml_umrddt_t mca_pml_umrddt;

static mca_pml_umrddt_trial_t trial;

/* Messages that take so long by each way, until the trial is over. @return how many of each */
static void run(const double took[MCA_PML_UMRDDT_SCHEMES], unsigned count[MCA_PML_UMRDDT_SCHEMES])
{
    bool over = false;

    memset(count, 0, MCA_PML_UMRDDT_SCHEMES * sizeof(count[0]));
    for (int i = 0; !over; ++i) {
        mca_pml_umrddt_scheme_id_t way;
        bool tried;

        CHECK(MESSAGES > i);
        CHECK(mca_pml_umrddt_trial_runs(&trial));
        way = mca_pml_umrddt_trial_next(&trial, A, &tried);
        CHECK(tried || A == way || 0 == i % TURN);
        count[way] += tried;
        over = tried && mca_pml_umrddt_trial_observe(&trial, way, took[way]);
    }
    CHECK(!mca_pml_umrddt_trial_runs(&trial));
}

static void turns(void)
{
    const double took[MCA_PML_UMRDDT_SCHEMES] = {[A] = 10, [B] = 12, [C] = 11};
    unsigned count[MCA_PML_UMRDDT_SCHEMES];

    memset(&trial, 0, sizeof(trial));
    CHECK(!mca_pml_umrddt_trial_runs(&trial));
    mca_pml_umrddt_trial_begin(
        &trial, MCA_PML_UMRDDT_BIT(A) | MCA_PML_UMRDDT_BIT(B) | MCA_PML_UMRDDT_BIT(C), &plan);
    run(took, count);
    CHECK(SAMPLES == count[A] && count[A] == count[B] && count[A] == count[C]);
    for (int way = 0; way < MCA_PML_UMRDDT_SCHEMES; ++way) {
        CHECK(took[way] == mca_pml_umrddt_trial_median(&trial, way));
    }
    CHECK(A == mca_pml_umrddt_trial_best(&trial, B, 0.96));
    /* a message that was under way when its way was judged */
    CHECK(!mca_pml_umrddt_trial_observe(&trial, B, 1));
    CHECK(12 == mca_pml_umrddt_trial_median(&trial, B));
}

/* Two that begin at the same message and try ways of their own try the same one at the same time;
 * meanwhile, who does not goes on by what it has. */
static void in_step(void)
{
    mca_pml_umrddt_trial_t other;
    unsigned both = 0;
    bool mine, its;

    mca_pml_umrddt_trial_begin(&trial, MCA_PML_UMRDDT_BIT(A) | MCA_PML_UMRDDT_BIT(B), &plan);
    mca_pml_umrddt_trial_begin(
        &other, MCA_PML_UMRDDT_BIT(D) | MCA_PML_UMRDDT_BIT(B) | MCA_PML_UMRDDT_BIT(C), &plan);
    for (int i = 0; i < MESSAGES; ++i) {
        mca_pml_umrddt_scheme_id_t my = mca_pml_umrddt_trial_next(&trial, A, &mine);
        mca_pml_umrddt_scheme_id_t to = mca_pml_umrddt_trial_next(&other, C, &its);

        CHECK(A == my || B == my);
        CHECK(B == to || C == to || D == to);
        CHECK(!mine || !its || my == to);
        CHECK((B == my) == (B == to));
        CHECK(!mine || B != my || its);
        /* what comes behind another way does not count */
        CHECK(!its || 0 < i % TURN);
        both += mine && its;
    }
    CHECK(SAMPLES == both);
}

/* What counts of a longer one are the last messages of each turn. */
static void longer(void)
{
    const mca_pml_umrddt_trial_plan_t half = {.turns = 2, .turn = 16, .idle = 8};
    bool tried;

    mca_pml_umrddt_trial_begin(&trial, MCA_PML_UMRDDT_BIT(A) | MCA_PML_UMRDDT_BIT(B), &half);
    for (unsigned i = 0; i < 2 * 16 * MCA_PML_UMRDDT_SCHEMES; ++i) {
        const bool mine = 32 > i % (16 * MCA_PML_UMRDDT_SCHEMES);
        mca_pml_umrddt_scheme_id_t way = mca_pml_umrddt_trial_next(&trial, A, &tried);
        bool last = tried && (16 * MCA_PML_UMRDDT_SCHEMES + 31) == i;

        CHECK((16 <= i % (16 * MCA_PML_UMRDDT_SCHEMES) && mine ? B : A) == way);
        if (i < 16 * MCA_PML_UMRDDT_SCHEMES + 32) {
            CHECK(tried == (mine && 8 <= i % 16));
            CHECK(!tried || last == mca_pml_umrddt_trial_observe(&trial, way, B == way ? 10 : 11));
        }
        if (last) {
            break;
        }
    }
    CHECK(!mca_pml_umrddt_trial_runs(&trial));
    CHECK(MCA_PML_UMRDDT_TRIAL_SAMPLES == trial.count[A] && trial.count[A] == trial.count[B]);
    CHECK(B == mca_pml_umrddt_trial_best(&trial, A, 0.96));
}

/* A trial that ends before its time decides by what it saw, if that is enough. */
static void cut(void)
{
    mca_pml_umrddt_trial_begin(
        &trial, MCA_PML_UMRDDT_BIT(A) | MCA_PML_UMRDDT_BIT(B) | MCA_PML_UMRDDT_BIT(C), &plan);
    for (int i = 0; i < MCA_PML_UMRDDT_TRIAL_EARLY; ++i) {
        CHECK(!mca_pml_umrddt_trial_observe(&trial, A, 10));
        CHECK(!mca_pml_umrddt_trial_observe(&trial, B, 9));
    }
    CHECK(!mca_pml_umrddt_trial_observe(&trial, C, 1));
    CHECK(mca_pml_umrddt_trial_cut(&trial, A));
    CHECK(!mca_pml_umrddt_trial_runs(&trial));
    CHECK(B == mca_pml_umrddt_trial_best(&trial, A, 0.96)); /* once is nothing */
    mca_pml_umrddt_trial_begin(&trial, MCA_PML_UMRDDT_BIT(A) | MCA_PML_UMRDDT_BIT(B), &plan);
    for (int i = 0; i < MCA_PML_UMRDDT_TRIAL_EARLY; ++i) {
        CHECK(!mca_pml_umrddt_trial_observe(&trial, B, 9));
    }
    CHECK(!mca_pml_umrddt_trial_cut(&trial, A)); /* who knows what A would have taken */
    CHECK(!mca_pml_umrddt_trial_runs(&trial));
}

/* One message in three that is disturbed does not move a median; three of six do. */
static void medians(void)
{
    mca_pml_umrddt_trial_begin(&trial, MCA_PML_UMRDDT_BIT(A) | MCA_PML_UMRDDT_BIT(B), &plan);
    for (int i = 0; i < SAMPLES; ++i) {
        bool last = SAMPLES - 1 == i;

        CHECK(!mca_pml_umrddt_trial_observe(&trial, A, 0 == i % 3 ? 1000 - i : 10));
        CHECK(last == mca_pml_umrddt_trial_observe(&trial, B, 0 == i % 2 ? 20 + i : 11));
    }
    CHECK(10 == mca_pml_umrddt_trial_median(&trial, A));
    CHECK(20 <= mca_pml_umrddt_trial_median(&trial, B));
    CHECK(A == mca_pml_umrddt_trial_best(&trial, B, 0.96));
}

/* What takes twice as long is given up after three messages, and never wins. */
static void given_up(void)
{
    const double took[MCA_PML_UMRDDT_SCHEMES] = {[A] = 10, [B] = 20, [C] = 11};
    const double both[MCA_PML_UMRDDT_SCHEMES] = {[A] = 20, [B] = 10};
    unsigned count[MCA_PML_UMRDDT_SCHEMES];

    mca_pml_umrddt_trial_begin(
        &trial, MCA_PML_UMRDDT_BIT(A) | MCA_PML_UMRDDT_BIT(B) | MCA_PML_UMRDDT_BIT(C), &plan);
    run(took, count);
    CHECK(MCA_PML_UMRDDT_TRIAL_EARLY == count[B]);
    CHECK(SAMPLES == count[A] && SAMPLES == count[C]);
    CHECK(20 == mca_pml_umrddt_trial_median(&trial, B));
    /* though it is the one that was in use */
    CHECK(A == mca_pml_umrddt_trial_best(&trial, B, 0.96));
    /* meanwhile it had no more messages, not even those that nothing is tried with */
    mca_pml_umrddt_trial_begin(
        &trial, MCA_PML_UMRDDT_BIT(A) | MCA_PML_UMRDDT_BIT(B) | MCA_PML_UMRDDT_BIT(C), &plan);
    for (int i = 0; i < MESSAGES - 1; ++i) {
        bool tried;
        mca_pml_umrddt_scheme_id_t way = mca_pml_umrddt_trial_next(&trial, B, &tried);

        CHECK(!tried || !mca_pml_umrddt_trial_observe(&trial, way, took[way]));
        CHECK(B != way || i < TURN * 2);
    }
    /* the one that is left needs no more messages */
    mca_pml_umrddt_trial_begin(&trial, MCA_PML_UMRDDT_BIT(A) | MCA_PML_UMRDDT_BIT(B), &plan);
    run(both, count);
    CHECK(MCA_PML_UMRDDT_TRIAL_EARLY == count[A] && MCA_PML_UMRDDT_TRIAL_EARLY == count[B]);
    CHECK(B == mca_pml_umrddt_trial_best(&trial, A, 0.96));
    /* one that is slow by chance is not: its least counts */
    mca_pml_umrddt_trial_begin(&trial, MCA_PML_UMRDDT_BIT(A) | MCA_PML_UMRDDT_BIT(B), &plan);
    for (int i = 0; i < SAMPLES; ++i) {
        CHECK(!mca_pml_umrddt_trial_observe(&trial, A, 3 > i ? 30 - 8 * i : 9));
        (void) mca_pml_umrddt_trial_observe(&trial, B, 10);
    }
    CHECK(!mca_pml_umrddt_trial_runs(&trial));
    CHECK(14 == mca_pml_umrddt_trial_median(&trial, A));
}

/* The way in use stays for one that is hardly better. */
static void stays(void)
{
    const double took[MCA_PML_UMRDDT_SCHEMES] = {[A] = 10, [B] = 9.7, [C] = 9.5};
    unsigned count[MCA_PML_UMRDDT_SCHEMES];

    mca_pml_umrddt_trial_begin(&trial, MCA_PML_UMRDDT_BIT(A) | MCA_PML_UMRDDT_BIT(B), &plan);
    run(took, count);
    CHECK(A == mca_pml_umrddt_trial_best(&trial, A, 0.96));
    CHECK(B == mca_pml_umrddt_trial_best(&trial, A, 1));
    CHECK(B == mca_pml_umrddt_trial_best(&trial, B, 0.96));
    mca_pml_umrddt_trial_begin(
        &trial, MCA_PML_UMRDDT_BIT(A) | MCA_PML_UMRDDT_BIT(B) | MCA_PML_UMRDDT_BIT(C), &plan);
    run(took, count);
    CHECK(C == mca_pml_umrddt_trial_best(&trial, A, 0.96));
    mca_pml_umrddt_trial_begin(&trial, MCA_PML_UMRDDT_BIT(A) | MCA_PML_UMRDDT_BIT(C), &plan);
    mca_pml_umrddt_trial_end(&trial);
    CHECK(!mca_pml_umrddt_trial_runs(&trial));
    CHECK(!mca_pml_umrddt_trial_observe(&trial, A, 1));
}

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
    turns();
    in_step();
    longer();
    cut();
    medians();
    given_up();
    stays();
    left();
    printf("test_trial: %lu checks\n", checks);
    return 0;
}
