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
 * The remote key cache: rkey sets that a sender stores, so that a CTS need not carry each key
 * again. It is the remote mkey cache of "Network Assisted Non-Contiguous Transfers for GPU-Aware
 * MPI Libraries".
 */

/*
 * The sender has a number of cache slots for each receiver, and the receiver alone decides on their
 * content. A CTS with keys may request to store them in a slot, under the id of the keyset. A later
 * CTS_CACHED carries only the slot and the id. An id belongs to one mapping and is never reused. A
 * slot with other content is therefore detected, and the message falls back to the base PML.
 *
 * The receiver relies on a slot only after the FIN of the message that filled it. It replaces a
 * slot only while no message in progress uses it. The order in which CTSs arrive therefore does not
 * matter. Progress thread only.
 */

#ifndef MCA_PML_UMRDDT_SETS_H
#define MCA_PML_UMRDDT_SETS_H

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_peer.h"

BEGIN_C_DECLS

/** Maximum number of keys of a cached set, which limits the memory for each peer. With the default
 * of pml_umrddt_key_sets all sets take less than 24 KiB, and the HCA's 31 KiB. */
#define MCA_PML_UMRDDT_SET_KEYS 32

/** How a CTS refers to an rkey set. */
typedef enum mca_pml_umrddt_naming_t {
    MCA_PML_UMRDDT_NAME_KEYS,  /**< carry the keys; the sender does not store them */
    MCA_PML_UMRDDT_NAME_STORE, /**< carry the keys; the sender stores them in the slot */
    MCA_PML_UMRDDT_NAME_SLOT   /**< the sender has them in the slot */
} mca_pml_umrddt_naming_t;

/**
 * Receiver: decide how a CTS refers to a keyset. Except for NAME_KEYS the cache slot is in use
 * until mca_pml_umrddt_set_end.
 *
 * @param[in]  slots  number of slots that the sender has for this process (from its RTS)
 * @param[out] slot   the slot; not set for NAME_KEYS
 */
mca_pml_umrddt_naming_t mca_pml_umrddt_set_name(mca_pml_umrddt_peer_t *peer, uint32_t slots,
                                                const mca_btl_umr_keyset_t *keyset, uint32_t *slot);

/** Receiver: the message has ended. @p well: its FIN has arrived, so the sender has the set. */
void mca_pml_umrddt_set_end(mca_pml_umrddt_peer_t *peer, uint32_t slot, bool well);

/** Sender: store the keys of a valid CTS, if it requests that. Without memory the slot is empty. */
void mca_pml_umrddt_set_store(mca_pml_umrddt_peer_t *peer, const mca_pml_umrddt_reply_t *reply);

/**
 * Sender: restore the CTS that a CTS_CACHED refers to.
 *
 * @param[in]     cached_cts  only length and magic were checked
 * @param[in,out] reply   has room for max_keys; written only on success
 *
 * @return false: the set is not cached
 */
bool mca_pml_umrddt_set_lookup(const mca_pml_umrddt_peer_t *peer,
                               const mca_pml_umrddt_cts_cached_t *cached_cts,
                               mca_pml_umrddt_reply_t *reply);

/** Free both tables of a peer. */
void mca_pml_umrddt_sets_free(mca_pml_umrddt_peer_t *peer);

/** Check both tables of a peer. @return the name of the invariant that they violate, or NULL */
const char *mca_pml_umrddt_sets_check(const mca_pml_umrddt_peer_t *peer);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_SETS_H */
