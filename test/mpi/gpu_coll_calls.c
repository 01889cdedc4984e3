/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The calls of gpu_coll.c.
 */

#include "gpu_coll.h"

#include "persistent.h"

#define RANKS 16

bool gpu_coll_has_form(gpu_coll_form_t form)
{
    return GPU_COLL_PERSISTENT != form || 0 != HAS_PERSISTENT;
}

int gpu_coll_some(const gpu_coll_t *with, int from, int to)
{
    return with->count * ((from + to + 1) % 3) / 2;
}

int gpu_coll_elements(const gpu_coll_t *with)
{
    int parts = with->others > with->size ? with->others : with->size;

    parts = with->sources > parts ? with->sources : parts;
    parts = with->destinations > parts ? with->destinations : parts;
    return (with->count + 1) * parts * (with->inter ? with->others : 1);
}

/* What the calls with counts are given; valid until the next call of a case that uses it ends. */
typedef struct vectors_t {
    int at[RANKS];    /* displacements of parts, with an element between them, in extents */
    int tight[RANKS]; /* and with nothing between them */
    int tight_bytes[RANKS];
    int bytes[RANKS]; /* the same in bytes */
    MPI_Aint far[RANKS];
    int gathered[RANKS]; /* elements of each process's part */
    int out[RANKS];      /* elements for each process */
    int in[RANKS];
    int same[RANKS]; /* the same number for all forms */
    int scattered[RANKS];
    MPI_Datatype types[RANKS]; /* one kind, then the other */
    MPI_Datatype turned[RANKS];
    MPI_Datatype alike[RANKS];
} vectors_t;

/* Nonblocking calls still look at theirs, so each call has its own; they are few. */
static const vectors_t *vectors(const gpu_coll_t *with)
{
    static vectors_t kept[64];
    static unsigned next;
    vectors_t *v = &kept[next++ % 64];
    int i;

    CHECK(with->others <= RANKS && with->size <= RANKS && with->sources <= RANKS
          && with->destinations <= RANKS);
    for (i = 0; i < RANKS; ++i) {
        v->at[i] = i * (with->count + 1);
        v->far[i] = v->at[i] * with->extent;
        v->tight[i] = i * with->count;
        v->tight_bytes[i] = (int) (v->tight[i] * with->extent);
        v->bytes[i] = (int) v->far[i];
        v->gathered[i] = gpu_coll_some(with, i, 0);
        v->out[i] = gpu_coll_some(with, with->rank, i);
        v->in[i] = gpu_coll_some(with, i, with->rank);
        v->same[i] = with->count;
        v->types[i] = 0 == i % 2 ? with->type : with->other;
        v->turned[i] = 0 == i % 2 ? with->other : with->type;
        v->alike[i] = with->type;
        v->scattered[i] = gpu_coll_some(with, i, 1);
    }
    if (with->inter) {
        /* both groups have the same sum */
        for (i = 0; i < RANKS; ++i) {
            v->scattered[i] = with->count * with->others;
        }
    }
    return v;
}

#if HAS_PERSISTENT
#define INIT(name, ...) MPI_OK(PERSISTENT(name)(__VA_ARGS__, with->comm, MPI_INFO_NULL, request))
#else
#define INIT(name, ...) mpitest_fail(__FILE__, __LINE__, "no persistent collectives")
#endif

void gpu_coll_alltoall_init(const void *from, void *to, int bytes, MPI_Comm comm,
                            MPI_Request *request)
{
#if HAS_PERSISTENT
    MPI_OK(PERSISTENT(Alltoall)(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, comm, MPI_INFO_NULL,
                                request));
#else
    (void) from;
    (void) to;
    (void) bytes;
    (void) comm;
    *request = MPI_REQUEST_NULL;
#endif
}

void gpu_coll_bcast_init(void *address, int count, MPI_Datatype type, int root, MPI_Comm comm,
                         MPI_Request *request)
{
#if HAS_PERSISTENT
    MPI_OK(PERSISTENT(Bcast)(address, count, type, root, comm, MPI_INFO_NULL, request));
#else
    (void) address;
    (void) count;
    (void) type;
    (void) root;
    (void) comm;
    *request = MPI_REQUEST_NULL;
#endif
}

