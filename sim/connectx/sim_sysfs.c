/*
 * Copyright (c) 2026      The umrddt authors. All rights reserved.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * $HEADER$
 */

#include "sim_sysfs.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim_here.h"

/* Changes whenever the contents change, so that an old tree is never taken for a new one. */
#define TREE_VERSION 7

/* Bytes of the tree's path, at most. */
#define LONGEST 160

/* A number that differs between trees of different contents. */
static uint64_t hash_of(const struct sim_conf *conf)
{
    uint64_t hash = 14695981039346656037ULL;
    char text[128];
    int d, i;

#define ADD(...)                                                   \
    do {                                                           \
        int n = snprintf(text, sizeof(text), __VA_ARGS__);         \
                                                                   \
        for (int at = 0; at < n; at++) {                           \
            hash = (hash ^ (uint8_t) text[at]) * 1099511628211ULL; \
        }                                                          \
    } while (0)
    ADD("%d %d %d %d %s", conf->devices, conf->nodes, conf->switches, conf->down,
        NULL == conf->machine ? "" : conf->machine->name);
    for (d = 0; d < conf->devices; d++) {
        const struct sim_port *port = &conf->ports[d];

        ADD(" %d %d %d %d %d", port->eth, port->speed, port->width, port->fabric, port->prefix);
        for (i = 0; i < port->gids; i++) {
            ADD(" %d", port->gid[i]);
        }
        for (i = 0; i < port->pkeys; i++) {
            ADD(" p%d", port->pkey[i]);
        }
    }
#undef ADD
    return hash;
}

int sim_sysfs_path(const struct sim_conf *conf, char *path, size_t size)
{
    const char *dir = getenv("UMRDDT_SIM_DIR");
    char own[64];
    char where[16] = "";
    int n;

    if (NULL == dir || '\0' == *dir) {
        snprintf(own, sizeof(own), "/tmp/umrddt_sim-%u", (unsigned) geteuid());
        dir = own;
    }
    if (conf->tcp) {
        /* Hosts may share the directory. */
        snprintf(where, sizeof(where), "-%08x", conf->here);
    }
    n = snprintf(path, size, "%s/sys-%d-%016llx%s", dir, TREE_VERSION,
                 (unsigned long long) hash_of(conf), where);
    /* libibverbs has 256 bytes, including its suffix. */
    return (0 > n || (size_t) n >= size || LONGEST < n) ? -1 : 0;
}

static int make_dir(const char *path)
{
    return (0 == mkdir(path, 0700) || EEXIST == errno) ? 0 : -1;
}

/* The path of name below base, whose directories are created. */
static int path_of(const char *base, const char *name, char *path, size_t size)
{
    char *slash;
    int n;

    n = snprintf(path, size, "%s/%s", base, name);
    if (0 > n || (size_t) n >= size) {
        errno = ENAMETOOLONG;
        return -1;
    }
    for (slash = strchr(path + strlen(base) + 1, '/'); NULL != slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (0 != make_dir(path)) {
            return -1;
        }
        *slash = '/';
    }
    return 0;
}

/* Write one file below base, with the directories above it. */
__attribute__((format(printf, 3, 4))) static int put(const char *base, const char *name,
                                                     const char *format, ...)
{
    char path[PATH_MAX];
    char text[256];
    va_list args;
    int fd;
    int n;

    if (0 != path_of(base, name, path, sizeof(path))) {
        return -1;
    }
    va_start(args, format);
    n = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (0 > fd) {
        return -1;
    }
    if (n != write(fd, text, (size_t) n)) {
        close(fd);
        return -1;
    }
    return close(fd);
}

/* Make a link below base, with the directories above it. */
__attribute__((format(printf, 3, 4))) static int put_link(const char *base, const char *name,
                                                          const char *format, ...)
{
    char path[PATH_MAX];
    char to[256];
    va_list args;

    va_start(args, format);
    vsnprintf(to, sizeof(to), format, args);
    va_end(args);
    return 0 != path_of(base, name, path, sizeof(path)) ? -1 : symlink(to, path);
}

/* Where something is that no machine has a place for: with switches below one of them. */
static struct sim_place place_of(const struct sim_conf *conf, int index)
{
    return (struct sim_place){(int8_t) (0 < conf->switches ? index % conf->switches : -1), -1,
                              (int8_t) (0 < conf->nodes ? index % conf->nodes : -1)};
}

