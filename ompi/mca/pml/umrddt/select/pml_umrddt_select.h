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
 * Selection of schemes for messages. Describes messages for opal/mca/common/umrddt_select, which
 * selects, and stores what a sender has to know of the results in the offer cache.
 *
 * Without tuning parameters of this machine there is no selection cache (mca_pml_umrddt.selections
 * is NULL) unless selections are shown (pml_umrddt_explain, pml_umrddt_verbose), and the rules
 * (umrddt_select_rules.h) apply. With tuning parameters (mca_pml_umrddt.declines) the model selects
 * among the schemes that both sides support. A sender also queries the model whether to handle a
 * message at all.
 *
 * Progress thread only, except the queries of senders.
 */

#ifndef MCA_PML_UMRDDT_SELECT_H
#define MCA_PML_UMRDDT_SELECT_H

#include "opal/mca/common/umrddt_select/umrddt_select_cache.h"
#include "opal/mca/common/umrddt_select/umrddt_select_rules.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"

BEGIN_C_DECLS

/**
 * Read the tuning parameters, as pml_umrddt_model says, and allocate the cache if needed. Errors in
 * a file are reported, and the file is ignored. Called after the MCA parameters are registered.
 *
 * @param[in] shows  selections are to be printed
 */
void mca_pml_umrddt_select_open(bool shows);
void mca_pml_umrddt_select_close(void);

/** Set mca_pml_umrddt.eager, for the model. Called once the base PML is available. */
void mca_pml_umrddt_eager_open(void);

/* ---------------------------------------------------------------------------------------------
 * Rules, for the schemes' can_recv
 * ------------------------------------------------------------------------------------------- */

/** Select a packed scheme for a message without HCA schemes or CUDA IPC. 0: base PML. @param[in]
 * schemes  as in an envelope, with its other bits */
static inline unsigned
mca_pml_umrddt_rule_pack(unsigned schemes, const opal_umrddt_gpu_where_t *where, uint64_t total)
{
    /* Between system memory buffers the base PML is sufficient, unless the user of the sender
     * forces another scheme. */
    if (where->mixed
        || (0 != (MCA_PML_UMRDDT_IF_GPU & schemes) && !opal_umrddt_gpu_on_gpu(where))) {
        return 0;
    }
    return opal_umrddt_rule_pack(schemes & mca_pml_umrddt.schemes & MCA_PML_UMRDDT_BITS_PACK, total,
                                 mca_pml_umrddt.params.pack_host);
}

/** Returns true if a packed scheme is the one that the rule selects among the candidates. */
static inline bool mca_pml_umrddt_rule_packs(const mca_pml_umrddt_recv_t *recv,
                                             mca_pml_umrddt_scheme_id_t scheme)
{
    const unsigned schemes = (recv->rts.schemes & ~MCA_PML_UMRDDT_BITS_PACK)
                             | (recv->candidates & MCA_PML_UMRDDT_BITS_PACK);

    return MCA_PML_UMRDDT_BIT(scheme)
           == mca_pml_umrddt_rule_pack(schemes, &recv->where, recv->total);
}

/* ---------------------------------------------------------------------------------------------
 * The receiver
 * ------------------------------------------------------------------------------------------- */

/** A valid envelope was matched: look up the selection, or query the model. Sets recv->pair,
 * recv->scheme and recv->layout, and removes schemes that are not to be used from recv->rts. */
void mca_pml_umrddt_select_recv(mca_pml_umrddt_recv_t *recv);

/** Returns true if the receiver declines a message, as permitted. recv->pair must not be NULL. */
bool mca_pml_umrddt_select_declines(const mca_pml_umrddt_recv_t *recv);

/** A message has ended, successfully or not: update its pair. Sets recv->pair to NULL. */
void mca_pml_umrddt_select_ended(mca_pml_umrddt_recv_t *recv, int error);

/** The selected scheme failed and the base PML carries the message. Sets recv->pair to NULL. */
void mca_pml_umrddt_select_failed(mca_pml_umrddt_recv_t *recv);

