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
 * The prediction; see umrddt_select_model.h. Nothing here has a state.
 *
 * A message that is taken begins with an envelope, and but for CUDA IPC with an answer; each is a
 * small message of the base PML. Then the schemes differ:
 *
 *   umr      the keys that are not there yet, shared by the uses; a write, and the bytes at the
 *            HCA's rate or the pieces of both layouts at the HCA's, whichever takes longer
 *   direct   the receiver's layout on its way, if it is not there; as many writes as it takes, or
 *            the bytes
 *   ipc      one copy of a GPU. That an allocation has to be opened is charged to nobody: it is
 *            done once for all layouts and messages that come from it, and takes as long as
 *            hundreds of them (measured, 10 ms)
 *   pack-*   three stages, packing, wire and unpacking, through which the chunks go one behind the
 *            other: all of the first, and the slowest stage for each further one
 *   host     for memory of the CPU the sender's pieces copied, and the receiver's while the bytes
 *            move; for memory of GPUs that the base PML must not be given, packing and unpacking
 *            before and behind
 *
 * Two processes that share a GPU, without CUDA's MPS, have it by turns: a kernel of the one waits
 * until the driver has taken the GPU from the other, 0.15 ms on an H200, where copies to and from
 * the host's memory do not (bench/results/h200-2026-11-23.md). That is gpu_turn, once a message
 * that needs a kernel; next to nothing where umrddt_tune's processes had a GPU each.
 */

#include "umrddt_select_model.h"

#include <math.h>

#define MIB 1048576.0

const char *const mca_pml_umrddt_scheme_names[MCA_PML_UMRDDT_SCHEMES] = {
    [MCA_PML_UMRDDT_SCHEME_IPC] = "ipc",
    [MCA_PML_UMRDDT_SCHEME_UMR] = "umr",
    [MCA_PML_UMRDDT_SCHEME_DIRECT] = "direct",
    [MCA_PML_UMRDDT_SCHEME_PACK_GDR] = "pack-gdr",
    [MCA_PML_UMRDDT_SCHEME_PACK_STAGED] = "pack-staged",
    [MCA_PML_UMRDDT_SCHEME_PACK_HOST] = "pack-host",
    [MCA_PML_UMRDDT_SCHEME_BASE] = "host",
};

const mca_pml_umrddt_scheme_id_t mca_pml_umrddt_scheme_order[MCA_PML_UMRDDT_SCHEMES] = {
    MCA_PML_UMRDDT_SCHEME_IPC,         MCA_PML_UMRDDT_SCHEME_UMR,
    MCA_PML_UMRDDT_SCHEME_DIRECT,      MCA_PML_UMRDDT_SCHEME_PACK_GDR,
    MCA_PML_UMRDDT_SCHEME_PACK_STAGED, MCA_PML_UMRDDT_SCHEME_PACK_HOST,
    MCA_PML_UMRDDT_SCHEME_BASE,
};

void opal_umrddt_tuning_default(opal_umrddt_tuning_t *figures)
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

    *figures = defaults;
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

/** The mean length of the pieces of a side, or of one that is both. */
static double block_of(const opal_umrddt_select_case_t *message,
                       const opal_umrddt_select_side_t *side)
{
    return (double) message->bytes / (double) (0 < side->pieces ? side->pieces : 1);
}

double opal_umrddt_select_small(const opal_umrddt_tuning_t *figures, bool near)
{
    return near ? figures->near_latency : figures->far_latency;
}

static double small(const opal_umrddt_tuning_t *figures, const opal_umrddt_select_case_t *message)
{
    return opal_umrddt_select_small(figures, message->near);
}

static double host_rate(const opal_umrddt_tuning_t *figures,
                        const opal_umrddt_select_case_t *message)
{
    return message->near ? figures->near_rate : figures->far_rate;
}

/** What so many bytes by the base PML wait for: it asks and is answered before it sends many. */
static double host_small(const opal_umrddt_tuning_t *figures,
                         const opal_umrddt_select_case_t *message, double bytes)
{
    return ((double) message->eager < bytes ? 3 : 1) * small(figures, message);
}

