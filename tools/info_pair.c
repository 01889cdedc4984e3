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
 * umrddt_info --pair: the lanes between the processes of a job, and a test of each (info_link.c).
 * Rank 0 prints. The lanes are those that messages of pml/umrddt would have: btl/umr makes them
 * from the same data.
 */

#include "info_hca.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

#include "umrddt_compat.h"

#include "ompi/communicator/communicator.h"
#include "ompi/proc/proc.h"
#include "opal/constants.h"

#if UMRDDT_OPAL_RELEASE >= 500
#include <pmix.h>
#endif

#include "info_counters.h"

enum {
    PORTS_MAX = 16,   /* of a process */
    CHANGES_MAX = 64, /* counters that grew, of a process */
    FEW = 4           /* processes of which each pair is tested */
};

/** A port of a process. */
typedef struct port_t {
    char name[64];
    char link[16];
    char gid[48];
    char gpus[32]; /**< the nearest ones */
    unsigned rate; /**< Gb/s; 0: unknown */
    unsigned gid_index, pkey, service_level;
    int traffic_class; /**< -1: none */
} port_t;

/** A process. */
typedef struct process_t {
    char host[64];
    char why[192]; /**< it has no HCA, or its GPU cannot be used */
    int count;
    port_t ports[PORTS_MAX];
} process_t;

/** One end of a lane. */
typedef struct lane_t {
    mca_btl_umr_endpoint_t *endpoint;
    mca_btl_umr_address_t address;
    int hca;
    int peer_hca; /**< -1: the other end tells */
} lane_t;

typedef struct lanes_t {
    int count;
    lane_t lanes[PORTS_MAX];
} lanes_t;

/** The result of one direction of a lane. */
typedef struct row_t {
    int from, to, lane; /**< lane -1: there is none */
    int from_hca, to_hca;
    info_traffic_t traffic;
} row_t;

/** Counters that grew during the test. */
typedef struct changes_t {
    int available[PORTS_MAX];
    int count;
    struct {
        int port, counter;
        long long by;
    } changes[CHANGES_MAX];
} changes_t;

static const mca_btl_umr_hca_ops_t *hca;
static int rank, size;
static process_t *processes;

/* ------------------------------------------------------------------------------------------- *
 * The start
 * ------------------------------------------------------------------------------------------- */

/** MPI without pml/umrddt: this program opens the HCAs itself. */
static void prepare(void)
{
    const char *pml = getenv("OMPI_MCA_pml"), *btl = getenv("OMPI_MCA_btl");

    if (NULL == pml || NULL != strstr(pml, "umrddt")) {
        setenv("OMPI_MCA_pml", "^umrddt", 1);
    }
    if (NULL == btl || NULL != strstr(btl, "umr")) {
        setenv("OMPI_MCA_btl", "^umr", 1);
    }
    setenv("OMPI_MCA_osc", "^ucx", 0);
    /* Few, so that they are mapped anew all the time. */
    setenv("OMPI_MCA_btl_umr_mkeys", "8", 0);
}

/** What btl/umr has published since MPI_Init. @return false: the job's runtime failed */
static bool exchange_modex(void)
{
#if UMRDDT_OPAL_RELEASE >= 500
    /* libmpi brings libpmix along, but not for others to link against. */
    pmix_status_t (*commit)(void);
    pmix_status_t (*fence)(const pmix_proc_t *, size_t, const pmix_info_t *, size_t);
    void *found = dlsym(RTLD_DEFAULT, "PMIx_Commit");

    memcpy(&commit, &found, sizeof(found));
    found = dlsym(RTLD_DEFAULT, "PMIx_Fence");
    memcpy(&fence, &found, sizeof(found));
    return NULL != commit && NULL != fence && PMIX_SUCCESS == commit()
           && PMIX_SUCCESS == fence(NULL, 0, NULL, 0);
#else
    return OPAL_SUCCESS == opal_pmix.commit() && OPAL_SUCCESS == opal_pmix.fence(NULL, 1);
#endif
}

/** The number behind a word of the description of a port; @p none if it is not there. */
static int number_behind(const char *text, const char *word, int none)
{
    const char *at = strstr(text, word);

    return NULL == at ? none : (int) strtol(at + strlen(word), NULL, 0);
}

