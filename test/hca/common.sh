# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# To be read by the tests of this directory.

# UMRDDT_TEST_DEVICE=NAME: a device of test/devices for tests that name none; OWN_DEVICES=1: this
# test has its own; NO_MKEYS=1: it works without mkeys if the device has none.
# shellcheck source=../devices
. "${srcdir:-.}/../devices"
[ -z "${OWN_DEVICES:-}" ] || UMRDDT_TEST_DEVICE=
if ! use_device "${UMRDDT_TEST_DEVICE:-}"; then
    echo "no device '$UMRDDT_TEST_DEVICE' in test/devices"
    exit 99
fi
if [ "${UMRDDT_TEST_DEVICE:-}" = no-umr ] && [ -z "${NO_MKEYS:-}" ]; then
    echo "SKIPPED: this is about mkeys; direct.sh tries devices that have none"
    exit 77
fi

failures=0
limit=$(cd "${srcdir:-.}/.." && pwd)/limit

# libtool may have made a script of it, which debuggers do not accept.
hca_test=./hca_test
[ -x ./.libs/hca_test ] && hca_test=./.libs/hca_test

# The HCA component checks its internal consistency, now and then and at the end.
: "${OMPI_MCA_btl_umr_check=20}"
export OMPI_MCA_btl_umr_check

# hca TITLE SIM_OPTIONS MPIRUN_OPTIONS TEST...: two processes on the software ConnectX.
# (MPIRUN_OPTIONS is one word, split here.)
hca() {
    title=$1 sim=$device_options$2 options=$3
    sim=${sim%,}
    shift 3
    echo "== $title: UMRDDT_SIM=$sim $options: $*"
    # shellcheck disable=SC2086
    UMRDDT_SIM=$sim "$limit" --part 300 umrddt_sim ${HCA_SIM:-} mpirun -n 2 \
        ${HCA_HOST:---mca pml ob1 --mca btl self,vader} $options ${HCA_WRAPPER:-} "$hca_test" "$@"
    status=$?
    if [ $status -ne 0 ]; then
        echo "FAILED ($status): $title"
        failures=$((failures + 1))
    fi
}

# tiers TITLE SIM_OPTIONS MPIRUN_OPTIONS BREAK TIERS TEST...: like hca, on a device that implements
# BREAK wrongly (see tiers.c); the HCA component must know the usable tiers.
tiers() {
    title=$1 sim=$2 options=$3
    UMRDDT_TEST_BREAK=$4 UMRDDT_TEST_TIERS=$5
    export UMRDDT_TEST_BREAK UMRDDT_TEST_TIERS
    shift 5
    hca "$title" "$sim" "$options" tiers "$@"
    unset UMRDDT_TEST_BREAK UMRDDT_TEST_TIERS
}

# absent TITLE SIM_OPTIONS ("none": no umrddt_sim) NAME=VALUE... REASON MESSAGES: the HCA must not
# be usable, for this reason (a grep pattern), with this number of messages on stderr. One process
# without mpirun: mpirun 4.1 sometimes loses a help message ("ORTE_ERROR_LOG: Data unpack ...
# show_help.c").
absent() {
    title=$1 sim=$2 options=$3 reason=$4 messages=$5
    echo "== $title: UMRDDT_SIM=$sim $options"
    wrapper=umrddt_sim
    if [ "$sim" = none ]; then
        wrapper=
        sim=
    fi
    # shellcheck disable=SC2086
    "$limit" --part 200 env UMRDDT_SIM="$sim" OMPI_MCA_ess_singleton_isolated=1 OMPI_MCA_pml=ob1 \
        OMPI_MCA_btl=self,vader $options $wrapper ./hca_test --absent \
        >absent.$$.out 2>absent.$$.err
    status=$?
    cat absent.$$.out absent.$$.err
    said=$(grep -c '^  Reason:\|^  Available devices:' absent.$$.err)
    if [ $status -ne 0 ] || ! grep -q "not available: .*$reason" absent.$$.out || [ "$said" -ne "$messages" ]; then
        echo "FAILED ($status, $said messages): $title"
        failures=$((failures + 1))
    elif [ "$messages" -eq 0 ] && [ -s absent.$$.err ]; then
        echo "FAILED (not silent): $title"
        failures=$((failures + 1))
    fi
    rm -f absent.$$.out absent.$$.err
}

finish() {
    echo "$failures failed"
    [ $failures -eq 0 ]
    exit
}
