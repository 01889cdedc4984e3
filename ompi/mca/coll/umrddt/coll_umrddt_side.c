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
 * The buffers of a call: their memory kind and their pieces. See coll_umrddt.h first.
 */

#include "ompi_config.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "coll_umrddt_layout.h"
#include "coll_umrddt_side.h"

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
    return UMRDDT_NO_ARRAY != side->counts ? UMRDDT_COUNTS_GET(side->counts, i) : side->count;
}

static int64_t extent_of(const ompi_datatype_t *type)
{
    return (int64_t) (type->super.ub - type->super.lb);
}

/** Offset of part @p i from the address; earlier parts have @p before elements in total. */
static int64_t offset_of(const mca_coll_umrddt_side_t *side, int i, size_t before)
{
    if (UMRDDT_NO_ARRAY != side->far) {
        return UMRDDT_FAR_GET(side->far, i);
    }
    if (NULL != side->types) {
        return UMRDDT_DISPLS_GET(side->displs, i);
    }
    return extent_of(side->type)
           * (UMRDDT_NO_ARRAY != side->displs ? UMRDDT_DISPLS_GET(side->displs, i)
                                              : (int64_t) before);
}

void mca_coll_umrddt_side_part(const mca_coll_umrddt_side_t *side, int i,
                               mca_coll_umrddt_part_t *part)
{
    part->count = count_of(side, i);
    part->type = type_of(side, i);
    part->bytes = part->count * part->type->super.size;
    part->address = (char *) (uintptr_t) side->user + offset_of(side, i, side->count * (size_t) i);
}

bool mca_coll_umrddt_side_is_empty(const mca_coll_umrddt_side_t *side, int i)
{
    return 0 == count_of(side, i) || 0 == type_of(side, i)->super.size;
}

/* ---------------------------------------------------------------------------------------------
 * Pieces
 * ------------------------------------------------------------------------------------------- */

/* Arrays of more pieces than this are freed. */
#define PIECES_CACHED 4096

/** Append a piece; the list has space for it. */
static int add_piece(mca_coll_umrddt_pieces_t *pieces, ompi_datatype_t *type, size_t count,
                     int64_t offset, unsigned flow)
{
    mca_coll_umrddt_piece_t *piece = &pieces->list[pieces->n];
    int rc = mca_coll_umrddt_layout(type, count, &piece->layout);

    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    piece->offset = offset;
    piece->flow = flow;
    ++pieces->n;
    return OMPI_SUCCESS;
}

/**
 * Add part i and the following parts that continue it as one piece. @return the first part not
 * included
 */
static int add_parts(const mca_coll_umrddt_side_t *side, int i, size_t *before,
                     mca_coll_umrddt_pieces_t *pieces, int *rc)
{
    ompi_datatype_t *type = type_of(side, i);
    const int64_t offset = offset_of(side, i, *before);
    size_t count = 0;
    int next = i;

    do {
        count += count_of(side, next);
        *before += count_of(side, next);
        ++next;
    } while (!side->apart && next < side->parts && type == type_of(side, next)
             && offset + extent_of(type) * (int64_t) count == offset_of(side, next, *before));
    if (0 < count && 0 < type->super.size) {
        *rc = add_piece(pieces, type, count, offset, side->flow);
    }
    return next;
}

/** Allocate @p n pieces in an empty list. */
static int make_room(mca_coll_umrddt_pieces_t *pieces, size_t n)
{
    if (OPAL_LIKELY(n <= pieces->room)) {
        return OMPI_SUCCESS;
    }
    free(pieces->list);
    pieces->list = malloc(n * sizeof(pieces->list[0]));
    pieces->room = NULL != pieces->list ? n : 0;
    return NULL != pieces->list ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;
}

