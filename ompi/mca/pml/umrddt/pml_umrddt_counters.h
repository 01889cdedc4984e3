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
 * The counters. bringup/pml_umrddt_pvars.c registers them as performance variables.
 */

#ifndef MCA_PML_UMRDDT_COUNTERS_H
#define MCA_PML_UMRDDT_COUNTERS_H

#include "ompi_config.h"

#include <stdint.h>

BEGIN_C_DECLS

/** Counters: name, help. All are monotonic and registered as performance variables. */
#define MCA_PML_UMRDDT_COUNTERS(X)                                                                \
    X(handled_sends, "Sends taken: an envelope went out in place of the message")                 \
    X(handled_recvs, "Receives that got an envelope")                                             \
    X(handled_bytes, "Bytes of the sends taken")                                                  \
    X(passed_contiguous, "Sends passed to the base PML: contiguous")                              \
    X(passed_small, "Sends passed to the base PML: below pml_umrddt_min_size")                    \
    X(passed_memory, "Sends passed to the base PML: memory not in pml_umrddt_memory")             \
    X(passed_peer,                                                                                \
      "Sends passed to the base PML: self, or there is no way to the peer but the host")          \
    X(sends_umr, "Sends that receivers took by mkeys")                                            \
    X(sends_striped, "  of these, sends over several pairs of HCAs at once")                      \
    X(sends_direct, "Sends that receivers took by writes into their layout, without mkeys")       \
    X(sends_ipc, "Sends from GPU memory that receivers of the same host read")                    \
    X(recvs_ipc, "Receives that read the sender's GPU memory, in one copy")                       \
    X(ipc_bytes, "Bytes of those")                                                                \
    X(ipc_done_flags, "Of these, ends signalled by a completion flag")                            \
    X(ipc_info_reqs, "Questions to senders about their GPU memory or layout")                     \
    X(sends_pack_gdr, "Sends that travelled packed, in chunks, from a GPU's memory to the HCAs")  \
    X(sends_pack_staged, "Sends that travelled packed, in chunks, packed in memory of a GPU")     \
    X(sends_pack_host, "Sends that travelled packed, in chunks, packed in system memory")         \
    X(recvs_pack, "Receives of all of these")                                                     \
    X(pack_bytes, "Bytes of all of these")                                                        \
    X(pack_chunks, "Chunks of them")                                                              \
    X(pack_by_hca, "Chunks that the HCA wrote")                                                   \
    X(pack_registered, "Buffers of chunks that were registered with the HCA")                     \
    X(pack_no_gdr, "Buffers of chunks that the HCA cannot have in memory of the GPU")             \
    X(pack_refused, "Times that the base PML refused a chunk, and was asked again")               \
    X(pack_most, "Chunks of one message that were under way at once, at most")                    \
    X(pack_overlaps, "Times that the wire took or brought one while a GPU copied another")        \
    X(pack_no_scratch, "Buffers of chunks for which there was no memory of the GPU")              \
    X(probe_sends, "Sends from system memory taken in case that they are received in GPU memory") \
    X(passed_other, "Sends passed to the base PML: mode, scheme, or no resources")                \
    X(passed_model, "Sends passed to the base PML: predicted to be quicker there")                \
    X(fallback_sends, "Sends taken, then sent by the base PML")                                   \
    X(declined_sends, "Sends taken that the receiver left to the base PML, as that takes less")   \
    X(declined_recvs,                                                                             \
      "Envelopes received whose data were left to the base PML, as that takes less")              \
    X(fallback_recvs, "Envelopes received whose data came by the base PML; by reason:")           \
    X(fallback_small, "  the receive was smaller than an envelope")                               \
    X(fallback_endpoint, "  no queue pair to the sender, or it broke")                            \
    X(fallback_registration, "  the buffer's memory could not be registered")                     \
    X(fallback_keys, "  no keys could be mapped")                                                 \
    X(fallback_sender, "  the sender could not write what the CTS asked for")                     \
    X(fallback_ipc, "  the sender's GPU memory could not be mapped, or not be copied")            \
    X(fallback_scheme, "  nothing that both sides can do, or may")                                \
    X(fallback_other, "  no memory, or the base PML refused a control message")                   \
    X(failures, "Puts that failed after the receiver had named its keys")                         \
    X(control_messages, "RTS, replies and failure notices sent")                                  \
    X(control_refused, "Times that the base PML refused to carry what a peer waits for, and was " \
                       "asked again")                                                             \
    X(control_bytes, "Bytes in those")                                                            \
    X(rounds, "CTS sent: rounds of keys named to senders")                                        \
    X(rkey_sets_cached, "  of these, CTS that named a set of keys which the sender had")          \
    X(layouts_sent, "  of these, CTS that brought the receiver's layout along")                   \
    X(layouts_cached, "  of these, CTS that named a layout which the sender had")                 \
    X(protocol_errors, "Headers refused because a field was wrong")                               \
    X(stale_replies, "Replies to messages that were over, passed over")                           \
    X(probe_claims, "Messages taken from the base PML early so that a probe tells the truth")     \
    X(memory_queries, "Buffers looked up to tell whose memory they are")                          \
    X(staged_sends, "Messages in GPU memory that the base PML sent from memory of ours")          \
    X(staged_recvs, "Messages that it received into memory of ours for GPU memory")               \
    X(staged_bytes, "Bytes of both")

#define MCA_PML_UMRDDT_COUNTER_FIELD(name, help) uint64_t name;
typedef struct mca_pml_umrddt_counters_t {
    MCA_PML_UMRDDT_COUNTERS(MCA_PML_UMRDDT_COUNTER_FIELD)
    uint64_t direct_bytes_now;     /**< receivers' layouts in the cache; grows and shrinks */
    uint64_t ipc_layout_bytes_now; /**< senders' layouts in the cache; grows and shrinks */
    uint64_t peers_now;            /**< known peers */
    uint64_t peer_bytes_now;       /**< memory for peers, without layouts */
    uint64_t peer_table_bytes_now; /**< tables of communicators that map ranks to peers */
} mca_pml_umrddt_counters_t;

END_C_DECLS

#endif /* MCA_PML_UMRDDT_COUNTERS_H */
