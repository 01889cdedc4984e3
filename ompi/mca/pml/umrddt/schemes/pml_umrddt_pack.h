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
 * Packed messages, sent in chunks: the scheme for GPU memory where neither the HCAs can gather and
 * scatter in the user's buffers nor CUDA IPC is possible. pml_umrddt_pack.c has the chunks of one
 * side; pml_umrddt_pack_scheme.c has the schemes.
 */

/*
 * Each side has a few chunks in progress, each in a buffer of its own. A sender copies a chunk from
 * the user's layout into the buffer and sends it; a receiver receives it and copies it into the
 * layout. Packing, transfer and unpacking of different chunks thus overlap. The receiver selects
 * the scheme (umrddt_select_rules.h):
 *
 *     pack-gdr     a GPU packs into its own memory; the wire reads and writes GPU memory
 *     pack-staged  a GPU packs into its own memory; the packed bytes are copied to pinned system
 *                  memory (a contiguous GPU buffer: directly)
 *     pack-host    a GPU packs directly into pinned system memory, in one operation
 *
 * For a buffer in system memory the CPU packs. If it is contiguous and the base PML sends it, no
 * copy is made. The sides copy independently: the bytes on the wire are the same.
 *
 * The wire is the base PML or the HCA. The base PML sends chunk i as the i-th message with the tag
 * DATA of the sender's request id. The CTS_PACK has the chunk size. An empty message reports that
 * the sender could not pack the chunk. All later ones are then empty too, and the receiver answers
 * FALLBACK. All schemes use the HCA if possible (pml_umrddt_pack_hca.c). Without it pack-gdr needs
 * a base PML that accepts GPU memory (pml_umrddt_pack_buffers.c).
 *
 * test/model/pack.pml is a model of this protocol, which is checked.
 *
 * No message waits for the buffers of another. Beyond pml_umrddt_pack_bytes each message has one
 * buffer. Progress thread only.
 */

#ifndef MCA_PML_UMRDDT_PACK_H
#define MCA_PML_UMRDDT_PACK_H

#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_engine.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_send_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_scheme.h"

BEGIN_C_DECLS

typedef struct mca_pml_umrddt_pack_t mca_pml_umrddt_pack_t;

/** Data of a send in state BUSY, or of a receive in state PACK. */
typedef struct mca_pml_umrddt_pack_held_t {
    mca_pml_umrddt_pack_t *pack;
} mca_pml_umrddt_pack_held_t;

/* ---------------------------------------------------------------------------------------------
 * One side's chunks (pml_umrddt_pack.c)
 * ------------------------------------------------------------------------------------------- */

/** The data that one side transfers, and its peer. */
typedef struct mca_pml_umrddt_pack_job_t {
    void *buf;
    opal_iov_cache_layout_t *layout; /**< layout of the buffer; must live until _end or _drop */
    const opal_umrddt_gpu_where_t *where;
    bool in;         /**< true: receiver, data moves into the buffer */
    unsigned scheme; /**< exactly one of MCA_PML_UMRDDT_BIT_PACK_* */
    uint64_t total;  /**< in bytes; not 0 */
    uint64_t chunk;  /**< bytes of each chunk; the last may be shorter */
    mca_pml_umrddt_comm_t *comm;
    int peer;
    int tag;     /**< base PML as the wire */
    bool device; /**< pack-gdr and base PML as the wire: it may get GPU memory; false: this side
                    uses pinned buffers */

    mca_btl_umr_endpoint_t *endpoint; /**< HCA as the wire; NULL: base PML */
    const mca_pml_umrddt_rts_t *rts;  /**< receiver: must live as long */
    uint32_t fin;                     /**< sender: immediate data of each chunk */
    uint32_t granted; /**< sender: chunks that may be written from the start, or for which the
                         receiver has posted receives */
    unsigned slots;   /**< sender: number of the receiver's buffers, at least 1 */
    const mca_pml_umrddt_wire_key_t *slot; /**< array of that many entries; copied */
} mca_pml_umrddt_pack_job_t;

