/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* The options in UMRDDT_GPU. */

#include "gpu.h"

#include <string.h>

#include "sim/common/options.h"

struct gpu_conf gpu_conf;

static int set_ordering(void *out, const char *value)
{
    struct gpu_conf *conf = out;
    int choice = options_choice(value, "none|owner|all");

    if (0 > choice) {
        return -1;
    }
    conf->ordering = 100 * choice;
    return 0;
}

/* fail=NAME:N:ERROR */
static int set_fail(void *out, const char *value)
{
    struct gpu_conf *conf = out;
    int count = conf->faults.count;
    char error[128];

    return NULL == strpbrk(value, ";@ ")
                   && 0 == faults_parse(value, &conf->faults, error, sizeof(error))
                   && count + 1 == conf->faults.count && 0 != conf->faults.fault[count].how
               ? 0
               : -1;
}

static int set_faults(void *out, const char *value)
{
    struct gpu_conf *conf = out;
    char error[128];

    return faults_parse(value, &conf->faults, error, sizeof(error));
}

static const options_entry_t options[] = {
    {"devices", "devices=N         number of devices, 0 to 16 (default 2)",
     OPTIONS_NUMBER(struct gpu_conf, devices, 0, GPU_DEVICES_MAX)},
    {"memory", "memory=BYTES      of each device, for one process (default 8 GiB)",
     OPTIONS_NUMBER(struct gpu_conf, memory, 1u << 20, 1ull << 40)},
    {"capability",
     "capability=N      compute capability of the devices, 90 for 9.0 (default 90). They refuse PTX\n"
     "                    for later ones",
     OPTIONS_NUMBER(struct gpu_conf, capability, 10, 999)},
    {"delay", "delay=US          work in a stream begins and ends up to US microseconds late",
     OPTIONS_NUMBER(struct gpu_conf, delay_us, 0, 1000000)},
    {"late",
     "late=US           unfinished work of calls without 'async' in their name (copies from pageable\n"
     "                    memory and within devices, memsets) begins US microseconds late (default 0)",
     OPTIONS_NUMBER(struct gpu_conf, late_us, 0, 1000000)},
    {"seed", "seed=N            seed of these delays, and of the order of blocks (default 1)",
     OPTIONS_NUMBER(struct gpu_conf, seed, 0, UINT64_MAX)},
    {"peer", "peer=0|1          devices reach each other's memory (default 1)",
     OPTIONS_SWITCH(struct gpu_conf, peer)},
    {"dmabuf", "dmabuf=0|1        memory can be exported as a dma-buf (default 1)",
     OPTIONS_SWITCH(struct gpu_conf, dmabuf)},
    {"peermem", "peermem=0|1       HCAs can register memory by its address (default 1)",
     OPTIONS_SWITCH(struct gpu_conf, peermem)},
    {"gdr", "gdr=0|1           devices let HCAs reach their memory at all (default 1)",
     OPTIONS_SWITCH(struct gpu_conf, gdr)},
    {"ordering",
     "ordering=none|owner|all visibility of an HCA's writes without a flush: none, the device\n"
     "                    itself, or all devices (default none)",
     OPTIONS_OTHER(set_ordering)},
    {"flush",
     "flush=0|1         cuFlushGPUDirectRDMAWrites flushes writes of HCAs; else only a read by\n"
     "                    the HCA does (default 1)",
     OPTIONS_SWITCH(struct gpu_conf, flush)},
    {"reuse", "reuse=0|1         addresses of freed memory are used again at once (default 1)",
     OPTIONS_SWITCH(struct gpu_conf, reuse)},
    {"touch",
     "touch=0|1         the CPU may access device memory, as over a coherent link. A library\n"
     "                    that copies by the CPU then behaves like one with CUDA\n"
     "                    (default 0: a segmentation fault)",
     OPTIONS_SWITCH(struct gpu_conf, touch)},
    {"aware",
     "aware=0|1         Open MPI 4.1 reports support of CUDA from the load of this library on,\n"
     "                    although it was built without CUDA (default 0)",
     OPTIONS_SWITCH(struct gpu_conf, aware)},
    {"crash",
     "crash=0|1         the use of a destroyed context ends the program, as\n"
     "                    real drivers may (default 0: it is an error)",
     OPTIONS_SWITCH(struct gpu_conf, crash)},
    {"fail",
     "fail=NAME:N:ERROR the N-th call of a function (* for every one) fails with this number, and\n"
     "                    does nothing. NAME can be 'kernel' or 'copy': then the N-th kernel, or\n"
     "                    copy, that a device begins fails, and its context is unusable after it.\n"
     "                    May be given several times. The same as faults=NAME:N:ERROR",
     OPTIONS_OTHER(set_fail)},
    {"faults", "faults=FAULT;...  planned faults, as with --faults", OPTIONS_OTHER(set_faults)},
    {"kernels",
     "kernels=PATH:...  shared objects with kernels compiled for the host, used when a module of\n"
     "                    GPU code is loaded (default: those in 'kernels' beside the library)",
     OPTIONS_TEXT(struct gpu_conf, kernels, 0)},
    {"counters", "counters=0|1      print the counters at exit",
     OPTIONS_SWITCH(struct gpu_conf, counters)},
    {"json", "json=0|1          ... as JSON, an object a process in a line",
     OPTIONS_SWITCH(struct gpu_conf, json)},
};

int gpu_conf_parse(const char *text, struct gpu_conf *conf, char *error, size_t size)
{
    memset(conf, 0, sizeof(*conf));
    conf->devices = 2;
    conf->memory = 8ull << 30;
    conf->capability = 90;
    conf->seed = 1;
    conf->peer = true;
    conf->reuse = true;
    conf->dmabuf = true;
    conf->peermem = true;
    conf->gdr = true;
    conf->flush = true;
    return options_parse(options, sizeof(options) / sizeof(options[0]), text, conf, error, size);
}

void gpu_conf_help(FILE *file)
{
    options_help(options, sizeof(options) / sizeof(options[0]), file);
}
