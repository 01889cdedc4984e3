#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
#
# SPDX-License-Identifier: BSD-3-Clause
#
# $HEADER$
#
# The wrapper itself: options and messages, exit statuses, programs without verbs, processes
# that fork or are killed, and left-over resources.

wrapper=${UMRDDT_SIM_WRAPPER:-../../sim/connectx/umrddt_sim}
limit=$(cd "${srcdir:-$(dirname "$0")}/.." && pwd)/limit
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
failed=0

bad() {
    echo "FAILED: $*"
    failed=1
}

# expect STATUS TEXT COMMAND...: its exit status, and a text in what it prints ('' for nothing at all)
expect() {
    status=$1
    text=$2
    shift 2
    "$limit" --part 200 "$@" > "$work/out" 2>&1
    got=$?
    if test $got -ne "$status"; then
        bad "$* ended with $got, not $status"
        cat "$work/out"
    elif test -z "$text" && test -s "$work/out"; then
        bad "$* printed something"
        cat "$work/out"
    elif test -n "$text" && ! grep -q -e "$text" "$work/out"; then
        bad "$* did not say '$text'"
        cat "$work/out"
    else
        echo "ok: $* ($status)"
    fi
}

sim() {
    value=$1
    shift
    UMRDDT_SIM=$value expect "$@"
}

# Help and options.
expect 0 "does not prove" "$wrapper" --help
expect 0 "fail_write=N" "$wrapper" --help
expect 2 "usage:" "$wrapper"
expect 2 "unknown option '--nonsense'" "$wrapper" --nonsense true
sim "nonsense=1" 2 "unknown option 'nonsense'" "$wrapper" true
sim "devices" 2 "needs a value" "$wrapper" true
for option in devices=0 devices=13 devices=x devices= devices=-1 link=wifi max_sq_desc=100 max_sq_desc=2048 max_sge=0 max_sge=31 max_wr=100 \
    log_max_msg=31 qps=0 srqs=-1 atomics=2 \
    umr=maybe mkeys=0 delay=1000001 seed=1x fail_write=0 deaf=0 log=4 counters=2 mrs= reg_bytes=0x \
    wire=udp address=10.0.0 address=0.0.0.0 address=10.0.0.1/33 address=10.0.0.1/ port=80 port=65000 \
    wire_ms=1 fabric= fabric=012345678901234567890123456789012 \
    link=ib/ speed=fast width=3 prefix=65536 gids=v5 gids=ll+ pkeys=65536 route=maybe route_ms=-1 machine=none; do
    sim "$option" 2 "cannot be" "$wrapper" true
done
expect 0 "WHAT:WHICH" "$wrapper" --help
for plan in write write: write:0 write:x write:3-2 write:1~0 nonsense:1 :1 @write:1 x@write:1 write:1:0 cuMemAlloc:1:1000 seed:0; do
    expect 2 "is no fault" "$wrapper" --faults "$plan" true
    sim "faults=$plan" 2 "cannot be" "$wrapper" true
done
expect 2 "No such file" "$wrapper" --faults "$work/none" true
printf '# a plan\nwrite:3 1@umr:2-4\n\n  launch:*~7:700 # one in seven\n' > "$work/plan"
expect 0 "^;write:3 1@umr:2-4;;  launch:\*~7:700 ;$" "$wrapper" --faults "$work/plan" sh -c 'echo "$UMRDDT_FAULTS"'
expect 0 "^mkey:2-;seed:3$" "$wrapper" --faults "mkey:2-;seed:3" sh -c 'echo "$UMRDDT_FAULTS"'
sim "devices=2,wire=tcp" 2 "there is one device" "$wrapper" true
sim "wire=tcp,address=127.99.88.77" 2 "no interface that is up has the address 127.99.88.77/32" "$wrapper" true
sim "wire=tcp,address=127.0.0.0/8" 0 "" "$wrapper" true
# Machines: what they set comes before other options.
expect 2 "cannot be 'none'" "$wrapper" --machine none true
expect 0 "  dgx-h100  " "$wrapper" --help
for machine in "dgx-h100 12 mlx5_2" "dual-port 2 mlx5_1" "roce 3 mlx5_2"; do
    # shellcheck disable=SC2086
    set -- $machine
    # shellcheck disable=SC2016
    expect 0 "^$2 100 Gb/sec (4X EDR)$" "$wrapper" --machine "$1" sh -c 'cd "$SYSFS_PATH/class/infiniband" &&
        echo "$(ls | wc -l) $(cat "$1/ports/1/rate")"' - "$3"
done
# shellcheck disable=SC2016
UMRDDT_SIM=devices=3 expect 0 "^3$" "$wrapper" --machine dgx-h100 sh -c 'ls "$SYSFS_PATH/class/infiniband" | wc -l'
# A GPU and its port are below the same switch, and storage is not.
# shellcheck disable=SC2016
expect 0 "^0x10de 1$" "$wrapper" --machine dgx-h100 sh -c 'cd "$SYSFS_PATH/bus/pci/devices" && gpu=$(readlink -f 0000:02:00.0) &&
    echo "$(cat "$gpu/vendor") $(ls -d "${gpu%/*}"/*/infiniband/mlx5_3 | wc -l)"'
