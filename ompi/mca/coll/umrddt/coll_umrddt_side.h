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
 * The buffers of a call: their memory kind and their pieces. See coll_umrddt_sides.h first.
 */

#ifndef MCA_COLL_UMRDDT_SIDE_H
#define MCA_COLL_UMRDDT_SIDE_H

#include "coll_umrddt_sides.h"

#include "opal/datatype/iov_cache/iov_cache.h"
#include "opal/mca/common/umrddt_gpu/driver/umrddt_gpu_driver.h"

BEGIN_C_DECLS

/** Parts of a side that form one unit: a layout and its position. */
typedef struct mca_coll_umrddt_piece_t {
    opal_iov_cache_layout_t *layout; /**< owned reference */
    int64_t offset;                  /**< of the layout's origin, from side->user */
    uint64_t packed;                 /**< offset in a packed stage; not set by side_pieces */
    unsigned flow;
} mca_coll_umrddt_piece_t;

/** A list of pieces. All 0: an empty list. Its array is reused by the next call. */
typedef struct mca_coll_umrddt_pieces_t {
    mca_coll_umrddt_piece_t *list;
    size_t n;
    size_t room; /**< allocated entries of list */
} mca_coll_umrddt_pieces_t;

/** Memory kind of a side or of a piece. */
typedef enum mca_coll_umrddt_look_t {
    MCA_COLL_UMRDDT_CPU,    /**< the CPU can access all of it, or it is empty */
    MCA_COLL_UMRDDT_TAKEN,  /**< GPU memory that the other components may access directly */
    MCA_COLL_UMRDDT_GPU,    /**< GPU memory that they must not access, or access slowly */
    MCA_COLL_UMRDDT_SEVERAL /**< maybe several kinds: query each piece */
} mca_coll_umrddt_look_t;

/**
 * Query the memory kind of a side, by its first byte. For a non-contiguous type it also checks that
 * the side stays within that allocation, with a second query for system memory. Contiguous types
 * never yield MCA_COLL_UMRDDT_SEVERAL; MPI_BOTTOM always does.
 */
mca_coll_umrddt_look_t mca_coll_umrddt_side_look(const mca_coll_umrddt_side_t *side);

/** Query the memory kind of each piece of a side: MCA_COLL_UMRDDT_CPU or _GPU. */
mca_coll_umrddt_look_t mca_coll_umrddt_pieces_look(const mca_coll_umrddt_side_t *side,
                                                   const mca_coll_umrddt_pieces_t *pieces);

/** One part of a side. */
typedef struct mca_coll_umrddt_part_t {
    void *address;
    size_t count;
    ompi_datatype_t *type;
    size_t bytes; /**< of data */
} mca_coll_umrddt_part_t;

/** Get part @p i of a side, which has common counts or displacements. */
void mca_coll_umrddt_side_part(const mca_coll_umrddt_side_t *side, int i,
                               mca_coll_umrddt_part_t *part);

/** Returns true if each part of a side is contiguous; gaps between parts are allowed. */
bool mca_coll_umrddt_side_is_contiguous(const mca_coll_umrddt_side_t *side);

/** Returns true if part @p i of a side has no data. */
bool mca_coll_umrddt_side_is_empty(const mca_coll_umrddt_side_t *side, int i);

/**
 * Returns true if the parts of a side are to be packed: they have individual datatypes, one of them
 * is not contiguous, and the offsets of packed parts, each aligned to @p alignment, fit an int.
 */
bool mca_coll_umrddt_side_packs(const mca_coll_umrddt_side_t *side, size_t alignment);

/**
 * The vectors of an alltoallw in place of the user's: those of a packed side (0: send, 1: receive),
 * else the given ones. They live as long as the stage.
 */
typedef struct mca_coll_umrddt_vectors_t {
    umrddt_counts_t counts;        /**< bytes of each part */
    umrddt_displs_t displs;        /**< bytes; for alltoallw */
    umrddt_far_t far;              /**< the same, for neighbor_alltoallw */
    ompi_datatype_t *const *types; /**< MPI_BYTE, or of an empty part as given */
} mca_coll_umrddt_vectors_t;

/** Bytes of a part's entries in all vectors. */
#define MCA_COLL_UMRDDT_VECTORS_PART \
    (sizeof(ompi_datatype_t *) + sizeof(MPI_Aint) + 2 * sizeof(int))

/**
 * Describe the packed parts of a side.
 *
 * @param[in,out] pieces   one for each part with data; their packed offsets are set
 * @param[in]     array    MCA_COLL_UMRDDT_VECTORS_PART bytes for each part, for the vectors
 *
 * @return bytes of all packed parts
 */
size_t mca_coll_umrddt_side_pack(const mca_coll_umrddt_side_t *side,
                                 mca_coll_umrddt_pieces_t *pieces, size_t alignment, void *array,
                                 mca_coll_umrddt_vectors_t *vectors);

/**
 * Returns true if one device operation can copy a piece: all of it is memory of one device.
 *
 * @param[in]  user    the address that the piece's offset counts from
 * @param[out] memory  of the first byte
 */
bool mca_coll_umrddt_piece_is_whole(uint64_t user, const mca_coll_umrddt_piece_t *piece,
                                    opal_umrddt_gpu_memory_t *memory);

/**
 * Get the non-empty pieces of a side. Walks a datatype that is not in the cache of layouts, and
 * allocates if @a pieces is too small.
 *
 * @param[in,out] pieces  empty on entry; release with mca_coll_umrddt_pieces_clear
 *
 * @retval OMPI_SUCCESS
 * @retval OMPI_ERR_OUT_OF_RESOURCE  no memory; pieces is empty
 * @retval OMPI_ERR_BAD_PARAM        more bytes than fit 63 bits; pieces is empty
 */
int mca_coll_umrddt_side_pieces(const mca_coll_umrddt_side_t *side,
                                mca_coll_umrddt_pieces_t *pieces);

/** Empty the list. Keeps its array unless that is large. */
void mca_coll_umrddt_pieces_clear(mca_coll_umrddt_pieces_t *pieces);
void mca_coll_umrddt_pieces_free(mca_coll_umrddt_pieces_t *pieces);

/** Query the memory kind at an address. */
void mca_coll_umrddt_memory(uint64_t address, opal_umrddt_gpu_memory_t *memory);

END_C_DECLS

#endif /* MCA_COLL_UMRDDT_SIDE_H */
