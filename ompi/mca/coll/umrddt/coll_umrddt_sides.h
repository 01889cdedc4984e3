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
 * The buffers of a collective, as described by the call.
 */

#ifndef MCA_COLL_UMRDDT_SIDES_H
#define MCA_COLL_UMRDDT_SIDES_H

#include "coll_umrddt.h"

BEGIN_C_DECLS

/** Direction of the copies between the device and the stage. */
enum {
    MCA_COLL_UMRDDT_IN = 0x1, /**< copied before the saved function, which reads it */
    MCA_COLL_UMRDDT_OUT = 0x2 /**< copied afterwards; the saved function has written every byte */
};

/**
 * One buffer of a collective, as described by the call. It has @a parts parts. Part i is count (or
 * counts[i]) elements of type (or types[i]). It begins behind part i - 1, or at displs[i] extents
 * of type, or (with types) displs[i] or far[i] bytes from the address.
 */
typedef struct mca_coll_umrddt_side_t {
    const void *user; /**< argument of the call, passed on if the CPU can access it */
    int parts;        /**< 0: not accessed on this process, or MPI_IN_PLACE */
    size_t count;
    umrddt_counts_t counts;
    umrddt_displs_t displs;
    umrddt_far_t far;
    ompi_datatype_t *type;
    ompi_datatype_t *const *types;
    unsigned
        flow;   /**< MCA_COLL_UMRDDT_IN and _OUT; 0: needs system memory, with undefined content */
    bool apart; /**< each part is a piece of its own */

    int extra;         /**< a part that is also copied in extra_flow, or -1 */
    size_t extra_only; /**< only its first elements; 0: all */
    unsigned extra_flow;
} mca_coll_umrddt_side_t;

/** A blocking reduction. */
typedef struct mca_coll_umrddt_reduction_t {
    mca_coll_umrddt_kind_t kind;
    const void *sbuf;
    void *rbuf;
    size_t count;            /**< elements; reduce_scatter_block: of each process */
    umrddt_counts_t rcounts; /**< reduce_scatter: elements of each process */
    ompi_datatype_t *type;
    ompi_op_t *op; /**< NULL: the call is no reduction */
    int root;      /**< reduce */
    struct mca_coll_umrddt_reduce_work_t
        *work; /**< until the call ends; see coll_umrddt_reduce.h */
} mca_coll_umrddt_reduction_t;

/** Both buffers of a collective. */
typedef struct mca_coll_umrddt_sides_t {
    mca_coll_umrddt_side_t send;
    mca_coll_umrddt_side_t recv;
    bool handled; /**< do not pass GPU memory of this call through: see MCA_COLL_UMRDDT_DEFINE */
    bool gpu;     /**< out: the query found GPU memory, which may be passed through */
    mca_coll_umrddt_reduction_t reduction; /**< set by reductions; else only its op, in blocking
                                              forms */
} mca_coll_umrddt_sides_t;

static inline void mca_coll_umrddt_side_none(mca_coll_umrddt_side_t *side, const void *user)
{
    side->user = user;
    side->parts = 0;
}

/** Contiguous sequence of parts of count elements each. */
static inline void mca_coll_umrddt_side_block(mca_coll_umrddt_side_t *side, const void *user,
                                              int parts, size_t count, ompi_datatype_t *type,
                                              unsigned flow)
{
    *side = (mca_coll_umrddt_side_t){
        .user = user, .parts = parts, .count = count, .type = type, .flow = flow, .extra = -1};
}

/** Parts of counts[i] elements; no displs: one behind the other. */
static inline void mca_coll_umrddt_side_vector(mca_coll_umrddt_side_t *side, const void *user,
                                               int parts, umrddt_counts_t counts,
                                               umrddt_displs_t displs, ompi_datatype_t *type,
                                               unsigned flow)
{
    *side = (mca_coll_umrddt_side_t){.user = user,
                                     .parts = parts,
                                     .counts = counts,
                                     .displs = displs,
                                     .type = type,
                                     .flow = flow,
                                     .extra = -1};
}

/** Parts with individual datatypes and displacements in bytes, in either displs or far. */
static inline void mca_coll_umrddt_side_types(mca_coll_umrddt_side_t *side, const void *user,
                                              int parts, umrddt_counts_t counts,
                                              umrddt_displs_t displs, umrddt_far_t far,
                                              ompi_datatype_t *const *types, unsigned flow)
{
    *side = (mca_coll_umrddt_side_t){.user = user,
                                     .parts = parts,
                                     .counts = counts,
                                     .displs = displs,
                                     .far = far,
                                     .types = types,
                                     .flow = flow,
                                     .extra = -1};
}

/** Receive buffer that also holds this process's data: copy part @p part in, whatever flow is. */
static inline void mca_coll_umrddt_side_own(mca_coll_umrddt_side_t *side, int part)
{
    side->extra = part;
    side->extra_flow = MCA_COLL_UMRDDT_IN;
}

END_C_DECLS

#endif /* MCA_COLL_UMRDDT_SIDES_H */