lines=$(UMRDDT_SIM=devices=19 "$wrapper" true 2>&1 | wc -l)
test "$lines" -eq 1 || bad "a bad option gives $lines lines, not one message"

# Exit statuses, and programs that never touch verbs.
expect 0 "" "$wrapper" true
expect 1 "" "$wrapper" false
expect 42 "" "$wrapper" sh -c 'exit 42'
"$wrapper" sh -c 'kill -9 $$' > /dev/null 2>&1
test $? -eq 137 || bad "a killed command does not look like one"
expect 127 "cannot run" "$wrapper" /nonexistent/program
expect 126 "cannot run" "$wrapper" /dev/null
expect 0 "" "$wrapper" -- sh -c 'ls / | sort | head -1 > /dev/null; (cat < /dev/null) & wait'
expect 0 "" "$wrapper" --counters true
expect 0 "^7$" "$wrapper" sh -c 'echo $((3 + 4))'
if command -v python3 > /dev/null 2>&1; then
    expect 0 "" "$wrapper" python3 -c 'import os, socket, mmap, subprocess
subprocess.check_call(["true"])
a, b = socket.socketpair()
if os.fork() == 0:
    os.write(a.fileno(), b"x"); os._exit(0)
assert b.recv(1) == b"x" and os.wait()[1] == 0
assert os.stat("/dev/null") and not os.path.exists("/dev/infiniband/uverbs77")'
fi

# Counters, in a process that uses the HCA.
if command -v ibv_devinfo > /dev/null 2>&1; then
    expect 0 "umrddt_sim\[[0-9]*\]: wqes=0 .* commands=[1-9]" "$wrapper" --counters ibv_devinfo
    # The same for programs: an object of numbers in a line.
    if command -v python3 > /dev/null 2>&1; then
        expect 0 "^json: umrddt_sim wqes .* commands$" sh -c '"$1" --json ibv_devinfo 2>&1 > /dev/null | python3 -c "
import json, sys
line, = sys.stdin.read().splitlines()
row = json.loads(line)
assert all(isinstance(n, int) for n in row.values()) and 0 < row[\"commands\"] and 0 == row[\"wqes\"], row
print(\"json:\", *[name for name in row if name in (\"umrddt_sim\", \"wqes\", \"writes\", \"commands\")])"' - "$wrapper"
    fi
    # Started from another host, with that one's device tree.
    sim "wire=tcp,address=127.0.0.1" 255 "has to run on every host" "$wrapper" env SYSFS_PATH=/nowhere ibv_devinfo
    # Wrapped twice is wrapped once.
    expect 0 "mlx5_0" "$wrapper" "$wrapper" ibv_devinfo
fi

# Everything of a fabric is below UMRDDT_SIM_DIR, and only the tree stays.
mkdir "$work/dir"
UMRDDT_SIM_DIR=$work/dir UMRDDT_SIM=devices=2 expect 0 "" "$wrapper" true
count=$(find "$work/dir" -mindepth 1 -maxdepth 1 | wc -l)
test "$count" -eq 1 || bad "$count things in the directory, not the tree alone"
chmod 777 "$work/dir"
UMRDDT_SIM_DIR=$work/dir expect 2 "cannot use the directory" "$wrapper" true
rm -rf "$work/dir"
UMRDDT_SIM_DIR=$work/none/dir expect 2 "cannot use the directory" "$wrapper" true

long=$work/$(printf 'x%.0s' 1 2 3 4 5 6 7 8 9 0)$(printf 'abcdefghij%.0s' 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6)
UMRDDT_SIM_DIR=$long expect 2 "too long" "$wrapper" true
if command -v ibv_devinfo > /dev/null 2>&1; then
    # A relative one holds for a process that goes elsewhere, too.
    self=$(cd "$(dirname "$wrapper")" && pwd)/$(basename "$wrapper")
    (cd "$work" && UMRDDT_SIM_DIR=relative expect 0 "mlx5_0" "$self" sh -c 'cd / && ibv_devinfo' &&
        exit $failed) || bad "a relative UMRDDT_SIM_DIR"
fi

# Many at once make one tree, and nothing is left of the others.
mkdir -m 700 "$work/many"
for i in 1 2 3 4 5 6 7 8; do
    UMRDDT_SIM_DIR=$work/many "$limit" --part 200 "$wrapper" true &
done
wait
count=$(find "$work/many" -mindepth 1 -maxdepth 1 | wc -l)
test "$count" -eq 1 || bad "$count things are left after eight at once"

# A test that cannot fail proves nothing: with wrong bytes this one has to.
UMRDDT_SIM=umr=broken expect 1 "is 0x" ./test_umr

exit $failed
