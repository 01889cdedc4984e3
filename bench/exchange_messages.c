/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include <string.h>

#include "bench_util.h"
#include "exchange.h"

/* Words around each buffer, which nothing may change. Buffers begin at a multiple of it. */
#define GAP ((size_t) 512)

/* Data of one message: its words are below this. */
#define MESSAGE_WORDS ((size_t) 1 << 27)

static size_t with_gap(size_t words)
{
    return (words + GAP - 1) / GAP * GAP + GAP;
}

static void clear(const exchange_t *exchange, uint64_t *words)
{
    for (size_t i = 0; i < exchange->words; ++i) {
        words[i] = EXCHANGE_NOTHING;
    }
}

/* Without a sent or a received part, its rank is MPI_PROC_NULL. */
static exchange_message_t *add_message(exchange_t *exchange, int to, size_t send_at,
                                       size_t send_words, int from, size_t recv_at,
                                       size_t recv_words)
{
    exchange_message_t *message = &exchange->messages[exchange->count++];

    message->to = to;
    message->from = from;
    message->send = message->recv = MPI_UINT64_T;
    message->send_at = send_at;
    message->recv_at = recv_at;
    message->send_count = (int) send_words;
    message->recv_count = (int) recv_words;
    message->bytes = 8 * send_words;
    message->pieces = 0 < send_words;
    return message;
}

/* -------------------------------------------------------------------------------------------------
 * Contiguous messages. A word has a value of its message, wherever it is
 * ---------------------------------------------------------------------------------------------- */

static uint64_t message_value(const exchange_t *exchange, int from, int to, int tag, size_t word,
                              int iteration)
{
    const size_t number = (size_t) tag * (size_t) exchange->size + (size_t) to;

    return exchange_value(from, number * MESSAGE_WORDS + word, iteration);
}

static void expect_messages(const exchange_t *exchange, int iteration, uint64_t *words, bool after)
{
    clear(exchange, words);
    for (int i = 0; i < exchange->count; ++i) {
        const exchange_message_t *message = &exchange->messages[i];

        for (int word = 0; word < message->send_count; ++word) {
            words[message->send_at + (size_t) word] = message_value(
                exchange, exchange->rank, message->to, message->send_tag, (size_t) word, iteration);
        }
        for (int word = 0; after && word < message->recv_count; ++word) {
            words[message->recv_at + (size_t) word] =
                message_value(exchange, message->from, exchange->rank, message->recv_tag,
                              (size_t) word, iteration);
        }
    }
    for (size_t word = 0; word < exchange->own_words; ++word) {
        words[exchange->own_from + word] =
            message_value(exchange, exchange->rank, exchange->rank, 0, word, iteration);
        if (after) {
            words[exchange->own_to + word] = words[exchange->own_from + word];
        }
    }
}

static size_t words_of(MPI_Datatype type, int count)
{
    int bytes;

    MPI_Type_size(type, &bytes);
    return (size_t) bytes / 8 * (size_t) count;
}

void exchange_open_contiguous(exchange_t *exchange, const exchange_t *like, bool on_gpu)
{
    size_t at = GAP;

    exchange_open(exchange, like->name, like->comm);
    exchange->expect = expect_messages;
    exchange->rounds = like->rounds;
    for (int i = 0; i < like->count; ++i) {
        const exchange_message_t *message = &like->messages[i];
        const size_t sent = words_of(message->send, message->send_count);
        const size_t received = words_of(message->recv, message->recv_count);
        const size_t recv_at = at + with_gap(sent);

        if (NULL != like->call && message->to == like->rank) {
            exchange->own_from = at;
            exchange->own_to = recv_at;
            exchange->own_words = sent;
        } else {
            exchange_message_t *mine =
                add_message(exchange, message->to, at, sent, message->from, recv_at, received);

            mine->send_tag = message->send_tag;
            mine->recv_tag = message->recv_tag;
        }
        at = recv_at + with_gap(received);
    }
    exchange->words = at;
    exchange_make_array(exchange, on_gpu);
}

