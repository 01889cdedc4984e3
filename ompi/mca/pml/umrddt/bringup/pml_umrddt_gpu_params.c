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
 * Parameters of GPU copies and of their caches. The names begin with gpu_, pack_ and ipc_.
 */

#include "ompi_config.h"

#include "opal/mca/base/mca_base_var.h"
#include "opal/util/show_help.h"

#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_engine.h"
#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_map.h"

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/bringup/pml_umrddt_bringup.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_pack.h"

static const mca_base_var_enum_value_t how_values[] = {
    {OPAL_UMRDDT_GPU_HOW_AUTO, "auto"},
    {OPAL_UMRDDT_GPU_HOW_BLOCKS, "blocks"},
    {OPAL_UMRDDT_GPU_HOW_DRIVER, "driver"},
    {OPAL_UMRDDT_GPU_HOW_KERNEL, "kernel"},
    {0, NULL},
};

static const mca_base_var_enum_value_t kernel_values[] = {
    {OPAL_UMRDDT_GPU_AUTO, "auto"},           {OPAL_UMRDDT_GPU_TARGETED, "targeted"},
    {OPAL_UMRDDT_GPU_TRANSFORM, "transform"}, {OPAL_UMRDDT_GPU_SEQUENTIAL, "sequential"},
    {OPAL_UMRDDT_GPU_PARALLEL, "parallel"},   {OPAL_UMRDDT_GPU_TEAMS, "teams"},
    {OPAL_UMRDDT_GPU_TEMPI, "tempi"},         {OPAL_UMRDDT_GPU_YAKSA, "yaksa"},
    {OPAL_UMRDDT_GPU_TREE, "tree"},           {0, NULL},
};

/** Minimum size of a chunk through pinned memory, and minimum number of chunks in the pool. */
#define LEAST_CHUNK  ((size_t) 4096)
#define LEAST_CHUNKS 2

static void size_param(const char *name, const char *help, size_t *storage)
{
    mca_pml_umrddt_param(name, help, MCA_BASE_VAR_TYPE_SIZE_T, NULL, OPAL_INFO_LVL_6, storage);
}

static void enum_param(const char *name, const char *help, const mca_base_var_enum_value_t *names,
                       int *storage)
{
    mca_base_var_enum_t *values = NULL;

    if (OPAL_SUCCESS == mca_base_var_enum_create(name, names, &values)) {
        mca_pml_umrddt_param(name, help, MCA_BASE_VAR_TYPE_INT, values, OPAL_INFO_LVL_6, storage);
        OBJ_RELEASE(values);
    }
}

/** Replace invalid values, with a message to the user. */
static void check(mca_pml_umrddt_params_t *params)
{
    if (LEAST_CHUNK > params->gpu_chunk) {
        opal_show_help("help-mca-pml-umrddt.txt", "gpu-chunk", true,
                       (unsigned long) params->gpu_chunk, (unsigned long) LEAST_CHUNK);
        params->gpu_chunk = LEAST_CHUNK;
    }
    if (LEAST_CHUNKS * params->gpu_chunk > params->gpu_pinned) {
        opal_show_help("help-mca-pml-umrddt.txt", "gpu-pinned", true,
                       (unsigned long) params->gpu_pinned, LEAST_CHUNKS,
                       (unsigned long) params->gpu_chunk,
                       (unsigned long) (LEAST_CHUNKS * params->gpu_chunk));
        params->gpu_pinned = LEAST_CHUNKS * params->gpu_chunk;
    }
}

