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
 * The table of MCA parameters: members of mca_btl_umr_params_t, defaults, limits and help texts.
 * btl_umr_params.c registers them; docs/parameters.rst describes them.
 */

#ifndef MCA_BTL_UMR_PARAMS_H
#define MCA_BTL_UMR_PARAMS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Maximum number of HCAs of one process. */
#define MCA_BTL_UMR_MAX_HCAS 8

/** Values of btl_umr_gpu_flush. */
enum {
    MCA_BTL_UMR_GPU_FLUSH_AUTO,
    MCA_BTL_UMR_GPU_FLUSH_CALL,
    MCA_BTL_UMR_GPU_FLUSH_READ,
    MCA_BTL_UMR_GPU_FLUSH_OMIT, /**< for tests only: gives wrong data */
    MCA_BTL_UMR_GPU_FLUSH_MAX
};

/** Default of btl_umr_traffic_class on RoCE v2. */
#define MCA_BTL_UMR_ROCE_TRAFFIC_CLASS 106

/** Values of btl_umr_selftest. */
enum {
    MCA_BTL_UMR_SELFTEST_NONE,
    MCA_BTL_UMR_SELFTEST_ONCE, /**< refusals of old keys once a boot, device and firmware */
    MCA_BTL_UMR_SELFTEST_ALL,
    MCA_BTL_UMR_SELFTEST_MAX
};

/** Levels of btl_umr_verbose. */
#define MCA_BTL_UMR_LOG_SETUP 1u
#define MCA_BTL_UMR_LOG_LANE  10u
#define MCA_BTL_UMR_LOG_QP    50u

/* clang-format off */
/**
 * X(type, name, level, default, least, most, help). A number outside of least and most is replaced
 * by the nearest one, an INT by its default.
 */
