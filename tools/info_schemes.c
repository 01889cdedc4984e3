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
 * The scheme of messages on this machine, with pml_umrddt_scheme = auto (by the rules of
 * opal/mca/common/umrddt_select/umrddt_select_rules.h), and the reason.
 */

#include "info.h"

#include <stdio.h>
#include <string.h>

/* One kind of messages. */
static void print_kind(const char *key, const char *what, const char *scheme, const char *why)
{
    if (info_json) {
        info_json_open(key, '{');
        info_json_text("scheme", scheme);
        info_json_text("why", why);
        info_json_close('}');
    } else {
        printf("  %s: %s: %s\n", what, scheme, why);
    }
}

/* The name of the base PML, for messages that are passed through. */
static const char *base_pml_name(const info_found_t *found)
{
    static char scheme[64];

    snprintf(scheme, sizeof(scheme), "pml/%s", found->pml);
    return scheme;
}

static void system_memory(const info_found_t *found)
{
    const char *what = "non-contiguous, system memory";
    bool enabled = 0 == strcmp("host", found->memory) || 0 == strcmp("all", found->memory);

    if (!found->hca) {
        print_kind("system", what, base_pml_name(found), "no HCA can be used");
    } else if (!enabled) {
        print_kind("system", what, base_pml_name(found),
                   "pml_umrddt_memory is gpu; with host or all umrddt uses the HCA");
    } else if (found->umr) {
        print_kind("system", what, "umr",
                   "the HCA gathers and scatters with mkeys; a first message may use direct");
    } else {
        print_kind("system", what, "direct",
                   "the HCA has no UMR: one RDMA write for each contiguous range");
    }
}

static void gpu_same_node(const info_found_t *found, const info_gpus_t *gpus)
{
    const char *what = "non-contiguous, GPUs of this node";

    (void) found;
    if (!gpus->shared) {
        print_kind("gpu_same_node", what, "packed",
                   "the compute mode of a GPU permits one process only, which excludes CUDA IPC");
    } else if (1 == gpus->count || gpus->peers) {
        print_kind("gpu_same_node", what, "ipc",
                   "the GPU of the receiver reads the memory of the sender (CUDA IPC)");
    } else {
        print_kind("gpu_same_node", what, "ipc, or packed",
                   "not all GPUs can access each other's memory");
    }
}

static void gpu_other_nodes(const info_found_t *found, const info_gpus_t *gpus)
{
    const char *what = "non-contiguous, GPUs of other nodes";

    if (!found->hca) {
        print_kind("gpu_other_nodes", what, "packed",
                   "no HCA can be used: GPUs pack, and the base PML transfers");
    } else if (!gpus->rdma || (!gpus->dmabuf && !gpus->peermem)) {
        print_kind(
            "gpu_other_nodes", what, "packed",
            "the HCA cannot register GPU memory: neither dma-buf nor nvidia_peermem is available");
    } else {
        print_kind("gpu_other_nodes", what, found->umr ? "umr" : "direct",
                   "the HCA gathers and scatters in GPU memory, if the kernel registers it");
    }
}

/* By the rule of ompi/mca/pml/umrddt/core/pml_umrddt_base_gpu.h. */
static void gpu_contiguous(const info_found_t *found)
{
    static const char pieces[] = "as non-contiguous ones";
    char scheme[128];

    if (0 == strcmp("yes", found->gpu)) {
        print_kind("gpu_contiguous", "contiguous, GPUs", base_pml_name(found),
                   "pml_umrddt_base_gpu is yes");
    } else if (0 == strcmp("no", found->gpu)) {
        print_kind("gpu_contiguous", "contiguous, GPUs", pieces, "pml_umrddt_base_gpu is no");
    } else if (found->cuda) {
        snprintf(scheme, sizeof(scheme), "%s; to other nodes %s", pieces, base_pml_name(found));
        print_kind("gpu_contiguous", "contiguous, GPUs", scheme,
                   "this Open MPI supports cudaMalloc memory of the current context");
    } else {
        print_kind("gpu_contiguous", "contiguous, GPUs", pieces,
                   "this Open MPI was built without CUDA, or its CUDA support is disabled");
    }
}

void info_schemes(const info_found_t *found, const info_gpus_t *gpus)
{
    bool gpu = 0 == strcmp("gpu", found->memory) || 0 == strcmp("all", found->memory);

    if (info_json) {
        info_json_open("schemes", '{');
    } else if (found->umrddt) {
        printf(
            "protocols with \"--mca pml umrddt\" and pml_umrddt_scheme = %s (if there is a tuning "
            "file of\numrddt_tune, it decides)\n",
            found->scheme);
    }
    if (found->umrddt && 0 != strcmp("auto", found->scheme)) {
        print_kind("named", "non-contiguous", found->scheme,
                   "by pml_umrddt_scheme; the base PML carries messages that it cannot carry");
        print_kind("rest", "all others", base_pml_name(found), "as without umrddt");
    } else if (found->umrddt) {
        system_memory(found);
        if (0 < gpus->count && gpu) {
            gpu_same_node(found, gpus);
            gpu_other_nodes(found, gpus);
            gpu_contiguous(found);
        }
        print_kind("rest", "all others", base_pml_name(found), "as without umrddt");
    }
    if (info_json) {
        info_json_close('}');
    }
}