/** Parameters of packed messages. */
static void pack_params(mca_pml_umrddt_params_t *params)
{
    size_param("pack_min",
               "Smallest message in GPU memory, in bytes, that travels packed, in chunks, where it "
               "can go neither by an HCA nor by CUDA IPC; smaller ones are packed in the call. Not "
               "measured",
               &params->pack_min);
    size_param("pack_host",
               "Smallest of those, in bytes, that GPUs pack in their own memory (pack-staged); "
               "smaller ones they pack in system memory (pack-host). Not measured",
               &params->pack_host);
    mca_pml_umrddt_param_limited("pack_chunk_floor", MCA_BASE_VAR_TYPE_SIZE_T, OPAL_INFO_LVL_6,
                                 &params->pack_floor,
                                 "Bytes of a chunk of those, at least, %u to %u",
                                 MCA_PML_UMRDDT_MIN_PACK_CHUNK, MCA_PML_UMRDDT_MAX_PACK_CHUNK);
    mca_pml_umrddt_param_limited("pack_chunk_ceiling", MCA_BASE_VAR_TYPE_SIZE_T, OPAL_INFO_LVL_6,
                                 &params->pack_ceiling,
                                 "Bytes of a chunk of those, at most, %u to %u",
                                 MCA_PML_UMRDDT_MIN_PACK_CHUNK, MCA_PML_UMRDDT_MAX_PACK_CHUNK);
    mca_pml_umrddt_param_limited(
        "pack_depth", MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_6, &params->pack_depth,
        "Chunks of a message that may be under way at once, 1 to %d", MCA_PML_UMRDDT_PACK_DEPTH);
    size_param("pack_bytes",
               "Bound on the bytes in buffers of chunks, of sends and of receives each. Beyond it "
               "a message has one chunk under way",
               &params->pack_bytes);
    size_param("pack_scratch",
               "Bound on the memory of GPUs, in bytes, for chunks that are packed there",
               &params->pack_scratch);
    mca_pml_umrddt_param("pack_hca",
                         "Whether chunks that are packed in, or moved to, system memory travel "
                         "by the HCA, where both sides have one; else by the base PML",
                         MCA_BASE_VAR_TYPE_BOOL, NULL, OPAL_INFO_LVL_5, &params->pack_hca);
    if (MCA_PML_UMRDDT_MIN_PACK_CHUNK > params->pack_floor
        || params->pack_floor > params->pack_ceiling
        || MCA_PML_UMRDDT_MAX_PACK_CHUNK < params->pack_ceiling) {
        opal_show_help("help-mca-pml-umrddt.txt", "pack-chunk", true,
                       (unsigned long) params->pack_floor, (unsigned long) params->pack_ceiling,
                       (unsigned long) MCA_PML_UMRDDT_MIN_PACK_CHUNK,
                       (unsigned long) MCA_PML_UMRDDT_MAX_PACK_CHUNK);
        params->pack_floor = (size_t) 128 << 10;
        params->pack_ceiling = (size_t) 1 << 20;
    }
    if (1 > params->pack_depth || MCA_PML_UMRDDT_PACK_DEPTH < params->pack_depth) {
        opal_show_help("help-mca-pml-umrddt.txt", "pack-depth", true, params->pack_depth,
                       MCA_PML_UMRDDT_PACK_DEPTH);
        params->pack_depth = 4;
    }
}

