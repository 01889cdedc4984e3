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
 * Private to this directory: copies in progress, their flags, and copies through staging buffers.
 */

#ifndef OPAL_UMRDDT_GPU_COPY_H
#define OPAL_UMRDDT_GPU_COPY_H

#include "opal_config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "umrddt_gpu_engine_private.h"
#include "umrddt_gpu_shape.h"

/* Size of a flag, so that no two share a cache line; number of copies per allocation. */
#define FLAG_BYTES 64
#define SLAB       64
/* Staging buffers of a copy through system memory. */
#define PIECES 3

typedef struct opal_umrddt_gpu_slab_t opal_umrddt_gpu_slab_t;

typedef enum {
    COPY_DIRECT,  /* one operation of the device, or a few in one stream */
    COPY_STAGED,  /* by several copies, through staging buffers */
    COPY_PENDING, /* to be launched by a flush */
    COPY_OVER     /* complete, with this result */
} opal_umrddt_gpu_copy_kind_t;

/* A piece of a copy through system memory. */
typedef struct opal_umrddt_gpu_piece_t {
    void *buffer;
    opal_umrddt_gpu_copy_t *copy; /* NULL: not in progress */
    uint64_t start;
    uint64_t end;
} opal_umrddt_gpu_piece_t;

struct opal_umrddt_gpu_copy_t {
    opal_umrddt_gpu_copy_t *next; /* in the list of free ones, or of pending ones */
    opal_umrddt_gpu_engine_t *engine;
    opal_umrddt_gpu_copy_kind_t kind;
    CUstream stream;
    volatile uint32_t *flag; /* of this copy; the stream writes `turn` */
    CUdeviceptr flag_there;
    uint32_t turn;
    const volatile uint32_t
        *watch; /* complete if not before `until`: of a batch, one flag for all */
    uint32_t until;
    bool by_event;
    CUevent event;
    unsigned tests;
    opal_umrddt_gpu_shape_t *shape[2];
    bool listed[2]; /* its list on the device is used */
    int result;     /* COPY_OVER */
    /* COPY_STAGED, COPY_PENDING */
    opal_umrddt_gpu_copy_end_t copy_end[2];
    uint64_t start;
    uint64_t end;
    /* COPY_STAGED */
    uint64_t next_start;
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
static inline opal_umrddt_gpu_copy_t *opal_umrddt_gpu_copy_pop(opal_umrddt_gpu_engine_t *engine)
{
    opal_umrddt_gpu_copy_t *copy = engine->idle;

    if (OPAL_LIKELY(NULL != copy)) {
        engine->idle = copy->next;
        ++engine->busy;
        copy->result = OPAL_SUCCESS;
        copy->stream = engine->stream[engine->next_stream++ % STREAMS];
        copy->tests = 0;
    }
    return copy;
}

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

/*
 * Start a pending copy as opal_umrddt_gpu_copy_direct does; the context is current. Also after a
 * batch has failed, when the copy has its shapes.
 */
void opal_umrddt_gpu_copy_start(opal_umrddt_gpu_copy_t *copy);

/*
 * Let the stream of a copy signal its completion.
 *
 * @retval OPAL_ERROR  no signal is possible
 */
int opal_umrddt_gpu_copy_signal(opal_umrddt_gpu_copy_t *copy);

/*
 * The work of a copy is in its stream: other threads may test it from now on, and free it.
 *
 * @param[in] rc  if not OPAL_SUCCESS: it failed, and nothing of it is in progress
 */
void opal_umrddt_gpu_copy_started(opal_umrddt_gpu_copy_t *copy, opal_umrddt_gpu_copy_kind_t kind,
                                  int rc);

/* Start a copy with one place in pageable memory; the context is current. */
int opal_umrddt_gpu_staged_begin(opal_umrddt_gpu_engine_t *engine,
                                 const opal_umrddt_gpu_copy_end_t copy_ends[2], uint64_t start,
                                 uint64_t end, opal_umrddt_gpu_copy_t **copy);

/* @retval OPAL_SUCCESS, OPAL_ERR_RESOURCE_BUSY, OPAL_ERROR; does not free the copy */
int opal_umrddt_gpu_staged_test(opal_umrddt_gpu_copy_t *copy);

#endif /* OPAL_UMRDDT_GPU_COPY_H */
