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
 * The options of the software ConnectX: one string, UMRDDT_SIM, comma separated. The wrapper checks
 * it before it starts anything; the library reads it again in every process.
 */

#ifndef SIM_CONF_H
#define SIM_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/common/faults.h"
#include "sim_port.h"

#define SIM_MAX_NODES    4
#define SIM_MAX_SWITCHES 4
#define SIM_MAX_FABRIC   160 /**< bytes of the fabrics' names, their end included */

/** What UMR does on this HCA. */
enum sim_umr {
    SIM_UMR_ON,     /**< as it should */
    SIM_UMR_OFF,    /**< no mkey can be created */
    SIM_UMR_BROKEN, /**< everything succeeds, but the bytes gathered through an mkey are wrong */
};

struct sim_conf {
    int devices;  /**< number of devices, mlx5_0 .. */
    int nodes;    /**< NUMA nodes that are made up; 0: none */
    int switches; /**< PCI switches that are made up; 0: none */
    int down;     /**< the port of this one is down, counted from 1; 0: of none */
    const struct sim_machine *machine;      /**< whose topology it is; NULL: of none */
    struct sim_port ports[SIM_MAX_DEVICES]; /**< of each device */
    unsigned route_ms;                      /**< a search for a route fails after this time */
    unsigned max_sq_desc;                   /**< bytes of the largest send WQE */
    unsigned max_sge;                       /**< data segments of a work request */
    unsigned max_wr;          /**< work requests, and basic blocks, of a queue; a power of 2 */
    unsigned log_max_msg;     /**< log2 of the bytes of the longest message */
    unsigned log_max_klm;     /**< log2 of the entries an mkey may have */
    unsigned max_indirection; /**< levels of mkeys that the HCA follows; 0: one, not reported */
    enum sim_umr umr;
    uint64_t mkeys;       /**< mkeys that may exist in a process; 0: no limit but the table */
    uint64_t qps;         /**< queue pairs that may exist in a process; 0: no limit but 4095 */
    uint64_t srqs;        /**< shared receive queues that may exist in a process */
    bool devx;            /**< the kernel opens the device with DEVX */
    unsigned fw;          /**< the last number of the firmware's version */
    bool atomics;         /**< it has those of the machine's byte order */
    uint64_t mrs;         /**< registrations that may exist in a process; 0: no limit */
    uint64_t reg_bytes;   /**< bytes that may be registered in a process; 0: no limit */
    uint64_t bar_bytes;   /**< of GPUs that may be registered in a process; 0: no limit */
    bool dmabuf;          /**< the kernel registers dma-bufs */
    bool gpu_copies;      /**< memory of software GPUs is moved by copies, too */
    unsigned gpu_late_ms; /**< what peers write to a GPU lands so late unless it is flushed */
    unsigned delay_us;    /**< upper bound of the random delays */
    unsigned late_ms;     /**< completions of writes with immediate data are so late */
    uint64_t seed;        /**< of the random delays */
    struct faults faults; /**< on demand */
    bool copy_by_pipe;    /**< as where process_vm_readv is forbidden */
    bool tcp;             /**< the wire is TCP: processes may be on other hosts */
    uint32_t address;     /**< IPv4 address or network of the HCA, host order; 0: choose */
    unsigned prefix;      /**< leading bits of it that count */
    unsigned port;        /**< slot N listens at this port + N */
    unsigned wire_ms;     /**< a connection without data for so long is closed */
    char fabric[SIM_MAX_FABRIC]; /**< processes with another name are refused */
    uint32_t here;               /**< the HCA's own address, found by sim_here_find() */
    int log;                     /**< 0 nothing, 1 errors, 2 objects, 3 every work request */
    bool counters;               /**< print counters at exit */
    bool json;                   /**< as JSON */
};

/**
 * Read an option string. NULL and "" give the defaults.
 *
 * @param[in]  text   the string
 * @param[out] conf   always filled
 * @param[out] error  the error, at most @p size bytes; unchanged if there is none
 *
 * @retval 0   fine
 * @retval -1  an unknown option or a bad value
 */
int sim_conf_parse(const char *text, struct sim_conf *conf, char *error, size_t size);

/** Print the list of the options, as --help shows it. */
void sim_conf_help(FILE *file);

#endif /* SIM_CONF_H */
