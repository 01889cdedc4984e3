#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
#
# SPDX-License-Identifier: BSD-3-Clause
#
# $HEADER$
#
# The line that counters=1 prints: exact numbers for calls that are known.

work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
failed=0

unset CUDA_VISIBLE_DEVICES
UMRDDT_GPU=counters=1,kernels=.libs/host_kernels.so ./test_kernels counted 2> "$work/out" || failed=1
test "$(wc -l < "$work/out")" -eq 1 || failed=1
for item in calls=16 launches=2 graphs=0 copies=2 copies_2d=1 copy_bytes=4320 memsets=1 mem_ops=0 queries=1 syncs=1 allocs=2 \
    ipc_opens=0 bytes_now=4000 injected=0 cuInit=1 cuLaunchKernel=2 cuMemAlloc_v2=2 cuMemFree_v2=1; do
    if ! grep -q "^umrddt_gpu\[[0-9]*\]:.* $item\( \|$\)" "$work/out"; then
        echo "FAILED: not $item"
        failed=1
    fi
done
cat "$work/out"
UMRDDT_GPU=counters=0,kernels=.libs/host_kernels.so ./test_kernels counted 2> "$work/out" || failed=1
test ! -s "$work/out" || failed=1
exit $failed
