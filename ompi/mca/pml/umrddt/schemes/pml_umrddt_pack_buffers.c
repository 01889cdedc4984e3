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
 * Wire buffers of chunks. For the HCA: a cache of registered buffers, on top of the pools of GPU
 * memory and staging buffers, which enforce limits. For the base PML: GPU memory of the pool. See
 * pml_umrddt_pack_chunks.h first.
 */

/*
 * The list is short: as many buffers as a few messages have chunks. A refused registration of GPU
 * memory stays in the list, so that not every message retries it.
 *
 * A write to GPU memory that could not be flushed may still arrive. Its buffer is therefore never
 * reused, and this process allocates no further GPU buffers.
 */

#include "ompi_config.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_scratch.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_layout.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_progress.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_pack_chunks.h"

/** A refused registration may succeed later: retry after this number of requests. */
#define RETRY_PERIOD 256

typedef mca_pml_umrddt_pack_buffer_t buffer_t;

static buffer_t *idle;
static size_t idle_bytes;
static buffer_t *quarantined;

/** Index of an endpoint's HCA in this process (btl_umr_hca.h). */
static uint32_t hca_of(mca_btl_umr_endpoint_t *endpoint)
{
    mca_btl_umr_address_t address;

    mca_pml_umrddt.hca->endpoint_address(endpoint, &address);
    return ntohl(address.qpn) >> 24;
}

static void buffer_free(buffer_t *buffer)
{
    if (NULL != buffer->memory) {
        mca_pml_umrddt.hca->memory_release(buffer->memory);
    }
    if (0 != buffer->scratch) {
        opal_umrddt_gpu_scratch_put(buffer->scratch);
    }
    opal_umrddt_gpu_stage_put(&buffer->stage);
    if (NULL != buffer->layout) {
        OBJ_RELEASE(buffer->layout);
    }
    free(buffer);
}

/** Remove an entry from the list. */
static buffer_t *take(buffer_t **link)
{
    buffer_t *buffer = *link;

    *link = buffer->next;
    idle_bytes -= buffer->room;
    return buffer;
}

/** Free the least recently used buffer. @return false: the list is empty */
static bool evict(void)
{
    buffer_t **link = &idle;

    if (NULL == idle) {
        return false;
    }
    while (NULL != (*link)->next) {
        link = &(*link)->next;
    }
    buffer_free(take(link));
    return true;
}

/** Register the buffer with the HCA. */
static int reach(mca_btl_umr_endpoint_t *endpoint, buffer_t *buffer)
{
    const mca_btl_umr_hca_ops_t *hca = mca_pml_umrddt.hca;
    opal_umrddt_gpu_memory_t memory;
    int rc;

    if (0 != buffer->scratch) {
        void *address = (void *) (uintptr_t) buffer->scratch;

        rc = opal_umrddt_gpu_classify(address, &memory);
        if (OPAL_SUCCESS == rc) {
            rc = hca->memory_register_gpu(endpoint, MCA_BTL_UMR_REMOTE, &memory, address,
                                          buffer->layout, buffer->room, &buffer->memory);
        }
    } else {
        rc = hca->memory_register_at(endpoint, MCA_BTL_UMR_REMOTE, buffer->stage.bytes,
                                     buffer->layout, buffer->room, &buffer->memory);
    }
    if (OPAL_SUCCESS != rc) {
        buffer->memory = NULL;
        return rc;
    }
    if (1 != hca->memory_regions(buffer->memory, &buffer->key, 1)) {
        hca->memory_release(buffer->memory); /* btl_umr_plain_keys is 0 */
        buffer->memory = NULL;
        return OMPI_ERR_NOT_AVAILABLE;
    }
    return OMPI_SUCCESS;
}

