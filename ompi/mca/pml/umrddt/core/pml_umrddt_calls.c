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
 * The functions for libumrddt_mpi; read pml_umrddt_calls.h first.
 *
 * A call on system memory, or with a wrong argument, is passed to Open MPI, which does the checks
 * and calls the error handler. Here only copies, conversions and messages can fail.
 */

#include "ompi_config.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "ompi/communicator/comm_request.h"
#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/errhandler/errhandler.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/request/request.h"

#include "opal/mca/common/umrddt_gpu/engine/umrddt_gpu_scratch.h"

#include "ompi/mca/pml/umrddt/pml_umrddt.h"
#include "ompi/mca/pml/umrddt/pml_umrddt_calls.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_layout.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_stage.h"

#define PASS MCA_PML_UMRDDT_CALLS_PASS

/** A buffer of a call, and packed bytes: the arguments of a pack or unpack. */
typedef struct ends_t {
    void *buf;
    size_t count;
    ompi_datatype_t *datatype;
    unsigned char *bytes; /**< from the position on */
    size_t size;          /**< of the packed bytes */
    bool in;              /**< from the packed bytes into the buffer */
    opal_umrddt_gpu_where_t user, packed;
} ends_t;

/** Returns true for a call that Open MPI does: on what is certainly system memory, or without a
 * type. */
static inline bool is_plain(const void *buf, size_t count, const ompi_datatype_t *datatype,
                            const void *bytes, size_t position)
{
    return OPAL_UNLIKELY(NULL == datatype)
           || (opal_umrddt_gpu_surely_system(buf, count, &datatype->super)
               && opal_umrddt_gpu_surely_system((const char *) bytes + position, 1,
                                                &ompi_mpi_byte.dt.super));
}

/** Returns true if data of this type can be copied, and sets the number of bytes, which is not 0.
 */
static bool has_data(const ompi_datatype_t *datatype, size_t count, size_t *size)
{
    return &ompi_mpi_datatype_null.dt != datatype && opal_datatype_is_committed(&datatype->super)
           && !__builtin_mul_overflow(count, datatype->super.size, size) && 0 != *size
           && PTRDIFF_MAX > *size;
}

/** Look both memories up. @return false: system memory, or a NULL that Open MPI reports */
static bool look(ends_t *ends, size_t position)
{
    if (NULL == ends->bytes
        || (NULL == ends->buf
            && (0 != (OPAL_DATATYPE_FLAG_PREDEFINED & ends->datatype->super.flags)
                || 0 == ends->datatype->super.true_lb))) {
        return false;
    }
    ends->bytes += position;
    mca_pml_umrddt_look(ends->buf, ends->count, ends->datatype, &ends->user);
    mca_pml_umrddt_look(ends->bytes, ends->size, &ompi_mpi_byte.dt, &ends->packed);
    return opal_umrddt_gpu_on_gpu(&ends->user) || opal_umrddt_gpu_on_gpu(&ends->packed);
}

/** Copy between a buffer in any memory and packed bytes in system memory. */
static int transfer(void *buf, size_t count, ompi_datatype_t *datatype,
                    const opal_umrddt_gpu_where_t *where, void *stream, size_t size, bool in)
{
    opal_umrddt_gpu_stream_copy_t transit;
    int rc;

    if (!opal_umrddt_gpu_on_gpu(where)) {
        if (in) {
            opal_umrddt_gpu_stream_unpack(buf, count, &datatype->super, stream, size);
        } else {
            (void) opal_umrddt_gpu_stream_pack(buf, count, &datatype->super, stream, size);
        }
        return OMPI_SUCCESS;
    }
    rc = mca_pml_umrddt_transit(&transit, buf, count, datatype, where, stream, OPAL_UMRDDT_GPU_HOST,
                                size, in);
    return OMPI_SUCCESS == rc ? opal_umrddt_gpu_stream_copy_wait(&transit) : rc;
}

