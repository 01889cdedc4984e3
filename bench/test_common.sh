# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# Common parts of the tests of umrddt_bench; read by each (". test_common.sh").

mpirun=${UMRDDT_MPIRUN:-mpirun}
scratch=$(mktemp -d) || exit 99
trap 'rm -rf "$scratch"' EXIT
checks=0
# If a process fails, mpirun waits a second or two for the others, which SIGTERM has ended.
export OMPI_MCA_odls_base_sigkill_timeout=0 PRTE_MCA_odls_base_sigkill_timeout=0

# fail TEXT: report a missing result, with the output of the last run.
fail() {
    echo "FAILED: $1"
    echo "--- exit status ${status:-none}, stdout:"
    cat "$scratch/out" 2>/dev/null
    echo "--- stderr:"
    cat "$scratch/err" 2>/dev/null
    exit 1
}

# run COMMAND...: keeps $status, $scratch/out and $scratch/err.
run() {
    "${srcdir:-.}/../test/limit" --part 900 "$@" >"$scratch/out" 2>"$scratch/err"
    status=$?
}

# ob1 RANKS ARGUMENTS...: umrddt_bench on the plain base PML.
ob1() {
    ranks=$1
    shift
    run "$mpirun" -n "$ranks" --mca pml ob1 umrddt_bench "$@"
}

# want STATUS: of the last run.
want() {
    checks=$((checks + 1))
    [ "$status" -eq "$1" ] || fail "exit status $1"
}

# says FILE PATTERN: the output of the last run (out, err, or a file in $scratch) has a line with the pattern (grep -E).
says() {
    checks=$((checks + 1))
    grep -Eq -e "$2" "$scratch/$1" || fail "$1 says '$2'"
}

# silent FILE PATTERN: it has none.
silent() {
    checks=$((checks + 1))
    ! grep -Eq -e "$2" "$scratch/$1" || fail "$1 does not say '$2'"
}
