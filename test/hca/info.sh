#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# umrddt_info --selftest: its output for devices with many, few or no capabilities, and its advice.

srcdir=${srcdir:-.}
OWN_DEVICES=1
. "$srcdir/common.sh"
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT

bad() {
    echo "FAILED: $*"
    cat "$work/out" "$work/err"
    failures=$((failures + 1))
}

# info TITLE STATUS SIM_OPTIONS ("none": no umrddt_sim) ENVIRONMENT ARGUMENTS TEXT...: it exits with
# STATUS, and its stdout has each of the texts (grep patterns), or not if the text begins with "!";
# stderr is empty unless the status is 2 or 3. (ENVIRONMENT and ARGUMENTS are one word each, split
# here.)
info() {
    title=$1 wanted=$2 sim=$3 environment=$4 arguments=$5
    shift 5
    wrapper=umrddt_sim
    if [ "$sim" = none ]; then
        wrapper=
        sim=
    fi
    # shellcheck disable=SC2086
    "$limit" --part 200 env UMRDDT_SIM="$sim" $environment $wrapper $wrapper_options umrddt_info $arguments >"$work/out" 2>"$work/err"
    status=$?
    [ $status -eq "$wanted" ] || bad "$title: exit status $status, not $wanted"
    for text in "$@"; do
        case $text in
        !*) ! grep -q -e "${text#!}" "$work/out" || bad "$title: it says '${text#!}'" ;;
        *) grep -q -e "$text" "$work/out" || bad "$title: it does not say '$text'" ;;
        esac
    done
    if [ "$wanted" -lt 2 ] && [ -s "$work/err" ]; then
        bad "$title: something on stderr"
    elif [ "$wanted" -ge 2 ] && [ ! -s "$work/err" ]; then
        bad "$title: nothing on stderr"
    fi
    echo "== $title"
}

wrapper_options=
test="--selftest"
info "help" 0 none "" --help "^usage: umrddt_info "
info "another option" 2 none "" "--nonsense"
info "an option behind" 2 none "" "--selftest --nonsense"

info "all that the software ConnectX can" 0 "" "" "$test" "^This is the software ConnectX" "^mlx5_0: firmware 20.99" \
    "^mlx5_0:1: usable" "  inline list in a work request: 52 pieces" "  one mkey of any layout: 1048576 pieces" \
    "  non-inline UMR lists: proven" "  strided entries (equal blocks at equal distances): proven" "  indirect mkeys of mkeys: proven" \
    "  not proven: transfers between two machines" "!  another tier:" "!not usable" "!mlx5_1"
info "4 entries" 0 max_sq_desc=256 "" "$test" "^mlx5_0:1: usable" "  inline list in a work request: 4 pieces"
info "no long lists" 0 "" OMPI_MCA_btl_umr_long_entries=0 "$test" "  inline list in a work request: 52 pieces" \
    "  non-inline UMR lists: not used: btl_umr_long_entries is 0"
info "no repeated blocks" 0 "" OMPI_MCA_btl_umr_strided=0 "$test" \
    "  strided entries (equal blocks at equal distances): not used: .*btl_umr_strided is 0"
info "no mkeys of mkeys" 0 max_indirection=1 "" "$test" "  one mkey of any layout: 16384 pieces" \
    "  indirect mkeys of mkeys: not used: the device does not report"
info "the self-test cannot be disabled here" 0 "" OMPI_MCA_btl_umr_selftest=0 "$test" "  non-inline UMR lists: proven"
info "three devices" 0 devices=3 "" "$test" "^mlx5_0:1: usable" "^mlx5_1:1: usable" "^mlx5_2:1: usable"
info "two on two nodes" 0 devices=2,nodes=2 "" "$test" "^mlx5_0:1: usable" "NUMA node 0" "^mlx5_1:1: usable" "NUMA node 1"
info "one of three" 0 devices=3 "" "$test mlx5_1:1" "^mlx5_1:1: usable" "!mlx5_0" "!mlx5_2"
info "one that is there and one that is not" 0 "" "" "$test mlx5_7 mlx5_0" \
    "^mlx5_7: not usable: no RDMA device named" "  what to do: Name another device" "^mlx5_0:1: usable"

info "its network" 0 link=eth,speed=edr,gids=ll+v4 "" "$test" \
    "^  port: RoCE v2, 100 Gb/s, GID 1 (::ffff:10\.[0-9]*\.0\.1), pkey 0xffff, service level 0, traffic class 106$"
info "a partition" 0 pkeys=0x7fff+0x8005 "" "$test" "^  port: InfiniBand, 200 Gb/s, GID 0 (fe80::.*), pkey 0x8005, service level 0$"
info "no UMR" 0 umr=off "" "$test" "^mlx5_0:1: usable without UMR: mlx5_0:1 creates no indirect mkeys" \
    "  an RDMA write gathers 14 pieces" "  what to do: .*no UMR" "!: proven"