/** One of the two is in several memories: through system memory. */
static int copy_mixed(ends_t *ends)
{
    opal_umrddt_gpu_stage_t stage = {.bytes = NULL};
    int rc = opal_umrddt_gpu_stage_plain(ends->size, &stage);

    for (int half = 0; half < 2 && OMPI_SUCCESS == rc; ++half) {
        rc = (0 == half) == ends->in ? transfer(ends->bytes, ends->size, &ompi_mpi_byte.dt,
                                                &ends->packed, stage.bytes, ends->size, 0 != half)
                                     : transfer(ends->buf, ends->count, ends->datatype, &ends->user,
                                                stage.bytes, ends->size, 0 != half);
    }
    opal_umrddt_gpu_stage_put(&stage);
    return rc;
}

/** Copy by one operation of the GPU. */
static int copy(ends_t *ends)
{
    const opal_umrddt_gpu_memory_t *user = &ends->user.memory, *packed = &ends->packed.memory;
    const bool by_user = opal_umrddt_gpu_on_gpu(&ends->user);
    const bool both = opal_umrddt_gpu_on_device(&ends->user)
                      && opal_umrddt_gpu_on_device(&ends->packed) && user->device == packed->device
                      && user->ctx == packed->ctx;
    opal_umrddt_gpu_copy_end_t here = {.address = (uintptr_t) ends->buf,
                                       .kind = user->kind,
                                       .reached = by_user,
                                       .on_device = both};
    opal_umrddt_gpu_copy_end_t there = {.address = (uintptr_t) ends->bytes,
                                        .kind = packed->kind,
                                        .reached = both || !by_user,
                                        .on_device = both};
    opal_umrddt_gpu_engine_t *engine;
    opal_umrddt_gpu_copy_t *one;
    int rc = opal_umrddt_gpu_engine_get(by_user ? user : packed, &engine);

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    if (mca_pml_umrddt_is_contiguous(ends->datatype, ends->count)) {
        here.address += (uint64_t) ends->datatype->super.true_lb;
    } else {
        rc = mca_pml_umrddt_layout(ends->datatype, ends->count, &here.layout);
        if (OMPI_SUCCESS != rc) {
            return rc;
        }
    }
    rc = opal_umrddt_gpu_copy(engine, ends->in ? &there : &here, ends->in ? &here : &there, 0,
                              ends->size, &one);
    if (OMPI_SUCCESS == rc) {
        rc = opal_umrddt_gpu_copy_wait(one);
    }
    if (NULL != here.layout) {
        OBJ_RELEASE(here.layout);
    }
    return rc;
}

static int copy_any(ends_t *ends)
{
    MCA_PML_UMRDDT_COUNT(library_calls);
    return ends->user.mixed || ends->packed.mixed ? copy_mixed(ends) : copy(ends);
}

/** MPI_Pack and MPI_Unpack, for memory that is not plain. The bytes begin before the position. */
static int move(ends_t ends, size_t room, size_t *position, ompi_communicator_t *comm,
                const char *name)
{
    int rc;

    if (!has_data(ends.datatype, ends.count, &ends.size) || *position > room
        || ends.size > room - *position || NULL == comm || ompi_comm_invalid(comm)
        || !look(&ends, *position)) {
        return PASS;
    }
    rc = copy_any(&ends);
    if (OMPI_SUCCESS == rc) {
        *position += ends.size;
    }
    OMPI_ERRHANDLER_RETURN(rc, comm, rc, name);
}

static ends_t ends_of(const void *buf, size_t count, ompi_datatype_t *datatype, const void *bytes,
                      bool in)
{
    ends_t ends = {.buf = (void *) buf,
                   .count = count,
                   .datatype = datatype,
                   .bytes = (void *) bytes,
                   .in = in};

    return ends;
}

static int pack(const void *inbuf, size_t incount, MPI_Datatype datatype, void *outbuf,
                size_t outsize, size_t *position, MPI_Comm comm)
{
    return OPAL_LIKELY(is_plain(inbuf, incount, datatype, outbuf, *position))
               ? PASS
               : move(ends_of(inbuf, incount, datatype, outbuf, false), outsize, position, comm,
                      "MPI_Pack");
}

