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
 * Collectives on GPU buffers that this Open MPI cannot handle itself, or handles slowly. README.md
 * lists the files.
 */

/*
 * A module saves the functions of its communicator and replaces them. A call whose buffers the CPU
 * can access is passed to the saved function at once. For a buffer in device memory a *stage* is
 * created: system memory with the same offsets as the buffer, so that counts, displacements and
 * datatypes stay unchanged. The device fills it before the saved function runs, and reads it back
 * afterwards. The messages between processes therefore do not depend on the memory kind of the
 * buffers, and each process decides for itself.
 */

#ifndef MCA_COLL_UMRDDT_H
#define MCA_COLL_UMRDDT_H

#include "ompi_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpi.h"

#include "umrddt_compat.h"

/* Debian's and Ubuntu's packages lack a header that Open MPI's op.h includes. Only the name of the
 * type is needed here. */
#if !defined(OMPI_OP_H)
#define OMPI_OP_H
typedef struct ompi_op_t ompi_op_t;
#endif

#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/coll/base/coll_base_util.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/request/request.h"

#include "opal/datatype/iov_cache/iov_cache.h"
#include "opal/mca/common/umrddt_gpu/driver/umrddt_gpu_driver.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_engine.h"

#include "coll_umrddt_params.h"

BEGIN_C_DECLS

/* ---------------------------------------------------------------------------------------------
 * Parameters and counters
 * ------------------------------------------------------------------------------------------- */

/** All counters: name, help text. They only grow, and are registered as performance variables. */
#define MCA_COLL_UMRDDT_COUNTERS(X)                                                     \
    X(passed, "Collectives passed through: no buffer is in GPU memory")                 \
    X(passed_gpu, "Collectives on GPU memory passed through to an Open MPI with CUDA")  \
    X(staged, "Collectives done on copies in system memory")                            \
    X(staged_nonblocking, "Of these, nonblocking ones, and starts of persistent ones")  \
    X(direct, "Collectives by messages between their buffers, from GPU to GPU")         \
    X(reductions, "Reductions by kernels of GPUs: of a segment, or MPI_Reduce_local")   \
    X(agreements, "Agreements of all processes whether a collective can do that")       \
    X(modes_read, "Processes looked up in the modex for agreements")                    \
    X(bytes_in, "Bytes copied from GPUs for staged collectives")                        \
    X(bytes_out, "Bytes copied to GPUs for staged collectives")                         \
    X(memory_queries, "Addresses looked up to determine their kind of memory")          \
    X(layouts_read, "Datatypes read because their layout was not in the cache")         \
    X(stages_pinned, "Staging buffers in the component's pinned memory")                \
    X(stages_pageable, "Staging buffers in other memory")                               \
    X(sides_packed, "Send or receive buffers that GPUs packed into these, or unpacked") \
    X(failures, "Collectives that failed for lack of memory, or because of the CUDA "   \
                "driver")

#define MCA_COLL_UMRDDT_COUNTER_FIELD(name, help) uint64_t name;
typedef struct mca_coll_umrddt_counters_t {
    MCA_COLL_UMRDDT_COUNTERS(MCA_COLL_UMRDDT_COUNTER_FIELD)
} mca_coll_umrddt_counters_t;

/** GPU memory that the other components may access directly. Set before the first call. */
typedef enum mca_coll_umrddt_base_t {
    MCA_COLL_UMRDDT_BASE_NONE,    /**< this Open MPI has no CUDA support */
    MCA_COLL_UMRDDT_BASE_NOTHING, /**< CUDA support, but not in its PML; or disabled by the user */
    MCA_COLL_UMRDDT_BASE_SAFE     /**< contiguous memory that it handles correctly */
} mca_coll_umrddt_base_t;

extern mca_coll_umrddt_base_t mca_coll_umrddt_base;
extern mca_coll_umrddt_params_t mca_coll_umrddt_params;
extern mca_coll_umrddt_counters_t mca_coll_umrddt_counters;
UMRDDT_COMPONENT extern mca_coll_base_component_t mca_coll_umrddt_component;

#define MCA_COLL_UMRDDT_COUNT_ADD(name, n) \
    ((void) __atomic_add_fetch(&mca_coll_umrddt_counters.name, (n), __ATOMIC_RELAXED))
#define MCA_COLL_UMRDDT_COUNT(name) MCA_COLL_UMRDDT_COUNT_ADD(name, 1)