info "no UMR on two" 0 umr=off,devices=2 "" "$test" "^mlx5_0:1: usable without" "^mlx5_1:1: usable without"
info "no UMR, and peers may have nothing else" 1 umr=off OMPI_MCA_btl_umr_plain_keys=0 "$test" \
    "^mlx5_0: not usable: mlx5_0:1 creates no indirect mkeys" "  what to do: .*no UMR"
info "wrong bytes" 0 umr=broken "" "$test" "^mlx5_0:1: usable without UMR: .* self-test: .*wrong bytes" \
    "  what to do: UMR failed a check that umrddt requires" "!: proven"
info "wrong bytes, and peers may have nothing else" 1 umr=broken OMPI_MCA_btl_umr_plain_keys=0 "$test" \
    "^mlx5_0: not usable: .* self-test: .*wrong bytes" "  what to do: UMR failed a check that umrddt requires"
info "no DEVX" 0 devx=0 "" "$test" "^mlx5_0:1: usable without UMR: mlx5_0:1 cannot be opened with DEVX" \
    "  what to do: Programs create mkeys through DEVX"
info "no memory to register" 1 mrs=1 "" "$test" "^mlx5_0: not usable: .*annot allocate memory" \
    "  what to do: .*limit of locked memory"
info "no such port" 1 "" "" "$test mlx5_0:9" "^mlx5_0:9: not usable: mlx5_0 has no port 9" "  what to do: Name another port"
info "no such GID" 1 link=eth OMPI_MCA_btl_umr_gid_index=200 "$test" "^mlx5_0: not usable: .*GID 200" \
    "  what to do: On Ethernet a port needs an IP address"
if [ -z "$(ls -A /sys/class/infiniband 2>/dev/null)" ]; then
    info "no device" 1 none "" "$test" "^there is no RDMA device" "  what to do: .*lspci" "!software ConnectX"
fi
# Open MPI's own components without any of umrddt: test/tools/test_installed may install them there meanwhile.
mkdir "$work/without"
echo "$OMPI_MCA_mca_base_component_path" | cut -d : -f 2- | tr : '\n' | while read -r directory; do
    for file in "$directory"/mca_*; do
        case $file in
        *umrddt* | */mca_btl_umr.*) ;;
        *) [ ! -e "$file" ] || ln -sf "$file" "$work/without/" ;;
        esac
    done
done
info "no component" 3 "" "OMPI_MCA_mca_base_component_path=$work/without" \
    "$test" "^mlx5_0: the test could not run"
grep -q "finds no btl/umr" "$work/err" || bad "no component: it does not say so"

# All output, for readers and for programs.
info "all there is" 0 "" "" "" "^Open MPI v[456]" "  pml/umrddt works; the base PML is pml/" "^mlx5_0:1: usable" "^no GPUs: " \
    "  non-contiguous, system memory: pml/.*: pml_umrddt_memory is gpu" "  all others: pml/" "!GPU 0"
info "system memory wanted" 0 "" OMPI_MCA_pml_umrddt_memory=all "" "  non-contiguous, system memory: umr: "
info "system memory wanted, no UMR" 0 umr=off OMPI_MCA_pml_umrddt_memory=all "" "  non-contiguous, system memory: direct: "
info "another base PML" 0 "" OMPI_MCA_pml_umrddt_host=ob1 "" "  pml/umrddt works; the base PML is pml/ob1"
info "a scheme by name" 0 "" OMPI_MCA_pml_umrddt_scheme=direct "" "  non-contiguous: direct: by pml_umrddt_scheme" "!  non-contiguous, "
info "another name of a scheme" 0 "" OMPI_MCA_pml_umrddt_scheme=sgl "" "  non-contiguous: direct: by pml_umrddt_scheme"
info "nothing to use" 1 umr=off OMPI_MCA_btl_umr_plain_keys=0 "" "  non-contiguous, system memory: pml/.*: no HCA can be used" "  what to do: "
# Of the build: with kernels for GPUs, or without.
built=$(sed -n 's/^UMRDDT_BUILT_KERNELS = *//p' "$UMRDDT_BUILDDIR/tools/Makefile")
few="^no GPU kernels: this umrddt was built without them" many="^NO GPU KERNELS: .*" remedy="  what to do: build umrddt where the CUDA"
[ -z "$built" ] || few="^GPU kernels: $built" many=$few remedy="!GPU KERNELS"
info "kernels on a machine without GPUs" 0 "" "" "" "$few" "!^NO GPU"
wrapper_options="--gpus 2"
info "kernels" 0 "" "" "" "$many" "$remedy"
info "kernels for a test with a GPU" 0 "" "" "$test --gpu 0" "$many"
info "GPUs" 0 "" UMRDDT_GPU= "" "^GPU 0: umrddt software GPU at 0000:01:00.0" "^GPU 1:" \
    "  GPU 0 and 1 access each other's memory, with native atomics: NVLink" "  nvidia_peermem is " \
    "  non-contiguous, GPUs of this node: ipc: " "  non-contiguous, GPUs of other nodes: umr: " "  contiguous, GPUs: as non-contiguous ones"
