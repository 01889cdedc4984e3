/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * Control messages, with a simulated base PML that refuses. All arrive, those for one process in
 * order, whatever happens to those of another process. Without memory they use only the reserve.
 * Communicators are held as long as necessary. A control message that cannot be sent ends the job,
 * but only if the error of the base PML is one that seldom passes.
 */

#include "ompi_config.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "opal/runtime/opal.h"
#include "ompi/runtime/mpiruntime.h"

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_control.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_progress.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"

#include "../common/check.h"

enum {
    PEERS = 5,
    COMMS = 2,
    MOST = 4000
};

static unsigned seed = 1;

static unsigned draw(unsigned below)
{
    return (unsigned) rand_r(&seed) % below;
}

/* ---------------------------------------------------------------------------------------------
 * What is played
 * ------------------------------------------------------------------------------------------- */

static bool no_memory;
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
    return no_memory ? NULL : __real_malloc(size);
}

static struct ompi_communicator_t ompi_comms[COMMS];
static mca_pml_umrddt_comm_t comms[COMMS];

/* of each communicator and process */
static unsigned next_out[COMMS][PEERS], next_in[COMMS][PEERS];
static int refusing[COMMS][PEERS]; /* -1: always; else one time in so many, if not 0 */
static int reason = OMPI_ERR_OUT_OF_RESOURCE;
static bool late; /* the base PML's send is pending when its function returns */
static unsigned refused, in_flight;
static ompi_request_t requests[MOST];

static int request_free(ompi_request_t **request)
{
    *request = MPI_REQUEST_NULL;
    --in_flight;
    return OMPI_SUCCESS;
}

static int host_isend(const void *buf, size_t count, ompi_datatype_t *datatype, int dst, int tag,
                      mca_pml_base_send_mode_t mode, ompi_communicator_t *comm,
                      ompi_request_t **request)
{
    long which = comm - ompi_comms;
    unsigned number;

    (void) datatype, (void) mode;
    CHECK(0 <= which && COMMS > which && PEERS > dst && sizeof(number) <= count
          && (77 == tag || 78 == tag));
    if (0 > refusing[which][dst]
        || (0 < refusing[which][dst] && 0 != draw((unsigned) refusing[which][dst]))) {
        ++refused;
        return reason;
    }
    memcpy(&number, buf, sizeof(number));
    CHECK(number == next_in[which][dst]);
    ++next_in[which][dst];
    *request = &requests[draw(MOST)];
    while (REQUEST_PENDING == (*request)->req_complete) {
        *request = &requests[draw(MOST)];
    }
    (*request)->req_free = request_free;
    (*request)->req_complete = late ? REQUEST_PENDING : REQUEST_COMPLETED;
    ++in_flight;
    return OMPI_SUCCESS;
}

static jmp_buf ended;
static bool may_end;

int ompi_mpi_abort(struct ompi_communicator_t *comm, int code)
{
    CHECK(may_end && NULL != comm && MPI_ERR_OTHER == code);
    longjmp(ended, 1);
}

mca_pml_umrddt_peer_t *mca_pml_umrddt_peer_find(mca_pml_umrddt_comm_t *comm, int rank)
{
    (void) comm, (void) rank;
    return NULL;
}

void mca_pml_umrddt_recv_failed(mca_pml_umrddt_comm_t *comm, int src,
                                const mca_pml_umrddt_nack_header_t *fail)
{
    (void) comm, (void) src, (void) fail;
}

/* What of progress is needed: one waiting list. */
void mca_pml_umrddt_wait(opal_list_t *list, mca_pml_umrddt_wait_t *wait, bool (*retry)(void *),
                         void *owner)
{
    wait->list = list;
    wait->retry = retry;
    wait->owner = owner;
    opal_list_append(list, &wait->super);
}

void mca_pml_umrddt_wait_cancel(mca_pml_umrddt_wait_t *wait)
{
    if (NULL != wait->list) {
        opal_list_remove_item(wait->list, &wait->super);
        wait->list = NULL;
    }
}

