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
 * Selection of devices, ports and GIDs.
 */

#include "opal_config.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "opal/util/argv.h"
#include "opal/util/output.h"
#include "opal/util/proc.h"

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_device.h"
#include "umrddt_help.h"

/** Split "NAME:PORT"; false if the text has another form. */
static bool parse_name(const char *text, char *name, size_t size, uint8_t *port)
{
    const char *colon = strchr(text, ':');
    size_t length = NULL == colon ? strlen(text) : (size_t) (colon - text);

    *port = 0;
    if (0 == length || length >= size) {
        return false;
    }
    memcpy(name, text, length);
    name[length] = '\0';
    if (NULL != colon) {
        char *end;
        unsigned long number = strtoul(colon + 1, &end, 10);

        if (end == colon + 1 || '\0' != *end || 0 == number || 254 < number) {
            return false;
        }
        *port = (uint8_t) number;
    }
    return true;
}

/** The candidates found so far. */
typedef struct candidates_t {
    struct ibv_device **list;
    int count; /**< entries of the device list */
    mca_btl_umr_candidate_t *found;
    int used, room; /**< of those found */
} candidates_t;

/** Add a candidate unless it is in the list. @return false: out of memory */
static bool add(candidates_t *all, struct ibv_device *device, uint8_t port, bool down)
{
    for (int i = 0; i < all->used; ++i) {
        if (all->found[i].device == device && all->found[i].port == port) {
            return true;
        }
    }
    if (all->used == all->room) {
        int room = 0 == all->room ? 8 : 2 * all->room;
        mca_btl_umr_candidate_t *found = realloc(all->found, (size_t) room * sizeof(*found));

        if (NULL == found) {
            return false;
        }
        all->found = found;
        all->room = room;
    }
    all->found[all->used++] = (mca_btl_umr_candidate_t){
        .device = device, .port = port, .distance = MCA_BTL_UMR_FAR, .down = down};
    return true;
}

/** True if the kernel lists the port. @p down: it is listed as not active. */
static bool port_listed(const struct ibv_device *device, unsigned int port, bool *down)
{
    char path[IBV_SYSFS_PATH_MAX + 32], line[64] = "";
    FILE *file;

    snprintf(path, sizeof(path), "%s/ports/%u", device->ibdev_path, port);
    if (0 != access(path, F_OK)) {
        return false;
    }
    snprintf(path, sizeof(path), "%s/ports/%u/state", device->ibdev_path, port);
    file = fopen(path, "r");
    *down = false;
    if (NULL != file) {
        /* "4: ACTIVE" */
        *down = NULL != fgets(line, sizeof(line), file) && IBV_PORT_ACTIVE != atoi(line);
        fclose(file);
    }
    return true;
}

/**
 * Add the active ports of a device. A device without one is added too, so that an error is
 * reported.
 */
static bool add_ports(candidates_t *all, struct ibv_device *device)
{
    unsigned int port = 1;
    bool down, any = false;

    for (; 254 >= port && port_listed(device, port, &down); ++port) {
        if (!down && !add(all, device, (uint8_t) port, false)) {
            return false;
        }
        any = any || !down;
    }
    return any || add(all, device, 0, 1 < port);
}

/** Report that no device has this name. */
static void report_missing(const candidates_t *all, const char *name)
{
    char there[512] = "";

    for (int i = 0; i < all->count; ++i) {
        size_t used = strlen(there);

        snprintf(there + used, sizeof(there) - used, "%s%s", 0 == used ? "" : ", ",
                 ibv_get_device_name(all->list[i]));
    }
    opal_show_help("help-btl-umr.txt", "no such device", true, opal_process_info.nodename, name,
                   '\0' == there[0] ? "none" : there);
}

/**
 * Add the devices that one name of btl_umr_device selects, of any vendor. Devices other than mlx5
 * can only do writes without mkeys.
 *
 * @return false: none
 */
static bool add_named(candidates_t *all, const char *text)
{
    char name[64];
    uint8_t port = 0;
    bool down = false;

    if (parse_name(text, name, sizeof(name), &port)) {
        for (int i = 0; i < all->count; ++i) {
            if (0 == strcmp(name, ibv_get_device_name(all->list[i]))) {
                if (0 == port) {
                    return add_ports(all, all->list[i]);
                }
                (void) port_listed(all->list[i], port, &down);
                return add(all, all->list[i], port, down);
            }
        }
    }
    return false;
}