/** So many bytes by the base PML, from memory of the CPU to such, in one piece. */
static double by_host(const opal_umrddt_tuning_t *figures, const opal_umrddt_select_case_t *message,
                      double bytes)
{
    return host_small(figures, message, bytes) + bytes / host_rate(figures, message);
}

/** The envelope and the answer. */
static double agreed(const opal_umrddt_tuning_t *figures, const opal_umrddt_select_case_t *message)
{
    return 2 * small(figures, message);
}

/** What a message waits for if it is the first of its kind this way: its share of that. */
static double share(const opal_umrddt_select_case_t *message, mca_pml_umrddt_scheme_id_t way,
                    double once)
{
    return 0 != (message->known & 1u << way) ? 0 : once / larger(1, message->uses);
}

static double register_side(const opal_umrddt_tuning_t *figures,
                            const opal_umrddt_select_case_t *message,
                            const opal_umrddt_select_side_t *side)
{
    double span = (double) (side->span < message->bytes ? message->bytes : side->span);

    return figures->register_base + figures->register_mib * span / MIB;
}

/** Both sides register; the sender does it when it has been answered. */
static double registered(const opal_umrddt_tuning_t *figures,
                         const opal_umrddt_select_case_t *message)
{
    return register_side(figures, message, &message->from)
           + register_side(figures, message, &message->to);
}

/** What both schemes of the HCA have but for the pieces. */
static double hca_base(const opal_umrddt_tuning_t *figures,
                       const opal_umrddt_select_case_t *message)
{
    return agreed(figures, message) + figures->hca_latency
           + (message->to.gpu ? figures->gpu_flush : 0);
}

static double hca_bytes(const opal_umrddt_tuning_t *figures,
                        const opal_umrddt_select_case_t *message, double bytes)
{
    return bytes
           / (message->from.gpu || message->to.gpu ? figures->hca_gpu_rate : figures->hca_rate);
}

static double umr_time(const opal_umrddt_tuning_t *figures,
                       const opal_umrddt_select_case_t *message)
{
    double from = (double) message->from.pieces, to = (double) message->to.pieces;
    double keys = 2 * figures->key_map + (from + to) * figures->key_entry;

    return hca_base(figures, message)
           + share(message, MCA_PML_UMRDDT_SCHEME_UMR, registered(figures, message) + keys)
           + larger(hca_bytes(figures, message, (double) message->bytes),
                    from * (message->from.gpu ? figures->hca_gpu_gather : figures->hca_entry)
                        + to * (message->to.gpu ? figures->hca_gpu_scatter : figures->hca_entry));
}

static double direct_time(const opal_umrddt_tuning_t *figures,
                          const opal_umrddt_select_case_t *message)
{
    double writes = (double) message->to.pieces
                    + (double) message->from.pieces
                          / (double) (0 < message->write_pieces ? message->write_pieces : 1);
    /* a layout takes a few bytes a piece, flattened; regular ones take less */
    double layout = 8 * (double) message->to.pieces / host_rate(figures, message);

    return hca_base(figures, message)
           + share(message, MCA_PML_UMRDDT_SCHEME_DIRECT, registered(figures, message) + layout)
           + larger(hca_bytes(figures, message, (double) message->bytes),
                    writes * figures->hca_write);
}

/** The turn of a GPU for which a message waits. @p kernel: it needs a kernel */
static double turn(const opal_umrddt_tuning_t *figures, const opal_umrddt_select_case_t *message,
                   bool kernel)
{
    return kernel && message->near ? figures->gpu_turn : 0;
}

/**
 * The rate of a curve that umrddt_tune measures with rows, which the driver copies from blocks of
 * 4096 on and kernels below: between the two points no block is a bit of both. @p boxed: the driver
 * copies it.
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

/** What a kernel moves of a side at @p rate, but for what it has to look up. */
static double looked_up(const opal_umrddt_tuning_t *figures, const opal_umrddt_select_side_t *side,
                        double block, double rate)
{
    return side->listed ? smaller(rate, opal_umrddt_tuning_curve_at(figures->gpu_list, block))
                        : rate;
}

