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
 * Locations of devices, processes, memory and GPUs. Nodes are numbers of the kernel; -1: unknown.
 */

#ifndef MCA_BTL_UMR_TOPOLOGY_H
#define MCA_BTL_UMR_TOPOLOGY_H

#include "opal/mca/btl/umr/btl_umr_device.h"

BEGIN_C_DECLS

/** Fill in the distances of a device. Loads the topology of the node, or reads files. */
void mca_btl_umr_topology_device(const struct ibv_device *ibv, mca_btl_umr_device_t *device);

/**
 * Distance from this process to a device: 0 if all CPUs that the process may run on are local to
 * the device; MCA_BTL_UMR_FAR if unknown. Loads the topology or reads files.
 */
uint8_t mca_btl_umr_topology_process(const struct ibv_device *device);

/** Number of GPUs of a node that are listed. */
#define MCA_BTL_UMR_GPUS 32

/** The GPUs of the node, in the order of their addresses, whether this process sees them or not. */
typedef struct mca_btl_umr_gpus_t {
    int count;
    char bus_id[MCA_BTL_UMR_GPUS][16]; /**< "0000:3b:00.0" */
    bool far[MCA_BTL_UMR_GPUS];        /**< known not to be local to the CPUs of this process */
} mca_btl_umr_gpus_t;

/** List them. Reads the kernel's files about PCI, below the root that has the device. */
void mca_btl_umr_topology_gpus(const struct ibv_device *device, mca_btl_umr_gpus_t *gpus);

/** Read the first line of DIRECTORY/NAME, without its end. @return false: unreadable */
bool mca_btl_umr_topology_read(const char *directory, const char *name, char *line, int size);

/** As mca_btl_umr_topology_gpu, by the address of the GPU. Not cached. */
uint32_t mca_btl_umr_topology_bus(const struct ibv_device *device, const char *bus_id);

/** NUMA node of the page of an address. A system call, unless cached. Lock held. */
int mca_btl_umr_topology_address(const void *address);

/**
 * Distance from a GPU, by its number in this process, to a device. The distance grows as the common
 * part of their PCI paths (switch, root port, host bridge) shrinks; for equal parts it grows with
 * the distance of the NUMA nodes. MCA_BTL_UMR_GPU_FAR if unknown. Computed once for each GPU and
 * device. Lock held.
 */
uint32_t mca_btl_umr_topology_gpu(mca_btl_umr_device_t *device, int gpu);

/** Drop the cached locations of the pages from base to bound (the last byte). */
void mca_btl_umr_topology_forget(uintptr_t base, uintptr_t bound);

/**
 * Cached location of a page: valid until a registration over it ends, or until another page needs
 * the entry.
 */
typedef struct mca_btl_umr_page_node_t {
    uintptr_t page; /**< 0: empty */
    int node;
} mca_btl_umr_page_node_t;

#define MCA_BTL_UMR_PAGE_NODES 64

END_C_DECLS

#endif /* MCA_BTL_UMR_TOPOLOGY_H */
