/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Queries (INFO_REQ) of receivers to senders on the same node: a message that needs the same
 * allocation or layout of the same peer does not query again, until the first query has its answer
 * or is given up. The steps of this lookup are counted: they do not grow with the number of pending
 * messages.
 */

#include "ompi_config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "opal/class/opal_hash_table.h"

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_direct.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_ipc.h"

#include "../common/check.h"
#include "never.h"

mca_pml_umrddt_t mca_pml_umrddt;

enum {
    MOST = 4096,
    EXPORT = MCA_PML_UMRDDT_INFO_EXPORT,
    LAYOUT = MCA_PML_UMRDDT_INFO_LAYOUT
};

/* ---------------------------------------------------------------------------------------------
 * What the file under test calls
 * ------------------------------------------------------------------------------------------- */

static unsigned long lookups;
static bool refuse_table;
static int fallbacks;

int __real_opal_hash_table_get_value_ptr(opal_hash_table_t *table, const void *key, size_t size,
                                         void **value);
int __wrap_opal_hash_table_get_value_ptr(opal_hash_table_t *table, const void *key, size_t size,
                                         void **value);
int __real_opal_hash_table_set_value_ptr(opal_hash_table_t *table, const void *key, size_t size,
                                         void *value);
int __wrap_opal_hash_table_set_value_ptr(opal_hash_table_t *table, const void *key, size_t size,
                                         void *value);

int __wrap_opal_hash_table_get_value_ptr(opal_hash_table_t *table, const void *key, size_t size,
                                         void **value)
{
    ++lookups;
    return __real_opal_hash_table_get_value_ptr(table, key, size, value);
}

int __wrap_opal_hash_table_set_value_ptr(opal_hash_table_t *table, const void *key, size_t size,
                                         void *value)
{
    return refuse_table ? OPAL_ERR_OUT_OF_RESOURCE
                        : __real_opal_hash_table_set_value_ptr(table, key, size, value);
}

static int cancel(ompi_request_t *request, int flag)
{
    (void) request, (void) flag;
    return OMPI_SUCCESS;
}

