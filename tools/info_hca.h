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
 * What the files of umrddt_info that use the functions of btl/umr share.
 */

#ifndef INFO_HCA_H
#define INFO_HCA_H

#include "ompi_config.h"

#include "opal/mca/btl/umr/btl_umr_hca.h"
#include "opal/mca/common/umrddt_gpu/rdma/umrddt_gpu_rdma.h"

#include "info.h"

/** A GPU, and how far it is from an HCA. */
typedef struct info_near_t {
    int gpu;
    uint32_t distance;
} info_near_t;

/**
 * Find btl/umr, also if "--mca btl" excludes it. @return its functions; NULL: not of this version,
 * with the reason on the standard error
 */
const mca_btl_umr_hca_ops_t *info_hca_open(void);
void info_hca_close(void);

/** The GPUs with a known distance from an HCA, nearest first. @return their number */
int info_hca_gpus(const mca_btl_umr_hca_ops_t *hca, unsigned int index,
                  info_near_t gpus[OPAL_UMRDDT_GPU_RDMA_DEVICES]);

/** One endpoint, and the process at its other end, which may be this one. */
typedef struct info_link_t {
    const mca_btl_umr_hca_ops_t *hca;
    mca_btl_umr_endpoint_t *endpoint;
    mca_btl_umr_address_t address; /**< of the other end */
    int peer;                      /**< its rank in MPI_COMM_WORLD */
    bool first;     /**< this process writes before the other one; both sides must differ in it */
    bool alone;     /**< both ends are the same endpoint */
    double seconds; /**< that the messages of odd layouts take at least */
} info_link_t;

/** What was measured of the writes of this process to the other end. */
typedef struct info_traffic_t {
    char why[192];      /**< the reason if something failed, else "" */
    double connect;     /**< seconds: to connect */
    double first_write; /**< seconds: of the first write, from its call to its completion */
    double bandwidth;   /**< bytes per second of writes of 1 MiB; 0: not measured */
    long long messages; /**< messages of odd layouts that arrived with each byte right */
    long long mkeys;    /**< mkeys that this process mapped for those, at both ends */
} info_traffic_t;

/**
 * Connect an endpoint and test it in both directions, together with the process at the other end:
 * a write of 8 bytes; writes of 1 MiB; messages between random layouts of up to 200 pieces, of
 * which each maps new mkeys while others are in flight, and of which each byte is compared. No
 * failure lasts longer than a minute.
 *
 * @param[in]  link
 * @param[out] traffic  of the direction from this process
 *
 * @return true if this process knows of no failure
 */
bool info_link_test(const info_link_t *link, info_traffic_t *traffic);

/**
 * Exchange bytes with a process, while the HCA makes progress.
 *
 * @param[in]  peer  its rank, may be that of this process
 * @param[out] in    as many as @p size
 */
void info_link_swap(const mca_btl_umr_hca_ops_t *hca, int peer, const void *out, void *in,
                    size_t size);

/**
 * Have the buffers of tests in the memory of a GPU.
 *
 * @param[in]  gpu  its number
 * @param[out] why  the reason if there is none, of 192 bytes
 */
bool info_buffer_gpu(int gpu, char *why);

/** Memory for tests, in the CPU's memory or in that of the GPU; NULL: none. */
void *info_buffer_alloc(size_t size);
void info_buffer_free(void *buffer);

/** Register it for a layout in it. @return as memory_register_at */
int info_buffer_register(const info_link_t *link, mca_btl_umr_role_t role, void *buffer,
                         const opal_iov_cache_layout_t *layout, mca_btl_umr_memory_t **memory);

/** Copy to and from it. @return false: the GPU's driver failed */
bool info_buffer_write(void *buffer, const void *from, size_t size);
bool info_buffer_read(void *to, const void *buffer, size_t size);

#endif /* INFO_HCA_H */
