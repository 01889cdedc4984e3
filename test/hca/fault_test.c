/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * fault_test: one process, its own peer. Every call of the HCA component into libibverbs and
 * libmlx5 that can fail does so in turn: the first in the first round, the second in the second,
 * until a round has no fault. Each round opens the HCA, sends a message to itself and closes the
 * HCA. Any failure must be reported by the contract, nothing may hang, and all objects must be
 * destroyed.
 */

#include "harness.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>

#include <infiniband/mlx5dv.h>

#include "ompi/proc/proc.h"
#include "opal/mca/base/base.h"
#include "opal/mca/btl/base/base.h"

/* ------------------------------------------------------------------------------------------- *
 * Calls that fail
 * ------------------------------------------------------------------------------------------- */

static long countdown = -1; /* calls that still succeed; -1: all */
static bool faulted;
static const char *faulted_call;

enum kind {
    CONTEXT,
    PD,
    MR,
    CQ,
    SRQ,
    QP,
    MKEY,
    KINDS
};
static const char *const kind_names[] = {"contexts", "PDs", "MRs", "CQs", "SRQs", "QPs", "mkeys"};
static long objects[KINDS]; /* made and not destroyed */

static bool fault(const char *call)
{
    if (0 < countdown) {
        --countdown;
    } else if (0 == countdown) {
        countdown = -1;
        faulted = true;
        faulted_call = call;
        errno = ENOMEM;
        return true;
    }
    return false;
}

#define REAL(name) ((__typeof__(&(name))) dlsym(RTLD_NEXT, #name))
#define MADE(kind, call)                   \
    __typeof__(call) made = (call);        \
    objects[kind] += NULL != made ? 1 : 0; \
    return made
#define DESTROYED(kind, call)             \
    int result = (call);                  \
    objects[kind] -= 0 == result ? 1 : 0; \
    return result

#undef ibv_reg_mr
#undef ibv_query_port

struct ibv_device **ibv_get_device_list(int *count)
{
    return fault(__func__) ? NULL : REAL(ibv_get_device_list)(count);
}

struct ibv_context *mlx5dv_open_device(struct ibv_device *device, struct mlx5dv_context_attr *attr)
{
    if (fault(__func__)) {
        return NULL;
    }
    MADE(CONTEXT, REAL(mlx5dv_open_device)(device, attr));
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    if (fault(__func__)) {
        return NULL;
    }
    MADE(CONTEXT, REAL(ibv_open_device)(device));
}

int ibv_close_device(struct ibv_context *context)
{
    DESTROYED(CONTEXT, REAL(ibv_close_device)(context));
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    return fault(__func__) ? ENOMEM : REAL(ibv_query_device)(context, attr);
}

int mlx5dv_devx_general_cmd(struct ibv_context *context, const void *in, size_t in_size, void *out,
                            size_t out_size)
{
    return fault(__func__) ? ENOMEM
                           : REAL(mlx5dv_devx_general_cmd)(context, in, in_size, out, out_size);
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
    if (fault(__func__)) {
        return NULL;
    }
    MADE(PD, REAL(ibv_alloc_pd)(context));
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
    DESTROYED(PD, REAL(ibv_dealloc_pd)(pd));
}

/* ibv_reg_mr may be made of ibv_reg_mr_iova2: what is called from within is no call of its own. */
static int registering;

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access)
{
    struct ibv_mr *mr;

    if (fault(__func__)) {
        return NULL;
    }
    ++registering;
    mr = REAL(ibv_reg_mr)(pd, address, length, access);
    --registering;
    objects[MR] += NULL != mr ? 1 : 0;
    return mr;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *address, size_t length, uint64_t iova,
                                unsigned int access)
{
    struct ibv_mr *mr;

    if (0 == registering && fault(__func__)) {
        return NULL;
    }
    mr = REAL(ibv_reg_mr_iova2)(pd, address, length, iova, access);
    objects[MR] += NULL != mr && 0 == registering ? 1 : 0;
    return mr;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
    DESTROYED(MR, REAL(ibv_dereg_mr)(mr));
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
                             struct ibv_comp_channel *channel, int vector)
{
    if (fault(__func__)) {
        return NULL;
    }
    MADE(CQ, REAL(ibv_create_cq)(context, cqe, cq_context, channel, vector));
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
    DESTROYED(CQ, REAL(ibv_destroy_cq)(cq));
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    if (fault(__func__)) {
        return NULL;
    }
    MADE(SRQ, REAL(ibv_create_srq)(pd, attr));
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
    DESTROYED(SRQ, REAL(ibv_destroy_srq)(srq));
}

struct ibv_qp *mlx5dv_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
                                struct mlx5dv_qp_init_attr *dv_attr)
{
    if (fault(__func__)) {
        return NULL;
    }
    MADE(QP, REAL(mlx5dv_create_qp)(context, attr, dv_attr));
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    return fault(__func__) ? ENOMEM : REAL(ibv_modify_qp)(qp, attr, mask);
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
    DESTROYED(QP, REAL(ibv_destroy_qp)(qp));
}

struct mlx5dv_mkey *mlx5dv_create_mkey(struct mlx5dv_mkey_init_attr *attr)
{
    if (fault(__func__)) {
        return NULL;
    }
    MADE(MKEY, REAL(mlx5dv_create_mkey)(attr));
}

int mlx5dv_destroy_mkey(struct mlx5dv_mkey *mkey)
{
    DESTROYED(MKEY, REAL(mlx5dv_destroy_mkey)(mkey));
}

/* ------------------------------------------------------------------------------------------- *
 * Rounds
 * ------------------------------------------------------------------------------------------- */

static unsigned fins;