static int unpack(const void *inbuf, size_t insize, size_t *position, void *outbuf, size_t outcount,
                  MPI_Datatype datatype, MPI_Comm comm)
{
    return OPAL_LIKELY(is_plain(outbuf, outcount, datatype, inbuf, *position))
               ? PASS
               : move(ends_of(outbuf, outcount, datatype, inbuf, true), insize, position, comm,
                      "MPI_Unpack");
}

/* ---------------------------------------------------------------------------------------------
 * external32: Open MPI converts, in system memory
 * ------------------------------------------------------------------------------------------- */

/** System memory in place of the memories of a call. */
typedef struct shadow_t {
    ptrdiff_t low;                  /**< first byte of the data, from the buffer's address on */
    size_t length;                  /**< from there to the end of the last one */
    opal_umrddt_gpu_stage_t span;   /**< of the buffer, with the data at the offsets of its type */
    opal_umrddt_gpu_stage_t stream; /**< the buffer's data, packed by umrddt */
    opal_umrddt_gpu_stage_t packed; /**< of the packed bytes */
    void *buf;                      /**< arguments for Open MPI */
    unsigned char *bytes;
} shadow_t;

/** Set the range of a buffer. @return false: not one of a buffer in memory */
static bool shadow_span(shadow_t *shadow, const ends_t *ends)
{
    const opal_datatype_t *type = &ends->datatype->super;
    ptrdiff_t more, high;

    return !__builtin_mul_overflow(ends->count - 1, type->ub - type->lb, &more)
           && !__builtin_add_overflow(type->true_lb, 0 > more ? more : 0, &shadow->low)
           && !__builtin_add_overflow(type->true_ub, 0 < more ? more : 0, &high)
           && !__builtin_sub_overflow(high, shadow->low, &shadow->length);
}

/** Allocate system memory for the memories of a call. @param[in] size  bytes of the type and count
 */
static int shadow_make(shadow_t *shadow, const ends_t *ends, size_t size)
{
    int rc = OMPI_SUCCESS;

    shadow->buf = ends->buf;
    shadow->bytes = ends->bytes;
    if (opal_umrddt_gpu_on_gpu(&ends->user)) {
        rc = opal_umrddt_gpu_stage_plain(shadow->length, &shadow->span);
        if (OMPI_SUCCESS == rc) {
            shadow->buf = (void *) ((uintptr_t) shadow->span.bytes - (uintptr_t) shadow->low);
            rc = opal_umrddt_gpu_stage_plain(size, &shadow->stream);
        }
    }
    if (OMPI_SUCCESS == rc && opal_umrddt_gpu_on_gpu(&ends->packed)) {
        rc = opal_umrddt_gpu_stage_plain(ends->size, &shadow->packed);
        shadow->bytes = shadow->packed.bytes;
    }
    return rc;
}

/** Copy the user's data of a buffer to or (@p back) from the system memory in place of it. */
static int shadow_buffer(const shadow_t *shadow, const ends_t *ends, size_t size, bool back)
{
    unsigned char *stream = shadow->stream.bytes;
    int rc;

    if (NULL == stream) {
        return OMPI_SUCCESS;
    }
    if (back) {
        (void) opal_umrddt_gpu_stream_pack(shadow->buf, ends->count, &ends->datatype->super, stream,
                                           size);
    }
    rc = transfer(ends->buf, ends->count, ends->datatype, &ends->user, stream, size, back);
    if (OMPI_SUCCESS == rc && !back) {
        opal_umrddt_gpu_stream_unpack(shadow->buf, ends->count, &ends->datatype->super, stream,
                                      size);
    }
    return rc;
}

/** The same for the packed bytes. */
static int shadow_packed(const shadow_t *shadow, const ends_t *ends, size_t size, bool back)
{
    return NULL == shadow->packed.bytes ? OMPI_SUCCESS
                                        : transfer(ends->bytes, size, &ompi_mpi_byte.dt,
                                                   &ends->packed, shadow->packed.bytes, size, back);
}

