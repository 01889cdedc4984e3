/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "harness.h"

#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include "ompi/communicator/communicator.h"
#include "ompi/proc/proc.h"
#include "opal/mca/base/base.h"
#include "opal/mca/btl/base/base.h"

#if UMRDDT_OPAL_RELEASE >= 500
#include <pmix.h>
#endif

struct harness harness;

/* The btl framework, but with one component: what pml/umrddt does. */
static mca_base_framework_t framework;

bool harness_open_hca(void)
{
    mca_base_component_list_item_t *item;

    framework = opal_btl_base_framework;
    framework.framework_selection = (char *) "umr";
    OBJ_CONSTRUCT(&framework.framework_components, opal_list_t);
    OBJ_CONSTRUCT(&framework.framework_failed_components, opal_list_t);
    if (OPAL_SUCCESS != mca_base_framework_components_register(&framework, 0)
        || OPAL_SUCCESS != mca_base_framework_components_open(&framework, 0)) {
        return false;
    }
    OPAL_LIST_FOREACH (item, &framework.framework_components, mca_base_component_list_item_t) {
        if (0 == strcmp("umr", item->cli_component->mca_component_name)) {
            const mca_btl_umr_component_t *component =
                (const mca_btl_umr_component_t *) item->cli_component;

            CHECK(MCA_BTL_UMR_HCA_API == component->api, "api %u", component->api);
            harness.component = component;
            harness.hca = component->ops;
        }
    }
    return NULL != harness.hca;
}

void harness_close_hca(void)
{
    (void) mca_base_framework_components_close(&framework, NULL);
    OBJ_DESTRUCT(&framework.framework_components);
    OBJ_DESTRUCT(&framework.framework_failed_components);
    harness.hca = NULL;
}

bool harness_open(int *argc, char ***argv)
{
    int level = NULL == getenv("HCA_THREADS") ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE;

    MPI_Init_thread(argc, argv, level, &harness.threads);
    MPI_Comm_rank(MPI_COMM_WORLD, &harness.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &harness.size);
    harness.peer = 1 - harness.rank;
    return harness_open_hca();
}

void harness_close(void)
{
    harness_close_hca();
    MPI_Finalize();
}

void harness_exchange_modex(void)
{
#if UMRDDT_OPAL_RELEASE >= 500
    /* libmpi brings libpmix along, but not for others to link against. */
    pmix_status_t (*commit)(void) = dlsym(RTLD_DEFAULT, "PMIx_Commit");
    pmix_status_t (*fence)(const pmix_proc_t *, size_t, const pmix_info_t *, size_t) =
        dlsym(RTLD_DEFAULT, "PMIx_Fence");

    CHECK(NULL != commit && PMIX_SUCCESS == commit(), "commit");
    CHECK(NULL != fence && PMIX_SUCCESS == fence(NULL, 0, NULL, 0), "fence");
#else
    CHECK_RC(OPAL_SUCCESS, opal_pmix.commit());
    CHECK_RC(OPAL_SUCCESS, opal_pmix.fence(NULL, 1));
#endif
}

static void fin_handler(void *context, mca_btl_umr_endpoint_t *endpoint, uint32_t fin)
{
    size_t place = __atomic_fetch_add(&harness.fin_count, 1, __ATOMIC_RELAXED);

    CHECK(&harness == context, "wrong context");
    CHECK(harness.endpoint == endpoint, "wrong endpoint");
    CHECK(4096 > place, "too many");
    harness.fins[place] = fin;
}

void harness_expect_fins(void)
{
    harness.fin_count = 0;
    harness.hca->set_fin_handler(fin_handler, &harness);
}

