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
 * Memory keys: registrations (MRs) and mkeys, and the way from (key, address, length) to pieces of
 * the process's memory.
 *
 * An mkey has a layout, which UMR work requests replace. A new layout is pending until the UMR's
 * completion has been written: till then only the queue pair that posted the UMR sees it, all
 * others see the old one. That is later than on hardware, and on purpose: a program that lets an
 * rkey out before it has seen the completion fails here.
 */

#ifndef SIM_KEY_H
#define SIM_KEY_H

#include "sim.h"

#include <sys/uio.h>

/** One entry of a translation list, host order. */
struct sim_klm {
    uint64_t addr;
    uint32_t key;
    uint32_t length;
    uint32_t stride; /**< of a repeated entry */
};

/** The content of an mkey. */
struct sim_layout {
    struct sim_layout *next; /**< the one posted after it */
    uint32_t qpn;            /**< the queue pair that posted it */
    bool free;               /**< maps nothing */
    uint8_t tag;             /**< low 8 bits of the key */
    unsigned access;         /**< IBV_ACCESS_* */
    uint64_t start;          /**< address of the first byte */
    uint64_t length;         /**< bytes that may be addressed */
    uint32_t repeat;         /**< 0: a list; else how often the entries repeat */
    uint32_t count;          /**< number of entries */
    uint64_t period;         /**< sum of the entries' lengths */
    struct sim_klm klm[];
};

struct sim_key {
    struct sim_obj super;
    struct sim_pd *pd;
    uint32_t index; /**< the key's upper 24 bits */
    uint8_t tag;    /**< of an MR */
    unsigned access;
    uint64_t iova; /**< an MR's first address, in terms of its keys */
    uint64_t addr; /**< and in memory */
    uint64_t length;
    uint32_t capacity;     /**< an mkey's entries */
    void *gpu_view;        /**< an MR over memory of a GPU: the HCA's mapping of it */
    void *gpu_ctx;         /**< or the context of the driver's copies */
    uint64_t gpu_bytes;    /**< of the mapping */
    const uint64_t *alive; /**< NULL, or the memory is there as long as this is alive_id */
    uint64_t alive_id;
    bool remote_inval;          /**< a peer's send may invalidate it */
    struct sim_layout *now;     /**< an mkey's layout, as all see it */
    struct sim_layout *pending; /**< posted, not yet completed; oldest first */
};

/** Pieces of memory, growing as needed. */
struct sim_pieces {
    struct iovec *v;
    size_t count;
    size_t room;
    bool gpu;       /**< some are memory of a GPU, mapped */
    void *gpu_ctx;  /**< NULL, or some are a GPU's that copies in this context move */
    bool by_mkey;   /**< some were reached through an mkey */
    bool continued; /**< the message's bytes before these were moved before, set by the caller */
    uint64_t klms;  /**< entries of mkeys on the way to them, those of bytes before not again */
    uint64_t nested_klms; /**< of those, of mkeys below other mkeys */
};

/** Empty it, for bytes of a message from an offset on. */
static inline void sim_pieces_start(struct sim_pieces *pieces, uint64_t offset)
{
    pieces->count = 0;
    pieces->by_mkey = false;
    pieces->gpu = false;
    pieces->gpu_ctx = NULL;
    pieces->continued = 0 < offset;
    pieces->klms = 0;
    pieces->nested_klms = 0;
}

/** Count the moved data. */
void sim_pieces_count(const struct sim_pieces *pieces);

/** A request to a key. */
struct sim_access {
    const struct sim_pd *pd; /**< of the queue pair */
    uint32_t qpn;   /**< the queue pair that works, for pending layouts; 0 at the responder */
    unsigned right; /**< IBV_ACCESS_* that the key must have; 0 for a local read */
};

/** Enter a new key in the table. @return 0, or -1 if the table is full */
int sim_key_add(struct sim_key *key);
void sim_key_remove(struct sim_key *key);
/** The key of these 24 bits, or NULL. */
struct sim_key *sim_key_find(uint32_t index);
/** What user space calls it: the MR's lkey, or the mkey's with tag 0. */
uint32_t sim_key_value(const struct sim_key *key);

/**
 * Append the memory behind [addr, addr + length) of a key.
 *
 * @retval NULL   done
 * @retval text   why the access is refused; pieces may have been appended
 */
const char *sim_key_pieces(const struct sim_access *access, uint32_t key, uint64_t addr,
                           uint64_t length, struct sim_pieces *pieces);

/** A layout is posted: the key owns it from here. */
void sim_key_post(struct sim_key *key, struct sim_layout *layout);
/** The oldest layout that qpn posted is complete: now all see it. */
void sim_key_commit(struct sim_key *key, uint32_t qpn);
/**
 * A peer's send invalidates a key: at once it maps nothing.
 *
 * @retval NULL or why not
 */
const char *sim_key_invalidate(const struct sim_access *access, uint32_t value);
/** Layouts that qpn posted and that will never complete are forgotten. */
void sim_key_forget(uint32_t qpn);

#endif /* SIM_KEY_H */
