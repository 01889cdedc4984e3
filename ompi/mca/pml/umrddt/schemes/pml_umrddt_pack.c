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
 * The chunks of one side of a packed message; read pml_umrddt_pack.h first.
 */

/*
 *     sender    IDLE -> COPY [-> MOVE] -> READY -> WIRE -> IDLE
 *     receiver  IDLE -> WIRE [-> FLUSH] [-> MOVE] -> COPY -> IDLE
 *
 * COPY is between the user's layout and GPU scratch memory, or the wire buffer if there is no
 * scratch memory. MOVE is between scratch memory and the wire buffer. Chunks begin and are sent in
 * order, and complete in any order. The wire is the base PML (here) or the HCA
 * (pml_umrddt_pack_hca.c).
 */

#include "ompi_config.h"

#include <stdlib.h>
#include <string.h>

#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_scratch.h"
#include "opal/util/output.h"

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_progress.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_pack_chunks.h"

typedef mca_pml_umrddt_chunk_t chunk_t;

/** Free list of records; bytes in buffers of senders [0] and receivers [1]. */
static mca_pml_umrddt_pack_t *idle;
static uint64_t held[2];

/** Number of consecutive refusals by the base PML after which the message fails. */
#define REFUSALS 10000

/* ---------------------------------------------------------------------------------------------
 * Buffers
 * ------------------------------------------------------------------------------------------- */

static mca_pml_umrddt_pack_t *record(void)
{
    mca_pml_umrddt_pack_t *pack = idle;

    if (NULL != pack) {
        idle = pack->next_idle;
        return pack;
    }
    pack = calloc(1, sizeof(*pack));
    if (NULL != pack) {
        OBJ_CONSTRUCT(&pack->wait, mca_pml_umrddt_wait_t);
    }
    return pack;
}

static void chunk_put(mca_pml_umrddt_pack_t *pack, chunk_t *chunk)
{
    if (NULL != chunk->stage.bytes) {
        held[pack->job.in] -= pack->job.chunk;
    }
    if (NULL != chunk->buffer) {
        mca_pml_umrddt_pack_buffer_put(chunk->buffer);
        chunk->buffer = NULL;
        chunk->stage.bytes = NULL;
    } else if (OPAL_UMRDDT_GPU_DEVICE == chunk->stage.kind) {
        mca_pml_umrddt_pack_device_put(chunk);
    } else {
        opal_umrddt_gpu_stage_put(&chunk->stage);
    }
    if (0 != chunk->scratch) {
        opal_umrddt_gpu_scratch_put(chunk->scratch);
        chunk->scratch = 0;
    }
}

static void give_back(mca_pml_umrddt_pack_t *pack)
{
    for (unsigned i = 0; i < pack->depth; ++i) {
        chunk_put(pack, &pack->chunk[i]);
    }
    pack->depth = 0;
    pack->next_idle = idle;
    idle = pack;
}

/** Returns true if chunks are sent from, or received into, the user's buffer without a copy. */
static inline bool travels_as_is(const mca_pml_umrddt_pack_t *pack)
{
    return pack->one_piece && NULL == pack->engine && !mca_pml_umrddt_pack_by_hca(pack);
}

/** Allocate the wire buffer of a chunk. */
static int stage_get(mca_pml_umrddt_pack_t *pack, chunk_t *chunk)
{
    if (mca_pml_umrddt_pack_by_hca(pack)) {
        return mca_pml_umrddt_pack_hca_room(pack, chunk);
    }
    if (pack->device) {
        if (OMPI_SUCCESS == mca_pml_umrddt_pack_device_room(pack, chunk)) {
            return OMPI_SUCCESS;
        }
        if (0 < pack->depth) {
            return OMPI_ERR_OUT_OF_RESOURCE;
        }
        mca_pml_umrddt_pack_device_off(pack);
    }
    return mca_pml_umrddt_pack_stage_get(&pack->where, pack->engine, pack->job.chunk,
                                         &chunk->stage);
}

