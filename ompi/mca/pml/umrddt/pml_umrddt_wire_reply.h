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
 * Wire format of the control messages that follow an envelope: replies (CTS, FALLBACK, ACK,
 * INFO_REQ, CREDIT), parts of layouts, INFO, NACK. pml_umrddt_wire.h has the envelope; read it
 * first.
 */

#ifndef MCA_PML_UMRDDT_WIRE_REPLY_H
#define MCA_PML_UMRDDT_WIRE_REPLY_H

#include "ompi_config.h"

#include <stdint.h>

#include "opal/mca/btl/umr/btl_umr_hca.h"
#include "opal/mca/common/umrddt_gpu/ipc/umrddt_gpu_ipc.h"

#include "ompi/mca/pml/umrddt/pml_umrddt_wire.h"

BEGIN_C_DECLS

/** An rkey of the receiver and the memory that it covers. */
typedef struct mca_pml_umrddt_wire_key_t {
    uint64_t addr;
    uint32_t length;
    uint32_t rkey;
} mca_pml_umrddt_wire_key_t;
_Static_assert(16 == sizeof(mca_pml_umrddt_wire_key_t), "no padding");

/** Convert an rkey from the wire format to that of btl/umr. */
static inline mca_btl_umr_key_t mca_pml_umrddt_key_of(const mca_pml_umrddt_wire_key_t *wire)
{
    return (mca_btl_umr_key_t){.addr = wire->addr, .length = wire->length, .rkey = wire->rkey};
}

typedef struct mca_pml_umrddt_reply_t {
    uint64_t magic;
    uint64_t seq;        /**< sequence number of the message */
    uint32_t request_id; /**< request id of the send */
    uint32_t reply_kind; /**< mca_pml_umrddt_reply_kind_t */
    uint64_t total;      /**< bytes of the message that are received; ACK: that were read */
    uint64_t start;      /**< CTS: begin of the range of the stream that the rkeys cover. CTS_PACK
                              without rkeys: chunks for which receives are posted. CTS_PACK with rkeys,
                              CREDIT: chunks of the message that may be written so far. */
    uint64_t end;
    uint64_t chunk;     /**< CTS: agreed chunk size; CTS_PACK: size of each chunk; bytes */
    uint32_t fin;       /**< immediate data: CTS: of the last write; CTS_PACK: of each */
    uint32_t key_count; /**< CTS: rkeys that follow. CTS_PACK: 0, or the HCA writes the chunks into
                             so many buffers of one chunk each, whose rkeys follow */
    mca_btl_umr_address_t address; /**< CTS, CTS_PACK with rkeys: the receiver's endpoint for this
                                        sender. FALLBACK, ACK, CTS_PACK without rkeys: 0, or that
                                        endpoint if it refuses the sender's (endpoint_refuses) */
    uint64_t set;  /**< CTS: id of the rkey set if the sender is to cache it, else 0 */
    uint32_t slot; /**< CTS: cache slot of the set, if set is not 0 */
    uint32_t what; /**< INFO_REQ: MCA_PML_UMRDDT_INFO_*; ACK: MCA_PML_UMRDDT_CAN_SET_FLAG or 0;
                        CTS_PACK: one of MCA_PML_UMRDDT_BIT_PACK_*; CTS: MCA_PML_UMRDDT_IN_GPU or
                        0; FALLBACK: 0, or CHOSEN with or without DECLINED and IN_GPU */
    mca_pml_umrddt_wire_key_t keys[];
} mca_pml_umrddt_reply_t;
_Static_assert(88 == sizeof(mca_pml_umrddt_reply_t), "no padding before the keys");

/** CTS_CACHED: a CTS that names an rkey set in the sender's cache. It uses the tag of replies. */
typedef struct mca_pml_umrddt_cts_cached_t {
    uint64_t magic;
    uint64_t seq;        /**< sequence number of the message */
    uint32_t request_id; /**< request id of the send */
    uint32_t fin;        /**< immediate data of the last write */
    uint64_t set;        /**< id of the rkey set */
    uint64_t total;      /**< bytes of the message that are received */
    uint64_t chunk;      /**< agreed chunk size, bytes */
    uint32_t slot;       /**< cache slot of the rkey set */
    uint32_t what;       /**< MCA_PML_UMRDDT_IN_GPU or 0 */
} mca_pml_umrddt_cts_cached_t;
_Static_assert(56 == sizeof(mca_pml_umrddt_cts_cached_t), "no padding");

