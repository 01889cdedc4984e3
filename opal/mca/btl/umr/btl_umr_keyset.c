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
 * Keysets: the structures of keys for the windows of a layout, and their mkeys.
 */

#include "opal_config.h"

#include <stdlib.h>
#include <string.h>

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_keyset.h"

static void keyset_construct(mca_btl_umr_keyset_object_t *keyset)
{
    memset((char *) keyset + sizeof(opal_list_item_t), 0,
           sizeof(*keyset) - sizeof(opal_list_item_t));
}

static void keyset_destruct(mca_btl_umr_keyset_object_t *keyset)
{
    free(keyset->pub.keys);
    free(keyset->mappings);
    free(keyset->inners);
    free(keyset->bases);
}

OBJ_CLASS_INSTANCE(mca_btl_umr_keyset_object_t, opal_list_item_t, keyset_construct,
                   keyset_destruct);

mca_btl_umr_keyset_object_t *mca_btl_umr_keyset_take(mca_btl_umr_hca_t *hca)
{
    mca_btl_umr_keyset_object_t *keyset =
        (mca_btl_umr_keyset_object_t *) opal_list_remove_first(&hca->keysets_idle);

    if (NULL == keyset) {
        keyset = OBJ_NEW(mca_btl_umr_keyset_object_t);
        if (NULL == keyset) {
            return NULL;
        }
    }
    keyset->hca = hca;
    opal_list_append(&hca->keysets, &keyset->pub.super);
    return keyset;
}

bool mca_btl_umr_keyset_reserve(mca_btl_umr_keyset_object_t *keyset)
{
    size_t capacity = 0 == keyset->capacity ? 16 : 2 * keyset->capacity;
    void *keys, *mappings;

    if (keyset->pub.count < keyset->capacity) {
        return true;
    }
    keys = realloc(keyset->pub.keys, capacity * sizeof(*keyset->pub.keys));
    if (NULL == keys) {
        return false;
    }
    keyset->pub.keys = keys;
    mappings = realloc(keyset->mappings, capacity * sizeof(*keyset->mappings));
    if (NULL == mappings) {
        return false;
    }
    keyset->mappings = mappings;
    keyset->capacity = capacity;
    return true;
}

static void give_mkeys(mca_btl_umr_mapping_t *mappings, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        if (NULL != mappings[i].mkey) {
            mca_btl_umr_mkey_give(mappings[i].mkey);
            mappings[i].mkey = NULL;
        }
    }
}

void mca_btl_umr_keyset_give_mkeys(mca_btl_umr_keyset_object_t *keyset)
{
    /* The indirect key first, also for the order of the invalidations. */
    give_mkeys(keyset->mappings, keyset->pub.count);
    give_mkeys(keyset->inners, keyset->inner_count);
}

void mca_btl_umr_keyset_put(mca_btl_umr_keyset_object_t *keyset)
{
    mca_btl_umr_hca_t *hca = keyset->hca;

    keyset->inner_count = 0;
    keyset->unnested = false;
    if (NULL != keyset->layout) {
        OBJ_RELEASE(keyset->layout);
        keyset->layout = NULL;
    }
    keyset->pub.count = 0;
    opal_list_remove_item(&hca->keysets, &keyset->pub.super);
    if (MCA_BTL_UMR_IDLE_KEYS < keyset->capacity + keyset->inner_capacity
        || MCA_BTL_UMR_IDLE_MAX <= opal_list_get_size(&hca->keysets_idle)) {
        OBJ_RELEASE(keyset);
    } else {
        opal_list_prepend(&hca->keysets_idle, &keyset->pub.super);
    }
}
