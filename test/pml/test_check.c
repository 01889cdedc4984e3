/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The invariants of pml/umrddt: a right state passes, and each inconsistency that is planted in it
 * is reported by its name. The last one ends a process.
 */

#include "ompi_config.h"

#include <string.h>
#include <unistd.h>

#include "opal/runtime/opal.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_sets.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_scheme.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_ipc.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_pack_chunks.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_rdma.h"

#include "../common/look.h"
#include "../common/reported.h"

static const char *peer_wrong, *process_wrong;
static uint64_t peer_bytes;

const char *mca_pml_umrddt_sets_check(const mca_pml_umrddt_peer_t *peer)
{
    (void) peer;
    return peer_wrong;
}

static const char *group_wrong;

static const char *peer_check(const mca_pml_umrddt_peer_t *peer, uint64_t *bytes)
{
    (void) peer;
    *bytes += peer_bytes;
    return group_wrong;
}

static const char *process_check(void)
{
    return process_wrong;
}

/* Groups of schemes: two that cache layouts of peers, and one that does not. */
static const mca_pml_umrddt_scheme_t receivers = {.peer_check = peer_check,
                                                  .cached =
                                                      &mca_pml_umrddt.counters.direct_bytes_now},
                                     senders = {.peer_check = peer_check,
                                                .cached =
                                                    &mca_pml_umrddt.counters.ipc_layout_bytes_now},
                                     neither = {.process_check = process_check};

const mca_pml_umrddt_scheme_t *const mca_pml_umrddt_groups[MCA_PML_UMRDDT_GROUPS] = {
    &receivers, &neither, &senders};

/* ---- a state ---- */

static mca_pml_umrddt_peer_t peer;
static mca_pml_umrddt_comm_t comm;
static mca_pml_umrddt_wait_t waits[3];
static mca_pml_umrddt_recv_t recvs[5];
static mca_pml_umrddt_pack_t pack;
/* the data of the schemes */
#define RDMA(i) MCA_PML_UMRDDT_HELD(mca_pml_umrddt_rdma_recv_t, &recvs[i])
#define IPC(i)  MCA_PML_UMRDDT_HELD(mca_pml_umrddt_ipc_recv_t, &recvs[i])
#define PACK(i) MCA_PML_UMRDDT_HELD(mca_pml_umrddt_pack_held_t, &recvs[i])

static mca_pml_umrddt_event_t events[2];
static int thing; /* that pointers point to */

static bool retry(void *owner)
{
    (void) owner;
    return false;
}

static void handler(void *owner)
{
    (void) owner;
}

static void add_wait(opal_list_t *list, mca_pml_umrddt_wait_t *wait)
{
    OBJ_CONSTRUCT(wait, mca_pml_umrddt_wait_t);
    wait->list = list;
    wait->retry = retry;
    opal_list_append(list, &wait->super);
    ++mca_pml_umrddt.waits;
}

static mca_pml_umrddt_recv_t *add_recv(int i, mca_pml_umrddt_recv_state_t state)
{
    mca_pml_umrddt_recv_t *recv = &recvs[i];

    memset(recv, 0, sizeof(*recv));
    OBJ_CONSTRUCT(&recv->active, opal_list_item_t);
    recv->state = state;
    recv->comm = &comm;
    recv->peer = &peer;
    recv->total = 1000;
    opal_list_append(&mca_pml_umrddt.receives, &recv->active);
    ++mca_pml_umrddt.active;
    return recv;
}

static void make_pack(mca_pml_umrddt_recv_t *recv)
{
    memset(&pack, 0, sizeof(pack));
    pack.job.in = true;
    pack.job.total = pack.next = 1000;
    pack.job.chunk = 500;
    pack.chunks = pack.begun = pack.depth = 2;
    pack.in_flight = 1;
    pack.chunk[1] = (mca_pml_umrddt_chunk_t){
        .phase = MCA_PML_UMRDDT_PHASE_WIRE, .pack = &pack, .start = 500, .end = 1000};
    pack.hca.endpoint = (void *) &thing;
    pack.hca.granted = 2;
    pack.hca.done = 1;
    pack.hca.reported = true;
    MCA_PML_UMRDDT_HELD(mca_pml_umrddt_pack_held_t, recv)->pack = &pack;
}