void exchange_open_one(exchange_t *exchange, const exchange_t *like, bool on_gpu)
{
    const int last = like->size - 1;
    uint64_t sums[3], bytes;
    size_t words;

    exchange_sums(like, sums);
    MPI_Allreduce(&sums[0], &bytes, 1, MPI_UINT64_T, MPI_MAX, like->comm);
    words = 0 == bytes ? like->block : (size_t) bytes / 8;
    if (like->one_way) {
        words = like->block;
    }
    exchange_open(exchange, like->name, like->comm);
    exchange->expect = expect_messages;
    if (!like->one_way) {
        add_message(exchange, like->rank < last ? like->rank + 1 : 0, GAP, words,
                    0 < like->rank ? like->rank - 1 : last, GAP + with_gap(words), words);
    } else if (0 == like->rank) {
        add_message(exchange, last, GAP, words, MPI_PROC_NULL, GAP, 0);
    } else if (last == like->rank) {
        add_message(exchange, MPI_PROC_NULL, GAP, 0, 0, GAP, words);
    }
    exchange->words = GAP + 2 * with_gap(words);
    exchange_make_array(exchange, on_gpu);
}

/* -------------------------------------------------------------------------------------------------
 * Collectives: a buffer that is sent from, with the gap behind it the one that is received into
 * ---------------------------------------------------------------------------------------------- */

static void call_bcast(exchange_t *exchange, char *array)
{
    MPI_Bcast(array + 8 * exchange->send_at, (int) exchange->block, MPI_UINT64_T, 0,
              exchange->comm);
}

static void call_allgather(exchange_t *exchange, char *array)
{
    MPI_Allgather(array + 8 * exchange->send_at, (int) exchange->block, MPI_UINT64_T,
                  array + 8 * exchange->recv_at, (int) exchange->block, MPI_UINT64_T,
                  exchange->comm);
}

static void call_alltoall(exchange_t *exchange, char *array)
{
    MPI_Alltoall(array + 8 * exchange->send_at, (int) exchange->block, MPI_UINT64_T,
                 array + 8 * exchange->recv_at, (int) exchange->block, MPI_UINT64_T,
                 exchange->comm);
}

static void call_allreduce(exchange_t *exchange, char *array)
{
    MPI_Allreduce(array + 8 * exchange->send_at, array + 8 * exchange->recv_at,
                  (int) exchange->block, MPI_DOUBLE, MPI_SUM, exchange->comm);
}

