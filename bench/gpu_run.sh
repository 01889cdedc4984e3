#!/bin/bash
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# gpu_run.sh [--out DIR] [--cuda DIR] [--code NN] [--jobs N] [--seconds N] [--only STEP,...] [--mps] [--memory LIST]
#            [--cuda-ompi PREFIX] [SOURCE]
#
# Builds umrddt on a machine with GPUs, runs all tests that need no second machine, and measures.
# SOURCE is a tarball (make dist) or a tree with its configure. The default is the tree of this script.
#
# Needs: CUDA's compiler, Open MPI with its devel headers, a compiler, make. No network, no root. All output
# is written below DIR (default: gpu_run in the current directory): a description of the machine, the log
# of each step, the tuning parameters, and a summary, which is also printed last. A step that fails, or
# exceeds its time, is reported, and the next one runs. After --seconds (default 450) no further step
# begins. --code 90 compiles the kernels for sm_90 alone, which is faster than for all. --mps runs CUDA's
# MPS: if there are more processes than GPUs, they then share a GPU without time slices.
#
# STEPs: build tests mpi latency kernels profile large sanitizer schemes larger staged choice defer parts.
# The others need build, unless DIR has its result.
#   latency   umrddt_bench with --bare: messages one after the other and with pauses between them, with and
#             without graphs; MPI_Pack by libumrddt_mpi (logs/pack_times)
#   large     256 MiB from GPU to GPU
#   schemes   every scheme, layout and pair of memories, checked, up to 1 MiB. The software ConnectX is the
#             transport, so its times are not those of an HCA
#   larger    the same above 1 MiB
#   staged    times of packed messages without an HCA, and of their parts: the driver's copies, and messages
#             in system memory
#   choice    umrddt_tune, then auto with its tuning parameters compared with each scheme, and the quality of
#             the predictions (choice.txt), for each pair of memories or those of --memory (gpu, gpu-host,
#             host-gpu). Tuning parameters that are in DIR are reused
#   defer     overhead for messages that umrddt passes through, compared with the base PML alone, also with
#             the tuning parameters of umrddt_tune
#   profile   counters of ncu for packing and unpacking
#   parts     the share of packing in packed messages, the time of pointer queries in iterations of
#             applications, messages of objects in blocks, and the variants of HAND's host bypass (parts.md)
#
# --cuda-ompi PREFIX: the prefix of an Open MPI 5.0 that is configured with CUDA. umrddt is built a second
# time for it. The steps are then build, bases and compare, and with --only exchanges. bases runs the rows
# of test/mpi/cases that need GPUs on the stock Open MPI, and on the other one with ob1 and with UCX (rows.tsv, rows-failed.txt). compare
# times messages and MPI_Alltoallw on all of them in turns (times.csv, times.md). exchanges times halos and
# collectives (exchanges.csv, exchanges.md). gpu_bases does all. It has the details and accepts --software,
# --rows, --parallel, --row-seconds, --skip-passed, --rounds, --setups, --exchanges and --sizes. With
# --mps the rows run under MPS and the times do not.
#
# Exit status: 0 if every step that ran succeeded.

set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=gpu_run
cuda=/usr/local/cuda
jobs=$(nproc)
seconds=450
only=
cuda_ompi=
code=
mps=
memories='gpu gpu-host host-gpu'
source=
gpu_bases=()
while [ $# -gt 0 ]; do
    case $1 in
    --out) out=$2; shift ;;
    --cuda) cuda=$2; shift ;;
    --code) code=$2; shift ;;
    --jobs) jobs=$2; shift ;;
    --seconds) seconds=$2; shift ;;
    --only) only=$2; shift ;;
    --mps) mps=yes ;;
    --cuda-ompi) cuda_ompi=$2; shift ;;
    --memory) memories=${2//,/ }; shift ;;
    --software) gpu_bases+=(--software) ;;
    --rows | --parallel | --rounds | --setups | --ways | --row-seconds | --skip-passed | --exchanges | --sizes) gpu_bases+=("$1" "$2"); shift ;;
    -h | --help) sed -n '/^# gpu_run/,/^$/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "gpu_run.sh: no such option: $1 (--help)" >&2; exit 2 ;;
    *) source=$1 ;;
    esac
    shift
