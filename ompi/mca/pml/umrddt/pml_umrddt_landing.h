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
 * What senders know of where their messages are received, when that decides whether there is
 * anything to do: from memory of the CPU, where only packed ways are open, which help a receive in
 * GPU memory and no other; or where there is a card, which the model thinks to be better than the
 * host PML for that memory, and for no other.
 *
 * Nobody tells a sender. So it tries: the first such message to a rank with a tag is taken (packed
 * ways are for GPU memory alone, MCA_PML_UMRDDT_IF_GPU), and the receiver's answer shows what it is
 * (a CTS by MCA_PML_UMRDDT_IN_GPU). Where it was the CPU's, the next 16 messages are left to the
 * host PML without a question, then one is tried again, after that 32, and so on up to 32768: a
 * vanishing part of messages that stay in memory of CPUs. Each message that was received in a GPU's
 * halves the number.
 *
 * Communicators keep it in a table of fixed size, by a hash of rank and tag: who share an entry are
 * thought to be alike, which costs time where they are not, and nothing else.
 */

#ifndef MCA_PML_UMRDDT_LANDING_H
#define MCA_PML_UMRDDT_LANDING_H

#include "pml_umrddt.h"

BEGIN_C_DECLS

/** Entries of a communicator's table. A power of two. */
#define MCA_PML_UMRDDT_LANDINGS 256u

/**
 * Whether a message is to be tried; the next one of those that are not has come. From any thread.
 *
 * @return false: it is likely to be received in memory of the CPU, or there is no memory to know
 */
bool mca_pml_umrddt_landing_try(mca_pml_umrddt_comm_t *comm, int dst, int tag);

/** A message that was tried was received in memory of a GPU, or not. From any thread. */
void mca_pml_umrddt_landing_learn(mca_pml_umrddt_comm_t *comm, int dst, int tag, bool gpu);

/** Free the table, if there is one: the communicator goes. */
void mca_pml_umrddt_landing_free(mca_pml_umrddt_comm_t *comm);

END_C_DECLS

#endif /* MCA_PML_UMRDDT_LANDING_H */
