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
                 "The devices to use, a list of NAME or NAME:PORT with commas in between "
                 "(mlx5_0,mlx5_1:2), the preferred one first; without a port, all active ones. "
                 "Empty: all mlx5 devices, those nearest to this process first, and among equals "
                 "one for each process in turn. One that is not mlx5 is used where it is named: "
                 "it has no UMR, so a message takes a write for each run of bytes",
                 MCA_BASE_VAR_TYPE_STRING, OPAL_INFO_LVL_3, &mca_btl_umr_device_param);

    p->max_hcas = 4;
    register_var("max_hcas",
                 "Largest number of HCAs, that is, active ports of devices, that a process uses. A "
                 "message goes by the one that is nearest to the sender's buffer. HCAs share "
                 "what other parameters give to a process: mkeys, keys kept, registered memory",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_4, &p->max_hcas);

    p->gid_index = -1;
    register_var("gid_index",
                 "Index of the port's GID to use. -1: on Ethernet the first RoCE v2 GID of an IPv4 "
                 "address, else the first RoCE v2 GID, else 0; on InfiniBand 0",
                 MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_4, &p->gid_index);

    p->mkeys = 64;
    register_var("mkeys", "Number of mkeys to make at start-up (each costs a system call)",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_5, &p->mkeys);

    p->mkeys_step = 32;
    register_var("mkeys_step", "Number of mkeys to make at a time when more are needed",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_5, &p->mkeys_step);

    p->mkeys_low = 50;
    register_var(
        "mkeys_low",
        "A helper thread makes more mkeys when fewer are free than this part of btl_umr_mkeys, "
        "in per cent, for what is sent or for what is received. 0: no such thread; the "
        "message that finds none has to make them",
        MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_5, &p->mkeys_low);

    p->mkeys_max = 4096;
    register_var("mkeys_max",
                 "Largest number of mkeys of this process. One half serves what it sends, the "
                 "other what it receives",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_5, &p->mkeys_max);

    p->max_entries = 0;
    register_var(
        "max_entries",
        "Largest number of contiguous pieces that one mkey holds where its list is part of the work "
        "request. 0: what the device gives (52 where its send queue takes descriptors of 1 KiB, at "
        "least 4)",
        MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_6, &p->max_entries);

    p->long_entries = 16384;
    register_var("long_entries",
                 "Largest number of contiguous pieces that one mkey holds where its list is given "
                 "to the device in memory, as far as the device can. 0: no such lists",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_6, &p->long_entries);

    p->long_mkeys = 256;
    register_var("long_mkeys",
                 "Largest number of mkeys for such lists, which are made when they are first "
                 "needed. One half serves what is sent, the other what is received; a message that "
                 "finds none takes several of the others",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_6, &p->long_mkeys);

    p->list_bytes = (size_t) 1 << 20;
    register_var("list_bytes",
                 "Registered memory for lists that are on their way to the device, in bytes. The "
                 "longest list has 16 bytes for each piece",
                 MCA_BASE_VAR_TYPE_SIZE_T, OPAL_INFO_LVL_7, &p->list_bytes);

    p->strided = true;
    register_var("strided",
                 "Map equal blocks at equal distances, both below 64 KiB, as one entry that the "
                 "device repeats",
                 MCA_BASE_VAR_TYPE_BOOL, OPAL_INFO_LVL_6, &p->strided);

    p->nested = true;
    register_var("nested",
                 "Map what one mkey cannot hold to several, and these to one more, so that it is "
                 "one key",
                 MCA_BASE_VAR_TYPE_BOOL, OPAL_INFO_LVL_6, &p->nested);

    p->max_key_bytes = (size_t) 1 << 30;
    register_var("max_key_bytes", "Largest number of bytes that one key covers, below 2 GiB",
                 MCA_BASE_VAR_TYPE_SIZE_T, OPAL_INFO_LVL_6, &p->max_key_bytes);

    p->write_pieces = 14;
    register_var("write_pieces",
                 "Largest number of contiguous pieces that one RDMA write gathers where a message "
                 "goes without mkeys, as far as the device can. A place in the send queue of each "
                 "peer has 16 bytes for each, in steps of powers of 2: 64 bytes for 2, 256 for 14, "
                 "512 for 30",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_6, &p->write_pieces);

    p->sq_depth = 64;
    register_var("sq_depth",
                 "Number of RDMA writes in flight to one peer; each takes its place in the send "
                 "queue (btl_umr_write_pieces) and 64 bytes for its completion",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_6, &p->sq_depth);

    p->rq_depth = 128;
    register_var("rq_depth", "Number of messages from one peer that may be on their way",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_6, &p->rq_depth);

    p->srq_depth = 255;
    register_var("srq_depth",
                 "Number of messages from all peers together that may be on their way: receives "
                 "that the peers share. 0, or a device without shared receive queues: each peer "
                 "has btl_umr_rq_depth receives of its own, which costs memory for each",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_6, &p->srq_depth);

    p->reg_cache_size = 0;
    register_var("reg_cache_size",
                 "Largest number of bytes that are registered with the device at any time, in use "
                 "or kept for later. 0: half of the memory of the machine divided by the number "
                 "of processes of the job on it",
                 MCA_BASE_VAR_TYPE_SIZE_T, OPAL_INFO_LVL_4, &p->reg_cache_size);

    p->gpu_regs = 256;
    register_var("gpu_regs",
                 "Largest number of registrations of GPU memory that are kept, in use or for later "
                 "messages. Each is an allocation, or a part of one where the HCA has not room for "
                 "all",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_6, &p->gpu_regs);

    p->gpu_flush = MCA_BTL_UMR_GPU_FLUSH_AUTO;
    register_var("gpu_flush",
                 "What is done before a receive into GPU memory is complete. 0: what the device "
                 "asks for; 1: cuFlushGPUDirectRDMAWrites; 2: a read of the memory by the HCA; 3: "
                 "nothing, which is for tests, as the GPU may see old bytes then",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_9, &p->gpu_flush);

    p->reg_gap = (size_t) 256 << 10;
    register_var("reg_gap",
                 "Pieces of a buffer that are at most this many bytes apart are registered "
                 "together, with what lies between them",
                 MCA_BASE_VAR_TYPE_SIZE_T, OPAL_INFO_LVL_8, &p->reg_gap);

    p->timeout = 18;
    register_var("timeout",
                 "InfiniBand acknowledgement timeout: 4.096 us * 2^timeout, 1 to 31 (0: for ever)",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_6, &p->timeout);

    p->retry_count = 7;
    register_var("retry_count", "Number of times that the device sends again, 0 to 7",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_6, &p->retry_count);

    p->mtu = 0;
    register_var("mtu",
                 "Path MTU in bytes (256, 512, 1024, 2048 or 4096). 0: the smaller one of the two "
                 "ports'",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_6, &p->mtu);

    p->key_cache = 1024;
    register_var("key_cache",
                 "Number of sets of keys that stay mapped after their message, for the next one "
                 "with the same datatype and buffer. 0: none",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_5, &p->key_cache);

    p->plain_keys = true;
    register_var("plain_keys",
                 "Let peers write into contiguous pieces through the key of their registration, "
                 "which lives as long as the registration does. 0: only through mkeys, which the "
                 "HCA refuses as soon as the message is over; costs a mapping (UMR) more",
                 MCA_BASE_VAR_TYPE_BOOL, OPAL_INFO_LVL_7, &p->plain_keys);

    p->rebuilds = 8;
    register_var(
        "rebuilds",
        "Times in a row that a queue pair which failed is made anew, after 4 messages that "
        "had to do without it, then 8, 16, ... A new one that has done some hundred "
        "operations counts as good. 0: what failed is not used again",
        MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_5, &p->rebuilds);

    p->fork_support = -1;
    register_var("fork_support",
                 "Keep memory that the device uses from the children of a fork (ibv_fork_init), "
                 "which else may take the pages of this process along. 1: always, and no device "
                 "without it; 0: never; -1: on kernels before Linux 5.12, where it can be had",
                 MCA_BASE_VAR_TYPE_INT, OPAL_INFO_LVL_5, &p->fork_support);

    p->selftest = true;
    register_var("selftest",
                 "Prove the device before it is used: gather and scatter some bytes through two "
                 "mkeys, look at every byte, and see that an invalidated key is refused",
                 MCA_BASE_VAR_TYPE_BOOL, OPAL_INFO_LVL_5, &p->selftest);

    p->rdma = false;
    register_var("rdma",
                 "Offer the HCA to other users of Open MPI's btls, which write, read and add to "
                 "contiguous memory of their peers: one-sided communication by osc/rdma. Needs "
                 "pml/ob1, and a queue pair to each process of the job from MPI_Init on",
                 MCA_BASE_VAR_TYPE_BOOL, OPAL_INFO_LVL_4, &p->rdma);

    p->rdma_peers = 256;
    register_var("rdma_peers", "Number of processes of the largest job that btl_umr_rdma is for",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_6, &p->rdma_peers);

    p->rdma_depth = 64;
    register_var("rdma_depth", "Number of operations of btl_umr_rdma in flight to one peer",
                 MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_6, &p->rdma_depth);

    p->check = 0;
    register_var(
        "check",
        "For tests: look in one of so many passes of progress, and at the end, whether the "
        "books of the HCA agree with its lists, and end the process where they do not. "
        "0: never",
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
