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
 * Pairs of layouts that messages came with, and what the model (umrddt_select_model.h) says of
 * them.
 *
 * Without figures of this machine, and unless the choice is to be explained, there is no table
 * (mca_pml_umrddt.pairs is NULL), and the rules of pml_umrddt_choice.c are all there is. With
 * figures the model decides among what both sides can: once for each pair of layouts, buffer and
 * peer, and again when they have been used twice, four, eight times as often. In between the
 * verdict is looked up. A sender asks the model, too, whether a message is to be taken at all.
 *
 * All of it is of progress only, but for what senders ask.
 */

#ifndef MCA_PML_UMRDDT_PAIRS_H
#define MCA_PML_UMRDDT_PAIRS_H

#include "pml_umrddt.h"
#include "pml_umrddt_offer_cache.h"
#include "opal/mca/common/umrddt_select/umrddt_select_model.h"

BEGIN_C_DECLS

/**
 * Read the figures, as pml_umrddt_model says, and make the table if there is a need of one. What is
 * wrong with a file is told, and then there are none. When the parameters are known.
 *
 * @param[in] told  there is: what is predicted is told to the user, if there are figures or not
 */
void mca_pml_umrddt_pairs_open(bool told);
void mca_pml_umrddt_pairs_close(void);

/** pml_umrddt_eager.c: set mca_pml_umrddt.eager, once the base PML is there. */
void mca_pml_umrddt_eager_open(void);

/** True if the model decides, and not the rules. */
bool mca_pml_umrddt_pairs_decide(void);

/**
 * An envelope was matched and is right: find what is known of the pair, or work it out. Sets
 * recv->pair, recv->scheme and recv->layout, and takes what is not to be used out of recv->rts.
 */
void mca_pml_umrddt_pairs_judge(mca_pml_umrddt_recv_t *recv);

/** By mkeys or without, where both can be; as mca_pml_umrddt_choose, of a message that was judged.
 */
unsigned mca_pml_umrddt_pairs_hca(const mca_pml_umrddt_recv_t *recv);

/** The packed scheme of a message that was judged, if the model has an opinion: among the schemes
 * of @p rts; else @p rule. */
unsigned mca_pml_umrddt_pairs_pack(const mca_pml_umrddt_recv_t *recv,
                                   const mca_pml_umrddt_rts_t *rts, unsigned rule);

/** True if a message that was judged is declined, as the sender allows: recv->pair is not NULL. */
bool mca_pml_umrddt_pairs_leaves(const mca_pml_umrddt_recv_t *recv);

/** True if a message is to go packed, though an HCA could take it. */
bool mca_pml_umrddt_pairs_packs(const mca_pml_umrddt_recv_t *recv);

/**
 * What is known of a message that was judged: recv->pair is not NULL.
 *
 * @param[out] times     of all ways, MCA_PML_UMRDDT_SCHEMES of them, in us
 * @param[out] possible  bit 1 << way for each that both sides can
 *
 * @return why it goes as it does
 */
const char *mca_pml_umrddt_pairs_tell(const mca_pml_umrddt_recv_t *recv, double *times,
                                      unsigned *possible);

/** Where the figures are from, for the user. If there is a table. */
const char *mca_pml_umrddt_pairs_figures(void);

/**
 * What a sender offers: MCA_PML_UMRDDT_BIT_*.
 *
 * @param[in] to_gpu  the receiver's memory is taken to be a GPU's
 */
uint16_t mca_pml_umrddt_pairs_offered(const mca_pml_umrddt_comm_t *comm,
                                      const mca_pml_umrddt_peer_t *peer,
                                      const mca_pml_umrddt_where_t *where, bool to_gpu,
                                      size_t size);

/** A message that was judged is over, well or not: it is observed, and recv->pair is NULL. */
void mca_pml_umrddt_pairs_over(mca_pml_umrddt_recv_t *recv, int error);

/** It could not go the way that it went, and the base PML carries it; recv->pair is NULL. */
void mca_pml_umrddt_pairs_failed(mca_pml_umrddt_recv_t *recv);

/** As mca_pml_umrddt_pairs_declines, of one that is not known to be. */
bool mca_pml_umrddt_pairs_ask(mca_pml_umrddt_comm_t *comm, const mca_pml_umrddt_peer_t *peer,
                              const mca_pml_umrddt_where_t *where, bool lands, size_t count,
                              ompi_datatype_t *datatype);

/**
 * The key in the offer cache of a message's datatype, count, communicator and peer. A datatype may
 * have the address of an earlier one, but not since any was freed (types_died).
 */
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
 * True if a message that could be taken is left to the base PML, because that is predicted to be
 * quicker. Worked out once for a layout and a kind of peer, and, where it comes from memory of the
 * CPU, remembered for the datatype, so that not even its layout is looked up; from any thread.
 *
 * @param[in] lands  it is taken, if at all, in case that it is received in memory of a GPU
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

/**
 * True if the HCA may be quicker than CUDA IPC for what a GPU sends to a process of this host, so
 * that it is offered beside it: predicted of a receiver with the same layout, or with one piece, in
 * memory of a GPU or the CPU, of which the user can say. Worked out once for a layout; from any
 * thread.
 */
bool mca_pml_umrddt_pairs_by_hca(mca_pml_umrddt_comm_t *comm, const mca_pml_umrddt_peer_t *peer,
                                 opal_iov_cache_layout_t *layout);

/**
 * True if a packed way is predicted to be quicker than CUDA IPC for what a GPU sends to a process
 * of this host: to a GPU, unless the user says that it goes to the CPU. Worked out once for a
 * layout and a kind of peer; from any thread.
 */
bool mca_pml_umrddt_pairs_may_pack(mca_pml_umrddt_comm_t *comm, const mca_pml_umrddt_peer_t *peer,
                                   opal_iov_cache_layout_t *layout);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_PAIRS_H */
