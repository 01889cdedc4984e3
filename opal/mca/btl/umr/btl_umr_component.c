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
 * The component and its MCA parameters.
 */

#include "opal_config.h"

#include <stdlib.h>
#include <string.h>

#include "opal/mca/base/base.h"
#include "opal/mca/base/mca_base_component_repository.h"
#include "opal/util/output.h"
#include "opal/util/show_help.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_gpu_flush.h"
#include "opal/mca/btl/umr/btl_umr_module.h"
#include "umrddt_help.h"
#include "umrddt_params.h"

static int mca_btl_umr_component_register(void);
static int mca_btl_umr_component_open(void);
static int mca_btl_umr_component_close(void);
static mca_btl_base_module_t **
mca_btl_umr_component_init(int *num_btls, bool enable_progress_threads, bool enable_mpi_threads);

mca_btl_umr_component_t mca_btl_umr_component = {
    .super =
        {
            .btl_version =
                {
                    MCA_BTL_DEFAULT_VERSION("umr"),
                    .mca_open_component = mca_btl_umr_component_open,
                    .mca_close_component = mca_btl_umr_component_close,
                    .mca_register_component_params = mca_btl_umr_component_register,
                },
            .btl_data = {MCA_BASE_METADATA_PARAM_NONE},
            .btl_init = mca_btl_umr_component_init,
            .btl_progress = mca_btl_umr_module_progress, /* of the module, if there is one */
        },
    .api = MCA_BTL_UMR_HCA_API,
    .ops = &mca_btl_umr_hca_ops,
};

mca_btl_umr_params_t mca_btl_umr_params;

/*
 * Storage of the parameter's string. The MCA base frees and clears strings when it deregisters the
 * variables, possibly long before the HCA is used, so the device name is copied.
 */
static char *mca_btl_umr_device_param;

/*
 * Two frameworks may have the component open at the same time: the btl framework, and the copy of
 * the framework in which pml/umrddt looks for the HCA. Both share the same HCAs.
 */
static unsigned int mca_btl_umr_opened;

static void register_var(const char *name, const char *help, mca_base_var_type_t type,
                         mca_base_var_info_lvl_t level, void *storage)
{
    umrddt_params_register(&mca_btl_umr_component.super.btl_version, name, help, type, NULL, level,
                           storage);
}

