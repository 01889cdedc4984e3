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
 * Shared declarations of accelerator/cuda. The component makes an Open MPI 5.0 or 6.0
 * without CUDA CUDA-aware. Its functions implement Open MPI's opal/mca/accelerator/accelerator.h.
 *
 * Rules for every function: callable from any thread, with or without a current context. The
 * thread's current context is restored. No context is created before the application creates one.
 * Results are OPAL_SUCCESS or OPAL_ERR_*.
 */

#ifndef OPAL_ACCELERATOR_CUDA_H
#define OPAL_ACCELERATOR_CUDA_H

#include "opal_config.h"

#include <stdbool.h>

#include "opal/mca/accelerator/accelerator.h"
#include "opal/mca/common/umrddt_gpu/driver/umrddt_gpu_driver.h"

#include "umrddt_compat.h"

BEGIN_C_DECLS

extern opal_accelerator_base_component_t mca_accelerator_cuda_component;
extern const opal_accelerator_base_module_t opal_accelerator_cuda_module;

/** Convert a driver result for Open MPI. Prints the operation and the reason of errors. */
int opal_accelerator_cuda_result(CUresult rc, const char *what);

/* ---- contexts (accelerator_cuda_context.c) ---- */

/** A context that has memory. Valid until opal_accelerator_cuda_contexts_close. */
typedef struct opal_accelerator_cuda_context_t {
    struct opal_accelerator_cuda_context_t *next;
    CUcontext ctx;
    CUdevice device;
    bool primary;        /**< the device's primary context, which is retained here */
    bool gone;           /**< destroyed or reset by the application */
    CUdeviceptr witness; /**< memory in it, freed with it; 0: allocation failed */
    uint64_t witness_id;
    CUstream stream; /**< of synchronous copies; waits for the context's default stream */
    CUevent event;   /**< for copies that streams of other contexts wait for */
} opal_accelerator_cuda_context_t;

/**
 * Find the context of device memory: the one of its allocation, or the device's primary one for
 * memory without a context (stream-ordered and mapped memory).
 *
 * @param[in]  memory   result of opal_umrddt_gpu_classify; device or managed memory
 * @param[out] context
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_OUT_OF_RESOURCE
 * @retval OPAL_ERROR  of the driver; printed
 */
int opal_accelerator_cuda_context_of(const opal_umrddt_gpu_memory_t *memory,
                                     opal_accelerator_cuda_context_t **context);

/**
 * True if it has not been destroyed. Makes a pointer query: drivers crash on a destroyed context.
 */
bool opal_accelerator_cuda_context_exists(opal_accelerator_cuda_context_t *context);

/**
 * Make an existing context current.
 *
 * @param[out] pushed  for opal_accelerator_cuda_leave
 */
CUresult opal_accelerator_cuda_enter(const opal_accelerator_cuda_context_t *context, bool *pushed);
void opal_accelerator_cuda_leave(bool pushed);

/**
 * Make a context current for a new object: the thread's own one if it is on that device, else the
 * device's primary one.
 *
 * @param[in]  dev_id  a device, or MCA_ACCELERATOR_NO_DEVICE_ID: that of the thread's current
 *                     context, or the first one whose primary context is active
 * @param[out] pushed  for opal_accelerator_cuda_leave
 *
 * @retval OPAL_SUCCESS
 * @retval OPAL_ERR_NOT_AVAILABLE  the application does not use CUDA yet
 * @retval OPAL_ERR_BAD_PARAM      no such device
 * @retval OPAL_ERROR              of the driver; printed
 */
int opal_accelerator_cuda_enter_device(int dev_id, bool *pushed);

/** The device of the thread's current context, else the first one whose primary context is active,
 * else MCA_ACCELERATOR_NO_DEVICE_ID. */
int opal_accelerator_cuda_device(void);

/**
 * Release all contexts. No other thread may be in the component, and no stream or event may exist.
 */
void opal_accelerator_cuda_contexts_close(void);

/* ---- copies (accelerator_cuda_copy.c) ---- */

/** The two ends of a copy. */
typedef struct opal_accelerator_cuda_copy_t {
    CUdeviceptr to, from;
    size_t size;
    opal_accelerator_cuda_context_t *to_context;   /**< NULL: system memory */
    opal_accelerator_cuda_context_t *from_context; /**< the same */
} opal_accelerator_cuda_copy_t;

/** Classify both ends. Results as opal_accelerator_cuda_context_of. */
int opal_accelerator_cuda_copy_look(void *to, const void *from, size_t size,
                                    opal_accelerator_cuda_copy_t *copy);

/** The context whose streams do the copy; NULL: the CPU does it. */
static inline opal_accelerator_cuda_context_t *
opal_accelerator_cuda_copy_context(const opal_accelerator_cuda_copy_t *copy)
{
    return NULL != copy->to_context ? copy->to_context : copy->from_context;
}

/**
 * Enqueue it in a stream, after the work of the default streams of both contexts.
 *
 * @param[in] stream  of opal_accelerator_cuda_copy_context, which is current
 */
CUresult opal_accelerator_cuda_copy_put(const opal_accelerator_cuda_copy_t *copy, CUstream stream);

int opal_accelerator_cuda_mem_copy(int to_device, int from_device, void *to, const void *from,
                                   size_t size, opal_accelerator_transfer_type_t type);
int opal_accelerator_cuda_mem_move(int to_device, int from_device, void *to, const void *from,
                                   size_t size, opal_accelerator_transfer_type_t type);

/* ---- streams and events (accelerator_cuda_stream.c) ---- */

/* From 6.0 on an event may be for other processes, but not if is_ipc_enabled is false. */
#if UMRDDT_OPAL_RELEASE >= 600
#define OPAL_ACCELERATOR_CUDA_IPC , bool umrddt_unused __attribute__((unused))

/** Create and release the stream that MCA_ACCELERATOR_STREAM_DEFAULT stands for. */
int opal_accelerator_cuda_streams_open(void);
void opal_accelerator_cuda_streams_close(void);

int opal_accelerator_cuda_sync_stream(opal_accelerator_stream_t *stream);
int opal_accelerator_cuda_wait_event(int dev_id, opal_accelerator_event_t *event,
                                     opal_accelerator_stream_t *stream);
/** As mem_copy_async, for ends that may overlap; then it waits. */
int opal_accelerator_cuda_mem_move_async(int to_device, int from_device, void *to, const void *from,
                                         size_t size, opal_accelerator_stream_t *stream,
                                         opal_accelerator_transfer_type_t type);
#else
#define OPAL_ACCELERATOR_CUDA_IPC
#endif

int opal_accelerator_cuda_create_stream(int dev_id, opal_accelerator_stream_t **stream);
int opal_accelerator_cuda_create_event(int dev_id,
                                       opal_accelerator_event_t **event OPAL_ACCELERATOR_CUDA_IPC);
int opal_accelerator_cuda_record_event(int dev_id, opal_accelerator_event_t *event,
                                       opal_accelerator_stream_t *stream);
int opal_accelerator_cuda_query_event(int dev_id, opal_accelerator_event_t *event);
int opal_accelerator_cuda_mem_copy_async(int to_device, int from_device, void *to, const void *from,
                                         size_t size, opal_accelerator_stream_t *stream,
                                         opal_accelerator_transfer_type_t type);

END_C_DECLS

#endif /* OPAL_ACCELERATOR_CUDA_H */