/** Read the description of a port that btl/umr has made for messages. */
static void describe(port_t *port, unsigned int index, const mca_btl_umr_caps_t *caps)
{
    info_near_t gpus[OPAL_UMRDDT_GPU_RDMA_DEVICES];
    int count = info_hca_gpus(hca, index, gpus);
    const char *gid = strchr(caps->port, '('), *rate = strstr(caps->port, " Gb/s");

    memset(port, 0, sizeof(*port));
    snprintf(port->name, sizeof(port->name), "%.63s", caps->device);
    snprintf(port->link, sizeof(port->link), "%.*s", (int) (strcspn(caps->port, ",") & 15),
             caps->port);
    if (NULL != rate) {
        while (rate > caps->port && ' ' != rate[-1]) {
            --rate;
        }
        port->rate = (unsigned) strtoul(rate, NULL, 10);
    }
    if (NULL != gid) {
        snprintf(port->gid, sizeof(port->gid), "%.*s", (int) (strcspn(gid, ")") - 1) & 63, gid + 1);
    }
    port->gid_index = (unsigned) number_behind(caps->port, "GID ", 0);
    port->pkey = (unsigned) number_behind(caps->port, "pkey ", 0);
    port->service_level = (unsigned) number_behind(caps->port, "service level ", 0);
    port->traffic_class = number_behind(caps->port, "traffic class ", -1);
    for (int i = 0; i < count && gpus[i].distance == gpus[0].distance; ++i) {
        size_t used = strlen(port->gpus);

        snprintf(port->gpus + used, sizeof(port->gpus) - used, "%s%d", 0 == i ? "" : ",",
                 gpus[i].gpu);
    }
}

/** Open the HCAs of this process, and learn about those of the others. */
static bool start(int gpu)
{
    process_t *me = calloc(1, sizeof(*me));
    const mca_btl_umr_caps_t *caps;
    bool ok;

    processes = calloc((size_t) size, sizeof(*processes));
    if (NULL == me || NULL == processes) {
        free(me);
        MPI_Abort(MPI_COMM_WORLD, INFO_BROKEN);
        return false;
    }
    (void) gethostname(me->host, sizeof(me->host) - 1);
    if (OPAL_SUCCESS != hca->init()) {
        snprintf(me->why, sizeof(me->why), "%.191s", hca->why_not());
    } else {
        while (PORTS_MAX > me->count && hca->hca((unsigned) me->count, &caps, NULL)) {
            describe(&me->ports[me->count], (unsigned) me->count, caps);
            ++me->count;
        }
        if (0 <= gpu && !info_buffer_gpu(gpu, me->why)) {
            hca->fini();
            me->count = 0;
        }
    }
    ok = exchange_modex();
    MPI_Allgather(me, (int) sizeof(*me), MPI_BYTE, processes, (int) sizeof(*me), MPI_BYTE,
                  MPI_COMM_WORLD);
    free(me);
    if (!ok) {
        fprintf(stderr, "umrddt_info: the processes cannot exchange addresses\n");
    }
    return ok;
}

/* ------------------------------------------------------------------------------------------- *
 * Lanes
 * ------------------------------------------------------------------------------------------- */

static int address_hca(const mca_btl_umr_address_t *address)
{
    return (int) (ntohl(address->qpn) >> 24);
}

/** The endpoint for the lane to an HCA of the peer, or another one if it has no lane. */
static mca_btl_umr_endpoint_t *endpoint_to(mca_btl_umr_endpoint_t *any, int peer_hca)
{
    mca_btl_umr_address_t address = {htonl((uint32_t) peer_hca << 24), 0};

    return hca->endpoint_at(any, &address);
}