info "GPUs far from each other" 0 "" UMRDDT_GPU=peer=0 "" "  GPU 0 and 1 cannot access each other's memory" \
    "  non-contiguous, GPUs of this node: ipc, or packed: "
info "GPUs that no hca reaches" 0 "" UMRDDT_GPU=gdr=0 "" "  HCAs cannot register its memory" \
    "  non-contiguous, GPUs of other nodes: packed: "
wrapper_options="--gpus 4"
info "GPUs at the hcas" 0 devices=3,switches=3 "" "$test" "^  GPUs, nearest first: 0 and 3, then 1 and 2$" \
    "^  GPUs, nearest first: 1, then 0 and 2 and 3$" "^  GPUs, nearest first: 2, then 0 and 1 and 3$"
info "GPUs and a hca without UMR" 0 devices=2,switches=2,umr=off "" "$test mlx5_1" "^  GPUs, nearest first: 1 and 3, then 0 and 2$"
info "GPUs at unknown places" 0 "" UMRDDT_GPU=fail=cuDeviceGetPCIBusId:*:801 "$test" "^mlx5_0:1: usable" "!nearest first"
wrapper_options=
info "for programs" 0 devices=2 "" --json '^{"umrddt":'
if command -v python3 >/dev/null; then
    # reads VALUE EXPRESSION STATUS SIM GPUS ARGUMENTS: the value that a program reads from the
    # object j.
    reads() {
        value=$1 expression=$2 wanted=$3 sim=$4 gpus=$5 arguments=$6
        # shellcheck disable=SC2086
        "$limit" --part 200 env UMRDDT_SIM="$sim" umrddt_sim $gpus umrddt_info --json $arguments >"$work/out" 2>"$work/err"
        [ $? -eq "$wanted" ] || bad "for programs: $arguments: exit status"
        said=$(python3 -c "import json, sys; j = json.load(sys.stdin); print(*($expression,))" <"$work/out" 2>>"$work/err")
        [ "$said" = "$value" ] || bad "for programs: $expression is '$said', not '$value'"
    }
    reads "True ob1 False" 'j["software_hca"], j["open_mpi"]["base_pml"], j["open_mpi"]["supports_gpu_memory"]' 0 "" "" "" 2>/dev/null
    reads "['mlx5_0:1', 'mlx5_1:1'] True" '[d["hcas"][0]["name"] for d in j["devices"]], j["devices"][0]["hcas"][0]["umr"]' 0 devices=2 "" ""
    reads "2 True ipc" 'len(j["gpus"]), j["gpu_pairs"][0]["reach_each_other"], j["schemes"]["gpu_same_node"]["scheme"]' 0 "" "--gpus 2" ""
    reads "${built:-None}" 'j["gpu_kernels"]' 0 "" "" ""
    reads "[[[0, 2], [1]], [[1], [0, 2]]]" '[d["hcas"][0]["gpus_nearest_first"] for d in j["devices"]]' 0 devices=2,switches=2 "--gpus 3" ""
    reads "[]" 'j["devices"][0]["hcas"][0]["gpus_nearest_first"]' 0 "" "" ""
    reads "True False" 'j["hcas"][0]["usable"], j["hcas"][0]["umr"]' 0 umr=broken "" "--selftest mlx5_0"
    reads "[False, True]" '[c["usable"] for c in j["hcas"]]' 0 "" "" "--selftest mlx5_7 mlx5_0"
fi

(ulimit -l 64 && info "little locked memory" 0 "" "" "$test" "^locked memory: 64 KiB per process" "memlock" && exit $failures) ||
    bad "little locked memory"
if (ulimit -l unlimited) 2>/dev/null; then
    (ulimit -l unlimited && info "no limit of it" 0 "" "" "$test" "^locked memory: unlimited" && exit $failures) ||
        bad "no limit of locked memory"
fi

# Within a job, each process is a job of its own.
"$limit" --part 200 umrddt_sim mpirun -n 2 umrddt_info --selftest >"$work/out" 2>"$work/err" || bad "in a job: exit status $?"
[ "$(grep -c '^mlx5_0:1: usable' "$work/out")" -eq 2 ] || bad "in a job: not both processes tell"
info "a task of srun" 0 "" "SLURM_STEP_ID=0 SLURM_NODELIST=h1 SLURM_JOBID=1" "" "^  pml/umrddt works"
finish
