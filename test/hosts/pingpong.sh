#!/bin/bash
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# ibv_rc_pingpong between two hosts, by LID and by GID: both ends did all iterations, and every byte
# went over the cable of the HCAs. Runs within "world".

agent=$UMRDDT_HOSTS_DIR/agent
world=$UMRDDT_HOSTS_DIR/world
port=18500
failed=0

command -v ibv_rc_pingpong >/dev/null || { echo "SKIPPED: there is no ibv_rc_pingpong"; exit 77; }

sent() {
    echo $(($("$world" --bytes hca h1) + $("$world" --bytes hca h2)))
}

# pingpong OPTIONS BYTES ARGUMENT...: at least BYTES go over the wire
pingpong() {
    local options=$1 bytes=$2 before server status client
    shift 2
    port=$((port + 1))
    before=$(sent)
    "$agent" h1 "exec env UMRDDT_SIM=$options timeout 200 $UMRDDT_SIM_WRAPPER ibv_rc_pingpong -p $port $*" \
        >"$UMRDDT_WORLD/server" 2>&1 &
    server=$!
    # The server may not listen yet, but it must exist.
    while :; do
        "$agent" h2 "exec env UMRDDT_SIM=$options timeout 200 $UMRDDT_SIM_WRAPPER ibv_rc_pingpong -p $port $* h1" \
            >"$UMRDDT_WORLD/client" 2>&1
        client=$?
        grep -q "Couldn't connect" "$UMRDDT_WORLD/client" && kill -0 $server 2>/dev/null || break
        sleep 0.05
    done
    wait $server
    status=$?
    bytes=$(($(sent) - before - bytes))
    if [ $client -ne 0 ] || [ $status -ne 0 ] || [ $bytes -lt 0 ] ||
        ! grep -q " iters in " "$UMRDDT_WORLD/client" || ! grep -q " iters in " "$UMRDDT_WORLD/server"; then
        echo "FAILED: ibv_rc_pingpong $* with '$options': client $client, server $status, $bytes bytes too many (or few)"
        cat "$UMRDDT_WORLD/client" "$UMRDDT_WORLD/server"
        failed=1
    else
        echo "ok: ibv_rc_pingpong $* with '$options'"
    fi
}

tcp=$UMRDDT_SIM
pingpong "$tcp" $((2 * 1000 * 4096))
pingpong "$tcp" $((2 * 50 * 1000001)) -s 1000001 -n 50 -e -c
pingpong "$tcp,link=eth" $((2 * 1000 * 4096)) -g 0
exit $failed