/**
 * Copy, convert and copy. Open MPI's own functions convert, because MPI_Pack_external is the
 * library's.
 */
static int convert(const char *datarep, const shadow_t *shadow, const ends_t *ends, size_t size,
                   MPI_Aint *done)
{
    const MPI_Aint room = (MPI_Aint) ends->size;
    int rc = ends->in ? shadow_packed(shadow, ends, ends->size, false)
                      : shadow_buffer(shadow, ends, size, false);

    if (OMPI_SUCCESS == rc) {
        rc = ends->in ? ompi_datatype_unpack_external(
                 datarep, shadow->bytes, room, done, shadow->buf, (int) ends->count, ends->datatype)
                      : ompi_datatype_pack_external(datarep, shadow->buf, (int) ends->count,
                                                    ends->datatype, shadow->bytes, room, done);
    }
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    return ends->in ? shadow_buffer(shadow, ends, size, true)
                    : shadow_packed(shadow, ends, (size_t) *done, true);
}

static int external(const char *datarep, ends_t ends, size_t room, size_t *position,
                    const char *name)
{
    shadow_t shadow = {.buf = NULL};
    MPI_Aint length = 0, done = 0;
    size_t size = 0;
    int rc;

    if (!has_data(ends.datatype, ends.count, &size) || INT_MAX < ends.count || *position > room
        || OMPI_SUCCESS
               != ompi_datatype_pack_external_size(datarep, (int) ends.count, ends.datatype,
                                                   &length)
        || (size_t) length > room - *position || !shadow_span(&shadow, &ends)) {
        return PASS;
    }
    ends.size = (size_t) length;
    if (!look(&ends, *position)) {
        return PASS;
    }
    MCA_PML_UMRDDT_COUNT(library_calls);
    rc = shadow_make(&shadow, &ends, size);
    if (OMPI_SUCCESS == rc) {
        rc = convert(datarep, &shadow, &ends, size, &done);
    }
    opal_umrddt_gpu_stage_put(&shadow.span);
    opal_umrddt_gpu_stage_put(&shadow.stream);
    opal_umrddt_gpu_stage_put(&shadow.packed);
    if (OMPI_SUCCESS == rc) {
        *position += (size_t) done;
    }
    OMPI_ERRHANDLER_RETURN(rc, MPI_COMM_WORLD, rc, name);
}

static int pack_external(const char *datarep, const void *inbuf, size_t incount,
                         MPI_Datatype datatype, void *outbuf, size_t outsize, size_t *position)
{
    return is_plain(inbuf, incount, datatype, outbuf, *position)
               ? PASS
               : external(datarep, ends_of(inbuf, incount, datatype, outbuf, false), outsize,
                          position, "MPI_Pack_external");
}

static int unpack_external(const char *datarep, const void *inbuf, size_t insize, size_t *position,
                           void *outbuf, size_t outcount, MPI_Datatype datatype)
{
    return is_plain(outbuf, outcount, datatype, inbuf, *position)
               ? PASS
               : external(datarep, ends_of(outbuf, outcount, datatype, inbuf, true), insize,
                          position, "MPI_Unpack_external");
}

/* ---------------------------------------------------------------------------------------------
 * MPI_Sendrecv_replace and MPI_Isendrecv_replace: the data are packed, then the receive is posted
 * over them
 * ------------------------------------------------------------------------------------------- */

/** A call, until both messages have ended. */
typedef struct replaced_t {
    uint64_t scratch;              /**< the packed data, in GPU memory; 0: none */
    opal_umrddt_gpu_stage_t stage; /**< the packed data, in system memory */
    ompi_request_t *receive, *send;
} replaced_t;

/**
 * Pack into GPU memory if umrddt handles contiguous messages of this size, else into system memory,
 * which the base PML sends.
 */
