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
 * The schemes that can carry a message: one enumeration, and one bitmap of it. The envelope, the
 * settings of processes and communicators, and the selection use the same bitmap, so the values are
 * part of the wire format. Does not depend on MPI.
 */

#ifndef OPAL_UMRDDT_SELECT_SCHEME_H
#define OPAL_UMRDDT_SELECT_SCHEME_H

#include <stdint.h>

typedef enum mca_pml_umrddt_scheme_id_t {
    MCA_PML_UMRDDT_SCHEME_UMR = 0,    /**< RDMA writes between mkeys of both sides */
    MCA_PML_UMRDDT_SCHEME_DIRECT = 1, /**< RDMA writes into the receiver's layout, without mkeys */
    MCA_PML_UMRDDT_SCHEME_IPC = 2,    /**< the receiver copies from the sender's GPU memory */
    MCA_PML_UMRDDT_SCHEME_BASE = 3,   /**< the base PML; its bit is never in an envelope */
    MCA_PML_UMRDDT_SCHEME_PACK_STAGED = 4, /**< chunks that GPUs pack in their memory */
    MCA_PML_UMRDDT_SCHEME_PACK_HOST = 5,   /**< chunks that GPUs pack in pinned system memory */
    MCA_PML_UMRDDT_SCHEME_PACK_GDR = 6,    /**< chunks in GPU memory that HCAs read and write */
    MCA_PML_UMRDDT_SCHEMES = 7,
    MCA_PML_UMRDDT_SCHEME_AUTO = MCA_PML_UMRDDT_SCHEMES /**< parameter value: no scheme is forced */
} mca_pml_umrddt_scheme_id_t;

#define MCA_PML_UMRDDT_BIT(scheme) (1u << (scheme))

#define MCA_PML_UMRDDT_BIT_UMR         MCA_PML_UMRDDT_BIT(MCA_PML_UMRDDT_SCHEME_UMR)
#define MCA_PML_UMRDDT_BIT_DIRECT      MCA_PML_UMRDDT_BIT(MCA_PML_UMRDDT_SCHEME_DIRECT)
#define MCA_PML_UMRDDT_BIT_IPC         MCA_PML_UMRDDT_BIT(MCA_PML_UMRDDT_SCHEME_IPC)
#define MCA_PML_UMRDDT_BIT_BASE        MCA_PML_UMRDDT_BIT(MCA_PML_UMRDDT_SCHEME_BASE)
#define MCA_PML_UMRDDT_BIT_PACK_STAGED MCA_PML_UMRDDT_BIT(MCA_PML_UMRDDT_SCHEME_PACK_STAGED)
#define MCA_PML_UMRDDT_BIT_PACK_HOST   MCA_PML_UMRDDT_BIT(MCA_PML_UMRDDT_SCHEME_PACK_HOST)
#define MCA_PML_UMRDDT_BIT_PACK_GDR    MCA_PML_UMRDDT_BIT(MCA_PML_UMRDDT_SCHEME_PACK_GDR)

/** Groups: RDMA writes between the buffers; packed, in chunks; all that an envelope can offer. */
#define MCA_PML_UMRDDT_BITS_HCA  0x03u
#define MCA_PML_UMRDDT_BITS_PACK 0x70u
#define MCA_PML_UMRDDT_BITS_ALL  0x77u

/** Schemes that need an HCA, and those that can use one. */
#define MCA_PML_UMRDDT_BITS_NEED_HCA (MCA_PML_UMRDDT_BITS_HCA | MCA_PML_UMRDDT_BIT_PACK_GDR)
#define MCA_PML_UMRDDT_BITS_USE_HCA  (MCA_PML_UMRDDT_BITS_HCA | MCA_PML_UMRDDT_BITS_PACK)

/** State of a scheme with one peer. */
typedef struct opal_umrddt_scheme_state_t {
    uint32_t fails;    /**< sender: failures of the scheme in a row; atomic */
    uint64_t retry_at; /**< receiver: count of selections after which the scheme is used again */
} opal_umrddt_scheme_state_t;

/** The scheme of a bitmap with one bit; the base PML for 0. */
static inline mca_pml_umrddt_scheme_id_t mca_pml_umrddt_scheme_of(unsigned bit)
{
    return 0 == bit ? MCA_PML_UMRDDT_SCHEME_BASE : (mca_pml_umrddt_scheme_id_t) __builtin_ctz(bit);
}

#endif /* OPAL_UMRDDT_SELECT_SCHEME_H */
