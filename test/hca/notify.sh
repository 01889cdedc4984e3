#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# The FIN of a large write in a write of its own: numbers of writes, small send queues, failures.

. "${srcdir:-.}/common.sh"

few="--mca btl_umr_timeout 12 --mca btl_umr_retry_count 2"

# from SIZE TITLE SIM_OPTIONS MPIRUN_OPTIONS TEST...: runs with this limit
from() {
    UMRDDT_TEST_NOTIFY=$1
    export UMRDDT_TEST_NOTIFY
    shift
    title="from $UMRDDT_TEST_NOTIFY bytes on"
    title=$title${1:+, $1} sim=$2 options=$3
    shift 3
    hca "$title" "$sim" "--mca btl_umr_notify_size $UMRDDT_TEST_NOTIFY $options" "$@"
}

# posts NUMBER SIZE DEPTH: batches of 3 writes and their FIN in a send queue of DEPTH
posts() {
    UMRDDT_TEST_POSTS=$1
    export UMRDDT_TEST_POSTS
    from "$2" "posting fails, send queue of $3" "" "$few --mca btl_umr_sq_depth $3" notify_unposted
    unset UMRDDT_TEST_POSTS
}

direct="direct_layouts direct_ranges direct_odd direct_many"
for size in 0 1 4096; do
    from $size "" "" "" notify_value notify_lengths many_puts random_layouts $direct
done
from 100 "" "" "" $direct
# Odd and even sizes: a batch ends before the FIN, or with it.
for depth in 2 3 4 8; do
    from 1 "send queue of $depth" "" "--mca btl_umr_sq_depth $depth" many_puts direct_many direct_layouts
    from 1 "send queue of $depth, late" delay=200 "--mca btl_umr_sq_depth $depth" many_puts direct_many
done
from 1 "receives for few FINs" "" "--mca btl_umr_rq_depth 4" fin_credits
posts 1 0 8
posts 2 0 2
posts 1 1 4
posts 2 1 3
posts 3 1 2
for size in 0 1; do
    from $size "a write fails" "" "$few" notify_fails notify_refused
    from $size "a write fails, send queue of 3" "" "$few --mca btl_umr_sq_depth 3" notify_fails notify_refused
done
from 1 "the sender breaks" delay=200 "$few --mca btl_umr_sq_depth 3" broken_by_sender
from 1 "the sender breaks, no mkeys" delay=200 "$few --mca btl_umr_sq_depth 3" direct_broken
from 1 "the receiver breaks" "" "$few --mca btl_umr_sq_depth 3" broken_by_receiver
from 1 "the receiver breaks, no mkeys" "" "$few --mca btl_umr_sq_depth 3" direct_refused
from 1 "closed in use" delay=500 "$few --mca btl_umr_sq_depth 3" closed_in_use plain_keys closed_in_use

# What the software HCA counts: one more write for each message, with as many bytes.
HCA_SIM=--counters
writes() {
    from "$1" "counted" "" "--mca btl_umr_selftest 2" notify_lengths 2>notify.err
    cat notify.err
    sed -n 's/.*umrddt_sim.* writes=\([0-9]*\) .* wire_bytes=\([0-9]*\) .*/\1 \2/p' notify.err | sort -u
    rm -f notify.err
}
writes 0 >notify.0
writes 1 >notify.1
cat notify.0 notify.1
unset HCA_SIM
never=$(tail -n 1 notify.0) always=$(tail -n 1 notify.1)
if [ "${never#* }" != "${always#* }" ] || [ $((${never% *} + 10)) -ne "${always% *}" ]; then
    echo "FAILED: writes and bytes: '$never' without a write for the FIN, '$always' with one"
    failures=$((failures + 1))
fi
rm -f notify.0 notify.1
finish
