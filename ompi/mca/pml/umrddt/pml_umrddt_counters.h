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
#define MCA_PML_UMRDDT_COUNTERS(X)                                                                      \
    X(handled_sends, "Sends that umrddt handles: an envelope is sent in place of the "                  \
                     "message")                                                                         \
    X(handled_recvs, "Receives that got an envelope")                                                   \
    X(handled_bytes, "Bytes of the handled sends")                                                      \
    X(passed_contiguous, "Sends passed through to the base PML: contiguous")                            \
    X(passed_small, "Sends passed through to the base PML: below pml_umrddt_min_size")                  \
    X(passed_memory,                                                                                    \
      "Sends passed through to the base PML: memory not in pml_umrddt_memory, or no GPU receives them") \
    X(passed_peer,                                                                                      \
      "Sends passed through to the base PML: to itself, or no scheme reaches the peer")                 \
    X(sends_umr, "Sends by mkeys (umr)")                                                                \
    X(sends_striped, "Of these, sends over several pairs of HCAs at once")                              \
    X(sends_direct, "Sends without mkeys (direct)")                                                     \
    X(sends_ipc, "Sends from GPU memory that receivers of the same node read "                          \
                 "themselves (ipc)")                                                                    \
    X(recvs_ipc, "Receives that read the sender's GPU memory")                                          \
    X(ipc_bytes, "Bytes of those")                                                                      \
    X(ipc_done_flags, "Messages whose end a completion flag in shared memory reported")                 \
    X(ipc_info_reqs, "INFO_REQ: receivers' requests for a sender's allocation or layout")               \
    X(sends_pack_gdr, "Sends packed in chunks, from a GPU's memory to the wire")                        \
    X(sends_pack_staged, "Sends packed in chunks, in GPU memory")                                       \
    X(sends_pack_host, "Sends packed in chunks, in system memory")                                      \
    X(recvs_pack, "Receives of all these messages")                                                     \
    X(pack_bytes, "Bytes of all these messages")                                                        \
    X(pack_chunks, "Chunks of all these messages")                                                      \
    X(pack_by_hca, "Chunks that the HCA wrote")                                                         \
    X(pack_registered, "Buffers of chunks that were registered with the HCA")                           \
    X(pack_device, "Chunks that the base PML sent from, or received into, GPU memory")                  \
    X(pack_no_gdr, "Buffers of chunks in system memory, because the HCA or the base PML "               \
                   "could not use GPU memory")                                                          \
    X(pack_refused, "Times that the base PML refused a chunk, which was sent again")                    \
    X(pack_most, "Largest number of chunks of one message in flight at once")                           \
    X(pack_overlaps, "Times that the wire transferred a chunk while a GPU copied another "              \
                     "one of the message")                                                              \
    X(pack_no_scratch, "Buffers of chunks for which there was no GPU memory")                           \
    X(probe_sends, "Sends from system memory that test whether they are received in "                   \
                   "GPU memory")                                                                        \
    X(passed_other, "Sends passed through to the base PML: mode, scheme, or no resources")              \
    X(passed_model, "Sends passed through to the base PML: predicted to be faster there")               \
    X(fallback_sends, "Handled sends that the base PML had to carry")                                   \
    X(declined_sends, "Handled sends that the receiver declined, as the base PML is "                   \
                      "predicted to be faster")                                                         \
    X(declined_recvs, "Envelopes received and declined, as the base PML is predicted to "               \
                      "be faster")                                                                      \
    X(fallback_recvs, "Envelopes received whose data the base PML carried")                             \
    X(fallback_small, "Of these: the receive was smaller than an envelope")                             \
    X(fallback_endpoint, "Of these: no queue pair to the sender, or it broke")                          \
    X(fallback_registration, "Of these: the memory of the buffer could not be registered")              \
    X(fallback_keys, "Of these: no keys could be mapped")                                               \
    X(fallback_sender, "Of these: the sender could not write as the CTS requested")                     \
    X(fallback_ipc, "Of these: the sender's GPU memory could not be mapped or copied")                  \
    X(fallback_scheme, "Of these: no protocol that both sides support and allow")                       \
    X(fallback_other, "Of these: no memory, or the base PML refused a control message")                 \
    X(failures, "Messages that failed after the receiver had sent its keys")                            \
    X(control_messages, "RTS, replies and notices sent")                                                \
    X(control_refused, "Times that the base PML refused a message for which a peer waits, "             \
                       "and which was sent again")                                                      \
    X(control_bytes, "Bytes of the control messages")                                                   \
    X(rounds, "CTS sent, one for each round of a message")                                              \
    X(rkey_sets_cached, "Of these, CTS with the number of an rkey set in the sender's "                 \
                        "remote key cache")                                                             \
    X(layouts_sent, "Of these, CTS without mkeys that carried the receiver's layout")                   \
    X(layouts_cached, "Of these, CTS without mkeys with the number of a layout that the "               \
                      "sender had cached")                                                              \
    X(protocol_errors, "Headers refused because a field was wrong")                                     \
    X(stale_replies, "Replies that were dropped because their message was over: after an "              \
                     "error")                                                                           \
    X(probe_claims, "Messages received early from the base PML so that a probe reports "                \
                    "their real length")                                                                \
    X(memory_queries, "Buffers looked up to determine their kind of memory")                            \
    X(staged_sends, "Messages in GPU memory that the base PML sent from a staging "                     \
                    "buffer")                                                                           \
    X(staged_recvs, "Messages for GPU memory that the base PML received into a staging "                \
                    "buffer")                                                                           \
    X(staged_bytes, "Bytes of both")                                                                    \
    X(library_calls, "Calls on GPU memory that libumrddt_mpi gave to umrddt")

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
