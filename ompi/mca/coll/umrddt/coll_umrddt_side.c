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
 * What a call's buffers are: whose memory, and the pieces in it.
 */

#include "ompi_config.h"

#include <stdlib.h>
#include <string.h>

#include "coll_umrddt.h"

bool mca_coll_umrddt_may_be_any(void)
{
    static bool in_use = false;
    const opal_umrddt_gpu_driver_t *driver;
    int devices;

    if (OPAL_LIKELY(__atomic_load_n(&in_use, __ATOMIC_RELAXED))) {
        return true;
    }
    if (OPAL_SUCCESS != opal_umrddt_gpu_driver_load(&driver)
        || CUDA_ERROR_NOT_INITIALIZED == driver->cuDeviceGetCount(&devices)) {
        return false;
    }
    __atomic_store_n(&in_use, true, __ATOMIC_RELAXED);
    return true;
}

void mca_coll_umrddt_memory(uint64_t address, opal_umrddt_gpu_memory_t *memory)
{
    const void *at = (const void *) (uintptr_t) address;

    MCA_COLL_UMRDDT_COUNT(memory_queries);
    if (OPAL_UNLIKELY(OPAL_SUCCESS != opal_umrddt_gpu_classify(at, memory))) {
        opal_umrddt_gpu_presume(at, memory);
    }
}

/* ---------------------------------------------------------------------------------------------
 * Parts
 * ------------------------------------------------------------------------------------------- */

static ompi_datatype_t *type_of(const mca_coll_umrddt_side_t *side, int i)
{
    return NULL != side->types ? side->types[i] : side->type;
}

static size_t count_of(const mca_coll_umrddt_side_t *side, int i)
{
    return NULL != side->counts ? (size_t) side->counts[i] : side->count;
}

static int64_t extent_of(const ompi_datatype_t *type)
{
    return (int64_t) (type->super.ub - type->super.lb);
}

/** Where part @p i begins, from the address; those before it have @p before elements. */
static int64_t offset_of(const mca_coll_umrddt_side_t *side, int i, size_t before)
{
    if (NULL != side->far) {
        return (int64_t) side->far[i];
    }
    if (NULL != side->types) {
        return side->displs[i];
    }
    return extent_of(side->type)
           * (NULL != side->displs ? (int64_t) side->displs[i] : (int64_t) before);
}

static bool is_empty(const mca_coll_umrddt_side_t *side, int i)
{
    return 0 == count_of(side, i) || 0 == type_of(side, i)->super.size;
}

/* ---------------------------------------------------------------------------------------------
 * Layouts
 * ------------------------------------------------------------------------------------------- */

/*
 * What the engine keeps of a layout on a device it keeps by the layout's id. So a few layouts are
 * remembered: one that is made again of the same datatype, or of another that looks the same, is
 * taken from here. That needs no word from Open MPI when a datatype dies.
 */
#define LAYOUTS      32
#define LAYOUT_BYTES (1u << 20) /* the memory of one, at most */

static opal_iov_cache_layout_t *layouts[LAYOUTS];
static unsigned next_layout;
static opal_mutex_t layouts_lock = OPAL_MUTEX_STATIC_INIT;

static bool looks_the_same(const opal_iov_cache_layout_t *a, const opal_iov_cache_layout_t *b)
{
    return a->size == b->size && a->iov_count == b->iov_count && a->lb == b->lb && a->ub == b->ub
           && opal_iov_cache_form_equal(a->form, b->form);
}

static int layout_of(const ompi_datatype_t *type, size_t count, opal_iov_cache_layout_t **layout)
{
    opal_iov_cache_layout_t *made;
    bool found = false;
    int rc = opal_iov_cache_layout_create(&type->super, count, &made);

    if (OPAL_SUCCESS != rc || opal_iov_cache_layout_is_contiguous(made)
        || LAYOUT_BYTES < opal_iov_cache_form_bytes(made->form)) {
        *layout = made;
        return rc;
    }
    OPAL_THREAD_LOCK(&layouts_lock);
    for (int i = 0; i < LAYOUTS; ++i) {
        if (NULL != layouts[i] && looks_the_same(layouts[i], made)) {
            OBJ_RELEASE(made);
            made = layouts[i];
            found = true;
            break;
        }
    }
    if (!found) {
        if (NULL != layouts[next_layout]) {
            OBJ_RELEASE(layouts[next_layout]);
        }
        layouts[next_layout] = made;
        next_layout = (next_layout + 1) % LAYOUTS;
    }
    OBJ_RETAIN(made);
    OPAL_THREAD_UNLOCK(&layouts_lock);
    *layout = made;
    return OPAL_SUCCESS;
}

void mca_coll_umrddt_layouts_close(void)
{
    for (int i = 0; i < LAYOUTS; ++i) {
        if (NULL != layouts[i]) {
            OBJ_RELEASE(layouts[i]);
            layouts[i] = NULL;
        }
    }
}

/* ---------------------------------------------------------------------------------------------
 * Pieces
 * ------------------------------------------------------------------------------------------- */

