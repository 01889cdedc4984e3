/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The model: with synthetic tuning parameters, each scheme is selected where it should be, and the
 * borders between the schemes agree with arithmetic by hand. Tuning files: a written file is read
 * again in any locale; a stale, foreign or malformed one is reported, and changes nothing.
 */

#include <locale.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../common/check.h"
#include "opal/mca/common/umrddt_select/umrddt_select_file.h"
#include "umrddt_synonyms.h"

#define ALL ((1u << MCA_PML_UMRDDT_SCHEMES) - 1)

typedef opal_umrddt_tuning_t tuning_t;
typedef opal_umrddt_select_case_t case_t;

/* Figures that make sums easy: a rate of 1000 everywhere, 1 us for whatever begins. */
static tuning_t plain(void)
{
    tuning_t tuning;
    double *curves[] = {tuning.cpu_copy,   tuning.cpu_pack,      tuning.gpu_pack,
                        tuning.gpu_unpack, tuning.gpu_pack_host, tuning.gpu_unpack_host,
                        tuning.ipc_copy,   tuning.gpu_list};

#define ONE(name, value, help) tuning.name = 1;
    OPAL_UMRDDT_TUNING_VALUES(ONE)
    tuning.near_rate = tuning.far_rate = tuning.hca_rate = tuning.hca_gpu_rate = 1000;
    tuning.gpu_out_rate = tuning.gpu_in_rate = 1000;
    tuning.gpu_turn = 0;
    for (size_t i = 0; i < sizeof(curves) / sizeof(curves[0]); ++i) {
        for (int j = 0; j < OPAL_UMRDDT_TUNING_CURVE_POINTS; ++j) {
            curves[i][j] = 1000;
        }
    }
    return tuning;
}

static case_t message(uint64_t bytes, uint64_t from, uint64_t to)
{
    return (case_t){
        .bytes = bytes,
        .from = {.pieces = from},
        .to = {.pieces = to},
        .uses = 1,
        .write_pieces = 1,
        .chunk = 1u << 30,
        .depth = 4,
        .eager = OPAL_UMRDDT_SELECT_EAGER,
    };
}

static double time_of(const tuning_t *tuning, const case_t *what,
                      mca_pml_umrddt_scheme_id_t scheme_id)
{
    return opal_umrddt_select_time(tuning, what, scheme_id);
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * (fabs(a) + fabs(b));
}

static mca_pml_umrddt_scheme_id_t best(const tuning_t *tuning, const case_t *what,
                                       unsigned possible)
{
    double times[MCA_PML_UMRDDT_SCHEMES];

    return opal_umrddt_select_best(tuning, what, possible, times);
}

/* ---------------------------------------------------------------------------------------------
 * Times
 * ------------------------------------------------------------------------------------------- */

static void by_hca(void)
{
    const unsigned both = MCA_PML_UMRDDT_BIT_UMR | MCA_PML_UMRDDT_BIT_DIRECT;
    tuning_t tuning = plain();
    case_t what = message(10000, 1, 1);

    /* 2 control messages, the write, the bytes; registration of 10000 bytes twice, two keys of 2
     * entries in all */
    what.known = ALL;
    CHECK(near(3 + 10, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_UMR)));
    CHECK(near(3 + 10, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_DIRECT)));
    what.known = 0;
    CHECK(near(3 + 10 + 2 + 2 * 10000 / 1048576.0 + 2 + 2,
               time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_UMR)));
    what.uses = 4;
    CHECK(near(3 + 10 + (2 + 2 * 10000 / 1048576.0 + 2 + 2) / 4,
               time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_UMR)));
    what.to.gpu = true; /* and is flushed */
    what.known = ALL;
    tuning.hca_gpu_rate = 500;
    CHECK(near(4 + 20, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_UMR)));

    /* the border by writes: those of the first message are cheaper than keys up to a number */
    tuning = plain();
    tuning.key_map = 8;
    tuning.key_entry = tuning.hca_entry = 1e-6;
    tuning.near_rate = tuning.far_rate = 1e9;
    for (uint64_t writes = 2; writes < 40; ++writes) {
        what = message(1000, 1, writes); /* 1 us of bytes, as many as (writes + 1) us of writes */
        CHECK((writes + 1 <= 17 ? MCA_PML_UMRDDT_SCHEME_DIRECT : MCA_PML_UMRDDT_SCHEME_UMR)
              == best(&tuning, &what, both));
    }
    /* spread over the uses, and the border comes down */
    what = message(1000, 1, 9);
    CHECK(MCA_PML_UMRDDT_SCHEME_DIRECT == best(&tuning, &what, both));
    what.uses = 2;
    CHECK(MCA_PML_UMRDDT_SCHEME_UMR == best(&tuning, &what, both));
    /* keys that are there cost nothing */
    what.uses = 1;
    what.known = MCA_PML_UMRDDT_BIT_UMR;
    CHECK(MCA_PML_UMRDDT_SCHEME_UMR == best(&tuning, &what, both));
    /* long pieces hide any number of writes behind the bytes */
    what = message(40000, 1, 30);
    CHECK(MCA_PML_UMRDDT_SCHEME_DIRECT == best(&tuning, &what, both));
    /* an HCA that gathers 30 pieces in a write has no more of them for pieces of the sender */
    what = message(1000, 30, 1);
    CHECK(MCA_PML_UMRDDT_SCHEME_UMR == best(&tuning, &what, both));
    what.write_pieces = 30;
    CHECK(MCA_PML_UMRDDT_SCHEME_DIRECT == best(&tuning, &what, both));
    /* pieces that mkeys are slow with */
    what = message(1000, 100, 100);
    what.known = ALL;
    what.write_pieces = 100;
    tuning.hca_entry = 1;
    CHECK(MCA_PML_UMRDDT_SCHEME_DIRECT == best(&tuning, &what, both));
    /* and those of a GPU, out of which they are gathered and into which they are scattered */
    what = message(1000, 100, 10);
    what.known = ALL;
    tuning.hca_gpu_gather = 2;
    tuning.hca_gpu_scatter = 3;
    CHECK(near(3 + 110, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_UMR)));
    what.from.gpu = true;
    CHECK(near(3 + 210, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_UMR)));
    what.to.gpu = true; /* and is flushed */
    CHECK(near(4 + 230, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_UMR)));
    what.from.gpu = false;
    CHECK(near(4 + 130, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_UMR)));
}

