/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "sim_wqe.h"

#include <endian.h>
#include <string.h>

#include "sim_alloc.h"
#include "sim_gpu.h"

/* What mlx5dv.h has no name for. */
enum {
    FENCE_SHIFT = 5, /* fence mode in fm_ce_se */
    FENCE_FULL = 4,  /* wait for everything before */
    FENCE_STRONG = 3,
    UMR_HEAD = 16 + 48 + 64, /* control, UMR control and mkey context segments */
    REPEAT_MARK = 0x400,     /* in place of a key: a repeat block */
};

#define UMR_MASK_ACCESS                                \
    (MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_LOCAL_WRITE    \
     | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_READ  \
     | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_WRITE \
     | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_ATOMIC)
#define UMR_MASK_KNOWN                                                                          \
    (UMR_MASK_ACCESS | MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN | MLX5_WQE_UMR_CTRL_MKEY_MASK_START_ADDR \
     | MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY | MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE                      \
     | MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN)

void sim_ring_read(const struct sim_ring *ring, uint16_t index, uint32_t offset, void *to,
                   uint32_t bytes)
{
    uint32_t size = ring->blocks * SIM_BB;
    uint32_t at = ((index & (ring->blocks - 1)) * SIM_BB + offset) % size;
    uint32_t part = size - at < bytes ? size - at : bytes;

    memcpy(to, ring->base + at, part);
    memcpy((char *) to + part, ring->base, bytes - part);
}

const char *sim_wqe_decode(const struct sim_ring *ring, uint16_t index, uint32_t qpn,
                           struct sim_wqe *wqe)
{
    struct mlx5_wqe_ctrl_seg ctrl;
    struct mlx5_wqe_raddr_seg raddr;
    struct mlx5_wqe_atomic_seg atomic;
    uint32_t word;
    uint32_t fence;

    sim_ring_read(ring, index, 0, &ctrl, sizeof(ctrl));
    memset(wqe, 0, sizeof(*wqe));
    word = be32toh(ctrl.opmod_idx_opcode);
    wqe->index = index;
    wqe->opcode = word & 0xff;
    wqe->imm = ctrl.imm;
    wqe->signaled = 0 != (ctrl.fm_ce_se & MLX5_WQE_CTRL_CQ_UPDATE);
    wqe->solicited = 0 != (ctrl.fm_ce_se & MLX5_WQE_CTRL_SOLICITED);
    fence = ctrl.fm_ce_se >> FENCE_SHIFT;
    wqe->fence = (FENCE_FULL == fence || FENCE_STRONG == fence);
    wqe->bytes = (uint16_t) ((be32toh(ctrl.qpn_ds) & 0x3f) * 16);
    wqe->blocks = (uint8_t) ((wqe->bytes + SIM_BB - 1) / SIM_BB);
    wqe->data = sizeof(ctrl);
    if (0 == wqe->bytes || 0 != (be32toh(ctrl.qpn_ds) & 0xc0)) {
        wqe->blocks = 1;
        return "bad size of a work request";
    }
    if (wqe->bytes > sim.conf.max_sq_desc) {
        return "a work request larger than the device takes";
    }
    if ((word >> 8 & 0xffff) != index) {
        return "the work request's index is not its place: the queue was overwritten";
    }
    if (be32toh(ctrl.qpn_ds) >> 8 != qpn) {
        return "a work request of another queue pair";
    }
    switch (wqe->opcode) {
    case MLX5_OPCODE_RDMA_WRITE:
    case MLX5_OPCODE_RDMA_WRITE_IMM:
    case MLX5_OPCODE_RDMA_READ:
        if (wqe->bytes < sizeof(ctrl) + sizeof(raddr)) {
            return "no room for a remote address";
        }
        sim_ring_read(ring, index, sizeof(ctrl), &raddr, sizeof(raddr));
        wqe->raddr = be64toh(raddr.raddr);
        wqe->rkey = be32toh(raddr.rkey);
        wqe->data = sizeof(ctrl) + sizeof(raddr);
        break;
    case MLX5_OPCODE_ATOMIC_CS:
    case MLX5_OPCODE_ATOMIC_FA:
        if (wqe->bytes < sizeof(ctrl) + sizeof(raddr) + sizeof(atomic)) {
            return "no room for the operands of an atomic";
        }
        sim_ring_read(ring, index, sizeof(ctrl), &raddr, sizeof(raddr));
        sim_ring_read(ring, index, sizeof(ctrl) + sizeof(raddr), &atomic, sizeof(atomic));
        wqe->raddr = be64toh(raddr.raddr);
        wqe->rkey = be32toh(raddr.rkey);
        wqe->swap = be64toh(atomic.swap_add);
        wqe->compare = be64toh(atomic.compare);
        wqe->data = sizeof(ctrl) + sizeof(raddr) + sizeof(atomic);
        break;
    case MLX5_OPCODE_SEND:
    case MLX5_OPCODE_SEND_IMM:
    case MLX5_OPCODE_SEND_INVAL:
    case MLX5_OPCODE_NOP:
    case MLX5_OPCODE_UMR:
        break;
    default:
        return "an operation that this HCA does not support";
    }
    return NULL;
}

