/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Probes and receives that fail for want of memory: the call returns, whatever other
 * threads do inside the gate; the message is not lost; and messages of one source keep their order.
 * The base PML is a list of envelopes in this file.
 */

#include "ompi_config.h"

#include <mpi.h>
#include <string.h>
#include <unistd.h>

#include "opal/runtime/opal_progress.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_control.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_recv_request.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_requests.h"
#include "ompi/mca/pml/umrddt/match/pml_umrddt_match.h"
#include "ompi/mca/pml/umrddt/match/pml_umrddt_receives.h"

#include "../common/check.h"

enum {
    SOURCE = 3,
    MOST = 8,
    SECONDS = 20 /* a call that waits for itself never ends */
};

/* ---------------------------------------------------------------------------------------------
 * What the file under test calls
 * ------------------------------------------------------------------------------------------- */

static struct {
    ompi_message_t handle;
    int tag;
    size_t length;
    bool matched;
} arrived[MOST];
static int arrivals;
static mca_pml_umrddt_peer_t sender = {.capable = true};
static bool no_receives;
static int refusals;         /* of receives of matched messages */
static bool until_progress;  /* only progress ends them */
static bool progress_probes; /* progress calls a function of the application that probes */

static void arrive(int tag)
{
    CHECK(arrivals < MOST);
    OBJ_CONSTRUCT(&arrived[arrivals].handle, ompi_message_t);
    arrived[arrivals].matched = false;
    arrived[arrivals].length = MCA_PML_UMRDDT_ENVELOPE;
    arrived[arrivals++].tag = tag;
}

static void arrive_plain(int tag, size_t length)
{
    arrive(tag);
    arrived[arrivals - 1].length = length;
}

/* The oldest message with this tag, or -1. */
static int oldest(int tag, ompi_status_public_t *status)
{
    for (int i = 0; i < arrivals; ++i) {
        if (!arrived[i].matched && (OMPI_ANY_TAG == tag || arrived[i].tag == tag)) {
            status->MPI_SOURCE = SOURCE;
            status->MPI_TAG = arrived[i].tag;
            status->_ucount = arrived[i].length;
            return i;
        }
    }
    return -1;
}

static int base_iprobe(int src, int tag, ompi_communicator_t *comm, int *matched,
                       ompi_status_public_t *status)
{
    (void) src, (void) comm;
    *matched = 0 <= oldest(tag, status);
    return OMPI_SUCCESS;
}

static int base_improbe(int src, int tag, ompi_communicator_t *comm, int *matched,
                        ompi_message_t **message, ompi_status_public_t *status)
{
    int i = oldest(tag, status);

    (void) src, (void) comm;
    *matched = 0 <= i;
    if (*matched) {
        arrived[i].matched = true;
        *message = &arrived[i].handle;
    }
    return OMPI_SUCCESS;
}

