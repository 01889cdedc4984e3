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
 * The software ConnectX of one process: its objects, and the lock that guards them all. Everything
 * here and in the files below is called with the lock held, unless it says otherwise.
 */

#ifndef SIM_H
#define SIM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <infiniband/mlx5dv.h>

#include "sim_conf.h"
#include "sim_count.h"

#define SIM_MTU 4096 /**< bytes of a packet, which is what PSNs count */

/** Bytes of an atomic. */
#define SIM_ATOMIC_BYTES 8

struct sim_ctx;

/** Kinds of objects that user space has handles of. */
enum sim_kind {
    SIM_FREE,
    SIM_PD,
    SIM_MR,
    SIM_MKEY,
    SIM_CHANNEL,
    SIM_CQ,
    SIM_SRQ,
    SIM_QP,
    SIM_UAR,
};

/** The begin of every object. */
struct sim_obj {
    enum sim_kind kind;
    uint32_t handle; /**< never 0 */
    unsigned uses;   /**< objects that hold on to this one */
    struct sim_ctx *ctx;
};

/** One opened device: a file descriptor of /dev/infiniband/uverbsN. */
struct sim_ctx {
    int fd;
    int device;
    bool devx;
    int async[2]; /**< pipe of asynchronous events; [0] belongs to user space */
    struct sim_ctx *next;
};

struct sim_pd {
    struct sim_obj super;
    uint32_t pdn;
};

struct sim_uar {
    struct sim_obj super;
    uint32_t page;
};

/** A completion channel: a pipe of struct ib_uverbs_comp_event_desc. */
struct sim_channel {
    struct sim_obj super;
    int fd[2]; /**< [0] belongs to user space */
};

/** The process's HCA. */
struct sim {
    pthread_mutex_t lock;
    atomic_int contexts; /**< opened devices; 0 lets every hook go through at once */
    struct sim_conf conf;
    bool conf_read;
    struct sim_ctx *ctx;   /**< list */
    struct sim_obj **objs; /**< by handle */
    uint32_t nobjs;
    uint64_t reg_bytes_now;
    uint64_t bar_bytes_now; /**< of GPUs, mapped by registrations */
    uint64_t mrs_now;
    uint64_t srqs_now;
    uint64_t mkeys_now;
    uint64_t ever[FAULT_OF_HCA_MAX]; /**< occurrences of possible faults */
    uint64_t faults_before;          /**< those of plans before */
    bool well;                       /**< for now nothing goes wrong */
    uint64_t rnr_left;               /**< messages that come are refused so often yet ... */
    bool rnr_over;                   /**< ... or have been: the next one is not */
    unsigned gone;                   /**< devices, a bit for each */
    uint64_t random;                 /**< state of the generator */
    struct sim_counters count;
};

extern struct sim sim;

/** The options, read once; without the lock. @return false after a message if they are bad */
bool sim_conf_ready(void);

/* Objects: sim_object.c */

/** A zeroed object of @p size bytes with a handle; NULL if there is no memory. */
void *sim_obj_new(struct sim_ctx *ctx, enum sim_kind kind, size_t size);
/** The object of a handle, or NULL if it is none of this context and kind. */
void *sim_obj_get(struct sim_ctx *ctx, enum sim_kind kind, uint32_t handle);
/** Forget and free. */
void sim_obj_free(void *obj);
/** Destroy all that a closed context left, in the order of their dependence. */
void sim_obj_close(struct sim_ctx *ctx);

/* Time and chance: sim_object.c; without the lock */

uint64_t sim_now(void); /**< nanoseconds, monotonic */
/** A random delay in nanoseconds, below the option's bound; with the lock. */
uint64_t sim_delay(void);

/**
 * This happens now.
 *
 * @return the fault that it is to have, or NULL; with the lock
 */
const struct fault *sim_fault(enum fault_of_hca what);

/**
 * For programs, which find it by its name.
 *
 * @param[in] plan  a plan of faults that replaces the present one, with occurrences counted from
 *                  here; NULL: the same
 * @param[in] on    0: for now nothing goes wrong, nor is counted
 *
 * @return how many came about since the last plan was set, or -1: it is none, and nothing has
 * changed
 */
int umrddt_sim_faults(const char *plan, int on);

/** close(2) itself, past the hook that the rest of the process sees. */
int sim_close(int fd);

__attribute__((format(printf, 2, 3))) void sim_log(int level, const char *format, ...);

#endif /* SIM_H */
