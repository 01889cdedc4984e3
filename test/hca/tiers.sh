#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# The capacity of one key: each tier, its edges, and HCAs that lack it or implement it wrongly.

OWN_DEVICES=1
. "${srcdir:-.}/common.sh"

tiers "all" "" "" "" "long,strided,nested" list_lengths vector_4096 strided_edges \
    random_vectors many_lists random_layouts
tiers "everything late" delay=300 "" "" "long,strided,nested" many_lists
tiers "memory for one list" "" "--mca btl_umr_list_bytes 65536" "" "long,strided,nested" many_lists
tiers "4 entries in a work request" max_sq_desc=256 "" "" "long,strided,nested" vector_4096 random_vectors random_layouts
tiers "lists of 128" log_max_klm=7 "" "" "long,strided,nested" random_layouts
tiers "lists of 300" "" "--mca btl_umr_long_entries 300" "" "long,strided,nested" random_layouts
tiers "4 long mkeys" "" "--mca btl_umr_long_mkeys 4" "" "long,strided,nested" long_budget random_layouts
tiers "long mkeys of changing sizes" delay=20000 "--mca btl_umr_long_mkeys 2" "" "long,strided,nested" long_retired
tiers "4 mkeys from the device" mkeys=12 "--mca btl_umr_mkeys 8 --mca btl_umr_mkeys_max 8" "" "long,strided,nested" random_layouts

echo "== work requests of lists in memory, byte by byte"
"$limit" --part 100 umrddt_sim ./test_wqe || failures=$((failures + 1))

# Without.
tiers "no long lists" "" "--mca btl_umr_long_entries 0" "" "!long:btl_umr_long_entries,strided,nested" vector_4096 \
    random_layouts
tiers "not strided" "" "--mca btl_umr_strided 0" "" "long,!strided:btl_umr_strided,nested" vector_4096 random_vectors
tiers "none" "" "--mca btl_umr_long_entries 0 --mca btl_umr_strided 0 --mca btl_umr_nested 0" "" "!long:0,!strided:0,!nested:0" \
    random_vectors random_layouts
tiers "not proven" "" "--mca btl_umr_selftest 0" "" "!long:not tested,!strided:not tested,!nested:not tested" random_layouts
tiers "no longer lists in memory" log_max_klm=5 "" "" "!long:longer,strided,nested" random_layouts
tiers "4 entries in all" log_max_klm=2 "" "" "!long:longer,strided,nested" random_layouts random_vectors
tiers "no raw work requests" "" "" raw "!long:RAW_WQE,strided,nested" random_layouts
tiers "wrong lists" "" "" long "!long:wrong bytes,strided,nested" random_layouts
tiers "wrong strides" "" "" strided "long,!strided:the self-test,nested" vector_4096 random_vectors
finish
