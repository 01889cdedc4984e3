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
 * Declarations that the files of umrddt_info share.
 *
 * The program examines each device in a separate process, since btl/umr has one HCA per process,
 * and Open MPI as well. That process is the program itself, started again with --one or --mpi.
 */

#ifndef INFO_H
#define INFO_H

#include <stdbool.h>
#include <stdio.h>

#include "bench/layouts.h"

/** Exit statuses, of the program and of the processes it starts. */
enum {
    INFO_USABLE = 0,   /**< at least one device */
    INFO_UNUSABLE = 1, /**< none */
    INFO_USAGE = 2,
    INFO_BROKEN = 3, /**< Open MPI or the component is not as it has to be */
    INFO_WITHOUT = 4 /**< of a process that was started: usable, but without UMR */
};

/** Whether JSON is wanted in place of text: every function below obeys. */
extern bool info_json;

/**
 * Have btl/umr open a device and test it; print its properties, or the reason and the remedy.
 *
 * @param[in] name  "mlx5_0" or "mlx5_0:1"
 * @param[in] gpu   have the device write to itself within the memory of this GPU; -1: not
 *
 * @return the exit status; INFO_BROKEN with the reason on the standard error
 */
int info_device(const char *name, int gpu);

/**
 * The test of the lanes between the processes of a job (--pair), which prints its result.
 *
 * @param[in] gpu       have the buffers in the memory of this GPU; -1: in system memory
 * @param[in] seconds   that the messages of each lane take at least
 * @param[in] software  the HCA is that of umrddt_sim
 * @param[in] text      rank 0 prints the texts of all others before the result; NULL: none
 *
 * @return the exit status
 */
int info_pair(int gpu, double seconds, bool software, FILE *text);

/**
 * Collect all about this machine, or about the nodes of the job with a test of the lanes, into a
 * file (--collect). Overwrites regular files only. Arguments as for info_pair.
 *
 * @return the exit status
 */
int info_collect(const char *path, int gpu, double seconds, bool software);

/** Print all of a file. */
void info_collect_print(FILE *text);

/** The remedy for a reason of btl/umr not to use a device; NULL: none is known. */
const char *info_advice(const char *reason);

/** Print it. */
void info_advise(const char *reason);

/** Print the limit of locked memory, and the remedy if there is one. */
void info_locked_memory(void);

/** Print properties of Open MPI and of umrddt in a job, in lines NAME=VALUE. @return the exit
 * status */
int info_mpi(void);

/** Properties of the GPUs that affect the selection of a scheme; all false without any. */
typedef struct info_gpus_t {
    int count;
    bool rdma;    /**< the driver lets HCAs reach the memory of all */
    bool dmabuf;  /**< the driver exports it */
    bool peermem; /**< the kernel module is loaded */
    bool shared;  /**< several processes may use each */
    bool peers;   /**< each reaches the memory of each other */
} info_gpus_t;

/**
 * Print whether this umrddt was built with kernels for GPUs; if not, what that costs and what to
 * do.
 *
 * @param[in] gpus  there are some
 */
void info_kernels(bool gpus);

/** Print properties of the GPUs from the CUDA driver. @param[out] gpus */
void info_gpus(info_gpus_t *gpus);

/** What counts of the rest. */
typedef struct info_found_t {
    bool umrddt;     /**< pml/umrddt comes up */
    bool cuda;       /**< Open MPI supports GPU memory */
    char gpu[8];     /**< pml_umrddt_base_gpu */
    char pml[32];    /**< the base PML */
    char memory[16]; /**< pml_umrddt_memory */
    char scheme[16]; /**< pml_umrddt_scheme */
    bool hca;        /**< a device can be used */
    bool umr;        /**< with UMR */
} info_found_t;

/** Print the scheme of messages, and the reason. */
void info_schemes(const info_found_t *found, const info_gpus_t *gpus);

/** What --explain is about. */
typedef struct info_explain_t {
    const bench_chosen_t *from; /**< the sender's layout */
    const bench_chosen_t *to;   /**< the receiver's; NULL: that of the same name */
    bool from_gpu, to_gpu;
    bool hca;            /**< there is one, at both sides */
    unsigned candidates; /**< that are considered: bit 1 << mca_pml_umrddt_scheme_id_t */
} info_explain_t;

/**
 * Print the scheme of messages of a layout, and the reason; in a process with pml/umrddt.
 *
 * @return the exit status
 */
int info_explain(const info_explain_t *what);

/** Have this process, and those that it starts, be no part of a job that it was started in. */
void info_leave_job(void);

/** True if there is an mlx5 device. It is not opened. */
bool info_has_mlx5(void);

/** The --explain of the command line. @return the exit status */
int info_explain_main(int argc, char **argv);

/** Values of JSON, on the standard output; a name is NULL in arrays. Brackets are '{', '[', and
 * '}', ']'. */
void info_json_open(const char *name, char bracket);
void info_json_close(char bracket);
void info_json_text(const char *name, const char *value); /**< NULL: null */
void info_json_number(const char *name, long long value);
void info_json_real(const char *name, double value);
void info_json_bool(const char *name, bool value);
void info_json_raw(const char *value); /**< a value that is JSON already, in an array */

#endif /* INFO_H */