/* The action for each data segment. */
typedef const char *(*segment_fn_t)(void *context, uint32_t key, uint64_t addr, uint32_t length,
                                    uint32_t inline_at);

static const char *each_segment(const struct sim_ring *ring, const struct sim_wqe *wqe,
                                segment_fn_t segment, void *context)
{
    uint32_t at = wqe->data;
    uint32_t segments = 0;

    while (at < wqe->bytes) {
        struct mlx5_wqe_data_seg seg;
        const char *why;
        uint32_t count;

        if (++segments > sim.conf.max_sge) {
            return "more data segments than the device takes";
        }
        sim_ring_read(ring, wqe->index, at, &seg, sizeof(seg));
        count = be32toh(seg.byte_count);
        if (0 != (count & MLX5_INLINE_SEG)) {
            count &= ~MLX5_INLINE_SEG;
            if (count > wqe->bytes - at - sizeof(uint32_t)) {
                return "inline data beyond the end of the work request";
            }
            why = segment(context, 0, 0, count, at + (uint32_t) sizeof(uint32_t));
            at += (count + (uint32_t) sizeof(uint32_t) + 15) / 16 * 16;
        } else {
            /* Zero stands for 2 GiB. */
            why = segment(context, be32toh(seg.lkey), be64toh(seg.addr),
                          0 == count ? 1u << 31 : count, 0);
            at += (uint32_t) sizeof(seg);
        }
        if (NULL != why) {
            return why;
        }
    }
    return NULL;
}

static const char *add_length(void *context, uint32_t key, uint64_t addr, uint32_t length,
                              uint32_t inline_at)
{
    (void) key;
    (void) addr;
    (void) inline_at;
    *(uint64_t *) context += length;
    return NULL;
}

const char *sim_wqe_length(const struct sim_ring *ring, const struct sim_wqe *wqe, uint64_t *length)
{
    *length = 0;
    return each_segment(ring, wqe, add_length, length);
}

struct transfer {
    const struct sim_ring *ring;
    const struct sim_wqe *wqe;
    const struct sim_access *access;
    uint64_t offset;    /* bytes still to skip */
    uint32_t length;    /* bytes still to move */
    uint8_t *inline_to; /* inline data goes straight here */
    struct sim_pieces *pieces;
    bool is_inline;
};

static const char *move_segment(void *context, uint32_t key, uint64_t addr, uint32_t length,
                                uint32_t inline_at)
{
    struct transfer *t = context;
    uint32_t part;
    const char *why = NULL;

    if (0 == t->length) {
        return NULL;
    }
    if (t->offset >= length) {
        t->offset -= length;
        return NULL;
    }
    part = length - (uint32_t) t->offset;
    if (part > t->length) {
        part = t->length;
    }
    if (0 != inline_at) {
        if (NULL == t->inline_to || 0 < t->pieces->count) {
            return "inline data where it makes no sense";
        }
        sim_ring_read(t->ring, t->wqe->index, inline_at + (uint32_t) t->offset, t->inline_to, part);
        t->inline_to += part;
        t->is_inline = true;
    } else {
        why = sim_key_pieces(t->access, key, addr + t->offset, part, t->pieces);
    }
    t->offset = 0;
    t->length -= part;
    return why;
}

const char *sim_wqe_gather(const struct sim_ring *ring, const struct sim_wqe *wqe,
                           const struct sim_access *access, uint64_t offset, uint32_t length,
                           void *to, struct sim_pieces *pieces)
{
    struct transfer t = {ring, wqe, access, offset, length, to, pieces, false};
    const char *why;
    size_t i;

    sim_pieces_start(pieces, offset);
    why = each_segment(ring, wqe, move_segment, &t);
    if (NULL != why || t.is_inline) {
        return why;
    }
    if (0 != sim_gpu_gather(to, pieces)) {
        return "the memory behind the key is gone";
    }
    sim_pieces_count(pieces);
    if (SIM_UMR_BROKEN == sim.conf.umr && pieces->by_mkey) {
        uint8_t *at = to;

        for (i = 0; i < pieces->count; i++) {
            *at ^= 0xff;
            at += pieces->v[i].iov_len;
        }
    }
    return NULL;
}

