#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
#
# SPDX-License-Identifier: BSD-3-Clause
#
# $HEADER$
#
# The same bytes arrive for any timing of the HCA: several seeds of random delays.

limit=$(cd "${srcdir:-$(dirname "$0")}/.." && pwd)/limit
failed=0

for options in delay=300,seed=1 delay=300,seed=2 delay=2000,seed=3 copy=pipe,delay=100,seed=4 \
    devices=2,link=eth,delay=50 wire=tcp,address=127.0.0.1,delay=200,seed=5; do
    for test in ./test_umr ./test_many ./test_srq ./test_inval; do
        if UMRDDT_SIM=$options "$limit" --part 300 $test; then
            echo "ok: $test with $options"
        else
            echo "FAILED: $test with $options"
            failed=1
        fi
    done
done
exit $failed
