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

/**
 * All schemes, in the order in which rules are tried and among equal predictions. The only list:
 * identifiers, bits, names and masks come from it.
 *
 *     X(NAME, name, text, bit, group, rdma, packed, copy, hca)
 *
 * text    name in parameters and output
 * bit     position in the bitmap, and value of the enumeration; 0, 1, ... without a gap
 * group   1: the scheme has the functions of its group (pml_umrddt_scheme.h)
 * rdma    1: RDMA writes between the buffers
 * packed  1: packed, in chunks
 * copy    1: the receiver copies out of the sender's GPU memory, on the same node
 * hca     1: impossible without an HCA (pack-gdr: or a base PML that accepts GPU memory)
 *
 * umr: between mkeys of both sides; direct: into the receiver's layout, without mkeys; ipc: the
 * receiver copies from the sender's GPU memory; pack-gdr: chunks in GPU memory that HCAs, or the
 * base PML, read and write; pack-staged, pack-host: chunks that GPUs pack in their memory, or in
 * pinned system memory; host: the base PML, whose bit is never in an envelope.
 */
#define MCA_PML_UMRDDT_SCHEME_LIST(X)                            \
    X(IPC, ipc, "ipc", 2, 1, 0, 0, 1, 0)                         \
    X(UMR, umr, "umr", 0, 1, 1, 0, 0, 1)                         \
    X(DIRECT, direct, "direct", 1, 0, 1, 0, 0, 1)                \
    X(PACK_GDR, pack_gdr, "pack-gdr", 6, 1, 0, 1, 0, 1)          \
    X(PACK_STAGED, pack_staged, "pack-staged", 4, 0, 0, 1, 0, 0) \
    X(PACK_HOST, pack_host, "pack-host", 5, 0, 0, 1, 0, 0)       \
    X(BASE, base, "host", 3, 0, 0, 0, 0, 0)

#define OPAL_UMRDDT_SCHEME_ID(NAME, name, text, bit, group, rdma, packed, copy, hca) \
    MCA_PML_UMRDDT_SCHEME_##NAME = (bit),
#define OPAL_UMRDDT_SCHEME_BIT(NAME, name, text, bit, group, rdma, packed, copy, hca) \
    MCA_PML_UMRDDT_BIT_##NAME = 1 << (bit),
#define OPAL_UMRDDT_SCHEME_ONE(NAME, name, text, bit, group, rdma, packed, copy, hca)   +1
#define OPAL_UMRDDT_SCHEME_GROUP(NAME, name, text, bit, group, rdma, packed, copy, hca) +(group)
#define OPAL_UMRDDT_SCHEME_ANY(NAME, name, text, bit, group, rdma, packed, copy, hca)   | 1u << (bit)
#define OPAL_UMRDDT_SCHEME_RDMA(NAME, name, text, bit, group, rdma, packed, copy, hca) \
    | (rdma##u) << (bit)
#define OPAL_UMRDDT_SCHEME_PACKED(NAME, name, text, bit, group, rdma, packed, copy, hca) \
    | (packed##u) << (bit)
#define OPAL_UMRDDT_SCHEME_COPY(NAME, name, text, bit, group, rdma, packed, copy, hca) \
    | (copy##u) << (bit)
#define OPAL_UMRDDT_SCHEME_HCA(NAME, name, text, bit, group, rdma, packed, copy, hca) \
    | (hca##u) << (bit)

typedef enum mca_pml_umrddt_scheme_id_t {
    MCA_PML_UMRDDT_SCHEME_LIST(OPAL_UMRDDT_SCHEME_ID)
    MCA_PML_UMRDDT_SCHEMES = 0 MCA_PML_UMRDDT_SCHEME_LIST(OPAL_UMRDDT_SCHEME_ONE),
    MCA_PML_UMRDDT_SCHEME_AUTO = MCA_PML_UMRDDT_SCHEMES /**< parameter value: no scheme is forced */
} mca_pml_umrddt_scheme_id_t;

/** Number of groups of schemes. */
#define MCA_PML_UMRDDT_GROUPS (0 MCA_PML_UMRDDT_SCHEME_LIST(OPAL_UMRDDT_SCHEME_GROUP))

#define MCA_PML_UMRDDT_BIT(scheme) (1u << (scheme))

/** MCA_PML_UMRDDT_BIT_*, one for each scheme. */
enum {
    MCA_PML_UMRDDT_SCHEME_LIST(OPAL_UMRDDT_SCHEME_BIT)
};

_Static_assert(MCA_PML_UMRDDT_BIT(MCA_PML_UMRDDT_SCHEMES) - 1
                   == (0 MCA_PML_UMRDDT_SCHEME_LIST(OPAL_UMRDDT_SCHEME_ANY)),
               "bits without a gap");

/** RDMA writes between the buffers; packed, in chunks; copies out of the sender's GPU memory; all
 * that an envelope can offer. */
#define MCA_PML_UMRDDT_BITS_HCA  (0u MCA_PML_UMRDDT_SCHEME_LIST(OPAL_UMRDDT_SCHEME_RDMA))
#define MCA_PML_UMRDDT_BITS_PACK (0u MCA_PML_UMRDDT_SCHEME_LIST(OPAL_UMRDDT_SCHEME_PACKED))
#define MCA_PML_UMRDDT_BITS_COPY (0u MCA_PML_UMRDDT_SCHEME_LIST(OPAL_UMRDDT_SCHEME_COPY))
#define MCA_PML_UMRDDT_BITS_ALL                       \
    ((MCA_PML_UMRDDT_BIT(MCA_PML_UMRDDT_SCHEMES) - 1) \
     ^ MCA_PML_UMRDDT_BIT(MCA_PML_UMRDDT_SCHEME_BASE))

/** Packed schemes that need an HCA or a base PML that accepts GPU memory. */
#define MCA_PML_UMRDDT_BITS_GPU_WIRE (MCA_PML_UMRDDT_BITS_PACK & MCA_PML_UMRDDT_BITS_NEED_HCA)

/** Schemes that need mkeys, that need an HCA, and that can use one. */
#define MCA_PML_UMRDDT_BITS_MKEYS    MCA_PML_UMRDDT_BIT_UMR
#define MCA_PML_UMRDDT_BITS_NEED_HCA (0u MCA_PML_UMRDDT_SCHEME_LIST(OPAL_UMRDDT_SCHEME_HCA))
#define MCA_PML_UMRDDT_BITS_USE_HCA  (MCA_PML_UMRDDT_BITS_HCA | MCA_PML_UMRDDT_BITS_PACK)

/** Names of the schemes, by id. */
extern const char *const mca_pml_umrddt_scheme_names[MCA_PML_UMRDDT_SCHEMES];

/** The schemes in the order of the list; the base PML is last. */
extern const mca_pml_umrddt_scheme_id_t mca_pml_umrddt_scheme_order[MCA_PML_UMRDDT_SCHEMES];

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
