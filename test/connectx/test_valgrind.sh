#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
#
# SPDX-License-Identifier: BSD-3-Clause
#
# $HEADER$
#
# The software HCA works below valgrind, and gives it nothing to complain of.

limit=$(cd "${srcdir:-$(dirname "$0")}/.." && pwd)/limit
wrapper=${UMRDDT_SIM_WRAPPER:-../../sim/connectx/umrddt_sim}

if ! command -v valgrind > /dev/null 2>&1; then
    echo "skipped: there is no valgrind"
    exit 77
fi
UMRDDT_SIM_TEST=1
export UMRDDT_SIM_TEST
for options in "$UMRDDT_SIM" wire=tcp,address=127.0.0.1; do
    UMRDDT_SIM=$options "$limit" --part 300 "$wrapper" valgrind -q --error-exitcode=9 ./test_umr || exit
done
