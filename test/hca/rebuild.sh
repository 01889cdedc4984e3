#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# Failed queue pairs are rebuilt. Few retries, so that the tests do not wait for timeouts of
# hardware.

. "${srcdir:-.}/common.sh"

few="--mca btl_umr_timeout 12 --mca btl_umr_retry_count 2"
hca "the queue pair of mappings" "" "$few --mca btl_umr_rebuilds 2" maps_rebuilt maps_outlived random_layouts
# All keys then belong to one role, and the other role needs one.
hca "the same, with many short keys" max_sq_desc=256,log_max_klm=2 "$few --mca btl_umr_long_entries 0 --mca btl_umr_strided 0 --mca btl_umr_nested 0" maps_outlived
hca "queue pairs to a peer" "" "$few" followed random_layouts
hca "with receives of their own" "" "$few --mca btl_umr_srq_depth 0" followed under_way crossed
hca "both at once, on RoCE" link=eth "$few" crossed drawn_level random_layouts
hca "with writes under way" delay=200 "$few --mca btl_umr_sq_depth 8" under_way plain_keys
hca "a peer that does not follow" "" "$few --mca btl_umr_rebuilds 2" not_followed
hca "none is wanted" "" "$few --mca btl_umr_rebuilds 0" never_rebuilt
finish
