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
 * Stages: system memory in place of buffers in device memory, and the copies between them. See
 * coll_umrddt.h first.
 */

/*
 * A stage has the buffer's offsets, from the lowest to the highest byte that the call accesses.
 * Bytes in gaps of the datatypes are not copied. Small stages are pinned memory from the pool,
 * which is kept for later calls. Others are mapped without reservation: of the layout of a matrix
 * column, for example, only the pages with data use memory.
 *
 * Each piece of a side is one device operation. Layouts that the device cannot copy at once, and
 * datatypes that span several kinds of memory, are copied block by block.
 *
 * The parts of an alltoallw with non-contiguous types are packed instead, by the GPU. The saved
 * function gets the offsets of the packed parts and MPI_BYTE: these algorithms send each part as
 * one message, whose bytes are the same. Other processes may use the user's types.
 *
 * Stages come from a free list and keep their arrays, so that repeated collectives allocate
 * nothing.
 */

#include "ompi_config.h"

#include <stdlib.h>
#include <string.h>

#include "opal/class/opal_free_list.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_users.h"
#include "opal/mca/common/umrddt_gpu/staging/umrddt_gpu_stage.h"
#include "opal/mca/common/umrddt_gpu/staging/umrddt_gpu_staging.h"

#include "coll_umrddt_stage.h"
#include "umrddt_help.h"

#define ALIGNMENT    64   /* offsets are preserved modulo this */
#define PARTS_CACHED 4096 /* arrays of more parts than this are freed */
#define SPARSE       16 /* a block with more than this many bytes for each byte of data is sparse */

/** One side of a stage. */
typedef struct half_t {
    uint64_t user;                   /**< the user's address */
    uint64_t given;                  /**< the replacement: the same address, or system memory */
    mca_coll_umrddt_pieces_t pieces; /**< empty: this side is passed on unchanged */
    opal_umrddt_gpu_stage_t block;   /**< the system memory */
    size_t size;
    bool packed;                       /**< its parts are packed, as vectors describes */
    mca_coll_umrddt_vectors_t vectors; /**< in the following array */
    void *array;
    size_t room; /**< parts that the array has space for */
} half_t;

struct mca_coll_umrddt_stage_t {
    opal_free_list_item_t super;
    half_t halves[2];                /**< send, receive */
    size_t in_flight;                /**< copies not known to be complete */
    size_t begun;                    /**< used entries of copies */
    opal_umrddt_gpu_copy_t **copies; /**< one for each piece */
    size_t room;                     /**< allocated entries of copies */
};

static void stage_construct(mca_coll_umrddt_stage_t *stage)
{
    memset((char *) stage + sizeof(stage->super), 0, sizeof(*stage) - sizeof(stage->super));
}

static void stage_destruct(mca_coll_umrddt_stage_t *stage)
{
    for (int h = 0; h < 2; ++h) {
        mca_coll_umrddt_pieces_free(&stage->halves[h].pieces);
        free(stage->halves[h].array);
    }
    free(stage->copies);
}

static OBJ_CLASS_INSTANCE(mca_coll_umrddt_stage_t, opal_free_list_item_t, stage_construct,
                          stage_destruct);

static opal_free_list_t pool;

/* ---------------------------------------------------------------------------------------------
 * Errors
 * ------------------------------------------------------------------------------------------- */

/** As mca_coll_umrddt_fail, if the block of a side could not be allocated. */
static int fail_block(int rc, const half_t *half)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < half->pieces.n; ++i) {
        bytes += half->pieces.list[i].layout->size;
    }
    if (OPAL_ERR_OUT_OF_RESOURCE != rc || half->size / SPARSE < bytes) {
        return mca_coll_umrddt_fail(rc, half->size);
    }
    MCA_COLL_UMRDDT_COUNT(failures);
    opal_show_help("help-mca-coll-umrddt.txt", "far-apart", true, (size_t) bytes, half->size);
    return MPI_ERR_NO_MEM;
}

/* ---------------------------------------------------------------------------------------------
 * Memory
 * ------------------------------------------------------------------------------------------- */

/** Bytes of the pool in blocks of stages. */
static size_t pinned_now;