int mca_coll_umrddt_side_pieces(const mca_coll_umrddt_side_t *side,
                                mca_coll_umrddt_pieces_t *pieces)
{
    size_t before = 0;
    int rc;

    if (0 == side->parts) {
        return OMPI_SUCCESS;
    }
    rc = make_room(pieces, (size_t) side->parts + 1);
    for (int i = 0; OMPI_SUCCESS == rc && i < side->parts;) {
        i = add_parts(side, i, &before, pieces, &rc);
    }
    if (OMPI_SUCCESS == rc && 0 <= side->extra
        && !mca_coll_umrddt_side_is_empty(side, side->extra)) {
        size_t count = count_of(side, side->extra);

        if (0 < side->extra_only && side->extra_only < count) {
            count = side->extra_only;
        }
        before = count_of(side, side->extra) * (size_t) side->extra;
        rc = add_piece(pieces, type_of(side, side->extra), count,
                       offset_of(side, side->extra, before), side->extra_flow);
    }
    if (OMPI_SUCCESS != rc) {
        mca_coll_umrddt_pieces_clear(pieces);
    }
    return rc;
}

void mca_coll_umrddt_pieces_clear(mca_coll_umrddt_pieces_t *pieces)
{
    for (size_t i = 0; i < pieces->n; ++i) {
        OBJ_RELEASE(pieces->list[i].layout);
    }
    pieces->n = 0;
    if (PIECES_CACHED < pieces->room) {
        mca_coll_umrddt_pieces_free(pieces);
    }
}

void mca_coll_umrddt_pieces_free(mca_coll_umrddt_pieces_t *pieces)
{
    free(pieces->list);
    *pieces = (mca_coll_umrddt_pieces_t){.list = NULL};
}

/* ---------------------------------------------------------------------------------------------
 * Memory kind
 * ------------------------------------------------------------------------------------------- */

/** System memory that spans this many bytes may have GPU memory in between. */
#define FAR_APART ((uint64_t) 1 << 30)

/** Returns true if memory of this kind needs a stage. */
static bool is_gpu(const opal_umrddt_gpu_memory_t *memory)
{
    /* an Open MPI with CUDA copies managed memory like device memory, in the current context */
    return OPAL_UMRDDT_GPU_DEVICE == memory->kind
           || (OPAL_UMRDDT_GPU_MANAGED == memory->kind
               && MCA_COLL_UMRDDT_BASE_NONE != mca_coll_umrddt_base);
}

/** Returns true if [low, high), which begins in this memory, is within its allocation. */
static bool stays(const opal_umrddt_gpu_memory_t *memory, uint64_t low, uint64_t high)
{
    /* if the driver does not report the size, assume that it is sufficient */
    return 0 == memory->size
           || (memory->base <= low && low <= high && high - memory->base <= memory->size);
}

typedef bool (*run_is_t)(const opal_umrddt_gpu_memory_t *memory, int device);

static bool run_is_gpu(const opal_umrddt_gpu_memory_t *memory, int device)
{
    (void) device;
    return is_gpu(memory);
}

static bool run_is_elsewhere(const opal_umrddt_gpu_memory_t *memory, int device)
{
    return OPAL_UMRDDT_GPU_DEVICE != memory->kind || device != memory->device;
}

/** Returns true if one of a piece's blocks satisfies @p is. */
static bool has_run(uint64_t user, const mca_coll_umrddt_piece_t *piece, run_is_t is, int device)
{
    const opal_iov_cache_layout_t *layout = piece->layout;
    opal_umrddt_gpu_memory_t memory;
    opal_iov_cache_iov_t iovs[32];
    uint64_t position = 0;

    while (position < layout->size) {
        const size_t n = opal_iov_cache_form_iovs(layout->form, position, layout->size, iovs,
                                                  sizeof(iovs) / sizeof(iovs[0]), &position);

        for (size_t i = 0; i < n; ++i) {
            mca_coll_umrddt_memory(user + (uint64_t) (piece->offset + iovs[i].offset), &memory);
            if (is(&memory, device)) {
                return true;
            }
        }
    }
    return false;
}

