/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/*
 * The chunks of packed messages, both sides of a message in this process, between a simulated base
 * PML, HCA and GPUs, in random order, late, and with every failure: the base PML refuses to send or
 * receive, a copy, a write or a flush fails, a CREDIT cannot be sent, GPU memory runs out. The ends
 * of both sides must
 * agree, and then all bytes are right, all receives for FINs are returned, and no chunk buffer is
 * returned while writes to it are pending. An invalid CTS_PACK is refused, whatever byte of it is
 * wrong.
 */

#include "ompi_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_scratch.h"
#include "opal/runtime/opal.h"

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_comm.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_progress.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_stage.h"
#include "ompi/mca/pml/umrddt/engine/pml_umrddt_engine.h"
#include "ompi/mca/pml/umrddt/schemes/pml_umrddt_pack_chunks.h"

#include "../common/check.h"

enum {
    MOST = 64, /* pending operations of one kind */
    TURNS = 400
};

static unsigned seed;

static unsigned draw(unsigned below)
{
    return (unsigned) rand_r(&seed) % below;
}

/* What is to fail in this turn, counted down: at 1. */
static struct plan_t {
    int isend, isend_for_ever, irecv, copy, write, flush, grant, scratch;
} plan;

static bool fails(int *countdown)
{
    return 0 < *countdown && 0 == --*countdown;
}

/* The context of the engine is current, or was made so: the base PML takes its memory. */
static bool takes, entered;
static int scratches;

/* Memory of GPUs. */
static struct {
    const char *begin, *end;
} on_gpu[MOST];

static int on_gpu_find(const void *begin)
{
    int i = 0;

    while (begin != on_gpu[i].begin) {
        ++i;
        CHECK(MOST > i);
    }
    return i;
}

static void on_gpu_add(const void *begin, size_t size)
{
    const int i = on_gpu_find(NULL);

    on_gpu[i].begin = begin;
    on_gpu[i].end = on_gpu[i].begin + size;
}

static void on_gpu_remove(const void *begin)
{
    on_gpu[on_gpu_find(begin)].begin = NULL;
}

/* The base PML gets memory of a GPU only with its context. */
static void check_context(const void *buf, size_t count)
{
    for (int i = 0; i < MOST; ++i) {
        CHECK(NULL == on_gpu[i].begin || (const char *) buf < on_gpu[i].begin
              || (const char *) buf >= on_gpu[i].end || 0 == count || takes || entered);
    }
}

static mca_pml_umrddt_pack_t *sender, *receiver;

/* ---------------------------------------------------------------------------------------------
 * The base PML
 * ------------------------------------------------------------------------------------------- */

typedef struct message_t {
    ompi_request_t request; /* of a receive */
    bool posted;
    void *to;
    size_t room;
    unsigned char *bytes;
    size_t length;
} message_t;

static ompi_request_t sends_done[MOST]; /* of sends: complete at once, the bytes are copied */
static unsigned next_send;
static message_t receives[MOST];
static unsigned posted, matched; /* in order */
static message_t wire[4 * MOST]; /* sent, not received */
static unsigned sent, arrived;

