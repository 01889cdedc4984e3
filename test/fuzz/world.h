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
 * All of pml/umrddt in one process, between a simulated base PML and HCA: rank 1 of its
 * communicator is the input. Operations that the component posts at the base PML can be answered by
 * any bytes, in any order. Its calls of the HCA are checked by the contract of btl_umr_hca.h, and
 * complete or fail when the input selects it. There may be GPUs: they run on the software CUDA
 * driver; only the completion of copies, and failures, are simulated.
 */

#ifndef TEST_FUZZ_WORLD_H
#define TEST_FUZZ_WORLD_H

#include "ompi_config.h"

#include "opal/mca/common/umrddt_gpu/ipc/umrddt_gpu_ipc.h"

#include "ompi/datatype/ompi_datatype.h"

#include "ompi/mca/pml/umrddt/pml_umrddt_wire_reply.h"
#include "ompi/mca/pml/umrddt/core/pml_umrddt_comm.h"

#include "fuzz.h"

/** Requests, keysets, puts that there may be at once; more are refused. */
#define WORLD_MANY 64

/** Room of the buffers that messages are in. */
#define WORLD_ROOM 200000

/** A request of the simulated base PML. */
typedef struct world_request_t {
    ompi_request_t super;
    bool out;  /**< a send */
    bool here; /**< started, and not complete */
    void *buf;
    size_t count;
    ompi_datatype_t *datatype;
    int tag;
} world_request_t;
OBJ_CLASS_DECLARATION(world_request_t);

/** What is going on. */
typedef struct world_t {
    mca_pml_umrddt_comm_t *comm;
    mca_pml_umrddt_peer_t *peer; /**< rank 1 */

    /* the base PML */
    world_request_t *requests[WORLD_MANY]; /**< started, not complete; in the order of the calls */
    uint32_t request_count;
    uint32_t requests_now; /**< that exist */
    bool late;             /**< sends complete on request, not immediately */
    uint32_t refuse_sends; /**< the base PML refuses so many ... */
    uint32_t refuse_recvs;
    uint32_t controls; /**< control messages sent */
    union {
        mca_pml_umrddt_nack_header_t notice; /**< that a probe finds ... */
        mca_pml_umrddt_hint_header_t hint;
    };
    size_t notice_length; /**< ... if it is not 0 */

    /* the HCA */
    uint32_t keysets_now, memories_now, puts_now, fins_now;
    uint32_t refuse_keys, refuse_memory, refuse_fins;
    bool slow_keys;      /**< keysets become ready on request */
    uint32_t rkeys[256]; /**< that the input has named in a reply; see world_named */
    uint32_t rkey_count;
    uint64_t buffer_named, regions; /**< the same, of the last CTS without mkeys */
    uint32_t writes;                /**< requested puts */
    bool hca_on_gpu;                /**< it reaches memory of devices */

    /* GPUs */
    bool gpu;              /**< there are any */
    bool slow_copies;      /**< copies complete on request */
    uint64_t microseconds; /**< of the clock */
    uint32_t copies_now;
    uint32_t refuse_copies, refuse_imports, refuse_engines;
} world_t;

extern world_t world;

/** What a target is: one side of messages. */
typedef struct world_target_t {
    void (*begin)(void);                                     /**< forget the last input */
    void (*sent)(int tag, const void *bytes, size_t length); /**< the component has sent this */
    void (*step)(fuzz_bytes_t *input);
    bool (*all_over)(void); /**< free complete requests. @return true if no other is left */
    void (*drain)(void);    /**< bring all to its end */
} world_target_t;

/** The target's own, beside world.c, which has what libFuzzer calls. */
extern const world_target_t world_target;

/** Types that messages are made of; [0] is contiguous. */
#define WORLD_TYPES 5
extern ompi_datatype_t *world_types[WORLD_TYPES];

/** A buffer for messages, as large as any type needs; of a GPU, if there are any, by bit 2. */
unsigned char *world_buffer(uint32_t i);
#define WORLD_BUFFERS 4

/** Set refusals, as often as the input selects: one of the first of sends, receives, keys, memory,
 * receives for FINs; with GPUs, of these and copies, imports, engines. */
void world_refuse(fuzz_bytes_t *input, uint32_t kinds);

/** Nothing is refused any more. */
void world_refuse_none(void);

/** A flattened layout: of one of the types, or bytes of the input. @return its length */
size_t world_flat(fuzz_bytes_t *input, unsigned char *flat, size_t room);

/** That of a type. */
size_t world_flat_of(uint32_t type, unsigned char *flat, size_t room);

/** As the three functions for a pending one do it, but the input selects the one, and its end. */
void world_put_end(fuzz_bytes_t *input);
void world_keyset_end(fuzz_bytes_t *input);
void world_copy_end(fuzz_bytes_t *input);

/** Call progress, with or without a look for notices of failure. */
void world_progress(bool notice);

/* world_host.c */

extern const mca_pml_base_module_t world_host;

/** True for control messages; *kind is MCA_PML_UMRDDT_TAG_* then. */
bool world_tag(int tag, int *kind, uint32_t *request_id);

/** The @p i-th (modulo their number) receive that is posted, on a tag of the user (kind -1) or of a
 * kind; NULL: none. */
world_request_t *world_posted(int kind, uint32_t i);

/** A message arrives at a receive that is posted. */
void world_deliver(world_request_t *request, int tag, const void *bytes, size_t length);

/** The @p i-th send completes, well or not. @return false: there is none */
bool world_send_done(uint32_t i, bool well);

/* world_hca.c */

extern const mca_btl_umr_hca_ops_t world_hca;
extern const mca_btl_umr_caps_t world_caps;

/** The address of the endpoint to the peer, of a pair of HCAs. */
mca_btl_umr_address_t world_address(uint32_t pair);

/** The input has named a key to us: a put may write to it. */
void world_named(uint32_t rkey);

/** Something of the HCA completes. @return false: there is nothing */
bool world_keyset_done(uint32_t i, int status);
bool world_put_done(uint32_t i, int status);

/** A FIN arrives by a pair of HCAs. */
void world_fin(uint32_t pair, uint32_t fin);

/** True if this is a key of a keyset that exists, mapped for peers. */
bool world_is_mapped(const mca_pml_umrddt_wire_key_t *key);

/** True if so many bytes there are registered for peers, with this key. */
bool world_is_registered(uint64_t addr, uint64_t length, uint32_t rkey);

/** Forget connections and failures; nothing is pending. */
void world_hca_reset(void);

/* world_gpu.c */

/** Allocations of the other process, of these sizes, and as it exports them. */
#define WORLD_OWNED 3
extern opal_umrddt_gpu_export_t world_owned[WORLD_OWNED];

/** The first thing: have the driver found, and start the other process. May begin the program
 * again. */
void world_gpu_begin(char **argv);

/** CUDA, as the application begins it: contexts, and buffers. */
void world_gpu_open(void);
const opal_umrddt_gpu_driver_t *world_gpu_driver(void);
unsigned char *world_gpu_buffer(uint32_t i);

/** The base PML gets a buffer: it must not be in device memory, unless the base PML supports that
 * and the memory is this process's. */
void world_gpu_seen(const void *address);

/** As opal_umrddt_gpu_stream_unpack, wherever the buffer is. */
void world_unpack(void *buf, size_t count, ompi_datatype_t *datatype, const void *bytes,
                  size_t length);

/** Complete a copy, with success or not. @return false: none is pending */
bool world_copy_done(uint32_t i, int status);

/** Nothing is mapped or copied any more. */
void world_gpu_reset(void);

#endif /* TEST_FUZZ_WORLD_H */
