#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# Several HCAs in one process: which ones are used, how they pair with those of a peer, and the HCA
# of each message.

OWN_DEVICES=1
. "${srcdir:-.}/common.sh"

tree=$(mktemp -d) || exit 99
trap 'rm -rf "$tree"' EXIT
export tree

# trees DEVICES [MORE_OPTIONS]: makes the device files of both processes, unmodified
trees() {
    UMRDDT_SIM=devices=$1${2:+,$2}
    export UMRDDT_SIM
    rm -rf "$tree/0" "$tree/1"
    mkdir "$tree/0" "$tree/1"
    # shellcheck disable=SC2016
    umrddt_sim sh -c 'cp -r "$SYSFS_PATH/." "$tree/0" && cp -r "$SYSFS_PATH/." "$tree/1"' || exit 99
}

# node RANK DEVICE NODE: sets the node of a device
node() {
    echo "$3" >"$tree/$1/class/infiniband/mlx5_$2/device/numa_node"
}

# subnet RANK DEVICE NUMBER: puts the device into another subnet
subnet() {
    gid=$tree/$1/class/infiniband/mlx5_$2/ports/1/gids/0
    sed "s/^fe80:0000:0000:0000/fe80:0000:0000:000$3/" "$gid" >"$gid.new" && mv "$gid.new" "$gid"
}

# both COMMAND...: runs two processes, each with its files
both() {
    # shellcheck disable=SC2016,SC2086
    "$limit" --part 200 umrddt_sim ${HCA_SIM:-} mpirun -n 2 --mca pml ob1 --mca btl self,vader $mca \
        sh -c 'SYSFS_PATH=$tree/$OMPI_COMM_WORLD_RANK; export SYSFS_PATH
            eval "device=\$device$OMPI_COMM_WORLD_RANK"
            [ -z "$device" ] || { OMPI_MCA_btl_umr_device=$device; export OMPI_MCA_btl_umr_device; }
            exec "$@"' sh "$@"
}

# run TITLE TEST...
run() {
    title=$1
    shift
    echo "== $title: $UMRDDT_SIM $mca: $*"
    # The self-test of each HCA takes half of the time. The first of these has it, and with --all each one.
    if ! (
        [ -n "${UMRDDT_TEST_ALL:-}" ] || [ -z "$selftest" ] || mca="$mca --mca btl_umr_selftest 0"
        both "$hca_test" "$@"
    ); then
        echo "FAILED: $title"
        failures=$((failures + 1))
    fi
}

# said TITLE OPTION RANK0 RANK1: checks the output of each process
said() {
    # mpirun 5.0 ends help messages with a byte of 0. (Which HCAs are used does not depend on the self-test of each, which
    # takes half of the time.)
    got=$(mca="$mca --mca btl_umr_selftest 0" && both "$hca_test" "$2" 2>"$tree/err" | tr -d '\0' | grep -a "^rank" | sort)
    wanted=$(printf 'rank 0: %s\nrank 1: %s' "$3" "$4")
    echo "$1: $(echo "$got" | tr '\n' ';')"
    if [ "$got" != "$wanted" ]; then
        echo "FAILED: $1: not $wanted"
        cat "$tree/err"
        failures=$((failures + 1))
    fi
}

mca="" device0="" device1=""
export device0 device1

# The HCAs that a process uses.
trees 3
said "all, in turn" --hcas "mlx5_0:1 mlx5_1:1 mlx5_2:1" "mlx5_1:1 mlx5_2:1 mlx5_0:1"
mca="--mca btl_umr_max_hcas 2"
said "two of three" --hcas "mlx5_0:1 mlx5_1:1" "mlx5_1:1 mlx5_2:1"
mca="" device0=mlx5_2,mlx5_0:1 device1=mlx5_1
said "named ones, in that order" --hcas "mlx5_2:1 mlx5_0:1" "mlx5_1:1"
device0=mlx5_0,mlx5_0:1,mlx5_0 device1=mlx5_0:1,mlx5_7
said "named twice; one that is not there" --hcas "mlx5_0:1" "mlx5_0:1"
# mpirun 4.1 sometimes loses a help message and reports that
grep -aq 'btl_umr_device: *mlx5_7\|ORTE_ERROR_LOG: .* in file .*show_help\.c' "$tree/err" || {
    echo "FAILED: no process reports that there is no mlx5_7"
    failures=$((failures + 1))
}
device0="" device1=""
trees 3 down=1
said "one port down" --hcas "mlx5_0:1 mlx5_2:1" "mlx5_2:1 mlx5_0:1"
trees 3
mkdir "$tree/0/class/infiniband/mlx5_0/ports/2" "$tree/1/class/infiniband/mlx5_2/ports/2"
echo "1: DOWN" >"$tree/0/class/infiniband/mlx5_0/ports/2/state"
device0=mlx5_0,mlx5_1 device1=mlx5_2
said "ports that the kernel lists" --hcas "mlx5_0:1 mlx5_1:1" "mlx5_2:1"
if [ "$(grep -c "not used: mlx5_[02] has no port 2" "$tree/err")" -ne 1 ]; then
    echo "FAILED: a port that is down was tried, or the other one was not"
    failures=$((failures + 1))