static void progress(void)
{
    size_t waiting = opal_list_get_size(&mca_pml_umrddt.polled);

    for (; 0 < waiting; --waiting) {
        mca_pml_umrddt_wait_t *wait =
            (mca_pml_umrddt_wait_t *) opal_list_remove_first(&mca_pml_umrddt.polled);

        wait->list = NULL;
        if (!wait->retry(wait->owner)) {
            wait->list = &mca_pml_umrddt.polled;
            opal_list_append(&mca_pml_umrddt.polled, &wait->super);
        }
    }
}

/* The base PML completes all accepted sends. */
static void host_done(void)
{
    for (int i = 0; i < MOST; ++i) {
        requests[i].req_complete = REQUEST_COMPLETED;
    }
}

static int info(int comm, int peer, size_t length, bool must)
{
    unsigned char bytes[4096] = {0};
    int rc;

    memcpy(bytes, &next_out[comm][peer], sizeof(next_out[comm][peer]));
    rc = mca_pml_umrddt_control(&comms[comm], peer, 77, bytes, length, must);
    next_out[comm][peer] += OMPI_SUCCESS == rc ? 1 : 0;
    return rc;
}

static void all_refuse(int how)
{
    for (int i = 0; i < COMMS * PEERS; ++i) {
        refusing[i / PEERS][i % PEERS] = how;
    }
}

static void check_all_here(void)
{
    CHECK(0 == memcmp(next_out, next_in, sizeof(next_out)));
    CHECK(0 == mca_pml_umrddt.refused && 0 == mca_pml_umrddt.active && 0 == in_flight);
    CHECK(opal_list_is_empty(&mca_pml_umrddt.polled));
    for (int i = 0; i < COMMS; ++i) {
        CHECK(1 == ((opal_object_t *) &ompi_comms[i])->obj_reference_count);
    }
}

/* ---------------------------------------------------------------------------------------------
 * What is to be shown
 * ------------------------------------------------------------------------------------------- */

static void drawn(void)
{
    for (int turn = 0; turn < 300; ++turn) {
        late = 0 == draw(2);
        all_refuse(0 == draw(3) ? 0 : 1 + (int) draw(8));
        for (unsigned i = draw(100); 0 < i; --i) {
            CHECK(OMPI_SUCCESS
                  == info((int) draw(COMMS), (int) draw(PEERS), 8 + draw(600), 0 == draw(2)));
            if (0 == draw(4)) {
                progress();
            }
        }
        CHECK(mca_pml_umrddt.active >= mca_pml_umrddt.refused);
        for (int i = 0; i < 5000 && 0 < mca_pml_umrddt.active; ++i) {
            progress();
            if (0 == draw(3)) {
                host_done();
            }
        }
        check_all_here();
    }
    CHECK(0 < refused && refused == mca_pml_umrddt.counters.control_refused);
}

/* A process that never receives delays no other process. */
static void one_is_away(void)
{
    late = false;
    all_refuse(0);
    refusing[0][2] = -1;
    for (int i = 0; i < 500; ++i) {
        CHECK(OMPI_SUCCESS == info(i % COMMS, i % PEERS, 88, true));
    }
    progress();
    for (int i = 0; i < COMMS * PEERS; ++i) {
        int comm = i / PEERS, peer = i % PEERS;

        CHECK((next_out[comm][peer] == next_in[comm][peer]) == (0 != comm || 2 != peer));
    }
    CHECK(50 == mca_pml_umrddt.refused);
    CHECK(51 == ((opal_object_t *) &ompi_comms[0])->obj_reference_count);
    refusing[0][2] = 0;
    progress();
    check_all_here();
}

/* Without memory: critical messages arrive, others are refused to the caller, who has a fallback.
 */
static void without_memory(void)
{
    int reported = 0, given = 0;

    all_refuse(-1);
    no_memory = true;
    while (OMPI_SUCCESS == info(0, 0, 88, false)) {
        ++given;
    }
    CHECK(OMPI_SUCCESS != info(0, 0, 4000, false));
    for (; reported < 30; ++reported) {
        CHECK(OMPI_SUCCESS == info(0, 1, 88, true));
    }
    all_refuse(0);
    progress();
    no_memory = false;
    check_all_here();
    CHECK(20 < given);
    printf("without memory: %d with another scheme, and %d without\n", given, reported);
}

