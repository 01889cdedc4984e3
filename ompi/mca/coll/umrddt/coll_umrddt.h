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
 * Collectives on GPU buffers that this Open MPI does not take by itself, or takes slowly.
 *
 * A module saves the functions that the communicator would have had, and stands in front of them.
 * A call whose buffers the CPU may touch goes on to the saved function at once. For a buffer in
 * memory of a device there is a *stage*: system memory that looks like the buffer (the same
 * offsets, so that counts, displacements and datatypes stay as they are), filled by the device
 * before the saved function and read back behind it. So what goes between the processes does not
 * depend on whose memory a buffer is in, and each process decides for itself.
 */

#ifndef MCA_COLL_UMRDDT_H
#define MCA_COLL_UMRDDT_H

#include "ompi_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpi.h"

#include "umrddt_compat.h"

/* Debian's and Ubuntu's packages lack a header that Open MPI's own op.h names, and of operations no
 * more than the name is needed here. */
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

BEGIN_C_DECLS

/* ---------------------------------------------------------------------------------------------
 * Parameters and counters
 * ------------------------------------------------------------------------------------------- */

typedef struct mca_coll_umrddt_params_t {
    int priority;  /**< coll_umrddt_priority */
    size_t pinned; /**< coll_umrddt_pinned */
    size_t chunk;  /**< coll_umrddt_chunk */
} mca_coll_umrddt_params_t;

/** Every counter: name, help. They only grow. Registered as performance variables. */
#define MCA_COLL_UMRDDT_COUNTERS(X)                                                               \
    X(passed, "Collectives passed on as they were: no buffer in memory of a GPU")                 \
    X(passed_gpu, "Collectives on GPU memory passed through to a CUDA-aware Open MPI")            \
    X(staged, "Collectives with a buffer in memory of a GPU: done on copies in system memory")    \
    X(staged_nonblocking, "Of these, nonblocking ones, and starts of persistent ones")            \
    X(bytes_in, "Bytes copied from GPUs for these")                                               \
    X(bytes_out, "Bytes copied to GPUs for these")                                                \
    X(memory_queries, "Addresses looked up to tell whose memory they are")                        \
    X(layouts_read, "Datatypes read, since their layout was not in the cache")                    \
    X(stages_pinned, "Copies in system memory that were made in pinned memory kept for them")     \
    X(stages_pageable, "Copies in system memory that were not: too large for coll_umrddt_pinned") \
    X(failures, "Collectives that failed for lack of memory or because of the CUDA driver")

#define MCA_COLL_UMRDDT_COUNTER_FIELD(name, help) uint64_t name;
typedef struct mca_coll_umrddt_counters_t {
    MCA_COLL_UMRDDT_COUNTERS(MCA_COLL_UMRDDT_COUNTER_FIELD)
} mca_coll_umrddt_counters_t;