static void by_gpu(void)
{
    const unsigned packs =
        MCA_PML_UMRDDT_BIT_PACK_GDR | MCA_PML_UMRDDT_BIT_PACK_STAGED | MCA_PML_UMRDDT_BIT_PACK_HOST;
    tuning_t tuning = plain();
    case_t what = message(10000, 10, 10);

    what.from.gpu = what.to.gpu = true;
    what.known = ALL;
    CHECK(near(1 + 1 + 10, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_IPC)));
    /* blocks of 1000 bytes: by a kernel as those of 512, by the driver's copy as those of 4096 */
    tuning.ipc_copy[2] = 100;
    tuning.ipc_copy[3] = 2000;
    CHECK(near(1 + 1 + 100, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_IPC)));
    what.from.boxed = true;
    CHECK(near(1 + 1 + 100, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_IPC)));
    what.to.boxed = true;
    CHECK(near(1 + 1 + 5, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_IPC)));
    what.from.boxed = what.to.boxed = false;
    tuning.ipc_copy[2] = tuning.ipc_copy[3] = 1000;
    what.known = 0; /* nothing is to be made for it */
    CHECK(near(1 + 1 + 10, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_IPC)));
    /* launch and bytes, transfer (after a query), launch and bytes */
    CHECK(near(2 + 11 + 13 + 11, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_PACK_HOST)));
    /* two operations at either side, one behind the other */
    CHECK(near(2 + 22 + 13 + 22, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_PACK_STAGED)));
    /* one, whatever the pieces, and the wire */
    CHECK(near(3 + 11 + 10 + 11, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_BASE)));
    /* the flush */
    CHECK(near(2 + 11 + 12 + 11, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_PACK_GDR)));
    /* the base PML between GPUs, which takes contiguous buffers as they are */
    what.gdr_by_base = true;
    tuning.gpu_base_latency = 7;
    tuning.gpu_base_rate = 500;
    CHECK(near(2 + 11 + 27 + 11, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_PACK_GDR)));
    what.to.pieces = 1;
    CHECK(near(2 + 11 + 27, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_PACK_GDR)));
    what.to.pieces = 10;
    what.gdr_by_base = false;
    /* chunks: the slowest stage counts for each further one */
    what.chunk = 1000;
    CHECK(near(2 + 2 + 2 + 2 + 9 * 2, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_PACK_HOST)));
    CHECK(near(2 + 4 + 2 + 4 + 9 * 4, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_PACK_STAGED)));
    what.depth = 1;
    CHECK(near(2 + 10 * 6, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_PACK_HOST)));

    /* pack-host for small ones, pack-staged for large ones: a GPU that writes to system memory at a
     * quarter of the rate, and 20 us for the start of pack-staged */
    tuning = plain();
    tuning.gpu_launch = 5;
    for (int i = 0; i < OPAL_UMRDDT_TUNING_CURVE_POINTS; ++i) {
        tuning.gpu_pack[i] = tuning.gpu_unpack[i] = 1e6;
        tuning.gpu_pack_host[i] = tuning.gpu_unpack_host[i] = 250;
    }
    what = message(1000, 10, 10);
    what.from.gpu = what.to.gpu = true;
    CHECK(MCA_PML_UMRDDT_SCHEME_PACK_STAGED
          == best(&tuning, &what, packs & ~(MCA_PML_UMRDDT_BIT_PACK_GDR)));
    for (int i = 0; i < OPAL_UMRDDT_TUNING_CURVE_POINTS; ++i) {
        tuning.gpu_pack_host[i] = tuning.gpu_unpack_host[i] = 2000;
    }
    CHECK(MCA_PML_UMRDDT_SCHEME_PACK_HOST
          == best(&tuning, &what, packs & ~(MCA_PML_UMRDDT_BIT_PACK_GDR)));
    /* the HCA from GPU to GPU, unless it is slow there */
    what = message(1000000, 10, 10);
    what.from.gpu = what.to.gpu = true;
    tuning.hca_gpu_rate = 4000;
    CHECK(MCA_PML_UMRDDT_SCHEME_PACK_GDR == best(&tuning, &what, packs));
    tuning.hca_gpu_rate = 100;
    CHECK(MCA_PML_UMRDDT_SCHEME_PACK_HOST == best(&tuning, &what, packs));
    /* the HCA as the wire of the others */
    tuning.near_rate = tuning.far_rate = 100;
    CHECK(time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_PACK_HOST) > 10000);
    what.pack_by_hca = true;
    CHECK(time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_PACK_HOST) < 3000);
    /* a contiguous side needs no packing: copied directly, whatever the time of kernels */
    tuning = plain();
    tuning.gpu_launch = 1000;
    what = message(10000, 1, 1);
    what.from.gpu = what.to.gpu = true;
    CHECK(near(2 + 11 + 13 + 11, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_PACK_STAGED)));
    /* a side that is the CPU's packs by the CPU */
    what.to.gpu = false;
    CHECK(near(2 + 11 + 13 + 10, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_PACK_STAGED)));
    /* ... as umrddt does, not as Open MPI would for the base PML */
    what.to.pieces = 10;
    for (int i = 0; i < OPAL_UMRDDT_TUNING_CURVE_POINTS; ++i) {
        tuning.cpu_copy[i] = 10;
        tuning.cpu_pack[i] = 5000;
    }
    CHECK(near(2 + 11 + 13 + 2, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_PACK_STAGED)));
    CHECK(1000 <= time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_BASE));
    tuning = plain();
    tuning.gpu_launch = 1000;
    what.to.pieces = 1;
    /* CUDA IPC into memory of the CPU: the GPU writes there, and the CPU unpacks */
    what.known = ALL;
    for (int i = 0; i < OPAL_UMRDDT_TUNING_CURVE_POINTS; ++i) {
        tuning.gpu_pack_host[i] = 100;
    }
    what.from.boxed = true; /* (by no kernel) */
    CHECK(near(1 + 1 + 100 + 10, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_IPC)));
}

