/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The invariants of an HCA: a right state passes, and each inconsistency that is planted in it is
 * reported by its name. The last one ends a process.
 */

#include "opal_config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "opal/runtime/opal.h"

#include "opal/mca/btl/umr/btl_umr_check.h"

#include "../common/look.h"
#include "../common/reported.h"

mca_btl_umr_t mca_btl_umr;
mca_btl_umr_params_t mca_btl_umr_params;

/* ---- an HCA ---- */

static mca_btl_umr_hca_t hca;
static mca_btl_umr_mkey_t mkeys[6];
static mca_btl_umr_endpoint_t endpoints[2];
static mca_btl_umr_cq_t cq;
static mca_btl_umr_keyset_object_t cached, waiting;
static mca_btl_umr_mapping_t mappings[3];
static mca_btl_umr_base_t base;
static mca_btl_umr_mr_t mr;
static mca_btl_umr_memory_t memory;
static mca_btl_umr_part_t parts[2];
static mca_btl_umr_reg_t regs[2];
static mca_btl_umr_class_t *class;
static int thing; /* that pointers point to */

static void add(opal_list_t *list, opal_list_item_t *item)
{
    OBJ_CONSTRUCT(item, opal_list_item_t);
    opal_list_append(list, item);
}

/* One of a role in each keyset, and one that is to be invalid; free ones, one of them long. */
static void make_mkeys(void)
{
    opal_list_t *const lists[] = {&hca.mkeys.taken, &hca.mkeys.taken,   &hca.mkeys.taken,
                                  &hca.mkeys.idle,  &hca.mkeys.invalid, NULL};

    class = &hca.klm.classes[0];
    hca.klm.class_count = 1;
    OBJ_CONSTRUCT(&class->idle, opal_list_t);
    OBJ_CONSTRUCT(&hca.klm.retired, opal_list_t);
    memset(mkeys, 0, sizeof(mkeys));
    for (int i = 0; i < 6; ++i) {
        mkeys[i].hca = &hca;
        add(NULL == lists[i] ? &class->idle : lists[i], &mkeys[i].super);
    }
    mkeys[0].role = mkeys[1].role = MCA_BTL_UMR_REMOTE;
    mkeys[2].role = MCA_BTL_UMR_LOCAL;
    mkeys[0].exposed = mkeys[1].exposed = mkeys[4].exposed = true;
    mkeys[1].class = mkeys[5].class = class;
    hca.mkeys.count = 4;
    hca.mkeys.used[MCA_BTL_UMR_REMOTE] = hca.mkeys.used[MCA_BTL_UMR_LOCAL] = 1;
    hca.klm.used[MCA_BTL_UMR_REMOTE] = 1;
    hca.klm.count = 2;
    hca.stats.mkeys_used_now = 3;
    hca.mkeys.bound.most = 6;
    hca.refill.pending = 2;
    hca.mkeys.sq = (mca_btl_umr_sq_t){.depth = 4, .posted = 9, .done = 7, .signalled = 8};
}

static void make_keysets(void)
{
    memset(&cached, 0, sizeof(cached));
    memset(&waiting, 0, sizeof(waiting));
    memset(mappings, 0, sizeof(mappings));
    for (int i = 0; i < 3; ++i) {
        mappings[i].mkey = &mkeys[i];
    }
    cached.hca = waiting.hca = &hca;
    cached.name.role = MCA_BTL_UMR_REMOTE;
    cached.mappings = &mappings[0];
    cached.pub.count = cached.mapped = 2;
    cached.pub.ready = cached.cached = true;
    cached.bases = &base;
    cached.base_count = 1;
    mr.super.obj_reference_count = 1;
    base = (mca_btl_umr_base_t){.id = 5, .mr = &mr};
    add(&hca.keycache.cached, &cached.pub.super);
    hca.keycache.buckets[3] = &cached;
    hca.keycache.unused = 1;
    hca.stats.keysets_cached_now = 1;
    mca_btl_umr_params.key_cache = 1;
    waiting.name.role = MCA_BTL_UMR_LOCAL;
    waiting.mappings = &mappings[2];
    waiting.pub.count = waiting.mapped = 1;
    add(&hca.keysets, &waiting.pub.super);
    hca.keysets_waiting.head = hca.keysets_waiting.tail = &waiting;
}

