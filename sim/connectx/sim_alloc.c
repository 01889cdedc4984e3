/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "sim_alloc.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Blocks of powers of two, a list of free ones for each. Memory is never returned to the system.
 * Small blocks are cut from slabs.
 */
#define SMALLEST 6  /* log2 of the smallest block */
#define CLASSES  32 /* the largest is 2^31 */
#define SLAB     20 /* log2 of a slab */

struct block {
    uint32_t class;
    uint32_t reserved;
    struct block *next; /* while it is free */
};

_Static_assert(16 == sizeof(struct block), "head of a block");

static struct block *free_blocks[CLASSES];
static char *slab;
static size_t slab_left;

static void *from_system(size_t bytes)
{
    /* The system call itself: its wrapper may be hooked. */
    long p =
        syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return -1 == p ? NULL : (void *) p;
}

static struct block *new_block(uint32_t class)
{
    size_t bytes = (size_t) 1 << class;
    struct block *block;

    if (class >= SLAB) {
        return from_system(bytes);
    }
    if (slab_left < bytes) {
        slab = from_system((size_t) 1 << SLAB);
        slab_left = NULL == slab ? 0 : (size_t) 1 << SLAB;
        if (NULL == slab) {
            return NULL;
        }
    }
    block = (struct block *) slab;
    slab += bytes;
    slab_left -= bytes;
    return block;
}

/* @param[in] zero  false: only memory that was in use before is left as it was */
static void *allocate(size_t bytes, bool zero)
{
    uint32_t class = SMALLEST;
    struct block *block;

    while (class < CLASSES && ((size_t) 1 << class) - sizeof(*block) < bytes) {
        class ++;
    }
    if (CLASSES == class) {
        return NULL;
    }
    block = free_blocks[class];
    if (NULL != block) {
        free_blocks[class] = block->next;
        if (zero) {
            memset(block + 1, 0, bytes);
        }
    } else {
        /* The system's memory is zero. What is not used stays without a page: most of a ring, or of
         * a buffer. */
        block = new_block(class);
        if (NULL == block) {
            return NULL;
        }
    }
    block->class = class;
    return block + 1;
}

void *sim_alloc(size_t bytes)
{
    return allocate(bytes, true);
}

void *sim_alloc_dirty(size_t bytes)
{
    return allocate(bytes, false);
}

void *sim_realloc(void *memory, size_t bytes)
{
    void *more;

    if (NULL != memory) {
        struct block *block = (struct block *) memory - 1;

        if (bytes <= ((size_t) 1 << block->class) - sizeof(*block)) {
            return memory;
        }
        more = sim_alloc(bytes);
        if (NULL != more) {
            memcpy(more, memory, ((size_t) 1 << block->class) - sizeof(*block));
            sim_free(memory);
        }
        return more;
    }
    return sim_alloc(bytes);
}

void sim_free(void *memory)
{
    if (NULL != memory) {
        struct block *block = (struct block *) memory - 1;

        block->next = free_blocks[block->class];
        free_blocks[block->class] = block;
    }
}
