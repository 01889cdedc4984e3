#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# Several threads use the HCA at once.

. "${srcdir:-.}/common.sh"

HCA_THREADS=1
export HCA_THREADS
hca "threads" "" "" many_threads random_layouts
hca "threads, send queue of 8, everything late" delay=200 "--mca btl_umr_sq_depth 8" many_threads
hca "threads, a pool that grows meanwhile" "" "--mca btl_umr_mkeys 2 --mca btl_umr_mkeys_step 1" many_threads many_mappings
hca "one thread of many" "" "" plain_keys many_puts many_mappings fin_credits
finish
