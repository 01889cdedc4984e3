/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Locality by hwloc: a topology of three nodes with HCAs and GPUs below bridges and a switch. (The
 * fallback to sysfs for all of it: devices.sh and hcas.sh, since the software HCA is in no
 * topology.)
 */

#include "opal_config.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "opal/constants.h"
#include "opal/mca/hwloc/hwloc-internal.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_topology.h"

#include "../common/check.h"

mca_btl_umr_t mca_btl_umr;
mca_btl_umr_params_t mca_btl_umr_params;

/* clang-format off */
#define SETS(cpus, node)                                                                      \
    "cpuset=\"" cpus "\" complete_cpuset=\"" cpus "\" nodeset=\"" node "\" complete_nodeset=\"" node "\" "
#define PU(index, cpu, node) "<object type=\"PU\" os_index=\"" index "\" gp_index=\"1" index "\" " SETS(cpu, node) "/>\n"
#define NODE(index, cpus, node)                                                               \
    "<object type=\"Package\" os_index=\"" index "\" gp_index=\"2" index "\" " SETS(cpus, node) ">\n" \
    "<object type=\"NUMANode\" os_index=\"" index "\" gp_index=\"3" index "\" " SETS(cpus, node) "/>\n"
#define HOST_BRIDGE(id, buses) \
    "<object type=\"Bridge\" gp_index=\"" id "\" bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"0000:[" buses "]\">\n"
#define BRIDGE(id, depth, bus, buses)                                                         \
    "<object type=\"Bridge\" gp_index=\"" id "\" bridge_type=\"1-1\" depth=\"" depth "\" "   \
    "bridge_pci=\"0000:[" buses "]\" pci_busid=\"" bus "\" "                                  \
    "pci_type=\"0604 [8086:2030] [0000:0000] 07\" pci_link_speed=\"0\">\n"
#define HCA(id, bus, name)                                                                    \
    "<object type=\"PCIDev\" gp_index=\"" id "\" pci_busid=\"" bus "\" "                      \
    "pci_type=\"0207 [15b3:101b] [15b3:0007] 00\" pci_link_speed=\"0\">\n"                    \
    "<object type=\"OSDev\" gp_index=\"9" id "\" name=\"" name "\" osdev_type=\"3\"/>\n</object>\n"
#define GPU(id, bus)                                                                          \
    "<object type=\"PCIDev\" gp_index=\"" id "\" pci_busid=\"" bus "\" "                      \
    "pci_type=\"0302 [10de:2330] [10de:0000] 00\" pci_link_speed=\"0\"/>\n"
#define END "</object>\n"

/*
 * mlx5_0, and the switch of mlx5_1 and GPU 0, are on two ports of one host bridge. The package of
 * mlx5_3 also has a node of memory without CPUs of its own.
 */
static const char xml[] =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
    "<topology version=\"2.0\">\n"
    "<object type=\"Machine\" os_index=\"0\" gp_index=\"1\" allowed_cpuset=\"0xff\" allowed_nodeset=\"0x2f\" "
    SETS("0xff", "0x2f") ">\n"
    NODE("0", "0x3", "0x1") PU("0", "0x1", "0x1") PU("1", "0x2", "0x1")
    HOST_BRIDGE("40", "20-2f")
    BRIDGE("41", "1", "0000:20:01.0", "21-21") HCA("42", "0000:21:00.0", "mlx5_0") END
    BRIDGE("43", "1", "0000:20:02.0", "22-25") BRIDGE("44", "2", "0000:22:00.0", "23-25")
    BRIDGE("45", "3", "0000:23:04.0", "24-24") HCA("46", "0000:24:00.0", "mlx5_1") END
    BRIDGE("47", "3", "0000:23:05.0", "25-25") GPU("48", "0000:25:00.0") END
    END END END END
    NODE("1", "0xc", "0x2") PU("2", "0x4", "0x2") PU("3", "0x8", "0x2")
    HOST_BRIDGE("50", "40-4f") BRIDGE("51", "1", "0000:40:01.0", "41-41") HCA("52", "0000:41:00.0", "mlx5_2") END END
    HOST_BRIDGE("53", "50-5f") BRIDGE("54", "1", "0000:50:01.0", "51-51") GPU("55", "0000:51:00.0") END END END
    NODE("2", "0x30", "0x4") PU("4", "0x10", "0x4") PU("5", "0x20", "0x4")
    HOST_BRIDGE("60", "60-6f") BRIDGE("61", "1", "0000:60:01.0", "61-61") GPU("62", "0000:61:00.0") END END END
    "<object type=\"Package\" os_index=\"3\" gp_index=\"23\" " SETS("0xc0", "0x28") ">\n"
    "<object type=\"NUMANode\" os_index=\"3\" gp_index=\"33\" " SETS("0xc0", "0x8") "/>\n"
    "<object type=\"NUMANode\" os_index=\"5\" gp_index=\"35\" " SETS("0xc0", "0x20") "/>\n"
    PU("6", "0x40", "0x28") PU("7", "0x80", "0x28")
    HOST_BRIDGE("70", "70-7f")
    BRIDGE("71", "1", "0000:70:01.0", "71-71") HCA("72", "0000:71:00.0", "mlx5_3") END
    BRIDGE("73", "1", "0000:70:02.0", "72-72") GPU("74", "0000:72:00.0") END
    END END
    END
    "<distances2 type=\"NUMANode\" nbobjs=\"3\" kind=\"5\" indexing=\"os\">\n"
    "<indexes length=\"6\">0 1 2 </indexes>\n"
    "<u64values length=\"27\">10 21 31 21 10 17 31 17 10 </u64values>\n"
    "</distances2>\n</topology>\n";
/* clang-format on */

