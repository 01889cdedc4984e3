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
 * Shared by coll/umrddt and pml/umrddt: the tag of messages between GPU buffers that a collective
 * sends, and the processes that can take part in such collectives.
 */

#ifndef UMRDDT_COLLECTIVES_H
#define UMRDDT_COLLECTIVES_H

#include "opal_config.h"

#include <stdint.h>

BEGIN_C_DECLS

/**
 * The first of UMRDDT_COLLECTIVES_TAGS tags of the messages of coll/umrddt, which pml/umrddt
 * handles like those of the application. A receive with MPI_ANY_TAG matches no negative tag. The
 * tags are below the tags of Open MPI's collectives and above those of pml/umrddt
 * (mca_pml_umrddt_tag). In the 24 bits that pml/ucx keeps, they are above those of pml/umrddt, too,
 * but coll/libnbc counts its tags down and reaches them after 4 million nonblocking collectives of
 * one communicator. Persistent collectives use those behind the first.
 */
#define UMRDDT_COLLECTIVES_TAG  (INT32_MIN + 0xC00000)
#define UMRDDT_COLLECTIVES_TAGS 0x1000

/** Returns true for these tags, also as pml/ucx reports one for a message: 24 bits as a number. */
#define UMRDDT_IS_COLLECTIVES_TAG(tag) \
    (0 == ((UMRDDT_COLLECTIVES_TAG ^ (tag)) & (0x1000000 - UMRDDT_COLLECTIVES_TAGS)) && 0 > (tag))

struct opal_proc_t;

/** Set before the modex by coll/umrddt (mode) and pml/umrddt (mode_of, or mode to 0). All 0: not
 * used. */
typedef struct opal_umrddt_collectives_t {
    uint16_t mode; /**< equal in processes that decide alike; 0: this process takes no part */
    /** The mode that a process of this job has published; 0: it takes no part, or is this one. */
    uint16_t (*mode_of)(struct opal_proc_t *proc);
} opal_umrddt_collectives_t;

extern opal_umrddt_collectives_t opal_umrddt_collectives;

END_C_DECLS

#endif /* UMRDDT_COLLECTIVES_H */