static void make_memory(void)
{
    memset(&memory, 0, sizeof(memory));
    memset(regs, 0, sizeof(regs));
    for (int i = 0; i < 2; ++i) {
        regs[i].mr = (void *) &thing;
        regs[i].super.base = (void *) (uintptr_t) (4096 + i * 8192);
        regs[i].super.bound = (void *) (uintptr_t) (8191 + i * 8192);
        parts[i] =
            (mca_btl_umr_part_t){.start = 4096 + i * 8192, .end = 8192 + i * 8192, .reg = &regs[i]};
    }
    memory.hca = &hca;
    memory.count = memory.capacity = 2;
    memory.parts = parts;
    add(&hca.memories, &memory.super);
    hca.stats.reg_bytes_now = hca.reg_bound = 8192;
}

static void make_endpoints(void)
{
    OBJ_CONSTRUCT(&hca.endpoints, opal_pointer_array_t);
    opal_pointer_array_init(&hca.endpoints, 4, 64, 4);
    memset(endpoints, 0, sizeof(endpoints));
    for (uint32_t i = 0; i < 2; ++i) {
        endpoints[i].hca = &hca;
        endpoints[i].index = i;
        endpoints[i].fins_max = 3;
        endpoints[i].fins_expected = 1 + i;
        endpoints[i].sq =
            (mca_btl_umr_sq_t){.depth = 2, .posted = 2 + i, .done = 1, .signalled = 2 + i};
        CHECK((int) i == opal_pointer_array_add(&hca.endpoints, &endpoints[i]));
    }
    hca.writes_out = 3;
    hca.receives.expected = 3;
    hca.receives.depth = 8;
    hca.receives.missing = 2;
    cq.size = 64;
    cq.room = 60;
    add(&hca.cqs, &cq.super);
}

static void make(void)
{
    opal_list_t *const lists[] = {&hca.memories,   &hca.keysets,     &hca.keycache.cached, &hca.cqs,
                                  &hca.mkeys.idle, &hca.mkeys.taken, &hca.mkeys.invalid,   NULL};

    memset(&hca, 0, sizeof(hca));
    for (int i = 0; NULL != lists[i]; ++i) {
        OBJ_CONSTRUCT(lists[i], opal_list_t);
    }
    hca.caps.umr.usable = true;
    make_mkeys();
    make_keysets();
    make_memory();
    make_endpoints();
    mca_btl_umr.hcas[0] = &hca;
    mca_btl_umr.hca_count = 1;
    mca_btl_umr_params.check = 1;
}

/* That it is right; then, with this done to it, what is wrong with it begins with these words. */
#define BREAKS(WORDS, ...)                                       \
    do {                                                         \
        make();                                                  \
        BROKEN(mca_btl_umr_hca_check(&hca), WORDS, __VA_ARGS__); \
        OBJ_DESTRUCT(&hca.endpoints);                            \
    } while (0)

static void queues(void)
{
    BREAKS("send queue: no more is posted", endpoints[0].sq.posted += 3);
    BREAKS("send queue: signalled", endpoints[0].sq.signalled = 4);
    BREAKS("send queue: the one that fills", endpoints[1].sq.signalled = 2);
    BREAKS("send queue: no more is posted", hca.mkeys.sq.done = 4);
    BREAKS("endpoint: it is where", endpoints[1].index = 0);
    BREAKS("endpoint: no more FINs", endpoints[1].fins_expected = 4);
    BREAKS("credit: expected FINs", ++hca.receives.expected);
    BREAKS("credit: expected FINs", --endpoints[1].fins_expected);
    BREAKS("credit: writes under way", ++hca.writes_out);
    BREAKS("credit: writes under way", --hca.writes_out);
    BREAKS("credit: writes under way", endpoints[0].broken = true, hca.writes_out = 1);
    BREAKS("shared receives", hca.receives.missing = 9);
    BREAKS("completion queue", cq.room = 65);
}

