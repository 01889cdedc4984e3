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
 * The HCA as the wire of packed messages; read pml_umrddt_pack.h first.
 */

/*
 * The CTS_PACK carries the addresses and keys of the receiver's registered buffers, and the number
 * of chunks that may be written. CREDIT replies raise that number as buffers become free. The
 * sender's HCA writes chunk i to buffer i % places, in order, each with the message's FIN as
 * immediate data. Invariants:
 *
 *     sender    sent <= granted, sent <= begun
 *     receiver  begun >= granted >= done (FINs)
 *
 * The receiver reserves a receive for the FIN of each granted chunk. Chunks in GPU memory are
 * flushed before they are unpacked, as messages without chunks are (docs/gpu.rst).
 *
 * No write is in progress when a buffer is released. Either all granted chunks have arrived, or the
 * NACK names the number written and these have arrived, or the endpoint has failed. In that case
 * chunks that may have come without a FIN are flushed: they must not come after the next message.
 */

#include "ompi_config.h"

#include "opal/util/output.h"

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_progress.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_pack_chunks.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_rdma.h"

int mca_pml_umrddt_pack_hca_room(mca_pml_umrddt_pack_t *pack, mca_pml_umrddt_chunk_t *chunk)
{
    bool device = MCA_PML_UMRDDT_BIT_PACK_GDR == pack->job.scheme && NULL != pack->engine;
    int rc = mca_pml_umrddt_pack_buffer_get(pack->hca.endpoint, pack->engine, &pack->where, device,
                                            pack->job.chunk, &chunk->buffer);

    if (OMPI_SUCCESS != rc && device) {
        /* the GPU memory could not be registered with the HCA: pack into system memory */
        MCA_PML_UMRDDT_COUNT(pack_no_gdr);
        device = false;
        rc = mca_pml_umrddt_pack_buffer_get(pack->hca.endpoint, pack->engine, &pack->where, device,
                                            pack->job.chunk, &chunk->buffer);
    }
    if (OMPI_SUCCESS != rc) {
        chunk->buffer = NULL;
        return rc;
    }
    chunk->stage = chunk->buffer->stage;
    if (device) {
        chunk->stage.bytes = (unsigned char *) (uintptr_t) chunk->buffer->scratch;
        chunk->stage.room = chunk->buffer->room;
        chunk->stage.kind = OPAL_UMRDDT_GPU_DEVICE;
    }
    return OMPI_SUCCESS;
}

/* ---------------------------------------------------------------------------------------------
 * The sender
 * ------------------------------------------------------------------------------------------- */

bool mca_pml_umrddt_pack_reply_valid(const mca_pml_umrddt_reply_t *reply, size_t length,
                                     unsigned offered, uint64_t size, bool hca)
{
    bool one = MCA_PML_UMRDDT_BIT_PACK_GDR == reply->what
               || MCA_PML_UMRDDT_BIT_PACK_STAGED == reply->what
               || MCA_PML_UMRDDT_BIT_PACK_HOST == reply->what;
    uint64_t chunks;

    if (!one || 0 == (reply->what & offered) || 0 == reply->total || size < reply->total
        || 0 == reply->chunk || reply->total < reply->chunk
        || MCA_PML_UMRDDT_MAX_PACK_CHUNK < reply->chunk
        || (MCA_PML_UMRDDT_MIN_PACK_CHUNK > reply->chunk && reply->total > reply->chunk)
        || MCA_PML_UMRDDT_PACK_DEPTH < reply->key_count
        || sizeof(*reply) + reply->key_count * sizeof(reply->keys[0]) != length) {
        return false;
    }
    chunks = mca_pml_umrddt_pack_chunks(reply->total, reply->chunk);
    if (reply->start > chunks) {
        return false;
    }
    if (0 == reply->key_count) {
        return true;
    }
    for (uint32_t i = 0; i < reply->key_count; ++i) {
        if (reply->chunk > reply->keys[i].length
            || UINT64_MAX - reply->keys[i].addr < reply->keys[i].length) {
            return false;
        }
    }
    return hca && reply->start <= reply->key_count && UINT32_MAX >= chunks;
}

/** Callback of the HCA: a write or a flush has completed, or has failed. */
static void hca_done(void *context, int status)
{
    mca_pml_umrddt_chunk_t *chunk = context;

    chunk->status = status;
    chunk->over = true;
}