static int mca_btl_umr_component_register(void)
{
    mca_btl_umr_params_t *p = &mca_btl_umr_params;
    const char *built_for;

    if (!umrddt_right_release(&built_for)) {
        return OPAL_ERR_NOT_AVAILABLE; /* pml/umrddt reports the reason */
    }

    if (0 < mca_btl_umr_opened) {
        /* Registered already, and perhaps in use. */
        return OPAL_SUCCESS;
    }
    umrddt_help_find();
    mca_btl_umr_device_param = NULL;
    register_var("device",
                 "Devices to use: a list of NAME or NAME:PORT separated by commas "
                 "(mlx5_0,mlx5_1:2), the preferred one first; without a port, all "
                 "active ones. Empty: all mlx5 devices, those nearest to this "
                 "process first, equal ones assigned to the processes in turn. A "
                 "device that is not mlx5 is used only if it is named; it has no "
                 "UMR, so a message needs one write for each run of bytes",
                 MCA_BASE_VAR_TYPE_STRING, OPAL_INFO_LVL_3, &mca_btl_umr_device_param);

    p->max_hcas = 4;
    register_var("max_hcas",
                 "Largest number of HCAs (active ports of devices) that a process "
                 "uses. A message uses the one nearest to the sender's buffer. HCAs "
                 "share the limits of a process: mkeys, cached keys, registered "
                 "memory",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_4, &p->max_hcas);

    p->gid_index = -1;
    register_var("gid_index",
                 "Index of the port's GID to use. -1: on Ethernet the first RoCE v2 GID of an IPv4 "
                 "address, else the first RoCE v2 GID, else 0; on InfiniBand 0",
                 MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_4, &p->gid_index);

    p->mkeys = 64;
    register_var("mkeys", "Number of mkeys to create at start-up (each costs a system call)",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_5, &p->mkeys);

    p->mkeys_step = 32;
    register_var("mkeys_step", "Number of mkeys to create at a time when more are needed",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_5, &p->mkeys_step);

    p->mkeys_low = 50;
    register_var("mkeys_low",
                 "A helper thread creates more mkeys when the free ones for sends or "
                 "for receives are fewer than this percentage of btl_umr_mkeys. 0: "
                 "no helper thread; a message that finds none creates them",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_5, &p->mkeys_low);

    p->mkeys_max = 4096;
    register_var("mkeys_max",
                 "Largest number of mkeys of this process. One half is for sends, "
                 "the other for receives",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_5, &p->mkeys_max);

    p->max_entries = 0;
    register_var("max_entries",
                 "Largest number of contiguous pieces of one mkey whose list is "
                 "inline in the work request. 0: the device's limit (52 if its send "
                 "queue accepts descriptors of 1 KiB, at least 4)",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_6, &p->max_entries);

    p->long_entries = 16384;
    register_var("long_entries",
                 "Largest number of contiguous pieces of one mkey whose list is in "
                 "memory (non-inline), within the device's limit. 0: no such lists",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_6, &p->long_entries);

    p->long_mkeys = 256;
    register_var("long_mkeys",
                 "Largest number of mkeys for non-inline lists, which are created "
                 "when first needed. One half is for sends, the other for receives; "
                 "a message that finds none uses several of the others. Those that "
                 "wait for their destruction do not count",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_6, &p->long_mkeys);

    p->list_bytes = (size_t) 1 << 20;
    register_var("list_bytes",
                 "Registered memory, in bytes, for non-inline lists that the device "
                 "has not read yet. The longest list has 16 bytes for each piece",
                 MCA_BASE_VAR_TYPE_SIZE_T, OPAL_INFO_LVL_7, &p->list_bytes);

    p->strided = true;
    register_var("strided",
                 "Map equal blocks at equal distances, both below 64 KiB, as one entry that the "
                 "device repeats",
                 MCA_BASE_VAR_TYPE_BOOL, OPAL_INFO_LVL_6, &p->strided);

    p->nested = true;
    register_var("nested",
                 "If one mkey cannot hold a layout, map several, and one more over "
                 "them, so that the layout has one key",
                 MCA_BASE_VAR_TYPE_BOOL, OPAL_INFO_LVL_6, &p->nested);

    p->max_key_bytes = (size_t) 1 << 30;
    register_var("max_key_bytes", "Largest number of bytes that one key covers, below 2 GiB",
                 MCA_BASE_VAR_TYPE_SIZE_T, OPAL_INFO_LVL_6, &p->max_key_bytes);

    p->write_pieces = 14;
    register_var("write_pieces",
                 "Largest number of contiguous pieces that one RDMA write gathers "
                 "for a message without mkeys, within the device's limit. An entry "
                 "of each peer's send queue has 16 bytes for each piece, in powers "
                 "of 2: 64 bytes for 2 pieces, 256 for 14, 512 for 30",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_6, &p->write_pieces);

    p->sq_depth = 64;
    register_var("sq_depth",
                 "Number of RDMA writes in flight to one peer; each needs an entry "
                 "of the send queue (btl_umr_write_pieces) and 64 bytes for its "
                 "completion",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_6, &p->sq_depth);

    p->rq_depth = 128;
    register_var("rq_depth", "Number of messages from one peer that may be in flight",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_6, &p->rq_depth);

    p->srq_depth = 255;
    register_var("srq_depth",
                 "Number of messages from all peers together that may be in flight: "
                 "receives that the peers share. 0, or a device without shared "
                 "receive queues: each peer has btl_umr_rq_depth receives of its own",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_6, &p->srq_depth);

    p->reg_cache_size = 0;
    register_var("reg_cache_size",
                 "Largest number of bytes that are registered with the device at any "
                 "time, in use or cached. 0: half of the machine's memory divided by "
                 "the number of this job's processes on it",
                 MCA_BASE_VAR_TYPE_SIZE_T, OPAL_INFO_LVL_4, &p->reg_cache_size);

    p->gpu_regs = 256;
    register_var("gpu_regs",
                 "Largest number of registrations of GPU memory, in use or cached. "
                 "Each is an allocation, or a part of one if the HCA cannot map all "
                 "of it",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_6, &p->gpu_regs);

    p->gpu_flush = MCA_BTL_UMR_GPU_FLUSH_AUTO;
    register_var("gpu_flush",
                 "Action before a receive into GPU memory is complete. 0: as the "
                 "device requires; 1: cuFlushGPUDirectRDMAWrites; 2: a read of the "
                 "memory by the HCA; 3: nothing (for tests: the GPU may see old "
                 "bytes)",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_9, &p->gpu_flush);

    p->reg_gap = (size_t) 256 << 10;
    register_var("reg_gap",
                 "Pieces of a buffer that are at most this many bytes apart are "
                 "registered together, including the memory between them",
                 MCA_BASE_VAR_TYPE_SIZE_T, OPAL_INFO_LVL_8, &p->reg_gap);

    p->timeout = 18;
    register_var("timeout",
                 "InfiniBand acknowledgement timeout: 4.096 us * 2^timeout, 1 to 31 "
                 "(0: infinite)",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_6, &p->timeout);

    p->retry_count = 7;
    register_var("retry_count", "Number of retransmissions by the device, 0 to 7",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_6, &p->retry_count);

    p->mtu = 0;
    register_var("mtu",
                 "Path MTU in bytes (256, 512, 1024, 2048 or 4096). 0: the smaller one of the two "
                 "ports'",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_6, &p->mtu);

    p->key_cache = 1024;
    register_var("key_cache",
                 "Number of key sets that stay mapped after their message, for the "
                 "next one with the same datatype and buffer. 0: none",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_5, &p->key_cache);

    p->plain_keys = true;
    register_var("plain_keys",
                 "Let peers write into contiguous pieces by the key of the "
                 "registration, which stays valid as long as the registration. 0: "
                 "only by mkeys, which the HCA refuses once the message is complete; "
                 "costs one more mapping (UMR)",
                 MCA_BASE_VAR_TYPE_BOOL, OPAL_INFO_LVL_7, &p->plain_keys);

    p->rebuilds = 8;
    register_var("rebuilds",
                 "Number of consecutive attempts to replace a failed queue pair, "
                 "after 4 messages without it, then 8, 16, ... A new one counts as "
                 "working after some hundred operations. 0: a failed one is not "
                 "replaced",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_5, &p->rebuilds);

    p->fork_support = -1;
    register_var("fork_support",
                 "Keep pages that the device uses from child processes "
                 "(ibv_fork_init); otherwise the child may get the page, and the "
                 "device the old one. 1: always, and no device without it; 0: never; "
                 "-1: on kernels before Linux 5.12, if available",
                 MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_5, &p->fork_support);

    p->selftest = true;
    register_var("selftest",
                 "Test the device before use: gather and scatter bytes through two "
                 "mkeys, compare all bytes, and verify that an invalidated key is "
                 "refused",
                 MCA_BASE_VAR_TYPE_BOOL, OPAL_INFO_LVL_5, &p->selftest);

    p->rdma = false;
    register_var("rdma",
                 "Offer the HCA to other users of Open MPI's btl framework for "
                 "one-sided communication (osc/rdma): writes, reads and atomics on "
                 "contiguous memory. Needs pml/ob1, and a queue pair to each process "
                 "of the job from MPI_Init on",
                 MCA_BASE_VAR_TYPE_BOOL, OPAL_INFO_LVL_4, &p->rdma);

    p->rdma_peers = 256;
    register_var("rdma_peers", "Largest job, in processes, for which btl_umr_rdma is used",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_6, &p->rdma_peers);

    p->rdma_depth = 64;
    register_var("rdma_depth", "Number of operations of btl_umr_rdma in flight to one peer",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_6, &p->rdma_depth);

    p->check = 0;
    register_var("check",
                 "For tests: verify that counters and lists of the HCA agree in one "
                 "of this number of progress passes, and at the end; abort on a "
                 "violation. 0: never",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_9, &p->check);
    umrddt_params_unknown("btl_umr_");

    return OPAL_SUCCESS;
}