/** Add a chunk entry. The first one always gets a buffer, others only within pack_bytes. */
static int chunk_get(mca_pml_umrddt_pack_t *pack)
{
    chunk_t *chunk = &pack->chunk[pack->depth];
    int rc;

    memset(chunk, 0, sizeof(*chunk));
    chunk->pack = pack;
    if (!travels_as_is(pack)) {
        if (0 < pack->depth
            && held[pack->job.in] + pack->job.chunk > mca_pml_umrddt.params.pack_bytes) {
            return OMPI_ERR_OUT_OF_RESOURCE;
        }
        rc = stage_get(pack, chunk);
        if (OMPI_SUCCESS != rc) {
            return rc;
        }
        held[pack->job.in] += pack->job.chunk;
        /* without scratch memory the kernel accesses the staging buffer: slower, but correct */
        if (NULL != pack->engine && !pack->one_piece
            && MCA_PML_UMRDDT_BIT_PACK_STAGED == pack->job.scheme
            && OPAL_SUCCESS
                   != opal_umrddt_gpu_scratch_get(pack->engine, pack->job.chunk, &chunk->scratch)) {
            chunk->scratch = 0;
            MCA_PML_UMRDDT_COUNT(pack_no_scratch);
        }
    }
    ++pack->depth;
    return OMPI_SUCCESS;
}

/** Set up the HCA as the wire, if it is used. */
static void hca_begin(mca_pml_umrddt_pack_t *pack)
{
    const mca_pml_umrddt_pack_job_t *job = &pack->job;

    memset(&pack->hca, 0, sizeof(pack->hca));
    if (NULL == job->endpoint) {
        return;
    }
    pack->hca.endpoint = job->endpoint;
    pack->hca.last = (uint32_t) pack->chunks;
    if (!job->in) {
        pack->hca.granted = job->granted;
        pack->hca.slots = job->slots;
        for (unsigned i = 0; i < job->slots; ++i) {
            pack->hca.slot[i] = mca_pml_umrddt_key_of(&job->slot[i]);
        }
    }
}

int mca_pml_umrddt_pack_begin(const mca_pml_umrddt_pack_job_t *job, mca_pml_umrddt_pack_t **out)
{
    mca_pml_umrddt_pack_t *pack = record();
    int rc = OMPI_SUCCESS;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (NULL == pack) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    pack->job = *job;
    pack->where = *job->where;
    pack->engine = NULL;
    pack->device = false;
    pack->one_piece = opal_iov_cache_layout_is_contiguous(job->layout);
    pack->chunks = mca_pml_umrddt_pack_chunks(job->total, job->chunk);
    pack->next = 0;
    pack->begun = pack->sent = 0;
    pack->depth = 0;
    pack->in_flight = pack->copying = 0;
    pack->refusals = 0;
    pack->not_packed = pack->failed = false;
    hca_begin(pack);
    if (opal_umrddt_gpu_on_gpu(job->where)) {
        rc = opal_umrddt_gpu_engine_get(&job->where->memory, &pack->engine);
        if (OMPI_SUCCESS == rc && MCA_PML_UMRDDT_BIT_PACK_GDR == job->scheme
            && NULL == job->endpoint) {
            mca_pml_umrddt_pack_device_begin(pack);
        }
    }
    if (OMPI_SUCCESS == rc) {
        rc = chunk_get(pack);
    }
    while (OMPI_SUCCESS == rc && pack->depth < mca_pml_umrddt.params.pack_depth
           && pack->depth * job->chunk < job->total && OMPI_SUCCESS == chunk_get(pack)) {
        ;
    }
    if (OMPI_SUCCESS != rc) {
        give_back(pack);
        return rc;
    }
    *out = pack;
    return OMPI_SUCCESS;
}

/* ---------------------------------------------------------------------------------------------
 * Copies
 * ------------------------------------------------------------------------------------------- */

/** This side cannot copy the chunk. The transfer continues, since the peer's messages still arrive
 * and must be received. */
static void give_up(mca_pml_umrddt_pack_t *pack, chunk_t *chunk)
{
    chunk->lost = true;
    if (pack->job.in) {
        pack->failed = true;
    } else {
        pack->not_packed = true;
    }
}

/** Place of a chunk in the user's buffer. */
static opal_umrddt_gpu_copy_end_t copy_end_of_user(const mca_pml_umrddt_pack_t *pack,
                                                   const chunk_t *chunk)
{
    opal_umrddt_gpu_copy_end_t slot = {
        .layout = pack->one_piece ? NULL : pack->job.layout,
        .address = (uintptr_t) pack->job.buf,
        .kind = pack->where.memory.kind,
        .reached = true,
        .on_device = mca_pml_umrddt_on_engine_device(&pack->where, pack->engine)};

    if (pack->one_piece) {
        slot.address += (uint64_t) pack->job.layout->lb + chunk->start;
    }
    return slot;
}