/** Registered memory of the receiver that a message may be written to. */
typedef struct mca_pml_umrddt_region_t {
    uint64_t addr;
    uint64_t length;
    uint32_t rkey;
    uint32_t reserved; /**< 0 */
} mca_pml_umrddt_region_t;
_Static_assert(24 == sizeof(mca_pml_umrddt_region_t), "no padding");

/**
 * A CTS without mkeys: write the first total bytes into this layout. It uses the tag of replies.
 * The flattened layout, or its last part, follows the regions unless the sender has it in its
 * cache.
 */
typedef struct mca_pml_umrddt_cts_sgl_t {
    uint64_t magic;
    uint64_t seq;                  /**< sequence number of the message */
    uint32_t request_id;           /**< request id of the send */
    uint32_t fin;                  /**< immediate data of the last write */
    uint64_t total;                /**< bytes of the message that are received */
    uint64_t buffer;               /**< address from which the offsets of the layout count */
    uint64_t layout;               /**< the receiver's id of its layout, not 0 */
    mca_btl_umr_address_t address; /**< the receiver's endpoint for this sender */
    uint32_t slot;                 /**< cache slot; MCA_PML_UMRDDT_NO_SLOT: do not cache */
    uint32_t flat_bytes;           /**< size of the flattened layout; 0: it is in the cache */
    uint32_t region_count;         /**< regions that follow, at least 1 */
    uint32_t what;                 /**< MCA_PML_UMRDDT_IN_GPU or 0 */
    mca_pml_umrddt_region_t regions[];
} mca_pml_umrddt_cts_sgl_t;
_Static_assert(72 == sizeof(mca_pml_umrddt_cts_sgl_t), "no padding before the regions");

/** LAYOUT_FRAG: one part of a flattened layout that is too long for its CTS or INFO message. All
 * parts precede that message. */
typedef struct mca_pml_umrddt_layout_frag_t {
    uint64_t magic;
    uint64_t seq; /**< this and the next three fields: as in the CTS or INFO message */
    uint32_t request_id;
    uint32_t flat_bytes;
    uint64_t layout;
    uint32_t offset; /**< offset of the first byte of this part; parts arrive in order */
    uint32_t reserved;
    unsigned char bytes[];
} mca_pml_umrddt_layout_frag_t;
_Static_assert(40 == sizeof(mca_pml_umrddt_layout_frag_t), "no padding before the bytes");

/* All replies begin alike. */
#define MCA_PML_UMRDDT_SAME(type)                                                             \
    _Static_assert(offsetof(mca_pml_umrddt_reply_t, request_id) == offsetof(type, request_id) \
                       && offsetof(mca_pml_umrddt_reply_t, seq) == offsetof(type, seq),       \
                   "all replies begin alike")
MCA_PML_UMRDDT_SAME(mca_pml_umrddt_cts_cached_t);
MCA_PML_UMRDDT_SAME(mca_pml_umrddt_cts_sgl_t);
MCA_PML_UMRDDT_SAME(mca_pml_umrddt_layout_frag_t);

/** Maximum size of an INFO message and of each part before it; maximum size of a flattened layout
 * that is sent in parts. Bytes. */
#define MCA_PML_UMRDDT_INFO_ROOM     65536u
#define MCA_PML_UMRDDT_MAX_INFO_FLAT (1u << 24)

/** Flags of FALLBACK. CHOSEN: the receiver declined the message, no scheme failed. DECLINED:
 * decline the following messages of this kind, too. */
#define MCA_PML_UMRDDT_CHOSEN   0x2
#define MCA_PML_UMRDDT_DECLINED 0x4

