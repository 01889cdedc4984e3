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
 * What the files of messages that travel packed share: a side and its chunks (pml_umrddt_pack.c),
 * the HCA as their wire (pml_umrddt_pack_hca.c), and the registered memory that it takes
 * (pml_umrddt_pack_buffers.c). Of progress only, all of it.
 */

#ifndef MCA_PML_UMRDDT_PACK_CHUNKS_H
#define MCA_PML_UMRDDT_PACK_CHUNKS_H

#include "pml_umrddt_pack.h"

BEGIN_C_DECLS

/* ---------------------------------------------------------------------------------------------
 * Buffers that an HCA reaches (pml_umrddt_pack_buffers.c)
 * ------------------------------------------------------------------------------------------- */

/** Registered memory for a chunk, a GPU's or the CPU's. Registered as long as it is kept, so that
 * no message registers. */
typedef struct mca_pml_umrddt_pack_buffer_t {
    struct mca_pml_umrddt_pack_buffer_t *next; /**< among those that nobody uses, newest first */
    mca_pml_umrddt_stage_t stage;              /**< the CPU's; all 0 if it is a GPU's */
    uint64_t scratch;                          /**< a GPU's; 0 if it is the CPU's */
    opal_umrddt_gpu_engine_t *engine;          /**< whose GPU copies; NULL: the CPU does */
    size_t room;                               /**< bytes, a power of 2 */
    uint32_t hca;                              /**< of this process, that it is registered with */
    uint32_t asked;                            /**< since it was refused */
    bool quarantined;                          /**< what came there may still land */
    opal_iov_cache_layout_t *layout;           /**< of one piece of so many bytes */
    mca_btl_umr_memory_t *memory;              /**< NULL: the HCA is refused it */
    mca_btl_umr_key_t key;                     /**< for peers */
} mca_pml_umrddt_pack_buffer_t;

/**
 * Take a buffer.
 *
 * @param[in]  endpoint  whose HCA shall reach it
 * @param[in]  engine    that copies to or from it; NULL: the CPU does
 * @param[in]  where     the user's buffer
 * @param[in]  device    of the engine's GPU's memory; else of the CPU's, pinned where possible
 * @param[in]  size      bytes
 * @param[out] buffer    the caller's until _put
 *
 * @retval OMPI_SUCCESS
 * @retval OMPI_ERR_OUT_OF_RESOURCE  no memory, or the HCA cannot have it
 */
int mca_pml_umrddt_pack_buffer_get(mca_btl_umr_endpoint_t *endpoint,
                                   opal_umrddt_gpu_engine_t *engine,
                                   const mca_pml_umrddt_where_t *where, bool device, size_t size,
                                   mca_pml_umrddt_pack_buffer_t **buffer);

/** Give it back: nobody writes to it, or reads from it, any more; or it is quarantined. */
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

/** A place for a chunk. */
typedef struct mca_pml_umrddt_chunk_t {
    mca_pml_umrddt_phase_t phase;
    mca_pml_umrddt_pack_t *pack;
    uint64_t start;
    uint64_t end;
    bool lost;                    /**< it has no bytes */
    mca_pml_umrddt_stage_t stage; /**< all 0: it travels from, or to, the user's buffer */
    uint64_t scratch;             /**< of the device, or 0 */
    opal_umrddt_gpu_copy_t *copy;
    ompi_request_t *request;              /**< wire: the base PML */
    mca_pml_umrddt_pack_buffer_t *buffer; /**< wire: the HCA; the stage is its memory */
    bool over;                            /**< the HCA has done with it ... */
    int status;                           /**< ... and so */
} mca_pml_umrddt_chunk_t;

/** How the wire by the HCA stands. */
typedef struct mca_pml_umrddt_pack_hca_t {
    mca_btl_umr_endpoint_t *endpoint; /**< NULL: the base PML is the wire */
    uint32_t granted;                 /**< chunks that the sender may write, so far */
    uint32_t done;                    /**< receiver: FINs that have come */
    uint32_t last;   /**< receiver, if stopped: how many come, as the sender says */
    bool told;       /**< receiver: the PACK is out */
    bool stopped;    /**< sender: the receiver wants the base PML; receiver: the sender failed */
    bool broken;     /**< nothing goes through the endpoint any more */
    unsigned places; /**< sender: of the receiver */
    mca_btl_umr_key_t place[MCA_PML_UMRDDT_PACK_DEPTH];
} mca_pml_umrddt_pack_hca_t;

