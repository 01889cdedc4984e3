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
#include "never.h"

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_control.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_layout.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_scheme.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_ipc.h"
#include "ompi/mca/pml/umrddt/select/pml_umrddt_select.h"

mca_pml_umrddt_t mca_pml_umrddt;
opal_umrddt_done_flags_t *opal_umrddt_own_done_flags;

/* The receiver's half, and the rest of the sender's. */
unsigned opal_umrddt_gpu_expected;

/* clang-format off */
NEVER(void, mca_pml_umrddt_send_finish, mca_pml_umrddt_send_t *send, int error)
NEVER(void, mca_pml_umrddt_send_malformed, mca_pml_umrddt_send_t *send)
NEVER(void, mca_pml_umrddt_recv_done, mca_pml_umrddt_recv_t *recv)
NEVER(void, mca_pml_umrddt_recv_next, mca_pml_umrddt_recv_t *recv)
NEVER(void, mca_pml_umrddt_reply_init, const mca_pml_umrddt_rts_t *rts,
      mca_pml_umrddt_reply_kind_t reply_kind, mca_pml_umrddt_reply_t *reply)
NEVER(int, mca_pml_umrddt_reply_send, mca_pml_umrddt_comm_t *comm, int peer,
      const mca_pml_umrddt_reply_t *reply)
NEVER(void, mca_pml_umrddt_poll, mca_pml_umrddt_wait_t *wait, bool (*retry)(void *), void *owner)
NEVER(void, mca_pml_umrddt_wait, opal_list_t *list, mca_pml_umrddt_wait_t *wait,
      bool (*retry)(void *), void *owner)
NEVER(void, mca_pml_umrddt_wait_cancel, mca_pml_umrddt_wait_t *wait)
NEVER(void, mca_pml_umrddt_watch, mca_pml_umrddt_wait_t *wait, const volatile uint32_t *flag,
      uint32_t base, uint32_t range, bool (*retry)(void *), void *owner)
NEVER(bool, mca_pml_umrddt_select_beats_copy, mca_pml_umrddt_comm_t *comm,
      const mca_pml_umrddt_peer_t *peer, opal_iov_cache_layout_t *layout, unsigned schemes)
NEVER(int, mca_pml_umrddt_layout, ompi_datatype_t *datatype, size_t count,
      opal_iov_cache_layout_t **layout)
NEVER(const char *, mca_pml_umrddt_check_ipc, const mca_pml_umrddt_recv_t *recv)
NEVER(const char *, mca_pml_umrddt_ipc_check, const mca_pml_umrddt_peer_t *peer, uint64_t *bytes)
NEVER(void, mca_pml_umrddt_ipc_free, mca_pml_umrddt_peer_t *peer)
NEVER(void, mca_pml_umrddt_ipc_info_req, mca_pml_umrddt_recv_t *recv, uint32_t what)
NEVER(void, mca_pml_umrddt_ipc_info_req_drop, mca_pml_umrddt_info_req_t *requested)
NEVER(bool, mca_pml_umrddt_ipc_remember, mca_pml_umrddt_peer_t *peer)
NEVER(bool, mca_pml_umrddt_ipc_rts_valid, const mca_pml_umrddt_rts_t *rts)
NEVER(void, opal_umrddt_done_flags_close, void)
NEVER(opal_umrddt_done_flags_t *, opal_umrddt_done_flags_map, uint32_t pid, uint32_t fd,
      const uint8_t *cookie)
NEVER(void, opal_umrddt_done_flags_report, const uint8_t *cookie, uint32_t *pid, uint32_t *fd)
NEVER(int, opal_umrddt_gpu_copy, opal_umrddt_gpu_engine_t *engine,
      const opal_umrddt_gpu_copy_end_t *from, const opal_umrddt_gpu_copy_end_t *to, uint64_t start,
      uint64_t end, opal_umrddt_gpu_copy_t **copy)
NEVER(int, opal_umrddt_gpu_copy_later, opal_umrddt_gpu_engine_t *engine,
      const opal_umrddt_gpu_copy_end_t *from, const opal_umrddt_gpu_copy_end_t *to, uint64_t start,
      uint64_t end, opal_umrddt_gpu_copy_t **copy)
NEVER(int, opal_umrddt_gpu_copy_test, opal_umrddt_gpu_copy_t *copy)
NEVER(bool, opal_umrddt_gpu_copy_flag, opal_umrddt_gpu_copy_t *copy,
      const volatile uint32_t **flag, uint32_t *until)
NEVER(bool, opal_umrddt_gpu_device_find, const uint8_t *uuid, opal_umrddt_gpu_memory_t *memory)
NEVER(CUcontext, opal_umrddt_gpu_engine_context, const opal_umrddt_gpu_engine_t *engine)
NEVER(int, opal_umrddt_gpu_engine_device, const opal_umrddt_gpu_engine_t *engine)
NEVER(int, opal_umrddt_gpu_engine_get, const opal_umrddt_gpu_memory_t *memory,
      opal_umrddt_gpu_engine_t **engine)
NEVER(bool, opal_umrddt_gpu_engine_is_there, const opal_umrddt_gpu_engine_t *engine)
NEVER(uint64_t, opal_umrddt_gpu_import_address, const opal_umrddt_gpu_import_t *import,
      uint64_t lowest, uint64_t end)
NEVER(int, opal_umrddt_gpu_import_find, opal_umrddt_gpu_engine_t *engine, uint64_t peer,
      uint64_t buffer_id, opal_umrddt_gpu_import_t **import)
NEVER(bool, opal_umrddt_gpu_import_on_device, const opal_umrddt_gpu_import_t *import)
NEVER(void, opal_umrddt_gpu_import_release, opal_umrddt_gpu_import_t *import)
NEVER(const char *, opal_umrddt_gpu_ipc_check, void)
NEVER(void, opal_umrddt_gpu_ipc_close, void)
NEVER(void, opal_umrddt_gpu_ipc_forget, uint64_t peer)
NEVER(void, opal_umrddt_gpu_ipc_params, const opal_umrddt_gpu_ipc_params_t *params)
NEVER(bool, opal_umrddt_gpu_peer_is_refused, const opal_umrddt_gpu_peer_t *peer,
      uint64_t buffer_id, const opal_umrddt_gpu_engine_t *engine)
NEVER(opal_iov_cache_layout_t *, opal_umrddt_gpu_peer_layout, opal_umrddt_gpu_peer_t *peer,
      uint64_t id, uint64_t size, int64_t lb, uint32_t pieces)
/* clang-format on */

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