/** A piece of memory: the wire buffer or scratch memory. */
static opal_umrddt_gpu_copy_end_t piece(uint64_t address, opal_umrddt_gpu_kind_t kind)
{
    return (opal_umrddt_gpu_copy_end_t){.layout = NULL,
                                        .address = address,
                                        .kind = kind,
                                        .reached = true,
                                        .on_device = OPAL_UMRDDT_GPU_DEVICE == kind};
}

/** Start a GPU copy from the user's side to the wire's side, or back at a receiver. */
static int copy(mca_pml_umrddt_pack_t *pack, chunk_t *chunk,
                const opal_umrddt_gpu_copy_end_t *users, const opal_umrddt_gpu_copy_end_t *wires)
{
    /* A sender can fall back to the base PML. A receiver would lose the data: retry once. */
    int tries = pack->job.in ? 2 : 1;
    int rc;

    do {
        rc = opal_umrddt_gpu_copy(pack->engine, pack->job.in ? wires : users,
                                  pack->job.in ? users : wires, chunk->start, chunk->end,
                                  &chunk->copy);
    } while (OPAL_SUCCESS != rc && 0 < --tries);
    if (OPAL_SUCCESS != rc) {
        chunk->copy = NULL;
        return rc;
    }
    ++pack->copying;
    return OMPI_SUCCESS;
}

/** Copy between the user's layout and the scratch memory or wire buffer. */
static int copy_user(mca_pml_umrddt_pack_t *pack, chunk_t *chunk)
{
    opal_umrddt_gpu_copy_end_t user = copy_end_of_user(pack, chunk);
    opal_umrddt_gpu_copy_end_t other =
        0 != chunk->scratch ? piece(chunk->scratch, OPAL_UMRDDT_GPU_DEVICE)
                            : piece((uintptr_t) chunk->stage.bytes, chunk->stage.kind);

    chunk->phase = MCA_PML_UMRDDT_PHASE_COPY;
    return copy(pack, chunk, &user, &other);
}

/** Copy between scratch memory and the staging buffer. */
static int move(mca_pml_umrddt_pack_t *pack, chunk_t *chunk)
{
    opal_umrddt_gpu_copy_end_t scratch = piece(chunk->scratch, OPAL_UMRDDT_GPU_DEVICE),
                               stage = piece((uintptr_t) chunk->stage.bytes, chunk->stage.kind);

    chunk->phase = MCA_PML_UMRDDT_PHASE_MOVE;
    return copy(pack, chunk, &scratch, &stage);
}

/** The CPU copies a chunk. */
static void copy_by_cpu(const mca_pml_umrddt_pack_t *pack, const chunk_t *chunk)
{
    const opal_iov_cache_form_t *form = pack->job.layout->form;
    uint64_t length = chunk->end - chunk->start;

    if (pack->job.in) {
        (void) opal_iov_cache_form_unpack(form, pack->job.buf, chunk->start, length,
                                          chunk->stage.bytes);
    } else {
        (void) opal_iov_cache_form_pack(form, pack->job.buf, chunk->start, length,
                                        chunk->stage.bytes);
    }
}

/** A copy of a chunk has completed with @p rc: start the next phase. */
static void copied(mca_pml_umrddt_pack_t *pack, chunk_t *chunk, int rc)
{
    if (OMPI_SUCCESS == rc && 0 != chunk->scratch) {
        if (!pack->job.in && MCA_PML_UMRDDT_PHASE_COPY == chunk->phase) {
            rc = move(pack, chunk);
            if (OMPI_SUCCESS == rc) {
                return;
            }
        } else if (pack->job.in && MCA_PML_UMRDDT_PHASE_MOVE == chunk->phase) {
            rc = copy_user(pack, chunk);
            if (OMPI_SUCCESS == rc) {
                return;
            }
        }
    }
    if (OMPI_SUCCESS != rc) {
        give_up(pack, chunk);
    }
    if (pack->job.in) {
        mca_pml_umrddt_pack_chunk_over(pack, chunk);
    } else {
        chunk->phase = MCA_PML_UMRDDT_PHASE_READY;
    }
}

