/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The rule of which GPU memory the base PML is given (pml_umrddt_base_gpu.h): of every kind of
 * memory, layout, tag and peer, by the parameters and what the base PML can. The driver is played
 * here: one context is current, or none.
 */

#include "ompi_config.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "ompi/mca/pml/umrddt/core/pml_umrddt_base_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_comm.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"

#include "../common/check.h"

#define BASE UINT64_C(0x100000000)
#define SIZE 4096

static CUcontext ours = (CUcontext) &mca_pml_umrddt, others = (CUcontext) &ours, now;

static CUresult current(CUcontext *ctx)
{
    *ctx = now;
    return CUDA_SUCCESS;
}

static const opal_umrddt_gpu_driver_t driver = {.cuCtxGetCurrent = current};

int opal_umrddt_gpu_driver_load(const opal_umrddt_gpu_driver_t **out)
{
    *out = &driver;
    return OPAL_SUCCESS;
}

/* Rank 0 is on this node, rank 1 on another one, and rank 2 cannot be found. */
static opal_proc_t procs[2];
static mca_pml_umrddt_peer_t peers[2] = {{.proc = &procs[0]}, {.proc = &procs[1]}};

mca_pml_umrddt_peer_t *mca_pml_umrddt_peer_find(mca_pml_umrddt_comm_t *comm, int rank)
{
    (void) comm;
    return 0 <= rank && 2 > rank ? &peers[rank] : NULL;
}

static mca_pml_umrddt_comm_t comm;

static void open_as(int base_gpu_param, int contiguous, size_t contiguous_min,
                    mca_pml_umrddt_base_gpu_t base)
{
    mca_pml_umrddt.params.base_gpu = base_gpu_param;
    mca_pml_umrddt.params.contiguous = contiguous;
    mca_pml_umrddt.params.contiguous_min = contiguous_min;
    mca_pml_umrddt.params.min_size = 1024;
    mca_pml_umrddt_base_gpu_open();
    if (MCA_PML_UMRDDT_GPU_BASE_AUTO == base_gpu_param) {
        mca_pml_umrddt.base_gpu = base; /* this Open MPI need not have CUDA */
    }
    CHECK(base == mca_pml_umrddt.base_gpu);
    mca_pml_umrddt.base_aware = MCA_PML_UMRDDT_BASE_GPU_SAFE == base;
    CHECK(mca_pml_umrddt.contiguous_from
          == (1024 < contiguous_min ? contiguous_min : (size_t) 1024));
}

static opal_umrddt_gpu_where_t cuda_malloc(void)
{
    opal_umrddt_gpu_where_t where = {.mixed = false};

    where.memory.kind = OPAL_UMRDDT_GPU_DEVICE;
    where.memory.ctx = ours;
    where.memory.legacy_ipc = true;
    where.memory.base = BASE;
    where.memory.size = SIZE;
    return where;
}

static bool given(const opal_umrddt_gpu_where_t *where, uint64_t at, size_t bytes, int rank,
                  int tag)
{
    return mca_pml_umrddt_base_given(&comm, where, (void *) (uintptr_t) (BASE + at), bytes,
                                     &ompi_mpi_byte.dt, rank, tag);
}

/* Messages of collectives, where the base PML opens the handles that umrddt may have open. */
static void internal(const opal_umrddt_gpu_where_t *where)
{
    CHECK(!mca_pml_umrddt.base_maps);     /* ob1 */
    mca_pml_umrddt.base_maps = true;      /* ucx */
    CHECK(given(where, 0, SIZE, 0, -27)); /* without the scheme ipc */
    comm.schemes = MCA_PML_UMRDDT_BIT(MCA_PML_UMRDDT_SCHEME_IPC);
    CHECK(!given(where, 0, SIZE, 0, -27) && !given(where, 0, SIZE, OMPI_ANY_SOURCE, -27));
    CHECK(given(where, 0, SIZE, 1, -27));
    comm.bypass = true;
    CHECK(given(where, 0, SIZE, 0, -27));
    comm.bypass = false;
    mca_pml_umrddt.base_maps = false;
    CHECK(given(where, 0, SIZE, 0, -27));
    comm.schemes = 0;
}

