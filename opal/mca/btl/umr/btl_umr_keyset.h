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
 * Keysets: the structures of keys for the windows of a layout.
 */

#ifndef MCA_BTL_UMR_KEYSET_H
#define MCA_BTL_UMR_KEYSET_H

#include "opal/mca/btl/umr/btl_umr_mkey.h"
#include "opal/mca/btl/umr/btl_umr_memory.h"

BEGIN_C_DECLS

/** Private data of one key. */
typedef struct mca_btl_umr_mapping_t {
    mca_btl_umr_mkey_t *mkey; /**< NULL: a plain key */
    opal_iov_cache_window_t window;
    uint32_t block;       /**< block length in bytes of a strided mapping */
    uint32_t stride;      /**< bytes from block to block; 0: a list */
    uint32_t inner_count; /**< windows below it, each with its own key; 0: none */
    size_t inner_first;   /**< index in keyset.inners */
} mca_btl_umr_mapping_t;

/** Key of the key cache: messages with the same name can use the same keyset. */
typedef struct mca_btl_umr_keyset_name_t {
    mca_btl_umr_role_t role;
    void *buffer;
    uint64_t layout_id;
    uint64_t chunk;
    uint64_t start, end;
    size_t max_keys;
} mca_btl_umr_keyset_name_t;

/** A registration below the mkeys of a cached keyset. */
typedef struct mca_btl_umr_base_t {
    uint64_t id;
    mca_btl_umr_mr_t *mr; /**< a reference; NULL: GPU memory */
} mca_btl_umr_base_t;

/** A keyset with its private data. */
struct mca_btl_umr_keyset_object_t {
    mca_btl_umr_keyset_t pub;
    mca_btl_umr_hca_t *hca; /**< HCA of the keys */
    mca_btl_umr_keyset_name_t name;
    opal_iov_cache_layout_t *layout; /**< retained until all is posted */
    mca_btl_umr_memory_t *memory;
    size_t capacity;
    mca_btl_umr_mapping_t *mappings;
    mca_btl_umr_mapping_t *inners; /**< windows below those of mappings */
    size_t inner_count, inner_capacity;
    bool unnested;     /**< too few keys for an indirect key */
    size_t next_post;  /**< first key whose mapping is not posted yet */
    size_t next_inner; /**< below that key, the first window not posted yet */
    uint32_t last_seq; /**< number of the last mapping posted */
    bool abandoned;    /**< released before it was ready */
    int status;
    mca_btl_umr_done_fn_t done;
    void *context;
    struct mca_btl_umr_keyset_object_t *next; /**< in the one queue that it is in */

    size_t mapped; /**< number of its mkeys */
    bool cached;   /**< in the key cache (btl_umr_keycache.c) */
    bool used;     /**< in the key cache and in use */
    struct mca_btl_umr_keyset_object_t *same_bucket;
    size_t base_count, base_capacity;
    mca_btl_umr_base_t *bases; /**< in the key cache: registrations below it */
    uint64_t misses;           /**< registrations created before its last request with memory */
};
OBJ_CLASS_DECLARATION(mca_btl_umr_keyset_object_t);

typedef struct mca_btl_umr_keyset_queue_t {
    mca_btl_umr_keyset_object_t *head, *tail;
} mca_btl_umr_keyset_queue_t;

static inline void mca_btl_umr_keyset_queue_append(mca_btl_umr_keyset_queue_t *queue,
                                                   mca_btl_umr_keyset_object_t *keyset)
{
    keyset->next = NULL;
    if (NULL == queue->tail) {
        queue->head = keyset;
    } else {
        queue->tail->next = keyset;
    }
    queue->tail = keyset;
}

/** The oldest keyset of the queue. @return NULL: it is empty */
static inline mca_btl_umr_keyset_object_t *
mca_btl_umr_keyset_queue_pop(mca_btl_umr_keyset_queue_t *queue)
{
    mca_btl_umr_keyset_object_t *keyset = queue->head;

    if (NULL != keyset) {
        queue->head = keyset->next;
        if (NULL == queue->head) {
            queue->tail = NULL;
        }
        keyset->next = NULL;
    }
    return keyset;
}

/** An empty keyset, in hca.keysets. @return NULL: out of memory. Lock held. */
mca_btl_umr_keyset_object_t *mca_btl_umr_keyset_take(mca_btl_umr_hca_t *hca);

/** Room for one more key. @return false: out of memory */
bool mca_btl_umr_keyset_reserve(mca_btl_umr_keyset_object_t *keyset);

/** Release its mkeys. Lock held. */
void mca_btl_umr_keyset_give_mkeys(mca_btl_umr_keyset_object_t *keyset);

/** Keep the structure for reuse: it has no mkeys, and is in hca.keysets. Lock held. */
void mca_btl_umr_keyset_put(mca_btl_umr_keyset_object_t *keyset);

END_C_DECLS

#endif /* MCA_BTL_UMR_KEYSET_H */
