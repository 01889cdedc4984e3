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
 * Shared by the files of the software CUDA driver: the state of the process, the nouns
 * (contexts, ranges of memory, streams and the work in them), and how an API function begins.
 *
 * One lock, gpu_lock, guards all state; gpu_changed is broadcast when work was done or a thread has
 * ended. Streams have a thread each, which holds the lock only between pieces of work.
 */

#ifndef GPU_H
#define GPU_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "sim/common/faults.h"
#include "umrddt_cuda.h"

#define GPU_EXPORT      __attribute__((visibility("default")))
#define GPU_DEVICES_MAX 16
#define GPU_CTX_DEPTH   64

/** A number for each function of the API. */
enum gpu_function {
#define GPU_FUNCTION_NUMBER(name, base, version, arguments) GPU_FN_##name,
    UMRDDT_CUDA_FUNCTIONS(GPU_FUNCTION_NUMBER)
    /* Not functions, but what devices do by themselves: for faults on demand. */
    GPU_FN_kernel,
    GPU_FN_copy,
    GPU_FN_MAX
};

/* ---- options (gpu_conf.c) ---- */

struct gpu_conf {
    int devices;
    size_t memory;       /**< bytes of each device */
    unsigned capability; /**< compute capability of the devices: 90 for 9.0 */
    unsigned delay_us;
    unsigned late_us; /**< delay of work that a call without 'async' leaves unfinished */
    uint64_t seed;
    bool peer;
    bool dmabuf;
    bool peermem; /**< HCAs can register memory by its address */
    bool gdr;     /**< HCAs can reach memory at all */
    int ordering; /**< of what HCAs write: 0, 100 (the device), 200 (all devices) */
    bool flush;   /**< by cuFlushGPUDirectRDMAWrites */
    bool touch;   /**< the CPU may touch memory of devices */
    bool aware;   /**< Open MPI 4.1 is made to report support of CUDA */
    bool crash;   /**< where a destroyed context is named */
    bool reuse;   /**< addresses of freed memory are given again */
    bool counters;
    bool json;            /**< counters as JSON */
    struct faults faults; /**< on demand */
    char kernels[512]; /**< shared objects with kernels, ':' between them; "" for those beside us */
};

extern struct gpu_conf gpu_conf;

/**
 * Read options.
 *
 * @param[in]  text   "name=value,...", or NULL
 * @param[out] error  their error
 *
 * @retval 0 or -1
 */
int gpu_conf_parse(const char *text, struct gpu_conf *conf, char *error, size_t size);

/** Print the options, as umrddt_sim --help shows them. */
void gpu_conf_help(FILE *file);

/* ---- counters and faults (gpu_count.c) ---- */

/** What devices did; functions of the API are counted by themselves. */
#define GPU_COUNTERS(COUNTER)                                                            \
    COUNTER(calls, "calls of the driver, of all functions together")                     \
    COUNTER(launches, "kernels launched; those in a graph count with each launch of it") \
    COUNTER(graphs, "graphs launched")                                                   \
    COUNTER(copies, "copies begun, of any shape; those in a graph too")                  \
    COUNTER(copies_2d, "of those with more than one row")                                \
    COUNTER(copy_bytes, "bytes in them")                                                 \
    COUNTER(memsets, "memsets begun")                                                    \
    COUNTER(mem_ops, "values written and waited for by streams")                         \
    COUNTER(queries, "pointer queries")                                                  \
    COUNTER(syncs, "calls that wait for a stream, an event or a context")                \
    COUNTER(allocs, "allocations of device memory, by any function")                     \
    COUNTER(host_allocs, "allocations and registrations of system memory")               \
    COUNTER(ipc_opens, "IPC handles opened")                                             \
    COUNTER(ipc_now, "memory of other processes that is mapped now")                     \
    COUNTER(bytes_now, "bytes of device memory allocated now")                           \
    COUNTER(injected, "planned errors that occurred")

struct gpu_counters {
#define GPU_COUNTER_MEMBER(name, help) uint64_t name;
    GPU_COUNTERS(GPU_COUNTER_MEMBER)
};

/** Guarded by gpu_lock. */
extern struct gpu_counters gpu_count;

/** Print all that was counted in one line, and the functions called by name; with gpu_conf.json as
 * an object. */
void gpu_count_print(FILE *file);

/** Print the descriptions of the counters. */
void gpu_count_help(FILE *file);

/** Count one call, with the lock held; the planned error of this one, or success. */
CUresult gpu_count_call(enum gpu_function function);

/** As umrddt_gpu_faults, with the lock held. */
int gpu_count_faults(const struct faults *faults, bool on);

