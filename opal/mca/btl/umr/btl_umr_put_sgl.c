/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/**
 * @file
 *
 * Direct puts: writes without mkeys, by walking both layouts.
 *
 *     local pieces   | A |  B  |      C      |  D  |
 *     peer's runs    |    1    |   2   |  3  |  4  |
 *     writes         |  A, B   |   C   |  C  |  D  |
 *
 * Each write goes to one run of the peer's memory, and gathers as many pieces as fit in a work
 * request. A put stores the position of its walk, so it continues where the send queue was full; no
 * list of pieces is expanded.
 */

#include "opal_config.h"

#include <stdlib.h>
#include <string.h>

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_probe.h"
#include "opal/mca/btl/umr/btl_umr_put.h"
#include "opal/mca/btl/umr/btl_umr_put_queue.h"
#include "opal/mca/btl/umr/btl_umr_put_sgl.h"

/* Maximum of btl_umr_write_pieces. */
#define MCA_BTL_UMR_MAX_PIECES 30

/** Position of a direct put. */
typedef struct mca_btl_umr_walk_t {
    opal_iov_cache_pairs_t pairs;
    opal_iov_cache_pair_t pair; /**< rest of the current pair; count 0: take the next */
    uint64_t skip;              /**< bytes of its first block already written */
    uint64_t base[2];           /**< base addresses of the offsets: local, remote */
    const mca_btl_umr_memory_t *memory;
    size_t region_count;
    size_t region; /**< region of the last write */
} mca_btl_umr_walk_t;

/* ------------------------------------------------------------------------------------------- *
 * Regions
 * ------------------------------------------------------------------------------------------- */

size_t mca_btl_umr_memory_regions(const mca_btl_umr_memory_t *memory, mca_btl_umr_key_t *regions,
                                  size_t max)
{
    if (MCA_BTL_UMR_REMOTE != memory->role || !mca_btl_umr_params.plain_keys) {
        return 0;
    }
    for (size_t i = 0; i < memory->count && i < max; ++i) {
        const mca_btl_umr_part_t *part = &memory->parts[i];

        regions[i].addr = part->start;
        regions[i].length = part->end - part->start;
        regions[i].rkey = part->reg->mr->rkey;
        regions[i].lkey = 0;
    }
    return memory->count;
}

/**
 * True if regions ascend, none is empty or adjacent to another, and none ends beyond the last
 * address.
 */
static bool regions_valid(const mca_btl_umr_key_t *regions, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        if (0 == regions[i].length || UINT64_MAX - regions[i].addr < regions[i].length
            || (0 < i && regions[i].addr <= regions[i - 1].addr + regions[i - 1].length)) {
            return false;
        }
    }
    return 0 < count;
}

/** True if all of [addr, addr + length) is in one region; @p at is its index. */
static bool region_find(const mca_btl_umr_key_t *regions, size_t count, uint64_t addr,
                        uint64_t length, size_t *at)
{
    const mca_btl_umr_key_t *region;
    size_t low = 0, high = count;

    region = &regions[*at];
    if (addr < region->addr || addr - region->addr >= region->length) {
        /* The last region that begins at or before the address. */
        while (1 < high - low) {
            size_t middle = low + (high - low) / 2;

            if (regions[middle].addr <= addr) {
                low = middle;
            } else {
                high = middle;
            }
        }
        *at = low;
        region = &regions[low];
    }
    return addr >= region->addr && length <= region->length
           && addr - region->addr <= region->length - length;
}

/** True if every byte of the range is in a region, and no block in two regions. */
static bool regions_cover(const mca_btl_umr_direct_t *direct)
{
    const opal_iov_cache_form_t *to = direct->to;
    opal_iov_cache_cursor_t cursor;
    opal_iov_cache_run_t run;
    size_t at = 0;

    if (region_find(direct->regions, direct->region_count, direct->to_buffer + (uint64_t) to->lb,
                    (uint64_t) to->ub - (uint64_t) to->lb, &at)) {
        return true;
    }
    opal_iov_cache_cursor_init(&cursor, to, direct->start, direct->end);
    while (opal_iov_cache_cursor_next(&cursor, &run)) {
        uint64_t addr = direct->to_buffer + (uint64_t) run.offset;
        uint64_t distance = run.stride < 0 ? 0 - (uint64_t) run.stride : (uint64_t) run.stride;
        uint64_t reach = (run.count - 1) * distance;

        /* First all blocks at once, otherwise each block by itself. */
        if (region_find(direct->regions, direct->region_count, addr - (run.stride < 0 ? reach : 0),
                        reach + run.length, &at)) {
            continue;
        }
        for (; 0 < run.count; --run.count) {
            if (!region_find(direct->regions, direct->region_count, addr, run.length, &at)) {
                return false;
            }
            addr += (uint64_t) run.stride;
        }
    }
    return true;
}

/* ------------------------------------------------------------------------------------------- *
 * Writes
 * ------------------------------------------------------------------------------------------- */

