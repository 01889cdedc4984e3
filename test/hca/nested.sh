#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# Indirect mkeys of mkeys: content, budgets of mkeys, and HCAs that lack them or implement them
# wrongly.

OWN_DEVICES=1
. "${srcdir:-.}/common.sh"

tiers "over lists of 256" "" "--mca btl_umr_long_entries 256" "" "long,strided,nested" nested_lengths
tiers "over strides" "" "--mca btl_umr_long_entries 0" "" "!long:0,strided,nested" nested_strided random_vectors
tiers "two levels at most" max_indirection=2 "--mca btl_umr_long_entries 0" "" "!long:0,strided,nested" nested_strided
tiers "over lists in work requests" "" "--mca btl_umr_long_entries 0 --mca btl_umr_strided 0" "" "!long:0,!strided:0,nested" \
    random_layouts
tiers "4 over 4" max_sq_desc=256 "--mca btl_umr_long_entries 0 --mca btl_umr_strided 0" "" "!long:0,!strided:0,nested" \
    random_layouts
tiers "all late" delay=300 "--mca btl_umr_long_entries 0 --mca btl_umr_max_entries 5" "" "!long:0,strided,nested" random_layouts
few="--mca btl_umr_long_entries 0 --mca btl_umr_mkeys_max 8 --mca btl_umr_mkeys 8"
tiers "8 mkeys" "" "$few" "" "!long:0,strided,nested" nested_budget nested_gives_way random_layouts
tiers "given up" "" "--mca btl_umr_long_entries 256 --mca btl_umr_list_bytes 4096" "" "long,strided,nested" nested_given_up \
    nested_given_up_late
tiers "4 long mkeys" "" "--mca btl_umr_long_entries 256 --mca btl_umr_long_mkeys 4" "" "long,strided,nested" nested_long_gives_way
tiers "a released key over others" "" "--mca btl_umr_long_entries 0" "" "!long:0,strided,nested" nested_stale_over
tiers "a released key below another" "" "--mca btl_umr_long_entries 0" "" "!long:0,strided,nested" nested_stale_below

# Without nested mkeys.
tiers "not nested" "" "--mca btl_umr_nested 0" "" "long,strided,!nested:btl_umr_nested" vector_4096 random_layouts
tiers "one level" max_indirection=1 "" "" "long,strided,!nested:two levels of mkeys" random_layouts
tiers "levels not reported" max_indirection=0 "" "" "long,strided,!nested:two levels of mkeys" vector_4096
tiers "3 entries" "" "--mca btl_umr_max_entries 3 --mca btl_umr_long_entries 0" "" "!long:0,strided,!nested:too few entries" vector_4096
tiers "6 mkeys" "" "--mca btl_umr_mkeys 6 --mca btl_umr_mkeys_max 6" "" "long,strided,!nested:too few mkeys" vector_4096
tiers "wrong keys over keys" "" "" nested "long,strided,!nested:wrong bytes" vector_4096
tiers "not invalidated below another" "" "" below "long,strided,!nested:invalidated mkey within another" vector_4096
finish
