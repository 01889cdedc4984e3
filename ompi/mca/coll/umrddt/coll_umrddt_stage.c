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
 * Host memory in place of buffers in memory of a device, and the copies between the two.
 *
 * The host memory has the buffer's offsets, from the lowest byte that the call touches to the
 * highest; bytes between that no datatype touches are not copied, in either direction. What is
 * small comes from the pool of pinned memory and is kept for the next call. The rest is mapped, and
 * without being reserved: of the layout of one column of a matrix only the pages that have
 * something of it become memory.
 *
 * Each piece of a side is one operation of the device. Where the device cannot do a layout at once,
 * and where a datatype from MPI_BOTTOM has memory of several kinds, it goes run by run.
 */

#include "ompi_config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "opal/mca/common/umrddt_gpu/staging/umrddt_gpu_staging.h"
#include "opal/util/show_help.h"

#include "coll_umrddt.h"

#define ALIGNMENT 64 /* offsets keep what they are modulo this */

/** One side of a stage. */
typedef struct half_t {
    uint64_t user;  /**< the user's address */
    uint64_t given; /**< what takes its place: the same, or host memory */
    mca_coll_umrddt_piece_t *pieces;
    size_t n;    /**< 0: this side is passed on as it is */
    void *block; /**< the host memory */
    size_t size;
    bool pinned;
} half_t;

struct mca_coll_umrddt_stage_t {
    half_t halves[2]; /**< send, receive */
    size_t under_way; /**< copies that are not seen to be over */
    size_t begun;     /**< of copies, those that were used */
    opal_umrddt_gpu_copy_t *copies[];
};

/* ---------------------------------------------------------------------------------------------
 * Errors
 * ------------------------------------------------------------------------------------------- */

/** Tell the user. @return what MPI calls return and statuses say: MPI's own numbers pass for both
 */
static int fail(int rc, size_t bytes)
{
    MCA_COLL_UMRDDT_COUNT(failures);
    if (OPAL_ERR_OUT_OF_RESOURCE == rc) {
        opal_show_help("help-mca-coll-umrddt.txt", "no-memory", true, bytes);
        return MPI_ERR_NO_MEM;
    }
    opal_show_help("help-mca-coll-umrddt.txt", "driver", true, rc);
    return MPI_ERR_OTHER;
}

/* ---------------------------------------------------------------------------------------------
 * Memory
 * ------------------------------------------------------------------------------------------- */

static void set_up(void)
{
    static int done = 0;

    if (0 == __atomic_exchange_n(&done, 1, __ATOMIC_RELAXED)) {
        const opal_umrddt_gpu_engine_params_t params = {
            .how = OPAL_UMRDDT_GPU_HOW_AUTO,
            .shape_cache = 16u << 20,
            .staging = mca_coll_umrddt_params.pinned,
            .staging_chunk = mca_coll_umrddt_params.chunk,
        };

        opal_umrddt_gpu_engine_params(&params);
        opal_umrddt_gpu_staging_bound(mca_coll_umrddt_params.pinned);
    }
}

/** What the pool takes for so many bytes. */
static size_t in_pool(size_t size)
{
    size_t room = 4096;

    while (room < size && room <= SIZE_MAX / 2) {
        room *= 2;
    }
    return room;
}

/** From the pool; at most half of it, since copies of pageable memory are slow without. */
static void *get_pinned(opal_umrddt_gpu_engine_t *engine, size_t size)
{
    opal_umrddt_gpu_staging_stats_t stats;
    void *block = NULL;

    opal_umrddt_gpu_staging_stats(&stats);
    if (mca_coll_umrddt_params.pinned / 2 < stats.used_now
        || mca_coll_umrddt_params.pinned / 2 - stats.used_now < in_pool(size)
        || OPAL_SUCCESS != opal_umrddt_gpu_engine_enter(engine)) {
        return NULL;
    }
    if (OPAL_SUCCESS != opal_umrddt_gpu_staging_get(size, &block)) {
        block = NULL;
    }
    opal_umrddt_gpu_engine_leave(engine);
    return block;
}

/**
 * The engine of the memory at an address; NULL if that is not a device's.
 *
 * @param[in] copies  it is about to be copied: what CUDA's synchronous calls have left unfinished
 *                    in it is waited for
 */
