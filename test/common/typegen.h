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
 * Random nested MPI datatypes for tests, on the public MPI API only.
 *
 * Everything drawn depends only on the state of the generator that is handed in, so a test prints
 * its seed and a run with the same seed draws the same types on every process (two ranks that seed
 * alike know each other's types).
 *
 * Each type comes with a *model*: the list of its basic elements with their displacements, worked
 * out here from the definitions of the MPI standard and not by asking the MPI library. The model is
 * an oracle that shares no code with the library, and what guarantees that no byte is touched
 * twice.
 *
 * A typical test of two ranks:
 *
 *     typegen_rng_t rng;
 *     typegen_options_t options = TYPEGEN_OPTIONS_DEFAULT;
 *     typegen_side_t send, recv;
 *     typegen_buffer_t buffer;
 *
 *     typegen_seed(&rng, seed);                             // both ranks
 *     typegen_pair(&rng, &options, &send, &recv);           // both ranks
 *     if (0 == rank) {
 *         typegen_buffer_alloc(&send, &buffer);
 *         typegen_fill(&buffer, seed);
 *         MPI_Send(buffer.address, send.count, send.type, 1, 0, MPI_COMM_WORLD);
 *         typegen_verify(&send, &buffer, seed, NULL, 0, why, sizeof(why));  // nothing was written
 *     } else {
 *         unsigned char *stream = typegen_expected(&send, seed);
 *
 *         typegen_buffer_alloc(&recv, &buffer);
 *         typegen_fill(&buffer, seed + 1);
 *         MPI_Recv(buffer.address, recv.count, recv.type, 0, 0, MPI_COMM_WORLD, &status);
 *         typegen_verify(&recv, &buffer, seed + 1, stream, send.size, why, sizeof(why));
 *         free(stream);
 *     }
 *     typegen_buffer_free(&buffer);
 *     typegen_side_free(&send);
 *     typegen_side_free(&recv);
 *
 * A failure of MPI or of malloc in here ends the program with a message: tests have no way on.
 */

#ifndef TEST_COMMON_TYPEGEN_H
#define TEST_COMMON_TYPEGEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

/** A splitmix64 generator. Copy it to keep a point to come back to. */
typedef struct typegen_rng_t {
    uint64_t state;
} typegen_rng_t;

/** Begin the sequence of @p seed. */
void typegen_seed(typegen_rng_t *rng, uint64_t seed);

/** The next 64 bits. */
uint64_t typegen_next(typegen_rng_t *rng);

/** A number in 0 .. bound - 1; 0 if bound is 0. */
uint64_t typegen_below(typegen_rng_t *rng, uint64_t bound);

/** True once in @p n times. */
bool typegen_once_in(typegen_rng_t *rng, uint64_t n);

/** What may be drawn. */
typedef struct typegen_options_t {
    int max_depth;       /**< constructors above each other, 0 .. 8 */
    size_t min_elements; /**< basic elements in (type, count), at least about so many */
    size_t max_elements; /**< and at most so many */
    int64_t max_span;    /**< bytes from the lowest to the highest byte touched, at most */
    int max_count;       /**< the count that goes with a type, 1 .. max_count */
    bool receivable;     /**< no byte is touched twice (the receiving side of a pair never is) */
    bool bytes_only;     /**< MPI_BYTE is the only basic type */
    bool contiguous;     /**< pairs: now and then one side is contiguous */
    bool empty;          /**< now and then the whole type has no element at all (not in pairs) */
} typegen_options_t;

#define TYPEGEN_OPTIONS_DEFAULT                                                               \
    {                                                                                         \
        .max_depth = 4, .min_elements = 1, .max_elements = 2048, .max_span = 4 * 1024 * 1024, \
        .max_count = 8, .receivable = true, .bytes_only = false, .contiguous = true,          \
        .empty = false,                                                                       \
    }

/** One basic element of the model. */
typedef struct typegen_element_t {
    int64_t offset;  /**< bytes from the buffer address */
    uint32_t length; /**< bytes */
    uint32_t basic;  /**< which basic type; equal numbers are equal types */
} typegen_element_t;

/** A datatype, its count and the model of both. */
typedef struct typegen_side_t {
    MPI_Datatype type;           /**< committed; freed by typegen_side_free */
    int count;                   /**< how many of it a message has */
    bool overlapping;            /**< some byte is touched twice: send only */
    uint64_t size;               /**< bytes of data in (type, count) */
    int64_t low;                 /**< lowest offset touched; 0 if size is 0 */
    int64_t high;                /**< one past the highest offset touched; 0 if size is 0 */
    size_t element_count;        /**< basic elements in (type, count) */
    typegen_element_t *elements; /**< in stream order */
    char description[512];       /**< the constructors, cut with "..." where too long */
} typegen_side_t;

/** Draw a type and a count. */
void typegen_random(typegen_rng_t *rng, const typegen_options_t *options, typegen_side_t *side);

/**
 * Draw two types and counts of the same type signature (same sequence of basic elements), in two
 * layouts drawn independently of each other. @p recv never touches a byte twice; @p send may where
 * options->receivable is false.
 */
void typegen_pair(typegen_rng_t *rng, const typegen_options_t *options, typegen_side_t *send,
                  typegen_side_t *recv);

/** Free the type and the model. */
void typegen_side_free(typegen_side_t *side);

/** Memory for one side: [low, high) with TYPEGEN_GUARD bytes before and behind. */
typedef struct typegen_buffer_t {
    unsigned char *memory; /**< what was allocated */
    size_t bytes;          /**< how much of it */
    int64_t low;           /**< offset from address of memory[0] */
    void *address;         /**< what MPI calls are given; may lie outside of the memory */
} typegen_buffer_t;

#define TYPEGEN_GUARD 64

/** Allocate the memory of one side; its bytes are not set. Free it with typegen_buffer_free. */
void typegen_buffer_alloc(const typegen_side_t *side, typegen_buffer_t *buffer);
void typegen_buffer_free(typegen_buffer_t *buffer);

/**
 * The byte that typegen_fill puts at @p offset from the address. Neighbouring offsets and other
 * seeds give unrelated bytes.
 */
unsigned char typegen_pattern(uint64_t seed, int64_t offset);

/** Fill all of the memory, data and gaps and guards, with the pattern of @p seed. */
void typegen_fill(typegen_buffer_t *buffer, uint64_t seed);

/**
 * The stream (what MPI_Pack gives) of a side whose buffer was filled with @p seed.
 *
 * @return side->size bytes, to be freed with free()
 */
unsigned char *typegen_expected(const typegen_side_t *side, uint64_t seed);

/**
 * Compare a buffer with what it must hold: the first @p bytes of the side's stream are those of
 * @p stream, and every other byte (rest of the stream, gaps, guards) is as typegen_fill with
 * @p seed left it.
 *
 * @param[in]  stream  NULL if nothing was to be written; then bytes must be 0
 * @param[out] why     the position of the first wrong byte and what was found, in words
 *
 * @return true if all is well; why is then empty
 */
bool typegen_verify(const typegen_side_t *side, const typegen_buffer_t *buffer, uint64_t seed,
                    const unsigned char *stream, uint64_t bytes, char *why, size_t why_size);

#endif /* TEST_COMMON_TYPEGEN_H */
