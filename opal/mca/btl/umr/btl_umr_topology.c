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
 * Locality of devices, this process, memory and GPUs, from Open MPI's hwloc topology of the node.
 *
 * Some topologies lack a device: I/O devices may be filtered out, and the software HCA has its own
 * sysfs. Others have several nodes at the place of a device. Then the device's sysfs directory is
 * read. Missing information counts as unknown, and the order of the devices decides.
 */

#include "opal_config.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "opal/mca/hwloc/base/base.h"
#include "opal/mca/hwloc/hwloc-internal.h"
#include "opal/util/sys_limits.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_topology.h"

/* The kernel's distance of a node to itself, and between nodes without firmware information. */
#define DISTANCE_SAME  10
#define DISTANCE_OTHER 20

/* ------------------------------------------------------------------------------------------- *
 * sysfs, for devices that are not in the topology
 * ------------------------------------------------------------------------------------------- */

bool mca_btl_umr_topology_read(const char *directory, const char *name, char *line, int size)
{
    char path[PATH_MAX];
    FILE *file;
    bool got;

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    file = fopen(path, "r");
    if (NULL == file) {
        return false;
    }
    got = NULL != fgets(line, size, file);
    fclose(file);
    line[got ? strcspn(line, "\n") : 0] = '\0';
    return got;
}

/** The number in DIRECTORY/NAME. @return -1: it is no node */
static int sysfs_node(const char *directory, const char *name)
{
    char line[64], *end = line;
    long node = mca_btl_umr_topology_read(directory, name, line, sizeof(line))
                    ? strtol(line, &end, 10)
                    : -1;

    return end == line || 0 > node || MCA_BTL_UMR_NODES <= node ? -1 : (int) node;
}

/** Length of the root of sysfs: ibdev_path is ROOT/class/infiniband/NAME. */
static int root_of(const struct ibv_device *device)
{
    int root = (int) strlen(device->ibdev_path) - (int) strlen("/class/infiniband/")
               - (int) strlen(device->name);

    return 0 > root ? 0 : root;
}

/**
 * Number of common directories of a device and a GPU.
 *
 * @param[out] node  of the GPU
 *
 * @return 0: one of them is unknown
 */
static unsigned int sysfs_common(const struct ibv_device *device, const char *bus_id, int *node)
{
    int root = root_of(device);
    char path[PATH_MAX], *hca, *gpu;
    unsigned int count = 0;

    snprintf(path, sizeof(path), "%s/device", device->ibdev_path);
    hca = realpath(path, NULL);
    snprintf(path, sizeof(path), "%.*s/bus/pci/devices/%s", root, device->ibdev_path, bus_id);
    gpu = realpath(path, NULL);
    *node = NULL == gpu ? -1 : sysfs_node(gpu, "numa_node");
    for (size_t i = 0; NULL != hca && NULL != gpu && '\0' != hca[i] && hca[i] == gpu[i]; ++i) {
        count += '/' == hca[i] ? 1 : 0;
    }
    free(hca);
    free(gpu);
    return count;
}

/* ------------------------------------------------------------------------------------------- *
 * hwloc
 * ------------------------------------------------------------------------------------------- */

/** The location of a device. */
typedef struct place_t {
    hwloc_topology_t topology; /**< NULL: the device is not in it */
    hwloc_obj_t object;        /**< the device there */
    int node;                  /**< -1: unknown */
} place_t;

/**
 * The node of the memory that an object is local to.
 *
 * @return -1: unknown, or several. A package also has the nodes of high-bandwidth memory and of the
 *         memory of coherent GPUs
 */
static int object_node(hwloc_topology_t topology, hwloc_obj_t object)
{
    hwloc_obj_t local = hwloc_get_non_io_ancestor_obj(topology, object);
    int node = 1 == hwloc_bitmap_weight(local->nodeset) ? hwloc_bitmap_first(local->nodeset) : -1;

    return MCA_BTL_UMR_NODES > node ? node : -1;
}

static place_t place_of(const struct ibv_device *device)
{
    place_t place = {.node = -1};

    /* The topology describes /sys; libibverbs may have been given another directory. */
    if (0 == strncmp(device->ibdev_path, "/sys/", strlen("/sys/"))
        && (NULL != opal_hwloc_topology || OPAL_SUCCESS == opal_hwloc_base_get_topology())) {
        hwloc_obj_t object = NULL;

        while (NULL == place.topology
               && NULL != (object = hwloc_get_next_osdev(opal_hwloc_topology, object))) {
            if (HWLOC_OBJ_OSDEV_OPENFABRICS == object->attr->osdev.type && NULL != object->name
                && 0 == strcmp(object->name, device->name)) {
                place.topology = opal_hwloc_topology;
                place.object = object;
                place.node = object_node(place.topology, object);
            }
        }
    }
    if (0 > place.node) {
        place.node = sysfs_node(device->ibdev_path, "device/numa_node");
    }
    return place;
}

