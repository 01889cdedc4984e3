/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "opal_config.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ompi/datatype/ompi_datatype.h"
#include "opal/constants.h"
#include "opal/datatype/iov_cache/iov_cache.h"
#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_engine.h"
#include "opal/mca/common/umrddt_gpu/ipc/umrddt_gpu_ipc.h"

#include "bench_bare.h"
#include "bench_gpu.h"
#include "bench_util.h"

#define TAG_FLOOR 21

#define LAYOUT_BYTES ((size_t) 1 << 30)

/* Polls of a word before the processor is yielded; the work of a GPU takes less. */
#define SPINS 20000

/* The words that the two processes share, in separate cache lines. */
typedef struct page_t {
    struct {
        _Atomic uint64_t messages; /* that the process has sent */
        char rest[248];
    } side[2];
} page_t;

/* The description of the sender's memory, for the receiver. */
typedef struct reported_t {
    int32_t able;
    int32_t reserved;
    uint64_t array; /* the address of the array there */
    opal_umrddt_gpu_export_t memory;
} reported_t;

struct bench_bare_t {
    page_t *page;
    int side; /* this process's in the page */
    uint64_t sent;
    uint64_t received;
    opal_iov_cache_t *cache;
    opal_umrddt_gpu_engine_t *engine;
    opal_umrddt_gpu_import_t *import;
    opal_umrddt_gpu_copy_end_t from;
    opal_umrddt_gpu_copy_end_t to;
    uint64_t bytes;
    void *anchor; /* memory of the GPU, for an engine where no buffer is on one */
};

/* The types outlive the bare operation. */
static int promise(opal_iov_cache_t *cache, const opal_datatype_t *type, void *context)
{
    (void) cache;
    (void) type;
    (void) context;
    return OPAL_SUCCESS;
}