static int request_free(ompi_request_t **request)
{
    *request = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

static int base_imrecv(void *buf, size_t count, ompi_datatype_t *datatype, ompi_message_t **message,
                       ompi_request_t **request)
{
    static ompi_request_t done = {.req_complete = REQUEST_COMPLETED, .req_free = request_free};
    mca_pml_umrddt_rts_t rts = {.magic = MCA_PML_UMRDDT_MAGIC(MCA_PML_UMRDDT_KIND_RTS),
                                .length = 4711};

    (void) datatype;
    CHECK((void *) &arrived[0] <= (void *) *message && (void *) *message < (void *) &arrived[MOST]);
    if (0 < refusals) {
        if (!until_progress) {
            --refusals;
        }
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    if (sizeof(rts) == count) {
        memcpy(buf, &rts, sizeof(rts));
    }
    done.req_status._ucount = count;
    *message = MPI_MESSAGE_NULL;
    *request = &done;
    return OMPI_SUCCESS;
}

mca_pml_umrddt_recv_t *mca_pml_umrddt_recv_alloc(void *buf, size_t count, ompi_datatype_t *datatype,
                                                 int src, int tag, mca_pml_umrddt_comm_t *comm)
{
    static mca_pml_umrddt_recv_t recv;

    (void) buf, (void) count, (void) datatype, (void) src, (void) tag, (void) comm;
    return no_receives ? NULL : &recv;
}

bool mca_pml_umrddt_given_up(int rc, time_t *since)
{
    CHECK(OMPI_ERR_OUT_OF_RESOURCE == rc && 0 == *since);
    return false;
}

static int match(int tag, ompi_message_t **message, int *found);

/* Progress function: messages release what the base PML lacks. */
static int release(void)
{
    ompi_message_t *message;
    int found;

    if (progress_probes) { /* no later message may overtake the one that is being claimed */
        CHECK(OMPI_SUCCESS == match(OMPI_ANY_TAG, &message, &found) && -1 == found);
    }
    refusals -= 0 < refusals ? 1 : 0;
    return 0;
}

static int received; /* the tag */

void mca_pml_umrddt_recv_matched(mca_pml_umrddt_recv_t *recv)
{
    received = recv->status.MPI_TAG;
}

void mca_pml_umrddt_recv_await_base(mca_pml_umrddt_recv_t *recv)
{
    received = recv->status.MPI_TAG;
}

/* ---------------------------------------------------------------------------------------------
 * Tests
 * ------------------------------------------------------------------------------------------- */

static mca_pml_umrddt_comm_t comm;
static mca_pml_umrddt_peer_t *peers[] = {NULL, NULL, NULL, &sender};
static int match(int tag, ompi_message_t **message, int *found)
{
    ompi_status_public_t status;
    int matched = 0;
    int rc = mca_pml_umrddt_improbe(SOURCE, tag, (ompi_communicator_t *) MPI_COMM_WORLD, &matched,
                                    message, &status);

    *found = OMPI_SUCCESS == rc && matched ? status.MPI_TAG : -1;
    return rc;
}

/* Match and receive the next message; its tag is returned. */
static int next_tag(void)
{
    ompi_message_t *message;
    ompi_request_t *request;
    int found;
    char buf[1];

    CHECK(OMPI_SUCCESS == match(OMPI_ANY_TAG, &message, &found));
    if (0 > found) {
        return -1;
    }
    received = -1;
    CHECK(OMPI_SUCCESS == mca_pml_umrddt_imrecv(buf, 0, &ompi_mpi_byte.dt, &message, &request));
    CHECK(received == found);
    return found;
}

/* A receive of a matched message fails while a thread is inside the gate that does not leave before
 * the call returns. */
static void fails_beside_a_poster(void)
{
    ompi_message_t *message;
    ompi_request_t *request;
    MPI_Fint handle;
    int found;
    char buf[1];

    arrivals = 0;
    arrive(1);
    arrive(2);
    CHECK(umrddt_gate_enter(&comm.gate)); /* as another thread does */
    CHECK(OMPI_SUCCESS == match(OMPI_ANY_TAG, &message, &found) && 1 == found);
    handle = MPI_Message_c2f(message);
    CHECK(message == MPI_Message_f2c(handle));
    no_receives = true;
    CHECK(OMPI_ERR_OUT_OF_RESOURCE
          == mca_pml_umrddt_imrecv(buf, 0, &ompi_mpi_byte.dt, &message, &request));
    no_receives = false;
    CHECK(MPI_MESSAGE_NULL == message && NULL == MPI_Message_f2c(handle));
    CHECK(!umrddt_gate_enter(&comm.gate)); /* from now on the claim is looked at first */
    umrddt_gate_leave(&comm.gate);
    CHECK(1 == next_tag() && 2 == next_tag() && -1 == next_tag());
    CHECK(0 == comm.gate.word && opal_list_is_empty(&comm.gate.claims));
}

/* Of three messages that a probe has claimed the second cannot be received. */
static void keeps_the_order(void)
{
    ompi_status_public_t status;
    ompi_message_t *message;
    ompi_request_t *request;
    char buf[1];
    int matched, found;

    arrivals = 0;
    arrive(5);
    arrive(6);
    arrive(7);
    CHECK(OMPI_SUCCESS
              == mca_pml_umrddt_iprobe(SOURCE, 7, (ompi_communicator_t *) MPI_COMM_WORLD, &matched,
                                       &status)
          && matched && 7 == status.MPI_TAG && 3 == opal_list_get_size(&comm.gate.claims));
    CHECK(OMPI_SUCCESS == match(6, &message, &found) && 6 == found);
    no_receives = true;
    CHECK(OMPI_ERR_OUT_OF_RESOURCE
          == mca_pml_umrddt_imrecv(buf, 0, &ompi_mpi_byte.dt, &message, &request));
    no_receives = false;
    CHECK(5 == next_tag() && 6 == next_tag() && 7 == next_tag() && -1 == next_tag());
    CHECK(0 == comm.gate.word && opal_list_is_empty(&comm.gate.claims));
}

/* Probes find envelopes that the base PML refuses to deliver until progress has released
 * resources: much later. */
static void reads_again(void)
{
    ompi_status_public_t status;
    ompi_message_t *message;
    ompi_request_t *request;
    int matched, found;
    char buf[1];

    arrivals = 0;
    arrive(8);
    arrive(9);
    until_progress = true;
    opal_progress_register(release);
    refusals = 1000;
    progress_probes = true;
    CHECK(OMPI_SUCCESS
              == mca_pml_umrddt_iprobe(SOURCE, 8, (ompi_communicator_t *) MPI_COMM_WORLD, &matched,
                                       &status)
          && matched && 4711 == status._ucount && 0 == refusals);
    progress_probes = false;
    CHECK(8 == next_tag());
    refusals = 1000;
    CHECK(OMPI_SUCCESS == match(9, &message, &found) && 9 == found && 0 == refusals);
    CHECK(OMPI_SUCCESS == mca_pml_umrddt_imrecv(buf, 0, &ompi_mpi_byte.dt, &message, &request)
          && 9 == received && -1 == next_tag());
    opal_progress_unregister(release);
    until_progress = false;
}

/* A claimed plain message stays a claim if its receive fails, whether that is a new or a started
 * one. */
static void keeps_plain_messages(void)
{
    static mca_pml_umrddt_recv_t started;
    ompi_status_public_t status;
    ompi_request_t *request;
    char buf[8];
    int matched;

    for (int i = 0; i < 2; ++i) {
        mca_pml_umrddt_claim_t *claim;
        int rc;

        arrivals = 0;
        arrive_plain(9, sizeof(buf));
        arrive(10);
        CHECK(OMPI_SUCCESS
                  == mca_pml_umrddt_iprobe(SOURCE, 10, (ompi_communicator_t *) MPI_COMM_WORLD,
                                           &matched, &status)
              && matched && 2 == opal_list_get_size(&comm.gate.claims));
        for (refusals = 1; 0 <= refusals;) {
            const bool fails = 0 < refusals;

            claim = mca_pml_umrddt_claim_take(&comm, SOURCE, 9);
            CHECK(NULL != claim);
            started.buf = buf;
            started.count = sizeof(buf);
            started.datatype = &ompi_mpi_byte.dt;
            received = -1;
            rc = 0 == i ? mca_pml_umrddt_claim_deliver(claim, buf, sizeof(buf), &ompi_mpi_byte.dt,
                                                       &request)
                        : mca_pml_umrddt_claim_into(claim, &started);
            CHECK((fails ? OMPI_ERR_OUT_OF_RESOURCE : OMPI_SUCCESS) == rc);
            CHECK((fails ? 2u : 1u) == opal_list_get_size(&comm.gate.claims));
            CHECK(fails || 0 == i || 9 == received);
            refusals -= fails ? 0 : 1;
        }
        refusals = 0;
        CHECK(10 == next_tag() && -1 == next_tag());
    }
    CHECK(0 == comm.gate.word && opal_list_is_empty(&comm.gate.claims));
}

/* Without memory for a claim no message is matched. */
static void matches_nothing_without_a_claim(void)
{
    static opal_free_list_item_t *items[4096];
    ompi_status_public_t status;
    ompi_message_t *message;
    int count = 0, found, matched;

    arrivals = 0;
    arrive(11);
    mca_pml_umrddt.claims.fl_max_to_alloc = mca_pml_umrddt.claims.fl_num_allocated;
    while (NULL != (items[count] = opal_free_list_get(&mca_pml_umrddt.claims))) {
        ++count;
        CHECK(count < (int) (sizeof(items) / sizeof(items[0])));
    }
    CHECK(OMPI_ERR_OUT_OF_RESOURCE == match(11, &message, &found));
    CHECK(OMPI_ERR_OUT_OF_RESOURCE
              == mca_pml_umrddt_iprobe(SOURCE, 11, (ompi_communicator_t *) MPI_COMM_WORLD, &matched,
                                       &status)
          && !matched && !arrived[0].matched);
    while (0 < count) {
        opal_free_list_return(&mca_pml_umrddt.claims, items[--count]);
    }
    CHECK(11 == next_tag() && -1 == next_tag());
    CHECK(0 == comm.gate.word && opal_list_is_empty(&comm.gate.claims));
}

int main(void)
{
    setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
    setenv("OMPI_MCA_pml", "ob1", 1);
    setenv("OMPI_MCA_btl", "self", 1);
    CHECK(MPI_SUCCESS == MPI_Init(NULL, NULL));
    (void) alarm(SECONDS);
    opal_set_using_threads(true);
    OBJ_CONSTRUCT(&mca_pml_umrddt.lock, opal_mutex_t);
    OBJ_CONSTRUCT(&mca_pml_umrddt.claims, opal_free_list_t);
    opal_free_list_init(&mca_pml_umrddt.claims, sizeof(mca_pml_umrddt_claim_t),
                        opal_cache_line_size, OBJ_CLASS(mca_pml_umrddt_claim_t), 0,
                        opal_cache_line_size, 0, -1, 16, NULL, 0, NULL, NULL, NULL);
    mca_pml_umrddt.host.pml_iprobe = base_iprobe;
    mca_pml_umrddt.host.pml_improbe = base_improbe;
    mca_pml_umrddt.host.pml_imrecv = base_imrecv;
    OBJ_CONSTRUCT(&comm.gate.lock, opal_recursive_mutex_t);
    OBJ_CONSTRUCT(&comm.gate.claims, opal_list_t);
    comm.peers = peers;
    comm.peer_count = sizeof(peers) / sizeof(peers[0]);
    comm.comm = (ompi_communicator_t *) MPI_COMM_WORLD;
    mca_pml_umrddt_comms[UMRDDT_COMM_INDEX(comm.comm)] = &comm;

    fails_beside_a_poster();
    keeps_the_order();
    reads_again();
    keeps_plain_messages();
    matches_nothing_without_a_claim();

    opal_set_using_threads(false);
    MPI_Finalize();
    printf("%lu checks\n", checks);
    return 0;
}