fi
device0="" device1=""

# The nearest first. (test_topology has distances of nodes.)
trees 3
for rank in 0 1; do
    echo 1000-1023 >"$tree/$rank/class/infiniband/mlx5_0/device/local_cpulist"
    echo 0-1023 >"$tree/$rank/class/infiniband/mlx5_2/device/local_cpulist"
done
said "the near one first" --hcas "mlx5_2:1 mlx5_0:1 mlx5_1:1" "mlx5_2:1 mlx5_0:1 mlx5_1:1"

# The pairs of HCAs. HCA i of each process is on node i: the node of the memory selects the lane,
# and a message in each direction shows that the other side found the same one.
two() {
    trees 2 "${1:-}"
    for rank in 0 1; do
        node $rank 0 0
        node $rank 1 1
    done
}
both_hcas="mlx5_0:1 mlx5_1:1 mlx5_0:1 mlx5_0:1"
two
said "two and two" --lanes "$both_hcas" "mlx5_0:1 mlx5_1:1 mlx5_1:1 mlx5_1:1"
two link=eth
said "two and two, RoCE" --lanes "$both_hcas" "mlx5_0:1 mlx5_1:1 mlx5_1:1 mlx5_1:1"
two
subnet 0 0 1
subnet 1 1 1
said "one subnet each, crosswise" --lanes "$both_hcas" "mlx5_0:1 mlx5_1:1 mlx5_1:1 mlx5_1:1"
two
subnet 0 0 1
subnet 1 0 2
said "one subnet in common" --lanes "mlx5_1:1 mlx5_1:1 mlx5_1:1 mlx5_1:1" "mlx5_1:1 mlx5_1:1 mlx5_1:1 mlx5_1:1"
two
for device in 0 1; do
    subnet 0 $device 1
    subnet 1 $device 2
done
said "no subnet in common" --lanes unreachable unreachable
two
device1=mlx5_1
said "one side has one" --lanes "mlx5_0:1 mlx5_0:1 mlx5_0:1 mlx5_0:1" "mlx5_1:1 mlx5_1:1 mlx5_1:1 mlx5_1:1"
subnet 0 0 1
said "one side has one, of the other's second subnet" --lanes "mlx5_1:1 mlx5_1:1 mlx5_1:1 mlx5_1:1" "mlx5_1:1 mlx5_1:1 mlx5_1:1 mlx5_1:1"
device1=""
trees 4
for rank in 0 1; do
    for device in 0 1 2 3; do
        node $rank $device $device
    done
done
four="mlx5_0:1 mlx5_1:1 mlx5_2:1 mlx5_3:1"
said "four and four" --lanes "$four" "$four"
# The HCA near to a GPU: the one with the longest common path, then the one on a near node, then the
# first of the process, which is near to the GPU with its own number. The last check is for a GPU
# that does not exist.
# at RANK BUS PATH: puts the device with this bus number there, below devices
at() {
    new=$tree/$1/devices/$3/0000:$2:00.0
    old=$(readlink -f "$tree/$1/bus/pci/devices/0000:$2:00.0")
    mkdir -p "$(dirname "$new")"
    mv "$old" "$new"
    ln -sfn "../../../devices/$3/0000:$2:00.0" "$tree/$1/bus/pci/devices/0000:$2:00.0"
    for device in "$new"/infiniband/*; do
        [ ! -d "$device" ] || ln -sfn "../../devices/$3/0000:$2:00.0/infiniband/${device##*/}" \
            "$tree/$1/class/infiniband/${device##*/}"
    done
}
device0=mlx5_0,mlx5_1,mlx5_2,mlx5_3 device1=$device0
HCA_SIM="--gpus 4"
trees 3 switches=3
said "each on a switch with a GPU" --gpus "mlx5_0:1 mlx5_1:1 mlx5_2:1 mlx5_0:1 mlx5_0:1" "mlx5_0:1 mlx5_1:1 mlx5_2:1 mlx5_0:1 mlx5_1:1"
# Capital letters in the driver's bus id, and another device number in the process than on the
# machine.
CUDA_VISIBLE_DEVICES=10,1
UMRDDT_GPU=devices=12
export CUDA_VISIBLE_DEVICES UMRDDT_GPU
HCA_SIM="--gpus 12"
said "numbered anew" --gpus "mlx5_1:1 mlx5_1:1 mlx5_1:1" "mlx5_1:1 mlx5_1:1 mlx5_1:1"
unset CUDA_VISIBLE_DEVICES
HCA_SIM="--gpus 3"
trees 4 switches=1
for rank in 0 1; do
    # one host bridge for mlx5_0 and mlx5_1 and GPUs 0 and 1; a port of it for mlx5_1, and a switch in front of it for GPU 1 and
    # mlx5_2; GPU 2 on another bridge, mlx5_3 on a third
    at $rank 80 pci0000:20/0000:20:01.0
    at $rank 81 pci0000:20/0000:20:02.0/0000:21:00.0/0000:22:04.0
    at $rank 82 pci0000:20/0000:20:02.0/0000:21:00.0/0000:22:05.0
    at $rank 83 pci0000:60/0000:60:01.0
    at $rank 01 pci0000:20/0000:20:02.0
    at $rank 02 pci0000:20/0000:20:02.0/0000:21:00.0/0000:22:05.0
    at $rank 03 pci0000:40/0000:40:01.0
