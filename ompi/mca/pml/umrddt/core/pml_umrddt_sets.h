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
 * matter. The layouts of the scheme direct are cached in the same way, except that several messages
 * may use a slot at the same time. Progress thread only.
 */

#ifndef MCA_PML_UMRDDT_SETS_H
#define MCA_PML_UMRDDT_SETS_H

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_peer.h"

BEGIN_C_DECLS

/** Maximum number of keys of a cached set, which limits the memory for each peer. With the default
 * of pml_umrddt_key_sets all sets take less than 24 KiB, and the HCA's 31 KiB. */
#define MCA_PML_UMRDDT_SET_KEYS 32

/** How a CTS refers to an rkey set or a layout. */
typedef enum mca_pml_umrddt_naming_t {
    MCA_PML_UMRDDT_NAME_SEND,  /**< carry it; the sender does not store it */
    MCA_PML_UMRDDT_NAME_STORE, /**< carry it; the sender stores it in the slot */
    MCA_PML_UMRDDT_NAME_SLOT   /**< the sender has it in the slot */
} mca_pml_umrddt_naming_t;

/**
 * Receiver: decide how a CTS refers to an item. Except for NAME_SEND the cache slot is in use until
 * mca_pml_umrddt_slot_end.
 *
 * @param[in]  count   number of slots that the sender has for this process (from its RTS)
 * @param[in]  id      of the item, not 0
 * @param[in]  shared  several messages may use a slot
 * @param[out] slot    the slot; not set for NAME_SEND
 */
mca_pml_umrddt_naming_t mca_pml_umrddt_slot_name(mca_pml_umrddt_slots_t *slots, uint32_t count,
                                                 uint64_t id, bool shared, uint32_t *slot);

/** Receiver: returns true if the sender has the item. */
bool mca_pml_umrddt_slot_there(const mca_pml_umrddt_slots_t *slots, uint32_t count, uint64_t id);

/** Receiver: the message has ended. @p well: its FIN has arrived, so the sender has the item. */
void mca_pml_umrddt_slot_end(mca_pml_umrddt_slots_t *slots, uint32_t slot, bool well);

void mca_pml_umrddt_slots_free(mca_pml_umrddt_slots_t *slots);

/** Returns true if the invariants of a table hold. */
bool mca_pml_umrddt_slots_valid(const mca_pml_umrddt_slots_t *slots);

/** Receiver: as mca_pml_umrddt_slot_name, for a keyset. */
mca_pml_umrddt_naming_t mca_pml_umrddt_set_name(mca_pml_umrddt_peer_t *peer, uint32_t count,
                                                const mca_btl_umr_keyset_t *keyset, uint32_t *slot);

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