/* Blocks that kernels find in a list, at either side: no quicker than gpu_list. */
static void listed(void)
{
    const struct {
        mca_pml_umrddt_scheme_id_t scheme_id;
        bool to_gpu;                 /* the receiver's memory */
        double none, from, to, both; /* by the sides that are listed */
    } cases[] = {
        {MCA_PML_UMRDDT_SCHEME_IPC, true, 12, 102, 102, 102},
        {MCA_PML_UMRDDT_SCHEME_IPC, false, 22, 112, 22, 112},
        {MCA_PML_UMRDDT_SCHEME_PACK_GDR, true, 36, 126, 126, 216},
        {MCA_PML_UMRDDT_SCHEME_PACK_STAGED, true, 59, 149, 149, 239},
        {MCA_PML_UMRDDT_SCHEME_PACK_HOST, true, 37, 127, 127, 217},
        {MCA_PML_UMRDDT_SCHEME_BASE, true, 35, 125, 125, 215},
        {MCA_PML_UMRDDT_SCHEME_UMR, true, 24, 24, 24, 24},
    };
    tuning_t tuning = plain();

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        case_t what = message(10000, 10, 10);

        what.known = ALL;
        what.from.gpu = true;
        what.to.gpu = cases[i].to_gpu;
        for (int rates = 0; rates < 2; ++rates) {
            /* 1000 bytes/us, and a tenth of that; a list that is quick changes nothing */
            for (int j = 0; j < OPAL_UMRDDT_TUNING_CURVE_POINTS; ++j) {
                tuning.gpu_list[j] = 0 == rates ? 100 : 1e6;
            }
            for (int sides = 0; sides < 4; ++sides) {
                const double times[] = {cases[i].none, cases[i].from, cases[i].to, cases[i].both};

                what.from.listed = 0 != (sides & 1);
                what.to.listed = 0 != (sides & 2);
                CHECK(near(times[0 == rates ? sides : 0],
                           time_of(&tuning, &what, cases[i].scheme_id)));
            }
        }
    }
}

/* Rows that the driver copies between a GPU and memory of the CPU: as long ones, and no kernel. */
static void copied(void)
{
    const mca_pml_umrddt_scheme_id_t candidates[] = {
        MCA_PML_UMRDDT_SCHEME_IPC, MCA_PML_UMRDDT_SCHEME_PACK_HOST, MCA_PML_UMRDDT_SCHEME_BASE};
    tuning_t tuning = plain();
    double before, after;

    tuning.gpu_launch = 1000;
    for (int i = 0; i < 3; ++i) { /* of 8, 64 and 512 bytes */
        tuning.gpu_pack_host[i] = tuning.gpu_unpack_host[i] = 1;
    }
    for (size_t i = 0; i < sizeof(candidates) / sizeof(candidates[0]); ++i) {
        for (int out = 0; out < 2; ++out) {
            case_t what = message(10000, 10, 10);

            if (MCA_PML_UMRDDT_SCHEME_IPC == candidates[i] && 0 == out) {
                continue; /* of GPUs it is always the sender's memory */
            }
            what.known = ALL;
            what.from.gpu = 1 == out;
            what.to.gpu = 0 == out;
            before = time_of(&tuning, &what, candidates[i]);
            what.from.boxed = what.to.boxed = true;
            after = time_of(&tuning, &what, candidates[i]);
            /* blocks of 1000 bytes are those of 512 to a kernel: 10 ms; and the launch */
            CHECK(near(before - 9990 - 999, after));
        }
    }
}

