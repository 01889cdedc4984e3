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
 * Shared code of the HCA tests: two processes, plain MPI for the exchange that the HCA component
 * leaves to its users (addresses, names of keys), and a check of every byte of a target.
 *
 * A failed check prints its place and ends the job. Every wait is bounded.
 */

#ifndef HCA_HARNESS_H
#define HCA_HARNESS_H

#include "opal_config.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "umrddt_compat.h"

#include "opal/datatype/iov_cache/iov_cache.h"
#include "opal/mca/btl/umr/btl_umr_hca.h"

/** Not assert(): NDEBUG must not empty it. */
#define CHECK(condition, ...)                                                                 \
    do {                                                                                      \
        if (!(condition)) {                                                                   \
            fprintf(stderr, "%s:%d: rank %d: FAILED: %s: ", __FILE__, __LINE__, harness.rank, \
                    #condition);                                                              \
            fprintf(stderr, __VA_ARGS__);                                                     \
            fprintf(stderr, "\n");                                                            \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                     \
        }                                                                                     \
    } while (0)

#define CHECK_RC(expected, call)                                                    \
    do {                                                                            \
        int check_rc = (call);                                                      \
        CHECK((expected) == check_rc, "returned %d, not %d", check_rc, (expected)); \
    } while (0)

struct harness {
    int rank;
    int size;
    int peer;    /**< the other of a pair: 1 for 0, 0 for 1 */
    int threads; /**< what MPI_Init_thread gave */
    unsigned seed;
    const mca_btl_umr_component_t *component;
    const mca_btl_umr_hca_ops_t *hca;
    mca_btl_umr_endpoint_t *endpoint; /**< to the peer, connected */
    /** Where the buffers of messages are: an allocation of a GPU; NULL: the CPU's memory. */
    const opal_umrddt_gpu_memory_t *where;
    uint32_t fins[4096]; /**< FINs that came, in their order */
    size_t fin_count;
};

extern struct harness harness;

/** MPI, the component; the HCA not yet. False: no component. */
bool harness_open(int *argc, char ***argv);

/** The two halves of open and close that are about the component. */
bool harness_open_hca(void);
void harness_close_hca(void);

/** MPI_Init has exchanged the modex already: do it again. */
void harness_exchange_modex(void);

/** ops->init and what follows it: modex exchange, endpoint, connection. */
void harness_connect(void);

/** Note FINs that come through harness.endpoint. */
void harness_expect_fins(void);

/** The reverse of harness_connect. */
void harness_disconnect(void);

void harness_close(void);

/** One step of progress that yields the processor. */
void harness_progress(void);

/** Progress for some time. */
void harness_progress_for(double seconds);

/** Seconds after which something that must come does not come any more, on a slow and busy machine.
 */
#define HARNESS_HANG 120.0

/** Progress until the condition holds; fails if it does not come to hold. */
#define WAIT_UNTIL(condition)                                                       \
    do {                                                                            \
        double wait_end = MPI_Wtime() + HARNESS_HANG;                               \
        while (!(condition)) {                                                      \
            CHECK(MPI_Wtime() < wait_end, "not within %.0f seconds", HARNESS_HANG); \
            harness_progress();                                                     \
        }                                                                           \
    } while (0)

/** A done function's context. */
struct done {
    int calls;
    int status;
};
void harness_done(void *context, int status);

/** Barrier that goes on making progress. */
void harness_barrier(void);

/** A number in [0, bound), from the seed. */
uint32_t harness_random(uint32_t bound);

/* Layouts made by hand. */

/** @p count pieces of @p length bytes, @p distance bytes from start to start. */
opal_iov_cache_layout_t *layout_vector(size_t count, uint64_t length, int64_t distance);

/** Pieces at the given places. */
opal_iov_cache_layout_t *layout_list(const opal_iov_cache_iov_t *iovs, size_t count);

/**
 * Random pieces that sum up to @p size and lie within [0, @p room) without touching each other, in
 * random order, at least @p least of them where size allows.
 */
opal_iov_cache_layout_t *layout_random(uint64_t size, uint64_t room, size_t least);

/** Byte @p i of every test's stream @p salt. */
static inline unsigned char stream_byte(uint64_t i, unsigned salt)
{
    return (unsigned char) ((i * 2654435761u) >> 13 ^ (i >> 3) ^ salt * 31u);
}

/** Write the stream into a buffer, by a layout. */
void layout_fill(void *buffer, const opal_iov_cache_layout_t *layout, unsigned salt);

/**
 * Check every byte of [area, area + room): the first @p size bytes of the stream at their positions
 * in the layout, @p filler everywhere else.
 */
void layout_check(const void *area, size_t room, const void *buffer,
                  const opal_iov_cache_layout_t *layout, uint64_t size, unsigned salt,
                  unsigned char filler);

/* Whole messages. */

/** One side of a message. */
struct side {
    void *buffer;
    const opal_iov_cache_layout_t *layout;
    uint64_t chunk;
    size_t max_keys; /**< to request at once */
};

/**
 * Move @p size bytes: this process sends or receives them. The receiver names its keys as it gets
 * them, the sender puts as far as its own keys reach. Returns when the sender's puts are done and
 * the receiver has the FIN.
 */
void message(bool send, const struct side *side, uint64_t size, uint32_t fin);

/**
 * Writes that only carry a FIN, after a last write of so many bytes: 0 or 1. UMRDDT_TEST_NOTIFY is
 * btl_umr_notify_size; without it, this is the default.
 */
uint64_t harness_notifications(uint64_t last);

/** What the peer wrote there is there afterwards. */
void harness_flush(mca_btl_umr_memory_t *memory);

/** Keys of a layout, all of [0, size), ready. */
mca_btl_umr_keyset_t *keyset_of(mca_btl_umr_role_t role, const struct side *side, uint64_t size,
                                mca_btl_umr_memory_t **memory);

/** Send the keys of a keyset to the peer; receive them (free what comes back). */
void keys_send(const mca_btl_umr_keyset_t *keyset);
mca_btl_umr_key_t *keys_receive(size_t *count);

/* The groups of tests. */
struct test {
    const char *name;
    void (*run)(void);
};
extern const struct test put_tests[], notify_tests[], pool_tests[], key_tests[], keycache_tests[],
    memory_tests[], failure_tests[], thread_tests[], gpu_tests[], tiers_tests[], nested_tests[],
    direct_tests[], module_tests[], scale_tests[], hca_tests[], rebuild_tests[], room_tests[];

/** The name of a peer that does not exist; its HCAs are those of the peer (scale.c). */
opal_proc_t *scale_name(size_t k);

/** Let clocks go forward by so many seconds (room.c). */
void room_later(double seconds);

/* The program's mlx5dv_create_qp (failure.c) calls these (tiers.c): whether to refuse this queue
 * pair; and to corrupt a new one. */
struct ibv_qp;
struct mlx5dv_qp_init_attr;
extern struct ibv_qp *hca_data_qp; /* the last one made for an endpoint */
extern int failure_refused_qps;    /* so many of the next ones are refused, slowly */
bool tiers_refuses(const struct mlx5dv_qp_init_attr *attr);
void tiers_qp_made(struct ibv_qp *qp);

/** What hcas.c prints of the endpoints that the processes have to each other. */
void hcas_print_lanes(void);
void hcas_print_gpus(void);
void hcas_print_table(void);
void hcas_print_no_route(void);

/** Have the queue pair of mappings that was made last fail (failure.c). */
void failure_break_mappings(void);

/* What the tests of tiers share (tiers.c). */

/** @p count pieces of 1 to 5 bytes at irregular distances, and the size of the area for them. */
opal_iov_cache_layout_t *tiers_irregular(size_t count, size_t *room);

/**
 * One message from layout to layout, from process 0, every byte checked.
 *
 * @param[out] used  its counts of keys_*, key_entries, writes_posted and mkeys_created
 */
void tiers_transfer(opal_iov_cache_layout_t *from, opal_iov_cache_layout_t *to, size_t room,
                    mca_btl_umr_stats_t *used);

/**
 * One message in each direction between @p count pieces and one: expected numbers of mappings,
 * entries and writes if a list in memory has @p most entries, and one key covers @p nest such
 * lists.
 */
void tiers_list_of(size_t count, size_t most, size_t nest);

/** The keys below the mkey that was mapped last over others, by a list in a work request. */
struct tiers_inner {
    mca_btl_umr_key_t keys[64];
    size_t count;
};
extern struct tiers_inner tiers_inner;

#endif /* HCA_HARNESS_H */