/** Allocate memory for a buffer of known size; evicts idle buffers if needed. */
static int fill(buffer_t *buffer, const opal_umrddt_gpu_where_t *where, bool device)
{
    int rc;

    if (OMPI_SUCCESS != mca_pml_umrddt_layout(&ompi_mpi_byte.dt, buffer->room, &buffer->layout)) {
        buffer->layout = NULL;
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    if (device) {
        do {
            rc = opal_umrddt_gpu_scratch_get(buffer->engine, buffer->room, &buffer->scratch);
        } while (OPAL_SUCCESS != rc && evict());
        if (OPAL_SUCCESS != rc) {
            buffer->scratch = 0;
        }
        return rc;
    }
    return mca_pml_umrddt_pack_stage_get(where, buffer->engine, buffer->room, &buffer->stage);
}

static int make(mca_btl_umr_endpoint_t *endpoint, opal_umrddt_gpu_engine_t *engine,
                const opal_umrddt_gpu_where_t *where, bool device, size_t room, uint32_t hca,
                buffer_t **result)
{
    buffer_t *buffer = calloc(1, sizeof(*buffer));
    int rc;

    if (NULL == buffer) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    buffer->engine = engine;
    buffer->room = room;
    buffer->hca = hca;
    rc = fill(buffer, where, device);
    if (OMPI_SUCCESS != rc) {
        buffer_free(buffer);
        return rc;
    }
    rc = reach(endpoint, buffer);
    if (OMPI_SUCCESS != rc) {
        /* free idle buffers, so that a later attempt may succeed */
        while (OMPI_ERR_OUT_OF_RESOURCE == rc && evict()) {
            ;
        }
        mca_pml_umrddt_pack_buffer_put(buffer);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    MCA_PML_UMRDDT_COUNT(pack_registered);
    *result = buffer;
    return OMPI_SUCCESS;
}

int mca_pml_umrddt_pack_buffer_get(mca_btl_umr_endpoint_t *endpoint,
                                   opal_umrddt_gpu_engine_t *engine,
                                   const opal_umrddt_gpu_where_t *where, bool device, size_t size,
                                   buffer_t **result)
{
    uint32_t hca = hca_of(endpoint);
    size_t room = 4096;
    buffer_t **link = &idle;

    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (OPAL_UNLIKELY(device && NULL != quarantined)) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    while (room < size) {
        room *= 2;
    }
    while (NULL != *link
           && (engine != (*link)->engine || device != (0 != (*link)->scratch)
               || room != (*link)->room || hca != (*link)->hca)) {
        link = &(*link)->next;
    }
    if (NULL == *link) {
        return make(endpoint, engine, where, device, room, hca, result);
    }
    if (NULL == (*link)->memory && 0 != ++(*link)->requested % RETRY_PERIOD) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    *result = take(link);
    if (NULL == (*result)->memory && OMPI_SUCCESS != reach(endpoint, *result)) {
        mca_pml_umrddt_pack_buffer_put(*result);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    return OMPI_SUCCESS;
}

void mca_pml_umrddt_pack_buffer_put(buffer_t *buffer)
{
    MCA_PML_UMRDDT_ASSERT_PROGRESS();
    if (OPAL_UNLIKELY(buffer->quarantined)) {
        buffer->next = quarantined;
        quarantined = buffer;
        return;
    }
    buffer->next = idle;
    idle = buffer;
    idle_bytes += buffer->room;
    /* one limit each for senders and receivers; the last buffer is always kept */
    while (idle_bytes > 2 * mca_pml_umrddt.params.pack_bytes && NULL != idle->next) {
        (void) evict();
    }
}

void mca_pml_umrddt_pack_buffers_close(void)
{
    while (evict()) {
        ;
    }
    while (NULL != quarantined) {
        buffer_t *buffer = quarantined;

        quarantined = buffer->next;
        buffer_free(buffer);
    }
}

/* ---------------------------------------------------------------------------------------------
 * GPU memory as the wire buffers of a CUDA-aware base PML
 *
 * A chunk is packed into a buffer of the pool of GPU memory, and the base PML gets that buffer as
 * an ordinary contiguous message. It may use GPUDirect RDMA over any network. The bytes on the wire
 * are those of pinned buffers, so each side chooses its buffers alone.
 *
 * The copy of a chunk has completed before the base PML gets the buffer, and the base PML has
 * completed its request before the copy out of the buffer is started. No further synchronization is
 * needed: the base PML guarantees the same to applications.
 * ------------------------------------------------------------------------------------------- */

/** Returns true if the base PML can get the user's buffer: contiguous, in one allocation of the
 * current context. */
static bool takes_users(const mca_pml_umrddt_pack_t *pack)
{
    const opal_umrddt_gpu_memory_t *memory = &pack->where.memory;
    const uint64_t offset =
        (uint64_t) (uintptr_t) pack->job.buf + (uint64_t) pack->job.layout->lb - memory->base;

    return pack->one_piece && offset < memory->size && pack->job.total <= memory->size - offset
           && opal_umrddt_gpu_base_takes(memory);
}

/** Returns true if the base PML can get the memory of the pool of GPU memory, which is allocated in
 * the engine's context: that context is current. */
static bool takes_scratch(const opal_umrddt_gpu_engine_t *engine)
{
    const opal_umrddt_gpu_memory_t scratch = {.kind = OPAL_UMRDDT_GPU_DEVICE,
                                              .ctx = opal_umrddt_gpu_engine_context(engine),
                                              .legacy_ipc = true};

    return opal_umrddt_gpu_base_takes(&scratch);
}

void mca_pml_umrddt_pack_device_begin(mca_pml_umrddt_pack_t *pack)
{
    if (!pack->job.device || !takes_scratch(pack->engine)) {
        mca_pml_umrddt_pack_device_off(pack);
        return;
    }
    pack->device = true;
    pack->owner = pack->engine;
    if (takes_users(pack)) {
        pack->engine = NULL;
    }
}

int mca_pml_umrddt_pack_device_room(mca_pml_umrddt_pack_t *pack, mca_pml_umrddt_chunk_t *chunk)
{
    uint64_t address;

    if (OPAL_SUCCESS != opal_umrddt_gpu_scratch_get(pack->engine, pack->job.chunk, &address)) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    chunk->stage = (opal_umrddt_gpu_stage_t){.bytes = (unsigned char *) (uintptr_t) address,
                                             .room = pack->job.chunk,
                                             .kind = OPAL_UMRDDT_GPU_DEVICE};
    return OMPI_SUCCESS;
}

void mca_pml_umrddt_pack_device_put(mca_pml_umrddt_chunk_t *chunk)
{
    opal_umrddt_gpu_scratch_put((uintptr_t) chunk->stage.bytes);
    memset(&chunk->stage, 0, sizeof(chunk->stage));
}

bool mca_pml_umrddt_pack_device_enter(const mca_pml_umrddt_pack_t *pack)
{
    /* drivers crash on a context that was destroyed */
    return !takes_scratch(pack->owner) && opal_umrddt_gpu_engine_is_there(pack->owner)
           && OPAL_SUCCESS == opal_umrddt_gpu_engine_enter(pack->owner);
}