/* A GPU that two processes share: a kernel waits for its turn, and copies do not. */
static void shared(void)
{
    const unsigned ipc_or_host = MCA_PML_UMRDDT_BIT_IPC | MCA_PML_UMRDDT_BIT_BASE;
    const unsigned every = (1u << MCA_PML_UMRDDT_SCHEMES) - 1;
    tuning_t tuning = plain();
    case_t what = message(10000, 10, 10);
    double without[MCA_PML_UMRDDT_SCHEMES], times[MCA_PML_UMRDDT_SCHEMES];

    what.from.gpu = what.to.gpu = what.near = true;
    what.known = ALL;
    (void) opal_umrddt_select_best(&tuning, &what, every, without);
    tuning.gpu_turn = 100;
    (void) opal_umrddt_select_best(&tuning, &what, every, times);
    for (int scheme_id = 0; scheme_id < MCA_PML_UMRDDT_SCHEMES; ++scheme_id) {
        bool hca =
            MCA_PML_UMRDDT_SCHEME_UMR == scheme_id || MCA_PML_UMRDDT_SCHEME_DIRECT == scheme_id;

        CHECK(near(without[scheme_id] + (hca ? 0 : 100), times[scheme_id]));
    }
    /* the driver's copies for all of it: the base PML's packing and unpacking, and pack-host's */
    what.from.boxed = what.to.boxed = true;
    CHECK(near(without[MCA_PML_UMRDDT_SCHEME_BASE],
               time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_BASE)));
    CHECK(near(without[MCA_PML_UMRDDT_SCHEME_PACK_HOST],
               time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_PACK_HOST)));
    CHECK(near(100 + without[MCA_PML_UMRDDT_SCHEME_PACK_STAGED],
               time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_PACK_STAGED)));
    CHECK(near(100 + without[MCA_PML_UMRDDT_SCHEME_IPC],
               time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_IPC)));
    CHECK(MCA_PML_UMRDDT_SCHEME_BASE == best(&tuning, &what, ipc_or_host));
    tuning.gpu_turn = 10;
    CHECK(MCA_PML_UMRDDT_SCHEME_IPC == best(&tuning, &what, ipc_or_host));
    /* into memory of the CPU no kernel is needed, either */
    tuning.gpu_turn = 100;
    what.to.gpu = false;
    CHECK(near(1 + 1 + 10 + 10, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_IPC)));
    what.from.boxed = false;
    CHECK(near(1 + 1 + 10 + 10 + 100, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_IPC)));
    /* chunks that begin within a piece want a kernel where all in one does not */
    what.to.gpu = what.from.boxed = true;
    what.chunk = 1000;
    CHECK(120 < time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_PACK_HOST));
    what.from.chunk_boxed = what.to.chunk_boxed = true;
    CHECK(100 > time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_PACK_HOST));
    /* no process on a remote node shares this node's GPU */
    what.from.chunk_boxed = what.near = false;
    CHECK(100 > time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_PACK_HOST));
    /* a chunk of a side that the CPU packs waits for the CPU that carries the one before it */
    tuning.gpu_turn = 0;
    what.near = true;
    what.to.gpu = false;
    CHECK(near(2 + 2 + 2 + 1 + 9 * 3, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_PACK_HOST)));
    what.near = false;
    CHECK(near(2 + 2 + 2 + 1 + 9 * 2, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_PACK_HOST)));
}

static void by_base(void)
{
    const unsigned some = MCA_PML_UMRDDT_BIT_UMR | MCA_PML_UMRDDT_BIT_BASE;
    tuning_t tuning = plain();
    case_t what = message(10000, 1, 1);

    /* one query and answer, except for small ones */
    CHECK(near(3 + 10, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_BASE)));
    what.bytes = 4096;
    CHECK(near(1 + 4.096, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_BASE)));
    what.bytes = 10000;
    what.to.pieces = 100; /* while the bytes move */
    CHECK(near(3 + 10, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_BASE)));
    what.from.pieces = 100;
    CHECK(near(3 + 10 + 10, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_BASE)));
    what.from.gpu = true; /* packed and moved, before anything is sent */
    CHECK(near(3 + 10 + 11, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_BASE)));
    what.base_takes_gpu = true; /* piece by piece */
    CHECK(near(3 + 10 + 110, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_BASE)));

    /* two more control messages than the base PML needs pay from some size on: the HCA has twice
     * the rate, and needs no copies */
    tuning.hca_rate = 2000;
    tuning.hca_entry = 1e-6;
    for (uint64_t bytes = 1000; bytes < 4000; bytes += 10) {
        what = message(bytes, 10, 10);
        what.known = ALL;
        /* 3 + bytes / 2000 against 1 + bytes / 500 */
        CHECK((3 * bytes < 2 * 2000 ? MCA_PML_UMRDDT_SCHEME_BASE : MCA_PML_UMRDDT_SCHEME_UMR)
              == best(&tuning, &what, some));
    }
    /* near and far are different wires */
    tuning.far_latency = 100;
    what = message(10000, 1, 1);
    CHECK(near(310, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_BASE)));
    what.near = true;
    CHECK(near(13, time_of(&tuning, &what, MCA_PML_UMRDDT_SCHEME_BASE)));
}

