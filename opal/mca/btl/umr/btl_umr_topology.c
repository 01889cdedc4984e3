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
 * Locality of devices, this process and memory: NUMA nodes, and PCIe paths of HCAs and GPUs.
 *
 * Read from the same sysfs in which libibverbs found the device; no other library is needed.
 * (hwloc's I/O objects come from the same links, but hwloc would read all of sysfs where Open MPI
 * has not loaded them.) Missing information counts as unknown; then the order of the devices
 * decides.
 */

#include "opal_config.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "opal/util/sys_limits.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_topology.h"

/* The kernel's distance of a node to itself, and between nodes without firmware information. */
#define DISTANCE_SAME  10
#define DISTANCE_OTHER 20

/** Paths relative to the root of sysfs; "" is the device's directory. */
#define NODES       "devices/system/node/"
#define PCI_DEVICES "bus/pci/devices/"

/**
 * The path of a file: below the device's directory, or, if @p root is not "", below the root of its
 * sysfs. The root is taken from the text (ROOT/class/infiniband/NAME): NAME is a link to a
 * directory below ROOT/devices, so ".." after it does not lead back.
 */
static void path_of(const struct ibv_device *device, const char *root, const char *name, char *path,
                    size_t size)
{
    int length = (int) strlen(device->ibdev_path);

    if ('\0' != root[0]) {
        for (int up = 0; up < 3; ++up) {
            while (0 < length && '/' != device->ibdev_path[--length]) {
            }
        }
    }
    snprintf(path, size, "%.*s/%s%s", length, device->ibdev_path, root, name);
}

/** Read a line of a file; as path_of. */
static bool read_line(const struct ibv_device *device, const char *root, const char *name,
                      char *line, size_t size)
{
    char path[IBV_SYSFS_PATH_MAX + 128];
    FILE *file;
    bool got;

    path_of(device, root, name, path, sizeof(path));
    file = fopen(path, "r");
    if (NULL == file) {
        return false;
    }
    got = NULL != fgets(line, (int) size, file);
    fclose(file);
    return got;
}

/** Parse a list in the kernel's format ("0-15,32-47"), up to the first error. */
static void parse_list(const char *text, cpu_set_t *set)
{
    CPU_ZERO(set);
    while ('0' <= *text && '9' >= *text) {
        char *end;
        unsigned long first = strtoul(text, &end, 10), last = first;

        if ('-' == *end) {
            last = strtoul(end + 1, &end, 10);
        }
        for (unsigned long i = first; i <= last && CPU_SETSIZE > i; ++i) {
            CPU_SET(i, set);
        }
        text = ',' == *end ? end + 1 : end;
        if (',' != *end) {
            break;
        }
    }
}

/** True if all of these CPUs are in the list in a file. */
static bool all_in(const cpu_set_t *cpus, const struct ibv_device *device, const char *root,
                   const char *name)
{
    char line[4096];
    cpu_set_t list;

    if (!read_line(device, root, name, line, sizeof(line))) {
        return false;
    }
    parse_list(line, &list);
    CPU_AND(&list, &list, cpus);
    return 0 < CPU_COUNT(cpus) && CPU_EQUAL(&list, cpus);
}

/** The online nodes; none if unreadable. */
static void online(const struct ibv_device *device, cpu_set_t *nodes)
{
    char line[4096];

    CPU_ZERO(nodes);
    if (read_line(device, NODES, "online", line, sizeof(line))) {
        parse_list(line, nodes);
    }
}

/** The node of a device; as path_of. @return -1: unknown */
static int node_of(const struct ibv_device *device, const char *root, const char *name)
{
    char line[64], *end;
    long node;

    if (!read_line(device, root, name, line, sizeof(line))) {
        return -1;
    }
    node = strtol(line, &end, 10);
    return end == line || 0 > node || MCA_BTL_UMR_NODES <= node ? -1 : (int) node;
}

/** Distance between two nodes. */
static uint8_t between(const struct ibv_device *device, const cpu_set_t *nodes, int from, int to)
{
    char name[32], line[4096], *text = line;

    snprintf(name, sizeof(name), "node%d/distance", from);
    if (CPU_ISSET(from, nodes) && CPU_ISSET(to, nodes)
        && read_line(device, NODES, name, line, sizeof(line))) {
        /* The file has one number for each online node. */
        for (int node = 0; node <= to; ++node) {
            char *end;
            unsigned long value;

            if (!CPU_ISSET(node, nodes)) {
                continue;
            }
            value = strtoul(text, &end, 10);
            if (end == text) {
                break;
            }
            if (node == to && MCA_BTL_UMR_FAR > value) {
                return (uint8_t) value;
            }
            text = end;
        }
    }
    return from == to ? DISTANCE_SAME : DISTANCE_OTHER;
}

