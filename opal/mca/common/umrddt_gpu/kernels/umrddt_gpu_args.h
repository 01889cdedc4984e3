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
 * Interface of host and device: names of the kernels, and their one argument. Plain C, compiled by
 * the host's compiler and by nvcc; includes nothing of Open MPI.
 *
 * A kernel copies stream positions start .. end - 1 from side[0] to side[1]. A *side* maps stream
 * positions to memory; its kind is part of the kernel's name and a constant for the compiler.
 * Kernels count in *steps* of `scale` bytes: an access (FLAT, WALK), or a row (ROWS, CUBE).
 *
 * A kernel's name is umrddt_gpu_SHAPE_SOURCE_TARGET_BITS, and _INLINE where lists are part of the
 * argument.
 */

#ifndef UMRDDT_GPU_ARGS_H
#define UMRDDT_GPU_ARGS_H

#include <stdint.h>

/** Division of the work of a launch among its threads. */
typedef enum {
    UMRDDT_GPU_FLAT = 0,  /**< thread i takes accesses i, i + threads, ... of the stream */
    UMRDDT_GPU_ROWS = 1,  /**< rows by y, the accesses of a row by x */
    UMRDDT_GPU_CUBE = 2,  /**< outer rows by z, inner rows by y, accesses by x: no division */
    UMRDDT_GPU_WALK = 3,  /**< a line of x threads searches once per tile, continues step by step */
    UMRDDT_GPU_TEAMS = 4, /**< a line of x threads copies the pieces of a list one by one */
    UMRDDT_GPU_SPANS = 5, /**< a line of threads copies a tile of the stream, span by span */
    UMRDDT_GPU_SHAPES = 6
} umrddt_gpu_shape_t;

/** Kinds of sides. */
typedef enum {
    UMRDDT_GPU_STREAM = 0,  /**< one piece */
    UMRDDT_GPU_STRIDED = 1, /**< levels over a block */
    UMRDDT_GPU_INDEXED = 2, /**< levels over a list of blocks of one length: int64_t offset[n] */
    UMRDDT_GPU_RUNS = 3,    /**< levels over a list of umrddt_gpu_run_t */
    UMRDDT_GPU_IOVS = 4,    /**< a list of pieces: uint64_t start[n + 1], then int64_t offset[n] */
    UMRDDT_GPU_TREE = 5,    /**< umrddt_gpu_term_t[n], then umrddt_gpu_block_t[] */
    UMRDDT_GPU_ANY = 6,     /**< SPANS: any of these, as the side says */
    UMRDDT_GPU_KINDS = 7
} umrddt_gpu_kind_t;

/** Maximum levels above a block: a subarray of 4 dimensions of blocks has 4. */
#define UMRDDT_GPU_LEVELS 4

/** A divisor. If shift is UMRDDT_GPU_NO_MAGIC, dividends may be 2^31 and more. */
typedef struct umrddt_gpu_div_t {
    uint64_t by;    /**< at least 1 */
    uint32_t magic; /**< (high word of (n * magic) + n) >> shift is n / by for n < 2^31 */
    uint32_t shift;
} umrddt_gpu_div_t;

#define UMRDDT_GPU_NO_MAGIC 0xff

/** Repetitions, stride bytes apart. */
typedef struct umrddt_gpu_level_t {
    int64_t stride;
    umrddt_gpu_div_t size; /**< steps of one repetition */
} umrddt_gpu_level_t;

/** Blocks of one length at one distance, a part of a list. Positions and lengths are bytes. */
typedef struct umrddt_gpu_run_t {
    uint64_t start; /**< position within the list's body */
    int64_t offset; /**< of the first block */
    int64_t stride;
    umrddt_gpu_div_t length; /**< of a block; with a magic number if the run is shorter than 2^31 */
} umrddt_gpu_run_t;

/** A term of a form, as in iov_cache_form.h. */
typedef struct umrddt_gpu_term_t {
    int64_t offset;
    uint64_t start;
    int64_t stride;
    umrddt_gpu_div_t size; /**< with a magic number if all repetitions are shorter than 2^31 */
    uint64_t first;
    uint64_t n;    /**< terms or blocks of the body */
    uint64_t kind; /**< 0: dense; 1: terms; 2: blocks */
} umrddt_gpu_term_t;

/** A block of a list of a form. */
typedef struct umrddt_gpu_block_t {
    int64_t offset;
    uint64_t start;
} umrddt_gpu_block_t;

