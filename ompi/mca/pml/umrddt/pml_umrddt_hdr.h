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
 * What travels between two processes that run umrddt, apart from the data itself.
 *
 * The RTS is the envelope: it travels through the base PML on the user's communicator and tag, in
 * the place of the message, so that matching stays the host's. The others travel on internal tags
 * of the same communicator (MCA_PML_UMRDDT_TAG): the reply from the receiver to the sender, the
 * data from the sender where the base PML carries the message after all, and the failure notice
 * from the sender.
 *
 * All fields are in host byte order: the magic differs on a machine of the other order, and peers
 * of another architecture are never taken. Every field is checked on receipt.
 */

#ifndef MCA_PML_UMRDDT_HDR_H
#define MCA_PML_UMRDDT_HDR_H

#include "ompi_config.h"

#include <stdint.h>

#include "opal/mca/btl/umr/btl_umr_hca.h"
#include "opal/mca/common/umrddt_gpu/ipc/umrddt_gpu_ipc.h"

#include "opal/mca/common/umrddt_select/umrddt_select_scheme.h"

/** First word of every header: "umrddt", the wire version, the kind. */
#define MCA_PML_UMRDDT_WIRE_VERSION 13
#define MCA_PML_UMRDDT_MAGIC(kind) \
    (UINT64_C(0x756d726464740000) | ((uint64_t) MCA_PML_UMRDDT_WIRE_VERSION << 8) | (kind))

#define MCA_PML_UMRDDT_KIND_RTS    1
#define MCA_PML_UMRDDT_KIND_REPLY  2
#define MCA_PML_UMRDDT_KIND_FAIL   3
#define MCA_PML_UMRDDT_KIND_RECALL 4
#define MCA_PML_UMRDDT_KIND_DIRECT 5
#define MCA_PML_UMRDDT_KIND_FLAT   6
#define MCA_PML_UMRDDT_KIND_TELL   7

/** Beside BITS_PACK: the sender's buffer is a GPU's. */
#define MCA_PML_UMRDDT_ON_GPU 0x80

/** Beside BITS_PACK: those are for a receive in GPU memory, and for no other. */
#define MCA_PML_UMRDDT_IF_GPU 0x100

/** The receiver may leave the message to the base PML because that takes less, and say so. */
#define MCA_PML_UMRDDT_MAY_LEAVE 0x200

/** Beside BIT_IPC: the sender waits at its completion flag (pml_umrddt_done_flag.h), and for a
 * reply only when it is told there that one comes. */
#define MCA_PML_UMRDDT_DONE_FLAG 0x8

#define MCA_PML_UMRDDT_COOKIE_LEN 16

/** What a process has, in the flags of its identity. */
#define MCA_PML_UMRDDT_HAS_HCA 0x1 /**< an HCA that messages can go by */
#define MCA_PML_UMRDDT_HAS_GPU 0x2 /**< the CUDA driver: its buffers may be in GPU memory */

/** What a process tells the job of itself, through the modex. */
typedef struct mca_pml_umrddt_identity_t {
    uint32_t version; /**< MCA_PML_UMRDDT_WIRE_VERSION: who has another takes no message */
    uint32_t flags;   /**< MCA_PML_UMRDDT_HAS_* */
    uint64_t host;    /**< the same for processes that can share memory of devices; 0: not known */
    uint8_t cookie[MCA_PML_UMRDDT_COOKIE_LEN];
} mca_pml_umrddt_identity_t;
_Static_assert(32 == sizeof(mca_pml_umrddt_identity_t), "no padding");

/** Further pairs of HCAs that an envelope can name. */
#define MCA_PML_UMRDDT_LANES 4