/**
 * For programs, which find it by its name.
 *
 * @param[in] plan  a plan of faults that replaces the present one, with calls counted from here;
 *                  NULL: the same
 * @param[in] on    0: for now nothing goes wrong, nor is counted for the plan
 *
 * @return how many came about since the last plan was set, or -1: it is none, and nothing has
 * changed
 */
int umrddt_gpu_faults(const char *plan, int on);

/** The function that was the last to fail on demand, or "". */
const char *umrddt_gpu_faults_last(void);

/* ---- beginnings (gpu_device.c) ---- */

extern pthread_mutex_t gpu_lock;
extern pthread_cond_t gpu_changed;

/**
 * How every function begins: takes the lock, counts the call, fails if the driver is not
 * initialized or gone, or if a fault is planned. On failure the lock is not held.
 */
CUresult gpu_begin(enum gpu_function function);

/** The same, and a current context without a sticky error, which it returns. */
CUresult gpu_begin_ctx(enum gpu_function function, CUcontext *ctx);

/**
 * The same for a function that is given a handle: where no context is current, that of the handle
 * is taken. Real drivers do so for streams, but not for the default stream, for events, and for
 * memory that is freed (H100, driver 580).
 *
 * @param[in] of  the context of the handle, or NULL; called with the lock held
 */
CUresult gpu_begin_of(enum gpu_function function, CUcontext (*of)(const void *handle),
                      const void *handle, CUcontext *ctx);

/** The contexts of a stream, an event, and memory; NULL if there is no such thing. */
CUcontext gpu_stream_context(const void *stream);
CUcontext gpu_event_context(const void *event);
CUcontext gpu_range_context(const void *address);

/** Give the lock back and return @p rc. */
static inline CUresult gpu_end(CUresult rc)
{
    pthread_mutex_unlock(&gpu_lock);
    return rc;
}

