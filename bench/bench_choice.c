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
 * The cost of the model's selection of a scheme for a repeated message: the selection is looked up,
 * and the end of the message is recorded (pml_umrddt_select.c, which is part of this program).
 * One process:
 *
 *     bench_choice [CHOICES]
 *
 * It uses 16 pairs of layouts in GPU memory in turn, between processes of one node. It prints the
 * nanoseconds of a selection, those of a lookup of the layout (opal_iov_cache_get), which each
 * message also needs, and their ratio; and those of a sender's test whether to handle a message.
 * All in processor time; medians of 11 rounds. bench/results/instructions.md has the instructions.
 */

#include "ompi_config.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <mpi.h>

#include "opal/datatype/iov_cache/iov_cache.h"

#include "bench_util.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_hca.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_layout.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_select.h"

#define PAIRS  16
#define ROUNDS 11

mca_pml_umrddt_t mca_pml_umrddt;

static opal_iov_cache_t *cache;
static MPI_Datatype types[PAIRS];
static mca_pml_umrddt_recv_t recvs[PAIRS];
static mca_pml_umrddt_peer_t peer;
static mca_pml_umrddt_comm_t comm;
static const opal_umrddt_gpu_where_t gpu = {
    .memory = {.kind = OPAL_UMRDDT_GPU_DEVICE, .legacy_ipc = true, .buffer_id = 1}};
static const opal_umrddt_gpu_where_t host = {.memory = {.kind = OPAL_UMRDDT_GPU_HOST}};

/* ---------------------------------------------------------------------------------------------
 * Functions that the selection calls
 * ------------------------------------------------------------------------------------------- */

bool mca_pml_umrddt_hca_takes(const mca_pml_umrddt_peer_t *to, const opal_umrddt_gpu_where_t *where)
{
    (void) where;
    return to->has_hca;
}

int mca_pml_umrddt_layout(ompi_datatype_t *datatype, size_t count, opal_iov_cache_layout_t **layout)
{
    return opal_iov_cache_get(cache, &datatype->super, count, layout);
}

mca_pml_umrddt_pattern_t mca_pml_umrddt_pattern_read(mca_pml_umrddt_comm_t *of)
{
    (void) of;
    return MCA_PML_UMRDDT_PATTERN_NONE;
}

static int promise(opal_iov_cache_t *of, const opal_datatype_t *type, void *context)
{
    (void) of;
    (void) type;
    (void) context;
    return OPAL_SUCCESS;
}

/* ---------------------------------------------------------------------------------------------
 * The counted functions: separate, and with these names, for callgrind
 * ------------------------------------------------------------------------------------------- */

typedef void (*counted_fn_t)(uint64_t count);

__attribute__((noinline)) void choices_counted(uint64_t count);
__attribute__((noinline)) void lookups_counted(uint64_t count);
__attribute__((noinline)) void questions_counted(uint64_t count);
__attribute__((noinline)) void refusals_counted(uint64_t count);

void choices_counted(uint64_t count)
{
    static volatile uint64_t sink;
    uint64_t packed = 0;

    for (uint64_t i = 0; i < count; ++i) {
        mca_pml_umrddt_recv_t *recv = &recvs[i % PAIRS];

        mca_pml_umrddt_select_recv(recv);
        packed += 0 != (MCA_PML_UMRDDT_BITS_PACK & MCA_PML_UMRDDT_BIT(recv->scheme));
        mca_pml_umrddt_select_ended(recv, MPI_SUCCESS);
    }
    sink = packed;
    (void) sink;
}

void lookups_counted(uint64_t count)
{
    opal_iov_cache_layout_t *layout;

    for (uint64_t i = 0; i < count; ++i) {
        (void) opal_iov_cache_get(cache, &types[i % PAIRS]->super, 1, &layout);
        OBJ_RELEASE(layout);
    }
}

/* With the lookup of the layout that is in it. */
void questions_counted(uint64_t count)
{
    for (uint64_t i = 0; i < count; ++i) {
        if (mca_pml_umrddt_select_passes(&comm, &peer, &gpu, false, 1, types[i % PAIRS])) {
            bench_fatal("the base PML is not the fastest");
        }
    }
}

/* Messages that are passed through. */
void refusals_counted(uint64_t count)
{
    for (uint64_t i = 0; i < count; ++i) {
        if (!mca_pml_umrddt_select_passes(&comm, &peer, &host, false, 1, types[i % PAIRS])) {
            bench_fatal("the base PML is the only candidate");
        }
    }
}

