#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
#
# SPDX-License-Identifier: BSD-3-Clause
#
# $HEADER$
#
# The programs that libibverbs itself is tried with, below the software HCA: ibv_devinfo, and
# ibv_rc_pingpong between two processes in all its modes.

. "${srcdir:-$(dirname "$0")}/pingpong.sh"
failed=0

for tool in ibv_devinfo ibv_srq_pingpong ibv_rc_pingpong; do
    if ! command -v $tool > /dev/null 2>&1; then
        echo "skipped: there is no $tool"
        exit 77
    fi
done

# devinfo OPTIONS TEXT...: ibv_devinfo -v succeeds and says all of these
devinfo() {
    options=$1
    shift
    if ! UMRDDT_SIM=$options "$limit" --part 200 "$wrapper" ibv_devinfo -v > "$work/out" 2>&1; then
        echo "FAILED: ibv_devinfo with '$options'"
        cat "$work/out"
        failed=1
        return
    fi
    for text in "$@"; do
        if ! grep -q "$text" "$work/out"; then
            echo "FAILED: ibv_devinfo with '$options' does not say '$text'"
            failed=1
        fi
    done
    echo "ok: ibv_devinfo with '$options'"
}

# too_soon: one side had done all iterations and was gone while sends of the other were under way. ibv_srq_pingpong
# has more of them than it counts; an HCA finds that out half a second later, when the other has ended, too. The software
# HCA says so at once.
too_soon() {
    test $((client + server)) -eq 1 && test $tool = ibv_srq_pingpong &&
        cat "$work/client" "$work/server" | grep -q "^Failed status transport retry counter exceeded" &&
        cat "$work/client" "$work/server" | grep -q " iters in "
}

# pingpong OPTIONS ARGUMENT...: both sides end with 0 and say that they did all iterations
pingpong() {
    options=$1
    shift
    pair "$options" "$options" "$@"
    for again in 1 2 3; do
        too_soon || break
        echo "again: one side of $tool $* with '$options' was gone too soon"
        pair "$options" "$options" "$@"
    done
    if test $client -ne 0 || test $server -ne 0 || ! grep -q " iters in " "$work/client" ||
        ! grep -q " iters in " "$work/server"; then
        echo "FAILED: $tool $* with '$options': client $client, server $server"
        cat "$work/client" "$work/server"
        failed=1
    else
        echo "ok: $tool $* with '$options'"
    fi
}

devinfo "" "mlx5_0" "PORT_ACTIVE" "InfiniBand" "port_lid:.*1$"
devinfo "devices=2" "mlx5_0" "mlx5_1" "port_lid:.*2$"
devinfo "link=eth" "Ethernet" "GID\[  0\]"
devinfo "wire=tcp,address=127.0.0.1" "port_lid:.*1$"
devinfo "wire=tcp,address=127.0.0.1,link=eth" "GID\[  0\]:.*ffff:127.0.0.1"
pingpong ""
pingpong "" -e
pingpong "" -N
pingpong "" -N -e
pingpong "" -t
pingpong "" -s 1
pingpong "" -s 1048576 -n 20 -c
pingpong "" -s 100001 -n 200 -r 7 -c
pingpong "" -g 0 -m 1024
pingpong "link=eth" -g 0
pingpong "link=eth" -g 0 -e
pingpong "devices=2" -d mlx5_1
pingpong "delay=200,seed=3" -n 200 -c
pingpong "wire=tcp,address=127.0.0.1"
pingpong "wire=tcp,address=127.0.0.1" -e -s 100001 -n 200 -c
pingpong "wire=tcp,address=127.0.0.1,link=eth" -g 0
tool=ibv_srq_pingpong
pingpong "" -q 5 -r 50
pingpong "" -q 5 -r 50 -e -s 100001 -n 200 -c
pingpong "wire=tcp,address=127.0.0.1" -q 5 -r 50 -c
exit $failed