const char *sim_wqe_scatter(const struct sim_ring *ring, const struct sim_wqe *wqe,
                            const struct sim_access *access, uint64_t offset, uint32_t length,
                            const void *from, struct sim_pieces *pieces)
{
    struct transfer t = {ring, wqe, access, offset, length, NULL, pieces, false};
    const char *why;

    sim_pieces_start(pieces, offset);
    why = each_segment(ring, wqe, move_segment, &t);
    if (NULL == why && 0 != sim_gpu_scatter(pieces, from)) {
        why = "the memory behind the key is gone";
    }
    if (NULL == why) {
        sim_pieces_count(pieces);
    }
    return why;
}

/* Entries of a list, as they come. Padding at the end is dropped, a hole is refused. */
static const char *decode_list(struct sim_layout *layout, const uint8_t *raw, uint32_t entries)
{
    uint32_t i;

    for (i = 0; i < entries; i++) {
        struct mlx5_wqe_data_seg seg;

        memcpy(&seg, raw + i * sizeof(seg), sizeof(seg));
        layout->klm[i].addr = be64toh(seg.addr);
        layout->klm[i].key = be32toh(seg.lkey);
        layout->klm[i].length = be32toh(seg.byte_count);
        layout->period += layout->klm[i].length;
        if (0 != layout->klm[i].length) {
            if (i != layout->count) {
                return "an empty entry in the list of an mkey";
            }
            layout->count = i + 1;
        } else if (0 != layout->klm[i].key) {
            return "an empty entry in the list of an mkey";
        }
    }
    return NULL;
}

/* A repeat block and its entries: all their fields are 16 bits wide. */
static const char *decode_repeat(struct sim_layout *layout, const uint8_t *raw, uint32_t entries)
{
    struct mlx5_wqe_umr_repeat_block_seg block;
    uint32_t i;

    memcpy(&block, raw, sizeof(block));
    layout->repeat = be32toh(block.repeat_count);
    layout->count = be16toh(block.num_ent);
    if (layout->count + 1 > entries) {
        return "a repeat block with more entries than follow it";
    }
    if (0 == layout->repeat) {
        return "a repeat block that repeats nothing";
    }
    for (i = 0; i < layout->count; i++) {
        struct mlx5_wqe_umr_repeat_ent_seg seg;

        memcpy(&seg, raw + (i + 1) * sizeof(seg), sizeof(seg));
        layout->klm[i].addr = be64toh(seg.va);
        layout->klm[i].key = be32toh(seg.memkey);
        layout->klm[i].length = be16toh(seg.byte_count);
        layout->klm[i].stride = be16toh(seg.stride);
        layout->period += layout->klm[i].length;
    }
    return NULL;
}

static unsigned decode_access(uint8_t flags)
{
    return (0 != (flags & MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_LOCAL_WRITE) ? IBV_ACCESS_LOCAL_WRITE
                                                                          : 0)
           | (0 != (flags & MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_READ) ? IBV_ACCESS_REMOTE_READ
                                                                            : 0)
           | (0 != (flags & MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_WRITE)
                  ? IBV_ACCESS_REMOTE_WRITE
                  : 0)
           | (0 != (flags & MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_ATOMIC) ? IBV_ACCESS_REMOTE_ATOMIC
                                                                       : 0);
}

/* The translation list of a UMR: in the work request, or where a data segment points. */
static const char *fetch_list(const struct sim_ring *ring, const struct sim_wqe *wqe,
                              const struct sim_access *access, bool is_inline, uint32_t entries,
                              uint8_t *raw)
{
    struct mlx5_wqe_data_seg seg;
    struct sim_pieces pieces = {0};
    const char *why;

    if (is_inline) {
        uint32_t bytes = entries * 16;
        uint32_t there = wqe->bytes > UMR_HEAD ? wqe->bytes - (uint32_t) UMR_HEAD : 0;

        if (there < bytes) {
            return "the list of a UMR is longer than its work request";
        }
        sim_ring_read(ring, wqe->index, UMR_HEAD, raw, bytes);
        return NULL;
    }
    if (wqe->bytes < UMR_HEAD + sizeof(seg)) {
        return "no room for the address of a list";
    }
    sim_ring_read(ring, wqe->index, UMR_HEAD, &seg, sizeof(seg));
    if (0 != (be64toh(seg.addr) & 2047)) {
        return "a list that is not aligned to 2048 bytes";
    }
    why = sim_key_pieces(access, be32toh(seg.lkey), be64toh(seg.addr), entries * 16, &pieces);
    if (NULL == why && 0 != sim_gpu_gather(raw, &pieces)) {
        why = "the list of a UMR cannot be read";
    }
    if (NULL == why) {
        sim.count.list_bytes += entries * 16;
    }
    sim_free(pieces.v);
    return why;
}