/* ---------------------------------------------------------------------------------------------
 * Times
 * ------------------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}

/* @return nanoseconds of one */
static double measure(counted_fn_t counted, uint64_t count)
{
    double rounds[ROUNDS];

    for (int round = 0; round < ROUNDS; ++round) {
        struct timespec begin, end;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
        counted(count);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
        rounds[round] =
            (double) (end.tv_sec - begin.tv_sec) + 1e-9 * (double) (end.tv_nsec - begin.tv_nsec);
    }
    qsort(rounds, ROUNDS, sizeof(rounds[0]), ascending);
    return 1e9 * rounds[ROUNDS / 2] / (double) count;
}

static void prepare(void)
{
    static opal_proc_t proc;

    proc.proc_flags = OPAL_PROC_ON_NODE;
    peer.proc = &proc;
    peer.capable = peer.has_gpu = peer.same_host = true;
    comm.scheme = MCA_PML_UMRDDT_SCHEME_AUTO;
    comm.schemes = mca_pml_umrddt.schemes = MCA_PML_UMRDDT_BITS_ALL;
    comm.pattern = MCA_PML_UMRDDT_PATTERN_NONE;
    mca_pml_umrddt.params.model = (char *) "defaults";
    mca_pml_umrddt.eager[true] = OPAL_UMRDDT_SELECT_EAGER;
    mca_pml_umrddt.params.reuse = 1;
    mca_pml_umrddt.params.pack_depth = 4;
    mca_pml_umrddt.params.pack_chunk_floor = 128 << 10;
    mca_pml_umrddt.params.pack_chunk_ceiling = 1 << 20;
    mca_pml_umrddt.params.pack_min = 8192;
    mca_pml_umrddt.params.mkey_cache = true;
    mca_pml_umrddt.params.gpu_hca = true;
    opal_iov_cache_create((size_t) 1 << 24, promise, NULL, &cache);
    for (int i = 0; i < PAIRS; ++i) {
        mca_pml_umrddt_recv_t *recv = &recvs[i];

        MPI_Type_vector(100 + i, 128, 256, MPI_DOUBLE, &types[i]);
        MPI_Type_commit(&types[i]);
        if (OPAL_SUCCESS != opal_iov_cache_get(cache, &types[i]->super, 1, &recv->layout)) {
            bench_fatal("no layout");
        }
        recv->buf = (void *) (uintptr_t) (4096 * (i + 1));
        recv->comm = &comm;
        recv->peer = &peer;
        recv->where = gpu;
        recv->total = recv->rts.length = recv->layout->size;
        recv->rts.pieces = (uint32_t) recv->layout->iov_count;
        recv->rts.write_pieces = 1;
        recv->rts.schemes = MCA_PML_UMRDDT_BIT_IPC | MCA_PML_UMRDDT_BIT_PACK_STAGED
                            | MCA_PML_UMRDDT_BIT_PACK_HOST | MCA_PML_UMRDDT_ON_GPU;
    }
    mca_pml_umrddt_select_open(false);
}

int main(int argc, char **argv)
{
    uint64_t count = 1 < argc ? strtoull(argv[1], NULL, 10) : 1000000;
    double choice, lookup, question, refusal;

    if (2 < argc || 0 == count) {
        fprintf(stderr, "usage: bench_choice [CHOICES]\n");
        return 1;
    }
    setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
    setenv("OMPI_MCA_pml", "ob1", 1);
    setenv("OMPI_MCA_btl", "self", 1);
    MPI_Init(NULL, NULL);
    prepare();
    bench_count_begin();
    choice = measure(choices_counted, count);
    lookup = measure(lookups_counted, count);
    question = measure(questions_counted, count);
    refusal = measure(refusals_counted, count);
    printf(
        "ns: choice %.1f, lookup of the layout %.1f, ratio %.2f; decision of the sender, with a lookup, "
        "%.1f, if passed through %.1f\n",
        choice, lookup, choice / lookup, question, refusal);
#if !defined(__OPTIMIZE__)
    printf("compiled without optimisation\n");
#endif
    for (int i = 0; i < PAIRS; ++i) {
        OBJ_RELEASE(recvs[i].layout);
        MPI_Type_free(&types[i]);
    }
    mca_pml_umrddt_select_close();
    opal_iov_cache_destroy(cache);
    MPI_Finalize();
    return 0;
}