/** Flag of a CTS, or of a FALLBACK with CHOSEN: the receive buffer is GPU memory
 * (umrddt_select_offers.h). */
#define MCA_PML_UMRDDT_IN_GPU 0x1

/** Flag of an ACK: the receiver has mapped the sender's completion flags. */
#define MCA_PML_UMRDDT_CAN_SET_FLAG 0x1

/** Content of an INFO_REQ and of the INFO message that answers it: the export of the allocation,
 * the flattened layout. */
#define MCA_PML_UMRDDT_INFO_EXPORT 0x1
#define MCA_PML_UMRDDT_INFO_LAYOUT 0x2
#define MCA_PML_UMRDDT_INFO_ALL    0x3

/** INFO: answer to an INFO_REQ. If it has the layout, the end of the flattened layout follows. */
typedef struct mca_pml_umrddt_info_t {
    uint64_t magic;
    uint64_t seq;           /**< sequence number of the message */
    uint32_t request_id;    /**< request id of the send */
    uint32_t what;          /**< MCA_PML_UMRDDT_INFO_*; other items are not available */
    uint64_t layout;        /**< as in the envelope */
    uint32_t flat_bytes;    /**< size of the whole flattened layout, bytes; 0: no layout follows */
    uint32_t reserved;      /**< 0 */
    uint32_t done_flag_pid; /**< where the sender's completion flags are; 0: it has none */
    uint32_t done_flag_fd;
    opal_umrddt_gpu_export_t export; /**< all 0 if there is none */
    unsigned char bytes[];
} mca_pml_umrddt_info_t;
_Static_assert(160 == sizeof(mca_pml_umrddt_info_t), "no padding before the bytes");

#define MCA_PML_UMRDDT_NO_SLOT UINT32_MAX

/**
 * Maximum of regions in a CTS; of a flattened layout, bytes; of a flattened layout in the cache.
 */
#define MCA_PML_UMRDDT_MAX_REGIONS 128
#define MCA_PML_UMRDDT_MAX_FLAT    (1u << 20)
#define MCA_PML_UMRDDT_CACHED_FLAT (1u << 17)

/** Maximum size in bytes of a cached layout where only the first message of a buffer goes without
 * mkeys. Such a layout is rarely used again, and each peer would keep it. */
#define MCA_PML_UMRDDT_CACHED_ONCE 256u

/** Minimum (unless the message is shorter) and maximum size of a packed chunk, bytes. */
#define MCA_PML_UMRDDT_MIN_PACK_CHUNK 1024u
#define MCA_PML_UMRDDT_MAX_PACK_CHUNK (64u << 20)

/** Size of a reply that every sender can receive, whatever its pml_umrddt_max_keys. Bytes. */
#define MCA_PML_UMRDDT_REPLY_ROOM 4096

/** NACK: the sender could not perform the write of a CTS. */
typedef struct mca_pml_umrddt_nack_header_t {
    uint64_t magic;
    uint64_t seq;
    uint32_t request_id;
    uint32_t in_flight; /**< 1: some writes may still be in flight; 0: none is */
    uint32_t written;   /**< packed messages: chunks that were written; else 0 */
    uint32_t reserved;  /**< 0 */
} mca_pml_umrddt_nack_header_t;
_Static_assert(32 == sizeof(mca_pml_umrddt_nack_header_t), "no padding");

/** HINT about small messages, on MPI_COMM_WORLD: a receiver cannot know whether a hint arrives
 * before the sender frees the communicator. */
typedef struct mca_pml_umrddt_hint_header_t {
    uint64_t magic;
    uint64_t comm[2]; /**< UMRDDT_COMM_ID of the communicator of the messages */
    uint64_t time;    /**< mca_pml_umrddt_time: distinguishes it from a later one with this id */
    uint32_t rank;    /**< of the process that sends the hint, in the communicator */
    int32_t tag;
} mca_pml_umrddt_hint_header_t;
_Static_assert(40 == sizeof(mca_pml_umrddt_hint_header_t), "no padding");

END_C_DECLS

#endif /* MCA_PML_UMRDDT_WIRE_REPLY_H */
