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
 * The table of MCA parameters: members of mca_pml_umrddt_params_t, defaults, limits and help texts.
 * pml_umrddt_params.c registers them; docs/parameters.rst describes them.
 */

#ifndef MCA_PML_UMRDDT_PARAMS_H
#define MCA_PML_UMRDDT_PARAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/** Maximum of pack_depth. */
#define MCA_PML_UMRDDT_PACK_DEPTH 16

/* clang-format off */
/**
 * X(type, name, level, default, least, most, help...). Numbers outside of least and most are
 * replaced by the nearest one. The help text is a format, with its arguments. Not measured: the
 * defaults of pack_*.
 */
#define MCA_PML_UMRDDT_PARAMS(X) \
    X(STRING, base_pml, 3, "", 0, 0, \
      "Base PML: matches messages and carries everything that umrddt does " \
      "not handle (ob1, ucx, cm, ...). Empty: the PML that Open MPI would " \
      "have selected without umrddt") \
    X(SIZE, min_size, 3, 1024, 0, SIZE_MAX, \
      "Smallest message, in bytes, that umrddt handles, except by CUDA IPC. " \
      "Values below %u count as %u. MPI_Send of fewer bytes from GPU memory " \
      "does not wait for the receiver",\
      (unsigned) MCA_PML_UMRDDT_ENVELOPE, (unsigned) MCA_PML_UMRDDT_ENVELOPE) \
    X(MEMORY, memory, 2, MCA_PML_UMRDDT_MEMORY_GPU, 0, 0, \
      "Memory whose messages umrddt handles: gpu, host (system memory), or all") \
    X(SCHEME, scheme, 3, MCA_PML_UMRDDT_SCHEME_AUTO, 0, 0, \
      "Protocol of messages: umr (mkeys on both sides); sgl or direct " \
      "(writes with scatter/gather lists, without mkeys); ipc (a GPU of the " \
      "receiver reads the sender's GPU memory, same node only); pack-gdr, " \
      "pack-staged, pack-host (packed in chunks: in GPU memory that the " \
      "HCAs access; through system memory; in system memory); base or host " \
      "(everything by the base PML); or auto (ipc if possible, otherwise " \
      "an HCA, otherwise packed). The info key of the same name sets it for one communicator") \
    X(GPU_BASE, base_gpu, 3, MCA_PML_UMRDDT_GPU_BASE_AUTO, 0, 0, \
      "Buffers in GPU memory that the base PML gets unchanged: yes (all " \
      "that umrddt does not handle), no (none), or auto. auto: none unless " \
      "this Open MPI, and UCX if the base PML is ucx, support CUDA") \
    X(CONTIGUOUS, contiguous, 3, MCA_PML_UMRDDT_CONTIGUOUS_AUTO, 0, 0, \
      "Contiguous messages in GPU memory: defer (pass through to the base " \
      "PML), take (handle), or auto (handle those of at least " \
      "contiguous_min bytes if that is set; otherwise pass messages to " \
      "remote nodes through if the base PML can get the buffer)") \
    X(SIZE, contiguous_min, 6, 0, 0, SIZE_MAX, \
      "Smallest contiguous message in GPU memory, in bytes, that umrddt " \
      "handles where it handles such messages. 0: as min_size") \
    X(BOOL, small_hints, 4, true, 0, 0, \
      "A GPU of the receiver reads messages of less than min_size bytes, too, " \
      "after some were staged. 0: all are staged, without a wait") \
    X(SIZE, stripe, 4, 0, 0, SIZE_MAX, \
      "Smallest message, in bytes, that uses all pairs of HCAs of the two processes at " \
      "once (btl_umr_max_hcas). 0: each uses the pair nearest to the sender's buffer") \
    X(SIZE, chunk_floor, 6, 4096, 0, SIZE_MAX, \
      "Smallest chunk, in bytes, that a receiver proposes in order to make both sides' " \
      "windows agree; below it, windows are split instead") \
    X(UINT, max_keys, 6, 256, 1, 65536, \
      "Largest number of keys in one CTS (%u bytes each), 1 to %u. A " \
      "message that needs more keys takes several rounds",\
      (unsigned) sizeof(mca_pml_umrddt_wire_key_t), 65536u) \
    X(BOOL, mkey_cache, 6, true, 0, 0, \
      "Cache the mapped keys of a message for the next one with the same " \
      "datatype and buffer. 0: map keys for each message") \
    X(UINT, key_sets, 6, 32, 0, MCA_PML_UMRDDT_MAX_SLOTS, \
      "Number of rkey sets (at most %u keys each) of each receiver that a " \
      "sender caches, 0 to %u",\
      MCA_PML_UMRDDT_SET_KEYS, MCA_PML_UMRDDT_MAX_SLOTS) \
    X(UINT, direct_writes, 6, 16, 0, UINT_MAX, \
      "Largest number of writes of scatter/gather lists that the first " \
      "message of a datatype and buffer uses in place of mkeys. 0: never for this reason") \
    X(SIZE, direct_run, 6, 65536, 0, SIZE_MAX, \
      "The same, if the average contiguous run has at least this number " \
      "of bytes. 0: never for this reason") \
    X(UINT, direct_layouts, 6, 16, 0, MCA_PML_UMRDDT_MAX_SLOTS, \
      "Number of layouts (at most %u KiB each, flattened) of each " \
      "receiver that a sender caches, 0 to %u; with ipc, of each sender " \
      "that a receiver caches",\
      MCA_PML_UMRDDT_CACHED_FLAT >> 10, MCA_PML_UMRDDT_MAX_SLOTS) \
    X(SIZE, layout_cache_size, 6, 64u << 20, 0, SIZE_MAX, \
      "Bound on the memory of cached layouts, in bytes") \
    X(GPU_SCHEME, gpu_scheme, 6, OPAL_UMRDDT_GPU_HOW_AUTO, 0, 0, \
      "How a GPU copies between layouts: blocks (one copy per block), " \
      "driver (the CUDA driver's copies of 1 to 3 dimensions where " \
      "possible), kernel (always a kernel), or auto (the fastest)") \
    X(GPU_KERNEL, gpu_kernel, 6, OPAL_UMRDDT_GPU_AUTO, 0, 0, \
      "The kernel that copies: auto (by the layout), or targeted, " \
      "transform, sequential, parallel, teams, tempi, yaksa, or tree, where possible") \
    X(SIZE, gpu_list_cache, 6, (size_t) 64 << 20, 0, SIZE_MAX, \
      "Bound on the GPU memory, in bytes, for layout lists that kernels read") \
    X(SIZE, gpu_pinned, 6, (size_t) 64 << 20, 0, SIZE_MAX, \
      "Bound on the pinned memory of this process, in bytes") \
    X(SIZE, gpu_chunk, 6, (size_t) 512 << 10, 4096, SIZE_MAX, \
      "Bytes of a chunk of a message that is copied to or from pageable " \
      "memory through pinned memory, at least %u",\
      4096u) \
    X(UINT, gpu_graphs, 6, 64, 0, UINT_MAX, \
      "Largest number of CUDA graphs for repeated kernel launches. 0: none") \
    X(UINT, gpu_batch, 6, 0, 0, UINT_MAX, \
      "Largest number of copies in one launch, up to 64. 0: as many as fit") \
    X(BOOL, system_memory_cache, 6, true, 0, 0, \
      "Cache the pages that the CUDA driver reported as system memory, " \
      "until Open MPI's memory hooks report that they are unmapped") \
    X(SIZE, gpu_stage_pinned, 6, (size_t) 4 << 20, 0, SIZE_MAX, \
      "Largest message in GPU memory, in bytes, that is staged in pinned " \
      "memory where the base PML cannot get GPU memory; larger ones use " \
      "pageable memory") \
    X(SIZE, gpu_stage_kept, 6, (size_t) 256 << 20, 0, SIZE_MAX, \
      "Bound on the pageable memory, in bytes, that is cached for later " \
      "staged messages") \
    X(UINT, ipc_imports, 5, 64, 0, UINT_MAX, \
      "Number of unused mappings of other processes' GPU allocations that " \
      "stay open. 0: each is closed after its message") \
    X(SIZE, ipc_import_bytes, 6, (size_t) 16 << 30, 0, SIZE_MAX, \
      "Bound on the bytes of those. An open mapping holds the memory " \
      "after its owner has freed it") \
    X(UINT, ipc_exports, 6, 256, 0, UINT_MAX, \
      "Number of this process's allocations whose export is cached") \
    X(BOOL, ipc_done_flags, 6, true, 0, 0, \
      "Report to the sender by a completion flag in shared memory that " \
      "its GPU memory was read, instead of by a message") \
    X(BOOL, gpu_hca, 5, true, 0, 0, \
      "Let the HCA access GPU memory, so that it gathers and scatters " \
      "there") \
    X(SIZE, pack_min, 6, 8192, 0, SIZE_MAX, \
      "Smallest message in GPU memory, in bytes, that is packed in chunks " \
      "where neither an HCA nor CUDA IPC can be used; smaller ones are " \
      "packed within the call. Not measured") \
    X(SIZE, pack_host, 6, (size_t) 256 << 10, 0, SIZE_MAX, \
      "Smallest of those, in bytes, that GPUs pack in their own memory " \
      "(pack-staged); smaller ones are packed in system memory " \
      "(pack-host). Not measured") \
    X(SIZE, pack_chunk_floor, 6, (size_t) 128 << 10, MCA_PML_UMRDDT_MIN_PACK_CHUNK, MCA_PML_UMRDDT_MAX_PACK_CHUNK, \
      "Smallest chunk of a packed message, in bytes, %u to %u",\
      MCA_PML_UMRDDT_MIN_PACK_CHUNK, MCA_PML_UMRDDT_MAX_PACK_CHUNK) \
    X(SIZE, pack_chunk_ceiling, 6, (size_t) 1 << 20, MCA_PML_UMRDDT_MIN_PACK_CHUNK, MCA_PML_UMRDDT_MAX_PACK_CHUNK, \
      "Largest chunk of a packed message, in bytes, %u to %u",\
      MCA_PML_UMRDDT_MIN_PACK_CHUNK, MCA_PML_UMRDDT_MAX_PACK_CHUNK) \
    X(UINT, pack_depth, 6, 4, 1, MCA_PML_UMRDDT_PACK_DEPTH, \
      "Chunks of a message that may be in flight at once, 1 to %d",\
      MCA_PML_UMRDDT_PACK_DEPTH) \
    X(SIZE, pack_bytes, 6, (size_t) 16 << 20, 0, SIZE_MAX, \
      "Bound on the bytes in chunk buffers, for sends and for receives " \
      "each. Beyond it a message has one chunk in flight") \
    X(SIZE, pack_scratch, 6, (size_t) 64 << 20, 0, SIZE_MAX, \
      "Bound on the GPU memory, in bytes, for chunks that are packed " \
      "there") \
    X(BOOL, pack_hca, 6, true, 0, 0, \
      "Send chunks in system memory by the HCA if both sides have one; " \
      "otherwise by the base PML") \
    X(UINT, refusal_timeout, 8, 60, 0, UINT_MAX, \
      "Seconds for which the base PML may refuse a control message for " \
      "reasons other than a shortage of resources. After that the message " \
      "fails, or, if the other process cannot be notified, the job ends. " \
      "0: no limit") \
    X(BOOL, check_pattern, 6, false, 0, 0, \
      "Verify the assertion of the info key mpi_communication_pattern, " \
      "and report a violation (always in a build with --enable-debug). " \
      "Costs the pointer query that the key saves") \
    X(UINT, check, 9, 0, 0, UINT_MAX, \
      "For tests: verify lists, counters and message states in one of " \
      "this number of progress passes, and at the end; abort on a " \
      "violation. 0: never") \
    X(STRING, model, 3, "", 0, 0, \
      "Tuning file of this machine, written by umrddt_tune, by which auto " \
      "selects protocols. Empty: the user's or the system's file for this " \
      "hardware, if there is one. none: auto uses its rules. defaults: " \
      "tuning parameters of no particular machine") \
    X(UINT, reuse, 6, 1, 0, UINT_MAX, \
      "With a tuning file: the number of messages for which a datatype " \
      "and buffer are expected to be used. Set-up costs are divided by it") \
    X(BOOL, explain, 3, false, 0, 0, \
      "Print for each new pair of layouts the possible protocols, their " \
      "predicted times, the selected one and the reason, and the measured " \
      "time") \
    X(STATS, stats, 3, MCA_PML_UMRDDT_STATS_NONE, 0, 0, \
      "Statistics in MPI_Finalize: none; job (1): a summary by rank 0; all " \
      "(2): and counters of each process; json (3): counters in a file") \
    X(BOOL, warn_unknown, 4, true, 0, 0, \
      "Report parameters pml_umrddt_*, btl_umr_* and coll_umrddt_* that do not exist") \
    X(UINT, verbose, 3, 0, 0, 100, \
      "Log lines, from this value on: %u: set-up; %u: peers, selections, " \
      "back-offs, the first fallback of a kind; %u: each fallback",\
      MCA_PML_UMRDDT_LOG_SETUP, MCA_PML_UMRDDT_LOG_SELECTION, MCA_PML_UMRDDT_LOG_MESSAGE)
