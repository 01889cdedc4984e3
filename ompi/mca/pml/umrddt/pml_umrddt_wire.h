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
 * Wire format of the messages between two processes that run umrddt: the envelope (RTS), the
 * identity of a process, kinds and tags. pml_umrddt_wire_reply.h has the replies and what follows
 * them. README.md shows the order of the messages.
 *
 * The base PML carries the envelope on the user's communicator and tag in place of the message. So
 * matching stays in the base PML. All other headers use internal tags of the same communicator
 * (mca_pml_umrddt_tag_t).
 *
 * All fields are in native byte order. The magic differs between byte orders, and messages to a
 * peer of another architecture are never handled. The receiver of a header validates every field.
 */

#ifndef MCA_PML_UMRDDT_WIRE_H
#define MCA_PML_UMRDDT_WIRE_H

#include "ompi_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "opal/mca/btl/umr/btl_umr_hca.h"
#include "opal/mca/common/umrddt_select/umrddt_select_scheme.h"

BEGIN_C_DECLS

/** First word of every header: "umrddt", the wire version, the kind. */
#define MCA_PML_UMRDDT_WIRE_VERSION 15
#define MCA_PML_UMRDDT_MAGIC(kind) \
    (UINT64_C(0x756d726464740000) | ((uint64_t) MCA_PML_UMRDDT_WIRE_VERSION << 8) | (kind))

#define MCA_PML_UMRDDT_KIND_RTS         1
#define MCA_PML_UMRDDT_KIND_REPLY       2
#define MCA_PML_UMRDDT_KIND_NACK        3
#define MCA_PML_UMRDDT_KIND_CTS_CACHED  4
#define MCA_PML_UMRDDT_KIND_CTS_SGL     5
#define MCA_PML_UMRDDT_KIND_LAYOUT_FRAG 6
#define MCA_PML_UMRDDT_KIND_INFO        7
#define MCA_PML_UMRDDT_KIND_HINT        8

/** Kinds of replies, from the receiver to the sender: the headers of kind REPLY. */
typedef enum mca_pml_umrddt_reply_kind_t {
    MCA_PML_UMRDDT_REPLY_CTS = 1,      /**< CTS: write [start, end) with these rkeys */
    MCA_PML_UMRDDT_REPLY_FALLBACK = 2, /**< FALLBACK: send the whole message by the base PML */
    MCA_PML_UMRDDT_REPLY_ACK = 3,      /**< ACK: the message is complete */
    MCA_PML_UMRDDT_REPLY_INFO_REQ =
        4, /**< INFO_REQ: send the export of the allocation, the layout, or both */
    MCA_PML_UMRDDT_REPLY_CTS_PACK =
        5, /**< CTS_PACK: send the first total bytes packed, in chunks */
    MCA_PML_UMRDDT_REPLY_CREDIT =
        6 /**< CREDIT: after a CTS_PACK with rkeys, more chunks may be written */
} mca_pml_umrddt_reply_kind_t;

/* Flags beside the schemes of an envelope, in the highest bits. */

/** Together with BITS_PACK: the send buffer is GPU memory. */
#define MCA_PML_UMRDDT_ON_GPU 0x1000

/** Together with BITS_PACK: offered only for a receive into GPU memory. */
#define MCA_PML_UMRDDT_IF_GPU 0x2000

/** The receiver may decline the message when the base PML is predicted to be faster. */
#define MCA_PML_UMRDDT_MAY_DECLINE 0x4000

/** Together with BIT_IPC: the sender tests its completion flag (umrddt_done_flag.h) and posts
 * no receive for a reply until the flag announces one. */
#define MCA_PML_UMRDDT_DONE_FLAG 0x8000

_Static_assert(MCA_PML_UMRDDT_ON_GPU >= MCA_PML_UMRDDT_BIT(MCA_PML_UMRDDT_SCHEMES),
               "no scheme has the bit of a flag");

#define MCA_PML_UMRDDT_COOKIE_LEN 16

/** Flags in the identity of a process. */
#define MCA_PML_UMRDDT_HAS_HCA    0x1 /**< a usable HCA */
#define MCA_PML_UMRDDT_HAS_GPU    0x2 /**< the CUDA driver, so its buffers may be in GPU memory */
#define MCA_PML_UMRDDT_COLL_SHIFT 16  /**< opal_umrddt_collectives.mode in the upper half */

/** Identity that each process publishes through the modex. */
typedef struct mca_pml_umrddt_identity_t {
    uint32_t version; /**< MCA_PML_UMRDDT_WIRE_VERSION; equal in peers that use umrddt */
    uint32_t flags;   /**< MCA_PML_UMRDDT_HAS_* */
    uint64_t host;    /**< equal for processes that can share GPU memory; 0: unknown */
    uint8_t cookie[MCA_PML_UMRDDT_COOKIE_LEN];
} mca_pml_umrddt_identity_t;
_Static_assert(32 == sizeof(mca_pml_umrddt_identity_t), "no padding");

/** Additional lanes (pairs of HCAs) that an envelope can name. */
#define MCA_PML_UMRDDT_LANES 4

