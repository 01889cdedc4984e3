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
 * Tests that a device refuses old keys raise an error of the device each: its counters of access
 * errors grow, which operators watch. So they run once a boot, device and firmware. The stamp is an
 * empty file in memory (/dev/shm), with all of these in its name.
 */

#include "opal_config.h"

#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "opal/mca/btl/umr/btl_umr.h"
#include "opal/mca/btl/umr/btl_umr_stamp.h"
#include "opal/mca/btl/umr/btl_umr_topology.h"

#define DIRECTORY "/dev/shm"

/* Incremented when the tests change. */
#define TESTS 1

static void name_of(const mca_btl_umr_hca_t *hca, mca_btl_umr_stamp_t *stamp)
{
    char boot[64] = "", firmware[sizeof(hca->device.attr.fw_ver)];
    const mca_btl_umr_tier_t *tiers = hca->caps.tiers;
    int used;

    (void) mca_btl_umr_topology_read("/proc/sys/kernel/random", "boot_id", boot, sizeof(boot));
    memcpy(firmware, hca->device.attr.fw_ver, sizeof(firmware));
    firmware[sizeof(firmware) - 1] = '\0';
    used = snprintf(
        stamp->path, sizeof(stamp->path),
        DIRECTORY "/umrddt-selftest%d-%u-%016llx-%s-%u%d%d%d%d-%s", TESTS, (unsigned int) geteuid(),
        (unsigned long long) be64toh(hca->device.attr.node_guid), firmware, hca->mkeys.entries,
        tiers[MCA_BTL_UMR_LONG].usable, tiers[MCA_BTL_UMR_STRIDED].usable,
        tiers[MCA_BTL_UMR_NESTED].usable, hca->device.update_tag, boot);
    /* A GUID of 0 names no device: two devices would share the stamp. */
    if (0 == hca->device.attr.node_guid || '\0' == boot[0] || NULL != strchr(firmware, '/')
        || NULL != strchr(boot, '/') || 0 > used || sizeof(stamp->path) <= (size_t) used) {
        stamp->path[0] = '\0';
    }
}

bool mca_btl_umr_stamp_find(const mca_btl_umr_hca_t *hca, mca_btl_umr_stamp_t *stamp)
{
    struct stat file;
    bool found;
    int fd;

    name_of(hca, stamp);
    if ('\0' == stamp->path[0]) {
        return false;
    }
    /* Anybody can create files in the directory. Only what this module writes proves something. */
    fd = open(stamp->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (0 > fd) {
        return false;
    }
    found = 0 == fstat(fd, &file) && S_ISREG(file.st_mode) && geteuid() == file.st_uid
            && 0 == (file.st_mode & (S_IRWXG | S_IRWXO)) && 1 == file.st_nlink && 0 == file.st_size;
    (void) close(fd);
    return found;
}

void mca_btl_umr_stamp_set(const mca_btl_umr_hca_t *hca, const mca_btl_umr_stamp_t *stamp)
{
    mca_btl_umr_stamp_t now;
    int fd;

    name_of(hca, &now);
    if ('\0' != now.path[0] && 0 == strcmp(now.path, stamp->path)) {
        fd = open(now.path, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (0 <= fd) {
            (void) close(fd);
        }
    }
}
