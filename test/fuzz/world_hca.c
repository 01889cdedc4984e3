/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* The HCA that is played: three pairs of HCAs with the peer. */

#include "world.h"

#include <arpa/inet.h>

#include "ompi/mca/pml/umrddt/core/pml_umrddt_send_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"

#define PAIRS 3

struct mca_btl_umr_endpoint_t {
    bool broken, connected;
    mca_btl_umr_address_t theirs;
    uint32_t fins;
};

struct mca_btl_umr_memory_t {
    mca_btl_umr_role_t role;
    const void *buffer;
    uint64_t layout, size;
    uint64_t start, end; /* addresses */
    uint32_t rkey;       /* of all of it, for peers */
    uint32_t users;
};

typedef struct keyset_t {
    mca_btl_umr_keyset_t super;
    mca_btl_umr_role_t role;
    mca_btl_umr_memory_t *memory;
    mca_btl_umr_done_fn_t done;
    void *context;
    bool used; /* by a put */
    mca_btl_umr_key_t keys[];
} keyset_t;

typedef struct put_t {
    mca_btl_umr_endpoint_t *endpoint;
    keyset_t *keyset; /* NULL: a direct one */
    mca_btl_umr_done_fn_t done;
    void *context;
} put_t;

/* What was mapped before is found again under the same number. */
typedef struct cached_t {
    uint64_t id, layout, chunk, start, end;
    const void *buffer;
    mca_btl_umr_role_t role;
} cached_t;

static mca_btl_umr_endpoint_t endpoints[PAIRS];
static keyset_t *keysets[WORLD_MANY];
static mca_btl_umr_memory_t *memories[WORLD_MANY];
static uint32_t next_memory;
static put_t written[WORLD_MANY];
static cached_t cached[8];
static uint32_t next_cached;
static uint64_t ids;

const mca_btl_umr_caps_t world_caps = {
    .key_limits = {16, 65536},
    .umr = {.usable = true},
    .list_entries = 16,
    .max_keys = 64,
    .write_pieces = 4,
    .device = "played",
    .numa = -1,
};

void world_hca_reset(void)
{
    memset(endpoints, 0, sizeof(endpoints));
    memset(cached, 0, sizeof(cached));
    next_cached = 0;
    for (uint32_t i = 0; i < WORLD_MANY; ++i) {
        FUZZ_CHECK(NULL == keysets[i] && NULL == written[i].endpoint && NULL == memories[i]);
    }
}

/* ---- endpoints ---- */

mca_btl_umr_address_t world_address(uint32_t pair)
{
    return (mca_btl_umr_address_t){htonl(pair << 24 | (0x100 + pair)), htonl(7 + pair)};
}

static int init(void)
{
    return OPAL_SUCCESS;
}

static void fini(void)
{
}

static const char *why_not(void)
{
    return "";
}

static const mca_btl_umr_caps_t *caps(void)
{
    return &world_caps;
}

static bool hca(unsigned int index, const mca_btl_umr_caps_t **caps_of,
                const mca_btl_umr_stats_t **stats_of)
{
    (void) caps_of;
    (void) stats_of;
    return PAIRS > index;
}

static void key_limits(const opal_iov_cache_layout_t *layout, opal_iov_cache_limits_t *limits)
{
    (void) layout;
    *limits = world_caps.key_limits;
}

static const mca_btl_umr_stats_t *stats(void)
{
    static mca_btl_umr_stats_t none;

    return &none;
}

static void set_fin_handler(mca_btl_umr_fin_fn_t handler, void *context)
{
    (void) handler;
    (void) context;
}

static int endpoint_get(struct opal_proc_t *proc, mca_btl_umr_endpoint_t **endpoint)
{
    (void) proc;
    *endpoint = &endpoints[0];
    return OPAL_SUCCESS;
}

static mca_btl_umr_endpoint_t *endpoint_near(mca_btl_umr_endpoint_t *endpoint, const void *address,
                                             int gpu)
{
    (void) address;
    (void) gpu;
    FUZZ_CHECK(NULL != endpoint);
    return endpoint;
}

