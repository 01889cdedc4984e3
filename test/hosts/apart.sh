#!/bin/bash
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# The hosts of a world share nothing by which ranks, or HCAs, could reach each other except the
# cables. Commands on them do not see the caller's environment. The resources of a host end with its
# world. Runs within "world".

agent=$UMRDDT_HOSTS_DIR/agent
world=$UMRDDT_HOSTS_DIR/world
failed=0

bad() {
    echo "FAILED: $*"
    failed=1
}

# is WHAT COMMAND: the output is the same on both hosts; isnot: it differs
on_both() {
    first=$("$agent" h1 "$2") && second=$("$agent" h2 "$2") || bad "$2"
}
differs() {
    on_both "$@"
    if [ "$first" = "$second" ] || [ -z "$first" ]; then
        bad "$1: '$first' and '$second'"
    else
        echo "ok: $1"
    fi
}

differs "names" hostname
differs "networks" 'readlink /proc/self/ns/net'
differs "System V memory" 'readlink /proc/self/ns/ipc'
differs "process numbers" 'readlink /proc/self/ns/pid'
differs "mounts" 'readlink /proc/self/ns/mnt'
differs "temporary files" 'echo $TMPDIR'
differs "addresses of hcas" 'ip -4 -o address show dev hca'
[ "$(readlink /proc/self/ns/net)" != "$first" ] || bad "the caller is on a host"

"$agent" h1 'echo >/dev/shm/umrddt-here' || bad "nothing can be put to /dev/shm"
"$agent" h2 'test ! -e /dev/shm/umrddt-here' || bad "/dev/shm of one host is another's"
[ ! -e /dev/shm/umrddt-here ] || bad "/dev/shm of a host is the caller's"

UMRDDT_SECRET=1 "$agent" h1 'test -z "$UMRDDT_SECRET$UMRDDT_SIM$LD_PRELOAD"' || bad "the environment came along"
"$agent" h1 'exit 7'
[ $? -eq 7 ] || bad "the exit status of a command is lost"
"$agent" h9 true 2>/dev/null
[ $? -eq 255 ] || bad "there is a host h9"

# A second world beside this one, with the same addresses; when it ends, in any way, its hosts are
# gone.
hosts_there() {
    # (Not every system has pgrep.)
    local file count=0
    for file in /proc/[0-9]*/cmdline; do
        case $({ tr '\0' ' ' <"$file"; } 2>/dev/null) in
        *"/world --host h"[1-9]" "[1-9]" ") count=$((count + 1)) ;;
        esac
    done
    echo $count
}
mine=$(hosts_there)
mkfifo "$UMRDDT_WORLD/fifo"
mkdir "$UMRDDT_WORLD/inner"
for signal in TERM HUP KILL; do
    TMPDIR=$UMRDDT_WORLD/inner "$world" 2 bash -c 'echo $UMRDDT_WORLD; sleep 1000' >"$UMRDDT_WORLD/fifo" &
    inner=$!
    read -r dir <"$UMRDDT_WORLD/fifo"
    [ -d "$dir" ] && [ "$(hosts_there)" -eq $((mine + 2)) ] || bad "no world within this one: '$dir'"
    kill -$signal $inner
    wait $inner 2>/dev/null
    status=$?
    for ((i = 0; i < 100; i++)); do
        [ "$(hosts_there)" -ne "$mine" ] || break
        sleep 0.02
    done
    [ "$(hosts_there)" -eq "$mine" ] || bad "hosts are left after SIG$signal"
    case $signal:$status in
    TERM:143 | HUP:129 | KILL:137) ;;
    *) bad "a world ends with $status after SIG$signal" ;;
    esac
    [ $signal = KILL ] || [ ! -e "$dir" ] || bad "$dir is left after SIG$signal"
done
[ $failed -ne 0 ] || echo "ok: worlds"
exit $failed