/** Test the GPU copy of a chunk. @return true if the state has changed */
static bool look_at_copy(mca_pml_umrddt_pack_t *pack, chunk_t *chunk)
{
    int rc = opal_umrddt_gpu_copy_test(chunk->copy);

    if (OPAL_ERR_RESOURCE_BUSY == rc) {
        return false;
    }
    chunk->copy = NULL;
    --pack->copying;
    copied(pack, chunk, rc);
    return true;
}

/* ---------------------------------------------------------------------------------------------
 * The wire
 * ------------------------------------------------------------------------------------------- */

static unsigned char *bytes_of(const mca_pml_umrddt_pack_t *pack, const chunk_t *chunk)
{
    return NULL != chunk->stage.bytes
               ? chunk->stage.bytes
               : (unsigned char *) pack->job.buf + pack->job.layout->lb + chunk->start;
}

/**
 * The base PML refused to send or receive a chunk. Retry: the peer cannot be notified otherwise.
 *
 * @return false: too many refusals; the message fails
 */
static bool query_again(mca_pml_umrddt_pack_t *pack, int rc)
{
    if (REFUSALS > pack->refusals) {
        ++pack->refusals;
        MCA_PML_UMRDDT_COUNT(pack_refused);
        return true;
    }
    if (!pack->failed) {
        opal_output(0, "pml:umrddt: the base PML refuses a part of a message (%d); it fails", rc);
    }
    pack->failed = true;
    pack->next = pack->job.total;
    return false;
}

/** @return false: the base PML refused; retry later */
static bool post_send(mca_pml_umrddt_pack_t *pack, chunk_t *chunk)
{
    /* Synchronous mode for the last chunk: the request id must not be reused before the receiver
     * has posted a receive for each chunk. Else the next message's receives could match them. */
    bool wait = chunk->end == pack->job.total && pack->job.granted < pack->chunks;
    bool entered;
    int rc;

    do {
        entered = pack->device && mca_pml_umrddt_pack_device_enter(pack);
        rc = mca_pml_umrddt.host.pml_isend(
            bytes_of(pack, chunk), chunk->lost ? 0 : chunk->end - chunk->start, &ompi_mpi_byte.dt,
            pack->job.peer, pack->job.tag,
            wait ? MCA_PML_BASE_SEND_SYNCHRONOUS : MCA_PML_BASE_SEND_STANDARD, pack->job.comm->comm,
            &chunk->request);
        if (OPAL_UNLIKELY(entered)) {
            opal_umrddt_gpu_engine_leave(pack->owner);
        }
        if (OMPI_SUCCESS == rc) {
            break;
        }
        chunk->request = NULL;
        if (chunk->lost) {
            if (query_again(pack, rc)) {
                return false;
            }
            ++pack->sent;
            mca_pml_umrddt_pack_chunk_over(pack, chunk);
            return true;
        }
        /* an empty message needs fewer resources, and makes the receiver fall back */
        MCA_PML_UMRDDT_COUNT(pack_refused);
        give_up(pack, chunk);
    } while (true);
    pack->refusals = 0;
    ++pack->sent;
    chunk->phase = MCA_PML_UMRDDT_PHASE_WIRE;
    if (pack->device) {
        MCA_PML_UMRDDT_COUNT(pack_device);
    }
    if (0 < pack->copying) {
        MCA_PML_UMRDDT_COUNT(pack_overlaps);
    }
    return true;
}

/** @return false: the base PML refused; retry later */
static bool post_recv(mca_pml_umrddt_pack_t *pack, chunk_t *chunk)
{
    const bool entered = pack->device && mca_pml_umrddt_pack_device_enter(pack);
    int rc = mca_pml_umrddt.host.pml_irecv(bytes_of(pack, chunk), chunk->end - chunk->start,
                                           &ompi_mpi_byte.dt, pack->job.peer, pack->job.tag,
                                           pack->job.comm->comm, &chunk->request);

    if (OPAL_UNLIKELY(entered)) {
        opal_umrddt_gpu_engine_leave(pack->owner);
    }
    if (OMPI_SUCCESS != rc) {
        chunk->request = NULL;
        (void) query_again(pack, rc);
        return false;
    }
    pack->refusals = 0;
    if (pack->device) {
        MCA_PML_UMRDDT_COUNT(pack_device);
    }
    return true;
}

