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
 * Private to this directory: engines, shapes, routes and copies.
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

#include "opal/constants.h"
#include "opal/mca/common/umrddt_gpu/kernels/umrddt_gpu_plan.h"

#include "umrddt_gpu_engine.h"

/* Maximum number of copies in flight without a wait for each other. */
#define STREAMS 8
/* Size of a flag, so that no two share a cache line; number of copies per allocation. */
#define FLAG_BYTES 64
#define SLAB       64
/* Hash buckets of shapes. */
#define BUCKETS 256
/* Maximum number of shapes without a list on the device. */
#define SHAPES 4096
/*
 * Size of the caches of routes and launches. Each entry has WAYS possible slots, which are replaced
 * in turn.
 */
#define ROUTES   256
#define LAUNCHES 256
#define WAYS     4
/* Maximum number of driver copies for one message. */
#define BOXES 4
/* Staging buffers of a copy through system memory. */
#define PIECES 3
/* Staging memory of an engine for use when the pool is empty. */
#define RESERVE ((size_t) 64 << 10)

/* ---- engines ---- */

/* A layout for kernels, and its list on the device. */
typedef struct opal_umrddt_gpu_shape_t {
    struct opal_umrddt_gpu_shape_t *chain; /* of its bucket */
    struct opal_umrddt_gpu_shape_t *newer; /* LRU order */
    struct opal_umrddt_gpu_shape_t *older;
    uint64_t id; /* of the layout */
    opal_umrddt_gpu_map_t *map;
    CUdeviceptr list; /* 0: not on the device (yet) */
    void *pinned;     /* source of its upload, until that is complete */
    CUevent event;    /* event of the upload ... */
    CUstream stream;  /* ... for all streams except this one */
    bool ready;       /* the upload is complete */
    bool cached;      /* in the cache */
    unsigned uses;
    unsigned refs; /* copies in progress, and the cache */
} opal_umrddt_gpu_shape_t;

/* A part of a copy: `depth` times `height` rows of `width` bytes. */
typedef struct opal_umrddt_gpu_box_t {
    int64_t offset[2]; /* from the addresses of both places */
    uint64_t width;
    uint64_t height;
    uint64_t depth;
    uint64_t pitch[2]; /* from row to row; 0 if there is one */
    uint64_t slice[2];
} opal_umrddt_gpu_box_t;

/* Method from one layout to another, for all addresses. */
typedef struct opal_umrddt_gpu_route_t {
    uint64_t id[2]; /* of the layouts; 0: packed */
    uint64_t start;
    uint64_t end;   /* 0: empty */
    bool on_device; /* both places are on the engine's device */
    unsigned n;     /* boxes; 0: a kernel */
    opal_umrddt_gpu_box_t box[BOXES];
} opal_umrddt_gpu_route_t;

/* A cached launch for these layouts, addresses and range. */
typedef struct opal_umrddt_gpu_launch_t {
    uint64_t id[2]; /* of the layouts; 0: packed */
    uint64_t address[2];
    uint64_t start;
    uint64_t end;                      /* 0: empty */
    opal_umrddt_gpu_shape_t *shape[2]; /* in the cache, with their lists there; else it is empty */
    CUfunction function;
    uint32_t grid[3];
    uint32_t block[3];
    umrddt_gpu_args_t args;
} opal_umrddt_gpu_launch_t;

/* State of a graph; changed with the lock, except from BUSY to READY. */
enum {
    GRAPH_NONE,
    GRAPH_READY,
    GRAPH_BUSY,  /* a thread launches it */
    GRAPH_DOOMED /* the launching thread frees it, since its launch was removed */
};

/* The same launch as a CUDA graph, if one exists. */
typedef struct opal_umrddt_gpu_graph_t {
    CUgraphExec exec;
    int state;
    unsigned again; /* launches without the graph */
    uint64_t used;  /* launch count of the engine at its last use */
} opal_umrddt_gpu_graph_t;

