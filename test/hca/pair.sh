#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# umrddt_info --pair, and --selftest --gpu: lanes that work and lanes that do not, wrong bytes, and
# counters of ports.

srcdir=${srcdir:-.}
OWN_DEVICES=1
. "$srcdir/common.sh"
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
# The tool starts MPI with few mkeys, and a test of the HCA comes before its own.
unset OMPI_MCA_btl_umr_fin_apart

bad() {
    echo "FAILED: $*"
    cat "$work/out" "$work/err"
    failures=$((failures + 1))
}

# pair TITLE STATUS SIM_OPTIONS WRAPPER_OPTIONS COMMAND TEXT...: the command exits with STATUS, and its
# output has each of the texts (grep patterns), or not if the text begins with "!". (WRAPPER_OPTIONS
# and COMMAND are one word each, split here.)
pair() {
    title=$1 wanted=$2 sim=$3 options=$4 command=$5
    shift 5
    # shellcheck disable=SC2086
    UMRDDT_SIM=$sim "$limit" --part 200 umrddt_sim $options $command >"$work/raw" 2>"$work/err"
    status=$?
    tr -d '\0' <"$work/raw" >"$work/out"
    [ $status -eq "$wanted" ] || bad "$title: exit status $status, not $wanted"
    for text in "$@"; do
        case $text in
        !*) ! grep -q -e "${text#!}" "$work/out" || bad "$title: it says '${text#!}'" ;;
        *) grep -q -e "$text" "$work/out" "$work/err" || bad "$title: it does not say '$text'" ;;
        esac
    done
    long=$(awk 'length > 100' "$work/out")
    [ -z "$long" ] || bad "$title: a line of more than 100 columns: $long"
    echo "== $title"
}

two="mpirun -n 2 umrddt_info --pair"
# Both ranks are named a port, so that there is one lane between two different ones.
ports="mpirun -n 1 env OMPI_MCA_btl_umr_device=mlx5_0 umrddt_info --pair : -n 1 env OMPI_MCA_btl_umr_device=mlx5_1 umrddt_info --pair"

pair "one lane" 0 "" "" "$two" "lanes between 2 processes, system memory" \
    "^   0 .* mlx5_0:1  InfiniBand  200 0xffff  0   - -        0 fe80:" "^   0    1    0 mlx5_0:1  mlx5_0:1 .* works" \
    "^   1    0    0 mlx5_0:1  mlx5_0:1 .*  64 .* works" "^2 of 2 directions work" "!FAILED" "not available"
pair "two lanes, RoCE" 0 "" "--machine roce" "$two" "mlx5_1:1  RoCE v2     100 0xffff  0 106 0        3 ::ffff:10" \
    "^   0    1    0 mlx5_1:1  mlx5_2:1 " "^   1    0    1 mlx5_1:1  mlx5_2:1 " "^4 of 4 directions work"
pair "memory of GPUs" 0 "" "--gpus 2" "$two --gpu 1" "memory of GPU 1" "^2 of 2 directions work"
pair "no UMR" 0 umr=off "" "$two" "^2 of 2 directions work"
pair "five processes" 0 "" "" "mpirun -n 5 --oversubscribe umrddt_info --pair" "^   4    0    0 " "!^   1    2" "^8 of 8 directions work"
# More messages than the least number, unless these took as long.
began=$(date +%s%3N)
pair "for two seconds" 0 "" "" "$two --seconds 2" "^2 of 2 directions work"
took=$(($(date +%s%3N) - began))
! grep -q ' 64 ' "$work/out" || [ $took -ge 2000 ] || bad "for two seconds: 64 messages in $took ms"

# What fails, and the reason.
pair "ports of two networks" 1 devices=2,fabric=a/b "" "$ports" "^   0    1    0 mlx5_0:1  mlx5_1:1 .* FAILED" \
    "do not reach each other" "^0 of 2 directions work"
pair "InfiniBand and Ethernet" 1 devices=2,link=ib/eth "" "$ports" "^   0    1   -1 - .* FAILED" "no lane: " "^0 of 1 directions work"
pair "one of three pairs" 1 devices=2,fabric=a/b "" "mpirun -n 1 env OMPI_MCA_btl_umr_device=mlx5_0 umrddt_info --pair \
    : -n 1 env OMPI_MCA_btl_umr_device=mlx5_0,mlx5_1 umrddt_info --pair : -n 1 env OMPI_MCA_btl_umr_device=mlx5_1 umrddt_info --pair" \
    "^   1    2    0 " " FAILED$" " works$" "^2 of 6 directions work"