/* Chunks of packed messages. */
static void chunks(void)
{
    const uint64_t least = 128 << 10, most = 1 << 20;

    CHECK(100 == opal_umrddt_select_chunk(100, 4, least, most, 0));
    CHECK(least == opal_umrddt_select_chunk(1 << 20, 4, least, most, 0));
    CHECK(most == opal_umrddt_select_chunk(64 << 20, 4, least, most, 0));
    /* whole blocks, if all are as long: no shorter than wanted, unless that is too much */
    CHECK(43 * 3072 == opal_umrddt_select_chunk(64 * 3072, 4, least, most, 3072));
    CHECK(341 * 3072 == opal_umrddt_select_chunk(64 << 20, 4, least, most, 3072));
    CHECK(most == opal_umrddt_select_chunk(64 << 20, 4, least, most, most));
    CHECK(least == opal_umrddt_select_chunk(1 << 20, 4, least, most, 8));
    /* bounds are bounds: a sender refuses what is shorter than the least that there may be */
    CHECK(1024 == opal_umrddt_select_chunk(64 << 20, 4, 1024, 1024, 1000));
    CHECK(1000 + 1024 == opal_umrddt_select_chunk(64 << 20, 4, 1024, 2 * 1024, 506));
    /* a block is longer than a chunk is to be */
    CHECK(46 * 4096 == opal_umrddt_select_chunk(5 * 300001, 4, least, most, 300001));
    CHECK(most == opal_umrddt_select_chunk(64 << 20, 4, least, most, 2 << 20));
}

/* Of equal schemes the first is selected, and no impossible one. */
static void first_of_equals(void)
{
    tuning_t tuning = plain();
    case_t what = message(10000, 1, 1);

    what.known = ALL;
    CHECK(MCA_PML_UMRDDT_SCHEME_UMR
          == best(&tuning, &what, MCA_PML_UMRDDT_BIT_UMR | MCA_PML_UMRDDT_BIT_DIRECT));
    for (int scheme_id = 0; scheme_id < MCA_PML_UMRDDT_SCHEMES; ++scheme_id) {
        CHECK(scheme_id == (int) best(&tuning, &what, 1u << scheme_id));
    }
}

/* For any tuning parameters and any message: a time is a number above 0, more bytes do not take
 * less time, nor do more pieces. */
static void sane(void)
{
    tuning_t tuning;
    static const uint64_t pieces[] = {1, 2, 1000, 1u << 20};

    opal_umrddt_tuning_default(&tuning);
    for (unsigned bits = 0; bits < 128; ++bits) {
        for (int scheme_id = 0; scheme_id < MCA_PML_UMRDDT_SCHEMES; ++scheme_id) {
            double before = 0, fewer;

            for (uint64_t bytes = 1; bytes < UINT64_C(1) << 40; bytes *= 8) {
                case_t what = message(bytes, bits & 1 ? 7 : 1, bits & 2 ? 5 : 1);
                double now;

                what.from.gpu = 0 != (bits & 4);
                what.to.gpu = 0 != (bits & 8);
                what.near = 0 != (bits & 16);
                what.pack_by_hca = 0 != (bits & 32);
                what.base_takes_gpu = 0 != (bits & 64);
                what.chunk = 131072;
                now = time_of(&tuning, &what, (mca_pml_umrddt_scheme_id_t) scheme_id);
                CHECK(isfinite(now) && 0 < now);
                /* (the rates of longer blocks are better, and a block is a fifth of the bytes) */
                CHECK(now >= 0.99 * before);
                before = now;
            }
            fewer = 0;
            for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); ++i) {
                case_t what = message(64u << 20, pieces[i], pieces[i]);
                double now;

                what.from.gpu = 0 != (bits & 4);
                what.to.gpu = 0 != (bits & 8);
                now = time_of(&tuning, &what, (mca_pml_umrddt_scheme_id_t) scheme_id);
                CHECK(isfinite(now) && now >= (1 - 1e-9) * fewer);
                fewer = now;
            }
        }
    }
}

static void curves(void)
{
    const double curve[OPAL_UMRDDT_TUNING_CURVE_POINTS] = {1, 4, 16, 64, 256, 1024};

    CHECK(near(1, opal_umrddt_tuning_curve_at(curve, 1)));
    CHECK(near(1, opal_umrddt_tuning_curve_at(curve, 8)));
    CHECK(near(4, opal_umrddt_tuning_curve_at(curve, 64)));
    CHECK(near(2, opal_umrddt_tuning_curve_at(curve, sqrt(8 * 64))));
    CHECK(near(1024, opal_umrddt_tuning_curve_at(curve, 262144)));
    CHECK(near(1024, opal_umrddt_tuning_curve_at(curve, 1e18)));
}

