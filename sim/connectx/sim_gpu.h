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
 * Memory of GPUs: the HCA's access to it, and its writes there, which are late. The following is of
 * software GPUs (sim/cuda); what real ones have is copied by their driver, at once
 * (sim_gpu_copy.h), and so is the software ones' with the option gpu_copies=1.
 *
 * A registration over it has a mapping of its own of the pages, as an HCA has behind the PCIe BAR.
 * Writes of a peer there are held back until they are flushed: by cuFlushGPUDirectRDMAWrites, by a
 * read of GPU memory by this HCA, or by time.
 */

#ifndef SIM_GPU_H
#define SIM_GPU_H

#include "sim_key.h"

struct ib_uverbs_ioctl_hdr;

/** Memory of a GPU that a registration is going to be made of. */
struct sim_gpu_memory {
    int fd;                /**< of the file behind it, or -1 */
    uint64_t offset;       /**< in it */
    const uint64_t *alive; /**< NULL, or the memory is there as long as this is id */
    uint64_t id;
    void *ctx; /**< NULL, or it is moved by copies in this context: see sim_gpu_copy.h */
};

/** Find the CUDA driver, if it was loaded since. Without the lock. */
void sim_gpu_find(void);

/**
 * Query the driver for memory by its address, before a command that registers it. Without the lock,
 * as the driver has one of its own.
 *
 * @param[in]  dmabuf  a dma-buf of it is registered: only memory that is to be copied is searched
 * @param[out] memory  its fd is to be closed; filled if 1 is returned
 *
 * @return 1: it is a GPU's; 0: it is not; -1: it is, and cannot be registered
 */
int sim_gpu_look(uint64_t address, uint64_t length, bool dmabuf, struct sim_gpu_memory *memory);

/**
 * Give a key the memory: a mapping of it, unless it is beyond the option's bar_bytes.
 *
 * @return 0 or an errno
 */
int sim_gpu_map(struct sim_key *key, const struct sim_gpu_memory *memory);

/** The opposite; writes that are held back for it are performed. */
void sim_gpu_unmap(struct sim_key *key);

/** Read or write pieces that may be a GPU's; as sim_mem_gather and sim_mem_scatter. */
int sim_gpu_gather(void *to, const struct sim_pieces *pieces);
int sim_gpu_scatter(const struct sim_pieces *pieces, const void *from);

/** A peer's write: to memory of a GPU it comes late. As sim_mem_scatter. */
int sim_gpu_write(const struct sim_pieces *pieces, const void *from);

/** Perform the writes that are due by now; UINT64_MAX: all. @return whether there were any */
bool sim_gpu_land(uint64_t now);

/** When the next one is due; UINT64_MAX: none. */
uint64_t sim_gpu_wakeup(void);

/** After a fork, in the child: nothing is held back. */
void sim_gpu_forget(void);

#endif /* SIM_GPU_H */
