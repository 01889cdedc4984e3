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
 * The prediction of times; see umrddt_select_model.h. Stateless.
 */

/*
 * A handled message begins with an envelope and, except for CUDA IPC, a reply. Each counts as a
 * small message of the base PML. The rest depends on the scheme:
 *
 *     umr      setup of the missing keys, divided by the uses; one write; and the longer of the
 *              bytes at the HCA's rate and the blocks of both layouts at the HCA's rate
 *     direct   transfer of the receiver's layout, if it is missing; and the longer of the writes
 *              and the bytes
 *     ipc      one GPU copy. Opening an allocation is not counted: it is done once for all layouts
 *              and messages in it, but takes as long as hundreds of messages (measured: 10 ms)
 *     pack-*   a pipeline of three stages: packing, wire and unpacking. The first chunk takes all
 *              three, each further chunk the slowest of them. The wire is the HCA or the base PML,
 *              for pack-gdr between GPU memory
 *     host     the base PML. System memory: copy of the sender's blocks, and of the receiver's
 *              during the transfer. GPU memory that the base PML cannot access: packing before,
 *              and unpacking after
 *
 * Two processes that share a GPU without CUDA MPS use it by turns. A kernel of one process waits
 * until the driver has switched the GPU from the other, 0.15 ms on an H200. Copies to and from
 * system memory do not wait (bench/results/h200-2026-11-23.md). The parameter gpu_turn, added once
 * to each message that needs a kernel, stands for that. It is close to 0 if umrddt_tune ran with
 * one GPU for each process.
 */

#include "umrddt_select_model.h"

#include <math.h>

#define MIB 1048576.0

#define NAME_OF(NAME, name, text, bit, group, rdma, packed, copy, hca) [bit] = text,
const char *const mca_pml_umrddt_scheme_names[MCA_PML_UMRDDT_SCHEMES] = {
    MCA_PML_UMRDDT_SCHEME_LIST(NAME_OF)};

#define ID_OF(NAME, name, text, bit, group, rdma, packed, copy, hca) MCA_PML_UMRDDT_SCHEME_##NAME,
const mca_pml_umrddt_scheme_id_t mca_pml_umrddt_scheme_order[MCA_PML_UMRDDT_SCHEMES] = {
    MCA_PML_UMRDDT_SCHEME_LIST(ID_OF)};

void opal_umrddt_tuning_default(opal_umrddt_tuning_t *tuning)
{
#define FIGURE_DEFAULT(name, value, help) .name = value,
    static const opal_umrddt_tuning_t defaults = {
        OPAL_UMRDDT_TUNING_VALUES(FIGURE_DEFAULT)
            /* 8, 64, 512, 4096, 32768, 262144 bytes */
            .cpu_copy = {600, 3000, 8000, 10000, 10000, 10000},
        .cpu_pack = {1000, 4000, 8000, 10000, 10000, 10000},
        .gpu_pack = {1300000, 1700000, 1770000, 1770000, 1770000, 1770000},
        .gpu_unpack = {790000, 1370000, 1750000, 1750000, 1750000, 1750000},
        .gpu_pack_host = {6000, 15000, 25000, 25000, 25000, 25000},
        .gpu_unpack_host = {6000, 15000, 25000, 25000, 25000, 25000},
        .ipc_copy = {179000, 327000, 360000, 360000, 380000, 386000},
        .gpu_list = {620000, 600000, 650000, 660000, 670000, 670000},
    };

    *tuning = defaults;
}

double opal_umrddt_tuning_curve_at(const double *curve, double block)
{
    double at =
        (log2(block) - log2(OPAL_UMRDDT_TUNING_CURVE_LEAST)) / log2(OPAL_UMRDDT_TUNING_CURVE_STEP);
    unsigned below;

    if (!(0 < at)) {
        return curve[0];
    }
    if (OPAL_UMRDDT_TUNING_CURVE_POINTS - 1 <= at) {
        return curve[OPAL_UMRDDT_TUNING_CURVE_POINTS - 1];
    }
    below = (unsigned) at;
    at -= below;
    return exp2((1 - at) * log2(curve[below]) + at * log2(curve[below + 1]));
}

