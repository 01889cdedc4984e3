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
 * The device tree: the few files of sysfs that libibverbs reads, in a directory that SYSFS_PATH
 * names. Its contents depend on nothing but the options and the host's address, so that all
 * processes of a user share it and a killed process leaves nothing of its own behind.
 */

#ifndef SIM_SYSFS_H
#define SIM_SYSFS_H

#include "sim_conf.h"

/**
 * The path of the tree for these options: below UMRDDT_SIM_DIR, or a directory of the user in /tmp.
 *
 * @retval 0 or -1 (the path would be too long)
 */
int sim_sysfs_path(const struct sim_conf *conf, char *path, size_t size);

/**
 * Make the tree unless it is there.
 *
 * @param[out] error  why not
 *
 * @retval 0 or -1
 */
int sim_sysfs_make(const struct sim_conf *conf, const char *path, char *error, size_t size);

#endif /* SIM_SYSFS_H */
