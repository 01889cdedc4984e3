#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# The pool of mkeys: creation by which thread, when, and how many.

. "${srcdir:-.}/common.sh"

# said TIMES TEXT HCA_ARGUMENT...: runs hca and checks that the output of both processes has TEXT
# this many times (mpirun may put two messages into one line).
said() {
    times=$1 text=$2
    shift 2
    hca "$@" >pool.out 2>&1
    cat pool.out
    found=$(grep -oF "$text" pool.out | wc -l)
    if [ "$found" -ne "$times" ]; then
        echo "FAILED: \"$text\" $found times: $1"
        failures=$((failures + 1))
    fi
    rm -f pool.out
}

few="--mca btl_umr_mkeys 16 --mca btl_umr_mkeys_max 40 --mca btl_umr_mkeys_step"
said 2 "the device creates no more than" "half, steps of 4" "" "$few 4" pool_growing pool_late pool_limit pool_closed pool_forked
hca "all, steps of 3, a bound that is no step" "" "--mca btl_umr_mkeys 8 --mca btl_umr_mkeys_step 3 \
    --mca btl_umr_mkeys_max 21 --mca btl_umr_mkeys_low 100" pool_growing
hca "the last one, steps of 1, everything late" delay=100 "--mca btl_umr_mkeys 2 --mca btl_umr_mkeys_step 1 \
    --mca btl_umr_mkeys_max 7 --mca btl_umr_mkeys_low 1" pool_growing
hca "a helper that is late, asked for all at once" "" "$few 1000" pool_late
hca "refused for a while" "" "$few 4" pool_again
hca "no helper" "" "$few 4 --mca btl_umr_mkeys_low 0" pool_off
said 2 "helper thread for mkeys cannot be created" "no thread" "" "$few 4" pool_no_thread

echo "== a part that is more than all"
OMPI_MCA_ess_singleton_isolated=1 OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader OMPI_MCA_btl_umr_mkeys_low=101 \
    "$limit" --part 200 umrddt_sim ./hca_test --device >pool.out 2>&1
status=$?
cat pool.out
if [ $status -ne 0 ] || ! tr -d '\n' <pool.out | grep -q 'Parameter: btl_umr_mkeys_low *Given: *101 *Used: *100'; then
    echo "FAILED ($status): a part that is more than all"
    failures=$((failures + 1))
fi
rm -f pool.out
finish