typedef struct opal_umrddt_gpu_slab_t opal_umrddt_gpu_slab_t;

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
    CUmodule module;
    bool kernels; /* the module contains kernels */
    CUfunction function[UMRDDT_GPU_KERNEL_COUNT];
    opal_umrddt_gpu_fit_t fit;
    CUstream stream[STREAMS];
    unsigned next_stream;
    CUstream order_stream; /* blocking, and without work except ... */
    CUevent order_event;   /* ... this; both created with the lock, at first use */
    bool orders;           /* both exist */

    pthread_mutex_t lock;
    unsigned next_way;
    opal_umrddt_gpu_shape_t *bucket[BUCKETS];
    opal_umrddt_gpu_shape_t *newest;
    opal_umrddt_gpu_shape_t *oldest;
    unsigned shapes;
    size_t shape_bytes;
    opal_umrddt_gpu_route_t route[ROUTES];
    opal_umrddt_gpu_launch_t launch[LAUNCHES];
    opal_umrddt_gpu_graph_t graph[LAUNCHES]; /* of the launch with this index */
    unsigned graphs;                         /* existing graphs */
    bool no_graphs;                          /* this driver refused one */
    uint64_t launched;                       /* launches found in the cache */
    opal_umrddt_gpu_copy_t *idle;
    opal_umrddt_gpu_slab_t *slabs;
    pthread_mutex_t reserve_lock; /* taken before the other lock, and held while it is used */
    unsigned char *reserve;       /* RESERVE bytes for pieces; NULL: not needed yet */
};

/* Written once. */
extern opal_umrddt_gpu_engine_params_t opal_umrddt_gpu_engine_set;

/* Updated without a lock. */
extern opal_umrddt_gpu_engine_stats_t opal_umrddt_gpu_engine_counts;
#define COUNT(counter, n) \
    ((void) __atomic_add_fetch(&opal_umrddt_gpu_engine_counts.counter, (n), __ATOMIC_RELAXED))

/* Make the context current if it is not. @param[out] pushed for swap_out */
int opal_umrddt_gpu_engine_swap_in(opal_umrddt_gpu_engine_t *engine, bool *pushed);
void opal_umrddt_gpu_engine_swap_out(opal_umrddt_gpu_engine_t *engine, bool pushed);

/* Converts a driver result to an OPAL error. */
int opal_umrddt_gpu_engine_error(CUresult rc);

/* ---- shapes; with the context current, without the lock ---- */

/*
 * The shape of a layout, created if necessary.
 *
 * @param[out] shape  the caller's until opal_umrddt_gpu_shape_unuse
 *
 * @retval OPAL_SUCCESS, OPAL_ERR_OUT_OF_RESOURCE
 */
int opal_umrddt_gpu_shape_get(opal_umrddt_gpu_engine_t *engine,
                              const opal_iov_cache_layout_t *layout,
                              opal_umrddt_gpu_shape_t **shape);

/*
 * The device address of the list, for following work in a stream.
 *
 * @param[in]  may_travel  a short list may be part of the launch argument, as at the first use
 * @param[out] list        0 if it is part of the argument, or if there is none
 */
int opal_umrddt_gpu_shape_list(opal_umrddt_gpu_engine_t *engine, opal_umrddt_gpu_shape_t *shape,
                               CUstream stream, bool may_travel, CUdeviceptr *list);

/* Add a use by another copy; with the lock. */
void opal_umrddt_gpu_shape_use(opal_umrddt_gpu_engine_t *engine, opal_umrddt_gpu_shape_t *shape);

/*
 * Remove the use of a copy; with the lock.
 *
 * @param[in]  used    work after the list in a stream is complete: the list is on the device
 * @param[out] pinned  a buffer to release; else unchanged
 *
 * @return true if it is unused now and must be freed
 */
bool opal_umrddt_gpu_shape_unuse(opal_umrddt_gpu_shape_t *shape, bool used, void **pinned);
void opal_umrddt_gpu_shape_free(opal_umrddt_gpu_engine_t *engine, opal_umrddt_gpu_shape_t *shape);

/* Free all shapes. @param[in] alive  the context exists, and is current */
void opal_umrddt_gpu_shapes_free(opal_umrddt_gpu_engine_t *engine, bool alive);

/* ---- routes ---- */

/* A form of one piece, for a place without a layout. */
typedef struct opal_umrddt_gpu_flat_t {
    opal_iov_cache_form_t form;
    opal_iov_cache_term_t term;
} opal_umrddt_gpu_flat_t;

/* The place's form: of its layout, or of the range alone. */
const opal_iov_cache_form_t *opal_umrddt_gpu_form_of(const opal_umrddt_gpu_copy_end_t *copy_end,
                                                     uint64_t start, uint64_t end,
                                                     opal_umrddt_gpu_flat_t *flat);

/* Start a walk over the parts of a range of two places. @param[out] flat  must live as long */
void opal_umrddt_gpu_pairs_begin(opal_iov_cache_pairs_t *pairs,
                                 const opal_umrddt_gpu_copy_end_t copy_ends[2], uint64_t start,
                                 uint64_t end, opal_umrddt_gpu_flat_t flat[2]);

/* Convert a part to a box. @return false if one driver copy is not enough */
bool opal_umrddt_gpu_box_of(const opal_iov_cache_pair_t *pair, opal_umrddt_gpu_box_t *box);