static double ipc_time(const opal_umrddt_tuning_t *figures,
                       const opal_umrddt_select_case_t *message)
{
    double block = block_of(message, &message->from), to = block_of(message, &message->to);
    double bytes = (double) message->bytes, latency = figures->ipc_latency, copies;

    if (message->to.gpu) {
        double rate = rows_at(figures->ipc_copy, message->from.boxed && message->to.boxed,
                              smaller(to, block));

        rate = looked_up(figures, &message->from, block, rate);
        copies = bytes / looked_up(figures, &message->to, to, rate);
    } else {
        /* into pinned memory, and from there by the CPU */
        latency = message->from.boxed ? figures->gpu_out_latency : figures->gpu_launch;
        copies = bytes
                     / looked_up(figures, &message->from, block,
                                 rows_at(figures->gpu_pack_host, message->from.boxed, block))
                 + bytes / opal_umrddt_tuning_curve_at(figures->cpu_pack, to);
    }
    return small(figures, message) + latency + copies
           + turn(figures, message, message->to.gpu || !message->from.boxed);
}

/** A chunk from the user's buffer into one that the wire takes, or (@p in) the other way. */
static double packed(const opal_umrddt_tuning_t *figures, const opal_umrddt_select_case_t *message,
                     mca_pml_umrddt_scheme_id_t way, bool in, double bytes)
{
    const opal_umrddt_select_side_t *side = in ? &message->to : &message->from;
    double block = block_of(message, side), moved;

    if (!side->gpu) {
        return bytes
               / opal_umrddt_tuning_curve_at(MCA_PML_UMRDDT_SCHEME_BASE == way ? figures->cpu_copy
                                                                               : figures->cpu_pack,
                                             block);
    }
    if (MCA_PML_UMRDDT_SCHEME_PACK_HOST == way) {
        const double *curve = in ? figures->gpu_unpack_host : figures->gpu_pack_host;
        bool boxed = bytes < (double) message->bytes ? side->chunk_boxed : side->boxed;
        double begun = figures->gpu_launch;

        if (boxed) {
            begun = in ? figures->gpu_in_latency : figures->gpu_out_latency;
        }
        return begun + bytes / looked_up(figures, side, block, rows_at(curve, boxed, block));
    }
    moved = in ? figures->gpu_in_latency + bytes / figures->gpu_in_rate
               : figures->gpu_out_latency + bytes / figures->gpu_out_rate;
    if (MCA_PML_UMRDDT_SCHEME_PACK_STAGED == way && 1 >= side->pieces) {
        return moved; /* one piece needs no packing */
    }
    /* the end of the first of two operations is seen before the second begins */
    return figures->gpu_launch
           + bytes
                 / looked_up(figures, side, block,
                             opal_umrddt_tuning_curve_at(
                                 in ? figures->gpu_unpack : figures->gpu_pack, block))
           + (MCA_PML_UMRDDT_SCHEME_PACK_GDR == way ? 0 : moved);
}

/** True if a side of a packed message is (un)packed by a kernel, or copied within a GPU. */
static bool by_kernel(const opal_umrddt_select_case_t *message,
                      const opal_umrddt_select_side_t *side, mca_pml_umrddt_scheme_id_t way)
{
    if (!side->gpu) {
        return false;
    }
    switch (way) {
    case MCA_PML_UMRDDT_SCHEME_PACK_HOST:
        return !(message->bytes <= message->chunk ? side->boxed : side->chunk_boxed);
    case MCA_PML_UMRDDT_SCHEME_PACK_STAGED:
        return 1 < side->pieces;
    default:
        return true;
    }
}