/** The envelope. Its odd size makes it rare that a plain message must be looked into. */
typedef struct mca_pml_umrddt_rts_t {
    uint64_t magic;
    uint8_t cookie[MCA_PML_UMRDDT_COOKIE_LEN]; /**< of the sending process, known by the modex */
    uint64_t length;                           /**< bytes of the message */
    uint64_t chunk;                            /**< the sender's proposal, bytes */
    uint64_t seq;                              /**< of the message, unique in the sending process */
    uint32_t pieces;                           /**< of the sender's layout; UINT32_MAX: or more */
    uint16_t schemes;                          /**< MCA_PML_UMRDDT_BIT_*, one at least */
    uint16_t write_pieces;                     /**< that a write of it gathers; 1 at least */
    uint32_t slot;                             /**< where the sender waits for replies */
    uint16_t places;                           /**< sets of keys that the sender remembers */
    uint16_t flats;                            /**< layouts that the sender remembers */
    mca_btl_umr_address_t address;             /**< the sender's endpoint for this receiver */
    union {
        struct {                /* for BIT_IPC */
            uint64_t buffer_id; /**< of the sender's allocation; not 0 */
            uint64_t buffer;    /**< what MPI was given there, that offsets count from */
            uint64_t layout;    /**< the sender's id of its layout; not 0, never of another one */
            int64_t lb;         /**< its lowest offset: where it is, if it has one piece */
        };
        /** Else: its other endpoints, if it offers to send in stripes (pml_umrddt_stripe.h); all 0
         * behind the last one. The numbers behind seq are the stripes' then. */
        mca_btl_umr_address_t lanes[MCA_PML_UMRDDT_LANES];
    };
} mca_pml_umrddt_rts_t;
_Static_assert(104 == sizeof(mca_pml_umrddt_rts_t), "the envelope has no padding");

/** Sets of keys, and layouts, that a sender may remember for one receiver. */
#define MCA_PML_UMRDDT_MAX_PLACES 4096

#define MCA_PML_UMRDDT_ENVELOPE sizeof(mca_pml_umrddt_rts_t)

/** A key of the receiver. */
typedef struct mca_pml_umrddt_wire_key_t {
    uint64_t addr;
    uint32_t length;
    uint32_t rkey;
} mca_pml_umrddt_wire_key_t;
_Static_assert(16 == sizeof(mca_pml_umrddt_wire_key_t), "no padding");

/** That key, as the HCA takes it. */
static inline mca_btl_umr_key_t mca_pml_umrddt_key_of(const mca_pml_umrddt_wire_key_t *wire)
{
    return (mca_btl_umr_key_t){.addr = wire->addr, .length = wire->length, .rkey = wire->rkey};
}

/** What the receiver tells the sender. */
typedef enum mca_pml_umrddt_verdict_t {
    MCA_PML_UMRDDT_KEYS = 1, /**< CTS: write [start, end) into these keys */
    MCA_PML_UMRDDT_HOST = 2, /**< send the whole message by the base PML */
    MCA_PML_UMRDDT_DONE = 3, /**< nothing more to send */
    MCA_PML_UMRDDT_ASK = 4,  /**< tell what the message's memory is, or its layout */
    MCA_PML_UMRDDT_PACK = 5, /**< send the first total bytes packed, in chunks */
    MCA_PML_UMRDDT_GRANT = 6 /**< behind a PACK with keys: more of the chunks may be written */
} mca_pml_umrddt_verdict_t;

typedef struct mca_pml_umrddt_reply_t {
    uint64_t magic;
    uint64_t seq;     /**< the message it answers */
    uint32_t slot;    /**< the same, as the sender finds it */
    uint32_t verdict; /**< mca_pml_umrddt_verdict_t */
    uint64_t total;   /**< bytes the receiver takes of the message; DONE: has taken by itself */
    uint64_t start;   /**< KEYS: the range of the stream that the keys cover; PACK: for how many
                           chunks there are receives; with keys, and GRANT: how many of the
                           message's chunks may be written by now */
    uint64_t end;
    uint64_t chunk;     /**< KEYS: agreed chunk, bytes; PACK: of each message */
    uint32_t fin;       /**< KEYS: immediate data of the last write; PACK with keys: of each */
    uint32_t key_count; /**< KEYS: how many follow; PACK: 0, or the HCA is the wire and so many
                             places follow, each of a chunk's length */
    mca_btl_umr_address_t address; /**< KEYS, PACK with keys: the receiver's endpoint for this
                                      sender; HOST, DONE, PACK without: 0, or that one if it
                                      refuses the sender's (endpoint_refuses) */
    uint64_t set;   /**< KEYS: the id of these keys if they are to be remembered, else 0 */
    uint32_t place; /**< KEYS: where, if set is not 0 */
    uint32_t what;  /**< ASK: MCA_PML_UMRDDT_TELL_*; DONE: MCA_PML_UMRDDT_CAN_SET_FLAG or 0;
                         PACK: one of MCA_PML_UMRDDT_BIT_PACK_*; KEYS: MCA_PML_UMRDDT_IN_GPU or 0;
                         HOST: 0, or CHOSEN with or without LEFT and IN_GPU */
    mca_pml_umrddt_wire_key_t keys[];
} mca_pml_umrddt_reply_t;
_Static_assert(88 == sizeof(mca_pml_umrddt_reply_t), "no padding before the keys");

