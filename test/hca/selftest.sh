#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# The self-test at start-up: bytes each time, refusals of old keys once a boot, device and firmware.

OWN_DEVICES=1
. "${srcdir:-.}/common.sh"

# A firmware of this run only. (The number has at most four digits.)
fw=$(($$ % 9000 + 1))
# stamps: removes what other runs with the same number left
stamps() {
    rm -f "/dev/shm/umrddt-selftest"*"-20.99.$(printf %04d "$1")-"*
}
trap 'stamps $fw; stamps $((fw + 1))' EXIT
stamps $fw
stamps $((fw + 1))

# start TITLE FW SELFTEST DEVICE EVENTS: one process starts; whether its device reported events, which
# are those of refused keys
start() {
    title=$1
    "$limit" --part 200 env UMRDDT_SIM="fw=$2,$4" OMPI_MCA_btl_umr_selftest="$3" OMPI_MCA_ess_singleton_isolated=1 \
        OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader umrddt_sim --counters ./hca_test --device >selftest.out 2>&1 || {
        cat selftest.out
        echo "FAILED: $title"
        failures=$((failures + 1))
    }
    events=$(sed -n 's/.*umrddt_sim.* events=\([0-9]*\).*/\1/p' selftest.out)
    commands=$(sed -n 's/.*umrddt_sim.* commands=\([0-9]*\).*/\1/p' selftest.out)
    echo "== $title: btl_umr_selftest=$3: $commands commands to the device, $events events"
    case $5:${events:-none} in
    none:0 | some:[1-9]*) ;;
    *)
        echo "FAILED: $title: not $5"
        failures=$((failures + 1))
        ;;
    esac
    rm -f selftest.out
}

start "the first process" $fw 1 "" some
start "the next one" $fw 1 "" none
start "other tiers" $fw 1 max_sq_desc=256 some
start "other tiers, the next one" $fw 1 max_sq_desc=256 none
start "on request" $fw 2 "" some
start "another firmware" $((fw + 1)) 1 "" some
start "the first firmware again" $fw 1 "" none
start "no self-test" $fw 0 "" none
# A failure leaves no stamp.
stamps $fw
start "a device that fails" $fw 1 umr=broken none
start "the same device, repaired" $fw 1 "" some
finish
