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
 * Memory of GPUs for network HCAs: what of it they can reach, and when the GPU sees what they
 * wrote.
 *
 * Rules that hold for every function: callable from any thread, with or without a current context;
 * outputs are written only on success; nothing is allocated on a device, nothing freed, nothing
 * waited for but a flush.
 */

#ifndef OPAL_UMRDDT_GPU_RDMA_H
#define OPAL_UMRDDT_GPU_RDMA_H

#include "opal/mca/common/umrddt_gpu/driver/umrddt_gpu_driver.h"

BEGIN_C_DECLS

/** Devices that are told apart; memory of others no HCA reaches. */
#define OPAL_UMRDDT_GPU_RDMA_DEVICES 64

/** What the driver says of a device. */
typedef struct opal_umrddt_gpu_rdma_caps_t {
    bool rdma;    /**< GPU_DIRECT_RDMA_SUPPORTED */
    bool dmabuf;  /**< DMA_BUF_SUPPORTED */
    bool vmm;     /**< GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED */
    bool flush;   /**< cuFlushGPUDirectRDMAWrites works */
    int ordering; /**< GPU_DIRECT_RDMA_WRITES_ORDERING: 0 nobody, 100 the device, 200 all of them,
                       see an HCA's writes in order */
} opal_umrddt_gpu_rdma_caps_t;

/**
 * Ask for a device's, once in the process.
 *
 * @return NULL: there is no such device, or no driver
 */
const opal_umrddt_gpu_rdma_caps_t *opal_umrddt_gpu_rdma_caps(int device);

/** Bytes of a bus id with its end. */
#define OPAL_UMRDDT_GPU_RDMA_BUS_ID 32

/**
 * Where a device is on the PCI bus, as Linux writes it: "0000:3b:00.0". (The driver writes it with
 * capital letters, and some with more digits.) Of a part of a device (MIG) it is the device's.
 *
 * @param[out] bus_id  OPAL_UMRDDT_GPU_RDMA_BUS_ID bytes
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_NOT_AVAILABLE  there is no such device, no driver, or it does not tell
 */
int opal_umrddt_gpu_rdma_bus_id(int device, char *bus_id);

/**
 * True if the attributes say that HCAs may reach this memory. Costs a call of the driver for
 * memory of a pool, or mapped, that the thread has not asked for lately; none for other memory.
 */
bool opal_umrddt_gpu_rdma_takes(const opal_umrddt_gpu_memory_t *memory);

/**
 * A dma-buf of whole pages.
 *
 * @param[in]  memory  an allocation that is taken
 * @param[in]  first   its first page that is wanted, @p length bytes; multiples of the host's page
 * @param[out] fd      to be closed when it is registered
 *
 * @return CUDA_SUCCESS, or why not
 */
CUresult opal_umrddt_gpu_rdma_dmabuf(const opal_umrddt_gpu_memory_t *memory, uint64_t first,
                                     uint64_t length, int *fd);

/** True if the allocation that has the address is still this one. One query of the driver. */
bool opal_umrddt_gpu_rdma_alive(uint64_t address, uint64_t buffer_id);

/** What has to be done before a GPU, or another one through it, sees what an HCA wrote. */
typedef enum opal_umrddt_gpu_flush_t {
    OPAL_UMRDDT_GPU_FLUSH_NONE, /**< nothing */
    OPAL_UMRDDT_GPU_FLUSH_CALL, /**< opal_umrddt_gpu_rdma_flush */
    OPAL_UMRDDT_GPU_FLUSH_READ  /**< a read of the memory by the same HCA */
} opal_umrddt_gpu_flush_t;

/** For memory of a device: by its attributes, asked for once. */
opal_umrddt_gpu_flush_t opal_umrddt_gpu_rdma_flush_how(int device);

/**
 * Make what HCAs wrote into the memory visible to all devices (where there is one: to it); returns
 * when it is.
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERROR  the driver fails, or its context is gone
 */
int opal_umrddt_gpu_rdma_flush(const opal_umrddt_gpu_memory_t *memory);

END_C_DECLS

#endif /* OPAL_UMRDDT_GPU_RDMA_H */
