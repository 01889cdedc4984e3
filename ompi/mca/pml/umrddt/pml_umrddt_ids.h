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
 * Request ids: the lowest free numbers for messages in progress. They index tags and completion
 * flags, which are limited in number. Also finds receives by the number of their FIN.
 */

/*
 * opal_pointer_array and opal_hash_table need 114 more instructions per message at the sender and
 * 126 at the receiver (bench/results/instructions.md).
 */

#ifndef MCA_PML_UMRDDT_IDS_H
#define MCA_PML_UMRDDT_IDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** Free request ids, one bit each. All zeros: an empty table. The caller holds the lock. */
typedef struct mca_pml_umrddt_request_ids_t {
    uint64_t *free;
    uint32_t words;
    uint32_t first; /**< no word below has a free id */
} mca_pml_umrddt_request_ids_t;

/** Enlarge the table. @return false: no memory, or it holds @p most ids */
static inline bool mca_pml_umrddt_request_ids_grow(mca_pml_umrddt_request_ids_t *request_ids,
                                                   uint32_t most)
{
    uint32_t words = 0 == request_ids->words ? 1 : 2 * request_ids->words;
    uint64_t *more = words > most / 64 ? NULL : realloc(request_ids->free, words * sizeof(*more));

    if (NULL == more) {
        return false;
    }
    memset(more + request_ids->words, 0xff, (words - request_ids->words) * sizeof(*more));
    request_ids->free = more;
    request_ids->words = words;
    return true;
}

/**
 * Take the lowest free request id.
 *
 * @param[in] most  maximum number of ids; 64 times a power of two
 *
 * @return false: no free id, or no memory
 */
static inline bool mca_pml_umrddt_request_id_take(mca_pml_umrddt_request_ids_t *request_ids,
                                                  uint32_t most, uint32_t *request_id)
{
    uint32_t word = request_ids->first;
    uint64_t bits;

    while (word < request_ids->words && 0 == request_ids->free[word]) {
        ++word;
    }
    request_ids->first = word;
    if (word == request_ids->words && !mca_pml_umrddt_request_ids_grow(request_ids, most)) {
        return false;
    }
    bits = request_ids->free[word];
    *request_id = 64 * word + (uint32_t) __builtin_ctzll(bits);
    request_ids->free[word] = bits & (bits - 1);
    return true;
}

/** Release a request id. */
static inline void mca_pml_umrddt_request_id_give(mca_pml_umrddt_request_ids_t *request_ids,
                                                  uint32_t request_id)
{
    uint32_t word = request_id / 64;

    request_ids->free[word] |= UINT64_C(1) << request_id % 64;
    if (word < request_ids->first) {
        request_ids->first = word;
    }
}

/** Free the table. */
static inline void mca_pml_umrddt_request_ids_free(mca_pml_umrddt_request_ids_t *request_ids)
{
    free(request_ids->free);
    memset(request_ids, 0, sizeof(*request_ids));
}

struct mca_pml_umrddt_recv_t;

/** Receives indexed by the lowest bits of the number of their FIN. All zeros: an empty table.
 * Progress thread only. */
typedef struct mca_pml_umrddt_fins_t {
    struct mca_pml_umrddt_fin_t {
        uint32_t fin;
        struct mca_pml_umrddt_recv_t *recv; /**< NULL: free */
    } * table;
    uint32_t size; /**< a power of two, or 0 */
    uint32_t used;
    uint32_t next; /**< the last number */
} mca_pml_umrddt_fins_t;

/** Double the table. Different indices remain different. @return false: no memory */
static inline bool mca_pml_umrddt_fins_grow(mca_pml_umrddt_fins_t *fins)
{
    uint32_t size = 0 == fins->size ? 64 : 2 * fins->size;
    struct mca_pml_umrddt_fin_t *more = 0 == size ? NULL : calloc(size, sizeof(*more));

    if (NULL == more) {
        return false;
    }
    for (uint32_t i = 0; i < fins->size; ++i) {
        if (NULL != fins->table[i].recv) {
            more[fins->table[i].fin & (size - 1)] = fins->table[i];
        }
    }
    free(fins->table);
    fins->table = more;
    fins->size = size;
    return true;
}

/**
 * Assign a FIN number that no other receive in progress has, and that was not used recently.
 *
 * @return 0: no memory
 */
static inline uint32_t mca_pml_umrddt_fin_new(mca_pml_umrddt_fins_t *fins,
                                              struct mca_pml_umrddt_recv_t *recv)
{
    struct mca_pml_umrddt_fin_t *entry;
    uint32_t fin;

    /* at most half full, so that a free entry is found quickly */
    if (fins->size <= 2 * fins->used && !mca_pml_umrddt_fins_grow(fins)
        && fins->size <= fins->used + 1) {
        return 0;
    }
    do {
        fin = ++fins->next;
        entry = &fins->table[fin & (fins->size - 1)];
    } while (0 == fin || NULL != entry->recv);
    entry->fin = fin;
    entry->recv = recv;
    ++fins->used;
    return fin;
}

/** The receive with this FIN number; NULL: none */
static inline struct mca_pml_umrddt_recv_t *
mca_pml_umrddt_fin_find(const mca_pml_umrddt_fins_t *fins, uint32_t fin)
{
    const struct mca_pml_umrddt_fin_t *entry;

    if (0 == fins->size) {
        return NULL;
    }
    entry = &fins->table[fin & (fins->size - 1)];
    return fin == entry->fin ? entry->recv : NULL;
}

/** Release a number from mca_pml_umrddt_fin_new. */
static inline void mca_pml_umrddt_fin_give(mca_pml_umrddt_fins_t *fins, uint32_t fin)
{
    fins->table[fin & (fins->size - 1)].recv = NULL;
    --fins->used;
}

/** Free the table. */
static inline void mca_pml_umrddt_fins_free(mca_pml_umrddt_fins_t *fins)
{
    free(fins->table);
    memset(fins, 0, sizeof(*fins));
}

#endif /* MCA_PML_UMRDDT_IDS_H */
