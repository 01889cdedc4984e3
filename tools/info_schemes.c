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
static void say(const char *key, const char *what, const char *scheme, const char *why)
{
    if (info_json) {
        info_json_open(key, '{');
        info_json_text("way", scheme);
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

static void host_memory(const info_found_t *found)
{
    const char *what = "in pieces, system memory";
    bool wanted = 0 == strcmp("host", found->memory) || 0 == strcmp("all", found->memory);

    if (!found->hca) {
        say("host", what, base_pml_name(found), "no HCA can be used");
    } else if (!wanted) {
        say("host", what, base_pml_name(found),
            "pml_umrddt_memory is gpu; with host, or all, the HCA does it");
    } else if (found->umr) {
        say("host", what, "umr",
            "the HCA gathers and scatters by keys; a first message may go direct");
    } else {
        say("host", what, "direct", "the HCA has no UMR: a write for each run of bytes");
    }
}

static void gpu_beside(const info_found_t *found, const info_gpus_t *gpus)
{
    const char *what = "in pieces, GPUs of this host";

    (void) found;
    if (!gpus->shared) {
        say("gpu_same_host", what, "packed",
            "the compute mode of a GPU lets one process use it, so CUDA IPC cannot be");
    } else if (1 == gpus->count || gpus->peers) {
        say("gpu_same_host", what, "ipc",
            "a GPU of the receiver reads the sender's memory (CUDA IPC)");
    } else {
        say("gpu_same_host", what, "ipc, or packed",
            "not every GPU reaches the memory of each other one");
    }
}

static void gpu_away(const info_found_t *found, const info_gpus_t *gpus)
{
    const char *what = "in pieces, GPUs of other hosts";

    if (!found->hca) {
        say("gpu_other_hosts", what, "packed",
            "no HCA can be used: GPUs pack, and the base PML carries it");
    } else if (!gpus->rdma || (!gpus->dmabuf && !gpus->peermem)) {
        say("gpu_other_hosts", what, "packed",
            "the HCA cannot be given memory of the GPUs: neither dma-bufs nor nvidia_peermem");
    } else {
        say("gpu_other_hosts", what, found->umr ? "umr" : "direct",
            "the HCA gathers and scatters in memory of the GPUs, if the kernel registers it");
    }
}

/* By the rule of ompi/mca/pml/umrddt/core/pml_umrddt_base_gpu.h. */
static void gpu_contiguous(const info_found_t *found)
{
    static const char pieces[] = "as those in pieces";
    char scheme[128];

    if (0 == strcmp("yes", found->gpu)) {
        say("gpu_contiguous", "in one piece, GPUs", base_pml_name(found),
            "pml_umrddt_base_gpu is yes");
    } else if (0 == strcmp("no", found->gpu)) {
        say("gpu_contiguous", "in one piece, GPUs", pieces, "pml_umrddt_base_gpu is no");
    } else if (found->cuda) {
        snprintf(scheme, sizeof(scheme), "%s; to other nodes %s", pieces, base_pml_name(found));
        say("gpu_contiguous", "in one piece, GPUs", scheme,
            "this Open MPI takes cudaMalloc's memory of the current context by itself");
    } else {
        say("gpu_contiguous", "in one piece, GPUs", pieces,
            "this Open MPI was built without CUDA, or told not to use it");
    }
}

void info_schemes(const info_found_t *found, const info_gpus_t *gpus)
{
    bool gpu = 0 == strcmp("gpu", found->memory) || 0 == strcmp("all", found->memory);

    if (info_json) {
        info_json_open("ways", '{');
    } else if (found->umrddt) {
        printf(
            "with \"--mca pml umrddt\", and %s as pml_umrddt_scheme, messages go (where umrddt_tune "
            "has\nmeasured this machine, its tuning file decides)\n",
            found->scheme);
    }
    if (found->umrddt && 0 != strcmp("auto", found->scheme)) {
        say("named", "in pieces", found->scheme,
            "pml_umrddt_scheme names it; what it cannot do goes by the base PML");
        say("rest", "all others", base_pml_name(found), "as without umrddt");
    } else if (found->umrddt) {
        host_memory(found);
        if (0 < gpus->count && gpu) {
            gpu_beside(found, gpus);
            gpu_away(found, gpus);
            gpu_contiguous(found);
        }
        say("rest", "all others", base_pml_name(found), "as without umrddt");
    }
    if (info_json) {
        info_json_close('}');
    }
}