/** All lanes to a process, from this end. */
static void find_lanes(int peer, lanes_t *lanes)
{
    struct opal_proc_t *proc =
        (struct opal_proc_t *) ompi_comm_peer_lookup(&ompi_mpi_comm_world.comm, peer);
    mca_btl_umr_endpoint_t *any, *other = NULL;

    memset(lanes, 0, sizeof(*lanes));
    if (0 == processes[rank].count || 0 == processes[peer].count
        || OPAL_SUCCESS != hca->endpoint_get(proc, &any)) {
        return;
    }
    for (int i = 0; i < processes[peer].count && NULL == other; ++i) {
        other = endpoint_to(any, i);
        other = other == any ? NULL : other;
    }
    if (NULL == other) {
        lanes->lanes[lanes->count].endpoint = any;
        lanes->lanes[lanes->count++].peer_hca = -1;
    }
    /* For an HCA without a lane endpoint_at returns its argument. */
    for (int i = 0; i < processes[peer].count && NULL != other; ++i) {
        mca_btl_umr_endpoint_t *endpoint = endpoint_to(any, i);

        if (endpoint == endpoint_to(other, i)) {
            lanes->lanes[lanes->count].endpoint = endpoint;
            lanes->lanes[lanes->count++].peer_hca = i;
        }
    }
    for (int i = 0; i < lanes->count; ++i) {
        hca->endpoint_address(lanes->lanes[i].endpoint, &lanes->lanes[i].address);
        lanes->lanes[i].hca = address_hca(&lanes->lanes[i].address);
    }
}

/** The other end of a lane. @return NULL: not found */
static const lane_t *other_end(const lane_t *lane, const lanes_t *theirs)
{
    for (int i = 0; i < theirs->count; ++i) {
        const lane_t *end = &theirs->lanes[i];

        if ((-1 == lane->peer_hca || end->hca == lane->peer_hca)
            && (-1 == end->peer_hca || lane->hca == end->peer_hca)) {
            return end;
        }
    }
    return NULL;
}

static void row_fill(row_t *row, int from, int to, int lane, int from_hca, int to_hca)
{
    memset(row, 0, sizeof(*row));
    row->from = from;
    row->to = to;
    row->lane = lane;
    row->from_hca = from_hca;
    row->to_hca = to_hca;
}

/** The reason why there is no lane. */
static void no_lane(row_t *row)
{
    for (int i = 0; i < 2; ++i) {
        int at = 0 == i ? row->from : row->to;

        if (0 == processes[at].count) {
            snprintf(row->traffic.why, sizeof(row->traffic.why), "rank %d has no HCA: %.150s", at,
                     processes[at].why);
            return;
        }
    }
    snprintf(row->traffic.why, sizeof(row->traffic.why),
             "no lane: no port of the one can reach a port of the other (network, partition)");
}

/**
 * Test all lanes to a process, which does the same.
 *
 * @param[out] rows  two for each lane, or one if there is none; 2 * PORTS_MAX elements
 *
 * @return their number; the two processes have the same rows
 */
static int test_pair(int peer, double seconds, row_t *rows)
{
    int a = rank < peer ? rank : peer, b = rank < peer ? peer : rank, count = 0;
    lanes_t mine, theirs;
    const lanes_t *first;

    find_lanes(peer, &mine);
    info_link_swap(hca, peer, &mine, &theirs, sizeof(mine));
    first = rank == a ? &mine : &theirs;
    for (int i = 0; i < first->count; ++i) {
        const lane_t *end = other_end(&first->lanes[i], rank == a ? &theirs : &mine);
        const lane_t *here = rank == a ? &first->lanes[i] : end;
        row_t *row = &rows[count];
        info_traffic_t traffic[2];

        row_fill(&row[0], a, b, i, first->lanes[i].hca, NULL == end ? -1 : end->hca);
        row_fill(&row[1], b, a, i, NULL == end ? -1 : end->hca, first->lanes[i].hca);
        count += 2;
        if (NULL == end) {
            snprintf(row[0].traffic.why, sizeof(row[0].traffic.why),
                     "the two processes pair their ports differently");
            row[1].traffic = row[0].traffic;
            continue;
        }
        {
            info_link_t link = {.hca = hca,
                                .endpoint = here->endpoint,
                                .address = rank == a ? end->address : first->lanes[i].address,
                                .peer = peer,
                                .first = rank == a,
                                .seconds = seconds};

            (void) info_link_test(&link, &traffic[0]);
        }
        info_link_swap(hca, peer, &traffic[0], &traffic[1], sizeof(traffic[0]));
        row[rank == a ? 0 : 1].traffic = traffic[0];
        row[rank == a ? 1 : 0].traffic = traffic[1];
    }
    if (0 == count) {
        row_fill(&rows[count], a, b, -1, -1, -1);
        no_lane(&rows[count++]);
    }
    return count;
}

