#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# The selected device of several: the near one, and among equally near ones one per process in turn.

OWN_DEVICES=1
. "${srcdir:-.}/common.sh"

tree=$(mktemp -d) || exit 99
trap 'rm -rf "$tree"' EXIT
UMRDDT_SIM=devices=3
export UMRDDT_SIM tree
umrddt_sim sh -c 'cp -r "$SYSFS_PATH/." "$tree"' || exit 99

# local_cpus NUMBER CPULIST: sets the CPUs that the kernel reports for a device
local_cpus() {
    echo "$2" >"$tree/class/infiniband/mlx5_$1/device/local_cpulist"
}

# chosen TITLE PROCESSES EXPECTED: the devices of the processes, in their order
chosen() {
    # shellcheck disable=SC2016
    got=$("$limit" --part 200 umrddt_sim sh -c 'SYSFS_PATH=$tree; export SYSFS_PATH; exec "$@"' sh mpirun -n "$2" \
        --mca pml ob1 --mca btl self,vader "$hca_test" --device | sort | sed 's/.*: //' | tr '\n' ' ')
    echo "$1: $got"
    if [ "$got" != "$3 " ]; then
        echo "FAILED: $1: not $3"
        failures=$((failures + 1))
    fi
}

chosen "nothing known" 1 "mlx5_0:1"
chosen "nothing known, in turn" 4 "mlx5_0:1 mlx5_1:1 mlx5_2:1 mlx5_0:1"
local_cpus 0 1000-1023
local_cpus 1 0-500,501-999,1000
local_cpus 2 1000-1023
chosen "one near" 1 "mlx5_1:1"
chosen "one near, for all" 3 "mlx5_1:1 mlx5_1:1 mlx5_1:1"
local_cpus 2 0-1023
chosen "two near, in turn" 3 "mlx5_1:1 mlx5_2:1 mlx5_1:1"
local_cpus 1 ""
local_cpus 2 "nonsense"
chosen "unreadable lists" 2 "mlx5_0:1 mlx5_1:1"
finish
