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
 * Shared by the files of packed messages: one side and its chunks (pml_umrddt_pack.c), the HCA as
 * the wire (pml_umrddt_pack_hca.c), and registered buffers (pml_umrddt_pack_buffers.c). Read
 * pml_umrddt_pack.h first. Progress thread only.
 */

#ifndef MCA_PML_UMRDDT_PACK_CHUNKS_H
#define MCA_PML_UMRDDT_PACK_CHUNKS_H

#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_progress.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_stage.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_pack.h"

BEGIN_C_DECLS

/* ---------------------------------------------------------------------------------------------
 * Registered buffers (pml_umrddt_pack_buffers.c)
 * ------------------------------------------------------------------------------------------- */

/** Registered memory for a chunk, on a GPU or in system memory. It stays registered while it is
 * cached, so that no message registers memory. */
typedef struct mca_pml_umrddt_pack_buffer_t {
    struct mca_pml_umrddt_pack_buffer_t *next; /**< next idle buffer, newest first */
    opal_umrddt_gpu_stage_t stage;             /**< in system memory; all 0 for a GPU buffer */
    uint64_t scratch;                          /**< GPU memory; 0 for a buffer in system memory */
    opal_umrddt_gpu_engine_t *engine;          /**< the GPU that copies; NULL: the CPU copies */
    size_t room;                               /**< size in bytes, a power of 2 */
    uint32_t hca;       /**< index in this process of the HCA that it is registered with */
    uint32_t requested; /**< requests since the registration was refused */
    bool quarantined;   /**< writes to it may still arrive */
    opal_iov_cache_layout_t *layout; /**< one block of this size */
    mca_btl_umr_memory_t *memory;    /**< NULL: the registration was refused */
    mca_btl_umr_key_t key;           /**< remote key */
} mca_pml_umrddt_pack_buffer_t;

/**
 * Get a buffer.
 *
 * @param[in]  endpoint  its HCA must reach the buffer
 * @param[in]  engine    the GPU that copies to or from it; NULL: the CPU copies
 * @param[in]  where     the user's buffer
 * @param[in]  device    true: memory of the engine's GPU; false: system memory, pinned if possible
 * @param[in]  size      in bytes
 * @param[out] buffer    owned by the caller until _put
 *
 * @retval OMPI_SUCCESS
 * @retval OMPI_ERR_OUT_OF_RESOURCE  no memory, or the registration was refused
 */
int mca_pml_umrddt_pack_buffer_get(mca_btl_umr_endpoint_t *endpoint,
                                   opal_umrddt_gpu_engine_t *engine,
                                   const opal_umrddt_gpu_where_t *where, bool device, size_t size,
                                   mca_pml_umrddt_pack_buffer_t **buffer);

/** Return a buffer. No access to it is in progress, or it is quarantined. */
void mca_pml_umrddt_pack_buffer_put(mca_pml_umrddt_pack_buffer_t *buffer);

/* ---------------------------------------------------------------------------------------------
 * One side (pml_umrddt_pack.c)
 * ------------------------------------------------------------------------------------------- */

typedef enum mca_pml_umrddt_phase_t {
    MCA_PML_UMRDDT_PHASE_IDLE,
    MCA_PML_UMRDDT_PHASE_COPY,
    MCA_PML_UMRDDT_PHASE_MOVE,
    MCA_PML_UMRDDT_PHASE_READY,
    MCA_PML_UMRDDT_PHASE_WIRE,
    MCA_PML_UMRDDT_PHASE_FLUSH
} mca_pml_umrddt_phase_t;

/** Entry of a chunk. */
typedef struct mca_pml_umrddt_chunk_t {
    mca_pml_umrddt_phase_t phase;
    mca_pml_umrddt_pack_t *pack;
    uint64_t start;
    uint64_t end;
    bool lost;                     /**< the chunk carries no data */
    opal_umrddt_gpu_stage_t stage; /**< all 0: the user's buffer is used directly */
    uint64_t scratch;              /**< GPU scratch memory beside the stage, or 0 */
    opal_umrddt_gpu_copy_t *copy;
    ompi_request_t *request;              /**< base PML as the wire */
    mca_pml_umrddt_pack_buffer_t *buffer; /**< HCA as the wire; owns the memory of the stage */
    bool over;                            /**< the HCA operation has completed ... */
    int status;                           /**< ... with this status */
} mca_pml_umrddt_chunk_t;

/** State of the HCA as the wire. */
typedef struct mca_pml_umrddt_pack_hca_t {
    mca_btl_umr_endpoint_t *endpoint; /**< NULL: the base PML is the wire */
    uint32_t granted;                 /**< chunks that the sender may write so far */
    uint32_t done;                    /**< receiver: FINs received */
    uint32_t last;  /**< receiver, if stopped: number of FINs expected, from the NACK */
    bool reported;  /**< receiver: the CTS_PACK was sent */
    bool stopped;   /**< sender: the receiver falls back to the base PML; receiver: the sender has
                       failed */
    bool broken;    /**< the endpoint has failed */
    unsigned slots; /**< sender: number of the receiver's buffers */
    mca_btl_umr_key_t slot[MCA_PML_UMRDDT_PACK_DEPTH];
} mca_pml_umrddt_pack_hca_t;