mca_coll_umrddt_look_t mca_coll_umrddt_pieces_look(const mca_coll_umrddt_side_t *side,
                                                   const mca_coll_umrddt_pieces_t *pieces)
{
    for (size_t i = 0; i < pieces->n; ++i) {
        if (has_run((uint64_t) (uintptr_t) side->user, &pieces->list[i], run_is_gpu, 0)) {
            return MCA_COLL_UMRDDT_GPU;
        }
    }
    return MCA_COLL_UMRDDT_CPU;
}

bool mca_coll_umrddt_piece_is_whole(uint64_t user, const mca_coll_umrddt_piece_t *piece,
                                    opal_umrddt_gpu_memory_t *memory)
{
    const opal_iov_cache_layout_t *layout = piece->layout;
    const uint64_t origin = user + (uint64_t) piece->offset;

    mca_coll_umrddt_memory(origin + (uint64_t) layout->lb, memory);
    return OPAL_UMRDDT_GPU_DEVICE == memory->kind
           && (opal_iov_cache_layout_is_contiguous(layout)
               || stays(memory, origin + (uint64_t) layout->lb, origin + (uint64_t) layout->ub)
               || !has_run(user, piece, run_is_elsewhere, memory->device));
}

static bool is_contiguous(const ompi_datatype_t *type, size_t count)
{
    return opal_datatype_is_contiguous_memory_layout(&type->super, 1 < count ? 2 : 1);
}

bool mca_coll_umrddt_side_is_contiguous(const mca_coll_umrddt_side_t *side)
{
    if (NULL == side->types) {
        return is_contiguous(side->type, UMRDDT_NO_ARRAY == side->counts ? side->count : 2);
    }
    for (int i = 0; i < side->parts; ++i) {
        if (!mca_coll_umrddt_side_is_empty(side, i)
            && !is_contiguous(side->types[i], count_of(side, i))) {
            return false;
        }
    }
    return true;
}

bool mca_coll_umrddt_side_packs(const mca_coll_umrddt_side_t *side, size_t alignment)
{
    uint64_t bytes = 0;

    if (NULL == side->types || 0 <= side->extra || mca_coll_umrddt_side_is_contiguous(side)) {
        return false;
    }
    for (int i = 0; i < side->parts && bytes <= INT_MAX; ++i) {
        const size_t count = count_of(side, i);
        const size_t size = type_of(side, i)->super.size;

        if (INT_MAX / (0 < size ? size : 1) < count) {
            return false;
        }
        bytes += count * size + alignment;
    }
    return bytes <= INT_MAX;
}

size_t mca_coll_umrddt_side_pack(const mca_coll_umrddt_side_t *side,
                                 mca_coll_umrddt_pieces_t *pieces, size_t alignment, void *array,
                                 mca_coll_umrddt_vectors_t *vectors)
{
    const size_t n = (size_t) side->parts;
    ompi_datatype_t **types = array;
    MPI_Aint *far = (MPI_Aint *) (types + n);
    int *counts = (int *) (far + n), *displs = counts + n;
    size_t k = 0, end = 0;

    for (size_t i = 0; i < n; ++i) {
        /* An empty part stays as given: coll/libnbc decides by its count, not by its bytes, whether
         * there is a message, and the other process may not pack. */
        types[i] = side->types[i];
        far[i] = 0;
        counts[i] = (int) count_of(side, (int) i);
        if (!mca_coll_umrddt_side_is_empty(side, (int) i)) {
            mca_coll_umrddt_piece_t *piece = &pieces->list[k++];

            piece->packed = (end + alignment - 1) / alignment * alignment;
            end = piece->packed + piece->layout->size;
            types[i] = &ompi_mpi_byte.dt;
            far[i] = (MPI_Aint) piece->packed;
            counts[i] = (int) piece->layout->size;
        }
        displs[i] = (int) far[i];
    }
    *vectors = (mca_coll_umrddt_vectors_t){.counts = UMRDDT_COUNTS_OF(counts),
                                           .displs = UMRDDT_DISPLS_OF(displs),
                                           .far = UMRDDT_FAR_OF(far),
                                           .types = types};
    return end;
}