pair "no HCA at one side" 1 "" "" "mpirun -n 1 umrddt_info --pair : -n 1 env OMPI_MCA_btl_umr_device=mlx5_7 umrddt_info --pair" \
    "^   1 .* none: no RDMA device named" "rank 1 has no HCA" "^0 of 1 directions work"
pair "a write fails" 1 faults=0@write:30 "" "$two" "^   0    1    0 .* FAILED" "after .* writes of 1 MiB" "^0 of 2 directions work"
pair "writes to a GPU are not flushed" 1 gpu_late=200 "--gpus 2" "env OMPI_MCA_btl_umr_gpu_flush=3 $two --gpu 0" "WRONG BYTE at 0 of 4096: 0xa5, not " \
    "^0 of 2 directions work"
pair "no such GPU" 1 "" "--gpus 2" "$two --gpu 2" "none: there is no GPU 2; this process has 2"
pair "no such GPU at one side" 1 "" "--gpus 2" "mpirun -n 1 umrddt_info --pair --gpu 1 : -n 1 umrddt_info --pair --gpu 2" \
    "rank 1 has no HCA: there is no GPU 2" "^0 of 1 directions work"
pair "a GPU that no HCA reaches" 1 "" "--gpus 1" "env UMRDDT_GPU=devices=1,gdr=0 $two --gpu 0" "does not register the memory"
pair "alone" 2 "" "" "umrddt_info --pair" "needs two or more processes"
pair "devices" 2 "" "" "umrddt_info --pair mlx5_0" "exclude"
pair "no number" 2 "" "" "umrddt_info --pair --gpu x" "needs a number"
pair "not a number" 2 "" "" "umrddt_info --pair --gpu nan" "needs a number"

# An HCA by itself, in the memory of a GPU.
pair "a GPU's memory" 0 devices=2 "--gpus 2" "umrddt_info --selftest --gpu 1" "^mlx5_0:1: usable" \
    "^  proven: gather and scatter in the memory of GPU 1 by writes to itself: 64 messages" "^mlx5_1:1: usable"
[ "$(grep -c "proven: .* GPU 1" "$work/out")" -eq 2 ] || bad "a GPU's memory: not both devices"
pair "not flushed" 1 gpu_late=200 "--gpus 1" "env OMPI_MCA_btl_umr_gpu_flush=3 umrddt_info --selftest --gpu 0" "FAILED with the memory of GPU 0: WRONG BYTE"
pair "not reached" 1 "" "--gpus 1" "env UMRDDT_GPU=devices=1,gdr=0 umrddt_info --selftest --gpu 0" "FAILED with the memory of GPU 0: .* register"
pair "no GPU" 1 "" "" "umrddt_info --selftest --gpu 0" "^mlx5_0: not usable: no GPUs"

# Counters: a tree of the software HCA with more files, one of which grows.
UMRDDT_SIM_DIR=$work/sim
export UMRDDT_SIM_DIR
mkdir "$UMRDDT_SIM_DIR"
umrddt_sim true
port=$(echo "$UMRDDT_SIM_DIR"/sys-*/class/infiniband/mlx5_0/ports/1)
mkdir "$port/hw_counters" "$port/counters"
echo 5 >"$port/hw_counters/packet_seq_err"
echo 5 >"$port/hw_counters/out_of_sequence"
pair "counters at rest" 0 "" "" "$two" "mlx5_0:1  none has grown" "!not available"
(
    i=5
    while sleep 0.02; do
        echo $((i += 1)) >"$port/new" && mv "$port/new" "$port/hw_counters/out_of_sequence"
    done
) &
grows=$!
pair "counters that grow" 0 "" "" "$two" "mlx5_0:1  out_of_sequence  *[0-9]*  packets came out of order" "!packet_seq_err" "!none has grown"
kill $grows
wait $grows 2>/dev/null
unset UMRDDT_SIM_DIR

if command -v python3 >/dev/null; then
    UMRDDT_SIM='' "$limit" --part 200 umrddt_sim mpirun -n 2 umrddt_info --pair --json >"$work/out" 2>"$work/err" || bad "for programs: exit status $?"
    said=$(python3 -c 'import json, sys
j = json.load(sys.stdin)
print(len(j["ports"]), j["ports"][0]["gbit_per_s"], [(r["from"], r["to"], r["works"], r["messages_right"], r["mkeys_mapped"] > 64) for r in j["lanes"]],
      j["counters"], j["all_work"])' <"$work/out" 2>>"$work/err")
    [ "$said" = "2 200 [(0, 1, True, 64, True), (1, 0, True, 64, True)] [] True" ] || bad "for programs: $said"
fi
finish
