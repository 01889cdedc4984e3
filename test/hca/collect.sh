#!/bin/sh
#
# Copyright (c) 2026      The umrddt authors. All rights reserved.
# SPDX-License-Identifier: BSD-3-Clause
# $HEADER$
#
# umrddt_info --collect: the content of the file, no secrets in it, files that it does not overwrite.

srcdir=${srcdir:-.}
OWN_DEVICES=1
. "$srcdir/common.sh"
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
unset OMPI_MCA_btl_umr_fin_apart
file=$work/report

bad() {
    echo "FAILED: $*"
    cat "$work/out" "$work/err"
    failures=$((failures + 1))
}

# collect TITLE STATUS FILE COMMAND: the command, with the option, exits with STATUS
collect() {
    # shellcheck disable=SC2086
    "$limit" --part 200 umrddt_sim $4 --collect "$3" >"$work/out" 2>"$work/err"
    status=$?
    [ $status -eq "$2" ] || bad "$1: exit status $status, not $2"
    echo "== $1"
}

# holds TITLE TEXT...: the file has each of the texts (grep patterns), or not if the text begins with "!"
holds() {
    title=$1
    shift
    for text in "$@"; do
        case $text in
        !*) ! grep -aq -e "${text#!}" "$file" || bad "$title: the file says '${text#!}'" ;;
        *) grep -aq -e "$text" "$file" || bad "$title: the file does not say '$text'" ;;
        esac
    done
}

export UCX_COLLECT_TEST=seen SLURM_JWT=hush1 SLURM_COLLECT=hush2 OMPI_MCA_some_token=hush3 COLLECT_TEST=hush4 \
    OMPI_MCA_pml_umrddt_min_size=4096
echo "older content" >"$file"
collect "one process" 0 "$file" umrddt_info
holds "one process" "^==== node " "^UCX_COLLECT_TEST=seen" "^OMPI_MCA_pml_umrddt_min_size=4096" "^SLURM_JWT is set" "^SLURM_COLLECT is set" \
    "^OMPI_MCA_some_token is set" "!hush" "!COLLECT_TEST=hush4" "!older content" "^mlx5_0:1: usable" ":btl_umr_mkeys:value:" \
    ":pml_umrddt_min_size:value:4096" "!^Lanes"
before=$(wc -c <"$file")
# Both processes are the first ones of their nodes.
collect "two nodes" 0 "$file" "mpirun -n 2 env OMPI_COMM_WORLD_LOCAL_RANK=0 umrddt_info"
holds "two nodes" "^2 of 2 directions work" "!hush"
[ "$(grep -ac "^==== node " "$file")" -eq 2 ] || bad "two nodes: not both are in the file"
[ "$(wc -c <"$file")" -gt $((before + before / 2)) ] || bad "two nodes: the file is short"
# A node without the components is the reason for many reports.
collect "no btl/umr at one node" 3 "$file" "mpirun -n 1 umrddt_info --collect $file : -n 1 env OMPI_COMM_WORLD_LOCAL_RANK=0 \
    OMPI_MCA_mca_base_component_path=${OMPI_MCA_mca_base_component_path#*:} umrddt_info"
[ "$(grep -ac "^==== node " "$file")" -eq 2 ] || bad "no btl/umr at one node: not both nodes are in the file"

# Only regular files are overwritten.
echo kept >"$work/kept"
ln -s "$work/kept" "$work/link"
mkfifo "$work/fifo"
collect "a link" 2 "$work/link" umrddt_info
grep -q "regular file" "$work/err" || bad "a link: it does not say so"
[ "$(cat "$work/kept")" = kept ] || bad "a link: it was followed"
collect "a pipe" 2 "$work/fifo" umrddt_info
collect "a device" 2 /dev/null umrddt_info
collect "a directory" 2 "$work" umrddt_info
collect "no directory" 2 "$work/none/report" umrddt_info
collect "with the test of devices" 2 "$file" "umrddt_info --selftest"
finish