/*
 * The smallest number of boxes for a range, at most @p most. @return 0 if there are none, or too
 * many
 */
unsigned opal_umrddt_gpu_boxes_find(const opal_umrddt_gpu_copy_end_t copy_ends[2], uint64_t start,
                                    uint64_t end, unsigned most, opal_umrddt_gpu_box_t *boxes);

/*
 * True if a driver copy of a box is faster than a kernel.
 *
 * @param[in] on_device    within one device
 * @param[in] graphs  repeated kernels become graphs
 */
bool opal_umrddt_gpu_box_is_better(const opal_umrddt_gpu_box_t *box, bool on_device, bool graphs);

/*
 * Boxes of this range, or none: then a kernel is faster, or required. @param[in] keep  cache the
 * result
 */
void opal_umrddt_gpu_route_find(opal_umrddt_gpu_engine_t *engine,
                                const opal_umrddt_gpu_copy_end_t copy_ends[2], uint64_t start,
                                uint64_t end, bool keep, opal_umrddt_gpu_route_t *route);

/* Submit the boxes of a route. */
CUresult opal_umrddt_gpu_route_go(opal_umrddt_gpu_engine_t *engine, CUstream stream,
                                  const opal_umrddt_gpu_route_t *route,
                                  const opal_umrddt_gpu_copy_end_t copy_ends[2]);

/*
 * Submit any number of driver copies.
 *
 * @param[in] single  one per block
 * @param[in] homes   of both places, if copies must name them; else NULL
 */
CUresult opal_umrddt_gpu_route_blocks(opal_umrddt_gpu_engine_t *engine, CUstream stream,
                                      const opal_umrddt_gpu_copy_end_t copy_ends[2], uint64_t start,
                                      uint64_t end, bool single, const CUcontext homes[2]);

/* Copy by the CPU, which can access both. */
void opal_umrddt_gpu_route_host(const opal_umrddt_gpu_copy_end_t copy_ends[2], uint64_t start,
                                uint64_t end);

/* ---- launches ---- */

/* Copy by one kernel. The copy takes the shapes. @param[in] keep  cache the launch */
int opal_umrddt_gpu_launch(opal_umrddt_gpu_copy_t *copy,
                           const opal_umrddt_gpu_copy_end_t copy_ends[2], uint64_t start,
                           uint64_t end, bool keep);

/*
 * Repeat a cached launch.
 *
 * @param[out] copy  unchanged if the launch is not cached
 * @param[out] rc    result of the driver
 *
 * @return false if it is not cached
 */
bool opal_umrddt_gpu_launch_again(opal_umrddt_gpu_engine_t *engine,
                                  const opal_umrddt_gpu_copy_end_t copy_ends[2], uint64_t start,
                                  uint64_t end, opal_umrddt_gpu_copy_t **copy, CUresult *rc);

/* ---- graphs ---- */

/*
 * The graph of a launch that is about to be repeated; with the lock. Created when due.
 *
 * @return NULL: none, or another thread is launching it; else it is this thread's until
 *         opal_umrddt_gpu_graph_go
 */
opal_umrddt_gpu_graph_t *opal_umrddt_gpu_graph_take(opal_umrddt_gpu_engine_t *engine,
                                                    const opal_umrddt_gpu_launch_t *launch);

/* Launch a graph; without the lock. @return result of the driver: on failure the graph is freed */
CUresult opal_umrddt_gpu_graph_go(opal_umrddt_gpu_engine_t *engine, opal_umrddt_gpu_graph_t *graph,
                                  CUstream stream);

/* A launch is removed or changed: free its graph. With the lock. */
void opal_umrddt_gpu_graph_forget(opal_umrddt_gpu_engine_t *engine,
                                  const opal_umrddt_gpu_launch_t *launch);

/* Free all graphs. @param[in] alive  the context exists, and is current */
void opal_umrddt_gpu_graphs_free(opal_umrddt_gpu_engine_t *engine, bool alive);

/* ---- reach ---- */

/* Methods of an engine that reach a place. */
typedef enum {
    REACH_PEERS,  /* driver copies that name the contexts of both sides */
    REACH_COPIES, /* any driver copy */
    REACH_KERNELS /* and kernels */
} opal_umrddt_gpu_reach_t;

/*
 * The methods that reach the memory of a place. Enables access to another device where possible.
 * The context is current.
 *
 * @param[in] kernels  kernels must reach it; else only the needs of driver copies are tested
 */
opal_umrddt_gpu_reach_t opal_umrddt_gpu_reach(opal_umrddt_gpu_engine_t *engine,
                                              const opal_umrddt_gpu_copy_end_t *copy_end,
                                              bool kernels);