/* Its address, "0000:81:00.0", and its directory. */
static void pci_path(const struct sim_conf *conf, struct sim_place place, int bus, char address[16],
                     char *path, size_t size)
{
    if (0 <= place.slot) {
        bus += place.slot;
    }
    snprintf(address, 16, "0000:%02x:00.%d", bus & 0xff, 0 <= place.slot ? 1 : 0);
    if (0 > place.root) {
        snprintf(path, size, "devices/pci0000:%02x/%s", bus, address);
    } else if (NULL == conf->machine) {
        snprintf(path, size, "devices/pci0000:00/0000:00:%02x.0/%s", 1 + place.root, address);
    } else {
        snprintf(path, size, "devices/pci0000:%02x/0000:%02x:01.0/%s", 0x40 + place.root,
                 0x40 + place.root, address);
    }
}

/* The kernel's entry of a GPU. */
static int put_gpu(const struct sim_conf *conf, const char *base, int g)
{
    struct sim_place place = NULL == conf->machine ? place_of(conf, g) : conf->machine->gpu[g];
    char address[16];
    char pci[64];
    char name[128];
    int failed;

    pci_path(conf, place, 1 + g, address, pci, sizeof(pci));
    snprintf(name, sizeof(name), "%s/vendor", pci);
    failed = put(base, name, "0x10de\n");
    snprintf(name, sizeof(name), "%s/class", pci);
    failed |= put(base, name, "0x030200\n");
    snprintf(name, sizeof(name), "%s/numa_node", pci);
    failed |= put(base, name, "%d\n", place.node);
    snprintf(name, sizeof(name), "bus/pci/devices/%s", address);
    failed |= put_link(base, name, "../../../%s", pci);
    return failed;
}

/* The GID and pkey tables. An empty GID has no attributes. */
static int put_tables(const struct sim_conf *conf, const char *base, const char *ib, int d)
{
    const struct sim_port *port = &conf->ports[d];
    char name[160];
    int failed = 0;
    int i;

    for (i = 0; i < port->gids; i++) {
        bool v1 = SIM_GID_LINK_1 == port->gid[i] || SIM_GID_IPV4_1 == port->gid[i]
                  || SIM_GID_IPV6_1 == port->gid[i];
        uint8_t gid[16];

        sim_here_gid(conf, d, i, gid);
        snprintf(name, sizeof(name), "%s/ports/1/gids/%d", ib, i);
        failed |= put(base, name,
                      "%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x\n",
                      gid[0], gid[1], gid[2], gid[3], gid[4], gid[5], gid[6], gid[7], gid[8],
                      gid[9], gid[10], gid[11], gid[12], gid[13], gid[14], gid[15]);
        if (SIM_GID_ZERO == port->gid[i]) {
            continue;
        }
        snprintf(name, sizeof(name), "%s/ports/1/gid_attrs/types/%d", ib, i);
        failed |= put(base, name, "%s\n", port->eth && !v1 ? "RoCE v2" : "IB/RoCE v1");
        if (port->eth) {
            snprintf(name, sizeof(name), "%s/ports/1/gid_attrs/ndevs/%d", ib, i);
            failed |= put(base, name, "lo\n");
        }
    }
    for (i = 0; i < port->pkeys; i++) {
        snprintf(name, sizeof(name), "%s/ports/1/pkeys/%d", ib, i);
        failed |= put(base, name, "0x%04x\n", port->pkey[i]);
    }
    return failed;
}

