/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "sim_conf.h"

#include <arpa/inet.h>
#include <string.h>

#include "sim/common/options.h"

static int set_down(void *out, const char *value)
{
    struct sim_conf *conf = out;
    uint64_t n;

    if (0 != options_number(value, 0, SIM_MAX_DEVICES - 1, &n)) {
        return -1;
    }
    conf->down = 1 + (int) n;
    return 0;
}

/* Options of the ports: sim_port.c has their values. */
#define SET_PORTS(name)                                                                 \
    static int set_##name(void *out, const char *value)                                 \
    {                                                                                   \
        return sim_port_each(((struct sim_conf *) out)->ports, value, sim_port_##name); \
    }
SET_PORTS(link)
SET_PORTS(speed)
SET_PORTS(width)
SET_PORTS(prefix)
SET_PORTS(route)
SET_PORTS(gids)
SET_PORTS(pkeys)

static int set_fabric(void *out, const char *value)
{
    struct sim_conf *conf = out;

    if (strlen(value) >= sizeof(conf->fabric)) {
        return -1;
    }
    strcpy(conf->fabric, value);
    return sim_port_each(conf->ports, value, sim_port_fabric);
}

static int set_machine(void *out, const char *value);

static int set_max_sq_desc(void *out, const char *value)
{
    struct sim_conf *conf = out;
    uint64_t n;

    if (0 != options_number(value, 256, 1024, &n) || 0 != n % 64) {
        return -1;
    }
    conf->max_sq_desc = (unsigned) n;
    return 0;
}

/* The most that fit a send WQE behind its control and remote address segments, in 512 bytes. */
static unsigned most_sge(const struct sim_conf *conf)
{
    unsigned bytes = conf->max_sq_desc < 512 ? conf->max_sq_desc : 512;

    return (bytes - 32) / 16;
}

static int set_max_wr(void *out, const char *value)
{
    struct sim_conf *conf = out;
    uint64_t n;

    if (0 != options_number(value, 64, 32768, &n) || 0 != (n & (n - 1))) {
        return -1;
    }
    conf->max_wr = (unsigned) n;
    return 0;
}

static int set_fail_write(void *out, const char *value)
{
    struct sim_conf *conf = out;
    uint64_t n;

    return 0 == options_number(value, 1, UINT64_MAX, &n)
               ? faults_add(&conf->faults, "write", n, n, 0)
               : -1;
}

static int set_deaf(void *out, const char *value)
{
    struct sim_conf *conf = out;
    uint64_t n;

    return 0 == options_number(value, 1, UINT64_MAX, &n)
               ? faults_add(&conf->faults, "deaf", n, n, 0)
               : -1;
}

static int set_faults(void *out, const char *value)
{
    struct sim_conf *conf = out;
    char error[128];

    return faults_parse(value, &conf->faults, error, sizeof(error));
}

static int set_address(void *out, const char *value)
{
    struct sim_conf *conf = out;
    char text[32];
    struct in_addr address;
    uint64_t bits = 32;
    char *slash;

    if (strlen(value) >= sizeof(text)) {
        return -1;
    }
    strcpy(text, value);
    slash = strchr(text, '/');
    if (NULL != slash) {
        *slash = '\0';
        if (0 != options_number(slash + 1, 1, 32, &bits)) {
            return -1;
        }
    }
    if (1 != inet_pton(AF_INET, text, &address) || 0 == address.s_addr) {
        return -1;
    }
    conf->address = ntohl(address.s_addr);
    conf->prefix = (unsigned) bits;
    return 0;
}

static const options_entry_t options[] = {
    {"machine",
     "machine=NAME      devices, networks and PCI of a machine, see --machine; further options\n"
     "                    change it",
     OPTIONS_OTHER(set_machine)},
    {"devices", "devices=N         number of devices, 1 to 12 (default 1)",
     OPTIONS_NUMBER(struct sim_conf, devices, 1, SIM_MAX_DEVICES)},
    {"down", "down=N            the port of device mlx5_N is not active", OPTIONS_OTHER(set_down)},
    {"nodes",
     "nodes=N           N NUMA nodes, 1 to 4: devices are on them in turn. The kernel reports that\n"
     "                    each 64 KiB of memory are on the next one (default: no report)",
     OPTIONS_NUMBER(struct sim_conf, nodes, 1, SIM_MAX_NODES)},
    {"switches",
     "switches=N        N PCI switches, 1 to 4: devices and software GPUs are below them in turn\n"
     "                    (default: each device is alone, and no report about GPUs)",
     OPTIONS_NUMBER(struct sim_conf, switches, 1, SIM_MAX_SWITCHES)},
    {"link",
     "link=ib|eth       InfiniBand (LIDs) or RoCE (GIDs) (default ib). This one and the next ones\n"
     "                    take a value for each device: link=ib/ib/eth, the last one for all others",
     OPTIONS_OTHER(set_link)},
    {"speed", "speed=sdr|...|edr|hdr|ndr of a lane of the link (default hdr)",
     OPTIONS_OTHER(set_speed)},
    {"width", "width=1|2|4|8|12  lanes of the link (default 4)", OPTIONS_OTHER(set_width)},
    {"prefix", "prefix=N          lowest 16 bits of the subnet prefix, with ib (default 0)",
     OPTIONS_OTHER(set_prefix)},
    {"fabric",
     "fabric=NAME       requests to a port of another fabric are lost, until the retries end. With\n"
     "                    an address of IPv4 or global IPv6, and eth, there is no route (timeout).\n"
     "                    With tcp: only processes with the same name reach each other; that is no\n"
     "                    protection: the wire is not encrypted",
     OPTIONS_OTHER(set_fabric)},
    {"gids",
     "gids=GID+GID+...  GID table, with eth: zero, ll (link-local), v4 (mapped IPv4), v6 (global)\n"
     "                    of RoCE v2; ll1, v41, v61 of RoCE v1 (default ll)",
     OPTIONS_OTHER(set_gids)},
    {"pkeys", "pkeys=N+N+...     table of partition keys (default 0xffff)",
     OPTIONS_OTHER(set_pkeys)},
    {"route",
     "route=ok|timeout|address|network|invalid no queue pair can be connected: modify_qp to RTR\n"
     "                    fails, with ETIMEDOUT, EADDRNOTAVAIL, ENETUNREACH or EINVAL",
     OPTIONS_OTHER(set_route)},
    {"route_ms", "route_ms=MS       time until ETIMEDOUT (default 1000)",
     OPTIONS_NUMBER(struct sim_conf, route_ms, 0, 60000)},
    {"max_sq_desc",
     "max_sq_desc=BYTES largest send WQE, a multiple of 64 from 256 to 1024 (default 1024);\n"
     "                    a UMR of libmlx5 has 52 list entries with 1024, and 4 with 256",
     OPTIONS_OTHER(set_max_sq_desc)},
    {"max_sge",
     "max_sge=N         data segments of a work request, 1 to 30 (default 30, or 14 with\n"
     "                    max_sq_desc=256)",
     OPTIONS_NUMBER(struct sim_conf, max_sge, 1, 30)},
    {"max_wr",
     "max_wr=N          receives of a queue, and basic blocks of 64 bytes of a send queue, a power\n"
     "                    of 2 from 64 to 32768 (default 32768)",
     OPTIONS_OTHER(set_max_wr)},
    {"log_max_msg", "log_max_msg=N     a message has at most 2^N bytes, 12 to 30 (default 30)",
     OPTIONS_NUMBER(struct sim_conf, log_max_msg, 12, 30)},
    {"log_max_klm", "log_max_klm=N     an mkey has at most 2^N entries, 2 to 16 (default 14)",
     OPTIONS_NUMBER(struct sim_conf, log_max_klm, 2, 16)},
    {"max_indirection",
     "max_indirection=N levels of mkeys within mkeys, 1 to 8 (default 4); 0: one level,\n"
     "                    which the device does not report",
     OPTIONS_NUMBER(struct sim_conf, max_indirection, 0, 8)},
    {"umr",
     "umr=on|off|broken off: no mkey can be created; broken: data gathered through an\n"
     "                    mkey is wrong, though every call and completion succeeds",
     OPTIONS_CHOICE(struct sim_conf, umr, "on|off|broken")},
    {"mkeys", "mkeys=N           only N mkeys can exist in a process, then creation fails",
     OPTIONS_NUMBER(struct sim_conf, mkeys, 1, UINT32_MAX)},
    {"qps", "qps=N             only N queue pairs can exist in a process (default 4095)",
     OPTIONS_NUMBER(struct sim_conf, qps, 1, UINT32_MAX)},
    {"srqs",
     "srqs=N            only N shared receive queues can exist in a process; with 0 the device\n"
     "                    reports none (default 65536)",
     OPTIONS_NUMBER(struct sim_conf, srqs, 0, 65536)},
    {"devx", "devx=0|1          the kernel opens the device with DEVX (default 1)",
     OPTIONS_SWITCH(struct sim_conf, devx)},
    {"fw", "fw=N              the firmware is 20.99.N (default 1)",
     OPTIONS_NUMBER(struct sim_conf, fw, 0, 9999)},
    {"atomics", "atomics=0|1       the device reports atomics (default 1)",
     OPTIONS_SWITCH(struct sim_conf, atomics)},
    {"mrs", "mrs=N             only N memory registrations can exist in a process",
     OPTIONS_NUMBER(struct sim_conf, mrs, 1, UINT32_MAX)},
    {"reg_bytes", "reg_bytes=N       only N bytes can be registered in a process",
     OPTIONS_NUMBER(struct sim_conf, reg_bytes, 1, UINT64_MAX)},
    {"bar_bytes", "bar_bytes=N       only N bytes of GPUs can be registered in a process",
     OPTIONS_NUMBER(struct sim_conf, bar_bytes, 1, UINT64_MAX)},
    {"dmabuf", "dmabuf=0|1        dma-bufs can be registered (default 1)",
     OPTIONS_SWITCH(struct sim_conf, dmabuf)},
    {"gpu_copies",
     "gpu_copies=0|1    copies of the CUDA driver move memory of software GPUs, as on real ones;\n"
     "                    no write is late then (default 0)",
     OPTIONS_SWITCH(struct sim_conf, gpu_copies)},
    {"gpu_late",
     "gpu_late=MS       writes of peers to a GPU arrive MS milliseconds late unless flushed\n"
     "                    (default 50; 0: at once)",
     OPTIONS_NUMBER(struct sim_conf, gpu_late_ms, 0, 60000)},
    {"delay",
     "delay=US          every work request starts and completes up to US microseconds late",
     OPTIONS_NUMBER(struct sim_conf, delay_us, 0, 1000000)},
    {"late",
     "late=MS           the completion of a write with immediate data is reported to the writer\n"
     "                    MS milliseconds after the peer has the data",
     OPTIONS_NUMBER(struct sim_conf, late_ms, 0, 60000)},
    {"seed", "seed=N            seed of these delays (default 1)",
     OPTIONS_NUMBER(struct sim_conf, seed, 0, UINT64_MAX)},
    {"fail_write",
     "fail_write=N      the N-th RDMA write of a process completes with a remote access error:\n"
     "                    faults=write:N",
     OPTIONS_OTHER(set_fail_write)},
    {"deaf",
     "deaf=N            the N-th write with immediate data to a process succeeds. After it the\n"
     "                    receiving queue pair fails, and its peer gets no report:\n"
     "                    faults=deaf:N",
     OPTIONS_OTHER(set_deaf)},
    {"faults", "faults=FAULT;...  planned faults, as with --faults", OPTIONS_OTHER(set_faults)},
    {"copy",
     "copy=vm|pipe      method of copies: process_vm_readv, or a pipe, which is slower. The pipe is\n"
     "                    also used where process_vm_readv is forbidden (default vm)",
     OPTIONS_CHOICE(struct sim_conf, copy_by_pipe, "vm|pipe")},
    {"wire",
     "wire=local|tcp    connections between processes: on one host, or by TCP, also to other hosts.\n"
     "                    With tcp each host runs umrddt_sim itself, and has one device",
     OPTIONS_CHOICE(struct sim_conf, tcp, "local|tcp")},
    {"address",
     "address=A.B.C.D[/BITS] with tcp: the address, or network, of the interface that is used\n"
     "                    (default: the first that is up, else 127.0.0.1). The address is in the\n"
     "                    GID (RoCE), or its lower half is the LID (InfiniBand)",
     OPTIONS_OTHER(set_address)},
    {"port",
     "port=N            with tcp: processes listen at one of the 4095 ports behind N\n"
     "                    (default 24000)",
     /* room for all slots behind it */ OPTIONS_NUMBER(struct sim_conf, port, 1024, 65535 - 4096)},
    {"wire_ms",
     "wire_ms=N         with tcp: a connection without data for N milliseconds is closed, and\n"
     "                    opened again as often as requests are retried (default 1000)",
     OPTIONS_NUMBER(struct sim_conf, wire_ms, 10, 60000)},
    {"log", "log=N             to stderr: 1 errors, 2 objects, 3 every work request (default 0)",
     OPTIONS_NUMBER(struct sim_conf, log, 0, 3)},
    {"counters", "counters=0|1      print the counters of the HCA at exit",
     OPTIONS_SWITCH(struct sim_conf, counters)},
    {"json", "json=0|1          ... as JSON, an object a process in a line",
     OPTIONS_SWITCH(struct sim_conf, json)},
};

static int set_machine(void *out, const char *value)
{
    struct sim_conf *conf = out;
    char error[128];

    conf->machine = sim_machine_find(value);
    return NULL == conf->machine
               ? -1
               : options_parse(options, sizeof(options) / sizeof(options[0]),
                               conf->machine->options, conf, error, sizeof(error));
}

int sim_conf_parse(const char *text, struct sim_conf *conf, char *error, size_t size)
{
    int i;

    memset(conf, 0, sizeof(*conf));
    conf->devices = 1;
    conf->max_sq_desc = 1024;
    conf->max_sge = 30;
    conf->max_wr = 32768;
    conf->srqs = 65536;
    conf->devx = true;
    conf->fw = 1;
    conf->atomics = true;
    conf->log_max_msg = 30;
    conf->log_max_klm = 14;
    conf->max_indirection = 4;
    conf->seed = 1;
    conf->route_ms = 1000;
    conf->dmabuf = true;
    conf->gpu_late_ms = 50;
    conf->port = 24000;
    conf->wire_ms = 1000;
    if (0
        != options_parse(options, sizeof(options) / sizeof(options[0]), text, conf, error, size)) {
        return -1;
    }
    for (i = 0; i < SIM_MAX_DEVICES; i++) {
        sim_port_defaults(&conf->ports[i], conf->tcp);
    }
    if (conf->max_sge > most_sge(conf)) {
        conf->max_sge = most_sge(conf);
    }
    if (conf->tcp && 1 < conf->devices) {
        snprintf(error, size, "with 'wire=tcp' there is one device");
        return -1;
    }
    return 0;
}

void sim_conf_help(FILE *file)
{
    const struct sim_machine *machine;
    size_t i;

    options_help(options, sizeof(options) / sizeof(options[0]), file);
    fprintf(file, "\nMachines, of --machine and the option 'machine':\n");
    for (i = 0; NULL != (machine = sim_machine_at(i)); i++) {
        fprintf(file, "  %-17s %s\n", machine->name, machine->help);
    }
}