static int engine_of(uint64_t address, bool copies, opal_umrddt_gpu_engine_t **engine)
{
    opal_umrddt_gpu_memory_t memory;

    *engine = NULL;
    mca_coll_umrddt_memory(address, &memory);
    if (copies) {
        opal_umrddt_gpu_settle(address, &memory);
    }
    return OPAL_UMRDDT_GPU_DEVICE == memory.kind ? opal_umrddt_gpu_engine_get(&memory, engine)
                                                 : OPAL_SUCCESS;
}

static int get_block(half_t *half)
{
    const mca_coll_umrddt_piece_t *first = &half->pieces[0];
    int64_t low = first->offset + first->layout->lb;
    int64_t high = first->offset + first->layout->ub;
    opal_umrddt_gpu_engine_t *engine;
    size_t pad;
    int rc;

    for (size_t i = 1; i < half->n; ++i) {
        const int64_t lb = half->pieces[i].offset + half->pieces[i].layout->lb;
        const int64_t ub = half->pieces[i].offset + half->pieces[i].layout->ub;

        low = lb < low ? lb : low;
        high = ub > high ? ub : high;
    }
    pad = (size_t) ((half->user + (uint64_t) low) % ALIGNMENT);
    half->size = pad + (size_t) (high - low);

    rc = engine_of(half->user + (uint64_t) (first->offset + first->layout->lb), false, &engine);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    if (NULL != engine) {
        half->block = get_pinned(engine, half->size);
        half->pinned = NULL != half->block;
    }
    if (NULL == half->block) {
        half->block = mmap(NULL, half->size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (MAP_FAILED == half->block) {
            half->block = NULL;
            return OPAL_ERR_OUT_OF_RESOURCE;
        }
    }
    half->given = (uint64_t) (uintptr_t) half->block + pad - (uint64_t) low;
    if (half->pinned) {
        MCA_COLL_UMRDDT_COUNT(stages_pinned);
    } else {
        MCA_COLL_UMRDDT_COUNT(stages_pageable);
    }
    return OPAL_SUCCESS;
}

static void put_block(half_t *half)
{
    if (NULL == half->block) {
        return;
    }
    if (half->pinned) {
        opal_umrddt_gpu_staging_put(half->block);
    } else {
        (void) munmap(half->block, half->size);
    }
    half->block = NULL;
}

/* ---------------------------------------------------------------------------------------------
 * Copies
 * ------------------------------------------------------------------------------------------- */

/** Begin one copy between a half's two places. */
static int begin(opal_umrddt_gpu_engine_t *engine, const half_t *half,
                 opal_iov_cache_layout_t *layout, int64_t offset, uint64_t length, bool out,
                 opal_umrddt_gpu_copy_t **copy)
{
    const opal_umrddt_gpu_place_t device = {.layout = layout,
                                            .address = half->user + (uint64_t) offset,
                                            .kind = OPAL_UMRDDT_GPU_DEVICE,
                                            .reached = true};
    const opal_umrddt_gpu_place_t host = {.layout = layout,
                                          .address = half->given + (uint64_t) offset,
                                          .kind = half->pinned ? OPAL_UMRDDT_GPU_PINNED
                                                               : OPAL_UMRDDT_GPU_HOST,
                                          .reached = half->pinned};

    return out ? opal_umrddt_gpu_copy(engine, &host, &device, 0, length, copy)
               : opal_umrddt_gpu_copy(engine, &device, &host, 0, length, copy);
}

/** One run, whosever memory it is in; done at the return. */
static int copy_run(const half_t *half, int64_t offset, uint64_t length, bool out)
{
    void *user = (void *) (uintptr_t) (half->user + (uint64_t) offset);
    void *host = (void *) (uintptr_t) (half->given + (uint64_t) offset);
    opal_umrddt_gpu_engine_t *engine;
    opal_umrddt_gpu_copy_t *copy;
    int rc = engine_of(half->user + (uint64_t) offset, true, &engine);

    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    if (NULL == engine) {
        memcpy(out ? user : host, out ? host : user, length);
        return OPAL_SUCCESS;
    }
    rc = begin(engine, half, NULL, offset, length, out, &copy);
    return OPAL_SUCCESS == rc ? opal_umrddt_gpu_copy_wait(copy) : rc;
}

static int copy_runs(const half_t *half, const mca_coll_umrddt_piece_t *piece, bool out)
{
    const opal_iov_cache_layout_t *layout = piece->layout;
    opal_iov_cache_iov_t iovs[32];
    uint64_t position = 0;
    int rc = OPAL_SUCCESS;

    while (OPAL_SUCCESS == rc && position < layout->size) {
        const size_t n = opal_iov_cache_form_iovs(layout->form, position, layout->size, iovs,
                                                  sizeof(iovs) / sizeof(iovs[0]), &position);

        for (size_t i = 0; OPAL_SUCCESS == rc && i < n; ++i) {
            rc = copy_run(half, piece->offset + iovs[i].offset, iovs[i].length, out);
        }
    }
    return rc;
}

/** Begin to copy a piece. @param[out] copy  NULL: it is done */
static int copy_piece(const half_t *half, const mca_coll_umrddt_piece_t *piece, bool out,
                      opal_umrddt_gpu_copy_t **copy)
{
    opal_iov_cache_layout_t *layout = piece->layout;
    const bool contiguous = opal_iov_cache_layout_is_contiguous(layout);
    opal_umrddt_gpu_engine_t *engine;
    int rc;

    *copy = NULL;
    if (!contiguous && (uint64_t) (uintptr_t) MPI_BOTTOM == half->user) {
        return copy_runs(half, piece, out);
    }
    rc = engine_of(half->user + (uint64_t) (piece->offset + layout->lb), true, &engine);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    if (NULL == engine) {
        return copy_runs(half, piece, out);
    }
    rc = begin(engine, half, contiguous ? NULL : layout,
               piece->offset + (contiguous ? layout->lb : 0), layout->size, out, copy);
    if (!contiguous && (OPAL_ERR_NOT_SUPPORTED == rc || OPAL_ERR_OUT_OF_RESOURCE == rc)) {
        *copy = NULL;
        rc = copy_runs(half, piece, out);
    }
    return rc;
}

/** One is over. */
static void copy_over(mca_coll_umrddt_stage_t *stage, size_t i)
{
    stage->copies[i] = NULL;
    --stage->under_way;
}

/** Wait for all of a stage that is under way. @return the first error */
static int wait_all(mca_coll_umrddt_stage_t *stage)
{
    int rc = OPAL_SUCCESS;

    for (size_t i = 0; 0 < stage->under_way; ++i) {
        if (NULL != stage->copies[i]) {
            int one = opal_umrddt_gpu_copy_wait(stage->copies[i]);

            copy_over(stage, i);
            rc = OPAL_SUCCESS == rc ? one : rc;
        }
    }
    return rc;
}

/** Begin to copy all that goes one way. */
static int begin_all(mca_coll_umrddt_stage_t *stage, unsigned flow)
{
    const bool out = MCA_COLL_UMRDDT_OUT == flow;
    uint64_t bytes = 0;

    stage->begun = 0;
    for (int h = 0; h < 2; ++h) {
        const half_t *half = &stage->halves[h];

        for (size_t i = 0; i < half->n; ++i) {
            opal_umrddt_gpu_copy_t *copy;
            int rc;

            if (0 == (flow & half->pieces[i].flow)) {
                continue;
            }
            rc = copy_piece(half, &half->pieces[i], out, &copy);
            if (OPAL_SUCCESS != rc) {
                (void) wait_all(stage);
                return fail(rc, half->size);
            }
            bytes += half->pieces[i].layout->size;
            if (NULL != copy) {
                stage->copies[stage->begun++] = copy;
                ++stage->under_way;
            }
        }
    }
    if (out) {
        MCA_COLL_UMRDDT_COUNT_ADD(bytes_out, bytes);
    } else {
        MCA_COLL_UMRDDT_COUNT_ADD(bytes_in, bytes);
    }
    return OMPI_SUCCESS;
}

/** Copy all that goes one way, and wait for it. */
static int copy_all(mca_coll_umrddt_stage_t *stage, unsigned flow)
{
    int rc = begin_all(stage, flow);

    if (OMPI_SUCCESS == rc) {
        rc = wait_all(stage);
        rc = OPAL_SUCCESS == rc ? OMPI_SUCCESS : fail(rc, 0);
    }
    return rc;
}

/* ---------------------------------------------------------------------------------------------
 * Stages
 * ------------------------------------------------------------------------------------------- */

int mca_coll_umrddt_stage_new(const mca_coll_umrddt_sides_t *sides,
                              mca_coll_umrddt_stage_t **result)
{
    const mca_coll_umrddt_side_t *side[2] = {&sides->send, &sides->recv};
    mca_coll_umrddt_piece_t *pieces[2] = {NULL, NULL};
    mca_coll_umrddt_stage_t *stage;
    size_t n[2] = {0, 0};
    bool gpu[2] = {false, false};
    int rc;

    *result = NULL;
    for (int h = 0; h < 2 && mca_coll_umrddt_may_be_any(); ++h) {
        rc = mca_coll_umrddt_side_look(side[h], &gpu[h]);
        if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
            return fail(rc, 0);
        }
    }
    if (OPAL_LIKELY(!gpu[0] && !gpu[1])) {
        MCA_COLL_UMRDDT_COUNT(passed);
        return OMPI_SUCCESS;
    }

    set_up();
    for (int h = 0; h < 2; ++h) {
        rc = gpu[h] ? mca_coll_umrddt_side_pieces(side[h], &pieces[h], &n[h]) : OMPI_SUCCESS;
        if (OMPI_SUCCESS != rc) {
            mca_coll_umrddt_pieces_free(pieces[0], n[0]);
            return fail(rc, 0);
        }
    }
    stage = calloc(1, sizeof(*stage) + (n[0] + n[1]) * sizeof(stage->copies[0]));
    if (NULL == stage) {
        mca_coll_umrddt_pieces_free(pieces[0], n[0]);
        mca_coll_umrddt_pieces_free(pieces[1], n[1]);
        return fail(OPAL_ERR_OUT_OF_RESOURCE, sizeof(*stage));
    }
    for (int h = 0; h < 2; ++h) {
        half_t *half = &stage->halves[h];

        half->user = (uint64_t) (uintptr_t) side[h]->user;
        half->given = half->user;
        half->pieces = pieces[h];
        half->n = n[h];
    }
    for (int h = 0; h < 2; ++h) {
        rc = 0 < n[h] ? get_block(&stage->halves[h]) : OPAL_SUCCESS;
        if (OPAL_SUCCESS != rc) {
            rc = fail(rc, stage->halves[h].size);
            mca_coll_umrddt_stage_free(stage);
            return rc;
        }
    }
    *result = stage;
    return OMPI_SUCCESS;
}