/* As in the kernel: entries below "class" are links to the device on its bus. */
static int put_device(const struct sim_conf *conf, const char *base, int d)
{
    struct sim_place place = NULL == conf->machine ? place_of(conf, d) : conf->machine->device[d];
    uint64_t guid = sim_here_guid(conf, d);
    char address[16];
    char rate[64];
    char pci[64];
    char ib[96];
    char name[160];
    int failed = 0;

    pci_path(conf, place, 0 <= place.slot ? 0x80 : 0x80 + d, address, pci, sizeof(pci));
    snprintf(ib, sizeof(ib), "%s/infiniband/mlx5_%d", pci, d);
    snprintf(name, sizeof(name), "%s/modalias", pci);
    failed |= put(base, name, "pci:v000015B3d0000101Bsv000015B3sd00000000bc02sc07i00\n");
    snprintf(name, sizeof(name), "%s/vendor", pci);
    failed |= put(base, name, "0x15b3\n");
    snprintf(name, sizeof(name), "%s/device", pci);
    failed |= put(base, name, "0x101b\n");
    snprintf(name, sizeof(name), "%s/numa_node", pci);
    failed |= put(base, name, "%d\n", place.node);
    snprintf(name, sizeof(name), "bus/pci/devices/%s", address);
    failed |= put_link(base, name, "../../../%s", pci);
    snprintf(name, sizeof(name), "%s/device", ib);
    failed |= put_link(base, name, "../..");
    snprintf(name, sizeof(name), "class/infiniband/mlx5_%d", d);
    failed |= put_link(base, name, "../../%s", ib);

#define PUT(tail, ...)                                   \
    do {                                                 \
        snprintf(name, sizeof(name), "%s/%s", ib, tail); \
        failed |= put(base, name, __VA_ARGS__);          \
    } while (0)
    PUT("node_type", "1: CA\n");
    PUT("node_guid", "%04x:%04x:%04x:%04x\n", (unsigned) (guid >> 48) & 0xffff,
        (unsigned) (guid >> 32) & 0xffff, (unsigned) (guid >> 16) & 0xffff,
        (unsigned) guid & 0xffff);
    PUT("fw_ver", "20.99.0001\n");
    PUT("hca_type", "MT4123\n");
    PUT("hw_rev", "0\n");
    PUT("board_id", "UMRDDT_SIM_0001\n");
    PUT("node_desc", "software ConnectX of umrddt\n");
    PUT("ports/1/state", "%s\n", d + 1 == conf->down ? "1: DOWN" : "4: ACTIVE");
    sim_port_rate(&conf->ports[d], rate, sizeof(rate));
    PUT("ports/1/rate", "%s\n", rate);
    PUT("ports/1/link_layer", "%s\n", conf->ports[d].eth ? "Ethernet" : "InfiniBand");
#undef PUT
    failed |= put_tables(conf, base, ib, d);

    snprintf(name, sizeof(name), "class/infiniband_verbs/uverbs%d/ibdev", d);
    failed |= put(base, name, "mlx5_%d\n", d);
    snprintf(name, sizeof(name), "class/infiniband_verbs/uverbs%d/abi_version", d);
    failed |= put(base, name, "1\n");
    /* The numbers of /dev/null, which stands in for the character device. */
    snprintf(name, sizeof(name), "class/infiniband_verbs/uverbs%d/dev", d);
    failed |= put(base, name, "1:3\n");
    return failed;
}

/* The directory must be ours alone: its content controls libibverbs. */
static int check_owner(const char *path)
{
    struct stat st;

    if (0 != lstat(path, &st)) {
        return -1;
    }
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || 0 != (st.st_mode & 022)) {
        errno = EPERM;
        return -1;
    }
    return 0;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void) st;
    (void) type;
    (void) ftw;
    (void) remove(path);
    return 0;
}

/* The rest of a tree under a temporary name, if any. */
static void remove_tree(const char *path)
{
    (void) nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

int sim_sysfs_make(const struct sim_conf *conf, const char *path, char *error, size_t size)
{
    char parent[PATH_MAX];
    char work[PATH_MAX + 32];
    char name[PATH_MAX + 96];
    char *slash;
    struct stat st;
    int gpus;
    int d;

    snprintf(parent, sizeof(parent), "%s", path);
    slash = strrchr(parent, '/');
    if (NULL == slash) {
        snprintf(error, size, "bad path '%s'", path);
        return -1;
    }
    *slash = '\0';
    if (0 != make_dir(parent) || 0 != check_owner(parent)) {
        snprintf(error, size, "cannot use the directory %s: %s", parent, strerror(errno));
        return -1;
    }
    snprintf(name, sizeof(name), "%s/class/infiniband_verbs/abi_version", path);
    if (0 == stat(name, &st)) {
        return 0;
    }

    /* Created under a temporary name and renamed when complete, so no process sees a part of it. */
    snprintf(work, sizeof(work), "%s/new-%ld", parent, (long) getpid());
    if (0 != make_dir(work)) {
        goto failed;
    }
    if (0 != put(work, "class/infiniband_verbs/abi_version", "6\n")) {
        goto failed;
    }
    for (d = 0; d < conf->devices; d++) {
        if (0 != put_device(conf, work, d)) {
            goto failed;
        }
    }
    gpus = NULL != conf->machine ? conf->machine->gpus : 0 < conf->switches ? SIM_MAX_GPUS : 0;
    for (d = 0; d < gpus; d++) {
        if (0 != put_gpu(conf, work, d)) {
            goto failed;
        }
    }
    if (0 < conf->nodes
        && 0 != put(work, "devices/system/node/online", "0-%d\n", conf->nodes - 1)) {
        goto failed;
    }
    if (0 != rename(work, path) && EEXIST != errno && ENOTEMPTY != errno) {
        goto failed;
    }
    remove_tree(work);
    return 0;

failed:
    snprintf(error, size, "cannot make the device tree %s: %s", path, strerror(errno));
    remove_tree(work);
    return -1;
}