/** Whether a pair is tested: on different nodes, if there are two. */
static bool wanted(int a, int b)
{
    bool one_node = true;

    for (int i = 1; i < size; ++i) {
        one_node = one_node && 0 == strcmp(processes[0].host, processes[i].host);
    }
    return (0 == a || FEW >= size)
           && (one_node || 0 != strcmp(processes[a].host, processes[b].host));
}

/* ------------------------------------------------------------------------------------------- *
 * Output
 * ------------------------------------------------------------------------------------------- */

static void print_ports(void)
{
    if (info_json) {
        info_json_open("ports", '[');
    } else {
        printf("\nPorts in the order of each process (GPUs: the nearest to the port)\n"
               "rank host         port      link       Gb/s   pkey SL  TC GPUs     GID\n");
    }
    for (int i = 0; i < size; ++i) {
        for (int k = 0; k < processes[i].count; ++k) {
            const port_t *port = &processes[i].ports[k];
            char class[16] = "-";

            if (info_json) {
                info_json_open(NULL, '{');
                info_json_number("rank", i);
                info_json_text("host", processes[i].host);
                info_json_text("port", port->name);
                info_json_text("link", port->link);
                info_json_number("gbit_per_s", port->rate);
                info_json_text("gid", port->gid);
                info_json_number("gid_index", port->gid_index);
                info_json_number("pkey", port->pkey);
                info_json_number("service_level", port->service_level);
                info_json_number("traffic_class", port->traffic_class);
                info_json_text("nearest_gpus", port->gpus);
                info_json_close('}');
                continue;
            }
            if (0 <= port->traffic_class) {
                snprintf(class, sizeof(class), "%d", port->traffic_class);
            }
            printf("%4d %-12.12s %-9s %-10s %4u 0x%04x %2u %3s %-8s %u %s\n", i, processes[i].host,
                   port->name, port->link, port->rate, port->pkey, port->service_level, class,
                   '\0' == port->gpus[0] ? "-" : port->gpus, port->gid_index, port->gid);
        }
        if (!info_json && 0 == processes[i].count) {
            printf("%4d %-12.12s none: %s\n", i, processes[i].host, processes[i].why);
        }
    }
    if (info_json) {
        info_json_close(']');
        info_json_open("lanes", '[');
    } else {
        printf(
            "\nLanes, each in both directions\n"
            "     rank           port            connect first write bandwidth  messages    mkeys\n"
            "from   to lane from      to            (us)        (us)    (GB/s) all right   mapped  "
            "result\n");
    }
}

static const char *port_name(int process, int port)
{
    return 0 <= port && processes[process].count > port ? processes[process].ports[port].name : "-";
}

static void print_row(const row_t *row)
{
    const info_traffic_t *traffic = &row->traffic;
    bool works = '\0' == traffic->why[0];
    const char *from = port_name(row->from, row->from_hca), *to = port_name(row->to, row->to_hca);

    if (info_json) {
        info_json_open(NULL, '{');
        info_json_number("from", row->from);
        info_json_number("to", row->to);
        info_json_number("lane", row->lane);
        info_json_text("from_port", from);
        info_json_text("to_port", to);
        info_json_bool("works", works);
        info_json_text("why_not", works ? NULL : traffic->why);
        info_json_real("connect_us", 1e6 * traffic->connect);
        info_json_real("first_write_us", 1e6 * traffic->first_write);
        info_json_real("bandwidth_gb_per_s", 1e-9 * traffic->bandwidth);
        info_json_number("messages_right", traffic->messages);
        info_json_number("mkeys_mapped", traffic->mkeys);
        info_json_close('}');
        return;
    }
    printf("%4d %4d %4d %-9s %-9s %8.0f %11.1f %9.2f %9lld %8lld  %s\n", row->from, row->to,
           row->lane, from, to, 1e6 * traffic->connect, 1e6 * traffic->first_write,
           1e-9 * traffic->bandwidth, traffic->messages, traffic->mkeys,
           works ? "works" : "FAILED");
    if (!works) {
        printf("          %s\n", traffic->why);
    }
    fflush(stdout);
}