/** Distance between two nodes, as the firmware gives it, or the default. */
static uint8_t between(hwloc_topology_t topology, unsigned int from, unsigned int to)
{
    struct hwloc_distances_s *matrix = NULL;
    uint64_t value = MCA_BTL_UMR_FAR;
    unsigned int count = 1;

    if (NULL != topology
        && 0
               == hwloc_distances_get_by_type(topology, HWLOC_OBJ_NUMANODE, &count, &matrix,
                                              HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0)
        && 0 < count) {
        for (unsigned int i = 0; i < matrix->nbobjs * matrix->nbobjs; ++i) {
            if (matrix->objs[i / matrix->nbobjs]->os_index == from
                && matrix->objs[i % matrix->nbobjs]->os_index == to) {
                value = matrix->values[i];
            }
        }
        hwloc_distances_release(topology, matrix);
    }
    return MCA_BTL_UMR_FAR > value ? (uint8_t) value : from == to ? DISTANCE_SAME : DISTANCE_OTHER;
}

void mca_btl_umr_topology_device(const struct ibv_device *ibv, mca_btl_umr_device_t *device)
{
    place_t place = place_of(ibv);

    memset(device->distance, MCA_BTL_UMR_FAR, sizeof(device->distance));
    device->numa = place.node;
    for (unsigned int node = 0; 0 <= place.node && node < MCA_BTL_UMR_NODES; ++node) {
        device->distance[node] = between(place.topology, node, (unsigned int) place.node);
    }
}

/** The CPUs that this process may run on. */
static void get_cpus(hwloc_bitmap_t cpus)
{
    cpu_set_t set;

    if (0 == sched_getaffinity(0, sizeof(set), &set)) {
        for (unsigned int i = 0; i < CPU_SETSIZE; ++i) {
            if (CPU_ISSET(i, &set)) {
                hwloc_bitmap_set(cpus, i);
            }
        }
    }
}

/** The CPUs that are local to a device; none: unknown. */
static void get_local_cpus(const struct ibv_device *device, const place_t *place,
                           hwloc_bitmap_t cpus)
{
    char line[4096];

    if (NULL != place->topology) {
        hwloc_bitmap_copy(cpus,
                          hwloc_get_non_io_ancestor_obj(place->topology, place->object)->cpuset);
    } else if (!mca_btl_umr_topology_read(device->ibdev_path, "device/local_cpulist", line,
                                          sizeof(line))
               || 0 != hwloc_bitmap_list_sscanf(cpus, line)) {
        hwloc_bitmap_zero(cpus);
    }
}

uint8_t mca_btl_umr_topology_process(const struct ibv_device *device)
{
    place_t place = place_of(device);
    hwloc_bitmap_t mine = hwloc_bitmap_alloc(), local = hwloc_bitmap_alloc();
    uint8_t distance = MCA_BTL_UMR_FAR;
    hwloc_obj_t node = NULL;

    if (NULL != mine && NULL != local) {
        get_cpus(mine);
        get_local_cpus(device, &place, local);
        if (hwloc_bitmap_iszero(mine)) {
            distance = MCA_BTL_UMR_FAR;
        } else if (hwloc_bitmap_isincluded(mine, local)) {
            distance = 0;
        } else if (NULL != place.topology && 0 <= place.node) {
            /* A process that may run everywhere is near to no device. */
            while (
                NULL
                != (node = hwloc_get_next_obj_by_type(place.topology, HWLOC_OBJ_NUMANODE, node))) {
                if (hwloc_bitmap_isincluded(mine, node->cpuset)) {
                    distance = between(place.topology, node->os_index, (unsigned int) place.node);
                    break;
                }
            }
        }
    }
    hwloc_bitmap_free(mine);
    hwloc_bitmap_free(local);
    return distance;
}

/** Number of common ancestors of a device and a GPU; as sysfs_common. */
static unsigned int hwloc_common(const place_t *place, const char *bus_id, int *node)
{
    hwloc_obj_t gpu = hwloc_get_pcidev_by_busidstring(place->topology, bus_id);
    unsigned int count = 0;

    if (NULL == gpu) {
        return 0;
    }
    *node = object_node(place->topology, gpu);
    for (hwloc_obj_t above = gpu->parent; NULL != above; above = above->parent) {
        hwloc_obj_t other = place->object;

        while (NULL != other && above != other) {
            other = other->parent;
        }
        count += NULL != other ? 1 : 0;
    }
    return count;
}

uint32_t mca_btl_umr_topology_bus(const struct ibv_device *device, const char *bus_id)
{
    place_t place = place_of(device);
    unsigned int common = 0;
    int node = -1;
    uint8_t nodes;

    if (NULL != place.topology) {
        common = hwloc_common(&place, bus_id, &node);
    }
    if (0 == common || 0 > node) {
        unsigned int directories = sysfs_common(device, bus_id, &node);

        common = 0 < common ? common : directories;
    }
    if (0 == common) {
        return MCA_BTL_UMR_GPU_FAR;
    }
    nodes = 0 > node || 0 > place.node
                ? MCA_BTL_UMR_FAR
                : between(place.topology, (unsigned int) node, (unsigned int) place.node);
    return 1 + (((uint32_t) MCA_BTL_UMR_FAR - (255 < common ? 255 : common)) << 8 | nodes);
}

