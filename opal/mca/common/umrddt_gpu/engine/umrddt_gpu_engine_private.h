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
 * Private to this room: engines, shapes, routes and copies.
 *
 * An engine's lock guards its shapes, its routes and its free copies. It is held for a few loads
 * and stores where a copy finds what it needs, and for driver calls only where something is made
 * for the first time. Who holds it takes no other lock of this room.
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

/* Copies that can be under way at once without waiting for each other. */
#define STREAMS 8
/* Flags lie apart, so that no two are in one cache line; copies are allocated so many at a time. */
#define FLAG_BYTES 64
#define SLAB       64
/* Shapes are found by hash. */
#define BUCKETS 256
/* Shapes without a list on the device, of which there may be any number otherwise. */
#define SHAPES 4096
/* Routes and launches that an engine remembers. Each has WAYS places where it may be, of which one
 * after the other is taken for others. */
#define ROUTES   256
#define LAUNCHES 256
#define WAYS     4
/* Copies of the driver's that do one message, at most. */
#define BOXES 4
/* Pinned buffers that a copy through the host has in use. */
#define PIECES 3
/* Pinned memory that an engine has for copies through the host where the pool has none. */
#define RESERVE ((size_t) 64 << 10)

/* ---- engines ---- */

/* A layout for kernels, and its list on the device. */
typedef struct opal_umrddt_gpu_shape_t {
    struct opal_umrddt_gpu_shape_t *chain; /* of its bucket */
    struct opal_umrddt_gpu_shape_t *newer; /* by use */
    struct opal_umrddt_gpu_shape_t *older;
    uint64_t id; /* of the layout */
    opal_umrddt_gpu_map_t *map;
    CUdeviceptr list; /* 0: not on the device (yet) */
    void *pinned;     /* where it is copied from, until that is over */
    CUevent event;    /* says when the list is there ... */
    CUstream stream;  /* ... to all streams but this one */
    bool ready;       /* it is there */
    bool kept;        /* in the cache */
    unsigned uses;
    unsigned refs; /* copies under way, and the cache */
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

/* How to get from one layout to another, for all addresses. */
typedef struct opal_umrddt_gpu_route_t {
    uint64_t id[2]; /* of the layouts; 0: packed */
    uint64_t start;
    uint64_t end; /* 0: an empty slot */
    bool home;    /* both places are the device's own */
    unsigned n;   /* boxes; 0: a kernel */
    opal_umrddt_gpu_box_t box[BOXES];
} opal_umrddt_gpu_route_t;

/* A launch, ready to be done again: for these layouts, addresses and range. */
typedef struct opal_umrddt_gpu_launch_t {
    uint64_t id[2]; /* of the layouts; 0: packed */
    uint64_t address[2];
    uint64_t start;
    uint64_t end;                      /* 0: an empty slot */
    opal_umrddt_gpu_shape_t *shape[2]; /* in the cache, with their lists there; else it is empty */
    CUfunction function;
    uint32_t grid[3];
    uint32_t block[3];
    umrddt_gpu_args_t args;
} opal_umrddt_gpu_launch_t;

/* What can be done with a graph; changed with the lock, but from BUSY to READY. */
enum {
    GRAPH_NONE,
    GRAPH_READY,
    GRAPH_BUSY,  /* a thread launches it */
    GRAPH_DOOMED /* and that thread frees it, as its launch is forgotten */
};

/* The same launch as a graph of the driver's, if it has become one. */
typedef struct opal_umrddt_gpu_graph_t {
    CUgraphExec exec;
    int state;
    unsigned again; /* launches without it */
    uint64_t used;  /* when it was last, by the engine's launches */
} opal_umrddt_gpu_graph_t;

typedef struct opal_umrddt_gpu_slab_t opal_umrddt_gpu_slab_t;

struct opal_umrddt_gpu_engine_t {
    struct opal_umrddt_gpu_engine_t *next;
    const opal_umrddt_gpu_driver_t *driver;
    int device;
    CUcontext ctx;
    unsigned long long ctx_id; /* 0: this driver does not say */
    bool primary;              /* the device's primary context, retained here */
    bool gone;                 /* the context was destroyed */
    CUdeviceptr witness;       /* memory of the context, which goes with it; 0: there is none */
    uint64_t witness_id;       /* its BUFFER_ID */
    bool writes_values;        /* streams write flags; else events are asked */
    bool translates;           /* registered memory has another address on this device */
    CUmodule module;
    bool kernels; /* the module has them */
    CUfunction function[UMRDDT_GPU_KERNEL_COUNT];
    opal_umrddt_gpu_fit_t fit;
    CUstream stream[STREAMS];
    unsigned next_stream;
    CUstream order_stream; /* blocking, and without work but ... */
    CUevent order_event;   /* ... this; both made with the lock, at first use */
    bool orders;           /* they are there */

    pthread_mutex_t lock;
    unsigned next_way;
    opal_umrddt_gpu_shape_t *bucket[BUCKETS];
    opal_umrddt_gpu_shape_t *newest;
    opal_umrddt_gpu_shape_t *oldest;
    unsigned shapes;
    size_t shape_bytes;
    opal_umrddt_gpu_route_t route[ROUTES];
    opal_umrddt_gpu_launch_t launch[LAUNCHES];
    opal_umrddt_gpu_graph_t graph[LAUNCHES]; /* of the launch with this number */
    unsigned graphs;                         /* that exist */
    bool no_graphs;                          /* this driver refused one */
    uint64_t launched;                       /* again */
    opal_umrddt_gpu_copy_t *idle;
    opal_umrddt_gpu_slab_t *slabs;
    pthread_mutex_t reserve_lock; /* taken before the other lock, and held while it is used */
    unsigned char *reserve;       /* RESERVE bytes for pieces; NULL: it was not needed yet */
};

/* Set once. */
extern opal_umrddt_gpu_engine_params_t opal_umrddt_gpu_engine_set;

/* Counted without a lock. */
extern opal_umrddt_gpu_engine_stats_t opal_umrddt_gpu_engine_counts;
#define COUNT(counter, n) \
    ((void) __atomic_add_fetch(&opal_umrddt_gpu_engine_counts.counter, (n), __ATOMIC_RELAXED))

/* Make the context current if it is not. @param[out] pushed for swap_out */
int opal_umrddt_gpu_engine_swap_in(opal_umrddt_gpu_engine_t *engine, bool *pushed);
void opal_umrddt_gpu_engine_swap_out(opal_umrddt_gpu_engine_t *engine, bool pushed);

/* What a result of the driver is to callers of this room. */
int opal_umrddt_gpu_engine_error(CUresult rc);

/* ---- shapes; with the context current, without the lock ---- */

/*
 * The shape of a layout, made if there is none yet.
 *
 * @param[out] shape  the caller's until opal_umrddt_gpu_shape_unuse
 *
 * @retval OPAL_SUCCESS, OPAL_ERR_OUT_OF_RESOURCE
 */
int opal_umrddt_gpu_shape_get(opal_umrddt_gpu_engine_t *engine,
                              const opal_iov_cache_layout_t *layout,
                              opal_umrddt_gpu_shape_t **shape);

/*
 * Where the device sees the list, for what comes next in a stream.
 *
 * @param[in]  may_travel  a short list can go with the launch, and does the first time
 * @param[out] list        0 if it travels, or if there is none
 */
int opal_umrddt_gpu_shape_list(opal_umrddt_gpu_engine_t *engine, opal_umrddt_gpu_shape_t *shape,
                               CUstream stream, bool may_travel, CUdeviceptr *list);

/* It is used once more, by another copy; with the lock. */
void opal_umrddt_gpu_shape_use(opal_umrddt_gpu_engine_t *engine, opal_umrddt_gpu_shape_t *shape);

/*
 * A copy does not use it any more; with the lock.
 *
 * @param[in]  used    something that came after the list in a stream is over: the list is there
 * @param[out] pinned  a buffer to give back; else not changed
 *
 * @return true if nobody uses it, and it is to be freed
 */
bool opal_umrddt_gpu_shape_unuse(opal_umrddt_gpu_shape_t *shape, bool used, void **pinned);
void opal_umrddt_gpu_shape_free(opal_umrddt_gpu_engine_t *engine, opal_umrddt_gpu_shape_t *shape);

/* All of them. @param[in] alive  the context is there, and current */
void opal_umrddt_gpu_shapes_free(opal_umrddt_gpu_engine_t *engine, bool alive);

/* ---- routes ---- */

/* A form of one piece, for a place that has no layout. */
typedef struct opal_umrddt_gpu_flat_t {
    opal_iov_cache_form_t form;
    opal_iov_cache_term_t term;
} opal_umrddt_gpu_flat_t;

/* The place's form: of its layout, or of the range alone. */
const opal_iov_cache_form_t *opal_umrddt_gpu_form_of(const opal_umrddt_gpu_place_t *place,
                                                     uint64_t start, uint64_t end,
                                                     opal_umrddt_gpu_flat_t *flat);

/* Begin to walk the parts of a range of two places. @param[out] flat  must live as long */
void opal_umrddt_gpu_pairs_begin(opal_iov_cache_pairs_t *pairs,
                                 const opal_umrddt_gpu_place_t places[2], uint64_t start,
                                 uint64_t end, opal_umrddt_gpu_flat_t flat[2]);

/* A part as a box. @return false if the driver cannot do it in one */
bool opal_umrddt_gpu_box_of(const opal_iov_cache_pair_t *pair, opal_umrddt_gpu_box_t *box);

/* As few boxes as there are that make up a range, of which there may be @p most. @return 0 if there
 * are none, or too many */
unsigned opal_umrddt_gpu_boxes_find(const opal_umrddt_gpu_place_t places[2], uint64_t start,
                                    uint64_t end, unsigned most, opal_umrddt_gpu_box_t *boxes);

/*
 * True if the driver's copy of a box takes less than a kernel.
 *
 * @param[in] home    within one device
 * @param[in] graphs  kernels that are repeated become graphs
 */
bool opal_umrddt_gpu_box_is_better(const opal_umrddt_gpu_box_t *box, bool home, bool graphs);

/* Boxes of this range, or none: then a kernel is better, or has to do it. @param[in] keep  for the
 * next time */
void opal_umrddt_gpu_route_find(opal_umrddt_gpu_engine_t *engine,
                                const opal_umrddt_gpu_place_t places[2], uint64_t start,
                                uint64_t end, bool keep, opal_umrddt_gpu_route_t *route);

/* Submit the boxes of a route. */
CUresult opal_umrddt_gpu_route_go(opal_umrddt_gpu_engine_t *engine, CUstream stream,
                                  const opal_umrddt_gpu_route_t *route,
                                  const opal_umrddt_gpu_place_t places[2]);

/*
 * Submit copies of the driver's, as many as there are.
 *
 * @param[in] single  one a block
 * @param[in] homes   of both places, if copies have to name them; else NULL
 */
CUresult opal_umrddt_gpu_route_blocks(opal_umrddt_gpu_engine_t *engine, CUstream stream,
                                      const opal_umrddt_gpu_place_t places[2], uint64_t start,
                                      uint64_t end, bool single, const CUcontext homes[2]);

/* Copy by the CPU, which reaches both. */
void opal_umrddt_gpu_route_host(const opal_umrddt_gpu_place_t places[2], uint64_t start,
                                uint64_t end);

/* ---- launches ---- */

/* One kernel does it. The shapes that it uses become the copy's. @param[in] keep  for the next time
 */
int opal_umrddt_gpu_launch(opal_umrddt_gpu_copy_t *copy, const opal_umrddt_gpu_place_t places[2],
                           uint64_t start, uint64_t end, bool keep);

/*
 * The same launch as one before.
 *
 * @param[out] copy  not changed if it is not known
 * @param[out] rc    what the driver says to it
 *
 * @return false if it is not known
 */
bool opal_umrddt_gpu_launch_again(opal_umrddt_gpu_engine_t *engine,
                                  const opal_umrddt_gpu_place_t places[2], uint64_t start,
                                  uint64_t end, opal_umrddt_gpu_copy_t **copy, CUresult *rc);

/* ---- graphs ---- */

/*
 * The graph of a launch that is about to be done again; with the lock. It is made if it is time.
 *
 * @return NULL: there is none, or another thread launches it just now; else it is this thread's
 *         until opal_umrddt_gpu_graph_go
 */
opal_umrddt_gpu_graph_t *opal_umrddt_gpu_graph_take(opal_umrddt_gpu_engine_t *engine,
                                                    const opal_umrddt_gpu_launch_t *launch);

/* Launch it; without the lock. @return what the driver says: if it refuses, the graph is gone */
CUresult opal_umrddt_gpu_graph_go(opal_umrddt_gpu_engine_t *engine, opal_umrddt_gpu_graph_t *graph,
                                  CUstream stream);

/* A launch is forgotten, or changes: so is its graph. With the lock. */
void opal_umrddt_gpu_graph_forget(opal_umrddt_gpu_engine_t *engine,
                                  const opal_umrddt_gpu_launch_t *launch);

/* All of them. @param[in] alive  the context is there, and current */
void opal_umrddt_gpu_graphs_free(opal_umrddt_gpu_engine_t *engine, bool alive);

/* ---- reach ---- */

/* Who of an engine reaches a place. */
typedef enum {
    REACH_PEERS,  /* copies of the driver's that name the contexts of both sides */
    REACH_COPIES, /* any copy of the driver's */
    REACH_KERNELS /* and kernels */
} opal_umrddt_gpu_reach_t;

/*
 * Who reaches the memory of a place; if it is another device's, that is seen to now, where it can
 * be. The context is current.
 *
 * @param[in] kernels  kernels shall reach it; else nobody asks for more than copies need
 */
opal_umrddt_gpu_reach_t opal_umrddt_gpu_reach(opal_umrddt_gpu_engine_t *engine,
                                              const opal_umrddt_gpu_place_t *place, bool kernels);

/*
 * For copies of the driver's: the contexts that they have to name, if they have to.
 *
 * @param[out] homes  of both places; only set with *apart
 * @param[out] apart  the driver's plain copies do not reach one of them
 */
int opal_umrddt_gpu_homes(opal_umrddt_gpu_engine_t *engine, const opal_umrddt_gpu_place_t places[2],
                          CUcontext homes[2], bool *apart);

/* The place's address, as the device sees it. */
int opal_umrddt_gpu_translate(opal_umrddt_gpu_engine_t *engine,
                              const opal_umrddt_gpu_place_t *place, uint64_t *address);

/* ---- copies ---- */

typedef enum {
    COPY_DIRECT, /* one operation of the device, or a few in one stream */
    COPY_STAGED, /* by others, through pinned buffers */
    COPY_OVER    /* nothing is left to be done */
} opal_umrddt_gpu_copy_kind_t;

/* A piece of a copy through the host. */
typedef struct opal_umrddt_gpu_piece_t {
    void *buffer;
    opal_umrddt_gpu_copy_t *copy; /* NULL: none is under way */
    uint64_t start;
    uint64_t end;
} opal_umrddt_gpu_piece_t;

struct opal_umrddt_gpu_copy_t {
    opal_umrddt_gpu_copy_t *next; /* of the idle ones */
    opal_umrddt_gpu_engine_t *engine;
    opal_umrddt_gpu_copy_kind_t kind;
    CUstream stream;
    volatile uint32_t *flag; /* it is `turn` when the copy is over */
    CUdeviceptr flag_there;
    uint32_t turn;
    bool by_event;
    CUevent event;
    unsigned tests;
    opal_umrddt_gpu_shape_t *shape[2];
    bool listed[2]; /* its list on the device is used */
    /* COPY_STAGED */
    opal_umrddt_gpu_place_t place[2];
    uint64_t start;
    uint64_t next_start;
    uint64_t end;
    uint64_t piece_bytes;
    unsigned pieces; /* with a buffer */
    unsigned first;  /* the oldest under way */
    opal_umrddt_gpu_piece_t piece[PIECES];
};

/* Copies, and their flags in a page that the device writes to. */
struct opal_umrddt_gpu_slab_t {
    opal_umrddt_gpu_slab_t *next;
    unsigned char *flags;
    CUdeviceptr there; /* 0: the device does not see them */
    opal_umrddt_gpu_copy_t copy[SLAB];
};

/* One that is not in use. @retval OPAL_SUCCESS, OPAL_ERR_OUT_OF_RESOURCE, OPAL_ERROR */
int opal_umrddt_gpu_copy_take(opal_umrddt_gpu_engine_t *engine, opal_umrddt_gpu_copy_t **copy);
void opal_umrddt_gpu_copy_drop(opal_umrddt_gpu_copy_t *copy);
/* With the lock. @return NULL if there is none that is not in use */
opal_umrddt_gpu_copy_t *opal_umrddt_gpu_copy_pop(opal_umrddt_gpu_engine_t *engine);

/*
 * Ordinary memory that is registered, so that it is there after the context has gone.
 *
 * @param[out] there  as the device sees it; 0 if the driver refuses
 *
 * @return free it with free(), after it was unregistered; NULL without memory
 */
unsigned char *opal_umrddt_gpu_registered(opal_umrddt_gpu_engine_t *engine, size_t bytes,
                                          CUdeviceptr *there);

/* All of them. @param[in] alive  the context is there, and current */
void opal_umrddt_gpu_copies_free(opal_umrddt_gpu_engine_t *engine, bool alive);

/*
 * Begin a copy between places that the device reaches; the context is current.
 *
 * @param[in] keep  how it is done is worth remembering; one of many pieces is not, and would take
 *                  the place of what is
 */
int opal_umrddt_gpu_copy_direct(opal_umrddt_gpu_engine_t *engine,
                                const opal_umrddt_gpu_place_t places[2], uint64_t start,
                                uint64_t end, bool keep, opal_umrddt_gpu_copy_t **copy);

/* Begin a copy of which one place is pageable; the context is current. */
int opal_umrddt_gpu_staged_begin(opal_umrddt_gpu_engine_t *engine,
                                 const opal_umrddt_gpu_place_t places[2], uint64_t start,
                                 uint64_t end, opal_umrddt_gpu_copy_t **copy);

/* @retval OPAL_SUCCESS, OPAL_ERR_RESOURCE_BUSY, OPAL_ERROR; does not drop the copy */
int opal_umrddt_gpu_staged_test(opal_umrddt_gpu_copy_t *copy);

#endif /* OPAL_UMRDDT_GPU_ENGINE_PRIVATE_H */