/* A page that both processes have; its name is gone before anything can go wrong. */
static page_t *share_page(int peer, bool leader, MPI_Comm control)
{
    char name[64] = "";
    page_t *page;
    int fd;

    if (leader) {
        snprintf(name, sizeof(name), "/umrddt_bench.%ld", (long) getpid());
        fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
        if (0 <= fd && 0 != ftruncate(fd, sizeof(page_t))) {
            close(fd);
            fd = -1;
        }
        MPI_Send(name, (int) sizeof(name), MPI_CHAR, peer, TAG_FLOOR, control);
    } else {
        MPI_Recv(name, (int) sizeof(name), MPI_CHAR, peer, TAG_FLOOR, control, MPI_STATUS_IGNORE);
        fd = shm_open(name, O_RDWR, 0600);
    }
    page =
        0 > fd ? MAP_FAILED : mmap(NULL, sizeof(page_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (0 <= fd) {
        close(fd);
    }
    MPI_Sendrecv(NULL, 0, MPI_BYTE, peer, TAG_FLOOR, NULL, 0, MPI_BYTE, peer, TAG_FLOOR, control,
                 MPI_STATUS_IGNORE);
    if (leader) {
        (void) shm_unlink(name);
    }
    return MAP_FAILED == page ? NULL : page;
}

/* This side's memory, described for the peer. */
static const char *describe(const bench_buffer_t *send, reported_t *reported)
{
    opal_umrddt_gpu_memory_t memory;

    memset(reported, 0, sizeof(*reported));
    if (NULL == send->gpu) {
        return "the send buffer is not in GPU memory, so the receiver cannot open it";
    }
    if (OPAL_SUCCESS != opal_umrddt_gpu_classify(send->gpu, &memory)
        || OPAL_SUCCESS != opal_umrddt_gpu_export(&memory, &reported->memory)) {
        return "CUDA IPC gives no handle for this memory";
    }
    reported->able = 1;
    reported->array = (uintptr_t) send->gpu;
    return NULL;
}

static const char *get_engine(bench_bare_t *bare, const bench_buffer_t *recv)
{
    opal_umrddt_gpu_memory_t memory;
    const void *on_gpu = recv->gpu;

    if (NULL == on_gpu) {
        on_gpu = bare->anchor = bench_gpu_alloc(256);
    }
    if (OPAL_SUCCESS != opal_umrddt_gpu_classify(on_gpu, &memory)
        || OPAL_SUCCESS != opal_umrddt_gpu_engine_get(&memory, &bare->engine)) {
        return "there is no engine for this GPU";
    }
    return NULL;
}

/* Open the peer's memory, and find the two ends of the copy. */
static const char *open_memory(bench_bare_t *bare, const bench_buffer_t *send,
                               const bench_buffer_t *recv, const reported_t *reported, int peer)
{
    const bench_side_t *out = send->side, *in = recv->side;
    uint64_t array;

    if (OPAL_SUCCESS
        != opal_umrddt_gpu_import(bare->engine, (uint64_t) peer, &reported->memory,
                                  &bare->import)) {
        return "this GPU cannot open the other process's memory";
    }
    array = opal_umrddt_gpu_import_address(
        bare->import, reported->array, reported->array + out->array_bytes, &bare->from.on_device);
    if (0 == array
        || OPAL_SUCCESS
               != opal_iov_cache_get(bare->cache, &out->type->super, (size_t) out->count,
                                     &bare->from.layout)
        || OPAL_SUCCESS
               != opal_iov_cache_get(bare->cache, &in->type->super, (size_t) in->count,
                                     &bare->to.layout)) {
        return "no layout";
    }
    /* Both processes send the same layout. */
    bare->from.address = array + (uint64_t) out->origin;
    bare->from.kind = OPAL_UMRDDT_GPU_DEVICE;
    bare->from.reached = true; /* imported for this engine */
    bare->to.address = (uintptr_t) bench_buffer_address(recv);
    bare->to.kind = NULL == recv->gpu ? OPAL_UMRDDT_GPU_HOST : OPAL_UMRDDT_GPU_DEVICE;
    bare->to.reached = bare->to.on_device = NULL != recv->gpu; /* whose engine it is */
    bare->bytes = out->bytes;
    return NULL;
}

static const char *prepare(bench_bare_t *bare, const bench_buffer_t *send,
                           const bench_buffer_t *recv, int peer, MPI_Comm control)
{
    const char *why;
    reported_t mine, its;
    int rank;

    MPI_Comm_rank(control, &rank);
    bare->side = rank < peer ? 0 : 1;
    bare->page = share_page(peer, 0 == bare->side, control);
    why = describe(send, &mine);
    MPI_Sendrecv(&mine, (int) sizeof(mine), MPI_BYTE, peer, TAG_FLOOR, &its, (int) sizeof(its),
                 MPI_BYTE, peer, TAG_FLOOR, control, MPI_STATUS_IGNORE);
    if (NULL != why) {
        return why;
    }
    if (NULL == bare->page) {
        return "the two processes share no memory";
    }
    if (0 == its.able) {
        return "the other process cannot";
    }
    if (OPAL_SUCCESS != opal_iov_cache_create(LAYOUT_BYTES, promise, NULL, &bare->cache)) {
        return "no cache of layouts";
    }
    why = get_engine(bare, recv);
    return NULL == why ? open_memory(bare, send, recv, &its, peer) : why;
}

bench_bare_t *bench_bare_open(const bench_buffer_t *send, const bench_buffer_t *recv, int peer,
                              MPI_Comm control, const char **why)
{
    bench_bare_t *bare = bench_alloc(sizeof(*bare));
    int mine, its;

    memset(bare, 0, sizeof(*bare));
    *why = prepare(bare, send, recv, peer, control);
    mine = NULL == *why;
    MPI_Sendrecv(&mine, 1, MPI_INT, peer, TAG_FLOOR, &its, 1, MPI_INT, peer, TAG_FLOOR, control,
                 MPI_STATUS_IGNORE);
    if (mine && its) {
        return bare;
    }
    if (mine) {
        *why = "the other process cannot";
    }
    bench_bare_close(bare);
    return NULL;
}

void bench_bare_close(bench_bare_t *bare)
{
    if (NULL != bare->from.layout) {
        OBJ_RELEASE(bare->from.layout);
    }
    if (NULL != bare->to.layout) {
        OBJ_RELEASE(bare->to.layout);
    }
    if (NULL != bare->import) {
        opal_umrddt_gpu_import_release(bare->import);
    }
    /* The owner frees this layout's memory before it allocates the next one's. */
    opal_umrddt_gpu_ipc_forget(OPAL_UMRDDT_GPU_ALL_PEERS);
    if (NULL != bare->cache) {
        opal_iov_cache_destroy(bare->cache);
    }
    if (NULL != bare->anchor) {
        bench_gpu_free(bare->anchor);
    }
    if (NULL != bare->page) {
        munmap(bare->page, sizeof(page_t));
    }
    free(bare);
}

void bench_bare_send(bench_bare_t *bare)
{
    atomic_store_explicit(&bare->page->side[bare->side].messages, ++bare->sent,
                          memory_order_release);
}

void bench_bare_receive(bench_bare_t *bare)
{
    const _Atomic uint64_t *messages = &bare->page->side[1 - bare->side].messages;
    opal_umrddt_gpu_copy_t *copy;
    unsigned spins = 0;
    int rc;

    ++bare->received;
    while (atomic_load_explicit(messages, memory_order_acquire) < bare->received) {
        if (SPINS < ++spins) {
            sched_yield();
        }
    }
    rc = opal_umrddt_gpu_copy(bare->engine, &bare->from, &bare->to, 0, bare->bytes, &copy);
    if (OPAL_SUCCESS != rc) {
        bench_fatal("--bare: the GPU copy cannot be started (%d)", rc);
    }
    spins = 0;
    while (OPAL_ERR_RESOURCE_BUSY == (rc = opal_umrddt_gpu_copy_test(copy))) {
        if (SPINS < ++spins) {
            sched_yield();
        }
    }
    if (OPAL_SUCCESS != rc) {
        bench_fatal("--bare: the GPU copy failed (%d)", rc);
    }
}