/** The envelope (RTS). Its unusual size makes it rare that a plain message has to be inspected. */
typedef struct mca_pml_umrddt_rts_t {
    uint64_t magic;
    uint8_t cookie[MCA_PML_UMRDDT_COOKIE_LEN]; /**< of the sending process, see the modex */
    uint64_t length;                           /**< bytes of the message */
    uint64_t chunk;                            /**< chunk size that the sender proposes, bytes */
    uint64_t seq;                              /**< of the message, unique in the sending process */
    uint32_t pieces;                           /**< in the sender's layout, at most UINT32_MAX */
    uint16_t schemes;                          /**< MCA_PML_UMRDDT_BIT_*, at least one */
    uint16_t write_pieces;                     /**< gathered by one RDMA write, at least 1 */
    uint32_t request_id;                       /**< request id of the send */
    uint16_t slots;                            /**< size of the remote key cache for the peer */
    uint16_t flats;                            /**< size of the layout cache for the peer */
    mca_btl_umr_address_t address;             /**< the sender's endpoint for this receiver */
    union {
        struct {                /* for BIT_IPC */
            uint64_t buffer_id; /**< BUFFER_ID of the sender's allocation, not 0 */
            uint64_t buffer;    /**< address passed to MPI; offsets of the layout count from it */
            uint64_t layout;    /**< the sender's id of its layout: not 0, never reused */
            int64_t lb;         /**< lowest offset: of the piece, if it is one */
        };
        /** Without BIT_IPC: endpoints of the further lanes, if the sender offers stripes
         * (pml_umrddt_stripe.h). Unused entries are 0. The stripes use the sequence numbers that
         * follow seq. */
        mca_btl_umr_address_t lanes[MCA_PML_UMRDDT_LANES];
    };
} mca_pml_umrddt_rts_t;
_Static_assert(104 == sizeof(mca_pml_umrddt_rts_t), "the envelope has no padding");

/** Returns true if the bits of an envelope that are not schemes are set only together with schemes
 * that give them a meaning. */
static inline bool mca_pml_umrddt_rts_bits_valid(const mca_pml_umrddt_rts_t *rts)
{
    const unsigned of_pack = MCA_PML_UMRDDT_ON_GPU | MCA_PML_UMRDDT_IF_GPU;
    const unsigned schemes = MCA_PML_UMRDDT_BITS_ALL & rts->schemes;
    const unsigned others = rts->schemes & ~MCA_PML_UMRDDT_BITS_ALL;

    if (0 == others) {
        return 0 != schemes;
    }
    return 0 != schemes
           && 0 == (others & ~(MCA_PML_UMRDDT_DONE_FLAG | MCA_PML_UMRDDT_MAY_DECLINE | of_pack))
           && (0 == (MCA_PML_UMRDDT_DONE_FLAG & others) || 0 != (MCA_PML_UMRDDT_BIT_IPC & schemes))
           && (0 == (of_pack & others)
               || (0 != (MCA_PML_UMRDDT_BITS_PACK & schemes) && of_pack != (of_pack & others)));
}

/** The scheme whose fields an envelope has, unless mca_pml_umrddt_rts_is_plain: the address of the
 * buffer, or the endpoints of further lanes. */
static inline mca_pml_umrddt_scheme_id_t
mca_pml_umrddt_rts_fields_of(const mca_pml_umrddt_rts_t *rts)
{
    return 0 != (MCA_PML_UMRDDT_BIT_IPC & rts->schemes) ? MCA_PML_UMRDDT_SCHEME_IPC
                                                        : MCA_PML_UMRDDT_SCHEME_UMR;
}

/** Returns true if an envelope offers no scheme that needs fields of its own, and these are 0. */
static inline bool mca_pml_umrddt_rts_is_plain(const mca_pml_umrddt_rts_t *rts)
{
    return 0 == ((MCA_PML_UMRDDT_BIT_IPC | MCA_PML_UMRDDT_DONE_FLAG) & rts->schemes)
           && 0 == (rts->buffer_id | rts->buffer | rts->layout | (uint64_t) rts->lb);
}

/** Maximum of places and of flats in an envelope. */
#define MCA_PML_UMRDDT_MAX_SLOTS 4096

#define MCA_PML_UMRDDT_ENVELOPE sizeof(mca_pml_umrddt_rts_t)

/**
 * Internal tags on the user's communicator, below all tags of Open MPI. Bit 23 is set: pml/ucx
 * keeps 24 bits of a tag, and so a user's ANY_TAG never matches these.
 */
typedef enum mca_pml_umrddt_tag_t {
    MCA_PML_UMRDDT_TAG_REPLY = 0, /**< receiver to sender, with the sender's request id */
    MCA_PML_UMRDDT_TAG_DATA = 1,  /**< sender to receiver, with the sender's request id */
    MCA_PML_UMRDDT_TAG_NACK = 2,  /**< sender to receiver, request id 0; HINT: back */
    MCA_PML_UMRDDT_TAG_INFO = 3   /**< sender to receiver, with the sender's request id */
} mca_pml_umrddt_tag_t;

#define MCA_PML_UMRDDT_MAX_REQUEST_IDS (1u << 20)

static inline int mca_pml_umrddt_tag(mca_pml_umrddt_tag_t kind, uint32_t request_id)
{
    return INT32_MIN + 0x800000 + (int) (request_id << 2 | (uint32_t) kind);
}

/** Returns true if these bytes look like an envelope. The cookie is checked later. */
static inline bool mca_pml_umrddt_is_envelope(const mca_pml_umrddt_rts_t *rts)
{
    return MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_RTS) == rts->magic;
}

END_C_DECLS

#endif /* MCA_PML_UMRDDT_WIRE_H */
