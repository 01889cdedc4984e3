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
 * The other processes, and their identity in the modex. Functions of pml_umrddt_peer.c and
 * pml_umrddt_modex.c.
 */

#ifndef MCA_PML_UMRDDT_PEER_H
#define MCA_PML_UMRDDT_PEER_H

#include "ompi_config.h"

#include "opal/mca/common/umrddt_select/umrddt_select_hints.h"
#include "opal/util/proc.h"

#include "ompi/mca/pml/umrddt/pml_umrddt.h"

BEGIN_C_DECLS

/** Bit of a peer's reach beside those of schemes: it is known. */
#define MCA_PML_UMRDDT_REACH_KNOWN 0x8000u

/** The numbered slots of a cache at a peer, whose content this process chooses
 * (pml_umrddt_sets.h). All 0: unused. */
typedef struct mca_pml_umrddt_slots_t {
    struct mca_pml_umrddt_slot_t *slots;
    uint32_t count;
    uint64_t clock; /**< number of uses */
} mca_pml_umrddt_slots_t;

/** Another process. Created at first contact, lives until finalize. */
struct mca_pml_umrddt_peer_t {
    opal_proc_t *proc;
    bool capable;         /**< runs the same wire version, so it accepts envelopes */
    bool has_hca;         /**< its HCA can carry messages */
    bool has_gpu;         /**< it has the CUDA driver */
    uint16_t collectives; /**< its opal_umrddt_collectives.mode */
    bool same_host;       /**< CUDA IPC handles work between it and this process */
    bool self;            /**< it is this process: its GPU memory needs no handles */
    uint16_t reach; /**< MCA_PML_UMRDDT_REACH_KNOWN and schemes that reach it; 0: unknown; atomic */
    uint16_t logged; /**< reasons of fallbacks that were logged */
    uint32_t comms;  /**< live communicators with this peer; under the lock */
    uint8_t cookie[MCA_PML_UMRDDT_COOKIE_LEN]; /**< expected in its envelopes */
    mca_btl_umr_endpoint_t *endpoint;          /**< of the HCA, created on demand; atomic */

    /* pml_umrddt_sets.h */
    mca_pml_umrddt_slots_t sets_there; /**< our rkey sets in the peer's cache */
    struct mca_pml_umrddt_set_t *sets; /**< the peer's rkey sets in our cache */

    opal_list_t credit;         /**< messages of this peer that wait for a receive for the FIN */
    opal_list_item_t in_credit; /**< item of mca_pml_umrddt.credit from the first such message on */
    bool waits_for_credit;      /**< the item is in the list */
    bool fed; /**< within mca_pml_umrddt_rdma_starves: it has a message under way */

    /* pml_umrddt_direct.h */
    mca_pml_umrddt_slots_t flats_there;         /**< our layouts in the peer's cache */
    struct mca_pml_umrddt_flat_cached_t *flats; /**< the peer's layouts in our cache */

    opal_umrddt_scheme_state_t states[MCA_PML_UMRDDT_SCHEMES];
    opal_umrddt_hint_pace_t hint_pace;  /**< hints about small messages to it; progress only */
    bool rings;                         /**< it sets our completion flags on request; atomic */
    struct opal_umrddt_gpu_peer_t *gpu; /**< caches about its GPU memory; or NULL */
    struct mca_pml_umrddt_info_req_t *info_req; /**< the INFO_REQ in progress; or NULL */
};

/** The rank in MPI_COMM_WORLD, for log lines. */
static inline unsigned mca_pml_umrddt_peer_rank(const mca_pml_umrddt_peer_t *peer)
{
    return peer->proc->proc_name.vpid;
}

/** Add to the memory in use for peers; @p bytes may be negative. */
static inline void mca_pml_umrddt_peer_bytes(int64_t bytes)
{
    MCA_PML_UMRDDT_COUNT_ADD(peer_bytes_now, (uint64_t) bytes);
}

/** Free a peer that holds nothing else. */
void mca_pml_umrddt_peer_delete(mca_pml_umrddt_peer_t *peer);

/** Get the HCA's endpoint for a peer, which lives as long as the HCA. @return as endpoint_get */
static inline int mca_pml_umrddt_endpoint(mca_pml_umrddt_peer_t *peer,
                                          mca_btl_umr_endpoint_t **endpoint)
{
    int rc = OPAL_SUCCESS;

    *endpoint = __atomic_load_n(&peer->endpoint, __ATOMIC_ACQUIRE);
    if (OPAL_UNLIKELY(NULL == *endpoint)) {
        rc = mca_pml_umrddt.hca->endpoint_get(peer->proc, endpoint);
        if (OPAL_SUCCESS == rc) {
            __atomic_store_n(&peer->endpoint, *endpoint, __ATOMIC_RELEASE);
        }
    }
    return rc;
}

/** Set mca_pml_umrddt.self and publish it. @return false on failure, after a message to the user */
bool mca_pml_umrddt_publish(void);

/** Publish that this process handles no messages. With Open MPI 5.0 a peer on a remote node that
 * looks up data which was never published waits forever. */
void mca_pml_umrddt_publish_absent(void);

/** Look up the identity of a new peer, whose proc is set, in the modex. */
void mca_pml_umrddt_identify(mca_pml_umrddt_peer_t *peer);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_PEER_H */