/* ---------------------------------------------------------------------------------------------
 * Files
 * ------------------------------------------------------------------------------------------- */

static const char path[] = "test_model.tmp";

static opal_umrddt_tuning_file_t read_text(const char *text, tuning_t *tuning)
{
    char wrong[OPAL_UMRDDT_TUNING_TEXT] = "";
    FILE *file = fopen(path, "w");
    opal_umrddt_tuning_file_t result;

    CHECK(NULL != file);
    CHECK(EOF != fputs(text, file));
    CHECK(0 == fclose(file));
    result = opal_umrddt_tuning_read(path, "a machine", tuning, NULL, wrong);
    CHECK((OPAL_UMRDDT_TUNING_FILE_GOOD == result) == ('\0' == wrong[0]));
    return result;
}

static void files(void)
{
    static const struct {
        const char *text;
        opal_umrddt_tuning_file_t result;
    } texts[] = {
        {"", OPAL_UMRDDT_TUNING_FILE_MALFORMED},
        {"umrddt-model 2\n", OPAL_UMRDDT_TUNING_FILE_MALFORMED},
        {"umrddt-model 2\nhardware a machine\n", OPAL_UMRDDT_TUNING_FILE_MALFORMED},
        {"umrddt-model 2\nhardware a machine\n#\n", OPAL_UMRDDT_TUNING_FILE_GOOD},
        {"umrddt-model 2\nhardware any\n\n", OPAL_UMRDDT_TUNING_FILE_GOOD},
        {"umrddt-model 1\nhardware a machine\nipc_open 200\n", OPAL_UMRDDT_TUNING_FILE_STALE},
        {"umrddt-model 0\nhardware a machine\n#\n", OPAL_UMRDDT_TUNING_FILE_STALE},
        {"umrddt-model 3\nwhatever comes\n", OPAL_UMRDDT_TUNING_FILE_STALE},
        {"umrddt-model 2x\nhardware a machine\n#\n", OPAL_UMRDDT_TUNING_FILE_MALFORMED},
        {"umrddt-model 2\nhardware another\n#\n", OPAL_UMRDDT_TUNING_FILE_FOREIGN},
        {"umrddt-model 2\nhardware a machine too\n#\n", OPAL_UMRDDT_TUNING_FILE_FOREIGN},
        {"umrddt-model 2\n# hardware\n#\n", OPAL_UMRDDT_TUNING_FILE_MALFORMED},
        {"umrddt-model 2\nhardware any\nhca_rate 7\n", OPAL_UMRDDT_TUNING_FILE_GOOD},
        {"umrddt-model 2\nhardware any\nhca_rate 7", OPAL_UMRDDT_TUNING_FILE_GOOD},
        {"umrddt-model 2\nhardware any\nhca_rate\n", OPAL_UMRDDT_TUNING_FILE_MALFORMED},
        {"umrddt-model 2\nhardware any\nhca_rate 7 8\n", OPAL_UMRDDT_TUNING_FILE_MALFORMED},
        {"umrddt-model 2\nhardware any\nhca_rate -7\n", OPAL_UMRDDT_TUNING_FILE_MALFORMED},
        {"umrddt-model 2\nhardware any\nhca_rate 0\n", OPAL_UMRDDT_TUNING_FILE_MALFORMED},
        {"umrddt-model 2\nhardware any\nhca_rate nan\n", OPAL_UMRDDT_TUNING_FILE_MALFORMED},
        {"umrddt-model 2\nhardware any\nhca_rate inf\n", OPAL_UMRDDT_TUNING_FILE_MALFORMED},
        {"umrddt-model 2\nhardware any\nhca_rate 1e9\n", OPAL_UMRDDT_TUNING_FILE_MALFORMED},
        {"umrddt-model 2\nhardware any\nhca_rate .\n", OPAL_UMRDDT_TUNING_FILE_MALFORMED},
        {"umrddt-model 2\nhardware any\nhca_rate 0x10\n", OPAL_UMRDDT_TUNING_FILE_MALFORMED},
        {"umrddt-model 2\nhardware any\nhca_rate 9999999999999\n",
         OPAL_UMRDDT_TUNING_FILE_MALFORMED},
        {"umrddt-model 2\nhardware any\nnear\n", OPAL_UMRDDT_TUNING_FILE_MALFORMED},
        {"umrddt-model 2\nhardware any\nfar of 2 hosts\n", OPAL_UMRDDT_TUNING_FILE_GOOD},
        {"umrddt-model 2\nhardware any\nwarp_factor 7\n", OPAL_UMRDDT_TUNING_FILE_MALFORMED},
        {"umrddt-model 2\nhardware any\ngpu_pack 1 2 3 4 5\n", OPAL_UMRDDT_TUNING_FILE_MALFORMED},
        {"umrddt-model 2\nhardware any\ngpu_pack 1 2 3 4 5 6\n", OPAL_UMRDDT_TUNING_FILE_GOOD},
        {"umrddt-model 2\nhardware any\ngpu_pack 1 2 3 4 5 6 7\n",
         OPAL_UMRDDT_TUNING_FILE_MALFORMED},
    };
    char line[3000], wrong[OPAL_UMRDDT_TUNING_TEXT];
    tuning_t tuning, before;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i) {
        memset(&tuning, 0, sizeof(tuning));
        before = tuning;
        if (texts[i].result != read_text(texts[i].text, &tuning)) {
            printf("test_model: text %zu\n", i);
        }
        CHECK(texts[i].result == read_text(texts[i].text, &tuning));
        CHECK(OPAL_UMRDDT_TUNING_FILE_GOOD == texts[i].result
              || 0 == memcmp(&before, &tuning, sizeof(tuning)));
    }
    /* what is not named is the default */
    CHECK(OPAL_UMRDDT_TUNING_FILE_GOOD
          == read_text("umrddt-model 2\nhardware any\n  \n# \nhca_rate 12.5\n", &tuning));
    opal_umrddt_tuning_default(&before);
    CHECK(near(12.5, tuning.hca_rate) && near(before.key_map, tuning.key_map));
    /* names as they were before */
    CHECK(OPAL_UMRDDT_TUNING_FILE_GOOD
          == read_text("umrddt-model 2\nhardware any\n" UMRDDT_TUNING_OLD_PREFIX "rate 13.5\n",
                       &tuning));
    CHECK(near(13.5, tuning.hca_rate));
    /* the error message has the line number */
    (void) read_text("umrddt-model 2\nhardware any\n#\nhca_rate so so\n", &tuning);
    CHECK(OPAL_UMRDDT_TUNING_FILE_MALFORMED
          == opal_umrddt_tuning_read(path, "a machine", &tuning, NULL, wrong));
    CHECK(NULL != strstr(wrong, "line 4 ") && NULL != strstr(wrong, "hca_rate so so"));
    /* a line without an end */
    memset(line, 'x', sizeof(line));
    line[sizeof(line) - 1] = '\0';
    memcpy(line, "umrddt-model 2\nhardware any\n", strlen("umrddt-model 2\nhardware any\n"));
    CHECK(OPAL_UMRDDT_TUNING_FILE_MALFORMED == read_text(line, &tuning));
    memset(line, 'x', 2000);
    CHECK(OPAL_UMRDDT_TUNING_FILE_MALFORMED == read_text(line, &tuning));
    CHECK(0 == unlink(path));
    CHECK(OPAL_UMRDDT_TUNING_FILE_ABSENT
          == opal_umrddt_tuning_read(path, "a machine", &tuning, NULL, wrong));
    CHECK(0 == mkdir(path, 0700));
    CHECK(OPAL_UMRDDT_TUNING_FILE_GOOD
          != opal_umrddt_tuning_read(path, "a machine", &tuning, NULL, wrong));
    CHECK(0 == rmdir(path));
}