/** Use @p used instead of the user's value, and report it. */
static void complain(const char *name, long long given, long long used)
{
    opal_show_help("help-btl-umr.txt", "bad parameter", true, name, given, used);
}

static void check_uint(const char *name, unsigned int *value, unsigned int low, unsigned int high)
{
    unsigned int good = *value < low ? low : *value > high ? high : *value;

    if (good != *value) {
        complain(name, *value, good);
        *value = good;
    }
}

static void check_size(const char *name, size_t *value, size_t low, size_t high)
{
    size_t good = *value < low ? low : *value > high ? high : *value;

    if (good != *value) {
        complain(name, (long long) *value, (long long) good);
        *value = good;
    }
}

void mca_btl_umr_params_check(void)
{
    mca_btl_umr_params_t *p = &mca_btl_umr_params;

    check_uint("btl_umr_mkeys_max", &p->mkeys_max, 2, 1u << 20);
    check_uint("btl_umr_mkeys", &p->mkeys, 2, 1u << 20);
    check_uint("btl_umr_mkeys_step", &p->mkeys_step, 1, 1u << 20);
    check_uint("btl_umr_mkeys_low", &p->mkeys_low, 0, 100);
    if (0 != p->max_entries) {
        check_uint("btl_umr_max_entries", &p->max_entries, 2, 52);
    }
    check_uint("btl_umr_long_entries", &p->long_entries, 0, 65532);
    check_uint("btl_umr_long_mkeys", &p->long_mkeys, 2, 1u << 20);
    check_size("btl_umr_list_bytes", &p->list_bytes, 4096, (size_t) 1 << 30);
    p->list_bytes &= ~(size_t) 4095;
    /* libmlx5 adds the lengths of a list in an int. */
    check_size("btl_umr_max_key_bytes", &p->max_key_bytes, 4096, ((size_t) 1 << 31) - 4096);
    check_uint("btl_umr_gpu_regs", &p->gpu_regs, 1, 1u << 20);
    check_uint("btl_umr_gpu_flush", &p->gpu_flush, 0, MCA_BTL_UMR_GPU_FLUSH_MAX - 1);
    check_size("btl_umr_reg_gap", &p->reg_gap, 0, (size_t) 1 << 40);
    check_uint("btl_umr_key_cache", &p->key_cache, 0, 1u << 20);
    check_uint("btl_umr_rebuilds", &p->rebuilds, 0, 16);
    check_uint("btl_umr_max_hcas", &p->max_hcas, 1, MCA_BTL_UMR_MAX_HCAS);
    check_uint("btl_umr_write_pieces", &p->write_pieces, 1, 30);
    check_uint("btl_umr_sq_depth", &p->sq_depth, 2, 8192);
    check_uint("btl_umr_rq_depth", &p->rq_depth, 1, 8192);
    check_uint("btl_umr_srq_depth", &p->srq_depth, 0, 16383);
    check_uint("btl_umr_timeout", &p->timeout, 0, 31);
    check_uint("btl_umr_retry_count", &p->retry_count, 0, 7);
    check_uint("btl_umr_rdma_depth", &p->rdma_depth, 1, 8192);
    if (0 != p->mtu && 256 != p->mtu && 512 != p->mtu && 1024 != p->mtu && 2048 != p->mtu
        && 4096 != p->mtu) {
        complain("btl_umr_mtu", p->mtu, 0);
        p->mtu = 0;
    }
    if (-1 > p->fork_support || 1 < p->fork_support) {
        complain("btl_umr_fork_support", p->fork_support, -1);
        p->fork_support = -1;
    }
    if (-1 > p->gid_index || 255 < p->gid_index) {
        complain("btl_umr_gid_index", p->gid_index, -1);
        p->gid_index = -1;
    }
}

