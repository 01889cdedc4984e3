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
 * A base PML that repeatedly refuses to send the control messages of umrddt: replies, NACKs, INFO
 * messages, and the data of messages that it carries in the end. All of it must arrive, in order:
 * messages in both directions, many at once; on a communicator that is freed when they are
 * complete; and some before MPI_Finalize.
 *
 * --mode receives,exchange,freed: it refuses to receive control messages instead. A message whose
 * first reply is refused uses the base PML immediately.
 *
 * --mode dead,exchange: it never sends a control message, and reports a permanent error. The job
 * ends (pml_umrddt_refusal_timeout) with a message.
 *
 * Only umrddt may be affected. The functions of the base PML are therefore replaced after Open MPI
 * has selected it, and before umrddt wraps its functions: in mca_base_components_close, which Open
 * MPI calls there first. All other code of this directory uses public MPI only.
 */

#include "ompi_config.h"

#include <dlfcn.h>
#include <string.h>

#include "ompi/communicator/communicator.h"
#include "ompi/constants.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/mca/pml/umrddt/pml_umrddt_wire.h"
#include "opal/mca/base/mca_base_framework.h"

#include "layouts.h"
#include "mpitest.h"
#include "pvars.h"

enum {
    MESSAGES = 6, /* in each direction at once */
    REFUSALS = 20 /* maximum size of one of them */
};

static mca_pml_base_module_isend_fn_t host_isend;
static mca_pml_base_module_irecv_fn_t host_irecv;
static mca_pml_base_module_irecv_init_fn_t host_irecv_init;
static bool receives, dead;
static bool armed;
static int left = -1; /* refusals before the next one is accepted; -1: at random */
static uint64_t draws = 1;
static long refusals;

/* The base PML's own error: it is out of a resource; pml/ucx has one error code for all causes. */
static int reason(void)
{
    return 0 == mpitest_random(&draws) % 4 ? OMPI_ERROR : OMPI_ERR_OUT_OF_RESOURCE;
}

static bool own(int tag)
{
    return mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_REPLY, 0) <= tag
           && mca_pml_umrddt_tag(MCA_PML_UMRDDT_TAG_INFO, MCA_PML_UMRDDT_MAX_SLOTS - 1) >= tag;
}

static int irecv(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                 ompi_communicator_t *comm, ompi_request_t **request)
{
    if (armed && own(tag) && 0 == mpitest_random(&draws) % 3) {
        ++refusals;
        return reason();
    }
    return host_irecv(buf, count, datatype, src, tag, comm, request);
}

/* With threads umrddt receives by these. */
static int irecv_init(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                      ompi_communicator_t *comm, ompi_request_t **request)
{
    if (armed && own(tag) && 0 == mpitest_random(&draws) % 3) {
        ++refusals;
        return reason();
    }
    return host_irecv_init(buf, count, datatype, src, tag, comm, request);
}

static int isend(const void *buf, size_t count, ompi_datatype_t *datatype, int dst, int tag,
                 mca_pml_base_send_mode_t mode, ompi_communicator_t *comm, ompi_request_t **request)
{
    if (armed && own(tag)) {
        if (dead) {
            return OMPI_ERROR;
        }
        if (-1 == left) {
            left = 1 + (int) (mpitest_random(&draws) % REFUSALS);
        }
        if (0 < left--) {
            ++refusals;
            return reason();
        }
    }
    return host_isend(buf, count, datatype, dst, tag, mode, comm, request);
}

int mca_base_components_close(int output_id, opal_list_t *components,
                              const mca_base_component_t *skip);

