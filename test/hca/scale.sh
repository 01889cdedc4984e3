#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# Many peers: memory for each, and the receives that they share.

. "${srcdir:-.}/common.sh"

few="--mca btl_umr_timeout 12 --mca btl_umr_retry_count 2"
for peers in 2 64 1024; do
    export UMRDDT_TEST_PEERS=$peers
    hca "$peers peers" "" "" many_peers
done
hca "a bound on peers" "" "--mca btl_umr_max_peers 8" bound_of_peers
HCA_THREADS=1
export HCA_THREADS
hca "a bound on peers, and threads" "" "--mca btl_umr_max_peers 8" bound_of_threads bound_of_refusal
hca "room for another peer, and threads" "" "--mca btl_umr_max_peers 1" closed_in_turn
unset HCA_THREADS
hca "room for another peer" "" "--mca btl_umr_max_peers 1" closed_in_turn open_while_used \
    old_answer closed_often followed_in_use broken_makes_room
hca "the same with two devices" devices=2 "--mca btl_umr_max_peers 1" closed_hca_fails
hca "the same on RoCE, receives not shared" link=eth "--mca btl_umr_max_peers 1 --mca btl_umr_srq_depth 0" closed_in_turn \
    followed_in_use broken_makes_room
UMRDDT_TEST_PEERS=64
hca "64 peers, each with receives of its own" "" "--mca btl_umr_srq_depth 0" many_peers
hca "a device without shared receives" srqs=0 "" many_peers fin_credits

# A process posts a receive before it requests a FIN, so no receiver is ever not ready.
HCA_SIM=--counters
hca "shared receives" "" "$few --mca btl_umr_srq_depth 8" shares broken_with_fins broken_in_silence \
    stopped_by_device fin_credits 2>scale.err
HCA_SIM=
cat scale.err
[ "$(grep -c 'umrddt_sim.* rnrs=0 ' scale.err)" -eq 2 ] || {
    echo "FAILED: a receiver was not ready"
    failures=$((failures + 1))
}
rm -f scale.err
hca "four shared receives" "" "--mca btl_umr_srq_depth 4" fin_credits plain_keys
hca "the shared receives fail" "" "$few --mca btl_umr_srq_depth 8" receives_fail plain_keys
finish
