/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Values that a stream writes to memory, or waits for. */

#include "gpu.h"
#include "gpu_memop.h"

#include <time.h>

struct mem_ops {
    struct gpu_work head;
    unsigned count;
    CUstreamBatchMemOpParams op[];
};

static size_t width_of(const CUstreamBatchMemOpParams *op)
{
    switch ((int) op->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        return 4;
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        return 8;
    default:
        return 0;
    }
}

static bool is_wait(const CUstreamBatchMemOpParams *op)
{
    return CU_STREAM_MEM_OP_WAIT_VALUE_32 == (int) op->operation
           || CU_STREAM_MEM_OP_WAIT_VALUE_64 == (int) op->operation;
}

/* Where it is, with the lock held. */
static void *place_of(const CUstreamBatchMemOpParams *op)
{
    struct gpu_place place;

    return CUDA_SUCCESS == gpu_place_find(op->writeValue.address, width_of(op), &place)
                   && place.known
               ? place.view
               : NULL;
}

static CUresult check(const CUstreamBatchMemOpParams *op)
{
    size_t width = width_of(op);

    if (0 == width) {
        return CU_STREAM_MEM_OP_BARRIER == (int) op->operation
                       || CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES == (int) op->operation
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_INVALID_VALUE;
    }
    if (0 != op->writeValue.address % width || NULL == place_of(op)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (is_wait(op)) {
        return 0 != (op->waitValue.flags & (unsigned) CU_STREAM_WAIT_VALUE_FLUSH)
                   ? CUDA_ERROR_NOT_SUPPORTED
               : 3 < op->waitValue.flags ? CUDA_ERROR_INVALID_VALUE
                                         : CUDA_SUCCESS;
    }
    return 1 < op->writeValue.flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* Has it come? The comparison "greater or equal" is that of serial numbers. */
static bool holds(const CUstreamBatchMemOpParams *op, const void *where)
{
    uint64_t is;
    uint64_t wanted;

    if (4 == width_of(op)) {
        is = __atomic_load_n((const uint32_t *) where, __ATOMIC_ACQUIRE);
        wanted = op->waitValue.value;
        if (CU_STREAM_WAIT_VALUE_GEQ == (int) op->waitValue.flags) {
            return 0 <= (int32_t) (uint32_t) (is - wanted);
        }
        if (CU_STREAM_WAIT_VALUE_NOR == (int) op->waitValue.flags) {
            return 0 != (uint32_t) ~(is | wanted);
        }
    } else {
        is = __atomic_load_n((const uint64_t *) where, __ATOMIC_ACQUIRE);
        wanted = op->waitValue.value64;
        if (CU_STREAM_WAIT_VALUE_GEQ == (int) op->waitValue.flags) {
            return 0 <= (int64_t) (is - wanted);
        }
        if (CU_STREAM_WAIT_VALUE_NOR == (int) op->waitValue.flags) {
            return 0 != ~(is | wanted);
        }
    }
    return CU_STREAM_WAIT_VALUE_EQ == (int) op->waitValue.flags ? is == wanted : 0 != (is & wanted);
}

static CUresult run_one(const CUstreamBatchMemOpParams *op)
{
    struct timespec pause = {0, 10000};
    void *where;

    if (0 == width_of(op)) {
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        return CUDA_SUCCESS;
    }
    while (true) {
        pthread_mutex_lock(&gpu_lock);
        where = place_of(op);
        if (NULL == where) {
            return gpu_end(CUDA_ERROR_ILLEGAL_ADDRESS);
        }
        if (!is_wait(op)) {
            if (4 == width_of(op)) {
                __atomic_store_n((uint32_t *) where, op->writeValue.value, __ATOMIC_RELEASE);
            } else {
                __atomic_store_n((uint64_t *) where, op->writeValue.value64, __ATOMIC_RELEASE);
            }
            return gpu_end(CUDA_SUCCESS);
        }
        if (holds(op, where)) {
            return gpu_end(CUDA_SUCCESS);
        }
        pthread_mutex_unlock(&gpu_lock);
        nanosleep(&pause, NULL);
        pause.tv_nsec = 1000000 > 2 * pause.tv_nsec ? 2 * pause.tv_nsec : 1000000;
    }
}

static CUresult run(struct gpu_work *work, CUcontext ctx)
{
    struct mem_ops *ops = (struct mem_ops *) work;
    CUresult rc = CUDA_SUCCESS;
    unsigned i;

    (void) ctx;
    for (i = 0; i < ops->count && CUDA_SUCCESS == rc; i++) {
        rc = run_one(&ops->op[i]);
    }
    pthread_mutex_lock(&gpu_lock);
    gpu_count.mem_ops += i;
    return gpu_end(rc);
}

CUresult gpu_mem_ops_new(unsigned count, const CUstreamBatchMemOpParams *params,
                         struct gpu_work **work)
{
    struct mem_ops *ops;
    unsigned i;

    if (0 == count || 256 < count || NULL == params) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (i = 0; i < count; i++) {
        CUresult rc = check(&params[i]);

        if (CUDA_SUCCESS != rc) {
            return rc;
        }
    }
    ops = gpu_work_new(sizeof(*ops) + count * sizeof(ops->op[0]), CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
                       run, NULL);
    if (NULL == ops) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    ops->count = count;
    for (i = 0; i < count; i++) {
        ops->op[i] = params[i];
    }
    *work = &ops->head;
    return CUDA_SUCCESS;
}

static CUresult add(CUcontext ctx, CUstream handle, unsigned count,
                    const CUstreamBatchMemOpParams *params)
{
    struct gpu_work *work;
    CUstream stream;
    CUresult rc = gpu_stream_get(ctx, handle, &stream);

    if (CUDA_SUCCESS == rc) {
        rc = gpu_mem_ops_new(count, params, &work);
    }
    return CUDA_SUCCESS == rc ? gpu_submit(stream, work, false) : rc;
}

#define ONE(name, operation_, member, type)                                                     \
    GPU_EXPORT CUresult name(CUstream stream, CUdeviceptr ptr, type value_, unsigned int flags) \
    {                                                                                           \
        CUstreamBatchMemOpParams op = {.pad = {0}};                                             \
        CUcontext ctx;                                                                          \
                                                                                                \
        GPU_BEGIN_STREAM(name, stream, &ctx);                                                   \
        op.operation = operation_;                                                              \
        op.writeValue.address = ptr;                                                            \
        op.writeValue.member = value_;                                                          \
        op.writeValue.flags = flags;                                                            \
        return gpu_end(add(ctx, stream, 1, &op));                                               \
    }

ONE(cuStreamWriteValue32_v2, CU_STREAM_MEM_OP_WRITE_VALUE_32, value, cuuint32_t)
ONE(cuStreamWriteValue64_v2, CU_STREAM_MEM_OP_WRITE_VALUE_64, value64, cuuint64_t)
ONE(cuStreamWaitValue32_v2, CU_STREAM_MEM_OP_WAIT_VALUE_32, value, cuuint32_t)
ONE(cuStreamWaitValue64_v2, CU_STREAM_MEM_OP_WAIT_VALUE_64, value64, cuuint64_t)

GPU_EXPORT CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count,
                                          CUstreamBatchMemOpParams *params, unsigned int flags)
{
    CUcontext ctx;

    GPU_BEGIN_STREAM(cuStreamBatchMemOp_v2, stream, &ctx);
    return gpu_end(0 != flags ? CUDA_ERROR_INVALID_VALUE : add(ctx, stream, count, params));
}
