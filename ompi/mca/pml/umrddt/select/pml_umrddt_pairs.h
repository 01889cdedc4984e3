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
 * The selection cache: pairs of layouts of past messages and the schemes that the model
 * (umrddt_select_model.h) selects for them.
 */

/*
 * Without tuning parameters of this machine there is no cache (mca_pml_umrddt.pairs is NULL) unless
 * pml_umrddt_explain is set, and the rules of pml_umrddt_choice.c apply. With tuning parameters the
 * model selects among the schemes that both sides support. It runs once for each combination of
 * layouts, buffer and peer, and again after 2, 4, 8, ... uses. In between the selection is looked
 * up. A sender also queries the model whether to handle a message at all.
 *
 * Progress thread only, except the queries of senders.
 */

#ifndef MCA_PML_UMRDDT_PAIRS_H
#define MCA_PML_UMRDDT_PAIRS_H

#include "ompi/mca/pml/umrddt/core/pml_umrddt_offer_cache.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_pattern.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "opal/mca/common/umrddt_select/umrddt_select_model.h"

BEGIN_C_DECLS

/**
 * Read the tuning parameters, as pml_umrddt_model says, and allocate the cache if needed. Errors in
 * a file are reported, and the file is ignored. Called after the MCA parameters are registered.
 *
 * @param[in] told  predictions are to be printed: allocate the cache even without tuning parameters
 */
void mca_pml_umrddt_pairs_open(bool told);
void mca_pml_umrddt_pairs_close(void);

/** pml_umrddt_eager.c: set mca_pml_umrddt.eager. Called once the base PML is available. */
void mca_pml_umrddt_eager_open(void);

/** Returns true if the model selects schemes; false if the rules do. */
bool mca_pml_umrddt_pairs_decide(void);

/** A valid envelope was matched: look up the pair, or query the model. Sets recv->pair,
 * recv->scheme and recv->layout, and removes schemes that are not to be used from recv->rts. */
void mca_pml_umrddt_pairs_judge(mca_pml_umrddt_recv_t *recv);

/** Select UMR or scatter/gather lists where both are possible. As mca_pml_umrddt_choose, for a
 * message after mca_pml_umrddt_pairs_judge. */
unsigned mca_pml_umrddt_pairs_hca(const mca_pml_umrddt_recv_t *recv);

/** The packed scheme selected by the model, if it is in the schemes of @p rts; else @p rule. */
unsigned mca_pml_umrddt_pairs_pack(const mca_pml_umrddt_recv_t *recv,
                                   const mca_pml_umrddt_rts_t *rts, unsigned rule);

/** Returns true if the receiver declines a message, as permitted. recv->pair must not be NULL. */
bool mca_pml_umrddt_pairs_leaves(const mca_pml_umrddt_recv_t *recv);

/** Returns true if the model selected a packed scheme for a message, even if an HCA could carry it.
 */
bool mca_pml_umrddt_pairs_packs(const mca_pml_umrddt_recv_t *recv);

/**
 * Report the selection for a message. recv->pair must not be NULL.
 *
 * @param[out] times     predicted time of each scheme in us, MCA_PML_UMRDDT_SCHEMES entries
 * @param[out] possible  bit 1 << scheme for each scheme that both sides support
 *
 * @return the reason for the selection, for the user
 */
const char *mca_pml_umrddt_pairs_tell(const mca_pml_umrddt_recv_t *recv, double *times,
                                      unsigned *possible);

/** Source of the tuning parameters, for the user. The cache must exist. */
const char *mca_pml_umrddt_pairs_figures(void);

/**
 * The schemes that a sender offers: MCA_PML_UMRDDT_BIT_*.
 *
 * @param[in] to_gpu  assume that the receive buffer is in GPU memory
 */
uint16_t mca_pml_umrddt_pairs_offered(const mca_pml_umrddt_comm_t *comm,
                                      const mca_pml_umrddt_peer_t *peer,
                                      const mca_pml_umrddt_where_t *where, bool to_gpu,
                                      size_t size);