/** A CTS that names keys which the sender remembers. It arrives where a reply does. */
typedef struct mca_pml_umrddt_recall_t {
    uint64_t magic;
    uint64_t seq;   /**< the message it answers */
    uint32_t slot;  /**< the same, as the sender finds it */
    uint32_t fin;   /**< immediate data of the last write */
    uint64_t set;   /**< the id of the keys */
    uint64_t total; /**< bytes the receiver takes of the message */
    uint64_t chunk; /**< agreed chunk, bytes */
    uint32_t place; /**< where the keys are */
    uint32_t what;  /**< MCA_PML_UMRDDT_IN_GPU or 0 */
} mca_pml_umrddt_recall_t;
_Static_assert(56 == sizeof(mca_pml_umrddt_recall_t), "no padding");

/** Memory of the receiver that a message may be written to. */
typedef struct mca_pml_umrddt_region_t {
    uint64_t addr;
    uint64_t length;
    uint32_t rkey;
    uint32_t reserved; /**< 0 */
} mca_pml_umrddt_region_t;
_Static_assert(24 == sizeof(mca_pml_umrddt_region_t), "no padding");

/**
 * A CTS without mkeys: write the first total bytes into this layout. It arrives where a reply does.
 * Behind the regions: the flattened layout, or the end of it, if it is not in the place.
 */
typedef struct mca_pml_umrddt_direct_t {
    uint64_t magic;
    uint64_t seq;                  /**< the message it answers */
    uint32_t slot;                 /**< the same, as the sender finds it */
    uint32_t fin;                  /**< immediate data of the last write */
    uint64_t total;                /**< bytes the receiver takes of the message */
    uint64_t buffer;               /**< the address that offsets of the layout count from */
    uint64_t layout;               /**< the receiver's id of its layout; not 0 */
    mca_btl_umr_address_t address; /**< the receiver's endpoint for this sender */
    uint32_t place;                /**< of the layout; MCA_PML_UMRDDT_NO_PLACE: do not keep it */
    uint32_t flat_bytes;           /**< of the flattened layout in all; 0: it is in the place */
    uint32_t region_count;         /**< how many follow, 1 at least */
    uint32_t what;                 /**< MCA_PML_UMRDDT_IN_GPU or 0 */
    mca_pml_umrddt_region_t regions[];
} mca_pml_umrddt_direct_t;
_Static_assert(72 == sizeof(mca_pml_umrddt_direct_t), "no padding before the regions");

/** A part of a flattened layout that is too long for its CTS (or TELL), which comes behind all of
 * them. */
typedef struct mca_pml_umrddt_flat_t {
    uint64_t magic;
    uint64_t seq; /**< as in the CTS, and so on */
    uint32_t slot;
    uint32_t flat_bytes;
    uint64_t layout;
    uint32_t offset; /**< of the first byte here; parts come in their order */
    uint32_t reserved;
    unsigned char bytes[];
} mca_pml_umrddt_flat_t;
_Static_assert(40 == sizeof(mca_pml_umrddt_flat_t), "no padding before the bytes");

/** Bytes of a TELL, and of the parts before it; and of a layout that comes in them, flattened. */
#define MCA_PML_UMRDDT_TELL_ROOM     65536u
#define MCA_PML_UMRDDT_MAX_TELL_FLAT (1u << 24)

/** In a HOST: no failure but the receiver's choice; and so it will be for the next ones. */
#define MCA_PML_UMRDDT_CHOSEN 0x2
#define MCA_PML_UMRDDT_LEFT   0x4

/** In a CTS, or a HOST that was chosen: it is received in memory of a GPU
 * (pml_umrddt_offer_cache.h). */