/* Memory that is safe: where the base PML is wanted. */
static void wanted(void)
{
    opal_umrddt_gpu_where_t where = cuda_malloc();

    now = ours;
    open_as(MCA_PML_UMRDDT_GPU_BASE_AUTO, MCA_PML_UMRDDT_CONTIGUOUS_AUTO, 0,
            MCA_PML_UMRDDT_BASE_GPU_SAFE);
    CHECK(given(&where, 0, SIZE, 1, 0));
    CHECK(given(&where, SIZE - 8, 8, 1, 0));
    CHECK(!given(&where, 0, SIZE, 0, 0));
    CHECK(!given(&where, 0, SIZE, 2, 0));
    CHECK(!given(&where, 0, SIZE, OMPI_ANY_SOURCE, 0));
    CHECK(!given(&where, 0, SIZE, 0, OMPI_ANY_TAG));
    CHECK(given(&where, 0, SIZE, 1, OMPI_ANY_TAG));
    CHECK(given(&where, 0, SIZE, 0, -27)); /* of collectives */
    CHECK(!mca_pml_umrddt_base_given(NULL, &where, (void *) BASE, SIZE, &ompi_mpi_byte.dt, 1, 0));
    comm.bypass = true; /* pml_umrddt_scheme = host */
    CHECK(given(&where, 0, SIZE, 0, 0) && given(&where, 0, SIZE, OMPI_ANY_SOURCE, 0));
    comm.bypass = false;
    internal(&where);
    open_as(MCA_PML_UMRDDT_GPU_BASE_AUTO, MCA_PML_UMRDDT_CONTIGUOUS_DEFER, 0,
            MCA_PML_UMRDDT_BASE_GPU_SAFE);
    CHECK(given(&where, 0, SIZE, 0, 0) && given(&where, 0, SIZE, OMPI_ANY_SOURCE, 0));
    open_as(MCA_PML_UMRDDT_GPU_BASE_NO, MCA_PML_UMRDDT_CONTIGUOUS_DEFER, 0,
            MCA_PML_UMRDDT_BASE_GPU_NONE);
    CHECK(!given(&where, 0, SIZE, 1, 0) && !given(&where, 0, SIZE, 0, -27));
    /* a base PML that gets all memory needs no query */
    open_as(MCA_PML_UMRDDT_GPU_BASE_YES, MCA_PML_UMRDDT_CONTIGUOUS_AUTO, 0,
            MCA_PML_UMRDDT_BASE_GPU_ALL);
    CHECK(mca_pml_umrddt_base_touches(&where) && !mca_pml_umrddt.looks);
}

