#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# Registered memory: cached, bounded, never stale.

. "${srcdir:-.}/common.sh"

hca "kept" "" "" hits remapped_address freed_memory let_go read_only wide holes
hca "children share them, as the kernel has it" "" "--mca btl_umr_fork_support 0" left_to_children forks_between
hca "children have none of them" "" "--mca btl_umr_fork_support 1" cached_from_children forks_between remapped_address freed_memory
hca "bounded" "" "--mca btl_umr_reg_cache_size 1048576" bound wide_and_bound freed_memory let_go_and_bound
hca "bounded by the system" reg_bytes=2000000 "" freed_memory
hca "refused by the system" reg_bytes=200000 "" refused >refused.out 2>&1
cat refused.out
if grep -q 'ORTE_ERROR_LOG: .* in file .*show_help' refused.out; then
    echo "not looked at: mpirun 4.1 lost a help message, and says so"
elif [ "$(grep -c '^  Limit: .*(locked memory of a process: ulimit -l)' refused.out)" -ne 1 ]; then
    echo "FAILED: what to do is said, and once"
    failures=$((failures + 1))
fi
rm -f refused.out
hca "pieces apart" "" "--mca btl_umr_reg_gap 0" holes random_layouts
hca "not kept (mpi_leave_pinned 0)" "" "--mca mpi_leave_pinned 0" random_layouts freed_memory holes
if ompi_info | grep -q "MCA pml: ucx"; then
    HCA_HOST="--mca pml ucx --mca opal_common_ucx_tls any --mca opal_common_ucx_devices any"
    hca "beside UCX, which has memory hooks of its own" "" "" hits remapped_address freed_memory let_go read_only
fi
finish
