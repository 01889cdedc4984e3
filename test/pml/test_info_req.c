/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The sender of a message by CUDA IPC and the INFO_REQ of its receiver. A valid one gets an INFO
 * message. After an invalid one the receiver gets a NACK, for it waits for an answer.
 */

#include "ompi_config.h"

#include "../common/check.h"

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_control.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_layout.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_scheme.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_ipc.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_select.h"

/* The receiver's half, and the rest of the sender's. */

static int awaits, invalid, nacks, infos;
static int info_result;
static uint32_t info_what;

void mca_pml_umrddt_send_await(mca_pml_umrddt_send_t *send)
{
    (void) send;
    ++awaits;
}

void mca_pml_umrddt_send_report_invalid(const mca_pml_umrddt_send_t *send)
{
    (void) send;
    ++invalid;
}

void mca_pml_umrddt_send_fail(mca_pml_umrddt_send_t *send, bool in_flight)
{
    (void) send;
    CHECK(!in_flight);
    ++nacks;
}

int mca_pml_umrddt_flat_send(mca_pml_umrddt_comm_t *comm, int peer, int tag, const void *last,
                             size_t length, const mca_pml_umrddt_layout_frag_t *head,
                             const opal_iov_cache_form_t *form, size_t room)
{
    (void) comm, (void) peer, (void) tag, (void) length, (void) head, (void) form, (void) room;
    info_what = ((const mca_pml_umrddt_info_t *) last)->what;
    ++infos;
    return info_result;
}

int opal_umrddt_gpu_export(const opal_umrddt_gpu_memory_t *memory, opal_umrddt_gpu_export_t *out)
{
    memset(out, 0, sizeof(*out));
    out->buffer_id = memory->buffer_id;
    return OPAL_SUCCESS;
}

static mca_pml_umrddt_send_t send_record;
static mca_pml_umrddt_reply_t info_req;

/* A new message that offers CUDA IPC. */
static void begin(void)
{
    awaits = invalid = nacks = infos = 0;
    info_result = OMPI_SUCCESS;
    send_record.rts.schemes = MCA_PML_UMRDDT_BIT_IPC;
    send_record.rts.buffer_id = send_record.where.memory.buffer_id = 7;
    send_record.reported = false;
    send_record.reply = &info_req;
}

static void request(uint32_t what)
{
    info_req.reply_kind = MCA_PML_UMRDDT_REPLY_INFO_REQ;
    info_req.what = what;
    mca_pml_umrddt_scheme_ipc.reply(&send_record, sizeof(info_req));
}

/* The receiver waits no more, and the message goes on. */
static void expect_nack(int count, bool is_invalid)
{
    CHECK(count == nacks && (is_invalid ? count : 0) == invalid && 0 < awaits);
}

int main(void)
{
    static opal_iov_cache_layout_t layout;

    send_record.layout = &layout;
    begin();
    request(MCA_PML_UMRDDT_INFO_EXPORT);
    CHECK(1 == infos && MCA_PML_UMRDDT_INFO_EXPORT == info_what && 0 == nacks && 1 == awaits);
    /* a second one for the same message */
    request(MCA_PML_UMRDDT_INFO_EXPORT);
    CHECK(1 == infos);
    expect_nack(1, true);

    begin();
    request(0);
    CHECK(0 == infos);
    expect_nack(1, true);
    begin();
    request(~(uint32_t) MCA_PML_UMRDDT_INFO_ALL);
    expect_nack(1, true);
    begin();
    send_record.rts.schemes = 0; /* not offered */
    request(MCA_PML_UMRDDT_INFO_EXPORT);
    expect_nack(1, true);

    /* valid, but without memory for the answer */
    begin();
    info_result = OMPI_ERR_OUT_OF_RESOURCE;
    request(MCA_PML_UMRDDT_INFO_EXPORT);
    expect_nack(1, false);
    printf("%lu checks\n", checks);
    return 0;
}
