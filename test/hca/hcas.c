/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Several HCAs in one process: the HCA of each message, and the behaviour when one breaks.
 *
 * The scripts put the devices on NUMA nodes 0, 1, ... (files that the HCA component reads). This
 * program interposes syscall() of libc, to set the node of memory.
 */

#include "harness.h"

#include "opal/mca/common/umrddt_gpu/driver/umrddt_gpu_driver.h"
#include "umrddt_cuda_all.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "ompi/communicator/communicator.h"
#include "ompi/proc/proc.h"

#define FILLER 0x5a

enum {
    NODES = 4,
    PIECES = 96,
    LENGTH = 256,
    ROOM = PIECES * LENGTH * 2,
    PEER_LIMIT = 65536
};

/* ------------------------------------------------------------------------------------------- *
 * Memory that is on a node
 * ------------------------------------------------------------------------------------------- */

/** Areas of this program, each on the node of its number. */
static unsigned char *areas[NODES];
static unsigned int questions;
static bool refuse; /* what some containers do */

static int node_of(uintptr_t page)
{
    for (int i = 0; i < NODES; ++i) {
        if (NULL != areas[i] && page >= (uintptr_t) areas[i]
            && page < (uintptr_t) areas[i] + ROOM) {
            return i;
        }
    }
    return -EFAULT;
}