static int replaced_pack(replaced_t *replaced, ends_t *ends)
{
    const opal_umrddt_gpu_where_t *where = &ends->user;
    opal_umrddt_gpu_engine_t *engine;

    if (mca_pml_umrddt.takes_contiguous && ends->size >= mca_pml_umrddt.contiguous_from
        && !where->mixed && opal_umrddt_gpu_on_device(where)
        && OMPI_SUCCESS == opal_umrddt_gpu_engine_get(&where->memory, &engine)
        && OMPI_SUCCESS == opal_umrddt_gpu_scratch_get(engine, ends->size, &replaced->scratch)) {
        ends->bytes = (unsigned char *) (uintptr_t) replaced->scratch;
        mca_pml_umrddt_look(ends->bytes, ends->size, &ompi_mpi_byte.dt, &ends->packed);
        return copy(ends);
    }
    return mca_pml_umrddt_stage_pack(ends->buf, ends->count, ends->datatype, where,
                                     &replaced->stage);
}

/**
 * Send the packed data. System memory goes to the base PML at once: neither the scheme nor the
 * user's assertion about send buffers is about it.
 */
static int replaced_send(replaced_t *replaced, const ends_t *ends, int dest, int tag,
                         ompi_communicator_t *comm)
{
    ompi_datatype_t *type;
    size_t count;
    int rc;

    if (0 != replaced->scratch) {
        return MCA_PML_CALL(isend((void *) (uintptr_t) replaced->scratch, ends->size, MPI_PACKED,
                                  dest, tag, MCA_PML_BASE_SEND_STANDARD, comm, &replaced->send));
    }
    mca_pml_umrddt_stage_as(ends->size, !mca_pml_umrddt_is_contiguous(ends->datatype, ends->count),
                            &count, &type);
    rc = mca_pml_umrddt.host.pml_isend(replaced->stage.bytes, count, type, dest, tag,
                                       MCA_PML_BASE_SEND_STANDARD, comm, &replaced->send);
    mca_pml_umrddt_stage_as_end(type);
    return rc;
}

/** Wait for a message, also if it fails, and free its request. */
static int replaced_wait(ompi_request_t **request, MPI_Status *status)
{
    int rc = ompi_request_wait(request, status);

    if (MPI_REQUEST_NULL != *request) {
        (void) ompi_request_free(request); /* of a message that failed */
    }
    return rc;
}

static void replaced_end(replaced_t *replaced)
{
    if (0 != replaced->scratch) {
        opal_umrddt_gpu_scratch_put(replaced->scratch);
    }
    opal_umrddt_gpu_stage_put(&replaced->stage);
}

/** Start both messages. On an error none is left. */
static int replaced_start(replaced_t *replaced, ends_t *ends, int dest, int sendtag, int source,
                          int recvtag, ompi_communicator_t *comm)
{
    int rc = replaced_pack(replaced, ends);

    MCA_PML_UMRDDT_COUNT(library_calls);
    if (OMPI_SUCCESS == rc) {
        rc = MCA_PML_CALL(irecv(ends->buf, ends->count, ends->datatype, source, recvtag, comm,
                                &replaced->receive));
    }
    if (OMPI_SUCCESS == rc) {
        rc = replaced_send(replaced, ends, dest, sendtag, comm);
        if (OMPI_SUCCESS != rc) {
            (void) ompi_request_cancel(replaced->receive);
            (void) replaced_wait(&replaced->receive, MPI_STATUS_IGNORE);
        }
    }
    if (OMPI_SUCCESS != rc) {
        replaced_end(replaced);
    }
    return rc;
}

/** Returns true if Open MPI would report no wrong argument, and a message is sent and received. */
static bool is_exchange(const ompi_communicator_t *comm, int dest, int sendtag, int source,
                        int recvtag)
{
    ompi_communicator_t *of = (ompi_communicator_t *) comm;

    return NULL != comm && !ompi_comm_invalid(of) && MPI_PROC_NULL != dest
           && MPI_PROC_NULL != source && !ompi_comm_peer_invalid(of, dest)
           && (MPI_ANY_SOURCE == source || !ompi_comm_peer_invalid(of, source)) && 0 <= sendtag
           && mca_pml.pml_max_tag >= sendtag && (0 <= recvtag || MPI_ANY_TAG == recvtag)
           && mca_pml.pml_max_tag >= recvtag;
}