struct mca_pml_umrddt_pack_t {
    mca_pml_umrddt_wait_t wait; /**< for what is let go of, if it is dropped */
    mca_pml_umrddt_pack_t *next_idle;
    mca_pml_umrddt_pack_job_t job;
    mca_pml_umrddt_where_t where;
    opal_umrddt_gpu_engine_t *engine; /**< NULL: the CPU copies */
    bool one_piece;                   /**< the layout */
    uint64_t chunks;                  /**< of the message; by the HCA, no more than 32 bits */
    uint64_t next;                    /**< first byte of what is not begun */
    unsigned begun, sent;             /**< chunks, so far */
    unsigned depth;
    unsigned under_way;
    unsigned copying;  /**< of those, how many a GPU has */
    unsigned refusals; /**< of the base PML, in a row */
    bool not_packed;
    bool failed;
    mca_pml_umrddt_pack_hca_t hca;
    mca_pml_umrddt_chunk_t chunk[MCA_PML_UMRDDT_PACK_DEPTH];
};

/** True if the HCA is the wire. */
static inline bool mca_pml_umrddt_pack_by_hca(const mca_pml_umrddt_pack_t *pack)
{
    return NULL != pack->hca.endpoint;
}

/** The place of a chunk, by its number. */
static inline mca_pml_umrddt_chunk_t *mca_pml_umrddt_pack_place(mca_pml_umrddt_pack_t *pack,
                                                                unsigned number)
{
    return &pack->chunk[number % pack->depth];
}

/** A chunk is through, or given up. */
static inline void mca_pml_umrddt_pack_chunk_over(mca_pml_umrddt_pack_t *pack,
                                                  mca_pml_umrddt_chunk_t *chunk)
{
    chunk->phase = MCA_PML_UMRDDT_PHASE_IDLE;
    --pack->under_way;
}

/**
 * The CPU's memory for a chunk, pinned where a GPU copies. As mca_pml_umrddt_stage_get.
 *
 * @param[in] where   the user's buffer
 * @param[in] engine  that copies to or from the stage; NULL: the CPU does
 */
int mca_pml_umrddt_pack_stage_get(const mca_pml_umrddt_where_t *where,
                                  const opal_umrddt_gpu_engine_t *engine, size_t size,
                                  mca_pml_umrddt_stage_t *stage);

/** A receiver has a chunk's bytes, or (chunk->lost) will not get them: unpack it. */
void mca_pml_umrddt_pack_arrived(mca_pml_umrddt_pack_t *pack, mca_pml_umrddt_chunk_t *chunk);

/* ---------------------------------------------------------------------------------------------
 * The HCA (pml_umrddt_pack_hca.c)
 * ------------------------------------------------------------------------------------------- */

/** Memory for a chunk, which the HCA reaches. @return as mca_pml_umrddt_pack_buffer_get */
int mca_pml_umrddt_pack_hca_room(mca_pml_umrddt_pack_t *pack, mca_pml_umrddt_chunk_t *chunk);

/** True if the next chunk may begin. Of a receiver, then its FIN is reserved. */
bool mca_pml_umrddt_pack_hca_may_begin(mca_pml_umrddt_pack_t *pack);

/** True if the sender may write its next chunk. */
static inline bool mca_pml_umrddt_pack_hca_may_send(const mca_pml_umrddt_pack_t *pack)
{
    return pack->sent < pack->hca.granted;
}

/** Write a chunk that is ready. */
void mca_pml_umrddt_pack_hca_send(mca_pml_umrddt_pack_t *pack, mca_pml_umrddt_chunk_t *chunk);

/** The HCA has this chunk, or the flush: see. @return true if something has changed */
bool mca_pml_umrddt_pack_hca_look(mca_pml_umrddt_pack_t *pack, mca_pml_umrddt_chunk_t *chunk);

/** Behind the chunks of a step: tell the sender of places, and end early what must end. */
void mca_pml_umrddt_pack_hca_step(mca_pml_umrddt_pack_t *pack);

/** A receiver's chunks, of which no sender was told, are dropped. */
void mca_pml_umrddt_pack_hca_drop(mca_pml_umrddt_pack_t *pack);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_PACK_CHUNKS_H */
