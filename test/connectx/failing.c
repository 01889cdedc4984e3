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
 * Loaded into a program by LD_PRELOAD: allocations and posts of umrddt's own components fail on
 * demand, and reports their allocations that were not freed. The plan is that of the software
 * HCA and the software GPUs (sim/connectx/README.md): `malloc:N`, `post:N`, `list:N` (more items of
 * a free list), in UMRDDT_FAULTS, or from the program by umrddt_failing_faults.
 *
 * Whose a call is, its return address says. So what Open MPI's libraries allocate for a component
 * never fails but for the items of free lists, nor what libibverbs does.
 */

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include "sim/common/faults.h"

#define EXPORT __attribute__((visibility("default")))

/** Where a component called: the name of its file, and how far into it. */
typedef struct site_t {
    const char *component;
    uintptr_t offset;
} site_t;

/** Allocations that are remembered, a power of two. */
#define MOST_CACHED (1u << 18)

typedef struct cached_t {
    void *at;
    size_t bytes;
    site_t site;
} cached_t;

enum {
    MALLOC,
    POST,
    LIST,
    KINDS
};

static const char *const names[KINDS] = {"malloc", "post", "list"};
static const char *const components[] = {"mca_pml_umrddt.so", "mca_btl_umr.so",
                                         "mca_coll_umrddt.so", "libmca_common_umrddt.so"};

static struct faults plan;
static uint64_t happened[KINDS]; /* that the plan counts */
static int came;                 /* of this plan */
static bool off;
static site_t last;
static cached_t kept[MOST_CACHED];
static atomic_flag busy = ATOMIC_FLAG_INIT;

/* An interposed function must not call the function that it replaces. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *at, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *at);

EXPORT int umrddt_failing_faults(const char *text, int on);
EXPORT void umrddt_failing_last(char *text, size_t room);
EXPORT uint64_t umrddt_failing_held(void);

static void lock(void)
{
    while (atomic_flag_test_and_set_explicit(&busy, memory_order_acquire)) {
    }
}

static void unlock(void)
{
    atomic_flag_clear_explicit(&busy, memory_order_release);
}

/* Is this one of umrddt's components? */
static bool site_of(const void *address, site_t *site)
{
    struct dl_find_object found;
    const char *base;

    if (0 != _dl_find_object((void *) (uintptr_t) address, &found)
        || NULL == found.dlfo_link_map->l_name) {
        return false;
    }
    base = strrchr(found.dlfo_link_map->l_name, '/');
    base = NULL == base ? found.dlfo_link_map->l_name : base + 1;
    for (size_t i = 0; i < sizeof(components) / sizeof(components[0]); ++i) {
        if (0 == strcmp(base, components[i])) {
            site->component = components[i];
            site->offset = (uintptr_t) address - found.dlfo_link_map->l_addr;
            return true;
        }
    }
    return false;
}

/* One more of a kind. @return true: it is to fail */
static bool fails(int kind, const site_t *site)
{
    bool hit;

    lock();
    hit = !off && 0 < plan.count && NULL != faults_hit(&plan, names[kind], NULL, ++happened[kind]);
    if (hit) {
        ++came;
        last = *site;
    }
    unlock();
    return hit;
}

/* ------------------------------------------------------------------------------------------- *
 * Allocations
 * ------------------------------------------------------------------------------------------- */

static cached_t *slot_of(const void *at)
{
    uint32_t i = (uint32_t) (((uintptr_t) at >> 4) * 0x9e3779b97f4a7c15u >> 40);

    for (uint32_t tries = 0; tries < MOST_CACHED; ++tries, ++i) {
        cached_t *slot = &kept[i % MOST_CACHED];

        if (at == slot->at || NULL == slot->at) {
            return slot;
        }
    }
    return NULL;
}

static void keep(void *at, size_t bytes, const site_t *site)
{
    cached_t *slot;

    if (NULL == at) {
        return;
    }
    lock();
    slot = slot_of(at);
    if (NULL != slot) {
        *slot = (cached_t){at, bytes, *site};
    }
    unlock();
}

/* Also for memory that is not in the table. */
static void forget(void *at)
{
    cached_t *slot;

    lock();
    slot = slot_of(at);
    if (NULL != slot && NULL != slot->at) {
        uint32_t hole = (uint32_t) (slot - kept);

        /* What stands behind it, and would be there if it could, is put in again. */
        kept[hole].at = NULL;
        for (uint32_t i = (hole + 1) % MOST_CACHED; NULL != kept[i].at; i = (i + 1) % MOST_CACHED) {
            cached_t moved = kept[i];

            kept[i].at = NULL;
            *slot_of(moved.at) = moved;
        }
    }
    unlock();
}