/** Bytes of pool memory for a block of @p size bytes. */
static size_t in_pool(size_t size)
{
    size_t room = 4096;

    while (room < size && room <= SIZE_MAX / 2) {
        room *= 2;
    }
    return room;
}

/** Get memory from the pool. At most half of the pool is in use then, because copies of pageable
 * memory need the rest. */
static bool get_pinned(opal_umrddt_gpu_engine_t *engine, half_t *half)
{
    const size_t bytes = in_pool(half->size);
    opal_umrddt_gpu_staging_stats_t stats;

    opal_umrddt_gpu_staging_stats(&stats);
    if (stats.bound / 2 < stats.used_now || stats.bound / 2 - stats.used_now < bytes) {
        return false;
    }
    if (__atomic_add_fetch(&pinned_now, bytes, __ATOMIC_RELAXED) <= mca_coll_umrddt_params.pinned
        && OPAL_SUCCESS == opal_umrddt_gpu_stage_pinned(engine, half->size, &half->block)) {
        return true;
    }
    __atomic_sub_fetch(&pinned_now, bytes, __ATOMIC_RELAXED);
    return false;
}

static void put_block(half_t *half)
{
    if (OPAL_UMRDDT_GPU_PINNED == half->block.kind) {
        __atomic_sub_fetch(&pinned_now, in_pool(half->block.room), __ATOMIC_RELAXED);
    }
    opal_umrddt_gpu_stage_put(&half->block);
}

/**
 * The engine for the memory at an address; NULL if it is not device memory.
 *
 * @param[in] copies  the memory is about to be copied: wait for unfinished work of CUDA's
 *                    synchronous calls on it
 */
static int engine_of(uint64_t address, bool copies, opal_umrddt_gpu_engine_t **engine)
{
    opal_umrddt_gpu_memory_t memory;

    *engine = NULL;
    mca_coll_umrddt_memory(address, &memory);
    if (copies) {
        opal_umrddt_gpu_sync_default(address, &memory);
    }
    return OPAL_UMRDDT_GPU_DEVICE == memory.kind ? opal_umrddt_gpu_engine_get(&memory, engine)
                                                 : OPAL_SUCCESS;
}

/**
 * Set the size of a half's block from the lowest to the highest byte of its pieces. @return the
 * offset of the replacement from the block
 */
static uint64_t span(half_t *half)
{
    const mca_coll_umrddt_piece_t *pieces = half->pieces.list;
    int64_t low = pieces[0].offset + pieces[0].layout->lb;
    int64_t high = pieces[0].offset + pieces[0].layout->ub;
    size_t pad;

    for (size_t i = 1; i < half->pieces.n; ++i) {
        const int64_t lb = pieces[i].offset + pieces[i].layout->lb;
        const int64_t ub = pieces[i].offset + pieces[i].layout->ub;

        low = lb < low ? lb : low;
        high = ub > high ? ub : high;
    }
    pad = (size_t) ((half->user + (uint64_t) low) % ALIGNMENT);
    half->size = pad + (size_t) (high - low);
    return pad - (uint64_t) low;
}

static int get_block(half_t *half)
{
    const mca_coll_umrddt_piece_t *first = &half->pieces.list[0];
    const uint64_t begin = half->packed ? 0 : span(half);
    opal_umrddt_gpu_engine_t *engine;
    int rc;

    rc = engine_of(half->user + (uint64_t) (first->offset + first->layout->lb), false, &engine);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    if (NULL == engine || !get_pinned(engine, half)) {
        rc = opal_umrddt_gpu_stage_plain(half->size, &half->block);
        if (OPAL_SUCCESS != rc) {
            return rc;
        }
    }
    half->given = (uint64_t) (uintptr_t) half->block.bytes + begin;
    if (OPAL_UMRDDT_GPU_PINNED == half->block.kind) {
        MCA_COLL_UMRDDT_COUNT(stages_pinned);
    } else {
        MCA_COLL_UMRDDT_COUNT(stages_pageable);
    }
    return OPAL_SUCCESS;
}

/* ---------------------------------------------------------------------------------------------
 * Packed parts
 * ------------------------------------------------------------------------------------------- */

