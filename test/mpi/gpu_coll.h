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
 * Every collective that has buffers, in its three forms, with one function each: gpu_coll.c calls
 * it once on system memory and once on GPU memory.
 */

#ifndef GPU_COLL_H
#define GPU_COLL_H

#include "gpu_memory.h"
#include "mpitest.h"

#include <string.h>

/** Bytes before the address of a buffer that datatypes may touch. */
#define GPU_COLL_BEFORE 256

/** Forms of a collective. */
typedef enum gpu_coll_form_t {
    GPU_COLL_BLOCKING,
    GPU_COLL_NONBLOCKING,
    GPU_COLL_PERSISTENT,
    GPU_COLL_FORMS
} gpu_coll_form_t;

/** Datatypes of an element: in each, 6 integers. */
typedef enum gpu_coll_type_t {
    GPU_COLL_PLAIN,  /**< one behind the other */
    GPU_COLL_VECTOR, /**< pairs with gaps */
    GPU_COLL_MIXED,  /**< out of order, and some before the address */
    GPU_COLL_TYPES
} gpu_coll_type_t;

/** Where, on what, and how much. */
typedef struct gpu_coll_t {
    MPI_Comm comm;
    bool inter;
    int rank; /**< in the own group */
    int size;
    int others;  /**< processes that data comes from and goes to: the other group's, or all */
    int root;    /**< as the call is given it: of an intercommunicator MPI_ROOT, a rank or none */
    bool gives;  /**< this process is the root */
    int count;   /**< elements of a part */
    int sources; /**< neighbours */
    int destinations;
    MPI_Datatype type;
    MPI_Datatype other; /**< of the same signature and extent */
    MPI_Aint extent;
    MPI_Op op; /**< associative, and does not commute */
} gpu_coll_t;

/** What a case is. */
enum {
    GPU_COLL_INTER = 0x1,      /**< intercommunicators have it */
    GPU_COLL_NEIGHBOURS = 0x2, /**< for communicators with a topology, and no others */
    GPU_COLL_IN_PLACE = 0x4    /**< not on intercommunicators */
};

typedef struct gpu_coll_case_t {
    const char *name;
    unsigned flags;
    /** Start it, or all of it if it is blocking: from @p s to @p r, the addresses of two buffers.
     */
    void (*call)(const gpu_coll_t *with, gpu_coll_form_t form, void *s, void *r,
                 MPI_Request *request);
} gpu_coll_case_t;

/** All of them; the last one's name is NULL. */
extern const gpu_coll_case_t gpu_coll_cases[];

/** False where this Open MPI has no persistent collectives. */
bool gpu_coll_has_form(gpu_coll_form_t form);

/** MPI_Alltoall_init of bytes; MPI_REQUEST_NULL where there is none. */
void gpu_coll_alltoall_init(const void *from, void *to, int bytes, MPI_Comm comm,
                            MPI_Request *request);

/** MPI_Bcast_init; MPI_REQUEST_NULL where there is none. */
void gpu_coll_bcast_init(void *address, int count, MPI_Datatype type, int root, MPI_Comm comm,
                         MPI_Request *request);

/** MPI_Alltoallw_init with the same arrays for both sides; MPI_REQUEST_NULL where there is none. */
void gpu_coll_alltoallw_init(const void *from, void *to, const int *counts, const int *displs,
                             const MPI_Datatype *types, MPI_Comm comm, MPI_Request *request);

/** Elements that a rank gives, or gets, where counts differ; sometimes none. */
int gpu_coll_some(const gpu_coll_t *with, int from, int to);

/** Elements, at most, of a buffer for parts of so many others. */
int gpu_coll_elements(const gpu_coll_t *with);

/* gpu_coll_run.c */

/** Counters of coll/umrddt. */
typedef enum gpu_coll_counter_t {
    GPU_COLL_PASSED,
    GPU_COLL_PASSED_GPU,
    GPU_COLL_STAGED,
    GPU_COLL_STAGED_NONBLOCKING,
    GPU_COLL_DIRECT,
    GPU_COLL_AGREEMENTS,
    GPU_COLL_MODES_READ,
    GPU_COLL_BYTES_IN,
    GPU_COLL_BYTES_OUT,
    GPU_COLL_MEMORY_QUERIES,
    GPU_COLL_LAYOUTS_READ,
    GPU_COLL_STAGES_PINNED,
    GPU_COLL_STAGES_PAGEABLE,
    GPU_COLL_SIDES_PACKED,
    GPU_COLL_FAILURES,
    GPU_COLL_COUNTERS
} gpu_coll_counter_t;