/** Returns true for a call that umrddt does, and looks the memory up. */
static bool is_replaced(ends_t *ends, int dest, int sendtag, int source, int recvtag,
                        const ompi_communicator_t *comm)
{
    if (NULL == ends->datatype
        || opal_umrddt_gpu_surely_system(ends->buf, ends->count, &ends->datatype->super)
        || !has_data(ends->datatype, ends->count, &ends->size)
        || !is_exchange(comm, dest, sendtag, source, recvtag)) {
        return false;
    }
    mca_pml_umrddt_look(ends->buf, ends->count, ends->datatype, &ends->user);
    return opal_umrddt_gpu_on_gpu(&ends->user);
}

static int sendrecv_replace(void *buf, size_t count, MPI_Datatype datatype, int dest, int sendtag,
                            int source, int recvtag, MPI_Comm comm, MPI_Status *status)
{
    ends_t ends = ends_of(buf, count, datatype, NULL, false);
    replaced_t replaced = {.scratch = 0};
    int rc, sent;

    if (!is_replaced(&ends, dest, sendtag, source, recvtag, comm)) {
        return PASS;
    }
    rc = replaced_start(&replaced, &ends, dest, sendtag, source, recvtag, comm);
    if (OMPI_SUCCESS == rc) {
        sent = replaced_wait(&replaced.send, MPI_STATUS_IGNORE);
        if (OMPI_SUCCESS != sent) {
            (void) ompi_request_cancel(replaced.receive);
        }
        rc = replaced_wait(&replaced.receive, status);
        rc = OMPI_SUCCESS != sent ? sent : rc;
        replaced_end(&replaced);
    }
    OMPI_ERRHANDLER_RETURN(rc, comm, rc, "MPI_Sendrecv_replace");
}

#if MCA_PML_UMRDDT_CALLS_MPI4

/** Context of the request of MPI_Isendrecv_replace: a request of Open MPI for several others. */
typedef struct mca_pml_umrddt_replacing_t {
    opal_object_t super;
    ompi_comm_request_t *both;
    ompi_request_cancel_fn_t cancel; /**< of Open MPI */
    replaced_t replaced;
} mca_pml_umrddt_replacing_t;

/** The request is freed. Open MPI keeps it for its own use. */
static void replacing_destruct(mca_pml_umrddt_replacing_t *replacing)
{
    replacing->both->super.req_type = OMPI_REQUEST_COMM;
    replacing->both->super.req_cancel = replacing->cancel;
    OBJ_RELEASE(replacing->both->super.req_mpi_object.comm);
}

OBJ_CLASS_INSTANCE(mca_pml_umrddt_replacing_t, opal_object_t, NULL, replacing_destruct);

/**
 * MPI_Cancel, which has no meaning for both messages. The function of Open MPI removes the request
 * from its lists: it never completes then, and the messages and the scratch memory are lost.
 */
static int replacing_cancel(ompi_request_t *request, int flag)
{
    (void) request;
    (void) flag;
    return MPI_ERR_REQUEST;
}

/** Both messages have ended. @return the error of the request */
static int replacing_ended(ompi_comm_request_t *both)
{
    replaced_t *replaced = &((mca_pml_umrddt_replacing_t *) both->context)->replaced;
    const int sent = replaced->send->req_status.MPI_ERROR;

    OMPI_COPY_STATUS(&both->super.req_status, replaced->receive->req_status, false);
    (void) ompi_request_free(&replaced->receive);
    (void) ompi_request_free(&replaced->send);
    replaced_end(replaced);
    return MPI_SUCCESS != sent ? sent : both->super.req_status.MPI_ERROR;
}

