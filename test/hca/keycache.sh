#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# Cached keysets that stay mapped: hits, bounds, and eviction with their memory.

. "${srcdir:-.}/common.sh"

hca "kept keysets" "" "" cached_found
hca "kept keysets, everything late" delay=300 "" cached_found
hca "2 kept keysets" "" "--mca btl_umr_key_cache 2" cached_bound
hca "8 mkeys" "" "--mca btl_umr_mkeys_max 8 --mca btl_umr_mkeys 8" cached_gives_way
hca "memory that goes" "" "" cached_unmapped
hca "memory that goes unseen" "" "--mca mpi_leave_pinned 0" cached_unhooked
hca "found" "" "" lookup_found lookup_unmapped
hca "memory that goes from under cached keys" "" "--mca btl_umr_reg_cache_size 262144" lookup_evicted lookup_gap_unmapped
hca "a key of a keyset that gave way" "" "--mca btl_umr_key_cache 1" cached_stale_evicted
hca "a key of memory that went" "" "" cached_stale_unmapped
finish