/** Returns true if part @p i, which is contiguous, is within this memory. See offset_of. */
static bool part_stays(const mca_coll_umrddt_side_t *side, int i, size_t before,
                       const opal_umrddt_gpu_memory_t *memory)
{
    const opal_datatype_t *type = &type_of(side, i)->super;
    uint64_t first;

    if (mca_coll_umrddt_side_is_empty(side, i)) {
        return true;
    }
    first = (uint64_t) (uintptr_t) side->user + (uint64_t) offset_of(side, i, before)
            + (uint64_t) type->true_lb - memory->base;
    return first < memory->size && count_of(side, i) <= (memory->size - first) / type->size;
}

/** Returns true if all parts of a side, each of which is contiguous, are within this memory. */
static bool parts_stay(const mca_coll_umrddt_side_t *side, const opal_umrddt_gpu_memory_t *memory)
{
    size_t before = 0;

    if (UMRDDT_NO_ARRAY == side->counts && UMRDDT_NO_ARRAY == side->displs
        && UMRDDT_NO_ARRAY == side->far) {
        return part_stays(side, 0, 0, memory)
               && part_stays(side, side->parts - 1, side->count * (size_t) (side->parts - 1),
                             memory);
    }
    for (int i = 0; i < side->parts; ++i) {
        if (!part_stays(side, i, before, memory)) {
            return false;
        }
        before += count_of(side, i);
    }
    return true;
}

/**
 * Returns true if (count, type) at @p origin, whose first byte is in @p memory, may also be in
 * other memory.
 */
static bool may_be_elsewhere(const opal_umrddt_gpu_memory_t *memory, uint64_t origin,
                             const ompi_datatype_t *type, size_t count)
{
    const int64_t rest = extent_of(type) * (int64_t) (count - 1);
    const uint64_t low = origin + (uint64_t) type->super.true_lb + (uint64_t) (0 > rest ? rest : 0);
    const uint64_t high =
        origin + (uint64_t) type->super.true_ub + (uint64_t) (0 < rest ? rest : 0);
    opal_umrddt_gpu_memory_t last;

    if (OPAL_UMRDDT_GPU_HOST != memory->kind) {
        return !stays(memory, low, high);
    }
    if (FAR_APART <= high - low) {
        return true;
    }
    mca_coll_umrddt_memory(high - 1, &last);
    return is_gpu(&last);
}

mca_coll_umrddt_look_t mca_coll_umrddt_side_look(const mca_coll_umrddt_side_t *side)
{
    opal_umrddt_gpu_memory_t memory;
    uint64_t origin;
    int i = 0;

    while (i < side->parts && mca_coll_umrddt_side_is_empty(side, i)) {
        /* parts with a common count are either all empty or none is */
        i = UMRDDT_NO_ARRAY == side->counts ? side->parts : i + 1;
    }
    if (i >= side->parts) {
        return MCA_COLL_UMRDDT_CPU;
    }
    if (MPI_BOTTOM == side->user) {
        return MCA_COLL_UMRDDT_SEVERAL;
    }
    /* the parts before part i have no elements */
    origin = (uint64_t) (uintptr_t) side->user + (uint64_t) offset_of(side, i, 0);
    mca_coll_umrddt_memory(origin + (uint64_t) type_of(side, i)->super.true_lb, &memory);
    if (!is_contiguous(type_of(side, i), count_of(side, i))
        && may_be_elsewhere(&memory, origin, type_of(side, i), count_of(side, i))) {
        return MCA_COLL_UMRDDT_SEVERAL;
    }
    if (OPAL_LIKELY(!is_gpu(&memory))) {
        return MCA_COLL_UMRDDT_CPU;
    }
    /* any thread may progress the collective, also one without a context */
    return MCA_COLL_UMRDDT_BASE_SAFE == mca_coll_umrddt_base && !opal_using_threads()
                   && mca_coll_umrddt_side_is_contiguous(side) && parts_stay(side, &memory)
                   && opal_umrddt_gpu_base_takes(&memory)
               ? MCA_COLL_UMRDDT_TAKEN
               : MCA_COLL_UMRDDT_GPU;
}
