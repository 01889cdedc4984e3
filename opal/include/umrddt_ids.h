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
 * Ids: the lowest free numbers, for tables and tags that are limited in number; pml/umrddt has one
 * for each message in progress. Numbers: one that was not used recently for each owner, and the
 * owner of a number; pml/umrddt finds receives by the number of their FIN.
 */

/*
 * opal_pointer_array and opal_hash_table need 114 more instructions per message at the sender and
 * 126 at the receiver (bench/results/instructions.md).
 */

#ifndef UMRDDT_IDS_H
#define UMRDDT_IDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/** Free ids, one bit each. All zeros: an empty table. The caller holds the lock. */
typedef struct umrddt_ids_t {
    uint64_t *free;
    uint32_t words;
    uint32_t first; /**< no word below has a free id */
} umrddt_ids_t;

/** Enlarge the table. @return false: no memory, or it holds @p most ids */
static inline bool umrddt_ids_grow(umrddt_ids_t *ids, uint32_t most)
{
    uint32_t words = 0 == ids->words ? 1 : 2 * ids->words;
    uint64_t *more = words > most / 64 ? NULL : realloc(ids->free, words * sizeof(*more));

    if (NULL == more) {
        return false;
    }
    memset(more + ids->words, 0xff, (words - ids->words) * sizeof(*more));
    ids->free = more;
    ids->words = words;
    return true;
}

/**
 * Take the lowest free id.
 *
 * @param[in] most  maximum number of ids; 64 times a power of two
 *
 * @return false: no free id, or no memory
 */
static inline bool umrddt_id_take(umrddt_ids_t *ids, uint32_t most, uint32_t *id)
{
    uint32_t word = ids->first;
    uint64_t bits;

    while (word < ids->words && 0 == ids->free[word]) {
        ++word;
    }
    ids->first = word;
    if (word == ids->words && !umrddt_ids_grow(ids, most)) {
        return false;
    }
    bits = ids->free[word];
    *id = 64 * word + (uint32_t) __builtin_ctzll(bits);
    ids->free[word] = bits & (bits - 1);
    return true;
}

/** Release an id. */
static inline void umrddt_id_give(umrddt_ids_t *ids, uint32_t id)
{
    uint32_t word = id / 64;

    ids->free[word] |= UINT64_C(1) << id % 64;
    if (word < ids->first) {
        ids->first = word;
    }
}

/** Free the table. */
static inline void umrddt_ids_free(umrddt_ids_t *ids)
{
    free(ids->free);
    memset(ids, 0, sizeof(*ids));
}

/** Owners indexed by the lowest bits of their number. All zeros: an empty table. One thread at a
 * time. */
typedef struct umrddt_numbers_t {
    struct umrddt_number_t {
        uint32_t number;
        void *owner; /**< NULL: free */
    } * table;
    uint32_t size; /**< a power of two, or 0 */
    uint32_t used;
    uint32_t next; /**< the last number */
} umrddt_numbers_t;

/** Double the table. Different indices remain different. @return false: no memory */
static inline bool umrddt_numbers_grow(umrddt_numbers_t *numbers)
{
    uint32_t size = 0 == numbers->size ? 64 : 2 * numbers->size;
    struct umrddt_number_t *more = 0 == size ? NULL : calloc(size, sizeof(*more));

    if (NULL == more) {
        return false;
    }
    for (uint32_t i = 0; i < numbers->size; ++i) {
        if (NULL != numbers->table[i].owner) {
            more[numbers->table[i].number & (size - 1)] = numbers->table[i];
        }
    }
    free(numbers->table);
    numbers->table = more;
    numbers->size = size;
    return true;
}

/**
 * Assign a number that no other owner has, and that was not used recently.
 *
 * @return 0: no memory
 */
static inline uint32_t umrddt_number_new(umrddt_numbers_t *numbers, void *owner)
{
    struct umrddt_number_t *entry;
    uint32_t number;

    /* at most half full, so that a free entry is found quickly */
    if (numbers->size <= 2 * numbers->used && !umrddt_numbers_grow(numbers)
        && numbers->size <= numbers->used + 1) {
        return 0;
    }
    do {
        number = ++numbers->next;
        entry = &numbers->table[number & (numbers->size - 1)];
    } while (0 == number || NULL != entry->owner);
    entry->number = number;
    entry->owner = owner;
    ++numbers->used;
    return number;
}

/** The owner of this number; NULL: none */
static inline void *umrddt_number_find(const umrddt_numbers_t *numbers, uint32_t number)
{
    const struct umrddt_number_t *entry;

    if (0 == numbers->size) {
        return NULL;
    }
    entry = &numbers->table[number & (numbers->size - 1)];
    return number == entry->number ? entry->owner : NULL;
}

/** Release a number from umrddt_number_new. */
static inline void umrddt_number_give(umrddt_numbers_t *numbers, uint32_t number)
{
    numbers->table[number & (numbers->size - 1)].owner = NULL;
    --numbers->used;
}

/** Free the table. */
static inline void umrddt_numbers_free(umrddt_numbers_t *numbers)
{
    free(numbers->table);
    memset(numbers, 0, sizeof(*numbers));
}

#endif /* UMRDDT_IDS_H */