/* ---------------------------------------------------------------------------------------------
 * Modules (coll_umrddt_module.c)
 * ------------------------------------------------------------------------------------------- */

/** The collectives with buffer arguments. Each also has a nonblocking and a persistent form. */
#define MCA_COLL_UMRDDT_CALLS(X) \
    X(allgather)                 \
    X(allgatherv)                \
    X(allreduce)                 \
    X(alltoall)                  \
    X(alltoallv)                 \
    X(alltoallw)                 \
    X(bcast)                     \
    X(exscan)                    \
    X(gather)                    \
    X(gatherv)                   \
    X(reduce)                    \
    X(reduce_scatter)            \
    X(reduce_scatter_block)      \
    X(scan)                      \
    X(scatter)                   \
    X(scatterv)                  \
    X(neighbor_allgather)        \
    X(neighbor_allgatherv)       \
    X(neighbor_alltoall)         \
    X(neighbor_alltoallv)        \
    X(neighbor_alltoallw)

/** The kinds of blocking collectives. */
#define MCA_COLL_UMRDDT_KIND(name) MCA_COLL_UMRDDT_KIND_##name,
typedef enum mca_coll_umrddt_kind_t {
    MCA_COLL_UMRDDT_CALLS(MCA_COLL_UMRDDT_KIND) MCA_COLL_UMRDDT_KINDS
} mca_coll_umrddt_kind_t;

/** Schedule of agreements for one kind: coll_umrddt_agree.c. The same in all processes, but used.
 */
typedef struct mca_coll_umrddt_schedule_t {
    uint32_t left;   /**< calls up to the one with the next agreement */
    uint32_t period; /**< calls from the next agreement to the one after it */
    bool used;       /**< this process had a buffer in GPU memory since the last agreement */
} mca_coll_umrddt_schedule_t;

/** The module that replaces the functions of one communicator. */
typedef struct mca_coll_umrddt_module_t {
    mca_coll_base_module_t super;
    mca_coll_base_comm_coll_t saved; /**< the original functions; modules in use are retained */
    bool enabled;                    /**< saved is set */
    int queries; /**< 1: query the buffers; 0: the user asserts that they are in system memory; -1:
                 info key not read yet; atomic */
    enum {
        MCA_COLL_UMRDDT_UNKNOWN,
        MCA_COLL_UMRDDT_AGREES,
        MCA_COLL_UMRDDT_DISAGREES
    } agrees; /**< whether there are agreements on this communicator */
    mca_coll_umrddt_schedule_t schedules[MCA_COLL_UMRDDT_KINDS];
    int persistent; /**< number of persistent direct collectives so far, the same in all processes
                     */
    struct mca_coll_umrddt_direct_t *direct; /**< lists of messages, or NULL */
} mca_coll_umrddt_module_t;
OBJ_CLASS_DECLARATION(mca_coll_umrddt_module_t);

/** Create the module of a communicator that pml/umrddt serves; NULL: no memory. */
mca_coll_base_module_t *mca_coll_umrddt_module_new(void);

/** Read the info key mpi_communication_pattern, once. */
bool mca_coll_umrddt_module_read(mca_coll_umrddt_module_t *module, ompi_communicator_t *comm);

/** Returns false if all buffers on this communicator are known to be in system memory. */
static inline bool mca_coll_umrddt_requests(mca_coll_umrddt_module_t *module,
                                            ompi_communicator_t *comm)
{
    int queries = __atomic_load_n(&module->queries, __ATOMIC_RELAXED);

    return 0 <= queries ? 0 != queries : mca_coll_umrddt_module_read(module, comm);
}

/* ---------------------------------------------------------------------------------------------
 * Sides (coll_umrddt_side.c)
 * ------------------------------------------------------------------------------------------- */

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

/* ---------------------------------------------------------------------------------------------
 * Layouts (coll_umrddt_layout.c)
 * ------------------------------------------------------------------------------------------- */

/**
 * Get the layout of (type, count), from the cache if possible. For threads within a call on a
 * module.
 *
 * @param[out] layout  the caller releases it
 *
 * @retval OMPI_SUCCESS, OMPI_ERR_OUT_OF_RESOURCE, OMPI_ERR_BAD_PARAM
 */
int mca_coll_umrddt_layout(ompi_datatype_t *type, size_t count, opal_iov_cache_layout_t **layout);

/**
 * A module is created, or destroyed. The last one destroys the cache of layouts. Open MPI's
 * attributes, which report the end of datatypes, are finalized before components are closed.
 */