void gpu_coll_alltoallw_init(const void *from, void *to, const int *counts, const int *displs,
                             const MPI_Datatype *types, MPI_Comm comm, MPI_Request *request)
{
#if HAS_PERSISTENT
    MPI_OK(PERSISTENT(Alltoallw)(from, counts, displs, types, to, counts, displs, types, comm,
                                 MPI_INFO_NULL, request));
#else
    (void) from;
    (void) to;
    (void) counts;
    (void) displs;
    (void) types;
    (void) comm;
    *request = MPI_REQUEST_NULL;
#endif
}

#define FORMS(name, nonblocking, ...)                                     \
    do {                                                                  \
        switch (form) {                                                   \
        case GPU_COLL_BLOCKING:                                           \
            MPI_OK(MPI_##name(__VA_ARGS__, with->comm));                  \
            break;                                                        \
        case GPU_COLL_NONBLOCKING:                                        \
            MPI_OK(MPI_I##nonblocking(__VA_ARGS__, with->comm, request)); \
            break;                                                        \
        default:                                                          \
            INIT(name, __VA_ARGS__);                                      \
        }                                                                 \
    } while (0)

#define CASE(name)                                                                   \
    static void name(const gpu_coll_t *with, gpu_coll_form_t form, void *s, void *r, \
                     MPI_Request *request)

CASE(allgather)
{
    FORMS(Allgather, allgather, s, with->count, with->type, r, with->count, with->other);
}

CASE(allgather_in_place)
{
    (void) s;
    FORMS(Allgather, allgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, r, with->count, with->type);
}

CASE(allgatherv)
{
    const vectors_t *v = vectors(with);

    FORMS(Allgatherv, allgatherv, s, gpu_coll_some(with, with->rank, 0), with->type, r, v->gathered,
          v->at, with->other);
}

CASE(allgatherv_in_place)
{
    const vectors_t *v = vectors(with);

    (void) s;
    FORMS(Allgatherv, allgatherv, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, r, v->gathered, v->at,
          with->type);
}

CASE(allreduce)
{
    FORMS(Allreduce, allreduce, s, r, with->count, with->type, with->op);
}

CASE(allreduce_in_place)
{
    (void) s;
    FORMS(Allreduce, allreduce, MPI_IN_PLACE, r, with->count, with->type, with->op);
}

CASE(alltoall)
{
    FORMS(Alltoall, alltoall, s, with->count, with->other, r, with->count, with->type);
}

CASE(alltoall_in_place)
{
    (void) s;
    FORMS(Alltoall, alltoall, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, r, with->count, with->type);
}

CASE(alltoallv)
{
    const vectors_t *v = vectors(with);

    FORMS(Alltoallv, alltoallv, s, v->out, v->at, with->type, r, v->in, v->at, with->type);
}

CASE(alltoallv_in_place)
{
    const vectors_t *v = vectors(with);

    (void) s;
    FORMS(Alltoallv, alltoallv, MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, r, v->same, v->at,
          with->type);
}

CASE(alltoallw)
{
    const vectors_t *v = vectors(with);

    FORMS(Alltoallw, alltoallw, s, v->out, v->bytes, v->types, r, v->in, v->bytes, v->turned);
}

CASE(alltoallw_in_place)
{
    const vectors_t *v = vectors(with);

    (void) s;
    FORMS(Alltoallw, alltoallw, MPI_IN_PLACE, NULL, NULL, NULL, r, v->same, v->bytes, v->alike);
}

CASE(alltoallv_tight)
{
    const vectors_t *v = vectors(with);

    FORMS(Alltoallv, alltoallv, s, v->same, v->tight, with->type, r, v->same, v->tight,
          with->other);
}

CASE(alltoallw_tight)
{
    const vectors_t *v = vectors(with);

    FORMS(Alltoallw, alltoallw, s, v->same, v->tight_bytes, v->types, r, v->same, v->tight_bytes,
          v->turned);
}

CASE(bcast)
{
    (void) s;
    FORMS(Bcast, bcast, r, with->count, with->gives ? with->type : with->other, with->root);
}

CASE(exscan)
{
    FORMS(Exscan, exscan, s, r, with->count, with->type, with->op);
}

CASE(exscan_in_place)
{
    (void) s;
    FORMS(Exscan, exscan, MPI_IN_PLACE, r, with->count, with->type, with->op);
}

CASE(gather)
{
    FORMS(Gather, gather, s, with->count, with->type, r, with->count, with->other, with->root);
}

CASE(gather_in_place)
{
    FORMS(Gather, gather, with->gives ? MPI_IN_PLACE : s, with->count, with->type, r, with->count,
          with->type, with->root);
}

CASE(gatherv)
{
    const vectors_t *v = vectors(with);

    FORMS(Gatherv, gatherv, s, gpu_coll_some(with, with->rank, 0), with->other, r, v->gathered,
          v->at, with->type, with->root);
}

CASE(gatherv_in_place)
{
    const vectors_t *v = vectors(with);

    FORMS(Gatherv, gatherv, with->gives ? MPI_IN_PLACE : s, gpu_coll_some(with, with->rank, 0),
          with->type, r, v->gathered, v->at, with->type, with->root);
}

CASE(reduce)
{
    FORMS(Reduce, reduce, s, r, with->count, with->type, with->op, with->root);
}

CASE(reduce_in_place)
{
    FORMS(Reduce, reduce, with->gives ? MPI_IN_PLACE : s, r, with->count, with->type, with->op,
          with->root);
}

CASE(reduce_scatter)
{
    const vectors_t *v = vectors(with);

    FORMS(Reduce_scatter, reduce_scatter, s, r, v->scattered, with->type, with->op);
}

CASE(reduce_scatter_in_place)
{
    const vectors_t *v = vectors(with);

    (void) s;
    FORMS(Reduce_scatter, reduce_scatter, MPI_IN_PLACE, r, v->scattered, with->type, with->op);
}

CASE(reduce_scatter_block)
{
    FORMS(Reduce_scatter_block, reduce_scatter_block, s, r,
          with->inter ? with->count * with->others : with->count, with->type, with->op);
}

CASE(reduce_scatter_block_in_place)
{
    (void) s;
    FORMS(Reduce_scatter_block, reduce_scatter_block, MPI_IN_PLACE, r, with->count, with->type,
          with->op);
}

CASE(scan)
{
    FORMS(Scan, scan, s, r, with->count, with->type, with->op);
}

CASE(scan_in_place)
{
    (void) s;
    FORMS(Scan, scan, MPI_IN_PLACE, r, with->count, with->type, with->op);
}

CASE(scatter)
{
    FORMS(Scatter, scatter, s, with->count, with->type, r, with->count, with->other, with->root);
}

CASE(scatter_in_place)
{
    FORMS(Scatter, scatter, s, with->count, with->type, with->gives ? MPI_IN_PLACE : r, with->count,
          with->type, with->root);
}

CASE(scatterv)
{
    const vectors_t *v = vectors(with);

    FORMS(Scatterv, scatterv, s, v->gathered, v->at, with->type, r,
          gpu_coll_some(with, with->rank, 0), with->other, with->root);
}

CASE(scatterv_in_place)
{
    const vectors_t *v = vectors(with);

    FORMS(Scatterv, scatterv, s, v->gathered, v->at, with->type, with->gives ? MPI_IN_PLACE : r,
          gpu_coll_some(with, with->rank, 0), with->type, with->root);
}

CASE(neighbor_allgather)
{
    FORMS(Neighbor_allgather, neighbor_allgather, s, with->count, with->type, r, with->count,
          with->other);
}

CASE(neighbor_allgatherv)
{
    const vectors_t *v = vectors(with);

    FORMS(Neighbor_allgatherv, neighbor_allgatherv, s, with->count, with->type, r, v->same, v->at,
          with->other);
}

CASE(neighbor_alltoall)
{
    FORMS(Neighbor_alltoall, neighbor_alltoall, s, with->count, with->other, r, with->count,
          with->type);
}

CASE(neighbor_alltoallv)
{
    const vectors_t *v = vectors(with);

    FORMS(Neighbor_alltoallv, neighbor_alltoallv, s, v->same, v->at, with->type, r, v->same, v->at,
          with->type);
}

CASE(neighbor_alltoallw)
{
    const vectors_t *v = vectors(with);

    FORMS(Neighbor_alltoallw, neighbor_alltoallw, s, v->same, v->far, v->types, r, v->same, v->far,
          v->turned);
}

const gpu_coll_case_t gpu_coll_cases[] = {
    {"allgather", GPU_COLL_INTER, allgather},
    {"allgather_in_place", GPU_COLL_IN_PLACE, allgather_in_place},
    {"allgatherv", GPU_COLL_INTER, allgatherv},
    {"allgatherv_in_place", GPU_COLL_IN_PLACE, allgatherv_in_place},
    {"allreduce", GPU_COLL_INTER, allreduce},
    {"allreduce_in_place", GPU_COLL_IN_PLACE, allreduce_in_place},
    {"alltoall", GPU_COLL_INTER, alltoall},
    {"alltoall_in_place", GPU_COLL_IN_PLACE, alltoall_in_place},
    {"alltoallv", GPU_COLL_INTER, alltoallv},
    {"alltoallv_in_place", GPU_COLL_IN_PLACE, alltoallv_in_place},
    {"alltoallw", GPU_COLL_INTER, alltoallw},
    {"alltoallw_in_place", GPU_COLL_IN_PLACE, alltoallw_in_place},
    {"alltoallv_tight", GPU_COLL_INTER, alltoallv_tight},
    {"alltoallw_tight", GPU_COLL_INTER, alltoallw_tight},
    {"bcast", GPU_COLL_INTER, bcast},
    {"exscan", 0, exscan},
    {"exscan_in_place", GPU_COLL_IN_PLACE, exscan_in_place},
    {"gather", GPU_COLL_INTER, gather},
    {"gather_in_place", GPU_COLL_IN_PLACE, gather_in_place},
    {"gatherv", GPU_COLL_INTER, gatherv},
    {"gatherv_in_place", GPU_COLL_IN_PLACE, gatherv_in_place},
    {"reduce", GPU_COLL_INTER, reduce},
    {"reduce_in_place", GPU_COLL_IN_PLACE, reduce_in_place},
    {"reduce_scatter", GPU_COLL_INTER, reduce_scatter},
    {"reduce_scatter_in_place", GPU_COLL_IN_PLACE, reduce_scatter_in_place},
    {"reduce_scatter_block", GPU_COLL_INTER, reduce_scatter_block},
    {"reduce_scatter_block_in_place", GPU_COLL_IN_PLACE, reduce_scatter_block_in_place},
    {"scan", 0, scan},
    {"scan_in_place", GPU_COLL_IN_PLACE, scan_in_place},
    {"scatter", GPU_COLL_INTER, scatter},
    {"scatter_in_place", GPU_COLL_IN_PLACE, scatter_in_place},
    {"scatterv", GPU_COLL_INTER, scatterv},
    {"scatterv_in_place", GPU_COLL_IN_PLACE, scatterv_in_place},
    {"neighbor_allgather", GPU_COLL_NEIGHBOURS, neighbor_allgather},
    {"neighbor_allgatherv", GPU_COLL_NEIGHBOURS, neighbor_allgatherv},
    {"neighbor_alltoall", GPU_COLL_NEIGHBOURS, neighbor_alltoall},
    {"neighbor_alltoallv", GPU_COLL_NEIGHBOURS, neighbor_alltoallv},
    {"neighbor_alltoallw", GPU_COLL_NEIGHBOURS, neighbor_alltoallw},
    {NULL, 0, NULL},
};
