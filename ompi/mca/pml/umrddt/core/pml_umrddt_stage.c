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
 * Sends from staging buffers by the base PML. See pml_umrddt_stage.h first.
 */

#include "ompi_config.h"

#include <limits.h>
#include <pthread.h>

#include "ompi/mca/pml/umrddt/pml_umrddt.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_layout.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_stage.h"
#include "umrddt_help.h"

void mca_pml_umrddt_stage_failed(const opal_umrddt_gpu_where_t *where, size_t size, bool in, int rc)
{
    static int reported;

    if (0 == __atomic_exchange_n(&reported, 1, __ATOMIC_RELAXED)) {
        opal_show_help("help-mca-pml-umrddt.txt", "stage-failed", true, size,
                       in ? "received" : "sent",
                       where->mixed ? "in several memories, some of a GPU" : "in GPU memory", rc);
    }
}

int mca_pml_umrddt_transit(opal_umrddt_gpu_stream_copy_t *transit, const void *buf, size_t count,
                           ompi_datatype_t *datatype, const opal_umrddt_gpu_where_t *where,
                           void *bytes, opal_umrddt_gpu_kind_t kind, size_t length, bool in)
{
    opal_iov_cache_layout_t *layout = NULL;

    if (mca_pml_umrddt_is_contiguous(datatype, count)) {
        buf = (const char *) buf + datatype->super.true_lb;
    } else if (0 < length) {
        int rc = mca_pml_umrddt_layout(datatype, count, &layout);

        if (OMPI_SUCCESS != rc) {
            return rc;
        }
    }
    return opal_umrddt_gpu_stream_copy(transit, buf, layout, where, bytes, kind, length, in);
}

/* ---------------------------------------------------------------------------------------------
 * Datatype of a staging buffer for the base PML
 *
 * It is sent as bytes, with one exception. pml/ob1 of Open MPI 4.1 lets the receiver read a
 * contiguous message whole, even if it is too long for the receive. It then writes behind the
 * buffer. A message that is non-contiguous for the user must not trigger that. It is therefore sent
 * with a datatype that is marked as having gaps.
 * ------------------------------------------------------------------------------------------- */

#define TYPES      16
#define TYPE_BYTES ((size_t) 256) /* smaller messages are always sent eagerly */

/** Cached datatypes of recent sizes. */
static struct {
    pthread_mutex_t lock;
    ompi_datatype_t *type[TYPES];
    unsigned next;
} types = {.lock = PTHREAD_MUTEX_INITIALIZER};

/** NULL: no memory */
static ompi_datatype_t *type_new(size_t size)
{
    ompi_datatype_t *type = NULL;

    if (OMPI_SUCCESS != ompi_datatype_create_contiguous((int) size, &ompi_mpi_byte.dt, &type)) {
        return NULL;
    }
    if (OMPI_SUCCESS != ompi_datatype_commit(&type)) {
        ompi_datatype_destroy(&type);
        return NULL;
    }
    /* of 16 bits, and of 32 from Open MPI 6.0 on */
    type->super.flags &= (__typeof__(type->super.flags)) ~(OPAL_DATATYPE_FLAG_CONTIGUOUS
                                                           | OPAL_DATATYPE_FLAG_NO_GAPS);
    return type;
}

void mca_pml_umrddt_stage_as(size_t size, bool pieces, size_t *count, ompi_datatype_t **datatype)
{
    ompi_datatype_t *type = NULL, *old = NULL;

    if (pieces && mca_pml_umrddt.host_keeps && TYPE_BYTES <= size && INT_MAX >= size) {
        pthread_mutex_lock(&types.lock);
        for (unsigned i = 0; i < TYPES && NULL == type; ++i) {
            if (NULL != types.type[i] && size == types.type[i]->super.size) {
                type = types.type[i];
            }
        }
        if (NULL == type && NULL != (type = type_new(size))) {
            old = types.type[types.next];
            types.type[types.next] = type;
            types.next = (types.next + 1) % TYPES;
        }
        if (NULL != type) {
            OBJ_RETAIN(type);
        }
        pthread_mutex_unlock(&types.lock);
        if (NULL != old) {
            OBJ_RELEASE(old);
        }
    }
    *count = NULL == type ? size : 1;
    *datatype = NULL == type ? &ompi_mpi_byte.dt : type;
}

void mca_pml_umrddt_stage_as_end(ompi_datatype_t *datatype)
{
    if (&ompi_mpi_byte.dt != datatype) {
        OBJ_RELEASE(datatype);
    }
}

/* ---------------------------------------------------------------------------------------------
 * Sends
 * ------------------------------------------------------------------------------------------- */

size_t mca_pml_umrddt_pack(const void *buf, size_t count, ompi_datatype_t *datatype, void *stream,
                           size_t length)
{
    opal_umrddt_gpu_where_t where;

    if (OPAL_UNLIKELY(NULL != mca_pml_umrddt.gpu
                      && MCA_PML_UMRDDT_BASE_GPU_NONE != mca_pml_umrddt.base_gpu)) {
        /* The base PML may have received into device memory, which only the device reads. */
        mca_pml_umrddt_look(buf, count, datatype, &where);
        if (opal_umrddt_gpu_on_device(&where)) {
            opal_umrddt_gpu_stream_copy_t transit;

            if (length > count * datatype->super.size) {
                length = count * datatype->super.size;
            }
            return OMPI_SUCCESS
                               == mca_pml_umrddt_transit(&transit, buf, count, datatype, &where,
                                                         stream, OPAL_UMRDDT_GPU_HOST, length,
                                                         false)
                           && OMPI_SUCCESS == opal_umrddt_gpu_stream_copy_wait(&transit)
                       ? length
                       : 0;
        }
    }
    return opal_umrddt_gpu_stream_pack(buf, count, &datatype->super, stream, length);
}

int mca_pml_umrddt_stage_pack(const void *buf, size_t count, ompi_datatype_t *datatype,
                              const opal_umrddt_gpu_where_t *where, opal_umrddt_gpu_stage_t *stage)
{
    size_t size = count * datatype->super.size;
    opal_umrddt_gpu_stream_copy_t transit;
    int rc = opal_umrddt_gpu_stage_get(&where->memory, size, stage);

    if (OMPI_SUCCESS != rc) {
        mca_pml_umrddt_stage_failed(where, size, false, rc);
        return rc;
    }
    if (!opal_umrddt_gpu_on_device(where)) {
        /* system memory: the CPU packs */
        (void) opal_umrddt_gpu_stream_pack(buf, count, &datatype->super, stage->bytes, size);
    } else {
        rc = mca_pml_umrddt_transit(&transit, buf, count, datatype, where, stage->bytes,
                                    stage->kind, size, false);
        if (OMPI_SUCCESS == rc) {
            rc = opal_umrddt_gpu_stream_copy_wait(&transit);
        }
    }
    if (OMPI_SUCCESS != rc) {
        mca_pml_umrddt_stage_failed(where, size, false, rc);
        opal_umrddt_gpu_stage_put(stage);
        return rc;
    }
    MCA_PML_UMRDDT_COUNT(staged_sends);
    MCA_PML_UMRDDT_COUNT_ADD(staged_bytes, size);
    return OMPI_SUCCESS;
}

void mca_pml_umrddt_stage_fini(void)
{
    opal_umrddt_gpu_stage_close();
    for (unsigned i = 0; i < TYPES; ++i) {
        if (NULL != types.type[i]) {
            OBJ_RELEASE(types.type[i]);
            types.type[i] = NULL;
        }
    }
}
