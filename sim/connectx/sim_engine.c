/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "sim_engine.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sim_cmd.h"
#include "sim_gpu.h"
#include "sim_mem.h"
#include "sim_qp.h"
#include "sim_wire.h"

/* While a user thread drives the HCA, the thread looks only this often. */
#define TICK_NS 1000000ull
/* A turn on the processor that is short enough for a round trip of messages. */
#define TURN_NS 100000ull
/* Polls that find nothing before the processor is given to others. */
#define IDLE_POLLS 8
/* For this long it assumes that the user thread continues. */
#define USER_NS 3000000ull
/* Polling interval of an idle HCA, for doorbells that no hook detected. */
#define IDLE_NS 20000000ull

/* With no device open there is only the wire to listen to. */
#define CLOSED_NS 200000000ull

static pthread_t thread;
static bool running;
static pid_t owner;
static atomic_bool stopping;
static _Atomic uint64_t user_at; /* when a user thread drove the HCA last */
static atomic_bool channels;     /* some thread waits for completion events */

void sim_frame_in(struct sim_conn *conn, const struct sim_frame *frame, const void *payload)
{
    struct sim_qp *qp;

    switch (frame->type) {
    case SIM_WRITE:
    case SIM_SEND:
    case SIM_READ:
    case SIM_SWAP:
    case SIM_ADD:
        sim_qp_respond(conn, frame, payload);
        break;
    case SIM_ACK:
    case SIM_NAK:
    case SIM_RNR:
    case SIM_DROP:
    case SIM_DATA:
        qp = sim_qp_find(frame->dst_qpn);
        if (NULL != qp) {
            sim_qp_answer(qp, frame, payload);
        }
        break;
    default:
        break;
    }
}

void sim_conn_gone(struct sim_conn *conn)
{
    sim_qp_forget_reads(conn, 0, true);
}

static void arm_events(void)
{
    uint32_t i;
    bool any = false;

    for (i = 1; i < sim.nobjs; i++) {
        if (NULL != sim.objs[i] && SIM_CQ == sim.objs[i]->kind) {
            struct sim_cq *cq = (struct sim_cq *) sim.objs[i];

            if (NULL != cq->channel) {
                any = true;
                sim_cq_events(cq);
            }
        }
    }
    atomic_store(&channels, any);
}

void sim_engine_watch_channels(void)
{
    atomic_store(&channels, true);
}

bool sim_engine_progress(void)
{
    struct sim_qp *qp;
    bool did;

    did = 0 < sim_wire_progress();
    for (qp = sim_qps; NULL != qp; qp = qp->next) {
        did = sim_qp_request(qp) || did;
        if (IBV_QPS_ERR == qp->state) {
            did = sim_qp_flush_receives(qp) || did;
        }
    }
    did = sim_qp_serve_reads() || did;
    if (UINT64_MAX != sim_gpu_wakeup()) {
        did = sim_gpu_land(sim_now()) || did;
    }
    if (did) {
        sim_qp_take_turns();
    }
    if (atomic_load_explicit(&channels, memory_order_relaxed)) {
        arm_events();
    }
    return did;
}

/*
 * Request a short time slice (Linux 6.12 and later; no privilege is needed).
 * Where more processes spin than there are processors, a message otherwise waits for the end of
 * another thread's time slice of some milliseconds.
 */
static void short_turns(void)
{
    struct {
        uint32_t size;
        uint32_t policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime;
        uint64_t deadline;
        uint64_t period;
    } attr;

    memset(&attr, 0, sizeof(attr));
    if (0 != syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) || SCHED_OTHER != attr.policy) {
        return;
    }
    attr.size = sizeof(attr);
    attr.runtime = TURN_NS;
    (void) syscall(SYS_sched_setattr, 0, &attr, 0);
}

void sim_engine_kick(void)
{
    static __thread unsigned idle;
    static __thread bool turns;
    bool did = true;

    if (0 != pthread_mutex_trylock(&sim.lock)) {
        return;
    }
    if (0 <= sim_wire_fd()) {
        atomic_store_explicit(&user_at, sim_now(), memory_order_relaxed);
        did = sim_engine_progress();
    }
    pthread_mutex_unlock(&sim.lock);
    if (did) {
        idle = 0;
        return;
    }
    if (!turns) {
        turns = true;
        short_turns();
    }
    /* A thread that polls in vain yields to the one that it waits for. */
    if (++idle >= IDLE_POLLS) {
        (void) sched_yield();
    }
}