#define MCA_PML_UMRDDT_IN_GPU 0x1

/** In a DONE: the receiver has mapped the sender's completion flags. */
#define MCA_PML_UMRDDT_CAN_SET_FLAG 0x1

/** What a receiver may ask for: what it takes to map the allocation, and the flattened layout. */
#define MCA_PML_UMRDDT_TELL_EXPORT 0x1
#define MCA_PML_UMRDDT_TELL_LAYOUT 0x2
#define MCA_PML_UMRDDT_TELL_ALL    0x3

/** What a sender tells when it was asked: the end of the flattened layout follows, if it is told.
 */
typedef struct mca_pml_umrddt_tell_t {
    uint64_t magic;
    uint64_t seq;        /**< the message it is about */
    uint32_t slot;       /**< the same */
    uint32_t what;       /**< MCA_PML_UMRDDT_TELL_*; what was asked for and is not here cannot be */
    uint64_t layout;     /**< as in the envelope */
    uint32_t flat_bytes; /**< of the flattened layout in all; 0: it is not told */
    uint32_t reserved;   /**< 0 */
    uint32_t done_flag_pid; /**< the sender's completion flags; 0: it has none */
    uint32_t done_flag_fd;
    opal_umrddt_gpu_export_t export; /**< all 0 if it is not told */
    unsigned char bytes[];
} mca_pml_umrddt_tell_t;
_Static_assert(160 == sizeof(mca_pml_umrddt_tell_t), "no padding before the bytes");

#define MCA_PML_UMRDDT_NO_PLACE UINT32_MAX

/** Regions that a CTS may name; a flattened layout, in bytes; and one that is kept in a place. */
#define MCA_PML_UMRDDT_MAX_REGIONS 128
#define MCA_PML_UMRDDT_MAX_FLAT    (1u << 20)
#define MCA_PML_UMRDDT_KEPT_FLAT   (1u << 17)

/** Where only the first message of a kind goes without keys, no more than that is kept: memory of
 * each peer for a layout that hardly comes again. */
#define MCA_PML_UMRDDT_KEPT_ONCE 256u

/** Bytes of a chunk that travels packed, unless it is the whole message: and at most. */
#define MCA_PML_UMRDDT_MIN_PACK_CHUNK 1024u
#define MCA_PML_UMRDDT_MAX_PACK_CHUNK (64u << 20)

/** What every sender has room for in a reply, whatever its pml_umrddt_max_keys. */
#define MCA_PML_UMRDDT_REPLY_ROOM 4096

/** What the sender tells the receiver when it could not write what a CTS asked for. */
typedef struct mca_pml_umrddt_fail_t {
    uint64_t magic;
    uint64_t seq;
    uint32_t slot;
    uint32_t in_flight; /**< 1: some of the writes may still be under way; 0: none was posted, or
                             they have arrived */
    uint32_t written;   /**< chunks that have, of a message that travels packed; else 0 */
    uint32_t reserved;  /**< 0 */
} mca_pml_umrddt_fail_t;
_Static_assert(32 == sizeof(mca_pml_umrddt_fail_t), "no padding");

/**
 * Internal tags on the user's communicator. Below every tag of Open MPI's own; bit 23 is set, so
 * that pml/ucx, which keeps 24 bits of a tag, never lets a user's ANY_TAG match them.
 */
typedef enum mca_pml_umrddt_tag_t {
    MCA_PML_UMRDDT_TAG_REPLY = 0, /**< receiver to sender, slot: the sender's */
    MCA_PML_UMRDDT_TAG_DATA = 1,  /**< sender to receiver, slot: the sender's */
    MCA_PML_UMRDDT_TAG_FAIL = 2,  /**< sender to receiver, slot 0 always */
    MCA_PML_UMRDDT_TAG_TELL = 3   /**< sender to receiver, slot: the sender's */
} mca_pml_umrddt_tag_t;

#define MCA_PML_UMRDDT_MAX_SLOTS (1u << 20)

static inline int mca_pml_umrddt_tag(mca_pml_umrddt_tag_t kind, uint32_t slot)
{
    return INT32_MIN + 0x800000 + (int) (slot << 2 | (uint32_t) kind);
}

#endif /* MCA_PML_UMRDDT_HDR_H */