static int add_piece(mca_coll_umrddt_piece_t *pieces, size_t *n, const ompi_datatype_t *type,
                     size_t count, int64_t offset, unsigned flow)
{
    int rc = layout_of(type, count, &pieces[*n].layout);

    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    pieces[*n].offset = offset;
    pieces[*n].flow = flow;
    ++*n;
    return OMPI_SUCCESS;
}

/** Part i and those behind it that continue it, as one. @return the first that is not in it */
static int add_parts(const mca_coll_umrddt_side_t *side, int i, size_t *before,
                     mca_coll_umrddt_piece_t *pieces, size_t *n, int *rc)
{
    const ompi_datatype_t *type = type_of(side, i);
    const int64_t offset = offset_of(side, i, *before);
    size_t count = 0;
    int next = i;

    do {
        count += count_of(side, next);
        *before += count_of(side, next);
        ++next;
    } while (next < side->parts && type == type_of(side, next)
             && offset + extent_of(type) * (int64_t) count == offset_of(side, next, *before));
    if (0 < count && 0 < type->super.size) {
        *rc = add_piece(pieces, n, type, count, offset, side->flow);
    }
    return next;
}

int mca_coll_umrddt_side_pieces(const mca_coll_umrddt_side_t *side,
                                mca_coll_umrddt_piece_t **result, size_t *n)
{
    mca_coll_umrddt_piece_t *pieces;
    size_t before = 0;
    int rc = OMPI_SUCCESS;

    *result = NULL;
    *n = 0;
    if (0 == side->parts) {
        return OMPI_SUCCESS;
    }
    pieces = calloc((size_t) side->parts + 1, sizeof(*pieces));
    if (NULL == pieces) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    for (int i = 0; OMPI_SUCCESS == rc && i < side->parts;) {
        i = add_parts(side, i, &before, pieces, n, &rc);
    }
    if (OMPI_SUCCESS == rc && 0 <= side->extra && !is_empty(side, side->extra)) {
        size_t count = count_of(side, side->extra);

        if (0 < side->extra_only && side->extra_only < count) {
            count = side->extra_only;
        }
        before = count_of(side, side->extra) * (size_t) side->extra;
        rc = add_piece(pieces, n, type_of(side, side->extra), count,
                       offset_of(side, side->extra, before), side->extra_flow);
    }
    if (OMPI_SUCCESS != rc || 0 == *n) {
        mca_coll_umrddt_pieces_free(pieces, *n);
        *n = 0;
        return rc;
    }
    *result = pieces;
    return OMPI_SUCCESS;
}

void mca_coll_umrddt_pieces_free(mca_coll_umrddt_piece_t *pieces, size_t n)
{
    for (size_t i = 0; i < n; ++i) {
        OBJ_RELEASE(pieces[i].layout);
    }
    free(pieces);
}

/* ---------------------------------------------------------------------------------------------
 * Whose memory
 * ------------------------------------------------------------------------------------------- */

/** Some of a layout's memory is a device's. */
static void look_everywhere(const mca_coll_umrddt_piece_t *piece, bool *gpu)
{
    const opal_iov_cache_layout_t *layout = piece->layout;
    opal_umrddt_gpu_memory_t memory;
    opal_iov_cache_iov_t iovs[32];
    uint64_t position = 0;

    while (!*gpu && position < layout->size) {
        const size_t n = opal_iov_cache_form_iovs(layout->form, position, layout->size, iovs,
                                                  sizeof(iovs) / sizeof(iovs[0]), &position);

        for (size_t i = 0; i < n && !*gpu; ++i) {
            mca_coll_umrddt_memory((uint64_t) (piece->offset + iovs[i].offset), &memory);
            *gpu = OPAL_UMRDDT_GPU_DEVICE == memory.kind;
        }
    }
}

static int look_from_bottom(const mca_coll_umrddt_side_t *side, bool *gpu)
{
    mca_coll_umrddt_piece_t *pieces;
    size_t n;
    int rc = mca_coll_umrddt_side_pieces(side, &pieces, &n);

    for (size_t i = 0; OMPI_SUCCESS == rc && i < n && !*gpu; ++i) {
        look_everywhere(&pieces[i], gpu);
    }
    mca_coll_umrddt_pieces_free(pieces, n);
    return rc;
}

int mca_coll_umrddt_side_look(const mca_coll_umrddt_side_t *side, bool *gpu)
{
    opal_umrddt_gpu_memory_t memory;
    int i = 0;

    *gpu = false;
    while (i < side->parts && is_empty(side, i)) {
        /* parts of one count are all empty, or none is */
        i = NULL == side->counts ? side->parts : i + 1;
    }
    if (i >= side->parts) {
        return OMPI_SUCCESS;
    }
    if (MPI_BOTTOM == side->user) {
        return look_from_bottom(side, gpu);
    }
    /* those before part i have no elements */
    mca_coll_umrddt_memory(
        (uint64_t) (uintptr_t) side->user
            + (uint64_t) (offset_of(side, i, 0) + type_of(side, i)->super.true_lb),
        &memory);
    *gpu = OPAL_UMRDDT_GPU_DEVICE == memory.kind;
    return OMPI_SUCCESS;
}