/* Control messages of one message that the base PML has not accepted are withdrawn; not those of
 * other messages, nor the final one. */
static void withdrawn(void)
{
    const struct {
        uint64_t seq;
        int comm, tag;
        bool must, goes;
    } said[] = {
        {7, 0, 77, false, true},  {8, 0, 77, false, false}, {7, 0, 77, false, true},
        {7, 0, 78, false, false}, {7, 1, 77, false, false}, {7, 0, 77, true, false},
    };

    late = false;
    for (int first = 0; first < 2; ++first) {
        /* (of those before them, too, that are the reason why others wait) */
        all_refuse(-1);
        for (size_t i = (size_t) first; i < sizeof(said) / sizeof(said[0]); ++i) {
            unsigned char bytes[88] = {0};
            int comm = said[i].comm;

            memcpy(bytes, &next_out[comm][1], sizeof(next_out[comm][1]));
            memcpy(bytes + 8, &said[i].seq, sizeof(said[i].seq));
            CHECK(OMPI_SUCCESS
                  == mca_pml_umrddt_control(&comms[comm], 1, said[i].tag, bytes, sizeof(bytes),
                                            said[i].must));
            next_out[comm][1] += said[i].goes ? 0 : 1;
        }
        CHECK(6 - first == mca_pml_umrddt.refused);
        mca_pml_umrddt_control_withdraw(&comms[0], 1, 77, 9);
        mca_pml_umrddt_control_withdraw(&comms[0], 2, 77, 7);
        CHECK(6 - first == mca_pml_umrddt.refused);
        mca_pml_umrddt_control_withdraw(&comms[0], 1, 77, 7);
        CHECK(4 == mca_pml_umrddt.refused);
        all_refuse(0);
        progress();
        check_all_here();
    }
}

static void given_up(int why, unsigned timeout, bool ends)
{
    volatile bool has_ended = false;

    mca_pml_umrddt.params.refusal_timeout = timeout;
    reason = why;
    all_refuse(-1);
    may_end = ends;
    CHECK(OMPI_SUCCESS == info(1, 3, 88, true));
    if (0 == setjmp(ended)) {
        struct timespec now, end;

        clock_gettime(CLOCK_MONOTONIC, &end);
        do {
            (void) nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
            progress();
            clock_gettime(CLOCK_MONOTONIC, &now);
        } while (now.tv_sec < end.tv_sec + (ends ? 60 : 3));
    } else {
        has_ended = true;
    }
    CHECK(ends == has_ended);
    mca_pml_umrddt_control_drop(&comms[0]);
    CHECK(1 == mca_pml_umrddt.refused);
    mca_pml_umrddt_control_drop(&comms[1]);
    CHECK(0 == mca_pml_umrddt.refused);
    may_end = false;
}

int main(int argc, char **argv)
{
    CHECK(OPAL_SUCCESS == opal_init_util(&argc, &argv));
    OBJ_CONSTRUCT(&mca_pml_umrddt.lock, opal_mutex_t);
    OBJ_CONSTRUCT(&mca_pml_umrddt.polled, opal_list_t);
    OBJ_CONSTRUCT(&mca_pml_umrddt.listeners, opal_list_t);
    mca_pml_umrddt.host.pml_isend = host_isend;
    for (int i = 0; i < COMMS; ++i) {
        OBJ_CONSTRUCT((opal_list_item_t *) &ompi_comms[i], opal_list_item_t);
        comms[i].comm = &ompi_comms[i];
    }
    host_done();
    CHECK(OMPI_SUCCESS == mca_pml_umrddt_control_init(mca_pml_umrddt_recv_failed));

    drawn();
    one_is_away();
    without_memory();
    withdrawn();
    given_up(OMPI_ERR_OUT_OF_RESOURCE, 1, false);
    given_up(OMPI_ERROR, 1, true);

    mca_pml_umrddt_control_fini();
    printf("control messages: all right, %u refusals\n", refused);
    return 0;
}