long syscall(long number, ...)
{
    static __typeof__(&syscall) real;
    long a[6];
    va_list list;

    va_start(list, number);
    for (int i = 0; i < 6; ++i) {
        a[i] = va_arg(list, long);
    }
    va_end(list);
    if (SYS_move_pages == number) {
        ++questions;
        if (refuse) {
            errno = EPERM;
            return -1;
        }
        CHECK(0 == a[0] && 1 == a[1] && 0 == a[3] && 0 == a[5], "not a question for one page");
        *(int *) a[4] = node_of((uintptr_t) ((void **) a[2])[0]);
        return 0;
    }
    if (NULL == real) {
        real = (__typeof__(real)) dlsym(RTLD_NEXT, "syscall");
    }
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static void areas_begin(void)
{
    for (int i = 0; i < NODES; ++i) {
        areas[i] = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(MAP_FAILED != (void *) areas[i], "memory");
        memset(areas[i], FILLER, ROOM);
    }
    questions = 0;
}

static void areas_end(void)
{
    for (int i = 0; i < NODES; ++i) {
        CHECK(0 == munmap(areas[i], ROOM), "munmap");
        areas[i] = NULL;
    }
    refuse = false;
}

/* ------------------------------------------------------------------------------------------- *
 * Endpoints
 * ------------------------------------------------------------------------------------------- */

/** The HCA that an endpoint is of, by its place in this process's list. */
static unsigned int hca_of(mca_btl_umr_endpoint_t *endpoint)
{
    mca_btl_umr_address_t address;

    harness.hca->endpoint_address(endpoint, &address);
    return ntohl(address.qpn) >> 24;
}

/** The HCA of this process that hangs on a node. */
static unsigned int hca_at(int node)
{
    const mca_btl_umr_caps_t *caps;
    unsigned int hca = 0;

    while (harness.hca->hca(hca, &caps, NULL) && node != caps->numa) {
        ++hca;
    }
    CHECK(harness.hca->hca(hca, NULL, NULL), "no HCA on node %d", node);
    return hca;
}

/** The endpoint for memory of the CPU. */
static mca_btl_umr_endpoint_t *near_to(mca_btl_umr_endpoint_t *endpoint, const void *memory)
{
    return harness.hca->endpoint_near(endpoint, memory, -1);
}

static uint64_t written(unsigned int hca)
{
    const mca_btl_umr_stats_t *stats;

    CHECK(harness.hca->hca(hca, NULL, &stats), "no HCA %u", hca);
    return stats->bytes_written;
}

/**
 * Like the start of a message in pml/umrddt: the sender selects the endpoint for its memory and
 * sends its address; the receiver finds its own endpoint by that. Then both are connected.
 */
static mca_btl_umr_endpoint_t *agree(bool send, mca_btl_umr_endpoint_t *any, const void *memory)
{
    mca_btl_umr_address_t mine, theirs;

    if (send) {
        any = near_to(any, memory);
        harness.hca->endpoint_address(any, &mine);
        MPI_Sendrecv(&mine, sizeof(mine), MPI_BYTE, harness.peer, 3, &theirs, sizeof(theirs),
                     MPI_BYTE, harness.peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_RC(OPAL_SUCCESS, harness.hca->endpoint_connect(any, &theirs));
    } else {
        MPI_Recv(&theirs, sizeof(theirs), MPI_BYTE, harness.peer, 3, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        any = harness.hca->endpoint_at(any, &theirs);
        CHECK_RC(OPAL_SUCCESS, harness.hca->endpoint_connect(any, &theirs));
        harness.hca->endpoint_address(any, &mine);
        MPI_Send(&mine, sizeof(mine), MPI_BYTE, harness.peer, 3, MPI_COMM_WORLD);
    }
    return any;
}

/** A message from the sender's area to the same area of the receiver, every byte looked at. */
static mca_btl_umr_endpoint_t *move(bool send, int area, unsigned int salt)
{
    opal_iov_cache_layout_t *layout = layout_vector(PIECES, LENGTH, 2 * LENGTH);
    struct side side = {areas[area], layout, 0, SIZE_MAX};
    mca_btl_umr_endpoint_t *first = harness.endpoint, *endpoint;

    memset(areas[area], FILLER, ROOM);
    if (send) {
        layout_fill(areas[area], layout, salt);
    }
    endpoint = agree(send, first, areas[area]);
    harness.endpoint = endpoint;
    harness_barrier();
    message(send, &side, layout->size, salt);
    if (!send) {
        layout_check(areas[area], ROOM, areas[area], layout, layout->size, salt, FILLER);
    }
    harness_barrier();
    harness.endpoint = first;
    OBJ_RELEASE(layout);
    return endpoint;
}

/* ------------------------------------------------------------------------------------------- *
 * Tests
 * ------------------------------------------------------------------------------------------- */

/** Each message uses the HCA that is nearest to the sender's memory, in both directions. */
static void hcas_near(void)
{
    const uint64_t bytes = PIECES * LENGTH;
    mca_btl_umr_endpoint_t *endpoints[2];

    CHECK(harness.hca->hca(1, NULL, NULL) && !harness.hca->hca(2, NULL, NULL), "not two HCAs");
    areas_begin();
    for (int sender = 0; sender < 2; ++sender) {
        bool send = sender == harness.rank;

        for (int area = 0; area < 2; ++area) {
            unsigned int there = hca_at(area), other = 1 - there;
            uint64_t before[2] = {written(0), written(1)};
            unsigned int requested;

            endpoints[area] = move(send, area, 1 + (unsigned int) area);
            if (send) {
                CHECK(there == hca_of(endpoints[area]), "memory of node %d by HCA %u", area,
                      hca_of(endpoints[area]));
                CHECK(before[there] + bytes == written(there), "not written there");
                CHECK(before[other] == written(other), "written by the other HCA");
                /* a registration of earlier memory there may have included it */
                (void) near_to(harness.endpoint, areas[area]);
                requested = questions;
                CHECK(endpoints[area] == near_to(harness.endpoint, areas[area]),
                      "another endpoint the second time");
                CHECK(requested == questions, "queried the page again");
            } else {
                CHECK(before[0] == written(0) && before[1] == written(1), "the receiver wrote");
            }
        }
        CHECK(endpoints[0] != endpoints[1], "one endpoint for both");
    }
    CHECK(PEER_LIMIT >= harness.hca->stats()->peer_bytes_now, "%llu bytes for one peer",
          (unsigned long long) harness.hca->stats()->peer_bytes_now);
    CHECK(2 == harness.hca->stats()->endpoints_now, "%llu endpoints",
          (unsigned long long) harness.hca->stats()->endpoints_now);
    areas_end();
}

/** If the node of the memory is unknown, or must not be queried, it is the first HCA. */
static void hcas_unknown(void)
{
    unsigned char *elsewhere = malloc(ROOM);

    areas_begin();
    CHECK(harness.endpoint == near_to(harness.endpoint, elsewhere), "nowhere");
    refuse = true;
    CHECK(harness.endpoint == near_to(harness.endpoint, areas[1] + 8192), "refused");
    areas_end();
    free(elsewhere);
}

/** The node of a page is queried again after its memory was released. */
static void hcas_moved(void)
{
    bool send = 0 == harness.rank;
    unsigned char *area;

    areas_begin();
    (void) move(send, 1, 9);
    if (send) {
        CHECK(hca_at(1) == hca_of(near_to(harness.endpoint, areas[1])), "the wrong HCA");
        /* the same addresses, but on the other node from now on; those of that one are on this */
        CHECK(0 == munmap(areas[1], ROOM), "munmap");
        CHECK(areas[1]
                  == mmap(areas[1], ROOM, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
              "mmap");
        area = areas[0];
        areas[0] = areas[1];
        areas[1] = area;
    }
    /* Open MPI's cache, one per HCA, drops freed memory at its next lookup. */
    (void) move(send, 1, 10);
    if (send) {
        CHECK(hca_at(0) == hca_of(near_to(harness.endpoint, areas[0])),
              "it is taken for what was there before");
    }
    areas_end();
}

/** What one HCA made is of no use to another. */
static void hcas_apart(void)
{
    opal_iov_cache_layout_t *layout = layout_vector(4, 64, 128);
    mca_btl_umr_endpoint_t *first = harness.endpoint, *second;
    bool send = 0 == harness.rank;
    struct done done = {0, 0};
    mca_btl_umr_memory_t *memory;
    mca_btl_umr_keyset_t *keyset;
    struct side side = {NULL, layout, 0, SIZE_MAX};

    areas_begin();
    side.buffer = areas[0];
    second = agree(send, first, areas[1]);
    CHECK(second != first, "one endpoint");
    if (send) {
        mca_btl_umr_key_t key, *remote;
        mca_btl_umr_direct_t direct = {.buffer = areas[0],
                                       .layout = layout,
                                       .to = layout->form,
                                       .regions = &key,
                                       .region_count = 1,
                                       .end = layout->size};
        size_t count;

        keyset = keyset_of(MCA_BTL_UMR_LOCAL, &side, layout->size, &memory);
        remote = keys_receive(&count);
        CHECK_RC(OPAL_ERR_BAD_PARAM,
                 harness.hca->put(second, keyset, remote, count, NULL, harness_done, &done));
        key = (mca_btl_umr_key_t){(uintptr_t) areas[0], ROOM, 1, 0};
        direct.memory = memory;
        direct.to_buffer = (uintptr_t) areas[0];
        CHECK_RC(OPAL_ERR_BAD_PARAM,
                 harness.hca->put_direct(second, &direct, NULL, harness_done, &done));
        harness.hca->keyset_release(keyset);
        harness.hca->memory_release(memory);
        /* the peer's keys, by a keyset of the right HCA: its other HCA does not know them */
        harness.endpoint = second;
        keyset = keyset_of(MCA_BTL_UMR_LOCAL, &side, layout->size, &memory);
        CHECK_RC(OPAL_SUCCESS,
                 harness.hca->put(second, keyset, remote, count, NULL, harness_done, &done));
        WAIT_UNTIL(0 < done.calls);
        CHECK(OPAL_ERR_UNREACH == done.status, "status %d", done.status);
        harness.endpoint = first;
        free(remote);
        harness_barrier();
    } else {
        keyset = keyset_of(MCA_BTL_UMR_REMOTE, &side, layout->size, &memory);
        keys_send(keyset);
        harness_barrier();
        for (size_t i = 0; i < ROOM; ++i) {
            CHECK(FILLER == areas[0][i], "byte %zu was written", i);
        }
    }
    harness.hca->keyset_release(keyset);
    harness.hca->memory_release(memory);
    OBJ_RELEASE(layout);
    areas_end();
}

/** A broken lane is not used any more, as long as there is another. */
static void hcas_break(void)
{
    bool send = 0 == harness.rank;
    mca_btl_umr_endpoint_t *broken, *other;

    areas_begin();
    broken = move(send, 1, 3);
    harness_barrier();
    harness.hca->endpoint_break(broken);
    harness_barrier();
    other = move(send, 1, 4);
    CHECK(broken != other && !harness.hca->endpoint_broken(other), "the broken one");
    harness.hca->endpoint_break(other);
    CHECK(harness.hca->endpoint_broken(near_to(harness.endpoint, areas[1])), "all are broken");
    areas_end();
}

/**
 * Only the receiver's end of a lane breaks. The HCA does not notify the sender: its next write
 * fails, no byte of it arrives, and later messages use the other lane. The receiver refuses
 * requests on the broken one.
 */
static void hcas_deaf(void)
{
    opal_iov_cache_layout_t *layout = layout_vector(PIECES, LENGTH, 2 * LENGTH);
    bool send = 0 == harness.rank;
    mca_btl_umr_endpoint_t *first = harness.endpoint, *deaf, *other;
    mca_btl_umr_memory_t *memory;
    mca_btl_umr_keyset_t *keyset;

    areas_begin();
    deaf = move(send, 1, 11);
    harness.endpoint = deaf;
    if (send) {
        struct side side = {areas[1], layout, 0, SIZE_MAX};
        struct done done = {0, 0};
        mca_btl_umr_key_t *remote;
        size_t count;

        keyset = keyset_of(MCA_BTL_UMR_LOCAL, &side, layout->size, &memory);
        remote = keys_receive(&count);
        harness_barrier();
        CHECK(!harness.hca->endpoint_broken(deaf), "this side can have no report");
        CHECK(deaf == near_to(first, areas[1]), "it is avoided too early");
        CHECK_RC(OPAL_SUCCESS,
                 harness.hca->put(deaf, keyset, remote, count, NULL, harness_done, &done));
        WAIT_UNTIL(0 < done.calls);
        CHECK(OPAL_ERR_UNREACH == done.status, "status %d", done.status);
        CHECK(harness.hca->endpoint_broken(deaf), "it goes on");
        harness.hca->keyset_release(keyset);
        free(remote);
    } else {
        struct side side = {areas[1], layout, 0, SIZE_MAX};

        memset(areas[1], FILLER, ROOM);
        keyset = keyset_of(MCA_BTL_UMR_REMOTE, &side, layout->size, &memory);
        keys_send(keyset);
        harness.hca->endpoint_break(deaf);
        harness_barrier();
    }
    harness_barrier();
    if (!send) {
        for (size_t i = 0; i < ROOM; ++i) {
            CHECK(FILLER == areas[1][i], "byte %zu was written", i);
        }
        harness.hca->keyset_release(keyset);
    }
    harness.hca->memory_release(memory);
    harness.endpoint = first;
    harness_barrier();
    if (!send) {
        mca_btl_umr_address_t address;

        harness.hca->endpoint_address(deaf, &address);
        CHECK_RC(OPAL_ERR_UNREACH, harness.hca->endpoint_connect(deaf, &address));
    }
    other = move(send, 1, 12);
    CHECK(other != deaf && !harness.hca->endpoint_broken(other), "the broken one");
    OBJ_RELEASE(layout);
    areas_end();
}

/**
 * The endpoints that parts of a message can go through at once: one a pair of HCAs, none that is
 * broken, and all of them together cost a peer no more than one.
 */
static void hcas_beside(void)
{
    mca_btl_umr_endpoint_t *endpoints[8], *again[8];
    unsigned int hcas = 0;
    size_t count;

    while (harness.hca->hca(hcas, NULL, NULL)) {
        ++hcas;
    }
    count = harness.hca->endpoints_beside(harness.endpoint, endpoints, 8);
    CHECK(hcas == count, "%zu endpoints with %u HCAs", count, hcas);
    CHECK(endpoints[0] == harness.endpoint, "another one is first");
    for (size_t i = 0; i < count; ++i) {
        for (size_t k = 0; k < i; ++k) {
            CHECK(hca_of(endpoints[i]) != hca_of(endpoints[k]), "an HCA twice");
        }
    }
    CHECK(hcas == harness.hca->stats()->endpoints_now, "%llu endpoints",
          (unsigned long long) harness.hca->stats()->endpoints_now);
    CHECK(PEER_LIMIT >= harness.hca->stats()->peer_bytes_now, "%llu bytes for one peer",
          (unsigned long long) harness.hca->stats()->peer_bytes_now);
    CHECK(2 == harness.hca->endpoints_beside(endpoints[1], again, 2), "no more than asked for");
    CHECK(endpoints[1] == again[0] && endpoints[0] == again[1], "not in the order of the pairs");
    harness.hca->endpoint_break(endpoints[1]);
    count = harness.hca->endpoints_beside(harness.endpoint, again, 8);
    CHECK(hcas - 1 == count, "%zu endpoints", count);
    for (size_t i = 0; i < count; ++i) {
        CHECK(endpoints[1] != again[i], "the broken one");
    }
}

/** An HCA that cannot map keys any more is not used: its endpoints break, and the other one
 * continues. */
static void hcas_fail(void)
{
    opal_iov_cache_layout_t *layout = layout_vector(8, 64, 256);
    bool send = 0 == harness.rank;
    mca_btl_umr_endpoint_t *first = harness.endpoint, *endpoint;

    areas_begin();
    endpoint = move(send, 1, 5);
    if (send) {
        struct done done = {0, 0};
        mca_btl_umr_memory_t *memory;
        mca_btl_umr_keyset_t *keyset;

        failure_break_mappings(); /* of the HCA that came up last */
        CHECK_RC(OPAL_SUCCESS,
                 harness.hca->memory_register_at(endpoint, MCA_BTL_UMR_LOCAL, areas[1], layout,
                                                 layout->size, &memory));
        CHECK_RC(OPAL_SUCCESS,
                 harness.hca->keyset_map(MCA_BTL_UMR_LOCAL, areas[1], layout, memory, 0, 0,
                                         layout->size, 1, harness_done, &done, &keyset));
        WAIT_UNTIL(0 < done.calls);
        CHECK(OPAL_ERROR == done.status, "status %d", done.status);
        CHECK(harness.hca->endpoint_broken(endpoint), "its endpoint goes on");
        CHECK(!harness.hca->endpoint_broken(first), "the other one's does not");
        harness.hca->keyset_release(keyset);
        harness.hca->memory_release(memory);
        CHECK(0 == hca_of(near_to(endpoint, areas[1])), "HCA 1 is taken");
    }
    endpoint = move(send, 1, 6);
    CHECK(first == endpoint, "not the other HCA");
    OBJ_RELEASE(layout);
    areas_end();
}

/** An address of an HCA that the peer has not, or of no lane, is refused, and nothing breaks. */
static void hcas_strange(void)
{
    mca_btl_umr_address_t strange;

    harness.hca->endpoint_address(harness.endpoint, &strange);
    strange.qpn |= htonl(0x7f000000);
    CHECK(harness.endpoint == harness.hca->endpoint_at(harness.endpoint, &strange), "another one");
    CHECK_RC(OPAL_ERR_UNREACH, harness.hca->endpoint_connect(harness.endpoint, &strange));
    CHECK(!harness.hca->endpoint_broken(harness.endpoint), "broken");
}

/** Bring the HCAs up and get the first endpoint to the other process. @return as endpoint_get */
static int begin(void)
{
    struct opal_proc_t *proc =
        (struct opal_proc_t *) ompi_comm_peer_lookup(&ompi_mpi_comm_world.comm, harness.peer);

    CHECK_RC(OPAL_SUCCESS, harness.hca->init());
    harness_exchange_modex();
    harness_expect_fins();
    return harness.hca->endpoint_get(proc, &harness.endpoint);
}

static void print_hca(mca_btl_umr_endpoint_t *endpoint)
{
    const mca_btl_umr_caps_t *caps;

    CHECK(harness.hca->hca(hca_of(endpoint), &caps, NULL), "no such HCA");
    printf(" %s", caps->device);
}

/**
 * The HCA for memory of each GPU, and of one that is not there. What was found out once is not
 * looked for again: the files that say it are gone then.
 */
void hcas_print_gpus(void)
{
    enum {
        MOST = 16
    };
    const umrddt_cuda_all_t *cuda;
    mca_btl_umr_endpoint_t *near[MOST + 1];
    char from[512], to[512];
    int count = 0;

    CHECK_RC(OPAL_SUCCESS, umrddt_cuda_all_load(&cuda));
    CHECK(CUDA_SUCCESS == cuda->cuInit(0) && CUDA_SUCCESS == cuda->cuDeviceGetCount(&count)
              && MOST >= count,
          "the GPUs");
    CHECK_RC(OPAL_SUCCESS, begin());
    printf("rank %d:", harness.rank);
    for (int gpu = 0; gpu <= count; ++gpu) {
        near[gpu] = harness.hca->endpoint_near(harness.endpoint, NULL, gpu);
        print_hca(near[gpu]);
    }
    printf("\n");
    snprintf(from, sizeof(from), "%s/bus", getenv("SYSFS_PATH"));
    snprintf(to, sizeof(to), "%s/bus.away", getenv("SYSFS_PATH"));
    CHECK(0 == rename(from, to), "rename %s", from);
    for (int gpu = 0; gpu <= count; ++gpu) {
        CHECK(near[gpu] == harness.hca->endpoint_near(near[gpu], NULL, gpu),
              "GPU %d: another one the second time", gpu);
    }
    /* one that breaks is no choice any more */
    harness.hca->endpoint_break(near[0]);
    CHECK(near[0] != harness.hca->endpoint_near(harness.endpoint, NULL, 0), "the broken one");
    CHECK(0 == rename(to, from), "rename %s", to);
    harness_disconnect();
}

/** A process's name for what it can do with the other: the HCA of each lane, by node. */
void hcas_print_lanes(void)
{
    mca_btl_umr_endpoint_t *endpoint;
    int rc;

    rc = begin();
    endpoint = harness.endpoint;
    areas_begin();
    if (OPAL_SUCCESS != rc) {
        CHECK(OPAL_ERR_UNREACH == rc, "returned %d", rc);
        printf("rank %d: unreachable\n", harness.rank);
    } else {
        printf("rank %d:", harness.rank);
        for (int area = 0; area < NODES; ++area) {
            print_hca(near_to(endpoint, areas[area]));
        }
        printf("\n");
        for (int sender = 0; sender < 2; ++sender) {
            for (int area = 0; area < NODES; ++area) {
                (void) move(sender == harness.rank, area, 20 + (unsigned int) area);
            }
        }
    }
    areas_end();
    harness_disconnect();
}

/**
 * The HCAs of this process, and for each other process the HCA (its index) for memory of the GPU
 * with this process's number. btl_umr_verbose has the lanes.
 */
void hcas_print_table(void)
{
    const mca_btl_umr_caps_t *caps;

    CHECK_RC(OPAL_SUCCESS, harness.hca->init());
    harness_exchange_modex();
    printf("rank %d:", harness.rank);
    for (unsigned int i = 0; harness.hca->hca(i, &caps, NULL); ++i) {
        printf(" %s", caps->device);
    }
    printf("\n");
    for (int peer = 0; peer < harness.size; ++peer) {
        mca_btl_umr_endpoint_t *endpoint;

        if (peer != harness.rank) {
            CHECK_RC(OPAL_SUCCESS,
                     harness.hca->endpoint_get((struct opal_proc_t *) ompi_comm_peer_lookup(
                                                   &ompi_mpi_comm_world.comm, peer),
                                               &endpoint));
            endpoint = harness.hca->endpoint_near(endpoint, NULL, harness.rank);
            printf("near %d %d %u\n", harness.rank, peer, hca_of(endpoint));
        }
    }
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    harness.hca->fini();
}

/** A put that nothing is written by, so no peer needs to have keys for it. */
struct vain {
    mca_btl_umr_memory_t *memory;
    mca_btl_umr_keyset_t *keyset;
    mca_btl_umr_key_t remote;
    struct done done;
};

static void vain_begin(struct vain *vain, mca_btl_umr_endpoint_t *endpoint, int area)
{
    opal_iov_cache_layout_t *layout = layout_vector(PIECES, LENGTH, 2 * LENGTH);
    mca_btl_umr_endpoint_t *first = harness.endpoint;
    struct side side = {areas[area], layout, 0, SIZE_MAX};

    memset(vain, 0, sizeof(*vain));
    vain->remote = (mca_btl_umr_key_t){0, layout->size, 1, 0};
    harness.endpoint = endpoint;
    vain->keyset = keyset_of(MCA_BTL_UMR_LOCAL, &side, layout->size, &vain->memory);
    harness.endpoint = first;
    CHECK_RC(OPAL_SUCCESS, harness.hca->put(endpoint, vain->keyset, &vain->remote, 1, NULL,
                                            harness_done, &vain->done));
    OBJ_RELEASE(layout);
}

/**
 * It ends while its endpoint lives, which takes no other one. If this process did not run for a
 * second, the device may report first that the ports do not reach each other.
 *
 * @param[in] us  the limit of its wait
 */
static void vain_end(struct vain *vain, mca_btl_umr_endpoint_t *endpoint, uint64_t us)
{
    uint64_t waited;

    WAIT_UNTIL(0 < vain->done.calls);
    if (!harness.hca->endpoint_broken(endpoint) || OPAL_ERR_UNREACH != vain->done.status) {
        CHECK(OPAL_ERR_TIMEOUT == vain->done.status, "status %d", vain->done.status);
        CHECK(!harness.hca->endpoint_broken(endpoint), "it is given up with its first put");
        waited = harness.hca->stats()->probe_wait_us;
        CHECK(us <= waited && us + 2000 >= waited, "%llu us", (unsigned long long) waited);
        CHECK_RC(OPAL_ERR_TIMEOUT, harness.hca->put(endpoint, vain->keyset, &vain->remote, 1, NULL,
                                                    harness_done, &vain->done));
    }
    harness.hca->keyset_release(vain->keyset);
    harness.hca->memory_release(vain->memory);
    CHECK(1 == vain->done.calls, "%d calls", vain->done.calls);
}

/**
 * Memory of node 0 is near to a lane that works, that of node 1 to one whose ports do not reach
 * each other. A put through that one fails soon, messages through the other one are not delayed,
 * and the lane is not tried again.
 *
 * @param[in] beside  the other lane has worked before
 */
static void dead_lane(bool beside)
{
    bool send = 0 == harness.rank;
    mca_btl_umr_endpoint_t *first = harness.endpoint, *dead, *near, *others[8];

    areas_begin();
    if (beside) {
        (void) move(!send, 1, 29);
    }
    dead = agree(send, first, areas[1]);
    CHECK(send || dead != first, "the lane that works");
    if (send) {
        struct vain vain;

        vain_begin(&vain, dead, 1);
        for (size_t i = harness.hca->endpoints_beside(first, others, 8); 0 < i; --i) {
            CHECK(dead != others[i - 1], "parts of messages wait for the answer");
        }
        if (beside) {
            CHECK(first == near_to(first, areas[1]), "the other lane has only received, and works");
            (void) move(send, 0, 30);
        }
        vain_end(&vain, dead, beside ? 100000 : 250000);
        CHECK(dead != near_to(first, areas[1]), "another message would wait");
        (void) move(send, 0, 31);
        WAIT_UNTIL(harness.hca->endpoint_broken(dead));
        for (int i = 0; i < 1000; ++i) {
            near = near_to(first, areas[1]);
            CHECK(hca_of(near) != hca_of(dead), "it is tried again");
        }
        CHECK(!harness.hca->endpoint_broken(near), "no lane is left");
    } else {
        if (beside) {
            (void) move(send, 0, 30);
        }
        (void) move(send, 0, 31);
    }
    harness_barrier();
    (void) move(send, 0, 32);
    areas_end();
}

static void hcas_dead(void)
{
    dead_lane(true);
}

static void hcas_dead_first(void)
{
    dead_lane(false);
}

/** Plan faults of the software HCA; NULL: keep the plan. @return number of those that occurred */
static int faults(const char *plan)
{
    int (*set)(const char *, int) =
        (int (*)(const char *, int)) dlsym(RTLD_DEFAULT, "umrddt_sim_faults");
    int came = NULL == set ? -1 : set(plan, 1);

    CHECK(0 <= came, "only the software HCA has faults");
    return came;
}

/**
 * The network loses the first probe some times. The first message does not wait for it, and the
 * lane works nevertheless.
 */
static void hcas_slow(void)
{
    bool send = 0 == harness.rank;
    mca_btl_umr_endpoint_t *endpoint;

    areas_begin();
    (void) faults("probe:1:1500000");
    endpoint = agree(send, harness.endpoint, areas[1]);
    if (send) {
        struct vain vain;

        vain_begin(&vain, endpoint, 1);
        vain_end(&vain, endpoint, 250000);
        CHECK(endpoint != near_to(harness.endpoint, areas[1]), "another message would wait");
        WAIT_UNTIL(endpoint == near_to(harness.endpoint, areas[1]));
    }
    harness_barrier();
    CHECK(endpoint == move(send, 1, 40), "another lane");
    CHECK(!send || 1 == faults(NULL), "%d probes", faults(NULL));
    CHECK(!harness.hca->endpoint_broken(endpoint), "broken");
    (void) faults("");
    areas_end();
}

/** The only lane is not given up, so it needs no probe. */
static void hcas_alone(void)
{
    areas_begin();
    (void) faults("probe:1-:3000000");
    (void) move(0 == harness.rank, 0, 41);
    CHECK(0 == faults(NULL), "%d probes", faults(NULL));
    (void) faults("");
    areas_end();
}

/**
 * Messages, as the users of the HCA begin them, until the lane of one area works.
 *
 * @param[in] lane  its HCA, at the sender
 *
 * @return false: it does not after many
 */
static bool begin_many(bool send, int area, unsigned int lane)
{
    mca_btl_umr_endpoint_t *first = harness.endpoint, *endpoint = NULL;
    mca_btl_umr_address_t mine, theirs;
    int works = 0, root = send ? harness.rank : harness.peer;

    for (int i = 0; i < 600 && 0 == works; ++i) {
        int broken = 0;

        if (send) {
            endpoint = near_to(first, areas[area]);
            broken = harness.hca->endpoint_broken(endpoint) ? 1 : 0;
        }
        MPI_Bcast(&broken, 1, MPI_INT, root, MPI_COMM_WORLD);
        if (0 != broken) {
            harness_progress_for(0.001); /* a message by the base PML */
            continue;
        }
        if (send) {
            harness.hca->endpoint_address(endpoint, &mine);
            MPI_Sendrecv(&mine, sizeof(mine), MPI_BYTE, harness.peer, 3, &theirs, sizeof(theirs),
                         MPI_BYTE, harness.peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (OPAL_SUCCESS == harness.hca->endpoint_connect(endpoint, &theirs)) {
                works = lane == hca_of(endpoint);
            } else {
                harness.hca->endpoint_refused(endpoint, &theirs);
            }
        } else {
            MPI_Recv(&theirs, sizeof(theirs), MPI_BYTE, harness.peer, 3, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            /* The flush of an old queue pair takes some time. */
            for (int k = 0; k < 1000; ++k) {
                endpoint = harness.hca->endpoint_at(first, &theirs);
                if (!harness.hca->endpoint_refuses(endpoint, &theirs, &mine)) {
                    (void) harness.hca->endpoint_connect(endpoint, &theirs);
                    break;
                }
                harness_progress();
            }
            harness.hca->endpoint_address(endpoint, &mine);
            MPI_Send(&mine, sizeof(mine), MPI_BYTE, harness.peer, 3, MPI_COMM_WORLD);
        }
        MPI_Bcast(&works, 1, MPI_INT, root, MPI_COMM_WORLD);
        harness_progress_for(0.001);
    }
    return 0 != works;
}

/** A search for a route fails twice. The lane, one of several or the only one, is tried again. */
static void hcas_route(void)
{
    bool send = 0 == harness.rank;

    areas_begin();
    if (send && harness.endpoint == near_to(harness.endpoint, areas[1])) {
        harness.hca->endpoint_break(harness.endpoint); /* it is connected */
    }
    if (send) {
        (void) faults("route:1-2:113");
    }
    CHECK(begin_many(send, 1, hca_of(near_to(harness.endpoint, areas[1]))),
          "it is not tried again");
    CHECK(!send || 2 == faults(NULL), "%d failed", faults(NULL));
    (void) faults("");
    (void) move(send, 1, 42);
    areas_end();
}

/** No search for a route succeeds: one of several lanes is tried three times. */
static void hcas_no_route(void)
{
    bool send = 0 == harness.rank;

    areas_begin();
    if (send) {
        (void) faults("route:1-:113");
    }
    CHECK(!begin_many(send, 1, hca_of(near_to(harness.endpoint, areas[1]))), "it works");
    CHECK(!send || 3 == faults(NULL), "%d failed", faults(NULL));
    (void) faults("");
    (void) move(send, 0, 43);
    areas_end();
}

/**
 * A lane that has worked is not given up after three searches for a route, also by a process that
 * has only received.
 */
static void hcas_route_back(void)
{
    bool send = 1 == harness.rank;
    mca_btl_umr_endpoint_t *endpoint;

    areas_begin();
    /* The second pair of ports: they are listed in turn. */
    endpoint = move(!send, 1, 44);
    if (send) {
        harness.hca->endpoint_break(endpoint);
        (void) faults("route:1-4:113");
    }
    CHECK(begin_many(send, 0, hca_of(endpoint)), "it is not tried again");
    CHECK(!send || 4 == faults(NULL), "%d failed", faults(NULL));
    (void) faults("");
    (void) move(send, 0, 45);
    areas_end();
}

/**
 * No route between the ports of the only lane: connecting fails after some time, and is tried
 * again as often as any replacement of a queue pair. (No lane works, so the test has no
 * connection.)
 */
void hcas_print_no_route(void)
{
    mca_btl_umr_address_t mine, theirs;
    mca_btl_umr_endpoint_t *last;
    double start;
    int more = 0;

    CHECK_RC(OPAL_SUCCESS, begin());
    last = harness.endpoint;
    harness.hca->endpoint_address(last, &mine);
    MPI_Sendrecv(&mine, sizeof(mine), MPI_BYTE, harness.peer, 3, &theirs, sizeof(theirs), MPI_BYTE,
                 harness.peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    start = MPI_Wtime();
    for (int i = 0; i < 1100; ++i) {
        mca_btl_umr_endpoint_t *endpoint = near_to(harness.endpoint, &mine);

        more += endpoint != last ? 1 : 0;
        last = endpoint;
        /* The peer's address has the generation of its queue pair. */
        harness.hca->endpoint_address(endpoint, &mine);
        theirs.psn = htonl((ntohl(mine.psn) & 0xff000000) | (ntohl(theirs.psn) & 0xffffff));
        CHECK_RC(OPAL_ERR_UNREACH, harness.hca->endpoint_connect(endpoint, &theirs));
    }
    printf("rank %d: %d more, %s\n", harness.rank, more,
           0.2 <= MPI_Wtime() - start ? "late" : "at once");
    fflush(stdout);
    MPI_Barrier(MPI_COMM_WORLD);
    harness.hca->fini();
}

/** Puts of another thread, by an endpoint that is connected, while this one connects others. */
struct traffic {
    pthread_t thread;
    struct side side;
    mca_btl_umr_keyset_t *keyset;
    mca_btl_umr_key_t *remote;
    size_t remote_count;
    int puts;
    bool stop;
};

static void *put_on(void *argument)
{
    struct traffic *traffic = argument;

    while (!__atomic_load_n(&traffic->stop, __ATOMIC_ACQUIRE)) {
        struct done done = {0, 0};

        CHECK_RC(OPAL_SUCCESS, harness.hca->put(harness.endpoint, traffic->keyset, traffic->remote,
                                                traffic->remote_count, NULL, harness_done, &done));
        while (0 == __atomic_load_n(&done.calls, __ATOMIC_ACQUIRE)) {
            (void) harness.hca->progress();
            usleep(100);
        }
        CHECK(OPAL_SUCCESS == done.status, "status %d", done.status);
        __atomic_add_fetch(&traffic->puts, 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

/** The address of the peer, and the lane that two threads find and connect at the same time. */
struct finder {
    pthread_t thread;
    mca_btl_umr_address_t theirs;
    mca_btl_umr_endpoint_t *endpoint;
    int rc;
};

static void *find(void *argument)
{
    struct finder *finder = argument;

    finder->endpoint = harness.hca->endpoint_at(harness.endpoint, &finder->theirs);
    finder->rc = harness.hca->endpoint_connect(finder->endpoint, &finder->theirs);
    return NULL;
}

/**
 * The commands that create and connect the queue pair of a lane are slow. Another thread uses
 * another lane meanwhile, and two threads that need the lane get the same endpoint.
 */
static void hcas_connecting(void)
{
    const char *slow = "slow:1-:300000";
    opal_iov_cache_layout_t *layout = layout_vector(PIECES, LENGTH, 2 * LENGTH);
    bool send = 0 == harness.rank;
    struct traffic traffic = {.side = {NULL, layout, 0, SIZE_MAX}};
    mca_btl_umr_memory_t *memory;
    mca_btl_umr_endpoint_t *endpoint;
    mca_btl_umr_address_t mine, theirs;

    CHECK(MPI_THREAD_MULTIPLE == harness.threads, "run this with HCA_THREADS=1");
    areas_begin();
    (void) move(send, 0, 50);
    traffic.side.buffer = areas[0];
    if (send) {
        int before;

        traffic.remote = keys_receive(&traffic.remote_count);
        traffic.keyset = keyset_of(MCA_BTL_UMR_LOCAL, &traffic.side, layout->size, &memory);
        CHECK(0 == pthread_create(&traffic.thread, NULL, put_on, &traffic), "thread");
        (void) faults(slow);
        before = __atomic_load_n(&traffic.puts, __ATOMIC_ACQUIRE);
        endpoint = near_to(harness.endpoint, areas[1]);
        CHECK(before + 2 <= __atomic_load_n(&traffic.puts, __ATOMIC_ACQUIRE),
              "no put while a queue pair is created");
        harness.hca->endpoint_address(endpoint, &mine);
        MPI_Sendrecv(&mine, sizeof(mine), MPI_BYTE, harness.peer, 3, &theirs, sizeof(theirs),
                     MPI_BYTE, harness.peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        before = __atomic_load_n(&traffic.puts, __ATOMIC_ACQUIRE);
        CHECK_RC(OPAL_SUCCESS, harness.hca->endpoint_connect(endpoint, &theirs));
        CHECK(before + 2 <= __atomic_load_n(&traffic.puts, __ATOMIC_ACQUIRE),
              "no put while a queue pair is connected");
        CHECK(4 <= faults(NULL), "the commands were not slow");
        (void) faults("");
        __atomic_store_n(&traffic.stop, true, __ATOMIC_RELEASE);
        pthread_join(traffic.thread, NULL);
        free(traffic.remote);
    } else {
        struct finder finders[2];

        traffic.keyset = keyset_of(MCA_BTL_UMR_REMOTE, &traffic.side, layout->size, &memory);
        keys_send(traffic.keyset);
        MPI_Recv(&theirs, sizeof(theirs), MPI_BYTE, harness.peer, 3, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        (void) faults(slow);
        for (int i = 0; i < 2; ++i) {
            finders[i].theirs = theirs;
            CHECK(0 == pthread_create(&finders[i].thread, NULL, find, &finders[i]), "thread");
        }
        for (int i = 0; i < 2; ++i) {
            pthread_join(finders[i].thread, NULL);
            CHECK_RC(OPAL_SUCCESS, finders[i].rc);
            CHECK(finders[0].endpoint == finders[i].endpoint, "two endpoints");
        }
        (void) faults("");
        CHECK(finders[0].endpoint != harness.endpoint, "the other lane");
        CHECK(2 == harness.hca->stats()->endpoints_now, "%llu endpoints",
              (unsigned long long) harness.hca->stats()->endpoints_now);
        harness.hca->endpoint_address(finders[0].endpoint, &mine);
        MPI_Send(&mine, sizeof(mine), MPI_BYTE, harness.peer, 3, MPI_COMM_WORLD);
    }
    harness_barrier();
    harness.hca->keyset_release(traffic.keyset);
    harness.hca->memory_release(memory);
    (void) move(send, 1, 51);
    OBJ_RELEASE(layout);
    areas_end();
}

/** The budgets of a process are those of the HCAs that it uses: a port is down. */
static void hcas_share(void)
{
    const mca_btl_umr_caps_t *caps;

    CHECK(harness.hca->hca(0, &caps, NULL) && !harness.hca->hca(1, NULL, NULL), "not one HCA");
    CHECK(32 == caps->max_keys, "%zu mkeys of 64 for each role", caps->max_keys);
}

/** UMRDDT_TEST_CLASS: service level, traffic class, index of the pkey and of the GID. */
static void hcas_class(void)
{
    int sl, traffic_class, pkey, gid;
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    CHECK(4 == sscanf(getenv("UMRDDT_TEST_CLASS"), "%d %d %d %d", &sl, &traffic_class, &pkey, &gid),
          "UMRDDT_TEST_CLASS");
    CHECK(0 == ibv_query_qp(hca_data_qp, &attr, IBV_QP_AV | IBV_QP_PKEY_INDEX, &init), "query");
    CHECK(sl == attr.ah_attr.sl, "service level %u", attr.ah_attr.sl);
    CHECK(traffic_class == attr.ah_attr.grh.traffic_class, "traffic class %u",
          attr.ah_attr.grh.traffic_class);
    CHECK(pkey == attr.pkey_index, "pkey %u", attr.pkey_index);
    CHECK(gid == attr.ah_attr.grh.sgid_index, "GID %u", attr.ah_attr.grh.sgid_index);
}

const struct test hca_tests[] = {{"hcas_class", hcas_class},
                                 {"hcas_connecting", hcas_connecting},
                                 {"hcas_share", hcas_share},
                                 {"hcas_dead", hcas_dead},
                                 {"hcas_dead_first", hcas_dead_first},
                                 {"hcas_near", hcas_near},
                                 {"hcas_unknown", hcas_unknown},
                                 {"hcas_moved", hcas_moved},
                                 {"hcas_apart", hcas_apart},
                                 {"hcas_break", hcas_break},
                                 {"hcas_fail", hcas_fail},
                                 {"hcas_strange", hcas_strange},
                                 {"hcas_deaf", hcas_deaf},
                                 {"hcas_beside", hcas_beside},
                                 {"hcas_slow", hcas_slow},
                                 {"hcas_alone", hcas_alone},
                                 {"hcas_route", hcas_route},
                                 {"hcas_no_route", hcas_no_route},
                                 {"hcas_route_back", hcas_route_back},
                                 {NULL, NULL}};
