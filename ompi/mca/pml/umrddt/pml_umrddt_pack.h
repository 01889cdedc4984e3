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
 * Messages that travel packed, in chunks: where a GPU is at one end at least, and the HCAs neither
 * gather nor scatter in the user's buffers, nor can CUDA IPC be used.
 *
 * A side has a few chunks under way at once, each in its own buffer. At a sender a chunk is copied
 * out of the user's layout into a buffer, and sent from there; at a receiver it is received into
 * one, and copied into the layout. So the packing of one chunk, the wire's work on another and the
 * unpacking of a third go on at the same time. What copies, and where to, follows from where the
 * user's buffer is, and from the scheme, which the receiver chooses (pml_umrddt_choice.c):
 *
 *   pack-gdr     a GPU packs into memory of its own, out of which, and into which, the HCAs write
 *   pack-staged  a GPU packs into memory of its own, from where the bytes are moved to pinned
 *                memory in one piece (one piece of GPU memory: at once)
 *   pack-host    a GPU packs straight into pinned memory, in one operation
 *
 * A side whose buffer is the CPU's packs by the CPU, or, where it is one piece and the base PML
 * sends it, not at all. What a side does is its own affair: the bytes on the wire are the same.
 *
 * The wire is the base PML: chunk i of a message is its message i with the tag DATA of the sender's
 * slot, as long as the PACK says. An empty one says that the sender could not pack it; all later
 * ones are empty, too, and then the receiver asks for the message in the ordinary way (verdict
 * HOST). Or the wire is the HCA (pml_umrddt_pack_hca.c): always of pack-gdr, and of the others
 * where both sides have one.
 *
 * test/model/pack.pml is a model of it, which is checked.
 *
 * Messages wait for nobody's buffers: beyond pml_umrddt_pack_bytes each has one. All of it is of
 * progress only.
 */

#ifndef MCA_PML_UMRDDT_PACK_H
#define MCA_PML_UMRDDT_PACK_H

#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_engine.h"

#include "pml_umrddt.h"
#include "pml_umrddt_stage.h"

BEGIN_C_DECLS

/** Chunks that a message may have under way. */
#define MCA_PML_UMRDDT_PACK_DEPTH 16

typedef struct mca_pml_umrddt_pack_t mca_pml_umrddt_pack_t;

/* ---------------------------------------------------------------------------------------------
 * One side's chunks (pml_umrddt_pack.c)
 * ------------------------------------------------------------------------------------------- */

/** What a side carries, and between what. */
typedef struct mca_pml_umrddt_pack_job_t {
    void *buf;
    opal_iov_cache_layout_t *layout; /**< of the buffer; must live until _end or _drop */
    const mca_pml_umrddt_where_t *where;
    bool in;         /**< into the buffer */
    unsigned scheme; /**< MCA_PML_UMRDDT_BIT_PACK_*, one */
    uint64_t total;  /**< bytes; not 0 */
    uint64_t chunk;  /**< of each, but the last */
    mca_pml_umrddt_comm_t *comm;
    int peer;
    int tag; /**< wire: the base PML */

    mca_btl_umr_endpoint_t *endpoint; /**< wire: the HCA, through this one; else NULL */
    const mca_pml_umrddt_rts_t *rts;  /**< receiver: lives as long */
    uint32_t fin;                     /**< sender: immediate data of each chunk */
    uint32_t granted;                 /**< sender: chunks that may be written from the start, or
                                           that the receiver has posted receives for */
    unsigned places;                  /**< sender: of the receiver; 1 at least */
    const mca_pml_umrddt_wire_key_t *place; /**< as many; copied */
} mca_pml_umrddt_pack_job_t;

/** How it ended. */
typedef enum mca_pml_umrddt_pack_end_t {
    MCA_PML_UMRDDT_PACK_WELL,
    MCA_PML_UMRDDT_PACK_NOT_PACKED, /**< the sender could not read its buffer */
    MCA_PML_UMRDDT_PACK_STOPPED,    /**< sender: the receiver wants the base PML (HCA) */
    MCA_PML_UMRDDT_PACK_BROKEN,     /**< nothing goes through the endpoint any more (HCA) */
    MCA_PML_UMRDDT_PACK_FAILED      /**< nor can the message go otherwise */
} mca_pml_umrddt_pack_end_t;