static void pool(void)
{
    BREAKS("mkeys: each is its HCA's", mkeys[3].hca = NULL);
    BREAKS("mkeys: none is free that", mkeys[3].exposed = true);
    BREAKS("mkeys: none is free that", mkeys[5].exposed = true);
    BREAKS("mkeys: those that a role uses", ++hca.mkeys.used[MCA_BTL_UMR_LOCAL]);
    BREAKS("long mkeys: those that a role uses", hca.klm.used[MCA_BTL_UMR_REMOTE] = 0);
    BREAKS("mkeys: those that exist", opal_list_remove_first(&hca.mkeys.idle));
    BREAKS("long mkeys: those that exist", hca.klm.count = 3);
    BREAKS("mkeys: existing and requested", hca.refill.pending = 3);
    BREAKS("mkeys: those counted", hca.stats.mkeys_used_now = 2);
    BREAKS("mkeys: one that is taken has a role", mkeys[2].role = MCA_BTL_UMR_ROLE_MAX);
}

static void keysets(void)
{
    BREAKS("keysets: one that is not", waiting.cached = true);
    BREAKS("keysets: their mkeys", waiting.name.role = MCA_BTL_UMR_REMOTE);
    BREAKS("keysets: they hold as many", cached.mapped = 3);
    BREAKS("keysets: each is its HCA's", waiting.hca = NULL);
    BREAKS("mkeys: each that is taken", waiting.pub.count = waiting.mapped = 0);
    BREAKS("keysets: a queue ends", hca.keysets_waiting.tail = &cached);
    BREAKS("keysets: a queue has an end", waiting.next = &waiting);
    BREAKS("key cache: its keysets are marked", cached.cached = false);
    BREAKS("key cache: its keysets are mapped", cached.pub.ready = false);
    BREAKS("key cache: its keysets lie", cached.base_count = 0);
    BREAKS("key cache: its keysets lie", base.id = 0);
    BREAKS("key cache: a registration", mr.super.obj_reference_count = 0);
    BREAKS("key cache: unused keysets hold", cached.memory = &memory);
    BREAKS("key cache: the table and the list", hca.keycache.buckets[3] = NULL);
    BREAKS("key cache: the table and the list", hca.keycache.buckets[4] = &cached);
    BREAKS("key cache: unused keysets are counted", hca.keycache.unused = 0);
    BREAKS("key cache: those that are kept", hca.stats.keysets_cached_now = 2);
    BREAKS("key cache: no more are kept", mca_btl_umr_params.key_cache = 0);
}

static void registrations(void)
{
    BREAKS("registrations: a buffer's are", memory.count = 3);
    BREAKS("registrations: a buffer's parts", parts[1].start = 8191);
    BREAKS("registrations: a buffer's parts", parts[0].end = parts[0].start);
    BREAKS("registrations: each part", parts[1].reg = NULL);
    BREAKS("registrations: each covers", parts[1].end += 1);
    BREAKS("registrations: each covers", regs[0].super.base += 1);
    BREAKS("registrations: no more bytes", --hca.reg_bound);
}

/* A look in each pass of progress, and a process that ends with the name. */
static void looks(void)
{
    make();
    mca_btl_umr_check_start();
    (void) look(); /* all is well */
    (void) !write(2, "still here\n", 11);
    mkeys[3].exposed = true;
    (void) look();
}

static void ends(void)
{
    char said[4096];

    reported_by_abort(looks, said, sizeof(said));
    CHECK(NULL != strstr(said, "still here"));
    CHECK(NULL != strstr(said, "an invariant does not hold: mkeys: none is free that a peer can"));
}

int main(int argc, char **argv)
{
    CHECK(OPAL_SUCCESS == opal_init_util(&argc, &argv));
    queues();
    pool();
    keysets();
    registrations();
    ends();
    printf("%lu checks\n", checks);
    return 0;
}