uint64_t opal_umrddt_select_chunk(uint64_t total, uint32_t depth, uint64_t least, uint64_t most,
                                  uint64_t block)
{
    const uint64_t page = 4096;
    uint64_t chunk = total / (2 * (uint64_t) depth), whole;

    chunk = (chunk + page - 1) / page * page;
    chunk = chunk > most ? most : chunk;
    chunk = chunk < least ? least : chunk;
    if (0 < block && block <= chunk) {
        whole = (chunk + block - 1) / block * block;
        whole = whole > most ? whole - block : whole;
        chunk = whole < least ? chunk : whole;
    }
    return chunk < total ? chunk : total;
}

static double larger(double a, double b)
{
    return a < b ? b : a;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

/** Mean block length of one side. */
static double block_of(const opal_umrddt_select_case_t *message,
                       const opal_umrddt_select_side_t *side)
{
    return (double) message->bytes / (double) (0 < side->pieces ? side->pieces : 1);
}

double opal_umrddt_select_small(const opal_umrddt_tuning_t *tuning, bool near)
{
    return near ? tuning->near_latency : tuning->far_latency;
}

static double small(const opal_umrddt_tuning_t *tuning, const opal_umrddt_select_case_t *message)
{
    return opal_umrddt_select_small(tuning, message->near);
}

static double host_rate(const opal_umrddt_tuning_t *tuning,
                        const opal_umrddt_select_case_t *message)
{
    return message->near ? tuning->near_rate : tuning->far_rate;
}

/** Latency of a message by the base PML: it includes a rendezvous above the eager limit. */
static double host_small(const opal_umrddt_tuning_t *tuning,
                         const opal_umrddt_select_case_t *message, double bytes)
{
    return ((double) message->eager < bytes ? 3 : 1) * small(tuning, message);
}

/** Time of a contiguous message in system memory by the base PML. */
static double by_host(const opal_umrddt_tuning_t *tuning, const opal_umrddt_select_case_t *message,
                      double bytes)
{
    return host_small(tuning, message, bytes) + bytes / host_rate(tuning, message);
}

/** Time of the envelope and the reply. */
static double agreed(const opal_umrddt_tuning_t *tuning, const opal_umrddt_select_case_t *message)
{
    return 2 * small(tuning, message);
}

/** Share of the setup of a scheme in one message; 0 if it is done already. */
static double share(const opal_umrddt_select_case_t *message, mca_pml_umrddt_scheme_id_t scheme_id,
                    double once)
{
    return 0 != (message->known & 1u << scheme_id) ? 0 : once / larger(1, message->uses);
}

static double register_side(const opal_umrddt_tuning_t *tuning,
                            const opal_umrddt_select_case_t *message,
                            const opal_umrddt_select_side_t *side)
{
    double span = (double) (side->span < message->bytes ? message->bytes : side->span);

    return tuning->register_base + tuning->register_mib * span / MIB;
}

/** Both sides register their memory; the sender does so after the reply. */
static double registered(const opal_umrddt_tuning_t *tuning,
                         const opal_umrddt_select_case_t *message)
{
    return register_side(tuning, message, &message->from)
           + register_side(tuning, message, &message->to);
}

/** Common part of both HCA schemes, without the blocks. */
static double hca_base(const opal_umrddt_tuning_t *tuning, const opal_umrddt_select_case_t *message)
{
    return agreed(tuning, message) + tuning->hca_latency
           + (message->to.gpu ? tuning->gpu_flush : 0);
}

static double hca_bytes(const opal_umrddt_tuning_t *tuning,
                        const opal_umrddt_select_case_t *message, double bytes)
{
    return bytes / (message->from.gpu || message->to.gpu ? tuning->hca_gpu_rate : tuning->hca_rate);
}

static double umr_time(const opal_umrddt_tuning_t *tuning, const opal_umrddt_select_case_t *message)
{
    double from = (double) message->from.pieces, to = (double) message->to.pieces;
    double keys = 2 * tuning->key_map + (from + to) * tuning->key_entry;

    return hca_base(tuning, message)
           + share(message, MCA_PML_UMRDDT_SCHEME_UMR, registered(tuning, message) + keys)
           + larger(hca_bytes(tuning, message, (double) message->bytes),
                    from * (message->from.gpu ? tuning->hca_gpu_gather : tuning->hca_entry)
                        + to * (message->to.gpu ? tuning->hca_gpu_scatter : tuning->hca_entry));
}

static double direct_time(const opal_umrddt_tuning_t *tuning,
                          const opal_umrddt_select_case_t *message)
{
    double writes = (double) message->to.pieces
                    + (double) message->from.pieces
                          / (double) (0 < message->write_pieces ? message->write_pieces : 1);
    /* a flattened layout takes a few bytes for each block, a regular one less */
    double layout = 8 * (double) message->to.pieces / host_rate(tuning, message);

    return hca_base(tuning, message)
           + share(message, MCA_PML_UMRDDT_SCHEME_DIRECT, registered(tuning, message) + layout)
           + larger(hca_bytes(tuning, message, (double) message->bytes),
                    writes * tuning->hca_write);
}

/** Wait for a shared GPU. @p kernel: the message needs a kernel */
static double turn(const opal_umrddt_tuning_t *tuning, const opal_umrddt_select_case_t *message,
                   bool kernel)
{
    return kernel && message->near ? tuning->gpu_turn : 0;
}

/**
 * Rate of a curve that umrddt_tune measures with rows. The driver copies blocks from 4096 bytes on,
 * and kernels copy smaller ones. Between these two points the rates must not be interpolated. @p
 * boxed: the driver copies.
 */
static double rows_at(const double *curve, bool boxed, double block)
{
    const double kernels = 512, rows = 4096; /* points of the curve */

    if (boxed) {
        block = larger(rows, block);
    } else if (kernels < block && rows > block) {
        block = kernels;
    }
    return opal_umrddt_tuning_curve_at(curve, block);
}

/** Rate of a kernel for a side, limited by the list lookup. */
static double looked_up(const opal_umrddt_tuning_t *tuning, const opal_umrddt_select_side_t *side,
                        double block, double rate)
{
    return side->listed ? smaller(rate, opal_umrddt_tuning_curve_at(tuning->gpu_list, block))
                        : rate;
}

static double ipc_time(const opal_umrddt_tuning_t *tuning, const opal_umrddt_select_case_t *message)
{
    double block = block_of(message, &message->from), to = block_of(message, &message->to);
    double bytes = (double) message->bytes, latency = tuning->ipc_latency, copies;

    if (message->to.gpu) {
        double rate =
            rows_at(tuning->ipc_copy, message->from.boxed && message->to.boxed, smaller(to, block));

        rate = looked_up(tuning, &message->from, block, rate);
        copies = bytes / looked_up(tuning, &message->to, to, rate);
    } else {
        /* into pinned memory, and from there by the CPU */
        latency = message->from.boxed ? tuning->gpu_out_latency : tuning->gpu_launch;
        copies = bytes
                     / looked_up(tuning, &message->from, block,
                                 rows_at(tuning->gpu_pack_host, message->from.boxed, block))
                 + bytes / opal_umrddt_tuning_curve_at(tuning->cpu_pack, to);
    }
    return small(tuning, message) + latency + copies
           + turn(tuning, message, message->to.gpu || !message->from.boxed);
}

/** Time to copy a chunk from the user's buffer to the wire buffer, or (@p in) back. */
static double packed(const opal_umrddt_tuning_t *tuning, const opal_umrddt_select_case_t *message,
                     mca_pml_umrddt_scheme_id_t scheme_id, bool in, double bytes)
{
    const opal_umrddt_select_side_t *side = in ? &message->to : &message->from;
    double block = block_of(message, side), moved;

    if (!side->gpu) {
        return bytes
               / opal_umrddt_tuning_curve_at(
                   MCA_PML_UMRDDT_SCHEME_BASE == scheme_id ? tuning->cpu_copy : tuning->cpu_pack,
                   block);
    }
    if (MCA_PML_UMRDDT_SCHEME_PACK_HOST == scheme_id) {
        const double *curve = in ? tuning->gpu_unpack_host : tuning->gpu_pack_host;
        bool boxed = bytes < (double) message->bytes ? side->chunk_boxed : side->boxed;
        double begun = tuning->gpu_launch;

        if (boxed) {
            begun = in ? tuning->gpu_in_latency : tuning->gpu_out_latency;
        }
        return begun + bytes / looked_up(tuning, side, block, rows_at(curve, boxed, block));
    }
    moved = in ? tuning->gpu_in_latency + bytes / tuning->gpu_in_rate
               : tuning->gpu_out_latency + bytes / tuning->gpu_out_rate;
    if (MCA_PML_UMRDDT_SCHEME_PACK_STAGED == scheme_id && 1 >= side->pieces) {
        return moved; /* a contiguous buffer needs no packing */
    }
    if (MCA_PML_UMRDDT_SCHEME_PACK_GDR == scheme_id && message->gdr_by_base && 1 >= side->pieces) {
        return 0; /* the base PML gets the user's buffer */
    }
    /* the CPU sees the end of the first operation before it starts the second */
    return tuning->gpu_launch
           + bytes
                 / looked_up(
                     tuning, side, block,
                     opal_umrddt_tuning_curve_at(in ? tuning->gpu_unpack : tuning->gpu_pack, block))
           + (MCA_PML_UMRDDT_SCHEME_PACK_GDR == scheme_id ? 0 : moved);
}

/** Returns true if a kernel packs or unpacks a side of a packed message, or copies it within a GPU.
 */
static bool by_kernel(const opal_umrddt_select_case_t *message,
                      const opal_umrddt_select_side_t *side, mca_pml_umrddt_scheme_id_t scheme_id)
{
    if (!side->gpu) {
        return false;
    }
    switch (scheme_id) {
    case MCA_PML_UMRDDT_SCHEME_PACK_HOST:
        return !(message->bytes <= message->chunk ? side->boxed : side->chunk_boxed);
    case MCA_PML_UMRDDT_SCHEME_PACK_STAGED:
        return 1 < side->pieces;
    default:
        return true;
    }
}

static double pack_time(const opal_umrddt_tuning_t *tuning,
                        const opal_umrddt_select_case_t *message,
                        mca_pml_umrddt_scheme_id_t scheme_id)
{
    double chunk = (double) (message->chunk < message->bytes ? message->chunk : message->bytes);
    double further = (double) message->bytes / chunk - 1;
    double out = packed(tuning, message, scheme_id, false, chunk);
    double in = packed(tuning, message, scheme_id, true, chunk);
    double wire = by_host(tuning, message, chunk), each;

    if (MCA_PML_UMRDDT_SCHEME_PACK_GDR == scheme_id && message->gdr_by_base) {
        wire = tuning->gpu_base_latency + chunk / tuning->gpu_base_rate;
    } else if (MCA_PML_UMRDDT_SCHEME_PACK_GDR == scheme_id) {
        wire = tuning->hca_latency + hca_bytes(tuning, message, chunk)
               + (message->to.gpu ? tuning->gpu_flush : 0);
    } else if (message->pack_by_hca) {
        wire = tuning->hca_latency + chunk / tuning->hca_rate;
    }
    /* Chunks in progress overlap their waiting times. Within a node the processors that transfer
     * the chunks also pack them, or start the GPU operations (estimated at half of gpu_launch). */
    each = wire;
    if (message->near && MCA_PML_UMRDDT_SCHEME_PACK_GDR != scheme_id && !message->pack_by_hca) {
        each += larger(message->from.gpu ? tuning->gpu_launch / 2 : out,
                       message->to.gpu ? tuning->gpu_launch / 2 : in);
    }
    each = larger(larger(out, in), each);
    if (1 >= message->depth) {
        each = out + wire + in;
    }
    return agreed(tuning, message) + out + wire + in + further * each
           + turn(tuning, message,
                  by_kernel(message, &message->from, scheme_id)
                      || by_kernel(message, &message->to, scheme_id));
}

static double host_time(const opal_umrddt_tuning_t *tuning,
                        const opal_umrddt_select_case_t *message)
{
    double bytes = (double) message->bytes, time = 0;
    double wire = bytes / host_rate(tuning, message);
    bool kernel = false;

    for (int in = 0; in < 2; ++in) {
        const opal_umrddt_select_side_t *side = in ? &message->to : &message->from;

        if (!side->gpu) {
            double copy = 1 < side->pieces
                              ? packed(tuning, message, MCA_PML_UMRDDT_SCHEME_BASE, 0 != in, bytes)
                              : 0;

            /* unpacking at the receiver overlaps the copy that the transfer needs in any case */
            if (in) {
                wire = larger(wire, copy);
            } else {
                time += copy;
            }
        } else if (message->base_takes_gpu) {
            /* block by block, as Open MPI's convertor does */
            time += (double) side->pieces * (in ? tuning->gpu_in_latency : tuning->gpu_out_latency)
                    + bytes / (in ? tuning->gpu_in_rate : tuning->gpu_out_rate);
        } else {
            /* to and from pinned memory in one operation */
            time += packed(tuning, message,
                           1 >= side->pieces ? MCA_PML_UMRDDT_SCHEME_PACK_STAGED
                                             : MCA_PML_UMRDDT_SCHEME_PACK_HOST,
                           0 != in, bytes);
            kernel = kernel || !side->boxed;
        }
    }
    return host_small(tuning, message, bytes) + time + wire + turn(tuning, message, kernel);
}

double opal_umrddt_select_time(const opal_umrddt_tuning_t *tuning,
                               const opal_umrddt_select_case_t *message,
                               mca_pml_umrddt_scheme_id_t scheme_id)
{
    switch (scheme_id) {
    case MCA_PML_UMRDDT_SCHEME_IPC:
        return ipc_time(tuning, message);
    case MCA_PML_UMRDDT_SCHEME_UMR:
        return umr_time(tuning, message);
    case MCA_PML_UMRDDT_SCHEME_DIRECT:
        return direct_time(tuning, message);
    case MCA_PML_UMRDDT_SCHEME_PACK_GDR:
    case MCA_PML_UMRDDT_SCHEME_PACK_STAGED:
    case MCA_PML_UMRDDT_SCHEME_PACK_HOST:
        return pack_time(tuning, message, scheme_id);
    default:
        return host_time(tuning, message);
    }
}

mca_pml_umrddt_scheme_id_t opal_umrddt_select_best(const opal_umrddt_tuning_t *tuning,
                                                   const opal_umrddt_select_case_t *message,
                                                   unsigned possible, double *times)
{
    mca_pml_umrddt_scheme_id_t best = MCA_PML_UMRDDT_SCHEMES;

    for (int i = 0; i < MCA_PML_UMRDDT_SCHEMES; ++i) {
        const mca_pml_umrddt_scheme_id_t scheme = mca_pml_umrddt_scheme_order[i];

        times[scheme] = opal_umrddt_select_time(tuning, message, scheme);
        if (0 != (possible & MCA_PML_UMRDDT_BIT(scheme))
            && (MCA_PML_UMRDDT_SCHEMES == best || times[scheme] < times[best])) {
            best = scheme;
        }
    }
    return best;
}
