/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The main use case: a 3-D stencil whose faces are subarrays. A periodic grid of ranks has all six
 * faces in flight at once, for several steps. At the end every cell must have exactly the value
 * that one process computes alone, bit by bit, because the order of additions is the same.
 *
 * Mode "persistent" uses persistent requests, as such codes do. With umrddt each rank has queue
 * pairs to its neighbours only.
 */

#include "mpitest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEPS 3

typedef struct box_t {
    int n[3];   /* cells of a rank, without the border */
    int radius; /* of the stencil: width of the border */
    double *old, *new;
} box_t;

static size_t at(const box_t *box, int x, int y, int z)
{
    int r = box->radius;

    return ((size_t) (x + r) * (size_t) (box->n[1] + 2 * r) + (size_t) (y + r))
               * (size_t) (box->n[2] + 2 * r)
           + (size_t) (z + r);
}

static size_t volume(const box_t *box)
{
    int r = 2 * box->radius;

    return (size_t) (box->n[0] + r) * (size_t) (box->n[1] + r) * (size_t) (box->n[2] + r);
}

static void allocate(box_t *box)
{
    size_t i;

    box->old = malloc(sizeof(double) * volume(box));
    box->new = malloc(sizeof(double) * volume(box));
    CHECK(NULL != box->old && NULL != box->new);
    for (i = 0; i < volume(box); ++i) {
        box->old[i] = box->new[i] = -1e30;
    }
}

static double start_value(int x, int y, int z)
{
    return (double) (mpitest_mix(mpitest.seed, (uint64_t) x * 4096 + (uint64_t) y, (uint64_t) z)
                     % 1000003);
}

static void compute(box_t *box)
{
    double *swap;
    int x, y, z, r;

    for (x = 0; x < box->n[0]; ++x) {
        for (y = 0; y < box->n[1]; ++y) {
            for (z = 0; z < box->n[2]; ++z) {
                double sum = box->old[at(box, x, y, z)];

                for (r = 1; r <= box->radius; ++r) {
                    sum += (box->old[at(box, x - r, y, z)] + box->old[at(box, x + r, y, z)]) / r;
                    sum += (box->old[at(box, x, y - r, z)] - box->old[at(box, x, y + r, z)]) / r;
                    sum +=
                        (box->old[at(box, x, y, z - r)] * 3 + box->old[at(box, x, y, z + r)]) / r;
                }
                box->new[at(box, x, y, z)] = sum * 0.37;
            }
        }
    }
    swap = box->old;
    box->old = box->new;
    box->new = swap;
}

/* One process alone: the border is the other side of the box itself. */
static void wrap(box_t *box)
{
    int x, y, z, r = box->radius, *n = box->n;

    for (x = -r; x < n[0] + r; ++x) {
        for (y = -r; y < n[1] + r; ++y) {
            for (z = -r; z < n[2] + r; ++z) {
                int outside = (0 > x || x >= n[0] ? 1 : 0) + (0 > y || y >= n[1] ? 1 : 0)
                              + (0 > z || z >= n[2] ? 1 : 0);

                if (1 == outside) {
                    box->old[at(box, x, y, z)] =
                        box->old[at(box, (x + n[0]) % n[0], (y + n[1]) % n[1], (z + n[2]) % n[2])];
                }
            }
        }
    }
}

/* The face of a dimension: on the low or high side, of the cells themselves or of the border. */
static MPI_Datatype face(const box_t *box, int dimension, bool high, bool border)
{
    int sizes[3], part[3], start[3], d;
    MPI_Datatype type;

    for (d = 0; d < 3; ++d) {
        sizes[d] = box->n[d] + 2 * box->radius;
        part[d] = box->n[d];
        start[d] = box->radius;
    }
    part[dimension] = box->radius;
    if (high) {
        start[dimension] = border ? box->n[dimension] + box->radius : box->n[dimension];
    } else {
        start[dimension] = border ? 0 : box->radius;
    }
    MPI_OK(MPI_Type_create_subarray(3, sizes, part, start, MPI_ORDER_C, MPI_DOUBLE, &type));
    MPI_OK(MPI_Type_commit(&type));
    return type;
}

