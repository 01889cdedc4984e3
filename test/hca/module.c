/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * btl/umr as a btl: memory of a peer is written, read and added to through the module that the
 * framework gets with btl_umr_rdma. (module.sh sets it.)
 */

#include "harness.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ompi/communicator/communicator.h"
#include "ompi/proc/proc.h"
#include "opal/mca/btl/umr/btl_umr_module.h"

enum {
    SLOTS = 32,
    SLOT = 4096,
    AREA = SLOTS * SLOT,
    ROUNDS = 12,
    ADDS = 60,
    THREADS = 4
};

/* Every handle of the module fits here. */
typedef union handle {
    mca_btl_base_registration_handle_t *aligned;
    unsigned char bytes[64];
} handle_t;

/** Memory of a process that others may use, as they know it. */
typedef struct exposed {
    uint64_t address;
    handle_t handle;
} exposed_t;

/** Callbacks of one test. */
typedef struct answers {
    int calls;
    int bad;
    int refused; /**< not a callback: how often the queue was full */
} answers_t;

static mca_btl_base_module_t *module;
static struct mca_btl_base_endpoint_t *endpoints[2];
static int error_calls;

static void error_cb(mca_btl_base_module_t *btl, int32_t flags, struct opal_proc_t *proc,
                     char *info)
{
    (void) info;
    CHECK(module == btl && NULL == proc, "whose error?");
    CHECK(0 != (MCA_BTL_ERROR_FLAGS_FATAL & flags), "flags 0x%x", (unsigned) flags);
    ++error_calls;
}

static void answer(mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *endpoint,
                   void *local, mca_btl_base_registration_handle_t *handle, void *context,
                   void *data, int status)
{
    answers_t *answers = context;

    CHECK(module == btl, "another module");
    CHECK(endpoint == endpoints[0] || endpoint == endpoints[1], "another endpoint");
    CHECK(NULL != local && NULL != handle && answers == data, "other arguments");
    if (OPAL_SUCCESS != status) {
        (void) __atomic_add_fetch(&answers->bad, 1, __ATOMIC_RELAXED);
    }
    (void) __atomic_add_fetch(&answers->calls, 1, __ATOMIC_RELEASE);
}

static void progress(void)
{
    if (0 == harness.component->super.btl_progress()) {
        sched_yield();
    }
}

static void wait_for(answers_t *answers, int calls)
{
    double end = MPI_Wtime() + HARNESS_HANG;

    while (__atomic_load_n(&answers->calls, __ATOMIC_ACQUIRE) < calls) {
        CHECK(MPI_Wtime() < end, "%d callbacks of %d", answers->calls, calls);
        progress();
    }
    CHECK(calls == answers->calls, "%d callbacks, not %d", answers->calls, calls);
}

static void open_module(void)
{
    struct opal_proc_t *procs[2];
    mca_btl_base_module_t **modules;
    int count = -1;

    modules = harness.component->super.btl_init(&count, false, false);
    CHECK(NULL != modules && 1 == count, "%d modules", count);
    module = modules[0];
    free(modules);
    CHECK_RC(OPAL_SUCCESS, module->btl_register_error(module, error_cb));
    harness_exchange_modex();
    for (int i = 0; i < 2; ++i) {
        procs[i] = (struct opal_proc_t *) ompi_comm_peer_lookup(&ompi_mpi_comm_world.comm, i);
    }
    CHECK_RC(OPAL_SUCCESS, module->btl_add_procs(module, 2, procs, endpoints, NULL));
    CHECK(NULL != endpoints[0] && NULL != endpoints[1], "not both can be reached");
    error_calls = 0;
    harness_barrier();
}

static void close_module(void)
{
    harness_barrier();
    CHECK_RC(OPAL_SUCCESS, module->btl_finalize(module));
    module = NULL;
}

static mca_btl_base_registration_handle_t *pin(void *memory, size_t size, uint32_t rights)
{
    mca_btl_base_registration_handle_t *handle =
        module->btl_register_mem(module, MCA_BTL_ENDPOINT_ANY, memory, size, rights);

    CHECK(NULL != handle, "no registration with rights 0x%x", rights);
    return handle;
}

/** Tell both of a process's memory. @param[out] theirs  by rank */
static void expose(void *memory, const mca_btl_base_registration_handle_t *handle,
                   exposed_t *theirs)
{
    exposed_t mine;

    memset(&mine, 0, sizeof(mine));
    CHECK(sizeof(mine.handle) >= module->btl_registration_handle_size, "large handles");
    mine.address = (uintptr_t) memory;
    memcpy(mine.handle.bytes, handle, module->btl_registration_handle_size);
    MPI_Allgather(&mine, sizeof(mine), MPI_BYTE, theirs, sizeof(mine), MPI_BYTE, MPI_COMM_WORLD);
}

