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
 * Completion flags: words in shared memory of the sender that receivers on the same node write.
 * They end a message without a control message.
 * - A process has one completion flag for each of its first request ids.
 * - An INFO message says where the flags are. A receiver that has mapped them sets CAN_SET_FLAG in
 *   its next ACK. From then on the sender's envelopes may request completion by flag.
 * - Such a sender posts no receive for a reply. The receiver sets the flag to DONE, or to REPLY if
 *   a control message follows: another scheme carries the message, or information is missing.
 * - A flag holds the sequence number of the message. Sequence numbers are never reused, so an old
 *   value of the flag is never taken for the current message.
 */

#ifndef OPAL_UMRDDT_DONE_FLAG_H
#define OPAL_UMRDDT_DONE_FLAG_H

#include "opal_config.h"

#include <stdbool.h>
#include <stdint.h>

BEGIN_C_DECLS

/** Bytes of the random number that identifies a process. */
#define OPAL_UMRDDT_DONE_FLAG_COOKIE 16

/** Request ids with a completion flag. Messages that are in progress together share cache lines. */
#define OPAL_UMRDDT_DONE_FLAGS 1024

typedef union opal_umrddt_done_flag_t {
    uint64_t word; /**< sequence number * 4 + state, of the last message that was flagged */
    uint32_t half[2];
} opal_umrddt_done_flag_t;

/** Layout of the shared memory. */
typedef struct opal_umrddt_done_flags_t {
    uint8_t cookie[OPAL_UMRDDT_DONE_FLAG_COOKIE]; /**< of the owning process */
    uint8_t unused[48];
    opal_umrddt_done_flag_t done_flags[OPAL_UMRDDT_DONE_FLAGS];
} opal_umrddt_done_flags_t;

typedef enum opal_umrddt_done_flag_state_t {
    OPAL_UMRDDT_DONE_FLAG_CLEAR = 0,
    OPAL_UMRDDT_DONE_FLAG_DONE = 1,  /**< the receiver has the data */
    OPAL_UMRDDT_DONE_FLAG_REPLY = 2, /**< a reply follows by the base PML */
    OPAL_UMRDDT_DONE_FLAG_STATES = 4
} opal_umrddt_done_flag_state_t;

/**
 * Get the location of this process's completion flags. The first call creates them.
 *
 * @param[in]  cookie  of this process
 * @param[out] pid,fd  for opal_umrddt_done_flags_map; both 0 if there are none
 */
void opal_umrddt_done_flags_report(const uint8_t *cookie, uint32_t *pid, uint32_t *fd);

/**
 * Map the completion flags of another process.
 *
 * @param[in] cookie  of that process; the memory must hold the same one
 *
 * @return NULL on failure; the caller passes the result to opal_umrddt_done_flags_unmap
 */
opal_umrddt_done_flags_t *opal_umrddt_done_flags_map(uint32_t pid, uint32_t fd,
                                                     const uint8_t *cookie);
void opal_umrddt_done_flags_unmap(opal_umrddt_done_flags_t *done_flags);

/** Free this process's completion flags. */
void opal_umrddt_done_flags_close(void);

/** Receiver: set the completion flag. The store releases all earlier writes to the sender. */
static inline void opal_umrddt_done_flag_set(opal_umrddt_done_flags_t *done_flags, uint32_t slot,
                                             uint64_t seq, opal_umrddt_done_flag_state_t what)
{
    __atomic_store_n(&done_flags->done_flags[slot].word, seq << 2 | (uint64_t) what,
                     __ATOMIC_RELEASE);
}

/** Completion flags of this process; NULL: none. */
extern opal_umrddt_done_flags_t *opal_umrddt_own_done_flags;

/** Sender: read the completion flag of a message. An unknown value counts as "not set". */
static inline opal_umrddt_done_flag_state_t opal_umrddt_done_flag_test(uint32_t slot, uint64_t seq)
{
    uint64_t word =
        __atomic_load_n(&opal_umrddt_own_done_flags->done_flags[slot].word, __ATOMIC_ACQUIRE);

    return (seq << 2 | OPAL_UMRDDT_DONE_FLAG_DONE) == word    ? OPAL_UMRDDT_DONE_FLAG_DONE
           : (seq << 2 | OPAL_UMRDDT_DONE_FLAG_REPLY) == word ? OPAL_UMRDDT_DONE_FLAG_REPLY
                                                              : OPAL_UMRDDT_DONE_FLAG_CLEAR;
}

/** Sender: the lower half of a completion flag, for a quick look. It differs from that of (sequence
 * number * 4) by less than OPAL_UMRDDT_DONE_FLAG_STATES if the flag is set; then call the test. */
static inline const volatile uint32_t *opal_umrddt_done_flag_half(uint32_t slot)
{
    return &opal_umrddt_own_done_flags->done_flags[slot]
                .half[__ORDER_LITTLE_ENDIAN__ == __BYTE_ORDER__ ? 0 : 1];
}

END_C_DECLS

#endif /* OPAL_UMRDDT_DONE_FLAG_H */
