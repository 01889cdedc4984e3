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
 * The selection cache; see umrddt_select_cache.h.
 */

#include "umrddt_select_cache.h"

#include <stdlib.h>
#include <string.h>

/** A scheme that failed with a peer is not tried again for this number of messages. */
#define RETRY_AFTER 256

opal_umrddt_selection_cache_t *opal_umrddt_selection_cache_new(const char *model, bool explain,
                                                               opal_umrddt_tuning_report_t report)
{
    opal_umrddt_selection_cache_t *pairs = calloc(1, sizeof(*pairs));

    if (NULL == pairs) {
        return NULL;
    }
    pairs->selects = opal_umrddt_tuning_find(model, &pairs->tuning, pairs->source, report);
    if (!pairs->selects && !explain) {
        free(pairs);
        return NULL;
    }
    return pairs;
}

static bool is_same(const opal_umrddt_selected_key_t *a, const opal_umrddt_selected_key_t *b)
{
    return a->layout == b->layout && a->buffer == b->buffer && a->peer == b->peer
           && a->total == b->total && a->pieces == b->pieces && a->schemes == b->schemes
           && a->from_gpu == b->from_gpu;
}

opal_umrddt_selected_t *opal_umrddt_selected_find(opal_umrddt_selection_cache_t *pairs,
                                                  const opal_umrddt_selected_key_t *key)
{
    const uint64_t hash =
        (key->layout * UINT64_C(0x9e3779b97f4a7c15) ^ key->buffer ^ (uintptr_t) key->peer << 17)
        * UINT64_C(0x9e3779b97f4a7c15);
    const size_t bucket = (size_t) (hash >> 56);
    opal_umrddt_selected_t *pair;

    _Static_assert(1 << (64 - 56) == OPAL_UMRDDT_SELECTED_BUCKETS, "the highest bits of the hash");
    for (size_t i = 0; i < OPAL_UMRDDT_SELECTED_PER_BUCKET; ++i) {
        pair = &pairs->pairs[bucket][i];
        if (is_same(&pair->key, key)) {
            return pair;
        }
    }
    pair = &pairs->pairs[bucket][pairs->turn[bucket]++ % OPAL_UMRDDT_SELECTED_PER_BUCKET];
    memset(pair, 0, sizeof(*pair));
    pair->key = *key;
    pair->serial = ++pairs->serial;
    return pair;
}

/** Schemes that recently failed with this peer. Sets pair->expires. */
static unsigned failed_schemes(const opal_umrddt_selection_cache_t *pairs,
                               opal_umrddt_selected_t *pair,
                               const opal_umrddt_scheme_state_t *states)
{
    unsigned failed = 0;

    pair->expires = UINT64_MAX;
    for (int scheme = 0; scheme < MCA_PML_UMRDDT_SCHEMES; ++scheme) {
        const uint64_t retry_at = states[scheme].retry_at;

        if (pairs->selections < retry_at) {
            failed |= MCA_PML_UMRDDT_BIT(scheme);
            pair->expires = retry_at < pair->expires ? retry_at : pair->expires;
        }
    }
    return failed;
}

void opal_umrddt_selected_select(opal_umrddt_selection_cache_t *pairs, opal_umrddt_selected_t *pair,
                                 const opal_umrddt_select_case_t *message, unsigned possible,
                                 const opal_umrddt_scheme_state_t *states)
{
    pair->possible = possible;
    opal_umrddt_select(&pairs->tuning, message, possible, failed_schemes(pairs, pair, states),
                       &pair->selection);
    /* select again after twice as many uses: more messages then share the cost of the keys */
    pair->next = 2 * pair->uses;
    if (0 == pair->uses) {
        pair->next = 1;
    } else if (UINT32_MAX / 2 < pair->uses) {
        pair->next = UINT32_MAX;
    }
}

void opal_umrddt_selected_failed(opal_umrddt_selection_cache_t *pairs, opal_umrddt_selected_t *pair,
                                 mca_pml_umrddt_scheme_id_t scheme,
                                 opal_umrddt_scheme_state_t *state)
{
    pair->known = 0;
    pair->next = pair->uses;
    if (MCA_PML_UMRDDT_SCHEME_BASE != scheme) {
        state->retry_at = pairs->selections + RETRY_AFTER;
    }
}