/* clang-format on */

/* The types. Those below SIZE are names of values, in pml_umrddt_params.c. */
#define MCA_PML_UMRDDT_TYPE_STRING     char *
#define MCA_PML_UMRDDT_TYPE_BOOL       bool
#define MCA_PML_UMRDDT_TYPE_UINT       unsigned
#define MCA_PML_UMRDDT_TYPE_SIZE       size_t
#define MCA_PML_UMRDDT_TYPE_MEMORY     int /* mca_pml_umrddt_memory_t */
#define MCA_PML_UMRDDT_TYPE_SCHEME     int /* mca_pml_umrddt_scheme_id_t */
#define MCA_PML_UMRDDT_TYPE_GPU_BASE   int /* mca_pml_umrddt_gpu_base_t */
#define MCA_PML_UMRDDT_TYPE_CONTIGUOUS int /* mca_pml_umrddt_contiguous_t */
#define MCA_PML_UMRDDT_TYPE_GPU_SCHEME int /* opal_umrddt_gpu_how_t */
#define MCA_PML_UMRDDT_TYPE_GPU_KERNEL int /* opal_umrddt_gpu_scheme_t */
#define MCA_PML_UMRDDT_TYPE_STATS      int /* mca_pml_umrddt_stats_t */

#define MCA_PML_UMRDDT_PARAM_MEMBER(type, name, ...) MCA_PML_UMRDDT_TYPE_##type name;
typedef struct mca_pml_umrddt_params_t {
    MCA_PML_UMRDDT_PARAMS(MCA_PML_UMRDDT_PARAM_MEMBER)
} mca_pml_umrddt_params_t;

#endif /* MCA_PML_UMRDDT_PARAMS_H */