static mca_btl_base_registration_handle_t *remote(exposed_t *exposed)
{
    return (mca_btl_base_registration_handle_t *) exposed->handle.bytes;
}

/** Retry while the queue is full. */
#define POST(answers, call)                                                      \
    do {                                                                         \
        int post_rc;                                                             \
        while (OPAL_ERR_OUT_OF_RESOURCE == (post_rc = (call))) {                 \
            (void) __atomic_add_fetch(&(answers)->refused, 1, __ATOMIC_RELAXED); \
            progress();                                                          \
        }                                                                        \
        CHECK(OPAL_SUCCESS == post_rc, "posting returned %d", post_rc);          \
    } while (0)

static void contract(void)
{
    int count = -1;
    mca_btl_base_module_t **modules;

    open_module();
    CHECK(0 == (MCA_BTL_FLAGS_SEND & module->btl_flags), "a PML could send through it");
    CHECK(MCA_BTL_FLAGS_RDMA == (MCA_BTL_FLAGS_RDMA & module->btl_flags), "no put and get");
    CHECK(0 != (MCA_BTL_FLAGS_ATOMIC_FOPS & module->btl_flags), "no atomics");
    CHECK((MCA_BTL_ATOMIC_SUPPORTS_ADD | MCA_BTL_ATOMIC_SUPPORTS_CSWAP) == module->btl_atomic_flags,
          "other atomics");
    CHECK(NULL == module->btl_send && NULL == module->btl_alloc, "it sends");
    CHECK(MCA_BTL_EXCLUSIVITY_LOW == module->btl_exclusivity, "exclusive");
    /* What bml/r2 makes of these for all btls of a peer must not change by this one. */
    CHECK(0 == module->btl_rdma_pipeline_send_length && 0 == module->btl_min_rdma_pipeline_size,
          "it changes when ob1 uses its pipeline");
    /* It is there once. */
    modules = harness.component->super.btl_init(&count, false, false);
    CHECK(NULL != modules && 0 == count, "%d more modules", count);
    free(modules);
    close_module();
}

/** Without the parameter. */
static void off(void)
{
    int count = -1;
    mca_btl_base_module_t **modules = harness.component->super.btl_init(&count, false, false);

    CHECK(NULL != modules && 0 == count, "%d modules", count);
    free(modules);
}

/** Expected content of an entry after a round. */
static void slot_fill(unsigned char *bytes, int slot, unsigned salt)
{
    for (uint64_t i = 0; i < SLOT; ++i) {
        bytes[i] = stream_byte(i + (uint64_t) slot * SLOT, salt);
    }
}

/** Put to a process and get back, pieces at random places. */
static void exchange(int target, exposed_t *theirs, unsigned char *local,
                     mca_btl_base_registration_handle_t *handle, unsigned char *shadow,
                     bool by_flush, answers_t *answers)
{
    struct mca_btl_base_endpoint_t *endpoint = endpoints[target];
    uint64_t there = theirs[target].address;

    for (int round = 0; round < ROUNDS; ++round) {
        int calls = answers->calls, puts = 0;

        for (int slot = 0; slot < SLOTS; ++slot) {
            uint32_t from = harness_random(SLOT), length = 1 + harness_random(SLOT - from);
            unsigned char *source = local + slot * SLOT;

            if (0 == harness_random(4)) {
                continue;
            }
            slot_fill(source, slot, (unsigned) round * 8 + (unsigned) harness.rank + 1);
            memcpy(shadow + slot * SLOT + from, source + from, length);
            POST(answers, module->btl_put(module, endpoint, source + from,
                                          there + (uint64_t) slot * SLOT + from, handle,
                                          remote(&theirs[target]), length, 0, MCA_BTL_NO_ORDER,
                                          by_flush ? NULL : answer, answers, answers));
            ++puts;
        }
        if (by_flush) {
            CHECK_RC(OPAL_SUCCESS, module->btl_flush(module, 0 == round % 2 ? endpoint : NULL));
            CHECK(calls == answers->calls, "callbacks that were not asked for");
        } else {
            wait_for(answers, calls + puts);
        }
        /* In another place, by pieces of an odd length. */
        memset(local, 0, AREA);
        calls = answers->calls;
        puts = 0;
        for (uint64_t at = 0; at < AREA; at += 1777) {
            size_t length = AREA - at < 1777 ? AREA - at : 1777;

            POST(answers, module->btl_get(module, endpoint, local + at, there + at, handle,
                                          remote(&theirs[target]), length, 0, MCA_BTL_NO_ORDER,
                                          answer, answers, answers));
            ++puts;
        }
        wait_for(answers, calls + puts);
        for (int i = 0; i < AREA; ++i) {
            CHECK(local[i] == shadow[i], "round %d: byte %d is %u, not %u", round, i, local[i],
                  shadow[i]);
        }
    }
}