static double pack_time(const opal_umrddt_tuning_t *figures,
                        const opal_umrddt_select_case_t *message, mca_pml_umrddt_scheme_id_t way)
{
    double chunk = (double) (message->chunk < message->bytes ? message->chunk : message->bytes);
    double further = (double) message->bytes / chunk - 1;
    double out = packed(figures, message, way, false, chunk);
    double in = packed(figures, message, way, true, chunk);
    double wire = by_host(figures, message, chunk), each;

    if (MCA_PML_UMRDDT_SCHEME_PACK_GDR == way) {
        wire = figures->hca_latency + hca_bytes(figures, message, chunk)
               + (message->to.gpu ? figures->gpu_flush : 0);
    } else if (message->pack_by_hca) {
        wire = figures->hca_latency + chunk / figures->hca_rate;
    }
    /* as many as are under way at once share what is but waiting; within a host the processors that
     * carry the chunks also pack, or tell the GPU to (half of what that takes, is the guess) */
    each = wire;
    if (message->near && MCA_PML_UMRDDT_SCHEME_PACK_GDR != way && !message->pack_by_hca) {
        each += larger(message->from.gpu ? figures->gpu_launch / 2 : out,
                       message->to.gpu ? figures->gpu_launch / 2 : in);
    }
    each = larger(larger(out, in), each);
    if (1 >= message->depth) {
        each = out + wire + in;
    }
    return agreed(figures, message) + out + wire + in + further * each
           + turn(figures, message,
                  by_kernel(message, &message->from, way) || by_kernel(message, &message->to, way));
}

static double host_time(const opal_umrddt_tuning_t *figures,
                        const opal_umrddt_select_case_t *message)
{
    double bytes = (double) message->bytes, time = 0;
    double wire = bytes / host_rate(figures, message);
    bool kernel = false;

    for (int in = 0; in < 2; ++in) {
        const opal_umrddt_select_side_t *side = in ? &message->to : &message->from;

        if (!side->gpu) {
            double copy = 1 < side->pieces
                              ? packed(figures, message, MCA_PML_UMRDDT_SCHEME_BASE, 0 != in, bytes)
                              : 0;

            /* the receiver unpacks out of what it would have to copy in any case */
            if (in) {
                wire = larger(wire, copy);
            } else {
                time += copy;
            }
        } else if (message->base_takes_gpu) {
            /* piece by piece, as the convertors of Open MPI do */
            time +=
                (double) side->pieces * (in ? figures->gpu_in_latency : figures->gpu_out_latency)
                + bytes / (in ? figures->gpu_in_rate : figures->gpu_out_rate);
        } else {
            /* to and from pinned memory in one operation */
            time += packed(figures, message,
                           1 >= side->pieces ? MCA_PML_UMRDDT_SCHEME_PACK_STAGED
                                             : MCA_PML_UMRDDT_SCHEME_PACK_HOST,
                           0 != in, bytes);
            kernel = kernel || !side->boxed;
        }
    }
    return host_small(figures, message, bytes) + time + wire + turn(figures, message, kernel);
}

double opal_umrddt_select_time(const opal_umrddt_tuning_t *figures,
                               const opal_umrddt_select_case_t *message,
                               mca_pml_umrddt_scheme_id_t way)
{
    switch (way) {
    case MCA_PML_UMRDDT_SCHEME_IPC:
        return ipc_time(figures, message);
    case MCA_PML_UMRDDT_SCHEME_UMR:
        return umr_time(figures, message);
    case MCA_PML_UMRDDT_SCHEME_DIRECT:
        return direct_time(figures, message);
    case MCA_PML_UMRDDT_SCHEME_PACK_GDR:
    case MCA_PML_UMRDDT_SCHEME_PACK_STAGED:
    case MCA_PML_UMRDDT_SCHEME_PACK_HOST:
        return pack_time(figures, message, way);
    default:
        return host_time(figures, message);
    }
}

mca_pml_umrddt_scheme_id_t opal_umrddt_select_best(const opal_umrddt_tuning_t *figures,
                                                   const opal_umrddt_select_case_t *message,
                                                   unsigned possible, double *times)
{
    mca_pml_umrddt_scheme_id_t best = MCA_PML_UMRDDT_SCHEMES;

    for (int i = 0; i < MCA_PML_UMRDDT_SCHEMES; ++i) {
        const mca_pml_umrddt_scheme_id_t scheme = mca_pml_umrddt_scheme_order[i];

        times[scheme] = opal_umrddt_select_time(figures, message, scheme);
        if (0 != (possible & MCA_PML_UMRDDT_BIT(scheme))
            && (MCA_PML_UMRDDT_SCHEMES == best || times[scheme] < times[best])) {
            best = scheme;
        }
    }
    return best;
}