/** Locations of one side's bytes. All addresses are the device's. */
typedef struct umrddt_gpu_side_t {
    uint64_t base; /**< STREAM: address of position 0 (may be virtual); else base of the offsets */
    uint64_t list; /**< of the list; not used by INLINE kernels */
    uint64_t n;    /**< elements of the list */
    umrddt_gpu_div_t block; /**< INDEXED: steps of a block */
    uint32_t levels;
    uint32_t kind;                               /**< umrddt_gpu_kind_t; read by SPANS only */
    umrddt_gpu_level_t level[UMRDDT_GPU_LEVELS]; /**< the outermost first */
} umrddt_gpu_side_t;

/** The argument of a kernel. */
typedef struct umrddt_gpu_args_t {
    uint64_t start; /**< first stream position, in bytes */
    uint64_t end;   /**< one past the last; above start */
    uint64_t
        first;     /**< FLAT, WALK: first whole access; ROWS, CUBE: first row; TEAMS: first piece */
    uint64_t last; /**< one past the last of them; FLAT, WALK: may be first - 1, if none is whole */
    uint64_t scale; /**< bytes of a step */
    uint64_t inner; /**< CUBE: rows of one outer row; WALK, FLAT of IOVS: accesses of a tile; SPANS:
                       bytes of a tile */
    uint64_t outer_first; /**< CUBE: the outer row of the first row */
    uint64_t outer_last;  /**< CUBE: one past that of the last row */
    uint32_t width; /**< bytes of an access: 16, 8, 4, 2, 1; ROWS, TEAMS: 0 if each row has its own;
                       SPANS: 0 */
    uint32_t reserved;
    umrddt_gpu_side_t side[2]; /**< source and target */
} umrddt_gpu_args_t;

/** Minimum size of kernel arguments that all devices support. */
#define UMRDDT_GPU_ARGS_MAX 4096

/** The argument of an INLINE kernel. */
typedef struct umrddt_gpu_args_inline_t {
    umrddt_gpu_args_t args;
    uint64_t data[(UMRDDT_GPU_ARGS_MAX - sizeof(umrddt_gpu_args_t)) / sizeof(uint64_t)];
} umrddt_gpu_args_inline_t;

/*
 * Batches: several copies in one launch. A batch consists of words. From the front, one word per
 * part: its first block, the place of its content and its method. The contents are at the end, the
 * last part's first. A content is a umrddt_gpu_regular_t and its two sides, or a umrddt_gpu_args_t.
 */

/** Methods of the parts of a batch. */
typedef enum {
    UMRDDT_GPU_PART_REGULAR = 0, /**< as FLAT: STREAM and STRIDED, fewer than 2^31 steps */
    UMRDDT_GPU_PART_ANY = 1,     /**< as FLAT, of any two kinds */
    UMRDDT_GPU_PART_SPANS = 2    /**< as SPANS */
} umrddt_gpu_part_mode_t;

/** A level of a side of a REGULAR part. */
typedef struct umrddt_gpu_part_level_t {
    int64_t stride;
    uint32_t size; /**< steps of one repetition */
    uint32_t magic;
} umrddt_gpu_part_level_t;

/** A side of a REGULAR part: its base, and as many levels as it has. */
typedef struct umrddt_gpu_part_side_t {
    uint64_t base;
    umrddt_gpu_part_level_t level[UMRDDT_GPU_LEVELS];
} umrddt_gpu_part_side_t;

/** The head of a REGULAR part; the two sides follow. A step is an access. */
typedef struct umrddt_gpu_regular_t {
    uint64_t start; /**< first stream position, in bytes */
    uint64_t end;
    uint32_t width; /**< bytes of an access: 16, 8, 4, 2, 1 */
    uint16_t reserved;
    uint8_t levels[2];                   /**< of source and target */
    uint8_t shift[2][UMRDDT_GPU_LEVELS]; /**< of the levels' divisors, as in umrddt_gpu_div_t */
} umrddt_gpu_regular_t;

/** Fields of the word of a part, lowest first: 32, 16 and 16 bits. */
#define UMRDDT_GPU_PART(FIRST, AT, MODE) \
    ((uint64_t) (FIRST) | (uint64_t) (AT) << 32 | (uint64_t) (MODE) << 48)
#define UMRDDT_GPU_PART_FIRST(WORD) ((uint32_t) (WORD))
#define UMRDDT_GPU_PART_AT(WORD)    ((uint32_t) ((WORD) >> 32 & 0xffff))
#define UMRDDT_GPU_PART_MODE(WORD)  ((uint32_t) ((WORD) >> 48))

#define UMRDDT_GPU_BATCH_WORDS ((UMRDDT_GPU_ARGS_MAX - 8) / 8)

/** The argument of the kernels of batches. Its grid and its blocks have one dimension. */
typedef struct umrddt_gpu_batch_t {
    uint32_t n; /**< parts */
    uint32_t reserved;
    uint64_t word[UMRDDT_GPU_BATCH_WORDS];
} umrddt_gpu_batch_t;