void mca_pml_umrddt_pack_hca_send(mca_pml_umrddt_pack_t *pack, mca_pml_umrddt_chunk_t *chunk)
{
    mca_pml_umrddt_pack_buffer_t *buffer = chunk->buffer;
    const mca_btl_umr_key_t *slot = &pack->hca.slot[pack->sent % pack->hca.slots];
    const mca_btl_umr_direct_t write = {
        .buffer = chunk->stage.bytes,
        .layout = buffer->layout,
        .memory = buffer->memory,
        .to = buffer->layout->form,
        .to_buffer = slot->addr,
        .regions = slot,
        .region_count = 1,
        .start = 0,
        .end = chunk->end - chunk->start,
    };
    const mca_pml_umrddt_chunk_t *last = mca_pml_umrddt_pack_slot(pack, pack->sent - 1);
    int rc = OPAL_ERR_TIMEOUT;

    chunk->over = false;
    /* without an answer to the last chunk, none was written */
    if (0 == pack->sent || !last->over || OPAL_ERR_TIMEOUT != last->status) {
        rc = mca_pml_umrddt.hca->put_direct(pack->hca.endpoint, &write, &pack->job.fin, hca_done,
                                            chunk);
    }
    if (OPAL_SUCCESS != rc) {
        /* nothing was posted; earlier writes still get their callbacks */
        pack->hca.broken =
            pack->hca.broken || (OPAL_ERR_OUT_OF_RESOURCE != rc && OPAL_ERR_TIMEOUT != rc);
        pack->not_packed = true;
        mca_pml_umrddt_pack_chunk_over(pack, chunk);
        return;
    }
    ++pack->sent;
    chunk->phase = MCA_PML_UMRDDT_PHASE_WIRE;
    MCA_PML_UMRDDT_COUNT(pack_by_hca);
    if (0 < pack->copying) {
        MCA_PML_UMRDDT_COUNT(pack_overlaps);
    }
}

/** Sender: stop. Chunks that were not posted are not written. */
static void sender_stop(mca_pml_umrddt_pack_t *pack)
{
    pack->next = pack->job.total;
    for (unsigned i = 0; i < pack->depth; ++i) {
        if (MCA_PML_UMRDDT_PHASE_READY == pack->chunk[i].phase) {
            mca_pml_umrddt_pack_chunk_over(pack, &pack->chunk[i]);
        }
    }
}

bool mca_pml_umrddt_pack_grant(mca_pml_umrddt_pack_t *pack, uint64_t granted)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (!mca_pml_umrddt_pack_by_hca(pack) || granted <= pack->hca.granted
        || granted > pack->chunks) {
        return false;
    }
    pack->hca.granted = (uint32_t) granted;
    return true;
}

bool mca_pml_umrddt_pack_all_granted(const mca_pml_umrddt_pack_t *pack)
{
    return !mca_pml_umrddt_pack_by_hca(pack) || pack->hca.granted == pack->chunks;
}

/* ---------------------------------------------------------------------------------------------
 * The receiver
 * ------------------------------------------------------------------------------------------- */

/** The sender may write all chunks that have begun. */
static uint32_t grant_begun(mca_pml_umrddt_pack_t *pack)
{
    pack->hca.reported = true;
    pack->hca.granted = pack->begun;
    return pack->hca.granted;
}

void mca_pml_umrddt_pack_report(mca_pml_umrddt_pack_t *pack, mca_pml_umrddt_reply_t *reply)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    reply->start = grant_begun(pack);
    reply->key_count = mca_pml_umrddt_pack_by_hca(pack) ? pack->depth : 0;
    for (unsigned i = 0; i < reply->key_count; ++i) {
        const mca_btl_umr_key_t *key = &pack->chunk[i].buffer->key;

        reply->keys[i] = (mca_pml_umrddt_wire_key_t){
            .addr = key->addr, .length = (uint32_t) pack->job.chunk, .rkey = key->rkey};
    }
}

bool mca_pml_umrddt_pack_hca_may_begin(mca_pml_umrddt_pack_t *pack)
{
    static mca_pml_umrddt_shortage_t shortage;
    int rc;

    if (pack->hca.stopped || pack->hca.broken) {
        return false;
    }
    if (!pack->job.in) {
        return true;
    }
    rc = mca_pml_umrddt.hca->fin_reserve(pack->hca.endpoint);
    if (OPAL_LIKELY(OPAL_SUCCESS == rc)) {
        shortage.lasted = 0;
        return true;
    }
    if (OPAL_ERR_OUT_OF_RESOURCE != rc) {
        pack->hca.broken = true;
    } else if (0 == pack->in_flight && mca_pml_umrddt_rdma_shortage(&shortage)) {
        /* others have all receives, and may not call MPI: as if the sender had given up */
        pack->not_packed = true;
        pack->hca.stopped = true;
        pack->hca.last = pack->hca.done;
    }
    return false;
}

/** Send a CREDIT for the buffers that are free again. */
static void grant(mca_pml_umrddt_pack_t *pack)
{
    mca_pml_umrddt_reply_t reply;

    mca_pml_umrddt_reply_init(pack->job.rts, MCA_PML_UMRDDT_REPLY_CREDIT, &reply);
    reply.start = pack->begun;
    if (OMPI_SUCCESS == mca_pml_umrddt_reply_send(pack->job.comm, pack->job.peer, &reply)) {
        (void) grant_begun(pack);
    } else {
        pack->hca.broken = true; /* the sender would wait forever; this way its writes fail */
    }
}

