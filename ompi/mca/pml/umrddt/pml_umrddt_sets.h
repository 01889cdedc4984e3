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
 * Sets of keys that a sender remembers, so that a CTS need not name each key again (the remote mkey
 * cache of "Network Assisted Non-Contiguous Transfers for GPU-Aware MPI Libraries").
 *
 * The sender has a number of numbered places a receiver, and the receiver alone decides what is in
 * them: a CTS that names keys one by one may tell to put them into a place, under the id of the
 * keyset; a later one says 'place and id' instead. An id is of one mapping, and never given twice,
 * so a place that holds anything else is found out, and the message falls back to the base PML.
 *
 * The receiver counts on a place only when the FIN of the message that filled it has come, and
 * changes it only when no message that names it is under way: so the order in which CTSs arrive
 * does not matter.
 *
 * All of it is of progress only.
 */

#ifndef MCA_PML_UMRDDT_SETS_H
#define MCA_PML_UMRDDT_SETS_H

#include "pml_umrddt.h"

BEGIN_C_DECLS

/**
 * Sets of more keys than these are always named key by key: bounds what a peer costs. With the
 * default of pml_umrddt_key_sets all of them take less than 24 KiB (and the HCA 31 KiB).
 */
#define MCA_PML_UMRDDT_SET_KEYS 32

/** What a receiver tells about a set. */
typedef enum mca_pml_umrddt_naming_t {
    MCA_PML_UMRDDT_NAME_KEYS,  /**< name the keys; they are not to be remembered */
    MCA_PML_UMRDDT_NAME_STORE, /**< name the keys, to be put into the place */
    MCA_PML_UMRDDT_NAME_PLACE  /**< the sender has them in the place */
} mca_pml_umrddt_naming_t;

/**
 * The receiver: how to name a keyset to a peer. Except for NAME_KEYS the place is taken until
 * mca_pml_umrddt_set_end.
 *
 * @param[in]  places  how many the sender has for us (from its RTS)
 * @param[out] place   which; not with NAME_KEYS
 */
mca_pml_umrddt_naming_t mca_pml_umrddt_set_name(mca_pml_umrddt_peer_t *peer, uint32_t places,
                                                const mca_btl_umr_keyset_t *keyset,
                                                uint32_t *place);

/** The receiver: the message is over; @p well if its FIN has come, so the sender has the set. */
void mca_pml_umrddt_set_end(mca_pml_umrddt_peer_t *peer, uint32_t place, bool well);

/** The sender: do as a checked CTS says. Without memory the place is empty. */
void mca_pml_umrddt_set_store(mca_pml_umrddt_peer_t *peer, const mca_pml_umrddt_reply_t *reply);

/**
 * The sender: the CTS that a reference stands for.
 *
 * @param[in]     recall  checked for length and magic only
 * @param[in,out] reply   room for max_keys; written only on success
 *
 * @return false: that set is not here
 */
bool mca_pml_umrddt_set_recall(const mca_pml_umrddt_peer_t *peer,
                               const mca_pml_umrddt_recall_t *recall,
                               mca_pml_umrddt_reply_t *reply);

/** Free what a peer has of both. */
void mca_pml_umrddt_sets_free(mca_pml_umrddt_peer_t *peer);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_SETS_H */
