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
 * Datatypes to send, and buffers that know what must be in them.
 *
 * A *map* says for every byte near a buffer which byte of the data stream (the order of MPI_Pack)
 * belongs there, or that it is a gap. It is made with MPI_Unpack, once, so a check afterwards uses
 * no datatype engine. A *buffer* is memory for a map with guards around; stream byte i of a message
 * with key k is always mpitest_byte(k, i), and gaps and guards hold a pattern of their own, so
 * every byte of a receive is judged: data, gaps, and what lies behind a short message.
 */

#ifndef MPITEST_LAYOUTS_H
#define MPITEST_LAYOUTS_H

#include "gpu_memory.h"
#include "mpitest.h"

/** Bytes watched on each side of a buffer. */
#define MPITEST_GUARD 192

/** (type, count), and where its bytes lie. */
typedef struct mpitest_map_t {
    MPI_Datatype type; /**< not owned */
    int count;
    MPI_Aint lb;    /**< lowest byte touched, relative to the buffer address */
    MPI_Aint span;  /**< bytes from there to the highest */
    MPI_Aint size;  /**< bytes in the stream */
    int32_t *where; /**< for each byte of the span its position in the stream, or -1 */
} mpitest_map_t;

/** Memory for a map. */
typedef struct mpitest_buffer_t {
    const mpitest_map_t *map; /**< not owned */
    gpu_memory_t *place;      /**< guard, span, guard: where MPI finds it; NULL: in memory */
    unsigned char *memory;    /**< the same bytes, as they were written or last read back */
    void *addr;               /**< what MPI calls are given */
} mpitest_buffer_t;

/** Make the map of (type, count). The type must be committed, and live as long. At most 1 GiB. */
mpitest_map_t *mpitest_map(MPI_Datatype type, int count);
void mpitest_map_free(mpitest_map_t *map);

/**
 * Memory of its own, all gap pattern. Of the host, or with UMRDDT_TEST_MEMORY of a kind that is
 * drawn from its list (see gpu_kinds_of); then nobody but these functions may look into it.
 */
mpitest_buffer_t *mpitest_buffer(const mpitest_map_t *map);

/** The same of a kind. */
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
 * The first @p bytes of the stream must be message @p key; all else must be gap pattern.
 *
 * Fails the test with the position of the first wrong byte.
 */
void mpitest_verify_at(const char *file, int line, const mpitest_buffer_t *buffer, uint64_t key,
                       MPI_Aint bytes);
#define VERIFY(buffer, key, bytes) mpitest_verify_at(__FILE__, __LINE__, buffer, key, bytes)

/**
 * As verify, after a truncated receive: MPI leaves open whether the first bytes were delivered.
 * Each of them must be the message's or untouched; whatever lies outside must be untouched.
 *
 * @return true if all of them are the message's
 */
bool mpitest_verify_truncated_at(const char *file, int line, const mpitest_buffer_t *buffer,
                                 uint64_t key, MPI_Aint bytes);
#define VERIFY_TRUNCATED(buffer, key, bytes) \
    mpitest_verify_truncated_at(__FILE__, __LINE__, buffer, key, bytes)

/**
 * As verify, of a receive that is not done, or has failed: its bytes may be any, all others must be
 * untouched.
 */
void mpitest_verify_beside_at(const char *file, int line, const mpitest_buffer_t *buffer);
#define VERIFY_BESIDE(buffer) mpitest_verify_beside_at(__FILE__, __LINE__, buffer)

/**
 * True if the first @p bytes of the stream are message @p key; for requests that nobody can wait
 * for. Looks only, and leaves judging to VERIFY.
 */
bool mpitest_arrived(const mpitest_buffer_t *buffer, uint64_t key, MPI_Aint bytes);

/** Ways to lay out a number of bytes; the signature of each is that many MPI_BYTE. */
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

/** One of the kinds, but not MPITEST_WIDE, which is much memory for few bytes. */
mpitest_kind_t mpitest_draw_kind(uint64_t *state);

/** A size below, at or above the borders at which messages are sent in another way. */
int mpitest_draw_bytes(uint64_t *state);

/** Its name, for messages. */
const char *mpitest_kind_name(mpitest_kind_t kind);

/** Type, map and buffer in one, for tests that need a message and nothing else. */
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
 * The same for one that a receive whose request was freed has brought: all but the buffer is freed.
 * That the bytes are there does not say that MPI is done with the memory, and nothing else does
 * before MPI_Finalize.
 */
void mpitest_message_leave(mpitest_message_t *message);

#endif /* MPITEST_LAYOUTS_H */