static int request_free(ompi_request_t **request)
{
    *request = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

static int request_cancel(ompi_request_t *request, int flag)
{
    (void) flag;
    request->req_complete = REQUEST_COMPLETED;
    return OMPI_SUCCESS;
}

static int host_isend(const void *buf, size_t count, ompi_datatype_t *datatype, int dst, int tag,
                      mca_pml_base_send_mode_t mode, ompi_communicator_t *comm,
                      ompi_request_t **request)
{
    message_t *message = &wire[sent % (4 * MOST)];
    ompi_request_t *own = &sends_done[next_send++ % MOST];

    (void) datatype, (void) dst, (void) tag, (void) mode, (void) comm;
    check_context(buf, count);
    if (fails(&plan.isend) || (plan.isend_for_ever && 0 < count)) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    CHECK(sent - arrived < 4 * MOST);
    message->bytes = malloc(count + 1);
    message->length = count;
    memcpy(message->bytes, buf, count);
    ++sent;
    own->req_free = request_free;
    own->req_complete = REQUEST_COMPLETED;
    own->req_status.MPI_ERROR = MPI_SUCCESS;
    *request = own;
    return OMPI_SUCCESS;
}

static int host_irecv(void *buf, size_t count, ompi_datatype_t *datatype, int src, int tag,
                      ompi_communicator_t *comm, ompi_request_t **request)
{
    message_t *message = &receives[posted % MOST];

    (void) datatype, (void) src, (void) tag, (void) comm;
    check_context(buf, count);
    if (fails(&plan.irecv)) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    CHECK(posted - matched < MOST);
    message->to = buf;
    message->room = count;
    message->request.req_free = request_free;
    message->request.req_cancel = request_cancel;
    message->request.req_complete = REQUEST_PENDING;
    message->request.req_status.MPI_ERROR = MPI_SUCCESS;
    ++posted;
    *request = &message->request;
    return OMPI_SUCCESS;
}

static void host_progress(void)
{
    while (arrived < sent && matched < posted && 0 < draw(3)) {
        message_t *from = &wire[arrived++ % (4 * MOST)], *to = &receives[matched++ % MOST];

        CHECK(from->length <= to->room);
        memcpy(to->to, from->bytes, from->length);
        free(from->bytes);
        to->request.req_status._ucount = from->length;
        to->request.req_complete = REQUEST_COMPLETED;
    }
}

/* ---------------------------------------------------------------------------------------------
 * GPUs
 * ------------------------------------------------------------------------------------------- */

struct opal_umrddt_gpu_copy_t {
    bool busy;
    int left; /* tests until it is over */
    int rc;
    opal_umrddt_gpu_copy_end_t from, to;
    uint64_t start, end;
};

static opal_umrddt_gpu_copy_t copies[MOST];

int opal_umrddt_gpu_engine_get(const opal_umrddt_gpu_memory_t *memory,
                               opal_umrddt_gpu_engine_t **engine)
{
    (void) memory;
    *engine = (opal_umrddt_gpu_engine_t *) &copies; /* not looked into */
    return OPAL_SUCCESS;
}

int opal_umrddt_gpu_engine_device(const opal_umrddt_gpu_engine_t *engine)
{
    (void) engine;
    return 0;
}

CUcontext opal_umrddt_gpu_engine_context(const opal_umrddt_gpu_engine_t *engine)
{
    return (CUcontext) engine;
}

bool opal_umrddt_gpu_base_takes(const opal_umrddt_gpu_memory_t *memory)
{
    CHECK(OPAL_UMRDDT_GPU_DEVICE == memory->kind);
    return takes;
}

bool opal_umrddt_gpu_engine_is_there(const opal_umrddt_gpu_engine_t *engine)
{
    (void) engine;
    return true;
}

int opal_umrddt_gpu_engine_enter(opal_umrddt_gpu_engine_t *engine)
{
    CHECK((opal_umrddt_gpu_engine_t *) &copies == engine && !entered && !takes);
    entered = true;
    return OPAL_SUCCESS;
}

void opal_umrddt_gpu_engine_leave(opal_umrddt_gpu_engine_t *engine)
{
    CHECK((opal_umrddt_gpu_engine_t *) &copies == engine && entered);
    entered = false;
}

int opal_umrddt_gpu_copy(opal_umrddt_gpu_engine_t *engine, const opal_umrddt_gpu_copy_end_t *from,
                         const opal_umrddt_gpu_copy_end_t *to, uint64_t start, uint64_t end,
                         opal_umrddt_gpu_copy_t **copy)
{
    int i = 0;

    (void) engine;
    while (copies[i].busy) {
        ++i;
        CHECK(MOST > i);
    }
    copies[i] = (opal_umrddt_gpu_copy_t){.busy = true,
                                         .left = (int) draw(6),
                                         .rc = fails(&plan.copy) ? OPAL_ERROR : OPAL_SUCCESS,
                                         .from = *from,
                                         .to = *to,
                                         .start = start,
                                         .end = end};
    *copy = &copies[i];
    return OPAL_SUCCESS;
}

/* It happens at its end: what is given back before would be overwritten. */
static void do_copy(const opal_umrddt_gpu_copy_t *copy)
{
    uint64_t length = copy->end - copy->start;
    void *from = (void *) (uintptr_t) copy->from.address;
    void *to = (void *) (uintptr_t) copy->to.address;
    unsigned char *between = malloc(length);

    if (NULL != copy->from.layout) {
        (void) opal_iov_cache_form_pack(copy->from.layout->form, from, copy->start, length,
                                        between);
    } else {
        memcpy(between, from, length);
    }
    if (NULL != copy->to.layout) {
        (void) opal_iov_cache_form_unpack(copy->to.layout->form, to, copy->start, length, between);
    } else {
        memcpy(to, between, length);
    }
    free(between);
}

int opal_umrddt_gpu_copy_test(opal_umrddt_gpu_copy_t *copy)
{
    if (0 < copy->left--) {
        return OPAL_ERR_RESOURCE_BUSY;
    }
    copy->busy = false;
    if (OPAL_SUCCESS == copy->rc) {
        do_copy(copy);
    }
    return copy->rc;
}

int opal_umrddt_gpu_scratch_get(opal_umrddt_gpu_engine_t *engine, size_t size, uint64_t *address)
{
    (void) engine;
    if (fails(&plan.scratch)) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    ++scratches;
    *address = (uintptr_t) malloc(size);
    on_gpu_add((const void *) (uintptr_t) *address, size);
    return OPAL_SUCCESS;
}

void opal_umrddt_gpu_scratch_put(uint64_t address)
{
    on_gpu_remove((const void *) (uintptr_t) address);
    --scratches;
    free((void *) (uintptr_t) address);
}

void opal_umrddt_gpu_scratch_close(void)
{
}

/* ---------------------------------------------------------------------------------------------
 * Buffers
 * ------------------------------------------------------------------------------------------- */

int opal_umrddt_gpu_stage_get(const opal_umrddt_gpu_memory_t *memory, size_t size,
                              opal_umrddt_gpu_stage_t *stage)
{
    (void) memory;
    stage->bytes = malloc(size);
    stage->room = size;
    stage->kind = OPAL_UMRDDT_GPU_PINNED;
    return OMPI_SUCCESS;
}

void opal_umrddt_gpu_stage_put(opal_umrddt_gpu_stage_t *stage)
{
    free(stage->bytes);
    memset(stage, 0, sizeof(*stage));
}

/* Registered memory: what an HCA writes is in 'late' until it is flushed. */
typedef struct own_buffer_t {
    mca_pml_umrddt_pack_buffer_t buffer; /* its memory is this */
    unsigned char *late;
    bool dirty;
} own_buffer_t;

static int buffers;
static opal_iov_cache_layout_t *bytes_layout; /* one piece that is long enough */

int mca_pml_umrddt_pack_buffer_get(mca_btl_umr_endpoint_t *endpoint,
                                   opal_umrddt_gpu_engine_t *engine,
                                   const opal_umrddt_gpu_where_t *where, bool device, size_t size,
                                   mca_pml_umrddt_pack_buffer_t **buffer)
{
    own_buffer_t *own = calloc(1, sizeof(*own));

    (void) endpoint, (void) engine;
    if (device) {
        own->buffer.scratch = (uintptr_t) malloc(size);
        own->buffer.key.addr = own->buffer.scratch;
    } else {
        (void) opal_umrddt_gpu_stage_get(&where->memory, size, &own->buffer.stage);
        own->buffer.key.addr = (uintptr_t) own->buffer.stage.bytes;
    }
    own->buffer.room = size;
    own->late = malloc(size);
    own->buffer.memory = (mca_btl_umr_memory_t *) own; /* not looked into */
    own->buffer.layout = bytes_layout;
    own->buffer.key.length = size;
    own->buffer.key.rkey = 0;
    own->dirty = false;
    ++buffers;
    *buffer = &own->buffer;
    return OMPI_SUCCESS;
}

/* ---------------------------------------------------------------------------------------------
 * The HCA
 * ------------------------------------------------------------------------------------------- */

typedef struct write_t {
    bool arrived;
    mca_btl_umr_direct_t direct;
    mca_btl_umr_done_fn_t done;
    void *context;
    own_buffer_t *to;
} write_t;

static write_t writes[MOST];
static unsigned put, landed, reported, fins; /* in order */
static int reserved;
static bool broken;
static struct {
    mca_btl_umr_done_fn_t done;
    void *context;
    own_buffer_t *memory;
} flushes[MOST];
static unsigned flush_count;
static struct {
    uint64_t start;
    bool none;
} grants[MOST];
static unsigned granted, grant_count;

void mca_pml_umrddt_pack_buffer_put(mca_pml_umrddt_pack_buffer_t *buffer)
{
    own_buffer_t *own = (own_buffer_t *) buffer;

    /* no more writes to it are pending */
    for (unsigned i = fins; i != put; ++i) {
        CHECK(broken || own != writes[i % MOST].to);
    }
    for (unsigned i = 0; i < flush_count; ++i) {
        CHECK(own != flushes[i].memory);
    }
    /* what arrived without a FIN cannot come after the next message */
    CHECK(!own->dirty || buffer->quarantined);
    if (0 != buffer->scratch) {
        free((void *) (uintptr_t) buffer->scratch);
    }
    opal_umrddt_gpu_stage_put(&buffer->stage);
    free(own->late);
    free(own);
    --buffers;
}

static own_buffer_t *buffer_at(uint64_t address)
{
    for (unsigned i = 0; i < receiver->depth; ++i) {
        if (receiver->chunk[i].buffer->key.addr == address) {
            return (own_buffer_t *) receiver->chunk[i].buffer;
        }
    }
    CHECK(!"a place of the receiver");
    return NULL;
}

static int hca_put_direct(mca_btl_umr_endpoint_t *endpoint, const mca_btl_umr_direct_t *direct,
                          const uint32_t *fin, mca_btl_umr_done_fn_t done, void *context)
{
    (void) endpoint;
    CHECK(NULL != fin && 77 == *fin);
    CHECK(put - reported < MOST && put - fins < MOST);
    writes[put++ % MOST] = (write_t){.direct = *direct,
                                     .done = done,
                                     .context = context,
                                     .to = broken ? NULL : buffer_at(direct->to_buffer)};
    return OPAL_SUCCESS;
}

static int hca_fin_reserve(mca_btl_umr_endpoint_t *endpoint)
{
    (void) endpoint;
    if (broken) {
        return OPAL_ERR_UNREACH;
    }
    if (0 == draw(4)) {
        return OPAL_ERR_OUT_OF_RESOURCE;
    }
    ++reserved;
    return OPAL_SUCCESS;
}

static void hca_fin_cancel(mca_btl_umr_endpoint_t *endpoint)
{
    (void) endpoint;
    --reserved;
}

static bool hca_endpoint_broken(const mca_btl_umr_endpoint_t *endpoint)
{
    (void) endpoint;
    return broken;
}

static void hca_endpoint_break(mca_btl_umr_endpoint_t *endpoint)
{
    (void) endpoint;
    broken = true;
}

static void make_visible(own_buffer_t *own)
{
    if (own->dirty) {
        memcpy((void *) (uintptr_t) own->buffer.key.addr, own->late, own->buffer.room);
    }
    own->dirty = false;
}

static int hca_memory_flush(mca_btl_umr_memory_t *memory, mca_btl_umr_done_fn_t done, void *context)
{
    own_buffer_t *own = (own_buffer_t *) memory;

    /* what arrived from a broken endpoint is not known */
    CHECK(own->dirty || broken);
    if (0 == draw(3)) {
        if (fails(&plan.flush)) {
            own->dirty = false;
            return OPAL_ERROR;
        }
        make_visible(own);
        return OPAL_SUCCESS;
    }
    CHECK(MOST > flush_count);
    flushes[flush_count].done = done;
    flushes[flush_count].context = context;
    flushes[flush_count++].memory = own;
    return OPAL_ERR_WOULD_BLOCK;
}

static const mca_btl_umr_hca_ops_t hca = {
    .put_direct = hca_put_direct,
    .fin_reserve = hca_fin_reserve,
    .fin_cancel = hca_fin_cancel,
    .endpoint_broken = hca_endpoint_broken,
    .endpoint_break = hca_endpoint_break,
    .memory_flush = hca_memory_flush,
};

static void hca_progress(void)
{
    while (landed != put && 0 < draw(3)) {
        write_t *write = &writes[landed++ % MOST];

        if (fails(&plan.write)) {
            broken = true;
        }
        if (broken) {
            continue;
        }
        CHECK(!write->to->dirty);
        memset(write->to->late, 0x5a, write->to->buffer.room);
        memcpy(write->to->late, write->direct.buffer, write->direct.end - write->direct.start);
        write->to->dirty = true;
        write->arrived = true;
    }
    /* the receiver may hear of a write after the sender has */
    while (fins != landed && 0 < draw(3)) {
        if (writes[fins++ % MOST].arrived) {
            --reserved;
            CHECK(broken || (NULL != receiver && mca_pml_umrddt_pack_fin(receiver)));
        }
    }
    while (reported != landed && 0 < draw(3)) {
        write_t *write = &writes[reported++ % MOST];

        write->done(write->context, write->arrived ? OPAL_SUCCESS : OPAL_ERROR);
    }
    while (0 < flush_count && 0 < draw(3)) {
        own_buffer_t *own = flushes[0].memory;
        mca_btl_umr_done_fn_t done = flushes[0].done;
        void *context = flushes[0].context;
        int status = fails(&plan.flush) ? OPAL_ERROR : OPAL_SUCCESS;

        make_visible(own);
        memmove(&flushes[0], &flushes[1], --flush_count * sizeof(flushes[0]));
        done(context, status);
    }
    while (granted < grant_count && 0 < draw(3)) {
        if (NULL != sender) {
            CHECK(mca_pml_umrddt_pack_grant(sender, grants[granted % MOST].start));
        }
        ++granted;
    }
}

/* ---------------------------------------------------------------------------------------------
 * The rest of the component
 * ------------------------------------------------------------------------------------------- */

void mca_pml_umrddt_poll(mca_pml_umrddt_wait_t *wait, bool (*retry)(void *), void *owner)
{
    (void) wait;
    while (!retry(owner)) {
        hca_progress();
    }
}

void mca_pml_umrddt_reply_init(const mca_pml_umrddt_rts_t *rts,
                               mca_pml_umrddt_reply_kind_t reply_kind,
                               mca_pml_umrddt_reply_t *reply)
{
    (void) rts;
    memset(reply, 0, sizeof(*reply));
    reply->reply_kind = (uint32_t) reply_kind;
}

int mca_pml_umrddt_reply_send(mca_pml_umrddt_comm_t *comm, int peer,
                              const mca_pml_umrddt_reply_t *reply)
{
    (void) comm, (void) peer;
    CHECK(MCA_PML_UMRDDT_REPLY_CREDIT == reply->reply_kind && grant_count - granted < MOST);
    if (fails(&plan.grant)) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    grants[grant_count++ % MOST].start = reply->start;
    return OMPI_SUCCESS;
}

/* ---------------------------------------------------------------------------------------------
 * Messages
 * ------------------------------------------------------------------------------------------- */

/* A layout of blocks of any length, and its cost. */
static opal_iov_cache_layout_t *layout_new(uint64_t size, size_t *extent)
{
    opal_iov_cache_iov_t iovs[64];
    opal_iov_cache_form_t *form = NULL;
    opal_iov_cache_layout_t *layout = NULL;
    int64_t offset = 0;
    size_t n = 0;
    bool one = 0 == draw(4);

    while (0 < size) {
        uint64_t length = one || 63 == n ? size : 1 + draw(9000);

        length = length < size ? length : size;
        offset += one ? 0 : 1 + draw(100);
        iovs[n].offset = offset;
        iovs[n++].length = length;
        offset += (int64_t) length;
        size -= length;
    }
    CHECK(OPAL_SUCCESS == opal_iov_cache_form_of_pieces(iovs, n, &form));
    CHECK(OPAL_SUCCESS == opal_iov_cache_layout_of_form(form, &layout));
    *extent = (size_t) offset;
    return layout;
}

static opal_iov_cache_layout_t *layout_of_bytes(uint64_t size)
{
    opal_iov_cache_iov_t iov = {.offset = 0, .length = size};
    opal_iov_cache_form_t *form = NULL;
    opal_iov_cache_layout_t *layout = NULL;

    CHECK(OPAL_SUCCESS == opal_iov_cache_form_of_pieces(&iov, 1, &form));
    CHECK(OPAL_SUCCESS == opal_iov_cache_layout_of_form(form, &layout));
    return layout;
}

static opal_umrddt_gpu_where_t where_of(bool gpu)
{
    opal_umrddt_gpu_where_t where = {.mixed = false};

    where.memory.kind = gpu ? OPAL_UMRDDT_GPU_DEVICE : OPAL_UMRDDT_GPU_HOST;
    return where;
}

/* How both sides end. */
typedef struct ends_t {
    mca_pml_umrddt_pack_end_t sender, receiver;
    bool right; /* the bytes, if the receiver reports success */
} ends_t;

static ends_t message(bool by_hca, unsigned scheme)
{
    static mca_pml_umrddt_rts_t rts;
    static mca_pml_umrddt_comm_t comm;
    uint64_t total = 1 + draw(60000), chunk = 1024 + draw(9000);
    size_t extent[2];
    opal_iov_cache_layout_t *layout[2];
    unsigned char *user[2], *stream[2];
    opal_umrddt_gpu_where_t where[2] = {where_of(0 == draw(2)), where_of(0 == draw(2))};
    static struct {
        mca_pml_umrddt_reply_t reply;
        mca_pml_umrddt_wire_key_t keys[MCA_PML_UMRDDT_PACK_DEPTH];
    } report;
    ends_t ends = {MCA_PML_UMRDDT_PACK_WELL, MCA_PML_UMRDDT_PACK_WELL, false};
    mca_pml_umrddt_nack_header_t fail = {.in_flight = 0};
    bool over[2] = {false, false}, failed = false;
    int turns = 0;

    chunk = chunk < total ? chunk : total;
    for (int side = 0; side < 2; ++side) {
        layout[side] = layout_new(total, &extent[side]);
        user[side] = malloc(extent[side]);
        stream[side] = malloc(total);
        for (size_t i = 0; i < extent[side]; ++i) {
            user[side][i] = 0 == side ? (unsigned char) draw(256) : 0xee;
        }
    }
    for (int side = 0; side < 2; ++side) {
        where[side].memory.base = (uintptr_t) user[side];
        where[side].memory.size = 0 == draw(4) ? 0 : extent[side];
        if (opal_umrddt_gpu_on_gpu(&where[side])) {
            on_gpu_add(user[side], extent[side]);
        }
    }
    broken = false;
    reserved = 0;
    granted = grant_count = put = landed = reported = fins = flush_count = 0;
    posted = matched = sent = arrived = 0;
    mca_pml_umrddt.params.pack_depth = 1 + draw(MCA_PML_UMRDDT_PACK_DEPTH);
    mca_pml_umrddt_pack_job_t job = {.buf = user[1],
                                     .layout = layout[1],
                                     .where = &where[1],
                                     .in = true,
                                     .scheme = scheme,
                                     .total = total,
                                     .chunk = chunk,
                                     .comm = &comm,
                                     .device = 0 < draw(3),
                                     .endpoint = by_hca ? (mca_btl_umr_endpoint_t *) &hca : NULL,
                                     .rts = &rts};
    takes = 0 < draw(4);
    CHECK(OMPI_SUCCESS == mca_pml_umrddt_pack_begin(&job, &receiver));
    over[1] = mca_pml_umrddt_pack_step(receiver);
    mca_pml_umrddt_pack_report(receiver, &report.reply);
    job.slots = report.reply.key_count;
    job.granted = (uint32_t) report.reply.start;
    job.slot = report.reply.keys;
    job.fin = 77;
    job.in = false;
    job.buf = user[0];
    job.layout = layout[0];
    job.where = &where[0];
    job.device = 0 < draw(3);
    takes = 0 < draw(4);
    mca_pml_umrddt.params.pack_depth = 1 + draw(MCA_PML_UMRDDT_PACK_DEPTH);
    CHECK(OMPI_SUCCESS == mca_pml_umrddt_pack_begin(&job, &sender));
    while (!over[0] || !over[1]) {
        CHECK(100000 > ++turns && !entered);
        takes = 0 < draw(3); /* the application changes its context between calls of MPI */
        host_progress();
        hca_progress();
        if (!over[0] && (over[0] = mca_pml_umrddt_pack_step(sender))) {
            fail.written = sender->sent;
            ends.sender = mca_pml_umrddt_pack_end(sender);
            sender = NULL;
            fail.in_flight = MCA_PML_UMRDDT_PACK_BROKEN == ends.sender;
            failed = by_hca && (MCA_PML_UMRDDT_PACK_NOT_PACKED == ends.sender || fail.in_flight);
        }
        if (failed && 0 == draw(3)) {
            failed = false;
            if (!over[1]) {
                CHECK(mca_pml_umrddt_pack_sender_failed(receiver, &fail));
            }
        }
        if (!over[1] && (over[1] = mca_pml_umrddt_pack_step(receiver))) {
            ends.receiver = mca_pml_umrddt_pack_end(receiver);
            receiver = NULL;
            if (NULL != sender && by_hca
                && (MCA_PML_UMRDDT_PACK_BROKEN == ends.receiver
                    || MCA_PML_UMRDDT_PACK_NOT_PACKED == ends.receiver)) {
                sender->hca.stopped = true; /* it requests the base PML */
            }
        }
    }
    (void) opal_iov_cache_form_pack(layout[0]->form, user[0], 0, total, stream[0]);
    (void) opal_iov_cache_form_pack(layout[1]->form, user[1], 0, total, stream[1]);
    ends.right = 0 == memcmp(stream[0], stream[1], total);
    while (reported != put || fins != put) {
        hca_progress();
    }
    CHECK(0 == scratches && 0 == buffers && (broken || 0 == reserved));
    CHECK(by_hca || sent == arrived);
    for (int side = 0; side < 2; ++side) {
        OBJ_RELEASE(layout[side]);
        if (opal_umrddt_gpu_on_gpu(&where[side])) {
            on_gpu_remove(user[side]);
        }
        free(user[side]);
        free(stream[side]);
    }
    return ends;
}

static unsigned a_scheme(void)
{
    static const unsigned schemes[] = {MCA_PML_UMRDDT_BIT_PACK_GDR, MCA_PML_UMRDDT_BIT_PACK_STAGED,
                                       MCA_PML_UMRDDT_BIT_PACK_HOST};

    return schemes[draw(3)];
}

/* Whatever memory of GPUs there is. */
static void well(void)
{
    for (int turn = 0; turn < TURNS; ++turn) {
        plan.scratch = 0 == draw(3) ? 1 + (int) draw(12) : 0;
        ends_t ends = message(turn % 2, a_scheme());

        CHECK(MCA_PML_UMRDDT_PACK_WELL == ends.sender && ends.right);
        CHECK(MCA_PML_UMRDDT_PACK_WELL == ends.receiver);
    }
    plan.scratch = 0;
    CHECK(0 < mca_pml_umrddt.counters.pack_device && 0 < mca_pml_umrddt.counters.pack_no_gdr);
}

/* The base PML refuses a part: it is retried, and the other side never waits without end. */
static void refused(void)
{
    int lost = 0;

    for (int turn = 0; turn < TURNS; ++turn) {
        uint64_t before = mca_pml_umrddt.counters.pack_refused;
        ends_t ends;

        plan.isend = turn % 2 ? 1 + (int) draw(12) : 0;
        plan.irecv = turn % 2 ? 0 : 1 + (int) draw(12);
        plan.isend_for_ever = 0 == turn % 7;
        ends =
            message(false, turn % 3 ? MCA_PML_UMRDDT_BIT_PACK_HOST : MCA_PML_UMRDDT_BIT_PACK_GDR);
        CHECK(ends.sender == ends.receiver);
        CHECK(MCA_PML_UMRDDT_PACK_WELL == ends.sender
                  ? ends.right
                  : MCA_PML_UMRDDT_PACK_NOT_PACKED == ends.sender);
        CHECK(!plan.isend_for_ever || MCA_PML_UMRDDT_PACK_NOT_PACKED == ends.sender);
        CHECK(MCA_PML_UMRDDT_PACK_WELL == ends.sender
              || before < mca_pml_umrddt.counters.pack_refused);
        lost += MCA_PML_UMRDDT_PACK_NOT_PACKED == ends.sender;
        memset(&plan, 0, sizeof(plan));
    }
    CHECK(TURNS / 7 < lost);
}

/* For any failure of the HCA: the ends agree, and where the receiver reports success, the bytes are
 * right. */
static void failures(void)
{
    int received_before[8] = {0};

    for (int turn = 0; turn < 4 * TURNS; ++turn) {
        ends_t ends;

        plan.copy = 0 == turn % 4 ? 1 + (int) draw(20) : 0;
        plan.write = 1 == turn % 4 ? 1 + (int) draw(20) : 0;
        plan.flush = 2 == turn % 4 ? 1 + (int) draw(20) : 0;
        plan.grant = 3 == turn % 4 ? 1 + (int) draw(3) : 0;
        ends = message(true, a_scheme());
        ++received_before[ends.receiver];
        switch (ends.receiver) {
        case MCA_PML_UMRDDT_PACK_WELL:
            CHECK(ends.right);
            CHECK(MCA_PML_UMRDDT_PACK_WELL == ends.sender
                  || MCA_PML_UMRDDT_PACK_BROKEN == ends.sender);
            break;
        case MCA_PML_UMRDDT_PACK_NOT_PACKED:
            CHECK(MCA_PML_UMRDDT_PACK_NOT_PACKED == ends.sender && !broken);
            break;
        case MCA_PML_UMRDDT_PACK_BROKEN:
            CHECK(MCA_PML_UMRDDT_PACK_BROKEN == ends.sender
                  || MCA_PML_UMRDDT_PACK_STOPPED == ends.sender);
            CHECK(broken);
            break;
        default:
            CHECK(MCA_PML_UMRDDT_PACK_FAILED == ends.receiver);
            CHECK(MCA_PML_UMRDDT_PACK_WELL == ends.sender);
            break;
        }
        memset(&plan, 0, sizeof(plan));
    }
    CHECK(0 < received_before[MCA_PML_UMRDDT_PACK_WELL]
          && 0 < received_before[MCA_PML_UMRDDT_PACK_NOT_PACKED]);
    CHECK(0 < received_before[MCA_PML_UMRDDT_PACK_BROKEN]
          && 0 < received_before[MCA_PML_UMRDDT_PACK_FAILED]);
}

/* ---------------------------------------------------------------------------------------------
 * A PACK that makes no sense
 * ------------------------------------------------------------------------------------------- */

enum {
    SIZE = 100000,
    CHUNK = 8192,
    PLACES = 4
};

/* What a sender may do with it. */
static bool makes_sense(const mca_pml_umrddt_reply_t *reply, unsigned offered, bool able)
{
    uint64_t chunks;

    if (1 != __builtin_popcount(reply->what) || 0 == (reply->what & offered & 0x70)
        || 1 > reply->total || SIZE < reply->total || 1 > reply->chunk
        || reply->chunk > reply->total || reply->chunk > MCA_PML_UMRDDT_MAX_PACK_CHUNK
        || (1024 > reply->chunk && reply->chunk != reply->total)) {
        return false;
    }
    chunks = (reply->total + reply->chunk - 1) / reply->chunk;
    if (reply->start > chunks) {
        return false;
    }
    if (0 == reply->key_count) {
        return true;
    }
    for (uint32_t i = 0; i < reply->key_count && i < 16; ++i) {
        if (reply->keys[i].length < reply->chunk
            || reply->keys[i].addr + reply->keys[i].length < reply->keys[i].addr) {
            return false;
        }
    }
    return able && 16 >= reply->key_count && reply->start <= reply->key_count;
}

static void hostile(void)
{
    size_t room = sizeof(mca_pml_umrddt_reply_t) + 20 * sizeof(mca_pml_umrddt_wire_key_t);
    size_t length = sizeof(mca_pml_umrddt_reply_t) + PLACES * sizeof(mca_pml_umrddt_wire_key_t);
    mca_pml_umrddt_reply_t *reply = calloc(1, room), *bad = calloc(1, room);
    unsigned long accepted = 0, not_accepted = 0;

    reply->total = SIZE;
    reply->chunk = CHUNK;
    reply->start = PLACES;
    reply->what = MCA_PML_UMRDDT_BIT_PACK_GDR;
    reply->key_count = PLACES;
    for (uint32_t i = 0; i < PLACES; ++i) {
        reply->keys[i].addr = UINT64_C(0x7000000000) + i * CHUNK;
        reply->keys[i].length = CHUNK;
    }
    CHECK(mca_pml_umrddt_pack_reply_valid(reply, length, 0x70, SIZE, true));
    CHECK(!mca_pml_umrddt_pack_reply_valid(reply, length, 0x30, SIZE, true));  /* not offered */
    CHECK(!mca_pml_umrddt_pack_reply_valid(reply, length, 0x70, SIZE, false)); /* without an HCA */
    CHECK(!mca_pml_umrddt_pack_reply_valid(reply, length, 0x70, SIZE - 1, true));
    for (size_t other = sizeof(*reply); other <= room; ++other) {
        CHECK((other == length) == mca_pml_umrddt_pack_reply_valid(reply, other, 0x70, SIZE, true));
    }
    /* every byte of it another one, and many of them at once */
    for (unsigned turn = 0; turn < 200000; ++turn) {
        unsigned bytes = turn < length * 255 ? 1 : 1 + draw(4);
        unsigned offered = 0x10u << draw(3) | (0 == draw(2) ? 0x70 : 0);
        bool able = 0 < draw(8), valid;

        memcpy(bad, reply, room);
        bad->what = 0x10u << draw(3);
        bad->key_count = 0 == draw(3) ? 0 : PLACES;
        for (unsigned i = 0; i < bytes; ++i) {
            size_t at = turn < length * 255 ? turn / 255 : draw((unsigned) length);

            ((unsigned char *) bad)[at] =
                (unsigned char) (((unsigned char *) bad)[at] + 1 + turn % 255);
        }
        length = sizeof(*bad) + (20 > bad->key_count ? bad->key_count : 20) * sizeof(bad->keys[0]);
        valid = mca_pml_umrddt_pack_reply_valid(bad, length, offered, SIZE, able);
        CHECK(valid == makes_sense(bad, offered, able));
        accepted += valid;
        not_accepted += !valid;
        length = sizeof(*bad) + PLACES * sizeof(bad->keys[0]);
    }
    CHECK(1000 < accepted && 1000 < not_accepted);
    free(reply);
    free(bad);
}

int main(int argc, char **argv)
{
    seed = 1 < argc ? (unsigned) atoi(argv[1]) : 1;
    /* Failures are reported by opal_output, which 5.0 does not initialize by itself. */
    CHECK(OPAL_SUCCESS == opal_init_util(&argc, &argv));
    mca_pml_umrddt.params.pack_bytes = 1 << 20;
    mca_pml_umrddt.host.pml_isend = host_isend;
    mca_pml_umrddt.host.pml_irecv = host_irecv;
    mca_pml_umrddt.hca = &hca;
    bytes_layout = layout_of_bytes(65536);
    well();
    refused();
    failures();
    hostile();
    CHECK(0 == mca_pml_umrddt.active);
    mca_pml_umrddt_pack_close();
    OBJ_RELEASE(bytes_layout);
    CHECK(OPAL_SUCCESS == opal_finalize_util());
    printf("%lu checks\n", checks);
    return 0;
}