static mca_btl_umr_endpoint_t *endpoint_at(mca_btl_umr_endpoint_t *endpoint,
                                           const mca_btl_umr_address_t *address)
{
    uint32_t pair = ntohl(address->qpn) >> 24;

    FUZZ_CHECK(NULL != endpoint);
    return PAIRS > pair ? &endpoints[pair] : endpoint;
}

static size_t endpoints_beside(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_endpoint_t **found,
                               size_t max)
{
    size_t count = 1;

    FUZZ_CHECK(NULL != endpoint);
    found[0] = endpoint;
    for (uint32_t i = 0; i < PAIRS && count < max; ++i) {
        if (endpoint != &endpoints[i] && !endpoints[i].broken) {
            found[count++] = &endpoints[i];
        }
    }
    return count;
}

static void endpoint_address(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_address_t *address)
{
    *address = world_address((uint32_t) (endpoint - endpoints));
}

static int endpoint_connect(mca_btl_umr_endpoint_t *endpoint, const mca_btl_umr_address_t *address)
{
    FUZZ_CHECK(NULL != endpoint);
    if (endpoint->broken || ntohl(address->qpn) >> 24 != (uint32_t) (endpoint - endpoints)
        || (endpoint->connected && 0 != memcmp(&endpoint->theirs, address, sizeof(*address)))) {
        return OPAL_ERR_UNREACH;
    }
    endpoint->connected = true;
    endpoint->theirs = *address;
    return OPAL_SUCCESS;
}

static bool endpoint_broken(const mca_btl_umr_endpoint_t *endpoint)
{
    FUZZ_CHECK(NULL != endpoint);
    return endpoint->broken;
}

static void endpoint_break(mca_btl_umr_endpoint_t *endpoint);

static bool endpoint_refuses(mca_btl_umr_endpoint_t *endpoint, const mca_btl_umr_address_t *theirs,
                             mca_btl_umr_address_t *address)
{
    (void) theirs;
    if (endpoint_broken(endpoint)) {
        endpoint_address(endpoint, address);
        return true;
    }
    return false;
}

static void endpoint_refused(mca_btl_umr_endpoint_t *endpoint, const mca_btl_umr_address_t *theirs)
{
    if (endpoint == endpoint_at(endpoint, theirs)) {
        endpoint_break(endpoint);
    }
}

static void endpoint_break(mca_btl_umr_endpoint_t *endpoint)
{
    FUZZ_CHECK(NULL != endpoint);
    endpoint->broken = true;
    world.fins_now -= endpoint->fins;
    endpoint->fins = 0;
}