void mca_coll_umrddt_layouts_use(void);
void mca_coll_umrddt_layouts_unuse(void);

/** Update the counter layouts_read. */
void mca_coll_umrddt_layouts_count(void);

/* ---------------------------------------------------------------------------------------------
 * Stages (coll_umrddt_stage.c)
 * ------------------------------------------------------------------------------------------- */

/** System memory in place of buffers in device memory. */
typedef struct mca_coll_umrddt_stage_t mca_coll_umrddt_stage_t;

/**
 * Query the buffers of a call. Create a stage if one is in device memory that the other components
 * must not access. Copies nothing. In the steady state it allocates nothing if the pool of pinned
 * memory has space.
 *
 * @param[out] stage  NULL: pass the call through
 *
 * @retval OMPI_SUCCESS, MPI_ERR_NO_MEM, MPI_ERR_OTHER (driver error); an error was reported to the
 *     user
 */
int mca_coll_umrddt_stage_new(mca_coll_umrddt_sides_t *sides, mca_coll_umrddt_stage_t **stage);

/**
 * The two steps of mca_coll_umrddt_stage_new: query the buffers, and create a stage or pass the
 * call through. The first one gets a stage if it needs one for the query.
 */
int mca_coll_umrddt_stage_look(mca_coll_umrddt_sides_t *sides, mca_coll_umrddt_look_t seen[2],
                               mca_coll_umrddt_stage_t **stage);
int mca_coll_umrddt_stage_fill(const mca_coll_umrddt_sides_t *sides,
                               const mca_coll_umrddt_look_t seen[2],
                               mca_coll_umrddt_stage_t **stage);

/** Returns true if a call with such buffers is not passed through. */
static inline bool mca_coll_umrddt_needs_stage(const mca_coll_umrddt_sides_t *sides,
                                               const mca_coll_umrddt_look_t seen[2])
{
    return MCA_COLL_UMRDDT_GPU == seen[0] || MCA_COLL_UMRDDT_GPU == seen[1]
           || (sides->handled
               && (MCA_COLL_UMRDDT_CPU != seen[0] || MCA_COLL_UMRDDT_CPU != seen[1]));
}

/** Arguments for the saved function in place of the user's addresses. */
void *mca_coll_umrddt_stage_send(const mca_coll_umrddt_stage_t *stage);
void *mca_coll_umrddt_stage_recv(const mca_coll_umrddt_stage_t *stage);

const mca_coll_umrddt_vectors_t *mca_coll_umrddt_stage_vectors(const mca_coll_umrddt_stage_t *stage,
                                                               int side);

#define MCA_COLL_UMRDDT_VECTOR(side, name, given)           \
    (NULL != mca_coll_umrddt_stage_vectors(stage, side)     \
         ? mca_coll_umrddt_stage_vectors(stage, side)->name \
         : (given))

/**
 * Report an error to the user. @param[in] bytes of the memory that could not be allocated
 *
 * @return MPI's error code, valid both as a return value and in a status
 */
int mca_coll_umrddt_fail(int rc, size_t bytes);

/** Copy the input data into the stage, and wait. @return as mca_coll_umrddt_stage_new */
int mca_coll_umrddt_stage_in(mca_coll_umrddt_stage_t *stage);

/**
 * Start to copy the results to the device. @return OMPI_SUCCESS, or an error, with no copy in
 * progress
 */
int mca_coll_umrddt_stage_out(mca_coll_umrddt_stage_t *stage);

/**
 * Test these copies. @return OMPI_SUCCESS; OMPI_ERR_RESOURCE_BUSY: in progress; or an error, with
 * no copy in progress
 */
int mca_coll_umrddt_stage_test(mca_coll_umrddt_stage_t *stage);

/** Free a stage with no copy in progress. NULL is allowed. */
void mca_coll_umrddt_stage_free(mca_coll_umrddt_stage_t *stage);

/**
 * End of a blocking collective: copy the results and wait, if the saved function succeeded. Frees
 * the stage.
 *
 * @param[in] rc  return value of the saved function
 *
 * @return rc, or the error of the copy
 */
int mca_coll_umrddt_stage_end(mca_coll_umrddt_stage_t *stage, int rc);

void mca_coll_umrddt_stages_open(void);

/** Free the pool of stages; the last call. */
void mca_coll_umrddt_stages_close(void);

/* ---------------------------------------------------------------------------------------------
 * Requests (coll_umrddt_request.c)
 * ------------------------------------------------------------------------------------------- */

