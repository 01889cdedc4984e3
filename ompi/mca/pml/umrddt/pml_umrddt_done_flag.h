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
 * Completion flags: words of a sender's memory that receivers of the same host write, so that the
 * end of a message costs neither side a message of the base PML.
 *
 * A process has a completion flag for each of its first slots of sends. A TELL says where they are;
 * a receiver that could map them says so with its next DONE, and from then on the sender's
 * envelopes may ask to be answered by the completion flag. Then the sender posts no receive for a
 * reply: the receiver rings either that the message is done, or that a reply comes: it goes another
 * way, or something is asked. What is written is the message's number, which is never used again,
 * so what was rung for an older message of the slot is not heard.
 */

#ifndef MCA_PML_UMRDDT_DONE_FLAG_H
#define MCA_PML_UMRDDT_DONE_FLAG_H

#include "ompi_config.h"

#include <stdbool.h>
#include <stdint.h>

#include "pml_umrddt_hdr.h"

BEGIN_C_DECLS

/** Slots that have a completion flag, each in a cache line of its own. */
#define MCA_PML_UMRDDT_DONE_FLAGS 1024

typedef struct mca_pml_umrddt_done_flag_t {
    uint64_t word; /**< of the last message that was rung for: number * 4 + what */
    uint64_t unused[7];
} mca_pml_umrddt_done_flag_t;

/** The memory, as it is shared. */
typedef struct mca_pml_umrddt_done_flags_t {
    uint8_t cookie[MCA_PML_UMRDDT_COOKIE_LEN]; /**< of the process whose it is */
    uint8_t unused[48];
    mca_pml_umrddt_done_flag_t done_flags[MCA_PML_UMRDDT_DONE_FLAGS];
} mca_pml_umrddt_done_flags_t;

typedef enum mca_pml_umrddt_done_flag_state_t {
    MCA_PML_UMRDDT_DONE_FLAG_CLEAR = 0,
    MCA_PML_UMRDDT_DONE_FLAG_DONE = 1, /**< the receiver has the message */
    MCA_PML_UMRDDT_DONE_FLAG_REPLY = 2 /**< a reply comes by the base PML */
} mca_pml_umrddt_done_flag_state_t;

/**
 * Where this process's completion flags are, which are made at the first call.
 *
 * @param[in]  cookie  of this process
 * @param[out] pid,fd  for mca_pml_umrddt_done_flags_map; 0, 0 if there are none
 */
void mca_pml_umrddt_done_flags_tell(const uint8_t *cookie, uint32_t *pid, uint32_t *fd);

/**
 * Map another process's.
 *
 * @param[in] cookie  that the memory must have, and so be that process's
 *
 * @return NULL if that is not possible; to be given to mca_pml_umrddt_done_flags_unmap
 */
mca_pml_umrddt_done_flags_t *mca_pml_umrddt_done_flags_map(uint32_t pid, uint32_t fd,
                                                           const uint8_t *cookie);
void mca_pml_umrddt_done_flags_unmap(mca_pml_umrddt_done_flags_t *done_flags);

/** Free this process's. */
void mca_pml_umrddt_done_flags_close(void);

/** The receiver: everything that it has done before is seen by who hears it. */
static inline void mca_pml_umrddt_done_flag_set(mca_pml_umrddt_done_flags_t *done_flags,
                                                uint32_t slot, uint64_t seq,
                                                mca_pml_umrddt_done_flag_state_t what)
{
    __atomic_store_n(&done_flags->done_flags[slot].word, seq << 2 | (uint64_t) what,
                     __ATOMIC_RELEASE);
}

/** This process's; NULL: none. */
extern mca_pml_umrddt_done_flags_t *mca_pml_umrddt_own_done_flags;

/** The sender: what was rung for a message. What makes no sense was not. */
static inline mca_pml_umrddt_done_flag_state_t mca_pml_umrddt_done_flag_test(uint32_t slot,
                                                                             uint64_t seq)
{
    uint64_t word =
        __atomic_load_n(&mca_pml_umrddt_own_done_flags->done_flags[slot].word, __ATOMIC_ACQUIRE);

    return (seq << 2 | MCA_PML_UMRDDT_DONE_FLAG_DONE) == word    ? MCA_PML_UMRDDT_DONE_FLAG_DONE
           : (seq << 2 | MCA_PML_UMRDDT_DONE_FLAG_REPLY) == word ? MCA_PML_UMRDDT_DONE_FLAG_REPLY
                                                                 : MCA_PML_UMRDDT_DONE_FLAG_CLEAR;
}

END_C_DECLS

#endif /* MCA_PML_UMRDDT_DONE_FLAG_H */