int mca_base_components_close(int output_id, opal_list_t *components,
                              const mca_base_component_t *skip)
{
    static int (*next)(int, opal_list_t *, const mca_base_component_t *);

    if (NULL == next) {
        /* (a function is no object) */
        void *found = dlsym(RTLD_NEXT, "mca_base_components_close");

        memcpy(&next, &found, sizeof(next));
    }
    if (NULL == host_isend && NULL != mca_pml.pml_isend && NULL != skip
        && 0 == strcmp(skip->mca_type_name, "pml")) {
        host_isend = mca_pml.pml_isend;
        host_irecv = mca_pml.pml_irecv;
        host_irecv_init = mca_pml.pml_irecv_init;
        if (receives) {
            mca_pml.pml_irecv = irecv;
            mca_pml.pml_irecv_init = irecv_init;
        } else {
            mca_pml.pml_isend = isend;
        }
    }
    return next(output_id, components, skip);
}

/* MESSAGES of each rank to the next one, all pending at once. */
static void all_at_once(MPI_Comm comm, uint64_t *state)
{
    mpitest_message_t *out[MESSAGES], *in[MESSAGES];
    MPI_Request requests[2 * MESSAGES];
    uint64_t key = mpitest_random(state);

    for (int i = 0; i < MESSAGES; ++i) {
        int bytes = 2000 + (int) (mpitest_random(state) % 100000);
        mpitest_kind_t send = mpitest_draw_kind(state), recv = mpitest_draw_kind(state);

        out[i] = mpitest_message(send, bytes, key);
        in[i] = mpitest_message(recv, bytes, key + 1);
        mpitest_fill(out[i]->buffer, key + (uint64_t) (i + 100 * mpitest.rank));
        MPI_OK(MPI_Irecv(in[i]->addr, 1, in[i]->type, mpitest_left(), i, comm, &requests[i]));
    }
    for (int i = 0; i < MESSAGES; ++i) {
        MPI_OK(MPI_Isend(out[i]->addr, 1, out[i]->type, mpitest_right(), i, comm,
                         &requests[MESSAGES + i]));
    }
    MPI_OK(MPI_Waitall(2 * MESSAGES, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < MESSAGES; ++i) {
        VERIFY(in[i]->buffer, key + (uint64_t) (i + 100 * mpitest_left()), in[i]->bytes);
        mpitest_message_free(in[i]);
        mpitest_message_free(out[i]);
    }
}

static void exchange(uint64_t *state)
{
    all_at_once(MPI_COMM_WORLD, state);
}

/* The base PML, or umrddt, may still hold the last reply when the communicator is freed. */
static void freed(uint64_t *state)
{
    MPI_Comm comm;

    MPI_OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    all_at_once(comm, state);
    MPI_OK(MPI_Comm_free(&comm));
}

static const mpitest_part_t parts[] = {{"exchange", exchange}, {"freed", freed}, {NULL, NULL}};

int main(int argc, char **argv)
{
    pvars_t before, after, since, all;
    uint64_t state;

    for (int i = 1; i < argc; ++i) {
        /* --mode, before MPI_Init */
        receives = receives || NULL != strstr(argv[i], "receives");
        dead = dead || NULL != strstr(argv[i], "dead");
    }
    mpitest_init(&argc, &argv, "refused", 5, MPI_THREAD_SINGLE);
    if (PVARS_MAX != pvars_open()) {
        mpitest_skip("umrddt is not there");
    }
    CHECK(NULL != host_isend);
    draws = mpitest.seed + (uint64_t) mpitest.rank;
    pvars_read(&before);
    armed = true;
    mpitest_run(parts);
    CHECK(!dead);
    pvars_read(&after);
    pvars_subtract(&after, &before, &since);
    CHECK(0 < refusals);
    if (receives) {
        pvars_sum(&since, &all);
        CHECK(0 != mpitest.rank || 0 < all.value[PVARS_CONTROL_REFUSED]);
        CHECK(0 != mpitest.rank || 0 < all.value[PVARS_HANDLED_SENDS]);
    } else {
        CHECK_INT(since.value[PVARS_CONTROL_REFUSED], refusals);
    }
    pvars_close();
    state = mpitest.seed;
    all_at_once(MPI_COMM_WORLD, &state); /* and the end of the job follows */
    return mpitest_finish();
}