/* Where the base PML is wanted: memory that is not safe, or not in this thread, or not now. */
static void unsafe(void)
{
    opal_umrddt_gpu_where_t where = cuda_malloc();
    const MPI_Aint ahead = 64;
    MPI_Datatype vector;
    const bool threads = opal_using_threads();

    open_as(MCA_PML_UMRDDT_GPU_BASE_AUTO, MCA_PML_UMRDDT_CONTIGUOUS_AUTO, 0,
            MCA_PML_UMRDDT_BASE_GPU_SAFE);
    for (int i = 0; i < 2; ++i) {
        now = 0 == i ? NULL : others;
        CHECK(!given(&where, 0, SIZE, 1, 0) && !given(&where, 0, SIZE, 1, -27));
    }
    now = ours;
    CHECK(!given(&where, 1, SIZE, 1, 0) && !given(&where, SIZE, 1, 1, 0));
    CHECK(!given(&where, (uint64_t) -8, 16, 1, 0));
    where.mixed = true;
    CHECK(!given(&where, 0, SIZE, 1, 0));
    where = cuda_malloc();
    where.memory.pool = (CUmemoryPool) &where;
    CHECK(!given(&where, 0, SIZE, 1, 0));
    where = cuda_malloc();
    where.memory.ctx = NULL; /* mapped */
    CHECK(!given(&where, 0, SIZE, 1, 0));
    where = cuda_malloc();
    where.memory.legacy_ipc = false; /* another process's */
    CHECK(!given(&where, 0, SIZE, 1, 0));
    where = cuda_malloc();
    CHECK(MPI_SUCCESS == MPI_Type_vector(4, 8, 16, MPI_BYTE, &vector));
    CHECK(MPI_SUCCESS == MPI_Type_commit(&vector));
    CHECK(!mca_pml_umrddt_base_given(&comm, &where, (void *) BASE, 1, vector, 1, 0));
    CHECK(MPI_SUCCESS == MPI_Type_free(&vector));
    /* one piece that begins within the allocation, at an address that does not */
    CHECK(MPI_SUCCESS == MPI_Type_create_hindexed_block(1, 8, &ahead, MPI_BYTE, &vector));
    CHECK(MPI_SUCCESS == MPI_Type_commit(&vector));
    CHECK(mca_pml_umrddt_base_given(&comm, &where, (void *) BASE, 1, vector, 1, 0));
    CHECK(!mca_pml_umrddt_base_given(&comm, &where, (void *) (BASE - 64), 1, vector, 1, 0));
    CHECK(MPI_SUCCESS == MPI_Type_free(&vector));
    (void) opal_set_using_threads(true);
    CHECK(!given(&where, 0, SIZE, 1, 0) && !given(&where, 0, SIZE, 1, -27));
    (void) opal_set_using_threads(threads);
    CHECK(given(&where, 0, SIZE, 1, 0));
}

/* What the CPU touches is given, but managed memory to an Open MPI with CUDA where no context is
 * current. */
static void touches(void)
{
    static const opal_umrddt_gpu_kind_t kinds[] = {OPAL_UMRDDT_GPU_HOST, OPAL_UMRDDT_GPU_PINNED,
                                                   OPAL_UMRDDT_GPU_MANAGED};
    opal_umrddt_gpu_where_t where = cuda_malloc();
    const bool threads = opal_using_threads();

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); ++i) {
        bool managed = OPAL_UMRDDT_GPU_MANAGED == kinds[i];

        where.memory.kind = kinds[i];
        open_as(MCA_PML_UMRDDT_GPU_BASE_AUTO, MCA_PML_UMRDDT_CONTIGUOUS_AUTO, 0,
                MCA_PML_UMRDDT_BASE_GPU_NONE);
        now = NULL;
        CHECK(mca_pml_umrddt_base_touches(&where));
        open_as(MCA_PML_UMRDDT_GPU_BASE_AUTO, MCA_PML_UMRDDT_CONTIGUOUS_AUTO, 0,
                MCA_PML_UMRDDT_BASE_GPU_SAFE);
        CHECK(!managed == mca_pml_umrddt_base_touches(&where));
        now = others;
        CHECK(mca_pml_umrddt_base_touches(&where));
        (void) opal_set_using_threads(true);
        CHECK(!managed == mca_pml_umrddt_base_touches(&where));
        (void) opal_set_using_threads(threads);
        CHECK(!given(&where, 0, SIZE, 1, 0));
    }
    where.memory.kind = OPAL_UMRDDT_GPU_DEVICE;
    CHECK(!mca_pml_umrddt_base_touches(&where));
}

