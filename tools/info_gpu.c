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
 * The GPUs of this machine, the connections between them, and whether an HCA can access their
 * memory. Queries the driver without a context.
 */

#include "opal_config.h"

#include "info.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "opal/constants.h"

#include "opal/mca/common/umrddt_gpu/driver/umrddt_gpu_driver.h"
#include "umrddt_cuda_all.h"

/** More of them are counted, and not listed. */
#define GPUS_MAX 16

static const umrddt_cuda_all_t *driver;

static int attribute(CUdevice device, CUdevice_attribute which)
{
    int value = 0;

    return CUDA_SUCCESS == driver->cuDeviceGetAttribute(&value, which, device) ? value : 0;
}

static int between(CUdevice a, CUdevice b, CUdevice_P2PAttribute which)
{
    int value = 0;

    return CUDA_SUCCESS == driver->cuDeviceGetP2PAttribute(&value, which, a, b) ? value : 0;
}

/* Of the kernel: whether the driver's modules are the open ones, which export dma-bufs. */
static const char *kernel_modules(void)
{
    FILE *file = fopen("/proc/driver/nvidia/version", "r");
    char line[256] = "";
    const char *kind = "unknown";

    if (NULL != file) {
        if (NULL != fgets(line, sizeof(line), file)) {
            kind = NULL != strstr(line, "Open Kernel Module") ? "open" : "proprietary";
        }
        fclose(file);
    }
    return kind;
}

static void one(CUdevice device, int i, info_gpus_t *gpus)
{
    char name[128] = "a GPU", pci[32] = "";
    bool rdma = 0 != attribute(device, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED);
    bool dmabuf = 0 != attribute(device, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED);
    int mode = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE);
    int capability = 10 * attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
                     + attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);

    (void) driver->cuDeviceGetName(name, sizeof(name), device);
    (void) driver->cuDeviceGetPCIBusId(pci, sizeof(pci), device);
    gpus->rdma = gpus->rdma && rdma;
    gpus->dmabuf = gpus->dmabuf && dmabuf;
    gpus->shared = gpus->shared && 0 == mode;
    if (info_json) {
        info_json_open(NULL, '{');
        info_json_number("number", i);
        info_json_text("name", name);
        info_json_text("pci", pci);
        info_json_number("compute_mode", mode);
        info_json_number("compute_capability", capability);
        info_json_bool("kernels", 0 < UMRDDT_KERNELS_FIRST && UMRDDT_KERNELS_FIRST <= capability);
        info_json_bool("gpudirect_rdma", rdma);
        info_json_bool("dma_buf", dmabuf);
        info_json_number(
            "flush_options",
            attribute(device, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS));
        info_json_number("writes_ordering",
                         attribute(device, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING));
        info_json_close('}');
        return;
    }
    printf("GPU %d: %s at %s\n", i, name, pci);
    printf("  HCAs can%s register its memory%s\n", rdma ? "" : "not",
           !rdma    ? " (the driver reports no GPUDirect RDMA)"
           : dmabuf ? ", as a dma-buf or by address"
                    : ", by address only: the driver exports no dma-buf");
    if (UMRDDT_KERNELS_FIRST > capability) {
        printf(
            "  NO GPU KERNELS for it: they need compute capability %d.%d, and it has %d.%d\n"
            "  what to do: build umrddt with a CUDA Toolkit that supports it (configure --with-cuda=DIR)\n",
            UMRDDT_KERNELS_FIRST / 10, UMRDDT_KERNELS_FIRST % 10, capability / 10, capability % 10);
    }
    if (0 != mode) {
        printf(
            "  its compute mode is not the default (nvidia-smi -q -d COMPUTE): processes may be unable "
            "to\n  share its memory\n");
    }
}

static void pairs(int count, info_gpus_t *gpus)
{
    if (info_json) {
        info_json_open("gpu_pairs", '[');
    }
    for (int a = 0; a < count; ++a) {
        for (int b = a + 1; b < count; ++b) {
            int can = 0;
            bool native = 0 != between(a, b, CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED);

            if (CUDA_SUCCESS != driver->cuDeviceCanAccessPeer(&can, a, b)) {
                can = 0;
            }
            gpus->peers = gpus->peers && 0 != can;
            if (info_json) {
                info_json_open(NULL, '{');
                info_json_number("a", a);
                info_json_number("b", b);
                info_json_bool("reach_each_other", 0 != can);
                info_json_bool("native_atomics", native);
                info_json_close('}');
            } else {
                printf("  GPU %d and %d %s\n", a, b,
                       0 == can ? "cannot access each other's memory"
                       : native ? "access each other's memory, with native atomics: NVLink"
                                : "access each other's memory, without native atomics: PCIe");
            }
        }
    }
    if (info_json) {
        info_json_close(']');
    }
}

void info_kernels(bool gpus)
{
    const char *kernels = UMRDDT_BUILT_KERNELS;

    if (info_json) {
        info_json_text("gpu_kernels", '\0' == *kernels ? NULL : kernels);
    } else if ('\0' != *kernels) {
        printf("GPU kernels: %s\n", kernels);
    } else if (!gpus) {
        printf(
            "no GPU kernels: this umrddt was built without them; machines with GPUs need them\n");
    } else {
        printf(
            "NO GPU KERNELS: this umrddt was built without them. A non-contiguous buffer in GPU memory\n"
            "  costs one copy by the driver for each of its blocks, or row of equal blocks.\n"
            "  what to do: build umrddt where the CUDA Toolkit is (configure --with-cuda=DIR), or from a release\n"
            "              tarball with PTX (--with-cuda=ptx). The summary of configure has the line\n"
            "              \"GPU kernels\". See install.rst.\n");
    }
}

void info_gpus(info_gpus_t *gpus)
{
    bool peermem = 0 == access("/sys/module/nvidia_peermem", F_OK);
    const char *why = "";
    int count = 0;

    memset(gpus, 0, sizeof(*gpus));
    if (OPAL_SUCCESS != umrddt_cuda_all_load(&driver)) {
        why = opal_umrddt_gpu_driver_why_not();
    } else if (CUDA_SUCCESS != driver->cuInit(0)
               || CUDA_SUCCESS != driver->cuDeviceGetCount(&count)) {
        why = "the CUDA driver finds no device";
    }
    gpus->count = count;
    gpus->peermem = peermem;
    gpus->rdma = gpus->dmabuf = gpus->shared = gpus->peers = 0 < count;
    info_kernels(0 < count);
    if (info_json) {
        info_json_text("no_gpus_because", 0 == count ? why : NULL);
        info_json_text("nvidia_kernel_modules", kernel_modules());
        info_json_bool("nvidia_peermem", peermem);
        info_json_open("gpus", '[');
    } else if (0 == count) {
        printf("no GPUs: %s\n", why);
    }
    count = GPUS_MAX < count ? GPUS_MAX : count;
    for (int i = 0; i < count; ++i) {
        one(i, i, gpus);
    }
    if (info_json) {
        info_json_close(']');
    }
    if (info_json || 0 < count) {
        pairs(count, gpus);
    }
    if (!info_json && 0 < count) {
        printf("  nvidia_peermem is %sloaded; kernel modules of the driver: %s\n",
               peermem ? "" : "not ", kernel_modules());
        if (gpus->rdma && !gpus->dmabuf && !peermem) {
            printf(
                "  what to do: modprobe nvidia-peermem, or install the open kernel modules of the "
                "driver, so that\n              HCAs can register GPU memory\n");
        }
    }
}
