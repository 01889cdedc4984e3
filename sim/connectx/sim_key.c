/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "sim_key.h"

#include <string.h>

#include "sim_alloc.h"
#include "sim_wire.h"

/* Keys of a process. Indexes of other processes are not in it, so that a key that strays fails. */
#define TABLE 0x10000

static struct sim_key **table;
static uint32_t cursor;
static uint8_t next_tag = 0x10;

/* Never near 4 << 8 == 0x400, which libmlx5 uses as the mark of a repeat block. */
static uint32_t base(void)
{
    return 0x10123 + (sim_wire_slot() % 253) * TABLE;
}

int sim_key_add(struct sim_key *key)
{
    uint32_t n;

    if (NULL == table) {
        table = sim_alloc(TABLE * sizeof(*table));
        if (NULL == table) {
            return -1;
        }
    }
    /* Round and round: an index rests as long as possible before it is used again. */
    for (n = 0; n < TABLE; n++) {
        uint32_t i = cursor++ % TABLE;

        if (NULL == table[i]) {
            table[i] = key;
            key->index = base() + i;
            if (SIM_MR == key->super.kind) {
                key->tag = next_tag++;
            }
            return 0;
        }
    }
    return -1;
}

static void free_layouts(struct sim_layout *layout)
{
    while (NULL != layout) {
        struct sim_layout *next = layout->next;

        sim_free(layout);
        layout = next;
    }
}

void sim_key_remove(struct sim_key *key)
{
    table[key->index - base()] = NULL;
    free_layouts(key->now);
    free_layouts(key->pending);
}

struct sim_key *sim_key_find(uint32_t index)
{
    if (NULL == table || index < base() || index - base() >= TABLE) {
        return NULL;
    }
    return table[index - base()];
}

uint32_t sim_key_value(const struct sim_key *key)
{
    return key->index << 8 | key->tag;
}

void sim_key_post(struct sim_key *key, struct sim_layout *layout)
{
    struct sim_layout **at = &key->pending;

    while (NULL != *at) {
        at = &(*at)->next;
    }
    layout->next = NULL;
    *at = layout;
}

void sim_key_commit(struct sim_key *key, uint32_t qpn)
{
    struct sim_layout **at = &key->pending;
    struct sim_layout *layout;

    while (NULL != *at && (*at)->qpn != qpn) {
        at = &(*at)->next;
    }
    layout = *at;
    if (NULL != layout) {
        *at = layout->next;
        layout->next = NULL;
        free_layouts(key->now);
        key->now = layout;
    }
}

void sim_key_forget(uint32_t qpn)
{
    uint32_t i;

    for (i = 0; NULL != table && i < TABLE; i++) {
        struct sim_layout **at;

        if (NULL == table[i]) {
            continue;
        }
        at = &table[i]->pending;
        while (NULL != *at) {
            struct sim_layout *layout = *at;

            if (layout->qpn == qpn) {
                *at = layout->next;
                sim_free(layout);
            } else {
                at = &layout->next;
            }
        }
    }
}

static const char *append(struct sim_pieces *pieces, uint64_t addr, uint64_t length)
{
    if (pieces->count == pieces->room) {
        size_t room = 0 == pieces->room ? 64 : 2 * pieces->room;
        struct iovec *v = sim_realloc(pieces->v, room * sizeof(*v));

        if (NULL == v) {
            return "out of memory";
        }
        pieces->v = v;
        pieces->room = room;
    }
    pieces->v[pieces->count].iov_base = (void *) (uintptr_t) addr;
    pieces->v[pieces->count].iov_len = length;
    pieces->count++;
    return NULL;
}

void sim_pieces_count(const struct sim_pieces *pieces)
{
    sim.count.pieces += pieces->count;
    sim.count.klm_reads += pieces->klms;
    sim.count.klm_nested += pieces->nested_klms;
}

/* Entries are read, unless the bytes before the offset in them were moved before, and they then. */
static void count_reads(struct sim_pieces *pieces, uint64_t offset, uint32_t entries,
                        unsigned depth)
{
    if (!pieces->continued || 0 < pieces->count || 0 == offset) {
        pieces->klms += entries;
        pieces->nested_klms += 1 < depth ? entries : 0;
        /* An entry that is first reached here, even in its middle, was not read before. */
        pieces->continued = false;
    }
}

/* The layout of an mkey as this queue pair sees it. */
static const struct sim_layout *seen_by(const struct sim_key *key, uint32_t qpn)
{
    const struct sim_layout *layout = key->now;
    const struct sim_layout *p;

    for (p = key->pending; NULL != p; p = p->next) {
        if (0 != qpn && p->qpn == qpn) {
            layout = p;
        }
    }
    return layout;
}

static const char *walk(const struct sim_access *access, uint32_t value, uint64_t addr,
                        uint64_t length, unsigned depth, struct sim_pieces *pieces);

