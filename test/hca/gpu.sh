#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# Memory of software GPUs: what is registered and what is not, and when writes are visible.

. "${srcdir:-.}/common.sh"

HCA_SIM="--gpus 2"
UMRDDT_TEST_FLUSH=call
export UMRDDT_TEST_FLUSH

# said TITLE TEXT: checks the output of the last run of hca: each of the two processes says it at most once. mpirun shows
# equal messages once, except that of 6.0 if they come at the same time.
said() {
    cat gpu.out
    times=$(grep -c "$2" gpu.out)
    if grep -q 'ORTE_ERROR_LOG: .* in file .*show_help' gpu.out; then
        echo "not looked at: mpirun 4.1 lost a help message, and says so"
    elif [ "$times" -lt 1 ] || [ "$times" -gt 2 ]; then
        echo "FAILED: $1: $times times: $2"
        failures=$((failures + 1))
    fi
    rm -f gpu.out
}

hca "by dma-buf" "" "" gpu_pairs gpu_hits gpu_realloc gpu_others gpu_flushed
hca "by dma-buf, slow" delay=300,seed=5 "" gpu_pairs gpu_realloc
UMRDDT_GPU=peermem=0
export UMRDDT_GPU
hca "by dma-buf alone" "" "" gpu_pairs gpu_hits gpu_realloc
UMRDDT_GPU=dmabuf=0
hca "the driver has no dma-bufs: by address" "" "" gpu_pairs gpu_hits gpu_realloc gpu_others
UMRDDT_GPU=
hca "the kernel has none: by address" dmabuf=0 "" gpu_pairs gpu_hits gpu_realloc
hca "not kept (mpi_leave_pinned 0)" "" "--mca mpi_leave_pinned 0" gpu_pairs gpu_hits gpu_realloc
hca "bounded" "" "--mca btl_umr_gpu_regs 4" gpu_bound gpu_pairs gpu_realloc
hca "the BAR is small" bar_bytes=60000 "" gpu_bar >gpu.out 2>&1
said "what is full" '^  Registered: .* bytes of GPU memory'
UMRDDT_GPU=peermem=0
hca "neither method" dmabuf=0 "" gpu_refused >gpu.out 2>&1
said "what is missing" '^  By dma-buf:     the kernel does not register it (ibv_reg_dmabuf_mr: Operation not supported)'
UMRDDT_GPU=peermem=0,dmabuf=0
hca "neither method, by the driver" "" "" gpu_refused >gpu.out 2>&1
said "what is missing" '^  By address:     the kernel does not register it (ibv_reg_mr: Bad address)'
hca "neither method, two HCAs" devices=2,switches=2 "" gpu_refused_near
UMRDDT_GPU=gdr=0
hca "no GPUDirect" "" "" gpu_not_capable
UMRDDT_GPU=flush=0 UMRDDT_TEST_FLUSH=read
hca "flushed by reads" gpu_late=5000 "" gpu_flushed gpu_pairs
UMRDDT_GPU=
hca "flushed by reads, as wanted" gpu_late=5000 "--mca btl_umr_gpu_flush 2" gpu_flushed gpu_pairs
UMRDDT_GPU=dmabuf=0
hca "a read that flushes, as wanted, fails" "" "--mca btl_umr_gpu_flush 2" gpu_unflushable
UMRDDT_GPU=dmabuf=0,flush=0
hca "a read that flushes fails" "" "" gpu_unflushable
UMRDDT_GPU=
UMRDDT_TEST_FLUSH=call
hca "flushed by the driver" gpu_late=5000 "" gpu_flushed gpu_pairs
UMRDDT_TEST_FLUSH=none UMRDDT_GPU=ordering=all
hca "nothing to be flushed" gpu_late=5000 "" gpu_flushed gpu_pairs
UMRDDT_GPU=ordering=owner UMRDDT_TEST_FLUSH=call
hca "ordered for one of two devices" gpu_late=5000 "" gpu_flushed
UMRDDT_GPU=
hca "the GPU is gone at the end" "" "" gpu_gone

# Without flushes the receiver sees old bytes: the tests above would detect it.
echo "== without a flush the test must fail"
before=$failures
hca "not flushed" gpu_late=5000 "--mca btl_umr_gpu_flush 3" gpu_pairs >gpu.out 2>&1
if [ $failures -eq $before ] || ! grep -q 'rank .*: FAILED: ' gpu.out; then
    cat gpu.out
    echo "FAILED: a flush that was left out went unnoticed"
    failures=$((before + 1))
else
    failures=$before
    grep 'rank .*: FAILED: ' gpu.out | head -2
fi
rm -f gpu.out
finish
