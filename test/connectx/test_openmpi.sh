#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
#
# SPDX-License-Identifier: BSD-3-Clause
#
# $HEADER$
#
# The rest of an MPI job is not harmed by the device, nor does it use it: pml/ob1 with all btls that
# there are, pml/ucx, pml/cm; nothing is printed that was not printed without the device.

wrapper=${UMRDDT_SIM_WRAPPER:-../../sim/connectx/umrddt_sim}
limit=$(cd "${srcdir:-$(dirname "$0")}/.." && pwd)/limit
program=./mpi_ring
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
failed=0

if ! test -x $program || ! command -v mpirun > /dev/null 2>&1; then
    echo "skipped: there is no mpirun or no mpicc"
    exit 77
fi
# Only the settings of the test: a job inside of another one inherits its settings.
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
export OMPI_MCA_rmaps_base_oversubscribe OMPI_MCA_mpi_yield_when_idle

# job NAME MPIRUN-ARGUMENT...
job() {
    name=$1
    shift
    "$limit" --part 300 mpirun --oversubscribe -n 2 "$@" $program > "$work/without" 2> "$work/without.err"
    without=$?
    if test $without -ne 0; then
        echo "not here: $name (it does not run without the hca either)"
        return
    fi
    "$limit" --part 300 "$wrapper" mpirun --oversubscribe -n 2 "$@" $program > "$work/with" 2> "$work/with.err"
    with=$?
    if test $with -ne 0 || ! cmp -s "$work/without" "$work/with"; then
        echo "FAILED: $name ended with $with"
        cat "$work/with" "$work/with.err"
        failed=1
    elif test -s "$work/with.err" && ! test -s "$work/without.err"; then
        echo "FAILED: $name has other output than without the HCA"
        cat "$work/with.err"
        failed=1
    else
        echo "ok: $name"
    fi
}

job "as it comes"
job "ob1" --mca pml ob1
job "ob1 on self,vader" --mca pml ob1 --mca btl self,vader
job "ob1 on openib too" --mca pml ob1 --mca btl openib,self,vader
job "ob1 on all btls" --mca pml ob1 --mca btl ^uct --mca osc ^ucx
job "ucx" --mca pml ucx --mca opal_common_ucx_tls any --mca opal_common_ucx_devices any
job "cm on ofi" --mca pml cm --mca mtl ofi
exit $failed
