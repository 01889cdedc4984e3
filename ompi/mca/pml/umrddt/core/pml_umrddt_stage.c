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
 * Staging buffers, and copies between them and user buffers. See pml_umrddt_stage.h first.
 */

/*
 * A staging buffer that will be filled is pinned memory from the GPU staging pool, which the GPU
 * can access. If the pool is exhausted, and for receives, it is plain memory. Large messages are
 * mostly envelopes, and untouched plain memory costs only address space. Freed plain buffers are
 * cached for the next receives.
 *
 * A guard page follows each plain buffer. If a contiguous message is too long, pml/ob1 of Open MPI
 * 4.1 reads all of it. With the guard page the kernel refuses that read, and pml/ob1 recovers.
 */

#include "ompi_config.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "opal/mca/common/umrddt_gpu/staging/umrddt_gpu_staging.h"
#include "opal/util/show_help.h"

#include "ompi/mca/pml/umrddt/core/pml_umrddt_gpu.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_layout.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_stage.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_stream.h"

/* ---------------------------------------------------------------------------------------------
 * Plain memory
 * ------------------------------------------------------------------------------------------- */

#define PAGE    ((size_t) 4096)
#define LOWEST  12 /* of a page */
#define CLASSES 36 /* up to more than any machine has */

/** Free buffers by the binary logarithm of their size; each begins with a pointer to the next. */
static struct {
    pthread_mutex_t lock;
    void *first[CLASSES];
    size_t bytes;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static unsigned class_of(size_t size)
{
    unsigned class = 0;

    while (CLASSES > class && ((size_t) 1 << (LOWEST + class)) < size) {
        ++class;
    }
    return class;
}

/** Map memory with a guard page behind it. NULL: no memory */
static void *plain_map(size_t size)
{
    void *bytes = mmap(NULL, size + PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (MAP_FAILED == bytes) {
        return NULL;
    }
    if (0 != mprotect((char *) bytes + size, PAGE, PROT_NONE)) {
        (void) munmap(bytes, size + PAGE);
        return NULL;
    }
    return bytes;
}

static void plain_unmap(void *bytes, size_t size)
{
    (void) munmap(bytes, size + PAGE);
}

static int plain_get(size_t size, mca_pml_umrddt_stage_t *stage)
{
    unsigned class = class_of(size);
    void *bytes = NULL;

    if (CLASSES > class) {
        size = (size_t) 1 << (LOWEST + class);
        pthread_mutex_lock(&kept.lock);
        bytes = kept.first[class];
        if (NULL != bytes) {
            memcpy(&kept.first[class], bytes, sizeof(kept.first[class]));
            kept.bytes -= size;
        }
        pthread_mutex_unlock(&kept.lock);
    }
    if (NULL == bytes) {
        size = (size + PAGE - 1) / PAGE * PAGE;
        bytes = plain_map(size);
    }
    if (NULL == bytes) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    stage->bytes = bytes;
    stage->room = size;
    stage->kind = OPAL_UMRDDT_GPU_HOST;
    return OMPI_SUCCESS;
}

static void plain_put(mca_pml_umrddt_stage_t *stage)
{
    unsigned class = class_of(stage->room);
    bool keep = false;

    if (CLASSES > class) {
        pthread_mutex_lock(&kept.lock);
        keep = stage->room <= mca_pml_umrddt.params.gpu_stage_kept
               && kept.bytes <= mca_pml_umrddt.params.gpu_stage_kept - stage->room;
        if (keep) {
            memcpy(stage->bytes, &kept.first[class], sizeof(kept.first[class]));
            kept.first[class] = stage->bytes;
            kept.bytes += stage->room;
        }
        pthread_mutex_unlock(&kept.lock);
    }
    if (!keep) {
        plain_unmap(stage->bytes, stage->room);
    }
}

/* ---------------------------------------------------------------------------------------------
 * Staging buffers
 * ------------------------------------------------------------------------------------------- */

/** Get memory from the pool. @return false: use plain memory */
static bool pinned_get(const mca_pml_umrddt_where_t *where, size_t size,
                       mca_pml_umrddt_stage_t *stage)
{
    opal_umrddt_gpu_engine_t *engine;
    void *bytes;
    int rc;

    if (OPAL_SUCCESS != opal_umrddt_gpu_engine_get(&where->memory, &engine)
        || OPAL_SUCCESS != opal_umrddt_gpu_engine_enter(engine)) {
        return false;
    }
    rc = opal_umrddt_gpu_staging_get(size, &bytes);
    opal_umrddt_gpu_engine_leave(engine);
    if (OPAL_SUCCESS != rc) {
        return false;
    }
    stage->bytes = bytes;
    stage->room = size;
    stage->kind = OPAL_UMRDDT_GPU_PINNED;
    return true;
}

int mca_pml_umrddt_stage_get(const mca_pml_umrddt_where_t *where, size_t size,
                             mca_pml_umrddt_stage_use_t use, mca_pml_umrddt_stage_t *stage)
{
    if (PTRDIFF_MAX - 2 * PAGE < size) {
        return OMPI_ERR_OUT_OF_RESOURCE; /* size from a broken peer */
    }
    size += 0 == size;
    if (MCA_PML_UMRDDT_STAGE_DATA == use && mca_pml_umrddt_on_device(where)
        && size <= mca_pml_umrddt.params.gpu_stage_pinned && pinned_get(where, size, stage)) {
        return OMPI_SUCCESS;
    }
    return plain_get(size, stage);
}

void mca_pml_umrddt_stage_put(mca_pml_umrddt_stage_t *stage)
{
    if (NULL == stage->bytes) {
        return;
    }
    if (OPAL_UMRDDT_GPU_PINNED == stage->kind) {
        opal_umrddt_gpu_staging_put(stage->bytes);
    } else {
        plain_put(stage);
    }
    memset(stage, 0, sizeof(*stage));
}

void mca_pml_umrddt_stage_failed(const mca_pml_umrddt_where_t *where, size_t size, bool in, int rc)
{
    static int told;

    if (0 == __atomic_exchange_n(&told, 1, __ATOMIC_RELAXED)) {
        opal_show_help("help-mca-pml-umrddt.txt", "stage-failed", true, size,
                       in ? "received" : "sent",
                       where->mixed ? "in several memories, some of a GPU" : "in GPU memory", rc);
    }
}

/* ---------------------------------------------------------------------------------------------
 * Copies
 * ------------------------------------------------------------------------------------------- */

/** The copy has ended, successfully or not. */
static void transit_end(mca_pml_umrddt_transit_t *transit)
{
    if (NULL != transit->layout) {
        OBJ_RELEASE(transit->layout);
        transit->layout = NULL;
    }
    transit->position = transit->end;
}

/** Start a copy of stream positions up to @p end, which are in one allocation. */
static int copy_range(mca_pml_umrddt_transit_t *transit, uint64_t end)
{
    opal_umrddt_gpu_place_t user = {.layout = transit->layout,
                                    .address = transit->address,
                                    .kind = transit->memory.kind,
                                    .reached = true};
    opal_umrddt_gpu_place_t ours = {.layout = NULL,
                                    .address = (uintptr_t) transit->bytes + transit->position,
                                    .kind = transit->kind,
                                    .reached = true};
    opal_umrddt_gpu_engine_t *engine;
    uint64_t start = transit->position;
    int rc = opal_umrddt_gpu_engine_get(&transit->memory, &engine);

    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    rc = transit->in ? opal_umrddt_gpu_copy(engine, &ours, &user, start, end, &transit->copy)
                     : opal_umrddt_gpu_copy(engine, &user, &ours, start, end, &transit->copy);
    if (OPAL_SUCCESS == rc) {
        transit->position = end;
    } else {
        transit->copy = NULL;
    }
    return rc;
}

/** Copy stream positions up to @p end, which are one block of memory that the CPU can access. */
static void copy_here(mca_pml_umrddt_transit_t *transit, uint64_t end)
{
    unsigned char *user =
        (unsigned char *) (uintptr_t) (transit->address
                                       + (uint64_t) opal_iov_cache_form_offset(
                                           transit->layout->form, transit->position));
    unsigned char *ours = transit->bytes + transit->position;

    memcpy(transit->in ? user : ours, transit->in ? ours : user, end - transit->position);
    transit->position = end;
}

/** Mixed buffer: copy the next bytes that are in system memory or in one device allocation. */
static int copy_mixed(mca_pml_umrddt_transit_t *transit)
{
    const opal_iov_cache_layout_t *layout = transit->layout;
    opal_umrddt_gpu_memory_t *memory = &transit->memory;
    uint64_t piece = opal_iov_cache_layout_find(layout, transit->position);
    uint64_t next = opal_iov_cache_layout_start(layout, piece + 1);
    uint64_t address =
        transit->address + (uint64_t) opal_iov_cache_form_offset(layout->form, transit->position);
    uint64_t end = next < transit->end ? next : transit->end;

    end =
        transit->position
        + (mca_pml_umrddt_look_along(address, address + end - transit->position, memory) - address);
    if (OPAL_UMRDDT_GPU_DEVICE != memory->kind) {
        copy_here(transit, end);
        return OMPI_SUCCESS;
    }
    /* include the following blocks that are completely in this allocation */
    while (end == next && end < transit->end) {
        opal_iov_cache_iov_t iov = opal_iov_cache_layout_iov(layout, ++piece);
        uint64_t offset = transit->address + (uint64_t) iov.offset - memory->base;

        if (offset >= memory->size || iov.length > memory->size - offset) {
            break;
        }
        next = opal_iov_cache_layout_start(layout, piece + 1);
        end = next < transit->end ? next : transit->end;
    }
    return copy_range(transit, end);
}

/** Make progress; @p waiting: block until the GPU has finished. */
static int advance(mca_pml_umrddt_transit_t *transit, bool waiting)
{
    int rc = OMPI_SUCCESS;

    while (OMPI_SUCCESS == rc) {
        if (NULL != transit->copy) {
            rc = waiting ? opal_umrddt_gpu_copy_wait(transit->copy)
                         : opal_umrddt_gpu_copy_test(transit->copy);
            if (OPAL_ERR_RESOURCE_BUSY == rc) {
                return OMPI_ERR_RESOURCE_BUSY;
            }
            transit->copy = NULL;
        } else if (transit->position == transit->end) {
            break;
        } else {
            rc = transit->mixed ? copy_mixed(transit) : copy_range(transit, transit->end);
        }
    }
    transit_end(transit);
    return rc;
}

int mca_pml_umrddt_transit_test(mca_pml_umrddt_transit_t *transit)
{
    return advance(transit, false);
}

int mca_pml_umrddt_transit_wait(mca_pml_umrddt_transit_t *transit)
{
    return advance(transit, true);
}

int mca_pml_umrddt_transit(mca_pml_umrddt_transit_t *transit, const void *buf, size_t count,
                           ompi_datatype_t *datatype, const mca_pml_umrddt_where_t *where,
                           void *bytes, opal_umrddt_gpu_kind_t kind, size_t length, bool in)
{
    int rc = OMPI_SUCCESS;

    transit->copy = NULL;
    transit->layout = NULL;
    transit->memory = where->memory;
    transit->mixed = where->mixed;
    transit->in = in;
    transit->kind = kind;
    transit->bytes = bytes;
    transit->address = (uintptr_t) buf;
    transit->position = 0;
    transit->end = length;
    if (0 == length) {
        return OMPI_SUCCESS;
    }
    if (mca_pml_umrddt_is_contiguous(datatype, count)) {
        transit->address += (uint64_t) datatype->super.true_lb;
    } else {
        rc = mca_pml_umrddt_layout(datatype, count, &transit->layout);
        if (OMPI_SUCCESS != rc) {
            return rc;
        }
    }
    rc = transit->mixed ? copy_mixed(transit) : copy_range(transit, length);
    if (OMPI_SUCCESS != rc) {
        transit_end(transit);
    }
    return rc;
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
    type->super.flags &= (uint16_t) ~(OPAL_DATATYPE_FLAG_CONTIGUOUS | OPAL_DATATYPE_FLAG_NO_GAPS);
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
    mca_pml_umrddt_where_t where;

    if (OPAL_UNLIKELY(NULL != mca_pml_umrddt.gpu
                      && MCA_PML_UMRDDT_BASE_GPU_NONE != mca_pml_umrddt.base_gpu)) {
        /* The base PML may have received into device memory, which only the device reads. */
        mca_pml_umrddt_look(buf, count, datatype, &where);
        if (mca_pml_umrddt_on_device(&where)) {
            mca_pml_umrddt_transit_t transit;

            if (length > count * datatype->super.size) {
                length = count * datatype->super.size;
            }
            return OMPI_SUCCESS
                               == mca_pml_umrddt_transit(&transit, buf, count, datatype, &where,
                                                         stream, OPAL_UMRDDT_GPU_HOST, length,
                                                         false)
                           && OMPI_SUCCESS == mca_pml_umrddt_transit_wait(&transit)
                       ? length
                       : 0;
        }
    }
    return mca_pml_umrddt_pack_system(buf, count, datatype, stream, length);
}

int mca_pml_umrddt_stage_pack(const void *buf, size_t count, ompi_datatype_t *datatype,
                              const mca_pml_umrddt_where_t *where, mca_pml_umrddt_stage_t *stage)
{
    size_t size = count * datatype->super.size;
    mca_pml_umrddt_transit_t transit;
    int rc = mca_pml_umrddt_stage_get(where, size, MCA_PML_UMRDDT_STAGE_DATA, stage);

    if (OMPI_SUCCESS != rc) {
        mca_pml_umrddt_stage_failed(where, size, false, rc);
        return rc;
    }
    if (!mca_pml_umrddt_on_device(where)) {
        /* system memory: the CPU packs */
        (void) mca_pml_umrddt_pack_system(buf, count, datatype, stage->bytes, size);
    } else {
        rc = mca_pml_umrddt_transit(&transit, buf, count, datatype, where, stage->bytes,
                                    stage->kind, size, false);
        if (OMPI_SUCCESS == rc) {
            rc = mca_pml_umrddt_transit_wait(&transit);
        }
    }
    if (OMPI_SUCCESS != rc) {
        mca_pml_umrddt_stage_failed(where, size, false, rc);
        mca_pml_umrddt_stage_put(stage);
        return rc;
    }
    MCA_PML_UMRDDT_COUNT(staged_sends);
    MCA_PML_UMRDDT_COUNT_ADD(staged_bytes, size);
    return OMPI_SUCCESS;
}

int mca_pml_umrddt_stage_send(const void *buf, size_t count, ompi_datatype_t *datatype, int dst,
                              int tag, mca_pml_base_send_mode_t mode,
                              struct ompi_communicator_t *comm, const mca_pml_umrddt_where_t *where)
{
    mca_pml_umrddt_stage_t stage;
    ompi_datatype_t *type;
    size_t n;
    int rc = mca_pml_umrddt_stage_pack(buf, count, datatype, where, &stage);

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    mca_pml_umrddt_stage_as(count * datatype->super.size,
                            !mca_pml_umrddt_is_contiguous(datatype, count), &n, &type);
    rc = mca_pml_umrddt.host.pml_send(stage.bytes, n, type, dst, tag, mode, comm);
    mca_pml_umrddt_stage_as_end(type);
    mca_pml_umrddt_stage_put(&stage);
    return rc;
}

size_t mca_pml_umrddt_stage_kept(void)
{
    return __atomic_load_n(&kept.bytes, __ATOMIC_RELAXED);
}

void mca_pml_umrddt_stage_fini(void)
{
    for (unsigned class = 0; class < CLASSES; ++class) {
        while (NULL != kept.first[class]) {
            void *bytes = kept.first[class];

            memcpy(&kept.first[class], bytes, sizeof(kept.first[class]));
            plain_unmap(bytes, (size_t) 1 << (LOWEST + class));
        }
    }
    kept.bytes = 0;
    for (unsigned i = 0; i < TYPES; ++i) {
        if (NULL != types.type[i]) {
            OBJ_RELEASE(types.type[i]);
            types.type[i] = NULL;
        }
    }
}