#define ALLOCATE(CALL, BYTES)                                \
    do {                                                     \
        site_t site_;                                        \
        void *at_;                                           \
                                                             \
        if (!site_of(__builtin_return_address(0), &site_)) { \
            return (CALL);                                   \
        }                                                    \
        if (fails(MALLOC, &site_)) {                         \
            errno = ENOMEM;                                  \
            return NULL;                                     \
        }                                                    \
        at_ = (CALL);                                        \
        keep(at_, (BYTES), &site_);                          \
        return at_;                                          \
    } while (0)

EXPORT void *malloc(size_t size)
{
    ALLOCATE(__libc_malloc(size), size);
}

EXPORT void *calloc(size_t count, size_t size)
{
    ALLOCATE(__libc_calloc(count, size), count * size);
}

EXPORT void *memalign(size_t alignment, size_t size)
{
    ALLOCATE(__libc_memalign(alignment, size), size);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    ALLOCATE(__libc_memalign(alignment, size), size);
}

EXPORT int posix_memalign(void **out, size_t alignment, size_t size)
{
    site_t site;
    bool ours = site_of(__builtin_return_address(0), &site);
    void *at;

    if (ours && fails(MALLOC, &site)) {
        return ENOMEM;
    }
    at = __libc_memalign(alignment, size);
    if (NULL == at) {
        return ENOMEM;
    }
    if (ours) {
        keep(at, size, &site);
    }
    *out = at;
    return 0;
}

EXPORT void *realloc(void *old, size_t size)
{
    site_t site;
    bool ours = site_of(__builtin_return_address(0), &site);
    void *at;

    if (ours && fails(MALLOC, &site)) {
        errno = ENOMEM;
        return NULL;
    }
    if (NULL != old) {
        forget(old);
    }
    at = __libc_realloc(old, size);
    if (ours) {
        keep(at, size, &site);
    }
    return at;
}

EXPORT char *strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    site_t site;
    bool ours = site_of(__builtin_return_address(0), &site);
    char *at;

    if (ours && fails(MALLOC, &site)) {
        errno = ENOMEM;
        return NULL;
    }
    at = __libc_malloc(size);
    if (NULL != at) {
        memcpy(at, text, size);
        if (ours) {
            keep(at, size, &site);
        }
    }
    return at;
}

EXPORT void free(void *at)
{
    if (NULL != at) {
        forget(at);
        __libc_free(at);
    }
}

/* Of libopen-pal. Its inline functions that take an item call it in the component. */
struct opal_free_list_t;
struct opal_free_list_item_t;
EXPORT int opal_free_list_grow_st(struct opal_free_list_t *list, size_t items,
                                  struct opal_free_list_item_t **item);

EXPORT int opal_free_list_grow_st(struct opal_free_list_t *list, size_t items,
                                  struct opal_free_list_item_t **item)
{
    static int (*next)(struct opal_free_list_t *, size_t, struct opal_free_list_item_t **);
    site_t site;

    if (site_of(__builtin_return_address(0), &site) && fails(LIST, &site)) {
        return -2; /* OPAL_ERR_OUT_OF_RESOURCE */
    }
    if (NULL == next) {
        /* (a function is no object) */
        void *found = dlsym(RTLD_NEXT, "opal_free_list_grow_st");

        memcpy(&next, &found, sizeof(next));
    }
    return next(list, items, item);
}

/* ------------------------------------------------------------------------------------------- *
 * Posts
 * ------------------------------------------------------------------------------------------- */

/* All queue pairs of libmlx5 that are well have the same. */
static int (*complete)(struct ibv_qp_ex *qp);
static int (*post_recv)(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
static int (*post_srq_recv)(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

static int failing_complete(struct ibv_qp_ex *qp)
{
    site_t site;

    if (site_of(__builtin_return_address(0), &site) && fails(POST, &site)) {
        ibv_wr_abort(qp);
        return ENOMEM;
    }
    return complete(qp);
}

static int failing_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    site_t site;

    if (site_of(__builtin_return_address(0), &site) && fails(POST, &site)) {
        *bad = wr;
        return ENOMEM;
    }
    return post_recv(qp, wr, bad);
}

static int failing_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
                                 struct ibv_recv_wr **bad)
{
    site_t site;