/** A flush has completed: the GPU sees the chunk, or (error) may never see it. */
static void visible(mca_pml_umrddt_pack_t *pack, mca_pml_umrddt_chunk_t *chunk, int status)
{
    if (OPAL_SUCCESS != status) {
        chunk->buffer->quarantined = true;
        if (!chunk->lost) {
            opal_output(0, "pml:umrddt: a part of a message came to a GPU that cannot be made to "
                           "see it; the message fails");
            pack->failed = true;
            chunk->lost = true;
        }
    }
    mca_pml_umrddt_pack_arrived(pack, chunk);
}

/** A chunk was written, or (chunk->lost) may have been. */
static void flush(mca_pml_umrddt_pack_t *pack, mca_pml_umrddt_chunk_t *chunk)
{
    int rc;

    chunk->over = false;
    chunk->phase = MCA_PML_UMRDDT_PHASE_FLUSH;
    rc = mca_pml_umrddt.hca->memory_flush(chunk->buffer->memory, hca_done, chunk);
    if (OPAL_ERR_WOULD_BLOCK != rc) {
        visible(pack, chunk, rc);
    }
}

bool mca_pml_umrddt_pack_fin(mca_pml_umrddt_pack_t *pack)
{
    mca_pml_umrddt_chunk_t *chunk = mca_pml_umrddt_pack_slot(pack, pack->hca.done);

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (!mca_pml_umrddt_pack_by_hca(pack) || pack->hca.done >= pack->hca.granted
        || (!pack->hca.broken && MCA_PML_UMRDDT_PHASE_WIRE != chunk->phase)) {
        return false;
    }
    if (pack->hca.broken) {
        return true; /* it was in flight when the endpoint failed; its chunk is cancelled */
    }
    ++pack->hca.done;
    flush(pack, chunk);
    return true;
}

bool mca_pml_umrddt_pack_sender_failed(mca_pml_umrddt_pack_t *pack,
                                       const mca_pml_umrddt_nack_header_t *fail)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (!mca_pml_umrddt_pack_by_hca(pack)) {
        return false;
    }
    pack->not_packed = true;
    pack->hca.stopped = true;
    pack->hca.last = fail->written;
    pack->hca.broken = pack->hca.broken || 0 != fail->in_flight || fail->written < pack->hca.done
                       || fail->written > pack->hca.granted;
    return true;
}

void mca_pml_umrddt_pack_hca_stop(mca_pml_umrddt_pack_t *pack)
{
    pack->next = pack->job.total;
    for (unsigned i = 0; i < pack->depth; ++i) {
        mca_pml_umrddt_chunk_t *chunk = &pack->chunk[i];

        if (MCA_PML_UMRDDT_PHASE_WIRE == chunk->phase && pack->hca.broken) {
            chunk->lost = true; /* it may have come without its FIN */
            flush(pack, chunk);
        } else if (MCA_PML_UMRDDT_PHASE_WIRE == chunk->phase) {
            mca_pml_umrddt.hca->fin_cancel(pack->hca.endpoint);
            mca_pml_umrddt_pack_chunk_over(pack, chunk);
        }
    }
}

/* ---------------------------------------------------------------------------------------------
 * Both sides
 * ------------------------------------------------------------------------------------------- */

bool mca_pml_umrddt_pack_hca_look(mca_pml_umrddt_pack_t *pack, mca_pml_umrddt_chunk_t *chunk)
{
    if (!chunk->over
        || (MCA_PML_UMRDDT_PHASE_WIRE != chunk->phase
            && MCA_PML_UMRDDT_PHASE_FLUSH != chunk->phase)) {
        return false;
    }
    chunk->over = false;
    if (pack->job.in) {
        visible(pack, chunk, chunk->status);
        return true;
    }
    if (OPAL_ERR_TIMEOUT == chunk->status) {
        pack->not_packed = true;
        pack->sent = 0;
    }
    pack->hca.broken =
        pack->hca.broken || (OPAL_SUCCESS != chunk->status && OPAL_ERR_TIMEOUT != chunk->status);
    mca_pml_umrddt_pack_chunk_over(pack, chunk);
    return true;
}

void mca_pml_umrddt_pack_hca_step(mca_pml_umrddt_pack_t *pack)
{
    if (!pack->job.in) {
        if (pack->not_packed || pack->hca.stopped || pack->hca.broken) {
            sender_stop(pack);
        }
        return;
    }
    if (!pack->hca.broken && !pack->hca.stopped && pack->hca.reported
        && pack->begun > pack->hca.granted) {
        grant(pack);
    }
    if (pack->hca.broken) {
        if (!mca_pml_umrddt.hca->endpoint_broken(pack->hca.endpoint)) {
            mca_pml_umrddt.hca->endpoint_break(pack->hca.endpoint);
        }
        pack->not_packed = true;
        mca_pml_umrddt_pack_hca_stop(pack);
    } else if (pack->hca.stopped && pack->hca.done == pack->hca.last) {
        mca_pml_umrddt_pack_hca_stop(pack);
    }
}