/** Add the devices that the user named; a message if one of them does not exist. */
static void add_all_named(candidates_t *all)
{
    char **names = opal_argv_split(mca_btl_umr_params.device, ',');
    const char *missing = NULL;

    for (int i = 0; NULL != names && NULL != names[i]; ++i) {
        if (!add_named(all, names[i]) && NULL == missing) {
            missing = names[i];
        }
    }
    if (0 == all->used) {
        mca_btl_umr_refuse("no RDMA device named \"%s\"", mca_btl_umr_params.device);
        missing = mca_btl_umr_params.device;
    }
    if (NULL != missing) {
        report_missing(all, missing);
    }
    opal_argv_free(names);
}

/** Compares devices by name, numbers in names by value. */
static int by_name(const void *a, const void *b)
{
    return strverscmp(ibv_get_device_name(*(struct ibv_device *const *) a),
                      ibv_get_device_name(*(struct ibv_device *const *) b));
}

bool mca_btl_umr_device_named(void)
{
    return NULL != mca_btl_umr_params.device && '\0' != mca_btl_umr_params.device[0];
}

int mca_btl_umr_device_candidates(struct ibv_device ***list, mca_btl_umr_candidate_t **candidates)
{
    candidates_t all = {.count = 0};

    *list = all.list = ibv_get_device_list(&all.count);
    if (NULL == all.list || 0 >= all.count) {
        mca_btl_umr_refuse("no RDMA device");
        all.count = 0;
    } else {
        /* libibverbs returns them in directory order, which differs between machines. */
        qsort(all.list, (size_t) all.count, sizeof(*all.list), by_name);
    }
    if (mca_btl_umr_device_named()) {
        add_all_named(&all);
    } else {
        for (int i = 0; i < all.count; ++i) {
            if (mlx5dv_is_supported(all.list[i])) {
                (void) add_ports(&all, all.list[i]);
            }
        }
        if (0 == all.used && 0 < all.count) {
            mca_btl_umr_refuse("no mlx5 device");
        }
    }
    *candidates = all.found;
    return all.used;
}

/** The entry of an Ethernet port that others reach best; 0: none. RoCE v2 first. */
static int rank_of(mca_btl_umr_device_t *device, int index, struct ibv_gid_entry *entry)
{
    int kind;

    memset(entry, 0, sizeof(*entry));
    if (0 != ibv_query_gid_ex(device->context, device->port, (uint32_t) index, entry, 0)) {
        return 0;
    }
    kind = mca_btl_umr_gid_kind(&entry->gid);
    return MCA_BTL_UMR_GID_NONE == kind              ? 0
           : IBV_GID_TYPE_ROCE_V2 == entry->gid_type ? 8 + kind
                                                     : kind;
}

/** Select the GID that peers send to; see the help text of btl_umr_gid_index. */
static int choose_gid(mca_btl_umr_device_t *device)
{
    bool ethernet = IBV_LINK_LAYER_ETHERNET == device->port_attr.link_layer;
    int wanted = mca_btl_umr_params.gid_index, best_rank = 0;

    if (!ethernet) {
        device->gid_index = (uint8_t) (0 > wanted ? 0 : wanted);
        if (0 != ibv_query_gid(device->context, device->port, device->gid_index, &device->gid)) {
            if (0 <= wanted) {
                mca_btl_umr_refuse("%s: GID %d cannot be read: %s", device->name, wanted,
                                   strerror(errno));
                return OPAL_ERR_NOT_AVAILABLE;
            }
            memset(&device->gid, 0, sizeof(device->gid));
        }
        return OPAL_SUCCESS;
    }
    for (int i = 0 > wanted ? 0 : wanted; i < device->port_attr.gid_tbl_len && 256 > i; ++i) {
        struct ibv_gid_entry entry;
        int rank = rank_of(device, i, &entry);

        if (rank > best_rank) {
            best_rank = rank;
            device->gid_index = (uint8_t) i;
            device->gid = entry.gid;
            device->roce_v1 = IBV_GID_TYPE_ROCE_V2 != entry.gid_type;
        }
        if (0 <= wanted) {
            break;
        }
    }
    if (0 == best_rank && 0 <= wanted) {
        mca_btl_umr_refuse("%s: GID %d is no address", device->name, wanted);
    } else if (0 == best_rank) {
        mca_btl_umr_refuse("%s: no GID is an address", device->name);
    }
    return 0 == best_rank ? OPAL_ERR_NOT_AVAILABLE : OPAL_SUCCESS;
}

/**
 * Select the partition: that of btl_umr_pkey, or the first in which the port is a full member. RoCE
 * has the default partition only.
 */