static int mca_btl_umr_component_open(void)
{
    if (0 < mca_btl_umr_opened) {
        /* Open MPI's repository of components counts the first open only, and would unload the
         * component at the first close. */
        (void) mca_base_component_repository_retain_component(
            mca_btl_umr_component.super.btl_version.mca_type_name,
            mca_btl_umr_component.super.btl_version.mca_component_name);
        ++mca_btl_umr_opened;
        return OPAL_SUCCESS;
    }
    mca_btl_umr_params.device =
        strdup(NULL == mca_btl_umr_device_param ? "" : mca_btl_umr_device_param);
    if (NULL == mca_btl_umr_params.device) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    mca_btl_umr_construct();
    mca_btl_umr_opened = 1;
    return OPAL_SUCCESS;
}

static int mca_btl_umr_component_close(void)
{
    if (0 == mca_btl_umr_opened || 0 < --mca_btl_umr_opened) {
        return OPAL_SUCCESS;
    }
    mca_btl_umr_destruct();
    free(mca_btl_umr_params.device);
    mca_btl_umr_params.device = NULL;
    return OPAL_SUCCESS;
}

/**
 * The module if the parameter is set. Otherwise, or if it is not available, an empty array. NULL
 * would make the framework close the component that pml/umrddt may use later. No device is opened
 * here in that case.
 */
static mca_btl_base_module_t **
mca_btl_umr_component_init(int *num_btls, bool enable_progress_threads, bool enable_mpi_threads)
{
    mca_btl_base_module_t **modules = calloc(1, sizeof(*modules));

    (void) enable_progress_threads;
    (void) enable_mpi_threads;
    *num_btls = 0;
    if (NULL != modules && mca_btl_umr_params.rdma && OPAL_SUCCESS == mca_btl_umr_module_open()) {
        modules[0] = &mca_btl_umr_module.super;
        *num_btls = 1;
    }
    return modules;
}