static void call_iallreduce(exchange_t *exchange, char *array)
{
    MPI_Request request;

    MPI_Iallreduce(array + 8 * exchange->send_at, array + 8 * exchange->recv_at,
                   (int) exchange->block, MPI_DOUBLE, MPI_SUM, exchange->comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void call_self(exchange_t *exchange, char *array)
{
    MPI_Sendrecv(array + 8 * exchange->send_at, (int) exchange->block, MPI_UINT64_T, exchange->rank,
                 0, array + 8 * exchange->recv_at, (int) exchange->block, MPI_UINT64_T,
                 exchange->rank, 0, exchange->comm, MPI_STATUS_IGNORE);
}

/* The sent data of a rank. */
static void sent_of(int rank, size_t from, size_t count, int iteration, uint64_t *words)
{
    for (size_t i = 0; i < count; ++i) {
        words[i] = exchange_value(rank, from + i, iteration);
    }
}

static void expect_bcast(const exchange_t *exchange, int iteration, uint64_t *words, bool after)
{
    clear(exchange, words);
    if (after || 0 == exchange->rank) {
        sent_of(0, 0, exchange->block, iteration, words + exchange->send_at);
    }
}

static void expect_allgather(const exchange_t *exchange, int iteration, uint64_t *words, bool after)
{
    clear(exchange, words);
    sent_of(exchange->rank, 0, exchange->block, iteration, words + exchange->send_at);
    for (int i = 0; after && i < exchange->size; ++i) {
        sent_of(i, 0, exchange->block, iteration,
                words + exchange->recv_at + (size_t) i * exchange->block);
    }
}

static void expect_alltoall(const exchange_t *exchange, int iteration, uint64_t *words, bool after)
{
    const size_t block = exchange->block;

    clear(exchange, words);
    sent_of(exchange->rank, 0, block * (size_t) exchange->size, iteration,
            words + exchange->send_at);
    for (int i = 0; after && i < exchange->size; ++i) {
        sent_of(i, block * (size_t) exchange->rank, block, iteration,
                words + exchange->recv_at + (size_t) i * block);
    }
}

static void expect_self(const exchange_t *exchange, int iteration, uint64_t *words, bool after)
{
    clear(exchange, words);
    sent_of(exchange->rank, 0, exchange->block, iteration, words + exchange->send_at);
    if (after) {
        sent_of(exchange->rank, 0, exchange->block, iteration, words + exchange->recv_at);
    }
}

/* Integers: every order of the additions has the same sum. */
static double number(int rank, size_t word, int iteration)
{
    return (double) ((3 * word + 7 * (size_t) rank + (size_t) iteration) % 1000);
}

static void expect_allreduce(const exchange_t *exchange, int iteration, uint64_t *words, bool after)
{
    clear(exchange, words);
    for (size_t i = 0; i < exchange->block; ++i) {
        const double mine = number(exchange->rank, i, iteration);
        double sum = 0;

        for (int rank = 0; rank < exchange->size; ++rank) {
            sum += number(rank, i, iteration);
        }
        memcpy(&words[exchange->send_at + i], &mine, sizeof(mine));
        if (after) {
            memcpy(&words[exchange->recv_at + i], &sum, sizeof(sum));
        }
    }
}

/* -------------------------------------------------------------------------------------------------
 * Reductions by hand: each rank receives its part of all vectors, then sends a part of the
 * result
 * ---------------------------------------------------------------------------------------------- */

/* The begin of a part in the vector. */
static size_t part_at(const exchange_t *exchange, int part)
{
    return exchange->block * (size_t) part / (size_t) exchange->size;
}

static size_t part_words(const exchange_t *exchange, int part)
{
    return part_at(exchange, part + 1) - part_at(exchange, part);
}

/* Received parts lie behind the vector of the result. */
static size_t scratch_at(const exchange_t *exchange, int part)
{
    return exchange->recv_at + with_gap(exchange->block)
           + (size_t) part * part_words(exchange, exchange->rank);
}

static void turn_allreduce(exchange_t *exchange, int round)
{
    const int rank = exchange->rank;

    exchange->count = 0;
    for (int i = 1; i < exchange->size; ++i) {
        const int other = (rank + i) % exchange->size;

        if (0 == round) {
            add_message(exchange, other, exchange->send_at + part_at(exchange, other),
                        part_words(exchange, other), other, scratch_at(exchange, other),
                        part_words(exchange, rank));
        } else {
            add_message(exchange, other, exchange->send_at + part_at(exchange, rank),
                        part_words(exchange, rank), other,
                        exchange->recv_at + part_at(exchange, other), part_words(exchange, other));
        }
    }
}

static void expect_parts(const exchange_t *exchange, int iteration, uint64_t *words, bool after)
{
    const int rank = exchange->rank;

    clear(exchange, words);
    sent_of(rank, 0, exchange->block, iteration, words + exchange->send_at);
    for (int i = 0; after && i < exchange->size; ++i) {
        if (rank != i) {
            sent_of(i, part_at(exchange, rank), part_words(exchange, rank), iteration,
                    words + scratch_at(exchange, i));
            sent_of(i, part_at(exchange, i), part_words(exchange, i), iteration,
                    words + exchange->recv_at + part_at(exchange, i));
        }
    }
}

/* -------------------------------------------------------------------------------------------------
 * All collectives
 * ---------------------------------------------------------------------------------------------- */

typedef struct collective_t {
    void (*call)(exchange_t *exchange, char *array);
    void (*expect)(const exchange_t *exchange, int iteration, uint64_t *words, bool after);
    bool send_all, recv_all; /* a block for each rank, not one */
} collective_t;

const char *const exchange_collectives[] = {"bcast",     "allgather",  "alltoall",
                                            "allreduce", "iallreduce", "self"};
const size_t exchange_collective_count =
    sizeof(exchange_collectives) / sizeof(exchange_collectives[0]);

/* In the order of exchange_collectives. */
static const collective_t collectives[] = {
    {call_bcast, expect_bcast, false, false},
    {call_allgather, expect_allgather, false, true},
    {call_alltoall, expect_alltoall, true, true},
    {call_allreduce, expect_allreduce, false, false},
    {call_iallreduce, expect_allreduce, false, false},
    {call_self, expect_self, false, false},
};

/* The messages of bcast, allgather and alltoall, with the own part as a copy. */
static void open_by_hand(exchange_t *exchange, const collective_t *collective)
{
    const size_t block = exchange->block;
    const int rank = exchange->rank;

    if (exchange->one_way && 0 != rank) {
        add_message(exchange, MPI_PROC_NULL, exchange->send_at, 0, 0, exchange->send_at, block);
        return;
    }
    for (int i = 1; i < exchange->size; ++i) {
        const int other = (rank + i) % exchange->size;
        const size_t from = exchange->send_at + (collective->send_all ? (size_t) other * block : 0);

        if (exchange->one_way) {
            add_message(exchange, other, from, block, MPI_PROC_NULL, exchange->send_at, 0);
        } else {
            add_message(exchange, other, from, block, other,
                        exchange->recv_at + (size_t) other * block, block);
        }
    }
    if (!exchange->one_way) {
        exchange->own_words = block;
        exchange->own_from = exchange->send_at + (collective->send_all ? (size_t) rank * block : 0);
        exchange->own_to = exchange->recv_at + (collective->recv_all ? (size_t) rank * block : 0);
    }
}

void exchange_open_collective(exchange_t *exchange, const char *name, size_t words, bool by_hand,
                              MPI_Comm comm, bool on_gpu)
{
    const collective_t *collective = NULL;

    exchange_open(exchange, name, comm);
    for (size_t i = 0; i < exchange_collective_count; ++i) {
        collective = 0 == strcmp(name, exchange_collectives[i]) ? &collectives[i] : collective;
    }
    if (EXCHANGE_RANKS < exchange->size) {
        bench_fatal("%s: at most %d ranks", name, EXCHANGE_RANKS);
    }
    exchange->block = words;
    exchange->one_way = call_bcast == collective->call;
    exchange->send_at = GAP;
    exchange->recv_at =
        GAP + with_gap(collective->send_all ? (size_t) exchange->size * words : words);
    exchange->words = exchange->recv_at
                      + with_gap(collective->recv_all ? (size_t) exchange->size * words : words);
    exchange->call = collective->call;
    exchange->expect = collective->expect;
    if (call_self == collective->call) {
        exchange->own_words = words;
        exchange->own_from = exchange->send_at;
        exchange->own_to = exchange->recv_at;
    } else if (expect_allreduce != collective->expect) {
        open_by_hand(exchange, collective);
    } else if (by_hand) {
        exchange->call = NULL;
        exchange->expect = expect_parts;
        exchange->rounds = 2;
        exchange->turn = turn_allreduce;
        exchange->words = scratch_at(exchange, exchange->size) + GAP;
        turn_allreduce(exchange, 0);
    }
    exchange_make_array(exchange, on_gpu);
}