static void run(MPI_Comm grid, const int dims[3], const int coords[3], int radius, uint64_t *state)
{
    MPI_Datatype out[6], in[6];
    MPI_Request requests[2][12];
    int neighbours[6], d, side, x, y, z, step, i;
    bool persistent = mpitest_has("persistent");
    box_t box = {.radius = radius}, whole = {.radius = radius};
    double *memory[2];

    for (d = 0; d < 3; ++d) {
        box.n[d] = (int) mpitest_between(state, 12, 40);
        whole.n[d] = box.n[d] * dims[d];
        MPI_OK(MPI_Cart_shift(grid, d, 1, &neighbours[2 * d], &neighbours[2 * d + 1]));
    }
    for (d = 0; d < 3; ++d) {
        for (side = 0; side < 2; ++side) {
            out[2 * d + side] = face(&box, d, 1 == side, false);
            in[2 * d + side] = face(&box, d, 1 == side, true);
        }
    }
    allocate(&box);
    allocate(&whole);
    for (x = 0; x < whole.n[0]; ++x) {
        for (y = 0; y < whole.n[1]; ++y) {
            for (z = 0; z < whole.n[2]; ++z) {
                whole.old[at(&whole, x, y, z)] = start_value(x, y, z);
            }
        }
    }
    for (x = 0; x < box.n[0]; ++x) {
        for (y = 0; y < box.n[1]; ++y) {
            for (z = 0; z < box.n[2]; ++z) {
                box.old[at(&box, x, y, z)] = start_value(
                    coords[0] * box.n[0] + x, coords[1] * box.n[1] + y, coords[2] * box.n[2] + z);
            }
        }
    }
    /* Steps alternate between two arrays, with a set of persistent requests for each. */
    memory[0] = box.old;
    memory[1] = box.new;
    for (i = 0; persistent && i < 12; ++i) {
        for (side = 0; side < 2; ++side) {
            if (6 > i) {
                MPI_OK(MPI_Recv_init(memory[side], 1, in[i], neighbours[i], i, grid,
                                     &requests[side][i]));
            } else {
                MPI_OK(MPI_Send_init(memory[side], 1, out[i - 6], neighbours[i - 6], (i - 6) ^ 1,
                                     grid, &requests[side][i]));
            }
        }
    }
    for (step = 0; step < STEPS; ++step) {
        if (persistent) {
            MPI_OK(MPI_Startall(12, requests[step % 2]));
            MPI_OK(MPI_Waitall(12, requests[step % 2], MPI_STATUSES_IGNORE));
        } else {
            for (i = 0; i < 6; ++i) {
                MPI_OK(MPI_Irecv(box.old, 1, in[i], neighbours[i], i, grid, &requests[0][i]));
            }
            for (i = 0; i < 6; ++i) {
                MPI_OK(
                    MPI_Isend(box.old, 1, out[i], neighbours[i], i ^ 1, grid, &requests[0][6 + i]));
            }
            MPI_OK(MPI_Waitall(12, requests[0], MPI_STATUSES_IGNORE));
        }
        compute(&box);
        wrap(&whole);
        compute(&whole);
    }
    for (x = 0; x < box.n[0]; ++x) {
        for (y = 0; y < box.n[1]; ++y) {
            for (z = 0; z < box.n[2]; ++z) {
                double got = box.old[at(&box, x, y, z)];
                double wanted = whole.old[at(&whole, coords[0] * box.n[0] + x,
                                             coords[1] * box.n[1] + y, coords[2] * box.n[2] + z)];

                if (0 != memcmp(&got, &wanted, sizeof(got))) {
                    mpitest_fail(__FILE__, __LINE__,
                                 "radius %d, box %d x %d x %d: cell %d %d %d is %.17g, not %.17g",
                                 radius, box.n[0], box.n[1], box.n[2], x, y, z, got, wanted);
                }
                ++mpitest.checks;
            }
        }
    }
    for (i = 0; persistent && i < 12; ++i) {
        MPI_OK(MPI_Request_free(&requests[0][i]));
        MPI_OK(MPI_Request_free(&requests[1][i]));
    }
    for (i = 0; i < 6; ++i) {
        MPI_OK(MPI_Type_free(&out[i]));
        MPI_OK(MPI_Type_free(&in[i]));
    }
    free(box.old);
    free(box.new);
    free(whole.old);
    free(whole.new);
}

