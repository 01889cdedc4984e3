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
 * The values of the MCA parameters. bringup/pml_umrddt_params.c registers them; docs/parameters.rst
 * describes them.
 */

#ifndef MCA_PML_UMRDDT_PARAMS_H
#define MCA_PML_UMRDDT_PARAMS_H

#include "ompi_config.h"

#include <stdbool.h>
#include <stddef.h>

BEGIN_C_DECLS

typedef enum mca_pml_umrddt_memory_t {
    MCA_PML_UMRDDT_MEMORY_GPU = 1,
    MCA_PML_UMRDDT_MEMORY_SYSTEM = 2,
    MCA_PML_UMRDDT_MEMORY_ALL = 3
} mca_pml_umrddt_memory_t;

/** Parameter: whether the base PML supports GPU memory. */
typedef enum mca_pml_umrddt_gpu_base_t {
    MCA_PML_UMRDDT_GPU_BASE_AUTO = 0,
    MCA_PML_UMRDDT_GPU_BASE_YES = 1,
    MCA_PML_UMRDDT_GPU_BASE_NO = 2
} mca_pml_umrddt_gpu_base_t;

/** GPU memory that the base PML may receive: pml_umrddt_base_gpu.h. */
typedef enum mca_pml_umrddt_base_gpu_t {
    MCA_PML_UMRDDT_BASE_GPU_ALL = 0, /**< all that umrddt does not handle */
    MCA_PML_UMRDDT_BASE_GPU_SAFE,    /**< memory that is safe and not better elsewhere */
    MCA_PML_UMRDDT_BASE_GPU_NONE
} mca_pml_umrddt_base_gpu_t;

/** Treatment of contiguous messages in GPU memory. */
typedef enum mca_pml_umrddt_contiguous_t {
    MCA_PML_UMRDDT_CONTIGUOUS_AUTO = 0,  /**< passed through if supported, else handled */
    MCA_PML_UMRDDT_CONTIGUOUS_DEFER = 1, /**< passed through, if necessary staged */
    MCA_PML_UMRDDT_CONTIGUOUS_TAKE = 2
} mca_pml_umrddt_contiguous_t;

typedef struct mca_pml_umrddt_params_t {
    char *base_pml;        /**< base PML, "" = Open MPI selects it */
    size_t min_size;       /**< smallest message that is handled, bytes */
    int memory;            /**< mca_pml_umrddt_memory_t */
    int scheme;            /**< mca_pml_umrddt_scheme_id_t */
    int base_gpu_param;    /**< mca_pml_umrddt_gpu_base_t */
    int contiguous;        /**< mca_pml_umrddt_contiguous_t */
    size_t contiguous_min; /**< smallest contiguous message that is handled, bytes; 0: min_size */
    size_t chunk_floor;    /**< smallest agreed chunk, bytes */
    unsigned max_keys;     /**< rkeys in one CTS */
    unsigned key_sets;     /**< rkey sets cached for a peer */
    unsigned layouts;      /**< layouts cached for a peer */
    unsigned writes;       /**< RDMA writes of a first message that are cheaper than mkeys */
    size_t stripe;         /**< smallest message that is striped, bytes; 0: none */
    size_t run;            /**< mean run, bytes, from which writes are cheaper than mkeys */
    bool mkey_cache;       /**< mkeys stay mapped for the next message */
    size_t layout_cache;   /**< maximum size of the layout cache, bytes */
    int gpu_scheme;        /**< opal_umrddt_gpu_how_t */
    bool gpu_hca;          /**< the HCA may access GPU memory */
    int gpu_kernel;        /**< opal_umrddt_gpu_scheme_t */
    size_t gpu_list_cache; /**< layouts on a GPU, bytes */
    size_t gpu_pinned;     /**< pinned memory, bytes */
    size_t gpu_chunk;      /**< chunk that is copied through pinned memory, bytes */
    unsigned gpu_graphs;   /**< CUDA graphs of repeated launches */
    bool system_memory_cache; /**< remember pages that are system memory */
    unsigned ipc_imports;     /**< unused allocations of other processes that stay mapped */
    size_t ipc_import_bytes;  /**< size of those, bytes */
    unsigned ipc_exports;     /**< allocations whose export is cached */
    bool ipc_done_flags;      /**< completion flags in shared memory end messages */
    size_t gpu_stage_pinned;  /**< largest staging buffer in pinned memory, bytes */
    size_t gpu_stage_kept;    /**< unpinned staging buffers that are kept, bytes */
    size_t pack_min;          /**< smallest packed message, bytes */
    size_t pack_host;         /**< smallest message that is packed in GPU memory, bytes */
    size_t pack_floor;        /**< minimum size of a packed chunk, bytes */
    size_t pack_ceiling;      /**< maximum size of a packed chunk, bytes */
    unsigned pack_depth;      /**< chunks of one message in flight */
    size_t pack_bytes;        /**< buffers for chunks, of senders and of receivers, bytes */
    size_t pack_scratch;      /**< buffers for chunks in GPU memory, bytes */
    bool pack_hca;            /**< the HCA carries chunks where both sides have one */
    char *model;              /**< tuning file; or "", none, defaults */
    unsigned reuse;           /**< messages expected per layout and buffer */
    bool explain;             /**< print predictions, selections and measurements */
    bool stats;               /**< print the counters at finalize */
    unsigned refusals;        /**< seconds until a refusal by the base PML is final */
    bool check_pattern;       /**< verify mpi_communication_pattern */
    unsigned check;           /**< progress calls between two checks of invariants; 0: none */
} mca_pml_umrddt_params_t;

END_C_DECLS

#endif /* MCA_PML_UMRDDT_PARAMS_H */