/** Request of a staged or direct call. */
typedef struct mca_coll_umrddt_request_t {
    ompi_coll_base_nbc_request_t super; /**< Open MPI attaches datatypes to it */
    ompi_request_t *inner;              /**< the saved function's request, owned; or NULL */
    mca_coll_umrddt_stage_t *stage;
    struct mca_coll_umrddt_direct_t *direct; /**< messages of a direct call, owned; or NULL */
    bool copying; /**< inner is complete, and the result is being copied to the device */
} mca_coll_umrddt_request_t;
OBJ_CLASS_DECLARATION(mca_coll_umrddt_request_t);

/**
 * Create a request that completes when the saved function's has and the result is in the user's
 * buffer.
 *
 * @param[in]  comm
 * @param[in]  stage       owned by the request; freed on error
 * @param[in]  rc          return value of the saved function
 * @param[in]  inner       the saved function's request; owned by the new request
 * @param[in]  persistent  inner is persistent and not started
 * @param[out] request
 *
 * @return rc if that is an error, else OMPI_SUCCESS or OMPI_ERR_OUT_OF_RESOURCE
 */
int mca_coll_umrddt_request_new(ompi_communicator_t *comm, mca_coll_umrddt_stage_t *stage, int rc,
                                ompi_request_t *inner, bool persistent, ompi_request_t **request);

/**
 * Create a request that completes when all messages of a list have. It starts them, unless it is
 * persistent. @param[in] direct  owned by the request; freed on error
 */
int mca_coll_umrddt_request_messages(ompi_communicator_t *comm,
                                     struct mca_coll_umrddt_direct_t *direct, bool persistent,
                                     ompi_request_t **request);

void mca_coll_umrddt_requests_open(void);
void mca_coll_umrddt_requests_close(void);

/* ---------------------------------------------------------------------------------------------
 * Functions of the modules (coll_umrddt_moves.c, _reductions.c, _neighbours.c)
 * ------------------------------------------------------------------------------------------- */

/** Type of a module's function. */
#define MCA_COLL_UMRDDT_TYPE(name) __typeof__(*((mca_coll_base_module_t *) NULL)->coll_##name)