/* Who handles contiguous messages: umrddt or the base PML. */
static void contiguous(void)
{
    open_as(MCA_PML_UMRDDT_GPU_BASE_YES, MCA_PML_UMRDDT_CONTIGUOUS_AUTO, 0,
            MCA_PML_UMRDDT_BASE_GPU_ALL);
    CHECK(!mca_pml_umrddt.takes_contiguous && !mca_pml_umrddt.declines_far
          && !mca_pml_umrddt.looks);
    open_as(MCA_PML_UMRDDT_GPU_BASE_YES, MCA_PML_UMRDDT_CONTIGUOUS_AUTO, 65536,
            MCA_PML_UMRDDT_BASE_GPU_ALL);
    CHECK(mca_pml_umrddt.takes_contiguous && !mca_pml_umrddt.declines_far && mca_pml_umrddt.looks);
    open_as(MCA_PML_UMRDDT_GPU_BASE_NO, MCA_PML_UMRDDT_CONTIGUOUS_DEFER, 0,
            MCA_PML_UMRDDT_BASE_GPU_NONE);
    CHECK(!mca_pml_umrddt.takes_contiguous && !mca_pml_umrddt.declines_far && mca_pml_umrddt.looks);
    open_as(MCA_PML_UMRDDT_GPU_BASE_NO, MCA_PML_UMRDDT_CONTIGUOUS_AUTO, 0,
            MCA_PML_UMRDDT_BASE_GPU_NONE);
    CHECK(mca_pml_umrddt.takes_contiguous && !mca_pml_umrddt.declines_far && mca_pml_umrddt.looks);
    mca_pml_umrddt_base_gpu_close();
    CHECK(!mca_pml_umrddt.takes_contiguous && !mca_pml_umrddt.looks);
}

/* pml/ucx alone gives UCX any pointer: without UCX's module for CUDA it is not aware. UCX opens
 * CUDA IPC handles itself. */
static void ucx(void)
{
    strcpy(mca_pml_umrddt.host_component.pmlm_version.mca_component_name, "ucx");
    mca_pml_umrddt_base_gpu_open();
    CHECK(mca_pml_umrddt.base_maps);
    CHECK(!mca_pml_umrddt_base_gpu_aware("ucx"));
    CHECK(umrddt_knows_cuda() == mca_pml_umrddt_base_gpu_aware("ob1"));
}

/* Tags of the application and of collectives on GPU memory are handled, also as pml/ucx reports
 * them. Those of Open MPI and of pml/umrddt are not. */
static void tags(void)
{
    const int ucx = (int) ((uint32_t) UMRDDT_COLLECTIVES_TAG << 8) / 256;

    CHECK(0 > ucx && UMRDDT_COLLECTIVES_TAG != ucx);
    CHECK(!mca_pml_umrddt_is_internal(UMRDDT_COLLECTIVES_TAG));
    CHECK(!mca_pml_umrddt_is_internal(ucx));
    CHECK(!mca_pml_umrddt_is_internal(UMRDDT_COLLECTIVES_TAG + UMRDDT_COLLECTIVES_TAGS - 1));
    CHECK(!mca_pml_umrddt_is_internal(ucx + UMRDDT_COLLECTIVES_TAGS - 1));
    CHECK(mca_pml_umrddt_is_internal(UMRDDT_COLLECTIVES_TAG + UMRDDT_COLLECTIVES_TAGS));
    CHECK(mca_pml_umrddt_is_internal(UMRDDT_COLLECTIVES_TAG - 1));
    CHECK(!mca_pml_umrddt_is_internal(OMPI_ANY_TAG));
    CHECK(!mca_pml_umrddt_is_internal(0));
    CHECK(!mca_pml_umrddt_is_internal(UMRDDT_COLLECTIVES_TAG & 0xffffff));
    CHECK(!mca_pml_umrddt_is_internal(INT32_MAX));
    CHECK(mca_pml_umrddt_is_internal(-10));
    CHECK(mca_pml_umrddt_is_internal(-27));
    CHECK(mca_pml_umrddt_is_internal(INT32_MIN));
    for (uint32_t id = 0; id < MCA_PML_UMRDDT_MAX_REQUEST_IDS; ++id) {
        CHECK(mca_pml_umrddt_is_internal(mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_INFO, id)));
        CHECK(mca_pml_umrddt_is_internal(mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_REPLY, id)));
    }
}

int main(void)
{
    CHECK(MPI_SUCCESS == MPI_Init(NULL, NULL));
    procs[0].proc_flags = OPAL_PROC_ON_NODE;
    mca_pml_umrddt.gpu = &driver;
    tags();
    wanted();
    unsafe();
    touches();
    contiguous();
    ucx();
    MPI_Finalize();
    return 0;
}
