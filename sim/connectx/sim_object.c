/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sim_alloc.h"
#include "sim_cmd.h"
#include "sim_here.h"
#include "sim_sysfs.h"

struct sim sim = {.lock = PTHREAD_MUTEX_INITIALIZER};

/*
 * The device tree that libibverbs reads must be of this host: a process that was started from
 * another one may have come with that one's environment.
 */
static int check_tree(char *error, size_t size)
{
    const char *tree = getenv("SYSFS_PATH");
    char own[256];

    if (!sim.conf.tcp || NULL == tree || 0 != sim_sysfs_path(&sim.conf, own, sizeof(own))
        || 0 == strcmp(tree, own)) {
        return 0;
    }
    snprintf(error, size,
             "with wire=tcp umrddt_sim has to run on every host, in front of each "
             "program (SYSFS_PATH is %s, of another host)",
             tree);
    return -1;
}

bool sim_conf_ready(void)
{
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
    static bool good;
    char error[512];

    pthread_mutex_lock(&once);
    if (!sim.conf_read) {
        good = 0 == sim_conf_parse(getenv("UMRDDT_SIM"), &sim.conf, error, sizeof(error))
               && 0 == faults_parse(getenv("UMRDDT_FAULTS"), &sim.conf.faults, error, sizeof(error))
               && 0 == sim_here_find(&sim.conf, error, sizeof(error))
               && 0 == check_tree(error, sizeof(error));
        if (!good) {
            fprintf(stderr, "umrddt_sim: UMRDDT_SIM: %s; there is no device\n", error);
        }
        sim.random = 0x9e3779b97f4a7c15ULL * (sim.conf.seed + 1);
        sim.conf_read = true;
    }
    pthread_mutex_unlock(&once);
    return good;
}

const struct fault *sim_fault(enum fault_of_hca what)
{
#define NAME(name, how, help) #name,
    static const char *const names[] = {FAULTS_OF_HCAS(NAME)};
    const struct fault *fault;

    if (sim.well) {
        return NULL;
    }
    fault = faults_hit(&sim.conf.faults, names[what], NULL, ++sim.ever[what]);

    if (NULL != fault) {
        sim.count.faults++;
        sim_log(1, "fault: %s, of which this is number %llu", names[what],
                (unsigned long long) sim.ever[what]);
    }
    return fault;
}

__attribute__((visibility("default"))) int umrddt_sim_faults(const char *plan, int on)
{
    struct faults faults = {0};
    char error[128];
    int came;

    if (0 != faults_parse(plan, &faults, error, sizeof(error))) {
        return -1;
    }
    pthread_mutex_lock(&sim.lock);
    if (NULL != plan) {
        sim.conf.faults = faults;
        memset(sim.ever, 0, sizeof(sim.ever));
        sim.faults_before = sim.count.faults;
    }
    sim.well = 0 == on;
    came = (int) (sim.count.faults - sim.faults_before);
    pthread_mutex_unlock(&sim.lock);
    return came;
}

void *sim_obj_new(struct sim_ctx *ctx, enum sim_kind kind, size_t size)
{
    struct sim_obj *obj = sim_alloc(size);
    uint32_t i;

    if (NULL == obj) {
        return NULL;
    }
    for (i = 1; i < sim.nobjs && NULL != sim.objs[i]; i++) {
        continue;
    }
    if (i >= sim.nobjs) {
        uint32_t more = 0 == sim.nobjs ? 256 : 2 * sim.nobjs;
        struct sim_obj **table = sim_realloc(sim.objs, more * sizeof(*table));

        if (NULL == table) {
            sim_free(obj);
            return NULL;
        }
        memset(table + sim.nobjs, 0, (more - sim.nobjs) * sizeof(*table));
        i = 0 == sim.nobjs ? 1 : sim.nobjs;
        sim.objs = table;
        sim.nobjs = more;
    }
    sim.objs[i] = obj;
    obj->kind = kind;
    obj->handle = i;
    obj->ctx = ctx;
    return obj;
}

void *sim_obj_get(struct sim_ctx *ctx, enum sim_kind kind, uint32_t handle)
{
    struct sim_obj *obj;

    if (0 == handle || handle >= sim.nobjs) {
        return NULL;
    }
    obj = sim.objs[handle];
    if (NULL == obj || obj->ctx != ctx || obj->kind != kind) {
        return NULL;
    }
    return obj;
}

void sim_obj_free(void *arg)
{
    struct sim_obj *obj = arg;

    sim.objs[obj->handle] = NULL;
    sim_free(obj);
}

void sim_obj_close(struct sim_ctx *ctx)
{
    /* What holds on to others goes first. */
    static const enum sim_kind order[] = {SIM_QP,   SIM_SRQ, SIM_CQ,  SIM_CHANNEL,
                                          SIM_MKEY, SIM_MR,  SIM_UAR, SIM_PD};
    size_t k;
    uint32_t i;

    for (k = 0; k < sizeof(order) / sizeof(order[0]); k++) {
        for (i = 1; i < sim.nobjs; i++) {
            if (NULL != sim.objs[i] && sim.objs[i]->ctx == ctx && sim.objs[i]->kind == order[k]) {
                sim_cmd_destroy(sim.objs[i]);
            }
        }
    }
}

uint64_t sim_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t) ts.tv_sec * 1000000000u + (uint64_t) ts.tv_nsec;
}

uint64_t sim_delay(void)
{
    if (0 == sim.conf.delay_us) {
        return 0;
    }
    /* xorshift64*: small, and the same on every machine. */
    sim.random ^= sim.random >> 12;
    sim.random ^= sim.random << 25;
    sim.random ^= sim.random >> 27;
    return (sim.random * 0x2545f4914f6cdd1dULL >> 11) % (1000u * (uint64_t) sim.conf.delay_us);
}

int sim_close(int fd)
{
    return (int) syscall(SYS_close, fd);
}

void sim_log(int level, const char *format, ...)
{
    char text[512];
    va_list args;
    int n;

    if (level > sim.conf.log) {
        return;
    }
    n = snprintf(text, sizeof(text), "umrddt_sim[%ld]: ", (long) getpid());
    va_start(args, format);
    vsnprintf(text + n, sizeof(text) - (size_t) n - 1, format, args);
    va_end(args);
    strcat(text, "\n");
    if (0 > write(STDERR_FILENO, text, strlen(text))) {
        return;
    }
}
