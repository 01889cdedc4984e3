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
 * Registered buffers: the parts of a buffer, each with its registration.
 */

#include "opal_config.h"

#include <stdlib.h>
#include <string.h>

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_memory.h"

static void memory_construct(mca_btl_umr_memory_t *memory)
{
    memset((char *) memory + sizeof(opal_list_item_t), 0,
           sizeof(*memory) - sizeof(opal_list_item_t));
}

static void memory_destruct(mca_btl_umr_memory_t *memory)
{
    free(memory->parts);
}

OBJ_CLASS_INSTANCE(mca_btl_umr_memory_t, opal_list_item_t, memory_construct, memory_destruct);

mca_btl_umr_memory_t *mca_btl_umr_memory_take(mca_btl_umr_hca_t *hca, mca_btl_umr_role_t role,
                                              void *buffer, const opal_iov_cache_layout_t *layout,
                                              uint64_t size)
{
    mca_btl_umr_memory_t *memory =
        (mca_btl_umr_memory_t *) opal_list_remove_first(&hca->memories_idle);

    if (NULL == memory) {
        memory = OBJ_NEW(mca_btl_umr_memory_t);
        if (NULL == memory) {
            return NULL;
        }
    }
    opal_list_append(&hca->memories, &memory->super);
    memory->hca = hca;
    memory->role = role;
    memory->buffer = buffer;
    memory->layout_id = layout->id;
    memory->size = size;
    memory->count = 0;
    memory->gpu = false;
    memory->loose = false;
    return memory;
}

bool mca_btl_umr_memory_add(mca_btl_umr_memory_t *memory, uintptr_t start, uintptr_t end)
{
    if (memory->count == memory->capacity) {
        size_t capacity = 0 == memory->capacity ? 4 : 2 * memory->capacity;
        void *parts = realloc(memory->parts, capacity * sizeof(*memory->parts));

        if (NULL == parts) {
            return false;
        }
        memory->parts = parts;
        memory->capacity = capacity;
    }
    memory->parts[memory->count].start = start;
    memory->parts[memory->count].end = end;
    memory->parts[memory->count].reg = NULL;
    ++memory->count;
    return true;
}

const struct ibv_mr *mca_btl_umr_memory_find(const mca_btl_umr_memory_t *memory, uintptr_t address)
{
    size_t low = 0, high = memory->count;

    /* The last part that starts at or before the address. */
    while (1 < high - low) {
        size_t middle = low + (high - low) / 2;

        if (memory->parts[middle].start <= address) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return memory->parts[low].reg->mr;
}

void mca_btl_umr_memory_put(mca_btl_umr_memory_t *memory)
{
    mca_btl_umr_hca_t *hca = memory->hca;

    opal_list_remove_item(&hca->memories, &memory->super);
    if (MCA_BTL_UMR_IDLE_KEYS < memory->capacity
        || MCA_BTL_UMR_IDLE_MAX <= opal_list_get_size(&hca->memories_idle)) {
        OBJ_RELEASE(memory);
    } else {
        opal_list_prepend(&hca->memories_idle, &memory->super);
    }
}
