#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
#
# SPDX-License-Identifier: BSD-3-Clause
#
# $HEADER$
#
# umrddt_cuda.h agrees with the CUDA Toolkit's header: values, layouts, prototypes; and the software
# driver's sources compile with either. Skipped where there is no Toolkit (CUDA_HOME, /usr/local/cuda, /usr).

src=${srcdir:-$(dirname "$0")}
include=$src/../../opal/include
cc=${CC:-cc}
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT

toolkit=
for dir in "${CUDA_HOME:-}" /usr/local/cuda /usr; do
    if test -z "$toolkit" && test -n "$dir" && test -f "$dir/include/cuda.h"; then
        toolkit=$dir/include
    fi
done
if test -z "$toolkit"; then
    echo "skipped: no cuda.h in CUDA_HOME, /usr/local/cuda or /usr"
    exit 77
fi
version=$(sed -n 's/^#define CUDA_VERSION \([0-9]*\)$/\1/p' "$toolkit/cuda.h")
if test "${version:-0}" -lt 12040; then
    echo "skipped: the cuda.h in $toolkit is of version ${version:-unknown}, and 12040 is the first with these structures"
    exit 77
fi

flags="-std=gnu11 -D_GNU_SOURCE -Wall -Werror -I$include -I$src/../.."
# shellcheck disable=SC2086
$cc $flags -o "$work/ours" "$src/test_abi.c" || exit 1
# shellcheck disable=SC2086
$cc $flags -DUMRDDT_CUDA_H -I"$toolkit" -o "$work/theirs" "$src/test_abi.c" || exit 1
"$work/ours" > "$work/ours.txt" && "$work/theirs" > "$work/theirs.txt" || exit 1
diff "$work/ours.txt" "$work/theirs.txt" || exit 1
lines=$(wc -l < "$work/ours.txt")
test "$lines" -gt 50 || exit 1
for file in "$src"/../../sim/cuda/gpu_*.c; do
    # Of its enumerations a switch would have to name every member.
    # shellcheck disable=SC2086
    $cc $flags -Wno-switch -Wno-deprecated-declarations -DUMRDDT_CUDA_H -I"$toolkit" -I"$src/../../sim/cuda" -fsyntax-only "$file" || exit 1
done
# Every version of a function that is here, as the Toolkit's own stub of the library has them; none for the per-thread
# default stream (_ptsz, _ptds).
names()
{
    nm -D --defined-only "$1" | sed -n 's/^.* [TWi] \(cu[A-Z][A-Za-z0-9_]*\)$/\1/p' | sort -u
}
for stub in "${toolkit%/include}"/lib64/stubs/libcuda.so "${toolkit%/include}"/lib/stubs/libcuda.so; do
    test -e "$stub" || continue
    names ../../sim/cuda/.libs/libcuda.so.1 >"$work/have"
    sed 's/_v[0-9]*$//' "$work/have" | sort -u >"$work/functions"
    names "$stub" | grep -v -e '_ptsz$' -e '_ptds$' | while read -r name; do
        ! grep -qx "$(echo "$name" | sed 's/_v[0-9]*$//')" "$work/functions" || echo "$name"
    done >"$work/want"
    test -s "$work/want" || exit 1
    if comm -13 "$work/have" "$work/want" | grep .; then
        echo "the names above are in $stub, and not in the software driver"
        exit 1
    fi
    echo "$(wc -l <"$work/want") names of functions as in $stub"
    break
done
echo "ok: $lines sizes and offsets, all values and prototypes, as in $toolkit/cuda.h ($version)"
