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
 * Exchanges of applications: all messages of a rank at once, or a collective. The array of an
 * exchange has the sent and the received data, and gaps. Every word of it is checked.
 *
 * Read exchange_patterns.c for stencils, bodies and MPI_Alltoallw, exchange_messages.c for
 * collectives and contiguous messages.
 */

#ifndef BENCH_EXCHANGE_H
#define BENCH_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <mpi.h>

/** Directions in space, neighbours of a grid and the rank itself. */
#define EXCHANGE_SPACE 3
#define EXCHANGE_CODES 27

/** Most messages of an exchange, most ranks of a collective. */
#define EXCHANGE_MOST  64
#define EXCHANGE_RANKS 32

/** A word that no rank sends. */
#define EXCHANGE_NOTHING UINT64_MAX

/** exchange_pattern_t.directions of one MPI_Alltoallw. */
#define EXCHANGE_ALLTOALLW (-1)

typedef struct exchange_pattern_t {
    const char *name;
    const char *what;
    int directions; /**< of a grid; 0: bodies; or EXCHANGE_ALLTOALLW */
    bool diagonal;  /**< all neighbours, not only those across a face */
    bool peer;      /**< of two ranks, each neighbour is the other rank */
    int fields;
    int radius;
    int side; /**< of a rank's grid, without its border; or how many bodies a rank has */
} exchange_pattern_t;

extern const exchange_pattern_t exchange_patterns[];
extern const size_t exchange_pattern_count;

/** One message, and the incoming one: from the same side, except in a ring. */
typedef struct exchange_message_t {
    int to, from;
    MPI_Datatype send, recv;
    int send_count, recv_count;
    size_t send_at, recv_at; /**< words from the begin of the array */
    int send_tag, recv_tag;
    uint64_t bytes, pieces; /**< of the sent data, by plain arithmetic */
} exchange_message_t;

typedef struct exchange_t exchange_t;

struct exchange_t {
    const char *name;
    const exchange_pattern_t *pattern; /**< or NULL */
    int rank, size, side;
    MPI_Comm comm;
    size_t words;                                   /**< of the array */
    uint64_t *array, *wanted;                       /**< in system memory */
    uint64_t *gpu;                                  /**< or NULL */
    int dims[EXCHANGE_SPACE], here[EXCHANGE_SPACE]; /**< the ranks' grid; [0] is the slowest */
    int *listed;                                    /**< bodies that are sent; ascending */
    size_t block;                                   /**< words of a collective's block */
    size_t send_at, recv_at;                        /**< its buffers, words from the begin */
    bool one_way;                                   /**< only rank 0 sends */
    size_t own_from, own_to, own_words;             /**< by hand: one copy within the rank */
    exchange_message_t messages[EXCHANGE_MOST];
    int count;  /**< messages of a round */
    int rounds; /**< one after the other; see turn */

    /** The expected words after an exchange, or those before it. */
    void (*expect)(const exchange_t *exchange, int iteration, uint64_t *words, bool after);
    /** The collective, or NULL if there are only messages. @p array is that of the memory in use.
     */
    void (*call)(exchange_t *exchange, char *array);
    /** Set the messages of a round, or NULL if all rounds have the same. */
    void (*turn)(exchange_t *exchange, int round);
};

/** A word that is wrong. */
typedef struct exchange_wrong_t {
    size_t word;
    uint64_t got, expected;
} exchange_wrong_t;

/** The pattern of this name, or NULL. */
const exchange_pattern_t *exchange_find(const char *name);

/**
 * Open an exchange. Collective over @p comm, which must live as long.
 *
 * @param[in] side    of the pattern; 0: its default
 * @param[in] on_gpu  whether the array is in GPU memory
 */
void exchange_open_pattern(exchange_t *exchange, const exchange_pattern_t *pattern, int side,
                           MPI_Comm comm, bool on_gpu);

/** The collectives, by name: bcast, allgather, alltoall, allreduce, iallreduce, self. */
extern const char *const exchange_collectives[];
extern const size_t exchange_collective_count;

/**
 * Open a collective of blocks of @p words 8-byte words: the buffer of bcast and of reductions, the
 * part of each rank of allgather, of each pair of ranks of alltoall, the message to oneself.
 *
 * @param[in] by_hand  of reductions: the messages of a reduce-scatter and of an allgather, without
 * the additions. The messages of the others are part of the collective itself.
 */
void exchange_open_collective(exchange_t *exchange, const char *name, size_t words, bool by_hand,
                              MPI_Comm comm, bool on_gpu);

/** Open the exchange of the same messages as of @p like, each contiguous. */
void exchange_open_contiguous(exchange_t *exchange, const exchange_t *like, bool on_gpu);

/**
 * Open the exchange of one contiguous message with the bytes of @p like's messages to other ranks:
 * from each rank to the next one, or, with one sender, from rank 0 to the last rank.
 */
void exchange_open_one(exchange_t *exchange, const exchange_t *like, bool on_gpu);

void exchange_close(exchange_t *exchange);

/** Bytes, messages and pieces that this rank sends to other ranks, in [0], [1] and [2]. */
void exchange_sums(const exchange_t *exchange, uint64_t sums[3]);

/** Write the words before iteration @p iteration into the memory in use. */
void exchange_fill(exchange_t *exchange, int iteration);

/** One exchange. @param[in] by_hand  by messages, not by the collective */
void exchange_run(exchange_t *exchange, bool by_hand);

/**
 * Check all words after iteration @p iteration.
 *
 * Test hook: the environment variable UMRDDT_EXCHANGE_PLANT is the number of a word of rank 0 that
 * is changed before the check.
 *
 * @return false: a word is wrong, see @p wrong
 */
bool exchange_check(exchange_t *exchange, int iteration, exchange_wrong_t *wrong);

/** The value of a word, different for each rank, place and iteration. */
uint64_t exchange_value(int rank, size_t place, int iteration);

/** The begin of every exchange_open_*; and its end, when words is known. */
void exchange_open(exchange_t *exchange, const char *name, MPI_Comm comm);
void exchange_make_array(exchange_t *exchange, bool on_gpu);

#endif /* BENCH_EXCHANGE_H */