static int fin_reserve(mca_btl_umr_endpoint_t *endpoint)
{
    if (endpoint->broken) {
        return OPAL_ERR_UNREACH;
    }
    if (0 < world.refuse_fins || 16 <= endpoint->fins) {
        world.refuse_fins -= 0 < world.refuse_fins ? 1 : 0;
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    ++endpoint->fins;
    ++world.fins_now;
    return OPAL_SUCCESS;
}

static void fin_cancel(mca_btl_umr_endpoint_t *endpoint)
{
    if (0 < endpoint->fins) {
        --endpoint->fins;
        --world.fins_now;
    }
}

void world_fin(uint32_t pair, uint32_t fin)
{
    if (!endpoints[pair % PAIRS].connected || endpoints[pair % PAIRS].broken) {
        return;
    }
    fin_cancel(&endpoints[pair % PAIRS]);
    mca_pml_umrddt_recv_fin(NULL, &endpoints[pair % PAIRS], fin);
}

/* ---- memory ---- */

static int memory_register(mca_btl_umr_role_t role, void *buffer,
                           const opal_iov_cache_layout_t *layout, uint64_t size,
                           mca_btl_umr_memory_t **memory)
{
    uint32_t slot = 0;

    FUZZ_CHECK(0 < size && size <= layout->size);
    while (WORLD_MANY > slot && NULL != memories[slot]) {
        ++slot;
    }
    if (WORLD_MANY == slot || 0 < world.refuse_memory) {
        world.refuse_memory -= 0 < world.refuse_memory ? 1 : 0;
        return OPAL_ERR_BAD_PARAM;
    }
    *memory = calloc(1, sizeof(**memory));
    FUZZ_CHECK(NULL != *memory);
    **memory = (mca_btl_umr_memory_t){.role = role,
                                      .buffer = buffer,
                                      .layout = layout->id,
                                      .size = size,
                                      .start = (uintptr_t) buffer + (uint64_t) layout->lb,
                                      .end = (uintptr_t) buffer + (uint64_t) layout->ub,
                                      /* no two that there are at once have the same */
                                      .rkey = 0xd0000000 | ++next_memory};
    memories[slot] = *memory;
    ++world.memories_now;
    return OPAL_SUCCESS;
}

static int memory_register_at(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_role_t role,
                              void *buffer, const opal_iov_cache_layout_t *layout, uint64_t size,
                              mca_btl_umr_memory_t **memory)
{
    FUZZ_CHECK(NULL != endpoint);
    return memory_register(role, buffer, layout, size, memory);
}

static bool gpu_reachable(mca_btl_umr_endpoint_t *endpoint, const opal_umrddt_gpu_memory_t *where)
{
    (void) endpoint;
    (void) where;
    return world.hca_on_gpu;
}

static int memory_register_gpu(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_role_t role,
                               const opal_umrddt_gpu_memory_t *where, void *buffer,
                               const opal_iov_cache_layout_t *layout, uint64_t size,
                               mca_btl_umr_memory_t **memory)
{
    FUZZ_CHECK(NULL != endpoint && OPAL_UMRDDT_GPU_DEVICE == where->kind);
    return world.hca_on_gpu ? memory_register(role, buffer, layout, size, memory)
                            : OPAL_ERR_BAD_PARAM;
}

static int memory_flush(mca_btl_umr_memory_t *memory, mca_btl_umr_done_fn_t done, void *context)
{
    (void) memory;
    (void) done;
    (void) context;
    return OPAL_SUCCESS;
}

static void memory_release(mca_btl_umr_memory_t *memory)
{
    uint32_t slot = 0;

    FUZZ_CHECK(0 == memory->users);
    while (memory != memories[slot]) {
        FUZZ_CHECK(WORLD_MANY > ++slot);
    }
    memories[slot] = NULL;
    --world.memories_now;
    free(memory);
}

/* Its owner may free it from now on; here it is never freed before the release. */
static void memory_let_go(mca_btl_umr_memory_t *memory)
{
    FUZZ_CHECK(NULL == memory || 0 < world.memories_now);
}

static size_t memory_regions(const mca_btl_umr_memory_t *memory, mca_btl_umr_key_t *regions,
                             size_t max)
{
    FUZZ_CHECK(MCA_BTL_UMR_REMOTE == memory->role);
    if (0 < max) {
        regions[0] = (mca_btl_umr_key_t){
            .addr = memory->start, .length = memory->end - memory->start, .rkey = memory->rkey};
    }
    return 1;
}

bool world_is_registered(uint64_t addr, uint64_t length, uint32_t rkey)
{
    for (uint32_t i = 0; i < WORLD_MANY; ++i) {
        if (NULL != memories[i] && rkey == memories[i]->rkey) {
            return MCA_BTL_UMR_REMOTE == memories[i]->role && addr >= memories[i]->start
                   && length <= memories[i]->end - addr;
        }
    }
    return false;
}

/* ---- keysets ---- */

static bool in_use(uint64_t id)
{
    for (uint32_t i = 0; i < WORLD_MANY; ++i) {
        if (NULL != keysets[i] && id == keysets[i]->super.id) {
            return true;
        }
    }
    return false;
}

static bool is_same(const cached_t *one, const cached_t *other)
{
    return one->layout == other->layout && one->chunk == other->chunk && one->start == other->start
           && one->end == other->end && one->buffer == other->buffer && one->role == other->role;
}

/* Two receives into one buffer at once have keys of their own. */
static uint64_t number_of(const cached_t *wanted)
{
    for (uint32_t i = 0; i < 8; ++i) {
        if (0 != cached[i].id && is_same(wanted, &cached[i]) && !in_use(cached[i].id)) {
            return cached[i].id;
        }
    }
    cached[next_cached % 8] = *wanted;
    cached[next_cached % 8].id = ++ids;
    return cached[next_cached++ % 8].id;
}

/* Nothing is cached between messages. */
static mca_btl_umr_keyset_t *keyset_lookup(mca_btl_umr_endpoint_t *endpoint,
                                           mca_btl_umr_role_t role, void *buffer,
                                           const opal_iov_cache_layout_t *layout, uint64_t chunk,
                                           uint64_t start, uint64_t end, size_t max_keys)
{
    (void) endpoint;
    (void) role;
    (void) buffer;
    (void) layout;
    (void) chunk;
    (void) start;
    (void) end;
    (void) max_keys;
    return NULL;
}

static int keyset_map(mca_btl_umr_role_t role, void *buffer, const opal_iov_cache_layout_t *layout,
                      mca_btl_umr_memory_t *memory, uint64_t chunk, uint64_t start, uint64_t end,
                      size_t max_keys, mca_btl_umr_done_fn_t done, void *context,
                      mca_btl_umr_keyset_t **result)
{
    cached_t wanted = {.layout = layout->id, .chunk = chunk, .start = start, .end = end};
    opal_iov_cache_window_t windows[WORLD_MANY];
    size_t count = 0;
    keyset_t *keyset;
    uint32_t slot = 0;

    FUZZ_CHECK(NULL != memory && role == memory->role && buffer == memory->buffer
               && layout->id == memory->layout && 0 < max_keys);
    if (start >= end || end > layout->size || end > memory->size) {
        return OPAL_ERR_BAD_PARAM;
    }
    while (WORLD_MANY > slot && NULL != keysets[slot]) {
        ++slot;
    }
    if (WORLD_MANY == slot || 0 < world.refuse_keys) {
        world.refuse_keys -= 0 < world.refuse_keys ? 1 : 0;
        /* with none in use the existence of unused ones would not be reported */
        return 0 == world.keysets_now ? OPAL_ERROR : OPAL_ERR_OUT_OF_RESOURCE;
    }
    wanted.buffer = buffer;
    wanted.role = role;
    for (uint64_t at = start; at < end && count < max_keys && count < WORLD_MANY; ++count) {
        FUZZ_CHECK(OPAL_SUCCESS
                   == opal_iov_cache_window(layout, &world_caps.key_limits, chunk, at, end,
                                            &windows[count]));
        at += windows[count].length;
    }
    keyset = calloc(1, sizeof(*keyset) + count * sizeof(keyset->keys[0]));
    FUZZ_CHECK(NULL != keyset);
    keyset->super.id = number_of(&wanted);
    keyset->super.start = start;
    keyset->super.end = windows[count - 1].start + windows[count - 1].length;
    keyset->super.count = count;
    keyset->super.keys = keyset->keys;
    for (size_t i = 0; i < count; ++i) {
        keyset->keys[i].length = windows[i].length;
        keyset->keys[i].rkey = (uint32_t) (keyset->super.id << 8 | i);
    }
    keyset->super.ready = !world.slow_keys;
    keyset->role = role;
    keyset->memory = memory;
    keyset->done = done;
    keyset->context = context;
    ++memory->users;
    keysets[slot] = keyset;
    ++world.keysets_now;
    *result = &keyset->super;
    return OPAL_SUCCESS;
}

static void keyset_release(mca_btl_umr_keyset_t *released)
{
    keyset_t *keyset = (keyset_t *) released;
    uint32_t slot = 0;

    FUZZ_CHECK(!keyset->used);
    while (keyset != keysets[slot]) {
        FUZZ_CHECK(WORLD_MANY > ++slot);
    }
    keysets[slot] = NULL;
    --keyset->memory->users;
    --world.keysets_now;
    free(keyset);
}

bool world_keyset_done(uint32_t i, int status)
{
    keyset_t *found[WORLD_MANY];
    uint32_t count = 0;

    for (uint32_t j = 0; j < WORLD_MANY; ++j) {
        if (NULL != keysets[j] && !keysets[j]->super.ready) {
            found[count++] = keysets[j];
        }
    }
    if (0 == count) {
        return false;
    }
    found[i % count]->super.ready = true;
    found[i % count]->done(found[i % count]->context, status);
    return true;
}

bool world_is_mapped(const mca_pml_umrddt_wire_key_t *key)
{
    for (uint32_t j = 0; j < WORLD_MANY; ++j) {
        for (size_t i = 0; NULL != keysets[j] && i < keysets[j]->super.count; ++i) {
            if (key->rkey == keysets[j]->keys[i].rkey) {
                return MCA_BTL_UMR_REMOTE == keysets[j]->role && keysets[j]->super.ready
                       && key->addr == keysets[j]->keys[i].addr
                       && key->length == keysets[j]->keys[i].length;
            }
        }
    }
    return false;
}

/* ---- puts ---- */

void world_named(uint32_t rkey)
{
    if (world.rkey_count < sizeof(world.rkeys) / sizeof(world.rkeys[0])) {
        world.rkeys[world.rkey_count++] = rkey;
    }
}

static bool is_named(uint32_t rkey)
{
    uint32_t i = 0;

    while (i < world.rkey_count && rkey != world.rkeys[i]) {
        ++i;
    }
    return i < world.rkey_count || sizeof(world.rkeys) / sizeof(world.rkeys[0]) == i;
}

static int put_new(mca_btl_umr_endpoint_t *endpoint, keyset_t *keyset, mca_btl_umr_done_fn_t done,
                   void *context)
{
    uint32_t slot = 0;

    if (!endpoint->connected || endpoint->broken) {
        return OPAL_ERR_UNREACH;
    }
    while (WORLD_MANY > slot && NULL != written[slot].endpoint) {
        ++slot;
    }
    if (WORLD_MANY == slot) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    written[slot] = (put_t){endpoint, keyset, done, context};
    ++world.puts_now;
    ++world.writes;
    return OPAL_SUCCESS;
}

static int put(mca_btl_umr_endpoint_t *endpoint, const mca_btl_umr_keyset_t *keyset,
               const mca_btl_umr_key_t *remote, size_t remote_count, const uint32_t *fin,
               mca_btl_umr_done_fn_t done, void *context)
{
    keyset_t *mine = (keyset_t *) keyset;
    uint64_t sum = 0;
    int rc;

    (void) fin;
    FUZZ_CHECK(NULL != endpoint && keyset->ready && MCA_BTL_UMR_LOCAL == mine->role
               && 0 < remote_count);
    for (size_t i = 0; i < remote_count; ++i) {
        FUZZ_CHECK(0 < remote[i].length && is_named(remote[i].rkey));
        sum += remote[i].length;
    }
    FUZZ_CHECK(keyset->end - keyset->start == sum);
    /* the context is the message: no scheme that its envelope has not offered */
    FUZZ_CHECK(
        0 != (MCA_PML_UMRDDT_BIT_UMR & ((const mca_pml_umrddt_send_t *) context)->rts.schemes));
    rc = put_new(endpoint, mine, done, context);
    mine->used = OPAL_SUCCESS == rc;
    return rc;
}

/* True if the writes of [start, end) stay in the regions; the real one's own check is another
 * target. */
static bool covered(const mca_btl_umr_direct_t *direct)
{
    opal_iov_cache_iov_t iovs[32];
    uint64_t next = direct->start;

    while (next < direct->end) {
        size_t count = opal_iov_cache_form_iovs(direct->to, next, direct->end, iovs, 32, &next);

        for (size_t i = 0; i < count; ++i) {
            uint64_t addr = direct->to_buffer + (uint64_t) iovs[i].offset;
            bool in = false;

            for (size_t j = 0; j < direct->region_count; ++j) {
                in = in
                     || (addr >= direct->regions[j].addr
                         && iovs[i].length <= direct->regions[j].length
                         && addr - direct->regions[j].addr
                                <= direct->regions[j].length - iovs[i].length);
            }
            if (!in) {
                return false;
            }
        }
    }
    return true;
}

/* True if the context of a write is a message; else it is a chunk of one, which is no object. */
static bool is_message(const void *context)
{
    return OBJ_CLASS(mca_pml_umrddt_send_t) == ((const opal_object_t *) context)->obj_class;
}

static int put_direct(mca_btl_umr_endpoint_t *endpoint, const mca_btl_umr_direct_t *direct,
                      const uint32_t *fin, mca_btl_umr_done_fn_t done, void *context)
{
    (void) fin;
    FUZZ_CHECK(NULL != endpoint && NULL != direct->memory
               && NULL == opal_iov_cache_form_check(direct->to)
               && direct->buffer == direct->memory->buffer
               && direct->layout->id == direct->memory->layout && 0 < direct->region_count);
    if (direct->start >= direct->end || direct->end > direct->layout->size
        || direct->end > direct->to->size || direct->end > direct->memory->size
        || !covered(direct)) {
        return OPAL_ERR_BAD_PARAM;
    }
    for (size_t i = 0; i < direct->region_count; ++i) {
        FUZZ_CHECK(is_named(direct->regions[i].rkey));
    }
    if (is_message(context)) {
        FUZZ_CHECK(0
                   != (MCA_PML_UMRDDT_BIT_DIRECT
                       & ((const mca_pml_umrddt_send_t *) context)->rts.schemes));
    } else {
        /* a chunk, which is one write into the one place that was named for it */
        FUZZ_CHECK(1 == direct->region_count && 0 == direct->start && NULL != fin
                   && direct->end <= direct->regions[0].length
                   && direct->to_buffer == direct->regions[0].addr);
    }
    return put_new(endpoint, NULL, done, context);
}

bool world_put_done(uint32_t i, int status)
{
    put_t *found[WORLD_MANY], one;
    uint32_t count = 0;

    for (uint32_t j = 0; j < WORLD_MANY; ++j) {
        if (NULL != written[j].endpoint) {
            found[count++] = &written[j];
        }
    }
    if (0 == count) {
        return false;
    }
    one = *found[i % count];
    found[i % count]->endpoint = NULL;
    --world.puts_now;
    if (NULL != one.keyset) {
        one.keyset->used = false;
    }
    if (OPAL_SUCCESS != status) {
        endpoint_break(one.endpoint);
    }
    one.done(one.context, status);
    return true;
}

static int progress(void)
{
    return 0;
}

const mca_btl_umr_hca_ops_t world_hca = {
    .init = init,
    .fini = fini,
    .why_not = why_not,
    .caps = caps,
    .hca = hca,
    .key_limits = key_limits,
    .stats = stats,
    .set_fin_handler = set_fin_handler,
    .endpoint_get = endpoint_get,
    .endpoint_near = endpoint_near,
    .endpoint_at = endpoint_at,
    .endpoints_beside = endpoints_beside,
    .endpoint_address = endpoint_address,
    .endpoint_connect = endpoint_connect,
    .endpoint_broken = endpoint_broken,
    .endpoint_refuses = endpoint_refuses,
    .endpoint_refused = endpoint_refused,
    .endpoint_break = endpoint_break,
    .fin_reserve = fin_reserve,
    .fin_cancel = fin_cancel,
    .memory_register = memory_register,
    .memory_register_at = memory_register_at,
    .gpu_reachable = gpu_reachable,
    .memory_register_gpu = memory_register_gpu,
    .memory_flush = memory_flush,
    .memory_release = memory_release,
    .memory_let_go = memory_let_go,
    .memory_regions = memory_regions,
    .keyset_lookup = keyset_lookup,
    .keyset_map = keyset_map,
    .keyset_release = keyset_release,
    .keyset_keep = keyset_release,
    .put = put,
    .put_direct = put_direct,
    .progress = progress,
};