/** True if a process before this one has shown the same port. */
static bool shown_before(int process, int port)
{
    for (int i = 0; i < process; ++i) {
        for (int k = 0;
             0 == strcmp(processes[i].host, processes[process].host) && k < processes[i].count;
             ++k) {
            if (0 == strcmp(processes[i].ports[k].name, processes[process].ports[port].name)) {
                return true;
            }
        }
    }
    return false;
}

static void print_change(int process, int port, int counter, long long by)
{
    const process_t *at = &processes[process];

    if (info_json) {
        info_json_open(NULL, '{');
        info_json_text("host", at->host);
        info_json_text("port", at->ports[port].name);
        info_json_text("counter", info_counters_name(counter));
        info_json_number("growth", by);
        info_json_close('}');
        return;
    }
    printf("%-12.12s %-9s %-31s %9lld  %s\n", at->host, at->ports[port].name,
           info_counters_name(counter), by, info_counters_meaning(counter));
}

static void print_counters(const changes_t *changes)
{
    if (info_json) {
        info_json_open("counters", '[');
    } else {
        printf("\nCounters of trouble, growth during the test\n"
               "host         port      counter                            growth  meaning\n");
    }
    for (int i = 0; i < size; ++i) {
        for (int port = 0; port < processes[i].count; ++port) {
            bool any = false;

            if (shown_before(i, port)) {
                continue;
            }
            for (int k = 0; k < changes[i].count; ++k) {
                if (port == changes[i].changes[k].port) {
                    print_change(i, port, changes[i].changes[k].counter, changes[i].changes[k].by);
                    any = true;
                }
            }
            if (!info_json && !any) {
                printf("%-12.12s %-9s %s\n", processes[i].host, processes[i].ports[port].name,
                       0 < changes[i].available[port] ? "none has grown" : "not available");
            }
        }
    }
    if (info_json) {
        info_json_close(']');
    }
}

/* ------------------------------------------------------------------------------------------- *
 * The whole
 * ------------------------------------------------------------------------------------------- */

static void read_counters(info_counters_t *counters, changes_t *changes)
{
    for (int i = 0; i < processes[rank].count; ++i) {
        changes->available[i] = info_counters_of(processes[rank].ports[i].name, &counters[i]);
    }
}

static void note_changes(const info_counters_t *before, const info_counters_t *after,
                         changes_t *changes)
{
    for (int port = 0; port < processes[rank].count; ++port) {
        for (int i = 0; i < INFO_COUNTERS && CHANGES_MAX > changes->count; ++i) {
            long long by = info_counters_growth(&before[port], &after[port], i);

            if (0 < by) {
                changes->changes[changes->count].port = port;
                changes->changes[changes->count].counter = i;
                changes->changes[changes->count++].by = by;
            }
        }
    }
}

