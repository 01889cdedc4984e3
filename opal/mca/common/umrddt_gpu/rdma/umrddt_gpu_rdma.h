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
 * GPU memory for HCAs: RDMA support of an allocation, and visibility of an HCA's writes to the GPU.
 *
 * Rules for every function: callable from any thread, with or without a current context. Outputs
 * are written only on success. No device memory is allocated or freed, and only a flush waits.
 */

#ifndef OPAL_UMRDDT_GPU_RDMA_H
#define OPAL_UMRDDT_GPU_RDMA_H

#include "opal/mca/common/umrddt_gpu/driver/umrddt_gpu_driver.h"

BEGIN_C_DECLS

/** Limit of device numbers; RDMA is not supported for devices beyond it. */
#define OPAL_UMRDDT_GPU_RDMA_DEVICES 64

/** Properties of a device. */
typedef struct opal_umrddt_gpu_rdma_caps_t {
    bool rdma;    /**< GPU_DIRECT_RDMA_SUPPORTED */
    bool dmabuf;  /**< DMA_BUF_SUPPORTED */
    bool vmm;     /**< GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED */
    bool flush;   /**< cuFlushGPUDirectRDMAWrites works */
    int ordering; /**< GPU_DIRECT_RDMA_WRITES_ORDERING: writes of an HCA are ordered for 0: no
                     device, 100: the owner, 200: all devices */
} opal_umrddt_gpu_rdma_caps_t;

/**
 * The properties of a device, queried once per process.
 *
 * @return NULL: no such device, or no driver
 */
const opal_umrddt_gpu_rdma_caps_t *opal_umrddt_gpu_rdma_caps(int device);

/** Length of a bus id including the terminating 0. */
#define OPAL_UMRDDT_GPU_RDMA_BUS_ID 32

/**
 * The PCI address of a device in the format of Linux: "0000:3b:00.0". (The driver uses capital
 * letters, and sometimes more digits.) For a part of a device (MIG) it is the device's.
 *
 * @param[out] bus_id  OPAL_UMRDDT_GPU_RDMA_BUS_ID bytes
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_NOT_AVAILABLE  no such device, no driver, or not reported
 */
int opal_umrddt_gpu_rdma_bus_id(int device, char *bus_id);

/**
 * True if the attributes allow RDMA to this memory. Costs a driver call for memory of a pool, or
 * mapped, that is not in the thread's cache; none for other memory.
 */
bool opal_umrddt_gpu_rdma_takes(const opal_umrddt_gpu_memory_t *memory);

/**
 * Export a dma-buf of whole pages.
 *
 * @param[in]  memory  an allocation for which opal_umrddt_gpu_rdma_takes is true
 * @param[in]  first   its first needed page, @p length bytes; multiples of the host's page
 * @param[out] fd      to be closed after the registration
 *
 * @return CUDA_SUCCESS, or an error
 */
CUresult opal_umrddt_gpu_rdma_dmabuf(const opal_umrddt_gpu_memory_t *memory, uint64_t first,
                                     uint64_t length, int *fd);

/** True if the address still belongs to this allocation. One driver call. */
bool opal_umrddt_gpu_rdma_alive(uint64_t address, uint64_t buffer_id);

/** Operation that makes an HCA's writes visible to a GPU, or to another GPU through it. */
typedef enum opal_umrddt_gpu_flush_t {
    OPAL_UMRDDT_GPU_FLUSH_NONE, /**< nothing */
    OPAL_UMRDDT_GPU_FLUSH_CALL, /**< opal_umrddt_gpu_rdma_flush */
    OPAL_UMRDDT_GPU_FLUSH_READ  /**< a read of the memory by the same HCA */
} opal_umrddt_gpu_flush_t;

/** For memory of a device: from its attributes, queried once. */
opal_umrddt_gpu_flush_t opal_umrddt_gpu_rdma_flush_how(int device);

/**
 * Make HCAs' writes to the memory visible to all devices (with one device: to it); returns when
 * done.
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERROR  the driver fails, or its context is destroyed
 */
int opal_umrddt_gpu_rdma_flush(const opal_umrddt_gpu_memory_t *memory);

END_C_DECLS

#endif /* OPAL_UMRDDT_GPU_RDMA_H */