done
# mlx5_1 and mlx5_2 are equally near to GPU 0
said "host bridges, ports and switches" --gpus "mlx5_1:1 mlx5_2:1 mlx5_1:1 mlx5_1:1" "mlx5_2:1 mlx5_2:1 mlx5_2:1 mlx5_2:1"
for rank in 0 1; do
    for device in 0 1 2 3; do
        node $rank $device $device
    done
    node $rank 2 1
    echo 3 >"$tree/$rank/bus/pci/devices/0000:03:00.0/numa_node"
    echo 3 >"$tree/$rank/bus/pci/devices/0000:02:00.0/numa_node"
done
said "another bridge: by the node" --gpus "mlx5_1:1 mlx5_2:1 mlx5_3:1 mlx5_1:1" "mlx5_2:1 mlx5_2:1 mlx5_3:1 mlx5_2:1"
rm "$tree/0/bus/pci/devices/0000:02:00.0"
said "one that the kernel does not list" --gpus "mlx5_1:1 mlx5_1:1 mlx5_3:1 mlx5_1:1" "mlx5_2:1 mlx5_2:1 mlx5_3:1 mlx5_2:1"
UMRDDT_GPU=fail=cuDeviceGetPCIBusId:*:801
said "a driver that does not tell" --gpus "mlx5_1:1 mlx5_1:1 mlx5_1:1 mlx5_1:1" "mlx5_2:1 mlx5_2:1 mlx5_2:1 mlx5_2:1"
unset UMRDDT_GPU
device0="" device1="" HCA_SIM=""
# Only rank 0 has a port beside a GPU: all of its ports pair.
two switches=1
at 0 80 pci0000:20/0000:20:01.0
at 0 81 pci0000:60/0000:60:01.0
at 0 01 pci0000:20/0000:20:02.0
rm -r "$tree"/1/bus/pci/devices/0000:0*
said "GPUs on one side only" --lanes "$both_hcas" "mlx5_0:1 mlx5_1:1 mlx5_1:1 mlx5_1:1"

# The HCA of a message.
two
selftest=
run "the nearest hca" hcas_near hcas_unknown hcas_strange hcas_near
selftest=0
run "memory that is not what it was" hcas_moved
run "keys of another hca" hcas_apart
run "a lane breaks" hcas_break
run "the receiver's end of a lane breaks" hcas_deaf
run "all lanes of two hcas" hcas_beside
run "a hca maps no more" hcas_fail
mca="--mca btl_umr_srq_depth 0"
run "receives of their own" hcas_near hcas_break
run "receives of their own, one end breaks" hcas_deaf
run "receives of their own, all lanes" hcas_beside
mca="--mca btl_umr_mkeys 4 --mca btl_umr_mkeys_max 16 --mca btl_umr_key_cache 4"
run "few keys for all" hcas_near
mca=""
trees 2
run "nothing known" hcas_unknown hcas_strange
trees 4
run "all lanes of four hcas" hcas_beside
mca="--mca btl_umr_srq_depth 0"
run "all lanes of four hcas, receives of their own" hcas_beside
mca=""
# mlx5_2 is on another network, which looks like the same one: mlx5_1 and mlx5_2 are a pair
trees 3 fabric=a/a/b
for rank in 0 1; do
    for device in 0 1 2; do
        node $rank $device $device
    done
done
mca="--mca btl_umr_timeout 15"
run "the first lane of all does not work" hcas_dead_first
run "a lane whose ports do not reach each other" hcas_dead
# Here the device waits for ever; above it may report before the limit of a probe.
mca="--mca btl_umr_timeout 0 --mca btl_umr_srq_depth 0"
run "the same, receives of their own" hcas_dead
mca=""
two
run "a slow answer to a probe" hcas_slow
run "a route that is found later" hcas_route
run "a route that is not found" hcas_no_route
run "a lane that has only received" hcas_route_back
HCA_THREADS=1
export HCA_THREADS
run "slow commands" hcas_connecting
unset HCA_THREADS
trees 2 down=1
mca="--mca btl_umr_mkeys 4 --mca btl_umr_mkeys_max 64"
run "the share of a port that is down" hcas_share
mca=""
trees 1
mca="--mca btl_umr_timeout 10"
run "no probe of the only lane" hcas_alone hcas_route
trees 2 link=eth,gids=v4,fabric=a/b,route_ms=50
mca="--mca btl_umr_max_hcas 1"
said "no route of the only lane" --no-route "8 more, late" "8 more, late"
mca=""
two umr=off
run "no UMR" hcas_unknown hcas_break
finish