void harness_connect(void)
{
    struct opal_proc_t *proc =
        (struct opal_proc_t *) ompi_comm_peer_lookup(&ompi_mpi_comm_world.comm, harness.peer);
    mca_btl_umr_address_t mine, theirs;
    mca_btl_umr_endpoint_t *again;

    CHECK_RC(OPAL_SUCCESS, harness.hca->init());
    CHECK('\0' == harness.hca->why_not()[0], "%s", harness.hca->why_not());
    harness_exchange_modex();
    CHECK(0 == harness.hca->stats()->endpoints_now && 0 == harness.hca->stats()->peer_bytes_now
              && 0 == harness.hca->stats()->shared_bytes_now,
          "memory for peers before the first one");
    harness_expect_fins();
    CHECK_RC(OPAL_SUCCESS, harness.hca->endpoint_get(proc, &harness.endpoint));
    CHECK_RC(OPAL_SUCCESS, harness.hca->endpoint_get(proc, &again));
    CHECK(again == harness.endpoint, "two endpoints for one peer");
    harness.hca->endpoint_address(harness.endpoint, &mine);
    MPI_Sendrecv(&mine, sizeof(mine), MPI_BYTE, harness.peer, 1, &theirs, sizeof(theirs), MPI_BYTE,
                 harness.peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK_RC(OPAL_SUCCESS, harness.hca->endpoint_connect(harness.endpoint, &theirs));
    CHECK_RC(OPAL_SUCCESS, harness.hca->endpoint_connect(harness.endpoint, &theirs));
    theirs.qpn ^= 0xffff;
    CHECK_RC(OPAL_ERR_UNREACH, harness.hca->endpoint_connect(harness.endpoint, &theirs));
    CHECK(!harness.hca->endpoint_broken(harness.endpoint), "broken by a refused connect");
    harness_barrier();
}

void harness_disconnect(void)
{
    harness_barrier();
    harness.hca->fini();
    harness.endpoint = NULL;
}

void harness_progress(void)
{
    if (0 == harness.hca->progress()) {
        int flag;

        MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        sched_yield();
    }
}

void harness_progress_for(double seconds)
{
    double end = MPI_Wtime() + seconds;

    while (MPI_Wtime() < end) {
        harness_progress();
        usleep(200);
    }
}

void harness_done(void *context, int status)
{
    struct done *done = context;

    ++done->calls;
    done->status = status;
}

void harness_barrier(void)
{
    MPI_Request request;
    int flag = 0;

    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    while (0 == flag) {
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        harness_progress();
    }
}

uint32_t harness_random(uint32_t bound)
{
    /* xorshift: the same on every machine, unlike rand() */
    harness.seed ^= harness.seed << 13;
    harness.seed ^= harness.seed >> 17;
    harness.seed ^= harness.seed << 5;
    return harness.seed % bound;
}

/* ------------------------------------------------------------------------------------------- *
 * Layouts
 * ------------------------------------------------------------------------------------------- */

opal_iov_cache_layout_t *layout_list(const opal_iov_cache_iov_t *iovs, size_t count)
{
    opal_iov_cache_form_t *form = NULL;
    opal_iov_cache_layout_t *layout = NULL;

    CHECK_RC(OPAL_SUCCESS, opal_iov_cache_form_of_pieces(iovs, count, &form));
    CHECK_RC(OPAL_SUCCESS, opal_iov_cache_layout_of_form(form, &layout));
    CHECK(layout->iov_count == count, "the test's own pieces touch each other");
    return layout;
}

opal_iov_cache_layout_t *layout_vector(size_t count, uint64_t length, int64_t distance)
{
    opal_iov_cache_iov_t *iovs = malloc(count * sizeof(*iovs));
    opal_iov_cache_layout_t *layout;

    for (size_t i = 0; i < count; ++i) {
        iovs[i].offset = (int64_t) i * distance;
        iovs[i].length = length;
    }
    layout = layout_list(iovs, count);
    free(iovs);
    return layout;
}

opal_iov_cache_layout_t *layout_random(uint64_t size, uint64_t room, size_t least)
{
    size_t count = least + harness_random(64);
    opal_iov_cache_iov_t *iovs;
    opal_iov_cache_layout_t *layout;
    uint64_t gap, cut = 0, offset = 0;

    if (count > size) {
        count = size;
    }
    iovs = malloc(count * sizeof(*iovs));
    gap = (room - size) / (count + 1);
    for (size_t i = 0; i < count; ++i) {
        uint64_t left = size - cut, pieces = count - i;
        uint64_t most = 2 * (left / pieces);

        iovs[i].length =
            1 == pieces ? left : 1 + harness_random((uint32_t) (1 < most ? most - 1 : 1));
        if (iovs[i].length > left - (pieces - 1)) {
            iovs[i].length = left - (pieces - 1);
        }
        cut += iovs[i].length;
        offset += 1 + harness_random((uint32_t) (1 < gap ? gap : 1));
        iovs[i].offset = (int64_t) offset;
        offset += iovs[i].length;
    }
    CHECK(offset <= room, "the test's own layout leaves its room");
    for (size_t i = count - 1; 0 < i; --i) {
        size_t j = harness_random((uint32_t) i + 1);
        opal_iov_cache_iov_t iov = iovs[i];

        iovs[i] = iovs[j];
        iovs[j] = iov;
    }
    layout = layout_list(iovs, count);
    free(iovs);
    return layout;
}

void layout_fill(void *buffer, const opal_iov_cache_layout_t *layout, unsigned salt)
{
    for (size_t i = 0; i < layout->iov_count; ++i) {
        const opal_iov_cache_iov_t iov = opal_iov_cache_layout_iov(layout, i);
        const uint64_t start = opal_iov_cache_layout_start(layout, i);
        unsigned char *at = (unsigned char *) ((uintptr_t) buffer + (uintptr_t) iov.offset);

        for (uint64_t k = 0; k < iov.length; ++k) {
            at[k] = stream_byte(start + k, salt);
        }
    }
}

void layout_check(const void *area, size_t room, const void *buffer,
                  const opal_iov_cache_layout_t *layout, uint64_t size, unsigned salt,
                  unsigned char filler)
{
    const unsigned char *is = area;
    unsigned char *expected = malloc(room);

    memset(expected, filler, room);
    for (size_t i = 0; i < layout->iov_count; ++i) {
        const opal_iov_cache_iov_t iov = opal_iov_cache_layout_iov(layout, i);
        const uint64_t start = opal_iov_cache_layout_start(layout, i);
        unsigned char *at =
            expected + ((uintptr_t) buffer - (uintptr_t) area) + (uintptr_t) iov.offset;

        for (uint64_t k = 0; k < iov.length && start + k < size; ++k) {
            at[k] = stream_byte(start + k, salt);
        }
    }
    for (size_t i = 0 == memcmp(is, expected, room) ? room : 0; i < room; ++i) {
        CHECK(is[i] == expected[i], "byte %zu of %zu is 0x%02x, not 0x%02x", i, room, is[i],
              expected[i]);
    }
    free(expected);
}

/* ------------------------------------------------------------------------------------------- *
 * Messages
 * ------------------------------------------------------------------------------------------- */

void keys_send(const mca_btl_umr_keyset_t *keyset)
{
    MPI_Send(keyset->keys, (int) (keyset->count * sizeof(*keyset->keys)), MPI_BYTE, harness.peer, 2,
             MPI_COMM_WORLD);
}

mca_btl_umr_key_t *keys_receive(size_t *count)
{
    mca_btl_umr_key_t *keys;
    MPI_Status status;
    int bytes, flag = 0;

    while (0 == flag) {
        MPI_Iprobe(harness.peer, 2, MPI_COMM_WORLD, &flag, &status);
        harness_progress();
    }
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    keys = malloc((size_t) bytes);
    MPI_Recv(keys, bytes, MPI_BYTE, harness.peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    *count = (size_t) bytes / sizeof(*keys);
    return keys;
}

/** Register a side, wherever it is. */
static int side_register(mca_btl_umr_role_t role, const struct side *side, uint64_t size,
                         mca_btl_umr_memory_t **memory)
{
    return NULL == harness.where
               ? harness.hca->memory_register_at(harness.endpoint, role, side->buffer, side->layout,
                                                 size, memory)
               : harness.hca->memory_register_gpu(harness.endpoint, role, harness.where,
                                                  side->buffer, side->layout, size, memory);
}

mca_btl_umr_keyset_t *keyset_of(mca_btl_umr_role_t role, const struct side *side, uint64_t size,
                                mca_btl_umr_memory_t **memory)
{
    struct done done = {0, 0};
    mca_btl_umr_keyset_t *keyset;

    CHECK_RC(OPAL_SUCCESS, side_register(role, side, size, memory));
    CHECK_RC(OPAL_SUCCESS,
             harness.hca->keyset_map(role, side->buffer, side->layout, *memory, side->chunk, 0,
                                     size, SIZE_MAX, harness_done, &done, &keyset));
    CHECK(0 == keyset->start && size == keyset->end, "covers %llu to %llu of %llu",
          (unsigned long long) keyset->start, (unsigned long long) keyset->end,
          (unsigned long long) size);
    if (!keyset->ready) {
        WAIT_UNTIL(0 < done.calls);
        CHECK(OPAL_SUCCESS == done.status, "status %d", done.status);
        CHECK(keyset->ready, "done, but not ready");
    }
    return keyset;
}

/** Put a keyset into the part of the remote keys that begins at @p offset. */
static void put_part(const mca_btl_umr_keyset_t *keyset, const mca_btl_umr_key_t *remote,
                     size_t count, uint64_t offset, const uint32_t *fin)
{
    mca_btl_umr_key_t *part = malloc(count * sizeof(*part));
    uint64_t left = keyset->end - keyset->start;
    struct done done = {0, 0};
    size_t used = 0;

    for (size_t i = 0; i < count && 0 < left; ++i) {
        if (offset >= remote[i].length) {
            offset -= remote[i].length;
            continue;
        }
        part[used] = remote[i];
        part[used].addr += offset;
        part[used].length -= offset;
        part[used].length = part[used].length < left ? part[used].length : left;
        left -= part[used].length;
        offset = 0;
        ++used;
    }
    CHECK(0 == left, "the remote keys end early");
    CHECK_RC(OPAL_SUCCESS,
             harness.hca->put(harness.endpoint, keyset, part, used, fin, harness_done, &done));
    CHECK(0 == done.calls, "called before put returned");
    free(part); /* copied, by the contract */
    WAIT_UNTIL(0 < done.calls);
    CHECK(OPAL_SUCCESS == done.status, "status %d", done.status);
}

void harness_flush(mca_btl_umr_memory_t *memory)
{
    struct done done = {0, 0};
    int rc = harness.hca->memory_flush(memory, harness_done, &done);

    if (OPAL_ERR_WOULD_BLOCK == rc) {
        WAIT_UNTIL(0 < done.calls);
        rc = done.status;
    }
    CHECK(OPAL_SUCCESS == rc, "flush: %d", rc);
}

static void message_send(const struct side *side, uint64_t size, uint32_t fin,
                         mca_btl_umr_memory_t *memory)
{
    uint64_t position = 0, named = 0;

    while (position < size) {
        mca_btl_umr_key_t *remote;
        uint64_t start = position;
        size_t count;

        remote = keys_receive(&count);
        named = start;
        for (size_t i = 0; i < count; ++i) {
            named += remote[i].length;
        }
        while (position < named) {
            struct done done = {0, 0};
            mca_btl_umr_keyset_t *keyset;

            CHECK_RC(OPAL_SUCCESS,
                     harness.hca->keyset_map(MCA_BTL_UMR_LOCAL, side->buffer, side->layout, memory,
                                             side->chunk, position, named, side->max_keys,
                                             harness_done, &done, &keyset));
            if (!keyset->ready) {
                WAIT_UNTIL(0 < done.calls);
                CHECK(OPAL_SUCCESS == done.status, "status %d", done.status);
            }
            CHECK(position == keyset->start, "starts elsewhere");
            put_part(keyset, remote, count, position - start, named == keyset->end ? &fin : NULL);
            position = keyset->end;
            harness.hca->keyset_release(keyset);
        }
        free(remote);
    }
}

static void message_receive(const struct side *side, uint64_t size, uint32_t fin,
                            mca_btl_umr_memory_t *memory)
{
    uint64_t position = 0;

    while (position < size) {
        struct done done = {0, 0};
        mca_btl_umr_keyset_t *keyset;
        size_t before = harness.fin_count;

        CHECK_RC(OPAL_SUCCESS,
                 harness.hca->keyset_map(MCA_BTL_UMR_REMOTE, side->buffer, side->layout, memory,
                                         side->chunk, position, size, side->max_keys, harness_done,
                                         &done, &keyset));
        if (!keyset->ready) {
            WAIT_UNTIL(0 < done.calls);
            CHECK(OPAL_SUCCESS == done.status, "status %d", done.status);
        }
        CHECK_RC(OPAL_SUCCESS, harness.hca->fin_reserve(harness.endpoint));
        keys_send(keyset);
        WAIT_UNTIL(before < harness.fin_count);
        CHECK(fin == harness.fins[before], "FIN %u, not %u", harness.fins[before], fin);
        position = keyset->end;
        harness.hca->keyset_release(keyset);
    }
}

uint64_t harness_notifications(uint64_t last)
{
    const char *text = getenv("UMRDDT_TEST_NOTIFY");
    uint64_t limit = NULL == text ? 1u << 20 : (uint64_t) atoll(text);

    return 0 < limit && limit <= last ? 1 : 0;
}

void message(bool send, const struct side *side, uint64_t size, uint32_t fin)
{
    mca_btl_umr_role_t role = send ? MCA_BTL_UMR_LOCAL : MCA_BTL_UMR_REMOTE;
    mca_btl_umr_memory_t *memory;

    CHECK_RC(OPAL_SUCCESS, side_register(role, side, size, &memory));
    if (send) {
        message_send(side, size, fin, memory);
    } else {
        message_receive(side, size, fin, memory);
        harness_flush(memory);
    }
    harness.hca->memory_release(memory);
    harness.fin_count = harness.fin_count > 2048 ? 0 : harness.fin_count;
}