/* Written and read. */
static void there_and_back(const char *locale)
{
    opal_umrddt_tuning_measured_t measured = {.near = "of now"};
    char wrong[OPAL_UMRDDT_TUNING_TEXT];
    tuning_t tuning, back;
    double *all = (double *) &tuning, *read = (double *) &back;
    size_t count = sizeof(tuning) / sizeof(double);
    FILE *file;

    _Static_assert(
        sizeof(tuning_t)
            == sizeof(double)
                   * (OPAL_UMRDDT_TUNING_VALUE_COUNT
                      + OPAL_UMRDDT_TUNING_CURVE_COUNT * OPAL_UMRDDT_TUNING_CURVE_POINTS),
        "nothing but tuning");
    if (NULL == setlocale(LC_ALL, locale)) {
        return;
    }
    for (size_t i = 0; i < count; ++i) {
        all[i] = 0.0123456 * pow(1.9, (double) i);
        all[i] = 1e11 < all[i] ? 1e11 : all[i];
    }
    for (size_t i = 0; i < sizeof(measured.figure) / sizeof(measured.figure[0]); ++i) {
        measured.figure[i] = true;
    }
    file = fopen(path, "w");
    CHECK(NULL != file);
    CHECK(0 == opal_umrddt_tuning_write(file, "a machine", &tuning, &measured));
    CHECK(0 == fclose(file));
    CHECK(OPAL_UMRDDT_TUNING_FILE_GOOD
          == opal_umrddt_tuning_read(path, "a machine", &back, NULL, wrong));
    for (size_t i = 0; i < count; ++i) {
        CHECK(fabs(all[i] - read[i]) <= 0.01 * all[i]);
    }
    /* what was not measured is a comment */
    measured.figure[0] = false;
    file = fopen(path, "w");
    CHECK(NULL != file);
    CHECK(0 == opal_umrddt_tuning_write(file, "a machine", &tuning, &measured));
    CHECK(0 == fclose(file));
    CHECK(OPAL_UMRDDT_TUNING_FILE_GOOD
          == opal_umrddt_tuning_read(path, "a machine", &back, NULL, wrong));
    opal_umrddt_tuning_default(&tuning);
    CHECK(near(tuning.near_latency, back.near_latency));
    CHECK(0 == unlink(path));
    (void) setlocale(LC_ALL, "C");
}

/* A file is extended: earlier measurements that are not repeated stay; HCA measurements between two
 * nodes are not replaced by those within one. */