/** A request with its context. @return NULL: no memory */
static mca_pml_umrddt_replacing_t *replacing_new(ompi_communicator_t *comm)
{
    ompi_comm_request_t *both = ompi_comm_request_get();
    mca_pml_umrddt_replacing_t *replacing = NULL;

    if (NULL != both) {
        replacing = OBJ_NEW(mca_pml_umrddt_replacing_t);
        if (NULL == replacing) {
            ompi_comm_request_return(both);
        }
    }
    if (NULL != replacing) {
        memset(&replacing->replaced, 0, sizeof(replacing->replaced));
        replacing->both = both;
        both->context = &replacing->super;
        /* Open MPI calls the error handler of the communicator for this type, and not for
         * OMPI_REQUEST_COMM */
        both->super.req_type = OMPI_REQUEST_COLL;
        replacing->cancel = both->super.req_cancel;
        both->super.req_cancel = replacing_cancel;
        both->super.req_mpi_object.comm = comm;
        OBJ_RETAIN(comm);
    }
    return replacing;
}

static int isendrecv_replace(void *buf, size_t count, MPI_Datatype datatype, int dest, int sendtag,
                             int source, int recvtag, MPI_Comm comm, MPI_Request *request)
{
    ends_t ends = ends_of(buf, count, datatype, NULL, false);
    mca_pml_umrddt_replacing_t *replacing;
    int rc = OMPI_ERR_OUT_OF_RESOURCE;

    if (NULL == request || !is_replaced(&ends, dest, sendtag, source, recvtag, comm)) {
        return PASS;
    }
    replacing = replacing_new(comm);
    if (NULL != replacing) {
        replaced_t *replaced = &replacing->replaced;

        rc = replaced_start(replaced, &ends, dest, sendtag, source, recvtag, comm);
        if (OMPI_SUCCESS == rc) {
            ompi_request_t *parts[] = {replaced->receive, replaced->send};

            rc = ompi_comm_request_schedule_append_w_flags(replacing->both, replacing_ended, parts,
                                                           2, OMPI_COMM_REQ_FLAG_RETAIN_SUBREQ);
            if (OMPI_SUCCESS != rc) {
                (void) replaced_wait(&replaced->send, MPI_STATUS_IGNORE);
                (void) replaced_wait(&replaced->receive, MPI_STATUS_IGNORE);
                replaced_end(replaced);
            }
        }
        if (OMPI_SUCCESS == rc) {
            *request = &replacing->both->super;
            ompi_comm_request_start(replacing->both);
        } else {
            ompi_comm_request_return(replacing->both);
        }
    }
    OMPI_ERRHANDLER_RETURN(rc, comm, rc, "MPI_Isendrecv_replace");
}

#endif /* MCA_PML_UMRDDT_CALLS_MPI4 */

/* ---------------------------------------------------------------------------------------------
 * The library
 * ------------------------------------------------------------------------------------------- */

static const mca_pml_umrddt_calls_t table = {.pack = pack,
                                             .unpack = unpack,
                                             .pack_external = pack_external,
                                             .unpack_external = unpack_external,
                                             .sendrecv_replace = sendrecv_replace,
#if MCA_PML_UMRDDT_CALLS_MPI4
                                             .isendrecv_replace = isendrecv_replace,
#endif
                                             .has_gpu = opal_umrddt_gpu_exists};

static void attach(const mca_pml_umrddt_calls_t *calls)
{
    void (*function)(const mca_pml_umrddt_calls_t *) = NULL;
    void *library = NULL;

    *(void **) &function = dlsym(RTLD_DEFAULT, MCA_PML_UMRDDT_CALLS_ATTACH);
    if (NULL == function
        && NULL != (library = mca_pml_umrddt_calls_library(MCA_PML_UMRDDT_CALLS_LIBRARY))) {
        *(void **) &function = dlsym(library, MCA_PML_UMRDDT_CALLS_ATTACH);
    }
    if (NULL != function) {
        function(calls);
    }
    if (NULL != library) {
        (void) dlclose(library);
    }
}

void mca_pml_umrddt_calls_open(void)
{
    if (NULL != mca_pml_umrddt.gpu) {
        attach(&table);
    }
}

void mca_pml_umrddt_calls_close(void)
{
    attach(NULL);
}
