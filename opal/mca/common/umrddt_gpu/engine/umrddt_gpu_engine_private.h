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
 * Private to this directory: engines. Their parts have headers of their own: umrddt_gpu_shape.h,
 * _route.h, _launch.h, _reach.h, _copy.h.
 *
 * An engine's lock protects its shapes, its routes and its free copies. It is held shortly on cache
 * hits, and during driver calls only for the creation of an object. No other lock of this directory
 * may be taken while it is held.
 */

#ifndef OPAL_UMRDDT_GPU_ENGINE_PRIVATE_H
#define OPAL_UMRDDT_GPU_ENGINE_PRIVATE_H

#include "opal_config.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "umrddt_compat.h"

#include "opal/constants.h"
#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_batch.h"
#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_plan.h"
#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_reduce_args.h"

#include "umrddt_gpu_engine.h"
#include "umrddt_gpu_launch.h"
#include "umrddt_gpu_route.h"
#include "umrddt_gpu_shape.h"

/* Maximum number of copies in flight without a wait for each other. */
#define STREAMS 8
/* Hash buckets of shapes. */
#define BUCKETS 256
/*
 * Size of the caches of routes and launches. Each entry has WAYS possible slots, which are replaced
 * in turn.
 */
#define ROUTES   256
#define LAUNCHES 256
#define WAYS     4
/* Staging memory of an engine for use when the pool is empty. */
#define RESERVE ((size_t) 64 << 10)

/* The kernels of reductions; REDUCE_NONE: not for this device, or not compiled. */
enum {
    REDUCE_UNKNOWN,
    REDUCE_READY,
    REDUCE_NONE
};

/*
 * Maximum bytes of a pending copy. Copies that take longer than a launch (about 5 us) go at once,
 * beside others.
 */
#define PENDING_BYTES ((uint64_t) 512 << 10)
/*
 * If the next flush comes later than this time (ns), the application has left MPI: the next flushes
 * leave no copy pending.
 */
#define HELD_MOST  UINT64_C(50000)
#define HELD_SKIPS 64
/* Time (ns) after a pending copy in which an expected one should follow: a few times the interval
 * of messages that a process sends in a row. */
#define HELD_NEXT UINT64_C(1000)

/* The pending copies of an engine, in order; with its lock. */
typedef struct opal_umrddt_gpu_pending_t {
    opal_umrddt_gpu_copy_t *first;
    opal_umrddt_gpu_copy_t *last; /* if there is a first one */
    unsigned n;
    unsigned before;  /* n at the last flush that found more of them and left them pending ... */
    uint64_t held_at; /* ... and its time, ns */
    unsigned skips;   /* following flushes that leave none pending */
} opal_umrddt_gpu_pending_t;

struct opal_umrddt_gpu_engine_t {
    struct opal_umrddt_gpu_engine_t *next;
    const opal_umrddt_gpu_driver_t *driver;
    int device;
    CUcontext ctx;
    unsigned long long ctx_id; /* 0: not reported by this driver */
    bool primary;              /* the device's primary context, retained here */
    bool gone;                 /* the context was destroyed */
    CUdeviceptr witness;       /* memory of the context, freed with it; 0: none */
    uint64_t witness_id;       /* its BUFFER_ID */
    bool writes_values;        /* streams write flags; else events are queried */
    bool translates;           /* registered memory has another address on this device */
    CUmodule module;           /* NULL with PTX: then each kernel has ... */
    CUmodule single[UMRDDT_GPU_KERNEL_COUNT]; /* ... its own one, from its first launch on */
    bool kernels;                             /* there are kernels for this device; atomic */
    CUfunction function[UMRDDT_GPU_KERNEL_COUNT];
    CUmodule reduce_module; /* loaded by the first reduction; with the lock */
    CUfunction reduce_function[UMRDDT_GPU_REDUCE_KERNEL_COUNT];
    int reduces; /* state of these */
    opal_umrddt_gpu_fit_t fit;
    CUstream stream[STREAMS];
    unsigned next_stream;
    CUstream order_stream; /* blocking, and without work except ... */
    CUevent order_event;   /* ... this; both created with the lock, at first use */
    bool orders;           /* both exist */

