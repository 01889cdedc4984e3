#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
#
# SPDX-License-Identifier: BSD-3-Clause
#
# $HEADER$
#
# umrddt_sim --gpus: a program that loads the CUDA driver finds the software one, and only then.

wrapper=${UMRDDT_SIM_WRAPPER:-../../sim/connectx/umrddt_sim}
limit=$(cd "${srcdir:-$(dirname "$0")}/.." && pwd)/limit
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
failed=0

# expect STATUS TEXT COMMAND...: its exit status, and a text in what it prints ('' for any)
expect() {
    status=$1
    text=$2
    shift 2
    "$limit" --part 60 "$@" > "$work/out" 2>&1
    got=$?
    if test $got -ne "$status" || { test -n "$text" && ! grep -q -e "$text" "$work/out"; }; then
        echo "FAILED: $* ended with $got, not $status and '$text'"
        cat "$work/out"
        failed=1
    else
        echo "ok: $*"
    fi
}

unset UMRDDT_GPU CUDA_VISIBLE_DEVICES
expect 0 "^3 GPUs$" "$wrapper" --gpus 3 ./count_gpus
expect 0 "^16 GPUs$" "$wrapper" --gpus 16 "$wrapper" ./count_gpus
expect 4 "" "$wrapper" --gpus 0 ./count_gpus
CUDA_VISIBLE_DEVICES=2,0 expect 0 "^2 GPUs$" "$wrapper" --gpus 3 ./count_gpus
CUDA_VISIBLE_DEVICES='' expect 4 "" "$wrapper" --gpus 3 ./count_gpus
UMRDDT_GPU=fail=cuInit:1:3 expect 4 "" "$wrapper" --gpus 3 ./count_gpus
expect 0 "umrddt_gpu\[[0-9]*\]: calls=2 launches=0 .* cuDeviceGetCount=1\>" "$wrapper" --gpus 1 --counters ./count_gpus
expect 0 " cuInit=1\>" "$wrapper" --gpus 1 --counters ./count_gpus
expect 0 '^{"umrddt_gpu":[0-9]*,"calls":2,"launches":0,.*,"cuDeviceGetCount":1[,}]' "$wrapper" --gpus 1 --json ./count_gpus
expect 0 '^{"umrddt_gpu":[0-9]*,.*,"cuInit":1[,}]' "$wrapper" --gpus 1 --json ./count_gpus
expect 2 "option 'devices' cannot be '17'" "$wrapper" --gpus 17 ./count_gpus
expect 2 "option 'devices' cannot be 'many'" "$wrapper" --gpus many ./count_gpus
UMRDDT_GPU=nonsense=1 expect 2 "unknown option 'nonsense'" "$wrapper" --gpus 1 ./count_gpus
expect 2 "unknown option '--gpus'" "$wrapper" --gpus
expect 0 "kernels=PATH" "$wrapper" --help
# The kernels are found without a setting, here and after installation.
kernel=umrddt_gpu_ROWS_STRIDED_STREAM_64
expect 0 "^1 GPUs$" "$wrapper" --gpus 1 ./count_gpus $kernel
expect 5 "" "$wrapper" --gpus 1 ./count_gpus no_such_kernel
UMRDDT_GPU=kernels=/nonexistent.so expect 5 "" "$wrapper" --gpus 1 ./count_gpus $kernel
if test -e ../../sim/cuda/.libs/libcuda.so.1; then
    mkdir -p "$work/cuda/kernels"
    cp ../../sim/cuda/.libs/libcuda.so.1 "$work/cuda/"
    LD_LIBRARY_PATH=$work/cuda expect 5 "" ./count_gpus $kernel
    cp ../../sim/kernels/.libs/software_kernels.so "$work/cuda/kernels/"
    LD_LIBRARY_PATH=$work/cuda expect 0 "" ./count_gpus $kernel
fi
# Without it the machine's own library is used.
LD_LIBRARY_PATH=/nonexistent expect 0 "^/nonexistent$" "$wrapper" sh -c 'echo $LD_LIBRARY_PATH'
if ! ldconfig -p 2> /dev/null | grep -q 'libcuda\.so\.1'; then
    expect 3 "" "$wrapper" ./count_gpus
fi
exit $failed
