/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * A receiver in GPU memory whose sender fails between two rounds of the scheme umr: the sender
 * reports an error of a write whose FIN has arrived. The keys of the next round are mapped then.
 * The message is flushed once, and falls back once, whenever these keys are ready.
 */

#include "ompi_config.h"

#include "../common/check.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_hca.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_progress.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_scheme.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_rdma.h"

static int flushes, fallbacks, credits;
static mca_btl_umr_done_fn_t mapped, flushed;
static mca_btl_umr_keyset_t keysets[2];

void mca_pml_umrddt_recv_by_base(mca_pml_umrddt_recv_t *recv, uint64_t *reason)
{
    CHECK(&mca_pml_umrddt.counters.fallback_sender == reason);
    mca_pml_umrddt_wait_cancel(&recv->wait);
    ++fallbacks;
}

static int keyset_map(mca_btl_umr_role_t role, void *buffer, const opal_iov_cache_layout_t *layout,
                      mca_btl_umr_memory_t *memory, uint64_t chunk, uint64_t start, uint64_t end,
                      size_t max_keys, mca_btl_umr_done_fn_t done, void *context,
                      mca_btl_umr_keyset_t **keyset)
{
    (void) role, (void) buffer, (void) layout, (void) memory, (void) chunk, (void) max_keys;
    (void) context;
    CHECK(64 == start && 128 == end);
    mapped = done;
    *keyset = &keysets[1];
    return OPAL_SUCCESS;
}

static void keyset_release(mca_btl_umr_keyset_t *keyset)
{
    CHECK(&keysets[0] == keyset);
}

static int fin_reserve(mca_btl_umr_endpoint_t *endpoint)
{
    (void) endpoint;
    ++credits;
    return OPAL_ERR_OUT_OF_RESOURCE;
}

static int memory_flush(mca_btl_umr_memory_t *memory, mca_btl_umr_done_fn_t done, void *context)
{
    (void) memory, (void) context;
    flushed = done;
    ++flushes;
    return OPAL_ERR_WOULD_BLOCK;
}

static const mca_btl_umr_hca_ops_t hca = {.keyset_map = keyset_map,
                                          .keyset_release = keyset_release,
                                          .fin_reserve = fin_reserve,
                                          .memory_flush = memory_flush};

/** The keys are ready with @p status during the flush. */
static void fails_between(int status)
{
    static const mca_pml_umrddt_nack_header_t nack = {.in_flight = 1};
    static opal_iov_cache_layout_t layout;
    static mca_pml_umrddt_peer_t peer;
    static mca_pml_umrddt_recv_t recv;
    mca_pml_umrddt_rdma_recv_t *rdma = MCA_PML_UMRDDT_HELD(mca_pml_umrddt_rdma_recv_t, &recv);

    flushes = fallbacks = credits = 0;
    OBJ_CONSTRUCT(&recv.wait, mca_pml_umrddt_wait_t);
    OBJ_CONSTRUCT(&peer.credit, opal_list_t);
    OBJ_CONSTRUCT(&peer.in_credit, opal_list_item_t);
    peer.waits_for_credit = false;
    recv.peer = &peer;
    recv.layout = &layout;
    recv.where.memory.kind = OPAL_UMRDDT_GPU_DEVICE;
    recv.position = 0;
    recv.total = 128;
    recv.state = MCA_PML_UMRDDT_RECV_FIN;
    recv.fin = umrddt_number_new(&mca_pml_umrddt.fins, &recv);
    rdma->memory = (mca_btl_umr_memory_t *) &recv; /* nothing reads it */
    rdma->keyset = &keysets[0];

    mca_pml_umrddt_scheme_umr.fin(&recv);
    CHECK(MCA_PML_UMRDDT_RECV_MAPPING == recv.state && 0 == flushes);
    CHECK(MCA_PML_UMRDDT_NACK_KEEPS == mca_pml_umrddt_scheme_umr.nack(&recv, &nack));
    CHECK(1 == flushes && 0 == fallbacks);
    mapped(&recv, status);
    CHECK(1 == flushes && 0 == fallbacks && 0 == credits);
    flushed(&recv, OPAL_SUCCESS);
    CHECK(1 == flushes && 1 == fallbacks && 0 == mca_pml_umrddt.waits);
    OBJ_DESTRUCT(&recv.wait);
}

int main(void)
{
    mca_pml_umrddt.hca = &hca;
    keysets[0].end = 64;
    keysets[1].start = 64;
    keysets[1].end = 128;
    OBJ_CONSTRUCT(&mca_pml_umrddt.waiting[MCA_BTL_UMR_REMOTE], opal_list_t);
    OBJ_CONSTRUCT(&mca_pml_umrddt.credit, opal_list_t);
    fails_between(OPAL_SUCCESS);
    fails_between(OPAL_ERROR);
    umrddt_numbers_free(&mca_pml_umrddt.fins);
    printf("%lu checks\n", checks);
    return 0;
}