    opal_mutex_t lock; /* only with threads */
    unsigned next_way;
    opal_umrddt_gpu_shape_t *bucket[BUCKETS];
    opal_umrddt_gpu_shape_t *newest;
    opal_umrddt_gpu_shape_t *oldest;
    unsigned shapes;
    size_t shape_bytes;
    opal_umrddt_gpu_route_t route[ROUTES];
    opal_umrddt_gpu_launch_t launch[LAUNCHES];
    opal_umrddt_gpu_graph_t graph[LAUNCHES]; /* of the launch with this index */
    opal_umrddt_gpu_part_t part[LAUNCHES]; /* the same copy in a batch; blocks is 0: not planned */
    unsigned graphs;                       /* existing graphs */
    bool no_graphs;                        /* this driver refused one */
    uint64_t launched;                     /* launches found in the cache */
    opal_umrddt_gpu_copy_t *idle;
    unsigned busy; /* copies that are not idle */
    opal_umrddt_gpu_pending_t pending;
    struct opal_umrddt_gpu_slab_t *slabs;
    pthread_mutex_t reserve_lock; /* taken before the other lock, and held while it is used */
    unsigned char *reserve;       /* RESERVE bytes for pieces; NULL: not needed yet */
};

/*
 * Without compiled kernels: a module without kernels. The software driver still finds its kernels,
 * since it does not read modules.
 */
extern const char opal_umrddt_gpu_no_kernels[];

/* Written once. */
extern opal_umrddt_gpu_engine_params_t opal_umrddt_gpu_engine_set;

/* Updated without a lock. */
extern opal_umrddt_gpu_engine_stats_t opal_umrddt_gpu_engine_counts;
#define COUNT(counter, n) count_add(&opal_umrddt_gpu_engine_counts.counter, (n))
static inline void count_add(uint64_t *counter, uint64_t n)
{
    if (opal_using_threads()) {
        (void) __atomic_add_fetch(counter, n, __ATOMIC_RELAXED);
    } else {
        *counter += n;
    }
}

/* Make the context current if it is not. @param[out] pushed for swap_out */
int opal_umrddt_gpu_engine_swap_in(opal_umrddt_gpu_engine_t *engine, bool *pushed);
static inline void opal_umrddt_gpu_engine_swap_out(opal_umrddt_gpu_engine_t *engine, bool pushed)
{
    if (pushed) {
        opal_umrddt_gpu_engine_leave(engine);
    }
}

/* Call a function for each engine. */
void opal_umrddt_gpu_engines_each(void (*call)(opal_umrddt_gpu_engine_t *engine));

/* Converts a driver result to an OPAL error. */
static inline int opal_umrddt_gpu_engine_error(CUresult rc)
{
    return CUDA_SUCCESS == rc               ? OPAL_SUCCESS
           : CUDA_ERROR_OUT_OF_MEMORY == rc ? OPAL_ERR_OUT_OF_RESOURCE
                                            : OPAL_ERROR;
}

/* Memory may be free later, and a capture ends. */
static inline bool opal_umrddt_gpu_is_transient(CUresult rc)
{
    return CUDA_ERROR_OUT_OF_MEMORY == rc
           || (CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED <= rc
               && CUDA_ERROR_STREAM_CAPTURE_IMPLICIT >= rc);
}

/* The driver refuses a kernel. Unless that is transient, the engine has none from now on. */
void opal_umrddt_gpu_lose_kernels(opal_umrddt_gpu_engine_t *engine, CUresult rc);

/* Launch the pending copies of an engine. */
void opal_umrddt_gpu_flush_now(opal_umrddt_gpu_engine_t *engine);

#endif /* OPAL_UMRDDT_GPU_ENGINE_PRIVATE_H */