/** Describe the packed parts of a half to the saved function. */
static int pack_parts(half_t *half, const mca_coll_umrddt_side_t *side)
{
    const size_t n = (size_t) side->parts;

    if (half->room < n) {
        free(half->array);
        half->array = malloc(n * MCA_COLL_UMRDDT_VECTORS_PART);
        half->room = NULL != half->array ? n : 0;
    }
    if (NULL == half->array) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    half->size =
        mca_coll_umrddt_side_pack(side, &half->pieces, ALIGNMENT, half->array, &half->vectors);
    MCA_COLL_UMRDDT_COUNT(sides_packed);
    return OPAL_SUCCESS;
}

const mca_coll_umrddt_vectors_t *mca_coll_umrddt_stage_vectors(const mca_coll_umrddt_stage_t *stage,
                                                               int side)
{
    return stage->halves[side].packed ? &stage->halves[side].vectors : NULL;
}

/* ---------------------------------------------------------------------------------------------
 * Copies
 * ------------------------------------------------------------------------------------------- */

/**
 * Start one copy between the two memories of a half.
 *
 * @param[in] layout  of both; NULL: contiguous. In a packed half only of the device memory
 * @param[in] offset  of the device memory from the user's address
 * @param[in] given   of the system memory from the replacement
 */
static int begin(opal_umrddt_gpu_engine_t *engine, const half_t *half,
                 opal_iov_cache_layout_t *layout, int64_t offset, int64_t given, uint64_t length,
                 bool out, opal_umrddt_gpu_copy_t **copy)
{
    const opal_umrddt_gpu_copy_end_t device = {.layout = layout,
                                               .address = half->user + (uint64_t) offset,
                                               .kind = OPAL_UMRDDT_GPU_DEVICE,
                                               .reached = true};
    const opal_umrddt_gpu_copy_end_t host = {.layout = half->packed ? NULL : layout,
                                             .address = half->given + (uint64_t) given,
                                             .kind = half->block.kind,
                                             .reached = OPAL_UMRDDT_GPU_PINNED == half->block.kind};

    return out ? opal_umrddt_gpu_copy(engine, &host, &device, 0, length, copy)
               : opal_umrddt_gpu_copy(engine, &device, &host, 0, length, copy);
}

/** Copy one block of any memory kind; blocking. */
static int copy_run(const half_t *half, int64_t offset, int64_t given, uint64_t length, bool out)
{
    void *user = (void *) (uintptr_t) (half->user + (uint64_t) offset);
    void *host = (void *) (uintptr_t) (half->given + (uint64_t) given);
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
    rc = begin(engine, half, NULL, offset, given, length, out, &copy);
    return OPAL_SUCCESS == rc ? opal_umrddt_gpu_copy_wait(copy) : rc;
}

static int copy_runs(const half_t *half, const mca_coll_umrddt_piece_t *piece, bool out)
{
    const opal_iov_cache_layout_t *layout = piece->layout;
    opal_iov_cache_iov_t iovs[32];
    uint64_t position = 0, packed = piece->packed;
    int rc = OPAL_SUCCESS;

    while (OPAL_SUCCESS == rc && position < layout->size) {
        const size_t n = opal_iov_cache_form_iovs(layout->form, position, layout->size, iovs,
                                                  sizeof(iovs) / sizeof(iovs[0]), &position);

        for (size_t i = 0; OPAL_SUCCESS == rc && i < n; ++i) {
            const int64_t offset = piece->offset + iovs[i].offset;

            rc = copy_run(half, offset, half->packed ? (int64_t) packed : offset, iovs[i].length,
                          out);
            packed += iovs[i].length;
        }
    }
    return rc;
}