/** @return false: there is no coll/umrddt */
bool gpu_coll_counters_open(void);
unsigned long long gpu_coll_counter(gpu_coll_counter_t which);
void gpu_coll_counters_close(void);

#define GPU_COLL_INTEGERS 6

/** Where the integers of an element are, by its datatype; two of each, of one extent. */
typedef struct gpu_coll_shape_t {
    int at[GPU_COLL_INTEGERS];
    int extent;
    int before;
} gpu_coll_shape_t;
extern const gpu_coll_shape_t gpu_coll_shapes[GPU_COLL_TYPES][2];
extern MPI_Datatype gpu_coll_types[GPU_COLL_TYPES][2];
extern MPI_Op gpu_coll_op;
void gpu_coll_types_make(void);
void gpu_coll_types_free(void);

/** A buffer on a GPU or not, and what must be in it. */
typedef struct gpu_coll_buffer_t {
    gpu_memory_t *memory;
    unsigned char *before; /**< what was in it */
    unsigned char *after;  /* what must be */
    size_t checked;        /**< bytes of it that MPI defines */
    size_t bytes;
} gpu_coll_buffer_t;

/** One run of a case: begun, and to be ended. */
typedef struct gpu_coll_run_t {
    const gpu_coll_case_t *what;
    const gpu_coll_t *with;
    gpu_coll_form_t form;
    gpu_coll_buffer_t send, recv;
    MPI_Request request;
} gpu_coll_run_t;

/** True if a case's name has @p part in it. */
static inline bool gpu_coll_is(const gpu_coll_case_t *what, const char *part)
{
    return NULL != strstr(what->name, part);
}

/** Buffers of these kinds, what must come out of it by the same on system memory, and the call. */
void gpu_coll_begin(gpu_coll_run_t *run, const gpu_coll_case_t *what, const gpu_coll_t *with,
                    gpu_coll_form_t form, gpu_kind_t send, gpu_kind_t recv, int kind,
                    uint64_t *state);

/** Wait for it, if it is not blocking and was not waited for; both buffers must be right. */
void gpu_coll_end(gpu_coll_run_t *run);

/* gpu_coll_rules.c */

/** A collective that is called again allocates nothing and reads no datatype. */
void gpu_coll_steady(uint64_t *state);

/** Allocations of coll/umrddt of so many bytes or more fail; 0: none. */
void gpu_coll_refuse(size_t bytes);

/** Which collectives on GPU memory a CUDA-aware Open MPI is given, and which not. */
void gpu_coll_rule(void);

/* gpu_coll_direct.c */

/** This Open MPI has CUDA and gets contiguous buffers, so few calls are from GPU to GPU. */
extern bool gpu_coll_has_cuda;

/** Returns true if all processes do direct collectives, and GPU memory is not passed through. */
bool gpu_coll_is_enabled(void);

/** Calls from GPU to GPU, between calls in which some buffers are in system memory. */
void gpu_coll_direct(uint64_t *state);
void gpu_coll_near(uint64_t *state);
void gpu_coll_large_bcast(uint64_t *state);
void gpu_coll_large_parts(uint64_t *state);

/** The calls with an agreement. */
void gpu_coll_schedule(uint64_t *state);

/** Persistent requests that are started in different orders. */
void gpu_coll_order(uint64_t *state);

/** Persistent requests whose arrays, datatypes and communicator are freed before the first start.
 */
void gpu_coll_freed(uint64_t *state);

/** Nonblocking and persistent calls of threads. */
void gpu_coll_threads(void);

/** Two neighbors that send each other different numbers of bytes. */
void gpu_coll_unequal(uint64_t *state);

/** Wildcards of the application, beside messages of collectives. */
void gpu_coll_any_tag(uint64_t *state);

/* gpu_coll_steps.c */

/** More nonblocking calls than there are tags, which are waited for from the last to the first. */
void gpu_coll_pending(uint64_t *state);

/** One process gets no memory for its copies. */
void gpu_coll_no_memory(void);

/** All-to-alls in place with large parts. */
void gpu_coll_in_place(uint64_t *state);

/** Nonblocking and persistent broadcasts in pieces, two at once. */
void gpu_coll_large_ibcast(uint64_t *state);

#endif /* GPU_COLL_H */