/** All pairs, one after the other. @return the number of directions that failed, at rank 0 */
static int test_all(double seconds, int *tested)
{
    row_t *rows = calloc(2 * PORTS_MAX, sizeof(*rows));
    int failed = 0;

    *tested = 0;
    if (NULL == rows) {
        MPI_Abort(MPI_COMM_WORLD, INFO_BROKEN);
        return 0;
    }
    for (int a = 0; a < size; ++a) {
        for (int b = a + 1; b < size; ++b) {
            int count = 0;

            if (!wanted(a, b)) {
                continue;
            }
            if (rank == a || rank == b) {
                count = test_pair(rank == a ? b : a, seconds, rows);
            }
            if (rank == a && 0 != a) {
                MPI_Send(&count, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
                MPI_Send(rows, count * (int) sizeof(*rows), MPI_BYTE, 0, 2, MPI_COMM_WORLD);
            } else if (0 == rank && 0 != a) {
                MPI_Recv(&count, 1, MPI_INT, a, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                MPI_Recv(rows, count * (int) sizeof(*rows), MPI_BYTE, a, 2, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
            }
            for (int i = 0; 0 == rank && i < count; ++i) {
                print_row(&rows[i]);
                failed += '\0' == rows[i].traffic.why[0] ? 0 : 1;
                ++*tested;
            }
            /* Nothing else is on the network during a test. */
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
    free(rows);
    return failed;
}

static void print_head(int gpu, bool software)
{
    char memory[32] = "system memory";

    if (0 <= gpu) {
        snprintf(memory, sizeof(memory), "memory of GPU %d", gpu);
    }
    if (info_json) {
        info_json_open(NULL, '{');
        info_json_text("umrddt", UMRDDT_VERSION);
        info_json_bool("software_hca", software);
        info_json_number("processes", size);
        info_json_text("memory", memory);
        return;
    }
    printf("umrddt %s: lanes between %d processes, %s\n", UMRDDT_VERSION, size, memory);
    if (software) {
        printf("This is the software ConnectX of umrddt_sim: the output does not describe a real "
               "HCA.\n");
    }
}

/** With the HCAs open. @return the exit status */
static int run(int gpu, double seconds, bool software)
{
    info_counters_t before[PORTS_MAX], after[PORTS_MAX];
    changes_t mine, *all = calloc((size_t) size, sizeof(*all));
    int failed, tested;

    if (NULL == all) {
        MPI_Abort(MPI_COMM_WORLD, INFO_BROKEN);
    }
    memset(&mine, 0, sizeof(mine));
    read_counters(before, &mine);
    if (0 == rank) {
        print_head(gpu, software);
        print_ports();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    failed = test_all(seconds, &tested);
    read_counters(after, &mine);
    note_changes(before, after, &mine);
    MPI_Gather(&mine, (int) sizeof(mine), MPI_BYTE, all, (int) sizeof(mine), MPI_BYTE, 0,
               MPI_COMM_WORLD);
    if (0 == rank) {
        if (info_json) {
            info_json_close(']');
        }
        print_counters(all);
        if (info_json) {
            info_json_bool("all_work", 0 == failed && 0 < tested);
            info_json_close('}');
        } else {
            printf("\n%d of %d directions work\n", tested - failed, tested);
        }
        fflush(stdout);
        failed += 0 == tested ? 1 : 0;
    }
    free(all);
    MPI_Bcast(&failed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return 0 == failed ? INFO_USABLE : INFO_UNUSABLE;
}

/** Print the texts of all processes but rank 0. */
static void print_texts(FILE *text)
{
    long length = 0;
    char *bytes;

    if (0 != rank) {
        (void) fseek(text, 0, SEEK_END);
        length = ftell(text);
        length = 0 > length || INT_MAX < length ? 0 : length;
    }
    for (int i = 1; i < size; ++i) {
        if (rank != i && 0 != rank) {
            continue;
        }
        if (0 == rank) {
            MPI_Recv(&length, 1, MPI_LONG, i, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        bytes = malloc((size_t) length + 1);
        if (NULL == bytes) {
            MPI_Abort(MPI_COMM_WORLD, INFO_BROKEN);
            return;
        }
        if (0 == rank) {
            MPI_Recv(bytes, (int) length, MPI_BYTE, i, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            fwrite(bytes, 1, (size_t) length, stdout);
        } else {
            rewind(text);
            length = (long) fread(bytes, 1, (size_t) length, text);
            MPI_Send(&length, 1, MPI_LONG, 0, 3, MPI_COMM_WORLD);
            MPI_Send(bytes, (int) length, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
        }
        free(bytes);
    }
    fflush(stdout);
}

int info_pair(int gpu, double seconds, bool software, FILE *text)
{
    int status = INFO_BROKEN, ok;

    prepare();
    if (MPI_SUCCESS != MPI_Init(NULL, NULL)) {
        return INFO_BROKEN;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (2 > size) {
        fprintf(stderr, "umrddt_info: --pair needs two or more processes:\n"
                        "    mpirun -n 2 --host A,B umrddt_info --pair\n");
        MPI_Finalize();
        return INFO_USAGE;
    }
    if (NULL != text) {
        /* Before what may fail at one of the nodes. */
        print_texts(text);
    }
    hca = info_hca_open();
    ok = NULL != hca;
    MPI_Allreduce(MPI_IN_PLACE, &ok, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (ok) {
        ok = start(gpu);
        MPI_Allreduce(MPI_IN_PLACE, &ok, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        if (ok) {
            status = run(gpu, seconds, software);
        }
        if (0 < processes[rank].count) {
            hca->fini();
        }
        free(processes);
    }
    info_hca_close();
    MPI_Finalize();
    return status;
}
