/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include <stdlib.h>
#include <string.h>

#include "bench_gpu.h"
#include "bench_util.h"
#include "exchange.h"

uint64_t exchange_value(int rank, size_t place, int iteration)
{
    uint64_t state = ((uint64_t) rank << 40) ^ ((uint64_t) (unsigned) iteration << 50) ^ place;

    return bench_random(&state) >> 1; /* never EXCHANGE_NOTHING */
}

void exchange_open(exchange_t *exchange, const char *name, MPI_Comm comm)
{
    memset(exchange, 0, sizeof(*exchange));
    exchange->name = name;
    exchange->comm = comm;
    exchange->rounds = 1;
    MPI_Comm_rank(comm, &exchange->rank);
    MPI_Comm_size(comm, &exchange->size);
}

void exchange_make_array(exchange_t *exchange, bool on_gpu)
{
    exchange->array = bench_alloc(8 * exchange->words);
    exchange->wanted = bench_alloc(8 * exchange->words);
    exchange->gpu = on_gpu ? bench_gpu_alloc(8 * exchange->words) : NULL;
}

void exchange_close(exchange_t *exchange)
{
    for (int i = 0; i < exchange->count; ++i) {
        if (MPI_UINT64_T != exchange->messages[i].send) {
            MPI_Type_free(&exchange->messages[i].send);
            MPI_Type_free(&exchange->messages[i].recv);
        }
    }
    if (NULL != exchange->gpu) {
        bench_gpu_free(exchange->gpu);
    }
    free(exchange->listed);
    free(exchange->wanted);
    free(exchange->array);
}

void exchange_sums(const exchange_t *exchange, uint64_t sums[3])
{
    memset(sums, 0, 3 * sizeof(sums[0]));
    for (int i = 0; i < exchange->count; ++i) {
        const exchange_message_t *message = &exchange->messages[i];

        if (message->to != exchange->rank && MPI_PROC_NULL != message->to) {
            sums[0] += (uint64_t) exchange->rounds * message->bytes;
            sums[1] += (uint64_t) exchange->rounds;
            sums[2] += (uint64_t) exchange->rounds * message->pieces;
        }
    }
}

void exchange_fill(exchange_t *exchange, int iteration)
{
    exchange->expect(exchange, iteration, exchange->array, false);
    if (NULL != exchange->gpu) {
        bench_gpu_write(exchange->gpu, exchange->array, 8 * exchange->words);
    }
}

static char *array_of(const exchange_t *exchange)
{
    return (char *) (NULL == exchange->gpu ? exchange->array : exchange->gpu);
}

/* The own part, as an application copies it: the GPU works while the messages do. */
static void copy_own(const exchange_t *exchange, char *array)
{
    char *to = array + 8 * exchange->own_to;
    const char *from = array + 8 * exchange->own_from;

    if (0 == exchange->own_words) {
        return;
    }
    if (NULL == exchange->gpu) {
        memcpy(to, from, 8 * exchange->own_words);
    } else {
        bench_gpu_copy(to, from, 8 * exchange->own_words);
    }
}

void exchange_run(exchange_t *exchange, bool by_hand)
{
    char *array = array_of(exchange);
    MPI_Request requests[2 * EXCHANGE_MOST];

    if (NULL != exchange->call && !by_hand) {
        exchange->call(exchange, array);
        return;
    }
    for (int round = 0; round < exchange->rounds; ++round) {
        if (NULL != exchange->turn) {
            exchange->turn(exchange, round);
        }
        for (int i = 0; i < exchange->count; ++i) {
            const exchange_message_t *message = &exchange->messages[i];

            MPI_Irecv(array + 8 * message->recv_at, message->recv_count, message->recv,
                      message->from, message->recv_tag, exchange->comm, &requests[i]);
        }
        for (int i = 0; i < exchange->count; ++i) {
            const exchange_message_t *message = &exchange->messages[i];

            MPI_Isend(array + 8 * message->send_at, message->send_count, message->send, message->to,
                      message->send_tag, exchange->comm, &requests[exchange->count + i]);
        }
        if (0 == round) {
            copy_own(exchange, array);
        }
        MPI_Waitall(2 * exchange->count, requests, MPI_STATUSES_IGNORE);
    }
    if (NULL != exchange->gpu && 0 < exchange->own_words) {
        bench_gpu_copy_end();
    }
}

bool exchange_check(exchange_t *exchange, int iteration, exchange_wrong_t *wrong)
{
    const char *plant = getenv("UMRDDT_EXCHANGE_PLANT");

    if (NULL != exchange->gpu) {
        bench_gpu_read(exchange->array, exchange->gpu, 8 * exchange->words);
    }
    if (NULL != plant && 0 == exchange->rank) {
        exchange->array[strtoull(plant, NULL, 10) % exchange->words] ^= 1;
    }
    exchange->expect(exchange, iteration, exchange->wanted, true);
    for (size_t i = 0; i < exchange->words; ++i) {
        if (exchange->array[i] != exchange->wanted[i]) {
            wrong->word = i;
            wrong->got = exchange->array[i];
            wrong->expected = exchange->wanted[i];
            return false;
        }
    }
    return true;
}