done
if [ -z "$only" ]; then
    only=build,tests,mpi,latency,kernels,profile,large,sanitizer,schemes,larger,staged,choice,defer,parts
    [ -z "$cuda_ompi" ] || only=build,bases,compare
fi
source=$(realpath "${source:-$here}") || exit 2
mkdir -p "$out/logs" && out=$(realpath "$out") || exit 2
build=$out/build
tree=$source
[ -f "$source" ] && tree=$out/tree
prefix=$out/install
begin=$SECONDS
bad=$out/failed # there if something has
rm -f "$bad"
summary=$out/summary.txt
: > "$summary"

say() { echo "$@" | tee -a "$summary"; }

wanted() { [[ ,$only, == *,$1,* ]]; }

# step NAME SECONDS COMMAND...: runs COMMAND, with its output in logs/NAME.
step() {
    local name=$1 limit=$2 rc from=$SECONDS
    shift 2
    if [ $((SECONDS - begin)) -ge "$seconds" ]; then
        say "skipped   $name: no time left"
        return 1
    fi
    timeout -k 5 "$limit" "$@" > "$out/logs/$name" 2>&1 < /dev/null
    rc=$?
    case $rc in
    0) say "ok        $name ($((SECONDS - from)) s)" ;;
    77) say "skipped   $name: $(tail -1 "$out/logs/$name")"; rc=0 ;;
    124 | 137) say "TOO LONG  $name ($limit s): $(tail -1 "$out/logs/$name")"; touch "$bad" ;;
    *) say "FAILED    $name ($rc): $(tail -1 "$out/logs/$name")"; touch "$bad" ;;
    esac
    return $rc
}

# The description of the machine. Numbers are useless without it.
about() {
    date -u +'%Y-%m-%d %H:%M UTC'
    uname -srm
    grep -m1 'model name' /proc/cpuinfo
    nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.max.sm,clocks.max.mem --format=csv
    nvidia-smi topo -m
    "$cuda/bin/nvcc" --version | tail -2
    mpirun --version | head -1
    cc --version | head -1
    (cd "$source" 2> /dev/null && git describe --always --dirty 2> /dev/null) || basename "$source"
}

unpack() {
    if [ -f "$source" ]; then
        rm -rf "$tree" && mkdir "$tree" && tar -xf "$source" -C "$tree" --strip-components=1 || return 1
    fi
    if [ ! -x "$tree/configure" ]; then
        (cd "$tree" && ./autogen.pl) || { echo "no configure in $tree, and autogen.pl fails: give a tarball (make dist)"; return 1; }
    fi
}

build_all() {
    unpack || return 1
    mkdir -p "$build" && cd "$build" || return 1
    "$tree/configure" --prefix="$prefix" --with-cuda="$cuda" || return 1
    make=(make -j"$jobs")
    [ -z "$code" ] || make+=("UMRDDT_NVCC_CODES=-gencode arch=compute_$code,code=sm_$code")
    "${make[@]}" && "${make[@]}" install && "${make[@]}" -C test/common check TESTS= \
        && "${make[@]}" -C test/gpu check TESTS= && "${make[@]}" -C bench/kernels check TESTS=
}

# configured DIR ARGUMENT...
configured() {
    mkdir -p "$1" && cd "$1" && shift && "$tree/configure" --with-cuda="$cuda" "$@"
}

# made DIR: builds the targets that rows and times need.
made() {
    "${make[@]}" -C "$1" && "${make[@]}" -C "$1/test/common" check TESTS= && "${make[@]}" -C "$1/test/mpi" check TESTS=
}

# For both Open MPIs at once, since the kernels are the same.
build_bases() {
    local kernels=opal/mca/common/umrddt_gpu/kernels
    make=(make -j"$jobs")
    [ -z "$code" ] || make+=("UMRDDT_NVCC_CODES=-gencode arch=compute_$code,code=sm_$code")
    unpack || return 1
    configured "$build" --prefix="$prefix" > "$build.log" 2>&1 &
    configured "$build-cuda" --prefix="$prefix-cuda" --with-ompi="$cuda_ompi" --with-pmix="$cuda_ompi" || return 1
    wait $! || { tail "$build.log"; return 1; }
    "${make[@]}" -C "$build/$kernels" umrddt_gpu_{kernels,reduce}.fatbin || return 1
    cp -p "$build/$kernels"/umrddt_gpu_{kernels,reduce}.{fatbin,log} "$build/$kernels/umrddt_gpu_nvcc.of" "$build-cuda/$kernels/" || return 1
    made "$build" >> "$build.log" 2>&1 &
    made "$build-cuda" || return 1
    wait $! || { tail "$build.log"; return 1; }
}

