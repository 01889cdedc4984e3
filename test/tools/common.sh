# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# shellcheck shell=bash disable=SC2034
#
# Read by tests: a scratch directory, and expect.

top=$(cd "${srcdir:-$(dirname "$0")}/../.." && pwd) || exit 99
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
failures=0

# expect STATUS TEXT COMMAND...: the command ends with that exit status, and its output has the text.
expect()
{
    local want=$1 text=$2 status
    shift 2
    "$@" >"$scratch/raw" 2>&1 </dev/null
    status=$?
    # The mpirun of 5.0 puts NULs into what a job says that is aborted, and for grep they end lines.
    tr -d '\000' <"$scratch/raw" >"$scratch/output"
    if [ "$status" -ne "$want" ] || [[ "$(cat "$scratch/output")" != *"$text"* ]]; then
        printf 'FAILED: %s\n  exit status %s, expected %s; expected in the output: %s\n' "$*" "$status" \
            "$want" "$text"
        sed 's/^/  | /' "$scratch/output"
        failures=$((failures + 1))
    fi
}

finish()
{
    if [ "$failures" -ne 0 ]; then
        echo "$failures failed"
        exit 1
    fi
    exit 0
}