/* How long the thread may sleep. */
static uint64_t next_wakeup(uint64_t now)
{
    uint64_t when = now + (atomic_load(&channels) ? TICK_NS : IDLE_NS);
    const struct sim_qp *qp;

    if (0 == atomic_load(&sim.contexts)) {
        return CLOSED_NS;
    }
    for (qp = sim_qps; NULL != qp; qp = qp->next) {
        uint64_t at = sim_qp_wakeup(qp);

        if (at < when) {
            when = at;
        }
    }
    if (sim_gpu_wakeup() < when) {
        when = sim_gpu_wakeup();
    }
    return when > now ? when - now : 0;
}

static void *run(void *arg)
{
    (void) arg;
    short_turns();
    while (!atomic_load(&stopping)) {
        struct timespec ts;
        struct pollfd fd;
        uint64_t wait;
        uint64_t now;

        now = sim_now();
        if (!atomic_load(&channels) && now - atomic_load(&user_at) < USER_NS) {
            /*
             * It is in progress; waking up for every frame would only take processor time. A thread
             * that uses completion events, though, may be asleep by now.
             */
            ts.tv_sec = 0;
            ts.tv_nsec = (long) TICK_NS;
            nanosleep(&ts, NULL);
            continue;
        }
        pthread_mutex_lock(&sim.lock);
        while (sim_engine_progress() && !atomic_load(&stopping)) {
            /* A command for the HCA need not wait for the end of a long transfer. */
            pthread_mutex_unlock(&sim.lock);
            (void) sched_yield();
            pthread_mutex_lock(&sim.lock);
        }
        fd.fd = sim_wire_fd();
        wait = next_wakeup(sim_now());
        pthread_mutex_unlock(&sim.lock);
        fd.events = POLLIN;
        ts.tv_sec = (time_t) (wait / 1000000000u);
        ts.tv_nsec = (long) (wait % 1000000000u);
        (void) ppoll(&fd, 1, &ts, NULL);
    }
    return NULL;
}

static void before_fork(void)
{
    pthread_mutex_lock(&sim.lock);
}

static void after_fork_parent(void)
{
    pthread_mutex_unlock(&sim.lock);
}

/* The HCA stays with the parent; the child may open one of its own. */
static void after_fork_child(void)
{
    if (running) {
        running = false;
        sim_gpu_forget();
        sim_cmd_forget();
        sim_wire_forget();
        sim_preload_forget();
        atomic_store(&sim.contexts, 0);
    }
    pthread_mutex_unlock(&sim.lock);
}

int sim_engine_start(void)
{
    static bool fork_handled;
    pthread_attr_t attr;
    sigset_t all;
    sigset_t old;
    int rc;

    if (running) {
        return 0;
    }
    if (!fork_handled) {
        (void) pthread_atfork(before_fork, after_fork_parent, after_fork_child);
        fork_handled = true;
    }
    if (0 != sim_wire_open()) {
        return -1;
    }
    if (sim.conf.copy_by_pipe) {
        sim_mem_by_pipe();
    }
    owner = getpid();
    atomic_store(&stopping, false);
    /* Signals are the program's business. */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 256 * 1024);
    rc = pthread_create(&thread, &attr, run, NULL);
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    running = (0 == rc);
    return running ? 0 : -1;
}

void sim_engine_stop(void)
{
    struct sim_counters c;

    if (!running || getpid() != owner) {
        return;
    }
    atomic_store(&stopping, true);
    pthread_mutex_lock(&sim.lock);
    (void) sim_engine_progress();
    (void) sim_gpu_land(UINT64_MAX);
    c = sim.count;
    sim_wire_close();
    pthread_mutex_unlock(&sim.lock);
    if (sim.conf.counters && 0 < c.commands) {
        sim_count_print(stderr, (long) owner, &c, sim.conf.json);
    }
}
