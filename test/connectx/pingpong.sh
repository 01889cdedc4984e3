# Copyright (c) 2026      The umrddt authors. All rights reserved.
#
# SPDX-License-Identifier: BSD-3-Clause
#
# $HEADER$
#
# Read by the tests that run ibv_rc_pingpong, or another $tool of its kind: . pingpong.sh

limit=$(cd "${srcdir:-$(dirname "$0")}/.." && pwd)/limit
wrapper=${UMRDDT_SIM_WRAPPER:-../../sim/connectx/umrddt_sim}
tool=ibv_rc_pingpong
# Below those that the HCAs listen at.
port=$((20000 + $$ % 3900))
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT

# pair OPTIONS OPTIONS ARGUMENT...: the tool between two processes, with these options of the HCA of the
# server and of the client; their output is in $work/server and $work/client. Returns the client's status, which is
# in $client, too; that of the server is in $server.
pair() {
    of_server=$1
    of_client=$2
    shift 2
    port=$((port + 1))
    UMRDDT_SIM=$of_server "$limit" --part 200 "$wrapper" "$tool" -p $port "$@" > "$work/server" 2>&1 &
    pid=$!
    while :; do
        UMRDDT_SIM=$of_client "$limit" --part 200 "$wrapper" "$tool" -p $port "$@" localhost \
            > "$work/client" 2>&1
        client=$?
        # The server may not listen yet, but it must be there.
        if test $client -eq 0 || ! grep -q "Couldn't connect" "$work/client" || ! kill -0 $pid 2> /dev/null; then
            break
        fi
        sleep 0.1
    done
    # A server whose client failed waits for ever.
    test $client -eq 0 || kill $pid 2> /dev/null
    wait $pid
    server=$?
    return $client
}