static void added(void)
{
    const char *const lines = "umrddt-model 2\nhardware any\n%s of old\nnear_latency 11\n"
                              "far_latency 12\nhca_rate 13\ngpu_flush 14\nkey_map 15\n"
                              "cpu_copy 1 2 3 4 5 6\n";
    char text[1000], wrong[OPAL_UMRDDT_TUNING_TEXT];
    opal_umrddt_tuning_measured_t then, measured;
    tuning_t before, tuning;
    int count = 0;

    for (int both = 0; both < 4; ++both) {
        bool far_then = 0 != (both & 1), far_now = 0 != (both & 2);

        (void) snprintf(text, sizeof(text), lines, far_then ? "far" : "near");
        CHECK(OPAL_UMRDDT_TUNING_FILE_GOOD == read_text(text, &before));
        CHECK(OPAL_UMRDDT_TUNING_FILE_GOOD
              == opal_umrddt_tuning_read(path, "a machine", &before, &then, wrong));
        /* one that does not distinguish umrddt's packing from Open MPI's */
        CHECK(near(6, before.cpu_pack[5]) && near(1, before.cpu_pack[0]));
        CHECK(then.any && 0 == strcmp("of old", far_then ? then.far : then.near));
        CHECK('\0' == (far_then ? then.near : then.far)[0]);
        /* now all but far_latency and the curve is measured, and one that was not before */
        opal_umrddt_tuning_default(&tuning);
        memset(&measured, 0, sizeof(measured));
        (void) snprintf(far_now ? measured.far : measured.near, OPAL_UMRDDT_TUNING_NOTE, "of now");
        count = 0;
#define MEASURE(field, value, help)                                            \
    measured.figure[count++] =                                                 \
        0 == strcmp(#field, "near_latency") || 0 == strcmp(#field, "hca_rate") \
        || 0 == strcmp(#field, "gpu_flush") || 0 == strcmp(#field, "key_map")  \
        || 0 == strcmp(#field, "gpu_launch");
        OPAL_UMRDDT_TUNING_VALUES(MEASURE)
        tuning.near_latency = tuning.hca_rate = tuning.gpu_flush = tuning.key_map = 21;
        tuning.gpu_launch = 21;
        opal_umrddt_tuning_add(&tuning, &measured, &before, &then);
        CHECK(near(21, tuning.near_latency) && near(21, tuning.key_map));
        CHECK(near(21, tuning.gpu_launch) && near(12, tuning.far_latency));
        CHECK(near(6, tuning.cpu_copy[5]) && near(1, tuning.cpu_copy[0]));
        CHECK(near(far_then && !far_now ? 13 : 21, tuning.hca_rate));
        CHECK(near(far_then && !far_now ? 14 : 21, tuning.gpu_flush));
        CHECK(0 == strcmp(far_now ? "of now" : far_then ? "of old" : "", measured.far));
        CHECK(0 == strcmp(far_now ? far_then ? "" : "of old" : "of now", measured.near));
        count = 0;
        for (size_t i = 0; i < sizeof(measured.figure) / sizeof(measured.figure[0]); ++i) {
            count += measured.figure[i] ? 1 : 0;
        }
        CHECK(7 == count);
    }
    CHECK(0 == unlink(path));
}

static void slots(void)
{
    char one[OPAL_UMRDDT_TUNING_TEXT], two[OPAL_UMRDDT_TUNING_TEXT], at[200], other[200];

    opal_umrddt_tuning_hardware(one);
    opal_umrddt_tuning_hardware(two);
    CHECK(0 == strcmp(one, two));
    CHECK('\0' != one[0] && NULL == strchr(one, '\n'));

    CHECK(0 == setenv("XDG_CONFIG_HOME", "/of/mine", 1));
    CHECK(opal_umrddt_tuning_path("a", false, at, sizeof(at)));
    CHECK(0 == strncmp(at, "/of/mine/umrddt/model-", strlen("/of/mine/umrddt/model-")));
    CHECK(opal_umrddt_tuning_path("b", false, other, sizeof(other)));
    CHECK(0 != strcmp(at, other));
    CHECK(!opal_umrddt_tuning_path("a", false, at, strlen(at)));
    CHECK(0 == setenv("HOME", "/at/home", 1));
    CHECK(0 == setenv("XDG_CONFIG_HOME", "not/absolute", 1));
    CHECK(opal_umrddt_tuning_path("a", false, at, sizeof(at)));
    CHECK(0 == strncmp(at, "/at/home/.config/umrddt/", strlen("/at/home/.config/umrddt/")));
    CHECK(0 == unsetenv("XDG_CONFIG_HOME"));
    CHECK(0 == unsetenv("HOME"));
    CHECK(!opal_umrddt_tuning_path("a", false, at, sizeof(at)));
    CHECK(opal_umrddt_tuning_path("a", true, at, sizeof(at)));
}

int main(void)
{
    by_hca();
    by_gpu();
    listed();
    copied();
    shared();
    by_base();
    chunks();
    first_of_equals();
    sane();
    curves();
    files();
    there_and_back("C");
    there_and_back("de_DE.UTF-8"); /* where it is installed: a comma in numbers */
    added();
    slots();
    printf("test_model: %lu checks\n", checks);
    return 0;
}