static int choose_pkey(mca_btl_umr_device_t *device)
{
    int wanted = mca_btl_umr_params.pkey;
    bool found = false;

    if (0 <= wanted && IBV_LINK_LAYER_ETHERNET == device->port_attr.link_layer) {
        MCA_BTL_UMR_VERBOSE(SETUP, "%s: btl_umr_pkey is ignored: Ethernet has no partitions",
                            device->name);
        wanted = -1;
    }
    for (int i = 0; i < device->port_attr.pkey_tbl_len; ++i) {
        __be16 entry;
        uint16_t pkey;

        if (0 != ibv_query_pkey(device->context, device->port, i, &entry)) {
            continue;
        }
        pkey = be16toh(entry);
        if (0 == (pkey & MCA_BTL_UMR_PKEY_NUMBER)
            || (0 <= wanted && 0 != ((pkey ^ wanted) & MCA_BTL_UMR_PKEY_NUMBER))
            || (found && 0 == (pkey & MCA_BTL_UMR_PKEY_FULL))) {
            continue;
        }
        found = true;
        device->pkey = pkey;
        device->pkey_index = (uint16_t) i;
        if (0 != (pkey & MCA_BTL_UMR_PKEY_FULL)) {
            return OPAL_SUCCESS;
        }
    }
    if (!found && 0 <= wanted) {
        mca_btl_umr_refuse("%s is not in the partition 0x%04x (btl_umr_pkey)", device->name,
                           (unsigned int) wanted);
        return OPAL_ERR_NOT_AVAILABLE;
    }
    if (!found) {
        device->pkey = MCA_BTL_UMR_PKEY_FULL | MCA_BTL_UMR_PKEY_NUMBER; /* not reported */
    }
    return OPAL_SUCCESS;
}

/** The class of service of what this port sends. */
static void choose_class(mca_btl_umr_device_t *device)
{
    bool roce_v2 = IBV_LINK_LAYER_ETHERNET == device->port_attr.link_layer && !device->roce_v1;

    device->service_level = (uint8_t) mca_btl_umr_params.service_level;
    device->traffic_class =
        (uint8_t) (0 <= mca_btl_umr_params.traffic_class ? mca_btl_umr_params.traffic_class
                   : roce_v2                             ? MCA_BTL_UMR_ROCE_TRAFFIC_CLASS
                                                         : 0);
}

/** The named port, or the first active one. */
static int choose_port(mca_btl_umr_device_t *device, uint8_t port)
{
    uint8_t first = 0 == port ? 1 : port;
    uint8_t last = 0 == port ? device->attr.phys_port_cnt : port;

    if (port > device->attr.phys_port_cnt) {
        mca_btl_umr_refuse("%s has no port %u", device->name, port);
        return OPAL_ERR_NOT_AVAILABLE;
    }
    for (unsigned int i = first; i <= last; ++i) {
        int err = ibv_query_port(device->context, (uint8_t) i, &device->port_attr);

        if (0 == err && IBV_PORT_ACTIVE == device->port_attr.state) {
            size_t used = strlen(device->name);

            device->port = (uint8_t) i;
            snprintf(device->name + used, sizeof(device->name) - used, ":%u", i);
            return OPAL_SUCCESS;
        }
    }
    mca_btl_umr_refuse("%s has no active port", device->name);
    return OPAL_ERR_NOT_AVAILABLE;
}

/* Layout of the firmware command QUERY_HCA_CAP and its answer for general capabilities. */
#define MCA_BTL_UMR_QUERY_HCA_CAP 0x100
#define MCA_BTL_UMR_CAP_HEAD      16 /* bytes before the capabilities */
#define MCA_BTL_UMR_CAP_BYTES     4096
#define MCA_BTL_UMR_CAP_BIT_DEPTH 0x100 /* max_indirection, 8 bits */
#define MCA_BTL_UMR_CAP_BIT_KLM   0x11a /* log_max_klm_list_size, 6 bits */

/** Read @p width bits from @p bit on, counted from the most significant bit of the first byte. */
static uint32_t cap_bits(const uint8_t *caps, unsigned int bit, unsigned int width)
{
    uint32_t value = 0;

    for (unsigned int i = bit; i < bit + width; ++i) {
        value = value << 1 | (caps[i / 8] >> (7 - i % 8) & 1);
    }
    return value;
}

/**
 * Query capabilities that only the firmware reports. If the query fails, features that depend on
 * them are disabled.
 */
