#!/bin/bash
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# umrddt_tune of two hosts and of one: both write their tuning parameters to one file, in any order,
# and keep those of the other; hosts that differ are reported, and have files of their own. Runs
# within "world".

agent=$UMRDDT_HOSTS_DIR/agent
out=$UMRDDT_WORLD/out
config=$UMRDDT_WORLD/config
checks=0
export OMPI_MCA_plm_rsh_agent=$agent PRTE_MCA_plm_ssh_agent=$agent
export OMPI_MCA_oob_tcp_if_include=10.71.0.0/24 PRTE_MCA_prte_if_include=10.71.0.0/24

fail() {
    echo "FAILED: $*"
    cat "$out" "$config"/umrddt/*
    exit 1
}

# tune HOSTS ARGUMENTS...: with two processes and software HCAs; skips measurements for which there
# is no time.
tune() {
    local hosts=$1
    shift
    "$UMRDDT_HOSTS_DIR/../limit" --part 120 mpirun --host "$hosts" -n 2 --map-by node --mca pml umrddt --mca pml_umrddt_base_pml ob1 \
        --mca btl tcp,self --mca btl_tcp_if_include 10.71.0.0/24 -x UMRDDT_SIM -x XDG_CONFIG_HOME="$config" "$UMRDDT_SIM_WRAPPER" \
        "$UMRDDT_BUILDDIR/bench/umrddt_tune" --no-gpu --seconds 0 "$@" >"$out" 2>&1 || fail "umrddt_tune on $hosts: exit status $?"
}

# says PATTERN; silent PATTERN: check the last run. has PATTERN: checks the file.
says() {
    checks=$((checks + 1))
    grep -Eq "$1" "$out" || fail "it says '$1'"
}
silent() {
    checks=$((checks + 1))
    ! grep -Eq "$1" "$out" || fail "it does not say '$1'"
}
has() {
    checks=$((checks + 1))
    grep -Eq "$1" "$config"/umrddt/model-*.txt || fail "the file has '$1'"
}
# figure NAME: prints its line in the file, if it was measured
figure() { grep "^$1 " "$config"/umrddt/model-*.txt; }

# --- far, then near -----------------------------------------------------------------------------------

tune h1:1,h2:1
silent 'nodes differ'
says '^\* far_latency '
says '^  near_latency '
has '^far umrddt_tune '
has '^# near_latency '
# as if there had been time to measure the HCA, too
sed -i 's/^# hca_latency .*/hca_latency 777/' "$config"/umrddt/model-*.txt
far=$(figure far_latency)
tune h1:2 --seconds 2
silent 'made anew'
says '^\* near_latency '
says '^\+ far_latency '
# HCA measurements between hosts are not replaced by those within one, measured now or not
says '^\+ hca_latency +777\.000 '
has '^hca_latency 777$'
has '^far umrddt_tune '
has '^near umrddt_tune '
checks=$((checks + 1))
[ "$(figure far_latency)" = "$far" ] || fail "near left far_latency as it was: $far"

# --- near, then far -----------------------------------------------------------------------------------

rm -r "$config"
tune h1:2
says '^  far_latency '
near=$(figure near_latency)
tune h1:1,h2:1
silent 'made anew'
says '^\* far_latency '
says '^\+ near_latency '
checks=$((checks + 2))
[ "$(figure near_latency)" = "$near" ] || fail "far left near_latency as it was: $near"
[ "$(ls "$config/umrddt" | wc -l)" -eq 1 ] || fail 'it is one file'
file=$(echo "$config"/umrddt/model-*.txt)

# --- another processor at h2 ------------------------------------------------------------------------------

sed 's/^model name.*/model name\t: another processor/' /proc/cpuinfo >"$UMRDDT_WORLD/cpuinfo"
if "$agent" h2 mount --bind "$UMRDDT_WORLD/cpuinfo" /proc/cpuinfo; then
    tune h1:1,h2:1 --seconds 0
    says 'the two nodes differ: this one is .*; the other one is another processor'
    silent 'made anew'
    tune h2:2 --seconds 0
    silent 'nodes differ'
    checks=$((checks + 1))
    [ "$(ls "$config/umrddt" | wc -l)" -eq 2 ] || fail 'another machine has another file'
    tune h2:2 --seconds 0 --output "$file"
    says 'is replaced: it was measured on other hardware: '
else
    echo "no other processor: /proc/cpuinfo cannot be covered here"
fi
echo "$checks checks passed"