void mca_pml_umrddt_gpu_params_register(void)
{
    static bool defaults = false;
    mca_pml_umrddt_params_t *params = &mca_pml_umrddt.params;

    if (!defaults) {
        params->gpu_scheme = OPAL_UMRDDT_GPU_HOW_AUTO;
        params->gpu_hca = true;
        params->gpu_kernel = OPAL_UMRDDT_GPU_AUTO;
        params->gpu_list_cache = (size_t) 64 << 20;
        params->gpu_pinned = (size_t) 64 << 20;
        params->gpu_chunk = (size_t) 512 << 10;
        params->gpu_graphs = 64;
        params->system_memory_cache = true;
        params->gpu_stage_pinned = (size_t) 4 << 20;
        params->gpu_stage_kept = (size_t) 256 << 20;
        /* not measured yet */
        params->pack_min = 8192;
        params->pack_host = (size_t) 256 << 10;
        params->pack_floor = (size_t) 128 << 10;
        params->pack_ceiling = (size_t) 1 << 20;
        params->pack_depth = 4;
        params->pack_bytes = (size_t) 16 << 20;
        params->pack_scratch = (size_t) 64 << 20;
        params->pack_hca = true;
        params->ipc_imports = 64;
        params->ipc_import_bytes = (size_t) 16 << 30;
        params->ipc_exports = 256;
        params->ipc_done_flags = true;
        defaults = true;
    }
    enum_param("gpu_scheme",
               "How a GPU copies between layouts: blocks (a copy per block), driver (the CUDA "
               "driver's copies of 1 to 3 dimensions where they can), kernel (always one), or auto "
               "(what is fastest)",
               how_values, &params->gpu_scheme);
    enum_param(
        "gpu_kernel",
        "Which kernel does it, where a kernel does: auto (by the layout), or one of targeted, "
        "transform, sequential, parallel, teams, tempi, yaksa, tree, where it can",
        kernel_values, &params->gpu_kernel);
    size_param("gpu_list_cache",
               "Bound on the memory of a GPU, in bytes, for the lists that kernels read of layouts",
               &params->gpu_list_cache);
    size_param("gpu_pinned", "Bound on the pinned memory of this process, in bytes",
               &params->gpu_pinned);
    mca_pml_umrddt_param_limited("gpu_chunk", MCA_BASE_VAR_TYPE_SIZE_T, OPAL_INFO_LVL_6,
                                 &params->gpu_chunk,
                                 "Bytes of a piece, where a message goes to or from pageable "
                                 "memory through pinned memory, %u at least",
                                 (unsigned) LEAST_CHUNK);
    mca_pml_umrddt_param("gpu_graphs",
                         "Kernel launches that are repeated and that a GPU's driver has ready as "
                         "graphs, at most. 0: none",
                         MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_6,
                         &params->gpu_graphs);
    mca_pml_umrddt_param(
        "system_memory_cache",
        "Pages of system memory that the CUDA driver was asked about are remembered, "
        "until they are unmapped: by Open MPI's memory hooks",
        MCA_BASE_VAR_TYPE_BOOL, NULL, OPAL_INFO_LVL_6, &params->system_memory_cache);
    size_param("gpu_stage_pinned",
               "Largest message in GPU memory, in bytes, that is sent from pinned memory where the "
               "base PML does not take GPU memory; larger ones are sent from plain memory",
               &params->gpu_stage_pinned);
    size_param("gpu_stage_kept",
               "Bound on the plain memory, in bytes, that is kept for the next such message",
               &params->gpu_stage_kept);
    mca_pml_umrddt_param("ipc_imports",
                         "Allocations of other processes' GPUs that stay open when no message uses "
                         "them. 0: each is closed behind its message",
                         MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_5,
                         &params->ipc_imports);
    size_param(
        "ipc_import_bytes",
        "Bound on the bytes of those. Memory that its owner frees is held by who has it open",
        &params->ipc_import_bytes);
    mca_pml_umrddt_param(
        "ipc_exports", "Allocations of this process whose description for others is remembered",
        MCA_BASE_VAR_TYPE_UNSIGNED_INT, NULL, OPAL_INFO_LVL_6, &params->ipc_exports);
    mca_pml_umrddt_param(
        "ipc_done_flags",
        "Tell the sender of a message that was read from GPU memory through shared "
        "memory that it was, and not by a message",
        MCA_BASE_VAR_TYPE_BOOL, NULL, OPAL_INFO_LVL_6, &params->ipc_done_flags);
    mca_pml_umrddt_param(
        "gpu_hca", "Whether the HCA is given memory of GPUs, so that it gathers and scatters there",
        MCA_BASE_VAR_TYPE_BOOL, NULL, OPAL_INFO_LVL_5, &params->gpu_hca);
    pack_params(params);
    check(params);
}