static void make(void)
{
    memset(&mca_pml_umrddt, 0, sizeof(mca_pml_umrddt));
    memset(&peer, 0, sizeof(peer));
    OBJ_CONSTRUCT(&mca_pml_umrddt.lock, opal_mutex_t);
    OBJ_CONSTRUCT(&mca_pml_umrddt.peers, opal_hash_table_t);
    opal_hash_table_init(&mca_pml_umrddt.peers, 8);
    OBJ_CONSTRUCT(&mca_pml_umrddt.receives, opal_list_t);
    OBJ_CONSTRUCT(&mca_pml_umrddt.polled, opal_list_t);
    OBJ_CONSTRUCT(&mca_pml_umrddt.credit, opal_list_t);
    for (int role = 0; role < MCA_BTL_UMR_ROLE_MAX; ++role) {
        OBJ_CONSTRUCT(&mca_pml_umrddt.waiting[role], opal_list_t);
    }
    OBJ_CONSTRUCT(&peer.credit, opal_list_t);
    OBJ_CONSTRUCT(&peer.in_credit, opal_list_item_t);
    peer.waits_for_credit = true;
    opal_list_append(&mca_pml_umrddt.credit, &peer.in_credit);
    CHECK(OPAL_SUCCESS
          == opal_hash_table_set_value_ptr(&mca_pml_umrddt.peers, &thing, sizeof(thing), &peer));
    mca_pml_umrddt.counters.peers_now = 1;
    peer_bytes = 70;
    mca_pml_umrddt.counters.direct_bytes_now = mca_pml_umrddt.counters.ipc_layout_bytes_now = 70;
    mca_pml_umrddt.params.layout_cache_size = 100;
    mca_pml_umrddt.params.check = 1;

    add_wait(&mca_pml_umrddt.polled, &waits[0]);
    add_wait(&mca_pml_umrddt.waiting[MCA_BTL_UMR_REMOTE], &waits[1]);
    add_wait(&peer.credit, &waits[2]);

    events[0] = (mca_pml_umrddt_event_t){.next = &events[1], .handler = handler, .queued = true};
    events[1] = (mca_pml_umrddt_event_t){.handler = handler, .queued = true};
    mca_pml_umrddt.events = &events[0];
    mca_pml_umrddt.last_event = &events[1];

    CHECK(umrddt_ids_grow(&mca_pml_umrddt.request_ids, 1024)
          && umrddt_ids_grow(&mca_pml_umrddt.request_ids, 1024));
    mca_pml_umrddt.request_ids.free[0] = 0;
    mca_pml_umrddt.request_ids.first = 1;

    add_recv(0, MCA_PML_UMRDDT_RECV_FIN);
    recvs[0].ops = &mca_pml_umrddt_scheme_umr;
    recvs[0].endpoint = (void *) &thing;
    RDMA(0)->keyset = (void *) &thing;
    recvs[0].fin = umrddt_number_new(&mca_pml_umrddt.fins, &recvs[0]);
    add_recv(1, MCA_PML_UMRDDT_RECV_CREDIT);
    recvs[1].endpoint = (void *) &thing;
    recvs[1].ops = &mca_pml_umrddt_scheme_direct;
    RDMA(1)->memory = (void *) &thing;
    add_recv(2, MCA_PML_UMRDDT_RECV_CHUNKS);
    recvs[2].ops = &mca_pml_umrddt_scheme_pack_host;
    make_pack(&recvs[2]);
    add_recv(3, MCA_PML_UMRDDT_RECV_BASE);
    recvs[3].ops = &mca_pml_umrddt_scheme_base;
    add_recv(4, MCA_PML_UMRDDT_RECV_COPY);
    recvs[4].ops = &mca_pml_umrddt_scheme_ipc;
    IPC(4)->copy = (void *) &thing;
    IPC(4)->import = (void *) &thing;
}

static void unmake(void)
{
    umrddt_numbers_free(&mca_pml_umrddt.fins);
    umrddt_ids_free(&mca_pml_umrddt.request_ids);
    OBJ_DESTRUCT(&mca_pml_umrddt.peers);
    OBJ_DESTRUCT(&mca_pml_umrddt.lock);
}

/* That it is right; then, with this done to it, what is wrong with it begins with these words. */
#define BREAKS(WORDS, ...)                                        \
    do {                                                          \
        make();                                                   \
        BROKEN(mca_pml_umrddt_state_check(), WORDS, __VA_ARGS__); \
        peer_wrong = process_wrong = group_wrong = NULL;          \
        unmake();                                                 \
    } while (0)