#define MCA_COLL_UMRDDT_DECLARE(name)                             \
    extern MCA_COLL_UMRDDT_TYPE(name) mca_coll_umrddt_##name;     \
    extern MCA_COLL_UMRDDT_TYPE(i##name) mca_coll_umrddt_i##name; \
    extern MCA_COLL_UMRDDT_TYPE(name##_init) mca_coll_umrddt_##name##_init;
MCA_COLL_UMRDDT_CALLS(MCA_COLL_UMRDDT_DECLARE)
extern MCA_COLL_UMRDDT_TYPE(reduce_local) mca_coll_umrddt_reduce_local;

/** Pass a list as one macro argument. */
#define MCA_COLL_UMRDDT_LIST(...) __VA_ARGS__

/** Call a function or macro with arguments that contain MCA_COLL_UMRDDT_LIST. */
#define MCA_COLL_UMRDDT_APPLY(function, ...) function(__VA_ARGS__)

/**
 * GPU memory of nonblocking and persistent collectives is never passed through to an Open MPI with
 * CUDA. They progress in later calls, possibly with another current context. Also, MPI_Ialltoall of
 * coll/libnbc in 5.0.7 sends other bytes (external32) if a buffer is in GPU memory. All processes
 * would have to decide alike.
 *
 * Defines the three forms of a collective with the buffers @a sbuf and @a rbuf (only @a rbuf for
 * one buffer). Requires these functions or macros:
 *
 * - name_sides(sides, comm, PARAMETERS) describes the buffers
 * - name_counts(comm, PARAMETERS) is true if the call counts for agreements (coll_umrddt_agree.h)
 * - name_direct(module, comm, sides, all, PARAMETERS) does the call if the agreement @a all allows
 * - name_shape(comm, PARAMETERS): the messages of the nonblocking and the persistent form, or
 *   MCA_COLL_UMRDDT_NO_SHAPE; the same in all processes
 * - name_root(PARAMETERS): for these forms
 * - name_always(comm) is true if the blocking form has such messages, too, without an agreement;
 *   name_direct then gets 0 as @a all
 *
 * @param name        as in the module
 * @param parameters  the common parameters of the three forms, in parentheses
 * @param given       the same as arguments
 * @param staged      the same, with the local variables sstage and rstage for the buffers
 */
#define MCA_COLL_UMRDDT_DEFINE(name, parameters, given, staged)                                   \
    int mca_coll_umrddt_##name(MCA_COLL_UMRDDT_LIST parameters, ompi_communicator_t *comm,        \
                               mca_coll_base_module_t *base)                                      \
    {                                                                                             \
        mca_coll_umrddt_module_t *module = (mca_coll_umrddt_module_t *) base;                     \
        MCA_COLL_UMRDDT_ALWAYS(name, given)                                                       \
        const bool due = MCA_COLL_UMRDDT_APPLY(name##_counts, comm, MCA_COLL_UMRDDT_LIST given)   \
                         && mca_coll_umrddt_due(module, MCA_COLL_UMRDDT_KIND_##name);             \
        mca_coll_umrddt_stage_t *stage = NULL;                                                    \
        int rc;                                                                                   \
                                                                                                  \
        if (due || mca_coll_umrddt_looks(module, comm)) {                                         \
            mca_coll_umrddt_sides_t sides;                                                        \
            unsigned all = 0;                                                                     \
                                                                                                  \
            sides.handled = false;                                                                \
            sides.reduction.op = NULL;                                                            \
            name##_sides(&sides, comm, MCA_COLL_UMRDDT_LIST given);                               \
            rc = OPAL_UNLIKELY(due) ? mca_coll_umrddt_agree_and_stage(                            \
                     module, comm, MCA_COLL_UMRDDT_KIND_##name, &sides, &stage, &all)             \
                                    : mca_coll_umrddt_stage_new(&sides, &stage);                  \
            if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {                                              \
                return rc;                                                                        \
            }                                                                                     \
            if (0 != all) {                                                                       \
                return MCA_COLL_UMRDDT_APPLY(name##_direct, module, comm, &sides, all,            \
                                             MCA_COLL_UMRDDT_LIST given);                         \
            }                                                                                     \
            if (OPAL_UNLIKELY(sides.gpu)) {                                                       \
                module->schedules[MCA_COLL_UMRDDT_KIND_##name].used = true;                       \
            }                                                                                     \
        } else {                                                                                  \
            MCA_COLL_UMRDDT_COUNT(passed);                                                        \
        }                                                                                         \
        if (OPAL_LIKELY(NULL == stage)) {                                                         \
            return module->saved.coll_##name(MCA_COLL_UMRDDT_LIST given, comm,                    \
                                             module->saved.coll_##name##_module);                 \
        }                                                                                         \
        rc = mca_coll_umrddt_stage_in(stage);                                                     \
        if (OMPI_SUCCESS == rc) {                                                                 \
            MCA_COLL_UMRDDT_STAGED                                                                \
            rc = module->saved.coll_##name(MCA_COLL_UMRDDT_LIST staged, comm,                     \
                                           module->saved.coll_##name##_module);                   \
        }                                                                                         \
        return mca_coll_umrddt_stage_end(stage, rc);                                              \
    }                                                                                             \
                                                                                                  \
    int mca_coll_umrddt_i##name(MCA_COLL_UMRDDT_LIST parameters, ompi_communicator_t *comm,       \
                                ompi_request_t **request, mca_coll_base_module_t *base)           \
    {                                                                                             \
        mca_coll_umrddt_module_t *module = (mca_coll_umrddt_module_t *) base;                     \
        ompi_request_t *inner = NULL;                                                             \
        MCA_COLL_UMRDDT_MESSAGES(name, given, false)                                              \
        MCA_COLL_UMRDDT_PREPARE(name, given)                                                      \
        if (OPAL_LIKELY(NULL == stage)) {                                                         \
            return module->saved.coll_i##name(MCA_COLL_UMRDDT_LIST given, comm, request,          \
                                              module->saved.coll_i##name##_module);               \
        }                                                                                         \
        rc = mca_coll_umrddt_stage_in(stage);                                                     \
        if (OMPI_SUCCESS == rc) {                                                                 \
            MCA_COLL_UMRDDT_STAGED                                                                \
            rc = module->saved.coll_i##name(MCA_COLL_UMRDDT_LIST staged, comm, &inner,            \
                                            module->saved.coll_i##name##_module);                 \
        }                                                                                         \
        return mca_coll_umrddt_request_new(comm, stage, rc, inner, false, request);               \
    }                                                                                             \
                                                                                                  \
    int mca_coll_umrddt_##name##_init(MCA_COLL_UMRDDT_LIST parameters, ompi_communicator_t *comm, \
                                      struct ompi_info_t *info, ompi_request_t **request,         \
                                      mca_coll_base_module_t *base)                               \
    {                                                                                             \
        mca_coll_umrddt_module_t *module = (mca_coll_umrddt_module_t *) base;                     \
        ompi_request_t *inner = NULL;                                                             \
        MCA_COLL_UMRDDT_MESSAGES(name, given, true)                                               \
        MCA_COLL_UMRDDT_PREPARE(name, given)                                                      \
        if (OPAL_LIKELY(NULL == stage)) {                                                         \
            return module->saved.coll_##name##_init(MCA_COLL_UMRDDT_LIST given, comm, info,       \
                                                    request,                                      \
                                                    module->saved.coll_##name##_init_module);     \
        }                                                                                         \
        MCA_COLL_UMRDDT_STAGED                                                                    \
        rc = module->saved.coll_##name##_init(MCA_COLL_UMRDDT_LIST staged, comm, info, &inner,    \
                                              module->saved.coll_##name##_init_module);           \
        return mca_coll_umrddt_request_new(comm, stage, rc, inner, true, request);                \
    }

/** Do a blocking call by messages, if all processes do without an agreement. */
#define MCA_COLL_UMRDDT_ALWAYS(name, given)                                             \
    if (name##_always(comm)                                                             \
        && MCA_COLL_UMRDDT_NO_SHAPE                                                     \
               != MCA_COLL_UMRDDT_APPLY(name##_shape, comm, MCA_COLL_UMRDDT_LIST given) \
        && mca_coll_umrddt_agrees(module, comm)) {                                      \
        mca_coll_umrddt_sides_t always;                                                 \
                                                                                        \
        if (!mca_coll_umrddt_direct_room(module, comm)) {                               \
            return OMPI_ERR_OUT_OF_RESOURCE;                                            \
        }                                                                               \
        name##_sides(&always, comm, MCA_COLL_UMRDDT_LIST given);                        \
        return MCA_COLL_UMRDDT_APPLY(name##_direct, module, comm, &always, 0,           \
                                     MCA_COLL_UMRDDT_LIST given);                       \
    }

/** The same for the other forms. */
#define MCA_COLL_UMRDDT_MESSAGES(name, given, persistent)                                         \
    const mca_coll_umrddt_shape_t shape =                                                         \
        MCA_COLL_UMRDDT_APPLY(name##_shape, comm, MCA_COLL_UMRDDT_LIST given);                    \
                                                                                                  \
    if (MCA_COLL_UMRDDT_NO_SHAPE != shape                                                         \
        && mca_coll_umrddt_is_request(module, comm, persistent)) {                                \
        mca_coll_umrddt_sides_t moved;                                                            \
                                                                                                  \
        name##_sides(&moved, comm, MCA_COLL_UMRDDT_LIST given);                                   \
        return mca_coll_umrddt_direct_request(                                                    \
            module, comm, shape, &moved,                                                          \
            MCA_COLL_UMRDDT_APPLY(name##_root, MCA_COLL_UMRDDT_LIST given), persistent, request); \
    }

#define MCA_COLL_UMRDDT_PREPARE(name, given)                    \
    mca_coll_umrddt_stage_t *stage = NULL;                      \
    int rc;                                                     \
                                                                \
    if (mca_coll_umrddt_requests(module, comm)) {               \
        mca_coll_umrddt_sides_t sides;                          \
                                                                \
        sides.handled = true;                                   \
        name##_sides(&sides, comm, MCA_COLL_UMRDDT_LIST given); \
        rc = mca_coll_umrddt_stage_new(&sides, &stage);         \
        if (OPAL_UNLIKELY(OMPI_SUCCESS != rc)) {                \
            return rc;                                          \
        }                                                       \
    } else {                                                    \
        MCA_COLL_UMRDDT_COUNT(passed);                          \
    }

#define MCA_COLL_UMRDDT_STAGED                              \
    const void *sstage = mca_coll_umrddt_stage_send(stage); \
    void *rstage = mca_coll_umrddt_stage_recv(stage);       \
                                                            \
    (void) sstage;

/** Number of processes that this one exchanges data with: of the remote group, or all. */
static inline int mca_coll_umrddt_others(const ompi_communicator_t *comm)
{
    return OMPI_COMM_IS_INTER(comm) ? ompi_comm_remote_size((ompi_communicator_t *) comm)
                                    : ompi_comm_size((ompi_communicator_t *) comm);
}

END_C_DECLS

#endif /* MCA_COLL_UMRDDT_H */