static void query_firmware(mca_btl_umr_device_t *device)
{
    uint8_t in[MCA_BTL_UMR_CAP_HEAD] = {[0] = MCA_BTL_UMR_QUERY_HCA_CAP >> 8, [7] = 1};
    uint8_t out[MCA_BTL_UMR_CAP_HEAD + MCA_BTL_UMR_CAP_BYTES] = {0};
    uint32_t log;

    if (!device->mlx5) {
        device->caps_error = EOPNOTSUPP;
        return;
    }
    device->caps_error = mlx5dv_devx_general_cmd(device->context, in, sizeof(in), out, sizeof(out));
    if (0 == device->caps_error) {
        log = cap_bits(out + MCA_BTL_UMR_CAP_HEAD, MCA_BTL_UMR_CAP_BIT_KLM, 6);
        device->max_list = 1u << (31 < log ? 31 : log);
        device->max_depth = cap_bits(out + MCA_BTL_UMR_CAP_HEAD, MCA_BTL_UMR_CAP_BIT_DEPTH, 8);
    }
}

/** Since 5.12 Linux copies all pages that a device may use for the child of a fork. */
static bool kernel_copies(void)
{
    struct utsname name;
    int major, minor;

    return 0 == uname(&name) && 2 == sscanf(name.release, "%d.%d", &major, &minor)
           && (5 < major || (5 == major && 12 <= minor));
}

int mca_btl_umr_device_fork(void)
{
    int wanted = mca_btl_umr_params.fork_support, err;

    if (0 == wanted || (0 > wanted && kernel_copies())) {
        return OPAL_SUCCESS;
    }
    /*
     * Where an older kernel of a distribution copies too, libibverbs detects it and does nothing.
     */
    err = ibv_fork_init();
    if (0 == err) {
        return OPAL_SUCCESS;
    }
    if (0 < wanted) {
        mca_btl_umr_refuse("btl_umr_fork_support: ibv_fork_init failed: %s", strerror(err));
        return OPAL_ERR_NOT_AVAILABLE;
    }
    opal_show_help("help-btl-umr.txt", "fork", true, opal_process_info.nodename, strerror(err));
    return OPAL_SUCCESS;
}

int mca_btl_umr_device_open(const mca_btl_umr_candidate_t *candidate, mca_btl_umr_device_t *device)
{
    struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
    bool mlx5 = mlx5dv_is_supported(candidate->device);
    int err;

    memset(device, 0, sizeof(*device));
    device->at_gpu = candidate->at_gpu;
    device->rate = candidate->rate;
    snprintf(device->name, sizeof(device->name) - 8, "%s", ibv_get_device_name(candidate->device));

    device->mlx5 = mlx5;
    device->context =
        mlx5 ? mlx5dv_open_device(candidate->device, &attr) : ibv_open_device(candidate->device);
    if (mlx5 && NULL == device->context) {
        device->context = ibv_open_device(candidate->device);
        device->no_devx = true;
    }
    if (NULL == device->context) {
        mca_btl_umr_refuse("%s cannot be opened: %s", device->name, strerror(errno));
        return OPAL_ERR_NOT_AVAILABLE;
    }
    err = ibv_query_device(device->context, &device->attr);
    if (0 != err) {
        mca_btl_umr_refuse("%s cannot be queried: %s", device->name, strerror(err));
        goto fail;
    }
    mca_btl_umr_topology_device(candidate->device, device);
    /*
     * The library of Soft-RoCE assumes that all pieces are as long as the first one (rdma-core
     * until 2026, ibv_wr_set_sge_list), so bytes are lost silently. Other libraries may have the
     * same defect.
     */
    device->max_pieces = mlx5 && 1 < device->attr.max_sge ? (uint32_t) device->attr.max_sge : 1;
    query_firmware(device);
    if (OPAL_SUCCESS != choose_port(device, candidate->port) || OPAL_SUCCESS != choose_gid(device)
        || OPAL_SUCCESS != choose_pkey(device)) {
        goto fail;
    }
    choose_class(device);
    device->max_message = device->port_attr.max_msg_sz;
    if (0 == device->max_message || (1u << 30) < device->max_message) {
        device->max_message = 1u << 30;
    }
    device->pd = ibv_alloc_pd(device->context);
    if (NULL == device->pd) {
        mca_btl_umr_refuse("%s: no protection domain: %s", device->name, strerror(errno));
        goto fail;
    }
    return OPAL_SUCCESS;

fail:
    mca_btl_umr_device_close(device);
    return OPAL_ERR_NOT_AVAILABLE;
}

void mca_btl_umr_device_close(mca_btl_umr_device_t *device)
{
    int err;

    if (NULL != device->pd) {
        err = ibv_dealloc_pd(device->pd);
        if (0 != err) {
            opal_output(0, "btl:umr: %s: the protection domain cannot be freed: %s", device->name,
                        strerror(err));
        }
        device->pd = NULL;
    }
    if (NULL != device->context) {
        if (0 != ibv_close_device(device->context)) {
            opal_output(0, "btl:umr: %s: the device cannot be closed: %s", device->name,
                        strerror(errno));
        }
        device->context = NULL;
    }
}