/** Result of a packed message. */
typedef enum mca_pml_umrddt_pack_end_t {
    MCA_PML_UMRDDT_PACK_WELL,
    MCA_PML_UMRDDT_PACK_NOT_PACKED, /**< the sender could not read its buffer */
    MCA_PML_UMRDDT_PACK_STOPPED,    /**< sender: the receiver falls back to the base PML (HCA) */
    MCA_PML_UMRDDT_PACK_BROKEN,     /**< the endpoint has failed (HCA) */
    MCA_PML_UMRDDT_PACK_FAILED      /**< the message fails; no fallback is possible */
} mca_pml_umrddt_pack_end_t;

/**
 * Allocate buffers. No transfer is started.
 *
 * @param[out] pack  owned by the caller until mca_pml_umrddt_pack_end or _drop
 *
 * @retval OMPI_SUCCESS, OMPI_ERR_OUT_OF_RESOURCE, or the driver's error
 */
int mca_pml_umrddt_pack_begin(const mca_pml_umrddt_pack_job_t *job, mca_pml_umrddt_pack_t **pack);

/** Make progress. @return true if all chunks have ended, successfully or not */
bool mca_pml_umrddt_pack_step(mca_pml_umrddt_pack_t *pack);

/** Call after mca_pml_umrddt_pack_step returned true: release everything. @return the result */
mca_pml_umrddt_pack_end_t mca_pml_umrddt_pack_end(mca_pml_umrddt_pack_t *pack);

/** Receiver that has not answered the sender yet: cancel its receives and release everything. */
void mca_pml_umrddt_pack_drop(mca_pml_umrddt_pack_t *pack);

/* The HCA as the wire (pml_umrddt_pack_hca.c). Without it they return false or 0. */

/** Set in a CTS_PACK the receiver's buffers (key_count, keys; none: the base PML is the wire) and
 * the chunks that the sender may write at once (start). */
void mca_pml_umrddt_pack_report(mca_pml_umrddt_pack_t *pack, mca_pml_umrddt_reply_t *reply);

/** A CREDIT has arrived: the sender may write more chunks. @return false: the value is invalid */
bool mca_pml_umrddt_pack_grant(mca_pml_umrddt_pack_t *pack, uint64_t granted);

/** Returns true if the sender needs no further CREDIT. */
bool mca_pml_umrddt_pack_all_granted(const mca_pml_umrddt_pack_t *pack);

/** A FIN has arrived. @return false: none was expected */
bool mca_pml_umrddt_pack_fin(mca_pml_umrddt_pack_t *pack);

/** A NACK has arrived: the sender writes no more. @return false: the base PML is the wire, and the
 * sender has sent nothing */
bool mca_pml_umrddt_pack_sender_failed(mca_pml_umrddt_pack_t *pack,
                                       const mca_pml_umrddt_nack_header_t *fail);

/** Free the cached registered buffers. Call before the HCA is closed. */
void mca_pml_umrddt_pack_buffers_close(void);

/** Number of chunks of a message. Neither argument may be 0. */
static inline uint64_t mca_pml_umrddt_pack_chunks(uint64_t total, uint64_t chunk)
{
    return (total - 1) / chunk + 1;
}

/** Free cached records. */
void mca_pml_umrddt_pack_close(void);

/**
 * Validate a CTS_PACK: every field that is used.
 *
 * @param[in] length   bytes of the reply, with the keys that follow it
 * @param[in] offered  schemes in the envelope
 * @param[in] size     bytes of the message
 * @param[in] hca      the sender can write by the HCA
 */
bool mca_pml_umrddt_pack_reply_valid(const mca_pml_umrddt_reply_t *reply, size_t length,
                                     unsigned offered, uint64_t size, bool hca);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_PACK_H */