static void count_fin(void *context, mca_btl_umr_endpoint_t *endpoint, uint32_t fin)
{
    (void) context;
    (void) endpoint;
    CHECK(42 == fin, "FIN %u", fin);
    ++fins;
}

/** A message of this process to itself. @return false if something refused; the HCA is as before
 */
static bool message_to_itself(const mca_btl_umr_hca_ops_t *hca,
                              const opal_iov_cache_layout_t *layout, unsigned char *source,
                              unsigned char *target)
{
    struct opal_proc_t *proc = (struct opal_proc_t *) ompi_proc_local();
    mca_btl_umr_memory_t *from = NULL, *to = NULL;
    mca_btl_umr_keyset_t *local = NULL, *remote = NULL;
    struct done mapped = {0, 0}, written = {0, 0};
    mca_btl_umr_endpoint_t *endpoint;
    mca_btl_umr_address_t address;
    const uint32_t fin = 42;
    bool complete = false;
    double end = MPI_Wtime() + HARNESS_HANG;

    if (OPAL_SUCCESS != hca->endpoint_get(proc, &endpoint)) {
        return false;
    }
    hca->endpoint_address(endpoint, &address);
    if (OPAL_SUCCESS != hca->endpoint_connect(endpoint, &address)) {
        return false;
    }
    if (OPAL_SUCCESS == hca->memory_register(MCA_BTL_UMR_LOCAL, source, layout, layout->size, &from)
        && OPAL_SUCCESS
               == hca->memory_register(MCA_BTL_UMR_REMOTE, target, layout, layout->size, &to)
        && OPAL_SUCCESS
               == hca->keyset_map(MCA_BTL_UMR_LOCAL, source, layout, from, 0, 0, layout->size, 99,
                                  harness_done, &mapped, &local)
        && OPAL_SUCCESS
               == hca->keyset_map(MCA_BTL_UMR_REMOTE, target, layout, to, 0, 0, layout->size, 99,
                                  harness_done, &mapped, &remote)) {
        /* Without UMR, after a fault, keys need no mapping. */
        int expected = (local->ready ? 0 : 1) + (remote->ready ? 0 : 1);

        while (expected > mapped.calls) {
            CHECK(MPI_Wtime() < end, "a mapping hangs");
            (void) hca->progress();
        }
        if (layout->size == local->end && layout->size == remote->end && local->ready
            && remote->ready && OPAL_SUCCESS == hca->fin_reserve(endpoint)
            && OPAL_SUCCESS
                   == hca->put(endpoint, local, remote->keys, remote->count, &fin, harness_done,
                               &written)) {
            unsigned before = fins;

            while (0 == written.calls || before == fins) {
                CHECK(MPI_Wtime() < end, "a put hangs");
                (void) hca->progress();
            }
            complete = OPAL_SUCCESS == written.status;
        }
    }
    if (NULL != local) {
        hca->keyset_release(local);
    }
    if (NULL != remote) {
        hca->keyset_release(remote);
    }
    if (NULL != from) {
        hca->memory_release(from);
    }
    if (NULL != to) {
        hca->memory_release(to);
    }
    return complete;
}

/** @return false if the round saw no fault */
static bool run_round(long n)
{
    enum {
        ROOM = 40000
    };
    /* Irregular, so that it needs a non-inline list. */
    opal_iov_cache_layout_t *layout = layout_random(12800, ROOM, 200);
    unsigned char *source = malloc(ROOM), *target = malloc(ROOM);
    bool usable, complete = false;

    memset(source, 0, ROOM);
    layout_fill(source, layout, 5);
    memset(target, 0x66, ROOM);
    memset(objects, 0, sizeof(objects));
    faulted = false;
    faulted_call = "none";
    countdown = n;

    CHECK(harness_open_hca(), "no component");
    usable = OPAL_SUCCESS == harness.hca->init();
    if (usable) {
        harness_exchange_modex();
        harness.hca->set_fin_handler(count_fin, NULL);
        /* What fails once may work the next time. */
        for (int i = 0; i < 3 && !complete; ++i) {
            complete = message_to_itself(harness.hca, layout, source, target);
            CHECK(complete || faulted, "fault %ld: a message failed without a fault", n);
        }
        CHECK((harness.hca->caps()->max_keys > 0) == harness.hca->caps()->umr.usable, "no keys");
        harness.hca->fini();
    } else {
        CHECK(faulted, "fault %ld: the HCA is refused without a fault: %s", n,
              harness.hca->why_not());
        CHECK('\0' != harness.hca->why_not()[0], "fault %ld: no reason", n);
    }
    if (complete) {
        layout_check(target, ROOM, target, layout, layout->size, 5, 0x66);
    } else {
        layout_check(target, ROOM, target, layout, 0, 5, 0x66);
    }
    printf("fault %ld in %s: %s\n", n, faulted_call,
           !usable    ? harness.hca->why_not()
           : complete ? "message complete"
                      : "no message");
    harness_close_hca();
    countdown = -1;
    for (int kind = 0; kind < KINDS; ++kind) {
        CHECK(0 == objects[kind], "fault %ld in %s: %ld %s are left", n, faulted_call,
              objects[kind], kind_names[kind]);
    }

    OBJ_RELEASE(layout);
    free(source);
    free(target);
    return faulted;
}

int main(int argc, char **argv)
{
    long n = 0;

    MPI_Init(&argc, &argv);
    harness.seed = 20261121u;
    while (run_round(n)) {
        ++n;
        CHECK(500 > n, "no end of faults");
    }
    CHECK(20 < n, "only %ld calls that can fail", n);
    printf("%ld faults\n", n);
    MPI_Finalize();
    return 0;
}