void mca_pml_umrddt_pack_arrived(mca_pml_umrddt_pack_t *pack, chunk_t *chunk)
{
    int rc = OMPI_SUCCESS;

    if (0 < pack->copying) {
        MCA_PML_UMRDDT_COUNT(pack_overlaps);
    }
    if (!chunk->lost && !pack->failed && !pack->not_packed && !travels_as_is(pack)) {
        if (NULL == pack->engine) {
            copy_by_cpu(pack, chunk);
        } else {
            rc = 0 != chunk->scratch ? move(pack, chunk) : copy_user(pack, chunk);
            if (OMPI_SUCCESS == rc) {
                return;
            }
            give_up(pack, chunk);
        }
    }
    mca_pml_umrddt_pack_chunk_over(pack, chunk);
}

/** A receiver has received the message of a chunk. */
static void received(mca_pml_umrddt_pack_t *pack, chunk_t *chunk,
                     const ompi_status_public_t *status)
{
    if (MPI_SUCCESS != status->MPI_ERROR) {
        pack->failed = true;
        chunk->lost = true;
    } else if (status->_ucount != chunk->end - chunk->start) {
        pack->not_packed = true;
        chunk->lost = true;
    }
    mca_pml_umrddt_pack_arrived(pack, chunk);
}

/** Test the base PML's request of a chunk. @return true if the state has changed */
static bool look_at_wire(mca_pml_umrddt_pack_t *pack, chunk_t *chunk)
{
    ompi_status_public_t status;

    if (!REQUEST_COMPLETE(chunk->request)) {
        return false;
    }
    status = chunk->request->req_status;
    ompi_request_free(&chunk->request);
    chunk->request = NULL;
    if (pack->job.in) {
        received(pack, chunk, &status);
        return true;
    }
    pack->failed = pack->failed || MPI_SUCCESS != status.MPI_ERROR;
    mca_pml_umrddt_pack_chunk_over(pack, chunk);
    return true;
}

/* ---------------------------------------------------------------------------------------------
 * Progress and end
 * ------------------------------------------------------------------------------------------- */

/** Sender: pack a chunk. */
static void begin_packing(mca_pml_umrddt_pack_t *pack, chunk_t *chunk)
{
    int rc;

    chunk->phase = MCA_PML_UMRDDT_PHASE_READY;
    if (pack->not_packed) {
        chunk->lost = true;
    } else if (NULL != pack->engine) {
        rc = copy_user(pack, chunk);
        if (OMPI_SUCCESS != rc) {
            give_up(pack, chunk);
            chunk->phase = MCA_PML_UMRDDT_PHASE_READY;
        }
    } else if (!travels_as_is(pack)) {
        copy_by_cpu(pack, chunk);
    }
}

/** Begin the next chunk in an idle entry. @return false: not possible now */
static bool begin(mca_pml_umrddt_pack_t *pack, chunk_t *chunk)
{
    chunk->start = pack->next;
    chunk->end = pack->job.total - pack->next < pack->job.chunk ? pack->job.total
                                                                : pack->next + pack->job.chunk;
    chunk->lost = false;
    chunk->over = false;
    if (mca_pml_umrddt_pack_by_hca(pack) ? !mca_pml_umrddt_pack_hca_may_begin(pack)
                                         : pack->job.in && !post_recv(pack, chunk)) {
        return false;
    }
    pack->next = chunk->end;
    ++pack->begun;
    ++pack->in_flight;
    MCA_PML_UMRDDT_COUNT(pack_chunks);
    if (mca_pml_umrddt.counters.pack_most < pack->in_flight) {
        mca_pml_umrddt.counters.pack_most = pack->in_flight;
    }
    if (pack->job.in) {
        chunk->phase = MCA_PML_UMRDDT_PHASE_WIRE;
    } else {
        begin_packing(pack, chunk);
    }
    return true;
}

