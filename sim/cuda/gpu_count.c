/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

/* Counters of calls and work, and planned errors. */

#include "gpu.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

struct gpu_counters gpu_count;

/* Guarded by gpu_lock, as all counters are. */
static uint64_t calls[GPU_FN_MAX];
static uint64_t before_plan[GPU_FN_MAX]; /* calls that the plan of faults does not count */
static const char *last = "";            /* what failed on demand */
static uint64_t calls_of_plan;           /* of any function, that it counts */
static uint64_t done_of_plan;            /* kernels and copies that it counts */
static bool well;                        /* for now nothing goes wrong */

static const struct {
    const char *name;
    const char *base;
} functions[GPU_FN_MAX] = {
#define NAMES(name, base, version, arguments) {#name, base},
    UMRDDT_CUDA_FUNCTIONS(NAMES){"kernel", "kernel"}, {"copy", "copy"}};

#define ROW(name, help) {#name, help, offsetof(struct gpu_counters, name)},

static const struct {
    const char *name;
    const char *help;
    size_t offset;
} rows[] = {GPU_COUNTERS(ROW)};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

CUresult gpu_count_call(enum gpu_function function)
{
    bool of_device = GPU_FN_kernel == function || GPU_FN_copy == function;
    const struct fault *fault;

    calls[function]++;
    if (!of_device) {
        gpu_count.calls++;
    }
    if (well) {
        before_plan[function]++;
        return CUDA_SUCCESS;
    }
    fault = faults_hit(&gpu_conf.faults, functions[function].name, functions[function].base,
                       calls[function] - before_plan[function]);
    if (NULL == fault && !of_device) {
        fault = faults_hit(&gpu_conf.faults, "call", NULL, ++calls_of_plan);
    }
    if (of_device && NULL != faults_hit(&gpu_conf.faults, "kill", NULL, ++done_of_plan)) {
        raise(SIGKILL);
    }
    if (NULL != fault) {
        gpu_count.injected++;
        last = functions[function].name;
        return 0 != fault->how ? (CUresult) fault->how
               : of_device     ? CUDA_ERROR_ILLEGAL_ADDRESS
                               : CUDA_ERROR_OUT_OF_MEMORY;
    }
    return CUDA_SUCCESS;
}

int gpu_count_faults(const struct faults *faults, bool on)
{
    static uint64_t injected_before;

    if (NULL != faults) {
        gpu_conf.faults = *faults;
        memcpy(before_plan, calls, sizeof(before_plan));
        calls_of_plan = 0;
        done_of_plan = 0;
        injected_before = gpu_count.injected;
    }
    well = !on;
    return (int) (gpu_count.injected - injected_before);
}

GPU_EXPORT const char *umrddt_gpu_faults_last(void)
{
    return last;
}

void gpu_count_print(FILE *file)
{
    /* In one piece, as other processes print at the same time. */
    char line[8192];
    size_t room = sizeof(line) - 1; /* for the newline */
    bool json = gpu_conf.json;
    const char *pair = json ? ",\"%s\":%llu" : " %s=%llu";
    size_t at = (size_t) snprintf(
        line, room, json ? "{\"umrddt_gpu\":%ld" : "umrddt_gpu[%ld]:", (long) getpid());
    size_t i;

    for (i = 0; i < ROWS && at < room; i++) {
        uint64_t value = *(const uint64_t *) ((const char *) &gpu_count + rows[i].offset);

        at +=
            (size_t) snprintf(line + at, room - at, pair, rows[i].name, (unsigned long long) value);
    }
    for (i = 0; i < GPU_FN_kernel && at < room; i++) {
        if (0 < calls[i]) {
            at += (size_t) snprintf(line + at, room - at, pair, functions[i].name,
                                    (unsigned long long) calls[i]);
        }
    }
    at += (size_t) snprintf(line + at, at < room ? room - at : 0, "%s", json ? "}" : "");
    at = at < room ? at : room - 1;
    line[at++] = '\n';
    (void) fwrite(line, 1, at, file);
    (void) fflush(file);
}

void gpu_count_help(FILE *file)
{
    size_t i;

    for (i = 0; i < ROWS; i++) {
        fprintf(file, "  %-12s %s\n", rows[i].name, rows[i].help);
    }
}
