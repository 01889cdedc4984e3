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
      "PML that matches messages and carries everything umrddt does not take (ob1, ucx, cm," \
      " ...); empty: the one Open MPI would have chosen without umrddt") \
    X(SIZE, min_size, 3, 1024, 0, SIZE_MAX, \
      "Smallest message, in bytes, that umrddt handles. Values below %u count as %u",\
      (unsigned) MCA_PML_UMRDDT_ENVELOPE, (unsigned) MCA_PML_UMRDDT_ENVELOPE) \
    X(MEMORY, memory, 2, MCA_PML_UMRDDT_MEMORY_GPU, 0, 0, \
      "Whose messages are taken: those in gpu memory, in system memory, or all") \
    X(SCHEME, scheme, 3, MCA_PML_UMRDDT_SCHEME_AUTO, 0, 0, \
      "How a message goes: umr (mkeys on both sides), direct (without mkeys: a write for " \
      "each run of the receiver's layout), ipc (a GPU of the receiver reads the sender's " \
      "GPU memory, on one host), pack-gdr (packed by GPUs, in chunks, between whose memory " \
      "the HCAs write), pack-staged (the same, through system memory, by the HCA or the " \
      "base PML), pack-host (the same, packed in system memory), auto (ipc from GPU memory " \
      "on one host, packed where that or an HCA cannot be; direct where a side has no " \
      "mkeys, or where it is the cheaper way for a first message), or host (everything by " \
      "the base PML). The info key of the same name does it for one communicator") \
    X(GPU_BASE, base_gpu, 3, MCA_PML_UMRDDT_GPU_BASE_AUTO, 0, 0, \
      "Which buffers in GPU memory the base PML is given as they are: yes (all that umrddt " \
      "does not handle), no (none), or auto (none, unless this Open MPI, and UCX if the " \
      "base PML is ucx, have CUDA; then contiguous memory of cudaMalloc whose context is " \
      "current, of messages to and from other nodes and of messages within collectives, in " \
      "programs that do not use MPI_THREAD_MULTIPLE)") \
    X(CONTIGUOUS, contiguous, 3, MCA_PML_UMRDDT_CONTIGUOUS_AUTO, 0, 0, \
      "Contiguous messages in GPU memory: defer (to the base PML), take, or auto (unless " \
      "contiguous_min says from where on: take, but to other nodes defer those that the " \
      "base PML may be given; defer if base_gpu is yes)") \
    X(SIZE, contiguous_min, 4, 0, 0, SIZE_MAX, \
      "Smallest contiguous message in GPU memory, in bytes, that umrddt takes, where it " \
      "takes such messages: from where on it was measured to be faster than the base PML. " \
      "0: as min_size") \
    X(SIZE, stripe, 4, 0, 0, SIZE_MAX, \
      "Smallest message, in bytes, that goes over several pairs of HCAs at once, where both" \
      " processes have several (btl_umr_max_hcas): each pair carries a part of it. 0: none;" \
      " each message goes by the pair that is nearest to the sender's buffer") \
    X(SIZE, chunk_floor, 6, 4096, 0, SIZE_MAX, \
      "Smallest chunk, in bytes, that a receiver proposes in order to make both sides' " \
      "windows agree; below it, windows are split instead") \
    X(UINT, max_keys, 6, 256, 1, 65536, \
      "Keys that one CTS may name (%u bytes each), 1 to %u; a message that needs more goes " \
      "in rounds",\
      (unsigned) sizeof(mca_pml_umrddt_wire_key_t), 65536u) \
    X(BOOL, mkey_cache, 5, true, 0, 0, \
      "Keep the keys of a message mapped for the next one with the same datatype and " \
      "buffer. 0: map them for each message") \
    X(UINT, key_sets, 6, 32, 0, MCA_PML_UMRDDT_MAX_PLACES, \
      "Sets of at most %u keys of each receiver that a sender remembers, so that a CTS need" \
      " not name them again, 0 to %u",\
      MCA_PML_UMRDDT_SET_KEYS, MCA_PML_UMRDDT_MAX_PLACES) \
    X(UINT, direct_writes, 6, 16, 0, UINT_MAX, \
      "Where both ways are open, the first message of a datatype and buffer goes without " \
      "mkeys if that takes so many writes at most. 0: not for this reason") \
    X(SIZE, direct_run, 6, 65536, 0, SIZE_MAX, \
      "The same, if so many bytes lie together on the average, however many writes it " \
      "takes. 0: not for this reason") \
    X(UINT, direct_layouts, 6, 16, 0, MCA_PML_UMRDDT_MAX_PLACES, \
      "Layouts (of at most %u KiB, flattened) of each receiver that a sender remembers, so " \
      "that they travel once, 0 to %u; and with ipc, of each sender that a receiver " \
      "remembers",\
      MCA_PML_UMRDDT_KEPT_FLAT >> 10, MCA_PML_UMRDDT_MAX_PLACES) \
    X(SIZE, layout_cache_size, 5, 64u << 20, 0, SIZE_MAX, \
      "Bound on the memory of cached layouts, in bytes") \
    X(GPU_SCHEME, gpu_scheme, 6, OPAL_UMRDDT_GPU_HOW_AUTO, 0, 0, \
      "How a GPU copies between layouts: blocks (a copy per block), driver (the CUDA " \
      "driver's copies of 1 to 3 dimensions where they can), kernel (always one), or auto " \
      "(what is fastest)") \
    X(GPU_KERNEL, gpu_kernel, 6, OPAL_UMRDDT_GPU_AUTO, 0, 0, \
      "Which kernel does it, where a kernel does: auto (by the layout), or one of targeted," \
      " transform, sequential, parallel, teams, tempi, yaksa, tree, where it can") \
    X(SIZE, gpu_list_cache, 6, (size_t) 64 << 20, 0, SIZE_MAX, \
      "Bound on the memory of a GPU, in bytes, for the lists that kernels read of layouts") \
    X(SIZE, gpu_pinned, 6, (size_t) 64 << 20, 0, SIZE_MAX, \
      "Bound on the pinned memory of this process, in bytes") \
    X(SIZE, gpu_chunk, 6, (size_t) 512 << 10, 4096, SIZE_MAX, \
      "Bytes of a piece, where a message goes to or from pageable memory through pinned " \
      "memory, %u at least",\
      4096u) \
    X(UINT, gpu_graphs, 6, 64, 0, UINT_MAX, \
      "Kernel launches that are repeated and that a GPU's driver has ready as graphs, at " \
      "most. 0: none") \
    X(BOOL, system_memory_cache, 6, true, 0, 0, \
      "Pages of system memory that the CUDA driver was asked about are remembered, until " \
      "they are unmapped: by Open MPI's memory hooks") \
    X(SIZE, gpu_stage_pinned, 6, (size_t) 4 << 20, 0, SIZE_MAX, \
      "Largest message in GPU memory, in bytes, that is sent from pinned memory where the " \
      "base PML does not take GPU memory; larger ones are sent from plain memory") \
    X(SIZE, gpu_stage_kept, 6, (size_t) 256 << 20, 0, SIZE_MAX, \
      "Bound on the plain memory, in bytes, that is kept for the next such message") \
    X(UINT, ipc_imports, 5, 64, 0, UINT_MAX, \
      "Allocations of other processes' GPUs that stay open when no message uses them. 0: " \
      "each is closed behind its message") \
    X(SIZE, ipc_import_bytes, 6, (size_t) 16 << 30, 0, SIZE_MAX, \
      "Bound on the bytes of those. Memory that its owner frees is held by who has it open") \
    X(UINT, ipc_exports, 6, 256, 0, UINT_MAX, \
      "Allocations of this process whose description for others is remembered") \
    X(BOOL, ipc_done_flags, 6, true, 0, 0, \
      "Tell the sender of a message that was read from GPU memory through shared memory " \
      "that it was, and not by a message") \
    X(BOOL, gpu_hca, 5, true, 0, 0, \
      "Whether the HCA is given memory of GPUs, so that it gathers and scatters there") \
    X(SIZE, pack_min, 6, 8192, 0, SIZE_MAX, \
      "Smallest message in GPU memory, in bytes, that travels packed, in chunks, where it " \
      "can go neither by an HCA nor by CUDA IPC; smaller ones are packed in the call. Not " \
      "measured") \
    X(SIZE, pack_host, 6, (size_t) 256 << 10, 0, SIZE_MAX, \
      "Smallest of those, in bytes, that GPUs pack in their own memory (pack-staged); " \
      "smaller ones they pack in system memory (pack-host). Not measured") \
    X(SIZE, pack_chunk_floor, 6, (size_t) 128 << 10, MCA_PML_UMRDDT_MIN_PACK_CHUNK, MCA_PML_UMRDDT_MAX_PACK_CHUNK, \
      "Bytes of a chunk of those, at least, %u to %u",\
      MCA_PML_UMRDDT_MIN_PACK_CHUNK, MCA_PML_UMRDDT_MAX_PACK_CHUNK) \
    X(SIZE, pack_chunk_ceiling, 6, (size_t) 1 << 20, MCA_PML_UMRDDT_MIN_PACK_CHUNK, MCA_PML_UMRDDT_MAX_PACK_CHUNK, \
      "Bytes of a chunk of those, at most, %u to %u",\
      MCA_PML_UMRDDT_MIN_PACK_CHUNK, MCA_PML_UMRDDT_MAX_PACK_CHUNK) \
    X(UINT, pack_depth, 6, 4, 1, MCA_PML_UMRDDT_PACK_DEPTH, \
      "Chunks of a message that may be under way at once, 1 to %d",\
      MCA_PML_UMRDDT_PACK_DEPTH) \
    X(SIZE, pack_bytes, 6, (size_t) 16 << 20, 0, SIZE_MAX, \
      "Bound on the bytes in buffers of chunks, of sends and of receives each. Beyond it a " \
      "message has one chunk under way") \
    X(SIZE, pack_scratch, 6, (size_t) 64 << 20, 0, SIZE_MAX, \
      "Bound on the memory of GPUs, in bytes, for chunks that are packed there") \
    X(BOOL, pack_hca, 5, true, 0, 0, \
      "Whether chunks that are packed in, or moved to, system memory travel by the HCA, " \
      "where both sides have one; else by the base PML") \
    X(UINT, refusal_timeout, 8, 60, 0, UINT_MAX, \
      "Seconds that the base PML may refuse to send what another process waits for, for " \
      "reasons other than that it is short of something: then the message fails, or, where " \
      "the other process cannot be told, the job ends. 0: it is asked for ever") \
    X(BOOL, check_pattern, 6, false, 0, 0, \
      "See whether what the info key mpi_communication_pattern asserts is true, and say so " \
      "if it is not; a build with --enable-debug always does. Costs the query that the key " \
      "is there to spare") \
    X(UINT, check, 9, 0, 0, UINT_MAX, \
      "For tests: look in one of so many passes of progress, and at the end, whether lists," \
      " counters and states of messages agree, and end the process where they do not. 0: " \
      "never") \
    X(STRING, model, 3, "", 0, 0, \
      "File of figures of this machine, by which auto chooses: what umrddt_tune wrote. " \
      "Empty: the user's or the system's for this hardware, if there is one; none: auto " \
      "goes by its rules; defaults: figures of no particular machine") \
    X(UINT, reuse, 5, 1, 0, UINT_MAX, \
      "With figures: how many messages a datatype and buffer are expected to serve, at " \
      "least, so that what has to be made for them is spread over as many") \
    X(BOOL, explain, 3, false, 0, 0, \
      "Print for each new pair of layouts which schemes are possible, what is predicted of " \
      "each, which is chosen and why, and what was observed") \
    X(BOOL, stats, 3, false, 0, 0, \
      "Print this process's counters at finalize")
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

#define MCA_PML_UMRDDT_PARAM_MEMBER(type, name, ...) MCA_PML_UMRDDT_TYPE_##type name;
typedef struct mca_pml_umrddt_params_t {
    MCA_PML_UMRDDT_PARAMS(MCA_PML_UMRDDT_PARAM_MEMBER)
} mca_pml_umrddt_params_t;

#endif /* MCA_PML_UMRDDT_PARAMS_H */