#define MCA_BTL_UMR_PARAMS(X) \
    X(STRING, device, 3, "", 0, 0, \
      "Devices to use: a list of NAME or NAME:PORT separated by commas " \
      "(mlx5_0,mlx5_1:2); without a port, all active ones. Empty: all mlx5 " \
      "devices, without ports that are much slower than the fastest one or of " \
      "the slower kind of network. Those nearest to the process's GPU come " \
      "first, then to its CPUs, then the fastest; equal ones are assigned to " \
      "the processes in turn. A device that is not mlx5 is used only if it is " \
      "named; it has no UMR, so a message needs one write for each run of bytes") \
    X(UINT, max_hcas, 4, 4, 1, MCA_BTL_UMR_MAX_HCAS, \
      "Largest number of HCAs (active ports of devices) that a process uses. A " \
      "message uses the one nearest to the sender's buffer. HCAs share the " \
      "limits of a process: mkeys, cached keys, registered memory") \
    X(INT, gid_index, 4, -1, -1, 255, \
      "Index of the port's GID to use. -1: 0 on InfiniBand. On Ethernet the " \
      "first one of RoCE v2 (else v1): of an IPv4 address, else of a global IPv6 " \
      "address, else of a link-local one. A port without any is not used") \
    X(INT, pkey, 5, -1, -1, 0xffff, \
      "Partition (InfiniBand): the number of a pkey, with or without the bit of " \
      "full members (0x8001 or 1). -1: the first one of the port in which it is " \
      "a full member. Ignored on Ethernet") \
    X(UINT, service_level, 6, 0, 0, 15, \
      "InfiniBand service level of all packets; on Ethernet the priority of a " \
      "VLAN") \
    X(INT, traffic_class, 6, -1, -1, 255, \
      "Traffic class of packets with a global header: on RoCE v2 the upper six " \
      "bits are the DSCP. -1: 106 on RoCE v2 (DSCP 26, as UCX), else 0") \
    X(UINT, mkeys, 6, 64, 2, 1u << 20, \
      "Number of mkeys to create at start-up (each costs a system call)") \
    X(UINT, mkeys_step, 6, 32, 1, 1u << 20, \
      "Number of mkeys to create at a time when more are needed") \
    X(UINT, mkeys_low, 6, 50, 0, 100, \
      "A helper thread creates more mkeys when the free ones for sends or for " \
      "receives are fewer than this percentage of btl_umr_mkeys. 0: no helper " \
      "thread; a message that finds none creates them") \
    X(UINT, mkeys_max, 5, 4096, 2, 1u << 20, \
      "Largest number of mkeys of this process. One half is for sends, the " \
      "other for receives") \
    X(UINT, max_entries, 6, 0, 0, 52, \
      "Largest number of contiguous pieces of one mkey whose list is inline in " \
      "the work request. 0: the device's limit (52 if its send queue accepts " \
      "descriptors of 1 KiB, at least 4)") \
    X(UINT, long_entries, 6, 16384, 0, 65532, \
      "Largest number of contiguous pieces of one mkey whose list is in memory " \
      "(non-inline), within the device's limit. 0: no such lists") \
    X(UINT, long_mkeys, 6, 256, 2, 1u << 20, \
      "Largest number of mkeys for non-inline lists, which are created when " \
      "first needed. One half is for sends, the other for receives; a message " \
      "that finds none uses several of the others. Those that wait for their " \
      "destruction do not count") \
    X(SIZE, list_bytes, 7, (size_t) 1 << 20, 4096, (size_t) 1 << 30, \
      "Registered memory, in bytes, for non-inline lists that the device has " \
      "not read yet. The longest list has 16 bytes for each piece") \
    X(BOOL, strided, 6, true, 0, 0, \
      "Map equal blocks at equal distances, both below 64 KiB, as one entry " \
      "that the device repeats") \
    X(BOOL, nested, 6, true, 0, 0, \
      "If one mkey cannot hold a layout, map several, and one more over them, " \
      "so that the layout has one key") \
    X(SIZE, max_key_bytes, 6, (size_t) 1 << 30, 4096, ((size_t) 1 << 31) - 4096, \
      "Largest number of bytes that one key covers, below 2 GiB") \
    X(UINT, write_pieces, 6, 14, 1, 30, \
      "Largest number of contiguous pieces that one RDMA write gathers for a " \
      "message without mkeys, within the device's limit. An entry of each " \
      "peer's send queue has 16 bytes for each piece, in powers of 2: 64 bytes " \
      "for 2 pieces, 256 for 14, 512 for 30") \
    X(UINT, sq_depth, 6, 64, 2, 8192, \
      "Number of RDMA writes in flight to one peer; each needs an entry of the " \
      "send queue (btl_umr_write_pieces) and 64 bytes for its completion") \
    X(SIZE, notify_size, 6, (size_t) 1 << 20, 0, SIZE_MAX, \
      "Length in bytes from which on the last write of a message, or of a chunk, " \
      "does not carry the notification of the receiver. A second write, without " \
      "bytes, does. HCAs keep the packets of a write with a notification in " \
      "order; adaptive routing spreads those of others over its paths. 0: the " \
      "last write always carries it") \
    X(UINT, rq_depth, 6, 128, 1, 8192, \
      "Number of messages from one peer that may be in flight") \
    X(UINT, srq_depth, 6, 255, 0, 16383, \
      "Number of messages from all peers together that may be in flight: " \
      "receives that the peers share. 0, or a device without shared receive " \
      "queues: each peer has btl_umr_rq_depth receives of its own") \
    X(UINT, max_peers, 6, 0, 0, UINT_MAX, \
      "Largest number of peers with queue pairs, which are created at the first " \
      "message. A peer without messages for a second makes room for another one. " \
      "Without room, messages use another scheme, or the base PML. A peer takes " \
      "about 31 KiB. 0: no bound but the device's") \
    X(SIZE, reg_cache_size, 4, 0, 0, SIZE_MAX, \
      "Largest number of bytes that are registered with the device at any time, " \
      "in use or cached. 0: half of the machine's memory divided by the number " \
      "of this job's processes on it") \
    X(UINT, gpu_regs, 6, 256, 1, 1u << 20, \
      "Largest number of registrations of GPU memory, in use or cached. Each is " \
      "an allocation, or a part of one if the HCA cannot map all of it") \
    X(UINT, gpu_flush, 9, MCA_BTL_UMR_GPU_FLUSH_AUTO, 0, MCA_BTL_UMR_GPU_FLUSH_MAX - 1, \
      "Action before a receive into GPU memory is complete. 0: as the device " \
      "requires; 1: cuFlushGPUDirectRDMAWrites; 2: a read of the memory by the " \
      "HCA; 3: nothing (for tests: the GPU may see old bytes)") \
    X(SIZE, reg_gap, 8, (size_t) 256 << 10, 0, (size_t) 1 << 40, \
      "Pieces of a buffer that are at most this many bytes apart are registered " \
      "together, including the memory between them") \
    X(UINT, timeout, 6, 18, 0, 31, \
      "InfiniBand acknowledgement timeout: 4.096 us * 2^timeout, 1 to 31 (0: " \
      "infinite)") \
    X(UINT, retry_count, 6, 7, 0, 7, \
      "Number of retransmissions by the device, 0 to 7") \
    X(UINT, mtu, 6, 0, 0, UINT_MAX, \
      "Path MTU in bytes (256, 512, 1024, 2048 or 4096). 0: the smaller one of " \
      "the two ports'") \
    X(UINT, key_cache, 6, 1024, 0, 1u << 20, \
      "Number of key sets that stay mapped after their message, for the next " \
      "one with the same datatype and buffer. 0: none") \
    X(BOOL, plain_keys, 7, true, 0, 0, \
      "Let peers write into contiguous pieces by the key of the registration, " \
      "which stays valid as long as the registration. 0: only by mkeys, which " \
      "the HCA refuses once the message is complete; costs one more mapping " \
      "(UMR)") \
    X(UINT, rebuilds, 6, 8, 0, 16, \
      "Number of consecutive attempts to replace a failed queue pair. They come " \
      "after 4 messages without it, then 8, 16 and so on. A new one counts as " \
      "working after 256 operations. 0: a failed one is not replaced") \
    X(INT, fork_support, 5, -1, -1, 1, \
      "Keep pages that the device uses from child processes (ibv_fork_init); " \
      "otherwise the child may get the page, and the device the old one. 1: " \
      "always, and no device without it; 0: never; -1: on kernels before Linux " \
      "5.12, if available") \
    X(UINT, selftest, 6, MCA_BTL_UMR_SELFTEST_ONCE, 0, MCA_BTL_UMR_SELFTEST_MAX - 1, \
      "Test the device before use: gather and scatter bytes through two mkeys " \
      "and compare all bytes. A device that fails is used without UMR. 0: no " \
      "test; 1: also verify that old keys are refused, once a boot, device and " \
      "firmware, since each refusal counts as an error of the device; 2: " \
      "verify that each time") \
    X(BOOL, rdma, 4, false, 0, 0, \
      "Offer the HCA to other users of Open MPI's btl framework for one-sided " \
      "communication (osc/rdma): writes, reads and atomics on contiguous " \
      "memory. Needs pml/ob1, and a queue pair to each process of the job from " \
      "MPI_Init on") \
    X(UINT, rdma_peers, 6, 256, 0, UINT_MAX, \
      "Largest job, in processes, for which btl_umr_rdma is used") \
    X(UINT, rdma_depth, 6, 64, 1, 8192, \
      "Number of operations of btl_umr_rdma in flight to one peer") \
    X(UINT, verbose, 3, 0, 0, 100, \
      "Log to the error output, from this value on: 1: set-up (ports found, " \
      "selected, and rejected with the reason); 10: lanes to each new peer, " \
      "broken and replaced queue pairs; 50: each queue pair") \
    X(UINT, check, 9, 0, 0, UINT_MAX, \
      "For tests: verify that counters and lists of the HCA agree in one of " \
      "this number of progress passes, and at the end; abort on a violation. 0: " \
      "never")
/* clang-format on */

#define MCA_BTL_UMR_TYPE_STRING char *
#define MCA_BTL_UMR_TYPE_BOOL   bool
#define MCA_BTL_UMR_TYPE_INT    int
#define MCA_BTL_UMR_TYPE_UINT   unsigned int
#define MCA_BTL_UMR_TYPE_SIZE   size_t

#define MCA_BTL_UMR_PARAM_MEMBER(type, name, ...) MCA_BTL_UMR_TYPE_##type name;
typedef struct mca_btl_umr_params_t {
    MCA_BTL_UMR_PARAMS(MCA_BTL_UMR_PARAM_MEMBER)
} mca_btl_umr_params_t;

extern mca_btl_umr_params_t mca_btl_umr_params;

/** Register the parameters. */
void mca_btl_umr_params_register(void);

/**
 * Copy the strings, which the MCA base frees when it deregisters the parameters, possibly long
 * before the HCA is used.
 *
 * @return false: out of memory
 */
bool mca_btl_umr_params_open(void);
void mca_btl_umr_params_close(void);

/** Adjust out-of-range values, each with one message. */
void mca_btl_umr_params_check(void);

#endif /* MCA_BTL_UMR_PARAMS_H */