/** Advance by @p length bytes of the current block. */
static void walk_on(mca_btl_umr_walk_t *walk, uint64_t length)
{
    walk->skip += length;
    if (walk->skip == walk->pair.length) {
        walk->skip = 0;
        --walk->pair.count;
        for (int side = 0; side < 2; ++side) {
            /* After the last block the offset may be out of range. */
            walk->pair.offset[side] =
                (int64_t) ((uint64_t) walk->pair.offset[side] + (uint64_t) walk->pair.stride[side]);
        }
    }
}

/** Build the next write. The caller has checked that the queue has room. @return bytes */
static uint64_t build(mca_btl_umr_endpoint_t *endpoint, mca_btl_umr_put_t *put)
{
    mca_btl_umr_hca_t *hca = endpoint->hca;
    mca_btl_umr_walk_t *walk = put->walk;
    struct ibv_sge pieces[MCA_BTL_UMR_MAX_PIECES];
    uint64_t start = 0, end = 0, limit = 0; /* of the run; of its region */
    size_t count = 0;

    /*
     * Every pass except the last takes a block or a part of one; put->left is the number of
     * remaining bytes.
     */
    while (end - start < put->left && end - start < hca->device.max_message) {
        uint64_t length, addr, here;
        uint32_t lkey;

        if (0 == walk->pair.count && !opal_iov_cache_pairs_next(&walk->pairs, &walk->pair)) {
            break;
        }
        addr = walk->base[1] + (uint64_t) walk->pair.offset[1] + walk->skip;
        here = walk->base[0] + (uint64_t) walk->pair.offset[0] + walk->skip;
        length = walk->pair.length - walk->skip;
        if (0 == count) {
            /* checked when the put was created */
            (void) region_find(put->remote, walk->region_count, addr, length, &walk->region);
            limit = put->remote[walk->region].addr + put->remote[walk->region].length;
            start = end = addr;
        } else if (addr != end || length > limit - end) {
            break;
        }
        if (length > hca->device.max_message - (end - start)) {
            length = hca->device.max_message - (end - start);
        }
        lkey = mca_btl_umr_memory_find(walk->memory, (uintptr_t) here)->lkey;
        if (0 < count && lkey == pieces[count - 1].lkey
            && here == pieces[count - 1].addr + pieces[count - 1].length) {
            pieces[count - 1].length += (uint32_t) length;
        } else if (count == hca->caps.write_pieces) {
            break;
        } else {
            pieces[count].addr = here;
            pieces[count].length = (uint32_t) length;
            pieces[count].lkey = lkey;
            ++count;
        }
        end += length;
        walk_on(walk, length);
    }

    mca_btl_umr_put_write(endpoint, put, put->remote[walk->region].rkey, start, end - start);
    ibv_wr_set_sge_list(endpoint->sq.qpx, count, pieces);
    ++hca->stats.writes_direct;
    hca->stats.pieces_direct += count;
    return end - start;
}

int mca_btl_umr_put_direct(mca_btl_umr_endpoint_t *endpoint, const mca_btl_umr_direct_t *direct,
                           const uint32_t *fin, mca_btl_umr_done_fn_t done, void *context)
{
    mca_btl_umr_hca_t *hca = endpoint->hca;
    const mca_btl_umr_memory_t *memory = direct->memory;
    mca_btl_umr_put_t *put;
    mca_btl_umr_walk_t *walk;
    int rc;

    if (direct->start >= direct->end || direct->end > direct->layout->size
        || direct->end > direct->to->size || direct->end > memory->size
        || endpoint->hca != memory->hca || direct->buffer != memory->buffer
        || direct->layout->id != memory->layout_id
        || !regions_valid(direct->regions, direct->region_count) || !regions_cover(direct)) {
        return OPAL_ERR_BAD_PARAM;
    }

    OPAL_THREAD_LOCK(&mca_btl_umr.lock);
    rc = mca_btl_umr_endpoint_takes(endpoint);
    if (OPAL_UNLIKELY(OPAL_SUCCESS != rc)) {
        OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
        return rc;
    }
    put = mca_btl_umr_put_new(hca, direct->regions, direct->region_count);
    if (NULL != put && NULL == put->walk) {
        put->walk = malloc(sizeof(*put->walk));
        if (NULL == put->walk) {
            OBJ_RELEASE(put);
            put = NULL;
        }
    }
    if (NULL == put) {
        OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
        return OPAL_ERR_OUT_OF_RESOURCE;
    }

    walk = put->walk;
    opal_iov_cache_pairs_init(&walk->pairs, direct->layout->form, direct->to, direct->start,
                              direct->end);
    walk->pair.count = 0;
    walk->skip = 0;
    walk->base[0] = (uintptr_t) direct->buffer;
    walk->base[1] = direct->to_buffer;
    walk->memory = memory;
    walk->region_count = direct->region_count;
    walk->region = 0;
    put->build = build;
    put->keyset = NULL;
    mca_btl_umr_put_begin(endpoint, put, direct->end - direct->start, fin, done, context);
    OPAL_THREAD_UNLOCK(&mca_btl_umr.lock);
    return OPAL_SUCCESS;
}