/**
 * Take buffers; nothing is under way yet.
 *
 * @param[out] pack  the caller's until mca_pml_umrddt_pack_end or _drop
 *
 * @retval OMPI_SUCCESS, OMPI_ERR_OUT_OF_RESOURCE, or the driver's error
 */
int mca_pml_umrddt_pack_begin(const mca_pml_umrddt_pack_job_t *job, mca_pml_umrddt_pack_t **pack);

/** Go on. @return true if all chunks are through, one way or another */
bool mca_pml_umrddt_pack_step(mca_pml_umrddt_pack_t *pack);

/** After that: give everything back. @return how it ended */
mca_pml_umrddt_pack_end_t mca_pml_umrddt_pack_end(mca_pml_umrddt_pack_t *pack);

/** Before that, of a receiver to which nothing was sent: take the receives back. */
void mca_pml_umrddt_pack_drop(mca_pml_umrddt_pack_t *pack);

/* The HCA as the wire (pml_umrddt_pack_hca.c): nothing of these is true or done without it. */

/** A receiver's places, for the sender. @return how many; 0: the base PML is the wire */
size_t mca_pml_umrddt_pack_places(const mca_pml_umrddt_pack_t *pack,
                                  mca_pml_umrddt_wire_key_t *places);

/** The sender will be told now. @return how many chunks it may write at once */
uint32_t mca_pml_umrddt_pack_told(mca_pml_umrddt_pack_t *pack);

/** A sender may write more. @return false: that makes no sense */
bool mca_pml_umrddt_pack_grant(mca_pml_umrddt_pack_t *pack, uint64_t granted);

/** True if a sender waits for no grant any more. */
bool mca_pml_umrddt_pack_all_granted(const mca_pml_umrddt_pack_t *pack);

/** The receiver wants no more of a sender, who has the message otherwise to send, or not at all. */
void mca_pml_umrddt_pack_stop(mca_pml_umrddt_pack_t *pack);

/** A sender cannot go on; what is written arrives. */
void mca_pml_umrddt_pack_give_up(mca_pml_umrddt_pack_t *pack);

/** Chunks that a sender has written, for its notice of failure. */
uint32_t mca_pml_umrddt_pack_written(const mca_pml_umrddt_pack_t *pack);

/** A FIN has come. @return false: none was expected */
bool mca_pml_umrddt_pack_fin(mca_pml_umrddt_pack_t *pack);

/** The sender writes no more. @return false: the base PML is the wire, nothing was sent */
bool mca_pml_umrddt_pack_sender_failed(mca_pml_umrddt_pack_t *pack,
                                       const mca_pml_umrddt_fail_t *fail);

/** Free the registered buffers that are kept, before the HCA is closed. */
void mca_pml_umrddt_pack_buffers_close(void);

/** How many bytes a chunk of a message has. @param[in] block  as of opal_umrddt_select_chunk */
uint64_t mca_pml_umrddt_pack_chunk(uint64_t total, uint64_t block);

/**
 * The same, of whole blocks if all are as long.
 *
 * @param[in] layout  of one side
 * @param[in] pieces  of the other, which count where this one has one
 */
static inline uint64_t mca_pml_umrddt_pack_chunk_of(const opal_iov_cache_layout_t *layout,
                                                    uint64_t pieces, uint64_t total)
{
    uint64_t block = 0;

    if (1 < layout->iov_count) {
        block = layout->form->uniform;
    } else if (1 < pieces && 0 == total % pieces) {
        block = total / pieces;
    }
    return mca_pml_umrddt_pack_chunk(total, block);
}

/** How many chunks that makes. Neither is 0. */
static inline uint64_t mca_pml_umrddt_pack_chunks(uint64_t total, uint64_t chunk)
{
    return (total - 1) / chunk + 1;
}

/** Free what is kept for the next message. */
void mca_pml_umrddt_pack_close(void);

/* ---------------------------------------------------------------------------------------------
 * The sender (pml_umrddt_pack_send.c)
 * ------------------------------------------------------------------------------------------- */

/** True if the user has named one of these schemes. */
static inline bool mca_pml_umrddt_pack_forced(const mca_pml_umrddt_comm_t *comm)
{
    return MCA_PML_UMRDDT_SCHEME_PACK_GDR == comm->scheme
           || MCA_PML_UMRDDT_SCHEME_PACK_STAGED == comm->scheme
           || MCA_PML_UMRDDT_SCHEME_PACK_HOST == comm->scheme;
}

