#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
#
# SPDX-License-Identifier: BSD-3-Clause
#
# $HEADER$
#
# The tests of the HCA with TCP as its wire, on InfiniBand and on RoCE; fabrics of another name stay
# out; and it is TCP indeed. (Between hosts: test/hosts.)

. "${srcdir:-$(dirname "$0")}/pingpong.sh"
tcp=wire=tcp,address=127.0.0.1
failed=0

bad() {
    echo "FAILED: $*"
    cat "$work"/*
    failed=1
}

# (On RoCE, whose only difference is how peers are named, a part of them unless this is test/run --all.)
all="test_umr test_keys test_mkeys test_transfers test_peers test_queues test_srq test_inval test_events test_atomics test_many"
for options in $tcp $tcp,link=eth; do
    tests=$all
    test "${UMRDDT_TEST_ALL:-}" != "" || test $options = $tcp || tests="test_umr test_transfers test_peers test_many"
    for test in $tests; do
        if UMRDDT_SIM=$options "$limit" --part 300 ./$test > "$work/out" 2>&1; then
            echo "ok: $test with $options"
        else
            bad "$test with $options"
        fi
    done
done

# Repeated requests were answered and not performed again; the test itself has checked every byte.
if UMRDDT_SIM=$tcp "$limit" --part 300 "$wrapper" --counters ./test_breaks > "$work/out" 2>&1 &&
    grep -q "breaks=[1-9]" "$work/out" && grep -q "again=[1-9]" "$work/out"; then
    echo "ok: test_breaks with $tcp"
else
    bad "test_breaks with $tcp"
fi

if ! command -v ibv_rc_pingpong > /dev/null 2>&1; then
    echo "not here: fabrics (there is no ibv_rc_pingpong)"
    exit $failed
fi
# A process with another fabric is refused, though all numbers are right.
pair $tcp,fabric=a,port=25000 $tcp,fabric=a,port=25000 -n 50 || bad "two of one fabric do not reach each other"
if pair $tcp,fabric=a $tcp,fabric=b -n 50 || ! grep -q "transport retry counter exceeded" "$work/client"; then
    bad "two of different fabrics reach each other"
fi
# With the ports of the one the other is not found.
if pair $tcp,port=25000 $tcp,port=30000 -n 50 || ! grep -q "transport retry counter exceeded" "$work/client"; then
    bad "the port makes no difference"
fi
test $failed -ne 0 || echo "ok: fabrics and ports"
exit $failed
