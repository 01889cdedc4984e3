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
 * GPU memory as the wire buffers of packed messages that a CUDA-aware base PML carries; read
 * pml_umrddt_pack.h first.
 */

/*
 * A chunk is packed into a buffer of the pool of GPU memory, and the base PML gets that buffer as
 * an ordinary contiguous message. It may use GPUDirect RDMA over any network. The bytes on the wire
 * are those of pinned buffers, so each side chooses its buffers alone.
 *
 * The copy of a chunk has completed before the base PML gets the buffer, and the base PML has
 * completed its request before the copy out of the buffer is started. No further synchronization is
 * needed: the base PML guarantees the same to applications.
 */

#include "ompi_config.h"

#include <string.h>

#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_scratch.h"

#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_pack_chunks.h"

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
    return !takes_scratch(pack->owner) && OPAL_SUCCESS == opal_umrddt_gpu_engine_enter(pack->owner);
}
