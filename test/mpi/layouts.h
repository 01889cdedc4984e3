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
 * Datatypes to send, and buffers with their expected content.
 *
 * A *map* has for every byte near a buffer the index of the byte in the data stream (the order of
 * MPI_Pack) that belongs there, or marks a gap. MPI_Unpack makes it once, so later checks use no
 * datatype engine. A *buffer* is memory for a map with guards around. Stream byte i of a message
 * with key k is always mpitest_byte(k, i), and gaps and guards hold a pattern of their own. Every
 * byte of a receive is therefore checked: data, gaps, and the bytes after a short message.
 */

#ifndef MPITEST_LAYOUTS_H
#define MPITEST_LAYOUTS_H

#include "gpu_memory.h"
#include "mpitest.h"

/** Bytes checked on each side of a buffer. */
#define MPITEST_GUARD 192

/** Bytes that are consecutive in memory and in the stream. */
typedef struct mpitest_run_t {
    MPI_Aint at; /**< from the lowest byte of the map */
    MPI_Aint length;
    MPI_Aint stream; /**< position of the first byte in the stream */
} mpitest_run_t;

/** (type, count), and the positions of its bytes. */
typedef struct mpitest_map_t {
    MPI_Datatype type; /**< not owned */
    int count;
    MPI_Aint lb;         /**< lowest byte touched, relative to the buffer address */
    MPI_Aint span;       /**< bytes from there to the highest */
    MPI_Aint size;       /**< bytes in the stream */
    mpitest_run_t *runs; /**< all data, in the order of memory; all else are gaps */
    size_t run_count;
} mpitest_map_t;

/** Memory for a map. */
typedef struct mpitest_buffer_t {
    const mpitest_map_t *map; /**< not owned */
    gpu_memory_t *place;      /**< guard, span, guard: the memory that MPI uses; NULL: in memory */
    unsigned char *memory;    /**< the same bytes, as last written or read back */
    void *addr;               /**< the buffer argument of MPI calls */
} mpitest_buffer_t;

/** Make the map of (type, count). The type must be committed, and outlive the map. At most 1 GiB.
 */
mpitest_map_t *mpitest_map(MPI_Datatype type, int count);
void mpitest_map_free(mpitest_map_t *map);

/** The position of byte @p i of the span in the stream, or -1. */
MPI_Aint mpitest_map_at(const mpitest_map_t *map, MPI_Aint i);

/**
 * Allocate memory filled with the gap pattern. It is system memory, or with UMRDDT_TEST_MEMORY of a
 * kind that is drawn from its list (see gpu_kinds_of). Other kinds may be accessed by these
 * functions only.
 */
mpitest_buffer_t *mpitest_buffer(const mpitest_map_t *map);

/** The same, of a given kind. */
mpitest_buffer_t *mpitest_buffer_of(const mpitest_map_t *map, gpu_kind_t kind);

void mpitest_buffer_free(mpitest_buffer_t *buffer);

/** Byte @p i of the stream of message @p key. */
static inline unsigned char mpitest_byte(uint64_t key, uint64_t i)
{
    uint64_t z = (key + i) * 0x9e3779b97f4a7c15u;

    return (unsigned char) (z >> 56 ^ z >> 35);
}

/** Write the stream of message @p key, and the gap pattern everywhere else. */
void mpitest_fill(mpitest_buffer_t *buffer, uint64_t key);

/** Gap pattern everywhere. */
void mpitest_clear(mpitest_buffer_t *buffer);

/**
 * Check that the first @p bytes of the stream are message @p key, and that all else is gap pattern.
 * Fails the test with the position of the first wrong byte.
 */
void mpitest_verify_at(const char *file, int line, const mpitest_buffer_t *buffer, uint64_t key,
                       MPI_Aint bytes);
#define VERIFY(buffer, key, bytes) mpitest_verify_at(__FILE__, __LINE__, buffer, key, bytes)

/**
 * Like verify, after a truncated receive. MPI does not define whether the first bytes were
 * delivered: each must be the message's or untouched. All bytes outside must be untouched.
 *
 * @return true if all of them are the message's
 */
bool mpitest_verify_truncated_at(const char *file, int line, const mpitest_buffer_t *buffer,
                                 uint64_t key, MPI_Aint bytes);
#define VERIFY_TRUNCATED(buffer, key, bytes) \
    mpitest_verify_truncated_at(__FILE__, __LINE__, buffer, key, bytes)

/**
 * Like verify, for a receive that is pending or has failed: its bytes may have any value, all
 * others must be untouched.
 */
void mpitest_verify_beside_at(const char *file, int line, const mpitest_buffer_t *buffer);
#define VERIFY_BESIDE(buffer) mpitest_verify_beside_at(__FILE__, __LINE__, buffer)

/**
 * True if the first @p bytes of the stream are message @p key; for freed requests, which cannot be
 * waited for. Only a test of the current state; use VERIFY to check.
 */
bool mpitest_arrived(const mpitest_buffer_t *buffer, uint64_t key, MPI_Aint bytes);

/** Layouts for a number of bytes; the signature of each is that many MPI_BYTE. */
typedef enum mpitest_kind_t {
    MPITEST_CONTIGUOUS, /**< one piece */
    MPITEST_FINE,       /**< blocks of 8 every 24 bytes */
    MPITEST_COARSE,     /**< blocks of 1 KiB every 2 KiB */
    MPITEST_WIDE,       /**< blocks of 512 a stride beyond 16 bits apart */
    MPITEST_IRREGULAR,  /**< blocks of 1 to 700 bytes, gaps of 1 to 90, from the seed */
    MPITEST_DESCENDING, /**< blocks of 256, the last of memory first in the stream */
    MPITEST_NEGATIVE,   /**< as FINE, all before the buffer address */
    MPITEST_NESTED,     /**< rows of short blocks: a vector of vectors */
    MPITEST_KINDS
} mpitest_kind_t;

/**
 * A committed datatype of @p bytes bytes laid out as @p kind.
 *
 * @param[in] bytes  may be 0
 * @param[in] seed   for MPITEST_IRREGULAR
 */
MPI_Datatype mpitest_type(mpitest_kind_t kind, int bytes, uint64_t seed);

/** One of the kinds except MPITEST_WIDE, which needs much memory for few bytes. */
mpitest_kind_t mpitest_draw_kind(uint64_t *state);

/** A size below, at or above the thresholds at which the scheme of a message changes. */
int mpitest_draw_bytes(uint64_t *state);

/** Its name, for messages. */
const char *mpitest_kind_name(mpitest_kind_t kind);

/** Type, map and buffer in one, for tests that need only a message. */
typedef struct mpitest_message_t {
    MPI_Datatype type;
    mpitest_map_t *map;
    mpitest_buffer_t *buffer;
    void *addr; /**< of the buffer */
    int bytes;  /**< of the stream */
    struct mpitest_message_t *kept;
} mpitest_message_t;

/** Make one, cleared. */
mpitest_message_t *mpitest_message(mpitest_kind_t kind, int bytes, uint64_t seed);
void mpitest_message_free(mpitest_message_t *message);

/**
 * Free all except the buffer, for a layout whose receive was freed. The arrival of the bytes does
 * not imply that MPI is done with the memory. Only MPI_Finalize implies that.
 */
void mpitest_message_leave(mpitest_message_t *message);

#endif /* MPITEST_LAYOUTS_H */