/** Begin chunks in all free entries, and send those that are ready. */
static void go_on(mca_pml_umrddt_pack_t *pack)
{
    bool by_hca = mca_pml_umrddt_pack_by_hca(pack);

    while (pack->next < pack->job.total
           && MCA_PML_UMRDDT_PHASE_IDLE == mca_pml_umrddt_pack_slot(pack, pack->begun)->phase
           && begin(pack, mca_pml_umrddt_pack_slot(pack, pack->begun))) {
        ;
    }
    while (!pack->job.in && pack->sent < pack->begun) {
        chunk_t *chunk = mca_pml_umrddt_pack_slot(pack, pack->sent);

        if (MCA_PML_UMRDDT_PHASE_READY != chunk->phase
            || (by_hca ? pack->not_packed || pack->sent >= pack->hca.granted : false)) {
            break;
        }
        if (by_hca) {
            mca_pml_umrddt_pack_hca_send(pack, chunk);
        } else if (!post_send(pack, chunk)) {
            break;
        }
    }
    if (by_hca) {
        mca_pml_umrddt_pack_hca_step(pack);
    }
}

bool mca_pml_umrddt_pack_step(mca_pml_umrddt_pack_t *pack)
{
    bool moved;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    do {
        moved = false;
        go_on(pack);
        for (unsigned i = 0; i < pack->depth; ++i) {
            chunk_t *chunk = &pack->chunk[i];

            if (NULL != chunk->copy) {
                moved = look_at_copy(pack, chunk) || moved;
            } else if (NULL != chunk->request) {
                moved = look_at_wire(pack, chunk) || moved;
            } else if (NULL != chunk->buffer) {
                moved = mca_pml_umrddt_pack_hca_look(pack, chunk) || moved;
            }
        }
    } while (moved);
    return pack->next == pack->job.total && 0 == pack->in_flight;
}

mca_pml_umrddt_pack_end_t mca_pml_umrddt_pack_end(mca_pml_umrddt_pack_t *pack)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    /* a stopped receiver waits for the base PML, whatever the result of the writes */
    mca_pml_umrddt_pack_end_t end = pack->hca.stopped && !pack->job.in ? MCA_PML_UMRDDT_PACK_STOPPED
                                    : pack->hca.broken                 ? MCA_PML_UMRDDT_PACK_BROKEN
                                    : pack->not_packed ? MCA_PML_UMRDDT_PACK_NOT_PACKED
                                    : pack->failed     ? MCA_PML_UMRDDT_PACK_FAILED
                                                       : MCA_PML_UMRDDT_PACK_WELL;

    if (MCA_PML_UMRDDT_PACK_WELL == end) {
        MCA_PML_UMRDDT_COUNT_ADD(pack_bytes, pack->job.total);
    }
    give_back(pack);
    return end;
}

/** Retry function of a wait: test whether cancelled requests, copies and flushes have completed. */
static bool let_go(void *owner)
{
    mca_pml_umrddt_pack_t *pack = owner;

    for (unsigned i = 0; i < pack->depth; ++i) {
        chunk_t *chunk = &pack->chunk[i];

        if (NULL != chunk->copy
            && OPAL_ERR_RESOURCE_BUSY != opal_umrddt_gpu_copy_test(chunk->copy)) {
            chunk->copy = NULL;
        }
        if (NULL != chunk->request && REQUEST_COMPLETE(chunk->request)) {
            ompi_request_free(&chunk->request);
            chunk->request = NULL;
        }
        if (NULL != chunk->copy || NULL != chunk->request
            || (MCA_PML_UMRDDT_PHASE_FLUSH == chunk->phase && !chunk->over)) {
            return false;
        }
    }
    give_back(pack);
    mca_pml_umrddt_active(-1);
    return true;
}

void mca_pml_umrddt_pack_drop(mca_pml_umrddt_pack_t *pack)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    for (unsigned i = 0; i < pack->depth; ++i) {
        if (NULL != pack->chunk[i].request) {
            (void) ompi_request_cancel(pack->chunk[i].request);
        }
    }
    if (mca_pml_umrddt_pack_by_hca(pack)) {
        mca_pml_umrddt_pack_hca_stop(pack);
    }
    mca_pml_umrddt_active(1);
    mca_pml_umrddt_poll(&pack->wait, let_go, pack);
}

void mca_pml_umrddt_pack_close(void)
{
    while (NULL != idle) {
        mca_pml_umrddt_pack_t *pack = idle;

        idle = pack->next_idle;
        OBJ_DESTRUCT(&pack->wait);
        free(pack);
    }
}
