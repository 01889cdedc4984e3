#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
#
# SPDX-License-Identifier: BSD-3-Clause
#
# $HEADER$
#
# Memory of software GPUs behind the software HCA's keys.

wrapper=${UMRDDT_SIM_WRAPPER:-../../sim/connectx/umrddt_sim}
limit=$(cd "${srcdir:-$(dirname "$0")}/.." && pwd)/limit
failed=0

# try HCA_OPTIONS GPU_OPTIONS CASE...
try() {
    hca=$1 gpu=$2
    shift 2
    echo "== UMRDDT_SIM=$hca UMRDDT_GPU=$gpu: $*"
    if ! UMRDDT_SIM=$hca UMRDDT_GPU=$gpu "$limit" --part 120 "$wrapper" --gpus 1 ./test_gpu "$@"; then
        echo "FAILED: $*"
        failed=1
    fi
}

try "" "" dmabuf address from freed refused strided
try copy=pipe "" dmabuf address from
try gpu_late=2000 "" late
try gpu_late=2000 ordering=owner ordered
try gpu_late=2000 ordering=all ordered
try gpu_late=0 "" ordered
try "" flush=0 no_flush
try dmabuf=0 "" no_dmabuf
try gpu_copies=1,gpu_late=2000 delay=50 dmabuf address from ordered strided
try gpu_copies=1,bar_bytes=50000 "" bar
try "" peermem=0 no_peermem
try bar_bytes=50000 "" bar
exit $failed