void mca_btl_umr_numa_device(const struct ibv_device *ibv, mca_btl_umr_device_t *device)
{
    cpu_set_t nodes;

    memset(device->distance, MCA_BTL_UMR_FAR, sizeof(device->distance));
    device->numa = node_of(ibv, "", "device/numa_node");
    if (0 > device->numa) {
        return;
    }
    online(ibv, &nodes);
    for (int node = 0; node < MCA_BTL_UMR_NODES; ++node) {
        device->distance[node] = between(ibv, &nodes, node, device->numa);
    }
}

uint8_t mca_btl_umr_numa_process(const struct ibv_device *device)
{
    int to = node_of(device, "", "device/numa_node");
    cpu_set_t mine, nodes;

    if (0 != sched_getaffinity(0, sizeof(mine), &mine)) {
        return MCA_BTL_UMR_FAR;
    }
    /* A process that may run everywhere is near to no device. */
    if (all_in(&mine, device, "", "device/local_cpulist")) {
        return 0;
    }
    online(device, &nodes);
    for (int node = 0; 0 <= to && node < MCA_BTL_UMR_NODES; ++node) {
        char name[32];

        snprintf(name, sizeof(name), "node%d/cpulist", node);
        if (CPU_ISSET(node, &nodes) && all_in(&mine, device, NODES, name)) {
            return between(device, &nodes, node, to);
        }
    }
    return MCA_BTL_UMR_FAR;
}

/** Number of leading directories that two paths share. */
static unsigned int shared(const char *a, const char *b)
{
    unsigned int count = 0;

    for (;; ++a, ++b) {
        bool over = '\0' == *a || '\0' == *b;

        count += ('/' == *a || '\0' == *a) && ('/' == *b || '\0' == *b) ? 1 : 0;
        if (over || *a != *b) {
            return count;
        }
    }
}

/** @return false: the location of one of them is unknown */
static bool look(const mca_btl_umr_device_t *device, int gpu, uint32_t *distance)
{
    const struct ibv_device *ibv = device->context->device;
    char bus_id[OPAL_UMRDDT_GPU_RDMA_BUS_ID], name[64], path[IBV_SYSFS_PATH_MAX + 128];
    char *hca = NULL, *there = NULL;
    bool known = false;
    int node;

    if (OPAL_SUCCESS != opal_umrddt_gpu_rdma_bus_id(gpu, bus_id)) {
        return false;
    }
    path_of(ibv, "", "device", path, sizeof(path));
    hca = realpath(path, NULL);
    path_of(ibv, PCI_DEVICES, bus_id, path, sizeof(path));
    there = realpath(path, NULL);
    if (NULL != hca && NULL != there) {
        unsigned int common = shared(hca, there);

        snprintf(name, sizeof(name), "%s/numa_node", bus_id);
        node = node_of(ibv, PCI_DEVICES, name);
        *distance = ((uint32_t) MCA_BTL_UMR_FAR - (255 < common ? 255 : common)) << 8
                    | (0 > node ? MCA_BTL_UMR_FAR : device->distance[node]);
        known = true;
    }
    free(hca);
    free(there);
    return known;
}

uint32_t mca_btl_umr_numa_gpu(mca_btl_umr_device_t *device, int gpu)
{
    if (0 > gpu || OPAL_UMRDDT_GPU_RDMA_DEVICES <= gpu) {
        return MCA_BTL_UMR_GPU_FAR;
    }
    if (OPAL_UNLIKELY(0 == device->gpu_distance[gpu])) {
        uint32_t distance;

        device->gpu_distance[gpu] =
            look(device, gpu, &distance) ? 1 + distance : MCA_BTL_UMR_GPU_FAR;
    }
    return device->gpu_distance[gpu];
}

/** Query the kernel. @return the node; -1: permanently unknown; -2: no page yet */
static int ask(uintptr_t page)
{
    void *pages[1] = {(void *) page};
    int status[1] = {-ENOENT};

    if (0 != syscall(SYS_move_pages, 0, 1ul, pages, NULL, status, 0)) {
        return -1;
    }
    return 0 <= status[0] && MCA_BTL_UMR_NODES > status[0] ? status[0]
           : -ENOENT == status[0]                          ? -2
                                                           : -1;
}

int mca_btl_umr_numa_address(const void *address)
{
    uintptr_t size = (uintptr_t) opal_getpagesize();
    uintptr_t page = (uintptr_t) address & ~(size - 1);
    mca_btl_umr_page_node_t *page_node =
        &mca_btl_umr.page_nodes[page / size % MCA_BTL_UMR_PAGE_NODES];
    int node;

    if (OPAL_LIKELY(page_node->page == page)) {
        return page_node->node;
    }
    node = ask(page);
    if (-2 != node) {
        page_node->page = page;
        page_node->node = node;
    }
    return 0 > node ? -1 : node;
}

void mca_btl_umr_numa_forget(uintptr_t base, uintptr_t bound)
{
    for (size_t i = 0; i < MCA_BTL_UMR_PAGE_NODES; ++i) {
        if (base <= mca_btl_umr.page_nodes[i].page && bound >= mca_btl_umr.page_nodes[i].page) {
            mca_btl_umr.page_nodes[i].page = 0;
        }
    }
}