struct mca_pml_umrddt_pack_t {
    mca_pml_umrddt_wait_t wait; /**< used if the message is dropped, until all requests complete */
    mca_pml_umrddt_pack_t *next_idle;
    mca_pml_umrddt_pack_job_t job;
    opal_umrddt_gpu_where_t where;
    opal_umrddt_gpu_engine_t *engine; /**< NULL: the CPU copies */
    bool one_piece;                   /**< the layout is contiguous */
    bool device;                      /**< the base PML gets GPU memory ... */
    opal_umrddt_gpu_engine_t *owner;  /**< ... of this engine's context */
    uint64_t chunks;                  /**< of the message; fits 32 bits with the HCA as the wire */
    uint64_t next;                    /**< offset in bytes of the next chunk to begin */
    unsigned begun, sent;             /**< chunks so far */
    unsigned depth;
    unsigned in_flight;
    unsigned copying;  /**< chunks that a GPU is copying */
    unsigned refusals; /**< consecutive refusals by the base PML */
    bool not_packed;
    bool failed;
    mca_pml_umrddt_pack_hca_t hca;
    mca_pml_umrddt_chunk_t chunk[MCA_PML_UMRDDT_PACK_DEPTH];
};

/** Returns true if the HCA is the wire. */
static inline bool mca_pml_umrddt_pack_by_hca(const mca_pml_umrddt_pack_t *pack)
{
    return NULL != pack->hca.endpoint;
}

/** Entry of a chunk, by its number. */
static inline mca_pml_umrddt_chunk_t *mca_pml_umrddt_pack_slot(mca_pml_umrddt_pack_t *pack,
                                                               unsigned number)
{
    return &pack->chunk[number % pack->depth];
}

/** A chunk has completed or was given up. */
static inline void mca_pml_umrddt_pack_chunk_over(mca_pml_umrddt_pack_t *pack,
                                                  mca_pml_umrddt_chunk_t *chunk)
{
    chunk->phase = MCA_PML_UMRDDT_PHASE_IDLE;
    --pack->in_flight;
}

/**
 * Get system memory for a chunk, pinned if a GPU copies. As opal_umrddt_gpu_stage_get.
 *
 * @param[in] where   the user's buffer
 * @param[in] engine  the GPU that copies to or from the staging buffer; NULL: the CPU copies
 */
static inline int mca_pml_umrddt_pack_stage_get(const opal_umrddt_gpu_where_t *where,
                                                const opal_umrddt_gpu_engine_t *engine, size_t size,
                                                opal_umrddt_gpu_stage_t *stage)
{
    opal_umrddt_gpu_where_t beside = *where;

    if (NULL != engine) {
        /* pinned staging memory, also for managed memory */
        beside.memory.kind = OPAL_UMRDDT_GPU_DEVICE;
    }
    return opal_umrddt_gpu_stage_get(&beside.memory, size, stage);
}

/** Receiver: the data of a chunk has arrived, or (chunk->lost) will not arrive. Unpack it. */
void mca_pml_umrddt_pack_arrived(mca_pml_umrddt_pack_t *pack, mca_pml_umrddt_chunk_t *chunk);

/* ---------------------------------------------------------------------------------------------
 * The base PML between GPU buffers (pml_umrddt_pack_buffers.c)
 * ------------------------------------------------------------------------------------------- */

/** One side of pack-gdr that has an engine, with the base PML as the wire: set pack->device if the
 * chunks can be in GPU memory. A contiguous user's buffer that the base PML can take needs no copy:
 * the engine is set to NULL. */
void mca_pml_umrddt_pack_device_begin(mca_pml_umrddt_pack_t *pack);

/** pack->device: get GPU memory for a chunk. @return OMPI_SUCCESS or OMPI_ERR_OUT_OF_RESOURCE */
int mca_pml_umrddt_pack_device_room(mca_pml_umrddt_pack_t *pack, mca_pml_umrddt_chunk_t *chunk);

/** Release it. */
void mca_pml_umrddt_pack_device_put(mca_pml_umrddt_chunk_t *chunk);

/** pack->device: make the context of the GPU memory current for a call of the base PML. Chunks
 * after the first ones are posted in progress, in any thread, where another context may be current.
 * @return true: opal_umrddt_gpu_engine_leave(pack->owner) must follow */
bool mca_pml_umrddt_pack_device_enter(const mca_pml_umrddt_pack_t *pack);

/** This side uses pinned buffers instead, as for pack-staged. */
static inline void mca_pml_umrddt_pack_device_off(mca_pml_umrddt_pack_t *pack)
{
    MCA_PML_UMRDDT_COUNT(pack_no_gdr);
    pack->device = false;
    pack->job.scheme = MCA_PML_UMRDDT_BIT_PACK_STAGED;
}

/* ---------------------------------------------------------------------------------------------
 * The HCA (pml_umrddt_pack_hca.c)
 * ------------------------------------------------------------------------------------------- */

/** Get registered memory for a chunk. @return as mca_pml_umrddt_pack_buffer_get */
int mca_pml_umrddt_pack_hca_room(mca_pml_umrddt_pack_t *pack, mca_pml_umrddt_chunk_t *chunk);

/** Returns true if the next chunk may begin. A receiver then has reserved a receive for its FIN. */
bool mca_pml_umrddt_pack_hca_may_begin(mca_pml_umrddt_pack_t *pack);

/** Write a chunk that is ready. */
void mca_pml_umrddt_pack_hca_send(mca_pml_umrddt_pack_t *pack, mca_pml_umrddt_chunk_t *chunk);

/** Test the write or flush of a chunk. @return true if the state has changed */
bool mca_pml_umrddt_pack_hca_look(mca_pml_umrddt_pack_t *pack, mca_pml_umrddt_chunk_t *chunk);

/** Called after the chunks of a step: send credits, and stop early after failures. */
void mca_pml_umrddt_pack_hca_step(mca_pml_umrddt_pack_t *pack);

/** Receiver: the sender has written no more chunks than have arrived. Cancel the others. */
void mca_pml_umrddt_pack_hca_stop(mca_pml_umrddt_pack_t *pack);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_PACK_CHUNKS_H */