/*
 * For driver copies: the contexts that they must name, if any.
 *
 * @param[out] homes  of both places; only set with *apart
 * @param[out] apart  plain driver copies do not reach one of them
 */
int opal_umrddt_gpu_homes(opal_umrddt_gpu_engine_t *engine,
                          const opal_umrddt_gpu_copy_end_t copy_ends[2], CUcontext homes[2],
                          bool *apart);

/* The device address of a place. */
int opal_umrddt_gpu_translate(opal_umrddt_gpu_engine_t *engine,
                              const opal_umrddt_gpu_copy_end_t *copy_end, uint64_t *address);

/* ---- copies ---- */

typedef enum {
    COPY_DIRECT, /* one operation of the device, or a few in one stream */
    COPY_STAGED, /* by several copies, through staging buffers */
    COPY_OVER    /* complete */
} opal_umrddt_gpu_copy_kind_t;

/* A piece of a copy through system memory. */
typedef struct opal_umrddt_gpu_piece_t {
    void *buffer;
    opal_umrddt_gpu_copy_t *copy; /* NULL: not in progress */
    uint64_t start;
    uint64_t end;
} opal_umrddt_gpu_piece_t;

struct opal_umrddt_gpu_copy_t {
    opal_umrddt_gpu_copy_t *next; /* in the list of free ones */
    opal_umrddt_gpu_engine_t *engine;
    opal_umrddt_gpu_copy_kind_t kind;
    CUstream stream;
    volatile uint32_t *flag; /* equals `turn` when the copy is complete */
    CUdeviceptr flag_there;
    uint32_t turn;
    bool by_event;
    CUevent event;
    unsigned tests;
    opal_umrddt_gpu_shape_t *shape[2];
    bool listed[2]; /* its list on the device is used */
    /* COPY_STAGED */
    opal_umrddt_gpu_copy_end_t copy_end[2];
    uint64_t start;
    uint64_t next_start;
    uint64_t end;
    uint64_t piece_bytes;
    unsigned pieces; /* pieces with a buffer */
    unsigned first;  /* the oldest in progress */
    opal_umrddt_gpu_piece_t piece[PIECES];
};

/* Copies, and their flags in a page that the device can write. */
struct opal_umrddt_gpu_slab_t {
    opal_umrddt_gpu_slab_t *next;
    unsigned char *flags;
    CUdeviceptr there; /* 0: the device cannot access them */
    opal_umrddt_gpu_copy_t copy[SLAB];
};

/* Get an unused copy. @retval OPAL_SUCCESS, OPAL_ERR_OUT_OF_RESOURCE, OPAL_ERROR */
int opal_umrddt_gpu_copy_take(opal_umrddt_gpu_engine_t *engine, opal_umrddt_gpu_copy_t **copy);
void opal_umrddt_gpu_copy_drop(opal_umrddt_gpu_copy_t *copy);
/* With the lock. @return NULL if no copy is free */
opal_umrddt_gpu_copy_t *opal_umrddt_gpu_copy_pop(opal_umrddt_gpu_engine_t *engine);

/*
 * Ordinary memory that is registered, so that it outlives the context.
 *
 * @param[out] there  device address; 0 if the driver refuses
 *
 * @return free it with free() after unregistering it; NULL if out of memory
 */
unsigned char *opal_umrddt_gpu_registered(opal_umrddt_gpu_engine_t *engine, size_t bytes,
                                          CUdeviceptr *there);

/* Free all copies. @param[in] alive  the context exists, and is current */
void opal_umrddt_gpu_copies_free(opal_umrddt_gpu_engine_t *engine, bool alive);

/*
 * Start a copy between places that the device can access; the context is current.
 *
 * @param[in] keep  cache the method; not useful for one of many pieces, which would displace other
 *                  entries
 */
int opal_umrddt_gpu_copy_direct(opal_umrddt_gpu_engine_t *engine,
                                const opal_umrddt_gpu_copy_end_t copy_ends[2], uint64_t start,
                                uint64_t end, bool keep, opal_umrddt_gpu_copy_t **copy);

/* Start a copy with one place in pageable memory; the context is current. */
int opal_umrddt_gpu_staged_begin(opal_umrddt_gpu_engine_t *engine,
                                 const opal_umrddt_gpu_copy_end_t copy_ends[2], uint64_t start,
                                 uint64_t end, opal_umrddt_gpu_copy_t **copy);

/* @retval OPAL_SUCCESS, OPAL_ERR_RESOURCE_BUSY, OPAL_ERROR; does not free the copy */
int opal_umrddt_gpu_staged_test(opal_umrddt_gpu_copy_t *copy);

#endif /* OPAL_UMRDDT_GPU_ENGINE_PRIVATE_H */