/** A performance variable of pml/umrddt that is a level. @return -1: it does not exist */
static long long in_use(const char *name)
{
    unsigned long long value = 0;
    MPI_T_pvar_session session;
    MPI_T_pvar_handle handle;
    int provided, index, count;

    MPI_OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
    if (MPI_SUCCESS != MPI_T_pvar_get_index(name, MPI_T_PVAR_CLASS_LEVEL, &index)) {
        MPI_OK(MPI_T_finalize());
        return -1;
    }
    MPI_OK(MPI_T_pvar_session_create(&session));
    MPI_OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count));
    MPI_OK(MPI_T_pvar_read(session, handle, &value));
    MPI_OK(MPI_T_pvar_handle_free(session, &handle));
    MPI_OK(MPI_T_pvar_session_free(&session));
    MPI_OK(MPI_T_finalize());
    return (long long) value;
}

/** Before the first message no peer uses memory. */
static void check_none(void)
{
    if (0 <= in_use("pml_umrddt_peers")) {
        CHECK(0 == in_use("pml_umrddt_peers") && 0 == in_use("pml_umrddt_peer_bytes"));
        CHECK(0 == in_use("pml_umrddt_peer_table_bytes") && 0 == in_use("pml_umrddt_endpoints"));
        CHECK(0 == in_use("pml_umrddt_endpoint_bytes"));
    }
}

/** Only neighbours use memory, each within its limit. */
static void check_peers(MPI_Comm grid)
{
    long long endpoints = in_use("pml_umrddt_endpoints"), neighbours = 0;
    bool is_one[64] = {false};
    int ranks[2];

    if (0 >= endpoints) {
        return; /* without umrddt, or without an HCA */
    }
    for (int d = 0; d < 3; ++d) {
        MPI_OK(MPI_Cart_shift(grid, d, 1, &ranks[0], &ranks[1]));
        for (int side = 0; side < 2; ++side) {
            if (mpitest.rank != ranks[side] && 64 > ranks[side] && !is_one[ranks[side]]) {
                is_one[ranks[side]] = true;
                ++neighbours;
            }
        }
    }
    CHECK(neighbours >= endpoints);
    CHECK(neighbours + 1 >= in_use("pml_umrddt_peers")); /* a rank may be its own neighbour */
    CHECK(0 < in_use("pml_umrddt_peer_bytes"));
    /* the HCA's part and this side's state for it, together */
    CHECK(65536 * endpoints
          >= in_use("pml_umrddt_endpoint_bytes") + in_use("pml_umrddt_peer_bytes"));
    CHECK((long long) sizeof(void *) * mpitest.size >= in_use("pml_umrddt_peer_table_bytes"));
    CHECK(65536 >= in_use("pml_umrddt_receive_bytes"));
}

int main(int argc, char **argv)
{
    int dims[3] = {0, 0, 1}, periods[3] = {1, 1, 1}, coords[3];
    MPI_Comm grid;
    long op;

    mpitest_init(&argc, &argv, "halo", 3, MPI_THREAD_SINGLE);
    check_none();
    MPI_OK(MPI_Dims_create(mpitest.size, 3, dims));
    MPI_OK(MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, 0, &grid));
    MPI_OK(MPI_Cart_coords(grid, mpitest.rank, 3, coords));
    for (op = 0; op < mpitest.ops; ++op) {
        uint64_t state = mpitest_mix(mpitest.seed, (uint64_t) op, 13);

        mpitest.step = op;
        run(grid, dims, coords, 0 == op % 2 ? 1 : 3, &state);
    }
    check_peers(grid);
    MPI_OK(MPI_Comm_free(&grid));
    return mpitest_finish();
}