/* Whether the mkey as it is allows the UMR. */
static const char *check_old(const struct sim_layout *old, const struct mlx5_wqe_umr_ctrl_seg *umr,
                             uint32_t value, bool frees)
{
    if (0 != (umr->flags & MLX5_WQE_UMR_CTRL_FLAG_CHECK_FREE) && !old->free) {
        return "a UMR for a free mkey of one that is not";
    }
    /* A mapping has its own tag; an invalidation must name the present key. */
    if (frees && (old->free || old->tag != (value & 0xff))) {
        return "the key to be invalidated is stale";
    }
    return NULL;
}

const char *sim_wqe_umr(const struct sim_ring *ring, const struct sim_wqe *wqe,
                        const struct sim_access *access, uint32_t *mkey)
{
    struct mlx5_wqe_umr_ctrl_seg umr;
    struct mlx5_wqe_mkey_context_seg context;
    const struct sim_layout *old;
    struct sim_layout *layout;
    struct sim_key *key;
    bool frees = false;
    uint64_t mask;
    uint32_t entries;
    uint8_t *raw;
    const char *why;

    if (wqe->bytes < UMR_HEAD) {
        return "a UMR without an mkey context";
    }
    sim_ring_read(ring, wqe->index, 16, &umr, sizeof(umr));
    sim_ring_read(ring, wqe->index, 16 + 48, &context, sizeof(context));
    mask = be64toh(umr.mkey_mask);
    entries = be16toh(umr.klm_octowords);

    key = sim_key_find(be32toh(wqe->imm) >> 8);
    if (NULL == key || SIM_MKEY != key->super.kind) {
        return "a UMR of a key that is no mkey";
    }
    *mkey = key->index;
    if (key->pd != access->pd) {
        return "a UMR of an mkey of another protection domain";
    }
    if (0 != (mask & ~(uint64_t) UMR_MASK_KNOWN) || 0 != be16toh(umr.bsf_octowords)) {
        return "a UMR that changes fields unknown to this HCA";
    }
    if (0 != (umr.flags & MLX5_WQE_UMR_CTRL_FLAG_TRNSLATION_OFFSET)
        && 0 != umr.translation_offset) {
        return "a UMR that changes a part of a list only";
    }
    if (entries > key->capacity) {
        return "a UMR with more entries than the mkey has";
    }

    layout = sim_alloc(sizeof(*layout) + entries * sizeof(layout->klm[0]));
    raw = sim_alloc((entries + 1) * 16);
    if (NULL == layout || NULL == raw) {
        sim_free(layout);
        sim_free(raw);
        return "out of memory";
    }
    /* Bits outside of the mask are unchanged. */
    old = key->now;
    for (const struct sim_layout *p = key->pending; NULL != p; p = p->next) {
        old = p;
    }
    layout->qpn = access->qpn;
    layout->tag = old->tag;
    layout->access = old->access;
    layout->start = old->start;
    layout->length = old->length;
    layout->free = old->free;
    if (0 != (mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY)) {
        layout->tag = be32toh(context.qpn_mkey) & 0xff;
    }
    if (0 != (mask & UMR_MASK_ACCESS)) {
        layout->access = decode_access(context.access_flags);
    }
    if (0 != (mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_START_ADDR)) {
        layout->start = be64toh(context.start_addr);
    }
    if (0 != (mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN)) {
        layout->length = be64toh(context.len);
    }
    if (0 != (mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE)) {
        frees = 0 != (context.free & MLX5_WQE_MKEY_CONTEXT_FREE);
        layout->free = frees;
    }

    why = check_old(old, &umr, be32toh(wqe->imm), frees);
    if (NULL == why) {
        why = fetch_list(ring, wqe, access, 0 != (umr.flags & MLX5_WQE_UMR_CTRL_FLAG_INLINE),
                         entries, raw);
    }
    if (NULL == why && 0 < entries) {
        uint32_t mark;

        /* The key of the first entry distinguishes the two. */
        memcpy(&mark, raw + 4, sizeof(mark));
        why = REPEAT_MARK == be32toh(mark) ? decode_repeat(layout, raw, entries)
                                           : decode_list(layout, raw, entries);
    } else if (NULL == why && !layout->free) {
        why = "a UMR without a list";
    }
    sim_free(raw);
    if (NULL != why) {
        sim_free(layout);
        return why;
    }
    sim_key_post(key, layout);
    sim.count.umrs++;
    sim.count.klm_entries += layout->count;
    sim.count.invals += frees ? 1 : 0;
    return NULL;
}
