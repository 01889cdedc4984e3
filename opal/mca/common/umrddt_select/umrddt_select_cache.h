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
 * The selection cache of a receiver: pairs of layouts of past messages, and the schemes that the
 * model (umrddt_select.h, read first) selects for them. The model runs once for each combination of
 * layouts, buffer and peer, and again after 2, 4, 8, ... uses. In between the selection is looked
 * up. All functions: one thread at a time.
 */

#ifndef OPAL_UMRDDT_SELECT_CACHE_H
#define OPAL_UMRDDT_SELECT_CACHE_H

#include "opal/mca/common/umrddt_select/umrddt_select.h"
#include "opal/mca/common/umrddt_select/umrddt_select_file.h"

/** Size of the table. The entries of a bucket are replaced in turn. */
#define OPAL_UMRDDT_SELECTED_BUCKETS    256
#define OPAL_UMRDDT_SELECTED_PER_BUCKET 4

/** Maximum number of explained pairs, to limit the output. And the number of messages after which
 * the median time of a pair is printed. */
#define OPAL_UMRDDT_SELECTION_CACHE_EXPLAINED 1024
#define OPAL_UMRDDT_SELECTED_TIMES            16

/** The key of a pair: equal for messages that share a selection. */
typedef struct opal_umrddt_selected_key_t {
    uint64_t layout;  /**< id of the receiver's layout; not 0 */
    uintptr_t buffer; /**< the receive buffer */
    const void *peer;
    uint64_t total;   /**< bytes */
    uint32_t pieces;  /**< number of blocks of the sender */
    uint16_t schemes; /**< the schemes that the sender offered */
    bool from_gpu;    /**< the send buffer is in GPU memory, as far as known */
} opal_umrddt_selected_key_t;

/** An entry of the cache. */
typedef struct opal_umrddt_selected_t {
    opal_umrddt_selected_key_t key; /**< layout 0: free entry */
    bool to_gpu;                    /**< the receive buffer is in GPU memory */
    opal_umrddt_selection_t selection;
    uint32_t serial;   /**< changes with the entry's content: a message may outlive it */
    uint32_t uses;     /**< messages so far */
    uint32_t next;     /**< number of uses at which the model is queried again */
    uint64_t expires;  /**< query the model again when the number of selections exceeds this */
    unsigned known;    /**< schemes that were used: they need no further setup */
    unsigned possible; /**< schemes that both sides support */
    /* umrddt_select_explain.h */
    bool explained;                     /**< this pair is explained to the user */
    uint32_t to_pieces;                 /**< number of blocks of the receiver */
    bool began;                         /**< the result of the first message is printed */
    mca_pml_umrddt_scheme_id_t counted; /**< scheme of the measured messages */
    unsigned count;                     /**< entries of took; one more when the median is printed */
    double took[OPAL_UMRDDT_SELECTED_TIMES];
} opal_umrddt_selected_t;

/** The cache. */
typedef struct opal_umrddt_selection_cache_t {
    opal_umrddt_tuning_t tuning;
    char source[OPAL_UMRDDT_TUNING_TEXT]; /**< of the tuning parameters, for the user */
    bool selects;                         /**< the model selects; false: it is only explained */
    uint32_t serial;
    uint64_t selections; /**< number of selections so far */
    unsigned explained_count;
    uint64_t explained[OPAL_UMRDDT_SELECTION_CACHE_EXPLAINED]; /**< hashes of explained pairs */
    uint32_t turn[OPAL_UMRDDT_SELECTED_BUCKETS];
    opal_umrddt_selected_t pairs[OPAL_UMRDDT_SELECTED_BUCKETS][OPAL_UMRDDT_SELECTED_PER_BUCKET];
} opal_umrddt_selection_cache_t;

/**
 * Create a cache with the tuning parameters of this machine.
 *
 * @param[in] model    value of pml_umrddt_model; see opal_umrddt_tuning_find, as for @p report
 * @param[in] explain  predictions are to be printed: create it also without tuning parameters
 *
 * @return free it with free(). NULL: no tuning parameters, or no memory; the rules
 *         (umrddt_select_rules.h) apply, which need neither
 */
opal_umrddt_selection_cache_t *opal_umrddt_selection_cache_new(const char *model, bool explain,
                                                               opal_umrddt_tuning_report_t report);

/** The entry of a pair. If there is none, one is replaced: it then holds only its key. */
opal_umrddt_selected_t *opal_umrddt_selected_find(opal_umrddt_selection_cache_t *pairs,
                                                  const opal_umrddt_selected_key_t *key);

/**
 * Count a message of a pair. Then, if the result is true, opal_umrddt_selected_select must be
 * called. In any case opal_umrddt_selected_use follows.
 *
 * @param[in] to_gpu  the receive buffer is in GPU memory
 */
static inline bool opal_umrddt_selected_is_due(opal_umrddt_selection_cache_t *pairs,
                                               opal_umrddt_selected_t *pair, bool to_gpu)
{
    ++pairs->selections;
    if (pair->uses == pair->next || pairs->selections > pair->expires || pair->to_gpu != to_gpu) {
        pair->to_gpu = to_gpu;
        return true;
    }
    return false;
}

/**
 * Query the model: sets pair->selection.
 *
 * @param[in] message   of this pair, at the receiver
 * @param[in] possible  bitmap of the schemes that both sides support
 * @param[in] states    of the schemes with this peer, MCA_PML_UMRDDT_SCHEMES entries
 */
void opal_umrddt_selected_select(opal_umrddt_selection_cache_t *pairs, opal_umrddt_selected_t *pair,
                                 const opal_umrddt_select_case_t *message, unsigned possible,
                                 const opal_umrddt_scheme_state_t *states);

static inline void opal_umrddt_selected_use(opal_umrddt_selected_t *pair)
{
    if (UINT32_MAX > pair->uses) {
        ++pair->uses;
    }
}

/** The schemes that a message of this pair would use without further setup, and how many messages
 * share the cost of the setup, for the model. @p reuse: at least as many, as the user says */
static inline void opal_umrddt_selected_describe(const opal_umrddt_selected_t *pair, unsigned reuse,
                                                 bool mkey_cache,
                                                 opal_umrddt_select_case_t *message)
{
    message->known = pair->known;
    message->uses = reuse < pair->uses ? pair->uses : reuse;
    if (!mkey_cache) {
        /* mkeys are created for each message */
        message->known &= ~(unsigned) MCA_PML_UMRDDT_BITS_MKEYS;
        message->uses = 1;
    }
}

/** A message was carried by a scheme. */
static inline void opal_umrddt_selected_carried(opal_umrddt_selected_t *pair,
                                                mca_pml_umrddt_scheme_id_t scheme)
{
    pair->known |= MCA_PML_UMRDDT_BIT(scheme);
}

/** The selected scheme failed, and the base PML carries the message. The scheme is then not
 * selected for the next messages of this peer. @p state: of the scheme with the peer */
void opal_umrddt_selected_failed(opal_umrddt_selection_cache_t *pairs, opal_umrddt_selected_t *pair,
                                 mca_pml_umrddt_scheme_id_t scheme,
                                 opal_umrddt_scheme_state_t *state);

#endif /* OPAL_UMRDDT_SELECT_CACHE_H */