void *mca_coll_umrddt_stage_send(const mca_coll_umrddt_stage_t *stage)
{
    return (void *) (uintptr_t) stage->halves[0].given;
}

void *mca_coll_umrddt_stage_recv(const mca_coll_umrddt_stage_t *stage)
{
    return (void *) (uintptr_t) stage->halves[1].given;
}

int mca_coll_umrddt_stage_in(mca_coll_umrddt_stage_t *stage)
{
    MCA_COLL_UMRDDT_COUNT(staged);
    return copy_all(stage, MCA_COLL_UMRDDT_IN);
}

int mca_coll_umrddt_stage_out(mca_coll_umrddt_stage_t *stage)
{
    return begin_all(stage, MCA_COLL_UMRDDT_OUT);
}

int mca_coll_umrddt_stage_test(mca_coll_umrddt_stage_t *stage)
{
    for (size_t i = 0; 0 < stage->under_way && i < stage->begun; ++i) {
        if (NULL != stage->copies[i]) {
            int rc = opal_umrddt_gpu_copy_test(stage->copies[i]);

            if (OPAL_ERR_RESOURCE_BUSY == rc) {
                return OMPI_ERR_RESOURCE_BUSY;
            }
            copy_over(stage, i);
            if (OPAL_SUCCESS != rc) {
                (void) wait_all(stage);
                return fail(rc, 0);
            }
        }
    }
    return OMPI_SUCCESS;
}

void mca_coll_umrddt_stage_free(mca_coll_umrddt_stage_t *stage)
{
    if (NULL == stage) {
        return;
    }
    for (int h = 0; h < 2; ++h) {
        put_block(&stage->halves[h]);
        mca_coll_umrddt_pieces_free(stage->halves[h].pieces, stage->halves[h].n);
    }
    free(stage);
}

int mca_coll_umrddt_stage_end(mca_coll_umrddt_stage_t *stage, int rc)
{
    if (OMPI_SUCCESS == rc) {
        rc = copy_all(stage, MCA_COLL_UMRDDT_OUT);
    }
    mca_coll_umrddt_stage_free(stage);
    return rc;
}

void mca_coll_umrddt_stages_close(void)
{
    mca_coll_umrddt_layouts_close();
    opal_umrddt_gpu_engines_close();
    opal_umrddt_gpu_staging_close();
}