/* ---------------------------------------------------------------------------------------------
 * The sender; any thread
 * ------------------------------------------------------------------------------------------- */

/**
 * The schemes that a sender offers: MCA_PML_UMRDDT_BIT_*.
 *
 * @param[in] to_gpu  assume that the receive buffer is in GPU memory
 */
uint16_t mca_pml_umrddt_select_offered(const mca_pml_umrddt_comm_t *comm,
                                       const mca_pml_umrddt_peer_t *peer,
                                       const opal_umrddt_gpu_where_t *where, bool to_gpu,
                                       size_t size);

/** As mca_pml_umrddt_select_passes, without the lookup in the offer cache by datatype. */
bool mca_pml_umrddt_select_passes_new(mca_pml_umrddt_comm_t *comm,
                                      const mca_pml_umrddt_peer_t *peer,
                                      const opal_umrddt_gpu_where_t *where, bool lands,
                                      size_t count, ompi_datatype_t *datatype);

/** The key in the offer cache of a message's datatype, count, communicator and peer. A datatype may
 * reuse the address of a freed one; types_died distinguishes them. */
static inline uint64_t mca_pml_umrddt_select_key(mca_pml_umrddt_comm_t *comm,
                                                 const mca_pml_umrddt_peer_t *peer, bool lands,
                                                 size_t count, const ompi_datatype_t *datatype)
{
    uint64_t key = opal_umrddt_offer_mix((uintptr_t) datatype, count);

    key = opal_umrddt_offer_mix(key, (uintptr_t) comm);
    key = opal_umrddt_offer_mix(key, (uintptr_t) peer);
    key = opal_umrddt_offer_mix(key, __atomic_load_n(&mca_pml_umrddt.types_died, __ATOMIC_RELAXED));
    key =
        opal_umrddt_offer_mix(key, (uint64_t) mca_pml_umrddt_pattern(comm) << 1 | (lands ? 1 : 0));
    return key | 1;
}

/**
 * Returns true if the base PML is predicted to be faster for a message that umrddt could handle, so
 * that it is passed through. Predicted once for a layout and a kind of peer. For system memory the
 * result is cached by datatype, so that not even the layout is looked up.
 *
 * @param[in] lands  the message is handled only in case that the receive buffer is in GPU memory
 */
static inline bool mca_pml_umrddt_select_passes(mca_pml_umrddt_comm_t *comm,
                                                const mca_pml_umrddt_peer_t *peer,
                                                const opal_umrddt_gpu_where_t *where, bool lands,
                                                size_t count, ompi_datatype_t *datatype)
{
    uint64_t key;

    if (opal_umrddt_gpu_on_gpu(where) || where->mixed) {
        return mca_pml_umrddt_select_passes_new(comm, peer, where, lands, count, datatype);
    }
    key = mca_pml_umrddt_select_key(comm, peer, lands, count, datatype);
    if (OPAL_LIKELY(OPAL_UMRDDT_OFFER_NO == opal_umrddt_offer_word(&mca_pml_umrddt.offers, key))) {
        return MCA_PML_UMRDDT_SCHEME_AUTO == comm->scheme;
    }
    if (!mca_pml_umrddt_select_passes_new(comm, peer, where, lands, count, datatype)) {
        return false;
    }
    opal_umrddt_offer_set(&mca_pml_umrddt.offers, key, OPAL_UMRDDT_OFFER_NO);
    return true;
}

/** Returns true if one of @p schemes, either those of the HCA or packed ones (without the HCA), is
 * predicted to be faster than CUDA IPC for GPU memory sent to a process of the same node. Predicted
 * once for a layout and a kind of peer. The HCA: for some receiver with the same layout or one
 * block, in GPU or system memory, which the user can restrict; the sender then offers both. Packed:
 * for a receive buffer in GPU memory unless the user states otherwise. */
bool mca_pml_umrddt_select_beats_copy(mca_pml_umrddt_comm_t *comm,
                                      const mca_pml_umrddt_peer_t *peer,
                                      opal_iov_cache_layout_t *layout, unsigned schemes);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_SELECT_H */