/* X(SHAPE, SOURCE, TARGET, BITS): those with arithmetic of 32 bits are for dividends below 2^31. */
#define UMRDDT_GPU_REGULAR(X, SHAPE, BITS) \
    X(SHAPE, STREAM, STRIDED, BITS)        \
    X(SHAPE, STREAM, INDEXED, BITS)        \
    X(SHAPE, STRIDED, STREAM, BITS)        \
    X(SHAPE, STRIDED, STRIDED, BITS)       \
    X(SHAPE, STRIDED, INDEXED, BITS)       \
    X(SHAPE, INDEXED, STREAM, BITS)        \
    X(SHAPE, INDEXED, STRIDED, BITS)       \
    X(SHAPE, INDEXED, INDEXED, BITS)

#define UMRDDT_GPU_SEARCHED(X, KIND) \
    X(FLAT, KIND, STREAM, 64)        \
    X(FLAT, KIND, STRIDED, 64)       \
    X(FLAT, KIND, INDEXED, 64)       \
    X(FLAT, KIND, RUNS, 64)          \
    X(FLAT, KIND, IOVS, 64)          \
    X(FLAT, KIND, TREE, 64)          \
    X(FLAT, STREAM, KIND, 64)        \
    X(FLAT, STRIDED, KIND, 64)       \
    X(FLAT, INDEXED, KIND, 64)

/** All kernels whose lists, if any, are in the device's memory. */
#define UMRDDT_GPU_KERNELS(X)       \
    X(ROWS, STREAM, STREAM, 64)     \
    UMRDDT_GPU_REGULAR(X, ROWS, 32) \
    UMRDDT_GPU_REGULAR(X, ROWS, 64) \
    UMRDDT_GPU_REGULAR(X, FLAT, 32) \
    UMRDDT_GPU_REGULAR(X, FLAT, 64) \
    UMRDDT_GPU_SEARCHED(X, RUNS)    \
    UMRDDT_GPU_SEARCHED(X, IOVS)    \
    UMRDDT_GPU_SEARCHED(X, TREE)    \
    X(CUBE, STRIDED, STREAM, 64)    \
    X(CUBE, STREAM, STRIDED, 64)    \
    X(WALK, IOVS, STREAM, 64)       \
    X(WALK, STREAM, IOVS, 64)       \
    X(TEAMS, IOVS, STREAM, 64)      \
    X(TEAMS, STREAM, IOVS, 64)      \
    X(SPANS, ANY, ANY, 64)

/** Kernels whose list is in their argument. */
#define UMRDDT_GPU_KERNELS_INLINE(X) \
    X(ROWS, INDEXED, STREAM, 64)     \
    X(ROWS, STREAM, INDEXED, 64)     \
    X(FLAT, INDEXED, STREAM, 64)     \
    X(FLAT, STREAM, INDEXED, 64)     \
    X(FLAT, RUNS, STREAM, 64)        \
    X(FLAT, STREAM, RUNS, 64)        \
    X(FLAT, IOVS, STREAM, 64)        \
    X(FLAT, STREAM, IOVS, 64)        \
    X(FLAT, TREE, STREAM, 64)        \
    X(FLAT, STREAM, TREE, 64)        \
    X(WALK, IOVS, STREAM, 64)        \
    X(WALK, STREAM, IOVS, 64)        \
    X(TEAMS, IOVS, STREAM, 64)       \
    X(TEAMS, STREAM, IOVS, 64)       \
    X(SPANS, ANY, ANY, 64)

/** Kernels by number. */
typedef enum {
#define UMRDDT_GPU_ID(SHAPE, SOURCE, TARGET, BITS) \
    UMRDDT_GPU_KERNEL_##SHAPE##_##SOURCE##_##TARGET##_##BITS,
#define UMRDDT_GPU_ID_INLINE(SHAPE, SOURCE, TARGET, BITS) \
    UMRDDT_GPU_KERNEL_##SHAPE##_##SOURCE##_##TARGET##_##BITS##_INLINE,
    UMRDDT_GPU_KERNELS(UMRDDT_GPU_ID)
    UMRDDT_GPU_KERNELS_INLINE(UMRDDT_GPU_ID_INLINE)
#undef UMRDDT_GPU_ID
#undef UMRDDT_GPU_ID_INLINE
        UMRDDT_GPU_KERNEL_BATCH_REGULAR, /**< the parts of a umrddt_gpu_batch_t, all REGULAR */
    UMRDDT_GPU_KERNEL_BATCH_ANY,         /**< the same, of all methods */
    UMRDDT_GPU_KERNEL_COUNT
} umrddt_gpu_kernel_id_t;

/** Maximum threads of a block; all kernels are compiled for it. */
#define UMRDDT_GPU_MAX_THREADS 256

#endif /* UMRDDT_GPU_ARGS_H */