/** Smallest message that a GPU has packed, in bytes: with figures the model knows better. */
static inline size_t mca_pml_umrddt_pack_from(void)
{
    return mca_pml_umrddt.declines ? mca_pml_umrddt.params.min_size
                                   : mca_pml_umrddt.params.pack_min;
}

/** True if a message may go this way, as far as the sender knows. @param[in] size  bytes of it */
static inline bool mca_pml_umrddt_pack_takes(const mca_pml_umrddt_comm_t *comm,
                                             const mca_pml_umrddt_where_t *where, size_t size)
{
    return 0 != (MCA_PML_UMRDDT_BITS_PACK & mca_pml_umrddt.schemes & comm->schemes) && !where->mixed
           && (mca_pml_umrddt_pack_forced(comm)
               || (OPAL_UMRDDT_GPU_DEVICE == where->memory.kind
                   && mca_pml_umrddt_pack_from() <= size));
}

/** The same of a message from memory of the CPU, if it is received in that of a GPU. */
static inline bool mca_pml_umrddt_pack_takes_to_gpu(const mca_pml_umrddt_comm_t *comm,
                                                    const mca_pml_umrddt_peer_t *peer, size_t size)
{
    return 0 != (MCA_PML_UMRDDT_BITS_PACK & mca_pml_umrddt.schemes & comm->schemes) && peer->has_gpu
           && mca_pml_umrddt_pack_from() <= size;
}

/** As mca_pml_umrddt_pack_offer, where a GPU, or the user, may have something to do with it. */
void mca_pml_umrddt_pack_offer_some(mca_pml_umrddt_send_t *send);

/** Offer the schemes in the envelope, beside others that are in it already; and the HCA, if the
 * message may go that way: send->endpoint. */
static inline void mca_pml_umrddt_pack_offer(mca_pml_umrddt_send_t *send)
{
    send->pack = NULL;
    if (OPAL_UNLIKELY(send->peer->has_gpu || mca_pml_umrddt_on_gpu(&send->where)
                      || mca_pml_umrddt_pack_forced(send->comm))) {
        mca_pml_umrddt_pack_offer_some(send);
    }
}

/**
 * Whether what a receiver asks for makes sense. Every field that is used is looked at.
 *
 * @param[in] length   of the reply, with what follows it
 * @param[in] offered  the envelope's schemes
 * @param[in] size     bytes of the message
 * @param[in] HCA     the sender can write
 */
bool mca_pml_umrddt_pack_reply_valid(const mca_pml_umrddt_reply_t *reply, size_t length,
                                     unsigned offered, uint64_t size, bool hca);

/** As the member of a scheme: a PACK (or a GRANT, which makes no sense then) has come. */
void mca_pml_umrddt_pack_reply(mca_pml_umrddt_send_t *send, size_t length);

/** In state PACK, behind a reply: listen for the next one as long as chunks are not granted. The
 * message's wait is for its chunks, so if the base PML refuses, the message is given up. */
void mca_pml_umrddt_pack_listen(mca_pml_umrddt_send_t *send);

/** In state PACK a reply has come, not @p valid if it is none for this message. */
void mca_pml_umrddt_pack_replied(mca_pml_umrddt_send_t *send, bool valid);

/* ---------------------------------------------------------------------------------------------
 * The receiver (pml_umrddt_pack_recv.c, pml_umrddt_choice.c)
 * ------------------------------------------------------------------------------------------- */

/** As mca_pml_umrddt_pack_chosen. @param[in] schemes  as in an envelope, with its other bits */
unsigned mca_pml_umrddt_pack_rule(unsigned schemes, const mca_pml_umrddt_where_t *where,
                                  uint64_t total);

/** The scheme for a message that goes by neither HCA nor CUDA IPC; 0: none, the base PML's. */
static inline unsigned mca_pml_umrddt_pack_chosen(const mca_pml_umrddt_rts_t *rts,
                                                  const mca_pml_umrddt_where_t *where,
                                                  uint64_t total)
{
    return mca_pml_umrddt_pack_rule(rts->schemes, where, total);
}

END_C_DECLS

#endif /* MCA_PML_UMRDDT_PACK_H */