/** Start to copy a piece. @param[out] copy  NULL: it is complete */
static int copy_piece(const half_t *half, const mca_coll_umrddt_piece_t *piece, bool out,
                      opal_umrddt_gpu_copy_t **copy)
{
    opal_iov_cache_layout_t *layout = piece->layout;
    const bool contiguous = opal_iov_cache_layout_is_contiguous(layout);
    opal_umrddt_gpu_memory_t memory;
    opal_umrddt_gpu_engine_t *engine;
    int64_t offset;
    int rc;

    *copy = NULL;
    if (!mca_coll_umrddt_piece_is_whole(half->user, piece, &memory)) {
        return copy_runs(half, piece, out);
    }
    opal_umrddt_gpu_sync_default(half->user + (uint64_t) (piece->offset + layout->lb), &memory);
    rc = opal_umrddt_gpu_engine_get(&memory, &engine);
    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    offset = piece->offset + (contiguous ? layout->lb : 0);
    rc = begin(engine, half, contiguous ? NULL : layout, offset,
               half->packed ? (int64_t) piece->packed : offset, layout->size, out, copy);
    if (!contiguous && (OPAL_ERR_NOT_SUPPORTED == rc || OPAL_ERR_OUT_OF_RESOURCE == rc)) {
        *copy = NULL;
        rc = copy_runs(half, piece, out);
    }
    return rc;
}

/** A copy has completed. */
static void copy_over(mca_coll_umrddt_stage_t *stage, size_t i)
{
    stage->copies[i] = NULL;
    --stage->in_flight;
}

/** Wait for all copies in progress. @return the first error */
static int wait_all(mca_coll_umrddt_stage_t *stage)
{
    int rc = OPAL_SUCCESS;

    for (size_t i = 0; 0 < stage->in_flight; ++i) {
        if (NULL != stage->copies[i]) {
            int one = opal_umrddt_gpu_copy_wait(stage->copies[i]);

            copy_over(stage, i);
            rc = OPAL_SUCCESS == rc ? one : rc;
        }
    }
    return rc;
}