static void bytes(void)
{
    unsigned char *area = malloc(AREA), *local = malloc(AREA), *shadow = malloc(AREA);
    mca_btl_base_registration_handle_t *area_handle, *local_handle;
    const mca_btl_umr_stats_t before = *harness.hca->stats();
    const mca_btl_umr_stats_t *now = harness.hca->stats();
    answers_t answers = {0, 0, 0};
    const char *depth = getenv("OMPI_MCA_btl_umr_rdma_depth");
    exposed_t theirs[2];

    open_module();
    area_handle = pin(area, AREA, MCA_BTL_REG_FLAG_ACCESS_ANY);
    local_handle = pin(local, AREA, MCA_BTL_REG_FLAG_LOCAL_WRITE);
    expose(area, area_handle, theirs);
    /* To the peer, then to this process itself. */
    for (int way = 0; way < 4; ++way) {
        int target = 2 > way ? harness.peer : harness.rank;

        memset(area, 0x5a, AREA);
        memset(shadow, 0x5a, AREA);
        harness_barrier();
        exchange(target, theirs, local, local_handle, shadow, 1 == way % 2, &answers);
        /* And as the target sees it. */
        if (2 > way) {
            MPI_Sendrecv(shadow, AREA, MPI_BYTE, harness.peer, 5, local, AREA, MPI_BYTE,
                         harness.peer, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            memcpy(local, shadow, AREA);
        }
        CHECK(0 == memcmp(area, local, AREA), "way %d: the target has other bytes", way);
    }
    CHECK(0 == answers.bad && 0 == error_calls, "%d bad answers, %d errors", answers.bad,
          error_calls);
    if (NULL != depth && 4 > atoi(depth)) {
        CHECK(0 < answers.refused, "a send queue of %s was never full", depth);
    }
    now = harness.hca->stats(); /* of several HCAs it is the sum as of this call */
    CHECK(now->rdma_puts > before.rdma_puts && now->rdma_gets > before.rdma_gets, "not counted");
    CHECK(now->rdma_bytes - before.rdma_bytes >= 4 * ROUNDS * (uint64_t) AREA, "bytes not counted");
    CHECK_RC(OPAL_SUCCESS, module->btl_deregister_mem(module, local_handle));
    harness_barrier();
    CHECK_RC(OPAL_SUCCESS, module->btl_deregister_mem(module, area_handle));
    close_module();
    free(area);
    free(local);
    free(shadow);
}

/** Numbers that only hold if no two additions met. */
static void atomics(void)
{
    static uint64_t words[8], got[ADDS + 4];
    uint64_t all[2][ADDS], value;
    bool seen[2 * ADDS];
    mca_btl_base_registration_handle_t *there, *here;
    struct mca_btl_base_endpoint_t *endpoint;
    answers_t answers = {0, 0, 0};
    exposed_t theirs[2];
    uint64_t counter;

    open_module();
    memset(words, 0, sizeof(words));
    words[2] = 0xfffffffffffffff0u;
    there = pin(words, sizeof(words), MCA_BTL_REG_FLAG_ACCESS_ANY);
    here = pin(got, sizeof(got), MCA_BTL_REG_FLAG_LOCAL_WRITE);
    expose(words, there, theirs);
    endpoint = endpoints[0];
    counter = theirs[0].address;

    /* Rank 0 also accesses its memory through the HCA. */
    for (int i = 0; i < ADDS; ++i) {
        POST(&answers, module->btl_atomic_fop(module, endpoint, &got[i], counter, here,
                                              remote(&theirs[0]), MCA_BTL_ATOMIC_ADD, 1, 0,
                                              MCA_BTL_NO_ORDER, answer, &answers, &answers));
    }
    wait_for(&answers, ADDS);
    MPI_Allgather(got, ADDS, MPI_UINT64_T, all, ADDS, MPI_UINT64_T, MPI_COMM_WORLD);
    memset(seen, 0, sizeof(seen));
    for (int r = 0; r < 2; ++r) {
        for (int i = 0; i < ADDS; ++i) {
            CHECK(2 * ADDS > all[r][i] && !seen[all[r][i]], "%llu came twice",
                  (unsigned long long) all[r][i]);
            seen[all[r][i]] = true;
        }
    }
    if (0 == harness.rank) {
        CHECK(2 * ADDS == words[0], "%llu", (unsigned long long) words[0]);
    }

    /* By compare and swap: retried until no other access came between. */
    for (int i = 0; i < 20; ++i) {
        uint64_t old = 0;

        for (;;) {
            int calls = answers.calls;

            POST(&answers, module->btl_atomic_cswap(module, endpoint, &got[0], counter + 8, here,
                                                    remote(&theirs[0]), old, old + 3, 0,
                                                    MCA_BTL_NO_ORDER, answer, &answers, &answers));
            wait_for(&answers, calls + 1);
            if (got[0] == old) {
                break;
            }
            old = got[0];
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (0 == harness.rank) {
        CHECK(2 * 20 * 3 == words[1], "%llu", (unsigned long long) words[1]);
    }

    /* All 64 bits, in the machine's order; the words beside it stay. */
    value = (uint64_t) answers.calls;
    if (1 == harness.rank) {
        POST(&answers, module->btl_atomic_fop(module, endpoint, &got[1], counter + 16, here,
                                              remote(&theirs[0]), MCA_BTL_ATOMIC_ADD, 0x11, 0,
                                              MCA_BTL_NO_ORDER, answer, &answers, &answers));
        wait_for(&answers, (int) value + 1);
        CHECK(0xfffffffffffffff0u == got[1], "0x%llx", (unsigned long long) got[1]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (0 == harness.rank) {
        CHECK(1 == words[2] && 0 == words[3], "0x%llx", (unsigned long long) words[2]);
    }

    /* Unsupported operations return an error and break nothing. */
    CHECK_RC(OPAL_ERR_NOT_SUPPORTED,
             module->btl_atomic_fop(module, endpoint, got, counter, here, remote(&theirs[0]),
                                    MCA_BTL_ATOMIC_AND, 1, 0, MCA_BTL_NO_ORDER, answer, &answers,
                                    &answers));
    CHECK_RC(OPAL_ERR_NOT_SUPPORTED,
             module->btl_atomic_fop(module, endpoint, got, counter, here, remote(&theirs[0]),
                                    MCA_BTL_ATOMIC_ADD, 1, MCA_BTL_ATOMIC_FLAG_32BIT,
                                    MCA_BTL_NO_ORDER, answer, &answers, &answers));
    CHECK_RC(OPAL_ERR_NOT_SUPPORTED,
             module->btl_atomic_cswap(module, endpoint, got, counter, here, remote(&theirs[0]), 1,
                                      1, MCA_BTL_ATOMIC_FLAG_32BIT, MCA_BTL_NO_ORDER, answer,
                                      &answers, &answers));
    CHECK_RC(OPAL_ERR_BAD_PARAM,
             module->btl_atomic_fop(module, endpoint, got, counter + 4, here, remote(&theirs[0]),
                                    MCA_BTL_ATOMIC_ADD, 1, 0, MCA_BTL_NO_ORDER, answer, &answers,
                                    &answers));
    CHECK_RC(OPAL_SUCCESS, module->btl_flush(module, NULL));
    CHECK(0 == answers.bad && 0 == error_calls, "%d bad answers", answers.bad);
    CHECK_RC(OPAL_SUCCESS, module->btl_deregister_mem(module, here));
    harness_barrier();
    CHECK_RC(OPAL_SUCCESS, module->btl_deregister_mem(module, there));
    close_module();
}

/** Rank 1 is outside of MPI and of the HCA, and sees what rank 0 did from its memory alone. */
static void passive(void)
{
    static uint64_t here[4];
    volatile uint64_t *words = calloc(4, sizeof(*words));
    mca_btl_base_registration_handle_t *there, *local;
    answers_t answers = {0, 0, 0};
    exposed_t theirs[2];

    open_module();
    there = pin((void *) words, 4 * sizeof(*words), MCA_BTL_REG_FLAG_ACCESS_ANY);
    local = pin(here, sizeof(here), MCA_BTL_REG_FLAG_LOCAL_WRITE);
    expose((void *) words, there, theirs);
    if (0 == harness.rank) {
        uint64_t address = theirs[1].address;

        for (int i = 0; i < ADDS; ++i) {
            POST(&answers, module->btl_atomic_fop(module, endpoints[1], &here[0], address, local,
                                                  remote(&theirs[1]), MCA_BTL_ATOMIC_ADD, 1, 0,
                                                  MCA_BTL_NO_ORDER, NULL, NULL, NULL));
        }
        CHECK_RC(OPAL_SUCCESS, module->btl_flush(module, endpoints[1]));
        CHECK(ADDS - 1 == here[0], "%llu", (unsigned long long) here[0]);
        here[1] = 0x0123456789abcdefu;
        POST(&answers, module->btl_put(module, endpoints[1], &here[1], address + sizeof(uint64_t),
                                       local, remote(&theirs[1]), sizeof(uint64_t), 0,
                                       MCA_BTL_NO_ORDER, NULL, NULL, NULL));
        CHECK_RC(OPAL_SUCCESS, module->btl_flush(module, NULL));
    } else {
        double end = MPI_Wtime() + HARNESS_HANG;

        while (0 == words[1]) {
            CHECK(MPI_Wtime() < end, "nothing came");
            sched_yield();
        }
        CHECK(ADDS == words[0] && 0x0123456789abcdefu == words[1], "%llu 0x%llx",
              (unsigned long long) words[0], (unsigned long long) words[1]);
    }
    CHECK_RC(OPAL_SUCCESS, module->btl_deregister_mem(module, local));
    harness_barrier();
    CHECK_RC(OPAL_SUCCESS, module->btl_deregister_mem(module, there));
    close_module();
    free((void *) words);
}

/** What may be registered, how, and that it is served from the cache. */
static void registrations(void)
{
    size_t page = (size_t) sysconf(_SC_PAGESIZE), bound = 0;
    const char *bytes = getenv("OMPI_MCA_btl_umr_reg_cache_size");
    const mca_btl_umr_stats_t *stats = harness.hca->stats();
    mca_btl_base_registration_handle_t *handle, *here;
    answers_t answers = {0, 0, 0};
    unsigned char *constant, *memory;
    exposed_t theirs[2];
    uint64_t misses;

    open_module();
    memory = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    constant = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(MAP_FAILED != memory && MAP_FAILED != constant, "no memory");
    memset(constant, 0x33, page);
    CHECK(0 == mprotect(constant, page, PROT_READ), "mprotect");

    CHECK(NULL == module->btl_register_mem(module, NULL, memory, 0, MCA_BTL_REG_FLAG_ACCESS_ANY),
          "nothing was registered");
    CHECK(NULL == module->btl_register_mem(module, NULL, memory, page, 0x10000),
          "a GPU's memory was registered");
    CHECK(
        NULL
            == module->btl_register_mem(module, NULL, constant, page, MCA_BTL_REG_FLAG_LOCAL_WRITE),
        "memory that cannot be written was registered for writing");
    here = pin(memory, page, MCA_BTL_REG_FLAG_LOCAL_WRITE);
    CHECK_RC(OPAL_SUCCESS, module->btl_deregister_mem(module, here));
    misses = stats->reg_misses;
    here = pin(memory, page, MCA_BTL_REG_FLAG_LOCAL_WRITE);
    CHECK(misses == stats->reg_misses, "registered again");

    /* A peer reads it at its announced address. */
    handle = pin(constant, page, MCA_BTL_REG_FLAG_REMOTE_READ);
    expose(constant, handle, theirs);
    POST(&answers,
         module->btl_get(module, endpoints[harness.peer], memory, theirs[harness.peer].address,
                         here, remote(&theirs[harness.peer]), page, 0, MCA_BTL_NO_ORDER, answer,
                         &answers, &answers));
    wait_for(&answers, 1);
    CHECK(0 == answers.bad && 0 == memcmp(memory, constant, page), "other bytes");

    if (NULL != bytes) {
        bound = (size_t) strtoul(bytes, NULL, 0);
        CHECK(NULL == module->btl_register_mem(module, NULL, memory, bound + page, 0),
              "registered beyond the bound");
    }
    harness_barrier();
    CHECK_RC(OPAL_SUCCESS, module->btl_deregister_mem(module, here));
    CHECK_RC(OPAL_SUCCESS, module->btl_deregister_mem(module, handle));
    close_module();
    munmap(memory, 4 * page);
    munmap(constant, page);
}

/** Rank 0 does what rank 1's memory does not allow. @param[in] kind  of four */
static void forbidden(int kind)
{
    enum {
        BYTES = 64
    };
    uint32_t rights = 2 > kind ? MCA_BTL_REG_FLAG_LOCAL_WRITE | MCA_BTL_REG_FLAG_REMOTE_WRITE
                               : MCA_BTL_REG_FLAG_ACCESS_ANY;
    mca_btl_base_registration_handle_t *there, *here;
    answers_t answers = {0, 0, 0};
    uint64_t *words, *mine;
    exposed_t theirs[2];
    handle_t bad;

    open_module();
    /* Pages of their own: one registration serves all on its pages, with the rights it has. */
    words = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mine = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(MAP_FAILED != (void *) words && MAP_FAILED != (void *) mine, "no memory");
    memset(words, 0x77, BYTES);
    there = pin(words, BYTES, rights);
    here = pin(mine, BYTES, MCA_BTL_REG_FLAG_ACCESS_ANY);
    expose(words, there, theirs);
    if (0 == harness.rank) {
        struct mca_btl_base_endpoint_t *endpoint = endpoints[1];
        uint64_t address = theirs[1].address;

        bad = theirs[1].handle;
        switch (kind) {
        case 0: /* no right to add */
            CHECK_RC(OPAL_SUCCESS,
                     module->btl_atomic_fop(module, endpoint, mine, address, here,
                                            remote(&theirs[1]), MCA_BTL_ATOMIC_ADD, 1, 0,
                                            MCA_BTL_NO_ORDER, answer, &answers, &answers));
            break;
        case 1:
            CHECK_RC(OPAL_SUCCESS, module->btl_atomic_cswap(
                                       module, endpoint, mine, address, here, remote(&theirs[1]), 1,
                                       2, 0, MCA_BTL_NO_ORDER, answer, &answers, &answers));
            break;
        case 2: /* not a key */
            memset(bad.bytes, 0xee, module->btl_registration_handle_size);
            CHECK_RC(OPAL_SUCCESS,
                     module->btl_put(module, endpoint, mine, address, here,
                                     (mca_btl_base_registration_handle_t *) bad.bytes, 8, 0,
                                     MCA_BTL_NO_ORDER, answer, &answers, &answers));
            break;
        default: /* beyond the end of what is registered */
            CHECK_RC(OPAL_SUCCESS, module->btl_get(module, endpoint, mine, address + (1u << 20),
                                                   here, remote(&theirs[1]), 8, 0, MCA_BTL_NO_ORDER,
                                                   answer, &answers, &answers));
            break;
        }
        wait_for(&answers, 1);
        CHECK(1 == answers.bad, "it was allowed");
        CHECK(1 == error_calls, "%d errors reported", error_calls);
        CHECK_RC(OPAL_ERR_UNREACH,
                 module->btl_put(module, endpoint, mine, address, here, remote(&theirs[1]), 8, 0,
                                 MCA_BTL_NO_ORDER, answer, &answers, &answers));
        CHECK_RC(OPAL_ERR_UNREACH, module->btl_flush(module, endpoint));
        /* The others are as good as before. */
        POST(&answers, module->btl_put(module, endpoints[0], &mine[1], (uintptr_t) &mine[2], here,
                                       here, 8, 0, MCA_BTL_NO_ORDER, answer, &answers, &answers));
        wait_for(&answers, 2);
        CHECK(1 == answers.bad, "another endpoint broke, too");
    }
    harness_barrier();
    for (size_t i = 0; i < BYTES; ++i) {
        CHECK(0x77 == ((unsigned char *) words)[i], "written");
    }
    CHECK_RC(OPAL_SUCCESS, module->btl_deregister_mem(module, here));
    CHECK_RC(OPAL_SUCCESS, module->btl_deregister_mem(module, there));
    close_module();
    munmap(words, BYTES);
    munmap(mine, BYTES);
}

static void refused(void)
{
    for (int kind = 0; kind < 4; ++kind) {
        forbidden(kind);
    }
}

static int post_nothing(struct ibv_qp_ex *qpx)
{
    ibv_wr_abort(qpx);
    return ENOMEM;
}

/** The device refuses what rank 0 posts. @param[in] kind  of four */
static void unposted_one(int kind)
{
    struct mca_btl_base_endpoint_t *endpoint;
    mca_btl_base_registration_handle_t *handle;
    answers_t answers = {0, 0, 0};
    static uint64_t words[4];
    exposed_t theirs[2];
    int rc;

    open_module();
    words[0] = words[1] = 7;
    handle = pin(words, sizeof(words), MCA_BTL_REG_FLAG_ACCESS_ANY);
    expose(words, handle, theirs);
    endpoint = endpoints[1];
    if (0 == harness.rank) {
        mca_btl_base_registration_handle_t *there = remote(&theirs[1]);
        uint64_t address = theirs[1].address + 8;
        const mca_btl_umr_sq_t *sq = &endpoint->sq;

        POST(&answers, module->btl_get(module, endpoint, &words[2], address, handle, there, 8, 0,
                                       MCA_BTL_NO_ORDER, answer, &answers, &answers));
        wait_for(&answers, 1);
        sq->qpx->wr_complete = post_nothing;
        switch (kind) {
        case 0:
            rc = module->btl_put(module, endpoint, &words[3], address, handle, there, 8, 0,
                                 MCA_BTL_NO_ORDER, answer, &answers, &answers);
            break;
        case 1:
            rc = module->btl_get(module, endpoint, &words[3], address, handle, there, 8, 0,
                                 MCA_BTL_NO_ORDER, answer, &answers, &answers);
            break;
        case 2:
            rc = module->btl_atomic_fop(module, endpoint, &words[3], address, handle, there,
                                        MCA_BTL_ATOMIC_ADD, 1, 0, MCA_BTL_NO_ORDER, answer,
                                        &answers, &answers);
            break;
        default:
            rc = module->btl_atomic_cswap(module, endpoint, &words[3], address, handle, there, 7, 8,
                                          0, MCA_BTL_NO_ORDER, answer, &answers, &answers);
            break;
        }
        CHECK_RC(OPAL_ERROR, rc);
        /* The books know of one operation, and wait for nothing else. */
        CHECK(1 == sq->posted && 1 == sq->done, "%u posted, %u done", sq->posted, sq->done);
        CHECK(1 == sq->signalled, "number %u is to give a completion", sq->signalled);
        CHECK_RC(OPAL_ERR_UNREACH, module->btl_flush(module, endpoint));
        CHECK_RC(OPAL_ERR_UNREACH,
                 module->btl_put(module, endpoint, &words[3], address, handle, there, 8, 0,
                                 MCA_BTL_NO_ORDER, answer, &answers, &answers));
        POST(&answers,
             module->btl_put(module, endpoints[0], &words[2], (uintptr_t) &words[3], handle, handle,
                             8, 0, MCA_BTL_NO_ORDER, answer, &answers, &answers));
        wait_for(&answers, 2);
        CHECK(0 == answers.bad && 0 == error_calls && 7 == words[3], "%d bad, %d errors, %d",
              answers.bad, error_calls, (int) words[3]);
    }
    harness_barrier();
    CHECK(7 == words[1], "it was done all the same");
    CHECK_RC(OPAL_SUCCESS, module->btl_deregister_mem(module, handle));
    close_module();
}

static void unposted(void)
{
    for (int kind = 0; kind < 4; ++kind) {
        unposted_one(kind);
    }
}

/** A thread with entries of its own. */
typedef struct worker {
    pthread_t thread;
    int number;
    exposed_t *theirs;
    unsigned char *local;
    uint64_t *words;
    mca_btl_base_registration_handle_t *handle;
} worker_t;

static void *work(void *argument)
{
    worker_t *worker = argument;
    exposed_t *target = &worker->theirs[harness.peer];
    unsigned char *local = worker->local + worker->number * SLOT;
    uint64_t there = target->address + (uint64_t) worker->number * SLOT;
    answers_t answers = {0, 0, 0};

    for (int i = 0; i < ADDS; ++i) {
        uint64_t *word = &worker->words[worker->number];

        slot_fill(local, worker->number, (unsigned) i);
        POST(&answers, module->btl_put(module, endpoints[harness.peer], local, there,
                                       worker->handle, remote(target), SLOT, 0, MCA_BTL_NO_ORDER,
                                       answer, &answers, &answers));
        wait_for(&answers, 3 * i + 1);
        memset(local, 0, SLOT);
        POST(&answers, module->btl_get(module, endpoints[harness.peer], local, there,
                                       worker->handle, remote(target), SLOT, 0, MCA_BTL_NO_ORDER,
                                       answer, &answers, &answers));
        CHECK_RC(OPAL_SUCCESS, module->btl_flush(module, endpoints[harness.peer]));
        wait_for(&answers, 3 * i + 2);
        for (int b = 0; b < SLOT; ++b) {
            CHECK(stream_byte((uint64_t) (worker->number * SLOT + b), (unsigned) i) == local[b],
                  "thread %d, round %d: byte %d", worker->number, i, b);
        }
        POST(&answers, module->btl_atomic_fop(module, endpoints[harness.peer], word,
                                              target->address + THREADS * SLOT, worker->handle,
                                              remote(target), MCA_BTL_ATOMIC_ADD, 1, 0,
                                              MCA_BTL_NO_ORDER, answer, &answers, &answers));
        wait_for(&answers, 3 * i + 3);
    }
    CHECK(0 == answers.bad, "%d bad answers", answers.bad);
    return NULL;
}

static void threads(void)
{
    size_t size = (size_t) (THREADS + 1) * SLOT;
    unsigned char *area = calloc(1, size), *local = calloc(1, size);
    mca_btl_base_registration_handle_t *there, *here;
    worker_t workers[THREADS];
    exposed_t theirs[2];
    uint64_t sum;

    CHECK(MPI_THREAD_MULTIPLE == harness.threads, "run this with HCA_THREADS=1");
    open_module();
    there = pin(area, size, MCA_BTL_REG_FLAG_ACCESS_ANY);
    here = pin(local, size, MCA_BTL_REG_FLAG_LOCAL_WRITE);
    expose(area, there, theirs);
    for (int i = 0; i < THREADS; ++i) {
        workers[i] = (worker_t){.number = i,
                                .theirs = theirs,
                                .local = local,
                                .words = (uint64_t *) (void *) (local + THREADS * SLOT),
                                .handle = here};
        CHECK(0 == pthread_create(&workers[i].thread, NULL, work, &workers[i]), "no thread");
    }
    for (int i = 0; i < THREADS; ++i) {
        CHECK(0 == pthread_join(workers[i].thread, NULL), "no end");
    }
    harness_barrier();
    memcpy(&sum, area + THREADS * SLOT, sizeof(sum));
    CHECK(THREADS * ADDS == sum, "%llu additions", (unsigned long long) sum);
    CHECK_RC(OPAL_SUCCESS, module->btl_deregister_mem(module, here));
    CHECK_RC(OPAL_SUCCESS, module->btl_deregister_mem(module, there));
    close_module();
    free(area);
    free(local);
}

/** Keys of 4 pieces of 64 bytes. */
static mca_btl_umr_keyset_t *pieces_map(mca_btl_umr_role_t role, unsigned char *area,
                                        const opal_iov_cache_layout_t *layout,
                                        mca_btl_umr_memory_t **memory)
{
    struct side side = {area, layout, 0, 4};

    return keyset_of(role, &side, layout->size, memory);
}

/**
 * The HCA of rank 1 fails with operations in flight, and the module is the first to see that: each
 * operation ends once, with an error, though their queue pair still flushes them; and a message
 * that had come before, with its FIN, has come.
 */
static void lost(void)
{
    enum {
        OPS = 40,
        FIN = 77
    };
    int (*faults)(const char *, int) =
        (int (*)(const char *, int)) dlsym(RTLD_DEFAULT, "umrddt_sim_faults");
    opal_iov_cache_layout_t *layout = layout_vector(4, 64, 256);
    mca_btl_umr_memory_t *from_memory, *to_memory;
    mca_btl_umr_keyset_t *from, *to;
    mca_btl_base_registration_handle_t *handle;
    static unsigned char area[2][1024];
    struct done done = {0, 0};
    answers_t answers = {0, 0, 0};
    static uint64_t words[2 * OPS];
    exposed_t theirs[2];
    mca_btl_umr_key_t *keys;
    uint32_t fin = FIN;
    size_t count, fins = harness.fin_count;
    bool loses = 1 == harness.rank;

    CHECK(NULL != faults, "only the software HCA has faults");
    open_module();
    handle = pin(words, sizeof(words), MCA_BTL_REG_FLAG_ACCESS_ANY);
    expose(words, handle, theirs);
    from = pieces_map(MCA_BTL_UMR_LOCAL, area[0], layout, &from_memory);
    to = pieces_map(MCA_BTL_UMR_REMOTE, area[1], layout, &to_memory);
    /* rank 0 first */
    if (loses) {
        keys = keys_receive(&count);
        keys_send(to);
        CHECK_RC(OPAL_SUCCESS, harness.hca->fin_reserve(harness.endpoint));
    } else {
        keys_send(to);
        keys = keys_receive(&count);
    }
    harness_barrier();
    /* First rank 1, so that no probe precedes its later write, then rank 0. */
    for (int turn = 1; turn >= 0; --turn) {
        if (turn == harness.rank) {
            CHECK_RC(OPAL_SUCCESS, harness.hca->put(harness.endpoint, from, keys, count,
                                                    loses ? NULL : &fin, harness_done, &done));
            WAIT_UNTIL(0 < done.calls);
            CHECK(OPAL_SUCCESS == done.status, "status %d", done.status);
            done.calls = 0;
        }
        MPI_Barrier(MPI_COMM_WORLD); /* without progress of the HCA */
    }
    if (loses) {
        CHECK(0 <= faults("late:1:60000000;cq:1", 1), "no plan");
        for (int i = 0; i < OPS; ++i) {
            POST(&answers, module->btl_put(module, endpoints[0], &words[i],
                                           theirs[0].address + 8 * (uint64_t) (OPS + i), handle,
                                           remote(&theirs[0]), 8, 0, MCA_BTL_NO_ORDER, answer,
                                           &answers, &answers));
        }
        usleep(100000);
        CHECK_RC(OPAL_SUCCESS,
                 harness.hca->put(harness.endpoint, from, keys, count, NULL, harness_done, &done));
        wait_for(&answers, OPS);
        for (int i = 0; i < 5000; ++i) {
            progress();
        }
        CHECK(OPS == answers.calls && OPS == answers.bad, "%d callbacks, %d errors", answers.calls,
              answers.bad);
        CHECK(0 < error_calls, "no error callback");
        CHECK(fins == harness.fin_count, "a FIN without progress of the HCA");
        WAIT_UNTIL(0 < done.calls && fins < harness.fin_count);
        CHECK(OPAL_ERR_UNREACH == done.status && 1 == done.calls, "status %d", done.status);
        CHECK(fins + 1 == harness.fin_count && FIN == harness.fins[fins], "another FIN");
        CHECK_RC(OPAL_ERR_UNREACH, module->btl_flush(module, endpoints[0]));
        (void) faults("", 1);
    }
    harness_barrier();
    free(keys);
    harness.hca->keyset_release(from);
    harness.hca->keyset_release(to);
    harness.hca->memory_release(from_memory);
    harness.hca->memory_release(to_memory);
    OBJ_RELEASE(layout);
    CHECK_RC(OPAL_SUCCESS, module->btl_deregister_mem(module, handle));
    close_module();
}

const struct test module_tests[] = {
    {"module_off", off},
    {"module_contract", contract},
    {"module_bytes", bytes},
    {"module_atomics", atomics},
    {"module_passive", passive},
    {"module_registrations", registrations},
    {"module_refused", refused},
    {"module_unposted", unposted},
    {"module_threads", threads},
    {"module_lost", lost},
    {NULL, NULL},
};