# all kinds of GPUs at once
export NVCC_APPEND_FLAGS="${NVCC_APPEND_FLAGS:-} --threads 0"
about > "$out/about.txt" 2>&1
if wanted build; then
    export -f unpack build_all configured made build_bases && export source tree build prefix cuda code jobs cuda_ompi
    if [ -n "$cuda_ompi" ]; then
        step build 300 bash -c build_bases || { say "nothing to run"; exit 1; }
    else
        step build 240 bash -c build_all || [ -x "$build/bench/kernels/bench_kernels" ] || { say "nothing to run"; exit 1; }
    fi
fi

# The control daemon outlives the process that started it. Its pipe has a short name, as sockets
# need.
mps_begin() {
    CUDA_MPS_PIPE_DIRECTORY=$(mktemp -d) || exit 1
    export CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY=$out/logs
    trap mps_quit EXIT
    step mps 20 nvidia-cuda-mps-control -d || exit 1
}
mps_quit() {
    echo quit | nvidia-cuda-mps-control > /dev/null 2>&1
    rm -rf "$CUDA_MPS_PIPE_DIRECTORY"
    unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
    trap - EXIT
}

# The summary of gpu_bases is also printed last. Its rows run under MPS if requested, its times do
# not.
for what in bases:rows compare:times exchanges:exchanges; do
    if wanted ${what%:*}; then
        [ "$mps$what" != yesbases:rows ] || mps_begin
        step ${what%:*} 420 "$tree/bench/gpu_bases" ${what#*:} --stock "$build" --cuda "$build-cuda" --out "$out" ${gpu_bases[@]+"${gpu_bases[@]}"}
        tail -c 8000 "$out/logs/${what%:*}" | tee -a "$summary"
        [ "$mps$what" != yesbases:rows ] || mps_quit
    fi
done
gpu=$build/test/gpu
export UMRDDT_TEST_GPU=real UMRDDT_TEST_REAL=1 UMRDDT_BUILDDIR=$build
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

if [ -n "$mps" ]; then
    for what in tests mpi latency kernels profile large sanitizer schemes larger staged choice defer parts; do
        ! wanted $what || { mps_begin; break; }
    done
fi

# All at once, since no time is measured.
if wanted tests; then
    [ -n "$code" ] || step check_kernels 10 env -C "$gpu" "$tree/test/gpu/check_kernels"
    for test in test_driver test_launch random_kernels test_reduce test_engine test_imports test_imports_forged test_imports_hostile test_staging; do
        [ -x "$gpu/$test" ] && step "$test" 90 "$gpu/$test" &
    done
    wait
fi

# Two processes, on two GPUs if there are two.
if wanted mpi; then
    step mpi_build 90 make -j"$jobs" -C "$build/test/mpi" check TESTS=
    cases=$(sed -n 's/^\(\(gpu\|ipc\|pack\)-[^ ]*\) .* ob1 *none .*$/\1.case/p' "$tree/test/mpi/cases" | tr '\n' ' ')
    step mpi_cases 150 make -k -j1 -C "$build/test/mpi" check "TESTS=$cases"
    grep -E '^(PASS|FAIL|SKIP|ERROR|XFAIL): ' "$out/logs/mpi_cases" > "$out/cases.txt"
fi
if wanted mpi || wanted latency || wanted schemes || wanted larger || wanted staged || wanted large || wanted choice || wanted defer || wanted parts; then
    components=$(dirname "$(find "$prefix" -name mca_pml_umrddt.so | head -1)")
    export OMPI_MCA_mca_base_component_path=$components:$(ompi_info --path pkglibdir --parsable | sed 's/.*://')
fi
run=(mpirun -n 2 --mca pml umrddt --mca btl self,vader)
message=("$prefix/bin/umrddt_bench" --memory gpu --bare)
if wanted mpi; then
    step bench_gpu 150 "${run[@]}" "${message[@]}" --quick --max-seconds-per-layout 0.5 --csv "$out/bench_gpu.csv"
    step tensors 90 "${run[@]}" python3 "$tree/test/gpu/mpi4py_tensors.py"
fi

if wanted latency; then
    message+=(--max-bytes 1M --max-seconds-per-layout 0.3 --warmup 5 --iterations 30)
    some=(--layouts 'contiguous_64KiB,vector_1KiB_x16,vector_1KiB_x128,vector_4KiB_x128,MILC_su3_zd_16*,NAS_MG_y_1024*,SPECFEM3D_mt_1024x2x64,face_128_r1_x,face_128_r1_y,indexed_8B_x16384,indexed_512B_x512')
    for graphs in 0 64; do
        step latency_graphs_$graphs 20 "${run[@]}" --mca pml_umrddt_gpu_graphs $graphs "${message[@]}" "${some[@]}" \
            --burst 20 --csv "$out/latency_graphs_$graphs.csv"
        step latency_kernel_graphs_$graphs 20 "${run[@]}" --mca pml_umrddt_gpu_graphs $graphs \
            --mca pml_umrddt_gpu_scheme kernel "${message[@]}" "${some[@]}" \
            --burst 20 --csv "$out/latency_kernel_graphs_$graphs.csv"
    done
    step latency_pauses 20 "${run[@]}" "${message[@]}" "${some[@]}" --csv "$out/latency_pauses.csv"
    step latency_all 60 "${run[@]}" "${message[@]}" --burst 20 --csv "$out/latency_all.csv"
    step pack_build 30 make -j"$jobs" -C "$build/bench" bench_pack
    step pack_times 60 mpirun -n 1 --mca pml umrddt "$build/bench/bench_pack"
fi

every=(--require-scheme requested --require-min-bytes 0 --warmup 0 --progress never)
# every_scheme STEP SECONDS OPTION...: a step for each pair of memories, all at once.
every_scheme() {
    local name=$1 limit=$2 memory by
    shift 2
    for memory in gpu gpu-host host-gpu; do
        by=umr,direct,pack-gdr,pack-staged,pack-host,host
        # (The receiver reads memory that the sender exports, and a process cannot export plain
        # memory.)
        [ $memory = host-gpu ] || by+=,ipc
        step "${name}_$memory" "$limit" "$prefix/bin/umrddt_sim" "${run[@]}" --mca pml_umrddt_memory all \
            "$prefix/bin/umrddt_bench" --memory $memory --schemes $by "${every[@]}" "$@" --csv "$out/${name}_$memory.csv" &
    done
    wait
}
if wanted schemes; then
    every_scheme schemes 200 --max-bytes 1100000 --iterations 2
fi
if wanted larger; then
    # The rows of the largest grids are 2 MiB apart, and a message by direct can describe 128 pieces
    # of system memory.
    OMPI_MCA_btl_umr_reg_gap=2097152 every_scheme larger 280 --min-bytes 1100000 --iterations 1
fi

if wanted staged; then
    step staged_copies 30 "$build/bench/kernels/bench_kernels" host
    large=contiguous_64MiB,vector_64KiB_x1024,vector_1KiB_x65536,vector_64B_x1048576
    # With both of Open MPI's own transports within a node.
    for btl in self,vader self,tcp; do
        way=${btl#self,}
        step "staged_host_$way" 30 mpirun -n 2 --mca pml ob1 --mca btl $btl "$prefix/bin/umrddt_bench" \
            --layouts contiguous_64MiB --iterations 12 --burst 4 --csv "$out/staged_host_$way.csv"
        step "staged_large_$way" 60 mpirun -n 2 --mca pml umrddt --mca btl $btl "$prefix/bin/umrddt_bench" \
            --memory gpu --layouts $large --schemes pack-staged,pack-host --iterations 12 --burst 4 \
            --max-seconds-per-layout 2 --csv "$out/staged_large_$way.csv"
        step "staged_sizes_$way" 60 mpirun -n 2 --mca pml umrddt --mca btl $btl "$prefix/bin/umrddt_bench" \
            --memory gpu --layouts 'vector_1KiB*,vector_4KiB*,indexed_512B*' --schemes pack-staged,pack-host,ipc,host --iterations 20 --burst 10 \
            --max-seconds-per-layout 0.3 --csv "$out/staged_sizes_$way.csv"
    done
fi

if wanted choice || wanted defer; then
    [ -s "$out/tuning.txt" ] || step tune 140 "${run[@]}" "$prefix/bin/umrddt_tune" --any --output "$out/tuning.txt"
fi
if wanted choice; then
    for memory in $memories; do
        step "choice_$memory" 400 "${run[@]}" --mca pml_umrddt_memory all --mca pml_umrddt_explain 1 --mca pml_umrddt_model "$out/tuning.txt" \
            "$prefix/bin/umrddt_bench" --memory $memory --schemes auto,ipc,pack-staged,pack-host,host --rounds 5 --auto-warmup 800 --warmup 8 \
            --iterations 8 --burst 5 --max-seconds-per-layout 0.1 --progress never --csv "$out/choice_$memory.csv"
    done
    { grep -hE '^# (auto|chance)' "$out"/logs/choice_*; "$here/bench/check_predictions" "$out"/logs/choice_*; } > "$out/choice.txt"
fi

# Overhead of the checks for messages that are passed through: jobs with umrddt and with the base
# PML alone, in turns.
if wanted defer; then
    step defer 200 "$prefix/bin/umrddt_bench" --defer --takes all --model "$out/tuning.txt" --rounds 15
fi

if wanted parts; then
    export PATH=$prefix/bin:$PATH UMRDDT_MPIRUN="${run[0]}"
    step parts 120 "$tree/bench/seeds/experiments" --real --iterations 50 parts
    step questions_build 60 make -j"$jobs" -C "$build/bench" bench_patterns
    step questions 150 "$tree/bench/seeds/experiments" --real questions
    step objects 150 "$tree/bench/seeds/experiments" --real objects
    step bypass 60 "$tree/bench/seeds/experiments" --real bypass
    cat "$out"/logs/{parts,questions,objects,bypass} > "$out/parts.md" 2> /dev/null
fi

if wanted large; then
    step large 60 "$build/bench/kernels/bench_kernels" --mib 256 large
    step large_messages 90 "${run[@]}" "$prefix/bin/umrddt_bench" --memory gpu --bare \
        --layouts contiguous_256MiB,vector_512B_x524288,vector_4KiB_x65536,vector_64KiB_x4096 --iterations 5 --burst 8 --warmup 1 \
        --csv "$out/large_messages.csv"
fi

if wanted kernels; then
    for part in latency blocks fit fused layouts schemes; do
        step "kernels_$part" 60 "$build/bench/kernels/bench_kernels" "$part"
    done
    cat "$out"/logs/kernels_* > "$out/kernels.tsv" 2> /dev/null
fi

if wanted profile; then
    if ncu=$(command -v ncu || ls "$cuda/bin/ncu" 2> /dev/null); then
        metrics=gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum,dram__throughput.avg.pct_of_peak_sustained_elapsed
        step profile 120 "$ncu" --clock-control none --metrics $metrics --csv --page raw --log-file "$out/profile.csv" "$build/bench/kernels/bench_kernels" profile \
            && "$here/bench/check_profile" "$out/logs/profile" "$out/profile.csv" > "$out/profile.md"
    else
        say "skipped   profile: there is no ncu"
    fi
fi

if wanted sanitizer; then
    if sanitizer=$(command -v compute-sanitizer || ls "$cuda/bin/compute-sanitizer" 2> /dev/null); then
        for tool in memcheck initcheck racecheck; do
            step $tool 60 "$sanitizer" --tool $tool --error-exitcode 9 "$gpu/random_kernels" 30 &
        done
        wait
    else
        say "skipped   sanitizer: there is no compute-sanitizer"
    fi
fi

say "all: $((SECONDS - begin)) s, $([ -e "$bad" ] && echo "SOMETHING FAILED" || echo "nothing failed")"
[ ! -e "$bad" ]