/** Start all copies of one direction. */
static int begin_all(mca_coll_umrddt_stage_t *stage, unsigned flow)
{
    const bool out = MCA_COLL_UMRDDT_OUT == flow;
    uint64_t bytes = 0;

    stage->begun = 0;
    for (int h = 0; h < 2; ++h) {
        const half_t *half = &stage->halves[h];

        for (size_t i = 0; i < half->pieces.n; ++i) {
            const mca_coll_umrddt_piece_t *piece = &half->pieces.list[i];
            opal_umrddt_gpu_copy_t *copy;
            int rc;

            if (0 == (flow & piece->flow)) {
                continue;
            }
            rc = copy_piece(half, piece, out, &copy);
            if (OPAL_SUCCESS != rc) {
                (void) wait_all(stage);
                return mca_coll_umrddt_fail(rc, half->size);
            }
            bytes += piece->layout->size;
            if (NULL != copy) {
                stage->copies[stage->begun++] = copy;
                ++stage->in_flight;
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

/** Make all copies of one direction, and wait. */
static int copy_all(mca_coll_umrddt_stage_t *stage, unsigned flow)
{
    int rc = begin_all(stage, flow);

    if (OMPI_SUCCESS == rc) {
        rc = wait_all(stage);
        rc = OPAL_SUCCESS == rc ? OMPI_SUCCESS : mca_coll_umrddt_fail(rc, 0);
    }
    return rc;
}

/* ---------------------------------------------------------------------------------------------
 * Stages
 * ------------------------------------------------------------------------------------------- */

/** Get an empty stage from the free list. */
static mca_coll_umrddt_stage_t *stage_get(void)
{
    mca_coll_umrddt_stage_t *stage = (mca_coll_umrddt_stage_t *) opal_free_list_get(&pool);

    if (NULL != stage) {
        stage->in_flight = 0;
        stage->begun = 0;
        for (int h = 0; h < 2; ++h) {
            memset(&stage->halves[h].block, 0, sizeof(stage->halves[h].block));
            stage->halves[h].size = 0;
            stage->halves[h].packed = false;
        }
    }
    return stage;
}

/** Query each piece of the sides that may be in several kinds of memory. Gets a stage for them. */
static __opal_attribute_noinline__ int look_at_pieces(const mca_coll_umrddt_side_t *const side[2],
                                                      mca_coll_umrddt_look_t seen[2],
                                                      mca_coll_umrddt_stage_t **stage)
{
    int rc = OMPI_SUCCESS;

    *stage = stage_get();
    if (NULL == *stage) {
        return mca_coll_umrddt_fail(OPAL_ERR_OUT_OF_RESOURCE, sizeof(**stage));
    }
    for (int h = 0; OMPI_SUCCESS == rc && h < 2; ++h) {
        if (MCA_COLL_UMRDDT_SEVERAL == seen[h]) {
            rc = mca_coll_umrddt_side_pieces(side[h], &(*stage)->halves[h].pieces);
            if (OMPI_SUCCESS == rc) {
                seen[h] = mca_coll_umrddt_pieces_look(side[h], &(*stage)->halves[h].pieces);
            }
        }
    }
    if (OMPI_SUCCESS != rc) {
        mca_coll_umrddt_stage_free(*stage);
        *stage = NULL;
        rc = mca_coll_umrddt_fail(rc, sizeof(**stage));
    }
    return rc;
}

/** mca_coll_umrddt_stage_look. Inline, for calls on system memory. */
static inline int look(mca_coll_umrddt_sides_t *sides, mca_coll_umrddt_look_t seen[2],
                       mca_coll_umrddt_stage_t **stage)
{
    const mca_coll_umrddt_side_t *const side[2] = {&sides->send, &sides->recv};
    int rc;

    for (int h = 0; h < 2; ++h) {
        seen[h] = 0 < side[h]->parts ? mca_coll_umrddt_side_look(side[h]) : MCA_COLL_UMRDDT_CPU;
    }
    rc = OPAL_LIKELY(MCA_COLL_UMRDDT_SEVERAL != seen[0] && MCA_COLL_UMRDDT_SEVERAL != seen[1])
             ? OMPI_SUCCESS
             : look_at_pieces(side, seen, stage);
    sides->gpu = MCA_COLL_UMRDDT_CPU != seen[0] || MCA_COLL_UMRDDT_CPU != seen[1];
    return rc;
}

/** Allocate one copy entry for each piece. */
static int make_room(mca_coll_umrddt_stage_t *stage)
{
    const size_t n = stage->halves[0].pieces.n + stage->halves[1].pieces.n;

    if (OPAL_UNLIKELY(stage->room < n)) {
        free(stage->copies);
        stage->copies = malloc(n * sizeof(stage->copies[0]));
        stage->room = NULL != stage->copies ? n : 0;
    }
    return n <= stage->room ? OMPI_SUCCESS : OPAL_ERR_OUT_OF_RESOURCE;
}

/** Get the pieces of the sides in device memory, and memory for them. */
static int fill(mca_coll_umrddt_stage_t *stage, const mca_coll_umrddt_side_t *const side[2],
                const mca_coll_umrddt_look_t seen[2])
{
    int rc;

    for (int h = 0; h < 2; ++h) {
        half_t *half = &stage->halves[h];

        half->given = half->user = (uint64_t) (uintptr_t) side[h]->user;
        if (MCA_COLL_UMRDDT_CPU == seen[h]) {
            mca_coll_umrddt_pieces_clear(&half->pieces);
        } else if (0 == half->pieces.n) {
            mca_coll_umrddt_side_t whole = *side[h];

            half->packed = whole.apart = mca_coll_umrddt_side_packs(&whole, ALIGNMENT);
            rc = mca_coll_umrddt_side_pieces(&whole, &half->pieces);
            if (OMPI_SUCCESS == rc && half->packed) {
                rc = pack_parts(half, &whole);
            }
            if (OMPI_SUCCESS != rc) {
                return mca_coll_umrddt_fail(rc,
                                            (size_t) side[h]->parts * sizeof(half->pieces.list[0]));
            }
        }
    }
    rc = make_room(stage);
    if (OMPI_SUCCESS != rc) {
        return mca_coll_umrddt_fail(rc, (stage->halves[0].pieces.n + stage->halves[1].pieces.n)
                                            * sizeof(stage->copies[0]));
    }
    for (int h = 0; h < 2; ++h) {
        rc = 0 < stage->halves[h].pieces.n ? get_block(&stage->halves[h]) : OPAL_SUCCESS;
        if (OPAL_SUCCESS != rc) {
            return fail_block(rc, &stage->halves[h]);
        }
    }
    return OMPI_SUCCESS;
}

int mca_coll_umrddt_stage_look(mca_coll_umrddt_sides_t *sides, mca_coll_umrddt_look_t seen[2],
                               mca_coll_umrddt_stage_t **stage)
{
    *stage = NULL;
    return look(sides, seen, stage);
}

/** Pass a call through, with the stage of the query, if there is one. */
static inline int pass(const mca_coll_umrddt_sides_t *sides, mca_coll_umrddt_stage_t **stage)
{
    if (!sides->gpu) {
        MCA_COLL_UMRDDT_COUNT(passed);
    } else {
        MCA_COLL_UMRDDT_COUNT(passed_gpu);
    }
    if (OPAL_UNLIKELY(NULL != *stage)) {
        mca_coll_umrddt_stage_free(*stage);
        *stage = NULL;
    }
    return OMPI_SUCCESS;
}

int mca_coll_umrddt_stage_fill(const mca_coll_umrddt_sides_t *sides,
                               const mca_coll_umrddt_look_t seen[2],
                               mca_coll_umrddt_stage_t **stage)
{
    const mca_coll_umrddt_side_t *const side[2] = {&sides->send, &sides->recv};
    int rc;

    if (!mca_coll_umrddt_needs_stage(sides, seen)) {
        return pass(sides, stage);
    }
    if (NULL == *stage) {
        *stage = stage_get();
        if (NULL == *stage) {
            return mca_coll_umrddt_fail(OPAL_ERR_OUT_OF_RESOURCE, sizeof(**stage));
        }
    }
    rc = fill(*stage, side, seen);
    if (OMPI_SUCCESS != rc) {
        mca_coll_umrddt_stage_free(*stage);
        *stage = NULL;
    }
    return rc;
}

int mca_coll_umrddt_stage_new(mca_coll_umrddt_sides_t *sides, mca_coll_umrddt_stage_t **result)
{
    mca_coll_umrddt_look_t seen[2] = {MCA_COLL_UMRDDT_CPU, MCA_COLL_UMRDDT_CPU};
    int rc = OMPI_SUCCESS;

    *result = NULL;
    sides->gpu = false;
    if (OPAL_LIKELY(opal_umrddt_gpu_in_use())) {
        rc = look(sides, seen, result);
        if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {
            return rc;
        }
    }
    return OPAL_LIKELY(!mca_coll_umrddt_needs_stage(sides, seen))
               ? pass(sides, result)
               : mca_coll_umrddt_stage_fill(sides, seen, result);
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
    for (size_t i = 0; 0 < stage->in_flight && i < stage->begun; ++i) {
        if (NULL != stage->copies[i]) {
            int rc = opal_umrddt_gpu_copy_test(stage->copies[i]);

            if (OPAL_ERR_RESOURCE_BUSY == rc) {
                return OMPI_ERR_RESOURCE_BUSY;
            }
            copy_over(stage, i);
            if (OPAL_SUCCESS != rc) {
                (void) wait_all(stage);
                return mca_coll_umrddt_fail(rc, 0);
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
        mca_coll_umrddt_pieces_clear(&stage->halves[h].pieces);
        if (PARTS_CACHED < stage->halves[h].room) {
            free(stage->halves[h].array);
            stage->halves[h].array = NULL;
            stage->halves[h].room = 0;
        }
    }
    opal_free_list_return(&pool, &stage->super);
}

int mca_coll_umrddt_stage_end(mca_coll_umrddt_stage_t *stage, int rc)
{
    if (OMPI_SUCCESS == rc) {
        rc = copy_all(stage, MCA_COLL_UMRDDT_OUT);
    }
    mca_coll_umrddt_stage_free(stage);
    return rc;
}

void mca_coll_umrddt_stages_open(void)
{
    opal_umrddt_gpu_users_add();
    OBJ_CONSTRUCT(&pool, opal_free_list_t);
    (void) opal_free_list_init(&pool, sizeof(mca_coll_umrddt_stage_t), opal_cache_line_size,
                               OBJ_CLASS(mca_coll_umrddt_stage_t), 0, opal_cache_line_size, 0, -1,
                               8, NULL, 0, NULL, NULL, NULL);
}

void mca_coll_umrddt_stages_close(void)
{
    OBJ_DESTRUCT(&pool);
    opal_umrddt_gpu_users_remove();
}