static void lists(void)
{
    BREAKS("waits: all that wait are counted", ++mca_pml_umrddt.waits);
    BREAKS("waits: each knows where", waits[1].list = &mca_pml_umrddt.polled);
    BREAKS("waits: each knows where", waits[2].list = NULL);
    BREAKS("waits: a peer among", peer.waits_for_credit = false);
    BREAKS("events: each knows", events[1].queued = false);
    BREAKS("events: the queue ends", mca_pml_umrddt.last_event = &events[0]);
    BREAKS("request ids: all free", mca_pml_umrddt.request_ids.free[0] = 4);
    BREAKS("request ids: where free ones", mca_pml_umrddt.request_ids.first = 3);
}

static void receives(void)
{
    BREAKS("FINs: each number is", recvs[0].fin += 1);
    BREAKS("FINs: numbers that are taken", ++mca_pml_umrddt.fins.used);
    BREAKS("receives: one that waits for a FIN",
           (void) umrddt_number_give(&mca_pml_umrddt.fins, recvs[0].fin));
    BREAKS("receives: what is named", RDMA(0)->keyset = NULL);
    BREAKS("receives: what is named", RDMA(1)->memory = NULL);
    BREAKS("receives: one that keys are named for", recvs[1].endpoint = NULL);
    BREAKS("receives: a round has bytes", recvs[0].position = 1000);
    BREAKS("receives: no FIN can come", recvs[1].fin = 17);
    BREAKS("receives: those under way", recvs[3].state = MCA_PML_UMRDDT_RECV_DONE);
    BREAKS("receives: no scheme holds", RDMA(3)->keyset = (void *) &thing);
    BREAKS("receives: memory that is copied", IPC(4)->import = NULL);
    BREAKS("receives: one that has asked", recvs[4].state = MCA_PML_UMRDDT_RECV_INFO_REQ;
           IPC(4)->requested = NULL);
    BREAKS("receives: one whose keys are mapped", RDMA(0)->keyset = NULL;
           recvs[0].state = MCA_PML_UMRDDT_RECV_MAPPING);
    BREAKS("receives: one that comes in chunks", PACK(2)->pack = NULL);
    BREAKS("receives: each has a communicator", recvs[2].comm = NULL);
    BREAKS("messages: those under way are counted", mca_pml_umrddt.active = 0);
    BREAKS("messages: no more end", mca_pml_umrddt.active = -1);
}

static void chunks(void)
{
    BREAKS("chunks: those under way", pack.in_flight = 2);
    BREAKS("chunks: those that a GPU copies", pack.copying = 1);
    BREAKS("chunks: no more are begun", pack.begun = 3);
    BREAKS("chunks: each is a part", pack.chunk[1].end = 1001);
    BREAKS("chunks: no more are written", pack.hca.done = 3);
    BREAKS("chunks: none is granted", pack.hca.granted = 3);
    BREAKS("chunks: there is a place", pack.depth = 0);
}

static void peers(void)
{
    BREAKS("sets: x", peer_wrong = "sets: x");
    BREAKS("layouts of peers: their bytes", peer_bytes = 71,
           mca_pml_umrddt.counters.ipc_layout_bytes_now = 71);
    BREAKS("layouts of peers: their bytes", ++mca_pml_umrddt.counters.ipc_layout_bytes_now);
    BREAKS("groups: x", group_wrong = "groups: x");
    BREAKS("peers: all of them", ++mca_pml_umrddt.counters.peers_now);
    BREAKS("imports: x", process_wrong = "imports: x");
}

/* A look in each pass of progress, and a process that ends with the name. */
static void looks(void)
{
    make();
    mca_pml_umrddt_check_start();
    (void) look(); /* all is well */
    (void) !write(2, "still here\n", 11);
    ++mca_pml_umrddt.waits;
    mca_pml_umrddt.busy = 1;
    (void) look(); /* another thread is at it */
    mca_pml_umrddt.busy = 0;
    (void) !write(2, "and here\n", 9);
    (void) look();
}

static void ends(void)
{
    char said[4096];

    reported_by_abort(looks, said, sizeof(said));
    CHECK(NULL != strstr(said, "still here") && NULL != strstr(said, "and here"));
    CHECK(NULL
          != strstr(said, "umrddt: an invariant does not hold: waits: all that wait are counted"));
}

int main(int argc, char **argv)
{
    CHECK(OPAL_SUCCESS == opal_init_util(&argc, &argv));
    lists();
    receives();
    chunks();
    peers();
    ends();
    printf("%lu checks\n", checks);
    return 0;
}