static const char *const gpus[] = {"0000:25:00.0", "0000:51:00.0", "0000:61:00.0", "0000:99:00.0",
                                   "0000:72:00.0"};

/* sysfs has the node of each device. */
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__real_fopen(const char *path, const char *mode);

FILE *__wrap_fopen(const char *path, const char *mode)
{
    static char node[] = "3\n";

    return 0 == strcmp(path, "/sys/class/infiniband/mlx5_3/device/numa_node")
               ? fmemopen(node, strlen(node), mode)
               : __real_fopen(path, mode);
}

int opal_umrddt_gpu_rdma_bus_id(int device, char *bus_id)
{
    snprintf(bus_id, OPAL_UMRDDT_GPU_RDMA_BUS_ID, "%s", gpus[device]);
    return OPAL_SUCCESS;
}

/* The CPUs of this process; a bitmap. */
static unsigned int cpus;

int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set);

int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
    (void) pid;
    memset(set, 0, size);
    for (int i = 0; i < 32; ++i) {
        if (0 != (cpus & 1u << i)) {
            CPU_SET(i, set);
        }
    }
    return 0 == cpus ? -1 : 0;
}

#define HCAS 4

static struct ibv_device devices[HCAS + 1];
static struct ibv_context contexts[HCAS];
static mca_btl_umr_device_t hcas[HCAS];

static void name_device(struct ibv_device *device, const char *name)
{
    snprintf(device->name, sizeof(device->name), "%s", name);
    snprintf(device->ibdev_path, sizeof(device->ibdev_path), "/sys/class/infiniband/%s", name);
}

static void load(void)
{
    hwloc_topology_t topology;

    CHECK(0 == hwloc_topology_init(&topology));
    CHECK(0 == hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT));
    CHECK(0 == hwloc_topology_set_xmlbuffer(topology, xml, sizeof(xml)));
    CHECK(0 == hwloc_topology_load(topology));
    opal_hwloc_topology = topology;
    for (int i = 0; i < HCAS; ++i) {
        char name[16];

        snprintf(name, sizeof(name), "mlx5_%d", i);
        name_device(&devices[i], name);
        contexts[i].device = &devices[i];
        hcas[i].context = &contexts[i];
        mca_btl_umr_topology_device(&devices[i], &hcas[i]);
    }
    name_device(&devices[HCAS], "mlx5_77");
}

static void check_nodes(void)
{
    mca_btl_umr_device_t other;

    CHECK(0 == hcas[0].numa && 0 == hcas[1].numa && 1 == hcas[2].numa);
    CHECK(10 == hcas[0].distance[0] && 21 == hcas[0].distance[1] && 31 == hcas[0].distance[2]);
    CHECK(21 == hcas[2].distance[0] && 10 == hcas[2].distance[1] && 17 == hcas[2].distance[2]);
    /* By sysfs, since there are two at its place. */
    CHECK(3 == hcas[3].numa && 10 == hcas[3].distance[3] && 20 == hcas[3].distance[5]);
    /* A node that is not in the topology; a device that is not. */
    CHECK(20 == hcas[0].distance[4]);
    mca_btl_umr_topology_device(&devices[HCAS], &other);
    CHECK(-1 == other.numa && MCA_BTL_UMR_FAR == other.distance[0]);
}

static void check_process(void)
{
    cpus = 0x1;
    CHECK(0 == mca_btl_umr_topology_process(&devices[0]));
    CHECK(21 == mca_btl_umr_topology_process(&devices[2]));
    CHECK(MCA_BTL_UMR_FAR == mca_btl_umr_topology_process(&devices[HCAS]));
    cpus = 0x30;
    CHECK(31 == mca_btl_umr_topology_process(&devices[0]));
    CHECK(17 == mca_btl_umr_topology_process(&devices[2]));
    CHECK(20 == mca_btl_umr_topology_process(&devices[3]));
    /* CPUs of several nodes; of none that is known; unknown. */
    cpus = 0x5;
    CHECK(MCA_BTL_UMR_FAR == mca_btl_umr_topology_process(&devices[0]));
    cpus = 0x80;
    CHECK(0 == mca_btl_umr_topology_process(&devices[3]));
    CHECK(20 == mca_btl_umr_topology_process(&devices[0]));
    cpus = 0x100;
    CHECK(MCA_BTL_UMR_FAR == mca_btl_umr_topology_process(&devices[0]));
    cpus = 0;
    CHECK(MCA_BTL_UMR_FAR == mca_btl_umr_topology_process(&devices[0]));
}

static uint32_t of(int hca, int gpu)
{
    return mca_btl_umr_topology_gpu(&hcas[hca], gpu);
}

static void check_gpus(void)
{
    /* The same switch, then the same host bridge, then another node. */
    CHECK(of(1, 0) < of(0, 0) && of(0, 0) < of(2, 0));
    /* The same node, by another host bridge. */
    CHECK(of(2, 1) < of(0, 1) && of(0, 1) == of(1, 1));
    /* No common bridge: by the distance of the nodes. */
    CHECK(of(2, 2) < of(0, 2) && of(0, 2) == of(1, 2));
    CHECK(of(0, 2) < MCA_BTL_UMR_GPU_FAR);
    CHECK(of(3, 4) < of(0, 4));
    CHECK(MCA_BTL_UMR_GPU_FAR == of(0, 3));
    CHECK(MCA_BTL_UMR_GPU_FAR == of(0, -1));
    CHECK(MCA_BTL_UMR_GPU_FAR == of(0, OPAL_UMRDDT_GPU_RDMA_DEVICES));
}

int main(void)
{
    load();
    check_nodes();
    check_process();
    check_gpus();
    hwloc_topology_destroy(opal_hwloc_topology);
    printf("%lu checks\n", checks);
    return 0;
}