/** Which GPU memory the components behind are given as it is. Set before the first call. */
typedef enum mca_coll_umrddt_base_t {
    MCA_COLL_UMRDDT_BASE_NONE,    /**< this Open MPI has no CUDA */
    MCA_COLL_UMRDDT_BASE_NOTHING, /**< it has, but its PML has not; or the user wants it so */
    MCA_COLL_UMRDDT_BASE_SAFE     /**< contiguous memory that it can be trusted with */
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

/** The collectives that touch buffers. Each has a nonblocking and a persistent form as well. */
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

/** What stands in front of one communicator's functions. */
typedef struct mca_coll_umrddt_module_t {
    mca_coll_base_module_t super;
    mca_coll_base_comm_coll_t saved; /**< the functions behind; the modules used are retained */
    bool enabled;                    /**< saved is set */
    int asks; /**< 1: buffers are looked at; 0: the user has promised that there is no need;
                   -1: not known yet; atomic */
} mca_coll_umrddt_module_t;
OBJ_CLASS_DECLARATION(mca_coll_umrddt_module_t);

/** A module for a communicator that pml/umrddt serves; NULL: no memory. */
mca_coll_base_module_t *mca_coll_umrddt_module_new(void);

/** Read the info key mpi_communication_pattern, once. */
bool mca_coll_umrddt_module_read(mca_coll_umrddt_module_t *module, ompi_communicator_t *comm);

/** False if all buffers of this communicator are known to be the CPU's. */
static inline bool mca_coll_umrddt_asks(mca_coll_umrddt_module_t *module, ompi_communicator_t *comm)
{
    int asks = __atomic_load_n(&module->asks, __ATOMIC_RELAXED);

    return 0 <= asks ? 0 != asks : mca_coll_umrddt_module_read(module, comm);
}

/* ---------------------------------------------------------------------------------------------
 * Sides (coll_umrddt_side.c)
 * ------------------------------------------------------------------------------------------- */

/** Which way a side's bytes go between the device and the stage. */
enum {
    MCA_COLL_UMRDDT_IN = 0x1, /**< before the saved function: it reads them */
    MCA_COLL_UMRDDT_OUT = 0x2 /**< behind it: it has written all of them */
};

/**
 * One buffer of a collective, as the call describes it. It has @a parts parts. Part i is count (or
 * counts[i]) elements of type (or types[i]); it begins behind part i - 1, or at displs[i] extents
 * of type, or (with types) displs[i] or far[i] bytes from the address.
 */
typedef struct mca_coll_umrddt_side_t {
    const void *user; /**< what the call was given, and hands on if the CPU may touch it */
    int parts;        /**< 0: nothing of it is touched here, or it is MPI_IN_PLACE */
    size_t count;
    const int *counts;
    const int *displs;
    const MPI_Aint *far;
    ompi_datatype_t *type;
    ompi_datatype_t *const *types;
    unsigned
        flow; /**< MCA_COLL_UMRDDT_IN and _OUT; 0: system memory is wanted, with anything in it */

    int extra;         /**< a part that goes another way as well, or -1 */
    size_t extra_only; /**< its first elements only; 0: all */
    unsigned extra_flow;
} mca_coll_umrddt_side_t;

/** Both buffers of a collective. */
typedef struct mca_coll_umrddt_sides_t {
    mca_coll_umrddt_side_t send;
    mca_coll_umrddt_side_t recv;
    bool handled; /**< GPU memory of this call is never passed through: see
                       MCA_COLL_UMRDDT_DEFINE */
} mca_coll_umrddt_sides_t;

static inline void mca_coll_umrddt_side_none(mca_coll_umrddt_side_t *side, const void *user)
{
    side->user = user;
    side->parts = 0;
}

/** Parts of count elements each, one behind the other. */
static inline void mca_coll_umrddt_side_block(mca_coll_umrddt_side_t *side, const void *user,
                                              int parts, size_t count, ompi_datatype_t *type,
                                              unsigned flow)
{
    *side = (mca_coll_umrddt_side_t){
        .user = user, .parts = parts, .count = count, .type = type, .flow = flow, .extra = -1};
}

/** Parts of counts[i] elements; displs NULL: one behind the other. */
static inline void mca_coll_umrddt_side_vector(mca_coll_umrddt_side_t *side, const void *user,
                                               int parts, const int *counts, const int *displs,
                                               ompi_datatype_t *type, unsigned flow)
{
    *side = (mca_coll_umrddt_side_t){.user = user,
                                     .parts = parts,
                                     .counts = counts,
                                     .displs = displs,
                                     .type = type,
                                     .flow = flow,
                                     .extra = -1};
}

/** Parts of datatypes of their own, by displacements in bytes: one of displs and far. */
static inline void mca_coll_umrddt_side_types(mca_coll_umrddt_side_t *side, const void *user,
                                              int parts, const int *counts, const int *displs,
                                              const MPI_Aint *far, ompi_datatype_t *const *types,
                                              unsigned flow)
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

/** Of a receive buffer that also holds this process's data: part @p part goes in, whatever flow is.
 */
static inline void mca_coll_umrddt_side_own(mca_coll_umrddt_side_t *side, int part)
{
    side->extra = part;
    side->extra_flow = MCA_COLL_UMRDDT_IN;
}

/** Parts of a side that can be described as one: a layout and where it lies. */
typedef struct mca_coll_umrddt_piece_t {
    opal_iov_cache_layout_t *layout; /**< ours to release */
    int64_t offset;                  /**< of what the layout counts from, from side->user */
    unsigned flow;
} mca_coll_umrddt_piece_t;

/** A list of pieces. All 0 is an empty list. Its array is kept for the next call. */
typedef struct mca_coll_umrddt_pieces_t {
    mca_coll_umrddt_piece_t *list;
    size_t n;
    size_t room; /**< pieces that list has memory for */
} mca_coll_umrddt_pieces_t;

/** What the memory of a side, or of a piece, is. */
typedef enum mca_coll_umrddt_look_t {
    MCA_COLL_UMRDDT_CPU,    /**< the CPU may touch all of it, or it is empty */
    MCA_COLL_UMRDDT_TAKEN,  /**< a GPU's, and the components behind can be given it as it is */
    MCA_COLL_UMRDDT_GPU,    /**< a GPU's, and they must not be, or are slow with it */
    MCA_COLL_UMRDDT_SEVERAL /**< perhaps of several kinds: look at the pieces */
} mca_coll_umrddt_look_t;

/**
 * Say what the memory of a side is. Looks at the first byte that the side touches; of a type that
 * is not contiguous also whether it stays inside of that allocation, which takes a second query
 * where the CPU's memory is concerned. Never MCA_COLL_UMRDDT_SEVERAL for contiguous types, but from
 * MPI_BOTTOM always.
 */
mca_coll_umrddt_look_t mca_coll_umrddt_side_look(const mca_coll_umrddt_side_t *side);

/** The same by the pieces of a side: MCA_COLL_UMRDDT_CPU or _GPU. */
mca_coll_umrddt_look_t mca_coll_umrddt_pieces_look(const mca_coll_umrddt_side_t *side,
                                                   const mca_coll_umrddt_pieces_t *pieces);

/**
 * True if one operation of a device can copy a piece: all of its memory is that of one device.
 *
 * @param[in]  user    the address that the piece's offset counts from
 * @param[out] memory  of the first byte
 */
bool mca_coll_umrddt_piece_is_whole(uint64_t user, const mca_coll_umrddt_piece_t *piece,
                                    opal_umrddt_gpu_memory_t *memory);

/**
 * The pieces of a side, none of them empty. Walks a datatype that the cache of layouts does not
 * have, and allocates where @a pieces has no room.
 *
 * @param[in,out] pieces  empty; to be emptied with mca_coll_umrddt_pieces_clear
 *
 * @retval OMPI_SUCCESS
 * @retval OMPI_ERR_OUT_OF_RESOURCE  no memory, and pieces is empty
 * @retval OMPI_ERR_BAD_PARAM        more bytes than fit 63 bits, and pieces is empty
 */
int mca_coll_umrddt_side_pieces(const mca_coll_umrddt_side_t *side,
                                mca_coll_umrddt_pieces_t *pieces);

/** Empty the list. Keeps its array, unless that is large. */
void mca_coll_umrddt_pieces_clear(mca_coll_umrddt_pieces_t *pieces);
void mca_coll_umrddt_pieces_free(mca_coll_umrddt_pieces_t *pieces);

/** True if there may be memory of devices: the application uses CUDA. */
bool mca_coll_umrddt_may_be_any(void);

/** Whose memory this is. */
void mca_coll_umrddt_memory(uint64_t address, opal_umrddt_gpu_memory_t *memory);

/* ---------------------------------------------------------------------------------------------
 * Layouts (coll_umrddt_layout.c)
 * ------------------------------------------------------------------------------------------- */

/**
 * The layout of (type, count), from the cache if it has been seen. Of threads that are in a call on
 * a module.
 *
 * @param[out] layout  the caller's to release
 *
 * @retval OMPI_SUCCESS, OMPI_ERR_OUT_OF_RESOURCE, OMPI_ERR_BAD_PARAM
 */
int mca_coll_umrddt_layout(ompi_datatype_t *type, size_t count, opal_iov_cache_layout_t **layout);

/**
 * A module comes, and goes. The last one takes the cache of layouts with it: Open MPI's attributes,
 * by which datatypes say that they die, end before components are closed.
 */
void mca_coll_umrddt_layouts_use(void);
void mca_coll_umrddt_layouts_unuse(void);

/** Bring the counter layouts_read up to date. */
void mca_coll_umrddt_layouts_count(void);

/* ---------------------------------------------------------------------------------------------
 * Stages (coll_umrddt_stage.c)
 * ------------------------------------------------------------------------------------------- */

/** System memory in place of the buffers that are a device's. */
typedef struct mca_coll_umrddt_stage_t mca_coll_umrddt_stage_t;

/**
 * Look at the buffers of a call, and make a stage if one is a device's and the components behind
 * are not given it as it is. Nothing is copied yet. Allocates nothing in the steady state of calls
 * whose buffers find room in the pool of pinned memory.
 *
 * @param[out] stage  NULL: the call can be passed on as it is
 *
 * @retval OMPI_SUCCESS, MPI_ERR_NO_MEM, MPI_ERR_OTHER (the driver fails); the user was told
 */
int mca_coll_umrddt_stage_new(const mca_coll_umrddt_sides_t *sides,
                              mca_coll_umrddt_stage_t **stage);

/** What the saved function is given instead of the user's addresses. */
void *mca_coll_umrddt_stage_send(const mca_coll_umrddt_stage_t *stage);
void *mca_coll_umrddt_stage_recv(const mca_coll_umrddt_stage_t *stage);

/** Copy what goes in, and wait for it. @return as mca_coll_umrddt_stage_new */
int mca_coll_umrddt_stage_in(mca_coll_umrddt_stage_t *stage);

/** Begin to copy what goes out. @return OMPI_SUCCESS, or an error, and nothing is under way */
int mca_coll_umrddt_stage_out(mca_coll_umrddt_stage_t *stage);

/**
 * See whether that is over. @return OMPI_SUCCESS; OMPI_ERR_RESOURCE_BUSY: not yet; an error, and
 * nothing is under way
 */
int mca_coll_umrddt_stage_test(mca_coll_umrddt_stage_t *stage);

/** Nothing is under way. NULL is allowed. */
void mca_coll_umrddt_stage_free(mca_coll_umrddt_stage_t *stage);

/**
 * The end of a blocking collective: if the saved function succeeded, copy what goes out and wait.
 * Frees the stage.
 *
 * @param[in] rc  what the saved function returned
 *
 * @return that, or an error of the copy
 */
int mca_coll_umrddt_stage_end(mca_coll_umrddt_stage_t *stage, int rc);

void mca_coll_umrddt_stages_open(void);

/** Give back what stages left behind; the last call. */
void mca_coll_umrddt_stages_close(void);

/* ---------------------------------------------------------------------------------------------
 * Requests (coll_umrddt_request.c)
 * ------------------------------------------------------------------------------------------- */

/** Takes the saved function's request with it, whatever happens. */
typedef struct mca_coll_umrddt_request_t {
    ompi_coll_base_nbc_request_t super; /**< Open MPI hangs datatypes on it */
    ompi_request_t *inner;              /**< of the saved function */
    mca_coll_umrddt_stage_t *stage;
    bool copying; /**< inner is complete, and the result is on its way to the device */
} mca_coll_umrddt_request_t;
OBJ_CLASS_DECLARATION(mca_coll_umrddt_request_t);

/**
 * A request that is complete when the saved function's is and the result is in the user's buffer.
 *
 * @param[in]  comm
 * @param[in]  stage       the request's from now on, and freed if there is none
 * @param[in]  rc          what the saved function returned
 * @param[in]  inner       and its request; the new request's from now on
 * @param[in]  persistent  inner is persistent and not started
 * @param[out] request
 *
 * @return rc if that is an error, else OMPI_SUCCESS or OMPI_ERR_OUT_OF_RESOURCE
 */
int mca_coll_umrddt_request_new(ompi_communicator_t *comm, mca_coll_umrddt_stage_t *stage, int rc,
                                ompi_request_t *inner, bool persistent, ompi_request_t **request);

void mca_coll_umrddt_requests_open(void);
void mca_coll_umrddt_requests_close(void);

/* ---------------------------------------------------------------------------------------------
 * What stands in the modules (coll_umrddt_moves.c, _reductions.c, _neighbours.c)
 * ------------------------------------------------------------------------------------------- */

/** The type of a module's function. */
#define MCA_COLL_UMRDDT_TYPE(name) __typeof__(*((mca_coll_base_module_t *) NULL)->coll_##name)

#define MCA_COLL_UMRDDT_DECLARE(name)                             \
    extern MCA_COLL_UMRDDT_TYPE(name) mca_coll_umrddt_##name;     \
    extern MCA_COLL_UMRDDT_TYPE(i##name) mca_coll_umrddt_i##name; \
    extern MCA_COLL_UMRDDT_TYPE(name##_init) mca_coll_umrddt_##name##_init;
MCA_COLL_UMRDDT_CALLS(MCA_COLL_UMRDDT_DECLARE)
extern MCA_COLL_UMRDDT_TYPE(reduce_local) mca_coll_umrddt_reduce_local;

/** In macros' lists of arguments. */
#define MCA_COLL_UMRDDT_LIST(...) __VA_ARGS__

/**
 * GPU memory of nonblocking and persistent collectives is never passed through to an Open MPI with
 * CUDA. They go on in later calls, for which another context may be current. And the MPI_Ialltoall
 * of coll/libnbc in 5.0.7 sends other bytes (external32) if a buffer is in GPU memory, so that all
 * processes would have to decide alike.
 *
 * The three forms of a collective whose buffers are @a sbuf and @a rbuf (which is all that a
 * collective with one buffer has), by a function name_sides(sides, comm, PARAMETERS).
 *
 * @param name        as in the module
 * @param parameters  those that the three forms have in common, in parentheses
 * @param given       the same as arguments
 * @param staged      the same, with the local variables sstage and rstage for the buffers
 */
#define MCA_COLL_UMRDDT_DEFINE(name, parameters, given, staged)                                   \
    int mca_coll_umrddt_##name(MCA_COLL_UMRDDT_LIST parameters, ompi_communicator_t *comm,        \
                               mca_coll_base_module_t *base)                                      \
    {                                                                                             \
        mca_coll_umrddt_module_t *module = (mca_coll_umrddt_module_t *) base;                     \
        MCA_COLL_UMRDDT_PREPARE(name, given, false)                                               \
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
        MCA_COLL_UMRDDT_PREPARE(name, given, true)                                                \
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
        MCA_COLL_UMRDDT_PREPARE(name, given, true)                                                \
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

#define MCA_COLL_UMRDDT_PREPARE(name, given, always)            \
    mca_coll_umrddt_stage_t *stage = NULL;                      \
    int rc;                                                     \
                                                                \
    if (mca_coll_umrddt_asks(module, comm)) {                   \
        mca_coll_umrddt_sides_t sides;                          \
                                                                \
        sides.handled = (always);                               \
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

/** Processes that this one exchanges data with in a collective: of the other group, or all. */
static inline int mca_coll_umrddt_others(const ompi_communicator_t *comm)
{
    return OMPI_COMM_IS_INTER(comm) ? ompi_comm_remote_size((ompi_communicator_t *) comm)
                                    : ompi_comm_size((ompi_communicator_t *) comm);
}

END_C_DECLS

#endif /* MCA_COLL_UMRDDT_H */
