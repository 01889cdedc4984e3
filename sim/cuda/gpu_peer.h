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
 * Services of the software CUDA driver for other devices of its process: what the module
 * nvidia-peermem does in the kernel for an HCA that registers memory of a GPU by its address, and
 * the signal by which writes of such an HCA are flushed. The software ConnectX finds these
 * functions by their names in the library that the process has loaded.
 */

#ifndef GPU_PEER_H
#define GPU_PEER_H

#include <stdint.h>

/** Memory of a device, for an HCA. */
struct gpu_peer {
    int fd;          /**< of the file that holds it; the caller closes it */
    uint64_t offset; /**< of the address, in the file */
    /** The memory is there as long as *alive == id; may be read as long as the process lives. */
    const uint64_t *alive;
    uint64_t id;
};

/**
 * Look for memory of a device.
 *
 * @param[out] peer  filled if 1 is returned
 *
 * @retval 1   all of it lies in one allocation, by cuMemAlloc
 * @retval 0   no byte of it is a device's, or HCAs are not let in ('peermem=0')
 * @retval -1  it is a device's, but cannot be had: other memory, or more than one allocation
 */
typedef int (*gpu_peer_get_fn)(uint64_t address, uint64_t length, struct gpu_peer *peer);
#define GPU_PEER_GET "umrddt_gpu_peer_get"

/**
 * Set the device that holds writes back until they are flushed.
 *
 * @param[in] flush  called by cuFlushGPUDirectRDMAWrites, without a lock of the driver
 *
 * @return true if devices show writes late unless they are flushed; else none is to be held back
 */
typedef int (*gpu_peer_late_fn)(void (*flush)(void));
#define GPU_PEER_LATE "umrddt_gpu_peer_late"

#endif /* GPU_PEER_H */
