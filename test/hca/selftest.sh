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
    rm -rf "/dev/shm/umrddt-selftest"*"-20.99.$(printf %04d "$1")-"*
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
# Stamps that something else may have written are not trusted. (The first one is of full tiers.)
stamp=$(ls -tr "/dev/shm/umrddt-selftest"*"-20.99.$(printf %04d $fw)-"* | head -1)
start "the first tiers again" $fw 1 "" none
chmod 0644 "$stamp"
start "a stamp that others read" $fw 1 "" some
chmod 0620 "$stamp"
start "a stamp that a group writes" $fw 1 "" some
chmod 0600 "$stamp"
ln "$stamp" "$stamp-link"
start "a stamp with two names" $fw 1 "" some
mv -f "$stamp-link" "$stamp-moved"
rm -f "$stamp"
ln -s "$stamp-moved" "$stamp"
start "a stamp that is a link" $fw 1 "" some
rm -f "$stamp" "$stamp-moved"
mkdir "$stamp"
start "a stamp that is a directory" $fw 1 "" some
rmdir "$stamp"
echo >"$stamp" && chmod 0600 "$stamp"
start "a stamp with contents" $fw 1 "" some
rm -f "$stamp"
start "no stamp" $fw 1 "" some
start "the stamp of that" $fw 1 "" none
UMRDDT_TEST_NO_GUID=1
export UMRDDT_TEST_NO_GUID
start "a device without a GUID" $fw 1 "" some
start "another such device" $fw 1 "" some
unset UMRDDT_TEST_NO_GUID
start "another firmware" $((fw + 1)) 1 "" some
start "the first firmware again" $fw 1 "" none
start "no self-test" $fw 0 "" none
# A failure leaves no stamp.
stamps $fw
start "a device that fails" $fw 1 umr=broken none
start "the same device, repaired" $fw 1 "" some
finish