/** The distance of a GPU; MCA_BTL_UMR_GPU_FAR: the location of one of them is unknown. */
static uint32_t gpu_distance(const mca_btl_umr_device_t *device, int gpu)
{
    char bus_id[OPAL_UMRDDT_GPU_RDMA_BUS_ID];

    return OPAL_SUCCESS == opal_umrddt_gpu_rdma_bus_id(gpu, bus_id)
               ? mca_btl_umr_topology_bus(device->context->device, bus_id)
               : MCA_BTL_UMR_GPU_FAR;
}

/** True if the CPUs of this process are known not to be local to a PCI device. */
static bool is_far(const char *directory)
{
    hwloc_bitmap_t mine = hwloc_bitmap_alloc(), local = hwloc_bitmap_alloc();
    char line[4096];
    bool far = false;

    if (NULL != mine && NULL != local
        && mca_btl_umr_topology_read(directory, "local_cpulist", line, sizeof(line))
        && 0 == hwloc_bitmap_list_sscanf(local, line)) {
        get_cpus(mine);
        far = !hwloc_bitmap_isincluded(mine, local);
    }
    hwloc_bitmap_free(mine);
    hwloc_bitmap_free(local);
    return far;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

void mca_btl_umr_topology_gpus(const struct ibv_device *device, mca_btl_umr_gpus_t *gpus)
{
    char root[PATH_MAX], path[2 * PATH_MAX], line[64];
    struct dirent *entry;
    DIR *directory;

    memset(gpus, 0, sizeof(*gpus));
    snprintf(root, sizeof(root), "%.*s/bus/pci/devices", root_of(device), device->ibdev_path);
    directory = opendir(root);
    while (NULL != directory && MCA_BTL_UMR_GPUS > gpus->count
           && NULL != (entry = readdir(directory))) {
        if ('.' == entry->d_name[0] || sizeof(gpus->bus_id[0]) <= strlen(entry->d_name)) {
            continue;
        }
        snprintf(path, sizeof(path), "%s/%s", root, entry->d_name);
        /* display and 3D controllers of NVIDIA */
        if (mca_btl_umr_topology_read(path, "class", line, sizeof(line))
            && 0 == strncmp(line, "0x03", 4)
            && mca_btl_umr_topology_read(path, "vendor", line, sizeof(line))
            && 0 == strcmp(line, "0x10de")) {
            memcpy(gpus->bus_id[gpus->count++], entry->d_name, strlen(entry->d_name) + 1);
        }
    }
    if (NULL != directory) {
        closedir(directory);
    }
    qsort(gpus->bus_id, (size_t) gpus->count, sizeof(gpus->bus_id[0]), by_text);
    for (int i = 0; i < gpus->count; ++i) {
        snprintf(path, sizeof(path), "%s/%s", root, gpus->bus_id[i]);
        gpus->far[i] = is_far(path);
    }
}

uint32_t mca_btl_umr_topology_gpu(mca_btl_umr_device_t *device, int gpu)
{
    if (0 > gpu || OPAL_UMRDDT_GPU_RDMA_DEVICES <= gpu) {
        return MCA_BTL_UMR_GPU_FAR;
    }
    if (OPAL_UNLIKELY(0 == device->gpu_distance[gpu])) {
        device->gpu_distance[gpu] = gpu_distance(device, gpu);
    }
    return device->gpu_distance[gpu];
}

/** Query the kernel. @return the node; -1: permanently unknown; -2: no page yet */
static int node_of_page(uintptr_t page)
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

int mca_btl_umr_topology_address(const void *address)
{
    uintptr_t size = (uintptr_t) opal_getpagesize();
    uintptr_t page = (uintptr_t) address & ~(size - 1);
    mca_btl_umr_page_node_t *page_node =
        &mca_btl_umr.page_nodes[page / size % MCA_BTL_UMR_PAGE_NODES];
    int node;

    if (OPAL_LIKELY(page_node->page == page)) {
        return page_node->node;
    }
    node = node_of_page(page);
    if (-2 != node) {
        page_node->page = page;
        page_node->node = node;
    }
    return 0 > node ? -1 : node;
}

void mca_btl_umr_topology_forget(uintptr_t base, uintptr_t bound)
{
    for (size_t i = 0; i < MCA_BTL_UMR_PAGE_NODES; ++i) {
        if (base <= mca_btl_umr.page_nodes[i].page && bound >= mca_btl_umr.page_nodes[i].page) {
            mca_btl_umr.page_nodes[i].page = 0;
        }
    }
}