/* Bytes [offset, offset + length) of a list of entries. */
static const char *walk_list(const struct sim_access *access, const struct sim_layout *layout,
                             uint64_t offset, uint64_t length, unsigned depth,
                             struct sim_pieces *pieces)
{
    uint32_t i;

    for (i = 0; i < layout->count && 0 < length; i++) {
        const struct sim_klm *klm = &layout->klm[i];
        uint64_t part;
        const char *why;

        if (offset >= klm->length) {
            offset -= klm->length;
            continue;
        }
        part = klm->length - offset < length ? klm->length - offset : length;
        count_reads(pieces, offset, 1, depth);
        why = walk(access, klm->key, klm->addr + offset, part, depth, pieces);
        if (NULL != why) {
            return why;
        }
        offset = 0;
        length -= part;
    }
    return 0 == length ? NULL : "beyond the entries of the mkey";
}

/* The same where the entries repeat, each moved by its stride every time. */
static const char *walk_strided(const struct sim_access *access, const struct sim_layout *layout,
                                uint64_t offset, uint64_t length, unsigned depth,
                                struct sim_pieces *pieces)
{
    uint64_t round;

    if (0 == layout->period) {
        return 0 == length ? NULL : "beyond the entries of the mkey";
    }
    /* The repeat block and its entries; what repeats is computed. */
    count_reads(pieces, offset, layout->count + 1, depth);
    round = offset / layout->period;
    offset %= layout->period;
    for (; 0 < length && round < layout->repeat; round++) {
        uint32_t i;

        for (i = 0; i < layout->count && 0 < length; i++) {
            const struct sim_klm *klm = &layout->klm[i];
            uint64_t part;
            const char *why;

            if (offset >= klm->length) {
                offset -= klm->length;
                continue;
            }
            part = klm->length - offset < length ? klm->length - offset : length;
            why = walk(access, klm->key, klm->addr + round * klm->stride + offset, part, depth,
                       pieces);
            if (NULL != why) {
                return why;
            }
            offset = 0;
            length -= part;
        }
    }
    return 0 == length ? NULL : "beyond the entries of the mkey";
}

static const char *walk(const struct sim_access *access, uint32_t value, uint64_t addr,
                        uint64_t length, unsigned depth, struct sim_pieces *pieces)
{
    const struct sim_key *key = sim_key_find(value >> 8);
    const struct sim_layout *layout;

    if (NULL == key) {
        return "no such key";
    }
    if (key->pd != access->pd) {
        return "the key is of another protection domain";
    }
    if (SIM_MR == key->super.kind) {
        if (key->tag != (value & 0xff)) {
            return "the key's tag is stale";
        }
        if ((access->right & key->access) != access->right) {
            return "the key does not give this right";
        }
        if (addr < key->iova || addr - key->iova > key->length
            || length > key->length - (addr - key->iova)) {
            return "outside of the registration";
        }
        if (NULL != key->gpu_view) {
            if (NULL != key->alive
                && key->alive_id != __atomic_load_n(key->alive, __ATOMIC_ACQUIRE)) {
                return "the memory of the GPU was freed";
            }
            pieces->gpu = true;
        }
        if (NULL != key->gpu_ctx) {
            pieces->gpu_ctx = key->gpu_ctx;
        }
        return append(pieces, key->addr + (addr - key->iova), length);
    }

    layout = seen_by(key, access->qpn);
    if (NULL == layout || layout->free) {
        return "the mkey maps nothing";
    }
    if (layout->tag != (value & 0xff)) {
        return "the mkey's tag is stale";
    }
    if ((access->right & layout->access) != access->right) {
        return "the mkey does not give this right";
    }
    if (addr < layout->start || addr - layout->start > layout->length
        || length > layout->length - (addr - layout->start)) {
        return "outside of the mkey";
    }
    if (0 < depth && depth >= sim.conf.max_indirection) {
        return "too many levels of mkeys";
    }
    pieces->by_mkey = true;
    if (0 != layout->repeat) {
        return walk_strided(access, layout, addr - layout->start, length, depth + 1, pieces);
    }
    return walk_list(access, layout, addr - layout->start, length, depth + 1, pieces);
}

const char *sim_key_pieces(const struct sim_access *access, uint32_t key, uint64_t addr,
                           uint64_t length, struct sim_pieces *pieces)
{
    return walk(access, key, addr, length, 0, pieces);
}

const char *sim_key_invalidate(const struct sim_access *access, uint32_t value)
{
    struct sim_key *key = sim_key_find(value >> 8);

    if (NULL == key || SIM_MKEY != key->super.kind) {
        return "the key to invalidate is no mkey";
    }
    if (key->pd != access->pd) {
        return "the key to be invalidated is of another protection domain";
    }
    if (!key->remote_inval) {
        return "the mkey was not made for being invalidated by peers";
    }
    if (key->now->free || key->now->tag != (value & 0xff)) {
        return "the key to be invalidated is stale";
    }
    key->now->free = true;
    sim.count.invals++;
    return NULL;
}