#define GPU_BEGIN(name)                              \
    do {                                             \
        CUresult gpu_rc_ = gpu_begin(GPU_FN_##name); \
        if (CUDA_SUCCESS != gpu_rc_) {               \
            return gpu_rc_;                          \
        }                                            \
    } while (0)

#define GPU_BEGIN_OF(name, of, handle, ctx)                                               \
    do {                                                                                  \
        CUresult gpu_rc_ = gpu_begin_of(GPU_FN_##name, of, (const void *) (handle), ctx); \
        if (CUDA_SUCCESS != gpu_rc_) {                                                    \
            return gpu_rc_;                                                               \
        }                                                                                 \
    } while (0)

#define GPU_BEGIN_STREAM(name, stream, ctx) GPU_BEGIN_OF(name, gpu_stream_context, stream, ctx)
#define GPU_BEGIN_EVENT(name, event, ctx)   GPU_BEGIN_OF(name, gpu_event_context, event, ctx)
#define GPU_BEGIN_MEMORY(name, address, ctx) \
    GPU_BEGIN_OF(name, gpu_range_context, (uintptr_t) (address), ctx)

#define GPU_BEGIN_CTX(name, ctx)                              \
    do {                                                      \
        CUresult gpu_rc_ = gpu_begin_ctx(GPU_FN_##name, ctx); \
        if (CUDA_SUCCESS != gpu_rc_) {                        \
            return gpu_rc_;                                   \
        }                                                     \
    } while (0)

/** Random number below @p bound, from the option's seed. */
uint64_t gpu_random(uint64_t bound);

/** One visible device. */
struct gpu_device {
    int physical; /**< number on the machine; differs where CUDA_VISIBLE_DEVICES is set */
    CUcontext primary;
    unsigned primary_refs;
    unsigned primary_flags;
    CUmemoryPool default_pool;
    CUmemoryPool pool;
    size_t used;
    /* gpu_memory.c */
    int fd;           /**< the memory, sparse; -1 before the first allocation */
    uint64_t *table;  /**< the file's first bytes: BUFFER_IDs of exported memory */
    char *app;        /**< addresses that the application gets */
    char *view;       /**< where the library sees the same */
    uintptr_t app_at; /**< where addresses begin that were never given */
    uint64_t file_at; /**< the unused part of the file; no part is used twice */
};

extern struct gpu_device gpu_device[GPU_DEVICES_MAX];

/** How many of them there are. */
int gpu_device_count(void);

/* ---- contexts (gpu_context.c) ---- */

struct CUctx_st {
    int device;
    bool primary;
    CUcontext root; /**< of a green context: the primary one, which has all but the name */
    unsigned flags;
    unsigned long long id;
    CUresult error;        /**< sticky */
    unsigned peers;        /**< devices whose memory kernels may touch, by bit */
    CUstream streams;      /**< all of them */
    CUstream legacy;       /**< the default stream */
    struct CUctx_st *next; /**< of all contexts */
};

/** The thread's current context, or NULL. */
CUcontext gpu_ctx_current(void);

/** The primary context of a green one, if both exist; else the same. */
CUcontext gpu_ctx_root(CUcontext ctx);

/** The root of the current context. */
CUcontext gpu_ctx_working(void);

/** A new name for a primary context; it is not retained. @return NULL: no memory */
CUcontext gpu_ctx_new_green(CUcontext primary);

/** Its end, and nothing else's. */
void gpu_ctx_end_green(CUcontext green);

/** Retain the primary context of a device, and give it back, with the lock held. */
CUcontext gpu_primary_retain(CUdevice device);
CUresult gpu_primary_release(CUdevice device);

/** All contexts, destroyed ones too: the first (NULL), the next, NULL. */
CUcontext gpu_ctx_next(CUcontext ctx);

/** True if there is such a context. */
bool gpu_ctx_exists(CUcontext ctx);

/* ---- memory (gpu_memory.c) ---- */

enum gpu_kind {
    GPU_DEVICE,     /**< cuMemAlloc */
    GPU_POOL,       /**< cuMemAllocAsync */
    GPU_VMM,        /**< cuMemMap */
    GPU_MANAGED,    /**< cuMemAllocManaged */
    GPU_HOST,       /**< cuMemHostAlloc */
    GPU_REGISTERED, /**< cuMemHostRegister */
    GPU_IPC         /**< cuIpcOpenMemHandle */
};

struct gpu_range {
    uintptr_t base; /**< the address for the application */
    size_t size;
    enum gpu_kind kind;
    int device;
    CUcontext ctx; /**< NULL where the driver reports none */
    uint64_t id;   /**< BUFFER_ID */
    char *view;    /**< where the library reads and writes base */
    unsigned flags;
    bool sync_memops;
    bool freed; /**< given back, by a stream that has not come that far */
    /* Whole pages below it. */
    uintptr_t map_base;
    size_t map_size;
    uint64_t file_offset; /**< of map_base */
    int slot;             /**< in the device's table, -1 if never exported */
    /* Of some kinds only. */
    CUmemoryPool pool;
    struct gpu_physical *physical;         /**< GPU_VMM: mapped from its beginning on */
    unsigned char access[GPU_DEVICES_MAX]; /**< GPU_VMM, GPU_POOL: CU_MEM_ACCESS_FLAGS_* */
    unsigned refs;                         /**< GPU_IPC: times opened */
    CUipcMemHandle handle;                 /**< GPU_IPC: the opened handle */
};

/** Of a device's file: the table of exported BUFFER_IDs. */
#define GPU_TABLE_BYTES (1ul << 20)
#define GPU_TABLE_SLOTS (GPU_TABLE_BYTES / sizeof(uint64_t))

/** The range that has an address, or NULL. Valid until ranges are added or removed. */
struct gpu_range *gpu_range_find(uintptr_t address);

/** Add a range (copied, with a new BUFFER_ID); NULL without memory. */
struct gpu_range *gpu_range_add(const struct gpu_range *range);

/** Remove it; its memory is the caller's business. */
void gpu_range_remove(struct gpu_range *range);

/** Call with each range until it returns false. */
void gpu_range_each(bool (*call)(struct gpu_range *range, void *data), void *data);

/** Grows when ranges change: earlier lookups have to be repeated. */
extern uint64_t gpu_range_generation;

/** Allocate from a device: GPU_DEVICE or GPU_POOL. */
CUresult gpu_alloc(CUcontext ctx, int device, enum gpu_kind kind, size_t size,
                   struct gpu_range **range);

/** Give back what gpu_alloc gave. */
void gpu_free(struct gpu_range *range);

/** The end of a range of any kind but GPU_VMM; no work in flight uses it. */
void gpu_end_range(struct gpu_range *range);

/** The properties of a piece of memory for a copy, at one moment. */
struct gpu_place {
    char *view;     /**< where the library can touch it */
    bool known;     /**< in a range; if not it is pageable memory of the application */
    bool on_device; /**< not touchable by the CPU */
    bool sync;      /**< SYNC_MEMOPS */
    bool freed;     /**< given back to its pool, by a stream that has not come that far */
    enum gpu_kind kind;
    const struct gpu_range *range; /**< where it begins, if known; valid as gpu_range_find's */
};

/**
 * Find memory for a copy on behalf of @p ctx.
 *
 * @retval CUDA_SUCCESS              known, or pageable
 * @retval CUDA_ERROR_INVALID_VALUE  begins in a range and goes beyond it
 */
CUresult gpu_place_find(uintptr_t address, size_t size, struct gpu_place *place);

/** May kernels of @p ctx touch this range? */
bool gpu_may_touch(CUcontext ctx, const struct gpu_range *range, bool write);

/** Memory leaves its pool, if it has one (gpu_pool.c). */
void gpu_pool_left(struct gpu_range *range);

/** Enter exported memory in the device's table (gpu_ipc.c). */
CUresult gpu_publish(struct gpu_range *range);

/** The file of physical memory (gpu_vmm.c). */
int gpu_physical_fd(const struct gpu_physical *physical);

/** Reserve inaccessible addresses, aligned; NULL without any. */
char *gpu_reserve(size_t size, size_t alignment);

/* ---- streams (gpu_stream.c) ---- */

/** Something that a stream, or a graph, does. Counted by references; does not change when shared.
 */
struct gpu_work {
    unsigned refs;
    CUgraphNodeType type;
    /** Do it, without the lock; an error here is sticky. */
    CUresult (*run)(struct gpu_work *work, CUcontext ctx);
    /** Free what hangs on it, with the lock held; may be NULL. */
    void (*drop)(struct gpu_work *work);
    /** Of a call that does not say async, and does not wait either; on these ranges (by id). */
    bool late;
    uint64_t touches[2];
};

struct gpu_dep {
    CUstream stream;
    uint64_t number;
};

struct gpu_op {
    struct gpu_op *next;
    uint64_t number;
    struct gpu_work *work;
    unsigned dep_count;
    struct gpu_dep *deps;
};

struct CUstream_st {
    CUcontext ctx;
    unsigned flags;
    int priority;
    unsigned long long id;
    bool started;
    bool closing;
    unsigned refs; /**< the context's list, the thread, events, and work that waits for it */
    pthread_t thread;
    struct gpu_op *head;
    struct gpu_op **tail;
    pthread_cond_t came; /**< work, or the end: what its thread waits for when it has none */
    uint64_t submitted;
    uint64_t done;
    CUgraph capture;
    CUgraphNode captured; /**< the last node */
    bool capture_broken;
    CUstreamCaptureMode capture_mode;
    pthread_t capturer; /**< the thread that began it */
    struct CUstream_st *next;
};

/** Work of @p size bytes with one reference; zeroed behind the head. NULL without memory. */
void *gpu_work_new(size_t size, CUgraphNodeType type,
                   CUresult (*run)(struct gpu_work *work, CUcontext ctx),
                   void (*drop)(struct gpu_work *work));

/** Give one reference back, with the lock held. */
void gpu_work_drop(struct gpu_work *work);

/** The stream of a handle given by the application, with the lock held. */
CUresult gpu_stream_get(CUcontext ctx, CUstream handle, CUstream *stream);

/**
 * Put work into a stream, or into the graph that it captures, and take over the reference. With the
 * lock held, which is given up while waiting.
 *
 * @param[in] work  NULL: there was no memory for it
 * @param[in] wait  until it was done
 */
CUresult gpu_submit(CUstream stream, struct gpu_work *work, bool wait);

/** Work that does nothing; NULL without memory. */
struct gpu_work *gpu_work_nothing(void);

/** Put work into a stream that does not capture, behind what another stream (or NULL) reaches
 * first. */
CUresult gpu_submit_after(CUstream stream, struct gpu_work *work, CUstream other, uint64_t number);

/** Work without work, behind what another stream has to reach first. */
CUresult gpu_submit_dep(CUstream stream, CUstream other, uint64_t number);

/** Wait until a stream came as far as @p number; the context's error, if there is one. */
CUresult gpu_stream_wait(CUstream stream, uint64_t number);

/** Wait for what calls that do not say async have left unfinished on a range. */
void gpu_wait_late(uint64_t id);

/** Wait for all streams of a context, or of all contexts (NULL). */
CUresult gpu_drain(CUcontext ctx);

/** Make a context's default stream. */
CUstream gpu_stream_new(CUcontext ctx, unsigned flags, int priority);

/** End all streams of a context. */
void gpu_streams_end(CUcontext ctx);

/** True if there is such a stream; default streams have no handle. */
bool gpu_stream_exists(CUstream stream);

/** Add work to the capture of a stream, and take over the reference (gpu_graph.c). */
CUresult gpu_capture_add(CUstream stream, struct gpu_work *work);

/**
 * How a call begins that is not safe while a stream captures.
 *
 * @retval CUDA_SUCCESS
 * @retval CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED  a capture forbids it to this thread, and is void
 */
CUresult gpu_capture_unsafe(void);

/**
 * How the use of a default stream begins: not while a stream captures that it waits for.
 *
 * @param[in] breaks  the use makes such captures void
 *
 * @retval CUDA_SUCCESS
 * @retval CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
 */
CUresult gpu_capture_implicit(CUcontext ctx, bool breaks);

/** End the capture of a stream with an error, if it captures. */
void gpu_capture_end(CUstream stream);

/** Give a reference to a stream back. */
void gpu_stream_drop(CUstream stream);

#endif /* GPU_H */