    if (site_of(__builtin_return_address(0), &site) && fails(POST, &site)) {
        *bad = wr;
        return ENOMEM;
    }
    return post_srq_recv(srq, wr, bad);
}

/* A function of a library that came with a component: RTLD_NEXT does not find it. */
static void *next_of(const char *library, const char *name)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    void *found = NULL == handle ? NULL : dlsym(handle, name);

    if (NULL != handle) {
        (void) dlclose(handle);
    }
    return found;
}

EXPORT struct ibv_qp *mlx5dv_create_qp(struct ibv_context *context,
                                       struct ibv_qp_init_attr_ex *attr,
                                       struct mlx5dv_qp_init_attr *dv_attr)
{
    void *found = next_of("libmlx5.so.1", "mlx5dv_create_qp");
    __typeof__(&mlx5dv_create_qp) real;
    struct ibv_qp *qp;

    memcpy(&real, &found, sizeof(real)); /* (a function is no object) */
    if (NULL == real) {
        errno = ENOSYS;
        return NULL;
    }
    qp = real(context, attr, dv_attr);
    if (NULL != qp && failing_post_recv != context->ops.post_recv) {
        post_recv = context->ops.post_recv;
        post_srq_recv = context->ops.post_srq_recv;
        context->ops.post_recv = failing_post_recv;
        context->ops.post_srq_recv = failing_post_srq_recv;
    }
    return qp;
}

/* libmlx5 chooses what posts when a queue pair gets to RTS. All of umrddt's are of the extended
 * kind. */
EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    void *found = next_of("libibverbs.so.1", "ibv_modify_qp");
    struct ibv_qp_ex *qpx = (struct ibv_qp_ex *) qp; /* as ibv_qp_to_qp_ex, which is libibverbs' */
    __typeof__(&ibv_modify_qp) real;
    site_t site;
    int rc;

    memcpy(&real, &found, sizeof(real));
    if (NULL == real) {
        return ENOSYS;
    }
    rc = real(qp, attr, mask);
    if (0 == rc && 0 != (IBV_QP_STATE & mask) && IBV_QPS_RTS == attr->qp_state
        && site_of(__builtin_return_address(0), &site)) {
        complete = qpx->wr_complete;
        qpx->wr_complete = failing_complete;
    }
    return rc;
}

/* ------------------------------------------------------------------------------------------- *
 * For the program
 * ------------------------------------------------------------------------------------------- */

/**
 * As umrddt_sim_faults (sim/connectx/sim.h).
 *
 * @return how many came about since the last plan was set, or -1
 */
int umrddt_failing_faults(const char *text, int on)
{
    struct faults faults = {0};
    char error[128];
    int rc;

    if (0 != faults_parse(text, &faults, error, sizeof(error))) {
        return -1;
    }
    lock();
    if (NULL != text) {
        plan = faults;
        memset(happened, 0, sizeof(happened));
        came = 0;
    }
    off = 0 == on;
    rc = came;
    unlock();
    return rc;
}

/** The caller of the last call that failed: "component+0x123", or "". */
void umrddt_failing_last(char *text, size_t room)
{
    text[0] = '\0';
    if (NULL != last.component) {
        snprintf(text, room, "%s+0x%lx", last.component, (unsigned long) last.offset);
    }
}

/** Bytes that the components have allocated, and not given back. */
uint64_t umrddt_failing_held(void)
{
    uint64_t bytes = 0;

    lock();
    for (uint32_t i = 0; i < MOST_CACHED; ++i) {
        bytes += NULL != kept[i].at ? kept[i].bytes : 0;
    }
    unlock();
    return bytes;
}

static __attribute__((constructor)) void loaded(void)
{
    char error[128];

    if (0 != faults_parse(getenv("UMRDDT_FAULTS"), &plan, error, sizeof(error))) {
        fprintf(stderr, "umrddt_failing: UMRDDT_FAULTS: %s\n", error);
    }
}

/* Allocations of the components that are left, after all of them were closed. */
static __attribute__((destructor)) void leave(void)
{
    for (uint32_t i = 0; NULL != getenv("UMRDDT_FAILING_LEAKS") && i < MOST_CACHED; ++i) {
        if (NULL != kept[i].at) {
            fprintf(stderr, "umrddt_failing[%ld]: leaked %zu bytes of %s+0x%lx\n", (long) getpid(),
                    kept[i].bytes, kept[i].site.component, (unsigned long) kept[i].site.offset);
        }
    }
}
