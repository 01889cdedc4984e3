#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# Keys: budgets, queues, and the refusal of old ones.

. "${srcdir:-.}/common.sh"

hca "8 mkeys" "" "--mca btl_umr_mkeys_max 8 --mca btl_umr_mkeys 2 --mca btl_umr_mkeys_step 1" budgets
hca "8 mkeys, no more from the device" mkeys=8 "--mca btl_umr_mkeys 4" budgets random_layouts
hca "queues" "" "" many_mappings bad_ranges
hca "queues, everything late" delay=300 "" many_mappings
hca "a released key" "" "" stale_released
hca "a key mapped again" "" "--mca btl_umr_mkeys_max 16" stale_remapped
hca "a released key of one piece" "" "--mca btl_umr_plain_keys 0" stale_contiguous
hca "a released key of a long list" "" "" stale_long
hca "a local key" "" "" stale_local
finish