static int request_free(ompi_request_t **request)
{
    *request = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

/* The answer never comes; where the receive is cancelled, it is complete. */
static ompi_request_t answer = {
    .req_complete = REQUEST_COMPLETED, .req_free = request_free, .req_cancel = cancel};

static int base_irecv(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                      ompi_communicator_t *comm, ompi_request_t **request)
{
    (void) buf, (void) count, (void) datatype, (void) src, (void) tag, (void) comm;
    *request = &answer;
    return OMPI_SUCCESS;
}

void mca_pml_umrddt_active(int change)
{
    (void) change;
}

int mca_pml_umrddt_reply_send(mca_pml_umrddt_comm_t *comm, int peer,
                              const mca_pml_umrddt_reply_t *reply)
{
    (void) comm, (void) peer, (void) reply;
    return OMPI_SUCCESS;
}

void mca_pml_umrddt_reply_init(const mca_pml_umrddt_rts_t *rts,
                               mca_pml_umrddt_reply_kind_t reply_kind,
                               mca_pml_umrddt_reply_t *reply)
{
    (void) rts, (void) reply_kind;
    memset(reply, 0, sizeof(*reply));
}

#define REQUESTED(recv) MCA_PML_UMRDDT_HELD(mca_pml_umrddt_ipc_recv_t, recv)->requested

void mca_pml_umrddt_recv_by_base(mca_pml_umrddt_recv_t *recv, uint64_t *reason)
{
    (void) reason;
    ++fallbacks;
    mca_pml_umrddt_ipc_info_req_drop(REQUESTED(recv));
    REQUESTED(recv) = NULL;
}

OBJ_CLASS_INSTANCE(mca_pml_umrddt_wait_t, opal_list_item_t, NULL, NULL);

void mca_pml_umrddt_wait(opal_list_t *list, mca_pml_umrddt_wait_t *wait, bool (*retry)(void *),
                         void *owner)
{
    (void) list, (void) wait, (void) retry, (void) owner;
}

void mca_pml_umrddt_recv_announce(mca_pml_umrddt_recv_t *recv)
{
    (void) recv;
}

/* Not called here: no answer comes. */
/* clang-format off */
NEVER(int, mca_pml_umrddt_direct_part, const mca_pml_umrddt_layout_frag_t *flat, size_t length, size_t most,
      mca_pml_umrddt_parts_t **parts)
NEVER(int, mca_pml_umrddt_info_read, const mca_pml_umrddt_info_t *info, size_t length,
      const mca_pml_umrddt_rts_t *rts, uint32_t requested, const mca_pml_umrddt_parts_t *parts,
      opal_iov_cache_layout_t **from)
NEVER(void, mca_pml_umrddt_ipc_keep, mca_pml_umrddt_peer_t *peer, uint64_t id,
      opal_iov_cache_layout_t *layout)
NEVER(void, mca_pml_umrddt_ipc_map_done_flags, mca_pml_umrddt_peer_t *peer, uint32_t pid, uint32_t fd)
NEVER(void, mca_pml_umrddt_ipc_mapped, mca_pml_umrddt_peer_t *peer, uint64_t buffer_id,
      opal_umrddt_gpu_engine_t *engine)
NEVER(void, mca_pml_umrddt_ipc_refused, mca_pml_umrddt_peer_t *peer, uint64_t buffer_id,
      const opal_umrddt_gpu_engine_t *engine)
NEVER(void, mca_pml_umrddt_ipc_refuse, mca_pml_umrddt_recv_t *recv)
NEVER(bool, mca_pml_umrddt_ipc_engine_for, const uint8_t *uuid, opal_umrddt_gpu_engine_t **engine)
NEVER(void, mca_pml_umrddt_ipc_go_on, mca_pml_umrddt_recv_t *recv)
NEVER(int, opal_umrddt_gpu_import, opal_umrddt_gpu_engine_t *engine, uint64_t peer,
      const opal_umrddt_gpu_export_t *from, opal_umrddt_gpu_import_t **import)
/* clang-format on */

/* ---------------------------------------------------------------------------------------------
 * Tests
 * ------------------------------------------------------------------------------------------- */

static mca_pml_umrddt_comm_t comm;
static mca_pml_umrddt_peer_t peers[2];
static mca_pml_umrddt_recv_t *receives; /* MOST of them, in pages of their own */

static mca_pml_umrddt_recv_t receive(int peer, uint64_t buffer_id, uint64_t layout)
{
    return (mca_pml_umrddt_recv_t){
        .comm = &comm, .peer = &peers[peer], .rts = {.buffer_id = buffer_id, .layout = layout}};
}

static bool is_requested(int peer, uint64_t buffer_id, uint64_t layout, uint32_t what)
{
    mca_pml_umrddt_recv_t recv = receive(peer, buffer_id, layout);

    return mca_pml_umrddt_ipc_has_info_req(&recv, what);
}

/* One message queries; then it gives up. */
static void one(uint32_t what)
{
    mca_pml_umrddt_recv_t recv = receive(0, 7, 8);

    OBJ_CONSTRUCT(&recv.active, opal_list_item_t);
    opal_list_append(&mca_pml_umrddt.receives, &recv.active);
    mca_pml_umrddt_ipc_info_req(&recv, what);
    CHECK(NULL != REQUESTED(&recv) && MCA_PML_UMRDDT_RECV_INFO_REQ == recv.state);
    for (uint32_t needs = 0; needs <= MCA_PML_UMRDDT_INFO_ALL; ++needs) {
        CHECK((0 != (what & needs)) == is_requested(0, 7, 8, needs));
        CHECK((0 != (what & needs & EXPORT)) == is_requested(0, 7, 9, needs));
        CHECK((0 != (what & needs & LAYOUT)) == is_requested(0, 9, 8, needs));
        CHECK(!is_requested(0, 8, 7, needs)); /* not the other kind's number */
        CHECK(!is_requested(1, 7, 8, needs));
    }
    mca_pml_umrddt_ipc_info_req_drop(REQUESTED(&recv));
    (void) opal_list_remove_first(&mca_pml_umrddt.receives);
    CHECK(!is_requested(0, 7, 8, MCA_PML_UMRDDT_INFO_ALL));
}

/* Without memory for the set a message uses another scheme, and no trace of it is left. */
static void no_memory(void)
{
    mca_pml_umrddt_recv_t recv = receive(0, 7, 8);

    refuse_table = true;
    mca_pml_umrddt_ipc_info_req(&recv, MCA_PML_UMRDDT_INFO_ALL);
    refuse_table = false;
    CHECK(1 == fallbacks && NULL == REQUESTED(&recv));
    CHECK(!is_requested(0, 7, 8, MCA_PML_UMRDDT_INFO_ALL));
}

/* Many messages wait for answers. A look at one must not touch the others: their memory cannot be
 * read meanwhile. */
static void many(int count)
{
    size_t bytes = MOST * sizeof(*receives);

    for (int i = 0; i < count; ++i) {
        receives[i] = receive(i % 2, 100 + (uint64_t) i, 100000 + (uint64_t) i);
        OBJ_CONSTRUCT(&receives[i].active, opal_list_item_t);
        mca_pml_umrddt_ipc_info_req(&receives[i], MCA_PML_UMRDDT_INFO_ALL);
        opal_list_append(&mca_pml_umrddt.receives, &receives[i].active);
    }
    CHECK(0 == mprotect(receives, bytes, PROT_NONE));
    lookups = 0;
    for (int i = 0; i < count; ++i) {
        CHECK(is_requested(i % 2, 100 + (uint64_t) i, 1, EXPORT));
        CHECK(is_requested(i % 2, 1, 100000 + (uint64_t) i, LAYOUT));
        CHECK(!is_requested((i + 1) % 2, 100 + (uint64_t) i, 1, EXPORT));
    }
    CHECK(3 * (unsigned long) count == lookups);
    CHECK(0 == mprotect(receives, bytes, PROT_READ | PROT_WRITE));
    while (!opal_list_is_empty(&mca_pml_umrddt.receives)) {
        (void) opal_list_remove_first(&mca_pml_umrddt.receives);
    }
    for (int i = 0; i < count; ++i) {
        mca_pml_umrddt_ipc_info_req_drop(REQUESTED(&receives[i]));
        CHECK(!is_requested(i % 2, 100 + (uint64_t) i, 100000 + (uint64_t) i,
                            MCA_PML_UMRDDT_INFO_ALL));
    }
}

int main(void)
{
    receives = mmap(NULL, MOST * sizeof(*receives), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(MAP_FAILED != (void *) receives);
    mca_pml_umrddt.host.pml_irecv = base_irecv;
    OBJ_CONSTRUCT(&mca_pml_umrddt.receives, opal_list_t);
    OBJ_CONSTRUCT(&mca_pml_umrddt.polled, opal_list_t);

    CHECK(!is_requested(0, 7, 8, MCA_PML_UMRDDT_INFO_ALL)); /* before any query */
    for (uint32_t what = 1; what <= MCA_PML_UMRDDT_INFO_ALL; ++what) {
        one(what);
    }
    many(1);
    many(MOST / 2);
    many(MOST);
    no_memory();
    mca_pml_umrddt_ipc_info_req_close();
    many(2);
    mca_pml_umrddt_ipc_info_req_close();
    printf("%lu checks\n", checks);
    return 0;
}