/** A message has ended, successfully or not: update its pair. Sets recv->pair to NULL. */
void mca_pml_umrddt_pairs_over(mca_pml_umrddt_recv_t *recv, int error);

/** The selected scheme failed and the base PML carries the message. Sets recv->pair to NULL. */
void mca_pml_umrddt_pairs_failed(mca_pml_umrddt_recv_t *recv);

/** As mca_pml_umrddt_pairs_declines, without the lookup in the offer cache by datatype. */
bool mca_pml_umrddt_pairs_ask(mca_pml_umrddt_comm_t *comm, const mca_pml_umrddt_peer_t *peer,
                              const mca_pml_umrddt_where_t *where, bool lands, size_t count,
                              ompi_datatype_t *datatype);

/** The key in the offer cache of a message's datatype, count, communicator and peer. A datatype may
 * reuse the address of a freed one; types_died distinguishes them. */
static inline uint64_t mca_pml_umrddt_pairs_key(mca_pml_umrddt_comm_t *comm,
                                                const mca_pml_umrddt_peer_t *peer, bool lands,
                                                size_t count, const ompi_datatype_t *datatype)
{
    uint64_t key = mca_pml_umrddt_offer_mix((uintptr_t) datatype, count);

    key = mca_pml_umrddt_offer_mix(key, (uintptr_t) comm);
    key = mca_pml_umrddt_offer_mix(key, (uintptr_t) peer);
    key = mca_pml_umrddt_offer_mix(key,
                                   __atomic_load_n(&mca_pml_umrddt.types_died, __ATOMIC_RELAXED));
    key = mca_pml_umrddt_offer_mix(key,
                                   (uint64_t) mca_pml_umrddt_pattern(comm) << 1 | (lands ? 1 : 0));
    return key | 1;
}

/**
 * Returns true if the base PML is predicted to be faster for a message that umrddt could handle.
 * Predicted once for a layout and a kind of peer. For system memory the result is cached by
 * datatype, so that not even the layout is looked up. Called from any thread.
 *
 * @param[in] lands  the message is handled only in case that the receive buffer is in GPU memory
 */
static inline bool mca_pml_umrddt_pairs_declines(mca_pml_umrddt_comm_t *comm,
                                                 const mca_pml_umrddt_peer_t *peer,
                                                 const mca_pml_umrddt_where_t *where, bool lands,
                                                 size_t count, ompi_datatype_t *datatype)
{
    uint64_t key;

    if (mca_pml_umrddt_on_gpu(where) || where->mixed) {
        return mca_pml_umrddt_pairs_ask(comm, peer, where, lands, count, datatype);
    }
    key = mca_pml_umrddt_pairs_key(comm, peer, lands, count, datatype);
    if (OPAL_LIKELY(MCA_PML_UMRDDT_OFFER_NO == mca_pml_umrddt_offer_word(key))) {
        return MCA_PML_UMRDDT_SCHEME_AUTO == comm->scheme;
    }
    if (!mca_pml_umrddt_pairs_ask(comm, peer, where, lands, count, datatype)) {
        return false;
    }
    mca_pml_umrddt_offer_set(key, MCA_PML_UMRDDT_OFFER_NO);
    return true;
}

/** Returns true if the HCA may be faster than CUDA IPC for GPU memory sent to a process of the same
 * node. The sender then offers both. Predicted for receivers with the same layout or one block, in
 * GPU or system memory, which the user can restrict. Predicted once for a layout; any thread. */
bool mca_pml_umrddt_pairs_by_hca(mca_pml_umrddt_comm_t *comm, const mca_pml_umrddt_peer_t *peer,
                                 opal_iov_cache_layout_t *layout);

/** Returns true if a packed scheme is predicted to be faster than CUDA IPC for GPU memory sent to a
 * process of the same node. Assumes a receive buffer in GPU memory unless the user states
 * otherwise. Predicted once for a layout and a kind of peer; called from any thread. */
bool mca_pml_umrddt_pairs_may_pack(mca_pml_umrddt_comm_t *comm, const mca_pml_umrddt_peer_t *peer,
                                   opal_iov_cache_layout_t *layout);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_PAIRS_H */
